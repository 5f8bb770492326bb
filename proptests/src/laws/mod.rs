//! The laws L1 – L10 of every machine, as functions that anybody can hold their own machine to.
//!
//! A law takes a way to make a fresh machine and a story: inputs with their times. It gives `Err` with a [`Broken`]
//! when the law doesn't hold, and never panics. Stories come from wherever inputs come from; those of our own machines
//! are taken from [scenarios](crate::scenario) that were played in the [world](crate::world), by [`check`].
//!
//! ```
//! use turnwire::vocab::{Due, Misuse, Now};
//! use turnwire_proptests::laws::{Cut, Machine, law_l1, law_l5};
//!
//! /// Splits at commas, and forgets that a piece may be cut.
//! #[derive(Default)]
//! struct Hasty(Vec<String>);
//!
//! impl Machine for Hasty {
//!     type Input = Vec<u8>;
//!     type Output = String;
//!
//!     fn handle(&mut self, input: &Vec<u8>, _: Now) -> Result<(), Misuse> {
//!         let text = String::from_utf8_lossy(input).into_owned();
//!         self.0.extend(text.split(',').map(str::to_owned));
//!         Ok(())
//!     }
//!
//!     fn poll(&mut self) -> Option<String> {
//!         (!self.0.is_empty()).then(|| self.0.remove(0))
//!     }
//! }
//!
//! let story = [(b"one,two".to_vec(), Now::default())];
//! assert_eq!(law_l5(Hasty::default, &story), Ok(()));
//! let broken = law_l1(Hasty::default, &story, 2).unwrap_err();
//! assert_eq!(broken.law, "L1");
//! ```

mod check;
mod machines;

use std::fmt::{self, Debug};

use turnwire::vocab::{Due, Misuse, Now};

pub(crate) use self::check::{asked_again, settles_once, wished_again};
pub use self::check::{check, check_decoders, check_session, hold, hold_cut};
pub use self::machines::{
    AgentMachine, ClientInput, ClientMachine, ClientSaid, LineMachine, LineSaid, ObserverInput,
    ObserverMachine, ReplyInput, ReplyMachine, ServerInput, ServerMachine, ServerSaid, SseMachine,
};

/// A law that doesn't hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// `L1` … `L10`.
    pub law: &'static str,
    /// How.
    pub why: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.law, self.why)
    }
}

impl std::error::Error for Broken {}

fn broken<T>(law: &'static str, why: String) -> Result<T, Broken> {
    Err(Broken { law, why })
}

/// What becomes of a time that is before an earlier one (L6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Back {
    /// It is [`Misuse::TimeWentBack`], and changes nothing.
    Misuse,
    /// It counts as the earlier one.
    StandsStill,
    /// The machine has no use for time.
    Ignored,
}

/// A machine, as far as the laws need it.
pub trait Machine {
    /// What it is told.
    type Input: Clone + Debug;
    /// What it gives.
    type Output: PartialEq + Debug;
    /// Whether it has deadlines at all; one that has none is drained behind each input.
    const WAITS: bool = false;
    /// What it makes of a time that goes back.
    const BACK: Back = Back::Ignored;

    /// Whether it surely looks at the time of this input; not of bytes that it only keeps.
    fn looks_at_time(input: &Self::Input) -> bool {
        let _ = input;
        true
    }

    /// Takes one input whole.
    ///
    /// # Errors
    /// [`Misuse`], if the caller was wrong.
    fn handle(&mut self, input: &Self::Input, now: Now) -> Result<(), Misuse>;

    /// The next output; `None` if nothing is queued.
    fn poll(&mut self) -> Option<Self::Output>;

    /// When it wants to be woken.
    fn due(&self) -> Option<Due> {
        None
    }

    /// Wakes it.
    ///
    /// # Errors
    /// [`Misuse`], if the caller was wrong.
    fn wake(&mut self, now: Now) -> Result<(), Misuse> {
        let _ = now;
        Ok(())
    }

    /// Puts an output behind the one before it, if the two only show how often somebody polled; else gives it back.
    fn join(last: &mut Self::Output, next: Self::Output) -> Option<Self::Output> {
        let _ = last;
        Some(next)
    }
}

/// An input that may hold bytes, which can come in other pieces.
pub trait Cut: Sized {
    /// The same in pieces of `size` bytes, which isn't 0; `None`: it holds no bytes.
    fn cut(&self, size: usize) -> Option<Vec<Self>>;
}

