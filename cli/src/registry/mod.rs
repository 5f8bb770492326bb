//! `auth.json`: the providers that a user has, with what lets one in. [`PAGE`] describes it.
//!
//! It is the one file with keys, so nothing that stands in it is repeated in an error: a place is enough.

mod entry;
mod read;
#[cfg(test)]
mod tests;

use std::path::Path;

use turnwire::protocol::agentx::providers::Listed;
use turnwire_io::Secret;

use crate::folders::Folders;
use crate::say::Stop;
use crate::settings::{Env, file};

pub use entry::{Entry, Key};

/// The version of the file that is read.
pub const VERSION: u64 = 2;

/// The page that says what stands in it; `docs/providers.md` is the same.
pub const PAGE: &str = include_str!("page.md");

/// The same as a JSON Schema, as far as one can say it.
pub const SCHEMA: &str = include_str!("schema.json");

/// Names the file, where a command line is another program's.
const FILE_VARIABLE: &str = "TURNWIRE_AUTH_FILE";

/// Reads the user's providers: from the file that a flag or [`FILE_VARIABLE`] names, which has to be there, else from
/// the user's folder.
///
/// # Errors
/// As [`Registry::read`].
pub fn read(
    named: Option<&Path>,
    folders: Option<&Folders>,
    env: Env<'_>,
) -> Result<Option<Registry>, Stop> {
    let of_env = env(FILE_VARIABLE).filter(|path| !path.is_empty());
    match (
        named.map(Path::to_owned).or(of_env.map(Into::into)),
        folders,
    ) {
        (Some(path), _) => Registry::read(&path)?
            .map(Some)
            .ok_or_else(|| Stop::Settings(format!("{}: there is no such file", path.display()))),
        (None, Some(folders)) => Registry::read(&folders.providers()),
        (None, None) => Ok(None),
    }
}

/// The user's providers, in the file's order. There is at least one.
#[derive(Clone, Debug)]
pub struct Registry {
    entries: Vec<Entry>,
}

impl Registry {
    /// Reads the file; `None` if there is none.
    ///
    /// # Errors
    /// [`Stop::Settings`] with the place, and without a word of the file: it isn't what it must be, or it holds a key and
    /// others may read it.
    pub fn read(path: &Path) -> Result<Option<Registry>, Stop> {
        let Some(text) = file::text(path)? else {
            return Ok(None);
        };
        let registry = Registry::parse(path, &text)?;
        let holds_a_key = |entry: &Entry| matches!(entry.key, Some(Key::Literal(_)));
        if registry.entries.iter().any(holds_a_key) && is_open_to_others(path)? {
            return Err(Stop::Settings(format!(
                "{}: it holds a key, and others than its owner may read or write it; make it private (chmod 600)",
                path.display()
            )));
        }
        Ok(Some(registry))
    }

    fn parse(path: &Path, text: &str) -> Result<Registry, Stop> {
        let entries = read::entries(text).map_err(|fault| {
            let place = file::place(text, fault.at);
            Stop::Settings(format!("{}{place}: {}", path.display(), fault.why))
        })?;
        Ok(Registry { entries })
    }

    /// The one of this id.
    pub fn find(&self, id: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// The one that is taken where nobody chooses: the only one, or the one that the file says.
    pub fn default(&self) -> Option<&Entry> {
        match self.entries.as_slice() {
            [only] => Some(only),
            entries => entries.iter().find(|entry| entry.is_default),
        }
    }

    /// The environment variables that hold keys.
    pub fn key_variables(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|entry| match &entry.key {
            Some(Key::Variable(name)) => Some(name.as_str()),
            Some(Key::Literal(_)) | None => None,
        })
    }

    /// The keys that stand in the file itself.
    pub fn literal_keys(&self) -> impl Iterator<Item = &Secret> {
        self.entries.iter().filter_map(|entry| match &entry.key {
            Some(Key::Literal(key)) => Some(key),
            Some(Key::Variable(_)) | None => None,
        })
    }

    /// All keys that there are: those of the file, and those that its variables hold.
    pub fn keys(&self, env: Env<'_>) -> Vec<Secret> {
        let held = self.key_variables().filter_map(env);
        let held = held.filter_map(|value| Some(Secret::new(value.to_str()?.trim())));
        self.literal_keys().cloned().chain(held).collect()
    }

    /// What hosts may know of them.
    pub fn listed(&self) -> Vec<Listed> {
        self.entries.iter().map(Entry::listed).collect()
    }

    /// Why nothing can be taken without a choice.
    pub fn choose_one(&self) -> Stop {
        let ids: Vec<&str> = self.entries.iter().map(|entry| entry.id.as_str()).collect();
        Stop::Settings(format!(
            "there are several providers, and none of them is the default: choose one with --provider ({})",
            ids.join(", ")
        ))
    }
}

/// The key that a variable holds, or the file.
///
/// # Errors
/// [`Stop::Settings`] if the variable holds none, or one that can't be sent.
pub fn key(entry: &Entry, env: Env<'_>) -> Result<Option<Secret>, Stop> {
    match &entry.key {
        None => Ok(None),
        Some(Key::Literal(key)) => Ok(Some(key.clone())),
        Some(Key::Variable(name)) => crate::settings::key_of(name.as_str(), env).map(Some),
    }
}

/// Whether anybody but its owner may read or write the file.
#[cfg(unix)]
fn is_open_to_others(path: &Path) -> Result<bool, Stop> {
    use std::os::unix::fs::PermissionsExt as _;
    let found = std::fs::metadata(path)
        .map_err(|error| Stop::Settings(format!("{}: {error}", path.display())))?;
    Ok(found.permissions().mode() & 0o077 != 0)
}

/// Folders of users are private there.
#[cfg(not(unix))]
fn is_open_to_others(_path: &Path) -> Result<bool, Stop> {
    Ok(false)
}
