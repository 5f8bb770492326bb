//! Bytes to actions.

use turnwire::vocab::*;

use super::*;
use crate::bytes::Source;

/// The bytes that one action is read from; it may need fewer.
pub const ACTION_BYTES: usize = 8;

/// The next action, as often as the mix says.
pub fn action(mix: &Mix, s: &mut Source<'_>) -> Action {
    let weights = [
        mix.prompts,
        mix.answers,
        mix.tools,
        mix.replies,
        mix.settlements,
        mix.pieces,
        mix.time,
        mix.cancels,
        mix.queues,
        mix.commands,
        mix.closes,
        mix.late,
        mix.faults,
        mix.compactions,
    ];
    match s.weighted(&weights) {
        0 => Action::Prompt(deliver(s)),
        1 => answer(s),
        2 => Action::Tool(s.byte(), news(s)),
        3 => reply(s),
        4 => settlement(s),
        5 => Action::Model(s.byte(), piece(s)),
        6 => time(s),
        7 => Action::Cancel(cancel(s)),
        8 => match s.below(4) {
            0 | 1 => Action::Withdraw(s.byte()),
            2 => Action::Promote(s.byte()),
            _ => Action::Repeat(s.byte()),
        },
        9 => match s.below(6) {
            0..=2 => Action::Set(setting(s)),
            5 => Action::Rewind(s.byte(), s.flag()),
            _ => match s.byte() {
                pick @ 208.. => Action::Own(pick),
                pick => Action::Other(pick),
            },
        },
        10 => Action::Close(!s.flag()),
        11 => match s.below(6) {
            0..=2 => Action::Late(s.byte()),
            3 | 4 => Action::Settle(s.byte()),
            _ => Action::Twice(s.byte()),
        },
        12 => Action::Fault,
        _ => Action::Compact,
    }
}

pub(super) fn deliver(s: &mut Source<'_>) -> Deliver {
    let steer = |idle| Deliver::Steer { idle };
    s.of([
        Deliver::IfIdle,
        Deliver::Queue(Rank::Next),
        steer(IdleSteer::Start),
        Deliver::FollowUp,
        Deliver::IfIdle,
        Deliver::Queue(Rank::Later),
        steer(IdleSteer::Drop),
        Deliver::Preempt,
        Deliver::IfIdle,
        Deliver::Queue(Rank::Next),
        steer(IdleSteer::Start),
        Deliver::FollowUp,
        Deliver::IfIdle,
        steer(IdleSteer::DropUnlessQueued),
        Deliver::Context,
    ])
}

/// A whole answer, of at most three calls.
fn answer(s: &mut Source<'_>) -> Action {
    let pick = s.byte();
    let calls = s.below(4);
    let tools = [tool(s), tool(s), tool(s)];
    Action::Answer(pick, tools.into_iter().take(calls).collect())
}

fn tool(s: &mut Source<'_>) -> Tool {
    s.of([
        Tool::Read,
        Tool::Write,
        Tool::Asked,
        Tool::Host,
        Tool::Read,
        Tool::Write,
        Tool::Denied,
        Tool::Missing,
        Tool::Broken,
        Tool::Choice,
        Tool::Read,
        Tool::Write,
        Tool::Asked,
        Tool::Host,
        Tool::Capture,
        Tool::Finish,
        Tool::Read,
        Tool::Write,
        Tool::UriRead,
        Tool::UriWrite,
    ])
}

fn news(s: &mut Source<'_>) -> ToolNews {
    s.of([
        ToolNews::Ok,
        ToolNews::Failed,
        ToolNews::Progress,
        ToolNews::Ok,
        ToolNews::Network,
        ToolNews::Ok,
        ToolNews::File,
        ToolNews::TimedOut,
        ToolNews::Ok,
        ToolNews::Failed,
        ToolNews::EndsTurn,
        ToolNews::Ok,
        ToolNews::Detaches,
        ToolNews::Progress,
        ToolNews::Network,
        ToolNews::Ok,
    ])
}

fn reply(s: &mut Source<'_>) -> Action {
    match s.below(9) {
        8 => Action::LateReply(s.byte()),
        _ => Action::Reply(s.byte(), answering(s)),
    }
}

