//! Values of the wire as neutral ones.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Out;
use crate::json::{Kind as JsonKind, Raw};
use crate::protocol::heard::{failure_kind, message};
use crate::protocol::omp::wire::{
    self, Any, AssistantMessage, Block as WireBlock, Content, GoalData, GoalStatus as WireGoal,
    ImageBlock, Message as WireMessage, PromptError, ToolOutput, Usage as WireUsage,
};
use crate::vocab::*;

/// A value, kept as text.
pub(super) fn raw(value: Raw<'_>) -> RawJson {
    RawJson(value.as_str().into())
}

/// A block, written as JSON again: for those that only this protocol understands.
fn opaque(block: &WireBlock<'_>) -> Block {
    let mut text = Vec::new();
    block.encode(&mut text);
    Block::Opaque(RawJson(String::from_utf8_lossy(&text).into()))
}

fn image(block: &ImageBlock<'_>) -> Block {
    let source = match &block.url {
        Some(url) if block.data.is_empty() => Source::Url((&**url).into()),
        Some(_) | None => Source::Inline {
            mime: (&*block.mime_type).into(),
            base64: (&*block.data).into(),
        },
    };
    Block::Media {
        kind: MediaKind::Image,
        source,
    }
}

/// The arguments of a call.
pub(super) fn input(arguments: Any<'_>) -> Option<ToolInput> {
    let value = arguments.get()?;
    match value.kind() {
        JsonKind::Object => Some(ToolInput::Object(raw(value))),
        JsonKind::Null => None,
        JsonKind::Bool | JsonKind::Number | JsonKind::String | JsonKind::Array => {
            Some(ToolInput::Unparsed(value.as_str().into()))
        }
    }
}

