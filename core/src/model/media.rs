//! Media that an embedder keeps, in the body of a request: where their bytes belong, and how they get there.
//!
//! A body is written at once, where the history is lent; the bytes of media are not, since reading them takes time. So it
//! is written with gaps, and whoever sends it [fills](fill) them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::base64;
use crate::vocab::Stored;

/// How many media go into a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaLimits {
    /// How many.
    pub items: u64,
    /// Their bytes, before they are base64.
    pub bytes: u64,
}

impl Default for MediaLimits {
    /// 100, and 40 MiB.
    fn default() -> Self {
        MediaLimits {
            items: 100,
            bytes: 41_943_040,
        }
    }
}

/// A gap in a body: the base64 of these media belongs there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insert {
    /// In front of which byte.
    pub at: usize,
    /// What.
    pub stored: Arc<Stored>,
}

/// The length of the body once its gaps are filled, if the media are as long as they say.
pub fn filled_len(body: &[u8], inserts: &[Insert]) -> u64 {
    let digits = |insert: &Insert| insert.stored.size.div_ceil(3).saturating_mul(4);
    inserts
        .iter()
        .map(digits)
        .fold(body.len() as u64, u64::saturating_add)
}

/// The body with its gaps filled, in order.
///
/// # Errors
/// The first error of `read`.
pub fn fill<E>(
    body: &[u8],
    inserts: &[Insert],
    mut read: impl FnMut(&Stored) -> Result<Vec<u8>, E>,
) -> Result<Vec<u8>, E> {
    let length = usize::try_from(filled_len(body, inserts)).unwrap_or(0);
    let mut out = Vec::with_capacity(length);
    let mut done = 0;
    for insert in inserts {
        out.extend_from_slice(body.get(done..insert.at).unwrap_or_default());
        done = insert.at.max(done);
        base64::encode(&read(&insert.stored)?, &mut out);
    }
    out.extend_from_slice(body.get(done..).unwrap_or_default());
    Ok(out)
}
