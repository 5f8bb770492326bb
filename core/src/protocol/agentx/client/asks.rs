//! Questions of the agent: permissions, hooks of the host's, calls of the host's tools, and forms. An answer closes its
//! question here at once: the agent has no word for having got it.

use alloc::string::String;
use alloc::vec::Vec;

use super::calls::Calls;
use super::convert::ours;
use super::flow::Cut;
use super::{Out, hooks, mcp};
use crate::json::{self, Kind as JsonKind, Raw, ScanRules};
use crate::protocol::agentx::neutral::wire_update;
use crate::protocol::agentx::wire::{HostLine, Response};
use crate::protocol::wire::Hole;
use crate::vocab::*;

/// Open questions. An agent that never takes one back is found out here.
const MOST_OPEN: usize = 4_096;
/// What is told of a call that was denied without a reason.
const DENIED: &str = "The host denied this call";

/// The open questions.
#[derive(Debug, Default)]
pub(super) struct Asks {
    open: Vec<OpenAsk>,
    last: Option<AskId>,
    /// The agent's input is closed: it answers its questions by itself.
    pub leaving: bool,
    /// An answer may change the permissions.
    pub updates: bool,
}

/// A question, as it stands on the wire.
#[derive(Debug)]
pub(super) struct OpenAsk {
    pub ask: AskId,
    /// The request's id.
    pub wire: String,
    pub run: RunId,
    pub call: Option<CallId>,
    pub kind: Kind,
    pub body: Ask,
}

/// Which operation asks.
#[derive(Debug)]
pub(super) enum Kind {
    /// `can_use_tool`, about this call, with this input.
    Permission { tool_use: String, input: RawJson },
    /// `hook_callback`, at this event.
    Hook { event: String },
    /// `mcp_message` with a call of this JSON-RPC id.
    Tool { rpc: RawJson },
    /// `elicitation`
    Elicitation(Form),
    /// `ask_user_question`; the text of the only question, if a text answers it.
    Questions(Option<String>),
}

/// What the answer to a form is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Any object.
    Whole,
    /// An object of this one member: a text.
    Text(String),
    /// An object of this one member: yes or no.
    Bool(String),
    /// Nothing: a page was to be visited.
    Page,
}

impl OpenAsk {
    /// Whether it stays open when the call or the turn it was asked in is over.
    fn outlives(&self) -> bool {
        match self.kind {
            Kind::Permission { .. } | Kind::Tool { .. } => false,
            Kind::Hook { .. } => self.call.is_none(),
            Kind::Elicitation(_) | Kind::Questions(_) => true,
        }
    }
}

impl Asks {
    /// A question, unless one of its id is open already. `false`: it isn't asked, and stays unanswered.
    pub(super) fn open(&mut self, open: OpenAsk, calls: &mut Calls, out: &mut Out) -> bool {
        if self.open.iter().any(|other| other.wire == open.wire) {
            out.finding(alloc::format!(
                "request {:?} was made twice",
                super::calls::cut_id(&open.wire)
            ));
            return false;
        }
        if self.open.len() >= MOST_OPEN {
            out.finding("too many questions are open; this one can't be answered");
            return false;
        }
        if let (Some(call), Kind::Permission { .. }) = (open.call, &open.kind) {
            calls.ask(call);
        }
        self.put(open, Seen::Real, out);
        true
    }

    fn put(&mut self, mut open: OpenAsk, seen: Seen, out: &mut Out) {
        open.ask = out.ids.ask();
        self.last = Some(open.ask);
        let (ask, body) = (open.ask, open.body.clone());
        out.event(open.run, seen, What::Asked { ask, body });
        self.open.push(open);
    }

    fn find(&self, ask: AskId) -> Result<&OpenAsk, Refusal> {
        let open = self.open.iter().find(|open| open.ask == ask);
        open.ok_or(if ask.0 > 0 && self.last.is_some_and(|last| ask <= last) {
            Refusal::AlreadySettled
        } else {
            Refusal::Unknown
        })
    }

    /// The call of an open question.
    pub(super) fn call_of(&self, ask: AskId) -> Option<CallId> {
        self.find(ask).ok()?.call
    }

    /// The question of a call of the host's tool with this JSON-RPC id.
    pub(super) fn of_rpc(&self, id: Raw<'_>) -> Option<AskId> {
        let open = self
            .open
            .iter()
            .find(|open| matches!(&open.kind, Kind::Tool { rpc } if rpc.as_str() == id.as_str()));
        open.map(|open| open.ask)
    }

