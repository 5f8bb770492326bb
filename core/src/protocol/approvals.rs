//! The questions that are open on the wire, of protocols whose hosts answer them by an id.

use alloc::string::String;
use alloc::vec::Vec;

use crate::vocab::AskId;

/// One question whose answer is open.
#[derive(Debug)]
pub(in crate::protocol) struct Approval {
    pub(in crate::protocol) ask: AskId,
    pub(in crate::protocol) wire: String,
    /// The host has answered; the agent hasn't closed it yet.
    pub(in crate::protocol) answered: bool,
}

/// The approvals that the host was asked for and that aren't closed.
///
/// A closed one needs no record: an id that isn't open is as good as one that was never issued.
#[derive(Debug, Default)]
pub(in crate::protocol) struct Approvals {
    issued: u64,
    /// In order of creation.
    open: Vec<Approval>,
}

impl Approvals {
    /// Issues an id for a question: what `name` makes of its number, counted from 1.
    pub(in crate::protocol) fn open(
        &mut self,
        ask: AskId,
        name: impl FnOnce(u64) -> String,
    ) -> &str {
        self.issued += 1;
        self.open.push(Approval {
            ask,
            wire: name(self.issued),
            answered: false,
        });
        self.open
            .last()
            .map_or("", |approval| approval.wire.as_str())
    }

    /// An id for a question that is settled as it is asked.
    pub(in crate::protocol) fn settled(&mut self, name: impl FnOnce(u64) -> String) -> String {
        self.issued += 1;
        name(self.issued)
    }

    /// Marks an open approval as answered and names its question. `None`: it isn't open, or was answered.
    pub(in crate::protocol) fn answer(&mut self, wire: &str) -> Option<AskId> {
        let approval = self
            .open
            .iter_mut()
            .find(|approval| approval.wire == wire && !approval.answered)?;
        approval.answered = true;
        Some(approval.ask)
    }

    /// The questions that the host hasn't answered, oldest first.
    pub(in crate::protocol) fn unanswered(&self) -> impl Iterator<Item = AskId> {
        let open = self.open.iter().filter(|approval| !approval.answered);
        open.map(|approval| approval.ask)
    }

    /// All open questions, oldest first.
    pub(in crate::protocol) fn open_asks(&self) -> Vec<AskId> {
        self.open.iter().map(|approval| approval.ask).collect()
    }

    /// Takes a closed question out and gives its id.
    pub(in crate::protocol) fn close(&mut self, ask: AskId) -> Option<String> {
        let index = self.open.iter().position(|approval| approval.ask == ask)?;
        Some(self.open.remove(index).wire)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn om_11_os_a08_an_approval_is_answered_once() {
        let mut approvals = Approvals::default();
        let name = |number| format!("ask-{number}");
        let one = String::from(approvals.open(AskId(5), name));
        let two = String::from(approvals.open(AskId(6), name));
        assert_eq!(approvals.answer("nothing"), None);
        assert_eq!(approvals.answer(&one), Some(AskId(5)));
        assert_eq!(approvals.answer(&one), None);
        assert_eq!(approvals.unanswered().collect::<Vec<_>>(), [AskId(6)]);
        assert_eq!(approvals.close(AskId(5)), Some(one));
        assert_eq!(approvals.close(AskId(5)), None);
        assert_eq!(approvals.close(AskId(6)), Some(two));
    }
}
