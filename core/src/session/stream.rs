//! Putting a streamed message together: blocks, deltas, calls, and the end of it (S-21 to S-23).

use alloc::{format, string::String, sync::Arc, vec::Vec};

use super::{
    Session, args,
    phase::{Attempt, Building, Slot, Stream, Turn},
    tools::Tool,
};
use crate::vocab::{
    Block, BlockHead, CallId, CallList, Effect, Failure, FailureKind, Kind, Message, MessageId,
    ModelChunk, Origin, RawJson, RequestId, Role, SkipWhy, Stop, Text, ToolInput, TurnAnswer, What,
};

/// What a chunk leads to.
pub(super) enum Step {
    /// More will come.
    More,
    /// The reply went over a limit of ours: stopped, truncated, never retried.
    OverLimit(Failure),
}

impl Session {
    /// A message begins with its first visible chunk.
    pub(super) fn start_message(&mut self, attempt: &Attempt) -> Stream {
        let message = MessageId(self.ids.message());
        self.text.clear();
        self.say(What::MessageStarted {
            message,
            request: Some(attempt.request),
            provider_id: attempt.provider_id.clone(),
            model: attempt.provider_model.clone(),
            usage: None,
        });
        Stream {
            message,
            slots: Vec::new(),
            open: None,
            bytes: 0,
            calls: 0,
            shown: false,
        }
    }

    /// A visible chunk of the open message.
    pub(super) fn stream_chunk(&mut self, stream: &mut Stream, chunk: &ModelChunk<'_>) -> Step {
        let limits = &self.config.limits;
        let bytes = match chunk {
            ModelChunk::Text(text)
            | ModelChunk::Thinking(text)
            | ModelChunk::Signature(text)
            | ModelChunk::Redacted(text) => text.len(),
            ModelChunk::CallArgs { text, .. } => text.len(),
            ModelChunk::CallBegin { name, id, .. } => name.len() + id.map_or(0, str::len),
            ModelChunk::Begin { .. }
            | ModelChunk::CallEnd { .. }
            | ModelChunk::Alive
            | ModelChunk::Usage(_)
            | ModelChunk::Finish(_)
            | ModelChunk::End
            | ModelChunk::Failed { .. } => 0,
        };
        stream.bytes = stream.bytes.saturating_add(bytes);
        if stream.bytes > limits.reply_bytes {
            return over_limit(format!(
                "the reply is longer than {} bytes",
                limits.reply_bytes
            ));
        }
        match chunk {
            ModelChunk::Text(text) => {
                stream.shown = true;
                let block = self.open_block(stream, Kind::Text);
                self.text.push_str(text);
                self.out
                    .delta(self.now, stream.message, block, Kind::Text, text);
            }
            ModelChunk::Thinking(text) => {
                // A signature signs the thinking before it; what follows is a block of its own.
                if let Some(Slot::Thinking { signature }) =
                    stream.open.and_then(|at| stream.slots.get(at))
                    && !signature.is_empty()
                {
                    self.close_block(stream);
                }
                let block = self.open_block(stream, Kind::Thinking);
                self.text.push_str(text);
                self.out
                    .delta(self.now, stream.message, block, Kind::Thinking, text);
            }
            ModelChunk::Signature(text) => {
                let block = self.open_block(stream, Kind::Thinking);
                if let Some(Slot::Thinking { signature }) =
                    stream.open.and_then(|at| stream.slots.get_mut(at))
                {
                    signature.push_str(text);
                }
                self.out
                    .delta(self.now, stream.message, block, Kind::Signature, text);
            }
            ModelChunk::Redacted(text) => {
                self.close_block(stream);
                let block = index(stream.slots.len());
                let content = Arc::new(Block::Redacted((*text).into()));
                self.say(What::BlockStarted {
                    message: stream.message,
                    block,
                    head: BlockHead::Redacted,
                });
                self.out
                    .delta(self.now, stream.message, block, Kind::Opaque, text);
                self.say(What::BlockEnded {
                    message: stream.message,
                    block,
                    content: content.clone(),
                });
                stream.slots.push(Slot::Closed(content));
            }
            ModelChunk::CallBegin {
                index: number,
                id,
                name,
            } => {
                if stream.calls >= limits.reply_calls {
                    return over_limit(format!(
                        "the reply names more than {} calls",
                        limits.reply_calls
                    ));
                }
                stream.calls += 1;
                self.close_block(stream);
                self.begin_building(stream, *number, *id, name);
            }
            ModelChunk::CallArgs {
                index: number,
                text,
            } => return self.call_args(stream, *number, text),
            ModelChunk::CallEnd { index: number } => {
                if let Some(at) = find_call(stream, *number) {
                    self.close_call(stream, at);
                }
            }
            ModelChunk::Begin { .. }
            | ModelChunk::Alive
            | ModelChunk::Usage(_)
            | ModelChunk::Finish(_)
            | ModelChunk::End
            | ModelChunk::Failed { .. } => {}
        }
        Step::More
    }