    /// Writes an answer. What it means for the question is to be handed to [`Asks::answered`].
    pub(super) fn write(
        &self,
        ask: AskId,
        reply: &Result<Reply, ReplyFault>,
        out: &mut Out,
    ) -> Result<Closed, Refusal> {
        let open = self.find(ask)?;
        let (payload, closed) = match (&open.kind, reply) {
            (Kind::Tool { rpc }, reply) => mcp::answer(rpc, reply)?,
            (_, Err(fault)) => {
                let text = fault_text(fault);
                let line = Response::failure(open.wire.as_str(), &*text);
                out.line(|bytes| HostLine::from(line).encode(bytes));
                return Ok(Closed::fault(fault, text));
            }
            (Kind::Permission { tool_use, input }, Ok(reply)) => {
                decision(reply, tool_use, input, self.updates)?
            }
            (Kind::Hook { event }, Ok(Reply::Hook(reply))) => {
                (hooks::output(event, reply), hooks::closed(open, reply))
            }
            (Kind::Elicitation(form), Ok(Reply::Choice(chosen))) => {
                (elicited(form, chosen.as_deref())?, Closed::by_host())
            }
            (Kind::Questions(_), Ok(Reply::Choice(None))) => {
                let line = Response::failure(open.wire.as_str(), "the questions were cancelled");
                out.line(|bytes| HostLine::from(line).encode(bytes));
                return Ok(Closed::by_host());
            }
            (Kind::Questions(one), Ok(Reply::Choice(Some(chosen)))) => {
                (answers(one.as_deref(), chosen)?, Closed::by_host())
            }
            (
                Kind::Hook { .. } | Kind::Elicitation(_) | Kind::Questions(_),
                Ok(
                    Reply::Allow { .. }
                    | Reply::Deny { .. }
                    | Reply::Hook(_)
                    | Reply::Tool { .. }
                    | Reply::Uri { .. }
                    | Reply::Choice(_),
                ),
            ) => return other_kind(),
        };
        answer(&open.wire, &payload, out);
        Ok(closed)
    }

    /// An answer was written: the question is closed.
    pub(super) fn answered(
        &mut self,
        ask: AskId,
        closed: Closed,
        calls: &mut Calls,
        out: &mut Out,
    ) {
        self.close(ask, closed, Seen::Inferred, calls, out);
    }

    fn close(&mut self, ask: AskId, closed: Closed, seen: Seen, calls: &mut Calls, out: &mut Out) {
        let Some(at) = self.open.iter().position(|open| open.ask == ask) else {
            return;
        };
        let open = self.open.remove(at);
        let how = closed.how;
        out.event(open.run, seen, What::AskClosed { ask, how });
        let Some(call) = open.call else { return };
        match open.kind {
            Kind::Permission { .. } => {
                calls.decide(call, closed.by, closed.refused, closed.input, out);
            }
            Kind::Hook { .. } => {
                if let Some(allow) = closed.hooked {
                    calls.hooked(call, closed.by, allow);
                }
            }
            Kind::Tool { .. } | Kind::Elicitation(_) | Kind::Questions(_) => {}
        }
    }

    /// The agent takes a question back. `by_hook`: a hook of the host's has just decided about the same call.
    pub(super) fn cancel(&mut self, wire: &str, calls: &mut Calls, stopped: bool, out: &mut Out) {
        let Some(open) = self.open.iter().find(|open| open.wire == wire) else {
            // It may have crossed the answer.
            return;
        };
        let ask = open.ask;
        let hook = open.call.and_then(|call| calls.verdict(call));
        let closed = match hook.filter(|_| !stopped) {
            // A hook was faster (WIRE-PERM-001).
            Some((by, allow)) => Closed {
                how: AskClose::Answered {
                    by: by.clone(),
                    allow: Some(allow),
                },
                refused: (!allow).then(|| ToolOutcome::Denied(by.clone())),
                by,
                input: None,
                hooked: None,
            },
            None => Closed::cancelled(),
        };
        self.close(ask, closed, Seen::Real, calls, out);
    }

    /// The agent doesn't want a call of the host's tool any more.
    pub(super) fn cancel_ask(&mut self, ask: AskId, calls: &mut Calls, out: &mut Out) {
        self.close(ask, Closed::cancelled(), Seen::Real, calls, out);
    }

    /// An interrupt was acknowledged: questions about calls are closed, if they weren't taken back before.
    pub(super) fn interrupted(&mut self, calls: &mut Calls, out: &mut Out) {
        while let Some(open) = self.open.iter().find(|open| !open.outlives()) {
            let ask = open.ask;
            self.close(ask, Closed::cancelled(), Seen::Inferred, calls, out);
        }
    }

