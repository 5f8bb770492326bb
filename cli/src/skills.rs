//! Skills of the user's and of a trusted project's: found, read, compared.
//!
//! docs/skills.md says what a skill is.

use std::path::{Path, PathBuf};

use turnwire_io::tools::Skill;

use crate::folders::Folders;
use crate::settings::file;

/// The folder of a project's skills, below the project's own.
pub const PROJECT_FOLDER: &str = ".turnwire/skills";

/// Most skills of one folder.
const MOST: usize = 256;

/// The longest text of one skill, in bytes: a result keeps no more.
const MOST_TEXT: usize = 128 * 1024;

/// The longest description, in bytes: each request to the model carries it.
const MOST_DESCRIPTION: usize = 1024;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The skills, the user's first.
    pub skills: Vec<Skill>,
    /// Files that aren't used: where they lie, and why.
    pub unloaded: Vec<String>,
}

/// Finds the skills. What can't be used is said, and makes nothing else wrong.
pub fn find(root: &Path, untrusted: Option<&str>, folders: Option<&Folders>) -> Found {
    let mut found = Found::default();
    if let Some(folders) = folders {
        for path in files(&folders.skills(), &mut found) {
            found.load(root, &path);
        }
    }
    for path in files(&root.join(PROJECT_FOLDER), &mut found) {
        match untrusted {
            None => found.load(root, &path),
            Some(why) => {
                let path = shown(root, &path);
                found.unloaded.push(format!("{path} isn't used: {why}"));
            }
        }
    }
    found
}

/// The files of a folder that are skills: `NAME.md`, and `SKILL.md` of a folder in it.
fn files(folder: &Path, found: &mut Found) -> Vec<PathBuf> {
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
    let file = |path: PathBuf| {
        if path.is_dir() {
            let path = path.join("SKILL.md");
            path.exists().then_some(path)
        } else {
            path.extension()
                .is_some_and(|end| end == "md")
                .then_some(path)
        }
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| file(entry.ok()?.path()))
        .collect();
    paths.sort();
    if paths.len() > MOST {
        let text = format!("{}: only {MOST} of its skills are read", folder.display());
        found.unloaded.push(text);
        paths.truncate(MOST);
    }
    paths
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .display()
        .to_string()
}

impl Found {
    fn load(&mut self, root: &Path, path: &Path) {
        let name = shown(root, path);
        match read(root, path) {
            Ok(skill) if self.skills.iter().any(|other| other.name == skill.name) => {
                let text = format!("{name}: there is a skill {} already", skill.name);
                self.unloaded.push(text);
            }
            Ok(skill) => self.skills.push(skill),
            Err(why) => self.unloaded.push(format!("{name}: {why}")),
        }
    }

    /// A sentence for each change.
    pub fn changes(&self, new: &Found) -> Vec<String> {
        let mut said = Vec::new();
        for skill in &new.skills {
            let name = &skill.name;
            match self.skills.iter().find(|old| old.name == *name) {
                None => said.push(format!("skill {name} added")),
                Some(old) if old != skill => said.push(format!("skill {name} changed")),
                Some(_) => {}
            }
        }
        for skill in &self.skills {
            let name = &skill.name;
            if new.skills.iter().all(|other| other.name != *name) {
                said.push(format!("skill {name} removed"));
            }
        }
        let fresh = new
            .unloaded
            .iter()
            .filter(|why| !self.unloaded.contains(why));
        said.extend(fresh.map(|why| format!("a skill isn't loaded: {why}")));
        said
    }
}

