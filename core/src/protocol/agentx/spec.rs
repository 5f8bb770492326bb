//! Every line of this wire as a table: made of the types of the lines themselves, so that the page, the schema and the
//! reader can't differ. One table for the strict wire, one for claude: of the same types.

use super::wire::{
    Block, ContextUsage, ControlCancel, ControlRequest, ControlResponse, Decision, Delta,
    ElicitationAnswer, History, HookOutput, Import, Initialized, KindRow, McpAnswered, McpStatuses,
    MessageCancelled, ModeSet, ModelSet, Operation, PermissionUpdate, PluginsReloaded,
    ProviderList, Record, Rewound, ServersSet, SettingsShown, StillQueued, StreamEvent, System,
    UpdateEnvironment, User,
};
use crate::protocol::observer::Dir;
use crate::protocol::spec::{Field, FieldKind, LineSpec, PartSpec, Spec};

/// The kinds of one sort as parts of lines.
const fn parts<const N: usize>(kinds: &'static [KindRow]) -> [PartSpec; N] {
    let mut parts = [PartSpec {
        name: "",
        fields: &[],
        about: "",
    }; N];
    let mut at = 0;
    while at < N {
        (parts[at].name, parts[at].fields, parts[at].about) = kinds[at];
        at += 1;
    }
    parts
}

static OPERATIONS: [PartSpec; Operation::TAGS.len()] = parts(Operation::KINDS);
static BLOCKS: [PartSpec; Block::TAGS.len()] = parts(Block::KINDS);
static EVENTS: [PartSpec; StreamEvent::TAGS.len()] = parts(StreamEvent::KINDS);
static DELTAS: [PartSpec; Delta::TAGS.len()] = parts(Delta::KINDS);
static UPDATES: [PartSpec; PermissionUpdate::TAGS.len()] = parts(PermissionUpdate::KINDS);
static DECISIONS: [PartSpec; Decision::TAGS.len()] = parts(Decision::KINDS);

const fn payload(name: &'static str, fields: &'static [Field]) -> PartSpec {
    PartSpec {
        name,
        fields,
        about: "The payload of a success.",
    }
}

static ANSWERS: [PartSpec; 15] = [
    payload("initialize", Initialized::FIELDS),
    payload("interrupt", StillQueued::FIELDS),
    payload("set_permission_mode", ModeSet::FIELDS),
    payload("set_model", ModelSet::FIELDS),
    payload("mcp_status", McpStatuses::FIELDS),
    payload("get_context_usage", ContextUsage::FIELDS),
    payload("rewind_files", Rewound::FIELDS),
    payload("cancel_async_message", MessageCancelled::FIELDS),
    payload("hook_callback", HookOutput::FIELDS),
    payload("mcp_message", McpAnswered::FIELDS),
    payload("mcp_set_servers", ServersSet::FIELDS),
    payload("reload_plugins", PluginsReloaded::FIELDS),
    payload("get_settings", SettingsShown::FIELDS),
    payload("elicitation", ElicitationAnswer::FIELDS),
    PartSpec {
        name: "--list-providers",
        fields: ProviderList::FIELDS,
        about: "The whole document that is written for `--list-providers --output-format json`. No line of the wire.",
    },
];

const REQUEST: [Field; 3] = [
    ControlRequest::FIELDS[0],
    Field {
        name: "request",
        kind: FieldKind::Maybe(&FieldKind::Kinds("subtype", &OPERATIONS)),
        about: "the operation",
    },
    ControlRequest::FIELDS[2],
];

const fn line(
    dir: Dir,
    name: &'static str,
    fields: &'static [Field],
    about: &'static str,
) -> LineSpec {
    LineSpec {
        dir,
        tag: "type",
        name,
        fields,
        shared: &[],
        about,
        answer: &[],
    }
}

const fn control(dir: Dir) -> [LineSpec; 3] {
    [
        line(dir, "control_request", &REQUEST, ControlRequest::ABOUT),
        line(
            dir,
            "control_response",
            ControlResponse::FIELDS,
            ControlResponse::ABOUT,
        ),
        line(
            dir,
            "control_cancel_request",
            ControlCancel::FIELDS,
            ControlCancel::ABOUT,
        ),
    ]
}

const SYSTEM: [Field; 1] = [Field {
    name: "type",
    kind: FieldKind::Word("system"),
    about: "how the session stands",
}];
const IMPORT: [Field; 1] = [Field {
    name: "type",
    kind: FieldKind::Word("attachment_import"),
    about: "a step of an upload",
}];

