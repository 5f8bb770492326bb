//! The rules of splice, as data. Each belongs to a guarantee (SP-01 to SP-14, SP-A01 to SP-A13) and cites a section of the
//! contract: the page of the protocol, or what is known of the agent (`exec`).

use crate::protocol::observer::{Unseen, catalogue};

const STREAM: &str = "splice, Stream-JSON protocol";
const INPUT: &str = "splice, Input events";
const OUTPUT: &str = "splice, Output event types";
const CYCLE: &str = "splice, Run lifecycle";
const STAGED: &str = "splice, Stage markers";
const ENVELOPE: &str = "splice, Structured stage output";
const TOOLS: &str = "splice, Tool execution";
const PERMISSIONS: &str = "splice, Permissions";
const USAGE: &str = "splice, Usage and cost";
const CHECKPOINTS: &str = "splice, Checkpoints";
const FINAL: &str = "splice, Final result";
const MERGE: &str = "splice, Worktree merge result";
const ERRORS: &str = "splice, Errors";
const EXEC: &str = "splice, exec";

catalogue! {
    NotALine = "SP-01.a" Error Agent STREAM
        "a line of the agent is one JSON object"
        "The line isn't UTF-8, or not exactly one JSON object. Warning for a last line without a newline (it was cut off), for half a surrogate pair, and where nobody knows which side wrote the line; info for nesting beyond 128 levels."
    Duplicate = "SP-01.b" Error Agent STREAM
        "a member stands once in its object"
        "Lines are read by member name, so a name that stands twice has no one value. Warning within a member."
    NoType = "SP-01.c" Error Agent STREAM
        "a line of the agent has a type"
        "The line has no `type`, or one that isn't a string."
    Version = "SP-01.d" Error Agent STREAM
        "the schema is version 2"
        "The line has no `schemaVersion`, or another one."
    RunId = "SP-01.e" Error Agent STREAM
        "a line of the agent has the id of its run"
        "`runId` is missing, or isn't an id: a letter or digit, and up to 127 of letters, digits, `.`, `_`, `:` and `-`."
    Unlisted = "SP-01.f" Info Agent OUTPUT
        "a line has no other members"
        "The contract doesn't list this member; readers pass over it. Given once for each type."

    BadInput = "SP-02.a" Error Host INPUT
        "a line of the host is a message or a prompt"
        "The line refuses the run. Info where the agent's answer is observed, and for a line that readers may take in two ways."
    NoInput = "SP-02.b" Error Host INPUT
        "there is at least one prompt or message"
        "The input ended without one. Not judged where the agent says anything: its input may have come from elsewhere."
    BadRan = "SP-02.c" Error Both INPUT
        "bad input runs nothing"
        "The run began, though a line of the input must refuse it."
    BadExit = "SP-02.d" Error Both EXEC
        "bad input is a usage error"
        "The agent answers bad input with another code, status or exit code than `usage_error`, `error` and 2. Not judged where a signal, or what can't be set up, came first."
    Image = "SP-02.e" Error Host INPUT
        "a picture is of a known kind, in base64, and no larger than 10 MiB"
        "The picture refuses the run. Info where the agent's answer is observed, and for the one size that the known agent refuses."

    UnknownType = "SP-03.a" Info Agent OUTPUT
        "the type is one of the contract's"
        "The contract has no line of this type. A host passes over it, as it must if the agent is newer."
    Fields = "SP-03.b" Error Agent OUTPUT
        "a line has its members"
        "A member is missing, or of another type."
    Word = "SP-03.c" Warning Agent OUTPUT
        "words are those of the contract"
        "A side effect, a status or an action is a word that the contract doesn't have."

    Start = "SP-04.a" Error Agent CYCLE
        "a run begins with run_start"
        "Another line came first. An `error` may, where it refuses the run: only `run_end` follows it then."
    StartTwice = "SP-04.b" Error Agent CYCLE
        "a run begins once"
        "A second `run_start`."
    NoEnd = "SP-04.c" Error Agent CYCLE
        "a run ends with run_end"
        "The stream ends without one. Warning where the agent's exit wasn't seen; none where a signal or a failed write ended the process, and none for a merge that was skipped or in conflict where the known agent is checked (`--original`)."
    NoError = "SP-04.d" Error Agent ERRORS
        "an error comes before an end that is no success"
        "The run ends as `error`, `incomplete` or `interrupted`, and no `error` came before."
    Exit = "SP-04.e" Error Exit CYCLE
        "the exit code of run_end is that of the process"
        "The process left with another code."
    FinalOrder = "SP-04.f" Error Agent EXEC
        "final, error and run_end come in this order, once each at most"
        "A second `final` or a second `error`, a `final` behind the `error`, or any other line behind one of them."

    DeltaAlone = "SP-05.a" Error Agent ENVELOPE
        "pieces of arguments belong to a start"
        "No `tool_call_start` has this id."
    EnvelopeResult = "SP-05.b" Error Agent ENVELOPE
        "a stage's answer gets no result"
        "A `tool_result` of an id that only a `tool_call_start` had."

    ResultAlone = "SP-06.a" Error Agent TOOLS
        "a result belongs to an open call"
        "No call of this id is open: none began, or it has its result."
    CallTwice = "SP-06.b" Error Agent TOOLS
        "a call's id is its own while it runs"
        "A `tool_call` of an id that is open."
    NoResult = "SP-06.c" Error Agent TOOLS
        "a call has its result before the run ends"
        "The run ends, and a call is open. Warning where the run was interrupted."
    OtherName = "SP-06.d" Warning Agent TOOLS
        "a result has the name of its call"
        "The two name different tools."

    DecisionAlone = "SP-07.a" Error Agent PERMISSIONS
        "permission is about an open call"
        "No call of this id is open."
    Unsettled = "SP-07.b" Error Agent PERMISSIONS
        "a request for permission is settled"
        "The call goes well, and nobody decided."
    DeniedRan = "SP-07.c" Error Agent PERMISSIONS
        "a call that was denied goes wrong"
        "The result of a call that was denied is `ok`."
    Violation = "SP-07.d" Warning Agent PERMISSIONS
        "what stands in the way is called block"
        "The line has a `violation`, which was version 1."
    ActionOf = "SP-07.e" Error Agent PERMISSIONS
        "a request prompts, and a decision allows, denies or cancels"
        "The action belongs to another type of line."

    Sequence = "SP-08.a" Error Agent USAGE
        "usage is numbered without gaps"
        "The `usageSequence` isn't one more than the last, from 1."
    Total = "SP-08.b" Warning Agent USAGE
        "the total is the sum of both"
        "`totalTokens` isn't `promptTokens` and `completionTokens` together, or a part is larger than its whole."
    Unreported = "SP-08.c" Warning Agent USAGE
        "what wasn't reported is no number"
        "`usageReported` is false, and a number isn't 0."

    CheckpointCall = "SP-09.a" Warning Agent CHECKPOINTS
        "a checkpoint comes before a call that writes"
        "No call is open, or the last one that began has been decided."
    CheckpointFiles = "SP-09.b" Error Agent CHECKPOINTS
        "a checkpoint lists files"
        "The list is empty, or missing."
    CheckpointOrder = "SP-09.c" Error Agent EXEC
        "checkpoints are numbered upwards"
        "The `sequence` isn't larger than the last one."
    Restored = "SP-09.d" Info Agent CHECKPOINTS
        "restore is reserved"
        "The contract has the line for later; nothing writes it."

    FinalJson = "SP-10.a" Error Agent FINAL
        "the result of a pipeline is JSON"
        "Stages ran, and the text of `final` isn't the text of a JSON object."
    FinalStatus = "SP-10.b" Error Agent FINAL
        "the result and the end agree"
        "A pipeline that `completed` ends as `success`, or as what became of its worktree; one that `failed` or was `aborted` never does."

    MarkerForm = "SP-11.a" Error Agent STAGED
        "a marker is framed exactly"
        "The delta has NUL STAGE, and isn't exactly one marker."
    MarkerElsewhere = "SP-11.b" Error Agent STAGED
        "a marker is reasoning"
        "NUL STAGE stands in an answer, a result or a message."
    MarkerOrder = "SP-11.c" Error Agent STAGED
        "a stage runs before it ends"
        "The marker ends a stage that doesn't run, or begins one while another runs."
    MarkerOpen = "SP-11.d" Error Agent STAGED
        "a stage ends before the run does"
        "The run succeeded, and a stage still runs."

    Secret = "SP-12.a" Error Agent STREAM
        "a line holds no secret"
        "A text of the line has what the table of patterns finds, or a member with a secret's name is shown."
    SplitSecret = "SP-12.b" Warning Agent STREAM
        "no cut brings a secret back"
        "A secret is whole once the pieces of a text are joined. The known agent looks at each line alone."

    MergeCode = "SP-13.a" Error Agent MERGE
        "merge_back_failed ends as error, with 1"
        "The run ends otherwise behind an error with this code."

    Stage = "SP-14.a" Info Agent STAGED
        "a stage is one of six"
        "The contract doesn't have a stage of this name."
    Result = "SP-14.b" Warning Agent FINAL
        "a result has its members"
        "The JSON of `final` lacks `run_id`, `status`, `tier` or `stages`, or the tier is none of five. The result of a plan has others."

    RefusalText = "SP-A01.a" Error Both EXEC
        "bad input is refused in the contract's words"
        "The message isn't the one for the first thing that is wrong. Info where the flags could be what is wrong."

    OneRun = "SP-A02.a" Error Agent STREAM
        "a stream has one run"
        "Another `runId` than in the line before."
    AfterEnd = "SP-A02.b" Error Agent CYCLE
        "nothing comes behind run_end"
        "A line behind the end."

    StatusExit = "SP-A03.a" Error Agent ERRORS
        "status and exit code go together"
        "The exit code isn't one of those that the status has."

    Joined = "SP-A04.a" Error Agent ENVELOPE
        "the joined pieces are the arguments"
        "The `tool_call` of this id has others. Not judged where a secret was taken out, or beyond 64 KiB."

    Sorted = "SP-A05.a" Info Agent EXEC
        "members stand in the order of the alphabet"
        "The known agent writes them so. Readers must not care; the finding is given once."
    Empty = "SP-A05.b" Info Agent EXEC
        "what is empty is left out"
        "A text, a list or an object is there, and empty. Given once."

    MarkerWord = "SP-A06.a" Info Agent STAGED
        "a marker's words and progress are known ones"
        "The status is a word that the contract doesn't have, or the progress is beyond 100."

    Cut = "SP-A08.a" Error Agent EXEC
        "long output is cut and marked"
        "The output is longer than 10,240 bytes and the mark, or longer than 10,240 bytes and not said to be truncated. Warning: only the known agent promises so."

    Priced = "SP-A10.a" Error Agent USAGE
        "only what is priced has an amount"
        "`costUsd` stands with another status than `priced`, or `priced` lacks its amount, its provenance, its source or its date; or a reason is missing, or stands beside a price."
    Estimated = "SP-A10.b" Error Agent USAGE
        "a cost is estimated unless it was reported"
        "`costEstimated` and `costProvenance` contradict each other, or an amount is negative."

    Interrupted = "SP-A11.a" Error Agent EXEC
        "an interrupted run has its error and no final"
        "The run ends as `interrupted` behind another error, or with a `final`."
}

/// Guarantees that no line shows.
pub const UNSEEN: &[Unseen] = &[
    Unseen {
        id: "SP-A07",
        why: "what a line shows of it is SP-12; that prose is left alone shows in tests alone",
    },
    Unseen {
        id: "SP-A09",
        why: "what a line shows of it is SP-02; what an agent takes shows in tests alone",
    },
    Unseen {
        id: "SP-A12",
        why: "that reading and writing are inverse shows in tests alone",
    },
    Unseen {
        id: "SP-A13",
        why: "it is about readers",
    },
];
