//! Commands that were written and wait for their response, by their ids on the wire.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use super::Out;
use super::asks::quoted;
use crate::protocol::omp::wire::{Any, Command as Line, HostLine};
use crate::vocab::*;

/// Commands that may wait. An agent that answers none is found out here.
const MOST_SENT: usize = 4_096;

/// The id of a command on the wire: `c` and the number of a command of the embedder's, `i` and that of one of the
/// Client's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wire {
    own: bool,
    number: u64,
}

impl Wire {
    pub(super) const fn of(command: CommandId) -> Self {
        Wire {
            own: false,
            number: command.0,
        }
    }

    pub(super) fn text(self) -> String {
        format!("{}{}", if self.own { 'i' } else { 'c' }, self.number)
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        let (own, number) = match text.strip_prefix('i') {
            Some(number) => (true, number),
            None => (false, text.strip_prefix('c')?),
        };
        let number = number.parse().ok()?;
        let wire = Wire { own, number };
        (wire.text() == text).then_some(wire)
    }
}

/// What a response answers.
#[derive(Clone, Debug)]
pub(super) enum Sent {
    /// `prompt`, `abort_and_prompt`.
    Prompt(PromptId),
    /// `abort`, `abort_and_restore_queue`: replied to when it shows what it hit.
    Abort(CommandId),
    /// `abort_retry`.
    StopRetry(CommandId),
    /// `abort_bash`.
    StopShell(CommandId),
    /// A second line of a command that is replied to by its first.
    Quiet,
    /// `remove_queued_message`.
    Withdraw(CommandId, PromptId),
    /// `promote_queued_message`.
    Promote(CommandId, PromptId),
    /// `set_…`: what counts once it is done.
    Set(CommandId, Setting),
    /// `set_host_tools`, `set_host_uri_schemes`.
    Offer(CommandId),
    /// `bash`.
    Shell(CommandId),
    /// `compact`.
    Compact(CommandId),
    /// `goal`.
    Goal(CommandId),
    /// `new_session` and the like.
    Session(CommandId),
    /// `cancel_subagent`.
    StopRun(CommandId),
    /// `steer_subagent`.
    SteerRun(CommandId),
    /// `get_state`, as a consistent point.
    Barrier(CommandId),
    /// A command that only this protocol has. The member of the payload that is the answer, if not all of it.
    Raw(CommandId, Option<&'static str>),
    /// The Client's own `negotiate_protocol`.
    Negotiate,
    /// The Client's own `set_event_filter`.
    Filter,
    /// The Client's own `get_state`.
    State,
    /// The Client's own `get_messages`.
    History,
}

impl Sent {
    /// The command that waits for a reply.
    pub(super) const fn command(&self) -> Option<CommandId> {
        match self {
            Sent::Abort(command)
            | Sent::StopRetry(command)
            | Sent::StopShell(command)
            | Sent::Withdraw(command, _)
            | Sent::Promote(command, _)
            | Sent::Set(command, _)
            | Sent::Offer(command)
            | Sent::Shell(command)
            | Sent::Compact(command)
            | Sent::Goal(command)
            | Sent::Session(command)
            | Sent::StopRun(command)
            | Sent::SteerRun(command)
            | Sent::Barrier(command)
            | Sent::Raw(command, _) => Some(*command),
            Sent::Prompt(_)
            | Sent::Quiet
            | Sent::Negotiate
            | Sent::Filter
            | Sent::State
            | Sent::History => None,
        }
    }
}

#[derive(Debug)]
struct Entry {
    /// The command's name; empty: any.
    name: &'static str,
    /// When it was written, in lines.
    order: u64,
    sent: Sent,
}

/// The commands that wait.
#[derive(Debug, Default)]
pub(super) struct Books {
    sent: BTreeMap<Wire, Entry>,
    written: u64,
    own: u64,
}

impl Books {
    /// Whether no more may be written.
    pub(super) fn is_full(&self) -> bool {
        self.sent.len() >= MOST_SENT
    }

    /// Whether nothing waits but what the Client asked for itself.
    pub(super) fn is_empty(&self) -> bool {
        !self.sent.keys().any(|wire| !wire.own)
    }

    /// Whether a response to a command like this is awaited.
    pub(super) fn waits_for(&self, is: impl Fn(&Sent) -> bool) -> bool {
        self.sent.values().any(|entry| is(&entry.sent))
    }

    /// Writes a command of the embedder's.
    pub(super) fn send(
        &mut self,
        id: CommandId,
        line: Line<'_>,
        sent: Sent,
        out: &mut Out,
    ) -> Wire {
        let wire = Wire::of(id);
        self.write(wire, line, sent, out);
        wire
    }

    /// Writes a command of the Client's own.
    pub(super) fn send_own(&mut self, line: Line<'_>, sent: Sent, out: &mut Out) -> Wire {
        self.own += 1;
        let wire = Wire {
            own: true,
            number: self.own,
        };
        self.write(wire, line, sent, out);
        wire
    }

    fn write(&mut self, wire: Wire, command: Line<'_>, sent: Sent, out: &mut Out) {
        self.expect(wire, command.tag().unwrap_or_default(), sent);
        let mut buffer = alloc::vec::Vec::new();
        let id = Any(Some(quoted(&mut buffer, &wire.text())));
        let line = HostLine::Command { id, command };
        out.line(|bytes| line.encode(bytes));
    }

    /// A command was written by somebody else.
    pub(super) fn expect(&mut self, wire: Wire, name: &'static str, sent: Sent) {
        self.written += 1;
        let order = self.written;
        self.sent.insert(wire, Entry { name, order, sent });
    }

    /// Takes the command that a response names, and whether it is of the same name.
    pub(super) fn take(&mut self, wire: Wire, name: Option<&str>) -> Option<(Sent, bool)> {
        let entry = self.sent.remove(&wire)?;
        let same = entry.name.is_empty() || name == Some(entry.name);
        Some((entry.sent, same))
    }

    /// The oldest command of this name: a response without an id answers it.
    pub(super) fn oldest(&self, name: &str) -> Option<Wire> {
        let named = self.sent.iter().filter(|(_, entry)| entry.name == name);
        let oldest = named.min_by_key(|(_, entry)| entry.order);
        oldest.map(|(wire, _)| *wire)
    }

    /// Everything, at the agent's end, in the order in which it was written.
    pub(super) fn take_all(&mut self) -> alloc::vec::Vec<Sent> {
        let mut all: alloc::vec::Vec<Entry> =
            core::mem::take(&mut self.sent).into_values().collect();
        all.sort_by_key(|entry| entry.order);
        all.into_iter().map(|entry| entry.sent).collect()
    }
}
