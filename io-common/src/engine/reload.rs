//! A configuration that is read anew: on the storage thread, for the host or before a turn.

use turnwire::protocol::Protocol;
use turnwire::vocab::{Agent, Answer, Call, Command, CommandId, Input, Text};

use super::{Engine, give};
use crate::error::Error;
use crate::world::{Anew, Asked, Reloaded};

/// Commands of the engine itself have ids from here on; those of hosts never come so far.
const OWN_COMMANDS: u64 = 1 << 63;

/// Who gave a reload.
pub(super) fn asked(command: CommandId) -> Asked {
    if command.0 < OWN_COMMANDS {
        Asked::Host
    } else {
        Asked::Nobody
    }
}

impl<P: Protocol, A: Agent> Engine<P, A> {
    /// What a turn is made of is read anew before it, where the embedder wants that: the turn waits for it. A session
    /// that is busy refuses, and nobody hears of it.
    pub(super) fn reload_before_turn(&mut self) -> Result<(), Error> {
        // Servers that were wished for a moment ago are started, and waited for, too.
        self.sync_mcp()?;
        let waits = self.effects.wait_for_mcp(self.now).is_some();
        if !waits && !self.effects.reloads_before_turns() {
            return Ok(());
        }
        let id = CommandId(OWN_COMMANDS.saturating_add(self.own_commands));
        self.own_commands = self.own_commands.saturating_add(1);
        let command = Command::Reload;
        give(&mut self.agent, Input::Call(Call { id, command }), self.now)
    }

    /// The configuration was read anew: what only the protocol has a line for is said, then the session uses it.
    pub(super) fn reloaded(
        &mut self,
        command: CommandId,
        outcome: Result<Reloaded, Text>,
    ) -> Result<(), Error> {
        let asked = asked(command);
        // It may have brought servers.
        self.sync_mcp()?;
        if let Some(outcome) = self.hold_for_mcp(command, asked, outcome) {
            self.reload_settled(command, asked, outcome)?;
        }
        self.drain()
    }

    /// Hands over what came of a reload.
    pub(super) fn reload_settled(
        &mut self,
        command: CommandId,
        asked: Asked,
        outcome: Result<Reloaded, Text>,
    ) -> Result<(), Error> {
        let outcome = match outcome {
            Ok(mut reloaded) => {
                if let Some(anew) = reloaded.anew.take() {
                    self.use_anew(&reloaded, *anew, asked)?;
                }
                Ok(Answer::Reloaded {
                    tools: reloaded.tools,
                    skills: reloaded.skills,
                    changes: reloaded.changes,
                })
            }
            Err(why) => {
                if asked == Asked::Nobody {
                    tracing::warn!("the settings stay as they were: {why}");
                }
                Err(why)
            }
        };
        let settled = Input::Reloaded { command, outcome };
        give(&mut self.agent, settled, self.now)
    }

    fn use_anew(&mut self, reloaded: &Reloaded, anew: Anew, asked: Asked) -> Result<(), Error> {
        if let Some(refrozen) = &mut self.refrozen {
            for extra in refrozen(reloaded, &anew, asked) {
                self.server.handle_extra(extra, self.now);
            }
        }
        let Anew {
            mut frozen,
            toolbox,
            hooks,
        } = anew;
        self.effects.refreeze(&mut frozen, toolbox, hooks);
        let refrozen = Input::Refrozen {
            frozen: Box::new(frozen),
            changes: reloaded.changes.clone(),
        };
        give(&mut self.agent, refrozen, self.now)
    }
}
