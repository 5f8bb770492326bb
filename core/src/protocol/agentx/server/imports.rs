//! Attachments: uploads of the host's, and what a prompt may refer to (WIRE-018 … 020, AX-S22, AX-S23).
//!
//! The bytes are the embedder's: it is asked to keep each chunk, to judge the whole, and to let go of what is given up. Here
//! is who may bring in what, and that each upload ends exactly once.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Face;
use super::blocks::raw;
use super::outside::Outside;
use super::prompts::Seen;
use crate::json::{Raw, Str};
use crate::protocol::Outbox;
use crate::protocol::agentx::import::{
    Attachments, ImportLimits, Imported, MAX_CHUNK_BYTES, MAX_ENDED, VERSION, chunk_bytes,
    clean_name, is_sha256, kind_of,
};
use crate::protocol::agentx::policy::Extensions;
use crate::protocol::agentx::prompt::Prompt as Read;
use crate::protocol::agentx::wire::{
    self, Committed, Import, ImportBegin, ImportChunk, ImportReason, ImportRejected, ImportResult,
    ImportStatus,
};
use crate::protocol::agentx::{Agentx, AgentxAsk, AgentxOutcome};
use crate::vocab::{MediaKind, RawJson, Stored, Text};

/// Bytes that may be on their way to the embedder before no more lines are wanted.
const MOST_HANDED: usize = 16 * MAX_CHUNK_BYTES;

/// An upload that hasn't ended.
#[derive(Debug)]
struct Upload {
    attachment: Text,
    prompt: Text,
    name: Text,
    mime: Text,
    /// Declared, in bytes.
    size: u64,
    sha256: Text,
    /// The number of the next chunk.
    next: u64,
    received: u64,
    due_us: u64,
    /// The embedder judges it.
    committing: bool,
}

/// The book of uploads.
#[derive(Debug, Default)]
pub(super) struct Imports {
    limits: ImportLimits,
    /// By their ids, which is the order in which they are given up.
    open: BTreeMap<Text, Upload>,
    /// Ids of those that have ended.
    ended: BTreeSet<Text>,
    /// What was committed, by the host's ids of the attachments.
    kept: BTreeMap<Text, Imported>,
    /// How many attachments each blob is, by their digests, and the bytes of all blobs.
    blobs: BTreeMap<[u8; 32], u64>,
    stored: u64,
    /// Bytes that are on their way to the embedder.
    handed: usize,
}

impl Imports {
    /// The book of a process that begins.
    pub(super) fn of(attachments: Option<&Attachments>) -> Self {
        let mut imports = Imports::default();
        if let Some(attachments) = attachments {
            imports.limits = attachments.limits.within();
            for one in &attachments.committed {
                imports.keep(one.clone());
            }
        }
        imports
    }

    fn keep(&mut self, kept: Imported) {
        if self.kept.len() >= MAX_ENDED || self.kept.contains_key(&kept.stored.id) {
            return;
        }
        let uses = self.blobs.entry(kept.stored.sha256).or_default();
        *uses += 1;
        if *uses == 1 {
            self.stored = self.stored.saturating_add(kept.stored.size);
        }
        self.kept.insert(kept.stored.id.clone(), kept);
    }

    /// Whether more lines may be read. While the embedder judges an upload none is: what the host says behind its commit
    /// may be about what was committed.
    pub(super) fn wants_lines(&self) -> bool {
        self.handed < MOST_HANDED && !self.open.values().any(|upload| upload.committing)
    }

    /// The embedder has taken so many bytes.
    pub(super) fn taken(&mut self, bytes: usize) {
        self.handed = self.handed.saturating_sub(bytes);
    }

    /// Whether so many more bytes fit into what is kept, all that is coming included.
    fn has_room(&self, bytes: u64) -> bool {
        let coming: u64 = self.open.values().map(|upload| upload.size).sum();
        let all = self.stored.saturating_add(coming).saturating_add(bytes);
        all <= self.limits.stored_bytes
    }

