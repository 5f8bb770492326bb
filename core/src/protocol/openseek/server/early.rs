//! Lines that came before the session was there.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Lines that may wait, and their bytes, before no more are wanted.
const MOST: usize = 256;
const MOST_BYTES: usize = 1 << 20;

/// The lines, oldest first; `None`: one that was too long. And whether the input ended behind them.
#[derive(Debug, Default)]
pub(super) struct Early {
    lines: VecDeque<Option<Vec<u8>>>,
    bytes: usize,
    ended: bool,
}

impl Early {
    pub(super) fn push(&mut self, line: Option<&[u8]>) {
        self.bytes += line.map_or(0, <[u8]>::len);
        self.lines.push_back(line.map(<[u8]>::to_vec));
    }

    pub(super) fn pop(&mut self) -> Option<Option<Vec<u8>>> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.as_ref().map_or(0, Vec::len);
        Some(line)
    }

    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    pub(super) fn take_end(&mut self) -> bool {
        core::mem::take(&mut self.ended)
    }

    pub(super) fn has_room(&self) -> bool {
        self.lines.len() < MOST && self.bytes < MOST_BYTES
    }
}
