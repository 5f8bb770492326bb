//! Every line of openmax as a table, in our own words: for `turnwire spec`, and for the observer, which compares
//! members with it.

use crate::protocol::observer::Dir;
use crate::protocol::spec::{Field, FieldKind, LineSpec, Spec};

use FieldKind::{
    Bool, Count, CountOrNull, Items, Number, Object, OneOf, Text, Texts, TextsOrAbsent, Word,
};

/// The approval modes.
pub const MODES: &[&str] = &["auto", "ask", "readonly"];
/// Why an approval is asked for.
pub const REASONS: &[&str] = &["gate", "unapproved_source"];
/// How an approval is settled.
pub const OUTCOMES: &[&str] = &["approved", "declined", "timed_out", "cancelled"];
/// Who speaks in a transcript.
pub const ROLES: &[&str] = &["user", "assistant"];

const fn field(name: &'static str, kind: FieldKind, about: &'static str) -> Field {
    Field { name, kind, about }
}

const fn line(
    dir: Dir,
    tag: &'static str,
    name: &'static str,
    fields: &'static [Field],
    about: &'static str,
) -> LineSpec {
    LineSpec {
        dir,
        tag,
        name,
        fields,
        shared: &[],
        about,
        answer: &[],
    }
}

/// A command of the host.
macro_rules! command {
    ($name:literal, $about:literal, [$($field:expr),* $(,)?]) => {
        line(Dir::Host, "cmd", $name, &[field("cmd", Word($name), "the command"), $($field),*], $about)
    };
}

/// An event of the agent: it carries the session's id.
macro_rules! event {
    ($name:literal, $about:literal, [$($field:expr),* $(,)?]) => {
        line(Dir::Agent, "type", $name, &[SESSION, field("type", Word($name), "the event"), $($field),*], $about)
    };
}

const SESSION: Field = field("session_id", Text, "the session, as in `hello`");
const CALL: Field = field("call_id", Text, "the call");

