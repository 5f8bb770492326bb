//! The rules of openseek, as data. Each belongs to a guarantee (OS-01 to OS-13, OS-A01 to OS-A13) and cites a section of the
//! contract: the page of the protocol, or what is known of the engine (`serve`).

use crate::protocol::observer::{Unseen, catalogue};

const STREAM: &str = "openseek, Protocol";
const EVENT: &str = "openseek, Event";
const PARSE: &str = "openseek, parse";
const COMMAND: &str = "openseek, Command::parse";
const DIRECTION: &str = "openseek, The command direction";
const INVARIANTS: &str = "openseek, Invariants";
const STEER: &str = "openseek, SteerKind";
const JOB: &str = "openseek, JobRecord";
const COMPONENT: &str = "openseek, valid_job_component";
const SERVE: &str = "openseek, serve";

catalogue! {
    NotALine = "OS-02.a" Error Agent STREAM
        "a line of the engine is one JSON object"
        "The line isn't UTF-8, or not exactly one JSON object: nothing but events may be on the stream. Warning for a last line without a newline (it was cut off), for half a surrogate pair, and where nobody knows which side wrote the line; info for nesting beyond 128 levels."
    Duplicate = "OS-02.b" Error Agent STREAM
        "a member stands once in its object"
        "Lines are read by member name, so a name that stands twice has no one value. Warning within a member."
    NoEvent = "OS-02.c" Error Agent STREAM
        "a line of the engine has an event"
        "The line has no `event`, or one that isn't a string."
    Envelope = "OS-02.d" Warning Agent STREAM
        "an event has no envelope"
        "The line has a `timestamp`, a `level`, a `source` or a `category`, as logs of older engines had. Given once."
    Ordered = "OS-02.e" Info Agent EVENT
        "members stand in the documented order"
        "An engine writes `event` first, then the members in the order of their declaration. Readers must not care; the finding is given once."
    Unlisted = "OS-02.f" Info Agent EVENT
        "an event has no other members"
        "The contract doesn't list this member; readers pass over it. Given once for each event."

    UnknownEvent = "OS-03.a" Warning Agent PARSE
        "the event is one of the contract's"
        "The contract has no event of this name. A host passes over it, as it must if the engine is newer."
    Fields = "OS-03.b" Error Agent PARSE
        "an event has its members"
        "A member is missing, or of another type: the whole line is no event, and hosts pass over it."
    BadCommand = "OS-03.c" Error Host COMMAND
        "a line of the host is a command"
        "The line is JSON, and no command: the engine must say so. Info where the engine's answer is observed, and for a line that readers may take in two ways."
    NotJson = "OS-03.d" Error Host SERVE
        "a line of the host is JSON"
        "The line isn't JSON: the engine reads no more commands after it. Info where the engine's answer is observed."
    BadAnswered = "OS-03.e" Error Both COMMAND
        "a line that is no command gets a command_error"
        "The engine left it without one: a request that nobody answers. Warning where the engine's exit wasn't seen."
    ErrorUncaused = "OS-03.f" Error Both COMMAND
        "a command_error answers a line of the host"
        "There are more `command_error` lines than lines of the host that could have caused one."

    LeftOut = "OS-04.a" Warning Agent PARSE
        "members that came later are written"
        "`kind` of `steer_applied`, `workspace_root` of `session_started` or `brief` of `tool_result` is missing, or `error` of `mcp_connect_failed` isn't there: readers take the default, for engines from before."

    NullLeftOut = "OS-05.a" Error Agent INVARIANTS
        "an optional text is written, as null if it is none"
        "The member is missing, or neither a string nor null: readers take it for null."

    NotWhole = "OS-06.a" Error Agent PARSE
        "a number is whole, and fits"
        "The number has a fraction, or is out of bounds: the whole line is no event."
    Spelled = "OS-06.b" Info Agent EVENT
        "a whole number is spelled plainly"
        "The number is whole, and spelled with a fraction, an exponent or as negative zero. Given once."

    BlankGoal = "OS-07.a" Info Host COMMAND
        "a goal isn't blank"
        "The goal is white space alone: it can be read, and the engine refuses it."
    BlankGoalSet = "OS-07.b" Error Agent SERVE
        "a blank goal is never set"
        "`goal_updated` has a goal of white space alone."
    BlankGoalRefused = "OS-07.c" Error Both SERVE
        "a blank goal is refused"
        "The engine left a blank goal without a `command_error`. Warning where the engine's exit wasn't seen."

    SteerWord = "OS-08.a" Error Agent STEER
        "a steer is a prompt, a command or a notice"
        "`kind` of `steer_applied` is another word."
    NoticeSteer = "OS-08.b" Error Host STEER
        "a host steers with a prompt or a command"
        "The host's `kind` is another word: a notice is the engine's own. The engine must refuse it. Info where the engine's answer is observed."
    NoticeInTurn = "OS-08.c" Error Agent SERVE
        "background_notice comes while nothing runs"
        "Within a turn a notice reaches the model as a steer, and is told as `steer_applied`."

    AskTwice = "OS-09.a" Error Agent DIRECTION
        "a question's id is its own"
        "The id was asked for before: a late answer to the old question would open the new gate."
    ResolvedUnknown = "OS-09.b" Error Agent DIRECTION
        "approval_resolved closes an open question"
        "No question of this id is open: it was never asked, or is resolved."
    AllowedByNobody = "OS-09.c" Error Both DIRECTION
        "allowed_once means that the host allowed"
        "The call was allowed, and the host's first answer doesn't say so. An engine that allows everything resolves the question directly behind it."
    RejectedByNobody = "OS-09.d" Error Both DIRECTION
        "rejected means that the host rejected"
        "The call was rejected, and the host's first answer doesn't say so."
    OutcomeWord = "OS-09.e" Info Agent EVENT
        "an outcome is a word that is known"
        "The outcome is none of `allowed_once`, `rejected` and `cancelled`; the list is open."
    ApprovalUnknown = "OS-09.f" Info Both SERVE
        "an approval answers an open question, once"
        "The host answers a question that was never asked, is resolved, or has its answer: the engine passes over it."

    JobKind = "OS-10.a" Error Agent JOB
        "what happened to a job fits its record"
        "`started` comes with a running record of revision 1, `updated` with one that isn't over, `finished` and `failed` with one that is."
    JobEnd = "OS-10.b" Warning Agent JOB
        "a job failed or finished as its record says"
        "A job failed if its exit code isn't 0, if neither a user nor the end of the session stopped it, or if cleaning up failed."
    JobRevision = "OS-10.c" Error Agent JOB
        "revisions grow"
        "The record's revision isn't greater than that of the record before it; in a snapshot, less than it."
    JobOver = "OS-10.d" Error Agent JOB
        "nothing comes after a job's end"
        "The job has finished or failed before."
    JobStart = "OS-10.e" Warning Agent JOB
        "a job begins before it changes"
        "The job was neither started nor in a snapshot."
    SnapshotAsked = "OS-10.f" Error Both SERVE
        "jobs_snapshot answers the command"
        "No command with this `request_id` waits for its answer."
    StopAsked = "OS-10.g" Error Both SERVE
        "job_stop_result answers the command"
        "No command with this `request_id`, for this job of this process, waits for its answer."
    JobAnswered = "OS-10.h" Error Both SERVE
        "job commands are answered"
        "A `jobs_snapshot` or a `job_stop` was never answered. Warning where the engine's exit wasn't seen."
    ResultLong = "OS-10.i" Warning Agent SERVE
        "a result has 60,000 units at most"
        "The content of a `tool_result` is longer than what an engine lets through, its mark included."
    SessionOnce = "OS-10.j" Error Agent SERVE
        "session_started comes once, before the first step"
        "The session begins again, or after a turn has begun."

    NotAComponent = "OS-12.a" Error Agent COMPONENT
        "ids and files of jobs are components of a path"
        "`generation`, `id`, `job_id` or `output_file` has other characters than letters, digits, `-`, `_` and `.`, is `.` or `..`, is empty, or is too long: it could lead elsewhere."

    SubrunEnds = "OS-13.a" Error Agent SERVE
        "subrun_finished ends a run that is open"
        "No run of this id is open."
    SubrunTwice = "OS-13.b" Error Agent SERVE
        "a run's id is its own"
        "A run of this id is open: what follows can't be told apart."
    SubrunOpen = "OS-13.c" Error Agent SERVE
        "runs have ended before their turn"
        "A run is open at the end of its turn: its end is always written, and before."
    CompactionEnds = "OS-13.d" Error Agent SERVE
        "a compaction that is finished was begun"
        "No compaction of this kind and of these sequences is open."
    CompactionTwice = "OS-13.e" Error Agent SERVE
        "one compaction at a time"
        "A compaction begins before the one before has ended."
    CompactionInTurn = "OS-13.f" Error Agent SERVE
        "a compaction that was asked for and a turn exclude each other"
        "A compaction begins within a turn, or a turn within a compaction."
    WorkflowEnds = "OS-13.g" Error Agent SERVE
        "workflow_finished ends a workflow that is open"
        "No workflow of this id is open."

    ErrorText = "OS-A04.a" Error Both COMMAND
        "a command_error has the contract's text"
        "The text isn't the one for any line that waits for its error, and no goal could have been refused in words of the engine's own."

    StepCount = "OS-A06.a" Error Agent SERVE
        "steps count from 1"
        "`agent_step` isn't 1 in a turn's first line, or not one more than the step before."
    TwoTurns = "OS-A06.b" Error Agent SERVE
        "one turn at a time"
        "A turn begins, and the one before has no end."
    TurnUnasked = "OS-A06.c" Error Both SERVE
        "a prompt begins a turn"
        "A turn begins, and no prompt waits for one, nor a goal that goes on. A steer never begins one."
    EndTwice = "OS-A06.d" Error Agent SERVE
        "a turn ends once"
        "A turn ends, and none is open. Warning where it may be one without steps."
    PromptUnanswered = "OS-A06.e" Error Both SERVE
        "every prompt has its turn"
        "A prompt never began a turn, and no cancel can have taken it out. Warning where the engine's exit wasn't seen."
    DiedInTurn = "OS-A06.f" Error Agent SERVE
        "a turn that began ends"
        "The engine's lines end within a turn. Warning where the engine's exit wasn't seen; nothing if a signal ended it, or for a run that left with 1."

    SteerUnsent = "OS-A07.a" Error Both SERVE
        "steer_applied applies a steer of the host"
        "No steer of this kind and text waits."
    DropUnsent = "OS-A07.b" Error Both SERVE
        "steer_dropped drops a prompt of the host"
        "No steer of kind prompt with this text waits. Commands are never dropped."
    SteerOwed = "OS-A07.c" Error Both SERVE
        "every steer ends"
        "A steer was neither applied nor dropped; a command may also have been a `session_error`. Warning where the engine's exit wasn't seen."
    SteerOrder = "OS-A07.d" Warning Both SERVE
        "steers are applied in their order"
        "An older prompt still waits."

    AskOpen = "OS-A08.a" Error Agent SERVE
        "questions are resolved before their turn ends"
        "A question is open at the end of its turn."

    Pieces = "OS-A09.a" Error Agent EVENT
        "the pieces make the message"
        "The text of `assistant_message` isn't that of the step's pieces since the last `stream_retry`."
    ReasoningPieces = "OS-A09.b" Warning Agent EVENT
        "the pieces make the reasoning"
        "The text of `reasoning_message` isn't that of the step's pieces since the last `stream_retry`."
    MessageMissing = "OS-A09.c" Error Agent EVENT
        "pieces end in a message"
        "The step had pieces of text, and goes on without their `assistant_message`."
    EmptyPiece = "OS-A09.d" Error Agent EVENT
        "a piece isn't empty"
        "`assistant_delta` or `reasoning_delta` has no text."
    EmptyMessage = "OS-A09.e" Error Agent EVENT
        "a message isn't empty"
        "`assistant_message` or `reasoning_message` has no text: it is left out then."
    MessageTwice = "OS-A09.f" Error Agent EVENT
        "one message a reply"
        "A second message of this kind in one step."
    ReplyOrder = "OS-A09.g" Error Agent SERVE
        "a reply has its order"
        "Pieces, then the reasoning, then the message, then the usage, then results: something stands behind what must follow it."
    UsageTwice = "OS-A09.h" Error Agent EVENT
        "one usage a reply"
        "A second `usage` in one step."
    UsageMissing = "OS-A09.i" Warning Agent EVENT
        "each reply has its usage"
        "The step goes on without a `usage`. A provider may not have said it."
    ResultTwice = "OS-A09.j" Error Agent SERVE
        "a call has one result"
        "The step has a result for this call already."
    OutsideStep = "OS-A09.k" Error Agent SERVE
        "a reply stands in a step"
        "A piece, a message, a usage, a retry or a result, and no step is open."
    RetryCount = "OS-A09.l" Warning Agent EVENT
        "attempts count up"
        "`attempt` isn't more than that of the retry before, or is more than `max_attempts`."

    GoalCount = "OS-A10.a" Error Agent SERVE
        "goal_continue counts down from 19"
        "`remaining` is neither one less than before, nor 19 for a goal that was armed anew."
    GoalUnarmed = "OS-A10.b" Error Both SERVE
        "only an armed goal goes on by itself"
        "The budget begins, and the host has set no goal with `auto` for it."
    GoalAfterFailure = "OS-A10.c" Error Agent SERVE
        "a goal goes on after a turn that went well"
        "No turn has ended yet, or the last one ended neither with `agent_finished` nor with `context_yield`."
    Exhausted = "OS-A10.d" Error Agent SERVE
        "a budget is used up once, after its last turn"
        "`goal_budget_exhausted` comes again, or before `remaining` was 0, or its `turns` aren't 20."
    GoalInTurn = "OS-A10.e" Error Agent SERVE
        "a goal goes on between turns"
        "`goal_continue` stands within a turn."
    GoalNone = "OS-A10.f" Error Agent SERVE
        "a goal that goes on stands, and isn't blocked"
        "The goal was cleared, or is blocked."

    GoalAfterEnd = "OS-A11.a" Warning Both SERVE
        "nothing begins by itself after the end of input"
        "More than one `goal_continue` after the host's last line: the first may have crossed with it."
    StreamOnce = "OS-A11.b" Error Agent SERVE
        "the reading of commands ends once"
        "A second `command_error` that begins with `command stream: `: nothing is read after the first."
    AfterBroken = "OS-A11.c" Info Host SERVE
        "nothing comes after a line that isn't JSON"
        "The engine reads no more commands; this line is never read."
    ExitCode = "OS-A11.d" Warning Exit SERVE
        "an engine that served leaves with 0"
        "The process left by itself, with another code. A run, which has no commands, leaves with 1 where it failed."
}

/// Guarantees that no line shows.
pub const UNSEEN: &[Unseen] = &[
    Unseen {
        id: "OS-01",
        why: "that reading and writing are inverse shows in tests alone",
    },
    Unseen {
        id: "OS-11",
        why: "the names of stored sessions aren't on the wire",
    },
    Unseen {
        id: "OS-A01",
        why: "that reading and writing are inverse shows in tests alone",
    },
    Unseen {
        id: "OS-A02",
        why: "it is about readers; what writers leave out is OS-03 to OS-05",
    },
    Unseen {
        id: "OS-A03",
        why: "it is about readers; what writers write is OS-06",
    },
    Unseen {
        id: "OS-A05",
        why: "it is about names in a store; those on the wire are OS-12",
    },
    Unseen {
        id: "OS-A12",
        why: "blank goals are OS-07, and a run that can't ask fails before any line",
    },
    Unseen {
        id: "OS-A13",
        why: "how the input was cut isn't recorded",
    },
];
