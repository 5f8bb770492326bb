//! What is kept of a session: its messages, and the approval mode of its project.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use turnwire::vocab::{
    ApprovalMode, JobRecord, Message, PermissionUpdate, RunId, Setting, UnapprovedSource, WriteBody,
};
use turnwire_io::jobs::JobPlace;
use turnwire_io::store::{Resumed, Writer};
use turnwire_io::tools::{Bounds, Snapshots};
use turnwire_io::{Durable, WriteJob};
use turnwire_media::Blobs;

use crate::args::Named;
use crate::below::Below;
use crate::binding;
use crate::say::{self, Stop};
use crate::settings::values::Approval;
use crate::start::Start;

/// Why a mode isn't kept that the list of projects has no word for.
const UNSAVED: &str = "this mode can't be saved";

/// A session, new or going on.
#[derive(Debug)]
pub struct Begun {
    /// Its id.
    pub id: String,
    /// Whether it goes on.
    pub continued: bool,
    /// Its name for people.
    pub name: Option<String>,
    /// What was said in it before.
    pub history: Vec<Arc<Message>>,
    /// Saves what will be said; `None` if nothing is kept.
    pub writer: Option<Writer>,
}

/// Begins a session with a new id (`made`, unless it is named), or takes over the one that was saved last in this project.
/// If it is `bound`, only one that was begun with the provider of this start.
///
/// # Errors
/// [`Stop::Session`] if one should go on and can't. Nothing has been written to stdout.
pub fn begin(
    start: &Start,
    named: &Named,
    made: &str,
    bound: bool,
    now_ms: u64,
) -> Result<Begun, Stop> {
    let binding = binding::of(&start.settings);
    let project = start.root.to_str();
    let id = match named {
        Named::New(id) | Named::Copy { new: Some(id), .. } => id,
        Named::Any | Named::Resume(_) | Named::Copy { new: None, .. } => made,
    };
    let go_on = start.go_on || !matches!(named, Named::Any | Named::New(_));
    let (Some(store), Some(project)) = (&start.store, project) else {
        let why = match project {
            None => format!("the path {} isn't UTF-8 text", start.root.display()),
            Some(_) => "sessions aren't kept here, or there is no home folder".to_owned(),
        };
        if go_on {
            return Err(Stop::Session(format!("no session can go on: {why}")));
        }
        if start.store.is_some() {
            say::line(format_args!("the session isn't kept: {why}"));
        }
        return Ok(Begun {
            id: id.to_owned(),
            continued: false,
            name: None,
            history: Vec::new(),
            writer: None,
        });
    };
    let stop =
        |error: &dyn std::fmt::Display| Stop::Session(format!("no session can go on: {error}"));
    if *id != *made
        && let Some(taken) = store
            .list()
            .map_err(|error| stop(&error))?
            .iter()
            .find(|it| it.id == *id)
    {
        let text = format!(
            "the session id {} is in use, for {}",
            taken.id, taken.project
        );
        return Err(Stop::Session(text));
    }
    if !go_on {
        let mut writer = store
            .create(id, project, now_ms)
            .map_err(|error| stop(&error))?;
        writer.bind(binding);
        return Ok(Begun {
            id: id.to_owned(),
            continued: false,
            name: None,
            history: Vec::new(),
            writer: Some(writer),
        });
    }
    let wanted = match named {
        Named::Resume(id) | Named::Copy { id: Some(id), .. } => Some(id),
        Named::Copy { id: None, .. } | Named::Any | Named::New(_) => None,
    };
    let found = match wanted {
        None => store.latest(project),
        Some(id) => store.find(project, id),
    };
    let Some(entry) = found.map_err(|error| stop(&error))? else {
        return Err(match wanted {
            None => stop(&format_args!("none was kept in {project} so far")),
            Some(id) => stop(&format_args!("none with the id {id} was kept in {project}")),
        });
    };
    let resumed = store.resume(entry).map_err(|error| stop(&error))?;
    if bound {
        binding::check(resumed.writer.id(), resumed.binding.as_ref(), &binding)?;
    }
    say_torn(&resumed);
    let history: Vec<_> = resumed.history.into_iter().map(of_earlier).collect();
    if matches!(named, Named::Copy { .. }) {
        let attachments = resumed.writer.path().with_extension("media");
        let mut writer = store
            .create(id, project, now_ms)
            .map_err(|error| stop(&error))?;
        Blobs::copy(&attachments, &writer.path().with_extension("media"))
            .map_err(|error| stop(&error))?;
        // The other's lock is no longer needed: what is said here goes into a file of its own.
        drop(resumed.writer);
        writer.bind(binding);
        writer
            .save(&history, true, now_ms)
            .map_err(|error| stop(&error))?;
        return Ok(Begun {
            id: id.to_owned(),
            continued: true,
            name: None,
            history,
            writer: Some(writer),
        });
    }
    Ok(Begun {
        id: resumed.writer.id().to_owned(),
        continued: true,
        name: resumed.name,
        history,
        writer: Some(resumed.writer),
    })
}

