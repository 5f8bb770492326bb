//! The corpus: made by `corpus.py`, from a fixed seed, into `target/corpus`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// The seed of every file.
const SEED: &str = "1";

/// A kind of conversation; see `corpus.py --help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Mostly deltas, some tool traffic, a line of mebibytes now and then.
    Mixed,
    /// Deltas alone: short lines.
    Tokens,
    /// Tool traffic: long strings.
    Tools,
}

impl Mix {
    /// Its name, as `corpus.py` and the rows call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Tokens => "tokens",
            Self::Tools => "tools",
        }
    }
}

/// The bytes of one file of the corpus, made if it isn't there yet. `file` is
/// a name that `corpus.py --only` knows, with its extension.
///
/// # Errors
/// If Python 3 can't be run, or the file can't be read.
pub fn file(mix: Mix, mib: u32, file: &str) -> io::Result<Vec<u8>> {
    let folder = folder().join(format!("{}-{mib}-seed{SEED}", mix.name()));
    let path = folder.join(file);
    if !path.exists() {
        let (name, _) = file.rsplit_once('.').unwrap_or((file, ""));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus.py");
        let mut command = Command::new("python3");
        command.arg(script).arg("--out").arg(&folder).args([
            "--seed",
            SEED,
            "--only",
            name,
            "--mix",
            mix.name(),
        ]);
        let output = command.args(["--mib", &mib.to_string()]).output()?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(format!("corpus.py failed: {text}")));
        }
    }
    fs::read(path)
}

/// `corpus` in the build's target folder.
fn folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    target.unwrap_or(root).join("corpus")
}
