//! A Server and a Session in memory, with a provider, tools, hooks and a disk that are moved by hand.
//!
//! Both the laws of the neutral stream and what a host may rely on are watched all the time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use turnwire::frame::LineSplitter;
use turnwire::model::{Api, ReplyDecoder, ReplyHead, ReplyLimits, unreached};
use turnwire::protocol::openmax::{Openmax, preset};
use turnwire::protocol::{Protocol, Server, ServerOutput};
use turnwire::session::config::{LocalHook, ModelConfig};
use turnwire::session::{Session, SessionConfig};
use turnwire::vocab::laws::{Checker, Scope};
use turnwire::vocab::*;

use super::watch::Watched;
use super::{Out, info, labels, lines_of};

/// A tool that takes anything.
pub fn tool(name: &str, side_effect: SideEffect) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        label: None,
        description: "".into(),
        schema: RawJson("{}".into()),
        side_effect,
        hidden: false,
        uri_arg: None,
        route: Route::Driver,
    }
}

/// The tools of the cases, and the preset of openmax.
pub fn session_config(mode: ApprovalMode) -> SessionConfig {
    let mut config = SessionConfig::new(ModelConfig::new("m-1", 32_768));
    preset(&mut config);
    config.settings.approvals = mode;
    config.tools = vec![
        tool("look", SideEffect::Read),
        tool("write", SideEffect::Write),
        tool("f", SideEffect::Read),
    ];
    config
}

pub fn hook(key: &str, point: HookPoint) -> LocalHook {
    LocalHook {
        spec: HookSpec {
            key: key.into(),
            point,
            matcher: None,
            timeout_us: None,
        },
        decides: true,
    }
}

/// A request that was sent.
pub struct Sent {
    pub id: RequestId,
    /// Its messages when it was sent.
    pub messages: Vec<std::sync::Arc<Message>>,
    decoder: ReplyDecoder,
    /// It was told to stop; what it brings is absorbed.
    pub stopped: bool,
    settled: bool,
    begun: bool,
}

/// A call that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Running {
    pub call: CallId,
    pub name: String,
    pub input: String,
}

pub struct Duo {
    pub server: Server<Openmax>,
    pub session: Session,
    splitter: LineSplitter,
    pub now: Now,
    pub out: Vec<Out>,
    /// Lines since the last look.
    fresh: Vec<String>,
    pub all_lines: Vec<String>,
    pub exit: Option<u8>,
    pub requests: Vec<Sent>,
    pub running: Vec<Running>,
    /// Calls that were told to stop and haven't settled.
    pub stopping: Vec<CallId>,
    pub hooks: VecDeque<(HookId, String)>,
    /// Hooks that were told to stop and haven't settled.
    pub stopped_hooks: Vec<HookId>,
    /// Writes wait for `store` when it is held.
    pub disk_held: bool,
    pub writes: VecDeque<WriteId>,
    /// What each write holds that isn't done.
    bodies: BTreeMap<WriteId, Vec<Arc<Message>>>,
    /// Every message that was written: all that is left of the session after a crash.
    pub disk: Vec<Arc<Message>>,
    pub reloads: VecDeque<CommandId>,
    api: Api,
    checker: Checker,
    /// The observer between the host and the Server.
    pub watched: Watched,
}

impl Duo {
    pub fn new(config: SessionConfig) -> Self {
        Self::with(config, Api::OpenAi, super::config())
    }

    /// A process that goes on with what another one left on the disk.
    pub fn going_on(config: SessionConfig, disk: Vec<Arc<Message>>) -> Self {
        let mut info = info();
        info.continued = true;
        info.history = disk.clone();
        let mut duo = Self::of(config, Api::OpenAi, super::config(), info);
        duo.disk = disk;
        duo
    }

    pub fn with(
        config: SessionConfig,
        api: Api,
        server: turnwire::protocol::openmax::ServerConfig,
    ) -> Self {
        Self::of(config, api, server, info())
    }

