//! The invariants of a session, by id, over random stories.
//!
//! Most of them are judged by the checker of the neutral stream or by the driver's watch,
//! which look on in every story; a test here tells the stories that its invariant is about
//! and takes only what breaks it. Invariants that neither can see are judged here.
#![allow(
    missing_docs,
    clippy::wildcard_enum_match_arm,
    clippy::panic,
    clippy::expect_used
)]

use crate::session_kit;

use std::collections::{BTreeMap, BTreeSet};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use session_kit::{START, Story, cases, judged, plain, reloading, session, stories, tell, world};
use turnwire::{
    session::{
        Session,
        config::{Parallel, PromptHook, Snapshots},
    },
    vocab::{
        laws::{Checker, Scope},
        *,
    },
};
use turnwire_proptests::{
    laws::{AgentMachine, Machine},
    script::{Action, Ending, Mix, Piece, Tool, finish, quiesce, scripts, send},
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

/// Invariants that the watchers judge in every story.
macro_rules! watched {
    ($($name:ident $id:literal $mix:ident,)*) => {
        proptest! {
            #![proptest_config(cases(40))]
            $(
                #[test]
                fn $name(story in stories(Mix::$mix, 50)) {
                    let world = tell(&story);
                    let broken: Vec<_> =
                        world.problems().into_iter().filter(|problem| problem.contains($id)).collect();
                    hold!(world, broken.is_empty(), "{:?}", broken);
                }
            )*
        }
    };
}

watched! {
    s_03_an_effect_is_live_then_stopped_or_settled "S-03" CANCELS,
    s_04_nothing_that_a_peer_does_is_misuse "S-04" ALL,
    s_05_a_command_is_replied_to_once "S-05" ALL,
    s_06_nothing_after_closed "S-06" CLOSES,
    s_07_a_reply_comes_first "S-07" QUEUES,
    s_10_a_prompt_ends_once "S-10" QUEUES,
    s_11_a_prompt_is_applied_once_before_its_message "S-11" QUEUES,
    s_12_turns_steps_and_attempts_nest "S-12" ALL,
    s_13_nothing_of_a_turn_is_open_at_its_end "S-13" CANCELS,
    s_15_settled_when_nothing_is_left "S-15" QUEUES,
    s_16_a_prompt_ends_with_its_turn "S-16" QUEUES,
    s_17_a_cancel_is_the_end "S-17" CANCELS,
    s_18_a_steer_beats_a_finish "S-18" QUEUES,
    s_20_no_retry_after_shown_text "S-20" RETRIES,
    s_21_messages_and_deltas_nest "S-21" RETRIES,
    s_22_deltas_add_up "S-22" RETRIES,
    s_23_no_call_of_a_broken_reply_starts "S-23" CALLS,
    s_24_a_retry_has_one_end "S-24" RETRIES,
    s_25_no_attempt_before_its_deadline "S-25" RETRIES,
    s_26_one_live_request "S-26" RETRIES,
    s_30_each_call_has_one_end "S-30" CALLS,
    s_31_the_model_sees_every_call_paired "S-31" CALLS,
    s_32_each_question_is_closed_once "S-32" CALLS,
    s_35_an_effect_is_started_once "S-35" CALLS,
    s_37_a_call_is_decided_once "S-37" CALLS,
    s_46_after_a_wake_the_deadline_is_later "L4" RETRIES,
    s_50_a_cancel_waits_for_one_write_at_most "S-50" CANCELS,
    s_54_no_steer_waits_while_a_turn_is_held "S-54" CALLS,
    s_55_a_close_closes "S-55" CLOSES,
    s_56_no_turn_begins_by_itself_while_closing "S-56" CLOSES,
    s_57_a_job_begins_and_ends_once "S-57" CALLS,
    s_59_nothing_is_parted_by_a_compaction "S-59" COMPACTIONS,
    s_65_an_event_stands_before_its_effect "S-65" ALL,
    no_phase_waits_for_nothing "dead-lock" ALL,
    every_live_effect_has_a_body "has no body" ALL,
}

proptest! {
    #![proptest_config(cases(64))]

    /// Timers fire in their order before a late input, as if each had been woken for.
    #[test]
    fn s_02_a_late_driver_changes_nothing(story in stories(Mix::RETRIES, 50)) {
        let world = tell(&story);
        let shape = |said: &[Said]| -> Vec<String> {
            said.iter().filter(|said| !matches!(said, Said::Delta { .. })).map(kind).collect()
        };
        // The same inputs to a driver that never wakes at all.
        let mut late = session(story.config.clone());
        let mut said = Vec::new();
        for (input, now) in world.given.iter().filter(|(input, _)| !matches!(input, Given::Else(Input::Woken))) {
            // What depends on the exact time of a wake isn't comparable: a deadline that an input meets at
            // its very tick, and everything that is armed from a late moment.
            if late.handle(input.input(), *now).is_err() {
                return Ok(());
            }
            while let Some(output) = late.poll_output() {
                said.push(Said::from(&output));
            }
        }
        let woken = world.given.iter().any(|(input, _)| matches!(input, Given::Else(Input::Woken)));
        if !woken {
            prop_assert_eq!(shape(&said), shape(&world.said));
        }
    }

    #[test]
    fn s_14_after_a_turn_no_prompt_is_busy_because_of_it(story in stories(Mix::QUEUES, 50)) {
        let world = tell(&story);
        let mut open = false;
        // Outside any turn, and keeps the session busy too.
        let mut by_hand = false;
        for what in whats(&world) {
            match what {
                What::TurnStarted { .. } => open = true,
                What::TurnEnded { .. } => open = false,
                What::CompactionStarted { trigger, .. } => by_hand = *trigger == Trigger::Manual,
                What::CompactionEnded { .. } => by_hand = false,
                What::Replied { reply: Err(Refusal::Busy), .. } => hold!(world, open || by_hand, "busy, and no turn is open"),
                _ => {}
            }
        }
    }

    #[test]
    fn s_57_a_shell_command_has_one_reply_and_one_message(story in stories(Mix::COMMANDS, 60)) {
        let world = tell(&story);
        let mut open = BTreeSet::new();
        let (mut replied, mut told) = (0, 0);
        for said in &world.said {
            if let Said::Effect(_, Effect::RunShell(command)) = said {
                hold!(world, open.insert(*command), "{command:?} began twice");
            }
            match said.what() {
                Some(What::Replied { command, reply: Ok(Answer::Shell { .. }) }) => {
                    replied += 1;
                    hold!(world, open.remove(command), "{command:?} did not run");
                }
                Some(What::Message(message)) if message.role == Role::Shell => told += 1,
                _ => {}
            }
        }
        hold!(world, told <= replied, "{told} messages, {replied} replies");
        if world.closed() {
            hold!(world, open.is_empty() && told == replied, "{open:?}: {told} messages, {replied} replies");
        }
    }

    #[test]
    fn s_19_a_context_prompt_causes_nothing(count in 1usize..6, in_turn: bool) {
        let mut world = world(plain());
        if in_turn {
            let prompt = world.prompt("go", Deliver::IfIdle);
            world.command(Command::Prompt(prompt));
        }
        for _ in 0..count {
            let prompt = world.prompt("by the way", Deliver::Context);
            world.command(Command::Prompt(prompt));
        }
        quiesce(&mut world, Ending::Willing);
        let turns = whats(&world).filter(|what| matches!(what, What::TurnStarted { .. })).count();
        let steps = whats(&world).filter(|what| matches!(what, What::StepStarted { .. })).count();
        hold!(world, (turns, steps) == (usize::from(in_turn), usize::from(in_turn)), "{} {}", turns, steps);
        let local = whats(&world).filter(|what| matches!(what, What::PromptEnded { end: End::Local, .. })).count();
        hold!(world, local == count, "{}", local);
        hold!(world, world.problems().is_empty(), "{:?}", world.problems());
    }

    #[test]
    fn s_33_questions_and_calls_stay_within_their_limits(story in stories(Mix::CALLS, 60)) {
        let world = tell(&story);
        let (asks, tools) = (story.config.policy.asks_at_once.max(1) as usize, story.config.limits.running_tools);
        let mut open = BTreeSet::new();
        let mut running: BTreeMap<CallId, bool> = BTreeMap::new();
        let mut safe = BTreeMap::new();
        for said in &world.said {
            match said.what() {
                Some(What::ToolStarted { call, name, .. }) => {
                    let spec = Tool::specs().into_iter().find(|spec| spec.name == *name);
                    safe.insert(*call, spec.is_some_and(|spec| story.config.policy.parallel.is_safe(&spec)));
                }
                Some(What::Asked { ask, body }) if body.is_permission() => { open.insert(*ask); }
                Some(What::AskClosed { ask, .. }) => { open.remove(ask); }
                Some(What::ToolEnded { call, .. }) => { running.remove(call); }
                _ => {}
            }
            match said {
                Said::Effect(_, Effect::RunTool { call }) => { running.insert(*call, safe[call]); }
                Said::Effect(_, Effect::StopTool(call)) => { running.remove(call); }
                _ => {}
            }
            hold!(world, open.len() <= asks, "{} questions open", open.len());
            // An outcome that waits for its turn to be said no longer runs.
            if story.config.policy.tool_end_order == turnwire::session::config::ToolEndOrder::Finish {
                hold!(world, running.len() <= tools, "{} calls run", running.len());
                let alone = running.values().any(|safe| !safe);
                hold!(world, !alone || running.len() == 1, "{:?} overlap", running);
            }
        }
    }

    #[test]
    fn s_34_a_denied_call_never_runs(story in stories(Mix::CALLS, 60)) {
        let world = tell(&story);
        let mut denied = BTreeSet::new();
        for said in &world.said {
            if let Some(What::ToolStarted { call, name, .. }) = said.what()
                && &**name == Tool::Denied.name()
            {
                denied.insert(*call);
            }
            if let Said::Effect(_, Effect::RunTool { call }) = said {
                hold!(world, !denied.contains(call), "{} runs against a rule", said);
            }
        }
    }

    #[test]
    fn a_call_that_writes_runs_only_once_its_files_are_put_aside(
        mut story in stories(Mix::CALLS, 60),
        early in any::<bool>(),
    ) {
        story.config.policy.snapshots = if early { Snapshots::BeforeGate } else { Snapshots::BeforeRun };
        let world = tell(&story);
        let (mut writes, mut aside) = (BTreeSet::new(), BTreeSet::new());
        for said in &world.said {
            match said.what() {
                Some(What::ToolStarted { call, name, .. }) if &**name == Tool::Write.name() => {
                    writes.insert(*call);
                }
                Some(What::Checkpoint { call, .. }) => { aside.insert(*call); }
                _ => {}
            }
            if let Said::Effect(_, Effect::RunTool { call }) = said {
                let safe = !writes.contains(call) || aside.contains(call);
                hold!(world, safe, "{} though its files weren't put aside", said);
            }
        }
    }

    #[test]
    fn no_call_runs_while_files_are_put_back(
        mut story in stories(Mix { commands: 60, ..Mix::ALL }, 60),
    ) {
        story.config.policy.snapshots = Snapshots::BeforeRun;
        let world = tell(&story);
        let mut restoring = None;
        for said in &world.said {
            match said {
                Said::Effect(_, Effect::Restore(command)) => restoring = Some(*command),
                Said::Effect(_, Effect::RunTool { .. }) => {
                    hold!(world, restoring.is_none(), "{} while {:?} puts files back", said, restoring);
                }
                said => if let Some(What::Replied { command, .. }) = said.what()
                    && restoring == Some(*command) {
                    restoring = None;
                },
            }
        }
    }

    #[test]
    fn s_36_mode_auto_asks_nothing(mut story in stories(Mix::CALLS, 60)) {
        story.config.policy.auto_silences_ask = true;
        let world = tell(&story);
        let mut mode = None;
        for what in whats(&world) {
            match what {
                What::Opened(info) | What::Changed(info) => mode = Some(info.settings.approvals.clone()),
                What::Asked { body, .. } => {
                    let asked = body.is_permission() && mode == Some(ApprovalMode::Auto);
                    hold!(world, !asked, "asked in mode auto");
                }
                _ => {}
            }
        }
        let mut always = story.clone();
        always.config.settings.approvals = ApprovalMode::Auto;
        always.script.retain(|action| !matches!(action, Action::Set(Setting::Approvals(_))));
        let world = tell(&always);
        let permission = |what: &What| matches!(what, What::Asked { body, .. } if body.is_permission());
        hold!(world, !whats(&world).any(permission), "asked in mode auto");
    }

    #[test]
    fn s_40_s_41_a_hook_decides_once_and_a_refusal_is_durable_first(story in stories(Mix::HOOKS, 60)) {
        let world = tell(&judged(story, HookPoint::TurnEnd));
        let (mut settled, mut writes) = (BTreeSet::new(), BTreeSet::new());
        let mut stored = false;
        for moment in world.story() {
            match moment {
                Moment::In(Given::Else(Input::Hook { hook, .. }), _) => {
                    hold!(world, settled.insert(*hook), "{:?} settled twice", hook);
                }
                Moment::In(Given::Else(Input::Store { write, ok }), _) => {
                    stored |= ok.is_ok() && writes.contains(write);
                }
                Moment::Out(Said::Effect(_, Effect::Store(write))) => { writes.insert(*write); }
                Moment::Out(said) => match said.what() {
                    Some(What::CompletionRefused { .. }) => {
                        hold!(world, stored, "{} before its write", said);
                        stored = false;
                    }
                    Some(What::StepStarted { .. }) => stored = false,
                    _ => {}
                },
                Moment::In(..) => {}
            }
        }
    }

    /// Held by the world itself; here the configuration is often read anew beside a hook that is at it.
    #[test]
    fn s_40_a_prompt_is_admitted_only_when_its_hooks_have_decided(
        story in stories(Mix { commands: 60, ..Mix::HOOKS }, 60),
    ) {
        let mut story = reloading(judged(story, HookPoint::PromptSubmit));
        story.config.policy.prompt_hook = PromptHook::AtSubmit;
        let world = tell(&story);
        hold!(world, world.faults.is_empty(), "{:?}", world.faults);
    }

    /// Whatever a turn goes on with, it waits for a model or a tool before each step and each attempt: one input never
    /// makes two of either.
    #[test]
    fn s_01_one_input_takes_a_turn_to_the_next_thing_it_waits_for(story in stories(Mix::ALL, 60)) {
        let world = tell(&story);
        let mut machine = AgentMachine(session(story.config.clone()));
        while machine.poll().is_some() {}
        for (given, now) in &world.given {
            // To a late driver several deadlines are several inputs (S-02).
            let late = machine.due().is_some_and(|due| due.at_us < now.mono_us);
            prop_assert_eq!(machine.handle(given, *now), Ok(()));
            let due = machine.due();
            let said: Vec<_> = std::iter::from_fn(|| machine.poll()).collect();
            let count = |which: fn(&What) -> bool| said.iter().filter(|said| said.what().is_some_and(which)).count();
            let steps = count(|what| matches!(what, What::StepStarted { .. }));
            let attempts = count(|what| matches!(what, What::RequestStarted { .. }));
            hold!(world, late || steps <= 1 && attempts <= 1, "{steps} steps and {attempts} attempts by {given:?}");
            // It was handled whole: to take out what it said does nothing more.
            hold!(world, said.is_empty() == due.is_none_or(|due| due.at_us > now.mono_us), "{due:?} after {given:?}");
        }
    }

    /// The failure that ended the last attempt of a turn is the one in the turn's end; and a stream without its notices
    /// is as lawful, and has the same ends.
    #[test]
    fn s_68_what_ended_a_turn_is_in_its_end_and_a_notice_ends_nothing(story in stories(Mix::RETRIES, 60)) {
        let world = tell(&story);
        let mut last = None;
        for what in whats(&world) {
            match what {
                What::RequestStarted { .. } | What::TurnStarted { .. } => last = None,
                What::RequestEnded { outcome: RequestOutcome::Failed(why), .. } => last = Some(why.clone()),
                What::TurnEnded { end: End::Failed(why) | End::Truncated(why), .. } => {
                    if let Some(last) = &last {
                        hold!(world, last == why, "{last:?} became {why:?}");
                    }
                }
                _ => {}
            }
        }
        let mut checker = Checker::new(Scope::Session);
        for moment in world.story() {
            match moment {
                Moment::In(given, _) => checker.input(&given.input()),
                Moment::Out(said) if matches!(said.what(), Some(What::Notice { .. })) => {}
                Moment::Out(said) => checker.output(&said.lend()),
            }
        }
        let fresh: Vec<_> = checker.violations().iter().map(ToString::to_string).collect();
        let known: Vec<_> = world.violations().iter().map(ToString::to_string).collect();
        hold!(world, fresh == known, "{fresh:?}");
    }

    #[test]
    fn s_45_in_idle_nothing_but_a_close_has_a_deadline(story in stories(Mix::ALL, 40)) {
        let mut world = world(story.config.clone());
        let script: Vec<_> = story.script.into_iter().filter(|action| !matches!(action, Action::Close(_))).collect();
        for action in &script {
            turnwire_proptests::script::act(&mut world, action);
            let idle = world.mirror.turn().is_none()
                && world.mirror.questions().is_empty()
                && world.mirror.compacting().is_none()
                && !world.owes_admission();
            let due = world.agent.poll_timeout();
            hold!(world, !idle || due.is_none(), "idle, and due {:?}", due);
        }
    }

    #[test]
    fn s_51_a_second_cancel_hits_nothing(story in stories(Mix::ALL, 40)) {
        let mut world = world(story.config.clone());
        turnwire_proptests::script::play(&mut world, &story.script);
        let cancel = || Command::Cancel { what: CancelWhat::Turn { queue: QueueFate::Keep }, why: CancelWhy::Host };
        let first = world.command(cancel()).expect("a cancel passes");
        let turn = world.reply(first).and_then(|reply| reply.as_ref().ok()?.cancelled_turn());
        let from = world.said.len();
        let closed = world.closed();
        let second = world.command(cancel()).expect("a cancel passes");
        if closed {
            return Ok(());
        }
        let reply = world.reply(second);
        let hit = match reply {
            Some(Ok(Answer::Cancelling { hit, .. })) => *hit,
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        };
        hold!(world, turn.is_none_or(|turn| hit != Hit::Turn(turn)), "{:?} was hit twice", turn);
        hold!(world, hit != Hit::Nothing || world.said.len() == from + 1, "it said more than its reply");
    }

    #[test]
    fn s_52_a_cancel_changes_no_later_prompt(script in scripts(Mix::CALLS, 30)) {
        let mut world = world(plain());
        turnwire_proptests::script::play(&mut world, &script);
        world.command(Command::Cancel { what: CancelWhat::Everything, why: CancelWhy::Host });
        if world.closed() || !world.faults.is_empty() {
            return Ok(());
        }
        let prompt = world.prompt("later", Deliver::Queue(Rank::Next));
        let id = prompt.id;
        world.command(Command::Prompt(prompt));
        quiesce(&mut world, Ending::Willing);
        let end = whats(&world).find_map(|what| match what {
            What::PromptEnded { prompt, end } if *prompt == id => Some(end.clone()),
            _ => None,
        });
        hold!(world, end.as_ref().is_some_and(End::is_finished), "{:?}", end);
    }

    /// By hand between two turns, at a boundary between two steps, or behind an attempt that was too full; and
    /// after one that was cancelled or failed none is tried at a boundary of the same turn.
    #[test]
    fn s_59_a_compaction_has_its_place(story in stories(Mix::COMPACTIONS, 60)) {
        let world = tell(&story);
        let (mut turn, mut step, mut full, mut given_up) = (false, false, false, false);
        for what in whats(&world) {
            match what {
                What::TurnStarted { .. } => (turn, given_up) = (true, false),
                What::TurnEnded { .. } => turn = false,
                What::StepStarted { .. } => step = true,
                What::StepEnded { .. } => step = false,
                What::RequestEnded { outcome, .. } => {
                    full = matches!(outcome, RequestOutcome::Failed(why) if why.kind == FailureKind::ContextFull);
                }
                What::CompactionStarted { trigger, .. } => match trigger {
                    Trigger::Manual => hold!(world, !turn, "by hand, in a turn"),
                    Trigger::Auto => hold!(world, turn && !step && !given_up, "not at a boundary, or again"),
                    Trigger::Overflow => {
                        hold!(world, step && full, "nothing was too full");
                        full = false;
                    }
                },
                What::CompactionEnded { result } => given_up |= result.is_err(),
                _ => {}
            }
        }
        let tail = world.mirror.history().iter().skip(1);
        hold!(world, tail.clone().all(|message| message.role != Role::Summary), "a summary of what is kept");
    }

    #[test]
    fn s_62_what_is_wanted_changes_only_by_handle_and_poll(chunks in 1usize..400, us in 0u64..1_000_000) {
        let mut agent = session(plain());
        let prompt = Prompt {
            id: PromptId(1), tag: None, content: vec![Block::Text(Text::from("go"))],
            deliver: Deliver::IfIdle, literal: false, details: None,
        };
        let call = Call { id: CommandId(1), command: Command::Prompt(prompt) };
        prop_assert_eq!(agent.handle(Input::Call(call), START), Ok(()));
        for _ in 0..chunks {
            let chunk = Chunk::Text("x".repeat(1000));
            if !agent.wants_bulk() {
                break;
            }
            prop_assert_eq!(agent.handle(Given::Model(RequestId(1), chunk).input(), START), Ok(()));
        }
        let wants = (agent.wants_bulk(), agent.wants_input());
        let later = Now { mono_us: START.mono_us + us, ..START };
        prop_assert_eq!(agent.handle(Input::Woken, later), Ok(()));
        prop_assert_eq!((agent.wants_bulk(), agent.wants_input()), wants);
    }
}

/// An output without its ids, times and texts.
fn kind(said: &Said) -> String {
    let text = format!("{said}");
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '!')
        .unwrap_or(text.len());
    text.get(..end).unwrap_or_default().to_owned()
}

