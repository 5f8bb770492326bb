//! `edit_file`: replaces one text of a file by another.
//!
//! Works on bytes, so that everything around the edit stays as it is: a byte order mark, line endings,
//! bytes that are no UTF-8.

use std::borrow::Cow;

use memchr::memmem;

use super::super::input;
use super::super::outcome::{Failed, Finished};
use super::path::Root;
use super::write::{changed, replace};
use super::{WHOLE_FILE, diff, io_failed, looks_binary, regular};

/// Line numbers named when a text stands in several places.
const NAMED: usize = 8;

/// Edits the file; `max` bounds the diff.
pub(crate) fn run(root: &Root, args: &input::EditFile, max: usize) -> Result<Finished, Failed> {
    let place = root.resolve(&args.path)?;
    let shown = &place.shown;
    let meta = regular(&place)?;
    if args.old_string.is_empty() {
        return Err(Failed(
            "old_string is empty; a whole file is written with the tool for that".into(),
        ));
    }
    if args.old_string == args.new_string {
        return Err(Failed("old_string and new_string are the same".into()));
    }
    if meta.len() > WHOLE_FILE {
        return Err(Failed(format!(
            "{shown} is too large to edit ({} bytes, at most {WHOLE_FILE})",
            meta.len()
        )));
    }
    let file = std::fs::read(&place.real).map_err(|e| io_failed("read", shown, &e))?;
    if looks_binary(&file) {
        return Err(Failed(format!(
            "{shown} is a binary file; it can't be edited as text"
        )));
    }
    let edited = edit(&file, &args.old_string, &args.new_string, args.replace_all)
        .map_err(|fault| Failed(fault.describe(shown)))?;
    let change = diff::change(shown, Some(&file), &edited, max);
    replace(&place, Some(&meta), &edited)?;
    Ok(changed("edited", change))
}

/// Why an edit doesn't apply.
#[derive(Debug, PartialEq, Eq)]
enum EditFault {
    /// The text isn't there; perhaps a line from which on it is, but for spaces.
    NotFound { like: Option<usize> },
    /// It is there several times.
    Several { times: usize, lines: Vec<usize> },
    /// It is there, but nothing would change (line endings are kept).
    Nothing,
}

impl EditFault {
    fn describe(&self, shown: &str) -> String {
        match self {
            Self::NotFound { like: None } => format!(
                "old_string was not found in {shown}; read the file and copy the text exactly"
            ),
            Self::NotFound { like: Some(line) } => format!(
                "old_string was not found in {shown}; the text at line {line} differs only in spaces, copy it exactly"
            ),
            Self::Several { times, lines } => {
                let named: Vec<String> = lines.iter().map(usize::to_string).collect();
                let more = if *times > lines.len() { ", ..." } else { "" };
                format!(
                    "old_string stands {times} times in {shown} (lines {}{more}); add lines around it to make it unique, or set replace_all",
                    named.join(", ")
                )
            }
            Self::Nothing => format!("the edit would not change {shown}"),
        }
    }
}

/// The file's bytes after the edit.
fn edit(file: &[u8], old: &str, new: &str, all: bool) -> Result<Vec<u8>, EditFault> {
    let (mut old, mut new) = (Cow::Borrowed(old), Cow::Borrowed(new));
    // Models write LF. In a file of CRLF lines it means CRLF; in a mixed one, where the text is found so.
    let (all_crlf, some_crlf) = endings(file);
    let found = |old: &str| memmem::find(file, old.as_bytes()).is_some();
    if all_crlf || (some_crlf && !found(&old) && found(&to_crlf(&old))) {
        (old, new) = (
            to_crlf(&old).into_owned().into(),
            to_crlf(&new).into_owned().into(),
        );
    }
    let (old, new) = (old.as_bytes(), new.as_bytes());

    let Some(first) = memmem::find(file, old) else {
        return Err(EditFault::NotFound {
            like: alike(file, old),
        });
    };
    if !all && let Some(second) = find_from(file, old, first + 1) {
        return Err(several(file, old, first, second));
    }
    if old == new {
        return Err(EditFault::Nothing);
    }
    let mut edited = Vec::with_capacity(file.len() + new.len());
    let mut rest = 0;
    for at in memmem::find_iter(file, old) {
        edited.extend_from_slice(file.get(rest..at).unwrap_or_default());
        edited.extend_from_slice(new);
        rest = at + old.len();
    }
    edited.extend_from_slice(file.get(rest..).unwrap_or_default());
    Ok(edited)
}

/// Whether every line ends with CRLF (there is at least one), and whether any does.
fn endings(file: &[u8]) -> (bool, bool) {
    let lf = memchr::memchr_iter(b'\n', file).count();
    let crlf = memmem::find_iter(file, b"\r\n").count();
    (crlf > 0 && lf == crlf, crlf > 0)
}

