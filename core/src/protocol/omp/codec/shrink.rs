//! How protocol 1 makes a frame fit: strings, lists and objects are cut at a cap, at every depth, with a mark of how
//! much is missing.
//!
//! Works on the text in one pass and without recursion. Lengths of strings are counted in units of UTF-16, so that a
//! cut can leave half of a surrogate pair; it is written as an escape.

use alloc::format;
use alloc::vec::Vec;

use crate::json::write_u64;

/// What is cut off at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caps {
    /// Units of UTF-16 in a string.
    string: usize,
    /// Elements of a list.
    list: usize,
    /// Members of an object.
    object: usize,
}

const fn caps(string: usize, list: usize, object: usize) -> Caps {
    Caps {
        string,
        list,
        object,
    }
}

/// The passes; the first one whose result fits wins.
pub(super) const PASSES: [Caps; 7] = [
    caps(262_144, 512, 512),
    caps(65_536, 256, 256),
    caps(16_384, 128, 128),
    caps(4_096, 64, 64),
    caps(1_024, 32, 32),
    caps(256, 8, 16),
    caps(64, 1, 8),
];

/// Room for the mark in a string that is cut.
const MARK: usize = 80;

/// An open list or object.
struct Level {
    is_object: bool,
    /// Elements or members begun.
    seen: usize,
    /// The next string is a member's name.
    name_next: bool,
}

/// Appends the JSON text, cut at the caps.
pub(super) fn shrink(text: &[u8], caps: Caps, out: &mut Vec<u8>) {
    let mut open: Vec<Level> = Vec::new();
    // The depth whose elements are left out from here on.
    let mut mute: Option<usize> = None;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b':' => at += 1,
            b',' => {
                at += 1;
                if let Some(level) = open.last_mut() {
                    level.name_next = level.is_object;
                }
            }
            b'}' | b']' => {
                at += 1;
                let Some(level) = open.pop() else { continue };
                let depth = open.len() + 1;
                if mute == Some(depth) {
                    mute = None;
                }
                if mute.is_none() {
                    close(&level, caps, out);
                    out.push(byte);
                }
            }
            _ => {
                let depth = open.len();
                let mut is_name = false;
                if let Some(level) = open.last_mut() {
                    is_name = level.name_next;
                    level.name_next = false;
                    if is_name || !level.is_object {
                        level.seen += 1;
                        let most = if level.is_object {
                            caps.object
                        } else {
                            caps.list
                        };
                        if level.seen > most && mute.is_none() {
                            mute = Some(depth);
                        }
                        if level.seen > 1 && mute.is_none() {
                            out.push(b',');
                        }
                    }
                }
                let end = token_end(text, at);
                let token = text.get(at..end).unwrap_or_default();
                at = end;
                if matches!(byte, b'{' | b'[') {
                    open.push(Level {
                        is_object: byte == b'{',
                        seen: 0,
                        name_next: byte == b'{',
                    });
                }
                if mute.is_some() {
                    continue;
                }
                match byte {
                    b'"' if is_name => {
                        out.extend_from_slice(token);
                        out.push(b':');
                    }
                    b'"' => cut(token, caps.string, out),
                    _ => out.extend_from_slice(token),
                }
            }
        }
    }
}

/// Says what is missing at the end of a list or object.
fn close(level: &Level, caps: Caps, out: &mut Vec<u8>) {
    if level.is_object {
        let missing = level.seen.saturating_sub(caps.object);
        if missing > 0 {
            out.extend_from_slice(b",\"rpcFrameElidedKeys\":");
            write_u64(out, missing as u64);
        }
    } else {
        let missing = level.seen.saturating_sub(caps.list);
        if missing > 0 {
            out.extend_from_slice(
                format!(",\"…[{missing} items elided for RPC frame]\"").as_bytes(),
            );
        }
    }
}

/// The index after the bracket, string, number or word at `at`.
fn token_end(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(b'{' | b'[') => at + 1,
        Some(b'"') => {
            let mut end = at + 1;
            loop {
                let rest = text.get(end..).unwrap_or_default();
                match memchr::memchr2(b'"', b'\\', rest) {
                    Some(found) if rest.get(found) == Some(&b'"') => return end + found + 1,
                    Some(found) => end += found + 2,
                    None => return text.len(),
                }
            }
        }
        Some(_) => {
            let rest = text.get(at..).unwrap_or_default();
            let length = rest
                .iter()
                .position(|byte| {
                    matches!(
                        byte,
                        b',' | b'}' | b']' | b':' | b' ' | b'\t' | b'\r' | b'\n'
                    )
                })
                .unwrap_or(rest.len());
            at + length.max(1)
        }
        None => at,
    }
}

/// The character at the start of a string's text: its length in bytes and in units of UTF-16.
fn char_at(text: &[u8], at: usize) -> (usize, usize) {
    match text.get(at) {
        Some(b'\\') if text.get(at + 1) == Some(&b'u') => (6, 1),
        Some(b'\\') => (2, 1),
        Some(0xF0..) => (4, 2),
        Some(0xE0..) => (3, 1),
        Some(0xC0..) => (2, 1),
        Some(_) | None => (1, 1),
    }
}

