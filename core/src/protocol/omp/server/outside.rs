//! Commands that only the world outside of a session can carry out: each is a question to the embedder.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::commands::{payload, whole};
use super::message::raw;
use super::models::{self, json};
use super::ticket::Ticket;
use super::{Face, entries};
use crate::json::Raw;
use crate::protocol::Outbox;
use crate::protocol::omp::wire::{
    Accounts, Any, AvailableModels, BtwHistory, Cancelled, Command as Line, Commands, CycledModel,
    Data, FastMode, Kept, LoginProviders, Model, Suffix, TodoPhase, TodoTask, Todos,
};
use crate::protocol::omp::{Export, Omp, OmpAsk, OmpOutcome};
use crate::vocab::*;

/// What becomes of the embedder's answer.
#[derive(Debug)]
pub(super) enum Outside {
    /// The payload is the response's.
    Plain(Fallback),
    FindModel {
        provider: String,
        model: String,
    },
    Models,
    CycleModel,
    Tree,
    Commands,
    /// The phases, normalised.
    Todos(RawJson),
    FastMode(bool),
    /// A talk that is to begin.
    Talk,
    /// A talk that is to end.
    HangUp,
}

/// The answer where there is nothing behind a command.
#[derive(Debug)]
pub(super) enum Fallback {
    Done,
    Data(Vec<u8>),
    Error(String),
}

impl Face {
    /// Asks the embedder.
    pub(super) fn ask(
        &mut self,
        ticket: Ticket,
        ask: OmpAsk,
        what: Outside,
        out: &mut Outbox<Omp>,
    ) {
        let id = out.ask(ask);
        self.outside.insert(id, (ticket, what));
    }

    fn ask_plain(
        &mut self,
        ticket: Ticket,
        ask: OmpAsk,
        fallback: Fallback,
        out: &mut Outbox<Omp>,
    ) {
        self.ask(ticket, ask, Outside::Plain(fallback), out);
    }

