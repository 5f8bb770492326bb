//! Any stream, any cut, any bytes: the same chunks, and one settlement.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::model_support;

use model_support::{
    Heard, JSON, NOW, START, STREAM, add, block, delta, end_turn, finish, hear_parts, sse, stop,
};
use proptest::prelude::*;
use turnwire::model::script::Script;
use turnwire::model::{Api, ReplyDecoder, ReplyHead, ReplyLimits};
use turnwire::vocab::ModelRequest;

fn some_event() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        "[a-z]{0,4}",
        Just(r"\ud83e".into()),
        Just(r"\udd80x".into()),
        Just(r"\n\u00e9".into()),
        Just("🦀".into())
    ];
    let call = (
        0..3u32,
        "[ab]{0,1}",
        prop_oneof![Just("f"), Just("g"), Just("")],
        "[0-9]{0,3}",
    );
    prop_oneof![
        3 => text.prop_map(|text| delta(&format!(r#"{{"content":"{text}"}}"#))),
        1 => "[a-z\\\\n]{0,3}".prop_map(|text| delta(&format!(r#"{{"reasoning":"{}"}}"#, text.replace('\\', "")))),
        3 => call.prop_map(|(index, id, name, args)| delta(&format!(r#"{{"tool_calls":[{{"index":{index},"id":"{id}","function":{{"name":"{name}","arguments":"{args}"}}}}]}}"#))),
        1 => Just(finish("stop")),
        1 => Just(r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#.into()),
        1 => Just(START.into()),
        1 => (0..2u32).prop_map(|index| block(index, r#"{"type":"tool_use","id":"a","name":"f","input":{}}"#)),
        1 => (0..2u32).prop_map(|index| add(index, r#"{"type":"input_json_delta","partial_json":"{}"}"#)),
        1 => (0..2u32).prop_map(|index| add(index, r#"{"type":"text_delta","text":"t\ud83e"}"#)),
        1 => (0..2u32).prop_map(stop),
        1 => Just(end_turn("end_turn")),
        1 => Just("[DONE]".into()),
        1 => Just(r#"{"error":{"message":"x"}}"#.into()),
        1 => Just("noise".into()),
    ]
}

fn some_head() -> impl Strategy<Value = ReplyHead<'static>> {
    prop_oneof![3 => Just(STREAM), 1 => Just(JSON), 1 => Just(ReplyHead { status: 500, ..ReplyHead::default() })]
}

proptest! {
    #![proptest_config(turnwire_proptests::config(256))]

    #[test]
    fn l1_any_cut_gives_the_same_chunks(
        events in prop::collection::vec(some_event(), 0..10),
        head in some_head(),
        api in prop_oneof![Just(Api::OpenAi), Just(Api::Anthropic)],
        size in 1..40usize,
        cut in any::<prop::sample::Index>(),
        limit in prop_oneof![Just(16usize << 20), 0..600usize],
    ) {
        let limits = ReplyLimits { reply_bytes: limit, event_bytes: limit, error_body_bytes: limit, ..ReplyLimits::default() };
        let mut body = sse(&events.iter().map(|event| &**event).collect::<Vec<_>>());
        body.truncate(cut.index(body.len() + 1).max(body.len() / 2));
        let whole = hear_parts(api, &head, limits, [&*body]);
        prop_assert_eq!(&whole, &hear_parts(api, &head, limits, body.chunks(size)));
        prop_assert_eq!(&whole, &hear_parts(api, &head, limits, body.chunks(1)));
        prop_assert!(whole.ended != whole.failed.is_some(), "exactly one settlement");
    }

    #[test]
    fn l9_any_bytes_settle_once(body in prop::collection::vec(any::<u8>(), 0..300), head in some_head(), size in 1..40usize, api in prop_oneof![Just(Api::OpenAi), Just(Api::Anthropic)]) {
        let whole = hear_parts(api, &head, ReplyLimits::default(), [&*body]);
        prop_assert_eq!(&whole, &hear_parts(api, &head, ReplyLimits::default(), body.chunks(size)));
    }
}

/// Lines of scripts, legal or nearly so.
fn some_line() -> impl Strategy<Value = String> {
    let words = "think:|say:|call|usage|finish|fail|retry-after|error|unreached|cut|wait|raw|reply|dialect|pace|\\|";
    let rest = prop_oneof![
        Just(String::new()),
        "\\PC{0,12}",
        Just("when step 1 and prompt \"a\\\"b\"".into()),
        Just("f {\"a\": [1, \"é\"]}".into()),
        Just("429 code=x é".into()),
        Just("input=1 output=2".into()),
        Just("20ms".into()),
        Just("\"raw \\ud83e\\n\"".into()),
        Just("anthropic".into()),
    ];
    (words, rest).prop_map(|(word, rest)| format!("{word} {rest}"))
}

proptest! {
    #![proptest_config(turnwire_proptests::config(256))]

    #[test]
    fn any_script_is_read_or_its_fault_has_a_place(lines in prop::collection::vec(some_line(), 0..8), front in prop_oneof![Just("reply\n"), Just("")]) {
        let text = format!("{front}{}", lines.join("\n"));
        match Script::parse(&text) {
            Err(fault) => {
                let line = text.lines().nth(fault.line - 1).unwrap();
                prop_assert!(fault.column >= 1 && fault.column <= line.chars().count() + 1, "{}", fault);
            }
            Ok(script) => {
                // Whatever it plays settles exactly once.
                let request = ModelRequest { model: "m", system: None, messages: &[], tools: &[], max_output: None, thinking: None, thinking_budget: None };
                let mut decoder = ReplyDecoder::new(script.api(), ReplyLimits::default());
                let mut heard = Heard::default();
                script.reply(&request).play(&mut decoder, NOW, &mut |chunk| heard.take(&chunk));
                prop_assert!(heard.ended != heard.failed.is_some());
            }
        }
    }

    #[test]
    fn what_a_script_says_is_what_is_heard(said in prop::collection::vec("\\PC{0,20}", 1..5), thought in "[!-~]\\PC{0,20}", api in prop_oneof![Just("openai"), Just("anthropic")]) {
        let lines: Vec<String> = said.iter().map(|line| format!("    | {line}\n")).collect();
        let text = format!("dialect {api}\nreply\n  think: {thought}\n  say: begin\n{}", lines.concat());
        let script = Script::parse(&text).unwrap();
        let request = ModelRequest { model: "m", system: None, messages: &[], tools: &[], max_output: None, thinking: None, thinking_budget: None };
        let mut decoder = ReplyDecoder::new(script.api(), ReplyLimits::default());
        let mut heard = Heard::default();
        script.reply(&request).play(&mut decoder, NOW, &mut |chunk| heard.take(&chunk));
        let want: Vec<&str> = said.iter().map(|line| line.trim_end()).collect();
        prop_assert_eq!(heard.text, format!("begin\n{}", want.join("\n")));
        prop_assert_eq!(heard.thinking, thought.trim_end());
    }
}
