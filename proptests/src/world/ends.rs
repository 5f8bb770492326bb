//! Both ends of a wire, and the wire: host, Client, pipe, observer, Server, agent, driver, on one virtual clock.

use std::collections::{BTreeSet, VecDeque};

use turnwire::{
    frame::{LineSplitter, Split, SplitKind},
    protocol::{
        Server, ServerOutput,
        observer::{Dir, Observer, Severity, Sides},
    },
    vocab::*,
};

use super::{
    By, Found, Given, HostEnd, Mess, Pipe, Said, Speaks, Tamper, World, host::Wish,
    speaks::line_rules,
};
use crate::{
    laws::{ClientInput, ObserverInput, ServerInput},
    scenario::{Setup, Wire},
    script::{Action, act, command},
};

/// Bytes that the agent wrote and nobody read, above which its driver leaves bulk where it is.
const SOFT: usize = 8 * 1024;
/// The same, above which it reads no lines of the host either.
const CONTROL: usize = 32 * 1024;
/// What may still be written above that: a bounded number of lines for each thing that is open (TW-10).
const SLACK: usize = 64 * 1024;
/// As many times the longest output may be written above it, if that is more: a reply is repeated in a few lines.
const REPEATS: usize = 8;

/// More moves at one point in time than any scenario makes: it would never end.
const MOST_MOVES: u32 = 200_000;

/// The world of a whole session over a wire.
pub struct Ends<P: Speaks, A: Agent> {
    /// The agent, with its driver and what watches it.
    pub agent: World<A>,
    /// The host.
    pub host: HostEnd<P>,
    /// The agent's Server.
    pub server: Server<P>,
    /// What the host writes.
    pub down: Pipe,
    /// What the agent writes.
    pub up: Pipe,
    /// The clock.
    pub now: Now,
    /// The agent's exit code, once its process is gone; -9: it was killed.
    pub exit: Option<i64>,
    /// What became of the world.
    pub mess: Mess,
    /// Whether the agent's driver heeds what its host hasn't read (TW-10). It does.
    pub heeds: bool,
    /// What was found wrong so far, beside what is only judged at the end.
    pub found: Vec<Found>,
    /// Lines as they went over the wire, and what else a reader wants to know.
    pub(super) said: Vec<String>,
    observer: Observer<P>,
    /// Cuts the host's bytes as they are written, for the observer.
    watch_down: LineSplitter,
    agent_reads: LineSplitter,
    host_reads: LineSplitter,
    /// Lines of the host that somebody else wrote, by number.
    foreign_down: BTreeSet<u64>,
    /// Lines of the agent that somebody else wrote.
    foreign_up: BTreeSet<u64>,
    /// Commands of the Server that the agent doesn't want yet.
    held: VecDeque<Call>,
    /// How much of what the agent said was taken to the Server.
    heard: usize,
    tamper: Box<dyn Tamper>,
    /// The most bytes that one output of the Server was.
    longest: usize,
    moves: u32,
    pub(super) recorded: Recorded<P>,
    /// Asks of Server and Client that were settled.
    settled: u8,
}

/// What each machine was told, and when: to tell it again in another way.
#[derive(Clone, Debug)]
pub struct Recorded<P: Speaks> {
    /// The agent.
    pub agent: Vec<(Given, Now)>,
    /// Its Server.
    pub server: Vec<(ServerInput<P>, Now)>,
    /// The host's Client.
    pub client: Vec<(ClientInput<P>, Now)>,
    /// The observer between them.
    pub observer: Vec<(ObserverInput, Now)>,
    /// Every line that a Server or a Client wrote.
    pub lines: Vec<(Dir, Vec<u8>)>,
}

impl<P: Speaks> Default for Recorded<P> {
    fn default() -> Self {
        Recorded {
            agent: Vec::new(),
            server: Vec::new(),
            client: Vec::new(),
            observer: Vec::new(),
            lines: Vec::new(),
        }
    }
}

