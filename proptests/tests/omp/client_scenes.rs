//! What an agent says, in neutral words: the order of things, the questions, and what bad agents do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::omp_client_kit;

use omp_client_kit::{Out, Program, READY, Rig, assistant};
use serde_json::{Value, json};
use turnwire::protocol::omp::{ClientConfig, Subagents};
use turnwire::vocab::*;

fn failure_of(rig: &Rig) -> Failure {
    rig.find(|what| match what {
        What::TurnEnded {
            end: End::Failed(failure),
            ..
        } => Some(failure.clone()),
        _ => None,
    })
}

#[test]
fn omp_03_each_generation_ends_a_prompt_in_its_own_way() {
    for program in [Program::G1, Program::G2, Program::G3] {
        let mut rig = Rig::opened(program);
        let prompt = rig.begin("hi");
        rig.reply(&["Hel", "lo"], "stop");
        rig.run_ends(&[prompt], "completed");
        assert_eq!(
            rig.events(),
            "R(1,Started) T+ S+ Ap(1) M(user) Rq m+ b+(text) d(text) b-(text) m-(End) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
            "{program:?}"
        );
        assert_eq!(rig.findings(), [] as [String; 0]);
    }
}

#[test]
fn omp_03_usage_cost_and_answer_are_told() {
    let mut rig = Rig::opened(Program::G2);
    let prompt = rig.begin("hi");
    rig.reply(&["Hello"], "stop");
    rig.run_ends(&[prompt], "completed");
    let (usage, cost, model) = rig.find(|what| match what {
        What::RequestEnded {
            usage, cost, model, ..
        } => Some((*usage, cost.clone(), model.clone())),
        _ => None,
    });
    assert_eq!(
        usage,
        Some(Usage {
            input: Some(11),
            cache_read: Some(2),
            cache_write: Some(0),
            output: Some(7),
            reasoning: None
        })
    );
    assert!(matches!(
        cost,
        Cost::Known {
            pico_usd: 500_000_000_000,
            ..
        }
    ));
    assert_eq!(model.provider.as_deref(), Some("mock"));
    let answer = rig.find(|what| match what {
        What::TurnEnded { answer, end, .. } => Some((answer.clone(), end.clone())),
        _ => None,
    });
    assert_eq!(answer.0, Some(TurnAnswer::Text("Hello".into())));
    assert_eq!(
        answer.1,
        End::Finished {
            finish: Some("stop".into())
        }
    );
}

/// The result says more than the run's end did: whether trying again helps.
#[test]
fn omp_03_a_result_says_more_of_a_failure() {
    let mut rig = Rig::opened(Program::G2);
    let prompt = rig.begin("hi");
    let mut failed = assistant(json!([]), "error");
    failed["errorMessage"] = json!("429 slow down");
    rig.message(&failed);
    rig.run_ends(&[prompt], "error");
    let failure = failure_of(&rig);
    assert_eq!(failure.status, Some(429));
    assert!(failure.retryable);
    assert_eq!(failure.kind, FailureKind::RateLimit);
    assert_eq!(
        rig.events(),
        "R(1,Started) T+ S+ Ap(1) M(user) Rq Rq-(Failed) S- T-(Failed) P-(1,Failed) Set"
    );
}

