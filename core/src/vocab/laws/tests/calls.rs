//! Calls, questions, effects, jobs and runs.

use super::*;

#[test]
fn s_23_a_call_never_begins_without_a_completion_signal() {
    let mut stream = with_calls(&[1], &[skipped(1)]);
    let at = 13;
    stream[at] = request_ended(1, RequestOutcome::Truncated);
    clean(&stream);
    stream.splice(at + 1..at + 2, [tool_started(1, 5), tool_ended(1)]);
    broken(&stream, Breach::StartedIncomplete(CallId(1)));
}

#[test]
fn s_26_one_live_request() {
    let stream = retried(&[], &[retry_ended(true)]);
    broken(&without(&stream, 8), Breach::TwoRequests(RequestId(2)));
}

#[test]
fn s_30_each_call_has_one_end() {
    let begun = [tool_started(1, 5), tool_ended(1)];
    clean(&with_calls(&[1], &begun));
    broken(&with_calls(&[1], &[]), Breach::CallNeverEnded(CallId(1)));
    broken(
        &with_calls(&[1], &begun[..1]),
        Breach::CallNeverEnded(CallId(1)),
    );
    broken(
        &with_calls(&[1], &join(&[&begun, &[tool_ended(1)]])),
        Breach::CallEndedTwice(CallId(1)),
    );
    broken(
        &with_calls(&[1], &[tool_ended(1)]),
        Breach::CallEndedTwice(CallId(1)),
    );
    broken(
        &with_calls(&[1], &[begun[0].clone(), skipped(1)]),
        Breach::SkippedThoughBegun(CallId(1)),
    );
    broken(
        &with_calls(&[1], &[skipped(1), skipped(1)]),
        Breach::SkippedThoughBegun(CallId(1)),
    );
    broken(&with_calls(&[], &begun), Breach::Unlisted(CallId(1)));
    broken(&with_calls(&[], &[skipped(1)]), Breach::Unlisted(CallId(1)));
}

#[test]
fn s_30_calls_begin_in_order() {
    let both = [
        tool_started(1, 5),
        tool_started(2, 5),
        tool_ended(2),
        tool_ended(1),
    ];
    clean(&with_calls(&[1, 2], &both));
    broken(
        &with_calls(&[1, 2], &swapped(&both, 0, 1)),
        Breach::CallsOutOfOrder(CallId(1)),
    );
}

/// A call that is asked about.
fn gated() -> Vec<Entry> {
    vec![
        tool_started(1, 5),
        Says(asked(1, 1)),
        Says(ask_closed(1, true)),
        decided(1, true),
        run_tool(1),
        tool_ended(1),
    ]
}

#[test]
fn s_32_a_question_is_closed_once_before_its_call_is_decided() {
    clean(&with_calls(&[1], &gated()));
    broken(
        &with_calls(&[1], &with(&gated(), 3, &[Says(ask_closed(1, true))])),
        Breach::ClosedUnasked(AskId(1)),
    );
    broken(
        &with_calls(&[1], &with(&gated(), 2, &[Says(asked(1, 1))])),
        Breach::AskedTwice(AskId(1)),
    );
    broken(
        &with_calls(&[1], &swapped(&gated(), 2, 3)),
        Breach::DecidedWhileAsked(CallId(1)),
    );
    broken(
        &with_calls(&[1], &without(&gated(), 3)),
        Breach::RanUndecided(CallId(1)),
    );
    let question = Says(What::Asked {
        ask: AskId(3),
        body: permission(8),
    });
    broken(&[question, closed()], Breach::AskNeverClosed(AskId(3)));
}

#[test]
fn s_34_what_was_denied_never_runs() {
    let mut stream = gated();
    stream[2] = Says(ask_closed(1, false));
    stream[3] = decided(1, false);
    broken(&with_calls(&[1], &stream), Breach::RanDenied(CallId(1)));
    clean(&with_calls(&[1], &without(&stream, 4)));
}