    fn begin_building(&mut self, stream: &mut Stream, number: u32, id: Option<&str>, name: &str) {
        let call = CallId(self.ids.call());
        let provider_id = self.fresh_provider_id(call, id);
        let block = index(stream.slots.len());
        let name: Text = name.into();
        let head = BlockHead::ToolUse {
            call,
            provider_id: Some(provider_id.clone()),
            name: name.clone(),
            runs: true,
        };
        self.say(What::BlockStarted {
            message: stream.message,
            block,
            head,
        });
        stream.slots.push(Slot::Call(Building {
            index: number,
            call,
            provider_id,
            name,
            arguments: String::new(),
        }));
    }

    /// The provider's id for a call, or one of our own where it is missing or was used before in this session: what
    /// goes back to the provider pairs each call with its own result.
    pub(super) fn fresh_provider_id(&mut self, call: CallId, id: Option<&str>) -> Text {
        let given = id
            .filter(|id| !id.is_empty() && !self.provider_ids.contains(*id))
            .map(Text::from);
        let mut suffix = 0_u32;
        let id = given.unwrap_or_else(|| {
            loop {
                let made = if suffix == 0 {
                    format!("call_{}", call.0)
                } else {
                    format!("call_{}_{suffix}", call.0)
                };
                if !self.provider_ids.contains(made.as_str()) {
                    break made.into();
                }
                suffix += 1;
            }
        });
        self.provider_ids.insert(id.clone());
        id
    }

    fn call_args(&mut self, stream: &mut Stream, number: u32, text: &str) -> Step {
        let Some(at) = find_call(stream, number) else {
            return Step::More;
        };
        let limit = self.config.limits.argument_bytes;
        if let Some(Slot::Call(building)) = stream.slots.get_mut(at) {
            if building.arguments.len().saturating_add(text.len()) > limit {
                return over_limit(format!("a call's arguments are longer than {limit} bytes"));
            }
            building.arguments.push_str(text);
            self.out
                .delta(self.now, stream.message, index(at), Kind::Input, text);
        }
        Step::More
    }

    /// The index of the open block of a kind; on a change of block the old one is closed.
    fn open_block(&mut self, stream: &mut Stream, kind: Kind) -> u32 {
        if let Some(at) = stream.open {
            let same = match stream.slots.get(at) {
                Some(Slot::Text) => kind == Kind::Text,
                Some(Slot::Thinking { .. }) => kind == Kind::Thinking,
                Some(Slot::Closed(_) | Slot::Call(_)) | None => false,
            };
            if same {
                return index(at);
            }
        }
        self.close_block(stream);
        let at = stream.slots.len();
        let (slot, head) = match kind {
            Kind::Text => (Slot::Text, BlockHead::Text),
            Kind::Thinking | Kind::Signature | Kind::Input | Kind::Opaque => (
                Slot::Thinking {
                    signature: String::new(),
                },
                BlockHead::Thinking,
            ),
        };
        stream.slots.push(slot);
        stream.open = Some(at);
        self.text.clear();
        self.say(What::BlockStarted {
            message: stream.message,
            block: index(at),
            head,
        });
        index(at)
    }

