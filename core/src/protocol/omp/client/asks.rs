//! Questions of the agent: calls of the host's tools, its URIs, and dialogs. A tool's approval is a dialog too, told
//! from others by its title and its options; presentation that wants no answer never comes here.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Out;
use super::calls::Calls;
use super::flow::Cut;
use crate::json::{self, Raw, ScanRules};
use crate::protocol::omp::wire::{
    Any, Block as WireBlock, HostLine, HostOutput, HostToolResult, HostToolUpdate, HostUriResult,
    ImageBlock, Side, TextBlock, UiMethod, UiResponse,
};
use crate::protocol::wire::Hole;
use crate::vocab::*;

/// Open questions. An agent that never takes one back is found out here.
const MOST_OPEN: usize = 4_096;
/// How the title of an approval begins.
const APPROVAL: &str = "Allow tool: ";
/// What an approval offers.
const APPROVE: &str = "Approve";
const DENY: &str = "Deny";

/// The open questions.
#[derive(Debug, Default)]
pub(super) struct Asks {
    open: Vec<OpenAsk>,
    last: Option<AskId>,
    /// The agent's input is closed: it answers its questions by itself.
    pub leaving: bool,
}

#[derive(Debug)]
pub(super) struct OpenAsk {
    ask: AskId,
    wire: String,
    pub call: Option<CallId>,
    /// When the host gives up.
    until_us: Option<u64>,
    body: Ask,
}

/// Which line an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// A call of the host's tool.
    Tool,
    /// A URI of the host's.
    Uri,
    /// A dialog.
    Ui,
}

impl OpenAsk {
    fn family(&self) -> Family {
        match self.body {
            Ask::Tool { .. } => Family::Tool,
            Ask::Uri { .. } => Family::Uri,
            Ask::Permission(_) | Ask::Hook(_) | Ask::Choice(_) => Family::Ui,
        }
    }
}

impl Asks {
    /// A question, unless one of its id is open already.
    pub(super) fn open(
        &mut self,
        wire: &str,
        body: Ask,
        timeout_us: Option<u64>,
        calls: Option<&mut Calls>,
        out: &mut Out,
    ) {
        if self.open.iter().any(|open| open.wire == wire) {
            return out.finding(format!("question {wire:?} was asked twice"));
        }
        if self.open.len() >= MOST_OPEN {
            return out.finding("too many questions are open; this one can't be answered");
        }
        let call = body.call();
        if let (Some(calls), Some(call), true) = (calls, call, body.is_permission()) {
            calls.ask(call);
        }
        self.put(
            OpenAsk {
                ask: AskId(0),
                wire: wire.into(),
                call,
                until_us: timeout_us.map(|wait| out.now().mono_us.saturating_add(wait)),
                body,
            },
            Seen::Real,
            out,
        );
    }

    fn put(&mut self, mut open: OpenAsk, seen: Seen, out: &mut Out) {
        open.ask = out.ids.ask();
        self.last = Some(open.ask);
        let (ask, body) = (open.ask, open.body.clone());
        out.event(RunId::MAIN, seen, What::Asked { ask, body });
        self.open.push(open);
    }

