//! What a server writes to its standard error: it is logged, and the last of it explains its end.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};
use turnwire::frame::{LineRules, LineSplitter, OverLong, Split, SplitKind, Tail};
use turnwire_io::process::Exit;

/// Lines that are kept.
const LINES: usize = 4;
/// Characters of a line that are kept.
const WIDTH: usize = 300;

const RULES: LineRules = LineRules {
    max_bytes: 16 * 1024,
    over: OverLong::Skip,
    tail: Tail::Deliver,
};

/// The last lines.
#[derive(Debug, Default)]
pub(super) struct LastWords(Mutex<VecDeque<String>>);

impl LastWords {
    fn add(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Why a server ended, with its exit and what it said last.
    pub(super) fn behind(&self, why: &str, exit: Option<Exit>) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = why.to_owned();
        let mut add = |more: String| {
            if !text.is_empty() {
                text.push_str("; ");
            }
            text.push_str(&more);
        };
        match exit {
            Some(Exit::Code(code)) => add(format!("it ended with exit code {code}")),
            Some(Exit::Signal(signal)) => add(format!("signal {signal} ended it")),
            None => {}
        }
        if !lines.is_empty() {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            add(format!("it said last: {}", lines.join(" / ")));
        }
        text
    }
}

/// Reads to the end.
pub(super) async fn read(stderr: Option<impl AsyncRead + Unpin>, server: &str, words: &LastWords) {
    if let Some(mut stderr) = stderr {
        let mut splitter = LineSplitter::new(RULES);
        let mut buffer = vec![0; 4 * 1024];
        loop {
            let n = stderr.read(&mut buffer).await.unwrap_or(0);
            if n == 0 {
                break;
            }
            let mut rest = buffer.get(..n).unwrap_or_default();
            while let Some(split) = splitter.next(&mut rest) {
                hear(&split, server, words);
            }
        }
        if let Some(split) = splitter.finish() {
            hear(&split, server, words);
        }
    }
}

fn hear(split: &Split<'_>, server: &str, words: &LastWords) {
    let bytes = match split.what {
        SplitKind::Line(bytes) | SplitKind::Tail(bytes) => bytes,
        SplitKind::TooLong { bytes, .. } => {
            tracing::info!(server, bytes, "a line that is too long");
            return;
        }
    };
    let line: String = String::from_utf8_lossy(bytes)
        .chars()
        // Escapes for a terminal are no business of a log's.
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(WIDTH)
        .collect();
    let line = line.trim();
    if !line.is_empty() {
        tracing::info!(server, "{line}");
        words.add(line.to_owned());
    }
}
