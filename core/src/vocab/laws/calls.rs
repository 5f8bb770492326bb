//! Calls of one run: from the reply that names them to their one end.

use super::*;

#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    states: BTreeMap<CallId, State>,
    /// The calls that the last reply names, in order.
    listed: Vec<CallId>,
    /// The message that named them.
    reply: Option<MessageId>,
    /// Whether it names all of them.
    list_is_whole: bool,
    /// Whether its request ended with a completion signal.
    complete: bool,
    /// How many of them have begun: a call never begins before an earlier one.
    next: usize,
}

#[derive(Clone, Debug, Default)]
struct State {
    begun: bool,
    over: bool,
    of_model: bool,
    /// Open permissions.
    asking: u32,
    was_asked: bool,
    /// A permission was closed in a way that doesn't allow it.
    refused: bool,
    decided: Option<bool>,
}

impl Calls {
    /// A reply is whole; `None`: it was retracted, and its calls never begin.
    pub(super) fn reply(&mut self, message: Option<&Message>, list: CallList, request_open: bool) {
        self.reply = message.map(|message| message.id);
        self.listed = message
            .map(|message| message.calls().collect())
            .unwrap_or_default();
        self.list_is_whole = list == CallList::Complete;
        // Where a foreign agent tells of no request there is no signal to wait for.
        self.complete = !request_open;
        self.next = 0;
        for call in &self.listed {
            // A foreign agent may have begun it already.
            self.states.entry(*call).or_default();
        }
    }

    pub(super) fn request_ended(&mut self, complete: bool) {
        self.complete = complete;
    }

    /// `early`: while the reply that makes it is still open, as a foreign agent may.
    pub(super) fn started(
        &mut self,
        call: CallId,
        cause: &ToolCause,
        early: bool,
        report: &mut Report,
    ) {
        let of_model = matches!(cause, ToolCause::Model { .. });
        if let (ToolCause::Model { message, .. }, false) = (cause, early) {
            let of_reply = self.reply == Some(*message);
            report.check(of_reply && self.complete, Breach::StartedIncomplete(call));
            match self.listed.iter().position(|listed| *listed == call) {
                Some(nth) => {
                    report.check(nth >= self.next, Breach::CallsOutOfOrder(call));
                    self.next = nth;
                }
                None => report.check(!(of_reply && self.list_is_whole), Breach::Unlisted(call)),
            }
        }
        let state = self.states.entry(call).or_default();
        state.begun = true;
        state.of_model = of_model;
    }

    pub(super) fn asked(&mut self, call: CallId) {
        let state = self.states.entry(call).or_default();
        state.asking += 1;
        state.was_asked = true;
    }

    pub(super) fn ask_closed(&mut self, call: CallId, how: &AskClose) {
        if let Some(state) = self.states.get_mut(&call) {
            state.asking = state.asking.saturating_sub(1);
            state.refused |= !how.allows();
        }
    }

    pub(super) fn decided(&mut self, call: CallId, verdict: &Verdict, report: &mut Report) {
        let Some(state) = self
            .states
            .get_mut(&call)
            .filter(|state| state.begun && !state.over)
        else {
            return report.breach(Breach::DecidedOutside(call));
        };
        report.check(state.decided.is_none(), Breach::DecidedTwice(call));
        report.check(state.asking == 0, Breach::DecidedWhileAsked(call));
        report.check(
            !(state.refused && verdict.allow),
            Breach::AllowedAgainst(call),
        );
        state.decided = Some(verdict.allow);
    }

    /// Whether the call had begun when it was handed to the driver.
    pub(super) fn ran(&mut self, call: CallId, report: &mut Report) -> bool {
        let Some(state) = self
            .states
            .get(&call)
            .filter(|state| state.begun && !state.over)
        else {
            return false;
        };
        report.check(state.decided != Some(false), Breach::RanDenied(call));
        report.check(
            !state.was_asked || state.decided.is_some(),
            Breach::RanUndecided(call),
        );
        true
    }

    pub(super) fn ended(&mut self, call: CallId, report: &mut Report) {
        let Some(state) = self
            .states
            .get_mut(&call)
            .filter(|state| state.begun && !state.over)
        else {
            return report.breach(Breach::CallEndedTwice(call));
        };
        report.check(
            !state.was_asked || state.decided.is_some(),
            Breach::NeverDecided(call),
        );
        state.over = true;
    }

    pub(super) fn skipped(&mut self, call: CallId, report: &mut Report) {
        let Some(state) = self.states.get_mut(&call) else {
            return report.breach(Breach::Unlisted(call));
        };
        report.check(
            !state.begun && !state.over,
            Breach::SkippedThoughBegun(call),
        );
        state.over = true;
    }

    pub(super) fn step_ended(&mut self, report: &mut Report) {
        let open = |call: &&CallId| self.states.get(call).is_some_and(|state| !state.over);
        for call in self.listed.iter().filter(open) {
            report.breach(Breach::CallNeverEnded(*call));
        }
        for (call, _) in self
            .states
            .iter()
            .filter(|(_, state)| state.begun && state.of_model && !state.over)
        {
            if !self.listed.contains(call) {
                report.breach(Breach::CallNeverEnded(*call));
            }
        }
        // Calls of the host or of the agent itself outlive a step.
        self.states
            .retain(|_, state| state.begun && !state.of_model && !state.over);
        self.listed.clear();
        self.reply = None;
    }

    /// Whether a call of the model is open.
    pub(super) fn any_open(&self) -> bool {
        self.states
            .values()
            .any(|state| state.begun && state.of_model && !state.over)
    }
}
