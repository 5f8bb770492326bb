//! A session and a hand to drive it with: inputs go in by name, outputs come out as short words.

use alloc::{
    boxed::Box,
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use super::{nested, nested::id_word, own};
use crate::session::{
    Session, SessionConfig, SessionTree,
    config::{LocalHook, ModelConfig, Rule, RuleBehaviour},
    tree::LikeParent,
};
use crate::vocab::*;

pub const SECOND: u64 = 1_000_000;

/// A tool with a schema that takes anything.
pub fn tool(name: &str, side_effect: SideEffect) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        label: None,
        description: "".into(),
        schema: RawJson("{}".into()),
        side_effect,
        hidden: false,
        uri_arg: None,
        route: Route::Driver,
    }
}

pub fn rule(behaviour: RuleBehaviour, tool: &str) -> Rule {
    Rule {
        behaviour,
        tool: tool.into(),
        pattern: None,
    }
}

pub fn hook(point: HookPoint) -> LocalHook {
    let spec = HookSpec {
        key: "hook".into(),
        point,
        matcher: None,
        timeout_us: None,
    };
    LocalHook {
        spec,
        decides: true,
    }
}

/// A hook that only looks on.
pub fn observer(point: HookPoint) -> LocalHook {
    LocalHook {
        decides: false,
        ..hook(point)
    }
}

/// The world of the traces: mode Ask, two calls side by side, order Call.
pub fn config() -> SessionConfig {
    let mut config = SessionConfig::new(ModelConfig::new("model", 0));
    config.tools = vec![
        tool("read", SideEffect::Read),
        tool("readask", SideEffect::Read),
        tool("write", SideEffect::Write),
        tool("writeask", SideEffect::Write),
        tool("bash", SideEffect::Shell),
    ];
    config.rules = vec![
        rule(RuleBehaviour::Allow, "write"),
        rule(RuleBehaviour::Ask, "readask"),
        rule(RuleBehaviour::Ask, "writeask"),
    ];
    config.limits.running_tools = 2;
    config.timeouts.stall_us = None;
    config.timeouts.hook_us = None;
    config
}

pub fn info() -> Box<SessionInfo> {
    Box::new(SessionInfo {
        session: "s1".into(),
        name: None,
        file: None,
        generation: "g1".into(),
        root: None,
        cwd: "/".into(),
        product: "test".into(),
        continued: false,
        history: Vec::new(),
        summarised: Vec::new(),
        model: ModelRef {
            provider: None,
            model: "".into(),
        },
        api_model: None,
        efforts: Vec::new(),
        settings: Box::new(config().settings),
        tools: Vec::new(),
        briefing: Briefing::default(),
        mcp: Vec::new(),
        commands: Vec::new(),
        skills: Vec::new(),
        media: Vec::new(),
    })
}

/// What can be played: a session, alone or with what lies below it.
pub trait Played: Agent {
    fn main(&mut self) -> &mut Session;
}

impl Played for Session {
    fn main(&mut self) -> &mut Session {
        self
    }
}

impl Played for SessionTree {
    fn main(&mut self) -> &mut Session {
        self.main_mut()
    }
}

pub struct World<A = Session> {
    pub session: A,
    pub now: Now,
    commands: u64,
    /// The last reload.
    pub reload: CommandId,
    /// The last change of the session that the driver was asked for.
    pub opening: CommandId,
    /// The last rewind.
    pub restore: CommandId,
    /// Commands that were handed to nested runs and have no reply.
    pub handed: Vec<CommandId>,
    /// Shell commands in the order in which they began: `s1`, `s2`, …
    pub shells: Vec<CommandId>,
    /// Step numbers by request, for the short words.
    step: u32,
    /// The same of nested runs.
    steps: BTreeMap<RunId, u32>,
    /// The index of the next call of each request.
    calls: BTreeMap<u64, u32>,
    /// Calls by their block in the open message.
    blocks: BTreeMap<u32, CallId>,
    /// Requests of compactions.
    summaries: Vec<RequestId>,
    /// The laws of the neutral stream, which hold whatever a test is about.
    laws: laws::Checker,
}