    /// When the next upload has taken too long.
    pub(super) fn due(&self) -> Option<u64> {
        self.open.values().map(|upload| upload.due_us).min()
    }

    /// How many attachments a prompt has, and their bytes: those that were committed, and those that are coming.
    fn of_prompt(&self, prompt: &str) -> (usize, u64) {
        let open = self
            .open
            .values()
            .filter(|upload| *upload.prompt == *prompt);
        let kept = self.kept.values().filter(|kept| *kept.prompt == *prompt);
        open.map(|upload| upload.size)
            .chain(kept.map(|kept| kept.stored.size))
            .fold((0, 0), |(count, bytes), size| {
                (count + 1, bytes.saturating_add(size))
            })
    }

    fn has_attachment(&self, id: &str) -> bool {
        let mut open = self.open.values();
        self.kept.contains_key(id) || open.any(|upload| *upload.attachment == *id)
    }

    /// Whether a prompt refers to all that was committed for it, to nothing else, and to nothing that is still coming.
    pub(super) fn fit(&self, read: &Read<'_>) -> bool {
        let Some(prompt) = read.uuid.as_deref() else {
            return read.attachments().next().is_none();
        };
        let owed = self.kept.values().filter(|kept| *kept.prompt == *prompt);
        let coming = self.open.values().any(|upload| *upload.prompt == *prompt);
        // No id comes twice (`Prompt::read`).
        let named = read.attachments().count();
        named <= self.limits.per_prompt
            && !coming
            && owed.count() == named
            && read.attachments().all(|manifest| {
                let kept = self.kept.get(&*manifest.attachment_id);
                kept.is_some_and(|kept| *kept.prompt == *prompt && kept.manifest() == *manifest)
            })
    }

    /// What a manifest that [fits](Self::fit) refers to.
    pub(super) fn stored(&self, id: &str) -> Option<(MediaKind, Arc<Stored>)> {
        let kept = self.kept.get(id)?;
        Some((kept.kind, kept.stored.clone()))
    }
}

impl Face {
    /// Whether attachments are taken at all.
    pub(super) fn imports(&self) -> bool {
        self.config.attachments.is_some()
            && self.config.policy.attachments_providers_prompt_uuid == Extensions::Present
    }

    /// What is said at the start of what a host may bring in.
    pub(super) fn capability(&self) -> Option<RawJson> {
        let attachments = self.config.attachments.as_ref();
        let offered = attachments.filter(|_| self.imports());
        offered.map(Attachments::capability)
    }

    /// A step of an upload.
    pub(super) fn import(&mut self, import: &Import<'_>, out: &mut Outbox<Agentx>) {
        let id = import.upload_id().unwrap_or_default();
        if !self.imports() {
            return self.import_rejected(id, ImportReason::AttachmentsUnavailable, out);
        }
        if let Import::Begin(begin) = import {
            return self.import_begun(begin, out);
        }
        match self.imports.open.get(id) {
            Some(upload) if !upload.committing => {}
            // What is being judged takes nothing more, and can still be given up.
            Some(_) if matches!(import, Import::Abort(_)) => {}
            Some(_) => {
                return self.import_rejected(id, ImportReason::UploadAlreadyTerminal, out);
            }
            None => {
                let ended = self.imports.ended.contains(id);
                let reason = if ended {
                    ImportReason::UploadAlreadyTerminal
                } else {
                    ImportReason::ImportFailed
                };
                return self.import_rejected(id, reason, out);
            }
        }
        match import {
            Import::Begin(_) | Import::Unknown(_) => {}
            Import::Chunk(chunk) => self.import_chunk(id, chunk, out),
            Import::Commit(_) => self.import_commit(id, out),
            Import::Abort(_) => {
                let (status, reason) = (ImportStatus::Aborted, ImportReason::CallerAbort);
                self.import_over(id, status, reason, out);
            }
        }
    }

