//! The side channel of a host: lines that bypass the queue of commands, and are never answered.
//!
//! Only what makes such a line one of its kind is demanded: the `id`, and the list of a tool's content. Everything else
//! has any type, so that a sloppy answer settles its request instead of leaving it open.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::Any;
use super::content::Block;
use super::member::{objects, tagged};
use crate::json::{Kind, Raw, Str};

objects! { without ["type"];
    /// The answer to a dialog: one of four shapes ([`UiResponse::answer`]).
    UiResponse {
        id "id": Str<'a>,
        value "value": Any<'a>,
        confirmed "confirmed": Any<'a>,
        cancelled "cancelled": Any<'a>,
        timed_out "timedOut": Any<'a>,
        /// G3.
        answers "answers": Any<'a>,
    }
    /// A piece of what a host's tool gives.
    HostToolUpdate {
        id "id": Str<'a>,
        partial_result "partialResult": HostOutput<'a>,
    }
    /// The end of a host's tool.
    HostToolResult {
        id "id": Str<'a>,
        result "result": HostOutput<'a>,
        /// The content is an error.
        is_error "isError": Any<'a>,
    }
    /// The end of a request for a URI.
    HostUriResult {
        id "id": Str<'a>,
        content "content": Any<'a>,
        /// `text/plain` if it isn't there.
        content_type "contentType": Any<'a>,
        notes "notes": Any<'a>,
        immutable "immutable": Any<'a>,
        is_error "isError": Any<'a>,
        error "error": Any<'a>,
    }
}

objects! { without [];
    /// What a host's tool gave.
    HostOutput {
        content "content": Vec<Block<'a>>,
        details "details": Any<'a>,
        /// Passed through: it doesn't make the result an error.
        is_error "isError": Any<'a>,
        provider_metadata "providerMetadata": Any<'a>,
        useless "useless": Any<'a>,
    }
    /// An answer to one question of a form. G3.
    AskAnswer {
        id "id": Str<'a>,
        selected_options "selectedOptions": Vec<Str<'a>>,
        custom_input "customInput": Option<Str<'a>>,
    }
}

tagged! {
    /// A line of the side channel.
    Side by "type" {
        Ui(UiResponse) = "extension_ui_response",
        ToolUpdate(HostToolUpdate) = "host_tool_update",
        ToolResult(HostToolResult) = "host_tool_result",
        UriResult(HostUriResult) = "host_uri_result",
    }
}

/// What an answer to a dialog says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UiAnswer<'a> {
    /// `select`, `input`, `editor`: a text.
    Value(Cow<'a, str>),
    /// `confirm`: yes or no.
    Confirmed(bool),
    /// `ask`: one answer for each question. G3.
    Answers(Vec<AskAnswer<'a>>),
    /// Dismissed, or out of time.
    Cancelled {
        /// The host's own deadline passed.
        timed_out: bool,
    },
    /// None of the four.
    Malformed,
}

impl<'a> UiResponse<'a> {
    /// What it says.
    pub fn answer(&self) -> UiAnswer<'a> {
        if self.cancelled.bool() == Some(true) {
            return UiAnswer::Cancelled {
                timed_out: self.timed_out.bool() == Some(true),
            };
        }
        if let Some(value) = self.value.string() {
            return UiAnswer::Value(value);
        }
        if let Some(confirmed) = self.confirmed.bool() {
            return UiAnswer::Confirmed(confirmed);
        }
        match self.answers.get().map(Raw::decode) {
            Some(Ok(answers)) => UiAnswer::Answers(answers),
            Some(Err(_)) | None => UiAnswer::Malformed,
        }
    }
}

impl HostToolResult<'_> {
    /// Whether the content is an error.
    pub fn failed(&self) -> bool {
        truthy(self.is_error)
    }
}

impl<'a> HostUriResult<'a> {
    /// Whether the request failed.
    pub fn failed(&self) -> bool {
        truthy(self.is_error)
    }

    /// The notes, those that are texts.
    pub fn notes(&self) -> Vec<Str<'a>> {
        let notes: Vec<Raw<'a>> = self
            .notes
            .get()
            .and_then(|notes| notes.decode().ok())
            .unwrap_or_default();
        notes
            .into_iter()
            .filter_map(|note| note.string().map(Str))
            .collect()
    }
}

/// Whether JavaScript takes it for true.
fn truthy(value: Any<'_>) -> bool {
    let Some(value) = value.get() else {
        return false;
    };
    match value.kind() {
        Kind::Null => false,
        Kind::Bool => value.bool() == Some(true),
        Kind::Number => value.as_str().parse() != Ok(0.0),
        Kind::String => value.string().is_some_and(|text| !text.is_empty()),
        Kind::Array | Kind::Object => true,
    }
}
