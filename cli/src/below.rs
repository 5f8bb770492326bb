//! Nested runs: the agents that a model hands tasks to, and what is kept of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turnwire::protocol::openseek::child_session_id;
use turnwire::session::tree::{MakeRun, NewRun, RunRequest};
use turnwire::vocab::{RunId, Text};
use turnwire_io::store::{Error, Part, Store, Writer};

/// What such an agent is told besides.
const HELPER: &str = "\n\nAnother agent has handed you a task; no person reads along. Your last message is your report to \
    it, and all that it learns of your work: say in it what you did, what you found, and what is left.";

/// Makes the agents that a model hands tasks to: as the one that asks, but for whom they work.
#[derive(Clone, Debug)]
pub struct Helpers {
    /// Where what they say is kept, if it is.
    pub below: Option<Below>,
}

impl MakeRun for Helpers {
    fn make_run(&mut self, request: &RunRequest<'_>) -> Result<NewRun, Text> {
        let mut made = request.like_parent()?;
        if request.depth == 1 {
            let system = made.config.system.as_deref().unwrap_or_default();
            made.config.system = Some(format!("{system}{HELPER}").trim().into());
        }
        // Runs are numbered below 2^24.
        let number = u32::try_from(request.run.0).unwrap_or(u32::MAX);
        let id = child_session_id(&request.info().session, number);
        made.info.session = id.as_str().into();
        if let Some(below) = &self.below {
            made.kept = below.name(request.run, &id);
        }
        Ok(made)
    }
}

/// The sessions of the nested runs of the session that is open. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Below(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Where the session that is open is kept; `None`: nowhere.
    store: Option<Store>,
    project: String,
    runs: BTreeMap<RunId, Child>,
}

#[derive(Debug)]
struct Child {
    id: String,
    store: Store,
    writer: Arc<Mutex<Writer>>,
}

impl Below {
    /// Of a session of this project.
    pub fn new(store: &Store, project: &str) -> Below {
        Below(Arc::new(Mutex::new(State {
            store: Some(store.clone()),
            project: project.to_owned(),
            runs: BTreeMap::new(),
        })))
    }

    /// Another session is open, that is kept in this folder, or nowhere.
    pub fn go_to(&self, folder: Option<&Path>) {
        self.open().store = folder.map(|folder| Store::at(folder.to_owned()));
    }

    /// The last run that was kept below this session by any process. It may block.
    ///
    /// # Errors
    /// [`Error`] if the folder can't be read.
    pub fn last(&self, session: &str) -> Result<RunId, Error> {
        let store = self.open().store.clone();
        let last = store.map_or(Ok(0), |store| store.last_below(session))?;
        Ok(RunId(last.into()))
    }

    /// A run begins, as the session of this id. `false`: it isn't kept.
    fn name(&self, run: RunId, id: &str) -> bool {
        let mut state = self.open();
        let Some(store) = state.store.clone() else {
            return false;
        };
        match store.create_below(id, &state.project, crate::keep::unix_ms()) {
            Ok(writer) => {
                let child = Child {
                    id: id.to_owned(),
                    store,
                    writer: Arc::new(Mutex::new(writer)),
                };
                state.runs.insert(run, child);
                true
            }
            Err(error) => {
                crate::say::line(format_args!("a nested run isn't kept: {error}"));
                false
            }
        }
    }

    /// Saves what a run says.
    pub fn writer(&self, run: RunId) -> Option<Arc<Mutex<Writer>>> {
        self.open().runs.get(&run).map(|child| child.writer.clone())
    }

    /// The transcript of a run of this process, by its number.
    pub fn of_run(&self, run: RunId) -> Option<Kept> {
        self.open().runs.get(&run).and_then(Child::kept)
    }

    /// The transcript of the run of this process that is kept in this file.
    pub fn of_file(&self, file: &str) -> Option<Kept> {
        let state = self.open();
        let mut all = state.runs.values().filter_map(Child::kept);
        all.find(|kept| kept.file == file)
    }

    fn open(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Child {
    fn kept(&self) -> Option<Kept> {
        let path = self.store.transcript_of(&self.id)?;
        Some(Kept {
            id: self.id.clone(),
            store: self.store.clone(),
            file: path.to_str()?.to_owned(),
        })
    }
}

/// The transcript of a run.
#[derive(Debug)]
pub struct Kept {
    id: String,
    store: Store,
    /// Where it is.
    pub file: String,
}

impl Kept {
    /// Reads on in it. It may block.
    ///
    /// # Errors
    /// As [`Store::read_from`].
    pub fn read(&self, from: u64) -> Result<Part, Error> {
        self.store.read_from(&self.id, from)
    }
}
