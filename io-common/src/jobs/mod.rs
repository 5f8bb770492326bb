//! Background jobs: commands that go on by themselves behind a call of `bash`, what they write, and their records.
//!
//! A record says how a job stands. It is on the disk before the job runs, and again with each change; a record whose
//! process is gone, and that isn't of a job that is over, is one of a job that was interrupted with it. So no record of an
//! earlier process reads back as running, whenever that was killed. `docs/sessions.md` has the form of the files.

mod command;
mod count;
mod let_go;
mod record;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turnwire::protocol::openseek::{is_job_id, job_storage_name, valid_job_component};
use turnwire::vocab::{JobRecord, JobState, Text};

use crate::disk;

pub use command::{BackgroundJob, Kept, OpenJob, Ran, Said, Told};
pub use let_go::LetGo;

/// Bytes that a job may write, if nothing else is said; one that writes more is stopped.
const OUTPUT_LIMIT: u64 = 64 * 1024 * 1024;
/// Records of jobs that are over which a session keeps on the disk, with their output; of more the oldest go.
pub const MOST_RECORDS: usize = 128;
/// A record that is longer isn't read.
const RECORD_MAX: u64 = 1024 * 1024;

/// Where the jobs of one session are kept. Cheap to clone.
#[derive(Clone, Debug)]
pub struct JobPlace {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Of the session: a folder in it for each process.
    folder: PathBuf,
    generation: Text,
    output_limit: u64,
    /// The records of this process as they were told, which those on the disk follow.
    told: Mutex<BTreeMap<Text, JobRecord>>,
    /// It goes with the last one who knows it.
    temporary: Option<tempfile::TempDir>,
}

impl JobPlace {
    /// The jobs of a session that is kept. Nothing is made on the disk before there is a job.
    ///
    /// `generation` names this process among all that the session has; it is part of a path.
    ///
    /// # Errors
    /// `InvalidInput` if it can't be: 1 to 200 ASCII letters, digits, `-`, `_` and `.`, and neither `.` nor `..`.
    pub fn kept(folder: PathBuf, generation: &str) -> io::Result<JobPlace> {
        Self::new(folder, generation, None)
    }

    /// The jobs of a session of which nothing is kept: their output goes with the place.
    ///
    /// # Errors
    /// As [`kept`](JobPlace::kept), and as the system says.
    pub fn temporary(generation: &str) -> io::Result<JobPlace> {
        let folder = tempfile::Builder::new()
            .prefix("turnwire-jobs-")
            .tempdir()?;
        Self::new(folder.path().to_owned(), generation, Some(folder))
    }

    fn new(
        folder: PathBuf,
        generation: &str,
        temporary: Option<tempfile::TempDir>,
    ) -> io::Result<JobPlace> {
        if !valid_job_component(generation) {
            let why = format!("{generation:?} can't name a folder of jobs");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let inner = Arc::new(Inner {
            folder,
            generation: generation.into(),
            output_limit: OUTPUT_LIMIT,
            told: Mutex::default(),
            temporary,
        });
        Ok(JobPlace { inner })
    }

    /// The same place with another limit for the bytes that one job may write. Only before there are jobs.
    #[must_use]
    pub fn with_output_limit(self, bytes: u64) -> JobPlace {
        match Arc::try_unwrap(self.inner) {
            Ok(inner) => JobPlace {
                inner: Arc::new(Inner {
                    output_limit: bytes,
                    ..inner
                }),
            },
            Err(inner) => JobPlace { inner },
        }
    }

    /// What the jobs of this process are told apart by.
    pub fn generation(&self) -> &Text {
        &self.inner.generation
    }

    /// Whether what is kept here outlives the session.
    fn is_persistent(&self) -> bool {
        self.inner.temporary.is_none()
    }

    /// The folder of this process.
    fn own(&self) -> PathBuf {
        self.inner.folder.join(&*self.inner.generation)
    }

    fn record(&self, id: &str) -> PathBuf {
        self.own().join(format!("{}.json", job_storage_name(id)))
    }

    /// Makes the file that a job writes to. Its name, and the file.
    fn make_output(&self, id: &str) -> io::Result<(String, File)> {
        let own = self.own();
        disk::create_folder(&own)?;
        let name = output_name(id);
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).write(true);
        let file = disk::private(&mut options).open(own.join(&name))?;
        Ok((name, file))
    }

