//! How a Client leaves its agent.

use crate::vocab::*;

/// How far closing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) enum Closing {
    Open,
    /// The input is closed when nothing is pending.
    Draining,
    /// The input is closed. `now`: without draining.
    Sent {
        now: bool,
    },
}

impl Closing {
    /// Why the session closed, once the agent's output has ended. `quiet`: nothing was open; `failure`: what it is if
    /// nobody wanted that.
    pub(in crate::protocol) fn why(
        self,
        signal: Option<Signal>,
        quiet: bool,
        failure: Failure,
    ) -> CloseWhy {
        match (self, signal) {
            (Closing::Sent { now: true }, Some(signal)) => CloseWhy::Signal(signal),
            (Closing::Sent { now: true }, None) => CloseWhy::HostGone,
            (Closing::Draining | Closing::Sent { now: false }, _) if quiet => CloseWhy::Drained,
            (_, Some(signal)) => CloseWhy::Signal(signal),
            (Closing::Open | Closing::Draining | Closing::Sent { now: false }, None) => {
                CloseWhy::Fault(failure)
            }
        }
    }
}
