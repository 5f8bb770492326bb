//! Requests to the host and who waits for their answers. Pure bookkeeping, in order of creation: it decides nothing
//! (WIRE-006 … 008).

use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use super::blocks::{self, raw};
use super::{Face, Pending, hooks};
use crate::json::{self, Raw, Str};
use crate::protocol::Outbox;
use crate::protocol::agentx::neutral::wire_update;
use crate::protocol::agentx::policy::{HookAndMcp, HostCancel, RecordForm};
use crate::protocol::agentx::wire::{
    AgentLine, Any, AskUserQuestion, CanUseTool, ControlCancel, ControlRequest, Elicitation,
    ElicitationAction, ElicitationMode, HostLine, NETWORK_TOOL, Operation, PermissionUpdate,
    QuestionAnswers, Response, SessionState, Tag,
};
use crate::protocol::agentx::{Agentx, AgentxAsk};
use crate::protocol::wire::Hole;
use crate::vocab::*;

/// Ids of calls whose requests were settled, and are still known (AX-P28); as many of the requests themselves.
const MOST_SETTLED: usize = 1_000;
/// What a call is told whose host is gone.
const CLOSED: &str = "Tool permission request failed: the stream of control requests is closed";

/// What a request asks.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// May this call run?
    Permission(AskId),
    /// Run this hook.
    Hook(AskId, HookPoint),
    /// A dialog: how its answer is read.
    Choice(AskId, Dialog),
    /// A message to an MCP server of the host.
    Mcp(super::mcp::Sent),
}

/// How the answer to a dialog is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialog {
    /// A form: its content is the answer.
    Form,
    /// One member of a form is.
    Member,
    /// A page: whether it was visited.
    Url,
    /// Questions: the first choice of the first one.
    Question,
    /// Questions: all answers.
    Questions,
}

/// A request that is open on the wire.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) request: String,
    tool_use: Option<String>,
    pub(super) kind: Kind,
    /// The whole request, for a host that asks what is open.
    line: Option<Vec<u8>>,
}

/// The requests.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    open: Vec<Waiter>,
    /// Requests that were settled, and the calls that they were about.
    requests: Last,
    calls: Last,
    /// Answers that were handed to the embedder.
    handled: Last,
    /// Permissions that the agent holds open.
    permissions: BTreeSet<AskId>,
}

/// The last ids of a kind.
#[derive(Debug, Default)]
struct Last {
    order: VecDeque<String>,
    known: BTreeSet<String>,
}

impl Last {
    /// Remembers an id. Known ones keep their place.
    fn add(&mut self, id: &str) {
        if self.known.insert(id.into()) {
            self.order.push_back(id.into());
        }
        if self.order.len() > MOST_SETTLED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    fn has(&self, id: &str) -> bool {
        self.known.contains(id)
    }
}

impl Waiters {
    pub(super) fn add(&mut self, request: String, tool_use: Option<String>, kind: Kind) {
        self.open.push(Waiter {
            request,
            tool_use,
            kind,
            line: None,
        });
    }

    /// A request whose answer says nothing: it is known, and nobody waits for it.
    pub(super) fn add_settled(&mut self, request: String, kind: Kind) {
        self.settle(&Waiter {
            request,
            tool_use: None,
            kind,
            line: None,
        });
    }

    /// Takes the waiter of a request, once.
    fn take(&mut self, request: &str) -> Option<Waiter> {
        let at = self.open.iter().position(|open| open.request == request)?;
        let waiter = self.open.remove(at);
        self.settle(&waiter);
        Some(waiter)
    }

    /// Takes the waiter of a question.
    fn take_ask(&mut self, ask: AskId) -> Option<Waiter> {
        let at = self
            .open
            .iter()
            .position(|open| open.kind.ask() == Some(ask))?;
        let waiter = self.open.remove(at);
        self.settle(&waiter);
        Some(waiter)
    }

