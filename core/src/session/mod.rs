//! The agent: one session as a pure state machine.
//!
//! It is told ([`Agent::handle`]) and asked ([`Agent::poll_output`], [`Agent::poll_timeout`]), it never waits and
//! knows no protocol, clock or disk. A turn is in one phase at a time, and what only a phase needs lives in it; beside
//! it are the queues of prompts, the open questions to the host, and the table of effects that the driver hasn't
//! settled yet. Every choice between behaviours is a field of [`SessionConfig`].
//!
//! What is promised whatever comes in: each command is answered once, each admitted prompt ends once, each turn,
//! step, request, message, call and question that starts ends exactly once, in this order; text that was shown is
//! never retried; a call of a reply without a completion signal never runs; a cancel ends the turn within the same
//! input or waits for one bounded write. `Err` from `handle` means that the embedder called wrongly.
//!
//! Prompt ids must grow: an id that isn't above the last admitted one is a duplicate. Nothing is remembered of
//! settled questions and prompts, so a session's memory is bounded by its limits and its history.
//!
//! A nested run is another agent, which somebody else holds: the session begins it, passes on what it says, and hands down
//! what is meant for it. Changes of session are refused as unsupported where the policy allows none.

mod apply;
mod args;
mod ask;
mod beside;
mod cancel;
mod change;
mod close;
mod commands;
mod compact;
pub mod config;
mod effects;
mod estimate;
mod frozen;
mod goal;
mod hooks;
mod ids;
mod intake;
mod jobs;
mod left;
mod permits;
mod phase;
mod plan;
mod queue;
mod recall;
mod retry;
mod rewind;
mod runs;
mod shell;
mod stream;
#[cfg(test)]
mod tests;
mod timers;
mod told;
mod tools;
pub mod tree;
mod turn;
mod uris;

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet, VecDeque},
    string::String,
    sync::Arc,
    vec::Vec,
};

pub use args::glob;
pub use config::SessionConfig;
pub use frozen::schema_tokens;
pub use goal::goal_tool;
pub use jobs::job_stop_tool;
pub use plan::plan_tool;
pub use runs::task_tool;
pub use tree::SessionTree;

use ask::{AskFor, OpenAsk};
use beside::Beside;
use close::Closing;
use commands::Owed;
use config::{ModelConfig, Price};
use effects::{Effects, State};
use estimate::Estimate;
use ids::{Ids, Random};
use intake::Intake;
use phase::{Gate, Phase, Save, Sent};
use queue::{out::Out, prompts::Prompts};
use timers::{First, Name, Timer};

use crate::vocab::{
    Agent, AskId, Block, Briefing, CallId, CommandId, Due, Effect, EffectBody, Failure,
    FailureKind, HookId, HookSpec, Input, Level, Message, MessageId, Misuse, ModelRef,
    ModelRequest, Now, Origin, Output, PermissionUpdate, PromptId, RawJson, RequestId, Role, RunId,
    SessionInfo, Signal, Text, ToolInput, ToolSpec, ToolUpdate, UnapprovedSource, UnloadedHook,
    UriSpec, What, WriteBody, WriteId,
};

/// Marks the hook timer of a question to the host, so that its number isn't taken for a hook's.
const HOST_HOOK: u64 = 1 << 63;

