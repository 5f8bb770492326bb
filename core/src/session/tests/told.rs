//! What a hook of the driver is told by its effect's body.

use alloc::vec::Vec;

use super::world::{World, config, hook, prompt, tool};
use crate::session::Session;
use crate::vocab::*;

/// The body of the hook that runs, and the facts out of it.
fn told(session: &Session, hook: u64) -> (Option<(&str, &RawJson)>, HookFacts) {
    let hook = HookId(hook);
    match session.body(RunId::MAIN, &Effect::RunHook { hook }) {
        Some(EffectBody::Hook { facts, tool, .. }) => (tool, facts),
        other => panic!("no hook's body: {other:?}"),
    }
}

fn turn_end(session: &Session, hook: u64) -> (u32, Option<u32>) {
    match told(session, hook) {
        (None, HookFacts::TurnEnd { honoured, left, .. }) => (honoured, left),
        other => panic!("not a turn's end: {other:?}"),
    }
}

#[test]
fn om_30_a_turn_end_hook_is_told_the_numbers_of_its_refusal() {
    let mut config = config();
    config.hooks = Vec::from([hook(HookPoint::TurnEnd)]);
    config.policy.gates.refusal = false;
    let mut world = World::new(config);
    world.command(Command::Prompt(prompt(1, Deliver::IfIdle)));
    world.model(1, ModelChunk::Text("one"));
    world.complete(1);
    assert_eq!(turn_end(&world.session, 1), (0, Some(8)));
    let hook = HookId(1);
    let outcome = Ok(HookReply::deny("no".into()));
    world.give(Input::Hook { hook, outcome });
    world.complete(2);
    assert_eq!(turn_end(&world.session, 2), (1, Some(7)));
}

#[test]
fn the_hooks_of_a_call_are_told_its_name_and_its_arguments_as_they_are_now() {
    let mut config = config();
    config.tools = Vec::from([tool("read", SideEffect::Read)]);
    config.hooks = Vec::from([hook(HookPoint::PreTool), hook(HookPoint::PostTool)]);
    let mut world = World::new(config);
    world.command(Command::Prompt(prompt(1, Deliver::IfIdle)));
    world.call(1, "read", "n1", r#"{"a": 1}"#);
    world.complete(1);
    let args = RawJson(r#"{"a": 1}"#.into());
    let (tool, facts) = told(&world.session, 1);
    assert_eq!(tool, Some(("read", &args)));
    assert_eq!(facts.call(), Some(CallId(1)));
    let changed = RawJson(r#"{"a": 2}"#.into());
    let reply = HookReply {
        verdict: HookVerdict::Allow {
            input: Some(changed.clone()),
        },
        ..HookReply::pass()
    };
    let (hook, outcome) = (HookId(1), Ok(reply));
    world.give(Input::Hook { hook, outcome });
    world.tool(1, ToolOutcome::Ok);
    let (tool, facts) = told(&world.session, 2);
    assert_eq!(tool, Some(("read", &changed)));
    assert!(matches!(facts, HookFacts::Result { content, ok: true, .. } if content.len() == 1));
}
