//! Base64 (RFC 4648).

use alloc::vec::Vec;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The value of each digit; 64 for what isn't one.
const VALUES: [u8; 256] = {
    let mut values = [64; 256];
    let mut value = 0;
    while value < 64 {
        values[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    values
};

fn digit(bits: u32) -> u8 {
    ALPHABET.get((bits & 63) as usize).copied().unwrap_or(b'A')
}

/// Appends the digits of these bytes.
pub(crate) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len().div_ceil(3) * 4);
    let (groups, rest) = bytes.as_chunks::<3>();
    for [a, b, c] in groups {
        let bits = u32::from(*a) << 16 | u32::from(*b) << 8 | u32::from(*c);
        out.extend_from_slice(&[
            digit(bits >> 18),
            digit(bits >> 12),
            digit(bits >> 6),
            digit(bits),
        ]);
    }
    match rest {
        [a] => {
            let bits = u32::from(*a) << 16;
            out.extend_from_slice(&[digit(bits >> 18), digit(bits >> 12), b'=', b'=']);
        }
        [a, b] => {
            let bits = u32::from(*a) << 16 | u32::from(*b) << 8;
            out.extend_from_slice(&[digit(bits >> 18), digit(bits >> 12), digit(bits >> 6), b'=']);
        }
        _ => {}
    }
}

/// The number of bytes that this many digits make, if they are canonical.
pub(crate) fn decoded_len(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|&byte| byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

/// Appends the bytes; `None`, and nothing sure about `out`, if the text isn't canonical: padded, and in the one spelling
/// of its bytes.
pub(crate) fn decode(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let (groups, []) = text.as_bytes().as_chunks::<4>() else {
        return None;
    };
    let (last, groups) = groups.split_last()?;
    out.reserve(text.len() / 4 * 3);
    for group in groups {
        let bits = bits(group, 4)?;
        out.extend_from_slice(bits.to_be_bytes().get(1..)?);
    }
    let digits = match last {
        [_, _, b'=', b'='] => 2,
        [_, _, _, b'='] => 3,
        _ => 4,
    };
    let bits = bits(last, digits)?;
    let bytes = digits - 1;
    // Bits that no byte takes up are zero in the one spelling that passes.
    if bytes < 3 && bits << (8 * (bytes + 1)) != 0 {
        return None;
    }
    out.extend_from_slice(bits.to_be_bytes().get(1..1 + bytes)?);
    Some(())
}

/// Appends the bytes of a text with or without padding, in any spelling.
pub(crate) fn decode_lax(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let (groups, rest) = text.trim_end_matches('=').as_bytes().as_chunks::<4>();
    for group in groups {
        out.extend_from_slice(bits(group, 4)?.to_be_bytes().get(1..)?);
    }
    let mut last = [b'A'; 4];
    last.get_mut(..rest.len())?.copy_from_slice(rest);
    let bytes = match rest.len() {
        0 => return Some(()),
        1 => return None,
        digits => digits - 1,
    };
    out.extend_from_slice(bits(&last, rest.len())?.to_be_bytes().get(1..1 + bytes)?);
    Some(())
}

/// The first digits of a group, as 24 bits.
fn bits(group: &[u8; 4], digits: usize) -> Option<u32> {
    let mut bits = 0;
    for (index, byte) in group.iter().enumerate() {
        let value = match VALUES.get(usize::from(*byte)) {
            _ if index >= digits => 0,
            Some(value @ 0..64) => *value,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
    }
    Some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_goes_there_and_back() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foobar", "Zm9vYmFy"),
            (b"\xff\xef\x00", "/+8A"),
        ] {
            let mut digits = Vec::new();
            encode(bytes, &mut digits);
            assert_eq!(digits, text.as_bytes());
            assert_eq!(decoded_len(text), bytes.len());
            if !text.is_empty() {
                let mut back = Vec::new();
                assert_eq!(decode(text, &mut back), Some(()), "{text}");
                assert_eq!(back, bytes);
            }
        }
    }

    #[test]
    fn only_one_spelling_passes() {
        for text in [
            "", "Zg", "Zg=", "Zh==", "Zm9=", "Zg==Zg==", "Z===", "====", "Zm 9", "_-8A", "Zm9v\n",
            "Zm9vä",
        ] {
            assert_eq!(decode(text, &mut Vec::new()), None, "{text}");
        }
    }

    #[test]
    fn a_lax_reader_takes_it_with_and_without_padding() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zg", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("Zm9vYmFy", b"foobar"),
            ("/+8=", b"\xff\xef"),
        ] {
            let mut out = Vec::new();
            assert_eq!(decode_lax(text, &mut out), Some(()), "{text}");
            assert_eq!(out, bytes);
        }
        for text in ["Z", "Zm9vY", "Zm 9", "Zm9v=Zm9v", "ä"] {
            assert_eq!(decode_lax(text, &mut Vec::new()), None, "{text}");
        }
    }
}
