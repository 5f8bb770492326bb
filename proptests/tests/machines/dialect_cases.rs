//! The cases from the field that are about a provider's stream: every D case, and the streams of S01, S05,
//! J01 and J05, under every cut.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

use crate::model_support;

use model_support::{Heard, STREAM, hear_all_cuts};
use serde_json::Value;
use turnwire::model::Api;
use turnwire_proptests::cases::{self, Case};

fn case(id: &str) -> Case {
    let all = cases::all().unwrap();
    all.into_iter()
        .find(|case| case.id.starts_with(id))
        .unwrap()
}

/// What the stream of this name amounts to.
fn reply<'c>(case: &'c Case, variant: &str) -> &'c Value {
    let data = &case.json["expect"]["data"];
    if variant.is_empty() {
        &data["reply"]
    } else {
        &data[variant]["reply"]
    }
}

fn api(case: &Case) -> Api {
    if case.dialect == "anthropic" {
        Api::Anthropic
    } else {
        Api::OpenAi
    }
}

fn check(name: &str, heard: &Heard, want: &Value) {
    if let Some(text) = want["text"].as_str() {
        assert_eq!(heard.text, text, "{name}: text");
        assert!(
            !heard.text.contains('\u{fffd}'),
            "{name}: a broken character"
        );
    }
    if let Some(finish) = want["finish"].as_str() {
        assert_eq!(heard.finish.as_deref(), Some(finish), "{name}: finish");
        assert!(heard.complete(), "{name}: {heard:?}");
    }
    if want["truncated"] == true {
        assert!(heard.truncated(), "{name}: {heard:?}");
        assert!(
            heard.calls.iter().all(|call| !call.whole),
            "{name}: a call of a cut stream ended"
        );
    }
    if let Some(error) = want["error"].as_str() {
        assert!(heard.error().contains(error), "{name}: {heard:?}");
        assert!(
            heard.failure().retryable && heard.finish.is_none(),
            "{name}: {heard:?}"
        );
    }
    if let Some(usage) = want["usage"].as_object() {
        let got = heard.usage.last().expect("usage");
        assert_eq!(heard.usage.len(), 1, "{name}: usage once");
        assert_eq!(
            got.input.unwrap() + got.cache_read.unwrap_or(0),
            usage["prompt_tokens"],
            "{name}"
        );
        assert_eq!(
            got.output.unwrap() + got.reasoning.unwrap_or(0),
            usage["completion_tokens"],
            "{name}"
        );
    }
    if let Some(calls) = want["calls"].as_array() {
        assert_eq!(heard.calls.len(), calls.len(), "{name}: {heard:?}");
        for (got, call) in heard.calls.iter().zip(calls) {
            assert_eq!(got.name, call["name"], "{name}");
            assert_eq!(
                serde_json::from_str::<Value>(&got.args).unwrap(),
                call["args"],
                "{name}"
            );
            assert!(
                call["id"].is_null() || call["id"] == got.id.as_deref().unwrap(),
                "{name}"
            );
            assert!(got.whole, "{name}");
        }
    }
}

fn check_case(id: &str) {
    let case = case(id);
    assert!(!case.inputs.is_empty());
    for (variant, stream) in &case.inputs {
        let want = reply(&case, variant);
        let heard = hear_all_cuts(api(&case), &STREAM, stream);
        assert!(want.is_object(), "{id} {variant} expects something");
        check(&format!("{id} {variant}"), &heard, want);
    }
}

macro_rules! cases {
    ($($name:ident: $id:literal;)*) => {$(
        #[test]
        fn $name() {
            check_case($id);
        }
    )*};
}

cases! {
    s01_a_character_cut_between_reads: "S01";
    s05_no_blank_line_at_the_end: "S05";
    d01_first_chunk_without_choices: "D01";
    d02_usage_after_the_finish: "D02";
    d03_tool_deltas_without_index: "D03";
    d04_two_calls_one_index: "D04";
    d05_name_repeated_or_in_pieces: "D05";
    d06_call_id_missing_or_emptied: "D06";
    d07_arguments_as_an_object: "D07";
    d09_error_inside_a_good_answer: "D09";
    d10_stop_reasons_old_and_new: "D10";
}

#[test]
fn every_dialect_case_is_covered() {
    let all = cases::all().unwrap();
    let dialect = all.iter().filter(|case| case.layer == "dialect");
    let ids: Vec<&str> = dialect.filter_map(|case| case.id.get(..3)).collect();
    assert_eq!(
        ids,
        [
            "D01", "D02", "D03", "D04", "D05", "D06", "D07", "D08", "D09", "D10"
        ]
    );
}

#[test]
fn d07_an_object_keeps_its_members_as_they_were_written() {
    let case = case("D07");
    let stream = case.input("").unwrap();
    assert_eq!(
        hear_all_cuts(Api::OpenAi, &STREAM, stream).calls[0].args,
        r#"{"city":"Paris","n":3}"#
    );
}

#[test]
fn d08_arguments_cut_off() {
    let case = case("D08");
    for (variant, stream) in &case.inputs {
        let want = reply(&case, variant);
        let heard = hear_all_cuts(Api::OpenAi, &STREAM, stream);
        check(variant, &heard, want);
        assert_eq!(heard.calls.len(), 1, "the unfinished call is named");
        // Nothing is repaired: what came is what is given.
        let args = if variant == "eof_closed" {
            r#"{"path":"a"}"#
        } else {
            r#"{"path":"a""#
        };
        assert!(heard.calls[0].args.starts_with(args), "{variant}");
        assert_eq!(
            serde_json::from_str::<Value>(&heard.calls[0].args).is_ok(),
            variant == "eof_closed",
            "{variant}"
        );
    }
}

#[test]
fn j01_two_halves_of_a_character_are_joined() {
    let case = case("J01");
    let heard = hear_all_cuts(Api::OpenAi, &STREAM, case.input("model_stream").unwrap());
    assert_eq!(heard.text, "A \u{1f980} B");
    assert!(heard.complete());
}

#[test]
fn j05_big_integers_keep_their_digits() {
    let case = case("J05");
    let heard = hear_all_cuts(Api::OpenAi, &STREAM, case.input("").unwrap());
    let want = &case.json["expect"]["data"]["calls"][0];
    assert_eq!(heard.calls[0].args, want["args_text"]);
    assert_eq!(heard.calls[0].id.as_deref(), want["id"].as_str());
    assert_eq!(heard.calls[0].name, want["name"]);
}
