//! Questions to the host: approvals and dialogs on its screen, its tools, its URIs. And the side channel, on which it
//! answers.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::message::{name_call, raw};
use super::models::json;
use super::{Face, Pending};
use crate::protocol::Outbox;
use crate::protocol::ids::hex16;
use crate::protocol::omp::wire::{
    Any, AskForm, Block as WireBlock, CancelDialog, Confirm, Editor, HostToolCall, HostToolCancel,
    HostToolResult, HostToolUpdate, HostUriCancel, HostUriRequest, HostUriResult, Input, OpenUrl,
    Select, Side, UiAnswer, UiMethod, UiRequest, UiResponse, UriOperation,
};
use crate::protocol::omp::{Omp, OmpAsk, OmpExtra};
use crate::protocol::wire::Hole;
use crate::vocab::*;

/// What a host's tool is told to have failed with if it said nothing.
const TOOL_FAILED: &str = "Host tool execution failed";
/// What becomes of calls when the host goes.
const DISCONNECTED: &str = "RPC client disconnected before host tool execution completed";
/// Dialogs of the embedder's own that are remembered.
const MOST_DIALOGS: usize = 1024;

/// What a question is, on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Permission,
    Choice,
    Tool,
    Uri { url: Text, write: bool },
}

#[derive(Debug)]
struct Open {
    ask: AskId,
    wire: String,
    what: What,
    /// The host has answered; the agent hasn't closed it yet.
    answered: bool,
}

/// The questions that are open on the wire, and its ids.
#[derive(Debug)]
pub(super) struct Questions {
    seed: [u8; 32],
    issued: u64,
    open: Vec<Open>,
    /// Dialogs that the embedder opened itself.
    dialogs: BTreeSet<String>,
}

impl Questions {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Questions {
            seed,
            issued: 0,
            open: Vec::new(),
            dialogs: BTreeSet::new(),
        }
    }

    fn id(&mut self) -> String {
        self.issued += 1;
        hex16(&self.seed, self.issued)
    }

    fn open(&mut self, ask: AskId, what: What) -> String {
        let wire = self.id();
        self.open.push(Open {
            ask,
            wire: wire.clone(),
            what,
            answered: false,
        });
        wire
    }

    /// Takes the answer to an open question of this kind. `None`: it isn't open, or was answered.
    fn answer(&mut self, wire: &str, fits: impl Fn(&What) -> bool) -> Option<(AskId, What)> {
        let open = self
            .open
            .iter_mut()
            .find(|open| open.wire == wire && !open.answered && fits(&open.what))?;
        open.answered = true;
        Some((open.ask, open.what.clone()))
    }

    /// The question to which progress belongs.
    fn progress(&self, wire: &str) -> Option<AskId> {
        let open = self
            .open
            .iter()
            .find(|open| open.wire == wire && !open.answered && open.what == What::Tool)?;
        Some(open.ask)
    }
}

impl Face {
    /// A question.
    pub(super) fn asked(&mut self, ask: AskId, body: &Ask, out: &mut Outbox<Omp>) {
        if self.is_leaving() {
            let fault = match body {
                Ask::Tool { .. } | Ask::Uri { .. } => ReplyFault::HostError(DISCONNECTED.into()),
                Ask::Permission(_) | Ask::Hook(_) | Ask::Choice(_) => ReplyFault::HostGone,
            };
            return self.reply(ask, Err(fault), out);
        }
        match body {
            Ask::Hook(_) => self.reply(ask, Err(ReplyFault::HostGone), out),
            Ask::Tool { call, name, input } => {
                let wire = self.questions.open(ask, What::Tool);
                let id = name_call(*call, None, &mut self.run.names);
                let line = HostToolCall {
                    id: wire.as_str().into(),
                    tool_call_id: id.into(),
                    tool_name: (&**name).into(),
                    arguments: Any(Some(raw(input))),
                    ..HostToolCall::default()
                };
                self.printer.say(line, out);
            }
            Ask::Uri { op, uri, body } => {
                let write = *op == UriOp::Write;
                let wire = self.questions.open(
                    ask,
                    What::Uri {
                        url: uri.clone(),
                        write,
                    },
                );
                let line = HostUriRequest {
                    id: wire.as_str().into(),
                    operation: if write {
                        UriOperation::Write
                    } else {
                        UriOperation::Read
                    },
                    url: (&**uri).into(),
                    content: body.as_deref().filter(|_| write).map(Into::into),
                    ..HostUriRequest::default()
                };
                self.printer.say(line, out);
            }
            Ask::Permission(permission) => {
                let wire = self.questions.open(ask, What::Permission);
                let now = self.now.mono_us;
                let select = Select {
                    title: title(permission).into(),
                    options: Vec::from(["Approve".into(), "Deny".into()]),
                    timeout: permission
                        .due
                        .map(|due| (due.saturating_sub(now) / 1_000).into()),
                    ..Select::default()
                };
                self.show(&wire, select, out);
            }
            Ask::Choice(choice) => self.choice(ask, choice, out),
        }
    }

