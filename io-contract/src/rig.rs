//! A session over real pipes, in this process, with a gate in its output.

use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use turnwire::model::script::Script;
use turnwire::protocol::Server;
use turnwire::protocol::openmax::{Extra, Openmax, ServerConfig, preset};
use turnwire::protocol::openseek;
use turnwire::session::config::{LocalHook, ModelConfig};
use turnwire::session::{Session, SessionConfig, job_stop_tool};
use turnwire::vocab::{
    ApprovalMode, Briefing, HookPoint, HookSpec, Interrupting, McpFact, Now, SessionInfo, WriteBody,
};
use turnwire_io::hooks::{HookCommand, Hooks, HooksConfig};
use turnwire_io::jobs::JobPlace;
use turnwire_io::mcp::{Mcp, Servers};
use turnwire_io::tools::{Toolbox, ToolboxConfig};
use turnwire_io::{Backend, Durable, Host, Reload, World, WriteJob};

use crate::Driver;
use crate::watch::{Books, Watched};

/// How long anything may take before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct RigOptions {
    pub script: String,
    pub gate: Option<Gate>,
    pub fail_writes: bool,
    /// Command lines of turn-end hooks.
    pub turn_end: Vec<&'static str>,
    /// Reads the configuration anew.
    pub reload: Option<Box<dyn Reload>>,
    /// In place of the script.
    pub backend: Option<Backend>,
    /// What runs unasked.
    pub approvals: ApprovalMode,
    /// Where background jobs are kept, in the session's folder.
    pub jobs: Option<fn(&Path) -> JobPlace>,
    /// What a steer does to calls that run, if not what the preset says.
    pub interrupting: Option<Interrupting>,
    /// How long a command may run, if nothing else is said.
    pub default_timeout: Option<Duration>,
    /// MCP servers that the driver runs.
    pub mcp: Option<Servers>,
    /// Their limits, where a test wants others.
    pub tune_mcp: fn(&mut Mcp),
    /// What became of them.
    pub mcp_facts: Arc<Mutex<Vec<McpFact>>>,
}

impl RigOptions {
    pub fn script(script: &str) -> Self {
        RigOptions {
            script: script.into(),
            gate: None,
            fail_writes: false,
            turn_end: Vec::new(),
            reload: None,
            backend: None,
            approvals: ApprovalMode::Auto,
            jobs: None,
            interrupting: None,
            default_timeout: None,
            mcp: None,
            tune_mcp: |_| {},
            mcp_facts: Arc::default(),
        }
    }
}

/// Keeps refusals in the file `refusals` of the folder, slowly.
struct Disk {
    fails: bool,
    folder: PathBuf,
}

impl Durable for Disk {
    fn prepare(&mut self, body: &WriteBody<'_>) -> WriteJob {
        let fails = self.fails;
        let refusal = if let WriteBody::Refusal(turn) = body {
            turn.last()
                .map(|refusal| format!("{:?}\n", refusal.content))
        } else {
            None
        };
        let path = self.folder.join("refusals");
        Box::new(move || {
            if fails {
                return Err("the disk is full".into());
            }
            let Some(refusal) = refusal else {
                return Ok(());
            };
            std::thread::sleep(Duration::from_millis(200));
            std::fs::write(path, refusal).map_err(|e| e.to_string())
        })
    }
}

/// Holds the output back, from the first write that contains a word on.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Default)]
struct GateState {
    word: Option<&'static str>,
    held: bool,
    broken: bool,
}

impl Gate {
    fn change(&self, change: impl FnOnce(&mut GateState)) {
        change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
    }

    pub fn hold_at(&self, word: &'static str) {
        self.change(|s| s.word = Some(word));
    }

    pub fn open(&self) {
        self.change(|s| *s = GateState::default());
    }

    pub fn break_now(&self) {
        self.change(|s| s.broken = true);
    }

    pub fn wait_held(&self) {
        let (state, _) = self
            .0
            .1
            .wait_timeout_while(self.0.0.lock().unwrap(), PATIENCE, |s| !s.held)
            .unwrap();
        assert!(state.held, "the output never came to the gate");
    }

    fn pass(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.0.lock().unwrap();
        if let Some(word) = state.word
            && String::from_utf8_lossy(bytes).contains(word)
        {
            state.held = true;
            self.0.1.notify_all();
        }
        let state = self.0.1.wait_while(state, |s| s.held && !s.broken).unwrap();
        if state.broken {
            Err(io::ErrorKind::BrokenPipe.into())
        } else {
            Ok(())
        }
    }
}

struct Gated {
    gate: Option<Gate>,
    inner: PipeWriter,
}

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(gate) = &self.gate {
            gate.pass(bytes)?;
        }
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

pub struct Rig {
    folder: tempfile::TempDir,
    input: Mutex<Option<PipeWriter>>,
    lines: Mutex<Vec<Value>>,
    coming: Mutex<mpsc::Receiver<Value>>,
    raw: Arc<Mutex<String>>,
    books: Books,
    /// The host wanted an end at once: what still ran then was ended, and the agent isn't told.
    hard: Mutex<bool>,
    agent: JoinHandle<u8>,
    reader: JoinHandle<()>,
}

