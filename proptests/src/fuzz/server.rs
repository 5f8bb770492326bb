//! An agent of ours behind its Server, and a host that writes any bytes.

use std::collections::VecDeque;

use turnwire::{
    frame::LineSplitter,
    protocol::{
        Server, ServerOutput,
        observer::{Dir, Observer, Severity, Sides},
    },
    session::SessionTree,
    vocab::*,
};

use super::{Told, must, shown, story};
use crate::{
    laws::{self, Broken, ServerInput, ServerMachine, law_l8},
    reference::{Judged, Reference},
    scenario::{SETUP_BYTES, Scenario, Setup},
    script::{Action, Judging, Piece, Tool, ToolNews, act, settle},
    world::{Given, Mess, Speaks, World, line_rules, session_world},
};

/// Whatever bytes a host writes, our agent behind its Server keeps the contract as the observer knows it, the neutral
/// guarantees and the laws, and leaves when its input has ended.
///
/// The first 24 bytes are the setup of a scenario; then come the host's bytes, with control bytes between them:
/// 1 settles an effect, 2 lets a model, tool, hook or disk do something, 3 lets time pass, 4 jumps to the next
/// deadline, 5 and 6 answer the newest question with yes and no, 7 is a signal, 8 ends the host's input, 11 is a
/// crash of the turn; any other only cuts.
///
/// # Errors
/// [`Broken`] with the law, guarantee or rule that is broken.
pub fn server<P: Speaks>(data: &[u8]) -> Result<(), Broken> {
    let (setup, rest) = data.split_at(data.len().min(SETUP_BYTES));
    let setup = Scenario::decode(setup).setup;
    let mut rig = Rig::<P>::new(&setup);
    for part in story(rest) {
        rig.tell(part);
        if rig.is_wrong() {
            break;
        }
    }
    rig.leave();
    rig.judge(&setup, 1 + rest.len() % 13)
}

/// What surrounds an agent, by the byte behind control byte 2.
fn action(pick: u8) -> Action {
    let model = |piece| Action::Model(0, piece);
    let failed = |kind, reached, wait| Action::Model(0, Piece::Failed(kind, reached, wait));
    match pick % 36 {
        0 => Action::Answer(0, vec![]),
        1 => Action::Answer(0, vec![Tool::Read]),
        2 => Action::Answer(0, vec![Tool::Write]),
        3 => Action::Answer(0, vec![Tool::Read, Tool::Write]),
        4 => Action::Answer(0, vec![Tool::Asked]),
        5 => Action::Answer(0, vec![Tool::Missing, Tool::Broken, Tool::Denied]),
        6 => model(Piece::Alive(true)),
        7 => model(Piece::Text("hi\u{2028}".into())),
        8 => model(Piece::Text(String::new())),
        9 => model(Piece::Thinking("hm".into())),
        10 => model(Piece::Call(Tool::Write)),
        11 => model(Piece::HalfCall),
        12 => model(Piece::Usage(7)),
        13 => model(Piece::Finish),
        14 => model(Piece::End),
        15 => failed(FailureKind::Server, true, None),
        16 => failed(FailureKind::Transport, false, None),
        17 => failed(FailureKind::RateLimit, true, Some(3_000_000)),
        18 => failed(FailureKind::RateLimit, true, Some(120_000_000)),
        19 => failed(FailureKind::Auth, true, None),
        20 => failed(FailureKind::ContextFull, true, None),
        21 => failed(FailureKind::StreamCut, true, None),
        22 => Action::Tool(0, ToolNews::Ok),
        23 => Action::Tool(0, ToolNews::Failed),
        24 => Action::Tool(0, ToolNews::Progress),
        25 => Action::Tool(0, ToolNews::File),
        26 => Action::Tool(0, ToolNews::TimedOut),
        27 => Action::Hook(0, Judging::Deny),
        28 => Action::Hook(0, Judging::Fails),
        29 => Action::Hook(0, Judging::Adds),
        30 => Action::Hook(0, Judging::Pass),
        31 => Action::Store(0, true),
        32 => Action::Store(0, false),
        33 => Action::Late(0),
        34 => Action::Twice(0),
        _ => Action::Model(1, Piece::Odd(pick)),
    }
}

/// The most rounds in which everything must have come to its end.
const MOST_ROUNDS: usize = 2_000;

