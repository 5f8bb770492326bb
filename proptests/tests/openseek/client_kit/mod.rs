//! What the tests of the openseek Client share: a Client whose inputs are kept, with the laws of the neutral stream watched
//! all the time, and a notation for what its host asks and what its engine writes.
//!
//! Host: `«p:a»` a prompt of that text, `«now:a»` one that wants an idle engine, `«later:a»`, `«steer:a»`, `«start:a»` (a
//! steer that may begin a turn), `«context:a»`, `«preempt:a»`, `«cancel»`, `«drop»` (with all that wait), `«next»` (the turn,
//! or else the next prompt), `«allow»`, `«deny»`, `«deny!»` for the newest question, `«compact»`, `«goal:g»`, `«task:g»`,
//! `«clear»`, `«jobs»`, `«stop:bg-1»`, `«barrier»`, `«close»`, `«leave»`, `«wait:ms»`. Engine: the words of `line`.
#![allow(dead_code, reason = "each test file uses its own part")]

#[path = "../../shared/client_rig.rs"]
mod client_rig;

use serde_json::{Value, json};
use turnwire::protocol::openseek::{ClientConfig, Openseek};
use turnwire::vocab::*;

/// A Client of openseek.
pub type Rig = client_rig::ClientRig<Openseek>;

pub fn rig() -> Rig {
    Rig::with(ClientConfig::default(), ())
}

/// A line of the engine.
pub fn line(word: &str) -> String {
    let (verb, rest) = word.split_once('(').map_or((word, ""), |(verb, rest)| {
        (verb, rest.strip_suffix(')').unwrap())
    });
    let (first, second) = rest.split_once(',').unwrap_or((rest, ""));
    let number = |text: &str| text.parse::<i64>().unwrap();
    let value = match verb {
        "step" => json!({"event":"agent_step","step":number(first)}),
        "d" => json!({"event":"assistant_delta","content":first}),
        "r" => json!({"event":"reasoning_delta","content":first}),
        "message" => json!({"event":"assistant_message","content":first}),
        "reasoning" => json!({"event":"reasoning_message","content":first}),
        "usage" => {
            json!({"event":"usage","usage":{"prompt_tokens":11,"completion_tokens":9,"total_tokens":20,
            "prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":7}})
        }
        "retry" => {
            json!({"event":"stream_retry","attempt":number(first),"max_attempts":3,"reason":"cut"})
        }
        "result" => {
            json!({"event":"tool_result","tool_call_id":first,"tool_name":second,"is_error":false,
            "content":"made","brief":"one line"})
        }
        "error" => {
            json!({"event":"tool_result","tool_call_id":first,"tool_name":second,"is_error":true,
            "content":"no","brief":null})
        }
        "skipped" => {
            json!({"event":"tool_result","tool_call_id":first,"tool_name":second,"is_error":true,
            "content":"skipped: the turn has ended","brief":null})
        }
        "undecoded" => {
            json!({"event":"tool_call_decode_error","tool_call_id":first,"tool_name":second,"error":"bad"})
        }
        "ask" => {
            json!({"event":"approval_requested","id":first,"tool_name":second,"detail":"d","body":null})
        }
        "resolved" => json!({"event":"approval_resolved","id":first,"outcome":second}),
        "applied" => json!({"event":"steer_applied","kind":first,"content":second}),
        "dropped" => json!({"event":"steer_dropped","content":first}),
        "notice" => json!({"event":"background_notice","content":first}),
        "finished" => json!({"event":"agent_finished","answer":first}),
        "aborted" => json!({"event":"agent_aborted","reason":first}),
        "failed" => json!({"event":"turn_failed","error":first}),
        "unstarted" => json!({"event":"agent_setup_failed","error":first}),
        "max_steps" => json!({"event":"max_steps_exhausted"}),
        "yield" => json!({"event":"context_yield","to_sequence":number(first),"answer":second}),
        "compacting" => json!({"event":"compaction_started","from_sequence":1,"to_sequence":9}),
        "compacted" => {
            json!({"event":"compaction_finished","from_sequence":1,"to_sequence":9,"summary":"s"})
        }
        "uncompacted" => json!({"event":"compaction_failed","error":first}),
        "auto" => json!({"event":"auto_compaction_started","from_sequence":1,"to_sequence":9}),
        "autoed" => {
            json!({"event":"auto_compaction_finished","from_sequence":1,"to_sequence":9,"summary":"s"})
        }
        "goal" if first.is_empty() => json!({"event":"goal_updated","goal":null}),
        "goal" => json!({"event":"goal_updated","goal":first}),
        "continue" => json!({"event":"goal_continue","remaining":number(first)}),
        "exhausted" => json!({"event":"goal_budget_exhausted","turns":20}),
        "reminder" => json!({"event":"goal_reminder","content":first}),
        "run" => json!({"event":"subrun_started","id":first,"kind":"review","label":"l"}),
        "ran" => {
            json!({"event":"subrun_finished","id":first,"status":"captured","steps":2,"prompt_tokens":3,
            "completion_tokens":4})
        }
        "unstored" => {
            let why = match first.split_once(':') {
                Some(("goal", why)) => format!("failed to append goal update: {why}"),
                Some((what, why)) => format!("failed to append {what}: {why}"),
                None => first.to_owned(),
            };
            json!({"event":"session_error","error":why})
        }
        "wrong" => json!({"event":"command_error","error":first.replace('_', " ")}),
        other => panic!("unknown word: {other}"),
    };
    value.to_string()
}