    fn import_begun(&mut self, begin: &ImportBegin<'_>, out: &mut Outbox<Agentx>) {
        let id = &*begin.upload_id;
        let imports = &self.imports;
        let refused = if self.prompts.seen(&begin.prompt_uuid) != Seen::New {
            Some(ImportReason::PromptAlreadyAccepted)
        } else if imports.open.contains_key(id) || imports.ended.contains(id) {
            Some(ImportReason::DuplicateUpload)
        } else if imports.open.len() + imports.ended.len() >= MAX_ENDED {
            Some(ImportReason::ResourceLimit)
        } else {
            None
        };
        if let Some(reason) = refused {
            return self.import_rejected(id, reason, out);
        }
        let (count, bytes) = imports.of_prompt(&begin.prompt_uuid);
        let limits = &imports.limits;
        let failed = if imports.has_attachment(&begin.attachment_id) {
            Some(ImportReason::Duplicate)
        } else if begin.size_bytes > limits.item_bytes
            || count >= limits.per_prompt
            || bytes.saturating_add(begin.size_bytes) > limits.prompt_bytes
            || imports.open.len() >= limits.uploads
            || imports.open.len() + imports.kept.len() >= MAX_ENDED
            || !imports.has_room(begin.size_bytes)
        {
            Some(ImportReason::ResourceLimit)
        } else {
            None
        };
        let upload = Upload {
            attachment: (&*begin.attachment_id).into(),
            prompt: (&*begin.prompt_uuid).into(),
            name: clean_name(&begin.name).unwrap_or_default().into(),
            mime: (&*begin.mime_type).into(),
            size: begin.size_bytes,
            sha256: (&*begin.sha256).into(),
            next: 0,
            received: 0,
            due_us: self.now.mono_us.saturating_add(limits.timeout_us),
            committing: false,
        };
        if let Some(reason) = failed {
            self.imports.ended.insert(id.into());
            return self.import_result(id, &upload, ImportStatus::Failed, Some(reason), None, out);
        }
        self.import_result(id, &upload, ImportStatus::Accepted, None, None, out);
        self.imports.open.insert(id.into(), upload);
    }

    fn import_chunk(&mut self, id: &str, chunk: &ImportChunk<'_>, out: &mut Outbox<Agentx>) {
        let Some(upload) = self.imports.open.get_mut(id) else {
            return;
        };
        let mut bytes = Vec::new();
        let fault = if chunk.sequence != upload.next {
            Some(ImportReason::InvalidSequence)
        } else if chunk_bytes(&chunk.data, &mut bytes).is_none() {
            Some(ImportReason::InvalidBase64)
        } else {
            upload.next += 1;
            upload.received = upload.received.saturating_add(bytes.len() as u64);
            (upload.received > upload.size).then_some(ImportReason::SizeMismatch)
        };
        if let Some(reason) = fault {
            return self.import_over(id, ImportStatus::Failed, reason, out);
        }
        let (upload, length) = (Text::from(id), bytes.len());
        self.imports.handed = self.imports.handed.saturating_add(length);
        let ask = out.ask(AgentxAsk::BlobAppend {
            upload: upload.clone(),
            bytes,
        });
        self.outside.insert(ask, Outside::Append(upload, length));
    }

    fn import_commit(&mut self, id: &str, out: &mut Outbox<Agentx>) {
        let Some(upload) = self.imports.open.get_mut(id) else {
            return;
        };
        let kind = neutral_kind(&upload.mime);
        let Some(kind) = kind.filter(|_| upload.received == upload.size) else {
            let reason = ImportReason::SizeMismatch;
            return self.import_over(id, ImportStatus::Failed, reason, out);
        };
        upload.committing = true;
        let ask = AgentxAsk::BlobCommit {
            upload: id.into(),
            kind,
            mime: upload.mime.clone(),
            sha256: upload.sha256.clone(),
            attachment: upload.attachment.clone(),
            name: upload.name.clone(),
            prompt: upload.prompt.clone(),
        };
        let ask = out.ask(ask);
        self.outside.insert(ask, Outside::Commit(id.into()));
    }

