//! Corners of omp's observer: what a stricter, or a laxer, reading would get wrong. Each stream that keeps the contract
//! has a neighbour that breaks it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use turnwire::frame::{Place, Split, SplitKind};
use turnwire::protocol::observer::{Dir, Observer, Sides};
use turnwire::protocol::omp::{ObserverConfig, Omp};

const READY: &str = r#"{"type":"ready","protocolVersion":1,"supportedProtocolVersions":[1,2],"maxFrameBytes":1048576,"maxReassembledFrameBytes":67108864}"#;
const TOOLS: &str = r#"{"id":"t","type":"set_host_tools","tools":[{"name":"lookup","description":"Looks up","parameters":{"type":"object"}}]}"#;
const TOOLS_SET: &str = r#"{"id":"t","type":"response","command":"set_host_tools","success":true,"data":{"toolNames":["lookup"]}}"#;
const NO_TOOLS: &str = r#"{"id":"n","type":"set_host_tools","tools":[]}"#;
const NO_TOOLS_SET: &str = r#"{"id":"n","type":"response","command":"set_host_tools","success":true,"data":{"toolNames":[]}}"#;
const CALL: &str =
    r#"{"type":"host_tool_call","id":"h1","toolCallId":"c1","toolName":"lookup","arguments":{}}"#;
const RESULT: &str = r#"{"type":"host_tool_result","id":"h1","result":{"content":[{"type":"text","text":"found"}]}}"#;
const CANCEL: &str = r#"{"type":"host_tool_cancel","id":"h9","targetId":"h1"}"#;
const STATE: &str = r#"{"id":"g","type":"abort_bash"}"#;
const STATE_TOLD: &str = r#"{"id":"g","type":"response","command":"abort_bash","success":true}"#;

/// What is wrong with the lines, weightiest first: `>` of the host, `<` of the agent, `.` the end of input, `!` the exit
/// code.
fn judged(sides: Sides, lines: &[(char, &[u8])]) -> Vec<String> {
    let mut observer = Observer::<Omp>::new(ObserverConfig::default(), sides);
    let mut found = Vec::new();
    let mut take = |observer: &mut Observer<Omp>| {
        while let Some(finding) = observer.poll_finding() {
            found.push((
                finding.severity,
                format!("{} {}", finding.rule.id, finding.severity),
            ));
        }
    };
    for (index, (mark, text)) in lines.iter().enumerate() {
        let place = Place {
            line: index as u64 + 1,
            offset: 0,
        };
        let what = SplitKind::Line(text);
        match mark {
            '>' if sides == Sides::Agent => {}
            '>' => drop(observer.handle_line(Dir::Host, Split { place, what })),
            '<' => drop(observer.handle_line(Dir::Agent, Split { place, what })),
            '.' => observer.handle_end(Dir::Host),
            '!' => observer.handle_exit(std::str::from_utf8(text).unwrap().parse().unwrap()),
            other => panic!("{other}"),
        }
        take(&mut observer);
    }
    observer.finish();
    take(&mut observer);
    found.sort_by_key(|(severity, _)| std::cmp::Reverse(*severity));
    found.into_iter().map(|(_, text)| text).collect()
}

/// A stream of text, where both sides are seen.
fn both(lines: &[(char, &str)]) -> Vec<String> {
    let lines: Vec<(char, &[u8])> = lines
        .iter()
        .map(|(mark, text)| (*mark, text.as_bytes()))
        .collect();
    judged(Sides::Both, &lines)
}

/// A stream of text, of which only the agent's lines are seen.
fn agent(lines: &[&str]) -> Vec<String> {
    let lines: Vec<(char, &[u8])> = lines.iter().map(|text| ('<', text.as_bytes())).collect();
    judged(Sides::Agent, &lines)
}

const NOTHING: [&str; 0] = [];