/// The kinds of one sort as lines that share their type.
const fn kinds<const N: usize>(
    dir: Dir,
    tag: &'static str,
    shared: &'static [Field],
    kinds: &'static [KindRow],
) -> [LineSpec; N] {
    let mut lines = [line(dir, "", &[], ""); N];
    let mut at = 0;
    while at < N {
        lines[at].tag = tag;
        lines[at].shared = shared;
        (lines[at].name, lines[at].fields, lines[at].about) = kinds[at];
        at += 1;
    }
    lines
}

const HOST: [LineSpec; 5] = [
    line(Dir::Host, "user", User::FIELDS, User::ABOUT),
    line(
        Dir::Host,
        "assistant",
        History::FIELDS,
        "A reply that was said before: context alone.",
    ),
    line(
        Dir::Host,
        "system",
        History::FIELDS,
        "A record that was said before: context alone.",
    ),
    line(Dir::Host, "keep_alive", &[], "Means nothing."),
    line(
        Dir::Host,
        "update_environment_variables",
        UpdateEnvironment::FIELDS,
        UpdateEnvironment::ABOUT,
    ),
];
const HOST_CONTROL: [LineSpec; 3] = control(Dir::Host);
const IMPORTS: [LineSpec; Import::TAGS.len()] =
    kinds(Dir::Host, "operation", &IMPORT, Import::KINDS);
const RECORDS: [LineSpec; Record::TAGS.len()] = kinds(Dir::Agent, "type", &[], Record::KINDS);
const SYSTEMS: [LineSpec; System::TAGS.len()] =
    kinds(Dir::Agent, "subtype", &SYSTEM, System::KINDS);
const AGENT_CONTROL: [LineSpec; 3] = control(Dir::Agent);

const COUNT: usize = HOST.len()
    + HOST_CONTROL.len()
    + IMPORTS.len()
    + RECORDS.len()
    + SYSTEMS.len()
    + AGENT_CONTROL.len();

const ALL: [LineSpec; COUNT] = {
    let mut all = [HOST[0]; COUNT];
    let sorts: [&[LineSpec]; 6] = [
        &HOST,
        &HOST_CONTROL,
        &IMPORTS,
        &RECORDS,
        &SYSTEMS,
        &AGENT_CONTROL,
    ];
    let (mut sort, mut next) = (0, 0);
    while sort < sorts.len() {
        let mut at = 0;
        while at < sorts[sort].len() {
            all[next] = sorts[sort][at];
            next += 1;
            at += 1;
        }
        sort += 1;
    }
    all
};

/// What only claude writes.
const CLAUDE_ONLY: [&str; 7] = [
    "command_lifecycle",
    "api_retry",
    "permission_denied",
    "background_tasks_changed",
    "informational",
    "notification",
    "thinking_tokens",
];
/// What claude doesn't have: uploads, and how they stand.
const STRICT_ONLY: [&str; 6] = [
    "begin",
    "chunk",
    "commit",
    "abort",
    "attachment_import_result",
    "attachment_import_rejected",
];

/// All lines but these.
const fn without<const N: usize>(names: &[&str]) -> [LineSpec; N] {
    let mut lines = [HOST[0]; N];
    let (mut at, mut next) = (0, 0);
    while at < COUNT {
        if !has(names, ALL[at].name) {
            lines[next] = ALL[at];
            next += 1;
        }
        at += 1;
    }
    lines
}

