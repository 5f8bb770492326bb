//! Which projects a person trusts, and the approval mode saved for each.
//!
//! One TOML file in the user's state folder, replaced as a whole: written beside it, flushed to the disk, then
//! renamed, under a lock that all processes of the user take.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use turnwire_io::disk;

use crate::say::Stop;
use crate::settings::file;
use crate::settings::values::Approval;

/// How long another process may hold the lock. It is held for one small write.
const LOCK_LIMIT: Duration = Duration::from_secs(5);

/// The list of trusted projects.
#[derive(Clone, Debug)]
pub struct Trust {
    path: PathBuf,
}

/// What is remembered of one project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Project {
    /// Its folder, absolute, with no symbolic link in it.
    root: String,
    /// The mode that was chosen for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<String>,
    /// The text of its settings file when it was trusted; `None` when it had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<String>,
}

/// The file. Its first version; another one isn't touched.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    version: u32,
    #[serde(default, rename = "project", skip_serializing_if = "Vec::is_empty")]
    projects: Vec<Project>,
}

/// What the list says of a project as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is trusted, with the settings that it has; perhaps with a saved mode.
    Trusted(Option<Approval>),
    /// It was trusted with other settings than it has now.
    Changed,
    /// Nobody trusts it.
    Unknown,
}

impl Trust {
    /// The list at this path. The file need not exist.
    pub fn at(path: PathBuf) -> Trust {
        Trust { path }
    }

    /// Looks a project up. `settings` is the text of its settings file now.
    ///
    /// # Errors
    /// [`Stop::Settings`] if the list can't be read.
    pub fn verdict(&self, root: &Path, settings: Option<&str>) -> Result<Verdict, Stop> {
        let list = self.read()?;
        let Some(project) = list
            .projects
            .iter()
            .find(|project| Path::new(&project.root) == root)
        else {
            return Ok(Verdict::Unknown);
        };
        // An agent at work in the project can write that file: only the text that a person saw counts.
        if project.settings.as_deref() != settings {
            return Ok(Verdict::Changed);
        }
        let approval = match project.approval.as_deref() {
            None => None,
            Some(word) => Some(
                <Approval as clap::ValueEnum>::from_str(word, false).map_err(|_| {
                    Stop::Settings(format!(
                        "{}: unknown approval mode {word:?}: auto|ask|readonly",
                        self.path.display()
                    ))
                })?,
            ),
        };
        Ok(Verdict::Trusted(approval))
    }

    /// Trusts a project with the settings it has now. A mode saved for it stays.
    ///
    /// # Errors
    /// [`Stop`] if the list can't be read or written, or the path isn't text.
    pub fn record(&self, root: &Path, settings: Option<&str>) -> Result<(), Stop> {
        let root = as_text(root)?;
        self.change(|list| {
            let settings = settings.map(str::to_owned);
            match list
                .projects
                .iter_mut()
                .find(|project| project.root == root)
            {
                Some(project) => project.settings = settings,
                None => list.projects.push(Project {
                    root: root.to_owned(),
                    approval: None,
                    settings,
                }),
            }
            Ok(())
        })
    }

    /// Saves the approval mode of a trusted project, durably: once this returns it survives a crash.
    ///
    /// # Errors
    /// [`Stop`] if the project isn't trusted, or the list can't be read or written. The saved mode is then unchanged.
    pub fn store_approval_mode(&self, root: &Path, mode: Approval) -> Result<(), Stop> {
        let root = as_text(root)?;
        self.change(|list| {
            match list
                .projects
                .iter_mut()
                .find(|project| project.root == root)
            {
                Some(project) => {
                    project.approval = Some(mode.word().to_owned());
                    Ok(())
                }
                None => Err(Stop::Untrusted(format!(
                    "the project {root} isn't trusted, so no mode is saved for it"
                ))),
            }
        })
    }

    fn read(&self) -> Result<List, Stop> {
        let Some(text) = file::text(&self.path)? else {
            return Ok(List {
                version: 1,
                projects: Vec::new(),
            });
        };
        let list: List = file::parse(&self.path, &text)?;
        if list.version != 1 {
            let path = self.path.display();
            return Err(Stop::Settings(format!(
                "{path}: version {} is newer than this program",
                list.version
            )));
        }
        Ok(list)
    }

    fn change(&self, edit: impl FnOnce(&mut List) -> Result<(), Stop>) -> Result<(), Stop> {
        let failed =
            |error: std::io::Error| Stop::Failed(format!("{}: {error}", self.path.display()));
        let folder = self.path.parent().unwrap_or(Path::new("."));
        disk::create_folder(folder).map_err(failed)?;
        let _lock = disk::lock(&self.path.with_extension("lock"), LOCK_LIMIT).map_err(failed)?;
        let mut list = self.read()?;
        edit(&mut list)?;
        let text = toml::to_string(&list)
            .map_err(|error| Stop::Failed(format!("{}: {error}", self.path.display())))?;
        if text.len() as u64 > file::MOST_BYTES {
            return Err(Stop::Failed(format!(
                "{}: the list of trusted projects is full",
                self.path.display()
            )));
        }
        disk::replace(&self.path, folder, text.as_bytes()).map_err(failed)
    }
}

