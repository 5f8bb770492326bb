//! The Anthropic Messages API.

pub(super) mod reply;
pub(super) mod request;
