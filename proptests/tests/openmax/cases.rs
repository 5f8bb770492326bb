//! Engine cases from the field, spoken to a Server with a real session behind it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::openmax_kit;

use std::collections::BTreeMap;

use openmax_kit::duo::*;
use serde_json::Value;
use turnwire::model::Api;
use turnwire::vocab::*;
use turnwire_proptests::cases;

/// Plays the steps of a case.
struct Play {
    duo: Duo,
    /// Requests by the name that a step gave them.
    named: BTreeMap<String, usize>,
    /// Requests whose head was sent.
    answered: usize,
    /// Members of lines that a step kept.
    kept: BTreeMap<String, String>,
    /// Lines that `see` has passed.
    seen: usize,
}

impl Play {
    fn new(mode: ApprovalMode, api: Api) -> Self {
        let duo = Duo::with(session_config(mode), api, openmax_kit::config());
        let seen = duo.all_lines.len();
        Play {
            duo,
            named: BTreeMap::new(),
            answered: 0,
            kept: BTreeMap::new(),
            seen,
        }
    }

    fn steps(&mut self, steps: &Value) {
        steps
            .as_array()
            .unwrap()
            .iter()
            .for_each(|step| self.step(step));
    }

    fn step(&mut self, step: &Value) {
        let members = step.as_object().unwrap();
        let (verb, value) = members
            .iter()
            .find(|(name, _)| !matches!(name.as_str(), "as" | "keep"))
            .unwrap();
        let name = step["as"].as_str().unwrap_or_default();
        match verb.as_str() {
            "host" => {
                let mut line = value.to_string();
                for (name, kept) in &self.kept {
                    line = line.replace(&format!("\"${name}\""), &format!("\"{kept}\""));
                }
                self.duo.host(&line);
            }
            "model_head" => {
                self.named.insert(
                    value["as"].as_str().unwrap_or_default().into(),
                    self.answered,
                );
                let status = u16::try_from(value["status"].as_u64().unwrap()).unwrap();
                assert_eq!(
                    self.duo.requests.len(),
                    self.answered + 1,
                    "a request waits for its answer"
                );
                self.duo
                    .head(status, value["headers"]["retry-after"].as_str());
                self.answered += 1;
                if let Some(body) = value["body"].as_str() {
                    self.duo.bytes(body);
                }
            }
            "model" => self.duo.bytes_of(self.named[name], value.as_str().unwrap()),
            "model_close" => self.duo.close_of(self.named[name], value == "clean"),
            "tool_done" => self.tool_done(value),
            "advance_ms" => self.duo.pass_ms(value.as_u64().unwrap()),
            "see" => self.see(value, &step["keep"]),
            "request_seen" => {}
            other => panic!("no such verb: {other}"),
        }
    }

    /// Calls are named by their wire ids.
    fn tool_done(&mut self, value: &Value) {
        let id = value["call"].as_str().unwrap();
        let started = self.duo.all("tool_start", "call_id");
        let index = started.iter().position(|started| started == id).unwrap();
        let call = CallId(index as u64 + 1);
        let known = self.duo.running.iter().any(|running| running.call == call)
            || self.duo.stopping.contains(&call);
        assert!(
            known,
            "{call:?} of {:?} {:?}",
            self.duo.running, self.duo.stopping
        );
        self.duo.tool_done(
            call,
            value["ok"].as_bool().unwrap(),
            value["output"].as_str().unwrap_or_default(),
        );
    }

    fn see(&mut self, wanted: &Value, keep: &Value) {
        let lines: Vec<Value> = self
            .duo
            .all_lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let wanted = wanted.as_object().unwrap();
        let fits = |line: &Value| wanted.iter().all(|(name, value)| line[name] == *value);
        let found = lines.iter().skip(self.seen).position(fits);
        let at = self.seen
            + found.unwrap_or_else(|| {
                panic!("{wanted:?} not in {:?}", &self.duo.all_lines[self.seen..])
            });
        self.seen = at + 1;
        for (name, member) in keep.as_object().into_iter().flatten() {
            let value = lines[at][member.as_str().unwrap()].as_str().unwrap();
            self.kept.insert(name.clone(), value.to_owned());
        }
    }

    fn counts(&self, counts: &Value) {
        for (kind, count) in counts.as_object().unwrap() {
            assert_eq!(
                Value::from(self.duo.all(kind, "type").len()),
                *count,
                "{kind}: {:#?}",
                self.duo.all_lines
            );
        }
    }

    fn tokens(&self) -> String {
        self.duo
            .all("token", "text")
            .iter()
            .filter_map(Value::as_str)
            .collect()
    }
}

fn case(id: &str) -> Value {
    cases::named(id).expect("the case exists").json
}

