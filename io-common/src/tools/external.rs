//! Tools of the user's and the project's own: programs that an embedder describes, each gated on its exact bytes.
//!
//! Such a program runs with all rights of its user, and an agent can write the files that it is made of. So a tool is
//! approved as it is, byte for byte, and what isn't approved is given no variable of its list (OM-15, OM-16).

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};
use turnwire::vocab::{RawJson, Route, SideEffect, ToolSpec, UnapprovedSource};

use super::ToolboxConfig;
use crate::process;
use crate::process::env::Lists;

/// The largest file of code that a tool may consist of, in bytes.
pub const MOST_CODE: u64 = 64 * 1024 * 1024;

/// A tool that is a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// What the model calls it.
    pub name: String,
    /// What the model is told of it.
    pub description: String,
    /// The JSON Schema of its arguments, an object's text.
    pub schema: String,
    /// Whether it changes nothing.
    pub reads_only: bool,
    /// The program and its arguments. A program with a slash in its name is looked for from the project's folder.
    pub command: Vec<String>,
    /// Variables that it is given once somebody has approved it, besides a short list of harmless ones.
    pub env: Vec<String>,
    /// How long it may run; `None`: as long as other commands.
    pub limit: Option<Duration>,
    /// What it is made of.
    pub source: Source,
    /// Whether a person has approved exactly this.
    pub approved: bool,
}

/// The files that a tool is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file to name when somebody is asked, as it is named to people.
    pub path: String,
    /// The SHA-256 of that file, in hexadecimal digits.
    pub sha: String,
    /// Where its code is looked for.
    pub places: CodePlaces,
    /// The code that was found there.
    pub code: Vec<Code>,
}

/// Where the code of a tool may be: what of its command names a file, and files that are said to belong to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodePlaces {
    /// Where relative paths begin.
    pub root: PathBuf,
    /// Files in this folder count as well.
    pub beside: PathBuf,
    /// The command.
    pub command: Vec<String>,
    /// Files that must be there.
    pub named: Vec<PathBuf>,
}

/// A file of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Where it lies.
    pub path: PathBuf,
    /// Its SHA-256, in hexadecimal digits.
    pub sha: String,
}

impl CodePlaces {
    /// Reads the code as it is now.
    ///
    /// A word of the command counts if it is the path of a file in the root or beside; the first word only if it has a
    /// slash, since other names are looked up in `PATH`. What the program loads besides isn't known here.
    ///
    /// # Errors
    /// What can't be read, and why: a file that was named and isn't there, or one that is too large.
    pub fn read(&self) -> Result<Vec<Code>, String> {
        let mut found = Vec::new();
        for path in &self.named {
            add(&mut found, self.root.join(path))?;
        }
        for (at, word) in self.command.iter().enumerate() {
            let path = self.root.join(word);
            let looked_up = at == 0 && !word.contains('/');
            if !word.is_empty() && !looked_up && path.is_file() && self.is_local(word, &path) {
                add(&mut found, path)?;
            }
        }
        Ok(found)
    }

    fn is_local(&self, word: &str, path: &Path) -> bool {
        let within = |path: &Path| {
            [&self.root, &self.beside]
                .into_iter()
                .any(|folder| !folder.as_os_str().is_empty() && path.starts_with(folder))
        };
        Path::new(word).is_relative()
            || within(path)
            || path.canonicalize().is_ok_and(|path| within(&path))
    }
}

fn add(found: &mut Vec<Code>, path: PathBuf) -> Result<(), String> {
    // Without `.` in the middle, as people write it.
    let path: PathBuf = path.components().collect();
    if found.iter().all(|code| code.path != path) {
        let sha = sha(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        found.push(Code { path, sha });
    }
    Ok(())
}

/// The SHA-256 of a file.
fn sha(path: &Path) -> io::Result<String> {
    // A pipe would be waited for.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut file = File::open(path)?.take(MOST_CODE + 1);
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) if file.limit() == 0 => return Err(io::Error::other("it is too large")),
            Ok(0) => return Ok(hex(hash.finalize().as_slice())),
            Ok(count) => hash.update(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The SHA-256 of these bytes, in hexadecimal digits.
pub fn sha_of(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes).as_slice())
}

fn hex(bytes: &[u8]) -> String {
    let digit = |number: u8| char::from_digit(u32::from(number), 16).unwrap_or('0');
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(digit).collect()
}

/// A tool that is loaded, and whether it is approved by now.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) tool: External,
    approved: AtomicBool,
}

impl Loaded {
    pub(super) fn new(tool: &External) -> Self {
        Loaded {
            tool: tool.clone(),
            approved: AtomicBool::new(tool.approved),
        }
    }

    pub(super) fn is_approved(&self) -> bool {
        self.approved.load(Ordering::Acquire)
    }

