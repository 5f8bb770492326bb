use clap::Parser;

use super::model::sendable;
use super::*;
use crate::args::{Args, Command};

fn args(words: &[&str]) -> ServeArgs {
    let line = ["turnwire", "serve", "--protocol", "openmax"]
        .iter()
        .chain(words);
    let Command::Serve(args) = Args::try_parse_from(line).unwrap().command else {
        panic!("not serve")
    };
    *args
}

fn layer(path: &str, text: &str) -> Layer {
    let path = PathBuf::from(path);
    Layer::read(SettingsSource::User, path, text).unwrap()
}

fn with_env(name: &str) -> Option<OsString> {
    match name {
        "OPENAI_API_KEY" => Some("sk-openai".into()),
        "ANTHROPIC_API_KEY" => Some("sk-anthropic".into()),
        "OTHER_KEY" => Some("sk-other".into()),
        "BROKEN_KEY" => Some("two words sk-broken".into()),
        _ => None,
    }
}

fn settle(words: &[&str], files: &[Layer]) -> Result<Settings, String> {
    resolve(&args(words), files, &|| Ok(None), &with_env).map_err(|stop| {
        assert_eq!(stop.code(), 2);
        stop.to_string()
    })
}

fn provider(words: &[&str], files: &[Layer]) -> Provider {
    match settle(words, files).unwrap().model {
        Model::Http(provider) => *provider,
        other @ (Model::Builtin { .. } | Model::Script { .. }) => panic!("{other:?}"),
    }
}

#[test]
fn nothing_at_all_is_the_built_in_script() {
    let settings = settle(&[], &[]).unwrap();
    assert!(matches!(settings.model, Model::Builtin { chosen: false }));
    assert_eq!(
        (settings.max_steps, settings.max_output, settings.window),
        (100, 8192, 128_000)
    );
    assert_eq!(
        (
            settings.approval,
            settings.allow_outside,
            settings.log.as_str()
        ),
        (None, false, "warn")
    );
    assert!(matches!(
        settle(&["--api", "scripted"], &[]).unwrap().model,
        Model::Builtin { chosen: true }
    ));
}

#[test]
fn flag_over_project_over_user_over_default() {
    let project = layer(
        "/p/turnwire.toml",
        "[session]\nmax_steps = 20\napproval = 'readonly'\n[tools]\npass_env = ['A']",
    );
    let user = layer(
        "/u/turnwire.toml",
        "log = 'info'\n[session]\nmax_steps = 30\napproval = 'auto'\n[tools]\npass_env = ['B']\nallow_outside = true",
    );
    let files = [project, user];
    let settings = settle(&["--approval", "ask"], &files).unwrap();
    assert_eq!(
        (settings.approval, settings.max_steps),
        (Some(Approval::Ask), 20)
    );
    assert_eq!(
        (
            settings.allow_outside,
            settings.log.as_str(),
            settings.pass_env
        ),
        (true, "info", vec!["A".to_owned()])
    );
    let settings = settle(
        &["--max-steps", "1", "--pass-env", "C", "--pass-env", "D"],
        &files[1..],
    )
    .unwrap();
    assert_eq!(
        (settings.max_steps, settings.approval),
        (1, Some(Approval::Auto))
    );
    assert_eq!(settings.pass_env, ["C", "D"]);
}

#[test]
fn om_13_an_approval_waits_until_it_is_answered_unless_a_limit_is_set() {
    assert_eq!(settle(&[], &[]).unwrap().approval_limit, None);
    let files = [layer("/p/turnwire.toml", "[session]\napproval_limit = 30")];
    let limit = |words: &[&str]| settle(words, &files).unwrap().approval_limit;
    assert_eq!(limit(&[]), Some(Duration::from_secs(30)));
    assert_eq!(
        limit(&["--approval-limit", "0.5"]),
        Some(Duration::from_millis(500))
    );
}

#[test]
fn a_provider_at_its_own_address_gets_its_own_key() {
    let openai = provider(&["--api", "openai", "--model", "m"], &[]);
    assert_eq!(openai.base_url.as_str(), "https://api.openai.com/v1");
    assert_eq!(openai.key.unwrap().expose(), "sk-openai");
    let anthropic = provider(
        &["--api", "anthropic", "--model", "m", "--temperature", "0.5"],
        &[],
    );
    assert_eq!(anthropic.base_url.as_str(), "https://api.anthropic.com/v1");
    assert_eq!(
        (anthropic.key.unwrap().expose(), anthropic.temperature),
        ("sk-anthropic", Some(0.5))
    );
}

