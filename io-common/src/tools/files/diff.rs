//! Unified diffs in git's form, with the lines added and removed.

use std::time::Duration;

use similar::{Algorithm, ChangeTag, TextDiff};

use super::super::outcome::FileChange;
use super::looks_binary;

/// Time after which the diff gets coarser instead of better.
const PATIENCE: Duration = Duration::from_millis(500);

/// The change from `old` (`None`: there was no file) to `new`; the diff has at most about `max` bytes.
pub(crate) fn change(path: &str, old: Option<&[u8]>, new: &[u8], max: usize) -> FileChange {
    let before = old.unwrap_or_default();
    let from = if old.is_some() {
        side("a", path)
    } else {
        "/dev/null".into()
    };
    let to = side("b", path);
    if looks_binary(before) || looks_binary(new) {
        let diff = format!("Binary files {from} and {to} differ\n");
        return FileChange {
            path: path.into(),
            diff,
            added: 0,
            removed: 0,
        };
    }
    let (before, after) = (
        String::from_utf8_lossy(before),
        String::from_utf8_lossy(new),
    );
    // Lines end at LF alone, as in git: a lone CR is part of its line.
    let old_lines: Vec<&str> = before.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = after.split_inclusive('\n').collect();
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .timeout(PATIENCE)
        .newline_terminated(true)
        .diff_slices(&old_lines, &new_lines);
    let (mut added, mut removed) = (0_u32, 0_u32);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => added = added.saturating_add(1),
            ChangeTag::Delete => removed = removed.saturating_add(1),
            ChangeTag::Equal => {}
        }
    }
    let text = diff
        .unified_diff()
        .context_radius(3)
        .header(&from, &to)
        .to_string();
    FileChange {
        path: path.into(),
        diff: bounded(text, max),
        added,
        removed,
    }
}

/// A header's name. git quotes names with control characters; a newline would break the diff's lines.
fn side(side: &str, path: &str) -> String {
    let name = format!("{side}/{path}");
    if name
        .chars()
        .any(|c| c.is_control() || c == '"' || c == '\\')
    {
        return format!("\"{}\"", name.escape_debug());
    }
    name
}

/// Whole lines up to `max` bytes, then how many were left out (`\` begins a remark in a diff).
fn bounded(text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    let fits = super::super::text::front(&text, max);
    let end = fits.rfind('\n').map_or(0, |at| at + 1);
    let (shown, rest) = text.split_at(end);
    format!(
        "{shown}\\ {} more lines of this diff left out\n",
        rest.lines().count()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> FileChange {
        change("x", Some(old.as_bytes()), new.as_bytes(), 1 << 20)
    }

    #[test]
    fn an_edit_in_git_form() {
        let c = change(
            "a.txt",
            Some(b"hi there\nsecond line\n"),
            b"hello there\nsecond line\n",
            1 << 20,
        );
        assert_eq!(
            c.diff,
            "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-hi there\n+hello there\n second line\n"
        );
        assert_eq!((c.added, c.removed), (1, 1));
    }

    #[test]
    fn a_new_file_comes_from_nothing() {
        let c = change("dir/out.txt", None, b"line1\nline2\n", 1 << 20);
        assert_eq!(
            c.diff,
            "--- /dev/null\n+++ b/dir/out.txt\n@@ -0,0 +1,2 @@\n+line1\n+line2\n"
        );
        assert_eq!((c.added, c.removed), (2, 0));
    }

    #[test]
    fn a_missing_last_newline_is_said() {
        let c = diff("a\nb", "a\nb\n");
        assert_eq!(
            c.diff,
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
        );
        assert_eq!((c.added, c.removed), (1, 1));
    }

    #[test]
    fn carriage_returns_belong_to_their_lines() {
        let c = diff("a\rb\r\nc\r\n", "a\rb\r\nd\r\n");
        assert_eq!(
            c.diff,
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\rb\r\n-c\r\n+d\r\n"
        );
    }

    #[test]
    fn binary_and_long_diffs_are_bounded() {
        let c = change("x", Some(b"a\0b"), b"text\n", 1 << 20);
        assert_eq!(
            (c.diff.as_str(), c.added),
            ("Binary files a/x and b/x differ\n", 0)
        );
        let long = "line\n".repeat(1000);
        let c = change("x", None, long.as_bytes(), 100);
        assert_eq!(c.added, 1000);
        assert!(c.diff.len() < 200, "{}", c.diff);
        assert!(
            c.diff.ends_with(" more lines of this diff left out\n"),
            "{}",
            c.diff
        );
        let shown = c.diff.matches("+line\n").count();
        assert!(
            c.diff.contains(&format!("\\ {} more lines", 1000 - shown)),
            "{}",
            c.diff
        );
    }

    #[test]
    fn a_newline_in_a_name_cannot_forge_lines() {
        let c = change("a\n+++ b/y", None, b"x\n", 1 << 20);
        assert!(
            c.diff
                .starts_with("--- /dev/null\n+++ \"b/a\\n+++ b/y\"\n@@"),
            "{}",
            c.diff
        );
    }
}
