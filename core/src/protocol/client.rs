//! The Client that all protocols share: lines to the agent, one queue of outputs, ids and time.

mod closing;
mod reply;

use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::lines::Lines;
use super::{ClientFace, ClientOutput, HELD_LIMIT, Protocol};
use crate::frame::{Place, Split, SplitKind};
use crate::vocab::*;

pub(in crate::protocol) use closing::Closing;
pub(in crate::protocol) use reply::Streamed;

/// An agent that speaks a protocol, as neutral commands and events.
///
/// The mirror of [`Server`](super::Server): the embedder gives it commands and the agent's lines, writes the lines
/// that it makes to the agent, and takes its outputs with [`poll_output`](Client::poll_output) until that gives
/// `None`. What an agent does wrong is a [`Finding`] and changes nothing else (L9). What an agent doesn't say and the
/// laws of the neutral stream need is made up, and marked [`Seen::Inferred`]. Time that goes back is taken as standing
/// still.
///
/// Ids are counters, one for each kind, from 1.
pub struct Client<P: Protocol> {
    face: P::Client,
    out: ClientOutbox<P>,
    held_limit: usize,
}

impl<P: Protocol> Client<P> {
    /// A Client of an agent that hasn't said anything yet.
    pub fn new(config: P::ClientConfig) -> Self {
        let mut out = ClientOutbox::new();
        let face = P::Client::open(config, &mut out);
        Client {
            face,
            out,
            held_limit: HELD_LIMIT,
        }
    }

    /// Changes the limit of [`wants_lines`](Client::wants_lines) and [`wants_commands`](Client::wants_commands), in
    /// bytes ([`HELD_LIMIT`]).
    pub fn set_held_limit(&mut self, bytes: usize) {
        self.held_limit = bytes;
    }

    /// A command for the agent. It gets one `Replied`, or none after [`ClientOutput::Closed`].
    pub fn handle_command(&mut self, call: Call, now: Now) {
        self.out.tick(now);
        if !self.out.over {
            self.face.command(call, &mut self.out);
        }
    }

    /// A line of the agent, as its splitter gave it.
    pub fn handle_line(&mut self, line: Split<'_>, now: Now) {
        self.out.tick(now);
        if self.out.over {
            return;
        }
        self.out.unread = self.out.unread.saturating_add(match line.what {
            SplitKind::Line(content) | SplitKind::Tail(content) => content.len(),
            SplitKind::TooLong { .. } => 0,
        });
        self.out.place = Some(line.place);
        self.face.line(&line, &mut self.out);
        self.out.place = None;
    }

    /// The agent's output has ended; the splitter's last line was handed in before. Everything that is open ends, and
    /// [`ClientOutput::Closed`] is the last output.
    pub fn handle_end(&mut self, now: Now) {
        self.out.tick(now);
        if !self.out.over {
            self.face.end(&mut self.out);
            self.out.close();
        }
    }

    /// The deadline of [`poll_timeout`](Client::poll_timeout) has come. Too early is harmless.
    pub fn handle_woken(&mut self, now: Now) {
        self.out.tick(now);
        if !self.out.over {
            self.face.woken(&mut self.out);
        }
    }

    /// Tells the protocol's own part of the Client something that no other protocol has.
    pub(in crate::protocol) fn tell(
        &mut self,
        now: Now,
        tell: impl FnOnce(&mut P::Client, &mut ClientOutbox<P>),
    ) {
        self.out.tick(now);
        if !self.out.over {
            tell(&mut self.face, &mut self.out);
        }
    }

    /// Answers a [`ClientOutput::Ask`].
    ///
    /// # Errors
    /// [`Misuse`] when the id was never issued, or has been settled before (L8).
    pub fn settle(&mut self, id: u64, outcome: P::Outcome, now: Now) -> Result<(), Misuse> {
        if !self.out.asks.remove(&id) {
            return Err(if id == 0 || id > self.out.last_ask {
                Misuse::NeverIssued
            } else {
                Misuse::AlreadySettled
            });
        }
        self.out.tick(now);
        if !self.out.over {
            self.face.settled(id, outcome, &mut self.out);
        }
        Ok(())
    }

