//! Random scripts: what a host, a model, tools, hooks, a disk and the clock may do.
//!
//! An action names what it acts on by a number taken modulo what there is, so every
//! action fits every agent in every state, and a script stays one when it shrinks.

use proptest::{collection::vec, prelude::*};
use turnwire::vocab::{laws::EffectId, *};

use crate::world::{Chunk, Given, World};

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Action {
    /// The host sends a prompt.
    Prompt(Deliver),
    /// The host sends the same prompt again.
    Repeat(u8),
    /// The host takes a prompt back.
    Withdraw(u8),
    /// The host moves a prompt to the front.
    Promote(u8),
    /// The host cancels.
    Cancel(CancelWhat),
    /// The host answers an open question.
    Reply(u8, Answering),
    /// The host answers a question that is closed, or was never asked.
    LateReply(u8),
    /// The host changes a setting.
    Set(Setting),
    /// The host sends another command.
    Other(u8),
    /// The host closes.
    Close(bool),
    /// A model sends a piece.
    Model(u8, Piece),
    /// A model sends a whole answer: text, calls, finish, end.
    Answer(u8, Vec<Tool>),
    /// A call has news.
    Tool(u8, ToolNews),
    /// A hook answers.
    Hook(u8, Judging),
    /// A write is done.
    Store(u8, bool),
    /// A stopped effect settles at last.
    Late(u8),
    /// Something else is settled.
    Settle(u8),
    /// The driver is told that a settled effect settles again.
    Twice(u8),
    /// Time passes, and the driver wakes the agent in time.
    Pass(u64),
    /// The driver jumps to the next deadline.
    Jump,
    /// Time passes, and the driver is late.
    Skip(u64),
    /// The driver caught a crash.
    Fault,
}

/// How a host answers a question.
#[derive(Clone, Copy, Debug)]
pub enum Answering {
    /// Allow, or the success of the kind.
    Yes,
    /// Allow with other arguments.
    Changed,
    /// Deny, or the failure of the kind.
    No,
    /// Deny and interrupt.
    Interrupt,
    /// An answer of a kind that was not asked for.
    Wrong,
    /// No answer.
    Error,
    /// Nobody there.
    Gone,
}

/// A piece of a model's answer.
#[derive(Clone, Debug)]
pub enum Piece {
    /// The start, or a sign of life.
    Alive(bool),
    /// Text, perhaps empty.
    Text(String),
    /// Thinking, perhaps empty.
    Thinking(String),
    /// A whole call.
    Call(Tool),
    /// A call that never gets whole.
    HalfCall,
    /// Usage.
    Usage(u32),
    /// The completion signal.
    Finish,
    /// The end of the body.
    End,
    /// A failure.
    Failed(FailureKind, bool, Option<u64>),
}

/// The tools that a model may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// A rule denies it.
    Denied,
    /// A rule asks.
    Asked,
    /// There is no such tool.
    Missing,
    /// Reads, with arguments that aren't JSON.
    Broken,
}

impl Tool {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Tool::Read | Tool::Broken => "read",
            Tool::Write => "write",
            Tool::Denied => "denied",
            Tool::Asked => "asked",
            Tool::Missing => "missing",
        }
    }

    const fn args(self) -> &'static str {
        match self {
            Tool::Broken => "{\"path\": ",
            Tool::Read | Tool::Write | Tool::Denied | Tool::Asked | Tool::Missing => {
                "{\"path\": \"a\"}"
            }
        }
    }

    /// The tools that exist, for a configuration.
    pub fn specs() -> Vec<ToolSpec> {
        let kinds = [
            (Tool::Read, SideEffect::Read),
            (Tool::Write, SideEffect::Write),
            (Tool::Denied, SideEffect::Shell),
            (Tool::Asked, SideEffect::Read),
        ];
        kinds
            .map(|(tool, side_effect)| spec(tool.name(), side_effect))
            .to_vec()
    }
}

