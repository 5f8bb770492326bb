//! Calls by their ids on the wire.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::wire::{
    PermissionDecision, PermissionRequest, ResultStatus, SideEffectWord, ToolCall, ToolResult,
};
use super::region::input_of_value;
use super::{ClientFace, Out};
use crate::protocol::heard::cut;
use crate::vocab::*;

/// The most arguments that may still become a call.
const MOST: usize = 1_024;

/// Calls that run, and arguments that may still become one.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// In the order in which they began.
    open: Vec<Open>,
    written: BTreeMap<String, (CallId, MessageId, u32)>,
    /// The last question.
    asked: u64,
}

/// A call that runs.
#[derive(Debug)]
struct Open {
    wire: String,
    call: CallId,
    run: RunId,
    gate: Gate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    None,
    /// A request was seen, and nobody could answer.
    Asked,
    Allowed,
    Denied,
    Cancelled,
}

impl Open {
    /// The call is over, and nobody said what became of its question.
    fn settle(&self, allow: bool, out: &mut Out) {
        if self.gate != Gate::Asked {
            return;
        }
        let verdict = Verdict {
            allow,
            by: Decider::Closed,
            input: None,
            reason: None,
            risk: None,
            block: None,
        };
        let call = self.call;
        out.event(self.run, Seen::Inferred, What::Decided { call, verdict });
    }
}

impl Calls {
    pub(super) fn was_asked(&self, ask: AskId) -> bool {
        (1..=self.asked).contains(&ask.0)
    }

    /// The call whose arguments this id names.
    pub(super) fn written(&self, wire: &str) -> Option<CallId> {
        self.written.get(wire).map(|(call, ..)| *call)
    }

    pub(super) fn write(&mut self, wire: &str, at: (CallId, MessageId, u32)) {
        if self.written.len() >= MOST {
            self.written.pop_first();
        }
        self.written.insert(wire.into(), at);
    }

    fn find(&mut self, wire: &str) -> Option<&mut Open> {
        self.open.iter_mut().rev().find(|open| open.wire == wire)
    }

    /// Ends what is open in this run; of all runs, if none is named.
    pub(super) fn end_all(&mut self, run: Option<RunId>, outcome: &ToolOutcome, out: &mut Out) {
        let ends = |open: &Open| run.is_none_or(|run| open.run == run);
        // The innermost first.
        while let Some(at) = self.open.iter().rposition(ends) {
            let open = self.open.remove(at);
            open.settle(false, out);
            let what = What::ToolEnded {
                call: open.call,
                outcome: outcome.clone(),
                content: Vec::new(),
                show: None,
            };
            out.event(open.run, Seen::Inferred, what);
        }
    }
}

impl ClientFace {
    pub(super) fn call_started(&mut self, line: &ToolCall<'_>, out: &mut Out) {
        let wire = line.id.as_deref().unwrap_or("");
        let name = line.name.as_deref().unwrap_or("");
        if self.calls.find(wire).is_some() {
            return out.finding(format!("a call of the id {} is open", cut(wire)));
        }
        let outer = self.calls.open.last().map(|open| open.call);
        let written = self.calls.written.remove(wire);
        let Some(region) = self.region() else { return };
        region.end_message(Stop::NotSaid, out);
        let written = written.filter(|(call, ..)| region.starts(*call));
        let (call, cause) = match (written, outer) {
            (Some((call, message, block)), _) => (call, ToolCause::Model { message, block }),
            (None, Some(outer)) => (out.ids.call(), ToolCause::Tool(outer)),
            (None, None) => (out.ids.call(), ToolCause::Agent),
        };
        let what = What::ToolStarted {
            call,
            provider_id: (!wire.is_empty()).then(|| wire.into()),
            name: name.into(),
            input: Some(input_of_value(line.args.get())),
            cause,
            side_effect: side_effect(line.side_effect.as_ref()),
        };
        let run = region.run();
        region.say(what, out);
        self.calls.open.push(Open {
            wire: wire.into(),
            call,
            run,
            gate: Gate::None,
        });
    }

    pub(super) fn call_ended(&mut self, line: &ToolResult<'_>, out: &mut Out) {
        let wire = line.id.as_deref().unwrap_or("");
        let at = self.calls.open.iter().rposition(|open| open.wire == wire);
        let Some(at) = at else {
            return out.finding(format!(
                "a result of the id {}, and no call is open",
                cut(wire)
            ));
        };
        if let Some(region) = self.region() {
            region.end_message(Stop::NotSaid, out);
        }
        let open = self.calls.open.remove(at);
        open.settle(line.status == ResultStatus::Ok, out);
        let outcome = match (&line.status, open.gate) {
            (ResultStatus::Ok, _) => ToolOutcome::Ok,
            (_, Gate::Asked) => ToolOutcome::Denied(Decider::Closed),
            (_, Gate::Denied) => ToolOutcome::Denied(Decider::Mode),
            (_, Gate::Cancelled) => ToolOutcome::Cancelled,
            (ResultStatus::Error | ResultStatus::Other(_), Gate::None | Gate::Allowed) => {
                ToolOutcome::Failed
            }
        };
        let output = line.output.as_deref().unwrap_or("");
        let content = if output.is_empty() {
            Vec::new()
        } else {
            Vec::from([Block::Text(output.into())])
        };
        let what = What::ToolEnded {
            call: open.call,
            outcome,
            content,
            show: Some(show(line).into()),
        };
        out.event(open.run, Seen::Real, what);
    }