impl<P: Speaks, A: Agent> Ends<P, A> {
    /// A host that just started this agent.
    pub fn new(setup: &Setup, agent: World<A>, tamper: Box<dyn Tamper>) -> Self {
        let now = agent.now;
        let mut ends = Ends {
            host: HostEnd::new(P::client(setup)),
            server: Server::new(P::server(setup)),
            down: Pipe::default(),
            up: Pipe::default(),
            now,
            exit: None,
            mess: Mess::default(),
            heeds: true,
            found: Vec::new(),
            said: Vec::new(),
            observer: Observer::new(P::observer(setup), Sides::Both),
            watch_down: LineSplitter::new(line_rules::<P>(Dir::Host)),
            agent_reads: LineSplitter::new(line_rules::<P>(Dir::Host)),
            host_reads: LineSplitter::new(line_rules::<P>(Dir::Agent)),
            foreign_down: BTreeSet::new(),
            foreign_up: BTreeSet::new(),
            held: VecDeque::new(),
            heard: 0,
            tamper,
            longest: 0,
            moves: 0,
            recorded: Recorded::default(),
            settled: 0,
            agent,
        };
        ends.pump();
        ends
    }

    /// Whether the agent is gone and its host knows it.
    pub fn is_over(&self) -> bool {
        self.exit.is_some() && self.host.closed
    }

    /// A command of the host.
    pub fn command(&mut self, command: Command) {
        if let Some(call) = self.host.command(command, self.now) {
            let input = ClientInput::Call(call);
            self.recorded.client.push((input, self.now));
        }
        self.pump();
    }

    /// Lets one thing happen at one of the ends, or in time. What doesn't fit is left out.
    pub fn act(&mut self, action: &Action) {
        match action {
            Action::Pass(us) => self.pass(*us),
            Action::Jump => drop(self.jump()),
            Action::Skip(us) => self.set_now(self.now.mono_us.saturating_add(*us)),
            Action::Tool(_, news) if !P::brings(*news) => {}
            Action::Own(_) if !P::OWNS => {}
            Action::Prompt(_)
            | Action::Repeat(_)
            | Action::Withdraw(_)
            | Action::Promote(_)
            | Action::Cancel(_)
            | Action::Reply(..)
            | Action::LateReply(_)
            | Action::Set(_)
            | Action::Compact
            | Action::Rewind(..)
            | Action::Other(_)
            | Action::Own(_)
            | Action::Close(_) => {
                if let Some(command) = command(&mut self.host, action) {
                    self.command(command);
                }
            }
            Action::Model(..)
            | Action::Answer(..)
            | Action::Tool(..)
            | Action::Hook(..)
            | Action::Store(..)
            | Action::Late(_)
            | Action::Settle(_)
            | Action::Twice(_) => self.driver(|agent| act(agent, action)),
            Action::Fault => {
                self.mess.crash = true;
                self.driver(|agent| act(agent, action));
            }
        }
    }

    /// Lets something happen that the agent's driver sees.
    pub fn driver(&mut self, what: impl FnOnce(&mut World<A>)) {
        if self.exit.is_none() {
            self.agent.reads = !self.heeds || self.up.unread() <= SOFT;
            what(&mut self.agent);
        }
        self.pump();
    }

    /// Lets something happen between the ends.
    pub fn wire(&mut self, wire: Wire) {
        match wire {
            Wire::Cut(dir, bytes) => self.pipe(dir).cut = usize::from(bytes),
            Wire::Delay(dir, us) => self.pipe(dir).delay_us = us,
            Wire::Stop(dir) => self.pipe(dir).stopped = true,
            Wire::Go(dir) => self.pipe(dir).stopped = false,
            Wire::Bad(Dir::Host, pick) => {
                if !self.down.is_closed() {
                    self.mess.bad_host = true;
                    self.host_writes(P::bad_host_line(pick), true);
                }
            }
            Wire::Bad(Dir::Agent, pick) => {
                let line = P::bad_agent_line(pick);
                if self.up.write(&line, self.now.mono_us, true) {
                    self.mess.bad_agent = true;
                    self.note("!", &line);
                }
            }
            Wire::End => {
                if !self.down.is_closed() {
                    self.mess.cut_off = true;
                    self.host_closes();
                }
            }
            Wire::Signal(signal) => self.signal(signal),
            Wire::Kill => self.kill(),
        }
        self.pump();
    }

