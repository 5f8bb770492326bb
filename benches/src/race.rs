//! The stopwatch. Ours and the usual way run in turn, round by round, so that
//! what else the machine does hits both; the best round of each counts, which
//! is the one that was disturbed least.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// The rows that were asked for, and whether they reached their aims.
#[derive(Debug)]
pub struct Race {
    words: Vec<String>,
    check: bool,
    missed: Vec<String>,
    rounds: usize,
    alone: bool,
}

/// What a row is about.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Its name.
    pub name: &'a str,
    /// What the usual way is.
    pub usual: &'a str,
    /// Bytes that one round reads or writes.
    pub bytes: usize,
    /// Lines or events of one round.
    pub items: usize,
    /// How many times faster than the usual way we mean to be.
    pub aim: Option<f64>,
}

impl Race {
    /// Reads the command line: words choose rows, `--check` makes a missed aim
    /// a failure, `--quick` takes few rounds, `--ours` runs our way alone, for
    /// a profiler.
    pub fn from_arguments() -> Self {
        let (flags, words): (Vec<String>, Vec<String>) = std::env::args()
            .skip(1)
            .partition(|argument| argument.starts_with("--"));
        let has = |flag: &str| flags.iter().any(|found| found == flag);
        println!(
            "{:<26} {:>9} {:>9} {:>9} {:>9} {:>7} {:>6}  usual way",
            "row", "ns/item", "usual", "MB/s", "usual", "ratio", "aim"
        );
        Self {
            words,
            check: has("--check"),
            missed: vec![],
            rounds: if has("--quick") { 7 } else { 60 },
            alone: has("--ours"),
        }
    }

    /// Whether a row was asked for.
    pub fn wants(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word.as_str()))
    }

    /// Runs both ways and prints their row. Each gives a number that depends
    /// on all its work; the two needn't be equal.
    pub fn run(
        &mut self,
        row: Row<'_>,
        mut ours: impl FnMut() -> u64,
        mut usual: impl FnMut() -> u64,
    ) {
        if !self.wants(row.name) {
            return;
        }
        // Warm up, and see how often a round must repeat to be long enough.
        let once = time(1, &mut ours).max(Duration::from_nanos(1));
        time(1, &mut usual);
        let repeat = usize::try_from(Duration::from_millis(3).as_nanos() / once.as_nanos())
            .unwrap_or(1)
            .max(1);
        let (mut a, mut b) = (vec![], vec![]);
        for _ in 0..self.rounds {
            a.push(time(repeat, &mut ours).as_secs_f64() / repeat as f64);
            if self.alone {
                b.push(f64::NAN);
                continue;
            }
            let repeat = repeat.div_ceil(3);
            b.push(time(repeat, &mut usual).as_secs_f64() / repeat as f64);
        }
        self.print(row, best(&a), best(&b));
    }

    fn print(&mut self, row: Row<'_>, ours: f64, usual: f64) {
        let nanos = |seconds: f64| seconds * 1e9 / row.items as f64;
        let speed = |seconds: f64| row.bytes as f64 / seconds / 1e6;
        let ratio = usual / ours;
        let aim = row.aim.map_or(String::new(), |aim| format!("{aim:.1}"));
        println!(
            "{:<26} {:>9.1} {:>9.1} {:>9.0} {:>9.0} {:>6.2}x {:>6}  {}",
            row.name,
            nanos(ours),
            nanos(usual),
            speed(ours),
            speed(usual),
            ratio,
            aim,
            row.usual
        );
        if row.aim.is_some_and(|aim| ratio < aim) {
            self.missed.push(format!("{}: {ratio:.2}x", row.name));
        }
    }

    /// Says what missed its aim. `false` if something did and it matters.
    pub fn finish(self) -> bool {
        for missed in &self.missed {
            println!("missed its aim: {missed}");
        }
        !self.check || self.missed.is_empty()
    }
}

fn time(repeat: usize, work: &mut impl FnMut() -> u64) -> Duration {
    let start = Instant::now();
    for _ in 0..repeat {
        black_box(work());
    }
    start.elapsed()
}

fn best(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}