    fn choice(&mut self, ask: AskId, choice: &ChoiceAsk, out: &mut Outbox<Omp>) {
        if matches!(choice.kind, ChoiceKind::Form(_)) && !self.own.ask_dialog {
            return self.reply(ask, Ok(Reply::Choice(None)), out);
        }
        let wire = self.questions.open(ask, What::Choice);
        let title = || (&*choice.title).into();
        let timeout = choice.timeout_us.map(|us| (us / 1_000).into());
        match &choice.kind {
            ChoiceKind::Select(options) => {
                let options = options.iter().map(|option| (&**option).into()).collect();
                let select = Select {
                    title: title(),
                    options,
                    timeout,
                    ..Select::default()
                };
                self.show(&wire, select, out);
            }
            ChoiceKind::Confirm => {
                let confirm = Confirm {
                    title: title(),
                    message: "".into(),
                    timeout,
                    ..Confirm::default()
                };
                self.show(&wire, confirm, out);
            }
            ChoiceKind::Input { placeholder } => {
                let input = Input {
                    title: title(),
                    placeholder: (!placeholder.is_empty()).then(|| (&**placeholder).into()),
                    timeout,
                    ..Input::default()
                };
                self.show(&wire, input, out);
            }
            ChoiceKind::Editor { prefill } => {
                let editor = Editor {
                    title: title(),
                    prefill: (!prefill.is_empty()).then(|| (&**prefill).into()),
                    ..Editor::default()
                };
                self.show(&wire, editor, out);
            }
            ChoiceKind::Form(form) => {
                let questions = raw(form);
                let questions = questions.get("questions").unwrap_or(questions);
                let form = AskForm {
                    questions: questions.decode().unwrap_or_default(),
                    timeout,
                    ..AskForm::default()
                };
                self.show(&wire, form, out);
            }
            ChoiceKind::Url(url) => {
                let page = self.questions.id();
                let open = OpenUrl {
                    url: (&**url).into(),
                    ..OpenUrl::default()
                };
                self.show(&page, open, out);
                let confirm = Confirm {
                    title: title(),
                    message: (&**url).into(),
                    timeout,
                    ..Confirm::default()
                };
                self.show(&wire, confirm, out);
            }
        }
    }

