//! Prompts that wait in the Client: openmax has no queue, so each gets a turn of its own after the `done` it waits for.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::HOST_LINE_MAX;
use crate::json;
use crate::vocab::{Block, Drain, DropWhy, Lane, Prompt, PromptId, Refusal};

/// A prompt that was taken: it waits here, is on its way to the agent, or has a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub id: PromptId,
    pub content: Vec<Block>,
    /// The text of its `user`.
    pub text: String,
    /// Bytes of that text as a JSON string.
    encoded: usize,
    /// Bytes of its content, as the limits count them.
    pub bytes: usize,
}

/// Bytes of a `user` line beside the JSON string of its text.
const AROUND: usize = r#"{"cmd":"user","text":}"#.len();
/// Between two prompts that share a line.
const BETWEEN: &str = "\n\n";
/// What that takes in a JSON string.
const BETWEEN_ENCODED: usize = 4;

impl Waiting {
    /// Reads a prompt as this wire can carry it: text alone, within the line limit.
    pub(super) fn new(prompt: Prompt) -> Result<Self, Refusal> {
        let mut text = String::new();
        for (index, block) in prompt.content.iter().enumerate() {
            let Block::Text(piece) = block else {
                return Err(Refusal::Unsupported("content other than text"));
            };
            if index > 0 {
                text.push('\n');
            }
            text.push_str(piece);
        }
        let mut line = Vec::new();
        json::write_str(&mut line, &text);
        if line.len() + AROUND > HOST_LINE_MAX {
            return Err(Refusal::TooLarge);
        }
        Ok(Waiting {
            id: prompt.id,
            bytes: prompt.bytes(),
            content: prompt.content,
            text,
            encoded: line.len(),
        })
    }
}

/// The text of one `user` for these prompts.
pub(super) fn joined(prompts: &[Waiting]) -> String {
    let mut text = String::new();
    for (index, prompt) in prompts.iter().enumerate() {
        if index > 0 {
            text.push_str(BETWEEN);
        }
        text.push_str(&prompt.text);
    }
    text
}

/// The lanes, in the order in which they are sent.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Prompts that cancelled the turn to be next, the newest first.
    front: VecDeque<Waiting>,
    /// Steers: later than asked, but before anything else.
    steers: VecDeque<Waiting>,
    follow_ups: VecDeque<Waiting>,
    next: VecDeque<Waiting>,
    later: VecDeque<Waiting>,
    bytes: usize,
}

impl Queue {
    fn lanes(&self) -> [&VecDeque<Waiting>; 5] {
        [
            &self.front,
            &self.steers,
            &self.follow_ups,
            &self.next,
            &self.later,
        ]
    }

    fn lanes_mut(&mut self) -> [&mut VecDeque<Waiting>; 5] {
        [
            &mut self.front,
            &mut self.steers,
            &mut self.follow_ups,
            &mut self.next,
            &mut self.later,
        ]
    }

    pub(super) fn len(&self) -> usize {
        self.lanes().into_iter().map(VecDeque::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes().into_iter().all(VecDeque::is_empty)
    }

    /// Bytes of all that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Ids in the order in which they would be sent.
    pub(super) fn ids(&self) -> Vec<PromptId> {
        let all = self.lanes().into_iter().flatten();
        all.map(|prompt| prompt.id).collect()
    }

    pub(super) fn push(&mut self, lane: Lane, prompt: Waiting) {
        self.bytes += prompt.bytes;
        match lane {
            Lane::Steer => &mut self.steers,
            Lane::FollowUp => &mut self.follow_ups,
            Lane::Next => &mut self.next,
            Lane::Later => &mut self.later,
        }
        .push_back(prompt);
    }

    /// Before everything else.
    pub(super) fn push_front(&mut self, prompt: Waiting) {
        self.bytes += prompt.bytes;
        self.front.push_front(prompt);
    }

    /// The prompts of the next `user`: one, or all of a lane that is drained whole, as far as one line holds them.
    pub(super) fn pop(&mut self, steers: Drain, follow_ups: Drain) -> Vec<Waiting> {
        let (lane, drain) = if !self.front.is_empty() {
            (&mut self.front, Drain::One)
        } else if !self.steers.is_empty() {
            (&mut self.steers, steers)
        } else if !self.follow_ups.is_empty() {
            (&mut self.follow_ups, follow_ups)
        } else if !self.next.is_empty() {
            (&mut self.next, Drain::One)
        } else {
            (&mut self.later, Drain::One)
        };
        let mut taken: Vec<Waiting> = Vec::new();
        let mut line = AROUND;
        while let Some(prompt) = lane.front() {
            line += prompt.encoded + BETWEEN_ENCODED;
            if !taken.is_empty() && (drain == Drain::One || line > HOST_LINE_MAX) {
                break;
            }
            taken.extend(lane.pop_front());
        }
        for prompt in &taken {
            self.bytes -= prompt.bytes;
        }
        taken
    }

    /// Takes a prompt that still waits.
    pub(super) fn take(&mut self, id: PromptId) -> Option<Waiting> {
        let taken = self.lanes_mut().into_iter().find_map(|lane| {
            let at = lane.iter().position(|prompt| prompt.id == id)?;
            lane.remove(at)
        })?;
        self.bytes -= taken.bytes;
        Some(taken)
    }

    /// Takes the prompt that was taken in first.
    pub(super) fn take_oldest(&mut self) -> Option<Waiting> {
        let oldest = self.ids().into_iter().min()?;
        self.take(oldest)
    }

    /// Empties the queue.
    pub(super) fn drop_all(&mut self) -> Vec<PromptId> {
        let ids = self.ids();
        *self = Queue::default();
        ids
    }
}

/// What becomes of the queue when the turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The next one is sent.
    Run,
    /// They wait until the next prompt or `Promote`.
    Keep,
    /// They end.
    Drop(DropWhy),
}