/// A tool that takes any object.
pub fn spec(name: &str, side_effect: SideEffect) -> ToolSpec {
    ToolSpec {
        name: Text::from(name),
        label: None,
        description: Text::from(name),
        schema: RawJson(Text::from("{\"type\":\"object\"}")),
        side_effect,
        hidden: false,
        uri_arg: None,
        route: Route::Driver,
    }
}

/// News of a call.
#[derive(Clone, Copy, Debug)]
pub enum ToolNews {
    /// Output so far.
    Progress,
    /// A file was changed.
    File,
    /// It worked.
    Ok,
    /// It failed.
    Failed,
    /// The driver's own time limit.
    TimedOut,
    /// It worked, and ends the turn.
    EndsTurn,
}

/// How a hook judges.
#[derive(Clone, Copy, Debug)]
pub enum Judging {
    /// No opinion.
    Pass,
    /// Yes.
    Allow,
    /// No.
    Deny,
    /// Ask.
    Ask,
    /// It failed.
    Fails,
    /// Adds context.
    Adds,
}

/// A script of up to `len` actions.
pub fn scripts(len: usize) -> impl Strategy<Value = Vec<Action>> {
    vec(action(), 1..len)
}

fn action() -> impl Strategy<Value = Action> {
    let pick = any::<u8>();
    prop_oneof![
        12 => deliver().prop_map(Action::Prompt),
        1 => pick.prop_map(Action::Repeat),
        2 => pick.prop_map(Action::Withdraw),
        1 => pick.prop_map(Action::Promote),
        6 => cancel().prop_map(Action::Cancel),
        8 => (pick, answering()).prop_map(|(pick, how)| Action::Reply(pick, how)),
        1 => pick.prop_map(Action::LateReply),
        3 => setting().prop_map(Action::Set),
        2 => pick.prop_map(Action::Other),
        1 => any::<bool>().prop_map(Action::Close),
        14 => (pick, piece()).prop_map(|(pick, piece)| Action::Model(pick, piece)),
        14 => (pick, vec(tool(), 0..4)).prop_map(|(pick, calls)| Action::Answer(pick, calls)),
        16 => (pick, tool_news()).prop_map(|(pick, news)| Action::Tool(pick, news)),
        8 => (pick, judging()).prop_map(|(pick, how)| Action::Hook(pick, how)),
        6 => (pick, prop::bool::weighted(0.8)).prop_map(|(pick, ok)| Action::Store(pick, ok)),
        3 => pick.prop_map(Action::Late),
        2 => pick.prop_map(Action::Settle),
        1 => pick.prop_map(Action::Twice),
        4 => (0u64..5_000_000).prop_map(Action::Pass),
        4 => Just(Action::Jump),
        3 => prop_oneof![Just(0), 0u64..100_000_000].prop_map(Action::Skip),
        1 => Just(Action::Fault),
    ]
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
    ]
}

fn judging() -> impl Strategy<Value = Judging> {
    prop_oneof![
        4 => Just(Judging::Pass),
        1 => Just(Judging::Allow),
        2 => Just(Judging::Deny),
        1 => Just(Judging::Ask),
        1 => Just(Judging::Fails),
        1 => Just(Judging::Adds),
    ]
}

fn nth<T: Copy>(list: &[T], pick: u8) -> Option<T> {
    list.get(usize::from(pick).checked_rem(list.len())?)
        .copied()
}

/// Plays a script, from first to last, or until a law is broken.
pub fn play<A: Agent>(world: &mut World<A>, script: &[Action]) {
    for action in script {
        act(world, action);
        if !world.faults.is_empty() {
            break;
        }
    }
}