impl Cut for Vec<u8> {
    fn cut(&self, size: usize) -> Option<Vec<Self>> {
        // No bytes stand for the end of a stream.
        let pieces = self.chunks(size.max(1)).map(<[u8]>::to_vec);
        (!self.is_empty()).then(|| pieces.collect())
    }
}

/// One output is taken behind each input, and the rest at the end.
const ONE: usize = usize::MAX;

/// Everything that comes out of a story, drained after every `every`-th input and at the end.
fn tell<M: Machine>(
    law: &'static str,
    make: impl FnOnce() -> M,
    story: &[(M::Input, Now)],
    every: usize,
) -> Result<Vec<M::Output>, Broken> {
    let mut machine = make();
    let mut said = Vec::new();
    if every == 1 {
        drain(&mut machine, &mut said);
    }
    for (at, (input, now)) in story.iter().enumerate() {
        if let Err(misuse) = machine.handle(input, *now) {
            return broken(law, format!("input {at} is misuse ({misuse}): {input:?}"));
        }
        if every == ONE {
            if let Some(output) = machine.poll() {
                put::<M>(&mut said, output);
            }
        } else if every > 0 && (at + 1) % every == 0 {
            drain(&mut machine, &mut said);
        }
    }
    drain(&mut machine, &mut said);
    Ok(said)
}

fn drain<M: Machine>(machine: &mut M, said: &mut Vec<M::Output>) {
    while let Some(output) = machine.poll() {
        put::<M>(said, output);
    }
}

fn put<M: Machine>(said: &mut Vec<M::Output>, output: M::Output) {
    let rest = match said.last_mut() {
        Some(last) => M::join(last, output),
        None => Some(output),
    };
    said.extend(rest);
}

fn same<T: PartialEq + Debug>(
    law: &'static str,
    what: &str,
    a: &[T],
    b: &[T],
) -> Result<(), Broken> {
    let differs = a.iter().zip(b).position(|(a, b)| a != b);
    let at = differs.unwrap_or(a.len().min(b.len()));
    match (a.get(at), b.get(at)) {
        (None, None) => Ok(()),
        (a, b) => broken(
            law,
            format!("{what}: output {at} is {b:?} instead of {a:?}"),
        ),
    }
}

/// L1, cut: however the same bytes are cut into chunks, the outputs are the same. The inputs that hold bytes come in
/// pieces of `size` bytes, and byte by byte.
///
/// # Errors
/// [`Broken`] with the first output that differs.
pub fn law_l1<M: Machine<Input: Cut>>(
    make: impl Fn() -> M,
    story: &[(M::Input, Now)],
    size: usize,
) -> Result<(), Broken> {
    let whole = tell("L1", &make, story, 1)?;
    for size in [size.max(1), 1] {
        let mut cut = Vec::new();
        for (input, now) in story {
            match input.cut(size) {
                Some(pieces) => cut.extend(pieces.into_iter().map(|piece| (piece, *now))),
                None => cut.push((input.clone(), *now)),
            }
        }
        let pieces = tell("L1", &make, &cut, 1)?;
        same("L1", &format!("cut into pieces of {size}"), &whole, &pieces)?;
    }
    Ok(())
}

/// L2, lazy drain: draining after each input, after every `every`-th, or after all of them, and taking one output after
/// each input gives the same outputs in the same order.
///
/// # Errors
/// [`Broken`] with the first output that differs.
pub fn law_l2<M: Machine>(
    make: impl Fn() -> M,
    story: &[(M::Input, Now)],
    every: usize,
) -> Result<(), Broken> {
    let eager = tell("L2", &make, story, 1)?;
    for (every, how) in [
        (every.max(2), "drained after some inputs"),
        (0, "drained after all inputs"),
        (ONE, "asked for one output after each input"),
    ] {
        let lazy = tell("L2", &make, story, every)?;
        same("L2", how, &eager, &lazy)?;
    }
    Ok(())
}

/// L3, sleeper: a driver that wakes only at the deadline delays nothing. While output is queued, the deadline isn't in
/// the future; who is woken before it has nothing to say, and says the same as ever later. A machine that has no
/// deadlines at all, and gives `false` as [`Machine::WAITS`], is drained by its caller, and the law says nothing of it.
///
/// # Errors
/// [`Broken`] with the output that wasn't announced.
pub fn law_l3<M: Machine>(make: impl Fn() -> M, story: &[(M::Input, Now)]) -> Result<(), Broken> {
    if !M::WAITS {
        return Ok(());
    }
    let mut machine = make();
    for (at, (input, now)) in story.iter().enumerate() {
        if let Err(misuse) = machine.handle(input, *now) {
            return broken("L3", format!("input {at} is misuse ({misuse}): {input:?}"));
        }
        loop {
            let due = machine.due();
            let Some(output) = machine.poll() else {
                break;
            };
            if due.is_none_or(|due| due.at_us > now.mono_us) {
                return broken(
                    "L3",
                    format!(
                        "behind input {at}, at {}, the deadline was {due:?}, and there was {output:?}",
                        now.mono_us
                    ),
                );
            }
        }
    }
    woken_early(make, story)
}