    /// Takes a waiter by what it asks.
    pub(super) fn take_by(&mut self, fits: impl Fn(&Kind) -> bool) -> Option<Waiter> {
        let at = self.open.iter().position(|open| fits(&open.kind))?;
        let waiter = self.open.remove(at);
        self.settle(&waiter);
        Some(waiter)
    }

    fn settle(&mut self, waiter: &Waiter) {
        self.requests.add(&waiter.request);
        if let Some(call) = &waiter.tool_use {
            self.calls.add(call);
        }
    }

    /// Whether a permission is open.
    pub(super) fn asks_permission(&self) -> bool {
        !self.permissions.is_empty()
    }

    /// Permissions that are open, as whole requests.
    pub(super) fn pending(&self) -> Vec<u8> {
        let mut json = Vec::from(b"[");
        for line in self.open.iter().filter_map(|open| open.line.as_deref()) {
            if json.len() > 1 {
                json.push(b',');
            }
            json.extend_from_slice(line);
        }
        json.push(b']');
        json
    }
}

impl Kind {
    /// The question that waits; an MCP server that is greeted belongs to none.
    fn ask(&self) -> Option<AskId> {
        match self {
            Kind::Permission(ask) | Kind::Hook(ask, _) | Kind::Choice(ask, _) => Some(*ask),
            Kind::Mcp(sent) => sent.ask(),
        }
    }
}

impl Face {
    /// A question of the agent.
    pub(super) fn asked(&mut self, ask: AskId, body: &Ask, run: RunId, out: &mut Outbox<Agentx>) {
        if self.is_leaving() {
            return self.reply(ask, Err(ReplyFault::HostGone), out);
        }
        match body {
            Ask::Permission(permission) => self.ask_permission(ask, permission, run, out),
            Ask::Hook(hook) => self.ask_hook(ask, hook, out),
            Ask::Tool { call, name, input } => self.call_mcp(ask, *call, name, input, out),
            Ask::Choice(choice) => self.ask_choice(ask, choice, out),
            Ask::Uri { .. } => {
                let fault = ReplyFault::HostError("This host serves no URIs".into());
                self.reply(ask, Err(fault), out);
            }
        }
    }

    /// Answers a question.
    pub(super) fn reply(
        &mut self,
        ask: AskId,
        reply: Result<Reply, ReplyFault>,
        out: &mut Outbox<Agentx>,
    ) {
        let command = out.call(Command::Reply { ask, reply });
        self.pending.insert(command, Pending::Quiet);
    }

