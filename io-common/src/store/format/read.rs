//! Reads lines.

use std::sync::Arc;

use serde::Deserialize;
use turnwire::json::{Members, Raw, Str, scan};
use turnwire::vocab::{
    Block, CallId, JobId, MediaKind, Message, MessageId, Origin, PromptId, RawJson, Role, Source,
    Stored, Text, ToolInput,
};

use super::{Line, RULES};
use crate::store::{Binding, VERSION};

/// Reads lines, one after the other.
#[derive(Debug, Default)]
pub(in crate::store) struct Decoder {
    members: Members,
}

/// A missing or wrong member, in words.
type Fault = String;

#[derive(Deserialize)]
struct HeadLine<'a> {
    version: u64,
    #[serde(borrow)]
    id: Str<'a>,
    #[serde(borrow, default)]
    project: Str<'a>,
    #[serde(default)]
    created_at: u64,
    #[serde(borrow, default)]
    provider: Option<Str<'a>>,
    #[serde(borrow, default)]
    provider_type: Option<Str<'a>>,
    #[serde(borrow, default)]
    model: Option<Str<'a>>,
    #[serde(borrow, default)]
    route: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct NameLine<'a> {
    #[serde(borrow)]
    name: Str<'a>,
}

#[derive(Deserialize)]
struct MessageLine<'a> {
    id: u64,
    #[serde(borrow)]
    role: Str<'a>,
    at: u64,
    #[serde(borrow)]
    content: Vec<Raw<'a>>,
    #[serde(borrow, default)]
    name: Option<Str<'a>>,
    #[serde(default)]
    call: Option<u64>,
    #[serde(default)]
    error: Option<bool>,
    #[serde(borrow)]
    origin: Str<'a>,
    #[serde(borrow, default)]
    origin_name: Option<Str<'a>>,
    #[serde(default)]
    origin_number: Option<u64>,
    #[serde(default)]
    prompt: Option<u64>,
    #[serde(default)]
    about: Option<u64>,
    #[serde(borrow, default)]
    details: Option<Raw<'a>>,
    #[serde(borrow, default)]
    details_text: Option<Str<'a>>,
}

/// The members of all kinds of blocks; which of them a kind needs is looked at afterwards.
#[derive(Deserialize)]
struct BlockObject<'a> {
    #[serde(rename = "type", borrow)]
    kind: Str<'a>,
    #[serde(borrow, default)]
    text: Option<Str<'a>>,
    #[serde(borrow, default)]
    signature: Option<Str<'a>>,
    #[serde(borrow, default)]
    data: Option<Str<'a>>,
    #[serde(borrow, default)]
    mime: Option<Str<'a>>,
    #[serde(borrow, default)]
    base64: Option<Str<'a>>,
    #[serde(borrow, default)]
    url: Option<Str<'a>>,
    #[serde(borrow, default)]
    blob: Option<Str<'a>>,
    #[serde(borrow, default)]
    id: Option<Str<'a>>,
    #[serde(default)]
    size: Option<u64>,
    #[serde(borrow, default)]
    sha256: Option<Str<'a>>,
    #[serde(default)]
    call: Option<u64>,
    #[serde(borrow, default)]
    provider_id: Option<Str<'a>>,
    #[serde(borrow, default)]
    name: Option<Str<'a>>,
    #[serde(borrow, default)]
    input: Option<Raw<'a>>,
    #[serde(borrow, default)]
    input_text: Option<Str<'a>>,
    #[serde(borrow, default)]
    unparsed: Option<Str<'a>>,
    #[serde(default)]
    error: Option<bool>,
    #[serde(borrow, default)]
    content: Option<Vec<Raw<'a>>>,
    #[serde(borrow, default)]
    json: Option<Raw<'a>>,
    #[serde(borrow, default)]
    json_text: Option<Str<'a>>,
}

impl Decoder {
    /// Reads one line.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub(in crate::store) fn line(&mut self, content: &[u8]) -> Result<Line, Fault> {
        let object = scan(content, &RULES, &mut self.members).map_err(|fault| fault.to_string())?;
        let kind = object.string("type").ok_or("it has no type")?;
        match &*kind {
            "session" => {
                let head: HeadLine<'_> = object.decode().map_err(|fault| fault.to_string())?;
                if head.version != VERSION {
                    return Err(format!(
                        "version {} isn't one that this program knows",
                        head.version
                    ));
                }
                Ok(Line::Head {
                    binding: binding(&head)?,
                    id: head.id.into_string(),
                    project: head.project.into_string(),
                    created_at: head.created_at,
                })
            }
            "name" => {
                let line: NameLine<'_> = object.decode().map_err(|fault| fault.to_string())?;
                Ok(Line::Name(line.name.into_string()))
            }
            "message" => {
                let line: MessageLine<'_> = object.decode().map_err(|fault| fault.to_string())?;
                message(line).map(Line::Message)
            }
            other => Err(format!("a line of an unknown type {other:?}")),
        }
    }
}

