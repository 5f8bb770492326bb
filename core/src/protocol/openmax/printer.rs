//! Writes events of the session, and joins deltas where that is configured.

use alloc::string::String;
use alloc::vec::Vec;

use super::Openmax;
use super::wire::{EventBody, put_session};
use crate::json;
use crate::protocol::Outbox;
use crate::vocab::{Due, Text};

/// The most text that is joined into one line, in bytes.
const MOST_JOINED: usize = 64 * 1024;

/// Which delta lines there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Token,
    Thinking,
}

/// Writes lines that carry the session's id.
#[derive(Debug)]
pub(super) struct Printer {
    session: Text,
    /// `{"session_id":"…"`
    head: Vec<u8>,
    /// The opening of a token line, up to its text; and of a thinking line.
    token: Vec<u8>,
    thinking: Vec<u8>,
    join: Join,
}

/// Deltas that wait for more of their kind.
#[derive(Debug)]
struct Join {
    wait_us: u64,
    /// When a delta line was last written by time.
    last_us: Option<u64>,
    kind: Shown,
    text: String,
}

impl Printer {
    pub(super) fn new(coalesce_us: u64) -> Self {
        Printer {
            session: "".into(),
            head: Vec::new(),
            token: Vec::new(),
            thinking: Vec::new(),
            join: Join {
                wait_us: coalesce_us,
                last_us: None,
                kind: Shown::Token,
                text: String::new(),
            },
        }
    }

    /// The session's id is known now.
    pub(super) fn open(&mut self, session: &Text) {
        self.session = session.clone();
        self.head.clear();
        put_session(session, &mut self.head);
        for (kind, line) in [("token", &mut self.token), ("thinking", &mut self.thinking)] {
            line.clear();
            line.extend_from_slice(&self.head);
            line.extend_from_slice(b",\"type\":\"");
            line.extend_from_slice(kind.as_bytes());
            line.extend_from_slice(b"\",\"text\":");
        }
    }

    /// Writes an event, behind the deltas that waited.
    pub(super) fn event<B: EventBody>(&mut self, body: &B, out: &mut Outbox<Openmax>) {
        self.flush(out);
        let head = &self.head;
        out.line(|line| {
            line.extend_from_slice(head);
            body.put(line);
        });
    }

    /// Writes a delta, or lets it wait. The text isn't empty.
    pub(super) fn delta(
        &mut self,
        kind: Shown,
        text: &str,
        now_us: u64,
        out: &mut Outbox<Openmax>,
    ) {
        if self.join.wait_us == 0 {
            self.write(kind, text, out);
            return;
        }
        if kind != self.join.kind || self.join.text.len() + text.len() > MOST_JOINED {
            self.flush(out);
        }
        let due = self
            .join
            .last_us
            .is_none_or(|last| now_us >= last.saturating_add(self.join.wait_us));
        if self.join.text.is_empty() && (due || text.len() > MOST_JOINED) {
            self.write(kind, text, out);
            self.join.last_us = Some(now_us);
            return;
        }
        self.join.kind = kind;
        self.join.text.push_str(text);
        if due {
            self.flush(out);
            self.join.last_us = Some(now_us);
        }
    }

    /// Writes what waits.
    pub(super) fn flush(&mut self, out: &mut Outbox<Openmax>) {
        if !self.join.text.is_empty() {
            let text = core::mem::take(&mut self.join.text);
            self.write(self.join.kind, &text, out);
            self.join.text = text;
            self.join.text.clear();
        }
    }

    /// When waiting deltas go out by themselves.
    pub(super) fn due(&self) -> Option<Due> {
        let last = self.join.last_us.filter(|_| !self.join.text.is_empty())?;
        Some(Due {
            at_us: last.saturating_add(self.join.wait_us),
            why: "coalesce",
        })
    }

    /// Writes what waits if its time has come.
    pub(super) fn woken(&mut self, now_us: u64, out: &mut Outbox<Openmax>) {
        if self.due().is_some_and(|due| due.at_us <= now_us) {
            self.flush(out);
            self.join.last_us = Some(now_us);
        }
    }

    fn write(&self, kind: Shown, text: &str, out: &mut Outbox<Openmax>) {
        let opening = match kind {
            Shown::Token => &self.token,
            Shown::Thinking => &self.thinking,
        };
        out.line(|line| {
            line.extend_from_slice(opening);
            json::write_str(line, text);
            line.push(b'}');
        });
    }
}
