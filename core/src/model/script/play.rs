//! Turns the acts of a reply into the bytes a provider would send.

use alloc::{borrow::ToOwned, format, string::String, vec, vec::Vec};

use super::view::View;
use super::{Act, Counts, ScriptEnd, ScriptPiece, ScriptReply};
use crate::json;
use crate::model::Api;
use crate::vocab::ModelRequest;

/// What is answered where no reply of the script fits.
pub(super) fn no_reply(api: Api) -> ScriptReply {
    let mut player = Player::new(api, 0, "");
    player.fail(400, "", "the script has no reply for this request");
    player.reply
}

pub(super) fn play(
    api: Api,
    pace_us: u64,
    acts: &[Act],
    view: &View,
    request: &ModelRequest<'_>,
) -> ScriptReply {
    let mut player = Player::new(api, pace_us, request.model);
    for act in acts {
        player.act(act, view, request);
    }
    player.close();
    player.reply
}

struct Player<'r> {
    api: Api,
    pace_us: u64,
    model: &'r str,
    reply: ScriptReply,
    /// Time to pass before the next piece.
    wait_us: u64,
    /// Whether the stream's first event went out.
    begun: bool,
    /// Blocks (Anthropic) or calls (OpenAI) so far.
    blocks: u64,
    calls: u64,
    /// The reason given, or that none is to be given.
    finish: Option<Option<String>>,
    usage: Option<Counts>,
    /// Nothing may be added at the end.
    over: bool,
}

impl<'r> Player<'r> {
    fn new(api: Api, pace_us: u64, model: &'r str) -> Self {
        let headers = vec![("content-type", "text/event-stream".to_owned())];
        let reply = ScriptReply {
            status: 200,
            headers,
            head_after_us: 0,
            pieces: Vec::new(),
            end: ScriptEnd::Whole,
        };
        Self {
            api,
            pace_us,
            model,
            reply,
            wait_us: 0,
            begun: false,
            blocks: 0,
            calls: 0,
            finish: None,
            usage: None,
            over: false,
        }
    }

    fn act(&mut self, act: &Act, view: &View, request: &ModelRequest<'_>) {
        match act {
            Act::Think(text) => self.stream(&view.fill(text, request), true),
            Act::Say(text) => self.stream(&view.fill(text, request), false),
            Act::Call { name, args } => self.call(name, &view.fill(args, request)),
            Act::Usage(counts) => self.usage = Some(*counts),
            Act::Finish(word) => self.finish = Some(word.clone()),
            Act::Fail { status, code, text } => self.fail(*status, code, &view.fill(text, request)),
            Act::RetryAfter(value) => self.reply.headers.push(("retry-after", value.clone())),
            Act::Error { class, text } => self.error(class, &view.fill(text, request)),
            Act::Unreached(why) => {
                self.over = true;
                self.reply.end = ScriptEnd::Unreached(why.clone());
            }
            Act::Cut => {
                self.over = true;
                self.reply.end = ScriptEnd::Cut("the connection was cut (scripted)".into());
            }
            Act::Wait(time) => self.wait_us = self.wait_us.saturating_add(*time),
            Act::Raw(text) => self.send(text.clone().into_bytes()),
        }
    }

    fn send(&mut self, bytes: Vec<u8>) {
        let after_us = core::mem::take(&mut self.wait_us);
        self.reply.pieces.push(ScriptPiece { after_us, bytes });
    }

    /// Sends one event with this data.
    fn event(&mut self, name: &str, data: &str) {
        let line = if self.api == Api::Anthropic {
            format!("event: {name}\n")
        } else {
            String::new()
        };
        self.send(format!("{line}data: {data}\n\n").into_bytes());
    }

    fn choice(&mut self, delta: &str, finish: &str) {
        let head = format!(
            r#"{{"id":"scripted","object":"chat.completion.chunk","model":{}"#,
            string(self.model)
        );
        self.event(
            "",
            &format!(
                r#"{head},"choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}"#
            ),
        );
    }

