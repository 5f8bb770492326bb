//! Commands, prompts, turns, requests and messages.

use super::*;

#[test]
fn whole_streams_are_clean() {
    clean(&turn());
    clean(&with(&turn(), 20, &[closed()])[..21]);
    clean(&with_calls(
        &[1, 2],
        &[tool_started(1, 5), run_tool(1), tool_ended(1), skipped(2)],
    ));
}

#[test]
fn s_05_a_command_is_replied_to_once() {
    broken(
        &with(&turn(), 2, &[refused(1)]),
        Breach::RepliedTwice(CommandId(1)),
    );
    broken(&[refused(7)], Breach::RepliedUnasked(CommandId(7)));
}

#[test]
fn s_06_s_55_nothing_after_closed() {
    clean(&[closed()]);
    broken(&[closed(), Says(What::Settled)], Breach::AfterClosed);
    broken(&[closed(), start_model(1)], Breach::AfterClosed);
    assert!(run(Scope::Any, &[closed(), closed()]).contains(&Breach::ClosedTwice));
}

#[test]
fn s_07_no_reply_is_owed_when_closed() {
    let barrier = C(9, Command::Barrier);
    clean(&[barrier.clone(), replied(9, Answer::Done), Quiet, closed()]);
    clean(&[Quiet, barrier.clone(), closed()]);
    broken(
        &[barrier, Quiet, closed()],
        Breach::NeverReplied(CommandId(9)),
    );
}

#[test]
fn s_07_a_withdrawal_is_replied_to_before_the_prompt_ends() {
    let stream = [
        C(1, prompt(1, Deliver::Queue(Rank::Next))),
        replied(1, Answer::Admitted(Admitted::Queued(Lane::Next))),
        queued(1, Lane::Next),
        C(2, Command::Withdraw(PromptId(1))),
        replied(2, Answer::Withdrawn(true)),
        prompt_ended(1, End::Withdrawn),
    ];
    clean(&stream);
    broken(
        &swapped(&stream, 4, 5),
        Breach::WithdrawnTooEarly(PromptId(1)),
    );
}

#[test]
fn s_10_a_prompt_ends_once_and_only_if_admitted() {
    broken(
        &with(&turn(), 20, &[prompt_ended(1, finished())]),
        Breach::EndedTwice(PromptId(1)),
    );
    broken(
        &[prompt_ended(4, finished())],
        Breach::NotAdmitted(PromptId(4)),
    );
    let mut refused_prompt = turn();
    refused_prompt[1] = refused(1);
    broken(&refused_prompt, Breach::NotAdmitted(PromptId(1)));
    let again = [
        C(2, prompt(1, Deliver::IfIdle)),
        replied(2, Answer::Admitted(Admitted::Duplicate)),
        Quiet,
    ];
    clean(&join(&[&turn(), &again]));
    let twice = [
        C(2, prompt(1, Deliver::IfIdle)),
        replied(2, Answer::Admitted(Admitted::Started)),
    ];
    broken(
        &join(&[&turn(), &twice]),
        Breach::AdmittedAgain(PromptId(1)),
    );
}

#[test]
fn s_10_every_admitted_prompt_has_ended_when_closed() {
    let stream = [
        C(1, prompt(1, Deliver::IfIdle)),
        replied(1, Answer::Admitted(Admitted::Started)),
        Quiet,
    ];
    broken(
        &join(&[&stream, &[closed()]]),
        Breach::NeverEnded(PromptId(1)),
    );
    clean(&join(&[
        &stream,
        &[prompt_ended(1, End::Dropped(DropWhy::Closed)), closed()],
    ]));
}

#[test]
fn s_11_a_prompt_is_applied_once_right_before_its_message() {
    broken(
        &without(&turn(), 5),
        Breach::AppliedWithoutMessage(PromptId(1)),
    );
    broken(
        &with(&turn(), 6, &[applied(1, Some(1)), said(1)]),
        Breach::AppliedTwice(PromptId(1)),
    );
    broken(
        &with(&turn()[..6], 5, &[Quiet]),
        Breach::AppliedWithoutMessage(PromptId(1)),
    );
    broken(
        &join(&[&turn(), &[applied(1, None)]]),
        Breach::AppliedTwice(PromptId(1)),
    );
}

#[test]
fn s_11_with_a_turn_inside_its_step_without_one_outside() {
    let late = |at| {
        let more = [
            C(2, prompt(2, Deliver::FollowUp)),
            replied(2, Answer::Admitted(Admitted::Started)),
        ];
        with(
            &turn(),
            at,
            &join(&[&more, &[applied(2, Some(1)), said(2)]]),
        )
    };
    assert!(!run(Scope::Session, &late(6)).contains(&Breach::AppliedOutsideStep(PromptId(2))));
    broken(&late(8), Breach::AppliedOutsideStep(PromptId(2)));
    broken(&late(3), Breach::AppliedOutsideStep(PromptId(2)));
    let context = [
        C(2, prompt(2, Deliver::Context)),
        replied(2, Answer::Admitted(Admitted::Local)),
        applied(2, None),
        said(2),
        prompt_ended(2, End::Local),
    ];
    clean(&join(&[&turn(), &context]));
    broken(
        &with(&turn(), 8, &context),
        Breach::AppliedInsideTurn(PromptId(2)),
    );
}

