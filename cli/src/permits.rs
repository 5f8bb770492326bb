//! What a person has allowed for good when asked: permission rules, and folders that tools may use.
//!
//! One TOML file in the user's state folder, replaced as a whole under a lock, like the list of trusted projects. What
//! is said to be for the project stands here too, under its folder: nothing is written into the project.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use turnwire::vocab::{Keep, PermissionUpdate, Rule, RuleBehaviour, SetOp, Text};
use turnwire_io::disk;

use crate::say::Stop;
use crate::settings::file;

/// How long another process may hold the lock. It is held for one small write.
const LOCK_LIMIT: Duration = Duration::from_secs(5);

/// A rule that was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptRule {
    /// The project it is for; `None`: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    action: Action,
    tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
}

/// A folder that was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptFolder {
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Deny,
    Allow,
    Ask,
}

impl Action {
    fn of(word: &str) -> Option<Action> {
        Some(match word {
            "deny" => Action::Deny,
            "allow" => Action::Allow,
            "ask" => Action::Ask,
            _ => return None,
        })
    }

    fn behaviour(self) -> RuleBehaviour {
        match self {
            Action::Deny => RuleBehaviour::Deny,
            Action::Allow => RuleBehaviour::Allow,
            Action::Ask => RuleBehaviour::Ask,
        }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    version: u32,
    #[serde(default, rename = "rule", skip_serializing_if = "Vec::is_empty")]
    rules: Vec<KeptRule>,
    #[serde(default, rename = "folder", skip_serializing_if = "Vec::is_empty")]
    folders: Vec<KeptFolder>,
}

/// What holds in one project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    /// Rules, beside those of the settings.
    pub rules: Vec<Rule>,
    /// Folders that tools may use, beside the project's.
    pub folders: Vec<Text>,
}

/// Reads what holds in a project. The file need not exist.
///
/// # Errors
/// [`Stop::Settings`] if it can't be read.
pub fn of(path: &Path, root: &Path) -> Result<Permits, Stop> {
    let list = read(path)?;
    let here = |project: &Option<String>| {
        let mut project = project.iter();
        project.all(|project| Path::new(project) == root)
    };
    let rules = list.rules.iter().filter(|rule| here(&rule.project));
    let folders = list.folders.iter().filter(|folder| here(&folder.project));
    Ok(Permits {
        rules: rules
            .map(|rule| Rule {
                behaviour: rule.action.behaviour(),
                tool: rule.tool.as_str().into(),
                pattern: rule.pattern.as_deref().map(Into::into),
            })
            .collect(),
        folders: folders.map(|folder| folder.path.as_str().into()).collect(),
    })
}

/// Makes durable what of the updates is to be kept; modes are somebody else's. Once it returns it survives a crash.
///
/// # Errors
/// [`Stop`] if the file can't be read or written, or has no room. Nothing is kept then.
pub fn keep(path: &Path, root: &Path, updates: &[PermissionUpdate]) -> Result<(), Stop> {
    let kept = updates.iter().filter(|update| update.keep().is_stored());
    let kept: Vec<&PermissionUpdate> = kept
        .filter(|update| !matches!(update, PermissionUpdate::Mode { .. }))
        .collect();
    if kept.is_empty() {
        return Ok(());
    }
    let Some(root) = root.to_str() else {
        let text = format!("the path {} isn't UTF-8 text", root.display());
        return Err(Stop::Settings(text));
    };
    let failed = |error: std::io::Error| Stop::Failed(format!("{}: {error}", path.display()));
    let folder = path.parent().unwrap_or(Path::new("."));
    disk::create_folder(folder).map_err(failed)?;
    let _lock = disk::lock(&path.with_extension("lock"), LOCK_LIMIT).map_err(failed)?;
    let mut list = read(path)?;
    for update in kept {
        let project = match update.keep() {
            Keep::Project | Keep::Local => Some(root.to_owned()),
            Keep::User | Keep::Session | Keep::Arguments => None,
        };
        list.apply(update, &project);
    }
    let text = toml::to_string(&list)
        .map_err(|error| Stop::Failed(format!("{}: {error}", path.display())))?;
    if text.len() as u64 > file::MOST_BYTES {
        let text = format!("{}: there is no room for more rules", path.display());
        return Err(Stop::Failed(text));
    }
    disk::replace(path, folder, text.as_bytes()).map_err(failed)
}

