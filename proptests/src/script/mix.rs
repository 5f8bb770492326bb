//! Strategies for scripts.

use proptest::{collection::vec, prelude::*, strategy::Union};
use turnwire::vocab::*;

use super::*;

/// How often what happens, against the others.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Prompts, in every way of delivery.
    pub prompts: u32,
    /// Prompts withdrawn, promoted, repeated.
    pub queues: u32,
    /// Cancels.
    pub cancels: u32,
    /// Answers to questions.
    pub replies: u32,
    /// Settings and other commands.
    pub commands: u32,
    /// Closes.
    pub closes: u32,
    /// Single pieces of a model's answer, failures among them.
    pub pieces: u32,
    /// Whole answers of a model.
    pub answers: u32,
    /// News of calls.
    pub tools: u32,
    /// Hooks and writes that settle.
    pub settlements: u32,
    /// Effects that settle after they were stopped, or twice.
    pub late: u32,
    /// Time.
    pub time: u32,
    /// Crashes.
    pub faults: u32,
    /// Compactions by hand.
    pub compactions: u32,
}

impl Mix {
    /// Everything.
    pub const ALL: Mix = Mix {
        prompts: 12,
        queues: 4,
        cancels: 6,
        replies: 9,
        commands: 5,
        closes: 1,
        pieces: 14,
        answers: 14,
        tools: 16,
        settlements: 14,
        late: 6,
        time: 10,
        faults: 1,
        compactions: 1,
    };

    /// Requests that fail and are tried again.
    pub const RETRIES: Mix = Mix {
        pieces: 60,
        time: 30,
        answers: 4,
        cancels: 3,
        settlements: 30,
        closes: 0,
        ..Mix::ALL
    };

    /// Calls and questions.
    pub const CALLS: Mix = Mix {
        answers: 40,
        tools: 40,
        replies: 40,
        settlements: 40,
        pieces: 3,
        cancels: 2,
        commands: 3,
        time: 5,
        closes: 0,
        faults: 0,
        ..Mix::ALL
    };

    /// Hooks and writes.
    pub const HOOKS: Mix = Mix {
        answers: 30,
        settlements: 60,
        tools: 20,
        pieces: 3,
        cancels: 2,
        time: 4,
        closes: 0,
        faults: 0,
        ..Mix::ALL
    };

    /// Prompts that wait.
    pub const QUEUES: Mix = Mix {
        prompts: 40,
        queues: 12,
        closes: 0,
        ..Mix::ALL
    };

    /// Cancels, in every phase.
    pub const CANCELS: Mix = Mix {
        cancels: 20,
        late: 12,
        replies: 4,
        ..Mix::ALL
    };

    /// Histories that grow, and are summarised.
    pub const COMPACTIONS: Mix = Mix {
        compactions: 8,
        answers: 40,
        tools: 40,
        settlements: 20,
        pieces: 20,
        closes: 0,
        faults: 1,
        ..Mix::ALL
    };

    /// Closes, in every phase.
    pub const CLOSES: Mix = Mix {
        closes: 10,
        ..Mix::ALL
    };
}

/// A script of up to `len` actions, a prompt before them.
pub fn scripts(mix: Mix, len: usize) -> impl Strategy<Value = Vec<Action>> {
    (deliver(), vec(action(mix), 1..len)).prop_map(|(deliver, mut script)| {
        script.insert(0, Action::Prompt(deliver));
        script
    })
}

fn action(mix: Mix) -> impl Strategy<Value = Action> {
    let pick = any::<u8>();
    let queues = prop_oneof![
        1 => pick.prop_map(Action::Repeat),
        2 => pick.prop_map(Action::Withdraw),
        1 => pick.prop_map(Action::Promote),
    ];
    let replies = prop_oneof![
        8 => (pick, answering()).prop_map(|(pick, how)| Action::Reply(pick, how)),
        1 => pick.prop_map(Action::LateReply),
    ];
    let commands = prop_oneof![
        3 => setting().prop_map(Action::Set),
        2 => pick.prop_map(Action::Other),
    ];
    let settlements = prop_oneof![
        4 => (pick, judging()).prop_map(|(pick, how)| Action::Hook(pick, how)),
        3 => (pick, prop::bool::weighted(0.8)).prop_map(|(pick, ok)| Action::Store(pick, ok)),
    ];
    let late = prop_oneof![
        3 => pick.prop_map(Action::Late),
        2 => pick.prop_map(Action::Settle),
        1 => pick.prop_map(Action::Twice),
    ];
    let time = prop_oneof![
        4 => (0u64..5_000_000).prop_map(Action::Pass),
        4 => Just(Action::Jump),
        1 => Just(Action::Skip(0)),
        2 => (0u64..100_000_000).prop_map(Action::Skip),
    ];
    let all = [
        (mix.prompts, deliver().prop_map(Action::Prompt).boxed()),
        (mix.queues, queues.boxed()),
        (mix.cancels, cancel().prop_map(Action::Cancel).boxed()),
        (mix.replies, replies.boxed()),
        (mix.commands, commands.boxed()),
        (mix.closes, any::<bool>().prop_map(Action::Close).boxed()),
        (
            mix.pieces,
            (pick, piece())
                .prop_map(|(pick, piece)| Action::Model(pick, piece))
                .boxed(),
        ),
        (
            mix.answers,
            (pick, vec(tool(), 0..4))
                .prop_map(|(pick, calls)| Action::Answer(pick, calls))
                .boxed(),
        ),
        (
            mix.tools,
            (pick, tool_news())
                .prop_map(|(pick, news)| Action::Tool(pick, news))
                .boxed(),
        ),
        (mix.settlements, settlements.boxed()),
        (mix.late, late.boxed()),
        (mix.time, time.boxed()),
        (mix.faults, Just(Action::Fault).boxed()),
        (mix.compactions, Just(Action::Compact).boxed()),
    ];
    // A kind that never comes has no weight.
    Union::new_weighted(all.into_iter().filter(|(weight, _)| *weight > 0).collect())
}

