//! L10: reading and writing are inverse, for every value and for every recorded line.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use std::borrow::Cow;
use std::path::PathBuf;

use proptest::prelude::*;
use turnwire::json::{Members, Raw, ScanRules, Str, scan_value};
use turnwire::protocol::openmax::wire::*;

fn text() -> impl Strategy<Value = Cow<'static, str>> {
    prop_oneof![any::<String>(), "[a-z \\\\\"\n\u{2028}\u{0}ü🦀]{0,12}"].prop_map(Cow::Owned)
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), 0..100u64]
}

fn args() -> impl Strategy<Value = Raw<'static>> {
    prop::sample::select(vec![
        "{}",
        "null",
        "[1,2]",
        r#"{"a":{"b":[1.50,-0,1e999,"\u00fc\n"]},"c":"}"}"#,
        "\"x\"",
        "12345678901234567890123",
    ])
    .prop_map(|text| scan_value(text.as_bytes(), &ScanRules::STRICT).unwrap())
}

fn event() -> impl Strategy<Value = EventLine<'static>> {
    let words = || prop::collection::vec(text().prop_map(Str), 0..4);
    prop_oneof![
        text().prop_map(|text| EventLine::Token(Token { text: text.into() })),
        text().prop_map(|text| EventLine::Thinking(Thinking { text: text.into() })),
        text().prop_map(|text| EventLine::MessageDone(MessageDone { text: text.into() })),
        (number(), number()).prop_map(|(used_tokens, context_tokens)| EventLine::Budget(Budget {
            used_tokens,
            context_tokens
        })),
        (number(), number(), prop::option::of(number())).prop_map(
            |(prompt_tokens, completion_tokens, cached_tokens)| {
                EventLine::Usage(Usage {
                    prompt_tokens,
                    completion_tokens,
                    cached_tokens,
                })
            }
        ),
        (text(), text(), args()).prop_map(|(call_id, name, args)| EventLine::ToolStart(
            ToolStart {
                call_id,
                name,
                args
            }
        )),
        (text(), any::<bool>(), text()).prop_map(|(call_id, ok, output)| EventLine::ToolEnd(
            ToolEnd {
                call_id,
                ok,
                output: output.into(),
            }
        )),
        (text(), text())
            .prop_map(|(call_id, text)| EventLine::HarnessNote(HarnessNote { call_id, text })),
        (number(), number(), text()).prop_map(|(attempt, max_attempts, reason)| EventLine::Retry(
            Retry {
                attempt,
                max_attempts,
                reason
            }
        )),
        (text(), text(), text(), number(), number()).prop_map(
            |(call_id, path, diff, added, removed)| EventLine::Diff(Diff {
                call_id,
                path,
                diff: diff.into(),
                added,
                removed
            })
        ),
        (
            [text(), text(), text(), text(), text(), text(), text()],
            words()
        )
            .prop_map(
                |(
                    [
                        approval_id,
                        name,
                        summary,
                        detail,
                        reason,
                        source_path,
                        source_sha,
                    ],
                    env,
                )| {
                    let env = Names(env);
                    EventLine::ApprovalRequest(ApprovalRequest {
                        approval_id,
                        name,
                        summary,
                        detail,
                        reason,
                        source_path,
                        source_sha,
                        env,
                    })
                }
            ),
        (text(), text()).prop_map(|(approval_id, outcome)| EventLine::ApprovalSettled(
            ApprovalSettled {
                approval_id,
                outcome
            }
        )),
        (number(), number(), words()).prop_map(|(tools, skills, changes)| EventLine::Refrozen(
            Refrozen {
                tools,
                skills,
                changes
            }
        )),
        (number(), number()).prop_map(|(schema_tokens, budget_tokens)| {
            EventLine::SchemasOverBudget(SchemasOverBudget {
                schema_tokens,
                budget_tokens,
            })
        }),
        (number(), number(), number()).prop_map(
            |(tokens_before, tokens_after, compacted_messages)| {
                EventLine::Compacted(Compacted {
                    tokens_before,
                    tokens_after,
                    compacted_messages,
                })
            }
        ),
        (text(), text(), text()).prop_map(|(hook, event, detail)| EventLine::HookFailed(
            HookFailed {
                hook,
                event,
                detail
            }
        )),
        (text(), text(), number(), number()).prop_map(
            |(hook, reason, continuation, continuations_left)| {
                EventLine::TurnRefused(TurnRefused {
                    hook,
                    reason,
                    continuation,
                    continuations_left,
                })
            }
        ),
        text().prop_map(|stop_reason| EventLine::Done(Done { stop_reason })),
        text().prop_map(|message| EventLine::Error(Error { message })),
    ]
}