/// A block; calls by `call`, which knows the ids.
pub(super) fn block(
    block: &WireBlock<'_>,
    call: impl FnOnce(&wire::ToolCallBlock<'_>) -> Block,
) -> Block {
    match block {
        WireBlock::Text(text) => Block::Text((&*text.text).into()),
        WireBlock::Thinking(thinking) => Block::Thinking {
            text: (&*thinking.thinking).into(),
            signature: thinking.thinking_signature.as_deref().map(Text::from),
        },
        WireBlock::RedactedThinking(redacted) => Block::Redacted((&*redacted.data).into()),
        WireBlock::Image(picture) => image(picture),
        WireBlock::ToolCall(tool) => call(tool),
        WireBlock::Fallback(_) | WireBlock::ServerTool(_) | WireBlock::Unknown(_) => opaque(block),
    }
}

/// Blocks in which no call is expected: what a tool gave, what a person wrote.
pub(super) fn blocks(list: &[WireBlock<'_>]) -> Vec<Block> {
    let plain = |it| block(it, |call| opaque(&WireBlock::ToolCall(call.clone())));
    list.iter().map(plain).collect()
}

/// What a message says; no block for an empty text.
pub(super) fn content(content: &Content<'_>) -> Vec<Block> {
    match content {
        Content::Text(text) if text.is_empty() => Vec::new(),
        Content::Text(text) => [Block::Text((&**text).into())].into(),
        Content::Blocks(list) => blocks(list),
    }
}

/// The text of content, as prompts are told by it: text blocks, one behind the other.
pub(super) fn joined(content: &[Block]) -> String {
    content.iter().filter_map(Block::text).collect()
}

pub(super) fn shared(content: Vec<Block>) -> Vec<Arc<Block>> {
    content.into_iter().map(Arc::new).collect()
}

/// What a tool gave: content for the model, details for hosts, and whether it says that it is an error.
pub(super) fn output(value: Any<'_>) -> (Vec<Block>, Option<RawJson>, bool) {
    let Some(value) = value.get() else {
        return (Vec::new(), None, false);
    };
    match value.decode::<ToolOutput<'_>>() {
        Ok(output) => (
            blocks(&output.content),
            details(output.details),
            output.is_error == Some(true),
        ),
        Err(_) => {
            let text = value
                .string()
                .map_or_else(|| value.as_str().into(), |text| text.into_owned());
            (
                if value.is_null() {
                    Vec::new()
                } else {
                    [Block::Text(text.into())].into()
                },
                None,
                false,
            )
        }
    }
}

/// Details, unless they say nothing.
pub(super) fn details(value: Any<'_>) -> Option<RawJson> {
    let value = value.get()?;
    (!value.is_null() && value.as_str() != "{}").then(|| raw(value))
}

/// Usage in buckets that don't overlap. All zero stands for nothing told where nothing was finished.
pub(super) fn usage(usage: &WireUsage<'_>, finished: bool) -> Option<Usage> {
    let reasoning = usage
        .reasoning_tokens
        .as_ref()
        .and_then(|number| number.u64());
    let output = usage.output.u64().unwrap_or(0);
    let told = Usage {
        input: usage.input.u64(),
        cache_read: usage.cache_read.u64(),
        cache_write: usage.cache_write.u64(),
        output: Some(output.saturating_sub(reasoning.unwrap_or(0))),
        reasoning,
    };
    (finished || told.total() != Some(0)).then_some(told)
}

/// What the program says that it cost; its prices are from a list. Nothing is said of what has no price.
pub(super) fn cost(usage: Option<&WireUsage<'_>>) -> Cost {
    let total = usage.and_then(|usage| usage.cost.as_ref());
    let Some(usd) = total
        .map(|cost| cost.total.f64())
        .filter(|usd| *usd > 0.0 && *usd < 1e6)
    else {
        return Cost::NotSaid;
    };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let pico_usd = (usd * 1e12 + 0.5) as u64;
    Cost::Known {
        pico_usd,
        basis: CostBasis::Estimated,
        source: "omp".into(),
        as_of: "".into(),
    }
}

/// The model of a reply.
pub(super) fn model_of(message: &AssistantMessage<'_>) -> ModelRef {
    ModelRef {
        provider: message.provider.as_deref().map(Text::from),
        model: message.model.as_deref().unwrap_or_default().into(),
    }
}

/// A failure, as far as its text and its status tell.
pub(super) fn failure(text: &str, status: Option<u64>, retryable: Option<bool>) -> Failure {
    let status = status
        .and_then(|status| u16::try_from(status).ok())
        .or_else(|| {
            let (number, _) = text.split_once(' ')?;
            let status = number.parse().ok()?;
            (400..600).contains(&status).then_some(status)
        });
    let kind = status.map_or(FailureKind::Internal, |status| failure_kind(status, text));
    Failure {
        kind,
        status,
        retryable: retryable.unwrap_or(matches!(
            kind,
            FailureKind::RateLimit | FailureKind::Overloaded | FailureKind::Server
        )),
        text: text.into(),
    }
}

/// The failure of a reply.
pub(super) fn failure_of(message: &AssistantMessage<'_>) -> Failure {
    let text = message.error_message.as_deref();
    let status = message
        .error_status
        .as_ref()
        .and_then(|status| status.u64());
    failure(text.unwrap_or("the agent doesn't say why"), status, None)
}

/// The failure of a prompt.
pub(super) fn prompt_failure(error: Option<&PromptError<'_>>) -> Failure {
    match error {
        Some(error) => {
            let status = error.http_status.as_ref().and_then(|status| status.u64());
            failure(&error.message, status, error.retryable)
        }
        None => Failure::new(FailureKind::Internal, "the agent doesn't say why"),
    }
}

/// A goal.
pub(super) fn goal(goal: &GoalData<'_>) -> Option<Goal> {
    let status = match &goal.status {
        WireGoal::Active => GoalStatus::Active,
        WireGoal::Paused => GoalStatus::Paused,
        WireGoal::BudgetLimited => GoalStatus::Exhausted,
        WireGoal::Complete => GoalStatus::Completed,
        WireGoal::Dropped => return None,
        WireGoal::Other(_) => GoalStatus::Blocked,
    };
    Some(Goal {
        text: (&*goal.objective).into(),
        status,
        turns_left: None,
        token_budget: goal.token_budget.as_ref().and_then(|number| number.u64()),
        tokens_used: goal.tokens_used.u64().unwrap_or(0),
    })
}

/// A message of the history that is neither the person's, nor the model's, nor a tool's.
pub(super) fn note(value: Raw<'_>, id: MessageId, out: &mut Out) -> Message {
    let plain = |role, blocks: Vec<Block>, origin, out: &Out| {
        message(id, role, shared(blocks), origin, out)
    };
    let told = WireMessage::decode(value).unwrap_or(WireMessage::Unknown(value));
    let mut made = match &told {
        WireMessage::User(user) => plain(Role::User, content(&user.content), Origin::Host, out),
        WireMessage::Developer(note) => {
            plain(Role::Note, content(&note.content), Origin::Harness, out)
        }
        WireMessage::Custom(custom) => {
            let origin = match &*custom.custom_type {
                "async-result" => Origin::Job(out.ids.job()),
                "harness-note" => Origin::Harness,
                name => Origin::Extension(name.into()),
            };
            let mut made = plain(Role::Note, content(&custom.content), origin, out);
            made.details = details(custom.details);
            made
        }
        WireMessage::Hook(hook) => {
            let origin = Origin::Hook((&*hook.custom_type).into());
            let mut made = plain(Role::Note, content(&hook.content), origin, out);
            made.details = details(hook.details);
            made
        }
        WireMessage::BashExecution(bash) => {
            let mut made = plain(Role::Shell, shell(bash), Origin::Host, out);
            made.details = Some(RawJson(shell_details(bash).into()));
            made
        }
        WireMessage::CompactionSummary(summary) => {
            let text = [Block::Text((&*summary.summary).into())].into();
            plain(Role::Summary, text, Origin::Harness, out)
        }
        WireMessage::BranchSummary(summary) => {
            let text = [Block::Text((&*summary.summary).into())].into();
            plain(Role::Summary, text, Origin::Harness, out)
        }
        WireMessage::Assistant(reply) => plain(
            Role::Assistant,
            blocks(&reply.content),
            Origin::Harness,
            out,
        ),
        WireMessage::ToolResult(result) => {
            let role = Role::Other("toolResult".into());
            plain(role, blocks(&result.content), Origin::Harness, out)
        }
        WireMessage::PythonExecution(_) | WireMessage::FileMention(_) | WireMessage::Unknown(_) => {
            let role = wire::role_of(value).unwrap_or_default();
            let text = value
                .get("content")
                .map(|value| value.decode::<Content<'_>>());
            let text = text.and_then(Result::ok).map(|text| content(&text));
            let role = Role::Other((&*role).into());
            let mut made = plain(role, text.unwrap_or_default(), Origin::Harness, out);
            made.details = Some(raw(value));
            made
        }
    };
    if let Some(at_ms) = timestamp(value) {
        made.at_ms = at_ms;
    }
    made
}

/// When a message was made, in milliseconds.
pub(super) fn timestamp(value: Raw<'_>) -> Option<u64> {
    let number = value.get("timestamp")?;
    number.decode::<wire::Num<'_>>().ok()?.u64()
}

/// A command of the person's own as the vocabulary writes it.
fn shell(bash: &wire::BashExecution<'_>) -> Vec<Block> {
    let mut text = Vec::new();
    text.push(Block::Text(format!("$ {}\n", &*bash.command).into()));
    if !bash.output.is_empty() {
        text.push(Block::Text((&*bash.output).into()));
    }
    let code = exit_code(bash.exit_code.as_ref());
    if bash.cancelled == Some(true) {
        text.push(Block::Text("cancelled".into()));
    } else if let Some(code) = code.filter(|code| *code != 0) {
        text.push(Block::Text(format!("exit code {code}").into()));
    }
    text
}

fn shell_details(bash: &wire::BashExecution<'_>) -> String {
    let mut text = Vec::new();
    text.extend_from_slice(b"{\"command\":");
    crate::json::write_str(&mut text, &bash.command);
    if let Some(code) = exit_code(bash.exit_code.as_ref()) {
        text.extend_from_slice(format!(",\"exit_code\":{code}").as_bytes());
    }
    text.extend_from_slice(
        format!(
            ",\"cancelled\":{},\"timed_out\":false,\"truncated\":{},\"has_output\":{}}}",
            bash.cancelled == Some(true),
            bash.truncated == Some(true),
            !bash.output.is_empty()
        )
        .as_bytes(),
    );
    String::from_utf8_lossy(&text).to_string()
}

/// An exit code, which may be negative.
pub(super) fn exit_code(code: Option<&wire::Num<'_>>) -> Option<i32> {
    code?.as_str().parse().ok()
}

/// The history as `get_messages` tells it: calls get ids of ours, and results name them.
pub(super) fn history(messages: &[Raw<'_>], out: &mut Out) -> Vec<Arc<Message>> {
    let mut calls: BTreeMap<String, CallId> = BTreeMap::new();
    let mut history = Vec::new();
    for value in messages {
        let id = out.ids.message();
        let mut made = match WireMessage::decode(*value) {
            Ok(WireMessage::Assistant(reply)) => {
                let each = reply.content.iter().map(|it| {
                    Arc::new(block(it, |tool| {
                        let call = out.ids.call();
                        calls.insert(tool.id.to_string(), call);
                        tool_use(call, tool)
                    }))
                });
                let content = each.collect();
                message(id, Role::Assistant, content, Origin::History, out)
            }
            Ok(WireMessage::ToolResult(result)) => {
                let known = calls.get(&*result.tool_call_id).copied();
                let role = Role::Tool {
                    call: known.unwrap_or_else(|| out.ids.call()),
                    name: result.tool_name.as_deref().unwrap_or_default().into(),
                    error: result.is_error == Some(true),
                };
                message(
                    id,
                    role,
                    shared(blocks(&result.content)),
                    Origin::History,
                    out,
                )
            }
            Ok(_) | Err(_) => Message {
                origin: Origin::History,
                ..note(*value, id, out)
            },
        };
        made.at_ms = timestamp(*value).unwrap_or(0);
        history.push(Arc::new(made));
    }
    history
}

/// A call in a reply.
pub(super) fn tool_use(call: CallId, tool: &wire::ToolCallBlock<'_>) -> Block {
    Block::ToolUse {
        call,
        provider_id: (!tool.id.is_empty()).then(|| (&*tool.id).into()),
        name: (&*tool.name).into(),
        input: input(tool.arguments).unwrap_or(ToolInput::Object(RawJson("{}".into()))),
    }
}
