//! What stands in one run: a turn with its step, and the message that is streamed. None of it is told by the wire.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Out;
use crate::json::{self, Kind as Json, Raw};
use crate::protocol::heard::{message, no_model};
use crate::vocab::*;

/// What a block takes beside its text.
const BLOCK_BYTES: usize = 64;

/// One run's part of the stream.
#[derive(Debug)]
pub(super) struct Region {
    run: RunId,
    turn: TurnId,
    step: StepId,
    /// Steps so far.
    steps: u32,
    /// The open step has had its request.
    asked: bool,
    /// A reply has said that it is cancelled: nothing in it ends otherwise.
    bound: bool,
    request: Option<Request>,
    /// Calls whose arguments were written in the open step, and that haven't begun.
    written: Vec<CallId>,
    began_us: u64,
    open: Option<Reply>,
    most: usize,
}

/// The request that is open.
#[derive(Clone, Copy, Debug)]
struct Request {
    id: RequestId,
    began_us: u64,
}

/// The message that is open.
#[derive(Debug)]
struct Reply {
    id: MessageId,
    blocks: Vec<Arc<Block>>,
    block: Option<Piece>,
    next: u32,
    bytes: usize,
    over: bool,
}

/// The block that is open.
#[derive(Debug)]
struct Piece {
    kind: Kind,
    text: String,
    /// Of arguments: the call, its id on the wire and its name.
    call: Option<(CallId, Text, Text)>,
}

impl Region {
    /// A run's turn and its first step.
    pub(super) fn begin(run: RunId, cause: Cause, most: usize, out: &mut Out) -> Region {
        let (turn, step) = (out.ids.turn(), out.ids.step());
        out.event(run, Seen::Inferred, What::TurnStarted { turn, cause });
        let number = 1;
        out.event(run, Seen::Inferred, What::StepStarted { step, number });
        Region {
            run,
            turn,
            step,
            steps: 1,
            asked: false,
            bound: false,
            request: None,
            written: Vec::new(),
            began_us: out.now().mono_us,
            open: None,
            most,
        }
    }

    /// It was said to be cancelled.
    pub(super) fn bind(&mut self) {
        self.bound = true;
    }

    /// Steps so far.
    pub(super) fn steps(&self) -> u32 {
        self.steps
    }

    /// A request is open: what comes can only belong to one. Each is a step of its own, since retries aren't told.
    fn open_request(&mut self, out: &mut Out) -> RequestId {
        if let Some(request) = self.request {
            return request.id;
        }
        if core::mem::replace(&mut self.asked, true) {
            self.end_step(out);
            self.step = out.ids.step();
            self.steps = self.steps.saturating_add(1);
            let (step, number) = (self.step, self.steps);
            self.infer(What::StepStarted { step, number }, out);
        }
        let id = out.ids.request();
        let attempt = 1;
        self.infer(
            What::RequestStarted {
                request: id,
                attempt,
            },
            out,
        );
        let began_us = out.now().mono_us;
        self.request = Some(Request { id, began_us });
        id
    }

    /// The step is over: what was written in it and didn't begin never will. In a stage that is its answer.
    fn end_step(&mut self, out: &mut Out) {
        let why = if self.bound {
            SkipWhy::Cancelled
        } else {
            SkipWhy::TurnOver
        };
        for call in core::mem::take(&mut self.written) {
            self.infer(What::ToolSkipped { call, why }, out);
        }
        self.infer(What::StepEnded { step: self.step }, out);
    }

    /// A call that was written begins; false: it wasn't, or can't any more.
    pub(super) fn starts(&mut self, call: CallId) -> bool {
        let at = self.written.iter().position(|written| *written == call);
        at.map(|at| self.written.remove(at)).is_some()
    }

