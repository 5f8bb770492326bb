//! The order in which the host hears of what wasn't taken.
//!
//! No line names the command that it is about, so that a host can only go by the order: of prompts among prompts, of commands
//! of the person's among those, of goals among goals. Therefore each refusal waits until everything of its kind that was said
//! before it has its end. Then it is always about the oldest that waits.
//!
//! A terminal within a turn would end that turn, so that what has none of its own waits until none is open, too.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;

use super::prompts::Prompts;
use crate::vocab::{CommandId, PromptId, Refusal};

/// What no turn has a part in: the end of one that never began, and a command that couldn't be taken.
#[derive(Debug)]
pub(super) enum Bare {
    /// A command of the person's that has no place in the history.
    Unstored(String),
    /// The prompt wasn't taken.
    Refused(String),
    Failed(String),
    Aborted,
    Finished(String),
}

/// What waits to be told.
#[derive(Debug, Default)]
pub(super) struct Bares {
    prompts: BTreeMap<PromptId, Bare>,
    commands: BTreeMap<PromptId, String>,
}

impl Bares {
    /// The end of a prompt that had no turn.
    pub(super) fn end(&mut self, prompt: PromptId, bare: Bare) {
        self.prompts.insert(prompt, bare);
    }

    /// A command of the person's wasn't taken.
    pub(super) fn unstored(&mut self, command: PromptId, why: String) {
        self.commands.insert(command, why);
    }

    /// Takes what may be told now.
    pub(super) fn next(&mut self, open: &Prompts) -> Option<Bare> {
        if let Some(first) = self.prompts.first_entry()
            && !open.prompt_before(*first.key())
        {
            return Some(first.remove());
        }
        let first = self.commands.first_entry()?;
        (!open.command_before(*first.key())).then(|| Bare::Unstored(first.remove()))
    }
}

/// Commands about the goal that aren't told of, in the order in which they came; of those that were refused, why.
#[derive(Debug, Default)]
pub(super) struct Goals(VecDeque<(CommandId, Option<Refusal>)>);

impl Goals {
    pub(super) fn sent(&mut self, command: CommandId) {
        self.0.push_back((command, None));
    }

    /// One was replied to.
    pub(super) fn replied(&mut self, command: CommandId, why: Option<&Refusal>) {
        let Some(at) = self.0.iter().position(|(sent, _)| *sent == command) else {
            return;
        };
        match (why, self.0.get_mut(at)) {
            (Some(why), Some((_, told))) => *told = Some(why.clone()),
            (Some(_), None) | (None, _) => {
                self.0.remove(at);
            }
        }
    }

    /// The others won't be replied to any more.
    pub(super) fn over(&mut self) {
        self.0.retain(|(_, why)| why.is_some());
    }

    /// Takes the refusal that may be told now.
    pub(super) fn next(&mut self) -> Option<Refusal> {
        let (_, why) = self.0.front()?;
        let why = why.clone()?;
        self.0.pop_front();
        Some(why)
    }
}
