//! What a request is made of: the history, its pairs of calls and results (S-31), settings, tools, and what is stored.

use alloc::{
    format,
    string::{String, ToString},
    sync::Arc,
    vec,
    vec::Vec,
};

use super::{
    act::{act, policy},
    world::{World, config, info, tool},
};
use crate::session::SessionConfig;
use crate::vocab::*;

/// Does what the inputs say, one after the other.
pub fn play(world: &mut World, inputs: &[&str]) -> Vec<String> {
    inputs.iter().flat_map(|input| act(world, input)).collect()
}

fn world(about: &str, inputs: &[&str]) -> World {
    let mut world = World::new(policy(about));
    play(&mut world, inputs);
    world
}

/// The messages of a history, in words: role, calls, and text.
pub fn words(messages: &[Arc<Message>]) -> Vec<String> {
    let word = |message: &Arc<Message>| {
        let calls: String = message
            .calls()
            .map(|call| format!(" c{}", call.0))
            .collect();
        let who = match &message.role {
            Role::Tool { call, error, .. } => {
                format!("c{}{}", call.0, if *error { "!" } else { "" })
            }
            other => format!("{other:?}"),
        };
        format!("{who}{calls}: {}", message.text())
    };
    messages.iter().map(word).collect()
}

/// The messages of a live request.
pub fn sent(world: &World, request: u64) -> Vec<String> {
    let effect = Effect::StartModel(RequestId(request));
    match world.session.body(RunId::MAIN, &effect) {
        Some(EffectBody::Model(request)) => words(request.messages),
        _ => vec!["not live".to_string()],
    }
}

#[test]
fn s_31_results_stand_behind_their_message_in_call_order() {
    let world = world(
        "(order=finish)",
        &[
            "Prompt P1",
            "r1 Text",
            "r1 Call read#n1",
            "r1 Call read#n2",
            "r1 Finish, End",
            "Prompt P2 Steer:Start",
            "Prompt P3 Context",
            "Tool c2 failed",
            "Tool c1 ok",
        ],
    );
    let wanted = [
        "User: prompt 1",
        "Assistant c1 c2: text",
        "c1: out",
        "c2!: out",
        "User: prompt 2",
        "User: prompt 3",
    ];
    assert_eq!(sent(&world, 2), wanted);
}

#[test]
fn s_31_every_way_a_call_can_end_gives_one_result() {
    let begun = [
        "Prompt P1",
        "r1 Call read#n1",
        "r1 Call nobody#n2",
        "r1 Call writeask#n3",
        "r1 Finish, End",
    ];
    let mut cancelled = world("", &begun);
    play(&mut cancelled, &["Tool c1 progress", "Cancel", "Prompt P2"]);
    let wanted = [
        "User: prompt 1",
        "Assistant c1 c2 c3: ",
        "c1!: so farcancelled by the user",
        "c2!: not run: cancelled",
        "c3!: not run: cancelled",
        "User: prompt 2",
    ];
    assert_eq!(sent(&cancelled, 2), wanted);

    let mut denied = world("(t_tool=5)", &begun);
    play(&mut denied, &["@5 Woken", "Reply a1 HostGone"]);
    let wanted = [
        "User: prompt 1",
        "Assistant c1 c2 c3: ",
        "c1!: timed out",
        "c2!: there is no tool named \"nobody\"; the tools are: read, readask, write, writeask, bash",
        "c3!: not run: nobody is there to approve it",
    ];
    assert_eq!(sent(&denied, 2), wanted);
}

#[test]
fn s_31_calls_of_a_broken_reply_are_paired_too() {
    let mut world = world(
        "",
        &[
            "Prompt P1",
            "r1 Text",
            "r1 Call read#n1",
            "r1 CallBegin write",
            "r1 End",
        ],
    );
    play(&mut world, &["Prompt P2"]);
    let wanted = [
        "User: prompt 1",
        "Assistant c1 c2: text",
        "c1!: not run: the reply that made this call broke off",
        "c2!: not run: the reply that made this call broke off",
        "User: prompt 2",
    ];
    assert_eq!(sent(&world, 2), wanted);
}

