//! What the agent says, event by event.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::server::Face;
use super::turn::text_of;
use super::wire::{
    ApprovalRequest, ApprovalSettled, Diff, Error, Hello, HookFailed, Names, ToolEnd, ToolStart,
    Transcript, TranscriptMessage,
};
use super::{Openmax, PROTO, PROTOCOL_VERSION};
use crate::json::{self, Kind as JsonKind, Raw, ScanRules};
use crate::protocol::Outbox;
use crate::protocol::ids::uuid;
use crate::protocol::said::{joined, output};
use crate::vocab::*;

/// The most bytes of one message in a `transcript`, its ellipsis included.
const TRANSCRIPT_MESSAGE: usize = 4096;
/// The most bytes of all messages in a `transcript`.
const TRANSCRIPT_TOTAL: usize = 256 * 1024;

impl Face {
    /// One event.
    pub(super) fn said(&mut self, event: &Event, out: &mut Outbox<Openmax>) {
        // Questions are the same whoever asks; nothing else of a nested run has a line.
        if let What::Asked { ask, body } = &event.what {
            return self.asked(*ask, body, out);
        }
        if let What::AskClosed { ask, how } = &event.what {
            return self.ask_closed(*ask, how, out);
        }
        if event.run != RunId::MAIN {
            return;
        }
        if !matches!(event.what, What::Changed(_)) {
            self.turns.no_change();
        }
        if !matches!(
            event.what,
            What::RetryScheduled { .. } | What::Replied { .. }
        ) {
            self.turns.settle_empty(out);
        }
        self.session_event(event, out);
        if self.turns.is_shown() {
            self.turn_event(&event.what, out);
        }
    }

    /// What concerns the session, whether or not a turn is shown.
    fn session_event(&mut self, event: &Event, out: &mut Outbox<Openmax>) {
        match &event.what {
            What::Opened(info) => self.opened(info, out),
            What::Changed(info) => {
                if self.opened {
                    let silent = self.is_reloading();
                    self.turns.changed(info, silent, out);
                }
            }
            What::Closed { why } => self.closed(why, out),
            What::Replied { command, reply } => self.replied(*command, reply, out),
            What::PromptEnded { prompt, end } => {
                self.turns.prompt_ended(*prompt, end, event.at.mono_us, out)
            }
            What::TurnStarted { .. } => self.turns.turn_started(out),
            What::TurnEnded { pending, .. } => self.turns.turn_ended(*pending),
            What::Settled => self.turns.release(out),
            What::Context { used, window, .. } => self.turns.context(*used, *window, out),
            What::CompactionStarted {
                trigger, tokens, ..
            } => self.turns.compaction_started(*trigger, *tokens),
            What::CompactionEnded { result } => self.turns.compaction_ended(result, out),
            // With no turn to show it in, it is for the person who runs the process.
            What::Notice {
                level: Level::Error,
                text,
                ..
            } if !self.turns.is_shown() => out.diagnostic(text.clone()),
            What::Notice { .. }
            | What::Asked { .. }
            | What::AskClosed { .. }
            | What::Queued { .. }
            | What::PromptApplied { .. }
            | What::StepStarted { .. }
            | What::StepEnded { .. }
            | What::RequestStarted { .. }
            | What::RequestEnded { .. }
            | What::RetryScheduled { .. }
            | What::RetryEnded { .. }
            | What::MessageStarted { .. }
            | What::BlockStarted { .. }
            | What::Delta { .. }
            | What::BlockEnded { .. }
            | What::MessageEnded { .. }
            | What::Message(_)
            | What::ToolStarted { .. }
            | What::Decided { .. }
            | What::ToolProgress { .. }
            | What::ToolEnded { .. }
            | What::ToolSkipped { .. }
            | What::FileChanged { .. }
            | What::Checkpoint { .. }
            | What::Restored { .. }
            | What::Goal(_)
            | What::Job(..)
            | What::RunStarted { .. }
            | What::RunProgress { .. }
            | What::RunEnded { .. }
            | What::HookFailed { .. }
            | What::CompletionRefused { .. } => {}
        }
    }

