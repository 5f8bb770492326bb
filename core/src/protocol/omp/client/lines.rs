//! The agent's frames, one by one.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::asks::{Family, approval, choice};
use super::convert::{failure, goal, input, raw};
use super::runs::hear;
use super::{ClientFace, Out};
use crate::protocol::omp::wire::{
    AgentLine, AutoCompactionEnd, AutoCompactionStart, CompactionReason, Event as Line, Frame,
    HostToolCall, HostUriRequest, Kept, Message, MessageEnd, NoticeLevel, StopReason, UiMethod,
    UiRequest, UriOperation, role_of,
};
use crate::protocol::omp::{Generation, OmpExtra};
use crate::vocab::*;

impl ClientFace {
    /// Acts on a frame.
    pub(super) fn hear(&mut self, line: &AgentLine<'_>, out: &mut Out) {
        if self.takes_back(line, out) {
            return;
        }
        match line {
            AgentLine::Response(response) => self.respond(response, out),
            AgentLine::Event(event) => {
                self.needs_session(line.kind(), out);
                self.release_ending(out);
                self.event(event, line, out);
            }
            AgentLine::Frame(frame) => self.other_frame(frame, line, out),
            AgentLine::Ui(request) => self.ui(request, line, out),
            AgentLine::Unknown { .. } => extra(line, out),
        }
    }

    fn event(&mut self, event: &Line<'_>, line: &AgentLine<'_>, out: &mut Out) {
        match event {
            Line::AgentStart(_) => self.agent_start(out),
            Line::AgentEnd(it) => {
                if it.yielded.is_some() {
                    self.tells(Generation::G2);
                }
                self.agent_end(it, out);
            }
            Line::MessageEnd(it) => self.message_end(it, event, out),
            Line::MessageStart(it) => {
                if it.message_id.is_some() {
                    self.tells(Generation::G2);
                }
                // Other messages are told by their ends.
                if role_of(it.message).as_deref() == Some("assistant") {
                    self.run(event, out);
                }
            }
            Line::TurnStart(_)
            | Line::TurnEnd(_)
            | Line::MessageUpdate(_)
            | Line::ToolExecutionStart(_)
            | Line::ToolExecutionUpdate(_)
            | Line::ToolExecutionEnd(_)
            | Line::AutoRetryStart(_)
            | Line::AutoRetryEnd(_) => self.run(event, out),
            Line::AutoCompactionStart(it) => self.compaction_start(it, out),
            Line::AutoCompactionEnd(it) => self.compaction_end(it, out),
            Line::RetryFallbackApplied(it) => {
                out.say(What::Notice {
                    level: Level::Info,
                    code: Some("model_fallback".into()),
                    text: format!("{} takes over from {}", &*it.to, &*it.from).into(),
                });
                self.learn_model_name(&it.to);
                self.changed(Seen::Real, out);
            }
            Line::RetryFallbackSucceeded(it) => {
                self.learn_model_name(&it.model);
                self.changed(Seen::Real, out);
            }
            Line::ThinkingLevelChanged(it) => {
                self.info.settings.thinking = it.thinking_level.as_deref().map(Text::from);
                self.changed(Seen::Real, out);
            }
            // It names no model: a `config_update` or the next look at the state does.
            Line::ModelChanged(_) => {}
            Line::Notice(it) => out.say(What::Notice {
                level: match &it.level {
                    NoticeLevel::Info | NoticeLevel::Other(_) => Level::Info,
                    NoticeLevel::Warning => Level::Warning,
                    NoticeLevel::Error => Level::Error,
                },
                code: it.source.as_deref().map(Text::from),
                text: (&*it.message).into(),
            }),
            Line::GoalUpdated(it) => {
                self.tells(Generation::G3);
                let told = it.goal.0.as_ref().and_then(goal);
                out.say(What::Goal(GoalEvent::Changed(told)));
            }
            Line::QueueUpdate(_) => self.tells(Generation::G3),
            Line::ToolStreamUpdate(_)
            | Line::ConfigWarningsChanged(_)
            | Line::AdvisorCostChanged(_)
            | Line::AdvisorYielded(_)
            | Line::TodoAutoClear(_)
            | Line::TtsrTriggered(_)
            | Line::TodoReminder(_)
            | Line::IrcMessage(_)
            | Line::CacheWarmingStart(_)
            | Line::CacheWarmingEnd(_)
            | Line::PersonaChanged(_)
            | Line::Unknown(_) => extra(line, out),
        }
    }

