//! What openseek owes: its engine is there, and nothing of ours drives one yet.

/// What is still owed in part, or whole.
pub const OWES: &[(&str, &str)] = &[
    ("OS-03", CLIENT),
    ("OS-10", CLIENT),
    ("OS-11", "no run of ours has a session within a session yet"),
    ("OS-12", "nothing of ours stores jobs yet"),
    ("OS-A07", CLIENT),
    ("OS-A08", CLIENT),
    ("OS-A09", CLIENT),
    ("OS-A10", "no session of ours pursues a goal yet"),
];

const CLIENT: &str = "there is an engine of ours, and no host yet";
