//! MCP servers that an agent uses: how each stands, and what became of its tools.

use alloc::vec::Vec;

use super::Text;

/// An MCP server as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServer {
    /// What it is called where it is configured.
    pub name: Text,
    /// How it stands.
    pub status: McpStatus,
    /// Why it stands so, if there is something to say: the reason of a failure.
    pub why: Option<Text>,
    /// What it says of itself: name and version.
    pub product: Option<(Text, Text)>,
    /// Its tools that the model sees.
    pub tools: Vec<McpTool>,
}

impl McpServer {
    /// A server of which nothing else is known.
    pub fn new(name: impl Into<Text>, status: McpStatus) -> Self {
        McpServer {
            name: name.into(),
            status,
            why: None,
            product: None,
            tools: Vec::new(),
        }
    }
}

/// See [`McpServer::status`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpStatus {
    /// It is being started, for the first time or again.
    Pending,
    /// Its tools can be called.
    Connected,
    /// It can't be used.
    Failed,
    /// Somebody has to log in first.
    NeedsAuth,
    /// Somebody has turned it off.
    Disabled,
    /// What only the agent knows.
    Other(Text),
}

impl McpStatus {
    /// The field's word for it.
    pub fn word(&self) -> &str {
        match self {
            McpStatus::Pending => "pending",
            McpStatus::Connected => "connected",
            McpStatus::Failed => "failed",
            McpStatus::NeedsAuth => "needs-auth",
            McpStatus::Disabled => "disabled",
            McpStatus::Other(word) => word,
        }
    }

    /// The status that a word means.
    pub fn of_word(word: &str) -> Self {
        match word {
            "pending" => McpStatus::Pending,
            "connected" => McpStatus::Connected,
            "failed" => McpStatus::Failed,
            "needs-auth" => McpStatus::NeedsAuth,
            "disabled" => McpStatus::Disabled,
            other => McpStatus::Other(other.into()),
        }
    }
}

/// A tool of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpTool {
    /// Its name at the server.
    pub name: Text,
    /// What the model calls it.
    pub called: Text,
    /// What it is for.
    pub description: Text,
}

/// What became of an MCP server or a tool of it. A driver says it once; how the servers stand is in
/// [`SessionInfo::mcp`](super::SessionInfo::mcp). Only some protocols have lines for it: there it is one of their extras.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum McpFact {
    /// No server is being started any more, and these tools are there. Said again when they are others.
    Registered {
        /// Servers that are connected.
        servers: u32,
        /// What the model calls their tools.
        names: Vec<Text>,
    },
    /// A server has two tools of one name: the second is left out.
    Duplicate {
        /// The server.
        server: Text,
        /// The tool's name at the server.
        tool: Text,
    },
    /// The model calls a tool something else than `mcp__SERVER__TOOL`: that is too long, holds what a name may not hold, or is
    /// another tool's.
    Renamed {
        /// The server.
        server: Text,
        /// The tool's name at the server.
        from: Text,
        /// What the model calls it.
        to: Text,
    },
    /// A server has more tools than are taken.
    Capped {
        /// The server.
        server: Text,
        /// How many were taken.
        kept: u32,
    },
    /// Servers before this one have as many tools as all may have: it has none.
    OverCap {
        /// The server.
        server: Text,
    },
    /// A tool can't be offered: its schema isn't one, or is too large.
    LeftOut {
        /// The server.
        server: Text,
        /// The tool's name at the server.
        tool: Text,
        /// Why.
        why: Text,
    },
    /// A server couldn't be started, or ended before it was ready.
    ConnectFailed {
        /// The server.
        server: Text,
        /// Why.
        error: Text,
    },
    /// A server didn't say which tools it has.
    ListFailed {
        /// The server.
        server: Text,
        /// Why.
        error: Text,
    },
    /// It took too long to.
    ListTimedOut {
        /// The server.
        server: Text,
    },
    /// A server has no tools.
    NoTools {
        /// The server.
        server: Text,
    },
    /// A server that was connected has ended.
    Lost {
        /// The server.
        server: Text,
        /// Why.
        error: Text,
        /// Whether it is started again.
        again: bool,
    },
}
