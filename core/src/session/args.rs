//! Arguments of calls: whether they fit, and how a person is told of them.

use alloc::{
    borrow::Cow,
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::json::{Kind, Members, Raw, ScanRules, scan, scan_value};
use crate::vocab::{ApprovalMode, Block, ChoiceAsk, ChoiceKind, RawJson, RuleBehaviour, Text};

/// How long the preview of one argument may get, in characters.
const PREVIEW_CHARS: usize = 120;

/// How long a summary may get, in characters.
const SUMMARY_CHARS: usize = 4096;

/// Arguments whose text says best what a call is about, best first: the path of a file tool, a command, and so on.
const TELLING: [&str; 8] = [
    "path",
    "file_path",
    "command",
    "url",
    "pattern",
    "query",
    "glob",
    "prompt",
];

/// Arguments that a detail shows, in this order.
const SHOWN: [&str; 8] = [
    "path",
    "file_path",
    "command",
    "old_string",
    "new_string",
    "content",
    "pattern",
    "glob",
];

/// The arguments as the model wrote them, if they are one JSON object by strict rules; digits and escapes stay.
pub(super) fn object(text: &str) -> Option<RawJson> {
    let mut members = Members::default();
    scan(text.as_bytes(), &ScanRules::LENIENT, &mut members).ok()?;
    Some(RawJson(text.into()))
}

fn raw(json: &RawJson) -> Option<Raw<'_>> {
    scan_value(json.0.as_bytes(), &ScanRules::LENIENT).ok()
}

/// The string that a JSON value is.
pub(super) fn string(json: &RawJson) -> Option<Text> {
    raw(json)?.string().map(Text::from)
}

/// Checks arguments against the part of JSON Schema that models get wrong: required members, and the types and
/// enumerations of top-level members. What it doesn't know it lets pass; the tool still judges for itself.
pub(super) fn check(schema: &RawJson, input: &RawJson) -> Result<(), String> {
    let Some(schema) = raw(schema) else {
        return Ok(());
    };
    let mut members = Members::default();
    let Ok(input) = scan(input.0.as_bytes(), &ScanRules::LENIENT, &mut members) else {
        return Err("not a JSON object".into());
    };
    let required: Vec<Raw<'_>> = schema
        .get("required")
        .and_then(|list| list.decode().ok())
        .unwrap_or_default();
    for name in required.iter().filter_map(|name| name.string()) {
        if input.get(&name).is_none() {
            return Err(format!("{name} is missing"));
        }
    }
    let Some(properties) = schema.get("properties") else {
        return Ok(());
    };
    for (name, value) in input.iter() {
        let Some(property) = properties.get(name) else {
            if schema.get("additionalProperties").and_then(Raw::bool) == Some(false) {
                return Err(format!("there is no argument {name:?}"));
            }
            continue;
        };
        if let Some(types) = property.get("type").map(types_of)
            && !types.is_empty()
            && !types.iter().any(|word| is_type(value, word))
        {
            return Err(format!("{name} should be {}", types.join(" or ")));
        }
        let allowed: Option<Vec<Raw<'_>>> =
            property.get("enum").and_then(|list| list.decode().ok());
        if let Some(allowed) = allowed
            && !allowed.iter().any(|one| same(*one, value))
        {
            let words: Vec<&str> = allowed.iter().map(|one| one.as_str()).collect();
            return Err(format!("{name} should be one of {}", words.join(", ")));
        }
    }
    Ok(())
}

