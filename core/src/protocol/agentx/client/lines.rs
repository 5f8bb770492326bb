//! Lines of the agent, by their type.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::asks::{Kind, OpenAsk, form, questions};
use super::calls::{Given, cut_id};
use super::convert::{content, raw, shared, suggestions};
use super::flow::Results;
use super::{ClientFace, Out};
use crate::json::{Kind as JsonKind, Raw};
use crate::protocol::agentx::decision::odd_member;
use crate::protocol::agentx::wire::{
    AgentLine, AskUserQuestion, Assistant, Block as WireBlock, CanUseTool, CommandLifecycle,
    CompactBoundary, CompactTrigger, Content, ControlRequest, Elicitation, HostLine, Kept,
    LifecycleState, NETWORK_TOOL, Operation, PermissionDenied, Record, Response, Said, Status,
    StreamLine, System, User,
};
use crate::protocol::heard::message;
use crate::vocab::*;

/// How the agent's own words about a cancel begin.
const INTERRUPTED: &str = "[Request interrupted";

impl ClientFace {
    /// One line. `false`: it has no neutral meaning, and is passed on as it is.
    pub(super) fn hear(&mut self, line: &AgentLine<'_>, out: &mut Out) -> bool {
        match line {
            AgentLine::Record(record) => return self.record(record, out),
            AgentLine::System(system) => return self.system(system, out),
            AgentLine::Request(request) => return self.request(request, out),
            AgentLine::Response(response) => return self.response(response, out),
            AgentLine::Cancel(cancel) => {
                let Some(id) = cancel.request_id.name() else {
                    out.finding("a request is taken back without its id");
                    return false;
                };
                let stopped = self.turn.as_ref().is_some_and(|turn| turn.flow.stopping);
                let (calls, asks) = self.book.parts();
                asks.cancel(id, calls, stopped, out);
            }
            AgentLine::Unknown { .. } => return false,
        }
        true
    }

    fn record(&mut self, record: &Record<'_>, out: &mut Out) -> bool {
        match record {
            Record::User(user) => self.user(user, out),
            Record::Assistant(told) => self.assistant(told, out),
            Record::Result(told) => self.result(told, out),
            Record::Stream(told) => return self.stream(told, out),
            Record::ToolProgress(told) => {
                let wire = &*told.tool_use_id;
                let known = self
                    .book
                    .calls
                    .run_of(wire)
                    .map(|run| self.spot_in(run, out));
                let parent = told.parent_tool_use_id.value().map(|id| &**id);
                if let Some(spot) = known.or_else(|| self.spot_of(parent, out)) {
                    self.book
                        .calls
                        .begin(wire, &told.tool_name, None, spot, out);
                    // Seconds, with a fraction.
                    let seconds = told.elapsed_time_seconds.f64();
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                    let elapsed_us = (seconds.clamp(0.0, 1e9) * 1e6) as u64;
                    self.book.calls.progress(wire, elapsed_us, out);
                }
            }
            Record::CommandLifecycle(told) => self.lifecycle(told, out),
            Record::KeepAlive(_) => {}
            Record::AuthStatus(_)
            | Record::RateLimit(_)
            | Record::ToolUseSummary(_)
            | Record::PromptSuggestion(_)
            | Record::StreamlinedText(_)
            | Record::StreamlinedToolUseSummary(_)
            | Record::ImportResult(_)
            | Record::ImportRejected(_)
            | Record::Unknown(_) => return false,
        }
        true
    }

    /// Where a call of the main run, or of one with this parent, would begin.
    fn spot_of(&mut self, parent: Option<&str>, out: &mut Out) -> Option<super::calls::Spot> {
        if let Some(parent) = parent {
            let most = self.config.reply_bytes;
            let flow = self.runs.of_parent(parent, most, &self.book, out)?;
            return Some(flow.spot());
        }
        self.content(out);
        self.turn.as_ref().map(|turn| turn.flow.spot())
    }

    /// A call begins, in whichever run it belongs to.
    pub(super) fn begin_call(
        &mut self,
        wire: &str,
        name: &str,
        input: Option<ToolInput>,
        out: &mut Out,
    ) -> CallId {
        let run = self.book.calls.run_of(wire).unwrap_or(RunId::MAIN);
        let spot = self.spot_in(run, out);
        self.book.calls.begin(wire, name, input, spot, out)
    }

