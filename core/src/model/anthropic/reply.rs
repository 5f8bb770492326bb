//! Replies of the Messages API: events of a stream, or one whole message.

use alloc::{string::String, vec::Vec};

use crate::json::{self, Kind, Members, Raw};
use crate::model::RULES;
use crate::model::piece::{Channel, Pieces};
use crate::model::reply::{Emit, Verdict, over_limit, reported};
use crate::model::wire::{ErrorWire, Said, count, elements, given, quoted, wire_object, word};
use crate::vocab::{ModelChunk, Usage};

wire_object! {
    /// Any event of a stream.
    EventWire {
        class("type"): Raw<'a>,
        index("index"): Raw<'a>,
        message("message"): Raw<'a>,
        content_block("content_block"): BlockWire<'a>,
        delta("delta"): DeltaWire<'a>,
        usage("usage"): UsageWire<'a>,
        error("error"): Raw<'a>,
    }
}

wire_object! {
    /// A message: the head of a stream, or a whole reply.
    MessageWire {
        class("type"): Raw<'a>,
        id("id"): Raw<'a>,
        model("model"): Raw<'a>,
        content("content"): Raw<'a>,
        stop_reason("stop_reason"): Raw<'a>,
        usage("usage"): UsageWire<'a>,
        error("error"): Raw<'a>,
    }
}

wire_object! {
    /// A content block.
    BlockWire {
        class("type"): Raw<'a>,
        text("text"): Raw<'a>,
        thinking("thinking"): Raw<'a>,
        signature("signature"): Raw<'a>,
        data("data"): Raw<'a>,
        id("id"): Raw<'a>,
        name("name"): Raw<'a>,
        input("input"): Raw<'a>,
    }
}

wire_object! {
    /// What is added to a block, or to the message.
    DeltaWire {
        text("text"): Raw<'a>,
        thinking("thinking"): Raw<'a>,
        signature("signature"): Raw<'a>,
        partial_json("partial_json"): Raw<'a>,
        stop_reason("stop_reason"): Raw<'a>,
    }
}

wire_object! {
    /// Token counts; the cached ones stand beside the input's.
    UsageWire {
        input("input_tokens"): Raw<'a>,
        cache_read("cache_read_input_tokens"): Raw<'a>,
        cache_write("cache_creation_input_tokens"): Raw<'a>,
        output("output_tokens"): Raw<'a>,
    }
}

/// The state of one reply.
#[derive(Debug)]
pub(in crate::model) struct Reply {
    calls: Vec<Call>,
    max_calls: usize,
    begun: bool,
    finished: bool,
    usage: Usage,
    members: Members,
}

#[derive(Debug)]
struct Call {
    /// The index of its block.
    block: Option<u64>,
    /// Arguments that came with the block's start; they count if no fragment follows.
    input: String,
    said: bool,
    ended: bool,
}

impl Reply {
    pub(in crate::model) fn new(max_calls: usize) -> Self {
        Self {
            calls: Vec::new(),
            max_calls,
            begun: false,
            finished: false,
            usage: Usage::default(),
            members: Members::new(),
        }
    }

    pub(in crate::model) fn is_finished(&self) -> bool {
        self.finished
    }

