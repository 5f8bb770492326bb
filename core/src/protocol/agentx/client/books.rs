//! Requests that were written and wait for their response, by their ids on the wire.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Out;
use crate::protocol::agentx::wire::{ControlRequest, Operation};
use crate::vocab::*;

/// Requests that may wait. An agent that answers none is found out here.
const MOST_SENT: usize = 4_096;

/// What a response answers.
#[derive(Clone, Debug)]
pub(super) enum Sent {
    /// `initialize`, and the offers that are in it.
    Initialize(Vec<CommandId>),
    /// `interrupt`, and why.
    Interrupt(CommandId, CancelWhy),
    /// An operation that changes a setting.
    Set(CommandId, Setting),
    /// `cancel_async_message`
    Withdraw(CommandId, PromptId),
    /// `cancel_async_message` for a cancel that drops what waits.
    Drop(PromptId),
    /// `rewind_files`
    Rewind(CommandId),
    /// `stop_task`, for whoever stops a job.
    StopJob(CommandId),
    /// `stop_task`, for whoever cancels a run or a job; what it hits.
    StopRun(CommandId, Hit),
    /// `reload_plugins`
    Reload(CommandId),
    /// An operation that only this protocol has.
    Raw(CommandId),
    /// A second line of a command that is replied to by its first.
    Quiet,
}

impl Sent {
    /// The command that waits for a reply.
    pub(super) const fn command(&self) -> Option<CommandId> {
        match self {
            Sent::Interrupt(command, _)
            | Sent::Set(command, _)
            | Sent::Withdraw(command, _)
            | Sent::Rewind(command)
            | Sent::StopJob(command)
            | Sent::StopRun(command, _)
            | Sent::Reload(command)
            | Sent::Raw(command) => Some(*command),
            Sent::Initialize(_) | Sent::Drop(_) | Sent::Quiet => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Entry {
    /// The operation's name.
    pub name: String,
    pub sent: Sent,
}

/// The requests that wait. Their ids on the wire are `req_` and a number.
#[derive(Debug, Default)]
pub(super) struct Books {
    sent: BTreeMap<u64, Entry>,
    written: u64,
}

impl Books {
    /// Whether no more may be written.
    pub(super) fn is_full(&self) -> bool {
        self.sent.len() >= MOST_SENT
    }

    /// Whether nothing waits that was asked by somebody else.
    pub(super) fn is_empty(&self) -> bool {
        !self
            .sent
            .values()
            .any(|entry| entry.sent.command().is_some())
    }

    /// Whether a response to a request like this is awaited.
    pub(super) fn waits_for(&self, is: impl Fn(&Sent) -> bool) -> bool {
        self.sent.values().any(|entry| is(&entry.sent))
    }

    /// Why the oldest interrupt that wasn't answered was written.
    pub(super) fn interrupt(&self) -> Option<CancelWhy> {
        self.sent.values().find_map(|entry| match &entry.sent {
            Sent::Interrupt(_, why) => Some(why.clone()),
            Sent::Initialize(_)
            | Sent::Set(..)
            | Sent::Withdraw(..)
            | Sent::Drop(_)
            | Sent::Rewind(_)
            | Sent::StopJob(_)
            | Sent::StopRun(..)
            | Sent::Reload(_)
            | Sent::Raw(_)
            | Sent::Quiet => None,
        })
    }

    /// Writes a request.
    pub(super) fn send(&mut self, operation: &Operation<'_>, sent: Sent, out: &mut Out) {
        let id = self.expect(operation.tag().unwrap_or_default(), sent);
        out.line(|bytes| ControlRequest::encode_with(&id, operation, bytes));
    }

    /// A request with the id that this gives is about to be written.
    pub(super) fn expect(&mut self, name: &str, sent: Sent) -> String {
        self.written += 1;
        let name = name.into();
        self.sent.insert(self.written, Entry { name, sent });
        format!("req_{}", self.written)
    }

    /// Takes the request that a response names. `Err`: it names none that was ever written.
    pub(super) fn take(&mut self, id: &str) -> Result<Option<Entry>, ()> {
        let number = id.strip_prefix("req_").and_then(|it| it.parse().ok());
        let number: u64 = number
            .filter(|number| format!("req_{number}") == id)
            .ok_or(())?;
        if number == 0 || number > self.written {
            return Err(());
        }
        Ok(self.sent.remove(&number))
    }

    /// Everything, at the agent's end, in the order in which it was written.
    pub(super) fn take_all(&mut self) -> Vec<Sent> {
        let all = core::mem::take(&mut self.sent);
        all.into_values().map(|entry| entry.sent).collect()
    }
}