    /// Events of the turn that the host asked for.
    fn turn_event(&mut self, what: &What, out: &mut Outbox<Openmax>) {
        let turns = &mut self.turns;
        match what {
            What::StepStarted { .. } => turns.step_started(),
            What::StepEnded { .. } | What::MessageStarted { .. } => turns.write_reply(out),
            What::RequestStarted { .. } => turns.request_started(out),
            What::RequestEnded { outcome, usage, .. } => {
                turns.request_ended(outcome, usage.as_ref(), out)
            }
            What::RetryScheduled {
                attempt, max, why, ..
            } => turns.retry(*attempt, *max, why, out),
            What::MessageEnded {
                message,
                stop,
                kept,
                ..
            } => turns.message_ended(message, stop, *kept, out),
            What::ToolStarted {
                call,
                provider_id,
                name,
                input,
                ..
            } => {
                self.tool_started(*call, provider_id.as_deref(), name, input.as_ref(), out);
            }
            What::ToolEnded {
                call,
                outcome,
                content,
                ..
            } => self.tool_ended(*call, outcome, content, out),
            What::FileChanged {
                call: Some(call),
                path,
                diff,
                added,
                removed,
            } => {
                if let Some(call_id) = turns.calls.wire(*call) {
                    let line = Diff {
                        call_id: call_id.into(),
                        path: (&**path).into(),
                        diff: (&**diff).into(),
                        added: (*added).into(),
                        removed: (*removed).into(),
                    };
                    turns.printer.event(&line, out);
                }
            }
            What::HookFailed {
                hook,
                point,
                detail,
            } => {
                let line = HookFailed {
                    hook: (&**hook).into(),
                    event: point_name(*point).into(),
                    detail: (&**detail).into(),
                };
                turns.printer.event(&line, out);
            }
            What::CompletionRefused {
                hook,
                reason,
                continuation,
                left,
            } => {
                turns.refused_completion(hook, reason, (*continuation, *left), out);
            }
            What::Notice {
                level: Level::Error,
                text,
                ..
            } => {
                turns.printer.event(
                    &Error {
                        message: (&**text).into(),
                    },
                    out,
                );
            }
            What::Message(message) => turns.message(message, out),
            // The session's own, said above.
            What::Opened(_)
            | What::Changed(_)
            | What::Closed { .. }
            | What::Replied { .. }
            | What::PromptEnded { .. }
            | What::TurnStarted { .. }
            | What::TurnEnded { .. }
            | What::Settled
            | What::Context { .. }
            | What::Asked { .. }
            | What::AskClosed { .. }
            | What::CompactionStarted { .. }
            | What::CompactionEnded { .. } => {}
            // This wire has no lines for these.
            What::Notice {
                level: Level::Debug | Level::Progress | Level::Info | Level::Warning,
                ..
            }
            | What::FileChanged { call: None, .. }
            | What::Queued { .. }
            | What::PromptApplied { .. }
            | What::RetryEnded { .. }
            | What::BlockStarted { .. }
            | What::Delta { .. }
            | What::BlockEnded { .. }
            | What::Decided { .. }
            | What::ToolProgress { .. }
            | What::ToolSkipped { .. }
            | What::Checkpoint { .. }
            | What::Restored { .. }
            | What::Goal(_)
            | What::Job(..)
            | What::RunStarted { .. }
            | What::RunProgress { .. }
            | What::RunEnded { .. } => {}
        }
    }

    /// The handshake: `hello`, and `transcript` when a session goes on. Then the host's lines are heard.
    fn opened(&mut self, info: &SessionInfo, out: &mut Outbox<Openmax>) {
        self.turns.remember(info);
        if self.opened {
            return;
        }
        self.opened = true;
        self.turns.printer.open(&info.session);
        let hello = Hello {
            proto: PROTO.into(),
            protocol_version: PROTOCOL_VERSION,
            session_id: (&*info.session).into(),
            version: (&*self.config.version).into(),
            project: info.root.as_deref().unwrap_or(&info.cwd).into(),
            continued: info.continued,
        };
        out.line(|line| hello.encode(line));
        if info.continued {
            out.line(|line| transcript(info).encode(line));
        }
        self.resume(out);
    }

