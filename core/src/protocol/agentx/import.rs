//! What an upload and a manifest must look like, whatever becomes of them (WIRE-017, WIRE-018).

use alloc::vec::Vec;
use core::fmt;

use super::policy::{ChunkFault, Policy};
use super::wire::{Import, ImportBegin, Manifest, MediaKind};
use crate::base64;

/// The version of attachments that there is.
pub const VERSION: u64 = 1;
/// The most bytes of one attachment.
pub const MAX_ITEM_BYTES: u64 = 20_971_520;
/// The most bytes of the attachments of one prompt.
pub const MAX_PROMPT_BYTES: u64 = 41_943_040;
/// The most attachments of one prompt.
pub const MAX_PER_PROMPT: usize = 8;
/// The most uploads at once.
pub const MAX_UPLOADS: usize = 8;
/// The most uploads that a session remembers the end of.
pub const MAX_ENDED: usize = 100_000;
/// The most bytes of a chunk.
pub const MAX_CHUNK_BYTES: usize = 262_144;
/// The most digits of a chunk.
pub const MAX_CHUNK_DIGITS: usize = 349_528;
/// The most bytes of a name.
pub const MAX_NAME_BYTES: usize = 255;
/// How long an upload may take: two minutes.
pub const UPLOAD_TIMEOUT_US: u64 = 120_000_000;
/// What can be brought in: the kind, and its MIME type.
pub const MEDIA: [(MediaKind<'static>, &str); 3] = [
    (MediaKind::Image, "image/png"),
    (MediaKind::Image, "image/jpeg"),
    (MediaKind::Document, "application/pdf"),
];

/// What is wrong with a step of an upload, or with a manifest. Each is about one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImportFault {
    /// No such version.
    Version,
    /// No such operation.
    Operation,
    /// No id of an upload.
    UploadId,
    /// No id of an attachment.
    AttachmentId,
    /// No UUID.
    PromptUuid,
    /// Empty, too long, a path, or not to be shown.
    Name,
    /// Nothing, or too much.
    Size,
    /// Not one that can be brought in.
    MimeType,
    /// Not what the MIME type is.
    Kind,
    /// No SHA-256.
    Sha256,
    /// Not the id of what is stored.
    StorageId,
    /// Not canonical base64, nothing, or too much.
    Data,
}

impl ImportFault {
    /// The member that is wrong.
    pub const fn member(self) -> &'static str {
        match self {
            ImportFault::Version => "version",
            ImportFault::Operation => "operation",
            ImportFault::UploadId => "upload_id",
            ImportFault::AttachmentId => "attachment_id",
            ImportFault::PromptUuid => "prompt_uuid",
            ImportFault::Name => "name",
            ImportFault::Size => "size_bytes",
            ImportFault::MimeType => "mime_type",
            ImportFault::Kind => "kind",
            ImportFault::Sha256 => "sha256",
            ImportFault::StorageId => "storage_id",
            ImportFault::Data => "data",
        }
    }
}

impl fmt::Display for ImportFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of an attachment isn't one", self.member())
    }
}

impl core::error::Error for ImportFault {}

fn holds(holds: bool, fault: ImportFault) -> Result<(), ImportFault> {
    if holds { Ok(()) } else { Err(fault) }
}

/// Judges a step by itself.
///
/// # Errors
/// [`ImportFault`] for the first member that isn't as it must be.
pub fn check_import(import: &Import<'_>, policy: &Policy) -> Result<(), ImportFault> {
    let (version, upload_id) = match import {
        Import::Begin(step) => (step.version, &step.upload_id),
        Import::Chunk(step) => (step.version, &step.upload_id),
        Import::Commit(step) => (step.version, &step.upload_id),
        Import::Abort(step) => (step.version, &step.upload_id),
        Import::Unknown(_) => return Err(ImportFault::Operation),
    };
    holds(version == VERSION, ImportFault::Version)?;
    holds(is_id("upl_", upload_id), ImportFault::UploadId)?;
    match import {
        Import::Begin(step) => check_begin(step),
        Import::Chunk(step) if policy.chunk_fault == ChunkFault::Fatal => holds(
            chunk_bytes(&step.data, &mut Vec::new()).is_some(),
            ImportFault::Data,
        ),
        Import::Chunk(_) | Import::Commit(_) | Import::Abort(_) | Import::Unknown(_) => Ok(()),
    }
}

