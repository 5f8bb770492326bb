//! MCP servers in the loop: they are started beside the session, and what becomes of them is its news.

use turnwire::protocol::Protocol;
use turnwire::vocab::{Agent, CommandId, Due, Input, McpFact, Text};

use super::{Engine, give};
use crate::error::Error;
use crate::world::{Asked, Reloaded};

/// A reload that stands before a turn, held back for servers that are being started.
pub(super) struct Held {
    command: CommandId,
    outcome: Result<Reloaded, Text>,
    until_us: u64,
}

impl<P: Protocol, A: Agent> Engine<P, A> {
    /// Starts and ends what was wished since, and tells the session how the servers stand. Whether anything was said.
    pub(super) fn sync_mcp(&mut self) -> Result<bool, Error> {
        if self.exit.is_some() {
            return Ok(false);
        }
        let mark = self.output.mark();
        let Some(news) = self.effects.sync_mcp(self.now, mark) else {
            return Ok(false);
        };
        let mut said = false;
        for fact in &news.facts {
            log(fact);
            if let Some(heard) = &mut self.heard_mcp {
                for extra in heard(fact) {
                    said = true;
                    self.server.handle_extra(extra, self.now);
                }
            }
        }
        if let Some((tools, mcp)) = news.changes {
            said = true;
            give(&mut self.agent, Input::DriverTools { tools, mcp }, self.now)?;
        }
        Ok(self.release_held()? || said)
    }

    /// Holds a reload back that stands before a turn, while servers are being started for the first time.
    pub(super) fn hold_for_mcp(
        &mut self,
        command: CommandId,
        asked: Asked,
        outcome: Result<Reloaded, Text>,
    ) -> Option<Result<Reloaded, Text>> {
        match self.effects.wait_for_mcp(self.now) {
            Some(until_us) if asked == Asked::Nobody => {
                self.held = Some(Held {
                    command,
                    outcome,
                    until_us,
                });
                None
            }
            Some(_) | None => Some(outcome),
        }
    }

    /// When servers that end are started again, or no longer waited for.
    pub(super) fn due_of_mcp(&self) -> Option<Due> {
        let held = self.held.as_ref().map(|held| Due {
            at_us: held.until_us,
            why: "mcp",
        });
        Due::earliest(self.effects.due_of_mcp(), held)
    }

    /// The turn goes on once no server keeps it. Whether one did.
    fn release_held(&mut self) -> Result<bool, Error> {
        let now_us = self.now.mono_us;
        let keeps = |held: &mut Held| {
            held.until_us <= now_us || self.effects.wait_for_mcp(self.now).is_none()
        };
        let Some(held) = self.held.take_if(keeps) else {
            return Ok(false);
        };
        self.reload_settled(held.command, Asked::Nobody, held.outcome)?;
        Ok(true)
    }
}

/// What a person who watches the program may want to know.
fn log(fact: &McpFact) {
    match fact {
        McpFact::Registered { servers, names } => {
            tracing::info!(servers, tools = names.len(), "MCP servers are ready");
        }
        McpFact::Renamed { server, from, to } => {
            tracing::info!("the tool {from:?} of the MCP server {server:?} is called {to}");
        }
        McpFact::Duplicate { server, tool } => {
            tracing::warn!("the MCP server {server:?} has two tools {tool:?}: one is left out");
        }
        McpFact::Capped { server, kept } => {
            tracing::warn!("the MCP server {server:?} has too many tools: {kept} are taken");
        }
        McpFact::OverCap { server } => {
            tracing::warn!("there are too many tools for those of the MCP server {server:?}");
        }
        McpFact::LeftOut { server, tool, why } => {
            tracing::warn!("the tool {tool:?} of the MCP server {server:?} is left out: {why}");
        }
        McpFact::ConnectFailed { server, error } => {
            tracing::warn!("the MCP server {server:?} can't be used: {error}");
        }
        McpFact::ListFailed { server, error } => {
            tracing::warn!("the MCP server {server:?} doesn't say which tools it has: {error}");
        }
        McpFact::ListTimedOut { server } => {
            tracing::warn!("the MCP server {server:?} took too long to say which tools it has");
        }
        McpFact::NoTools { server } => {
            tracing::warn!("the MCP server {server:?} has no tools");
        }
        McpFact::Lost {
            server,
            error,
            again,
        } => {
            let then = if *again {
                "it is started again"
            } else {
                "it isn't started any more"
            };
            tracing::warn!("the MCP server {server:?} is gone: {error}; {then}");
        }
    }
}