    /// An event of the outermost run.
    fn run(&mut self, event: &Line<'_>, out: &mut Out) {
        self.enter(Cause::NotSaid, out);
        if let Some(turn) = &mut self.turn {
            hear(&mut turn.flow, event, &mut self.asks, out);
        }
    }

    fn message_end(&mut self, told: &MessageEnd<'_>, event: &Line<'_>, out: &mut Out) {
        if told.message_id.is_some() {
            self.tells(Generation::G2);
        }
        match Message::decode(told.message) {
            Ok(Message::User(user)) => return self.user_message(&user, told.message, out),
            Ok(Message::Assistant(reply)) if reply.stop_reason == Some(StopReason::Aborted) => {
                self.enter(Cause::NotSaid, out);
                self.cancel_hits(out);
            }
            Ok(Message::Custom(custom)) if *custom.custom_type == *"async-result" => {
                self.enter(Cause::Job, out);
            }
            // What an extension says outside of any run begins none.
            Ok(
                Message::Custom(_)
                | Message::Hook(_)
                | Message::BashExecution(_)
                | Message::PythonExecution(_)
                | Message::BranchSummary(_)
                | Message::CompactionSummary(_)
                | Message::FileMention(_)
                | Message::Developer(_)
                | Message::Unknown(_),
            ) if self.turn.is_none() && !self.starting => return self.loose(told, out),
            Ok(_) => {}
            Err(error) => return out.finding(format!("a message that can't be read: {error}")),
        }
        self.run(event, out);
    }

    /// A message outside of any run.
    fn loose(&mut self, told: &MessageEnd<'_>, out: &mut Out) {
        let id = out.ids.message();
        let made = super::convert::note(told.message, id, out);
        out.say(What::Message(made.into()));
    }

    fn compaction_start(&mut self, told: &AutoCompactionStart<'_>, out: &mut Out) {
        if self.compacting {
            out.finding("a compaction began before the end of the one before");
            self.end_compaction(CompactionFault::Cancelled, out);
        }
        if let Some(turn) = &mut self.turn {
            turn.flow.between(&mut self.asks, out);
        }
        self.compacting = true;
        out.say(What::CompactionStarted {
            trigger: match &told.reason {
                CompactionReason::Overflow => Trigger::Overflow,
                CompactionReason::Threshold
                | CompactionReason::Idle
                | CompactionReason::Incomplete
                | CompactionReason::Other(_) => Trigger::Auto,
            },
            span: None,
            tokens: None,
        });
    }

    fn compaction_end(&mut self, told: &AutoCompactionEnd<'_>, out: &mut Out) {
        if !self.compacting {
            if let Some(turn) = &mut self.turn {
                turn.flow.between(&mut self.asks, out);
            }
            out.infer(What::CompactionStarted {
                trigger: Trigger::Auto,
                span: None,
                tokens: None,
            });
        }
        self.compacting = false;
        let text = told.error_message.as_deref();
        let result = match &told.result {
            Some(Kept::Known(result)) => Ok(super::responses::compacted(result)),
            Some(Kept::Other(_)) => Ok(Compacted::default()),
            None if told.aborted => Err(CompactionFault::Cancelled),
            None => Err(match text {
                Some(text) if told.skipped != Some(true) => {
                    CompactionFault::Failed(failure(text, None, None))
                }
                text => CompactionFault::Nothing(text.unwrap_or("nothing to compact").into()),
            }),
        };
        out.say(What::CompactionEnded { result });
    }

