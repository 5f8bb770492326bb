//! What Clients of all protocols make alike of what an agent says.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{ClientOutbox, Protocol};
use crate::vocab::*;

/// A message, made now.
pub(super) fn message<P: Protocol>(
    id: MessageId,
    role: Role,
    content: Vec<Arc<Block>>,
    origin: Origin,
    out: &ClientOutbox<P>,
) -> Message {
    Message {
        id,
        role,
        content,
        origin,
        prompt: None,
        about: None,
        at_ms: out.now().unix_ms,
        details: None,
    }
}

/// A model that wasn't named.
pub(super) fn no_model() -> ModelRef {
    ModelRef {
        provider: None,
        model: "".into(),
    }
}

/// A session that said nothing of itself.
pub(super) fn unknown_session() -> SessionInfo {
    SessionInfo {
        session: "".into(),
        name: None,
        file: None,
        generation: "".into(),
        root: None,
        cwd: "".into(),
        product: "".into(),
        continued: false,
        history: Vec::new(),
        summarised: Vec::new(),
        model: no_model(),
        api_model: None,
        efforts: Vec::new(),
        settings: Box::new(Settings {
            approvals: ApprovalMode::Other("not said".into()),
            thinking: None,
            steer_drain: Drain::One,
            follow_up_drain: Drain::One,
            interrupting: Interrupting::Wait,
            auto_retry: true,
            auto_compact: true,
        }),
        tools: Vec::new(),
        briefing: Briefing::default(),
        mcp: Vec::new(),
        commands: Vec::new(),
        skills: Vec::new(),
        media: Vec::new(),
    }
}

/// What an HTTP status of a provider means; its text tells of an empty purse.
pub(super) fn failure_kind(status: u16, text: &str) -> FailureKind {
    match status {
        401 | 403 => FailureKind::Auth,
        402 => FailureKind::Billing,
        429 if text.contains("insufficient_quota") => FailureKind::Billing,
        429 => FailureKind::RateLimit,
        503 | 529 => FailureKind::Overloaded,
        400..=499 => FailureKind::InvalidRequest,
        _ => FailureKind::Server,
    }
}

/// The number, or the largest there is.
pub(super) fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The start of a text that an agent may have made as long as a line.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_string(),
    }
}
