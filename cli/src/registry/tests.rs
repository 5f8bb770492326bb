use std::ffi::OsString;

use turnwire_io::Door;

use super::*;

const AZURE: &str = r#"{"id":"a","type":"azure_openai","endpoint":"https://east.example","deployment":"d","api_version":"v1","key_env":"K","model":"m"}"#;
const OPENAI: &str = r#"{"id":"o","type":"openai","endpoint":"http://localhost:1/v1","model":"m"}"#;

fn file(providers: &[&str]) -> String {
    format!(
        "{{\"version\":2,\"providers\":[\n{}\n]}}\n",
        providers.join(",\n")
    )
}

fn read(text: &str) -> Result<Registry, String> {
    Registry::parse(Path::new("/c/auth.json"), text).map_err(|stop| stop.to_string())
}

/// Whether the schema takes it too.
fn schema_takes(text: &str) -> bool {
    let mut compiler = boon::Compiler::new();
    let mut schemas = boon::Schemas::new();
    let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
    compiler.add_resource("auth.json", schema).unwrap();
    let index = compiler.compile("auth.json", &mut schemas).unwrap();
    let value = serde_json::from_str(text).unwrap();
    schemas.validate(&value, index).is_ok()
}

/// The entry with a member more, or another value of one.
fn with(entry: &str, name: &str, value: &str) -> String {
    let mut object: serde_json::Value = serde_json::from_str(entry).unwrap();
    object[name] = serde_json::from_str(value).unwrap();
    object.to_string()
}

fn without(entry: &str, name: &str) -> String {
    let mut object: serde_json::Value = serde_json::from_str(entry).unwrap();
    object.as_object_mut().unwrap().remove(name);
    object.to_string()
}

#[test]
fn the_example_of_the_page_is_read() {
    let begin = PAGE.find("```json\n").unwrap() + "```json\n".len();
    let example = PAGE[begin..].split("```").next().unwrap();
    let registry = read(example).unwrap();
    assert!(schema_takes(example));
    let ids: Vec<&str> = registry.entries.iter().map(|entry| &*entry.id).collect();
    assert_eq!(ids, ["sol-east", "house"]);
    let sol = registry.default().unwrap();
    assert_eq!(sol.id, "sol-east");
    assert_eq!(sol.efforts, ["low", "medium", "high"]);
    assert_eq!(sol.default_effort.as_deref(), Some("high"));
    assert_eq!(
        sol.door,
        Door::Azure {
            deployment: "sol-prod".to_owned(),
            version: "2024-10-21".to_owned(),
        }
    );
    assert_eq!(
        registry.key_variables().collect::<Vec<_>>(),
        ["AZURE_EAST_KEY"]
    );
    let house = registry.find("house").unwrap();
    assert!(house.key.is_none() && !house.is_default);
    assert!(registry.find("House").is_none());
}

#[test]
fn the_default_is_the_one_that_says_so_or_that_is_alone() {
    let default = |providers: &[&str]| {
        let registry = read(&file(providers)).unwrap();
        registry.default().map(|entry| entry.id.clone())
    };
    assert_eq!(default(&[AZURE]).as_deref(), Some("a"));
    assert_eq!(default(&[AZURE, OPENAI]), None);
    let chosen = with(OPENAI, "default", "true");
    assert_eq!(default(&[AZURE, &chosen]).as_deref(), Some("o"));
    let stop = read(&file(&[AZURE, OPENAI])).unwrap().choose_one();
    assert!(stop.to_string().contains("(a, o)"), "{stop}");
}