/// Where in a string's text this many units have passed, or the index before the character that passes them.
fn reach(text: &[u8], units: usize) -> (usize, usize) {
    const BLOCK: usize = 256;
    let (mut at, mut passed) = (0, 0);
    while at < text.len() {
        // Most text is ASCII without escapes: a unit a byte.
        if let Some(block) = text.get(at..at + BLOCK)
            && passed + BLOCK <= units
            && block.is_ascii()
            && memchr::memchr(b'\\', block).is_none()
        {
            at += BLOCK;
            passed += BLOCK;
            continue;
        }
        let (bytes, more) = char_at(text, at);
        if passed + more > units {
            break;
        }
        at += bytes;
        passed += more;
    }
    (at.min(text.len()), passed)
}

/// Appends a string, quotes and all, cut if it has more units than the cap.
pub(super) fn cut(quoted: &[u8], cap: usize, out: &mut Vec<u8>) {
    let text = quoted
        .get(1..quoted.len().saturating_sub(1))
        .unwrap_or_default();
    // A unit takes a byte at least.
    let total = if text.len() > cap {
        reach(text, usize::MAX).1
    } else {
        0
    };
    if total <= cap {
        return out.extend_from_slice(quoted);
    }
    let keep = cap.saturating_sub(MARK);
    let (end, passed) = reach(text, keep);
    out.push(b'"');
    out.extend_from_slice(text.get(..end).unwrap_or_default());
    if passed < keep
        && let Some(high) = high_surrogate(text.get(end..).unwrap_or_default())
    {
        out.extend_from_slice(format!("\\u{high:04x}").as_bytes());
    }
    let missing = total - keep;
    out.extend_from_slice(format!("\\n…[{missing} chars elided for RPC frame]\"").as_bytes());
}

/// The first unit of the pair that this text begins with.
fn high_surrogate(text: &[u8]) -> Option<u16> {
    let char = core::str::from_utf8(text.get(..4)?).ok()?.chars().next()?;
    char.encode_utf16(&mut [0; 2]).first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn shrunk(text: &str, caps: Caps) -> String {
        let mut out = Vec::new();
        shrink(text.as_bytes(), caps, &mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    #[test]
    fn what_is_within_the_caps_stays() {
        let text = r#"{"a":[1,-2.5e3,true,null,"x\"\\\u0041"],"b":{},"c":[],"d":{"e":[[]]}}"#;
        assert_eq!(shrunk(text, caps(64, 8, 8)), text);
        let spaced = "{ \"a\" : [ 1 , 2 ] ,\t\"b\" : { } }";
        assert_eq!(shrunk(spaced, caps(64, 8, 8)), r#"{"a":[1,2],"b":{}}"#);
    }

    #[test]
    fn lists_and_objects_say_what_is_missing_at_every_depth() {
        let text = r#"{"a":[1,[2,3,[4]],{"x":1}],"b":[[1,2],[3,4],5],"c":0,"d":[9],"e":{"f":1}}"#;
        assert_eq!(
            shrunk(text, caps(64, 2, 3)),
            "{\"a\":[1,[2,3,\"…[1 items elided for RPC frame]\"],\"…[1 items elided for RPC frame]\"],\
             \"b\":[[1,2],[3,4],\"…[1 items elided for RPC frame]\"],\"c\":0,\"rpcFrameElidedKeys\":2}"
        );
    }

    #[test]
    fn strings_are_cut_in_units_of_utf_16() {
        let long = "ä".repeat(100);
        assert_eq!(
            shrunk(&format!("[\"{long}\"]"), caps(90, 1, 1)),
            format!(
                "[\"{}\\n…[90 chars elided for RPC frame]\"]",
                "ä".repeat(10)
            )
        );
        let pairs = format!("x{}", "😀".repeat(60));
        let cut = shrunk(&format!("[\"{pairs}\"]"), caps(84, 1, 1));
        assert_eq!(cut, "[\"x😀\\ud83d\\n…[117 chars elided for RPC frame]\"]");
        let escaped = "\\ud83d\\ude00".repeat(60);
        let cut = shrunk(&format!("[\"{escaped}\"]"), caps(83, 1, 1));
        assert_eq!(
            cut,
            "[\"\\ud83d\\ude00\\ud83d\\n…[117 chars elided for RPC frame]\"]"
        );
        // A cap below the mark keeps nothing.
        let cut = shrunk(&format!("[\"{}\"]", "a".repeat(65)), caps(64, 1, 1));
        assert_eq!(cut, "[\"\\n…[65 chars elided for RPC frame]\"]");
    }

    #[test]
    fn names_are_never_cut() {
        let name = "n".repeat(100);
        let text = format!("{{\"{name}\":\"{name}\"}}");
        let cut = shrunk(&text, caps(90, 1, 1));
        assert!(
            cut.starts_with(&format!("{{\"{name}\":\"nnnnnnnnnn\\n…")),
            "{cut}"
        );
    }
}
