//! Operations that the host asks for, and their answers.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::blocks::{keep, ours};
use super::turn::Stopped;
use super::{Face, Pending, outside::Outside};
use crate::json::Raw;
use crate::protocol::Outbox;
use crate::protocol::agentx::neutral::approvals;
use crate::protocol::agentx::policy::{
    HookAndMcp, InitializeFields, InterruptPayload, LiveSetters, RecordForm, SecondInitialize,
};
use crate::protocol::agentx::wire::{
    AgentLine, Answer as Payload, Any, ControlRequest, Initialize, LifecycleState, Maybe,
    MessageCancelled, ModeSet, ModelSet, Operation, Response, RewindFiles, StillQueued, Tag,
};
use crate::protocol::agentx::{Agentx, AgentxAsk};
use crate::protocol::wire::Hole;
use crate::vocab::*;

/// A request of the host's that must be answered. It is given up by answering it.
#[derive(Debug)]
#[must_use]
pub(super) struct Ticket {
    /// The id as JSON, whatever it is.
    id: Option<String>,
}

impl Ticket {
    fn new(id: &Tag<'_>) -> Self {
        let mut json = Vec::new();
        id.put(&mut json);
        Ticket {
            id: (!json.is_empty()).then(|| String::from_utf8(json).unwrap_or_default()),
        }
    }

    fn tag(&self) -> Tag<'_> {
        self.id
            .as_deref()
            .map_or(Tag::Absent, |id| Tag::Other(Raw::trusted(id)))
    }
}

/// A withdrawal that waits for the end of its prompt.
#[derive(Debug)]
pub(super) struct Withdrawing {
    prompt: PromptId,
    ticket: Ticket,
    uuid: Text,
}

impl Face {
    /// Success without a payload.
    pub(super) fn done(&mut self, ticket: &Ticket, out: &mut Outbox<Agentx>) {
        let line = AgentLine::from(Response::success(ticket.tag()));
        self.say_line(&line, out);
    }

    /// Success with a payload.
    pub(super) fn give(
        &mut self,
        ticket: &Ticket,
        payload: &Payload<'_>,
        out: &mut Outbox<Agentx>,
    ) {
        self.printer
            .line(out, |bytes| payload.encode(&ticket.tag(), bytes));
    }

    /// Failure.
    pub(super) fn fail(
        &mut self,
        ticket: &Ticket,
        error: &str,
        code: Option<&'static str>,
        out: &mut Outbox<Agentx>,
    ) {
        let mut response = Response::failure(ticket.tag(), error);
        if self.config.policy.record_form == RecordForm::Provider {
            response.error_code = code.map(Into::into);
        }
        let line = AgentLine::from(response);
        self.say_line(&line, out);
    }

    /// Failure, for the agent's own reason.
    fn refuse(&mut self, ticket: &Ticket, why: &Refusal, out: &mut Outbox<Agentx>) {
        self.fail(ticket, &refusal(why), None, out);
    }

    /// An operation that isn't known here.
    pub(super) fn unsupported(
        &mut self,
        ticket: &Ticket,
        subtype: &Tag<'_>,
        out: &mut Outbox<Agentx>,
    ) {
        let error = if self.config.policy.record_form == RecordForm::Provider {
            format!("Unsupported control request subtype: {}", subtype.shown())
        } else {
            format!("unsupported control request {:?}", subtype.shown())
        };
        self.fail(ticket, &error, Some("unsupported_request"), out);
    }

    /// A command of the agent, and what its answer is for.
    pub(super) fn call(&mut self, command: Command, pending: Pending, out: &mut Outbox<Agentx>) {
        let id = out.call(command);
        self.pending.insert(id, pending);
    }

