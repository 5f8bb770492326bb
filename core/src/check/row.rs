//! The rows of a recording.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::base64;
use crate::json::{self, Duplicates, LoneSurrogates, Members, Raw, ScanRules};
use crate::protocol::observer::Dir;

/// A row may hold anything that a line did.
const RULES: ScanRules = ScanRules {
    lone_surrogates: LoneSurrogates::Replace,
    duplicates: Duplicates::Pass,
    ..ScanRules::STRICT
};

/// What a row says.
pub(super) enum Row<'a> {
    /// What one side wrote: a line, or several.
    Line { dir: Dir, text: Cow<'a, [u8]> },
    /// A line of this length, whose content wasn't kept.
    Long { dir: Dir, bytes: u64 },
    /// The host's input was closed.
    HostEnd,
    /// The process has ended.
    Exit { code: i64 },
    /// Metadata.
    Other,
}

/// Whether the first line of a file is a row: it has a `dir`, or is nothing but `meta`, and has no tag of a line.
pub(super) fn is_row(line: &[u8], members: &mut Members) -> bool {
    json::scan(line, &RULES, members).is_ok_and(|object| {
        let is_meta = object.len() == 1 && object.get("meta").is_some();
        (is_meta || object.get("dir").and_then(Raw::string).is_some())
            && ["cmd", "type", "command", "event"]
                .iter()
                .all(|tag| object.get(tag).is_none())
    })
}

impl<'a> Row<'a> {
    pub(super) fn read(bytes: &'a [u8], members: &mut Members) -> Result<Self, String> {
        let object = json::scan(bytes, &RULES, members).map_err(|fault| fault.to_string())?;
        let dir = match object.get("dir").and_then(Raw::string) {
            Some(dir) => dir,
            None if object.get("meta").is_some() => return Ok(Row::Other),
            None => return Err("the row has no dir".into()),
        };
        let dir = match &*dir {
            "in" => Dir::Host,
            "out" => Dir::Agent,
            "exit" => {
                let code = object
                    .get("code")
                    .and_then(|code| code.as_str().parse().ok());
                return Ok(code.map_or(Row::Other, |code| Row::Exit { code }));
            }
            "note" => return Ok(object.string("line").map_or(Row::Other, |it| noted(&it))),
            _ => return Ok(Row::Other),
        };
        if let Some(text) = object.get("line_b64") {
            let text = text.string().ok_or("line_b64 isn't a string")?;
            let mut bytes = Vec::new();
            base64::decode_lax(&text, &mut bytes).ok_or("line_b64 isn't base64")?;
            return Ok(Row::Line {
                dir,
                text: bytes.into(),
            });
        }
        let exit = object
            .get("exit")
            .and_then(|code| code.as_str().parse().ok());
        if let Some(code) = exit
            && dir == Dir::Agent
        {
            return Ok(Row::Exit { code });
        }
        if dir == Dir::Host && object.get("eof").and_then(Raw::bool) == Some(true) {
            return Ok(Row::HostEnd);
        }
        if let Some(bytes) = object.get("bytes").and_then(Raw::u64)
            && (dir == Dir::Host || object.get("line").is_none())
        {
            // The length is told with its newline.
            return Ok(Row::Long {
                dir,
                bytes: bytes.saturating_sub(1),
            });
        }
        let text = object
            .get("line")
            .and_then(Raw::string)
            .ok_or_else(|| format!("the row of dir {} has no line", dir.word()))?;
        Ok(Row::Line {
            dir,
            text: match text {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            },
        })
    }
}

/// What a recorder noted of the process, in words.
fn noted(note: &str) -> Row<'static> {
    if note == "stdin closed" {
        return Row::HostEnd;
    }
    let code = note.strip_prefix("exit status ").map(|rest| {
        let end = rest.find(|char: char| !char.is_ascii_digit());
        rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
    });
    match code.and_then(|code| code.parse().ok()) {
        Some(code) => Row::Exit { code },
        None => Row::Other,
    }
}
