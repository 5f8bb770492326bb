//! Prompts that wait: the steer queue, and the pending lanes in their order.

use alloc::{collections::VecDeque, sync::Arc, vec::Vec};

use crate::vocab::{Block, IdleSteer, Lane, Message, Origin, Prompt, PromptId, RawJson, Text};

/// A prompt as it comes, with what hooks add to it and their keys.
#[derive(Clone, Debug)]
pub(in crate::session) struct Submitted {
    pub prompt: Prompt,
    pub notes: Vec<(Text, Text)>,
}

impl Submitted {
    pub fn new(prompt: Prompt) -> Self {
        let notes = Vec::new();
        Submitted { prompt, notes }
    }
}

/// A prompt that was admitted and waits to be applied.
#[derive(Clone, Debug)]
pub(in crate::session) struct Waiting {
    pub id: PromptId,
    pub content: Vec<Block>,
    pub details: Option<RawJson>,
    /// What hooks added, with their keys: messages behind its own.
    pub notes: Vec<(Text, Text)>,
    pub kind: Kind,
    pub origin: Origin,
    /// Something was said of it: its end is owed. One that the session makes itself may begin a turn in silence.
    pub announced: bool,
    /// Order of arrival over all queues.
    pub arrival: u64,
    /// It was promoted: without a turn to steer it begins one.
    promoted: bool,
    /// Its message, once it was made (a gating write needs it before it is applied).
    pub message: Option<Arc<Message>>,
    bytes: usize,
}

/// What a waiting prompt is, which decides what becomes of it when the turn ends first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Kind {
    /// An input to the model that wants an answer.
    Prompt,
    /// Something the model should know; never causes a step.
    Context,
    /// The end of a job: a steer of the session's own.
    Job,
}

impl Kind {
    /// Whether it keeps a turn from finishing.
    pub fn steers(self) -> bool {
        match self {
            Kind::Prompt | Kind::Job => true,
            Kind::Context => false,
        }
    }
}

impl Waiting {
    pub fn new(submitted: Submitted, arrival: u64) -> Self {
        let Submitted { prompt, notes } = submitted;
        let noted: usize = notes.iter().map(|(_, note)| note.len()).sum();
        let bytes = prompt.bytes() + noted;
        let kind = match prompt.deliver {
            crate::vocab::Deliver::Context => Kind::Context,
            crate::vocab::Deliver::IfIdle
            | crate::vocab::Deliver::Queue(_)
            | crate::vocab::Deliver::Steer {
                idle: IdleSteer::Start | IdleSteer::Drop | IdleSteer::DropUnlessQueued,
            }
            | crate::vocab::Deliver::FollowUp
            | crate::vocab::Deliver::Preempt => Kind::Prompt,
        };
        Waiting {
            id: prompt.id,
            content: prompt.content,
            details: prompt.details,
            notes,
            kind,
            origin: Origin::Host,
            announced: true,
            arrival,
            promoted: false,
            message: None,
            bytes,
        }
    }
}

impl Waiting {
    /// A prompt that the session makes itself, of which nothing was said yet.
    pub fn own(id: PromptId, kind: Kind, origin: Origin, text: &str, arrival: u64) -> Self {
        Waiting {
            id,
            content: Vec::from([Block::Text(text.into())]),
            details: None,
            notes: Vec::new(),
            kind,
            origin,
            announced: false,
            arrival,
            promoted: false,
            message: None,
            bytes: text.len(),
        }
    }
}

/// The steer queue and the pending lanes.
#[derive(Debug, Default)]
pub(in crate::session) struct Prompts {
    steer: VecDeque<Waiting>,
    /// Preempting prompts, the oldest first: before every lane.
    front: VecDeque<Waiting>,
    follow_up: VecDeque<Waiting>,
    next: VecDeque<Waiting>,
    later: VecDeque<Waiting>,
    bytes: usize,
}

impl Prompts {
    /// Queues at the end of a lane.
    pub fn push(&mut self, lane: Lane, prompt: Waiting) {
        self.bytes += prompt.bytes;
        match lane {
            Lane::Steer => self.steer.push_back(prompt),
            Lane::FollowUp => self.follow_up.push_back(prompt),
            Lane::Next => self.next.push_back(prompt),
            Lane::Later => self.later.push_back(prompt),
        }
    }

    /// Queues a prompt of a pending lane at the end of the steers.
    pub fn promote(&mut self, mut prompt: Waiting) {
        prompt.promoted = true;
        self.push(Lane::Steer, prompt);
    }

