//! Changes of the session. A live run is detached: nothing of it is closed on the wire.

use alloc::format;
use alloc::string::String;

use super::commands::payload;
use super::entries::entry_of;
use super::ticket::Ticket;
use super::{Face, Pending};
use crate::json::Str;
use crate::protocol::Outbox;
use crate::protocol::omp::Omp;
use crate::protocol::omp::wire::{Branched, Cancelled, Command as Line, Data, Opened};
use crate::protocol::said::refusal;
use crate::vocab::*;

/// Which change it is, for its answer.
#[derive(Debug)]
pub(super) enum Change {
    New,
    Open,
    Switch { path: String },
    Branch,
    Fork,
}

impl Face {
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "only these commands come here"
    )]
    pub(super) fn change_session(
        &mut self,
        ticket: Ticket,
        line: &Line<'_>,
        out: &mut Outbox<Omp>,
    ) {
        let (command, change) = match line {
            Line::NewSession(line) => (
                SessionCommand::New {
                    parent: line.parent_session.as_deref().map(Text::from),
                },
                Change::New,
            ),
            Line::OpenSession(line) => (
                SessionCommand::Open((&*line.session_dir).into()),
                Change::Open,
            ),
            Line::SwitchSession(line) => (
                SessionCommand::Switch((&*line.session_path).into()),
                Change::Switch {
                    path: (&*line.session_path).into(),
                },
            ),
            Line::Branch(line) => {
                let id = line.entry_id.string().unwrap_or_default();
                match self.message_of(&id, true) {
                    Some(message) => (SessionCommand::Branch(message), Change::Branch),
                    None => return self.fail(ticket, "Invalid entry ID for branching", out),
                }
            }
            Line::Fork(line) => {
                let entry = match line.entry_id.as_deref() {
                    None => None,
                    Some(id) => match self.message_of(id, false) {
                        Some(message) => Some(message),
                        None => return self.fail(ticket, "Invalid entry ID for forking", out),
                    },
                };
                (SessionCommand::Fork(entry), Change::Fork)
            }
            _ => return self.fail(ticket, "Not available", out),
        };
        self.changing = true;
        self.call(
            Command::Session(command),
            Pending::Session(ticket, change),
            out,
        );
    }

    /// The number of the message whose entry has this id, as sessions name their entries.
    fn message_of(&self, entry: &str, user: bool) -> Option<Text> {
        let history = self.mirror.history();
        let found = history
            .iter()
            .find(|message| (!user || message.role == Role::User) && entry_of(message) == entry)?;
        Some(format!("{}", found.id.0).into())
    }

    /// The agent's answer to a change.
    pub(super) fn session_changed(
        &mut self,
        ticket: Ticket,
        change: &Change,
        reply: &Result<Answer, Refusal>,
        out: &mut Outbox<Omp>,
    ) {
        self.changing = false;
        let (vetoed, text) = match reply {
            Ok(Answer::Session { vetoed, text }) => (*vetoed, text.clone()),
            Ok(_) => (false, None),
            Err(why) => {
                self.printer.let_go(out);
                let error = match (why, change) {
                    (Refusal::Unknown, Change::Switch { path }) => {
                        format!("File not found: {path}")
                    }
                    (Refusal::Unknown, Change::Branch) => "Invalid entry ID for branching".into(),
                    (Refusal::Unknown, Change::Fork) => "Invalid entry ID for forking".into(),
                    (Refusal::Unsupported(_), Change::Open) => {
                        "open_session requires session persistence (omit --no-session)".into()
                    }
                    (why, _) => refusal(why),
                };
                let busy = matches!((why, change), (Refusal::Busy, Change::Fork));
                return self.fail_with(ticket, &error, busy.then_some("session_busy"), out);
            }
        };
        if vetoed {
            self.printer.let_go(out);
        } else {
            self.printer.drop_kept();
        }
        let session = self.session();
        let json = payload(&match change {
            Change::New | Change::Switch { .. } | Change::Fork => Data::Cancelled(Cancelled {
                cancelled: vetoed,
                ..Cancelled::default()
            }),
            Change::Open => Data::Opened(Opened {
                cancelled: vetoed,
                resumed: self.mirror.info().is_some_and(|info| info.continued),
                session_id: Str::from(&*session),
                session_file: self.session_file(),
                ..Opened::default()
            }),
            Change::Branch => Data::Branched(Branched {
                text: text.as_deref().unwrap_or_default().into(),
                cancelled: vetoed,
                ..Branched::default()
            }),
        });
        self.give(ticket, Some(&json), out);
    }
}