fn types_of(value: Raw<'_>) -> Vec<Cow<'_, str>> {
    match value.string() {
        Some(one) => Vec::from([one]),
        None => value
            .decode::<Vec<Raw<'_>>>()
            .unwrap_or_default()
            .into_iter()
            .filter_map(Raw::string)
            .collect(),
    }
}

/// Whether a value is of a type; a type that isn't known fits everything.
fn is_type(value: Raw<'_>, word: &str) -> bool {
    match (word, value.kind()) {
        ("null", kind) => kind == Kind::Null,
        ("boolean", kind) => kind == Kind::Bool,
        ("string", kind) => kind == Kind::String,
        ("number", kind) => kind == Kind::Number,
        ("integer", Kind::Number) => {
            !value.as_str().contains(['.', 'e', 'E']) || value.as_str().ends_with(".0")
        }
        ("integer", Kind::Null | Kind::Bool | Kind::String | Kind::Array | Kind::Object) => false,
        ("array", kind) => kind == Kind::Array,
        ("object", kind) => kind == Kind::Object,
        (_, Kind::Null | Kind::Bool | Kind::Number | Kind::String | Kind::Array | Kind::Object) => {
            true
        }
    }
}

fn same(a: Raw<'_>, b: Raw<'_>) -> bool {
    match (a.string(), b.string()) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.as_str() == b.as_str(),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// What a call is about, in one line: a path, a command, else the first text argument, else the tool's name.
pub(super) fn summary(name: &str, input: &RawJson) -> Text {
    let mut members = Members::default();
    let Ok(input) = scan(input.0.as_bytes(), &ScanRules::LENIENT, &mut members) else {
        return name.into();
    };
    let telling = TELLING.iter().find_map(|word| filled(input.get(word)?));
    let any = || input.iter().find_map(|(_, value)| filled(value));
    telling
        .or_else(any)
        .map_or_else(|| name.into(), |text| cut(&text, SUMMARY_CHARS).into())
}

fn filled(value: Raw<'_>) -> Option<Cow<'_, str>> {
    value.string().filter(|text| !text.trim().is_empty())
}

/// Previews of the arguments, joined by ` · `.
pub(super) fn detail(input: &RawJson) -> Text {
    let mut members = Members::default();
    let Ok(input) = scan(input.0.as_bytes(), &ScanRules::LENIENT, &mut members) else {
        return "".into();
    };
    let shown: Vec<String> = SHOWN
        .iter()
        .filter_map(|name| Some(preview(name, input.get(name)?)))
        .collect();
    if shown.is_empty() {
        let all: Vec<String> = input
            .iter()
            .take(SHOWN.len())
            .map(|(name, value)| preview(name, value))
            .collect();
        return all.join(" · ").into();
    }
    shown.join(" · ").into()
}

fn preview(name: &str, value: Raw<'_>) -> String {
    let text = value.string().unwrap_or(Cow::Borrowed(value.as_str()));
    let line: String = text
        .chars()
        .take(PREVIEW_CHARS + 1)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    format!("{name}={}", cut(&line, PREVIEW_CHARS))
}

fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_string(),
    }
}

/// The text of an argument.
pub(super) fn member(input: &RawJson, name: &str) -> Option<Text> {
    raw(input)?.get(name)?.string().map(Text::from)
}

/// The steps of a plan, in the forms that models know, and whether each is done. `None`: there are none.
pub(super) fn plan(input: &RawJson) -> Option<Vec<(Text, bool)>> {
    let input = raw(input)?;
    let steps: Vec<Raw<'_>> = ["plan", "todos", "steps"]
        .iter()
        .find_map(|name| input.get(name)?.decode().ok())?;
    let text = |step: &Raw<'_>, names: &[&str]| -> Option<Text> {
        let mut found = names.iter().filter_map(|name| step.get(name)?.string());
        found.next().map(Text::from)
    };
    let read = |step: &Raw<'_>| {
        let what = text(step, &["step", "content", "text"])?;
        let done = text(step, &["status"]);
        let done = matches!(done.as_deref(), Some("completed" | "done" | "cancelled"));
        Some((what, done))
    };
    steps.iter().map(read).collect()
}

/// Whether a member is `true`.
pub(super) fn flag(input: &RawJson, name: &str) -> bool {
    let member = raw(input).and_then(|input| input.get(name));
    member.and_then(Raw::bool) == Some(true)
}

/// A question of a route-Choice tool: `title` or `question`; `options` to choose from, else free text.
pub(super) fn choice(input: &RawJson) -> ChoiceAsk {
    let input = raw(input);
    let text = |name: &str| {
        input
            .and_then(|input| input.get(name))
            .and_then(Raw::string)
            .map(Text::from)
    };
    let options: Option<Vec<Raw<'_>>> = input
        .and_then(|input| input.get("options"))
        .and_then(|list| list.decode().ok());
    let options: Vec<Text> = options
        .unwrap_or_default()
        .into_iter()
        .filter_map(Raw::string)
        .map(Text::from)
        .collect();
    let kind = if options.is_empty() {
        ChoiceKind::Input {
            placeholder: text("placeholder").unwrap_or_else(|| "".into()),
        }
    } else {
        ChoiceKind::Select(options)
    };
    let title = text("title")
        .or_else(|| text("question"))
        .unwrap_or_else(|| "".into());
    ChoiceAsk {
        title,
        kind,
        timeout_us: None,
    }
}

/// The neutral words for approval modes, as permission updates name them.
pub(super) fn mode_of(word: &str) -> Option<ApprovalMode> {
    Some(match word {
        "auto" => ApprovalMode::Auto,
        "accept_edits" => ApprovalMode::AcceptEdits,
        "ask" => ApprovalMode::Ask,
        "read_only" => ApprovalMode::ReadOnly,
        "plan" => ApprovalMode::Plan,
        "never" => ApprovalMode::Never,
        _ => return None,
    })
}

/// The text of blocks, joined.
pub(super) fn text_of<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> Text {
    let texts: Vec<&str> = blocks.into_iter().filter_map(Block::text).collect();
    texts.concat().into()
}

