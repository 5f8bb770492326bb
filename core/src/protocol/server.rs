//! The Server that all protocols share: bytes, one queue, ids and time.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::fmt;

use super::lines::Lines;
use super::{Credentials, OnCredential, Protocol, ServerFace, ServerOutput};
use crate::frame::Split;
use crate::vocab::{
    Call, Command, CommandId, DeltaRef, Due, Event, Misuse, Now, PromptId, Signal, Text, What,
};

/// Bytes of output that a Server holds before [`Server::wants_lines`] turns false: 1 MiB.
pub const HELD_LIMIT: usize = 1 << 20;

/// A protocol's face on an agent.
///
/// The embedder tells it what the host and the agent say, and takes lines and outputs with
/// [`poll_output`](Server::poll_output) until that gives `None`. No call fails because of what a host or an agent
/// said; such faults become lines (L9). Time that goes back is taken as standing still.
pub struct Server<P: Protocol> {
    face: P::Face,
    out: Outbox<P>,
    now: Now,
    held_limit: usize,
}

impl<P: Protocol> Server<P> {
    /// A Server before its first line.
    pub fn new(config: P::ServerConfig) -> Self {
        let mut out = Outbox::new();
        let face = P::Face::open(config, &mut out);
        Server {
            face,
            out,
            now: Now::default(),
            held_limit: HELD_LIMIT,
        }
    }

    /// Changes the number of held bytes above which no more lines are wanted ([`HELD_LIMIT`]).
    pub fn set_held_limit(&mut self, bytes: usize) {
        self.held_limit = bytes;
    }

    /// Lets no line out that holds one of these values: see [`Credentials`]. What becomes of such a line is the
    /// protocol's to say ([`Protocol::ON_CREDENTIAL`]). Lines that were written before stay as they are, so call it first.
    ///
    /// # Errors
    /// [`Misuse::TooLate`] for a protocol that writes no such line ([`OnCredential::Latch`]), once a line was written: what
    /// was let out by one set of values can't be judged by another.
    pub fn hide(&mut self, credentials: Credentials) -> Result<(), Misuse> {
        if P::ON_CREDENTIAL == OnCredential::Latch && self.out.has_begun() {
            return Err(Misuse::TooLate);
        }
        self.out.credentials = (!credentials.is_empty()).then_some(credentials);
        Ok(())
    }

    /// A line of the host, as its splitter gave it.
    pub fn handle_line(&mut self, line: Split<'_>, now: Now) {
        let now = self.tick(now);
        if !self.out.is_over() {
            self.face.line(&line, now, &mut self.out);
        }
    }

    /// The host's input has ended; the splitter's last line was handed in before.
    pub fn handle_end(&mut self, now: Now) {
        let now = self.tick(now);
        if !self.out.is_over() {
            self.face.end(now, &mut self.out);
        }
    }

    /// The process got a signal.
    pub fn handle_signal(&mut self, signal: Signal, now: Now) {
        let now = self.tick(now);
        if !self.out.is_over() {
            self.face.signal(signal, now, &mut self.out);
        }
    }

    /// An event of the agent, which carries its time.
    pub fn handle_event(&mut self, event: &Event) {
        let now = self.tick(event.at);
        if self.out.is_over() {
            return;
        }
        if let What::Delta {
            message,
            block,
            kind,
            text,
        } = &event.what
        {
            let delta = DeltaRef {
                at: now,
                run: event.run,
                message: *message,
                block: *block,
                kind: *kind,
                text,
            };
            self.face.delta(&delta, &mut self.out);
        } else {
            self.face.event(event, &mut self.out);
        }
    }

    /// A piece of a message; allocates nothing once warm.
    pub fn handle_delta(&mut self, delta: &DeltaRef<'_>) {
        let at = self.tick(delta.at);
        if !self.out.is_over() {
            self.face.delta(&DeltaRef { at, ..*delta }, &mut self.out);
        }
    }

    /// Information that only this protocol has a line for.
    pub fn handle_extra(&mut self, extra: P::Extra, now: Now) {
        let now = self.tick(now);
        if !self.out.is_over() {
            self.face.extra(extra, now, &mut self.out);
        }
    }