fn check_begin(step: &ImportBegin<'_>) -> Result<(), ImportFault> {
    holds(is_uuid(&step.prompt_uuid), ImportFault::PromptUuid)?;
    holds(
        is_id("att_", &step.attachment_id),
        ImportFault::AttachmentId,
    )?;
    holds(clean_name(&step.name).is_some(), ImportFault::Name)?;
    holds(is_size(step.size_bytes), ImportFault::Size)?;
    holds(kind_of(&step.mime_type).is_some(), ImportFault::MimeType)?;
    holds(is_sha256(&step.sha256), ImportFault::Sha256)
}

/// Judges a manifest by itself.
///
/// # Errors
/// [`ImportFault`] for the first member that isn't as it must be.
pub fn check_manifest(manifest: &Manifest<'_>) -> Result<(), ImportFault> {
    holds(
        is_id("att_", &manifest.attachment_id),
        ImportFault::AttachmentId,
    )?;
    let kind = kind_of(&manifest.mime_type).ok_or(ImportFault::MimeType)?;
    holds(manifest.kind == kind, ImportFault::Kind)?;
    holds(clean_name(&manifest.name).is_some(), ImportFault::Name)?;
    holds(is_size(manifest.size_bytes), ImportFault::Size)?;
    holds(is_sha256(&manifest.sha256), ImportFault::Sha256)?;
    let digest = manifest.storage_id.strip_prefix("blob_sha256_");
    holds(digest == Some(&*manifest.sha256), ImportFault::StorageId)
}

/// Whether it is an id with this prefix: a letter or digit, and up to 62 letters, digits, `_` and `-`.
pub fn is_id(prefix: &str, id: &str) -> bool {
    let Some((first, rest)) = id
        .strip_prefix(prefix)
        .and_then(|tail| tail.as_bytes().split_first())
    else {
        return false;
    };
    let is_tail = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    first.is_ascii_alphanumeric() && rest.len() <= 62 && rest.iter().all(is_tail)
}

/// Whether it is a UUID of RFC 4122, version 1 to 5, of its variant.
pub fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            14 => matches!(byte, b'1'..=b'5'),
            19 => matches!(byte.to_ascii_lowercase(), b'8' | b'9' | b'a' | b'b'),
            _ => byte.is_ascii_hexdigit(),
        })
}

/// The name that can be shown: without white space around it, not empty, 255 bytes at most, no path, no control
/// characters and none that turn the direction of writing.
pub fn clean_name(name: &str) -> Option<&str> {
    let name = name.trim();
    let is_bad = |char: char| {
        char.is_control()
            || matches!(char, '/' | '\\' | '\u{61c}' | '\u{200e}' | '\u{200f}')
            || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let is_name = !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && name != "."
        && name != ".."
        && !name.contains(is_bad);
    is_name.then_some(name)
}

/// What this MIME type is; `None`: nothing that can be brought in.
pub fn kind_of(mime_type: &str) -> Option<MediaKind<'static>> {
    let mut media = MEDIA.into_iter();
    media
        .find(|(_, name)| *name == mime_type)
        .map(|(kind, _)| kind)
}

fn is_size(bytes: u64) -> bool {
    (1..=MAX_ITEM_BYTES).contains(&bytes)
}

/// Whether it is 64 lower-case hex digits.
pub fn is_sha256(digest: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digest.len() == 64 && digest.bytes().all(is_digit)
}

/// Appends the bytes of a chunk; `None`, and nothing sure about `out`, if it isn't canonical base64 of at least one byte,
/// or is too long.
pub fn chunk_bytes(data: &str, out: &mut Vec<u8>) -> Option<()> {
    if data.is_empty() || data.len() > MAX_CHUNK_DIGITS {
        return None;
    }
    if base64::decoded_len(data) > MAX_CHUNK_BYTES {
        return None;
    }
    base64::decode(data, out)
}
