//! The agent's lines, one by one.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::super::Extra;
use super::super::wire::{
    AgentLine, Compacted as CompactedLine, EventLine, HarnessNote, HookFailed, ModeSet, Refrozen,
    Retry, TurnRefused, Usage as UsageLine,
};
use super::books::{Class, Sent, User, classify};
use super::queue::Fate;
use super::turn::{Cut, Turn, message};
use super::{Client, Closing, HeldError, Out, Shake};
use crate::protocol::heard::{cut, failure_kind, narrow};
use crate::vocab::*;

impl Client {
    /// Acts on a line.
    pub(super) fn hear(&mut self, line: AgentLine<'_>, out: &mut Out) {
        // A line of a turn begins with the session's id; the two answers don't, and `hello` names it.
        match &line {
            AgentLine::Hello(hello) => return self.hello(hello, out),
            AgentLine::Transcript(transcript) => return self.transcript(transcript, out),
            AgentLine::Unknown { kind, line } => {
                out.finding(format!("type {kind:?} is none of the contract's"));
                return out.extra(Extra::Unknown {
                    kind: (&**kind).into(),
                    line: (&**line).into(),
                });
            }
            AgentLine::ProtocolError(_) | AgentLine::ModeSet(_) | AgentLine::Event { .. } => {}
        }
        self.needs_handshake(&line, out);
        match line {
            AgentLine::ProtocolError(error) => {
                self.release_error(out);
                self.settle_stray(out);
                self.refused(&error.message, out);
            }
            AgentLine::ModeSet(mode) => {
                self.release_error(out);
                self.settle_stray(out);
                self.mode_set(&mode, out);
            }
            AgentLine::Event { session_id, event } => {
                if *session_id != *self.info.session && !core::mem::replace(&mut self.mixed, true) {
                    out.finding(format!(
                        "a line of session {:?}; hello named {:?}",
                        &*session_id, self.info.session
                    ));
                }
                self.event(&event, out);
            }
            AgentLine::Hello(_) | AgentLine::Transcript(_) | AgentLine::Unknown { .. } => {}
        }
    }

    /// A line that may only come after the handshake: without one it is made up.
    fn needs_handshake(&mut self, line: &AgentLine<'_>, out: &mut Out) {
        match self.shake {
            Shake::Done => return,
            // The answer to a bad line may be early: nothing depends on the handshake.
            Shake::Waiting if matches!(line, AgentLine::ProtocolError(_)) => return,
            Shake::Waiting => out.finding(format!("{} before hello", line.kind())),
            Shake::Transcript => {
                out.finding("a continued session without its transcript");
                return self.opened(Seen::Real, Vec::new(), out);
            }
        }
        if let AgentLine::Event { session_id, .. } = line {
            self.info.session = (&**session_id).into();
        }
        self.opened(Seen::Inferred, Vec::new(), out);
    }

