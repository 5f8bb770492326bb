//! Ids are counters, from 1 (S-03, L5): nothing has to be remembered to know whether one was issued.

use crate::vocab::{PromptId, RunId};

/// How many bits of an id count within the range of a run. Runs are numbered below 2^24, so that the bits above, up to
/// the one that marks what a session made itself, tell the run apart.
pub(super) const RANGE_BITS: u32 = 32;

/// The first number that no run has.
const RUNS: u64 = 1 << 24;

/// The highest id of each kind that was given out.
#[derive(Debug, Default)]
pub(super) struct Ids {
    turn: u64,
    step: u64,
    request: u64,
    message: u64,
    call: u64,
    ask: u64,
    hook: u64,
    write: u64,
    checkpoint: u64,
    arrival: u64,
    own_prompt: u64,
    /// The last nested run, of this session or of another that counts with it.
    run: u64,
    /// Below this no id is ours.
    base: u64,
}

/// A history that holds higher numbers was written by nobody who counted; there must be room above them.
const MOST: u64 = 1 << 31;

fn next(id: &mut u64) -> u64 {
    *id += 1;
    *id
}

impl Ids {
    /// Counts in the range of a run.
    pub fn of(run: RunId) -> Self {
        let base = run.0 << RANGE_BITS;
        Ids {
            turn: base,
            step: base,
            request: base,
            message: base,
            call: base,
            ask: base,
            hook: base,
            write: base,
            checkpoint: base,
            arrival: 0,
            own_prompt: base,
            run: run.0,
            base,
        }
    }

    /// Counts on from the higher of what was given out and what a history holds: messages and calls of other ranges are of
    /// runs that were below it.
    pub fn go_on_after(
        &mut self,
        messages: impl Iterator<Item = u64>,
        calls: impl Iterator<Item = u64>,
    ) {
        let base = self.base;
        let own = |id: &u64| *id >> RANGE_BITS == base >> RANGE_BITS;
        let message = messages.filter(own).max().unwrap_or(0);
        self.message = self.message.max(message.min(base + MOST));
        for id in calls {
            if own(&id) {
                self.call = self.call.max(id.min(base + MOST));
            } else if id >> RANGE_BITS < RUNS {
                self.run = self.run.max(id >> RANGE_BITS);
            }
        }
    }

    /// A nested run; `None`: there were as many as can be told apart.
    pub fn run(&mut self) -> Option<RunId> {
        let run = self.run + 1;
        (run < RUNS).then(|| {
            self.run = run;
            RunId(run)
        })
    }

    /// The run that began last, wherever.
    pub fn last_run(&self) -> u64 {
        self.run
    }

    /// Others have begun runs up to this one.
    pub fn runs_until(&mut self, run: u64) {
        self.run = self.run.max(run);
    }

    /// Whether an id is in the range of a run that began before, and isn't ours.
    pub fn of_earlier_run(&self, id: u64) -> bool {
        let run = id >> RANGE_BITS;
        run != 0 && run != self.base >> RANGE_BITS && run <= self.run
    }

    /// The last question.
    pub fn last_ask(&self) -> u64 {
        self.ask
    }

    pub fn turn(&mut self) -> u64 {
        next(&mut self.turn)
    }

    pub fn step(&mut self) -> u64 {
        next(&mut self.step)
    }

    pub fn request(&mut self) -> u64 {
        next(&mut self.request)
    }

    pub fn message(&mut self) -> u64 {
        next(&mut self.message)
    }

    pub fn call(&mut self) -> u64 {
        next(&mut self.call)
    }

    pub fn ask(&mut self) -> u64 {
        next(&mut self.ask)
    }

    pub fn hook(&mut self) -> u64 {
        next(&mut self.hook)
    }

    pub fn write(&mut self) -> u64 {
        next(&mut self.write)
    }

    pub fn checkpoint(&mut self) -> u64 {
        next(&mut self.checkpoint)
    }

    /// A prompt that the session makes itself.
    pub fn own_prompt(&mut self) -> u64 {
        PromptId::SESSION_MADE | next(&mut self.own_prompt)
    }

    /// The message that was made last.
    pub fn last_message(&self) -> u64 {
        self.message
    }

