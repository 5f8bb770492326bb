//! Listens to a decoder, and holds it to the order that chunks must keep.
#![allow(dead_code, reason = "each test file uses its own part")]

use turnwire::model::{Api, ReplyDecoder, ReplyHead, ReplyLimits};
use turnwire::vocab::{Failure, ModelChunk, Now, Usage};

pub const NOW: Now = Now {
    mono_us: 1,
    unix_ms: 1_700_000_000_000,
};
pub const STREAM: ReplyHead<'static> = ReplyHead {
    status: 200,
    reason: "OK",
    content_type: Some("text/event-stream; charset=utf-8"),
    retry_after: None,
};
pub const JSON: ReplyHead<'static> = ReplyHead {
    status: 200,
    reason: "OK",
    content_type: Some("application/json"),
    retry_after: None,
};

/// What a whole reply amounts to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heard {
    pub begun: Option<(Option<String>, Option<String>)>,
    pub text: String,
    pub thinking: String,
    pub signatures: Vec<String>,
    pub redacted: Vec<String>,
    pub calls: Vec<HeardCall>,
    pub usage: Vec<Usage>,
    pub finish: Option<String>,
    pub failed: Option<(Failure, bool, Option<u64>)>,
    pub ended: bool,
    /// Every chunk, in order.
    pub chunks: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeardCall {
    pub id: Option<String>,
    pub name: String,
    pub args: String,
    pub whole: bool,
}

impl Heard {
    pub fn take(&mut self, chunk: &ModelChunk<'_>) {
        assert!(
            !self.ended && self.failed.is_none(),
            "{chunk:?} after the settlement"
        );
        self.chunks.push(format!("{chunk:?}"));
        let content = !matches!(
            chunk,
            ModelChunk::Begin { .. }
                | ModelChunk::Alive
                | ModelChunk::Failed { .. }
                | ModelChunk::End
        );
        assert!(
            !content
                || self.begun.is_some()
                || matches!(chunk, ModelChunk::Usage(_) | ModelChunk::Finish(_)),
            "{chunk:?} before Begin"
        );
        match chunk {
            ModelChunk::Begin { id, model } => {
                assert!(self.begun.is_none(), "Begin twice");
                self.begun = Some((id.map(Into::into), model.map(Into::into)));
            }
            ModelChunk::Text(text) => self.text.push_str(not_empty(text)),
            ModelChunk::Thinking(text) => self.thinking.push_str(not_empty(text)),
            ModelChunk::Signature(text) => self.signatures.push(not_empty(text).into()),
            ModelChunk::Redacted(text) => self.redacted.push(not_empty(text).into()),
            ModelChunk::CallBegin { index, id, name } => {
                assert_eq!(
                    *index as usize,
                    self.calls.len(),
                    "calls are numbered in order"
                );
                assert!(id.is_none_or(|id| !id.is_empty()));
                self.calls.push(HeardCall {
                    id: id.map(Into::into),
                    name: (*name).into(),
                    ..HeardCall::default()
                });
            }
            ModelChunk::CallArgs { index, text } => {
                let call = self
                    .calls
                    .get_mut(*index as usize)
                    .expect("arguments of a call that began");
                assert!(!call.whole, "arguments after the call's end");
                call.args.push_str(not_empty(text));
            }
            ModelChunk::CallEnd { index } => {
                let call = self
                    .calls
                    .get_mut(*index as usize)
                    .expect("the end of a call that began");
                assert!(!call.whole, "CallEnd twice");
                call.whole = true;
            }
            ModelChunk::Alive => {}
            ModelChunk::Usage(usage) => self.usage.push(*usage),
            ModelChunk::Finish(word) => {
                assert!(self.finish.is_none(), "Finish twice");
                assert!(
                    self.calls.iter().all(|call| call.whole),
                    "Finish with a call open"
                );
                self.finish = Some((*word).into());
            }
            ModelChunk::End => self.ended = true,
            ModelChunk::Failed {
                failure,
                reached,
                retry_after_us,
            } => {
                self.failed = Some((failure.clone(), *reached, *retry_after_us));
            }
        }
    }

