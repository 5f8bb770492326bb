//! Notices that nobody reads what we write any more, also while there is nothing to write.

use std::io;

/// Starts a thread that waits for a host to go away, and tells of it once. It can't be stopped: it ends when the
/// host is gone, or with the process.
///
/// # Errors
/// If there can be no thread.
pub fn watch(
    wait: Box<dyn FnOnce() + Send>,
    tell: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("turnwire-gone".into());
    thread.spawn(move || {
        wait();
        tell();
    })?;
    Ok(())
}

/// Blocks until the reading end of stdout is closed. Where the system can't tell, and for a file, for ever.
#[cfg(unix)]
pub(crate) fn stdout_closed() {
    use rustix::event::{PollFd, PollFlags, poll};

    let stdout = io::stdout();
    loop {
        // Nothing is asked for: errors and hang-ups are reported unasked.
        let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
        match poll(&mut watched, None) {
            Ok(1..) => return,
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => loop {
                std::thread::park();
            },
        }
    }
}
