//! Bytes that nobody can guess, and the ids of sessions.

use crate::say::Stop;

/// How ids of sessions are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdKind {
    /// A UUID in lower case (RFC 9562) of version 4: random alone.
    Random,
    /// One of version 7: the time first, so that ids sort as the sessions began.
    Ordered,
    /// `ses_` and 32 hex digits.
    Prefixed,
}

impl IdKind {
    /// A new one.
    ///
    /// # Errors
    /// [`Stop::Failed`] when there is no randomness.
    pub fn make(self, unix_ms: u64) -> Result<String, Stop> {
        let mut bytes: [u8; 16] = random()?;
        let version = match self {
            IdKind::Prefixed => return Ok(bytes.iter().fold("ses_".to_owned(), hex)),
            IdKind::Random => 0x40,
            IdKind::Ordered => {
                let [_, _, time @ ..] = unix_ms.to_be_bytes();
                if let Some(place) = bytes.first_chunk_mut() {
                    *place = time;
                }
                0x70
            }
        };
        bytes[6] = bytes[6] & 0x0f | version;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut id = String::with_capacity(36);
        for (at, byte) in bytes.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                id.push('-');
            }
            id = hex(id, byte);
        }
        Ok(id)
    }
}

fn hex(mut text: String, byte: &u8) -> String {
    for digit in [byte >> 4, byte & 0x0f] {
        text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
    }
    text
}

/// Bytes that nobody can guess.
///
/// # Errors
/// [`Stop::Failed`] when the system gives none.
pub fn random<const N: usize>() -> Result<[u8; N], Stop> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Stop::Failed(format!("no randomness: {error}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_of_their_version() {
        for (kind, version) in [(IdKind::Random, b'4'), (IdKind::Ordered, b'7')] {
            let (one, two) = (kind.make(1).unwrap(), kind.make(1).unwrap());
            assert_ne!(one, two);
            let parts: Vec<usize> = one.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12]);
            assert!(
                one.as_bytes()[14] == version && b"89ab".contains(&one.as_bytes()[19]),
                "{one}"
            );
        }
    }

    #[test]
    fn prefixed_ids_are_hex_behind_their_prefix() {
        let one = IdKind::Prefixed.make(1).unwrap();
        assert_ne!(one, IdKind::Prefixed.make(1).unwrap());
        let digits = one.strip_prefix("ses_").unwrap();
        assert!(
            digits.len() == 32 && digits.bytes().all(|it| it.is_ascii_hexdigit()),
            "{one}"
        );
    }

    #[test]
    fn ordered_ids_sort_as_time_goes() {
        let made = |ms| IdKind::Ordered.make(ms).unwrap();
        assert!(made(0x0199_0000_0001).starts_with("01990000-0001-7"));
        assert!(made(1) < made(2) && made(0xffff) < made(0x1_0000));
    }
}