#[test]
fn a_bearer_token_goes_to_anthropics_own_address_in_the_keys_place() {
    let mut args = args(&["--api", "anthropic", "--model", "m"]);
    args.foreign.bearer = Some("OTHER_KEY");
    let settings = |args: &ServeArgs| resolve(args, &[], &|| Ok(None), &with_env).unwrap();
    let http = |args: &ServeArgs| match settings(args).model {
        Model::Http(http) => *http,
        other @ (Model::Builtin { .. } | Model::Script { .. }) => panic!("{other:?}"),
    };
    let provider = http(&args);
    assert_eq!(provider.door, Door::Bearer);
    assert_eq!(provider.key.unwrap().expose(), "sk-other");
    // One that is named is a key, and OpenAI's API has no such token.
    args.model.key_env = Some("ANTHROPIC_API_KEY".to_owned());
    assert_eq!(http(&args).door, Door::Api);
    args.model.key_env = None;
    args.model.api = Some(Api::Openai);
    let provider = http(&args);
    assert_eq!(
        (provider.door, provider.key.unwrap().expose()),
        (Door::Api, "sk-openai")
    );
    assert!(
        settings(&args)
            .deny_env
            .iter()
            .any(|name| name == "ANTHROPIC_AUTH_TOKEN")
    );
}

#[test]
fn another_address_gets_only_a_key_that_was_named() {
    let words = [
        "--api",
        "openai",
        "--model",
        "m",
        "--base-url",
        "http://localhost:9/v1",
    ];
    assert!(provider(&words, &[]).key.is_none());
    let named = provider(&[&words[..], &["--key-env", "OTHER_KEY"]].concat(), &[]);
    assert_eq!(named.key.unwrap().expose(), "sk-other");
    // Named in a file counts too, and the provider's own address spelt out is still its own.
    let user = layer("/u/turnwire.toml", "[model]\nkey_env = 'OTHER_KEY'");
    assert_eq!(provider(&words, &[user]).key.unwrap().expose(), "sk-other");
    let own = provider(
        &[
            "--api",
            "openai",
            "--model",
            "m",
            "--base-url",
            "https://api.openai.com/v1/",
        ],
        &[],
    );
    assert_eq!(own.key.unwrap().expose(), "sk-openai");
}

#[test]
fn a_file_can_choose_the_model_and_a_flag_can_overrule_it() {
    let user = layer(
        "/u/turnwire.toml",
        "[model]\napi = 'openai'\nname = 'big'\nbase_url = 'http://localhost:9/v1'",
    );
    assert_eq!(provider(&[], std::slice::from_ref(&user)).name, "big");
    assert_eq!(
        provider(&["--model", "small"], std::slice::from_ref(&user)).name,
        "small"
    );
    assert!(matches!(
        settle(&["--api", "scripted"], &[user]).unwrap().model,
        Model::Builtin { chosen: true }
    ));
}

#[test]
fn a_script_lies_beside_its_file_and_is_overruled_by_a_flag() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("play.txt"), "text").unwrap();
    let file = folder.path().join("turnwire.toml");
    let user = layer(file.to_str().unwrap(), "[model]\nscript = 'play.txt'");
    let Model::Script { path, text } = settle(&[], std::slice::from_ref(&user)).unwrap().model
    else {
        panic!()
    };
    assert_eq!(
        (path, text.as_str()),
        (folder.path().join("play.txt"), "text")
    );
    // Asked for by a flag, the built-in script isn't the file's.
    assert!(matches!(
        settle(&["--api", "scripted"], &[user]).unwrap().model,
        Model::Builtin { .. }
    ));
    let lost = settle(&["--script", "/nowhere/at/all"], &[]).unwrap_err();
    assert!(lost.contains("/nowhere/at/all"), "{lost}");
}