/// What random stories must reach, or passing them says little.
#[test]
fn stories_reach_every_corner() {
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut cancelled_in: BTreeMap<&str, u32> = BTreeMap::new();
    let mixes = [
        Mix::ALL,
        Mix::RETRIES,
        Mix::CALLS,
        Mix::QUEUES,
        Mix::CANCELS,
        Mix::CLOSES,
        Mix::HOOKS,
        Mix::COMPACTIONS,
    ];
    for (n, mix) in mixes.into_iter().enumerate() {
        for _ in 0..120 {
            let story = stories(mix, 60)
                .new_tree(&mut runner)
                .expect("a story")
                .current();
            let story = match n {
                2 => judged(story, HookPoint::Permission),
                6 => judged(story, HookPoint::TurnEnd),
                _ => story,
            };
            let Story {
                config,
                script,
                ending,
                drain,
            } = story;
            let mut world = world(config);
            for action in &script {
                if let (Action::Cancel(CancelWhat::Turn { .. }), Some(phase)) =
                    (action, phase(&world))
                {
                    *cancelled_in.entry(phase).or_default() += 1;
                }
                turnwire_proptests::script::act(&mut world, action);
            }
            finish(&mut world, ending, drain);
            for said in &world.said {
                *seen.entry(kind(said)).or_default() += 1;
                for (word, holds) in corners(said) {
                    if holds {
                        *seen.entry(word.to_owned()).or_default() += 1;
                    }
                }
            }
        }
    }
    let events = [
        "Queued",
        "PromptApplied",
        "PromptEnded",
        "TurnStarted",
        "TurnEnded",
        "Settled",
        "StepEnded",
        "RequestEnded",
        "RetryScheduled",
        "RetryEnded",
        "MessageStarted",
        "BlockStarted",
        "BlockEnded",
        "MessageEnded",
        "Message",
        "ToolStarted",
        "Decided",
        "ToolProgress",
        "ToolEnded",
        "ToolSkipped",
        "FileChanged",
        "Checkpoint",
        "Asked",
        "AskClosed",
        "HookFailed",
        "CompletionRefused",
        "Notice",
        "Changed",
        "Closed",
        "!StopModel",
        "!StopTool",
        "!StopHook",
        "!Snapshot",
        "!RunHook",
        "!Store",
        "!Reload",
    ];
    let corners = [
        "end truncated",
        "end max steps",
        "end unverified",
        "end blocked",
        "end cancelled",
        "end failed",
        "end dropped",
        "end withdrawn",
        "end local",
        "preempted",
        "denied",
        "timed out",
        "invalid",
        "not found",
        "ended the turn",
        "retry won",
        "retry lost",
        "void message",
        "refused busy",
        "refused full",
        "question timed out",
        "question answered by hook",
        "question cancelled",
        "compacted by hand",
        "compacted at a boundary",
        "compacted on overflow",
        "a summary and a kept part",
        "a summary alone",
        "compaction cancelled",
        "compaction failed",
        "nothing to compact",
        "end yielded",
    ];
    let missing: Vec<_> = events
        .iter()
        .chain(&corners)
        .filter(|word| !seen.contains_key(**word))
        .collect();
    assert!(missing.is_empty(), "never seen: {missing:?} of {seen:?}");
    let phases = [
        "saving or hooks",
        "requesting",
        "streaming",
        "backoff",
        "tools",
        "asking",
        "compacting",
        "compacting by hand",
    ];
    let missing: Vec<_> = phases
        .iter()
        .filter(|phase| !cancelled_in.contains_key(**phase))
        .collect();
    assert!(missing.is_empty(), "never cancelled in {missing:?}");
}