/// The part of L3 about wakes that nobody asked for: halfway to each input, where no deadline is reached.
fn woken_early<M: Machine>(make: impl Fn() -> M, story: &[(M::Input, Now)]) -> Result<(), Broken> {
    let expected = tell("L3", &make, story, 1)?;
    let mut machine = make();
    let mut said = Vec::new();
    drain(&mut machine, &mut said);
    let mut last: Option<Now> = None;
    for (at, (input, now)) in story.iter().enumerate() {
        if let Some(last) = last {
            let middle = Now {
                mono_us: last.mono_us + now.mono_us.saturating_sub(last.mono_us) / 2,
                ..last
            };
            let due = machine.due();
            if due.is_none_or(|due| due.at_us > middle.mono_us) {
                let woken = machine.wake(middle);
                let output = machine.poll();
                if woken.is_err() || output.is_some() || machine.due() != due {
                    return broken(
                        "L3",
                        format!(
                            "woken at {middle:?} before input {at}, due {due:?}: {woken:?}, {output:?}"
                        ),
                    );
                }
            }
        }
        if let Err(misuse) = machine.handle(input, *now) {
            return broken("L3", format!("input {at} is misuse ({misuse}): {input:?}"));
        }
        drain(&mut machine, &mut said);
        last = Some(*now);
    }
    same("L3", "woken before its deadlines", &expected, &said)
}

/// L4, no spin: after a wake at the deadline and a drain, the next deadline is later, or there was output. Behind every
/// input all deadlines up to the next one are kept.
///
/// # Errors
/// [`Broken`] with the deadline that stays.
pub fn law_l4<M: Machine>(make: impl Fn() -> M, story: &[(M::Input, Now)]) -> Result<(), Broken> {
    let mut machine = make();
    let mut said = Vec::new();
    let mut early = false;
    for (at, (input, now)) in story.iter().enumerate() {
        if let Err(misuse) = machine.handle(input, *now) {
            // Who was told by a late driver has seen fewer deadlines, and its story may not go on from here.
            if early {
                return Ok(());
            }
            return broken("L4", format!("input {at} is misuse ({misuse}): {input:?}"));
        }
        drain(&mut machine, &mut said);
        // What is due at once, and what is due before the next input.
        let until = story
            .get(at + 1)
            .map_or(now.mono_us, |(_, next)| next.mono_us);
        for round in 0.. {
            let Some(due) = machine
                .due()
                .filter(|due| due.at_us < until || due.at_us <= now.mono_us)
            else {
                break;
            };
            let woken = Now {
                mono_us: due.at_us.max(now.mono_us),
                ..*now
            };
            early = true;
            if let Err(misuse) = machine.wake(woken) {
                return broken(
                    "L4",
                    format!("a wake at its deadline {due:?} is misuse ({misuse})"),
                );
            }
            let mut fresh = Vec::new();
            drain(&mut machine, &mut fresh);
            let again = machine.due();
            let later = again.is_none_or(|again| again.at_us > woken.mono_us);
            if !later && fresh.is_empty() || round > 10_000 {
                return broken(
                    "L4",
                    format!("woken for {due:?} behind input {at}, and due at {again:?}"),
                );
            }
        }
    }
    Ok(())
}

/// L5, replay: the same inputs and times give the same outputs.
///
/// # Errors
/// [`Broken`] with the first output that differs.
pub fn law_l5<M: Machine>(make: impl Fn() -> M, story: &[(M::Input, Now)]) -> Result<(), Broken> {
    let once = tell("L5", &make, story, 1)?;
    let again = tell("L5", &make, story, 1)?;
    same("L5", "told again", &once, &again)
}

