//! Request bodies of the chat completions API.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use crate::model::content::{Shown, lead, noun};
use crate::model::history::{Call, Entry, History, Outcome, result_text, text_of};
use crate::model::request::{write_extra, write_schema};
use crate::model::writer::Writer;
use crate::model::{Api, RequestOptions};
use crate::vocab::{Block, MediaKind, Message, ModelRequest, Source, ToolSpec};

/// Writes the whole body.
pub(in crate::model) fn write(
    w: &mut Writer<'_>,
    request: &ModelRequest<'_>,
    options: &RequestOptions,
    shown: &Shown,
) {
    w.open(b'{');
    w.member("model", request.model);
    w.key("messages");
    w.open(b'[');
    if let Some(system) = request.system.filter(|text| !text.is_empty()) {
        open_message(w, "system");
        w.member("content", system);
        w.close(b'}');
    }
    write_history(w, request, options, shown);
    w.close(b']');
    if let Some(temperature) = options.temperature.filter(|number| number.is_finite()) {
        w.key("temperature");
        w.f64(temperature);
    }
    if let Some(limit) = request.max_output {
        w.key(options.max_tokens_field.name());
        w.u64(limit);
    }
    w.key("stream");
    w.bool(options.stream);
    if options.stream && options.include_usage {
        w.key("stream_options");
        w.literal(r#"{"include_usage":true}"#);
    }
    write_tools(w, request.tools);
    if let Some(effort) = request.thinking.filter(|word| !word.is_empty()) {
        w.member("reasoning_effort", effort);
    }
    write_extra(w, options);
    w.close(b'}');
}

fn write_tools(w: &mut Writer<'_>, tools: &[ToolSpec]) {
    if tools.is_empty() {
        return;
    }
    w.key("tools");
    w.open(b'[');
    for tool in tools {
        w.open(b'{');
        w.member("type", "function");
        w.key("function");
        w.open(b'{');
        w.member("name", &tool.name);
        w.member("description", &tool.description);
        w.key("parameters");
        write_schema(w, &tool.schema);
        w.close(b'}');
        w.close(b'}');
    }
    w.close(b']');
    w.member("tool_choice", "auto");
}

fn write_history(
    w: &mut Writer<'_>,
    request: &ModelRequest<'_>,
    options: &RequestOptions,
    shown: &Shown,
) {
    let history = History::of(Api::OpenAi, request);
    let mut scratch = String::new();
    for entry in &history.entries {
        match entry {
            Entry::Say(message) => write_said(w, message, shown, &mut scratch),
            Entry::Reply(message, range) => {
                let calls = history.calls(range);
                write_reply(w, message, calls, options, &mut scratch);
                write_results(w, calls, shown, &mut scratch);
            }
            Entry::Orphan(outcome) => {
                result_text(Some(*outcome), shown, &mut scratch);
                open_message(w, "user");
                w.member(
                    "content",
                    &format!("[result of an earlier tool call]\n{scratch}"),
                );
                w.close(b'}');
            }
        }
    }
}

fn open_message(w: &mut Writer<'_>, role: &str) {
    w.open(b'{');
    w.member("role", role);
}

/// A message to the model: plain text where it holds nothing else, a list of parts where it does.
fn write_said(w: &mut Writer<'_>, message: &Message, shown: &Shown, scratch: &mut String) {
    scratch.clear();
    if let Some(lead) = lead(message) {
        scratch.push_str(&lead);
    }
    let lead_length = scratch.len();
    let mut pieces = 0;
    let mut media = false;
    for block in &message.content {
        media |= shown.is_sendable(block);
        if let Some(text) = text_of(block, shown).filter(|text| !text.is_empty()) {
            if pieces > 0 {
                scratch.push('\n');
            }
            scratch.push_str(&text);
            pieces += 1;
        }
    }
    if scratch.len() == lead_length && !media {
        return;
    }
    open_message(w, "user");
    w.key("content");
    if media {
        w.open(b'[');
        if !scratch.is_empty() {
            write_text_part(w, scratch);
        }
        message
            .content
            .iter()
            .for_each(|block| write_media(w, block, shown));
        w.close(b']');
    } else {
        w.str(scratch);
    }
    w.close(b'}');
}

fn write_reply(
    w: &mut Writer<'_>,
    message: &Message,
    calls: &[Call<'_>],
    options: &RequestOptions,
    scratch: &mut String,
) {
    scratch.clear();
    for text in message.content.iter().filter_map(|block| reply_text(block)) {
        scratch.push_str(text);
    }
    if scratch.is_empty() && calls.is_empty() {
        return;
    }
    open_message(w, "assistant");
    w.key("content");
    if scratch.is_empty() {
        w.null()
    } else {
        w.str(scratch)
    }
    if let Some(field) = options.reasoning {
        write_reasoning(w, message, field.name(), scratch);
    }
    if !calls.is_empty() {
        let mut args = Vec::new();
        w.key("tool_calls");
        w.open(b'[');
        for call in calls {
            w.open(b'{');
            w.member("id", &call.id);
            w.member("type", "function");
            w.key("function");
            w.open(b'{');
            w.member("name", &call.name);
            args.clear();
            call.args.write(&mut args);
            w.member("arguments", core::str::from_utf8(&args).unwrap_or("{}"));
            w.close(b'}');
            w.close(b'}');
        }
        w.close(b']');
    }
    w.close(b'}');
}

fn reply_text(block: &Block) -> Option<&str> {
    if let Block::Text(text) = block {
        Some(text)
    } else {
        None
    }
}

fn write_reasoning(w: &mut Writer<'_>, message: &Message, field: &str, scratch: &mut String) {
    scratch.clear();
    for block in &message.content {
        if let Block::Thinking { text, .. } = block.as_ref() {
            scratch.push_str(text);
        }
    }
    if !scratch.is_empty() {
        w.member(field, scratch);
    }
}

/// The results of one reply's calls, in call order; pictures follow in a message of their own, since a
/// tool message holds text alone.
fn write_results(w: &mut Writer<'_>, calls: &[Call<'_>], shown: &Shown, scratch: &mut String) {
    for call in calls {
        result_text(call.outcome, shown, scratch);
        let failed = call.outcome.is_some_and(|outcome| outcome.error);
        open_message(w, "tool");
        w.member("tool_call_id", &call.id);
        let text = if failed && !scratch.starts_with("Error:") {
            Cow::Owned(format!("Error: {scratch}"))
        } else {
            Cow::Borrowed(&**scratch)
        };
        w.member(
            "content",
            if text.is_empty() && shows_media(call.outcome, shown) {
                "[shown in the next message]"
            } else {
                &text
            },
        );
        w.close(b'}');
    }
    for call in calls.iter().filter(|call| shows_media(call.outcome, shown)) {
        open_message(w, "user");
        w.key("content");
        w.open(b'[');
        write_text_part(w, &format!("[shown by {}]", call.name));
        call.outcome
            .into_iter()
            .flat_map(Outcome::blocks)
            .for_each(|block| write_media(w, block, shown));
        w.close(b']');
        w.close(b'}');
    }
}

fn shows_media(outcome: Option<Outcome<'_>>, shown: &Shown) -> bool {
    outcome
        .into_iter()
        .flat_map(Outcome::blocks)
        .any(|block| shown.is_sendable(block))
}

fn write_text_part(w: &mut Writer<'_>, text: &str) {
    w.open(b'{');
    w.member("type", "text");
    w.member("text", text);
    w.close(b'}');
}

fn write_media(w: &mut Writer<'_>, block: &Block, shown: &Shown) {
    let Block::Media { kind, source } = block else {
        return;
    };
    if let Source::Stored(stored) = source
        && !shown.has(stored)
    {
        return;
    }
    match (kind, source) {
        (MediaKind::Image, _) => {
            w.open(b'{');
            w.member("type", "image_url");
            w.key("image_url");
            w.open(b'{');
            w.key("url");
            write_url(w, source);
            w.close(b'}');
            w.close(b'}');
        }
        (MediaKind::Document, Source::Inline { .. } | Source::Stored(_)) => {
            let name = match source {
                Source::Stored(stored) => &*stored.name,
                Source::Inline { .. } | Source::Url(_) => noun(*kind),
            };
            w.open(b'{');
            w.member("type", "file");
            w.key("file");
            w.open(b'{');
            w.member("filename", name);
            w.key("file_data");
            write_url(w, source);
            w.close(b'}');
            w.close(b'}');
        }
        (MediaKind::Document, Source::Url(url)) => {
            write_text_part(w, &format!("[document at {url}]"));
        }
    }
}

fn write_url(w: &mut Writer<'_>, source: &Source) {
    match source {
        Source::Inline { mime, base64 } => w.str(&format!("data:{mime};base64,{base64}")),
        Source::Url(url) => w.str(url),
        Source::Stored(stored) => w.base64_of(&format!("data:{};base64,", stored.mime), stored),
    }
}
