//! Calls of all runs, and their ids on the wire.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Out;
use super::flow::Cut;
use crate::vocab::*;

/// Ended calls that a late line may still name.
const MOST_ENDED: usize = 256;
/// Open calls. An agent that never ends any is found out here.
const MOST_OPEN: usize = 4_096;

/// Calls. An agent may begin one while the reply that makes it is still streaming.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Of the open reply, or the last whole one, of each run.
    listed: Vec<Listed>,
    open: Vec<OpenCall>,
    ended: VecDeque<(String, CallId)>,
    denied: Vec<CallId>,
}

/// A call that a reply names.
#[derive(Debug)]
struct Listed {
    run: RunId,
    wire: String,
    call: CallId,
    name: Text,
    input: ToolInput,
    message: MessageId,
    block: u32,
    begun: bool,
    /// A later one of the same reply has begun.
    late: bool,
}

#[derive(Debug)]
struct OpenCall {
    run: RunId,
    wire: String,
    call: CallId,
    name: Text,
    /// Permissions that are open.
    asked: u32,
    /// How a question about it was refused: what a failure of it means.
    refused: Option<ToolOutcome>,
    /// A hook's word on it, which is its verdict if nobody else's comes.
    hooked: Option<(Decider, bool)>,
    /// The verdict was said.
    decided: bool,
}

/// What is known where a call begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub run: RunId,
    /// The reply that would have made it is still open, or its request ended with a completion signal.
    pub placed: bool,
    /// A cancel is under way.
    pub stopped: bool,
}

/// What a tool gave back.
#[derive(Debug)]
pub(super) struct Given {
    pub content: Vec<Block>,
    pub error: bool,
    pub details: Option<RawJson>,
}

impl Calls {
    /// A reply names a call.
    pub(super) fn list(
        &mut self,
        run: RunId,
        (message, number): (MessageId, u32),
        wire: &str,
        block: &Block,
    ) {
        let Block::ToolUse {
            call, name, input, ..
        } = block
        else {
            return;
        };
        if self.listed.len() >= MOST_OPEN {
            return;
        }
        self.listed.push(Listed {
            run,
            wire: wire.into(),
            call: *call,
            name: name.clone(),
            input: input.clone(),
            message,
            block: number,
            begun: false,
            late: false,
        });
    }

    /// The reply was retracted, and its calls that haven't begun with it.
    pub(super) fn unlist(&mut self, run: RunId) {
        self.listed.retain(|listed| listed.run != run);
    }

    /// The call of this id: an open one, one that a reply names, or the last ended one.
    pub(super) fn known(&self, wire: &str) -> Option<CallId> {
        let open = self.open.iter().find(|open| open.wire == wire);
        open.map(|open| open.call)
            .or_else(|| {
                let listed = self.listed.iter().rev();
                let mut waits = listed.filter(|listed| !listed.begun && listed.wire == wire);
                waits.next().map(|listed| listed.call)
            })
            .or_else(|| {
                let ended = self.ended.iter().rev().find(|(ended, _)| ended == wire);
                ended.map(|(_, call)| *call)
            })
    }

    /// The run of a call that is open, or that a reply names.
    pub(super) fn run_of(&self, wire: &str) -> Option<RunId> {
        let open = self.open.iter().find(|open| open.wire == wire);
        open.map(|open| open.run).or_else(|| {
            let listed = self.listed.iter().rev().find(|listed| listed.wire == wire);
            listed.map(|listed| listed.run)
        })
    }

    pub(super) fn is_open(&self, wire: &str) -> bool {
        self.open.iter().any(|open| open.wire == wire)
    }

    pub(super) fn any_open(&self, run: RunId) -> bool {
        self.open.iter().any(|open| open.run == run)
    }

    /// Whether a call of the run is open, or hasn't begun.
    pub(super) fn is_busy(&self, run: RunId) -> bool {
        let mut listed = self.listed.iter();
        self.any_open(run) || listed.any(|listed| listed.run == run && !listed.begun)
    }

    /// Whether a call of this id is named by a reply, and hasn't begun.
    pub(super) fn waits(&self, wire: &str) -> bool {
        let waits = |listed: &Listed| !listed.begun && listed.wire == wire;
        self.listed.iter().any(waits)
    }