    /// When the first question runs out of time.
    pub(super) fn due_us(&self) -> Option<u64> {
        self.open.iter().filter_map(|open| open.until_us).min()
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

    /// Writes an answer. What it means for the question is to be handed to [`Asks::answered`].
    pub(super) fn write(
        &self,
        ask: AskId,
        reply: &Result<Reply, ReplyFault>,
        out: &mut Out,
    ) -> Result<Closed, Refusal> {
        let open = self.find(ask)?;
        match open.family() {
            Family::Tool => tool_result(open, reply, out),
            Family::Uri => uri_result(open, reply, out),
            Family::Ui => ui_response(open, reply, out),
        }
    }

    /// An answer was written: the question is closed.
    pub(super) fn answered(
        &mut self,
        ask: AskId,
        closed: Closed,
        calls: Option<&mut Calls>,
        out: &mut Out,
    ) {
        self.close(ask, closed, Seen::Inferred, calls, out);
    }

    /// Writes what a host's tool has so far.
    pub(super) fn part(&self, ask: AskId, content: &[Block], out: &mut Out) -> Result<(), Refusal> {
        let open = self.find(ask)?;
        if open.family() != Family::Tool {
            return Err(Refusal::Invalid(
                "the question isn't a call of a tool".into(),
            ));
        }
        let line = HostToolUpdate {
            id: open.wire.as_str().into(),
            partial_result: HostOutput {
                content: blocks(content)?,
                ..HostOutput::default()
            },
            ..HostToolUpdate::default()
        };
        out.line(|bytes| HostLine::Side(Side::ToolUpdate(line)).encode(bytes));
        Ok(())
    }

    fn close(
        &mut self,
        ask: AskId,
        Closed { how, by, refused }: Closed,
        seen: Seen,
        calls: Option<&mut Calls>,
        out: &mut Out,
    ) {
        let Some(at) = self.open.iter().position(|open| open.ask == ask) else {
            return;
        };
        let open = self.open.remove(at);
        out.event(RunId::MAIN, seen, What::AskClosed { ask, how });
        if let (Some(calls), Some(call), true) = (calls, open.call, open.body.is_permission()) {
            calls.decide(RunId::MAIN, call, by, refused, out);
        }
    }

    /// The agent takes a question back.
    pub(super) fn cancel(
        &mut self,
        wire: &str,
        family: Family,
        calls: Option<&mut Calls>,
        out: &mut Out,
    ) {
        let found = self
            .open
            .iter()
            .find(|open| open.wire == wire && open.family() == family);
        // It may have crossed the answer.
        let Some(open) = found else { return };
        let late = open
            .until_us
            .is_some_and(|until| until <= out.now().mono_us);
        let (ask, how) = (
            open.ask,
            if late {
                AskClose::TimedOut
            } else {
                AskClose::Cancelled
            },
        );
        let refused = Some(if late {
            ToolOutcome::TimedOut
        } else {
            ToolOutcome::Cancelled
        });
        let by = if late {
            Decider::Timer
        } else {
            Decider::Cancel
        };
        self.close(ask, Closed { how, by, refused }, Seen::Real, calls, out);
    }

    /// Answers the dialogs whose time is up; the agent leaves that to the host.
    pub(super) fn time_out(&mut self, mut calls: Option<&mut Calls>, out: &mut Out) {
        let now = out.now().mono_us;
        while let Some(open) = self
            .open
            .iter()
            .find(|open| open.until_us.is_some_and(|until| until <= now))
        {
            let line = UiResponse {
                id: open.wire.as_str().into(),
                cancelled: Any(Some(Raw::trusted("true"))),
                timed_out: Any(Some(Raw::trusted("true"))),
                ..UiResponse::default()
            };
            let ask = open.ask;
            out.line(|bytes| HostLine::Side(Side::Ui(line)).encode(bytes));
            let closed = Closed {
                how: AskClose::TimedOut,
                by: Decider::Timer,
                refused: Some(ToolOutcome::TimedOut),
            };
            let calls = calls.as_deref_mut();
            self.close(ask, closed, Seen::Inferred, calls, out);
        }
    }

    /// Closes the questions about one call, which is over.
    pub(super) fn close_call(&mut self, call: CallId, cut: &Cut, calls: &mut Calls, out: &mut Out) {
        while let Some(open) = self.open.iter().find(|open| open.call == Some(call)) {
            let ask = open.ask;
            self.cut(ask, cut, Some(calls), out);
        }
    }

    /// Closes the questions about calls: the step of all of them is over.
    pub(super) fn close_calls(&mut self, run: RunId, calls: &mut Calls, cut: &Cut, out: &mut Out) {
        if run != RunId::MAIN {
            return;
        }
        while let Some(open) = self.open.iter().find(|open| open.call.is_some()) {
            let ask = open.ask;
            self.cut(ask, cut, Some(calls), out);
        }
    }

    fn cut(&mut self, ask: AskId, cut: &Cut, calls: Option<&mut Calls>, out: &mut Out) {
        let (how, by) = match cut {
            Cut::Cancelled | Cut::Detached => (AskClose::Cancelled, Decider::Cancel),
            Cut::Gone(failure) => {
                let why = failure.text.clone();
                (AskClose::Fault(why.clone()), Decider::Fault(why))
            }
            Cut::Over | Cut::Failed(_) if self.leaving => (AskClose::HostGone, Decider::Closed),
            // The agent says nothing of a question that ran out of time, or that nobody can answer any more.
            Cut::Over | Cut::Failed(_) => (AskClose::Cancelled, Decider::Cancel),
        };
        let refused = if by == Decider::Cancel {
            ToolOutcome::Cancelled
        } else {
            ToolOutcome::Denied(by.clone())
        };
        let refused = Some(refused);
        self.close(ask, Closed { how, by, refused }, Seen::Inferred, calls, out);
    }

    /// The turn is over: its questions are closed. Gives those that aren't the turn's on the wire, and are asked again.
    pub(super) fn turn_over(&mut self, since: AskId, cut: &Cut, out: &mut Out) -> Vec<OpenAsk> {
        let mut again = Vec::new();
        while let Some(at) = self.open.iter().position(|open| open.ask > since) {
            let Some(open) = self.open.get(at) else { break };
            let ask = open.ask;
            let stays = matches!(open.body, Ask::Choice(_)) && !matches!(cut, Cut::Gone(_));
            if !stays {
                self.cut(ask, cut, None, out);
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

    /// The newest question so far.
    pub(super) fn newest(&self) -> AskId {
        self.last.unwrap_or(AskId(0))
    }

    /// The agent is gone.
    pub(super) fn gone(&mut self, failure: &Failure, out: &mut Out) {
        while let Some(open) = self.open.first() {
            let ask = open.ask;
            self.cut(ask, &Cut::Gone(failure.clone()), None, out);
        }
    }
}

/// The name of the tool that a dialog wants approved, and what it says of the call.
pub(super) fn approval<'a>(method: &'a UiMethod<'_>) -> Option<(&'a str, &'a str)> {
    let UiMethod::Select(select) = method else {
        return None;
    };
    let options = select.options.iter().map(|option| &**option);
    if !options.eq([APPROVE, DENY]) {
        return None;
    }
    let said = select.title.strip_prefix(APPROVAL)?;
    Some(said.split_once('\n').unwrap_or((said, "")))
}

/// A dialog.
pub(super) fn choice(method: &UiMethod<'_>) -> Option<ChoiceAsk> {
    let (title, kind, timeout): (Text, _, _) = match method {
        UiMethod::Select(it) => (
            (&*it.title).into(),
            ChoiceKind::Select(it.options.iter().map(|option| (&**option).into()).collect()),
            it.timeout.as_ref(),
        ),
        UiMethod::Confirm(it) => (
            if it.message.is_empty() {
                (&*it.title).into()
            } else {
                format!("{}\n{}", &*it.title, &*it.message).into()
            },
            ChoiceKind::Confirm,
            it.timeout.as_ref(),
        ),
        UiMethod::Input(it) => (
            (&*it.title).into(),
            ChoiceKind::Input {
                placeholder: it.placeholder.as_deref().unwrap_or_default().into(),
            },
            it.timeout.as_ref(),
        ),
        UiMethod::Editor(it) => (
            (&*it.title).into(),
            ChoiceKind::Editor {
                prefill: it.prefill.as_deref().unwrap_or_default().into(),
            },
            None,
        ),
        UiMethod::Ask(it) => {
            let mut form = Vec::new();
            let mut title = String::new();
            for question in it.questions.iter().filter_map(|question| question.known()) {
                if !title.is_empty() {
                    title.push('\n');
                }
                title.push_str(&question.question);
            }
            it.questions.put(&mut form);
            let form = String::from_utf8_lossy(&form).into_owned();
            (
                title.into(),
                ChoiceKind::Form(RawJson(form.into())),
                it.timeout.as_ref(),
            )
        }
        UiMethod::Cancel(_)
        | UiMethod::Notify(_)
        | UiMethod::SetStatus(_)
        | UiMethod::SetWidget(_)
        | UiMethod::SetTitle(_)
        | UiMethod::SetEditorText(_)
        | UiMethod::OpenUrl(_)
        | UiMethod::Unknown(_) => return None,
    };
    Some(ChoiceAsk {
        title,
        kind,
        timeout_us: timeout
            .and_then(|ms| ms.u64())
            .filter(|ms| *ms > 0)
            .map(|ms| ms.saturating_mul(1_000)),
    })
}

/// The blocks of a host's tool, as the wire has them.
fn blocks(content: &[Block]) -> Result<Vec<WireBlock<'_>>, Refusal> {
    let each = content.iter().map(|block| match block {
        Block::Text(text) => Ok(WireBlock::Text(TextBlock {
            text: (&**text).into(),
            ..TextBlock::default()
        })),
        Block::Media {
            kind: MediaKind::Image,
            source: Source::Inline { mime, base64 },
        } => Ok(WireBlock::Image(ImageBlock {
            data: (&**base64).into(),
            mime_type: (&**mime).into(),
            ..ImageBlock::default()
        })),
        Block::Media { .. }
        | Block::Thinking { .. }
        | Block::Redacted(_)
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Opaque(_) => Err(Refusal::Unsupported(
            "content of tools other than text and pictures",
        )),
    });
    each.collect()
}

/// How a question is closed.
#[derive(Debug)]
pub(super) struct Closed {
    how: AskClose,
    /// Whose decision it is about a call that waits for it.
    by: Decider,
    /// What a failure of that call will mean; `None`: it may run.
    refused: Option<ToolOutcome>,
}

impl Closed {
    /// Without a call that waits.
    fn plain(how: AskClose) -> Self {
        Closed {
            how,
            by: Decider::Host,
            refused: None,
        }
    }
}

fn by_host(allow: Option<bool>) -> AskClose {
    AskClose::Answered {
        by: Decider::Host,
        allow,
    }
}

/// What a fault says to the agent.
fn fault_text(fault: &ReplyFault) -> Text {
    match fault {
        ReplyFault::HostError(text) | ReplyFault::Malformed(text) => text.clone(),
        ReplyFault::HostCancelled => "the host took the call back".into(),
        ReplyFault::HostGone => "the host is gone".into(),
    }
}

fn fault_close(fault: &ReplyFault) -> AskClose {
    match fault {
        ReplyFault::HostError(text) | ReplyFault::Malformed(text) => AskClose::Fault(text.clone()),
        ReplyFault::HostCancelled => AskClose::Withdrawn,
        ReplyFault::HostGone => AskClose::HostGone,
    }
}

fn other_kind<T>() -> Result<T, Refusal> {
    Err(Refusal::Invalid(
        "the answer is of another kind than the question".into(),
    ))
}

fn tool_result(
    open: &OpenAsk,
    reply: &Result<Reply, ReplyFault>,
    out: &mut Out,
) -> Result<Closed, Refusal> {
    let given = match reply {
        Ok(Reply::Tool {
            content,
            is_error,
            details,
        }) => (blocks(content)?, *is_error, details.as_ref(), by_host(None)),
        Err(fault) => {
            let text = fault_text(fault);
            let content = WireBlock::Text(TextBlock {
                text: alloc::borrow::ToOwned::to_owned(&*text).into(),
                ..TextBlock::default()
            });
            ([content].into(), true, None, fault_close(fault))
        }
        Ok(
            Reply::Allow { .. }
            | Reply::Deny { .. }
            | Reply::Hook(_)
            | Reply::Uri { .. }
            | Reply::Choice(_),
        ) => return other_kind(),
    };
    let (content, failed, details, how) = given;
    let line = HostToolResult {
        id: open.wire.as_str().into(),
        result: HostOutput {
            content,
            details: Any(details.map(|details| Raw::trusted(details.as_str()))),
            ..HostOutput::default()
        },
        is_error: Any(failed.then_some(Raw::trusted("true"))),
        ..HostToolResult::default()
    };
    out.line(|bytes| HostLine::Side(Side::ToolResult(line)).encode(bytes));
    Ok(Closed::plain(how))
}

fn uri_result(
    open: &OpenAsk,
    reply: &Result<Reply, ReplyFault>,
    out: &mut Out,
) -> Result<Closed, Refusal> {
    let mut texts = [Vec::new(), Vec::new(), Vec::new()];
    let [first, second, third] = &mut texts;
    let mut line = HostUriResult {
        id: open.wire.as_str().into(),
        ..HostUriResult::default()
    };
    let how = match reply {
        Ok(Reply::Uri {
            body,
            mime,
            notes,
            immutable,
        }) => {
            line.content = Any(Some(quoted(first, body)));
            line.content_type = Any(mime.as_ref().map(|mime| quoted(second, mime)));
            line.notes = Any((!notes.is_empty()).then(|| list(third, notes)));
            let word = |is: &bool| Raw::trusted(if *is { "true" } else { "false" });
            line.immutable = Any(immutable.as_ref().map(word));
            by_host(None)
        }
        Err(fault) => {
            line.is_error = Any(Some(Raw::trusted("true")));
            line.error = Any(Some(quoted(first, &fault_text(fault))));
            fault_close(fault)
        }
        Ok(
            Reply::Allow { .. }
            | Reply::Deny { .. }
            | Reply::Hook(_)
            | Reply::Tool { .. }
            | Reply::Choice(_),
        ) => return other_kind(),
    };
    out.line(|bytes| HostLine::Side(Side::UriResult(line)).encode(bytes));
    Ok(Closed::plain(how))
}

fn ui_response(
    open: &OpenAsk,
    reply: &Result<Reply, ReplyFault>,
    out: &mut Out,
) -> Result<Closed, Refusal> {
    let mut text = Vec::new();
    let mut line = UiResponse {
        id: open.wire.as_str().into(),
        ..UiResponse::default()
    };
    let closed = match (&open.body, reply) {
        (Ask::Permission(_), Ok(Reply::Allow { input, updates })) => {
            if input.is_some() || !updates.is_empty() {
                let what = "approvals that change the call or the rules";
                return Err(Refusal::Unsupported(what));
            }
            line.value = Any(Some(quoted(&mut text, APPROVE)));
            Closed::plain(by_host(Some(true)))
        }
        (Ask::Permission(_), Ok(Reply::Deny { .. })) => {
            line.value = Any(Some(quoted(&mut text, DENY)));
            let refused = ToolOutcome::Denied(Decider::Host);
            Closed {
                refused: Some(refused),
                ..Closed::plain(by_host(Some(false)))
            }
        }
        (_, Err(fault)) => {
            line.cancelled = Any(Some(Raw::trusted("true")));
            // Errors deny.
            let by = Decider::Fault(fault_text(fault));
            let refused = Some(ToolOutcome::Denied(by.clone()));
            let how = fault_close(fault);
            Closed { how, by, refused }
        }
        (Ask::Choice(_), Ok(Reply::Choice(None))) => {
            line.cancelled = Any(Some(Raw::trusted("true")));
            Closed::plain(by_host(None))
        }
        (Ask::Choice(ask), Ok(Reply::Choice(Some(value)))) => {
            match &ask.kind {
                ChoiceKind::Confirm => {
                    let word = match &**value {
                        "true" => "true",
                        "false" => "false",
                        _ => {
                            return Err(Refusal::Invalid(
                                "the answer is neither `true` nor `false`".into(),
                            ));
                        }
                    };
                    line.confirmed = Any(Some(Raw::trusted(word)));
                }
                ChoiceKind::Form(_) => {
                    let answers = json::scan_value(value.as_bytes(), &ScanRules::LENIENT)
                        .map_err(|_| Refusal::Invalid("the answers aren't JSON".into()))?;
                    line.answers = Any(Some(answers));
                }
                ChoiceKind::Select(_)
                | ChoiceKind::Input { .. }
                | ChoiceKind::Editor { .. }
                | ChoiceKind::Url(_) => line.value = Any(Some(quoted(&mut text, value))),
            }
            Closed::plain(by_host(None))
        }
        (
            Ask::Permission(_) | Ask::Choice(_) | Ask::Hook(_) | Ask::Tool { .. } | Ask::Uri { .. },
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
    out.line(|bytes| HostLine::Side(Side::Ui(line)).encode(bytes));
    Ok(closed)
}

/// A text as a JSON string, in a buffer.
pub(super) fn quoted<'a>(buffer: &'a mut Vec<u8>, text: &str) -> Raw<'a> {
    json::write_str(buffer, text);
    Raw::trusted(core::str::from_utf8(buffer).unwrap_or("\"\""))
}

/// Texts as a JSON list, in a buffer.
fn list<'a>(buffer: &'a mut Vec<u8>, texts: &[Text]) -> Raw<'a> {
    buffer.push(b'[');
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            buffer.push(b',');
        }
        json::write_str(buffer, text);
    }
    buffer.push(b']');
    Raw::trusted(core::str::from_utf8(buffer).unwrap_or("[]"))
}
