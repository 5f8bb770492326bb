//! What the Server makes of whatever a session says: stories of the world (models, tools, hooks, disks, hosts), played
//! with a session alone and told to a Server.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;
use turnwire::json::Members;
use turnwire::protocol::Protocol;
use turnwire::protocol::agentx::wire::{AgentLine, CLOSED_RULES, Record, System};
use turnwire::protocol::agentx::{Agentx, Policy, ServerConfig, preset};
use turnwire::session::Session;
use turnwire::vocab::*;
use turnwire_proptests::laws::{
    AgentMachine, Machine, ServerInput, ServerMachine, ServerSaid, hold,
};
use turnwire_proptests::reference::Judged;
use turnwire_proptests::scenario::Scenario;
use turnwire_proptests::world::{START, record_agent, session_world};

use crate::agentx_kit::duo::info;

type Story = Vec<(ServerInput<Agentx>, Now)>;

/// What a session says in the story of these bytes, as inputs of a Server.
fn story(data: &[u8], policy: &Policy) -> Story {
    story_of(&Scenario::decode(data), policy)
}

fn story_of(scenario: &Scenario, policy: &Policy) -> Story {
    let mut config = scenario.setup.session();
    preset(&mut config, policy);
    let judged = Judged::Session(config.policy.gates);
    let (_, told) = record_agent(scenario, session_world(config.clone(), info()), judged);
    let mut machine = AgentMachine(Session::new(config, Box::new(info()), START));
    let mut story = Vec::new();
    let mut hear = |machine: &mut AgentMachine<Session>, now| {
        while let Some(said) = machine.poll() {
            if !matches!(said.lend(), Output::Effect { .. }) {
                story.push((ServerInput::Said(Box::new(said)), now));
            }
        }
    };
    hear(&mut machine, START);
    for (given, now) in &told {
        machine.handle(given, *now).unwrap();
        hear(&mut machine, *now);
    }
    story
}

fn make(policy: Policy) -> ServerMachine<Agentx> {
    let mut config = ServerConfig::new([7; 32], policy);
    config.states = true;
    config.partial = true;
    ServerMachine::new(config, Agentx::host_line_rules())
}

fn lines(policy: Policy, story: &Story) -> Vec<Value> {
    let mut machine = make(policy);
    let mut bytes = Vec::new();
    let mut drain = |machine: &mut ServerMachine<Agentx>| {
        while let Some(said) = machine.poll() {
            if let ServerSaid::Lines(lines) = said {
                bytes.extend(lines);
            }
        }
    };
    for (input, now) in story {
        machine.handle(input, *now).unwrap();
        drain(&mut machine);
    }
    drain(&mut machine);
    let text = String::from_utf8(bytes).unwrap();
    let mut members = Members::default();
    text.lines()
        .map(|line| {
            let read = AgentLine::decode(line.as_bytes(), &CLOSED_RULES, &mut members)
                .unwrap_or_else(|fault| panic!("{fault}: {line}"));
            let odd = matches!(
                read,
                AgentLine::Unknown { .. }
                    | AgentLine::System(System::Unknown(_))
                    | AgentLine::Record(Record::Unknown(_))
            );
            assert!(!odd, "no line of the contract: {line}");
            serde_json::from_str(line).unwrap()
        })
        .collect()
}

