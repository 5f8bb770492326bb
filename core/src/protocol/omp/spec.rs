//! Every line of omp as a table: made of the types of the lines themselves, so that the page, the schema and the reader
//! can't differ.

use super::wire::{
    Block, Command, Data, Envelope, Event, Frame, KindRow, Message, Side, UiMethod, Update,
};
use crate::protocol::observer::Dir;
use crate::protocol::spec::{Field, FieldKind, LineSpec, PartSpec, Spec};

const ID: Field = Field {
    name: "id",
    kind: FieldKind::Maybe(&FieldKind::Any),
    about: "echoed by the response; best a string, and one that isn't in use",
};

const UI: [Field; 2] = [
    Field {
        name: "type",
        kind: FieldKind::Word("extension_ui_request"),
        about: "a request to the host's screen",
    },
    Field {
        name: "id",
        kind: FieldKind::Text,
        about: "what an answer names",
    },
];

/// The kinds of one sort as lines.
const fn lines<const N: usize>(
    dir: Dir,
    tag: &'static str,
    shared: &'static [Field],
    kinds: &'static [KindRow],
) -> [LineSpec; N] {
    let mut lines = [LineSpec {
        dir,
        tag,
        name: "",
        fields: &[],
        shared,
        about: "",
        answer: &[],
    }; N];
    let mut at = 0;
    while at < N {
        (lines[at].name, lines[at].fields, lines[at].about) = kinds[at];
        if matches!(dir, Dir::Host) {
            lines[at].answer = payload(lines[at].name);
        }
        at += 1;
    }
    lines
}

/// The members of what the response to this command carries.
const fn payload(command: &str) -> &'static [Field] {
    let mut row = 0;
    while row < Data::PAYLOADS.len() {
        let (commands, kind) = Data::PAYLOADS[row];
        let mut at = 0;
        while at < commands.len() {
            if same(commands[at], command)
                && let FieldKind::Fields(fields) = kind
            {
                return fields;
            }
            at += 1;
        }
        row += 1;
    }
    &[]
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

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

static MESSAGES: [PartSpec; Message::TAGS.len()] = parts(Message::KINDS);
static BLOCKS: [PartSpec; Block::TAGS.len()] = parts(Block::KINDS);
static UPDATES: [PartSpec; Update::TAGS.len()] = parts(Update::KINDS);

const COMMANDS: [LineSpec; Command::TAGS.len()] = lines(Dir::Host, "type", &[ID], Command::KINDS);
const SIDES: [LineSpec; Side::TAGS.len()] = lines(Dir::Host, "type", &[], Side::KINDS);
const RESPONSE: [LineSpec; 1] = lines(
    Dir::Agent,
    "type",
    &[],
    &[(
        "response",
        Envelope::FIELDS,
        "The one answer to a command; `data` is what the command's own line in this page says.",
    )],
);
const EVENTS: [LineSpec; Event::TAGS.len()] = lines(Dir::Agent, "type", &[], Event::KINDS);
const FRAMES: [LineSpec; Frame::TAGS.len()] = lines(Dir::Agent, "type", &[], Frame::KINDS);
const METHODS: [LineSpec; UiMethod::TAGS.len()] = lines(Dir::Agent, "method", &UI, UiMethod::KINDS);

const COUNT: usize =
    COMMANDS.len() + SIDES.len() + RESPONSE.len() + EVENTS.len() + FRAMES.len() + METHODS.len();

static LINES: [LineSpec; COUNT] = {
    let mut all = [RESPONSE[0]; COUNT];
    let sorts: [&[LineSpec]; 6] = [&COMMANDS, &SIDES, &RESPONSE, &EVENTS, &FRAMES, &METHODS];
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

/// The table.
pub static SPEC: Spec = Spec {
    name: "omp",
    proto: "omp RPC, protocol 1 and 2",
    about: "Line-delimited JSON over stdin and stdout: one object a line, ended by a newline (byte 0x0A). A host writes commands, and gets one response for each; the agent writes events and requests beside them. The protocol's number stays while members, types and commands are added: readers pass over what they don't know. A line of the agent holds 1 MiB, its newline included; protocol 2 cuts longer frames into `rpc_chunk` lines. Lines marked G2 and G3 came with later generations of the program.",
    lines: &LINES,
    parts: &[
        ("Messages", "role", &MESSAGES),
        ("Content blocks", "type", &BLOCKS),
        (
            "What is new in a reply (`assistantMessageEvent`)",
            "type",
            &UPDATES,
        ),
    ],
    course: &[
        (
            "Opening",
            "The agent says `ready`, then may show something, then lists its slash commands. Commands may be written at once; they are done in order.",
        ),
        (
            "Responses",
            "Each command gets one, with its id. `bash` and `live_start` answer when they are done; all others one after the other. A prompt's response says that it was accepted. If it fails after that, a second response says so.",
        ),
        (
            "A run",
            "`agent_start`, then steps, then `agent_end`. A step is `turn_start`, the messages that go in, the reply, its tools, `turn_end`. A message is `message_start`, `message_update` lines if it is a reply, `message_end`. A tool is `tool_execution_start`, updates, `tool_execution_end`, and its result as a message. After a failed attempt that is tried again, `agent_start` comes without an `agent_end`; a run that a change of the session left behind has none.",
        ),
        (
            "The end of a prompt",
            "`agentInvoked: false` in its response, or its `prompt_result`, or, in the first generation, the `agent_end` whose `isTerminal` isn't false. Then `session_settled`, once nothing runs, waits or can wake the session.",
        ),
        (
            "Questions",
            "A dialog waits for the `extension_ui_response` of its id, a host's tool for its `host_tool_result`, a host's URI for its `host_uri_result`. These lines pass all commands, and get no response.",
        ),
        (
            "Large frames",
            "`negotiate_protocol` with 2 changes to chunks, right behind its response. Before that, a response that is too long is a failure, and an event is cut until it fits.",
        ),
        (
            "Leaving",
            "When the host's input ends, open questions fail, accepted commands are finished, the run is cancelled, and the process exits with 0.",
        ),
    ],
};
