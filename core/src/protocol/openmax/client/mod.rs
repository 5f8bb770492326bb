//! The Client: an agent that speaks openmax, as neutral commands and events.
//!
//! openmax has no command ids, no acknowledgements but three lines, and no queue, so this Client infers much: which
//! command a line answers ([`books`]), where steps, requests and messages begin and end ([`turn`]), and it keeps the
//! prompts that must wait ([`queue`]). A turn is over at its `done`, at nothing else.

mod books;
mod calls;
mod commands;
mod lines;
mod queue;
mod turn;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use self::books::{Books, Sent};
use self::calls::Calls;
use self::queue::{Fate, Queue};
use self::turn::{Cut, Turn, message};
use super::Openmax;
use super::wire::{AgentLine, Hello, Transcript};
use crate::frame::{Split, SplitKind, is_blank};
use crate::json::Members;
use crate::protocol::heard::unknown_session;
use crate::protocol::{ClientFace, ClientOutbox};
use crate::vocab::*;

type Out = ClientOutbox<Openmax>;

/// Commands that may wait for the agent's handshake.
const MOST_EARLY: usize = 256;

/// What an openmax Client is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The version that the agent should speak: 6. Another one is a finding, and is read as far as it goes.
    pub wire: u64,
    /// Somebody else writes the host's lines, and this Client only follows, as over a recording: a command is taken as
    /// written, and what the agent answers counts. Off.
    pub follow: bool,
    /// How long an `error` line waits for the `done` that it may belong to, in microseconds: 50,000.
    pub look_ahead_us: u64,
    /// Prompts that may wait here: 256.
    pub queued_prompts: usize,
    /// Bytes of their content: 16 MiB.
    pub queued_bytes: usize,
    /// Bytes of one reply that are kept for its `MessageEnded`: 64 MiB. Deltas beyond it are passed on all the same.
    pub reply_bytes: usize,
}

impl Default for ClientConfig {
    fn default() -> Self {
        ClientConfig {
            wire: super::PROTOCOL_VERSION,
            follow: false,
            look_ahead_us: 50_000,
            queued_prompts: 256,
            queued_bytes: 16 * 1024 * 1024,
            reply_bytes: 64 * 1024 * 1024,
        }
    }
}

/// The state of an openmax Client.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    members: Members,
    shake: Shake,
    /// Commands that came before the handshake.
    early: VecDeque<Call>,
    info: Box<SessionInfo>,
    /// Another session's line was found already.
    mixed: bool,
    books: Books,
    queue: Queue,
    /// What becomes of the queue when the turn ends.
    fate: Fate,
    /// The queue waits until the next prompt or `Promote`.
    held: bool,
    /// The newest prompt that was taken: an older one is a duplicate.
    newest: Option<PromptId>,
    turn: Option<Turn>,
    calls: Calls,
    /// An `error` line that may belong to the `done` that follows.
    error: Option<HeldError>,
    /// A `protocol_error` that may belong to the `done refused` that follows.
    stray: Option<Text>,
    /// A `user` was refused, and its `done refused` hasn't come.
    owes_refused: bool,
    /// A `user` was refused because of a turn in flight; a `done refused` may follow.
    may_refuse: bool,
    closing: Closing,
    /// The last cancel was by this signal.
    signal: Option<Signal>,
    /// Something happened since the last `Settled`.
    active: bool,
}

#[derive(Debug)]
enum Shake {
    /// Nothing has come.
    Waiting,
    /// `hello` said that a session goes on; its transcript must follow.
    Transcript,
    Done,
}

#[derive(Debug)]
struct HeldError {
    text: Text,
    until_us: u64,
}

/// How far closing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    Open,
    /// `quit` goes out when nothing is pending.
    Draining,
    /// `quit` went out and the input is closed; nothing more is written. `now`: without draining.
    Sent {
        now: bool,
    },
}

impl ClientFace<Openmax> for Client {
    fn open(config: ClientConfig, _: &mut Out) -> Self {
        Client {
            config,
            members: Members::default(),
            shake: Shake::Waiting,
            early: VecDeque::new(),
            info: Box::new(unknown_session()),
            mixed: false,
            books: Books::default(),
            queue: Queue::default(),
            fate: Fate::Run,
            held: false,
            newest: None,
            turn: None,
            calls: Calls::default(),
            error: None,
            stray: None,
            owes_refused: false,
            may_refuse: false,
            closing: Closing::Open,
            signal: None,
            active: false,
        }
    }

    fn command(&mut self, call: Call, out: &mut Out) {
        let at_once = matches!(call.command, Command::Close { drain: false });
        if matches!(self.shake, Shake::Done) || at_once || self.closing != Closing::Open {
            return self.act(call, out);
        }
        // An agent that turns out to speak something else gets nothing.
        if self.early.len() >= MOST_EARLY {
            return out.reply(call.id, Seen::Inferred, Err(Refusal::Full));
        }
        self.early.push_back(call);
    }

