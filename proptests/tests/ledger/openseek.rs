//! What openseek owes.

/// What is still owed in part, or whole.
pub const OWES: &[(&str, &str)] = &[];
