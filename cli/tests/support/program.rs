//! The real program, driven over real pipes, in a home of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnwire::protocol::observer::{Dir, Observed, Watch};
use turnwire::protocol::openmax::Openmax;
use turnwire_proptests::wiretap::Wiretap;

use super::PATIENCE;
use super::provider::Provider;

/// The value of the key that tests use. It may stand in a request's header and nowhere else.
pub const KEY: &str = "sk-loopback-0123456789";

/// Who hears what the program and a test say to each other.
pub trait Ear: Send + 'static {
    /// The host wrote these bytes.
    fn host(&mut self, bytes: &[u8]);

    /// The agent wrote these.
    fn agent(&mut self, bytes: &[u8]);

    /// That is all of this side.
    fn end(&mut self, dir: Dir);

    /// With which code the agent ended.
    fn exit(&mut self, code: i64);

    /// What was said against the contract.
    fn breach(&self) -> Option<String>;
}

/// The observer of a protocol.
#[derive(Debug)]
pub struct Tapped<P: Observed>(Wiretap<P>);

impl<P: Observed> Tapped<P> {
    /// One that expects this.
    pub fn expecting(config: <P::Watch as Watch>::Config) -> Self {
        Tapped(Wiretap::new(config))
    }
}

impl<P> Ear for Tapped<P>
where
    P: Observed<Watch: Send> + 'static,
{
    fn host(&mut self, bytes: &[u8]) {
        self.0.host(bytes);
    }

    fn agent(&mut self, bytes: &[u8]) {
        self.0.agent(bytes);
    }

    fn end(&mut self, dir: Dir) {
        self.0.end(dir);
    }

    fn exit(&mut self, code: i64) {
        self.0.exit(code);
    }

    fn breach(&self) -> Option<String> {
        self.0.breach(&[]).map(|breach| breach.to_string())
    }
}

/// What the harness knows of a protocol.
pub trait Talk: std::fmt::Debug + 'static {
    /// Who listens.
    type Ear: Ear;

    /// Who listens to a program of this name, with these arguments behind it.
    fn ear(words: &[&str]) -> Self::Ear;

    /// What holds for every line of the agent; `first` is the first that came, this one perhaps.
    fn check(line: &Value, first: &Value);

    /// What must hold at the end of any session: starts have ends, questions have answers (TW-05, TW-06).
    fn pairs(lines: &[Value]);
}

/// A user's home and a project, gone when dropped.
#[derive(Debug)]
pub struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Home {
        let folder = tempfile::Builder::new()
            .prefix("turnwire-test-")
            .tempdir()
            .expect("a temporary folder");
        for name in ["home", "config", "state", "data", "project"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        Home { folder }
    }

    pub fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// A path under the folder that holds home and project.
    pub fn path(&self, name: &str) -> PathBuf {
        // Resolved, as the program shows it.
        self.folder
            .path()
            .canonicalize()
            .expect("the folder")
            .join(name)
    }

    /// Writes a file of the project.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    /// Writes the user's settings.
    pub fn settings(&self, text: &str) {
        std::fs::create_dir_all(self.path("config/turnwire")).expect("a folder");
        std::fs::write(self.path("config/turnwire/turnwire.toml"), text).expect("a file");
    }

    /// A file of the project, if it is there.
    pub fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.project().join(name)).ok()
    }
}

/// How the program is started.
#[derive(Debug)]
pub struct Setup {
    command: Command,
    project: PathBuf,
    read: bool,
    listen: bool,
}

impl Setup {
    /// `turnwire` with these arguments, in the home's project. Of the environment only what it needs is passed on.
    pub fn plain(home: &Home, args: &[&str]) -> Setup {
        Setup::called(home, Path::new(env!("CARGO_BIN_EXE_turnwire")), args)
    }