    fn ask_permission(
        &mut self,
        ask: AskId,
        permission: &PermissionAsk,
        run: RunId,
        out: &mut Outbox<Agentx>,
    ) {
        if !self.config.asks {
            if let Some(call) = permission.call {
                self.denied_unasked.insert(call);
            }
            let message = alloc::format!(
                "Permission to use {} is needed, and there is nobody who could give it",
                permission.tool
            );
            let deny = Reply::Deny {
                message: Some(message.as_str().into()),
                interrupt: false,
            };
            return self.reply(ask, Ok(deny), out);
        }
        let network = match &permission.reason {
            AskReason::Network { host } => {
                let mut json = b"{\"host\":".to_vec();
                json::write_str(&mut json, host);
                json.push(b'}');
                Some(json)
            }
            AskReason::Gate | AskReason::UnapprovedSource { .. } | AskReason::Other(_) => None,
        };
        let open = permission.call.and_then(|call| self.mirror.call(call));
        let input = open.and_then(|open| open.input.clone());
        if let Some(ToolInput::Object(json)) = &input
            && !self.printer.is_clear(json)
        {
            let fault = ReplyFault::Malformed(AMBIGUOUS.into());
            return self.reply(ask, Err(fault), out);
        }
        let tool_use = match permission.call {
            // A connection has an id of its own: the call has been asked about before (AX-P31).
            Some(call) if network.is_none() => {
                String::from(blocks::name_call(call, None, &mut self.calls))
            }
            Some(_) | None => self.printer.message_id().replacen("msg_", "toolu_", 1),
        };
        self.begin(out);
        if self.asks.permissions.is_empty() {
            self.state(SessionState::RequiresAction, out);
        }
        self.asks.permissions.insert(ask);
        let request_id = self.printer.request_id();
        let rich = self.config.policy.record_form == RecordForm::Provider;
        let reason = match &permission.reason {
            AskReason::Gate | AskReason::Network { .. } => None,
            AskReason::UnapprovedSource { path, .. } => Some(alloc::format!(
                "the code at {path} hasn't been approved as it is now"
            )),
            AskReason::Other(text) => Some(String::from(&**text)),
        };
        let description = match &permission.reason {
            AskReason::Network { host } => host.clone(),
            _ if permission.summary.is_empty() => permission.tool.clone(),
            AskReason::Gate | AskReason::UnapprovedSource { .. } | AskReason::Other(_) => {
                permission.summary.clone()
            }
        };
        let suggestions: Vec<Vec<u8>> = permission
            .suggestions
            .iter()
            .filter_map(wire_update)
            .collect();
        let suggested: Option<Vec<_>> = (rich && !suggestions.is_empty()).then(|| {
            suggestions
                .iter()
                .map(|update| {
                    let update = blocks::ours(update);
                    update.decode::<PermissionUpdate<'_>>().map_or(
                        crate::protocol::agentx::wire::Kept::Other(update),
                        crate::protocol::agentx::wire::Kept::Known,
                    )
                })
                .collect()
        });
        let agent = (run != RunId::MAIN).then(|| super::said::run_name(run));
        let operation = Operation::from(CanUseTool {
            tool_name: if network.is_some() {
                NETWORK_TOOL.into()
            } else {
                (&*permission.tool).into()
            },
            display_name: rich.then(|| (&*permission.tool).into()),
            input: match &network {
                Some(json) => blocks::ours(json),
                None => blocks::arguments(input.as_ref(), &self.printer),
            },
            description: Some((&*description).into()),
            permission_suggestions: suggested,
            decision_reason: reason.as_deref().map(Into::into),
            tool_use_id: tool_use.as_str().into(),
            agent_id: agent.as_deref().map(Into::into),
            ..CanUseTool::default()
        });
        let mut line = Vec::new();
        ControlRequest::encode_with(&request_id, &operation, &mut line);
        self.asks.open.push(Waiter {
            request: request_id,
            tool_use: Some(tool_use),
            kind: Kind::Permission(ask),
            line: Some(line.clone()),
        });
        self.printer
            .line(out, |bytes| bytes.extend_from_slice(&line));
    }

    fn ask_hook(&mut self, ask: AskId, hook: &HookAsk, out: &mut Outbox<Agentx>) {
        let Some((event, id)) = hooks::callback(hook) else {
            // Offered for another event of the same point.
            return self.reply(ask, Ok(Reply::Hook(HookReply::pass().into())), out);
        };
        let call = hook.facts.call();
        let tool_use =
            call.map(|call| String::from(blocks::name_call(call, None, &mut self.calls)));
        let input = self.hook_input(&event, hook, tool_use.as_deref());
        if hook.point != HookPoint::PromptSubmit {
            self.begin(out);
        }
        let request_id = self.printer.request_id();
        // The input is written by this side, whatever stands in it.
        let mut line = Vec::new();
        line.extend_from_slice(b"{\"type\":\"control_request\",\"request_id\":");
        json::write_str(&mut line, &request_id);
        line.extend_from_slice(b",\"request\":{\"subtype\":\"hook_callback\",\"callback_id\":");
        json::write_str(&mut line, id);
        line.extend_from_slice(b",\"input\":");
        line.extend_from_slice(&input);
        if let Some(tool_use) = &tool_use {
            line.extend_from_slice(b",\"tool_use_id\":");
            json::write_str(&mut line, tool_use);
        }
        line.extend_from_slice(b"}}");
        crate::protocol::agentx::wire::escape_separators(&mut line, 0);
        self.asks.add(request_id, None, Kind::Hook(ask, hook.point));
        self.printer
            .line(out, |bytes| bytes.extend_from_slice(&line));
    }