/// The agent's process, and what watches it.
struct Rig<P: Speaks> {
    agent: World<SessionTree>,
    server: Server<P>,
    reads: LineSplitter,
    /// What the host has written and the agent hasn't read.
    written: VecDeque<Vec<u8>>,
    ended: bool,
    end_read: bool,
    observer: Observer<P>,
    hears_host: LineSplitter,
    hears_agent: LineSplitter,
    /// The newest line that a host [has an answer](Speaks::consent) to.
    asked: Option<Vec<u8>>,
    held: VecDeque<Call>,
    heard: usize,
    exit: Option<u8>,
    mess: Mess,
    found: Vec<(&'static str, String)>,
    recorded: Vec<(ServerInput<P>, Now)>,
    /// Every line of either side, for a finding.
    said: Vec<String>,
}

impl<P: Speaks> Rig<P> {
    fn new(setup: &Setup) -> Self {
        let mut config = setup.session();
        P::session(&mut config, setup);
        let host = LineSplitter::new(line_rules::<P>(Dir::Host));
        let mut rig = Rig {
            agent: session_world(config, P::info()),
            server: Server::new(P::server(setup)),
            reads: host.clone(),
            written: VecDeque::new(),
            ended: false,
            end_read: false,
            observer: Observer::new(P::observer(setup), Sides::Both),
            hears_host: host,
            hears_agent: LineSplitter::new(line_rules::<P>(Dir::Agent)),
            asked: None,
            held: VecDeque::new(),
            heard: 0,
            exit: None,
            // A host that writes anything.
            mess: Mess {
                bad_host: true,
                ..Mess::default()
            },
            found: Vec::new(),
            recorded: Vec::new(),
            said: Vec::new(),
        };
        rig.pump();
        rig
    }

    fn is_wrong(&self) -> bool {
        !self.found.is_empty() || !self.agent.faults.is_empty()
    }

    fn tell(&mut self, part: Told<'_>) {
        match part {
            Told::Bytes(bytes) => self.write(bytes.to_vec()),
            Told::Control(1, pick) => {
                let open = self.agent.work.keys().copied();
                let at = usize::from(pick).checked_rem(self.agent.work.len());
                if let Some(id) = at.and_then(|at| open.into_iter().nth(at)) {
                    self.driver(|agent| settle(agent, id));
                }
            }
            Told::Control(2, pick) => self.driver(|agent| act(agent, &action(pick))),
            Told::Control(3, quarters) => self.pass(u64::from(quarters) * 250_000),
            Told::Control(4, _) => drop(self.jump(u64::MAX)),
            Told::Control(answer @ 5..=6, _) => {
                let asked = self.asked.as_deref();
                if let Some(line) = asked.and_then(|line| P::consent(line, answer == 5)) {
                    self.write(line);
                }
            }
            Told::Control(7, pick) => self.signal(pick),
            Told::Control(8, _) => self.end(),
            Told::Control(11, _) => {
                self.mess.crash = true;
                self.driver(|agent| act(agent, &Action::Fault));
            }
            Told::Control(..) => {}
        }
        self.pump();
    }

    fn driver(&mut self, what: impl FnOnce(&mut World<SessionTree>)) {
        if self.exit.is_none() {
            what(&mut self.agent);
        }
    }

    fn write(&mut self, bytes: Vec<u8>) {
        if self.ended {
            return;
        }
        self.said.push(format!("> {}", shown(&bytes)));
        let mut chunk = bytes.as_slice();
        while let Some(split) = self.hears_host.next(&mut chunk) {
            self.observer.handle_line(Dir::Host, split);
        }
        self.written.push_back(bytes);
        self.look();
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.said.push("> end".to_owned());
        if let Some(split) = self.hears_host.finish() {
            self.observer.handle_line(Dir::Host, split);
        }
        self.observer.handle_end(Dir::Host);
        self.look();
    }

    fn signal(&mut self, pick: u8) {
        let all = [Signal::Interrupt, Signal::Terminate, Signal::Hangup];
        let signal = all
            .into_iter()
            .nth(usize::from(pick % 3))
            .unwrap_or(Signal::Terminate);
        if self.exit.is_none() {
            self.said.push(format!("> signal {signal:?}"));
            self.mess.hurried |= self.mess.signal;
            self.mess.signal = true;
            let input = ServerInput::Signal(signal);
            self.recorded.push((input, self.agent.now));
            self.server.handle_signal(signal, self.agent.now);
        }
    }

    fn pass(&mut self, us: u64) {
        let until = self.agent.now.mono_us.saturating_add(us);
        for _ in 0..MOST_ROUNDS {
            if !self.jump(until) {
                break;
            }
        }
        self.agent
            .skip(until.saturating_sub(self.agent.now.mono_us));
    }