    /// A request of the host.
    pub(super) fn request(&mut self, request: &ControlRequest<'_>, out: &mut Outbox<Agentx>) {
        let ticket = Ticket::new(&request.request_id);
        let subtype = request.subtype();
        if request.request.get().is_none_or(Raw::is_null) {
            return self.fail(&ticket, "a control request needs a request", None, out);
        }
        let policy = self.config.policy;
        let full = policy.hook_and_mcp_controls == HookAndMcp::Implemented;
        let live = policy.live_setters == LiveSetters::Implemented;
        match subtype.name() {
            Some("set_model") if !live => {
                return self.fail(&ticket, MODEL_FIXED, None, out);
            }
            Some("set_permission_mode") if !live => {
                return self.fail(&ticket, MODE_FIXED, None, out);
            }
            Some("set_max_thinking_tokens") if !live => {
                return self.fail(&ticket, THINKING_FIXED, None, out);
            }
            Some(
                "initialize"
                | "interrupt"
                | "get_context_usage"
                | "mcp_status"
                | "set_model"
                | "set_permission_mode"
                | "set_max_thinking_tokens",
            ) => {}
            Some("can_use_tool" | "hook_callback" | "elicitation" | "ask_user_question")
                if full =>
            {
                let error = format!("{} is asked by the agent, not by the host", subtype.shown());
                return self.fail(&ticket, &error, Some("unsupported_request"), out);
            }
            Some(_) if full => {}
            Some(_) | None => return self.unsupported(&ticket, &subtype, out),
        }
        match request.operation() {
            Ok(operation) => self.operate(ticket, &subtype, &operation, request.request, out),
            Err(error) => {
                let error = format!("Invalid {} request: {error}", subtype.shown());
                self.fail(&ticket, &error, Some("invalid_request"), out);
            }
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "the rest is the embedder's")]
    fn operate(
        &mut self,
        ticket: Ticket,
        subtype: &Tag<'_>,
        operation: &Operation<'_>,
        whole: Any<'_>,
        out: &mut Outbox<Agentx>,
    ) {
        let fields = match operation {
            Operation::Initialize(_)
                if self.config.policy.initialize_fields == InitializeFields::Accepted =>
            {
                false
            }
            // Any member beside the name is a field, a null one, too.
            Operation::Initialize(_)
            | Operation::Interrupt(_)
            | Operation::GetContextUsage(_)
            | Operation::McpStatus(_) => {
                self.config.policy.initialize_fields == InitializeFields::Refused
                    && has_fields(whole)
            }
            _ => false,
        };
        if fields {
            let error = format!("{} takes no fields", subtype.shown());
            return self.fail(&ticket, &error, None, out);
        }
        match operation {
            Operation::Initialize(fields) => self.initialize(&ticket, fields, whole, out),
            Operation::Interrupt(_) => {
                let cancel = Command::Cancel {
                    what: CancelWhat::Turn {
                        queue: QueueFate::Run,
                    },
                    why: CancelWhy::Host,
                };
                self.call(cancel, Pending::Interrupt(ticket), out);
            }
            Operation::GetContextUsage(_) => {
                self.call(Command::Barrier, Pending::Context(ticket), out);
            }
            Operation::McpStatus(_) => self.give_mcp_status(&ticket, out),
            Operation::SetModel(set) => {
                let model = match set.model.get() {
                    None => None,
                    Some(value) if value.is_null() => None,
                    Some(value) => match value.string() {
                        Some(model) => {
                            let mut aliases = self.config.aliases.iter();
                            let meant = aliases.find(|(alias, _)| **alias == *model);
                            Some(meant.map_or_else(|| Text::from(&*model), |(_, it)| it.clone()))
                        }
                        None => return self.fail(&ticket, "model must be a name", None, out),
                    },
                };
                let setting = Setting::Model(model.clone());
                self.call(Command::Set(setting), Pending::Model(ticket, model), out);
            }
            Operation::SetPermissionMode(set) => {
                let mode = set.mode.string();
                match mode.as_deref().and_then(approvals) {
                    Some(approvals) => {
                        let word = Text::from(mode.as_deref().unwrap_or_default());
                        let setting = Setting::Approvals(approvals);
                        self.call(Command::Set(setting), Pending::Mode(ticket, word), out);
                    }
                    None => self.fail(&ticket, MODES, Some("invalid_mode"), out),
                }
            }
            Operation::SetMaxThinkingTokens(set) => {
                let budget = match set.max_thinking_tokens.get() {
                    None => None,
                    Some(value) if value.is_null() => None,
                    Some(value) => match value.u64() {
                        Some(budget) => Some(budget),
                        None => {
                            let error = "max_thinking_tokens must be a number or null";
                            return self.fail(&ticket, error, None, out);
                        }
                    },
                };
                let setting = Setting::ThinkingBudget(budget);
                self.call(Command::Set(setting), Pending::Done(ticket), out);
            }
            Operation::RewindFiles(rewind) => self.rewind(ticket, rewind, out),
            Operation::CancelAsyncMessage(cancel) => {
                self.withdraw(ticket, &cancel.message_uuid, out);
            }
            Operation::StopTask(stop) => self.stop_task(ticket, &stop.task_id, out),
            Operation::ReloadPlugins(_) => {
                self.call(Command::Reload, Pending::Reload(ticket), out);
            }
            Operation::McpMessage(message) => {
                self.mcp_heard(message, out);
                let response = b"{\"jsonrpc\":\"2.0\",\"result\":{}}";
                let payload = Payload::McpAnswered(crate::protocol::agentx::wire::McpAnswered {
                    mcp_response: Any(Some(ours(response))),
                    ..Default::default()
                });
                self.give(&ticket, &payload, out);
            }
            Operation::McpSetServers(set) => {
                let (names, others) = super::mcp::hosted(set.servers);
                if core::mem::replace(&mut self.mcp.others, others) || others {
                    self.ask_control(ticket, subtype, Some(names), whole, out);
                } else {
                    self.set_mcp(&ticket, &names, None, out);
                }
            }
            _ => self.ask_control(ticket, subtype, None, whole, out),
        }
    }