/// L6, monotone: time may repeat; time that goes back does what [`Machine::BACK`] says, and changes nothing else.
///
/// # Errors
/// [`Broken`] with what it did.
pub fn law_l6<M: Machine>(make: impl Fn() -> M, story: &[(M::Input, Now)]) -> Result<(), Broken> {
    let expected = match M::BACK {
        Back::Misuse => tell("L6", &make, story, 1)?,
        Back::StandsStill | Back::Ignored => {
            let mut last = 0;
            let mut still = story.to_vec();
            for (at, (input, now)) in still.iter_mut().enumerate() {
                if at % 2 == 1 && last > 0 {
                    now.mono_us = last;
                } else if M::looks_at_time(input) {
                    last = last.max(now.mono_us);
                }
            }
            tell("L6", &make, &still, 1)?
        }
    };
    let mut machine = make();
    let mut said = Vec::new();
    drain(&mut machine, &mut said);
    let mut last = 0_u64;
    for (at, (input, now)) in story.iter().enumerate() {
        let back = Now {
            // A moment, or long.
            mono_us: [last.saturating_sub(1), last / 2][at % 2],
            ..*now
        };
        let took = match M::BACK {
            Back::Misuse if last > 0 => {
                let due = machine.due();
                for wrong in [machine.handle(input, back), machine.wake(back)] {
                    if wrong != Err(Misuse::TimeWentBack) {
                        return broken("L6", format!("input {at} at {back:?} gave {wrong:?}"));
                    }
                }
                if machine.due() != due {
                    return broken("L6", format!("misuse changed the deadline {due:?}"));
                }
                machine.handle(input, *now)
            }
            Back::Misuse => machine.handle(input, *now),
            Back::StandsStill | Back::Ignored if at % 2 == 1 && last > 0 => {
                machine.handle(input, back)
            }
            Back::StandsStill | Back::Ignored => machine.handle(input, *now),
        };
        if let Err(misuse) = took {
            return broken("L6", format!("input {at} is misuse ({misuse}): {input:?}"));
        }
        drain(&mut machine, &mut said);
        let went_back = M::BACK != Back::Misuse && at % 2 == 1 && last > 0;
        if !went_back && M::looks_at_time(input) {
            last = last.max(now.mono_us);
        }
    }
    same("L6", "with times that went back", &expected, &said)
}

/// L7, bounded step: one input gives at most `most` outputs, and "nothing queued" stays so until the next input. What
/// the step *costs* is bounded by [`law_l7_work`].
///
/// # Errors
/// [`Broken`] with the input that gives more.
pub fn law_l7<M: Machine>(
    make: impl Fn() -> M,
    story: &[(M::Input, Now)],
    most: impl Fn(&M::Input) -> usize,
) -> Result<(), Broken> {
    let mut machine = make();
    drain(&mut machine, &mut Vec::new());
    for (at, (input, now)) in story.iter().enumerate() {
        if let Err(misuse) = machine.handle(input, *now) {
            return broken("L7", format!("input {at} is misuse ({misuse}): {input:?}"));
        }
        let most = most(input);
        let count = std::iter::from_fn(|| machine.poll()).take(most + 1).count();
        if count > most {
            return broken(
                "L7",
                format!("input {at} gave more than {most} outputs: {input:?}"),
            );
        }
        let due = machine.due();
        if let Some(output) = machine.poll() {
            return broken(
                "L7",
                format!("behind input {at} nothing was queued, and then {output:?}"),
            );
        }
        if machine.due() != due {
            return broken("L7", format!("asking changed the deadline {due:?}"));
        }
    }
    Ok(())
}

/// What the work of a story may be at most: so much once, so much for each input, and so much for each byte of what a
/// machine is told and gives, in whatever unit the work is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// To begin with.
    pub once: u64,
    /// For each input.
    pub step: u64,
    /// For each byte that goes in or comes out; the length of a value is that of its `Debug` text.
    pub byte: u64,
}

/// L7, bounded step, by work: up to each input, telling and draining has cost no more than inputs and outputs account
/// for ([`Work`]). `measure` runs a step and says what it cost: bytes that were allocated, or instructions, but never
/// time. Growth that doubles is spread over the story; what is linear in the *history* breaks the law in any story that
/// is long enough.
///
/// # Errors
/// [`Broken`] with the input at which the work was too much.
pub fn law_l7_work<M: Machine>(
    make: impl Fn() -> M,
    story: &[(M::Input, Now)],
    mut measure: impl FnMut(&mut dyn FnMut()) -> u64,
    most: Work,
) -> Result<(), Broken> {
    let mut machine = make();
    drain(&mut machine, &mut Vec::new());
    let (mut work, mut bytes, mut steps) = (0_u64, 0_u64, 0_u64);
    for (at, (input, now)) in story.iter().enumerate() {
        let mut said = Vec::new();
        let mut took = Ok(());
        work += measure(&mut || {
            took = machine.handle(input, *now);
            while let Some(output) = machine.poll() {
                said.push(output);
            }
        });
        if let Err(misuse) = took {
            return broken("L7", format!("input {at} is misuse ({misuse}): {input:?}"));
        }
        let length = format!("{input:?}").len()
            + said
                .iter()
                .map(|one| format!("{one:?}").len())
                .sum::<usize>();
        bytes = bytes.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
        steps += 1;
        let allowed = most
            .once
            .saturating_add(most.step.saturating_mul(steps))
            .saturating_add(most.byte.saturating_mul(bytes));
        if work > allowed {
            return broken(
                "L7",
                format!(
                    "up to input {at} the work is {work}, more than {allowed} for {bytes} bytes: {input:?}"
                ),
            );
        }
    }
    Ok(())
}