    pub(super) fn permission_request(&mut self, line: &PermissionRequest<'_>, out: &mut Out) {
        let wire = line.id.as_deref().unwrap_or("");
        let Some(open) = self.calls.find(wire) else {
            return out.finding(format!(
                "a request about the id {}, and no call is open",
                cut(wire)
            ));
        };
        if open.gate != Gate::None {
            return out.finding("a second word about the permission of one call");
        }
        open.gate = Gate::Asked;
        let (call, run) = (open.call, open.run);
        let ask = out.ids.ask();
        self.calls.asked = ask.0;
        let reason = line.reason.as_deref().unwrap_or("");
        let body = Ask::Permission(
            PermissionAsk {
                call: Some(call),
                tool: line.name.as_deref().unwrap_or("").into(),
                reason: AskReason::Gate,
                summary: reason.into(),
                detail: reason.into(),
                body: None,
                suggestions: Vec::new(),
                env: Vec::new(),
                due: None,
            }
            .into(),
        );
        out.event(run, Seen::Real, What::Asked { ask, body });
        // Nobody can answer on this wire.
        let how = AskClose::HostGone;
        out.event(run, Seen::Inferred, What::AskClosed { ask, how });
    }

    pub(super) fn permission_decision(&mut self, line: &PermissionDecision<'_>, out: &mut Out) {
        let wire = line.id.as_deref().unwrap_or("");
        let Some(open) = self.calls.find(wire) else {
            return out.finding(format!(
                "a decision about the id {}, and no call is open",
                cut(wire)
            ));
        };
        if !matches!(open.gate, Gate::None | Gate::Asked) {
            return out.finding("a second word about the permission of one call");
        }
        let (gate, by) = match &*line.action {
            "allow" => (Gate::Allowed, Decider::Mode),
            "cancel" => (Gate::Cancelled, Decider::Cancel),
            _ => (Gate::Denied, Decider::Mode),
        };
        open.gate = gate;
        let level = line.risk.as_ref().and_then(|risk| risk.level.as_deref());
        let verdict = Verdict {
            allow: gate == Gate::Allowed,
            by,
            input: None,
            reason: line.decision_reason.as_deref().map(Into::into),
            risk: match level {
                Some("low") => Some(Risk::Low),
                Some("medium") => Some(Risk::Medium),
                Some("high") => Some(Risk::High),
                Some("critical") => Some(Risk::Critical),
                Some(_) | None => None,
            },
            block: line
                .block
                .as_ref()
                .and_then(|block| block.code.as_deref())
                .map(Into::into),
        };
        let (call, run) = (open.call, open.run);
        out.event(run, Seen::Real, What::Decided { call, verdict });
    }

    /// The files that were put aside for the call that has begun last.
    pub(super) fn checkpoint(&mut self, files: &[crate::json::Str<'_>], out: &mut Out) {
        let Some(open) = self.calls.open.last() else {
            return out.finding("a checkpoint, and no call is open");
        };
        let what = What::Checkpoint {
            checkpoint: out.ids.checkpoint(),
            call: open.call,
            files: files.iter().map(|file| (&**file).into()).collect(),
        };
        out.event(open.run, Seen::Real, what);
    }
}

fn show(line: &ToolResult<'_>) -> Show {
    let texts = |list: &Option<Vec<crate::json::Str<'_>>>| -> Vec<Text> {
        let list = list.as_deref().unwrap_or_default();
        list.iter().map(|text| (&**text).into()).collect()
    };
    let display = line.display.as_ref();
    Show {
        summary: display
            .and_then(|display| display.summary.as_deref())
            .map(Into::into),
        changed: texts(&line.changed_files),
        meta: line.meta.as_ref().map_or_else(Vec::new, |meta| {
            let pair = |(name, value): &(crate::json::Str<'_>, crate::json::Str<'_>)| {
                (Text::from(&**name), Text::from(&**value))
            };
            meta.0.iter().map(pair).collect()
        }),
        details: None,
        truncated: line.truncated,
        redacted: line.redacted == Some(true),
    }
}

fn side_effect(word: Option<&SideEffectWord<'_>>) -> SideEffect {
    match word {
        Some(SideEffectWord::None) => SideEffect::None,
        Some(SideEffectWord::Read) => SideEffect::Read,
        Some(SideEffectWord::Write) => SideEffect::Write,
        Some(SideEffectWord::Shell) => SideEffect::Shell,
        Some(SideEffectWord::Network) => SideEffect::Network,
        Some(SideEffectWord::Unknown | SideEffectWord::Other(_)) | None => SideEffect::Unknown,
    }
}