    fn other_frame(&mut self, frame: &Frame<'_>, line: &AgentLine<'_>, out: &mut Out) {
        match frame {
            Frame::Ready(ready) => self.ready(ready, out),
            Frame::PromptResult(it) => {
                self.needs_session(line.kind(), out);
                self.prompt_result(it, out);
            }
            Frame::SessionSettled(_) => {
                self.needs_session(line.kind(), out);
                self.session_settled(out);
            }
            Frame::AvailableCommandsUpdate(it) => {
                if self.learn_commands(&it.commands) {
                    self.changed(Seen::Real, out);
                }
            }
            Frame::CommandOutput(it) => {
                self.needs_session(line.kind(), out);
                if self.printed.len() >= MOST_PRINTED {
                    self.say_printed(None, out);
                }
                self.printed.push((&*it.text).into());
            }
            Frame::SessionInfoUpdate(it) => {
                if let Some(title) = &it.title {
                    self.info.name = Some((&**title).into());
                }
                self.info.session = (&*it.session_id).into();
                self.changed(Seen::Real, out);
            }
            Frame::ConfigUpdate(it) => {
                if let Some(Kept::Known(model)) = &it.model {
                    self.learn_model(model);
                }
                if let Some(level) = &it.thinking_level {
                    self.info.settings.thinking = Some((&**level).into());
                }
                self.changed(Seen::Real, out);
            }
            Frame::ExtensionError(it) => out.say(What::HookFailed {
                hook: (&*it.extension_path).into(),
                point: point(&it.event),
                detail: if point(&it.event) == HookPoint::Notification {
                    format!("{}: {}", &*it.event, &*it.error).into()
                } else {
                    (&*it.error).into()
                },
            }),
            Frame::FrameError(it) => out.finding(format!(
                "the agent couldn't send a {} frame: {}",
                it.original_type.as_deref().unwrap_or("certain"),
                crate::protocol::heard::cut(&it.error)
            )),
            // The frame layer takes them; one that came in pieces itself is none.
            Frame::Chunk(_) => out.finding("a piece of a frame inside of one"),
            Frame::HostToolCall(it) => self.host_tool(it, line, out),
            Frame::HostUriRequest(it) => self.host_uri(it, line, out),
            Frame::HostToolCancel(it) => self.take_back(&it.target_id, Family::Tool, out),
            Frame::HostUriCancel(it) => self.take_back(&it.target_id, Family::Uri, out),
            Frame::SubagentLifecycle(it) => {
                self.needs_session(line.kind(), out);
                let turn = self.turn.as_ref();
                let call = it.payload.parent_tool_call_id.as_deref();
                let call = call.and_then(|wire| turn?.flow.calls.known(wire));
                let most = self.config.reply_bytes;
                self.runs.lifecycle(&it.payload, call, most, out);
            }
            Frame::SubagentEvent(it) => {
                if !self.runs.event(&it.payload.id, it.payload.event, out) {
                    extra(line, out);
                }
            }
            Frame::SubagentProgress(_)
            | Frame::LivePhase(_)
            | Frame::LiveLevels(_)
            | Frame::LiveTranscript(_)
            | Frame::LiveEnd(_)
            | Frame::BtwDelta(_)
            | Frame::BtwRecord(_)
            | Frame::Unknown(_) => extra(line, out),
        }
    }

    /// A call of the host's tool. It may come before the frame that says that the call began.
    fn host_tool(&mut self, told: &HostToolCall<'_>, line: &AgentLine<'_>, out: &mut Out) {
        self.needs_session(line.kind(), out);
        self.release_ending(out);
        self.enter(Cause::NotSaid, out);
        let Some(turn) = &mut self.turn else { return };
        turn.flow.settle_failed(&mut self.asks, out);
        let (spot, wire) = (turn.flow.spot(), &*told.tool_call_id);
        let calls = &mut turn.flow.calls;
        let given = input(told.arguments);
        let call = calls.begin(wire, &told.tool_name, given, Seen::Inferred, spot, out);
        let input = told.arguments.get().map(raw);
        let body = Ask::Tool {
            call,
            name: (&*told.tool_name).into(),
            input: input.unwrap_or_else(|| RawJson("{}".into())),
        };
        self.asks.open(&told.id, body, None, Some(calls), out);
    }

