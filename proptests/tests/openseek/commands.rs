//! Commands: written in one order, read back equal, and what is said of a line that is none.

use proptest::prelude::*;
use turnwire::json::Members;
use turnwire::protocol::openseek::wire::*;
use turnwire_proptests::fuzz::models::openseek_host_again;

use crate::lines;

fn written(command: &Command<'_>) -> String {
    let mut out = Vec::new();
    command.encode(&mut out);
    String::from_utf8(out).unwrap()
}

/// What is said of a line that is no command.
fn refused(line: &str, shapes: Shapes) -> String {
    let mut members = Members::new();
    match Command::read(line.as_bytes(), shapes, &mut members) {
        Ok(command) => panic!("{line} is {command:?}"),
        Err(unread) => unread.to_string(),
    }
}

#[test]
fn os_a01_os_01_os_10_every_command_reads_and_is_written_byte_for_byte() {
    let mut names = std::collections::BTreeSet::new();
    for (file, shapes) in [
        ("host.jsonl", Shapes::Seed),
        ("host-newer.jsonl", Shapes::Newer),
    ] {
        for line in lines(file) {
            let mut members = Members::new();
            let command = Command::read(line.as_bytes(), shapes, &mut members).unwrap();
            assert_eq!(written(&command), line);
            names.insert(command.name());
            assert_eq!(
                openseek_host_again(line.as_bytes(), shapes),
                Some(Ok(())),
                "{line}"
            );
            // Every command of the contract is one of newer programs.
            let mut members = Members::new();
            assert!(Command::read(line.as_bytes(), Shapes::Newer, &mut members).is_ok());
        }
    }
    assert_eq!(names, Command::NAMES.into_iter().collect());
}

