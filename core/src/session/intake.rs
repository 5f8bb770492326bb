//! The intake: prompts whose submission hooks are asked before they are admitted ([`PromptHook::AtSubmit`]).
//!
//! One is judged at a time, in order of arrival, beside whatever turn runs. One that passes is handled as if it came
//! only now, so that its reply says what the session is then; one that is blocked is refused and leaves nothing
//! behind. A cancel of the turn refuses all that came before it and aren't admitted.

use alloc::{
    collections::{VecDeque, vec_deque},
    vec::Vec,
};

use super::{
    Session, args,
    commands::{Owed, OwedFor},
    config::PromptHook,
    hooks::{Chain, Owner, Says, Slot},
    queue::prompts::Submitted,
};
use crate::vocab::{
    AskClose, Block, CommandId, HookFacts, HookPoint, Prompt, PromptId, Refusal, Text, What,
};

/// A prompt that isn't admitted yet.
pub(super) struct Entry {
    command: CommandId,
    submitted: Submitted,
    /// The hooks that still judge it, once they began.
    chain: Option<Chain>,
}

/// The prompts that aren't admitted yet, the one that is being judged first.
#[derive(Default)]
pub(super) struct Intake(VecDeque<Entry>);

impl Intake {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> usize {
        self.0
            .iter()
            .map(|entry| entry.submitted.prompt.bytes())
            .sum()
    }

    /// What a hook is told of the prompt that it judges.
    pub fn facts(&self) -> HookFacts {
        match self.0.front() {
            Some(entry) => facts(&entry.submitted.prompt),
            None => HookFacts::Prompt {
                prompt: PromptId(0),
                text: "".into(),
            },
        }
    }
}

/// Prompts that were taken out of the intake, to be refused.
pub(super) struct Turned(vec_deque::IntoIter<Entry>);

fn facts(prompt: &Prompt) -> HookFacts {
    HookFacts::Prompt {
        prompt: prompt.id,
        text: args::text_of(&prompt.content),
    }
}

impl Session {
    /// Whether a prompt that comes now is judged before it is admitted.
    pub(super) fn judges_first(&self) -> bool {
        match self.config.policy.prompt_hook {
            PromptHook::AtStart => false,
            PromptHook::AtSubmit => {
                !self.intake.is_empty()
                    || self.reloading.is_some()
                    || self.has_hooks(HookPoint::PromptSubmit)
            }
        }
    }

    /// Takes a prompt in; it is replied to when it was judged.
    pub(super) fn take_in(&mut self, command: CommandId, submitted: Submitted) {
        if !self.queue_room(&submitted.prompt) || self.owed.len() >= self.config.limits.owed_replies
        {
            return self.refuse(command, Refusal::Full);
        }
        self.owed.push_back(Owed {
            command,
            what: OwedFor::Admission,
            since_us: self.now.mono_us,
        });
        let waits = !self.intake.is_empty();
        self.intake.0.push_back(Entry {
            command,
            submitted,
            chain: None,
        });
        if !waits {
            self.judge_intake();
        }
    }

    /// Asks the next hook about the first prompt; those that passed are handled. Nothing, while a hook is being asked.
    pub(super) fn judge_intake(&mut self) {
        while let Some(mut entry) = self.intake.0.pop_front() {
            // Without a chain of its own yet: one that begins takes the hooks that are being read again.
            let waits = match &entry.chain {
                Some(chain) => chain.slot.is_some(),
                None => self.reloading.is_some(),
            };
            if waits {
                return self.intake.0.push_front(entry);
            }
            let begun = entry.chain.take();
            let mut chain = begun.unwrap_or_else(|| self.chain(Owner::Intake, None, self.now));
            if self.next_hook(&mut chain, Owner::Intake, || facts(&entry.submitted.prompt)) {
                entry.chain = Some(chain);
                return self.intake.0.push_front(entry);
            }
            self.judged(entry.command);
            self.place(entry.command, entry.submitted);
            self.pass_barriers();
        }
    }

    /// A hook decided about the first prompt.
    pub(super) fn intake_hook_said(&mut self, key: &Text, says: Says) {
        let Some(mut entry) = self.intake.0.pop_front() else {
            return;
        };
        if let Some(chain) = &mut entry.chain {
            chain.slot = None;
        }
        let note = match says {
            Says::Deny { why: text, .. } => {
                self.judged(entry.command);
                let hook = key.clone();
                self.refuse(entry.command, Refusal::Blocked { hook, text });
                self.pass_barriers();
                return self.judge_intake();
            }
            Says::Pass { note } => note,
            Says::Ask => None,
            Says::Allow { input, note, .. } => {
                if let Some(text) = input.and_then(|raw| args::string(&raw)) {
                    replace_text(&mut entry.submitted.prompt.content, text);
                }
                note
            }
        };
        let notes = &mut entry.submitted.notes;
        notes.extend(note.map(|note| (key.clone(), note)));
        self.intake.0.push_front(entry);
        self.judge_intake();
    }

    /// A cancel takes out all that isn't admitted. The question of a hook that the host runs is closed here, unless the
    /// turn's are about to be.
    pub(super) fn turn_away(&mut self, turn_stops: bool) -> Turned {
        let taken = core::mem::take(&mut self.intake.0);
        let slot = taken.front().and_then(|entry| entry.chain.as_ref()?.slot);
        if let Some(Slot::Host(ask)) = slot
            && !turn_stops
            && self.asks.remove(&ask).is_some()
        {
            let how = AskClose::Cancelled;
            self.say(What::AskClosed { ask, how });
        }
        Turned(taken.into_iter())
    }

    /// Refuses what was taken out.
    pub(super) fn turned_away(&mut self, turned: Turned, why: &Refusal) {
        for entry in turned.0 {
            if let Some(Slot::Local(hook)) = entry.chain.and_then(|chain| chain.slot) {
                self.stop_hook(hook);
            }
            self.judged(entry.command);
            self.refuse(entry.command, why.clone());
        }
        self.pass_barriers();
    }

    /// The reply to a prompt isn't owed any more.
    fn judged(&mut self, command: CommandId) {
        self.owed.retain(|owed| owed.command != command);
    }
}

/// A hook's text in the place of the prompt's.
pub(super) fn replace_text(content: &mut Vec<Block>, text: Text) {
    content.retain(|block| !matches!(block, Block::Text(_)));
    content.insert(0, Block::Text(text));
}
