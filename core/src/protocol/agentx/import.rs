//! What an upload and a manifest must look like, whatever becomes of them (WIRE-017, WIRE-018).

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::policy::{ChunkFault, Policy};
use super::wire::{
    AttachmentCapability, AttachmentLimits, AttachmentSource, Import, ImportBegin,
    InputCapabilities, Manifest, MediaKind, MediaType, ProviderLimits,
};
use crate::base64;
use crate::protocol::wire::Hole as _;
use crate::vocab::{self, RawJson, Stored, Text};

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
/// The most bytes of all that a session keeps, each blob counted once.
pub const MAX_STORED_BYTES: u64 = 536_870_912;
/// The most bytes of attachments in one request to a model.
pub const MAX_REQUEST_MEDIA_BYTES: u64 = 41_943_040;
/// The most pixels of an image, on one side.
pub const MAX_IMAGE_SIDE: u32 = 8_192;
/// The most pixels of an image.
pub const MAX_IMAGE_PIXELS: u64 = 20_000_000;
/// The most pages of a PDF.
pub const MAX_PDF_PAGES: u32 = 100;
/// The most bytes of a MIME type.
const MAX_MIME_BYTES: u64 = 64;
/// What a request to a model holds at most: attachments, their digits, and bytes.
const MAX_REQUEST_ITEMS: u64 = 100;
const MAX_REQUEST_DIGITS: u64 = 55_927_120;
const MAX_REQUEST_BYTES: u64 = 67_108_864;
/// What can be brought in: the kind, and its MIME type.
pub const MEDIA: [(MediaKind<'static>, &str); 3] = [
    (MediaKind::Image, "image/png"),
    (MediaKind::Image, "image/jpeg"),
    (MediaKind::Document, "application/pdf"),
];

/// How much an agent takes. An embedder may take less than the contract allows, never more ([`ImportLimits::within`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportLimits {
    /// Bytes of one attachment.
    pub item_bytes: u64,
    /// Bytes of the attachments of one prompt.
    pub prompt_bytes: u64,
    /// Attachments of one prompt.
    pub per_prompt: usize,
    /// Uploads at once.
    pub uploads: usize,
    /// Bytes of all that a session keeps, each blob counted once.
    pub stored_bytes: u64,
    /// Bytes of attachments in one request to a model; older ones are put into words beyond it.
    pub request_bytes: u64,
    /// Pixels of an image, on one side.
    pub image_side: u32,
    /// Pixels of an image.
    pub image_pixels: u64,
    /// Pages of a PDF.
    pub pdf_pages: u32,
    /// How long an upload may take, in microseconds.
    pub timeout_us: u64,
}

impl ImportLimits {
    /// Those of the contract.
    pub const CONTRACT: ImportLimits = ImportLimits {
        item_bytes: MAX_ITEM_BYTES,
        prompt_bytes: MAX_PROMPT_BYTES,
        per_prompt: MAX_PER_PROMPT,
        uploads: MAX_UPLOADS,
        stored_bytes: MAX_STORED_BYTES,
        request_bytes: MAX_REQUEST_MEDIA_BYTES,
        image_side: MAX_IMAGE_SIDE,
        image_pixels: MAX_IMAGE_PIXELS,
        pdf_pages: MAX_PDF_PAGES,
        timeout_us: UPLOAD_TIMEOUT_US,
    };

    /// These, and nowhere more than the contract's.
    pub fn within(self) -> ImportLimits {
        let most = Self::CONTRACT;
        ImportLimits {
            item_bytes: self.item_bytes.min(most.item_bytes),
            prompt_bytes: self.prompt_bytes.min(most.prompt_bytes),
            per_prompt: self.per_prompt.min(most.per_prompt),
            uploads: self.uploads.min(most.uploads),
            stored_bytes: self.stored_bytes.min(most.stored_bytes),
            request_bytes: self.request_bytes.min(most.request_bytes),
            image_side: self.image_side.min(most.image_side),
            image_pixels: self.image_pixels.min(most.image_pixels),
            pdf_pages: self.pdf_pages.min(most.pdf_pages),
            timeout_us: self.timeout_us.min(most.timeout_us),
        }
    }
}