    fn line(&mut self, line: &Split<'_>, out: &mut Out) {
        let content = match line.what {
            SplitKind::Line(content) | SplitKind::Tail(content) => content,
            SplitKind::TooLong { bytes, .. } => {
                return out.finding(format!(
                    "a line of {bytes} bytes is too long and was skipped"
                ));
            }
        };
        if is_blank(content) {
            return;
        }
        // The buffer is taken out, so that the line may borrow from it while the state changes.
        let mut members = core::mem::take(&mut self.members);
        match AgentLine::decode(content, &mut members) {
            Ok(line) => self.hear(line, out),
            Err(fault) => out.finding(format!("not a line of the contract: {fault}")),
        }
        self.members = members;
    }

    fn end(&mut self, out: &mut Out) {
        self.gone(out);
    }

    fn settled(&mut self, _: u64, outcome: core::convert::Infallible, _: &mut Out) {
        match outcome {}
    }

    fn woken(&mut self, out: &mut Out) {
        let over = |error: &HeldError| error.until_us <= out.now().mono_us;
        if self.error.as_ref().is_some_and(over) {
            self.release_error(out);
        }
    }

    fn due(&self) -> Option<Due> {
        self.error.as_ref().map(|error| Due {
            at_us: error.until_us,
            why: "look_ahead",
        })
    }
}

impl Client {
    /// `hello`.
    fn hello(&mut self, hello: &Hello<'_>, out: &mut Out) {
        if !matches!(self.shake, Shake::Waiting) {
            return out.finding("hello came twice; the second is ignored");
        }
        if hello.protocol_version != self.config.wire
            || hello
                .proto
                .strip_prefix("openmax-stdio/")
                .and_then(|n| n.parse().ok())
                != Some(hello.protocol_version)
        {
            out.finding(format!(
                "the agent speaks {:?}, version {}, not version {}",
                &*hello.proto, hello.protocol_version, self.config.wire
            ));
        }
        self.info.session = (&*hello.session_id).into();
        self.info.root = Some((&*hello.project).into());
        self.info.cwd = (&*hello.project).into();
        self.info.product = (&*hello.version).into();
        self.info.continued = hello.continued;
        if hello.continued {
            self.shake = Shake::Transcript;
        } else {
            self.opened(Seen::Real, Vec::new(), out);
        }
    }

    /// `transcript`.
    fn transcript(&mut self, transcript: &Transcript<'_>, out: &mut Out) {
        if !matches!(self.shake, Shake::Transcript) {
            return out.finding("a transcript that doesn't follow a hello of a continued session");
        }
        let mut history = Vec::new();
        for told in &transcript.messages {
            let role = match &*told.role {
                "user" => Role::User,
                "assistant" => Role::Assistant,
                other => {
                    out.finding(format!("role {other:?} in a transcript"));
                    Role::Other(other.into())
                }
            };
            let content = [Arc::new(Block::Text((&*told.content).into()))].into();
            let id = out.ids.message();
            let message = message(id, role, content, Origin::History, out);
            history.push(Arc::new(Message {
                at_ms: 0,
                ..message
            }));
        }
        self.opened(Seen::Real, history, out);
        if transcript.truncated {
            out.say(What::Notice {
                level: Level::Info,
                code: Some("history_truncated".into()),
                text: "the agent tells only a part of the history".into(),
            });
        }
    }

    /// The handshake is over; what waited for it is acted on.
    fn opened(&mut self, seen: Seen, history: Vec<Arc<Message>>, out: &mut Out) {
        self.shake = Shake::Done;
        let mut info = self.info.clone();
        info.history = history;
        out.event(RunId::MAIN, seen, What::Opened(info));
        for call in core::mem::take(&mut self.early) {
            self.act(call, out);
        }
    }

    /// Whether a `user` may not be written: its answer would be another one's. A turn that nobody asked for doesn't
    /// count, since a stray line is enough to make one, and the agent says so itself if it is busy.
    fn is_busy(&self) -> bool {
        let asked = self
            .turn
            .as_ref()
            .is_some_and(|turn| !turn.prompts.is_empty());
        asked || self.owes_refused || self.books.has_user()
    }

    /// Ends a turn that nobody asked for: its `done` never came, or will be nobody's.
    fn end_unasked(&mut self, out: &mut Out) {
        let Some(turn) = self.turn.take_if(|turn| turn.prompts.is_empty()) else {
            return;
        };
        let (end, cut) = match turn.cancel.clone() {
            Some(why) => (End::Cancelled(why), Cut::Cancelled),
            None => (End::NotSaid, Cut::Over),
        };
        let pending = Pending {
            queued: u32::try_from(self.queue.len()).unwrap_or(u32::MAX),
            background: false,
            resumes: !self.queue.is_empty() && !self.held,
        };
        turn.end(end, false, &cut, pending, &mut self.calls, out);
        let calls = &self.calls;
        self.books.give_up_approves(|ask| calls.is_asked(ask), out);
    }