#[test]
fn tw_03_what_was_void_or_empty_is_not_in_the_history() {
    let mut world = world("", &["Prompt P1", "r1 Thinking", "r1 Failed", "@1 Woken"]);
    assert_eq!(sent(&world, 2), ["User: prompt 1"]);
    play(&mut world, &["r2 Finish, End", "Prompt P2"]);
    assert_eq!(sent(&world, 3), ["User: prompt 1", "User: prompt 2"]);
}

#[test]
fn t_42_context_prompts_stand_where_they_were_applied() {
    let world = world(
        "",
        &[
            "Prompt P1 Context",
            "Prompt P2",
            "Prompt P3 Context",
            "r1 Text",
            "r1 Finish, End",
            "Prompt P4",
        ],
    );
    let wanted = [
        "User: prompt 1",
        "User: prompt 2",
        "Assistant: text",
        "User: prompt 3",
        "User: prompt 4",
    ];
    assert_eq!(sent(&world, 2), wanted);
}

#[test]
fn t_36_a_refusal_and_what_hooks_add_are_messages() {
    let mut world = world(
        "(prompt_hook=1 end_hook=1)",
        &[
            "Prompt P1",
            "Hook h1 note",
            "r1 Text",
            "r1 Finish, End",
            "Hook h2 block",
            "Store w1",
        ],
    );
    let wanted = [
        "User: prompt 1",
        "User: a note",
        "Assistant: text",
        "User: no",
    ];
    assert_eq!(sent(&world, 2), wanted);
    play(&mut world, &["Cancel", "Prompt P2", "Hook h3 replace"]);
    assert_eq!(sent(&world, 3).last().unwrap(), "User: other words");
}