    /// The wire's id of the open call that a tool of this name runs for, or of the next one that a reply names.
    pub(super) fn named(&self, name: &str) -> Option<String> {
        let open = self.open.iter().find(|open| *open.name == *name);
        open.map(|open| open.wire.clone()).or_else(|| {
            let waits = |listed: &&Listed| !listed.begun && *listed.name == *name;
            let listed = self.listed.iter().find(waits);
            listed.map(|listed| listed.wire.clone())
        })
    }

    /// A call begins. One that is open already is the same. `input`: what is known better than by the reply.
    pub(super) fn begin(
        &mut self,
        wire: &str,
        name: &str,
        input: Option<ToolInput>,
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
            .iter_mut()
            .find(|listed| !listed.begun && listed.wire == wire);
        let (run, call, cause, name, input) = match found {
            Some(listed) => {
                listed.begun = true;
                // A call that begins before an earlier one can't be placed in the reply.
                let cause = if at.placed && !listed.late {
                    ToolCause::Model {
                        message: listed.message,
                        block: listed.block,
                    }
                } else {
                    ToolCause::Agent
                };
                let input = input.or_else(|| Some(listed.input.clone()));
                let (run, call, message, block) =
                    (listed.run, listed.call, listed.message, listed.block);
                let name = listed.name.clone();
                if cause != ToolCause::Agent {
                    let earlier = self.listed.iter_mut();
                    for other in
                        earlier.filter(|other| other.message == message && other.block < block)
                    {
                        other.late = true;
                    }
                }
                (run, call, cause, name, input)
            }
            None => (
                at.run,
                out.ids.call(),
                ToolCause::Agent,
                Text::from(name),
                input,
            ),
        };
        out.event(
            run,
            Seen::Inferred,
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
            run,
            wire: wire.into(),
            call,
            name,
            asked: 0,
            refused: None,
            hooked: None,
            decided: false,
        });
        call
    }

    /// It still runs.
    pub(super) fn progress(&mut self, wire: &str, elapsed_us: u64, out: &mut Out) {
        let Some(open) = self.open.iter().find(|open| open.wire == wire) else {
            return;
        };
        let (run, call) = (open.run, open.call);
        let partial = Progress::Alive;
        out.event(
            run,
            Seen::Real,
            What::ToolProgress {
                call,
                partial,
                elapsed_us,
            },
        );
    }

    /// A call's end. `stopped`: a cancel is under way.
    pub(super) fn end(&mut self, wire: &str, given: Given, stopped: bool, out: &mut Out) {
        let Some(at) = self.open.iter().position(|open| open.wire == wire) else {
            return;
        };
        let mut open = self.open.remove(at);
        open.decide_by_hook(out);
        let outcome = if !given.error {
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
            open.run,
            Seen::Real,
            What::ToolEnded {
                call: open.call,
                outcome,
                content: given.content,
                show: given.details.map(|details| {
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

    /// The result says that a call was denied.
    pub(super) fn was_denied(&mut self, wire: &str) {
        if let Some(call) = self.known(wire)
            && !self.denied.contains(&call)
            && self.denied.len() < MOST_OPEN
        {
            self.denied.push(call);
        }
    }

    fn remember(&mut self, wire: String, call: CallId) {
        if self.ended.len() >= MOST_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((wire, call));
    }

    fn end_first(&mut self, run: RunId, cut: &Cut, out: &mut Out) {
        let Some(at) = self.open.iter().position(|open| open.run == run) else {
            return;
        };
        let mut open = self.open.remove(at);
        open.decide_by_hook(out);
        let outcome = open.refused.unwrap_or(match cut {
            Cut::Cancelled => ToolOutcome::Cancelled,
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

    /// Ends everything of a run that is open, and skips what never began: the step is over. The questions about them
    /// are closed.
    pub(super) fn end_all(&mut self, run: RunId, cut: &Cut, out: &mut Out) {
        if matches!(cut, Cut::Over) {
            for open in self.open.iter().filter(|open| open.run == run) {
                out.finding(format!("call {:?} never ended", cut_id(&open.wire)));
            }
        }
        while self.any_open(run) {
            self.end_first(run, cut, out);
        }
        let why = match cut {
            Cut::Cancelled => SkipWhy::Cancelled,
            Cut::Failed(_) => SkipWhy::Truncated,
            Cut::Over | Cut::Gone(_) => SkipWhy::TurnOver,
        };
        let (over, others) = core::mem::take(&mut self.listed)
            .into_iter()
            .partition(|listed| listed.run == run);
        self.listed = others;
        let over: Vec<Listed> = over;
        for listed in over {
            if !listed.begun {
                let call = listed.call;
                out.event(run, Seen::Inferred, What::ToolSkipped { call, why });
            }
        }
    }

    /// A result of a call that never began, while a cancel is under way: it was skipped. Whether it was one.
    pub(super) fn skip(&mut self, wire: &str, out: &mut Out) -> bool {
        let waits = |listed: &&mut Listed| !listed.begun && listed.wire == wire;
        let Some(listed) = self.listed.iter_mut().find(waits) else {
            return false;
        };
        listed.begun = true;
        let (run, call, why) = (listed.run, listed.call, SkipWhy::Cancelled);
        out.event(run, Seen::Real, What::ToolSkipped { call, why });
        true
    }

    fn find(&mut self, call: CallId) -> Option<&mut OpenCall> {
        self.open.iter_mut().find(|open| open.call == call)
    }

    /// A permission for a call is asked.
    pub(super) fn ask(&mut self, call: CallId) {
        if let Some(open) = self.find(call) {
            open.asked = open.asked.saturating_add(1);
        }
    }

    /// What a hook of the host's has said about an open call.
    pub(super) fn verdict(&self, call: CallId) -> Option<(Decider, bool)> {
        let open = self.open.iter().find(|open| open.call == call);
        open.and_then(|open| open.hooked.clone())
    }

    /// A hook has spoken about a call.
    pub(super) fn hooked(&mut self, call: CallId, by: Decider, allow: bool) {
        if let Some(open) = self.find(call) {
            if !allow {
                open.refused = Some(ToolOutcome::Denied(by.clone()));
            }
            open.hooked = Some((by, allow));
        }
    }

    /// A permission for a call is closed: the verdict on it, once none is open any more. `refused`: what its failure will
    /// mean.
    pub(super) fn decide(
        &mut self,
        call: CallId,
        by: Decider,
        refused: Option<ToolOutcome>,
        input: Option<RawJson>,
        out: &mut Out,
    ) {
        let Some(open) = self.find(call) else {
            return;
        };
        open.asked = open.asked.saturating_sub(1);
        if refused.is_some() {
            open.refused = refused;
        }
        if open.asked == 0 {
            open.decided(by, open.refused.is_none(), input, None, Seen::Inferred, out);
        }
    }

    /// The agent says that a call was denied without asking anybody.
    pub(super) fn deny(&mut self, wire: &str, by: Decider, reason: Text, out: &mut Out) {
        if let Some(open) = self.open.iter_mut().find(|open| open.wire == wire) {
            open.refused = Some(ToolOutcome::Denied(by.clone()));
            if open.asked == 0 {
                open.decided(by, false, None, Some(reason), Seen::Real, out);
            }
        }
    }
}

impl OpenCall {
    fn decided(
        &mut self,
        by: Decider,
        allow: bool,
        input: Option<RawJson>,
        reason: Option<Text>,
        seen: Seen,
        out: &mut Out,
    ) {
        if core::mem::replace(&mut self.decided, true) {
            return;
        }
        out.event(
            self.run,
            seen,
            What::Decided {
                call: self.call,
                verdict: Verdict {
                    allow,
                    by,
                    input,
                    reason,
                    risk: None,
                    block: None,
                },
            },
        );
    }

    /// A call that is over was decided by the hook that spoke about it, if by nobody else.
    fn decide_by_hook(&mut self, out: &mut Out) {
        if let Some((by, allow)) = self.hooked.take() {
            self.decided(by, allow, None, None, Seen::Inferred, out);
        }
    }
}

/// An id as it is shown in a finding.
pub(super) fn cut_id(id: &str) -> String {
    crate::protocol::heard::cut(id)
}