    /// The next output, in order, lent until the next call. Every call first hands over the bytes of the lines that
    /// come before it, `None` included: they are appended to `lines`, or swapped in when `lines` is empty.
    pub fn poll_output(&mut self, lines: &mut Vec<u8>) -> Option<ClientOutput<'_, P>> {
        self.out.poll(lines)
    }

    /// When the Client wants [`handle_woken`](Client::handle_woken); at once while output is held (L3).
    pub fn poll_timeout(&self) -> Option<Due> {
        if self.out.is_idle() {
            if self.out.over { None } else { self.face.due() }
        } else {
            Some(Due {
                at_us: self.out.now.mono_us,
                why: "output",
            })
        }
    }

    /// Whether more lines of the agent may be handed over: false while what more than the limit of their bytes was
    /// made into hasn't been taken, and after the end.
    pub fn wants_lines(&self) -> bool {
        !self.out.over && self.out.unread <= self.held_limit && self.face.wants_lines()
    }

    /// Whether more commands may be handed over: false while more than the limit of bytes for the agent is held here
    /// unread. Bytes that the embedder took and hasn't written yet are its own to count.
    pub fn wants_commands(&self) -> bool {
        !self.out.over && self.out.lines.held() <= self.held_limit
    }
}

impl<P: Protocol> fmt::Debug for Client<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("protocol", &P::NAME)
            .field("now", &self.out.now)
            .field("queued", &self.out.queue.len())
            .finish_non_exhaustive()
    }
}

/// Something that an agent did against its contract. The stream goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The agent's line; `None`: found at its end, or when time had passed.
    pub place: Option<Place>,
    /// What, for people; names no content of the conversation beyond ids.
    pub text: Text,
}

macro_rules! counters {
    ($($field:ident: $id:ident,)*) => {
        /// The ids that a Client mints, one counter for each kind, from 1.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct ClientIds { $($field: u64,)* }

        impl ClientIds {
            $(
                #[doc = concat!("A fresh [`", stringify!($id), "`].")]
                pub fn $field(&mut self) -> $id {
                    self.$field += 1;
                    $id(self.$field)
                }
            )*
        }
    };
}

counters! {
    turn: TurnId,
    step: StepId,
    request: RequestId,
    message: MessageId,
    call: CallId,
    ask: AskId,
    run: RunId,
    job: JobId,
    checkpoint: CheckpointId,
}

/// Where a [`ClientFace`] puts lines for the agent and outputs for the embedder, in one order.
pub struct ClientOutbox<P: Protocol> {
    /// The ids that this Client mints.
    pub ids: ClientIds,
    now: Now,
    /// The line that is being handled.
    place: Option<Place>,
    lines: Lines,
    queue: VecDeque<(u64, Item<P>)>,
    /// The output that is lent.
    lent: Option<Item<P>>,
    /// The text of the queued deltas, one behind the other; before `texts_taken` it is lent or done with.
    texts: String,
    texts_taken: usize,
    /// Bytes of lines since the queue was last empty.
    unread: usize,
    asks: BTreeSet<u64>,
    last_ask: u64,
    over: bool,
}

/// An output as it waits.
enum Item<P: Protocol> {
    Event(Event),
    Delta {
        at: Now,
        run: RunId,
        message: MessageId,
        block: u32,
        kind: Kind,
        /// Its bytes in the common text.
        length: usize,
    },
    Extra(P::Extra),
    Ask {
        id: u64,
        ask: P::Ask,
    },
    Finding(Finding),
    CloseInput,
    Signal(Signal),
    Closed,
}

/// Delta text that is done with is given up when there is more than this of it, in bytes.
const TEXT_KEPT: usize = 64 * 1024;

impl<P: Protocol> ClientOutbox<P> {
    fn new() -> Self {
        ClientOutbox {
            ids: ClientIds::default(),
            now: Now::default(),
            place: None,
            lines: Lines::default(),
            queue: VecDeque::new(),
            lent: None,
            texts: String::new(),
            texts_taken: 0,
            unread: 0,
            asks: BTreeSet::new(),
            last_ask: 0,
            over: false,
        }
    }

    /// The time of the input that is being handled.
    pub fn now(&self) -> Now {
        self.now
    }

    /// Writes one line to the agent; the newline is added here.
    pub fn line(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.lines.line(write);
    }

    /// Something that the agent said.
    pub fn say(&mut self, what: What) {
        self.event(RunId::MAIN, Seen::Real, what);
    }

    /// Something that the agent didn't say, and that must be so.
    pub fn infer(&mut self, what: What) {
        self.event(RunId::MAIN, Seen::Inferred, what);
    }