    /// The same by another path, a link to it perhaps.
    pub fn called(home: &Home, program: &Path, args: &[&str]) -> Setup {
        let mut command = Command::new(program);
        command.args(args).current_dir(home.project()).env_clear();
        for name in ["PATH", "SYSTEMROOT", "LLVM_PROFILE_FILE"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .env("HOME", home.path("home"))
            .env("XDG_CONFIG_HOME", home.path("config"))
            .env("XDG_STATE_HOME", home.path("state"))
            .env("XDG_DATA_HOME", home.path("data"));
        Setup {
            command,
            project: home.project(),
            read: true,
            listen: true,
        }
    }

    /// `serve` with no model named, on the driver that this test binary is about.
    pub fn serve(home: &Home) -> Setup {
        Setup::serve_in(home, "openmax")
    }

    /// The same, speaking another protocol.
    pub fn serve_in(home: &Home, protocol: &str) -> Setup {
        let driver = ["--driver", crate::DRIVER];
        Setup::plain(home, &["serve", "--protocol", protocol]).args(&driver)
    }

    /// `serve` with a provider that speaks as OpenAI's does, in a trusted project, in the mode `auto`.
    pub fn openai(home: &Home, provider: &Provider) -> Setup {
        Setup::openai_in(home, provider, "auto")
    }

    /// The same in another approval mode.
    pub fn openai_in(home: &Home, provider: &Provider, mode: &str) -> Setup {
        Setup::openai_at(home, &(provider.url() + "/v1"), mode)
    }

    /// The same at another address.
    pub fn openai_at(home: &Home, url: &str, mode: &str) -> Setup {
        Setup::serve(home).model_at(url, mode)
    }

    /// In a trusted project, in this approval mode, with a model at this address that speaks as OpenAI's do.
    pub fn model_at(self, url: &str, mode: &str) -> Setup {
        let model = ["--api", "openai", "--model", "m-1", "--base-url", url];
        self.args(&["--trust-project", "--approval", mode])
            .args(&model)
    }

    /// The same with Anthropic's way of speaking.
    pub fn anthropic(home: &Home, provider: &Provider) -> Setup {
        let args = [
            "--trust-project",
            "--approval",
            "auto",
            "--api",
            "anthropic",
            "--model",
            "m-1",
            "--base-url",
        ];
        Setup::serve(home)
            .args(&args)
            .args(&[&(provider.url() + "/v1")])
            .key("ANTHROPIC_API_KEY")
    }

    /// Runs it in another folder, so that it and a program in the project aren't taken for each other's children.
    pub fn in_folder(mut self, folder: PathBuf) -> Setup {
        self.command.current_dir(&folder);
        self.project = folder;
        self
    }

    pub fn args(mut self, args: &[&str]) -> Setup {
        self.command.args(args);
        self
    }

    /// Names the variable that holds the key, and sets it.
    pub fn key(self, name: &str) -> Setup {
        self.args(&["--key-env", name]).env(name, KEY)
    }

    pub fn env(mut self, name: &str, value: &str) -> Setup {
        self.command.env(name, value);
        self
    }

    /// Nobody reads stdout until the test does so itself.
    pub fn unread(mut self) -> Setup {
        self.read = false;
        self
    }

    /// Nobody ever reads stderr.
    pub fn deaf(mut self) -> Setup {
        self.listen = false;
        self
    }

    /// Runs a command that speaks no protocol.
    pub fn output(mut self) -> std::process::Output {
        let command = self.command.stdin(Stdio::null());
        command.output().expect("the program runs")
    }

    /// The same, with this on its stdin.
    pub fn piped(mut self, input: &str) -> std::process::Output {
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program starts");
        if let Some(mut stdin) = child.stdin.take() {
            // Who doesn't read it leaves it.
            let _ = stdin.write_all(input.as_bytes());
        }
        child.wait_with_output().expect("the program ends")
    }

    #[track_caller]
    pub fn start(self) -> Program {
        self.start_as()
    }

    /// The same, speaking another protocol.
    #[track_caller]
    pub fn start_as<P: Talk>(mut self) -> Program<P> {
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program starts");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("a pipe");
        let mut stderr = child.stderr.take();
        let errors = Arc::new(Mutex::new(Vec::new()));
        if self.listen
            && let Some(mut stderr) = stderr.take()
        {
            let copy = Arc::clone(&errors);
            std::thread::spawn(move || {
                let mut chunk = [0; 4096];
                while let Ok(count @ 1..) = stderr.read(&mut chunk) {
                    copy.lock().unwrap().extend_from_slice(&chunk[..count]);
                }
            });
        }
        let name = Path::new(self.command.get_program()).file_name();
        let words: Vec<_> = name
            .into_iter()
            .chain(self.command.get_args())
            .filter_map(|word| word.to_str())
            .collect();
        let tap: Tap<P> = Arc::new(Mutex::new(P::ear(&words)));
        let (sender, lines) = channel();
        let mut unread = Some(Stdout {
            pipe: stdout,
            tap: Arc::clone(&tap),
        });
        if self.read {
            let mut reader = BufReader::new(unread.take().expect("a pipe"));
            std::thread::spawn(move || {
                let mut line = Vec::new();
                while let Ok(1..) = reader.read_until(b'\n', &mut line) {
                    if sender.send(std::mem::take(&mut line)).is_err() {
                        return;
                    }
                }
            });
        }
        Program {
            child,
            stdin,
            unread,
            _stderr: stderr,
            lines,
            errors,
            seen: Vec::new(),
            project: self.project,
            status: None,
            tap,
        }
    }

    /// Starts it, gives it this input and its end, and waits for the program's.
    #[track_caller]
    pub fn run(self, input: &str) -> Ended {
        self.run_as::<Openmax>(input)
    }

    /// The same, speaking another protocol.
    #[track_caller]
    pub fn run_as<P: Talk>(self, input: &str) -> Ended {
        let mut program = self.start_as::<P>();
        program.raw(input);
        program.close_input();
        program.wait()
    }
}

/// A running program. Dropped, it is killed, with all that it left behind.
pub struct Program<P: Talk = Openmax> {
    child: Child,
    stdin: Option<ChildStdin>,
    unread: Option<Stdout<P>>,
    /// Kept open, when nobody reads it.
    _stderr: Option<ChildStderr>,
    lines: Receiver<Vec<u8>>,
    errors: Arc<Mutex<Vec<u8>>>,
    seen: Vec<Value>,
    project: PathBuf,
    status: Option<ExitStatus>,
    /// Hears all that it and the test say to each other.
    tap: Tap<P>,
}

type Tap<P> = Arc<Mutex<<P as Talk>::Ear>>;

/// The program's stdout, with the observer behind it.
pub struct Stdout<P: Talk = Openmax> {
    pipe: ChildStdout,
    tap: Tap<P>,
}

impl<P: Talk> Read for Stdout<P> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.pipe.read(buffer)?;
        let mut tap = self.tap.lock().unwrap();
        match buffer.get(..count) {
            Some([]) | None => tap.end(Dir::Agent),
            Some(bytes) => tap.agent(bytes),
        }
        Ok(count)
    }
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; `None` if a signal killed it.
    pub code: Option<i32>,
    /// Every line of stdout.
    pub lines: Vec<Value>,
    /// All of stderr.
    pub stderr: String,
}