    fn tool_started(
        &mut self,
        call: CallId,
        provider_id: Option<&str>,
        name: &str,
        input: Option<&ToolInput>,
        out: &mut Outbox<Openmax>,
    ) {
        self.turns.write_reply(out);
        let Some(call_id) = self.turns.calls.begin(call, provider_id) else {
            return;
        };
        let args = match input {
            Some(ToolInput::Object(RawJson(text))) if !name.is_empty() => text.as_bytes(),
            Some(ToolInput::Object(_) | ToolInput::Unparsed(_)) | None => b"{}",
        };
        let args = object(args).or_else(|| object(b"{}")).unwrap_or(Raw::NULL);
        let line = ToolStart {
            call_id: call_id.into(),
            name: name.into(),
            args,
        };
        self.turns.printer.event(&line, out);
    }

    fn tool_ended(
        &mut self,
        call: CallId,
        outcome: &ToolOutcome,
        content: &[Block],
        out: &mut Outbox<Openmax>,
    ) {
        let Some(call_id) = self.turns.calls.end(call) else {
            return;
        };
        let line = ToolEnd {
            call_id: call_id.into(),
            ok: outcome.is_ok(),
            output: output(content).into(),
        };
        self.turns.printer.event(&line, out);
    }

    /// A question. Permissions go to the host; this wire has no form for the others.
    fn asked(&mut self, ask: AskId, body: &Ask, out: &mut Outbox<Openmax>) {
        let permission = match body {
            Ask::Permission(permission) => permission,
            Ask::Hook(_) => return answer(ask, Err(ReplyFault::HostGone), out),
            Ask::Tool { .. } => {
                return answer(
                    ask,
                    Err(ReplyFault::HostError("openmax hosts run no tools".into())),
                    out,
                );
            }
            Ask::Uri { .. } => {
                return answer(
                    ask,
                    Err(ReplyFault::HostError("openmax hosts serve no URIs".into())),
                    out,
                );
            }
            Ask::Choice(_) => return answer(ask, Ok(Reply::Choice(None)), out),
        };
        if !self.turns.is_shown() {
            return answer(ask, Err(ReplyFault::HostGone), out);
        }
        let unapproved = matches!(permission.reason, AskReason::UnapprovedSource { .. });
        if unapproved && self.config.agent_spawned {
            return answer(
                ask,
                Ok(Reply::Deny {
                    message: None,
                    interrupt: false,
                }),
                out,
            );
        }
        let seed = self.config.seed;
        let name = |number| uuid(&seed, number);
        let line = request(self.approvals.open(ask, name), permission);
        self.turns.printer.event(&line, out);
        if self.is_closing() {
            answer(ask, Err(ReplyFault::HostGone), out);
        }
    }

    pub(super) fn ask_closed(&mut self, ask: AskId, how: &AskClose, out: &mut Outbox<Openmax>) {
        let Some(wire) = self.approvals.close(ask) else {
            return;
        };
        let outcome = match how {
            AskClose::Answered {
                allow: Some(true), ..
            } => "approved",
            AskClose::Answered {
                allow: Some(false) | None,
                ..
            }
            | AskClose::Superseded
            | AskClose::Withdrawn
            | AskClose::HostGone
            | AskClose::Fault(_) => "declined",
            AskClose::TimedOut => "timed_out",
            AskClose::Cancelled => "cancelled",
        };
        self.turns.printer.event(
            &ApprovalSettled {
                approval_id: wire.into(),
                outcome: outcome.into(),
            },
            out,
        );
    }
}

/// The value, if it is an object.
fn object(text: &[u8]) -> Option<Raw<'_>> {
    json::scan_value(text, &ScanRules::LENIENT)
        .ok()
        .filter(|value| value.kind() == JsonKind::Object)
}

