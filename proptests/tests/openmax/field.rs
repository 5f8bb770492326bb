//! The cases from the field about framing and providers' dialects, as openmax speaks them: a host's bytes through the
//! Server, an agent's through the Client, and a provider's through a whole turn.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::client_kit;
use crate::openmax_kit;

use client_kit::ClientInput;
use openmax_kit::duo::{Duo, session_config, tool};
use openmax_kit::{Rig, case, config};
use serde_json::Value;
use turnwire::model::Api;
use turnwire::vocab::*;
use turnwire_proptests::cases::{self, Case};

fn text_of(call: Call) -> String {
    let Command::Prompt(prompt) = call.command else {
        panic!("{call:?}")
    };
    let [Block::Text(text)] = prompt.content.as_slice() else {
        panic!("{prompt:?}")
    };
    text.to_string()
}

#[test]
fn f01_line_separators_are_data_to_both_sides() {
    let text = "one\u{2028}two\u{2029}three";
    let line = format!("{{\"cmd\":\"user\",\"text\":\"{text}\"}}\n");
    for cut in 0..=line.len() {
        let mut rig = Rig::opened();
        rig.raw(&line.as_bytes()[..cut]);
        rig.raw(&line.as_bytes()[cut..]);
        assert_eq!(text_of(rig.call()), text, "cut at {cut}");
        assert_eq!(rig.lines(), [""; 0]);
    }
    let line = format!("{{\"session_id\":\"s\",\"type\":\"token\",\"text\":\"{text}\"}}\n");
    for cut in 0..=line.len() {
        let mut rig = client_kit::in_turn();
        rig.tell(ClientInput::Bytes(line.as_bytes()[..cut].to_vec()));
        rig.tell(ClientInput::Bytes(line.as_bytes()[cut..].to_vec()));
        assert_eq!(rig.findings(), [""; 0], "cut at {cut}");
        let said = rig.find(|what| match what {
            What::Delta { text, .. } => Some(text.to_string()),
            _ => None,
        });
        assert_eq!(said, text);
    }
}

#[test]
fn f02_any_cut_gives_the_same_commands_and_the_last_line_counts() {
    let bytes = "{\"cmd\":\"user\",\"text\":\"Gr\u{fc}\u{df}e \u{4f60}\u{597d} \u{1f980}\"}\n\n{\"cmd\":\"approval_mode\",\"mode\":\"auto\"}\n{\"cmd\":\"cancel\"}".as_bytes();
    let commands = |pieces: &[&[u8]]| {
        let mut rig = Rig::opened();
        pieces.iter().for_each(|piece| rig.raw(piece));
        rig.tell(openmax_kit::Told::End);
        (rig.calls(), rig.lines())
    };
    let whole = commands(&[bytes]);
    assert!(whole.0.len() >= 3, "{whole:?}");
    assert_eq!(
        text_of(whole.0[0].clone()),
        "Gr\u{fc}\u{df}e \u{4f60}\u{597d} \u{1f980}"
    );
    let each: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(commands(&each), whole);
    for second in 1..bytes.len() {
        for first in (0..second).step_by(7) {
            let cut = cases::pieces(bytes, &[first, second]);
            assert_eq!(commands(&cut), whole, "cut at {first} and {second}");
        }
    }
}

#[test]
fn f05_long_lines_are_read_whole() {
    let input = case("F05-no-smaller-hidden-limit");
    let data = cases::named("F05-no-smaller-hidden-limit").unwrap();
    let wanted = data.data()["text_bytes"].as_array().unwrap().clone();
    for size in [4_096, 65_536] {
        let mut lengths = Vec::new();
        for line in input.split_inclusive(|&byte| byte == b'\n') {
            let mut rig = Rig::opened_with(config());
            line.chunks(size).for_each(|piece| rig.raw(piece));
            lengths.push(Value::from(text_of(rig.call()).len()));
        }
        assert_eq!(lengths, wanted, "pieces of {size}");
    }
}

#[test]
fn f07_log_lines_cost_the_host_no_good_line() {
    let bytes = b"Checking for updates...\n\
        {\"session_id\":\"s\",\"type\":\"token\",\"text\":\"Hi\"}\n\
        {debug} pool opened\n\
        [warn] slow disk\n\
        {\"session_id\":\"s\",\"type\":\"message_done\",\"text\":\"Hi\"}\n\
        progress 50%{\"session_id\":\"s\",\"type\":\"token\",\"text\":\"no\"}\n\
        {\"session_id\":\"s\",\"type\":\"done\",\"stop_reason\":\"stop\"}\n";
    for cut in 0..=bytes.len() {
        let mut rig = client_kit::in_turn();
        rig.tell(ClientInput::Bytes(bytes[..cut].to_vec()));
        rig.tell(ClientInput::Bytes(bytes[cut..].to_vec()));
        let places: Vec<u64> = rig
            .out
            .iter()
            .filter_map(|out| match out {
                client_kit::Out::Finding(finding) => finding.place.map(|place| place.line),
                _ => None,
            })
            .collect();
        // Before it came the handshake and the budget.
        assert_eq!(places, [3, 5, 6, 8], "cut at {cut}");
        let story = rig.events();
        assert!(
            story.contains("d(text)") && story.contains("P-(1,Finished)"),
            "{story}"
        );
    }
}

