//! What stands in the lines of an omp Server: messages, snapshots, results, the history, frames that are too long.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::omp_kit;
use crate::omp_server_kit;

use std::sync::Arc;

use omp_kit::host_lines;
use omp_server_kit::{Rig, failure};
use proptest::prelude::*;
use serde_json::{Value, json};
use turnwire::json::Members;
use turnwire::protocol::Credentials;
use turnwire::protocol::omp::MAX_FRAME;
use turnwire::protocol::omp::codec::ChunkReader;
use turnwire::protocol::omp::wire::AgentLine;
use turnwire::vocab::*;
use turnwire_proptests::laws::ServerInput;

fn json_of(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn omp_10_history_is_read_as_it_was_said() {
    let mut rig = Rig::new();
    rig.take();
    rig.play("«p1:prompt» open(p1) calls(text,c1) t+(c1) t-(c1) S- next text end(p1,Finished)");
    let said: Vec<Value> = rig.take().iter().map(|line| json_of(line)).collect();
    let run = said
        .iter()
        .find(|line| line["type"] == "agent_end")
        .unwrap();
    let history = rig.query(r#"{"id":"m","type":"get_messages"}"#);
    assert_eq!(
        history["data"]["messages"], run["messages"],
        "the same as the run's"
    );
    let all = rig.query(r#"{"id":"e","type":"get_entries"}"#);
    let entries = all["data"]["entries"].as_array().unwrap().clone();
    assert_eq!(entries.len(), 4);
    assert_eq!(entries[0]["parentId"], Value::Null);
    assert!(
        entries
            .windows(2)
            .all(|pair| pair[1]["parentId"] == pair[0]["id"])
    );
    assert_eq!(all["data"]["leafId"], entries[3]["id"]);
    let since = format!(
        r#"{{"id":"e","type":"get_entries","since":{}}}"#,
        entries[2]["id"]
    );
    assert_eq!(
        rig.query(&since)["data"]["entries"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let tree = rig.query(r#"{"id":"t","type":"get_tree"}"#);
    assert_eq!(tree["data"]["tree"].as_array().unwrap().len(), 1);
    assert_eq!(
        tree["data"]["tree"][0]["children"][0]["entry"]["id"],
        entries[1]["id"]
    );
    let branch = rig.query(r#"{"id":"b","type":"get_branch_messages"}"#);
    assert_eq!(
        branch["data"]["messages"],
        json!([{"entryId": entries[0]["id"], "text": "text"}])
    );
    let last = rig.query(r#"{"id":"l","type":"get_last_assistant_text"}"#);
    let text = last["data"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("Hello") && !text.ends_with(' '),
        "trimmed at its end: {text:?}"
    );
    let page = rig.query(r#"{"id":"g","type":"get_messages_page","limit":3}"#);
    assert_eq!(page["data"]["totalMessages"], 4);
    let next = format!(
        r#"{{"id":"g","type":"get_messages_page","cursor":{}}}"#,
        page["data"]["nextCursor"]
    );
    assert_eq!(
        rig.query(&next)["data"]["messages"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    rig.play("«p2:prompt» open(p2)");
    assert_eq!(rig.query(&next)["code"], "session_busy");
    rig.play("text end(p2,Finished)");
    assert_eq!(rig.query(&next)["code"], "stale_cursor");
    let stats = rig.query(r#"{"id":"s","type":"get_session_stats"}"#);
    let data = &stats["data"];
    assert_eq!(
        (
            &data["userMessages"],
            &data["assistantMessages"],
            &data["toolCalls"],
            &data["toolResults"]
        ),
        (&json!(2), &json!(3), &json!(1), &json!(1))
    );
    assert_eq!(
        data["tokens"],
        json!({"input":33,"output":21,"reasoning":6,"cacheRead":0,"cacheWrite":0,"total":54})
    );
    assert_eq!(data["cost"], json!(0.000_075));
}

#[test]
fn omp_03_usage_lies_inside_the_message_and_only_message_end_has_its_time() {
    let mut rig = Rig::new();
    rig.take();
    rig.play("«p1:prompt» open(p1) think+text end(p1,Finished)");
    let said: Vec<Value> = rig.take().iter().map(|line| json_of(line)).collect();
    let find = |kind: &str, role: &str| {
        said.iter()
            .find(|line| {
                line["type"] == kind && (role.is_empty() || line["message"]["role"] == role)
            })
            .unwrap()
            .clone()
    };
    let (start, end, turn) = (
        find("message_start", "assistant"),
        find("message_end", "assistant"),
        find("turn_end", ""),
    );
    assert_eq!(
        start["message"]["content"],
        json!([]),
        "no text comes before its deltas"
    );
    assert_eq!(start["messageId"], end["messageId"]);
    assert_ne!(start["messageId"], find("message_end", "user")["messageId"]);
    let usage = &end["message"]["usage"];
    assert_eq!(
        (&usage["input"], &usage["output"], &usage["totalTokens"]),
        (&json!(11), &json!(7), &json!(18))
    );
    assert_eq!(usage["cost"]["total"], json!(0.000_025));
    assert_eq!(end["message"]["duration"], json!(78.5));
    assert_eq!(end["message"]["responseId"], "chatcmpl-1");
    let mut stored = end["message"].clone();
    assert!(
        stored
            .as_object_mut()
            .unwrap()
            .remove("completedAt")
            .is_some()
    );
    assert_eq!(turn["message"], stored);
    let text = &end["message"]["content"][1]["text"];
    let deltas: String = said
        .iter()
        .filter(|line| line["assistantMessageEvent"]["type"] == "text_delta")
        .map(|line| line["assistantMessageEvent"]["delta"].as_str().unwrap())
        .collect();
    assert_eq!(text, &json!(deltas));
    // Each snapshot is the message so far, twice.
    let mut so_far = String::new();
    for line in said.iter().filter(|line| line["type"] == "message_update") {
        assert_eq!(line["message"], line["assistantMessageEvent"]["partial"]);
        if line["assistantMessageEvent"]["type"] == "text_delta" {
            so_far.push_str(line["assistantMessageEvent"]["delta"].as_str().unwrap());
            assert_eq!(line["message"]["content"][1]["text"], json!(so_far));
        }
    }
}

#[test]
fn omp_03_a_filter_hides_events_alone_and_deltas_carry_no_snapshots() {
    let mut rig = Rig::new();
    let answer = rig.query(r#"{"id":"f","type":"set_event_filter","events":["message_end","x"]}"#);
    assert_eq!(answer["data"], json!({"events":["message_end","x"]}));
    rig.take();
    rig.play("«p1:prompt» open(p1) text end(p1,Finished)");
    let kinds: Vec<String> = rig
        .take()
        .iter()
        .map(|line| json_of(line)["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        kinds,
        [
            "response",
            "message_end",
            "message_end",
            "prompt_result",
            "session_settled"
        ]
    );

    let answer =
        rig.query(r#"{"id":"f","type":"set_event_filter","events":null,"messageUpdates":"delta"}"#);
    assert_eq!(
        answer["data"],
        json!({"events":null,"messageUpdates":"delta"})
    );
    rig.take();
    rig.play("«p2:prompt» open(p2) text end(p2,Finished)");
    let lines = rig.take();
    let update = lines
        .iter()
        .find(|line| line.contains("\"text_delta\""))
        .unwrap();
    let value = json_of(update);
    assert_eq!(value["message"], json!({"role":"assistant"}));
    assert_eq!(
        value["assistantMessageEvent"].as_object().unwrap().len(),
        3,
        "{update}"
    );
    assert_eq!(value["messageId"], "msg-4", "hidden messages have ids, too");

    for (line, error) in [
        (
            r#"{"id":"f","type":"set_event_filter","events":[""]}"#,
            "events must be null or an array of non-empty event type strings",
        ),
        (
            r#"{"id":"f","type":"set_event_filter","events":null,"messageUpdates":"half"}"#,
            "messageUpdates must be \"full\" or \"delta\"",
        ),
    ] {
        assert_eq!(rig.query(line)["error"], error);
    }
}

/// A long text as one reply.
fn long_reply(rig: &mut Rig, text: &str) {
    rig.play("«p1:prompt» open(p1) m+ b+(text)");
    rig.event(What::Delta {
        message: MessageId(2),
        block: 0,
        kind: Kind::Text,
        text: text.into(),
    });
    rig.event(What::MessageEnded {
        message: Arc::new(Message {
            id: MessageId(2),
            role: Role::Assistant,
            content: vec![Arc::new(Block::Text(text.into()))],
            origin: Origin::Harness,
            prompt: None,
            about: None,
            at_ms: 0,
            details: None,
        }),
        stop: Stop::End,
        kept: true,
        calls: CallList::Complete,
    });
    rig.play("Rq-(ok) end(p1,Finished)");
}

#[test]
fn omp_09_frames_beyond_the_limit_shrink_in_protocol_1_and_come_in_chunks_in_protocol_2() {
    let text = "0123456789ü".repeat(100_000);
    let mut one = Rig::new();
    one.take();
    long_reply(&mut one, &text);
    let lines = one.take();
    assert!(lines.iter().all(|line| line.len() < MAX_FRAME));
    assert!(
        lines
            .iter()
            .any(|line| line.contains("elided for RPC frame"))
    );
    let overflow = one.query(r#"{"id":"m","type":"get_messages"}"#);
    assert_eq!(
        overflow["error"],
        "RPC response exceeded the transport limit"
    );

    let mut two = Rig::new();
    let answer = two.query(r#"{"type":"negotiate_protocol","protocolVersion":2,"id":"req_1"}"#);
    assert_eq!(answer["data"], json!({"protocolVersion":2}));
    two.take();
    long_reply(&mut two, &text);
    let lines = two.take();
    assert!(lines.iter().all(|line| line.len() < MAX_FRAME));
    let mut reader = ChunkReader::new();
    reader.use_chunks();
    let mut members = Members::new();
    let mut ends = Vec::new();
    for line in &lines {
        let frame = match AgentLine::decode(line.as_bytes(), &mut members).unwrap() {
            AgentLine::Frame(turnwire::protocol::omp::wire::Frame::Chunk(chunk)) => {
                match reader.chunk(&chunk).unwrap() {
                    Some(frame) => String::from_utf8(frame.to_vec()).unwrap(),
                    None => continue,
                }
            }
            _ => line.clone(),
        };
        let value = json_of(&frame);
        if value["type"] == "message_end" && value["message"]["role"] == "assistant" {
            ends.push(
                value["message"]["content"][0]["text"]
                    .as_str()
                    .unwrap()
                    .len(),
            );
        }
    }
    assert_eq!(ends, [text.len()]);
}

#[test]
fn credentials_are_hidden_before_a_frame_is_cut() {
    let mut rig = Rig::new();
    rig.server
        .hide(Credentials::new(["sk-secret-0123456789"]).unwrap())
        .unwrap();
    rig.query(r#"{"type":"negotiate_protocol","protocolVersion":2,"id":"req_1"}"#);
    rig.take();
    let text = format!("{}sk-secret-0123456789", "x".repeat(1_100_000));
    long_reply(&mut rig, &text);
    let mut reader = ChunkReader::new();
    reader.use_chunks();
    let mut members = Members::new();
    for line in rig.take() {
        assert!(!line.contains("sk-secret"));
        if let AgentLine::Frame(turnwire::protocol::omp::wire::Frame::Chunk(chunk)) =
            AgentLine::decode(line.as_bytes(), &mut members).unwrap()
            && let Some(frame) = reader.chunk(&chunk).unwrap()
        {
            let frame = String::from_utf8(frame.to_vec()).unwrap();
            assert!(frame.contains("[redacted]") && !frame.contains("sk-secret"));
        }
    }
}

#[test]
fn omp_03_a_failure_says_whose_and_whether_to_try_again() {
    let mut rig = Rig::new();
    rig.play("«p1:prompt» open(p1)");
    rig.take();
    rig.play("Rq-(Failed) end(p1,Failed)");
    let lines: Vec<Value> = rig.take().iter().map(|line| json_of(line)).collect();
    let result = lines
        .iter()
        .find(|line| line["type"] == "prompt_result")
        .unwrap();
    assert_eq!(
        result.to_string(),
        json!({
            "type":"prompt_result","id":"p1","agentInvoked":true,"status":"error","sessionSettled":true,
            "error":{"message":"backend returned 500","provider":"mock","model":"m-1","retryable":true,"httpStatus":500}
        })
        .to_string()
    );
    let end = lines
        .iter()
        .find(|line| line["type"] == "message_end")
        .unwrap();
    assert_eq!(end["message"]["errorMessage"], "backend returned 500");
    assert_eq!(end["message"]["errorStatus"], 500);
    assert_eq!(failure("x").status, Some(500));
}

#[test]
fn omp_03_blank_input_is_done_at_once_and_refusals_are_failures() {
    let mut rig = Rig::new();
    for (refusal, expected) in [
        (
            Refusal::Empty,
            json!({"success":true,"data":{"agentInvoked":false}}),
        ),
        (
            Refusal::Closing,
            json!({"success":false,"error":"The session is closing"}),
        ),
        (
            Refusal::Blocked {
                hook: "h".into(),
                text: "not that".into(),
            },
            json!({"success":false,"error":"not that"}),
        ),
    ] {
        rig.host(r#"{"id":"p","type":"prompt","message":""}"#);
        let call = rig.call();
        rig.take();
        rig.reply(call.id, Err(refusal));
        let answer = rig.one();
        for (member, value) in expected.as_object().unwrap() {
            assert_eq!(&answer[member], value);
        }
    }
}

proptest! {
    #![proptest_config(turnwire_proptests::config(200))]

    /// L9: nothing that a host says makes the Server fail, and what has a type gets an answer or is of the side channel.
    #[test]
    fn l9_any_line_of_a_host_is_answered_at_most_once(
        picks in proptest::collection::vec((0usize..80, 0usize..400, any::<u8>()), 1..12),
    ) {
        let lines = host_lines();
        let mut rig = Rig::new();
        // An observer reads a line that isn't UTF-8 in its own way.
        let mut is_text = true;
        for (pick, at, byte) in picks {
            let mut line = lines[pick % lines.len()].clone().into_bytes();
            if byte > 100 {
                let at = at % line.len();
                line[at] = byte;
            }
            line.retain(|byte| *byte != b'\n');
            is_text &= std::str::from_utf8(&line).is_ok();
            line.push(b'\n');
            rig.take();
            rig.tell(ServerInput::Bytes(line));
            for call in rig.calls() {
                rig.reply(call.id, Err(Refusal::Unknown));
            }
            rig.calls();
            let responses = rig.take().iter().filter(|line| line.contains("\"type\":\"response\"")).count();
            prop_assert!(responses <= 1);
        }
        let errors = rig.errors();
        prop_assert!(errors.is_empty() || !is_text, "{:?}", errors);
    }

    /// L9: events that break every law are taken as they come.
    #[test]
    fn l9_any_order_of_events_is_taken(words in proptest::collection::vec(0usize..24, 0..60)) {
        const WORDS: [&str; 24] = [
            "T+", "S+", "Cx", "Rq", "Rq-(ok)", "Rq-(Failed)", "m+", "m-(End)", "m-(Failed,void)", "t+(c1)", "t~(c1)", "t-(c1)",
            "skip(c2)", "S-", "T-(Finished)", "T-(Cancelled)", "Ry", "Ry-(ok)", "C+(Auto)", "C-(Ok)", "M(note)", "Set",
            "A?(c1)", "A!(cancelled)",
        ];
        let mut rig = Rig::new();
        for word in words {
            rig.play(WORDS[word]);
        }
        for line in rig.take() {
            let mut members = Members::new();
            prop_assert!(AgentLine::decode(line.as_bytes(), &mut members).is_ok(), "{line}");
        }
        rig.play("Closed «x:eof»");
        prop_assert!(rig.take().last().is_some_and(|line| line.contains("exit")));
    }
}
