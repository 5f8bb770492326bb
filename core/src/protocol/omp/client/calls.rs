//! Calls of one run, and their ids on the wire.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Out;
use super::convert::output;
use super::flow::Cut;
use crate::protocol::omp::wire::Any;
use crate::vocab::*;

/// Ended calls that a subagent or a late line may still name.
const MOST_ENDED: usize = 256;
/// Open calls. An agent that never ends any is found out here.
const MOST_OPEN: usize = 4_096;

/// Calls. A provider may use an id of its own again in another reply.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Of the last whole reply, in order.
    listed: Vec<Listed>,
    open: Vec<OpenCall>,
    ended: VecDeque<(String, CallId)>,
    denied: Vec<CallId>,
    /// How many of `listed` may not begin any more, because a later one has.
    next: usize,
}

/// A call that a reply names.
#[derive(Debug)]
struct Listed {
    wire: String,
    call: CallId,
    name: Text,
    input: ToolInput,
    message: MessageId,
    block: u32,
    begun: bool,
}

#[derive(Debug)]
struct OpenCall {
    wire: String,
    call: CallId,
    name: Text,
    /// Questions about it that are open.
    asked: u32,
    /// How a question about it was refused: what a failure of it means.
    refused: Option<ToolOutcome>,
    /// The verdict was said.
    decided: bool,
}

impl Calls {
    /// A reply is whole, and names these calls; those of the one before are over.
    pub(super) fn list(&mut self, message: &Message, wires: &[(CallId, String)]) {
        self.listed.clear();
        self.next = 0;
        for (number, block) in message.content.iter().enumerate() {
            let Block::ToolUse {
                call, name, input, ..
            } = &**block
            else {
                continue;
            };
            let wire = wires.iter().find(|(of, _)| of == call);
            self.listed.push(Listed {
                wire: wire.map(|(_, wire)| wire.clone()).unwrap_or_default(),
                call: *call,
                name: name.clone(),
                input: input.clone(),
                message: message.id,
                block: u32::try_from(number).unwrap_or(u32::MAX),
                begun: false,
            });
        }
    }

    /// The reply was retracted, and its calls with it.
    pub(super) fn unlist(&mut self) {
        self.listed.clear();
    }

    /// The call of this id: an open one, or the last ended one.
    pub(super) fn known(&self, wire: &str) -> Option<CallId> {
        let open = self.open.iter().find(|open| open.wire == wire);
        open.map(|open| open.call).or_else(|| {
            let ended = self.ended.iter().rev().find(|(ended, _)| ended == wire);
            ended.map(|(_, call)| *call)
        })
    }

    pub(super) fn is_open(&self, wire: &str) -> bool {
        self.open.iter().any(|open| open.wire == wire)
    }

    pub(super) fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether a call of this id is named by the last reply, and hasn't begun.
    pub(super) fn waits(&self, wire: &str) -> bool {
        let waits = |listed: &Listed| !listed.begun && listed.wire == wire;
        self.listed.iter().any(waits)
    }

    /// The call that a question about a tool of this name is about: an open one that isn't asked about, else the next
    /// one of the reply, which is begun then.
    pub(super) fn named(&mut self, name: &str, at: Spot, out: &mut Out) -> Option<CallId> {
        let free = |open: &&OpenCall| *open.name == *name && open.asked == 0 && !open.decided;
        if let Some(open) = self.open.iter().find(free) {
            return Some(open.call);
        }
        let waits = |listed: &&Listed| !listed.begun && *listed.name == *name;
        let wire = self.listed.iter().find(waits)?.wire.clone();
        Some(self.begin(&wire, name, None, Seen::Inferred, at, out))
    }

