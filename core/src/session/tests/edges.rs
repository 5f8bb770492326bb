//! What stands at the edge of a limit, and words and facts that no row shows.

use alloc::{boxed::Box, format, string::String, sync::Arc, vec, vec::Vec};

use super::{
    act::{act, policy},
    history::play,
    world::{SECOND, World, config, hook, info, prompt},
};
use crate::session::{
    SessionConfig,
    config::{ModelConfig, RefuseAt, RuleBehaviour, UnapprovedSource},
};
use crate::vocab::*;

/// Gives an input; what was said and which effects were asked for.
fn outputs(world: &mut World, input: Input<'_>) -> (Vec<What>, Vec<Effect>) {
    world.session.handle(input, world.now).unwrap();
    let (mut said, mut effects) = (Vec::new(), Vec::new());
    while let Some(output) = world.session.poll_output() {
        match output {
            Output::Event(event) => said.push(event.what.clone()),
            Output::Effect { effect, .. } => effects.push(effect),
            Output::Delta(_) => {}
        }
    }
    (said, effects)
}

fn said(world: &mut World, input: Input<'_>) -> Vec<What> {
    outputs(world, input).0
}

fn command(command: Command) -> Input<'static> {
    let id = CommandId(1_000);
    Input::Call(Call { id, command })
}

fn reply(ask: u64, reply: Result<Reply, ReplyFault>) -> Input<'static> {
    let ask = AskId(ask);
    command(Command::Reply { ask, reply })
}

