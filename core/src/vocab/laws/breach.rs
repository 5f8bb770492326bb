//! The ways in which a stream can break a law.

use core::fmt;

use super::*;

/// A law broken, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The number of the output that broke it, from 1; 0 before the first.
    pub output: u64,
    /// What is wrong.
    pub breach: Breach,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "output {}: {}", self.output, self.breach)
    }
}

/// Something that has a beginning and an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    /// A turn.
    Turn,
    /// A step.
    Step,
    /// An attempt of a model request.
    Request,
    /// A streamed message.
    Message,
    /// A block of a streamed message.
    Block,
    /// A tool call.
    Call,
    /// A question.
    Question,
    /// A retry.
    Retry,
    /// A compaction.
    Compaction,
    /// A nested run.
    Run,
    /// A job.
    Job,
    /// A prompt.
    Prompt,
    /// A command that waits for its reply.
    Command,
}

/// What an effect is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectId {
    /// A model request.
    Model(RequestId),
    /// A call.
    Tool(CallId),
    /// The files of a call being put aside.
    Snapshot(CallId),
    /// Files being put back.
    Restore(CommandId),
    /// A hook's run.
    Hook(HookId),
    /// A write.
    Write(WriteId),
    /// A nested run.
    Run(RunId),
    /// A shell command.
    Shell(CommandId),
    /// A session being opened.
    Open(CommandId),
    /// Tools being read again.
    Reload(CommandId),
}

macro_rules! breaches {
    ($($law:literal $name:ident $(($kind:ty))? $text:literal,)*) => {
        /// What is wrong. [`Breach::law`] names the law.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Breach {
            $(
                #[doc = concat!($law, ": ", $text, ".")]
                $name $(($kind))?,
            )*
        }

        impl Breach {
            /// The id of the law that is broken.
            pub const fn law(&self) -> &'static str {
                match self { $(breaches!(@pattern $name $(($kind))?) => $law,)* }
            }

            /// What is wrong, without the ids.
            pub const fn text(&self) -> &'static str {
                match self { $(breaches!(@pattern $name $(($kind))?) => $text,)* }
            }
        }
    };
    (@pattern $name:ident ($kind:ty)) => { Breach::$name(_) };
    (@pattern $name:ident) => { Breach::$name };
}

