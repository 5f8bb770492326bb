//! Turn, step, request, message: what lies in what, in one run.

use alloc::string::String;

use super::{calls::Calls, *};

#[derive(Clone, Debug)]
pub(super) struct Region {
    scope: Scope,
    report: Report,
    turn: Option<Turn>,
    step: Option<Step>,
    request: Option<RequestId>,
    message: Option<Open>,
    compacting: bool,
    calls: Calls,
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    id: TurnId,
    steps: u32,
    cancelled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    id: StepId,
    attempts: u32,
    text_shown: bool,
    retry: Retry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    None,
    /// Scheduled; its attempt hasn't begun.
    Waiting,
    /// An attempt after the first runs, or has ended without success.
    Trying,
    /// That attempt completed, and the retry's end must say so.
    Won,
}

/// The open message.
#[derive(Clone, Debug)]
struct Open {
    id: MessageId,
    blocks: BTreeMap<u32, OpenBlock>,
}

#[derive(Clone, Debug, Default)]
struct OpenBlock {
    ended: bool,
    text: String,
}

impl Region {
    pub(super) fn new(scope: Scope) -> Self {
        Self {
            scope,
            report: Report::default(),
            turn: None,
            step: None,
            request: None,
            message: None,
            compacting: false,
            calls: Calls::default(),
        }
    }

    pub(super) fn turn(&self) -> Option<TurnId> {
        self.turn.map(|turn| turn.id)
    }

    pub(super) fn compacting(&self) -> bool {
        self.compacting
    }

    /// Whether a prompt may be applied into this turn now.
    pub(super) fn takes_prompts(&self, turn: TurnId) -> bool {
        self.turn() == Some(turn) && self.step.is_some_and(|step| step.attempts == 0)
    }

