//! Calls and questions. A call is told of by its result alone, or before by a question, which names its tool and not the
//! call: the next result of that tool is its own.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Out;
use super::turn::Cut;
use crate::protocol::openseek::wire::{ApprovalRequested, ApprovalResolved};
use crate::vocab::*;

/// Open calls, and open questions. An engine that never ends any is found out here.
const MOST_OPEN: usize = 4_096;
/// Questions that were closed a short while ago.
const MOST_CLOSED: usize = 256;

/// The calls that were asked about, and the questions.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: Vec<OpenCall>,
    asks: Vec<OpenAsk>,
    last_ask: Option<AskId>,
    /// Ids of questions that are closed.
    closed: VecDeque<String>,
    /// Calls of the open turn that were denied.
    denied: Vec<CallId>,
    /// The engine was told to leave, and withdraws its questions.
    pub leaving: bool,
}

/// A call that has begun, because it was asked about.
#[derive(Debug)]
struct OpenCall {
    call: CallId,
    name: Text,
    /// How its question was refused: what a failure of it means.
    refused: Option<ToolOutcome>,
    decided: bool,
}

#[derive(Debug)]
struct OpenAsk {
    wire: String,
    ask: AskId,
    call: CallId,
    /// The answer that was written.
    answered: Option<bool>,
}

/// Whether a question can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answerable {
    /// Yes; its id on the wire, and its call.
    Yes(String, CallId),
    /// It is settled, or its answer is on its way.
    Settled,
    /// There was never one of this id.
    Unknown,
}

/// A result as it was told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub content: &'a str,
    pub brief: Option<&'a str>,
    pub outcome: Outcome,
}

/// What it says of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Ok,
    Error,
    Undecoded,
}

fn begin(wire: Option<&str>, name: &Text, cause: ToolCause, out: &mut Out) -> CallId {
    let call = out.ids.call();
    out.infer(What::ToolStarted {
        call,
        provider_id: wire.filter(|wire| !wire.is_empty()).map(Text::from),
        name: name.clone(),
        input: None,
        cause,
        side_effect: SideEffect::Unknown,
    });
    call
}

impl Calls {
    /// Takes the call that a result of this tool is about, if it was asked about.
    fn take_asked(&mut self, name: &str) -> Option<OpenCall> {
        let asks = &self.asks;
        let waits = |call: &OpenCall| asks.iter().any(|ask| ask.call == call.call);
        let mut all = self.open.iter();
        let at = all.position(|call| *call.name == *name && !waits(call))?;
        Some(self.open.remove(at))
    }

    /// Whether a result of this tool is about a call that has begun.
    pub(super) fn awaits(&self, name: &str) -> bool {
        let waits = |call: &OpenCall| self.asks.iter().any(|ask| ask.call == call.call);
        let mut all = self.open.iter();
        all.any(|call| *call.name == *name && !waits(call))
    }

    /// `tool_result`, `tool_call_decode_error`. `cause`: of a call that nothing was told of before.
    pub(super) fn result(&mut self, told: &Told<'_>, cause: ToolCause, out: &mut Out) {
        let known = self.take_asked(told.name);
        let (call, refused) = match known {
            Some(known) => (known.call, known.refused),
            None => (begin(Some(told.id), &told.name.into(), cause, out), None),
        };
        let outcome = match told.outcome {
            Outcome::Ok => ToolOutcome::Ok,
            Outcome::Undecoded => ToolOutcome::Invalid,
            Outcome::Error if told.content.starts_with(SKIPPED) => ToolOutcome::Cancelled,
            Outcome::Error => refused.unwrap_or(ToolOutcome::Failed),
        };
        if matches!(outcome, ToolOutcome::Denied(_)) && self.denied.len() < MOST_OPEN {
            self.denied.push(call);
        }
        let content = if told.content.is_empty() {
            Vec::new()
        } else {
            [Block::Text(told.content.into())].into()
        };
        let show = told.brief.map(|brief| Show {
            summary: Some(brief.into()),
            ..Show::default()
        });
        out.say(What::ToolEnded {
            call,
            outcome,
            content,
            show: show.map(Into::into),
        });
    }

    /// The calls that were denied since the last turn ended.
    pub(super) fn take_denied(&mut self) -> Vec<CallId> {
        core::mem::take(&mut self.denied)
    }

    /// Whether a question may be told of; if not, that is found.
    pub(super) fn may_ask(&self, line: &ApprovalRequested<'_>, out: &mut Out) -> bool {
        if self.asks.iter().any(|open| open.wire == *line.id) {
            out.finding(format!("approval {:?} was asked twice", &*line.id));
            return false;
        }
        if self.asks.len() >= MOST_OPEN || self.open.len() >= MOST_OPEN {
            out.finding("too many approvals are open; this one can't be answered");
            return false;
        }
        true
    }

