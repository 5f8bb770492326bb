//! Ids on the wire that more than one protocol makes: calls keep the provider's id while it is unique in the session,
//! questions get ids of their own.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::vocab::CallId;

/// Provider ids that are remembered as used in this session. After that many, calls are named by number only, so that
/// uniqueness never needs more memory.
const MOST_NAMES: usize = 65_536;
/// Ended calls that a late note may still name.
const MOST_ENDED: usize = 256;

/// The wire ids of calls.
#[derive(Debug)]
pub(in crate::protocol) struct Calls {
    /// Open calls and the last ended ones.
    known: BTreeMap<CallId, Known>,
    ended: usize,
    /// How many ended calls are remembered.
    memory: usize,
    /// Hashes of all ids that went out. A false hit costs the provider's id, nothing else.
    used: BTreeSet<u64>,
}

#[derive(Debug)]
struct Known {
    wire: String,
    open: bool,
}

impl Default for Calls {
    fn default() -> Self {
        Calls::remembering(MOST_ENDED)
    }
}

impl Calls {
    /// A book that remembers so many ended calls.
    pub(in crate::protocol) fn remembering(memory: usize) -> Self {
        Calls {
            known: BTreeMap::new(),
            ended: 0,
            memory,
            used: BTreeSet::new(),
        }
    }

    /// Names a call that begins. `None` if it has begun before.
    pub(in crate::protocol) fn begin(
        &mut self,
        call: CallId,
        provider_id: Option<&str>,
    ) -> Option<&str> {
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
    pub(in crate::protocol) fn wire(&self, call: CallId) -> Option<&str> {
        self.known.get(&call).map(|known| known.wire.as_str())
    }

    /// Ends a call and names it; `None` if it isn't open.
    pub(in crate::protocol) fn end(&mut self, call: CallId) -> Option<String> {
        let known = self.known.get_mut(&call).filter(|known| known.open)?;
        known.open = false;
        let wire = known.wire.clone();
        self.ended += 1;
        if self.ended > self.memory
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
    pub(in crate::protocol) fn is_open(&self, call: CallId) -> bool {
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

/// An id in the form of a lower-case UUID, version 4, made of the seed and a counter.
///
/// It is deterministic, so it is unique as far as the seed is; nobody's safety rests on its being hard to guess.
pub(in crate::protocol) fn uuid(seed: &[u8; 32], number: u64) -> String {
    let (high, low) = versioned(seed, number);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

/// Appends the [`uuid`] of that number. Allocates nothing beyond the buffer: the hot path.
pub(in crate::protocol) fn put_uuid(out: &mut Vec<u8>, seed: &[u8; 32], number: u64) {
    let (high, low) = versioned(seed, number);
    for (at, byte) in high
        .to_be_bytes()
        .into_iter()
        .chain(low.to_be_bytes())
        .enumerate()
    {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        for digit in [byte >> 4, byte & 15] {
            out.push(if digit < 10 {
                b'0' + digit
            } else {
                b'a' + digit - 10
            });
        }
    }
}

/// An id of 32 hexadecimal digits, made likewise.
pub(in crate::protocol) fn hex32(seed: &[u8; 32], number: u64) -> String {
    let (high, low) = drawn(seed, number);
    format!("{high:016x}{low:016x}")
}

/// An id of 16 hexadecimal digits, made likewise.
pub(in crate::protocol) fn hex16(seed: &[u8; 32], number: u64) -> String {
    format!("{:016x}", drawn(seed, number).0)
}

/// The bits of a UUID of version 4.
fn versioned(seed: &[u8; 32], number: u64) -> (u64, u64) {
    let (high, low) = drawn(seed, number);
    let high = (high & !0xf000) | 0x4000;
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    (high, low)
}

fn drawn(seed: &[u8; 32], number: u64) -> (u64, u64) {
    let mut words = [0u64; 4];
    for (word, bytes) in words.iter_mut().zip(seed.chunks_exact(8)) {
        *word = bytes
            .iter()
            .fold(0, |word, byte| (word << 8) | u64::from(*byte));
    }
    let [a, b, c, d] = words;
    let high = mix(mix(number ^ a).wrapping_add(b));
    (high, mix(mix(high ^ c).wrapping_add(d ^ number)))
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
            let mut put = Vec::new();
            put_uuid(&mut put, &[7; 32], number);
            assert_eq!(put, id.as_bytes());
            assert!(seen.insert(id));
        }
    }
}
