//! How a run ends: what its turn came to, what became of its worktree, and which exit code that is.

use alloc::string::{String, ToString};

use super::super::MergeBack;
use super::super::wire::Final;
use super::{Face, Out, Phase};
use crate::json::Str;
use crate::protocol::member::Map;
use crate::vocab::*;

/// What is said of a run that a signal has ended.
pub(super) const INTERRUPTED: &str = "run cancelled by signal";
/// Its exit code.
pub(super) const INTERRUPTED_EXIT: u8 = 130;

/// How far the end is.
#[derive(Debug, Default)]
pub(super) enum Ending {
    /// The turn goes on.
    #[default]
    Open,
    /// The turn has succeeded, and waits for its merge.
    Merging {
        ask: u64,
        answer: String,
    },
    Told,
}

impl Ending {
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Ending::Open)
    }
}

/// What the last lines are made of.
struct Last<'a> {
    status: &'static str,
    exit: u8,
    /// The code and the text of the error.
    error: Option<(&'static str, &'a str)>,
    /// What the JSON of a pipeline says, if there is a `final`.
    outcome: Option<&'static str>,
}

impl Face {
    pub(super) fn turn_ended(&mut self, end: &End, answer: Option<&TurnAnswer>, out: &mut Out) {
        self.close_blocks(out);
        let answer = match answer {
            Some(TurnAnswer::Text(text)) => text.to_string(),
            Some(TurnAnswer::Captured { input, .. }) => input.as_str().into(),
            None => String::new(),
        };
        if let (End::Finished { .. }, Some(branch)) = (end, &self.config.merge_back) {
            let ask = Face::ask_merge(branch, out);
            self.ending = Ending::Merging { ask, answer };
            return;
        }
        let text = match end.failure() {
            Some(failure) => failure.text.to_string(),
            None => words(end).into(),
        };
        let last = match end {
            End::Finished { .. } | End::Local | End::NotSaid if self.config.drafts => Last {
                status: "spec_review_required",
                exit: 0,
                error: None,
                outcome: Some("completed"),
            },
            End::Finished { .. } | End::Local | End::NotSaid => Last {
                status: "success",
                exit: 0,
                error: None,
                outcome: Some("completed"),
            },
            // One session alone can't be half done; neither can a draft without its specification.
            End::Failed(_) | End::Incomplete(_) if !self.tally.pipeline => Last {
                status: "error",
                exit: 3,
                error: Some(("provider_error", &text)),
                outcome: None,
            },
            End::Cancelled(_) | End::Dropped(_) | End::Withdrawn => Last {
                status: "interrupted",
                exit: INTERRUPTED_EXIT,
                error: Some(("interrupted", INTERRUPTED)),
                outcome: None,
            },
            End::Failed(_)
            | End::Incomplete(_)
            | End::Truncated(_)
            | End::MaxSteps
            | End::BudgetExhausted(_)
            | End::Unverified
            | End::Blocked(_)
            | End::Yielded { .. }
            | End::Aborted { .. } => Last {
                status: "incomplete",
                exit: 4,
                error: Some(("incomplete", &text)),
                outcome: Some(if matches!(end, End::Incomplete(_) | End::Failed(_)) {
                    "failed"
                } else {
                    "aborted"
                }),
            },
        };
        self.last(&last, &answer, out);
    }

    /// The agent has gone in the middle of the run.
    pub(super) fn broken(&mut self, text: &str, out: &mut Out) {
        self.close_blocks(out);
        let last = match self.signal {
            Some(_) => Last {
                status: "interrupted",
                exit: INTERRUPTED_EXIT,
                error: Some(("interrupted", INTERRUPTED)),
                outcome: None,
            },
            None => Last {
                status: "error",
                exit: 3,
                error: Some(("provider_error", text)),
                outcome: None,
            },
        };
        self.last(&last, "", out);
    }

