//! Request bodies of the Messages API.

use alloc::{collections::BTreeSet, format, string::String};

use crate::model::content::{Shown, lead};
use crate::model::history::{Call, Entry, History, Outcome, result_text, text_of};
use crate::model::request::{write_extra, write_schema};
use crate::model::writer::Writer;
use crate::model::{Api, RequestOptions};
use crate::vocab::{Block, MediaKind, Message, ModelRequest, Source};

/// Least thinking budget that the API takes.
const LEAST_BUDGET: u64 = 1_024;
/// Marks the end of what may be cached.
const CACHE_MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

/// Writes the whole body.
pub(in crate::model) fn write(
    w: &mut Writer<'_>,
    request: &ModelRequest<'_>,
    options: &RequestOptions,
    shown: &Shown,
) {
    let history = History::of(Api::Anthropic, request);
    let budget = request
        .thinking_budget
        .filter(|&tokens| tokens > 0)
        .map(|tokens| tokens.max(LEAST_BUDGET));
    let output = request
        .max_output
        .unwrap_or(options.default_max_output)
        .max(1);
    w.open(b'{');
    w.member("model", request.model);
    w.key("max_tokens");
    // The budget counts towards the output, and must be less.
    w.u64(budget.map_or(output, |budget| {
        if output > budget {
            output
        } else {
            output.saturating_add(budget)
        }
    }));
    if let Some(system) = request.system.filter(|text| !text.trim().is_empty()) {
        write_system(w, system, options.prompt_cache);
    }
    w.key("messages");
    Messages {
        w,
        shown,
        open: None,
        last_block: 0,
    }
    .write(&history, options.prompt_cache);
    write_tools(w, request, &history, options.prompt_cache);
    if let Some(budget) = budget {
        w.key("thinking");
        w.open(b'{');
        w.member("type", "enabled");
        w.key("budget_tokens");
        w.u64(budget);
        w.close(b'}');
    }
    if let Some(effort) = request.thinking.filter(|word| !word.is_empty()) {
        w.key("output_config");
        w.open(b'{');
        w.member("effort", effort);
        w.close(b'}');
    }
    if let Some(temperature) = options
        .temperature
        .filter(|number| number.is_finite() && budget.is_none())
    {
        w.key("temperature");
        w.f64(temperature);
    }
    w.key("stream");
    w.bool(options.stream);
    write_extra(w, options);
    w.close(b'}');
}

fn write_system(w: &mut Writer<'_>, system: &str, cache: bool) {
    w.key("system");
    if !cache {
        return w.str(system);
    }
    w.open(b'[');
    write_text(w, system);
    let brace = w.len().saturating_sub(1);
    w.insert_member(brace, CACHE_MARK);
    w.close(b']');
}