    /// Time passes; whoever asked for it is woken in time.
    pub fn pass(&mut self, us: u64) {
        let until = self.now.mono_us.saturating_add(us);
        // Far more rounds than anybody has timers for.
        for _ in 0..10_000 {
            match self.due_us() {
                Some(at) if at <= until => drop(self.jump()),
                _ => break,
            }
        }
        self.set_now(until);
        self.pump();
    }

    /// Jumps to the next deadline of anybody, and wakes them. `false`: there is none.
    pub fn jump(&mut self) -> bool {
        let Some(at) = self.due_us() else {
            return false;
        };
        self.set_now(at);
        let mono_us = self.now.mono_us;
        let is_due = |due: Option<Due>| due.is_some_and(|due| due.at_us <= mono_us);
        let before = self.moves;
        if !self.host.closed && is_due(self.host.client.poll_timeout()) {
            self.recorded.client.push((ClientInput::Woken, self.now));
            self.host.client.handle_woken(self.now);
        }
        if self.exit.is_none() {
            if is_due(self.server.poll_timeout()) {
                self.recorded.server.push((ServerInput::Woken, self.now));
                self.server.handle_woken(self.now);
            }
            if is_due(self.agent.agent.poll_timeout()) {
                self.agent.now = self.now;
                self.agent.wake();
            }
        }
        self.moves = 0;
        self.pump();
        let moved = std::mem::replace(&mut self.moves, before) > 0;
        let timers = [
            ("Client", self.host.client.poll_timeout()),
            ("Server", self.server.poll_timeout()),
        ];
        for (who, due) in timers {
            if !moved && is_due(due) {
                self.find(
                    By::Drive,
                    format!("L4: the {who} was woken and is due at {due:?}"),
                );
            }
        }
        true
    }

    fn set_now(&mut self, mono_us: u64) {
        let mono_us = mono_us.max(self.now.mono_us);
        let ms = (mono_us / 1_000).saturating_sub(self.now.mono_us / 1_000);
        self.now.unix_ms = self.now.unix_ms.saturating_add(ms);
        self.now.mono_us = mono_us;
        self.agent.now = self.now;
    }

    /// The next deadline of anybody.
    fn due_us(&self) -> Option<u64> {
        let client = self
            .host
            .client
            .poll_timeout()
            .filter(|_| !self.host.closed);
        let here = self.exit.is_none();
        let server = self.server.poll_timeout().filter(|_| here);
        let agent = self.agent.agent.poll_timeout().filter(|_| here);
        let timers = [client, server, agent].into_iter().flatten();
        let down = self.down.due_us().filter(|_| here && self.server_takes());
        let up = self.up.due_us().filter(|_| self.host.client.wants_lines());
        timers.map(|due| due.at_us).chain(down).chain(up).min()
    }

    /// Whether the driver reads lines of the host.
    fn server_takes(&self) -> bool {
        self.exit.is_none()
            && self.server.wants_lines()
            && self.held.is_empty()
            && (!self.heeds || self.up.unread() <= CONTROL)
    }

    fn pipe(&mut self, dir: Dir) -> &mut Pipe {
        match dir {
            Dir::Host => &mut self.down,
            Dir::Agent => &mut self.up,
        }
    }

    /// Moves everything that can move now.
    pub fn pump(&mut self) {
        self.moves = self.moves.max(1) - 1;
        let mut rounds = 0_u32;
        while self.host_moves() || self.agent_moves() || self.down_moves() || self.up_moves() {
            self.moves = self.moves.saturating_add(1);
            rounds += 1;
            if rounds > MOST_MOVES {
                self.find(
                    By::Drive,
                    "live-lock: it never comes to rest at one time".to_owned(),
                );
                return;
            }
        }
        let most = self.up.most_unread();
        if most > CONTROL + SLACK.max(REPEATS * self.longest)
            && self.found.iter().all(|found| found.id != "TW-10")
        {
            let text = format!("TW-10: {most} bytes were queued for a host that doesn't read");
            self.find(By::Drive, text);
        }
    }

