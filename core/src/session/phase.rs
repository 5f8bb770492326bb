//! The turn region: one phase at a time, each holding what only it needs.
//!
//! An input takes the phase out, matches it without a wildcard arm, and puts the next one back.

use alloc::{boxed::Box, collections::VecDeque, string::String, sync::Arc, vec::Vec};

use super::compact::Compacting;
use super::config::Price;
use super::hooks::Chain;
use super::queue::prompts::Waiting;
use super::tools::Batch;
use crate::vocab::{
    CallId, Cost, End, Failure, JobId, Message, MessageId, ModelRef, QueueFate, RequestId, StepId,
    Text, ToolSpec, TurnAnswer, TurnId, Usage, WriteId,
};

/// Where the session is.
#[derive(Default)]
pub(super) enum Phase {
    /// 1: no turn.
    #[default]
    Idle,
    /// 2: the prompt-submit hooks judge the prompt.
    Admitting(Box<Turn>, Chain),
    /// At a boundary that can't be passed yet: a reload is running, or too many stopped effects aren't settled.
    Waiting(Box<Turn>),
    /// 3: a durable write gates what follows.
    Saving(Box<Turn>, Save),
    /// 4: a request was sent, nothing visible came.
    Requesting(Box<Turn>, Box<Attempt>),
    /// 5: a message is being streamed.
    Streaming(Box<Turn>, Box<Attempt>, Box<Stream>),
    /// 6: time must pass before the next attempt.
    Backoff(Box<Turn>, Backoff),
    /// 7: calls are judged, asked about and run.
    Tools(Box<Turn>, Box<Batch>),
    /// 8: the turn-end hooks judge the reply.
    Checking(Box<Turn>, Check),
    /// 9: no step is open, and the turn waits for jobs of its own; at this time it waits no longer.
    Holding(Box<Turn>, Option<u64>),
    /// 10: the history is being summarised.
    Compacting(Box<Compacting>),
    /// 11: nothing comes any more.
    Closed,
}

impl Phase {
    /// The running turn.
    pub fn turn(&self) -> Option<&Turn> {
        match self {
            Phase::Idle | Phase::Closed => None,
            Phase::Admitting(turn, _)
            | Phase::Waiting(turn)
            | Phase::Saving(turn, _)
            | Phase::Requesting(turn, _)
            | Phase::Streaming(turn, _, _)
            | Phase::Backoff(turn, _)
            | Phase::Tools(turn, _)
            | Phase::Checking(turn, _)
            | Phase::Holding(turn, _) => Some(turn),
            Phase::Compacting(compacting) => compacting.then.turn(),
        }
    }

    /// The running turn, to be changed.
    pub fn turn_mut(&mut self) -> Option<&mut Turn> {
        match self {
            Phase::Idle | Phase::Closed => None,
            Phase::Admitting(turn, _)
            | Phase::Waiting(turn)
            | Phase::Saving(turn, _)
            | Phase::Requesting(turn, _)
            | Phase::Streaming(turn, _, _)
            | Phase::Backoff(turn, _)
            | Phase::Tools(turn, _)
            | Phase::Checking(turn, _)
            | Phase::Holding(turn, _) => Some(turn),
            Phase::Compacting(compacting) => compacting.then.turn_mut(),
        }
    }

    /// The attempt whose request is live.
    pub fn attempt(&self) -> Option<&Attempt> {
        match self {
            Phase::Requesting(_, attempt) | Phase::Streaming(_, attempt, _) => Some(attempt),
            Phase::Idle
            | Phase::Admitting(..)
            | Phase::Waiting(_)
            | Phase::Saving(..)
            | Phase::Backoff(..)
            | Phase::Tools(..)
            | Phase::Checking(..)
            | Phase::Holding(..)
            | Phase::Compacting(_)
            | Phase::Closed => None,
        }
    }

    /// The calls that are under way.
    pub fn batch(&self) -> Option<&Batch> {
        match self {
            Phase::Tools(_, batch) => Some(batch),
            Phase::Idle
            | Phase::Admitting(..)
            | Phase::Waiting(_)
            | Phase::Saving(..)
            | Phase::Requesting(..)
            | Phase::Streaming(..)
            | Phase::Backoff(..)
            | Phase::Checking(..)
            | Phase::Holding(..)
            | Phase::Compacting(_)
            | Phase::Closed => None,
        }
    }

    /// Whether the history is being summarised outside any turn.
    pub fn is_compacting_by_hand(&self) -> bool {
        matches!(self, Phase::Compacting(open) if open.then.turn().is_none())
    }

    /// Whether the turn's end is decided and waits only for its write.
    pub fn is_ending(&self) -> bool {
        matches!(
            self,
            Phase::Saving(
                _,
                Save {
                    gate: Gate::End { .. },
                    ..
                }
            )
        )
    }
}