/// Lets one thing happen. What doesn't fit is left out.
pub fn act<A: Agent>(world: &mut World<A>, action: &Action) {
    match action {
        Action::Prompt(deliver) => {
            let prompt = world.prompt("do it", deliver.clone());
            world.command(Command::Prompt(prompt));
        }
        Action::Repeat(pick) => {
            if let Some(id) = nth(&world.prompts, *pick) {
                let content = vec![Block::Text(Text::from("do it"))];
                let deliver = Deliver::Queue(Rank::Next);
                world.command(Command::Prompt(Prompt {
                    id,
                    tag: None,
                    content,
                    deliver,
                    literal: false,
                }));
            }
        }
        Action::Withdraw(pick) => {
            if let Some(prompt) = nth(&world.prompts, *pick) {
                world.command(Command::Withdraw(prompt));
            }
        }
        Action::Promote(pick) => {
            if let Some(prompt) = nth(&world.prompts, *pick) {
                world.command(Command::Promote(prompt));
            }
        }
        Action::Cancel(what) => {
            world.command(Command::Cancel {
                what: what.clone(),
                why: CancelWhy::Host,
            });
        }
        Action::Reply(pick, how) => reply(world, *pick, *how),
        Action::LateReply(pick) => {
            let ask = nth(&world.closed_questions, *pick).unwrap_or(AskId(1 << 40));
            world.command(Command::Reply {
                ask,
                reply: Ok(Reply::Allow {
                    input: None,
                    updates: vec![],
                }),
            });
        }
        Action::Set(setting) => {
            world.command(Command::Set(setting.clone()));
        }
        Action::Other(pick) => other(world, *pick),
        Action::Close(drain) => {
            world.command(Command::Close { drain: *drain });
        }
        Action::Model(pick, piece) => model(world, *pick, piece),
        Action::Answer(pick, calls) => {
            let Some(request) = nth(&requests(world, true), *pick) else {
                return;
            };
            let pieces = calls.iter().map(|tool| Piece::Call(*tool));
            for piece in std::iter::once(Piece::Text("so ".into()))
                .chain(pieces)
                .chain([Piece::Finish, Piece::End])
            {
                send(world, request, &piece);
            }
        }
        Action::Tool(pick, news) => tool_news_comes(world, *pick, *news),
        Action::Hook(pick, how) => {
            let ids = live(world, |id| {
                if let EffectId::Hook(hook) = id {
                    Some(*hook)
                } else {
                    None
                }
            });
            if let Some(hook) = nth(&ids, *pick) {
                world.give(Given::Else(Input::Hook {
                    hook,
                    outcome: judge(*how),
                }));
            }
        }
        Action::Store(pick, ok) => {
            let ids = live(world, |id| {
                if let EffectId::Write(write) = id {
                    Some(*write)
                } else {
                    None
                }
            });
            if let Some(write) = nth(&ids, *pick) {
                let ok = if *ok {
                    Ok(())
                } else {
                    Err(Text::from("disk full"))
                };
                world.give(Given::Else(Input::Store { write, ok }));
            }
        }
        Action::Late(pick) => {
            let stopped: Vec<EffectId> = world
                .work
                .iter()
                .filter(|(_, work)| work.stopped)
                .map(|(id, _)| *id)
                .collect();
            if let Some(id) = nth(&stopped, *pick) {
                settle(world, id);
            }
        }
        Action::Settle(pick) => {
            let open: Vec<EffectId> = world.work.keys().copied().collect();
            if let Some(id) = nth(&open, *pick) {
                settle(world, id);
            }
        }
        Action::Twice(pick) => {
            let settled: Vec<EffectId> = world.settled_ids().copied().collect();
            if let Some(given) = nth(&settled, *pick).and_then(settlement) {
                let now = world.now;
                world.give_wrong(&given, now, Misuse::AlreadySettled);
            }
        }
        Action::Pass(us) => world.pass(*us),
        Action::Jump => {
            world.jump();
        }
        Action::Skip(us) => world.skip(*us),
        Action::Fault => world.give(Given::Else(Input::Fault {
            detail: Text::from("crash"),
        })),
    }
}