    fn event(&mut self, event: &EventLine<'_>, out: &mut Out) {
        if let EventLine::Done(done) = event {
            return self.done(&done.stop_reason, out);
        }
        self.release_error(out);
        self.settle_stray(out);
        if let EventLine::Refrozen(line) = event
            && self.reloaded(line, out)
        {
            return;
        }
        self.enter(event, out);
        let Client { turn, calls, .. } = self;
        match (event, turn) {
            (EventLine::Token(line), Some(turn)) => turn.delta(Kind::Text, &line.text, calls, out),
            (EventLine::Thinking(line), Some(turn)) => {
                turn.delta(Kind::Thinking, &line.text, calls, out);
            }
            (EventLine::MessageDone(line), Some(turn)) => turn.message_done(&line.text, calls, out),
            (EventLine::Budget(line), Some(turn)) => {
                turn.budget(line.used_tokens, line.context_tokens, calls, out);
            }
            (EventLine::Usage(line), Some(turn)) => turn.usage(usage(line, out), calls, out),
            (EventLine::Retry(line), Some(turn)) => retry(turn, line, calls, out),
            (EventLine::ToolStart(line), Some(turn)) => {
                let cause = turn.call_begins(out);
                calls.start(line, cause, out);
            }
            (EventLine::ToolEnd(line), _) => {
                calls.end(line, out);
                self.books.give_up_approves(|ask| calls.is_asked(ask), out);
            }
            (EventLine::ApprovalRequest(line), _) => calls.ask(line, out),
            (EventLine::ApprovalSettled(line), _) => {
                let ask = calls.open_ask(&line.approval_id);
                if let Some(ask) = ask {
                    let outcome = match &*line.outcome {
                        "approved" => Some(true),
                        "declined" => Some(false),
                        _ => None,
                    };
                    self.books.approval_settled(ask, outcome, out);
                }
                let closing = matches!(self.closing, Closing::Sent { .. });
                self.calls.settled(line, closing, out);
            }
            (EventLine::TurnRefused(line), Some(turn)) => turn_refused(turn, line, calls, out),
            (EventLine::HarnessNote(line), turn) => {
                if let Some(turn) = turn
                    && turn.is_fresh()
                {
                    // The prompt comes before the notes of its turn's start.
                    turn.open_step(out);
                }
                let about = calls.known(&line.call_id);
                note(line, about, out);
            }
            (EventLine::Diff(line), _) => out.say(What::FileChanged {
                call: calls.known(&line.call_id),
                path: (&*line.path).into(),
                diff: (&*line.diff).into(),
                added: narrow(line.added),
                removed: narrow(line.removed),
            }),
            (EventLine::Refrozen(line), _) => out.extra(Extra::Refrozen {
                tools: line.tools,
                skills: line.skills,
                changes: texts(line),
            }),
            (EventLine::SchemasOverBudget(line), _) => out.extra(Extra::SchemasOverBudget {
                schema_tokens: line.schema_tokens,
                budget_tokens: line.budget_tokens,
            }),
            (EventLine::Compacted(line), turn) => {
                if let Some(turn) = turn {
                    turn.between(calls, out);
                } else {
                    self.active = true;
                }
                compacted(line, out);
                self.idle(out);
            }
            (EventLine::HookFailed(line), _) => hook_failed(line, out),
            (EventLine::Error(line), _) => {
                self.error = Some(HeldError {
                    text: (&*line.message).into(),
                    until_us: out.now().mono_us.saturating_add(self.config.look_ahead_us),
                });
            }
            // `enter` has begun a turn for all of these.
            (
                EventLine::Token(_)
                | EventLine::Thinking(_)
                | EventLine::MessageDone(_)
                | EventLine::Budget(_)
                | EventLine::Usage(_)
                | EventLine::Retry(_)
                | EventLine::ToolStart(_)
                | EventLine::TurnRefused(_)
                | EventLine::Done(_),
                _,
            ) => {}
        }
    }

    /// Sees to it that a line has the turn that it belongs to: that of the `user` that waits, or, for lines that
    /// can't stand outside one, a turn that nobody asked for.
    fn enter(&mut self, event: &EventLine<'_>, out: &mut Out) {
        if self.turn.is_some() {
            return;
        }
        let only_in_turns = match event {
            EventLine::Token(_)
            | EventLine::Thinking(_)
            | EventLine::MessageDone(_)
            | EventLine::Budget(_)
            | EventLine::Usage(_)
            | EventLine::ToolStart(_)
            | EventLine::ToolEnd(_)
            | EventLine::Retry(_)
            | EventLine::ApprovalRequest(_)
            | EventLine::TurnRefused(_) => true,
            EventLine::HarnessNote(_)
            | EventLine::Diff(_)
            | EventLine::ApprovalSettled(_)
            | EventLine::Refrozen(_)
            | EventLine::SchemasOverBudget(_)
            | EventLine::Compacted(_)
            | EventLine::HookFailed(_)
            | EventLine::Error(_)
            | EventLine::Done(_) => false,
        };
        if self.books.has_user() {
            self.begin(out);
        } else if only_in_turns {
            out.finding(format!("{} outside of any turn", event.kind()));
            self.active = true;
            let most = self.config.reply_bytes;
            self.turn = Some(Turn::begin(Vec::new(), Cause::NotSaid, most, out));
        }
    }

    /// The turn of the `user` that waits begins.
    fn begin(&mut self, out: &mut Out) {
        let Some(user) = self.take_user(out) else {
            return;
        };
        let cause = match user.command {
            Some(command) => {
                let answer = Answer::Admitted(Admitted::Started);
                out.reply(command, Seen::Inferred, Ok(answer));
                Cause::Prompt
            }
            None => Cause::Queue,
        };
        let most = self.config.reply_bytes;
        let mut turn = Turn::begin(user.prompts, cause, most, out);
        turn.cancel = user.why;
        let hit = Hit::Turn(turn.id);
        self.turn = Some(turn);
        self.active = true;
        self.may_refuse = false;
        self.cancels_hit(user.cancels, hit, out);
        self.books.pass_barriers(out);
    }

