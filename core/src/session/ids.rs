//! Ids are counters, from 1 (S-03, L5): nothing has to be remembered to know whether one was issued.

use crate::vocab::PromptId;

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
}

/// A history that holds higher numbers was written by nobody who counted; there must be room above them.
const MOST: u64 = 1 << 60;

fn next(id: &mut u64) -> u64 {
    *id += 1;
    *id
}

impl Ids {
    /// Counts on from the higher of what was given out and what a history holds.
    pub fn go_on_after(&mut self, message: u64, call: u64) {
        self.message = self.message.max(message.min(MOST));
        self.call = self.call.max(call.min(MOST));
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
        ask != 0 && ask <= self.ask
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
        let mut ids = Ids::default();
        ids.go_on_after(7, 9);
        ids.go_on_after(3, 2);
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
