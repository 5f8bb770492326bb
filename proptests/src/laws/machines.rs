//! Our machines, as the laws take them.

use std::collections::VecDeque;

use turnwire::{
    frame::{LineRules, LineSplitter, Place, SplitKind, SseDecoder, SseLimits},
    model::{Api, ReplyDecoder, ReplyHead, ReplyLimits},
    protocol::{
        Client, ClientOutput, Protocol, Server, ServerOutput,
        observer::{Dir, Finding, Observed, Observer, Sides, Watch},
    },
    vocab::*,
};

use super::{Back, Cut, Machine};
use crate::world::{Chunk, Given, Said};

/// A line, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineSaid {
    /// As [`SplitKind::Line`].
    Line(Place, Vec<u8>),
    /// As [`SplitKind::TooLong`].
    TooLong(Place, u64),
    /// As [`SplitKind::Tail`].
    Tail(Place, Vec<u8>),
}

/// A [`LineSplitter`]; an empty input is the end of the stream.
#[derive(Debug)]
pub struct LineMachine {
    splitter: LineSplitter,
    said: VecDeque<LineSaid>,
}

impl LineMachine {
    /// One with these rules.
    pub fn new(rules: LineRules) -> Self {
        LineMachine {
            splitter: LineSplitter::new(rules),
            said: VecDeque::new(),
        }
    }
}

impl Machine for LineMachine {
    type Input = Vec<u8>;
    type Output = LineSaid;

    fn handle(&mut self, input: &Vec<u8>, _: Now) -> Result<(), Misuse> {
        let own = |split: turnwire::frame::Split<'_>| match split.what {
            SplitKind::Line(line) => LineSaid::Line(split.place, line.to_vec()),
            SplitKind::TooLong { bytes, .. } => LineSaid::TooLong(split.place, bytes),
            SplitKind::Tail(line) => LineSaid::Tail(split.place, line.to_vec()),
        };
        let mut chunk = input.as_slice();
        if chunk.is_empty() {
            self.said.extend(self.splitter.finish().map(own));
        }
        while let Some(split) = self.splitter.next(&mut chunk) {
            self.said.push_back(own(split));
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<LineSaid> {
        self.said.pop_front()
    }
}

/// An [`SseDecoder`]; an empty input is the end of the stream. Outputs are events and faults, as text.
#[derive(Debug)]
pub struct SseMachine {
    decoder: SseDecoder,
    said: VecDeque<String>,
}

impl SseMachine {
    /// One with these limits.
    pub fn new(limits: SseLimits) -> Self {
        SseMachine {
            decoder: SseDecoder::new(limits),
            said: VecDeque::new(),
        }
    }
}

impl Machine for SseMachine {
    type Input = Vec<u8>;
    type Output = String;

    fn handle(&mut self, input: &Vec<u8>, _: Now) -> Result<(), Misuse> {
        let mut chunk = input.as_slice();
        if chunk.is_empty() {
            let last = self.decoder.finish();
            self.said.extend(last.map(|event| format!("{event:?}")));
        }
        while let Some(event) = self.decoder.next(&mut chunk) {
            self.said.push_back(format!("{event:?}"));
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<String> {
        self.said.pop_front()
    }
}

/// What a [`ReplyMachine`] is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyInput {
    /// The head of the response: its status.
    Head(u16),
    /// Bytes of the body.
    Bytes(Vec<u8>),
    /// The end of the body.
    End,
    /// The connection broke.
    Broken,
}

impl Cut for ReplyInput {
    fn cut(&self, size: usize) -> Option<Vec<Self>> {
        match self {
            ReplyInput::Bytes(bytes) => {
                Some(bytes.cut(size)?.into_iter().map(Self::Bytes).collect())
            }
            ReplyInput::Head(_) | ReplyInput::End | ReplyInput::Broken => None,
        }
    }
}

/// A [`ReplyDecoder`].
#[derive(Debug)]
pub struct ReplyMachine {
    decoder: ReplyDecoder,
    content_type: Option<&'static str>,
    said: VecDeque<Chunk>,
}

impl ReplyMachine {
    /// One for this API; `streamed`: the head says that the body is a stream of events.
    pub fn new(api: Api, limits: ReplyLimits, streamed: bool) -> Self {
        let content_type = if streamed {
            "text/event-stream"
        } else {
            "application/json"
        };
        ReplyMachine {
            decoder: ReplyDecoder::new(api, limits),
            content_type: Some(content_type),
            said: VecDeque::new(),
        }
    }

