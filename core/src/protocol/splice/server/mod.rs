//! The Server: an input that is judged whole becomes one prompt, an agent's events become lines, its end an exit code.
//!
//! Nothing is written before the input has ended: bad input has no run. From then on there is one direction. What is held
//! back, and until when: `run_start` until the prompt is admitted, the tail of a text that may begin a secret ([`blocks`]),
//! the end of a turn until its worktree is merged back ([`end`]).

mod blocks;
mod calls;
mod end;
mod input;
mod result;
mod run_id;
mod stages;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use self::blocks::Blocks;
use self::calls::Tools;
use self::end::Ending;
use self::input::Judge;
use self::result::Tally;
use self::stages::Stages;
use super::wire::{
    Error as ErrorLine, Event as Line, Reasoning, RunEnd, RunStart, Text as TextLine, Warning,
};
use super::{EarlySignal, MergeBack, ServerConfig, Splice, SpliceAsk, SpliceExtra};
use crate::frame::Split;
use crate::json::{self, Raw, Str};
use crate::protocol::said::refusal;
use crate::protocol::{Outbox, ServerFace};
use crate::vocab::*;

/// Remarks that may wait for the beginning of the run.
const MOST_EARLY: usize = 64;

/// The code of the remark by which a pipeline tells its tier.
const TIER: &str = "tier";

type Out = Outbox<Splice>;

/// The state of a splice Server.
#[derive(Debug)]
pub struct Face {
    config: ServerConfig,
    judge: Judge,
    phase: Phase,
    /// Made when it is first needed, from the time.
    run_id: String,
    info: Option<Box<SessionInfo>>,
    signal: Option<Signal>,
    /// Warnings of before the run.
    early: Vec<Text>,
    blocks: Blocks,
    tools: Tools,
    stages: Stages,
    tally: Tally,
    ending: Ending,
    /// The agent is closed.
    closed: bool,
    /// Kinds of questions that were refused, and said to be.
    refused: BTreeSet<&'static str>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The input is read.
    Reading,
    /// It may run, and the session isn't there yet.
    Waiting,
    /// The prompt is with the agent.
    Asked(CommandId),
    Running,
    /// `run_end` is written, with this exit code.
    Over(u8),
}

impl ServerFace<Splice> for Face {
    fn open(config: ServerConfig, _: &mut Out) -> Self {
        Face {
            judge: Judge::new(config.image_bound),
            config,
            phase: Phase::Reading,
            run_id: String::new(),
            info: None,
            signal: None,
            early: Vec::new(),
            blocks: Blocks::default(),
            tools: Tools::default(),
            stages: Stages::default(),
            tally: Tally::default(),
            ending: Ending::default(),
            closed: false,
            refused: BTreeSet::new(),
        }
    }

    fn line(&mut self, line: &Split<'_>, _: Now, _: &mut Out) {
        if self.phase == Phase::Reading {
            self.judge.line(line);
        }
    }

    fn end(&mut self, now: Now, out: &mut Out) {
        if self.phase != Phase::Reading {
            return;
        }
        self.name_run(now);
        if let Some(text) = self.judge.refusal() {
            self.refuse("usage_error", &text, 2, out);
            return self.leave(out);
        }
        self.phase = Phase::Waiting;
        self.begin(out);
    }

    fn signal(&mut self, signal: Signal, now: Now, out: &mut Out) {
        if self.signal.is_some() {
            return;
        }
        self.name_run(now);
        self.signal = Some(signal);
        match self.phase {
            Phase::Reading if self.config.early_signal == EarlySignal::Remembered => {}
            Phase::Reading | Phase::Waiting => {
                self.interrupted_early(out);
                self.leave(out);
            }
            Phase::Running if !self.ending.is_open() => self.unmerged(out),
            Phase::Asked(_) | Phase::Running => self.cancel(signal, out),
            Phase::Over(_) => {}
        }
    }

    fn event(&mut self, event: &Event, out: &mut Out) {
        self.name_run(event.at);
        self.said(event, out);
    }

