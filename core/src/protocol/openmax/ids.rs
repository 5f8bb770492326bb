//! Ids on the wire: calls keep the provider's id while it is unique in the session, approvals get ids of their own.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::vocab::{AskId, CallId};

/// Provider ids that are remembered as used in this session. After that many, calls are named by number only, so that
/// uniqueness never needs more memory.
const MOST_NAMES: usize = 65_536;
/// Ended calls that a late note may still name.
const MOST_ENDED: usize = 256;

/// The wire ids of calls.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Open calls and the last ended ones.
    known: BTreeMap<CallId, Known>,
    ended: usize,
    /// Hashes of all ids that went out. A false hit costs the provider's id, nothing else.
    used: BTreeSet<u64>,
}

#[derive(Debug)]
struct Known {
    wire: String,
    open: bool,
}

impl Calls {
    /// Names a call that begins. `None` if it has begun before.
    pub(super) fn begin(&mut self, call: CallId, provider_id: Option<&str>) -> Option<&str> {
        if self.known.contains_key(&call) {
            return None;
        }
        let wire = match provider_id {
            Some(id)
                if !id.is_empty() && self.used.len() < MOST_NAMES && self.used.insert(hash(id)) =>
            {
                String::from(id)
            }
            Some(_) | None => self.fresh(call),
        };
        Some(
            &self
                .known
                .entry(call)
                .or_insert(Known { wire, open: true })
                .wire,
        )
    }

    /// The id of a call that is open, or ended a short while ago.
    pub(super) fn wire(&self, call: CallId) -> Option<&str> {
        self.known.get(&call).map(|known| known.wire.as_str())
    }

    /// Ends a call and names it; `None` if it isn't open.
    pub(super) fn end(&mut self, call: CallId) -> Option<String> {
        let known = self.known.get_mut(&call).filter(|known| known.open)?;
        known.open = false;
        let wire = known.wire.clone();
        self.ended += 1;
        if self.ended > MOST_ENDED
            && let Some(oldest) = self
                .known
                .iter()
                .find(|(_, known)| !known.open)
                .map(|(call, _)| *call)
        {
            self.known.remove(&oldest);
            self.ended -= 1;
        }
        Some(wire)
    }

    /// Whether a call of this id has begun and hasn't ended.
    #[cfg(test)]
    pub(super) fn is_open(&self, call: CallId) -> bool {
        self.known.get(&call).is_some_and(|known| known.open)
    }

    /// A numbered id that no provider has used so far. Call ids are unique, so two such ids never meet.
    fn fresh(&mut self, call: CallId) -> String {
        let mut wire = format!("call-{}", call.0);
        while self.used.contains(&hash(&wire)) {
            wire.push('x');
        }
        if self.used.len() < MOST_NAMES {
            self.used.insert(hash(&wire));
        }
        wire
    }
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// One question whose answer is open.
#[derive(Debug)]
pub(super) struct Approval {
    pub(super) ask: AskId,
    pub(super) wire: String,
    /// The host has answered; the agent hasn't closed it yet.
    pub(super) answered: bool,
}

/// The approvals that the host was asked for and that aren't closed.
///
/// A closed one needs no record: an id that isn't open is refused with one text, whether it was settled or never
/// issued.
#[derive(Debug)]
pub(super) struct Approvals {
    seed: [u8; 32],
    issued: u64,
    /// In order of creation.
    open: Vec<Approval>,
}

impl Approvals {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Approvals {
            seed,
            issued: 0,
            open: Vec::new(),
        }
    }

    /// Issues an id for a question.
    pub(super) fn open(&mut self, ask: AskId) -> &str {
        self.issued += 1;
        let wire = uuid(&self.seed, self.issued);
        self.open.push(Approval {
            ask,
            wire,
            answered: false,
        });
        self.open
            .last()
            .map_or("", |approval| approval.wire.as_str())
    }

    /// Marks an open approval as answered and names its question. `None`: it isn't open, or was answered.
    pub(super) fn answer(&mut self, wire: &str) -> Option<AskId> {
        let approval = self
            .open
            .iter_mut()
            .find(|approval| approval.wire == wire && !approval.answered)?;
        approval.answered = true;
        Some(approval.ask)
    }

