//! Secrets that a line holds, or that are whole once lines are joined.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::rules::Key;
use super::super::wire::Event;
use super::Here;
use crate::json::{Kind, Raw};
use crate::protocol::observer::{At, Notes, at_member, hash};
use crate::redact::{ArgStream, MASK, Secrets, Stream, is_secret_name};

/// The most calls whose arguments are joined.
const MOST: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Leaks {
    secrets: Secrets,
    /// The text or the reasoning that is open.
    text: Stream,
    kind: Option<&'static str>,
    args: VecDeque<(u64, ArgStream)>,
    scratch: String,
}

impl Leaks {
    pub(super) fn line(
        &mut self,
        event: &Event<'_>,
        here: Here<'_, '_, '_>,
        original: bool,
        notes: &mut Notes,
    ) {
        let mut found = false;
        for (name, value) in here.object.iter() {
            if self.shows(name, value) {
                found = true;
                let message = format!("{name} holds what looks like a secret");
                notes.add(Key::Secret.rule(), at_member(here.object, name), message);
            }
        }
        let whole = self.joined(event);
        if whole && !found && !original {
            let message = String::from("with the pieces before it this makes a secret");
            notes.add(Key::SplitSecret.rule(), at_delta(here), message);
        }
    }

    /// Whether a member shows a secret.
    fn shows(&self, name: &str, value: Raw<'_>) -> bool {
        match value.kind() {
            Kind::String => {
                let text = value.string().unwrap_or_default();
                if is_secret_name(name) {
                    return &*text != MASK;
                }
                self.secrets.found_in(&text)
            }
            Kind::Object => {
                let mut shows = is_secret_name(name);
                value.each_member(|name, value| shows = shows || self.shows(name, value));
                shows
            }
            Kind::Array => {
                let items: Vec<Raw<'_>> = value.decode().unwrap_or_default();
                is_secret_name(name) || items.into_iter().any(|item| self.shows("", item))
            }
            Kind::Null | Kind::Bool | Kind::Number => is_secret_name(name),
        }
    }

    /// Whether a piece completes a secret.
    #[allow(clippy::wildcard_enum_match_arm, reason = "only pieces are joined")]
    fn joined(&mut self, event: &Event<'_>) -> bool {
        self.scratch.clear();
        match event {
            Event::Text(line) => self.piece("text", line.delta.as_deref().unwrap_or("")),
            Event::Reasoning(line) => self.piece("reasoning", line.delta.as_deref().unwrap_or("")),
            Event::ToolCallStart(line) => {
                let id = hash(line.id.as_deref().unwrap_or(""));
                self.args.retain(|(known, _)| *known != id);
                if self.args.len() >= MOST {
                    self.args.pop_front();
                }
                self.args.push_back((id, ArgStream::default()));
                false
            }
            Event::ToolCallDelta(line) => {
                let id = hash(&line.id);
                let Some((_, args)) = self.args.iter_mut().find(|(known, _)| *known == id) else {
                    return false;
                };
                let before = args.found();
                let delta = line.delta.as_deref().unwrap_or("");
                args.push(&self.secrets, delta, &mut self.scratch);
                // A name hides what stands behind it, the mask as well.
                args.found() > before && !delta.contains(MASK)
            }
            _ => {
                self.kind = None;
                false
            }
        }
    }

    fn piece(&mut self, kind: &'static str, delta: &str) -> bool {
        if self.kind != Some(kind) {
            self.text = Stream::default();
            self.kind = Some(kind);
        }
        let before = self.text.found();
        self.text.push(&self.secrets, delta, &mut self.scratch);
        self.text.found() > before
    }
}

fn at_delta(here: Here<'_, '_, '_>) -> At {
    at_member(here.object, "delta")
}
