//! Text of others on a terminal: what could move the cursor, change colours or reorder a line is shown, not obeyed.

use std::borrow::Cow;

/// One line of such text: no control characters at all.
pub fn line(text: &str) -> Cow<'_, str> {
    shown(text, |_| false)
}

/// Text of several lines: newlines and tabs stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    shown(text, |char| matches!(char, '\n' | '\t'))
}

fn shown(text: &str, stays: fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|char| is_active(char) && !stays(char)) {
        return Cow::Borrowed(text);
    }
    text.chars()
        .map(|char| {
            if is_active(char) && !stays(char) {
                picture(char)
            } else {
                char
            }
        })
        .collect::<String>()
        .into()
}

/// Controls (C0, DEL, C1), line separators, and what sets the direction of writing (Unicode, UAX #9).
fn is_active(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The picture of a control, where Unicode has one.
fn picture(char: char) -> char {
    match u32::from(char) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        _ => '\u{fffd}',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_gets_through() {
        assert_eq!(line("plain ä 漢"), "plain ä 漢");
        assert!(matches!(line("plain"), Cow::Borrowed(_)));
        assert_eq!(
            line("a\x1b[31m\r\nb\x7f\u{9b}\u{202e}"),
            "a␛[31m␍␊b␡\u{fffd}\u{fffd}"
        );
        assert_eq!(lines("a\n\tb\x07"), "a\n\tb␇");
        for code in (0..0x20).chain(0x7f..0xa0) {
            let text = char::from_u32(code).unwrap().to_string();
            assert!(!line(&text).chars().any(char::is_control), "{code:#x}");
        }
    }
}