    /// The questions that the host hasn't answered, oldest first.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = AskId> {
        let open = self.open.iter().filter(|approval| !approval.answered);
        open.map(|approval| approval.ask)
    }

    /// All open questions, oldest first.
    pub(super) fn open_asks(&self) -> Vec<AskId> {
        self.open.iter().map(|approval| approval.ask).collect()
    }

    /// Takes a closed question out and gives its id.
    pub(super) fn close(&mut self, ask: AskId) -> Option<String> {
        let index = self.open.iter().position(|approval| approval.ask == ask)?;
        Some(self.open.remove(index).wire)
    }
}

/// An id in the form of a lower-case UUID, version 4, made of the seed and a counter.
///
/// It is deterministic, so it is unique as far as the seed is; nobody's safety rests on its being hard to guess.
fn uuid(seed: &[u8; 32], number: u64) -> String {
    let mut words = [0u64; 4];
    for (word, bytes) in words.iter_mut().zip(seed.chunks_exact(8)) {
        *word = bytes
            .iter()
            .fold(0, |word, byte| (word << 8) | u64::from(*byte));
    }
    let [a, b, c, d] = words;
    let high = mix(mix(number ^ a).wrapping_add(b));
    let low = mix(mix(high ^ c).wrapping_add(d ^ number));
    let high = (high & !0xf000) | 0x4000;
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

/// The finisher of SplitMix64: each input bit reaches every output bit.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_keeps_its_providers_id_while_it_is_unique() {
        let mut calls = Calls::default();
        assert_eq!(calls.begin(CallId(1), Some("c1")), Some("c1"));
        assert_eq!(calls.begin(CallId(2), Some("c1")), Some("call-2"));
        assert_eq!(calls.begin(CallId(3), None), Some("call-3"));
        assert_eq!(calls.begin(CallId(4), Some("")), Some("call-4"));
        assert_eq!(calls.begin(CallId(5), Some("call-6")), Some("call-6"));
        assert_eq!(calls.begin(CallId(6), None), Some("call-6x"));
        assert_eq!(calls.begin(CallId(1), Some("again")), None);
        assert!(calls.is_open(CallId(1)));
        assert_eq!(calls.end(CallId(1)).as_deref(), Some("c1"));
        assert_eq!(calls.end(CallId(1)), None);
        assert_eq!(calls.wire(CallId(1)), Some("c1"));
        assert_eq!(
            calls.begin(CallId(7), Some("c1")),
            Some("call-7"),
            "used in this session, though ended"
        );
    }

    #[test]
    fn memory_for_calls_is_bounded() {
        let mut calls = Calls::default();
        for number in 0..(MOST_NAMES as u64 + 2_000) {
            let id = format!("p{number}");
            assert!(calls.begin(CallId(number), Some(&id)).is_some());
            assert!(calls.end(CallId(number)).is_some());
        }
        assert!(calls.known.len() <= MOST_ENDED + 1);
        assert_eq!(calls.used.len(), MOST_NAMES);
        let last = CallId(MOST_NAMES as u64 + 1_999);
        assert_eq!(calls.wire(last), Some(format!("call-{}", last.0).as_str()));
    }

    #[test]
    fn l5_approval_ids_are_version_4_deterministic_and_distinct() {
        let first = uuid(&[7; 32], 1);
        assert_eq!(first, uuid(&[7; 32], 1));
        assert_ne!(first, uuid(&[8; 32], 1));
        let mut seen = BTreeSet::new();
        for number in 0..1_000 {
            let id = uuid(&[7; 32], number);
            let parts: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12]);
            assert_eq!(id.as_bytes().get(14), Some(&b'4'));
            assert!(matches!(
                id.as_bytes().get(19),
                Some(b'8' | b'9' | b'a' | b'b')
            ));
            assert!(
                id.bytes()
                    .all(|byte| byte == b'-' || byte.is_ascii_digit() || byte.is_ascii_lowercase())
            );
            assert!(seen.insert(id));
        }
    }

    #[test]
    fn om_11_an_approval_is_answered_once() {
        let mut approvals = Approvals::new([1; 32]);
        let one = String::from(approvals.open(AskId(5)));
        let two = String::from(approvals.open(AskId(6)));
        assert_eq!(approvals.answer("nothing"), None);
        assert_eq!(approvals.answer(&one), Some(AskId(5)));
        assert_eq!(approvals.answer(&one), None);
        assert_eq!(approvals.unanswered().collect::<Vec<_>>(), [AskId(6)]);
        assert_eq!(approvals.close(AskId(5)), Some(one));
        assert_eq!(approvals.close(AskId(5)), None);
        assert_eq!(approvals.close(AskId(6)), Some(two));
    }
}