/// The agent replaces bytes that aren't UTF-8: the result without its shape is a command that it doesn't know, the one
/// with it settles its call.
#[test]
fn omp_02_a_side_line_that_isnt_utf8_is_read_as_the_agent_reads_it() {
    let shapeless = b"{\"type\":\"host_tool_result\",\"id\":\"h1\",\"result\":{\"x\":\"\xff\"}}";
    let whole = b"{\"type\":\"host_tool_result\",\"id\":\"h1\",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\xff\"}]}}";
    let answer = br#"{"id":"h1","type":"response","command":"host_tool_result","success":false,"error":"Unknown command: host_tool_result"}"#;
    let story = |result: &'static [u8]| {
        let mut lines: Vec<(char, &[u8])> = vec![
            ('<', READY.as_bytes()),
            ('>', TOOLS.as_bytes()),
            ('<', TOOLS_SET.as_bytes()),
            ('<', CALL.as_bytes()),
            ('>', result),
        ];
        lines.push(('<', answer));
        lines
    };
    assert_eq!(
        judged(Sides::Both, &story(shapeless)),
        ["OMP-02.f info", "OMP-02.g info"]
    );
    assert_eq!(
        judged(Sides::Both, &story(whole)),
        ["OMP-02.d error", "OMP-02.f info"]
    );
    // And it has settled the call: an update of it is late.
    let mut settled = story(whole);
    settled.pop();
    settled.push((
        '>',
        br#"{"type":"host_tool_update","id":"h1","partialResult":{"content":[]}}"#,
    ));
    assert_eq!(
        judged(Sides::Both, &settled),
        ["OMP-02.f info", "OMP-11.c info"]
    );
}

#[test]
fn omp_02_bad_lines_of_a_host_are_told_apart() {
    let unnamed = r#"{"type":"response","success":false,"error":"Unknown command: undefined"}"#;
    let parse = r#"{"type":"response","command":"parse","success":false,"error":"Failed to parse command: no"}"#;
    // `null` is answered as what isn't JSON, another value as a command without a name, in any order.
    for (first, second) in [(parse, unnamed), (unnamed, parse)] {
        let lines = [
            ('<', READY),
            ('>', "null"),
            ('>', "[1]"),
            ('<', first),
            ('<', second),
        ];
        assert_eq!(both(&lines), ["OMP-02.f info", "OMP-02.f info"]);
    }
    let twice = [
        ('<', READY),
        ('>', "null"),
        ('>', "[1]"),
        ('<', parse),
        ('<', parse),
    ];
    assert_eq!(
        both(&twice),
        ["OMP-02.c error", "OMP-02.f info", "OMP-02.f info"]
    );
    let marked = [
        ('<', READY),
        ('>', "\u{feff}{\"id\":\"g\",\"type\":\"abort_bash\"}"),
        ('<', STATE_TOLD),
    ];
    assert_eq!(both(&marked), ["OMP-02.f info"]);
    let another = [marked[0], marked[1], ('<', NO_TOOLS_SET)];
    assert_eq!(both(&another)[..1], ["OMP-02.a error"]);
    // The last of two members counts.
    let members = [
        ('<', READY),
        (
            '>',
            r#"{"id":"x","type":"abort","type":"abort_bash","id":"g"}"#,
        ),
        ('<', STATE_TOLD),
    ];
    assert_eq!(both(&members), ["OMP-02.f info"]);
    let first_member = [
        members[0],
        members[1],
        (
            '<',
            r#"{"id":"x","type":"response","command":"abort","success":true}"#,
        ),
    ];
    assert_eq!(both(&first_member)[..1], ["OMP-02.a error"]);
}

/// What isn't owed an answer because nothing is left of it.
#[test]
fn omp_02_a_line_of_white_space_alone_is_passed_over() {
    let blank = "\u{feff}\u{a0}";
    assert_eq!(both(&[('<', READY), ('>', blank)]), ["OMP-02.f info"]);
    let parse = r#"{"type":"response","command":"parse","success":false,"error":"no"}"#;
    assert_eq!(
        both(&[('<', READY), ('>', blank), ('<', parse)])[..1],
        ["OMP-02.a error"]
    );
}

