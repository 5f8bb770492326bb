//! A configuration that is frozen anew behind a real session and its Server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::openmax_kit;

use openmax_kit::duo::*;
use turnwire::protocol::openmax::Extra;
use turnwire::session::config::{Rule, RuleBehaviour};
use turnwire::session::schema_tokens;
use turnwire::vocab::*;

/// What a session has now.
fn frozen(config: &turnwire::session::SessionConfig) -> Frozen {
    Frozen {
        system: config.system.clone(),
        tools: config.tools.clone(),
        hooks: config.hooks.clone(),
        ..Frozen::default()
    }
}

fn receipt(changes: &[&str]) -> Answer {
    Answer::Reloaded {
        tools: 2,
        skills: 0,
        changes: changes.iter().map(|text| Text::from(*text)).collect(),
    }
}

fn refreeze(duo: &mut Duo, frozen: Frozen, changes: &[&str]) {
    duo.give(Input::Refrozen {
        frozen: Box::new(frozen),
        changes: changes.iter().map(|text| Text::from(*text)).collect(),
    });
}

#[test]
fn om_08_a_reload_replaces_prompt_tools_rules_and_hooks() {
    let config = session_config(ApprovalMode::Auto);
    let mut new = frozen(&config);
    new.system = Some("Be brief.".into());
    new.tools.push(tool("extra", SideEffect::Read));
    new.rules = vec![Rule {
        behaviour: RuleBehaviour::Deny,
        tool: "look".into(),
        pattern: None,
    }];
    new.hooks = vec![hook("verify", HookPoint::TurnEnd)];
    let mut duo = Duo::new(config);
    duo.host(r#"{"cmd":"reload"}"#);
    refreeze(&mut duo, new, &["tool extra added"]);
    assert_eq!(duo.labels(), [""; 0], "the receipt stands for the change");
    duo.reloaded(Ok(receipt(&["tool extra added"])));
    assert_eq!(duo.labels(), ["refrozen"]);
    duo.user("go");
    assert_eq!(duo.labels(), ["harness_note", "budget"]);
    assert_eq!(duo.all("harness_note", "call_id"), [""]);
    assert_eq!(
        duo.all("harness_note", "text"),
        ["[refreeze: tool extra added]"]
    );
    let sent = duo.requests.last().unwrap();
    let told = format!("{:?}", sent.messages);
    assert!(told.contains("refreeze: tool extra added"), "{told}");
    let effect = Effect::StartModel(sent.id);
    let Some(EffectBody::Model(body)) = duo.session.body(RunId::MAIN, &effect) else {
        panic!("no request")
    };
    assert_eq!(body.system, Some("Be brief."));
    assert!(body.tools.iter().any(|tool| &*tool.name == "extra"));
    duo.answer("", &[("c1", "look", r#"{"path":"a"}"#)]);
    assert_eq!(duo.all("tool_end", "ok"), [false], "denied by the new rule");
    duo.answer("Done.", &[]);
    duo.lines();
    duo.hook_says(HookVerdict::Pass);
    assert_eq!(duo.labels(), ["done(stop)"]);
}

#[test]
fn om_08_the_first_boundary_and_its_hooks_wait_for_a_reload() {
    let config = session_config(ApprovalMode::Auto);
    let mut new = frozen(&config);
    new.hooks = vec![hook("guard", HookPoint::PromptSubmit)];
    new.unloaded = vec![UnloadedHook {
        key: "other".into(),
        point: HookPoint::TurnEnd,
        why: "it has no command".into(),
    }];
    let mut duo = Duo::new(config);
    // A reload of the driver's own, which no line of the host asked for.
    let before_turn = CommandId(1 << 63);
    duo.command(before_turn.0, Command::Reload);
    duo.user("go");
    assert_eq!(duo.labels(), [""; 0], "it waits");
    assert_eq!(duo.requests.len(), 0);
    let extra = Extra::Refrozen {
        tools: 2,
        skills: 0,
        changes: vec!["hook guard added".into()],
    };
    duo.extra(extra);
    refreeze(&mut duo, new, &["hook guard added"]);
    duo.reloaded(Ok(receipt(&["hook guard added"])));
    assert_eq!(duo.labels(), ["refrozen", "hook_failed"]);
    duo.hook_says(HookVerdict::Pass);
    assert_eq!(duo.labels(), ["harness_note", "harness_note", "budget"]);
    duo.answer("Done.", &[]);
    duo.lines();
    duo.user("again");
    duo.hook_says(HookVerdict::Pass);
    assert_eq!(duo.labels(), ["budget"], "said once");
}

#[test]
fn om_08_a_cancel_ends_a_turn_that_waits_for_a_reload_and_one_that_fails_changes_nothing() {
    let mut duo = Duo::new(session_config(ApprovalMode::Auto));
    duo.command(1 << 63, Command::Reload);
    duo.user("go");
    duo.cancel();
    assert_eq!(duo.labels(), ["done(cancelled)"]);
    duo.reloaded(Err("broken".into()));
    assert_eq!(duo.labels(), [""; 0], "nobody asked");
    duo.command((1 << 63) + 1, Command::Reload);
    duo.user("go");
    duo.reloaded(Err("broken".into()));
    assert_eq!(duo.labels(), ["budget"]);
}

#[test]
fn om_13_a_receipt_stands_for_one_change_even_if_no_name_differs_in_it() {
    let config = session_config(ApprovalMode::Auto);
    let (same, mut more) = (frozen(&config), frozen(&config));
    more.tools.push(tool("extra", SideEffect::Read));
    let mut duo = Duo::new(config);
    duo.extra(Extra::Refrozen {
        tools: 2,
        skills: 0,
        changes: vec!["prompt changed".into()],
    });
    refreeze(&mut duo, same, &[]);
    assert_eq!(duo.labels(), ["refrozen"]);
    refreeze(&mut duo, more, &[]);
    assert_eq!(duo.labels(), ["refrozen"], "another change, by its names");
    assert!(
        duo.all("refrozen", "changes")[1]
            .to_string()
            .contains("tool extra added")
    );
}

#[test]
fn om_13_schemas_are_counted_as_requests_count_them() {
    let one = schema_tokens(&[tool("look", SideEffect::Read)]);
    let two = schema_tokens(&[
        tool("look", SideEffect::Read),
        tool("look", SideEffect::Read),
    ]);
    assert!(one > 0 && two >= 2 * one - 1 && schema_tokens(&[]) == 0);
}