    /// Nothing runs: the next prompt is sent, or the agent told to leave, or the host told that all is quiet.
    fn idle(&mut self, out: &mut Out) {
        self.books.pass_barriers(out);
        if self.is_busy() {
            return;
        }
        if !self.queue.is_empty() {
            if !self.held {
                let settings = &self.info.settings;
                let prompts = self
                    .queue
                    .pop(settings.steer_drain, settings.follow_up_drain);
                self.send(None, prompts, out);
            }
            return;
        }
        self.held = false;
        let leaves = self.closing == Closing::Draining && self.books.is_empty();
        if leaves {
            self.end_unasked(out);
        }
        if self.turn.is_none() && core::mem::take(&mut self.active) {
            out.infer(What::Settled);
        }
        if leaves {
            self.quit(false, out);
        }
    }

    /// The `error` line that waited is no part of an end.
    fn release_error(&mut self, out: &mut Out) {
        let Some(HeldError { text, .. }) = self.error.take() else {
            return;
        };
        if let Some(turn) = &mut self.turn {
            turn.last_error = Some(text.clone());
        }
        out.say(What::Notice {
            level: Level::Error,
            code: None,
            text,
        });
    }

    /// The agent's output has ended. Everything that is open ends.
    fn gone(&mut self, out: &mut Out) {
        self.release_error(out);
        self.settle_stray(out);
        let expected =
            self.closing != Closing::Open && self.turn.is_none() && !self.books.has_user();
        let failure = Failure::new(
            if matches!(self.shake, Shake::Done) {
                FailureKind::Internal
            } else {
                FailureKind::Setup
            },
            match self.shake {
                Shake::Done if self.turn.is_some() => "the agent ended in the middle of a turn",
                Shake::Done => "the agent ended",
                Shake::Waiting | Shake::Transcript => "the agent ended before its handshake",
            },
        );
        let refusal = if self.closing == Closing::Open {
            Refusal::Failed(failure.clone())
        } else {
            Refusal::Closing
        };
        if matches!(self.shake, Shake::Transcript) {
            self.opened(Seen::Real, Vec::new(), out);
        }
        for call in core::mem::take(&mut self.early) {
            out.reply(call.id, Seen::Inferred, Err(refusal.clone()));
        }
        if let Some(turn) = self.turn.take() {
            let (end, cut) = match turn.cancel.clone() {
                Some(why) => (End::Cancelled(why), Cut::Cancelled),
                None => (End::Failed(failure.clone()), Cut::Gone(failure.clone())),
            };
            turn.end(end, false, &cut, Pending::default(), &mut self.calls, out);
        }
        self.refuse_all(&refusal, &failure, out);
        self.drop_queue(DropWhy::Closed, out);
        if core::mem::take(&mut self.active) {
            out.infer(What::Settled);
        }
        let why = match (self.closing, self.signal) {
            (Closing::Sent { now: true }, Some(signal)) => CloseWhy::Signal(signal),
            (Closing::Sent { now: true }, None) => CloseWhy::HostGone,
            (Closing::Draining | Closing::Sent { now: false }, _) if expected => CloseWhy::Drained,
            (Closing::Open | Closing::Draining | Closing::Sent { now: false }, _) => {
                CloseWhy::Fault(failure)
            }
        };
        out.infer(What::Closed { why });
    }

    /// Replies to every command that waits, for good.
    fn refuse_all(&mut self, refusal: &Refusal, failure: &Failure, out: &mut Out) {
        for sent in self.books.take_all() {
            match sent {
                Sent::User(user) => {
                    if let Some(command) = user.command {
                        out.reply(command, Seen::Inferred, Err(refusal.clone()));
                    } else {
                        for prompt in user.prompts {
                            out.infer(What::PromptEnded {
                                prompt: prompt.id,
                                end: End::Failed(failure.clone()),
                            });
                        }
                    }
                    self.cancels_hit(user.cancels, Hit::Nothing, out);
                }
                Sent::Approve { command, .. }
                | Sent::Mode { command }
                | Sent::Reload { command }
                | Sent::Barrier { command } => {
                    out.reply(command, Seen::Inferred, Err(refusal.clone()));
                }
            }
        }
    }

    fn drop_queue(&mut self, why: DropWhy, out: &mut Out) {
        for prompt in self.queue.drop_all() {
            let end = End::Dropped(why);
            out.infer(What::PromptEnded { prompt, end });
        }
    }
}