    /// Closes the questions about one call, which is over.
    pub(super) fn close_call(&mut self, call: CallId, cut: &Cut, calls: &mut Calls, out: &mut Out) {
        while let Some(open) = self.open.iter().find(|open| open.call == Some(call)) {
            let ask = open.ask;
            self.cut(ask, cut, calls, out);
        }
    }

    /// Closes the questions about calls of a run: the step of all of them is over.
    pub(super) fn close_calls(&mut self, run: RunId, calls: &mut Calls, cut: &Cut, out: &mut Out) {
        let of_call = |open: &&OpenAsk| open.run == run && !open.outlives();
        while let Some(open) = self.open.iter().find(of_call) {
            let ask = open.ask;
            self.cut(ask, cut, calls, out);
        }
    }

    fn cut(&mut self, ask: AskId, cut: &Cut, calls: &mut Calls, out: &mut Out) {
        let hook = self
            .find(ask)
            .is_ok_and(|open| matches!(open.kind, Kind::Hook { .. }));
        let (how, by) = match cut {
            Cut::Gone(failure) => {
                let why = failure.text.clone();
                (AskClose::Fault(why.clone()), Decider::Fault(why))
            }
            // A hook that lost; the agent says nothing of it.
            Cut::Over | Cut::Failed(_) if hook => (AskClose::Superseded, Decider::Cancel),
            Cut::Over | Cut::Failed(_) if self.leaving => (AskClose::HostGone, Decider::Closed),
            Cut::Over | Cut::Failed(_) | Cut::Cancelled => (AskClose::Cancelled, Decider::Cancel),
        };
        let refused = Some(if by == Decider::Cancel {
            ToolOutcome::Cancelled
        } else {
            ToolOutcome::Denied(by.clone())
        });
        let closed = Closed {
            how,
            by,
            refused,
            input: None,
            hooked: None,
        };
        self.close(ask, closed, Seen::Inferred, calls, out);
    }

    /// The turn is over: its questions are closed. Gives those that aren't the turn's on the wire, and are asked again.
    pub(super) fn turn_over(
        &mut self,
        since: AskId,
        cut: &Cut,
        calls: &mut Calls,
        out: &mut Out,
    ) -> Vec<OpenAsk> {
        let mut again = Vec::new();
        let of_turn = |open: &OpenAsk| open.ask > since && open.run == RunId::MAIN;
        while let Some(at) = self.open.iter().position(of_turn) {
            let Some(open) = self.open.get(at) else { break };
            let ask = open.ask;
            if !open.outlives() || matches!(cut, Cut::Gone(_)) {
                self.cut(ask, cut, calls, out);
                continue;
            }
            let how = AskClose::Cancelled;
            let open = self.open.remove(at);
            out.infer(What::AskClosed { ask, how });
            again.push(open);
        }
        again
    }

    /// Asks again what outlived its turn.
    pub(super) fn again(&mut self, open: Vec<OpenAsk>, out: &mut Out) {
        for open in open {
            self.put(open, Seen::Inferred, out);
        }
    }

    /// Everything of a run that is over is closed.
    pub(super) fn run_over(&mut self, run: RunId, cut: &Cut, calls: &mut Calls, out: &mut Out) {
        while let Some(open) = self.open.iter().find(|open| open.run == run) {
            let ask = open.ask;
            self.cut(ask, cut, calls, out);
        }
    }

    /// The newest question so far.
    pub(super) fn newest(&self) -> AskId {
        self.last.unwrap_or(AskId(0))
    }

    /// The agent is gone.
    pub(super) fn gone(&mut self, failure: &Failure, calls: &mut Calls, out: &mut Out) {
        while let Some(open) = self.open.first() {
            let ask = open.ask;
            self.cut(ask, &Cut::Gone(failure.clone()), calls, out);
        }
    }
}

/// How a question is closed.
#[derive(Debug)]
pub(super) struct Closed {
    pub how: AskClose,
    /// Whose decision it is about a call that waits for it.
    pub by: Decider,
    /// What a failure of that call will mean; `None`: it may run.
    pub refused: Option<ToolOutcome>,
    /// What the call runs with instead.
    pub input: Option<RawJson>,
    /// A hook's own word on the call.
    pub hooked: Option<bool>,
}

impl Closed {
    /// Answered by the host; no call waits for it.
    pub(super) fn by_host() -> Self {
        Closed {
            how: AskClose::Answered {
                by: Decider::Host,
                allow: None,
            },
            by: Decider::Host,
            refused: None,
            input: None,
            hooked: None,
        }
    }