    /// An operation that the embedder knows, or nobody. `servers`: those that the host runs, where it sets MCP servers.
    fn ask_control(
        &mut self,
        ticket: Ticket,
        subtype: &Tag<'_>,
        servers: Option<Vec<String>>,
        whole: Any<'_>,
        out: &mut Outbox<Agentx>,
    ) {
        let request = whole.get().unwrap_or(Raw::NULL);
        let ask = out.ask(AgentxAsk::Control {
            subtype: subtype.shown().into(),
            request: RawJson(request.as_str().into()),
        });
        let waits = match servers {
            Some(servers) => Outside::Servers(ticket, servers),
            None => Outside::Control(ticket, String::from(subtype.shown())),
        };
        self.outside.insert(ask, waits);
    }

    /// `initialize`
    fn initialize(
        &mut self,
        ticket: &Ticket,
        fields: &Initialize<'_>,
        whole: Any<'_>,
        out: &mut Outbox<Agentx>,
    ) {
        let policy = self.config.policy;
        let again = core::mem::replace(&mut self.initialized, true);
        if let (Maybe::Value(hooks), false) = (&fields.hooks, again) {
            self.offer_hooks(hooks, out);
        }
        let answer = self.initialized_json();
        let mut response = Response::success_with(ticket.tag(), ours(&answer));
        let pending = self.asks.pending();
        if policy.second_initialize == SecondInitialize::WithPending {
            response.pending_permission_requests = Any(Some(ours(&pending)));
        }
        let line = AgentLine::from(response);
        self.say_line(&line, out);
        drop(line);
        if again || policy.initialize_fields == InitializeFields::Refused {
            return;
        }
        let mut names = Vec::new();
        if let Maybe::Value(servers) = &fields.sdk_mcp_servers {
            names.extend(servers.iter().map(|name| String::from(&**name)));
        }
        self.start_mcp(&names, fields.sdk_mcp_server_manifests, out);
        if has_options(whole) {
            let mut json = Vec::new();
            whole.put(&mut json);
            let ask = out.ask(AgentxAsk::Options(keep(&json)));
            self.outside.insert(ask, Outside::Quiet);
        }
    }

    fn rewind(&mut self, ticket: Ticket, rewind: &RewindFiles<'_>, out: &mut Outbox<Agentx>) {
        match self.prompts.rewind_to(&rewind.user_message_id) {
            Some(to) => {
                let command = Command::Rewind {
                    to,
                    dry_run: rewind.dry_run == Some(true),
                };
                self.call(command, Pending::Rewind(ticket), out);
            }
            None => {
                self.fail(&ticket, NOT_KEPT, None, out);
            }
        }
    }

    fn withdraw(&mut self, ticket: Ticket, uuid: &str, out: &mut Outbox<Agentx>) {
        if self.drop_held_prompt(uuid, out) {
            return self.give_withdrawn(&ticket, true, uuid, out);
        }
        match self.prompts.waiting(uuid) {
            Some(prompt) => {
                let uuid = Text::from(uuid);
                self.call(
                    Command::Withdraw(prompt),
                    Pending::Withdraw(Withdrawing {
                        prompt,
                        ticket,
                        uuid,
                    }),
                    out,
                );
            }
            None => self.give_withdrawn(&ticket, false, uuid, out),
        }
    }