    /// A person has approved what this says; `false` if that is something else.
    pub(super) fn approve(&self, source: &UnapprovedSource) -> bool {
        let this = *source.sha == *self.tool.source.sha && *source.path == *self.tool.source.path;
        if this {
            self.approved.store(true, Ordering::Release);
        }
        this
    }

    pub(super) fn spec(&self) -> ToolSpec {
        let tool = &self.tool;
        ToolSpec {
            name: tool.name.as_str().into(),
            label: None,
            description: tool.description.as_str().into(),
            schema: RawJson(tool.schema.as_str().into()),
            side_effect: if tool.reads_only {
                SideEffect::Read
            } else {
                SideEffect::Shell
            },
            hidden: false,
            uri_arg: None,
            route: Route::Driver,
        }
    }

    /// Why it may not run now, in words for the model. It reads the tool's code.
    pub(super) fn objection(&self, config: &ToolboxConfig) -> Option<String> {
        let source = &self.tool.source;
        if !self.is_approved() && config.refuse_unapproved {
            return Some(format!(
                "not run: an agent started this session, and no person has approved the content of {}; tell the user \
                 to run: turnwire --approve {}",
                self.tool.name, source.path
            ));
        }
        match source.places.read() {
            Ok(code) if code == source.code => None,
            Ok(_) => Some(format!(
                "not run: the code of {} has changed since this turn began; it can be called, and approved, in the next \
                 turn",
                self.tool.name
            )),
            Err(why) => Some(format!(
                "not run: the code of {} can't be read: {why}",
                self.tool.name
            )),
        }
    }

    /// What to start. Its arguments go to its standard input.
    pub(super) fn command(&self, root: &Path, config: &ToolboxConfig) -> Command {
        let mut words = self.tool.command.iter();
        let program = words.next().map_or("", String::as_str);
        let pass: &[String] = if self.is_approved() {
            &self.tool.env
        } else {
            &[]
        };
        let lists = Lists {
            pass,
            deny: &config.deny_env,
            extra: &config.extra_env,
        };
        let path;
        let program = if program.contains('/') {
            path = root.join(program);
            path.as_os_str()
        } else {
            program.as_ref()
        };
        let mut command = process::command(program, root, lists, Stdio::piped());
        command.args(words);
        command
    }

    /// What is said behind the result of a run without approval, if it lacked something for that.
    pub(super) fn remark(&self) -> Option<String> {
        let tool = &self.tool;
        if self.is_approved() || tool.env.is_empty() {
            return None;
        }
        Some(format!(
            "[{} ran without {}: no person has approved the content of {}. The user can: turnwire --approve {}]",
            tool.name,
            tool.env.join(", "),
            tool.source.path,
            tool.source.path
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn om_15_code_is_what_of_a_command_lies_in_the_project() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        std::fs::create_dir(root.join("tools")).expect("a folder");
        for name in ["tools/run.sh", "make", "lib.py"] {
            std::fs::write(root.join(name), "").expect("a file");
        }
        let read = |words: &[&str], named: &[&str]| {
            let places = CodePlaces {
                root: root.clone(),
                beside: PathBuf::new(),
                command: words.iter().map(|word| (*word).to_owned()).collect(),
                named: named.iter().map(PathBuf::from).collect(),
            };
            let code = places.read()?;
            let name = |code: &Code| {
                let path = code.path.strip_prefix(&root).map(Path::to_path_buf);
                path.unwrap_or_default().display().to_string()
            };
            Ok::<_, String>(code.iter().map(name).collect::<Vec<String>>())
        };
        let absolute = root.join("lib.py").display().to_string();
        for (words, named, found) in [
            (
                &["./tools/run.sh", "-x"][..],
                &[][..],
                &["tools/run.sh"][..],
            ),
            (&["make"], &[], &[]),
            (&["make", "make"], &[], &["make"]),
            (
                &["/bin/sh", "tools/run.sh", "gone.sh"],
                &["lib.py"],
                &["lib.py", "tools/run.sh"],
            ),
            (&["python3", &absolute], &[], &["lib.py"]),
        ] {
            assert_eq!(read(words, named).expect("code"), found, "{words:?}");
        }
        assert!(read(&["x"], &["gone.py"]).is_err_and(|why| why.contains("gone.py")));
        assert!(read(&["x"], &["tools"]).is_err_and(|why| why.contains("not a file")));
    }

    #[test]
    fn om_15_a_hash_is_that_of_the_bytes() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha_of(b"abc"), abc);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        std::fs::write(&path, "abc").expect("a file");
        assert_eq!(sha(&path).expect("a hash"), abc);
        let file = File::create(&path).expect("a file");
        file.set_len(MOST_CODE + 1).expect("a length");
        assert!(sha(&path).is_err());
    }
}
