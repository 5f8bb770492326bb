//! The handshake, and lines of the host that are no commands.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::openmax_kit;

use openmax_kit::*;
use turnwire::protocol::openmax::HOST_LINE_MAX;
use turnwire::vocab::*;

const BUSY: &str = "a turn is in flight; wait for done";

fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap()
}

/// One line, its single refusal, and no command.
fn refused(rig: &mut Rig, line: &str) -> String {
    rig.host(line);
    assert_eq!(rig.calls(), []);
    let lines = rig.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    refusal(&lines[0])
}

#[test]
fn om_01_hello_is_the_first_line_in_the_documented_order() {
    let mut rig = Rig::new(config());
    rig.host("not json");
    rig.user("early");
    assert_eq!(rig.lines(), [""; 0], "nothing before hello");
    rig.event(What::Opened(Box::new(info())));
    let lines = rig.lines();
    assert_eq!(
        lines[0],
        r#"{"type":"hello","proto":"openmax-stdio/6","protocol_version":6,"session_id":"6f1e6a52-0000-4000-8000-000000000001","version":"0.1.0","project":"/abs/path","continued":false}"#
    );
    assert_eq!(
        labels(&lines),
        ["hello", "protocol_error"],
        "what came early is answered after it"
    );
    assert!(matches!(rig.call().command, Command::Prompt(_)));
}

#[test]
fn om_01_the_project_is_the_working_directory_where_there_is_no_root() {
    let mut rig = Rig::new(config());
    rig.event(What::Opened(Box::new(SessionInfo {
        root: None,
        ..info()
    })));
    assert_eq!(json(&rig.lines()[0])["project"], "/abs/path/sub");
    rig.event(What::Opened(Box::new(info())));
    assert_eq!(rig.lines(), [""; 0], "one hello");
}

fn transcript(history: Vec<std::sync::Arc<Message>>) -> serde_json::Value {
    let mut rig = Rig::new(config());
    rig.event(What::Opened(Box::new(SessionInfo {
        continued: true,
        history,
        ..info()
    })));
    let lines = rig.lines();
    assert_eq!(labels(&lines), ["hello", "transcript"]);
    json(&lines[1])
}

#[test]
fn om_02_a_continued_session_shows_text_of_user_and_assistant() {
    let mut parts = (*message(Role::Assistant, Origin::History, "one, ")).clone();
    parts.content.push(std::sync::Arc::new(Block::Thinking {
        text: "hm".into(),
        signature: None,
    }));
    parts
        .content
        .push(std::sync::Arc::new(Block::Text("two".into())));
    let line = transcript(vec![
        message(Role::User, Origin::History, "hi"),
        message(Role::Assistant, Origin::History, " \n"),
        message(
            Role::Tool {
                call: CallId(1),
                name: "x".into(),
                error: false,
            },
            Origin::History,
            "output",
        ),
        message(Role::Note, Origin::Harness, "note"),
        std::sync::Arc::new(parts),
    ]);
    assert_eq!(
        line,
        serde_json::json!({
            "type": "transcript", "session_id": "6f1e6a52-0000-4000-8000-000000000001", "truncated": false,
            "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "one, two"}],
        })
    );
}

