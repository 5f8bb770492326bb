//! Attachments: where they are kept, files that the command line names, and what the wire asks of them.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use turnwire::model::MediaLimits;
use turnwire::protocol::agentx::import::{MAX_ENDED, clean_name};
use turnwire::protocol::agentx::{AgentxAsk, AgentxOutcome, Attachments, ImportLimits, Imported};
use turnwire::vocab::{RawJson, Text};
use turnwire_io::{Answered, Media};
use turnwire_media::{Blobs, Format, Kept, Limits, Place, Upload};

use crate::ids::IdKind;
use crate::keep::Begun;
use crate::object::{Members, json};
use crate::say::{self, Stop};
use crate::start::Start;

/// Attachments of one request to a model.
const REQUEST_ITEMS: u64 = 100;

/// Opens what a session keeps of attachments: to take more (`limits`), or to send what it has.
///
/// # Errors
/// [`Stop::Session`] if they can't be read.
pub fn open(
    start: &Start,
    begun: &Begun,
    limits: Option<&ImportLimits>,
) -> Result<Option<Arc<Blobs>>, Stop> {
    let place = match (&begun.writer, &start.folders) {
        (Some(writer), _) => {
            let folder = writer.path().with_extension("media");
            if limits.is_none() && !folder.exists() {
                return Ok(None);
            }
            Place::Kept(folder)
        }
        (None, Some(folders)) if limits.is_some() => Place::Scratch {
            folder: folders.state.join("media"),
            id: begun.id.clone(),
        },
        (None, Some(_)) => return Ok(None),
        (None, None) => {
            if limits.is_some() {
                say::line(format_args!(
                    "there is no home folder, so attachments aren't taken"
                ));
            }
            return Ok(None);
        }
    };
    let contract = ImportLimits::CONTRACT;
    let limits = limits.unwrap_or(&contract);
    let limits = Limits {
        item_bytes: limits.item_bytes,
        stored_bytes: limits.stored_bytes,
        items: MAX_ENDED,
        image_side: limits.image_side,
        image_pixels: limits.image_pixels,
        pdf_pages: limits.pdf_pages,
    };
    Blobs::open(&place, limits)
        .map(|blobs| Some(Arc::new(blobs)))
        .map_err(|error| Stop::Session(format!("the attachments can't be used: {error}")))
}

/// What requests to the model find in it.
pub fn of(blobs: Option<&Arc<Blobs>>, limits: Option<&ImportLimits>) -> Media {
    let Some(blobs) = blobs else {
        return Media::none();
    };
    let limits = limits.copied().unwrap_or_default();
    Media::of(
        blobs.clone(),
        MediaLimits {
            items: REQUEST_ITEMS,
            bytes: limits.request_bytes,
        },
    )
}

/// What is offered to the host.
pub fn offered(blobs: &Blobs, limits: ImportLimits) -> Attachments {
    let imported = |kept: Kept| Imported {
        prompt: kept.prompt,
        kind: kept.kind,
        stored: kept.stored,
    };
    Attachments {
        limits,
        committed: blobs.kept().into_iter().map(imported).collect(),
    }
}

/// Carries out what the wire asks; `None`: it is about something else.
pub fn answer(
    blobs: Option<&Arc<Blobs>>,
    ask: AgentxAsk,
) -> Result<Answered<AgentxOutcome>, AgentxAsk> {
    let Some(blobs) = blobs.cloned() else {
        return Err(ask);
    };
    let work: Box<dyn FnOnce() -> AgentxOutcome + Send> = match ask {
        AgentxAsk::BlobAppend { upload, bytes } => {
            Box::new(move || match blobs.append(&upload, &bytes) {
                Ok(()) => AgentxOutcome::Success(None),
                Err(refused) => AgentxOutcome::Failure(refused.word().into()),
            })
        }
        AgentxAsk::BlobCommit {
            upload,
            kind: _,
            mime,
            sha256,
            attachment,
            name,
            prompt,
        } => Box::new(move || {
            let it = Upload {
                mime,
                attachment,
                name,
                prompt,
            };
            match blobs.commit(&upload, &sha256, &it) {
                Ok(kept) => AgentxOutcome::Success(Some(payload(&kept))),
                Err(refused) => AgentxOutcome::Failure(refused.word().into()),
            }
        }),
        AgentxAsk::BlobDrop { upload } => Box::new(move || {
            blobs.give_up(&upload);
            AgentxOutcome::Default
        }),
        ask @ (AgentxAsk::Control { .. }
        | AgentxAsk::Environment(_)
        | AgentxAsk::Options(_)
        | AgentxAsk::Flush
        | AgentxAsk::Orphan(_)) => return Err(ask),
    };
    Ok(Answered::Later(work))
}

fn payload(kept: &Kept) -> RawJson {
    let stored = &kept.stored;
    json(|out| {
        let mut object = Members::begin(out);
        object.number("size_bytes", stored.size);
        object.text("sha256", stored.blob.trim_start_matches("blob_sha256_"));
        object.text("storage_id", &stored.blob);
        object.end();
    })
}

/// Keeps files for the first prompt, in their order.
///
/// # Errors
/// [`Stop::Settings`] with the file and the reason.
pub fn attach(
    blobs: &Blobs,
    limits: &ImportLimits,
    prompt: &Text,
    files: &[std::path::PathBuf],
) -> Result<Vec<Imported>, Stop> {
    if files.len() > limits.per_prompt {
        return Err(Stop::Settings(format!(
            "--attach: a prompt has {} attachments at most",
            limits.per_prompt
        )));
    }
    let mut attached: Vec<Imported> = Vec::new();
    let mut all = 0_u64;
    for path in files {
        let stop = |why: &dyn std::fmt::Display| {
            Stop::Settings(format!("--attach: {}: {why}", path.display()))
        };
        let bytes = read(path, limits.item_bytes).map_err(|why| stop(&why))?;
        let format = Format::of_bytes(&bytes).ok_or_else(|| stop(&"no PNG, JPEG or PDF"))?;
        let name = path.file_name().and_then(|name| clean_name(name.to_str()?));
        let id = IdKind::Random.make(0)?.replace('-', "");
        let upload = Upload {
            mime: format.mime().into(),
            attachment: format!("att_{id}").as_str().into(),
            name: name.unwrap_or("attachment").into(),
            prompt: prompt.clone(),
        };
        let kept = blobs
            .keep_bytes(&bytes, &upload)
            .map_err(|refused| stop(&refused))?;
        all = all.saturating_add(kept.stored.size);
        if all > limits.prompt_bytes {
            return Err(stop(&"the attachments are too large together"));
        }
        attached.push(Imported {
            prompt: kept.prompt,
            kind: kept.kind,
            stored: kept.stored,
        });
    }
    Ok(attached)
}

fn read(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    // A named pipe would make the opening wait for ever.
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("not a file".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most {
        return Err(format!("larger than {most} bytes"));
    }
    Ok(bytes)
}