    /// Where a call of this run would begin; the main one's, where the run is over.
    fn spot_in(&mut self, run: RunId, out: &mut Out) -> super::calls::Spot {
        if let Some(flow) = self.runs.flow(run) {
            return flow.spot();
        }
        self.content(out);
        let nowhere = super::calls::Spot {
            run: RunId::MAIN,
            placed: false,
            stopped: false,
        };
        let turn = self.turn.as_ref();
        turn.map_or(nowhere, |turn| turn.flow.spot())
    }

    fn assistant(&mut self, told: &Assistant<'_>, out: &mut Out) {
        let failed = &*told.message.model == "<synthetic>" && told.error.is_some();
        if let Some(parent) = told.parent_tool_use_id.value() {
            let most = self.config.reply_bytes;
            if let Some(flow) = self.runs.of_parent(parent, most, &self.book, out) {
                if failed {
                    flow.gave_up(told, &mut self.book, out);
                } else {
                    flow.assistant(told, &mut self.book, out);
                }
            }
            return;
        }
        self.content(out);
        if let Some(turn) = &mut self.turn {
            if failed {
                turn.flow.gave_up(told, &mut self.book, out);
            } else {
                turn.flow.assistant(told, &mut self.book, out);
            }
        }
    }

    fn stream(&mut self, told: &StreamLine<'_>, out: &mut Out) -> bool {
        let Kept::Known(event) = &told.event else {
            return false;
        };
        if let Some(parent) = told.parent_tool_use_id.value() {
            let most = self.config.reply_bytes;
            if let Some(flow) = self.runs.of_parent(parent, most, &self.book, out) {
                flow.stream(event, &mut self.book, out);
            }
            return true;
        }
        self.content(out);
        if let Some(turn) = &mut self.turn {
            turn.flow.stream(event, &mut self.book, out);
        }
        true
    }

    /// A user's record: a replay, results of tools, or what the agent itself says in a person's place.
    fn user(&mut self, told: &User<'_>, out: &mut Out) {
        if told.is_replay == Some(true) {
            return self.replay(told, out);
        }
        let Some(Kept::Known(said)) = &told.message else {
            return out.finding("a user's record without a message that can be read");
        };
        let (results, rest) = sorted(told, said);
        let parent = told.parent_tool_use_id.value().map(|id| &**id);
        if !results.is_empty() {
            self.results(results, parent, out);
        }
        if !rest.is_empty() {
            self.said_for_user(told, rest, parent, out);
        }
    }

    fn replay(&mut self, told: &User<'_>, out: &mut Out) {
        let Some(uuid) = &told.uuid else {
            return out.finding("a replay without the id of its prompt");
        };
        let Some(id) = self.prompts.of(uuid) else {
            return;
        };
        if self.turn.is_some() {
            self.prompt_begins(id, out);
        } else {
            // Its turn begins with what comes next, if it needs one.
            self.replayed = Some(id);
            if let Some(known) = self.prompts.get(id) {
                known.told = false;
            }
        }
    }

    fn results(&mut self, results: Results, parent: Option<&str>, out: &mut Out) {
        for (wire, given) in results {
            let failed = given.error;
            self.runs.call_over(&wire, failed, &mut self.book, out);
            // A call ends where it was made, whatever its result says of that.
            let run = self.book.calls.run_of(&wire);
            if let Some(flow) = run.and_then(|run| self.runs.flow(run)) {
                flow.tool_result(&wire, given, &mut self.book, out);
                continue;
            }
            if let (Some(parent), None) = (parent, run) {
                let most = self.config.reply_bytes;
                if let Some(flow) = self.runs.of_parent(parent, most, &self.book, out) {
                    flow.tool_result(&wire, given, &mut self.book, out);
                }
                continue;
            }
            self.content(out);
            if let Some(turn) = &mut self.turn {
                turn.flow.tool_result(&wire, given, &mut self.book, out);
            }
        }
    }