#[test]
fn e01_a_prompt_while_a_turn_runs() {
    let case = case("E01-prompt-while-a-turn-runs");
    let mut play = Play::new(ApprovalMode::Auto, Api::OpenAi);
    play.steps(&case["steps"]["openmax"]);
    play.counts(&case["expect"]["data"]["openmax"]["counts"]);
}

#[test]
fn e02_late_words_of_a_cancelled_turn() {
    let case = case("E02-late-words-of-a-cancelled-turn");
    let mut play = Play::new(ApprovalMode::Auto, Api::OpenAi);
    play.steps(&case["steps"]);
    let data = &case["expect"]["data"];
    play.counts(&data["counts"]);
    assert_eq!(
        Value::from(play.duo.all("done", "stop_reason")),
        data["done"]
    );
    assert_eq!(
        play.duo.all("message_done", "text").last(),
        Some(&data["second_text"])
    );
    assert!(!play.duo.all_lines.iter().any(|line| line.contains("LATE")));
}

#[test]
fn e03_each_call_gets_one_result() {
    let case = case("E03-each-call-gets-one-result");
    let mut play = Play::new(ApprovalMode::Auto, Api::OpenAi);
    play.steps(&case["steps"]);
    play.counts(&case["expect"]["data"]["counts"]);
    let wanted = &case["expect"]["data"]["next_request"];
    let messages = &play.duo.requests.last().unwrap().messages;
    let at = messages
        .iter()
        .position(|message| message.role == Role::Assistant)
        .unwrap();
    let mut calls = BTreeMap::new();
    for block in &messages[at].content {
        if let Block::ToolUse {
            call, provider_id, ..
        } = &**block
        {
            calls.insert(*call, provider_id.as_deref().unwrap().to_owned());
        }
    }
    assert_eq!(
        Value::from(calls.values().cloned().collect::<Vec<_>>()),
        wanted["calls"]
    );
    let results: Vec<String> = messages[at + 1..]
        .iter()
        .map_while(|message| match &message.role {
            Role::Tool { call, .. } => Some(calls[call].clone()),
            _ => None,
        })
        .collect();
    assert_eq!(
        Value::from(results),
        wanted["results"],
        "directly after the message that made the calls"
    );
    assert!(
        !format!("{messages:?}").contains("late"),
        "a late outcome changes nothing"
    );
}

#[test]
fn e04_approvals_answered_wrongly() {
    let case = case("E04-approvals-answered-wrongly");
    let mut play = Play::new(ApprovalMode::Ask, Api::OpenAi);
    play.steps(&case["steps"]);
    let data = &case["expect"]["data"];
    play.counts(&data["counts"]);
    assert_eq!(
        Value::from(play.duo.all("approval_settled", "outcome")),
        data["settled"]
    );
    assert_eq!(play.duo.running, [], "no tool ran");
}

#[test]
fn e06_how_long_to_wait() {
    let case = case("E06-how-long-to-wait");
    for row in case["expect"]["data"]["rows"].as_array().unwrap() {
        let mut play = Play::new(ApprovalMode::Auto, Api::OpenAi);
        let duo = &mut play.duo;
        duo.user("go");
        let date;
        let mut header = row["retry_after"].as_str();
        if header.is_some_and(|text| text.starts_with("@now+20s")) {
            // The clock of the test begins at 1,700,000,000 s.
            date = "Tue, 14 Nov 2023 22:13:40 GMT";
            header = Some(date);
        }
        duo.head(
            u16::try_from(row["status"].as_u64().unwrap()).unwrap(),
            header,
        );
        if let Some(body) = row["body"].as_str() {
            duo.bytes(body);
        }
        duo.close();
        let labels = duo.labels();
        if row["wait_s"] == "none" {
            assert_eq!(labels, ["budget", "error", "done(error)"], "{row}");
            let error = duo.all("error", "message")[0].as_str().unwrap().to_owned();
            if row["retry_after"] == "61" {
                assert!(error.contains("61"), "the error names the wait: {error}");
            }
            if row["body"].is_string() {
                assert!(
                    error.contains("used up"),
                    "the error names the quota: {error}"
                );
            }
            continue;
        }
        assert_eq!(labels, ["budget", "retry"], "{row}");
        let least = row["wait_s"].as_u64().unwrap_or(1);
        duo.pass_ms(least * 1_000 - 1);
        assert_eq!(duo.requests.len(), 1, "not before {least} s: {row}");
        duo.pass_ms(20_000);
        assert_eq!(duo.requests.len(), 2, "{row}");
    }
}

#[test]
fn e07_overload_in_the_stream() {
    let case = case("E07-overload-in-the-stream");
    for variant in ["before_text", "after_text"] {
        let mut play = Play::new(ApprovalMode::Auto, Api::Anthropic);
        play.steps(&case["steps"][variant]);
        let data = &case["expect"]["data"][variant];
        play.counts(&data["counts"]);
        assert_eq!(data["tokens"], play.tokens());
    }
}