/// Whether a rule's pattern is about a call of this summary: a glob, or for `git:*` what a command begins with.
///
/// What such a beginning allows is one command, which a shell takes as it stands; what it denies or asks about is a command
/// that has it anywhere, since a shell has many ways to say one thing.
pub(super) fn fits(behaviour: RuleBehaviour, pattern: &str, summary: &str) -> bool {
    let Some(begin) = pattern.strip_suffix(":*").filter(|begin| !begin.is_empty()) else {
        return glob(pattern, summary);
    };
    match behaviour {
        RuleBehaviour::Allow => {
            let rest = summary.strip_prefix(begin);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')) && is_plain(summary)
        }
        RuleBehaviour::Deny | RuleBehaviour::Ask => summary.contains(begin),
    }
}

/// Whether a shell takes a text as one command of words: nothing in it ends one, begins another, runs one within it, or
/// names a file to write. A summary that was cut isn't plain either, by its mark.
fn is_plain(text: &str) -> bool {
    let plain =
        |letter: char| letter.is_alphanumeric() || " \t-_./:=,@%+'\"~^*?[]".contains(letter);
    text.chars().all(plain)
}

/// Whether a text matches a glob: `*` stands for any text, `?` for one character. Linear in practice: only the last
/// star is tried again.
pub fn glob(pattern: &str, text: &str) -> bool {
    let (mut p, mut t) = (pattern.chars(), text.chars());
    let mut star = None;
    loop {
        let (before_p, before_t) = (p.clone(), t.clone());
        match (p.next(), t.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                t = before_t;
                star = Some((p.clone(), t.clone()));
            }
            (Some('?'), Some(_)) => {}
            (Some(a), Some(b)) if a == b => {}
            (Some(_) | None, _) => {
                let _ = before_p;
                let Some((after, mut from)) = star.take() else {
                    return false;
                };
                if from.next().is_none() {
                    return false;
                }
                p = after.clone();
                t = from.clone();
                star = Some((after, from));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> RawJson {
        RawJson(text.into())
    }

    #[test]
    fn arguments_are_one_object_by_strict_rules() {
        for good in ["{}", " {\"a\":1} ", "{\"a\":{\"b\":[1,2]}}"] {
            assert_eq!(object(good), Some(json(good)), "{good}");
        }
        for bad in [
            "",
            "[]",
            "null",
            "{",
            "{\"a\":1,}",
            "{\"a\":1,\"a\":2}",
            "{} x",
            "'a'",
        ] {
            assert_eq!(object(bad), None, "{bad}");
        }
        // Digits stay as they were written.
        assert_eq!(object("{\"n\":1.50e400}"), Some(json("{\"n\":1.50e400}")));
    }

    #[test]
    fn the_schema_check_names_what_is_wrong() {
        let schema = json(
            r#"{"type":"object","required":["path"],"additionalProperties":false,"properties":{"path":{"type":"string"},
            "n":{"type":["integer","null"]},"how":{"enum":["a","b"]},"any":{}}}"#,
        );
        let verdict = |input: &str| check(&schema, &json(input));
        assert_eq!(verdict(r#"{"path":"x"}"#), Ok(()));
        assert_eq!(verdict(r#"{"path":"x","n":3,"how":"b","any":[1]}"#), Ok(()));
        assert_eq!(verdict(r#"{"path":"x","n":null}"#), Ok(()));
        assert_eq!(verdict("{}"), Err("path is missing".into()));
        assert_eq!(
            verdict(r#"{"path":1}"#),
            Err("path should be string".into())
        );
        assert_eq!(
            verdict(r#"{"path":"x","n":1.5}"#),
            Err("n should be integer or null".into())
        );
        assert_eq!(
            verdict(r#"{"path":"x","how":"c"}"#),
            Err("how should be one of \"a\", \"b\"".into())
        );
        assert_eq!(
            verdict(r#"{"path":"x","more":1}"#),
            Err("there is no argument \"more\"".into())
        );
        assert_eq!(check(&json("true"), &json("{}")), Ok(()));
        assert!(check(&json("{}"), &json("[]")).is_err());
    }

    #[test]
    fn a_value_is_of_the_types_of_json_schema() {
        let values = [
            "null", "true", "\"a\"", "1", "1.0", "1.5", "1e2", "[]", "{}",
        ];
        for (word, fits) in [
            ("null", "x........"),
            ("boolean", ".x......."),
            ("string", "..x......"),
            ("number", "...xxxx.."),
            ("integer", "...xx...."),
            ("array", ".......x."),
            ("object", "........x"),
            ("unknown", "xxxxxxxxx"),
        ] {
            let schema = json(&format!(r#"{{"properties":{{"a":{{"type":"{word}"}}}}}}"#));
            for (value, fits) in values.iter().zip(fits.chars()) {
                let verdict = check(&schema, &json(&format!(r#"{{"a":{value}}}"#)));
                assert_eq!(verdict.is_ok(), fits == 'x', "{word} {value}");
            }
        }
    }

    #[test]
    fn an_enumeration_names_its_values_of_any_type() {
        let schema = json(r#"{"properties":{"a":{"enum":[1,"b",null]}}}"#);
        for (value, fits) in [
            ("1", true),
            ("\"b\"", true),
            ("\"\\u0062\"", true),
            ("null", true),
            ("2", false),
            ("\"1\"", false),
            ("\"c\"", false),
        ] {
            let verdict = check(&schema, &json(&format!(r#"{{"a":{value}}}"#)));
            assert_eq!(verdict.is_ok(), fits, "{value}");
        }
    }

    #[test]
    fn an_approval_mode_has_one_word() {
        for (word, mode) in [
            ("auto", Some(ApprovalMode::Auto)),
            ("accept_edits", Some(ApprovalMode::AcceptEdits)),
            ("ask", Some(ApprovalMode::Ask)),
            ("read_only", Some(ApprovalMode::ReadOnly)),
            ("plan", Some(ApprovalMode::Plan)),
            ("never", Some(ApprovalMode::Never)),
            ("Auto", None),
            ("", None),
        ] {
            assert_eq!(mode_of(word), mode, "{word}");
        }
    }

    #[test]
    fn a_summary_is_a_path_a_command_the_first_text_or_the_name() {
        let say = |input: &str| String::from(summary("tool", &json(input)).as_ref());
        assert_eq!(say(r#"{"content":"c","path":"a.rs"}"#), "a.rs");
        assert_eq!(say(r#"{"timeout":3,"command":"ls -l"}"#), "ls -l");
        assert_eq!(say(r#"{"n":1,"other":"text"}"#), "text");
        assert_eq!(say(r#"{"n":1,"path":" "}"#), "tool");
        assert_eq!(say("{}"), "tool");
    }

    #[test]
    fn a_detail_previews_each_argument_in_one_line_of_120_characters() {
        let say = |input: &str| String::from(detail(&json(input)).as_ref());
        assert_eq!(
            say(r#"{"content":"a\nb","path":"x"}"#),
            "path=x · content=a b"
        );
        assert_eq!(say(r#"{"n":1,"deep":{"a":2}}"#), "n=1 · deep={\"a\":2}");
        let long = "ä".repeat(121);
        assert_eq!(
            say(&format!("{{\"path\":\"{long}\"}}")),
            format!("path={}…", "ä".repeat(120))
        );
        let exact = "ä".repeat(120);
        assert_eq!(
            say(&format!("{{\"path\":\"{exact}\"}}")),
            format!("path={exact}")
        );
        assert_eq!(say("{}"), "");
    }

    #[test]
    fn a_beginning_allows_one_plain_command_and_denies_wherever_it_stands() {
        for (summary, allowed, denied) in [
            ("git", true, true),
            ("git status", true, true),
            ("git commit -m 'größer, \"2\"' src/*.rs", true, true),
            ("git  log --format=%h", true, true),
            ("gitk", false, true),
            ("legit", false, true),
            ("ls", false, false),
            (" git status", false, true),
            ("git status; rm -rf x", false, true),
            ("git status && rm x", false, true),
            ("git status || rm x", false, true),
            ("git log | sh", false, true),
            ("git status & rm x", false, true),
            ("git status\nrm x", false, true),
            ("git status\rrm x", false, true),
            ("git log > x", false, true),
            ("git log < x", false, true),
            ("git log $(rm x)", false, true),
            ("git log $HOME", false, true),
            ("git log `rm x`", false, true),
            ("git log \\\nrm", false, true),
            ("git log # x", false, true),
            ("git (x)", false, true),
            ("git {x,y}", false, true),
            ("git !x", false, true),
            ("git log…", false, true),
        ] {
            let fits = |behaviour| fits(behaviour, "git:*", summary);
            assert_eq!(fits(RuleBehaviour::Allow), allowed, "{summary:?}");
            assert_eq!(fits(RuleBehaviour::Deny), denied, "{summary:?}");
            assert_eq!(fits(RuleBehaviour::Ask), denied, "{summary:?}");
        }
        // Everything else is a glob, this one too.
        assert!(fits(RuleBehaviour::Allow, "git *", "git push; ls"));
        assert!(fits(RuleBehaviour::Allow, ":*", ":x"));
        assert!(!fits(RuleBehaviour::Allow, ":*", "x"));
    }

    #[test]
    fn globs() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("*", "abc", true),
            ("a*c", "abbc", true),
            ("a*c", "abcd", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("git *", "git push", true),
            ("git *", "gitk", false),
            ("*.rs", "src/a.rs", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xxaxxbxx", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(glob(pattern, text), fits, "{pattern} {text}");
        }
    }
}
