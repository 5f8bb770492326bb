//! Commands that were written and wait for their answer. openmax has no command ids: answers come in the order of the
//! commands, and a `protocol_error` is told by its text.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::Openmax;
use super::queue::Waiting;
use crate::protocol::ClientOutbox;
use crate::vocab::*;

type Out = ClientOutbox<Openmax>;

/// A command that the agent hasn't answered.
#[derive(Debug)]
pub(super) enum Sent {
    /// A `user`.
    User(Box<User>),
    /// An `approve`: answered by its `approval_settled`, or by the answer to a later command, or refused.
    Approve {
        command: CommandId,
        ask: AskId,
        /// Its id on the wire.
        wire: String,
        approved: bool,
    },
    /// An `approval_mode`.
    Mode { command: CommandId },
    /// A `reload`.
    Reload { command: CommandId },
    /// No line: waits for everything before it.
    Barrier { command: CommandId },
}

/// A `user` that was written, and whose turn hasn't begun.
#[derive(Debug)]
pub(super) struct User {
    /// The command to reply to; none if the prompts were queued and replied to before.
    pub command: Option<CommandId>,
    pub prompts: Vec<Waiting>,
    /// Cancels that were written behind it: what they hit is clear when its fate is.
    pub cancels: Vec<CommandId>,
    /// A later command was answered, so this one was read and isn't refused any more.
    pub heard: bool,
    pub why: Option<CancelWhy>,
}

/// What a `protocol_error` answers, by its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A `user` that starts no turn; `done refused` follows.
    User(Refusal),
    /// A `user` or `reload` in a running turn: alone.
    InFlight,
    /// An `approve`.
    Approve,
    /// An `approval_mode`.
    Mode(Refusal),
    /// A `reload`.
    Reload(Refusal),
    /// The agent takes no more commands.
    Closing,
    /// A line that isn't a command; we write none.
    BadLine,
    /// Nothing that is known.
    Other,
}

/// Reads the text of a `protocol_error`: the contract's cases by the words of the real program and of our Server.
pub(super) fn classify(text: &str) -> Class {
    let failed = || Refusal::Failed(Failure::new(FailureKind::Internal, Text::from(text)));
    if text == "user text is empty" {
        return Class::User(Refusal::Empty);
    }
    if let Some(rest) = text.strip_prefix("project ")
        && let Some(at) = rest.find(" is not trusted")
    {
        return Class::User(Refusal::Untrusted(
            rest.get(..at).unwrap_or_default().into(),
        ));
    }
    if text.starts_with("a turn is in flight") {
        return Class::InFlight;
    }
    if text.starts_with("unknown or already settled approval_id") {
        return Class::Approve;
    }
    if text.starts_with("unknown approval mode") {
        return Class::Mode(Refusal::Invalid(text.into()));
    }
    if text.starts_with("approval mode unchanged") {
        return Class::Mode(Refusal::Failed(Failure::new(
            FailureKind::Store,
            Text::from(text),
        )));
    }
    if text.starts_with("the session is closing") {
        return Class::Closing;
    }
    if text.starts_with("bad command line")
        || text.starts_with("command line ")
        || text.starts_with("stdin read failed")
    {
        return Class::BadLine;
    }
    let refused = |command: &str| {
        let rest = text.strip_prefix(command);
        rest.is_some_and(|rest| {
            rest.starts_with(" was refused") || rest.starts_with(" is not supported")
        })
    };
    if refused("user") {
        Class::User(failed())
    } else if refused("approval_mode") {
        Class::Mode(failed())
    } else if refused("reload") {
        Class::Reload(failed())
    } else if refused("approve") {
        Class::Approve
    } else {
        Class::Other
    }
}

/// The commands that wait, in the order in which they were written.
#[derive(Debug, Default)]
pub(super) struct Books {
    sent: VecDeque<Sent>,
    /// Approvals whose question was closed in another way: their refusal may still be on its way.
    crossed: VecDeque<String>,
}

/// Crossed approvals that are remembered.
const MOST_CROSSED: usize = 256;

