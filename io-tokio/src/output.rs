//! The writing side on tokio.

use std::io::{self, Write};
use std::ops::{Deref, DerefMut};

use tokio::sync::mpsc;
use turnwire_io::output::{self, Written};

/// An [`output::Output`] whose progress can be waited for.
#[derive(Debug)]
pub(crate) struct Output {
    inner: output::Output,
    acks: mpsc::UnboundedReceiver<Written>,
}

impl Output {
    pub(crate) fn start(sink: Box<dyn Write + Send>) -> io::Result<Self> {
        let (ack, acks) = mpsc::unbounded_channel();
        let inner = output::Output::start(sink, move |written| drop(ack.send(written)))?;
        Ok(Output { inner, acks })
    }

    /// The output, and what is to be given to its [`done`](output::Output::done).
    pub(crate) fn split(self) -> (output::Output, mpsc::UnboundedReceiver<Written>) {
        (self.inner, self.acks)
    }

    /// Waits until the buffer in flight is written. Pending for ever when nothing is in flight.
    pub(crate) async fn progress(&mut self) -> io::Result<()> {
        if !self.inner.in_flight() {
            std::future::pending::<()>().await;
        }
        match self.acks.recv().await {
            Some(written) => self.inner.done(written),
            None => {
                self.inner.fail();
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
    }

    /// Waits until everything is written, or the reader's end is closed.
    pub(crate) async fn flush(&mut self) {
        self.inner.push();
        while self.inner.in_flight() {
            if self.progress().await.is_err() {
                return;
            }
        }
    }
}

impl Deref for Output {
    type Target = output::Output;

    fn deref(&self) -> &output::Output {
        &self.inner
    }
}

impl DerefMut for Output {
    fn deref_mut(&mut self) -> &mut output::Output {
        &mut self.inner
    }
}