    /// Bytes of an upload couldn't be kept.
    pub(super) fn import_unkept(&mut self, id: &str, out: &mut Outbox<Agentx>) {
        self.import_over(id, ImportStatus::Failed, ImportReason::StorageFailure, out);
    }

    /// The embedder has judged an upload, which may have been given up meanwhile.
    pub(super) fn import_kept(
        &mut self,
        id: &str,
        outcome: &AgentxOutcome,
        out: &mut Outbox<Agentx>,
    ) {
        let Some(upload) = self.imports.open.get(id) else {
            return;
        };
        let (_, bytes) = self.imports.of_prompt(&upload.prompt);
        let limits = self.imports.limits;
        let kept = kept(upload, outcome).and_then(|kept| {
            let others = bytes.saturating_sub(upload.size);
            if kept.stored.size > limits.item_bytes
                || others.saturating_add(kept.stored.size) > limits.prompt_bytes
            {
                return Err(ImportReason::ResourceLimit);
            }
            Ok(kept)
        });
        match kept {
            Err(reason) => self.import_over(id, ImportStatus::Failed, reason, out),
            Ok(kept) => {
                let Some(upload) = self.imports.open.remove(id) else {
                    return;
                };
                self.imports.ended.insert(id.into());
                let status = ImportStatus::Committed;
                self.import_result(id, &upload, status, None, Some(&kept), out);
                self.imports.keep(kept);
            }
        }
    }

    /// The one end of an upload that isn't committed.
    fn import_over(
        &mut self,
        id: &str,
        status: ImportStatus<'static>,
        reason: ImportReason<'static>,
        out: &mut Outbox<Agentx>,
    ) {
        let Some(upload) = self.imports.open.remove(id) else {
            return;
        };
        self.imports.ended.insert(id.into());
        let ask = out.ask(AgentxAsk::BlobDrop { upload: id.into() });
        self.outside.insert(ask, Outside::Quiet);
        self.import_result(id, &upload, status, Some(reason), None, out);
    }

    /// No more bytes come: all uploads are given up, in the order of their ids.
    pub(super) fn imports_over(&mut self, reason: ImportReason<'static>, out: &mut Outbox<Agentx>) {
        while let Some(id) = self.imports.open.keys().next().cloned() {
            self.import_over(&id, ImportStatus::Aborted, reason.clone(), out);
        }
    }

    /// Uploads that have taken too long.
    pub(super) fn imports_woken(&mut self, out: &mut Outbox<Agentx>) {
        let now = self.now.mono_us;
        let late = |(id, upload): (&Text, &Upload)| (upload.due_us <= now).then(|| id.clone());
        let late: Vec<Text> = self.imports.open.iter().filter_map(late).collect();
        for id in late {
            self.import_over(&id, ImportStatus::Expired, ImportReason::Timeout, out);
        }
    }

    fn import_result(
        &mut self,
        id: &str,
        upload: &Upload,
        status: ImportStatus<'static>,
        reason: Option<ImportReason<'static>>,
        kept: Option<&Imported>,
        out: &mut Outbox<Agentx>,
    ) {
        let line = ImportResult {
            version: VERSION,
            upload_id: id.into(),
            attachment_id: (&*upload.attachment).into(),
            terminal: status != ImportStatus::Accepted,
            status,
            prompt_uuid: Some((&*upload.prompt).into()),
            attachment: kept.map(|kept| Committed::Attachment(kept.manifest())),
            reason,
            ..ImportResult::default()
        };
        self.printer.say(line, out);
    }