    fn take_user(&mut self, out: &mut Out) -> Option<User> {
        match self.books.take(|sent| matches!(sent, Sent::User(_)), out) {
            Some(Sent::User(user)) => Some(*user),
            Some(
                Sent::Approve { .. }
                | Sent::Mode { .. }
                | Sent::Reload { .. }
                | Sent::Barrier { .. },
            )
            | None => None,
        }
    }

    /// `protocol_error`: tells by its text which command it answers.
    fn refused(&mut self, text: &str, out: &mut Out) {
        self.may_refuse = false;
        let class = match classify(text) {
            Class::Other => match self.books.sure() {
                Some(Sent::Mode { .. }) => Class::Mode(failed(text)),
                Some(Sent::Reload { .. }) => Class::Reload(failed(text)),
                Some(Sent::User(_)) => {
                    self.stray = Some(text.into());
                    return;
                }
                Some(Sent::Approve { .. } | Sent::Barrier { .. }) | None => Class::Other,
            },
            Class::Closing => match self.books.sure() {
                Some(Sent::Mode { .. }) => Class::Mode(Refusal::Closing),
                Some(Sent::Reload { .. }) => Class::Reload(Refusal::Closing),
                Some(Sent::User(_)) => Class::User(Refusal::Closing),
                Some(Sent::Approve { .. } | Sent::Barrier { .. }) | None => Class::Other,
            },
            class @ (Class::User(_)
            | Class::InFlight
            | Class::Approve
            | Class::Mode(_)
            | Class::Reload(_)
            | Class::BadLine) => class,
        };
        let fits = match class {
            Class::User(refusal) => self.user_refused(refusal, true, out),
            Class::InFlight => self.in_flight(out),
            Class::Approve => self.approve_refused(text, out),
            Class::Mode(refusal) => {
                let is = |sent: &Sent| matches!(sent, Sent::Mode { .. });
                self.answered(is, refusal, out)
            }
            Class::Reload(refusal) => {
                let is = |sent: &Sent| matches!(sent, Sent::Reload { .. });
                self.answered(is, refusal, out)
            }
            Class::BadLine | Class::Other | Class::Closing => false,
        };
        if !fits {
            out.finding(format!(
                "a protocol_error that answers nothing: {}",
                cut(text)
            ));
        }
        self.idle(out);
    }

    /// Replies to a command that an answer line belongs to. `false`: none waits.
    fn answered(&mut self, is: impl Fn(&Sent) -> bool, refusal: Refusal, out: &mut Out) -> bool {
        match self.books.take(is, out) {
            Some(
                Sent::Approve { command, .. } | Sent::Mode { command } | Sent::Reload { command },
            ) => {
                out.reply(command, Seen::Real, Err(refusal));
                true
            }
            Some(Sent::User(_) | Sent::Barrier { .. }) | None => false,
        }
    }

    /// A `user` starts no turn. `owed`: its `done refused` is still to come.
    fn user_refused(&mut self, refusal: Refusal, owed: bool, out: &mut Out) -> bool {
        let Some(user) = self.take_user(out) else {
            return false;
        };
        self.owes_refused = owed;
        self.refuse_user(user, refusal, out);
        true
    }

    fn refuse_user(&mut self, user: User, refusal: Refusal, out: &mut Out) {
        match user.command {
            Some(command) => out.reply(command, Seen::Real, Err(refusal)),
            None => {
                let failure = Failure::new(FailureKind::Input, said(&refusal));
                for prompt in user.prompts {
                    let (prompt, end) = (prompt.id, End::Failed(failure.clone()));
                    out.say(What::PromptEnded { prompt, end });
                }
            }
        }
        self.cancels_hit(user.cancels, Hit::Nothing, out);
    }

