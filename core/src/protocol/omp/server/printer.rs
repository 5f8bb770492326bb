//! Writes lines: what the host's filter lets through, in the form that the transport's version has.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::ticket::Ticket;
use crate::json::{self, Raw};
use crate::protocol::Outbox;
use crate::protocol::omp::Omp;
use crate::protocol::omp::codec::FrameWriter;
use crate::protocol::omp::wire::{Any, Event, Frame, Response, Tag, UiRequest};

/// The writer of all lines of a Server.
#[derive(Debug, Default)]
pub(super) struct Printer {
    writer: FrameWriter,
    /// The types of events that the host wants; `None`: all.
    filter: Option<BTreeSet<String>>,
    /// Updates of messages carry only what is new.
    deltas: bool,
    /// Events of a turn that a change of the session will either drop or let go.
    kept_back: Option<Vec<Vec<u8>>>,
    /// The subagent whose events are written.
    inside: Option<Inside>,
}

/// A subagent whose events are written, each in a frame that names it.
#[derive(Debug)]
struct Inside {
    id: String,
    /// The host doesn't listen.
    muted: bool,
}

impl Printer {
    /// Writes a frame that no filter hides.
    pub(super) fn frame(&mut self, out: &mut Outbox<Omp>, encode: impl FnOnce(&mut Vec<u8>)) {
        let writer = &mut self.writer;
        out.frame(encode, |bytes, start| writer.finish(bytes, start));
    }

    /// Writes a frame of the contract that isn't an event.
    pub(super) fn say<'a>(&mut self, frame: impl Into<Frame<'a>>, out: &mut Outbox<Omp>) {
        let frame = frame.into();
        self.frame(out, |bytes| frame.encode(bytes));
    }

    /// Writes a request to the host's screen.
    pub(super) fn ui(&mut self, request: UiRequest<'_>, out: &mut Outbox<Omp>) {
        let line = crate::protocol::omp::wire::AgentLine::Ui(request);
        self.frame(out, |bytes| line.encode(bytes));
    }

    /// Writes an event of the session.
    pub(super) fn event<'a>(&mut self, event: impl Into<Event<'a>>, out: &mut Outbox<Omp>) {
        let event = event.into();
        self.event_with(event.tag().unwrap_or_default(), out, |bytes| {
            event.encode(bytes);
        });
    }

    /// Writes an event of this type.
    pub(super) fn event_with(
        &mut self,
        kind: &str,
        out: &mut Outbox<Omp>,
        encode: impl FnOnce(&mut Vec<u8>),
    ) {
        if !self.wants(kind) {
            return;
        }
        if let Some(inside) = self.inside.take() {
            let id = &inside.id;
            self.frame(out, |bytes| {
                bytes.extend_from_slice(b"{\"type\":\"subagent_event\",\"payload\":{\"id\":");
                json::write_str(bytes, id);
                bytes.extend_from_slice(b",\"event\":");
                encode(bytes);
                bytes.extend_from_slice(b"}}");
            });
            self.inside = Some(inside);
            return;
        }
        if let Some(kept) = &mut self.kept_back {
            let mut bytes = Vec::new();
            encode(&mut bytes);
            kept.push(bytes);
            return;
        }
        self.frame(out, encode);
    }

    /// Whether the host wants events of this type.
    pub(super) fn wants(&self, kind: &str) -> bool {
        // Frames of subagents have a filter of their own.
        if let Some(inside) = &self.inside {
            return !inside.muted;
        }
        self.filter
            .as_ref()
            .is_none_or(|kinds| kinds.contains(kind))
    }

    /// Whether updates of messages carry only what is new.
    pub(super) fn sends_deltas(&self) -> bool {
        self.deltas
    }

    /// What is written from now on are events of a subagent; `muted`: nothing is.
    pub(super) fn enter(&mut self, id: String, muted: bool) {
        self.inside = Some(Inside { id, muted });
    }

    /// What is written from now on are events of the session.
    pub(super) fn leave(&mut self) {
        self.inside = None;
    }

    /// Replaces the filter and the form of updates.
    pub(super) fn filter(&mut self, kinds: Option<BTreeSet<String>>, deltas: bool) {
        self.filter = kinds;
        self.deltas = deltas;
    }

    /// The success of a command, with its payload as JSON.
    pub(super) fn success(&mut self, ticket: &Ticket, data: Option<&[u8]>, out: &mut Outbox<Omp>) {
        let data = data.map(|json| core::str::from_utf8(json).unwrap_or("null"));
        let response = Response {
            id: ticket.id(),
            command: Tag::from(ticket.command()),
            success: true,
            data: Any(data.map(Raw::trusted)),
            ..Response::default()
        };
        self.frame(out, |bytes| response.encode(bytes));
    }

    /// The failure of a command.
    pub(super) fn failure(
        &mut self,
        ticket: &Ticket,
        error: &str,
        code: Option<&'static str>,
        out: &mut Outbox<Omp>,
    ) {
        let mut response = Response::failure(ticket.id(), Tag::from(ticket.command()), error);
        response.code = code.map(Into::into);
        self.frame(out, |bytes| response.encode(bytes));
    }

    /// Goes on in protocol 2.
    pub(super) fn use_chunks(&mut self) {
        self.writer.use_chunks();
    }

    /// From here on events wait ([`let_go`](Self::let_go), [`drop_kept`](Self::drop_kept)).
    pub(super) fn keep_back(&mut self) {
        self.kept_back.get_or_insert_default();
    }

    /// Writes what waited.
    pub(super) fn let_go(&mut self, out: &mut Outbox<Omp>) {
        for frame in self.kept_back.take().unwrap_or_default() {
            self.frame(out, |bytes| bytes.extend_from_slice(&frame));
        }
    }

    /// Forgets what waited.
    pub(super) fn drop_kept(&mut self) {
        self.kept_back = None;
    }
}
