//! What the Client does with each command, beside the scenes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::client_kit;

use client_kit::{HELLO, Out, Rig, asked, in_turn, prompt};
use turnwire::protocol::openmax::{ClientConfig, HOST_LINE_MAX};
use turnwire::vocab::*;

fn unsupported(rig: &mut Rig, command: Command) {
    let id = rig.command(command);
    assert!(
        matches!(rig.replied(id), Some(Err(Refusal::Unsupported(_)))),
        "{:?}",
        rig.replied(id)
    );
    assert_eq!(rig.lines(), [""; 0]);
}

#[test]
fn om_05_a_prompt_is_a_user_line_with_its_text() {
    let mut rig = Rig::opened();
    let mut told = prompt(PromptId(1), "a \"b\"", Deliver::IfIdle);
    told.content.push(Block::Text("second".into()));
    rig.command(Command::Prompt(told.clone()));
    assert_eq!(rig.lines(), [r#"{"cmd":"user","text":"a \"b\"\nsecond"}"#]);
    rig.budget();
    let message = rig.find(|what| match what {
        What::Message(message) => Some(message.clone()),
        _ => None,
    });
    assert_eq!(message.prompt, Some(PromptId(1)));
    assert!(
        message
            .content
            .iter()
            .map(|block| &**block)
            .eq(&told.content)
    );
}

#[test]
fn a_prompt_of_anything_but_text_is_refused_whole() {
    let mut rig = Rig::opened();
    let mut told = prompt(PromptId(1), "look", Deliver::IfIdle);
    told.content.push(Block::Media {
        kind: MediaKind::Image,
        source: Source::Url("u".into()),
    });
    unsupported(&mut rig, Command::Prompt(told));
}

#[test]
fn a_prompt_that_causes_no_turn_is_refused() {
    let mut rig = Rig::opened();
    let told = prompt(PromptId(1), "know this", Deliver::Context);
    unsupported(&mut rig, Command::Prompt(told));
}

#[test]
fn om_10_a_line_over_the_agents_limit_is_never_written() {
    let mut rig = Rig::opened();
    let fits = HOST_LINE_MAX - r#"{"cmd":"user","text":""}"#.len();
    let id = rig.user(&"x".repeat(fits + 1));
    assert_eq!(rig.replied(id), Some(Err(Refusal::TooLarge)));
    let id = rig.user(&"\u{1}".repeat(fits / 6 + 1));
    assert_eq!(rig.replied(id), Some(Err(Refusal::TooLarge)));
    assert_eq!(rig.lines(), [""; 0]);
    rig.user(&"x".repeat(fits));
    assert_eq!(rig.lines()[0].len(), HOST_LINE_MAX);
}

#[test]
fn a_prompt_that_was_seen_is_a_duplicate() {
    let mut rig = Rig::opened();
    rig.user("a");
    let again = rig.command(Command::Prompt(prompt(
        PromptId(1),
        "a",
        Deliver::Queue(Rank::Next),
    )));
    let duplicate = Ok(Answer::Admitted(Admitted::Duplicate));
    assert_eq!(rig.replied(again), Some(duplicate));
    assert_eq!(rig.lines().len(), 1);
}

#[test]
fn idle_steers_go_by_their_wish() {
    let steer = |idle| Deliver::Steer { idle };
    let mut rig = Rig::opened();
    rig.prompt("x", steer(IdleSteer::Drop));
    rig.prompt("x", steer(IdleSteer::DropUnlessQueued));
    assert_eq!(
        rig.events(),
        "R(1,Queued(Steer)) P-(1,Dropped) R(2,Queued(Steer)) P-(2,Dropped)"
    );
    assert_eq!(rig.lines(), [""; 0]);
    rig.prompt("x", steer(IdleSteer::Start));
    assert_eq!(rig.lines().len(), 1);
}

#[test]
fn the_queue_has_limits() {
    let config = ClientConfig {
        queued_prompts: 2,
        queued_bytes: 8,
        ..ClientConfig::default()
    };
    let mut rig = Rig::new(config);
    rig.agent(HELLO);
    rig.user("hi");
    let next = Deliver::Queue(Rank::Next);
    let bytes = rig.prompt("123456789", next.clone());
    assert_eq!(rig.replied(bytes), Some(Err(Refusal::Full)));
    rig.prompt("1", next.clone());
    rig.prompt("2", next.clone());
    let third = rig.prompt("3", next);
    assert_eq!(rig.replied(third), Some(Err(Refusal::Full)));
}

#[test]
fn waiting_prompts_are_withdrawn_and_promoted() {
    let mut rig = in_turn();
    rig.prompt("a", Deliver::Queue(Rank::Next));
    rig.prompt("b", Deliver::Queue(Rank::Next));
    rig.prompt("c", Deliver::Queue(Rank::Later));
    rig.command(Command::Withdraw(PromptId(2)));
    rig.command(Command::Withdraw(PromptId(2)));
    rig.command(Command::Promote(PromptId(4)));
    rig.command(Command::Promote(PromptId(9)));
    assert_eq!(
        rig.events(),
        "R(2,Queued(Next)) Q(2,Next) R(3,Queued(Next)) Q(3,Next) R(4,Queued(Later)) Q(4,Later) R(5,Withdrawn) P-(2,Withdrawn) \
         R(6,Withdrawn) R(7,Done) Q(4,Next) R(8,Err(Unknown))"
    );
    rig.lines();
    rig.done("stop");
    assert_eq!(rig.lines(), [r#"{"cmd":"user","text":"c"}"#]);
}

#[test]
fn a_queue_that_is_kept_waits_for_the_next_prompt() {
    let mut rig = in_turn();
    rig.prompt("a", Deliver::Queue(Rank::Next));
    rig.cancel(QueueFate::Keep);
    rig.lines();
    rig.done("cancelled");
    assert_eq!(rig.lines(), [""; 0]);
    assert!(!rig.events().contains("Set"), "a prompt still waits");
    rig.user("b");
    rig.budget();
    rig.done("stop");
    assert_eq!(
        rig.lines(),
        [
            r#"{"cmd":"user","text":"b"}"#,
            r#"{"cmd":"user","text":"a"}"#
        ]
    );
}

#[test]
fn a_queue_that_is_dropped_ends_behind_its_turn() {
    let mut rig = in_turn();
    rig.prompt("a", Deliver::FollowUp);
    rig.cancel(QueueFate::Drop);
    rig.forget();
    rig.done("cancelled");
    assert!(rig.events().ends_with("P-(1,Cancelled) P-(2,Dropped) Set"));
    rig.command(Command::Cancel {
        what: CancelWhat::Everything,
        why: CancelWhy::Host,
    });
    assert_eq!(rig.lines(), [r#"{"cmd":"cancel"}"#]);
}

#[test]
fn cancel_of_the_turn_or_else_the_oldest_that_waits() {
    let mut rig = in_turn();
    rig.prompt("a", Deliver::Queue(Rank::Later));
    rig.prompt("b", Deliver::Queue(Rank::Next));
    rig.cancel(QueueFate::Keep);
    rig.done("cancelled");
    rig.forget();
    rig.command(Command::Cancel {
        what: CancelWhat::TurnElseNextQueued,
        why: CancelWhy::Host,
    });
    assert_eq!(rig.events(), "R(5,Cancelling(Nothing)) P-(2,Withdrawn)");
}

#[test]
fn follow_ups_that_are_drained_whole_share_one_turn() {
    let mut rig = in_turn();
    rig.command(Command::Set(Setting::FollowUpDrain(Drain::All)));
    rig.prompt("a", Deliver::FollowUp);
    rig.prompt("b", Deliver::FollowUp);
    rig.lines();
    rig.done("stop");
    assert_eq!(rig.lines(), [r#"{"cmd":"user","text":"a\n\nb"}"#]);
    rig.forget();
    rig.budget();
    rig.done("stop");
    let events = rig.events();
    assert!(
        events.starts_with("T+ S+ Ap(3) M(user) Ap(4) M(user) Cx Rq"),
        "{events}"
    );
    assert!(
        events.ends_with("P-(3,Finished) P-(4,Finished) Set"),
        "{events}"
    );
}

#[test]
fn what_openmax_has_no_line_for_is_refused_at_once() {
    let mut rig = Rig::opened();
    let cancel = |what| Command::Cancel {
        what,
        why: CancelWhy::Host,
    };
    for command in [
        Command::Offer(Offer::Tools(vec![])),
        Command::Recall(vec![]),
        Command::Compact { instructions: None },
        Command::Rewind {
            to: RewindTo::Prompt(PromptId(1)),
            dry_run: true,
        },
        Command::Goal(GoalCommand::Get),
        Command::Job(JobCommand::Snapshot),
        Command::Shell {
            command: "ls".into(),
        },
        Command::Session(SessionCommand::New { parent: None }),
        Command::SteerRun {
            run: RunId(1),
            prompt: prompt(PromptId(99), "x", Deliver::IfIdle),
        },
        cancel(CancelWhat::Retry),
        cancel(CancelWhat::Compaction),
        cancel(CancelWhat::Shell),
        cancel(CancelWhat::Job(JobId(1))),
        cancel(CancelWhat::Run(RunId(1))),
        Command::Set(Setting::Approvals(ApprovalMode::Plan)),
        Command::Set(Setting::Model(None)),
        Command::Set(Setting::AutoRetry(true)),
        Command::Set(Setting::Interrupting(Interrupting::Immediate)),
    ] {
        unsupported(&mut rig, command);
    }
    let part = rig.command(Command::ReplyPart {
        ask: AskId(1),
        content: vec![],
    });
    assert_eq!(rig.replied(part), Some(Err(Refusal::Unknown)));
}

#[test]
fn om_07_a_mode_counts_when_the_agent_says_so() {
    let mut rig = Rig::opened();
    let set = rig.command(Command::Set(Setting::Approvals(ApprovalMode::ReadOnly)));
    assert_eq!(
        rig.lines(),
        [r#"{"cmd":"approval_mode","mode":"readonly"}"#]
    );
    assert_eq!(rig.replied(set), None);
    rig.agent(r#"{"type":"approval_mode","mode":"readonly"}"#);
    assert_eq!(rig.replied(set), Some(Ok(Answer::Done)));
    let mode = rig.find(|what| match what {
        What::Changed(info) => Some(info.settings.approvals.clone()),
        _ => None,
    });
    assert_eq!(mode, ApprovalMode::ReadOnly);
    let failed = rig.command(Command::Set(Setting::Approvals(ApprovalMode::Auto)));
    rig.refused("approval mode unchanged; persisting it failed: disk full");
    let Some(Err(Refusal::Failed(failure))) = rig.replied(failed) else {
        panic!()
    };
    assert_eq!(failure.kind, FailureKind::Store);
    assert_eq!(rig.take_findings(), [""; 0]);
}

#[test]
fn om_08_a_reload_is_answered_by_its_receipt() {
    let mut rig = Rig::opened();
    let reload = rig.command(Command::Reload);
    assert_eq!(rig.lines(), [r#"{"cmd":"reload"}"#]);
    rig.says("refrozen", r#""tools":8,"skills":1,"changes":["x added"]"#);
    let receipt = Answer::Reloaded {
        tools: 8,
        skills: 1,
        changes: vec!["x added".into()],
    };
    assert_eq!(rig.replied(reload), Some(Ok(receipt)));
    let busy = rig.command(Command::Reload);
    rig.refused("a turn is in flight; wait for done");
    assert_eq!(rig.replied(busy), Some(Err(Refusal::Busy)));
}

#[test]
fn answers_come_in_the_order_of_the_commands() {
    let mut rig = Rig::opened();
    let mode = rig.command(Command::Set(Setting::Approvals(ApprovalMode::Ask)));
    let reload = rig.command(Command::Reload);
    let barrier = rig.command(Command::Barrier);
    rig.refused("words of a later version");
    assert!(matches!(rig.replied(mode), Some(Err(Refusal::Failed(_)))));
    assert_eq!(rig.replied(reload), None);
    assert_eq!(rig.replied(barrier), None);
    rig.says("refrozen", r#""tools":8,"skills":1,"changes":[]"#);
    assert!(matches!(rig.replied(reload), Some(Ok(_))));
    assert_eq!(rig.replied(barrier), Some(Ok(Answer::Done)));
    assert_eq!(rig.take_findings(), [""; 0]);
}

#[test]
fn an_approve_is_done_when_a_later_command_is_answered() {
    let mut rig = asked();
    let approve = rig.command(Command::Reply {
        ask: AskId(1),
        reply: Err(ReplyFault::HostGone),
    });
    assert_eq!(
        rig.lines().last().unwrap(),
        r#"{"cmd":"approve","approval_id":"q","approved":false}"#
    );
    rig.command(Command::Set(Setting::Approvals(ApprovalMode::Ask)));
    assert_eq!(rig.replied(approve), None);
    rig.agent(r#"{"type":"approval_mode","mode":"ask"}"#);
    assert_eq!(rig.replied(approve), Some(Ok(Answer::Done)));
    let again = rig.command(Command::Reply {
        ask: AskId(1),
        reply: Err(ReplyFault::HostGone),
    });
    assert_eq!(rig.replied(again), Some(Err(Refusal::AlreadySettled)));
}

fn allow(rig: &mut Rig) -> CommandId {
    rig.command(Command::Reply {
        ask: AskId(1),
        reply: Ok(Reply::Allow {
            input: None,
            updates: vec![],
        }),
    })
}

#[test]
fn l8_an_approval_that_was_settled_in_another_way_is_closed_with_its_call() {
    for outcome in ["declined", "timed_out", "cancelled"] {
        let mut rig = asked();
        let approve = allow(&mut rig);
        rig.says(
            "approval_settled",
            &format!(r#""approval_id":"q","outcome":"{outcome}""#),
        );
        assert_eq!(rig.replied(approve), None, "its refusal may follow");
        rig.says("tool_end", r#""call_id":"c","ok":false,"output":"no""#);
        assert_eq!(rig.replied(approve), Some(Err(Refusal::AlreadySettled)));
        // And it doesn't hold up a close that drains, nor is its late refusal a surprise.
        rig.command(Command::Close { drain: true });
        rig.lines();
        rig.done("stop");
        assert_eq!(rig.lines(), [r#"{"cmd":"quit"}"#], "{outcome}");
        rig.agent(
            r#"{"type":"protocol_error","message":"unknown or already settled approval_id 'q'"}"#,
        );
        assert_eq!(rig.take_findings(), [""; 0]);
    }
}

#[test]
fn l8_an_approval_whose_question_is_never_settled_is_closed_with_its_turn() {
    let mut rig = asked();
    let approve = allow(&mut rig);
    let barrier = rig.command(Command::Barrier);
    rig.command(Command::Close { drain: true });
    rig.lines();
    rig.done("cancelled");
    assert_eq!(rig.replied(approve), Some(Err(Refusal::AlreadySettled)));
    assert_eq!(rig.replied(barrier), Some(Ok(Answer::Done)));
    assert_eq!(rig.lines(), [r#"{"cmd":"quit"}"#]);
}

#[test]
fn a_denial_that_interrupts_cancels_too() {
    let mut rig = asked();
    rig.lines();
    rig.command(Command::Reply {
        ask: AskId(1),
        reply: Ok(Reply::Deny {
            message: None,
            interrupt: true,
        }),
    });
    assert_eq!(rig.lines().len(), 2);
    rig.says(
        "approval_settled",
        r#""approval_id":"q","outcome":"declined""#,
    );
    rig.says("tool_end", r#""call_id":"c","ok":false,"output":"no""#);
    rig.done("cancelled");
    let end = rig.find(|what| match what {
        What::TurnEnded { end, .. } => Some(end.clone()),
        _ => None,
    });
    assert_eq!(end, End::Cancelled(CancelWhy::Denied(CallId(1))));
}

#[test]
fn an_approval_that_changes_the_call_or_the_rules_is_refused() {
    let mut rig = asked();
    rig.lines();
    unsupported(
        &mut rig,
        Command::Reply {
            ask: AskId(1),
            reply: Ok(Reply::Allow {
                input: Some(RawJson("{}".into())),
                updates: vec![],
            }),
        },
    );
    let other = rig.command(Command::Reply {
        ask: AskId(1),
        reply: Ok(Reply::Choice(None)),
    });
    assert_eq!(rig.replied(other), Some(Err(Refusal::Unknown)));
}

#[test]
fn om_15_16_a_question_says_whose_bytes_run_and_what_they_get() {
    let rig = asked();
    let ask = rig.find(|what| match what {
        What::Asked {
            body: Ask::Permission(ask),
            ..
        } => Some(ask.clone()),
        _ => None,
    });
    assert_eq!(ask.call, Some(CallId(1)));
    assert_eq!(ask.env, ["TOKEN".into()]);
    let (path, sha) = ("t.toml".into(), "a3fb1f0eb818".into());
    assert_eq!(ask.reason, AskReason::UnapprovedSource { path, sha });
}

#[test]
fn after_a_close_nothing_new_begins() {
    let mut rig = in_turn();
    rig.command(Command::Close { drain: true });
    let user = rig.prompt("x", Deliver::Queue(Rank::Next));
    let reload = rig.command(Command::Reload);
    assert_eq!(rig.replied(user), Some(Err(Refusal::Closing)));
    assert_eq!(rig.replied(reload), Some(Err(Refusal::Closing)));
    rig.lines();
    rig.done("stop");
    assert_eq!(rig.lines(), [r#"{"cmd":"quit"}"#]);
    let mode = rig.command(Command::Set(Setting::Approvals(ApprovalMode::Ask)));
    assert_eq!(rig.replied(mode), Some(Err(Refusal::Closing)));
    assert!(matches!(rig.out.first(), Some(Out::Event(_))));
}

#[test]
fn a_half_close_waits_for_prompts_and_answers_that_are_owed() {
    let mut rig = in_turn();
    rig.prompt("a", Deliver::Queue(Rank::Next));
    rig.command(Command::Set(Setting::Approvals(ApprovalMode::Ask)));
    rig.command(Command::Close { drain: true });
    rig.done("stop");
    rig.budget();
    rig.done("stop");
    assert!(!rig.out.contains(&Out::CloseInput), "a mode isn't answered");
    rig.agent(r#"{"type":"approval_mode","mode":"ask"}"#);
    assert!(rig.out.contains(&Out::CloseInput));
    assert_eq!(rig.lines().last().unwrap(), r#"{"cmd":"quit"}"#);
    rig.end();
    assert!(rig.events().ends_with("Closed(Drained) Gone"));
}

#[test]
fn a_promote_ends_the_hold_of_a_kept_queue() {
    let mut rig = in_turn();
    rig.prompt("a", Deliver::Queue(Rank::Next));
    rig.prompt("b", Deliver::Queue(Rank::Next));
    rig.cancel(QueueFate::Keep);
    rig.lines();
    rig.done("cancelled");
    rig.forget();
    rig.command(Command::Promote(PromptId(3)));
    assert_eq!(rig.lines(), [r#"{"cmd":"user","text":"b"}"#]);
    assert_eq!(rig.events(), "R(5,Done)");
    rig.budget();
    rig.done("stop");
    assert_eq!(rig.lines(), [r#"{"cmd":"user","text":"a"}"#]);
}

#[test]
fn follow_ups_share_a_line_as_far_as_it_goes() {
    let mut rig = in_turn();
    rig.command(Command::Set(Setting::FollowUpDrain(Drain::All)));
    let big = "x".repeat(HOST_LINE_MAX / 2);
    for text in ["a", &big, &big] {
        rig.prompt(text, Deliver::FollowUp);
    }
    rig.lines();
    rig.done("stop");
    let first = rig.lines();
    assert!(first[0].len() > big.len() && first[0].len() <= HOST_LINE_MAX);
    rig.budget();
    rig.done("stop");
    assert!(rig.lines()[0].len() > big.len());
}

#[test]
fn a_second_signal_is_passed_on_and_a_second_cancel_is_not_written() {
    let mut rig = in_turn();
    rig.lines();
    rig.cancel(QueueFate::Drop);
    let again = rig.cancel(QueueFate::Drop);
    assert_eq!(rig.lines(), [r#"{"cmd":"cancel"}"#]);
    assert!(matches!(
        rig.replied(again),
        Some(Ok(Answer::Cancelling {
            hit: Hit::Turn(_),
            ..
        }))
    ));
    rig.forget();
    for _ in 0..2 {
        rig.command(Command::Cancel {
            what: CancelWhat::Turn {
                queue: QueueFate::Drop,
            },
            why: CancelWhy::Signal(Signal::Hangup),
        });
    }
    let signals = rig
        .out
        .iter()
        .filter(|out| matches!(out, Out::Signal(Signal::Hangup)));
    assert_eq!(signals.count(), 2);
    rig.done("cancelled");
    let end = rig.find(|what| match what {
        What::PromptEnded { end, .. } => Some(end.clone()),
        _ => None,
    });
    assert_eq!(
        end,
        End::Cancelled(CancelWhy::Host),
        "the first cancel is the reason"
    );
}
