//! Writes lines, mints their ids, and holds them back while something must be out before them.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use crate::json;
use crate::protocol::Outbox;
use crate::protocol::agentx::policy::{IdForm, MemberRules};
use crate::protocol::agentx::wire::{
    AgentLine, CLOSED_RULES, SessionState, SessionStateChanged, escape_separators,
};
use crate::protocol::agentx::{Agentx, Policy};
use crate::protocol::ids::{hex32, put_uuid, uuid};
use crate::vocab::{RawJson, Text};

/// The writer of all lines of a Server.
#[derive(Debug)]
pub(super) struct Printer {
    seed: [u8; 32],
    issued: u64,
    ids: IdForm,
    closed: bool,
    /// The session's id, and the same as JSON.
    session: Text,
    session_json: Vec<u8>,
    /// Lines that wait until the embedder has flushed; `None` among them: until it has flushed once more.
    held: Option<VecDeque<Option<Vec<u8>>>>,
}

/// What every record of the conversation carries.
#[derive(Debug)]
pub(super) struct Stamp {
    pub(super) session: Text,
    pub(super) uuid: String,
}

impl Printer {
    pub(super) fn new(seed: [u8; 32], policy: &Policy) -> Self {
        Printer {
            seed,
            issued: 0,
            ids: policy.id_form,
            closed: policy.member_rules == MemberRules::Closed,
            session: "".into(),
            session_json: b"\"\"".to_vec(),
            held: None,
        }
    }

    /// The session that lines belong to from here on.
    pub(super) fn is_of(&mut self, session: &Text) {
        self.session = session.clone();
        self.session_json.clear();
        json::write_str_line_safe(&mut self.session_json, session);
    }

    /// The session's id.
    pub(super) fn session(&self) -> &str {
        &self.session
    }

    fn next(&mut self) -> u64 {
        self.issued += 1;
        self.issued
    }

    /// A fresh id of a record, or of a prompt that has none.
    pub(super) fn uuid(&mut self) -> String {
        let number = self.next();
        uuid(&self.seed, number)
    }

    /// A fresh id of a request.
    pub(super) fn request_id(&mut self) -> String {
        match self.ids {
            IdForm::Prefixed => {
                let number = self.next();
                alloc::format!("req_{}", hex32(&self.seed, number))
            }
            IdForm::Uuid => self.uuid(),
        }
    }

    /// A fresh id of a reply that the provider gave none.
    pub(super) fn message_id(&mut self) -> String {
        let number = self.next();
        alloc::format!("msg_{}", hex32(&self.seed, number))
    }

    /// The session and a fresh id.
    pub(super) fn stamp(&mut self) -> Stamp {
        Stamp {
            session: self.session.clone(),
            uuid: self.uuid(),
        }
    }

    /// Writes a line.
    pub(super) fn line(&mut self, out: &mut Outbox<Agentx>, encode: impl FnOnce(&mut Vec<u8>)) {
        if let Some(held) = &mut self.held {
            let mut bytes = Vec::new();
            encode(&mut bytes);
            held.push_back(Some(bytes));
            return;
        }
        out.line(encode);
    }

    /// Writes a record, a request or an answer.
    pub(super) fn say<'a>(&mut self, line: impl Into<AgentLine<'a>>, out: &mut Outbox<Agentx>) {
        let line = line.into();
        self.line(out, |bytes| line.encode(bytes));
    }

    /// Writes a piece of a reply: an event of a stream, up to its end. Allocates nothing once warm.
    pub(super) fn stream(&mut self, out: &mut Outbox<Agentx>, event: impl FnOnce(&mut Vec<u8>)) {
        let number = self.next();
        let seed = self.seed;
        let session = core::mem::take(&mut self.session_json);
        self.line(out, |bytes| {
            let from = bytes.len();
            bytes.extend_from_slice(b"{\"type\":\"stream_event\",\"event\":");
            event(bytes);
            bytes.extend_from_slice(b",\"session_id\":");
            bytes.extend_from_slice(&session);
            bytes.extend_from_slice(b",\"parent_tool_use_id\":null,\"uuid\":\"");
            put_uuid(bytes, &seed, number);
            bytes.extend_from_slice(b"\"}");
            escape_separators(bytes, from);
        });
        self.session_json = session;
    }

    /// Says what the session does.
    pub(super) fn state(
        &mut self,
        state: SessionState<'_>,
        host_only: bool,
        out: &mut Outbox<Agentx>,
    ) {
        let stamp = self.stamp();
        let line = SessionStateChanged {
            state,
            sdk_host_only: host_only.then_some(true),
            uuid: stamp.uuid.as_str().into(),
            session_id: (&*stamp.session).into(),
            ..SessionStateChanged::default()
        };
        self.say(line, out);
    }

    /// From here on lines wait.
    pub(super) fn hold(&mut self) {
        match &mut self.held {
            Some(held) => held.push_back(None),
            None => self.held = Some(VecDeque::new()),
        }
    }

    /// Ends the wait: what `first` writes stands before what waited.
    pub(super) fn release(
        &mut self,
        out: &mut Outbox<Agentx>,
        first: impl FnOnce(&mut Self, &mut Outbox<Agentx>),
    ) {
        let mut held = self.held.take().unwrap_or_default();
        first(self, out);
        while let Some(next) = held.pop_front() {
            match next {
                Some(line) => out.line(|bytes| bytes.extend_from_slice(&line)),
                None => {
                    self.held = Some(held);
                    return;
                }
            }
        }
    }

    /// Whether a value that came from outside may stand in a line: in the strict wire no member comes twice (AX-S20).
    pub(super) fn is_clear(&self, value: &RawJson) -> bool {
        !self.closed || json::scan_value(value.as_str().as_bytes(), &CLOSED_RULES).is_ok()
    }
}
