//! Writes lines.

use turnwire::json::{write_bool, write_str, write_u64};
use turnwire::vocab::{Block, MediaKind, Message, Origin, RawJson, Role, Source, ToolInput};

use super::is_plain;
use crate::store::{Binding, Entry, VERSION};

/// Appends the first line of a transcript.
pub(in crate::store) fn write_head(
    out: &mut Vec<u8>,
    entry: &Entry,
    parent: Option<&str>,
    binding: Option<&Binding>,
) {
    let mut line = Object::begin(out, "session");
    line.number("version", VERSION);
    line.text("id", &entry.id);
    line.text("project", &entry.project);
    line.number("created_at", entry.created_at);
    if let Some(parent) = parent {
        line.text("parent", parent);
    }
    if let Some(binding) = binding {
        line.text("provider", &binding.provider);
        line.text("provider_type", &binding.kind);
        line.text("model", &binding.model);
        line.text("route", &binding.route);
    }
    line.end();
    out.push(b'\n');
}

/// Appends the line of a name.
pub(in crate::store) fn write_name(out: &mut Vec<u8>, name: &str) {
    let mut line = Object::begin(out, "name");
    line.text("name", name);
    line.end();
    out.push(b'\n');
}

/// Appends the line of a message.
pub(in crate::store) fn write_message(out: &mut Vec<u8>, message: &Message) {
    let Message {
        id,
        role,
        content,
        origin,
        prompt,
        about,
        at_ms,
        details,
    } = message;
    let mut line = Object::begin(out, "message");
    line.number("id", id.0);
    write_role(&mut line, role);
    line.number("at", *at_ms);
    line.name("content");
    write_list(line.out, content.iter().map(AsRef::as_ref));
    write_origin(&mut line, origin);
    if let Some(prompt) = prompt {
        line.number("prompt", prompt.0);
    }
    if let Some(about) = about {
        line.number("about", about.0);
    }
    if let Some(details) = details {
        line.json("details", "details_text", details);
    }
    line.end();
    out.push(b'\n');
}

fn write_role(line: &mut Object<'_>, role: &Role) {
    let word = match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool { .. } => "tool",
        Role::Note => "note",
        Role::Summary => "summary",
        Role::Shell => "shell",
        Role::Other(_) => "other",
    };
    line.text("role", word);
    match role {
        Role::Tool { call, name, error } => {
            line.number("call", call.0);
            line.text("name", name);
            line.bool("error", *error);
        }
        Role::Other(name) => line.text("name", name),
        Role::User | Role::Assistant | Role::Note | Role::Summary | Role::Shell => {}
    }
}

fn write_origin(line: &mut Object<'_>, origin: &Origin) {
    let word = match origin {
        Origin::Host => "host",
        Origin::Hook(_) => "hook",
        Origin::GoalCheck => "goal_check",
        Origin::GoalReminder => "goal_reminder",
        Origin::GoalContinue { .. } => "goal_continue",
        Origin::PlanReminder => "plan_reminder",
        Origin::Job(_) => "job",
        Origin::Interrupted => "interrupted",
        Origin::Harness => "harness",
        Origin::Extension(_) => "extension",
        Origin::History => "history",
    };
    line.text("origin", word);
    match origin {
        Origin::Hook(name) | Origin::Extension(name) => line.text("origin_name", name),
        Origin::GoalContinue { left } => line.number("origin_number", u64::from(*left)),
        Origin::Job(job) => line.number("origin_number", job.0),
        Origin::Host
        | Origin::GoalCheck
        | Origin::GoalReminder
        | Origin::PlanReminder
        | Origin::Interrupted
        | Origin::Harness
        | Origin::History => {}
    }
}

fn write_list<'a>(out: &mut Vec<u8>, blocks: impl Iterator<Item = &'a Block>) {
    out.push(b'[');
    for (number, block) in blocks.enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write_block(out, block);
    }
    out.push(b']');
}

fn write_block(out: &mut Vec<u8>, block: &Block) {
    match block {
        Block::Text(text) => {
            let mut object = Object::begin(out, "text");
            object.text("text", text);
            object.end();
        }
        Block::Thinking { text, signature } => {
            let mut object = Object::begin(out, "thinking");
            object.text("text", text);
            if let Some(signature) = signature {
                object.text("signature", signature);
            }
            object.end();
        }
        Block::Redacted(data) => {
            let mut object = Object::begin(out, "redacted");
            object.text("data", data);
            object.end();
        }
        Block::Media { kind, source } => {
            let mut object = Object::begin(
                out,
                match kind {
                    MediaKind::Image => "image",
                    MediaKind::Document => "document",
                },
            );
            write_source(&mut object, source);
            object.end();
        }
        Block::ToolUse {
            call,
            provider_id,
            name,
            input,
        } => {
            let mut object = Object::begin(out, "tool_call");
            object.number("call", call.0);
            if let Some(id) = provider_id {
                object.text("provider_id", id);
            }
            object.text("name", name);
            match input {
                ToolInput::Object(json) => object.json("input", "input_text", json),
                ToolInput::Unparsed(text) => object.text("unparsed", text),
            }
            object.end();
        }
        Block::ToolResult {
            call,
            content,
            is_error,
        } => {
            let mut object = Object::begin(out, "tool_result");
            object.number("call", call.0);
            object.bool("error", *is_error);
            object.name("content");
            write_list(object.out, content.iter());
            object.end();
        }
        Block::Opaque(json) => {
            let mut object = Object::begin(out, "opaque");
            object.json("json", "json_text", json);
            object.end();
        }
    }
}

fn write_source(object: &mut Object<'_>, source: &Source) {
    match source {
        Source::Inline { mime, base64 } => {
            object.text("mime", mime);
            object.text("base64", base64);
        }
        Source::Url(url) => object.text("url", url),
        Source::Stored(stored) => {
            object.text("blob", &stored.blob);
            object.text("id", &stored.id);
            object.text("name", &stored.name);
            object.text("mime", &stored.mime);
            object.number("size", stored.size);
            let digits: String = stored
                .sha256
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            object.text("sha256", &digits);
        }
    }
}

/// An object that is being written, its `type` first.
struct Object<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> Object<'o> {
    fn begin(out: &'o mut Vec<u8>, kind: &str) -> Object<'o> {
        out.extend_from_slice(b"{\"type\":");
        write_str(out, kind);
        Object { out }
    }

    fn name(&mut self, name: &str) {
        self.out.push(b',');
        write_str(self.out, name);
        self.out.push(b':');
    }

    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        write_str(self.out, value);
    }

    fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        write_u64(self.out, value);
    }

    fn bool(&mut self, name: &str, value: bool) {
        self.name(name);
        write_bool(self.out, value);
    }

    /// A JSON value as it is, or as a string under another name where it can't stand in a line.
    fn json(&mut self, name: &str, otherwise: &str, RawJson(text): &RawJson) {
        if is_plain(text) {
            self.name(name);
            self.out.extend_from_slice(text.as_bytes());
        } else {
            self.text(otherwise, text);
        }
    }

    fn end(self) {
        self.out.push(b'}');
    }
}