    fn ask_choice(&mut self, ask: AskId, choice: &ChoiceAsk, out: &mut Outbox<Agentx>) {
        if let ChoiceKind::Form(schema) = &choice.kind
            && !self.printer.is_clear(schema)
        {
            return self.reply(ask, Err(ReplyFault::Malformed(AMBIGUOUS.into())), out);
        }
        self.begin(out);
        let request_id = self.printer.request_id();
        let elicits = self.config.policy.hook_and_mcp_controls == HookAndMcp::Implemented;
        let (dialog, schema) = form(choice, elicits);
        let schema = blocks::ours(&schema);
        let operation = if elicits {
            let url = match &choice.kind {
                ChoiceKind::Url(url) => Some(url),
                ChoiceKind::Select(_)
                | ChoiceKind::Confirm
                | ChoiceKind::Input { .. }
                | ChoiceKind::Editor { .. }
                | ChoiceKind::Form(_) => None,
            };
            Operation::from(Elicitation {
                mcp_server_name: "agent".into(),
                message: (&*choice.title).into(),
                mode: Some(if url.is_some() {
                    ElicitationMode::Url
                } else {
                    ElicitationMode::Form
                }),
                url: url.map(|url| Str::from(&**url)),
                requested_schema: if url.is_some() {
                    Any::ABSENT
                } else {
                    Any(Some(schema))
                },
                ..Elicitation::default()
            })
        } else {
            Operation::from(AskUserQuestion {
                questions: schema,
                ..AskUserQuestion::default()
            })
        };
        let mut line = Vec::new();
        ControlRequest::encode_with(&request_id, &operation, &mut line);
        self.asks.add(request_id, None, Kind::Choice(ask, dialog));
        self.printer
            .line(out, |bytes| bytes.extend_from_slice(&line));
    }

    /// A question is closed: one that the host still works on is withdrawn there.
    pub(super) fn ask_closed(&mut self, ask: AskId, how: &AskClose, out: &mut Outbox<Agentx>) {
        let mut cancelled = false;
        if let Some(waiter) = self.asks.take_ask(ask) {
            // A host that took the question back left no waiter: the turn goes on.
            cancelled = *how == AskClose::Cancelled;
            let told = match how {
                AskClose::Superseded | AskClose::HostGone => false,
                AskClose::Answered { .. }
                | AskClose::TimedOut
                | AskClose::Withdrawn
                | AskClose::Cancelled
                | AskClose::Fault(_) => !self.is_leaving(),
            };
            if told {
                if let Kind::Mcp(sent) = &waiter.kind {
                    self.mcp_cancelled(sent, out);
                }
                let line = ControlCancel {
                    request_id: waiter.request.as_str().into(),
                    ..ControlCancel::default()
                };
                self.printer.say(line, out);
            }
        }
        if self.asks.permissions.remove(&ask) && self.asks.permissions.is_empty() && !cancelled {
            self.state(SessionState::Running, out);
        }
    }

    /// The host's input is over: what is still open is rejected, in order of creation (WIRE-EOF-001).
    pub(super) fn reject_all(&mut self, out: &mut Outbox<Agentx>) {
        for waiter in core::mem::take(&mut self.asks.open) {
            self.asks.settle(&waiter);
            match waiter.kind {
                Kind::Permission(ask) | Kind::Hook(ask, _) | Kind::Choice(ask, _) => {
                    self.reply(ask, Err(ReplyFault::HostGone), out);
                }
                Kind::Mcp(sent) => {
                    if let Some(ask) = sent.ask() {
                        self.reply(ask, Err(ReplyFault::HostError(CLOSED.into())), out);
                    }
                }
            }
        }
    }

