//! Runs the program with a home of its own, some input, and a time limit.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
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

    /// Drives this program itself, whose model plays this script.
    pub fn drive(&self, script: &str, args: &[&str], mode: &str) -> Command {
        std::fs::write(self.path("script"), script).unwrap();
        let script = self.path("script");
        let agent = [
            PROGRAM,
            "serve",
            "--protocol",
            "openmax",
            "--trust-project",
            "--script",
            script.to_str().unwrap(),
            "--approval",
            mode,
        ];
        self.command(&[&["drive", "openmax"], args, &["--"], &agent[..]].concat())
    }

    /// Drives a shell script that plays an agent.
    pub fn shell(&self, args: &[&str], script: &str) -> Command {
        self.command(
            &[
                &["drive", "openmax"],
                args,
                &["--", "bash", "-c"],
                &[script],
            ]
            .concat(),
        )
    }

    /// A file of the project.
    pub fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path("project").join(name)).ok()
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
    so_far: Arc<Mutex<Vec<u8>>>,
}

impl Running {
    pub fn start(mut command: Command) -> Running {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let so_far = Arc::new(Mutex::new(Vec::new()));
        let out = child.stdout.take().unwrap();
        let err = child.stderr.take().unwrap();
        let readers = vec![
            read_all(out, Arc::clone(&so_far)),
            read_all(err, Arc::default()),
        ];
        Running {
            child,
            readers,
            so_far,
        }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        if let Some(stdin) = &mut self.child.stdin {
            let _ = stdin.write_all(bytes);
        }
    }

    pub fn close(&mut self) {
        self.child.stdin = None;
    }

    /// Sends it a signal by name, such as `INT`.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let done = Command::new("kill")
            .args([&format!("-{name}"), &pid])
            .status();
        assert!(done.unwrap().success());
    }

    /// What it wrote to stdout so far.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.so_far.lock().unwrap()).into_owned()
    }

    /// Waits until it has written this to stdout.
    #[track_caller]
    pub fn see(&self, part: &str) {
        let begun = Instant::now();
        while !self.stdout().contains(part) {
            assert!(begun.elapsed() < PATIENCE, "no {part:?}: {}", self.stdout());
            std::thread::sleep(Duration::from_millis(5));
        }
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

/// Reads a pipe to its end, and shows what has come so far.
fn read_all(
    mut pipe: impl Read + Send + 'static,
    so_far: Arc<Mutex<Vec<u8>>>,
) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = pipe.read(&mut chunk) {
            so_far.lock().unwrap().extend_from_slice(&chunk[..count]);
        }
        so_far.lock().unwrap().clone()
    })
}

/// A fixture of the project.
pub fn fixture(name: &str) -> String {
    format!(
        "{}/../proptests/fixtures/{name}",
        env!("CARGO_MANIFEST_DIR")
    )
}
