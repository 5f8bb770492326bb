//! The three spellings of a date in an HTTP header (RFC 9110 section 5.6.7), read into Unix seconds.
//!
//! Only what `Retry-After` needs: no time zones but GMT, no leap seconds (23:59:60 counts as the next second).

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// Reads an HTTP date; `now_s` places the two-digit years of the RFC 850 form, which lie at most 50 years ahead.
///
/// Gives `None` for anything that isn't one of the three forms, names a day that doesn't exist, or
/// lies before 1970. The day of the week is only checked to be one.
pub(crate) fn parse(text: &str, now_s: u64) -> Option<u64> {
    let (day, rest) = split_word(text)?;
    if let Some(name) = day.strip_suffix(',') {
        return if DAYS.contains(&name) {
            rfc_850(rest, now_s)
        } else {
            imf_fixdate(short_day(name)?, rest)
        };
    }
    asctime(short_day(day)?, rest)
}

/// A checked day name; it carries nothing, for the date alone decides.
struct Weekday;

fn short_day(name: &str) -> Option<Weekday> {
    DAYS.iter()
        .any(|day| name.len() == 3 && day.get(..3) == Some(name))
        .then_some(Weekday)
}

/// `06 Nov 1994 08:49:37 GMT`
fn imf_fixdate(_: Weekday, text: &str) -> Option<u64> {
    let (day, rest) = split_word(text)?;
    let (month, rest) = split_word(rest)?;
    let (year, rest) = split_word(rest)?;
    let (time, zone) = split_word(rest)?;
    let date = Date {
        year: digits(year, 4)?,
        month: month_of(month)?,
        day: digits(day, 2)?,
    };
    if zone == "GMT" { date.at(time) } else { None }
}

/// `06-Nov-94 08:49:37 GMT`
fn rfc_850(text: &str, now_s: u64) -> Option<u64> {
    let (date, rest) = split_word(text)?;
    let (time, zone) = split_word(rest)?;
    let mut parts = date.split('-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    if zone != "GMT" || parts.next().is_some() {
        return None;
    }
    let this_year = 1970 + now_s / 31_556_952;
    let mut year = digits(year, 2)? + this_year / 100 * 100;
    if year > this_year + 50 {
        year -= 100;
    }
    Date {
        year,
        month: month_of(month)?,
        day: digits(day, 2)?,
    }
    .at(time)
}

/// `Nov  6 08:49:37 1994`
fn asctime(_: Weekday, text: &str) -> Option<u64> {
    let (month, rest) = split_word(text)?;
    let (day, rest) = split_word(rest.trim_start_matches(' '))?;
    let (time, year) = split_word(rest)?;
    let day = digits(day, 1).or_else(|| digits(day, 2))?;
    Date {
        year: digits(year, 4)?,
        month: month_of(month)?,
        day,
    }
    .at(time)
}

fn split_word(text: &str) -> Option<(&str, &str)> {
    text.split_once(' ')
}

fn digits(text: &str, width: usize) -> Option<u64> {
    (text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())?
}

fn month_of(name: &str) -> Option<u64> {
    (1..)
        .zip(MONTHS)
        .find(|(_, month)| *month == name)
        .map(|(number, _)| number)
}

struct Date {
    year: u64,
    month: u64,
    day: u64,
}

impl Date {
    fn at(&self, time: &str) -> Option<u64> {
        let mut parts = time.split(':');
        let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
        let second = digits(parts.next()?, 2)?;
        if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        Some(self.days_since_1970()? * 86_400 + hour * 3_600 + minute * 60 + second)
    }

    fn days_since_1970(&self) -> Option<u64> {
        let leap = self.year.is_multiple_of(4)
            && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400));
        let length = match self.month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        if self.year < 1970 || self.day == 0 || self.day > length {
            return None;
        }
        // Count in years that begin in March, so that the leap day is the last of its year.
        let (year, month) = if self.month > 2 {
            (self.year, self.month - 3)
        } else {
            (self.year - 1, self.month + 9)
        };
        let days =
            year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + self.day - 1;
        // 719,468 days lie between 1 March of year 0 and 1 January 1970.
        Some(days - 719_468)
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    const NOW: u64 = 1_700_000_000; // 14 November 2023

    #[test]
    fn the_three_forms_name_the_same_moment() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse(text, NOW), Some(784_111_777), "{text}");
        }
    }

    #[test]
    fn known_moments() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Tue, 29 Feb 2000 23:59:59 GMT", 951_868_799),
            ("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800),
            ("Tue, 14 Nov 2023 22:13:20 GMT", NOW),
            ("Wed, 21 Oct 2015 07:28:00 GMT", 1_445_412_480),
            ("Sat, 31 Dec 2039 23:59:60 GMT", 2_208_988_800),
            ("Sunday, 06-Nov-44 08:49:37 GMT", 2_362_034_977),
        ] {
            assert_eq!(parse(text, NOW), Some(seconds), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "Someday, soon",
            "Wed, 21 Oct 2015 07:28:00",
            "Wed, 21 Oct 2015 07:28:00 CET",
            "Wed, 21 Oct 2015 24:00:00 GMT",
            "Wed, 31 Jun 2015 07:28:00 GMT",
            "Tue, 29 Feb 2100 07:28:00 GMT",
            "Wed, 00 Oct 2015 07:28:00 GMT",
            "Wed, 21 Okt 2015 07:28:00 GMT",
            "Xyz, 21 Oct 2015 07:28:00 GMT",
            "Wed, 21 Oct 1969 07:28:00 GMT",
            "Wed, +1 Oct 2015 07:28:00 GMT",
            "Wed, 21 Oct 2015 7:28:00 GMT",
            "\u{fffd}\u{1f980}, 21 Oct 2015 07:28:00 GMT",
        ] {
            assert_eq!(parse(text, NOW), None, "{text}");
        }
    }
}
