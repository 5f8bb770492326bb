//! TW-01 … TW-10: what a session guarantees whatever the protocol, each said again in the
//! plainest words and held against random stories, apart from the checker of the stream.
#![allow(
    missing_docs,
    clippy::wildcard_enum_match_arm,
    clippy::panic,
    clippy::expect_used
)]

use crate::session_kit;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use session_kit::{START, cases, plain, session, stories, tell, world};
use turnwire::{
    session::{Session, config::PromptHook},
    vocab::*,
};
use turnwire_proptests::{
    script::{Ending, Mix, Tool, play, quiesce},
    world::{Chunk, Given, Moment, Said, World},
};

fn whats(world: &World<Session>) -> impl Iterator<Item = &What> {
    world.said.iter().filter_map(Said::what)
}

/// Fails with the whole story.
macro_rules! hold {
    ($world:expr, $holds:expr, $($why:tt)*) => {
        prop_assert!($holds, "{}\n{}", format!($($why)*), $world.transcript())
    };
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn tw_01_every_admitted_prompt_ends_once(story in stories(Mix::QUEUES, 60)) {
        let world = tell(&story);
        let mut admitted = BTreeSet::new();
        let mut asked = BTreeMap::new();
        for (given, _) in &world.given {
            if let Given::Call(Call { id, command: Command::Prompt(prompt) }) = given {
                asked.insert(*id, prompt.id);
            }
        }
        let mut ends: BTreeMap<PromptId, u32> = BTreeMap::new();
        for what in whats(&world) {
            match what {
                What::Replied { command, reply: Ok(Answer::Admitted(how)) } if *how != Admitted::Duplicate => {
                    admitted.insert(asked[command]);
                }
                // One of the session's own, for a job or the goal: nobody asked for it.
                What::Queued { prompt, .. } | What::PromptApplied { prompt, .. }
                    if !asked.values().any(|id| id == prompt) =>
                {
                    admitted.insert(*prompt);
                }
                What::PromptEnded { prompt, .. } => *ends.entry(*prompt).or_default() += 1,
                _ => {}
            }
        }
        hold!(world, !world.closed() || ends.keys().eq(admitted.iter()), "admitted {:?}, ended {:?}", admitted, ends);
        hold!(world, ends.values().all(|n| *n == 1), "ended {:?}", ends);
    }

    #[test]
    fn tw_01_the_next_prompt_can_come_at_once(mut story in stories(Mix::ALL, 40)) {
        // Where hooks judge it first its reply waits for them.
        story.config.policy.prompt_hook = PromptHook::AtStart;
        let mut world = world(story.config.clone());
        let script: Vec<_> = story.script.iter()
            .filter(|action| !matches!(action, turnwire_proptests::script::Action::Close(_)))
            .cloned().collect();
        play(&mut world, &script);
        quiesce(&mut world, Ending::Willing);
        let prompt = world.prompt("next", Deliver::IfIdle);
        let id = world.command(Command::Prompt(prompt)).expect("commands are wanted");
        let reply = world.reply(id);
        hold!(world, matches!(reply, Some(Ok(Answer::Admitted(Admitted::Started)))), "{:?}", reply);
    }

    #[test]
    fn tw_02_nothing_of_a_turn_comes_after_its_end(story in stories(Mix::ALL, 60)) {
        let world = tell(&story);
        let mut open = false;
        for said in &world.said {
            match said.what() {
                Some(What::TurnStarted { .. }) => open = true,
                Some(What::TurnEnded { .. }) => open = false,
                Some(
                    What::StepStarted { .. } | What::StepEnded { .. } | What::RequestStarted { .. }
                    | What::RequestEnded { .. } | What::RetryScheduled { .. } | What::RetryEnded { .. }
                    | What::MessageStarted { .. } | What::BlockStarted { .. } | What::BlockEnded { .. }
                    | What::MessageEnded { .. } | What::ToolStarted { .. } | What::Decided { .. }
                    | What::ToolProgress { .. } | What::ToolEnded { .. } | What::ToolSkipped { .. }
                    | What::CompletionRefused { .. },
                ) => hold!(world, open, "{} outside a turn", said),
                _ => hold!(world, open || !matches!(said, Said::Delta { .. }), "{} outside a turn", said),
            }
        }
        hold!(world, !open || !world.closed(), "a turn is open");
    }

    #[test]
    fn tw_03_deltas_are_contiguous_and_one_end_ends_them(story in stories(Mix::RETRIES, 60)) {
        let world = tell(&story);
        let mut open: Option<(MessageId, u32)> = None;
        let mut ended = BTreeSet::new();
        for said in &world.said {
            match said {
                Said::Delta { message, block, kind, .. } => {
                    // A provider may send the arguments of several calls by turns.
                    let by_turns = *kind == Kind::Input;
                    hold!(world, open.is_some_and(|(id, last)| id == *message && (by_turns || last <= *block)), "{}", said);
                    open = open.map(|(id, last)| (id, last.max(*block)));
                }
                _ => match said.what() {
                    Some(What::MessageStarted { message, .. }) => {
                        hold!(world, open.is_none(), "{}", said);
                        open = Some((*message, 0));
                    }
                    Some(What::MessageEnded { message, .. }) => {
                        hold!(world, open.is_some_and(|(id, _)| id == message.id), "{}", said);
                        hold!(world, ended.insert(message.id), "{}", said);
                        open = None;
                    }
                    _ => {}
                },
            }
        }
        hold!(world, open.is_none() || !world.closed(), "{:?} is open", open);
    }

    #[test]
    fn tw_04_a_retry_never_follows_shown_text(story in stories(Mix::RETRIES, 60)) {
        let world = tell(&story);
        let mut shown = false;
        for said in &world.said {
            match said {
                Said::Delta { kind: Kind::Text, .. } => shown = true,
                _ => match said.what() {
                    Some(What::StepStarted { .. }) => shown = false,
                    Some(What::RetryScheduled { .. }) => hold!(world, !shown, "{}", said),
                    Some(What::RequestStarted { attempt, .. }) if *attempt > 1 => hold!(world, !shown, "{}", said),
                    _ => {}
                },
            }
        }
    }

    #[test]
    fn tw_05_every_call_that_starts_ends_and_only_whole_replies_run(story in stories(Mix::CALLS, 60)) {
        let world = tell(&story);
        let (mut started, mut ended) = (BTreeSet::new(), BTreeSet::new());
        // The calls of replies that had a completion signal.
        let (mut named, mut whole): (Vec<CallId>, BTreeSet<CallId>) = (Vec::new(), BTreeSet::new());
        for said in &world.said {
            match said.what() {
                Some(What::MessageStarted { .. }) => named.clear(),
                Some(What::MessageEnded { message, .. }) => named = message.calls().collect(),
                Some(What::RequestEnded { outcome: RequestOutcome::Complete { .. }, .. }) => {
                    whole.extend(named.drain(..));
                }
                Some(What::ToolStarted { call, .. }) => {
                    hold!(world, whole.contains(call), "{} of a reply that broke off", said);
                    hold!(world, started.insert(*call), "{} twice", said);
                }
                Some(What::ToolEnded { call, .. }) => hold!(world, ended.insert(*call), "{} twice", said),
                _ => {}
            }
            if let Said::Effect(_, Effect::RunTool { call }) = said {
                hold!(world, whole.contains(call) && started.contains(call), "{}", said);
            }
        }
        hold!(world, started == ended || !world.closed(), "started {:?}, ended {:?}", started, ended);
        // That the model sees every call paired with one result is checked at each request (S-31).
        hold!(world, world.problems().is_empty(), "{:?}", world.problems());
    }

    #[test]
    fn tw_06_errors_deny_and_only_an_allow_runs_what_was_asked(story in stories(Mix::CALLS, 60)) {
        let world = tell(&story);
        let (mut asked, mut allowed) = (BTreeMap::new(), BTreeSet::new());
        let mut closed = BTreeSet::new();
        for said in &world.said {
            match said.what() {
                Some(What::Asked { ask, body: Ask::Permission(body) }) => {
                    asked.insert(*ask, body.call.expect("a session asks about calls"));
                }
                Some(What::AskClosed { ask, how }) => {
                    hold!(world, closed.insert(*ask), "{} twice", said);
                    if let (AskClose::Answered { allow: Some(true), .. }, Some(call)) = (how, asked.get(ask)) {
                        allowed.insert(*call);
                    }
                }
                _ => {}
            }
            if let Said::Effect(_, Effect::RunTool { call }) = said {
                let was_asked = asked.values().any(|asked| asked == call);
                hold!(world, !was_asked || allowed.contains(call), "{} was not allowed", said);
            }
        }
    }

    #[test]
    fn tw_07_a_cancel_wins_and_is_never_a_success(story in stories(Mix::CANCELS, 60)) {
        let world = tell(&story);
        let mut cancelled = None;
        for said in &world.said {
            match said.what() {
                Some(What::Replied { reply: Ok(answer), .. }) => cancelled = answer.cancelled_turn().or(cancelled),
                Some(What::TurnEnded { turn, end, .. }) if cancelled == Some(*turn) => {
                    hold!(world, end.is_cancelled(), "{}", said);
                    cancelled = None;
                }
                Some(What::RequestEnded { outcome: RequestOutcome::Complete { .. }, .. }) => {
                    hold!(world, cancelled.is_none(), "{} after the reply to a cancel", said);
                }
                Some(What::StepStarted { .. } | What::RequestStarted { .. } | What::ToolStarted { .. }) => {
                    hold!(world, cancelled.is_none(), "{} after the reply to a cancel", said);
                }
                _ => {}
            }
        }
        hold!(world, cancelled.is_none() || !world.closed(), "{:?} never ended", cancelled);
    }

    #[test]
    fn tw_08_what_a_write_gates_waits_for_it(mut story in stories(Mix::ALL, 60), prompt: bool) {
        story.config.policy.gates.turn_end = true;
        story.config.policy.gates.prompt = prompt;
        story.config.policy.gates.mode = false;
        story.config.goals.stored = false;
        let world = tell(&story);
        let mut waits: Option<WriteId> = None;
        for moment in world.story() {
            match moment {
                Moment::In(Given::Else(Input::Store { write, .. }), _) if waits == Some(*write) => waits = None,
                Moment::In(..) => {}
                Moment::Out(Said::Effect(_, Effect::Store(write))) => waits = Some(*write),
                Moment::Out(said) => match said.what() {
                    Some(What::Notice { code: Some(code), .. }) if &**code == "store" => waits = None,
                    Some(What::TurnEnded { .. }) => hold!(world, waits.is_none(), "{} before {:?}", said, waits),
                    Some(What::StepStarted { .. }) if prompt => {
                        hold!(world, waits.is_none(), "{} before {:?}", said, waits);
                    }
                    _ => {}
                },
            }
        }
    }

    #[test]
    fn tw_09_bad_input_changes_nothing_but_its_own_report(mut story in stories(Mix::ALL, 50)) {
        story.config.limits.prompt_bytes = 1000;
        let world = tell(&story);
        let far = 1 << 40;
        let blank = |content| Command::Prompt(Prompt {
            id: PromptId(far), tag: None, content, deliver: Deliver::Queue(Rank::Next), literal: false, details: None,
        });
        let too_long = vec![Block::Text(Text::from("x".repeat(1001)))];
        let bad = [
            blank(vec![]),
            blank(vec![Block::Text(Text::from(" \n"))]),
            blank(too_long),
            Command::Withdraw(PromptId(far)),
            Command::Promote(PromptId(far)),
            Command::Reply { ask: AskId(far), reply: Ok(Reply::Allow { input: None, updates: vec![] }) },
            Command::Reply { ask: AskId(far), reply: Err(ReplyFault::HostGone) },
            Command::ReplyPart { ask: AskId(far), content: vec![] },
            Command::Session(SessionCommand::Branch(Text::from("far"))),
            Command::Rewind { to: RewindTo::Checkpoint(CheckpointId(far)), dry_run: false },
        ];
        let mut agent = session(story.config.clone());
        let mut said = Vec::new();
        let mut next = far;
        for (input, now) in &world.given {
            // A late driver's input fires the timers before it, whatever the input is.
            if agent.poll_timeout().is_none_or(|due| due.at_us >= now.mono_us) {
                let command = bad[usize::try_from(next).unwrap_or(0) % bad.len()].clone();
                next += 1;
                let call = Call { id: CommandId(next), command };
                prop_assert_eq!(agent.handle(Input::Call(call), *now), Ok(()));
            }
            prop_assert_eq!(agent.handle(input.input(), *now), Ok(()));
        }
        while let Some(output) = agent.poll_output() {
            let report = matches!(
                &output,
                Output::Event(Event { what: What::Replied { command, .. }, .. }) if command.0 > far
            );
            if !report {
                said.push(Said::from(&output));
            }
        }
        let differs = said.iter().zip(&world.said).find(|(a, b)| a != b);
        hold!(world, said.len() == world.said.len() && differs.is_none(), "{:#?}", differs);
    }

    #[test]
    fn tw_10_bulk_is_bounded_and_a_cancel_passes_it(size in 1usize..20_000, thinking: bool) {
        let config = plain();
        let limits = config.limits.clone();
        let mut agent = session(config);
        while agent.poll_output().is_some() {}
        let prompt = Prompt {
            id: PromptId(1), tag: None, content: vec![Block::Text(Text::from("go"))],
            deliver: Deliver::IfIdle, literal: false, details: None,
        };
        let call = |id, command| Input::Call(Call { id: CommandId(id), command });
        prop_assert_eq!(agent.handle(call(1, Command::Prompt(prompt)), START), Ok(()));
        while agent.poll_output().is_some() {}

        // Nobody takes anything out.
        let text = "x".repeat(size);
        let mut held = 0usize;
        let (mut unwanted_at, mut refused_at) = (None, None);
        for _ in 0..5_000_000 {
            let chunk = if thinking { Chunk::Thinking(text.clone()) } else { Chunk::Text(text.clone()) };
            if unwanted_at.is_none() && !agent.wants_bulk() {
                prop_assert!(agent.wants_input(), "bulk is held back first");
                unwanted_at = Some(held);
            }
            match agent.handle(Given::Model(RequestId(1), chunk).input(), START) {
                Ok(()) => held += size,
                Err(misuse) => {
                    prop_assert_eq!(misuse, Misuse::OverHardLimit);
                    refused_at = Some(held);
                    break;
                }
            }
        }
        let unwanted = unwanted_at.expect("bulk is refused in the end");
        let refused = refused_at.expect("bulk is misuse in the end");
        prop_assert!(unwanted <= limits.soft_bytes + size, "{} bytes before bulk was held back", unwanted);
        prop_assert!(refused <= limits.hard_bytes + size, "{} bytes before bulk was misuse", refused);

        // S-61: a stalled host doesn't stop a cancel.
        let cancel = Command::Cancel { what: CancelWhat::Everything, why: CancelWhy::Host };
        prop_assert_eq!(agent.handle(call(2, cancel), START), Ok(()));
        let mut ended = false;
        let mut out = 0usize;
        while let Some(output) = agent.poll_output() {
            out += match &output {
                Output::Delta(delta) => delta.text.len(),
                Output::Event(event) => {
                    ended |= matches!(&event.what, What::TurnEnded { end, .. } if end.is_cancelled());
                    0
                }
                Output::Effect { .. } => 0,
            };
        }
        prop_assert!(ended);
        prop_assert_eq!(out, refused, "nothing that was taken is lost");
        prop_assert!(agent.wants_bulk() && agent.wants_input());
    }
}

