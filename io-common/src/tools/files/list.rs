//! `list_dir`: what is in a folder.

use super::super::input;
use super::super::outcome::{Failed, Finished};
use super::{io_failed, path::Root};

/// Entries shown.
const SHOWN: usize = 1000;
/// Entries read and sorted; what is beyond is only counted.
const SORTED: usize = 100_000;

/// Lists the folder: sorted, folders with `/` behind them, symlinks with `@`.
pub(crate) fn run(
    root: &Root,
    args: &input::ListDir,
    stop: &dyn Fn() -> bool,
) -> Result<Finished, Failed> {
    let place = root.resolve(
        args.path
            .as_deref()
            .filter(|p| !p.is_empty())
            .unwrap_or("."),
    )?;
    let shown = &place.shown;
    let entries = match std::fs::read_dir(&place.real) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => {
            return Err(Failed(format!("{shown} is a file, not a folder")));
        }
        Err(e) => return Err(io_failed("list", shown, &e)),
    };
    let mut found = Vec::new();
    let mut over = 0_usize;
    for (n, entry) in entries.enumerate() {
        if n.is_multiple_of(1024) && stop() {
            return Ok(Finished::cancelled());
        }
        let entry = entry.map_err(|e| io_failed("list", shown, &e))?;
        if found.len() == SORTED {
            over += 1;
            continue;
        }
        let mark = entry.file_type().map_or("", |t| {
            if t.is_dir() {
                "/"
            } else if t.is_symlink() {
                "@"
            } else {
                ""
            }
        });
        found.push((entry.file_name(), mark));
    }
    if found.is_empty() {
        return Ok(Finished::ok("[empty folder]"));
    }
    found.sort_unstable();
    let left_out = over + found.len().saturating_sub(SHOWN);
    let mut lines: Vec<String> = found
        .iter()
        .take(SHOWN)
        .map(|(name, mark)| format!("{}{mark}", printable(&name.to_string_lossy())))
        .collect();
    if left_out > 0 {
        lines.push(format!("[... {left_out} more entries left out ...]"));
    }
    let mut finished = Finished::ok(lines.join("\n"));
    finished.truncated = left_out > 0;
    Ok(finished)
}

/// A name on one line: control characters as escapes.
pub(super) fn printable(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_control() {
            out.extend(c.escape_debug())
        } else {
            out.push(c)
        }
    }
    out
}