/// What is wrong with the lines of a whole session.
fn wrong(lines: &[Value], ended: usize) -> Option<String> {
    let mut calls = BTreeSet::new();
    let mut paired = BTreeSet::new();
    let mut uuids = BTreeSet::new();
    let mut requests = BTreeSet::new();
    let mut results = 0;
    let mut state = "idle".to_owned();
    let mut open = None;
    for line in lines {
        let event = &line["event"];
        let fits = match event["type"].as_str() {
            Some("content_block_start") => open.replace(event["index"].clone()).is_none(),
            Some("content_block_delta") => open.as_ref() == Some(&event["index"]),
            Some("content_block_stop") => open.take().as_ref() == Some(&event["index"]),
            Some("message_start" | "message_delta" | "message_stop") => open.is_none(),
            _ => true,
        };
        if !fits {
            return Some(format!("blocks overlap: {line}"));
        }
        if let Some(uuid) = line["uuid"].as_str()
            && !uuids.insert(uuid.to_owned())
        {
            return Some(format!("an id comes twice: {line}"));
        }
        match line["type"].as_str().unwrap() {
            "assistant" => {
                for block in line["message"]["content"].as_array().unwrap() {
                    if block["type"] == "tool_use" && !calls.insert(block["id"].clone().to_string())
                    {
                        return Some(format!("a call comes twice: {line}"));
                    }
                }
            }
            "user" => {
                for block in line["message"]["content"].as_array().unwrap() {
                    let id = block["tool_use_id"].to_string();
                    if block["type"] == "tool_result" && !paired.insert(id) {
                        return Some(format!("a result comes twice: {line}"));
                    }
                }
            }
            "result" => {
                results += 1;
                let failed = line["subtype"] != "success";
                if failed != line["errors"].is_array() || failed == line["result"].is_string() {
                    return Some(format!("errors and result exclude each other: {line}"));
                }
                if state == "idle" {
                    return Some(format!("a result when nothing runs: {line}"));
                }
            }
            "control_request" => {
                requests.insert(line["request_id"].to_string());
            }
            "control_cancel_request" if !requests.remove(&line["request_id"].to_string()) => {
                return Some(format!("a request that wasn't open is withdrawn: {line}"));
            }
            _ => {}
        }
        if line["subtype"] == "session_state_changed" {
            let new = line["state"].as_str().unwrap();
            if new == state {
                return Some(format!("a state comes twice: {line}"));
            }
            state = new.to_owned();
        }
    }
    if results != ended {
        return Some(format!("{ended} turns, {results} results"));
    }
    (!paired.is_subset(&calls)).then(|| format!("results without calls: {paired:?} {calls:?}"))
}

/// Turns that ended and whose end the session still told the rest of.
fn turns(story: &Story) -> usize {
    let ended = story.iter().filter(|(input, _)| match input {
        ServerInput::Said(said) => matches!(
            said.lend(),
            Output::Event(Event {
                what: What::TurnEnded { .. },
                ..
            })
        ),
        _ => false,
    });
    ended.count()
}

fn is_closed(story: &Story) -> bool {
    story.iter().any(|(input, _)| match input {
        ServerInput::Said(said) => matches!(
            said.lend(),
            Output::Event(Event {
                what: What::Closed { .. } | What::Settled,
                ..
            })
        ),
        _ => false,
    })
}

/// WIRE-003: a provider says two blocks at once, and their events and records stand one after the other.
#[test]
fn wire_003_a_block_that_begins_within_another_waits_until_that_is_whole() {
    let story = "turnwire scenario 1\n> prompt if-idle\n+ model 81 half-call\n";
    let story = story_of(&Scenario::parse(story).unwrap(), &Policy::CLAUDE);
    let lines = lines(Policy::CLAUDE, &story);
    let told: Vec<String> = lines
        .iter()
        .filter_map(|line| match line["type"].as_str()? {
            "stream_event" => {
                let event = &line["event"];
                let kind = event["type"].as_str()?.strip_prefix("content_block_")?;
                Some(format!("{kind} {}", event["index"]))
            }
            "assistant" => Some(line["message"]["content"][0]["type"].to_string()),
            _ => None,
        })
        .collect();
    let first = ["start 0", "delta 0", "\"tool_use\"", "stop 0"];
    let second = ["start 1", "delta 1", "\"text\"", "stop 1"];
    let told: Vec<&str> = told.iter().take(8).map(String::as_str).collect();
    assert_eq!(told, [first, second].concat());
}

/// WIRE-003: text that waits behind a call is shown though the session breaks before the call is whole.
#[test]
fn wire_003_text_that_waits_is_shown_when_its_reply_comes_to_nothing() {
    let story = "turnwire scenario 1\n> prompt if-idle\n+ model 1 half-call\n+ model 1 text \"so\"\n+ fault\n";
    for policy in [Policy::CLAUDE, Policy::AGENTX] {
        let story = story_of(&Scenario::parse(story).unwrap(), &policy);
        let lines = lines(policy, &story);
        let text: String = lines
            .iter()
            .filter(|line| line["type"] == "stream_event")
            .filter_map(|line| {
                let delta = &line["event"]["delta"];
                delta["text"].as_str().or(delta.as_str())
            })
            .collect();
        assert_eq!(text, "so", "{lines:?}");
    }
}