impl World {
    pub fn new(config: SessionConfig) -> World {
        World::with_info(config, info())
    }

    pub fn with_info(config: SessionConfig, info: Box<SessionInfo>) -> World {
        let now = Now {
            mono_us: 0,
            unix_ms: 1_000,
        };
        World::around(Session::new(config, info, now), now)
    }
}

impl World<SessionTree> {
    /// A session whose runs are like it.
    pub fn of_tree(config: SessionConfig) -> Self {
        let now = Now {
            mono_us: 0,
            unix_ms: 1_000,
        };
        let main = Session::new(config, info(), now);
        World::around(SessionTree::new(main, LikeParent), now)
    }
}

impl<A: Played> World<A> {
    fn around(session: A, now: Now) -> Self {
        let mut world = World {
            session,
            now,
            commands: 0,
            reload: CommandId(0),
            opening: CommandId(0),
            restore: CommandId(0),
            handed: Vec::new(),
            shells: Vec::new(),
            step: 0,
            steps: BTreeMap::new(),
            calls: BTreeMap::new(),
            blocks: BTreeMap::new(),
            summaries: Vec::new(),
            laws: laws::Checker::new(laws::Scope::Session),
        };
        assert_eq!(world.drain(), ["Opened"]);
        world
    }

    pub fn at_us(&mut self, us: u64) -> &mut Self {
        self.now = Now {
            mono_us: us,
            unix_ms: 1_000 + us / 1_000,
        };
        self
    }

    /// Gives an input and takes all outputs.
    pub fn give(&mut self, input: Input<'_>) -> Vec<String> {
        let taken = input.clone();
        match self.session.handle(input, self.now) {
            Ok(()) => {
                self.laws.input(&taken);
                let words = self.drain();
                self.laws.quiet();
                assert!(
                    self.laws.violations().is_empty(),
                    "{taken:?}: {words:?}: {:?}",
                    self.laws.violations()
                );
                words
            }
            Err(misuse) => vec![format!("Misuse {misuse:?}")],
        }
    }

    pub fn command(&mut self, command: Command) -> Vec<String> {
        self.commands += 1;
        self.give(Input::Call(Call {
            id: CommandId(self.commands),
            command,
        }))
    }

    pub fn prompt(&mut self, id: u64, deliver: Deliver) -> Vec<String> {
        self.command(Command::Prompt(prompt(id, deliver)))
    }

    pub fn reply(&mut self, ask: u64, reply: Result<Reply, ReplyFault>) -> Vec<String> {
        self.command(Command::Reply {
            ask: AskId(ask),
            reply,
        })
    }

    pub fn model(&mut self, request: u64, chunk: ModelChunk<'_>) -> Vec<String> {
        self.give(Input::Model {
            request: RequestId(request),
            chunk,
        })
    }

    /// A whole call of a tool.
    pub fn call(&mut self, request: u64, name: &str, id: &str, arguments: &str) -> Vec<String> {
        let index = self.calls.entry(request).or_default();
        let number = *index;
        *index += 1;
        let mut out = self.model(
            request,
            ModelChunk::CallBegin {
                index: number,
                id: Some(id),
                name,
            },
        );
        out.extend(self.model(
            request,
            ModelChunk::CallArgs {
                index: number,
                text: arguments,
            },
        ));
        out.extend(self.model(request, ModelChunk::CallEnd { index: number }));
        out
    }

    /// The completion signal and the end.
    pub fn complete(&mut self, request: u64) -> Vec<String> {
        let mut out = self.model(request, ModelChunk::Finish("stop"));
        out.extend(self.model(request, ModelChunk::End));
        out
    }

    pub fn tool(&mut self, call: u64, outcome: ToolOutcome) -> Vec<String> {
        let content = vec![Block::Text("out".into())];
        self.give(Input::Tool {
            call: CallId(call),
            update: ToolUpdate::Done {
                outcome,
                content,
                show: None,
            },
        })
    }

    pub fn store(&mut self, write: u64, ok: bool) -> Vec<String> {
        let ok = if ok { Ok(()) } else { Err("disk full".into()) };
        self.give(Input::Store {
            write: WriteId(write),
            ok,
        })
    }