fn read(root: &Path, path: &Path) -> Result<Skill, String> {
    let text = file::text(path).map_err(|stop| stop.to_string())?;
    let text = text.ok_or("it is gone")?;
    let alone = path.file_name().is_none_or(|name| name != "SKILL.md");
    let own_name = if alone {
        path.file_stem()
    } else {
        path.parent().and_then(Path::file_name)
    };
    let (head, body) = split(&text)?;
    let name = match head.name {
        Some(name) => name,
        None => own_name.unwrap_or_default().to_string_lossy().into_owned(),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !(1..=64).contains(&name.len()) || !name.bytes().all(plain) {
        return Err("a name is 1 to 64 letters, digits, _ and -".to_owned());
    }
    let description = head.description.ok_or("it has no description")?;
    if description.trim().is_empty() || description.len() > MOST_DESCRIPTION {
        return Err(format!("a description has 1 to {MOST_DESCRIPTION} bytes"));
    }
    if body.len() > MOST_TEXT {
        return Err(format!("it has more than {MOST_TEXT} bytes"));
    }
    Ok(Skill {
        name,
        description,
        folder: if alone {
            None
        } else {
            path.parent().map(|folder| shown(root, folder))
        },
        text: body.to_owned(),
    })
}

/// What stands at the head of a skill.
#[derive(Debug, Default, PartialEq, Eq)]
struct Head {
    name: Option<String>,
    description: Option<String>,
}

/// The head between two lines of `---`, and what comes behind. Of YAML a head has what most heads have: one value a
/// line, plain or in quotes. Other members are none of ours.
fn split(text: &str) -> Result<(Head, &str), String> {
    let text = text.trim_start_matches('\u{feff}');
    let none = "it doesn't begin with a head: lines of `name: …` and `description: …` between two lines of ---";
    let mut rest = text;
    let mut head = Head::default();
    for number in 0.. {
        let Some((line, behind)) = rest.split_once('\n') else {
            return Err(none.to_owned());
        };
        rest = behind;
        let line = line.trim_end();
        match (number, line) {
            (0, "---") => {}
            (0, _) => return Err(none.to_owned()),
            (_, "---") => break,
            (_, _) => {
                let Some((name, value)) = line.split_once(':') else {
                    continue;
                };
                let slot = match name {
                    "name" => &mut head.name,
                    "description" => &mut head.description,
                    _ => continue,
                };
                *slot = Some(scalar(value.trim()).map_err(|why| format!("{name}: {why}"))?);
            }
        }
    }
    Ok((head, rest.trim_start_matches(['\r', '\n'])))
}

/// One YAML scalar on its line.
fn scalar(text: &str) -> Result<String, &'static str> {
    let quoted = |quote: char| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote);
        Some(
            inner
                .filter(|_| text.len() > 1)
                .ok_or("the quotes aren't closed on this line"),
        )
    };
    if let Some(inner) = quoted('\'') {
        return Ok(inner?.replace("''", "'"));
    }
    if let Some(inner) = quoted('"') {
        let inner = inner?;
        return match serde_json::from_str(&format!("\"{inner}\"")) {
            Ok(text) => Ok(text),
            Err(_) => Err("an escape that isn't known here"),
        };
    }
    if text.starts_with(['|', '>', '[', '{', '&', '*', '!']) {
        return Err("the value has to be text on one line");
    }
    let end = text.find(" #").unwrap_or(text.len());
    Ok(text[..end].trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_yaml_would() {
        for (head, name, description) in [
            (
                "name: pdf\ndescription: Fills forms.",
                Some("pdf"),
                Some("Fills forms."),
            ),
            (
                "description: 'it''s: \"so\"'\nlicense: MIT\n  - x",
                None,
                Some("it's: \"so\""),
            ),
            ("description: \"a\\tb # c\"", None, Some("a\tb # c")),
            ("description: a#b # a comment", None, Some("a#b")),
            ("description:", None, Some("")),
        ] {
            let text = format!("---\n{head}\n---\n\nBody\n---\n");
            let (found, body) = split(&text).unwrap();
            assert_eq!(
                (found.name.as_deref(), found.description.as_deref()),
                (name, description),
                "{head}"
            );
            assert_eq!(body, "Body\n---\n");
        }
        for text in [
            "",
            "# Title\n",
            "---\nname: x\n",
            "---\ndescription: >\n  folded\n---\n",
            "---\nname: 'x\n---\n",
            "---\nname: \"\\q\"\n---\n",
            "---\nname: '\n---\n",
        ] {
            assert!(split(text).is_err(), "{text:?}");
        }
        assert_eq!(
            split("\u{feff}---\r\nname: x\r\n---\r\nBody").unwrap().1,
            "Body"
        );
    }
}