/// Plays the words; gives what the host saw and what was written, in the shorthand of the scenes.
pub fn play(rig: &mut Rig, scene: &str) -> (String, String) {
    for token in scene.split_whitespace() {
        rig.now.mono_us += 1_000;
        match token
            .strip_prefix('«')
            .and_then(|rest| rest.strip_suffix('»'))
        {
            Some(word) => host(rig, word),
            None if token == "end" => rig.end(),
            None => rig.agent(&line(token)),
        }
    }
    (rig.events(), written(rig))
}

/// The lines to the engine since the last look.
pub fn written(rig: &mut Rig) -> String {
    let lines = rig.take_written();
    let words = lines.iter().map(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        match value["command"].as_str().unwrap() {
            "steer" => format!(
                "{}({})",
                text("kind").replace("prompt", "steer"),
                text("text")
            ),
            "goal" if value["auto"] == true => format!("goal({})", text("text")),
            "goal" => format!("{}({})", text("action"), text("text")),
            "approval" => format!("approval({},{})", text("id"), value["allow"]),
            "job_stop" => format!("job_stop({},{})", text("generation"), text("job_id")),
            "prompt" => format!("prompt({})", text("text")),
            other => other.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn host(rig: &mut Rig, word: &str) {
    let (verb, arg) = word.split_once(':').unwrap_or((word, ""));
    let deliver = match verb {
        "p" => Some(Deliver::Queue(Rank::Next)),
        "now" => Some(Deliver::IfIdle),
        "later" => Some(Deliver::Queue(Rank::Later)),
        "steer" => Some(Deliver::Steer {
            idle: IdleSteer::DropUnlessQueued,
        }),
        "start" => Some(Deliver::Steer {
            idle: IdleSteer::Start,
        }),
        "context" => Some(Deliver::Context),
        "preempt" => Some(Deliver::Preempt),
        _ => None,
    };
    if let Some(deliver) = deliver {
        rig.prompt_as(arg, None, deliver);
        return;
    }
    let cancel = |what| Command::Cancel {
        what,
        why: CancelWhy::Host,
    };
    let set = |auto_turns| {
        Command::Goal(GoalCommand::Set {
            text: arg.into(),
            auto_turns,
            token_budget: None,
        })
    };
    let command = match verb {
        "cancel" => cancel(CancelWhat::Turn {
            queue: QueueFate::Run,
        }),
        "drop" => cancel(CancelWhat::Turn {
            queue: QueueFate::Drop,
        }),
        "next" => cancel(CancelWhat::TurnElseNextQueued),
        "allow" | "deny" | "deny!" => {
            // Ids of questions count from 1, so that the newest one has their number.
            let asked = rig.told.iter().filter(|(input, _)| {
                matches!(input, turnwire_proptests::laws::ClientInput::Bytes(bytes)
                    if bytes.starts_with(b"{\"body\":null,\"detail\":\"d\",\"event\":\"approval_requested\""))
            });
            let ask = AskId(asked.count() as u64);
            let reply = match verb {
                "allow" => Reply::Allow {
                    input: None,
                    updates: Vec::new(),
                },
                _ => Reply::Deny {
                    message: None,
                    interrupt: verb == "deny!",
                },
            };
            Command::Reply {
                ask,
                reply: Ok(reply),
            }
        }
        "compact" => Command::Compact { instructions: None },
        "goal" => set(None),
        "task" => set(Some(0)),
        "clear" => Command::Goal(GoalCommand::Clear),
        "jobs" => Command::Job(JobCommand::Snapshot),
        "stop" => Command::Job(JobCommand::Stop {
            job: arg.into(),
            generation: None,
        }),
        "barrier" => Command::Barrier,
        "close" => Command::Close { drain: true },
        "leave" => Command::Close { drain: false },
        "wait" => return rig.pass_ms(arg.parse().unwrap()),
        other => panic!("unknown word: {other}"),
    };
    rig.command(command);
}