    pub fn wake(&mut self) -> Vec<String> {
        self.give(Input::Woken)
    }

    /// The estimate passes the mark.
    pub fn need_compact(&mut self) -> Vec<String> {
        let session = self.session.main();
        session.model.window = 100_000;
        let raw = session.estimate.raw();
        let mark = session.mark();
        session.estimate.reported(Some(mark), raw);
        Vec::new()
    }

    /// Whether a request is a compaction's.
    pub fn is_compaction(&self, request: u64) -> bool {
        self.summaries.contains(&RequestId(request))
    }

    /// All outputs as short words; deltas of one block are one.
    pub fn drain(&mut self) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        while let Some(output) = self.session.poll_output() {
            self.laws.output(&output);
            let word = match output {
                Output::Event(event) => {
                    let event = event.clone();
                    if event.run == RunId::MAIN {
                        self.event(&event.what)
                    } else {
                        let own = self.steps.remove(&event.run).unwrap_or(0);
                        let main = core::mem::replace(&mut self.step, own);
                        let word = self.event(&event.what);
                        let own = core::mem::replace(&mut self.step, main);
                        self.steps.insert(event.run, own);
                        word.map(|word| format!("n{}:{word}", event.run.0))
                    }
                }
                Output::Delta(delta) if delta.run != RunId::MAIN => {
                    Some(format!("n{}:D {:?}", delta.run.0, delta.kind))
                }
                Output::Delta(delta) => match delta.kind {
                    Kind::Text => Some("D text".to_string()),
                    Kind::Thinking => Some("D thinking".to_string()),
                    Kind::Signature => Some("D signature".to_string()),
                    Kind::Input => Some(format!(
                        "D call c{}",
                        self.blocks.get(&delta.block).map_or(0, |call| call.0)
                    )),
                    Kind::Opaque => Some("D opaque".to_string()),
                },
                Output::Effect { run, effect } => {
                    if let Effect::Reload(command) = effect {
                        self.reload = command;
                    }
                    if let Effect::OpenSession(command) = effect {
                        self.opening = command;
                    }
                    if let Effect::Restore(command) = effect {
                        self.restore = command;
                    }
                    if let Effect::CallRun(_, call) = &effect {
                        self.handed.push(call.id);
                    }
                    if let Effect::RunShell(command) = effect {
                        self.shells.push(command);
                    }
                    let body = self.session.body(run, &effect);
                    let mut word = match &effect {
                        Effect::RunShell(command) => match body {
                            Some(EffectBody::Shell { command: line }) => {
                                format!("!RunShell {} {line}", self.shell_name(*command))
                            }
                            _ => "!RunShell without a body".into(),
                        },
                        Effect::StopShell(command) => {
                            format!("!StopShell {}", self.shell_name(*command))
                        }
                        effect => effect_word(effect, body),
                    };
                    if let Effect::StartModel(request) = effect
                        && words.last().is_some_and(|last| last.starts_with("KS"))
                    {
                        self.summaries.push(request);
                        word.push_str(" compaction");
                    }
                    match run {
                        RunId::MAIN => Some(word),
                        run => Some(format!("n{}:{word}", run.0)),
                    }
                }
            };
            if let Some(word) = word
                && (words.last() != Some(&word) || !word.starts_with("D "))
            {
                words.push(word);
            }
        }
        words
    }

    fn shell_name(&self, command: CommandId) -> String {
        let at = self.shells.iter().position(|shell| *shell == command);
        format!("s{}", at.map_or(0, |at| at + 1))
    }

    fn event(&mut self, what: &What) -> Option<String> {
        Some(match what {
            What::Opened(_) => "Opened".into(),
            What::Changed(info) => format!("Changed {:?}", info.settings.approvals),
            What::Closed { why } => format!("Closed {}", close_word(why)),
            What::Replied { reply, .. } => format!("RP {}", reply_word(reply)),
            What::Queued { prompt, lane } => format!("QD {} {lane:?}", prompt_word(*prompt)),
            What::PromptApplied { prompt, turn } => {
                let turn = turn.map_or_else(|| "-".into(), |turn| format!("t{}", turn.0));
                format!("PromptApplied {} {turn}", prompt_word(*prompt))
            }
            What::PromptEnded { prompt, end } => {
                format!("PE {} {}", prompt_word(*prompt), end_word(end))
            }
            What::TurnStarted { turn, cause } => format!("TS t{} {cause:?}", turn.0),
            What::TurnEnded {
                turn, end, pending, ..
            } => {
                let mut word = format!("TE t{} {}", turn.0, end_word(end));
                if pending.queued > 0 {
                    word.push_str(&format!(" queued={}", pending.queued));
                }
                if pending.background {
                    word.push_str(" background");
                }
                if pending.resumes {
                    word.push_str(" resumes");
                }
                word
            }
            What::Settled => "Settled".into(),
            What::StepStarted { number, .. } => {
                self.step = *number;
                format!("SS {number}")
            }
            What::StepEnded { .. } => format!("SE {}", self.step),
            What::Context { .. } => "Context".into(),
            What::RequestStarted { request, attempt } => {
                let request = id_word(request.0);
                format!("RequestStarted r{request} {}.{attempt}", self.step)
            }
            What::RequestEnded {
                request, outcome, ..
            } => {
                let word = match outcome {
                    RequestOutcome::Complete { .. } => "Complete",
                    RequestOutcome::Truncated => "Truncated",
                    RequestOutcome::Cancelled => "Cancelled",
                    RequestOutcome::Failed(_) => "Failed",
                };
                format!("RE r{} {word}", id_word(request.0))
            }
            What::RetryScheduled {
                attempt, wait_us, ..
            } => {
                format!("RY {attempt} {}s", wait_us.unwrap_or(0) / SECOND)
            }
            What::RetryEnded { ok, why } => match (ok, why) {
                (true, _) => "RX ok".into(),
                (false, Some(_)) => "RX failed".into(),
                (false, None) => "RX cancelled".into(),
            },
            What::MessageStarted { .. } => "MS".into(),
            What::BlockStarted { block, head, .. } => {
                if let BlockHead::ToolUse { call, .. } = head {
                    self.blocks.insert(*block, *call);
                }
                return None;
            }
            What::BlockEnded { .. } => return None,
            What::Delta { .. } => "a delta as an event".into(),
            What::MessageEnded { stop, kept, .. } => {
                self.blocks.clear();
                format!("ME {stop:?} {}", if *kept { "kept" } else { "void" })
            }
            What::Message(message) => match (&message.prompt, &message.origin) {
                (Some(prompt), _) => format!("Message {}", prompt_word(*prompt)),
                (None, _) if message.role == Role::Shell => format!("Message {:?}", message.text()),
                (None, Origin::Hook(_)) => "Message hook".into(),
                (None, origin) => format!("Message {origin:?}"),
            },
            What::ToolStarted { call, .. } => format!("TB c{}", id_word(call.0)),
            What::Decided { call, verdict } => {
                let way = if verdict.allow { "allow" } else { "deny" };
                format!("DC c{} {way} {}", id_word(call.0), by_word(&verdict.by))
            }
            What::ToolProgress { call, .. } => format!("TP c{}", call.0),
            What::ToolEnded { call, outcome, .. } => {
                format!("TF c{} {}", id_word(call.0), outcome_word(outcome))
            }
            What::ToolSkipped { call, why } => format!("TK c{} {why:?}", id_word(call.0)),
            What::FileChanged { path, .. } => format!("FC {path}"),
            What::Checkpoint { call, .. } => format!("CK c{}", call.0),
            What::Restored {
                restored, deleted, ..
            } => format!("Restored {} {}", restored.join(" "), deleted.join(" ")),
            What::Asked { ask, body } => {
                let about = match body {
                    Ask::Permission(ask) => match &ask.reason {
                        AskReason::Gate => String::new(),
                        AskReason::UnapprovedSource { .. } => " source".into(),
                        AskReason::Network { host } => format!(" network:{host}"),
                        AskReason::Other(_) => " other".into(),
                    },
                    Ask::Hook(hook) => format!(" hook:{:?}", hook.point),
                    Ask::Tool { .. } => " tool".into(),
                    Ask::Uri { op, uri, body } => {
                        let body = body.as_ref().map_or_else(String::new, |b| format!("={b}"));
                        format!(" {op:?}:{uri}{body}")
                    }
                    Ask::Choice(_) => " choice".into(),
                };
                let call = body
                    .call()
                    .map_or_else(String::new, |call| format!(" c{}", id_word(call.0)));
                format!("AQ a{}{call}{about}", id_word(ask.0))
            }
            What::AskClosed { ask, how } => {
                let how = match how {
                    AskClose::Answered { by, .. } => format!("Answered:{}", by_word(by)),
                    AskClose::Fault(_) => "Fault".into(),
                    other => format!("{other:?}"),
                };
                format!("AC a{} {how}", id_word(ask.0))
            }
            What::CompactionStarted { trigger, .. } => format!("KS {trigger:?}"),
            What::CompactionEnded { result } => match result {
                Ok(_) => "KE Done".into(),
                Err(fault) => format!("KE {}", name_of(fault)),
            },
            What::HookFailed { point, .. } => format!("HF {point:?}"),
            What::CompletionRefused { continuation, .. } => {
                format!("CompletionRefused {}", continuation + 1)
            }
            What::Notice { text, code, .. } => {
                let code = code.as_deref().unwrap_or_default();
                let late = text.starts_with("store timed out");
                format!("Notice {}", if late { "store timed out" } else { code })
            }
            What::Job(step, record) => own::job_word(*step, record),
            What::Goal(news) => own::goal_word(news),
            other => nested::run_word(other).unwrap_or_else(|| format!("{other:?}")),
        })
    }
}

