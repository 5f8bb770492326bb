//! The Client: not there yet. It refuses every command, and closes when the agent's output ends.

use super::{Agentx, AgentxOutcome};
use crate::frame::Split;
use crate::protocol::ClientOutbox;
use crate::vocab::*;

/// What an agentx Client is built from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientConfig {}

/// The state of an agentx Client.
#[derive(Debug)]
pub struct ClientFace {}

impl crate::protocol::ClientFace<Agentx> for ClientFace {
    fn open(_: ClientConfig, _: &mut ClientOutbox<Agentx>) -> Self {
        ClientFace {}
    }

    fn command(&mut self, call: Call, out: &mut ClientOutbox<Agentx>) {
        out.reply(
            call.id,
            Seen::Inferred,
            Err(Refusal::Unsupported("the agentx client")),
        );
    }

    fn line(&mut self, _: &Split<'_>, _: &mut ClientOutbox<Agentx>) {}

    fn end(&mut self, out: &mut ClientOutbox<Agentx>) {
        out.infer(What::Closed {
            why: CloseWhy::HostGone,
        });
    }

    fn settled(&mut self, _: u64, _: AgentxOutcome, _: &mut ClientOutbox<Agentx>) {}

    fn woken(&mut self, _: &mut ClientOutbox<Agentx>) {}

    fn due(&self) -> Option<Due> {
        None
    }
}
