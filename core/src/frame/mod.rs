//! Framing: from chunks of bytes to lines and to server-sent events.
//!
//! Pure code that drivers call. Both readers keep law L1: however the same
//! bytes are cut into chunks, the same items come out, in the same order.
//! Both lend what they give: from the caller's chunk where the item lies
//! whole in it, from their own buffer else.

mod line;
mod sse;
#[cfg(test)]
mod sse_tests;

pub use line::{LineRules, LineSplitter, OverLong, Place, Split, SplitKind, Tail};
pub use sse::{BadUtf8, SseDecoder, SseEvent, SseFault, SseFaultKind, SseLimits};

/// Whether a line holds nothing but JSON white space (space, tab, CR).
///
/// All five protocols skip such a line without a word.
pub fn is_blank(line: &[u8]) -> bool {
    line.iter()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

/// The largest buffer that is kept between two items; a larger one is given
/// back, so that an idle session holds no memory for its longest line.
const KEEP: usize = 64 * 1024;

/// Empties `buffer` and gives a large one back to the allocator.
fn reset(buffer: &mut alloc::vec::Vec<u8>) {
    if buffer.capacity() > KEEP {
        *buffer = alloc::vec::Vec::new();
    } else {
        buffer.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn om_06_a_blank_line_is_white_space_of_json_alone() {
        for (line, blank) in [
            ("", true),
            (" \t\r\n", true),
            ("a", false),
            (" a ", false),
            ("\u{b}", false),
            ("\u{a0}", false),
        ] {
            assert_eq!(is_blank(line.as_bytes()), blank, "{line:?}");
        }
    }

    #[test]
    fn tw_10_a_buffer_is_kept_up_to_64_kib() {
        for (capacity, kept) in [(KEEP, KEEP), (KEEP + 1, 0)] {
            let mut buffer = alloc::vec::Vec::with_capacity(capacity);
            buffer.push(b'x');
            reset(&mut buffer);
            assert_eq!((buffer.len(), buffer.capacity()), (0, kept));
        }
        assert_eq!(KEEP, 65_536);
    }
}
