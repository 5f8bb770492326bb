//! Plays the traces of the design's table: the very text of a row, `input → outputs; …`, is what is tested.
//!
//! Macros of the notation (RQ, Q, O, O2, N2, C, X, A) are written out here, in the words of
//! [`World::drain`](super::world::World::drain).

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use super::world::{World, config, hook};
use crate::session::SessionConfig;
use crate::vocab::*;

const TRACES: &str = include_str!("traces.txt");

/// Plays the trace of an id.
pub fn play(id: &str) {
    let row = TRACES
        .lines()
        .find(|line| line.starts_with(id))
        .unwrap_or_else(|| panic!("no trace {id}"));
    let mut cells = row.split(" | ");
    let (_, about, trace) = (cells.next(), cells.next().unwrap(), cells.next().unwrap());
    let trace = trace.replace(
        "**A**",
        "@0 Prompt P1 → **O**; r1 Call writeask#n1 → MS, D call c1; r1 Finish, End → **C**, TB c1, AQ a1 c1",
    );
    let mut world = World::new(policy(about));
    for part in trace.split("; ") {
        let (input, outputs) = part
            .split_once(" → ")
            .unwrap_or_else(|| panic!("{id}: no arrow in {part}"));
        let said = act(&mut world, input.trim());
        let wanted = expand(outputs);
        assert!(
            matches(&said, &wanted),
            "{id}: {input}\n said   {said:?}\n wanted {wanted:?}"
        );
        if let Some(due) = world.session.poll_timeout() {
            assert!(
                due.at_us > world.now.mono_us || said.is_empty(),
                "{id}: {input}: a deadline in the past"
            );
        }
    }
}

/// Every trace of the file.
pub fn ids() -> Vec<&'static str> {
    TRACES
        .lines()
        .filter_map(|line| line.split(" | ").next())
        .filter(|id| id.starts_with("T-"))
        .collect()
}

fn policy(about: &str) -> SessionConfig {
    let mut config = config();
    let Some((_, options)) = about.split_once('(') else {
        return config;
    };
    for option in options.trim_end_matches(')').split(' ') {
        let (name, value) = option.split_once('=').unwrap();
        let number: u64 = value.parse().unwrap();
        match name {
            "prompt_hook" => config.hooks.push(hook(HookPoint::PromptSubmit)),
            "perm_hook" => config.hooks.push(hook(HookPoint::Permission)),
            "end_hook" => config.hooks.push(hook(HookPoint::TurnEnd)),
            "max_refusals" => config.policy.max_refusals = u32::try_from(number).ok(),
            "max_steps" => config.budgets.steps = u32::try_from(number).ok(),
            "t_approval" => config.timeouts.approval_us = Some(number * super::world::SECOND),
            "gate_prompt" => config.policy.gates.prompt = true,
            "gate_end" => config.policy.gates.turn_end = true,
            other => panic!("unknown policy {other}"),
        }
    }
    config
}

fn act(world: &mut World, input: &str) -> Vec<String> {
    let mut words: Vec<&str> = input.split(' ').collect();
    if let Some(time) = words.first().and_then(|word| word.strip_prefix('@')) {
        world.at(time.parse().unwrap());
        words.remove(0);
    }
    let number = |word: &str| -> u64 { word[1..].trim_end_matches(',').parse().unwrap() };
    match words.as_slice() {
        ["Prompt", id] => world.prompt(number(id), Deliver::IfIdle),
        ["Prompt", id, how] => {
            let deliver = match *how {
                "Steer:Start" => Deliver::Steer {
                    idle: IdleSteer::Start,
                },
                "Steer:Drop" => Deliver::Steer {
                    idle: IdleSteer::Drop,
                },
                "FollowUp" => Deliver::FollowUp,
                "Context" => Deliver::Context,
                "Preempt" => Deliver::Preempt,
                other => panic!("deliver {other}"),
            };
            world.prompt(number(id), deliver)
        }
        ["Cancel"] => world.cancel(CancelWhat::Turn {
            queue: QueueFate::Run,
        }),
        ["Cancel", "Retry"] => world.cancel(CancelWhat::Retry),
        ["Cancel", "Turn", "Keep"] => world.cancel(CancelWhat::Turn {
            queue: QueueFate::Keep,
        }),
        ["Cancel", "Turn", "Drop", why] => {
            let why = match *why {
                "PeerGone" => CancelWhy::PeerGone,
                "Signal" => CancelWhy::Signal(Signal::Terminate),
                other => panic!("why {other}"),
            };
            world.command(Command::Cancel {
                what: CancelWhat::Turn {
                    queue: QueueFate::Drop,
                },
                why,
            })
        }
        ["Reply", ask, how] => {
            let ask = number(ask);
            match *how {
                "Allow" => world.allow(ask),
                "Deny" => world.deny(ask),
                "DenyInterrupt" => world.reply(
                    ask,
                    Ok(Reply::Deny {
                        message: None,
                        interrupt: true,
                    }),
                ),
                "HostGone" => world.reply(ask, Err(ReplyFault::HostGone)),
                other => panic!("reply {other}"),
            }
        }
        ["Set", "Auto"] => world.command(Command::Set(Setting::Approvals(ApprovalMode::Auto))),
        ["Close", "drain"] => world.command(Command::Close { drain: true }),
        ["Close", "now"] => world.command(Command::Close { drain: false }),
        ["Fault"] => world.give(Input::Fault {
            detail: "boom".into(),
        }),
        ["Woken"] => world.wake(),
        ["Hook", id, "block"] => world.hook(number(id), HookVerdict::Deny("no".into())),
        ["Hook", id, "allow"] => world.hook(number(id), HookVerdict::Allow { input: None }),
        ["Store", id] => world.store(number(id), true),
        ["Tool", id, "ok"] => world.tool(number(id), ToolOutcome::Ok),
        ["Tool", id, "failed"] => world.tool(number(id), ToolOutcome::Failed),
        [request, "Call", call] => {
            let (name, id) = call.split_once('#').unwrap();
            world.call(number(request), name, id, "{\"path\":\"x\"}")
        }
        [request, "Text"] => world.model(number(request), ModelChunk::Text("text")),
        [request, "Thinking"] => world.model(number(request), ModelChunk::Thinking("hm")),
        [request, "Finish,", "End"] => world.complete(number(request)),
        [request, "End"] => world.model(number(request), ModelChunk::End),
        [request, "Failed", how @ ..] => {
            let failure = Failure {
                kind: FailureKind::Server,
                status: Some(500),
                retryable: true,
                text: "500".into(),
            };
            let reached = !how.contains(&"unreached");
            let wait = how
                .iter()
                .find_map(|word| word.strip_prefix("retry-after="));
            let retry_after_us =
                wait.map(|wait| wait.parse::<u64>().unwrap() * super::world::SECOND);
            world.model(
                number(request),
                ModelChunk::Failed {
                    failure,
                    reached,
                    retry_after_us,
                },
            )
        }
        other => panic!("input {other:?}"),
    }
}