impl Default for ImportLimits {
    fn default() -> Self {
        Self::CONTRACT
    }
}

/// Attachments, as an embedder offers them: it keeps their bytes then, and answers what becomes of them
/// ([`AgentxAsk::BlobAppend`](super::AgentxAsk::BlobAppend)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachments {
    /// How much is taken.
    pub limits: ImportLimits,
    /// Attachments that are there already: those of earlier processes of the session, and files that the command line
    /// names for the first prompt.
    pub committed: Vec<Imported>,
}

/// An attachment that was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The prompt that it is for, by the host's id of it.
    pub prompt: Text,
    /// What it is.
    pub kind: vocab::MediaKind,
    /// Its manifest, and where its bytes are.
    pub stored: Arc<Stored>,
}

impl Imported {
    /// What messages and replays say of it.
    pub fn manifest(&self) -> Manifest<'_> {
        super::neutral::manifest(self.kind, &self.stored)
    }
}

impl Attachments {
    /// What is said of it at the start: `input_capabilities` (WIRE-017).
    pub fn capability(&self) -> RawJson {
        let limits = self.limits.within();
        let source = |source: &'static str, scope: &'static str| AttachmentSource {
            source: source.into(),
            scope: scope.into(),
            ..AttachmentSource::default()
        };
        let capability = AttachmentCapability {
            protocol_version: VERSION,
            sources: Vec::from([
                source("file_path", "initial_cli"),
                source("stream_json_v1", "per_turn"),
            ]),
            media_types: MEDIA
                .into_iter()
                .map(|(kind, mime)| media_type(kind, mime, &limits))
                .collect(),
            limits: AttachmentLimits {
                max_attachments_per_message: limits.per_prompt as u64,
                max_concurrent_uploads: limits.uploads as u64,
                max_uploads_per_session: MAX_ENDED as u64,
                max_item_bytes: limits.item_bytes,
                max_aggregate_bytes: limits.prompt_bytes,
                max_storage_bytes: limits.stored_bytes,
                max_model_request_media_bytes: limits.request_bytes,
                max_chunk_decoded_bytes: MAX_CHUNK_BYTES as u64,
                max_chunk_encoded_bytes: MAX_CHUNK_DIGITS as u64,
                max_display_name_bytes: MAX_NAME_BYTES as u64,
                max_mime_type_bytes: MAX_MIME_BYTES,
                max_image_dimension: u64::from(limits.image_side),
                max_image_pixels: limits.image_pixels,
                max_pdf_pages: u64::from(limits.pdf_pages),
                upload_timeout_ms: limits.timeout_us / 1_000,
                ..AttachmentLimits::default()
            },
            provider_limits: ProviderLimits {
                max_request_items: MAX_REQUEST_ITEMS,
                max_encoded_media_bytes: MAX_REQUEST_DIGITS,
                max_request_bytes: MAX_REQUEST_BYTES,
                max_ndjson_record_bytes: super::MAX_LINE as u64,
                ..ProviderLimits::default()
            },
            ..AttachmentCapability::default()
        };
        let mut json = Vec::new();
        InputCapabilities {
            attachments: Some(Box::new(capability)),
            ..InputCapabilities::default()
        }
        .put(&mut json);
        RawJson(String::from_utf8(json).unwrap_or_default().as_str().into())
    }
}

fn media_type(
    kind: MediaKind<'static>,
    mime: &'static str,
    limits: &ImportLimits,
) -> MediaType<'static> {
    let is_image = kind == MediaKind::Image;
    MediaType {
        kind,
        mime_type: mime.into(),
        max_bytes: limits.item_bytes,
        max_dimension: is_image.then(|| limits.image_side.into()),
        max_pixels: is_image.then_some(limits.image_pixels),
        max_pages: (!is_image).then(|| limits.pdf_pages.into()),
        transform_policy: if is_image {
            "decode_reencode_strip_metadata_reject_oversize_no_resize"
        } else {
            "validate_structure_no_execute_no_ocr_no_conversion"
        }
        .into(),
        ..MediaType::default()
    }
}

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