#[test]
fn om_02_what_a_summary_stands_for_is_shown_too_and_first() {
    let mut rig = Rig::new(config());
    rig.event(What::Opened(Box::new(SessionInfo {
        continued: true,
        summarised: vec![
            message(Role::User, Origin::Host, "one"),
            message(Role::Assistant, Origin::Harness, "two"),
        ],
        history: vec![
            message(Role::Summary, Origin::Harness, "so far"),
            message(Role::User, Origin::Host, "three"),
        ],
        ..info()
    })));
    let line = json(&rig.lines()[1]);
    let shown: Vec<_> = line["messages"].as_array().unwrap().iter().collect();
    let texts: Vec<_> = shown
        .iter()
        .map(|it| it["content"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["one", "two", "three"]);
}

#[test]
fn om_02_a_message_is_cut_at_4096_bytes_with_its_ellipsis() {
    for (text, cut) in [
        ("x".repeat(4095), false),
        ("x".repeat(4096), false),
        ("x".repeat(4097), true),
        ("ü".repeat(2049), true),
    ] {
        let line = transcript(vec![message(Role::User, Origin::History, &text)]);
        let content = line["messages"][0]["content"].as_str().unwrap();
        assert_eq!(line["truncated"], cut);
        assert!(content.len() <= 4096);
        if cut {
            let kept = content.strip_suffix('…').unwrap();
            assert!(text.starts_with(kept) && kept.len() >= 4092);
        } else {
            assert_eq!(content, text);
        }
    }
}

#[test]
fn om_02_all_messages_are_cut_at_256_kib_the_oldest_kept() {
    let history: Vec<_> = (0..65)
        .map(|n| message(Role::User, Origin::History, &format!("{n:04096}")))
        .collect();
    let line = transcript(history[..64].to_vec());
    assert_eq!(
        (
            line["messages"].as_array().unwrap().len(),
            &line["truncated"]
        ),
        (64, &false.into())
    );
    let line = transcript(history);
    assert_eq!(
        (
            line["messages"].as_array().unwrap().len(),
            &line["truncated"]
        ),
        (64, &true.into())
    );
    assert!(
        line["messages"][0]["content"]
            .as_str()
            .unwrap()
            .ends_with("0000")
    );
}

#[test]
fn om_10_lines_that_are_not_utf8_say_where() {
    let mut rig = Rig::opened();
    for (bytes, text) in [
        (
            &b"{\"cmd\":\"user\",\"text\":\"\xff\xfe\"}\n"[..],
            "invalid utf-8 sequence of 1 bytes from index 22",
        ),
        (
            b"{\"cmd\":\"user\",\"text\":\"caf\xe9\"}\n",
            "invalid utf-8 sequence of 1 bytes from index 25",
        ),
        (
            b"\x80\x80{\"cmd\":\"quit\"}\n",
            "invalid utf-8 sequence of 1 bytes from index 0",
        ),
    ] {
        rig.raw(bytes);
        assert_eq!(rig.calls(), []);
        let lines = rig.lines();
        assert_eq!(lines.len(), 1);
        assert_eq!(
            refusal(&lines[0]),
            format!("command line is not valid UTF-8: {text}")
        );
    }
}

#[test]
fn om_10_exactly_8_mib_pass_and_one_byte_more_is_discarded() {
    let line = |content: usize| {
        let around = r#"{"cmd":"user","text":""}"#.len();
        format!(
            "{{\"cmd\":\"user\",\"text\":\"{}\"}}\n",
            "x".repeat(content - around)
        )
    };
    for (content, taken) in [
        (HOST_LINE_MAX - 1, true),
        (HOST_LINE_MAX, true),
        (HOST_LINE_MAX + 1, false),
    ] {
        let mut rig = Rig::opened();
        rig.raw(line(content).as_bytes());
        if taken {
            rig.call();
        } else {
            assert_eq!(rig.calls(), []);
            let lines = rig.lines();
            assert_eq!(lines.len(), 1);
            assert_eq!(
                refusal(&lines[0]),
                "command line exceeds 8388608 bytes and was discarded"
            );
        }
    }
}

#[test]
fn om_06_bad_lines_are_refused_one_by_one() {
    let commands = "`user`, `approve`, `approval_mode`, `reload`, `cancel`, `quit`";
    let unknown = |cmd: &str| format!("unknown variant `{cmd}`, expected one of {commands}");
    let mut rig = Rig::opened();
    for (line, text) in [
        (r#"{"cmd":"reboot"}"#, unknown("reboot")),
        (r#"{"cmd":"USER","text":"x"}"#, unknown("USER")),
        ("{}", "missing field `cmd`".into()),
        (
            r#"{"cmd":5}"#,
            "invalid type: a number, expected a string in `cmd`".into(),
        ),
        (r#"{"cmd":"user"}"#, "missing field `text`".into()),
        (
            r#"{"cmd":"approve","approval_id":"x"}"#,
            "missing field `approved`".into(),
        ),
        (r#"{"cmd":"approval_mode"}"#, "missing field `mode`".into()),
    ] {
        let refusal = refused(&mut rig, line);
        assert!(
            refusal.starts_with(&format!("bad command line: {text}")),
            "{refusal}"
        );
    }
    for line in [
        "not json",
        "[1,2]",
        r#"["cancel"]"#,
        r#""str""#,
        "null",
        "42",
        r#"{"cmd":"user","text":5}"#,
        r#"{"cmd":"user","text":null}"#,
        r#"{"cmd":"approve","approval_id":"x","approved":"yes"}"#,
        r#"{"cmd":"approve","approval_id":7,"approved":true}"#,
        r#"{"cmd":"user","text":"a","text":"b"}"#,
        r#"{"cmd":"user","text":"a","t\u0065xt":"b"}"#,
        r#"{"cmd":"cancel"} {"cmd":"cancel"}"#,
        r#"{"cmd":"user","text":"\ud800"}"#,
        r#"{"cmd":"cancel","x":{"a":1,"a":2}}"#,
        "{\"cmd\":\"user\",\"text\":\"a\u{0}\"}",
        "\u{feff}{\"cmd\":\"cancel\"}",
    ] {
        let text = refused(&mut rig, line);
        assert!(
            text.starts_with("bad command line: ") && text.len() > 20,
            "{line}: {text}"
        );
    }
    rig.user("unharmed");
    rig.call();
}

#[test]
fn om_06_a_long_unknown_word_is_not_echoed_whole() {
    let mut rig = Rig::opened();
    let word = "é".repeat(100_000);
    assert!(refused(&mut rig, &format!(r#"{{"cmd":"{word}"}}"#)).len() < 1_000);
}

#[test]
fn om_06_blank_lines_and_extra_members_mean_nothing() {
    let mut rig = Rig::opened();
    rig.raw(b"\n  \t \r\n\r\n");
    assert_eq!((rig.lines().len(), rig.calls().len()), (0, 0));
    rig.host(r#"{"cmd":"cancel","text":5,"extra":1e999}"#);
    rig.call();
}

#[test]
fn f03_crlf_and_blank_lines() {
    let input = case("F03-crlf-and-blank-lines");
    for size in [1, 3, input.len()] {
        let mut rig = Rig::opened();
        input.chunks(size).for_each(|chunk| rig.raw(chunk));
        assert_eq!(rig.lines(), [""; 0]);
        let calls = rig.calls();
        let Command::Prompt(prompt) = &calls[0].command else {
            panic!()
        };
        assert_eq!(prompt.content, [Block::Text("a\r\nb".into())]);
        assert_eq!(calls[1].command, Command::Close { drain: true });
    }
}

#[test]
fn f04_a_too_long_line_is_skipped_and_reading_goes_on() {
    let input = case("F04-too-long-line-then-recover");
    let mut rig = Rig::opened();
    input.chunks(65_536).for_each(|chunk| rig.raw(chunk));
    assert_eq!(rig.labels(), ["protocol_error"]);
    let Command::Prompt(prompt) = rig.call().command else {
        panic!()
    };
    assert_eq!(prompt.content, [Block::Text("after".into())]);
}

#[test]
fn f06_a_line_that_is_not_utf8_does_nothing_else() {
    let input = case("F06-line-that-is-not-utf8");
    for cut in 0..input.len() {
        let mut rig = Rig::opened();
        rig.raw(&input[..cut]);
        rig.raw(&input[cut..]);
        assert_eq!(
            rig.labels(),
            ["protocol_error", "protocol_error", "protocol_error"]
        );
        let Command::Prompt(prompt) = rig.call().command else {
            panic!()
        };
        assert_eq!(prompt.content, [Block::Text("中 ok".into())]);
    }
}

#[test]
fn j01_half_a_surrogate_pair_is_refused() {
    let mut rig = Rig::opened();
    rig.raw(&case("J01-half-a-surrogate-pair"));
    assert_eq!(rig.labels(), ["protocol_error"]);
    let Command::Prompt(prompt) = rig.call().command else {
        panic!()
    };
    assert_eq!(prompt.content, [Block::Text("whole 🦀".into())]);
}

#[test]
fn j02_nan_and_infinity_are_refused() {
    let mut rig = Rig::opened();
    rig.raw(&case("J02-nan-and-infinity"));
    // Line 3 is taken, so line 4 finds a turn in flight.
    let lines = rig.lines();
    assert_eq!(
        labels(&lines),
        ["protocol_error", "protocol_error", "protocol_error"]
    );
    assert!(refusal(&lines[0]).starts_with("bad command line: "));
    assert!(refusal(&lines[1]).starts_with("bad command line: "));
    assert_eq!(refusal(&lines[2]), BUSY);
    let Command::Prompt(prompt) = rig.call().command else {
        panic!()
    };
    assert_eq!(prompt.content, [Block::Text("c".into())]);
}

#[test]
fn j04_a_hundred_thousand_brackets_are_refused() {
    let mut rig = Rig::opened();
    rig.raw(&case("J04-a-hundred-thousand-brackets"));
    assert_eq!(rig.labels(), ["protocol_error"]);
    let Command::Prompt(prompt) = rig.call().command else {
        panic!()
    };
    assert_eq!(prompt.content, [Block::Text("y".into())]);
}
