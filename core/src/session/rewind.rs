//! Rewind: the driver puts files back as they were before a prompt. The history stays as it is.

use alloc::boxed::Box;

use super::{Session, commands::OwedFor, config::Snapshots, phase::Phase};
use crate::vocab::{
    Answer, CommandId, Effect, EffectBody, FailureKind, MessageId, PromptId, Refusal, Restoration,
    RewindTo, Role, Text, What,
};

impl Session {
    /// `Rewind`: while nothing runs that could change files.
    pub(super) fn rewind(&mut self, command: CommandId, to: RewindTo, dry_run: bool) {
        if self.config.policy.snapshots == Snapshots::Never {
            return self.not_yet(command, "rewind");
        }
        if !self.closing.is_open() {
            return self.refuse(command, Refusal::Closing);
        }
        let to = match to {
            RewindTo::Prompt(prompt) => self.rewindable.get(&prompt).copied(),
            RewindTo::Message(message) => self.is_prompt(message).then_some(message),
            RewindTo::Checkpoint(_) => {
                return self.refuse(command, Refusal::Unsupported("rewind to a checkpoint"));
            }
        };
        let idle = matches!(self.phase, Phase::Idle) && !self.effects.tools.has_stopped();
        if !idle || self.reloading.is_some() || self.restoring.is_some() {
            return self.refuse(command, Refusal::Busy);
        }
        let Some(to) = to else {
            return self.refuse(command, Refusal::Unknown);
        };
        if self.owed.len() >= self.config.limits.owed_replies || !self.has_room() {
            return self.refuse(command, Refusal::Full);
        }
        self.restoring = Some(command);
        self.effects.restores.issue(command.0);
        self.out.effect(Effect::Restore(command));
        self.owe(command, OwedFor::Rewind { to, dry_run });
    }

    /// The driver has put files back, or said what it would do.
    pub(super) fn restored(&mut self, command: CommandId, outcome: Result<Box<Restoration>, Text>) {
        self.restoring = None;
        let found = self.owed.iter().position(|owed| owed.command == command);
        let owed = found.and_then(|at| self.owed.remove(at));
        let dry_run = matches!(
            owed.map(|owed| owed.what),
            Some(OwedFor::Rewind { dry_run: true, .. })
        );
        match outcome {
            Ok(done) => {
                let Restoration {
                    restored,
                    deleted,
                    skipped,
                    added,
                    removed,
                } = *done;
                let files = restored.iter().chain(&deleted).cloned().collect();
                self.answer(
                    command,
                    Answer::Rewound {
                        can: true,
                        files,
                        added,
                        removed,
                    },
                );
                if !dry_run {
                    self.say(What::Restored {
                        checkpoint: None,
                        restored,
                        deleted,
                        skipped,
                    });
                }
            }
            Err(detail) => {
                let failure = super::failure(FailureKind::Store, &detail);
                self.refuse(command, Refusal::Failed(failure));
            }
        }
        self.pass_barriers();
    }

    /// A prompt enters the history: files can go back to where they are now.
    pub(super) fn mark_prompt(&mut self, prompt: PromptId, message: MessageId) {
        if self.config.policy.snapshots == Snapshots::Never {
            return;
        }
        self.rewindable.insert(prompt, message);
        while self.rewindable.len() > self.config.limits.rewind_prompts {
            self.rewindable.pop_first();
        }
    }

    /// Whether a message is one that somebody wrote, of this process or an earlier one.
    fn is_prompt(&self, message: MessageId) -> bool {
        let history = self.history.iter();
        let mut written = history.filter(|one| one.role == Role::User && !one.id.is_made_up());
        written.any(|one| one.id == message)
            || self.rewindable.values().any(|marked| *marked == message)
    }

    /// The message that was made last.
    pub(super) fn newest_message(&self) -> MessageId {
        MessageId(self.ids.last_message())
    }

    pub(super) fn restore_body(&self, command: CommandId) -> Option<EffectBody<'_>> {
        let owed = self.owed.iter().find(|owed| owed.command == command)?;
        match owed.what {
            OwedFor::Rewind { to, dry_run } => Some(EffectBody::Restore {
                to,
                at: self.newest_message(),
                dry_run,
            }),
            OwedFor::Admission
            | OwedFor::Setting { .. }
            | OwedFor::Reload
            | OwedFor::Goal(_)
            | OwedFor::Run(_)
            | OwedFor::Session
            | OwedFor::Barrier => None,
        }
    }
}
