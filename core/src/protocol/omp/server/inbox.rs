//! Lines that wait for the answer to an earlier one (OMP-04).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::Face;
use super::ticket::Ticket;
use crate::json::Members;
use crate::protocol::Outbox;
use crate::protocol::omp::Omp;
use crate::protocol::omp::wire::{Command, HostFault, HostLine};

/// Lines that may wait, and their bytes, before no more are wanted.
const MOST: usize = 256;
const MOST_BYTES: usize = 1 << 20;

/// What a line may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passing {
    /// Nothing, and an abort behind it takes it back.
    Input,
    /// Nothing.
    Nothing,
    /// Everything that waits.
    Abort,
    /// Everything: it is carried out beside the others.
    Beside,
}

/// The lines, oldest first.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    lines: VecDeque<(Passing, Vec<u8>)>,
    bytes: usize,
}

impl Inbox {
    pub(super) fn push(&mut self, passing: Passing, line: &[u8]) {
        self.bytes += line.len();
        self.lines.push_back((passing, line.to_vec()));
    }

    pub(super) fn pop(&mut self) -> Option<Vec<u8>> {
        let (_, line) = self.lines.pop_front()?;
        self.bytes -= line.len();
        Some(line)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        self.lines.len() < MOST && self.bytes < MOST_BYTES
    }

    /// Takes out the input that waits for its admission.
    fn take_inputs(&mut self) -> Vec<Vec<u8>> {
        let (inputs, rest) = core::mem::take(&mut self.lines)
            .into_iter()
            .partition::<Vec<_>, _>(|(passing, _)| *passing == Passing::Input);
        self.lines = rest.into();
        let inputs: Vec<Vec<u8>> = inputs.into_iter().map(|(_, line)| line).collect();
        self.bytes -= inputs.iter().map(Vec::len).sum::<usize>();
        inputs
    }
}

impl Face {
    /// An abort takes back the input before it that waits for its admission (OMP-07).
    pub(super) fn cancel_waiting(&mut self, out: &mut Outbox<Omp>) {
        for line in self.inbox.take_inputs() {
            self.fail_line(&line, "Aborted before it was admitted", out);
        }
    }

    /// Lines that will never be acted on.
    pub(super) fn fail_waiting(&mut self, out: &mut Outbox<Omp>) {
        while let Some(line) = self.inbox.pop() {
            self.fail_line(&line, "The session is closing", out);
        }
    }

    fn fail_line(&mut self, line: &[u8], error: &str, out: &mut Outbox<Omp>) {
        let mut members = Members::default();
        match HostLine::decode(line, &mut members) {
            Ok(HostLine::Command { id, command }) => {
                let ticket = Ticket::new(id, command.tag().unwrap_or_default(), false);
                self.fail(ticket, error, out);
            }
            read => self.act(read, out),
        }
    }
}

/// What a line may pass.
#[allow(clippy::wildcard_enum_match_arm, reason = "sixty others are alike")]
pub(super) fn passing(read: &Result<HostLine<'_>, HostFault<'_>>) -> Passing {
    match read {
        Ok(HostLine::Command { command, .. }) => match command {
            Command::Prompt(_) | Command::Steer(_) | Command::FollowUp(_) => Passing::Input,
            Command::Abort(_)
            | Command::AbortAndPrompt(_)
            | Command::AbortAndRestoreQueue(_)
            | Command::AbortRetry(_) => Passing::Abort,
            Command::Bash(_) | Command::LiveStart(_) | Command::PredictWord(_) => Passing::Beside,
            _ => Passing::Nothing,
        },
        Ok(HostLine::Side(_) | HostLine::Unknown { .. } | HostLine::Other(_)) | Err(_) => {
            Passing::Nothing
        }
    }
}

/// Whether the commands behind it wait for its answer. Prompts are only handed over in order.
pub(super) fn is_serial(command: &Command<'_>) -> bool {
    !matches!(
        command,
        Command::Prompt(_)
            | Command::SteerSubagent(_)
            | Command::Bash(_)
            | Command::LiveStart(_)
            | Command::PredictWord(_)
    )
}