fn live<A: Agent, T>(world: &World<A>, of: impl Fn(&EffectId) -> Option<T>) -> Vec<T> {
    world
        .work
        .iter()
        .filter(|(_, work)| !work.stopped)
        .filter_map(|(id, _)| of(id))
        .collect()
}

fn requests<A: Agent>(world: &World<A>, live_only: bool) -> Vec<RequestId> {
    let of = |id: &EffectId| {
        if let EffectId::Model(request) = id {
            Some(*request)
        } else {
            None
        }
    };
    world
        .work
        .iter()
        .filter(|(_, work)| !(live_only && work.stopped))
        .filter_map(|(id, _)| of(id))
        .collect()
}

fn reply<A: Agent>(world: &mut World<A>, pick: u8, how: Answering) {
    let open: Vec<AskId> = world
        .mirror
        .questions()
        .iter()
        .map(|open| open.ask)
        .collect();
    let Some(ask) = nth(&open, pick) else { return };
    let Some(body) = world.mirror.question(ask).map(|open| open.body.clone()) else {
        return;
    };
    world.command(Command::Reply {
        ask,
        reply: answer_to(&body, how),
    });
}

/// An answer of the kind that a question wants.
pub fn answer_to(body: &Ask, how: Answering) -> Result<Reply, ReplyFault> {
    let text = || Text::from("because");
    match how {
        Answering::Error => return Err(ReplyFault::HostError(text())),
        Answering::Gone => return Err(ReplyFault::HostGone),
        Answering::Yes
        | Answering::Changed
        | Answering::No
        | Answering::Interrupt
        | Answering::Wrong => {}
    }
    let yes = matches!(how, Answering::Yes | Answering::Changed);
    Ok(match (body, how) {
        (Ask::Permission(_), Answering::Wrong) => Reply::Choice(None),
        (_, Answering::Wrong) => Reply::Deny {
            message: None,
            interrupt: false,
        },
        (Ask::Permission(_), _) if yes => {
            let changed = matches!(how, Answering::Changed);
            let input = changed.then(|| RawJson(Text::from("{\"path\": \"b\"}")));
            Reply::Allow {
                input,
                updates: vec![],
            }
        }
        (Ask::Permission(_), _) => Reply::Deny {
            message: Some(text()),
            interrupt: matches!(how, Answering::Interrupt),
        },
        (Ask::Hook(_), _) => Reply::Hook(Box::new(if yes {
            HookReply::pass()
        } else {
            HookReply::deny(text())
        })),
        (Ask::Tool { .. }, _) => Reply::Tool {
            content: vec![Block::Text(text())],
            is_error: !yes,
            details: None,
        },
        (Ask::Uri { .. }, _) => Reply::Uri {
            body: text(),
            mime: None,
            notes: vec![],
            immutable: None,
        },
        (Ask::Choice(_), _) => Reply::Choice(yes.then(text)),
    })
}

fn judge(how: Judging) -> Result<HookReply, Text> {
    let with = |verdict| HookReply {
        verdict,
        context: None,
        go_on: true,
        stop_reason: None,
    };
    Ok(match how {
        Judging::Pass => HookReply::pass(),
        Judging::Allow => with(HookVerdict::Allow { input: None }),
        Judging::Deny => HookReply::deny(Text::from("no")),
        Judging::Ask => with(HookVerdict::Ask),
        Judging::Fails => return Err(Text::from("exit 2")),
        Judging::Adds => HookReply {
            context: Some(Text::from("note")),
            ..HookReply::pass()
        },
    })
}

fn other<A: Agent>(world: &mut World<A>, pick: u8) {
    let commands = [
        Command::Barrier,
        Command::Reload,
        Command::Compact { instructions: None },
        Command::Goal(GoalCommand::Get),
        Command::Job(JobCommand::Snapshot),
        Command::Recall(vec![]),
        Command::Session(SessionCommand::Fork(None)),
        Command::Rewind {
            to: RewindTo::Checkpoint(CheckpointId(1)),
            dry_run: true,
        },
        Command::Offer(Offer::Hooks(vec![])),
        Command::Cancel {
            what: CancelWhat::Shell,
            why: CancelWhy::Host,
        },
        Command::ReplyPart {
            ask: AskId(1 << 40),
            content: vec![],
        },
        Command::Withdraw(PromptId(1 << 40)),
    ];
    if let Some(command) = commands.get(usize::from(pick) % commands.len()) {
        world.command(command.clone());
    }
}