fn agent_line() -> impl Strategy<Value = AgentLine<'static>> {
    let message = (text(), text()).prop_map(|(role, content)| TranscriptMessage { role, content });
    prop_oneof![
        8 => (text(), event()).prop_map(|(session_id, event)| AgentLine::Event { session_id, event }),
        1 => (text(), number(), text(), text(), text(), any::<bool>()).prop_map(
            |(proto, protocol_version, session_id, version, project, continued)| {
                AgentLine::Hello(Hello { proto, protocol_version, session_id, version, project, continued })
            }
        ),
        1 => (text(), prop::collection::vec(message, 0..4), any::<bool>()).prop_map(|(session_id, messages, truncated)| {
            AgentLine::Transcript(Transcript { session_id, messages, truncated })
        }),
        1 => text().prop_map(|message| AgentLine::ProtocolError(ProtocolError { message })),
        1 => text().prop_map(|mode| AgentLine::ModeSet(ModeSet { mode })),
        1 => Just(AgentLine::Unknown { kind: "later".into(), line: r#"{"type":"later","x":[1]}"#.into() }),
    ]
}

fn host_line() -> impl Strategy<Value = HostLine<'static>> {
    prop_oneof![
        text().prop_map(|text| HostLine::User(User { text })),
        (text(), any::<bool>()).prop_map(|(approval_id, approved)| HostLine::Approve(Approve {
            approval_id,
            approved
        })),
        text().prop_map(|mode| HostLine::ApprovalMode(ApprovalMode { mode })),
        Just(HostLine::Reload),
        Just(HostLine::Cancel),
        Just(HostLine::Quit),
        Just(HostLine::Unknown {
            cmd: "later".into(),
            line: r#"{"cmd":"later","x":[1]}"#.into()
        }),
    ]
}

proptest! {
    #![proptest_config(turnwire_proptests::config(256))]

    #[test]
    fn l10_an_agent_line_reads_as_it_was_written(line in agent_line()) {
        let mut bytes = Vec::new();
        line.encode(&mut bytes);
        prop_assert!(!bytes.contains(&b'\n'));
        let _: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let mut members = Members::new();
        prop_assert_eq!(AgentLine::decode(&bytes, &mut members), Ok(line));
    }

    #[test]
    fn l10_a_host_line_reads_as_it_was_written(line in host_line()) {
        let mut bytes = Vec::new();
        line.encode(&mut bytes);
        prop_assert!(!bytes.contains(&b'\n'));
        let mut members = Members::new();
        prop_assert_eq!(HostLine::decode(&bytes, &mut members).map(HostLine::into_owned), Ok(line));
    }

    #[test]
    fn l9_any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut members = Members::new();
        let _ = HostLine::decode(&bytes, &mut members);
        let _ = AgentLine::decode(&bytes, &mut members);
    }
}

/// The recordings of the project, and those of a larger collection where one is named.
fn recordings() -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/transcripts/openmax"
    ))];
    if let Some(more) = std::env::var_os("TURNWIRE_FIXTURES") {
        folders.push(PathBuf::from(more).join("specs/transcripts/openmax"));
    }
    let mut files: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    files.sort();
    assert!(files.len() >= 80, "the recordings are part of the project");
    files
}

