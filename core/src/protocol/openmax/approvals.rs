//! The approvals that are open on the wire.

use alloc::string::String;
use alloc::vec::Vec;

use crate::protocol::ids::uuid;
use crate::vocab::AskId;

/// One question whose answer is open.
#[derive(Debug)]
pub(super) struct Approval {
    pub(super) ask: AskId,
    pub(super) wire: String,
    /// The host has answered; the agent hasn't closed it yet.
    pub(super) answered: bool,
}

/// The approvals that the host was asked for and that aren't closed.
///
/// A closed one needs no record: an id that isn't open is refused with one text, whether it was settled or never
/// issued.
#[derive(Debug)]
pub(super) struct Approvals {
    seed: [u8; 32],
    issued: u64,
    /// In order of creation.
    open: Vec<Approval>,
}

impl Approvals {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Approvals {
            seed,
            issued: 0,
            open: Vec::new(),
        }
    }

    /// Issues an id for a question.
    pub(super) fn open(&mut self, ask: AskId) -> &str {
        self.issued += 1;
        let wire = uuid(&self.seed, self.issued);
        self.open.push(Approval {
            ask,
            wire,
            answered: false,
        });
        self.open
            .last()
            .map_or("", |approval| approval.wire.as_str())
    }

    /// Marks an open approval as answered and names its question. `None`: it isn't open, or was answered.
    pub(super) fn answer(&mut self, wire: &str) -> Option<AskId> {
        let approval = self
            .open
            .iter_mut()
            .find(|approval| approval.wire == wire && !approval.answered)?;
        approval.answered = true;
        Some(approval.ask)
    }

    /// The questions that the host hasn't answered, oldest first.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = AskId> {
        let open = self.open.iter().filter(|approval| !approval.answered);
        open.map(|approval| approval.ask)
    }

    /// All open questions, oldest first.
    pub(super) fn open_asks(&self) -> Vec<AskId> {
        self.open.iter().map(|approval| approval.ask).collect()
    }

    /// Takes a closed question out and gives its id.
    pub(super) fn close(&mut self, ask: AskId) -> Option<String> {
        let index = self.open.iter().position(|approval| approval.ask == ask)?;
        Some(self.open.remove(index).wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn om_11_an_approval_is_answered_once() {
        let mut approvals = Approvals::new([1; 32]);
        let one = String::from(approvals.open(AskId(5)));
        let two = String::from(approvals.open(AskId(6)));
        assert_eq!(approvals.answer("nothing"), None);
        assert_eq!(approvals.answer(&one), Some(AskId(5)));
        assert_eq!(approvals.answer(&one), None);
        assert_eq!(approvals.unanswered().collect::<Vec<_>>(), [AskId(6)]);
        assert_eq!(approvals.close(AskId(5)), Some(one));
        assert_eq!(approvals.close(AskId(5)), None);
        assert_eq!(approvals.close(AskId(6)), Some(two));
    }
}
