//! Before a session begins: arguments, settings, trust, exit codes.

use crate::support::program::{Home, KEY, Setup};

/// Nothing is on stdout, the exit code is this, and stderr says this much.
#[track_caller]
fn refused(setup: Setup, code: i32, words: &[&str]) {
    let ended = setup.run("{\"cmd\":\"quit\"}\n");
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    assert!(ended.lines.is_empty(), "{:?}", ended.lines);
    for word in words {
        assert!(
            ended.stderr.contains(word),
            "no {word:?} in {}",
            ended.stderr
        );
    }
}

#[test]
fn bad_arguments_exit_2_with_nothing_on_stdout() {
    let home = Home::new();
    refused(Setup::plain(&home, &["serve"]), 2, &["--protocol"]);
    refused(
        Setup::plain(&home, &["serve", "--protocol", "nonesuch"]),
        2,
        &["openmax"],
    );
    refused(
        Setup::serve(&home).args(&["--approval", "yolo"]),
        2,
        &["auto", "ask", "readonly"],
    );
    refused(
        Setup::serve(&home).args(&["--max-steps", "0"]),
        2,
        &["--max-steps"],
    );
    refused(Setup::serve(&home).args(&["--log", "loud"]), 2, &["loud"]);
    refused(
        Setup::serve(&home).args(&["--project", "nowhere"]),
        2,
        &["nowhere"],
    );
    refused(Setup::plain(&home, &[]), 2, &["Examples:"]);
}

#[test]
fn bad_settings_exit_2_and_name_file_line_and_column() {
    let home = Home::new();
    home.settings("[model]\nfoo = 1\n");
    let path = home.path("config/turnwire/turnwire.toml");
    refused(
        Setup::serve(&home),
        2,
        &[&format!("{}:2:1: ", path.display()), "foo"],
    );
}

#[test]
fn an_untrusted_project_exits_3() {
    let home = Home::new();
    let model = [
        "--api",
        "openai",
        "--model",
        "m",
        "--base-url",
        "http://127.0.0.1:9",
    ];
    refused(
        Setup::serve(&home).args(&model),
        3,
        &["isn't trusted", "--trust-project"],
    );
}

#[test]
fn a_process_that_an_agent_started_cant_give_trust() {
    let home = Home::new();
    let model = [
        "--api",
        "openai",
        "--model",
        "m",
        "--base-url",
        "http://127.0.0.1:9",
        "--trust-project",
    ];
    refused(
        Setup::serve(&home)
            .args(&model)
            .env("TURNWIRE_SESSION", "s"),
        3,
        &["TURNWIRE_SESSION"],
    );
    // Nor did it leave any behind.
    refused(Setup::serve(&home).args(&model[..6]), 3, &["isn't trusted"]);
}

#[test]
fn a_key_that_isnt_there_or_in_the_wrong_place_exits_2_unshown() {
    let home = Home::new();
    let model = ["--trust-project", "--api", "anthropic", "--model", "m"];
    refused(Setup::serve(&home).args(&model), 2, &["ANTHROPIC_API_KEY"]);
    refused(
        Setup::serve(&home).args(&model).args(&["--key-env", KEY]),
        2,
        &["--key-env"],
    );
    refused(
        Setup::serve(&home)
            .args(&model)
            .args(&["--base-url", &format!("http://{KEY}@h")]),
        2,
        &["--base-url"],
    );
    let broken = format!("two {KEY}");
    refused(
        Setup::serve(&home)
            .args(&model)
            .env("ANTHROPIC_API_KEY", &broken),
        2,
        &["ANTHROPIC_API_KEY"],
    );
}

#[test]
fn help_and_version_are_on_stdout_and_exit_0() {
    let home = Home::new();
    let output = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_turnwire"));
        let output = command
            .args(args)
            .current_dir(home.project())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(
        output(&["--version"]),
        format!("turnwire {}\n", env!("CARGO_PKG_VERSION"))
    );
    let help = output(&["serve", "--help"]);
    for word in [
        "--protocol",
        "--trust-project",
        "--key-env",
        "Examples:",
        "docs/configuration.md",
    ] {
        assert!(help.contains(word), "no {word} in {help}");
    }
}