    /// A `user` or `reload` came into a turn that we don't know of. Nothing more need follow; an agent that owes no other
    /// `done` may say `done refused` all the same.
    fn in_flight(&mut self, out: &mut Out) -> bool {
        if let Some(Sent::Reload { .. }) = self.books.sure() {
            let is = |sent: &Sent| matches!(sent, Sent::Reload { .. });
            return self.answered(is, Refusal::Busy, out);
        }
        // Two that wait: the first one's turn is the one in flight.
        let user = self.books.take_later_user().or_else(|| self.take_user(out));
        let Some(user) = user else { return false };
        self.may_refuse = self.turn.is_none() && !self.books.has_user();
        self.refuse_user(user, Refusal::Busy, out);
        true
    }

    fn approve_refused(&mut self, text: &str, out: &mut Out) -> bool {
        let named = |wire: &str| text.contains(&format!("'{wire}'"));
        let names = |sent: &Sent| matches!(sent, Sent::Approve { wire, .. } if named(wire));
        self.answered(names, Refusal::AlreadySettled, out)
            || self.books.take_crossed(named)
            || self.answered(
                |sent| matches!(sent, Sent::Approve { .. }),
                Refusal::AlreadySettled,
                out,
            )
    }

    /// A `protocol_error` of no known text wasn't followed by the `done refused` that would have explained it.
    pub(super) fn settle_stray(&mut self, out: &mut Out) {
        if let Some(text) = self.stray.take() {
            out.finding(format!(
                "a protocol_error that answers nothing: {}",
                cut(&text)
            ));
        }
    }

    /// `approval_mode`: the mode counts now.
    fn mode_set(&mut self, line: &ModeSet<'_>, out: &mut Out) {
        let taken = self
            .books
            .take(|sent| matches!(sent, Sent::Mode { .. }), out);
        match taken {
            Some(Sent::Mode { command }) => out.reply(command, Seen::Real, Ok(Answer::Done)),
            Some(
                Sent::User(_) | Sent::Approve { .. } | Sent::Reload { .. } | Sent::Barrier { .. },
            )
            | None => out.finding("an approval_mode that nobody asked for"),
        }
        self.info.settings.approvals = match &*line.mode {
            "auto" => ApprovalMode::Auto,
            "ask" => ApprovalMode::Ask,
            "readonly" => ApprovalMode::ReadOnly,
            word => {
                out.finding(format!("approval mode {word:?} is none of the contract's"));
                ApprovalMode::Other(word.into())
            }
        };
        out.say(What::Changed(self.info.clone()));
        self.idle(out);
    }

    /// `refrozen`, if it answers a `reload`.
    fn reloaded(&mut self, line: &Refrozen<'_>, out: &mut Out) -> bool {
        // A turn that began by itself may have its own receipt first; nothing tells the two apart.
        let taken = self
            .books
            .take(|sent| matches!(sent, Sent::Reload { .. }), out);
        let Some(Sent::Reload { command }) = taken else {
            return false;
        };
        out.reply(
            command,
            Seen::Real,
            Ok(Answer::Reloaded {
                tools: narrow(line.tools),
                skills: narrow(line.skills),
                changes: texts(line),
            }),
        );
        self.idle(out);
        true
    }

    /// `done`: the only line that ends a turn.
    fn done(&mut self, word: &str, out: &mut Out) {
        if word == "refused" && self.done_refused(out) {
            self.stray = None;
            self.release_error(out);
            return self.idle(out);
        }
        self.settle_stray(out);
        if self.turn.is_none() && self.books.has_user() {
            self.begin(out);
        }
        let joins = matches!(word, "error" | "truncated" | "blocked");
        let joined = if joins && self.turn.is_some() {
            self.error.take().map(|error| error.text)
        } else {
            None
        };
        self.release_error(out);
        let Some(turn) = self.turn.take() else {
            self.owes_refused = false;
            out.finding(format!("done {word:?} that no prompt is owed"));
            return self.idle(out);
        };
        self.end_turn(turn, word, joined, out);
    }

    /// Whether `done refused` belongs to a `user` that started no turn.
    fn done_refused(&mut self, out: &mut Out) -> bool {
        let may = core::mem::replace(&mut self.may_refuse, false);
        if core::mem::replace(&mut self.owes_refused, false) || (may && self.turn.is_none()) {
            return true;
        }
        if self.turn.is_some() || !self.books.has_user() {
            return false;
        }
        let refusal = match &self.stray {
            Some(text) => Refusal::Invalid(text.clone()),
            None => {
                out.finding("done refused without a protocol_error before it");
                Refusal::Invalid("the agent refused the prompt".into())
            }
        };
        self.user_refused(refusal, false, out)
    }