    /// What stands in a person's place and nobody wrote.
    fn said_for_user(
        &mut self,
        told: &User<'_>,
        blocks: Vec<Block>,
        parent: Option<&str>,
        out: &mut Out,
    ) {
        let text = super::convert::joined(&blocks);
        let interrupted = text.starts_with(INTERRUPTED);
        if let Some(parent) = parent {
            let most = self.config.reply_bytes;
            let flow = self.runs.of_parent(parent, most, &self.book, out);
            if let (true, Some(flow)) = (interrupted, flow) {
                flow.interrupted(&mut self.book, out);
            }
            return;
        }
        self.content(out);
        let Some(turn) = &mut self.turn else { return };
        let origin = if interrupted {
            turn.flow.interrupted(&mut self.book, out);
            Origin::Interrupted
        } else {
            turn.flow.reply_over(None, &mut self.book, out);
            Origin::Harness
        };
        let id = out.ids.message();
        let mut made = message(id, Role::User, shared(blocks), origin, out);
        made.details = told.tool_use_result.get().map(raw);
        out.say(What::Message(Arc::new(made)));
    }

    /// What becomes of a prompt.
    fn lifecycle(&mut self, told: &CommandLifecycle<'_>, out: &mut Out) {
        let uuid = &*told.command_uuid;
        let Some(id) = self.prompts.of(uuid) else {
            return;
        };
        match told.state {
            LifecycleState::Queued => {
                if let Some(known) = self.prompts.get(id) {
                    known.told = true;
                }
            }
            LifecycleState::Started => self.prompt_begins(id, out),
            LifecycleState::Completed => self.end_prompt(id, End::NotSaid, Seen::Real, out),
            LifecycleState::Cancelled => {
                // The answer to who took it back says so.
                let withdrawn = self.books.waits_for(|sent| {
                    use super::books::Sent;
                    matches!(sent, Sent::Withdraw(_, of) | Sent::Drop(of) if *of == id)
                });
                if !withdrawn {
                    if let Some(turn) = &mut self.turn {
                        turn.forget(id);
                    }
                    let end = End::Dropped(DropWhy::Cancelled);
                    self.end_prompt(id, end, Seen::Real, out);
                }
            }
            LifecycleState::Other(_) => {}
        }
    }

    fn system(&mut self, system: &System<'_>, out: &mut Out) -> bool {
        match system {
            System::Init(told) => {
                let news = self.learn_init(told);
                if !self.opened {
                    self.session_opened(Seen::Real, out);
                } else if news {
                    self.changed(Seen::Real, out);
                }
                if self.inits_turns() {
                    self.enter(Seen::Real, out);
                }
            }
            System::SessionStateChanged(told) => {
                self.needs_session(out);
                self.state(&told.state, out);
            }
            System::Status(told) => self.status(told, out),
            System::CompactBoundary(told) => self.compacted(told, out),
            System::LocalCommandOutput(told) => {
                self.needs_session(out);
                if self.turn.is_none()
                    && let Some(id) = self.prompts.next().map(|known| known.id)
                    && let Some(known) = self.prompts.get(id)
                {
                    known.local = true;
                }
                out.say(What::Notice {
                    level: Level::Info,
                    code: Some("command_output".into()),
                    text: (&*told.content).into(),
                });
            }
            System::ApiRetry(told) => {
                self.content(out);
                if let Some(turn) = &mut self.turn {
                    turn.flow.retry(told, &mut self.book, out);
                }
            }
            System::PermissionDenied(told) => self.denied(told, out),
            System::TaskStarted(told) => {
                self.needs_session(out);
                self.active |= told.task_type.is_some();
                let most = self.config.reply_bytes;
                self.runs.started(told, most, &self.book, out);
            }
            System::TaskProgress(told) => return self.runs.progress(told, out),
            System::TaskNotification(told) => {
                self.needs_session(out);
                self.runs.ended(told, &mut self.book, out);
            }
            System::Informational(told) => {
                if told.prevent_continuation == Some(true)
                    && let Some(turn) = &mut self.turn
                {
                    let why = super::hooks::text_of(told.prompt_submit_outcome, "reason");
                    let why = why.as_deref().unwrap_or(&told.content);
                    turn.blocked.get_or_insert(why.into());
                }
                return false;
            }
            System::PostTurnSummary(_)
            | System::HookStarted(_)
            | System::HookProgress(_)
            | System::HookResponse(_)
            | System::FilesPersisted(_)
            | System::ElicitationComplete(_)
            | System::BackgroundTasksChanged(_)
            | System::Notification(_)
            | System::ThinkingTokens(_)
            | System::Unknown(_) => return false,
        }
        true
    }

