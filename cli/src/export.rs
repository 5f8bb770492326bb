//! A session as one HTML page for people: nothing in it is loaded from elsewhere, nothing runs, and whatever was said is
//! text.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use turnwire::protocol::omp::Export;
use turnwire::vocab::{Block, Message, Role, Source, ToolInput};

/// The page's own rules. Whatever a browser may still want to load or run is forbidden.
const HEAD: &str = "<meta charset=\"utf-8\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
article { border-left: 4px solid #bbb; margin: 1rem 0; padding: .25rem 1rem; }
article.user { border-color: #36c; } article.assistant { border-color: #393; } article.error { border-color: #c33; }
h2 { font-size: .85rem; color: #666; margin: 0; } h2 time { font-weight: normal; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: 14px/1.4 ui-monospace, monospace; margin: .5rem 0; }
p { white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; }
summary, .note { color: #666; } img { max-width: 100%; }
</style>
";

/// Writes the page where the host wants it, else into the project; gives the place.
///
/// # Errors
/// Why it couldn't be written, in words.
pub fn write(export: &Export, project: &Path) -> Result<PathBuf, String> {
    let named = export.path.as_deref().filter(|path| !path.is_empty());
    let path = match named {
        Some(path) => project.join(path),
        None => project.join(format!("turnwire-session-{}.html", export.session)),
    };
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    // As the transcript: what was said may be anything.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&path).map_err(failed)?;
    file.write_all(page(export).as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    Ok(path)
}

/// The page.
fn page(export: &Export) -> String {
    let title = escaped(export.name.as_deref().unwrap_or(&export.session));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<title>{title}</title>\n{HEAD}</head>\n<body>\n<h1>{title}</h1>\n"
    );
    for message in &export.history {
        put_message(message, &mut out);
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn put_message(message: &Message, out: &mut String) {
    let (class, who) = match &message.role {
        Role::User => ("user", "User".to_owned()),
        Role::Assistant => ("assistant", "Assistant".to_owned()),
        Role::Tool { name, error, .. } => {
            let class = if *error { "tool error" } else { "tool" };
            (class, format!("Result of {name}"))
        }
        Role::Note => ("note", "Note".to_owned()),
        Role::Summary => ("summary", "Summary".to_owned()),
        Role::Shell => ("shell", "Command".to_owned()),
        Role::Other(name) => ("other", name.to_string()),
    };
    let time = time(message.at_ms);
    let who = escaped(&who);
    let _ = writeln!(
        out,
        "<article class=\"{class}\">\n<h2>{who} <time>{time}</time></h2>"
    );
    let verbatim = matches!(message.role, Role::Tool { .. } | Role::Shell);
    for block in &message.content {
        put_block(block, verbatim, out);
    }
    out.push_str("</article>\n");
}

fn put_block(block: &Block, verbatim: bool, out: &mut String) {
    let tag = if verbatim { "pre" } else { "p" };
    match block {
        Block::Text(text) => {
            let _ = writeln!(out, "<{tag}>{}</{tag}>", escaped(text));
        }
        Block::Thinking { text, .. } => put_folded("Thinking", text, out),
        Block::Redacted(_) => put_note("Thinking that the provider hides", out),
        Block::ToolUse { name, input, .. } => {
            let (ToolInput::Object(_) | ToolInput::Unparsed(_)) = input;
            put_folded(&format!("Calls {name}"), input.as_str(), out);
        }
        Block::ToolResult { content, .. } => {
            for block in content {
                put_block(block, true, out);
            }
        }
        Block::Media { source, .. } => match source {
            Source::Inline { mime, base64 } if is_picture(mime) && is_base64(base64) => {
                let _ = writeln!(out, "<img alt=\"\" src=\"data:{mime};base64,{base64}\">");
            }
            Source::Inline { mime, .. } => put_note(&format!("A medium of type {mime}"), out),
            Source::Stored(stored) => put_note(&format!("Attached: {}", stored.name), out),
            Source::Url(url) => put_note(&format!("A medium at {url}"), out),
        },
        Block::Opaque(_) => put_note("Something that only the provider understands", out),
    }
}

fn put_folded(what: &str, text: &str, out: &mut String) {
    let (what, text) = (escaped(what), escaped(text));
    let _ = writeln!(
        out,
        "<details><summary>{what}</summary><pre>{text}</pre></details>"
    );
}

fn put_note(text: &str, out: &mut String) {
    let _ = writeln!(out, "<p class=\"note\">[{}]</p>", escaped(text));
}

fn is_picture(mime: &str) -> bool {
    matches!(
        mime,
        "image/png" | "image/jpeg" | "image/gif" | "image/webp"
    )
}

fn is_base64(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
}

/// Text that can stand in an element or a quoted attribute.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // A page can't hold it, nor can most others that aren't printed.
            '\0' => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

/// A time for people, in UTC, from milliseconds since the Unix epoch.
fn time(ms: u64) -> String {
    let seconds = i64::try_from(ms / 1000).unwrap_or(0);
    let days = seconds.div_euclid(86_400);
    let (hour, minute) = (seconds / 3600 % 24, seconds / 60 % 60);
    // Days since 1970 as a date of eras of 400 years that begin in March.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = year_of_era + era * 400 + next;
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use turnwire::vocab::{CallId, MediaKind, MessageId, Origin, RawJson};

    use super::*;

    fn message(role: Role, content: Vec<Block>) -> Arc<Message> {
        Arc::new(Message {
            id: MessageId(1),
            role,
            content: content.into_iter().map(Arc::new).collect(),
            origin: Origin::Host,
            prompt: None,
            about: None,
            at_ms: 1_796_008_756_354,
            details: None,
        })
    }

    #[test]
    fn whatever_was_said_is_text() {
        let bad = "</p><script>alert('x')</script>&\"";
        let media = |mime: &str, base64: &str| Block::Media {
            kind: MediaKind::Image,
            source: Source::Inline {
                mime: mime.into(),
                base64: base64.into(),
            },
        };
        let call = Block::ToolUse {
            call: CallId(1),
            provider_id: None,
            name: bad.into(),
            input: ToolInput::Object(RawJson("{\"a\":\"<b>\"}".into())),
        };
        let thinking = Block::Thinking {
            text: bad.into(),
            signature: None,
        };
        let tool = Role::Tool {
            call: CallId(1),
            name: bad.into(),
            error: true,
        };
        let export = Export {
            path: None,
            session: "s".into(),
            name: Some(bad.into()),
            history: vec![
                message(
                    Role::User,
                    vec![Block::Text(bad.into()), media("image/png", "AAAA")],
                ),
                message(Role::Assistant, vec![thinking, call]),
                message(
                    tool,
                    vec![Block::Text(bad.into()), media("image/png", "\"><script>")],
                ),
                message(
                    Role::Other(bad.into()),
                    vec![media("image/svg+xml", "AAAA")],
                ),
            ],
        };
        let page = page(&export);
        assert!(!page.contains("<script"), "{page}");
        assert!(!page.contains("</p><"), "{page}");
        assert_eq!(page.matches("<img").count(), 1);
        assert_eq!(page.matches("&lt;script&gt;alert(&#39;x&#39;)").count(), 8);
        assert_eq!(
            page.matches("<article").count(),
            page.matches("</article>").count()
        );
        assert!(page.contains("2026-11-30 03:19 UTC"), "{page}");
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn it_is_written_where_the_host_wants_it() {
        let folder = tempfile::tempdir().unwrap();
        let export = |path: Option<&str>| Export {
            path: path.map(Into::into),
            session: "s1".into(),
            ..Export::default()
        };
        let path = |name: &str| folder.path().join(name);
        assert_eq!(
            write(&export(None), folder.path()),
            Ok(path("turnwire-session-s1.html"))
        );
        assert_eq!(
            write(&export(Some("a.html")), folder.path()),
            Ok(path("a.html"))
        );
        assert_eq!(
            write(&export(Some("a.html")), folder.path()),
            Ok(path("a.html"))
        );
        let error = write(&export(Some("no/such/folder.html")), folder.path()).unwrap_err();
        assert!(error.contains("no/such/folder.html"), "{error}");
    }
}
