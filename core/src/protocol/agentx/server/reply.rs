//! Replies as they stream: one `assistant` record a block, and the provider's events around them.
//!
//! What ends a reply waits here for its usage, and, when it was cut, for what says so.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::blocks::assistant_message;
use super::open::{Open, stop_block};
use super::printer::Printer;
use super::sums;
use crate::json::Str;
use crate::protocol::Outbox;
use crate::protocol::agentx::Agentx;
use crate::protocol::agentx::policy::{PartialForm, Policy, RecordForm};
use crate::protocol::agentx::wire::{Maybe, MessageDelta, MessageEnd, MessageStart, StreamEvent};
use crate::protocol::ids::Calls;
use crate::protocol::wire::Hole;
use crate::vocab::*;

/// Replies of nested runs that may be open at once.
const MOST_NESTED: usize = 256;
/// Messages whose first record is remembered.
const MOST_SAID: usize = 4_096;

/// What records of a reply need.
pub(super) struct Pen<'p> {
    pub(super) printer: &'p mut Printer,
    pub(super) out: &'p mut Outbox<Agentx>,
    pub(super) calls: &'p mut Calls,
    /// The prompts that the turn answers, by the host's ids, where records name them.
    pub(super) prompts: &'p [Text],
    /// The call whose nested run says it.
    pub(super) parent: Option<String>,
    /// The model in use, for replies that name none.
    pub(super) model: Text,
    pub(super) now: Now,
}

/// How replies are told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// Whether pieces are told.
    pub(super) partial: Option<PartialForm>,
    pub(super) form: RecordForm,
}

impl Style {
    pub(super) fn new(policy: &Policy, partial: bool) -> Self {
        Style {
            partial: partial.then_some(policy.partial_form),
            form: policy.record_form,
        }
    }

    /// How a reply of this run is told: pieces of nested runs aren't.
    fn of(self, run: RunId) -> Self {
        let partial = self.partial.filter(|_| run == RunId::MAIN);
        Style { partial, ..self }
    }

    /// Whether the provider's events are told.
    pub(super) fn has_events(self) -> bool {
        self.partial == Some(PartialForm::Provider)
    }
}

/// What ends a reply, and isn't out yet.
#[derive(Debug)]
struct Closers {
    /// The block whose stop isn't out yet.
    at: Option<u32>,
    stop: Stop,
    kept: bool,
    usage: Option<Usage>,
}

/// The replies that are open.
#[derive(Debug)]
pub(super) struct Replies {
    style: Style,
    /// Of the outermost agent.
    open: Option<Open>,
    closers: Option<Closers>,
    /// Of nested runs, whose pieces aren't told.
    nested: BTreeMap<RunId, Open>,
    /// The first record of each message.
    said: BTreeMap<MessageId, String>,
    /// The record of each call's result.
    results: BTreeMap<CallId, String>,
}

impl Replies {
    pub(super) fn new(style: Style) -> Self {
        Replies {
            style,
            open: None,
            closers: None,
            nested: BTreeMap::new(),
            said: BTreeMap::new(),
            results: BTreeMap::new(),
        }
    }

    /// The id of the first record of a message.
    pub(super) fn said(&self, message: MessageId) -> Option<&str> {
        self.said.get(&message).map(String::as_str)
    }

    /// A record of a message went out.
    pub(super) fn remember(&mut self, message: MessageId, uuid: String) {
        self.said.entry(message).or_insert(uuid);
        if self.said.len() > MOST_SAID {
            self.said.pop_first();
        }
    }

    /// The record of a call's result.
    pub(super) fn result_of(&self, call: CallId) -> Option<&str> {
        self.results.get(&call).map(String::as_str)
    }

    /// The result of a call went out.
    pub(super) fn remember_result(&mut self, call: CallId, uuid: String) {
        self.results.insert(call, uuid);
        if self.results.len() > MOST_SAID {
            self.results.pop_first();
        }
    }

    /// A block of no reply: a call of the agent's own.
    pub(super) fn single(&mut self, content: &Block, pen: &mut Pen<'_>) {
        let id = pen.printer.message_id();
        let open = Open::new(MessageId(0), id, "<synthetic>".into(), None, self.style);
        open.write_block(content, false, pen);
    }