fn answer(ask: AskId, reply: Result<Reply, ReplyFault>, out: &mut Outbox<Openmax>) {
    out.call(Command::Reply { ask, reply });
}

/// The line of a permission. What has no member of its own goes into `detail`.
fn request<'a>(wire: &'a str, permission: &'a PermissionAsk) -> ApprovalRequest<'a> {
    let mut detail = Cow::Borrowed(&*permission.detail);
    let (reason, source_path, source_sha) = match &permission.reason {
        AskReason::Gate => ("gate", "", ""),
        AskReason::UnapprovedSource { path, sha } => {
            ("unapproved_source", &**path, sha.get(..12).unwrap_or(sha))
        }
        AskReason::Network { host } => {
            detail = joined(&format!("network access to {host}"), " | ", &detail).into();
            ("gate", "", "")
        }
        AskReason::Other(why) => {
            detail = joined(why, " | ", &detail).into();
            ("gate", "", "")
        }
    };
    if let Some(body) = &permission.body {
        detail = joined(&detail, "\n", body).into();
    }
    ApprovalRequest {
        approval_id: wire.into(),
        name: if permission.tool.is_empty() {
            &*permission.summary
        } else {
            &*permission.tool
        }
        .into(),
        summary: (&*permission.summary).into(),
        detail,
        reason: reason.into(),
        source_path: source_path.into(),
        source_sha: source_sha.into(),
        env: Names(permission.env.iter().map(|name| (&**name).into()).collect()),
    }
}

/// The oldest messages, within both caps, which count bytes of UTF-8.
fn transcript(info: &SessionInfo) -> Transcript<'_> {
    let mut messages = Vec::new();
    let mut truncated = false;
    let mut total = 0;
    for message in info.summarised.iter().chain(&info.history) {
        let Some((role, text)) = shown(message) else {
            continue;
        };
        let content = capped(text);
        truncated |= matches!(content, Capped::Cut(_));
        let content = content.text();
        total += content.len();
        if total > TRANSCRIPT_TOTAL {
            truncated = true;
            break;
        }
        messages.push(TranscriptMessage {
            role: role.into(),
            content,
        });
    }
    Transcript {
        session_id: (&*info.session).into(),
        messages,
        truncated,
    }
}

/// The role and text of a message that a transcript shows.
fn shown(message: &Arc<Message>) -> Option<(&'static str, Cow<'_, str>)> {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool { .. } | Role::Note | Role::Summary | Role::Shell | Role::Other(_) => {
            return None;
        }
    };
    let text = text_of(message);
    (!text.trim().is_empty()).then_some((role, text))
}

enum Capped<'a> {
    Whole(Cow<'a, str>),
    Cut(String),
}

impl<'a> Capped<'a> {
    fn text(self) -> Cow<'a, str> {
        match self {
            Capped::Whole(text) => text,
            Capped::Cut(text) => text.into(),
        }
    }
}

fn capped(text: Cow<'_, str>) -> Capped<'_> {
    const ELLIPSIS: &str = "…";
    if text.len() <= TRANSCRIPT_MESSAGE {
        return Capped::Whole(text);
    }
    let end = text.floor_char_boundary(TRANSCRIPT_MESSAGE - ELLIPSIS.len());
    let mut cut = String::from(text.get(..end).unwrap_or_default());
    cut.push_str(ELLIPSIS);
    Capped::Cut(cut)
}

/// This wire's name of a hook point.
fn point_name(point: HookPoint) -> &'static str {
    match point {
        HookPoint::PromptSubmit => "user_prompt_submit",
        HookPoint::PreTool => "pre_tool_use",
        HookPoint::PostTool => "post_tool_use",
        HookPoint::Permission => "permission_request",
        HookPoint::TurnEnd => "turn_end",
        HookPoint::RunEnd => "run_end",
        HookPoint::PreCompact => "pre_compact",
        HookPoint::SessionSwitch => "session_switch",
        HookPoint::SessionStart => "session_start",
        HookPoint::SessionEnd => "session_end",
        HookPoint::Notification => "notification",
    }
}