/// A host's prompt is `P`, one of the session's own `g`.
fn prompt_word(prompt: PromptId) -> String {
    let sign = if prompt.is_session_made() { 'g' } else { 'P' };
    format!("{sign}{}", prompt.0 & !PromptId::SESSION_MADE)
}

fn effect_word(effect: &Effect, body: Option<EffectBody<'_>>) -> String {
    match effect {
        Effect::StartModel(request) => format!("!StartModel r{}", id_word(request.0)),
        Effect::StopModel(request) => format!("!StopModel r{}", id_word(request.0)),
        Effect::RunTool { call } => format!("!RunTool c{}", id_word(call.0)),
        Effect::StopTool(call) => format!("!StopTool c{}", id_word(call.0)),
        Effect::Snapshot { call, .. } => format!("!Snapshot c{}", call.0),
        Effect::Allow { call, ok } => format!("!Allow c{} {ok}", call.0),
        Effect::RunHook { hook } => match body {
            Some(EffectBody::Hook { point, facts, .. }) => {
                let call = match facts {
                    HookFacts::Call { call } | HookFacts::Result { call, .. } => {
                        format!(" c{}", call.0)
                    }
                    _ => String::new(),
                };
                format!("!RunHook h{} {point:?}{call}", hook.0)
            }
            _ => format!("!RunHook h{} without a body", hook.0),
        },
        Effect::StopHook(hook) => format!("!StopHook h{}", hook.0),
        Effect::Store(write) => {
            let what = match body {
                Some(EffectBody::Write(WriteBody::Prompt(_))) => "Prompt",
                Some(EffectBody::Write(WriteBody::Turn(_))) => "Turn",
                Some(EffectBody::Write(WriteBody::Refusal(_))) => "Refusal",
                Some(EffectBody::Write(WriteBody::Beside(_))) => "Beside",
                Some(EffectBody::Write(WriteBody::Setting(_))) => "Setting",
                Some(EffectBody::Write(WriteBody::Goal(_))) => "Goal",
                Some(EffectBody::Write(WriteBody::Approval(_))) => "Approval",
                Some(EffectBody::Write(WriteBody::Permissions(_))) => "Permissions",
                _ => "without a body",
            };
            format!("!Store w{} {what}", write.0)
        }
        Effect::Reload(_) => "!Reload".into(),
        Effect::OpenSession(_) => match body {
            Some(EffectBody::Open { .. }) => "!OpenSession".into(),
            _ => "!OpenSession without a body".into(),
        },
        Effect::Restore(_) => match body {
            Some(EffectBody::Restore { to, at, dry_run }) => {
                let dry = if dry_run { " dry" } else { "" };
                format!("!Restore m{} m{}{dry}", to.0, at.0)
            }
            _ => "!Restore without a body".into(),
        },
        Effect::DetachTool(call) => format!("!DetachTool c{}", call.0),
        Effect::StopJob(job) => format!("!StopJob j{}", job.0),
        other => nested::effect_word(other).unwrap_or_else(|| format!("!{other:?}")),
    }
}

