//! Forms that both APIs share: how the roles that providers don't know are put into words.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::{format, string::String};

use super::media::MediaLimits;
use crate::vocab::{Block, MediaKind, Message, ModelRequest, Origin, Role, Source, Stored};

/// What stands before the text of a message whose role a provider doesn't know.
pub(super) fn lead(message: &Message) -> Option<String> {
    match &message.role {
        Role::User | Role::Assistant | Role::Tool { .. } => None,
        Role::Summary => Some("Summary of the conversation so far:\n".into()),
        Role::Shell => Some("The user ran a shell command. Its output:\n".into()),
        Role::Note => Some(note_lead(&message.origin)),
        Role::Other(role) => Some(format!("[{role}]\n")),
    }
}

fn note_lead(origin: &Origin) -> String {
    match origin {
        Origin::Hook(name) => format!("[note from the hook {name}]\n"),
        Origin::Extension(name) => format!("[note from {name}]\n"),
        Origin::Job(_) => "[note from a background job]\n".into(),
        Origin::Host
        | Origin::GoalCheck
        | Origin::GoalReminder
        | Origin::GoalContinue { .. }
        | Origin::PlanReminder
        | Origin::Interrupted
        | Origin::Harness
        | Origin::History => "[note]\n".into(),
    }
}

/// Which of the media that an embedder keeps go into a request: the newest ones, as many as the limits allow.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// By where each lies: one that is in two messages is sent twice.
    chosen: BTreeSet<usize>,
}

impl Shown {
    /// Chooses. `has`: whether the embedder has its bytes.
    pub(super) fn of(
        request: &ModelRequest<'_>,
        limits: &MediaLimits,
        has: &dyn Fn(&Stored) -> bool,
    ) -> Self {
        let mut uses: BTreeMap<usize, u64> = BTreeMap::new();
        let mut newest_first = alloc::vec::Vec::new();
        for message in request.messages.iter().rev() {
            for block in message.content.iter().rev() {
                each_stored(block, &mut |stored| {
                    let count = uses.entry(place(stored)).or_default();
                    *count += 1;
                    if *count == 1 {
                        newest_first.push(stored.clone());
                    }
                });
            }
        }
        let (mut items, mut bytes) = (0_u64, 0_u64);
        let mut shown = Shown::default();
        for stored in newest_first {
            let count = uses.get(&place(&stored)).copied().unwrap_or(1);
            let more_items = items.saturating_add(count);
            let more = bytes.saturating_add(stored.size.saturating_mul(count));
            if more > limits.bytes || more_items > limits.items {
                // What is older isn't shown in the place of what is newer.
                break;
            }
            if has(&stored) {
                (items, bytes) = (more_items, more);
                shown.chosen.insert(place(&stored));
            }
        }
        shown
    }

    /// Whether this one is sent.
    pub(super) fn has(&self, stored: &Arc<Stored>) -> bool {
        self.chosen.contains(&place(stored))
    }

    /// Whether a provider has a form for this block, other than text.
    pub(super) fn is_sendable(&self, block: &Block) -> bool {
        let Block::Media { source, .. } = block else {
            return false;
        };
        match source {
            Source::Inline { .. } | Source::Url(_) => true,
            Source::Stored(stored) => self.has(stored),
        }
    }
}

fn place(stored: &Arc<Stored>) -> usize {
    Arc::as_ptr(stored).addr()
}

fn each_stored(block: &Block, take: &mut dyn FnMut(&Arc<Stored>)) {
    match block {
        Block::Media {
            source: Source::Stored(stored),
            ..
        } => take(stored),
        Block::ToolResult { content, .. } => {
            for inner in content.iter().rev() {
                each_stored(inner, take);
            }
        }
        Block::Media { .. }
        | Block::Text(_)
        | Block::Thinking { .. }
        | Block::Redacted(_)
        | Block::ToolUse { .. }
        | Block::Opaque(_) => {}
    }
}

/// Words for media that can't be sent as they are: their bytes are gone, or newer media take up all the room.
pub(super) fn stand_in(kind: MediaKind, source: &Source, shown: &Shown) -> Option<String> {
    match source {
        Source::Inline { .. } | Source::Url(_) => None,
        Source::Stored(stored) if shown.has(stored) => None,
        Source::Stored(stored) => {
            let what = noun(kind);
            Some(format!(
                "[{what} {:?}, {}, {} bytes, kept outside the conversation]",
                stored.name, stored.mime, stored.size
            ))
        }
    }
}

/// The name of a kind of media.
pub(super) fn noun(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => "image",
        MediaKind::Document => "document",
    }
}
