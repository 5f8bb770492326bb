//! Carrying calls out, and ending them early.

use alloc::{boxed::Box, format, string::ToString, vec, vec::Vec};

use super::{Batch, Ended, Over, State, Then, Tool, result::keep_within};
use crate::session::{
    Session, args,
    ask::{AskFor, OpenAsk},
    hooks::{Owner, Slot},
};
use crate::vocab::{
    ApprovalMode, Ask, AskClose, AskId, AskReason, Block, CallId, Decider, Effect, HookFacts,
    PermissionAsk, Progress, Route, RunStatus, Show, SkipWhy, Text, ToolInput, ToolOutcome,
    ToolUpdate, What,
};

/// How calls are ended early.
pub(in crate::session) struct Stop {
    /// How open questions close.
    pub close: AskClose,
    /// What a call that was begun ends as.
    pub begun: ToolOutcome,
    /// Why the others never began.
    pub skip: SkipWhy,
    /// What the model is told of a begun one.
    pub text: &'static str,
    /// What the nested runs of begun ones end as.
    pub run: RunStatus,
}

impl Stop {
    /// A call ended the turn.
    pub const TURN_OVER: Stop = Stop {
        close: AskClose::Cancelled,
        begun: ToolOutcome::Cancelled,
        skip: SkipWhy::TurnOver,
        text: "cancelled: another call ended the turn",
        run: RunStatus::Cancelled,
    };
    /// The turn was cancelled.
    pub const CANCELLED: Stop = Stop {
        close: AskClose::Cancelled,
        begun: ToolOutcome::Cancelled,
        skip: SkipWhy::Cancelled,
        text: "cancelled by the user",
        run: RunStatus::Cancelled,
    };

    /// The turn crashed.
    pub fn crashed(detail: Text) -> Stop {
        Stop {
            close: AskClose::Fault(detail),
            begun: ToolOutcome::Failed,
            skip: SkipWhy::TurnOver,
            text: "the turn ended unexpectedly",
            run: RunStatus::Failed,
        }
    }
}

impl Session {
    /// Hands a call to whoever carries it out.
    pub(super) fn run_call(&mut self, batch: &mut Batch, at: usize) {
        let now = self.now;
        let deadline_us = self
            .config
            .timeouts
            .tool_us
            .map(|wait| now.mono_us.saturating_add(wait));
        let Some(tool) = batch.at(at) else { return };
        let Some(spec) = tool.spec.clone() else {
            return;
        };
        let uri = self.uri_named(&spec, &tool.input);
        let ToolInput::Object(input) = tool.input.clone() else {
            return;
        };
        let (call, name) = (tool.call, tool.name.clone());
        let ask = match (&spec.route, uri) {
            (_, Some(target)) => {
                let immutable = target.immutable;
                match target.ask(&spec, &input) {
                    Ok(body) => {
                        let open = OpenAsk {
                            what: AskFor::Uri { call, immutable },
                            deadline_us: None,
                        };
                        Some(self.open_ask(open, body))
                    }
                    Err(why) => return self.call_over(batch, at, ToolOutcome::Failed, &why),
                }
            }
            (Route::Driver, None) => {
                self.effects.tools.issue(call.0);
                self.out.effect(Effect::RunTool { call });
                None
            }
            (Route::Host, None) => {
                let open = OpenAsk {
                    what: AskFor::Tool(call),
                    deadline_us: None,
                };
                Some(self.open_ask(open, Ask::Tool { call, name, input }))
            }
            (Route::Choice, None) => {
                let open = OpenAsk {
                    what: AskFor::Choice(call),
                    deadline_us: None,
                };
                Some(self.open_ask(open, Ask::Choice(args::choice(&input).into())))
            }
            (Route::Capture { .. }, None) => {
                self.call_over(batch, at, ToolOutcome::EndedTurn, "taken as the answer");
                batch.over.get_or_insert(Over::Finished {
                    at,
                    captured: Some((name, input)),
                });
                return;
            }
            (Route::Finish, None) => {
                self.call_over(batch, at, ToolOutcome::EndedTurn, "the turn is over");
                batch
                    .over
                    .get_or_insert(Over::Finished { at, captured: None });
                return;
            }
            (Route::Goal, None) => {
                let (outcome, text) = self.goal_report(&input);
                return self.call_over(batch, at, outcome, &text);
            }
            (Route::Plan, None) => {
                let (outcome, text) = self.plan_written(&input);
                return self.call_over(batch, at, outcome, &text);
            }
            (Route::JobStop, None) => {
                tool.state = State::Running {
                    ask: None,
                    deadline_us,
                };
                return self.stop_job_for(batch, at, &input);
            }
            (Route::Run(kind), None) => {
                tool.state = State::Running {
                    ask: None,
                    deadline_us,
                };
                return self.run_nested(batch, at, kind, input);
            }
        };
        tool.state = State::Running { ask, deadline_us };
        if batch.steered {
            self.let_go(batch, at);
        }
    }