    fn end_turn(&mut self, turn: Turn, word: &str, joined: Option<Text>, out: &mut Out) {
        let said = joined.or_else(|| turn.last_error.clone());
        let (end, cut) = ending(word, said.as_ref(), out);
        let (end, cut) = match (&turn.cancel, end) {
            // A cancel that was replied to wins over an end that it has crossed.
            (Some(why), end) if !end.is_cancelled() => {
                if let Some(failure) = end.failure() {
                    out.say(What::Notice {
                        level: Level::Error,
                        code: Some("cancel_crossed".into()),
                        text: failure.text.clone(),
                    });
                } else {
                    out.infer(What::Notice {
                        level: Level::Info,
                        code: Some("cancel_crossed".into()),
                        text: format!("the turn had ended ({word}) when the cancel came").into(),
                    });
                }
                (End::Cancelled(why.clone()), Cut::Cancelled)
            }
            (Some(why), _) => (End::Cancelled(why.clone()), Cut::Cancelled),
            (None, end) => (end, cut),
        };
        let fate = core::mem::replace(&mut self.fate, Fate::Run);
        let cancelled = end.is_cancelled();
        let dropped = matches!(fate, Fate::Drop(_)) && cancelled;
        if fate == Fate::Keep && cancelled && self.closing == Closing::Open {
            self.held = true;
        }
        let waits = !dropped && !self.queue.is_empty();
        let pending = Pending {
            queued: if dropped {
                0
            } else {
                u32::try_from(self.queue.len()).unwrap_or(u32::MAX)
            },
            background: false,
            resumes: waits && !self.held,
        };
        turn.end(end, true, &cut, pending, &mut self.calls, out);
        let calls = &self.calls;
        self.books.give_up_approves(|ask| calls.is_asked(ask), out);
        if let (true, Fate::Drop(why)) = (dropped, fate) {
            self.drop_queue(why, out);
        }
        self.idle(out);
    }
}

/// What a `stop_reason` means, and how what is still open ends.
fn ending(word: &str, said: Option<&Text>, out: &mut Out) -> (End, Cut) {
    let mut text = |name: &str| match said {
        Some(text) => text.clone(),
        None => {
            out.finding(format!("done {name:?} without an error line before it"));
            "the agent doesn't say why".into()
        }
    };
    match word {
        "truncated" => {
            let failure = Failure::new(FailureKind::StreamCut, text(word));
            (End::Truncated(failure), Cut::Truncated)
        }
        "error" => {
            let failure = failure(&text(word), false);
            (End::Failed(failure.clone()), Cut::Failed(failure))
        }
        "blocked" => {
            let text = text(word);
            let why = text.strip_prefix("input blocked: ").map(Text::from);
            (End::Blocked(why.unwrap_or(text)), Cut::Over)
        }
        "cancelled" => {
            let why = CancelWhy::Signal(Signal::Terminate);
            (End::Cancelled(why), Cut::Cancelled)
        }
        "max_iterations" => (End::MaxSteps, Cut::Over),
        "budget_exhausted" => (End::BudgetExhausted(BudgetKind::Tokens), Cut::Over),
        "unverified" => (End::Unverified, Cut::Over),
        word => {
            if word == "refused" {
                out.finding("done refused for a turn that had begun");
            }
            let finish = Some(word.into());
            (End::Finished { finish }, Cut::Over)
        }
    }
}

/// A failure, as far as its text tells.
fn failure(text: &str, retryable: bool) -> Failure {
    let status = text
        .strip_prefix("backend returned ")
        .and_then(|rest| rest.get(..3)?.parse::<u16>().ok());
    let kind = match status {
        Some(status) => failure_kind(status, text),
        None if text.starts_with("request failed") => FailureKind::Transport,
        None if text.contains("the stream ended before") || text.starts_with("stream error") => {
            FailureKind::StreamCut
        }
        None => FailureKind::Internal,
    };
    Failure {
        kind,
        status,
        retryable,
        text: text.into(),
    }
}

fn failed(text: &str) -> Refusal {
    Refusal::Failed(Failure::new(FailureKind::Internal, Text::from(text)))
}