impl Ended {
    /// The lines of one type.
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        of(&self.lines, kind)
    }

    /// The types in order; runs of `token` and of `thinking` as one.
    pub fn types(&self) -> Vec<&str> {
        types(&self.lines)
    }
}

/// The lines of one type.
pub fn of<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

/// The types in order; runs of `token` and of `thinking` as one, since where they are cut is nobody's promise.
pub fn types(lines: &[Value]) -> Vec<&str> {
    let mut types: Vec<&str> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap_or("?"))
        .collect();
    types.dedup_by(|later, earlier| later == earlier && matches!(*later, "token" | "thinking"));
    types
}

/// The text of all lines of one type, joined.
pub fn joined(lines: &[Value], kind: &str) -> String {
    of(lines, kind)
        .iter()
        .filter_map(|line| line["text"].as_str())
        .collect()
}

impl<P: Talk> Program<P> {
    /// Writes bytes to its stdin. That it no longer reads is no fault here: what it answers shows.
    pub fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        if let Some(stdin) = &mut self.stdin {
            self.tap.lock().unwrap().host(bytes.as_ref());
            let _ = stdin.write_all(bytes.as_ref());
            let _ = stdin.flush();
        }
    }

    /// Writes one command.
    pub fn send(&mut self, command: &Value) {
        self.raw(format!("{command}\n"));
    }

    /// The end of its input.
    pub fn close_input(&mut self) {
        if self.stdin.is_some() {
            self.tap.lock().unwrap().end(Dir::Host);
        }
        self.stdin = None;
    }

    /// What was said so far keeps the contract, both ways, as far as the observer can tell.
    #[track_caller]
    fn judge(&self) {
        if let Some(breach) = self.tap.lock().unwrap().breach() {
            panic!("the contract was broken:\n{breach}");
        }
    }

    /// Its stdout, when it was started [`Setup::unread`].
    pub fn take_stdout(&mut self) -> Stdout<P> {
        self.unread
            .take()
            .expect("stdout isn't read by the harness")
    }

    /// The next line, checked.
    #[track_caller]
    fn next(&mut self) -> Option<Value> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                let value = self.check(&line);
                self.seen.push(value.clone());
                Some(value)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line for {PATIENCE:?}; {}", self.story()),
        }
    }

    /// What holds for every line: an object, ended by a newline, that doesn't hold the key.
    #[track_caller]
    fn check(&self, line: &[u8]) -> Value {
        let text = std::str::from_utf8(line)
            .unwrap_or_else(|_| panic!("a line isn't UTF-8; {}", self.story()));
        assert!(!text.contains(KEY), "the key is on stdout: {text}");
        let Some(content) = text.strip_suffix('\n') else {
            panic!("half a line {text:?}; {}", self.story())
        };
        let value: Value =
            serde_json::from_str(content).unwrap_or_else(|fault| panic!("{fault}: {content}"));
        let first = self.seen.first().unwrap_or(&value);
        P::check(&value, first);
        value
    }

    /// Reads on until a line has all these members, and gives it.
    #[track_caller]
    pub fn see(&mut self, want: &Value) -> Value {
        let members = want.as_object().expect("an object");
        loop {
            let Some(line) = self.next() else {
                panic!("stdout ended before {want}; {}", self.story())
            };
            if members
                .iter()
                .all(|(name, value)| line.get(name) == Some(value))
            {
                return line;
            }
        }
    }

    /// Reads on until a line of this type.
    #[track_caller]
    pub fn see_type(&mut self, kind: &str) -> Value {
        self.see(&json!({ "type": kind }))
    }

    /// The next line, whichever it is; `None` at the end of stdout.
    #[track_caller]
    pub fn see_any(&mut self) -> Option<Value> {
        self.next()
    }

    /// The lines read so far.
    pub fn seen(&self) -> &[Value] {
        &self.seen
    }

    /// No line comes for this time.
    #[track_caller]
    pub fn quiet(&mut self, time: Duration) {
        if let Ok(line) = self.lines.recv_timeout(time) {
            panic!(
                "expected nothing, and got {}; {}",
                String::from_utf8_lossy(&line),
                self.story()
            );
        }
    }

    /// What has come on stderr.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.errors.lock().unwrap()).into_owned()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name, such as `TERM`.
    #[track_caller]
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let done = Command::new("kill")
            .args([&format!("-{name}"), &pid])
            .status()
            .expect("kill");
        assert!(done.success());
    }

    /// Ends it as a crash would, at once, and waits until it is gone.
    pub fn crash(mut self) {
        let _ = self.child.kill();
        self.status = self.child.wait().ok();
        self.judge();
    }

    /// Whether it has ended by itself within this time.
    pub fn ended_within(&mut self, time: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < time {
            if let Ok(Some(status)) = self.child.try_wait() {
                self.status = Some(status);
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    /// Waits for its end by itself, reading the rest of stdout.
    #[track_caller]
    pub fn wait(mut self) -> Ended {
        if self.unread.is_none() {
            while self.next().is_some() {}
        }
        assert!(
            self.ended_within(PATIENCE),
            "it doesn't end; {}",
            self.story()
        );
        let status = self.status.expect("its end");
        // What was killed needs a moment to go.
        let mut left = survivors(&self.project);
        let exited = Instant::now();
        while !left.is_empty() && exited.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(10));
            left = survivors(&self.project);
        }
        assert!(left.is_empty(), "left behind: {left:?}; {}", self.story());
        // The pipe is closed by now, so the thread has read it all, or will at once.
        std::thread::sleep(Duration::from_millis(20));
        let stderr = self.stderr();
        assert!(!stderr.contains(KEY), "the key is on stderr: {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        if self.unread.is_none() {
            self.tap
                .lock()
                .unwrap()
                .exit(status.code().map_or(-1, i64::from));
        }
        self.judge();
        let lines = std::mem::take(&mut self.seen);
        P::pairs(&lines);
        Ended {
            code: status.code(),
            lines,
            stderr,
        }
    }

    fn story(&self) -> String {
        let lines: Vec<String> = self.seen.iter().map(Value::to_string).collect();
        format!(
            "stdout so far:\n{}\nstderr so far:\n{}",
            lines.join("\n"),
            self.stderr()
        )
    }
}