impl Rig {
    /// A session behind openmax's wire.
    pub fn start<D: Driver>(options: RigOptions) -> Rig {
        Self::begin(options, agent::<D>)
    }

    /// A session behind openseek's, which has words for jobs.
    pub fn start_openseek<D: Driver>(options: RigOptions) -> Rig {
        Self::begin(options, openseek_agent::<D>)
    }

    fn begin(
        options: RigOptions,
        agent: fn(RigOptions, PathBuf, PipeReader, PipeWriter, Books) -> u8,
    ) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let (agent_input, input) = io::pipe().unwrap();
        let (output, agent_output) = io::pipe().unwrap();
        let (raw, books) = (Arc::default(), Books::default());
        let output = output_thread(output, Arc::clone(&raw));
        let root = folder.path().to_owned();
        let watched = books.clone();
        let agent =
            std::thread::spawn(move || agent(options, root, agent_input, agent_output, watched));
        Rig {
            folder,
            input: Mutex::new(Some(input)),
            lines: Mutex::default(),
            coming: Mutex::new(output.1),
            raw,
            books,
            hard: Mutex::default(),
            agent,
            reader: output.0,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn say(&self, line: &str) {
        *self.hard.lock().unwrap() |= line.contains("quit");
        let mut input = self.input.lock().unwrap();
        let _ = writeln!(input.as_mut().unwrap(), "{line}");
    }

    /// A line that lacks its end.
    pub fn say_unfinished(&self, line: &str) {
        let mut input = self.input.lock().unwrap();
        let _ = write!(input.as_mut().unwrap(), "{line}");
    }

    pub fn close_input(&self) {
        *self.input.lock().unwrap() = None;
    }

    /// Reads on to the next line of a type.
    pub fn wait_for(&self, kind: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.coming.lock().unwrap().recv_timeout(left);
            let line = line.unwrap_or_else(|_| {
                panic!("no {kind} line; so far: {:?}", self.lines.lock().unwrap())
            });
            self.lines.lock().unwrap().push(line.clone());
            if line["type"] == kind || line["event"] == kind {
                return line;
            }
        }
    }

