//! Questions to the embedder, and what becomes of their answers.

use alloc::string::String;
use alloc::vec::Vec;

use super::Face;
use super::blocks::{self, raw};
use super::control::Ticket;
use crate::json;
use crate::protocol::Outbox;
use crate::protocol::agentx::policy::EnvUpdate;
use crate::protocol::agentx::settings::{self, SettingsLayer};
use crate::protocol::agentx::wire::{Answer as Payload, SessionState, Tag};
use crate::protocol::agentx::{Agentx, AgentxAsk, AgentxOutcome};
use crate::vocab::Text;

/// A question that is open.
#[derive(Debug)]
pub(super) enum Outside {
    /// Nobody waits for its answer.
    Quiet,
    /// An operation of the host's.
    Control(Ticket, String),
    /// Other MCP servers: those that the host runs are set with the answer.
    Servers(Ticket, Vec<String>),
    /// A change of the environment.
    Environment,
    /// Before `idle`.
    Flush,
    /// So many bytes of this upload were handed over.
    Append(Text, usize),
    /// This upload was to be committed.
    Commit(Text),
}

impl Face {
    /// An answer of the embedder.
    pub(super) fn outside_settled(
        &mut self,
        id: u64,
        outcome: AgentxOutcome,
        out: &mut Outbox<Agentx>,
    ) {
        let Some(asked) = self.outside.remove(&id) else {
            return;
        };
        match asked {
            Outside::Quiet => {}
            Outside::Flush => self.flushed(out),
            Outside::Append(upload, bytes) => {
                self.imports.taken(bytes);
                if !matches!(outcome, AgentxOutcome::Success(_)) {
                    self.import_unkept(&upload, out);
                }
            }
            Outside::Commit(upload) => self.import_kept(&upload, &outcome, out),
            Outside::Environment => {
                if !matches!(outcome, AgentxOutcome::Success(_)) {
                    out.diagnostic(NO_ENVIRONMENT.into());
                }
            }
            Outside::Servers(ticket, names) => match outcome {
                AgentxOutcome::Success(payload) => {
                    let payload = payload.filter(|payload| self.printer.is_clear(payload));
                    self.set_mcp(&ticket, &names, payload.as_ref(), out);
                }
                AgentxOutcome::Failure(text) => self.fail(&ticket, &text, None, out),
                AgentxOutcome::Default | AgentxOutcome::Settings(_) => {
                    self.unsupported(&ticket, &Tag::from("mcp_set_servers"), out);
                }
            },
            Outside::Control(ticket, subtype) => match outcome {
                AgentxOutcome::Success(None) => self.done(&ticket, out),
                AgentxOutcome::Success(Some(payload)) if self.printer.is_clear(&payload) => {
                    self.give(&ticket, &Payload::Other(raw(&payload)), out);
                }
                AgentxOutcome::Success(Some(_)) => {
                    self.fail(&ticket, "the answer holds a member twice", None, out);
                }
                AgentxOutcome::Failure(text) => self.fail(&ticket, &text, None, out),
                AgentxOutcome::Default => self.by_default(&ticket, &subtype, &[], out),
                AgentxOutcome::Settings(layers) => {
                    self.by_default(&ticket, &subtype, &layers, out);
                }
            },
        }
    }

    /// What an operation is answered that the embedder knows nothing of, or no more than layers of settings.
    fn by_default(
        &mut self,
        ticket: &Ticket,
        subtype: &str,
        layers: &[SettingsLayer],
        out: &mut Outbox<Agentx>,
    ) {
        if subtype != "get_settings" {
            return self.unsupported(ticket, &Tag::from(subtype), out);
        }
        let mut shown = b"{".to_vec();
        settings::write(layers, &mut shown);
        shown.extend_from_slice(b",\"applied\":{\"model\":");
        let info = self.mirror.info();
        json::write_str(&mut shown, info.map_or("", |info| &*info.model.model));
        shown.extend_from_slice(b",\"effort\":");
        match info.and_then(|info| info.settings.thinking.as_deref()) {
            Some(effort) => json::write_str(&mut shown, effort),
            None => shown.extend_from_slice(b"null"),
        }
        shown.extend_from_slice(b"}}");
        self.give(ticket, &Payload::Other(blocks::ours(&shown)), out);
    }

    /// The embedder flushes before the host hears that nothing runs; lines wait for that.
    pub(super) fn flushes(&mut self, out: &mut Outbox<Agentx>) {
        self.told = Some(SessionState::Idle);
        self.printer.hold();
        let ask = out.ask(AgentxAsk::Flush);
        self.outside.insert(ask, Outside::Flush);
    }

    /// It has flushed.
    fn flushed(&mut self, out: &mut Outbox<Agentx>) {
        let host_only = self.tells_states();
        self.printer.release(out, |printer, out| {
            if let Some(host_only) = host_only {
                printer.state(SessionState::Idle, host_only, out);
            }
        });
    }

    /// Nothing is waited for any more that lines wait for.
    pub(super) fn dismiss_flushes(&mut self, out: &mut Outbox<Agentx>) {
        let waits = |(id, asked): (&u64, &Outside)| matches!(asked, Outside::Flush).then_some(*id);
        let flushes: Vec<u64> = self.outside.iter().filter_map(waits).collect();
        for id in flushes {
            self.outside.remove(&id);
            out.dismiss(id);
            self.flushed(out);
        }
    }

    /// The agent is gone: what waits for the embedder isn't waited for any more.
    pub(super) fn dismiss_all(&mut self, out: &mut Outbox<Agentx>) {
        for (id, asked) in core::mem::take(&mut self.outside) {
            out.dismiss(id);
            match asked {
                Outside::Quiet
                | Outside::Environment
                | Outside::Append(..)
                | Outside::Commit(_) => {}
                Outside::Flush => self.flushed(out),
                Outside::Control(ticket, _) | Outside::Servers(ticket, _) => {
                    self.fail(&ticket, "The session is closing", None, out);
                }
            }
        }
    }

    /// `update_environment_variables`
    pub(super) fn environment(&mut self, variables: &[u8], out: &mut Outbox<Agentx>) {
        match self.config.policy.env_update {
            EnvUpdate::Ignored => {}
            EnvUpdate::Warned => out.diagnostic(NO_ENVIRONMENT.into()),
            EnvUpdate::Asked => {
                let ask = out.ask(AgentxAsk::Environment(blocks::keep(variables)));
                self.outside.insert(ask, Outside::Environment);
            }
        }
    }
}

const NO_ENVIRONMENT: &str =
    "WARN the environment of this process can't be changed; the update has no effect";
