//! Commands of the host, one by one.

use alloc::format;
use alloc::string::String;

use super::goals;
use super::outside::Outside;
use super::prompts::{By, Sent};
use super::queries::Query;
use super::ticket::Ticket;
use super::{Face, Pending, Subscription, offers};
use crate::protocol::Outbox;
use crate::protocol::omp::wire::{
    Any, Command as Line, Data, Enabled, Filter, Kept, Level, Nullable, Num, PromoteQueuedMessage,
    Promoted, RemoveQueuedMessage, Removed, Streaming,
};
use crate::protocol::omp::{Omp, OmpAsk, codec};
use crate::vocab::*;

impl Face {
    /// Carries out a command, and sees to it that it is answered.
    pub(super) fn command(&mut self, ticket: Ticket, command: Line<'_>, out: &mut Outbox<Omp>) {
        match command {
            Line::NegotiateProtocol(line) => match codec::negotiate(&line) {
                Ok(()) => {
                    let version = crate::protocol::omp::wire::Negotiated {
                        protocol_version: crate::protocol::omp::PROTOCOL_2,
                        ..crate::protocol::omp::wire::Negotiated::default()
                    };
                    self.data(ticket, &Data::Negotiated(version), out);
                    self.printer.use_chunks();
                }
                Err(error) => self.fail(ticket, &error, out),
            },
            Line::Prompt(line) => {
                let (by, deliver) = match line.streaming_behavior {
                    Some(Streaming::Steer) => (By::Steer, STEER),
                    Some(Streaming::FollowUp) => (By::FollowUp, Deliver::FollowUp),
                    Some(Streaming::Other(_)) | None => (By::Prompt, Deliver::IfIdle),
                };
                self.input(
                    ticket,
                    &line.message,
                    line.images.as_deref(),
                    by,
                    deliver,
                    true,
                    out,
                );
            }
            Line::Steer(line) => {
                self.input(
                    ticket,
                    &line.message,
                    line.images.as_deref(),
                    By::Steer,
                    STEER,
                    false,
                    out,
                );
            }
            Line::FollowUp(line) => {
                let images = line.images.as_deref();
                self.input(
                    ticket,
                    &line.message,
                    images,
                    By::FollowUp,
                    Deliver::FollowUp,
                    false,
                    out,
                );
            }
            Line::AbortAndPrompt(line) => {
                self.cancel_waiting(out);
                let images = line.images.as_deref();
                self.input(
                    ticket,
                    &line.message,
                    images,
                    By::Preempt,
                    Deliver::Preempt,
                    true,
                    out,
                );
            }
            Line::Abort(_) => self.abort(ticket, false, out),
            Line::AbortAndRestoreQueue(_) => self.abort(ticket, true, out),
            Line::AbortRetry(_) => self.stop(ticket, CancelWhat::Retry, out),
            Line::AbortBash(_) => self.stop(ticket, CancelWhat::Shell, out),
            Line::Bash(line) => {
                self.shells += 1;
                let command = Command::Shell {
                    command: (&*line.command).into(),
                };
                self.call(command, Pending::Shell(ticket), out);
            }
            Line::Compact(line) => {
                let instructions = line.custom_instructions.as_deref().map(Text::from);
                self.call(
                    Command::Compact { instructions },
                    Pending::Compact(ticket),
                    out,
                );
            }
            Line::RemoveQueuedMessage(line) => self.remove(ticket, &line, out),
            Line::PromoteQueuedMessage(line) => self.promote(ticket, &line, out),
            Line::NewSession(_)
            | Line::OpenSession(_)
            | Line::SwitchSession(_)
            | Line::Branch(_)
            | Line::Fork(_) => self.change_session(ticket, &command, out),
            Line::Goal(line) => match goals::command(&line) {
                Ok(goal) => self.call(Command::Goal(goal), Pending::Goal(ticket), out),
                Err(error) => self.fail(ticket, &error, out),
            },
            Line::SetHostTools(line) => self.offer_tools(ticket, &line.tools, out),
            Line::SetHostUriSchemes(line) => self.offer_schemes(ticket, &line.schemes, out),
            Line::SetSubagentSubscription(line) => self.subscribe(ticket, line.level, out),
            Line::SetEventFilter(line) => {
                self.filter(ticket, line.events, line.message_updates, out)
            }
            Line::SetAskDialog(line) => {
                self.own.ask_dialog = line.enabled;
                let enabled = Enabled {
                    enabled: line.enabled,
                    ..Enabled::default()
                };
                self.data(ticket, &Data::Enabled(enabled), out);
            }
            Line::CancelSubagent(line) => self.cancel_subagent(ticket, &line.subagent_id, out),
            Line::SteerSubagent(line) => {
                self.steer_subagent(ticket, &line.subagent_id, &line.message, out);
            }
            Line::SetModel(line) => self.set_model(ticket, line.provider, line.model_id, out),
            Line::CycleModel(_) => self.ask(ticket, OmpAsk::Models, Outside::CycleModel, out),
            Line::SetThinkingLevel(line) => self.set_thinking(ticket, line.level, out),
            Line::CycleThinkingLevel(_) => self.cycle_thinking(ticket, out),
            Line::SetSteeringMode(line) => self.steering_mode(ticket, &line.mode, out),
            Line::SetFollowUpMode(line) => self.follow_up_mode(ticket, &line.mode, out),
            Line::SetInterruptMode(line) => self.interrupt_mode(ticket, &line.mode, out),
            Line::SetAutoCompaction(line) => {
                self.set(ticket, Setting::AutoCompact(line.enabled), out)
            }
            Line::SetAutoRetry(line) => self.set(ticket, Setting::AutoRetry(line.enabled), out),
            Line::SetSessionName(line) => {
                let name = line.name.trim();
                if name.is_empty() {
                    self.fail(ticket, "Session name cannot be empty", out);
                } else {
                    self.set(ticket, Setting::Name(name.into()), out);
                }
            }
            Line::GetState(_) => self.query(ticket, Query::State, out),
            Line::GetMessages(_) => self.query(ticket, Query::Messages, out),
            Line::GetMessagesPage(line) => {
                let cursor = line
                    .cursor
                    .get()
                    .map(|cursor| RawJson(cursor.as_str().into()));
                match super::entries::page_limit(line.limit) {
                    Ok(limit) => self.query(ticket, Query::Page { cursor, limit }, out),
                    Err(error) => self.fail(ticket, error, out),
                }
            }
            Line::GetEntries(line) => {
                let since = line.since.get().filter(|since| !since.is_null());
                let since = since.map(|since| String::from(&*Any(Some(since)).shown()));
                self.query(ticket, Query::Entries { since }, out);
            }
            Line::GetBranchMessages(_) => self.query(ticket, Query::BranchMessages, out),
            Line::GetLastAssistantText(_) => self.query(ticket, Query::LastText, out),
            Line::GetSessionStats(_) => self.query(ticket, Query::Stats, out),
            Line::GetSubagents(_) => self.query(ticket, Query::Subagents, out),
            Line::GetAvailableCommands(_) => self.query(ticket, Query::Commands, out),
            Line::GetAvailableThinkingLevels(_) => self.query(ticket, Query::Levels, out),
            Line::GetTree(_)
            | Line::GetAvailableModels(_)
            | Line::RefreshCommands(_)
            | Line::SetTodos(_)
            | Line::GetSubagentMessages(_)
            | Line::Handoff(_)
            | Line::SetFastMode(_)
            | Line::SetSlowMode(_)
            | Line::SetCacheWarming(_)
            | Line::ExportHtml(_)
            | Line::GetLoginProviders(_)
            | Line::Login(_)
            | Line::GetLogoutAccounts(_)
            | Line::Logout(_)
            | Line::LiveStart(_)
            | Line::LiveStop(_)
            | Line::LiveMute(_)
            | Line::PredictWord(_)
            | Line::PredictWordFeedback(_)
            | Line::Btw(_)
            | Line::BtwCancel(_)
            | Line::GetBtwHistory(_) => self.ask_outside(ticket, &command, out),
            // Only a value that was read without its line is one.
            Line::Unknown(_) => self.fail(ticket, "Unknown command: undefined", out),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one line")]
    fn input(
        &mut self,
        ticket: Ticket,
        message: &str,
        images: Option<&[Kept<'_, crate::protocol::omp::wire::Image<'_>>]>,
        by: By,
        deliver: Deliver,
        owes: bool,
        out: &mut Outbox<Omp>,
    ) {
        let sent = Sent {
            message,
            images: images.unwrap_or_default(),
            by,
            deliver,
            owes,
        };
        self.prompt(ticket, &sent, out);
    }

    /// Stops the run and the shell commands; input that isn't admitted goes with them.
    fn abort(&mut self, ticket: Ticket, restore: bool, out: &mut Outbox<Omp>) {
        self.cancel_waiting(out);
        if self.shells > 0 {
            self.quiet(
                Command::Cancel {
                    what: CancelWhat::Shell,
                    why: CancelWhy::Host,
                },
                out,
            );
        }
        let queue = if restore {
            QueueFate::Drop
        } else {
            QueueFate::Keep
        };
        let command = Command::Cancel {
            what: CancelWhat::Turn { queue },
            why: CancelWhy::Host,
        };
        self.call(command, Pending::Cancel { ticket, restore }, out);
    }

    fn stop(&mut self, ticket: Ticket, what: CancelWhat, out: &mut Outbox<Omp>) {
        let command = Command::Cancel {
            what,
            why: CancelWhy::Host,
        };
        self.call(command, Pending::Stop(ticket), out);
    }

    fn remove(&mut self, ticket: Ticket, line: &RemoveQueuedMessage<'_>, out: &mut Outbox<Omp>) {
        let Some(text) = line.message.string() else {
            return self.fail(ticket, "message must be a string", out);
        };
        let steering = match line.queue.string().as_deref() {
            Some("steering") => true,
            Some("followUp") => false,
            Some(_) | None => {
                return self.fail(ticket, "queue must be \"steering\" or \"followUp\"", out);
            }
        };
        let last = line.which.string().as_deref() == Some("last");
        let found = self.find_queued(&text, steering, last).filter(|prompt| {
            line.refuse_attachments.bool() != Some(true) || !self.has_images(*prompt)
        });
        match found {
            Some(prompt) => self.call(Command::Withdraw(prompt), Pending::Withdraw(ticket), out),
            None => self.data(ticket, &Data::Removed(Removed::default()), out),
        }
    }

    fn promote(&mut self, ticket: Ticket, line: &PromoteQueuedMessage<'_>, out: &mut Outbox<Omp>) {
        let Some(text) = line.message.string() else {
            return self.fail(ticket, "message must be a string", out);
        };
        match self.find_queued(&text, false, false) {
            Some(prompt) => {
                let json = payload(&Data::Promoted(Promoted {
                    promoted: true,
                    ..Promoted::default()
                }));
                self.call(
                    Command::Promote(prompt),
                    Pending::Then(ticket, Some(json)),
                    out,
                );
            }
            None => self.data(ticket, &Data::Promoted(Promoted::default()), out),
        }
    }

    fn subscribe(&mut self, ticket: Ticket, level: Any<'_>, out: &mut Outbox<Omp>) {
        let word = level.shown();
        let level = match level.string().as_deref() {
            Some("off") => Subscription::Off,
            Some("progress") => Subscription::Progress,
            Some("events") => Subscription::Events,
            Some(_) | None => {
                let error = format!("Invalid subagent subscription level: {word}");
                return self.fail(ticket, &error, out);
            }
        };
        self.own.subagents = level;
        let data = Level {
            level: (&*word).into(),
            ..Level::default()
        };
        self.data(ticket, &Data::Level(data), out);
    }

    fn filter(&mut self, ticket: Ticket, events: Any<'_>, updates: Any<'_>, out: &mut Outbox<Omp>) {
        let kinds = match offers::events(events) {
            Ok(kinds) => kinds,
            Err(error) => return self.fail(ticket, &error, out),
        };
        let word = updates.string();
        let deltas = match (updates.get(), word.as_deref()) {
            (None, _) | (Some(_), Some("full")) => false,
            (Some(_), Some("delta")) => true,
            (Some(_), Some(_) | None) => {
                return self.fail(ticket, "messageUpdates must be \"full\" or \"delta\"", out);
            }
        };
        let data = Filter {
            events: Nullable(kinds.as_ref().map(|_| {
                events
                    .get()
                    .and_then(|list| list.decode().ok())
                    .unwrap_or_default()
            })),
            message_updates: word.as_deref().map(Into::into),
            ..Filter::default()
        };
        self.data(ticket, &Data::Filter(data), out);
        self.printer.filter(kinds, deltas);
    }

    fn cancel_subagent(&mut self, ticket: Ticket, id: &str, out: &mut Outbox<Omp>) {
        match self.find_run(id) {
            Some(run) => {
                let command = Command::Cancel {
                    what: CancelWhat::Run(run),
                    why: CancelWhy::Host,
                };
                self.call(command, Pending::CancelRun(ticket), out);
            }
            None => self.data(ticket, &Data::Cancelled(Default::default()), out),
        }
    }

    fn steer_subagent(&mut self, ticket: Ticket, id: &str, message: &str, out: &mut Outbox<Omp>) {
        let Some(run) = self.find_run(id) else {
            return self.fail(ticket, &format!("Subagent not running: {id}"), out);
        };
        let prompt = Prompt {
            id: out.next_prompt(),
            tag: None,
            content: alloc::vec![Block::Text(message.into())],
            deliver: STEER,
            literal: false,
            details: None,
        };
        let pending = Pending::SteerRun(ticket, id.into());
        self.call(Command::SteerRun { run, prompt }, pending, out);
    }

    /// The run of this id that is alive.
    fn find_run(&self, id: &str) -> Option<RunId> {
        let number: u64 = id.strip_prefix("run-")?.parse().ok()?;
        let runs = self.mirror.runs();
        runs.iter().map(|open| open.run).find(|run| run.0 == number)
    }
}

/// A steer begins a run when there is none.
const STEER: Deliver = Deliver::Steer {
    idle: IdleSteer::Start,
};

/// A payload as JSON.
pub(super) fn payload(data: &Data<'_>) -> alloc::vec::Vec<u8> {
    let mut json = alloc::vec::Vec::new();
    data.encode(&mut json);
    json
}

/// A whole number that isn't negative.
pub(super) fn whole(value: Any<'_>) -> Option<u64> {
    value.get()?.decode::<Num<'_>>().ok()?.u64()
}