    pub(super) fn started(
        &mut self,
        run: RunId,
        message: MessageId,
        provider_id: Option<&str>,
        model: Option<&Text>,
        usage: Option<Usage>,
        pen: &mut Pen<'_>,
    ) {
        let id = match provider_id {
            Some(id) if !id.is_empty() => id.into(),
            Some(_) | None => pen.printer.message_id(),
        };
        let model = model.unwrap_or(&pen.model).clone();
        let style = self.style.of(run);
        let open = Open::new(message, id, model, usage, style);
        if run != RunId::MAIN {
            if self.nested.len() < MOST_NESTED {
                self.nested.insert(run, open);
            }
            return;
        }
        self.close(pen);
        if self.style.has_events() {
            let form = self.style.form;
            let event = StreamEvent::from(MessageStart {
                message: assistant_message(&open.id, &open.model, None, open.first_usage(), form),
                ..MessageStart::default()
            });
            pen.printer.stream(pen.out, |out| event.put(out));
        }
        self.open = Some(open);
    }

    pub(super) fn block_started(
        &mut self,
        run: RunId,
        message: MessageId,
        block: u32,
        head: &BlockHead,
        pen: &mut Pen<'_>,
    ) {
        if let Some(open) = self.open_of(run, message) {
            open.start(block, head, pen);
        }
    }

    /// More text: the hot path.
    pub(super) fn delta(
        &mut self,
        delta: &DeltaRef<'_>,
        printer: &mut Printer,
        out: &mut Outbox<Agentx>,
    ) {
        if let Some(open) = self.open_of(RunId::MAIN, delta.message) {
            open.grow(delta.block, delta.kind, delta.text, printer, out);
        }
    }

    /// A block is whole: its record, then its stop.
    pub(super) fn block_ended(
        &mut self,
        run: RunId,
        message: MessageId,
        block: u32,
        content: &Block,
        pen: &mut Pen<'_>,
    ) {
        let Some(open) = self.open_of(run, message) else {
            return;
        };
        if let Some(uuid) = open.end(block, content, pen) {
            self.remember(message, uuid);
        }
    }