/// Says what a process left half-written that died.
pub fn say_torn(resumed: &Resumed) {
    if resumed.torn > 0 {
        say::line(format_args!(
            "session {}: a process ended while it was saving a message; its {} bytes were cut off",
            resumed.writer.id(),
            resumed.torn
        ));
    }
}

/// A message without the number of its prompt: this process counts from the beginning.
pub fn of_earlier(message: Arc<Message>) -> Arc<Message> {
    let mut message = Arc::unwrap_or_clone(message);
    message.prompt = None;
    Arc::new(message)
}

/// Where files are put aside before the tools change them: beside what was said, and only where that is kept.
pub fn snapshots(begun: &Begun) -> Option<Snapshots> {
    let folder = begun.writer.as_ref()?.path().with_extension("files");
    let ids = begun.history.iter().map(|message| message.id);
    let newest = ids.filter(|id| !id.is_made_up()).map(|id| id.0).max();
    let newest = newest.unwrap_or(0);
    Some(Snapshots::at(folder, newest, Bounds::default()))
}

/// The background jobs of a session.
#[derive(Debug)]
pub struct Jobs {
    /// Where they are kept: beside what was said, or in a folder that goes with the session.
    pub place: JobPlace,
    /// Those of the processes before this one, which have ended with them at the latest.
    pub earlier: Vec<JobRecord>,
}

/// The background jobs of a session that was begun; `generation` is this process's name.
///
/// # Errors
/// [`Stop::Session`] if there is no place for them, or what is there can't be looked at.
pub fn jobs(begun: &Begun, generation: &str) -> Result<Jobs, Stop> {
    let stop =
        |error: std::io::Error| Stop::Session(format!("no place for background jobs: {error}"));
    let place = match &begun.writer {
        Some(writer) => JobPlace::kept(writer.path().with_extension("jobs"), generation),
        None => JobPlace::temporary(generation),
    };
    let place = place.map_err(stop)?;
    let earlier = place.earlier().map_err(stop)?;
    for (file, why) in &earlier.damaged {
        say::line(format_args!(
            "{}: this record of a background job can't be read: {why}",
            file.display()
        ));
    }
    Ok(Jobs {
        place,
        earlier: earlier.records,
    })
}

/// Makes durable what a session asks for. The session stays this process's own as long as this lives.
#[derive(Debug)]
pub struct Kept {
    start: Start,
    writer: Option<Arc<Mutex<Writer>>>,
    /// The nested runs, if they are kept.
    below: Option<Below>,
}

impl Kept {
    /// For a session that was begun.
    pub fn new(start: Start, writer: Option<Writer>, below: Option<Below>) -> Kept {
        Kept {
            start,
            writer: writer.map(|writer| Arc::new(Mutex::new(writer))),
            below,
        }
    }