#[test]
fn a_provider_at_its_own_address_needs_a_key_and_may_need_no_address() {
    let bare = without(OPENAI, "endpoint");
    assert!(read(&file(&[&bare])).unwrap_err().contains("key_env"));
    for (kind, url) in [
        ("openai", "https://api.openai.com/v1"),
        ("anthropic", "https://api.anthropic.com/v1"),
    ] {
        let entry = with(
            &with(&bare, "key_env", "\"K\""),
            "type",
            &format!("{kind:?}"),
        );
        let registry = read(&file(&[&entry])).unwrap();
        assert_eq!(registry.entries[0].endpoint.as_str(), url);
    }
    let dated = with(
        &with(OPENAI, "type", "\"anthropic\""),
        "api_version",
        "\"2023-06-01\"",
    );
    let registry = read(&file(&[&dated])).unwrap();
    assert_eq!(
        registry.entries[0].version_header.as_deref(),
        Some("2023-06-01")
    );
}

/// Each is refused at this place, with this word, and nobody is shown what stands there.
#[test]
fn what_isnt_as_the_page_says_is_refused_with_its_place_and_without_its_text() {
    let azure = |name: &str, value: &str| file(&[&with(AZURE, name, value)]);
    let openai = |name: &str, value: &str| file(&[&with(OPENAI, name, value)]);
    for (text, word) in [
        (azure("sk-hidden", "1"), "isn't known"),
        (azure("key", "\"sk-hidden\""), "both"),
        (azure("key_env", "\"sk-hidden\""), "key_env"),
        (azure("type", "\"sk-hidden\""), "azure_openai, openai"),
        (azure("endpoint", "\"https://sk-hidden@h\""), "user name"),
        (azure("endpoint", "\"sk-hidden\""), "endpoint"),
        (
            azure("endpoint", "\"https://h/?key=sk-hidden\""),
            "endpoint",
        ),
        (azure("id", "\"sk hidden\""), "id is a word"),
        (azure("deployment", "\"../sk-hidden\""), "deployment"),
        (
            azure("api_version", "\"2024-1-1 sk-hidden\""),
            "api_version",
        ),
        (azure("api_version", "\"v2\""), "api_version"),
        (azure("model", "\"\""), "model"),
        (azure("model", "\"two\\nlines sk-hidden\""), "model"),
        (azure("efforts", "[\"low\"]"), "default_effort is missing"),
        (azure("efforts", "\"sk-hidden\""), "efforts is a list"),
        (azure("default_effort", "\"sk-hidden\""), "one of efforts"),
        (azure("default", "\"sk-hidden\""), "true or false"),
        (openai("deployment", "\"sk-hidden\""), "deployment"),
        (openai("api_version", "\"v1\""), "api_version"),
        (openai("key", "\"sk hidden\""), "visible ASCII"),
        (openai("key", "\"\""), "visible ASCII"),
        (openai("key", "7"), "visible ASCII"),
        (file(&[&without(AZURE, "model")]), "model is missing"),
        (file(&[&without(AZURE, "endpoint")]), "endpoint is missing"),
        (file(&[&without(AZURE, "key_env")]), "key or key_env"),
        (file(&[&without(AZURE, "deployment")]), "deployment"),
        (file(&[&without(AZURE, "api_version")]), "api_version"),
        (file(&[]), "1 to 256"),
        (
            "{\"version\":1,\"providers\":[]}".to_owned(),
            "version is 2",
        ),
        ("{\"version\":2}".to_owned(), "providers is missing"),
        ("[\"sk-hidden\"]".to_owned(), "object"),
        (
            "{\"version\":2,\"providers\":{\"sk-hidden\":1}}".to_owned(),
            "a list",
        ),
    ] {
        let fault = read(&text).unwrap_err();
        assert!(fault.starts_with("/c/auth.json:"), "{fault}");
        assert!(fault.contains(word), "{word:?} isn't in {fault:?}");
        assert!(
            !fault.contains("hidden") && !fault.contains('\n'),
            "{fault}"
        );
        // The schema says the same, but for what it can't: whether a header or a line can carry a text.
        let beyond = ["visible ASCII", "model"].contains(&word);
        assert!(beyond || !schema_takes(&text), "the schema takes {text}");
    }
    for (text, word) in [
        (file(&[AZURE, AZURE]), "this id"),
        (
            file(&[
                &with(AZURE, "default", "true"),
                &with(OPENAI, "default", "true"),
            ]),
            "two providers are the default",
        ),
    ] {
        let fault = read(&text).unwrap_err();
        assert!(fault.starts_with("/c/auth.json:3:1: "), "{fault}");
        assert!(fault.contains(word), "{fault}");
    }
    let text = with(OPENAI, "efforts", "[\"low\",\"low\"]");
    assert!(read(&file(&[&text])).unwrap_err().contains("twice"));
}