/// A turn, from `TurnStarted` to `TurnEnded`.
pub(super) struct Turn {
    pub id: TurnId,
    pub started_us: u64,
    /// Steps begun, which is the number of the open one.
    pub steps: u32,
    pub open_step: Option<StepId>,
    /// Prompts applied, in order of application.
    pub applied: Vec<crate::vocab::PromptId>,
    /// The turn's own prompts that are still to be applied.
    pub to_apply: VecDeque<Waiting>,
    /// Messages of the session itself for the next step (a hook's addition, a refusal).
    pub own: Vec<Arc<Message>>,
    /// Whether its prompt was handed to the prompt-submit hooks; not while a reload runs.
    pub submitted: bool,
    /// The turn-end refusals that were honoured.
    pub refusals: u32,
    /// Tokens used by all attempts.
    pub tokens: u64,
    pub api_us: u64,
    pub requests: u32,
    pub by_model: Vec<(ModelRef, Usage, Cost)>,
    pub denials: Vec<CallId>,
    /// Bad inputs of capture tools so far.
    pub bad_captures: u32,
    /// The jobs that its calls became.
    pub jobs: Vec<JobId>,
    /// It has waited for them as long as it may.
    pub held_out: bool,
    /// The model was asked whether the goal is met.
    pub goal_checked: bool,
    /// What the turn added to the history up to its last compaction, and that one's summary; before that the summary
    /// of a compaction by hand that no write has held yet.
    pub added: Vec<Arc<Message>>,
    /// Where in the history the turn began, or its last compaction ended.
    pub history_from: usize,
    /// A compaction of this turn failed or was cancelled: none begins at a boundary any more.
    pub compaction_failed: bool,
    /// The text of its last whole reply.
    pub answer: Option<TurnAnswer>,
    /// The finish word of its last whole reply.
    pub finish: Option<Text>,
}

/// Phase 3.
pub(super) struct Save {
    pub write: WriteId,
    /// When it was asked for.
    pub since_us: u64,
    /// The messages of the write.
    pub messages: Vec<Arc<Message>>,
    pub gate: Gate,
}

/// What a gating write holds up.
pub(super) enum Gate {
    /// The prompt is written, the first step follows.
    Step,
    /// A hook's refusal is written, the next step follows.
    Refusal {
        message: Arc<Message>,
        hook: Text,
        reason: Text,
    },
    /// The turn is written, its end follows.
    End {
        end: End,
        fate: Fate,
        flush_at_us: u64,
    },
}

/// What becomes of the queue at a turn's end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fate {
    pub queue: QueueFate,
    /// The last prompt that had arrived when the end was decided: later ones aren't meant (S-52).
    pub until: u64,
}

/// One try of a step's request.
pub(super) struct Attempt {
    pub request: RequestId,
    /// From 1.
    pub number: u32,
    /// What became of the step's attempts before this one.
    pub tried: Tried,
    pub started_us: u64,
    pub stall_at_us: Option<u64>,
    pub sent: Sent,
    /// What the provider named the reply and its model.
    pub provider_id: Option<Text>,
    pub provider_model: Option<Text>,
    pub begun: bool,
    pub usage: Option<Usage>,
    /// The completion signal.
    pub finish: Option<Text>,
}

/// What became of the attempts that a step has made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tried {
    /// How many in a row, up to the last one, never reached the endpoint.
    pub unreached: u32,
    /// A retry was scheduled, and its end is owed.
    pub retried: bool,
    /// The context was too full for one: the history was summarised, which is done once in a step.
    pub overflowed: bool,
}

/// What a request was made of: settings changed later count from the next one.
pub(super) struct Sent {
    pub model: ModelRef,
    pub price: Option<Price>,
    pub max_output: Option<u64>,
    pub thinking: Option<Text>,
    pub thinking_budget: Option<u64>,
    pub tools: Arc<[ToolSpec]>,
    /// How much of the history it holds.
    pub messages: usize,
    /// Its raw estimate in tokens.
    pub raw: u64,
}

/// A message that is being put together.
pub(super) struct Stream {
    pub message: MessageId,
    pub slots: Vec<Slot>,
    /// The open text or thinking block, always the last of its kind.
    pub open: Option<usize>,
    /// Bytes of all deltas.
    pub bytes: usize,
    pub calls: usize,
    /// Whether text was shown: no retry after that.
    pub shown: bool,
}

/// One block of the message.
pub(super) enum Slot {
    Closed(Arc<crate::vocab::Block>),
    /// Its text so far lies in the session's reused buffer.
    Text,
    /// The thinking so far lies in the same buffer.
    Thinking {
        signature: String,
    },
    Call(Building),
}

/// A call whose arguments come in.
pub(super) struct Building {
    /// The provider's index.
    pub index: u32,
    pub call: CallId,
    pub provider_id: Text,
    pub name: Text,
    pub arguments: String,
}

/// Phase 6.
pub(super) struct Backoff {
    /// The attempt to come.
    pub attempt: u32,
    pub tried: Tried,
    pub at_us: u64,
    /// Why the last attempt failed.
    pub why: Failure,
}

/// Phase 8.
pub(super) struct Check {
    pub chain: Chain,
}
