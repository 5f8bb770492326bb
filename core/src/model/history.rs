//! The history as a provider must see it: calls named uniquely, each directly followed by its one result.
//!
//! The session already pairs calls and results (S-31). This pass makes it true of the bytes whatever it
//! is given: a call without a result gets one that says so, a result without a call becomes plain text,
//! and a call whose provider id is missing, illegal or already used gets a fresh one, the same in call
//! and result.

use alloc::{
    borrow::Cow, collections::BTreeMap, collections::BTreeSet, format, string::String, sync::Arc,
    vec::Vec,
};
use core::ops::Range;

use super::Api;
use super::content::Shown;
use crate::json::{self, Raw};
use crate::vocab::{Block, CallId, Message, ModelRequest, Role, ToolInput};

/// What a provider is told of a call that has no result in the history.
const NO_RESULT: &str = "This call was not run, or its result was not recorded.";

/// A request's history, ready to be written.
pub(super) struct History<'a> {
    pub entries: Vec<Entry<'a>>,
    calls: Vec<Call<'a>>,
}

pub(super) enum Entry<'a> {
    /// Something said to the model.
    Say(&'a Message),
    /// Something the model said, and the range of its calls.
    Reply(&'a Message, Range<usize>),
    /// A result whose call isn't in the history.
    Orphan(Outcome<'a>),
}

/// One call of the history with its result.
pub(super) struct Call<'a> {
    /// The id in the provider's form, unique in this request.
    pub id: Cow<'a, str>,
    /// The tool's name in the provider's form.
    pub name: Cow<'a, str>,
    /// The arguments.
    pub args: Args<'a>,
    /// What came of it.
    pub outcome: Option<Outcome<'a>>,
    key: CallId,
    given_id: Option<&'a str>,
}

/// What came of a call.
#[derive(Clone, Copy)]
pub(super) struct Outcome<'a> {
    content: Content<'a>,
    /// Whether it is marked as an error.
    pub error: bool,
}

#[derive(Clone, Copy)]
enum Content<'a> {
    Message(&'a [Arc<Block>]),
    Nested(&'a [Block]),
}

impl<'a> Outcome<'a> {
    pub(super) fn blocks(self) -> impl Iterator<Item = &'a Block> {
        let (shared, plain) = match self.content {
            Content::Message(blocks) => (blocks, &[][..]),
            Content::Nested(blocks) => (&[][..], blocks),
        };
        shared.iter().map(AsRef::as_ref).chain(plain)
    }
}

impl<'a> History<'a> {
    pub(super) fn of(api: Api, request: &ModelRequest<'a>) -> Self {
        let mut history = History {
            entries: Vec::with_capacity(request.messages.len()),
            calls: Vec::new(),
        };
        let mut unanswered = BTreeMap::new();
        for message in request.messages {
            history.take(message, &mut unanswered);
        }
        history.name_calls(api, request);
        history
    }

    /// The calls of a reply.
    pub(super) fn calls(&self, range: &Range<usize>) -> &[Call<'a>] {
        self.calls.get(range.clone()).unwrap_or_default()
    }

    /// Every call of the history.
    pub(super) fn all_calls(&self) -> &[Call<'a>] {
        &self.calls
    }

    fn take(&mut self, message: &'a Message, unanswered: &mut BTreeMap<CallId, usize>) {
        if message.role == Role::Assistant {
            let first = self.calls.len();
            for block in &message.content {
                if let Block::ToolUse {
                    call,
                    provider_id,
                    name,
                    input,
                } = block.as_ref()
                {
                    unanswered.insert(*call, self.calls.len());
                    self.calls.push(Call {
                        id: Cow::Borrowed(""),
                        name: Cow::Borrowed(name),
                        args: Args::of(input),
                        outcome: None,
                        key: *call,
                        given_id: provider_id.as_deref().filter(|id| !id.is_empty()),
                    });
                }
            }
            self.entries
                .push(Entry::Reply(message, first..self.calls.len()));
        }
        let mut nested = false;
        for block in &message.content {
            if let Block::ToolResult {
                call,
                content,
                is_error,
            } = block.as_ref()
            {
                nested = true;
                self.settle(
                    *call,
                    Outcome {
                        content: Content::Nested(content),
                        error: *is_error,
                    },
                    unanswered,
                );
            }
        }
        match &message.role {
            Role::Tool { call, error, .. } if !nested => {
                self.settle(
                    *call,
                    Outcome {
                        content: Content::Message(&message.content),
                        error: *error,
                    },
                    unanswered,
                );
            }
            Role::Tool { .. } | Role::Assistant => {}
            Role::User | Role::Note | Role::Summary | Role::Shell | Role::Other(_) => {
                self.entries.push(Entry::Say(message))
            }
        }
    }

