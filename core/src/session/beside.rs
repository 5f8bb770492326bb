//! What enters the history between two turns (what a shell command gave, context, a summary made by hand) is written
//! while the session is idle, so that a session which is closed before its next turn has lost nothing.
//!
//! Nothing waits for this write but the session's end. What can't be written is said; it isn't tried again.

use alloc::{format, sync::Arc, vec::Vec};

use super::Session;
use crate::vocab::{Level, Message, Text, WriteId};

/// A write that nothing but the end waits for.
pub(super) struct Beside {
    pub write: WriteId,
    pub messages: Vec<Arc<Message>>,
    since_us: u64,
}

impl Session {
    /// Writes what no turn has taken to its own write. Only while idle, and only where turns are written.
    pub(super) fn save_beside(&mut self) {
        let stores = self.config.policy.gates.turn_end;
        if !stores || self.beside.is_some() || self.unsaved.is_empty() {
            return;
        }
        let messages = core::mem::take(&mut self.unsaved);
        self.beside = Some(Beside {
            write: self.store(),
            messages,
            since_us: self.now.mono_us,
        });
    }

    /// Such a write was acknowledged or failed. `false`: it isn't one.
    pub(super) fn beside_stored(&mut self, write: WriteId, ok: &Result<(), Text>) -> bool {
        if self.beside.as_ref().is_none_or(|open| open.write != write) {
            return false;
        }
        self.beside = None;
        if let Err(detail) = ok {
            let text = format!("what came between two turns could not be stored: {detail}");
            self.notice(Level::Error, "store", &text);
        }
        true
    }

    /// Until when a close, or a change of the session, waits for such a write.
    pub(super) fn beside_until_us(&self) -> Option<u64> {
        let open = self.beside.as_ref()?;
        let leaving_us = self
            .closing
            .since_us()
            .or_else(|| self.leaving_since_us())?;
        let from_us = leaving_us.max(open.since_us);
        Some(from_us.saturating_add(self.config.timeouts.flush_us))
    }

    /// Nobody waits for it any longer.
    pub(super) fn beside_over(&mut self) {
        if let Some(open) = self.beside.take() {
            self.effects.writes.stop(open.write.0);
            let text = "store timed out: the end did not wait for what came between two turns";
            self.notice(Level::Error, "store", text);
        }
    }
}