#[test]
fn os_04_what_was_added_later_may_be_missing() {
    let mut members = Members::new();
    let mut read =
        |line: &str| written(&Command::read(line.as_bytes(), Shapes::Seed, &mut members).unwrap());
    assert_eq!(
        read(r#"{"command":"steer","text":"x"}"#),
        r#"{"command":"steer","kind":"prompt","text":"x"}"#
    );
    assert_eq!(
        read(r#"{"text":"x","command":"prompt","more":1}"#),
        r#"{"command":"prompt","text":"x"}"#
    );
    for auto in ["false", "\"yes\"", "1", "null", "[true]"] {
        let line = format!(r#"{{"command":"goal","action":"set","text":"x","auto":{auto}}}"#);
        assert_eq!(
            read(&line),
            r#"{"command":"goal","action":"set","text":"x"}"#
        );
    }
    // Of a member that stands twice the last counts.
    assert_eq!(
        read(r#"{"command":"cancel","command":"compact"}"#),
        r#"{"command":"compact"}"#
    );
    // A name of a steer is of newer programs, and passed over here.
    assert_eq!(
        read(r#"{"command":"steer","text":"x","submission_id":7}"#),
        r#"{"command":"steer","kind":"prompt","text":"x"}"#
    );
}

#[test]
fn os_a04_os_03_every_text_comes_out_byte_for_byte() {
    const JOB: &str = "invalid background job command";
    const GOAL: &str = r#"expected {"action": "set", "text": ...} or {"action": "clear"}"#;
    const NONE: &str = r#"expected a {"command": ...} object"#;
    const TEXT: &str = r#"expected a string "text" field"#;
    for (line, text) in [
        (r#"{"command":"prompt"}"#, TEXT),
        (
            r#"{"command":"prompt","text":7,"submission_id":null}"#,
            TEXT,
        ),
        (
            r#"{"command":"prompt","text":"a","submission_id":null}"#,
            r#"expected a string "submission_id" field"#,
        ),
        (
            r#"{"command":"prompt","text":"a","submission_id":7}"#,
            r#"expected a string "submission_id" field"#,
        ),
        (r#"{"command":"steer","kind":"runtime"}"#, TEXT),
        (r#"{"command":"steer","kind":7,"text":null}"#, TEXT),
        (
            r#"{"command":"steer","kind":"runtime","text":"a"}"#,
            "unknown steer kind: runtime",
        ),
        (
            r#"{"command":"steer","kind":"","text":"a"}"#,
            "unknown steer kind: ",
        ),
        (
            r#"{"command":"steer","kind":null,"text":"a"}"#,
            r#"expected a string "kind" field"#,
        ),
        (
            r#"{"command":"steer","kind":["prompt"],"text":"a"}"#,
            r#"expected a string "kind" field"#,
        ),
        (r#"{"command":"jobs_snapshot"}"#, JOB),
        (r#"{"command":"jobs_snapshot","request_id":""}"#, JOB),
        (r#"{"command":"jobs_snapshot","request_id":1}"#, JOB),
        (
            r#"{"command":"job_stop","request_id":"","generation":"g","job_id":"j"}"#,
            JOB,
        ),
        (
            r#"{"command":"job_stop","request_id":"r","generation":"..","job_id":"j"}"#,
            JOB,
        ),
        (
            r#"{"command":"job_stop","request_id":"r","generation":"g","job_id":"a/b"}"#,
            JOB,
        ),
        (
            r#"{"command":"job_stop","request_id":"r","generation":"g"}"#,
            JOB,
        ),
        (r#"{"command":"goal"}"#, GOAL),
        (r#"{"command":"goal","action":"set"}"#, GOAL),
        (r#"{"command":"goal","action":"set","text":null}"#, GOAL),
        (r#"{"command":"goal","action":"get","text":"a"}"#, GOAL),
        (r#"{"command":"goal","action":7}"#, GOAL),
        (
            r#"{"command":"approval","id":"a"}"#,
            r#"expected a boolean "allow" field"#,
        ),
        (
            r#"{"command":"approval","id":"a","allow":"yes"}"#,
            r#"expected a boolean "allow" field"#,
        ),
        (
            r#"{"command":"approval"}"#,
            r#"expected a string "id" field"#,
        ),
        (
            r#"{"command":"approval","id":7,"allow":true}"#,
            r#"expected a string "id" field"#,
        ),
        (r#"{"command":"reboot"}"#, "unknown command: reboot"),
        (r#"{"command":""}"#, "unknown command: "),
        (r#"{"command":"a\"b\n"}"#, "unknown command: a\"b\n"),
        (r#"{"command":7}"#, NONE),
        (r#"{"command":null}"#, NONE),
        ("{}", NONE),
        ("[]", NONE),
        ("7", NONE),
        ("null", NONE),
        (r#""cancel""#, NONE),
    ] {
        assert_eq!(refused(line, Shapes::Seed), text, "{line}");
        assert_eq!(refused(line, Shapes::Newer), text, "{line}");
        assert!(CommandFault::is_text(text), "{text}");
    }
    assert_eq!(BLANK_GOAL, "goal text must not be blank");
    assert!(
        ![BLANK_GOAL, "", "Too much is waiting"]
            .map(CommandFault::is_text)
            .contains(&true)
    );
    // A name is repeated whole, however long it is.
    let long = "x".repeat(5_000);
    let line = format!(r#"{{"command":"{long}"}}"#);
    assert_eq!(
        refused(&line, Shapes::Seed),
        format!("unknown command: {long}")
    );
}

#[test]
fn os_a11_a_line_that_isnt_json_is_told_from_one_that_is_no_command() {
    for line in [
        "",
        "{",
        "cancel",
        "{\"command\":\"cancel\"}}",
        "{'command':'cancel'}",
        "\u{1}",
    ] {
        let mut members = Members::new();
        let unread = Command::read(line.as_bytes(), Shapes::Seed, &mut members).unwrap_err();
        assert!(matches!(unread, Unread::NotJson(_)), "{line}");
        let text = unread.to_string();
        assert!(
            text.starts_with("command stream: ") && text.len() > 20 && CommandFault::is_text(&text),
            "{text}"
        );
    }
    let mut members = Members::new();
    let unread = Command::read(b"{\"command\":\"\xff\"}", Shapes::Seed, &mut members);
    assert!(matches!(unread, Err(Unread::NotJson(_))));
}

#[test]
fn os_07_a_blank_goal_can_be_read() {
    for text in ["", " ", "\n\t", "\u{3000}"] {
        let command = Command::GoalSet {
            text: text.into(),
            auto: true,
        };
        let line = written(&command);
        let mut members = Members::new();
        let read = Command::read(line.as_bytes(), Shapes::Seed, &mut members);
        assert_eq!(read, Ok(command));
    }
}

#[test]
fn os_08_a_notice_is_no_steer_of_a_host() {
    assert_eq!(
        refused(
            r#"{"command":"steer","kind":"notice","text":"a"}"#,
            Shapes::Seed
        ),
        "unknown steer kind: notice"
    );
}

#[test]
fn os_04_newer_shapes_of_commands_are_read_where_they_are_wanted() {
    let content = r#"{"command":"prompt","content":"a"}"#;
    assert_eq!(
        refused(content, Shapes::Seed),
        r#"expected a string "text" field"#
    );
    let mut members = Members::new();
    let read = |line: &str, members: &mut Members| {
        written(&Command::read(line.as_bytes(), Shapes::Newer, members).unwrap())
    };
    assert_eq!(
        read(content, &mut members),
        r#"{"command":"prompt","text":"a"}"#
    );
    let one = r#"{"command":"steer","kind":"command","content":[{"type":"text","text":"a"}],"submission_id":"s"}"#;
    assert_eq!(
        read(one, &mut members),
        r#"{"command":"steer","kind":"command","text":"a","submission_id":"s"}"#
    );
    let images = r#"{"command":"prompt","text":"a","images":["data:image/png;base64,AA=="]}"#;
    assert_eq!(
        read(images, &mut members),
        r#"{"command":"prompt","content":[{"type":"text","text":"a"},{"type":"image","media_type":"image/png","data":"AA=="}]}"#
    );
    let none = r#"{"command":"prompt","text":"a","images":[]}"#;
    assert_eq!(
        read(none, &mut members),
        r#"{"command":"prompt","text":"a"}"#
    );
    // The contract's own reader sees the text alone.
    let seed = Command::read(images.as_bytes(), Shapes::Seed, &mut members).unwrap();
    assert_eq!(written(&seed), r#"{"command":"prompt","text":"a"}"#);
    // `content` that is there counts, whatever stands beside it.
    for bad in [
        r#"{"command":"prompt","content":7,"text":"a"}"#,
        r#"{"command":"prompt","content":null,"text":"a"}"#,
        r#"{"command":"steer","content":[{"type":"video"}],"text":"a"}"#,
        r#"{"command":"prompt","text":"a","images":["http://x/y.png"]}"#,
        r#"{"command":"prompt","text":"a","images":"data:image/png;base64,AA=="}"#,
    ] {
        assert!(
            refused(bad, Shapes::Newer).starts_with("invalid content: "),
            "{bad}"
        );
    }
    assert_eq!(
        refused(
            r#"{"command":"steer","content":"a","submission_id":null}"#,
            Shapes::Newer
        ),
        r#"expected a string "submission_id" field"#
    );
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ \\t\\n]{0,3}",
        Just("\u{2028}\u{0}\"\\".to_owned())
    ]
}

fn component() -> impl Strategy<Value = Component<'static>> {
    "[A-Za-z0-9_.-]{1,30}".prop_filter_map("one component", Component::new)
}

fn content(newer: bool) -> impl Strategy<Value = Content<'static>> {
    let part = prop_oneof![
        text().prop_map(|text| Part::Text(text.into())),
        (text(), text()).prop_map(|(kind, data)| Part::Image {
            media_type: kind.into(),
            data: data.into()
        }),
    ];
    let parts = prop::collection::vec(part, 0..4).prop_map(Content::parts);
    let plain = || text().prop_map(Content::text);
    prop_oneof![
        1 => plain(),
        u32::from(newer) => parts,
        1 => plain(),
    ]
}

fn command(newer: bool) -> impl Strategy<Value = Command<'static>> {
    let kind = prop::sample::select(vec![SteerKind::Prompt, SteerKind::Command]);
    let id = || prop::option::of(text().prop_map(|text| text.into()));
    let request = || text().prop_filter_map("not empty", NonEmpty::new);
    prop_oneof![
        (content(newer), id()).prop_map(|(content, submission_id)| Command::Prompt {
            content,
            submission_id
        }),
        (kind, content(newer), id()).prop_map(move |(kind, content, id)| Command::Steer {
            kind,
            content,
            submission_id: id.filter(|_| newer),
        }),
        Just(Command::Compact),
        Just(Command::Cancel),
        request().prop_map(|request_id| Command::JobsSnapshot { request_id }),
        (request(), component(), component()).prop_map(|(request_id, generation, job_id)| {
            Command::JobStop {
                request_id,
                generation,
                job_id,
            }
        }),
        (text(), any::<bool>()).prop_map(|(text, auto)| Command::GoalSet {
            text: text.into(),
            auto
        }),
        Just(Command::GoalClear),
        (text(), any::<bool>()).prop_map(|(id, allow)| Command::Approval {
            id: id.into(),
            allow
        }),
    ]
}

proptest! {
    #[test]
    fn os_a01_l10_every_command_comes_back_as_it_was(seed in command(false), newer in command(true)) {
        for (command, shapes) in [(seed, Shapes::Seed), (newer, Shapes::Newer)] {
            let line = written(&command);
            let mut members = Members::new();
            prop_assert_eq!(Command::read(line.as_bytes(), shapes, &mut members), Ok(command), "{}", line);
            prop_assert!(!line.contains('\n'));
        }
    }

    #[test]
    fn os_03_any_bytes_are_a_command_or_have_a_text(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            "\\{\"command\":\"(prompt|steer|goal|approval|job_stop)\",\"(text|kind|action|id|content)\":(7|null|\"x\"|\\[\\])\\}"
                .prop_map(String::into_bytes),
        ],
    ) {
        for shapes in [Shapes::Seed, Shapes::Newer] {
            let mut members = Members::new();
            if let Err(unread) = Command::read(&bytes, shapes, &mut members) {
                prop_assert!(!unread.to_string().is_empty());
            }
        }
    }
}