    fn show<'a>(&mut self, id: &'a str, method: impl Into<UiMethod<'a>>, out: &mut Outbox<Omp>) {
        let request = UiRequest {
            id: id.into(),
            method: method.into(),
        };
        self.printer.ui(request, out);
    }

    fn reply(&mut self, ask: AskId, reply: Result<Reply, ReplyFault>, out: &mut Outbox<Omp>) {
        let command = out.call(Command::Reply { ask, reply });
        self.pending.insert(command, Pending::Quiet);
    }

    /// A question is closed: one that the host still works on is cancelled there.
    pub(super) fn ask_closed(&mut self, ask: AskId, how: &AskClose, out: &mut Outbox<Omp>) {
        let Some(index) = self.questions.open.iter().position(|open| open.ask == ask) else {
            return;
        };
        let open = self.questions.open.remove(index);
        if open.answered || matches!(how, AskClose::Withdrawn) || self.is_leaving() {
            return;
        }
        let id = self.questions.id();
        match open.what {
            What::Tool => {
                let line = HostToolCancel {
                    id: id.as_str().into(),
                    target_id: open.wire.as_str().into(),
                    ..HostToolCancel::default()
                };
                self.printer.say(line, out);
            }
            What::Uri { .. } => {
                let line = HostUriCancel {
                    id: id.as_str().into(),
                    target_id: open.wire.as_str().into(),
                    ..HostUriCancel::default()
                };
                self.printer.say(line, out);
            }
            What::Permission | What::Choice => {
                let cancel = CancelDialog {
                    target_id: open.wire.as_str().into(),
                    ..CancelDialog::default()
                };
                self.show(&id, cancel, out);
            }
        }
    }

    /// The host has gone: nothing will be answered any more.
    pub(super) fn reject_questions(&mut self, out: &mut Outbox<Omp>) {
        let mut asks = Vec::new();
        for open in self.questions.open.iter_mut().filter(|open| !open.answered) {
            open.answered = true;
            let fault = match open.what {
                What::Tool | What::Uri { .. } => ReplyFault::HostError(DISCONNECTED.into()),
                What::Permission | What::Choice => ReplyFault::HostGone,
            };
            asks.push((open.ask, fault));
        }
        for (ask, fault) in asks {
            self.reply(ask, Err(fault), out);
        }
    }

    /// A line of the side channel. What names nothing that is open is ignored.
    pub(super) fn side(&mut self, side: &Side<'_>, out: &mut Outbox<Omp>) {
        match side {
            Side::Ui(response) => self.ui_response(response, side, out),
            Side::ToolUpdate(HostToolUpdate {
                id, partial_result, ..
            }) => {
                if let Some(ask) = self.questions.progress(id) {
                    let content = partial_result.content.iter().map(block).collect();
                    let command = out.call(Command::ReplyPart { ask, content });
                    self.pending.insert(command, Pending::Quiet);
                }
            }
            Side::ToolResult(result) => self.tool_result(result, out),
            Side::UriResult(result) => self.uri_result(result, out),
            Side::Unknown(_) => {}
        }
    }

    fn tool_result(&mut self, line: &HostToolResult<'_>, out: &mut Outbox<Omp>) {
        let Some((ask, _)) = self.questions.answer(&line.id, |what| *what == What::Tool) else {
            return;
        };
        let is_error = line.failed();
        let mut content: Vec<Block> = line.result.content.iter().map(block).collect();
        if is_error && content.iter().all(Block::is_blank) {
            content = Vec::from([Block::Text(TOOL_FAILED.into())]);
        }
        let details = line
            .result
            .details
            .get()
            .map(|details| RawJson(details.as_str().into()));
        self.reply(
            ask,
            Ok(Reply::Tool {
                content,
                is_error,
                details,
            }),
            out,
        );
    }

    fn uri_result(&mut self, line: &HostUriResult<'_>, out: &mut Outbox<Omp>) {
        let answered = self
            .questions
            .answer(&line.id, |what| matches!(what, What::Uri { .. }));
        let Some((ask, What::Uri { url, write })) = answered else {
            return;
        };
        let text = |value: &Any<'_>| {
            value
                .string()
                .map(String::from)
                .filter(|text| !text.is_empty())
        };
        let reply = if line.failed() {
            let error = text(&line.error).or_else(|| text(&line.content));
            let error = error.map_or_else(
                || {
                    let operation = if write { "write" } else { "read" };
                    format!("Host URI {operation} failed for {url}").into()
                },
                |error| Text::from(error.as_str()),
            );
            Err(ReplyFault::HostError(error))
        } else {
            Ok(Reply::Uri {
                body: line.content.string().unwrap_or_default().as_ref().into(),
                mime: line.content_type.string().map(|mime| (&*mime).into()),
                notes: line.notes().iter().map(|note| (&**note).into()).collect(),
                immutable: line.immutable.bool(),
            })
        };
        self.reply(ask, reply, out);
    }

    fn ui_response(&mut self, response: &UiResponse<'_>, side: &Side<'_>, out: &mut Outbox<Omp>) {
        let found = self.questions.answer(&response.id, |what| {
            matches!(what, What::Permission | What::Choice)
        });
        let Some((ask, what)) = found else {
            if self.questions.dialogs.remove(&*response.id) {
                let mut line = Vec::new();
                crate::protocol::omp::wire::HostLine::Side(side.clone()).encode(&mut line);
                out.ask(OmpAsk::Ui(json(&line)));
            }
            return;
        };
        let answer = response.answer();
        let reply = if what == What::Permission {
            permission(&answer)
        } else {
            Ok(Reply::Choice(choice(&answer)))
        };
        self.reply(ask, reply, out);
    }

    /// A line of the embedder's own that only this protocol has.
    pub(super) fn extra_line(&mut self, extra: &OmpExtra, out: &mut Outbox<Omp>) {
        let mut members = core::mem::take(&mut self.members);
        if let Ok(line) = extra.read(&mut members) {
            use crate::protocol::omp::wire::AgentLine;
            match &line {
                AgentLine::Event(event) => {
                    let kind = event.tag().unwrap_or_default();
                    self.printer.event_with(kind, out, |out| line.encode(out));
                }
                AgentLine::Ui(request) => {
                    if request.method.is_dialog() && self.questions.dialogs.len() < MOST_DIALOGS {
                        self.questions.dialogs.insert((*request.id).into());
                    }
                    self.printer.frame(out, |out| line.encode(out));
                }
                AgentLine::Frame(frame) => {
                    if self.admits(frame) {
                        self.printer.frame(out, |out| line.encode(out));
                    }
                }
                // Responses are the Server's own, and what isn't of the contract stays where it is.
                AgentLine::Response(_) | AgentLine::Unknown { .. } => {}
            }
        }
        self.members = members;
    }
}

