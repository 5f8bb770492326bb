//! Names of jobs and of sessions within sessions, and where they are stored (OS-11, OS-12).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::base64;

/// The longest component, in UTF-16 units.
const COMPONENT: usize = 200;
/// Before the hex digits of a compact id's file.
const UUID: &str = "uuid-";
/// The bytes of a compact id.
const BYTES: usize = 16;
/// What they are in base64url, without padding.
const COMPACT: usize = 22;
/// Between the id of a session and the number of the one within it.
const CHILD: &str = "-sr-";
/// The most digits of that number.
const DIGITS: usize = 9;

/// Whether a text is one component of an artifact's path: 1 to 200 characters of `A-Z`, `a-z`, `0-9`, `-`, `_` and `.`, and
/// neither `.` nor `..`. Nothing that a tool put out is ever taken for a path.
pub fn valid_job_component(value: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    // All of them are ASCII, so bytes are UTF-16 units.
    (1..=COMPONENT).contains(&value.len())
        && value.bytes().all(fits)
        && value != "."
        && value != ".."
}

/// The compact id of 16 bytes: base64url without padding, 22 characters.
pub fn compact_job_id(bytes: [u8; BYTES]) -> String {
    let mut text = Vec::new();
    base64::encode(&bytes, &mut text);
    let url = |byte: &u8| match byte {
        b'+' => '-',
        b'/' => '_',
        other => char::from(*other),
    };
    text.iter().filter(|byte| **byte != b'=').map(url).collect()
}

/// The bytes of a compact id. Only canonical base64 is decoded: of two spellings of the same bytes one is an id, so that no
/// two ids have one file.
fn compact_bytes(id: &str) -> Option<[u8; BYTES]> {
    if id.len() != COMPACT {
        return None;
    }
    let mut text = String::with_capacity(COMPACT + 2);
    for char in id.chars() {
        text.push(match char {
            '-' => '+',
            '_' => '/',
            '+' | '/' | '=' => return None,
            other => other,
        });
    }
    text.push_str("==");
    let mut bytes = Vec::new();
    base64::decode(&text, &mut bytes)?;
    bytes.try_into().ok()
}

/// The name under which a job is stored: `uuid-` and 32 lower-case hex digits for a compact id, because a file system may
/// not tell upper case from lower; any other id is its own name.
pub fn job_storage_name(id: &str) -> Cow<'_, str> {
    let Some(bytes) = compact_bytes(id) else {
        return Cow::Borrowed(id);
    };
    let mut name = String::from(UUID);
    for byte in bytes {
        name.push_str(&format!("{byte:02x}"));
    }
    Cow::Owned(name)
}

/// The id of the job that is stored under this name: the inverse of [`job_storage_name`].
pub fn job_id_from_storage(name: &str) -> Cow<'_, str> {
    match hex_bytes(name) {
        Some(bytes) => Cow::Owned(compact_job_id(bytes)),
        None => Cow::Borrowed(name),
    }
}

fn hex_bytes(name: &str) -> Option<[u8; BYTES]> {
    let hex = name.strip_prefix(UUID)?.as_bytes();
    if hex.len() != 2 * BYTES {
        return None;
    }
    let mut bytes = [0; BYTES];
    for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
        for digit in pair {
            let digit = char::from(*digit).to_digit(16)?;
            // Below 16.
            *byte = *byte << 4 | digit as u8;
        }
    }
    Some(bytes)
}

/// Whether a job may be called so from now on: it is one component, and its file leads back to it. An id that looks like
/// the file of a compact one doesn't, and would share that file.
pub fn is_job_id(id: &str) -> bool {
    valid_job_component(id) && job_id_from_storage(&job_storage_name(id)) == id
}