/// One session. See the [module](self).
pub struct Session {
    config: SessionConfig,
    /// The facts that `Opened` and `Changed` say; without the history.
    info: Box<SessionInfo>,
    model: ModelConfig,
    thinking_budget: Option<u64>,
    /// What all requests so far cost, where that is known.
    spent_pico_usd: u64,
    now: Now,
    phase: Phase,
    closing: Closing,
    last_signal: Option<Signal>,
    out: Out,
    ids: Ids,
    random: Random,
    effects: Effects,
    asks: BTreeMap<AskId, OpenAsk>,
    hooks: BTreeMap<HookId, hooks::Run>,
    /// Prompts that aren't admitted yet.
    intake: Intake,
    prompts: Prompts,
    /// Pending prompts wait for the next prompt or Promote, after a cancel that kept them.
    held: bool,
    /// Something happened since `Settled`.
    active: bool,
    /// The highest prompt id that was admitted.
    seen: Option<PromptId>,
    owed: VecDeque<Owed>,
    reloading: Option<CommandId>,
    /// Files are being put back.
    restoring: Option<CommandId>,
    /// Another session is about to take the place of this one.
    change: Option<change::Change>,
    /// The prompts to which files can go back, and their messages.
    rewindable: BTreeMap<PromptId, MessageId>,
    /// What hooks are being told of, and how much they were told of so far.
    telling: BTreeMap<u64, told::Telling>,
    told: u64,
    /// The host has offered hooks.
    greeted: bool,
    /// A compaction by hand that waits for the turn's end.
    compact_queued: Option<compact::Queued>,
    /// Approvals of content that are being written down.
    approving: Vec<(WriteId, UnapprovedSource)>,
    /// Permission updates that are being written down.
    permitting: Vec<(WriteId, Vec<PermissionUpdate>)>,
    /// What answers changed of the rules, oldest first.
    changes: Vec<permits::Change>,
    /// What entered the history outside a turn, the summary of a compaction by hand too, until it is written.
    unsaved: Vec<Arc<Message>>,
    /// Such messages while they are being written.
    beside: Option<Beside>,
    jobs: jobs::Jobs,
    runs: runs::Runs,
    plan: Option<plan::Plan>,
    goal: Option<goal::Pursuit>,
    /// What a model made of the goal, while it is being written down.
    goal_writes: goal::Writes,
    shells: BTreeMap<CommandId, shell::Shell>,
    /// What shell commands gave, until it may enter the history.
    shell_news: Vec<Arc<Message>>,
    /// How many messages summaries stand for, counted from the session's first one.
    compacted_to: u64,
    history: Vec<Arc<Message>>,
    estimate: Estimate,
    /// Text of the open text or thinking block, reused for ever.
    text: String,
    /// Provider ids of calls in the history.
    provider_ids: BTreeSet<Text>,
    /// What a host offers, beside the driver's own.
    offered: Vec<ToolSpec>,
    offered_hooks: Vec<HookSpec>,
    offered_uris: Vec<UriSpec>,
    /// All tools, by which calls are judged.
    tools: Vec<Arc<ToolSpec>>,
    /// The tools that the model is shown.
    visible: Arc<[ToolSpec]>,
    /// Notes of the harness that stand before the next request: what was frozen anew, which hooks aren't loaded.
    notes: Vec<Text>,
    /// Hooks that weren't loaded, until a turn has said so.
    unloaded: Vec<UnloadedHook>,
    /// Running calls that want to reach a host of the network, one each.
    network: Vec<(CallId, Text)>,
}

impl Session {
    /// A session, with `Opened` queued.
    ///
    /// `info` tells its name, place and history; its model, settings and tools are those of the configuration. The
    /// history is what an earlier session of the same name remembered, or all that its turns wrote: the last summary
    /// of a compaction takes the place of what it stands for, and a call without a result is given one that says so
    /// (S-31).
    pub fn new(mut config: SessionConfig, mut info: Box<SessionInfo>, now: Now) -> Session {
        let history = core::mem::take(&mut info.history);
        info.settings = Box::new(config.settings.clone());
        info.model = ModelRef {
            provider: config.model.provider.clone(),
            model: config.model.name.clone(),
        };
        let run = config.run;
        let records = core::mem::take(&mut config.jobs);
        let jobs = jobs::Jobs::after(records, config.limits.job_records);
        let mut ids = Ids::of(run);
        ids.runs_until(config.last_run.0);
        let mut session = Session {
            model: config.model.clone(),
            thinking_budget: config.model.thinking_budget,
            random: Random::new(&config.seed),
            config,
            info,
            spent_pico_usd: 0,
            now,
            phase: Phase::Idle,
            closing: Closing::Open,
            last_signal: None,
            out: Out::new(run),
            ids,
            effects: Effects::default(),
            asks: BTreeMap::new(),
            hooks: BTreeMap::new(),
            intake: Intake::default(),
            prompts: Prompts::default(),
            held: false,
            active: false,
            seen: None,
            owed: VecDeque::new(),
            reloading: None,
            restoring: None,
            change: None,
            rewindable: BTreeMap::new(),
            telling: BTreeMap::new(),
            told: 0,
            greeted: false,
            compact_queued: None,
            unsaved: Vec::new(),
            beside: None,
            approving: Vec::new(),
            permitting: Vec::new(),
            changes: Vec::new(),
            jobs,
            runs: runs::Runs::default(),
            plan: None,
            goal: None,
            goal_writes: Vec::new(),
            shells: BTreeMap::new(),
            shell_news: Vec::new(),
            compacted_to: 0,
            history: Vec::new(),
            estimate: Estimate::default(),
            text: String::new(),
            provider_ids: BTreeSet::new(),
            offered: Vec::new(),
            offered_hooks: Vec::new(),
            offered_uris: Vec::new(),
            tools: Vec::new(),
            visible: Arc::from(Vec::new()),
            network: Vec::new(),
            notes: Vec::new(),
            unloaded: Vec::new(),
        };
        session.unloaded.clone_from(&session.config.unloaded);
        session.info.skills.clone_from(&session.config.skills);
        let summarised = session.load(history);
        session.tools_changed();
        session.recall_plan();
        session.say_opened(summarised);
        session.recall_goal();
        session.tell_of_start(told::Whose::Own);
        session
    }