    fn delta(&mut self, delta: &DeltaRef<'_>, out: &mut Out) {
        if self.phase == Phase::Running && self.ending.is_open() {
            let line = blocks::Lines {
                run_id: &self.run_id,
                secrets: &self.config.secrets,
            };
            self.blocks.delta(delta, &line, out);
        }
    }

    fn extra(&mut self, extra: SpliceExtra, now: Now, out: &mut Out) {
        self.name_run(now);
        // Only within a run, and only what may stand there.
        if self.phase == Phase::Running && self.ending.is_open() && &*extra.kind == "permission" {
            out.line(|bytes| json::write_raw(bytes, Raw::trusted(extra.line.as_str())));
        }
    }

    fn settled(&mut self, _: u64, outcome: MergeBack, _: Now, out: &mut Out) {
        self.merged(&outcome, out);
    }

    fn woken(&mut self, _: Now, _: &mut Out) {}

    fn due(&self) -> Option<Due> {
        None
    }

    fn wants_lines(&self) -> bool {
        self.phase == Phase::Reading
    }
}

impl Face {
    fn name_run(&mut self, now: Now) {
        if self.run_id.is_empty() {
            self.run_id = run_id::made(&self.config.seed, now.unix_ms);
        }
    }

    /// A text without its secrets.
    fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.config.secrets.clean(text)
    }

    /// The same as a member that is left out where it is empty.
    fn member<'a>(&self, text: &'a str) -> Option<Str<'a>> {
        (!text.is_empty()).then(|| Str(self.clean(text)))
    }

    fn id(&self) -> Str<'_> {
        Str(Cow::Borrowed(&self.run_id))
    }

    /// Hands the prompt to the agent, once both are there.
    fn begin(&mut self, out: &mut Out) {
        let Some(info) = &self.info else { return };
        if self.phase != Phase::Waiting {
            return;
        }
        let (content, dropped) = self.judge.take(&info.media);
        if dropped > 0 {
            let model = info.model.model.clone();
            out.diagnostic(
                format!("Model {model} does not support image input; ignoring {dropped} image(s).")
                    .into(),
            );
        }
        let prompt = Prompt {
            id: out.next_prompt(),
            tag: None,
            content,
            deliver: Deliver::IfIdle,
            literal: false,
            details: None,
        };
        self.phase = Phase::Asked(out.call(Command::Prompt(prompt)));
        out.call(Command::Close { drain: true });
    }

    fn cancel(&self, signal: Signal, out: &mut Out) {
        out.call(Command::Cancel {
            what: CancelWhat::Everything,
            why: CancelWhy::Signal(signal),
        });
    }

    /// One event. Never a delta.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the rest is the run's")]
    fn said(&mut self, event: &Event, out: &mut Out) {
        match &event.what {
            What::Opened(info) | What::Changed(info) if event.run == RunId::MAIN => {
                let mut info = info.clone();
                info.history = Vec::new();
                info.summarised = Vec::new();
                self.info = Some(info);
                self.begin(out);
            }
            What::Replied { command, reply } if self.phase == Phase::Asked(*command) => {
                self.replied(reply, out);
            }
            What::Closed { why } if event.run == RunId::MAIN => self.agent_closed(why, out),
            // Nobody can be asked on this wire.
            What::Asked { ask, body } => self.asked(*ask, body, out),
            What::Notice { level, text, .. } if !self.is_running() => {
                if *level == Level::Warning && self.early.len() < MOST_EARLY {
                    self.early.push(text.clone());
                }
            }
            _ if !self.is_running() || !self.ending.is_open() => {}
            what => self.run_event(event.run, event.at, what, out),
        }
    }

    fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// Whether the prompt was taken.
    fn replied(&mut self, reply: &Result<Answer, Refusal>, out: &mut Out) {
        match reply {
            Ok(_) => self.started(out),
            Err(Refusal::Failed(failure)) if failure.kind == FailureKind::Setup => {
                self.refuse("provider_error", &failure.text, 3, out);
            }
            Err(why) => self.refuse("usage_error", &refusal(why), 2, out),
        }
    }

    /// The first line, and what was said before it.
    fn started(&mut self, out: &mut Out) {
        self.phase = Phase::Running;
        if let Some(info) = &self.info {
            let api_model = info.api_model.as_ref().unwrap_or(&info.model.model);
            let provider = info.model.provider.as_deref().unwrap_or("");
            self.put(
                RunStart {
                    api_model: self.member(api_model),
                    cwd: self.member(&info.cwd),
                    model: self.member(&info.model.model),
                    provider: self.member(provider),
                    run_id: self.id(),
                    session_id: self.member(&info.session),
                    ..RunStart::default()
                },
                out,
            );
            self.tally.open(info);
        }
        for text in core::mem::take(&mut self.early) {
            self.warning(&text, out);
        }
        if let Some(signal) = self.signal {
            self.cancel(signal, out);
        }
    }

    /// What happens while it runs.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the rest has no line")]
    fn run_event(&mut self, run: RunId, at: Now, what: &What, out: &mut Out) {
        match what {
            What::BlockStarted {
                message,
                block,
                head,
            } => self.block_started(run, *message, *block, head, out),
            What::BlockEnded { message, block, .. } => {
                self.close_block((run, *message, *block), out);
            }
            What::MessageEnded { message, kept, .. } => {
                self.close_message(run, message.id, out);
                if !kept {
                    self.reasoning("[model] what was shown last counts for nothing\n", out);
                }
            }
            What::RetryScheduled {
                attempt, max, why, ..
            } => {
                let text = format!("[model] attempt {attempt} of {max}: {}\n", why.text);
                self.reasoning(&text, out);
            }
            What::CompactionStarted { .. } => {
                self.reasoning("[session] summing up what was said so far\n", out);
            }
            What::RequestEnded {
                outcome,
                model,
                usage,
                cost,
                ..
            } => self.request_ended(run, outcome, model, *usage, cost, out),
            What::RunStarted {
                run, kind, label, ..
            } => self.run_started(*run, at, kind, label, out),
            What::RunEnded {
                run,
                status,
                detail,
                ..
            } => {
                self.run_ended(*run, at, *status, detail, out);
            }
            What::Notice { level, code, text } => {
                self.notice(run, *level, code.as_deref(), text, out);
            }
            What::TurnEnded { end, answer, .. } if run == RunId::MAIN => {
                self.turn_ended(end, answer.as_ref(), out);
            }
            what => self.tool_event(run, what, out),
        }
    }

    /// What calls are made of.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the rest has no line")]
    fn tool_event(&mut self, run: RunId, what: &What, out: &mut Out) {
        match what {
            What::ToolStarted {
                call,
                provider_id,
                name,
                input,
                side_effect,
                ..
            } => {
                let provider_id = provider_id.as_deref();
                self.call_started(
                    run,
                    *call,
                    provider_id,
                    name,
                    input.as_ref(),
                    *side_effect,
                    out,
                );
            }
            What::Decided { call, verdict } => self.decided(*call, verdict, out),
            What::ToolEnded {
                call,
                outcome,
                content,
                show,
            } => self.call_ended(*call, outcome, content, show.as_deref(), out),
            What::ToolSkipped { call, .. } => self.tools.forget(*call),
            What::FileChanged { call, path, .. } => {
                self.tools.changed(*call, path);
                self.stages.changed(run, path);
            }
            What::Checkpoint {
                checkpoint,
                call,
                files,
            } => self.checkpoint(*checkpoint, *call, files, out),
            _ => {}
        }
    }

    /// A question, and its answer: nobody is there.
    fn asked(&mut self, ask: AskId, body: &Ask, out: &mut Out) {
        let kind = match body {
            Ask::Permission(permission) => {
                self.permission_request(permission, out);
                None
            }
            Ask::Hook(_) => Some("hooks"),
            Ask::Tool { .. } => Some("tools"),
            Ask::Uri { .. } => Some("addresses"),
            Ask::Choice { .. } => Some("choices"),
        };
        if let Some(kind) = kind
            && self.refused.insert(kind)
        {
            let text = format!("a host of splice can't be asked about {kind}: refused");
            out.diagnostic(text.into());
        }
        out.call(Command::Reply {
            ask,
            reply: Err(ReplyFault::HostGone),
        });
    }

    fn notice(&mut self, run: RunId, level: Level, code: Option<&str>, text: &str, out: &mut Out) {
        match level {
            _ if code == Some(TIER) => self.tally.tier(text),
            Level::Debug => {}
            Level::Progress => {
                let line = match self.stages.name(run) {
                    Some(stage) => format!("[{stage}] {text}\n"),
                    None => format!("{text}\n"),
                };
                self.reasoning(&line, out);
            }
            // The sentence at the end, and what a command of the person's put out.
            Level::Info if matches!(code, Some("summary" | "command_output")) => {
                self.text(&format!("{text}\n"), out);
            }
            Level::Info => self.reasoning(&format!("{text}\n"), out),
            Level::Warning | Level::Error => self.warning(text, out),
        }
    }

    fn put<'a>(&self, line: impl Into<Line<'a>>, out: &mut Out) {
        let line = line.into();
        out.line(|bytes| line.encode(bytes));
    }

    fn reasoning(&self, text: &str, out: &mut Out) {
        let text = self.clean(text);
        self.put(
            Reasoning {
                delta: Some((&*text).into()),
                run_id: self.id(),
                ..Reasoning::default()
            },
            out,
        );
    }

    fn text(&self, text: &str, out: &mut Out) {
        let text = self.clean(text);
        self.put(
            TextLine {
                delta: Some((&*text).into()),
                run_id: self.id(),
                ..TextLine::default()
            },
            out,
        );
    }

    fn warning(&self, text: &str, out: &mut Out) {
        let text = self.clean(text);
        self.put(
            Warning {
                message: Some((&*text).into()),
                run_id: self.id(),
                ..Warning::default()
            },
            out,
        );
    }

    fn error(&self, code: &str, text: &str, out: &mut Out) {
        let text = self.clean(text);
        self.put(
            ErrorLine {
                code: code.into(),
                message: (!text.is_empty()).then(|| (&*text).into()),
                run_id: self.id(),
                ..ErrorLine::default()
            },
            out,
        );
    }

    /// The last line.
    fn run_end(&mut self, status: &str, code: u8, out: &mut Out) {
        self.put(
            RunEnd {
                exit_code: code.into(),
                run_id: self.id(),
                status: status.into(),
                ..RunEnd::default()
            },
            out,
        );
        self.over(code, out);
    }

    /// Nothing more is written. The process leaves once the agent has.
    fn over(&mut self, code: u8, out: &mut Out) {
        self.phase = Phase::Over(code);
        if self.closed {
            out.exit(code);
        }
    }

    /// A run that never began.
    fn refuse(&mut self, code: &str, text: &str, exit: u8, out: &mut Out) {
        self.error(code, text, out);
        self.run_end("error", exit, out);
    }

    fn interrupted_early(&mut self, out: &mut Out) {
        self.error("interrupted", end::INTERRUPTED, out);
        self.run_end("interrupted", end::INTERRUPTED_EXIT, out);
    }

    /// Leaves without the agent, which was given nothing to do.
    fn leave(&mut self, out: &mut Out) {
        if let Phase::Over(code) = self.phase {
            out.exit(code);
        }
    }

    /// The agent is closed: its end is told, if it wasn't.
    fn agent_closed(&mut self, why: &CloseWhy, out: &mut Out) {
        self.closed = true;
        let text = match why {
            CloseWhy::Fault(failure) => failure.text.to_string(),
            CloseWhy::Drained | CloseWhy::HostGone | CloseWhy::Signal(_) => {
                String::from("the agent left before the run had ended")
            }
        };
        match self.phase {
            Phase::Over(code) => out.exit(code),
            Phase::Reading | Phase::Waiting | Phase::Asked(_) if self.signal.is_some() => {
                self.interrupted_early(out);
            }
            Phase::Reading | Phase::Waiting | Phase::Asked(_) => {
                self.refuse("provider_error", &text, 3, out);
            }
            // The end waits for a merge.
            Phase::Running if !self.ending.is_open() => {}
            Phase::Running => self.broken(&text, out),
        }
    }

    /// Asks for a merge.
    fn ask_merge(branch: &Text, out: &mut Out) -> u64 {
        out.ask(SpliceAsk::MergeBack {
            branch: branch.clone(),
        })
    }
}
