//! The Server: runs, questions that are settled as they are asked, and what no session of ours says.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire::frame::{LineRules, LineSplitter, Place, Split, SplitKind};
use turnwire::protocol::observer::Dir;
use turnwire::protocol::openseek::wire::{Event as Line, Shapes, WorkspaceCreated};
use turnwire::protocol::openseek::{Asking, Openseek, OpenseekExtra, RunCannotAsk, ServerConfig};
use turnwire::protocol::{Protocol, Server, ServerOutput};
use turnwire::vocab::*;

use crate::kit::{Duo, SEED, labels, session_config};

fn run(asking: Asking) -> ServerConfig {
    ServerConfig {
        session_root: Some("/repo/.openseek".into()),
        ..ServerConfig::run(SEED, "do it".into(), asking).unwrap()
    }
}

fn texts(duo: &Duo, event: &str, member: &str) -> Vec<Value> {
    let lines = duo
        .raw
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found = lines.filter(|line| line["event"] == event);
    found.map(|line| line[member].clone()).collect()
}

#[test]
fn os_a12_a_run_that_is_to_ask_fails_before_there_is_a_session() {
    let refused = ServerConfig::run(SEED, "do it".into(), Asking::Ask);
    assert_eq!(refused, Err(RunCannotAsk));
    for asking in [Asking::Never, Asking::Always] {
        assert_eq!(run(asking).mode.asking(), asking);
    }
}

#[test]
fn os_02_os_10_a_run_begins_with_its_session_and_leaves_at_its_end() {
    let made = WorkspaceCreated {
        dir: "/repo".into(),
        ..WorkspaceCreated::default()
    };
    let there = McpFact::Registered {
        servers: 1,
        names: vec!["mcp__fs__read".into()],
    };
    let extras = [
        OpenseekExtra::mcp(&there).unwrap(),
        OpenseekExtra::of(&Line::from(made)),
    ];
    let mut duo = Duo::before(run(Asking::Never), session_config(Asking::Never), &extras);
    // Nothing is heard: the end of input neither.
    duo.play("«eof» reply");
    assert_eq!(
        duo.labels().join(" "),
        "workspace_created session_started mcp_tools_registered step(1) d* message usage finished exit(0)"
    );
    assert_eq!(
        texts(&duo, "session_started", "workspace_root"),
        [json!("/project")]
    );
    assert_eq!(
        texts(&duo, "session_started", "session_root"),
        [json!("/repo/.openseek")]
    );

    let unstored = ServerConfig::run(SEED, "do it".into(), Asking::Never).unwrap();
    let mut duo = Duo::with(unstored, session_config(Asking::Never));
    duo.play("reply");
    assert_eq!(
        duo.labels().join(" "),
        "step(1) d* message usage finished exit(0)"
    );
}

#[test]
fn os_a11_a_run_that_fails_says_so_elsewhere_and_leaves_with_1() {
    let mut duo = Duo::with(run(Asking::Never), session_config(Asking::Never));
    duo.play("fail(400)");
    assert_eq!(duo.labels().join(" "), "session_started step(1) exit(1)");
    assert_eq!(duo.diagnostics, ["error: it failed"]);
}

#[test]
fn os_09_an_engine_that_allows_everything_says_so_and_one_that_asks_nobody_is_silent() {
    let played = |asking| {
        let mut duo = Duo::asking(asking);
        duo.play("«p1» calls(c1:write,c2:look) ran(c1) ran(c2) reply");
        duo.labels().join(" ")
    };
    assert_eq!(
        played(Asking::Always),
        "step(1) usage ask(1) allowed_once(1) result(c1) result(c2) step(2) d* message usage finished"
    );
    assert_eq!(
        played(Asking::Never),
        "step(1) usage result(c1) result(c2) step(2) d* message usage finished"
    );
}

