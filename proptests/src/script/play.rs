//! Letting things happen.

use std::sync::Arc;

use turnwire::vocab::{laws::EffectId, mirror::Mirror, *};

use super::*;
use crate::world::{Chunk, Given, World};

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

/// Who sends commands: what it knows of the agent, which is what the events told it.
pub trait Host {
    /// The state, as the events tell it.
    fn mirror(&self) -> &Mirror;
    /// Prompts sent so far.
    fn prompts(&self) -> &[PromptId];
    /// Questions that are closed.
    fn closed_questions(&self) -> &[AskId];
    /// A fresh prompt.
    fn prompt(&mut self, text: &str, deliver: Deliver) -> Prompt;
}

impl<A: Agent> Host for World<A> {
    fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    fn prompts(&self) -> &[PromptId] {
        &self.prompts
    }

    fn closed_questions(&self) -> &[AskId] {
        &self.closed_questions
    }

    fn prompt(&mut self, text: &str, deliver: Deliver) -> Prompt {
        World::prompt(self, text, deliver)
    }
}

/// The command that a host's action comes to now. `None`: what it acts on isn't there, or it isn't the host's.
pub fn command(host: &mut impl Host, action: &Action) -> Option<Command> {
    Some(match action {
        Action::Prompt(deliver) => Command::Prompt(host.prompt("do it", deliver.clone())),
        Action::Repeat(pick) => Command::Prompt(Prompt {
            id: nth(host.prompts(), *pick)?,
            tag: None,
            content: vec![Block::Text(Text::from("do it"))],
            deliver: Deliver::Queue(Rank::Next),
            literal: false,
            details: None,
        }),
        Action::Withdraw(pick) => Command::Withdraw(nth(host.prompts(), *pick)?),
        Action::Promote(pick) => Command::Promote(nth(host.prompts(), *pick)?),
        Action::Cancel(what) => Command::Cancel {
            what: what.clone(),
            why: CancelWhy::Host,
        },
        Action::Reply(pick, how) => {
            let open: Vec<AskId> = host.mirror().questions().iter().map(|q| q.ask).collect();
            let ask = nth(&open, *pick)?;
            let body = &host.mirror().question(ask)?.body;
            Command::Reply {
                ask,
                reply: answer_to(body, *how),
            }
        }
        Action::LateReply(pick) => Command::Reply {
            ask: nth(host.closed_questions(), *pick).unwrap_or(AskId(1 << 40)),
            reply: Ok(Reply::Allow {
                input: None,
                updates: vec![],
            }),
        },
        Action::Set(setting) => Command::Set(setting.clone()),
        Action::Compact => Command::Compact {
            instructions: Some(Text::from("briefly")),
        },
        Action::Rewind(pick, dry_run) => Command::Rewind {
            to: RewindTo::Prompt(nth(host.prompts(), *pick).unwrap_or(PromptId(1 << 40))),
            dry_run: *dry_run,
        },
        Action::Other(pick) => return other(*pick),
        Action::Own(pick) if pick % 16 == 14 => {
            let run = RunId(1 + u64::from(pick / 32 % 4));
            if pick / 16 % 2 == 0 {
                return Some(Command::Cancel {
                    what: CancelWhat::Run(run),
                    why: CancelWhy::Host,
                });
            }
            let prompt = host.prompt("rather this", Deliver::IfIdle);
            Command::SteerRun { run, prompt }
        }
        Action::Own(pick) => own(*pick),
        Action::Close(drain) => Command::Close { drain: *drain },
        Action::Model(..)
        | Action::Answer(..)
        | Action::Tool(..)
        | Action::Hook(..)
        | Action::Store(..)
        | Action::Late(_)
        | Action::Settle(_)
        | Action::Twice(_)
        | Action::Pass(_)
        | Action::Jump
        | Action::Skip(_)
        | Action::Fault => return None,
    })
}

