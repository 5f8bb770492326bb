//! The rules of agentx and claude, as data. Each belongs to a guarantee (WIRE-…) and cites a section of the contract.
//!
//! Claude's wire grows with each of its programs, and nobody has written it down whole. What only recordings show is a
//! warning there at most; an error is what its hosts break on.

use crate::protocol::observer::{Unseen, catalogue};

const FRAMING: &str = "agentx SDK wire, Framing and envelopes";
const INPUT: &str = "agentx SDK wire, Input records";
const OUTPUT: &str = "agentx SDK wire, Core output records";
const EVENTS: &str = "agentx SDK wire, System and lifecycle events";
const CONTROL: &str = "agentx SDK wire, Control request and response protocol";
const OPERATIONS: &str = "agentx SDK wire, Control operations";
const RACE: &str = "agentx SDK wire, Permission race";
const ORDER: &str = "agentx SDK wire, Ordering, replay, and duplicate suppression";
const FAILURE: &str = "agentx SDK wire, Failure behavior";

catalogue! {
    NotALine = "WIRE-001.a" Error Agent FRAMING
        "a line of the agent is one JSON object"
        "The line isn't UTF-8, or not exactly one JSON object. Warning for a last line without a newline (it was cut off), and where nobody knows which side wrote it; info for half a surrogate pair."
    HostNotALine = "WIRE-001.b" Error Host FRAMING
        "a line of the host is one JSON object"
        "The line isn't exactly one JSON object: it ends the stream. Info where the agent's lines are observed; claude passes over other JSON."
    Separators = "WIRE-001.c" Error Agent FRAMING
        "U+2028 and U+2029 are written as escapes"
        "One of the two stands in the line as it is: a reader that takes it for the end of a line gets two halves."
    ExitCode = "WIRE-001.d" Error Exit FAILURE
        "the exit code says how it ended"
        "A line that ends the stream, or a last `result` that is an error, gives 1; else the process leaves with 0 when its input has ended. Warning for a 1 that no line explains, and in claude for a result's. A signal is no fault."

    UnknownType = "WIRE-002.a" Info Agent FRAMING
        "the type is one of the contract's"
        "The contract has no record of this type or subtype, or an agent asks for no such operation. Readers pass over it."
    HostUnknownType = "WIRE-002.b" Info Host FRAMING
        "the type of a host's record is one of the contract's"
        "The contract has no record of this type. The agent passes over it."

    AskEarly = "WIRE-003.a" Error Agent ORDER
        "a call is asked about behind the reply that made it"
        "No `assistant` record has named this call: the question has overtaken it. Not judged for calls of helpers. Warning in claude."
    OutsideTurn = "WIRE-003.b" Error Agent EVENTS
        "records of a turn stand within it"
        "The record belongs to a turn, and no `running` has opened one since the last `result`. Only where states are told."
    ResultOutside = "WIRE-003.c" Error Agent OUTPUT
        "a turn has one result"
        "A `result` comes, and no turn is open: it has its result, or has never begun. Input errors and commands that need no turn stand alone. Warning in claude."
    Stream = "WIRE-003.d" Warning Agent EVENTS
        "the events of a message come in their order"
        "`message_start`, blocks one after the other, each begun, grown and ended, `message_delta`, `message_stop`. Not judged in the strict wire, which may hold any provider's events."
    Pieces = "WIRE-003.e" Warning Agent EVENTS
        "the pieces of a block make it"
        "The pieces of a text aren't what its `assistant` record says."
    MessageId = "WIRE-003.f" Warning Agent OUTPUT
        "the records of a message carry its id"
        "A message streams, and the `assistant` record has another id."
    SessionId = "WIRE-003.g" Error Agent OUTPUT
        "every record is of one session"
        "The `session_id` is another than in the records before. Warning in claude."
    RecordId = "WIRE-003.h" Error Agent OUTPUT
        "a record has an id of its own"
        "A record before has this `uuid`. A replay has its prompt's. Warning in claude."
    ResultText = "WIRE-003.i" Warning Agent OUTPUT
        "a result repeats the last reply"
        "`result` of a success is neither the text of the last reply nor of its last block."

    IdleEarly = "WIRE-004.a" Error Agent EVENTS
        "idle comes behind a result"
        "`idle` is said while a turn has no `result` yet, or once more behind the same one. Warning in claude."
    IdleMissing = "WIRE-004.b" Error Agent EVENTS
        "idle follows each result"
        "A turn begins, or the process leaves, and no `idle` has followed the `result` before. Hosts that read states wait for it. Warning in claude."
    States = "WIRE-004.c" Error Agent EVENTS
        "states follow each other"
        "`running` begins a turn or ends a wait, `requires_action` comes while the turn runs, and a question follows it. Warning in claude."
    AskState = "WIRE-004.d" Error Agent RACE
        "requires_action stands before the first question"
        "A permission is asked for, and the state isn't `requires_action`. Warning in claude."
    RunningBack = "WIRE-004.e" Error Both RACE
        "running comes back when nothing is open"
        "`running` is said while a permission is open; or the last one was answered, and the call has its result, or the turn its own, without it. A question that was withdrawn needs none, and neither has one whose answer a cancel may have passed: the call was allowed and failed, or the turn failed. Warning in claude."

    Compacting = "WIRE-005.a" Warning Agent EVENTS
        "a compaction that begins ends"
        "The turn ends while `compacting` is the last that was said; or a boundary stands where nothing was compacted."

    Uncaused = "WIRE-006.a" Error Both CONTROL
        "a response answers a request"
        "No request of the host of this id waits for a response: it was never sent, or is answered."
    Unanswered = "WIRE-006.b" Error Both CONTROL
        "a request is answered"
        "The agent left a request without a response. Warning where its exit wasn't seen."
    RequestId = "WIRE-006.c" Error Agent CONTROL
        "a request of the agent has an id of its own"
        "The id is missing, empty, no text, or that of a request before."
    HostRequestId = "WIRE-006.d" Info Host CONTROL
        "a request of the host has an id that no open one has"
        "Two open requests of one id can't be told apart."
    Echo = "WIRE-006.e" Error Both ORDER
        "a response of the host is repeated once, if it was matched"
        "The agent repeats the response to a request of its own that the host hasn't answered, or repeats it again (AX-P29)."

    CancelUnknown = "WIRE-007.a" Error Agent CONTROL
        "control_cancel_request names an open request"
        "The agent withdraws what it has never asked. Warning if it was withdrawn before, or its answer has been read; a withdrawal that may have crossed the answer is no fault."
    LateAnswer = "WIRE-007.b" Info Both CONTROL
        "a host's response names an open request"
        "The request is answered, was withdrawn, or has never been: the response is passed over (AX-P28)."
    HostCancel = "WIRE-007.c" Info Both CONTROL
        "a host withdraws an open request"
        "The request is answered, was withdrawn, or has never been."

    AskedAfterEnd = "WIRE-008.a" Error Both CONTROL
        "nothing is asked once the input has ended"
        "The agent has refused a call because its input is closed, and asks once more: nobody can answer. Warning in claude."
    OpenAtEnd = "WIRE-008.b" Error Exit CONTROL
        "no turn is open when the process leaves"
        "The process leaves with 0 while a turn has no result, or while it is said to wait for the host. Warning in claude."

    ResponseShape = "WIRE-009.a" Error Agent CONTROL
        "a response is a success or an error"
        "`subtype` is one of the two, a success has no `error`, an error says why and has no `response`."
    HostResponseShape = "WIRE-009.b" Error Host CONTROL
        "a response of the host is a success or an error"
        "The response has no body or id, another `subtype`, or members that don't go together: it ends the stream. Info where the agent's lines are observed; claude passes over some, and takes any other word for a success."
    Payload = "WIRE-009.c" Error Both CONTROL
        "the payload is that of the operation"
        "The payload of a success lacks a member, has one of another type, or isn't there. Warning for one that claude leaves out."
    HostPayload = "WIRE-009.d" Info Both CONTROL
        "the payload of a host is that of the operation"
        "The answer to a hook, to an MCP message or to a dialog isn't one: the agent takes the safe one."

    InterruptAnswer = "WIRE-010.a" Error Both CONTROL
        "an interrupt is heard, and the answer carries nothing"
        "The answer to `interrupt` has a payload. In claude it may list what stays queued."
    InterruptResult = "WIRE-010.b" Error Both CONTROL
        "an interrupted turn ends as one"
        "A turn was open when the interrupt was answered, and its `result` isn't `error_during_execution`. Warning in claude, and while work beside the turn was open."

    CancelsFirst = "WIRE-011.a" Error Both CONTROL
        "open permissions are withdrawn before an interrupt is answered"
        "The interrupt is answered while a permission is neither answered nor withdrawn."
    CancelOrder = "WIRE-011.b" Error Both CONTROL
        "permissions are withdrawn in the order in which they were asked"
        "An interrupt withdraws a later one before an earlier one."
    CallOpen = "WIRE-011.c" Error Agent ORDER
        "every call has its result before the turn's"
        "The `result` comes, and a call of the turn has no `tool_result`. Warning in claude; info for a call of a reply that can have been void: no call of it has a result, and the turn failed, another reply made calls, or a retry or a compaction came."

    Cost = "WIRE-012.a" Error Agent OUTPUT
        "the price is that of the models"
        "`total_cost_usd` is the sum of `costUSD`, and `null` if one of them is. A price is no negative number. Warning in claude."
    Usage = "WIRE-012.b" Error Agent OUTPUT
        "the usage is that of the models"
        "The tokens of `usage` aren't the sum of `modelUsage`, or `total_tokens` isn't the sum of its parts."
    Totals = "WIRE-012.c" Warning Agent OUTPUT
        "what the session cost grows"
        "In claude `total_cost_usd` and `modelUsage` count the session: they don't shrink."
    Turns = "WIRE-012.d" Error Agent OUTPUT
        "num_turns counts the turn"
        "The turn had more replies than requests; in claude it is 1 and the records with role user that were written in it, and a warning."

    Duplicate = "WIRE-014.a" Error Agent OUTPUT
        "a member stands once in its object"
        "A member stands twice, in whatever spelling. Warning in claude."
    HostDuplicate = "WIRE-014.b" Error Host OUTPUT
        "a member of a host's record stands once in its object"
        "A member stands twice, in whatever spelling: it ends the stream. Info where the agent's lines are observed; in claude the last one counts."

    ApiKeySource = "WIRE-016.a" Error Agent OUTPUT
        "apiKeySource is user or temporary"
        "`system/init`, or the account in the answer to `initialize`, says another word. Not judged in claude."

    HostMessage = "WIRE-017.a" Error Host INPUT
        "a prompt is a message of the contract"
        "The message can't be read, or its priority, its ids or its attachments make no sense: the host is told in a `result`, or in claude the process leaves. Info where the agent's lines are observed."
    Replay = "WIRE-017.b" Error Both ORDER
        "a replay repeats a prompt"
        "The host has sent no prompt of this `uuid`, or one that says something else. Warning in claude."

    ImportShape = "WIRE-018.a" Error Host INPUT
        "a step of an upload is one of the contract's"
        "An id, a size, a digest, a name or a kind can't be one: it ends the stream. Info where the agent's lines are observed."
    TooLong = "WIRE-018.b" Error Agent INPUT
        "a line of the agent is 8 MiB at most"
        "The line has more than 8,388,608 bytes. In claude info from 1 MiB on: some hosts read no more."
    HostTooLong = "WIRE-018.c" Error Host INPUT
        "a line of the host is 8 MiB at most"
        "The line has more than 8,388,608 bytes: it ends the stream. Info where the agent's lines are observed, and in claude where the reader's own limit is met."
    ChunkOrder = "WIRE-018.d" Info Both INPUT
        "chunks count on from 0"
        "The upload isn't open, or another chunk was next: the agent must say so."

    ImportOnce = "WIRE-019.a" Error Agent INPUT
        "an upload is accepted once and ends once"
        "A record of an upload comes again, or after its last one."
    ImportUncaused = "WIRE-019.b" Error Both INPUT
        "a record of an upload answers the host"
        "The host has begun no upload of this id; for a refusal, it has named none."
    ImportForm = "WIRE-019.c" Error Agent INPUT
        "a record of an upload says how it stands"
        "`accepted` and `rejected` end nothing, the others do; `committed` has its manifest, and what failed a reason."
    ImportUnended = "WIRE-019.d" Error Exit INPUT
        "every upload has ended when the process leaves"
        "The process leaves with 0, and an upload that was accepted has no last record."

    Attachments = "WIRE-020.a" Info Both INPUT
        "a prompt refers to what was committed for it"
        "An attachment wasn't committed for this prompt, or one that was is left out: the agent must say so."
    Lifecycle = "WIRE-020.b" Warning Agent ORDER
        "a prompt is queued, started and completed"
        "`command_lifecycle` leaves a step out, or comes after the last one. Info for one that was never started: a hook may have stopped it. Claude only."

    Members = "WIRE-021.a" Warning Agent INPUT
        "a record has no members but its own"
        "The contract gives this record no such member. Not judged in claude, which grows."
    Fields = "WIRE-021.b" Error Agent OUTPUT
        "a record has its members"
        "A member is missing, or its value isn't of the type that the contract gives it."
    HostFields = "WIRE-021.c" Error Host INPUT
        "a record of the host can be read"
        "A member is missing, too many, or of another type, or the record is for another session: it ends the stream. Info where the agent's lines are observed, and where claude passes over it."
    ResultForm = "WIRE-021.d" Error Agent OUTPUT
        "a result is a success or an error"
        "A success has `result` and no `errors`; an error has `is_error`, at least one text in `errors`, and no `result`. In claude a success may be an error of the provider, with its text."
    InputError = "WIRE-021.e" Error Agent INPUT
        "an input error counts nothing"
        "A `result` with the stop reason `input_error` is an `error_during_execution` with one text, zeros, no denials and an unknown price."

    Privacy = "WIRE-022.a" Error Agent OUTPUT
        "of an attachment only its manifest is written"
        "A record of the user shows the bytes of an image or document, or a manifest that can't be one. Not judged in claude."
    ResultPrompt = "WIRE-022.b" Error Both OUTPUT
        "a result names its prompt"
        "`prompt_uuid` is that of no prompt of the host, or of one that has its result."

    FirstIsInit = "WIRE-023.a" Error Agent OUTPUT
        "the first line is system/init"
        "The strict wire begins with `system/init`, before anything was read."
    InitOnce = "WIRE-023.b" Error Agent OUTPUT
        "system/init comes once"
        "The strict wire has one for the process; claude one for each turn, and a warning."
    InitForm = "WIRE-023.c" Error Agent OUTPUT
        "system/init names the provider and its efforts"
        "`provider`, `provider_type`, `agentx_version` and `reasoning_capabilities` are there; efforts are supported if there are any, and the default is one of them. In claude `claude_code_version` has dots, and a warning."
    TurnInit = "WIRE-023.d" Warning Agent OUTPUT
        "a turn begins with system/init"
        "In claude each turn does."

    Catalogue = "WIRE-024.a" Error Both OPERATIONS
        "initialize lists the providers, one of them selected"
        "Each provider stands once, `value` is its `id`, flat and nested efforts agree, one is selected and it is that of `system/init`; there is one model. Info for a list that isn't there."

    Fixed = "WIRE-025.a" Error Both OPERATIONS
        "provider, model and modes are fixed"
        "The strict wire refuses to change any of them."
    Unsupported = "WIRE-025.b" Error Both OPERATIONS
        "what isn't supported is refused"
        "The operation isn't of the strict wire, or has a member that it doesn't take, and is said to have succeeded."
    Refused = "WIRE-025.c" Error Both OPERATIONS
        "what every agent can do isn't refused"
        "`initialize`, `interrupt` and `mcp_status` without members succeed. Warning in claude."

    RequestLost = "WIRE-EOF-001.a" Error Exit FRAMING
        "what came before the end of input is answered"
        "The input has ended, the process has left with 0, and a request has no response."
    PromptLost = "WIRE-EOF-001.b" Error Exit FRAMING
        "what came before the end of input has its result"
        "The input has ended, the process has left with 0, and a prompt has no result. Not judged in claude, which may take several prompts in one turn."

    ResultOnce = "WIRE-PERM-001.a" Error Agent RACE
        "a call has one result"
        "A `tool_result` answers no call that a reply has made, or one that has its result. Not judged for calls of helpers. Warning in claude."
    RanEarly = "WIRE-PERM-001.b" Error Both RACE
        "a call waits for its permission"
        "The call has its result while the host is still asked about it. Warning for one that failed: the host's input may have ended."
    AskedAgain = "WIRE-PERM-001.c" Error Agent RACE
        "a call is asked about once"
        "A permission for this call is open, or the call has its result. Warning in claude."

    DeniedRan = "WIRE-PERM-002.a" Error Both RACE
        "what isn't allowed doesn't run"
        "The host has denied the call, has failed, or is gone, and the result of the call is no error."
    Denials = "WIRE-PERM-002.b" Error Agent OUTPUT
        "a result lists what was denied"
        "A call that the host denied is missing from `permission_denials`, or one stands there twice, or was never made. Warning in claude."
    Decision = "WIRE-PERM-002.c" Info Both RACE
        "an answer to can_use_tool is a decision"
        "The answer is none of the catalogue's (AX-P06 to AX-P25): the call is denied."

    AskForm = "WIRE-PERM-003.a" Error Agent RACE
        "a permission is asked for as the catalogue says"
        "`tool_name` and `tool_use_id` are texts, `input` is an object, what may be left out is never null (AX-P01 to AX-P05), and the description says something. Warning for another name than the reply's."

    Network = "WIRE-PERM-004.a" Error Agent RACE
        "a connection is asked for with its host"
        "`SandboxNetworkAccess` has an id of its own, and a `host` without a port as its whole input (AX-P31)."
}

/// The guarantees that no line shows.
pub const UNSEEN: &[Unseen] = &[
    Unseen {
        id: "WIRE-013",
        why: "which texts are credentials no line says",
    },
    Unseen {
        id: "WIRE-015",
        why: "it is about the code that writes, not about what is written",
    },
    Unseen {
        id: "WIRE-026",
        why: "the list of providers is a document of its own, and no line of the wire",
    },
];