    /// The history as the next request would send it.
    pub fn history(&self) -> &[Arc<Message>] {
        &self.history
    }

    fn say(&mut self, what: What) {
        self.out.event(self.now, what);
    }

    fn notice(&mut self, level: Level, code: &str, text: &str) {
        self.say(What::Notice {
            level,
            code: Some(code.into()),
            text: text.into(),
        });
    }

    fn warn(&mut self, code: &str, text: &str) {
        self.notice(Level::Warning, code, text);
    }

    /// A message enters the history. One without content would only confuse a provider.
    fn remember(&mut self, message: Arc<Message>) {
        if !message.content.is_empty() {
            self.estimate
                .add_blocks(message.content.iter().map(Arc::as_ref));
            self.history.push(message);
        }
    }

    /// A message enters the history outside any turn: the next one stores it.
    fn remember_unsaved(&mut self, message: Arc<Message>) {
        if !message.content.is_empty() {
            self.unsaved.push(message.clone());
        }
        self.remember(message);
    }

    /// How much of a result's text and media is kept, in bytes.
    fn output_limits(&self) -> (usize, usize) {
        let limits = &self.config.limits;
        (limits.tool_output_bytes, limits.tool_media_bytes)
    }

    /// Whether new effects may begin: not while too many stopped ones aren't settled.
    fn has_room(&self) -> bool {
        self.effects.stopped() < self.config.limits.stopped_effects
    }

    fn tool_named(&self, name: &str) -> Option<Arc<ToolSpec>> {
        self.tools
            .iter()
            .find(|tool| tool.name.as_ref() == name)
            .cloned()
    }

    /// The driver's or the host's tools changed, or the host's URIs: they count from the next request.
    fn tools_changed(&mut self) {
        let own = self.config.tools.iter();
        let offered = self
            .offered
            .iter()
            .filter(|tool| self.config.tools.iter().all(|own| own.name != tool.name));
        let all: Vec<&ToolSpec> = own.chain(offered).collect();
        self.tools = all
            .iter()
            .map(|tool| Arc::new(ToolSpec::clone(tool)))
            .collect();
        self.visible = all
            .iter()
            .filter(|tool| !tool.hidden)
            .map(|tool| self.with_uris(tool))
            .collect();
        self.info.tools = self.visible.iter().map(|tool| tool.name.clone()).collect();
        self.info.briefing = Briefing {
            system: self.config.system.clone(),
            tools: self.visible.clone(),
        };
        self.estimate
            .set_fixed(self.config.system.as_deref(), &self.visible);
    }

    fn model_named(&self, name: &str) -> Option<&ModelConfig> {
        core::iter::once(&self.config.model)
            .chain(&self.config.models)
            .find(|model| model.is_named(name))
    }

    fn price_named(&self, name: &str) -> Option<Price> {
        let mut prices = self.config.prices.iter();
        let found = prices.find(|(of, _)| **of == *name);
        found.map(|(_, price)| price.clone())
    }

    fn model_ref(&self) -> ModelRef {
        ModelRef {
            provider: self.model.provider.clone(),
            model: self.model.name.clone(),
        }
    }

    /// `None`: the model at the start.
    fn set_model(&mut self, name: Option<Text>) {
        let model = match name {
            None => self.config.model.clone(),
            Some(name) => match self.model_named(&name) {
                Some(model) => model.clone(),
                // Its numbers are taken to be alike; its price isn't.
                None => ModelConfig {
                    price: self.price_named(&name),
                    name,
                    ..self.config.model.clone()
                },
            },
        };
        self.model = model;
        self.info.model = self.model_ref();
        self.estimate.forget_reported();
    }

