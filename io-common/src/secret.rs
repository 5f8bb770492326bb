//! A secret that doesn't show itself.

use std::fmt;
use std::sync::Arc;

/// What stands in the place of a secret.
const MASK: &str = "[key]";

/// So much of a secret's beginning, in bytes, isn't shown either, where a text was cut inside it.
const TELLING: usize = 4;

/// A secret that never shows itself in logs, errors or debug output.
#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps a secret.
    pub fn new(value: &str) -> Self {
        Secret(value.into())
    }

    /// The secret itself, for the one header that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text without the secret; `None` if it isn't in there. A provider may send a key back in an error.
    pub fn hidden_in(&self, text: &str) -> Option<String> {
        let secret: &str = &self.0;
        if secret.is_empty() {
            return None;
        }
        let mut shown = text.replace(secret, MASK);
        // A long text may have been cut inside it.
        let body = shown.trim_end_matches('…');
        let half = (TELLING..secret.len())
            .rev()
            .filter_map(|length| secret.get(..length))
            .find(|start| body.ends_with(start));
        if let Some(half) = half {
            let end = body.len();
            shown.replace_range(end - half.len()..end, MASK);
        }
        (shown != text).then_some(shown)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_never_shows_in_debug_output() {
        let shown = format!("{:?}", Secret::new("sk-123"));
        assert!(!shown.contains("sk-123"), "{shown}");
    }

    #[test]
    fn a_key_in_a_text_is_masked_also_where_the_text_was_cut() {
        let key = Secret::new("sk-0123456789");
        for (text, want) in [
            ("wrong key: sk-0123456789.", "wrong key: [key]."),
            ("sk-0123456789 and sk-0123456789", "[key] and [key]"),
            ("wrong key: sk-01234…", "wrong key: [key]…"),
            ("wrong key: sk-0", "wrong key: [key]"),
            ("wrong key: sk-…", "wrong key: sk-…"),
            ("sk-01 is no key", "sk-01 is no key"),
            ("é…", "é…"),
            ("", ""),
        ] {
            assert_eq!(
                key.hidden_in(text).as_deref().unwrap_or(text),
                want,
                "{text}"
            );
        }
        assert_eq!(Secret::new("").hidden_in("x"), None);
        assert_eq!(
            Secret::new("abc").hidden_in("abc").as_deref(),
            Some("[key]")
        );
    }
}
