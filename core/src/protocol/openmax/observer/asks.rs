//! Approvals: asked for once, settled once, and approved by the host alone.

use alloc::format;
use alloc::string::String;

use super::super::rules::Key;
use super::super::spec::{OUTCOMES, REASONS};
use super::super::wire::{ApprovalRequest, ApprovalSettled};
use super::ledger::Ledger;
use crate::frame::Place;
use crate::json::Object;
use crate::protocol::observer::at_member;
use crate::protocol::observer::{At, Dir, Notes, Severity};
use crate::protocol::observer::{Ids, Known, hash};

/// An open approval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    place: Place,
    /// Answers of the host before `quit`.
    yes: u64,
    no: u64,
    /// The host approved it after `quit`.
    late: Option<Place>,
}

/// All approvals.
#[derive(Debug, Default)]
pub(super) struct Asks {
    pub(super) ids: Ids<Ask>,
    /// A line of the host couldn't be read for certain, and may have been an answer.
    pub(super) unsure: bool,
}

impl Asks {
    pub(super) fn request(
        &mut self,
        line: &ApprovalRequest<'_>,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let id = hash(&line.approval_id);
        match self.ids.known(id) {
            known @ (Known::Open | Known::Closed) => {
                let first = self.ids.get_mut(id).map(|ask| ask.place);
                notes.add(
                    Key::AskTwice.rule(),
                    at_member(object, "approval_id").with(Dir::Agent, first, "the first request"),
                    String::from(match known {
                        Known::Open => "an approval of this id is open",
                        Known::Closed | Known::Never | Known::Unknown => {
                            "an approval of this id was settled before"
                        }
                    }),
                );
            }
            Known::Never | Known::Unknown => {}
        }
        let ask = Ask {
            place,
            yes: 0,
            no: 0,
            late: None,
        };
        self.ids.open(id, ask);
        Self::source(line, object, notes);
        if !REASONS.contains(&&*line.reason) {
            notes.add(
                Key::AskWords.rule(),
                at_member(object, "reason"),
                String::from("the reason is neither gate nor unapproved_source"),
            );
        }
        if line.env.0.is_empty() && object.get("env").is_some() {
            notes.add(
                Key::EnvEmpty.rule(),
                at_member(object, "env"),
                String::from("env is empty, so it must be left out"),
            );
        }
    }

    fn source(line: &ApprovalRequest<'_>, object: &Object<'_, '_>, notes: &mut Notes) {
        match &*line.reason {
            "gate" => {
                for (name, value) in [
                    ("source_path", &line.source_path),
                    ("source_sha", &line.source_sha),
                ] {
                    if !value.is_empty() {
                        notes.add(
                            Key::GateSource.rule(),
                            at_member(object, name),
                            format!("{name} must be empty for a gate"),
                        );
                    }
                }
            }
            "unapproved_source" => {
                if line.source_path.is_empty() {
                    notes.add(
                        Key::SourceNamed.rule(),
                        at_member(object, "source_path"),
                        String::from("the file that nobody approved isn't named"),
                    );
                }
                let sha = line.source_sha.as_bytes();
                if sha.len() != 12 || !sha.iter().all(u8::is_ascii_hexdigit) {
                    notes.add(
                        Key::SourceNamed.rule(),
                        at_member(object, "source_sha"),
                        String::from("source_sha isn't 12 hex digits"),
                    );
                }
            }
            _ => {}
        }
    }

    /// `closing`: since when the host's input has ended, by `quit` or for good.
    pub(super) fn settled(
        &mut self,
        line: &ApprovalSettled<'_>,
        object: &Object<'_, '_>,
        host: Option<(&mut Ledger, bool)>,
        notes: &mut Notes,
    ) {
        if !OUTCOMES.contains(&&*line.outcome) {
            notes.add(
                Key::AskWords.rule(),
                at_member(object, "outcome"),
                String::from("the outcome is none of the contract's words"),
            );
        }
        let id = hash(&line.approval_id);
        let known = self.ids.known(id);
        let Some(ask) = self.ids.close(id) else {
            let message = match known {
                Known::Closed => "this approval was settled before",
                Known::Never => "this approval was never asked for",
                Known::Open | Known::Unknown => return,
            };
            notes.add(
                Key::SettledUnknown.rule(),
                at_member(object, "approval_id"),
                String::from(message),
            );
            return;
        };
        let Some((ledger, closing)) = host else {
            return;
        };
        let at = at_member(object, "outcome").with(Dir::Agent, Some(ask.place), "the request");
        match &*line.outcome {
            "approved" if ask.yes > 0 => ledger.approve_taken(),
            "declined" if ask.no > 0 => ledger.decline_taken(),
            "approved" => match ask.late {
                _ if self.unsure => {}
                Some(late) => {
                    let at = at.with(Dir::Host, Some(late), "the approve after quit");
                    notes.add(
                        Key::ApprovedAfterQuit.rule(),
                        at,
                        String::from("approved by an answer that came after quit"),
                    );
                }
                None => {
                    notes.add(
                        Key::ApprovedByNobody.rule(),
                        at,
                        String::from("approved, but the host didn't approve it"),
                    );
                }
            },
            "declined" if !closing && !self.unsure => {
                notes.add(
                    Key::DeclinedByNobody.rule(),
                    at,
                    String::from("declined, but the host neither declined it nor ended its input"),
                );
            }
            _ => {}
        }
    }

    /// An answer of the host. False: it names no open approval.
    pub(super) fn answered(
        &mut self,
        id: &str,
        approved: bool,
        place: Place,
        quit: bool,
    ) -> Option<Known> {
        let id = hash(id);
        if let Some(ask) = self.ids.get_mut(id) {
            match (approved, quit) {
                (true, false) => ask.yes += 1,
                (true, true) => ask.late = Some(place),
                (false, _) => ask.no += 1,
            }
            return None;
        }
        Some(self.ids.known(id))
    }

    /// The end of a turn.
    pub(super) fn done(&self, notes: &mut Notes) {
        if let Some(ask) = self.ids.iter().next() {
            let at =
                At::line()
                    .at_most(Severity::Info)
                    .with(Dir::Agent, Some(ask.place), "the request");
            notes.add(
                Key::AskLeftOpen.rule(),
                at,
                String::from("an approval is still open at done"),
            );
        }
    }
}
