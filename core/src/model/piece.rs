//! Text out of JSON strings that come piece by piece: unescaped into one reused buffer, and halves of a
//! surrogate pair joined across pieces.

use alloc::string::String;

/// Where a piece of text belongs. A half pair waits only for the next piece of the same channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    Text,
    Thinking,
    /// The arguments of the call with this number.
    Args(u32),
}

/// The character that stands for half a pair whose other half never came.
pub(super) const REPLACEMENT: &str = "\u{fffd}";

/// Unescapes pieces and remembers a first half at the end of one.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    buffer: String,
    half: Option<(Channel, u16)>,
}

impl Pieces {
    /// The text of one JSON string, given with its quotes and known to be well formed. Borrowed from the
    /// input where nothing needs unescaping; else from a buffer that is reused.
    pub(super) fn text<'b>(&'b mut self, channel: Channel, quoted: &'b str) -> &'b str {
        let inner = inner(quoted);
        if self.half.is_none() && memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return inner;
        }
        self.buffer.clear();
        // A half of another channel was flushed by the caller; it can't be joined with this one.
        let mut half = self
            .half
            .take()
            .filter(|(owner, _)| *owner == channel)
            .map(|(_, unit)| unit);
        unescape(inner, &mut half, &mut self.buffer);
        self.half = half.map(|unit| (channel, unit));
        &self.buffer
    }

    /// Gives up the waiting half unless it belongs to `next`; the channel is owed one [`REPLACEMENT`].
    pub(super) fn flush(&mut self, next: Option<Channel>) -> Option<Channel> {
        let (owner, _) = self.half?;
        if Some(owner) == next {
            return None;
        }
        self.half = None;
        Some(owner)
    }
}

fn inner(quoted: &str) -> &str {
    quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or_default()
}

fn unescape(inner: &str, half: &mut Option<u16>, out: &mut String) {
    let mut rest = inner;
    while !rest.is_empty() {
        let plain = memchr::memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
        let (text, escape) = rest.split_at(plain);
        if !text.is_empty() {
            drop_half(half, out);
            out.push_str(text);
        }
        rest = if escape.is_empty() {
            ""
        } else {
            one_escape(escape, half, out)
        };
    }
}

/// Reads the escape at the start of `text` and gives what follows it.
fn one_escape<'t>(text: &'t str, half: &mut Option<u16>, out: &mut String) -> &'t str {
    let mut chars = text.chars();
    chars.next();
    let plain = match chars.next() {
        Some('n') => '\n',
        Some('t') => '\t',
        Some('r') => '\r',
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('u') => {
            let (digits, rest) = text.split_at_checked(6).unwrap_or((text, ""));
            let unit = digits
                .get(2..)
                .and_then(|hex| u16::from_str_radix(hex, 16).ok())
                .unwrap_or(0xFFFD);
            push_unit(unit, half, out);
            return rest;
        }
        Some(other) => other,
        None => return "",
    };
    drop_half(half, out);
    out.push(plain);
    chars.as_str()
}

fn push_unit(unit: u16, half: &mut Option<u16>, out: &mut String) {
    if let (Some(high), 0xDC00..=0xDFFF) = (*half, unit) {
        *half = None;
        let scalar = 0x1_0000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(unit) - 0xDC00);
        out.push(char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER));
        return;
    }
    drop_half(half, out);
    if (0xD800..=0xDBFF).contains(&unit) {
        *half = Some(unit);
    } else {
        out.push(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
}

fn drop_half(half: &mut Option<u16>, out: &mut String) {
    if half.take().is_some() {
        out.push_str(REPLACEMENT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        for (quoted, text) in [
            (r#""plain é🦀""#, "plain é🦀"),
            (r#""a\n\t\r\b\f\"\\\/b""#, "a\n\t\r\u{8}\u{c}\"\\/b"),
            (r#""\u00e9\ud83e\udd80\u0041""#, "é🦀A"),
            (r#""\ud83e""#, "\u{fffd}"),
            (r#""\ud83e\n""#, "\u{fffd}\n"),
            (r#""\udd80\ud83e\ud83e\udd80""#, "\u{fffd}\u{fffd}🦀"),
            (r#""""#, ""),
            ("null", ""),
        ] {
            let mut pieces = Pieces::default();
            let mut got = String::from(pieces.text(Channel::Text, quoted));
            got.extend(pieces.flush(None).map(|_| REPLACEMENT));
            assert_eq!(got, text, "{quoted}");
        }
    }

    #[test]
    fn j01_two_halves_in_two_pieces_are_joined() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.text(Channel::Text, r#""A \ud83e""#), "A ");
        assert_eq!(pieces.flush(Some(Channel::Text)), None);
        assert_eq!(pieces.text(Channel::Text, r#""\udd80 B""#), "🦀 B");
        assert_eq!(pieces.flush(None), None);
    }

    #[test]
    fn j01_a_half_that_waits_in_vain_is_replaced() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.text(Channel::Text, r#""\ud83e""#), "");
        assert_eq!(pieces.text(Channel::Text, r#""x""#), "\u{fffd}x");
        assert_eq!(pieces.text(Channel::Args(3), r#""\ud83e""#), "");
        assert_eq!(
            pieces.flush(Some(Channel::Thinking)),
            Some(Channel::Args(3))
        );
        assert_eq!(pieces.text(Channel::Thinking, r#""y""#), "y");
    }

    #[test]
    fn a_piece_without_escapes_is_lent_from_the_input() {
        let mut pieces = Pieces::default();
        let input = r#""hello""#;
        let text = pieces.text(Channel::Text, input);
        assert!(core::ptr::eq(text.as_ptr(), input[1..].as_ptr()));
    }
}