const LINES: &[LineSpec] = &[
    command!(
        "user",
        "Starts a turn. Answered by exactly one `done`; while a turn is in flight by a `protocol_error` alone. Blank text, or a project that isn't trusted, gets a `protocol_error` and `done` with `refused`.",
        [field("text", Text, "the prompt")]
    ),
    command!(
        "approve",
        "Answers an open approval. An id that was never issued, or is settled, gets a `protocol_error`.",
        [
            field("approval_id", Text, "from the `approval_request`"),
            field("approved", Bool, "whether the call may run"),
        ]
    ),
    command!(
        "approval_mode",
        "Stores the approval mode for the trusted project. Answered by an `approval_mode` line once it is stored, else by a `protocol_error`.",
        [field("mode", OneOf(MODES), "the mode")]
    ),
    command!(
        "reload",
        "Freezes tools, skills and prompt anew. Answered by `refrozen`; by a `protocol_error` while a turn is in flight.",
        []
    ),
    command!(
        "cancel",
        "Cancels the turn in flight. Has no answer of its own.",
        []
    ),
    command!(
        "quit",
        "Lets the turn in flight end, declines open and later approvals, then the agent exits. The end of the host's input does the same.",
        []
    ),
    line(
        Dir::Agent,
        "type",
        "hello",
        &[
            field("type", Word("hello"), "the line"),
            field("proto", Word(super::PROTO), "the contract"),
            field(
                "protocol_version",
                Number(super::PROTOCOL_VERSION),
                "its number, for comparing",
            ),
            field("session_id", Text, "the session"),
            field("version", Text, "the product's version"),
            field("project", Text, "the project's absolute path"),
            field(
                "continued",
                Bool,
                "whether an earlier session goes on; then `transcript` is the next line",
            ),
        ],
        "The first line, and only there.",
    ),
    line(
        Dir::Agent,
        "type",
        "transcript",
        &[
            field("type", Word("transcript"), "the line"),
            SESSION,
            field(
                "messages",
                Items(&[
                    field("role", OneOf(ROLES), "who speaks"),
                    field("content", Text, "what was said, 4,096 characters at most"),
                ]),
                "text of user and assistant, 256 KiB at most",
            ),
            field("truncated", Bool, "whether anything was cut"),
        ],
        "The past of a continued session, for display. Live events are never replayed.",
    ),
    line(
        Dir::Agent,
        "type",
        "protocol_error",
        &[
            field("type", Word("protocol_error"), "the line"),
            field("message", Text, "what was wrong with the host's line"),
        ],
        "The refusal of a line of the host. Carries no `session_id`. The session is unharmed.",
    ),
    line(
        Dir::Agent,
        "type",
        "approval_mode",
        &[
            field("type", Word("approval_mode"), "the line"),
            field("mode", OneOf(MODES), "the mode that was stored"),
        ],
        "The answer to `approval_mode`. Carries no `session_id`.",
    ),
    event!(
        "token",
        "A piece of the reply's text.",
        [field("text", Text, "the piece")]
    ),
    event!(
        "thinking",
        "A piece of the model's thinking. Void if a `retry` follows.",
        [field("text", Text, "the piece")]
    ),
    event!(
        "message_done",
        "The end of a request's reply, also of one without text.",
        [field("text", Text, "the whole text")]
    ),
    event!(
        "budget",
        "How full the context is, before a request goes out.",
        [
            field(
                "used_tokens",
                Count,
                "estimated tokens of the transcript and the tool schemas"
            ),
            field("context_tokens", Count, "what the window holds"),
        ]
    ),
    event!(
        "usage",
        "What a request cost, if the provider said so.",
        [
            field(
                "prompt_tokens",
                Count,
                "tokens of the prompt, cached ones too"
            ),
            field("completion_tokens", Count, "tokens of the reply"),
            field(
                "cached_tokens",
                CountOrNull,
                "tokens read from a cache; null if unknown"
            ),
        ]
    ),
    event!(
        "tool_start",
        "A call begins.",
        [
            CALL,
            field("name", Text, "the tool"),
            field("args", Object, "what the model passed"),
        ]
    ),
    event!(
        "tool_end",
        "A call has ended.",
        [
            CALL,
            field("ok", Bool, "whether it did what it was asked"),
            field("output", Text, "what the tool said"),
        ]
    ),
    event!(
        "harness_note",
        "A note that the harness wrote into the model's transcript.",
        [
            field(
                "call_id",
                Text,
                "the call whose result it rode on; empty for a note before the next prompt"
            ),
            field("text", Text, "the note"),
        ]
    ),
    event!(
        "retry",
        "The model request will be sent again after a wait; thinking shown for it is void. Never after a token.",
        [
            field("attempt", Count, "the attempt that goes out, from 2"),
            field("max_attempts", Count, "how many there may be"),
            field("reason", Text, "what ended the one before"),
        ]
    ),
    event!(
        "diff",
        "A call changed a file.",
        [
            CALL,
            field("path", Text, "the file"),
            field("diff", Text, "the change"),
            field("added", Count, "lines added"),
            field("removed", Count, "lines removed"),
        ]
    ),
    event!(
        "approval_request",
        "A call waits for an `approve`. Never in mode `auto`.",
        [
            field("approval_id", Text, "what the `approve` names"),
            field("name", Text, "the tool"),
            field("summary", Text, "one line for a person"),
            field("detail", Text, "more for a person"),
            field(
                "reason",
                OneOf(REASONS),
                "`unapproved_source` must never be approved without a person"
            ),
            field("source_path", Text, "the unapproved file; empty for `gate`"),
            field(
                "source_sha",
                Text,
                "the first 12 hex digits of its SHA-256; empty for `gate`"
            ),
            field(
                "env",
                TextsOrAbsent,
                "environment variables that the tool will receive: a grant of credentials, to be shown whole"
            ),
        ]
    ),
    event!(
        "approval_settled",
        "An approval is closed.",
        [
            field("approval_id", Text, "which"),
            field("outcome", OneOf(OUTCOMES), "how"),
        ]
    ),
    event!(
        "refrozen",
        "Tools, skills and prompt were frozen anew.",
        [
            field("tools", Count, "tools now"),
            field("skills", Count, "skills now"),
            field("changes", Texts, "what changed, and who changed it"),
        ]
    ),
    event!(
        "schemas_over_budget",
        "The tool schemas take most of the window, so compaction comes early, or stops. At most once a session.",
        [
            field("schema_tokens", Count, "tokens of the schemas"),
            field("budget_tokens", Count, "what the window can spend"),
        ]
    ),
    event!(
        "compacted",
        "The receipt of a forced compaction.",
        [
            field("tokens_before", Count, "tokens before it"),
            field("tokens_after", Count, "tokens after it"),
            field(
                "compacted_messages",
                Count,
                "messages that were cut; 0: nothing changed"
            ),
        ]
    ),
    event!(
        "hook_failed",
        "A hook did not run; the turn goes on.",
        [
            field("hook", Text, "the hook"),
            field("event", Text, "where it stands"),
            field("detail", Text, "why"),
        ]
    ),
    event!(
        "turn_refused",
        "A hook refused the model's completion. The turn goes on with the reason as a user message, which is stored already.",
        [
            field("hook", Text, "the hook"),
            field("reason", Text, "its reason; show it"),
            field("continuation", Count, "refusals honoured before this one"),
            field(
                "continuations_left",
                Count,
                "how many were left, this one included"
            ),
        ]
    ),
    event!(
        "done",
        "The answer to a `user` command and the end of its turn: the only line that is certain to come.",
        [field(
            "stop_reason",
            Text,
            "`truncated`, `max_iterations`, `budget_exhausted`, `unverified`, `blocked`, `cancelled`, `error`, `refused`, or the provider's own word: a normal end"
        )]
    ),
    event!(
        "error",
        "Something failed. Ends nothing by itself.",
        [field("message", Text, "what")]
    ),
];