    fn of(
        config: SessionConfig,
        api: Api,
        server: turnwire::protocol::openmax::ServerConfig,
        info: SessionInfo,
    ) -> Self {
        let now = Now {
            mono_us: 1_000,
            unix_ms: 1_700_000_000_000,
        };
        let mut duo = Duo {
            server: Server::new(server),
            session: Session::new(config, Box::new(info), now),
            splitter: LineSplitter::new(Openmax::host_line_rules()),
            now,
            out: Vec::new(),
            fresh: Vec::new(),
            all_lines: Vec::new(),
            exit: None,
            requests: Vec::new(),
            running: Vec::new(),
            stopping: Vec::new(),
            hooks: VecDeque::new(),
            stopped_hooks: Vec::new(),
            disk_held: false,
            writes: VecDeque::new(),
            bodies: BTreeMap::new(),
            disk: Vec::new(),
            reloads: VecDeque::new(),
            api,
            checker: Checker::new(Scope::Session),
            watched: Watched::new(),
        };
        duo.drain();
        duo.fresh.clear();
        duo
    }

    /// One line of the host, handled to quiet, as the driver does.
    pub fn host(&mut self, line: &str) {
        self.host_raw(format!("{line}\n").as_bytes());
    }

    pub fn host_raw(&mut self, bytes: &[u8]) {
        let mut splitter = std::mem::replace(
            &mut self.splitter,
            LineSplitter::new(Openmax::host_line_rules()),
        );
        let mut chunk = bytes;
        while let Some(split) = splitter.next(&mut chunk) {
            self.watched.host(&split);
            self.server.handle_line(split, self.now);
            self.drain();
        }
        self.splitter = splitter;
    }