impl List {
    fn apply(&mut self, update: &PermissionUpdate, project: &Option<String>) {
        match update {
            PermissionUpdate::Rules {
                op,
                behaviour,
                rules,
                ..
            } => {
                let Some(action) = Action::of(behaviour) else {
                    return;
                };
                let made = rules.iter().map(|(tool, pattern)| KeptRule {
                    project: project.clone(),
                    action,
                    tool: tool.to_string(),
                    pattern: pattern.as_deref().map(str::to_owned),
                });
                let alike = |rule: &KeptRule| rule.project == *project && rule.action == action;
                change(&mut self.rules, *op, made.collect(), alike);
            }
            PermissionUpdate::Directories { op, paths, .. } => {
                let made = paths.iter().map(|path| KeptFolder {
                    project: project.clone(),
                    path: path.to_string(),
                });
                let alike = |folder: &KeptFolder| folder.project == *project;
                change(&mut self.folders, *op, made.collect(), alike);
            }
            PermissionUpdate::Mode { .. } => {}
        }
    }
}

/// Changes a list; `alike` are those that a replacement takes the place of.
fn change<T: PartialEq>(list: &mut Vec<T>, op: SetOp, made: Vec<T>, alike: impl Fn(&T) -> bool) {
    match op {
        SetOp::Add => {}
        SetOp::Replace => list.retain(|old| !alike(old)),
        SetOp::Remove => return list.retain(|old| !made.contains(old)),
    }
    for new in made {
        if !list.contains(&new) {
            list.push(new);
        }
    }
}

fn read(path: &Path) -> Result<List, Stop> {
    let Some(text) = file::text(path)? else {
        return Ok(List {
            version: 1,
            ..List::default()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(op: SetOp, behaviour: &str, tools: &[&str], keep: Keep) -> PermissionUpdate {
        PermissionUpdate::Rules {
            op,
            behaviour: behaviour.into(),
            rules: tools
                .iter()
                .map(|tool| ((*tool).into(), Some("x".into())))
                .collect(),
            keep,
        }
    }

    fn tools(path: &Path, root: &str) -> Vec<String> {
        let rules = of(path, Path::new(root)).unwrap().rules;
        let word = |rule: &Rule| format!("{:?} {}", rule.behaviour, rule.tool);
        rules.iter().map(word).collect()
    }

    #[test]
    fn rules_and_folders_are_kept_for_a_project_or_for_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/permissions.toml");
        let here = Path::new("/p/here");
        assert_eq!(of(&path, here).unwrap(), Permits::default());
        let directories = PermissionUpdate::Directories {
            op: SetOp::Add,
            paths: vec!["/elsewhere".into()],
            keep: Keep::Local,
        };
        let updates = [
            rules(SetOp::Add, "allow", &["bash", "edit"], Keep::Local),
            rules(SetOp::Add, "deny", &["all"], Keep::User),
            rules(SetOp::Add, "allow", &["now"], Keep::Session),
            directories,
        ];
        keep(&path, here, &updates).unwrap();
        keep(&path, here, &updates).unwrap();
        assert_eq!(
            tools(&path, "/p/here"),
            ["Allow bash", "Allow edit", "Deny all"]
        );
        assert_eq!(tools(&path, "/p/there"), ["Deny all"]);
        assert_eq!(of(&path, here).unwrap().folders, ["/elsewhere".into()]);
        assert!(of(&path, Path::new("/p")).unwrap().folders.is_empty());
        keep(
            &path,
            here,
            &[rules(SetOp::Replace, "allow", &["only"], Keep::Project)],
        )
        .unwrap();
        assert_eq!(tools(&path, "/p/here"), ["Deny all", "Allow only"]);
        keep(
            &path,
            here,
            &[rules(SetOp::Remove, "deny", &["all"], Keep::User)],
        )
        .unwrap();
        assert_eq!(tools(&path, "/p/here"), ["Allow only"]);
    }

    #[test]
    fn a_file_of_another_version_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("permissions.toml");
        std::fs::write(&path, "version = 2\n").unwrap();
        assert!(of(&path, Path::new("/p")).is_err());
        let update = rules(SetOp::Add, "allow", &["a"], Keep::User);
        assert!(keep(&path, Path::new("/p"), &[update]).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "version = 2\n");
    }
}
