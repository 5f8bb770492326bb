//! The turn whose `done` the Server owes, and the lines it is made of.
//!
//! One line for a whole step's text, `usage` before it, one `done` for each prompt: what is held and swapped is held
//! here. Nothing is brought forward.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::printer::{Printer, Shown};
use super::server::{refuse, refused};
use super::wire::{
    Budget, Compacted as CompactedLine, Done, Error, HarnessNote, MessageDone, Refrozen, Retry,
    SchemasOverBudget, TurnRefused, Usage as UsageLine,
};
use super::{Extra, Fault, Openmax};
use crate::json::Str;
use crate::protocol::Outbox;
use crate::protocol::ids::Calls;
use crate::vocab::*;

/// The prompt of the host that is open: from `user` to `done`.
#[derive(Debug)]
pub(super) struct Own {
    prompt: PromptId,
    command: CommandId,
    state: OwnState,
}

#[derive(Debug)]
enum OwnState {
    /// The agent hasn't answered yet.
    Sent,
    /// A turn runs for it.
    Running,
    /// The agent answers it by itself; its output is a message.
    Local,
    /// It has ended, and its `done` waits for background work.
    Held { end: End, until_us: u64 },
}

impl Own {
    pub(super) fn sent(prompt: PromptId, command: CommandId) -> Self {
        Own {
            prompt,
            command,
            state: OwnState::Sent,
        }
    }

    /// Whether this command's answer admits or refuses the prompt.
    pub(super) fn awaits(&self, command: CommandId) -> bool {
        self.command == command && matches!(self.state, OwnState::Sent)
    }
}

/// What was written in the open step.
#[derive(Debug, Default)]
struct Step {
    /// A step of this turn has begun.
    begun: bool,
    budget: bool,
    message_done: bool,
    /// A token was written since the last `budget`: no `retry` may follow.
    text: bool,
}

/// What came of the open attempt.
#[derive(Debug, Default)]
struct Attempt {
    /// A token was written in this attempt.
    text: bool,
    /// The reply, until `RequestEnded` brings its usage.
    reply: Option<Arc<Message>>,
    /// The reply was taken back after tokens were written.
    retracted: Option<Arc<Message>>,
    /// The request ended truncated and without a message. Whether it has a line is clear at the next event.
    owes_empty: bool,
}

/// The turns of a session, as far as this wire sees them.
#[derive(Debug)]
pub(super) struct Turns {
    pub(super) printer: Printer,
    pub(super) own: Option<Own>,
    pub(super) calls: Calls,
    step: Step,
    attempt: Attempt,
    /// The last `TurnEnded` said that background work goes on.
    pending: bool,
    hold_us: u64,
    window: u64,
    used: u64,
    compaction: Option<(Trigger, Option<u64>)>,
    schemas: Schemas,
    tools: Vec<Text>,
    skills: Vec<Text>,
    /// The next change of tools is what a receipt has said already.
    change: Change,
    pub(super) last_done_was_error: bool,
}

/// `schemas_over_budget`: at most once a session, before a `budget`.
#[derive(Debug)]
enum Schemas {
    Unsaid,
    Waiting(SchemasOverBudget),
    Said,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// A change of tools gets a line.
    Tell,
    /// A `reload` was answered; only what follows directly belongs to it.
    AfterReload,
    /// The embedder told it in its own words.
    Told,
}

impl Turns {
    pub(super) fn new(coalesce_us: u64, hold_us: u64) -> Self {
        Turns {
            printer: Printer::new(coalesce_us),
            own: None,
            calls: Calls::default(),
            step: Step::default(),
            attempt: Attempt::default(),
            pending: false,
            hold_us,
            window: 0,
            used: 0,
            compaction: None,
            schemas: Schemas::Unsaid,
            tools: Vec::new(),
            skills: Vec::new(),
            change: Change::Tell,
            last_done_was_error: false,
        }
    }

    /// Whether a `done` is owed: the host's next `user` must wait.
    pub(super) fn owes_done(&self) -> bool {
        self.own.is_some()
    }

    /// Whether lines of a turn may be written: this wire has none for a turn that nobody asked for.
    pub(super) fn is_shown(&self) -> bool {
        self.own
            .as_ref()
            .is_some_and(|own| !matches!(own.state, OwnState::Sent))
    }