/// A run that shows no prompt is that of the one whose result comes with it.
#[test]
fn omp_03_a_run_without_a_user_message_ends_its_prompt() {
    let mut rig = Rig::opened(Program::G2);
    let prompt = rig.user("hi");
    rig.ok(prompt, "prompt", None);
    rig.agent(r#"{"type":"agent_start"}"#);
    rig.agent_end();
    rig.results(&[prompt], "error");
    assert_eq!(rig.events(), "R(1,Started) T+ T-(Failed) P-(1,Failed) Set");
    assert_eq!(rig.findings(), [] as [String; 0]);
}

/// An abort in the wait before another attempt leaves no reply that tells of it: the result does.
#[test]
fn omp_07_an_abort_in_the_wait_of_a_retry() {
    let mut rig = Rig::opened(Program::G2);
    let prompt = rig.begin("hi");
    let mut failed = assistant(json!([]), "error");
    failed["errorMessage"] = json!("503 busy");
    rig.message(&failed);
    rig.event("turn_end", json!({"message":{},"toolResults":[]}));
    rig.event(
        "auto_retry_start",
        json!({"attempt":1,"maxAttempts":2,"delayMs":400,"errorMessage":"503 busy"}),
    );
    rig.forget();
    let cancel = rig.cancel(QueueFate::Keep);
    rig.event(
        "auto_retry_end",
        json!({"success":false,"attempt":1,"finalError":"Retry cancelled"}),
    );
    rig.agent_end();
    rig.ok(cancel, "abort", None);
    rig.results(&[prompt], "aborted");
    assert_eq!(
        rig.events(),
        "Ry-(no) S- R(2,Cancelling(Turn)) T-(Cancelled) P-(1,Cancelled) Set"
    );
}

/// A result that doesn't come holds nothing back for long.
#[test]
fn omp_03_a_run_s_end_waits_only_a_moment_for_its_result() {
    let mut rig = Rig::opened(Program::G2);
    rig.begin("hi");
    rig.reply(&["a"], "stop");
    rig.event("turn_end", json!({"message":{},"toolResults":[]}));
    rig.forget();
    rig.agent_end();
    assert_eq!(rig.events(), "");
    rig.pass_ms(49);
    assert_eq!(rig.events(), "");
    rig.pass_ms(1);
    assert_eq!(rig.events(), "T-(Finished) P-(1,Finished)");
    // A command doesn't wait at all.
    let mut rig = Rig::opened(Program::G2);
    rig.begin("hi");
    rig.reply(&["a"], "stop");
    rig.event("turn_end", json!({"message":{},"toolResults":[]}));
    rig.forget();
    rig.agent_end();
    rig.user("next");
    assert_eq!(rig.events(), "T-(Finished) P-(1,Finished)");
    assert_eq!(
        rig.writes(),
        [r#"{"id":"c2","type":"prompt","message":"next"}"#]
    );
}

/// OMP-02: a prompt may fail after it was accepted.
#[test]
fn omp_02_a_late_failure_ends_its_prompt() {
    let mut rig = Rig::opened(Program::G3);
    let prompt = rig.user("/skill:x");
    rig.ok(prompt, "prompt", None);
    rig.fails(prompt, "prompt", "the skill can't be read");
    assert_eq!(rig.events(), "R(1,Started) P-(1,Failed)");
    assert_eq!(rig.findings(), [] as [String; 0]);
}

/// Events may come before the answer.
#[test]
fn omp_03_a_turn_that_begins_before_its_answer() {
    let mut rig = Rig::opened(Program::G2);
    let prompt = rig.user("hi");
    rig.run_begins("hi");
    rig.ok(prompt, "prompt", None);
    rig.reply(&["a"], "stop");
    rig.run_ends(&[prompt], "completed");
    assert!(
        rig.events()
            .starts_with("T+ S+ R(1,Started) Ap(1) M(user) Rq m+")
    );
    assert_eq!(rig.findings(), [] as [String; 0]);
}

/// A prompt that was expanded on its way is known by its place.
#[test]
fn omp_03_an_expanded_prompt_is_known_by_its_place() {
    let mut rig = Rig::opened(Program::G2);
    let prompt = rig.user("/skill:x do");
    rig.ok(prompt, "prompt", Some(json!({"agentInvoked":true})));
    rig.run_begins("a long text of a skill, and: do");
    assert!(rig.events().ends_with("T+ S+ Ap(1) M(user)"));
    assert_eq!(rig.findings(), [] as [String; 0]);
}

#[test]
fn omp_03_text_is_from_deltas_and_from_the_end_alone() {
    let mut rig = Rig::opened(Program::G2);
    rig.begin("hi");
    rig.event(
        "message_start",
        json!({"message":assistant(json!([{"type":"text","text":"runs ahead"}]), "stop")}),
    );
    rig.update(
        "text_start",
        0,
        (
            "partial",
            json!({"content":[{"type":"text","text":"runs ahead"}]}),
        ),
    );
    rig.update("text_delta", 0, ("delta", json!("runs")));
    // The end has more than its deltas.
    rig.event(
        "message_end",
        json!({"message":assistant(json!([{"type":"text","text":"runs ahead"}, {"type":"redactedThinking","data":"x"}, {"type":"newBlock","y":1}]), "stop")}),
    );
    let deltas: Vec<String> = rig
        .out
        .iter()
        .filter_map(|out| match out {
            Out::Event(Event {
                what: What::Delta { text, .. },
                ..
            }) => Some(text.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(deltas, ["runs", " ahead"]);
    let content = rig.find(|what| match what {
        What::MessageEnded { message, .. } => Some(message.content.clone()),
        _ => None,
    });
    assert_eq!(*content[0], Block::Text("runs ahead".into()));
    assert_eq!(*content[1], Block::Redacted("x".into()));
    assert_eq!(
        *content[2],
        Block::Opaque(RawJson(r#"{"type":"newBlock","y":1}"#.into()))
    );
    assert_eq!(rig.findings(), [] as [String; 0]);
    // Another text than was streamed is found, and counts.
    let mut rig = Rig::opened(Program::G2);
    rig.begin("hi");
    rig.reply_opens();
    rig.update("text_delta", 0, ("delta", json!("abc")));
    rig.event(
        "message_end",
        json!({"message":assistant(json!([{"type":"text","text":"xyz"}]), "stop")}),
    );
    assert_eq!(rig.findings().len(), 1);
    assert!(rig.events().ends_with("m-(End) Rq-(ok)"));
}

/// OMP-09: a text that was cut to fit its frame isn't what was said.
#[test]
fn omp_09_an_elided_end_doesn_t_shorten_what_was_streamed() {
    let mut rig = Rig::opened(Program::G1);
    rig.begin("hi");
    rig.reply_opens();
    let text = "0123456789".repeat(30);
    rig.update("text_delta", 0, ("delta", json!(text)));
    let cut = format!(
        "{}\n\u{2026}[{} chars elided for RPC frame]",
        &text[..100],
        200
    );
    rig.event(
        "message_end",
        json!({"message":assistant(json!([{"type":"text","text":cut}]), "stop")}),
    );
    let told = rig.find(|what| match what {
        What::MessageEnded { message, .. } => Some(message.text()),
        _ => None,
    });
    assert_eq!(told, text);
    assert_eq!(rig.findings(), [] as [String; 0]);
}

/// With deltas alone, a call's name comes with its end.
#[test]
fn omp_03_calls_without_snapshots() {
    let mut rig = Rig::opened(Program::G3);
    rig.begin("hi");
    rig.event("message_start", json!({"message":{"role":"assistant"}}));
    rig.update("toolcall_start", 0, ("x", json!(1)));
    rig.update("toolcall_delta", 0, ("delta", json!("{\"a\"")));
    rig.update("toolcall_delta", 0, ("delta", json!("")));
    rig.update("toolcall_delta", 0, ("delta", json!(":1}")));
    let call = json!({"type":"toolCall","id":"t","name":"look","arguments":{"a":1}});
    rig.update("toolcall_end", 0, ("toolCall", call.clone()));
    rig.event(
        "message_end",
        json!({"message":assistant(json!([call]), "toolUse")}),
    );
    rig.tool_start("t", "look");
    let (call, head) = rig.find(|what| match what {
        What::BlockStarted {
            head: BlockHead::ToolUse { call, name, .. },
            ..
        } => Some((*call, name.clone())),
        _ => None,
    });
    assert_eq!(&*head, "look");
    let cause = rig.find(|what| match what {
        What::ToolStarted {
            call: of, cause, ..
        } if *of == call => Some(cause.clone()),
        _ => None,
    });
    assert!(matches!(cause, ToolCause::Model { block: 0, .. }));
    assert!(
        rig.events()
            .ends_with("Rq m+ b+(tooluse) d(other) b-(tooluse) m-(ToolUse) Rq-(ok) t+(c1)")
    );
}

#[test]
fn omp_03_calls_that_never_begin_are_skipped() {
    let mut rig = Rig::opened(Program::G2);
    let prompt = rig.begin("hi");
    rig.calls(&[("a", "look"), ("b", "look"), ("c", "look")]);
    rig.tool_start("a", "look");
    let cancel = rig.cancel(QueueFate::Keep);
    rig.tool_end("a", "look", "Command aborted", true);
    // A result without frames of its execution.
    rig.message(&json!({"role":"toolResult","toolCallId":"b","toolName":"look","content":[],"isError":true}));
    rig.event("turn_end", json!({"message":{},"toolResults":[]}));
    rig.agent(r#"{"type":"turn_start"}"#);
    rig.message(&assistant(json!([]), "aborted"));
    rig.event("turn_end", json!({"message":{},"toolResults":[]}));
    rig.agent_end();
    rig.ok(cancel, "abort", None);
    rig.results(&[prompt], "aborted");
    let events = rig.events();
    assert!(
        events.ends_with("t+(c1) t-(c1,Cancelled) ToolSkipped ToolSkipped S- R(2,Cancelling(Turn)) T-(Cancelled) P-(1,Cancelled) Set"),
        "{events}"
    );
    assert_eq!(rig.findings(), [] as [String; 0]);
}

/// TW-07: an abort that comes too late hits nothing, and the turn ends as it had.
#[test]
fn omp_07_an_abort_that_crosses_the_end_hits_nothing() {
    let mut rig = Rig::opened(Program::G2);
    let prompt = rig.begin("hi");
    rig.reply(&["a"], "stop");
    let cancel = rig.cancel(QueueFate::Keep);
    rig.run_ends(&[prompt], "completed");
    rig.ok(cancel, "abort", None);
    assert!(matches!(
        rig.replied(cancel),
        Some(Ok(Answer::Cancelling {
            hit: Hit::Nothing,
            ..
        }))
    ));
    assert!(
        rig.events()
            .ends_with("T-(Finished) P-(1,Finished) Set R(2,Cancelling(Nothing))")
    );
}

#[test]
fn omp_07_abort_and_prompt() {
    for program in [Program::G1, Program::G2] {
        let mut rig = Rig::opened(program);
        let first = rig.begin("one");
        rig.reply_opens();
        rig.forget();
        let second = rig.prompt("two", Deliver::Preempt);
        rig.event(
            "message_end",
            json!({"message":assistant(json!([]), "aborted")}),
        );
        rig.event("turn_end", json!({"message":{},"toolResults":[]}));
        rig.agent_end();
        rig.ok(second, "abort_and_prompt", None);
        if program == Program::G2 {
            rig.event(
                "prompt_result",
                json!({"id":"c1","agentInvoked":true,"status":"aborted","sessionSettled":false}),
            );
        }
        rig.run_begins("two");
        rig.reply(&["b"], "stop");
        rig.run_ends(&[second], "completed");
        let end = rig.out.iter().find_map(|out| match out {
            Out::Event(Event {
                what: What::TurnEnded { end, .. },
                ..
            }) => Some(end.clone()),
            _ => None,
        });
        assert_eq!(end, Some(End::Cancelled(CancelWhy::Preempted(PromptId(2)))));
        assert_eq!(
            rig.events(),
            "m-(Cancelled) Rq-(Cancelled) S- T-(Cancelled) P-(1,Cancelled) R(2,Started) T+ S+ Ap(2) M(user) Rq m+ b+(text) d(text) b-(text) m-(End) Rq-(ok) S- T-(Finished) P-(2,Finished) Set",
            "{program:?}"
        );
        assert_eq!(rig.findings(), [] as [String; 0]);
        let _ = first;
    }
}

#[test]
fn omp_14_subagents_are_nested_runs() {
    let mut rig = Rig::new(ClientConfig {
        subagents: Subagents::Events,
        ..ClientConfig::default()
    });
    rig.agent(omp_client_kit::READY);
    rig.begin("hi");
    rig.calls(&[("t", "task")]);
    rig.tool_start("t", "task");
    rig.forget();
    let life = |status: &str| json!({"payload":{"id":"0-Helper","agent":"task","agentSource":"bundled","description":"helps","status":status,"parentToolCallId":"t","index":0}});
    rig.event("subagent_lifecycle", life("started"));
    let nested = |event: Value| json!({"payload":{"id":"0-Helper","event":event}});
    rig.event("subagent_event", nested(json!({"type":"turn_start"})));
    rig.event(
        "subagent_event",
        nested(json!({"type":"message_start","message":assistant(json!([]), "stop")})),
    );
    rig.event("subagent_event", nested(json!({"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"x"}})));
    rig.event("subagent_event", nested(json!({"type":"message_end","message":assistant(json!([{"type":"text","text":"x"}]), "stop")})));
    rig.event(
        "subagent_event",
        nested(json!({"type":"turn_end","message":{},"toolResults":[]})),
    );
    let stop = rig.command(Command::Cancel {
        what: CancelWhat::Run(RunId(1)),
        why: CancelWhy::Host,
    });
    assert!(
        rig.writes()
            .last()
            .unwrap()
            .ends_with(r#""type":"cancel_subagent","subagentId":"0-Helper"}"#)
    );
    rig.ok(stop, "cancel_subagent", Some(json!({"cancelled":true})));
    rig.event("subagent_lifecycle", life("aborted"));
    rig.event(
        "subagent_progress",
        json!({"payload":{"index":0,"agent":"task","agentSource":"bundled","task":"t"}}),
    );
    let runs: Vec<RunId> = rig
        .out
        .iter()
        .filter_map(|out| match out {
            Out::Event(event) => Some(event.run),
            _ => None,
        })
        .collect();
    assert_eq!(
        rig.events(),
        "RunStarted S+ Rq m+ b+(text) d(text) m-(End) Rq-(ok) S- R(2,Cancelling(Run)) RunEnded x(OmpExtra)"
    );
    assert_eq!(runs[0], RunId::MAIN);
    assert!(runs[1..9].iter().all(|run| *run == RunId(1)), "{runs:?}");
}

/// OMP-17: what nobody knows is kept, and ends nothing.
#[test]
fn omp_17_what_isn_t_known_is_passed_on() {
    let mut rig = Rig::opened(Program::G2);
    rig.begin("hi");
    rig.forget();
    let line = r#"{"type":"future_event","deep":[1,{"a":null}]}"#;
    rig.agent(line);
    rig.agent(r#"{"type":"todo_reminder","todos":[],"attempt":1,"maxAttempts":3}"#);
    rig.message(&json!({"role":"hologram","content":"see","z":1}));
    let extras: Vec<&str> = rig
        .out
        .iter()
        .filter_map(|out| match out {
            Out::Extra(extra) => Some(extra.line.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(extras[0], line);
    let kept = rig.find(|what| match what {
        What::Message(message) => Some(message.clone()),
        _ => None,
    });
    assert_eq!(kept.role, Role::Other("hologram".into()));
    assert_eq!(kept.text(), "see");
    assert!(kept.details.as_ref().unwrap().as_str().contains("\"z\":1"));
    assert_eq!(rig.findings(), [] as [String; 0]);
}

#[test]
fn omp_03_a_compaction_in_a_turn() {
    let mut rig = Rig::opened(Program::G2);
    rig.begin("hi");
    rig.reply(&["a"], "stop");
    rig.event("turn_end", json!({"message":{},"toolResults":[]}));
    rig.forget();
    rig.event(
        "auto_compaction_start",
        json!({"reason":"overflow","action":"context-full"}),
    );
    rig.event("auto_compaction_end", json!({"action":"context-full","aborted":false,"willRetry":true,"result":{"summary":"s","firstKeptEntryId":"a","tokensBefore":9}}));
    rig.event(
        "agent_end",
        json!({"messages":[],"isTerminal":false,"yielded":false}),
    );
    rig.agent(r#"{"type":"agent_start"}"#);
    rig.agent(r#"{"type":"turn_start"}"#);
    rig.reply(&["b"], "stop");
    let events = rig.events();
    assert_eq!(
        events,
        "C+ C- S+ Rq m+ b+(text) d(text) b-(text) m-(End) Rq-(ok)"
    );
}

#[test]
fn omp_03_retries_used_up() {
    let mut rig = Rig::opened(Program::G2);
    let prompt = rig.begin("hi");
    rig.forget();
    let mut failed = assistant(json!([]), "error");
    failed["errorMessage"] = json!("503 busy");
    rig.message(&failed);
    rig.event("turn_end", json!({"message":{},"toolResults":[]}));
    rig.event(
        "auto_retry_start",
        json!({"attempt":1,"maxAttempts":2,"delayMs":400.5,"errorMessage":"503 busy"}),
    );
    rig.agent(r#"{"type":"agent_start"}"#);
    rig.agent(r#"{"type":"turn_start"}"#);
    rig.message(&failed);
    rig.event("turn_end", json!({"message":{},"toolResults":[]}));
    rig.event(
        "auto_retry_end",
        json!({"success":false,"attempt":1,"finalError":"503 busy"}),
    );
    rig.agent_end();
    rig.results(&[prompt], "error");
    let wait = rig.find(|what| match what {
        What::RetryScheduled {
            attempt,
            max,
            wait_us,
            why,
        } => Some((*attempt, *max, *wait_us, why.kind)),
        _ => None,
    });
    assert_eq!(wait, (2, 2, Some(400_500), FailureKind::Overloaded));
    assert_eq!(
        rig.events(),
        "Rq Rq-(Failed) Ry Rq Rq-(Failed) Ry-(no) S- T-(Failed) P-(1,Failed) Set"
    );
}

/// L9: chunks that aren't a frame cost nothing around them.
#[test]
fn l9_lost_pieces_of_frames_are_found() {
    let mut rig = Rig::opened(Program::G2);
    let chunk = |index: u64| {
        format!(
            r#"{{"type":"rpc_chunk","chunkId":"a","index":{index},"count":2,"byteLength":1048576,"data":"e30="}}"#
        )
    };
    rig.agent(&chunk(0));
    rig.agent(r#"{"type":"notice","level":"info","message":"between"}"#);
    rig.agent(&chunk(1));
    assert_eq!(rig.findings().len(), 2);
    let events = rig.events();
    assert!(events.contains("N(Info)"), "{events}");
}

/// On this wire only a text that comes after an abort is never a command of the program's.
#[test]
fn omp_05_what_is_to_be_taken_as_it_is_runs_no_command() {
    let mut rig = Rig::opened(Program::G2);
    let literal = |id: u64, text: &str, deliver| {
        let mut told = omp_client_kit::prompt(PromptId(id), text, deliver);
        told.literal = true;
        Command::Prompt(told)
    };
    let id = rig.command(literal(1, "/usage", Deliver::IfIdle));
    assert_eq!(
        rig.writes(),
        [r#"{"id":"c1","type":"abort_and_prompt","message":"/usage"}"#]
    );
    rig.ok(id, "abort_and_prompt", None);
    assert_eq!(
        rig.replied(id),
        Some(Ok(Answer::Admitted(Admitted::Started)))
    );
    let follow_up = rig.command(literal(2, " /usage", Deliver::FollowUp));
    assert!(matches!(
        rig.replied(follow_up),
        Some(Err(Refusal::Unsupported(_)))
    ));
    rig.command(literal(3, "usage", Deliver::FollowUp));
    assert_eq!(
        rig.writes(),
        [r#"{"id":"c3","type":"prompt","message":"usage","streamingBehavior":"followUp"}"#]
    );
}

/// TW-09, TW-10: commands that wait for the agent's start are bounded. One that finds no room is refused as full, though
/// this wire can't say it; of those that wait it is said once the agent is there.
#[test]
fn tw_10_commands_that_wait_for_the_agent_are_bounded() {
    let mut rig = Rig::new(ClientConfig::default());
    let readonly = || Command::Set(Setting::Approvals(ApprovalMode::ReadOnly));
    let ids: Vec<_> = (0..257).map(|_| rig.command(readonly())).collect();
    assert_eq!(rig.replied(ids[255]), None);
    assert_eq!(rig.replied(ids[256]), Some(Err(Refusal::Full)));
    rig.agent(READY);
    let unsupported = |reply| matches!(reply, Some(Err(Refusal::Unsupported(_))));
    assert!(unsupported(rig.replied(ids[255])));
}
