//! Streams folded by hand.

use alloc::{boxed::Box, sync::Arc, vec, vec::Vec};

use super::*;

fn event(what: What) -> Event {
    Event {
        at: Now {
            mono_us: 5,
            unix_ms: 7,
        },
        run: RunId::MAIN,
        seen: Seen::Real,
        what,
    }
}

fn fold(whats: Vec<What>) -> Mirror {
    let mut mirror = Mirror::new();
    fold_into(&mut mirror, whats);
    mirror
}

fn fold_into(mirror: &mut Mirror, whats: Vec<What>) {
    for what in whats {
        mirror.apply(&event(what));
    }
}

fn message(id: u64, role: Role, content: Vec<Block>) -> Arc<Message> {
    Arc::new(Message {
        id: MessageId(id),
        role,
        content: content.into_iter().map(Arc::new).collect(),
        origin: Origin::Harness,
        prompt: None,
        about: None,
        at_ms: 0,
        details: None,
    })
}

fn call_block(call: u64) -> Block {
    Block::ToolUse {
        call: CallId(call),
        provider_id: None,
        name: Text::from("read"),
        input: ToolInput::Object(RawJson(Text::from("{}"))),
    }
}

fn reply(id: u64, content: Vec<Block>, kept: bool) -> What {
    What::MessageEnded {
        message: message(id, Role::Assistant, content),
        stop: Stop::End,
        kept,
        calls: CallList::Complete,
    }
}

fn tool_started(call: u64, message: u64) -> What {
    What::ToolStarted {
        call: CallId(call),
        provider_id: None,
        name: Text::from("read"),
        input: None,
        cause: ToolCause::Model {
            message: MessageId(message),
            block: 0,
        },
        side_effect: SideEffect::Read,
    }
}

fn tool_ended(call: u64, outcome: ToolOutcome) -> What {
    What::ToolEnded {
        call: CallId(call),
        outcome,
        content: vec![Block::Text(Text::from("out"))],
        show: None,
    }
}

/// Ids in order; results by the call they belong to.
fn shape(mirror: &Mirror) -> Vec<(u64, Option<(u64, bool)>)> {
    let pair = |m: &Arc<Message>| match &m.role {
        Role::Tool { call, error, .. } => (0, Some((call.0, *error))),
        Role::User
        | Role::Assistant
        | Role::Note
        | Role::Summary
        | Role::Shell
        | Role::Other(_) => (m.id.0, None),
    };
    mirror.history().iter().map(pair).collect()
}

fn info(history: Vec<Arc<Message>>) -> Box<SessionInfo> {
    let text = Text::from("x");
    Box::new(SessionInfo {
        session: text.clone(),
        name: None,
        file: None,
        generation: text.clone(),
        root: None,
        cwd: text.clone(),
        product: text.clone(),
        continued: false,
        history,
        summarised: vec![],
        model: ModelRef {
            provider: None,
            model: text,
        },
        api_model: None,
        efforts: vec![],
        settings: Box::new(Settings {
            approvals: ApprovalMode::Ask,
            thinking: None,
            steer_drain: Drain::All,
            follow_up_drain: Drain::All,
            interrupting: Interrupting::Wait,
            auto_retry: true,
            auto_compact: true,
        }),
        tools: vec![],
        briefing: Briefing::default(),
        mcp: vec![],
        commands: vec![],
        skills: vec![],
        media: vec![],
    })
}

#[test]
fn results_stand_behind_their_reply_in_call_order() {
    let mirror = fold(vec![
        What::Message(message(1, Role::User, vec![])),
        reply(2, vec![call_block(1), call_block(2), call_block(3)], true),
        tool_started(1, 2),
        tool_started(2, 2),
        tool_ended(2, ToolOutcome::Failed),
        What::Message(message(9, Role::Note, vec![])),
        tool_ended(1, ToolOutcome::Ok),
        What::ToolSkipped {
            call: CallId(3),
            why: SkipWhy::Cancelled,
        },
    ]);
    let results = [
        (0, Some((1, false))),
        (0, Some((2, true))),
        (0, Some((3, true))),
    ];
    assert_eq!(
        shape(&mirror),
        [&[(1, None), (2, None)], &results[..], &[(9, None)]].concat()
    );
    assert!(mirror.calls().is_empty());
    assert_eq!(mirror.totals().calls, 2);
}

#[test]
fn a_skipped_call_is_paired_with_an_error_result() {
    let mirror = fold(vec![
        reply(1, vec![call_block(4)], true),
        What::ToolSkipped {
            call: CallId(4),
            why: SkipWhy::Truncated,
        },
    ]);
    assert_eq!(shape(&mirror), [(1, None), (0, Some((4, true)))]);
    assert!(mirror.history()[1].text().contains("not run"));
    assert!(mirror.history()[1].id.is_made_up());
}