    fn status(&mut self, told: &Status<'_>, out: &mut Out) {
        self.needs_session(out);
        if let Some(mode) = &told.permission_mode
            && self.learn_mode(mode)
        {
            self.changed(Seen::Real, out);
        }
        match told.status.0.as_deref() {
            Some("requesting") => {
                self.content(out);
                if let Some(turn) = &mut self.turn {
                    turn.flow.requesting(&mut self.book, out);
                }
            }
            Some("compacting") => self.compacting(Trigger::Auto, None, out),
            // The boundary that may follow says how it ended.
            Some(_) | None => {}
        }
    }

    fn compacting(&mut self, trigger: Trigger, tokens: Option<u64>, out: &mut Out) {
        if self.compacting {
            return;
        }
        if let Some(turn) = &mut self.turn {
            turn.flow.between(&mut self.book, out);
        }
        self.compacting = true;
        self.active = true;
        out.say(What::CompactionStarted {
            trigger,
            span: None,
            tokens,
        });
    }

    fn compacted(&mut self, told: &CompactBoundary<'_>, out: &mut Out) {
        self.needs_session(out);
        let meta = &told.compact_metadata;
        let trigger = match meta.trigger {
            CompactTrigger::Manual => Trigger::Manual,
            CompactTrigger::Auto | CompactTrigger::Other(_) => Trigger::Auto,
        };
        let before = meta.pre_tokens.0.as_ref().and_then(|tokens| tokens.u64());
        self.compacting(trigger, before, out);
        self.compacting = false;
        out.say(What::CompactionEnded {
            result: Ok(Compacted {
                tokens_before: before,
                ..Compacted::default()
            }),
        });
        self.settle_quietly(out);
    }

    /// A call was denied without asking the host.
    fn denied(&mut self, told: &PermissionDenied<'_>, out: &mut Out) {
        let wire = &*told.tool_use_id;
        self.begin_call(wire, &told.tool_name, None, out);
        let by = match told.decision_reason_type.as_deref() {
            Some("rule") => Decider::Rule("".into()),
            Some("hook") => Decider::Hook("".into()),
            Some(_) | None => Decider::Mode,
        };
        let reason = Text::from(&*told.message);
        self.book.calls.deny(wire, by, reason, out);
    }

    /// A question of the agent. `false`: nobody knows it, and it is passed on as well.
    fn request(&mut self, told: &ControlRequest<'_>, out: &mut Out) -> bool {
        let Some(wire) = told.request_id.name() else {
            out.finding("a request without an id can't be answered");
            return false;
        };
        self.answered.put(wire);
        let operation = match told.operation() {
            Ok(operation) => operation,
            Err(error) => {
                out.finding(format!("a request that can't be read: {error}"));
                self.refuse_request(wire, "this request can't be read", out);
                return false;
            }
        };
        match &operation {
            Operation::CanUseTool(asked) => self.permission(wire, asked, out),
            Operation::HookCallback(asked) => {
                self.needs_session(out);
                let asked = self.hook_asked(asked, out);
                let kind = Kind::Hook { event: asked.event };
                self.ask(wire, RunId::MAIN, asked.call, kind, asked.body, out);
            }
            Operation::McpMessage(message) => self.mcp_message(wire, message, out),
            Operation::Elicitation(asked) => self.elicitation(wire, asked, out),
            Operation::AskUserQuestion(asked) => self.questions(wire, asked, out),
            Operation::Initialize(_)
            | Operation::Interrupt(_)
            | Operation::SetPermissionMode(_)
            | Operation::SetModel(_)
            | Operation::SetMaxThinkingTokens(_)
            | Operation::McpStatus(_)
            | Operation::GetContextUsage(_)
            | Operation::RewindFiles(_)
            | Operation::CancelAsyncMessage(_)
            | Operation::SeedReadState(_)
            | Operation::McpSetServers(_)
            | Operation::ReloadPlugins(_)
            | Operation::McpReconnect(_)
            | Operation::McpToggle(_)
            | Operation::StopTask(_)
            | Operation::ApplyFlagSettings(_)
            | Operation::GetSettings(_)
            | Operation::Unknown(_) => {
                let name = told.subtype();
                let name = cut_id(name.shown());
                self.refuse_request(wire, &format!("unsupported control request {name:?}"), out);
                return false;
            }
        }
        true
    }

    fn refuse_request(&mut self, wire: &str, why: &str, out: &mut Out) {
        if !self.is_input_closed() {
            let line = Response::failure(wire, why);
            out.line(|bytes| HostLine::from(line).encode(bytes));
        }
    }

