//! Commands and their replies; prompts from admission to end.

use super::*;

#[derive(Clone, Debug, Default)]
pub(super) struct Prompts {
    /// Commands that wait for their reply; the flag: given since the last quiet.
    owed: BTreeMap<CommandId, Owed>,
    replied: BTreeSet<CommandId>,
    prompts: BTreeMap<PromptId, State>,
    /// The prompts applied into the running turn, in order.
    order: Vec<PromptId>,
    /// The prompt just applied, whose message must follow.
    applied: Option<PromptId>,
    /// The turn just ended, whose prompts must end now.
    ending: Vec<(PromptId, End)>,
    /// Steers that waited when the last step ended.
    steers_at_step_end: Vec<PromptId>,
}

#[derive(Clone, Debug)]
struct Owed {
    about: About,
    new: bool,
}

#[derive(Clone, Copy, Debug)]
enum About {
    Prompt { prompt: PromptId, context: bool },
    Withdraw(PromptId),
    Else,
}

#[derive(Clone, Debug)]
struct State {
    /// A context prompt never beats a finish.
    context: bool,
    lane: Option<Lane>,
    applied: Option<Option<TurnId>>,
    ended: bool,
}

impl Prompts {
    pub(super) fn command(&mut self, call: &Call) {
        let about = match &call.command {
            Command::Prompt(prompt) => About::Prompt {
                prompt: prompt.id,
                context: prompt.deliver == Deliver::Context,
            },
            Command::Withdraw(prompt) => About::Withdraw(*prompt),
            _ => About::Else,
        };
        self.owed.insert(call.id, Owed { about, new: true });
    }

    pub(super) fn replied(
        &mut self,
        command: CommandId,
        reply: &Result<Answer, Refusal>,
        report: &mut Report,
    ) {
        let Some(owed) = self.owed.remove(&command) else {
            let breach = if self.replied.contains(&command) {
                Breach::RepliedTwice(command)
            } else {
                Breach::RepliedUnasked(command)
            };
            return report.breach(breach);
        };
        self.replied.insert(command);
        let Ok(answer) = reply else { return };
        match (owed.about, answer) {
            (About::Prompt { prompt, context }, Answer::Admitted(admitted)) => {
                if *admitted == Admitted::Duplicate {
                    return;
                }
                let state = State {
                    context,
                    lane: None,
                    applied: None,
                    ended: false,
                };
                let again = self.prompts.insert(prompt, state).is_some();
                report.check(!again, Breach::AdmittedAgain(prompt));
            }
            (About::Withdraw(prompt), Answer::Withdrawn(true)) => {
                let waits = self.prompts.get(&prompt).is_some_and(|state| !state.ended);
                report.check(waits, Breach::WithdrawnTooEarly(prompt));
            }
            _ => {}
        }
    }

    pub(super) fn queued(&mut self, prompt: PromptId, lane: Lane, report: &mut Report) {
        if let Some(state) = self.known(prompt, report) {
            let ended = state.ended;
            state.lane = Some(lane);
            report.check(!ended, Breach::EndedTwice(prompt));
        }
    }

    pub(super) fn applied(&mut self, prompt: PromptId, turn: Option<TurnId>, report: &mut Report) {
        self.applied = Some(prompt);
        let Some(state) = self.known(prompt, report) else {
            return;
        };
        let (again, ended) = (state.applied.is_some(), state.ended);
        state.applied = Some(turn);
        state.lane = None;
        if turn.is_some() {
            self.order.push(prompt);
        }
        report.check(!again, Breach::AppliedTwice(prompt));
        report.check(!ended, Breach::AppliedAfterEnd(prompt));
    }

    pub(super) fn ended(&mut self, prompt: PromptId, end: &End, report: &mut Report) {
        let Some(state) = self.known(prompt, report) else {
            return;
        };
        let (again, applied) = (state.ended, state.applied);
        state.ended = true;
        state.lane = None;
        report.check(!again, Breach::EndedTwice(prompt));
        report.check(
            applied.is_none() || !end.is_unapplied(),
            Breach::DroppedThoughApplied(prompt),
        );
    }

    pub(super) fn step_ended(&mut self) {
        let steers = self
            .prompts
            .iter()
            .filter(|(_, state)| state.lane == Some(Lane::Steer) && !state.context);
        self.steers_at_step_end = steers.map(|(prompt, _)| *prompt).collect();
    }

    pub(super) fn turn_ended(&mut self, end: &End, report: &mut Report) {
        let still_waits = |prompt: &PromptId| {
            self.prompts
                .get(prompt)
                .is_some_and(|state| state.lane == Some(Lane::Steer) && !state.ended)
        };
        if let (true, Some(steer)) = (
            end.is_finished(),
            self.steers_at_step_end
                .iter()
                .copied()
                .find(|prompt| still_waits(prompt)),
        ) {
            report.breach(Breach::FinishedOverSteer(steer));
        }
        self.steers_at_step_end.clear();
        let order = core::mem::take(&mut self.order);
        self.ending = order
            .into_iter()
            .map(|prompt| (prompt, end.clone()))
            .collect();
    }

    /// What must come before anything else of the outermost agent may.
    pub(super) fn before(&mut self, what: &What, report: &mut Report) {
        if let Some(prompt) = self.applied.take() {
            let follows = matches!(what, What::Message(message) if message.prompt == Some(prompt));
            report.check(follows, Breach::AppliedWithoutMessage(prompt));
        }
        if self.ending.is_empty() {
            return;
        }
        let (prompt, end) = self.ending.remove(0);
        match what {
            What::PromptEnded {
                prompt: ended,
                end: how,
            } if *ended == prompt => {
                report.check(*how == end, Breach::EndDiffers(prompt));
            }
            _ => {
                report.breach(Breach::PromptEndMissing(prompt));
                self.ending.clear();
            }
        }
    }

    /// The same for outputs that can't be what is waited for.
    pub(super) fn before_other(&mut self, report: &mut Report) {
        self.before(&What::Settled, report);
    }

    pub(super) fn quiet(&mut self, report: &mut Report) {
        self.before_other(report);
        for owed in self.owed.values_mut() {
            owed.new = false;
        }
    }

    pub(super) fn closed(&mut self, report: &mut Report) {
        // A command may come in the very call in which the session has closed by a timer (S-06).
        for (command, _) in self.owed.iter().filter(|(_, owed)| !owed.new) {
            report.breach(Breach::NeverReplied(*command));
        }
        for (prompt, _) in self.prompts.iter().filter(|(_, state)| !state.ended) {
            report.breach(Breach::NeverEnded(*prompt));
        }
    }

    pub(super) fn any_open(&self) -> bool {
        self.prompts.values().any(|state| !state.ended)
    }

    /// A prompt that was admitted. One made by the session is known from its first event on.
    fn known(&mut self, prompt: PromptId, report: &mut Report) -> Option<&mut State> {
        if prompt.is_session_made() {
            let state = State {
                context: false,
                lane: None,
                applied: None,
                ended: false,
            };
            return Some(self.prompts.entry(prompt).or_insert(state));
        }
        let state = self.prompts.get_mut(&prompt);
        report.check(state.is_some(), Breach::NotAdmitted(prompt));
        state
    }
}
