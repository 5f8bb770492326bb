//! Laws of the agentx Client, for any agent: lawful, lawless, or one that writes noise.

use crate::agentx_client_kit::recorded::{Row, all, heard, named};
use crate::agentx_client_kit::{ClientInput, Out, Rig, config as client_config};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use turnwire::protocol::Protocol;
use turnwire::protocol::agentx::policy::Bit;
use turnwire::protocol::agentx::{Agentx, Policy};
use turnwire::vocab::*;
use turnwire_proptests::config;
use turnwire_proptests::laws::{ClientMachine, hold_cut, law_l1, law_l2, law_l5};

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    Agent(String),
    Noise(Vec<u8>),
    Command(Command),
    Prompt(&'static str, Option<&'static str>, Deliver),
}

fn id() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "b", "c", ""])
}

/// The run that a record belongs to.
fn parent() -> impl Strategy<Value = &'static str> {
    select(vec!["null", "null", "null", "\"a\"", "\"z\""])
}

fn block() -> impl Strategy<Value = String> {
    let fixed = select(vec![
        r#"{"type":"text","text":"x"}"#,
        r#"{"type":"text","text":""}"#,
        r#"{"type":"text","text":"other"}"#,
        r#"{"type":"thinking","thinking":"t","signature":"s"}"#,
        r#"{"type":"redacted_thinking","data":"d"}"#,
        r#"{"type":"image","source":{}}"#,
        r#"{"type":"novel"}"#,
        "7",
    ]);
    prop_oneof![
        5 => fixed.prop_map(str::to_owned),
        4 => (id(), select(vec!["{}", "{\"a\":1}", "[1]", "null"])).prop_map(|(id, input)| format!(
            r#"{{"type":"tool_use","id":"{id}","name":"look","input":{input}}}"#
        )),
    ]
}

