//! The reading side: a thread that reads when it is asked to, so that a host
//! that writes faster than we work is stopped by its pipe.

use std::io::{self, Read};

use bytes::Bytes;

const CHUNK: usize = 64 * 1024;

/// What the host sent.
#[derive(Debug)]
pub enum HostInput {
    /// The next bytes, never empty.
    Bytes(Bytes),
    /// End of input, or a read that failed (the text says how).
    End(Option<String>),
}

/// Starts the reading thread. `give` comes back when more is wanted, with `false` for never again.
///
/// The thread ends with the input, or at the first read after nobody wants more: a read can't be stopped.
///
/// # Errors
/// If there can be no thread.
pub fn start(
    mut source: Box<dyn Read + Send>,
    mut give: impl FnMut(HostInput) -> bool + Send + 'static,
) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("turnwire-in".into());
    thread.spawn(move || {
        let mut buffer = vec![0; CHUNK];
        loop {
            let input = match source.read(&mut buffer) {
                Ok(0) => HostInput::End(None),
                Ok(n) => {
                    HostInput::Bytes(Bytes::copy_from_slice(buffer.get(..n).unwrap_or_default()))
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => HostInput::End(Some(e.to_string())),
            };
            let last = matches!(input, HostInput::End(_));
            if !give(input) || last {
                return;
            }
        }
    })?;
    Ok(())
}