#[test]
fn t_27_provider_ids_are_made_unique() {
    let mut world = world(
        "",
        &[
            "Prompt P1",
            "r1 Call read#n1",
            "r1 Call read#n1",
            "r1 Finish, End",
            "Tool c1 ok",
            "Tool c2 ok",
        ],
    );
    play(
        &mut world,
        &[
            "r2 CallBegin read",
            "r2 Finish, End",
            "Tool c3 ok",
            "r3 Call read#n1",
            "r3 Finish, End",
        ],
    );
    let uses = world
        .session
        .history()
        .iter()
        .flat_map(|message| message.content.iter().cloned());
    let ids: Vec<String> = uses
        .filter_map(|block| match &*block {
            Block::ToolUse { provider_id, .. } => provider_id.as_deref().map(String::from),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["n1", "call_2", "call_3", "call_4"]);
}

#[test]
fn t_11_an_id_of_a_void_reply_is_free_again() {
    let mut world = world(
        "",
        &["Prompt P1", "r1 Call read#n1", "r1 Failed", "@1 Woken"],
    );
    play(&mut world, &["r2 Call read#n1", "r2 Finish, End"]);
    let reply = world.session.history().last().unwrap().clone();
    let Block::ToolUse { provider_id, .. } = &*reply.content[0] else {
        panic!("{reply:?}")
    };
    assert_eq!(provider_id.as_deref(), Some("n1"));
}

#[test]
fn s_31_calls_of_a_reply_that_was_cancelled_or_detached() {
    for cancel in ["Cancel", "Cancel Turn Run Switch"] {
        let mut world = world("", &["Prompt P1", "r1 Call read#n1", cancel]);
        play(&mut world, &["Prompt P2"]);
        let wanted = [
            "User: prompt 1",
            "Assistant c1: ",
            "c1!: not run: cancelled",
            "User: prompt 2",
        ];
        assert_eq!(sent(&world, 2), wanted, "{cancel}");
    }
}

#[test]
fn s_31_a_loaded_history_is_paired() {
    let message = |id, role, blocks: Vec<Block>| {
        Arc::new(Message {
            id: MessageId(id),
            role,
            content: blocks.into_iter().map(Arc::new).collect(),
            origin: Origin::History,
            prompt: None,
            about: None,
            at_ms: 0,
            details: None,
        })
    };
    let call = |call| Block::ToolUse {
        call: CallId(call),
        provider_id: Some(format!("call_{call}").into()),
        name: "read".into(),
        input: ToolInput::Object(RawJson("{}".into())),
    };
    let result = |id, call| {
        let role = Role::Tool {
            call: CallId(call),
            name: "read".into(),
            error: false,
        };
        message(id, role, vec![Block::Text("was".into())])
    };
    let mut info = info();
    info.history = vec![
        message(1, Role::Assistant, vec![call(1), call(2), call(3)]),
        message(2, Role::User, vec![Block::Text("go on".into())]),
        result(3, 3),
        result(4, 1),
        result(5, 9),
    ];
    let mut world = World::with_info(config(), info);
    let wanted = [
        "Assistant c1 c2 c3: ",
        "c1: was",
        "c2!: the result of this call was lost",
        "c3: was",
        "User: go on",
    ];
    assert_eq!(words(world.session.history()), wanted);
    // Ids go on behind those of the history.
    play(
        &mut world,
        &["Prompt P1", "r1 CallBegin read", "r1 Finish, End"],
    );
    let last = world.session.history().last().unwrap().clone();
    assert_eq!(last.calls().collect::<Vec<_>>(), [CallId(4)]);
    assert!(last.id > MessageId(5));
}

#[test]
fn s_03_a_request_is_made_of_what_was_set_when_it_began() {
    let mut config: SessionConfig = config();
    config.system = Some("be brief".into());
    config.model.max_output = Some(1000);
    let mut hidden = tool("hidden", SideEffect::Read);
    hidden.hidden = true;
    config.tools.push(hidden);
    let mut world = World::new(config);
    let look = |world: &World, request: u64| {
        let effect = Effect::StartModel(RequestId(request));
        match world.session.body(RunId::MAIN, &effect) {
            Some(EffectBody::Model(request)) => {
                let tools: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
                let (system, max) = (request.system.unwrap_or_default(), request.max_output);
                format!(
                    "{} {system} {max:?} {:?} {}",
                    request.model,
                    request.thinking,
                    tools.join(" ")
                )
            }
            _ => "not live".to_string(),
        }
    };
    play(&mut world, &["Prompt P1"]);
    let first = "model be brief Some(1000) None read readask write writeask bash";
    assert_eq!(look(&world, 1), first);
    world.command(Command::Set(Setting::Thinking(Some("high".into()))));
    play(&mut world, &["Set Model:other", "Tools read"]);
    assert_eq!(look(&world, 1), first);
    play(&mut world, &["Prompt P2 Steer:Start", "r1 Finish, End"]);
    assert_eq!(look(&world, 1), "not live");
    assert_eq!(
        look(&world, 2),
        "other be brief Some(1000) Some(\"high\") read"
    );
    // Another run's effects aren't this session's.
    let effect = Effect::StartModel(RequestId(2));
    assert!(world.session.body(RunId(1), &effect).is_none());
}

#[test]
fn tw_08_what_a_write_holds() {
    let mut world = World::new(policy("(gate_prompt=1 gate_end=1 gate_mode=1)"));
    let look = |world: &World, write: u64| {
        let effect = Effect::Store(WriteId(write));
        match world.session.body(RunId::MAIN, &effect) {
            Some(EffectBody::Write(
                WriteBody::Prompt(messages)
                | WriteBody::Turn(messages)
                | WriteBody::Beside(messages),
            )) => words(messages),
            Some(EffectBody::Write(WriteBody::Setting(setting))) => vec![format!("{setting:?}")],
            _ => vec!["not live".to_string()],
        }
    };
    play(&mut world, &["Recall", "Prompt P1"]);
    // What the host recalled is no part of the prompt: it is kept by itself.
    assert_eq!(look(&world, 1), ["User: before"]);
    assert_eq!(look(&world, 2), ["User: prompt 1"]);
    play(
        &mut world,
        &[
            "Store w1",
            "Store w2",
            "r1 Text",
            "r1 Finish, End",
            "Set Auto",
        ],
    );
    assert_eq!(look(&world, 2), ["not live"]);
    assert_eq!(look(&world, 3), ["User: prompt 1", "Assistant: text"]);
    assert_eq!(look(&world, 4), ["Approvals(Auto)"]);
}

#[test]
fn om_30_a_refusals_write_holds_the_turn_before_it() {
    let mut world = World::new(policy("(end_hook=1)"));
    play(
        &mut world,
        &["Prompt P1", "r1 Text", "r1 Finish, End", "Hook h1 block"],
    );
    let effect = Effect::Store(WriteId(1));
    let Some(EffectBody::Write(WriteBody::Refusal(messages))) =
        world.session.body(RunId::MAIN, &effect)
    else {
        panic!("no refusal is stored")
    };
    let [prompt, reply, refusal] = words(messages).try_into().unwrap();
    assert_eq!([&*prompt, &*reply], ["User: prompt 1", "Assistant: text"]);
    assert!(refusal.starts_with("User: "), "{refusal}");
}

#[test]
fn s_65_a_call_is_lent_with_the_input_that_was_decided() {
    let mut world = World::new(policy("(pre_hook=1)"));
    play(
        &mut world,
        &["Prompt P1", "r1 Call read#n1", "r1 Finish, End"],
    );
    let look = |world: &World| match world
        .session
        .body(RunId::MAIN, &Effect::RunTool { call: CallId(1) })
    {
        Some(EffectBody::Tool { name, input, .. }) => format!("{name} {}", input.0),
        _ => "not live".to_string(),
    };
    assert_eq!(look(&world), "read {\"path\":\"x\"}");
    play(&mut world, &["Hook h1 change"]);
    assert_eq!(look(&world), "read {\"path\":\"other\"}");
    play(&mut world, &["Tool c1 ok"]);
    assert_eq!(look(&world), "not live");
}

#[test]
fn s_22_thinking_after_a_signature_is_a_block_of_its_own() {
    let mut world = World::new(config());
    world.prompt(1, Deliver::IfIdle);
    for chunk in [
        ModelChunk::Thinking("one"),
        ModelChunk::Signature("si"),
        ModelChunk::Signature("g1"),
        ModelChunk::Thinking("two"),
        ModelChunk::Signature("sig2"),
        ModelChunk::Text("said"),
    ] {
        world.model(1, chunk);
    }
    world.complete(1);
    let thinking = |text: &str, signature: &str| Block::Thinking {
        text: text.into(),
        signature: Some(signature.into()),
    };
    let message = world.session.history().last().cloned();
    let blocks: Vec<Block> = message
        .iter()
        .flat_map(|m| m.content.iter().map(|block| (**block).clone()))
        .collect();
    let wanted = [
        thinking("one", "sig1"),
        thinking("two", "sig2"),
        Block::Text("said".into()),
    ];
    assert_eq!(blocks, wanted);
}

#[test]
fn s_31_recalled_calls_get_ids_of_the_session() {
    let inputs = [
        "Recall batch",
        "Prompt P1",
        "r1 Call read#n1",
        "r1 Finish, End",
    ];
    let mut world = world("", &inputs);
    play(
        &mut world,
        &["Tool c2 ok", "r2 Finish, End", "Recall batch", "Prompt P2"],
    );
    let wanted = [
        "Assistant c1: ",
        "c1: ",
        "User: prompt 1",
        "Assistant c2: ",
        "c2: out",
        "Assistant c3: ",
        "c3: ",
        "User: prompt 2",
    ];
    assert_eq!(sent(&world, 3), wanted);
    let blocks = world
        .session
        .history()
        .iter()
        .flat_map(|message| &message.content);
    let ids: Vec<Option<Text>> = blocks
        .filter_map(|block| match &**block {
            Block::ToolUse { provider_id, .. } => Some(provider_id.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(
        ids,
        [
            Some("n1".into()),
            Some("call_2".into()),
            Some("call_3".into())
        ]
    );
    let about: Vec<Option<CallId>> = world
        .session
        .history()
        .iter()
        .map(|one| one.about)
        .collect();
    assert_eq!(about[1], Some(CallId(1)));
}
