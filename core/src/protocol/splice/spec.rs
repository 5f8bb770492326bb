//! Every line of this wire as a table: of what an agent writes they are made of their types, so that the page, the schema
//! and the reader can't differ.

use super::wire::{Event, SCHEMA_VERSION};
use crate::protocol::observer::Dir;
use crate::protocol::spec::{Field, FieldKind, LineSpec, Spec};

const fn field(name: &'static str, kind: FieldKind, about: &'static str) -> Field {
    Field { name, kind, about }
}

const VERSION: [Field; 1] = [field(
    "schemaVersion",
    FieldKind::Number(SCHEMA_VERSION),
    "the schema",
)];

const IMAGE: &[Field] = &[
    field(
        "mediaType",
        FieldKind::Text,
        "`image/png`, `image/jpeg`, `image/gif` or `image/webp`; short names and `image/jpg` count as well",
    ),
    field(
        "data",
        FieldKind::Text,
        "standard base64, without a prefix: 10 MiB of bytes at most",
    ),
];

const INPUTS: [LineSpec; 2] = [
    LineSpec {
        dir: Dir::Host,
        tag: "type",
        name: "message",
        fields: &[
            field("type", FieldKind::Word("message"), "the kind of line"),
            field("role", FieldKind::Word("user"), "whose it is"),
            field(
                "content",
                FieldKind::Maybe(&FieldKind::Text),
                "what the person says; it may be blank, or left out, where there are pictures",
            ),
            field(
                "images",
                FieldKind::Maybe(&FieldKind::List(&FieldKind::Fields(IMAGE))),
                "pictures",
            ),
        ],
        shared: &VERSION,
        about: "What a person says, with pictures or without.",
        answer: &[],
    },
    LineSpec {
        dir: Dir::Host,
        tag: "type",
        name: "prompt",
        fields: &[
            field("type", FieldKind::Word("prompt"), "the kind of line"),
            field("content", FieldKind::Text, "what is asked for; not blank"),
        ],
        shared: &VERSION,
        about: "What is asked for.",
        answer: &[],
    },
];

static LINES: [LineSpec; INPUTS.len() + Event::TAGS.len()] = {
    let mut lines = [INPUTS[0]; INPUTS.len() + Event::TAGS.len()];
    let mut at = 0;
    while at < INPUTS.len() {
        lines[at] = INPUTS[at];
        at += 1;
    }
    let mut kind = 0;
    while kind < Event::KINDS.len() {
        let (name, fields, about) = Event::KINDS[kind];
        lines[at] = LineSpec {
            dir: Dir::Agent,
            tag: "type",
            name,
            fields,
            shared: &[],
            about,
            answer: &[],
        };
        at += 1;
        kind += 1;
    }
    lines
};

/// The table.
pub static SPEC: Spec = Spec {
    name: "splice",
    proto: "splice stream-JSON, schema version 2",
    about: "Line-delimited JSON: a host writes its input and closes it; an agent judges it whole, runs once, and tells of the run on its standard output. Nothing is answered, steered or cancelled but by a signal. A host passes over types of lines that it doesn't know; an agent refuses members that it doesn't know.",
    lines: &LINES,
    parts: &[],
    course: &[
        (
            "A run",
            "`run_start`, warnings, the body, a `text` that sums up, `final`, an `error` unless all went well, `run_end`. The exit code of `run_end` is that of the process.",
        ),
        (
            "Refused input",
            "`error` with the code `usage_error`, and `run_end` with 2. No `run_start`, and a run id of its own.",
        ),
        (
            "Status and exit code",
            "`success` 0, `spec_review_required` 0, `error` 1, 2 or 3, `incomplete` 4, `interrupted` 130.",
        ),
        (
            "Stages",
            "A pipeline runs some of `code_writer`, `test_generator`, `static_analyzer`, `security_auditor`, `test_runner` and `acceptance_verifier`, as its tier says. Each has a marker when it begins and one when it ends, alone in a `reasoning`: NUL, `STAGE`, an object with `changedFiles`, `detail`, `name`, `progress` and `status`, NUL. A stage that was cancelled has none at its end.",
        ),
        (
            "Arguments and calls",
            "`tool_call_start` and `tool_call_delta` are what a model writes. In a stage they are its answer, and no tool runs. A tool that runs has a `tool_call` and a `tool_result`; calls may stand within calls, and are paired by id.",
        ),
        (
            "Permission",
            "Nobody can answer on this wire. A call is decided by the mode, a rule, or not at all: then its result is an error.",
        ),
        (
            "Secrets",
            "What looks like a key is replaced by `[REDACTED]`, and so is the value of a member with a secret's name.",
        ),
        (
            "What is left out",
            "Empty texts, lists and objects. False and 0 stay where they mean something.",
        ),
    ],
};