    fn allowed(allow: bool, input: Option<RawJson>) -> Self {
        let refused = (!allow).then_some(ToolOutcome::Denied(Decider::Host));
        let allow = Some(allow);
        Closed {
            how: AskClose::Answered {
                by: Decider::Host,
                allow,
            },
            refused,
            input,
            ..Closed::by_host()
        }
    }

    fn cancelled() -> Self {
        Closed {
            how: AskClose::Cancelled,
            by: Decider::Cancel,
            refused: Some(ToolOutcome::Cancelled),
            input: None,
            hooked: None,
        }
    }

    /// The host couldn't answer: that denies (WIRE-PERM-002).
    pub(super) fn fault(fault: &ReplyFault, text: Text) -> Self {
        let how = match fault {
            ReplyFault::HostError(text) | ReplyFault::Malformed(text) => {
                AskClose::Fault(text.clone())
            }
            ReplyFault::HostCancelled => AskClose::Withdrawn,
            ReplyFault::HostGone => AskClose::HostGone,
        };
        let by = Decider::Fault(text);
        Closed {
            how,
            refused: Some(ToolOutcome::Denied(by.clone())),
            by,
            input: None,
            hooked: None,
        }
    }
}

/// What a fault says to the agent.
pub(super) fn fault_text(fault: &ReplyFault) -> Text {
    match fault {
        ReplyFault::HostError(text) | ReplyFault::Malformed(text) => text.clone(),
        ReplyFault::HostCancelled => "the host took the question back".into(),
        ReplyFault::HostGone => "the host is gone".into(),
    }
}

/// The answer isn't one to this question.
pub(super) fn other_kind<T>() -> Result<T, Refusal> {
    Err(Refusal::Invalid(
        "the answer is of another kind than the question".into(),
    ))
}

/// Writes a success with this payload.
pub(super) fn answer(request_id: &str, payload: &[u8], out: &mut Out) {
    let line = Response::success_with(request_id, ours(payload));
    out.line(|bytes| HostLine::from(line).encode(bytes));
}

/// The payload of a decision. The input is always written: not every program takes an allow without one (AX-P08).
fn decision(
    reply: &Reply,
    tool_use: &str,
    original: &RawJson,
    may_update: bool,
) -> Result<(Vec<u8>, Closed), Refusal> {
    let mut json = Vec::new();
    let closed = match reply {
        Reply::Allow { input, updates } => {
            if !updates.is_empty() && !may_update {
                let what = "approvals that change the permissions";
                return Err(Refusal::Unsupported(what));
            }
            let given = input.as_ref().unwrap_or(original);
            if Raw::trusted(given.as_str()).kind() != JsonKind::Object {
                let text = "the input of a call is an object";
                return Err(Refusal::Invalid(text.into()));
            }
            json.extend_from_slice(b"{\"behavior\":\"allow\",\"updatedInput\":");
            json::write_raw(&mut json, Raw::trusted(given.as_str()));
            let updates: Option<Vec<Vec<u8>>> = updates.iter().map(wire_update).collect();
            let updates = updates.ok_or(Refusal::Unsupported("this change of the permissions"))?;
            if !updates.is_empty() {
                json.extend_from_slice(b",\"updatedPermissions\":[");
                json.extend_from_slice(&updates.join(&b','));
                json.push(b']');
            }
            Closed::allowed(true, input.clone())
        }
        Reply::Deny { message, interrupt } => {
            let message = message.as_deref().filter(|text| !text.trim().is_empty());
            json.extend_from_slice(b"{\"behavior\":\"deny\",\"message\":");
            json::write_str(&mut json, message.unwrap_or(DENIED));
            if *interrupt {
                json.extend_from_slice(b",\"interrupt\":true");
            }
            Closed::allowed(false, None)
        }
        Reply::Hook(_) | Reply::Tool { .. } | Reply::Uri { .. } | Reply::Choice(_) => {
            return other_kind();
        }
    };
    json.extend_from_slice(b",\"toolUseID\":");
    json::write_str(&mut json, tool_use);
    json.push(b'}');
    Ok((json, closed))
}

/// A text that must be a JSON object.
fn object(text: &str) -> Result<Raw<'_>, Refusal> {
    json::scan_value(text.as_bytes(), &ScanRules::LENIENT)
        .ok()
        .filter(|value| value.kind() == JsonKind::Object)
        .ok_or_else(|| Refusal::Invalid("the answers aren't a JSON object".into()))
}