fn as_text(root: &Path) -> Result<&str, Stop> {
    root.to_str().ok_or_else(|| {
        Stop::Settings(format!(
            "the path {} isn't UTF-8 text, so it can't be trusted",
            root.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn fresh() -> (tempfile::TempDir, Trust) {
        let folder = tempfile::tempdir().unwrap();
        let trust = Trust::at(folder.path().join("deep/er/trust.toml"));
        (folder, trust)
    }

    #[test]
    fn trust_is_for_one_project_and_for_the_settings_it_had() {
        let (_folder, trust) = fresh();
        let (here, there) = (Path::new("/p/here"), Path::new("/p/there"));
        assert_eq!(trust.verdict(here, None).unwrap(), Verdict::Unknown);
        trust.record(here, None).unwrap();
        assert_eq!(trust.verdict(here, None).unwrap(), Verdict::Trusted(None));
        assert_eq!(trust.verdict(there, None).unwrap(), Verdict::Unknown);
        assert_eq!(
            trust.verdict(here, Some("log = 'info'")).unwrap(),
            Verdict::Changed
        );
        trust.record(here, Some("log = 'info'\n")).unwrap();
        assert_eq!(
            trust.verdict(here, Some("log = 'info'\n")).unwrap(),
            Verdict::Trusted(None)
        );
        assert_eq!(trust.verdict(here, None).unwrap(), Verdict::Changed);
    }

    #[test]
    fn om_07_a_mode_is_saved_for_a_trusted_project_alone() {
        let (_folder, trust) = fresh();
        let (here, there) = (Path::new("/p/here"), Path::new("/p/there"));
        assert!(matches!(
            trust.store_approval_mode(here, Approval::Auto),
            Err(Stop::Untrusted(_))
        ));
        trust.record(here, None).unwrap();
        trust.record(there, None).unwrap();
        trust.store_approval_mode(here, Approval::Readonly).unwrap();
        trust.store_approval_mode(here, Approval::Auto).unwrap();
        assert_eq!(
            trust.verdict(here, None).unwrap(),
            Verdict::Trusted(Some(Approval::Auto))
        );
        assert_eq!(trust.verdict(there, None).unwrap(), Verdict::Trusted(None));
        // Trusted again, the mode stays.
        trust.record(here, Some("x")).unwrap();
        assert_eq!(
            trust.verdict(here, Some("x")).unwrap(),
            Verdict::Trusted(Some(Approval::Auto))
        );
    }

    #[test]
    fn om_07_a_failed_save_says_so_and_changes_nothing() {
        let (folder, trust) = fresh();
        let here = Path::new("/p/here");
        trust.record(here, None).unwrap();
        let path = folder.path().join("deep/er/trust.toml");
        let before = fs::read(&path).unwrap();
        // A folder in the place of the lock: no write can begin.
        fs::remove_file(path.with_extension("lock")).unwrap();
        fs::create_dir(path.with_extension("lock")).unwrap();
        let fault = trust.store_approval_mode(here, Approval::Auto).unwrap_err();
        assert!(fault.to_string().contains("trust.toml"), "{fault}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_list_that_cant_be_read_is_an_error_and_is_left_alone() {
        let (folder, trust) = fresh();
        let path = folder.path().join("deep/er/trust.toml");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        for text in [
            "version = 2\n",
            "version = 1\nproject = 7\n",
            "?",
            "[[project]]\nroot = '/p'\n",
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(
                trust.verdict(Path::new("/p"), None).unwrap_err().code(),
                2,
                "{text}"
            );
            assert!(trust.record(Path::new("/p"), None).is_err());
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        fs::write(
            &path,
            "version = 1\n[[project]]\nroot = '/p'\napproval = 'yolo'\n",
        )
        .unwrap();
        assert!(trust.verdict(Path::new("/p"), None).is_err());
    }

    #[test]
    fn writers_at_the_same_time_lose_nothing() {
        let (_folder, trust) = fresh();
        let names: Vec<String> = (0..16).map(|n| format!("/p/{n}")).collect();
        std::thread::scope(|scope| {
            for name in &names {
                let trust = &trust;
                scope.spawn(move || trust.record(Path::new(name), None).unwrap());
            }
        });
        for name in &names {
            assert_eq!(
                trust.verdict(Path::new(name), None).unwrap(),
                Verdict::Trusted(None)
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_list_is_for_the_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, trust) = fresh();
        trust.record(Path::new("/p"), None).unwrap();
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o077;
        assert_eq!(mode(folder.path().join("deep/er/trust.toml")), 0);
        assert_eq!(mode(folder.path().join("deep/er")), 0);
    }
}