/// Lets one thing happen. What doesn't fit is left out.
pub fn act<A: Agent>(world: &mut World<A>, action: &Action) {
    match action {
        Action::Prompt(_)
        | Action::Repeat(_)
        | Action::Withdraw(_)
        | Action::Promote(_)
        | Action::Cancel(_)
        | Action::Reply(..)
        | Action::LateReply(_)
        | Action::Set(_)
        | Action::Compact
        | Action::Rewind(..)
        | Action::Other(_)
        | Action::Own(_)
        | Action::Close(_) => {
            if let Some(command) = command(world, action) {
                world.command(command);
            }
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
            let jobs: Vec<JobId> = world.jobs.keys().copied().collect();
            if let Some(job) = nth(&jobs, *pick) {
                let update = job_news(*pick);
                return world.give(Given::Else(Input::Job { job, update }));
            }
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

/// An answer of the kind that a question wants.
pub fn answer_to(body: &Ask, how: Answering) -> Result<Reply, ReplyFault> {
    let text = || Text::from("because");
    match how {
        Answering::Error => return Err(ReplyFault::HostError(text())),
        Answering::Gone => return Err(ReplyFault::HostGone),
        Answering::Yes
        | Answering::Changed
        | Answering::Granted
        | Answering::No
        | Answering::Interrupt
        | Answering::Wrong => {}
    }
    let yes = matches!(
        how,
        Answering::Yes | Answering::Changed | Answering::Granted
    );
    Ok(match (body, how) {
        (Ask::Permission(_), Answering::Wrong) => Reply::Choice(None),
        (_, Answering::Wrong) => Reply::Deny {
            message: None,
            interrupt: false,
        },
        (Ask::Permission(_), _) if yes => {
            let changed = matches!(how, Answering::Changed);
            let input = changed.then(|| RawJson(Text::from("{\"path\": \"b\"}")));
            let granted = matches!(how, Answering::Granted);
            let updates = if granted { updates() } else { vec![] };
            Reply::Allow { input, updates }
        }
        (Ask::Permission(_), _) => Reply::Deny {
            message: Some(text()),
            interrupt: matches!(how, Answering::Interrupt),
        },
        (Ask::Hook(_), Answering::Granted) => Reply::Hook(Box::new(grants())),
        (Ask::Hook(_), Answering::Interrupt) => Reply::Hook(Box::new(interrupts())),
        (Ask::Hook(_), Answering::Changed) => Reply::Hook(Box::new(stops())),
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

/// Changes of the rules: one that is kept, and folders.
fn updates() -> Vec<PermissionUpdate> {
    vec![
        PermissionUpdate::Rules {
            op: SetOp::Add,
            behaviour: Text::from("allow"),
            rules: vec![(Text::from("write"), Some(Text::from("a")))],
            keep: Keep::Local,
        },
        PermissionUpdate::Directories {
            op: SetOp::Add,
            paths: vec![Text::from("/elsewhere")],
            keep: Keep::Session,
        },
    ]
}

fn grants() -> HookReply {
    HookReply {
        verdict: HookVerdict::Allow { input: None },
        updates: updates(),
        ..HookReply::pass()
    }
}

fn interrupts() -> HookReply {
    HookReply {
        interrupt: true,
        ..HookReply::deny(Text::from("no"))
    }
}

fn stops() -> HookReply {
    HookReply {
        go_on: false,
        stop_reason: Some(Text::from("enough")),
        ..HookReply::pass()
    }
}

fn judge(how: Judging) -> Result<HookReply, Text> {
    let with = |verdict| HookReply {
        verdict,
        ..HookReply::pass()
    };
    Ok(match how {
        Judging::Pass => HookReply::pass(),
        Judging::Allow => with(HookVerdict::Allow { input: None }),
        Judging::Deny => HookReply::deny(Text::from("no")),
        Judging::Ask => with(HookVerdict::Ask),
        Judging::Fails => return Err(Text::from("exit 2")),
        Judging::Grants => grants(),
        Judging::Interrupts => interrupts(),
        Judging::Stops => stops(),
        Judging::Adds => HookReply {
            context: Some(Text::from("note")),
            ..HookReply::pass()
        },
    })
}

/// A reply with a call of the host's, and its result.
fn batch() -> Vec<Arc<Message>> {
    let call = CallId(1);
    let name = Text::from("read");
    let message = |role, block| {
        Arc::new(Message {
            id: MessageId(1),
            role,
            content: vec![Arc::new(block)],
            origin: Origin::History,
            prompt: None,
            about: None,
            at_ms: 0,
            details: None,
        })
    };
    let tool = Role::Tool {
        call,
        name: name.clone(),
        error: false,
    };
    let reply = Block::ToolUse {
        call,
        provider_id: Some(Text::from("n1")),
        name,
        input: ToolInput::Object(RawJson(Text::from("{}"))),
    };
    vec![
        message(Role::Assistant, reply),
        message(tool, Block::Text(Text::from("recalled"))),
    ]
}

fn other(pick: u8) -> Option<Command> {
    let points = [
        HookPoint::PreTool,
        HookPoint::Permission,
        HookPoint::PostTool,
        HookPoint::TurnEnd,
        HookPoint::PreCompact,
        HookPoint::PromptSubmit,
    ];
    let hooks = points.map(|point| {
        let key = Text::from(format!("host {point:?}"));
        HookSpec {
            key,
            point,
            matcher: None,
            timeout_us: None,
        }
    });
    let commands = [
        Command::Barrier,
        Command::Reload,
        Command::Compact { instructions: None },
        Command::Goal(GoalCommand::Get),
        Command::Job(JobCommand::Snapshot),
        Command::Recall(vec![]),
        Command::Recall(batch()),
        Command::Session(match pick / 19 % 4 {
            0 => SessionCommand::Fork(None),
            1 => SessionCommand::New { parent: None },
            2 => SessionCommand::Switch(Text::from("there")),
            _ => SessionCommand::Branch(Text::from("1")),
        }),
        Command::Rewind {
            to: RewindTo::Checkpoint(CheckpointId(1)),
            dry_run: true,
        },
        Command::Offer(Offer::Hooks(vec![])),
        Command::Offer(Offer::Hooks(hooks.to_vec())),
        Command::Offer(Offer::Tools(vec![ToolSpec {
            route: Route::Host,
            ..spec("missing", SideEffect::Read)
        }])),
        Command::Offer(Offer::Tools(vec![])),
        Command::Cancel {
            what: CancelWhat::Shell,
            why: CancelWhy::Host,
        },
        Command::ReplyPart {
            ask: AskId(1 << 40),
            content: vec![],
        },
        Command::Withdraw(PromptId(1 << 40)),
        Command::Offer(Offer::Uris(vec![])),
        Command::Offer(Offer::Uris(vec![UriSpec {
            scheme: Text::from("db"),
            description: None,
            writable: pick.is_multiple_of(2),
            immutable: false,
        }])),
        Command::Shell {
            command: Text::from("ls"),
        },
    ];
    let at = usize::from(pick) % commands.len();
    commands.into_iter().nth(at)
}

/// What becomes of a change of the session: there is one to go to, it is the very one, or there is none.
fn other_session(command: CommandId) -> Result<Box<OtherSession>, OpenFault> {
    let recalled = (1..).zip(batch()).map(|(id, message)| {
        let mut message = Message::clone(&message);
        message.id = MessageId(id);
        Arc::new(message)
    });
    match command.0 % 4 {
        0 => Err(OpenFault::Missing),
        1 => Ok(Box::new(OtherSession {
            session: Text::from("s"),
            same: true,
            ..OtherSession::default()
        })),
        2 => Ok(Box::new(OtherSession {
            session: Text::from("fresh"),
            ..OtherSession::default()
        })),
        _ => Ok(Box::new(OtherSession {
            session: Text::from("other"),
            continued: true,
            history: recalled.collect(),
            ..OtherSession::default()
        })),
    }
}

/// A command about what an agent does by itself.
fn own(pick: u8) -> Command {
    match pick % 8 {
        0 => Command::Goal(GoalCommand::Pause),
        1 => Command::Goal(GoalCommand::Resume),
        2 => Command::Goal(GoalCommand::Clear),
        3 | 4 => Command::Job(JobCommand::Stop {
            job: Text::from("sleep"),
            generation: pick.is_multiple_of(3).then(|| Text::from("s")),
        }),
        5 => Command::Cancel {
            what: CancelWhat::Job(JobId(1 + u64::from(pick / 8 % 4))),
            why: CancelWhy::Host,
        },
        _ => Command::Goal(GoalCommand::Set {
            text: Text::from("be done"),
            auto_turns: None,
            token_budget: pick.is_multiple_of(3).then_some(100_000),
        }),
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
    let nests = world.nests;
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
            let tool = if nests { &tool.or_task(index) } else { tool };
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
        Piece::Odd(which) => chunk(odd(*which)),
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

/// What a driver says of a job.
fn job_news(pick: u8) -> JobUpdate {
    match pick % 6 {
        0 | 1 => JobUpdate::Ended(JobState::Exited(0)),
        2 => JobUpdate::Ended(JobState::Stopped(Text::from("time_limit"))),
        3 => JobUpdate::Output(JobOutput {
            bytes: u64::from(pick),
            ..JobOutput::default()
        }),
        4 => JobUpdate::Unkept(Text::from("the disk is full")),
        _ => JobUpdate::Ended(JobState::Interrupted),
    }
}

/// A job; one in three is a helper that never ends by itself.
fn job(call: CallId) -> JobStart {
    let text = Text::from("sleep");
    let finite = !call.0.is_multiple_of(3);
    JobStart {
        id: text.clone(),
        generation: Text::from("s"),
        kind: if finite {
            JobKind::Shell
        } else {
            JobKind::Other(text.clone())
        },
        command: text,
        description: None,
        cwd: None,
        finite,
        times_ms: [None; 4],
    }
}

/// Pieces out of place, numbers out of range, words without meaning.
fn odd(which: u8) -> Chunk {
    let most = Some(u64::MAX);
    let empty = String::new;
    match which % 12 {
        0 => Chunk::CallArgs {
            index: u32::MAX,
            text: "{}".into(),
        },
        1 => Chunk::CallEnd { index: u32::MAX },
        2 => Chunk::CallBegin {
            index: 0,
            id: Some(empty()),
            name: empty(),
        },
        3 => Chunk::CallArgs {
            index: 0,
            text: "}{".into(),
        },
        4 => Chunk::CallEnd { index: 0 },
        5 => Chunk::Finish(empty()),
        6 => Chunk::Signature("sig".into()),
        7 => Chunk::Redacted(empty()),
        8 => Chunk::Begin,
        9 => Chunk::CallArgs {
            index: 0,
            text: empty(),
        },
        10 => Chunk::Text("\0\u{feff}\u{2029}".into()),
        _ => Chunk::Usage(Usage {
            input: most,
            cache_read: most,
            cache_write: most,
            output: most,
            reasoning: most,
        }),
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
        ToolNews::Network => Given::tool(
            call,
            ToolUpdate::NeedsNetwork {
                host: Text::from("example.org"),
            },
        ),
        ToolNews::Detaches => Given::tool(call, ToolUpdate::Detached(Box::new(job(call)))),
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
        EffectId::Restore(command) => {
            let outcome = Ok(Box::default());
            Given::Else(Input::Restored { command, outcome })
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
            other: other_session(command),
        }),
        EffectId::Run(run) => Given::Else(Input::Run {
            run,
            event: Box::new(Event {
                at: Now::default(),
                run: RunId::MAIN,
                seen: Seen::Real,
                what: What::RunEnded {
                    run,
                    status: RunStatus::Completed,
                    steps: 1,
                    usage: None,
                    detail: Text::from("done"),
                },
            }),
        }),
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