/// The payload for a form or a page.
fn elicited(form: &Form, chosen: Option<&str>) -> Result<Vec<u8>, Refusal> {
    let mut json = Vec::new();
    let Some(chosen) = chosen else {
        return Ok(b"{\"action\":\"cancel\"}".to_vec());
    };
    json.extend_from_slice(b"{\"action\":\"accept\"");
    match form {
        Form::Page => {}
        Form::Whole => {
            json.extend_from_slice(b",\"content\":");
            object(chosen)?.put(&mut json);
        }
        Form::Text(member) | Form::Bool(member) => {
            json.extend_from_slice(b",\"content\":{");
            json::write_str(&mut json, member);
            json.push(b':');
            match (form, chosen) {
                (Form::Bool(_), "true" | "false") => json.extend_from_slice(chosen.as_bytes()),
                (Form::Bool(_), _) => {
                    let text = "the answer is neither `true` nor `false`";
                    return Err(Refusal::Invalid(text.into()));
                }
                (Form::Text(_) | Form::Whole | Form::Page, _) => {
                    json::write_str(&mut json, chosen);
                }
            }
            json.push(b'}');
        }
    }
    json.push(b'}');
    Ok(json)
}

/// The payload for questions: for each, a list of texts.
fn answers(one: Option<&str>, chosen: &str) -> Result<Vec<u8>, Refusal> {
    let Some(question) = one else {
        return Ok(object(chosen)?.as_str().into());
    };
    let mut json = b"{".to_vec();
    json::write_str(&mut json, question);
    json.extend_from_slice(b":[");
    json::write_str(&mut json, chosen);
    json.extend_from_slice(b"]}");
    Ok(json)
}

/// How a form is put to a person. One member is asked for as what it is.
pub(super) fn form(schema: Option<Raw<'_>>) -> (ChoiceKind, Form) {
    let whole = || {
        let schema = schema.unwrap_or(Raw::trusted("{}"));
        (ChoiceKind::Form(super::convert::raw(schema)), Form::Whole)
    };
    let mut members = Vec::new();
    if let Some(properties) = schema.and_then(|schema| schema.get_last("properties")) {
        properties.each_member(|name, kind| members.push((String::from(name), kind)));
    }
    let [(name, kind)] = members.as_slice() else {
        return whole();
    };
    let word = kind.get_last("type").and_then(Raw::string);
    let options = kind.get_last("enum").map(texts);
    match (word.as_deref(), options) {
        (Some("boolean"), _) => (ChoiceKind::Confirm, Form::Bool(name.clone())),
        (Some("string"), Some(Some(options))) if !options.is_empty() => {
            (ChoiceKind::Select(options), Form::Text(name.clone()))
        }
        (Some("string"), None) => {
            let placeholder = "".into();
            (ChoiceKind::Input { placeholder }, Form::Text(name.clone()))
        }
        _ => whole(),
    }
}

/// How questions are put to a person, and the only one, if a text answers it.
pub(super) fn questions(told: Raw<'_>) -> (Text, ChoiceKind, Option<String>) {
    let list: Vec<Raw<'_>> = told.decode().unwrap_or_default();
    let each = list.iter().copied();
    let titles: Vec<_> = each
        .filter_map(|question| question.get_last("question").and_then(Raw::string))
        .collect();
    let title = Text::from(titles.join("\n"));
    let whole = || ChoiceKind::Form(super::convert::raw(told));
    let [question] = list.as_slice() else {
        return (title, whole(), None);
    };
    let several = question.get_last("multiSelect").and_then(Raw::bool) == Some(true);
    let options: Vec<Raw<'_>> = question
        .get_last("options")
        .and_then(|options| options.decode().ok())
        .unwrap_or_default();
    let label = |option: &Raw<'_>| Some(Text::from(&*option.get_last("label")?.string()?));
    let labels: Vec<Text> = options.iter().filter_map(label).collect();
    if several || labels.len() != options.len() || titles.is_empty() {
        return (title, whole(), None);
    }
    let kind = if labels.is_empty() {
        let placeholder = "".into();
        ChoiceKind::Input { placeholder }
    } else {
        ChoiceKind::Select(labels)
    };
    let one = String::from(&*title);
    (title, kind, Some(one))
}

/// The texts of a list; nothing if it isn't one of texts.
fn texts(list: Raw<'_>) -> Option<Vec<Text>> {
    let list: Vec<Raw<'_>> = list.decode().ok()?;
    list.into_iter()
        .map(|text| Some(Text::from(&*text.string()?)))
        .collect()
}
