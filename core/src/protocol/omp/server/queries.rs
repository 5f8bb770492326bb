//! Queries: what the mirror knows, once it knows all that came before.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::commands::payload;
use super::entries::{self, Entry, entry_of};
use super::message::{pico_dollars, raw};
use super::ticket::Ticket;
use super::{Face, Pending, outside};
use crate::json::{self, Lazy, Str};
use crate::protocol::Outbox;
use crate::protocol::omp::Omp;
use crate::protocol::omp::wire::{
    Any, AvailableCommandsUpdate, BranchMessage, BranchMessages, Commands, ContextUsage, Data,
    Kept, LastText, Levels, Maybe, Nullable, Num, SessionStats, SlashCommand, SlashInput, State,
    TokenSums,
};
use crate::vocab::*;

/// What is asked.
#[derive(Debug)]
pub(super) enum Query {
    State,
    Messages,
    Page {
        cursor: Option<RawJson>,
        limit: usize,
    },
    Entries {
        since: Option<String>,
    },
    BranchMessages,
    LastText,
    Stats,
    Subagents,
    Commands,
    Levels,
}

impl Face {
    /// Asks for a consistent point.
    pub(super) fn query(&mut self, ticket: Ticket, query: Query, out: &mut Outbox<Omp>) {
        self.call(Command::Barrier, Pending::Query(ticket, query), out);
    }

    /// The point is there.
    pub(super) fn queried(&mut self, ticket: Ticket, query: Query, out: &mut Outbox<Omp>) {
        let json = match query {
            Query::State => self.state(),
            Query::Messages => entries::messages(&self.entries()),
            Query::Page { cursor, limit } => return self.page(ticket, cursor.as_ref(), limit, out),
            Query::Entries { since } => match entries::list(&self.entries(), since.as_deref()) {
                Some(json) => json,
                None => {
                    let since = since.unwrap_or_default();
                    let error = alloc::format!("Unknown entries cursor: {since}");
                    return self.fail_with(ticket, &error, Some("unknown_since"), out);
                }
            },
            Query::BranchMessages => self.branch_messages(),
            Query::LastText => self.last_text(),
            Query::Stats => self.stats(),
            Query::Subagents => self.subagents_json(),
            Query::Commands => self.commands_json(),
            Query::Levels => {
                let levels = self.levels();
                payload(&Data::Levels(Levels {
                    levels: levels.iter().map(|level| Str::from(&**level)).collect(),
                    ..Levels::default()
                }))
            }
        };
        self.give(ticket, Some(&json), out);
    }

    /// The history as entries.
    pub(super) fn entries(&mut self) -> Vec<Entry> {
        let (run, models, mirror) = (&mut self.run, &self.models, &self.mirror);
        let info = mirror.info();
        mirror
            .history()
            .iter()
            .map(|message| Entry {
                id: entry_of(message),
                at_ms: message.at_ms,
                message: run.history_json(message, models, info),
            })
            .collect()
    }

    fn page(
        &mut self,
        ticket: Ticket,
        cursor: Option<&RawJson>,
        limit: usize,
        out: &mut Outbox<Omp>,
    ) {
        if self.mirror.turn().is_some() || self.mirror.compacting().is_some() {
            let error = "Cannot page messages while the session is changing";
            return self.fail_with(ticket, error, Some("session_busy"), out);
        }
        let session = self.session();
        let (run, models, mirror) = (&mut self.run, &self.models, &self.mirror);
        let history = mirror.history();
        let leaf = history.last().map(|message| entry_of(message));
        let snapshot = entries::Snapshot {
            session: &session,
            leaf: leaf.as_deref(),
            count: history.len(),
        };
        match entries::page_start(Any(cursor.map(raw)), snapshot) {
            Ok(from) => {
                // Of the whole history only this page is written.
                let messages = history.iter().skip(from).take(limit);
                let messages =
                    messages.map(|message| run.history_json(message, models, mirror.info()));
                let json = entries::page(snapshot, from, messages);
                self.give(ticket, Some(&json), out);
            }
            Err((error, code)) => self.fail_with(ticket, error, code, out),
        }
    }

