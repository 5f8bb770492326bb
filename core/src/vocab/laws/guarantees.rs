//! What is promised, by number: tables that tests, pages and findings name their ids from.

/// One numbered promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantee {
    /// Its name for good: a prefix, a hyphen where the prefix is a word, and a number.
    pub id: &'static str,
    /// What it says, in a sentence.
    pub says: &'static str,
}

const fn row(id: &'static str, says: &'static str) -> Guarantee {
    Guarantee { id, says }
}

/// What a session owes to whoever drives it, whatever the protocol: TW-01 to TW-10.
pub const GUARANTEES: &[Guarantee] = &[
    row(
        "TW-01",
        "An admitted prompt ends exactly once, and the next one can be given at once.",
    ),
    row(
        "TW-02",
        "Nothing of a turn comes after the event that ends it.",
    ),
    row(
        "TW-03",
        "The pieces of a message come in order with nothing between them; one end ends them, or the failure that voids them does.",
    ),
    row(
        "TW-04",
        "A request is never retried once text of its reply was shown.",
    ),
    row(
        "TW-05",
        "A tool call that starts ends exactly once; a call of a reply without a completion signal never runs; the model gets one result for each call.",
    ),
    row(
        "TW-06",
        "A question is settled once, by the first answer that decides; an error denies; a question out of a history can't be answered.",
    ),
    row(
        "TW-07",
        "A cancel wins over everything that wasn't said yet, is acknowledged in the protocol's order, and is never reported as success.",
    ),
    row(
        "TW-08",
        "Output keeps its order, and what depends on a durable write waits for the write.",
    ),
    row(
        "TW-09",
        "Bad input changes nothing but the report that it was bad.",
    ),
    row(
        "TW-10",
        "Memory stays within the configured limits; a slow reader slows the model down.",
    ),
];

/// What every machine keeps, whoever drives it: L1 to L10.
pub const LAWS: &[Guarantee] = &[
    row("L1", "However input is cut, the outputs are the same."),
    row(
        "L2",
        "However late output is drained, it is the same, in the same order.",
    ),
    row("L3", "While output is queued, the deadline isn't ahead."),
    row(
        "L4",
        "After a wake at the deadline the next one is later, or there was output.",
    ),
    row(
        "L5",
        "The same configuration, seed, inputs and times give the same bytes.",
    ),
    row(
        "L6",
        "Time may stand still; time that goes back changes nothing.",
    ),
    row(
        "L7",
        "One call does work in proportion to its input and to what it writes.",
    ),
    row(
        "L8",
        "An id gets one terminal answer; late and unknown answers change nothing.",
    ),
    row(
        "L9",
        "Nothing that a peer, a model, a tool or a disk does is an error of the caller, a panic, or memory beyond the limits.",
    ),
    row("L10", "Decoding undoes encoding, and the other way round."),
];

/// The invariants of the session, as seen in what it says and asks for.
pub const INVARIANTS: &[Guarantee] = &[
    row(
        "S-01",
        "An input is handled whole; nothing loops without waiting for something.",
    ),
    row(
        "S-02",
        "Timers that were due before now fire first, in their order; those due now fire by a wake.",
    ),
    row(
        "S-03",
        "An effect is settled once; after it was stopped, what it brings is dropped.",
    ),
    row(
        "S-04",
        "Only the embedder's own mistakes are misuse, and they change nothing.",
    ),
    row(
        "S-05",
        "A command gets one reply; a refused one changes nothing else.",
    ),
    row(
        "S-06",
        "A closed session takes commands and timers in silence.",
    ),
    row(
        "S-07",
        "A reply is the first thing that its command causes, but for outcomes that are known later; none is owed at the close.",
    ),
    row("S-10", "A prompt is refused, or admitted and ended once."),
    row(
        "S-11",
        "A prompt is applied once, directly before its message, inside a step or outside any turn.",
    ),
    row("S-12", "Turns, steps and attempts nest, one at a time."),
    row(
        "S-13",
        "When a turn ends, nothing of it is open, and nothing of it follows.",
    ),
    row(
        "S-14",
        "After a turn's end no prompt is refused as busy because of it.",
    ),
    row(
        "S-15",
        "Settled is said only when nothing runs or waits, and once.",
    ),
    row(
        "S-16",
        "A prompt ends as the turn that it was applied into.",
    ),
    row(
        "S-17",
        "A turn whose cancel was acknowledged ends as cancelled.",
    ),
    row("S-18", "A turn doesn't finish over a steer that waits."),
    row(
        "S-19",
        "A prompt that only adds context causes neither step nor turn.",
    ),
    row("S-20", "No retry follows a text delta of its step."),
    row(
        "S-21",
        "A message begins and ends once, and its deltas lie between.",
    ),
    row("S-22", "The deltas of a block, joined, are the block."),
    row(
        "S-23",
        "No call of an attempt without a completion signal starts.",
    ),
    row(
        "S-24",
        "A scheduled retry is sent or ended, never both; a retried request ends its retry once.",
    ),
    row(
        "S-25",
        "No attempt starts before its time, nor after a cancel.",
    ),
    row("S-26", "One model request is live at most."),
    row(
        "S-30",
        "A call of a whole message ends once, or is skipped once.",
    ),
    row(
        "S-31",
        "The model is sent one result for each call, in order, directly behind the message that made the calls.",
    ),
    row(
        "S-32",
        "A question is closed once, before its call is decided.",
    ),
    row(
        "S-33",
        "Open questions and running calls stay within their limits.",
    ),
    row("S-34", "A call that a rule denies never runs."),
    row(
        "S-35",
        "A call is run once at most, and a late outcome changes nothing.",
    ),
    row("S-36", "Where mode auto is silent, it asks nothing."),
    row("S-37", "A call is decided once at most, before its end."),
    row(
        "S-40",
        "A hook decides once at most, and never after it was stopped.",
    ),
    row(
        "S-41",
        "A refusal of a completion is stored before it is said.",
    ),
    row("S-45", "A timer goes with what it belongs to."),
    row(
        "S-46",
        "After a wake the next deadline is later, or output is queued.",
    ),
    row(
        "S-50",
        "A cancel ends the turn at once, or waits for one bounded write.",
    ),
    row("S-51", "A second cancel changes nothing."),
    row(
        "S-52",
        "A cancel changes no prompt that it isn't meant for.",
    ),
    row(
        "S-54",
        "Holding a turn for its jobs ends, and never while a steer waits.",
    ),
    row(
        "S-55",
        "After a close the session closes in bounded time, once, last.",
    ),
    row("S-56", "No turn begins for a goal or a job while closing."),
    row("S-57", "A job, a run and a shell end once."),
    row("S-58", "A goal causes no more steps than its budget."),
    row("S-59", "A compaction never parts a call from its result."),
    row("S-60", "Memory stays within the sum of the limits."),
    row(
        "S-61",
        "With a host that doesn't read, a cancel still ends the turn.",
    ),
    row(
        "S-62",
        "What the session wants to read changes by calls alone, never by time.",
    ),
    row("S-65", "The event of an effect stands before the effect."),
    row("S-66", "Events and effects are one queue."),
    row(
        "S-67",
        "What a write gates is said after the write; what stood before isn't held back.",
    ),
    row(
        "S-68",
        "What ended something is in its end; a notice ends nothing.",
    ),
    row(
        "S-69",
        "A nested question is closed once, before its run ends.",
    ),
];