    /// Makes a job of a call that a run carries out, or asks the driver to: it does if it can, and says nothing if it can't.
    pub(super) fn let_go(&mut self, batch: &mut Batch, at: usize) {
        let Some(tool) = batch.at(at) else { return };
        let call = tool.call;
        if !matches!(tool.state, State::Running { ask: None, .. }) {
            return;
        }
        if self.effects.tools.is_live(call.0) && !core::mem::replace(&mut tool.detaching, true) {
            self.out.effect(Effect::DetachTool(call));
        }
        self.detach_run(batch, call);
    }

    /// What the driver says of a live call.
    pub(in crate::session) fn tool_update(&mut self, call: CallId, update: ToolUpdate) {
        match update {
            ToolUpdate::Progress(progress) => self.tool_progress(call, progress),
            ToolUpdate::Done {
                outcome,
                content,
                show,
            } => self.tool_done(call, outcome, content, show),
            ToolUpdate::FileChanged {
                path,
                diff,
                added,
                removed,
            } => {
                if self
                    .phase
                    .batch()
                    .is_some_and(|batch| batch.is_running(call))
                {
                    self.say(What::FileChanged {
                        call: Some(call),
                        path,
                        diff,
                        added,
                        removed,
                    });
                }
            }
            ToolUpdate::NeedsNetwork { host } => self.with_tools(|session, _, batch| {
                let Some(at) = batch.find(call) else { return };
                if batch.is_running(call) && session.network.iter().all(|(asked, _)| *asked != call)
                {
                    session.network.push((call, host));
                    batch.asking.push_back(at);
                } else {
                    session.out.effect(Effect::Allow { call, ok: false });
                }
            }),
            ToolUpdate::Snapshotted { files, .. } => self.with_tools(|session, _, batch| {
                let Some(at) = batch.find(call) else { return };
                let Some(state) = batch.state_mut(at) else {
                    return;
                };
                match core::mem::replace(state, State::Waiting) {
                    State::Snapshot { checkpoint, then } => {
                        session.say(What::Checkpoint {
                            checkpoint,
                            call,
                            files,
                        });
                        match then {
                            Then::Gate => session.gate(batch, at),
                            Then::Run { by, input } => session.allow_call(batch, at, by, input),
                        }
                    }
                    other @ (State::Waiting
                    | State::Hooked(_)
                    | State::AskWaiting
                    | State::Asking { .. }
                    | State::Running { .. }
                    | State::PostHook { .. }
                    | State::Done(_)
                    | State::Said) => *state = other,
                }
            }),
            ToolUpdate::Detached(start) => self.detached(call, *start),
        }
    }

    /// Progress of a running call; of any other it is dropped.
    pub(in crate::session) fn tool_progress(&mut self, call: CallId, progress: Progress) {
        let limits = self.output_limits();
        let now = self.now;
        let mut said = None;
        if let crate::session::phase::Phase::Tools(_, batch) = &mut self.phase
            && let Some(at) = batch.find(call)
            && let Some(tool) = batch.at(at)
            && let State::Running { .. } = tool.state
        {
            match &progress {
                Progress::Append(more) => {
                    tool.so_far.extend(more.iter().cloned());
                    keep_within(&mut tool.so_far, limits);
                }
                Progress::Replace(all) => {
                    tool.so_far.clone_from(all);
                    keep_within(&mut tool.so_far, limits);
                }
                Progress::Alive => {}
            }
            said = Some(now.mono_us.saturating_sub(tool.began_us));
        }
        if let Some(elapsed_us) = said {
            self.say(What::ToolProgress {
                call,
                partial: progress,
                elapsed_us,
            });
        }
    }

    /// A call was carried out, by the driver or by the host.
    pub(in crate::session) fn tool_done(
        &mut self,
        call: CallId,
        outcome: ToolOutcome,
        content: Vec<Block>,
        show: Option<Box<Show>>,
    ) {
        let ended = Ended {
            outcome,
            content,
            show,
        };
        self.with_tools(|session, _, batch| session.tool_over(batch, call, ended));
    }

