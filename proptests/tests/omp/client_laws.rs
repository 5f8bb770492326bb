//! Laws of the omp Client, for any agent: lawful, lawless, or one that writes noise.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::omp_client_kit;

use omp_client_kit::recorded::{Row, all, heard};
use omp_client_kit::{Out, Program, READY, Rig, prompt};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use turnwire::protocol::Protocol;
use turnwire::protocol::omp::{ClientConfig, Omp};
use turnwire::vocab::*;
use turnwire_proptests::config;
use turnwire_proptests::laws::{ClientInput, ClientMachine, hold_cut, law_l1, law_l2, law_l5};

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    Agent(String),
    Noise(Vec<u8>),
    Command(Command),
    Prompt(&'static str, Deliver),
    Pass(u64),
}

fn id() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "b", "c", ""])
}

/// Ids as our Client gives them, and others.
fn wire() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (1u64..12).prop_map(|n| format!("\"c{n}\"")),
        2 => (1u64..6).prop_map(|n| format!("\"i{n}\"")),
        1 => select(vec!["null", "7", "\"x\"", "{}", "\"c01\""]).prop_map(str::to_owned),
    ]
}

fn stop() -> impl Strategy<Value = &'static str> {
    select(vec!["stop", "length", "toolUse", "error", "aborted", "odd"])
}

fn blocks() -> impl Strategy<Value = String> {
    let block = select(vec![
        r#"{"type":"text","text":"x"}"#,
        r#"{"type":"text","text":""}"#,
        r#"{"type":"thinking","thinking":"t"}"#,
        r#"{"type":"toolCall","id":"a","name":"look","arguments":{}}"#,
        r#"{"type":"toolCall","id":"b","name":"look","arguments":[1]}"#,
        r#"{"type":"toolCall","id":"a","name":"read","arguments":null}"#,
        r#"{"type":"image","data":"AA","mimeType":"image/png"}"#,
        r#"{"type":"novel"}"#,
    ]);
    vec(block, 0..4).prop_map(|blocks| format!("[{}]", blocks.join(",")))
}

