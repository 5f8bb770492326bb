//! Faults that the whole field has, put in on purpose: somebody finds each of them, and says by which guarantee.
//!
//! A test plays its story without the fault, which must be clean, and with it.

mod omp;
mod openmax;
mod openseek;

use turnwire::{
    protocol::observer::Dir,
    session::Session,
    vocab::{laws::Scope, *},
};
use turnwire_proptests::{
    faults::{Twist, Twisted},
    reference::Judged,
    scenario::Scenario,
    world::{
        By, Given, Report, START, Said, Speaks, Tamper, Untouched, World, play_agent, play_ends,
        run_over, run_with, session_world,
    },
};

/// A story that is clean as it is.
fn story<P: Speaks>(text: &str) -> Scenario {
    let scenario = Scenario::parse(&format!("turnwire scenario 1\n{text}"));
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    if scenario.setup.is_agent_alone() {
        run_with(&scenario).assert_clean();
    } else {
        run_over::<P>(&scenario).0.assert_clean();
    }
    scenario
}

/// The story with a faulty session, alone or behind a Server.
fn with<P: Speaks>(text: &str, twist: impl Twist) -> Report {
    let scenario = story::<P>(text);
    let setup = &scenario.setup;
    let mut config = setup.session();
    if !setup.is_agent_alone() {
        P::session(&mut config, setup);
    }
    let judged = Judged::Session(config.policy.gates);
    let session = Session::new(config, Box::new(P::info()), START);
    let world = World::new(Twisted::new(session, twist), Scope::Session, START);
    if setup.is_agent_alone() {
        play_agent(&scenario, world, judged)
    } else {
        play_ends::<P, _>(&scenario, world, judged, Box::new(Untouched))
    }
}

/// The story with a faulty wire.
fn over<P: Speaks>(text: &str, tamper: impl Tamper + 'static) -> Report {
    tampered::<P>(&story::<P>(text), tamper)
}

/// This scenario with a wire that changes something, and that may be no fault.
fn tampered<P: Speaks>(scenario: &Scenario, tamper: impl Tamper + 'static) -> Report {
    let mut config = scenario.setup.session();
    P::session(&mut config, &scenario.setup);
    let judged = Judged::Session(config.policy.gates);
    let world = session_world(config, P::info());
    play_ends::<P, _>(scenario, world, judged, Box::new(tamper))
}

/// This one found it, by this guarantee.
#[track_caller]
fn finds(report: &Report, by: By, id: &str) {
    assert!(report.has(by, id), "{by:?} doesn't find {id}:\n{report}");
}

/// What an agent says is changed.
struct Says<F>(F);

impl<F: FnMut(Said) -> Vec<Said>> Twist for Says<F> {
    fn output(&mut self, said: Said) -> Vec<Said> {
        (self.0)(said)
    }
}

/// What an agent is told is changed.
struct Hears<F>(F);

impl<F: FnMut(Given) -> Vec<Given>> Twist for Hears<F> {
    fn input(&mut self, given: Given) -> Vec<Given> {
        (self.0)(given)
    }
}

fn is(said: &Said, which: impl Fn(&What) -> bool) -> bool {
    said.what().is_some_and(which)
}

fn twice(said: Said, which: impl Fn(&What) -> bool) -> Vec<Said> {
    let doubled = is(&said, which);
    std::iter::repeat_n(said, 1 + usize::from(doubled)).collect()
}

fn lost(said: Said, which: impl Fn(&What) -> bool) -> Vec<Said> {
    if is(&said, which) { vec![] } else { vec![said] }
}

/// Lines of the agent that hold these bytes are written twice.
struct Doubles(&'static str);

impl Tamper for Doubles {
    fn written(&mut self, dir: Dir, bytes: Vec<u8>) -> Vec<u8> {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let times = |line: &str| 1 + usize::from(dir == Dir::Agent && line.contains(self.0));
        let lines = text.split_inclusive('\n');
        lines
            .map(|line| line.repeat(times(line)))
            .collect::<String>()
            .into_bytes()
    }
}

/// Each line that a side writes becomes what this gives; a line has its newline.
struct Writes<F>(Dir, F);

impl<F: FnMut(&str) -> String> Tamper for Writes<F> {
    fn written(&mut self, dir: Dir, bytes: Vec<u8>) -> Vec<u8> {
        by_line(self.0, &mut self.1, dir, bytes)
    }
}

/// Each line of a side becomes what this gives, where it is read; a line has its newline.
struct Reads<F>(Dir, F);

impl<F: FnMut(&str) -> String> Tamper for Reads<F> {
    fn read(&mut self, dir: Dir, bytes: Vec<u8>) -> Vec<u8> {
        by_line(self.0, &mut self.1, dir, bytes)
    }
}

fn by_line(
    which: Dir,
    change: &mut impl FnMut(&str) -> String,
    dir: Dir,
    bytes: Vec<u8>,
) -> Vec<u8> {
    if dir != which {
        return bytes;
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let lines = text.split_inclusive('\n').map(change);
    lines.collect::<String>().into_bytes()
}

/// A host that writes its lines that hold this without their newline, and perhaps a reader that loses such a line at the
/// end.
struct Unterminated {
    holds: &'static str,
    loses: bool,
}

impl Tamper for Unterminated {
    fn written(&mut self, dir: Dir, bytes: Vec<u8>) -> Vec<u8> {
        let cut = |line: &str| {
            let ends = if line.contains(self.holds) { "" } else { "\n" };
            format!("{}{ends}", line.trim_end_matches('\n'))
        };
        by_line(Dir::Host, &mut { cut }, dir, bytes)
    }

    fn read(&mut self, dir: Dir, bytes: Vec<u8>) -> Vec<u8> {
        let kept = |line: &str| {
            let whole = line.ends_with('\n') || !self.loses;
            if whole {
                line.to_owned()
            } else {
                String::new()
            }
        };
        by_line(Dir::Host, &mut { kept }, dir, bytes)
    }
}

fn unterminated(holds: &'static str) -> Unterminated {
    let loses = false;
    Unterminated { holds, loses }
}

fn loses_tails(holds: &'static str) -> Unterminated {
    let loses = true;
    Unterminated { holds, loses }
}

const TURN: &str = "> prompt if-idle\n+ answer 0\n";
