//! The reader behind `turnwire check`: which directions there are, recordings, places, and what is in doubt.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail"
)]

use crate::observer_kit;

use observer_kit::*;
use turnwire::check::From;
use turnwire::protocol::observer::{Dir, Sides};
use turnwire::protocol::openmax::Wire;

const HELLO: &str = r#"{"type":"hello","proto":"openmax-stdio/6","protocol_version":6,"session_id":"s","version":"1","project":"/p","continued":false}"#;
const USER: &str = r#"{"cmd":"user","text":"go"}"#;
const BUDGET: &str = r#"{"session_id":"s","type":"budget","used_tokens":1,"context_tokens":9}"#;
const TOKEN: &str = r#"{"session_id":"s","type":"token","text":"Hi"}"#;
const REPLY: &str = r#"{"session_id":"s","type":"message_done","text":"Hi"}"#;
const DONE: &str = r#"{"session_id":"s","type":"done","stop_reason":"stop"}"#;
const ERROR: &str = r#"{"type":"protocol_error","message":"no"}"#;

fn read(lines: &[&str], from: From) -> Report {
    let mut text = lines.join("\n");
    text.push('\n');
    check(text.as_bytes(), from, Wire::V6)
}

#[test]
fn both_directions_are_there_only_if_a_host_line_comes_before_the_first_event() {
    for (lines, sides) in [
        (&[HELLO, USER, BUDGET, TOKEN, REPLY, DONE][..], Sides::Both),
        (&[USER, HELLO, BUDGET, TOKEN, REPLY, DONE], Sides::Both),
        (&[HELLO, BUDGET, TOKEN, REPLY, DONE], Sides::Agent),
        (&[HELLO, BUDGET, TOKEN, REPLY, DONE, USER], Sides::Agent),
        (&[USER, USER], Sides::Host),
    ] {
        let result = read(lines, From::Guess);
        assert_eq!(result.summary.sides, sides, "{lines:?}");
        assert_eq!(result.ids(), [""; 0], "{lines:?}");
        let judged = |id| result.summary.skipped.iter().all(|(rule, _)| rule.id != id);
        assert_eq!(judged("OM-17.a"), sides == Sides::Both);
        assert_eq!(judged("OM-20.a"), sides != Sides::Host);
        assert_eq!(judged("OM-05.a"), sides != Sides::Agent);
        assert!(!judged("OM-25.a"), "nobody told the exit code");
    }
}