    /// One output of the Client.
    fn host_moves(&mut self) -> bool {
        let mut lines = Vec::new();
        let wish = self.host.poll(self.now, &mut lines);
        let wrote = !lines.is_empty();
        if wrote {
            let lines = self.tamper.written(Dir::Host, lines);
            self.host_writes(lines, false);
        }
        let Some(wish) = wish else {
            self.host.checker.quiet();
            return wrote;
        };
        match wish {
            Wish::Nothing => {}
            Wish::Finding(finding) => self.client_found(&finding),
            Wish::CloseInput => self.host_closes(),
            Wish::Signal(signal) => self.signal(signal),
            Wish::Ask(id, ask) => {
                let outcome = self.outcome(&ask);
                let input = ClientInput::Settle(id, outcome.clone());
                self.recorded.client.push((input, self.now));
                if let Err(misuse) = self.host.client.settle(id, outcome, self.now) {
                    self.find(By::Client, format!("L8: an ask of the Client: {misuse}"));
                }
            }
        }
        true
    }

    /// Somebody writes to the agent; the observer sees it at once.
    fn host_writes(&mut self, bytes: Vec<u8>, foreign: bool) {
        if !self.down.write(&bytes, self.now.mono_us, foreign) {
            return;
        }
        self.note(if foreign { "> !" } else { ">" }, &bytes);
        self.keep_lines(Dir::Host, &bytes, foreign);
        self.recorded
            .observer
            .push((ObserverInput::Bytes(Dir::Host, bytes.clone()), self.now));
        let mut chunk = bytes.as_slice();
        while let Some(split) = self.watch_down.next(&mut chunk) {
            if foreign {
                self.foreign_down.insert(split.place.line);
            }
            self.observer.handle_line(Dir::Host, split);
        }
        self.judge();
    }

    fn host_closes(&mut self) {
        if self.down.is_closed() {
            return;
        }
        self.down.close(self.now.mono_us);
        self.note("> end", b"");
        if let Some(split) = self.watch_down.finish() {
            self.observer.handle_line(Dir::Host, split);
        }
        self.observer.handle_end(Dir::Host);
        self.recorded
            .observer
            .push((ObserverInput::End(Dir::Host), self.now));
        self.judge();
    }

    /// One output of the agent or its Server.
    fn agent_moves(&mut self) -> bool {
        if self.exit.is_some() {
            return false;
        }
        let mut lines = Vec::new();
        let due = self.server.poll_timeout();
        let output = self.server.poll_output(&mut lines);
        let some = output.is_some() || !lines.is_empty();
        if some && due.is_none_or(|due| due.at_us > self.now.mono_us) {
            self.find(
                By::Drive,
                format!("L3: the Server had output, and its deadline was {due:?}"),
            );
        }
        if !lines.is_empty() {
            let lines = self.tamper.written(Dir::Agent, lines);
            self.keep_lines(Dir::Agent, &lines, false);
            self.longest = self.longest.max(lines.len());
            self.up.write(&lines, self.now.mono_us, false);
        }
        if let Some(output) = output {
            self.server_wants(output);
            return true;
        }
        if self.give_held() {
            return true;
        }
        let Some(said) = self.agent.said.get(self.heard) else {
            return some;
        };
        self.heard += 1;
        if !matches!(said, Said::Effect(..)) {
            self.recorded.server.push((
                ServerInput::Said(Box::new(said.clone())),
                said.at().unwrap_or(self.now),
            ));
        }
        match said {
            Said::Event(event) => self.server.handle_event(event),
            Said::Delta {
                at,
                run,
                message,
                block,
                kind,
                text,
            } => self.server.handle_delta(&DeltaRef {
                at: *at,
                run: *run,
                message: *message,
                block: *block,
                kind: *kind,
                text,
            }),
            Said::Effect(..) => {}
        }
        true
    }

