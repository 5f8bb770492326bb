//! What openseek owes: its lines are read, written and judged, and nothing speaks them yet.

/// What is still owed in part, or whole.
pub const OWES: &[(&str, &str)] = &[
    ("OS-02", SERVER),
    ("OS-03", SERVER),
    ("OS-07", SERVER),
    ("OS-08", SERVER),
    ("OS-09", SERVER),
    ("OS-10", SERVER),
    ("OS-11", "no run of ours has a session within a session yet"),
    ("OS-12", "nothing of ours stores jobs yet"),
    ("OS-13", SERVER),
    ("OS-A06", SERVER),
    ("OS-A07", SERVER),
    ("OS-A08", SERVER),
    ("OS-A09", SERVER),
    ("OS-A10", SERVER),
    ("OS-A11", SERVER),
    ("OS-A12", SERVER),
    ("OS-A13", SERVER),
];

const SERVER: &str =
    "lines are read, written and judged; there is no agent and no host of ours yet";
