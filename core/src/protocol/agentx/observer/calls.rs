//! Calls that replies make, and their results.

use alloc::collections::BTreeSet;
use alloc::string::String;

use super::super::rules::Key;
use super::super::wire::{ToolResultBlock, ToolUseBlock};
use super::asks::Asked;
use super::{Here, Watcher};
use crate::frame::Place;
use crate::protocol::observer::{At, Dir, Ids, Known, Notes, Severity, Sides, hash};

/// The most replies of one turn that are remembered as kept.
const MOST_KEPT: usize = 4096;

/// A call.
#[derive(Clone, Copy, Debug)]
struct Call {
    place: Place,
    name: u64,
    /// The reply that made it.
    reply: u64,
    /// A helper made it.
    nested: bool,
    /// It was asked about.
    asked: bool,
    /// What the host said, and where.
    decided: Option<(bool, Place)>,
}

/// The calls.
#[derive(Debug, Default)]
pub(super) struct Calls {
    ids: Ids<Call>,
    /// The last reply that made one, unless it can have been void.
    reply: u64,
    /// Replies that have got a result: they weren't void.
    kept: BTreeSet<u64>,
    /// Where the host decided last.
    decided: Option<Place>,
    unsure: bool,
}

impl Calls {
    pub(super) fn blur(&mut self) {
        self.ids.blur();
        self.unsure = true;
    }

    pub(super) fn known(&self, call: u64) -> Known {
        self.ids.known(call)
    }

    /// A permission is asked for. `again`: where it is asked already. `judged`: it is no helper's.
    #[allow(clippy::too_many_arguments, reason = "all of one request")]
    pub(super) fn asked(
        &mut self,
        call: u64,
        tool: &str,
        again: Option<Place>,
        judged: bool,
        most: Severity,
        at: At,
        notes: &mut Notes,
    ) {
        let known = self.ids.known(call);
        if let Some(place) = again {
            let at = at.clone().at_most(most).with(
                Dir::Agent,
                Some(place),
                "the permission that is open",
            );
            let message = String::from("a permission for this call is open");
            notes.add(Key::AskedAgain.rule(), at, message);
        } else if known == Known::Closed {
            let message = String::from("the call has its result");
            notes.add(Key::AskedAgain.rule(), at.clone().at_most(most), message);
        } else if known == Known::Never && judged && !self.unsure {
            let message = String::from("no reply has made this call");
            notes.add(Key::AskEarly.rule(), at.clone().at_most(most), message);
        }
        if let Some(open) = self.ids.get_mut(call) {
            open.asked = true;
            if open.name != hash(tool) && !open.nested {
                let message = String::from("the call is one of another tool");
                let at = at.at_most(Severity::Warning);
                let at = at.with(Dir::Agent, Some(open.place), "the call");
                notes.add(Key::AskForm.rule(), at, message);
            }
        }
    }

    /// The host has decided.
    pub(super) fn decided(&mut self, call: u64, allow: bool, place: Place) {
        self.decided = Some(place);
        if let Some(open) = self.ids.get_mut(call) {
            open.decided = Some((allow, place));
        }
    }

    /// The reply before can have been void, and its calls with it.
    pub(super) fn retried(&mut self) {
        self.reply = 0;
    }

    /// What the host has decided doesn't count.
    pub(super) fn undecided(&mut self, call: u64) {
        if let Some(open) = self.ids.get_mut(call) {
            open.decided = None;
        }
    }

    /// A call that has no result, but those of helpers, and whether it must have one; all are over. A reply can have
    /// been void, and its calls with it: if another one made calls, or the turn failed, and no call of it has a result.
    pub(super) fn over(&mut self, failed: bool) -> Option<(Place, bool)> {
        let kept = core::mem::take(&mut self.kept);
        let counts = |call: &Call| {
            call.asked || kept.contains(&call.reply) || !failed && call.reply == self.reply
        };
        let open = self.ids.iter().filter(|call| !call.nested);
        let last = open.max_by_key(|call| (counts(call), call.place.line));
        let last = last.map(|call| (call.place, counts(call)));
        self.ids.close_all();
        last.filter(|_| !core::mem::take(&mut self.unsure))
    }
}

impl Watcher {
    /// A call in a reply.
    pub(super) fn called(
        &mut self,
        block: &ToolUseBlock<'_>,
        (message, nested): (&str, bool),
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        notes.tally.tool_calls += 1;
        let call = Call {
            place: here.place,
            name: hash(&block.name),
            reply: hash(message),
            nested,
            asked: false,
            decided: None,
        };
        if !nested {
            self.calls.reply = call.reply;
        }
        self.calls.ids.open(hash(&block.id), call);
    }

    /// The result of a call.
    pub(super) fn call_result(
        &mut self,
        block: &ToolResultBlock<'_>,
        nested: bool,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let id = hash(&block.tool_use_id);
        let most = self.most();
        let known = self.calls.known(id);
        let message = match known {
            Known::Closed => Some("the call has its result"),
            Known::Never if !nested && !self.calls.unsure => Some("no reply has made this call"),
            Known::Never | Known::Open | Known::Unknown => None,
        };
        if let Some(message) = message {
            let at = At::line().at_most(most);
            notes.add(Key::ResultOnce.rule(), at, String::from(message));
        }
        let call = self.calls.ids.close(id);
        let failed = block.is_error == Some(true);
        let open = self.asks.open.iter();
        let open = open
            .filter(|(_, ask)| ask.asked == Asked::Permission(id))
            .map(|(id, ask)| (id, *ask))
            .next();
        let ran = |place: Option<Place>, dir: Dir, what: &'static str, notes: &mut Notes| {
            let at = At::line().with(dir, place, what);
            let message = String::from("the call wasn't allowed, and its result is no error");
            notes.add(Key::DeniedRan.rule(), at, message);
        };
        if let Some((request, ask)) = open
            && here.sides == Sides::Both
        {
            if self.is_closed() {
                // Nobody is left who could have allowed it.
                self.asks.end_read = true;
                self.asks.open.answer(request, self.host_lines);
                if !failed {
                    ran(Some(ask.place), Dir::Agent, "the permission", notes);
                }
            } else {
                // The host's input may have ended where nobody wrote it down.
                let most = if failed {
                    Severity::Warning
                } else {
                    Severity::Error
                };
                let at =
                    At::line()
                        .at_most(most)
                        .with(Dir::Agent, Some(ask.place), "the permission");
                let message = String::from("the host is still asked about this call");
                notes.add(Key::RanEarly.rule(), at, message);
            }
        }
        let Some(call) = call else { return };
        // Programs of claude begin with a call while its reply streams, which can still fail.
        if !self.is_claude() && self.calls.kept.len() < MOST_KEPT {
            self.calls.kept.insert(call.reply);
        }
        if let Some((allow, place)) = call.decided {
            if !allow {
                self.turn.denied(id);
                if !failed {
                    ran(Some(place), Dir::Host, "the host's answer", notes);
                }
            }
            // A call that was allowed, and didn't work, may have been cancelled before the agent had read that.
            let read = !(allow && failed);
            if read && here.sides == Sides::Both && !self.is_closed() {
                // That the agent has read one answer doesn't show that it has read those behind it.
                let later = self
                    .calls
                    .decided
                    .is_some_and(|last| last.line > place.line);
                let open = later || self.asks.permission().is_some();
                self.turn.called(open, most, notes);
            }
        }
    }
}
