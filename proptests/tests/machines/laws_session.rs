//! The laws of every machine (L2 – L9), for the session.
//!
//! L1 (cut) and L10 (inverse) are about bytes: they hold for framing, JSON, model APIs and
//! protocols, and are tested there. What a session owes to L1 is that it doesn't matter how a
//! model's text is cut.
#![allow(missing_docs, clippy::wildcard_enum_match_arm, clippy::panic)]

use std::cell::Cell;

use crate::session_kit;

use proptest::prelude::*;
use session_kit::{cases, plain, session, stories, tell, world};
use turnwire::{
    session::{Session, SessionConfig},
    vocab::*,
};
use turnwire_proptests::{
    laws::{AgentMachine, law_l2, law_l3, law_l5, law_l6, law_l8},
    script::{Ending, Mix, Piece, Tool, quiesce, send},
    world::{Chunk, Given, Moment, Said, World},
};

/// Fresh sessions, as the laws take them.
fn machine(config: &SessionConfig) -> impl Fn() -> AgentMachine<Session> {
    || AgentMachine(session(config.clone()))
}

/// What a message comes to, without ids.
fn replies(world: &World<Session>) -> Vec<(Vec<Block>, Stop)> {
    let ended = |said: &Said| match said.what() {
        Some(What::MessageEnded { message, stop, .. }) => Some((
            message
                .content
                .iter()
                .map(|block| (**block).clone())
                .collect(),
            stop.clone(),
        )),
        _ => None,
    };
    world.said.iter().filter_map(ended).collect()
}

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn l1_it_does_not_matter_how_text_is_cut(
        texts in prop::collection::vec(("[a-zé]{1,12}", any::<bool>()), 1..6),
        args in "[a-z]{0,8}",
        cuts in prop::collection::vec(0usize..12, 0..8),
    ) {
        let tell = |cut: bool| {
            let mut world = world(plain());
            let prompt = world.prompt("go", Deliver::IfIdle);
            world.command(Command::Prompt(prompt));
            let request = RequestId(1);
            let mut cuts = cuts.iter().cycle().copied();
            let mut pieces = |text: &str| -> Vec<String> {
                let at = cuts.next().unwrap_or(0).min(text.len());
                match text.split_at_checked(at).filter(|_| cut) {
                    Some((head, tail)) => vec![head.into(), tail.into()],
                    None => vec![text.into()],
                }
            };
            for (text, thinking) in &texts {
                for piece in pieces(text) {
                    send(&mut world, request, &if *thinking { Piece::Thinking(piece) } else { Piece::Text(piece) });
                }
            }
            world.give(Given::Model(request, Chunk::CallBegin { index: 0, id: None, name: "read".into() }));
            for text in pieces(&format!("{{\"path\":\"{args}\"}}")) {
                world.give(Given::Model(request, Chunk::CallArgs { index: 0, text }));
            }
            world.give(Given::Model(request, Chunk::CallEnd { index: 0 }));
            send(&mut world, request, &Piece::Finish);
            send(&mut world, request, &Piece::End);
            quiesce(&mut world, Ending::Willing);
            assert_eq!(world.problems(), Vec::<String>::new());
            replies(&world)
        };
        prop_assert_eq!(tell(true), tell(false));
    }

    #[test]
    fn l2_s_66_events_and_effects_are_one_queue_however_late_it_is_drained(story in stories(Mix::ALL, 60), every in 2usize..9) {
        let world = tell(&story);
        prop_assert_eq!(law_l2(machine(&story.config), &world.given, every), Ok(()));
    }

    #[test]
    fn l3_a_driver_that_wakes_more_often_gains_nothing(story in stories(Mix::RETRIES, 50)) {
        let world = tell(&story);
        prop_assert_eq!(law_l3(machine(&story.config), &world.given), Ok(()));
    }

    #[test]
    fn l4_time_alone_brings_every_story_to_rest(story in stories(Mix::ALL, 50)) {
        // `World` watches each wake; a deadline that never moves would also never come to rest.
        let world = tell(&session_kit::Story { ending: Ending::Silent, ..story });
        let spins: Vec<_> =
            world.problems().into_iter().filter(|p| p.contains("L4") || p.contains("rest") || p.contains("L3")).collect();
        prop_assert_eq!(spins, Vec::<String>::new());
    }

    #[test]
    fn l5_replay(story in stories(Mix::ALL, 60)) {
        let world = tell(&story);
        prop_assert_eq!(law_l5(machine(&story.config), &world.given), Ok(()));
    }

    #[test]
    fn l6_time_that_goes_back_is_misuse_and_changes_nothing(story in stories(Mix::ALL, 50)) {
        let world = tell(&story);
        prop_assert_eq!(law_l6(machine(&story.config), &world.given), Ok(()));
    }

    /// Time isn't measured here; what can be counted is how much one input may say.
    #[test]
    fn l7_one_input_says_a_bounded_number_of_things(story in stories(Mix::ALL, 60)) {
        let world = tell(&story);
        let mut open = world.prompts.len();
        let mut run = 0usize;
        for moment in world.story() {
            match moment {
                Moment::In(given, _) => {
                    run = 0;
                    if let Given::Model(_, Chunk::CallBegin { .. }) = given {
                        open += 1;
                    }
                }
                Moment::Out(_) => run += 1,
            }
            prop_assert!(run <= 60 + 12 * open, "{} outputs for one input\n{}", run, world.transcript());
        }
    }

    #[test]
    fn l8_settled_once(story in stories(Mix::CANCELS, 60)) {
        // The script settles effects twice and answers closed questions; `World` knows what is right.
        let world = tell(&story);
        let wrong: Vec<_> =
            world.problems().into_iter().filter(|p| p.contains("L8") || p.contains("S-04")).collect();
        prop_assert_eq!(wrong, Vec::<String>::new());
    }

    #[test]
    fn l9_what_was_never_issued_is_misuse_and_changes_nothing(story in stories(Mix::ALL, 40)) {
        let world = tell(&story);
        let far = 1 << 40;
        let foreign = [
            Given::Model(RequestId(far), Chunk::End),
            Given::Model(RequestId(far), Chunk::Text("x".into())),
            Given::Model(RequestId(0), Chunk::End),
            Given::tool_done(CallId(far), ToolOutcome::Ok, "x"),
            Given::tool(CallId(far), ToolUpdate::Progress(Progress::Alive)),
            Given::tool(CallId(far), ToolUpdate::Snapshotted { files: vec![], sequence: 1 }),
            Given::Else(Input::Hook { hook: HookId(far), outcome: Ok(HookReply::pass()) }),
            Given::Else(Input::Store { write: WriteId(far), ok: Ok(()) }),
            Given::Else(Input::Shell {
                command: CommandId(far),
                outcome: ToolUpdate::Done { outcome: ToolOutcome::Ok, content: vec![], show: None },
            }),
            Given::Else(Input::Job { job: JobId(far), update: JobUpdate::Ended(JobState::Interrupted) }),
            Given::Else(Input::Opened { command: CommandId(far), other: Err(OpenFault::Missing) }),
            Given::Else(Input::Reloaded { command: CommandId(far), outcome: Err(Text::from("no")) }),
            Given::Else(Input::Restored { command: CommandId(far), outcome: Err(Text::from("no")) }),
        ];
        let count = Cell::new(0);
        let wrong = |_: &Given| {
            let one = &foreign[count.replace(count.get() + 1) % foreign.len()];
            vec![(one.clone(), Misuse::NeverIssued)]
        };
        prop_assert_eq!(law_l8(machine(&story.config), &world.given, wrong), Ok(()));
    }

    #[test]
    fn l9_nothing_that_a_model_sends_is_misuse(pieces in prop::collection::vec(odd_pieces(), 0..40)) {
        let mut world = world(plain());
        let prompt = world.prompt("go", Deliver::IfIdle);
        world.command(Command::Prompt(prompt));
        for piece in &pieces {
            let request = world.work.keys().find_map(|id| match id {
                turnwire::vocab::laws::EffectId::Model(request) => Some(*request),
                _ => None,
            });
            match request {
                Some(request) => send(&mut world, request, piece),
                None => break,
            }
        }
        quiesce(&mut world, Ending::Unwilling);
        prop_assert!(world.problems().is_empty(), "{:#?}\n{}", world.problems(), world.transcript());
    }
}

fn odd_pieces() -> impl Strategy<Value = Piece> {
    prop_oneof![
        8 => any::<u8>().prop_map(Piece::Odd),
        1 => Just(Piece::Finish),
        1 => Just(Piece::Text("text".into())),
        1 => Just(Piece::Thinking(String::new())),
        1 => Just(Piece::Call(Tool::Broken)),
        1 => Just(Piece::HalfCall),
    ]
}
