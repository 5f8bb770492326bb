//! Every line of this wire as a table: of the events it is made of their types, so that the page, the schema and the reader
//! can't differ.

use super::wire::{Event, SteerKind};
use crate::protocol::observer::Dir;
use crate::protocol::spec::{Field, FieldKind, LineSpec, Spec};

const fn field(name: &'static str, kind: FieldKind, about: &'static str) -> Field {
    Field { name, kind, about }
}

const fn command(name: &'static str, fields: &'static [Field], about: &'static str) -> LineSpec {
    LineSpec {
        dir: Dir::Host,
        tag: "command",
        name,
        fields,
        shared: &[],
        about,
        answer: &[],
    }
}

const GOAL: [Field; 1] = [field(
    "command",
    FieldKind::Word("goal"),
    "the kind of line",
)];

const fn goal(name: &'static str, fields: &'static [Field], about: &'static str) -> LineSpec {
    LineSpec {
        tag: "action",
        shared: &GOAL,
        ..command(name, fields, about)
    }
}

const SUBMISSION: FieldKind = FieldKind::Maybe(&FieldKind::Text);

const COMMANDS: [LineSpec; 9] = [
    command(
        "prompt",
        &[
            field("text", FieldKind::Text, "what the person says"),
            field(
                "submission_id",
                SUBMISSION,
                "the host's own name for it, never null",
            ),
        ],
        "Begins a turn, or waits until those before it are over.",
    ),
    command(
        "steer",
        &[
            field(
                "kind",
                FieldKind::Maybe(&FieldKind::OneOf(SteerKind::WORDS)),
                "how it reaches the model; a prompt where it is left out",
            ),
            field("text", FieldKind::Text, "what is said"),
        ],
        "Says something into the running turn; it never begins one. While nothing runs, a prompt is dropped, and a command goes into the history.",
    ),
    command(
        "compact",
        &[],
        "Sums the history up, once nothing else runs.",
    ),
    command(
        "cancel",
        &[],
        "Ends the turn or the compaction that runs; while nothing runs, takes out the next prompt that waits. No turn begins by itself any more.",
    ),
    command(
        "jobs_snapshot",
        &[field(
            "request_id",
            FieldKind::Text,
            "for the answer; not empty",
        )],
        "Asks how all jobs stand.",
    ),
    command(
        "job_stop",
        &[
            field("request_id", FieldKind::Text, "for the answer; not empty"),
            field(
                "generation",
                FieldKind::Text,
                "the process that owns the job: one component of a path",
            ),
            field(
                "job_id",
                FieldKind::Text,
                "the job: one component of a path",
            ),
        ],
        "Stops a job.",
    ),
    goal(
        "set",
        &[
            field("text", FieldKind::Text, "the goal; a blank one is refused"),
            field(
                "auto",
                FieldKind::Maybe(&FieldKind::Bool),
                "whether turns begin by themselves until it is met; what isn't true is false",
            ),
        ],
        "Sets the goal.",
    ),
    goal("clear", &[], "Takes the goal away."),
    command(
        "approval",
        &[
            field("id", FieldKind::Text, "from the `approval_requested`"),
            field("allow", FieldKind::Bool, "whether the call may run"),
        ],
        "Answers a question. A question that is unknown or settled is passed over.",
    ),
];

static LINES: [LineSpec; COMMANDS.len() + Event::TAGS.len()] = {
    let mut lines = [COMMANDS[0]; COMMANDS.len() + Event::TAGS.len()];
    let mut at = 0;
    while at < COMMANDS.len() {
        lines[at] = COMMANDS[at];
        at += 1;
    }
    let mut kind = 0;
    while kind < Event::KINDS.len() {
        let (name, fields, about) = Event::KINDS[kind];
        lines[at] = LineSpec {
            dir: Dir::Agent,
            tag: "event",
            fields,
            ..command(name, &[], about)
        };
        at += 1;
        kind += 1;
    }
    lines
};

/// The table.
pub static SPEC: Spec = Spec {
    name: "openseek",
    proto: "openseek_protocol 0.1.2",
    about: "Line-delimited JSON: events of an engine on its standard output, commands of a host on its standard input. Lines are flat: no envelope, no clock, no numbers; their order is all there is. A host passes over events that it can't read, and over members that it doesn't know. An engine answers a command that it can't read.",
    lines: &LINES,
    parts: &[],
    course: &[
        (
            "A turn",
            "For each step: what was said into the turn, reminders, `agent_step`, pieces of reasoning and text, `reasoning_message`, `assistant_message`, `usage`, and one result a call in the order of the calls. Then the next step, or one event that ends the turn. What was said too late trails it.",
        ),
        (
            "What isn't said",
            "That a command was accepted, that a turn begins before its first step, that a call begins, that a prompt was taken out.",
        ),
        (
            "Questions",
            "`approval_requested` holds its call up until an `approval` with that id comes; then `approval_resolved`. The first answer counts. An engine asks only where it was started to; where it was started to allow everything, it says both itself.",
        ),
        (
            "Goals",
            "A goal that is set with `auto` makes turns begin by themselves, after a turn that went well and while nothing else waits: 20 of them, each with a `goal_continue` before it. A cancel, and a turn that failed, end that.",
        ),
        (
            "Jobs",
            "A record has a revision, which grows with each change. `finished` or `failed` comes once, and nothing of that job after it.",
        ),
        (
            "Commands that can't be read",
            "Each is one `command_error`, with a text of the contract. A line that isn't JSON ends the reading of commands: `command stream: ` and the reason.",
        ),
        (
            "Leaving",
            "At the end of input open questions are settled as cancelled, what runs and what waits is finished, and the process leaves.",
        ),
    ],
};