    fn server_wants(&mut self, output: ServerOutput<P>) {
        match output {
            ServerOutput::Call(call) => self.held.push_back(call),
            ServerOutput::Ask { id, ask } => {
                let outcome = self.outcome(&ask);
                let input = ServerInput::Settle(id, outcome.clone());
                self.recorded.server.push((input, self.now));
                if let Err(misuse) = self.server.settle(id, outcome, self.now) {
                    self.find(By::Drive, format!("L8: an ask of the Server: {misuse}"));
                }
            }
            ServerOutput::Dismiss { .. } | ServerOutput::Diagnostic(_) => {}
            ServerOutput::Exit { code } => {
                self.exit = Some(i64::from(code));
                self.note(&format!("< exit {code}"), b"");
                self.up.close(self.now.mono_us);
                self.down.break_off();
            }
        }
    }

    /// What the embedder makes of an ask: each time something else.
    fn outcome(&mut self, ask: &P::Ask) -> P::Outcome {
        self.settled = self.settled.wrapping_add(1);
        P::answer(ask, self.settled)
    }

    /// A command of the Server reaches the agent: in order, but for what passes a full queue.
    fn give_held(&mut self) -> bool {
        let wants = self.agent.agent.wants_input();
        let passes =
            |call: &Call| matches!(call.command, Command::Cancel { .. } | Command::Close { .. });
        let at = self.held.iter().position(|call| wants || passes(call));
        let Some(call) = at.and_then(|at| self.held.remove(at)) else {
            return false;
        };
        self.agent.now = self.now;
        self.agent.give(Given::Call(call));
        true
    }

    /// One piece reaches the agent: its lines one after the other, each with all that follows from it.
    fn down_moves(&mut self) -> bool {
        if !self.server_takes() {
            return false;
        }
        let now = self.now;
        if let Some(piece) = self.down.read(now.mono_us) {
            let bytes = self.tamper.read(Dir::Host, piece.bytes);
            let mut chunk = bytes.as_slice();
            // The splitter is lent out while the rest of the world moves.
            let fresh = LineSplitter::new(line_rules::<P>(Dir::Host));
            let mut splitter = std::mem::replace(&mut self.agent_reads, fresh);
            let mut before = chunk;
            while let Some(split) = splitter.next(&mut chunk) {
                // One line is one input, however many came at once.
                let read = before.len() - chunk.len();
                let read = before.get(..read).unwrap_or_default().to_vec();
                before = chunk;
                self.recorded.server.push((ServerInput::Bytes(read), now));
                self.server.handle_line(split, now);
                while self.agent_moves() {}
            }
            if !before.is_empty() {
                let input = ServerInput::Bytes(before.to_vec());
                self.recorded.server.push((input, now));
            }
            self.agent_reads = splitter;
            return true;
        }
        if self.down.read_end(now.mono_us) {
            if let Some(split) = self.agent_reads.finish() {
                self.server.handle_line(split, now);
            }
            self.recorded.server.push((ServerInput::End, now));
            self.server.handle_end(now);
            return true;
        }
        false
    }

    /// One piece reaches the host.
    fn up_moves(&mut self) -> bool {
        let now = self.now;
        if self.host.client.wants_lines()
            && let Some(piece) = self.up.read(now.mono_us)
        {
            let bytes = self.tamper.read(Dir::Agent, piece.bytes);
            let mut chunk = bytes.as_slice();
            let fresh = LineSplitter::new(line_rules::<P>(Dir::Agent));
            let mut splitter = std::mem::replace(&mut self.host_reads, fresh);
            let mut before = chunk;
            while let Some(split) = splitter.next(&mut chunk) {
                let read = before.len() - chunk.len();
                let read = before.get(..read).unwrap_or_default().to_vec();
                before = chunk;
                self.record_up(read, piece.foreign);
                self.host_hears(split, piece.foreign);
            }
            if !before.is_empty() {
                self.record_up(before.to_vec(), piece.foreign);
            }
            self.host_reads = splitter;
            return true;
        }
        if self.up.read_end(now.mono_us) {
            let fresh = LineSplitter::new(line_rules::<P>(Dir::Agent));
            let mut splitter = std::mem::replace(&mut self.host_reads, fresh);
            if let Some(split) = splitter.finish() {
                self.host_hears(split, false);
            }
            let code = self.exit.unwrap_or_default();
            self.observer.handle_end(Dir::Agent);
            self.observer.handle_exit(code);
            self.observer.finish();
            self.recorded.observer.extend([
                (ObserverInput::End(Dir::Agent), now),
                (ObserverInput::Exit(code), now),
            ]);
            self.recorded.client.push((ClientInput::End, now));
            self.judge();
            self.host.client.handle_end(now);
            return true;
        }
        false
    }