/// Who served the model: all of it is there, or nothing.
fn binding(head: &HeadLine<'_>) -> Result<Option<Binding>, Fault> {
    match (
        &head.provider,
        &head.provider_type,
        &head.model,
        &head.route,
    ) {
        (None, None, None, None) => Ok(None),
        (Some(provider), Some(kind), Some(model), Some(route)) => Ok(Some(Binding {
            provider: provider.to_string(),
            kind: kind.to_string(),
            model: model.to_string(),
            route: route.to_string(),
        })),
        _ => Err("only a part of who served the model".to_owned()),
    }
}

fn message(line: MessageLine<'_>) -> Result<Message, Fault> {
    let MessageLine {
        id,
        role,
        at,
        content,
        name,
        call,
        error,
        origin,
        origin_name,
        origin_number,
        prompt,
        about,
        details,
        details_text,
    } = line;
    let role = match &*role {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool {
            call: CallId(need(call, "call")?),
            name: text(name, "name")?,
            error: need(error, "error")?,
        },
        "note" => Role::Note,
        "summary" => Role::Summary,
        "shell" => Role::Shell,
        "other" => Role::Other(text(name, "name")?),
        other => return Err(format!("an unknown role {other:?}")),
    };
    let origin = match &*origin {
        "host" => Origin::Host,
        "hook" => Origin::Hook(text(origin_name, "origin_name")?),
        "goal_check" => Origin::GoalCheck,
        "goal_reminder" => Origin::GoalReminder,
        "goal_continue" => Origin::GoalContinue {
            left: u32::try_from(need(origin_number, "origin_number")?)
                .map_err(|_| "origin_number is too large")?,
        },
        "plan_reminder" => Origin::PlanReminder,
        "job" => Origin::Job(JobId(need(origin_number, "origin_number")?)),
        "interrupted" => Origin::Interrupted,
        "harness" => Origin::Harness,
        "extension" => Origin::Extension(text(origin_name, "origin_name")?),
        "history" => Origin::History,
        other => return Err(format!("an unknown origin {other:?}")),
    };
    let content: Result<Vec<Arc<Block>>, Fault> = content
        .into_iter()
        .map(|raw| block(raw).map(Arc::new))
        .collect();
    Ok(Message {
        id: MessageId(id),
        role,
        content: content?,
        origin,
        prompt: prompt.map(PromptId),
        about: about.map(CallId),
        at_ms: at,
        details: json(details, details_text),
    })
}

/// Recurses no deeper than the line is nested.
fn block(raw: Raw<'_>) -> Result<Block, Fault> {
    let object: BlockObject<'_> = raw.decode().map_err(|fault| fault.to_string())?;
    Ok(match &*object.kind {
        "text" => Block::Text(text(object.text, "text")?),
        "thinking" => Block::Thinking {
            text: text(object.text, "text")?,
            signature: object.signature.map(shared),
        },
        "redacted" => Block::Redacted(text(object.data, "data")?),
        "image" => Block::Media {
            kind: MediaKind::Image,
            source: source(object)?,
        },
        "document" => Block::Media {
            kind: MediaKind::Document,
            source: source(object)?,
        },
        "tool_call" => Block::ToolUse {
            call: CallId(need(object.call, "call")?),
            provider_id: object.provider_id.map(shared),
            name: text(object.name, "name")?,
            input: match object.unparsed {
                Some(text) => ToolInput::Unparsed(shared(text)),
                None => ToolInput::Object(need(json(object.input, object.input_text), "input")?),
            },
        },
        "tool_result" => Block::ToolResult {
            call: CallId(need(object.call, "call")?),
            content: need(object.content, "content")?
                .into_iter()
                .map(block)
                .collect::<Result<Vec<Block>, Fault>>()?,
            is_error: need(object.error, "error")?,
        },
        "opaque" => Block::Opaque(need(json(object.json, object.json_text), "json")?),
        other => return Err(format!("a block of an unknown type {other:?}")),
    })
}

fn source(object: BlockObject<'_>) -> Result<Source, Fault> {
    if let Some(base64) = object.base64 {
        return Ok(Source::Inline {
            mime: text(object.mime, "mime")?,
            base64: shared(base64),
        });
    }
    if let Some(url) = object.url {
        return Ok(Source::Url(shared(url)));
    }
    Ok(Source::Stored(Arc::new(Stored {
        blob: text(object.blob, "base64, url or blob")?,
        id: text(object.id, "id")?,
        name: text(object.name, "name")?,
        mime: text(object.mime, "mime")?,
        size: need(object.size, "size")?,
        sha256: sha256(&need(object.sha256, "sha256")?).ok_or("sha256 isn't 64 hex digits")?,
    })))
}

fn sha256(digits: &str) -> Option<[u8; 32]> {
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (number, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(number * 2..number * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

fn json(plain: Option<Raw<'_>>, otherwise: Option<Str<'_>>) -> Option<RawJson> {
    plain
        .map(|raw| RawJson(raw.as_str().into()))
        .or_else(|| otherwise.map(|text| RawJson(shared(text))))
}

fn text(value: Option<Str<'_>>, name: &str) -> Result<Text, Fault> {
    need(value, name).map(shared)
}

fn shared(text: Str<'_>) -> Text {
    Text::from(&*text)
}

fn need<T>(value: Option<T>, name: &str) -> Result<T, Fault> {
    value.ok_or_else(|| format!("{name} is missing"))
}