    /// `approval_requested`: a call begins, of which its tool is told.
    pub(super) fn ask(&mut self, line: &ApprovalRequested<'_>, cause: ToolCause, out: &mut Out) {
        let name = Text::from(&*line.tool_name);
        let call = begin(None, &name, cause, out);
        let ask = out.ids.ask();
        self.last_ask = Some(ask);
        let body = PermissionAsk {
            call: Some(call),
            tool: name.clone(),
            reason: AskReason::Gate,
            summary: (&*line.detail).into(),
            detail: (&*line.detail).into(),
            body: line.body.get().map(Text::from),
            suggestions: Vec::new(),
            env: Vec::new(),
            due: None,
        };
        let body = Ask::Permission(body.into());
        out.say(What::Asked { ask, body });
        self.open.push(OpenCall {
            call,
            name,
            refused: None,
            decided: false,
        });
        self.asks.push(OpenAsk {
            wire: (&*line.id).into(),
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
    pub(super) fn answered(&mut self, ask: AskId, allow: bool) {
        if let Some(open) = self.asks.iter_mut().find(|open| open.ask == ask) {
            open.answered = Some(allow);
        }
    }

    fn remember(&mut self, wire: String) {
        if self.closed.len() >= MOST_CLOSED {
            self.closed.pop_front();
        }
        self.closed.push_back(wire);
    }

    /// `approval_resolved`
    pub(super) fn resolved(&mut self, line: &ApprovalResolved<'_>, out: &mut Out) {
        let Some(at) = self.asks.iter().position(|open| open.wire == *line.id) else {
            if !self.closed.iter().any(|wire| *wire == *line.id) {
                out.finding(format!("approval {:?} was resolved, not asked", &*line.id));
            }
            return;
        };
        let ask = self.asks.remove(at);
        // Who allowed, where nobody was asked: the engine was started so.
        let by = if ask.answered.is_some() {
            Decider::Host
        } else {
            Decider::Mode
        };
        let answered = |allow| AskClose::Answered {
            by: by.clone(),
            allow: Some(allow),
        };
        let (how, by, refused) = match &*line.outcome {
            "allowed_once" => (answered(true), by.clone(), None),
            "rejected" => {
                let refused = ToolOutcome::Denied(by.clone());
                (answered(false), by.clone(), Some(refused))
            }
            "cancelled" if self.leaving => (
                AskClose::HostGone,
                Decider::Closed,
                Some(ToolOutcome::Denied(Decider::Closed)),
            ),
            "cancelled" => (
                AskClose::Cancelled,
                Decider::Cancel,
                Some(ToolOutcome::Cancelled),
            ),
            word => {
                let why = Text::from(word);
                (
                    AskClose::Fault(why.clone()),
                    Decider::Fault(why.clone()),
                    Some(ToolOutcome::Denied(Decider::Fault(why))),
                )
            }
        };
        self.remember(ask.wire);
        out.say(What::AskClosed { ask: ask.ask, how });
        self.decide(ask.call, by, refused, out);
    }

    /// The verdict on a call. `refused`: what its failure will mean.
    fn decide(&mut self, call: CallId, by: Decider, refused: Option<ToolOutcome>, out: &mut Out) {
        let Some(open) = self.open.iter_mut().find(|open| open.call == call) else {
            return;
        };
        if core::mem::replace(&mut open.decided, true) {
            return;
        }
        let allow = refused.is_none();
        open.refused = refused;
        out.infer(What::Decided {
            call,
            verdict: Verdict {
                allow,
                by,
                input: None,
                reason: None,
                risk: None,
                block: None,
            },
        });
    }

    /// Ends everything that is open, in order: the engine never will.
    pub(super) fn end_all(&mut self, cut: &Cut, out: &mut Out) {
        for ask in core::mem::take(&mut self.asks) {
            let (how, by, refused) = match cut {
                Cut::Cancelled => (AskClose::Cancelled, Decider::Cancel, ToolOutcome::Cancelled),
                Cut::Gone(failure) => {
                    let why = failure.text.clone();
                    let by = Decider::Fault(why.clone());
                    (AskClose::Fault(why), by.clone(), ToolOutcome::Denied(by))
                }
                Cut::Over | Cut::Failed(_) => {
                    out.finding(format!("approval {:?} was never resolved", ask.wire));
                    let why = Text::from("the agent never said how it was resolved");
                    let by = Decider::Fault(why.clone());
                    (AskClose::Fault(why), by.clone(), ToolOutcome::Denied(by))
                }
            };
            out.infer(What::AskClosed { ask: ask.ask, how });
            self.remember(ask.wire);
            self.decide(ask.call, by, Some(refused), out);
        }
        for open in core::mem::take(&mut self.open) {
            let outcome = match cut {
                Cut::Cancelled => ToolOutcome::Cancelled,
                Cut::Over | Cut::Failed(_) | Cut::Gone(_) => {
                    open.refused.unwrap_or(ToolOutcome::NotSaid)
                }
            };
            out.infer(What::ToolEnded {
                call: open.call,
                outcome,
                content: Vec::new(),
                show: None,
            });
        }
    }

    /// The agent is gone.
    pub(super) fn gone(&mut self, failure: &Failure, out: &mut Out) {
        self.end_all(&Cut::Gone(failure.clone()), out);
    }
}

/// How the result of a call begins that never began.
const SKIPPED: &str = "skipped:";