    pub fn user(&mut self, text: &str) {
        let text = serde_json::to_string(text).unwrap();
        self.host(&format!(r#"{{"cmd":"user","text":{text}}}"#));
    }

    pub fn cancel(&mut self) {
        self.host(r#"{"cmd":"cancel"}"#);
    }

    pub fn host_end(&mut self) {
        let mut splitter = std::mem::replace(
            &mut self.splitter,
            LineSplitter::new(Openmax::host_line_rules()),
        );
        if let Some(split) = splitter.finish() {
            self.watched.host(&split);
            self.server.handle_line(split, self.now);
            self.drain();
        }
        self.watched.host_end();
        self.server.handle_end(self.now);
        self.drain();
    }

    pub fn signal(&mut self, signal: Signal) {
        self.server.handle_signal(signal, self.now);
        self.drain();
    }

    /// Tells the Server what only openmax has a line for.
    pub fn extra(&mut self, extra: turnwire::protocol::openmax::Extra) {
        self.server.handle_extra(extra, self.now);
        self.drain();
    }

    pub fn give(&mut self, input: Input<'_>) {
        self.checker.input(&input);
        self.session
            .handle(input, self.now)
            .expect("the driver keeps its contract");
        self.drain();
    }

    /// Moves commands and events between the two until both are quiet.
    pub fn drain(&mut self) {
        loop {
            let mut quiet = true;
            let mut lines = Vec::new();
            let output = self.server.poll_output(&mut lines);
            self.wrote(&lines);
            if let Some(output) = output {
                quiet = false;
                self.out.push(Out::Output(output.clone()));
                match output {
                    ServerOutput::Call(call) => {
                        self.checker.command(&call);
                        self.session
                            .handle(Input::Call(call), self.now)
                            .expect("a command is taken");
                    }
                    ServerOutput::Exit { code } => {
                        self.watched.exit(code);
                        self.exit = Some(code);
                    }
                    ServerOutput::Diagnostic(_) => {}
                    other => panic!("unexpected: {other:?}"),
                }
            } else if let Some(output) = self.session.poll_output() {
                quiet = false;
                self.checker.output(&output);
                match output {
                    Output::Event(event) => self.server.handle_event(event),
                    Output::Delta(delta) => self.server.handle_delta(&delta),
                    Output::Effect { run, effect } => self.effect(run, effect),
                }
            }
            if quiet {
                break;
            }
        }
        self.checker.quiet();
        assert_eq!(
            self.checker.violations(),
            [],
            "the neutral stream keeps its laws"
        );
    }

    fn wrote(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.out.push(Out::Lines(bytes.to_vec()));
        self.watched.agent(bytes);
        let lines = lines_of(bytes);
        self.fresh.extend(lines.iter().cloned());
        self.all_lines.extend(lines);
    }

    fn effect(&mut self, run: RunId, effect: Effect) {
        match effect {
            // An effect that was stopped before it was taken out has no body any more; it settles all the same.
            Effect::StartModel(id) => {
                let messages = match self.session.body(run, &Effect::StartModel(id)) {
                    Some(EffectBody::Model(request)) => request.messages.to_vec(),
                    Some(other) => panic!("not a request: {other:?}"),
                    None => Vec::new(),
                };
                let decoder = ReplyDecoder::new(self.api, ReplyLimits::default());
                self.requests.push(Sent {
                    id,
                    messages,
                    decoder,
                    stopped: false,
                    settled: false,
                    begun: false,
                });
            }
            Effect::StopModel(id) => {
                let sent = self.requests.iter_mut().find(|sent| sent.id == id).unwrap();
                sent.stopped = true;
            }
            Effect::RunTool { call } => {
                let (name, input) = match self.session.body(run, &Effect::RunTool { call }) {
                    Some(EffectBody::Tool { name, input, .. }) => {
                        (name.into(), input.0.to_string())
                    }
                    Some(other) => panic!("not a call: {other:?}"),
                    None => Default::default(),
                };
                self.running.push(Running { call, name, input });
            }
            Effect::StopTool(call) => {
                self.running.retain(|running| running.call != call);
                self.stopping.push(call);
            }
            Effect::RunHook { hook } => {
                let key = match self.session.body(run, &Effect::RunHook { hook }) {
                    Some(EffectBody::Hook { key, .. }) => key.into(),
                    Some(other) => panic!("not a hook: {other:?}"),
                    None => String::new(),
                };
                self.hooks.push_back((hook, key));
            }
            Effect::StopHook(stopped) => {
                self.hooks.retain(|(hook, _)| *hook != stopped);
                self.stopped_hooks.push(stopped);
            }
            Effect::Store(write) => {
                let messages = match self.session.body(run, &Effect::Store(write)) {
                    Some(EffectBody::Write(
                        WriteBody::Prompt(messages)
                        | WriteBody::Turn(messages)
                        | WriteBody::Beside(messages)
                        | WriteBody::Refusal(messages),
                    )) => messages.to_vec(),
                    _ => Vec::new(),
                };
                self.bodies.insert(write, messages);
                if self.disk_held {
                    self.writes.push_back(write);
                } else {
                    self.land(write);
                    let input = Input::Store { write, ok: Ok(()) };
                    self.checker.input(&input);
                    self.session
                        .handle(input, self.now)
                        .expect("a write settles");
                }
            }
            Effect::Reload(command) => self.reloads.push_back(command),
            other => panic!("unexpected effect: {other:?}"),
        }
    }

    /// Whether the last request has had no answer yet.
    pub fn is_waiting(&self) -> bool {
        self.requests
            .last()
            .is_some_and(|sent| !sent.stopped && !sent.settled && !sent.begun)
    }

    /// Whether the last request's answer has begun and not ended.
    pub fn is_live(&self) -> bool {
        self.requests
            .last()
            .is_some_and(|sent| !sent.stopped && !sent.settled && sent.begun)
    }

    /// What was stopped settles, unheard.
    pub fn settle_stopped(&mut self) {
        for index in 0..self.requests.len() {
            if self.requests[index].stopped && !self.requests[index].settled {
                self.requests[index].settled = true;
                let request = self.requests[index].id;
                self.give(Input::Model {
                    request,
                    chunk: ModelChunk::End,
                });
            }
        }
        while let Some(hook) = self.stopped_hooks.pop() {
            self.give(Input::Hook {
                hook,
                outcome: Err("stopped".into()),
            });
        }
        while let Some(call) = self.stopping.first().copied() {
            self.tool_done(call, true, "late");
        }
    }

    /// The driver caught a crash.
    pub fn crash(&mut self, detail: &str) {
        self.give(Input::Fault {
            detail: detail.into(),
        });
    }

    /// A command of the embedder's own, past the Server.
    pub fn command(&mut self, id: u64, command: Command) {
        let id = CommandId(1 << 60 | id);
        let call = Call { id, command };
        self.checker.command(&call);
        self.session
            .handle(Input::Call(call), self.now)
            .expect("a command is taken");
        self.drain();
    }

    /// The last request's answer begins.
    pub fn head(&mut self, status: u16, retry_after: Option<&str>) {
        let now = self.now;
        let sent = self.requests.last_mut().expect("a request was sent");
        assert!(!sent.stopped && !sent.settled, "the last request is live");
        sent.begun = true;
        sent.decoder.head(
            &ReplyHead {
                status,
                reason: "",
                content_type: None,
                retry_after,
            },
            now,
        );
    }

    /// Bytes of the answer to the request of this number, counted from 0.
    pub fn bytes_of(&mut self, index: usize, bytes: &str) {
        self.feed(index, |decoder, now, sink| {
            decoder.bytes(bytes.as_bytes(), now, sink)
        });
    }

    pub fn bytes(&mut self, bytes: &str) {
        self.bytes_of(self.requests.len() - 1, bytes);
    }

    pub fn close_of(&mut self, index: usize, clean: bool) {
        self.feed(index, |decoder, now, sink| {
            if clean {
                decoder.end(now, sink)
            } else {
                decoder.broken("connection reset", now, sink)
            }
        });
    }

    pub fn close(&mut self) {
        self.close_of(self.requests.len() - 1, true);
    }

    fn feed(
        &mut self,
        index: usize,
        decode: impl FnOnce(&mut ReplyDecoder, Now, &mut dyn FnMut(ModelChunk<'_>)),
    ) {
        let sent = &mut self.requests[index];
        let id = sent.id;
        let mut chunks: Vec<super::chunk::Chunk> = Vec::new();
        decode(&mut sent.decoder, self.now, &mut |chunk| {
            chunks.push(super::chunk::own(&chunk))
        });
        for chunk in chunks {
            if self.requests[index].settled {
                break;
            }
            self.requests[index].settled = chunk.lend().settles();
            self.give(Input::Model {
                request: id,
                chunk: chunk.lend(),
            });
        }
    }

    /// The endpoint couldn't be reached.
    pub fn unreached(&mut self) {
        let sent = self.requests.last_mut().unwrap();
        sent.settled = true;
        let request = sent.id;
        self.give(Input::Model {
            request,
            chunk: unreached("connection refused"),
        });
    }

    /// A whole answer: text, then calls as (id, tool, arguments).
    pub fn answer(&mut self, text: &str, calls: &[(&str, &str, &str)]) {
        self.head(200, None);
        self.part(text, calls);
        let index = self.requests.len() - 1;
        self.bytes_of(index, &chunk(r#""delta":{},"finish_reason":"stop""#));
        self.bytes_of(index, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":20}}\n\ndata: [DONE]\n\n");
        self.close_of(index, true);
    }

    /// The start of an answer, with no end.
    pub fn part(&mut self, text: &str, calls: &[(&str, &str, &str)]) {
        for piece in text.split_inclusive(' ') {
            let piece = serde_json::to_string(piece).unwrap();
            self.bytes(&chunk(&format!(
                r#""delta":{{"content":{piece}}},"finish_reason":null"#
            )));
        }
        for (index, (id, name, args)) in calls.iter().enumerate() {
            let args = serde_json::to_string(args).unwrap();
            self.bytes(&chunk(&format!(
                r#""delta":{{"tool_calls":[{{"index":{index},"id":"{id}","function":{{"name":"{name}","arguments":{args}}}}}]}},"finish_reason":null"#
            )));
        }
    }

    /// A running call settles; a stopped one too, which nobody hears.
    pub fn tool_done(&mut self, call: CallId, ok: bool, text: &str) {
        self.running.retain(|running| running.call != call);
        self.stopping.retain(|stopping| *stopping != call);
        let outcome = if ok {
            ToolOutcome::Ok
        } else {
            ToolOutcome::Failed
        };
        let update = ToolUpdate::Done {
            outcome,
            content: vec![Block::Text(text.into())],
            show: None,
        };
        self.give(Input::Tool { call, update });
    }

    /// The oldest running call settles.
    pub fn next_tool_done(&mut self, ok: bool, text: &str) {
        let call = self.running.first().expect("a call runs").call;
        self.tool_done(call, ok, text);
    }

    pub fn changed_file(&mut self, path: &str) {
        let call = self.running.first().expect("a call runs").call;
        let update = ToolUpdate::FileChanged {
            path: path.into(),
            diff: "+x\n".into(),
            added: 1,
            removed: 0,
        };
        self.give(Input::Tool { call, update });
    }

    /// The oldest hook answers.
    pub fn hook_says(&mut self, verdict: HookVerdict) {
        let (hook, _) = self.hooks.pop_front().expect("a hook runs");
        let reply = HookReply {
            verdict,
            ..HookReply::pass()
        };
        self.give(Input::Hook {
            hook,
            outcome: Ok(reply),
        });
    }

    pub fn hook_fails(&mut self, why: &str) {
        let (hook, _) = self.hooks.pop_front().expect("a hook runs");
        self.give(Input::Hook {
            hook,
            outcome: Err(why.into()),
        });
    }

    /// The oldest held write is done, or failed.
    pub fn store(&mut self, ok: Result<(), Text>) {
        let write = self.writes.pop_front().expect("a write waits");
        if ok.is_ok() {
            self.land(write);
        }
        self.give(Input::Store { write, ok });
    }

    /// A write reaches the disk; nobody has been told yet. Later writes of a turn hold the earlier ones' messages too.
    pub fn land(&mut self, write: WriteId) {
        for message in self.bodies.remove(&write).unwrap_or_default() {
            if self.disk.iter().all(|kept| kept.id != message.id) {
                self.disk.push(message);
            }
        }
    }

    pub fn reloaded(&mut self, outcome: Result<Answer, Text>) {
        let command = self.reloads.pop_front().expect("a reload runs");
        self.give(Input::Reloaded { command, outcome });
    }

    /// Time passes; whoever asked for it is woken.
    pub fn pass_ms(&mut self, ms: u64) {
        let end = self.now.mono_us + ms * 1_000;
        loop {
            let due = Due::earliest(self.session.poll_timeout(), self.server.poll_timeout());
            let Some(due) = due.filter(|due| due.at_us <= end) else {
                break;
            };
            let at = due.at_us.max(self.now.mono_us);
            self.now.unix_ms += (at - self.now.mono_us) / 1_000;
            self.now.mono_us = at;
            self.server.handle_woken(self.now);
            self.give(Input::Woken);
            let next = Due::earliest(self.session.poll_timeout(), self.server.poll_timeout());
            assert!(next.is_none_or(|next| next.at_us > at), "L4: {next:?}");
        }
        self.now.unix_ms += (end - self.now.mono_us) / 1_000;
        self.now.mono_us = end;
    }

    /// Lines since the last look.
    pub fn lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.fresh)
    }

    pub fn labels(&mut self) -> Vec<String> {
        labels(&self.lines())
    }

    /// The values of a member of all lines of a type so far.
    pub fn all(&self, kind: &str, member: &str) -> Vec<serde_json::Value> {
        let lines = self
            .all_lines
            .iter()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines
            .filter(|line| line["type"] == kind)
            .map(|line| line[member].clone())
            .collect()
    }

    /// The newest approval's id.
    pub fn approval(&self) -> String {
        self.all("approval_request", "approval_id")
            .last()
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub fn approve(&mut self, approved: bool) {
        let id = self.approval();
        self.host(&format!(
            r#"{{"cmd":"approve","approval_id":"{id}","approved":{approved}}}"#
        ));
    }
}

impl Drop for Duo {
    /// Every scene, whatever it is about, gives what a host may rely on.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            super::judge(&self.out, false);
        }
    }
}

fn chunk(choice: &str) -> String {
    format!(
        "data: {{\"id\":\"cc-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m-1\",\"choices\":[{{\"index\":0,{choice}}}]}}\n\n"
    )
}