    /// A call begins. One that is open already is the same.
    pub(super) fn begin(
        &mut self,
        wire: &str,
        name: &str,
        input: Option<ToolInput>,
        seen: Seen,
        at: Spot,
        out: &mut Out,
    ) -> CallId {
        if let Some(open) = self.open.iter().find(|open| open.wire == wire) {
            return open.call;
        }
        if self.open.len() >= MOST_OPEN {
            out.finding("too many calls are open; the oldest is given up");
            self.end_first(at.run, &Cut::Over, out);
        }
        let found = self
            .listed
            .iter()
            .position(|listed| !listed.begun && listed.wire == wire);
        let next = self.next;
        let (call, cause, input) =
            match found.and_then(|nth| Some((nth, self.listed.get_mut(nth)?))) {
                Some((nth, listed)) => {
                    listed.begun = true;
                    // A call that begins before an earlier one can't be placed in the reply.
                    let cause = if nth >= next && at.complete {
                        self.next = nth;
                        ToolCause::Model {
                            message: listed.message,
                            block: listed.block,
                        }
                    } else {
                        ToolCause::Agent
                    };
                    let input = input.or_else(|| Some(listed.input.clone()));
                    (listed.call, cause, input)
                }
                None => (out.ids.call(), ToolCause::Agent, input),
            };
        let name = Text::from(name);
        out.event(
            at.run,
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
            asked: 0,
            refused: None,
            decided: false,
        });
        call
    }

    pub(super) fn update(&mut self, run: RunId, wire: &str, partial: Any<'_>, out: &mut Out) {
        let Some(open) = self.open.iter().find(|open| open.wire == wire) else {
            return out.finding(format!(
                "news of call {wire:?}, which isn't open, is dropped"
            ));
        };
        let call = open.call;
        let (content, _, _) = output(partial);
        out.event(
            run,
            Seen::Real,
            What::ToolProgress {
                call,
                partial: Progress::Replace(content),
                elapsed_us: 0,
            },
        );
    }

    /// A call's end. `stopped`: a cancel is under way.
    pub(super) fn end(
        &mut self,
        run: RunId,
        wire: &str,
        result: Any<'_>,
        error: Option<bool>,
        stopped: bool,
        out: &mut Out,
    ) {
        let Some(at) = self.open.iter().position(|open| open.wire == wire) else {
            return;
        };
        let open = self.open.remove(at);
        let (content, details, says_error) = output(result);
        let outcome = if !error.unwrap_or(says_error) {
            ToolOutcome::Ok
        } else if let Some(refused) = open.refused {
            refused
        } else if stopped {
            ToolOutcome::Cancelled
        } else {
            ToolOutcome::Failed
        };
        if matches!(outcome, ToolOutcome::Denied(_)) && self.denied.len() < MOST_OPEN {
            self.denied.push(open.call);
        }
        out.event(
            run,
            Seen::Real,
            What::ToolEnded {
                call: open.call,
                outcome,
                content,
                show: details.map(|details| {
                    Show {
                        details: Some(details),
                        ..Show::default()
                    }
                    .into()
                }),
            },
        );
        self.remember(open.wire, open.call);
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

    fn end_first(&mut self, run: RunId, cut: &Cut, out: &mut Out) {
        if self.open.is_empty() {
            return;
        }
        let open = self.open.remove(0);
        let outcome = open.refused.unwrap_or(match cut {
            Cut::Cancelled | Cut::Detached => ToolOutcome::Cancelled,
            Cut::Over | Cut::Failed(_) | Cut::Gone(_) => ToolOutcome::NotSaid,
        });
        out.event(
            run,
            Seen::Inferred,
            What::ToolEnded {
                call: open.call,
                outcome,
                content: Vec::new(),
                show: None,
            },
        );
        self.remember(open.wire, open.call);
    }

    /// Ends everything that is open, and skips what never began: the step is over. The questions about them are closed.
    pub(super) fn end_all(&mut self, run: RunId, cut: &Cut, out: &mut Out) {
        if matches!(cut, Cut::Over) {
            for open in &self.open {
                out.finding(format!("call {:?} never ended", open.wire));
            }
        }
        while self.any_open() {
            self.end_first(run, cut, out);
        }
        let why = match cut {
            Cut::Cancelled | Cut::Detached => SkipWhy::Cancelled,
            Cut::Failed(_) => SkipWhy::Truncated,
            Cut::Over | Cut::Gone(_) => SkipWhy::TurnOver,
        };
        for listed in core::mem::take(&mut self.listed) {
            if !listed.begun {
                let call = listed.call;
                out.event(run, Seen::Inferred, What::ToolSkipped { call, why });
            }
        }
    }

    /// A result of a call that never began: the call was skipped, or its frames were hidden.
    pub(super) fn result(
        &mut self,
        wire: &str,
        name: &str,
        result: Any<'_>,
        error: Option<bool>,
        at: Spot,
        out: &mut Out,
    ) {
        let waits = |listed: &Listed| !listed.begun && listed.wire == wire;
        let Some(listed) = self.listed.iter_mut().find(|listed| waits(listed)) else {
            return;
        };
        if error == Some(true) {
            listed.begun = true;
            let (call, why) = (
                listed.call,
                if at.stopped {
                    SkipWhy::Cancelled
                } else if at.complete {
                    SkipWhy::TurnOver
                } else {
                    SkipWhy::Truncated
                },
            );
            return out.event(at.run, Seen::Real, What::ToolSkipped { call, why });
        }
        self.begin(wire, name, None, Seen::Inferred, at, out);
        self.end(at.run, wire, result, error, at.stopped, out);
    }

    /// A question about a call is open.
    pub(super) fn ask(&mut self, call: CallId) {
        if let Some(open) = self.open.iter_mut().find(|open| open.call == call) {
            open.asked = open.asked.saturating_add(1);
        }
    }

    /// A question about a call is closed: the verdict on it, once nothing about it is asked any more. `refused`: what
    /// its failure will mean.
    pub(super) fn decide(
        &mut self,
        run: RunId,
        call: CallId,
        by: Decider,
        refused: Option<ToolOutcome>,
        out: &mut Out,
    ) {
        let Some(open) = self.open.iter_mut().find(|open| open.call == call) else {
            return;
        };
        open.asked = open.asked.saturating_sub(1);
        if refused.is_some() {
            open.refused = refused;
        }
        if open.asked > 0 || core::mem::replace(&mut open.decided, true) {
            return;
        }
        out.event(
            run,
            Seen::Inferred,
            What::Decided {
                call,
                verdict: Verdict {
                    allow: open.refused.is_none(),
                    by,
                    input: None,
                    reason: None,
                    risk: None,
                    block: None,
                },
            },
        );
    }
}

/// Where calls begin: the run, and what is known of the reply that made them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub run: RunId,
    /// The reply's request ended with a completion signal.
    pub complete: bool,
    /// A cancel is under way.
    pub stopped: bool,
}