fn message() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (blocks(), stop()).prop_map(|(content, stop)| format!(
            r#"{{"role":"assistant","content":{content},"stopReason":"{stop}","errorMessage":"500 e"}}"#
        )),
        4 => select(vec!["hi", "x", "other"]).prop_map(|text| format!(r#"{{"role":"user","content":"{text}"}}"#)),
        3 => (id(), any::<bool>()).prop_map(|(id, error)| format!(
            r#"{{"role":"toolResult","toolCallId":"{id}","toolName":"look","content":[],"isError":{error}}}"#
        )),
        1 => Just(r#"{"role":"custom","customType":"async-result","content":"job"}"#.to_owned()),
        1 => Just(r#"{"role":"bashExecution","command":"ls","output":"o","exitCode":1}"#.to_owned()),
        1 => Just(r#"{"role":"odd"}"#.to_owned()),
        1 => Just(r#"{"role":"assistant"}"#.to_owned()),
        1 => Just("null".to_owned()),
    ]
}

fn update() -> impl Strategy<Value = String> {
    let kinds = vec![
        r#""type":"text_start""#,
        r#""type":"text_delta","delta":"x""#,
        r#""type":"text_delta","delta":"""#,
        r#""type":"text_end","content":"x""#,
        r#""type":"text_end","content":"other""#,
        r#""type":"thinking_start""#,
        r#""type":"thinking_delta","delta":"t""#,
        r#""type":"thinking_end","content":"tt""#,
        r#""type":"toolcall_start","partial":{"content":[{"type":"toolCall","id":"a","name":"look"}]}"#,
        r#""type":"toolcall_start""#,
        r#""type":"toolcall_delta","delta":"{}""#,
        r#""type":"toolcall_end","toolCall":{"type":"toolCall","id":"a","name":"look","arguments":{}}"#,
        r#""type":"image_end","content":{"type":"image","data":"","mimeType":"i"}"#,
        r#""type":"odd""#,
        r#""type":"done","reason":"stop""#,
    ];
    (select(kinds), select(vec![0u64, 0, 1, 2, u64::MAX])).prop_map(|(kind, index)| {
        format!(r#"{{"type":"message_update","assistantMessageEvent":{{{kind},"contentIndex":{index}}}}}"#)
    })
}

fn command_name() -> impl Strategy<Value = &'static str> {
    select(vec![
        "prompt",
        "abort",
        "get_state",
        "bash",
        "compact",
        "new_session",
        "goal",
        "negotiate_protocol",
        "remove_queued_message",
        "abort_and_restore_queue",
        "odd",
    ])
}

fn agent() -> impl Strategy<Value = String> {
    let fixed = select(vec![
        r#"{"type":"agent_start"}"#,
        r#"{"type":"turn_start"}"#,
        r#"{"type":"turn_end","message":{},"toolResults":[]}"#,
        r#"{"type":"agent_end","messages":[],"isTerminal":true,"yielded":true}"#,
        r#"{"type":"agent_end","messages":[{"role":"assistant","content":[],"stopReason":"aborted"}]}"#,
        r#"{"type":"agent_end","messages":[],"isTerminal":false,"yielded":false}"#,
        r#"{"type":"agent_end","messages":[],"isTerminal":false,"awaitingAsyncWork":true}"#,
        r#"{"type":"session_settled"}"#,
        r#"{"type":"auto_retry_start","attempt":1,"maxAttempts":10,"delayMs":1.5,"errorMessage":"e"}"#,
        r#"{"type":"auto_retry_end","success":true,"attempt":1}"#,
        r#"{"type":"auto_retry_end","success":false,"attempt":1,"finalError":"Retry cancelled"}"#,
        r#"{"type":"auto_compaction_start","reason":"threshold","action":"remote"}"#,
        r#"{"type":"auto_compaction_end","action":"remote","aborted":true,"willRetry":false}"#,
        r#"{"type":"model_changed"}"#,
        r#"{"type":"thinking_level_changed","thinkingLevel":"high"}"#,
        r#"{"type":"queue_update","steering":[],"followUp":["x"]}"#,
        r#"{"type":"command_output","text":"o"}"#,
        r#"{"type":"session_info_update","sessionId":"z","title":"t"}"#,
        r#"{"type":"available_commands_update","commands":[{"name":"n","source":"skill"}]}"#,
        r#"{"type":"extension_error","extensionPath":"p","event":"tool_call","error":"e"}"#,
        r#"{"type":"rpc_chunk","chunkId":"a","index":0,"count":2,"byteLength":1048576,"data":"e30="}"#,
        r#"{"type":"rpc_frame_error","originalType":"x","error":"e"}"#,
        r#"{"type":"future","x":1}"#,
        r#"{"type":"subagent_event","payload":{"id":"a","event":{"type":"turn_start"}}}"#,
        r#"{"type":"goal_updated","goal":null}"#,
        READY,
    ]);
    prop_oneof![
        14 => fixed.prop_map(str::to_owned),
        8 => update(),
        6 => message().prop_map(|message| format!(r#"{{"type":"message_start","message":{message}}}"#)),
        9 => message().prop_map(|message| format!(r#"{{"type":"message_end","message":{message},"messageId":"m"}}"#)),
        4 => id().prop_map(|id| format!(r#"{{"type":"tool_execution_start","toolCallId":"{id}","toolName":"look","args":{{}}}}"#)),
        2 => id().prop_map(|id| format!(r#"{{"type":"tool_execution_update","toolCallId":"{id}","toolName":"look","args":{{}},"partialResult":{{"content":[]}}}}"#)),
        4 => (id(), any::<bool>()).prop_map(|(id, error)| format!(r#"{{"type":"tool_execution_end","toolCallId":"{id}","toolName":"look","result":{{"content":[]}},"isError":{error}}}"#)),
        3 => (id(), id()).prop_map(|(id, call)| format!(r#"{{"type":"host_tool_call","id":"{id}","toolCallId":"{call}","toolName":"look","arguments":{{}}}}"#)),
        1 => id().prop_map(|id| format!(r#"{{"type":"host_tool_cancel","id":"z","targetId":"{id}"}}"#)),
        2 => id().prop_map(|id| format!(r#"{{"type":"host_uri_request","id":"{id}","operation":"read","url":"db://1"}}"#)),
        4 => (id(), select(vec!["look", "read", "odd"])).prop_map(|(id, tool)| format!(
            r#"{{"type":"extension_ui_request","id":"{id}","method":"select","title":"Allow tool: {tool}\nx","options":["Approve","Deny"],"timeout":30}}"#
        )),
        2 => id().prop_map(|id| format!(r#"{{"type":"extension_ui_request","id":"{id}","method":"confirm","title":"t","message":"m"}}"#)),
        1 => id().prop_map(|id| format!(r#"{{"type":"extension_ui_request","id":"z","method":"cancel","targetId":"{id}"}}"#)),
        1 => id().prop_map(|id| format!(r#"{{"type":"extension_ui_request","id":"{id}","method":"notify","message":"m"}}"#)),
        3 => (id(), select(vec!["started", "completed", "aborted", "odd"])).prop_map(|(id, status)| format!(
            r#"{{"type":"subagent_lifecycle","payload":{{"id":"{id}","agent":"a","agentSource":"s","status":"{status}","index":0}}}}"#
        )),
        6 => (wire(), select(vec!["completed", "aborted", "error"]), any::<bool>()).prop_map(|(id, status, invoked)| format!(
            r#"{{"type":"prompt_result","id":{id},"agentInvoked":{invoked},"status":"{status}"}}"#
        )),
        14 => (wire(), command_name(), any::<bool>(), select(vec![
            "", r#","data":{"agentInvoked":false}"#, r#","data":{"cancelled":false}"#, r#","data":{"cancelled":true}"#,
            r#","data":{"removed":true}"#, r#","data":{"sessionId":"s","messageCount":2}"#, r#","data":null"#, r#","data":5"#,
            r#","error":"Agent is already processing. x""#, r#","error":"Unknown command: odd""#, r#","error":"aborted""#,
            r#","data":{"steering":[{"text":"hi"}],"followUp":[{"text":"x"}]}"#,
        ])).prop_map(|(id, name, success, more)| format!(
            r#"{{"id":{id},"type":"response","command":"{name}","success":{success}{more}}}"#
        )),
        2 => command_name().prop_map(|name| format!(r#"{{"type":"response","command":"{name}","success":false,"error":"Unknown command: {name}"}}"#)),
    ]
}

fn fate() -> impl Strategy<Value = QueueFate> {
    select(vec![QueueFate::Keep, QueueFate::Run, QueueFate::Drop])
}

fn command() -> impl Strategy<Value = Command> {
    let why = || {
        select(vec![
            CancelWhy::Host,
            CancelWhy::Host,
            CancelWhy::Signal(Signal::Interrupt),
        ])
    };
    let cancel = |what| Command::Cancel {
        what,
        why: CancelWhy::Host,
    };
    prop_oneof![
        3 => (1u64..6, any::<bool>(), any::<bool>()).prop_map(|(ask, allow, interrupt)| Command::Reply {
            ask: AskId(ask),
            reply: if allow { Ok(Reply::Allow { input: None, updates: vec![] }) } else { Ok(Reply::Deny { message: None, interrupt }) },
        }),
        2 => (1u64..6).prop_map(|ask| Command::Reply { ask: AskId(ask), reply: Ok(Reply::Tool { content: vec![], is_error: false, details: None }) }),
        1 => (1u64..6).prop_map(|ask| Command::Reply { ask: AskId(ask), reply: Ok(Reply::Choice(Some("true".into()))) }),
        1 => (1u64..6).prop_map(|ask| Command::Reply { ask: AskId(ask), reply: Err(ReplyFault::HostGone) }),
        1 => (1u64..6).prop_map(|ask| Command::ReplyPart { ask: AskId(ask), content: vec![Block::Text("p".into())] }),
        4 => (fate(), why()).prop_map(|(queue, why)| Command::Cancel { what: CancelWhat::Turn { queue }, why }),
        2 => select(vec![CancelWhat::Everything, CancelWhat::Retry, CancelWhat::Compaction, CancelWhat::Shell, CancelWhat::Run(RunId(1)), CancelWhat::TurnElseNextQueued])
            .prop_map(cancel),
        1 => Just(Command::Set(Setting::AutoRetry(false))),
        1 => Just(Command::Barrier),
        1 => Just(Command::Shell { command: "ls".into() }),
        1 => Just(Command::Compact { instructions: None }),
        2 => Just(Command::Session(SessionCommand::New { parent: None })),
        1 => (1u64..12).prop_map(|id| Command::Withdraw(PromptId(id))),
        1 => (1u64..12).prop_map(|id| Command::Promote(PromptId(id))),
        1 => any::<bool>().prop_map(|drain| Command::Close { drain }),
        1 => Just(Command::Reload),
    ]
}

fn deliver() -> impl Strategy<Value = Deliver> {
    select(vec![
        Deliver::IfIdle,
        Deliver::IfIdle,
        Deliver::Queue(Rank::Later),
        Deliver::FollowUp,
        Deliver::Steer {
            idle: IdleSteer::Start,
        },
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
        3 => (select(vec!["hi", "x"]), deliver()).prop_map(|(text, deliver)| Step::Prompt(text, deliver)),
        1 => (0u64..80).prop_map(Step::Pass),
    ]
}

/// A story, played to the agent's end. The rig watches the laws of the neutral stream at every step.
fn play(program: Program, ready: bool, steps: &[Step]) -> Rig {
    let mut rig = Rig::new(ClientConfig::default());
    rig.answers.program = program;
    if ready {
        rig.agent(READY);
    }
    for (index, step) in steps.iter().enumerate() {
        match step {
            Step::Agent(line) => rig.agent(line),
            Step::Noise(bytes) => rig.tell(ClientInput::Bytes(bytes.clone())),
            Step::Command(command) => drop(rig.command(command.clone())),
            Step::Prompt(text, deliver) => {
                let prompt = prompt(PromptId(index as u64 + 1), text, deliver.clone());
                rig.command(Command::Prompt(prompt));
            }
            Step::Pass(ms) => rig.pass_ms(*ms),
        }
    }
    rig.end();
    rig
}

fn machine() -> ClientMachine<Omp> {
    ClientMachine::new(ClientConfig::default(), Omp::agent_line_rules())
}

fn holds(story: &[(ClientInput<Omp>, Now)], every: usize) -> Result<(), String> {
    hold_cut(machine, story, 7, every.max(2)).map_err(|broken| broken.to_string())
}

proptest! {
    #![proptest_config(config(500))]

    /// The neutral laws, and L8: each command has one reply when the agent is gone, each prompt one end.
    #[test]
    fn l8_l9_any_agent_gives_a_lawful_stream(
        program in select(vec![Program::G1, Program::G2, Program::G3]),
        ready in proptest::bool::weighted(0.95),
        steps in vec(step(), 0..60),
    ) {
        let rig = play(program, ready, &steps);
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
        let mut rig = Rig::opened(Program::G2);
        rig.user("hi");
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
        program in select(vec![Program::G1, Program::G2, Program::G3]),
        steps in vec(step(), 0..30),
        every in 1usize..5,
    ) {
        let rig = play(program, true, &steps);
        prop_assert_eq!(holds(&rig.told, every), Ok(()));
    }
}

/// L1, L2, L5: the recordings, cut and drained in any way, say the same.
#[test]
fn l1_l2_l5_recordings_say_the_same_however_they_come() {
    for (name, rows) in all() {
        if rows
            .iter()
            .any(|(_, row)| matches!(row, Row::Agent(line) if line.len() > 100_000))
        {
            continue;
        }
        let rig = heard(&name, &rows, ClientConfig::default());
        let own = |result: Result<(), turnwire_proptests::laws::Broken>| {
            assert_eq!(result, Ok(()), "{name}");
        };
        own(law_l1(machine, &rig.told, 1_000));
        own(law_l2(machine, &rig.told, 3));
        own(law_l5(machine, &rig.told));
    }
}

/// L9: a line of the real program, damaged anywhere, costs nothing but itself.
#[test]
fn l9_damaged_lines_of_the_real_program() {
    let rows = omp_client_kit::recorded::named("05");
    for damage in 0..40usize {
        let damaged: Vec<(u64, Row)> = rows
            .iter()
            .enumerate()
            .filter_map(|(index, (at, row))| match row {
                Row::Agent(line) if index % 40 == damage && index > 2 => match damage % 3 {
                    // Lost, halved, or twice.
                    0 => None,
                    1 => Some(vec![(
                        *at,
                        Row::Agent(line.chars().take(line.len() / 2).collect()),
                    )]),
                    _ => Some(vec![(*at, row.clone()), (*at, row.clone())]),
                },
                _ => Some(vec![(*at, row.clone())]),
            })
            .flatten()
            .collect();
        let rig = heard("05", &damaged, ClientConfig::default());
        assert_eq!(rig.out.last(), Some(&Out::Closed), "{damage}");
    }
}