fn answering(s: &mut Source<'_>) -> Answering {
    s.of([
        Answering::Yes,
        Answering::No,
        Answering::Yes,
        Answering::Interrupt,
        Answering::Error,
        Answering::Yes,
        Answering::No,
        Answering::Gone,
        Answering::Wrong,
        Answering::Yes,
        Answering::Changed,
        Answering::Granted,
    ])
}

fn settlement(s: &mut Source<'_>) -> Action {
    match s.below(7) {
        0..=3 => Action::Hook(s.byte(), judging(s)),
        _ => Action::Store(s.byte(), s.below(5) != 4),
    }
}

fn judging(s: &mut Source<'_>) -> Judging {
    use Judging::{Adds, Allow, Ask, Deny, Fails, Grants, Interrupts, Pass, Stops};
    s.of([
        Pass, Deny, Pass, Allow, Pass, Ask, Pass, Fails, Pass, Adds, Pass, Deny, Pass, Grants,
        Pass, Interrupts, Pass, Stops,
    ])
}

fn time(s: &mut Source<'_>) -> Action {
    match s.below(11) {
        0..=3 => Action::Jump,
        // Up to 5 s.
        4..=7 => Action::Pass(u64::from(s.short()) * 76),
        8 => Action::Skip(0),
        // Up to 100 s.
        _ => Action::Skip(u64::from(s.short()) * 1_526),
    }
}

fn cancel(s: &mut Source<'_>) -> CancelWhat {
    let turn = |queue| CancelWhat::Turn { queue };
    s.of([
        turn(QueueFate::Run),
        turn(QueueFate::Drop),
        turn(QueueFate::Keep),
        CancelWhat::TurnElseNextQueued,
        turn(QueueFate::Run),
        CancelWhat::Retry,
        CancelWhat::Compaction,
        CancelWhat::Everything,
        CancelWhat::Shell,
    ])
}

fn setting(s: &mut Source<'_>) -> Setting {
    s.of([
        Setting::Approvals(ApprovalMode::Auto),
        Setting::Approvals(ApprovalMode::Ask),
        Setting::Approvals(ApprovalMode::ReadOnly),
        Setting::Approvals(ApprovalMode::AcceptEdits),
        Setting::Approvals(ApprovalMode::Plan),
        Setting::Approvals(ApprovalMode::Other(Text::from("strange"))),
        Setting::Model(Some(Text::from("other"))),
        Setting::SteerDrain(Drain::One),
        Setting::FollowUpDrain(Drain::All),
        Setting::Interrupting(Interrupting::Immediate),
        Setting::AutoRetry(false),
        Setting::AutoRetry(true),
        Setting::AutoCompact(false),
        Setting::AutoCompact(true),
        Setting::Name(Text::from("name")),
        Setting::ThinkingBudget(Some(1_000)),
        Setting::Model(None),
    ])
}

fn short(s: &mut Source<'_>) -> String {
    s.of(["a", "hello ", "é\u{2028}", ""]).to_owned()
}

fn piece(s: &mut Source<'_>) -> Piece {
    match s.below(27) {
        0..=3 => Piece::Text(short(s)),
        4..=6 => Piece::Finish,
        7..=9 => Piece::End,
        10..=13 => failed(s),
        14..=16 => Piece::Thinking(short(s)),
        17..=19 => Piece::Call(tool(s)),
        20 => Piece::HalfCall,
        21 => Piece::Alive(s.flag()),
        22 | 23 => Piece::Odd(s.byte()),
        _ => Piece::Usage(u32::from(s.short()) << 16),
    }
}

fn failed(s: &mut Source<'_>) -> Piece {
    let kind = s.of([
        FailureKind::Server,
        FailureKind::Transport,
        FailureKind::StreamCut,
        FailureKind::Server,
        FailureKind::Overloaded,
        FailureKind::RateLimit,
        FailureKind::Auth,
        FailureKind::ContextFull,
        FailureKind::Transport,
        FailureKind::StreamCut,
        FailureKind::Server,
    ]);
    let reached = s.below(10) < 7;
    let after = match s.below(5) {
        0..=3 => None,
        _ => Some(s.of([3_000_000, 61_000_000])),
    };
    Piece::Failed(kind, reached, after)
}