/// The table.
pub const SPEC: Spec = Spec {
    name: "openmax",
    proto: super::PROTO,
    about: "Line-delimited JSON over stdin and stdout: one object a line, ended by a newline (byte 0x0A). A host writes commands, the agent writes events. Members are found by name; their order means nothing. A host's line holds 8 MiB at most. Blank lines are skipped, unknown members of a known command are ignored.",
    lines: LINES,
    parts: &[],
    course: &[
        (
            "Opening",
            "The agent says `hello`. If an earlier session goes on, `transcript` follows. Commands may be written before that.",
        ),
        (
            "A turn",
            "`user` begins it and `done` ends it. Between them, for each request to the model: `budget`, then any number of `thinking` and `token` lines, `usage` if the provider gave it, and one `message_done`. Then the calls that the reply asked for: `tool_start`, an approval if the mode wants one, `diff`, `tool_end`; then the next request. After `done` the next `user` may be written at once.",
        ),
        (
            "How a turn ends",
            "`stop_reason` is the provider's own finish word on a normal end. `error` and `truncated` have an `error` line before them; a failed reply has no `message_done`, a truncated one has, and none of its calls runs. `cancelled` follows `cancel` or a shutdown. `max_iterations`, `budget_exhausted` and `unverified` are limits. `blocked` is a hook's word. `refused` means that no turn began.",
        ),
        (
            "Approvals",
            "In mode `ask` a call that changes things waits for `approve`; `approval_settled` says how it went. A declined call fails and the turn goes on. A change of the mode settles nothing. An external tool whose exact bytes nobody approved asks with reason `unapproved_source`.",
        ),
        (
            "Leaving",
            "After `quit`, or the end of the host's input, the running turn is finished, approvals are declined, and the process exits: with 1 if the last turn ended with `error`, with 2 if there was no session to continue, else with 0.",
        ),
    ],
};