#[test]
fn os_09_a_question_tells_what_would_run_and_its_id_is_its_own() {
    let mut duo = Duo::new();
    duo.play("«p1» calls(c1:write) «allow#1» ran(c1) calls(c2:write)");
    assert_eq!(
        texts(&duo, "approval_requested", "tool_name"),
        ["write", "write"]
    );
    assert_eq!(
        texts(&duo, "approval_requested", "detail"),
        ["answer=done · n=1", "answer=done · n=1"]
    );
    let [one, two] = duo.questions.as_slice() else {
        panic!("two questions");
    };
    assert!(one.starts_with("ap-") && one.ends_with("-1") && two.ends_with("-2"));
    assert_eq!(one[..one.len() - 2], two[..two.len() - 2]);
}

#[test]
fn os_a06_a_prompt_that_is_refused_ends_behind_the_turn_that_is_open() {
    let mut duo = Duo::new();
    duo.say(&json!({"command":"prompt","text":" "}));
    duo.play("«p1» text");
    duo.say(&json!({"command":"prompt","text":""}));
    duo.play("fin(stop)");
    assert_eq!(
        duo.labels().join(" "),
        "unstarted step(1) d* message usage finished unstarted"
    );
}

#[test]
fn os_13_a_prompt_that_is_refused_ends_behind_all_that_came_before_it() {
    let mut duo = Duo::new();
    duo.play("«p1» text «p2»");
    duo.say(&json!({"command":"prompt","text":""}));
    duo.play("«p3» fin(stop)");
    assert_eq!(
        duo.labels().join(" "),
        "step(1) d* message usage finished step(1)"
    );
    duo.play("reply");
    assert_eq!(
        duo.labels().join(" "),
        "d* message usage finished unstarted step(1)"
    );
}

#[test]
fn os_13_a_command_that_is_refused_is_told_behind_those_before_it() {
    let mut duo = Duo::new();
    duo.play("«p1» text «command:k1»");
    duo.say(&json!({"command":"steer","kind":"command","text":""}));
    duo.play("«command:k2» fin(stop)");
    assert_eq!(
        duo.labels().join(" "),
        "step(1) d* message usage finished applied(command,k1) session_error applied(command,k2)"
    );
    assert_eq!(
        texts(&duo, "session_error", "error"),
        [json!("failed to append command: There is nothing to send")]
    );
}

#[test]
fn os_13_goals_are_answered_in_their_order() {
    let mut config = session_config(Asking::Ask);
    config.limits.prompt_bytes = 4;
    let mut duo = Duo::with(ServerConfig::serve(SEED, Asking::Ask), config);
    duo.play("«p1» text «goal:g» «goal:too_long» «clear» fin(stop)");
    assert_eq!(
        duo.labels().join(" "),
        "step(1) d* message usage finished goal(g) command_error goal(-)"
    );
}

#[test]
fn os_a07_a_steer_that_is_refused_is_dropped_and_a_command_is_an_error_of_the_session() {
    let mut duo = Duo::new();
    duo.say(&json!({"command":"steer","text":" "}));
    duo.say(&json!({"command":"steer","kind":"command","text":""}));
    assert_eq!(duo.labels().join(" "), "dropped( ) session_error");
    duo.play("«eof»");
}

