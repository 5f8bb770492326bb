//! What is frozen, and frozen anew while the session goes on.

use alloc::{format, string::String, vec::Vec};

use super::{Session, phase::Turn};
use crate::vocab::{Frozen, Origin, Role, Text, ToolSpec, What};

/// Notes that wait for the next step; of more, the oldest go.
const MOST_NOTES: usize = 64;

impl Session {
    /// The embedder has frozen its configuration anew.
    pub(super) fn refrozen(&mut self, frozen: Frozen, changes: &[Text]) {
        self.config.freeze(frozen);
        self.permit_again();
        self.info.skills.clone_from(&self.config.skills);
        self.unloaded.clone_from(&self.config.unloaded);
        if let Some(receipt) = receipt(changes) {
            self.note(receipt);
        }
        self.tools_changed();
        self.say_changed();
    }

    /// Says once which hooks weren't loaded, to the host and to the model.
    pub(super) fn say_unloaded(&mut self) {
        for hook in core::mem::take(&mut self.unloaded) {
            let note = format!(
                "[policy notice: hook '{}' did not load: {}]",
                hook.key, hook.why
            );
            self.note(note.into());
            self.say(What::HookFailed {
                hook: hook.key,
                point: hook.point,
                detail: hook.why,
            });
        }
    }

    fn note(&mut self, text: Text) {
        if self.notes.len() >= MOST_NOTES {
            self.notes.remove(0);
        }
        self.notes.push(text);
    }

    /// The notes that wait enter the history with the next step.
    pub(super) fn add_notes(&mut self, turn: &mut Turn) {
        let notes = core::mem::take(&mut self.notes);
        let made: Vec<_> = notes
            .iter()
            .map(|note| self.own_message(Role::Note, Origin::Harness, note, None))
            .collect();
        turn.own.extend(made);
    }
}

/// Tokens of the tools' schemas, estimated as a session estimates its requests: what each request pays for them.
pub fn schema_tokens(tools: &[ToolSpec]) -> u64 {
    let mut estimate = super::estimate::Estimate::default();
    estimate.set_fixed(None, tools);
    estimate.fixed()
}

fn receipt(changes: &[Text]) -> Option<Text> {
    if changes.is_empty() {
        return None;
    }
    let mut text = String::from("[refreeze: ");
    for (at, change) in changes.iter().enumerate() {
        text.push_str(if at == 0 { "" } else { "; " });
        text.push_str(change);
    }
    text.push(']');
    Some(text.into())
}
