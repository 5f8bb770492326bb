//! What a driver owes the writer of its lines, and what becomes of a session whose writer fails (WIRE-003, WIRE-013, WIRE-015).
//!
//! The wire here is the strict one of agentx, whose contract says all this; the writer is every protocol's.

use std::error::Error;
use std::fmt;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use turnwire::protocol::agentx::{Agentx, AgentxAsk, AgentxOutcome, Policy, ServerConfig, preset};
use turnwire::protocol::{Credentials, Server};
use turnwire::session::Session;
use turnwire::session::config::Snapshots;
use turnwire::vocab::{ApprovalMode, Now, RawJson};
use turnwire_io::Host;

use crate::Driver;
use crate::rig::{PATIENCE, RigOptions, info, parts};
use crate::watch::{Books, Watched};

/// How a writer fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// With an error that must not be looked at.
    Error,
    Panic,
    /// It takes nothing.
    Short,
    /// When it is flushed.
    Flush,
    FlushPanic,
    /// Never; its flush waits until it is let go.
    Slow,
}

/// An error that panics whatever is asked of it.
struct Loud;

impl fmt::Debug for Loud {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("a writer's error was shown")
    }
}

impl fmt::Display for Loud {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("a writer's error was shown")
    }
}

impl Error for Loud {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        panic!("a writer's error was asked where it comes from")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Called {
    Write(Vec<u8>),
    Flush,
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Called>>>);

impl Log {
    fn add(&self, called: Called) {
        self.0.lock().unwrap().push(called);
    }
}

/// Writes down how it is called; fails from the first write on that holds a word.
struct Writer {
    log: Log,
    fault: Option<(&'static str, Fault)>,
    lines: mpsc::Sender<String>,
    /// What the reader hasn't been told, for it isn't flushed.
    unflushed: Vec<u8>,
    reached: bool,
    busy: Arc<AtomicBool>,
    go_on: mpsc::Receiver<()>,
}

impl Writer {
    fn alone<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let was_busy = self.busy.swap(true, Ordering::SeqCst);
        assert!(!was_busy, "two calls at once");
        let done = act(self);
        self.busy.store(false, Ordering::SeqCst);
        done
    }

    fn fault(&self) -> Option<Fault> {
        self.fault.map(|(_, fault)| fault).filter(|_| self.reached)
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.alone(|writer| {
            writer.log.add(Called::Write(bytes.to_vec()));
            let holds = |word| String::from_utf8_lossy(bytes).contains(word);
            writer.reached |= writer.fault.is_some_and(|(word, _)| holds(word));
            match writer.fault() {
                Some(Fault::Error) => return Err(io::Error::other(Loud)),
                Some(Fault::Panic) => panic!("on purpose"),
                Some(Fault::Short) => return Ok(0),
                Some(Fault::Flush | Fault::FlushPanic | Fault::Slow) | None => {}
            }
            writer.unflushed.extend_from_slice(bytes);
            Ok(bytes.len())
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.alone(|writer| {
            writer.log.add(Called::Flush);
            match writer.fault() {
                Some(Fault::Flush) => return Err(io::Error::other(Loud)),
                Some(Fault::FlushPanic) => panic!("on purpose"),
                Some(Fault::Slow) => {
                    let _ = writer.lines.send("slow".into());
                    writer.go_on.recv_timeout(PATIENCE).unwrap();
                    writer.fault = None;
                }
                Some(Fault::Error | Fault::Panic | Fault::Short) | None => {}
            }
            let text = String::from_utf8(std::mem::take(&mut writer.unflushed)).unwrap();
            for line in text.split_inclusive('\n') {
                let _ = writer.lines.send(line.to_owned());
            }
            Ok(())
        })
    }
}

struct Options {
    script: &'static str,
    approvals: ApprovalMode,
    policy: Policy,
    secret: Option<&'static str>,
    fault: Option<(&'static str, Fault)>,
}

impl Options {
    fn script(script: &'static str) -> Self {
        Options {
            script,
            approvals: ApprovalMode::Ask,
            policy: Policy::AGENTX,
            secret: None,
            fault: None,
        }
    }
}

struct Scene {
    folder: tempfile::TempDir,
    input: Option<PipeWriter>,
    lines: mpsc::Receiver<String>,
    said: Vec<String>,
    log: Log,
    books: Books,
    go_on: mpsc::Sender<()>,
    agent: JoinHandle<u8>,
}

const WRITES: &str = r#"
reply when step 1
  call write_file {"path": "made.txt", "content": "hello\n"}
reply
  say: Written.
"#;

const USER: &str = r#"{"type":"user","uuid":"u1","message":"go"}"#;

impl Scene {
    fn start<D: Driver>(options: Options) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let (agent_input, input) = io::pipe().unwrap();
        let (tell, lines) = mpsc::channel();
        let (go_on, wait) = mpsc::channel();
        let (log, books) = (Log::default(), Books::default());
        let writer = Writer {
            log: log.clone(),
            fault: options.fault,
            lines: tell,
            unflushed: Vec::new(),
            reached: false,
            busy: Arc::default(),
            go_on: wait,
        };
        let root = folder.path().to_owned();
        let watched = books.clone();
        let agent =
            std::thread::spawn(move || serve::<D>(options, root, agent_input, writer, watched));
        Scene {
            folder,
            input: Some(input),
            lines,
            said: Vec::new(),
            log,
            books,
            go_on,
            agent,
        }
    }

    fn say(&mut self, line: &str) {
        let _ = writeln!(self.input.as_mut().unwrap(), "{line}");
    }

    /// Reads on to a line that holds this.
    fn wait_for(&mut self, word: &str) -> serde_json::Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no {word}; so far: {:#?}", self.said));
            self.said.push(line.clone());
            if line.contains(word) {
                return serde_json::from_str(&line).unwrap_or_default();
            }
        }
    }

    /// Allows what is asked next.
    fn allow(&mut self) {
        let request = self.wait_for("can_use_tool");
        let id = request["request_id"].as_str().unwrap().to_owned();
        self.say(&format!(
            r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"{id}","response":{{"behavior":"allow","updatedInput":{{}}}}}}}}"#
        ));
    }

    fn made(&self) -> bool {
        self.folder.path().join("made.txt").exists()
    }

    /// The end by itself: the exit code, and how the writer was called. Nothing is left that anybody waits for.
    fn ended(self) -> (u8, Vec<Called>) {
        let code = self.agent.join().unwrap();
        self.books.open().check(code == 0);
        let calls = std::mem::take(&mut *self.log.0.lock().unwrap());
        (code, calls)
    }

    /// The end, after the end of the input.
    fn finish(mut self) -> (u8, Vec<Called>) {
        self.input = None;
        self.ended()
    }
}