    /// The timer that is due first.
    fn first_timer(&self) -> Option<Timer> {
        let mut first = First::default();
        match &self.phase {
            Phase::Saving(
                _,
                Save {
                    gate: Gate::End { flush_at_us, .. },
                    ..
                },
            ) => {
                first.see(Name::Flush, 0, Some(*flush_at_us));
            }
            Phase::Saving(
                _,
                Save {
                    gate: Gate::Step | Gate::Refusal { .. },
                    since_us,
                    ..
                },
            ) => first.see(Name::Flush, 0, self.patience_us(*since_us)),
            Phase::Backoff(_, backoff) => first.see(Name::Backoff, 0, Some(backoff.at_us)),
            Phase::Requesting(_, attempt) | Phase::Streaming(_, attempt, _) => {
                first.see(Name::Stall, 0, attempt.stall_at_us);
            }
            Phase::Compacting(open) => first.see(Name::Stall, 0, open.stall_at_us),
            Phase::Tools(_, batch) => {
                for (call, deadline_us) in batch.running() {
                    first.see(Name::Tool, call.0, deadline_us);
                }
            }
            Phase::Closed => return None,
            Phase::Holding(_, until_us) => first.see(Name::Hold, 0, *until_us),
            Phase::Idle | Phase::Admitting(..) | Phase::Waiting(_) | Phase::Checking(..) => {}
        }
        first.see(Name::Beside, 0, self.beside_until_us());
        for (command, until_us) in self.owed_until_us() {
            first.see(Name::Owed, command.0, until_us);
        }
        for (ask, open) in &self.asks {
            first.see(Name::Approval, ask.0, open.deadline_us);
            if let AskFor::Hook(run) = &open.what {
                first.see(Name::Hook, ask.0 | HOST_HOOK, run.deadline_us);
            }
        }
        for (hook, run) in &self.hooks {
            first.see(Name::Hook, hook.0, run.deadline_us);
        }
        first.see(Name::Drain, 0, self.closing.drain_at_us());
        first.get()
    }

    fn fire(&mut self, timer: Timer) {
        match timer.name {
            Name::Flush => self.flush_over(),
            Name::Beside => self.beside_over(),
            Name::Owed => self.owed_too_long(CommandId(timer.id)),
            Name::Backoff => self.backed_off(),
            Name::Stall => self.stalled(),
            Name::Approval => self.approval_timed_out(AskId(timer.id)),
            Name::Hook if timer.id & HOST_HOOK != 0 => {
                self.host_hook_timed_out(AskId(timer.id & !HOST_HOOK))
            }
            Name::Hook => self.hook_timed_out(HookId(timer.id)),
            Name::Tool => self.tool_timed_out(CallId(timer.id)),
            Name::Hold => self.held_out(),
            Name::Drain => self.close_now(),
        }
        self.idle();
    }

    /// Fires the timers whose deadline is before a moment, one after the other. Those that they arm begin now, so
    /// each is fired at most once.
    fn fire_before(&mut self, before_us: u64) {
        while let Some(timer) = self.first_timer().filter(|timer| timer.at_us < before_us) {
            self.fire(timer);
        }
    }

    /// Fires the timers of the past, and goes on behind each moment of them, as if the driver had come in time: what
    /// they lead to is not the input's.
    fn fire_late(&mut self) {
        let now_us = self.now.mono_us;
        while let Some(timer) = self.first_timer().filter(|timer| timer.at_us < now_us) {
            self.fire_before(timer.at_us.saturating_add(1));
            self.go_on();
        }
    }

    /// Does what nothing stands in the way of any more.
    fn go_on(&mut self) {
        self.ask_for_runs();
        if !matches!(self.phase, Phase::Streaming(..)) {
            self.boundary_again();
            self.idle();
        }
    }

    /// Takes an input that was looked at; no timer is late.
    fn take(&mut self, input: Input<'_>) -> Result<(), Misuse> {
        let state = self.effects.settle(&input)?;
        if let Phase::Closed = self.phase {
            return Ok(());
        }
        match (state, &input) {
            (_, Input::Woken) => self.fire_before(self.now.mono_us.saturating_add(1)),
            (State::Live, _) => self.settled(input),
            (
                State::Stopped,
                Input::Tool {
                    call,
                    update: ToolUpdate::Detached(_),
                },
            ) => self.turn_job_away(*call),
            (State::Stopped, _) => {}
        }
        self.go_on();
        Ok(())
    }

