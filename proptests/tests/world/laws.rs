//! L1 – L10 of every machine, each on what it was told in a scenario that was played, and of the decoders on streams.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use proptest::{collection::vec, prelude::*};
use turnwire::protocol::{
    agentx::Agentx, omp::Omp, openmax::Openmax, openseek::Openseek, splice::Splice,
};
use turnwire::vocab::{Due, Misuse, Now};
use turnwire_proptests::{
    config,
    laws::{
        Back, Machine, Work, check, check_decoders, check_session, law_l1, law_l2, law_l3, law_l4,
        law_l5, law_l6, law_l7, law_l7_work, law_l8, law_l9, law_l10, law_l10_line,
    },
    scenario::bytes,
    world::START,
};

use super::work::allocated;

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn l1_to_l9_of_a_session_alone(data in bytes(40)) {
        prop_assert_eq!(check_session(&data), Ok(()));
    }

    #[test]
    fn l1_to_l10_of_session_server_client_and_observer_of_openmax(data in bytes(40)) {
        prop_assert_eq!(check::<Openmax>(&data), Ok(()));
    }

    #[test]
    fn l1_to_l10_of_session_server_client_and_observer_of_agentx(data in bytes(40)) {
        prop_assert_eq!(check::<Agentx>(&data), Ok(()));
    }

    #[test]
    fn l1_to_l10_of_session_server_client_and_observer_of_omp(data in bytes(40)) {
        prop_assert_eq!(check::<Omp>(&data), Ok(()));
    }

    #[test]
    fn l1_to_l10_of_session_server_client_and_observer_of_openseek(data in bytes(40)) {
        prop_assert_eq!(check::<Openseek>(&data), Ok(()));
    }

    #[test]
    fn l1_to_l10_of_session_server_client_and_observer_of_splice(data in bytes(40)) {
        prop_assert_eq!(check::<Splice>(&data), Ok(()));
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn l1_to_l9_of_lines_events_and_replies(data in vec(any::<u8>(), 0..60)) {
        prop_assert_eq!(check_decoders(&data), Ok(()));
    }
}

/// What is wrong with a [`Toy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// Lines end where a chunk does (L1).
    Chunks,
    /// The newest output comes first (L2).
    Stack,
    /// Queued output isn't announced (L3).
    Silent,
    /// A deadline that stays (L4).
    Spins,
    /// Time goes back (L6).
    Back,
    /// One byte too many gives no end of outputs (L7).
    Floods,
    /// A number is taken twice (L8).
    Twice,
    /// Some input is an error (L9).
    Picky,
    /// Each line copies all lines before it (L7).
    Copies,
}

/// A small machine of lines that are numbers: it gives each number once, with its time, and wakes a second later.
struct Toy {
    wrong: Wrong,
    salt: u64,
    line: Vec<u8>,
    seen: Vec<u64>,
    out: Vec<(u64, u64)>,
    now: u64,
    due: Option<u64>,
}

fn toy(wrong: Wrong) -> impl Fn() -> Toy {
    move || Toy {
        wrong,
        salt: 0,
        line: vec![],
        seen: vec![],
        out: vec![],
        now: 0,
        due: None,
    }
}

impl Toy {
    fn number(&mut self) {
        let text = String::from_utf8(std::mem::take(&mut self.line)).unwrap();
        let number = text.trim().parse().unwrap_or(0);
        let copies = if self.wrong == Wrong::Floods && number == 7 {
            9
        } else {
            1
        };
        self.seen.push(number);
        if self.wrong == Wrong::Copies {
            self.seen = self.seen.clone();
        }
        self.out
            .extend(vec![(number + self.salt, self.now); copies]);
        self.due = Some(self.now + 1_000_000);
    }
}

impl Machine for Toy {
    type Input = Vec<u8>;
    type Output = (u64, u64);
    const WAITS: bool = true;
    const BACK: Back = Back::Misuse;