    /// An event, now.
    pub fn event(&mut self, run: RunId, seen: Seen, what: What) {
        let at = self.now;
        self.push(Item::Event(Event {
            at,
            run,
            seen,
            what,
        }));
    }

    /// The answer to a command: [`Seen::Real`] if the agent's own line gave it.
    pub fn reply(&mut self, command: CommandId, seen: Seen, reply: Result<Answer, Refusal>) {
        self.event(RunId::MAIN, seen, What::Replied { command, reply });
    }

    /// A piece of a message, now. Its text isn't empty. Allocates nothing once warm.
    pub fn delta(&mut self, run: RunId, message: MessageId, block: u32, kind: Kind, text: &str) {
        self.texts.push_str(text);
        let item = Item::Delta {
            at: self.now,
            run,
            message,
            block,
            kind,
            length: text.len(),
        };
        self.push(item);
    }

    /// Information that only this protocol has.
    pub fn extra(&mut self, extra: P::Extra) {
        self.push(Item::Extra(extra));
    }

    /// A request of this protocol's own to the embedder.
    pub fn ask(&mut self, ask: P::Ask) -> u64 {
        self.last_ask += 1;
        let id = self.last_ask;
        self.asks.insert(id);
        self.push(Item::Ask { id, ask });
        id
    }

    /// The agent broke its contract.
    pub fn finding(&mut self, text: impl Into<Text>) {
        let place = self.place;
        self.push(Item::Finding(Finding {
            place,
            text: text.into(),
        }));
    }

    /// Asks that the agent's input be closed, once the lines so far are written.
    pub fn close_input(&mut self) {
        self.push(Item::CloseInput);
    }

    /// Asks that the agent's process get a signal.
    pub fn signal(&mut self, signal: Signal) {
        self.push(Item::Signal(signal));
    }

    fn close(&mut self) {
        self.push(Item::Closed);
        self.over = true;
    }

    fn tick(&mut self, now: Now) {
        self.now.mono_us = self.now.mono_us.max(now.mono_us);
        self.now.unix_ms = now.unix_ms;
    }

    fn push(&mut self, item: Item<P>) {
        self.queue.push_back((self.lines.end(), item));
    }

    fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.lines.held() == 0
    }

    fn poll(&mut self, lines: &mut Vec<u8>) -> Option<ClientOutput<'_, P>> {
        self.lent = None;
        let Some((at, item)) = self.queue.pop_front() else {
            let end = self.lines.end();
            self.lines.give(end, lines);
            self.unread = 0;
            self.give_up_texts();
            return None;
        };
        self.lines.give(at, lines);
        if self.texts_taken > TEXT_KEPT {
            self.give_up_texts();
        }
        Some(match self.lent.insert(item) {
            Item::Event(event) => ClientOutput::Event(event),
            Item::Delta {
                at,
                run,
                message,
                block,
                kind,
                length,
            } => {
                let end = self.texts_taken + *length;
                let text = self.texts.get(self.texts_taken..end).unwrap_or_default();
                self.texts_taken = end;
                ClientOutput::Delta(DeltaRef {
                    at: *at,
                    run: *run,
                    message: *message,
                    block: *block,
                    kind: *kind,
                    text,
                })
            }
            Item::Extra(extra) => ClientOutput::Extra(extra),
            Item::Ask { id, ask } => ClientOutput::Ask { id: *id, ask },
            Item::Finding(finding) => ClientOutput::Finding(finding),
            Item::CloseInput => ClientOutput::CloseInput,
            Item::Signal(signal) => ClientOutput::Signal(*signal),
            Item::Closed => ClientOutput::Closed,
        })
    }

    /// Drops the text that was lent: all of it in one step when the queue is empty, else when at least half is done
    /// with, so that each byte is moved once at most.
    fn give_up_texts(&mut self) {
        if self.texts_taken == self.texts.len() {
            self.texts.clear();
            if self.texts.capacity() > TEXT_KEPT {
                self.texts = String::new();
            }
            self.texts_taken = 0;
        } else if self.texts_taken * 2 >= self.texts.len() {
            self.texts.drain(..self.texts_taken);
            self.texts_taken = 0;
        }
    }
}

impl<P: Protocol> fmt::Debug for ClientOutbox<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOutbox")
            .field("queued", &self.queue.len())
            .field("held", &self.lines.held())
            .finish_non_exhaustive()
    }
}