    /// A record is told, and will be on the disk in a moment.
    pub(crate) fn note(&self, record: &JobRecord) {
        self.told().insert(record.id.clone(), record.clone());
    }

    fn told(&self) -> MutexGuard<'_, BTreeMap<Text, JobRecord>> {
        let told = self.inner.told.lock();
        told.unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a record on the disk, in one step. It may block.
    ///
    /// # Errors
    /// As the system says; the record before is there then. `InvalidInput` if the job's name can't name a file.
    pub fn keep(&self, record: &JobRecord) -> io::Result<()> {
        if !is_job_id(&record.id) {
            let why = format!("{:?} can't name a job", record.id);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let own = self.own();
        disk::create_folder(&own)?;
        disk::replace(&self.record(&record.id), &own, &record::write(record))
    }

    /// Removes the record of a job of this process, and what it wrote. What isn't there is no fault. It may block.
    ///
    /// # Errors
    /// As the system says.
    pub fn forget(&self, id: &str) -> io::Result<()> {
        self.told().remove(id);
        remove(&self.record(id))?;
        remove(&self.own().join(output_name(id)))
    }

    /// The newest job of this name, of whatever process of the session, and the file that it writes to. It may block.
    pub(crate) fn find(&self, id: &str) -> Option<(JobRecord, PathBuf)> {
        if !is_job_id(id) {
            return None;
        }
        let own = self.told().get(id).cloned();
        if let Some(record) = own {
            return Some((record, self.own().join(output_name(id))));
        }
        let earlier = self.earlier().ok()?;
        let record = earlier.records.into_iter().rev().find(|it| *it.id == *id)?;
        let folder = self.inner.folder.join(&*record.generation);
        Some((record, folder.join(output_name(id))))
    }

    /// The records of earlier processes, the oldest first, at most [`MOST_RECORDS`]: the newest. One that wasn't over was
    /// interrupted. Files that can't be read as records are told of, and left as they are. It may block.
    ///
    /// # Errors
    /// As the system says of the folder.
    pub fn earlier(&self) -> io::Result<Earlier> {
        let mut earlier = Earlier::default();
        for folder in entries(&self.inner.folder)? {
            let name = folder.file_name().map(|name| name.to_string_lossy());
            let named = name
                .is_some_and(|name| valid_job_component(&name) && *name != *self.inner.generation);
            if !named || !folder.is_dir() {
                continue;
            }
            for file in entries(&folder)? {
                if file.extension().is_some_and(|it| it == "json") {
                    match read(&file) {
                        Ok(record) => earlier.records.push(record),
                        Err(why) => earlier.damaged.push((file, why)),
                    }
                }
            }
        }
        earlier
            .records
            .sort_by(|a, b| (a.times_ms[0], a.job, &a.id).cmp(&(b.times_ms[0], b.job, &b.id)));
        let most = earlier.records.len().saturating_sub(MOST_RECORDS);
        earlier.records.drain(..most);
        Ok(earlier)
    }
}

/// What earlier processes left.
#[derive(Debug, Default)]
pub struct Earlier {
    /// Their jobs.
    pub records: Vec<JobRecord>,
    /// Files that aren't records, and why.
    pub damaged: Vec<(PathBuf, String)>,
}

/// One record of an earlier process.
fn read(path: &Path) -> Result<JobRecord, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > RECORD_MAX {
        return Err(format!("its {size} bytes are more than {RECORD_MAX}"));
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let mut record = record::read(&bytes)?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy());
    if stem.as_deref() != Some(&*job_storage_name(&record.id)) {
        return Err(format!("it is the record of {:?}", record.id));
    }
    if !record.state.is_over() {
        record.state = JobState::Interrupted;
        record.revision = record.revision.saturating_add(1);
    }
    Ok(record)
}

/// What is in a folder, in the order of names; nothing if there is none.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let list = match fs::read_dir(folder) {
        Ok(list) => list,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths = list
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn output_name(id: &str) -> String {
    format!("{}.out", job_storage_name(id))
}