    fn handle(&mut self, input: &Vec<u8>, now: Now) -> Result<(), Misuse> {
        if now.mono_us < self.now && self.wrong != Wrong::Back {
            return Err(Misuse::TimeWentBack);
        }
        let number = String::from_utf8_lossy(input).trim().parse().unwrap_or(0);
        if input.ends_with(b"\n") && self.seen.contains(&number) && self.wrong != Wrong::Twice {
            return Err(Misuse::AlreadySettled);
        }
        if self.wrong == Wrong::Picky && input.contains(&b'7') {
            return Err(Misuse::WrongKind);
        }
        self.now = now.mono_us;
        for byte in input {
            self.line.push(*byte);
            if *byte == b'\n' {
                self.number();
            }
        }
        if self.wrong == Wrong::Chunks && !self.line.is_empty() {
            self.number();
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<(u64, u64)> {
        match self.wrong {
            Wrong::Stack => self.out.pop(),
            _ => (!self.out.is_empty()).then(|| self.out.remove(0)),
        }
    }

    fn due(&self) -> Option<Due> {
        let queued = !self.out.is_empty() && self.wrong != Wrong::Silent;
        let at_us = if queued { Some(self.now) } else { self.due }?;
        Some(Due { at_us, why: "toy" })
    }

    fn wake(&mut self, now: Now) -> Result<(), Misuse> {
        if now.mono_us < self.now && self.wrong != Wrong::Back {
            return Err(Misuse::TimeWentBack);
        }
        self.now = now.mono_us;
        if self.wrong != Wrong::Spins {
            self.due = None;
        }
        Ok(())
    }
}

fn toys() -> Vec<(Vec<u8>, Now)> {
    let at = |seconds: u64| Now {
        mono_us: seconds * 1_000_000,
        unix_ms: seconds * 1_000,
    };
    vec![
        (b"12\n".to_vec(), at(2)),
        (b"34\n".to_vec(), at(4)),
        (b"7\n".to_vec(), at(6)),
        (b"89\n".to_vec(), at(10)),
    ]
}

/// Every law holds for a machine that is right, and each finds its fault.
#[test]
fn l1_to_l10_each_law_finds_its_fault() {
    let story = toys();
    let again = |input: &Vec<u8>| vec![(input.clone(), Misuse::AlreadySettled)];
    let all = |wrong| {
        let make = toy(wrong);
        let broken = [
            law_l1(&make, &story, 2),
            law_l2(&make, &story, 2),
            law_l3(&make, &story),
            law_l4(&make, &story),
            law_l5(&make, &story),
            law_l6(&make, &story),
            law_l7(&make, &story, |_| 1),
            law_l8(&make, &story, again),
            law_l9(&make, &story, |toy| Some(toy.line.len()), 8),
        ];
        let laws = broken.into_iter().filter_map(Result::err);
        laws.map(|broken| broken.law).collect::<Vec<_>>()
    };
    assert_eq!(all(Wrong::Nothing), Vec::<&str>::new());
    for (wrong, law) in [
        (Wrong::Chunks, "L1"),
        (Wrong::Stack, "L2"),
        (Wrong::Silent, "L3"),
        (Wrong::Spins, "L4"),
        (Wrong::Back, "L6"),
        (Wrong::Floods, "L7"),
        (Wrong::Twice, "L8"),
        (Wrong::Picky, "L9"),
    ] {
        assert!(all(wrong).contains(&law), "{wrong:?}: {:?}", all(wrong));
    }
}

/// L7: what a step costs may not grow with all that was before it.
#[test]
fn l7_finds_a_machine_that_copies_its_history() {
    let line = |number: u64| (format!("{number}\n").into_bytes(), START);
    let story: Vec<_> = (0..2_000).map(line).collect();
    let most = Work {
        once: 1_024,
        step: 64,
        byte: 8,
    };
    let law = |wrong| law_l7_work(toy(wrong), &story, allocated, most);
    assert_eq!(law(Wrong::Nothing), Ok(()));
    assert_eq!(law(Wrong::Copies).unwrap_err().law, "L7");
}

/// L5: a machine that isn't the same twice.
#[test]
fn l5_finds_a_machine_that_differs() {
    let count = std::cell::Cell::new(0);
    let make = || {
        count.set(count.get() + 1);
        Toy {
            salt: count.get(),
            ..toy(Wrong::Nothing)()
        }
    };
    assert_eq!(law_l5(make, &toys()).unwrap_err().law, "L5");
}

/// L10: an encoder that forgets to escape, and one that loses digits.
#[test]
fn l10_finds_what_does_not_come_back() {
    let naive = |text: &String| format!("\"{text}\"").into_bytes();
    let read = |bytes: &[u8]| serde_json::from_slice::<String>(bytes);
    assert_eq!(law_l10(&"plain".to_owned(), naive, read), Ok(()));
    assert_eq!(
        law_l10(&"\"quoted\"".to_owned(), naive, read)
            .unwrap_err()
            .law,
        "L10"
    );
    let floats = |line: &[u8]| {
        let number: f64 = serde_json::from_slice(line).ok()?;
        Some(number.to_string().into_bytes())
    };
    assert_eq!(law_l10_line(b"0.5", floats), Ok(()));
    assert_eq!(
        law_l10_line(b"9007199254740993", floats).unwrap_err().law,
        "L10"
    );
}