    /// Order of arrival of prompts.
    pub fn arrival(&mut self) -> u64 {
        next(&mut self.arrival)
    }

    /// The order of arrival of the last prompt.
    pub fn last_arrival(&self) -> u64 {
        self.arrival
    }

    /// Whether a question with this id was ever asked.
    pub fn was_asked(&self, ask: u64) -> bool {
        ask > self.base && ask <= self.ask
    }
}

/// Numbers from the seed: SplitMix64, which is enough to spread retries.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub fn new(seed: &[u8; 32]) -> Self {
        let folded = seed.chunks_exact(8).fold(0, |state: u64, chunk| {
            let word = chunk
                .iter()
                .rev()
                .fold(0, |word, byte| word << 8 | u64::from(*byte));
            state.rotate_left(17) ^ word
        });
        Random(folded)
    }

    /// A number below a bound; 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let wide = u128::from(mixed) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_03_ids_count_from_one_or_on_from_a_history() {
        let mut ids = Ids::of(RunId::MAIN);
        ids.go_on_after([7, 3].into_iter(), [9].into_iter());
        ids.go_on_after([3].into_iter(), [2].into_iter());
        assert_eq!([ids.message(), ids.call()], [8, 10]);
        let others = [
            Ids::turn,
            Ids::step,
            Ids::request,
            Ids::ask,
            Ids::hook,
            Ids::write,
            Ids::checkpoint,
            Ids::arrival,
        ];
        for next in others {
            assert_eq!([next(&mut ids), next(&mut ids)], [1, 2]);
        }
        assert_eq!(ids.last_arrival(), 2);
        let asked = [0, 1, 2, 3].map(|ask| ids.was_asked(ask));
        assert_eq!(asked, [false, true, true, false]);
    }

    #[test]
    fn s_03_a_run_counts_in_a_range_of_its_own() {
        let mut ids = Ids::of(RunId(3));
        ids.go_on_after([9].into_iter(), [9].into_iter());
        let base = 3 << RANGE_BITS;
        assert_eq!(
            [ids.call(), ids.ask(), ids.arrival()],
            [base + 1, base + 1, 1]
        );
        let asked = [1, base, base + 1, base + 2].map(|ask| ids.was_asked(ask));
        assert_eq!(asked, [false, false, true, false]);
        assert_eq!(ids.run(), Some(RunId(4)));
        ids.runs_until(9);
        let earlier = [1, 2, 3, 9, 10].map(|run: u64| ids.of_earlier_run((run << RANGE_BITS) + 7));
        assert_eq!(earlier, [true, true, false, true, false]);
        ids.runs_until(RUNS - 2);
        assert_eq!([ids.run(), ids.run()], [Some(RunId(RUNS - 1)), None]);
        assert_eq!(ids.last_run(), RUNS - 1);
    }

    #[test]
    fn s_03_what_runs_of_an_earlier_process_were_called_names_no_other() {
        let of_run = |run: u64, id: u64| (run << RANGE_BITS) + id;
        let calls = [4, of_run(2, 7), of_run(1, 9)].into_iter();
        let mut ids = Ids::of(RunId::MAIN);
        ids.go_on_after([of_run(5, 1)].into_iter(), calls);
        assert_eq!([ids.message(), ids.call()], [1, 5]);
        assert_eq!(ids.run(), Some(RunId(3)));
    }

    #[test]
    fn l5_a_seed_gives_the_numbers_of_splitmix64() {
        // The published ones for a state of 0; below the highest bound each is one less.
        let known = [
            0xe220_a839_7b1d_cdaf_u64,
            0x6e78_9e6a_a1b9_65f4,
            0x06c4_5d18_8009_454f,
            0xf88b_b8a8_724c_81ec,
        ];
        let mut random = Random::new(&[0; 32]);
        assert_eq!(known.map(|_| random.below(u64::MAX) + 1), known);
        assert_eq!([random.below(0), random.below(1)], [0, 0]);
        // Every byte of a seed counts.
        let first = |at: usize| {
            let mut seed = [0; 32];
            seed[at] = 1;
            Random::new(&seed).below(u64::MAX)
        };
        let all: alloc::collections::BTreeSet<u64> = (0..32).map(first).collect();
        assert_eq!(all.len(), 32);
    }
}
