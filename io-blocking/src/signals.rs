//! The three signals that end a session in good order.

use std::io;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals as Incoming};
use turnwire::vocab::Signal;
use turnwire_io::engine::Wake;

/// Takes signals, on a thread, until it is dropped. Afterwards they do nothing: their first meaning doesn't come back.
#[derive(Debug)]
pub(crate) struct Signals {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Signals {
    pub(crate) fn start(wake: Sender<Wake>) -> io::Result<Self> {
        let mut incoming = Incoming::new([SIGINT, SIGTERM, SIGHUP])?;
        let handle = incoming.handle();
        let thread = std::thread::Builder::new().name("turnwire-signals".into());
        let thread = thread.spawn(move || {
            for number in incoming.forever() {
                let signal = match number {
                    SIGINT => Signal::Interrupt,
                    SIGTERM => Signal::Terminate,
                    _ => Signal::Hangup,
                };
                if wake.send(Wake::Signal(signal)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Signals {
            handle,
            thread: Some(thread),
        })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