#[test]
fn tw_06_only_an_allow_allows() {
    let mut stream = gated();
    stream[2] = Says(What::AskClosed {
        ask: AskId(1),
        how: AskClose::Fault(Text::from("bad")),
    });
    broken(
        &with_calls(&[1], &stream),
        Breach::AllowedAgainst(CallId(1)),
    );
}

#[test]
fn s_35_an_effect_is_started_once() {
    let twice = with_calls(&[1], &with(&gated(), 5, &[run_tool(1)]));
    broken(&twice, Breach::RanTwice(EffectId::Tool(CallId(1))));
    let hook = Does(Effect::RunHook { hook: HookId(1) });
    clean(&[hook.clone(), Does(Effect::StopHook(HookId(1)))]);
    broken(
        &[hook.clone(), hook],
        Breach::RanTwice(EffectId::Hook(HookId(1))),
    );
}

#[test]
fn s_37_a_call_is_decided_once_before_its_end() {
    broken(
        &with_calls(&[1], &with(&gated(), 4, &[decided(1, true)])),
        Breach::DecidedTwice(CallId(1)),
    );
    broken(
        &with_calls(&[1], &swapped(&gated()[..4], 0, 3)),
        Breach::DecidedOutside(CallId(1)),
    );
    let undecided = [
        tool_started(1, 5),
        Says(asked(1, 1)),
        Says(ask_closed(1, false)),
        tool_ended(1),
    ];
    broken(
        &with_calls(&[1], &undecided),
        Breach::NeverDecided(CallId(1)),
    );
}

#[test]
fn s_03_only_what_runs_is_stopped() {
    let stop = Does(Effect::StopModel(RequestId(1)));
    broken(
        core::slice::from_ref(&stop),
        Breach::StoppedUnstarted(EffectId::Model(RequestId(1))),
    );
    let mut twice = opening();
    twice.extend([stop.clone(), stop]);
    broken(
        &twice,
        Breach::StoppedUnstarted(EffectId::Model(RequestId(1))),
    );
}

#[test]
fn s_03_only_what_runs_goes_on_as_a_job() {
    let detach = Does(Effect::DetachTool(CallId(1)));
    broken(&[detach], Breach::DetachedUnstarted(CallId(1)));
}

#[test]
fn s_50_questions_are_closed_before_a_cancel_is_replied_to() {
    let rest = |closed_first: bool| {
        let close = Says(What::AskClosed {
            ask: AskId(1),
            how: AskClose::Cancelled,
        });
        let reply = cancelling(2, 1);
        let (first, second) = if closed_first {
            (close, reply)
        } else {
            (reply, close)
        };
        let middle = [
            tool_started(1, 5),
            Says(asked(1, 1)),
            cancel(2),
            first,
            second,
            decided(1, false),
            tool_ended(1),
        ];
        join(&[&opening(), &calls(&[1]), &middle, &over(&cancelled())])
    };
    clean(&rest(true));
    broken(&rest(false), Breach::AskedWhenCancelled(AskId(1)));
    assert_eq!(run(Scope::Any, &rest(false)), []);
}

#[test]
fn s_57_nothing_of_a_job_follows_its_end() {
    let job = |step| {
        Says(What::Job(
            step,
            Box::new(JobRecord {
                job: JobId(1),
                id: Text::from("j"),
                generation: Text::from("g"),
                revision: 1,
                kind: JobKind::Shell,
                call: None,
                command: Text::from("c"),
                description: None,
                cwd: None,
                state: JobState::Running,
                finite: true,
                times_ms: [None; 4],
                output: None,
                faults: [None, None, None],
            }),
        ))
    };
    clean(&[job(JobStep::Started), job(JobStep::Ended)]);
    broken(
        &[
            job(JobStep::Started),
            job(JobStep::Ended),
            job(JobStep::Ended),
        ],
        Breach::JobAfterEnd(JobId(1)),
    );
    for early in [JobStep::Updated, JobStep::Ended] {
        broken(&[job(early)], Breach::JobOutOfOrder(JobId(1)));
    }
    let twice = [job(JobStep::Started), job(JobStep::Started)];
    broken(&twice, Breach::JobOutOfOrder(JobId(1)));
    // A foreign agent needn't tell of a job's beginning.
    assert_eq!(run(Scope::Any, &[job(JobStep::Ended)]), []);
    let why = CloseWhy::Drained;
    let unended = [job(JobStep::Started), Says(What::Closed { why })];
    broken(&unended, Breach::JobNeverEnded(JobId(1)));
}

