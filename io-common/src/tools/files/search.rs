//! `search`: lines that match a regular expression, in files that git wouldn't ignore.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use globset::{GlobBuilder, GlobMatcher};
use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use ignore::WalkBuilder;

use super::super::input;
use super::super::outcome::{Failed, Finished};
use super::super::text::front;
use super::{io_failed, list::printable, path::Root};

/// Matching lines shown.
const SHOWN: u64 = 200;
/// Bytes of a matching line that are shown.
const LINE_BYTES: usize = 400;
/// Longest line in bytes that is searched; a file with a longer one is skipped from there on.
const HEAP: usize = 32 * 1024 * 1024;
/// Time after which the search stops and says so.
const PATIENCE: Duration = Duration::from_secs(30);

/// Searches; the text has at most about `max` bytes.
pub(crate) fn run(
    root: &Root,
    args: &input::Search,
    max: usize,
    stop: &dyn Fn() -> bool,
) -> Result<Finished, Failed> {
    let matcher = matcher(args)?;
    let glob = args
        .glob
        .as_deref()
        .filter(|g| !g.is_empty())
        .map(glob)
        .transpose()?;
    let place = root.resolve(
        args.path
            .as_deref()
            .filter(|p| !p.is_empty())
            .unwrap_or("."),
    )?;
    std::fs::metadata(&place.real).map_err(|e| io_failed("search", &place.shown, &e))?;

    let mut searcher = SearcherBuilder::new()
        // As the matcher's: `$` holds before CRLF and before LF.
        .line_terminator(LineTerminator::crlf())
        .line_number(true)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(HEAP))
        .build();
    let until = Instant::now() + PATIENCE;
    let mut tally = Tally {
        max,
        ..Tally::default()
    };
    let walk = WalkBuilder::new(&place.real)
        .hidden(false)
        .follow_links(false)
        .require_git(false)
        .sort_by_file_path(Path::cmp)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    for entry in walk {
        if stop() {
            return Ok(Finished::cancelled());
        }
        if Instant::now() > until {
            tally.late = true;
            break;
        }
        let Ok(entry) = entry else {
            tally.unread += 1;
            continue;
        };
        if !entry.file_type().is_some_and(|t| t.is_file()) {
            continue;
        }
        let shown = root.show(entry.path());
        if glob
            .as_ref()
            .is_some_and(|g| !g.is_match(&shown, entry.path()))
        {
            continue;
        }
        let before = tally.mark();
        let mut hits = Hits {
            shown: printable(&shown),
            matcher: &matcher,
            tally: &mut tally,
            left_out: false,
            binary: false,
            until,
            stop,
        };
        let result = searcher.search_path(&matcher, entry.path(), &mut hits);
        if hits.binary {
            // It began like text: what matched there isn't shown.
            tally.back_to(before);
            tally.binary += 1;
        } else if result.is_err() {
            tally.unread += 1;
        }
    }
    if stop() {
        return Ok(Finished::cancelled());
    }
    Ok(tally.finish())
}

fn matcher(args: &input::Search) -> Result<RegexMatcher, Failed> {
    if args.pattern.is_empty() {
        return Err(Failed("the pattern is empty".into()));
    }
    RegexMatcherBuilder::new()
        .case_insensitive(args.ignore_case)
        .fixed_strings(args.literal)
        // The matcher sees whole buffers: `^` and `$` are to hold at each line.
        .multi_line(true)
        .crlf(true)
        .build(&args.pattern)
        .map_err(|e| Failed(format!("the pattern is no valid regular expression: {e}")))
}

/// A glob over file names, or over paths below the root if it has a `/`.
struct Glob {
    matcher: GlobMatcher,
    by_path: bool,
}

fn glob(text: &str) -> Result<Glob, Failed> {
    let by_path = text.contains('/');
    let matcher = GlobBuilder::new(text.trim_start_matches("./").trim_start_matches('/'))
        .literal_separator(true)
        .build()
        .map_err(|e| Failed(format!("the glob is not valid: {e}")))?
        .compile_matcher();
    Ok(Glob { matcher, by_path })
}