fn model<A: Agent>(world: &mut World<A>, pick: u8, piece: &Piece) {
    if let Some(request) = nth(&requests(world, false), pick) {
        send(world, request, piece);
    }
}

/// Sends a piece of an answer to a request that isn't settled.
pub fn send<A: Agent>(world: &mut World<A>, request: RequestId, piece: &Piece) {
    // Numbers only grow, so that no two calls of an answer share one.
    let index = u32::try_from(world.given.len()).unwrap_or(u32::MAX);
    let mut chunk = |chunk| {
        if world.work.contains_key(&EffectId::Model(request)) {
            world.give(Given::Model(request, chunk));
        }
    };
    match piece {
        Piece::Alive(true) => chunk(Chunk::Begin),
        Piece::Alive(false) => chunk(Chunk::Alive),
        Piece::Text(text) => chunk(Chunk::Text(text.clone())),
        Piece::Thinking(text) => chunk(Chunk::Thinking(text.clone())),
        Piece::Call(tool) => {
            // Every third provider id is missing, and some come twice.
            let id = (!index.is_multiple_of(3)).then(|| format!("n{}", index % 4));
            chunk(Chunk::CallBegin {
                index,
                id,
                name: tool.name().into(),
            });
            let (head, tail) = tool.args().split_at(4);
            chunk(Chunk::CallArgs {
                index,
                text: head.into(),
            });
            chunk(Chunk::CallArgs {
                index,
                text: tail.into(),
            });
            chunk(Chunk::CallEnd { index });
        }
        Piece::HalfCall => {
            chunk(Chunk::CallBegin {
                index,
                id: None,
                name: "read".into(),
            });
            chunk(Chunk::CallArgs {
                index,
                text: "{".into(),
            });
        }
        Piece::Usage(tokens) => {
            let tokens = Some(u64::from(*tokens));
            chunk(Chunk::Usage(Usage {
                input: tokens,
                output: tokens,
                ..Usage::default()
            }));
        }
        Piece::Finish => chunk(Chunk::Finish("stop".into())),
        Piece::End => chunk(Chunk::End),
        Piece::Failed(kind, reached, retry_after_us) => {
            let retryable = !matches!(kind, FailureKind::Auth | FailureKind::ContextFull);
            let failure = Failure {
                retryable,
                ..Failure::new(*kind, "went wrong")
            };
            // What never reached the endpoint had no answer to say anything else.
            let reached = *reached || !matches!(kind, FailureKind::Transport);
            chunk(Chunk::Failed {
                failure,
                reached,
                retry_after_us: *retry_after_us,
            });
        }
    }
}

fn tool_news_comes<A: Agent>(world: &mut World<A>, pick: u8, news: ToolNews) {
    let ids = live(world, |id| {
        if let EffectId::Tool(call) = id {
            Some(*call)
        } else {
            None
        }
    });
    let Some(call) = nth(&ids, pick) else { return };
    let done = |outcome| Given::tool_done(call, outcome, "output");
    world.give(match news {
        ToolNews::Progress => Given::tool(
            call,
            ToolUpdate::Progress(Progress::Append(vec![Block::Text(Text::from("so far"))])),
        ),
        ToolNews::File => Given::tool(
            call,
            ToolUpdate::FileChanged {
                path: Text::from("a"),
                diff: Text::from("+x"),
                added: 1,
                removed: 0,
            },
        ),
        ToolNews::Ok => done(ToolOutcome::Ok),
        ToolNews::Failed => done(ToolOutcome::Failed),
        ToolNews::TimedOut => done(ToolOutcome::TimedOut),
        ToolNews::EndsTurn => done(ToolOutcome::EndedTurn),
    });
}