    /// Complete: the finish was said, and the end came.
    pub fn complete(&self) -> bool {
        self.ended && self.finish.is_some()
    }

    /// Cut: it ended without a finish.
    pub fn truncated(&self) -> bool {
        self.ended && self.finish.is_none()
    }

    pub fn error(&self) -> &str {
        self.failed
            .as_ref()
            .map_or("", |(failure, ..)| &failure.text)
    }

    pub fn failure(&self) -> &Failure {
        &self.failed.as_ref().expect("a failed reply").0
    }
}

fn not_empty(text: &str) -> &str {
    assert!(!text.is_empty(), "an empty piece");
    text
}

/// Decodes a reply that comes in these parts and then ends.
pub fn hear_parts<'p>(
    api: Api,
    head: &ReplyHead<'_>,
    limits: ReplyLimits,
    parts: impl IntoIterator<Item = &'p [u8]>,
) -> Heard {
    let mut decoder = ReplyDecoder::new(api, limits);
    let mut heard = Heard::default();
    decoder.head(head, NOW);
    for part in parts {
        decoder.bytes(part, NOW, &mut |chunk| heard.take(&chunk));
    }
    decoder.end(NOW, &mut |chunk| heard.take(&chunk));
    assert!(decoder.is_settled());
    decoder.bytes(
        b"data: {\"choices\":[{\"delta\":{\"content\":\"late\"}}]}\n\n",
        NOW,
        &mut |chunk| heard.take(&chunk),
    );
    decoder.end(NOW, &mut |chunk| heard.take(&chunk));
    decoder.broken("late", NOW, &mut |chunk| heard.take(&chunk));
    heard
}

pub fn hear(api: Api, head: &ReplyHead<'_>, body: &[u8]) -> Heard {
    hear_parts(api, head, ReplyLimits::default(), [body])
}

/// Decodes a reply whole, cut once at each place, and byte by byte: all must agree chunk by chunk (L1).
pub fn hear_all_cuts(api: Api, head: &ReplyHead<'_>, body: &[u8]) -> Heard {
    let whole = hear(api, head, body);
    for at in 0..=body.len() {
        let (front, back) = body.split_at(at);
        let cut = hear_parts(api, head, ReplyLimits::default(), [front, back]);
        assert_eq!(cut, whole, "cut at byte {at}");
    }
    assert_eq!(
        hear_parts(api, head, ReplyLimits::default(), body.chunks(1)),
        whole,
        "byte by byte"
    );
    whole
}

/// A stream of these data lines.
pub fn sse(events: &[&str]) -> Vec<u8> {
    events
        .iter()
        .flat_map(|data| format!("data: {data}\n\n").into_bytes())
        .collect()
}

/// A delta of the chat completions API.
pub fn delta(delta: &str) -> String {
    format!(
        r#"{{"id":"c","model":"m","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#
    )
}

/// The finish of the chat completions API.
pub fn finish(word: &str) -> String {
    format!(r#"{{"id":"c","choices":[{{"index":0,"delta":{{}},"finish_reason":"{word}"}}]}}"#)
}

/// The head of a message.
pub const START: &str = r#"{"type":"message_start","message":{"id":"m1","model":"claude","usage":{"input_tokens":10,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":1}}}"#;
/// The end of a message.
pub const STOP: &str = r#"{"type":"message_stop"}"#;

/// The start of a content block.
pub fn block(index: u32, block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
}

/// A delta of a content block.
pub fn add(index: u32, delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
}

/// The end of a content block.
pub fn stop(index: u32) -> String {
    format!(r#"{{"type":"content_block_stop","index":{index}}}"#)
}

/// The finish of a message.
pub fn end_turn(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":5}}}}"#
    )
}