/// One turn over this stream, in pieces of so many characters.
fn turn(case: &Case, stream: &str, want: &Value, size: usize) -> Duo {
    let mut config = session_config(ApprovalMode::Auto);
    for call in want["calls"].as_array().into_iter().flatten() {
        let name = call["name"].as_str().unwrap();
        config.tools.push(tool(name, SideEffect::Read));
    }
    let api = if case.dialect == "anthropic" {
        Api::Anthropic
    } else {
        Api::OpenAi
    };
    let mut duo = Duo::with(config, api, openmax_kit::config());
    duo.user("go");
    duo.head(200, None);
    let chars: Vec<char> = stream.chars().collect();
    for piece in chars.chunks(size) {
        duo.bytes(&piece.iter().collect::<String>());
    }
    duo.close_of(0, true);
    duo
}

/// What a host sees of the stream is what it amounts to.
fn check(case: &Case, variant: &str, stream: &str, want: &Value, size: usize) {
    let name = format!("{} {variant} in pieces of {size}", case.id);
    let duo = turn(case, stream, want, size);
    let all = |kind: &str, member: &str| Value::from(duo.all(kind, member));
    let tokens: String = duo
        .all("token", "text")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    if let Some(text) = want["text"].as_str() {
        assert_eq!(tokens, text, "{name}");
    }
    if let Some(usage) = want["usage"].as_object() {
        assert_eq!(
            all("usage", "prompt_tokens")[0],
            usage["prompt_tokens"],
            "{name}"
        );
    }
    if want["ran"].is_array() {
        assert_eq!(duo.running, [], "{name}: nothing of it runs");
        assert!(
            !duo.all("tool_end", "ok").contains(&Value::Bool(true)),
            "{name}"
        );
    }
    if let Some(calls) = want["calls"].as_array() {
        let started = duo.all("tool_start", "call_id");
        assert_eq!(started.len(), calls.len(), "{name}");
        for (index, call) in calls.iter().enumerate() {
            assert_eq!(
                all("tool_start", "name")[index],
                call["name"],
                "{name}: {started:?}"
            );
            assert_eq!(all("tool_start", "args")[index], call["args"], "{name}");
            if call["id"].is_string() {
                assert_eq!(started[index], call["id"], "{name}");
            }
            assert_ne!(started[index], "", "{name}");
        }
        assert_eq!(duo.running.len(), calls.len(), "{name}");
    } else if want["truncated"] == true && tokens.is_empty() {
        // Nothing was shown, so it is tried again.
        assert_eq!(duo.all("retry", "attempt"), [2], "{name}");
    } else if want["truncated"] == true {
        assert_eq!(duo.all("done", "stop_reason"), ["truncated"], "{name}");
    } else if let Some(error) = want["error"].as_str() {
        // Tried again if nothing was shown, else the end of the turn: either way it is named.
        let (kind, member) = if tokens.is_empty() {
            ("retry", "reason")
        } else {
            ("error", "message")
        };
        let said = duo.all(kind, member);
        assert!(
            said[0].as_str().unwrap().contains(error),
            "{name}: {said:?}"
        );
        assert_eq!(duo.all("message_done", "text").len(), 0, "{name}");
    } else if let (Some(finish), true) = (want["finish"].as_str(), !want["ran"].is_array()) {
        assert_eq!(duo.all("done", "stop_reason"), [finish], "{name}");
    }
}

fn check_case(short: &str) {
    let all = cases::all().unwrap();
    let case = all
        .iter()
        .find(|case| case.id.starts_with(short))
        .expect("the case exists");
    assert!(!case.inputs.is_empty());
    for (variant, stream) in &case.inputs {
        let stream = std::str::from_utf8(stream).unwrap();
        let want = if variant.is_empty() {
            &case.data()["reply"]
        } else {
            &case.data()[variant]["reply"]
        };
        assert!(want.is_object(), "{short} {variant} expects something");
        for size in [1, 7, usize::MAX] {
            check(case, variant, stream, want, size.min(stream.len()));
        }
    }
}

macro_rules! turns {
    ($($name:ident: $id:literal;)*) => {$(
        #[test]
        fn $name() {
            check_case($id);
        }
    )*};
}

turns! {
    s01_characters_that_were_cut_are_whole_on_the_wire: "S01";
    s05_a_turn_over_a_stream_without_its_last_blank_line: "S05";
    d01_a_turn_over_a_first_chunk_without_choices: "D01";
    d02_a_turn_over_usage_after_the_finish: "D02";
    d03_a_turn_over_tool_deltas_without_index: "D03";
    d04_a_turn_over_two_calls_of_one_index: "D04";
    d05_a_turn_over_names_repeated_or_in_pieces: "D05";
    d06_a_turn_over_ids_missing_or_emptied: "D06";
    d07_a_turn_over_arguments_as_an_object: "D07";
    d08_a_turn_over_arguments_cut_off: "D08";
    d09_a_turn_over_an_error_inside_a_good_answer: "D09";
    d10_a_turn_over_stop_reasons_old_and_new: "D10";
}

/// As agentx's case says it, in the words of openmax: what was asked when the input closed is declined, and so is
/// what would be asked after it.
#[test]
fn e05_input_closed_while_asking() {
    let mut duo = Duo::new(session_config(ApprovalMode::Ask));
    duo.user("go");
    duo.answer("", &[("c1", "write", "{}"), ("c2", "write", "{}")]);
    let id = duo.approval();
    // The last line, which no newline ends, counts.
    duo.host_raw(format!(r#"{{"cmd":"approve","approval_id":"{id}","approved":true}}"#).as_bytes());
    duo.host_end();
    duo.next_tool_done(true, "written");
    assert_eq!(
        duo.all("approval_settled", "outcome"),
        ["approved", "declined"]
    );
    assert_eq!(duo.all("tool_end", "ok"), [true, false]);
    assert_eq!(duo.running, []);
    duo.answer("Done.", &[]);
    assert_eq!(duo.all("done", "stop_reason"), ["stop"]);
    assert_eq!(duo.exit, Some(0));
}
