//! Ids of runs: when it began, and something that tells apart what began in the same second.

use alloc::format;
use alloc::string::String;

use crate::protocol::ids::hex16;

/// `run_`, the time in UTC to the second, `_` and six hexadecimal digits.
pub(super) fn made(seed: &[u8; 32], unix_ms: u64) -> String {
    let digits = hex16(seed, unix_ms);
    let digits = digits.get(..6).unwrap_or_default();
    let (days, second) = (unix_ms / 86_400_000, unix_ms / 1_000 % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("run_{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}_{digits}")
}

/// The date of a day since 1970, in the Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    // Counted from 1 March of the year 0, so that the day that only some years have is the last.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let (month, next) = if shifted < 10 {
        (shifted + 3, 0)
    } else {
        (shifted - 9, 1)
    };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::splice::wire::is_run_id;

    #[test]
    fn sp_01_a_run_is_named_by_its_time() {
        for (unix_ms, date) in [
            (0, "19700101000000"),
            (951_782_399_999, "20000228235959"),
            (951_827_696_000, "20000229123456"),
            (1_767_225_600_000, "20260101000000"),
            (4_107_542_400_000, "21000301000000"),
            (253_402_300_799_000, "99991231235959"),
        ] {
            let id = made(&[7; 32], unix_ms);
            assert!(is_run_id(&id), "{id}");
            assert_eq!(id.get(4..18), Some(date));
            assert_eq!(id.len(), 25);
        }
        assert_ne!(made(&[7; 32], 5), made(&[8; 32], 5));
        assert!(is_run_id(&made(&[7; 32], u64::MAX)));
    }
}