    /// Jumps to the next deadline, if it isn't behind `until`.
    fn jump(&mut self, until: u64) -> bool {
        if self.exit.is_some() {
            return false;
        }
        let (agent, server) = (self.agent.agent.poll_timeout(), self.server.poll_timeout());
        let next = [agent, server].into_iter().flatten().map(|due| due.at_us);
        let Some(at) = next.min().filter(|at| *at <= until) else {
            return false;
        };
        self.agent.skip(at.saturating_sub(self.agent.now.mono_us));
        let now = self.agent.now;
        let is_due = |due: Option<Due>| due.is_some_and(|due| due.at_us <= now.mono_us);
        if is_due(server) {
            self.recorded.push((ServerInput::Woken, now));
            self.server.handle_woken(now);
        }
        if is_due(agent) {
            self.agent.wake();
        }
        self.pump();
        true
    }

    /// Moves everything that can move now.
    fn pump(&mut self) {
        loop {
            while self.agent_moves() {}
            let takes = self.exit.is_none() && self.server.wants_lines() && self.held.is_empty();
            if !takes {
                return;
            }
            if let Some(bytes) = self.written.pop_front() {
                self.read(&bytes);
            } else if self.ended && !self.end_read {
                self.end_read = true;
                let now = self.agent.now;
                if let Some(split) = self.reads.finish() {
                    self.server.handle_line(split, now);
                }
                self.recorded.push((ServerInput::End, now));
                self.server.handle_end(now);
            } else {
                return;
            }
        }
    }

    /// A piece reaches the agent, line by line, each with all that follows from it.
    fn read(&mut self, bytes: &[u8]) {
        let now = self.agent.now;
        let fresh = LineSplitter::new(line_rules::<P>(Dir::Host));
        let mut splitter = std::mem::replace(&mut self.reads, fresh);
        let mut chunk = bytes;
        let mut before = chunk;
        while let Some(split) = splitter.next(&mut chunk) {
            let read = before.len() - chunk.len();
            let read = before.get(..read).unwrap_or_default().to_vec();
            before = chunk;
            self.recorded.push((ServerInput::Bytes(read), now));
            self.server.handle_line(split, now);
            while self.agent_moves() {}
        }
        if !before.is_empty() {
            let input = ServerInput::Bytes(before.to_vec());
            self.recorded.push((input, now));
        }
        self.reads = splitter;
    }

    /// One output of the agent or its Server.
    fn agent_moves(&mut self) -> bool {
        if self.exit.is_some() {
            return false;
        }
        let mut lines = Vec::new();
        let output = self.server.poll_output(&mut lines);
        if !lines.is_empty() {
            self.agent_writes(&lines);
        }
        match output {
            Some(ServerOutput::Call(call)) => self.held.push_back(call),
            Some(ServerOutput::Exit { code }) => {
                self.exit = Some(code);
                self.said.push(format!("< exit {code}"));
                self.observer.handle_end(Dir::Agent);
                self.observer.handle_exit(i64::from(code));
                self.observer.finish();
                self.look();
            }
            Some(ServerOutput::Ask { id, ask }) => {
                let now = self.agent.now;
                let outcome = P::answer(&ask, u8::try_from(id % 256).unwrap_or_default());
                let input = ServerInput::Settle(id, outcome.clone());
                self.recorded.push((input, now));
                if let Err(misuse) = self.server.settle(id, outcome, now) {
                    self.found.push(("L8", format!("an ask: {misuse}")));
                }
            }
            Some(ServerOutput::Dismiss { .. } | ServerOutput::Diagnostic(_)) => {}
            None if self.give_held() => {}
            None => return self.hear() || !lines.is_empty(),
        }
        true
    }

    fn give_held(&mut self) -> bool {
        let wants = self.agent.agent.wants_input();
        let passes =
            |call: &Call| matches!(call.command, Command::Cancel { .. } | Command::Close { .. });
        let at = self.held.iter().position(|call| wants || passes(call));
        let Some(call) = at.and_then(|at| self.held.remove(at)) else {
            return false;
        };
        self.agent.give(Given::Call(call));
        true
    }

