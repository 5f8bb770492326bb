//! The rules of openmax, as data. Each belongs to a guarantee (OM-01 to OM-33) and cites a section of the contract.

use crate::protocol::observer::{Unseen, catalogue};

const INTRO: &str = "openmax-stdio/6, introduction";
const HANDSHAKE: &str = "openmax-stdio/6, Handshake";
const COMMANDS: &str = "openmax-stdio/6, Commands (stdin)";
const EVENTS: &str = "openmax-stdio/6, Events (stdout)";
const TURNS: &str = "openmax-stdio/6, Turn guarantees";

catalogue! {
    FirstIsHello = "OM-01.a" Error Agent HANDSHAKE
        "the first line is hello"
        "The first line of the agent must be `hello`."
    HelloOnce = "OM-01.b" Error Agent HANDSHAKE
        "hello comes once"
        "A second `hello` would begin a second session in the same stream."
    HelloProto = "OM-01.c" Error Agent HANDSHAKE
        "hello names this contract"
        "`proto` must be `openmax-stdio/6` and `protocol_version` the integer 6 (5 for both where an older wire is checked): any change of the wire bumps both."
    HelloProject = "OM-01.d" Warning Agent HANDSHAKE
        "project is an absolute path"
        "`project` must be an absolute path: a host may run elsewhere."

    TranscriptFollows = "OM-02.a" Error Agent HANDSHAKE
        "a transcript follows a hello that continues"
        "The line after a `hello` with `continued: true` must be the `transcript`."
    TranscriptStray = "OM-02.b" Error Agent HANDSHAKE
        "a transcript stands only after such a hello"
        "A `transcript` comes once, directly after a `hello` with `continued: true`, and never else."
    TranscriptMessage = "OM-02.c" Error Agent HANDSHAKE
        "a message in a transcript is 4,096 characters at most"
        "Each message of a transcript is capped at 4,096 characters (an older wire appends one for the ellipsis)."
    TranscriptTotal = "OM-02.d" Error Agent HANDSHAKE
        "a transcript holds 256 KiB of content at most"
        "The content of all messages together is capped at 256 KiB. Counted in characters it is an error; if only its bytes are more, the contract leaves it open and the finding is info."
    TranscriptRole = "OM-02.e" Error Agent HANDSHAKE
        "a transcript has messages of user and assistant only"
        "Tool traffic and the system prompt stay in the session; the roles are `user` and `assistant`."

    Replay = "OM-03.a" Error Both HANDSHAKE
        "no live events are replayed"
        "A continued session shows its past in the transcript alone. A line of a turn before the first prompt would be taken for a running turn."

    BadCommand = "OM-05.a" Error Host COMMANDS
        "a command is one JSON object on one line"
        "The line of the host isn't exactly one JSON object, or not one that can be read in only one way (a member twice, half a surrogate pair, nested beyond all need). The agent must refuse it. Info where the agent's answer is observed."
    NoCommand = "OM-05.b" Error Host COMMANDS
        "a command has a cmd"
        "The line of the host has no `cmd`, or one that isn't a string. The agent must refuse it. Info where the agent's answer is observed."
    CommandFields = "OM-05.c" Error Host COMMANDS
        "a command has its fields"
        "A field of the command is missing or of another type. The agent must refuse it. Info where the agent's answer is observed."
    BadCommandAnswered = "OM-05.d" Error Both COMMANDS
        "a line that is no command gets a protocol_error"
        "The agent left a malformed line of the host without a `protocol_error`. Warning where the agent's exit wasn't seen."
    ErrorUncaused = "OM-05.e" Error Both COMMANDS
        "a protocol_error answers a line of the host"
        "There are more `protocol_error` lines than lines of the host that could have caused one. Where a command gets one answer, two are one too many."
    UnknownCommand = "OM-06.a" Error Host COMMANDS
        "cmd is one of the contract's"
        "The `cmd` isn't one of user, approve, approval_mode, reload, cancel and quit. The agent must refuse it. Info where the agent's answer is observed."
    UnknownAnswered = "OM-06.b" Error Both COMMANDS
        "an unknown cmd gets a protocol_error"
        "The agent left a command that the contract doesn't have without a `protocol_error`. Warning where the agent's exit wasn't seen."

    UnknownMode = "OM-07.a" Error Host COMMANDS
        "the mode is auto, ask or readonly"
        "The host asks for an approval mode that there isn't. The agent must refuse it. Info where the agent's answer is observed, and for a mode with white space around it."
    ModeAckWord = "OM-07.b" Error Agent EVENTS
        "an acknowledged mode is auto, ask or readonly"
        "The `approval_mode` line of the agent names a mode that there isn't."
    ModeAckStray = "OM-07.c" Error Both COMMANDS
        "an approval_mode line answers a command for that mode"
        "The agent acknowledges a mode that no unanswered command of the host asked for."
    ModeAnswered = "OM-07.d" Error Both COMMANDS
        "approval_mode is answered"
        "An `approval_mode` command must be answered by an `approval_mode` line, or by a `protocol_error`. Warning where the agent's exit wasn't seen."
    ModeErrorNames = "OM-07.e" Warning Both COMMANDS
        "the refusal of a mode names the legal ones"
        "The `protocol_error` that answers an unknown mode must name `auto`, `ask` and `readonly`. Judged only where nothing else can have caused the line."

    ReloadBusy = "OM-08.a" Info Both COMMANDS
        "reload comes between turns"
        "A `reload` while a turn is in flight is refused."
    ReloadAnswered = "OM-08.b" Error Both COMMANDS
        "reload is answered"
        "A `reload` must be answered by a `refrozen` line, or by a `protocol_error`. Warning where the agent's exit wasn't seen."

    AfterQuit = "OM-09.a" Info Host COMMANDS
        "nothing comes after quit"
        "The agent leaves after `quit` and the turn in flight; what the host writes later may never be read."
    ApprovedAfterQuit = "OM-09.b" Error Both TURNS
        "after quit approvals are declined"
        "An approval was settled as approved, and the host approved it only after `quit`: from then on pending and later approvals are declined."

    HostNotUtf8 = "OM-10.a" Error Host TURNS
        "a line of the host is UTF-8"
        "The line of the host isn't UTF-8. The agent must refuse and skip it. Info where the agent's answer is observed."
    HostTooLong = "OM-10.b" Error Host TURNS
        "a line of the host is 8 MiB at most"
        "The line of the host has more than 8,388,608 bytes. The agent must refuse and skip it. Info where the agent's answer is observed."
    HostBytesAnswered = "OM-10.c" Error Both TURNS
        "a line that isn't UTF-8 or is too long gets a protocol_error"
        "The agent skipped the line without a `protocol_error`. Warning where the agent's exit wasn't seen."

    ApproveUnknown = "OM-11.a" Info Both TURNS
        "approve names an open approval"
        "The host answers an approval that was never asked for, or is settled: its picture of open gates is wrong. The agent must say so."
    ApproveAnswered = "OM-11.b" Error Both TURNS
        "an approve of no open approval gets a protocol_error"
        "The agent dropped it silently. Warning where the agent's exit wasn't seen."

    NotALine = "OM-12.a" Error Agent INTRO
        "a line of the agent is one JSON object"
        "The line isn't UTF-8, or not exactly one JSON object. Warning for a last line without a newline (it was cut off), for half a surrogate pair, and where nobody knows which side wrote the line; info for nesting beyond 128 levels."
    Duplicate = "OM-12.b" Error Agent EVENTS
        "a member stands once in its object"
        "Lines are read by member name, so a name that stands twice has no one value. Warning within a member, where it may be the model's own text."
    NoType = "OM-12.c" Error Agent EVENTS
        "a line of the agent has a type"
        "The line has no `type`, or one that isn't a string."
    NoSession = "OM-12.d" Error Agent EVENTS
        "an event carries the session's id"
        "Every line but `protocol_error` and `approval_mode` carries `session_id`, a string."
    OtherSession = "OM-12.e" Error Agent EVENTS
        "the session's id stays the same"
        "The line carries another `session_id` than `hello` did."
    SessionOnAnswer = "OM-12.f" Error Agent EVENTS
        "protocol_error and approval_mode carry no session_id"
        "These two lines are the only ones without `session_id`."
    Ordered = "OM-12.g" Info Agent EVENTS
        "keys stand in the documented order"
        "openmax writes `session_id`, `type` and then the fields in the order of the table. Readers must not care; the finding is given once."

    UnknownType = "OM-13.a" Error Agent EVENTS
        "the type is one of the contract's"
        "The contract has no line of this `type`. (`retry` came with version 6.)"
    Fields = "OM-13.b" Error Agent EVENTS
        "a line has its fields"
        "A field is missing, or its value isn't of the type that the contract gives it: counts are integers from 0, nothing but `cached_tokens` is null."
    CachedAbsent = "OM-13.c" Warning Agent EVENTS
        "cached_tokens is null when unknown"
        "`usage` has no `cached_tokens`; the contract says number or null, and only `env` is left out."
    Unlisted = "OM-13.d" Info Agent EVENTS
        "a line has no other members"
        "The contract doesn't list this member; any change of the wire bumps its version. Given once for each type of line."
    ArgsObject = "OM-13.e" Error Agent EVENTS
        "args is an object"
        "`args` of `tool_start` must be an object, whatever the model wrote (an older wire says null where it couldn't be read)."
    CallTwice = "OM-13.f" Warning Agent EVENTS
        "a call's id is its own"
        "A `tool_start` has the `call_id` of a call that hasn't ended; what follows can't be told apart."
    CallEnds = "OM-13.g" Error Agent EVENTS
        "tool_end ends a call that began"
        "No call of this `call_id` is open: it never began, or has ended before."
    CallLeftOpen = "OM-13.h" Info Agent EVENTS
        "calls have ended before done"
        "A call that began has no `tool_end` before the turn's `done`. The contract guarantees only `done`."
    DiffCall = "OM-13.i" Error Agent EVENTS
        "diff belongs to a call"
        "No call of this `call_id` has begun. Info if the call has ended: the contract doesn't say that `diff` comes first, the real program does so."
    NoteCall = "OM-13.j" Error Agent EVENTS
        "a note rides on a call or stands alone"
        "`call_id` of `harness_note` must be empty, or name a call that has begun."
    SchemasOnce = "OM-13.k" Error Agent EVENTS
        "schemas_over_budget comes once a session"
        "The advice about the size of the tool schemas is given at most once a session."
    NothingCompacted = "OM-13.l" Warning Agent EVENTS
        "a compaction of 0 messages changes nothing"
        "`compacted_messages` of 0 means that nothing changed, but the token counts differ."
    UsageLate = "OM-13.m" Info Agent EVENTS
        "usage comes before message_done"
        "The real program writes `usage` before the `message_done` of its request; the contract doesn't say."

    AskInAuto = "OM-14.a" Error Agent EVENTS
        "auto asks nothing"
        "In mode `auto` no `approval_request` is emitted, not for new extension content or ask rules either. Judged from the first `approval_mode` line on. (An older wire does ask.)"
    SettledUnknown = "OM-14.b" Error Agent EVENTS
        "approval_settled settles an open approval"
        "No approval of this id is open: it was never asked for, or has been settled before."
    AskTwice = "OM-14.c" Error Agent TURNS
        "an approval's id is used once"
        "The `approval_id` was issued before. A late answer to the old one would open the new gate."
    ApprovedByNobody = "OM-14.d" Error Both EVENTS
        "approved means that the host approved"
        "The approval was settled as approved without an `approve` of the host that says so. A request stays pending until it is answered or cancelled."
    DeclinedByNobody = "OM-14.e" Warning Both EVENTS
        "declined means that the host declined"
        "The approval was settled as declined, but the host neither declined it nor ended its input. A request stays pending until it is answered or cancelled; a signal or a crash excuses this."
    AskLeftOpen = "OM-14.f" Info Agent EVENTS
        "approvals are settled before done"
        "An approval is still open at its turn's `done`. The contract guarantees only `done`."

    SourceNamed = "OM-15.a" Error Agent TURNS
        "unapproved_source names its file"
        "A request of reason `unapproved_source` carries `source_path`, and as `source_sha` the first 12 hex digits of the file's SHA-256."
    GateSource = "OM-15.b" Error Agent TURNS
        "gate names no file"
        "`source_path` and `source_sha` are empty when the reason is `gate`."
    AskWords = "OM-15.c" Error Agent EVENTS
        "reason and outcome are the contract's words"
        "`reason` is `gate` or `unapproved_source`; `outcome` is `approved`, `declined`, `timed_out` or `cancelled`."
    EnvEmpty = "OM-16.a" Error Agent EVENTS
        "env is left out when it is empty"
        "`env` lists the variables that the tool will receive; without any the member isn't there."

    DoneUnowed = "OM-17.a" Error Both TURNS
        "a user command gets one done"
        "There are more `done` lines than `user` commands that can have been admitted or refused."
    UserUnanswered = "OM-17.b" Error Both TURNS
        "every user command is answered"
        "A `user` command got neither `done` nor `protocol_error`. Warning where the agent's exit wasn't seen."
    OutsideTurn = "OM-17.c" Error Both TURNS
        "nothing of a turn stands outside one"
        "A line of a turn came though no `user` command waits for its `done`. What came before `done` can have crossed with it; what comes after it can't."
    UserBusy = "OM-18.a" Info Both TURNS
        "user comes between turns"
        "A `user` command while a turn is in flight is refused with a `protocol_error` alone, unless the turn's `done` was on its way."
    BlankPrompt = "OM-19.a" Info Host TURNS
        "a prompt isn't empty"
        "Empty text starts no turn; the agent answers with `protocol_error` and `done` `refused`."
    RefusedBare = "OM-19.b" Error Agent TURNS
        "done refused follows a protocol_error"
        "A `user` command that starts no turn gets a `protocol_error`, then `done` with `refused`."
    RefusedLate = "OM-19.c" Error Agent TURNS
        "done refused ends no turn"
        "`refused` means that no turn was started, but lines of one stand before it: a host would take the running turn for ended. Warning after a `message_done`, where it can be the provider's own word."

    TokensOpen = "OM-20.a" Error Agent TURNS
        "a run of tokens ends in a message_done"
        "Tokens were followed by the next step, a call or a normal end, with no `message_done` between. Info for `cancelled`."
    MessageTwice = "OM-20.b" Error Agent TURNS
        "one message_done for a run of tokens"
        "A second `message_done` follows with nothing of another step between."
    MessageLonger = "OM-20.c" Info Agent TURNS
        "message_done holds the tokens' text"
        "The text of `message_done` is longer than the tokens before it: something was never streamed."
    FailedKept = "OM-21.a" Info Agent TURNS
        "a failed reply has no message_done"
        "Tokens, `message_done`, `error` and `done` with `error` follow each other directly. If the provider's stream failed, there is no `message_done`; if the turn failed later, this is right."
    TruncatedBare = "OM-22.a" Error Agent TURNS
        "an error line stands before done truncated"
        "`truncated` means that the reply is incomplete; `message_done`, then an `error` line, then `done`."
    TruncatedCalls = "OM-22.b" Error Agent TURNS
        "no call of a truncated reply runs"
        "A call began between the last reply and `done` with `truncated`: an incomplete reply never said which calls the model meant."
    ErrorBare = "OM-23.a" Error Agent TURNS
        "an error line stands before done error"
        "`error` means that the turn failed; an `error` line says why. (An older wire passes a provider's own word `error` without one.)"
    DiedSilently = "OM-24.a" Error Agent TURNS
        "a turn never ends in silence"
        "The agent's lines end within a turn: a crash is `error` and `done` with `error`. Warning where the agent's exit wasn't seen; nothing if a signal ended it."
    ExitCode = "OM-25.a" Error Exit TURNS
        "the exit code tells how the last turn ended"
        "The process exits with 1 if its last turn ended with `error`, else with 0 (an older wire: 1 after any such turn). Start-up failures before `hello`, and signals, aren't judged."

    RetryAfterToken = "OM-26.a" Error Agent EVENTS
        "nothing is retried after a token"
        "A `retry` follows a token of the same request: the reply would start over, but shown text isn't taken back."
    RetryRange = "OM-28.a" Error Agent EVENTS
        "attempt is within max_attempts"
        "`attempt` is the one that goes out: from 2 to `max_attempts`."
    RetryCount = "OM-28.b" Error Agent EVENTS
        "attempts count up"
        "The `attempt` of a request's next `retry` must be higher. Info if it leaves numbers out: the attempt behind a summary of a full context has no line."

    RefusalCount = "OM-30.a" Error Agent EVENTS
        "refusals are counted"
        "`continuation` counts the refusals honoured before this one in the turn, from 0; with `continuations_left` it makes 8."
    RefusalAfterReply = "OM-30.b" Error Agent EVENTS
        "turn_refused follows a message_done"
        "A hook refuses what the model completed: there must be a `message_done` for each `turn_refused`."
}

/// Guarantees that no line shows.
pub const UNSEEN: &[Unseen] = &[
    Unseen {
        id: "OM-04",
        why: "it fails on standard error, before any line",
    },
    Unseen {
        id: "OM-27",
        why: "what the provider answered, and how long the wait was, isn't on the wire",
    },
    Unseen {
        id: "OM-29",
        why: "whether an attempt reached its endpoint isn't on the wire",
    },
    Unseen {
        id: "OM-31",
        why: "`blocked` can be the provider's own word, and a failed hook is only told by `hook_failed`",
    },
    Unseen {
        id: "OM-32",
        why: "it is this tool: `turnwire check`",
    },
    Unseen {
        id: "OM-33",
        why: "it is this tool: `turnwire spec`",
    },
];
