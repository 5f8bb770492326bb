//! What a `user` record says: its parts, its place in the queue, or why it makes no sense (WIRE-017, WIRE-020).
//!
//! A record that makes no sense is no fault of the stream: the host is told in a `result`, and all else goes on, unless
//! the [`Policy`] says otherwise.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::import::{MAX_PER_PROMPT, check_manifest, is_uuid};
use super::policy::{BadUser, ContentBlocks, MemberRules, Policy};
use super::wire::{
    Block, Content, Kept, Manifest, Priority, Rest, Role, Said, TextBlock, User, UserMessage,
};
use crate::json::{Lazy, Str};

/// The longest id of a prompt, in bytes.
pub const MAX_UUID_BYTES: usize = 256;

/// A prompt, or a message that was said before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt<'a> {
    /// Its id, if the host gave one.
    pub uuid: Option<Str<'a>>,
    /// Its place in the queue.
    pub priority: Priority<'a>,
    /// What it says, in order.
    pub parts: Vec<Part<'a>>,
    /// It was said before, and starts nothing.
    pub is_replay: bool,
    /// Nobody wrote it, or it is what a tool gave back: context alone.
    pub is_context: bool,
}

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Text.
    Text(Lazy<'a>),
    /// An attachment that was brought in before.
    Attachment(Manifest<'a>),
    /// An image, a document or what a tool gave back, in the provider's form.
    Block(Block<'a>),
}

/// Why a `user` record makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputFault {
    /// `priority` isn't `now`, `next` or `later`.
    Priority,
    /// A replay without a session's id, or without one of its own.
    ReplayIds,
    /// The id is too long, or holds white space or control characters.
    Uuid,
    /// The message isn't one: of another shape, blank, of another role, with a member too many.
    Message,
    /// The attachments don't belong together: one twice, too many, a manifest that can't be, or no UUID for a prompt
    /// that has some.
    Attachments,
}

impl fmt::Display for InputFault {
    /// What stands in `errors`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InputFault::Priority => "priority must be now, next or later",
            InputFault::ReplayIds => "a replayed message needs a uuid and a session_id",
            InputFault::Uuid => "uuid must be short and without white space",
            InputFault::Message => "the user message can't be read",
            InputFault::Attachments => "the attachments of the message can't be used",
        })
    }
}

impl core::error::Error for InputFault {}

/// The `stop_reason` of the `result` that tells of an [`InputFault`].
pub const INPUT_ERROR: &str = "input_error";

impl<'a> Prompt<'a> {
    /// Reads what the record says. Whether its attachments were brought in is not judged here.
    ///
    /// # Errors
    /// [`InputFault`], for the first thing that makes no sense.
    pub fn read(user: &User<'a>, policy: &Policy) -> Result<Self, InputFault> {
        let priority = match &user.priority {
            None => Priority::Next,
            Some(Kept::Known(word @ (Priority::Now | Priority::Next | Priority::Later))) => {
                word.clone()
            }
            // claude passes over what it doesn't know.
            Some(_) if policy.bad_user_record == BadUser::Exit => Priority::Next,
            Some(_) => return Err(InputFault::Priority),
        };
        let is_replay = user.is_replay == Some(true);
        let is_strict = policy.member_rules == MemberRules::Closed;
        let has = |id: &Option<Str<'_>>| id.as_ref().is_some_and(|id| !id.is_empty());
        if is_replay && is_strict && !(has(&user.uuid) && has(&user.session_id)) {
            return Err(InputFault::ReplayIds);
        }
        let uuid = user.uuid.clone().filter(|uuid| !uuid.is_empty());
        if is_strict && !uuid.as_deref().is_none_or(is_prompt_id) {
            return Err(InputFault::Uuid);
        }
        let said = user.message.as_ref().and_then(Kept::known);
        let parts = parts(said.ok_or(InputFault::Message)?, policy)?;
        let prompt = Prompt {
            uuid,
            priority,
            parts,
            is_replay,
            is_context: user.is_synthetic == Some(true) || user.tool_use_result.get().is_some(),
        };
        prompt.check_attachments()?;
        Ok(prompt)
    }

