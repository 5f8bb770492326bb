//! The usual way to hold a line of openmax: what one writes first, with serde.
#![allow(missing_docs, reason = "the contract's own names")]

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A line of an openmax agent as an owned, internally tagged enum.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    Hello {
        proto: String,
        protocol_version: u32,
        session_id: String,
        version: String,
        project: String,
        continued: bool,
    },
    Token {
        session_id: String,
        text: String,
    },
    Thinking {
        session_id: String,
        text: String,
    },
    MessageDone {
        session_id: String,
        text: String,
    },
    Budget {
        session_id: String,
        used_tokens: u64,
        context_tokens: u64,
    },
    Usage {
        session_id: String,
        prompt_tokens: u64,
        completion_tokens: u64,
        cached_tokens: Option<u64>,
    },
    ToolStart {
        session_id: String,
        call_id: String,
        name: String,
        args: Value,
    },
    ToolEnd {
        session_id: String,
        call_id: String,
        ok: bool,
        output: String,
    },
    HarnessNote {
        session_id: String,
        call_id: String,
        text: String,
    },
    Retry {
        session_id: String,
        attempt: u32,
        max_attempts: u32,
        reason: String,
    },
    Diff {
        session_id: String,
        call_id: String,
        path: String,
        diff: String,
        added: u64,
        removed: u64,
    },
    ApprovalRequest {
        session_id: String,
        approval_id: String,
        name: String,
        summary: String,
        detail: String,
        reason: String,
        source_path: String,
        source_sha: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        env: Vec<String>,
    },
    ApprovalSettled {
        session_id: String,
        approval_id: String,
        outcome: String,
    },
    Done {
        session_id: String,
        stop_reason: String,
    },
    Error {
        session_id: String,
        message: String,
    },
}

impl Line {
    /// A number that needs the line decoded.
    pub fn weight(&self) -> u64 {
        match self {
            Self::Token { text, .. }
            | Self::Thinking { text, .. }
            | Self::MessageDone { text, .. } => text.len() as u64,
            Self::ToolEnd { output, .. } => output.len() as u64,
            Self::Hello { .. }
            | Self::Budget { .. }
            | Self::Usage { .. }
            | Self::ToolStart { .. }
            | Self::HarnessNote { .. }
            | Self::Retry { .. }
            | Self::Diff { .. }
            | Self::ApprovalRequest { .. }
            | Self::ApprovalSettled { .. }
            | Self::Done { .. }
            | Self::Error { .. } => 1,
        }
    }
}