#[test]
fn a_result_said_by_the_agent_replaces_the_made_up_one() {
    let mut mirror = fold(vec![
        reply(1, vec![call_block(4)], true),
        tool_started(4, 1),
        tool_ended(4, ToolOutcome::Ok),
    ]);
    let role = Role::Tool {
        call: CallId(4),
        name: Text::from("read"),
        error: false,
    };
    fold_into(&mut mirror, vec![What::Message(message(7, role, vec![]))]);
    assert_eq!(mirror.history().len(), 2);
    assert_eq!(mirror.history()[1].id, MessageId(7));
}

#[test]
fn calls_that_a_reply_did_not_list_are_paired_too() {
    let mirror = fold(vec![
        reply(1, vec![], true),
        tool_started(4, 1),
        tool_ended(4, ToolOutcome::Ok),
    ]);
    assert_eq!(shape(&mirror), [(1, None), (0, Some((4, false)))]);
}

#[test]
fn a_call_of_a_tool_or_of_the_host_has_no_result_in_the_history() {
    let mut started = tool_started(5, 1);
    if let What::ToolStarted { cause, .. } = &mut started {
        *cause = ToolCause::Host;
    }
    let mirror = fold(vec![
        reply(1, vec![], true),
        started,
        tool_ended(5, ToolOutcome::Ok),
    ]);
    assert_eq!(mirror.history().len(), 1);
}

#[test]
fn a_retracted_reply_never_enters_the_history() {
    assert!(
        fold(vec![reply(1, vec![call_block(1)], false)])
            .history()
            .is_empty()
    );
}

#[test]
fn a_summary_takes_the_place_of_what_it_stands_for() {
    let three = || {
        (1..=3)
            .map(|id| What::Message(message(id, Role::User, vec![])))
            .collect::<Vec<_>>()
    };
    let compacted = |compacted| What::CompactionEnded {
        result: Ok(compacted),
    };
    let summary = Some(Text::from("sum"));

    let mut mirror = fold(three());
    let keep_from = Some(MessageId(3));
    fold_into(
        &mut mirror,
        vec![compacted(Compacted {
            summary: summary.clone(),
            keep_from,
            ..Default::default()
        })],
    );
    assert_eq!(shape(&mirror), [(u64::MAX, None), (3, None)]);
    assert_eq!(mirror.history()[0].role, Role::Summary);
    fold_into(
        &mut mirror,
        vec![What::Message(message(8, Role::Summary, vec![]))],
    );
    assert_eq!(shape(&mirror), [(8, None), (3, None)]);

    let mut all = fold(three());
    fold_into(
        &mut all,
        vec![compacted(Compacted {
            summary,
            ..Default::default()
        })],
    );
    assert_eq!(all.history().len(), 1);

    let mut unknown = fold(three());
    fold_into(&mut unknown, vec![compacted(Compacted::default())]);
    assert_eq!(unknown.history().len(), 3, "nothing said, nothing invented");

    let mut failed = fold(three());
    fold_into(
        &mut failed,
        vec![What::CompactionEnded {
            result: Err(CompactionFault::Cancelled),
        }],
    );
    assert_eq!(failed.history().len(), 3);
}

#[test]
fn queues_follow_prompts_from_lane_to_lane() {
    let queued = |prompt, lane| What::Queued {
        prompt: PromptId(prompt),
        lane,
    };
    let mut mirror = fold(vec![
        queued(1, Lane::FollowUp),
        queued(2, Lane::Steer),
        queued(3, Lane::Steer),
        queued(4, Lane::Next),
        What::TurnEnded {
            turn: TurnId(1),
            end: End::MaxSteps,
            answer: None,
            report: Box::default(),
            pending: Pending::default(),
        },
        queued(2, Lane::FollowUp),
        queued(3, Lane::FollowUp),
    ]);
    let order: Vec<u64> = mirror.queue().iter().map(|w| w.prompt.0).collect();
    assert_eq!(
        order,
        [2, 3, 1, 4],
        "left-over steers go to the front of the follow-ups"
    );
    fold_into(
        &mut mirror,
        vec![
            What::PromptApplied {
                prompt: PromptId(3),
                turn: None,
            },
            What::PromptEnded {
                prompt: PromptId(4),
                end: End::Withdrawn,
            },
        ],
    );
    assert_eq!(mirror.queue().len(), 2);
}

#[test]
fn the_open_turn_shows_what_runs() {
    let mut mirror = fold(vec![
        What::Settled,
        What::TurnStarted {
            turn: TurnId(3),
            cause: Cause::Prompt,
        },
        What::StepStarted {
            step: StepId(1),
            number: 1,
        },
        What::PromptApplied {
            prompt: PromptId(1),
            turn: Some(TurnId(3)),
        },
        What::RequestStarted {
            request: RequestId(1),
            attempt: 1,
        },
    ]);
    let turn = mirror.turn().expect("open");
    assert_eq!(
        (turn.turn, turn.step, turn.request),
        (TurnId(3), Some((StepId(1), 1)), Some((RequestId(1), 1)))
    );
    assert_eq!(turn.prompts, [PromptId(1)]);
    assert!(!mirror.is_settled());
    fold_into(
        &mut mirror,
        vec![What::StepEnded { step: StepId(1) }, tool_started(1, 1)],
    );
    assert_eq!(mirror.turn().and_then(|turn| turn.step), None);
    assert_eq!(
        mirror.call(CallId(1)).map(|call| call.side_effect),
        Some(SideEffect::Read)
    );
}