    /// The deadline of [`poll_timeout`](Server::poll_timeout) has come. Too early is harmless.
    pub fn handle_woken(&mut self, now: Now) {
        let now = self.tick(now);
        if !self.out.is_over() {
            self.face.woken(now, &mut self.out);
        }
    }

    /// Answers an ask. After a dismissal the answer is taken and changes nothing (L8).
    ///
    /// # Errors
    /// [`Misuse`] when the id was never issued, or has been settled before.
    pub fn settle(&mut self, id: u64, outcome: P::Outcome, now: Now) -> Result<(), Misuse> {
        let dismissed = self.out.close_ask(id)?;
        let now = self.tick(now);
        if !dismissed && !self.out.is_over() {
            self.face.settled(id, outcome, now, &mut self.out);
        }
        Ok(())
    }

    /// The next output, in order. Every call first hands over the bytes of the lines that come before it, `None`
    /// included: they are appended to `lines`, or swapped in when `lines` is empty.
    pub fn poll_output(&mut self, lines: &mut Vec<u8>) -> Option<ServerOutput<P>> {
        self.out.poll(lines)
    }

    /// When the Server wants [`handle_woken`](Server::handle_woken); at once while output is held (L3).
    pub fn poll_timeout(&self) -> Option<Due> {
        if self.out.is_idle() {
            self.face.due()
        } else {
            Some(Due {
                at_us: self.now.mono_us,
                why: "output",
            })
        }
    }

    /// Whether more lines of the host may be handed over: false while more than the limit of output bytes is held
    /// here unread, while too many lines wait for an earlier answer, and after the end. Bytes that the embedder took
    /// and hasn't written yet are its own to count.
    pub fn wants_lines(&self) -> bool {
        !self.out.is_over() && self.out.held() <= self.held_limit && self.face.wants_lines()
    }

    fn tick(&mut self, now: Now) -> Now {
        self.now.mono_us = self.now.mono_us.max(now.mono_us);
        self.now.unix_ms = now.unix_ms;
        self.now
    }
}

impl<P: Protocol> fmt::Debug for Server<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("protocol", &P::NAME)
            .field("now", &self.now)
            .field("held", &self.out.held())
            .finish_non_exhaustive()
    }
}

/// Where a [`ServerFace`] writes: lines and outputs in one order.
///
/// An output remembers how many bytes of lines stand before it, so that the order is the same however late the
/// embedder polls (L2).
pub struct Outbox<P: Protocol> {
    lines: Lines,
    credentials: Option<Credentials>,
    queue: VecDeque<(u64, ServerOutput<P>)>,
    /// Asks that are not settled yet, and whether they were dismissed.
    asks: BTreeMap<u64, bool>,
    last_ask: u64,
    last_command: u64,
    last_prompt: u64,
    over: bool,
    /// The longest line that may be written, its newline not counted.
    longest: Option<usize>,
    /// A line could not be written: nothing is taken any more.
    latched: bool,
}

/// What the person who runs the process is told when a line held a credential. It says nothing of either.
pub const LATCHED: &str =
    "a line would have held a credential: it was not written, and nothing more is";

/// The same, for a line that is longer than the protocol lets it be ([`Outbox::limit_lines`]).
pub const OVERLONG: &str =
    "a line would have been longer than it may be: it was not written, and nothing more is";

impl<P: Protocol> Outbox<P> {
    fn new() -> Self {
        Outbox {
            lines: Lines::default(),
            credentials: None,
            queue: VecDeque::new(),
            asks: BTreeMap::new(),
            last_ask: 0,
            last_command: 0,
            last_prompt: 0,
            over: false,
            longest: None,
            latched: false,
        }
    }

    /// Lets no line out that is longer than so many bytes, its newline not counted: nothing of it is written, and
    /// nothing after it ([`OVERLONG`]).
    pub fn limit_lines(&mut self, bytes: usize) {
        self.longest = Some(bytes);
    }