    pub(super) fn due(&self) -> Option<Due> {
        let held = match &self.own {
            Some(Own {
                state: OwnState::Held { until_us, .. },
                ..
            }) => Some(Due {
                at_us: *until_us,
                why: "hold_done",
            }),
            Some(Own {
                state: OwnState::Sent | OwnState::Running | OwnState::Local,
                ..
            })
            | None => None,
        };
        Due::earliest(held, self.printer.due())
    }

    pub(super) fn woken(&mut self, now_us: u64, out: &mut Outbox<Openmax>) {
        self.printer.woken(now_us, out);
        if let Some(Own {
            state: OwnState::Held { until_us, .. },
            ..
        }) = &self.own
            && *until_us <= now_us
        {
            self.release(out);
        }
    }

    pub(super) fn extra(&mut self, extra: Extra, opened: bool, out: &mut Outbox<Openmax>) {
        match extra {
            Extra::SchemasOverBudget {
                schema_tokens,
                budget_tokens,
            } => {
                if matches!(self.schemas, Schemas::Unsaid) {
                    self.schemas = Schemas::Waiting(SchemasOverBudget {
                        schema_tokens,
                        budget_tokens,
                    });
                }
            }
            Extra::Refrozen {
                tools,
                skills,
                changes,
            } => {
                if opened {
                    let changes = changes.iter().map(|change| (&**change).into()).collect();
                    self.refrozen(
                        &Refrozen {
                            tools,
                            skills,
                            changes,
                        },
                        out,
                    );
                    self.change = Change::Told;
                }
            }
            Extra::Unknown { .. } => {}
        }
    }

    /// The answer to the prompt's command.
    pub(super) fn admitted(&mut self, reply: &Result<Answer, Refusal>, out: &mut Outbox<Openmax>) {
        match reply {
            Ok(Answer::Admitted(Admitted::Started | Admitted::Queued(_))) => {
                self.set_state(OwnState::Running)
            }
            Ok(Answer::Admitted(Admitted::Local)) => self.set_state(OwnState::Local),
            Ok(_) => {
                refuse(
                    &Fault::Refused {
                        command: "user",
                        why: "the agent didn't say what became of it".into(),
                    },
                    out,
                );
                self.done("refused", out);
            }
            Err(Refusal::Cancelled) => self.done("cancelled", out),
            Err(Refusal::Blocked { text, .. }) => self.ended(&End::Blocked(text.clone()), out),
            Err(other) => {
                refuse(&refused("user", other), out);
                self.done("refused", out);
            }
        }
    }

    fn set_state(&mut self, state: OwnState) {
        if let Some(own) = &mut self.own {
            own.state = state;
        }
    }

    pub(super) fn delta(&mut self, delta: &DeltaRef<'_>, out: &mut Outbox<Openmax>) {
        if delta.run != RunId::MAIN || delta.text.is_empty() || !self.is_shown() {
            return;
        }
        let shown = match delta.kind {
            Kind::Text => {
                self.step.text = true;
                self.attempt.text = true;
                Shown::Token
            }
            Kind::Thinking => Shown::Thinking,
            Kind::Signature | Kind::Input | Kind::Opaque => return,
        };
        self.printer.delta(shown, delta.text, delta.at.mono_us, out);
    }

    pub(super) fn turn_started(&mut self, out: &mut Outbox<Openmax>) {
        self.step = Step {
            text: self.step.text,
            ..Step::default()
        };
        self.attempt = Attempt::default();
        if self.own.is_none() {
            out.diagnostic(
                "a turn that the host didn't ask for runs; openmax has no lines for it".into(),
            );
        }
    }

    pub(super) fn turn_ended(&mut self, pending: Pending) {
        self.pending = pending.background || pending.resumes;
    }

    pub(super) fn step_started(&mut self) {
        self.step = Step {
            begun: true,
            text: self.step.text,
            ..Step::default()
        };
    }

    /// `Context`: a `budget`, once a step.
    pub(super) fn context(&mut self, used: u64, window: u64, out: &mut Outbox<Openmax>) {
        self.used = used;
        self.window = window;
        if self.step.budget || !self.is_shown() {
            return;
        }
        self.step.budget = true;
        self.step.text = false;
        if let Schemas::Waiting(line) = &self.schemas {
            self.printer.event(line, out);
            self.schemas = Schemas::Said;
        }
        self.printer.event(
            &Budget {
                used_tokens: used,
                context_tokens: window,
            },
            out,
        );
    }

