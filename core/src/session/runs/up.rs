//! What comes up from a run: its work is passed on as it is, its questions are asked for it, what it uses is counted.

use alloc::{boxed::Box, vec::Vec};

use super::{Asked, MOST_ASKS};
use crate::session::{Session, retry::account};
use crate::vocab::{
    Ask, AskClose, AskId, Cost, DeltaRef, Event, JobRecord, JobStep, ModelRef, RunId, Seen, Text,
    Usage, What,
};

impl Session {
    /// A run that is alive says something.
    pub(in crate::session) fn run_says(&mut self, run: RunId, mut event: Event) {
        if event.run == RunId::MAIN {
            event.run = run;
        }
        let own = event.run == run;
        match &event.what {
            What::RunEnded {
                run: ended,
                status,
                steps,
                usage,
                detail,
            } if *ended == run => {
                return self.run_over(run, *status, (*steps, *usage), detail.clone());
            }
            // Its own facts, its prompts and its turns are its holder's to know.
            What::Opened(_)
            | What::Changed(_)
            | What::Closed { .. }
            | What::Queued { .. }
            | What::PromptApplied { .. }
            | What::PromptEnded { .. }
            | What::TurnStarted { .. }
            | What::TurnEnded { .. }
            | What::Settled
            | What::Goal(_) => return,
            What::Replied { command, reply } => {
                return self.run_replied(run, *command, reply.clone());
            }
            What::Asked { ask, .. } => {
                let ask = *ask;
                return self.run_asks(run, ask, event);
            }
            What::AskClosed { ask, .. } => {
                let Some(at) = self.runs.asks.iter().position(|open| open.ask == *ask) else {
                    return;
                };
                // One that nobody was asked is closed in silence.
                if self.runs.asks.remove(at).held.is_some() {
                    return;
                }
            }
            What::Delta {
                message,
                block,
                kind,
                text,
            } => {
                let delta = DeltaRef {
                    at: event.at,
                    run: event.run,
                    message: *message,
                    block: *block,
                    kind: *kind,
                    text,
                };
                return self.out.pass_delta(delta);
            }
            What::StepStarted { .. } if own => {
                if let Some(live) = self.runs.live.get_mut(&run) {
                    live.steps = live.steps.saturating_add(1);
                }
            }
            What::StepEnded { .. } if own => {
                self.out.pass(event);
                return self.tell_of_progress(run);
            }
            What::ToolStarted { name, .. } if own => {
                if let Some(live) = self.runs.live.get_mut(&run) {
                    live.last_tool = Some(name.clone());
                }
            }
            What::RequestEnded {
                model, usage, cost, ..
            } => self.run_used(run, model, usage.as_ref(), cost),
            What::RunStarted { run: below, .. } => {
                if let Some(live) = self.runs.live.get_mut(&run) {
                    live.below.push((*below, event.run));
                }
            }
            What::RunEnded { run: below, .. } => {
                if let Some(live) = self.runs.live.get_mut(&run) {
                    live.below.retain(|(open, _)| open != below);
                }
            }
            What::Job(step, record) => {
                let record = JobRecord::clone(record);
                if let Some(live) = self.runs.live.get_mut(&run) {
                    live.jobs.retain(|(_, known)| known.job != record.job);
                    match step {
                        JobStep::Started | JobStep::Updated => {
                            live.jobs.push((event.run, record));
                        }
                        JobStep::Ended => {}
                    }
                }
            }
            What::StepStarted { .. }
            | What::StepEnded { .. }
            | What::ToolStarted { .. }
            | What::Context { .. }
            | What::RequestStarted { .. }
            | What::RetryScheduled { .. }
            | What::RetryEnded { .. }
            | What::MessageStarted { .. }
            | What::BlockStarted { .. }
            | What::BlockEnded { .. }
            | What::MessageEnded { .. }
            | What::Message(_)
            | What::Decided { .. }
            | What::ToolProgress { .. }
            | What::ToolEnded { .. }
            | What::ToolSkipped { .. }
            | What::FileChanged { .. }
            | What::Checkpoint { .. }
            | What::Restored { .. }
            | What::CompactionStarted { .. }
            | What::CompactionEnded { .. }
            | What::RunProgress { .. }
            | What::HookFailed { .. }
            | What::CompletionRefused { .. }
            | What::Notice { .. } => {}
        }
        self.out.pass(event);
    }