    fn settle(
        &mut self,
        call: CallId,
        outcome: Outcome<'a>,
        unanswered: &mut BTreeMap<CallId, usize>,
    ) {
        match unanswered
            .remove(&call)
            .and_then(|index| self.calls.get_mut(index))
        {
            Some(call) => call.outcome = Some(outcome),
            None => self.entries.push(Entry::Orphan(outcome)),
        }
    }

    fn name_calls(&mut self, api: Api, request: &ModelRequest<'a>) {
        let mut used = BTreeSet::new();
        for call in &mut self.calls {
            if let Some(id) = call
                .given_id
                .filter(|id| is_legal_id(api, id) && used.insert(Cow::Borrowed(*id)))
            {
                call.id = Cow::Borrowed(id);
            }
            if !request.tools.iter().any(|tool| *tool.name == *call.name) {
                call.name = legal_name(core::mem::take(&mut call.name));
            }
        }
        for call in self.calls.iter_mut().filter(|call| call.id.is_empty()) {
            let mut id = format!("call_{}", call.key.0);
            let mut next = 2u64;
            while !used.insert(Cow::Owned(id.clone())) {
                id = format!("call_{}_{next}", call.key.0);
                next += 1;
            }
            call.id = Cow::Owned(id);
        }
    }
}

/// Ids travel between providers when a session changes its model; Anthropic checks their letters.
fn is_legal_id(api: Api, id: &str) -> bool {
    match api {
        Api::OpenAi => true,
        Api::Anthropic => id.bytes().all(is_name_byte),
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// A name that no declared tool has was made up by the model; both APIs refuse one with odd letters.
fn legal_name(name: Cow<'_, str>) -> Cow<'_, str> {
    if name.is_empty() {
        return Cow::Borrowed("unnamed");
    }
    if name.len() <= 64 && name.bytes().all(is_name_byte) {
        return name;
    }
    let legal = name.chars().take(64).map(|letter| {
        if letter.is_ascii() && is_name_byte(letter as u8) {
            letter
        } else {
            '_'
        }
    });
    Cow::Owned(legal.collect())
}

/// The arguments of a call, as one JSON object.
#[derive(Clone, Copy)]
pub(super) enum Args<'a> {
    /// As the model wrote them, digit by digit (J05).
    Object(Raw<'a>),
    /// They were no object: the text is repeated as a member of one.
    Wrapped(&'a str),
}

impl<'a> Args<'a> {
    fn of(input: &'a ToolInput) -> Self {
        let text = match input {
            ToolInput::Object(raw) => &*raw.0,
            ToolInput::Unparsed(text) => text,
        };
        super::object(if text.trim().is_empty() { "{}" } else { text })
            .map_or(Args::Wrapped(text), Args::Object)
    }

    /// Appends the object.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Args::Object(raw) => json::write_raw(out, raw),
            Args::Wrapped(text) => {
                out.extend_from_slice(br#"{"unparsed_arguments":"#);
                json::write_str(out, text);
                out.push(b'}');
            }
        }
    }
}

/// Whether a block counts as text for the model, and the text.
pub(super) fn text_of<'a>(block: &'a Block, shown: &Shown) -> Option<Cow<'a, str>> {
    match block {
        Block::Text(text) => Some(Cow::Borrowed(text)),
        Block::Media { kind, source } => {
            super::content::stand_in(*kind, source, shown).map(Cow::Owned)
        }
        Block::Opaque(raw) => Some(Cow::Borrowed(&raw.0)),
        Block::Thinking { .. }
        | Block::Redacted(_)
        | Block::ToolUse { .. }
        | Block::ToolResult { .. } => None,
    }
}

/// Joins the text of a result into `out`, line by line; media aren't part of it.
pub(super) fn result_text(outcome: Option<Outcome<'_>>, shown: &Shown, out: &mut String) {
    out.clear();
    let Some(outcome) = outcome else {
        out.push_str(NO_RESULT);
        return;
    };
    for text in outcome.blocks().filter_map(|block| text_of(block, shown)) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&text);
    }
}