    fn save(&self, run: RunId, messages: &[Arc<Message>], whole: bool) -> WriteJob {
        let writer = match run {
            RunId::MAIN => self.writer.clone(),
            run => self.below.as_ref().and_then(|below| below.writer(run)),
        };
        let Some(writer) = writer else {
            return nothing();
        };
        let messages = messages.to_vec();
        Box::new(move || {
            writer
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .save(&messages, whole, unix_ms())
                .map_err(|error| error.to_string())
        })
    }

    fn name(&self, name: &str) -> WriteJob {
        let Some(writer) = self.writer.clone() else {
            return nothing();
        };
        let name = name.to_owned();
        Box::new(move || {
            writer
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .rename(&name, unix_ms())
                .map_err(|error| error.to_string())
        })
    }

    fn approval(&self, source: &UnapprovedSource) -> WriteJob {
        let approvals = self.start.approvals.clone();
        let files = approvals.give(source);
        Box::new(move || approvals.record(&files).map_err(|stop| stop.to_string()))
    }

    /// What was allowed for good, and the last mode that is to be kept.
    fn permits(&self, updates: &[PermissionUpdate]) -> WriteJob {
        let (start, updates) = (self.start.clone(), updates.to_vec());
        let mut modes = updates.iter().rev().filter_map(|update| match update {
            PermissionUpdate::Mode { mode, keep } if keep.is_stored() => Some(mode.clone()),
            PermissionUpdate::Mode { .. }
            | PermissionUpdate::Rules { .. }
            | PermissionUpdate::Directories { .. } => None,
        });
        let mode = modes.next();
        Box::new(move || {
            start.keep_permits(&updates)?;
            match mode.as_deref() {
                None => Ok(()),
                Some("auto") => start.store_approval_mode(Approval::Auto),
                Some("ask") => start.store_approval_mode(Approval::Ask),
                Some("read_only") => start.store_approval_mode(Approval::Readonly),
                Some(_) => Err(UNSAVED.to_owned()),
            }
        })
    }

    fn mode(&self, mode: &ApprovalMode) -> WriteJob {
        let mode = match mode {
            ApprovalMode::Auto => Approval::Auto,
            ApprovalMode::Ask => Approval::Ask,
            ApprovalMode::ReadOnly => Approval::Readonly,
            ApprovalMode::AcceptEdits
            | ApprovalMode::Plan
            | ApprovalMode::Never
            | ApprovalMode::Other(_) => return Box::new(|| Err(UNSAVED.to_owned())),
        };
        let start = self.start.clone();
        Box::new(move || start.store_approval_mode(mode))
    }
}

impl Durable for Kept {
    fn prepare(&mut self, body: &WriteBody<'_>) -> WriteJob {
        self.prepare_of(RunId::MAIN, body)
    }

    fn prepare_of(&mut self, run: RunId, body: &WriteBody<'_>) -> WriteJob {
        match body {
            WriteBody::Prompt(messages) | WriteBody::Refusal(messages) => {
                self.save(run, messages, false)
            }
            WriteBody::Turn(messages) | WriteBody::Beside(messages) => {
                self.save(run, messages, true)
            }
            // A run follows the session, whose mode it is.
            WriteBody::Setting(_) if run != RunId::MAIN => nothing(),
            WriteBody::Setting(Setting::Approvals(mode)) => self.mode(mode),
            WriteBody::Setting(Setting::Name(name)) => self.name(name),
            WriteBody::Approval(source) => self.approval(source),
            WriteBody::Permissions(updates) => self.permits(updates),
            // Other settings are kept nowhere.
            WriteBody::Setting(_) | _ => nothing(),
        }
    }
}

fn nothing() -> WriteJob {
    Box::new(|| Ok(()))
}

/// Now, in milliseconds since the Unix epoch.
pub fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| {
            u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
        })
}