    fn tell_of_progress(&mut self, run: RunId) {
        if let Some(live) = self.runs.live.get(&run) {
            let progress = What::RunProgress {
                run,
                steps: live.steps,
                last_tool: live.last_tool.clone(),
                usage: live.usage,
                text: None,
            };
            self.say(progress);
        }
    }

    /// What a run uses up counts for the budgets of who began it.
    fn run_used(&mut self, run: RunId, model: &ModelRef, usage: Option<&Usage>, cost: &Cost) {
        if let Cost::Known { pico_usd, .. } = cost {
            self.spent_pico_usd = self.spent_pico_usd.saturating_add(*pico_usd);
        }
        let Some(used) = usage else { return };
        if let Some(live) = self.runs.live.get_mut(&run) {
            live.usage = Some(live.usage.unwrap_or_default().plus(*used));
        }
        let tokens = used.total().unwrap_or(0);
        self.goal_used(tokens);
        if let Some(turn) = self.phase.turn_mut() {
            turn.tokens = turn.tokens.saturating_add(tokens);
            account(&mut turn.by_model, model, usage, cost);
        }
    }

    /// A run asks the host; one question too many waits until another is closed.
    fn run_asks(&mut self, run: RunId, ask: AskId, event: Event) {
        let permission = permission_for(&event).is_some();
        let mut earlier = self.runs.asks.iter();
        let behind = earlier.any(|open| open.permission == permission && open.held.is_some());
        let held = behind || self.asks_are_many(permission);
        self.runs.asks.push(Asked {
            ask,
            run,
            by: event.run,
            permission,
            behind: self.ids.last_ask(),
            held: held.then(|| Box::new(event.clone())),
        });
        if !held {
            self.ask_for_run(event);
        }
    }

    fn ask_for_run(&mut self, mut event: Event) {
        event.at = self.now;
        let tool = permission_for(&event);
        self.out.pass(event);
        if let Some(tool) = tool {
            self.tell_of_question(&tool);
        }
    }

    fn asks_are_many(&self, permission: bool) -> bool {
        let limit = usize::try_from(self.config.policy.asks_at_once).unwrap_or(usize::MAX);
        let said = self.runs.asks.iter().filter(|open| open.held.is_none());
        permission && self.open_permissions() >= limit.max(1)
            || self.asks.len() + said.count() >= MOST_ASKS
    }

    /// Asks what was held back, as far as there is room: in order, so that none waits for ever.
    pub(in crate::session) fn ask_for_runs(&mut self) {
        for at in 0..self.runs.asks.len() {
            let many = |open: &Asked| open.held.is_some() && self.asks_are_many(open.permission);
            if self.runs.asks.get(at).is_some_and(many) {
                continue;
            }
            let held = self.runs.asks.get_mut(at).and_then(|open| open.held.take());
            if let Some(event) = held {
                self.ask_for_run(*event);
            }
        }
    }

    /// Closes the questions of runs that were asked before one of our own, in their order.
    pub(in crate::session) fn close_run_asks(
        &mut self,
        runs: &[RunId],
        before: AskId,
        how: &AskClose,
    ) {
        let (gone, left) = core::mem::take(&mut self.runs.asks)
            .into_iter()
            .partition(|open| runs.contains(&open.run) && open.behind < before.0);
        self.runs.asks = left;
        let gone: Vec<Asked> = gone;
        for open in gone.into_iter().filter(|open| open.held.is_none()) {
            self.out.pass(Event {
                at: self.now,
                run: open.by,
                seen: Seen::Real,
                what: What::AskClosed {
                    ask: open.ask,
                    how: how.clone(),
                },
            });
        }
    }
}

/// The tool that a permission is wanted for.
fn permission_for(event: &Event) -> Option<Text> {
    if let What::Asked {
        body: Ask::Permission(ask),
        ..
    } = &event.what
    {
        Some(ask.tool.clone())
    } else {
        None
    }
}