    fn host_uri(&mut self, told: &HostUriRequest<'_>, line: &AgentLine<'_>, out: &mut Out) {
        self.needs_session(line.kind(), out);
        let op = match &told.operation {
            UriOperation::Read => UriOp::Read,
            UriOperation::Write => UriOp::Write,
            UriOperation::Other(word) => {
                out.finding(format!("a URI of the host's is to be {word:?}"));
                return extra(line, out);
            }
        };
        let body = Ask::Uri {
            op,
            uri: (&*told.url).into(),
            body: told.content.as_deref().map(Text::from),
        };
        self.asks.open(&told.id, body, None, None, out);
    }

    /// The agent takes a question back.
    fn take_back(&mut self, wire: &str, family: Family, out: &mut Out) {
        let calls = self.turn.as_mut().map(|turn| &mut turn.flow.calls);
        self.asks.cancel(wire, family, calls, out);
    }

    /// A request to the screen: a question, a notice, or presentation.
    fn ui(&mut self, request: &UiRequest<'_>, line: &AgentLine<'_>, out: &mut Out) {
        if let UiMethod::Cancel(it) = &request.method {
            return self.take_back(&it.target_id, Family::Ui, out);
        }
        if let UiMethod::Notify(it) = &request.method {
            return out.say(What::Notice {
                level: match it.notify_type.as_deref() {
                    Some("warning") => Level::Warning,
                    Some("error") => Level::Error,
                    Some(_) | None => Level::Info,
                },
                code: None,
                text: (&*it.message).into(),
            });
        }
        let Some(asked) = choice(&request.method) else {
            return extra(line, out);
        };
        self.needs_session(line.kind(), out);
        let timeout = asked.timeout_us;
        if let Some((tool, said)) = approval(&request.method)
            && let Some(turn) = &mut self.turn
        {
            turn.flow.settle_failed(&mut self.asks, out);
            let spot = turn.flow.spot();
            let calls = &mut turn.flow.calls;
            if let Some(call) = calls.named(tool, spot, out) {
                let due = timeout.map(|wait| out.now().mono_us.saturating_add(wait));
                let body = Ask::Permission(permission(call, tool, said, due).into());
                return self.asks.open(&request.id, body, timeout, Some(calls), out);
            }
            out.finding("an approval of a tool that no call is of; it is asked as a choice");
        }
        let body = Ask::Choice(asked.into());
        self.asks.open(&request.id, body, timeout, None, out);
    }
}

/// Texts of slash commands that wait for the response of theirs.
const MOST_PRINTED: usize = 256;

fn permission(call: CallId, tool: &str, said: &str, due: Option<u64>) -> PermissionAsk {
    let summary = said.lines().next().filter(|line| !line.is_empty());
    PermissionAsk {
        call: Some(call),
        tool: tool.into(),
        reason: AskReason::Gate,
        summary: summary.unwrap_or(tool).into(),
        detail: said.into(),
        body: None,
        suggestions: Vec::new(),
        env: Vec::new(),
        due,
    }
}

/// A line of this protocol's own.
fn extra(line: &AgentLine<'_>, out: &mut Out) {
    let mut text = Vec::new();
    line.encode(&mut text);
    let text = String::from_utf8_lossy(&text);
    out.extra(OmpExtra {
        kind: line.kind().into(),
        line: RawJson(text.into()),
    });
}

/// The hook point of an extension's event.
fn point(name: &str) -> HookPoint {
    match name {
        "input" | "before_agent_start" => HookPoint::PromptSubmit,
        "tool_call" => HookPoint::PreTool,
        "tool_result" => HookPoint::PostTool,
        "session_start" => HookPoint::SessionStart,
        "session_shutdown" => HookPoint::SessionEnd,
        "session_before_switch" | "session_before_branch" | "session_switch" => {
            HookPoint::SessionSwitch
        }
        "session_before_compact" => HookPoint::PreCompact,
        _ => HookPoint::Notification,
    }
}