    /// Whether the terminal chunk was given.
    pub fn is_settled(&self) -> bool {
        self.decoder.is_settled()
    }
}

impl Machine for ReplyMachine {
    type Input = ReplyInput;
    type Output = Chunk;

    fn handle(&mut self, input: &ReplyInput, now: Now) -> Result<(), Misuse> {
        let said = &mut self.said;
        let mut sink = |chunk: ModelChunk<'_>| said.push_back(Chunk::from(&chunk));
        match input {
            ReplyInput::Head(status) => self.decoder.head(
                &ReplyHead {
                    status: *status,
                    reason: "",
                    content_type: self.content_type,
                    retry_after: None,
                },
                now,
            ),
            ReplyInput::Bytes(bytes) => self.decoder.bytes(bytes, now, &mut sink),
            ReplyInput::End => self.decoder.end(now, &mut sink),
            ReplyInput::Broken => self.decoder.broken("connection reset", now, &mut sink),
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<Chunk> {
        self.said.pop_front()
    }
}

/// Anything that implements [`Agent`].
#[derive(Debug)]
pub struct AgentMachine<A>(pub A);

impl<A: Agent> Machine for AgentMachine<A> {
    type Input = Given;
    type Output = Said;
    const WAITS: bool = true;
    const BACK: Back = Back::Misuse;

    fn handle(&mut self, input: &Given, now: Now) -> Result<(), Misuse> {
        self.0.handle(input.input(), now)
    }

    fn poll(&mut self) -> Option<Said> {
        self.0.poll_output().as_ref().map(Said::from)
    }

    fn due(&self) -> Option<Due> {
        self.0.poll_timeout()
    }

    fn wake(&mut self, now: Now) -> Result<(), Misuse> {
        self.0.handle(Input::Woken, now)
    }
}

/// What a [`ServerMachine`] is told.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerInput<P: Protocol> {
    /// Bytes of the host.
    Bytes(Vec<u8>),
    /// The end of the host's input.
    End,
    /// A signal.
    Signal(Signal),
    /// An event, or a delta, of the agent.
    Said(Box<Said>),
    /// Information that only this protocol has a line for.
    Extra(P::Extra),
    /// The answer to an ask, by its id.
    Settle(u64, P::Outcome),
    /// A deadline came.
    Woken,
}

impl<P: Protocol> Cut for ServerInput<P> {
    fn cut(&self, size: usize) -> Option<Vec<Self>> {
        match self {
            ServerInput::Bytes(bytes) => {
                Some(bytes.cut(size)?.into_iter().map(Self::Bytes).collect())
            }
            ServerInput::End
            | ServerInput::Signal(_)
            | ServerInput::Said(_)
            | ServerInput::Extra(_)
            | ServerInput::Settle(..)
            | ServerInput::Woken => None,
        }
    }
}

/// What a Server gives: bytes are joined, so that they can be compared.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerSaid<P: Protocol> {
    /// Bytes for the host.
    Lines(Vec<u8>),
    /// Anything else.
    Output(ServerOutput<P>),
}

/// A [`Server`] with the splitter of its host's bytes.
pub struct ServerMachine<P: Protocol> {
    server: Server<P>,
    splitter: LineSplitter,
    /// An output whose lines were given before it, and the deadline that announced both.
    next: Option<(ServerOutput<P>, Option<Due>)>,
}

impl<P: Protocol> ServerMachine<P> {
    /// One that splits lines by these rules.
    pub fn new(config: P::ServerConfig, rules: LineRules) -> Self {
        ServerMachine {
            server: Server::new(config),
            splitter: LineSplitter::new(rules),
            next: None,
        }
    }
}

impl<P: Protocol> Machine for ServerMachine<P> {
    type Input = ServerInput<P>;
    type Output = ServerSaid<P>;
    const WAITS: bool = true;
    const BACK: Back = Back::StandsStill;

    fn looks_at_time(input: &ServerInput<P>) -> bool {
        !matches!(input, ServerInput::Bytes(bytes) if !bytes.contains(&b'\n'))
    }

