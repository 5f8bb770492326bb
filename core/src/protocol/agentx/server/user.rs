//! `user` records: prompts.

use alloc::string::String;
use alloc::vec::Vec;

use super::prompts::{Booking, Seen};
use super::{Face, Pending, control, recall};
use crate::json::Raw;
use crate::protocol::Outbox;
use crate::protocol::agentx::Agentx;
use crate::protocol::agentx::policy::{BadUser, RecordForm};
use crate::protocol::agentx::prompt::{InputFault, Part, Prompt as Read};
use crate::protocol::agentx::wire::{self, Any, Kept, Priority, Said, User};
use crate::protocol::wire::Hole;
use crate::vocab::*;

impl Face {
    /// A message of the host. `bytes`: of its line.
    pub(super) fn user(&mut self, user: &User<'_>, bytes: usize, out: &mut Outbox<Agentx>) {
        self.any_user = true;
        let policy = self.config.policy;
        let read = match Read::read(user, &policy) {
            Ok(read) => read,
            Err(fault) => return self.bad_user(user, fault, out),
        };
        // A replay and a prompt that comes again refer to nothing else than a prompt may (WIRE-017).
        let has_attachments = read.attachments().next().is_some();
        if has_attachments && !(self.imports() && self.imports.fit(&read)) {
            return self.bad_user(user, InputFault::Attachments, out);
        }
        let replay = self.config.replay.then(|| self.replay_of(user, &read));
        if let Some(uuid) = read.uuid.as_deref() {
            match self.prompts.seen(uuid) {
                Seen::New => {}
                Seen::Queued if policy.bad_user_record == BadUser::InputError => {
                    return self.input_error(Some(uuid), DUPLICATE, out);
                }
                // It isn't run again (WIRE, ordering and duplicates).
                Seen::Queued | Seen::Accepted => {
                    if let Some(replay) = replay {
                        self.replay(&replay, out);
                    }
                    return;
                }
            }
        }
        if read.is_replay {
            return self.recall(&read, out);
        }
        self.recall_held(out);
        if !self.attachments_fit(&read) {
            return self.bad_user(user, InputFault::Attachments, out);
        }
        let fields: usize = read.parts.iter().map(part_bytes).sum();
        let bytes = bytes.max(fields);
        if !self.prompts.has_room(bytes) {
            return self.input_error(read.uuid.as_deref(), control::QUEUE_FULL, out);
        }
        let uuid: Option<Text> = match &read.uuid {
            Some(uuid) => Some((&**uuid).into()),
            None if policy.record_form == RecordForm::Strict => {
                Some(self.printer.uuid().as_str().into())
            }
            None => None,
        };
        // A host that learns an id this way may name it later (`rewind_files`).
        let told: Option<Text> = match (&uuid, &replay) {
            (None, Some(_)) => Some(self.printer.uuid().as_str().into()),
            (Some(_), _) | (None, None) => None,
        };
        let replay = replay.map(|replay| with_uuid(replay, uuid.as_ref().or(told.as_ref())));
        // A replay is a little longer than what it repeats: one that couldn't be written would be the last line of all.
        let longest = policy.max_line().unwrap_or(usize::MAX);
        let replayed = replay.as_ref().map_or(0, String::len);
        if replayed.saturating_add(REPLAY_ADDS + self.printer.session().len()) > longest {
            return self.input_error(uuid.as_deref(), TOO_LONG, out);
        }
        let details = recall::details(uuid.as_deref(), user.tool_use_result);
        let prompt = Prompt {
            id: out.next_prompt(),
            tag: uuid.clone(),
            content: read.parts.iter().map(|part| self.block(part)).collect(),
            deliver: match read.priority {
                _ if read.is_context => Deliver::Context,
                Priority::Now => Deliver::Preempt,
                Priority::Next | Priority::Other(_) => Deliver::Queue(Rank::Next),
                Priority::Later => Deliver::Queue(Rank::Later),
            },
            literal: false,
            details,
        };
        self.prompts.book(
            prompt.id,
            Booking {
                uuid,
                replay,
                told,
                bytes,
                context: read.is_context,
                preempts: !read.is_context && read.priority == Priority::Now,
            },
        );
        if !self.config.sdk_servers.is_empty() {
            self.start_mcp(&[], Any::ABSENT, out);
        }
        if self.mcp.is_starting() || !self.held_prompts.is_empty() {
            self.held_prompts.push_back(prompt);
        } else {
            self.send_prompt(prompt, out);
        }
    }

    fn send_prompt(&mut self, prompt: Prompt, out: &mut Outbox<Agentx>) {
        let id = prompt.id;
        self.call(Command::Prompt(prompt), Pending::Prompt(id), out);
    }

