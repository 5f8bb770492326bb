//! Findings for a person: the line, with the place marked, why it is wrong, and who says so.

use std::io::Write;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use anstream::adapter;
use turnwire::check::{Checked, Summary};
use turnwire::protocol::observer::{Dir, Finding, Severity, Sides};

use crate::safe;

/// Bytes of the line that are shown before the marked place, marked at most, and shown after it.
const BEFORE: usize = 40;
const MARKED: usize = 60;
const AFTER: usize = 40;
/// Rules that are named for each reason to skip them.
const NAMED: usize = 6;

/// One thing that was found. Writing to memory can't fail.
pub fn put(file: &str, checked: &Checked<'_>, out: &mut Vec<u8>) {
    let _ = match checked {
        Checked::Line {
            dir,
            place,
            label,
            worst,
        } => {
            let verdict = worst.map_or("ok", Severity::word);
            let whose = whose(*dir);
            writeln!(out, "{file}:{}: {whose}: {label}: {verdict}", place.line)
        }
        Checked::BadRow { place, why } => {
            let title = format!("row {} of this recording can't be read", place.line);
            let origin = Origin::path(file).line(number(place.line));
            let group = Group::with_title(Level::ERROR.primary_title(title))
                .element(origin)
                .element(Level::NOTE.message(safe::line(why)));
            writeln!(out, "{}\n", Renderer::styled().render(&[group]))
        }
        Checked::Finding { finding, line, .. } => {
            let text = render(file, finding, line.unwrap_or_default());
            writeln!(out, "{text}\n")
        }
    };
}

fn render(file: &str, finding: &Finding, line: &[u8]) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let title = level
        .primary_title(safe::line(&finding.message))
        .id(finding.rule.id);
    let mut group = Group::with_title(title);
    let Excerpt { text, mark, column } = excerpt(line, &finding.span);
    match finding.place {
        // Its text isn't at hand: an earlier line, or one of which only the length is known.
        Some(place) if line.is_empty() => {
            group = group.element(Origin::path(file).line(number(place.line)));
        }
        Some(place) => {
            let origin = Origin::path(file)
                .line(number(place.line))
                .char_column(column);
            let mark = AnnotationKind::Primary.span(mark).label(finding.rule.title);
            let snippet = Snippet::source(text)
                .line_start(number(place.line))
                .annotation(mark);
            group = group.element(origin).element(snippet);
        }
        None => group = group.element(Origin::path(file)),
    }
    let mut whence = match finding.place {
        Some(_) => format!("a line of the {}", whose(finding.dir)),
        None => format!("at the end of the {}'s lines", whose(finding.dir)),
    };
    if !finding.pointer.is_empty() {
        whence.push_str(&format!(", at {}", safe::line(&finding.pointer)));
    }
    group = group.element(Level::NOTE.message(whence));
    for related in &finding.related {
        let (line, whose) = (related.place.line, whose(related.dir));
        let text = format!("line {line} of the file, of the {whose}: {}", related.what);
        group = group.element(Level::NOTE.message(text));
    }
    group = group.element(Level::NOTE.message(format!("see {}", finding.rule.cite)));
    // The place stands above the line; the renderer would mark the missing second path by a line of colons.
    Renderer::styled()
        .render(&[group])
        .lines()
        .filter(|line| adapter::strip_str(line).to_string().trim() != ":::")
        .collect::<Vec<_>>()
        .join("\n")
}

/// What of a line is shown.
#[derive(Debug, PartialEq, Eq)]
struct Excerpt {
    text: String,
    /// The marked bytes of `text`.
    mark: Range<usize>,
    /// The marked place in the whole line, in characters from 1.
    column: usize,
}

/// The surroundings of a span. Lines can be very long, and need not be UTF-8.
fn excerpt(line: &[u8], span: &Range<usize>) -> Excerpt {
    let start = span.start.min(line.len());
    let end = if span.is_empty() {
        line.len()
    } else {
        span.end.clamp(start, line.len())
    };
    let from = boundary(line, start.saturating_sub(BEFORE));
    let marked = boundary(line, end.min(start + MARKED)).max(start);
    let to = boundary(line, line.len().min(marked + AFTER)).max(marked);
    let part = |range: Range<usize>| {
        let bytes = line.get(range).unwrap_or_default();
        safe::line(&String::from_utf8_lossy(bytes)).into_owned()
    };
    let mut text = String::new();
    if from > 0 {
        text.push('…');
    }
    text.push_str(&part(from..start));
    let mark = text.len();
    text.push_str(&part(start..marked));
    let mark = mark..text.len();
    text.push_str(&part(marked..to));
    if to < line.len() {
        text.push('…');
    }
    let before = String::from_utf8_lossy(line.get(..start).unwrap_or_default());
    Excerpt {
        text,
        mark,
        column: before.chars().count() + 1,
    }
}

