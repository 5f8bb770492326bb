//! openseek as a [`Protocol`]: its configuration, and its lines without neutral meaning.

use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;

use super::client::{ClientConfig, ClientFace};
use super::server::Face;
use super::wire::{
    self, Event, McpConnectFailed, McpListToolsFailed, McpListToolsTimeout, McpNoTools,
    McpServerSkippedOverCap, McpToolDuplicate, McpToolRenamed, McpToolsCapped, McpToolsRegistered,
    Shapes,
};
use super::{AGENT_LINE_MAX, Asking, HOST_LINE_MAX};
use crate::frame::{LineRules, OverLong, Tail};
use crate::json::Members;
use crate::protocol::{Protocol, WireFault};
use crate::vocab::{Level, McpFact, RawJson, Text};

/// The protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Openseek;

/// What an openseek Server is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Where the ids of questions come from. The same seed and the same lines give the same ids.
    pub seed: [u8; 32],
    /// What it is started for.
    pub mode: Mode,
    /// Which shapes of commands are read.
    pub shapes: Shapes,
    /// Where a run's session is stored; `None`: nowhere, and no `session_started` is written.
    pub session_root: Option<Text>,
}

/// What an engine is started for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `serve`: turns, as the host's commands ask for them.
    Serve {
        /// When it asks.
        asking: Asking,
    },
    /// `run`: one turn. No commands are read, so that nobody can be asked.
    Run {
        /// What it is for.
        task: Text,
        /// Whether both lines of a question are written where a call is allowed ([`Asking::Always`]).
        always: bool,
    },
}

impl Mode {
    /// When it asks.
    pub const fn asking(&self) -> Asking {
        match self {
            Mode::Serve { asking } => *asking,
            Mode::Run { always: true, .. } => Asking::Always,
            Mode::Run { always: false, .. } => Asking::Never,
        }
    }
}

/// A run was to ask, and reads no answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunCannotAsk;

impl fmt::Display for RunCannotAsk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a run reads no commands, so that nobody can be asked: approval is never or always",
        )
    }
}

impl core::error::Error for RunCannotAsk {}

impl ServerConfig {
    /// An engine that serves.
    pub fn serve(seed: [u8; 32], asking: Asking) -> Self {
        ServerConfig {
            seed,
            mode: Mode::Serve { asking },
            shapes: Shapes::Seed,
            session_root: None,
        }
    }

    /// A run.
    ///
    /// # Errors
    /// [`RunCannotAsk`], before there is a session (OS-A12).
    pub fn run(seed: [u8; 32], task: Text, asking: Asking) -> Result<Self, RunCannotAsk> {
        let always = match asking {
            Asking::Never => false,
            Asking::Always => true,
            Asking::Ask => return Err(RunCannotAsk),
        };
        Ok(ServerConfig {
            seed,
            mode: Mode::Run { task, always },
            shapes: Shapes::Seed,
            session_root: None,
        })
    }
}

/// A line with no neutral meaning, in either direction: `workspace_created`, `fleet_started`, `workflow_*` and `mcp_*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenseekExtra {
    /// The line's `event`.
    pub event: Text,
    /// The whole object, on one line.
    pub line: RawJson,
}

impl OpenseekExtra {
    /// The line of an event.
    pub fn of(event: &Event<'_>) -> Self {
        let mut line = Vec::new();
        event.encode(&mut line);
        OpenseekExtra {
            event: (&*event.name()).into(),
            line: RawJson(core::str::from_utf8(&line).unwrap_or("{}").into()),
        }
    }

    /// What this wire says of an MCP server; `None`: it has no line for it.
    pub fn mcp(fact: &McpFact) -> Option<Self> {
        let number = |number: u32| wire::Int::nearest(i32::try_from(number).unwrap_or(i32::MAX));
        let event = match fact {
            McpFact::Registered { servers, names } => Event::from(McpToolsRegistered {
                servers: number(*servers),
                tools: number(u32::try_from(names.len()).unwrap_or(u32::MAX)),
                names: names.iter().map(|name| (&**name).into()).collect(),
                ..McpToolsRegistered::default()
            }),
            McpFact::Duplicate { server, tool } => Event::from(McpToolDuplicate {
                server: (&**server).into(),
                tool: (&**tool).into(),
                ..McpToolDuplicate::default()
            }),
            McpFact::Renamed { from, to, .. } => Event::from(McpToolRenamed {
                from: (&**from).into(),
                to: (&**to).into(),
                ..McpToolRenamed::default()
            }),
            McpFact::Capped { server, kept } => Event::from(McpToolsCapped {
                server: (&**server).into(),
                kept: number(*kept),
                ..McpToolsCapped::default()
            }),
            McpFact::OverCap { server } => Event::from(McpServerSkippedOverCap {
                server: (&**server).into(),
                ..McpServerSkippedOverCap::default()
            }),
            McpFact::LeftOut { .. } => return None,
            McpFact::ConnectFailed { server, error } | McpFact::Lost { server, error, .. } => {
                Event::from(McpConnectFailed {
                    server: (&**server).into(),
                    error: (&**error).into(),
                    ..McpConnectFailed::default()
                })
            }
            McpFact::ListFailed { server, error } => Event::from(McpListToolsFailed {
                server: (&**server).into(),
                error: (&**error).into(),
                ..McpListToolsFailed::default()
            }),
            McpFact::ListTimedOut { server } => Event::from(McpListToolsTimeout {
                server: (&**server).into(),
                ..McpListToolsTimeout::default()
            }),
            McpFact::NoTools { server } => Event::from(McpNoTools {
                server: (&**server).into(),
                ..McpNoTools::default()
            }),
        };
        Some(OpenseekExtra::of(&event))
    }

    /// Reads the line.
    ///
    /// # Errors
    /// [`WireFault`] when it isn't a line of an engine.
    pub fn read<'a>(&'a self, members: &mut Members) -> Result<Event<'a>, WireFault> {
        Event::read(self.line.as_str().as_bytes(), members)
    }
}

impl Protocol for Openseek {
    const NAME: &'static str = "openseek";
    type Ask = Infallible;
    type Outcome = Infallible;
    type Extra = OpenseekExtra;
    type ServerConfig = ServerConfig;
    type Face = Face;
    type ClientConfig = ClientConfig;
    type Client = ClientFace;

    fn soften(extra: &OpenseekExtra) -> Option<(Level, Text)> {
        let text = match &*extra.event {
            "workspace_created" => "the folder to work in was made",
            "fleet_started" => "several runs work on the task",
            "workflow_started" => "a workflow has begun",
            "workflow_finished" => "a workflow has ended",
            "mcp_tools_registered" => "tools of MCP servers are there",
            name if name.starts_with("mcp_") => {
                return Some((Level::Warning, alloc::format!("MCP: {name}").into()));
            }
            _ => return None,
        };
        Some((Level::Info, text.into()))
    }

    fn host_line_rules() -> LineRules {
        rules(HOST_LINE_MAX)
    }

    fn agent_line_rules() -> LineRules {
        rules(AGENT_LINE_MAX)
    }
}

fn rules(max_bytes: usize) -> LineRules {
    LineRules {
        max_bytes,
        over: OverLong::Skip,
        tail: Tail::Deliver,
    }
}