    pub fn wait_for_file(&self, name: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            match std::fs::read_to_string(self.path(name)) {
                Ok(text) if text.ends_with('\n') => return text,
                _ if Instant::now() > until => panic!("{name} never came"),
                _ => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// What the driver did so far.
    pub fn books(&self) -> &Books {
        &self.books
    }

    /// Waits until nothing is on its way.
    pub fn wait_settled(&self) {
        let until = Instant::now() + PATIENCE;
        while !self.books.open().is_settled() {
            assert!(Instant::now() < until, "{:?}", self.books.open());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end; the exit code and every line. The driver must have kept its promises.
    pub fn finish(self) -> (u8, Vec<Value>) {
        let (code, lines, _) = self.finish_raw();
        (code, lines)
    }

    /// The same, and every byte. The folder's name in them is `/project`.
    pub fn finish_raw(self) -> (u8, Vec<Value>, String) {
        let code = self.agent.join().unwrap();
        drop(self.input);
        self.reader.join().unwrap();
        let orderly = code == 0 && !self.hard.into_inner().unwrap();
        self.books.open().check(orderly);
        let mut lines = self.lines.into_inner().unwrap();
        lines.extend(self.coming.into_inner().unwrap().try_iter());
        let raw = self.raw.lock().unwrap();
        let folder = self.folder.path().display().to_string();
        (code, lines, raw.replace(&folder, "/project"))
    }
}

fn output_thread(
    output: PipeReader,
    raw: Arc<Mutex<String>>,
) -> (JoinHandle<()>, mpsc::Receiver<Value>) {
    let (send, receive) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let Ok(line) = line else { return };
            raw.lock().unwrap().push_str(&format!("{line}\n"));
            let _ =
                send.send(serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e} in {line}")));
        }
    });
    (thread, receive)
}

fn agent<D: Driver>(
    options: RigOptions,
    root: PathBuf,
    input: PipeReader,
    output: PipeWriter,
    books: Books,
) -> u8 {
    let gate = options.gate.clone();
    let facts = options.mcp_facts.clone();
    let (config, world) = parts(options, &root, preset);
    let now = Now {
        mono_us: 0,
        unix_ms: 1_700_000_000_000,
    };
    let session = Watched::new(Session::new(config, info(&root), now), books);
    let server = Server::<Openmax>::new(ServerConfig::new("0.0.0".into(), [7; 32]));
    let host = Host {
        input: Box::new(input),
        output: Box::new(Gated {
            gate,
            inner: output,
        }),
        signals: false,
        answer: Box::new(|ask| match ask {}),
        refrozen: Some(Box::new(|reloaded, _, asked| match asked {
            turnwire_io::Asked::Host => Vec::new(),
            turnwire_io::Asked::Nobody => vec![Extra::Refrozen {
                tools: reloaded.tools.into(),
                skills: reloaded.skills.into(),
                changes: reloaded.changes.clone(),
            }],
        })),
        heard_mcp: Some(Box::new(move |fact| {
            facts.lock().unwrap().push(fact.clone());
            Vec::new()
        })),
        gone: None,
    };
    D::serve(server, session, world, host).unwrap()
}

fn openseek_agent<D: Driver>(
    options: RigOptions,
    root: PathBuf,
    input: PipeReader,
    output: PipeWriter,
    books: Books,
) -> u8 {
    let gate = options.gate.clone();
    let (config, world) = parts(options, &root, openseek::preset);
    let now = Now {
        mono_us: 0,
        unix_ms: 1_700_000_000_000,
    };
    let session = Watched::new(Session::new(config, info(&root), now), books);
    let asking = openseek::Asking::Never;
    let config = openseek::ServerConfig::serve([7; 32], asking);
    let host = Host {
        input: Box::new(input),
        output: Box::new(Gated {
            gate,
            inner: output,
        }),
        signals: false,
        answer: Box::new(|ask| match ask {}),
        refrozen: None,
        heard_mcp: None,
        gone: None,
    };
    let server = Server::<openseek::Openseek>::new(config);
    D::serve(server, session, world, host).unwrap()
}

/// A session's configuration under a protocol's preset, and its world, in this folder.
pub(crate) fn parts(
    options: RigOptions,
    root: &Path,
    preset: impl FnOnce(&mut SessionConfig),
) -> (SessionConfig, World) {
    let has_jobs = options.jobs.is_some();
    let tools = ToolboxConfig::new(root);
    let tools = ToolboxConfig {
        jobs: options.jobs.map(|place| place(root)),
        default_timeout: options.default_timeout.unwrap_or(tools.default_timeout),
        ..tools
    };
    let commands = options.turn_end.iter().map(|line| HookCommand {
        key: (*line).into(),
        line: (*line).into(),
        observe: false,
    });
    let hooks = Hooks::new(HooksConfig::beside(&tools, "s", commands.collect()));
    let toolbox = Toolbox::new(tools).unwrap();
    let backend = options.backend.unwrap_or_else(|| {
        let script = Script::parse(&options.script).unwrap_or_else(|e| panic!("{e}"));
        Backend::Scripted(Arc::new(script))
    });
    let mut config = SessionConfig::new(ModelConfig::new("scripted", 32_768));
    preset(&mut config);
    config.settings.approvals = options.approvals.clone();
    if let Some(interrupting) = options.interrupting {
        config.settings.interrupting = interrupting;
    }
    config.tools = toolbox.specs();
    config.tools.extend(has_jobs.then(job_stop_tool));
    config.hooks = options.turn_end.iter().map(|line| turn_end(line)).collect();
    // Retries don't take a test's time.
    config.policy.retry.backoff_us = vec![20_000];
    let world = World {
        snapshots: None,
        backend,
        toolbox,
        hooks,
        sessions: None,
        durable: Box::new(Disk {
            fails: options.fail_writes,
            folder: root.to_owned(),
        }),
        reload: options
            .reload
            .unwrap_or_else(|| Box::new(turnwire_io::Fixed { tools: 0 })),
        media: turnwire_io::Media::none(),
        mcp: options.mcp.map(|servers| {
            let place = turnwire_io::mcp::Place::new(root);
            let mut mcp = turnwire_io::mcp::Mcp::new(servers, place, config.tools.clone());
            (options.tune_mcp)(&mut mcp);
            mcp
        }),
    };
    (config, world)
}

fn turn_end(key: &str) -> LocalHook {
    LocalHook {
        spec: HookSpec {
            key: key.into(),
            point: HookPoint::TurnEnd,
            matcher: None,
            timeout_us: None,
        },
        decides: true,
    }
}

pub(crate) fn info(root: &Path) -> Box<SessionInfo> {
    let root = root.display().to_string();
    Box::new(SessionInfo {
        session: "test-session".into(),
        name: None,
        file: None,
        generation: "1".into(),
        root: Some(root.as_str().into()),
        cwd: root.as_str().into(),
        product: "turnwire".into(),
        continued: false,
        history: Vec::new(),
        summarised: Vec::new(),
        model: turnwire::vocab::ModelRef {
            provider: None,
            model: "scripted".into(),
        },
        api_model: None,
        efforts: Vec::new(),
        settings: Box::new(turnwire::vocab::Settings {
            approvals: ApprovalMode::Auto,
            thinking: None,
            steer_drain: turnwire::vocab::Drain::All,
            follow_up_drain: turnwire::vocab::Drain::One,
            interrupting: turnwire::vocab::Interrupting::Wait,
            auto_retry: true,
            auto_compact: true,
        }),
        tools: Vec::new(),
        briefing: Briefing::default(),
        mcp: Vec::new(),
        commands: Vec::new(),
        skills: Vec::new(),
        media: Vec::new(),
    })
}
