//! Entries and pages: the history as a host reads it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::run::Encoded;
use crate::json::{self, Raw, Str, scan_value};
use crate::protocol::omp::Transcript;
use crate::protocol::omp::codec::{cursor_decode, cursor_encode};
use crate::protocol::omp::wire::{Any, HOST_RULES, Num};
use crate::vocab::{Message, MessageId, Role};

/// The most bytes of messages on a page, brackets and commas included.
const PAGE_BYTES: usize = 786_432;
const PAGE: usize = 100;
const MOST: usize = 256;
/// The longest cursor, in characters.
const CURSOR: usize = 2048;

/// The id of a message's entry: 8 hexadecimal digits, one for each message.
pub(super) fn entry_id(message: MessageId) -> String {
    let number = if message == MessageId::MADE_SUMMARY {
        0
    } else if message.is_made_up() {
        // The result of a call: calls are counted apart from messages.
        ((message.0 as u32) << 1) | 1
    } else {
        (message.0 as u32) << 1
    };
    format!("{:08x}", mixed(number))
}

/// The id of the entry of a message. A result goes by its call: its own number is known only once it is written.
pub(super) fn entry_of(message: &Message) -> String {
    entry_id(match &message.role {
        Role::Tool { call, .. } => MessageId::of_result(*call),
        Role::User
        | Role::Assistant
        | Role::Note
        | Role::Summary
        | Role::Shell
        | Role::Other(_) => message.id,
    })
}

/// A permutation of 32 bits.
fn mixed(number: u32) -> u32 {
    let mut word = number.wrapping_add(0x9e37_79b9);
    word = (word ^ (word >> 16)).wrapping_mul(0x7feb_352d);
    word = (word ^ (word >> 15)).wrapping_mul(0x846c_a68b);
    word ^ (word >> 16)
}

/// An entry of the history.
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) at_ms: u64,
    pub(super) message: Encoded,
}

impl Entry {
    /// Appends it as JSON.
    fn put(&self, parent: Option<&Entry>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"message\",\"id\":\"");
        out.extend_from_slice(self.id.as_bytes());
        out.extend_from_slice(b"\",\"parentId\":");
        put_id(parent, out);
        out.extend_from_slice(b",\"timestamp\":\"");
        out.extend_from_slice(iso(self.at_ms).as_bytes());
        out.extend_from_slice(b"\",\"message\":");
        out.extend_from_slice(&self.message);
        out.push(b'}');
    }
}

fn put_id(entry: Option<&Entry>, out: &mut Vec<u8>) {
    match entry {
        Some(entry) => {
            out.push(b'"');
            out.extend_from_slice(entry.id.as_bytes());
            out.push(b'"');
        }
        None => out.extend_from_slice(b"null"),
    }
}

/// Payload of `get_entries`: those after one, or all. `None`: there is no such entry.
pub(super) fn list(entries: &[Entry], since: Option<&str>) -> Option<Vec<u8>> {
    let from = match since {
        None => 0,
        Some(id) => entries.iter().position(|entry| entry.id == id)? + 1,
    };
    let mut out = b"{\"entries\":[".to_vec();
    for (index, entry) in entries.iter().enumerate().skip(from) {
        if index > from {
            out.push(b',');
        }
        entry.put(
            index.checked_sub(1).and_then(|before| entries.get(before)),
            &mut out,
        );
    }
    out.extend_from_slice(b"],\"leafId\":");
    put_id(entries.last(), &mut out);
    out.push(b'}');
    Some(out)
}

/// Payload of `get_tree`: one path.
pub(super) fn tree(entries: &[Entry]) -> Vec<u8> {
    let mut out = b"{\"tree\":[".to_vec();
    for (index, entry) in entries.iter().enumerate() {
        out.extend_from_slice(b"{\"entry\":");
        entry.put(
            index.checked_sub(1).and_then(|before| entries.get(before)),
            &mut out,
        );
        out.extend_from_slice(b",\"children\":[");
    }
    for _ in entries {
        out.extend_from_slice(b"]}");
    }
    out.extend_from_slice(b"],\"leafId\":");
    put_id(entries.last(), &mut out);
    out.push(b'}');
    out
}