    /// The Server hears one more output of the agent.
    fn hear(&mut self) -> bool {
        let Some(said) = self.agent.said.get(self.heard) else {
            return false;
        };
        self.heard += 1;
        let at = said.at().unwrap_or(self.agent.now);
        match said.lend() {
            Output::Event(event) => self.server.handle_event(event),
            Output::Delta(delta) => self.server.handle_delta(&delta),
            Output::Effect { .. } => return true,
        }
        let input = ServerInput::Said(Box::new(said.clone()));
        self.recorded.push((input, at));
        true
    }

    fn agent_writes(&mut self, bytes: &[u8]) {
        self.said.push(format!("< {}", shown(bytes)));
        for line in bytes.split(|&byte| byte == b'\n') {
            if P::consent(line, true).is_some() {
                self.asked = Some(line.to_vec());
            }
        }
        let mut chunk = bytes;
        while let Some(split) = self.hears_agent.next(&mut chunk) {
            self.observer.handle_line(Dir::Agent, split);
        }
        self.look();
    }

    /// Nothing of weight is found about the agent; the host may do as it likes.
    fn look(&mut self) {
        while let Some(finding) = self.observer.poll_finding() {
            let weighty = finding.severity >= Severity::Warning && finding.dir == Dir::Agent;
            if weighty && !P::excuses(&finding, &self.mess) {
                self.found.push((finding.rule.id, finding.to_string()));
            }
        }
    }

    /// The host's input ends, and everything else comes to its end.
    fn leave(&mut self) {
        self.end();
        self.pump();
        for _ in 0..MOST_ROUNDS {
            if self.exit.is_some() || self.is_wrong() {
                return;
            }
            if let Some(id) = self.agent.work.keys().next().copied() {
                settle(&mut self.agent, id);
            } else if let Some(job) = self.agent.jobs.keys().next().copied() {
                let update = JobUpdate::Ended(JobState::Exited(0));
                self.agent.give(Given::Else(Input::Job { job, update }));
            } else if !self.jump(u64::MAX) {
                break;
            }
            self.pump();
        }
        let open = (self.agent.closed(), self.agent.work.len(), self.held.len());
        self.found.push((
            "dead-lock",
            format!("its input has ended, and it never leaves: {open:?}"),
        ));
    }

    fn judge(self, setup: &Setup, size: usize) -> Result<(), Broken> {
        let told = || self.said.join("\n");
        let found = self.found.first();
        if let Some((law, why)) = found {
            return must(false, law, || format!("{why}\n{}", told()));
        }
        if let Some(fault) = self.agent.faults.first() {
            return must(false, "driver", || format!("{fault}\n{}", told()));
        }
        if let Some(one) = self.agent.violations().first() {
            return must(false, "neutral", || format!("{one}\n{}", told()));
        }
        let mut config = setup.session();
        P::session(&mut config, setup);
        let judged = Judged::Session(config.policy.gates);
        if let Some(one) = Reference::judge(judged, self.agent.story()).first() {
            return must(false, one.id, || format!("{one}\n{}", told()));
        }
        let down = line_rules::<P>(Dir::Host);
        let make = || ServerMachine::<P>::new(P::server(setup), down);
        laws::hold_cut(make, &self.recorded, size, 3)?;
        law_l8(make, &self.recorded, laws::asked_again)
    }
}

#[cfg(test)]
mod tests {
    use turnwire::protocol::openmax::Openmax;

    use super::*;

    const TURN: &[u8] = b"{\"cmd\":\"user\",\"text\":\"a\"}\n\x02\x02\x05\x00\x02\x16\x02\x00";

    fn played(tampered: &[u8]) -> (Vec<String>, Result<(), Broken>) {
        let setup = Setup::default();
        let mut rig = Rig::<Openmax>::new(&setup);
        for part in story(TURN) {
            rig.tell(part);
        }
        if !tampered.is_empty() {
            rig.agent_writes(tampered);
        }
        rig.leave();
        let said = rig.said.clone();
        (said, rig.judge(&setup, 3))
    }

    #[test]
    fn a_turn_with_a_call_that_is_approved_is_played() {
        let (said, result) = played(b"");
        assert_eq!(result, Ok(()));
        let said = said.concat();
        for word in [
            "approval_request",
            "\"approved\"",
            "\"ok\":true",
            "\"done\"",
        ] {
            assert!(said.contains(word), "{word} in {said}");
        }
    }

    #[test]
    fn a_line_that_breaks_the_contract_is_found() {
        let stray = br#"{"session_id":"s","type":"done","stop_reason":"stop"}"#;
        let (_, result) = played(&[stray.as_slice(), b"\n"].concat());
        assert!(result.is_err_and(|broken| broken.law.starts_with("OM-")));
    }
}
