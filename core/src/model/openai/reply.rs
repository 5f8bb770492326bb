//! Replies of the chat completions API: chunks of a stream, or one whole completion.

use alloc::borrow::Cow;

use crate::json::{self, Kind, Members, Raw};
use crate::model::RULES;
use crate::model::calls::{Args, Calls, Fragment, TooManyCalls};
use crate::model::piece::{Channel, Pieces};
use crate::model::reply::{Emit, Verdict, over_limit, reported};
use crate::model::wire::{
    ErrorWire, First, Said, count, elements, given, quoted, wire_object, word,
};
use crate::vocab::{ModelChunk, Usage};

wire_object! {
    /// A chunk of a stream, or a whole completion: the same but for `delta` and `message`.
    Chunk {
        id("id"): Raw<'a>,
        model("model"): Raw<'a>,
        choices("choices"): First<Choice<'a>>,
        usage("usage"): Raw<'a>,
        error("error"): Raw<'a>,
        object("object"): Raw<'a>,
        class("type"): Raw<'a>,
        message("message"): Raw<'a>,
        code("code"): Raw<'a>,
    }
}

wire_object! {
    /// The first choice; others are never asked for.
    Choice {
        delta("delta"): Delta<'a>,
        message("message"): Delta<'a>,
        finish_reason("finish_reason"): Raw<'a>,
        usage("usage"): Raw<'a>,
        error("error"): Raw<'a>,
    }
}

wire_object! {
    /// What a choice adds.
    Delta {
        content("content"): Raw<'a>,
        reasoning_content("reasoning_content"): Raw<'a>,
        reasoning("reasoning"): Raw<'a>,
        refusal("refusal"): Raw<'a>,
        tool_calls("tool_calls"): Raw<'a>,
    }
}

wire_object! {
    /// One element of a content list.
    Part {
        text("text"): Raw<'a>,
        thinking("thinking"): Raw<'a>,
        refusal("refusal"): Raw<'a>,
    }
}

wire_object! {
    /// A fragment of a tool call.
    ToolCall {
        index("index"): Raw<'a>,
        id("id"): Raw<'a>,
        function("function"): Function<'a>,
    }
}

wire_object! {
    /// The function that a call names.
    Function {
        name("name"): Raw<'a>,
        arguments("arguments"): Raw<'a>,
    }
}

wire_object! {
    /// Token counts. The cached ones are part of the prompt's.
    UsageWire {
        prompt("prompt_tokens"): Raw<'a>,
        completion("completion_tokens"): Raw<'a>,
        total("total_tokens"): Raw<'a>,
        prompt_details("prompt_tokens_details"): PromptDetails<'a>,
        completion_details("completion_tokens_details"): CompletionDetails<'a>,
        cache_hit("prompt_cache_hit_tokens"): Raw<'a>,
    }
}

wire_object! {
    /// What the prompt's tokens consist of.
    PromptDetails {
        cached("cached_tokens"): Raw<'a>,
        cache_write("cache_write_tokens"): Raw<'a>,
    }
}

wire_object! {
    /// What the completion's tokens consist of.
    CompletionDetails {
        reasoning("reasoning_tokens"): Raw<'a>,
    }
}

/// The state of one reply.
#[derive(Debug)]
pub(in crate::model) struct Reply {
    calls: Calls,
    max_calls: usize,
    begun: bool,
    finished: bool,
    usage: Option<Usage>,
    members: Members,
}

impl Reply {
    pub(in crate::model) fn new(max_calls: usize) -> Self {
        Self {
            calls: Calls::new(max_calls),
            max_calls,
            begun: false,
            finished: false,
            usage: None,
            members: Members::new(),
        }
    }

    pub(in crate::model) fn is_finished(&self) -> bool {
        self.finished
    }

