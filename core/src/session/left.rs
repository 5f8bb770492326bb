//! What becomes of prompts that a turn leaves behind when it ends.

use alloc::vec::Vec;

use super::Session;
use super::queue::prompts::{Kind, Waiting};
use crate::session::config::LeftoverSteer;
use crate::vocab::{DropWhy, End, Lane, QueueFate, What};

impl Session {
    pub(super) fn leftovers(&self) -> LeftoverSteer {
        if self.closing.is_now() {
            LeftoverSteer::Drop
        } else {
            self.config.policy.leftover_steer
        }
    }

    /// What is left of the steer queue when its turn ends. Where nothing is to run any more, what jobs had to say only
    /// enters the history.
    pub(super) fn leave_steers(&mut self, fate: QueueFate) {
        let mut kept = Vec::new();
        let mut jobs = Vec::new();
        let policy = self.leftovers();
        while let Some(prompt) = self.prompts.pop_steer() {
            match (prompt.kind, policy) {
                (Kind::Context, LeftoverSteer::Drop | LeftoverSteer::Keep) => {
                    self.apply_idle(prompt)
                }
                // It begins a turn, or joins the next one.
                (Kind::Job, _) if fate != QueueFate::Drop && self.jobs_begin_turns() => {
                    jobs.push(prompt);
                }
                (Kind::Job, LeftoverSteer::Drop | LeftoverSteer::Keep) => self.apply_idle(prompt),
                (Kind::Prompt, LeftoverSteer::Drop) => {
                    self.say(What::PromptEnded {
                        prompt: prompt.id,
                        end: End::Dropped(DropWhy::TurnOver),
                    });
                }
                (Kind::Prompt, LeftoverSteer::Keep) => {
                    self.say(What::Queued {
                        prompt: prompt.id,
                        lane: Lane::FollowUp,
                    });
                    kept.push(prompt);
                }
            }
        }
        self.prompts.keep_steers(kept);
        for prompt in jobs {
            self.prompts.push(Lane::Steer, prompt);
        }
    }

    /// The end of a prompt that was never applied. One that the session made and never spoke of ends in silence.
    pub(super) fn unapplied(&mut self, prompt: &Waiting, end: End) {
        if prompt.announced {
            self.say(What::PromptEnded {
                prompt: prompt.id,
                end,
            });
        }
    }

    /// Pending prompts that arrived up to a point end without a turn.
    pub(super) fn drop_pending(&mut self, why: DropWhy, until: u64) {
        for prompt in self.prompts.take_pending_until(until) {
            self.say(What::PromptEnded {
                prompt: prompt.id,
                end: End::Dropped(why),
            });
        }
    }
}