    fn begin(&mut self) {
        if !core::mem::replace(&mut self.begun, true) && self.api == Api::Anthropic {
            let message = format!(
                r#"{{"id":"scripted","type":"message","role":"assistant","model":{},"content":[]}}"#,
                string(self.model)
            );
            self.event(
                "message_start",
                &format!(r#"{{"type":"message_start","message":{message}}}"#),
            );
        }
    }

    fn open_block(&mut self, block: &str) {
        let index = self.blocks;
        self.event(
            "content_block_start",
            &format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#),
        );
    }

    fn block_delta(&mut self, delta: &str) {
        let index = self.blocks;
        self.event(
            "content_block_delta",
            &format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#),
        );
    }

    fn close_block(&mut self) {
        let index = self.blocks;
        self.blocks += 1;
        self.event(
            "content_block_stop",
            &format!(r#"{{"type":"content_block_stop","index":{index}}}"#),
        );
    }

    /// Sends a text word by word.
    fn stream(&mut self, text: &str, thinking: bool) {
        self.begin();
        let (kind, member) = if thinking {
            ("thinking", "thinking")
        } else {
            ("text", "text")
        };
        if self.api == Api::Anthropic {
            self.open_block(&format!(r#"{{"type":"{kind}","{member}":""}}"#));
        }
        for (at, word) in text.split_inclusive(char::is_whitespace).enumerate() {
            if at > 0 {
                self.wait_us = self.wait_us.saturating_add(self.pace_us);
            }
            let word = string(word);
            match (self.api, thinking) {
                (Api::OpenAi, true) => {
                    self.choice(&format!(r#"{{"reasoning_content":{word}}}"#), "null")
                }
                (Api::OpenAi, false) => self.choice(&format!(r#"{{"content":{word}}}"#), "null"),
                (Api::Anthropic, _) => {
                    self.block_delta(&format!(r#"{{"type":"{kind}_delta","{member}":{word}}}"#))
                }
            }
        }
        if self.api == Api::Anthropic {
            if thinking {
                self.block_delta(r#"{"type":"signature_delta","signature":"scripted"}"#);
            }
            self.close_block();
        }
    }

    fn call(&mut self, name: &str, args: &str) {
        self.begin();
        self.calls += 1;
        let (name, args, number) = (string(name), string(args), self.calls);
        match self.api {
            Api::OpenAi => {
                let index = number - 1;
                let function = format!(r#"{{"name":{name},"arguments":{args}}}"#);
                self.choice(&format!(r#"{{"tool_calls":[{{"index":{index},"id":"call_{number}","type":"function","function":{function}}}]}}"#), "null");
            }
            Api::Anthropic => {
                self.open_block(&format!(
                    r#"{{"type":"tool_use","id":"call_{number}","name":{name},"input":{{}}}}"#
                ));
                self.block_delta(&format!(
                    r#"{{"type":"input_json_delta","partial_json":{args}}}"#
                ));
                self.close_block();
            }
        }
    }

    fn fail(&mut self, status: u16, code: &str, text: &str) {
        self.over = true;
        self.reply.status = status;
        if let Some((_, kind)) = self
            .reply
            .headers
            .iter_mut()
            .find(|(name, _)| *name == "content-type")
        {
            *kind = "application/json".into();
        }
        self.reply.head_after_us = core::mem::take(&mut self.wait_us);
        let code = if code.is_empty() {
            String::new()
        } else {
            format!(r#","code":{}"#, string(code))
        };
        self.send(format!(r#"{{"error":{{"message":{}{code}}}}}"#, string(text)).into_bytes());
    }

    fn error(&mut self, class: &str, text: &str) {
        self.over = true;
        let error = format!(r#"{{"type":{},"message":{}}}"#, string(class), string(text));
        self.event("error", &format!(r#"{{"type":"error","error":{error}}}"#));
    }

    /// Sends what a reply ends with: usage, finish reason, the end mark.
    fn close(&mut self) {
        if self.over {
            return;
        }
        let usual = match (self.api, self.calls > 0) {
            (Api::OpenAi, false) => "stop",
            (Api::OpenAi, true) => "tool_calls",
            (Api::Anthropic, false) => "end_turn",
            (Api::Anthropic, true) => "tool_use",
        };
        let Some(word) = self.finish.take().unwrap_or(Some(usual.into())) else {
            return;
        };
        self.begin();
        let (word, usage) = (string(&word), self.usage);
        match self.api {
            Api::OpenAi => {
                self.choice("{}", &word);
                if let Some(counts) = usage {
                    self.event(
                        "",
                        &format!(r#"{{"choices":[],"usage":{}}}"#, openai_usage(&counts)),
                    );
                }
                self.event("", "[DONE]");
            }
            Api::Anthropic => {
                let usage = usage
                    .map(|counts| anthropic_usage(&counts))
                    .unwrap_or_default();
                self.event(
                    "message_delta",
                    &format!(
                        r#"{{"type":"message_delta","delta":{{"stop_reason":{word}}}{usage}}}"#
                    ),
                );
                self.event("message_stop", r#"{"type":"message_stop"}"#);
            }
        }
    }
}

/// The counts of a script don't overlap; this API's do.
fn openai_usage(counts: &Counts) -> String {
    let prompt = counts.input.saturating_add(counts.cached);
    let completion = counts.output.saturating_add(counts.reasoning);
    let (cached, reasoning, total) = (
        counts.cached,
        counts.reasoning,
        prompt.saturating_add(completion),
    );
    format!(
        r#"{{"prompt_tokens":{prompt},"completion_tokens":{completion},"total_tokens":{total},"prompt_tokens_details":{{"cached_tokens":{cached}}},"completion_tokens_details":{{"reasoning_tokens":{reasoning}}}}}"#
    )
}

fn anthropic_usage(counts: &Counts) -> String {
    let output = counts.output.saturating_add(counts.reasoning);
    let (input, cached) = (counts.input, counts.cached);
    format!(
        r#","usage":{{"input_tokens":{input},"cache_read_input_tokens":{cached},"output_tokens":{output}}}"#
    )
}

/// A text as a JSON string.
fn string(text: &str) -> String {
    let mut out = Vec::new();
    json::write_str(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}
