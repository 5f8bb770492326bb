//! Runs the program with a home of its own, some input, and a time limit.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The longest that a test waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_turnwire");

/// What the program did.
#[derive(Debug)]
pub struct Done {
    /// Its exit code; `None` if a signal killed it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    /// Stdout as JSON lines.
    #[track_caller]
    pub fn json(&self) -> Vec<Value> {
        let read = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        };
        self.stdout.lines().map(read).collect()
    }
}

/// A home and a project, gone when dropped.
#[derive(Debug)]
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        let folder = tempfile::Builder::new()
            .prefix("turnwire-test-")
            .tempdir()
            .unwrap();
        for name in ["home", "config", "state", "project"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Place { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Writes a file of the project.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path("project").join(name), bytes).unwrap();
    }

    /// The program with these arguments, in the project.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(args)
            .current_dir(self.path("project"))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_STATE_HOME", self.path("state"));
        for name in ["PATH", "SYSTEMROOT", "LLVM_PROFILE_FILE"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
    }

    /// Runs it with this input to its end.
    #[track_caller]
    pub fn run(&self, args: &[&str], input: impl AsRef<[u8]>) -> Done {
        let mut running = Running::start(self.command(args));
        running.write(input.as_ref());
        running.close();
        running.wait()
    }
}

/// A program that runs; killed when dropped.
#[derive(Debug)]
pub struct Running {
    pub child: Child,
    readers: Vec<JoinHandle<Vec<u8>>>,
}

impl Running {
    pub fn start(mut command: Command) -> Running {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out: Box<dyn Read + Send> = Box::new(child.stdout.take().unwrap());
        let err: Box<dyn Read + Send> = Box::new(child.stderr.take().unwrap());
        let readers = [out, err].into_iter().map(|mut pipe| {
            std::thread::spawn(move || {
                let mut all = Vec::new();
                let _ = pipe.read_to_end(&mut all);
                all
            })
        });
        let readers = readers.collect();
        Running { child, readers }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        if let Some(stdin) = &mut self.child.stdin {
            let _ = stdin.write_all(bytes);
        }
    }

    pub fn close(&mut self) {
        self.child.stdin = None;
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(mut self) -> Done {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "it doesn't end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut texts = self.readers.drain(..).map(|reader| {
            let bytes = reader.join().unwrap();
            String::from_utf8(bytes).expect("what it writes is UTF-8")
        });
        let (stdout, stderr) = (texts.next().unwrap(), texts.next().unwrap());
        assert!(!stderr.contains("panicked"), "{stderr}");
        Done {
            code: status.code(),
            stdout,
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A fixture of the project.
pub fn fixture(name: &str) -> String {
    format!(
        "{}/../proptests/fixtures/{name}",
        env!("CARGO_MANIFEST_DIR")
    )
}
