//! Request bodies: what is common to both APIs.

use alloc::vec::Vec;

use super::content::Shown;
use super::media::{Insert, MediaLimits};
use super::{Api, anthropic, openai, writer::Writer};
use crate::json;
use crate::vocab::{ModelRequest, RawJson, Stored, Text};

/// How a provider wants its requests; everything the session doesn't decide.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestOptions {
    /// Sampling temperature; left out when `None`, not finite, or together with a thinking budget
    /// (Anthropic refuses that).
    pub temperature: Option<f64>,
    /// The name under which an OpenAI-compatible server takes the largest output.
    pub max_tokens_field: MaxTokensField,
    /// Largest output in tokens where the API demands one and the session names none (Anthropic).
    pub default_max_output: u64,
    /// Whether the reply is to be streamed. A plain reply is decoded just as well.
    pub stream: bool,
    /// Whether `stream_options.include_usage` is asked for; some servers refuse it (OpenAI).
    pub include_usage: bool,
    /// Member in which earlier thinking is sent back, if at all. Only for the endpoint that produced it (OpenAI).
    pub reasoning: Option<ReasoningField>,
    /// Whether the stable front and the end of the history are marked for the prompt cache (Anthropic).
    pub prompt_cache: bool,
    /// Members added to the body as they are, after all others. The names of other members must not be used.
    pub extra: Vec<(Text, RawJson)>,
}

impl Default for RequestOptions {
    fn default() -> Self {
        Self {
            temperature: None,
            max_tokens_field: MaxTokensField::default(),
            default_max_output: 8_192,
            stream: true,
            include_usage: true,
            reasoning: None,
            prompt_cache: false,
            extra: Vec::new(),
        }
    }
}

/// Name of the member that limits the output of an OpenAI-compatible server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaxTokensField {
    /// `max_tokens`, which nearly every server knows.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which newer OpenAI models insist on.
    MaxCompletionTokens,
}

impl MaxTokensField {
    pub(super) const fn name(self) -> &'static str {
        match self {
            MaxTokensField::MaxTokens => "max_tokens",
            MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// Name of the member in which an OpenAI-compatible server takes a reply's earlier thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningField {
    /// `reasoning_content`
    ReasoningContent,
    /// `reasoning`
    Reasoning,
}

impl ReasoningField {
    pub(super) const fn name(self) -> &'static str {
        match self {
            ReasoningField::ReasoningContent => "reasoning_content",
            ReasoningField::Reasoning => "reasoning",
        }
    }
}

/// Appends the body of a request to `out`: one strict JSON object in UTF-8, without unpaired surrogates.
///
/// Every call of the history is directly followed by its one result under the same id (S-31), numbers in
/// arguments keep their digits, and arguments that never parsed are repeated as a string in an object.
/// Cannot fail; what a provider has no form for is put into words or left out, and so are media that an embedder keeps
/// ([`encode_with_media`] sends those).
pub fn encode_request(
    api: Api,
    request: &ModelRequest<'_>,
    options: &RequestOptions,
    out: &mut Vec<u8>,
) {
    let limits = MediaLimits { items: 0, bytes: 0 };
    encode_with_media(api, request, options, &limits, &|_| false, out);
}

/// As [`encode_request`], with gaps for the media that an embedder keeps, and returns the gaps in order.
///
/// The newest media are sent, as many as `limits` allow and `has` knows; the others are put into words. An embedder fills
/// the gaps with [`fill`](super::fill) where it may take its time.
pub fn encode_with_media(
    api: Api,
    request: &ModelRequest<'_>,
    options: &RequestOptions,
    limits: &MediaLimits,
    has: &dyn Fn(&Stored) -> bool,
    out: &mut Vec<u8>,
) -> Vec<Insert> {
    let shown = Shown::of(request, limits, has);
    let mut writer = Writer::new(out);
    match api {
        Api::OpenAi => openai::request::write(&mut writer, request, options, &shown),
        Api::Anthropic => anthropic::request::write(&mut writer, request, options, &shown),
    }
    writer.into_inserts()
}

/// Writes the members that the configuration adds.
pub(super) fn write_extra(writer: &mut Writer<'_>, options: &RequestOptions) {
    for (name, value) in &options.extra {
        if let Ok(value) = json::scan_value(value.0.as_bytes(), &super::RULES) {
            writer.key(name);
            writer.raw(value);
        }
    }
}

/// Writes a tool's schema, or one that allows any object where it isn't an object itself.
pub(super) fn write_schema(writer: &mut Writer<'_>, schema: &RawJson) {
    match super::object(&schema.0) {
        Some(schema) => writer.raw(schema),
        None => writer.literal(r#"{"type":"object","properties":{}}"#),
    }
}