    /// Ends the open text or thinking block.
    fn close_block(&mut self, stream: &mut Stream) {
        let Some(at) = stream.open.take() else { return };
        if let Some(content) = stream.slots.get(at).and_then(|slot| self.content_of(slot)) {
            self.say(What::BlockEnded {
                message: stream.message,
                block: index(at),
                content: content.clone(),
            });
            if let Some(slot) = stream.slots.get_mut(at) {
                *slot = Slot::Closed(content);
            }
        }
    }

    fn close_call(&mut self, stream: &mut Stream, at: usize) {
        if let Some(content) = stream.slots.get(at).and_then(|slot| self.content_of(slot)) {
            self.say(What::BlockEnded {
                message: stream.message,
                block: index(at),
                content: content.clone(),
            });
            if let Some(slot) = stream.slots.get_mut(at) {
                *slot = Slot::Closed(content);
            }
        }
    }

    /// The block that a slot makes. At most one text or thinking slot is open, and its text is in the buffer.
    fn content_of(&self, slot: &Slot) -> Option<Arc<Block>> {
        Some(match slot {
            Slot::Closed(content) => content.clone(),
            Slot::Text => Arc::new(Block::Text(self.text.as_str().into())),
            Slot::Thinking { signature } => Arc::new(Block::Thinking {
                text: self.text.as_str().into(),
                signature: (!signature.is_empty()).then(|| signature.as_str().into()),
            }),
            Slot::Call(building) => {
                let input = args::object(&building.arguments);
                let input = input.map_or_else(
                    || ToolInput::Unparsed(building.arguments.as_str().into()),
                    ToolInput::Object,
                );
                let (call, name) = (building.call, building.name.clone());
                Arc::new(Block::ToolUse {
                    call,
                    provider_id: Some(building.provider_id.clone()),
                    name,
                    input,
                })
            }
        })
    }

    /// Makes the message of a stream as it stands.
    fn assemble(&self, stream: &Stream) -> Arc<Message> {
        Arc::new(Message {
            id: stream.message,
            role: Role::Assistant,
            content: stream
                .slots
                .iter()
                .filter_map(|slot| self.content_of(slot))
                .collect(),
            origin: Origin::Harness,
            prompt: None,
            about: None,
            at_ms: self.now.unix_ms,
            details: None,
        })
    }

    /// Ends a whole message: it enters the history, its calls are returned.
    pub(super) fn finish_message(
        &mut self,
        turn: &mut Turn,
        mut stream: Stream,
        finish: &str,
    ) -> (MessageId, Vec<Tool>) {
        self.close_block(&mut stream);
        for at in 0..stream.slots.len() {
            if let Some(Slot::Call(_)) = stream.slots.get(at) {
                self.close_call(&mut stream, at);
            }
        }
        let message = self.assemble(&stream);
        let calls = self.calls_of(&message);
        let stop = stop_of(finish, !calls.is_empty());
        turn.answer = Some(TurnAnswer::Text(args::text_of(
            message.content.iter().map(Arc::as_ref),
        )));
        turn.finish = Some(finish.into());
        self.say(What::MessageEnded {
            message: message.clone(),
            stop,
            kept: true,
            calls: CallList::Complete,
        });
        let id = message.id;
        self.remember(message);
        (id, calls)
    }