#[test]
fn s_12_turns_steps_and_attempts_nest_one_at_a_time() {
    broken(
        &with(&turn(), 8, &[turn_started(2)]),
        Breach::Overlap(Thing::Turn),
    );
    broken(
        &with(&turn(), 8, &[step_started(2, 2)]),
        Breach::Overlap(Thing::Step),
    );
    broken(
        &with(&turn(), 8, &[request_started(2, 2)]),
        Breach::Overlap(Thing::Request),
    );
    broken(&[step_started(1, 1)], Breach::NotInside(Thing::Step));
    broken(&[request_started(1, 1)], Breach::NotInside(Thing::Request));
    let mut numbered = turn();
    numbered[3] = step_started(1, 2);
    broken(&numbered, Breach::WrongNumber(Thing::Step));
    let mut attempt = turn();
    attempt[6] = request_started(1, 2);
    broken(&attempt, Breach::WrongNumber(Thing::Request));
}

#[test]
fn s_13_nothing_of_a_turn_is_open_at_its_end_or_follows_it() {
    broken(&without(&turn(), 16), Breach::StillOpen(Thing::Step));
    broken(&swapped(&turn(), 15, 16), Breach::StillOpen(Thing::Request));
    broken(
        &[turn_ended(1, finished())],
        Breach::EndWithoutStart(Thing::Turn),
    );
    broken(
        &with(&turn(), 17, &[step_ended(1)]),
        Breach::EndWithoutStart(Thing::Step),
    );
    broken(
        &with(&turn(), 18, &[Says(What::Settled)])[..19],
        Breach::PromptEndMissing(PromptId(1)),
    );
    broken(
        &with(&turn(), 18, &[delta(5, 0, "x")])[..19],
        Breach::PromptEndMissing(PromptId(1)),
    );
    broken(
        &with(&turn()[..18], 18, &[Quiet]),
        Breach::PromptEndMissing(PromptId(1)),
    );
    let compacting = Says(What::CompactionStarted {
        trigger: Trigger::Auto,
        span: None,
        tokens: None,
    });
    broken(
        &with(&turn(), 17, &[compacting]),
        Breach::StillOpen(Thing::Compaction),
    );
    let question = Says(What::Asked {
        ask: AskId(1),
        body: Ask::Uri {
            op: UriOp::Read,
            uri: Text::from("x"),
            body: None,
        },
    });
    broken(
        &with(&turn(), 17, &[question]),
        Breach::StillOpen(Thing::Question),
    );
}

#[test]
fn s_15_settled_only_when_nothing_runs_or_waits() {
    broken(
        &with(&turn(), 8, &[Says(What::Settled)]),
        Breach::SettledWhile(Thing::Turn),
    );
    broken(
        &join(&[&turn(), &[Says(What::Settled)]]),
        Breach::SettledTwice,
    );
    let waiting = [
        C(2, prompt(2, Deliver::FollowUp)),
        replied(2, Answer::Admitted(Admitted::Queued(Lane::FollowUp))),
    ];
    broken(
        &with(&turn(), 8, &waiting),
        Breach::SettledWhile(Thing::Prompt),
    );
}

#[test]
fn s_16_a_prompt_ends_with_its_turn() {
    let mut differs = turn();
    differs[18] = prompt_ended(1, End::MaxSteps);
    broken(&differs, Breach::EndDiffers(PromptId(1)));
    let mut dropped = join(&[&opening(), &closing()]);
    dropped.truncate(8);
    dropped.push(prompt_ended(1, End::Withdrawn));
    broken(&dropped, Breach::DroppedThoughApplied(PromptId(1)));
}

#[test]
fn s_17_a_cancel_is_never_reported_as_success() {
    let stream = |end: &End, outcome| {
        let cancel = [
            cancel(2),
            cancelling(2, 1),
            Does(Effect::StopModel(RequestId(1))),
        ];
        join(&[
            &opening(),
            &cancel,
            &[request_ended(1, outcome)],
            &over(end),
        ])
    };
    clean(&stream(&cancelled(), RequestOutcome::Cancelled));
    broken(
        &stream(&finished(), RequestOutcome::Cancelled),
        Breach::NotCancelled(TurnId(1)),
    );
    broken(
        &stream(&cancelled(), complete()),
        Breach::SuccessAfterCancel(TurnId(1)),
    );
    broken(
        &[cancel(2), cancelling(2, 1)],
        Breach::NotCancelled(TurnId(1)),
    );
}