    /// Whether a call waits that this text makes due.
    pub(super) fn is_due(&self, delta: &DeltaRef<'_>) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| {
            open.message == delta.message && open.is_due(delta.kind, delta.text)
        })
    }

    /// Whether a call of this run's reply waits.
    pub(super) fn has_held(&self, run: RunId) -> bool {
        let open = match run {
            RunId::MAIN => self.open.as_ref(),
            run => self.nested.get(&run),
        };
        open.is_some_and(Open::has_held)
    }

    /// The open reply of this run isn't void: calls of it that wait are told.
    pub(super) fn release(&mut self, run: RunId, pen: &mut Pen<'_>) {
        let open = match run {
            RunId::MAIN => self.open.as_mut(),
            run => self.nested.get_mut(&run),
        };
        let told = open.and_then(|open| Some((open.message, open.release(pen)?)));
        if let Some((message, uuid)) = told {
            self.remember(message, uuid);
        }
    }

    fn open_of(&mut self, run: RunId, message: MessageId) -> Option<&mut Open> {
        let open = if run == RunId::MAIN {
            self.open.as_mut()
        } else {
            self.nested.get_mut(&run)
        };
        open.filter(|open| open.message == message)
    }

    /// The reply is over: blocks that aren't out yet are told, what ends it waits.
    pub(super) fn ended(
        &mut self,
        run: RunId,
        message: &Arc<Message>,
        stop: &Stop,
        kept: bool,
        pen: &mut Pen<'_>,
    ) {
        if self.open_of(run, message.id).is_none() {
            // It was never begun, as agents do that don't stream.
            self.started(run, message.id, None, None, None, pen);
        }
        let Some(open) = self.open_of(run, message.id) else {
            return;
        };
        let told = if kept {
            open.tell_rest(&message.content, *stop == Stop::Cancelled, pen)
        } else {
            open.show_rest(pen);
            None
        };
        let at = open.at();
        if let Some(uuid) = told {
            self.remember(message.id, uuid);
        }
        if run != RunId::MAIN {
            self.nested.remove(&run);
            return;
        }
        self.open = None;
        if self.style.has_events() {
            self.closers = Some(Closers {
                at,
                stop: stop.clone(),
                kept,
                usage: None,
            });
        }
    }

    /// The request is over: a reply that is whole is closed.
    pub(super) fn request_ended(
        &mut self,
        outcome: &RequestOutcome,
        usage: Option<Usage>,
        pen: &mut Pen<'_>,
    ) {
        let Some(closers) = &mut self.closers else {
            return;
        };
        closers.usage = usage;
        let cut = closers.kept && !matches!(outcome, RequestOutcome::Complete { .. });
        if !cut {
            self.close_with(outcome, pen);
        }
    }

    fn close_with(&mut self, outcome: &RequestOutcome, pen: &mut Pen<'_>) {
        let finish = match outcome {
            RequestOutcome::Complete { finish } => Some(finish.clone()),
            RequestOutcome::Truncated | RequestOutcome::Cancelled | RequestOutcome::Failed(_) => {
                None
            }
        };
        self.write_closers(finish.as_ref(), pen);
    }

    /// What says that the reply was cut is out, or never comes: the reply is closed.
    pub(super) fn close(&mut self, pen: &mut Pen<'_>) {
        self.write_closers(None, pen);
    }

    fn write_closers(&mut self, finish: Option<&Text>, pen: &mut Pen<'_>) {
        let Some(closers) = self.closers.take() else {
            return;
        };
        if let Some(block) = closers.at {
            stop_block(block, pen.printer, pen.out);
        }
        if closers.kept {
            let sequence = match &closers.stop {
                Stop::StopSequence(text) => Maybe::Value(Str::from(&**text)),
                Stop::End
                | Stop::ToolUse
                | Stop::MaxTokens
                | Stop::Refusal
                | Stop::Truncated
                | Stop::Cancelled
                | Stop::Detached
                | Stop::Failed
                | Stop::NotSaid
                | Stop::Other(_) => Maybe::Null,
            };
            let event = StreamEvent::from(MessageDelta {
                delta: MessageEnd {
                    stop_reason: finish
                        .map_or(Maybe::Null, |word| Maybe::Value(Str::from(&**word))),
                    stop_sequence: sequence,
                    ..MessageEnd::default()
                },
                usage: Some(alloc::boxed::Box::new(sums::usage(
                    closers.usage.unwrap_or_default(),
                    RecordForm::Provider,
                ))),
                ..MessageDelta::default()
            });
            pen.printer.stream(pen.out, |out| event.put(out));
        }
        pen.printer.stream(pen.out, |out| {
            out.extend_from_slice(b"{\"type\":\"message_stop\"}");
        });
    }
}

/// `parent_tool_use_id`
pub(super) fn parent(call: Option<&str>) -> Maybe<Str<'_>> {
    call.map_or(Maybe::Null, |call| Maybe::Value(call.into()))
}

/// `user_message_uuid`
pub(super) fn first(prompts: &[Text]) -> Option<Str<'_>> {
    prompts.first().map(|uuid| Str::from(&**uuid))
}

/// `user_message_uuids`
pub(super) fn all(prompts: &[Text]) -> Option<Vec<Str<'_>>> {
    (!prompts.is_empty()).then(|| prompts.iter().map(|uuid| Str::from(&**uuid)).collect())
}

/// A time as RFC 3339 writes it, with milliseconds.
pub(super) fn timestamp(now: Now) -> String {
    let ms = now.unix_ms % 1_000;
    let seconds = now.unix_ms / 1_000;
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    // Days since 0000-03-01, so that the leap day is the last of its year.
    let days = seconds / 86_400 + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    alloc::format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339_has_them() {
        let at = |unix_ms| {
            timestamp(Now {
                mono_us: 0,
                unix_ms,
            })
        };
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_400_007), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(1_796_008_166_180), "2026-11-30T03:09:26.180Z");
        assert_eq!(at(4_107_542_399_999), "2100-02-28T23:59:59.999Z");
        assert_eq!(at(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }
}