    /// What a request took is told: the request and its message are over.
    pub(super) fn usage(
        &mut self,
        outcome: RequestOutcome,
        model: ModelRef,
        usage: Option<Usage>,
        cost: Cost,
        out: &mut Out,
    ) {
        self.open_request(out);
        let (stop, outcome) = if self.bound {
            (Stop::Cancelled, RequestOutcome::Cancelled)
        } else {
            (Stop::NotSaid, outcome)
        };
        self.end_reply(stop, out);
        let Some(request) = self.request.take() else {
            return;
        };
        let what = What::RequestEnded {
            request: request.id,
            outcome,
            model,
            usage,
            cost,
            api_us: out.now().mono_us.saturating_sub(request.began_us),
        };
        self.say(what, out);
    }

    pub(super) fn run(&self) -> RunId {
        self.run
    }

    pub(super) fn turn(&self) -> TurnId {
        self.turn
    }

    pub(super) fn infer(&self, what: What, out: &mut Out) {
        out.event(self.run, Seen::Inferred, what);
    }

    pub(super) fn say(&self, what: What, out: &mut Out) {
        out.event(self.run, Seen::Real, what);
    }

    fn reply(&mut self, out: &mut Out) -> &mut Reply {
        let run = self.run;
        let request = self.open_request(out);
        self.open.get_or_insert_with(|| {
            let id = out.ids.message();
            let what = What::MessageStarted {
                message: id,
                request: Some(request),
                provider_id: None,
                model: None,
                usage: None,
            };
            out.event(run, Seen::Inferred, what);
            Reply {
                id,
                blocks: Vec::new(),
                block: None,
                next: 0,
                bytes: 0,
                over: false,
            }
        })
    }

    /// A piece of text or of reasoning. Allocates nothing beyond what is kept.
    pub(super) fn delta(&mut self, kind: Kind, text: &str, out: &mut Out) {
        if text.is_empty() {
            return;
        }
        let (run, most) = (self.run, self.most);
        let reply = self.reply(out);
        if reply.block.as_ref().is_none_or(|open| open.kind != kind) {
            reply.end_block(run, out);
            let head = match kind {
                Kind::Thinking => BlockHead::Thinking,
                Kind::Text | Kind::Signature | Kind::Input | Kind::Opaque => BlockHead::Text,
            };
            reply.start_block(run, kind, head, None, out);
        }
        out.delta(run, reply.id, reply.next, kind, text);
        reply.keep(text, most, out);
    }

    /// Arguments begin. Gives the call, and where it stands.
    pub(super) fn call(
        &mut self,
        wire: &str,
        name: &str,
        out: &mut Out,
    ) -> (CallId, MessageId, u32) {
        let run = self.run;
        let call = out.ids.call();
        let reply = self.reply(out);
        reply.end_block(run, out);
        let head = BlockHead::ToolUse {
            call,
            provider_id: (!wire.is_empty()).then(|| wire.into()),
            name: name.into(),
            // Until it is shown that no tool ran.
            runs: true,
        };
        let named = Some((call, wire.into(), name.into()));
        reply.start_block(run, Kind::Input, head, named, out);
        let place = (call, reply.id, reply.next);
        self.written.push(call);
        place
    }

    /// A piece of the arguments of this call; false: its block isn't open.
    pub(super) fn argument(&mut self, call: CallId, text: &str, out: &mut Out) -> bool {
        let (run, most) = (self.run, self.most);
        let Some(reply) = &mut self.open else {
            return false;
        };
        let is_open = reply
            .block
            .as_ref()
            .and_then(|open| open.call.as_ref())
            .is_some_and(|(open, ..)| *open == call);
        if is_open && !text.is_empty() {
            out.delta(run, reply.id, reply.next, Kind::Input, text);
            reply.keep(text, most, out);
        }
        is_open
    }

    /// The open message is over, and its request with it, whose usage wasn't told.
    pub(super) fn end_message(&mut self, stop: Stop, out: &mut Out) {
        let stop = if self.bound { Stop::Cancelled } else { stop };
        let outcome = if stop == Stop::Cancelled {
            RequestOutcome::Cancelled
        } else {
            RequestOutcome::Complete { finish: "".into() }
        };
        self.end_reply(stop, out);
        if let Some(request) = self.request.take() {
            let what = What::RequestEnded {
                request: request.id,
                outcome,
                model: no_model(),
                usage: None,
                cost: Cost::NotSaid,
                api_us: out.now().mono_us.saturating_sub(request.began_us),
            };
            self.infer(what, out);
        }
    }

