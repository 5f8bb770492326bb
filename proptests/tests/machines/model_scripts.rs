//! The scripted model: what a script may say, what its replies are worth to the decoder, and its faults.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

use crate::model_support;

use std::sync::Arc;

use model_support::{Heard, NOW};
use turnwire::model::script::{Script, ScriptEnd, ScriptReply};
use turnwire::model::{Api, ReplyDecoder, ReplyLimits};
use turnwire::vocab::*;

fn message(role: Role, words: &str) -> Arc<Message> {
    let content = vec![Arc::new(Block::Text(words.into()))];
    Arc::new(Message {
        id: MessageId(1),
        role,
        content,
        origin: Origin::Host,
        prompt: None,
        about: None,
        at_ms: 0,
        details: None,
    })
}

fn tool(name: &str) -> ToolSpec {
    let schema = RawJson(r#"{"type":"object"}"#.into());
    let (name, description) = (name.into(), "".into());
    ToolSpec {
        name,
        label: None,
        description,
        schema,
        side_effect: SideEffect::Read,
        hidden: false,
        uri_arg: None,
        route: Route::Driver,
    }
}

fn request<'a>(messages: &'a [Arc<Message>], tools: &'a [ToolSpec]) -> ModelRequest<'a> {
    ModelRequest {
        model: "scripted",
        system: None,
        messages,
        tools,
        max_output: None,
        thinking: None,
        thinking_budget: None,
    }
}

fn hear(api: Api, reply: &ScriptReply) -> Heard {
    let mut decoder = ReplyDecoder::new(api, ReplyLimits::default());
    let mut heard = Heard::default();
    reply.play(&mut decoder, NOW, &mut |chunk| heard.take(&chunk));
    heard
}

fn played(script: &str, messages: &[Arc<Message>]) -> Heard {
    let script = Script::parse(script).unwrap();
    hear(script.api(), &script.reply(&request(messages, &[])))
}

#[test]
fn the_builtin_script_makes_a_whole_turn() {
    let script = Script::builtin();
    let tools = [tool("list_dir")];
    let mut history = vec![message(Role::User, "what is here?")];
    let first = hear(script.api(), &script.reply(&request(&history, &tools)));
    assert!(first.complete() && !first.thinking.is_empty() && !first.text.is_empty());
    assert_eq!(first.finish.as_deref(), Some("tool_calls"));
    assert_eq!(
        (&*first.calls[0].name, &*first.calls[0].args),
        ("list_dir", r#"{"path": "."}"#)
    );
    history.push(message(Role::Assistant, &first.text));
    history.push(message(
        Role::Tool {
            call: CallId(1),
            name: "list_dir".into(),
            error: false,
        },
        "a.txt\nb.txt\n\nsrc/\n",
    ));
    let second = hear(script.api(), &script.reply(&request(&history, &tools)));
    assert_eq!(second.finish.as_deref(), Some("stop"));
    assert!(second.calls.is_empty());
    for words in [
        "Lines that came back: 3",
        "scripted model",
        "turnwire --help",
    ] {
        assert!(second.text.contains(words), "{}", second.text);
    }
    history.push(message(Role::User, "and again"));
    assert_eq!(
        hear(script.api(), &script.reply(&request(&history, &tools)))
            .calls
            .len(),
        1,
        "each prompt gets a turn"
    );
}

#[test]
fn the_builtin_script_does_without_tools() {
    let script = Script::builtin();
    let history = [message(Role::User, "hello")];
    let reply = script.reply(&request(&history, &[]));
    assert!(
        reply.pieces.iter().skip(1).any(|piece| piece.after_us > 0),
        "it takes its time"
    );
    let heard = hear(script.api(), &reply);
    assert!(heard.complete() && heard.calls.is_empty() && heard.text.contains("scripted model"));
}

#[test]
fn both_dialects_say_the_same() {
    let body = "reply\n  think: hm, \"so\"\n  say:\n    | one\n    |\n    | two 🦀\n  call a {\"n\":\n    | 12345678901234567890}\n  call b\n  usage input=10 cached=5 output=7\n";
    let history = [message(Role::User, "go")];
    let openai = played(body, &history);
    let anthropic = played(&format!("dialect anthropic\n{body}"), &history);
    for heard in [&openai, &anthropic] {
        assert!(heard.complete(), "{heard:?}");
        assert_eq!(
            (&*heard.thinking, &*heard.text),
            ("hm, \"so\"", "one\n\ntwo 🦀")
        );
        assert_eq!(heard.calls.len(), 2);
        assert_eq!(heard.calls[0].args, "{\"n\":\n12345678901234567890}");
        assert_eq!(heard.calls[1].args, "{}");
        let usage = heard.usage.last().unwrap();
        assert_eq!(
            (usage.input, usage.cache_read, usage.output),
            (Some(10), Some(5), Some(7))
        );
    }
    assert_eq!(
        (openai.finish.as_deref(), anthropic.finish.as_deref()),
        (Some("tool_calls"), Some("tool_use"))
    );
}

#[test]
fn the_first_reply_that_fits_is_played() {
    let script = Script::parse(
        "# comment\nreply when prompt \"Weather\" and step 1\n  say: sunny\nreply when result \"rain\"\n  say: wet\nreply when request 9\n  say: ninth\nreply when step 2\n  say: second of {model}\nreply\n  say: {prompt} and {braces}\n",
    )
    .unwrap();
    let say = |messages: &[Arc<Message>], number| {
        hear(
            Api::OpenAi,
            &script.reply_nth(&request(messages, &[]), number),
        )
        .text
    };
    let mut history = vec![message(Role::User, "the WEATHER?")];
    assert_eq!(say(&history, 1), "sunny");
    history.push(message(Role::Assistant, "x"));
    assert_eq!(say(&history, 2), "second of scripted");
    assert_eq!(say(&history, 9), "ninth");
    history.push(message(
        Role::Tool {
            call: CallId(1),
            name: "t".into(),
            error: false,
        },
        "heavy Rain",
    ));
    assert_eq!(say(&history, 9), "wet");
    assert_eq!(
        say(&[message(Role::User, "hello")], 1),
        "hello and {braces}"
    );
}

#[test]
fn failures_of_all_kinds() {
    let history = [message(Role::User, "go")];
    let limited = played(
        "reply\n  wait 200ms\n  fail 429 slow down\n  retry-after 3\n",
        &history,
    );
    assert_eq!(
        limited.error(),
        "backend returned 429 Too Many Requests: slow down"
    );
    assert_eq!(limited.failed.as_ref().unwrap().2, Some(3_000_000));
    let quota = played(
        "reply\n  fail 429 code=insufficient_quota used up\n",
        &history,
    );
    assert_eq!(
        (quota.failure().kind, quota.failure().retryable),
        (FailureKind::Billing, false)
    );
    for dialect in ["openai", "anthropic"] {
        let said = played(
            &format!(
                "dialect {dialect}\nreply\n  say: half\n  error overloaded_error Overloaded\n"
            ),
            &history,
        );
        assert_eq!(
            (said.failure().kind, &*said.text),
            (FailureKind::Overloaded, "half")
        );
        let cut = played(
            &format!("dialect {dialect}\nreply\n  say: half\n  cut\n"),
            &history,
        );
        assert_eq!(
            (cut.failure().kind, &*cut.text),
            (FailureKind::StreamCut, "half")
        );
        assert!(
            played(
                &format!("dialect {dialect}\nreply\n  say: half\n  finish none\n"),
                &history
            )
            .truncated()
        );
        assert_eq!(
            played(
                &format!("dialect {dialect}\nreply\n  say: x\n  finish length\n"),
                &history
            )
            .finish
            .as_deref(),
            Some("length")
        );
    }
    let away = played("reply\n  unreached refused\n", &history);
    let (failure, reached, _) = away.failed.unwrap();
    assert_eq!(
        (failure.kind, reached, &*failure.text),
        (FailureKind::Transport, false, "request failed: refused")
    );
    let none = played("reply when step 2\n  say: x\n", &history);
    assert!(none.error().contains("the script has no reply") && !none.failure().retryable);
}

#[test]
fn raw_bytes_and_pauses() {
    let script = Script::parse(
        "pace 5ms\nreply\n  raw \": comment\\n\\ndata: noise\\n\\n\"\n  wait 1s\n  say: a b\n",
    )
    .unwrap();
    let history = [message(Role::User, "go")];
    let reply = script.reply(&request(&history, &[]));
    assert_eq!(reply.pieces[0].bytes, b": comment\n\ndata: noise\n\n");
    assert_eq!(
        reply
            .pieces
            .iter()
            .take(3)
            .map(|piece| piece.after_us)
            .collect::<Vec<_>>(),
        [0, 1_000_000, 5_000]
    );
    assert_eq!(reply.end, ScriptEnd::Whole);
    assert_eq!(hear(Api::OpenAi, &reply).text, "a b");
}

#[test]
fn faults_name_their_place_and_their_reason() {
    for (script, place, words) in [
        (
            "say: x",
            "line 1, column 1",
            "expected dialect, pace or reply",
        ),
        (
            "\n  bogus\n",
            "line 2, column 3",
            "expected dialect, pace or reply",
        ),
        (
            "reply\n  says: x",
            "line 2, column 3",
            "expected think:, say:, call",
        ),
        ("reply\n  say:", "line 2, column 3", "needs a text"),
        ("reply if x", "line 1, column 7", "expected when"),
        ("reply when", "line 1, column 11", "a condition"),
        (
            "reply when moon",
            "line 1, column 12",
            "a condition is prompt",
        ),
        ("reply when prompt x", "line 1, column 19", "double quotes"),
        (
            "reply when prompt \"x",
            "line 1, column 19",
            "double quotes",
        ),
        ("reply when step two", "line 1, column 17", "whole number"),
        (
            "reply when step 1 or step 2",
            "line 1, column 19",
            "expected and",
        ),
        (
            "reply\n  call",
            "line 2, column 7",
            "the tool's name is missing",
        ),
        (
            "reply\n  call é {\"a\": 1,}",
            "line 2, column 18",
            "must be one JSON object: expected",
        ),
        (
            "reply\n  call f [1]",
            "line 2, column 10",
            "this is another value",
        ),
        (
            "reply\n  call f\n    | {",
            "line 3, column 8",
            "must be one JSON object",
        ),
        (
            "reply\n  usage in=1",
            "line 2, column 9",
            "a count is input=",
        ),
        (
            "reply\n  usage input=x",
            "line 2, column 15",
            "whole number",
        ),
        (
            "reply\n  fail 200 ok",
            "line 2, column 8",
            "between 300 and 599",
        ),
        ("reply\n  wait 2h", "line 2, column 8", "us, ms or s"),
        (
            "reply\n  wait 99999999999999999999s",
            "line 2, column 8",
            "a time is",
        ),
        (
            "reply\n  wait 18446744073709551615s",
            "line 2, column 8",
            "too long",
        ),
        ("reply\n  raw x", "line 2, column 7", "double quotes"),
        (
            "reply\n  raw \"x\" y",
            "line 2, column 11",
            "nothing may follow",
        ),
        ("reply\n  cut now", "line 2, column 7", "nothing may follow"),
        (
            "reply\n  cut\n  say: x",
            "line 3, column 3",
            "nothing can follow cut",
        ),
        (
            "reply\n  say: x\n  fail 500 y",
            "line 3, column 3",
            "before its head",
        ),
        ("reply\n  retry-after", "line 2, column 14", "missing"),
        (
            "reply\n  cut\n  | more",
            "line 3, column 3",
            "must follow think:",
        ),
        ("| more", "line 1, column 1", "must follow think:"),
        (
            "reply\ndialect openai",
            "line 2, column 1",
            "before the first reply",
        ),
        ("dialect klingon", "line 1, column 9", "openai or anthropic"),
        ("dialect", "line 1, column 8", "is missing"),
    ] {
        let fault = Script::parse(script).unwrap_err().to_string();
        assert!(
            fault.starts_with(&format!("{place}: ")) && fault.contains(words),
            "{script:?}: {fault}"
        );
    }
}

/// The blocks of plain text on the page that describes the format.
fn page_blocks() -> Vec<&'static str> {
    let page = include_str!("../../../docs/scripted-model.md");
    page.split("```text\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect()
}

#[test]
fn the_example_on_the_page_does_what_it_says() {
    let script = Script::parse(page_blocks()[0]).unwrap();
    let say = |messages: &[Arc<Message>], number| {
        hear(
            script.api(),
            &script.reply_nth(&request(messages, &[]), number),
        )
    };
    let mut history = vec![message(Role::User, "how is the weather?")];
    assert_eq!(say(&history, 1).text, "I can't see the sky from here.");
    history[0] = message(Role::User, "what licence?");
    assert_eq!(say(&history, 1).calls[0].name, "read_file");
    history.push(message(Role::Assistant, "Let me look."));
    assert_eq!(say(&history, 2).text, "First line.\n\nThird line.");
    assert_eq!(say(&history, 3).failed.unwrap().2, Some(2_000_000));
    history.push(message(
        Role::Tool {
            call: CallId(1),
            name: "read_file".into(),
            error: false,
        },
        "MIT\n\nlicence",
    ));
    assert_eq!(say(&history, 4).text, "The file of 2 lines says MIT.");
}

#[test]
fn the_fault_on_the_page_is_the_one_that_is_reported() {
    let fault = Script::parse("reply\n  call read_file {\"path\": \"a\",}\n").unwrap_err();
    assert_eq!(fault.to_string(), page_blocks()[1].trim_end());
}