    /// The attachments, in order.
    pub fn attachments(&self) -> impl Iterator<Item = &Manifest<'a>> {
        self.parts.iter().filter_map(|part| match part {
            Part::Attachment(manifest) => Some(manifest),
            Part::Text(_) | Part::Block(_) => None,
        })
    }

    /// The texts, each on lines of its own.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            if let Part::Text(piece) = part {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(piece);
            }
        }
        text
    }

    /// The message as a replay says it: text in its canonical spelling, attachments with their whole manifests, all in
    /// the order of the prompt (WIRE-017, WIRE-022).
    pub fn replayed(&self) -> UserMessage<'a> {
        let block = |part: &Part<'a>| {
            Kept::Known(match part {
                Part::Text(text) => Block::Text(TextBlock {
                    text: text.clone(),
                    ..TextBlock::default()
                }),
                Part::Attachment(manifest) => Block::Attachment(manifest.clone()),
                Part::Block(block) => block.clone(),
            })
        };
        let has_attachments = self.attachments().next().is_some();
        UserMessage {
            role: Some(Role::User),
            content_version: has_attachments.then(|| super::import::VERSION.into()),
            content: Content::Blocks(self.parts.iter().map(block).collect()),
            ..UserMessage::default()
        }
    }

    fn check_attachments(&self) -> Result<(), InputFault> {
        let ids: Vec<&str> = self
            .attachments()
            .map(|manifest| &*manifest.attachment_id)
            .collect();
        let Some((_, rest)) = ids.split_first() else {
            return Ok(());
        };
        let is_twice = ids
            .iter()
            .zip(0_usize..)
            .any(|(id, index)| rest.iter().skip(index).any(|other| other == id));
        let has_uuid = self.uuid.as_deref().is_some_and(is_uuid);
        if is_twice || ids.len() > MAX_PER_PROMPT || !has_uuid {
            return Err(InputFault::Attachments);
        }
        Ok(())
    }
}

/// Whether it can be the id of a prompt.
fn is_prompt_id(uuid: &str) -> bool {
    let is_bad = |char: char| char.is_whitespace() || char.is_control();
    uuid.len() <= MAX_UUID_BYTES && !uuid.contains(is_bad)
}

fn parts<'a>(said: &Said<'a>, policy: &Policy) -> Result<Vec<Part<'a>>, InputFault> {
    let is_strict = policy.member_rules == MemberRules::Closed;
    let message = match said {
        Said::Text(text) if is_strict => return Ok([Part::Text(written(text)?)].into()),
        // claude wants an object.
        Said::Text(_) => return Err(InputFault::Message),
        Said::Message(message) => message,
    };
    let is_user = match &message.role {
        Some(role) => *role == Role::User,
        None => is_strict,
    };
    let version = message.content_version.as_ref().map(|number| number.u64());
    if !is_user
        || (is_strict && !is_bare(&message.rest))
        || !matches!(version, None | Some(Some(1)))
    {
        return Err(InputFault::Message);
    }
    let blocks = match &message.content {
        Content::Text(_) if version.is_some() && is_strict => return Err(InputFault::Message),
        Content::Text(text) if is_strict => return Ok([Part::Text(written(text)?)].into()),
        Content::Text(text) => return Ok([Part::Text(text.clone())].into()),
        Content::Blocks(blocks) => blocks,
    };
    if blocks.is_empty() && is_strict {
        return Err(InputFault::Message);
    }
    blocks
        .iter()
        .map(|block| part(block, version.is_some(), is_strict, policy))
        .collect()
}

fn part<'a>(
    block: &Kept<'a, Block<'a>>,
    is_versioned: bool,
    is_strict: bool,
    policy: &Policy,
) -> Result<Part<'a>, InputFault> {
    let block = block.known().ok_or(InputFault::Message)?;
    let (text, is_closed) = match block {
        Block::Text(block) => (
            &block.text,
            is_bare(&block.rest) && block.citations.get().is_none(),
        ),
        Block::InputText(block) => (&block.text, is_bare(&block.rest)),
        Block::Attachment(manifest)
            if policy.content_blocks == ContentBlocks::TextAndAttachments =>
        {
            if !is_versioned || !is_bare(&manifest.rest) {
                return Err(InputFault::Message);
            }
            check_manifest(manifest).map_err(|_| InputFault::Attachments)?;
            return Ok(Part::Attachment(manifest.clone()));
        }
        Block::Image(_) | Block::Document(_) | Block::ToolResult(_)
            if policy.content_blocks == ContentBlocks::TextAndMedia =>
        {
            return Ok(Part::Block(block.clone()));
        }
        Block::Thinking(_)
        | Block::RedactedThinking(_)
        | Block::ToolUse(_)
        | Block::ToolResult(_)
        | Block::Image(_)
        | Block::Document(_)
        | Block::Attachment(_)
        | Block::Unknown(_) => return Err(InputFault::Message),
    };
    if !is_strict {
        return Ok(Part::Text(text.clone()));
    }
    if !is_closed {
        return Err(InputFault::Message);
    }
    Ok(Part::Text(written(text)?))
}

/// Text that isn't blank.
fn written<'a>(text: &Lazy<'a>) -> Result<Lazy<'a>, InputFault> {
    if text.trim().is_empty() {
        return Err(InputFault::Message);
    }
    Ok(text.clone())
}

fn is_bare(rest: &Rest<'_>) -> bool {
    rest.0.is_empty()
}