/// The tools; a history that holds calls needs them declared even where none may be called any more.
fn write_tools(w: &mut Writer<'_>, request: &ModelRequest<'_>, history: &History<'_>, cache: bool) {
    let mut brace = 0;
    if !request.tools.is_empty() {
        w.key("tools");
        w.open(b'[');
        for tool in request.tools {
            w.open(b'{');
            w.member("name", &tool.name);
            w.member("description", &tool.description);
            w.key("input_schema");
            write_schema(w, &tool.schema);
            brace = w.len();
            w.close(b'}');
        }
        if cache {
            w.insert_member(brace, CACHE_MARK);
        }
        w.close(b']');
    } else if !history.all_calls().is_empty() {
        let names: BTreeSet<&str> = history.all_calls().iter().map(|call| &*call.name).collect();
        w.key("tools");
        w.open(b'[');
        for name in names {
            w.open(b'{');
            w.member("name", name);
            w.key("input_schema");
            w.literal(r#"{"type":"object"}"#);
            w.close(b'}');
        }
        w.close(b']');
        w.key("tool_choice");
        w.literal(r#"{"type":"none"}"#);
    }
}

/// Writes messages of alternating roles: neighbours of one role become one message.
struct Messages<'w, 'o> {
    w: &'w mut Writer<'o>,
    shown: &'w Shown,
    open: Option<&'static str>,
    last_block: usize,
}

impl Messages<'_, '_> {
    fn write(mut self, history: &History<'_>, cache: bool) {
        self.w.open(b'[');
        for entry in &history.entries {
            match entry {
                Entry::Say(message) => self.said(message),
                Entry::Reply(message, range) => {
                    let calls = history.calls(range);
                    self.reply(message, calls);
                    calls.iter().for_each(|call| self.result(call));
                }
                Entry::Orphan(outcome) => {
                    let mut text = String::new();
                    result_text(Some(*outcome), self.shown, &mut text);
                    self.text("user", &format!("[result of an earlier tool call]\n{text}"));
                }
            }
        }
        if self.open.is_some() {
            if cache {
                self.w.insert_member(self.last_block, CACHE_MARK);
            }
            self.end();
        }
        self.w.close(b']');
    }

    fn end(&mut self) {
        self.w.close(b']');
        self.w.close(b'}');
    }

    /// Opens a message of this role unless one is open. The first message must be the user's.
    fn role(&mut self, role: &'static str) {
        if self.open == Some(role) {
            return;
        }
        if self.open.is_some() {
            self.end();
        } else if role == "assistant" {
            self.text("user", "[the conversation goes on]");
            self.end();
        }
        self.w.open(b'{');
        self.w.member("role", role);
        self.w.key("content");
        self.w.open(b'[');
        self.open = Some(role);
    }

    /// Runs `write` inside a content block of the role.
    fn block(&mut self, role: &'static str, write: impl FnOnce(&mut Writer<'_>)) {
        self.role(role);
        self.w.open(b'{');
        write(self.w);
        self.last_block = self.w.len();
        self.w.close(b'}');
    }

    /// Text of white space alone is refused by the API, and left out.
    fn text(&mut self, role: &'static str, text: &str) {
        if !text.trim().is_empty() {
            self.block(role, |w| {
                w.member("type", "text");
                w.member("text", text);
            });
        }
    }

    fn said(&mut self, message: &Message) {
        let mut lead = lead(message);
        for block in &message.content {
            if let Some(text) = text_of(block, self.shown) {
                match lead.take() {
                    Some(lead) => self.text("user", &format!("{lead}{text}")),
                    None => self.text("user", &text),
                }
            } else if self.shown.is_sendable(block) {
                self.block("user", |w| write_media(w, block));
            }
        }
    }

    fn reply(&mut self, message: &Message, calls: &[Call<'_>]) {
        let mut calls = calls.iter();
        for block in &message.content {
            match block.as_ref() {
                Block::Text(text) => self.text("assistant", text),
                // Without its signature the API refuses it; it came from another provider, or was cut off.
                Block::Thinking {
                    text,
                    signature: Some(signature),
                } if !signature.is_empty() => {
                    self.block("assistant", |w| {
                        w.member("type", "thinking");
                        w.member("thinking", text);
                        w.member("signature", signature);
                    });
                }
                Block::Redacted(data) => self.block("assistant", |w| {
                    w.member("type", "redacted_thinking");
                    w.member("data", data);
                }),
                Block::ToolUse { .. } => {
                    if let Some(call) = calls.next() {
                        self.block("assistant", |w| {
                            w.member("type", "tool_use");
                            w.member("id", &call.id);
                            w.member("name", &call.name);
                            w.key("input");
                            w.args(call.args);
                        });
                    }
                }
                Block::Thinking { .. }
                | Block::Media { .. }
                | Block::ToolResult { .. }
                | Block::Opaque(_) => {}
            }
        }
    }

    fn result(&mut self, call: &Call<'_>) {
        let shown = self.shown;
        self.block("user", |w| {
            w.member("type", "tool_result");
            w.member("tool_use_id", &call.id);
            write_outcome(w, call.outcome, shown);
            if call.outcome.is_none_or(|outcome| outcome.error) {
                w.key("is_error");
                w.bool(true);
            }
        });
    }
}

fn write_outcome(w: &mut Writer<'_>, outcome: Option<Outcome<'_>>, shown: &Shown) {
    let pictures = || {
        outcome
            .into_iter()
            .flat_map(Outcome::blocks)
            .filter(|block| shown.is_sendable(block))
    };
    let mut text = String::new();
    result_text(outcome, shown, &mut text);
    w.key("content");
    if pictures().next().is_none() {
        return w.str(&text);
    }
    w.open(b'[');
    if !text.trim().is_empty() {
        write_text(w, &text);
    }
    for block in pictures() {
        w.open(b'{');
        write_media(w, block);
        w.close(b'}');
    }
    w.close(b']');
}

fn write_text(w: &mut Writer<'_>, text: &str) {
    w.open(b'{');
    w.member("type", "text");
    w.member("text", text);
    w.close(b'}');
}

fn write_media(w: &mut Writer<'_>, block: &Block) {
    let Block::Media { kind, source } = block else {
        return;
    };
    w.member(
        "type",
        match kind {
            MediaKind::Image => "image",
            MediaKind::Document => "document",
        },
    );
    w.key("source");
    w.open(b'{');
    match source {
        Source::Inline { mime, base64 } => {
            w.member("type", "base64");
            w.member("media_type", mime);
            w.member("data", base64);
        }
        Source::Url(url) => {
            w.member("type", "url");
            w.member("url", url);
        }
        Source::Stored(stored) => {
            w.member("type", "base64");
            w.member("media_type", &stored.mime);
            w.key("data");
            w.base64_of("", stored);
        }
    }
    w.close(b'}');
}
