//! How a run ends: its error, its last line, and the end of the agent's output.

use super::super::wire::RunStatusWord;
use super::{ClientFace, Out, State};
use crate::vocab::*;

impl ClientFace {
    /// An error: of a run it comes before the end, and says why; before a run it refuses the prompt.
    pub(super) fn heard_error(&mut self, code: &str, text: Option<&str>, out: &mut Out) {
        if self.error.is_some() {
            out.finding("a second error");
        }
        self.error = Some((code.into(), text.unwrap_or("").into()));
        if let Some(region) = self.region() {
            region.end_message(Stop::NotSaid, out);
        }
    }

    pub(super) fn run_end(&mut self, status: &RunStatusWord<'_>, code: u64, out: &mut Out) {
        if self.state != State::Running {
            self.refused(out);
            self.state = State::Over;
            return;
        }
        let failure = self.failure();
        let end = match status {
            RunStatusWord::Success | RunStatusWord::SpecReviewRequired => {
                End::Finished { finish: None }
            }
            RunStatusWord::Incomplete => End::Incomplete(failure),
            RunStatusWord::Interrupted => End::Cancelled(self.why()),
            RunStatusWord::Error | RunStatusWord::Other(_) if code == 0 => {
                out.finding("a run that went wrong, and the exit code 0");
                End::Failed(failure)
            }
            RunStatusWord::Error | RunStatusWord::Other(_) => End::Failed(failure),
        };
        if self.bound && !end.is_cancelled() {
            // A cancel that was replied to wins over an end that it has crossed.
            out.infer(What::Notice {
                level: Level::Info,
                code: Some("cancel_crossed".into()),
                text: match end.failure() {
                    Some(failure) => failure.text.clone(),
                    None => "the run had ended when the cancel came".into(),
                },
            });
            return self.over(End::Cancelled(self.why()), Seen::Inferred, out);
        }
        self.over(end, Seen::Real, out);
    }

    /// On whose behalf a run was stopped: by somebody else's signal, if not by ours.
    fn why(&self) -> CancelWhy {
        self.stopped
            .clone()
            .unwrap_or(CancelWhy::Signal(Signal::Interrupt))
    }

    /// What the error has said.
    fn failure(&self) -> Failure {
        match &self.error {
            Some((code, text)) => {
                let kind = match &**code {
                    "usage_error" => FailureKind::Input,
                    "provider_error" => FailureKind::Server,
                    "mcp_error" | "sandbox_error" | "specialist_error" => FailureKind::Setup,
                    _ => FailureKind::Internal,
                };
                Failure::new(kind, text.clone())
            }
            None => Failure::new(FailureKind::Internal, "the agent didn't say why"),
        }
    }

    /// No run has begun: the prompt is refused.
    fn refused(&mut self, out: &mut Out) {
        let Some(asked) = self.asked.take() else {
            return;
        };
        let refusal = match &self.error {
            Some((code, _)) if &**code == "interrupted" => Refusal::Cancelled,
            Some((code, text)) if &**code == "usage_error" => Refusal::Invalid(text.clone()),
            Some((_, text)) => Refusal::Failed(Failure::new(FailureKind::Setup, text.clone())),
            None => {
                out.finding("a run was refused without an error");
                Refusal::Failed(Failure::new(FailureKind::Setup, "the agent didn't say why"))
            }
        };
        out.reply(asked.command, Seen::Real, Err(refusal));
    }

    /// Everything that is open ends.
    fn over(&mut self, end: End, seen: Seen, out: &mut Out) {
        self.state = State::Over;
        let cancelled = end.is_cancelled();
        let status = if cancelled {
            RunStatus::Cancelled
        } else {
            RunStatus::Failed
        };
        self.stage_ends(status, Seen::Inferred, "", out);
        let outcome = if cancelled {
            ToolOutcome::Cancelled
        } else {
            ToolOutcome::NotSaid
        };
        self.calls.end_all(None, &outcome, out);
        let answer = self.answer.take().map(TurnAnswer::Text);
        let report = TurnReport {
            requests: Some(self.requests),
            ..TurnReport::default()
        };
        if let Some(main) = self.main.take() {
            main.end(end.clone(), seen, answer, report, out);
        }
        if let Some(prompt) = self.prompt.take() {
            out.infer(What::PromptEnded { prompt, end });
        }
        out.infer(What::Settled);
    }

    /// The agent's output has ended.
    pub(super) fn gone(&mut self, out: &mut Out) {
        let was = self.state;
        let failure = Failure::new(
            if was == State::Running {
                FailureKind::Internal
            } else {
                FailureKind::Setup
            },
            "the agent ended before its run had",
        );
        match was {
            State::Running => {
                out.finding("there is no run_end");
                let end = match &self.stopped {
                    Some(why) => End::Cancelled(why.clone()),
                    None => End::Failed(failure.clone()),
                };
                self.over(end, Seen::Inferred, out);
            }
            State::Sent => {
                if self.error.is_some() {
                    self.refused(out);
                } else if let Some(asked) = self.asked.take() {
                    let refusal = Refusal::Failed(failure.clone());
                    out.reply(asked.command, Seen::Inferred, Err(refusal));
                }
            }
            State::Open | State::Over => {}
        }
        let why = match (was, &self.stopped) {
            (_, Some(CancelWhy::Signal(signal))) => CloseWhy::Signal(*signal),
            (_, Some(_)) => CloseWhy::HostGone,
            (State::Over, None) => CloseWhy::Drained,
            (State::Open, None) if self.drain.is_some() => CloseWhy::Drained,
            (State::Open | State::Sent | State::Running, None) => CloseWhy::Fault(failure),
        };
        out.infer(What::Closed { why });
    }
}
