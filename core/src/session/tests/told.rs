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

/// The suggestions that come with a permission for a call.
fn suggested(name: &str, arguments: &str, suggest: bool) -> Vec<PermissionUpdate> {
    let mut config = config();
    config.policy.suggest = suggest;
    let mut world = World::new(config);
    world.command(Command::Prompt(prompt(1, Deliver::IfIdle)));
    world.call(1, name, "n1", arguments);
    for chunk in [ModelChunk::Finish("stop"), ModelChunk::End] {
        let request = RequestId(1);
        let input = Input::Model { request, chunk };
        world.session.handle(input, world.now).unwrap();
    }
    let mut found = None;
    while let Some(output) = world.session.poll_output() {
        if let Output::Event(event) = output
            && let What::Asked { body, .. } = &event.what
            && let Ask::Permission(ask) = body
        {
            found = Some(ask.suggestions.clone());
        }
    }
    found.unwrap()
}

#[test]
fn a_permission_suggests_what_would_keep_it_from_being_asked_again() {
    let rule = |tool: &str, pattern: &str| PermissionUpdate::Rules {
        op: SetOp::Add,
        behaviour: "allow".into(),
        rules: Vec::from([(tool.into(), Some(pattern.into()))]),
        keep: Keep::Local,
    };
    let edits = PermissionUpdate::Mode {
        mode: "accept_edits".into(),
        keep: Keep::Session,
    };
    let list = r#"{"command":"ls -l"}"#;
    assert_eq!(suggested("bash", list, true), [rule("bash", "ls -l")]);
    assert_eq!(suggested("bash", list, false), []);
    let path = r#"{"path":"a.rs"}"#;
    let both = [rule("writeask", "a.rs"), edits.clone()];
    assert_eq!(suggested("writeask", path, true), both);
    // A rule would allow more than this call.
    assert_eq!(suggested("bash", r#"{"command":"rm *"}"#, true), []);
    assert_eq!(suggested("writeask", r#"{"path":"a?"}"#, true), [edits]);
}

#[test]
fn a_prompt_s_details_go_with_its_message() {
    let mut world = World::new(config());
    let mut given = prompt(1, Deliver::Context);
    given.details = Some(RawJson(r#"{"isSynthetic":true}"#.into()));
    let details = given.details.clone();
    world.command(Command::Prompt(given));
    assert_eq!(world.session.history()[0].details, details);
}

#[test]
fn the_details_of_a_prompt_count_among_its_bytes() {
    let mut given = prompt(1, Deliver::IfIdle);
    let without = given.bytes();
    given.details = Some(RawJson("{}".into()));
    assert_eq!(given.bytes(), without + 2);
}

#[test]
fn what_a_turn_cost_is_said_by_request_and_by_model() {
    let mut config = config();
    config.model.price = Some(crate::session::config::Price {
        input: 5,
        cache_read: 0,
        cache_write: 0,
        output: 0,
        source: "list".into(),
        as_of: "today".into(),
    });
    let mut world = World::new(config);
    world.command(Command::Prompt(prompt(1, Deliver::IfIdle)));
    let mut costs = Vec::new();
    for (request, name) in [(1, Some("read")), (2, None)] {
        if let Some(name) = name {
            world.call(request, name, "n1", "{}");
        }
        let usage = Usage {
            input: Some(10),
            ..Usage::default()
        };
        let chunks = [
            ModelChunk::Usage(usage),
            ModelChunk::Finish("stop"),
            ModelChunk::End,
        ];
        for chunk in chunks {
            let request = RequestId(request);
            let input = Input::Model { request, chunk };
            world.session.handle(input, world.now).unwrap();
        }
        while let Some(output) = world.session.poll_output() {
            let Output::Event(event) = output else {
                continue;
            };
            if let What::RequestEnded { cost, .. } = &event.what {
                costs.push(cost.clone());
            }
            if let What::TurnEnded { report, .. } = &event.what {
                costs.extend(report.by_model.iter().map(|(_, _, cost)| cost.clone()));
            }
        }
        if request == 1 {
            let done = ToolUpdate::Done {
                outcome: ToolOutcome::Ok,
                content: Vec::new(),
                show: None,
            };
            let (call, update) = (CallId(1), done);
            let input = Input::Tool { call, update };
            world.session.handle(input, world.now).unwrap();
        }
    }
    let pico: Vec<u64> = costs
        .iter()
        .map(|cost| match cost {
            Cost::Known { pico_usd, .. } => *pico_usd,
            Cost::Unpriced { .. } | Cost::NotSaid => 0,
        })
        .collect();
    assert_eq!(pico, [50, 50, 100]);
}

#[test]
fn a_model_that_stands_nowhere_else_has_the_price_that_is_given_for_its_name() {
    let price = |input| crate::session::config::Price {
        input,
        cache_read: 0,
        cache_write: 0,
        output: 0,
        source: "list".into(),
        as_of: "today".into(),
    };
    let mut config = config();
    config.model.price = Some(price(5));
    config.prices = Vec::from([("small".into(), price(1))]);
    let mut world = World::new(config);
    let mut priced = |name: Option<&str>| {
        world.command(Command::Set(Setting::Model(name.map(Into::into))));
        world.session.model.price.as_ref().map(|price| price.input)
    };
    assert_eq!(priced(Some("small")), Some(1));
    assert_eq!(priced(Some("other")), None);
    assert_eq!(priced(None), Some(5));
}