    /// The host's servers are there, or aren't: prompts that waited for them go to the agent.
    pub(super) fn release_prompts(&mut self, out: &mut Outbox<Agentx>) {
        while !self.mcp.is_starting()
            && let Some(prompt) = self.held_prompts.pop_front()
        {
            self.send_prompt(prompt, out);
        }
    }

    /// A message that makes no sense.
    fn bad_user(&mut self, user: &User<'_>, fault: InputFault, out: &mut Outbox<Agentx>) {
        match self.config.policy.bad_user_record {
            BadUser::InputError => {
                let text = alloc::format!("{fault}");
                self.input_error(user.uuid.as_deref(), &text, out);
            }
            BadUser::Exit => {
                out.diagnostic(alloc::format!("{fault}").as_str().into());
                self.leave(1, out);
            }
        }
    }

    /// What the replay of a prompt says, as JSON: in the strict wire its canonical form, else as it came.
    fn replay_of(&self, user: &User<'_>, read: &Read<'_>) -> String {
        let replay = if self.config.policy.record_form == RecordForm::Strict {
            User {
                message: Some(Kept::Known(Said::from(read.replayed()))),
                uuid: user.uuid.clone(),
                ..User::default()
            }
        } else {
            User {
                session_id: None,
                is_replay: None,
                priority: None,
                ..user.clone()
            }
        };
        let mut json = Vec::new();
        replay.put(&mut json);
        String::from_utf8(json).unwrap_or_default()
    }
}

/// A replay always has an id.
fn with_uuid(replay: String, uuid: Option<&Text>) -> String {
    let mut user: User<'_> = Raw::trusted(&replay).decode().unwrap_or_default();
    if user.uuid.as_ref().is_some_and(|uuid| !uuid.is_empty()) {
        return replay;
    }
    user.uuid = uuid.map(|uuid| (&**uuid).into());
    let mut json = Vec::new();
    user.put(&mut json);
    String::from_utf8(json).unwrap_or_default()
}

fn part_bytes(part: &Part<'_>) -> usize {
    match part {
        Part::Text(text) => text.len(),
        Part::Attachment(manifest) => manifest.name.len() + 512,
        Part::Block(block) => {
            let mut json = Vec::new();
            block.put(&mut json);
            json.len()
        }
    }
}

impl Face {
    /// Whether the attachments of a prompt are all those that were brought in for it, and no others (WIRE-020). What the
    /// agent would do by itself takes none.
    fn attachments_fit(&self, read: &Read<'_>) -> bool {
        if read.attachments().next().is_none() {
            return !self.imports() || self.imports.fit(read);
        }
        let text = read.text();
        let command = text
            .strip_prefix('/')
            .and_then(|text| text.split_whitespace().next());
        let known = self.mirror.info().map_or(&[][..], |info| &info.commands);
        let is_command = known.iter().any(|(name, ..)| command == Some(&**name));
        !is_command && self.imports.fit(read)
    }

    /// A part in neutral words.
    pub(super) fn block(&self, part: &Part<'_>) -> Block {
        match part {
            Part::Text(text) => Block::Text((&**text).into()),
            Part::Attachment(manifest) => match self.imports.stored(&manifest.attachment_id) {
                Some((kind, stored)) => Block::Media {
                    kind,
                    source: Source::Stored(stored),
                },
                // A prompt that refers to what isn't there isn't taken.
                None => Block::Text((&*manifest.name).into()),
            },
            Part::Block(block @ wire::Block::Image(image)) => {
                media(MediaKind::Image, image.source, block)
            }
            Part::Block(block @ wire::Block::Document(document)) => {
                media(MediaKind::Document, document.source, block)
            }
            Part::Block(block) => opaque(block),
        }
    }
}

fn opaque(block: &wire::Block<'_>) -> Block {
    let mut json = Vec::new();
    block.put(&mut json);
    Block::Opaque(super::blocks::keep(&json))
}

/// A picture or a document; `whole`: its block.
pub(super) fn media(kind: MediaKind, source: Any<'_>, whole: &wire::Block<'_>) -> Block {
    let string = |name| {
        source
            .get()
            .and_then(|source| source.get_last(name))
            .and_then(Raw::string)
    };
    let source = match (string("type").as_deref(), string("data"), string("url")) {
        (Some("base64"), Some(data), _) => Source::Inline {
            mime: string("media_type").as_deref().unwrap_or_default().into(),
            base64: (&*data).into(),
        },
        (Some("url"), _, Some(url)) => Source::Url((&*url).into()),
        _ => return opaque(whole),
    };
    Block::Media { kind, source }
}

/// Bytes of the members that a replay has besides, at most, without the session's id.
const REPLAY_ADDS: usize = 128;
const TOO_LONG: &str = "the message is too long to be repeated";
const DUPLICATE: &str = "a prompt with this uuid is queued already";