fn serve<D: Driver>(
    options: Options,
    root: PathBuf,
    input: PipeReader,
    output: Writer,
    books: Books,
) -> u8 {
    let policy = options.policy;
    let rig = RigOptions {
        approvals: options.approvals,
        ..RigOptions::script(options.script)
    };
    let (mut config, world) = parts(rig, &root, |config| preset(config, &policy));
    config.policy.snapshots = Snapshots::Never;
    let now = Now {
        mono_us: 0,
        unix_ms: 1_700_000_000_000,
    };
    let session = Watched::new(Session::new(config, info(&root), now), books);
    let mut server = Server::<Agentx>::new(ServerConfig::new([7; 32], policy));
    if let Some(secret) = options.secret {
        server.hide(Credentials::exact([secret]).unwrap()).unwrap();
    }
    let host = Host {
        input: Box::new(input),
        output: Box::new(output),
        signals: false,
        answer: Box::new(|ask| {
            match ask {
                AgentxAsk::Control { .. } => {
                    let long = format!("\"{}\"", "x".repeat(9 << 20));
                    AgentxOutcome::Success(Some(RawJson(long.as_str().into())))
                }
                _ => AgentxOutcome::Default,
            }
            .into()
        }),
        refrozen: None,
        heard_mcp: None,
        gone: None,
    };
    D::serve(server, session, world, host).unwrap()
}

/// All that was written, as text.
fn written(calls: &[Called]) -> String {
    let bytes = calls.iter().filter_map(|called| match called {
        Called::Write(bytes) => Some(bytes.as_slice()),
        Called::Flush => None,
    });
    String::from_utf8(bytes.collect::<Vec<_>>().concat()).unwrap()
}

/// Wire 003 wire 015 whole lines are written one after the other and flushed.
pub fn wire_003_wire_015_whole_lines_are_written_one_after_the_other_and_flushed<D: Driver>() {
    let mut scene = Scene::start::<D>(Options::script(WRITES));
    scene.say(USER);
    scene.allow();
    scene.wait_for(r#""state":"idle""#);
    assert!(scene.made());
    let (code, calls) = scene.finish();
    assert_eq!(code, 0);
    for pair in calls.chunks(2) {
        let [Called::Write(bytes), Called::Flush] = pair else {
            panic!("a write, then its flush: {calls:?}");
        };
        assert!(bytes.ends_with(b"\n"), "no part of a line: {bytes:?}");
    }
    for line in written(&calls).lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["type"].is_string());
    }
}

