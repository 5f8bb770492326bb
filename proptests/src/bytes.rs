//! Bytes as a source of choices.
//!
//! Every choice reads a fixed number of bytes, and a source that has run out gives zeros, so that any byte string, cut
//! off anywhere, makes a whole value: nothing is ever rejected. The first of several things is what zero chooses;
//! the plainest one stands there, and that is where shrinking leads.

/// A source of choices. See the [module](self).
#[derive(Clone, Debug)]
pub struct Source<'a> {
    rest: &'a [u8],
}

impl<'a> Source<'a> {
    /// A source that reads these bytes from the first on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Source { rest: bytes }
    }

    /// Whether only zeros are left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// A source of the next `length` bytes alone; this one goes on behind them. What is decoded from it takes its
    /// place whatever it reads, so that a byte that changes moves nothing behind it.
    pub fn part(&mut self, length: usize) -> Source<'a> {
        let (part, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        Source { rest: part }
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else {
            return 0;
        };
        self.rest = rest;
        *first
    }

    /// Two bytes as a number.
    pub fn short(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// One byte: false for zero, and for half of all others.
    pub fn flag(&mut self) -> bool {
        self.byte() % 2 == 1
    }

    /// One byte: a number below `limit`, 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()).checked_rem(limit).unwrap_or(0)
    }

    /// One byte: one of these, which aren't none.
    pub fn of<T, const N: usize>(&mut self, all: [T; N]) -> T {
        const { assert!(N > 0, "a choice among nothing") };
        match all.into_iter().nth(self.below(N)) {
            Some(one) => one,
            None => unreachable!("it is below N"),
        }
    }

    /// Two bytes: the place of one of these weights, as often as it weighs; 0 if none weighs anything.
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let all: u32 = weights.iter().sum();
        let mut left = u32::from(self.short()).checked_rem(all).unwrap_or(0);
        for (at, weight) in weights.iter().enumerate() {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return at,
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exhausted_source_gives_the_first_of_everything() {
        let mut source = Source::new(&[7]);
        assert_eq!(source.byte(), 7);
        assert!(source.is_empty());
        assert_eq!(
            (source.byte(), source.short(), source.flag()),
            (0, 0, false)
        );
        assert_eq!(source.of(["plain", "odd"]), "plain");
        assert_eq!(source.below(0), 0);
        assert_eq!(source.weighted(&[0, 0, 3, 1]), 2);
    }

    #[test]
    fn weights_count() {
        let mut seen = [0; 3];
        for byte in 0..=255u8 {
            let at = Source::new(&[0, byte]).weighted(&[1, 0, 3]);
            if let Some(count) = seen.get_mut(at) {
                *count += 1;
            }
        }
        assert_eq!(seen, [64, 0, 192]);
    }

    #[test]
    fn a_part_takes_its_place_whatever_is_read() {
        let mut source = Source::new(&[1, 2, 3, 4, 5]);
        assert_eq!(source.part(3).byte(), 1);
        assert_eq!(source.byte(), 4);
        let mut last = source.part(9);
        assert_eq!((last.byte(), last.byte()), (5, 0));
    }
}
