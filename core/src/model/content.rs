//! Forms that both APIs share: how the roles that providers don't know are put into words.

use alloc::{format, string::String};

use crate::vocab::{MediaKind, Message, Origin, Role, Source};

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

/// Words for media that can't be sent as they are: the bytes lie in a store that core doesn't read.
pub(super) fn stand_in(kind: MediaKind, source: &Source) -> Option<String> {
    match source {
        Source::Inline { .. } | Source::Url(_) => None,
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