/// Wire 015 written is what was flushed.
pub fn wire_015_written_is_what_was_flushed<D: Driver>() {
    let mut scene = Scene::start::<D>(Options {
        approvals: ApprovalMode::Auto,
        fault: Some((r#""type":"tool_use""#, Fault::Slow)),
        ..Options::script(WRITES)
    });
    scene.say(USER);
    scene.wait_for("slow");
    std::thread::sleep(Duration::from_millis(150));
    assert!(!scene.made(), "the call ran before it was told");
    scene.go_on.send(()).unwrap();
    scene.wait_for(r#""state":"idle""#);
    assert!(scene.made());
    assert_eq!(scene.finish().0, 0);
}

/// Wire 013 ax s17 a line with a credential reaches no writer.
pub fn wire_013_ax_s17_a_line_with_a_credential_reaches_no_writer<D: Driver>() {
    let mut scene = Scene::start::<D>(Options {
        secret: Some("sk-very-secret"),
        ..Options::script("reply\n say: It is sk-very-secret, and more.")
    });
    scene.say(USER);
    let (code, calls) = scene.ended();
    assert_eq!(code, 1);
    let text = written(&calls);
    assert!(
        !text.contains("secret") && !text.contains("and more"),
        "{text}"
    );
    // What came before it is there, whole.
    assert!(
        text.contains(r#""state":"running""#) && text.ends_with('\n'),
        "{text}"
    );
    assert!(!text.contains("idle"), "{text}");
    assert_eq!(calls.last(), Some(&Called::Flush));
}

/// Wire 018 a line over 8 MiB reaches no writer.
pub fn wire_018_a_line_over_8_mib_reaches_no_writer<D: Driver>() {
    let mut scene = Scene::start::<D>(Options {
        policy: Policy::AGENTX_FULL,
        ..Options::script("reply\n say: Hello.")
    });
    scene.say(USER);
    scene.wait_for(r#""state":"idle""#);
    scene.say(
        r#"{"type":"control_request","request_id":"r1","request":{"subtype":"get_settings"}}"#,
    );
    let (code, calls) = scene.ended();
    assert_eq!(code, 1);
    let text = written(&calls);
    assert!(
        !text.contains("r1") && text.len() < 1 << 20,
        "{}",
        text.len()
    );
    assert!(text.ends_with('\n'));
}

/// Wire 015 ax s18 a writer that fails is not called again.
pub fn wire_015_ax_s18_a_writer_that_fails_is_not_called_again<D: Driver>() {
    for fault in [
        Fault::Error,
        Fault::Panic,
        Fault::Short,
        Fault::Flush,
        Fault::FlushPanic,
    ] {
        let mut scene = Scene::start::<D>(Options {
            approvals: ApprovalMode::Auto,
            fault: Some((r#""type":"tool_use""#, fault)),
            ..Options::script(WRITES)
        });
        scene.say(USER);
        let made = scene.folder.path().join("made.txt");
        let Scene {
            agent,
            log,
            books,
            folder,
            ..
        } = scene;
        let code = agent.join().unwrap();
        // As a host that hung up.
        assert_eq!(code, 129, "{fault:?}");
        books.open().check(false);
        assert!(
            !made.exists(),
            "{fault:?}: nothing starts that couldn't be told"
        );
        drop(folder);
        let calls = log.0.lock().unwrap();
        let fails_at = calls
            .iter()
            .position(|called| written(std::slice::from_ref(called)).contains("tool_use"));
        let last = match fault {
            Fault::Error | Fault::Panic | Fault::Short => fails_at.unwrap(),
            Fault::Flush | Fault::FlushPanic | Fault::Slow => fails_at.unwrap() + 1,
        };
        assert_eq!(calls.len(), last + 1, "{fault:?}: called again");
    }
}

/// The session ends by itself, and whatever was asked is settled; whether the call ran.
fn breaks<D: Driver>(word: &'static str, fault: Fault, act: impl FnOnce(&mut Scene)) -> bool {
    let mut scene = Scene::start::<D>(Options {
        fault: Some((word, fault)),
        ..Options::script(WRITES)
    });
    scene.say(USER);
    act(&mut scene);
    let Scene {
        agent,
        books,
        folder,
        input,
        ..
    } = scene;
    assert_eq!(agent.join().unwrap(), 129);
    drop(input);
    books.open().check(false);
    folder.path().join("made.txt").exists()
}

/// Ax s19 a question that can't be written strands nobody.
pub fn ax_s19_a_question_that_cant_be_written_strands_nobody<D: Driver>() {
    for fault in [Fault::Error, Fault::Panic, Fault::FlushPanic] {
        let ran = breaks::<D>("can_use_tool", fault, |_| {});
        assert!(!ran, "{fault:?}: nobody was asked");
    }
    // The driver is as good as before.
    let mut scene = Scene::start::<D>(Options::script(WRITES));
    scene.say(USER);
    scene.allow();
    scene.wait_for(r#""state":"idle""#);
    assert_eq!(scene.finish().0, 0);
}

/// Ax s19 an answer that was taken stands.
pub fn ax_s19_an_answer_that_was_taken_stands<D: Driver>() {
    for fault in [Fault::Error, Fault::Panic] {
        let ran = breaks::<D>("tool_result", fault, Scene::allow);
        assert!(ran, "{fault:?}: the host had allowed it");
    }
}

/// Ax s19 a withdrawal that can't be written strands nobody.
pub fn ax_s19_a_withdrawal_that_cant_be_written_strands_nobody<D: Driver>() {
    for fault in [Fault::Error, Fault::Panic] {
        let ran = breaks::<D>("control_cancel_request", fault, |scene| {
            scene.wait_for("can_use_tool");
            scene.say(
                r#"{"type":"control_request","request_id":"i1","request":{"subtype":"interrupt"}}"#,
            );
        });
        assert!(!ran, "{fault:?}");
    }
}