    /// Puts a question to the embedder.
    fn ask(
        &mut self,
        wire: &str,
        run: RunId,
        call: Option<CallId>,
        kind: Kind,
        body: Ask,
        out: &mut Out,
    ) {
        let open = OpenAsk {
            ask: AskId(0),
            wire: wire.into(),
            run,
            call,
            kind,
            body,
        };
        let (calls, asks) = self.book.parts();
        asks.open(open, calls, out);
    }

    fn permission(&mut self, wire: &str, told: &CanUseTool<'_>, out: &mut Out) {
        self.needs_session(out);
        if let Some(member) = odd_member(told) {
            out.finding(format!("{member} of a permission isn't what it may be"));
        }
        let tool_use = String::from(&*told.tool_use_id);
        let network = *told.tool_name == *NETWORK_TOOL;
        let given = Some(told.input).filter(|input| input.kind() == JsonKind::Object);
        let call = (!network).then(|| {
            let input = given.map(super::convert::input);
            self.begin_call(&tool_use, &told.tool_name, input, out)
        });
        let run = self.book.calls.run_of(&tool_use).unwrap_or(RunId::MAIN);
        let text = |text: &str| Text::from(text);
        let summary = told
            .title
            .as_deref()
            .or(told.description.as_deref())
            .unwrap_or(&told.tool_name);
        let reason = match (network, &told.decision_reason) {
            (true, _) => AskReason::Network {
                host: told
                    .input
                    .get_last("host")
                    .and_then(Raw::string)
                    .map_or_else(|| text(""), |host| text(&host)),
            },
            (false, Some(why)) => AskReason::Other(text(why)),
            (false, None) => AskReason::Gate,
        };
        let input = raw(given.unwrap_or(Raw::trusted("{}")));
        let body = Ask::Permission(Box::new(PermissionAsk {
            call,
            tool: text(&told.tool_name),
            reason,
            summary: text(summary),
            detail: input.0.clone(),
            body: None,
            suggestions: suggestions(told.permission_suggestions.as_deref()),
            env: Vec::new(),
            due: None,
        }));
        let kind = Kind::Permission { tool_use, input };
        self.ask(wire, run, call, kind, body, out);
    }

    fn elicitation(&mut self, wire: &str, told: &Elicitation<'_>, out: &mut Out) {
        self.needs_session(out);
        let (kind, shape) = match &told.url {
            Some(url) => (ChoiceKind::Url((&**url).into()), super::asks::Form::Page),
            None => form(told.requested_schema.get()),
        };
        let body = Ask::Choice(Box::new(ChoiceAsk {
            title: (&*told.message).into(),
            kind,
            timeout_us: None,
        }));
        let kind = Kind::Elicitation(shape);
        self.ask(wire, RunId::MAIN, None, kind, body, out);
    }

    fn questions(&mut self, wire: &str, told: &AskUserQuestion<'_>, out: &mut Out) {
        self.needs_session(out);
        let (title, kind, one) = questions(told.questions);
        let body = Ask::Choice(Box::new(ChoiceAsk {
            title,
            kind,
            timeout_us: None,
        }));
        self.ask(wire, RunId::MAIN, None, Kind::Questions(one), body, out);
    }
}

/// What of a user's record are results of tools, and what is something else.
fn sorted(told: &User<'_>, said: &Said<'_>) -> (Results, Vec<Block>) {
    let message = match said {
        Said::Text(text) => return (Vec::new(), Vec::from([Block::Text((&**text).into())])),
        Said::Message(message) => message,
    };
    let Content::Blocks(blocks) = &message.content else {
        return (Vec::new(), content(&message.content));
    };
    let (mut results, mut rest) = (Vec::new(), Vec::new());
    for block in blocks {
        if let Kept::Known(WireBlock::ToolResult(result)) = block {
            let given = Given {
                content: result.content.as_ref().map(content).unwrap_or_default(),
                error: result.is_error == Some(true),
                details: None,
            };
            results.push((String::from(&*result.tool_use_id), given));
        } else {
            rest.extend(content(&Content::Blocks(Vec::from([block.clone()]))));
        }
    }
    // The tool's own result stands beside the record of one.
    if let ([(_, given)], Some(details)) = (results.as_mut_slice(), told.tool_use_result.get()) {
        given.details = Some(raw(details));
    }
    (results, rest)
}
