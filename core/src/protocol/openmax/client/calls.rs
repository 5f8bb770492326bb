//! Calls and questions that are open, and their ids on the wire.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::Openmax;
use super::super::wire::{ApprovalRequest, ApprovalSettled, ToolEnd, ToolStart};
use super::turn::Cut;
use crate::json::Kind as JsonKind;
use crate::protocol::ClientOutbox;
use crate::vocab::*;

/// Ended calls that a late note or diff may still name.
const MOST_ENDED: usize = 256;
/// Open calls, and open questions. An agent that never ends any is found out here.
const MOST_OPEN: usize = 4_096;

/// Calls and questions. An agent may use a wire id again once it is free (the older build does, in each turn).
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: Vec<OpenCall>,
    ended: VecDeque<(String, CallId)>,
    asks: Vec<OpenAsk>,
    last_ask: Option<AskId>,
    /// Calls of the open turn that were denied.
    denied: Vec<CallId>,
}

#[derive(Debug)]
struct OpenCall {
    wire: String,
    call: CallId,
    name: Text,
    /// How a question about it was refused: what a failure of it means.
    refused: Option<ToolOutcome>,
    /// The verdict was said. An agent that asks twice about one call gets one verdict.
    decided: bool,
}

#[derive(Debug)]
struct OpenAsk {
    wire: String,
    ask: AskId,
    call: Option<CallId>,
    /// The answer that was written.
    answered: Option<bool>,
}

/// Whether a question can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answerable {
    /// Yes; its id on the wire, and its call.
    Yes(String, Option<CallId>),
    /// It is settled, or its answer is on its way.
    Settled,
    /// There was never one of this id.
    Unknown,
}

impl Calls {
    /// The call of this id: an open one, or the last ended one.
    pub(super) fn known(&self, wire: &str) -> Option<CallId> {
        let open = self.open.iter().find(|open| open.wire == wire);
        open.map(|open| open.call).or_else(|| {
            let ended = self.ended.iter().rev().find(|(ended, _)| ended == wire);
            ended.map(|(_, call)| *call)
        })
    }

    pub(super) fn start(
        &mut self,
        line: &ToolStart<'_>,
        cause: ToolCause,
        out: &mut ClientOutbox<Openmax>,
    ) {
        if self.open.iter().any(|open| open.wire == line.call_id) {
            out.finding(format!("call {:?} began twice", &*line.call_id));
        }
        if self.open.len() >= MOST_OPEN {
            out.finding("too many calls are open; the oldest is given up");
            self.end_first(&Cut::Over, out);
        }
        let input = match line.args.kind() {
            JsonKind::Object => Some(ToolInput::Object(RawJson(line.args.as_str().into()))),
            JsonKind::Null => None,
            JsonKind::Bool | JsonKind::Number | JsonKind::String | JsonKind::Array => {
                out.finding(format!(
                    "the args of call {:?} are no object",
                    &*line.call_id
                ));
                Some(ToolInput::Unparsed(line.args.as_str().into()))
            }
        };
        self.begin(&line.call_id, &line.name, input, cause, Seen::Real, out);
    }

    fn begin(
        &mut self,
        wire: &str,
        name: &str,
        input: Option<ToolInput>,
        cause: ToolCause,
        seen: Seen,
        out: &mut ClientOutbox<Openmax>,
    ) {
        let call = out.ids.call();
        let name = Text::from(name);
        out.event(
            RunId::MAIN,
            seen,
            What::ToolStarted {
                call,
                provider_id: (!wire.is_empty()).then(|| wire.into()),
                name: name.clone(),
                input,
                cause,
                side_effect: SideEffect::Unknown,
            },
        );
        self.open.push(OpenCall {
            wire: wire.into(),
            call,
            name,
            refused: None,
            decided: false,
        });
    }

    /// A call's end. One that never began is begun first, so that its output isn't lost.
    pub(super) fn end(&mut self, line: &ToolEnd<'_>, out: &mut ClientOutbox<Openmax>) {
        if !self.open.iter().any(|open| open.wire == line.call_id) {
            out.finding(format!("call {:?} ended and wasn't open", &*line.call_id));
            let (cause, seen) = (ToolCause::Agent, Seen::Inferred);
            self.begin(&line.call_id, "", None, cause, seen, out);
        }
        let Some(at) = self.open.iter().position(|open| open.wire == line.call_id) else {
            return;
        };
        self.close_asks_of(self.open.get(at).map(|open| open.call), &Cut::Over, out);
        let call = self.open.remove(at);
        let outcome = if line.ok {
            ToolOutcome::Ok
        } else {
            call.refused.unwrap_or(ToolOutcome::Failed)
        };
        if matches!(outcome, ToolOutcome::Denied(_)) && self.denied.len() < MOST_OPEN {
            self.denied.push(call.call);
        }
        let content = if line.output.is_empty() {
            Vec::new()
        } else {
            [Block::Text((&*line.output).into())].into()
        };
        out.say(What::ToolEnded {
            call: call.call,
            outcome,
            content,
            show: None,
        });
        self.remember(call.wire, call.call);
    }

