//! The Server: commands of a host become neutral ones, events become lines.

use super::{Omp, OmpExtra, OmpOutcome, ServerConfig, codec, wire};
use crate::frame::Split;
use crate::protocol::{Outbox, ServerFace};
use crate::vocab::*;

/// The state of an omp Server.
#[derive(Debug)]
pub struct Face {}

impl ServerFace<Omp> for Face {
    fn open(_: ServerConfig, out: &mut Outbox<Omp>) -> Self {
        out.line(|line| wire::Frame::from(codec::ready()).encode(line));
        Face {}
    }

    fn line(&mut self, _: &Split<'_>, _: Now, _: &mut Outbox<Omp>) {}

    fn end(&mut self, _: Now, out: &mut Outbox<Omp>) {
        out.call(Command::Close { drain: false });
    }

    fn signal(&mut self, signal: Signal, _: Now, out: &mut Outbox<Omp>) {
        out.exit(signal.exit_code());
    }

    fn event(&mut self, event: &Event, out: &mut Outbox<Omp>) {
        if let What::Closed { .. } = &event.what {
            out.exit(0);
        }
    }

    fn delta(&mut self, _: &DeltaRef<'_>, _: &mut Outbox<Omp>) {}

    fn extra(&mut self, extra: OmpExtra, _: Now, out: &mut Outbox<Omp>) {
        out.line(|line| line.extend_from_slice(extra.line.as_str().as_bytes()));
    }

    fn settled(&mut self, _: u64, _: OmpOutcome, _: Now, _: &mut Outbox<Omp>) {}

    fn woken(&mut self, _: Now, _: &mut Outbox<Omp>) {}

    fn due(&self) -> Option<Due> {
        None
    }

    fn wants_lines(&self) -> bool {
        true
    }
}
