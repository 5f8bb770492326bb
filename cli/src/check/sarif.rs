//! Findings for code scanners: one SARIF 2.1.0 log of one run, whatever the number of files.
//!
//! It is written as it is found, so that a log of any length takes no memory; what isn't a result comes at its end.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use turnwire::check::{Checked, Summary};
use turnwire::frame::Place;
use turnwire::protocol::observer::{Finding, Rule, Severity};
use url::Url;

use crate::object::Members;

/// The id of what is no rule of a contract: a row of a recording that can't be read.
const ROW: &str = "recording-row";

/// A log that is being written.
pub struct Log {
    rules: &'static [Rule],
    /// The file that is being read, as a reference.
    uri: String,
    any: bool,
    /// What is said of the run at its end, as SARIF's notifications: rules that weren't judged, and files that
    /// couldn't be read.
    settings: Vec<Notice>,
    failures: Vec<Notice>,
}

struct Notice {
    uri: String,
    rule: Option<&'static str>,
    text: String,
}

impl Log {
    /// The head of a log.
    pub fn begin(rules: &'static [Rule], out: &mut Vec<u8>) -> Log {
        out.extend_from_slice(
            b"{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"version\":\"2.1.0\",\"runs\":[",
        );
        let mut run = Members::begin(out);
        let mut tool = run.object("tool");
        let mut driver = tool.object("driver");
        driver.text("name", "turnwire");
        driver.text("version", env!("CARGO_PKG_VERSION"));
        driver.list("rules", rules, put_rule);
        driver.end();
        tool.end();
        run.text("columnKind", "unicodeCodePoints");
        out.extend_from_slice(b",\"results\":[");
        Log {
            rules,
            uri: String::new(),
            any: false,
            settings: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Goes on with this file.
    pub fn file(&mut self, path: &Path) {
        self.uri = uri(path);
    }

    pub fn put(&mut self, checked: &Checked<'_>, out: &mut Vec<u8>) {
        match checked {
            Checked::Line { .. } => {}
            Checked::BadRow { place, why } => {
                let mut result = self.result(ROW, Severity::Error, why, out);
                let uri = &self.uri;
                result.list("locations", &[*place], |place, out| {
                    let mut location = Members::begin(out);
                    put_physical(&mut location, uri, Some((*place, None)));
                    location.end();
                });
                result.end();
            }
            Checked::Finding {
                finding,
                line,
                in_row,
            } => self.finding(finding, line.filter(|_| !in_row), out),
        }
    }

    /// `line`: the text of its line, if that is what stands in the file.
    fn finding(&mut self, finding: &Finding, line: Option<&[u8]>, out: &mut Vec<u8>) {
        let Finding { rule, severity, .. } = finding;
        let mut result = self.result(rule.id, *severity, &finding.message, out);
        if let Some(index) = self.rules.iter().position(|known| known.id == rule.id) {
            result.number("ruleIndex", index as u64);
        }
        let uri = &self.uri;
        result.list("locations", &[finding], |finding, out| {
            let mut location = Members::begin(out);
            let columns = line.and_then(|line| columns(line, &finding.span));
            let place = finding.place.map(|place| (place, columns));
            put_physical(&mut location, uri, place);
            if !finding.pointer.is_empty() {
                location.list("logicalLocations", &[&finding.pointer], |pointer, out| {
                    let mut logical = Members::begin(out);
                    logical.text("fullyQualifiedName", pointer);
                    logical.text("kind", "member");
                    logical.end();
                });
            }
            location.end();
        });
        if !finding.related.is_empty() {
            result.list("relatedLocations", &finding.related, |related, out| {
                let mut location = Members::begin(out);
                put_text(&mut location, "message", related.what);
                put_physical(&mut location, uri, Some((related.place, None)));
                location.end();
            });
        }
        let mut properties = result.object("properties");
        properties.text("dir", finding.dir.word());
        properties.end();
        result.end();
    }

    fn result<'o>(
        &mut self,
        rule: &str,
        severity: Severity,
        text: &str,
        out: &'o mut Vec<u8>,
    ) -> Members<'o> {
        out.extend_from_slice(if self.any { b",\n" } else { b"\n" });
        self.any = true;
        let mut result = Members::begin(out);
        result.text("ruleId", rule);
        result.text("level", level(severity));
        put_text(&mut result, "message", text);
        result
    }

    /// The end of a file.
    pub fn summary(&mut self, summary: &Summary) {
        for (rule, why) in &summary.skipped {
            self.settings.push(Notice {
                uri: self.uri.clone(),
                rule: Some(rule.id),
                text: format!("not judged: {why}"),
            });
        }
    }