#[test]
fn a_member_that_stands_twice_in_any_spelling_is_refused() {
    for twice in [
        r#"{"version":2,"version":2,"providers":[]}"#,
        r#"{"version":2,"providers":[{"id":"a","\u0069d":"sk-hidden"}]}"#,
        r#"{"version":2,"providers":[{"key":"sk-hidden","k\u0065y":"sk-hidden"}]}"#,
    ] {
        let fault = read(twice).unwrap_err();
        assert!(fault.contains("twice") && fault.contains(":1:"), "{fault}");
        assert!(!fault.contains("hidden"), "{fault}");
    }
    for odd in [
        "",
        "{",
        "{\"version\":2,}",
        "{\"a\":\"\\ud800\"}",
        "sk-hidden",
    ] {
        let fault = read(odd).unwrap_err();
        assert!(!fault.contains("hidden"), "{fault}");
    }
}

#[test]
fn every_key_that_there_is_is_known() {
    let literal = with(OPENAI, "key", "\"sk-literal\"");
    let unset = with(&with(AZURE, "id", "\"b\""), "key_env", "\"UNSET\"");
    let registry = read(&file(&[AZURE, &literal, &unset])).unwrap();
    let env = |name: &str| (name == "K").then(|| OsString::from(" sk-held\n"));
    let keys = registry.keys(&env);
    let keys: Vec<&str> = keys.iter().map(Secret::expose).collect();
    assert_eq!(keys, ["sk-literal", "sk-held"]);
    let shown = format!("{registry:?}");
    assert!(!shown.contains("sk-literal"), "{shown}");
    let entry = |id: &str| registry.find(id).unwrap();
    let held = key(entry("a"), &env).unwrap().unwrap();
    assert_eq!(held.expose(), "sk-held");
    assert!(
        key(entry("b"), &env)
            .unwrap_err()
            .to_string()
            .contains("UNSET")
    );
}

#[cfg(unix)]
#[test]
fn a_file_with_a_key_has_to_be_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("auth.json");
    let read = |text: &str, mode: u32| {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        Registry::read(&path).map(|found| found.is_some())
    };
    let literal = file(&[&with(OPENAI, "key", "\"sk-hidden\"")]);
    assert_eq!(read(&literal, 0o600), Ok(true));
    for mode in [0o640, 0o604, 0o620, 0o644] {
        let stop = read(&literal, mode).unwrap_err().to_string();
        assert!(
            stop.contains("chmod 600") && !stop.contains("hidden"),
            "{stop}"
        );
    }
    assert_eq!(read(&file(&[AZURE]), 0o644), Ok(true));
    assert_eq!(
        Registry::read(&folder.path().join("none")).map(|it| it.is_none()),
        Ok(true)
    );
}

#[test]
fn a_file_that_is_named_has_to_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.json");
    let of_env = |name: &str| (name == FILE_VARIABLE).then(|| path.clone().into_os_string());
    let none = |_: &str| None;
    assert!(matches!(super::read(None, None, &none), Ok(None)));
    assert!(super::read(Some(&path), None, &none).is_err());
    assert!(super::read(None, None, &of_env).is_err());
    std::fs::write(&path, file(&[OPENAI])).unwrap();
    assert!(matches!(super::read(None, None, &of_env), Ok(Some(_))));
    assert!(matches!(super::read(Some(&path), None, &none), Ok(Some(_))));
}