#[test]
fn s_18_a_steer_beats_a_finish() {
    let steer = |deliver| {
        let queue = [
            C(2, prompt(2, deliver)),
            replied(2, Answer::Admitted(Admitted::Queued(Lane::Steer))),
        ];
        with(
            &turn()[..19],
            8,
            &join(&[&queue, &[queued(2, Lane::Steer)]]),
        )
    };
    broken(
        &steer(Deliver::Steer {
            idle: IdleSteer::Start,
        }),
        Breach::FinishedOverSteer(PromptId(2)),
    );
    clean(&steer(Deliver::Context));
}

#[test]
fn s_20_no_retry_after_shown_text_in_our_own_session() {
    let shown = |kind| {
        let piece = What::Delta {
            message: MessageId(5),
            block: 0,
            kind,
            text: Text::from("x"),
        };
        [
            message_started(5),
            block_started(5, 0),
            Says(piece),
            message_ended(5, false, vec![]),
        ]
    };
    clean(&retried(&shown(Kind::Thinking), &[retry_ended(true)]));
    let text = retried(&shown(Kind::Text), &[retry_ended(true)]);
    broken(&text, Breach::RetryAfterText(StepId(1)));
    assert_eq!(run(Scope::Any, &text), [], "a foreign agent may retract");
}

#[test]
fn s_21_deltas_lie_in_their_open_block() {
    broken(&without(&turn(), 8), Breach::NotOpen(MessageId(5)));
    broken(&without(&turn(), 9), Breach::NotOpen(MessageId(5)));
    broken(
        &with(&turn(), 13, &[delta(5, 0, "x")]),
        Breach::NotOpen(MessageId(5)),
    );
    broken(
        &with(&turn(), 10, &[delta(5, 0, "")]),
        Breach::EmptyDelta(MessageId(5)),
    );
    broken(
        &with(&turn(), 9, &[message_started(6)]),
        Breach::Overlap(Thing::Message),
    );
    broken(
        &with(&turn(), 15, &[message_ended(5, true, vec![])]),
        Breach::EndWithoutStart(Thing::Message),
    );
    broken(
        &swapped(&turn(), 14, 15),
        Breach::RequestEndedFirst(RequestId(1)),
    );
    broken(
        &with(&turn(), 10, &[block_started(5, 0)]),
        Breach::Overlap(Thing::Block),
    );
}

#[test]
fn s_22_deltas_add_up_to_the_block() {
    let less = without(&turn(), 11);
    broken(&less, Breach::DeltasDiffer(MessageId(5)));
    assert_eq!(run(Scope::Any, &less), []);
}

#[test]
fn s_24_a_retried_request_has_one_end_of_retry() {
    clean(&retried(&[], &[retry_ended(true)]));
    broken(&retried(&[], &[]), Breach::RetryOpen);
    broken(
        &retried(&[], &[retry_ended(true), retry_ended(true)]),
        Breach::RetryWithout,
    );
    broken(&retried(&[], &[retry_ended(false)]), Breach::RetryWithout);
    broken(
        &with(&turn(), 16, &[retry_ended(true)]),
        Breach::RetryWithout,
    );
}

#[test]
fn s_59_a_compaction_stands_between_requests() {
    let started = Says(What::CompactionStarted {
        trigger: Trigger::Auto,
        span: None,
        tokens: None,
    });
    let ended = Says(What::CompactionEnded {
        result: Err(CompactionFault::Cancelled),
    });
    let both = [started.clone(), ended.clone()];
    clean(&with(&turn(), 3, &both));
    broken(
        &with(&turn(), 8, &both),
        Breach::CompactionInside(Thing::Request),
    );
    broken(&[ended], Breach::EndWithoutStart(Thing::Compaction));
    broken(
        &[started.clone(), started],
        Breach::Overlap(Thing::Compaction),
    );
}

#[test]
fn l6_events_never_go_back_in_time() {
    let mut checker = Checker::new(Scope::Any);
    for mono_us in [5, 5, 4] {
        let at = Now {
            mono_us,
            unix_ms: 0,
        };
        let what = What::Notice {
            level: Level::Info,
            code: None,
            text: Text::from("n"),
        };
        checker.event(&Event {
            at,
            run: RunId::MAIN,
            seen: Seen::Real,
            what,
        });
    }
    let found: Vec<_> = checker.violations().to_vec();
    assert_eq!(
        found,
        [Violation {
            output: 3,
            breach: Breach::TimeWentBack
        }]
    );
}

#[test]
fn l8_an_id_names_one_thing() {
    let second = [
        turn_started(1),
        turn_ended(1, End::Blocked(Text::from("b"))),
        Says(What::Settled),
    ];
    broken(&join(&[&turn(), &second]), Breach::IdReused(Thing::Turn));
}

#[test]
fn a_violation_names_its_law() {
    let violation = Violation {
        output: 3,
        breach: Breach::EndedTwice(PromptId(1)),
    };
    assert_eq!(violation.breach.law(), "S-10");
    assert!(alloc::format!("{violation}").starts_with("output 3: S-10: a prompt ended twice"));
}
