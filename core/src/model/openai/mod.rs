//! The OpenAI-compatible chat completions API.

pub(super) mod reply;
pub(super) mod request;