#[test]
fn what_a_host_may_not_is_an_error_only_where_no_agent_can_refuse_it() {
    let alone = read(&["nonsense", r#"{"cmd":"reboot"}"#], From::Host);
    assert_eq!(alone.ids(), ["OM-05.a error", "OM-06.a error"]);
    // It is known only later that an agent answers.
    let both = read(
        &[r#"{"cmd":"reboot"}"#, HELLO, ERROR, USER, BUDGET, DONE],
        From::Guess,
    );
    assert_eq!(both.ids(), ["OM-06.a info"]);
    assert_eq!(both.lines[0].0, Dir::Host);
    let guess = read(&[r#"{"cmd":"reboot"}"#], From::Guess);
    assert_eq!(guess.ids(), ["OM-06.a error"]);
}

#[test]
fn a_line_that_nobody_can_place_is_a_warning_and_costs_no_false_alarm() {
    let lines = [HELLO, USER, BUDGET, "????", ERROR, TOKEN, REPLY, DONE];
    let both = read(&lines, From::Both);
    assert_eq!(both.ids(), ["OM-12.a warning"]);
    let agent = read(&[HELLO, BUDGET, "????", TOKEN, REPLY, DONE], From::Agent);
    assert_eq!(agent.ids(), ["OM-12.a error"]);
}

#[test]
fn lines_that_crossed_can_be_read_either_way() {
    // The user command was written while done was on its way.
    let lines = [
        HELLO, USER, BUDGET, TOKEN, REPLY, USER, DONE, BUDGET, TOKEN, REPLY, DONE,
    ];
    assert_eq!(read(&lines, From::Both).ids(), ["OM-18.a info"]);
    // Or it was refused.
    let lines = [HELLO, USER, BUDGET, TOKEN, USER, ERROR, REPLY, DONE];
    assert_eq!(read(&lines, From::Both).ids(), ["OM-18.a info"]);
    // Two in one write: the refusal of the second comes before the first line of the turn.
    let lines = [HELLO, USER, USER, ERROR, BUDGET, TOKEN, REPLY, DONE];
    assert_eq!(read(&lines, From::Both).ids(), ["OM-18.a info"]);
    // But not both.
    let lines = [
        HELLO, USER, BUDGET, TOKEN, USER, ERROR, REPLY, DONE, BUDGET, TOKEN, REPLY, DONE,
    ];
    assert_eq!(
        read(&lines, From::Both).ids(),
        ["OM-18.a info", "OM-17.c error"]
    );
    // And not none of them: a warning, since the file may end too early.
    let lines = [HELLO, USER, BUDGET, TOKEN, USER, REPLY, DONE];
    assert_eq!(
        read(&lines, From::Both).ids(),
        ["OM-18.a info", "OM-17.b warning"]
    );
}

#[test]
fn a_stream_that_was_cut_off_is_no_error() {
    let text = [HELLO, USER, BUDGET, TOKEN].join("\n");
    for end in 1..text.len() {
        let result = check(&text.as_bytes()[..end], From::Guess, Wire::V6);
        assert_eq!(
            result.errors(),
            [""; 0].map(String::from).to_vec(),
            "{end}: {}",
            &text[..end]
        );
    }
    assert_eq!(
        check(text.as_bytes(), From::Guess, Wire::V6).ids(),
        ["OM-24.a warning"]
    );
}

#[test]
fn findings_say_where() {
    let token = r#"{"session_id":"s","type":"token","text":5}"#;
    let result = read(&["", HELLO, USER, BUDGET, token, REPLY, DONE], From::Both);
    let finding = &result.findings[0];
    let place = finding.place.unwrap();
    assert_eq!(
        (finding.rule.id, finding.dir, place.line),
        ("OM-13.b", Dir::Agent, 5)
    );
    let before = HELLO.len() + USER.len() + BUDGET.len() + 4;
    assert_eq!(place.offset, before as u64);
    assert_eq!(
        (&*finding.pointer, finding.span.start),
        ("/text", token.find('5').unwrap())
    );
    assert_eq!(
        finding.to_string(),
        "line 5 (out /text): error [OM-13.b] expected a string, found integer `5` at byte 40 in `text`"
    );
    let args = r#"{"session_id":"s","type":"tool_start","call_id":"c","name":"n","args":[1]}"#;
    let result = read(&[HELLO, args], From::Agent);
    let finding = &result.findings[0];
    assert_eq!((finding.rule.id, &*finding.pointer), ("OM-13.e", "/args"));
    assert_eq!(&args[finding.span.clone()], "[1]");
    // The end of a turn points back at where it began.
    let last = result.findings.last().unwrap();
    assert_eq!((last.rule.id, last.place), ("OM-24.a", None));
    assert_eq!(last.related[0].place.line, 2);
}

#[test]
fn om_32_each_line_has_a_verdict() {
    let result = read(
        &[
            HELLO,
            USER,
            BUDGET,
            "",
            "x",
            r#"{"type":"new"}"#,
            DONE,
            ERROR,
        ],
        From::Both,
    );
    let verdicts: Vec<String> = result
        .lines
        .iter()
        .map(|(dir, line, label, worst)| format!("{line} {} {label} {worst:?}", dir.word()))
        .collect();
    assert_eq!(
        verdicts,
        [
            "1 out hello None",
            "2 in cmd user None",
            "3 out event budget None",
            "5 out unknown Some(Warning)",
            "6 out unknown Some(Error)",
            "7 out event done None",
            "8 out protocol_error None",
        ]
    );
}

#[test]
fn rows_of_a_recording_are_told_apart() {
    let rows = [
        r#"{"dir":"meta","what":"anything"}"#.to_owned(),
        format!(r#"{{"dir":"out","t_ms":1,"line":{HELLO:?}}}"#),
        // Two lines in one write, the first with CR LF.
        format!(
            r#"{{"dir":"in","t_ms":2,"line":{:?}}}"#,
            format!("{USER}\r\n{USER}")
        ),
        format!(r#"{{"dir":"out","t_ms":3,"line":{ERROR:?}}}"#),
        r#"{"dir":"note","text":"nothing of it counts"}"#.to_owned(),
        format!(r#"{{"dir":"out","t_ms":4,"line":{DONE:?}}}"#),
        "[]".to_owned(),
        r#"{"dir":"out"}"#.to_owned(),
        r#"{"dir":"in","line":"","line_b64":"*"}"#.to_owned(),
        r#"{"dir":"in","t_ms":5,"eof":true}"#.to_owned(),
        r#"{"dir":"exit","code":0}"#.to_owned(),
    ];
    let result = check(rows.join("\n").as_bytes(), From::Guess, Wire::V6);
    assert_eq!(result.bad_rows, [7, 8, 9]);
    assert_eq!(result.ids(), ["OM-18.a info"]);
    assert_eq!(result.findings[0].place.unwrap().line, 3);
    let tally = result.summary.tally;
    assert_eq!(
        (tally.host_lines, tally.agent_lines, tally.turns),
        (2, 3, 1)
    );
}

#[test]
fn a_long_line_is_judged_by_its_length() {
    let line = |bytes: usize| {
        let text = "x".repeat(bytes - r#"{"cmd":"user","text":""}"#.len());
        format!(r#"{{"cmd":"user","text":"{text}"}}"#)
    };
    let limit = 8 * 1024 * 1024;
    assert_eq!(read(&[&line(limit)], From::Host).ids(), [""; 0]);
    let long = read(&[&line(limit + 1)], From::Host);
    assert_eq!(long.ids(), ["OM-10.b error"]);
    assert_eq!(long.summary.tally.longest, (limit as u64 + 1, 1));
    // The agent has no limit.
    let token = format!(
        r#"{{"session_id":"s","type":"thinking","text":"{}"}}"#,
        "x".repeat(limit)
    );
    assert_eq!(read(&[HELLO, &token, DONE], From::Agent).ids(), [""; 0]);
}

#[test]
fn nothing_said_is_nothing_found() {
    for text in ["", "\n", " \r\n\t\n"] {
        let result = check(text.as_bytes(), From::Guess, Wire::V6);
        assert_eq!((result.ids().len(), result.lines.len()), (0, 0));
    }
    let rows = r#"{"dir":"in","t_ms":1,"eof":true}
{"dir":"exit","t_ms":9,"code":2,"stderr":"no prior session"}"#;
    assert_eq!(check(rows.as_bytes(), From::Guess, Wire::V6).ids(), [""; 0]);
}