#[test]
fn l10_recorded_lines_read_and_write_back_equal_but_for_key_order() {
    let mut kinds = std::collections::BTreeMap::<String, u32>::new();
    for path in recordings() {
        for record in std::fs::read_to_string(&path).unwrap().lines() {
            let record: serde_json::Value = serde_json::from_str(record).unwrap();
            let (Some(line), Some(dir)) = (record["line"].as_str(), record["dir"].as_str()) else {
                continue;
            };
            let mut members = Members::new();
            let mut bytes = Vec::new();
            if dir == "out" {
                let decoded = AgentLine::decode(line.as_bytes(), &mut members).unwrap();
                assert!(!matches!(decoded, AgentLine::Unknown { .. }), "{line}");
                *kinds.entry(decoded.kind().to_owned()).or_default() += 1;
                decoded.encode(&mut bytes);
            } else {
                match HostLine::decode(line.as_bytes(), &mut members) {
                    Ok(decoded) => decoded.encode(&mut bytes),
                    Err(_) => continue,
                }
            }
            let before: serde_json::Value = serde_json::from_str(line).unwrap();
            let mut after: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            // Extra members of a known line are ignored by contract.
            if let Some(extra) = before.get("extra") {
                after["extra"] = extra.clone();
            }
            assert_eq!(after, before, "{}", path.display());
        }
    }
    assert!(kinds.len() >= 20, "{kinds:?}");
}

#[test]
fn om_12_readers_go_by_name() {
    let mut members = Members::new();
    let line = br#" {"text":"x","extra":null,"type":"token","session_id":"s"} "#;
    let token = AgentLine::Event {
        session_id: "s".into(),
        event: EventLine::Token(Token { text: "x".into() }),
    };
    assert_eq!(AgentLine::decode(line, &mut members), Ok(token));
    let line = br#"{"type":"usage","session_id":"s","prompt_tokens":1,"completion_tokens":2}"#;
    let usage = EventLine::Usage(Usage {
        prompt_tokens: 1,
        completion_tokens: 2,
        cached_tokens: None,
    });
    let read = AgentLine::decode(line, &mut members).unwrap();
    assert_eq!(
        read,
        AgentLine::Event {
            session_id: "s".into(),
            event: usage
        }
    );
}

#[test]
fn om_13_wrong_lines_are_faults_and_unknown_ones_are_values() {
    for line in [
        r#"{}"#,
        r#"{"type":7}"#,
        r#"{"type":"token","text":"x"}"#,
        r#"{"type":"token","text":"x","session_id":5}"#,
        r#"{"type":"token","session_id":"s"}"#,
        r#"{"type":"usage","session_id":"s","prompt_tokens":-1,"completion_tokens":2,"cached_tokens":null}"#,
        r#"{"type":"usage","session_id":"s","prompt_tokens":1.5,"completion_tokens":2,"cached_tokens":null}"#,
        r#"{"type":"usage","session_id":"s","prompt_tokens":18446744073709551616,"completion_tokens":2,"cached_tokens":null}"#,
        r#"{"type":"tool_end","session_id":"s","call_id":"c","ok":"yes","output":""}"#,
        r#"{"type":"hello","proto":"openmax-stdio/6","protocol_version":"6","session_id":"s","version":"1","project":"/","continued":false}"#,
        r#"{"type":"transcript","session_id":"s","messages":[{"role":"user"}],"truncated":false}"#,
    ] {
        let mut members = Members::new();
        assert!(
            AgentLine::decode(line.as_bytes(), &mut members).is_err(),
            "{line}"
        );
    }
    let mut members = Members::new();
    let unknown = AgentLine::decode(br#"{"type":"todo","x":1}"#, &mut members).unwrap();
    assert_eq!(
        unknown,
        AgentLine::Unknown {
            kind: "todo".into(),
            line: r#"{"type":"todo","x":1}"#.into()
        }
    );
    let null = br#"{"type":"tool_start","session_id":"s","call_id":"c","name":"x","args":null}"#;
    assert!(
        AgentLine::decode(null, &mut members).is_ok(),
        "an older wire says null"
    );
}

#[test]
fn every_event_type_of_the_contract_is_in_the_table() {
    assert_eq!(
        EventLine::TYPES,
        [
            "token",
            "thinking",
            "message_done",
            "budget",
            "usage",
            "tool_start",
            "tool_end",
            "harness_note",
            "retry",
            "diff",
            "approval_request",
            "approval_settled",
            "refrozen",
            "schemas_over_budget",
            "compacted",
            "hook_failed",
            "turn_refused",
            "done",
            "error"
        ]
    );
}
