//! The bound on what a result says.

use alloc::borrow::Cow;
use alloc::format;

use crate::protocol::openseek::RESULT_UNITS;

/// The text, or as much of its beginning as leaves room for a mark within [`RESULT_UNITS`] units of UTF-16.
pub(super) fn clamped(text: &str) -> Cow<'_, str> {
    // A byte or more for each unit.
    if text.len() <= RESULT_UNITS {
        return text.into();
    }
    let units = text.encode_utf16().count();
    if units <= RESULT_UNITS {
        return text.into();
    }
    // ASCII: as many units as bytes.
    let mark = format!("\n[cut: {units} units in all]");
    let mut room = RESULT_UNITS.saturating_sub(mark.len());
    let mut end = 0;
    for (at, char) in text.char_indices() {
        match room.checked_sub(char.len_utf16()) {
            Some(left) => room = left,
            None => break,
        }
        end = at + char.len_utf8();
    }
    let kept = text.get(..end).unwrap_or_default();
    format!("{kept}{mark}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_10_a_result_has_60_000_units_at_most_its_mark_among_them() {
        let units = |text: &str| text.encode_utf16().count();
        for char in ["a", "é", "\u{1f600}"] {
            let fits = char.repeat(RESULT_UNITS / units(char));
            assert_eq!(clamped(&fits), fits);
            let long = format!("{fits}{char}");
            let cut = clamped(&long);
            assert!(units(&cut) <= RESULT_UNITS && units(&cut) > RESULT_UNITS - 2);
            assert!(cut.ends_with(" units in all]"), "{char}");
            assert!(cut.starts_with(char));
        }
    }
}