#[test]
fn s_56_nothing_begins_by_itself_while_closing() {
    let begins = |cause| {
        Says(What::TurnStarted {
            turn: TurnId(1),
            cause,
        })
    };
    let closing = [
        C(1, Command::Close { drain: true }),
        replied(1, Answer::Done),
    ];
    for cause in [Cause::Job, Cause::Goal] {
        let stream = join(&[&closing, &[begins(cause)]]);
        broken(&stream, Breach::StartedWhileClosing(TurnId(1)));
        assert_eq!(run(Scope::Any, &stream), []);
    }
    clean(&join(&[&closing, &[begins(Cause::Queue)]]));
    clean(&[begins(Cause::Job)]);
}

#[test]
fn s_65_an_event_stands_before_its_effect() {
    broken(
        &swapped(&turn(), 6, 7),
        Breach::StartedUnsaid(EffectId::Model(RequestId(1))),
    );
    broken(
        &with_calls(&[1], &swapped(&gated(), 0, 4)),
        Breach::StartedUnsaid(EffectId::Tool(CallId(1))),
    );
}

#[test]
fn s_69_a_nested_run_ends_with_no_question_open() {
    let (started, ended) = nested();
    let (ask, close) = (Nested(3, asked(1, 9)), Nested(3, ask_closed(1, true)));
    clean(&[started.clone(), ask.clone(), close, ended.clone()]);
    broken(
        &[started.clone(), ask, ended.clone()],
        Breach::NestedAskOpen(AskId(1)),
    );
    broken(&[ended], Breach::EndWithoutStart(Thing::Run));
    broken(&[started.clone(), started], Breach::Overlap(Thing::Run));
}

/// The brackets of a nested run.
fn nested() -> (Entry, Entry) {
    let started = Says(What::RunStarted {
        run: RunId(3),
        kind: RunKind::Task(Text::from("t")),
        label: Text::from("t"),
        call: None,
    });
    let ended = Says(What::RunEnded {
        run: RunId(3),
        status: RunStatus::Completed,
        steps: 1,
        usage: None,
        detail: Text::from(""),
    });
    (started, ended)
}

#[test]
fn s_57_what_a_run_says_lies_between_its_beginning_and_its_end() {
    let (started, ended) = nested();
    let said = Nested(
        3,
        What::StepStarted {
            step: StepId(1),
            number: 1,
        },
    );
    clean(&[started.clone(), said.clone(), ended.clone()]);
    broken(core::slice::from_ref(&said), Breach::OutsideRun(RunId(3)));
    broken(
        &[started.clone(), ended, said.clone()],
        Breach::OutsideRun(RunId(3)),
    );
    assert_eq!(run(Scope::Any, &[said]), []);
    let why = CloseWhy::Drained;
    broken(
        &[started, Says(What::Closed { why })],
        Breach::RunNeverEnded(RunId(3)),
    );
}

#[test]
fn s_65_a_run_begins_behind_its_event() {
    let (started, _) = nested();
    let begin = Does(Effect::StartRun {
        run: RunId(3),
        call: CallId(1),
        kind: RunKind::Task(Text::from("t")),
        input: RawJson(Text::from("{}")),
    });
    clean(&[started.clone(), begin.clone()]);
    broken(
        &[begin, started],
        Breach::StartedUnsaid(EffectId::Run(RunId(3))),
    );
}