pub fn prompt(id: u64, deliver: Deliver) -> Prompt {
    Prompt {
        id: PromptId(id),
        tag: None,
        content: vec![Block::Text(format!("prompt {id}").into())],
        deliver,
        literal: false,
        details: None,
    }
}

fn close_word(why: &CloseWhy) -> String {
    match why {
        CloseWhy::Signal(_) => "Signal".into(),
        other => format!("{other:?}"),
    }
}

fn reply_word(reply: &Result<Answer, Refusal>) -> String {
    match reply {
        Ok(Answer::Admitted(Admitted::Queued(lane))) => format!("Queued {lane:?}"),
        Ok(Answer::Admitted(how)) => format!("{how:?}"),
        Ok(Answer::Cancelling { hit, .. }) => match hit {
            Hit::Turn(turn) => format!("Cancelling t{}", turn.0),
            other => format!("Cancelling {other:?}"),
        },
        Ok(Answer::Withdrawn(was)) => format!("Withdrawn({was})"),
        Ok(Answer::Shell {
            output,
            exit,
            cancelled,
            timed_out,
            truncated,
            ..
        }) => {
            let exit = exit.map_or_else(|| "-".into(), |exit| exit.to_string());
            let mut word = format!("Shell {exit} {output:?}");
            for (is, how) in [
                (cancelled, " cancelled"),
                (timed_out, " timed out"),
                (truncated, " truncated"),
            ] {
                word.push_str(if *is { how } else { "" });
            }
            word
        }
        Ok(Answer::Rewound {
            files,
            added,
            removed,
            ..
        }) => {
            format!("Rewound {} +{added} -{removed}", files.join(" "))
        }
        Ok(Answer::Jobs(records)) => own::jobs_word(records),
        Ok(Answer::JobStop(how)) => format!("{how:?}"),
        Ok(Answer::Goal(Some(_))) => "Goal".into(),
        Ok(Answer::Goal(goal)) => format!("Goal({goal:?})"),
        Ok(other) => name_of(other),
        Err(refusal) => format!("Err {}", name_of(refusal)),
    }
}