/// The plainest settlement of an effect.
pub fn settlement(id: EffectId) -> Option<Given> {
    Some(match id {
        EffectId::Model(request) => Given::Model(request, Chunk::End),
        EffectId::Tool(call) => Given::tool_done(call, ToolOutcome::Ok, "done"),
        EffectId::Snapshot(call) => Given::tool(
            call,
            ToolUpdate::Snapshotted {
                files: vec![],
                sequence: 1,
            },
        ),
        EffectId::Hook(hook) => Given::Else(Input::Hook {
            hook,
            outcome: Ok(HookReply::pass()),
        }),
        EffectId::Write(write) => Given::Else(Input::Store { write, ok: Ok(()) }),
        EffectId::Reload(command) => {
            let outcome = Ok(Answer::Reloaded {
                tools: 4,
                skills: 0,
                changes: vec![],
            });
            Given::Else(Input::Reloaded { command, outcome })
        }
        EffectId::Restore(checkpoint) => {
            let outcome = Ok(Answer::Rewound {
                can: true,
                files: vec![],
                added: 0,
                removed: 0,
            });
            Given::Else(Input::Restored {
                checkpoint,
                outcome,
            })
        }
        EffectId::Shell(command) => {
            let outcome = ToolUpdate::Done {
                outcome: ToolOutcome::Ok,
                content: vec![],
                show: None,
            };
            Given::Else(Input::Shell { command, outcome })
        }
        EffectId::Open(command) => Given::Else(Input::Opened {
            command,
            info: Err(Text::from("no")),
        }),
        EffectId::Run(_) => return None,
    })
}

/// Settles an effect in the plainest way; a live model request is answered.
pub fn settle<A: Agent>(world: &mut World<A>, id: EffectId) {
    if let EffectId::Model(request) = id
        && world.work.get(&id).is_some_and(|work| !work.stopped)
    {
        send(world, request, &Piece::Text("fine".into()));
        send(world, request, &Piece::Finish);
    }
    if let Some(given) = settlement(id).filter(|_| world.work.contains_key(&id)) {
        world.give(given);
    }
}

/// How a story is brought to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every question is allowed, every effect settles.
    Willing,
    /// Every question is denied, every effect settles.
    Unwilling,
    /// Nobody answers and nothing settles; only time passes.
    Silent,
}

/// Lets everything that is open come to its end, and then closes the session.
pub fn finish<A: Agent>(world: &mut World<A>, ending: Ending, drain: bool) {
    quiesce(world, ending);
    world.command(Command::Close { drain });
    quiesce(world, ending);
    if world.faults.is_empty() && !world.closed() && ending != Ending::Silent {
        let open = (
            world.mirror.turn().cloned(),
            world.mirror.queue().to_vec(),
            world.work.len(),
        );
        world.faults.push(format!(
            "S-55: closed with drain {drain}, and it isn't: {open:?}"
        ));
    }
}

/// Lets everything that is open come to its end.
pub fn quiesce<A: Agent>(world: &mut World<A>, ending: Ending) {
    for _ in 0..2_000 {
        if !world.faults.is_empty() {
            return;
        }
        let question = world
            .mirror
            .questions()
            .first()
            .map(|open| (open.ask, open.body.clone()));
        let work = world.work.keys().next().copied();
        match (question, work) {
            (Some((ask, body)), _) if ending != Ending::Silent => {
                let how = if ending == Ending::Willing {
                    Answering::Yes
                } else {
                    Answering::No
                };
                world.command(Command::Reply {
                    ask,
                    reply: answer_to(&body, how),
                });
            }
            (_, Some(id)) if ending != Ending::Silent => settle(world, id),
            _ => {
                if !world.jump() {
                    return;
                }
            }
        }
    }
    world.faults.push("it never comes to rest".to_owned());
}