    /// What became of the merge.
    pub(super) fn merged(&mut self, merge: &MergeBack, out: &mut Out) {
        let Ending::Merging { answer, .. } = &self.ending else {
            return;
        };
        if self.phase != Phase::Running {
            return;
        }
        let answer = answer.clone();
        let hole = self.config.faithful_hole;
        match merge {
            MergeBack::Merged(text) | MergeBack::NoChange(text) => {
                self.text(&alloc::format!("[splice] merge-back: {text}\n"), out);
                let last = Last {
                    status: "success",
                    exit: 0,
                    error: None,
                    outcome: Some("completed"),
                };
                self.last(&last, &answer, out);
            }
            MergeBack::Dirty(text) | MergeBack::Conflict(text) => {
                let word = if matches!(merge, MergeBack::Dirty(_)) {
                    "skipped_dirty"
                } else {
                    "conflict"
                };
                let text = alloc::format!("merge-back {word}: {text}");
                self.warning(&text, out);
                if hole {
                    self.ending = Ending::Told;
                    return self.over(4, out);
                }
                let last = Last {
                    status: "incomplete",
                    exit: 4,
                    error: Some(("incomplete", &text)),
                    outcome: Some("completed"),
                };
                self.last(&last, &answer, out);
            }
            MergeBack::Failed(text) => {
                let text = alloc::format!("merge-back failed: {text}");
                let last = Last {
                    status: "error",
                    exit: 1,
                    error: Some(("merge_back_failed", &text)),
                    outcome: Some("completed"),
                };
                self.last(&last, &answer, out);
            }
        }
    }

    /// A signal while the merge is under way.
    pub(super) fn unmerged(&mut self, out: &mut Out) {
        if let Ending::Merging { ask, .. } = &self.ending {
            out.dismiss(*ask);
            self.broken("", out);
        }
    }

    fn last(&mut self, last: &Last<'_>, answer: &str, out: &mut Out) {
        self.ending = Ending::Told;
        let error = last
            .error
            .map(|(code, text)| (code, String::from(&*self.clean(text))));
        if let Some(outcome) = last.outcome {
            let reason = error.as_ref().map(|(_, text)| text.as_str());
            let reason = reason.filter(|_| outcome != "completed");
            let text = if self.tally.pipeline {
                self.result(outcome, reason)
            } else {
                String::from(&*self.clean(answer))
            };
            let meta = self.config.drafts.then(|| self.draft_meta());
            self.put(
                Final {
                    meta,
                    run_id: self.id(),
                    text: (!text.is_empty()).then(|| text.as_str().into()),
                    ..Final::default()
                },
                out,
            );
        }
        if let Some((code, text)) = &error {
            self.error(code, text, out);
        }
        self.run_end(last.status, last.exit, out);
    }

    /// What is told of a specification that was drafted.
    fn draft_meta(&self) -> Map<'_, Str<'_>> {
        let session = self.info.as_ref().map_or("", |info| &*info.session);
        let mut meta = alloc::vec::Vec::new();
        if !session.is_empty() {
            meta.push((Str::from("draftSessionId"), Str(self.clean(session))));
        }
        meta.push(("status".into(), "draft".into()));
        meta.push(("stopReason".into(), "spec_review_required".into()));
        Map(meta)
    }
}

/// Why a run isn't done, where nothing failed.
fn words(end: &End) -> &str {
    match end {
        End::MaxSteps => "the limit on steps is reached",
        End::BudgetExhausted(BudgetKind::Tokens) => "the budget of tokens is used up",
        End::BudgetExhausted(BudgetKind::Money) => "the budget of money is used up",
        End::Unverified => "a check refused the end",
        End::Blocked(why) | End::Aborted { reason: why } => why,
        End::Yielded { .. } => "the history is nearly too long",
        End::Finished { .. }
        | End::Local
        | End::Truncated(_)
        | End::Incomplete(_)
        | End::Cancelled(_)
        | End::Dropped(_)
        | End::Withdrawn
        | End::Failed(_)
        | End::NotSaid => "",
    }
}
