//! The Client: an agent that speaks splice, as neutral commands and events.
//!
//! One prompt is all that can be said: its line is written and the input closed. What the wire doesn't tell and the laws of
//! the neutral stream need is inferred, and nothing else is: turns, steps and messages, that a request began where its usage
//! stands, that a stage without a closing marker has ended. A stage is a nested run. Commands are replied to at once, but
//! for the prompt: it is admitted when its run begins, or refused with what the agent says instead.

mod calls;
mod commands;
mod end;
mod lines;
mod region;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use self::calls::Calls;
use self::region::Region;
use super::wire::Event as Line;
use super::{AGENT_LINE_MAX, MergeBack, Splice};
use crate::frame::{Split, SplitKind, is_blank};
use crate::json::Members;
use crate::protocol::ClientOutbox;
use crate::protocol::heard::unknown_session;
use crate::vocab::*;

type Out = ClientOutbox<Splice>;

/// What a splice Client is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Where the agent works, until it says so; empty: not known.
    pub cwd: Text,
    /// The most bytes of one reply that are kept beside its deltas.
    pub reply_bytes: usize,
    /// The most bytes of one call's arguments that are joined.
    pub argument_bytes: usize,
}

impl Default for ClientConfig {
    fn default() -> Self {
        ClientConfig {
            cwd: "".into(),
            reply_bytes: AGENT_LINE_MAX,
            argument_bytes: AGENT_LINE_MAX,
        }
    }
}

/// The state of a splice Client.
#[derive(Debug)]
pub struct ClientFace {
    config: ClientConfig,
    members: Members,
    info: Box<SessionInfo>,
    state: State,
    /// The prompt that was written, until its run begins.
    asked: Option<Asked>,
    /// The prompt whose run goes on.
    prompt: Option<PromptId>,
    /// The signal that was sent, and on whose behalf.
    stopped: Option<CancelWhy>,
    /// A reply has said that the turn is cancelled.
    bound: bool,
    main: Option<Region>,
    stage: Option<Stage>,
    /// How often each stage has begun.
    times: BTreeMap<String, u32>,
    calls: Calls,
    /// What the error said, until the end.
    error: Option<(Text, Text)>,
    answer: Option<Text>,

    drain: Option<bool>,
    /// Requests so far.
    requests: u32,
    usage: Usage,
}

/// How far the one run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was written.
    Open,
    /// The input is closed; no run has begun.
    Sent,
    /// The run goes on.
    Running,
    /// It is over.
    Over,
}

/// A prompt that waits for its run.
#[derive(Debug)]
struct Asked {
    command: CommandId,
    id: PromptId,
    content: Vec<Block>,
}

/// A stage that runs.
#[derive(Debug)]
struct Stage {
    name: String,
    region: Region,
}

impl crate::protocol::ClientFace<Splice> for ClientFace {
    fn open(config: ClientConfig, _: &mut Out) -> Self {
        let mut info = unknown_session();
        info.product = "splice".into();
        info.cwd = config.cwd.clone();
        info.root = (!config.cwd.is_empty()).then(|| config.cwd.clone());
        ClientFace {
            config,
            members: Members::default(),
            info: Box::new(info),
            state: State::Open,
            asked: None,
            prompt: None,
            stopped: None,
            bound: false,
            main: None,
            stage: None,
            times: BTreeMap::new(),
            calls: Calls::default(),
            error: None,
            answer: None,

            drain: None,
            requests: 0,
            usage: Usage::default(),
        }
    }

    fn command(&mut self, call: Call, out: &mut Out) {
        self.act(call, out);
    }

    fn line(&mut self, line: &Split<'_>, out: &mut Out) {
        let content = match line.what {
            SplitKind::Line(content) | SplitKind::Tail(content) => content,
            SplitKind::TooLong { bytes, .. } => {
                return out.finding(format!(
                    "a line of {bytes} bytes is longer than what is held, and was skipped"
                ));
            }
        };
        if is_blank(content) {
            return;
        }
        let mut members = core::mem::take(&mut self.members);
        match Line::read(content, &mut members) {
            Ok(line) => self.hear(&line, out),
            Err(fault) => out.finding(format!("not a line of the contract: {fault}")),
        }
        self.members = members;
    }

    fn end(&mut self, out: &mut Out) {
        self.gone(out);
    }

    fn settled(&mut self, _: u64, _: MergeBack, _: &mut Out) {}

    fn woken(&mut self, _: &mut Out) {}

    fn due(&self) -> Option<Due> {
        None
    }
}

impl ClientFace {
    /// Where what comes now belongs: the stage that runs, else the run itself.
    fn region(&mut self) -> Option<&mut Region> {
        match &mut self.stage {
            Some(stage) => Some(&mut stage.region),
            None => self.main.as_mut(),
        }
    }
}
