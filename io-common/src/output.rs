//! The one writer. It never blocks the loop: bytes are handed to a thread, one
//! buffer at a time, and the loop is told when they are written.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

/// A buffer of this capacity, in bytes, is used again; a giant line should not keep its memory.
const SPARE: usize = 256 * 1024;

/// A buffer that came back from the thread, and how its writing went.
#[derive(Debug)]
pub struct Written {
    bytes: Vec<u8>,
    result: io::Result<()>,
}

/// Bytes for a reader, in order, with the count of what was queued and what was written.
#[derive(Debug)]
pub struct Output {
    to_thread: Option<mpsc::Sender<Vec<u8>>>,
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
    /// Starts the thread. It ends after a write that fails, when this value is dropped, or with the process.
    /// `ack` gets every buffer that was written, for [`done`](Output::done).
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn start(
        mut sink: Box<dyn Write + Send>,
        mut ack: impl FnMut(Written) + Send + 'static,
    ) -> io::Result<Self> {
        let (to_thread, from_loop) = mpsc::channel::<Vec<u8>>();
        let thread = std::thread::Builder::new().name("turnwire-out".into());
        thread.spawn(move || {
            for bytes in from_loop {
                let write = || sink.write_all(&bytes).and_then(|()| sink.flush());
                // A writer that panics is a writer that is gone: the loop must hear of it.
                let result = catch_unwind(AssertUnwindSafe(write))
                    .unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
                let failed = result.is_err();
                ack(Written { bytes, result });
                if failed {
                    return;
                }
            }
        })?;
        Ok(Output {
            to_thread: Some(to_thread),
            waiting: Vec::new(),
            spare: Vec::new(),
            in_flight: false,
            queued: 0,
            written: 0,
            broken: false,
        })
    }

    /// The buffer that lines are appended to. Call [`Output::push`] afterwards.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.waiting
    }

    /// Bytes queued since the start, the appended ones included.
    pub fn mark(&self) -> u64 {
        self.queued + self.waiting.len() as u64
    }

    /// Bytes written since the start.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Bytes that the reader has not taken yet.
    pub fn unread(&self) -> u64 {
        self.mark() - self.written
    }

    /// Whether a buffer is with the thread.
    pub fn in_flight(&self) -> bool {
        self.in_flight
    }

    /// Hands what waits to the thread, if the thread is free.
    pub fn push(&mut self) {
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

    /// Takes a buffer back, and hands on what has come together meanwhile.
    ///
    /// # Errors
    /// The write's own, once: nobody reads any more. From then on everything counts as written.
    pub fn done(&mut self, written: Written) -> io::Result<()> {
        let Written { mut bytes, result } = written;
        if let Err(error) = result {
            self.fail();
            return Err(error);
        }
        self.in_flight = false;
        self.written += bytes.len() as u64;
        bytes.clear();
        if bytes.capacity() <= SPARE {
            self.spare = bytes;
        }
        self.push();
        Ok(())
    }

    /// The thread is gone, or what it writes to.
    pub fn fail(&mut self) {
        self.in_flight = false;
        self.broken = true;
        self.to_thread = None;
        self.push();
    }
}