    /// Whether a promoted prompt waits among the steers.
    pub fn promoted(&self) -> bool {
        self.steer.iter().any(|prompt| prompt.promoted)
    }

    /// The first promoted prompt among the steers.
    pub fn pop_promoted(&mut self) -> Option<Waiting> {
        let at = self.steer.iter().position(|prompt| prompt.promoted)?;
        let taken = self.steer.remove(at);
        self.forget(taken)
    }

    /// The first prompt of a job among the steers.
    pub fn pop_job(&mut self) -> Option<Waiting> {
        let at = self.steer.iter().position(|p| p.kind == Kind::Job)?;
        let taken = self.steer.remove(at);
        self.forget(taken)
    }

    /// How many prompts of jobs wait among the steers.
    pub fn jobs(&self) -> usize {
        self.steer.iter().filter(|p| p.kind == Kind::Job).count()
    }

    /// The prompts of which nothing was said yet; from now on something was.
    pub fn announce(&mut self) -> Vec<PromptId> {
        let unsaid = self.steer.iter_mut().filter(|prompt| !prompt.announced);
        unsaid
            .map(|prompt| {
                prompt.announced = true;
                prompt.id
            })
            .collect()
    }

    /// Queues before every lane, behind other preempting prompts.
    pub fn push_preempting(&mut self, prompt: Waiting) {
        self.bytes += prompt.bytes;
        self.front.push_back(prompt);
    }

    /// Puts kept steers before the other follow-ups, in their order.
    pub fn keep_steers(&mut self, kept: Vec<Waiting>) {
        for prompt in kept.into_iter().rev() {
            self.bytes += prompt.bytes;
            self.follow_up.push_front(prompt);
        }
    }

    fn lanes_mut(&mut self) -> [&mut VecDeque<Waiting>; 4] {
        [
            &mut self.front,
            &mut self.follow_up,
            &mut self.next,
            &mut self.later,
        ]
    }

    fn lanes(&self) -> [&VecDeque<Waiting>; 4] {
        [&self.front, &self.follow_up, &self.next, &self.later]
    }

    /// The prompt whose turn it is, out of the pending lanes.
    pub fn pop_pending(&mut self) -> Option<Waiting> {
        let taken = self.lanes_mut().into_iter().find_map(VecDeque::pop_front);
        self.forget(taken)
    }

    /// The next follow-up.
    pub fn pop_follow_up(&mut self) -> Option<Waiting> {
        let taken = self.follow_up.pop_front();
        self.forget(taken)
    }

    /// The pending prompt that has waited longest.
    pub fn pop_oldest(&mut self) -> Option<Waiting> {
        let oldest = self
            .lanes()
            .into_iter()
            .flatten()
            .min_by_key(|p| p.arrival)
            .map(|p| p.id)?;
        self.take_pending(oldest)
    }

    /// Takes a pending prompt by its id.
    pub fn take_pending(&mut self, id: PromptId) -> Option<Waiting> {
        let taken = self.lanes_mut().into_iter().find_map(|lane| {
            let at = lane.iter().position(|p| p.id == id)?;
            lane.remove(at)
        });
        self.forget(taken)
    }

    /// Takes a prompt out of any queue by its id.
    pub fn take(&mut self, id: PromptId) -> Option<Waiting> {
        if let Some(at) = self.steer.iter().position(|p| p.id == id) {
            let taken = self.steer.remove(at);
            return self.forget(taken);
        }
        self.take_pending(id)
    }

    /// The first entry of the steer queue.
    pub fn pop_steer(&mut self) -> Option<Waiting> {
        let taken = self.steer.pop_front();
        self.forget(taken)
    }

    /// The entries of the steer queue, in order of arrival.
    pub fn steers(&self) -> impl Iterator<Item = &Waiting> {
        self.steer.iter()
    }

    /// Whether a steer waits: it keeps a turn from finishing (a Context prompt doesn't).
    pub fn steer_waits(&self) -> bool {
        self.steer.iter().any(|p| p.kind.steers())
    }

    /// Whether a follow-up waits.
    pub fn has_follow_up(&self) -> bool {
        !self.follow_up.is_empty()
    }

    /// How many prompts are pending, held ones too.
    pub fn pending(&self) -> usize {
        self.lanes().into_iter().map(VecDeque::len).sum()
    }

    /// How many prompts are pending that arrived after a point.
    pub fn pending_after(&self, arrival: u64) -> usize {
        let all = self.lanes().into_iter().flatten();
        all.filter(|prompt| prompt.arrival > arrival).count()
    }