/// What the strict wire tells of replies in the story of this text: `+` a piece, a block by its type.
fn strict_blocks(story: &str) -> Vec<String> {
    let policy = Policy::AGENTX;
    let story = format!("turnwire scenario 1\n> prompt if-idle\n{story}");
    let lines = lines(
        policy,
        &story_of(&Scenario::parse(&story).unwrap(), &policy),
    );
    lines
        .iter()
        .filter_map(|line| match line["type"].as_str()? {
            "stream_event" => Some(format!("+{}", line["event"]["delta"].as_str()?)),
            "assistant" => Some(line["message"]["content"][0]["type"].as_str()?.to_owned()),
            "user" => Some(line["message"]["content"][0]["type"].as_str()?.to_owned()),
            _ => None,
        })
        .collect()
}

/// The strict wire has no record of a retry: what a void attempt has called is not told either, or the host would wait
/// for a result that never comes.
#[test]
fn wire_011_a_call_of_an_attempt_that_is_tried_again_is_not_told() {
    for fails in ["+ model 1 failed overloaded reached\n", "@ jump\n"] {
        let told = strict_blocks(&format!("+ model 1 call read\n{fails}@ jump\n"));
        assert_eq!(told, ["+fine", "text"], "{fails}");
    }
    // Where the context is full a summary comes between the two.
    let full = "+ model 1 call read\n+ model 1 failed context-full reached\n";
    assert_eq!(strict_blocks(full), ["+fine", "text"]);
}

/// Once text is shown no attempt is void: a call that waited is told before it, in the order of the blocks.
#[test]
fn wire_011_a_call_is_told_before_the_text_behind_it_and_before_its_result() {
    let told = strict_blocks(
        "+ model 1 call read\n+ model 1 text \"so\"\n+ model 1 finish\n+ model 1 end\n",
    );
    assert_eq!(told[..3], ["tool_use", "+so", "text"], "{told:?}");
    assert_eq!(told[3..5], ["tool_result", "+fine"], "{told:?}");
    let told = strict_blocks("+ model 1 text \"so\"\n+ model 1 call read\n");
    assert_eq!(told[..3], ["+so", "text", "tool_use"], "{told:?}");
    let told = strict_blocks(
        "+ model 1 call read\n+ model 1 call read\n+ model 1 finish\n+ model 1 end\n",
    );
    assert_eq!(
        told[..3],
        ["tool_use", "tool_use", "tool_result"],
        "{told:?}"
    );
}

proptest! {
    #![proptest_config(turnwire_proptests::config(100))]

    #[test]
    fn what_a_session_says_comes_to_lines_that_hold_together(
        data in proptest::collection::vec(any::<u8>(), 0..220),
        which in 0..3usize,
    ) {
        let policy = [Policy::AGENTX, Policy::AGENTX_FULL, Policy::CLAUDE][which];
        let story = story(&data, &policy);
        let lines = lines(policy, &story);
        let ended = turns(&story);
        // The last result may wait for the end of a prompt that the story doesn't reach.
        let whole = is_closed(&story);
        if let Some(wrong) = wrong(&lines, ended)
            && (whole || !wrong.contains("results"))
        {
            let kinds: Vec<String> = lines.iter().map(|line| {
                format!("{} {} {}", line["type"], line["subtype"], line["state"])
            }).collect();
            prop_assert!(false, "{wrong}\n{}", kinds.join("\n"));
        }
    }

    #[test]
    fn l2_l3_l4_l5_l6_l7_l9_the_server_keeps_the_laws_on_what_a_session_says(
        data in proptest::collection::vec(any::<u8>(), 0..160),
        which in 0..2usize,
    ) {
        let policy = [Policy::AGENTX, Policy::CLAUDE][which];
        let story = story(&data, &policy);
        let law = hold(|| make(policy), &story, 3);
        let broken = law.map_err(|broken| (broken.law, broken.why.chars().take(300).collect::<String>()));
        prop_assert_eq!(broken, Ok(()));
    }
}