/// The start of the character that this byte belongs to, if it is one.
fn boundary(line: &[u8], at: usize) -> usize {
    let is_inner = |at: &usize| line.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (0..4)
        .map(|back| at.saturating_sub(back))
        .find(|at| !is_inner(at))
        .unwrap_or(at)
}

fn number(line: u64) -> usize {
    usize::try_from(line).unwrap_or(usize::MAX)
}

fn whose(dir: Dir) -> &'static str {
    match dir {
        Dir::Host => "host",
        Dir::Agent => "agent",
    }
}

/// The last words on a file. Writing to memory can't fail.
pub fn summary(file: &str, summary: &Summary, out: &mut Vec<u8>) {
    let _ = try_summary(file, summary, out);
}

fn try_summary(file: &str, summary: &Summary, out: &mut Vec<u8>) -> std::io::Result<()> {
    let tally = &summary.tally;
    writeln!(
        out,
        "{file}: {}, {}, {} info",
        count(summary.errors, "error"),
        count(summary.warnings, "warning"),
        summary.infos
    )?;
    writeln!(
        out,
        "  {} of the host, {} of the agent; {}, {}, {}",
        count(tally.host_lines, "line"),
        count(tally.agent_lines, "line"),
        count(tally.turns, "turn"),
        count(tally.approvals, "approval"),
        count(tally.tool_calls, "tool call"),
    )?;
    let judged = match summary.sides {
        Sides::Host => "the host",
        Sides::Agent => "the agent",
        Sides::Both => "both sides",
    };
    let rules = count(summary.judged as u64, "rule");
    writeln!(
        out,
        "  judged {judged} by {rules}, skipped {}",
        summary.skipped.len()
    )?;
    if summary.bad_rows > 0 {
        writeln!(out, "  {} can't be read", count(summary.bad_rows, "row"))?;
    }
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (rule, why) in &summary.skipped {
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, rules)) => rules.push(rule.id),
            None => reasons.push((why, vec![rule.id])),
        }
    }
    for (why, rules) in reasons {
        let named = rules.get(..NAMED).unwrap_or(&rules).join(", ");
        let more = if rules.len() > NAMED { ", …" } else { "" };
        writeln!(out, "  skipped because {why}: {named}{more}")?;
    }
    Ok(())
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let line = format!("{}\"é\"{}", "a".repeat(500), "b".repeat(500));
        let shown = excerpt(line.as_bytes(), &(500..504));
        assert_eq!(
            shown.text,
            format!("…{}\"é\"{}…", "a".repeat(BEFORE), "b".repeat(AFTER))
        );
        assert_eq!(&shown.text[shown.mark.clone()], "\"é\"");
        assert_eq!(shown.column, 501);
    }

    #[test]
    fn a_whole_line_is_marked_as_far_as_it_is_shown() {
        let shown = excerpt(b"{}", &(0..0));
        assert_eq!((&*shown.text, shown.mark), ("{}", 0..2));
        let line = "ä".repeat(1000);
        let shown = excerpt(line.as_bytes(), &(0..0));
        assert_eq!(shown.mark, 0..MARKED);
        assert!(shown.text.ends_with('…'));
    }

    #[test]
    fn spans_out_of_place_and_bytes_of_any_kind_are_shown() {
        for line in [
            &b"\xff\xfe\x80\x80\x80\x80"[..],
            b"",
            b"a\x1b[31m",
            "äöü".as_bytes(),
        ] {
            for start in 0..9 {
                for end in start..9 {
                    let shown = excerpt(line, &(start..end));
                    assert!(
                        shown.text.get(shown.mark.clone()).is_some(),
                        "{line:?} {start} {end}"
                    );
                    assert!(!shown.text.contains('\x1b'));
                }
            }
        }
    }
}