impl Glob {
    fn is_match(&self, shown: &str, path: &Path) -> bool {
        if self.by_path {
            self.matcher.is_match(shown)
        } else {
            path.file_name().is_some_and(|n| self.matcher.is_match(n))
        }
    }
}

/// What was found so far.
#[derive(Default)]
struct Tally {
    max: usize,
    text: String,
    shown: u64,
    left_out: u64,
    left_out_files: u64,
    binary: u64,
    unread: u64,
    late: bool,
}

impl Tally {
    /// Where it stands, to go back to.
    fn mark(&self) -> (usize, u64, u64, u64) {
        (
            self.text.len(),
            self.shown,
            self.left_out,
            self.left_out_files,
        )
    }

    fn back_to(&mut self, (text, shown, left_out, left_out_files): (usize, u64, u64, u64)) {
        self.text.truncate(text);
        (self.shown, self.left_out, self.left_out_files) = (shown, left_out, left_out_files);
    }

    fn finish(self) -> Finished {
        let mut text = self.text;
        if self.shown == 0 {
            text.push_str("no matches\n");
        }
        if self.left_out > 0 {
            let Self {
                left_out,
                left_out_files,
                ..
            } = self;
            let _ = writeln!(
                text,
                "[... {left_out} more matching lines in {left_out_files} files left out ...]"
            );
        }
        if self.binary > 0 {
            let _ = writeln!(text, "[binary files not searched: {}]", self.binary);
        }
        if self.unread > 0 {
            let _ = writeln!(text, "[files that could not be read: {}]", self.unread);
        }
        if self.late {
            let _ = writeln!(
                text,
                "[stopped after {} seconds; not everything was searched]",
                PATIENCE.as_secs()
            );
        }
        if self.shown == 0 {
            text.truncate(text.trim_end().len());
        }
        let mut finished = Finished::ok(text);
        finished.truncated = self.left_out > 0 || self.late;
        finished
            .meta
            .push(("matches", (self.shown + self.left_out).to_string()));
        finished
    }
}

/// The matches of one file.
struct Hits<'a> {
    shown: String,
    matcher: &'a RegexMatcher,
    tally: &'a mut Tally,
    /// Whether a match of this file was left out.
    left_out: bool,
    /// Whether the file turned out to be binary.
    binary: bool,
    until: Instant,
    stop: &'a dyn Fn() -> bool,
}

impl Sink for Hits<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        let tally = &mut *self.tally;
        let number = found.line_number().unwrap_or(0);
        let line = window(found.bytes().trim_ascii_end(), self.matcher);
        let fits = tally.text.len() + self.shown.len() + line.len() + 16 <= tally.max;
        if tally.left_out == 0 && tally.shown < SHOWN && fits {
            let _ = writeln!(tally.text, "{}:{number}: {line}", self.shown);
            tally.shown += 1;
        } else {
            tally.left_out += 1;
            if !self.left_out {
                self.left_out = true;
                tally.left_out_files += 1;
            }
        }
        Ok(Instant::now() <= self.until && !(self.stop)())
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, Self::Error> {
        self.binary = true;
        Ok(false)
    }
}

/// A long line is shown from a little before its first match.
fn window(line: &[u8], matcher: &RegexMatcher) -> String {
    let text = String::from_utf8_lossy(line);
    if text.len() <= LINE_BYTES {
        return text.into_owned();
    }
    let at = matcher
        .find(line)
        .ok()
        .flatten()
        .map_or(0, |found| found.start());
    let from = if at < LINE_BYTES / 2 {
        0
    } else {
        at - LINE_BYTES / 4
    };
    let skipped = String::from_utf8_lossy(line.get(..from).unwrap_or_default()).len();
    let skipped = front(&text, skipped).len();
    let rest = text.split_at(skipped).1;
    let shown = front(rest, LINE_BYTES);
    let (before, after) = (
        if skipped > 0 { "... " } else { "" },
        if shown.len() < rest.len() { " ..." } else { "" },
    );
    format!("{before}{shown}{after}")
}
