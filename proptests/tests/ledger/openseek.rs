//! What openseek owes.

/// What is still owed in part, or whole.
pub const OWES: &[(&str, &str)] = &[("OS-11", "no run of ours has a session within a session yet")];