/// Writes the macros out.
fn expand(outputs: &str) -> Vec<String> {
    let mut wanted = Vec::new();
    if outputs.trim() == "–" {
        return wanted;
    }
    for word in outputs.trim().split(", ") {
        let words: Vec<&str> = word.split(' ').collect();
        match words.as_slice() {
            ["**O**"] => wanted.extend(expand(
                "RP P1 Started, TS t1 Prompt, SS 1, PP P1 t1, RQ r1 1.1",
            )),
            ["**O2**"] => wanted.extend(expand("TS t2 Queue, SS 1, PP P2 t2, RQ r2 1.1")),
            ["**N2**"] => wanted.extend(expand("SS 2, RQ r2 2.1")),
            ["**C**"] => {
                wanted.extend(["ME End|ToolUse kept".to_string(), "RE Complete".to_string()])
            }
            ["**X**"] => wanted.extend(expand("SE 1, TE t1 Cancelled:Host, PE P1 Cancelled:Host")),
            ["Q", prompt, lane] => {
                wanted.extend([format!("RP Queued {lane}"), format!("QD {prompt} {lane}")])
            }
            ["PP", prompt, turn] => {
                wanted.extend([
                    format!("PromptApplied {prompt} {turn}"),
                    format!("Message {prompt}"),
                ]);
            }
            ["RQ", request, at] => {
                if at.ends_with(".1") {
                    wanted.push("Context".into());
                }
                wanted.extend([
                    format!("RequestStarted {request} {at}"),
                    format!("!StartModel {request}"),
                ]);
            }
            // The prompt of a reply is that of the command.
            ["RP", prompt, rest @ ..] if prompt.starts_with('P') => {
                wanted.push(format!("RP {}", rest.join(" ")))
            }
            _ => wanted.push(word.to_string()),
        }
    }
    wanted
}

fn matches(said: &[String], wanted: &[String]) -> bool {
    said.len() == wanted.len()
        && said
            .iter()
            .zip(wanted)
            .all(|(said, wanted)| match wanted.as_str() {
                "ME End|ToolUse kept" => said == "ME End kept" || said == "ME ToolUse kept",
                "RE Complete" => said.starts_with("RE ") && said.ends_with(" Complete"),
                // A retry that succeeded is said after its request; the notation leaves it out.
                wanted => said == wanted,
            })
}

#[test]
fn every_trace_has_a_test() {
    let source = include_str!("traces.rs");
    let names: Vec<String> = vec_of_names(source);
    for id in ids() {
        let name = format!("t_{}", &id[2..]);
        assert!(
            names.iter().any(|test| test.starts_with(&name)),
            "{id} is not tested"
        );
    }
}

fn vec_of_names(source: &str) -> Vec<String> {
    let mut names = vec![];
    for line in source.lines() {
        if let Some(name) = line
            .trim()
            .strip_prefix("fn ")
            .and_then(|rest| rest.split('(').next())
        {
            names.push(name.to_string());
        }
    }
    names
}