    fn settled(&mut self, input: Input<'_>) {
        match input {
            Input::Call(call) => self.command(call),
            Input::Model { chunk, .. } => self.model_chunk(chunk),
            Input::Tool { call, update } => self.tool_update(call, update),
            Input::Hook { hook, outcome } => self.hook_settled(hook, outcome),
            Input::Store { write, ok } => {
                let known = self.beside_stored(write, &ok)
                    || self.setting_stored(write, &ok)
                    || self.approval_stored(write, &ok)
                    || self.permits_stored(write, &ok)
                    || self.goal_stored(write, &ok);
                if !known {
                    self.stored(write, ok);
                }
            }
            Input::Reloaded { command, outcome } => self.reloaded(command, outcome),
            Input::Shell { command, outcome } => self.shell_update(command, outcome),
            Input::Refrozen { frozen, changes } => self.refrozen(*frozen, &changes),
            Input::DriverTools { tools, mcp } => {
                self.config.tools = tools;
                self.info.mcp = mcp;
                self.tools_changed();
                self.say_changed();
            }
            Input::Fault { detail } => self.fault(detail),
            Input::Restored { command, outcome } => self.restored(command, outcome),
            Input::Woken => {}
            Input::Job { job, update } => self.job_update(job, update),
            Input::Run { run, event } => self.run_says(run, *event),
            Input::Opened { command, other } => self.other_opened(command, other),
        }
    }

    fn write_body(&self, write: WriteId) -> Option<WriteBody<'_>> {
        if let Phase::Saving(_, save) = &self.phase
            && save.write == write
        {
            return Some(match &save.gate {
                Gate::Step => WriteBody::Prompt(&save.messages),
                Gate::End { .. } => WriteBody::Turn(&save.messages),
                Gate::Refusal { .. } => WriteBody::Refusal(&save.messages),
            });
        }
        if let Some(open) = self.beside.as_ref().filter(|open| open.write == write) {
            return Some(WriteBody::Beside(&open.messages));
        }
        if let Some(goal) = self.goal_write(write) {
            return Some(WriteBody::Goal(goal));
        }
        let mut approving = self.approving.iter();
        if let Some((_, source)) = approving.find(|(waits, _)| *waits == write) {
            return Some(WriteBody::Approval(source));
        }
        let mut permitting = self.permitting.iter();
        if let Some((_, updates)) = permitting.find(|(waits, _)| *waits == write) {
            return Some(WriteBody::Permissions(updates));
        }
        self.owed.iter().find_map(|owed| match &owed.what {
            commands::OwedFor::Setting {
                write: waits,
                setting,
            } if *waits == write => Some(WriteBody::Setting(setting)),
            commands::OwedFor::Setting { .. }
            | commands::OwedFor::Admission
            | commands::OwedFor::Reload
            | commands::OwedFor::Rewind { .. }
            | commands::OwedFor::Goal(_)
            | commands::OwedFor::Run(_)
            | commands::OwedFor::Session
            | commands::OwedFor::Barrier => None,
        })
    }

    /// What a live request is made of.
    fn sent(&self, request: RequestId) -> Option<(&Sent, &[Arc<Message>])> {
        if let Phase::Compacting(open) = &self.phase {
            return (open.request == request).then_some((&open.sent, &open.messages));
        }
        let attempt = self.phase.attempt().filter(|one| one.request == request)?;
        let messages = self.history.get(..attempt.sent.messages)?;
        Some((&attempt.sent, messages))
    }

    fn call_body(&self, call: CallId) -> Option<EffectBody<'_>> {
        let (name, input) = self.call_with_input(call)?;
        Some(EffectBody::Tool { call, name, input })
    }

    /// The name and the arguments of a call of the open batch.
    fn call_with_input(&self, call: CallId) -> Option<(&str, &RawJson)> {
        let tool = self.phase.batch()?.get(call)?;
        match &tool.input {
            ToolInput::Object(input) => Some((&tool.name, input)),
            ToolInput::Unparsed(_) => None,
        }
    }
}