    pub(super) fn cancelled(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.cancelled = true;
        }
    }

    pub(super) fn asked(&mut self, call: CallId) {
        self.calls.asked(call);
    }

    pub(super) fn ask_closed(&mut self, call: CallId, how: &AskClose) {
        self.calls.ask_closed(call, how);
    }

    /// A call is handed to the driver. Whether it had begun.
    pub(super) fn ran(&mut self, call: CallId) -> bool {
        self.calls.ran(call, &mut self.report)
    }

    /// Moves what was found to the checker's report.
    pub(super) fn drain(&mut self, report: &mut Report) {
        for violation in self.report.found.drain(..) {
            report.breach(violation.breach);
        }
    }

    pub(super) fn event(&mut self, what: &What, main: bool) {
        match what {
            What::TurnStarted { turn, .. } => {
                self.overlap(self.turn.is_some(), Thing::Turn);
                self.turn = Some(Turn {
                    id: *turn,
                    steps: 0,
                    cancelled: false,
                });
            }
            What::TurnEnded { turn, end, .. } => self.turn_ended(*turn, end),
            What::StepStarted { step, number } => self.step_started(*step, *number, main),
            What::StepEnded { step } => self.step_ended(*step),
            What::RequestStarted { request, attempt } => self.request_started(*request, *attempt),
            What::RequestEnded {
                request, outcome, ..
            } => self.request_ended(*request, outcome),
            What::RetryScheduled { .. } => self.retry_scheduled(),
            What::RetryEnded { ok, .. } => self.retry_ended(*ok),
            What::MessageStarted {
                message, request, ..
            } => {
                self.overlap(self.message.is_some(), Thing::Message);
                let inside = self.request.is_some()
                    && request.is_none_or(|request| self.request == Some(request));
                self.report.check(inside, Breach::NotInside(Thing::Message));
                self.message = Some(Open {
                    id: *message,
                    blocks: BTreeMap::new(),
                });
            }
            What::BlockStarted { message, block, .. } => self.block_started(*message, *block),
            What::Delta {
                message,
                block,
                kind,
                text,
            } => self.delta(*message, *block, *kind, text),
            What::BlockEnded {
                message,
                block,
                content,
            } => self.block_ended(*message, *block, content),
            What::MessageEnded {
                message,
                kept,
                calls,
                ..
            } => self.message_ended(message, *kept, *calls),
            What::CompactionStarted { .. } => self.compaction_started(),
            What::CompactionEnded { .. } => {
                self.report
                    .check(self.compacting, Breach::EndWithoutStart(Thing::Compaction));
                self.compacting = false;
            }
            What::ToolStarted { call, cause, .. } => {
                let outside = self.step.is_none() && matches!(cause, ToolCause::Model { .. });
                self.report.check(!outside, Breach::NotInside(Thing::Call));
                let open = self.message.as_ref().map(|open| open.id);
                let early = self.scope == Scope::Any
                    && matches!(cause, ToolCause::Model { message, .. } if open == Some(*message));
                self.calls.started(*call, cause, early, &mut self.report);
            }
            What::Decided { call, verdict } => self.calls.decided(*call, verdict, &mut self.report),
            What::ToolEnded { call, .. } => self.calls.ended(*call, &mut self.report),
            What::ToolSkipped { call, .. } => self.calls.skipped(*call, &mut self.report),
            _ => {}
        }
    }

    fn overlap(&mut self, open: bool, thing: Thing) {
        self.report.check(!open, Breach::Overlap(thing));
    }

    fn turn_ended(&mut self, id: TurnId, end: &End) {
        let Some(turn) = self.turn.filter(|turn| turn.id == id) else {
            return self.report.breach(Breach::EndWithoutStart(Thing::Turn));
        };
        let open = [
            (self.step.is_some(), Thing::Step),
            (self.request.is_some(), Thing::Request),
            (self.message.is_some(), Thing::Message),
            (self.calls.any_open(), Thing::Call),
            (self.compacting, Thing::Compaction),
        ];
        for (_, thing) in open.into_iter().filter(|(open, _)| *open) {
            self.report.breach(Breach::StillOpen(thing));
        }
        self.report.check(
            !turn.cancelled || end.is_cancelled(),
            Breach::NotCancelled(id),
        );
        self.turn = None;
        self.step = None;
    }

    fn step_started(&mut self, id: StepId, number: u32, main: bool) {
        self.overlap(self.step.is_some(), Thing::Step);
        match &mut self.turn {
            Some(turn) => {
                turn.steps += 1;
                self.report
                    .check(turn.steps == number, Breach::WrongNumber(Thing::Step));
            }
            // The turns of a nested run stay inside it.
            None => self.report.check(!main, Breach::NotInside(Thing::Step)),
        }
        self.step = Some(Step {
            id,
            attempts: 0,
            text_shown: false,
            retry: Retry::None,
        });
    }

    fn step_ended(&mut self, id: StepId) {
        let Some(step) = self.step.filter(|step| step.id == id) else {
            return self.report.breach(Breach::EndWithoutStart(Thing::Step));
        };
        self.report
            .check(self.request.is_none(), Breach::StillOpen(Thing::Request));
        self.report
            .check(self.message.is_none(), Breach::StillOpen(Thing::Message));
        self.report
            .check(step.retry == Retry::None, Breach::RetryOpen);
        self.calls.step_ended(&mut self.report);
        self.step = None;
    }

    fn request_started(&mut self, id: RequestId, attempt: u32) {
        self.overlap(self.request.is_some(), Thing::Request);
        self.request = Some(id);
        let Some(step) = &mut self.step else {
            return self.report.breach(Breach::NotInside(Thing::Request));
        };
        step.attempts += 1;
        self.report.check(
            step.attempts == attempt,
            Breach::WrongNumber(Thing::Request),
        );
        if step.retry == Retry::Waiting {
            step.retry = Retry::Trying;
        }
    }

    fn request_ended(&mut self, id: RequestId, outcome: &RequestOutcome) {
        if self.request != Some(id) {
            return self.report.breach(Breach::EndWithoutStart(Thing::Request));
        }
        self.report
            .check(self.message.is_none(), Breach::RequestEndedFirst(id));
        self.request = None;
        let complete = matches!(outcome, RequestOutcome::Complete { .. });
        self.calls.request_ended(complete);
        if let (true, Some(turn)) = (complete, self.turn.filter(|turn| turn.cancelled)) {
            self.report.breach(Breach::SuccessAfterCancel(turn.id));
        }
        if let (true, Some(step)) = (complete, &mut self.step)
            && step.retry == Retry::Trying
        {
            step.retry = Retry::Won;
        }
    }

    fn retry_scheduled(&mut self) {
        let strict = self.scope == Scope::Session;
        let busy = self.request.is_some() || self.message.is_some();
        let Some(step) = &mut self.step else {
            return self.report.breach(Breach::NotInside(Thing::Retry));
        };
        self.report.check(!busy, Breach::Overlap(Thing::Request));
        self.report
            .check(step.retry != Retry::Waiting, Breach::Overlap(Thing::Retry));
        self.report.check(
            !(strict && step.text_shown),
            Breach::RetryAfterText(step.id),
        );
        step.retry = Retry::Waiting;
    }

    fn retry_ended(&mut self, ok: bool) {
        if let (true, Some(turn)) = (ok, self.turn.filter(|turn| turn.cancelled)) {
            self.report.breach(Breach::SuccessAfterCancel(turn.id));
        }
        let Some(step) = &mut self.step else {
            return self.report.breach(Breach::RetryWithout);
        };
        let fits = match step.retry {
            Retry::None => false,
            Retry::Waiting | Retry::Trying => !ok,
            Retry::Won => ok,
        };
        step.retry = Retry::None;
        self.report.check(fits, Breach::RetryWithout);
    }

    fn block_started(&mut self, id: MessageId, block: u32) {
        let Some(open) = self.message.as_mut().filter(|open| open.id == id) else {
            return self.report.breach(Breach::NotOpen(id));
        };
        let again = open.blocks.insert(block, OpenBlock::default()).is_some();
        self.report.check(!again, Breach::Overlap(Thing::Block));
    }

    pub(super) fn delta(&mut self, id: MessageId, block: u32, kind: Kind, text: &str) {
        self.report.check(!text.is_empty(), Breach::EmptyDelta(id));
        let open = self.message.as_mut().filter(|open| open.id == id);
        let Some(open) = open
            .and_then(|open| open.blocks.get_mut(&block))
            .filter(|block| !block.ended)
        else {
            return self.report.breach(Breach::NotOpen(id));
        };
        // A signature is no part of what its block says.
        if kind != Kind::Signature {
            open.text.push_str(text);
        }
        if let (Kind::Text, Some(step)) = (kind, &mut self.step) {
            step.text_shown |= !text.is_empty();
        }
    }

    fn block_ended(&mut self, id: MessageId, block: u32, content: &Block) {
        let open = self.message.as_mut().filter(|open| open.id == id);
        let Some(open) = open
            .and_then(|open| open.blocks.get_mut(&block))
            .filter(|block| !block.ended)
        else {
            return self.report.breach(Breach::NotOpen(id));
        };
        open.ended = true;
        let same = adds_up(content, &open.text);
        self.report
            .check(same || self.scope == Scope::Any, Breach::DeltasDiffer(id));
    }

    fn message_ended(&mut self, message: &Message, kept: bool, calls: CallList) {
        let Some(open) = self.message.take_if(|open| open.id == message.id) else {
            return self.report.breach(Breach::EndWithoutStart(Thing::Message));
        };
        if kept && self.scope == Scope::Session {
            let same = open.blocks.len() == message.content.len()
                && open
                    .blocks
                    .values()
                    .zip(&message.content)
                    .all(|(open, block)| adds_up(block, &open.text));
            self.report.check(same, Breach::DeltasDiffer(message.id));
        }
        self.calls
            .reply(kept.then_some(message), calls, self.request.is_some());
    }

    fn compaction_started(&mut self) {
        self.overlap(self.compacting, Thing::Compaction);
        self.compacting = true;
        let inside = [
            (self.request.is_some(), Thing::Request),
            (self.message.is_some(), Thing::Message),
            (self.calls.any_open(), Thing::Call),
        ];
        for (_, thing) in inside.into_iter().filter(|(open, _)| *open) {
            self.report.breach(Breach::CompactionInside(thing));
        }
    }
}

/// Whether deltas, joined, are a block. A call without any argument text has an empty object.
fn adds_up(block: &Block, deltas: &str) -> bool {
    match block {
        Block::Text(text) | Block::Thinking { text, .. } => **text == *deltas,
        Block::ToolUse { input, .. } => deltas.is_empty() || input.as_str() == deltas,
        Block::Redacted(_) | Block::Media { .. } | Block::ToolResult { .. } | Block::Opaque(_) => {
            true
        }
    }
}