#[test]
fn what_doesnt_go_together_is_refused_in_clear_words() {
    for (words, want) in [
        (&["--model", "m"][..], "set api"),
        (&["--base-url", "http://h/v1"], "set api"),
        (&["--api", "openai"], "--model"),
        (&["--api", "openai", "--model", " "], "--model"),
        (
            &["--api", "openai", "--model", "m", "--script", "f"],
            "script",
        ),
        (&["--api", "scripted", "--base-url", "http://h"], "base_url"),
        (
            &[
                "--api",
                "openai",
                "--model",
                "m",
                "--key-env",
                "MISSING_KEY",
            ],
            "MISSING_KEY",
        ),
        (
            &["--api", "openai", "--model", "m", "--key-env", "BROKEN_KEY"],
            "BROKEN_KEY",
        ),
        (
            &["--api", "openai", "--model", "m", "--key-env", "sk-hidden"],
            "--key-env",
        ),
        (
            &["--api", "openai", "--model", "m", "--base-url", "sk-hidden"],
            "--base-url",
        ),
        (&["--window", "8192"], "window"),
        (&["--max-output", "127000"], "max_output"),
        (&["--pass-env", "OPENAI_API_KEY"], "OPENAI_API_KEY"),
        (&["--pass-env", "no name"], "--pass-env"),
        (
            &[
                "--api",
                "openai",
                "--model",
                "m",
                "--key-env",
                "OTHER_KEY",
                "--pass-env",
                "OTHER_KEY",
            ],
            "OTHER_KEY",
        ),
    ] {
        let fault = settle(words, &[]).unwrap_err();
        assert!(
            fault.contains(want) && !fault.contains("sk-"),
            "{fault:?} for {words:?}"
        );
    }
}

#[test]
fn a_key_must_fit_a_header() {
    assert_eq!(sendable(" sk-0123 \n"), Some("sk-0123"));
    for bad in ["", " \n", "two words", "line\nbreak", "schlüssel", "nul\0"] {
        assert_eq!(sendable(bad), None, "{bad:?}");
    }
}

#[test]
fn commands_never_see_the_variables_of_keys() {
    let words = ["--api", "openai", "--model", "m", "--key-env", "OTHER_KEY"];
    let denied = settle(&words, &[]).unwrap().deny_env;
    for name in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OTHER_KEY"] {
        assert!(denied.iter().any(|denied| denied == name), "{denied:?}");
    }
}

#[test]
fn a_provider_that_a_file_sets_up_goes_by_its_name() {
    let user = layer(
        "/u/turnwire.toml",
        "[model]\napi = 'openai'\nprovider = 'house'\nname = 'big'\nbase_url = 'http://localhost:9/v1'\n\
         others = ['small', 'big']",
    );
    let files = std::slice::from_ref(&user);
    let settings = settle(&["--provider", "house"], files).unwrap();
    assert_eq!(settings.provider, "house");
    assert_eq!(settings.others, ["small", "big"]);
    // Without a name it is the one that is set up, and by another name it isn't.
    assert_eq!(settle(&[], files).unwrap().provider, "house");
    let other = settle(&["--provider", "openai", "--model", "m"], files).unwrap();
    assert_eq!(other.provider, "openai");
    let Model::Http(http) = other.model else {
        panic!()
    };
    assert_eq!(http.base_url.as_str(), "https://api.openai.com/v1");
    let fault = settle(&["--provider", "nobody"], files).unwrap_err();
    assert!(fault.contains("nobody"), "{fault}");
    let flags = ["--provider", "here", "--api", "openai", "--model", "m"];
    assert_eq!(settle(&flags, &[]).unwrap().provider, "here");
}

#[test]
fn an_address_and_a_key_are_those_of_their_own_provider() {
    let user = layer(
        "/u/turnwire.toml",
        "[model]\napi = 'openai'\nname = 'big'\nbase_url = 'http://localhost:9/v1'\nkey_env = 'OTHER_KEY'",
    );
    let words = ["--api", "anthropic", "--model", "m"];
    let anthropic = provider(&words, std::slice::from_ref(&user));
    assert_eq!(anthropic.base_url.as_str(), "https://api.anthropic.com/v1");
    assert_eq!(anthropic.key.unwrap().expose(), "sk-anthropic");
    // Commands see neither.
    let denied = settle(&words, &[user]).unwrap().deny_env;
    assert!(denied.iter().any(|name| name == "OTHER_KEY"), "{denied:?}");
}