    /// Writes one line; the newline is added here. All output bytes pass through here or [`frame`](Self::frame).
    pub fn line(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.latched {
            return;
        }
        let before = self.lines.held();
        match (&mut self.credentials, P::ON_CREDENTIAL) {
            (None, _) => self.lines.line(write),
            (Some(credentials), OnCredential::Hide) => self.lines.checked_line(credentials, write),
            (Some(credentials), OnCredential::Latch) => {
                if !self.lines.sealed_line(credentials, write) {
                    return self.latch(LATCHED);
                }
            }
        }
        let line = self.lines.held() - before;
        if self.longest.is_some_and(|longest| line > longest + 1) {
            self.lines.take_back(line);
            self.latch(OVERLONG);
        }
    }

    /// Writes one frame of a wire that cuts long ones into several lines: `finish` does that with what stands from its
    /// place on, newlines included.
    pub fn frame(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>),
        finish: impl FnOnce(&mut Vec<u8>, usize),
    ) {
        if self.latched {
            return;
        }
        match (&mut self.credentials, P::ON_CREDENTIAL) {
            (Some(credentials), OnCredential::Latch) => {
                if !self.lines.sealed_frame(credentials, write, finish) {
                    self.latch(LATCHED);
                }
            }
            (credentials, _) => self.lines.frame(credentials.as_mut(), write, finish),
        }
    }

    /// Ends the Server because of a line that must not be.
    fn latch(&mut self, why: &'static str) {
        self.diagnostic(why.into());
        self.exit(1);
        self.latched = true;
    }

    /// Whether a line was written, or was to be.
    fn has_begun(&self) -> bool {
        self.lines.end() > 0 || self.latched
    }

    /// Hands a command to the agent and returns the id that its `Replied` will carry.
    pub fn call(&mut self, command: Command) -> CommandId {
        self.last_command += 1;
        let id = CommandId(self.last_command);
        self.push(ServerOutput::Call(Call { id, command }));
        id
    }

    /// A fresh prompt id.
    pub fn next_prompt(&mut self) -> PromptId {
        self.last_prompt += 1;
        PromptId(self.last_prompt)
    }

    /// Asks the embedder.
    pub fn ask(&mut self, ask: P::Ask) -> u64 {
        self.last_ask += 1;
        let id = self.last_ask;
        self.asks.insert(id, false);
        self.push(ServerOutput::Ask { id, ask });
        id
    }

    /// Says that the answer to an ask isn't needed any more; a settled one is left alone.
    pub fn dismiss(&mut self, id: u64) {
        if let Some(dismissed) = self.asks.get_mut(&id)
            && !*dismissed
        {
            *dismissed = true;
            self.push(ServerOutput::Dismiss { id });
        }
    }

    /// Says a sentence to the person who runs the process.
    pub fn diagnostic(&mut self, text: Text) {
        self.push(ServerOutput::Diagnostic(text));
    }

    /// Ends the Server. Nothing is taken or said afterwards.
    pub fn exit(&mut self, code: u8) {
        if !self.over {
            self.push(ServerOutput::Exit { code });
            self.over = true;
        }
    }

    /// Bytes of lines that haven't been handed over.
    pub fn held(&self) -> usize {
        self.lines.held()
    }

    fn push(&mut self, output: ServerOutput<P>) {
        if self.latched {
            return;
        }
        self.queue.push_back((self.lines.end(), output));
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.held() == 0
    }

    fn close_ask(&mut self, id: u64) -> Result<bool, Misuse> {
        match self.asks.remove(&id) {
            Some(dismissed) => Ok(dismissed),
            None if id == 0 || id > self.last_ask => Err(Misuse::NeverIssued),
            None => Err(Misuse::AlreadySettled),
        }
    }

    fn poll(&mut self, lines: &mut Vec<u8>) -> Option<ServerOutput<P>> {
        let Some((at, output)) = self.queue.pop_front() else {
            let end = self.lines.end();
            self.lines.give(end, lines);
            return None;
        };
        self.lines.give(at, lines);
        Some(output)
    }
}

impl<P: Protocol> fmt::Debug for Outbox<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("held", &self.held())
            .field("queued", &self.queue.len())
            .finish_non_exhaustive()
    }
}