#[test]
fn questions_are_open_from_asked_to_closed_in_every_run() {
    let mut mirror = Mirror::new();
    let body = Ask::Uri {
        op: UriOp::Read,
        uri: Text::from("x:y"),
        body: None,
    };
    let nested = |what| Event {
        run: RunId(4),
        ..event(what)
    };
    mirror.apply(&nested(What::Asked {
        ask: AskId(1),
        body: body.clone(),
    }));
    mirror.apply(&event(What::Asked {
        ask: AskId(2),
        body,
    }));
    assert_eq!(mirror.questions().len(), 2);
    assert_eq!(
        mirror.question(AskId(1)).map(|open| open.run),
        Some(RunId(4))
    );
    mirror.apply(&nested(What::AskClosed {
        ask: AskId(1),
        how: AskClose::Cancelled,
    }));
    assert_eq!(mirror.questions().len(), 1);
    mirror.apply(&nested(What::Message(message(1, Role::User, vec![]))));
    assert!(
        mirror.history().is_empty(),
        "a nested run has its own history"
    );
}

#[test]
fn totals_count_failed_attempts_and_nested_runs() {
    let ended = |run, outcome, cost| {
        let model = ModelRef {
            provider: None,
            model: Text::from("m"),
        };
        let usage = Some(Usage {
            input: Some(2),
            output: Some(1),
            ..Usage::default()
        });
        let request = RequestId(1);
        Event {
            run,
            ..event(What::RequestEnded {
                request,
                outcome,
                model,
                usage,
                cost,
                api_us: 10,
            })
        }
    };
    let priced = Cost::Known {
        pico_usd: 6,
        basis: CostBasis::Reported,
        source: Text::from("s"),
        as_of: Text::from("d"),
    };
    let mut mirror = Mirror::new();
    mirror.apply(&ended(
        RunId::MAIN,
        RequestOutcome::Complete {
            finish: Text::from("stop"),
        },
        priced,
    ));
    mirror.apply(&ended(RunId(9), RequestOutcome::Truncated, Cost::NotSaid));
    let totals = mirror.totals();
    assert_eq!(
        (totals.requests, totals.failed_requests, totals.api_us),
        (2, 1, 20)
    );
    assert_eq!(totals.usage.total(), Some(6));
    assert_eq!(totals.by_model.len(), 1);
    assert_eq!(
        (totals.by_model[0].pico_usd, totals.by_model[0].unpriced),
        (6, 1)
    );
}

#[test]
fn opening_another_session_forgets_the_old_one() {
    let mut mirror = fold(vec![
        What::Opened(info(vec![message(1, Role::User, vec![])])),
        What::Message(message(2, Role::User, vec![])),
        What::Queued {
            prompt: PromptId(1),
            lane: Lane::Next,
        },
    ]);
    assert_eq!(shape(&mirror), [(1, None), (2, None)]);
    assert!(mirror.info().is_some_and(|info| info.history.is_empty()));
    fold_into(&mut mirror, vec![What::Opened(info(vec![]))]);
    assert!(mirror.history().is_empty() && mirror.queue().is_empty());
}

#[test]
fn settings_come_from_the_last_change() {
    let mut changed = info(vec![]);
    changed.settings.approvals = ApprovalMode::Auto;
    let mirror = fold(vec![What::Opened(info(vec![])), What::Changed(changed)]);
    assert_eq!(
        mirror.info().map(|info| info.settings.approvals.clone()),
        Some(ApprovalMode::Auto)
    );
}

#[test]
fn jobs_and_goals_are_known_while_they_live() {
    let record = JobRecord {
        job: JobId(1),
        id: Text::from("bg-1"),
        generation: Text::from("g"),
        revision: 1,
        kind: JobKind::Shell,
        call: None,
        command: Text::from("sleep 5"),
        description: None,
        cwd: None,
        state: JobState::Running,
        finite: true,
        times_ms: [None; 4],
        output: None,
        faults: [None, None, None],
    };
    let goal = Goal {
        text: Text::from("g"),
        status: GoalStatus::Active,
        turns_left: None,
        token_budget: None,
        tokens_used: 0,
    };
    let mut mirror = fold(vec![
        What::Job(JobStep::Started, Box::new(record.clone())),
        What::Goal(GoalEvent::Changed(Some(goal))),
        What::Goal(GoalEvent::Blocked(Text::from("why"))),
    ]);
    assert_eq!(mirror.jobs().count(), 1);
    assert_eq!(
        mirror.goal().map(|goal| goal.status),
        Some(GoalStatus::Blocked)
    );
    let over = JobRecord {
        state: JobState::Exited(0),
        ..record
    };
    fold_into(
        &mut mirror,
        vec![
            What::Job(JobStep::Ended, Box::new(over)),
            What::Goal(GoalEvent::Changed(None)),
        ],
    );
    assert_eq!(mirror.jobs().count(), 0);
    assert!(mirror.goal().is_none());
}
