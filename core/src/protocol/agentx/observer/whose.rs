//! Whose line it is, where nothing but the line tells.

use super::super::wire::{Operation, Record, System};
use crate::json::{Object, Raw};
use crate::protocol::member::last;
use crate::protocol::observer::Dir;

/// Operations that the agent asks for.
const OF_AGENT: [&str; 5] = [
    "can_use_tool",
    "hook_callback",
    "mcp_message",
    "elicitation",
    "ask_user_question",
];

/// Members that only payloads of a host have.
const PAYLOAD_OF_HOST: [&str; 6] = [
    "behavior",
    "hookSpecificOutput",
    "mcp_response",
    "action",
    "decision",
    "async",
];

/// Whose line an object is. The types of messages and of control are both sides'.
pub(super) fn whose(object: &Object<'_, '_>) -> Option<Dir> {
    let kind = last(object, "type")?.string()?;
    match &*kind {
        "user" => Some(user(object)),
        "control_request" => Some(request(object)),
        "control_response" => Some(response(object)),
        "control_cancel_request" => {
            let id = last(object, "request_id").and_then(Raw::string);
            Some(if is_of_agent(id.as_deref()) {
                Dir::Agent
            } else {
                Dir::Host
            })
        }
        "keep_alive" => None,
        "attachment_import" | "update_environment_variables" => Some(Dir::Host),
        "system" => {
            let subtype = last(object, "subtype")?.string()?;
            System::TAGS.contains(&&*subtype).then_some(Dir::Agent)
        }
        kind => Record::TAGS.contains(&kind).then_some(Dir::Agent),
    }
}

/// The agent's have both ids, and say that they are replayed, made up, or what a tool gave.
fn user(object: &Object<'_, '_>) -> Dir {
    let text = |name| last(object, name).and_then(Raw::string);
    let has = |name| text(name).is_some_and(|id| !id.is_empty() && id != "default");
    let marked = ["isReplay", "isSynthetic"]
        .into_iter()
        .any(|name| last(object, name).and_then(Raw::bool) == Some(true));
    let content = last(object, "message").and_then(|message| message.get_last("content"));
    let is_made = content.is_some_and(|content| content.as_str().starts_with('['));
    let is_agents = has("session_id")
        && has("uuid")
        && (marked || (is_made && last(object, "parent_tool_use_id").is_some()));
    if is_agents { Dir::Agent } else { Dir::Host }
}

fn request(object: &Object<'_, '_>) -> Dir {
    let request = last(object, "request");
    let subtype = request.and_then(|request| request.get_last("subtype")?.string());
    let known = subtype.as_deref().unwrap_or_default();
    if OF_AGENT.contains(&known) && Operation::TAGS.contains(&known) {
        Dir::Agent
    } else {
        Dir::Host
    }
}

/// A response has the id that its request got from the other side.
fn response(object: &Object<'_, '_>) -> Dir {
    let body = last(object, "response");
    let member = |name| body.and_then(|body| body.get_last(name));
    let payload = member("response");
    let is_hosts = PAYLOAD_OF_HOST
        .into_iter()
        .any(|name| payload.is_some_and(|payload| payload.get_last(name).is_some()));
    let id = member("request_id").and_then(Raw::string);
    if is_hosts || is_of_agent(id.as_deref()) {
        Dir::Host
    } else {
        Dir::Agent
    }
}

/// Whether agents make ids like this: a UUID, or `req_` and 32 hex digits.
fn is_of_agent(id: Option<&str>) -> bool {
    let Some(id) = id else { return false };
    let is_hex = |text: &str| text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    id.strip_prefix("req_").is_some_and(is_hex) || (id.len() == 36 && is_hex(&id.replace('-', "")))
}
