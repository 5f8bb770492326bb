//! Findings for programs: one JSON object a line.
//!
//! A finding has `rule`; a verdict (`--each`) has `verdict`; a row that can't be read has `bad_row`; the last line of
//! a file has `summary`. `dir` is as in a recording: `in` to the agent, `out` from it.

use turnwire::check::{Checked, Summary};
use turnwire::frame::Place;
use turnwire::json::write_u64;
use turnwire::protocol::observer::{Dir, Finding, Severity, Sides};

use crate::object::Members;

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
            put_place(&mut object, *dir, Some(*place));
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
    put_place(object, finding.dir, finding.place);
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
        put_place(&mut object, related.dir, Some(related.place));
        object.text("what", related.what);
        object.end();
    });
    object.text("cite", finding.rule.cite);
}

/// The last object of a file.
pub fn summary(file: &str, summary: &Summary, out: &mut Vec<u8>) {
    let mut object = Members::begin(out);
    object.text("file", file);
    let mut inner = object.object("summary");
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

fn put_place(object: &mut Members<'_>, dir: Dir, place: Option<Place>) {
    object.text("dir", dir.word());
    object.maybe_number("line", place.map(|place| place.line));
    object.maybe_number("offset", place.map(|place| place.offset));
}
