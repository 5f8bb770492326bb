//! A pipe that can be cut, slowed, stopped, closed and broken.

use std::collections::VecDeque;

/// One direction of the wire. Order is kept, whatever is done to it.
#[derive(Debug, Default)]
pub struct Pipe {
    pieces: VecDeque<Piece>,
    /// Bytes that were written and not read.
    unread: usize,
    /// The most bytes that were unread at once.
    most: usize,
    /// What is written comes in pieces of so many bytes; 0: as it was written.
    pub cut: usize,
    /// What is written comes so many microseconds later.
    pub delay_us: u64,
    /// Nothing is read.
    pub stopped: bool,
    /// When the end of what was written can be read.
    end_us: Option<u64>,
    /// The end was read.
    ended: bool,
    /// Nobody is there to read; what is written is lost.
    broken: bool,
}

/// What is read at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// When it can be read.
    pub ready_us: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Somebody else than the writer of this side wrote it.
    pub foreign: bool,
}

impl Pipe {
    /// Writes. After the end, or when nobody reads any more, it is lost: `false`.
    pub fn write(&mut self, bytes: &[u8], now_us: u64, foreign: bool) -> bool {
        if self.end_us.is_some() || self.broken {
            return false;
        }
        self.unread += bytes.len();
        self.most = self.most.max(self.unread);
        let size = if self.cut == 0 {
            bytes.len().max(1)
        } else {
            self.cut
        };
        let ready_us = self.ready(now_us);
        let pieces = bytes.chunks(size).map(|piece| Piece {
            ready_us,
            bytes: piece.to_vec(),
            foreign,
        });
        self.pieces.extend(pieces);
        true
    }

    /// When what is written now can be read: never before what was written earlier.
    fn ready(&self, now_us: u64) -> u64 {
        let last = self.pieces.back().map_or(0, |piece| piece.ready_us);
        now_us.saturating_add(self.delay_us).max(last)
    }

    /// Ends what is written.
    pub fn close(&mut self, now_us: u64) {
        if self.end_us.is_none() {
            self.end_us = Some(self.ready(now_us));
        }
    }

    /// The writer dies: half of its last piece is lost, unless somebody else has written since, and then it ends.
    pub fn die(&mut self, now_us: u64) {
        if self.end_us.is_none()
            && let Some(last) = self.pieces.back_mut().filter(|last| !last.foreign)
        {
            let kept = last.bytes.len() / 2;
            self.unread -= last.bytes.len() - kept;
            last.bytes.truncate(kept);
        }
        self.close(now_us);
    }

    /// Nobody reads any more.
    pub fn break_off(&mut self) {
        self.broken = true;
        self.pieces.clear();
        self.unread = 0;
    }

    /// Whether the writer has ended it.
    pub fn is_closed(&self) -> bool {
        self.end_us.is_some()
    }

    /// Bytes that were written and not read.
    pub fn unread(&self) -> usize {
        self.unread
    }

    /// The most bytes that were ever unread at once.
    pub fn most_unread(&self) -> usize {
        self.most
    }

    /// The next piece, if it can be read now.
    pub fn read(&mut self, now_us: u64) -> Option<Piece> {
        if self.stopped || self.broken || self.pieces.front()?.ready_us > now_us {
            return None;
        }
        let piece = self.pieces.pop_front()?;
        self.unread -= piece.bytes.len();
        Some(piece)
    }

    /// Whether the end is read now: once, behind the last piece.
    pub fn read_end(&mut self, now_us: u64) -> bool {
        let is_there = self.end_us.is_some_and(|at| at <= now_us) && self.pieces.is_empty();
        let read = is_there && !self.ended && !self.stopped && !self.broken;
        self.ended |= read;
        read
    }

    /// When there is something to read.
    pub fn due_us(&self) -> Option<u64> {
        if self.stopped || self.broken || self.ended {
            return None;
        }
        let front = self.pieces.front().map(|piece| piece.ready_us);
        front.or(self.end_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pipe: &mut Pipe, now_us: u64) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| pipe.read(now_us).map(|piece| piece.bytes)).collect()
    }

    #[test]
    fn pieces_come_in_order_however_they_are_cut_and_slowed() {
        let mut pipe = Pipe {
            cut: 2,
            delay_us: 10,
            ..Pipe::default()
        };
        assert!(pipe.write(b"abc", 0, false));
        pipe.delay_us = 0;
        pipe.cut = 0;
        assert!(pipe.write(b"def", 5, false));
        pipe.close(6);
        assert!(!pipe.write(b"lost", 6, false));
        assert_eq!(pipe.due_us(), Some(10));
        assert_eq!(all(&mut pipe, 9), Vec::<Vec<u8>>::new());
        pipe.stopped = true;
        assert_eq!((pipe.due_us(), pipe.unread()), (None, 6));
        pipe.stopped = false;
        assert_eq!(
            all(&mut pipe, 10),
            [b"ab".to_vec(), b"c".to_vec(), b"def".to_vec()]
        );
        assert!(pipe.read_end(10) && !pipe.read_end(10));
        assert_eq!((pipe.due_us(), pipe.most_unread()), (None, 6));
    }

    #[test]
    fn a_death_leaves_half_a_line() {
        let mut pipe = Pipe::default();
        pipe.write(b"whole\n", 0, false);
        pipe.write(b"broken\n", 0, false);
        pipe.die(0);
        assert_eq!(all(&mut pipe, 0), [b"whole\n".to_vec(), b"bro".to_vec()]);
        assert!(pipe.read_end(0));
    }

    #[test]
    fn a_death_takes_nothing_from_a_line_of_somebody_else() {
        let mut pipe = Pipe {
            cut: 4,
            ..Pipe::default()
        };
        pipe.write(b"whole\n", 0, false);
        pipe.write(b"alien\n", 0, true);
        pipe.die(0);
        assert_eq!(all(&mut pipe, 0).concat(), b"whole\nalien\n");
    }
}
