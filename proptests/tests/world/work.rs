//! L7 and L9 by what is allocated: a step costs what its input and its output account for, however long the story is.

use turnwire::{
    protocol::{
        Server, agentx::Agentx, observer::Dir, omp::Omp, openmax::Openmax, openseek::Openseek,
    },
    session::Session,
    vocab::{DeltaRef, Now, Output},
};
use turnwire_proptests::{
    laws::{
        AgentMachine, ClientMachine, Machine, ObserverMachine, ServerInput, ServerMachine, Work,
        law_l7_work,
    },
    scenario::Scenario,
    world::{START, Speaks, line_rules, run_over},
};

/// Bytes that were allocated, copies by growing included.
pub fn allocated(step: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(step).bytes_total
}

/// What the machines may allocate.
const MOST: Work = Work {
    once: 64 * 1024,
    step: 512,
    byte: 4,
};

#[track_caller]
fn holds<M: Machine>(who: &str, make: impl Fn() -> M, story: &[(M::Input, Now)]) {
    assert_eq!(law_l7_work(make, story, allocated, MOST), Ok(()), "{who}");
}

/// A session of so many turns, each with a call and two replies.
fn turns(count: usize) -> Scenario {
    let turn = "> prompt if-idle\n+ answer 0 write\n+ tool 0 ok\n+ answer 0\n";
    let text = format!("turnwire scenario 1\nset mode auto\n{}", turn.repeat(count));
    Scenario::parse(&text).unwrap()
}

fn check<P: Speaks>() {
    let scenario = turns(150);
    let setup = &scenario.setup;
    let (report, told) = run_over::<P>(&scenario);
    report.assert_clean();
    let mut config = setup.session();
    P::session(&mut config, setup);
    let (down, up) = (line_rules::<P>(Dir::Host), line_rules::<P>(Dir::Agent));
    let session = || {
        let session = Session::new(config.clone(), Box::new(P::info()), START);
        AgentMachine(session)
    };
    holds("session", session, &told.agent);
    let server = || ServerMachine::<P>::new(P::server(setup), down);
    holds("Server", server, &told.server);
    let client = || ClientMachine::<P>::new(P::client(setup), up);
    holds("Client", client, &told.client);
    let observer = || ObserverMachine::<P>::new(P::observer(setup), down, up);
    holds("observer", observer, &told.observer);
}

#[test]
fn l7_a_long_session_over_openmax_costs_what_it_says() {
    check::<Openmax>();
}

#[test]
fn l7_a_long_session_over_omp_costs_what_it_says() {
    check::<Omp>();
}

#[test]
fn l7_a_long_session_over_openseek_costs_what_it_says() {
    check::<Openseek>();
}

/// A Server in the middle of a reply takes a thousand pieces, and allocates nothing for them.
fn deltas<P: Speaks>() {
    let text =
        "turnwire scenario 1\nset mode auto\n> prompt if-idle\n+ model 0 text \"so it is\"\n";
    let scenario = Scenario::parse(text).unwrap();
    let (_, told) = run_over::<P>(&scenario);
    let mut server = Server::<P>::new(P::server(&scenario.setup));
    let mut splitter = turnwire::frame::LineSplitter::new(line_rules::<P>(Dir::Host));
    let mut lines = Vec::with_capacity(1 << 16);
    for (input, now) in &told.server {
        match input {
            ServerInput::Bytes(bytes) => {
                let mut chunk = bytes.as_slice();
                while let Some(split) = splitter.next(&mut chunk) {
                    server.handle_line(split, *now);
                }
            }
            ServerInput::Said(said) => match said.lend() {
                Output::Event(event) => server.handle_event(event),
                Output::Delta(delta) => {
                    let say = |server: &mut Server<P>, lines: &mut Vec<u8>, count: u64| {
                        for piece in 0..count {
                            // As time passes, what waits to be joined is written.
                            let mut at = *now;
                            at.mono_us += piece * 1_000_000;
                            server.handle_delta(&DeltaRef { at, ..delta });
                            server.handle_woken(at);
                            while server.poll_output(lines).is_some() {}
                            lines.clear();
                        }
                    };
                    say(&mut server, &mut lines, 100);
                    let bytes = allocated(&mut || say(&mut server, &mut lines, 1_000));
                    assert_eq!(bytes, 0, "{}", P::NAME);
                    return;
                }
                Output::Effect { .. } => {}
            },
            ServerInput::Woken => server.handle_woken(*now),
            ServerInput::End
            | ServerInput::Signal(_)
            | ServerInput::Extra(_)
            | ServerInput::Settle(..) => {}
        }
        while server.poll_output(&mut lines).is_some() {}
        lines.clear();
    }
    panic!("no piece of a reply was told");
}

#[test]
fn l7_a_piece_of_a_reply_allocates_nothing() {
    deltas::<Openmax>();
    deltas::<Openseek>();
    deltas::<Agentx>();
}
