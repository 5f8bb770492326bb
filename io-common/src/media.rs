//! Media that an embedder keeps: where their bytes are, and how they get into a request.

use std::fmt;
use std::io;
use std::sync::Arc;

use turnwire::model::{Insert, MediaLimits, fill, filled_len};
use turnwire::vocab::Stored;

/// The largest body of a request with media in it, in bytes.
pub const BODY_MAX: u64 = 67_108_864;

/// Where the bytes of stored media are.
pub trait MediaSource: Send + Sync {
    /// Whether its bytes are here. It is asked on the loop's own thread, and does no I/O.
    fn has(&self, stored: &Stored) -> bool;

    /// Its bytes. It may block.
    ///
    /// # Errors
    /// As the system says, and if they aren't those that were stored.
    fn read(&self, stored: &Stored) -> io::Result<Vec<u8>>;
}

/// Media for the requests to a model.
#[derive(Clone, Default)]
pub struct Media {
    source: Option<Arc<dyn MediaSource>>,
    limits: MediaLimits,
}

impl Media {
    /// None: a message that refers to some says so in words.
    pub fn none() -> Media {
        Media::default()
    }

    /// From this source, and no more in one request than `limits` allow.
    pub fn of(source: Arc<dyn MediaSource>, limits: MediaLimits) -> Media {
        Media {
            source: Some(source),
            limits,
        }
    }

    pub(crate) fn limits(&self) -> MediaLimits {
        self.limits
    }

    pub(crate) fn has(&self, stored: &Stored) -> bool {
        self.source
            .as_ref()
            .is_some_and(|source| source.has(stored))
    }
}

impl fmt::Debug for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Media")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The body of a request, in which media may still be missing.
#[derive(Debug)]
pub struct Body {
    bytes: Vec<u8>,
    gaps: Vec<Insert>,
    media: Media,
}

impl Body {
    pub(crate) fn new(bytes: Vec<u8>, gaps: Vec<Insert>, media: Media) -> Body {
        Body { bytes, gaps, media }
    }

    /// Whether media are missing, so that making it [whole](Body::whole) may block.
    pub fn has_gaps(&self) -> bool {
        !self.gaps.is_empty()
    }

    /// The whole of it: media are read and put in. It may block, and is called off the loop's own thread.
    ///
    /// # Errors
    /// Why the request can't be sent, for people: it would be larger than [`BODY_MAX`], or media can't be read.
    pub fn whole(self) -> Result<Vec<u8>, String> {
        let Some(source) = self.media.source.filter(|_| !self.gaps.is_empty()) else {
            return Ok(self.bytes);
        };
        if filled_len(&self.bytes, &self.gaps) > BODY_MAX {
            return Err(format!(
                "with its attachments it would be larger than {BODY_MAX} bytes"
            ));
        }
        fill(&self.bytes, &self.gaps, |stored| {
            let bytes = source.read(stored)?;
            if bytes.len() as u64 == stored.size {
                return Ok(bytes);
            }
            Err(io::Error::other("it isn't as long as it was"))
        })
        .map_err(|error| format!("an attachment can't be read: {error}"))
    }
}