    fn import_rejected(
        &mut self,
        id: &str,
        reason: ImportReason<'static>,
        out: &mut Outbox<Agentx>,
    ) {
        let rejected = ImportRejected {
            version: VERSION,
            upload_id: id.into(),
            status: ImportStatus::Rejected,
            terminal: false,
            reason,
            ..ImportRejected::default()
        };
        self.printer.say(rejected, out);
    }
}

fn neutral_kind(mime: &str) -> Option<MediaKind> {
    match kind_of(mime)? {
        wire::MediaKind::Image => Some(MediaKind::Image),
        wire::MediaKind::Document => Some(MediaKind::Document),
        wire::MediaKind::Other(_) => None,
    }
}

/// What the embedder made of an upload, or why it isn't kept.
fn kept(upload: &Upload, outcome: &AgentxOutcome) -> Result<Imported, ImportReason<'static>> {
    let payload = match outcome {
        AgentxOutcome::Success(Some(payload)) => payload,
        AgentxOutcome::Success(None) => return Err(ImportReason::CommitFailed),
        AgentxOutcome::Failure(word) => return Err(why(word)),
        AgentxOutcome::Default | AgentxOutcome::Settings(_) => {
            return Err(ImportReason::StorageFailure);
        }
    };
    read_kept(upload, payload).ok_or(ImportReason::CommitFailed)
}

fn read_kept(upload: &Upload, payload: &RawJson) -> Option<Imported> {
    let payload = raw(payload);
    let string = |name| payload.get_last(name).and_then(Raw::string);
    let size = payload.get_last("size_bytes")?.u64()?;
    let sha256: Str<'_> = Str(string("sha256")?);
    let blob = string("storage_id")?;
    let is_whole =
        is_sha256(&sha256) && size > 0 && blob.strip_prefix("blob_sha256_") == Some(&*sha256);
    if !is_whole {
        return None;
    }
    Some(Imported {
        prompt: upload.prompt.clone(),
        kind: neutral_kind(&upload.mime)?,
        stored: Arc::new(Stored {
            blob: (&*blob).into(),
            id: upload.attachment.clone(),
            name: upload.name.clone(),
            mime: upload.mime.clone(),
            size,
            sha256: digest(&sha256)?,
        }),
    })
}

fn digest(hex: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    let (pairs, _) = hex.as_bytes().as_chunks::<2>();
    for (byte, pair) in digest.iter_mut().zip(pairs) {
        let pair = core::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(digest)
}

/// The contract's word for a failure of the embedder's.
fn why(word: &str) -> ImportReason<'static> {
    match ImportReason::from(String::from(word).as_str()) {
        ImportReason::DigestMismatch => ImportReason::DigestMismatch,
        ImportReason::MimeMismatch => ImportReason::MimeMismatch,
        ImportReason::MediaRejected => ImportReason::MediaRejected,
        ImportReason::MalformedMedia => ImportReason::MalformedMedia,
        ImportReason::UnsupportedMedia => ImportReason::UnsupportedMedia,
        ImportReason::StorageFailure => ImportReason::StorageFailure,
        ImportReason::ResourceLimit => ImportReason::ResourceLimit,
        ImportReason::SizeMismatch => ImportReason::SizeMismatch,
        ImportReason::AttachmentsUnavailable
        | ImportReason::PromptAlreadyAccepted
        | ImportReason::DuplicateUpload
        | ImportReason::Duplicate
        | ImportReason::InvalidSequence
        | ImportReason::InvalidBase64
        | ImportReason::CommitFailed
        | ImportReason::CallerAbort
        | ImportReason::Eof
        | ImportReason::ProcessFailure
        | ImportReason::Shutdown
        | ImportReason::StoreClosed
        | ImportReason::Cancelled
        | ImportReason::Timeout
        | ImportReason::UploadAlreadyTerminal
        | ImportReason::ImportFailed
        | ImportReason::UnsupportedOperation
        | ImportReason::Other(_) => ImportReason::CommitFailed,
    }
}