    /// One event of a stream; its type stands in the data, or else in the event's name.
    pub(in crate::model) fn event(
        &mut self,
        name: &str,
        data: &str,
        pieces: &mut Pieces,
        emit: &mut Emit<'_>,
    ) -> Verdict {
        let mut members = core::mem::take(&mut self.members);
        let event = json::scan(data.as_bytes(), &RULES, &mut members)
            .ok()
            .and_then(|object| object.decode::<EventWire<'_>>().ok());
        let verdict = event.map_or(Verdict::Noise, |event| self.told(name, event, pieces, emit));
        self.members = members;
        verdict
    }

    fn told(
        &mut self,
        name: &str,
        event: EventWire<'_>,
        pieces: &mut Pieces,
        emit: &mut Emit<'_>,
    ) -> Verdict {
        let class = word(event.class);
        let class = if class.is_empty() { name } else { &*class };
        let before = emit.given;
        // A stream that lost its head still begins before it says anything.
        if matches!(
            class,
            "content_block_start" | "content_block_delta" | "message_delta"
        ) {
            self.begin(None, None, emit);
        }
        match class {
            "message_start" => {
                let message = event
                    .message
                    .and_then(|raw| raw.decode::<MessageWire<'_>>().ok())
                    .unwrap_or_default();
                self.begin(message.id, message.model, emit);
                self.count(message.usage, emit);
            }
            "content_block_start" => {
                let block = event.content_block.unwrap_or_default();
                if self
                    .block_start(count(event.index), &block, pieces, emit)
                    .is_err()
                {
                    return Verdict::Failed(over_limit("tool calls", self.max_calls));
                }
            }
            "content_block_delta" => self.block_delta(
                count(event.index),
                &event.delta.unwrap_or_default(),
                pieces,
                emit,
            ),
            "content_block_stop" => self.block_stop(count(event.index), pieces, emit),
            "message_delta" => {
                self.count(event.usage, emit);
                let reason = word(event.delta.and_then(|delta| delta.stop_reason));
                if !reason.is_empty() {
                    self.finish(&reason, pieces, emit);
                }
            }
            "message_stop" => {
                self.done(pieces, emit);
                return Verdict::End;
            }
            "error" => {
                let said = event.error.and_then(Said::of_error);
                return reported(&said.unwrap_or_else(|| {
                    Said::of_members(&ErrorWire {
                        message: event.message,
                        ..ErrorWire::default()
                    })
                }));
            }
            _ => {
                if let Some(said) = event.error.and_then(Said::of_error) {
                    return reported(&said);
                }
            }
        }
        if emit.given == before {
            emit.give(ModelChunk::Alive);
        }
        Verdict::More
    }

    /// A message that isn't streamed.
    pub(in crate::model) fn plain(
        &mut self,
        value: Raw<'_>,
        pieces: &mut Pieces,
        emit: &mut Emit<'_>,
    ) -> Verdict {
        let Ok(message) = value.decode::<MessageWire<'_>>() else {
            return Verdict::Noise;
        };
        if let Some(said) = message.error.and_then(Said::of_error) {
            return reported(&said);
        }
        let Some(content) = message.content else {
            return Verdict::Noise;
        };
        self.begin(message.id, message.model, emit);
        for (index, block) in (0..).zip(elements(content)) {
            let block: BlockWire<'_> = block.decode().unwrap_or_default();
            if self.block_start(Some(index), &block, pieces, emit).is_err() {
                return Verdict::Failed(over_limit("tool calls", self.max_calls));
            }
            self.block_stop(Some(index), pieces, emit);
        }
        self.count(message.usage, emit);
        let reason = word(message.stop_reason);
        if !reason.is_empty() {
            self.finish(&reason, pieces, emit);
        }
        self.done(pieces, emit);
        Verdict::More
    }

    /// `message_stop`: a completion signal by itself.
    pub(in crate::model) fn done(&mut self, pieces: &mut Pieces, emit: &mut Emit<'_>) {
        if !self.finished {
            let word = if self.calls.is_empty() {
                "end_turn"
            } else {
                "tool_use"
            };
            self.finish(word, pieces, emit);
        }
    }

    /// Ends calls that came after the finish.
    pub(in crate::model) fn close(&mut self, emit: &mut Emit<'_>) {
        if self.finished {
            self.end_calls(emit);
        }
    }

    fn finish(&mut self, word: &str, pieces: &mut Pieces, emit: &mut Emit<'_>) {
        if self.finished {
            return;
        }
        emit.flush(pieces, None);
        self.end_calls(emit);
        self.finished = true;
        emit.give(ModelChunk::Finish(word));
    }

    fn begin(&mut self, id: Option<Raw<'_>>, model: Option<Raw<'_>>, emit: &mut Emit<'_>) {
        if !self.begun {
            self.begun = true;
            let (id, model) = (word(id), word(model));
            emit.give(ModelChunk::Begin {
                id: given(&id),
                model: given(&model),
            });
        }
    }

    fn block_start(
        &mut self,
        index: Option<u64>,
        block: &BlockWire<'_>,
        pieces: &mut Pieces,
        emit: &mut Emit<'_>,
    ) -> Result<(), TooManyCalls> {
        match &*word(block.class) {
            "text" => say(block.text, Channel::Text, pieces, emit),
            "thinking" => {
                say(block.thinking, Channel::Thinking, pieces, emit);
                sign(block.signature, pieces, emit);
            }
            "redacted_thinking" => {
                let data = word(block.data);
                if !data.is_empty() {
                    emit.flush(pieces, None);
                    emit.give(ModelChunk::Redacted(&data));
                }
            }
            "tool_use" => return self.call_start(index, block, pieces, emit),
            // Blocks of the server's own tools: nothing for us to do or to show.
            _ => {}
        }
        Ok(())
    }

    fn call_start(
        &mut self,
        block: Option<u64>,
        wire: &BlockWire<'_>,
        pieces: &mut Pieces,
        emit: &mut Emit<'_>,
    ) -> Result<(), TooManyCalls> {
        if self.calls.len() >= self.max_calls {
            return Err(TooManyCalls);
        }
        emit.flush(pieces, None);
        let (id, name) = (word(wire.id), word(wire.name));
        let id = (!id.is_empty()).then_some(&*id);
        emit.give(ModelChunk::CallBegin {
            index: number(self.calls.len()),
            id,
            name: &name,
        });
        let input = wire
            .input
            .filter(|raw| raw.kind() == Kind::Object)
            .map_or("", Raw::as_str);
        self.calls.push(Call {
            block,
            input: input.into(),
            said: false,
            ended: false,
        });
        Ok(())
    }

    fn block_delta(
        &mut self,
        index: Option<u64>,
        delta: &DeltaWire<'_>,
        pieces: &mut Pieces,
        emit: &mut Emit<'_>,
    ) {
        say(delta.text, Channel::Text, pieces, emit);
        say(delta.thinking, Channel::Thinking, pieces, emit);
        sign(delta.signature, pieces, emit);
        if let Some(quoted) = quoted(delta.partial_json)
            && let Some(at) = self.find(index)
            && let Some(call) = self.calls.get_mut(at).filter(|call| !call.ended)
        {
            let channel = Channel::Args(number(at));
            emit.flush(pieces, Some(channel));
            let text = pieces.text(channel, quoted);
            call.said |= !text.trim_ascii().is_empty();
            emit.give_text(channel, text);
        }
    }

    fn block_stop(&mut self, index: Option<u64>, pieces: &mut Pieces, emit: &mut Emit<'_>) {
        emit.flush(pieces, None);
        if let Some(at) = self.find(index)
            && let Some(call) = self.calls.get_mut(at)
        {
            call.end(number(at), emit);
        }
    }

    fn end_calls(&mut self, emit: &mut Emit<'_>) {
        for (at, call) in self.calls.iter_mut().enumerate() {
            call.end(number(at), emit);
        }
    }

    /// The latest call of a block; without an index, the latest of all.
    fn find(&self, index: Option<u64>) -> Option<usize> {
        match index {
            Some(_) => self.calls.iter().rposition(|call| call.block == index),
            None => self.calls.len().checked_sub(1),
        }
    }

    /// Counts grow in the course of a reply, and are left out where they don't change.
    fn count(&mut self, wire: Option<UsageWire<'_>>, emit: &mut Emit<'_>) {
        let Some(wire) = wire else { return };
        let usage = Usage {
            input: self.usage.input.max(count(wire.input)),
            cache_read: self.usage.cache_read.max(count(wire.cache_read)),
            cache_write: self.usage.cache_write.max(count(wire.cache_write)),
            output: self.usage.output.max(count(wire.output)),
            reasoning: None,
        };
        if usage != self.usage {
            self.usage = usage;
            emit.give(ModelChunk::Usage(usage));
        }
    }
}

impl Call {
    fn end(&mut self, index: u32, emit: &mut Emit<'_>) {
        if self.ended {
            return;
        }
        if !self.said {
            let text = if self.input.is_empty() {
                "{}"
            } else {
                &*self.input
            };
            emit.give(ModelChunk::CallArgs { index, text });
        }
        self.ended = true;
        emit.give(ModelChunk::CallEnd { index });
    }
}

/// More calls than the client takes.
struct TooManyCalls;

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn say(raw: Option<Raw<'_>>, channel: Channel, pieces: &mut Pieces, emit: &mut Emit<'_>) {
    if let Some(quoted) = quoted(raw) {
        emit.say(pieces, channel, quoted);
    }
}

fn sign(raw: Option<Raw<'_>>, pieces: &mut Pieces, emit: &mut Emit<'_>) {
    let signature = word(raw);
    if !signature.is_empty() {
        emit.flush(pieces, None);
        emit.give(ModelChunk::Signature(&signature));
    }
}