breaches! {
    "S-05" RepliedTwice(CommandId) "a command was replied to twice",
    "S-05" RepliedUnasked(CommandId) "a reply to a command that was never given",
    "S-06" AfterClosed "an output after Closed",
    "S-07" NeverReplied(CommandId) "a command had no reply when the session closed",
    "S-07" WithdrawnTooEarly(PromptId) "a prompt ended as withdrawn before the reply that withdrew it",
    "S-10" NotAdmitted(PromptId) "an event of a prompt that was not admitted",
    "S-10" AdmittedAgain(PromptId) "a prompt was admitted twice, the second time not as a duplicate",
    "S-10" EndedTwice(PromptId) "a prompt ended twice",
    "S-10" NeverEnded(PromptId) "an admitted prompt had no end when the session closed",
    "S-11" AppliedTwice(PromptId) "a prompt was applied twice",
    "S-11" AppliedAfterEnd(PromptId) "a prompt was applied after its end",
    "S-11" AppliedWithoutMessage(PromptId) "a prompt was applied, and its message did not follow directly",
    "S-11" AppliedOutsideStep(PromptId) "a prompt was applied into a turn, but not into a step of it before the first request",
    "S-11" AppliedInsideTurn(PromptId) "a prompt was applied outside any turn while a turn ran",
    "S-12" Overlap(Thing) "something began while another of its kind was open",
    "S-12" NotInside(Thing) "something began outside of what it belongs to",
    "S-12" WrongNumber(Thing) "steps or attempts are not numbered in order from 1",
    "S-13" EndWithoutStart(Thing) "something ended that was not open",
    "S-13" StillOpen(Thing) "something was still open at the end of what it belongs to",
    "S-13" PromptEndMissing(PromptId) "the ends of a turn's prompts did not follow its end directly, in order of application",
    "S-15" SettledWhile(Thing) "Settled while something was still open or waiting",
    "S-15" SettledTwice "Settled twice with nothing between",
    "S-15" OpenedWhile(Thing) "another session was there while something of the one before was still open or waiting",
    "S-16" EndDiffers(PromptId) "a prompt did not end as the turn that it was applied into",
    "S-16" DroppedThoughApplied(PromptId) "an applied prompt ended as dropped or withdrawn",
    "S-17" NotCancelled(TurnId) "a cancel was replied to with this turn, and the turn ended otherwise",
    "S-17" SuccessAfterCancel(TurnId) "a success event followed the reply that cancelled the turn",
    "S-18" FinishedOverSteer(PromptId) "a turn finished while a steer was waiting",
    "S-20" RetryAfterText(StepId) "a retry after reply text was shown in the same step",
    "S-21" NotOpen(MessageId) "a delta or a block of a message that is not open",
    "S-21" EmptyDelta(MessageId) "an empty delta",
    "S-21" RequestEndedFirst(RequestId) "a request ended while its message was open",
    "S-22" DeltasDiffer(MessageId) "the deltas of a block, joined, are not the block",
    "S-23" StartedIncomplete(CallId) "a call began whose reply had no completion signal",
    "S-24" RetryWithout "a retry ended that was never scheduled",
    "S-24" RetryOpen "a retried request had no RetryEnded",
    "S-26" TwoRequests(RequestId) "two model requests of one run were live at once",
    "S-30" Unlisted(CallId) "a call began or was skipped that its reply does not name",
    "S-30" CallEndedTwice(CallId) "a call ended that was not open",
    "S-30" SkippedThoughBegun(CallId) "a call was skipped that had begun or ended",
    "S-30" CallNeverEnded(CallId) "a call named by a reply had no end when its step ended",
    "S-30" CallsOutOfOrder(CallId) "a call began before an earlier one of its reply",
    "S-32" AskedTwice(AskId) "a question was asked twice",
    "S-32" ClosedUnasked(AskId) "a question was closed that was not open",
    "S-32" AskNeverClosed(AskId) "a question was open when the session closed",
    "S-32" DecidedWhileAsked(CallId) "a call was decided while its permission was open",
    "S-32" RanUndecided(CallId) "a call that was asked about ran without a decision that allows it",
    "S-34" RanDenied(CallId) "a call ran that was decided against",
    "S-35" RanTwice(EffectId) "an effect was started twice",
    "S-37" DecidedTwice(CallId) "a call was decided twice",
    "S-37" DecidedOutside(CallId) "a call was decided before it began or after it ended",
    "S-37" NeverDecided(CallId) "a call that was asked about ended without a decision",
    "S-03" StoppedUnstarted(EffectId) "an effect was stopped that was never started, or stopped twice",
    "S-03" DetachedUnstarted(CallId) "a call that isn't being carried out was to go on as a job",
    "S-55" ClosedTwice "Closed came twice",
    "S-56" StartedWhileClosing(TurnId) "a turn began for a goal or a job while closing",
    "S-57" JobOutOfOrder(JobId) "a job began twice, or changed before it began",
    "S-57" JobNeverEnded(JobId) "a job had no end when the session closed",
    "S-57" JobAfterEnd(JobId) "an event of a job after its end",
    "S-57" RunNeverEnded(RunId) "a nested run had no end when the session closed",
    "S-57" OutsideRun(RunId) "an event of a nested run that isn't open",
    "S-59" CompactionInside(Thing) "a compaction while a message, a request or a call was open",
    "S-65" StartedUnsaid(EffectId) "an effect did not follow its event",
    "S-69" NestedAskOpen(AskId) "a nested run ended while a question of it was open",
    "S-50" AskedWhenCancelled(AskId) "a question was still open when the cancel of its turn was replied to",
    "TW-06" AllowedAgainst(CallId) "a call was allowed although its question was closed without an allow",
    "L6" TimeWentBack "an event is older than the one before",
    "L8" IdReused(Thing) "an id was used for two things",
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({self:?})", self.law(), self.text())
    }
}

/// What was found so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) output: u64,
    pub(super) found: Vec<Violation>,
}

impl Report {
    pub(super) fn breach(&mut self, breach: Breach) {
        self.found.push(Violation {
            output: self.output,
            breach,
        });
    }

    pub(super) fn check(&mut self, holds: bool, breach: Breach) {
        if !holds {
            self.breach(breach);
        }
    }
}
