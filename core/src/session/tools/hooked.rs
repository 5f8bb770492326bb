//! What the hooks of a call decide.

use super::{Batch, HookSays, State};
use crate::session::{
    Session,
    ask::{AskFor, Settled},
    hooks::{Owner, Says, by_hook},
    phase::Turn,
};
use crate::vocab::{AskClose, Block, CallId, HookFacts, Text, What};

impl Session {
    /// A pre-tool hook: deny ends it, ask beats allow, changed input is checked again (row 2).
    pub(in crate::session) fn pre_hook_said(
        &mut self,
        turn: &mut Turn,
        batch: &mut Batch,
        call: CallId,
        key: &Text,
        says: Says,
    ) {
        let Some(at) = batch.find(call) else { return };
        let Some(tool) = batch.at(at) else { return };
        let State::Hooked(chain) = &mut tool.state else {
            return;
        };
        let mut chain = core::mem::take(chain);
        let says_so = |allow| HookSays {
            key: key.clone(),
            allow,
        };
        let note = match says {
            Says::Deny { why, .. } => {
                return self.deny_call(batch, at, by_hook(key), Some(why));
            }
            Says::Pass { note } => note,
            Says::Ask => {
                tool.hook = Some(says_so(false));
                None
            }
            Says::Allow { input, note, .. } => {
                tool.hook.get_or_insert(says_so(true));
                if let Some(input) = input {
                    batch.replace_input(at, input);
                    if !self.recheck(turn, batch, at) {
                        return;
                    }
                }
                note
            }
        };
        if let Some(note) = note {
            turn.own.push(self.make_note(key, call, &note));
        }
        if self.next_hook(&mut chain, Owner::Pre(call), || HookFacts::Call { call }) {
            if let Some(tool) = batch.at(at) {
                tool.state = State::Hooked(chain);
            }
        } else {
            self.gate(batch, at);
        }
    }

    /// A permission hook: it may decide before the host does.
    pub(in crate::session) fn permission_hook_said(
        &mut self,
        batch: &mut Batch,
        call: CallId,
        key: &Text,
        says: Says,
    ) {
        let Some(at) = batch.find(call) else { return };
        let Some(tool) = batch.at(at) else { return };
        let State::Asking { hooks } = &mut tool.state else {
            return;
        };
        hooks.slot = None;
        let by = by_hook(key);
        let (allow, settled) = match says {
            Says::Pass { .. } | Says::Ask => {
                let mut chain = core::mem::take(hooks);
                self.next_hook(&mut chain, Owner::Permission(call), || HookFacts::Call {
                    call,
                });
                tool.state = State::Asking { hooks: chain };
                return;
            }
            Says::Allow { input, updates, .. } => {
                let by = by.clone();
                (true, Settled::Allow { by, input, updates })
            }
            Says::Deny { why, interrupt } => {
                let (by, message) = (by.clone(), Some(why));
                (
                    false,
                    Settled::Deny {
                        by,
                        message,
                        interrupt,
                    },
                )
            }
        };
        let asked = |what: &AskFor| matches!(what, AskFor::Permission(asked) if *asked == call);
        let mut open = self.asks.iter();
        if let Some(ask) = open
            .find(|(_, open)| asked(&open.what))
            .map(|(ask, _)| *ask)
        {
            self.asks.remove(&ask);
            let allow = Some(allow);
            let how = AskClose::Answered { by, allow };
            self.say(What::AskClosed { ask, how });
            self.decide(batch, at, settled);
        }
    }

    /// A post-tool hook: it may add a note to the result, and end the turn with it.
    pub(in crate::session) fn post_hook_said(
        &mut self,
        batch: &mut Batch,
        call: CallId,
        says: Says,
        stop: Option<Text>,
    ) {
        let Some(at) = batch.find(call) else { return };
        let Some(tool) = batch.at(at) else { return };
        let State::PostHook { chain, ended } = &mut tool.state else {
            return;
        };
        let note = match says {
            Says::Pass { note } | Says::Allow { note, .. } => note,
            Says::Deny { why, .. } => Some(why),
            Says::Ask => None,
        };
        ended.content.extend(note.map(Block::Text));
        let mut chain = core::mem::take(chain);
        if stop.is_some() {
            self.drop_chain(&mut chain, &AskClose::Superseded);
        }
        let wall_us = chain.started_us.saturating_sub(tool.began_us);
        let (content, ok) = (&ended.content, ended.outcome.is_ok());
        let facts = || HookFacts::Result {
            call,
            content: content.clone(),
            ok,
            wall_us,
        };
        let more = self.next_hook(&mut chain, Owner::Post(call), facts);
        match core::mem::replace(&mut tool.state, State::Said) {
            State::PostHook { ended, .. } if more => tool.state = State::PostHook { chain, ended },
            State::PostHook { ended, .. } => {
                self.outcome_stands(batch, at, ended);
                batch.stop_turn(call, stop);
            }
            other @ (State::Waiting
            | State::Hooked(_)
            | State::Snapshot { .. }
            | State::AskWaiting
            | State::Asking { .. }
            | State::Running { .. }
            | State::Done(_)
            | State::Said) => tool.state = other,
        }
    }
}