    fn handle(&mut self, input: &ServerInput<P>, now: Now) -> Result<(), Misuse> {
        match input {
            ServerInput::Bytes(bytes) => {
                let mut chunk = bytes.as_slice();
                while let Some(split) = self.splitter.next(&mut chunk) {
                    self.server.handle_line(split, now);
                }
            }
            ServerInput::End => {
                if let Some(split) = self.splitter.finish() {
                    self.server.handle_line(split, now);
                }
                self.server.handle_end(now);
            }
            ServerInput::Signal(signal) => self.server.handle_signal(*signal, now),
            ServerInput::Said(said) => match said.lend() {
                Output::Event(event) => self.server.handle_event(&Event {
                    at: now,
                    ..event.clone()
                }),
                Output::Delta(delta) => self.server.handle_delta(&DeltaRef { at: now, ..delta }),
                Output::Effect { .. } => {}
            },
            ServerInput::Extra(extra) => self.server.handle_extra(extra.clone(), now),
            ServerInput::Settle(id, outcome) => {
                return self.server.settle(*id, outcome.clone(), now);
            }
            ServerInput::Woken => self.server.handle_woken(now),
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<ServerSaid<P>> {
        if let Some((output, _)) = self.next.take() {
            return Some(ServerSaid::Output(output));
        }
        let due = self.server.poll_timeout();
        let mut lines = Vec::new();
        let output = self.server.poll_output(&mut lines);
        if lines.is_empty() {
            return output.map(ServerSaid::Output);
        }
        self.next = output.map(|output| (output, due));
        Some(ServerSaid::Lines(lines))
    }

    fn due(&self) -> Option<Due> {
        match &self.next {
            Some((_, due)) => *due,
            None => self.server.poll_timeout(),
        }
    }

    fn wake(&mut self, now: Now) -> Result<(), Misuse> {
        self.server.handle_woken(now);
        Ok(())
    }

    fn join(last: &mut ServerSaid<P>, next: ServerSaid<P>) -> Option<ServerSaid<P>> {
        match (last, next) {
            (ServerSaid::Lines(all), ServerSaid::Lines(more)) => {
                all.extend(more);
                None
            }
            (_, next) => Some(next),
        }
    }
}

/// What a [`ClientMachine`] is told.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientInput<P: Protocol> {
    /// Bytes of the agent.
    Bytes(Vec<u8>),
    /// The end of the agent's output.
    End,
    /// A command of the host.
    Call(Call),
    /// The answer to an ask, by its id.
    Settle(u64, P::Outcome),
    /// A deadline came.
    Woken,
}

impl<P: Protocol> Cut for ClientInput<P> {
    fn cut(&self, size: usize) -> Option<Vec<Self>> {
        match self {
            ClientInput::Bytes(bytes) => {
                Some(bytes.cut(size)?.into_iter().map(Self::Bytes).collect())
            }
            ClientInput::End
            | ClientInput::Call(_)
            | ClientInput::Settle(..)
            | ClientInput::Woken => None,
        }
    }
}

/// What a Client gives.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientSaid<P: Protocol> {
    /// Bytes for the agent.
    Lines(Vec<u8>),
    /// An event or a delta.
    Said(Said),
    /// As [`ClientOutput::Extra`].
    Extra(P::Extra),
    /// As [`ClientOutput::Ask`].
    Ask(u64, P::Ask),
    /// As [`ClientOutput::Finding`].
    Finding(turnwire::protocol::Finding),
    /// As [`ClientOutput::CloseInput`].
    CloseInput,
    /// As [`ClientOutput::Signal`].
    Signal(Signal),
    /// As [`ClientOutput::Closed`].
    Closed,
}

impl<P: Protocol> From<&ClientOutput<'_, P>> for ClientSaid<P> {
    fn from(output: &ClientOutput<'_, P>) -> Self {
        match output {
            ClientOutput::Event(event) => ClientSaid::Said(Said::Event((*event).clone())),
            ClientOutput::Delta(delta) => ClientSaid::Said(Said::from(&Output::Delta(*delta))),
            ClientOutput::Extra(extra) => ClientSaid::Extra((*extra).clone()),
            ClientOutput::Ask { id, ask } => ClientSaid::Ask(*id, (*ask).clone()),
            ClientOutput::Finding(finding) => ClientSaid::Finding((*finding).clone()),
            ClientOutput::CloseInput => ClientSaid::CloseInput,
            ClientOutput::Signal(signal) => ClientSaid::Signal(*signal),
            ClientOutput::Closed => ClientSaid::Closed,
        }
    }
}

/// A [`Client`] with the splitter of its agent's bytes.
pub struct ClientMachine<P: Protocol> {
    client: Client<P>,
    splitter: LineSplitter,
    /// An output whose lines were given before it, and the deadline that announced both.
    next: Option<(ClientSaid<P>, Option<Due>)>,
}

impl<P: Protocol> ClientMachine<P> {
    /// One that splits lines by these rules.
    pub fn new(config: P::ClientConfig, rules: LineRules) -> Self {
        ClientMachine {
            client: Client::new(config),
            splitter: LineSplitter::new(rules),
            next: None,
        }
    }
}

impl<P: Protocol> Machine for ClientMachine<P> {
    type Input = ClientInput<P>;
    type Output = ClientSaid<P>;
    const WAITS: bool = true;
    const BACK: Back = Back::StandsStill;