const fn has(names: &[&str], name: &str) -> bool {
    let mut at = 0;
    while at < names.len() {
        if same(names[at], name) {
            return true;
        }
        at += 1;
    }
    false
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

static AGENTX_LINES: [LineSpec; COUNT - CLAUDE_ONLY.len()] = without(&CLAUDE_ONLY);
static CLAUDE_LINES: [LineSpec; COUNT - STRICT_ONLY.len()] = without(&STRICT_ONLY);

const PARTS: &[(&str, &str, &[PartSpec])] = &[
    ("Operations (`request`)", "subtype", &OPERATIONS),
    ("What answers carry (`response.response`)", "", &ANSWERS),
    (
        "Decisions (the answer to `can_use_tool`)",
        "behavior",
        &DECISIONS,
    ),
    ("Changes of permissions", "type", &UPDATES),
    ("Content blocks", "type", &BLOCKS),
    ("Events of a stream (`event`)", "type", &EVENTS),
    ("What is new in a block (`delta`)", "type", &DELTAS),
];

/// The table of the strict wire.
pub static SPEC: Spec = Spec {
    name: "agentx",
    proto: "agentx structured SDK wire",
    about: "Line-delimited JSON over stdin and stdout, the same in both directions: one object a line, UTF-8, ended by a newline; U+2028 and U+2029 are written as escapes; a line holds 8 MiB at most. Records are closed: a member that isn't listed, or stands twice in any spelling, ends the stream. Members that are marked for claude are not of this wire. Every record of the agent but control and uploads has a `session_id` and a `uuid` of its own.",
    lines: &AGENTX_LINES,
    parts: PARTS,
    course: &[
        (
            "Opening",
            "The agent writes `system/init` before it has read anything. A host may send `initialize`, without members, and learns what there is. Provider and model stay what they are until the process ends.",
        ),
        (
            "A turn",
            "`running`, the records of the turn, one `result`, `idle`. A prompt that comes meanwhile waits by its priority; `now` cancels the turn. A prompt that makes no sense gets a `result` with the stop reason `input_error`, and nothing around it.",
        ),
        (
            "Requests",
            "Each side may ask, and names its request. It is answered once, or withdrawn, or refused at the end of input. Of this program a host can ask `initialize`, `interrupt`, `get_context_usage` and `mcp_status`; the setters are answered by a fixed error each, and all else by one that says so.",
        ),
        (
            "Permissions",
            "`requires_action`, then `can_use_tool`. An allow has `updatedInput`, which takes the place of the whole input unless it is empty; a deny has a `message`. What can't be read denies. `running` comes back when nothing is open.",
        ),
        (
            "Interrupt",
            "Open permissions are withdrawn, then `interrupt` is answered, then each accepted call gets an error result, then the turn its `result`, then `idle`.",
        ),
        (
            "Uploads",
            "`begin` is accepted or refused, chunks follow in order, `commit` gives the manifest that one prompt may refer to. Each ends with exactly one record.",
        ),
        (
            "Leaving",
            "A last line without a newline counts. Requests that wait are refused, what was accepted is finished, and the process leaves with 0, or with 1 if the last result was an error.",
        ),
    ],
};

/// The table of claude.
pub static CLAUDE_SPEC: Spec = Spec {
    name: "claude",
    proto: "stream-json of the Claude Agent SDKs",
    about: "Line-delimited JSON over stdin and stdout, the same in both directions: one object a line, UTF-8, ended by a newline; U+2028 and U+2029 are written as escapes. Readers pass over members and records that they don't know; of a member that stands twice the last one counts. Members that are marked for the strict wire are not of this one.",
    lines: &CLAUDE_LINES,
    parts: PARTS,
    course: &[
        (
            "Opening",
            "The host sends `initialize`, with its hooks and MCP servers, and waits for the answer.",
        ),
        (
            "A turn",
            "`system/init`, then a record for each block of a reply, what tools gave back as `user` records, and one `result`. With partial messages each block's events come before it, and it comes before its own stop.",
        ),
        (
            "Requests",
            "Each side may ask, and names its request. An answer that isn't an error is a success. What the agent doesn't know is an error with a code.",
        ),
        (
            "Permissions",
            "`can_use_tool` goes to the host while hooks are asked, too: who decides first decides, and the other is withdrawn.",
        ),
        (
            "Failures",
            "A request to the provider that fails is tried again, with an `api_retry` for each; at last the turn ends with a `result` of subtype `success` and `is_error` true.",
        ),
        (
            "Leaving",
            "When input ends the turn is finished. The process leaves with 0, or with 1 if the last result was an error.",
        ),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wire_has_its_own_lines_once() {
        for (lines, other) in [
            (&AGENTX_LINES[..], &CLAUDE_ONLY[..]),
            (&CLAUDE_LINES[..], &STRICT_ONLY[..]),
        ] {
            for (index, line) in lines.iter().enumerate() {
                assert!(
                    !line.name.is_empty() && !has(other, line.name),
                    "{}",
                    line.name
                );
                let same =
                    |other: &LineSpec| other.dir == line.dir && other.title() == line.title();
                assert_eq!(lines.iter().position(same), Some(index), "{}", line.title());
            }
        }
    }
}