fn event() -> impl Strategy<Value = String> {
    let index = || select(vec![0u64, 0, 1, 2, u64::MAX]);
    let delta = select(vec![
        r#"{"type":"text_delta","text":"x"}"#,
        r#"{"type":"text_delta","text":""}"#,
        r#"{"type":"thinking_delta","thinking":"t"}"#,
        r#"{"type":"signature_delta","signature":"s"}"#,
        r#"{"type":"input_json_delta","partial_json":"{}"}"#,
        r#"{"type":"citations_delta","citation":{}}"#,
        r#"{"type":"novel"}"#,
    ]);
    prop_oneof![
        3 => message_id().prop_map(|id| format!(
            r#"{{"type":"message_start","message":{{"id":"{id}","role":"assistant","model":"m","content":[],"usage":{{"input_tokens":3}}}}}}"#
        )),
        4 => (index(), block()).prop_map(|(index, block)| format!(
            r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#
        )),
        6 => (index(), delta).prop_map(|(index, delta)| format!(
            r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#
        )),
        3 => index().prop_map(|index| format!(r#"{{"type":"content_block_stop","index":{index}}}"#)),
        3 => select(vec!["\"end_turn\"", "\"tool_use\"", "null"]).prop_map(|stop| format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":{stop}}},"usage":{{"output_tokens":2}}}}"#
        )),
        3 => Just(r#"{"type":"message_stop"}"#.to_owned()),
        2 => Just(r#"{"type":"response.output_text.delta","delta":"x"}"#.to_owned()),
        1 => Just(r#"{"type":"novel"}"#.to_owned()),
    ]
}

fn message_id() -> impl Strategy<Value = &'static str> {
    select(vec!["m1", "m2", ""])
}

fn uuid() -> impl Strategy<Value = &'static str> {
    select(vec!["u1", "u2", "nobody"])
}

fn result() -> impl Strategy<Value = String> {
    let kinds = vec![
        r#""subtype":"success","is_error":false,"result":"x","stop_reason":"end_turn""#,
        r#""subtype":"success","is_error":false,"result":"","stop_reason":"tool_use","terminal_reason":"hook_stopped""#,
        r#""subtype":"success","is_error":false,"result":"h","stop_reason":null,"terminal_reason":"aborted_streaming""#,
        r#""subtype":"success","is_error":true,"result":"e","stop_reason":null,"api_error_status":500"#,
        r#""subtype":"error_during_execution","is_error":true,"errors":["e"],"stop_reason":"cancelled""#,
        r#""subtype":"error_during_execution","is_error":true,"errors":["e"],"stop_reason":null"#,
        r#""subtype":"error_during_execution","is_error":true,"errors":["e"],"stop_reason":"input_error""#,
        r#""subtype":"error_max_turns","is_error":true,"errors":[],"stop_reason":"tool_use""#,
        r#""subtype":"error_max_budget_usd","is_error":true,"errors":["e"],"stop_reason":null"#,
        r#""subtype":"novel","is_error":true,"errors":["e"],"stop_reason":null"#,
    ];
    let costs = select(vec!["null", "0", "0.25", "-1", "1e300"]);
    let named = prop_oneof![
        3 => Just(String::new()),
        1 => uuid().prop_map(|uuid| format!(r#","prompt_uuid":"{uuid}""#)),
        1 => uuid().prop_map(|uuid| format!(r#","user_message_uuids":["{uuid}","u2"]"#)),
    ];
    (select(kinds), costs, named, id()).prop_map(|(kind, cost, named, call)| {
        format!(
            r#"{{"type":"result",{kind},"duration_ms":1,"duration_api_ms":1,"num_turns":1,"session_id":"s","total_cost_usd":{cost},"usage":{{"input_tokens":3}},"modelUsage":{{"m":{{"inputTokens":3,"outputTokens":4,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"webSearchRequests":0,"costUSD":{cost}}}}},"permission_denials":[{{"tool_name":"look","tool_use_id":"{call}","tool_input":{{}}}}],"uuid":"r"{named}}}"#
        )
    })
}

fn request() -> impl Strategy<Value = String> {
    let wire = || select(vec!["q1", "q2", "q3"]);
    let body = prop_oneof![
        5 => id().prop_map(|id| format!(
            r#"{{"subtype":"can_use_tool","tool_name":"look","input":{{"a":1}},"tool_use_id":"{id}"}}"#
        )),
        1 => id().prop_map(|id| format!(
            r#"{{"subtype":"can_use_tool","tool_name":"SandboxNetworkAccess","input":{{"host":"h"}},"tool_use_id":"{id}"}}"#
        )),
        4 => (id(), select(vec!["PreToolUse", "PostToolUse", "PermissionRequest", "Stop", "UserPromptSubmit", "PreCompact", "Novel"]))
            .prop_map(|(id, event)| format!(
                r#"{{"subtype":"hook_callback","callback_id":"h","tool_use_id":"{id}","input":{{"hook_event_name":"{event}","tool_name":"look","tool_input":{{}},"tool_use_id":"{id}","tool_response":"r"}}}}"#
            )),
        3 => (id(), select(vec!["tools/call", "tools/list", "initialize", "ping", "novel"])).prop_map(|(id, method)| format!(
            r#"{{"subtype":"mcp_message","server_name":"host","message":{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"add","arguments":{{}},"_meta":{{"claudecode/toolUseId":"{id}"}}}}}}}}"#
        )),
        1 => Just(r#"{"subtype":"mcp_message","server_name":"host","message":{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}}"#.to_owned()),
        1 => Just(r#"{"subtype":"elicitation","mcp_server_name":"s","message":"m","requested_schema":{"properties":{"a":{"type":"boolean"}}}}"#.to_owned()),
        1 => Just(r#"{"subtype":"ask_user_question","questions":[{"question":"q","options":[{"label":"x"}]}]}"#.to_owned()),
        1 => select(vec!["null", "{}", r#"{"subtype":"novel"}"#, r#"{"subtype":"can_use_tool"}"#]).prop_map(str::to_owned),
    ];
    (wire(), body).prop_map(|(wire, body)| {
        format!(r#"{{"type":"control_request","request_id":"{wire}","request":{body}}}"#)
    })
}

fn response() -> impl Strategy<Value = String> {
    let wire = prop_oneof![
        6 => (1u64..8).prop_map(|number| format!("\"req_{number}\"")),
        1 => select(vec!["\"req_0\"", "\"req_01\"", "\"x\"", "7", "null", "\"q1\""]).prop_map(str::to_owned),
    ];
    let body = select(vec![
        "",
        r#","response":{}"#,
        r#","response":{"commands":[]}"#,
        r#","response":{"still_queued":["u1"]}"#,
        r#","response":{"cancelled":true}"#,
        r#","response":{"cancelled":false}"#,
        r#","response":{"mode":"plan"}"#,
        r#","response":{"model":"m2"}"#,
        r#","response":{"canRewind":true}"#,
        r#","response":7"#,
        r#","error":"no""#,
    ]);
    let subtype = select(vec!["success", "success", "success", "error", "novel"]);
    (wire, subtype, body).prop_map(|(wire, subtype, body)| {
        format!(
            r#"{{"type":"control_response","response":{{"subtype":"{subtype}","request_id":{wire}{body}}}}}"#
        )
    })
}

fn agent() -> impl Strategy<Value = String> {
    let fixed = select(vec![
        r#"{"type":"system","subtype":"init","cwd":"/","session_id":"s","tools":[],"mcp_servers":[],"model":"m","permissionMode":"default","slash_commands":[],"apiKeySource":"user","output_style":"default","skills":[],"plugins":[],"uuid":"i"}"#,
        r#"{"type":"system","subtype":"session_state_changed","state":"running","uuid":"i","session_id":"s"}"#,
        r#"{"type":"system","subtype":"session_state_changed","state":"requires_action","uuid":"i","session_id":"s"}"#,
        r#"{"type":"system","subtype":"session_state_changed","state":"idle","uuid":"i","session_id":"s"}"#,
        r#"{"type":"system","subtype":"status","status":"requesting","uuid":"i","session_id":"s"}"#,
        r#"{"type":"system","subtype":"status","status":"compacting","uuid":"i","session_id":"s"}"#,
        r#"{"type":"system","subtype":"status","status":null,"permissionMode":"plan","uuid":"i","session_id":"s"}"#,
        r#"{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto","pre_tokens":9},"uuid":"i","session_id":"s"}"#,
        r#"{"type":"system","subtype":"local_command_output","content":"o","uuid":"i","session_id":"s"}"#,
        r#"{"type":"system","subtype":"api_retry","attempt":1,"max_retries":2,"retry_delay_ms":5,"error_status":529,"error":"overloaded","uuid":"i","session_id":"s"}"#,
        r#"{"type":"system","subtype":"permission_denied","tool_name":"look","tool_use_id":"a","message":"no","uuid":"i","session_id":"s"}"#,
        r#"{"type":"system","subtype":"informational","content":"c","prevent_continuation":true,"uuid":"i","session_id":"s"}"#,
        r#"{"type":"system","subtype":"task_started","task_id":"t1","tool_use_id":"a","description":"d","uuid":"i","session_id":"s"}"#,
        r#"{"type":"system","subtype":"task_started","task_id":"t2","description":"d","task_type":"local_bash","uuid":"i","session_id":"s"}"#,
        r#"{"type":"system","subtype":"task_progress","task_id":"t1","description":"d","uuid":"i","session_id":"s"}"#,
        r#"{"type":"system","subtype":"task_notification","task_id":"t1","status":"completed","output_file":"","summary":"s","uuid":"i","session_id":"s"}"#,
        r#"{"type":"system","subtype":"task_notification","task_id":"t2","status":"failed","output_file":"f","summary":"s","uuid":"i","session_id":"s"}"#,
        r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]},"session_id":"s","uuid":"i"}"#,
        r#"{"type":"user","message":"words","session_id":"s","uuid":"i"}"#,
        r#"{"type":"user","session_id":"s"}"#,
        r#"{"type":"keep_alive"}"#,
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"},"uuid":"i","session_id":"s"}"#,
        r#"{"type":"future","x":1}"#,
        r#"{"type":7}"#,
        "[]",
    ]);
    prop_oneof![
        14 => fixed.prop_map(str::to_owned),
        8 => (event(), parent()).prop_map(|(event, parent)| format!(
            r#"{{"type":"stream_event","event":{event},"session_id":"s","parent_tool_use_id":{parent},"uuid":"i"}}"#
        )),
        8 => (message_id(), block(), parent(), select(vec!["", r#","aborted":true"#]), select(vec!["null", "\"end_turn\""]))
            .prop_map(|(id, block, parent, more, stop)| format!(
                r#"{{"type":"assistant","message":{{"id":"{id}","role":"assistant","model":"m","content":[{block}],"stop_reason":{stop}}},"parent_tool_use_id":{parent},"session_id":"s","uuid":"i"{more}}}"#
            )),
        1 => parent().prop_map(|parent| format!(
            r#"{{"type":"assistant","message":{{"id":"e","role":"assistant","model":"<synthetic>","content":[{{"type":"text","text":"e"}}]}},"parent_tool_use_id":{parent},"session_id":"s","uuid":"i","error":"server_error"}}"#
        )),
        7 => (id(), any::<bool>(), parent()).prop_map(|(id, error, parent)| format!(
            r#"{{"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"r","is_error":{error}}}]}},"parent_tool_use_id":{parent},"session_id":"s","uuid":"i"}}"#
        )),
        1 => uuid().prop_map(|uuid| format!(
            r#"{{"type":"user","message":{{"role":"user","content":"hi"}},"session_id":"s","uuid":"{uuid}","isReplay":true}}"#
        )),
        2 => (uuid(), select(vec!["queued", "started", "completed", "cancelled", "novel"])).prop_map(|(uuid, state)| format!(
            r#"{{"type":"command_lifecycle","command_uuid":"{uuid}","state":"{state}","uuid":"i","session_id":"s"}}"#
        )),
        1 => (id(), parent()).prop_map(|(id, parent)| format!(
            r#"{{"type":"tool_progress","tool_use_id":"{id}","tool_name":"look","parent_tool_use_id":{parent},"elapsed_time_seconds":1.5,"uuid":"i","session_id":"s"}}"#
        )),
        7 => result(),
        9 => request(),
        1 => select(vec!["\"q1\"", "\"q2\"", "7"]).prop_map(|id| format!(r#"{{"type":"control_cancel_request","request_id":{id}}}"#)),
        9 => response(),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    let why = select(vec![
        CancelWhy::Host,
        CancelWhy::Host,
        CancelWhy::Signal(Signal::Interrupt),
    ]);
    let fate = select(vec![QueueFate::Keep, QueueFate::Run, QueueFate::Drop]);
    let reply = |reply: Result<Reply, ReplyFault>| {
        (1u64..6).prop_map(move |ask| Command::Reply {
            ask: AskId(ask),
            reply: reply.clone(),
        })
    };
    let hook = |interrupt| HookReply {
        interrupt,
        ..HookReply::deny("no".into())
    };
    prop_oneof![
        3 => reply(Ok(Reply::Allow { input: None, updates: vec![] })),
        1 => reply(Ok(Reply::Deny { message: None, interrupt: false })),
        1 => reply(Ok(Reply::Deny { message: None, interrupt: true })),
        1 => reply(Ok(Reply::Tool { content: vec![], is_error: false, details: None })),
        1 => reply(Ok(Reply::Choice(Some("true".into())))),
        1 => reply(Ok(Reply::Hook(Box::new(HookReply::pass())))),
        1 => reply(Ok(Reply::Hook(Box::new(hook(true))))),
        1 => reply(Err(ReplyFault::HostGone)),
        4 => (fate, why).prop_map(|(queue, why)| Command::Cancel { what: CancelWhat::Turn { queue }, why }),
        2 => select(vec![CancelWhat::Everything, CancelWhat::Retry, CancelWhat::Run(RunId(1)), CancelWhat::Job(JobId(1)), CancelWhat::TurnElseNextQueued])
            .prop_map(|what| Command::Cancel { what, why: CancelWhy::Host }),
        1 => Just(Command::Set(Setting::Model(None))),
        1 => Just(Command::Set(Setting::Approvals(ApprovalMode::Plan))),
        1 => Just(Command::Barrier),
        1 => Just(Command::Job(JobCommand::Snapshot)),
        1 => Just(Command::Job(JobCommand::Stop { job: "t2".into(), generation: None })),
        1 => Just(Command::Offer(Offer::Tools(vec![crate::agentx_kit::duo::tool("add", SideEffect::Read)]))),
        1 => Just(Command::Offer(Offer::Hooks(vec![]))),
        1 => (1u64..12).prop_map(|id| Command::Withdraw(PromptId(id))),
        1 => (1u64..12).prop_map(|id| Command::Rewind { to: RewindTo::Prompt(PromptId(id)), dry_run: true }),
        1 => any::<bool>().prop_map(|drain| Command::Close { drain }),
        1 => Just(Command::Reload),
    ]
}

fn deliver() -> impl Strategy<Value = Deliver> {
    select(vec![
        Deliver::IfIdle,
        Deliver::Queue(Rank::Next),
        Deliver::Queue(Rank::Later),
        Deliver::FollowUp,
        Deliver::Steer {
            idle: IdleSteer::DropUnlessQueued,
        },
        Deliver::Context,
        Deliver::Preempt,
    ])
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        14 => agent().prop_map(Step::Agent),
        1 => vec(any::<u8>(), 0..40).prop_map(Step::Noise),
        2 => command().prop_map(Step::Command),
        3 => (select(vec!["hi", "x", " "]), select(vec![None, Some("u1"), Some("u2"), Some("a b")]), deliver())
            .prop_map(|(text, tag, deliver)| Step::Prompt(text, tag, deliver)),
    ]
}

/// The presets, and claude with one bit of the strict wire.
fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![
        3 => Just(Policy::CLAUDE),
        2 => Just(Policy::AGENTX),
        1 => Just(Policy::AGENTX_FULL),
        1 => select(Bit::ALL.to_vec()).prop_map(|bit| Policy::CLAUDE.with(bit, &Policy::AGENTX)),
    ]
}

/// A story, played to the agent's end. The rig watches the laws of the neutral stream at every step.
fn play(policy: Policy, steps: &[Step]) -> Rig {
    let mut rig = Rig::new(client_config(policy));
    for step in steps {
        match step {
            Step::Agent(line) => rig.agent(line),
            Step::Noise(bytes) => rig.tell(ClientInput::Bytes(bytes.clone())),
            Step::Command(command) => drop(rig.command(command.clone())),
            Step::Prompt(text, tag, deliver) => drop(rig.prompt(text, *tag, deliver.clone())),
        }
    }
    rig.end();
    rig
}

fn machine(policy: Policy) -> impl Fn() -> ClientMachine<Agentx> {
    move || ClientMachine::new(client_config(policy), Agentx::agent_line_rules())
}

proptest! {
    #![proptest_config(config(600))]

    /// The neutral laws, and L8: each command has one reply when the agent is gone, each prompt one end.
    #[test]
    fn l8_l9_any_agent_gives_a_lawful_stream(policy in policy(), steps in vec(step(), 0..60)) {
        let rig = play(policy, &steps);
        prop_assert_eq!(rig.out.last(), Some(&Out::Closed));
        let replies = rig.out.iter().filter(|out| matches!(out, Out::Event(Event { what: What::Replied { .. }, .. }))).count();
        let commands = rig.told.iter().filter(|(told, _)| matches!(told, ClientInput::Call(_))).count();
        prop_assert_eq!(replies, commands);
        prop_assert_eq!(rig.client.poll_timeout(), None);
        prop_assert!(!rig.client.wants_lines() && !rig.client.wants_commands());
    }

    /// L9: noise for an agent.
    #[test]
    fn l9_arbitrary_bytes_are_findings(bytes in vec(any::<u8>(), 0..400), cut in 1usize..50) {
        let mut rig = Rig::claude();
        rig.user("hi", "u1");
        for piece in bytes.chunks(cut) {
            rig.tell(ClientInput::Bytes(piece.to_vec()));
        }
        rig.end();
        prop_assert_eq!(rig.out.last(), Some(&Out::Closed));
    }
}

proptest! {
    #![proptest_config(config(150))]

    /// L1 – L6, L9 by the functions that anybody can hold a machine to.
    #[test]
    fn l1_l2_l3_l4_l5_l6_l9_hold_of_any_story(
        policy in policy(),
        steps in vec(step(), 0..30),
        every in 1usize..5,
    ) {
        let rig = play(policy, &steps);
        let held = hold_cut(machine(policy), &rig.told, 7, every.max(2));
        prop_assert_eq!(held.map_err(|broken| broken.to_string()), Ok(()));
    }
}

/// L1, L2, L5: the recordings, cut and drained in any way, say the same.
#[test]
fn l1_l2_l5_recordings_say_the_same_however_they_come() {
    for (name, rows) in all() {
        let rig = heard(&rows, client_config(Policy::CLAUDE));
        if rig.told.iter().any(
            |(told, _)| matches!(told, ClientInput::Call(call) if call.command == Command::Barrier),
        ) {
            continue;
        }
        let own = |result: Result<(), turnwire_proptests::laws::Broken>| {
            assert_eq!(result, Ok(()), "{name}");
        };
        let machine = machine(Policy::CLAUDE);
        own(law_l1(&machine, &rig.told, 1_000));
        own(law_l2(&machine, &rig.told, 3));
        own(law_l5(&machine, &rig.told));
    }
}

/// L9: a line of the real program, damaged anywhere, costs nothing but itself.
#[test]
fn l9_damaged_lines_of_the_real_program() {
    for name in [
        "tool_parallel_allow_deny",
        "two_queued_midturn",
        "hooks_permission_request_race",
    ] {
        let rows = named(name);
        for damage in 0..40usize {
            let damaged: Vec<(u64, Row)> = rows
                .iter()
                .enumerate()
                .flat_map(|(index, (at, row))| match row {
                    Row::Agent(line) if index % 40 == damage && index > 2 => match damage % 3 {
                        // Lost, halved, or twice.
                        0 => vec![],
                        1 => {
                            let half = line.chars().take(line.chars().count() / 2).collect();
                            vec![(*at, Row::Agent(half))]
                        }
                        _ => vec![(*at, row.clone()), (*at, row.clone())],
                    },
                    _ => vec![(*at, row.clone())],
                })
                .collect();
            let rig = heard(&damaged, client_config(Policy::CLAUDE));
            assert_eq!(rig.out.last(), Some(&Out::Closed), "{name} {damage}");
        }
    }
}