    /// The calls that were denied since the last turn ended.
    pub(super) fn take_denied(&mut self) -> Vec<CallId> {
        core::mem::take(&mut self.denied)
    }

    fn remember(&mut self, wire: String, call: CallId) {
        if self.ended.len() >= MOST_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((wire, call));
    }

    fn end_first(&mut self, cut: &Cut, out: &mut ClientOutbox<Openmax>) {
        let Some(first) = self.open.first() else {
            return;
        };
        self.close_asks_of(Some(first.call), cut, out);
        let call = self.open.remove(0);
        let outcome = match cut {
            Cut::Cancelled => ToolOutcome::Cancelled,
            Cut::Over | Cut::Failed(_) | Cut::Truncated | Cut::Gone(_) => ToolOutcome::NotSaid,
        };
        out.infer(What::ToolEnded {
            call: call.call,
            outcome,
            content: Vec::new(),
            show: None,
        });
        self.remember(call.wire, call.call);
    }

    /// Ends everything that is open, in order: the agent never will.
    pub(super) fn end_all(&mut self, cut: &Cut, out: &mut ClientOutbox<Openmax>) {
        if matches!(cut, Cut::Over) {
            for call in &self.open {
                out.finding(format!("call {:?} never ended", call.wire));
            }
        }
        while !self.open.is_empty() {
            self.end_first(cut, out);
        }
        self.close_asks_of(None, cut, out);
    }

    /// A question, about the one call that is open.
    pub(super) fn ask(&mut self, line: &ApprovalRequest<'_>, out: &mut ClientOutbox<Openmax>) {
        if self.asks.iter().any(|open| open.wire == line.approval_id) {
            return out.finding(format!("approval {:?} was asked twice", &*line.approval_id));
        }
        if self.asks.len() >= MOST_OPEN {
            return out.finding("too many approvals are open; this one can't be answered");
        }
        let call = match self.open.as_slice() {
            [only] => {
                if *only.name != *line.name {
                    out.finding(format!(
                        "approval {:?} names another tool than the open call",
                        &*line.approval_id
                    ));
                }
                Some(only.call)
            }
            [] => {
                out.finding(format!(
                    "approval {:?} without an open call",
                    &*line.approval_id
                ));
                None
            }
            several @ [_, _, ..] => {
                // The contract lets calls run side by side, and names the tool.
                let mut named = several.iter().filter(|open| *open.name == *line.name);
                let first = named.next().map(|open| open.call);
                if first.is_none() || named.next().is_some() {
                    out.finding(format!(
                        "approval {:?} while several calls are open",
                        &*line.approval_id
                    ));
                    None
                } else {
                    first
                }
            }
        };
        let reason = match &*line.reason {
            "gate" => AskReason::Gate,
            "unapproved_source" => AskReason::UnapprovedSource {
                path: (&*line.source_path).into(),
                sha: (&*line.source_sha).into(),
            },
            word => {
                out.finding(format!(
                    "approval reason {word:?} is none of the contract's"
                ));
                AskReason::Other(word.into())
            }
        };
        let ask = out.ids.ask();
        self.last_ask = Some(ask);
        out.say(What::Asked {
            ask,
            body: Ask::Permission(
                PermissionAsk {
                    call,
                    tool: (&*line.name).into(),
                    reason,
                    summary: (&*line.summary).into(),
                    detail: (&*line.detail).into(),
                    body: None,
                    suggestions: Vec::new(),
                    env: line.env.0.iter().map(|name| (&*name.0).into()).collect(),
                    due: None,
                }
                .into(),
            ),
        });
        self.asks.push(OpenAsk {
            wire: (&*line.approval_id).into(),
            ask,
            call,
            answered: None,
        });
    }

    /// Whether a question can be answered.
    pub(super) fn answerable(&self, ask: AskId) -> Answerable {
        match self.asks.iter().find(|open| open.ask == ask) {
            Some(open) if open.answered.is_none() => Answerable::Yes(open.wire.clone(), open.call),
            Some(_) => Answerable::Settled,
            None if ask.0 > 0 && self.last_ask.is_some_and(|last| ask <= last) => {
                Answerable::Settled
            }
            None => Answerable::Unknown,
        }
    }