/// Payload of `get_subagent_messages`.
pub(super) fn transcript(part: &Transcript, entries: &[Entry]) -> Vec<u8> {
    let mut out = b"{\"sessionFile\":".to_vec();
    json::write_str(&mut out, &part.file);
    for (name, number) in [
        (&b",\"fromByte\":"[..], part.from_byte),
        (b",\"nextByte\":", part.next_byte),
    ] {
        out.extend_from_slice(name);
        json::write_u64(&mut out, number);
    }
    out.extend_from_slice(if part.reset {
        b",\"reset\":true,\"entries\":["
    } else {
        b",\"reset\":false,\"entries\":["
    });
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        entry.put(
            index.checked_sub(1).and_then(|before| entries.get(before)),
            &mut out,
        );
    }
    out.extend_from_slice(b"],\"messages\":");
    put_messages(entries, &mut out);
    out.push(b'}');
    out
}

/// Payload of `get_messages`.
pub(super) fn messages(entries: &[Entry]) -> Vec<u8> {
    let mut out = b"{\"messages\":".to_vec();
    put_messages(entries, &mut out);
    out.push(b'}');
    out
}

fn put_messages(entries: &[Entry], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(&entry.message);
    }
    out.push(b']');
}

/// How many messages a page may have.
///
/// # Errors
/// The text of the failure.
pub(super) fn page_limit(limit: Any<'_>) -> Result<usize, &'static str> {
    const ERROR: &str = "RPC message page limit must be between 1 and 256";
    let Some(value) = limit.get() else {
        return Ok(PAGE);
    };
    let number = value
        .decode::<Num<'_>>()
        .ok()
        .and_then(|number| number.u64());
    let number = number.and_then(|number| usize::try_from(number).ok());
    number
        .filter(|number| (1..=MOST).contains(number))
        .ok_or(ERROR)
}

/// The history that pages are taken of: as long as it is the same, so are they.
#[derive(Clone, Copy, Debug)]
pub(super) struct Snapshot<'a> {
    pub(super) session: &'a str,
    /// The id of the last entry.
    pub(super) leaf: Option<&'a str>,
    /// How many entries there are.
    pub(super) count: usize,
}

/// Where a page begins.
///
/// # Errors
/// The text of the failure, and its code.
pub(super) fn page_start(
    cursor: Any<'_>,
    of: Snapshot<'_>,
) -> Result<usize, (&'static str, Option<&'static str>)> {
    const INVALID: (&str, Option<&str>) = ("Invalid RPC message cursor", None);
    const STALE: (&str, Option<&str>) = ("RPC message cursor is stale", Some("stale_cursor"));
    let Some(value) = cursor.get() else {
        return Ok(0);
    };
    let text = value
        .string()
        .filter(|text| text.len() <= CURSOR)
        .ok_or(INVALID)?;
    let json = cursor_decode(&text).ok_or(INVALID)?;
    let object = scan_value(&json, &HOST_RULES).map_err(|_| INVALID)?;
    let member = |name: &str| object.get(name);
    let number = |name: &str| member(name).and_then(Raw::u64);
    let (Some(1), Some(count), Some(offset)) =
        (number("version"), number("messageCount"), number("offset"))
    else {
        return Err(INVALID);
    };
    let leaf = member("leafId").map(|leaf| leaf.string().unwrap_or_default());
    let same = member("sessionId").and_then(Raw::string).as_deref() == Some(of.session)
        && count == of.count as u64
        && leaf.as_deref() == Some(of.leaf.unwrap_or_default());
    let offset = usize::try_from(offset)
        .ok()
        .filter(|offset| *offset < of.count.max(1));
    match offset {
        Some(offset) if same => Ok(offset),
        Some(_) | None => Err(STALE),
    }
}

/// Payload of `get_messages_page`: as many of `messages`, which begin at `from`, as fit on a page.
pub(super) fn page(
    of: Snapshot<'_>,
    from: usize,
    messages: impl Iterator<Item = Encoded>,
) -> Vec<u8> {
    let mut out = b"{\"messages\":[".to_vec();
    let mut bytes = 2;
    let mut next = from;
    for message in messages {
        bytes += message.len() + usize::from(next > from);
        if next > from {
            if bytes > PAGE_BYTES {
                break;
            }
            out.push(b',');
        }
        out.extend_from_slice(&message);
        next += 1;
    }
    out.push(b']');
    if next < of.count {
        let mut cursor = b"{\"version\":1,\"sessionId\":".to_vec();
        crate::json::write_str(&mut cursor, of.session);
        cursor.extend_from_slice(b",\"leafId\":");
        match of.leaf {
            Some(leaf) => crate::json::write_str(&mut cursor, leaf),
            None => cursor.extend_from_slice(b"null"),
        }
        let tail = format!(",\"messageCount\":{},\"offset\":{next}}}", of.count);
        cursor.extend_from_slice(tail.as_bytes());
        out.extend_from_slice(b",\"nextCursor\":");
        crate::json::write_str(&mut out, &Str::from(cursor_encode(&cursor)));
    }
    out.extend_from_slice(format!(",\"totalMessages\":{}}}", of.count).as_bytes());
    out
}

