//! Hooks that are told of something and have no say in it: that a session has begun, that somebody is wanted. All goes on
//! beside them, and nothing waits for their answers: with the end of a turn, or of the session, they are over.

use alloc::format;

use super::Session;
use super::hooks::{Chain, Owner};
use crate::json;
use crate::vocab::{AskClose, HookFacts, HookPoint, RawJson, RunId, Text};

/// Things that hooks may be told of at once: what comes on top of that isn't told.
const MOST: usize = 64;

/// What hooks are being told of.
pub(super) struct Telling {
    point: HookPoint,
    chain: Chain,
    facts: RawJson,
}

/// Whose hooks are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// Those of the configuration.
    Own,
    /// Those of the host.
    Host,
    /// Both.
    All,
}

impl Session {
    fn tell(&mut self, point: HookPoint, whose: Whose, facts: RawJson) {
        if !self.closing.is_open() || self.telling.len() >= MOST {
            return;
        }
        self.told += 1;
        let (number, owner) = (self.told, Owner::Told(self.told, point));
        let mut chain = self.chain(owner, None, self.now);
        match whose {
            Whose::Own => chain.only(false),
            Whose::Host => chain.only(true),
            Whose::All => {}
        }
        if self.next_hook(&mut chain, owner, || HookFacts::Other(facts.clone())) {
            let telling = Telling {
                point,
                chain,
                facts,
            };
            self.telling.insert(number, telling);
        }
    }

    /// The session has begun. A host's hooks come to be known a little later, with its first offer of any.
    pub(super) fn tell_of_start(&mut self, whose: Whose) {
        let source = if self.info.continued {
            "resume"
        } else {
            "startup"
        };
        let facts = RawJson(format!("{{\"source\":\"{source}\"}}").into());
        self.tell(HookPoint::SessionStart, whose, facts);
    }

    /// Somebody is asked about a call of this tool.
    pub(super) fn tell_of_question(&mut self, tool: &str) {
        let mut text = b"{\"message\":".to_vec();
        let message = format!("Your permission is needed to use {tool}");
        json::write_str(&mut text, &message);
        text.extend_from_slice(b",\"notification_type\":\"permission_prompt\"}");
        let facts = Text::from(core::str::from_utf8(&text).unwrap_or("{}"));
        self.tell(HookPoint::Notification, Whose::All, RawJson(facts));
    }

    /// A nested run has ended by itself.
    pub(super) fn tell_of_run(&mut self, run: RunId, kind: &str, how: &str, report: &str) {
        let mut text = format!("{{\"agent_id\":\"run-{}\"", run.0).into_bytes();
        let members = [
            ("agent_type", kind),
            ("status", how),
            ("last_assistant_message", report),
        ];
        for (name, value) in members {
            text.extend_from_slice(b",");
            json::write_str(&mut text, name);
            text.extend_from_slice(b":");
            json::write_str(&mut text, value);
        }
        text.extend_from_slice(b"}");
        let facts = Text::from(core::str::from_utf8(&text).unwrap_or("{}"));
        self.tell(HookPoint::RunEnd, Whose::All, RawJson(facts));
    }

    /// A hook was told: the next one is.
    pub(super) fn told_one(&mut self, number: u64) {
        let Some(mut telling) = self.telling.remove(&number) else {
            return;
        };
        let owner = Owner::Told(number, telling.point);
        let facts = telling.facts.clone();
        if self.next_hook(&mut telling.chain, owner, || HookFacts::Other(facts)) {
            self.telling.insert(number, telling);
        }
    }

    pub(super) fn told_facts(&self, number: u64) -> HookFacts {
        let telling = self.telling.get(&number);
        HookFacts::Other(
            telling.map_or_else(|| RawJson("{}".into()), |telling| telling.facts.clone()),
        )
    }

    /// Nobody is told any more of what it was.
    pub(super) fn stop_telling(&mut self) {
        while let Some((_, mut telling)) = self.telling.pop_first() {
            self.drop_chain(&mut telling.chain, &AskClose::Superseded);
        }
    }
}
