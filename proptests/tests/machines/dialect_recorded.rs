//! Recorded streams of real providers, where they are to be found: in the folder that `TURNWIRE_FIXTURES`
//! names, or beside the workspace. They aren't part of this project; without them this says that it skipped.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

use crate::model_support;

use std::path::PathBuf;

use model_support::{STREAM, hear, hear_parts};
use serde_json::Value;
use turnwire::model::{Api, ReplyLimits};

fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("TURNWIRE_FIXTURES").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| {
        PathBuf::from(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../shared/cases/files"
        ))
    });
    folder.join("expected.jsonl").is_file().then_some(folder)
}

#[test]
fn recorded_streams_amount_to_what_a_separate_reader_says() {
    let Some(folder) = folder() else {
        eprintln!("skipped: no recorded streams (set TURNWIRE_FIXTURES to their folder)");
        return;
    };
    let expected = std::fs::read_to_string(folder.join("expected.jsonl")).unwrap();
    let mut checked = 0;
    for line in expected.lines() {
        let expected: Value = serde_json::from_str(line).unwrap();
        let file = expected["file"].as_str().unwrap();
        let api = if expected["kind"] == "anthropic" {
            Api::Anthropic
        } else {
            Api::OpenAi
        };
        let body = std::fs::read(folder.join(file)).unwrap();
        let heard = hear(api, &STREAM, &body);
        let want = &expected["reply"];
        assert!(heard.complete(), "{file}: {heard:?}");
        assert_eq!(heard.text, want["text"].as_str().unwrap(), "{file}");
        assert_eq!(heard.finish.as_deref(), want["finish"].as_str(), "{file}");
        assert_eq!(
            heard.thinking.chars().count() as u64,
            want["reasoning_chars"],
            "{file}"
        );
        let calls = want["calls"].as_array().unwrap();
        assert_eq!(heard.calls.len(), calls.len(), "{file}");
        for (got, call) in heard.calls.iter().zip(calls) {
            assert_eq!(
                (got.id.as_deref(), &*got.name),
                (call["id"].as_str(), call["name"].as_str().unwrap()),
                "{file}"
            );
            assert_eq!(
                serde_json::from_str::<Value>(&got.args).unwrap(),
                call["args"],
                "{file}"
            );
        }
        if let Some(usage) = want["usage"].as_object() {
            let got = heard.usage.last().unwrap();
            assert_eq!(
                got.input.unwrap() + got.cache_read.unwrap_or(0),
                usage["prompt_tokens"],
                "{file}"
            );
            // The buckets don't overlap, wherever the provider counted its thinking.
            let sum: u64 = [
                got.input,
                got.cache_read,
                got.cache_write,
                got.output,
                got.reasoning,
            ]
            .into_iter()
            .flatten()
            .sum();
            assert_eq!(sum, usage["total_tokens"], "{file}");
        }
        for size in [1, 2, 3, 7, 64, 1000] {
            assert_eq!(
                hear_parts(api, &STREAM, ReplyLimits::default(), body.chunks(size)),
                heard,
                "{file} in pieces of {size}"
            );
        }
        checked += 1;
    }
    assert!(checked > 0);
}
