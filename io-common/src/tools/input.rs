//! The arguments of the tools, read leniently: models write numbers as strings and `null` for "not given". Names of
//! every dialect are taken.

use serde::{Deserialize, Deserializer, de};

/// Arguments of `read_file`.
#[derive(Debug, Deserialize)]
pub(crate) struct ReadFile {
    #[serde(alias = "file_path")]
    pub(crate) path: String,
    #[serde(default, deserialize_with = "count")]
    pub(crate) offset: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pub(crate) limit: Option<u64>,
}

/// Arguments of `write_file`.
#[derive(Debug, Deserialize)]
pub(crate) struct WriteFile {
    #[serde(alias = "file_path")]
    pub(crate) path: String,
    pub(crate) content: String,
}

/// Arguments of `edit_file`.
#[derive(Debug, Deserialize)]
pub(crate) struct EditFile {
    #[serde(alias = "file_path")]
    pub(crate) path: String,
    pub(crate) old_string: String,
    pub(crate) new_string: String,
    #[serde(default, deserialize_with = "flag")]
    pub(crate) replace_all: bool,
}

/// Arguments of `list_dir`.
#[derive(Debug, Deserialize)]
pub(crate) struct ListDir {
    #[serde(default)]
    pub(crate) path: Option<String>,
}

/// Arguments of `search`.
#[derive(Debug, Deserialize)]
pub(crate) struct Search {
    pub(crate) pattern: String,
    #[serde(default)]
    pub(crate) path: Option<String>,
    #[serde(default)]
    pub(crate) glob: Option<String>,
    #[serde(default, alias = "-i", deserialize_with = "flag")]
    pub(crate) ignore_case: bool,
    #[serde(default, deserialize_with = "flag")]
    pub(crate) literal: bool,
}

/// Arguments of `bash`.
#[derive(Debug, Deserialize)]
pub(crate) struct Bash {
    pub(crate) command: String,
    #[serde(default, deserialize_with = "count")]
    pub(crate) timeout_seconds: Option<u64>,
    /// In milliseconds, as [`Dialect::Claude`](super::Dialect::Claude) has it.
    #[serde(default, deserialize_with = "count")]
    pub(crate) timeout: Option<u64>,
    #[serde(default, alias = "run_in_background", deserialize_with = "flag")]
    pub(crate) background: bool,
    /// For people.
    #[serde(default)]
    pub(crate) description: Option<String>,
}

/// Reads the arguments of `tool`; the error is the text for the model.
pub(crate) fn parse<'a, T: Deserialize<'a>>(tool: &str, input: &'a str) -> Result<T, String> {
    serde_json::from_str(input).map_err(|e| format!("invalid arguments for {tool}: {e}"))
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Loose {
    Nothing(()),
    Bool(bool),
    Whole(u64),
    Float(f64),
    Text(String),
}

/// A whole number that isn't negative; also as `"10"`, `10.0` or `null`.
fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let wrong = || de::Error::custom("expected a whole number");
    match Loose::deserialize(from).map_err(|_| wrong())? {
        Loose::Nothing(()) => Ok(None),
        Loose::Whole(n) => Ok(Some(n)),
        // Whole and far below 2^53: the conversion is exact.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Loose::Float(n) if n.fract() == 0.0 && (0.0..1e15).contains(&n) => Ok(Some(n as u64)),
        Loose::Text(text) => text.trim().parse().map(Some).map_err(|_| wrong()),
        Loose::Bool(_) | Loose::Float(_) => Err(wrong()),
    }
}

/// A truth value; also as `"true"` or `null`.
fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    let wrong = || de::Error::custom("expected true or false");
    match Loose::deserialize(from).map_err(|_| wrong())? {
        Loose::Nothing(()) => Ok(false),
        Loose::Bool(b) => Ok(b),
        Loose::Text(text) => text
            .trim()
            .to_ascii_lowercase()
            .parse()
            .map_err(|_| wrong()),
        Loose::Whole(_) | Loose::Float(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_flags_are_read_leniently() {
        for (given, want) in [
            ("3", Some(3)),
            ("\"3\"", Some(3)),
            ("3.0", Some(3)),
            ("null", None),
        ] {
            let text = format!(r#"{{"path":"a","offset":{given}}}"#);
            assert_eq!(
                parse::<ReadFile>("read_file", &text).expect("reads").offset,
                want,
                "{given}"
            );
        }
        for given in ["-1", "1.5", "true", "\"x\"", "[]"] {
            let text = format!(r#"{{"path":"a","offset":{given}}}"#);
            let error = parse::<ReadFile>("read_file", &text).expect_err("refused");
            assert!(
                error.starts_with("invalid arguments for read_file: expected a whole number"),
                "{error}"
            );
        }
        let text = r#"{"path":"a","old_string":"x","new_string":"y","replace_all":"True"}"#;
        assert!(
            parse::<EditFile>("edit_file", text)
                .expect("reads")
                .replace_all
        );
    }

    #[test]
    fn a_missing_member_is_named() {
        let error = parse::<WriteFile>("write_file", r#"{"path":"a"}"#).expect_err("refused");
        assert!(
            error.starts_with("invalid arguments for write_file: missing field `content`"),
            "{error}"
        );
    }
}
