//! Logs go to stderr, and never make the session wait.
//!
//! A host may leave stderr unread. Then the pipe fills up, and whoever writes to it stands still. So a thread of
//! its own writes, from a queue of bounded length; what comes while the queue is full is dropped and counted.

use std::io::{self, Write};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::say::Stop;

/// Records that wait for a slow reader of stderr.
const QUEUE: usize = 1024;

/// How long the end of the program waits for the last records.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Keeps the writing thread; dropped at the end of the program, it lets the queue run dry for a moment.
#[derive(Debug)]
pub struct Logs {
    queue: SyncSender<Vec<u8>>,
    done: Receiver<()>,
}

/// Begins to log what `filter` names.
///
/// # Errors
/// [`Stop::Settings`] if the filter can't be read.
pub fn start(filter: &str) -> Result<Logs, Stop> {
    let targets = targets(filter)?;
    let (queue, records) = sync_channel(QUEUE);
    let (finished, done) = sync_channel(1);
    let lost = Arc::new(AtomicU64::new(0));
    let writer = Writer {
        queue: queue.clone(),
        lost: Arc::clone(&lost),
    };
    std::thread::Builder::new()
        .name("logs".to_owned())
        .spawn(move || {
            write_all(&records, &lost, &mut io::stderr());
            let _ = finished.send(());
        })
        .map_err(|error| Stop::Failed(format!("no thread for the logs: {error}")))?;
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(false)
        .with_filter(targets);
    // It can only fail when there is one already, which then goes on.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines));
    Ok(Logs { queue, done })
}

/// A level, or a list of `target=level`.
fn targets(filter: &str) -> Result<Targets, Stop> {
    let known = |part: &str| {
        let level = part.rsplit('=').next().unwrap_or_default().trim();
        ["off", "error", "warn", "info", "debug", "trace"]
            .iter()
            .any(|word| word.eq_ignore_ascii_case(level))
    };
    // A bare word that is no level would be taken for a target, and a misspelt level would log everything.
    match Targets::from_str(filter) {
        // It warns of whatever a server says that its protocol doesn't know, message and all.
        Ok(targets)
            if filter.split(',').all(known)
                && targets.default_level() == Some(LevelFilter::WARN)
                && !filter.contains("rmcp") =>
        {
            Ok(targets.with_target("rmcp", LevelFilter::ERROR))
        }
        Ok(targets) if filter.split(',').all(known) => Ok(targets),
        _ => Err(Stop::Settings(format!(
            "log: {filter:?} isn't error, warn, info, debug, trace, off, or a list such as warn,turnwire=debug"
        ))),
    }
}

/// Writes until an empty record comes, or every sender is gone.
fn write_all(records: &Receiver<Vec<u8>>, lost: &AtomicU64, out: &mut dyn Write) {
    while let Ok(record) = records.recv() {
        if record.is_empty() {
            break;
        }
        let _ = out.write_all(&record);
        let missed = lost.swap(0, Ordering::Relaxed);
        if missed > 0 {
            let _ = writeln!(
                out,
                "turnwire: {missed} log records were dropped: nobody read stderr"
            );
        }
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        if self.queue.try_send(Vec::new()).is_ok() {
            let _ = self.done.recv_timeout(LAST_WORDS);
        }
    }
}

#[derive(Clone, Debug)]
struct Writer {
    queue: SyncSender<Vec<u8>>,
    lost: Arc<AtomicU64>,
}

impl<'a> MakeWriter<'a> for Writer {
    type Writer = Writer;
    fn make_writer(&'a self) -> Writer {
        self.clone()
    }
}

/// The layer writes each record in one piece.
impl Write for Writer {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        if !record.is_empty() && self.queue.try_send(record.to_vec()).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_levels_or_lists() {
        for good in [
            "off",
            "warn",
            "INFO",
            "warn,turnwire=debug",
            "turnwire_tokio=trace, warn",
        ] {
            assert!(targets(good).is_ok(), "{good}");
        }
        for bad in ["", "loud", "turnwire", "warn,turnwire=loud", "=", "warn,"] {
            assert_eq!(targets(bad).unwrap_err().code(), 2, "{bad}");
        }
    }

    #[test]
    fn a_full_queue_drops_and_counts_instead_of_waiting() {
        let (queue, records) = sync_channel(2);
        let lost = Arc::new(AtomicU64::new(0));
        let mut writer = Writer {
            queue,
            lost: Arc::clone(&lost),
        };
        for _ in 0..5 {
            writer.write_all(b"a record\n").unwrap();
        }
        drop(writer);
        let mut out = Vec::new();
        write_all(&records, &lost, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("a record").count(), 2);
        assert!(text.contains("3 log records were dropped"), "{text}");
    }
}