    fn give_withdrawn(
        &mut self,
        ticket: &Ticket,
        cancelled: bool,
        uuid: &str,
        out: &mut Outbox<Agentx>,
    ) {
        let payload = Payload::MessageCancelled(MessageCancelled {
            cancelled,
            message_uuid: cancelled.then(|| uuid.into()),
            ..MessageCancelled::default()
        });
        self.give(ticket, &payload, out);
    }

    /// A prompt has ended: a withdrawal may have waited for that.
    pub(super) fn withdrawn(&mut self, prompt: PromptId, out: &mut Outbox<Agentx>) {
        while let Some(at) = self
            .withdrawing
            .iter()
            .position(|held| held.prompt == prompt)
        {
            let held = self.withdrawing.remove(at);
            self.give_withdrawn(&held.ticket, true, &held.uuid, out);
        }
    }

    fn stop_task(&mut self, ticket: Ticket, task: &str, out: &mut Outbox<Agentx>) {
        let mut runs = self.mirror.runs().iter();
        let run = runs
            .find(|open| super::said::run_name(open.run) == task)
            .map(|open| open.run);
        let known = self.mirror.jobs().any(|job| &*job.id == task);
        let command = match run {
            Some(run) => Command::Cancel {
                what: CancelWhat::Run(run),
                why: CancelWhy::Host,
            },
            None if known => Command::Job(JobCommand::Stop {
                job: task.into(),
                generation: None,
            }),
            None => return self.give(&ticket, &Payload::Other(super::blocks::EMPTY), out),
        };
        self.call(command, Pending::Task(ticket), out);
    }

    /// The answer to a command of the agent.
    pub(super) fn replied(
        &mut self,
        command: CommandId,
        reply: &Result<Answer, Refusal>,
        out: &mut Outbox<Agentx>,
    ) {
        let Some(pending) = self.pending.remove(&command) else {
            return;
        };
        match (pending, reply) {
            (Pending::Quiet, _) => {}
            (Pending::Prompt(prompt), reply) => self.prompt_replied(prompt, reply, out),
            (Pending::Interrupt(ticket), reply) => {
                let queued = match reply {
                    Ok(Answer::Cancelling { hit, queued }) => {
                        if let (Hit::Turn(_), Some(turn)) = (hit, &mut self.turn) {
                            turn.stopped.get_or_insert(Stopped::Interrupted);
                        }
                        queued.as_slice()
                    }
                    Ok(_) | Err(_) => &[],
                };
                self.interrupted(&ticket, queued, out);
            }
            (Pending::Model(ticket, model), Ok(_)) => {
                let model = model.unwrap_or_else(|| self.default_model.clone());
                let payload = Payload::ModelSet(ModelSet {
                    model: (&*model).into(),
                    ..ModelSet::default()
                });
                self.give(&ticket, &payload, out);
            }
            (Pending::Mode(ticket, mode), Ok(_)) => {
                let payload = Payload::ModeSet(ModeSet {
                    mode: (&*mode).into(),
                    ..ModeSet::default()
                });
                self.give(&ticket, &payload, out);
            }
            (Pending::Done(ticket), Ok(_)) => self.done(&ticket, out),
            (Pending::Context(ticket), _) => self.give_context(&ticket, out),
            (Pending::Withdraw(held), Ok(Answer::Withdrawn(true))) => {
                if self.prompts.is_open(held.prompt) {
                    self.withdrawing.push(held);
                } else {
                    self.give_withdrawn(&held.ticket, true, &held.uuid, out);
                }
            }
            (Pending::Withdraw(held), _) => {
                self.give_withdrawn(&held.ticket, false, &held.uuid, out);
            }
            (Pending::Task(ticket), _) => {
                self.give(&ticket, &Payload::Other(super::blocks::EMPTY), out);
            }
            (Pending::Rewind(ticket), Ok(answer)) => self.give_rewound(&ticket, answer, out),
            (Pending::Rewind(ticket), Err(Refusal::Unsupported(_))) => {
                self.fail(&ticket, "File rewinding is not enabled.", None, out);
            }
            (Pending::Rewind(ticket), Err(Refusal::Unknown)) => {
                self.fail(&ticket, NOT_KEPT, None, out);
            }
            (Pending::Reload(ticket), Ok(_)) => self.give_plugins(&ticket, out),
            (
                Pending::Model(ticket, _)
                | Pending::Mode(ticket, _)
                | Pending::Done(ticket)
                | Pending::Rewind(ticket)
                | Pending::Reload(ticket),
                Err(why),
            ) => self.refuse(&ticket, why, out),
        }
    }