    /// The session's id.
    pub(super) fn session(&self) -> Text {
        self.mirror
            .info()
            .map_or_else(|| "".into(), |info| info.session.clone())
    }

    /// The session's file, if it has one.
    pub(super) fn session_file(&self) -> Option<Str<'_>> {
        let file = self.mirror.info()?.file.as_deref();
        file.map(Str::from)
    }

    fn state(&self) -> Vec<u8> {
        let Some(info) = self.mirror.info() else {
            return payload(&Data::State(Box::default()));
        };
        let settings = &info.settings;
        let model = self.current_model();
        let queued = self.queued_messages();
        let drain = |drain: Drain| match drain {
            Drain::One => "one-at-a-time",
            Drain::All => "all",
        };
        let interrupting = match settings.interrupting {
            Interrupting::Immediate => "immediate",
            Interrupting::Wait => "wait",
        };
        let word = |own: &Option<String>, said: &'static str| {
            Some(Str::from(String::from(own.as_deref().unwrap_or(said))))
        };
        let goal = self.mirror.goal();
        let goal = self.own.goal.wire(goal, self.now.unix_ms).state;
        let todos = self.own.todos.as_ref().map(raw);
        let tools: Vec<RawJson> = info.briefing.tools.iter().map(tool).collect();
        let settled = self.is_settling() && self.mirror.jobs().all(|job| !job.finite);
        let state = State {
            model: model.as_ref().map(|model| {
                let model = raw(model);
                model.decode().map_or(Kept::Other(model), Kept::Known)
            }),
            thinking_level: settings.thinking.as_deref().map(Str::from),
            is_streaming: Some(self.mirror.turn().is_some()),
            is_compacting: Some(self.mirror.compacting().is_some()),
            steering_mode: word(&self.own.steering_mode, drain(settings.steer_drain)),
            follow_up_mode: word(&self.own.follow_up_mode, drain(settings.follow_up_drain)),
            interrupt_mode: word(&self.own.interrupt_mode, interrupting),
            session_file: self.session_file(),
            session_id: (&*info.session).into(),
            session_name: info.name.as_deref().map(Str::from),
            auto_compaction_enabled: Some(settings.auto_compact),
            queued_message_count: Some((queued.len() as u64).into()),
            has_pending_async_work: Some(self.mirror.jobs().any(|job| job.finite)),
            is_settled: Some(settled),
            queued_messages: Some(queued.wire()),
            todo_phases: Some(
                todos
                    .and_then(|phases| phases.decode().ok())
                    .unwrap_or_default(),
            ),
            fast_mode_enabled: Some(self.own.fast_mode),
            tokens_per_second: Maybe::Null,
            fast_mode_active: Some(self.own.fast_mode),
            message_count: Some((self.mirror.history().len() as u64).into()),
            system_prompt: Some(
                info.briefing
                    .system
                    .iter()
                    .map(|text| (&**text).into())
                    .collect(),
            ),
            dump_tools: Some(tools.iter().map(raw).collect()),
            context_usage: self.context_usage(),
            goal: goal.0.map_or(Maybe::Null, Maybe::Value),
            ..State::default()
        };
        payload(&Data::State(Box::new(state)))
    }

    fn context_usage(&self) -> Option<ContextUsage<'static>> {
        let context = self.mirror.context()?;
        #[allow(clippy::cast_precision_loss)]
        let percent =
            (context.window > 0).then(|| context.used as f64 * 100.0 / context.window as f64);
        Some(ContextUsage {
            tokens: Nullable(Some(context.used.into())),
            context_window: context.window.into(),
            percent: Nullable(percent.map(Num::from)),
            ..ContextUsage::default()
        })
    }

    fn stats(&self) -> Vec<u8> {
        let history = self.mirror.history();
        let count = |is: &dyn Fn(&Message) -> bool| {
            Num::from(history.iter().filter(|message| is(message)).count() as u64)
        };
        let calls: usize = history.iter().map(|message| message.calls().count()).sum();
        let totals = self.mirror.totals();
        let usage = totals.usage;
        let number = |tokens: Option<u64>| Num::from(tokens.unwrap_or(0));
        let pico_usd = totals
            .by_model
            .iter()
            .fold(0u64, |sum, model| sum.saturating_add(model.pico_usd));
        let session = self.session();
        payload(&Data::Stats(SessionStats {
            session_file: self.session_file(),
            session_id: (&*session).into(),
            user_messages: count(&|message| message.role == Role::User),
            assistant_messages: count(&|message| message.role == Role::Assistant),
            tool_calls: (calls as u64).into(),
            tool_results: count(&|message| matches!(message.role, Role::Tool { .. })),
            total_messages: (history.len() as u64).into(),
            tokens: TokenSums {
                input: number(usage.input),
                output: number(usage.answer_tokens()),
                reasoning: Some(number(usage.reasoning)),
                cache_read: number(usage.cache_read),
                cache_write: number(usage.cache_write),
                total: number(usage.total()),
                ..TokenSums::default()
            },
            cost: pico_dollars(pico_usd),
            premium_requests: Num::default(),
            context_usage: self.context_usage(),
            ..SessionStats::default()
        }))
    }

    fn branch_messages(&self) -> Vec<u8> {
        let messages = self
            .mirror
            .history()
            .iter()
            .filter(|message| message.role == Role::User);
        payload(&Data::BranchMessages(BranchMessages {
            messages: messages
                .map(|message| BranchMessage {
                    entry_id: entry_of(message).into(),
                    text: message.text().into(),
                    ..BranchMessage::default()
                })
                .collect(),
            ..BranchMessages::default()
        }))
    }

    /// The text of the last reply, without white space at its end.
    fn last_text(&self) -> Vec<u8> {
        let mut replies = self.mirror.history().iter().rev();
        let last = replies.find(|message| message.role == Role::Assistant);
        let text = last.map(|message| message.text()).unwrap_or_default();
        let text = text.trim_end();
        payload(&Data::LastText(LastText {
            text: if text.is_empty() {
                Maybe::Absent
            } else {
                Maybe::Value(Lazy::from(text))
            },
            ..LastText::default()
        }))
    }

    /// Payload of the commands that list slash commands.
    pub(super) fn commands_json(&self) -> Vec<u8> {
        outside::commands(Commands {
            commands: self.slash_commands(),
            ..Commands::default()
        })
    }

    /// Says which slash commands there are.
    pub(super) fn say_commands(&mut self, out: &mut Outbox<Omp>) {
        let mut json = Vec::new();
        crate::protocol::omp::wire::Frame::from(AvailableCommandsUpdate {
            commands: self.slash_commands(),
            ..AvailableCommandsUpdate::default()
        })
        .encode(&mut json);
        self.printer.frame(out, |out| out.extend_from_slice(&json));
    }

    fn slash_commands(&self) -> Vec<Kept<'_, SlashCommand<'_>>> {
        if !self.config.commands.is_empty() {
            let known = self.config.commands.iter().map(raw);
            return known
                .map(|command| command.decode().map_or(Kept::Other(command), Kept::Known))
                .collect();
        }
        let Some(info) = self.mirror.info() else {
            return Vec::new();
        };
        info.commands
            .iter()
            .map(|(name, description, hint)| {
                Kept::Known(SlashCommand {
                    name: (&**name).into(),
                    description: (!description.is_empty()).then(|| (&**description).into()),
                    input: (!hint.is_empty()).then(|| SlashInput {
                        hint: Some((&**hint).into()),
                        ..SlashInput::default()
                    }),
                    source: if info.skills.contains(name) {
                        "skill"
                    } else {
                        "builtin"
                    }
                    .into(),
                    ..SlashCommand::default()
                })
            })
            .collect()
    }
}

/// A tool, as the model is told of it.
fn tool(spec: &ToolSpec) -> RawJson {
    let mut json = b"{\"name\":".to_vec();
    json::write_str(&mut json, &spec.name);
    json.extend_from_slice(b",\"description\":");
    json::write_str(&mut json, &spec.description);
    json.extend_from_slice(b",\"parameters\":");
    json.extend_from_slice(spec.schema.as_str().as_bytes());
    json.push(b'}');
    RawJson(String::from_utf8_lossy(&json).as_ref().into())
}