    /// A request goes out. An agent that told no context gets the last one that is known, made up.
    pub(super) fn request_started(&mut self, out: &mut Outbox<Openmax>) {
        self.attempt = Attempt::default();
        self.context(self.used, self.window, out);
    }

    pub(super) fn message_ended(
        &mut self,
        message: &Arc<Message>,
        stop: &Stop,
        kept: bool,
        out: &mut Outbox<Openmax>,
    ) {
        let whole = kept && !matches!(stop, Stop::Failed | Stop::Detached);
        if whole {
            self.write_reply(out);
            self.attempt.reply = Some(message.clone());
        } else if self.attempt.text {
            self.attempt.retracted = Some(message.clone());
        }
    }

    pub(super) fn request_ended(
        &mut self,
        outcome: &RequestOutcome,
        usage: Option<&Usage>,
        out: &mut Outbox<Openmax>,
    ) {
        match outcome {
            RequestOutcome::Complete { .. } => {
                if let Some(usage) = usage {
                    self.printer.event(&usage_line(usage), out);
                    self.used = self.used.max(usage_line(usage).prompt_tokens);
                }
                self.reply_or_empty(out);
            }
            RequestOutcome::Truncated if self.attempt.reply.is_none() => {
                self.attempt.owes_empty = true
            }
            RequestOutcome::Truncated | RequestOutcome::Cancelled => self.reply_or_empty(out),
            RequestOutcome::Failed(_) => self.write_reply(out),
        }
    }

    /// Before any other event of the turn than a retry: the empty reply of a truncated request.
    pub(super) fn settle_empty(&mut self, out: &mut Outbox<Openmax>) {
        if core::mem::take(&mut self.attempt.owes_empty) {
            self.message_done("", out);
        }
    }

    pub(super) fn retry(
        &mut self,
        attempt: u32,
        max: u32,
        why: &Failure,
        out: &mut Outbox<Openmax>,
    ) {
        self.attempt.owes_empty = false;
        if !self.step.text {
            let line = Retry {
                attempt: attempt.into(),
                max_attempts: max.into(),
                reason: (&*why.text).into(),
            };
            return self.printer.event(&line, out);
        }
        // Only a foreign agent takes back what it showed. A `retry` never follows a token on this wire, so the run of
        // tokens is ended as usual, and a note says what became of it.
        if let Some(message) = self.attempt.retracted.take() {
            let text = text_of(&message);
            self.message_done(&text, out);
        }
        let text = format!(
            "[the agent withdrew the reply above and starts over, attempt {attempt} of {max}: {}]",
            why.text
        );
        self.printer.event(
            &HarnessNote {
                call_id: "".into(),
                text: text.into(),
            },
            out,
        );
    }

    pub(super) fn refrozen(&mut self, line: &Refrozen<'_>, out: &mut Outbox<Openmax>) {
        self.printer.event(line, out);
    }

    /// A `reload` was answered: the change that follows directly has had its line.
    pub(super) fn expect_change(&mut self) {
        self.change = Change::AfterReload;
    }

    /// Any event but a change: what comes later isn't the reload's.
    pub(super) fn no_change(&mut self) {
        if self.change == Change::AfterReload {
            self.change = Change::Tell;
        }
    }

    /// The session's facts changed; tools and skills that differ were refrozen.
    pub(super) fn changed(&mut self, info: &SessionInfo, silent: bool, out: &mut Outbox<Openmax>) {
        let mut changes = Vec::new();
        compare("tool", &self.tools, &info.tools, &mut changes);
        compare("skill", &self.skills, &info.skills, &mut changes);
        // A receipt stands for one change, whether or not names differ in it: a schema or the prompt may.
        let told = core::mem::replace(&mut self.change, Change::Tell) != Change::Tell;
        if changes.is_empty() {
            return;
        }
        self.tools.clone_from(&info.tools);
        self.skills.clone_from(&info.skills);
        if !told && !silent {
            let line = Refrozen {
                tools: info.tools.len() as u64,
                skills: info.skills.len() as u64,
                changes,
            };
            self.refrozen(&line, out);
        }
    }

    pub(super) fn remember(&mut self, info: &SessionInfo) {
        self.tools.clone_from(&info.tools);
        self.skills.clone_from(&info.skills);
    }

    pub(super) fn compaction_started(&mut self, trigger: Trigger, tokens: Option<u64>) {
        self.compaction = Some((trigger, tokens));
    }