fn said(refusal: &Refusal) -> Text {
    match refusal {
        Refusal::Empty => "the prompt is empty".into(),
        Refusal::Untrusted(project) => format!("project {project} is not trusted").into(),
        Refusal::Invalid(text) => text.clone(),
        Refusal::Failed(failure) => failure.text.clone(),
        Refusal::Closing => "the agent takes no more prompts".into(),
        Refusal::Busy => "a turn of the agent's own was in flight".into(),
        Refusal::Cancelled
        | Refusal::Blocked { .. }
        | Refusal::Unknown
        | Refusal::AlreadySettled
        | Refusal::Full
        | Refusal::TooLarge
        | Refusal::Unsupported(_) => "the agent refused the prompt".into(),
    }
}

fn usage(line: &UsageLine, out: &mut Out) -> Usage {
    let cached = line.cached_tokens.unwrap_or(0);
    if cached > line.prompt_tokens {
        out.finding("usage names more cached tokens than prompt tokens");
    }
    Usage {
        input: Some(line.prompt_tokens.saturating_sub(cached)),
        cache_read: line.cached_tokens,
        cache_write: None,
        output: Some(line.completion_tokens),
        reasoning: None,
    }
}

fn retry(turn: &mut Turn, line: &Retry<'_>, calls: &mut super::Calls, out: &mut Out) {
    let why = failure(&line.reason, true);
    let (attempt, max) = (narrow(line.attempt), narrow(line.max_attempts));
    turn.retry(attempt, max, why, calls, out);
}

fn turn_refused(turn: &mut Turn, line: &TurnRefused<'_>, calls: &mut super::Calls, out: &mut Out) {
    let (hook, reason) = (Text::from(&*line.hook), Text::from(&*line.reason));
    out.say(What::CompletionRefused {
        hook: hook.clone(),
        reason: reason.clone(),
        continuation: narrow(line.continuation),
        left: narrow(line.continuations_left),
    });
    turn.refused(hook, reason, calls, out);
}

fn note(line: &HarnessNote<'_>, about: Option<CallId>, out: &mut Out) {
    if about.is_none() && !line.call_id.is_empty() {
        out.finding(format!(
            "a note names call {:?}, which nobody knows",
            &*line.call_id
        ));
    }
    let content = [Arc::new(Block::Text((&*line.text).into()))].into();
    let id = out.ids.message();
    let note = message(id, Role::Note, content, Origin::Harness, out);
    out.say(What::Message(Arc::new(Message { about, ..note })));
}

/// A receipt: the wire tells of a compaction that was asked for, when it is over.
fn compacted(line: &CompactedLine, out: &mut Out) {
    out.infer(What::CompactionStarted {
        trigger: Trigger::Manual,
        span: None,
        tokens: Some(line.tokens_before),
    });
    out.say(What::CompactionEnded {
        result: Ok(Compacted {
            tokens_before: Some(line.tokens_before),
            tokens_after: Some(line.tokens_after),
            messages: Some(narrow(line.compacted_messages)),
            ..Compacted::default()
        }),
    });
}

fn hook_failed(line: &HookFailed<'_>, out: &mut Out) {
    let (point, detail) = match point(&line.event) {
        Some(point) => (point, Text::from(&*line.detail)),
        None => (
            HookPoint::Notification,
            format!("{}: {}", line.event, line.detail).into(),
        ),
    };
    out.say(What::HookFailed {
        hook: (&*line.hook).into(),
        point,
        detail,
    });
}

/// The hook point of a name on this wire.
fn point(name: &str) -> Option<HookPoint> {
    Some(match name {
        "user_prompt_submit" => HookPoint::PromptSubmit,
        "pre_tool_use" => HookPoint::PreTool,
        "post_tool_use" => HookPoint::PostTool,
        "permission_request" => HookPoint::Permission,
        "turn_end" => HookPoint::TurnEnd,
        "run_end" => HookPoint::RunEnd,
        "pre_compact" => HookPoint::PreCompact,
        "session_switch" => HookPoint::SessionSwitch,
        "session_start" => HookPoint::SessionStart,
        "session_end" => HookPoint::SessionEnd,
        "notification" => HookPoint::Notification,
        _ => return None,
    })
}

fn texts(line: &Refrozen<'_>) -> Vec<Text> {
    let changes = line.changes.iter();
    changes.map(|change| (&*change.0).into()).collect()
}
