//! Ids are counters, from 1 (S-03, L5): nothing has to be remembered to know whether one was issued.

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
}

fn next(id: &mut u64) -> u64 {
    *id += 1;
    *id
}

impl Ids {
    /// Counts on from a history that was there before.
    pub fn after(message: u64, call: u64) -> Self {
        Ids {
            message,
            call,
            ..Ids::default()
        }
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