    /// `compacted` is the receipt of a compaction that was asked for; one with nothing to cut has it too.
    pub(super) fn compaction_ended(
        &mut self,
        result: &Result<Compacted, CompactionFault>,
        out: &mut Outbox<Openmax>,
    ) {
        let Some((Trigger::Manual, tokens)) = self.compaction.take() else {
            return;
        };
        if !self.is_shown() {
            return;
        }
        let before = tokens.unwrap_or(self.used);
        let line = match result {
            Ok(done) => {
                let tokens_before = done.tokens_before.unwrap_or(before);
                CompactedLine {
                    tokens_before,
                    tokens_after: done.tokens_after.unwrap_or(tokens_before),
                    compacted_messages: done.messages.unwrap_or(0).into(),
                }
            }
            Err(CompactionFault::Nothing(_)) => CompactedLine {
                tokens_before: before,
                tokens_after: before,
                compacted_messages: 0,
            },
            Err(CompactionFault::Cancelled | CompactionFault::Failed(_)) => return,
        };
        self.printer.event(&line, out);
    }

    pub(super) fn refused_completion(
        &mut self,
        hook: &str,
        reason: &str,
        (honoured, left): (u32, u32),
        out: &mut Outbox<Openmax>,
    ) {
        let line = TurnRefused {
            hook: hook.into(),
            reason: reason.into(),
            continuation: honoured.into(),
            continuations_left: left.into(),
        };
        self.printer.event(&line, out);
    }

    /// A message that wasn't streamed: a note of the harness, or the output of a prompt that needs no model.
    pub(super) fn message(&mut self, message: &Message, out: &mut Outbox<Openmax>) {
        let local = match &self.own {
            Some(Own {
                prompt,
                state: OwnState::Local,
                ..
            }) => message.prompt.is_none_or(|id| id == *prompt),
            Some(Own {
                state: OwnState::Sent | OwnState::Running | OwnState::Held { .. },
                ..
            })
            | None => false,
        };
        if local && message.role != Role::User {
            let text = text_of(message);
            if !text.is_empty() {
                self.printer.event(
                    &super::wire::Token {
                        text: (&*text).into(),
                    },
                    out,
                );
            }
            self.message_done(&text, out);
        } else if message.role == Role::Note && message.origin == Origin::Harness && self.is_shown()
        {
            let text = text_of(message);
            let call_id = message
                .about
                .and_then(|call| self.calls.wire(call))
                .unwrap_or_default();
            self.printer.event(
                &HarnessNote {
                    call_id: call_id.into(),
                    text,
                },
                out,
            );
        }
    }

    /// A prompt has ended: its `done` goes out, or waits for the agent's background work.
    pub(super) fn prompt_ended(
        &mut self,
        prompt: PromptId,
        end: &End,
        now_us: u64,
        out: &mut Outbox<Openmax>,
    ) {
        let pending = core::mem::take(&mut self.pending);
        match &mut self.own {
            Some(own) if own.prompt == prompt && !matches!(own.state, OwnState::Held { .. }) => {
                if pending {
                    own.state = OwnState::Held {
                        end: end.clone(),
                        until_us: now_us.saturating_add(self.hold_us),
                    };
                } else {
                    self.ended(end, out);
                }
            }
            Some(_) | None => {}
        }
    }

    /// Nothing runs any more: a `done` that waited goes out.
    pub(super) fn release(&mut self, out: &mut Outbox<Openmax>) {
        if let Some(Own {
            state: OwnState::Held { end, .. },
            ..
        }) = &self.own
        {
            let end = end.clone();
            self.ended(&end, out);
        }
    }

    /// The agent is closed. A prompt that it never ended ends here (OM-24).
    pub(super) fn closed(&mut self, why: &CloseWhy, out: &mut Outbox<Openmax>) {
        self.release(out);
        if self.own.is_some() {
            let end = match why {
                CloseWhy::Signal(signal) => End::Cancelled(CancelWhy::Signal(*signal)),
                CloseWhy::Drained | CloseWhy::HostGone => End::Aborted {
                    reason: "the turn ended unexpectedly".into(),
                },
                CloseWhy::Fault(failure) => End::Aborted {
                    reason: format!("the turn ended unexpectedly: {}", failure.text).into(),
                },
            };
            self.ended(&end, out);
        }
    }