/// A time as an ISO 8601 string, in UTC.
fn iso(ms: u64) -> String {
    let (days, in_day) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = civil(days);
    let (hours, minutes) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (seconds, millis) = (in_day / 1_000 % 60, in_day % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
}

/// Year, month and day of a number of days since 1970, by counting in eras of 400 years that begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days.min(1 << 40) + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (year + era * 400 + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::CallId;
    use alloc::collections::BTreeSet;

    #[test]
    fn each_message_has_an_entry_of_its_own() {
        let mut seen = BTreeSet::new();
        assert!(seen.insert(entry_id(MessageId::MADE_SUMMARY)));
        for number in 1..5_000 {
            assert!(seen.insert(entry_id(MessageId(number))));
            assert!(seen.insert(entry_id(MessageId::of_result(CallId(number)))));
        }
        assert!(seen.iter().all(|id| id.len() == 8));
    }

    #[test]
    fn times_are_written_as_the_real_program_does() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_827_696_789, "2000-02-29T12:34:56.789Z"),
            (1_796_008_756_354, "2026-11-30T03:19:16.354Z"),
            (4_102_444_799_999, "2099-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(iso(ms), text);
        }
    }

    fn entries(count: u64, size: usize) -> Vec<Entry> {
        let message: Encoded = format!("\"{}\"", "x".repeat(size)).into_bytes().into();
        (1..=count)
            .map(|number| Entry {
                id: entry_id(MessageId(number)),
                at_ms: 0,
                message: message.clone(),
            })
            .collect()
    }

    fn next_of(page: &[u8]) -> Option<String> {
        let value = scan_value(page, &HOST_RULES).ok()?;
        Some(value.get("nextCursor")?.string()?.into_owned())
    }

    fn snapshot<'a>(session: &'a str, entries: &'a [Entry]) -> Snapshot<'a> {
        Snapshot {
            session,
            leaf: entries.last().map(|entry| entry.id.as_str()),
            count: entries.len(),
        }
    }

    fn page(entries: &[Entry], from: usize, limit: usize) -> Vec<u8> {
        let messages = entries.iter().skip(from).take(limit);
        let messages = messages.map(|entry| entry.message.clone());
        super::page(snapshot("s", entries), from, messages)
    }

    #[test]
    fn omp_10_pages_follow_each_other_and_become_stale() {
        let all = entries(250, 10);
        let mut from = 0;
        let mut pages = 0;
        loop {
            let text = page(&all, from, 100);
            pages += 1;
            let Some(cursor) = next_of(&text) else { break };
            let mut quoted = Vec::new();
            crate::json::write_str(&mut quoted, &cursor);
            let quoted = String::from_utf8(quoted).unwrap_or_default();
            let cursor = Any(scan_value(quoted.as_bytes(), &HOST_RULES).ok());
            assert_eq!(
                page_start(cursor, snapshot("other", &all)).map_err(|fault| fault.1),
                Err(Some("stale_cursor"))
            );
            assert_eq!(
                page_start(cursor, snapshot("s", &entries(251, 10))).map_err(|fault| fault.1),
                Err(Some("stale_cursor"))
            );
            from = page_start(cursor, snapshot("s", &all)).unwrap_or_default();
        }
        assert_eq!((pages, from), (3, 200));
        // Large messages make short pages, of one at least.
        assert!(next_of(&page(&entries(2, PAGE_BYTES), 0, 100)).is_some());
        assert!(next_of(&page(&entries(2, PAGE_BYTES / 2 - 10), 0, 100)).is_none());
    }

    #[test]
    fn omp_10_limits_are_1_to_256() {
        let limit =
            |text: &'static str| page_limit(Any(scan_value(text.as_bytes(), &HOST_RULES).ok()));
        assert_eq!(page_limit(Any::ABSENT), Ok(100));
        assert_eq!(
            (limit("1"), limit("256"), limit("2.0")),
            (Ok(1), Ok(256), Ok(2))
        );
        for bad in ["0", "257", "1.5", "-1", "\"1\"", "null"] {
            assert!(limit(bad).is_err(), "{bad}");
        }
    }
}