    /// Takes the pending prompts that arrived up to a point, in the order of the lanes.
    pub fn take_pending_until(&mut self, arrival: u64) -> Vec<Waiting> {
        let mut taken = Vec::new();
        for lane in self.lanes_mut() {
            let (gone, left) = core::mem::take(lane)
                .into_iter()
                .partition(|p| p.arrival <= arrival);
            *lane = left;
            let gone: VecDeque<Waiting> = gone;
            taken.extend(gone);
        }
        self.bytes -= taken.iter().map(|prompt| prompt.bytes).sum::<usize>();
        taken
    }

    /// Takes the whole steer queue.
    pub fn take_steers(&mut self) -> VecDeque<Waiting> {
        let taken = core::mem::take(&mut self.steer);
        self.bytes -= taken.iter().map(|prompt| prompt.bytes).sum::<usize>();
        taken
    }

    /// How many prompts wait in all queues.
    pub fn len(&self) -> usize {
        self.pending() + self.steer.len()
    }

    /// Bytes of all that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Ids of all that wait: steers, then the pending lanes in order.
    pub fn ids(&self) -> Vec<PromptId> {
        self.steer
            .iter()
            .chain(self.lanes().into_iter().flatten())
            .map(|p| p.id)
            .collect()
    }

    fn forget(&mut self, taken: Option<Waiting>) -> Option<Waiting> {
        if let Some(prompt) = &taken {
            self.bytes -= prompt.bytes;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::vocab::Deliver;

    fn waiting(id: u64) -> Waiting {
        let prompt = Prompt {
            id: PromptId(id),
            tag: None,
            content: vec![Block::Text("12345678".into())],
            deliver: Deliver::IfIdle,
            literal: false,
            details: None,
        };
        Waiting::new(Submitted::new(prompt), id)
    }

    /// One prompt in every queue, two of them in the steer queue.
    fn filled() -> Prompts {
        let mut prompts = Prompts::default();
        prompts.push(Lane::Steer, waiting(1));
        prompts.promote(waiting(2));
        prompts.push_preempting(waiting(3));
        prompts.push(Lane::FollowUp, waiting(4));
        prompts.push(Lane::Next, waiting(5));
        prompts.push(Lane::Later, waiting(6));
        prompts
    }

    /// What a way of taking prompts takes; what is left is counted to the byte.
    fn taken<T: IntoIterator<Item = Waiting>>(take: impl Fn(&mut Prompts) -> T) -> Vec<u64> {
        let mut prompts = filled();
        let each = waiting(1).bytes;
        assert_eq!(prompts.bytes(), 6 * each);
        let taken: Vec<u64> = take(&mut prompts).into_iter().map(|p| p.id.0).collect();
        assert_eq!(prompts.len(), 6 - taken.len());
        assert_eq!(prompts.bytes(), prompts.len() * each);
        taken
    }

    #[test]
    fn s_60_the_bytes_of_what_waits_are_known_however_it_is_taken() {
        assert_eq!(taken(|p| p.pop_promoted()), [2]);
        assert_eq!(taken(|p| p.pop_pending()), [3]);
        assert_eq!(taken(|p| p.pop_follow_up()), [4]);
        assert_eq!(taken(|p| p.pop_oldest()), [3]);
        assert_eq!(taken(|p| p.take_pending(PromptId(5))), [5]);
        assert_eq!(taken(|p| p.take_pending(PromptId(1))), [0; 0]);
        assert_eq!(taken(|p| p.take(PromptId(1))), [1]);
        assert_eq!(taken(|p| p.take(PromptId(6))), [6]);
        assert_eq!(taken(|p| p.pop_steer()), [1]);
        assert_eq!(taken(|p| p.take_pending_until(4)), [3, 4]);
        assert_eq!(taken(|p| p.take_steers()), [1, 2]);
    }

    #[test]
    fn s_60_kept_steers_count_again_and_stand_before_the_follow_ups() {
        let mut prompts = filled();
        let bytes = prompts.bytes();
        let kept: Vec<Waiting> = prompts.take_steers().into();
        prompts.keep_steers(kept);
        assert_eq!(prompts.bytes(), bytes);
        let order: Vec<u64> = prompts.ids().iter().map(|id| id.0).collect();
        assert_eq!(order, [3, 1, 2, 4, 5, 6]);
        assert_eq!(prompts.pending_after(3), 3);
    }

    #[test]
    fn a_promoted_prompt_is_found_among_the_steers() {
        let mut prompts = filled();
        assert!(prompts.promoted());
        prompts.pop_promoted();
        assert!(!prompts.promoted());
        assert!(prompts.steer_waits());
    }
}