    /// The error line of an end, and its `done`.
    fn ended(&mut self, end: &End, out: &mut Outbox<Openmax>) {
        self.write_reply(out);
        let (word, error): (&str, Option<Cow<'_, str>>) = match end {
            End::Finished { finish: Some(word) } => finished(word),
            End::Finished { finish: None } | End::Local | End::Yielded { .. } | End::NotSaid => {
                ("stop", None)
            }
            End::Truncated(failure) | End::Incomplete(failure) => {
                ("truncated", Some((&*failure.text).into()))
            }
            End::MaxSteps => ("max_iterations", None),
            End::BudgetExhausted(_) => ("budget_exhausted", None),
            End::Unverified => ("unverified", None),
            End::Blocked(text) => ("blocked", Some(format!("input blocked: {text}").into())),
            End::Cancelled(_) | End::Withdrawn | End::Dropped(_) => ("cancelled", None),
            End::Failed(failure) => ("error", Some((&*failure.text).into())),
            End::Aborted { reason } => ("error", Some((&**reason).into())),
        };
        if word == "cancelled"
            && matches!(end, End::Cancelled(_))
            && self.step.begun
            && !self.step.message_done
        {
            self.message_done("", out);
        }
        if let Some(message) = error {
            self.printer.event(&Error { message }, out);
        }
        self.done(word, out);
    }

    /// Writes `done`: the host may send its next prompt.
    pub(super) fn done(&mut self, word: &str, out: &mut Outbox<Openmax>) {
        self.printer.event(
            &Done {
                stop_reason: word.into(),
            },
            out,
        );
        if word != "refused" {
            self.last_done_was_error = word == "error";
        }
        self.own = None;
        self.step = Step::default();
        self.attempt = Attempt::default();
    }

    fn reply_or_empty(&mut self, out: &mut Outbox<Openmax>) {
        if self.attempt.reply.is_some() {
            self.write_reply(out);
        } else if self.is_shown() {
            self.message_done("", out);
        }
    }

    /// Writes the reply that waited for its usage, if one does.
    pub(super) fn write_reply(&mut self, out: &mut Outbox<Openmax>) {
        if let Some(message) = self.attempt.reply.take() {
            let text = text_of(&message);
            self.message_done(&text, out);
        }
    }

    fn message_done(&mut self, text: &str, out: &mut Outbox<Openmax>) {
        self.step.message_done = true;
        self.printer.event(&MessageDone { text: text.into() }, out);
    }
}

/// A provider's finish word is passed through. The words of this contract that promise another line get it, or make
/// room: `refused` would mean that no turn ran.
fn finished(word: &str) -> (&str, Option<Cow<'_, str>>) {
    match word {
        "error" | "truncated" => (
            word,
            Some(format!("the provider ended the reply with finish reason '{word}'").into()),
        ),
        "refused" | "" => ("stop", None),
        _ => (word, None),
    }
}

/// The text of a message: its text blocks, joined.
pub(super) fn text_of(message: &Message) -> Cow<'_, str> {
    let mut texts = message.content.iter().filter_map(|block| match &**block {
        Block::Text(text) => Some(&**text),
        Block::Thinking { .. }
        | Block::Redacted(_)
        | Block::Media { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Opaque(_) => None,
    });
    let Some(first) = texts.next() else {
        return Cow::Borrowed("");
    };
    let Some(second) = texts.next() else {
        return Cow::Borrowed(first);
    };
    let mut joined = String::from(first);
    joined.push_str(second);
    texts.for_each(|text| joined.push_str(text));
    Cow::Owned(joined)
}

/// The prompt is whole here: what was read from a cache, or written to it, too.
fn usage_line(usage: &Usage) -> UsageLine {
    UsageLine {
        prompt_tokens: usage.prompt_tokens().unwrap_or(0),
        completion_tokens: usage.answer_tokens().unwrap_or(0),
        cached_tokens: usage.cache_read,
    }
}

/// One sentence for each name that came or went.
fn compare(kind: &str, old: &[Text], new: &[Text], changes: &mut Vec<Str<'static>>) {
    changes.extend(
        new.iter()
            .filter(|name| !old.contains(name))
            .map(|name| format!("{kind} {name} added").into()),
    );
    changes.extend(
        old.iter()
            .filter(|name| !new.contains(name))
            .map(|name| format!("{kind} {name} removed").into()),
    );
}