#[test]
fn tw_10_prompts_that_wait_are_bounded() {
    let mut config = plain();
    config.limits.queued_prompts = 5;
    let mut world = world(config);
    let mut full = 0;
    for _ in 0..20 {
        let prompt = world.prompt("go", Deliver::Queue(Rank::Next));
        let id = world
            .command(Command::Prompt(prompt))
            .expect("commands are wanted");
        full += usize::from(matches!(world.reply(id), Some(Err(Refusal::Full))));
    }
    assert_eq!(full, 20 - 1 - 5);
    assert_eq!(world.mirror.queue().len(), 5);
    assert_eq!(world.problems(), Vec::<String>::new());
}

#[test]
fn tw_10_a_reply_is_bounded() {
    let mut config = plain();
    config.limits.reply_bytes = 1000;
    config.limits.reply_calls = 2;
    for kind in 0..2 {
        let mut world = world(config.clone());
        let prompt = world.prompt("go", Deliver::IfIdle);
        world.command(Command::Prompt(prompt));
        for index in 0..50 {
            let chunk = match kind {
                0 => Chunk::Text("x".repeat(100)),
                _ => Chunk::CallBegin {
                    index,
                    id: None,
                    name: Tool::Read.name().into(),
                },
            };
            world.give(Given::Model(RequestId(1), chunk));
        }
        let ends: Vec<_> = whats(&world)
            .filter_map(|what| {
                if let What::TurnEnded { end, .. } = what {
                    Some(end.clone())
                } else {
                    None
                }
            })
            .collect();
        assert!(matches!(ends[..], [End::Truncated(_)]), "{ends:?}");
        assert_eq!(world.problems(), Vec::<String>::new());
    }
}