    /// The file can't be read, or not to its end.
    pub fn failed(&mut self, why: &str) {
        self.failures.push(Notice {
            uri: self.uri.clone(),
            rule: None,
            text: why.to_owned(),
        });
    }

    /// The rest of the log. `code`: what the program ends with.
    pub fn end(&self, code: u8, out: &mut Vec<u8>) {
        out.extend_from_slice(b"],\"invocations\":[");
        let mut invocation = Members::begin(out);
        invocation.bool("executionSuccessful", self.failures.is_empty());
        invocation.number("exitCode", u64::from(code));
        invocation.list(
            "toolExecutionNotifications",
            &self.failures,
            |notice, out| {
                put_notice(notice, "error", out);
            },
        );
        invocation.list(
            "toolConfigurationNotifications",
            &self.settings,
            |notice, out| put_notice(notice, "note", out),
        );
        invocation.end();
        out.extend_from_slice(b"]}]}\n");
    }
}

fn put_rule(rule: &Rule, out: &mut Vec<u8>) {
    let mut object = Members::begin(out);
    object.text("id", rule.id);
    put_text(&mut object, "shortDescription", rule.title);
    put_text(&mut object, "fullDescription", rule.message);
    put_text(&mut object, "help", &format!("See {}.", rule.cite));
    let mut settings = object.object("defaultConfiguration");
    settings.text("level", level(rule.severity));
    settings.end();
    object.end();
}

fn put_notice(notice: &Notice, level: &str, out: &mut Vec<u8>) {
    let mut object = Members::begin(out);
    object.text("level", level);
    put_text(&mut object, "message", &notice.text);
    if let Some(rule) = notice.rule {
        let mut which = object.object("associatedRule");
        which.text("id", rule);
        which.end();
    }
    object.list("locations", &[&notice.uri], |uri, out| {
        let mut location = Members::begin(out);
        put_physical(&mut location, uri, None);
        location.end();
    });
    object.end();
}

/// SARIF wraps each text in an object.
fn put_text(object: &mut Members<'_>, name: &str, text: &str) {
    let mut inner = object.object(name);
    inner.text("text", text);
    inner.end();
}

/// A place in a file, and its columns, from 1, the end one behind the last.
fn put_physical(object: &mut Members<'_>, uri: &str, place: Option<(Place, Option<Range<u64>>)>) {
    let mut physical = object.object("physicalLocation");
    let mut artifact = physical.object("artifactLocation");
    artifact.text("uri", uri);
    artifact.end();
    if let Some((place, columns)) = place {
        let mut region = physical.object("region");
        region.number("startLine", place.line);
        if let Some(columns) = columns {
            region.number("startColumn", columns.start);
            region.number("endColumn", columns.end);
        }
        region.end();
    }
    physical.end();
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// The columns of bytes of a line, in characters; `None` for the whole line.
fn columns(line: &[u8], span: &Range<usize>) -> Option<Range<u64>> {
    if *span == (0..0) {
        return None;
    }
    let count = |end: usize| {
        let part = line.get(..end).unwrap_or(line);
        let part: Cow<'_, str> = String::from_utf8_lossy(part);
        part.chars().count() as u64 + 1
    };
    let start = count(span.start);
    Some(start..count(span.end.max(span.start)))
}

/// A path as a reference (RFC 3986): absolute ones as a URL, others relative to the working directory.
fn uri(path: &Path) -> String {
    if let Ok(url) = Url::from_file_path(path) {
        return url.into();
    }
    let mut uri = String::new();
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            b'\\' if cfg!(windows) => uri.push('/'),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_references() {
        for (path, reference) in [
            ("a/b.jsonl", "a/b.jsonl"),
            ("a b:#?é%.jsonl", "a%20b%3A%23%3F%C3%A9%25.jsonl"),
            ("stdin", "stdin"),
        ] {
            assert_eq!(uri(Path::new(path)), reference);
        }
        if cfg!(unix) {
            assert_eq!(uri(Path::new("/a b")), "file:///a%20b");
        }
    }

    #[test]
    fn columns_count_characters_from_one() {
        let line = "ä\"b\"".as_bytes();
        assert_eq!(columns(line, &(2..5)), Some(2..5));
        assert_eq!(columns(line, &(5..5)), Some(5..5));
        assert_eq!(columns(line, &(0..0)), None);
        assert_eq!(columns(b"\xff\xfe", &(1..900)), Some(2..3));
    }
}