    /// One event of a stream.
    pub(in crate::model) fn event(
        &mut self,
        data: &str,
        pieces: &mut Pieces,
        emit: &mut Emit<'_>,
    ) -> Verdict {
        let mut members = core::mem::take(&mut self.members);
        let chunk = json::scan(data.as_bytes(), &RULES, &mut members)
            .ok()
            .and_then(|object| object.decode::<Chunk<'_>>().ok());
        let verdict = chunk.map_or(Verdict::Noise, |chunk| {
            self.chunk(chunk, false, pieces, emit)
        });
        self.members = members;
        verdict
    }

    /// A completion that isn't streamed. Its finish is certain, since the body came whole.
    pub(in crate::model) fn plain(
        &mut self,
        value: Raw<'_>,
        pieces: &mut Pieces,
        emit: &mut Emit<'_>,
    ) -> Verdict {
        let Ok(chunk) = value.decode::<Chunk<'_>>() else {
            return Verdict::Noise;
        };
        let verdict = self.chunk(chunk, true, pieces, emit);
        if matches!(verdict, Verdict::More) {
            if !self.begun {
                return Verdict::Noise;
            }
            self.done(pieces, emit);
        }
        verdict
    }

    /// `[DONE]`: a completion signal by itself.
    pub(in crate::model) fn done(&mut self, pieces: &mut Pieces, emit: &mut Emit<'_>) {
        if !self.finished {
            let word = if self.calls.is_empty() {
                "stop"
            } else {
                "tool_calls"
            };
            self.finish(word, pieces, emit);
        }
    }

    /// Ends calls that came after the finish.
    pub(in crate::model) fn close(&mut self, emit: &mut Emit<'_>) {
        if self.finished {
            self.calls.finish(emit);
        }
    }

    fn finish(&mut self, word: &str, pieces: &mut Pieces, emit: &mut Emit<'_>) {
        emit.flush(pieces, None);
        self.calls.finish(emit);
        self.finished = true;
        emit.give(ModelChunk::Finish(word));
    }

    fn chunk(
        &mut self,
        chunk: Chunk<'_>,
        whole: bool,
        pieces: &mut Pieces,
        emit: &mut Emit<'_>,
    ) -> Verdict {
        if let Some(said) = error_of(&chunk) {
            return reported(&said);
        }
        let before = emit.given;
        let choice = chunk.choices.and_then(|first| first.0);
        self.begin(chunk.id, chunk.model, choice.is_some(), emit);
        let (mut finish, mut usage) = (Cow::Borrowed(""), chunk.usage);
        if let Some(choice) = choice {
            finish = word(choice.finish_reason);
            usage = usage.or(choice.usage);
            if let Some(delta) = choice.delta.or(choice.message)
                && self.delta(&delta, whole, pieces, emit).is_err()
            {
                return Verdict::Failed(over_limit("tool calls", self.max_calls));
            }
        }
        self.count(usage, emit);
        if !finish.is_empty() && !self.finished {
            self.finish(&finish, pieces, emit);
        }
        if emit.given == before {
            emit.give(ModelChunk::Alive);
        }
        Verdict::More
    }

    /// The reply begins with the first chunk that names it or says something; a filter's chunk does neither (D01).
    fn begin(
        &mut self,
        id: Option<Raw<'_>>,
        model: Option<Raw<'_>>,
        says: bool,
        emit: &mut Emit<'_>,
    ) {
        if self.begun {
            return;
        }
        let (id, model) = (word(id), word(model));
        if says || !id.is_empty() || !model.is_empty() {
            self.begun = true;
            emit.give(ModelChunk::Begin {
                id: given(&id),
                model: given(&model),
            });
        }
    }

    fn delta(
        &mut self,
        delta: &Delta<'_>,
        whole: bool,
        pieces: &mut Pieces,
        emit: &mut Emit<'_>,
    ) -> Result<(), TooManyCalls> {
        let thinking = [delta.reasoning_content, delta.reasoning]
            .into_iter()
            .filter_map(quoted)
            .find(|text| text.len() > 2);
        if let Some(thinking) = thinking {
            emit.say(pieces, Channel::Thinking, thinking);
        }
        if let Some(content) = delta.content {
            say_content(content, pieces, emit);
        }
        if let Some(refusal) = quoted(delta.refusal) {
            emit.say(pieces, Channel::Text, refusal);
        }
        match delta.tool_calls {
            None => Ok(()),
            Some(list) => elements(list)
                .into_iter()
                .enumerate()
                .try_for_each(|(place, call)| self.call(place, call, whole, pieces, emit)),
        }
    }