/// The text with each lone LF as CRLF.
fn to_crlf(text: &str) -> Cow<'_, str> {
    if text.contains('\n') {
        text.replace("\r\n", "\n").replace('\n', "\r\n").into()
    } else {
        text.into()
    }
}

/// The next place at or behind `from`. One that overlaps the last is a place too: `aa` in `aaa` is not unique.
fn find_from(file: &[u8], old: &[u8], from: usize) -> Option<usize> {
    file.get(from..)
        .and_then(|rest| memmem::find(rest, old))
        .map(|at| from + at)
}

/// Where the text stands, told without overlaps unless there are only those.
fn several(file: &[u8], old: &[u8], first: usize, second: usize) -> EditFault {
    let times = memmem::find_iter(file, old).count();
    let places: Vec<usize> = if times > 1 {
        memmem::find_iter(file, old).take(NAMED).collect()
    } else {
        vec![first, second]
    };
    let lines = places.iter().map(|&at| line_at(file, at)).collect();
    EditFault::Several {
        times: times.max(2),
        lines,
    }
}

/// The number of the line, from 1, that byte `at` is in.
fn line_at(file: &[u8], at: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', file.get(..at).unwrap_or(file)).count()
}

/// The first line from which on the file has the same lines as `old`, but for spaces at their ends.
fn alike(file: &[u8], old: &[u8]) -> Option<usize> {
    let want: Vec<&[u8]> = old
        .trim_ascii()
        .split(|&b| b == b'\n')
        .map(<[u8]>::trim_ascii)
        .collect();
    if want.iter().all(|line| line.is_empty()) {
        return None;
    }
    let lines: Vec<&[u8]> = file
        .split(|&b| b == b'\n')
        .map(<[u8]>::trim_ascii)
        .collect();
    lines
        .windows(want.len())
        .position(|window| window == want)
        .map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(file: &[u8], old: &str, new: &str, all: bool) -> String {
        String::from_utf8(edit(file, old, new, all).expect("applies")).expect("utf-8")
    }

    #[test]
    fn exactly_one_match_is_replaced() {
        assert_eq!(ok(b"a b c", "b", "x", false), "a x c");
        assert_eq!(ok(b"a b a", "a", "", true), " b ");
        let several = edit(b"x\na\n\na a\n", "a", "b", false).expect_err("several");
        assert_eq!(
            several,
            EditFault::Several {
                times: 3,
                lines: vec![2, 4, 4]
            }
        );
        assert_eq!(
            edit(b"x", "y", "z", true),
            Err(EditFault::NotFound { like: None })
        );
    }

    #[test]
    fn overlapping_matches_are_not_unique() {
        assert_eq!(
            edit(b"aaa", "aa", "b", false),
            Err(EditFault::Several {
                times: 2,
                lines: vec![1, 1]
            })
        );
        assert_eq!(ok(b"aaaa", "aa", "b", true), "bb");
    }

    #[test]
    fn line_endings_and_the_mark_stay() {
        assert_eq!(
            ok(b"\xef\xbb\xbfa\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false),
            "\u{feff}x\r\ny\r\nz\r\nc\r\n"
        );
        // A new line put into a CRLF file by an edit of one line ends like the others.
        assert_eq!(ok(b"a\r\nb\r\n", "a", "a\nq", false), "a\r\nq\r\nb\r\n");
        assert_eq!(ok(b"a\r\nb\r\n", "a\r\nb", "c\r\nd", false), "c\r\nd\r\n");
        // Mixed: as found.
        assert_eq!(ok(b"a\r\nb\nc\n", "a\nb", "x\ny", false), "x\r\ny\nc\n");
        assert_eq!(ok(b"a\r\nb\nc\n", "b\nc", "x\ny", false), "a\r\nx\ny\n");
        assert_eq!(
            edit(b"a\r\nb\r\n", "a\nb", "a\r\nb", false),
            Err(EditFault::Nothing)
        );
    }

    #[test]
    fn bytes_around_that_are_no_utf8_stay() {
        assert_eq!(
            edit(b"\xff old \xfe", "old", "new", false),
            Ok(b"\xff new \xfe".to_vec())
        );
    }

    #[test]
    fn a_text_that_differs_in_spaces_is_hinted_at() {
        let fault = edit(b"fn f() {\n\tlet a = 1;\n}\n", "    let a = 1;", "x", false)
            .expect_err("not there");
        assert_eq!(fault, EditFault::NotFound { like: Some(2) });
        assert_eq!(
            edit(b"a\n\nb\n", "\n \n", "x", false),
            Err(EditFault::NotFound { like: None })
        );
    }
}
