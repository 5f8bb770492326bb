//! Other sessions: made, opened, or copied, while one is open.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnwire::vocab::{Message, OpenBody, OpenFault, OtherSession};
use turnwire_io::store::{Entry, Resumed, Store, Writer};
use turnwire_io::{OpenJob, Opened, Sessions};
use turnwire_media::Blobs;

use crate::below::Below;
use crate::binding;
use crate::ids::IdKind;
use crate::keep::{Kept, of_earlier, say_torn, unix_ms};
use crate::start::Start;

/// Where the sessions of a program come from that isn't started again for each.
#[derive(Debug)]
pub struct Others {
    start: Start,
    ids: IdKind,
    /// The nested runs, if they are kept.
    below: Option<Below>,
}

impl Others {
    /// Sessions of this start, with ids of this kind.
    pub fn new(start: Start, ids: IdKind, below: Option<Below>) -> Others {
        Others { start, ids, below }
    }
}

impl Sessions for Others {
    fn prepare(&mut self, which: &OpenBody<'_>, from: Option<&str>) -> OpenJob {
        let opening = Opening {
            start: self.start.clone(),
            ids: self.ids,
            below: self.below.clone(),
            from: from.map(PathBuf::from),
        };
        match which {
            OpenBody::New { parent } => {
                let parent = parent.map(str::to_owned);
                Box::new(move || opening.fresh(parent, Vec::new()))
            }
            OpenBody::Open(folder) => {
                let folder = PathBuf::from(*folder);
                Box::new(move || opening.in_folder(&folder))
            }
            OpenBody::Switch(path) => {
                let path = PathBuf::from(*path);
                Box::new(move || opening.of_file(&path))
            }
            OpenBody::Copy(messages) => {
                let messages = messages.to_vec();
                let parent = from.map(str::to_owned);
                Box::new(move || opening.fresh(parent, messages))
            }
        }
    }
}

/// What opening one takes.
struct Opening {
    start: Start,
    ids: IdKind,
    below: Option<Below>,
    /// The file of the session that is open.
    from: Option<PathBuf>,
}

fn failed(why: impl Display) -> OpenFault {
    OpenFault::Failed(why.to_string().into())
}

impl Opening {
    /// The project's name in the store; `None`: nothing is kept.
    fn project(&self) -> Option<&str> {
        self.start.store.as_ref()?;
        self.start.root.to_str()
    }

    /// A new one, beside the one that is open. What it begins with is safe before it is there.
    fn fresh(
        self,
        parent: Option<String>,
        messages: Vec<Arc<Message>>,
    ) -> Result<Opened, OpenFault> {
        let folder = self.from.as_deref().and_then(Path::parent);
        let store = match folder {
            Some(folder) => Some(Store::at(folder.to_owned())),
            None => self.start.store.clone(),
        };
        self.fresh_in(store, parent, messages)
    }

    fn fresh_in(
        self,
        store: Option<Store>,
        parent: Option<String>,
        messages: Vec<Arc<Message>>,
    ) -> Result<Opened, OpenFault> {
        let now_ms = unix_ms();
        let id = self.ids.make(now_ms).map_err(failed)?;
        let messages: Vec<_> = messages.into_iter().map(of_earlier).collect();
        let mut writer = match (store, self.project()) {
            (Some(store), Some(project)) => {
                Some(store.create(&id, project, now_ms).map_err(failed)?)
            }
            (_, None) | (None, _) => None,
        };
        if let Some(writer) = &mut writer {
            writer.bind(binding::of(&self.start.settings));
            if let Some(parent) = parent {
                writer.descend(parent);
            }
            if let Some(from) = self.from.as_deref().filter(|_| !messages.is_empty()) {
                let [from, to] =
                    [from, &writer.path()].map(|path: &Path| path.with_extension("media"));
                if from.exists() {
                    Blobs::copy(&from, &to).map_err(failed)?;
                }
            }
            writer.save(&messages, true, now_ms).map_err(failed)?;
        }
        let other = OtherSession {
            session: id.as_str().into(),
            file: writer.as_ref().map(file),
            continued: !messages.is_empty(),
            history: messages,
            ..OtherSession::default()
        };
        self.opened(other, writer)
    }

    /// The last session of this project in a folder, or a new one there.
    fn in_folder(self, folder: &Path) -> Result<Opened, OpenFault> {
        let Some(project) = self.project().map(str::to_owned) else {
            return Err(OpenFault::Unkept);
        };
        let store = Store::at(std::path::absolute(folder).map_err(failed)?);
        match store.latest(&project).map_err(failed)? {
            Some(entry) => self.resumed(&store, entry),
            None => self.fresh_in(Some(store), None, Vec::new()),
        }
    }

    /// The session of a transcript.
    fn of_file(self, path: &Path) -> Result<Opened, OpenFault> {
        let path = std::path::absolute(path).map_err(failed)?;
        let found = Store::of_transcript(&path).map_err(failed)?;
        let Some((store, entry)) = found else {
            return Err(OpenFault::Missing);
        };
        let Some(project) = self.project() else {
            return Err(OpenFault::Unkept);
        };
        if entry.project != project {
            return Err(failed(format_args!(
                "session {} belongs to another project, {}",
                entry.id, entry.project
            )));
        }
        self.resumed(&store, entry)
    }

    fn resumed(self, store: &Store, entry: Entry) -> Result<Opened, OpenFault> {
        let path = store.folder().join(format!("{}.jsonl", entry.id));
        if self.is_open(&path) {
            let other = OtherSession {
                session: entry.id.as_str().into(),
                same: true,
                ..OtherSession::default()
            };
            return Ok(Opened {
                other: Box::new(other),
                durable: None,
            });
        }
        let resumed = store.resume(entry).map_err(failed)?;
        say_torn(&resumed);
        let Resumed {
            writer,
            history,
            name,
            ..
        } = resumed;
        let other = OtherSession {
            session: writer.id().into(),
            name: name.map(Into::into),
            file: Some(file(&writer)),
            continued: true,
            history: history.into_iter().map(of_earlier).collect(),
            ..OtherSession::default()
        };
        self.opened(other, Some(writer))
    }

    /// Whether this is the file of the session that is open.
    fn is_open(&self, path: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        let from = self.from.as_deref().and_then(real);
        from.is_some() && from == real(path)
    }

    fn opened(self, mut other: OtherSession, writer: Option<Writer>) -> Result<Opened, OpenFault> {
        if let Some(below) = &self.below {
            let path = writer.as_ref().map(Writer::path);
            below.go_to(path.as_deref().and_then(Path::parent));
            other.last_run = Some(below.last(&other.session).map_err(failed)?);
        }
        Ok(Opened {
            other: Box::new(other),
            durable: Some(Box::new(Kept::new(self.start, writer, self.below))),
        })
    }
}

/// The file of a session, as hosts are told of it.
pub fn file(writer: &Writer) -> turnwire::vocab::Text {
    writer.path().to_string_lossy().into()
}
