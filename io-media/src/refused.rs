//! Why an attachment isn't kept.

use std::fmt;

/// Why an attachment isn't kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refused {
    /// It isn't what it is said to be.
    Mime,
    /// It can't be read as what it is.
    Malformed,
    /// It can be read, and is more than is taken: too many pixels or pages.
    Rejected,
    /// It holds what isn't taken: it is encrypted, or could do more than be looked at.
    Unsupported,
    /// Its digest isn't the declared one.
    Digest,
    /// There is no room for it.
    Limit,
    /// It can't be written or read.
    Storage,
}

impl Refused {
    /// The reason, as hosts are told.
    pub const fn word(self) -> &'static str {
        match self {
            Refused::Mime => "mime_mismatch",
            Refused::Malformed => "malformed_media",
            Refused::Rejected => "media_rejected",
            Refused::Unsupported => "unsupported_media",
            Refused::Digest => "digest_mismatch",
            Refused::Limit => "resource_limit",
            Refused::Storage => "storage_failure",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::Mime => "it isn't what it is said to be",
            Refused::Malformed => "it can't be read",
            Refused::Rejected => "it has too many pixels or pages",
            Refused::Unsupported => "it is encrypted, or more than something to look at",
            Refused::Digest => "its digest isn't the declared one",
            Refused::Limit => "there is no room for it",
            Refused::Storage => "it can't be kept",
        })
    }
}

impl std::error::Error for Refused {}
