//! The rules of omp, as data. Each belongs to a guarantee (OMP-01 to OMP-19) and cites a section of the contract.

use crate::protocol::observer::{Unseen, catalogue};

const START: &str = "omp RPC, Complete one prompt";
const COMPLETION: &str = "omp RPC, Prompt completion";
const BUSY: &str = "omp RPC, Sending work while a turn is active";
const CANCEL: &str = "omp RPC, Cancel safely";
const ERRORS: &str = "omp RPC, Errors and recovery";
const FRAMES: &str = "omp RPC, Transport versions and large frames";
const COMMANDS: &str = "omp RPC, Commands sent to stdin";
const RESPONSES: &str = "omp RPC, Response envelope";
const EVENTS: &str = "omp RPC, Event and notification schema";
const SCREEN: &str = "omp RPC, Extension UI sub-protocol";
const HOSTS: &str = "omp RPC, Host tools and host URIs";
const SUBAGENTS: &str = "omp RPC, Subagent frames";
const VOICE: &str = "omp RPC, Live voice";
const LIFE: &str = "omp RPC, Process lifecycle";

catalogue! {
    FirstIsReady = "OMP-01.a" Error Agent START
        "the first line is ready"
        "The first line of the agent must be `ready`: a host waits for it."
    ReadyOnce = "OMP-01.b" Error Agent START
        "ready comes once"
        "A second `ready` would begin a second process in the same stream."
    ReadyNumbers = "OMP-01.c" Error Agent FRAMES
        "ready has the contract's numbers"
        "`protocolVersion` is 1, the supported versions are 1 and 2, a frame has 1,048,576 bytes and a reassembled one 67,108,864. Hosts stay on version 1 where they read anything else."

    Uncaused = "OMP-02.a" Error Both RESPONSES
        "a response answers a command"
        "No command of this id waits for a response. Only a prompt that was accepted can have a second one, and that one says that it failed."
    Unanswered = "OMP-02.b" Error Both RESPONSES
        "a command is answered"
        "The agent left a command without a response. Warning where the agent's exit wasn't seen."
    OtherCommand = "OMP-02.c" Error Both RESPONSES
        "a response names its command"
        "The response carries the id of a command, and the name of another."
    SideAnswered = "OMP-02.d" Error Both SCREEN
        "a line of the side channel isn't answered"
        "`extension_ui_response`, `host_tool_update`, `host_tool_result` and `host_uri_result` get no response, whatever id they name."
    IdOfItsOwn = "OMP-02.e" Info Host COMMANDS
        "an id is a string that no open command has"
        "Any JSON is echoed, but the clients that come with the program pass over responses whose id isn't a string, and two open commands of one id can't be told apart."
    NotACommand = "OMP-02.f" Error Host COMMANDS
        "a command is one JSON object on one line"
        "The line of the host isn't exactly one JSON object. The agent must say so. Info where the agent's answer is observed, and for what the agent reads in its own way: bytes that aren't UTF-8, a byte order mark, a member twice, half a surrogate pair."
    UnknownCommand = "OMP-02.g" Error Host COMMANDS
        "the type is one of the contract's"
        "The contract has no command of this type. A line of the side channel without its id or content counts as one. Info where the agent's answer is observed."
    CommandFields = "OMP-02.h" Error Host COMMANDS
        "a command has its members"
        "A member of the command is missing or of another type. The agent must say so. Info where the agent's answer is observed."

    ResultUncaused = "OMP-03.a" Error Both COMPLETION
        "a prompt_result ends an accepted prompt"
        "No accepted prompt of this id waits for its end: it was never accepted, has ended, was handled locally, or was a `steer` or `follow_up`, which have no such end."
    ResultEarly = "OMP-03.b" Error Both COMPLETION
        "a prompt_result comes after the response"
        "The prompt has ended before it was accepted."
    ResultMissing = "OMP-03.c" Error Both COMPLETION
        "every accepted prompt has ended when the session settles"
        "At `session_settled` nothing runs and nothing is queued, and an accepted prompt has no `prompt_result`."
    ResultShape = "OMP-03.d" Error Agent COMPLETION
        "a prompt_result says how the prompt ended"
        "`status` is completed, aborted or error, `sessionSettled` is there, and `error` is there if, and only if, the status is error. Info where only an older program's members are missing, or the word is new."
    OutsideRun = "OMP-03.e" Error Agent EVENTS
        "steps, updates and tools stand within a run"
        "The line belongs to a run, and no `agent_start` has opened one. Not judged while a filter hides events."
    Steps = "OMP-03.f" Error Agent EVENTS
        "turn_start and turn_end pair within a run"
        "A step begins within another one, ends without having begun, or is open at `agent_end`. Not judged while a filter hides events."
    Messages = "OMP-03.g" Error Agent EVENTS
        "messages begin and end"
        "A message ends or grows that hasn't begun, ends as another one than it began as, or is open at the end of its step; a reply or a result begins outside of a step. Only replies grow. Warning for a message of the user outside of a step. Not judged while a filter hides events."
    MessageIds = "OMP-03.h" Error Agent EVENTS
        "the lines of a message carry its id"
        "`messageId` is the same in the lines of one message, and another one in the next."
    Tools = "OMP-03.i" Error Agent EVENTS
        "tool_execution_end ends a call that began"
        "The call has ended before, or has never begun. Warning for a call that begins twice; info for an update after the end, which the program is known to write, and for a call that is open at `agent_end`. Not judged while a filter hides events."

    Blocks = "OMP-03.j" Error Agent EVENTS
        "the pieces of a block make it"
        "A block begins once, grows, and ends once; the pieces of a text or of thinking make what its end says, and what `message_end` says. Warning for one that is open at the end of a reply that was neither cut off nor failed. Not judged where a text was cut to fit, or while a filter hides events."
    Again = "OMP-03.k" Warning Agent EVENTS
        "a run begins within a run only to try again"
        "`agent_start` comes in an open run, and no `auto_retry_start`, fallback or compaction says why. Not judged while a filter hides events."
    EndedEarly = "OMP-03.l" Error Agent COMPLETION
        "a prompt has ended when its run has"
        "A `prompt_result` says that the prompt was completed, or that the session has settled, while a run is open. A change of the session ends prompts in its own way. Warning where the end of the run said that it goes on. Not judged while a filter hides events."
    Settles = "OMP-03.m" Error Agent COMPLETION
        "the session settles once, when nothing runs"
        "`session_settled` comes while a run is open and no change of the session is under way. Warning where nothing has happened since the session settled, and where a `prompt_result` said that it has, and nothing followed."
    Told = "OMP-03.n" Error Agent EVENTS
        "turn_end and agent_end repeat what was said"
        "`toolResults` are those of the step. Warning where `messages` of `agent_end`, or `messageCount`, is another number than the run's messages, where a run that awaits work is called terminal, and where `isError` of a result isn't that of its `tool_execution_end`. Not judged where a line was cut to fit, or while a filter hides events."
    Results = "OMP-03.o" Error Agent EVENTS
        "a call has one result"
        "A `toolResult` answers no call of the step, or one that has its result or still runs; or a reply that ended with `toolUse` has a call without a result at `turn_end`. Not judged while a filter hides events."
    Retries = "OMP-03.p" Warning Agent EVENTS
        "retries count on, and what ends has begun"
        "The attempt of `auto_retry_start` is 1 or the one after the last, and no more than `maxAttempts`; a retry is announced once and ends before its run; `auto_retry_end` has the last attempt, and `auto_compaction_end` a start. Not judged while a filter hides events."

    OutOfOrder = "OMP-04.a" Error Both BUSY
        "responses come in the order of the commands"
        "Commands are done one after the other. Only `bash`, `live_start`, `predict_word`, prompts, `steer_subagent` and those that abort something may be answered before an earlier one."

    PromptBusy = "OMP-05.a" Info Both BUSY
        "a prompt in an open run says what becomes of it"
        "A second prompt needs `streamingBehavior`, or the agent refuses it. The two may have crossed."
    Behaviour = "OMP-05.b" Error Host BUSY
        "streamingBehavior is steer or followUp"
        "The contract has no other word here. Info where the agent's answer is observed."

    ModeWord = "OMP-06.a" Info Host BUSY
        "modes are the contract's words"
        "Queues are drained `one-at-a-time` or `all`, steering interrupts `immediate` or `wait`. The program takes other words in silence, and what they do nobody says."

    AbortEarly = "OMP-07.a" Error Agent CANCEL
        "abort is answered when the run has ended"
        "`abort` is answered while a run is open: the response comes behind the `agent_end` of what it ended. Not judged while a filter hides events."

    WhyFailed = "OMP-08.a" Error Agent ERRORS
        "a failure says why"
        "A response with `success: false` has an `error`, a text, and no `data`."
    ErrorOfSuccess = "OMP-08.b" Error Agent RESPONSES
        "a success has no error"
        "A response with `success: true` has neither `error` nor `code`."
    Code = "OMP-08.c" Warning Agent ERRORS
        "a code stands where the contract gives one"
        "`session_busy` and `stale_cursor` belong to `get_messages_page`, `unknown_since` to `get_entries`, `session_busy` to `fork` as well. A newer program may have more."
    Payload = "OMP-08.d" Error Agent RESPONSES
        "data is what the command gives"
        "The payload lacks a member, or has one of another type, or the command has none."
    NoCommand = "OMP-08.e" Error Agent RESPONSES
        "a response names a command"
        "`command` is a string. It is missing only where the host's line had no type, and another value only where that was the type."

    TooLong = "OMP-09.a" Error Agent FRAMES
        "a line of the agent is 1 MiB at most"
        "The line has more than 1,048,576 bytes, its newline included: it had to be cut, or sent in chunks."
    ChunkEarly = "OMP-09.b" Error Agent FRAMES
        "chunks come after the negotiation"
        "The agent sends an `rpc_chunk`, and no response has said that version 2 is spoken."
    Chunks = "OMP-09.c" Error Agent FRAMES
        "the chunks of a frame make the frame"
        "Chunks of a frame follow each other directly, in order, with the same id, count and length; their data is canonical base64 of 262,144 bytes at most; together they have the length that they declare."
    Negotiated = "OMP-09.d" Error Both FRAMES
        "version 2 alone is negotiated"
        "`negotiate_protocol` succeeds for the number 2, and for nothing else."

    PageLength = "OMP-10.a" Error Both COMMANDS
        "a page has no more messages than were asked for"
        "`limit` is 1 to 256, and 100 if it isn't there. Another one fails; a page never has more."

    ToolSet = "OMP-11.a" Error Agent HOSTS
        "a host's tool was registered"
        "The agent calls a tool of the host that the last `set_host_tools` didn't name. Warning for a tool that was taken back, since the run may have begun before, and where no lines of the host are seen, since the response that names it may come later."
    CallCancelled = "OMP-11.b" Error Agent HOSTS
        "host_tool_cancel names an open call"
        "There was no call of this id. Warning if it was cancelled before, or its result has been read; a cancel that may have crossed the result is no fault."
    CallAnswered = "OMP-11.c" Info Both HOSTS
        "a host's update or result names an open call"
        "The call has ended, was cancelled, or has never been: the line is passed over."
    CallId = "OMP-11.d" Error Agent HOSTS
        "a call of the host has an id of its own"
        "A call or request of this id is open. Info where no lines of the host are seen: it may have been answered."

    SchemeSet = "OMP-12.a" Error Agent HOSTS
        "a host's URI has a scheme that was registered"
        "The agent asks for a URI whose scheme the last `set_host_uri_schemes` didn't name. Warning for a scheme that was taken back, and where no lines of the host are seen."
    SchemeName = "OMP-12.b" Error Agent HOSTS
        "schemes are lower case and not reserved"
        "The agent accepted a scheme that isn't lower case, or `security`, which it keeps to itself."
    UriContent = "OMP-12.c" Error Agent HOSTS
        "what is written stands in content"
        "A `write` carries `content`, a `read` doesn't."
    UriCancelled = "OMP-12.d" Error Agent HOSTS
        "host_uri_cancel names an open request"
        "There was no request of this id. Warning if it was cancelled before, or its result has been read; a cancel that may have crossed the result is no fault."
    UriAnswered = "OMP-12.e" Info Both HOSTS
        "host_uri_result names an open request"
        "The request has ended, was cancelled, or has never been: the line is passed over."
    UriResult = "OMP-12.f" Warning Both HOSTS
        "a read that succeeds has content"
        "`content` is missing from the result of a read that isn't an error, or `contentType` is none of text/markdown, application/json and text/plain. The program takes it for empty plain text."

    DialogAnswered = "OMP-13.a" Info Both SCREEN
        "extension_ui_response names an open dialog"
        "The dialog is closed, or has never been, or wants no answer: the line is passed over."
    DialogShape = "OMP-13.b" Warning Both SCREEN
        "an answer has the shape of its dialog"
        "`select`, `input` and `editor` take `value`, `confirm` takes `confirmed`, `ask` takes `answers`, and each takes `cancelled: true`. Another shape counts as a cancel."
    DialogCancelled = "OMP-13.c" Error Agent SCREEN
        "cancel names a dialog"
        "There was no dialog of this id. Warning if it was cancelled before, or its answer has been read; a cancel that may have crossed the answer is no fault."
    AskUnasked = "OMP-13.d" Error Agent SCREEN
        "ask comes only to hosts that want it"
        "The agent sends an `ask`, and no `set_ask_dialog` has succeeded with true. Warning where no lines of the host are seen."
    DialogId = "OMP-13.e" Error Agent SCREEN
        "a dialog has an id of its own"
        "A dialog of this id is open. Info where no lines of the host are seen: it may have been answered."

    SubagentLevel = "OMP-14.a" Error Agent SUBAGENTS
        "frames of subagents come at the level that was asked for"
        "Without a subscription none comes; at `progress` there is no `subagent_event`. Warning where no lines of the host are seen."

    LiveEnd = "OMP-16.a" Error Agent VOICE
        "live_end comes once"
        "Nothing of the talk comes after its `live_end`, until another one begins. One that can't begin has its end alone, with an error, before the response to its `live_start`."

    NotALine = "OMP-17.a" Error Agent EVENTS
        "a line of the agent is one JSON object"
        "The line, or the frame that chunks make, isn't UTF-8, or not exactly one JSON object. Warning for a last line without a newline (it was cut off), and where nobody knows which side wrote the line; info for half a surrogate pair, which a cut can leave, and for nesting beyond 65,536 levels."
    Duplicate = "OMP-17.b" Error Agent EVENTS
        "a member stands once in its object"
        "Lines are read by member name, so a name that stands twice has no one value. Warning within a member, where it may be the model's own text."
    NoType = "OMP-17.c" Error Agent EVENTS
        "a line of the agent has a type"
        "The line has no `type`, or one that isn't a string."
    UnknownType = "OMP-17.d" Info Agent EVENTS
        "the type is one of the contract's"
        "The contract has no line of this type, or no request to the screen of this method. Readers pass over it."
    Fields = "OMP-17.e" Error Agent EVENTS
        "a line has its members"
        "A member is missing, or its value isn't of the type that the contract gives it."
    Message = "OMP-17.f" Error Agent EVENTS
        "a message is what its role says"
        "A message in the line lacks a member of its role, or has one of another type. New roles and blocks are no fault."
    Older = "OMP-17.g" Info Agent EVENTS
        "a line has the members of its generation"
        "`messageId` and `yielded` came with the second generation. Said once for each."

    ExitCode = "OMP-18.a" Error Exit LIFE
        "the process leaves with 0"
        "When its input has ended the process exits with 0; with 1 if its session couldn't be stored or nobody read it. A signal that ended it is no fault: 129, 130, 137 or 143."
}

/// The guarantees that no line shows.
pub const UNSEEN: &[Unseen] = &[
    Unseen {
        id: "OMP-15",
        why: "what becomes of a goal is the agent's own; its failures are judged as any failure is",
    },
    Unseen {
        id: "OMP-19",
        why: "it is about the file of the new session",
    },
];
