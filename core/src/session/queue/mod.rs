//! The session's queues: what goes out, and the prompts that wait.

pub(super) mod out;
pub(super) mod prompts;