    fn call(
        &mut self,
        place: usize,
        call: Raw<'_>,
        whole: bool,
        pieces: &mut Pieces,
        emit: &mut Emit<'_>,
    ) -> Result<(), TooManyCalls> {
        // What isn't a call is passed over, like noise between chunks.
        let Ok(call) = call.decode::<ToolCall<'_>>() else {
            return Ok(());
        };
        let function = call.function.unwrap_or_default();
        let (id, name) = (word(call.id), word(function.name));
        let args = match (quoted(function.arguments), function.arguments) {
            (Some(text), _) => Args::Text(text),
            (None, Some(value)) if value.kind() == Kind::Object => Args::Value(value.as_str()),
            (None, _) => Args::None,
        };
        let fragment = Fragment {
            index: count(call.index),
            id: &id,
            name: &name,
            args,
            place,
            whole,
        };
        self.calls.take(&fragment, pieces, emit)
    }

    /// Reports token counts, if there are any and they are news. The buckets of [`Usage`] don't overlap.
    fn count(&mut self, usage: Option<Raw<'_>>, emit: &mut Emit<'_>) {
        let Some(wire) = usage.and_then(|raw| raw.decode::<UsageWire<'_>>().ok()) else {
            return;
        };
        let usage = disjoint(&wire);
        if usage != Usage::default() && self.usage != Some(usage) {
            self.usage = Some(usage);
            emit.give(ModelChunk::Usage(usage));
        }
    }
}

/// The error that a chunk reports: in a member of its own, or as the whole object.
fn error_of(chunk: &Chunk<'_>) -> Option<Said> {
    let in_choice = chunk
        .choices
        .as_ref()
        .and_then(|first| first.0.as_ref()?.error);
    if let Some(said) = [chunk.error, in_choice]
        .into_iter()
        .flatten()
        .find_map(Said::of_error)
    {
        return Some(said);
    }
    let is_error = word(chunk.object) == "error" || word(chunk.class) == "error";
    is_error.then(|| {
        let (message, code, class) = (chunk.message, chunk.code, chunk.class);
        Said::of_members(&ErrorWire {
            message,
            code,
            class,
            ..ErrorWire::default()
        })
    })
}

/// Content is a string; in some dialects a list of parts, each text or thinking.
fn say_content(content: Raw<'_>, pieces: &mut Pieces, emit: &mut Emit<'_>) {
    if let Some(text) = quoted(Some(content)) {
        emit.say(pieces, Channel::Text, text);
    } else if content.kind() == Kind::Array {
        say_parts(content, Channel::Text, pieces, emit);
    }
}

fn say_parts(list: Raw<'_>, channel: Channel, pieces: &mut Pieces, emit: &mut Emit<'_>) {
    for part in elements(list) {
        let part: Part<'_> = part.decode().unwrap_or_default();
        match part.thinking {
            // One level deep: a list of text parts.
            Some(inner) if inner.kind() == Kind::Array && channel == Channel::Text => {
                say_parts(inner, Channel::Thinking, pieces, emit)
            }
            thinking => {
                if let Some(text) = quoted(thinking) {
                    emit.say(pieces, Channel::Thinking, text);
                }
            }
        }
        for text in [quoted(part.text), quoted(part.refusal)]
            .into_iter()
            .flatten()
        {
            emit.say(pieces, channel, text);
        }
    }
}

fn disjoint(wire: &UsageWire<'_>) -> Usage {
    let details = wire.prompt_details.as_ref();
    let cache_read = details
        .and_then(|details| count(details.cached))
        .or(count(wire.cache_hit));
    let cache_write = details.and_then(|details| count(details.cache_write));
    let prompt = count(wire.prompt);
    let input = prompt.map(|tokens| {
        tokens
            .saturating_sub(cache_read.unwrap_or(0))
            .saturating_sub(cache_write.unwrap_or(0))
    });
    let completion = count(wire.completion);
    let reasoning = wire
        .completion_details
        .as_ref()
        .and_then(|details| count(details.reasoning));
    let output = completion.map(|tokens| match reasoning {
        Some(thought) if !is_beside(thought, tokens, prompt, count(wire.total)) => tokens - thought,
        Some(_) | None => tokens,
    });
    Usage {
        input,
        cache_read,
        cache_write,
        output,
        reasoning,
    }
}

/// Whether thinking is counted beside the completion instead of within it: it is more than all of it,
/// or the total only adds up that way.
fn is_beside(thought: u64, completion: u64, prompt: Option<u64>, total: Option<u64>) -> bool {
    let sum = prompt.and_then(|prompt| prompt.checked_add(completion)?.checked_add(thought));
    thought > completion || (thought > 0 && total.is_some() && sum == total)
}