/// L8, settle once: what `again` gives behind an input is the misuse that it says, and changes nothing: what settles
/// once more, and what settles something that was never issued.
///
/// # Errors
/// [`Broken`] with what was accepted twice, or the first output that differs.
pub fn law_l8<M: Machine>(
    make: impl Fn() -> M,
    story: &[(M::Input, Now)],
    again: impl Fn(&M::Input) -> Vec<(M::Input, Misuse)>,
) -> Result<(), Broken> {
    let expected = tell("L8", &make, story, 1)?;
    let mut machine = make();
    let mut said = Vec::new();
    drain(&mut machine, &mut said);
    for (at, (input, now)) in story.iter().enumerate() {
        if let Err(misuse) = machine.handle(input, *now) {
            return broken("L8", format!("input {at} is misuse ({misuse}): {input:?}"));
        }
        drain(&mut machine, &mut said);
        for (wrong, misuse) in again(input) {
            let due = machine.due();
            let took = machine.handle(&wrong, *now);
            if took != Err(misuse) {
                return broken(
                    "L8",
                    format!("behind input {at} {wrong:?} gave {took:?} instead of {misuse:?}"),
                );
            }
            if machine.due() != due {
                return broken(
                    "L8",
                    format!("misuse changed the deadline {due:?}: {wrong:?}"),
                );
            }
        }
    }
    same("L8", "with settlements that came twice", &expected, &said)
}

/// L9, total: nothing that a peer, model, tool or disk does is an error, and nothing panics. `held` tells how many
/// bytes a machine holds, if it knows, and `most` how many it may.
///
/// # Errors
/// [`Broken`] with the input that was refused, or after which too much was held.
pub fn law_l9<M: Machine>(
    make: impl Fn() -> M,
    story: &[(M::Input, Now)],
    held: impl Fn(&M) -> Option<usize>,
    most: usize,
) -> Result<(), Broken> {
    let mut machine = make();
    for (at, (input, now)) in story.iter().enumerate() {
        if let Err(misuse) = machine.handle(input, *now) {
            return broken("L9", format!("input {at} is misuse ({misuse}): {input:?}"));
        }
        if let Some(held) = held(&machine).filter(|held| *held > most) {
            return broken(
                "L9",
                format!("{held} bytes are held behind input {at}, more than {most}"),
            );
        }
        while machine.poll().is_some() {}
    }
    Ok(())
}

/// L10, inverse, from values: decoding what was encoded gives the value back.
///
/// # Errors
/// [`Broken`] with both values.
pub fn law_l10<T: PartialEq + Debug, E: Debug>(
    value: &T,
    encode: impl Fn(&T) -> Vec<u8>,
    decode: impl Fn(&[u8]) -> Result<T, E>,
) -> Result<(), Broken> {
    let bytes = encode(value);
    match decode(&bytes) {
        Ok(back) if back == *value => Ok(()),
        other => broken(
            "L10",
            format!(
                "{value:?} is {:?} and comes back as {other:?}",
                String::from_utf8_lossy(&bytes)
            ),
        ),
    }
}

/// L10, inverse, from bytes: encoding what was decoded gives the line back, up to the order of its members, spacing,
/// escapes and the spelling of numbers. `again` decodes and encodes; what it can't decode is no matter of this law.
///
/// # Errors
/// [`Broken`] with both lines.
pub fn law_l10_line(line: &[u8], again: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Result<(), Broken> {
    let Some(back) = again(line) else {
        return Ok(());
    };
    let value = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).ok();
    if value(line).is_some() && value(line) == value(&back) {
        return Ok(());
    }
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    broken(
        "L10",
        format!("{} comes back as {}", text(line), text(&back)),
    )
}
