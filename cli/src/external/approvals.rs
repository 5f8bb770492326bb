//! What a person has approved: files, each with the exact bytes that it had then.
//!
//! One TOML file in the user's state folder, replaced as a whole under a lock, like the list of trusted projects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use turnwire::vocab::UnapprovedSource;
use turnwire_io::disk;

use super::{Found, Tool};
use crate::say::Stop;
use crate::settings::file;

/// How long another process may hold the lock. It is held for one small write.
const LOCK_LIMIT: Duration = Duration::from_secs(5);

/// Most files that are remembered; of more, those that were approved longest ago are asked about again.
const MOST: usize = 2_000;

/// A file, and its exact bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSha {
    /// Its path, absolute.
    pub path: String,
    /// The SHA-256 of its bytes, in hexadecimal digits.
    #[serde(rename = "sha256")]
    pub sha: String,
}

impl FileSha {
    /// The file at a path.
    ///
    /// # Errors
    /// The path isn't text, so that nothing can be remembered of it.
    pub fn of(path: &Path, sha: String) -> Result<FileSha, String> {
        let text = path.to_str().ok_or("its path isn't UTF-8 text")?;
        let path = text.to_owned();
        Ok(FileSha { path, sha })
    }

    /// The beginning of its hash.
    pub fn short(&self) -> &str {
        self.sha.get(..12).unwrap_or(&self.sha)
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    version: u32,
    #[serde(default, rename = "file", skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileSha>,
}

/// The approvals of this user, and of the session that goes on.
#[derive(Clone, Debug, Default)]
pub struct Approvals {
    /// `None`: the user has no home folder, and nothing is remembered.
    path: Option<PathBuf>,
    session: Arc<Mutex<InSession>>,
}

#[derive(Debug, Default)]
struct InSession {
    /// The tools as they are frozen.
    tools: Vec<Tool>,
    /// What was approved in this session.
    given: BTreeSet<FileSha>,
}

impl Approvals {
    /// The approvals at this path; the file need not exist.
    pub fn at(path: Option<PathBuf>) -> Approvals {
        Approvals {
            path,
            session: Arc::default(),
        }
    }

    /// All that is approved.
    ///
    /// # Errors
    /// [`Stop`] if the file can't be read: nothing counts as approved then.
    pub fn known(&self) -> Result<BTreeSet<FileSha>, Stop> {
        let mut known: BTreeSet<FileSha> = self.read()?.files.into_iter().collect();
        known.extend(self.session().given.iter().cloned());
        Ok(known)
    }

    /// These tools are the session's now.
    pub fn freeze(&self, found: &Found) {
        self.session().tools.clone_from(&found.tools);
    }

    /// What was approved in this session is no news to it.
    pub fn mark(&self, found: &mut Found) {
        let session = self.session();
        for tool in &mut found.tools {
            let all = tool.files.iter().all(|file| session.given.contains(file));
            tool.external.approved |= all;
        }
    }

    /// A person approved a tool of the session: takes note of it, and gives what is to be made durable.
    pub fn give(&self, source: &UnapprovedSource) -> Vec<FileSha> {
        let mut session = self.session();
        let asked = |tool: &&Tool| {
            tool.external.name == *source.tool && tool.external.source.sha == *source.sha
        };
        let files = session
            .tools
            .iter()
            .find(asked)
            .map(|tool| tool.files.clone());
        let files = files.unwrap_or_default();
        session.given.extend(files.iter().cloned());
        files
    }

    /// Remembers files, durably: once this returns it survives a crash.
    ///
    /// # Errors
    /// [`Stop`] if the file can't be read or written. Nothing is approved then.
    pub fn record(&self, files: &[FileSha]) -> Result<(), Stop> {
        let Some(path) = &self.path else {
            let text = "there is no home folder to remember the approval in".to_owned();
            return Err(Stop::Settings(text));
        };
        let failed = |error: std::io::Error| Stop::Failed(format!("{}: {error}", path.display()));
        let folder = path.parent().unwrap_or(Path::new("."));
        disk::create_folder(folder).map_err(failed)?;
        let _lock = disk::lock(&path.with_extension("lock"), LOCK_LIMIT).map_err(failed)?;
        let mut list = self.read()?;
        list.files.retain(|old| !files.contains(old));
        list.files.extend_from_slice(files);
        let mut from = list.files.len().saturating_sub(MOST);
        loop {
            list.files.drain(..from);
            let text = toml::to_string(&list)
                .map_err(|error| Stop::Failed(format!("{}: {error}", path.display())))?;
            if text.len() as u64 <= file::MOST_BYTES {
                return disk::replace(path, folder, text.as_bytes()).map_err(failed);
            }
            from = list.files.len().div_ceil(4);
        }
    }

    fn read(&self) -> Result<List, Stop> {
        let text = match &self.path {
            Some(path) => file::text(path)?.map(|text| (path, text)),
            None => None,
        };
        let Some((path, text)) = text else {
            return Ok(List {
                version: 1,
                files: Vec::new(),
            });
        };
        let list: List = file::parse(path, &text)?;
        if list.version != 1 {
            let (path, version) = (path.display(), list.version);
            let text = format!("{path}: version {version} is newer than this program");
            return Err(Stop::Settings(text));
        }
        Ok(list)
    }

    fn session(&self) -> std::sync::MutexGuard<'_, InSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