    /// An answer was written.
    pub(super) fn answered(&mut self, ask: AskId, approved: bool) {
        if let Some(open) = self.asks.iter_mut().find(|open| open.ask == ask) {
            open.answered = Some(approved);
        }
    }

    /// Whether a question is open.
    pub(super) fn is_asked(&self, ask: AskId) -> bool {
        self.asks.iter().any(|open| open.ask == ask)
    }

    /// The open question of this wire id.
    pub(super) fn open_ask(&self, wire: &str) -> Option<AskId> {
        let open = self.asks.iter().find(|open| open.wire == wire);
        open.map(|open| open.ask)
    }

    /// A question is settled. `closing`: the agent was told to leave, and declines by itself.
    pub(super) fn settled(
        &mut self,
        line: &ApprovalSettled<'_>,
        closing: bool,
        out: &mut ClientOutbox<Openmax>,
    ) {
        let found = self
            .asks
            .iter()
            .position(|open| open.wire == line.approval_id);
        let Some(at) = found else {
            return out.finding(format!(
                "approval {:?} was settled and wasn't open",
                &*line.approval_id
            ));
        };
        let ask = self.asks.remove(at);
        let answered = |allow| AskClose::Answered {
            by: Decider::Host,
            allow: Some(allow),
        };
        let (how, by, refused) = match &*line.outcome {
            "approved" => (answered(true), Decider::Host, None),
            "declined" if closing && ask.answered.is_none() => (
                AskClose::HostGone,
                Decider::Closed,
                Some(ToolOutcome::Denied(Decider::Closed)),
            ),
            "declined" => (
                answered(false),
                Decider::Host,
                Some(ToolOutcome::Denied(Decider::Host)),
            ),
            "timed_out" => (
                AskClose::TimedOut,
                Decider::Timer,
                Some(ToolOutcome::TimedOut),
            ),
            "cancelled" => (
                AskClose::Cancelled,
                Decider::Cancel,
                Some(ToolOutcome::Cancelled),
            ),
            word => {
                out.finding(format!(
                    "approval outcome {word:?} is none of the contract's"
                ));
                let why = Text::from(word);
                (
                    AskClose::Fault(why.clone()),
                    Decider::Fault(why.clone()),
                    Some(ToolOutcome::Denied(Decider::Fault(why))),
                )
            }
        };
        out.say(What::AskClosed { ask: ask.ask, how });
        self.decide(ask.call, by, refused, out);
    }

    /// The verdict on a call, once nothing about it is asked any more. `refused`: what its failure will mean.
    fn decide(
        &mut self,
        call: Option<CallId>,
        by: Decider,
        refused: Option<ToolOutcome>,
        out: &mut ClientOutbox<Openmax>,
    ) {
        let asked = self.asks.iter().any(|ask| ask.call == call);
        let Some(open) = self.open.iter_mut().find(|open| Some(open.call) == call) else {
            return;
        };
        if refused.is_some() {
            open.refused = refused;
        }
        if asked || open.decided {
            return;
        }
        open.decided = true;
        out.infer(What::Decided {
            call: open.call,
            verdict: Verdict {
                allow: open.refused.is_none(),
                by,
                input: None,
                reason: None,
                risk: None,
                block: None,
            },
        });
    }

    /// Closes the questions about a call, or all of them.
    fn close_asks_of(&mut self, call: Option<CallId>, cut: &Cut, out: &mut ClientOutbox<Openmax>) {
        let mut at = 0;
        while let Some(open) = self.asks.get(at) {
            if call.is_some() && open.call != call {
                at += 1;
                continue;
            }
            let ask = self.asks.remove(at);
            let (how, by) = match cut {
                Cut::Cancelled => (AskClose::Cancelled, Decider::Cancel),
                Cut::Gone(failure) => {
                    let why = failure.text.clone();
                    (AskClose::Fault(why.clone()), Decider::Fault(why))
                }
                Cut::Over | Cut::Failed(_) | Cut::Truncated => {
                    out.finding(format!("approval {:?} was never settled", ask.wire));
                    let why = Text::from("the agent never said how it was settled");
                    (AskClose::Fault(why.clone()), Decider::Fault(why))
                }
            };
            out.infer(What::AskClosed { ask: ask.ask, how });
            let refused = if matches!(cut, Cut::Cancelled) {
                ToolOutcome::Cancelled
            } else {
                ToolOutcome::Denied(by.clone())
            };
            self.decide(ask.call, by, Some(refused), out);
        }
    }
}