/// The id of a command goes where its response doesn't fit, unless it is a short string.
#[test]
fn omp_09_a_response_that_is_too_large_for_its_id_answers_all_the_same() {
    let large = |command: &str| {
        format!(
            r#"{{"type":"response","command":"{command}","success":false,"error":"RPC response exceeded the transport limit"}}"#
        )
    };
    let (right, wrong) = (large("get_messages"), large("get_state"));
    let lines = [
        ('<', READY),
        ('>', r#"{"id":5,"type":"get_messages"}"#),
        ('<', right.as_str()),
    ];
    assert_eq!(both(&lines), ["OMP-02.e info"]);
    let lines = [lines[0], lines[1], ('<', wrong.as_str())];
    assert_eq!(both(&lines)[..2], ["OMP-02.a error", "OMP-02.b warning"]);
}

#[test]
fn omp_11_a_tool_that_is_about_to_be_set_may_be_called() {
    assert_eq!(
        both(&[('<', READY), ('>', TOOLS), ('<', CALL), ('<', TOOLS_SET)]),
        NOTHING
    );
    assert_eq!(
        both(&[
            ('<', READY),
            ('>', NO_TOOLS),
            ('<', NO_TOOLS_SET),
            ('<', CALL)
        ]),
        ["OMP-11.a error"]
    );
    // A tool that was taken back can still be called by a run that has begun.
    assert_eq!(
        both(&[
            ('<', READY),
            ('>', TOOLS),
            ('<', TOOLS_SET),
            ('>', NO_TOOLS),
            ('<', NO_TOOLS_SET),
            ('<', CALL)
        ]),
        ["OMP-11.a warning"]
    );
}

/// Without the host's lines nobody knows whether a set is under way, or a request answered.
#[test]
fn omp_11_12_13_14_the_agent_alone_is_judged_mildly() {
    assert_eq!(agent(&[READY, CALL]), ["OMP-11.a warning"]);
    assert_eq!(agent(&[READY, TOOLS_SET, CALL]), NOTHING);
    assert_eq!(agent(&[READY, TOOLS_SET, CALL, CALL]), ["OMP-11.d info"]);
    let uri = r#"{"type":"host_uri_request","id":"u1","operation":"read","url":"db://a"}"#;
    assert_eq!(agent(&[READY, uri]), ["OMP-12.a warning"]);
    let ask = r#"{"type":"extension_ui_request","id":"d1","method":"ask","questions":[]}"#;
    assert_eq!(agent(&[READY, ask]), ["OMP-13.d warning"]);
    assert_eq!(both(&[('<', READY), ('<', ask)]), ["OMP-13.d error"]);
    let wants = r#"{"id":"w","type":"set_ask_dialog","enabled":true}"#;
    assert_eq!(
        both(&[('<', READY), ('>', wants), ('<', ask)])[..1],
        ["OMP-02.b warning"]
    );
}

/// A response whose payload can't be read may have named any tool.
#[test]
fn omp_11_what_a_response_didnt_tell_is_no_fault_of_the_call() {
    let broken = r#"{"id":"t","type":"response","command":"set_host_tools","success":true,"data":{"toolNames":"lookup"}}"#;
    assert_eq!(
        both(&[('<', READY), ('>', TOOLS), ('<', broken), ('<', CALL)]),
        ["OMP-08.d error"]
    );
    let large = r#"{"id":"t","type":"response","command":"set_host_tools","success":false,"error":"RPC response exceeded the transport limit"}"#;
    assert_eq!(
        both(&[('<', READY), ('>', TOOLS), ('<', large), ('<', CALL)]),
        NOTHING
    );
    let failed =
        r#"{"id":"t","type":"response","command":"set_host_tools","success":false,"error":"no"}"#;
    assert_eq!(
        both(&[('<', READY), ('>', TOOLS), ('<', failed), ('<', CALL)]),
        ["OMP-11.a error"]
    );
}

/// A result and a cancel can cross, until the agent is known to have read the result.
#[test]
fn omp_11_12_13_a_cancel_may_cross_the_answer() {
    let dialog = r#"{"type":"extension_ui_request","id":"h1","method":"confirm","title":"Sure?","message":"m"}"#;
    let yes = r#"{"type":"extension_ui_response","id":"h1","confirmed":true}"#;
    let no_more = r#"{"type":"extension_ui_request","id":"h9","method":"cancel","targetId":"h1"}"#;
    let schemes = r#"{"id":"t","type":"set_host_uri_schemes","schemes":[{"scheme":"db"}]}"#;
    let schemes_set = r#"{"id":"t","type":"response","command":"set_host_uri_schemes","success":true,"data":{"schemes":["db"]}}"#;
    let uri = r#"{"type":"host_uri_request","id":"h1","operation":"read","url":"db://a"}"#;
    let content = r#"{"type":"host_uri_result","id":"h1","content":"x"}"#;
    let uri_cancel = r#"{"type":"host_uri_cancel","id":"h9","targetId":"h1"}"#;
    for (set, is_set, asks, answers, cancels, rule) in [
        (TOOLS, TOOLS_SET, CALL, RESULT, CANCEL, "OMP-11.b"),
        (schemes, schemes_set, uri, content, uri_cancel, "OMP-12.d"),
        (STATE, STATE_TOLD, dialog, yes, no_more, "OMP-13.c"),
    ] {
        let story = |rest: &[(char, &'static str)]| {
            let mut lines = vec![('<', READY), ('>', set), ('<', is_set), ('<', asks)];
            lines.extend(rest);
            both(&lines)
        };
        let late = |rule: &str| format!("{rule} info");
        // The answer was under way.
        assert_eq!(story(&[('>', answers), ('<', cancels)]), NOTHING, "{rule}");
        // It was read: what the host sent behind it has been answered.
        let read = [
            ('>', answers),
            ('>', r#"{"id":"g2","type":"abort_bash"}"#),
            (
                '<',
                r#"{"id":"g2","type":"response","command":"abort_bash","success":true}"#,
            ),
            ('<', cancels),
        ];
        assert_eq!(story(&read), [format!("{rule} warning")]);
        // Before that, it needn't have been.
        let unread = [
            ('>', r#"{"id":"g2","type":"abort_bash"}"#),
            ('>', answers),
            (
                '<',
                r#"{"id":"g2","type":"response","command":"abort_bash","success":true}"#,
            ),
            ('<', cancels),
        ];
        assert_eq!(story(&unread), NOTHING, "{rule}");
        // Twice is once too often, whatever crossed.
        assert_eq!(
            story(&[('>', answers), ('<', cancels), ('<', cancels)]),
            [format!("{rule} warning")]
        );
        assert_eq!(
            story(&[('<', cancels), ('<', cancels)]),
            [format!("{rule} warning")]
        );
        // An answer behind the cancel is passed over.
        let answered = match rule {
            "OMP-11.b" => "OMP-11.c",
            "OMP-12.d" => "OMP-12.e",
            _ => "OMP-13.a",
        };
        assert_eq!(story(&[('<', cancels), ('>', answers)]), [late(answered)]);
    }
    let nobody = CANCEL.replace("\"h1\"", "\"h0\"");
    assert_eq!(
        both(&[
            ('<', READY),
            ('>', TOOLS),
            ('<', TOOLS_SET),
            ('<', CALL),
            ('<', &nobody)
        ]),
        ["OMP-11.b error"]
    );
}

#[test]
fn omp_18_a_signal_s_exit_code_is_no_fault() {
    let left = |code: &'static str| both(&[('<', READY), ('.', ""), ('!', code)]);
    for code in ["0", "1", "129", "130", "137", "143", "-9", "-15"] {
        assert_eq!(left(code), NOTHING, "{code}");
    }
    for code in ["2", "3", "101", "127", "134", "139"] {
        assert_eq!(left(code), ["OMP-18.a error"], "{code}");
    }
    // Before the end of input nobody promised anything.
    assert_eq!(both(&[('<', READY), ('!', "3")]), NOTHING);
}

/// A tree of entries nests two levels an entry.
#[test]
fn omp_17_a_deep_line_is_read_as_any_other() {
    let tree = |depth: usize, id: &str| {
        let open = r#"{"entry":{"id":"e"},"children":["#.repeat(depth);
        let close = "]}".repeat(depth);
        format!(
            r#"{{"id":"{id}","type":"response","command":"get_tree","success":true,"data":{{"tree":[{open}{close}],"leafId":"e"}}}}"#
        )
    };
    let asks = r#"{"id":"r","type":"get_tree"}"#;
    let right = tree(200, "r");
    assert_eq!(both(&[('<', READY), ('>', asks), ('<', &right)]), NOTHING);
    let wrong = tree(200, "other");
    assert_eq!(
        both(&[('<', READY), ('>', asks), ('<', &wrong)])[..1],
        ["OMP-02.a error"]
    );
    // Nobody reads this one.
    let endless = format!(
        r#"{{"type":"get_tree","tree":{}{}}}"#,
        "[".repeat(70_000),
        "]".repeat(70_000)
    );
    assert_eq!(both(&[('<', READY), ('<', &endless)]), ["OMP-17.a info"]);
}

/// A reply that failed and that another one follows in its step owes no results; one that asked for tools does.
#[test]
fn omp_03_calls_of_a_reply_that_failed_owe_no_results() {
    let usage = r#""usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#;
    let message = |content: &str, stop: &str| {
        format!(
            r#"{{"role":"assistant","content":[{content}],"provider":"p","model":"m",{usage},"stopReason":"{stop}","timestamp":1}}"#
        )
    };
    let call =
        |id: &str| format!(r#"{{"type":"toolCall","id":"{id}","name":"read","arguments":{{}}}}"#);
    let story = |stop: &str| {
        let first = message(&call("c1"), stop);
        let second = message(r#"{"type":"text","text":"so"}"#, "stop");
        let pair = |body: &str, id: &str| {
            ["start", "end"].map(|half| {
                format!(r#"{{"type":"message_{half}","message":{body},"messageId":"{id}"}}"#)
            })
        };
        let mut lines = vec![
            READY.to_owned(),
            r#"{"type":"agent_start"}"#.to_owned(),
            r#"{"type":"turn_start"}"#.to_owned(),
        ];
        lines.extend(pair(&first, "m1"));
        if stop == "error" {
            lines.extend(pair(&second, "m2"));
            lines.extend(pair(&message(&call("c2"), "toolUse"), "m3"));
        }
        lines
    };
    let end = |message: &str, results: &str| {
        format!(r#"{{"type":"turn_end","message":{message},"toolResults":[{results}]}}"#)
    };
    let found = |lines: &[String]| {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        agent(&lines)
    };
    let result = r#"{"role":"toolResult","toolCallId":"c2","toolName":"read","content":[{"type":"text","text":"r"}],"isError":false,"timestamp":1}"#;
    let mut kept = story("error");
    for half in ["start", "end"] {
        kept.push(format!(
            r#"{{"type":"message_{half}","message":{result},"messageId":"m4"}}"#
        ));
    }
    kept.push(end(&message(&call("c2"), "toolUse"), result));
    let of_rule = |found: Vec<String>| {
        found
            .into_iter()
            .filter(|it| it.starts_with("OMP-03.o"))
            .count()
    };
    assert_eq!(of_rule(found(&kept)), 0);
    let mut broken = story("toolUse");
    broken.push(end(&message(&call("c1"), "toolUse"), ""));
    assert_eq!(of_rule(found(&broken)), 1);
}

/// Lines, as [`both`] takes them, and the end of the process; what is found of these rules.
fn of_rules(rules: &[&str], lines: &[(char, &str)]) -> Vec<String> {
    let lines = [&[('<', READY)], lines, &[('.', ""), ('!', "0")]].concat();
    let mut found = both(&lines);
    found.retain(|it| rules.iter().any(|rule| it.starts_with(rule)));
    found
}

const PROMPT: (char, &str) = ('>', r#"{"id":"p","type":"prompt","message":"a"}"#);
const BROKEN: (char, &str) = ('>', r#"{"id":"p","type":"prompt","text":"a"}"#);
const TAKEN: (char, &str) = (
    '<',
    r#"{"id":"p","type":"response","command":"prompt","success":true}"#,
);
const REFUSED: (char, &str) = (
    '<',
    r#"{"id":"p","type":"response","command":"prompt","success":false,"error":"no"}"#,
);
const ENDED: (char, &str) = (
    '<',
    r#"{"type":"prompt_result","id":"p","agentInvoked":true,"status":"completed","sessionSettled":true}"#,
);
const SETTLED: (char, &str) = ('<', r#"{"type":"session_settled"}"#);

/// Two prompts of one id, of which the second is broken and refused while a hook still judges the first: the success is
/// the first one's, and it owes one end.
#[test]
fn omp_03_of_two_prompts_of_one_id_the_broken_one_is_refused() {
    let of = |lines: &[_]| of_rules(&["OMP-02.a", "OMP-02.b", "OMP-03"], lines);
    let told = [PROMPT, BROKEN, REFUSED, TAKEN];
    assert_eq!(of(&[&told[..], &[ENDED, SETTLED]].concat()), [""; 0]);
    let twice = of(&[&told[..], &[ENDED, ENDED, SETTLED]].concat());
    assert_eq!(twice, ["OMP-03.a error"]);
    let never = of(&[&told[..], &[SETTLED]].concat());
    assert_eq!(never.len(), 1, "{never:?}");
    // Both are refused, in whatever order.
    assert_eq!(of(&[PROMPT, BROKEN, REFUSED, REFUSED]), [""; 0]);
    assert_eq!(
        of(&[PROMPT, BROKEN, TAKEN, REFUSED, ENDED, SETTLED]),
        [""; 0]
    );
}

/// A failure can be a refusal, or the late failure of a prompt of the same id that was accepted before.
#[test]
fn omp_03_a_refusal_may_be_the_late_failure_of_another_prompt_of_its_id() {
    let of = |lines: &[_]| of_rules(&["OMP-02.a", "OMP-02.b", "OMP-03"], lines);
    let first = [PROMPT, TAKEN, PROMPT, REFUSED];
    for rest in [
        &[ENDED, SETTLED][..],
        &[REFUSED, SETTLED],
        &[REFUSED, ENDED, SETTLED],
        &[TAKEN, ENDED, SETTLED],
        &[TAKEN, ENDED, ENDED, SETTLED],
    ] {
        assert_eq!(of(&[&first[..], rest].concat()), [""; 0], "{rest:?}");
    }
    let never = of(&[&first[..], &[TAKEN, TAKEN, ENDED, ENDED, SETTLED]].concat());
    assert_eq!(never.len(), 1, "{never:?}");
    let never = of(&[&first[..], &[TAKEN, SETTLED]].concat());
    assert_eq!(never.len(), 1, "the second owes an end: {never:?}");
}

/// A broken command is refused at once, also before one that must wait for its turn and has its id.
#[test]
fn omp_04_a_broken_command_of_the_same_id_keeps_no_order() {
    let asked = [
        ('>', r#"{"id":"a","type":"get_messages"}"#),
        ('>', r#"{"id":"m","type":"set_steering_mode","mode":"all"}"#),
    ];
    let broken = ('>', r#"{"id":"m","type":"set_steering_mode"}"#);
    let messages = (
        '<',
        r#"{"id":"a","type":"response","command":"get_messages","success":true,"data":{"messages":[]}}"#,
    );
    let refused = (
        '<',
        r#"{"id":"m","type":"response","command":"set_steering_mode","success":false,"error":"no"}"#,
    );
    let set = (
        '<',
        r#"{"id":"m","type":"response","command":"set_steering_mode","success":true}"#,
    );
    let of = |lines: &[_]| of_rules(&["OMP-02.a", "OMP-02.b", "OMP-04"], lines).len();
    let told = [&asked[..], &[broken]].concat();
    assert_eq!(of(&[&told[..], &[refused, messages, set]].concat()), 0);
    assert_eq!(of(&[&asked[..], &[messages, set]].concat()), 0);
    assert_eq!(of(&[&asked[..], &[set, messages]].concat()), 1);
}

#[test]
fn omp_16_a_talk_that_cant_begin_has_its_end_alone() {
    const END: &str = r#"{"type":"live_end","error":"no voice"}"#;
    let start = |id: u8| format!(r#"{{"id":"l{id}","type":"live_start"}}"#);
    let failed = |id: u8| {
        format!(
            r#"{{"id":"l{id}","type":"response","command":"live_start","success":false,"error":"no voice"}}"#
        )
    };
    let (one, two) = (start(1), start(2));
    let (no, never) = (failed(1), failed(2));
    let twice = [
        ('<', READY),
        ('>', &*one),
        ('<', END),
        ('<', &*no),
        ('>', &*two),
        ('<', END),
        ('<', &*never),
    ];
    assert_eq!(both(&twice), [""; 0]);
    assert_eq!(agent(&[READY, END, &no, END, &never]), [""; 0]);
    // Another one may begin without a word of its phase.
    let begun = r#"{"id":"l2","type":"response","command":"live_start","success":true}"#;
    let levels = r#"{"type":"live_levels","input":0.1,"output":0}"#;
    let phaseless = [
        ('<', READY),
        ('>', &*one),
        ('<', END),
        ('<', &*no),
        ('>', &*two),
        ('<', begun),
        ('<', levels),
    ];
    assert_eq!(both(&phaseless), [""; 0]);
    // Nobody has asked for another one.
    let again = [
        ('<', READY),
        ('>', &*one),
        ('<', END),
        ('<', &*no),
        ('<', END),
    ];
    assert_eq!(both(&again), ["OMP-16.a error"]);
}