impl Books {
    pub(super) fn push(&mut self, sent: Sent, out: &mut Out) {
        self.sent.push_back(sent);
        self.pass_barriers(out);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// The `user` whose turn hasn't begun.
    pub(super) fn user(&mut self) -> Option<&mut User> {
        self.sent.iter_mut().find_map(|sent| match sent {
            Sent::User(user) => Some(&mut **user),
            Sent::Approve { .. }
            | Sent::Mode { .. }
            | Sent::Reload { .. }
            | Sent::Barrier { .. } => None,
        })
    }

    pub(super) fn has_user(&self) -> bool {
        self.sent.iter().any(|sent| matches!(sent, Sent::User(_)))
    }

    /// Takes the oldest command that `is` it. Approvals before it had no refusal, so they were heard, and so was a `user`.
    /// The caller replies, and lets barriers pass then.
    pub(super) fn take(&mut self, is: impl Fn(&Sent) -> bool, out: &mut Out) -> Option<Sent> {
        let at = self.sent.iter().position(is)?;
        let mut before = 0;
        for _ in 0..at {
            match self.sent.get_mut(before) {
                Some(Sent::Approve { command, .. }) => {
                    out.reply(*command, Seen::Inferred, Ok(Answer::Done));
                    self.sent.remove(before);
                    continue;
                }
                Some(Sent::User(user)) => user.heard = true,
                Some(Sent::Mode { .. } | Sent::Reload { .. } | Sent::Barrier { .. }) | None => {}
            }
            before += 1;
        }
        self.sent.remove(before)
    }

    /// Takes the second `user` that waits, if there are two.
    pub(super) fn take_later_user(&mut self) -> Option<User> {
        let is_user = |(_, sent): &(usize, &Sent)| matches!(sent, Sent::User(_));
        let (at, _) = self.sent.iter().enumerate().filter(is_user).nth(1)?;
        match self.sent.remove(at)? {
            Sent::User(user) => Some(*user),
            Sent::Approve { .. }
            | Sent::Mode { .. }
            | Sent::Reload { .. }
            | Sent::Barrier { .. } => None,
        }
    }

    /// An approval was settled as it was answered: its command is done.
    pub(super) fn approval_settled(&mut self, ask: AskId, outcome: Option<bool>, out: &mut Out) {
        let at = self.sent.iter().position(|sent| {
            matches!(sent, Sent::Approve { ask: sent, approved, .. } if *sent == ask && Some(*approved) == outcome)
        });
        let answered = at.and_then(|at| self.sent.remove(at));
        if let Some(Sent::Approve { command, wire, .. }) = answered {
            out.reply(command, Seen::Inferred, Ok(Answer::Done));
            // A crash declines too, and then the answer of the host comes too late.
            if outcome == Some(false) {
                self.cross(wire);
            }
        }
        self.pass_barriers(out);
    }

    /// A refusal of this approval, if one comes, will be no news.
    fn cross(&mut self, wire: String) {
        if self.crossed.len() >= MOST_CROSSED {
            self.crossed.pop_front();
        }
        self.crossed.push_back(wire);
    }

    /// Questions are closed, whatever was written to them: an approval that isn't under way to an open one any more has
    /// come too late. Its refusal, if the agent sends one, will be no news.
    pub(super) fn give_up_approves(&mut self, is_open: impl Fn(AskId) -> bool, out: &mut Out) {
        let mut at = 0;
        while let Some(sent) = self.sent.get(at) {
            if !matches!(sent, Sent::Approve { ask, .. } if !is_open(*ask)) {
                at += 1;
                continue;
            }
            if let Some(Sent::Approve { command, wire, .. }) = self.sent.remove(at) {
                out.reply(command, Seen::Inferred, Err(Refusal::AlreadySettled));
                self.cross(wire);
            }
        }
        self.pass_barriers(out);
    }

    /// Whether a refusal is that of an approval which was given up. It is taken.
    pub(super) fn take_crossed(&mut self, names: impl Fn(&str) -> bool) -> bool {
        let at = self.crossed.iter().position(|wire| names(wire));
        at.is_some_and(|at| self.crossed.remove(at).is_some())
    }

    /// Replies to the barriers that nothing is before.
    pub(super) fn pass_barriers(&mut self, out: &mut Out) {
        while let Some(Sent::Barrier { command }) = self.sent.front() {
            out.reply(*command, Seen::Inferred, Ok(Answer::Done));
            self.sent.pop_front();
        }
    }

    /// The command that a text of no known class answers for certain: the oldest, if it always gets a line of its own,
    /// and can still be refused.
    pub(super) fn sure(&self) -> Option<&Sent> {
        self.sent.iter().find(|sent| match sent {
            Sent::User(user) => !user.heard,
            Sent::Mode { .. } | Sent::Reload { .. } => true,
            Sent::Approve { .. } | Sent::Barrier { .. } => false,
        })
    }

    /// Everything, at the agent's end.
    pub(super) fn take_all(&mut self) -> VecDeque<Sent> {
        core::mem::take(&mut self.sent)
    }
}
