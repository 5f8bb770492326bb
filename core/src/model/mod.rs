//! The model room: what is sent to a provider, and what comes back, for the OpenAI-compatible chat
//! completions API and the Anthropic Messages API.
//!
//! Pure code on both sides. [`encode_request`] writes a body from what the session lends;
//! [`ReplyDecoder`] turns the bytes of a reply, however they are cut, into
//! [`ModelChunk`](crate::vocab::ModelChunk)s. Sending and reading is the driver's. [`script`]
//! plays a model from a readable file, through the same decoder.

mod anthropic;
mod calls;
mod content;
mod failure;
mod history;
mod http_date;
mod media;
mod openai;
mod piece;
mod reply;
mod request;
pub mod script;
mod wire;
mod writer;

pub use failure::{MAX_ERROR_TEXT, retry_after_us};
pub use media::{Insert, MediaLimits, fill, filled_len};
pub use reply::{ReplyDecoder, ReplyHead, ReplyLimits, lost, unreached, unsent};
pub use request::{
    MaxTokensField, ReasoningField, RequestOptions, encode_request, encode_with_media,
};

use crate::json::{self, Duplicates, Kind, Raw, ScanRules};

/// Which API a provider speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Api {
    /// OpenAI's chat completions, and what is compatible with it.
    #[default]
    OpenAi,
    /// Anthropic's Messages.
    Anthropic,
}

impl Api {
    /// The path of a request below the provider's base URL (which ends in its version, as `/v1`).
    pub const fn path(self) -> &'static str {
        match self {
            Api::OpenAi => "/chat/completions",
            Api::Anthropic => "/messages",
        }
    }

    /// Name of the header that holds the key, and what stands before the key in it.
    pub const fn key_header(self) -> (&'static str, &'static str) {
        match self {
            Api::OpenAi => ("authorization", "Bearer "),
            Api::Anthropic => ("x-api-key", ""),
        }
    }

    /// Headers that every request carries besides the key.
    pub const fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Api::OpenAi => &[
                ("content-type", "application/json"),
                ("accept", "text/event-stream"),
            ],
            Api::Anthropic => &[
                ("content-type", "application/json"),
                ("accept", "text/event-stream"),
                ("anthropic-version", "2023-06-01"),
            ],
        }
    }
}

/// How providers' JSON is scanned: neither a member that comes twice nor half a surrogate pair ends a
/// stream. Of two members with one name the last counts, as it does in every SDK's parser.
pub(crate) const RULES: ScanRules = ScanRules {
    duplicates: Duplicates::Pass,
    ..ScanRules::LENIENT
};

/// The text as one JSON object without members that come twice, if it is one.
pub(crate) fn object(text: &str) -> Option<Raw<'_>> {
    json::scan_value(text.as_bytes(), &ScanRules::LENIENT)
        .ok()
        .filter(|value| value.kind() == Kind::Object)
}