    fn interrupted(&mut self, ticket: &Ticket, queued: &[PromptId], out: &mut Outbox<Agentx>) {
        if self.config.policy.interrupt_payload == InterruptPayload::Nothing {
            return self.done(ticket, out);
        }
        let uuids: Vec<Text> = queued
            .iter()
            .filter_map(|prompt| self.prompts.uuid(*prompt).cloned())
            .collect();
        let payload = Payload::StillQueued(StillQueued {
            still_queued: uuids.iter().map(|uuid| (&**uuid).into()).collect(),
            ..StillQueued::default()
        });
        self.give(ticket, &payload, out);
    }

    /// The agent is gone: what is still owed is answered.
    pub(super) fn fail_pending(&mut self, out: &mut Outbox<Agentx>) {
        for (_, pending) in core::mem::take(&mut self.pending) {
            match pending {
                Pending::Quiet | Pending::Prompt(_) => {}
                Pending::Interrupt(ticket) => self.interrupted(&ticket, &[], out),
                Pending::Model(ticket, _)
                | Pending::Mode(ticket, _)
                | Pending::Done(ticket)
                | Pending::Context(ticket)
                | Pending::Task(ticket)
                | Pending::Rewind(ticket)
                | Pending::Reload(ticket) => self.refuse(&ticket, &Refusal::Closing, out),
                Pending::Withdraw(held) => {
                    self.give_withdrawn(&held.ticket, false, &held.uuid, out);
                }
            }
        }
        for held in core::mem::take(&mut self.withdrawing) {
            self.give_withdrawn(&held.ticket, true, &held.uuid, out);
        }
    }

    /// A prompt that waits for the host's servers is taken back.
    fn drop_held_prompt(&mut self, uuid: &str, out: &mut Outbox<Agentx>) -> bool {
        let Some(prompt) = self.prompts.prompt(uuid) else {
            return false;
        };
        let Some(at) = self.held_prompts.iter().position(|held| held.id == prompt) else {
            return false;
        };
        self.held_prompts.remove(at);
        if let Some(note) = self.prompts.ended(prompt) {
            self.lifecycle_of(note.uuid, LifecycleState::Cancelled, out);
        }
        true
    }
}

const NOT_KEPT: &str = "No such message, or files weren't kept for it";
const MODEL_FIXED: &str =
    "the provider and its model are fixed for this process; restart with --provider <id>";
const MODE_FIXED: &str = "the permission mode of a live session can't be changed; start a new session with --permission-mode";
const THINKING_FIXED: &str = "the reasoning effort that the provider declares is no thinking-token budget that could be changed";
const MODES: &str =
    "the permission mode must be one of acceptEdits, bypassPermissions, default, dontAsk, plan";

/// Whether an operation has members beside its name.
fn has_fields(request: Any<'_>) -> bool {
    let mut has = false;
    if let Some(request) = request.get() {
        request.each_member(|name, _| has |= name != "subtype");
    }
    has
}

/// Whether an `initialize` has members that only the embedder can make something of.
fn has_options(request: Any<'_>) -> bool {
    let mut has = false;
    if let Some(request) = request.get() {
        request.each_member(|name, value| {
            has |= !value.is_null()
                && !matches!(
                    name,
                    "subtype" | "hooks" | "sdkMcpServers" | "sdkMcpServerManifests"
                );
        });
    }
    has
}

/// Why an agent refused a command.
pub(super) fn refusal(why: &Refusal) -> String {
    match why {
        Refusal::Busy => "The session is busy".into(),
        Refusal::Empty => "There is nothing to send".into(),
        Refusal::Cancelled => "Cancelled before it was admitted".into(),
        Refusal::Untrusted(project) => format!("The project isn't trusted: {project}"),
        Refusal::Blocked { text, .. } => (&**text).into(),
        Refusal::Unknown => "No such thing".into(),
        Refusal::AlreadySettled => "Already settled".into(),
        Refusal::Closing => "The session is closing".into(),
        Refusal::Full => QUEUE_FULL.into(),
        Refusal::TooLarge => "The prompt is too large".into(),
        Refusal::Unsupported(what) => format!("Not available: {what}"),
        Refusal::Invalid(text) => (&**text).into(),
        Refusal::Failed(failure) => (&*failure.text).into(),
    }
}

/// Too much waits (WIRE-020).
pub(super) const QUEUE_FULL: &str = "the queue of prompts is full";
