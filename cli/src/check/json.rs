//! Findings for programs: one JSON object a line.
//!
//! A finding has `rule`; a verdict (`--each`) has `verdict`; a row that can't be read has `bad_row`; the last line of
//! a file has `summary`. `dir` is as in a recording: `in` to the agent, `out` from it.

use turnwire::check::{Checked, Summary};
use turnwire::frame::Place;
use turnwire::json::{write_str, write_u64};
use turnwire::protocol::observer::{Dir, Finding, Severity, Sides};

/// One thing that was found.
pub fn put(file: &str, checked: &Checked<'_>, out: &mut Vec<u8>) {
    let mut object = Members::begin(out);
    object.text("file", file);
    match checked {
        Checked::Line {
            dir,
            place,
            label,
            worst,
        } => {
            object.place(*dir, Some(*place));
            object.text("class", label.class);
            object.text("name", label.name);
            object.text("verdict", worst.map_or("ok", Severity::word));
        }
        Checked::BadRow { place, why } => {
            object.number("line", place.line);
            object.number("offset", place.offset);
            object.text("bad_row", why);
        }
        Checked::Finding { finding, .. } => put_finding(finding, &mut object),
    }
    object.end();
    out.push(b'\n');
}

fn put_finding(finding: &Finding, object: &mut Members<'_>) {
    object.text("rule", finding.rule.id);
    object.text("severity", finding.severity.word());
    object.place(finding.dir, finding.place);
    object.text("pointer", &finding.pointer);
    object.list(
        "span",
        &[finding.span.start, finding.span.end],
        |at, out| {
            write_u64(out, *at as u64);
        },
    );
    object.text("message", &finding.message);
    object.list("related", &finding.related, |related, out| {
        let mut object = Members::begin(out);
        object.place(related.dir, Some(related.place));
        object.text("what", related.what);
        object.end();
    });
    object.text("cite", finding.rule.cite);
}

/// The last object of a file.
pub fn summary(file: &str, summary: &Summary, out: &mut Vec<u8>) {
    let mut object = Members::begin(out);
    object.text("file", file);
    object.name("summary");
    let mut inner = Members::begin(object.out);
    for (name, number) in [
        ("errors", summary.errors),
        ("warnings", summary.warnings),
        ("infos", summary.infos),
        ("host_lines", summary.tally.host_lines),
        ("agent_lines", summary.tally.agent_lines),
        ("turns", summary.tally.turns),
        ("approvals", summary.tally.approvals),
        ("tool_calls", summary.tally.tool_calls),
        ("longest_bytes", summary.tally.longest.0),
        ("longest_line", summary.tally.longest.1),
        ("bad_rows", summary.bad_rows),
        ("judged", summary.judged as u64),
    ] {
        inner.number(name, number);
    }
    inner.text(
        "sides",
        match summary.sides {
            Sides::Host => "host",
            Sides::Agent => "agent",
            Sides::Both => "both",
        },
    );
    inner.list("skipped", &summary.skipped, |(rule, why), out| {
        let mut object = Members::begin(out);
        object.text("rule", rule.id);
        object.text("why", why);
        object.end();
    });
    inner.end();
    object.end();
    out.push(b'\n');
}

/// An object that is being written.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    any: bool,
}

impl<'a> Members<'a> {
    fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Members { out, any: false }
    }

    fn name(&mut self, name: &str) {
        if std::mem::replace(&mut self.any, true) {
            self.out.push(b',');
        }
        write_str(self.out, name);
        self.out.push(b':');
    }

    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        write_str(self.out, value);
    }

    fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        write_u64(self.out, value);
    }

    fn place(&mut self, dir: Dir, place: Option<Place>) {
        self.text("dir", dir.word());
        for (name, value) in [
            ("line", place.map(|place| place.line)),
            ("offset", place.map(|place| place.offset)),
        ] {
            match value {
                Some(value) => self.number(name, value),
                None => {
                    self.name(name);
                    self.out.extend_from_slice(b"null");
                }
            }
        }
    }

    fn list<T>(&mut self, name: &str, items: &[T], write: impl Fn(&T, &mut Vec<u8>)) {
        self.name(name);
        self.out.push(b'[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            write(item, self.out);
        }
        self.out.push(b']');
    }

    fn end(self) {
        self.out.push(b'}');
    }
}