    fn end_reply(&mut self, stop: Stop, out: &mut Out) {
        let Some(mut reply) = self.open.take() else {
            return;
        };
        reply.end_block(self.run, out);
        let whole = message(
            reply.id,
            Role::Assistant,
            reply.blocks,
            Origin::Harness,
            out,
        );
        self.infer(
            What::MessageEnded {
                message: Arc::new(whole),
                stop,
                kept: true,
                calls: CallList::NotReported,
            },
            out,
        );
    }

    /// Everything of it is over; no call is open.
    pub(super) fn end(
        mut self,
        end: End,
        seen: Seen,
        answer: Option<TurnAnswer>,
        mut report: TurnReport,
        out: &mut Out,
    ) {
        let stop = if end.is_cancelled() {
            Stop::Cancelled
        } else {
            Stop::NotSaid
        };
        self.end_message(stop, out);
        self.bound |= end.is_cancelled();
        self.end_step(out);
        report.wall_us = out.now().mono_us.saturating_sub(self.began_us);
        let what = What::TurnEnded {
            turn: self.turn,
            end,
            answer,
            report: report.into(),
            pending: Pending::default(),
        };
        out.event(self.run, seen, what);
    }
}

impl Reply {
    fn start_block(
        &mut self,
        run: RunId,
        kind: Kind,
        head: BlockHead,
        call: Option<(CallId, Text, Text)>,
        out: &mut Out,
    ) {
        let seen = if call.is_some() {
            Seen::Real
        } else {
            Seen::Inferred
        };
        let (message, block) = (self.id, self.next);
        let what = What::BlockStarted {
            message,
            block,
            head,
        };
        out.event(run, seen, what);
        self.bytes = self.bytes.saturating_add(BLOCK_BYTES);
        self.block = Some(Piece {
            kind,
            text: String::new(),
            call,
        });
    }

    fn keep(&mut self, text: &str, most: usize, out: &mut Out) {
        let Some(open) = &mut self.block else { return };
        if self.over || self.bytes.saturating_add(text.len()) > most {
            if !core::mem::replace(&mut self.over, true) {
                out.finding("a reply is larger than what is kept; its deltas go on");
            }
            return;
        }
        self.bytes += text.len();
        open.text.push_str(text);
    }

    fn end_block(&mut self, run: RunId, out: &mut Out) {
        let Some(open) = self.block.take() else {
            return;
        };
        let content = match (open.call, open.kind) {
            (Some((call, wire, name)), _) => Block::ToolUse {
                call,
                provider_id: (!wire.is_empty()).then_some(wire),
                name,
                input: input_of(&open.text),
            },
            (None, Kind::Thinking) => Block::Thinking {
                text: open.text.into(),
                signature: None,
            },
            (None, Kind::Text | Kind::Signature | Kind::Input | Kind::Opaque) => {
                Block::Text(open.text.into())
            }
        };
        let content = Arc::new(content);
        let what = What::BlockEnded {
            message: self.id,
            block: self.next,
            content: content.clone(),
        };
        out.event(run, Seen::Inferred, what);
        self.next = self.next.saturating_add(1);
        if !self.over {
            self.blocks.push(content);
        }
    }
}

/// The arguments that a text is.
pub(super) fn input_of(text: &str) -> ToolInput {
    let read = json::scan_value(text.as_bytes(), &super::super::wire::RULES);
    match read {
        Ok(value) if value.kind() == Json::Object => ToolInput::Object(RawJson(text.into())),
        Ok(_) | Err(_) => ToolInput::Unparsed(text.into()),
    }
}

/// The arguments that a value is; a text is one that couldn't be read.
pub(super) fn input_of_value(value: Option<Raw<'_>>) -> ToolInput {
    match value {
        None => ToolInput::Object(RawJson("{}".into())),
        Some(value) => match value.string() {
            Some(text) => ToolInput::Unparsed((&*text).into()),
            None => input_of(value.as_str()),
        },
    }
}
