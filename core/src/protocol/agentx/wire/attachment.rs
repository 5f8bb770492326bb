//! Attachments of the strict wire: how a host brings them in, and how a message refers to them. claude has none of this.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::json::{Lazy, Str};
use crate::protocol::member::{objects, tagged, words};

words! {
    /// What an attachment is.
    MediaKind {
        Image "image",
        Document "document",
    }
    /// How an upload stands.
    ImportStatus {
        /// It has begun.
        Accepted "accepted",
        /// It may be referred to.
        Committed "committed",
        /// Given up.
        Aborted "aborted",
        /// Its time ran out.
        Expired "expired",
        Failed "failed",
        /// No upload of this id could take the operation.
        Rejected "rejected",
    }
    /// Why an upload stands so.
    ImportReason {
        AttachmentsUnavailable "attachments_unavailable",
        PromptAlreadyAccepted "prompt_already_accepted",
        DuplicateUpload "duplicate_upload",
        ResourceLimit "resource_limit",
        Duplicate "duplicate",
        InvalidSequence "invalid_sequence",
        InvalidBase64 "invalid_base64",
        SizeMismatch "size_mismatch",
        DigestMismatch "digest_mismatch",
        MediaRejected "media_rejected",
        StorageFailure "storage_failure",
        CommitFailed "commit_failed",
        CallerAbort "caller_abort",
        Eof "eof",
        ProcessFailure "process_failure",
        Shutdown "shutdown",
        StoreClosed "store_closed",
        Cancelled "cancelled",
        Timeout "timeout",
        UploadAlreadyTerminal "upload_already_terminal",
        ImportFailed "import_failed",
        MimeMismatch "mime_mismatch",
        UnsupportedMedia "unsupported_media",
        MalformedMedia "malformed_media",
        UnsupportedOperation "unsupported_operation",
    }
}

objects! { without ["type"];
    /// A committed attachment: all that a message and its replay say of it. The bytes are never on the wire again.
    Manifest {
        /// `att_` and up to 63 letters, digits, `_` and `-`.
        attachment_id "attachment_id": Str<'a>,
        kind "kind": MediaKind<'a>,
        /// What a person calls it: at most 255 bytes, and no path.
        name "name": Str<'a>,
        mime_type "mime_type": Str<'a>,
        /// Of the decoded bytes.
        size_bytes "size_bytes": u64,
        /// 64 lower-case hex digits.
        sha256 "sha256": Str<'a>,
        /// `blob_sha256_` and the digest.
        storage_id "storage_id": Str<'a>,
    }
    /// How an upload stands: one when it begins, and one when it ends.
    ImportResult {
        version "version": u64,
        upload_id "upload_id": Str<'a>,
        attachment_id "attachment_id": Str<'a>,
        status "status": ImportStatus<'a>,
        /// Nothing comes after it for this upload.
        terminal "terminal": bool,
        prompt_uuid "prompt_uuid": Option<Str<'a>>,
        attachment "attachment": Option<Committed<'a>>,
        reason "reason": Option<ImportReason<'a>>,
    }
    /// An operation that no upload took.
    ImportRejected {
        version "version": u64,
        upload_id "upload_id": Str<'a>,
        status "status": ImportStatus<'a>,
        terminal "terminal": bool,
        reason "reason": ImportReason<'a>,
    }
}

tagged! {
    /// The manifest of an upload that was committed, as a message refers to it.
    Committed by "type" {
        Attachment(Manifest) = "attachment_ref",
    }
}

