//! What this wire promises, by the numbers of its contract. Where claude differs, a bit of the
//! [`Policy`](super::policy::Policy) says how.

use crate::vocab::laws::Guarantee;

const fn row(id: &'static str, says: &'static str) -> Guarantee {
    Guarantee { id, says }
}

/// The promises, in the order of the contract.
pub const GUARANTEES: &[Guarantee] = &[
    row(
        "WIRE-001",
        "A line that isn't JSON is told to the person who runs the process, and ends it with 1.",
    ),
    row(
        "WIRE-002",
        "A record of a type that nobody knows is passed over, with a warning.",
    ),
    row(
        "WIRE-003",
        "All that is written, records, requests, withdrawals and signs of life, goes through one queue in one order.",
    ),
    row(
        "WIRE-004",
        "`idle` is said once a held result is out and the work beside the turn has ended.",
    ),
    row(
        "WIRE-005",
        "After a compaction that kept a segment, that segment stands behind its anchor; the summary isn't all that there is.",
    ),
    row(
        "WIRE-006",
        "A request waits for its answer before it can be written, and stops waiting exactly once: answered, withdrawn, or with the end of input.",
    ),
    row(
        "WIRE-007",
        "Who withdraws a request writes so, stops waiting at once, and passes over the answer that still comes.",
    ),
    row(
        "WIRE-008",
        "At the end of input every request that still waits is refused: the stream is closed.",
    ),
    row(
        "WIRE-009",
        "A response is a success or an error, and its payload is judged by the operation that waits for it, whatever the outside looked like.",
    ),
    row(
        "WIRE-010",
        "`interrupt` is answered at once, without a payload: it was heard. The turn's own result follows, and input stays open.",
    ),
    row(
        "WIRE-011",
        "An interrupt withdraws every open permission first, in the order in which they were asked, and is answered then.",
    ),
    row(
        "WIRE-012",
        "A price that nobody knows is `null`, for the whole and for each model; 0 stands only where it is known to be 0.",
    ),
    row(
        "WIRE-013",
        "No line that holds a credential is written, however it is spelled and wherever it reaches: the exact final bytes are searched, newline included. After one nothing is written any more.",
    ),
    row(
        "WIRE-014",
        "A member that stands twice in an object, in any spelling and at any depth, is refused, in both directions; a name and its alias are two members.",
    ),
    row(
        "WIRE-015",
        "What judges or writes lines can't change them, can't be exchanged once a line was written, and fails for good, with one fixed text.",
    ),
    row(
        "WIRE-016",
        "`apiKeySource` is `user` or `temporary`, and nothing else of a key is ever said.",
    ),
    row(
        "WIRE-017",
        "A message is a text, or text blocks, or version 1 content that refers to attachments by their whole manifests; a replay keeps all of it, in order.",
    ),
    row(
        "WIRE-018",
        "An upload is a begin, chunks of 262,144 bytes at most in order, and a commit or an abort; eight run at once, and each line is 8 MiB at most.",
    ),
    row(
        "WIRE-019",
        "An upload that begins is accepted with one record and ends with exactly one; a chunk that fits gets none.",
    ),
    row(
        "WIRE-020",
        "A prompt refers to all attachments that were committed for it and to no other; whether it does is known before it is queued or interrupts anything. 128 prompts and 16 MiB wait at most.",
    ),
    row(
        "WIRE-021",
        "Records, messages, blocks and uploads have no members but their own. A broken record ends the stream; a message that makes no sense gets a result that says so.",
    ),
    row(
        "WIRE-022",
        "Of an attachment only its manifest is ever written: no bytes, no base64, no paths.",
    ),
    row(
        "WIRE-023",
        "`system/init` names the provider, its type and the model of this process, and what its operator declared of reasoning.",
    ),
    row(
        "WIRE-024",
        "The answer to `initialize` lists every configured provider once, in order, exactly one as selected, and nothing of how it is reached.",
    ),
    row(
        "WIRE-025",
        "Provider and model are fixed when the process starts: `set_model` says how to start another one, `set_provider` isn't known.",
    ),
    row(
        "WIRE-026",
        "The list of providers that is asked for beforehand is one document of version 1, with none selected; if it can't be whole and safe, nothing is written.",
    ),
    row(
        "WIRE-EOF-001",
        "A last line without a newline is taken like any other before input counts as closed: an answer in it is still an answer.",
    ),
    row(
        "WIRE-PERM-001",
        "Of the host and a hook, who decides first decides; a hook that passes decides nothing.",
    ),
    row(
        "WIRE-PERM-002",
        "Whatever fails or can't be read denies; nothing lets a call run by accident.",
    ),
    row(
        "WIRE-PERM-003",
        "What a permission is asked for is described by a safe summary, and by the tool's name where there is none.",
    ),
    row(
        "WIRE-PERM-004",
        "A connection to the network is asked for like any call, and denied by any fault.",
    ),
];
