//! The three signals that end a session in good order.

use std::io;

use turnwire::vocab::Signal;

#[cfg(unix)]
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// Waits for signals, where the embedder wants them to be taken.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    streams: Option<[(Stream, Signal); 3]>,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn start(wanted: bool) -> io::Result<Self> {
        let streams = if wanted {
            Some([
                (signal(SignalKind::interrupt())?, Signal::Interrupt),
                (signal(SignalKind::terminate())?, Signal::Terminate),
                (signal(SignalKind::hangup())?, Signal::Hangup),
            ])
        } else {
            None
        };
        Ok(Signals { streams })
    }

    /// The next signal; pending for ever when none are taken.
    pub(crate) async fn next(&mut self) -> Signal {
        let Some([(a, sa), (b, sb), (c, sc)]) = &mut self.streams else {
            return std::future::pending().await;
        };
        tokio::select! {
            Some(()) = a.recv() => *sa,
            Some(()) = b.recv() => *sb,
            Some(()) = c.recv() => *sc,
            else => std::future::pending().await,
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn start(_wanted: bool) -> io::Result<Self> {
        Ok(Signals {})
    }

    pub(crate) async fn next(&mut self) -> Signal {
        std::future::pending().await
    }
}
