//! Other sessions: opened on the storage thread, behind all that was asked to be stored before.

use std::panic::{AssertUnwindSafe, catch_unwind};

use turnwire::vocab::{CommandId, Input, OpenFault, OtherSession};

use super::Report;
use super::effects::{Effects, panic_text};
use crate::world::{OpenJob, Opened};

impl Effects {
    pub(super) fn open(&mut self, command: CommandId, job: OpenJob) {
        let run = move || {
            let done = catch_unwind(AssertUnwindSafe(job))
                .unwrap_or_else(|p| Err(OpenFault::Failed(panic_text(&*p).into())));
            Report::Opened(command, done)
        };
        if !self.on_storage(Box::new(run)) {
            let other = Err(OpenFault::Failed("the storage thread is gone".into()));
            self.ready.push_back(Input::Opened { command, other });
        }
    }

    /// Another session is ready, or isn't. It is held until the session says that it is open.
    pub(super) fn opened(
        &mut self,
        outcome: Result<Opened, OpenFault>,
    ) -> Result<Box<OtherSession>, OpenFault> {
        let opened = outcome?;
        self.ready_to_go = opened.durable;
        Ok(opened.other)
    }

    /// The session that was held ready is the open one. The other ends with its last write.
    pub(super) fn go_over(&mut self) {
        if let Some(durable) = self.ready_to_go.take() {
            self.world.durable = durable;
        }
    }
}
