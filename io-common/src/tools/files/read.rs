//! `read_file`: numbered lines of a text file, in bounded memory.

use std::fs::File;
use std::io::{BufRead, BufReader};

use super::super::input;
use super::super::outcome::{Failed, Finished};
use super::super::text::front;
use super::{io_failed, looks_binary, path::Root, regular};

/// Lines shown if the model asks for no number.
pub(crate) const DEFAULT_LINES: u64 = 2000;
/// Bytes of a line that are shown; longer ones are cut and marked.
const LINE_BYTES: usize = 8 * 1024;
/// Bytes looked at behind the last shown line to say how many lines follow.
const COUNT_BYTES: u64 = 64 * 1024 * 1024;

/// Reads lines; the text has at most about `max` bytes.
pub(crate) fn run(
    root: &Root,
    args: &input::ReadFile,
    max: usize,
    stop: &dyn Fn() -> bool,
) -> Result<Finished, Failed> {
    let place = root.resolve(&args.path)?;
    let size = regular(&place)?.len();
    let shown = &place.shown;
    let failed = |e: std::io::Error| io_failed("read", shown, &e);
    let mut reader = BufReader::with_capacity(64 * 1024, File::open(&place.real).map_err(failed)?);
    let bom = {
        let first = reader.fill_buf().map_err(failed)?;
        if looks_binary(first) {
            return Err(Failed(format!(
                "{shown} is a binary file ({size} bytes); it isn't shown"
            )));
        }
        first.starts_with(b"\xef\xbb\xbf")
    };
    if bom {
        reader.seek_relative(3).map_err(failed)?;
    }

    let start = args.offset.unwrap_or(1).max(1);
    let limit = args.limit.unwrap_or(DEFAULT_LINES).max(1);
    let mut page = Page {
        text: String::new(),
        invalid: false,
        cut: false,
    };
    let mut number = 0_u64;
    let mut next = None; // the first line behind the page
    let mut line = Line::default();
    while next.is_none() && line.read(&mut reader).map_err(failed)? {
        number += 1;
        if number < start {
            if number.is_multiple_of(4096) && stop() {
                return Ok(Finished::cancelled());
            }
        } else if number - start >= limit || !page.add(number, &line, max) {
            next = Some(number);
        }
    }
    if number == 0 {
        return Ok(Finished::ok("[empty file]"));
    }
    if page.text.is_empty() {
        return Err(Failed(format!(
            "offset {start} is past the end: {shown} has {}",
            lines(number)
        )));
    }
    let mut finished = Finished::ok("");
    if let Some(next) = next {
        let (more, all) = count(&mut reader, stop).map_err(failed)?;
        let of = number + more;
        let least = if all { "" } else { "at least " };
        page.text.push_str(&format!(
            "[lines {start} to {} of {least}{of}; continue with offset {next}]\n",
            next - 1
        ));
        finished.meta.push(("lines", of.to_string()));
    }
    finished.truncated = page.cut || next.is_some();
    if page.invalid {
        finished.meta.push(("invalid_utf8", "true".into()));
    }
    finished.text = page.text;
    Ok(finished)
}

fn lines(n: u64) -> String {
    if n == 1 {
        "1 line".into()
    } else {
        format!("{n} lines")
    }
}

struct Page {
    text: String,
    invalid: bool,
    cut: bool,
}

impl Page {
    /// Adds a line unless the page is full; the first always fits.
    fn add(&mut self, number: u64, line: &Line, max: usize) -> bool {
        let bytes = line
            .kept
            .strip_suffix(b"\r")
            .filter(|_| line.ended && line.over == 0)
            .unwrap_or(&line.kept);
        let decoded = String::from_utf8_lossy(bytes);
        // A cut may have split the last character: then it counts as left out.
        let (shown, over) = if line.over > 0 {
            let shown = front(&decoded, LINE_BYTES).trim_end_matches(char::REPLACEMENT_CHARACTER);
            (
                shown,
                line.over + bytes.len().saturating_sub(shown.len()) as u64,
            )
        } else {
            (&*decoded, 0)
        };
        if !self.text.is_empty() && self.text.len() + shown.len() + 8 > max {
            return false;
        }
        self.invalid |= over == 0 && std::str::from_utf8(bytes).is_err();
        self.text.push_str(&format!("{number:>5} {shown}"));
        if over > 0 {
            self.cut = true;
            self.text
                .push_str(&format!(" [... {over} bytes left out ...]"));
        }
        self.text.push('\n');
        true
    }
}

/// One line, of which only the front is kept.
#[derive(Default)]
struct Line {
    kept: Vec<u8>,
    /// Bytes of the line that weren't kept.
    over: u64,
    /// Whether it ended with a newline.
    ended: bool,
}

impl Line {
    /// Reads the next line; false at the end of the file.
    fn read(&mut self, reader: &mut impl BufRead) -> std::io::Result<bool> {
        self.kept.clear();
        self.over = 0;
        self.ended = false;
        let mut any = false;
        while !self.ended {
            let chunk = reader.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            any = true;
            let newline = memchr::memchr(b'\n', chunk);
            let content = chunk
                .get(..newline.unwrap_or(chunk.len()))
                .unwrap_or_default();
            let (keep, over) = content.split_at(content.len().min(LINE_BYTES - self.kept.len()));
            self.kept.extend_from_slice(keep);
            self.over += over.len() as u64;
            self.ended = newline.is_some();
            let used = content.len() + usize::from(self.ended);
            reader.consume(used);
        }
        Ok(any)
    }
}

/// Counts the lines that follow; whether all of them were seen.
fn count(reader: &mut impl BufRead, stop: &dyn Fn() -> bool) -> std::io::Result<(u64, bool)> {
    let (mut lines, mut seen, mut open) = (0, 0_u64, false);
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            return Ok((lines + u64::from(open), true));
        }
        lines += memchr::memchr_iter(b'\n', chunk).count() as u64;
        open = chunk.last() != Some(&b'\n');
        let len = chunk.len();
        seen += len as u64;
        reader.consume(len);
        if seen > COUNT_BYTES || stop() {
            return Ok((lines, false));
        }
    }
}
