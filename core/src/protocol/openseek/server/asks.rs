//! Questions: which of the agent's go to the host, and how they are told.

use alloc::format;
use alloc::string::String;

use super::turn::say;
use super::{Face, Input};
use crate::protocol::Outbox;
use crate::protocol::ids::hex16;
use crate::protocol::openseek::Openseek;
use crate::protocol::openseek::wire::{ApprovalRequested, ApprovalResolved};
use crate::protocol::said::joined;
use crate::vocab::*;

impl Face {
    /// A question. Permissions go to the host; this wire has no form for the others.
    pub(super) fn asked(&mut self, ask: AskId, body: &Ask, out: &mut Outbox<Openseek>) {
        let permission = match body {
            Ask::Permission(permission) if self.input == Input::Reading && !self.is_run() => {
                permission
            }
            // Nobody is asked any more: neither line is written.
            Ask::Permission(_)
            | Ask::Hook(_)
            | Ask::Tool { .. }
            | Ask::Uri { .. }
            | Ask::Choice(_) => return self.answer(ask, Err(ReplyFault::HostGone), out),
        };
        let detail = match &permission.reason {
            AskReason::Gate => String::from(&*permission.detail),
            AskReason::UnapprovedSource { path, sha } => {
                let source = format!("unapproved source {path} ({sha})");
                joined(&source, " | ", &permission.detail)
            }
            AskReason::Network { host } => {
                let host = format!("network access to {host}");
                joined(&host, " | ", &permission.detail)
            }
            AskReason::Other(why) => joined(why, " | ", &permission.detail),
        };
        let detail = if detail.is_empty() {
            String::from(&*permission.summary)
        } else {
            detail
        };
        let id = self.approvals.open(ask, namer(&self.config.seed));
        requested(
            id,
            &permission.tool,
            &detail,
            permission.body.as_deref(),
            out,
        );
    }

    pub(super) fn ask_closed(&mut self, ask: AskId, how: &AskClose, out: &mut Outbox<Openseek>) {
        let Some(id) = self.approvals.close(ask) else {
            return;
        };
        let outcome = match how {
            AskClose::Answered {
                by: Decider::Host,
                allow,
            } => {
                if *allow == Some(true) {
                    "allowed_once"
                } else {
                    "rejected"
                }
            }
            // The host has decided nothing.
            AskClose::Answered { .. }
            | AskClose::TimedOut
            | AskClose::Fault(_)
            | AskClose::Superseded
            | AskClose::Withdrawn
            | AskClose::Cancelled
            | AskClose::HostGone => "cancelled",
        };
        resolved(&id, outcome, out);
    }

    /// An engine that allows everything says so of each call that another would have asked about.
    pub(super) fn decided(&mut self, call: CallId, verdict: &Verdict, out: &mut Outbox<Openseek>) {
        if !verdict.allow || verdict.by != Decider::Mode {
            return;
        }
        let Some(known) = self.turn.call(call) else {
            return;
        };
        if let Some(detail) = &known.gated {
            let id = self.approvals.settled(namer(&self.config.seed));
            requested(&id, &known.name, detail, None, out);
            resolved(&id, "allowed_once", out);
        }
    }
}

/// What makes an id of a question's number.
fn namer(seed: &[u8; 32]) -> impl FnOnce(u64) -> String {
    let nonce = hex16(seed, 0);
    move |number| {
        let nonce = nonce.get(..8).unwrap_or_default();
        format!("ap-{nonce}-{number}")
    }
}

fn requested(id: &str, tool: &str, detail: &str, body: Option<&str>, out: &mut Outbox<Openseek>) {
    say(
        ApprovalRequested {
            id: id.into(),
            tool_name: tool.into(),
            detail: detail.into(),
            body: body.map(Into::into).unwrap_or_default(),
            ..ApprovalRequested::default()
        },
        out,
    );
}

fn resolved(id: &str, outcome: &str, out: &mut Outbox<Openseek>) {
    say(
        ApprovalResolved {
            id: id.into(),
            outcome: outcome.into(),
            ..ApprovalResolved::default()
        },
        out,
    );
}
