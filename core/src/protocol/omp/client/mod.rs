//! The Client: not there yet. It refuses every command, and closes when the agent's output ends.

use super::Omp;
use crate::frame::Split;
use crate::protocol::ClientOutbox;
use crate::vocab::*;

/// What an omp Client is built from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientConfig {}

/// The state of an omp Client.
#[derive(Debug)]
pub struct ClientFace {}

impl crate::protocol::ClientFace<Omp> for ClientFace {
    fn open(_: ClientConfig, _: &mut ClientOutbox<Omp>) -> Self {
        ClientFace {}
    }

    fn command(&mut self, call: Call, out: &mut ClientOutbox<Omp>) {
        out.reply(
            call.id,
            Seen::Inferred,
            Err(Refusal::Unsupported("the omp client")),
        );
    }

    fn line(&mut self, _: &Split<'_>, _: &mut ClientOutbox<Omp>) {}

    fn end(&mut self, out: &mut ClientOutbox<Omp>) {
        out.infer(What::Closed {
            why: CloseWhy::HostGone,
        });
    }

    fn settled(&mut self, _: u64, _: super::OmpOutcome, _: &mut ClientOutbox<Omp>) {}

    fn woken(&mut self, _: &mut ClientOutbox<Omp>) {}

    fn due(&self) -> Option<Due> {
        None
    }
}