#[test]
fn os_03_lines_that_are_no_commands_are_answered_and_the_engine_goes_on() {
    let mut duo = Duo::new();
    for line in ["", "  \r", "{\"command\":\"reboot\"}", "[1]", "null", "{}"] {
        duo.host(line);
    }
    duo.host(r#"{"command":"steer","kind":"notice","text":"x"}"#);
    assert_eq!(
        texts(&duo, "command_error", "error"),
        [
            "unknown command: reboot",
            "expected a {\"command\": ...} object",
            "expected a {\"command\": ...} object",
            "expected a {\"command\": ...} object",
            "unknown steer kind: notice",
        ]
    );
    duo.play("«p1» reply «eof»");
    assert_eq!(duo.exit, Some(0));
}

#[test]
fn os_a11_a_line_that_is_too_long_is_no_json() {
    let mut duo = Duo::new();
    let max_bytes = 8;
    let rules = LineRules {
        max_bytes,
        ..Openseek::host_line_rules()
    };
    let mut splitter = LineSplitter::new(rules);
    let mut chunk: &[u8] = b"{\"command\":\"cancel\"}\n";
    while let Some(split) = splitter.next(&mut chunk) {
        duo.watch(Dir::Host, split.what);
        duo.server.handle_line(split, duo.now);
    }
    duo.drain();
    assert!(!duo.server.wants_lines());
    assert_eq!(duo.exit, Some(0));
}

#[test]
fn os_08_os_10_newer_shapes_are_read_and_their_names_given_back() {
    let config = ServerConfig {
        shapes: Shapes::Newer,
        ..ServerConfig::serve(SEED, Asking::Ask)
    };
    let mut duo = Duo::with(config, session_config(Asking::Ask));
    let parts = json!([{"type":"text","text":"see"},{"type":"image","media_type":"image/png","data":"aGk="}]);
    duo.say(&json!({"command":"steer","content":parts,"submission_id":"s-1"}));
    assert_eq!(
        texts(&duo, "steer_dropped", "content"),
        std::slice::from_ref(&parts)
    );
    assert_eq!(texts(&duo, "steer_dropped", "submission_id"), ["s-1"]);
    duo.say(&json!({"command":"prompt","content":parts,"submission_id":"s-2"}));
    let Some(Command::Prompt(prompt)) = duo.commands.last() else {
        panic!("a prompt");
    };
    assert_eq!(prompt.tag.as_deref(), Some("s-2"));
    assert!(matches!(
        prompt.content.as_slice(),
        [
            Block::Text(_),
            Block::Media {
                kind: MediaKind::Image,
                ..
            }
        ]
    ));
}

fn record(revision: u32, state: JobState) -> Box<JobRecord> {
    Box::new(JobRecord {
        job: JobId(1),
        id: "bg-1".into(),
        generation: "runtime-1".into(),
        revision,
        kind: JobKind::Shell,
        call: Some(CallId(1)),
        command: "sleep 5".into(),
        description: None,
        cwd: Some("/repo".into()),
        state,
        finite: true,
        times_ms: [Some(5), Some(6), None, None],
        output: Some(JobOutput {
            name: Some("fg-1.out".into()),
            persistent: true,
            bytes: 3,
            chars: 2,
            truncated: false,
            invalid_utf8: true,
        }),
        faults: [None, None, None],
    })
}

#[test]
fn os_10_os_a09_jobs_are_told_by_their_records() {
    let mut duo = Duo::new();
    duo.event(What::Job(JobStep::Started, record(1, JobState::Running)));
    duo.event(What::Job(JobStep::Updated, record(2, JobState::Stopping)));
    let stopped = record(3, JobState::Stopped("user".into()));
    duo.event(What::Job(JobStep::Ended, stopped));
    assert_eq!(
        duo.raw[0],
        r#"{"event":"job_changed","kind":"started","job":{"schema_version":1,"cleanup_error":null,"generation":"runtime-1","id":"bg-1","revision":1,"command":"sleep 5","description":null,"cwd":"/repo","state":{"kind":"running"},"started_at_ms":5,"backgrounded_at_ms":6,"finished_at_ms":null,"last_output_at_ms":null,"output_file":"fg-1.out","output_persistent":true,"output_bytes":3,"output_chars":2,"output_truncated":false,"invalid_utf8":true,"output_error":null,"persistence_error":null}}"#
    );
    assert_eq!(
        duo.labels().join(" "),
        "job(started,1) job(updated,2) job(finished,3)"
    );
    for (state, fault, kind) in [
        (JobState::Exited(0), None, "finished"),
        (JobState::Exited(1), None, "failed"),
        (JobState::Stopped("time_limit".into()), None, "failed"),
        (JobState::Stopped("session_ended".into()), None, "finished"),
        (JobState::Exited(0), Some("busy"), "failed"),
    ] {
        let mut duo = Duo::new();
        duo.event(What::Job(JobStep::Started, record(1, JobState::Running)));
        let mut ended = record(2, state);
        ended.faults[0] = fault.map(Text::from);
        duo.event(What::Job(JobStep::Ended, ended));
        assert_eq!(duo.labels()[1], format!("job({kind},2)"));
    }
}

fn said(origin: Origin, text: &str) -> What {
    What::Message(Arc::new(Message {
        id: MessageId(900),
        role: Role::User,
        content: vec![Arc::new(Block::Text(text.into()))],
        origin,
        prompt: None,
        about: None,
        at_ms: 0,
        details: None,
    }))
}

fn goal(status: GoalStatus) -> Option<Goal> {
    Some(Goal {
        text: "ship it".into(),
        status,
        turns_left: Some(20),
        token_budget: None,
        tokens_used: 0,
    })
}

#[test]
fn os_10_os_08_news_of_goals_jobs_and_plans_have_lines_of_their_own() {
    let mut duo = Duo::new();
    for what in [
        What::Goal(GoalEvent::Changed(goal(GoalStatus::Active))),
        What::Goal(GoalEvent::Blocked("needs a key".into())),
        What::Goal(GoalEvent::Unblocked),
        What::Goal(GoalEvent::Disarmed),
        What::Goal(GoalEvent::Changed(goal(GoalStatus::Completed))),
        What::Goal(GoalEvent::Changed(None)),
        said(Origin::GoalCheck, "is it met?"),
        said(Origin::GoalReminder, "ship it"),
        said(Origin::PlanReminder, "step two"),
        said(Origin::Job(JobId(1)), "bg-1 exited 0"),
        said(Origin::Harness, "unsaid"),
    ] {
        duo.event(what);
    }
    assert_eq!(
        duo.labels().join(" "),
        "goal(ship it) goal_blocked goal_unblocked goal(-) goal(-) goal_check goal_reminder plan_reminder background_notice"
    );
    duo.play("«p1» text");
    duo.event(said(Origin::Job(JobId(1)), "bg-2 exited 0"));
    assert_eq!(duo.labels().join(" "), "step(1) d* applied(notice,)");
}

#[test]
fn os_10_os_a10_a_goal_is_set_with_its_turns_and_refusals_have_their_words() {
    let mut duo = Duo::new();
    duo.play("«goal:g» «task:g» «clear»");
    let goals = duo.commands.iter().filter_map(|command| match command {
        Command::Goal(goal) => Some(goal.clone()),
        _ => None,
    });
    let set = |turns| GoalCommand::Set {
        text: "g".into(),
        auto_turns: Some(turns),
        token_budget: None,
    };
    assert_eq!(
        goals.collect::<Vec<_>>(),
        [set(20), set(0), GoalCommand::Clear]
    );
}

#[test]
fn os_10_nested_runs_are_told_by_their_brackets() {
    let mut duo = Duo::new();
    duo.play("«p1» text");
    duo.lines.clear();
    let run = RunId(7);
    duo.event(What::RunStarted {
        run,
        kind: RunKind::Subagent("review".into()),
        label: "goal review".into(),
        call: None,
    });
    let usage = Usage {
        input: Some(30),
        cache_read: Some(4),
        output: Some(5),
        reasoning: Some(1),
        ..Usage::default()
    };
    duo.event(What::RunEnded {
        run,
        status: RunStatus::Completed,
        steps: 12,
        usage: Some(usage),
        detail: "done".into(),
    });
    assert_eq!(
        duo.lines,
        [
            json!({"event":"subrun_started","id":"sr-7","kind":"review","label":"goal review"}),
            json!({"event":"subrun_finished","id":"sr-7","status":"captured","steps":12,"prompt_tokens":34,"completion_tokens":6}),
        ]
    );
}

/// A turn of an agent that isn't ours.
fn foreign(events: Vec<What>) -> (String, Duo) {
    let mut duo = Duo::new();
    duo.deaf = true;
    duo.play("«p1»");
    let turn = TurnId(900);
    duo.event(What::TurnStarted {
        turn,
        cause: Cause::NotSaid,
    });
    for what in events {
        duo.event(what);
    }
    let words = labels::labels(&std::mem::take(&mut duo.lines)).join(" ");
    (words, duo)
}

#[test]
fn os_13_a_run_that_goes_on_as_a_job_has_its_brackets_closed_before_its_turn_s() {
    let mut duo = Duo::new();
    duo.play("«p1» text");
    duo.lines.clear();
    let run = RunId(2);
    duo.event(What::RunStarted {
        run,
        kind: RunKind::Task("task".into()),
        label: "wait".into(),
        call: None,
    });
    duo.event(What::RunProgress {
        run,
        steps: 3,
        last_tool: None,
        usage: Some(Usage {
            input: Some(5),
            output: Some(2),
            ..Usage::default()
        }),
        text: None,
    });
    duo.event(ended(End::MaxSteps, None));
    duo.event(What::RunEnded {
        run,
        status: RunStatus::Completed,
        steps: 9,
        usage: None,
        detail: "done".into(),
    });
    let brackets: Vec<&serde_json::Value> = duo
        .lines
        .iter()
        .filter(|line| line["event"] != "assistant_message" && line["event"] != "usage")
        .collect();
    assert_eq!(
        brackets,
        [
            &json!({"event":"subrun_started","id":"sr-2","kind":"task","label":"wait"}),
            &json!({"event":"subrun_finished","id":"sr-2","status":"no_report","steps":3,"prompt_tokens":5,"completion_tokens":2}),
            &json!({"event":"max_steps_exhausted"}),
        ]
    );
}

fn ended(end: End, answer: Option<TurnAnswer>) -> What {
    What::TurnEnded {
        turn: TurnId(900),
        end,
        answer,
        report: Box::default(),
        pending: Pending::default(),
    }
}

fn reply(number: u64, text: &str) -> [What; 2] {
    let message = MessageId(1_000 + number);
    let content = vec![Arc::new(Block::Text(text.into()))];
    [
        What::MessageStarted {
            message,
            request: None,
            provider_id: None,
            model: None,
            usage: None,
        },
        What::MessageEnded {
            message: Arc::new(Message {
                id: message,
                role: Role::Assistant,
                content,
                origin: Origin::Harness,
                prompt: None,
                about: None,
                at_ms: 0,
                details: None,
            }),
            stop: Stop::NotSaid,
            kept: true,
            calls: CallList::NotReported,
        },
    ]
}

fn call(number: u64) -> What {
    What::ToolStarted {
        call: CallId(2_000 + number),
        provider_id: Some(format!("f{number}").as_str().into()),
        name: "bash".into(),
        input: None,
        cause: ToolCause::Agent,
        side_effect: SideEffect::Unknown,
    }
}

fn came(number: u64, outcome: ToolOutcome) -> What {
    What::ToolEnded {
        call: CallId(2_000 + number),
        outcome,
        content: vec![Block::Text("x".into())],
        show: None,
    }
}

#[test]
fn os_a06_os_a09_an_agent_that_names_no_steps_has_them_all_the_same() {
    let mut events = Vec::new();
    events.extend(reply(1, "one"));
    events.extend([
        call(1),
        call(2),
        came(2, ToolOutcome::Ok),
        came(1, ToolOutcome::Failed),
    ]);
    events.extend(reply(2, "two"));
    let finish = End::Finished { finish: None };
    events.push(ended(finish, Some(TurnAnswer::Text("two".into()))));
    let (words, _) = foreign(events);
    assert_eq!(
        words,
        "step(1) message result(f1,error) result(f2) step(2) message finished"
    );
}

#[test]
fn os_a09_pieces_that_nothing_made_whole_are_void() {
    let message = MessageId(1_001);
    let delta = What::Delta {
        message,
        block: 0,
        kind: Kind::Text,
        text: "half".into(),
    };
    let request = |number, attempt| What::RequestStarted {
        request: RequestId(number),
        attempt,
    };
    let mut events = vec![
        request(1, 1),
        delta.clone(),
        request(2, 2),
        delta,
        request(3, 1),
    ];
    events.extend(reply(1, "whole"));
    events.push(ended(End::NotSaid, None));
    let (words, _) = foreign(events);
    assert_eq!(
        words,
        "step(1) d* retry(2) d* retry(3) step(2) message finished"
    );
}

#[test]
fn os_10_every_end_of_a_turn_has_its_line() {
    let failure = |kind| Failure::new(kind, "it broke");
    let captured = Some(TurnAnswer::Captured {
        tool: "finish".into(),
        input: RawJson(r#"{"answer":"42"}"#.into()),
    });
    for (end, answer, line) in [
        (
            End::Local,
            None,
            json!({"event":"agent_finished","answer":""}),
        ),
        (
            End::Finished { finish: None },
            captured,
            json!({"event":"agent_finished","answer":"42"}),
        ),
        (End::MaxSteps, None, json!({"event":"max_steps_exhausted"})),
        (
            End::Aborted {
                reason: "enough".into(),
            },
            None,
            json!({"event":"agent_aborted","reason":"enough"}),
        ),
        (
            End::Yielded { to_sequence: 30 },
            Some(TurnAnswer::Text("later".into())),
            json!({"event":"context_yield","to_sequence":30,"answer":"later"}),
        ),
        (
            End::Failed(failure(FailureKind::Setup)),
            None,
            json!({"event":"turn_failed","error":"it broke"}),
        ),
        (
            End::Truncated(failure(FailureKind::StreamCut)),
            None,
            json!({"event":"turn_failed","error":"it broke"}),
        ),
        (
            End::Blocked("no".into()),
            None,
            json!({"event":"turn_failed","error":"no"}),
        ),
        (
            End::Unverified,
            None,
            json!({"event":"turn_failed","error":"the end of the turn was refused too often"}),
        ),
        (
            End::BudgetExhausted(BudgetKind::Tokens),
            None,
            json!({"event":"turn_failed","error":"the budget of tokens is spent"}),
        ),
    ] {
        let mut events = Vec::from(reply(1, "text"));
        events.push(ended(end, answer));
        let (_, duo) = foreign(events);
        let last: Value = serde_json::from_str(duo.raw.last().unwrap()).unwrap();
        assert_eq!(last, line);
    }
    let setup = ended(End::Failed(failure(FailureKind::Setup)), None);
    let (words, _) = foreign(vec![setup]);
    assert_eq!(words, "unstarted");
}

#[test]
fn os_a11_a_signal_ends_the_turn_and_a_second_one_leaves_at_once() {
    let mut duo = Duo::new();
    duo.play("«p1» calls(c1:look) «steer:s1» «p2»");
    duo.lines.clear();
    duo.signal(Signal::Terminate);
    duo.play("settle");
    assert_eq!(
        duo.labels().join(" "),
        "result(c1,error) aborted(interrupted) dropped(s1) exit(143)"
    );

    let mut duo = Duo::new();
    duo.play("«p1» calls(c1:write) «steer:s1» «jobs:j1»");
    duo.lines.clear();
    duo.signal(Signal::Interrupt);
    duo.signal(Signal::Interrupt);
    let labels = duo.labels();
    assert_eq!(labels.last().map(String::as_str), Some("exit(130)"));
    assert!(labels.contains(&"dropped(s1)".to_owned()), "{labels:?}");
    assert!(
        labels.contains(&"aborted(interrupted)".to_owned()),
        "{labels:?}"
    );
}

#[test]
fn os_a13_lines_that_came_before_the_session_are_acted_on_in_their_order() {
    let mut server = Server::<Openseek>::new(ServerConfig::serve(SEED, Asking::Ask));
    let now = Now::default();
    for line in [
        "{\"command\":\"reboot\"}",
        "{\"command\":\"prompt\",\"text\":\"p\"}",
    ] {
        let place = Place { line: 1, offset: 0 };
        let what = SplitKind::Line(line.as_bytes());
        server.handle_line(Split { place, what }, now);
    }
    server.handle_end(now);
    let mut lines = Vec::new();
    assert_eq!(server.poll_output(&mut lines), None);
    assert!(lines.is_empty());
    server.handle_event(&Event {
        at: now,
        run: RunId::MAIN,
        seen: Seen::Real,
        what: What::Opened(Box::new(crate::kit::info())),
    });
    let mut calls = Vec::new();
    while let Some(output) = server.poll_output(&mut lines) {
        if let ServerOutput::Call(call) = output {
            calls.push(call.command);
        }
    }
    assert!(
        String::from_utf8(lines)
            .unwrap()
            .contains("unknown command: reboot")
    );
    assert!(matches!(
        calls.as_slice(),
        [Command::Prompt(_), Command::Close { drain: true }]
    ));
}