/// A variant's name without what it holds.
pub fn name_of(value: &impl core::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.split(['(', ' ']).next().unwrap().to_string()
}

fn end_word(end: &End) -> String {
    match end {
        End::Finished { .. } => "Finished".into(),
        End::Truncated(_) => "Truncated".into(),
        End::BudgetExhausted(_) => "BudgetExhausted".into(),
        End::Yielded { .. } => "Yielded".into(),
        End::Blocked(_) => "Blocked".into(),
        End::Failed(_) => "Failed".into(),
        End::Dropped(why) => format!("Dropped:{why:?}"),
        End::Cancelled(why) => match why {
            CancelWhy::Preempted(prompt) => format!("Cancelled:Preempted:P{}", prompt.0),
            CancelWhy::Denied(call) => format!("Cancelled:Denied:c{}", call.0),
            CancelWhy::Signal(_) => "Cancelled:Signal".into(),
            other => format!("Cancelled:{other:?}"),
        },
        other => format!("{other:?}"),
    }
}

fn by_word(by: &Decider) -> String {
    match by {
        Decider::Rule(_) => "Rule".into(),
        Decider::Hook(_) => "Hook".into(),
        Decider::Fault(_) => "Fault".into(),
        other => format!("{other:?}"),
    }
}

fn outcome_word(outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Ok => "ok".into(),
        ToolOutcome::Failed => "failed".into(),
        ToolOutcome::Denied(by) => format!("Denied:{}", by_word(by)),
        ToolOutcome::Detached(job) => format!("Detached:j{}", job.0),
        other => format!("{other:?}"),
    }
}