impl<P: Talk> Drop for Program<P> {
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
            if !std::thread::panicking() {
                self.judge();
            }
        }
        for (pid, _) in survivors(&self.project) {
            let _ = Command::new("kill")
                .args(["-KILL", &pid.to_string()])
                .status();
        }
    }
}

/// Living processes that work in this folder: pid and command line. The program's own tools run there.
pub fn survivors(project: &Path) -> Vec<(u32, String)> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let folder = std::fs::read_link(entry.path().join("cwd")).ok()?;
            let state = status(pid, "State")?;
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            (folder.starts_with(project) && !state.starts_with('Z')).then_some((pid, command))
        })
        .collect()
}

/// A member of `/proc/PID/status`, such as `VmHWM`, the most memory it ever had.
pub fn status(pid: u32, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

/// The most memory it ever had, in KiB.
pub fn peak_memory(pid: u32) -> Option<u64> {
    status(pid, "VmHWM")?.split(' ').next()?.parse().ok()
}

/// The time on a processor that it has used, its children not counted.
pub fn cpu_time(pid: u32) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold spaces; fields 14 and 15 are user and system time in hundredths.
    let mut rest = text.rsplit(')').next()?.split(' ').skip(12);
    let user: u64 = rest.next()?.parse().ok()?;
    let system: u64 = rest.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 10))
}