fn model(request: u64, chunk: ModelChunk<'_>) -> Input<'_> {
    let request = RequestId(request);
    Input::Model { request, chunk }
}

/// All that a request says at once.
fn chunks(world: &mut World, request: u64, chunks: &[ModelChunk<'_>]) -> Vec<What> {
    let say = |chunk: &ModelChunk<'_>| said(world, model(request, chunk.clone()));
    chunks.iter().flat_map(say).collect()
}

fn world(about: &str, inputs: &[&str]) -> World {
    let mut world = World::new(policy(about));
    play(&mut world, inputs);
    world
}

/// What is estimated for the first request of a prompt.
fn first_estimate() -> u64 {
    let world = world("", &["Prompt P1"]);
    world.session.estimate.used()
}

#[test]
fn tw_10_bulk_is_taken_at_the_hard_limit_and_refused_above_it() {
    let mut world = world("", &["Prompt P1"]);
    let text = || model(1, ModelChunk::Text("text"));
    world.session.handle(text(), world.now).unwrap();
    world.session.config.limits.hard_bytes = world.session.out.bytes();
    assert_eq!(world.session.handle(text(), world.now), Ok(()));
    world.session.config.limits.hard_bytes = world.session.out.bytes() - 1;
    let refused = world.session.handle(text(), world.now);
    assert_eq!(refused, Err(Misuse::OverHardLimit));
}

#[test]
fn s_05_a_model_of_the_list_brings_its_numbers_and_any_other_is_refused() {
    let mut config = config();
    config.models = vec![ModelConfig::new("other", 100_000)];
    let mut world = World::new(config);
    assert_eq!(act(&mut world, "Set Model:nope"), ["RP Err Invalid"]);
    assert_eq!(world.session.model.window, 0);
    let said = act(&mut world, "Set Model:other");
    assert_eq!(said, ["RP Done", "Changed Ask"]);
    assert_eq!(world.session.model.window, 100_000);
    assert_eq!(act(&mut world, "Set Model:model").len(), 2);
    assert_eq!(world.session.model.window, 0);
}

#[test]
fn s_05_a_setting_that_is_blank_is_refused() {
    let mut world = World::new(config());
    for blank in [
        Setting::Name(" ".into()),
        Setting::Model(Some("\t".into())),
        Setting::Thinking(Some("".into())),
    ] {
        let said = world.command(Command::Set(blank.clone()));
        assert_eq!(said, ["RP Err Invalid"], "{blank:?}");
    }
    let none = world.command(Command::Set(Setting::Thinking(None)));
    assert_eq!(none, ["RP Done", "Changed Ask"]);
}

fn rules(op: SetOp, behaviour: &str, tools: &[&str]) -> PermissionUpdate {
    PermissionUpdate::Rules {
        op,
        behaviour: behaviour.into(),
        rules: tools.iter().map(|tool| ((*tool).into(), None)).collect(),
        keep: Keep::Session,
    }
}

fn allow(updates: Vec<PermissionUpdate>) -> Result<Reply, ReplyFault> {
    Ok(Reply::Allow {
        input: None,
        updates,
    })
}

/// The rules that there are after an answer with updates.
fn updated(updates: Vec<PermissionUpdate>) -> Vec<(RuleBehaviour, String)> {
    let asked = ["Prompt P1", "r1 Call writeask#n1", "r1 Finish, End"];
    let mut world = world("", &asked);
    let words = world.reply(1, allow(updates));
    assert!(
        !words.iter().any(|word| word.starts_with("Notice")),
        "{words:?}"
    );
    let rules = world.session.config.rules.iter();
    rules
        .map(|rule| (rule.behaviour, String::from(&*rule.tool)))
        .collect()
}

#[test]
fn an_answer_adds_replaces_and_removes_rules() {
    use RuleBehaviour::{Allow, Ask, Deny};
    let named = |rules: &[(RuleBehaviour, &str)]| -> Vec<(RuleBehaviour, String)> {
        rules
            .iter()
            .map(|(how, tool)| (*how, (*tool).into()))
            .collect()
    };
    let old = [(Allow, "write"), (Ask, "readask"), (Ask, "writeask")];
    let add = updated(vec![
        rules(SetOp::Add, "deny", &["a"]),
        rules(SetOp::Add, "ask", &["writeask"]),
    ]);
    assert_eq!(add, named(&[&old[..], &[(Deny, "a")]].concat()));
    let replace = updated(vec![rules(SetOp::Replace, "ask", &["a"])]);
    assert_eq!(replace, named(&[(Allow, "write"), (Ask, "a")]));
    let remove = updated(vec![rules(SetOp::Remove, "ask", &["writeask"])]);
    assert_eq!(remove, named(&old[..2]));
    // The same tool with another behaviour is another rule.
    let other = updated(vec![rules(SetOp::Remove, "deny", &["a", "writeask"])]);
    assert_eq!(other, named(&old));
}

#[test]
fn tw_10_rules_fill_their_table_to_the_last() {
    let all: Vec<String> = (0..4096 - 3).map(|n| format!("t{n}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    assert_eq!(updated(vec![rules(SetOp::Add, "deny", &all)]).len(), 4096);
}

/// How the call of a tool that the host carries out ended.
fn host_call(answer: Result<Reply, ReplyFault>) -> (ToolOutcome, Vec<Block>, Option<Box<Show>>) {
    let inputs = ["Prompt P1", "r1 Call routed#n1", "r1 Finish, End"];
    let mut world = world("(route=host)", &inputs);
    let said = said(&mut world, reply(1, answer));
    let ended = said.into_iter().find_map(|what| match what {
        What::ToolEnded {
            outcome,
            content,
            show,
            ..
        } => Some((outcome, content, show)),
        _ => None,
    });
    ended.unwrap()
}

#[test]
fn the_model_is_told_why_the_host_gave_no_result() {
    for (fault, text) in [
        (ReplyFault::HostGone, "the host is gone"),
        (ReplyFault::HostCancelled, "cancelled by the host"),
        (ReplyFault::HostError("broke".into()), "broke"),
        (ReplyFault::Malformed("what?".into()), "what?"),
    ] {
        let (outcome, content, _) = host_call(Err(fault));
        assert_eq!(outcome, ToolOutcome::Failed);
        assert_eq!(content, [Block::Text(text.into())]);
    }
}

#[test]
fn the_details_of_a_host_s_result_are_shown_beside_it() {
    let details = Some(RawJson("{\"rows\":2}".into()));
    let content = vec![Block::Text("done".into())];
    let (_, kept, show) = host_call(Ok(Reply::Tool {
        content: content.clone(),
        is_error: false,
        details: details.clone(),
    }));
    assert_eq!(kept, content);
    assert_eq!(show.unwrap().details, details);
}

#[test]
fn tw_10_what_a_host_offers_is_counted_by_every_text_of_it() {
    // Texts of two, three and five bytes, so that sums, differences and products differ.
    let mut tool = super::world::tool("ab", SideEffect::Read);
    tool.description = "abc".into();
    tool.schema = RawJson("{   }".into());
    let mut hook = hook(HookPoint::TurnEnd).spec;
    hook.key = "ab".into();
    hook.matcher = Some("abc".into());
    let uri = UriSpec {
        scheme: "ab".into(),
        description: Some("abc".into()),
        writable: false,
        immutable: false,
    };
    let offers: [(Offer, usize); 3] = [
        (Offer::Tools(vec![tool]), 10),
        (Offer::Hooks(vec![hook]), 5),
        (Offer::Uris(vec![uri]), 5),
    ];
    for (offer, size) in offers {
        let answer = |bytes: usize, number: usize| {
            let mut config = config();
            config.limits.queued_bytes = bytes;
            config.limits.offered = number;
            let said = World::new(config).command(Command::Offer(offer.clone()));
            said[0].clone()
        };
        assert_eq!(answer(size, 1), "RP Done", "{offer:?}");
        assert_eq!(answer(size - 1, 1), "RP Err TooLarge", "{offer:?}");
        assert_eq!(answer(size, 0), "RP Err Full", "{offer:?}");
    }
}

#[test]
fn tw_10_what_a_compaction_is_told_and_what_is_recalled_have_a_limit() {
    let mut world = world("(prompt_bytes=8)", &["Prompt P1"]);
    assert_eq!(act(&mut world, "Compact 123456789"), ["RP Err TooLarge"]);
    assert_eq!(act(&mut world, "Compact 12345678"), ["RP Done"]);
    let message = Arc::new(Message {
        id: MessageId(1),
        role: Role::User,
        content: vec![Arc::new(Block::Text("12345678".into()))],
        origin: Origin::History,
        prompt: None,
        about: None,
        at_ms: 0,
        details: None,
    });
    let answer = |bytes: usize| {
        let mut config = config();
        config.limits.queued_bytes = bytes;
        let said = World::new(config).command(Command::Recall(vec![message.clone()]));
        said[0].clone()
    };
    assert_eq!(answer(message.bytes()), "RP Done");
    assert_eq!(answer(message.bytes() - 1), "RP Err TooLarge");
}

#[test]
fn tw_10_a_call_s_name_and_id_count_as_bytes_of_the_reply() {
    // `read` and `n1` are six bytes.
    let begin = ModelChunk::CallBegin {
        index: 0,
        id: Some("n1"),
        name: "read",
    };
    let broken = |limit: u64| {
        let mut world = world(&format!("(reply_bytes={limit})"), &["Prompt P1"]);
        let said = said(&mut world, model(1, begin.clone()));
        said.iter()
            .any(|what| matches!(what, What::RequestEnded { .. }))
    };
    assert!(!broken(6));
    assert!(broken(5));
}

#[test]
fn a_budget_and_a_window_are_spent_only_above_their_number() {
    let used = first_estimate();
    let ends = |config: SessionConfig| {
        let said = World::new(config).prompt(1, Deliver::IfIdle);
        said.iter().any(|word| word.starts_with("TE "))
    };
    for (spare, over) in [(0, false), (1, true)] {
        let mut tokens = config();
        tokens.budgets.tokens = Some(used - spare);
        assert_eq!(ends(tokens), over, "tokens");
        let mut fits = config();
        fits.settings.auto_compact = false;
        fits.model.window = used + 7 - spare;
        fits.model.max_output = Some(7);
        fits.policy.refuse_at = RefuseAt::OutputFits;
        assert_eq!(ends(fits.clone()), over, "output");
        fits.model.window = used - spare;
        fits.policy.refuse_at = RefuseAt::Percent(100);
        assert_eq!(ends(fits), over, "percent");
    }
}

#[test]
fn a_compaction_keeps_what_is_exactly_its_share() {
    // Three messages of the same weight: the share is a third.
    let mut info = info();
    let message = |id: u64| {
        Arc::new(Message {
            id: MessageId(id),
            role: Role::User,
            content: vec![Arc::new(Block::Text("12345678".into()))],
            origin: Origin::History,
            prompt: None,
            about: None,
            at_ms: 0,
            details: None,
        })
    };
    info.history = (1..=3).map(message).collect();
    let mut world = World::with_info(config(), info);
    let said = said(&mut world, command(Command::Compact { instructions: None }));
    let span = said.iter().find_map(|what| match what {
        What::CompactionStarted { span, .. } => *span,
        _ => None,
    });
    assert_eq!(span, Some((1, 2)));
}

#[test]
fn only_what_moves_a_summary_on_keeps_its_clock_from_running_out() {
    let mut world = world(
        "(t_stall=10)",
        &["Prompt P1", "r1 Text", "r1 Finish, End", "Compact"],
    );
    let mut at = 0;
    let begin = || ModelChunk::Begin {
        id: None,
        model: None,
    };
    let args = |text| ModelChunk::CallArgs { index: 0, text };
    let steps = [
        (ModelChunk::Thinking(""), false),
        (ModelChunk::Thinking("hm"), true),
        (ModelChunk::Text(""), false),
        (ModelChunk::Text("so"), true),
        (args(""), false),
        (args("{"), true),
        (begin(), true),
        (begin(), false),
        (ModelChunk::Alive, false),
        (ModelChunk::Finish("stop"), true),
        (ModelChunk::Finish("stop"), false),
    ];
    let mut due = world.session.poll_timeout().unwrap().at_us;
    for (chunk, moves) in steps {
        at += SECOND;
        world.at_us(at);
        let name = format!("{chunk:?}");
        said(&mut world, model(2, chunk));
        let now = world.session.poll_timeout().unwrap().at_us;
        assert_eq!(now, if moves { at + 10 * SECOND } else { due }, "{name}");
        due = now;
    }
}

#[test]
fn a_reply_begins_once() {
    let mut world = world("(t_stall=10)", &["Prompt P1", "@1 r1 Begin"]);
    let due = |world: &World| world.session.poll_timeout().unwrap().at_us;
    assert_eq!(due(&world), 11 * SECOND);
    act(&mut world, "@2 r1 Begin");
    assert_eq!(due(&world), 11 * SECOND);
}

#[test]
fn a_wait_is_made_longer_by_up_to_its_percent_of_jitter() {
    let waits = (0..32_u8).map(|seed| {
        let mut config = policy("(jitter=1)");
        config.policy.retry.backoff_us = vec![100];
        config.seed = [seed; 32];
        let mut world = World::new(config);
        world.prompt(1, Deliver::IfIdle);
        let failure = Failure {
            kind: FailureKind::Server,
            status: Some(500),
            retryable: true,
            text: "it failed".into(),
        };
        let failed = ModelChunk::Failed {
            failure,
            reached: true,
            retry_after_us: None,
        };
        let said = said(&mut world, model(1, failed));
        let wait = said.iter().find_map(|what| match what {
            What::RetryScheduled { wait_us, .. } => *wait_us,
            _ => None,
        });
        wait.unwrap()
    });
    let mut waits: Vec<u64> = waits.collect();
    waits.sort_unstable();
    waits.dedup();
    assert_eq!(waits, [100, 101]);
}

/// The text of the failure that ended the turn.
fn truncated(said: &[What]) -> String {
    let text = said.iter().find_map(|what| match what {
        What::TurnEnded {
            end: End::Truncated(failure),
            ..
        } => Some(String::from(&*failure.text)),
        _ => None,
    });
    text.unwrap_or_else(|| panic!("not truncated: {said:?}"))
}

#[test]
fn a_reply_that_broke_off_says_why_and_what_of_it_did_not_run() {
    let call = ModelChunk::CallBegin {
        index: 0,
        id: Some("n1"),
        name: "read",
    };
    let mut cut = world("", &["Prompt P1", "r1 Text"]);
    let text = truncated(&chunks(&mut cut, 1, &[ModelChunk::End]));
    let open = "the reply above is incomplete: ";
    assert!(text.starts_with(open), "{text}");
    assert!(text.ends_with("(no completion signal)"), "{text}");
    let mut called = world("", &["Prompt P1", "r1 Text"]);
    let text = truncated(&chunks(&mut called, 1, &[call, ModelChunk::End]));
    let ran = ", so the 1 tool call(s) it carried did not run";
    assert!(text.starts_with(open) && text.ends_with(ran), "{text}");
    let mut long = world("(reply_bytes=8)", &["Prompt P1", "r1 Text"]);
    let text = truncated(&chunks(&mut long, 1, &[ModelChunk::Text("more!")]));
    let limit = "the reply is longer than 8 bytes; the reply above is incomplete";
    assert_eq!(text, limit);
}

#[test]
fn a_message_with_calls_stops_for_them_and_one_without_ends() {
    for (call, stop) in [(true, Stop::ToolUse), (false, Stop::End)] {
        let mut world = world("", &["Prompt P1", "r1 Text"]);
        if call {
            play(&mut world, &["r1 Call read#n1"]);
        }
        let said = chunks(
            &mut world,
            1,
            &[ModelChunk::Finish("stop"), ModelChunk::End],
        );
        let found = said.iter().find_map(|what| match what {
            What::MessageEnded { stop, .. } => Some(stop.clone()),
            _ => None,
        });
        assert_eq!(found, Some(stop));
    }
}

#[test]
fn a_shell_command_that_was_stopped_has_no_exit_code() {
    for outcome in [ToolOutcome::Cancelled, ToolOutcome::TimedOut] {
        let mut world = world("", &["Shell sleep 9"]);
        let show = Show {
            meta: vec![("exit_code".into(), "137".into())],
            ..Show::default()
        };
        let outcome = ToolUpdate::Done {
            outcome,
            content: Vec::new(),
            show: Some(Box::new(show)),
        };
        let command = world.shells[0];
        let said = said(&mut world, Input::Shell { command, outcome });
        let found = said.iter().any(|what| {
            matches!(
                what,
                What::Replied {
                    reply: Ok(Answer::Shell { exit: None, .. }),
                    ..
                }
            )
        });
        assert!(found, "{said:?}");
    }
}

/// What was decided about a call: whether it runs, on which input, and the reason.
fn decided(said: &[What]) -> Verdict {
    let verdict = said.iter().find_map(|what| match what {
        What::Decided { verdict, .. } => Some(verdict.clone()),
        _ => None,
    });
    verdict.unwrap_or_else(|| panic!("nothing decided: {said:?}"))
}

#[test]
fn an_input_is_said_with_a_verdict_only_where_a_hook_changed_it() {
    let end = [ModelChunk::Finish("stop"), ModelChunk::End];
    let inputs = ["Prompt P1", "r1 Call bash#n1"];
    let mut plain = world("(mode=Auto)", &inputs);
    assert_eq!(decided(&chunks(&mut plain, 1, &end)).input, None);
    let mut hooked = world("(mode=Auto pre_hook=1)", &inputs);
    play(&mut hooked, &["r1 Finish, End"]);
    let changed = RawJson("{\"path\":\"other\"}".into());
    let outcome = Ok(HookReply {
        verdict: HookVerdict::Allow {
            input: Some(changed.clone()),
        },
        ..HookReply::pass()
    });
    let hook = HookId(1);
    let said = said(&mut hooked, Input::Hook { hook, outcome });
    assert_eq!(decided(&said).input, Some(changed));
}

#[test]
fn a_refusal_names_the_mode_or_the_rule() {
    let verdict = |about: &str| {
        let mut world = world(about, &["Prompt P1", "r1 Call bash#n1"]);
        decided(&chunks(
            &mut world,
            1,
            &[ModelChunk::Finish("stop"), ModelChunk::End],
        ))
    };
    let never = verdict("(mode=Never)");
    let text = "not run: bash needs an approval, and the approval mode asks nobody";
    assert_eq!(never.reason.as_deref(), Some(text));
    let ruled = verdict("(deny_path=x*)");
    assert_eq!(ruled.by, Decider::Rule("*(x*)".into()));
    let plain = verdict("(deny=bash)");
    assert_eq!(plain.by, Decider::Rule("bash".into()));
}

#[test]
fn om_15_an_approval_of_content_is_of_that_tool_alone() {
    let source = |tool: &str, path: &str| UnapprovedSource {
        tool: tool.into(),
        path: path.into(),
        sha: "0123".into(),
        env: Vec::new(),
        runs: "x".into(),
    };
    let mut config = config();
    config.unapproved = vec![
        source("write", "tools/a"),
        source("bash", "tools/b"),
        source("write", "tools/c"),
    ];
    let mut world = World::new(config);
    play(
        &mut world,
        &[
            "Prompt P1",
            "r1 Call write#n1",
            "r1 Finish, End",
            "Reply a1 Allow",
        ],
    );
    let left = &world.session.config.unapproved;
    let left: Vec<&str> = left.iter().map(|source| &*source.path).collect();
    assert_eq!(left, ["tools/b"]);
}

#[test]
fn reaching_the_endpoint_forgets_the_attempts_that_did_not() {
    let mut config = config();
    config.policy.retry.unreached = 2;
    let mut world = World::new(config);
    let full = [
        "Prompt P1",
        "r1 Failed unreached",
        "@1 Woken",
        "r2 Failed ContextFull",
        "r3 End",
    ];
    play(&mut world, &full);
    let said = act(&mut world, "r4 Failed unreached");
    assert!(said.iter().any(|word| word.starts_with("RY ")), "{said:?}");
}

#[test]
fn each_snapshot_has_an_id_of_its_own() {
    let mut world = world(
        "(snapshots=1)",
        &["Prompt P1", "r1 Call write#n1", "r1 Call write#n2"],
    );
    let mut ids = Vec::new();
    let mut note = |effects: Vec<Effect>| {
        ids.extend(effects.iter().filter_map(|effect| match effect {
            Effect::Snapshot { checkpoint, .. } => Some(checkpoint.0),
            _ => None,
        }));
    };
    note(outputs(&mut world, model(1, ModelChunk::Finish("stop"))).1);
    note(outputs(&mut world, model(1, ModelChunk::End)).1);
    let done = |call: u64, update: ToolUpdate| Input::Tool {
        call: CallId(call),
        update,
    };
    let taken = ToolUpdate::Snapshotted {
        files: Vec::new(),
        sequence: 1,
    };
    note(outputs(&mut world, done(1, taken)).1);
    let ended = ToolUpdate::Done {
        outcome: ToolOutcome::Ok,
        content: Vec::new(),
        show: None,
    };
    note(outputs(&mut world, done(1, ended)).1);
    assert_eq!(ids, [1, 2]);
}

#[test]
fn every_hook_behind_a_call_is_asked_before_it_ends() {
    let mut config = config();
    config.hooks = vec![hook(HookPoint::PostTool), hook(HookPoint::PostTool)];
    let mut world = World::new(config);
    world.command(Command::Prompt(prompt(1, Deliver::IfIdle)));
    play(
        &mut world,
        &["r1 Call read#n1", "r1 Finish, End", "Tool c1 ok"],
    );
    let first = act(&mut world, "Hook h1 note");
    assert_eq!(first, ["!RunHook h2 PostTool c1"]);
    let second = act(&mut world, "Hook h2 note");
    assert_eq!(second[0], "TF c1 ok");
}