    /// Bytes of the agent that its host has read.
    fn record_up(&mut self, bytes: Vec<u8>, foreign: bool) {
        if !foreign {
            let input = ObserverInput::Bytes(Dir::Agent, bytes.clone());
            self.recorded.observer.push((input, self.now));
        }
        let input = ClientInput::Bytes(bytes);
        self.recorded.client.push((input, self.now));
    }

    fn keep_lines(&mut self, dir: Dir, bytes: &[u8], foreign: bool) {
        let lines = bytes.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !foreign && !line.is_empty());
        let lines = lines.map(|line| (dir, line.to_vec()));
        self.recorded.lines.extend(lines);
    }

    fn host_hears(&mut self, split: Split<'_>, foreign: bool) {
        if let SplitKind::Line(line) | SplitKind::Tail(line) = split.what {
            self.note(if foreign { "< !" } else { "<" }, line);
        }
        if foreign {
            self.foreign_up.insert(split.place.line);
        } else {
            self.observer.handle_line(Dir::Agent, split);
            self.judge();
        }
        self.host.client.handle_line(split, self.now);
        while self.host_moves() {}
    }

    fn signal(&mut self, signal: Signal) {
        self.note(&format!("> signal {signal:?}"), b"");
        if self.exit.is_none() {
            self.mess.hurried |= self.mess.signal;
            self.mess.signal = true;
            let input = ServerInput::Signal(signal);
            self.recorded.server.push((input, self.now));
            self.server.handle_signal(signal, self.now);
        }
    }

    fn kill(&mut self) {
        if self.exit.is_none() {
            self.note("< killed", b"");
            self.mess.killed = true;
            self.exit = Some(-9);
            self.up.die(self.now.mono_us);
            self.down.break_off();
        }
    }

    /// What the observer says: nothing of weight about an agent, nor about a host's own lines.
    fn judge(&mut self) {
        while let Some(finding) = self.observer.poll_finding() {
            let foreign = finding.dir == Dir::Host
                && finding
                    .place
                    .is_none_or(|place| self.foreign_down.contains(&place.line));
            let light = finding.severity < Severity::Warning;
            if light || foreign || P::excuses(&finding, &self.mess) {
                continue;
            }
            self.found.push(Found {
                by: By::Observer,
                id: finding.rule.id.to_owned(),
                text: finding.to_string(),
            });
        }
    }

    /// What the Client says of the agent: nothing but about lines that the agent didn't write.
    fn client_found(&mut self, finding: &turnwire::protocol::Finding) {
        let foreign = finding
            .place
            .is_some_and(|place| self.foreign_up.contains(&place.line));
        // An answer to a line that the Client didn't write, or no answer at all, isn't the agent's fault.
        let excused = foreign
            || self.mess.bad_host
            || self.mess.parts_the_ends()
            || P::is_loss(&finding.text);
        self.note(&format!("found by the client: {}", finding.text), b"");
        if !excused {
            self.find(By::Client, format!("client: {}", finding.text));
        }
    }

    pub(super) fn find(&mut self, by: By, text: String) {
        self.found.push(Found::new(by, text));
    }

    /// Lines of the wire for a report, which are cut where they are long.
    fn note(&mut self, sign: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = match text.trim_end_matches('\n') {
            "" => vec![""],
            text => text.split('\n').collect(),
        };
        for line in lines {
            let short: String = line.chars().take(300).collect();
            let at = self.now.mono_us;
            self.said
                .push(format!("@{at} {sign} {short}").trim_end().to_owned());
        }
    }
}