    /// The host takes a request of the agent's back.
    pub(super) fn host_cancelled(&mut self, request: &Tag<'_>, out: &mut Outbox<Agentx>) {
        let Some(request) = request.name() else {
            return;
        };
        let keeps = self.config.policy.host_cancel == HostCancel::IgnoredForPermissions;
        let kept = self
            .asks
            .open
            .iter()
            .any(|open| open.request == request && matches!(open.kind, Kind::Permission(_)));
        if keeps && kept {
            return;
        }
        let Some(waiter) = self.asks.take(request) else {
            return;
        };
        match waiter.kind {
            Kind::Permission(ask) | Kind::Hook(ask, _) | Kind::Choice(ask, _) => {
                self.reply(ask, Err(ReplyFault::HostCancelled), out);
            }
            Kind::Mcp(sent) => {
                self.mcp_failed(&sent, "the host cancelled the request", out);
            }
        }
    }

    /// An answer of the host.
    pub(super) fn answered(
        &mut self,
        line: &HostLine<'_>,
        response: &Response<'_>,
        out: &mut Outbox<Agentx>,
    ) {
        let Some(waiter) = response
            .request_id
            .name()
            .and_then(|request| self.asks.take(request))
        else {
            return self.orphan(line, response, out);
        };
        if self.config.replay {
            self.printer.line(out, |bytes| line.encode(bytes));
        }
        let failed = response.is_error();
        let error = response.error_text().unwrap_or("the host gave no reason");
        match waiter.kind {
            Kind::Permission(ask) => {
                let reply = self.decision(response);
                self.reply(ask, reply, out);
            }
            Kind::Hook(ask, point) => {
                let reply = if failed {
                    Err(ReplyFault::HostError(error.into()))
                } else {
                    hooks::reply(point, response.response)
                };
                self.reply(ask, reply, out);
            }
            Kind::Choice(ask, dialog) => {
                let choice = if failed {
                    None
                } else {
                    chosen(dialog, response.response)
                };
                self.reply(ask, Ok(Reply::Choice(choice)), out);
            }
            Kind::Mcp(sent) => {
                if failed {
                    self.mcp_failed(&sent, error, out);
                } else {
                    self.mcp_answered(&sent, response.response, out);
                }
            }
        }
    }

    /// An answer that nobody waits for.
    fn orphan(&mut self, line: &HostLine<'_>, response: &Response<'_>, out: &mut Outbox<Agentx>) {
        let payload = response.response.get();
        let call = payload
            .and_then(|payload| payload.get_last("toolUseID"))
            .and_then(Raw::string);
        let request = response.request_id.name();
        let is_late = call
            .as_deref()
            .is_some_and(|call| self.asks.calls.has(call))
            || request.is_some_and(|request| self.asks.requests.has(request));
        let Some(id) = call.as_deref().or(request).filter(|_| !is_late) else {
            return;
        };
        if !self.config.orphans || self.asks.handled.has(id) {
            return;
        }
        self.asks.handled.add(id);
        let mut json = Vec::new();
        line.encode(&mut json);
        let ask = out.ask(AgentxAsk::Orphan(blocks::keep(&json)));
        self.outside.insert(ask, super::outside::Outside::Quiet);
    }
}

/// Why a request isn't sent (AX-S20).
pub(super) const AMBIGUOUS: &str = "the input holds a member twice";