    /// The commands that are nothing but questions.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "only these commands come here"
    )]
    pub(super) fn ask_outside(&mut self, ticket: Ticket, line: &Line<'_>, out: &mut Outbox<Omp>) {
        let text = |text: &str| Text::from(text);
        let data = |data: &Data<'_>| Fallback::Data(payload(data));
        let error = |text: String| Fallback::Error(text);
        match line {
            Line::GetAvailableModels(_) => self.ask(ticket, OmpAsk::Models, Outside::Models, out),
            Line::GetTree(_) => self.ask(ticket, OmpAsk::Tree, Outside::Tree, out),
            Line::RefreshCommands(_) => {
                self.ask(ticket, OmpAsk::RefreshCommands, Outside::Commands, out)
            }
            Line::SetTodos(line) => {
                let phases = normalised(&line.phases);
                self.ask(
                    ticket,
                    OmpAsk::Todos(phases.clone()),
                    Outside::Todos(phases),
                    out,
                );
            }
            Line::SetFastMode(line) => {
                let ask = OmpAsk::FastMode(line.enabled);
                self.ask(ticket, ask, Outside::FastMode(line.enabled), out);
            }
            Line::GetSubagentMessages(line) => {
                let subagent = line.subagent_id.as_deref().map(text);
                let file = line.session_file.as_deref().map(text);
                if subagent.is_none() && file.is_none() {
                    let error = "get_subagent_messages requires subagentId or sessionFile";
                    return self.fail(ticket, error, out);
                }
                let from_byte = match line.from_byte.get() {
                    None => 0,
                    Some(value) => match value.decode::<crate::protocol::omp::wire::Num<'_>>() {
                        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                        Ok(number) if number.f64().is_finite() => number.f64().max(0.0) as u64,
                        Ok(_) | Err(_) => {
                            return self.fail(ticket, "fromByte must be a finite number", out);
                        }
                    },
                };
                let fallback = match &subagent {
                    Some(id) => format!("Unknown subagent or session file unavailable: {id}"),
                    None => "Unknown subagent session file".into(),
                };
                let ask = OmpAsk::SubagentMessages {
                    subagent,
                    file,
                    from_byte,
                };
                self.ask_plain(ticket, ask, error(fallback), out);
            }
            Line::Handoff(line) => {
                if self.mirror.turn().is_some() {
                    let error = "Cannot hand off while a response is in progress";
                    return self.fail(ticket, error, out);
                }
                let ask = OmpAsk::Handoff {
                    instructions: line.custom_instructions.as_deref().map(text),
                };
                let fallback = error("Nothing to hand off (already compacted)".into());
                self.ask_plain(ticket, ask, fallback, out);
            }
            Line::SetSlowMode(line) => {
                self.ask_plain(
                    ticket,
                    OmpAsk::SlowMode(line.enabled),
                    missing("Slow mode"),
                    out,
                );
            }
            Line::SetCacheWarming(line) => {
                let mode = line.mode.shown();
                if !matches!(&*mode, "off" | "streaming" | "idle") {
                    let error = format!("Invalid cache warming mode: {mode}");
                    return self.fail(ticket, &error, out);
                }
                self.ask_plain(
                    ticket,
                    OmpAsk::CacheWarming(text(&mode)),
                    missing("Cache warming"),
                    out,
                );
            }
            Line::ExportHtml(line) => {
                let info = self.mirror.info();
                let export = Export {
                    path: line.output_path.as_deref().map(text),
                    session: info.map_or_else(|| "".into(), |info| info.session.clone()),
                    name: info.and_then(|info| info.name.clone()),
                    history: self.mirror.history().to_vec(),
                };
                self.ask_plain(
                    ticket,
                    OmpAsk::ExportHtml(Box::new(export)),
                    missing("HTML export"),
                    out,
                );
            }
            Line::GetLoginProviders(_) => {
                let none = data(&Data::LoginProviders(LoginProviders::default()));
                self.ask_plain(ticket, OmpAsk::LoginProviders, none, out);
            }
            Line::Login(line) => {
                let provider = text(&line.provider_id);
                let fallback = error(format!("Unknown OAuth provider: {provider}"));
                self.ask_plain(ticket, OmpAsk::Login { provider }, fallback, out);
            }
            Line::GetLogoutAccounts(line) => {
                let provider = text(&line.provider_id);
                let none = data(&Data::Accounts(Accounts::default()));
                self.ask_plain(ticket, OmpAsk::LogoutAccounts { provider }, none, out);
            }
            Line::Logout(line) => {
                let provider = text(&line.provider_id);
                let fallback = error(format!("Unknown OAuth provider: {provider}"));
                let credential = line
                    .credential_id
                    .get()
                    .map(|id| RawJson(id.as_str().into()));
                let ask = OmpAsk::Logout {
                    provider,
                    credential,
                };
                self.ask_plain(ticket, ask, fallback, out);
            }
            Line::LiveStart(line) => {
                let voice = line.voice.as_deref().map(text);
                let instructions = line.instructions.as_deref().map(text);
                self.live_start(ticket, voice, instructions, out);
            }
            Line::LiveStop(_) => self.live_stop(ticket, out),
            Line::LiveMute(line) => self.live_mute(ticket, line.muted, out),
            Line::PredictWord(line) => match cursor(&line.text, line.cursor) {
                Some(cursor) => {
                    let ask = OmpAsk::PredictWord {
                        text: text(&line.text),
                        cursor,
                    };
                    self.ask_plain(ticket, ask, data(&Data::Suffix(Suffix::default())), out);
                }
                None => self.fail(ticket, CURSOR, out),
            },
            Line::PredictWordFeedback(line) => match cursor(&line.text, line.cursor) {
                Some(cursor) => {
                    let ask = OmpAsk::PredictFeedback {
                        text: text(&line.text),
                        cursor,
                        suggestion: text(&line.suggestion),
                        accepted: line.accepted,
                    };
                    self.ask_plain(ticket, ask, Fallback::Done, out);
                }
                None => self.fail(ticket, CURSOR, out),
            },
            Line::Btw(line) => {
                let ask = OmpAsk::Btw {
                    question: text(&line.question),
                    record: line.record_id.as_deref().map(text),
                };
                self.ask_plain(ticket, ask, missing("A side question"), out);
            }
            Line::BtwCancel(line) => {
                let record = line.record_id.as_deref().map(text);
                let none = data(&Data::Cancelled(Cancelled::default()));
                self.ask_plain(ticket, OmpAsk::BtwCancel { record }, none, out);
            }
            Line::GetBtwHistory(_) => {
                let none = data(&Data::BtwHistory(BtwHistory::default()));
                self.ask_plain(ticket, OmpAsk::BtwHistory, none, out);
            }
            _ => self.fail(ticket, "Not available", out),
        }
    }

    /// The embedder's answer.
    pub(super) fn outside_settled(&mut self, id: u64, outcome: OmpOutcome, out: &mut Outbox<Omp>) {
        if self.hung_up(id, out) {
            return;
        }
        let Some((ticket, what)) = self.outside.remove(&id) else {
            return;
        };
        if let Outside::Talk = what {
            return self.talk_began(ticket, outcome, out);
        }
        if let Outside::HangUp = what {
            return self.talk_stopped(ticket, outcome, out);
        }
        let given = match outcome {
            OmpOutcome::Failure(error) => return self.fail(ticket, &error, out),
            OmpOutcome::Success(json) => Some(json),
            OmpOutcome::Transcript(part) => return self.give_transcript(ticket, &part, out),
            OmpOutcome::Default => None,
        };
        let handoff = ticket.command() == "handoff";
        match (what, given) {
            (Outside::Plain(_) | Outside::Talk | Outside::HangUp, Some(given)) => match given {
                Some(given) => self.give(ticket, Some(raw(&given).as_str().as_bytes()), out),
                None if handoff => self.data(ticket, &Data::Null, out),
                None => self.done(ticket, out),
            },
            (Outside::Plain(Fallback::Done), None) => self.done(ticket, out),
            (Outside::Plain(Fallback::Data(json)), None) => self.give(ticket, Some(&json), out),
            (Outside::Plain(Fallback::Error(error)), None) => self.fail(ticket, &error, out),
            // Those were carried out above.
            (Outside::Talk | Outside::HangUp, None) => self.done(ticket, out),
            (Outside::FindModel { provider, model }, given) => {
                let known = given
                    .flatten()
                    .or_else(|| self.models.find(&provider, &model).cloned());
                let known = known.or_else(|| self.current_if(&provider, &model));
                match known {
                    Some(known) => self.use_model(ticket, &known, None, out),
                    None => {
                        let error = format!("Model not found: {provider}/{model}");
                        self.fail(ticket, &error, out);
                    }
                }
            }
            (Outside::Models, given) => {
                let list = self.model_list(given.flatten());
                let list = list
                    .iter()
                    .map(raw)
                    .map(|model| kept_model(model))
                    .collect();
                let models = AvailableModels {
                    models: list,
                    ..AvailableModels::default()
                };
                let json = payload(&Data::Models(models));
                self.give(ticket, Some(&json), out);
            }
            (Outside::CycleModel, given) => {
                let list = self.model_list(given.flatten());
                self.next_model(ticket, &list, out);
            }
            (Outside::Tree, Some(Some(given))) => {
                self.give(ticket, Some(raw(&given).as_str().as_bytes()), out);
            }
            (Outside::Tree, Some(None) | None) => {
                let json = entries::tree(&self.entries());
                self.give(ticket, Some(&json), out);
            }
            (Outside::Commands, given) => {
                if let Some(list) = given.flatten() {
                    self.config.commands = raw(&list)
                        .decode::<Vec<Raw<'_>>>()
                        .unwrap_or_default()
                        .into_iter()
                        .map(|command| RawJson(command.as_str().into()))
                        .collect();
                }
                let json = self.commands_json();
                self.give(ticket, Some(&json), out);
            }
            (Outside::Todos(phases), given) => {
                let phases = given.flatten().unwrap_or(phases);
                let todos = Todos {
                    todo_phases: raw(&phases).decode().unwrap_or_default(),
                    ..Todos::default()
                };
                let json = payload(&Data::Todos(todos));
                self.own.todos = Some(phases);
                self.give(ticket, Some(&json), out);
            }
            (Outside::FastMode(enabled), Some(given)) => {
                self.own.fast_mode = enabled;
                match given {
                    Some(given) => self.give(ticket, Some(raw(&given).as_str().as_bytes()), out),
                    None => {
                        let data = FastMode {
                            enabled,
                            active: enabled,
                            ..FastMode::default()
                        };
                        self.data(ticket, &Data::FastMode(data), out);
                    }
                }
            }
            (Outside::FastMode(true), None) => {
                self.fail(
                    ticket,
                    "Fast mode is unavailable for the current model.",
                    out,
                );
            }
            (Outside::FastMode(false), None) => {
                self.data(ticket, &Data::FastMode(FastMode::default()), out);
            }
        }
    }

    /// The agent is gone: questions that nobody needs answered any more.
    pub(super) fn dismiss_all(&mut self, out: &mut Outbox<Omp>) {
        for (id, (ticket, _)) in core::mem::take(&mut self.outside) {
            out.dismiss(id);
            self.fail(ticket, "The session is closing", out);
        }
    }

    /// All models that are known, the one in use at least.
    fn model_list(&self, given: Option<RawJson>) -> Vec<RawJson> {
        let given = given.and_then(|list| {
            let list: Vec<Raw<'_>> = raw(&list).decode().ok()?;
            Some(
                list.iter()
                    .map(|model| RawJson(model.as_str().into()))
                    .collect(),
            )
        });
        let list: Vec<RawJson> = given.unwrap_or_else(|| self.models.all().to_vec());
        if list.is_empty() {
            return self.current_model().into_iter().collect();
        }
        list
    }

    /// The object of the model in use.
    pub(super) fn current_model(&self) -> Option<RawJson> {
        let info = self.mirror.info()?;
        let window = self.mirror.context().map(|context| context.window);
        Some(self.models.current(info, window))
    }

    fn current_if(&self, provider: &str, id: &str) -> Option<RawJson> {
        let current = self.current_model()?;
        let (its_provider, its_id) = models::name(raw(&current))?;
        (its_provider == provider && its_id == id).then_some(current)
    }

    fn next_model(&mut self, ticket: Ticket, list: &[RawJson], out: &mut Outbox<Omp>) {
        let current = self
            .current_model()
            .and_then(|model| models::name(raw(&model)));
        let at = list
            .iter()
            .position(|model| models::name(raw(model)) == current);
        let next = at.map_or(0, |at| (at + 1) % list.len().max(1));
        match list.get(next) {
            Some(model) if list.len() > 1 => {
                let level = self
                    .mirror
                    .info()
                    .and_then(|info| info.settings.thinking.clone());
                let data = CycledModel {
                    model: raw(model).decode().unwrap_or_default(),
                    thinking_level: level.as_deref().map(Into::into),
                    is_scoped: false,
                    ..CycledModel::default()
                };
                let json = payload(&Data::CycledModel(data));
                self.use_model(ticket, model, Some(json), out);
            }
            Some(_) | None => self.data(ticket, &Data::Null, out),
        }
    }

    fn use_model(
        &mut self,
        ticket: Ticket,
        model: &RawJson,
        json: Option<Vec<u8>>,
        out: &mut Outbox<Omp>,
    ) {
        self.models.learn(model);
        let Some((provider, id)) = models::name(raw(model)) else {
            return self.fail(ticket, "The model has no provider or no id", out);
        };
        let json = json.unwrap_or_else(|| raw(model).as_str().as_bytes().to_vec());
        let setting = Setting::Model(Some(models::session_name(&provider, &id)));
        self.set_then(ticket, setting, Some(json), out);
    }
}