    /// Ends a message that is not whole. A kept one enters the history, its calls paired with results that say that
    /// they never ran. The calls are returned, for their `ToolSkipped`.
    pub(super) fn break_message(&mut self, stream: &Stream, stop: Stop, kept: bool) -> Vec<CallId> {
        let message = self.assemble(stream);
        let calls: Vec<(CallId, Text)> = message
            .content
            .iter()
            .filter_map(|block| match block.as_ref() {
                Block::ToolUse { call, name, .. } => Some((*call, name.clone())),
                Block::Text(_)
                | Block::Thinking { .. }
                | Block::Redacted(_)
                | Block::Media { .. }
                | Block::ToolResult { .. }
                | Block::Opaque(_) => None,
            })
            .collect();
        let why = if matches!(stop, Stop::Cancelled | Stop::Detached) {
            SkipWhy::Cancelled
        } else {
            SkipWhy::Truncated
        };
        self.say(What::MessageEnded {
            message: message.clone(),
            stop,
            kept,
            calls: CallList::Complete,
        });
        if !kept {
            for block in &message.content {
                if let Block::ToolUse {
                    provider_id: Some(id),
                    ..
                } = block.as_ref()
                {
                    self.provider_ids.remove(id);
                }
            }
            return Vec::new();
        }
        self.remember(message);
        for (call, name) in &calls {
            let content = super::tools::skipped_result(why)
                .into_iter()
                .map(Arc::new)
                .collect();
            let result = Message {
                id: MessageId(self.ids.message()),
                role: Role::Tool {
                    call: *call,
                    name: name.clone(),
                    error: true,
                },
                content,
                origin: Origin::Harness,
                prompt: None,
                about: Some(*call),
                at_ms: self.now.unix_ms,
                details: None,
            };
            self.remember(Arc::new(result));
        }
        calls.into_iter().map(|(call, _)| call).collect()
    }

    fn calls_of(&self, message: &Message) -> Vec<Tool> {
        let blocks = message.content.iter().enumerate();
        blocks
            .filter_map(|(at, block)| match block.as_ref() {
                Block::ToolUse {
                    call,
                    provider_id,
                    name,
                    input,
                } => {
                    let provider_id = provider_id.clone().unwrap_or_else(|| "".into());
                    let spec = self.tool_named(name);
                    // No text at all: providers write calls of tools that take nothing so.
                    let input = match input {
                        ToolInput::Unparsed(text) if text.trim().is_empty() => {
                            ToolInput::Object(RawJson("{}".into()))
                        }
                        ToolInput::Object(_) | ToolInput::Unparsed(_) => input.clone(),
                    };
                    Some(Tool::new(
                        *call,
                        provider_id,
                        name.clone(),
                        input,
                        index(at),
                        spec,
                    ))
                }
                Block::Text(_)
                | Block::Thinking { .. }
                | Block::Redacted(_)
                | Block::Media { .. }
                | Block::ToolResult { .. }
                | Block::Opaque(_) => None,
            })
            .collect()
    }

    /// Tells the driver to stop a request, if it is live.
    pub(super) fn stop_model(&mut self, request: RequestId) {
        if self.effects.models.is_live(request.0) {
            self.effects.models.stop(request.0);
            self.out.effect(Effect::StopModel(request));
        }
    }
}

/// The open call of an index: the latest one, as an index may come again.
fn find_call(stream: &Stream, number: u32) -> Option<usize> {
    stream.slots.iter().rposition(|slot| match slot {
        Slot::Call(building) => building.index == number,
        Slot::Closed(_) | Slot::Text | Slot::Thinking { .. } => false,
    })
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn over_limit(text: String) -> Step {
    Step::OverLimit(Failure {
        kind: FailureKind::StreamCut,
        status: None,
        retryable: false,
        text: text.into(),
    })
}

/// What a provider's finish word says about the message.
fn stop_of(finish: &str, calls: bool) -> Stop {
    match finish {
        "stop" | "end_turn" | "tool_calls" | "tool_use" | "function_call" if calls => Stop::ToolUse,
        "stop" | "end_turn" | "tool_calls" | "tool_use" | "function_call" => Stop::End,
        "length" | "max_tokens" => Stop::MaxTokens,
        "content_filter" | "refusal" => Stop::Refusal,
        "stop_sequence" => Stop::StopSequence("".into()),
        other => Stop::Other(other.into()),
    }
}