/// How a dialog is asked: how its answer is read, and its schema or its questions as JSON.
fn form(choice: &ChoiceAsk, elicits: bool) -> (Dialog, Vec<u8>) {
    let mut json = Vec::new();
    let one = |json: &mut Vec<u8>, kind: &[u8]| {
        json.extend_from_slice(b"{\"type\":\"object\",\"properties\":{\"answer\":");
        json.extend_from_slice(kind);
        json.extend_from_slice(b"},\"required\":[\"answer\"]}");
    };
    match (&choice.kind, elicits) {
        (ChoiceKind::Form(schema), true) => {
            json.extend_from_slice(schema.as_str().as_bytes());
            (Dialog::Form, json)
        }
        (ChoiceKind::Form(form), false) => {
            let form = raw(form);
            let questions = form.get("questions").unwrap_or(form);
            questions.put(&mut json);
            (Dialog::Questions, json)
        }
        (ChoiceKind::Url(_), true) => (Dialog::Url, json),
        (ChoiceKind::Select(options), true) => {
            let mut kind = b"{\"type\":\"string\",\"enum\":[".to_vec();
            list(&mut kind, options, |json, option| {
                json::write_str(json, option);
            });
            kind.extend_from_slice(b"]}");
            one(&mut json, &kind);
            (Dialog::Member, json)
        }
        (ChoiceKind::Confirm, true) => {
            one(&mut json, b"{\"type\":\"boolean\"}");
            (Dialog::Member, json)
        }
        (ChoiceKind::Input { .. } | ChoiceKind::Editor { .. }, true) => {
            one(&mut json, b"{\"type\":\"string\"}");
            (Dialog::Member, json)
        }
        (kind, false) => {
            let yes_no = [Text::from("true"), Text::from("false")];
            let options: &[Text] = match kind {
                ChoiceKind::Select(options) => options,
                ChoiceKind::Confirm => &yes_no,
                ChoiceKind::Input { .. }
                | ChoiceKind::Editor { .. }
                | ChoiceKind::Form(_)
                | ChoiceKind::Url(_) => &[],
            };
            json.extend_from_slice(b"[{\"question\":");
            json::write_str(&mut json, &choice.title);
            json.extend_from_slice(b",\"options\":[");
            list(&mut json, options, |json, option| {
                json.extend_from_slice(b"{\"label\":");
                json::write_str(json, option);
                json.push(b'}');
            });
            json.extend_from_slice(b"]}]");
            (Dialog::Question, json)
        }
    }
}

fn list(json: &mut Vec<u8>, options: &[Text], write: impl Fn(&mut Vec<u8>, &str)) {
    for (index, option) in options.iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        write(json, option);
    }
}

/// What a person chose; `None`: nothing, or nothing that can be read.
fn chosen(dialog: Dialog, payload: Any<'_>) -> Option<Text> {
    let payload = payload.get()?;
    match dialog {
        Dialog::Question | Dialog::Questions => {
            let answers: QuestionAnswers<'_> = payload.decode().ok()?;
            if dialog == Dialog::Questions {
                return Some(payload.as_str().into());
            }
            let (_, answers) = answers.0.first()?;
            Some((&**answers.first()?).into())
        }
        Dialog::Form | Dialog::Member | Dialog::Url => {
            let answer: crate::protocol::agentx::wire::ElicitationAnswer<'_> =
                payload.decode().ok()?;
            if answer.action != ElicitationAction::Accept {
                return None;
            }
            match dialog {
                Dialog::Url => Some("true".into()),
                Dialog::Form => Some(answer.content.get()?.as_str().into()),
                Dialog::Member | Dialog::Question | Dialog::Questions => {
                    let value = answer.content.get()?.get("answer")?;
                    Some(match value.string() {
                        Some(text) => (&*text).into(),
                        None => value.as_str().into(),
                    })
                }
            }
        }
    }
}

impl Face {
    /// Whether the line is one that only this side writes.
    pub(super) fn say_request(
        &mut self,
        request_id: &str,
        operation: &Operation<'_>,
        out: &mut Outbox<Agentx>,
    ) {
        self.printer.line(out, |bytes| {
            ControlRequest::encode_with(request_id, operation, bytes);
        });
    }

    /// Answers a host's request with this payload.
    pub(super) fn say_line(&mut self, line: &AgentLine<'_>, out: &mut Outbox<Agentx>) {
        self.printer.line(out, |bytes| line.encode(bytes));
    }
}
