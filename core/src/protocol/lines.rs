//! Bytes of lines that were written and not handed over yet: the same for both machines.

use alloc::vec::Vec;

use super::Credentials;

/// Written lines. Positions count the bytes of the whole output, so that what stands between two lines stays there
/// however late the embedder polls (L2).
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// How much of `bytes` has been handed over.
    taken: usize,
    /// The position of `bytes[0]`.
    base: u64,
}

impl Lines {
    /// Writes one line; the newline is added here.
    pub(super) fn line(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.bytes.push(b'\n');
    }

    /// The same, without the credentials.
    pub(super) fn checked_line(
        &mut self,
        credentials: &mut Credentials,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let from = self.bytes.len();
        write(&mut self.bytes);
        credentials.hide(&mut self.bytes, from);
        self.bytes.push(b'\n');
    }

    /// Writes one line, unless its final bytes hold a credential: then nothing of it stays, and this is false.
    pub(super) fn sealed_line(
        &mut self,
        credentials: &mut Credentials,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> bool {
        let from = self.bytes.len();
        self.line(write);
        self.seal(credentials, from)
    }

    /// The same for a frame; `finish` makes a line of what stands from its place on, or several.
    pub(super) fn sealed_frame(
        &mut self,
        credentials: &mut Credentials,
        write: impl FnOnce(&mut Vec<u8>),
        finish: impl FnOnce(&mut Vec<u8>, usize),
    ) -> bool {
        let from = self.bytes.len();
        self.frame(None, write, finish);
        self.seal(credentials, from)
    }

    /// Takes back the last bytes, of which none was handed over. Nothing of them stays behind in the buffer.
    pub(super) fn take_back(&mut self, count: usize) {
        let from = self.bytes.len().saturating_sub(count).max(self.taken);
        if let Some(written) = self.bytes.get_mut(from..) {
            written.fill(0);
        }
        self.bytes.truncate(from);
    }

    fn seal(&mut self, credentials: &mut Credentials, from: usize) -> bool {
        let written = self.bytes.get_mut(from..).unwrap_or_default();
        if !credentials.found_in(written) {
            return true;
        }
        let count = written.len();
        self.take_back(count);
        false
    }

    /// Writes a frame, without the credentials; `finish` makes a line of what stands from its place on, or several.
    pub(super) fn frame(
        &mut self,
        credentials: Option<&mut Credentials>,
        write: impl FnOnce(&mut Vec<u8>),
        finish: impl FnOnce(&mut Vec<u8>, usize),
    ) {
        let from = self.bytes.len();
        write(&mut self.bytes);
        if let Some(credentials) = credentials {
            credentials.hide(&mut self.bytes, from);
        }
        finish(&mut self.bytes, from);
    }

    /// Bytes that haven't been handed over.
    pub(super) fn held(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// The position behind the last line.
    pub(super) fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// Hands over the bytes before a position: appended to `lines`, or swapped in when `lines` is empty.
    pub(super) fn give(&mut self, before: u64, lines: &mut Vec<u8>) {
        let end = usize::try_from(before.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let end = end.min(self.bytes.len());
        if end > self.taken {
            if self.taken == 0 && end == self.bytes.len() && lines.is_empty() {
                core::mem::swap(&mut self.bytes, lines);
                self.base += end as u64;
                return;
            }
            if let Some(bytes) = self.bytes.get(self.taken..end) {
                lines.extend_from_slice(bytes);
            }
            self.taken = end;
        }
        if self.taken == self.bytes.len() && self.taken > 0 {
            self.base += self.taken as u64;
            self.bytes.clear();
            self.taken = 0;
        }
    }
}