/// The session and the number of the run within it that a child's session id names; `None` for any other session.
///
/// The innermost suffix wins: `a-sr-1-sr-2` is child 2 of `a-sr-1`. The number has one to nine digits, so that it fits; what
/// has more is no child.
pub fn split_child_session_id(id: &str) -> Option<(&str, u32)> {
    // From left to right, as hits don't overlap: `a-sr-sr-1` has one, behind `a`.
    let (at, _) = id.match_indices(CHILD).last()?;
    let (parent, rest) = id.split_at_checked(at)?;
    let digits = rest.strip_prefix(CHILD)?;
    let is_number =
        (1..=DIGITS).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if parent.is_empty() || !is_number {
        return None;
    }
    Some((parent, digits.parse().ok()?))
}

/// The id of the session of this run within a session.
pub fn child_session_id(parent: &str, ordinal: u32) -> String {
    format!("{parent}{CHILD}{ordinal}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_a05_os_12_components_are_never_paths() {
        let long = "x".repeat(COMPONENT);
        for good in ["bg-1", "...", "a", "A_b.c-9", "0", &long] {
            assert!(valid_job_component(good), "{good}");
        }
        let longer = "x".repeat(COMPONENT + 1);
        for bad in [
            "", ".", "..", "a/b", "/", "\\", "é", "a b", "a\0", "~", "a:b", "ß", "\u{ff0e}",
            &longer,
        ] {
            assert!(!valid_job_component(bad), "{bad}");
        }
    }

    #[test]
    fn os_a05_os_12_compact_ids_have_lower_case_files() {
        let file = "uuid-0194e3c100407abc8def0123456789ab";
        assert_eq!(job_storage_name("AZTjwQBAeryN7wEjRWeJqw"), file);
        assert_eq!(job_id_from_storage(file), "AZTjwQBAeryN7wEjRWeJqw");
        let upper = "uuid-0194E3C100407ABC8DEF0123456789AB";
        assert_eq!(job_id_from_storage(upper), "AZTjwQBAeryN7wEjRWeJqw");
        for own in [
            "bg-1",
            "0194e3c1-2345-7abc-8def-0123456789ab",
            // Not canonical: the last character has bits to spare.
            "AZTjwQBAeryN7wEjRWeJqx",
            "AZTjwQBAeryN7wEjRWeJq",
            "AZTjwQBAeryN7wEjRWeJq=",
            "AZTjwQBAeryN7wEjRWeJ+w",
            "AZTjwQBAeryN7wEjRWeJ.w",
            "",
        ] {
            assert_eq!(job_storage_name(own), own);
        }
        for own in [
            "uuid-",
            "uuid-0194e3c100407abc8def0123456789ag",
            "uuid-0194e3c100407abc8def0123456789a",
            "uuid-0194e3c100407abc8def0123456789abc",
            "UUID-0194e3c100407abc8def0123456789ab",
            "uuid-0194e3c100407abc8def0123456789\u{e9}",
        ] {
            assert_eq!(job_id_from_storage(own), own);
        }
        assert!(is_job_id("bg-1") && is_job_id("AZTjwQBAeryN7wEjRWeJqw"));
        assert!(!is_job_id(file) && !is_job_id(upper) && !is_job_id("a/b"));
    }

    #[test]
    fn os_a05_os_11_the_innermost_suffix_makes_a_child() {
        for (id, split) in [
            ("a-sr-1", Some(("a", 1))),
            ("a-sr-1-sr-2", Some(("a-sr-1", 2))),
            ("a-sr-007", Some(("a", 7))),
            ("a-sr-999999999", Some(("a", 999_999_999))),
            ("é-sr-3", Some(("é", 3))),
            ("-sr-1", None),
            ("a-sr-", None),
            ("a-sr-1x", None),
            ("a-sr-1-", None),
            ("a-sr-+1", None),
            ("a-sr-\u{661}", None),
            ("a-sr-1234567890", None),
            ("a-sr-0000000001", None),
            ("a-sr-1-sr-", None),
            ("a-sr-sr-1", None),
            ("-sr--sr-1", Some(("-sr-", 1))),
            ("a", None),
            ("", None),
        ] {
            assert_eq!(split_child_session_id(id), split, "{id}");
        }
        assert_eq!(child_session_id("a-sr-1", 2), "a-sr-1-sr-2");
    }
}