    /// As [`tool_done`](Self::tool_done), where the calls are at hand.
    pub(in crate::session) fn tool_over(
        &mut self,
        batch: &mut Batch,
        call: CallId,
        mut ended: Ended,
    ) {
        let cut = keep_within(&mut ended.content, self.output_limits());
        if cut && let Some(show) = &mut ended.show {
            show.truncated = true;
        }
        let now = self.now;
        let Some(at) = batch.find(call) else { return };
        self.close_network(call);
        batch.asking.retain(|waiting| *waiting != at);
        self.decide_unsaved(batch, at);
        let Some(tool) = batch.at(at) else { return };
        let name = tool.name.clone();
        let wall_us = now.mono_us.saturating_sub(tool.began_us);
        let mut chain = self.chain(Owner::Post(call), Some(&name), now);
        let (content, ok) = (&ended.content, ended.outcome.is_ok());
        let facts = || HookFacts::Result {
            call,
            content: content.clone(),
            ok,
            wall_us,
        };
        if self.next_hook(&mut chain, Owner::Post(call), facts) {
            tool.state = State::PostHook { chain, ended };
            return;
        }
        self.outcome_stands(batch, at, ended);
    }

    /// A call that was asked about and whose files couldn't be put aside: it doesn't run, whoever allowed it (S-37).
    fn decide_unsaved(&mut self, batch: &mut Batch, at: usize) {
        if let Some(tool) = batch.at(at)
            && let State::Snapshot { .. } = tool.state
            && tool.asked
            && !tool.decided
        {
            tool.decided = true;
            let call = tool.call;
            let by = Decider::Fault("its files could not be put aside".into());
            self.say_decided(call, false, by, None, None);
        }
    }

    /// An outcome that no hook sees any more.
    pub(super) fn outcome_stands(&mut self, batch: &mut Batch, at: usize, ended: Ended) {
        let over = matches!(ended.outcome, ToolOutcome::EndedTurn);
        if let Some(tool) = batch.at(at) {
            tool.state = State::Done(ended);
        }
        if over {
            batch
                .over
                .get_or_insert(Over::Finished { at, captured: None });
        }
    }

    /// The tool timer fired.
    pub(in crate::session) fn tool_timed_out(&mut self, call: CallId) {
        self.with_tools(|session, _, batch| {
            let Some(at) = batch.find(call) else { return };
            session.close_network(call);
            batch.asking.retain(|waiting| *waiting != at);
            session.stop_running(batch, at, &AskClose::TimedOut);
            session.stop_run_of(call, &AskClose::TimedOut, RunStatus::TimedOut);
            if let Some(tool) = batch.at(at) {
                let content = cut_short(tool, "timed out");
                tool.state = State::Done(Ended {
                    outcome: ToolOutcome::TimedOut,
                    content,
                    show: None,
                });
            }
        });
    }

    /// Tells whoever carries a call out to stop.
    fn stop_running(&mut self, batch: &mut Batch, at: usize, how: &AskClose) {
        let Some(tool) = batch.at(at) else { return };
        let call = tool.call;
        if let State::Running { ask, .. } = &mut tool.state {
            match ask.take() {
                Some(ask) => {
                    if self.asks.remove(&ask).is_some() {
                        self.say(What::AskClosed {
                            ask,
                            how: how.clone(),
                        });
                    }
                }
                None => {
                    if self.effects.tools.is_live(call.0) {
                        self.effects.tools.stop(call.0);
                        self.out.effect(Effect::StopTool(call));
                    }
                }
            }
        }
    }

    /// Stops every hook, snapshot, tool and run of the calls, in the order of their ids.
    pub(super) fn stop_calls(&mut self, batch: &mut Batch, run: RunStatus) {
        let mut hooks = Vec::new();
        for tool in &mut batch.calls {
            let chain = match &mut tool.state {
                State::Hooked(chain) | State::PostHook { chain, .. } => chain,
                State::Asking { hooks } => hooks,
                State::Waiting
                | State::Snapshot { .. }
                | State::AskWaiting
                | State::Running { .. }
                | State::Done(_)
                | State::Said => continue,
            };
            if let Some(Slot::Local(hook)) = chain.slot.take() {
                hooks.push(hook);
            }
        }
        hooks.sort_unstable();
        for hook in hooks {
            self.stop_hook(hook);
        }
        for at in 0..batch.calls.len() {
            if let Some(tool) = batch.calls.get(at)
                && let State::Snapshot { .. } = tool.state
            {
                // It is left to finish, and absorbed.
                self.effects.snapshots.stop(tool.call.0);
            }
            self.stop_running(batch, at, &AskClose::Cancelled);
        }
        self.stop_runs(run);
        self.network.clear();
        batch.asking.clear();
    }