fn missing(what: &str) -> Fallback {
    Fallback::Error(format!("{what} is not available"))
}

fn kept_model(model: Raw<'_>) -> Kept<'_, Model<'_>> {
    model.decode().map_or(Kept::Other(model), Kept::Known)
}

/// What a cursor that isn't one is told.
const CURSOR: &str = "cursor must be an integer UTF-16 offset within text";

/// A place in a text, in units of UTF-16.
fn cursor(text: &str, cursor: Any<'_>) -> Option<u64> {
    let units = text.encode_utf16().count() as u64;
    whole(cursor).filter(|cursor| *cursor <= units)
}

/// Phases with nothing but what the contract has.
fn normalised(phases: &[Kept<'_, TodoPhase<'_>>]) -> RawJson {
    let phases: Vec<TodoPhase<'_>> = phases
        .iter()
        .filter_map(Kept::known)
        .map(|phase| TodoPhase {
            name: phase.name.clone(),
            tasks: phase
                .tasks
                .iter()
                .filter_map(Kept::known)
                .map(|task| {
                    Kept::Known(TodoTask {
                        content: task.content.clone(),
                        status: task.status.clone(),
                        blocker: task.blocker.clone(),
                        ..TodoTask::default()
                    })
                })
                .collect(),
            ..TodoPhase::default()
        })
        .collect();
    let mut out = Vec::new();
    crate::protocol::wire::Hole::put(&phases, &mut out);
    json(&out)
}

/// Payload of the commands that list slash commands.
pub(super) fn commands(list: Commands<'_>) -> Vec<u8> {
    payload(&Data::Commands(list))
}