#[test]
fn a_model_may_begin_with_its_providers_name_where_another_program_says_so() {
    let user = layer(
        "/u/turnwire.toml",
        "[model]\napi = 'openai'\nprovider = 'house'\nname = 'big'\nbase_url = 'http://localhost:9/v1'",
    );
    let chosen = |words: &[&str], files: &[Layer]| {
        let mut args = args(words);
        args.foreign.provider_in_model = true;
        let settings = resolve(&args, files, &|| Ok(None), &with_env).unwrap();
        let Model::Http(http) = settings.model else {
            panic!()
        };
        (settings.provider, http.name)
    };
    let files = std::slice::from_ref(&user);
    for (words, want) in [
        (&["--model", "house/small"][..], ("house", "small")),
        (&["--model", "small"], ("house", "small")),
        (&["--model", "meta/small"], ("house", "meta/small")),
        (&["--model", "anthropic/m"], ("anthropic", "m")),
        (
            &["--provider", "house", "--model", "house/a/b"],
            ("house", "a/b"),
        ),
        (
            &["--provider", "house", "--model", "openai/b"],
            ("house", "openai/b"),
        ),
        (&[], ("house", "big")),
    ] {
        let (provider, name) = chosen(words, files);
        assert_eq!((provider.as_str(), name.as_str()), want, "{words:?}");
    }
    // Here it is a part of the name.
    let own = ["--api", "openai", "--model", "openai/m"];
    assert_eq!(provider(&own, &[]).name, "openai/m");
}

#[test]
fn a_thinking_effort_is_one_that_the_model_knows() {
    let words = ["--effort", "low", "--effort", "high", "--thinking", "high"];
    let settings = settle(&words, &[]).unwrap();
    assert_eq!(settings.thinking.as_deref(), Some("high"));
    assert_eq!(settings.efforts, ["low", "high"]);
    let fault = settle(&["--thinking", "high"], &[]).unwrap_err();
    assert!(fault.contains("high"), "{fault}");
}

#[test]
fn tools_are_all_or_those_that_were_named_or_none() {
    let files = [layer("/u/turnwire.toml", "[tools]\nonly = ['search']")];
    let only = |words: &[&str], files: &[Layer]| settle(words, files).unwrap().only_tools;
    assert_eq!(only(&[], &[]), None);
    assert_eq!(only(&[], &files), Some(vec!["search".to_owned()]));
    assert_eq!(
        only(&["--only-tool", "bash"], &files),
        Some(vec!["bash".to_owned()])
    );
    assert_eq!(only(&["--no-tools"], &files), Some(Vec::new()));
}

#[test]
fn prices_are_for_the_named_model_unless_they_name_another() {
    let text = "[model]\napi = 'openai'\nname = 'big'\n[[model.price]]\ninput = 3\noutput = 15\nas_of = '2026'\n\
                [[model.price]]\nmodel = 'small'\ninput = 1\ncache_read = 0.1\noutput = 5\nas_of = '2026'\n\
                source = 'a list'\n";
    let files = [layer("/u/turnwire.toml", text)];
    let settings = settle(&["--max-budget", "2.5"], &files).unwrap();
    assert_eq!(settings.max_budget, Some(2_500_000_000_000));
    let price = |model: &str| {
        let mut prices = settings.prices.iter();
        prices
            .find(|(of, _)| of == model)
            .map(|(_, price)| price.clone())
    };
    let (big, small) = (price("big").unwrap(), price("small").unwrap());
    assert_eq!(
        (big.input, big.cache_read, big.cache_write, big.output),
        (3_000_000, 3_000_000, 3_000_000, 15_000_000)
    );
    assert_eq!(
        (small.cache_read, small.cache_write, &*small.source),
        (100_000, 1_000_000, "a list")
    );
    // A budget that nothing is counted against is none.
    let fault = settle(&["--max-budget", "2", "--model", "other"], &files).unwrap_err();
    assert!(fault.contains("model.price"), "{fault}");
    let twice = text.replace("small", "big");
    let fault = settle(&[], &[layer("/u/turnwire.toml", &twice)]).unwrap_err();
    assert!(fault.contains("two prices"), "{fault}");
}
