//! The catalogue of permissions: what is asked, and what an answer means (WIRE-PERM; AX-P01 … AX-P25).

use turnwire::json::{Members, Raw, scan_value};
use turnwire::protocol::agentx::decision::{PayloadFault, Verdict, is_kept, odd_member};
use turnwire::protocol::agentx::policy::{Policy, Preset};
use turnwire::protocol::agentx::wire::{
    AgentLine, Any, CanUseTool, Classification, HostLine, OPEN_RULES, Operation, PermissionUpdate,
};

/// The verdict on the body of a response.
fn of_body(body: &str, policy: &Policy, judge: impl FnOnce(Verdict<'_>)) {
    let line = format!(r#"{{"type":"control_response","response":{body}}}"#);
    let mut members = Members::new();
    let read = HostLine::decode(line.as_bytes(), &OPEN_RULES, &mut members).unwrap();
    let HostLine::Response(response) = &read else {
        panic!("{read:?}");
    };
    judge(Verdict::of_response(response.known().unwrap(), policy));
}

/// The verdict on the payload of a success, in a word.
fn of_payload(payload: &str, policy: &Policy) -> String {
    let value = scan_value(payload.as_bytes(), &OPEN_RULES).unwrap();
    match Verdict::of_payload(Any::from(value), policy) {
        Verdict::Allow { input, updates, .. } => format!(
            "allow {} {}",
            input.map_or("original", Raw::as_str),
            updates.len()
        ),
        Verdict::Deny {
            message, interrupt, ..
        } => format!("deny {message} {interrupt}"),
        Verdict::Failed(why) => format!("failed {why}"),
        Verdict::Refused(fault) => fault.rule().into(),
    }
}

/// The same in each preset.
fn everywhere(payload: &str, expected: &str) {
    for preset in Preset::ALL {
        assert_eq!(
            of_payload(payload, &preset.policy()),
            expected,
            "{}: {payload}",
            preset.name()
        );
    }
}

fn request(text: &str) -> Result<CanUseTool<'_>, ()> {
    let value = scan_value(text.as_bytes(), &OPEN_RULES).unwrap();
    match Operation::decode(value) {
        Ok(Operation::CanUseTool(request)) => Ok(request),
        Ok(_) | Err(_) => Err(()),
    }
}

#[test]
fn ax_p01_p02_p03_p04_p05_a_request_has_its_members() {
    let whole =
        r#"{"subtype":"can_use_tool","tool_name":"Bash","input":{"a":null},"tool_use_id":"t"}"#;
    assert_eq!(odd_member(&request(whole).unwrap()), None);
    assert!(
        request(&whole.replace("can_use_tool", "can_use")).is_err(),
        "AX-P01"
    );
    for name in ["tool_name", "tool_use_id"] {
        assert!(
            request(&whole.replace(name, "other")).is_err(),
            "AX-P02 {name}"
        );
    }
    for input in ["null", "[]", "5", r#""x""#] {
        let odd = whole.replace(r#"{"a":null}"#, input);
        assert_eq!(odd_member(&request(&odd).unwrap()), Some("input"), "AX-P03");
    }
    let with = |more: &str| whole.replacen('{', &format!("{{{more},"), 1);
    let good =
        r#""permission_suggestions":[{"type":"setMode","mode":"plan","destination":"session"}]"#;
    assert_eq!(odd_member(&request(&with(good)).unwrap()), None, "AX-P04");
    for suggestions in [
        "null",
        r#"[{"type":"setMode","mode":"plan"}]"#,
        r#"[{"type":"setMode","mode":"wild","destination":"session"}]"#,
        r#"[{"type":"newMode"}]"#,
        "[5]",
    ] {
        let odd = with(&format!(r#""permission_suggestions":{suggestions}"#));
        let odd = request(&odd).map(|request| odd_member(&request));
        assert_eq!(
            odd,
            Ok(Some("permission_suggestions")),
            "AX-P04 {suggestions}"
        );
    }
    for name in [
        "blocked_path",
        "decision_reason",
        "title",
        "display_name",
        "agent_id",
        "description",
    ] {
        let text = with(&format!(r#""{name}":"x""#));
        assert_eq!(odd_member(&request(&text).unwrap()), None, "AX-P05 {name}");
        let null = with(&format!(r#""{name}":null"#));
        assert_eq!(odd_member(&request(&null).unwrap()), Some(name), "AX-P05");
        assert!(
            request(&with(&format!(r#""{name}":5"#))).is_err(),
            "AX-P05 {name}"
        );
    }
}

#[test]
fn ax_p06_p07_allow_and_deny_with_what_they_need() {
    everywhere(
        r#"{"behavior":"allow","updatedInput":{"a":1},"toolUseID":"t","decisionClassification":"user_permanent"}"#,
        r#"allow {"a":1} 0"#,
    );
    everywhere(r#"{"behavior":"deny","message":"no"}"#, "deny no false");
}

#[test]
fn ax_p08_an_allow_without_an_input() {
    let payload = r#"{"behavior":"allow"}"#;
    assert_eq!(of_payload(payload, &Policy::AGENTX), "AX-P08");
    assert_eq!(of_payload(payload, &Policy::AGENTX_FULL), "AX-P08");
    assert_eq!(of_payload(payload, &Policy::CLAUDE), "allow original 0");
}

#[test]
fn ax_p09_an_input_that_isnt_an_object() {
    for input in ["null", "5", "[]", r#""x""#] {
        let payload = format!(r#"{{"behavior":"allow","updatedInput":{input}}}"#);
        everywhere(&payload, "AX-P09");
    }
}

#[test]
fn ax_p10_an_empty_input_is_the_original() {
    everywhere(
        r#"{"behavior":"allow","updatedInput":{}}"#,
        "allow original 0",
    );
    everywhere(
        r#"{"behavior":"allow","updatedInput":{ }}"#,
        "allow original 0",
    );
}

#[test]
fn ax_p11_an_input_replaces_the_whole() {
    everywhere(
        r#"{"behavior":"allow","updatedInput":{"b":null}}"#,
        r#"allow {"b":null} 0"#,
    );
}

const RULE: &str = r#"{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"ls"}],"behavior":"allow","destination":"session"}"#;

fn with_updates(updates: &str) -> String {
    format!(r#"{{"behavior":"allow","updatedInput":{{}},"updatedPermissions":{updates}}}"#)
}

#[test]
fn ax_p12_updates_of_which_one_is_malformed_are_dropped() {
    for updates in [
        "5".into(),
        "{}".into(),
        "[]".into(),
        "[null]".into(),
        format!("[{RULE},{{}}]"),
        format!("[{RULE},{}]", RULE.replace("addRules", "moveRules")),
        format!("[{}]", RULE.replace("\"allow\"", "\"maybe\"")),
        format!("[{}]", RULE.replace("session", "cloud")),
        format!("[{}]", RULE.replace("\"ls\"", "null")),
        format!("[{}]", RULE.replace("toolName", "tool")),
    ] {
        everywhere(&with_updates(&updates), "allow original 0");
    }
}

#[test]
fn ax_p13_valid_updates_are_applied_where_they_can_be() {
    let payload = with_updates(&format!("[{RULE},{RULE}]"));
    assert_eq!(of_payload(&payload, &Policy::AGENTX), "AX-P13");
    assert_eq!(
        of_payload(&payload, &Policy::AGENTX_FULL),
        "allow original 2"
    );
    assert_eq!(of_payload(&payload, &Policy::CLAUDE), "allow original 2");
    for (destination, kept) in [
        ("userSettings", true),
        ("projectSettings", true),
        ("localSettings", true),
        ("session", false),
        ("cliArg", false),
    ] {
        let text = RULE.replace("session", destination);
        let value = scan_value(text.as_bytes(), &OPEN_RULES).unwrap();
        assert_eq!(is_kept(&PermissionUpdate::decode(value).unwrap()), kept);
    }
}

#[test]
fn ax_p14_updates_that_are_null() {
    everywhere(&with_updates("null"), "AX-P14");
}

#[test]
fn ax_p15_a_classification_that_nobody_knows_counts_as_none() {
    let said = |more: &str, policy: &Policy| {
        let text = format!(r#"{{"behavior":"allow","updatedInput":{{}}{more}}}"#);
        let value = scan_value(text.as_bytes(), &OPEN_RULES).unwrap();
        match Verdict::of_payload(Any::from(value), policy) {
            Verdict::Allow { classification, .. } => Ok(classification.as_str().to_owned()),
            Verdict::Refused(fault) => Err(fault),
            other => panic!("{other:?}"),
        }
    };
    for policy in Preset::ALL.map(Preset::policy) {
        let temporary = Ok("user_temporary".to_owned());
        assert_eq!(said("", &policy), temporary);
        assert_eq!(said(r#","decisionClassification":"x""#, &policy), temporary);
        assert_eq!(said(r#","decisionClassification":5"#, &policy), temporary);
        let permanent = r#","decisionClassification":"user_permanent""#;
        assert_eq!(said(permanent, &policy), Ok("user_permanent".into()));
    }
    let null = r#","decisionClassification":null"#;
    assert_eq!(
        said(null, &Policy::AGENTX),
        Err(PayloadFault::NullClassification)
    );
    assert!(said(null, &Policy::CLAUDE).is_ok());
    let value = scan_value(br#"{"behavior":"deny","message":"n"}"#, &OPEN_RULES).unwrap();
    let verdict = Verdict::of_payload(Any::from(value), &Policy::AGENTX);
    assert!(matches!(
        verdict,
        Verdict::Deny {
            classification: Classification::UserReject,
            ..
        }
    ));
}

#[test]
fn ax_p16_the_id_of_the_call_is_not_compared() {
    everywhere(
        r#"{"behavior":"allow","updatedInput":{},"toolUseID":"other"}"#,
        "allow original 0",
    );
    for id in ["5", "null"] {
        let payload = format!(r#"{{"behavior":"allow","updatedInput":{{}},"toolUseID":{id}}}"#);
        assert_eq!(of_payload(&payload, &Policy::AGENTX), "AX-P16");
        assert_eq!(of_payload(&payload, &Policy::CLAUDE), "allow original 0");
    }
}

#[test]
fn ax_p17_a_deny_says_why() {
    for message in [
        "",
        r#","message":null"#,
        r#","message":5"#,
        r#","message":" ""#,
    ] {
        everywhere(&format!(r#"{{"behavior":"deny"{message}}}"#), "AX-P17");
    }
}

#[test]
fn ax_p18_a_deny_may_end_the_turn() {
    everywhere(
        r#"{"behavior":"deny","message":"no","interrupt":true}"#,
        "deny no true",
    );
    everywhere(
        r#"{"behavior":"deny","message":"no","interrupt":"yes"}"#,
        "AX-P18",
    );
}

#[test]
fn ax_p19_another_behavior_denies() {
    for behavior in [r#""maybe""#, "5", "null", r#""Allow""#] {
        let payload = format!(r#"{{"behavior":{behavior},"updatedInput":{{}}}}"#);
        everywhere(&payload, "AX-P19");
    }
    everywhere("{}", "AX-P19");
}

#[test]
fn ax_p20_wire_perm_002_a_host_that_fails_denies() {
    for policy in Preset::ALL.map(Preset::policy) {
        of_body(
            r#"{"subtype":"error","request_id":"r","error":"callback exploded"}"#,
            &policy,
            |verdict| {
                assert!(!verdict.allows());
                assert_eq!(
                    verdict.message().as_deref(),
                    Some("Tool permission request failed: callback exploded")
                );
            },
        );
        // claude takes any other word for a success, and still judges the payload.
        of_body(
            r#"{"subtype":"nonsense","request_id":"r","response":{"behavior":"allow","updatedInput":{"a":1}}}"#,
            &policy,
            |verdict| assert!(verdict.allows()),
        );
    }
}

#[test]
fn ax_p21_a_success_without_a_payload_denies() {
    for policy in Preset::ALL.map(Preset::policy) {
        of_body(
            r#"{"subtype":"success","request_id":"r"}"#,
            &policy,
            |verdict| {
                assert_eq!(verdict, Verdict::Refused(PayloadFault::NoPayload));
                let message = verdict.message().unwrap();
                assert!(message.starts_with("Tool permission request failed: "));
            },
        );
        for payload in ["null", "[]", "5"] {
            assert_eq!(of_payload(payload, &policy), "AX-P21");
        }
    }
}

#[test]
fn ax_p23_p24_p25_every_kind_of_update_reads_and_writes_back() {
    let full = Policy::AGENTX_FULL;
    for (update, id) in [
        (RULE.to_owned(), "AX-P23"),
        (RULE.replace("addRules", "replaceRules"), "AX-P23"),
        (RULE.replace("addRules", "removeRules"), "AX-P23"),
        (
            r#"{"type":"addRules","rules":[],"behavior":"ask","destination":"cliArg"}"#.into(),
            "AX-P23",
        ),
        (
            r#"{"type":"setMode","mode":"dontAsk","destination":"session"}"#.into(),
            "AX-P24",
        ),
        (
            r#"{"type":"addDirectories","directories":["/a"],"destination":"localSettings"}"#
                .into(),
            "AX-P25",
        ),
        (
            r#"{"type":"removeDirectories","directories":[],"destination":"session"}"#.into(),
            "AX-P25",
        ),
    ] {
        let payload = with_updates(&format!("[{update}]"));
        assert_eq!(of_payload(&payload, &full), "allow original 1", "{id}");
        let value = scan_value(update.as_bytes(), &OPEN_RULES).unwrap();
        let mut out = Vec::new();
        PermissionUpdate::decode(value).unwrap().encode(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), update);
    }
    for mode in ["auto", "wild"] {
        let update = format!(r#"[{{"type":"setMode","mode":"{mode}","destination":"session"}}]"#);
        assert_eq!(
            of_payload(&with_updates(&update), &full),
            "allow original 0",
            "AX-P24"
        );
    }
}

#[test]
fn wire_perm_002_nothing_but_an_allow_that_can_be_read_lets_a_call_run() {
    // Every recorded kind of answer, cut off at each byte and put together again, allows only where it says so.
    let payload = r#"{"behavior":"allow","updatedInput":{"a":1},"toolUseID":"t"}"#;
    for end in 0..payload.len() {
        let mut text = payload[..end].to_owned();
        for tail in ["", "\"", "}", "\"}", "}}", ":1}", "\":1}"] {
            let length = text.len();
            text.push_str(tail);
            if let Ok(value) = scan_value(text.as_bytes(), &OPEN_RULES) {
                for policy in Preset::ALL.map(Preset::policy) {
                    let verdict = Verdict::of_payload(Any::from(value), &policy);
                    let says_so = text.starts_with(r#"{"behavior":"allow""#);
                    assert!(!verdict.allows() || says_so, "{text}");
                }
            }
            text.truncate(length);
        }
    }
}

#[test]
fn ax_s20_raw_payloads_that_hold_a_member_twice_are_not_written() {
    let line = r#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"B","input":{"a":1,"\u0061":2},"tool_use_id":"t"}}"#;
    let (mut members, mut again) = (Members::new(), Members::new());
    let read = AgentLine::decode(line.as_bytes(), &OPEN_RULES, &mut members).unwrap();
    let mut out = b"before\n".to_vec();
    assert!(read.encode_closed(&mut out, &mut again).is_err());
    assert_eq!(out, b"before\n");
    let line = line.replace("\\u0061", "b");
    let read = AgentLine::decode(line.as_bytes(), &OPEN_RULES, &mut members).unwrap();
    assert_eq!(read.encode_closed(&mut out, &mut again), Ok(()));
    assert_eq!(out, format!("before\n{line}").as_bytes());
}
