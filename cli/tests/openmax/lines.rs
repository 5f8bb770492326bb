//! What the settings do to the lines themselves: what they may not hold, and which of them are joined.

use serde_json::json;

use crate::support::program::{Home, Setup, joined, of};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::openai;

const SECRET: &str = "pa\"ss\\word/1";

#[test]
fn tw_04_no_line_holds_the_value_of_a_variable_that_was_named() {
    let home = Home::new();
    home.write("secret.txt", &format!("it is {SECRET}\n"));
    let provider = Provider::start([
        openai::calls(&[("c1", "read_file", json!({ "path": "secret.txt" }))]),
        openai::says(&format!("It says {SECRET}, and no-key-of-ours.")),
    ]);
    home.settings("[session]\nhide_env = ['MY_PASSWORD', 'NOT_SET']\n");
    let mut program = Setup::openai(&home, &provider)
        .env("MY_PASSWORD", SECRET)
        .env("ANTHROPIC_API_KEY", "no-key-of-ours")
        .start();
    program.see_type("hello");
    let lines = program.turn("What does it say?");
    for line in &lines {
        let text = line.to_string();
        assert!(
            !text.contains("word/1") && !text.contains("no-key-of-ours"),
            "{text}"
        );
    }
    assert!(
        of(&lines, "tool_end")[0]["output"]
            .as_str()
            .unwrap()
            .contains("it is [redacted]")
    );
    assert_eq!(
        of(&lines, "message_done")[1]["text"],
        "It says [redacted], and [redacted]."
    );
    // The model works with what is there.
    assert!(provider.request(2).json().to_string().contains("word/1"));
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn token_lines_are_joined_where_that_is_wanted() {
    let home = Home::new();
    let burst = || {
        let mut reply = Reply::stream();
        for number in 0..20 {
            reply = reply.bytes(openai::text(&format!("{number} ")));
        }
        reply.bytes(openai::finish("stop")).bytes(openai::DONE)
    };
    let provider = Provider::start((0..3).map(|_| burst()));
    let mut counts = Vec::new();
    for (flags, settings) in [
        (&[][..], ""),
        (&["--coalesce", "10000"], ""),
        (&[], "[session]\ncoalesce = 10000\n"),
    ] {
        home.settings(settings);
        let mut program = Setup::openai(&home, &provider).args(flags).start();
        program.see_type("hello");
        let lines = program.turn("count");
        assert!(joined(&lines, "token").ends_with("18 19 "), "{lines:?}");
        counts.push(of(&lines, "token").len());
        program.close_input();
        assert_eq!(program.wait().code, Some(0));
    }
    // The first goes at once; the others wait for the line that ends them.
    assert_eq!(counts, [20, 2, 2]);
}
