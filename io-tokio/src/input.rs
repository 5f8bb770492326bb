//! The reading side: a thread that reads when it is asked to, so that a host
//! that writes faster than we work is stopped by its pipe.

use std::io::{self, Read};

use bytes::Bytes;
use tokio::sync::mpsc;

const CHUNK: usize = 64 * 1024;

/// What the host sent.
#[derive(Debug)]
pub(crate) enum HostInput {
    /// The next bytes, never empty.
    Bytes(Bytes),
    /// End of input, or a read that failed (the text says how).
    End(Option<String>),
}

/// Starts the reading thread. One chunk waits in the channel at most.
pub(crate) fn start(mut source: Box<dyn Read + Send>) -> io::Result<mpsc::Receiver<HostInput>> {
    let (send, receive) = mpsc::channel(1);
    std::thread::Builder::new()
        .name("turnwire-in".into())
        .spawn(move || {
            let mut buffer = vec![0; CHUNK];
            loop {
                let input = match source.read(&mut buffer) {
                    Ok(0) => HostInput::End(None),
                    Ok(n) => HostInput::Bytes(Bytes::copy_from_slice(&buffer[..n])),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(e) => HostInput::End(Some(e.to_string())),
                };
                let last = matches!(input, HostInput::End(_));
                if send.blocking_send(input).is_err() || last {
                    return;
                }
            }
        })?;
    Ok(receive)
}