    /// What a call ends as when its turn stops: a known outcome stands, a begun one is cut short, the rest is skipped.
    pub(super) fn cut_call(&mut self, batch: &mut Batch, at: usize, stop: &Stop) {
        let Some(tool) = batch.at(at) else { return };
        let call = tool.call;
        match core::mem::replace(&mut tool.state, State::Said) {
            State::Done(ended) | State::PostHook { ended, .. } => tool.state = State::Done(ended),
            State::Said => {}
            State::Waiting => {
                tool.result = Some((skipped_result(stop.skip), true));
                self.say(What::ToolSkipped {
                    call,
                    why: stop.skip,
                });
            }
            State::Hooked(_)
            | State::Snapshot { .. }
            | State::AskWaiting
            | State::Asking { .. }
            | State::Running { .. } => {
                let undecided = tool.asked && !tool.decided;
                let content = cut_short(tool, stop.text);
                tool.state = State::Done(Ended {
                    outcome: stop.begun.clone(),
                    content,
                    show: None,
                });
                if undecided {
                    tool.decided = true;
                    self.say_decided(call, false, Decider::Cancel, None, None);
                }
            }
        }
    }

    /// A running call wants to reach a host of the network.
    pub(super) fn ask_network(&mut self, batch: &mut Batch, at: usize) {
        let Some(tool) = batch.at(at) else { return };
        let (call, name) = (tool.call, tool.name.clone());
        let Some(host) = self
            .network
            .iter()
            .find(|(asked, _)| *asked == call)
            .map(|(_, host)| host.clone())
        else {
            return;
        };
        let decided = match &self.info.settings.approvals {
            ApprovalMode::Auto if self.config.policy.auto_silences_ask => Some(true),
            ApprovalMode::Never => Some(false),
            ApprovalMode::Auto
            | ApprovalMode::AcceptEdits
            | ApprovalMode::Ask
            | ApprovalMode::ReadOnly
            | ApprovalMode::Plan
            | ApprovalMode::Other(_) => None,
        };
        if let Some(ok) = decided {
            self.network.retain(|(asked, _)| *asked != call);
            return self.out.effect(Effect::Allow { call, ok });
        }
        let deadline_us = self
            .config
            .timeouts
            .approval_us
            .map(|wait| self.now.mono_us.saturating_add(wait));
        let body = PermissionAsk {
            call: Some(call),
            tool: name,
            reason: AskReason::Network { host: host.clone() },
            summary: host.clone(),
            detail: format!("host={host}").into(),
            body: None,
            suggestions: Vec::new(),
            env: Vec::new(),
            due: deadline_us,
        };
        self.open_ask(
            OpenAsk {
                what: AskFor::Network(call),
                deadline_us,
            },
            Ask::Permission(body.into()),
        );
        self.tell_of_question(&host);
    }

    /// A call that ended doesn't need the network any more.
    fn close_network(&mut self, call: CallId) {
        self.network.retain(|(asked, _)| *asked != call);
        let open: Option<AskId> = self
            .asks
            .iter()
            .find(|(_, open)| matches!(open.what, AskFor::Network(asked) if asked == call))
            .map(|(ask, _)| *ask);
        if let Some(ask) = open {
            self.asks.remove(&ask);
            self.say(What::AskClosed {
                ask,
                how: AskClose::Cancelled,
            });
        }
    }
}

impl Batch {
    /// Whether a call is being carried out.
    pub fn is_running(&self, call: CallId) -> bool {
        self.get(call)
            .is_some_and(|tool| matches!(tool.state, State::Running { .. }))
    }
}

fn skip_text(why: SkipWhy) -> &'static str {
    match why {
        SkipWhy::Cancelled => "cancelled",
        SkipWhy::Truncated => "the reply that made this call broke off",
        SkipWhy::TurnOver => "the turn ended first",
        SkipWhy::Steered => "the user's message came first; call it again if it is still needed",
    }
}

/// The result of a call that was never begun.
pub(in crate::session) fn skipped_result(why: SkipWhy) -> Vec<Block> {
    vec![Block::Text(format!("not run: {}", skip_text(why)).into())]
}

/// Output so far, and why there is no more.
fn cut_short(tool: &mut Tool, why: &str) -> Vec<Block> {
    let mut content = core::mem::take(&mut tool.so_far);
    content.push(Block::Text(why.to_string().into()));
    content
}
