//! The one writer. It never blocks the loop: bytes are handed to a thread, one
//! buffer at a time, and the loop is told when they are written.

use std::io::{self, Write};
use std::sync::mpsc as std_mpsc;

use tokio::sync::mpsc;

/// Bytes for the host, in order, with the count of what was queued and what was written.
#[derive(Debug)]
pub(crate) struct Output {
    to_thread: Option<std_mpsc::Sender<Vec<u8>>>,
    acks: mpsc::UnboundedReceiver<(Vec<u8>, io::Result<()>)>,
    /// What waits for the thread to become free.
    waiting: Vec<u8>,
    /// A spare buffer that came back from the thread.
    spare: Vec<u8>,
    in_flight: bool,
    queued: u64,
    written: u64,
    broken: bool,
}

impl Output {
    /// Starts the thread. It ends when this value is dropped, or with the process.
    pub(crate) fn start(mut sink: Box<dyn Write + Send>) -> io::Result<Self> {
        let (to_thread, from_loop) = std_mpsc::channel::<Vec<u8>>();
        let (ack, acks) = mpsc::unbounded_channel();
        std::thread::Builder::new()
            .name("turnwire-out".into())
            .spawn(move || {
                for bytes in from_loop {
                    let result = sink.write_all(&bytes).and_then(|()| sink.flush());
                    let failed = result.is_err();
                    if ack.send((bytes, result)).is_err() || failed {
                        return;
                    }
                }
            })?;
        Ok(Output {
            to_thread: Some(to_thread),
            acks,
            waiting: Vec::new(),
            spare: Vec::new(),
            in_flight: false,
            queued: 0,
            written: 0,
            broken: false,
        })
    }

    /// The buffer that lines are appended to. Call [`Output::push`] afterwards.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.waiting
    }

    /// Bytes queued since the start, the appended ones included.
    pub(crate) fn mark(&self) -> u64 {
        self.queued + self.waiting.len() as u64
    }

    /// Bytes written since the start.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Bytes that the host has not taken yet.
    pub(crate) fn unread(&self) -> u64 {
        self.mark() - self.written
    }

    /// Hands what waits to the thread, if the thread is free.
    pub(crate) fn push(&mut self) {
        if self.broken {
            self.queued += self.waiting.len() as u64;
            self.written = self.queued;
            self.waiting.clear();
            return;
        }
        if self.in_flight || self.waiting.is_empty() {
            return;
        }
        let bytes = std::mem::replace(&mut self.waiting, std::mem::take(&mut self.spare));
        self.queued += bytes.len() as u64;
        match self.to_thread.as_ref().map(|t| t.send(bytes)) {
            Some(Ok(())) => self.in_flight = true,
            Some(Err(_)) | None => self.fail(),
        }
    }

    /// Waits until the buffer in flight is written. Pending for ever when nothing is in flight.
    pub(crate) async fn progress(&mut self) -> io::Result<()> {
        if !self.in_flight {
            std::future::pending::<()>().await;
        }
        match self.acks.recv().await {
            Some((mut bytes, Ok(()))) => {
                self.in_flight = false;
                self.written += bytes.len() as u64;
                bytes.clear();
                // A giant line should not keep its memory for the rest of the session.
                if bytes.capacity() <= 256 * 1024 {
                    self.spare = bytes;
                }
                self.push();
                Ok(())
            }
            Some((_, Err(e))) => {
                self.fail();
                Err(e)
            }
            None => {
                self.fail();
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
    }

    /// Waits until everything is written, or the host's end is closed.
    pub(crate) async fn flush(&mut self) {
        self.push();
        while self.in_flight {
            if self.progress().await.is_err() {
                return;
            }
        }
    }

    fn fail(&mut self) {
        self.in_flight = false;
        self.broken = true;
        self.to_thread = None;
        self.push();
    }
}