fn phase(world: &World<Session>) -> Option<&'static str> {
    let Some(turn) = world.mirror.turn() else {
        return world.mirror.compacting().map(|_| "compacting by hand");
    };
    Some(if world.mirror.compacting().is_some() {
        "compacting"
    } else if turn.message.is_some() {
        "streaming"
    } else if turn.request.is_some() {
        "requesting"
    } else if turn.retry.is_some() {
        "backoff"
    } else if !world.mirror.questions().is_empty() {
        "asking"
    } else if !world.mirror.calls().is_empty() {
        "tools"
    } else {
        "saving or hooks"
    })
}

fn corners(said: &Said) -> Vec<(&'static str, bool)> {
    let end = |end: &End| {
        vec![
            ("end truncated", matches!(end, End::Truncated(_))),
            ("end max steps", *end == End::MaxSteps),
            ("end unverified", *end == End::Unverified),
            ("end blocked", matches!(end, End::Blocked(_))),
            ("end cancelled", end.is_cancelled()),
            ("end failed", matches!(end, End::Failed(_))),
            ("end dropped", matches!(end, End::Dropped(_))),
            ("end withdrawn", *end == End::Withdrawn),
            ("end local", *end == End::Local),
            ("end yielded", matches!(end, End::Yielded { .. })),
            (
                "preempted",
                matches!(end, End::Cancelled(CancelWhy::Preempted(_))),
            ),
        ]
    };
    match said.what() {
        Some(What::PromptEnded { end: how, .. }) => end(how),
        Some(What::ToolEnded { outcome, .. }) => vec![
            ("denied", matches!(outcome, ToolOutcome::Denied(_))),
            ("timed out", *outcome == ToolOutcome::TimedOut),
            ("invalid", *outcome == ToolOutcome::Invalid),
            ("not found", *outcome == ToolOutcome::NotFound),
            ("ended the turn", *outcome == ToolOutcome::EndedTurn),
        ],
        Some(What::CompactionStarted { trigger, .. }) => vec![
            ("compacted by hand", *trigger == Trigger::Manual),
            ("compacted at a boundary", *trigger == Trigger::Auto),
            ("compacted on overflow", *trigger == Trigger::Overflow),
        ],
        Some(What::CompactionEnded { result }) => vec![
            (
                "a summary and a kept part",
                matches!(result, Ok(done) if done.keep_from.is_some()),
            ),
            (
                "a summary alone",
                matches!(result, Ok(done) if done.keep_from.is_none()),
            ),
            (
                "compaction cancelled",
                matches!(result, Err(CompactionFault::Cancelled)),
            ),
            (
                "compaction failed",
                matches!(result, Err(CompactionFault::Failed(_))),
            ),
            (
                "nothing to compact",
                matches!(result, Err(CompactionFault::Nothing(_))),
            ),
        ],
        Some(What::RetryEnded { ok, .. }) => vec![("retry won", *ok), ("retry lost", !ok)],
        Some(What::MessageEnded { kept, .. }) => vec![("void message", !kept)],
        Some(What::Replied {
            reply: Err(refusal),
            ..
        }) => {
            vec![
                ("refused busy", *refusal == Refusal::Busy),
                ("refused full", *refusal == Refusal::Full),
            ]
        }
        Some(What::AskClosed { how, .. }) => vec![
            ("question timed out", *how == AskClose::TimedOut),
            ("question cancelled", *how == AskClose::Cancelled),
            (
                "question answered by hook",
                matches!(
                    how,
                    AskClose::Answered {
                        by: Decider::Hook(_),
                        ..
                    }
                ),
            ),
        ],
        _ => vec![],
    }
}

/// One call of each kind, side by side: the limit of one holds them back.
#[test]
fn s_33_calls_wait_for_a_free_place() {
    let mut config = plain();
    config.policy.parallel = Parallel::All;
    config.limits.running_tools = 2;
    config.settings.approvals = ApprovalMode::Auto;
    let mut world = world(config);
    let prompt = world.prompt("go", Deliver::IfIdle);
    world.command(Command::Prompt(prompt));
    for piece in [
        Piece::Call(Tool::Read),
        Piece::Call(Tool::Write),
        Piece::Call(Tool::Read),
        Piece::Finish,
        Piece::End,
    ] {
        send(&mut world, RequestId(1), &piece);
    }
    assert_eq!(world.work.len(), 2);
    world.give(Given::tool_done(CallId(2), ToolOutcome::Ok, "done"));
    assert_eq!(
        world.work.len(),
        2,
        "the third began when the second was done"
    );
    assert_eq!(world.problems(), Vec::<String>::new());
}
