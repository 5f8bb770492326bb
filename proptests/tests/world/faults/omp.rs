//! The classic faults of omp: who answers what, frames in chunks, queues that are given back.

use turnwire::{
    protocol::{observer::Dir, omp::Omp},
    vocab::*,
};
use turnwire_proptests::world::By;

use super::{
    Doubles, Reads, Says, TURN, Writes, finds, loses_tails, over, story, tampered, twice,
    unterminated, with,
};

/// Three prompts, two of which wait, and a cancel that gives them back.
const QUEUE: &str =
    "> prompt if-idle\n> prompt queue next\n> prompt steer start\n> cancel turn drop\n";

/// The text of the first `"id"` in a line.
fn id(line: &str) -> &str {
    let tail = line.split("\"id\":\"").nth(1).unwrap_or_default();
    tail.split('"').next().unwrap_or_default()
}

/// A host that takes the response to its prompt for the end of it.
#[test]
fn omp_03_an_end_that_is_taken_from_the_response() {
    let hasty = |line: &str| {
        if line.contains("\"command\":\"prompt\",\"success\":true") {
            let id = id(line);
            return format!(
                "{line}{{\"type\":\"prompt_result\",\"id\":\"{id}\",\"agentInvoked\":true,\"status\":\"completed\",\"sessionSettled\":true}}\n"
            );
        }
        if line.contains("\"prompt_result\"") {
            return String::new();
        }
        line.to_owned()
    };
    let report = over::<Omp>(TURN, Reads(Dir::Agent, hasty));
    finds(&report, By::Client, "client");
}

/// A response that doesn't say whose it is.
#[test]
fn omp_02_a_response_without_the_id_of_its_command() {
    let nameless = |line: &str| {
        if line.contains("\"command\":\"prompt\"") {
            line.replace(&format!("\"id\":\"{}\",", id(line)), "")
        } else {
            line.to_owned()
        }
    };
    let report = over::<Omp>(TURN, Writes(Dir::Agent, nameless));
    finds(&report, By::Observer, "OMP-02.a");
}

/// What was taken back from the queue is told twice.
#[test]
fn omp_07_a_restored_prompt_that_is_told_twice() {
    let both = |said| {
        twice(said, |what| {
            let dropped = What::PromptEnded {
                prompt: PromptId(2),
                end: End::Dropped(DropWhy::Cancelled),
            };
            *what == dropped
        })
    };
    let report = with::<Omp>(QUEUE, Says(both));
    finds(&report, By::Checker, "S-10");
    finds(&report, By::Reference, "TW-01");
    let report = over::<Omp>(QUEUE, Doubles("\"abort_and_restore_queue\""));
    finds(&report, By::Observer, "OMP-02.a");
    finds(&report, By::Client, "client");
}

/// A reply that fits no line.
fn large() -> String {
    let text: String = (0..150_000).map(|n| format!("{n:07} ")).collect();
    format!("> prompt if-idle\n+ model 0 text \"{text}\"\n+ model 0 finish\n+ model 0 end\n")
}

/// A host that puts the pieces of a frame together in another order.
#[test]
fn omp_09_a_frame_that_is_joined_in_another_order() {
    let mut kept: Option<String> = None;
    let swapped = move |line: &str| {
        let data = |line: &str| {
            let tail = line.split("\"data\":\"").nth(1).unwrap_or_default();
            tail.split('"').next().unwrap_or_default().to_owned()
        };
        if line.contains("\"rpc_chunk\"") && line.contains("\"index\":1,") {
            kept = Some(line.to_owned());
            return String::new();
        }
        match kept.take() {
            Some(first) if line.contains("\"index\":2,") => {
                let (one, other) = (data(&first), data(line));
                let first = first.replace(&one, &other);
                first + &line.replace(&other, &one)
            }
            first => first.unwrap_or_default() + line,
        }
    };
    let scenario = story::<Omp>(&large());
    let report = tampered::<Omp>(&scenario, Reads(Dir::Agent, swapped));
    finds(&report, By::View, "view");
    finds(&report, By::Client, "client");
    // Without one of them.
    let lossy = |line: &str| {
        let lost = line.contains("\"rpc_chunk\"") && line.contains("\"index\":1,");
        if lost { String::new() } else { line.to_owned() }
    };
    let report = tampered::<Omp>(&scenario, Writes(Dir::Agent, lossy));
    finds(&report, By::Observer, "OMP-09.c");
    finds(&report, By::Client, "client");
}

/// What was said in an earlier process, told as if it happened now.
#[test]
fn omp_03_history_that_is_replayed_as_events() {
    let replays = |line: &str| {
        if line.contains("\"command\":\"get_state\"") {
            let old = [
                r#"{"type":"turn_start"}"#,
                r#"{"type":"message_start","message":{"role":"assistant","content":[],"provider":"p","model":"m","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop","timestamp":1700000000000},"messageId":"msg-0"}"#,
                r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"old"},"message":{"role":"assistant"},"messageId":"msg-0"}"#,
            ];
            return format!("{line}{}\n", old.join("\n"));
        }
        line.to_owned()
    };
    let report = over::<Omp>(TURN, Writes(Dir::Agent, replays));
    finds(&report, By::Observer, "OMP-03.e");
    finds(&report, By::View, "view");
}

/// A last line without its newline, which a reader loses.
#[test]
fn omp_02_a_last_line_that_is_lost() {
    let scenario = story::<Omp>("set leave end-of-input\n> prompt if-idle\n");
    tampered::<Omp>(&scenario, unterminated("\"prompt\"")).assert_clean();
    let report = tampered::<Omp>(&scenario, loses_tails("\"prompt\""));
    finds(&report, By::Observer, "OMP-02.b");
}