    fn looks_at_time(input: &ClientInput<P>) -> bool {
        !matches!(input, ClientInput::Bytes(bytes) if !bytes.contains(&b'\n'))
    }

    fn handle(&mut self, input: &ClientInput<P>, now: Now) -> Result<(), Misuse> {
        match input {
            ClientInput::Bytes(bytes) => {
                let mut chunk = bytes.as_slice();
                while let Some(split) = self.splitter.next(&mut chunk) {
                    self.client.handle_line(split, now);
                }
            }
            ClientInput::End => {
                if let Some(split) = self.splitter.finish() {
                    self.client.handle_line(split, now);
                }
                self.client.handle_end(now);
            }
            ClientInput::Call(call) => self.client.handle_command(call.clone(), now),
            ClientInput::Settle(id, outcome) => {
                return self.client.settle(*id, outcome.clone(), now);
            }
            ClientInput::Woken => self.client.handle_woken(now),
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<ClientSaid<P>> {
        if let Some((output, _)) = self.next.take() {
            return Some(output);
        }
        let due = self.client.poll_timeout();
        let mut lines = Vec::new();
        let output = self.client.poll_output(&mut lines);
        let output = output.as_ref().map(ClientSaid::from);
        if lines.is_empty() {
            return output;
        }
        self.next = output.map(|output| (output, due));
        Some(ClientSaid::Lines(lines))
    }

    fn due(&self) -> Option<Due> {
        match &self.next {
            Some((_, due)) => *due,
            None => self.client.poll_timeout(),
        }
    }

    fn wake(&mut self, now: Now) -> Result<(), Misuse> {
        self.client.handle_woken(now);
        Ok(())
    }

    fn join(last: &mut ClientSaid<P>, next: ClientSaid<P>) -> Option<ClientSaid<P>> {
        match (last, next) {
            (ClientSaid::Lines(all), ClientSaid::Lines(more)) => {
                all.extend(more);
                None
            }
            (_, next) => Some(next),
        }
    }
}

/// What an [`ObserverMachine`] is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObserverInput {
    /// Bytes of a side.
    Bytes(Dir, Vec<u8>),
    /// The end of a side.
    End(Dir),
    /// The agent's exit code, and the end of all.
    Exit(i64),
}

impl Cut for ObserverInput {
    fn cut(&self, size: usize) -> Option<Vec<Self>> {
        match self {
            ObserverInput::Bytes(dir, bytes) => {
                let pieces = bytes.cut(size)?.into_iter();
                Some(pieces.map(|piece| Self::Bytes(*dir, piece)).collect())
            }
            ObserverInput::End(_) | ObserverInput::Exit(_) => None,
        }
    }
}

/// An [`Observer`] of both sides, with their splitters.
pub struct ObserverMachine<P: Observed> {
    observer: Observer<P>,
    host: LineSplitter,
    agent: LineSplitter,
}

impl<P: Observed> ObserverMachine<P> {
    /// One that splits lines by these rules.
    pub fn new(config: <P::Watch as Watch>::Config, host: LineRules, agent: LineRules) -> Self {
        ObserverMachine {
            observer: Observer::new(config, Sides::Both),
            host: LineSplitter::new(host),
            agent: LineSplitter::new(agent),
        }
    }
}

impl<P: Observed> Machine for ObserverMachine<P> {
    type Input = ObserverInput;
    type Output = Finding;

    fn handle(&mut self, input: &ObserverInput, _: Now) -> Result<(), Misuse> {
        let splitter = match input {
            ObserverInput::Bytes(Dir::Host, _) | ObserverInput::End(Dir::Host) => &mut self.host,
            ObserverInput::Bytes(Dir::Agent, _) | ObserverInput::End(Dir::Agent) => &mut self.agent,
            ObserverInput::Exit(code) => {
                self.observer.handle_exit(*code);
                self.observer.finish();
                return Ok(());
            }
        };
        match input {
            ObserverInput::Bytes(dir, bytes) => {
                let mut chunk = bytes.as_slice();
                while let Some(split) = splitter.next(&mut chunk) {
                    self.observer.handle_line(*dir, split);
                }
            }
            ObserverInput::End(dir) => {
                if let Some(split) = splitter.finish() {
                    self.observer.handle_line(*dir, split);
                }
                self.observer.handle_end(*dir);
            }
            ObserverInput::Exit(_) => {}
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<Finding> {
        self.observer.poll_finding()
    }
}