impl Agent for Session {
    fn handle(&mut self, input: Input<'_>, now: Now) -> Result<(), Misuse> {
        if now.mono_us < self.now.mono_us {
            return Err(Misuse::TimeWentBack);
        }
        if input.is_bulk() && self.out.bytes() > self.config.limits.hard_bytes {
            return Err(Misuse::OverHardLimit);
        }
        self.effects.look(&input)?;
        self.now = now;
        // Late timers come first, and may stop the very effect that the input is about (S-02).
        self.fire_late();
        self.take(input)
    }

    fn poll_output(&mut self) -> Option<Output<'_>> {
        self.out.poll()
    }

    fn poll_timeout(&self) -> Option<Due> {
        if !self.out.is_empty() {
            return Some(Due {
                at_us: self.now.mono_us,
                why: "output",
            });
        }
        self.first_timer().map(Timer::due)
    }

    fn wants_input(&self) -> bool {
        self.out.bytes() <= self.config.limits.control_bytes
    }

    fn wants_bulk(&self) -> bool {
        self.out.bytes() <= self.config.limits.soft_bytes
    }

    fn body(&self, run: RunId, effect: &Effect) -> Option<EffectBody<'_>> {
        if run != self.config.run {
            return None;
        }
        match effect {
            Effect::StartModel(request) => {
                let (sent, messages) = self.sent(*request)?;
                Some(EffectBody::Model(ModelRequest {
                    model: &sent.model.model,
                    system: self.config.system.as_deref(),
                    messages,
                    tools: &sent.tools,
                    max_output: sent.max_output,
                    thinking: sent.thinking.as_deref(),
                    thinking_budget: sent.thinking_budget,
                }))
            }
            Effect::RunTool { call } => self.call_body(*call),
            Effect::Snapshot { call, .. } => {
                let (name, input) = self.call_with_input(*call)?;
                Some(EffectBody::Snapshot {
                    call: *call,
                    name,
                    input,
                    at: self.newest_message(),
                })
            }
            Effect::Restore(command) => self.restore_body(*command),
            Effect::OpenSession(command) => self.open_body(*command),
            Effect::RunHook { hook } => {
                let run = self.hooks.get(hook)?;
                let facts = self.hook_facts(run.owner);
                Some(EffectBody::Hook {
                    key: &run.key,
                    point: run.owner.point(),
                    tool: facts.call().and_then(|call| self.call_with_input(call)),
                    facts,
                })
            }
            Effect::Store(write) => self.write_body(*write).map(EffectBody::Write),
            Effect::RunShell(command) => {
                let shell = self.shells.get(command)?;
                Some(EffectBody::Shell {
                    command: &shell.line,
                })
            }
            Effect::StopModel(_)
            | Effect::StopTool(_)
            | Effect::DetachTool(_)
            | Effect::Allow { .. }
            | Effect::StopHook(_)
            | Effect::StartRun { .. }
            | Effect::StopRun(_)
            | Effect::CallRun(..)
            | Effect::StopShell(_)
            | Effect::StopJob(_)
            | Effect::Reload(_) => None,
        }
    }
}

fn failure(kind: FailureKind, text: &str) -> Failure {
    Failure {
        kind,
        status: None,
        retryable: false,
        text: text.into(),
    }
}

/// A history in which every call has one result, in call order, directly behind its message: results that lie
/// elsewhere are taken there, missing ones made, those of no call left out.
fn paired(history: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let mut results: BTreeMap<CallId, Arc<Message>> = BTreeMap::new();
    let mut others = Vec::with_capacity(history.len());
    for message in history {
        if let Role::Tool { call, .. } = &message.role {
            results.insert(*call, message);
        } else {
            others.push(message);
        }
    }
    let mut whole = Vec::with_capacity(others.len() + results.len());
    for message in others {
        whole.push(Arc::clone(&message));
        for block in &message.content {
            if let Block::ToolUse { call, name, .. } = block.as_ref() {
                whole.push(
                    results
                        .remove(call)
                        .unwrap_or_else(|| lost_result(*call, name, message.at_ms)),
                );
            }
        }
    }
    whole
}

/// The result of a call whose own one isn't known any more.
fn lost_result(call: CallId, name: &Text, at_ms: u64) -> Arc<Message> {
    Arc::new(Message {
        id: MessageId::of_result(call),
        role: Role::Tool {
            call,
            name: name.clone(),
            error: true,
        },
        content: Vec::from([Arc::new(Block::Text(
            "the result of this call was lost".into(),
        ))]),
        origin: Origin::History,
        prompt: None,
        about: Some(call),
        at_ms,
        details: None,
    })
}