objects! { without ["type", "operation"];
    /// Declares an upload, before any of its bytes.
    ImportBegin {
        version "version": u64,
        /// The prompt that it is for: a UUID.
        prompt_uuid "prompt_uuid": Str<'a>,
        /// `upl_` and up to 63 letters, digits, `_` and `-`.
        upload_id "upload_id": Str<'a>,
        attachment_id "attachment_id": Str<'a>,
        name "name": Str<'a>,
        size_bytes "size_bytes": u64,
        mime_type "mime_type": Str<'a>,
        sha256 "sha256": Str<'a>,
    }
    /// The next bytes.
    ImportChunk {
        version "version": u64,
        upload_id "upload_id": Str<'a>,
        /// 0, 1, 2, …
        sequence "sequence": u64,
        /// Padded base64, of 262,144 bytes at most.
        data "data": Lazy<'a>,
    }
    /// All bytes have come.
    ImportCommit {
        version "version": u64,
        upload_id "upload_id": Str<'a>,
    }
    /// Gives the upload up.
    ImportAbort {
        version "version": u64,
        upload_id "upload_id": Str<'a>,
    }
}

tagged! {
    /// A step of an upload.
    Import by "operation" {
        Begin(ImportBegin) = "begin",
        Chunk(ImportChunk) = "chunk",
        Commit(ImportCommit) = "commit",
        Abort(ImportAbort) = "abort",
    }
}

impl<'a> Import<'a> {
    /// The upload's id; `None` for an operation that isn't known.
    pub fn upload_id(&self) -> Option<&str> {
        match self {
            Import::Begin(step) => Some(&step.upload_id),
            Import::Chunk(step) => Some(&step.upload_id),
            Import::Commit(step) => Some(&step.upload_id),
            Import::Abort(step) => Some(&step.upload_id),
            Import::Unknown(_) => None,
        }
    }
}

objects! { without [];
    /// What a host may bring in besides text. Absent: text only.
    InputCapabilities {
        attachments "attachments": Option<Box<AttachmentCapability<'a>>>,
    }
    /// Attachments: where they come from, what they may be, and how much of it.
    AttachmentCapability {
        protocol_version "protocol_version": u64,
        sources "sources": Vec<AttachmentSource<'a>>,
        media_types "media_types": Vec<MediaType<'a>>,
        limits "limits": AttachmentLimits<'a>,
        provider_limits "provider_limits": ProviderLimits<'a>,
    }
    /// Where an attachment comes from.
    AttachmentSource {
        /// `file_path` or `stream_json_v1`.
        source "source": Str<'a>,
        /// `initial_cli` or `per_turn`.
        scope "scope": Str<'a>,
    }
    /// A kind of media that is taken.
    MediaType {
        kind "kind": MediaKind<'a>,
        mime_type "mime_type": Str<'a>,
        max_bytes "max_bytes": u64,
        max_dimension "max_dimension": Option<u64>,
        max_pixels "max_pixels": Option<u64>,
        max_pages "max_pages": Option<u64>,
        transform_policy "transform_policy": Str<'a>,
    }
    /// What this side takes.
    AttachmentLimits {
        max_attachments_per_message "max_attachments_per_message": u64,
        max_concurrent_uploads "max_concurrent_uploads": u64,
        max_uploads_per_session "max_uploads_per_session": u64,
        max_item_bytes "max_item_bytes": u64,
        max_aggregate_bytes "max_aggregate_bytes": u64,
        max_storage_bytes "max_storage_bytes": u64,
        max_model_request_media_bytes "max_model_request_media_bytes": u64,
        max_chunk_decoded_bytes "max_chunk_decoded_bytes": u64,
        max_chunk_encoded_bytes "max_chunk_encoded_bytes": u64,
        max_display_name_bytes "max_display_name_bytes": u64,
        max_mime_type_bytes "max_mime_type_bytes": u64,
        max_image_dimension "max_image_dimension": u64,
        max_image_pixels "max_image_pixels": u64,
        max_pdf_pages "max_pdf_pages": u64,
        upload_timeout_ms "upload_timeout_ms": u64,
    }
    /// What the provider takes.
    ProviderLimits {
        max_request_items "max_request_items": u64,
        max_encoded_media_bytes "max_encoded_media_bytes": u64,
        max_request_bytes "max_request_bytes": u64,
        max_ndjson_record_bytes "max_ndjson_record_bytes": u64,
    }
}
