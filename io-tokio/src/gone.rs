//! Notices that nobody reads what we write any more, also while there is nothing to write.

use std::io;

use tokio::sync::oneshot;

/// Waits, on a thread, for a host to go away.
#[derive(Debug)]
pub(crate) struct Gone(Option<oneshot::Receiver<()>>);

impl Gone {
    /// Starts the thread, if there is something to wait for. It can't be stopped, and ends with the process.
    pub(crate) fn start(wait: Option<Box<dyn FnOnce() + Send>>) -> io::Result<Self> {
        let Some(wait) = wait else {
            return Ok(Gone(None));
        };
        let (tell, told) = oneshot::channel();
        std::thread::Builder::new()
            .name("turnwire-gone".into())
            .spawn(move || {
                wait();
                let _ = tell.send(());
            })?;
        Ok(Gone(Some(told)))
    }

    /// Comes back once, when the host is gone; else never.
    pub(crate) async fn host(&mut self) {
        if let Some(told) = &mut self.0 {
            let gone = told.await.is_ok();
            self.0 = None;
            if gone {
                return;
            }
        }
        std::future::pending().await
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn it_comes_back_once_and_not_for_a_thread_that_broke_down() {
        let mut gone = Gone::start(Some(Box::new(|| {}))).unwrap();
        gone.host().await;
        let long = std::time::Duration::from_millis(50);
        assert!(tokio::time::timeout(long, gone.host()).await.is_err());
        let mut never = Gone::start(None).unwrap();
        assert!(tokio::time::timeout(long, never.host()).await.is_err());
    }
}
