//! Tickets: each command of the host is answered once (OMP-02).

use alloc::string::String;
use alloc::vec::Vec;

use super::Face;
use crate::json::Raw;
use crate::protocol::Outbox;
use crate::protocol::omp::Omp;
use crate::protocol::omp::wire::{Any, Data};
use crate::protocol::said::refusal;
use crate::vocab::{Refusal, TurnId};

/// A command that must be answered. It is given up by answering it.
#[derive(Debug)]
#[must_use]
pub(super) struct Ticket {
    /// The id as JSON, whatever it is.
    id: Option<String>,
    command: &'static str,
    /// The commands behind it wait for its answer.
    serial: bool,
}

/// A success that waits for something to end.
#[derive(Debug)]
pub(super) struct Held {
    ticket: Ticket,
    data: Option<Vec<u8>>,
    until: Until,
}

/// What a success waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The end of that turn.
    Turn(TurnId),
    /// The end of the compaction.
    Compaction,
    /// What the agent says next, which is what a setting changed.
    Changed,
}

impl Ticket {
    pub(super) fn new(id: Any<'_>, command: &'static str, serial: bool) -> Self {
        Ticket {
            id: id.get().map(|id| id.as_str().into()),
            command,
            serial,
        }
    }

    pub(super) fn id(&self) -> Any<'_> {
        Any(self.id.as_deref().map(Raw::trusted))
    }

    pub(super) fn command(&self) -> &'static str {
        self.command
    }
}

impl Face {
    /// A ticket for a command that was read.
    pub(super) fn ticket(&mut self, id: Any<'_>, command: &'static str, serial: bool) -> Ticket {
        self.blocked += usize::from(serial);
        Ticket::new(id, command, serial)
    }

    /// Success without a payload.
    pub(super) fn done(&mut self, ticket: Ticket, out: &mut Outbox<Omp>) {
        self.give(ticket, None, out);
    }

    /// Success with a payload.
    pub(super) fn data(&mut self, ticket: Ticket, data: &Data<'_>, out: &mut Outbox<Omp>) {
        let mut json = Vec::new();
        data.encode(&mut json);
        self.give(ticket, Some(&json), out);
    }

    /// Success with a payload that is JSON already.
    pub(super) fn give(&mut self, ticket: Ticket, json: Option<&[u8]>, out: &mut Outbox<Omp>) {
        self.printer.success(&ticket, json, out);
        self.answered(&ticket);
    }

    /// Failure.
    pub(super) fn fail(&mut self, ticket: Ticket, error: &str, out: &mut Outbox<Omp>) {
        self.fail_with(ticket, error, None, out);
    }

    /// Failure with a code.
    pub(super) fn fail_with(
        &mut self,
        ticket: Ticket,
        error: &str,
        code: Option<&'static str>,
        out: &mut Outbox<Omp>,
    ) {
        self.printer.failure(&ticket, error, code, out);
        self.answered(&ticket);
    }

    /// Failure, for the agent's own reason.
    pub(super) fn refuse(&mut self, ticket: Ticket, why: &Refusal, out: &mut Outbox<Omp>) {
        let error = refusal(why);
        self.fail(ticket, &error, out);
    }

    fn answered(&mut self, ticket: &Ticket) {
        self.blocked = self.blocked.saturating_sub(usize::from(ticket.serial));
    }

    /// Success once something has ended.
    pub(super) fn hold(&mut self, ticket: Ticket, data: Option<Vec<u8>>, until: Until) {
        self.held.push(Held {
            ticket,
            data,
            until,
        });
    }

    /// Whether a success waits for this, to one of these commands.
    pub(super) fn holds(&self, until: Until, commands: &[&str]) -> bool {
        let mut held = self.held.iter();
        held.any(|held| held.until == until && commands.contains(&held.ticket.command))
    }

    /// Whether a success waits for what a setting changed.
    pub(super) fn awaits_change(&self) -> bool {
        self.held.iter().any(|held| held.until == Until::Changed)
    }

    /// Gives the successes that waited for this, in their order.
    pub(super) fn release(&mut self, ended: Until, out: &mut Outbox<Omp>) {
        let mut index = 0;
        while let Some(held) = self.held.get(index) {
            if held.until == ended {
                let held = self.held.remove(index);
                self.give(held.ticket, held.data.as_deref(), out);
            } else {
                index += 1;
            }
        }
    }

    /// Gives every success that waited.
    pub(super) fn release_all(&mut self, out: &mut Outbox<Omp>) {
        for held in core::mem::take(&mut self.held) {
            self.give(held.ticket, held.data.as_deref(), out);
        }
    }
}