fn deliver() -> impl Strategy<Value = Deliver> {
    prop_oneof![
        4 => Just(Deliver::IfIdle),
        2 => Just(Deliver::Queue(Rank::Next)),
        1 => Just(Deliver::Queue(Rank::Later)),
        2 => Just(Deliver::Steer { idle: IdleSteer::Start }),
        1 => Just(Deliver::Steer { idle: IdleSteer::Drop }),
        1 => Just(Deliver::Steer { idle: IdleSteer::DropUnlessQueued }),
        2 => Just(Deliver::FollowUp),
        1 => Just(Deliver::Context),
        1 => Just(Deliver::Preempt),
    ]
}

fn cancel() -> impl Strategy<Value = CancelWhat> {
    prop_oneof![
        2 => Just(CancelWhat::Turn { queue: QueueFate::Run }),
        1 => Just(CancelWhat::Turn { queue: QueueFate::Keep }),
        1 => Just(CancelWhat::Turn { queue: QueueFate::Drop }),
        1 => Just(CancelWhat::TurnElseNextQueued),
        1 => Just(CancelWhat::Retry),
        1 => Just(CancelWhat::Compaction),
        1 => Just(CancelWhat::Everything),
    ]
}

fn answering() -> impl Strategy<Value = Answering> {
    prop_oneof![
        4 => Just(Answering::Yes),
        1 => Just(Answering::Changed),
        2 => Just(Answering::No),
        1 => Just(Answering::Interrupt),
        1 => Just(Answering::Wrong),
        1 => Just(Answering::Error),
        1 => Just(Answering::Gone),
    ]
}

fn setting() -> impl Strategy<Value = Setting> {
    prop_oneof![
        Just(Setting::Approvals(ApprovalMode::Auto)),
        Just(Setting::Approvals(ApprovalMode::Ask)),
        Just(Setting::Approvals(ApprovalMode::ReadOnly)),
        Just(Setting::Approvals(ApprovalMode::AcceptEdits)),
        Just(Setting::Approvals(ApprovalMode::Other(Text::from(
            "strange"
        )))),
        Just(Setting::Model(Some(Text::from("other")))),
        Just(Setting::SteerDrain(Drain::One)),
        Just(Setting::FollowUpDrain(Drain::All)),
        Just(Setting::AutoRetry(false)),
        Just(Setting::AutoRetry(true)),
        Just(Setting::AutoCompact(false)),
        Just(Setting::AutoCompact(true)),
        Just(Setting::Name(Text::from("name"))),
    ]
}

fn short() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("a".to_owned()),
        Just("é\u{2028}".to_owned()),
        Just("hello ".to_owned())
    ]
}

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        1 => any::<bool>().prop_map(Piece::Alive),
        4 => short().prop_map(Piece::Text),
        3 => short().prop_map(Piece::Thinking),
        3 => tool().prop_map(Piece::Call),
        1 => Just(Piece::HalfCall),
        1 => any::<u8>().prop_map(Piece::Odd),
        1 => any::<u32>().prop_map(Piece::Usage),
        3 => Just(Piece::Finish),
        3 => Just(Piece::End),
        4 => (failure(), prop::bool::weighted(0.7), prop_oneof![
            4 => Just(None),
            1 => Just(Some(3_000_000)),
            1 => Just(Some(61_000_000)),
        ])
            .prop_map(|(kind, reached, after)| Piece::Failed(kind, reached, after)),
    ]
}

fn failure() -> impl Strategy<Value = FailureKind> {
    prop_oneof![
        3 => Just(FailureKind::Server),
        1 => Just(FailureKind::Overloaded),
        1 => Just(FailureKind::RateLimit),
        2 => Just(FailureKind::Transport),
        2 => Just(FailureKind::StreamCut),
        1 => Just(FailureKind::Auth),
        1 => Just(FailureKind::ContextFull),
    ]
}

fn tool() -> impl Strategy<Value = Tool> {
    prop_oneof![
        4 => Just(Tool::Read),
        4 => Just(Tool::Write),
        1 => Just(Tool::Denied),
        2 => Just(Tool::Asked),
        1 => Just(Tool::Missing),
        1 => Just(Tool::Broken),
        2 => Just(Tool::Host),
        1 => Just(Tool::Choice),
        1 => Just(Tool::Capture),
        1 => Just(Tool::Finish),
    ]
}

fn tool_news() -> impl Strategy<Value = ToolNews> {
    prop_oneof![
        2 => Just(ToolNews::Progress),
        1 => Just(ToolNews::File),
        6 => Just(ToolNews::Ok),
        2 => Just(ToolNews::Failed),
        1 => Just(ToolNews::TimedOut),
        1 => Just(ToolNews::EndsTurn),
        2 => Just(ToolNews::Network),
        1 => Just(ToolNews::Detaches),
    ]
}

fn judging() -> impl Strategy<Value = Judging> {
    prop_oneof![
        8 => Just(Judging::Pass),
        1 => Just(Judging::Allow),
        2 => Just(Judging::Deny),
        1 => Just(Judging::Ask),
        1 => Just(Judging::Fails),
        1 => Just(Judging::Adds),
    ]
}