/// The title of an approval: hosts read the tool's name from its first line.
fn title(permission: &PermissionAsk) -> String {
    let mut title = match permission.call {
        Some(_) => format!("Allow tool: {}", permission.tool),
        None => String::from(&*permission.summary),
    };
    let mut line = |text: &str| {
        if !text.is_empty() {
            title.push('\n');
            title.push_str(text);
        }
    };
    if permission.call.is_some() {
        line(&permission.summary);
    }
    if !permission.detail.is_empty() && !permission.summary.contains(&*permission.detail) {
        line(&permission.detail);
    }
    if let Some(body) = &permission.body {
        line(body);
    }
    match &permission.reason {
        AskReason::Gate => {}
        AskReason::UnapprovedSource { path, sha } => {
            line(&format!("Unapproved content: {path} ({sha})"));
        }
        AskReason::Network { host } => line(&format!("Network: {host}")),
        AskReason::Other(why) => line(why),
    }
    for name in &permission.env {
        line(&format!("Environment variable: {name}"));
    }
    title
}

fn permission(answer: &UiAnswer<'_>) -> Result<Reply, ReplyFault> {
    match answer {
        UiAnswer::Value(value) if value == "Approve" => Ok(Reply::Allow {
            input: None,
            updates: Vec::new(),
        }),
        UiAnswer::Value(value) if value == "Deny" => Ok(Reply::Deny {
            message: None,
            interrupt: false,
        }),
        UiAnswer::Cancelled { .. } => Err(ReplyFault::HostCancelled),
        UiAnswer::Value(_)
        | UiAnswer::Confirmed(_)
        | UiAnswer::Answers(_)
        | UiAnswer::Malformed => Err(ReplyFault::Malformed("neither Approve nor Deny".into())),
    }
}

fn choice(answer: &UiAnswer<'_>) -> Option<Text> {
    match answer {
        UiAnswer::Value(value) => Some((&**value).into()),
        UiAnswer::Confirmed(yes) => Some(if *yes { "true" } else { "false" }.into()),
        UiAnswer::Answers(answers) => {
            let mut out = Vec::new();
            out.push(b'[');
            for (index, answer) in answers.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                answer.put(&mut out);
            }
            out.push(b']');
            Some(json(&out).0)
        }
        UiAnswer::Cancelled { .. } | UiAnswer::Malformed => None,
    }
}

/// A block of the host's.
fn block(block: &WireBlock<'_>) -> Block {
    match block {
        WireBlock::Text(text) => Block::Text((&*text.text).into()),
        WireBlock::Image(image) => Block::Media {
            kind: MediaKind::Image,
            source: Source::Inline {
                mime: (&*image.mime_type).into(),
                base64: (&*image.data).into(),
            },
        },
        WireBlock::Thinking(_)
        | WireBlock::RedactedThinking(_)
        | WireBlock::ToolCall(_)
        | WireBlock::Fallback(_)
        | WireBlock::ServerTool(_)
        | WireBlock::Unknown(_) => {
            let mut out = Vec::new();
            block.encode(&mut out);
            Block::Opaque(json(&out))
        }
    }
}
