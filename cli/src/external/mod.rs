//! External tools: programs that a manifest of the user's or of a trusted project's describes.
//!
//! docs/external-tools.md says what a manifest is. Whoever can write into the project, an agent too, can write one. So
//! a tool isn't approved by where it lies but by what it is: the exact bytes of its manifest and of its code.

pub mod approvals;
pub mod approve;
mod manifest;

use std::path::{Path, PathBuf};

use turnwire::vocab::{Text, UnapprovedSource};
use turnwire_io::tools::{External, builtin_names};

use crate::folders::Folders;
use approvals::{Approvals, FileSha};

/// The folder of a project's manifests, below the project's own.
pub const PROJECT_FOLDER: &str = ".turnwire/tools";

/// Most manifests of one folder.
const MOST_MANIFESTS: usize = 256;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The tools, the user's first.
    pub tools: Vec<Tool>,
    /// Manifests that aren't used: where they lie, and why.
    pub unloaded: Vec<String>,
}

/// A tool, and the files that it is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The tool, for the driver.
    pub external: External,
    /// Its manifest first, then its code.
    pub files: Vec<FileSha>,
    /// Where its manifest lies, as it is named to people.
    pub manifest: String,
}

/// Where manifests are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// The project, with its links resolved.
    pub root: &'a Path,
    /// Why the project's manifests don't count; `None`: they do.
    pub untrusted: Option<&'a str>,
    /// The user's folders.
    pub folders: Option<&'a Folders>,
    /// Variables that no tool is given: those of keys.
    pub deny_env: &'a [String],
    /// What a person has approved.
    pub approvals: &'a Approvals,
}

/// Finds the tools. What can't be used is said, and makes nothing else wrong.
pub fn find(places: &Places<'_>) -> Found {
    let mut found = Found::default();
    if let Some(folders) = places.folders {
        let folder = folders.tools();
        for path in manifests(&folder, &mut found) {
            load(places, &path, &mut found);
        }
    }
    let project = manifests(&places.root.join(PROJECT_FOLDER), &mut found);
    for path in project {
        match places.untrusted {
            None => load(places, &path, &mut found),
            Some(why) => {
                let path = shown(places.root, &path);
                found.unloaded.push(format!("{path} isn't used: {why}"));
            }
        }
    }
    let known = match places.approvals.known() {
        Ok(known) => known,
        Err(stop) => {
            found.unloaded.push(format!("no tool is approved: {stop}"));
            return found;
        }
    };
    for tool in &mut found.tools {
        let open = tool.files.iter().find(|file| !known.contains(*file));
        tool.external.approved = open.is_none();
        let named = open.or(tool.files.first());
        if let Some(file) = named {
            tool.external.source.path = shown(places.root, Path::new(&file.path));
            tool.external.source.sha.clone_from(&file.sha);
        }
    }
    found
}

fn load(places: &Places<'_>, path: &Path, found: &mut Found) {
    let name = shown(places.root, path);
    match manifest::read(places, path) {
        Ok(tool) => match taken(&tool, &found.tools) {
            None => found.tools.push(tool),
            Some(why) => found.unloaded.push(format!("{name}: {why}")),
        },
        Err(why) => found.unloaded.push(why),
    }
}

/// Why there is another tool of this name.
fn taken(tool: &Tool, before: &[Tool]) -> Option<String> {
    let name = &tool.external.name;
    if builtin_names().any(|builtin| builtin == name) {
        return Some(format!("{name} is the name of a tool that is always there"));
    }
    let other = before.iter().find(|other| other.external.name == *name)?;
    Some(format!("{name} is the tool of {} already", other.manifest))
}

/// The manifests of a folder, by name.
fn manifests(folder: &Path, found: &mut Found) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            found
                .unloaded
                .push(format!("{}: {error}", folder.display()));
            return Vec::new();
        }
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    paths.sort();
    if paths.len() > MOST_MANIFESTS {
        let text = format!(
            "{}: only {MOST_MANIFESTS} of its manifests are read",
            folder.display()
        );
        found.unloaded.push(text);
        paths.truncate(MOST_MANIFESTS);
    }
    paths
}

/// A path as people are shown it: from the project's folder, where it lies in it.
fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .display()
        .to_string()
}

impl Found {
    /// The tools whose exact bytes nobody has approved, for the session.
    pub fn unapproved(&self) -> Vec<UnapprovedSource> {
        let open = self.tools.iter().filter(|tool| !tool.external.approved);
        open.map(|tool| {
            let source = &tool.external.source;
            UnapprovedSource {
                tool: tool.external.name.as_str().into(),
                path: source.path.as_str().into(),
                sha: source.sha.as_str().into(),
                env: tool
                    .external
                    .env
                    .iter()
                    .map(|name| name.as_str().into())
                    .collect(),
                runs: tool.runs().into(),
            }
        })
        .collect()
    }

    /// A sentence for each change.
    pub fn changes(&self, new: &Found) -> Vec<Text> {
        let mut said = Vec::new();
        let named = |found: &Found, name: &str| {
            found
                .tools
                .iter()
                .find(|it| it.external.name == name)
                .cloned()
        };
        for tool in &new.tools {
            let (name, file) = (&tool.external.name, &tool.manifest);
            match named(self, name) {
                None => said.push(format!("tool {name} added ({file})")),
                Some(old)
                    if old.files.first() != tool.files.first() || old.manifest != tool.manifest =>
                {
                    said.push(format!("tool {name} changed ({file})"));
                }
                Some(old) if old.files != tool.files => {
                    said.push(format!("code of the tool {name} changed ({file})"));
                }
                Some(old) if old.external.approved != tool.external.approved => {
                    let now = if tool.external.approved {
                        "is approved now"
                    } else {
                        "isn't approved any more"
                    };
                    said.push(format!("tool {name} {now} ({file})"));
                }
                Some(_) => {}
            }
        }
        for tool in &self.tools {
            let name = &tool.external.name;
            if named(new, name).is_none() {
                said.push(format!("tool {name} removed ({})", tool.manifest));
            }
        }
        let fresh = new
            .unloaded
            .iter()
            .filter(|why| !self.unloaded.contains(why));
        said.extend(fresh.map(|why| format!("a tool isn't loaded: {why}")));
        said.into_iter().map(Text::from).collect()
    }
}

impl Tool {
    /// What it runs, in words for the person who is asked: its command, and the files of code that count.
    pub fn runs(&self) -> String {
        let words: Vec<String> = self
            .external
            .command
            .iter()
            .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
            .collect();
        let mut text = words.join(" ");
        for (at, file) in self.files.iter().skip(1).enumerate() {
            text.push_str(if at == 0 { "; its code: " } else { ", " });
            text.push_str(&format!("{} ({})", file.path, file.short()));
        }
        text
    }
}
