//! Attachments of agentx: a host that brings in whatever it likes, and an embedder that answers as it likes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use turnwire::frame::LineSplitter;
use turnwire::protocol::agentx::{
    Agentx, AgentxAsk, AgentxOutcome, Attachments, ImportLimits, ObserverConfig, Policy, Selected,
    ServerConfig, preset,
};
use turnwire::protocol::observer::{Dir, Observer, Severity, Sides};
use turnwire::protocol::{Protocol, Server, ServerOutput};
use turnwire::session::config::{ModelConfig, Snapshots};
use turnwire::session::{Session, SessionConfig};
use turnwire::vocab::*;

use super::{NOW, must, shown};
use crate::laws::Broken;
use crate::world::Speaks;

/// So little that the limits are met soon.
const LIMITS: ImportLimits = ImportLimits {
    item_bytes: 64,
    prompt_bytes: 100,
    per_prompt: 3,
    uploads: 4,
    stored_bytes: 160,
    ..ImportLimits::CONTRACT
};

/// The most steps of a story.
const MOST_STEPS: usize = 300;

/// Whatever a host says of attachments, and whatever becomes of them: each upload that is accepted ends exactly once and its
/// bytes are let go unless it is committed, no more are open than is said, and a prompt that is taken refers to all that
/// was committed for it and to nothing else.
///
/// Each four bytes are a step: which, which upload, which prompt, and how much.
///
/// # Errors
/// [`Broken`] with the guarantee that is broken.
pub fn agentx_imports(data: &[u8]) -> Result<(), Broken> {
    let (steps, _) = data.as_chunks::<4>();
    let mut rig = Rig::new();
    rig.drain()?;
    for [what, upload, prompt, much] in steps.iter().take(MOST_STEPS) {
        rig.step(*what, upload % 8, prompt % 3, *much)?;
    }
    rig.leave()
}

/// An upload, as the host was told of it.
#[derive(Debug, Default)]
struct Seen {
    accepted: bool,
    ended: bool,
    committed: bool,
    size: usize,
    appended: usize,
    dropped: u32,
}

struct Rig {
    server: Server<Agentx>,
    session: Session,
    splitter: LineSplitter,
    observer: Observer<Agentx>,
    hears: LineSplitter,
    now: Now,
    asks: Vec<(u64, AgentxAsk)>,
    uploads: BTreeMap<String, Seen>,
    /// What the host declared last for each upload.
    declared: BTreeMap<String, usize>,
    /// What was committed, by its prompt: the attachments and their manifests.
    committed: BTreeMap<String, BTreeMap<String, Value>>,
    taken: BTreeSet<String>,
    said: Vec<String>,
    ended: bool,
    exit: Option<u8>,
}

fn uuid(prompt: u8) -> String {
    format!("{prompt:08}-5c1f-4c1f-8e2c-88bc9839ec27")
}

/// So many zeros in base64.
fn zeros(count: usize) -> String {
    let rest = ["", "AA==", "AAA="][count % 3];
    "AAAA".repeat(count / 3) + rest
}

impl Rig {
    fn new() -> Self {
        let policy = Policy::AGENTX;
        let mut config = SessionConfig::new(ModelConfig::new("m", 32_768));
        preset(&mut config, &policy);
        config.policy.snapshots = Snapshots::Never;
        let server = ServerConfig {
            replay: true,
            provider: Some(Selected {
                id: "p".into(),
                kind: "openai".into(),
                efforts: Vec::new(),
                default_effort: None,
            }),
            attachments: Some(Attachments {
                limits: LIMITS,
                ..Attachments::default()
            }),
            ..ServerConfig::new([7; 32], policy)
        };
        let rules = Agentx::host_line_rules();
        Rig {
            server: Server::new(server),
            session: Session::new(config, Box::new(Agentx::info()), NOW),
            splitter: LineSplitter::new(rules),
            observer: Observer::new(ObserverConfig { policy }, Sides::Both),
            hears: LineSplitter::new(Agentx::agent_line_rules()),
            now: NOW,
            asks: Vec::new(),
            uploads: BTreeMap::new(),
            declared: BTreeMap::new(),
            committed: BTreeMap::new(),
            taken: BTreeSet::new(),
            said: Vec::new(),
            ended: false,
            exit: None,
        }
    }

    fn step(&mut self, what: u8, upload: u8, prompt: u8, much: u8) -> Result<(), Broken> {
        let id = format!("upl_{upload}{}", much % 4);
        let import = |operation: &str| json!({"type":"attachment_import","version":1,"operation":operation,"upload_id":id});
        match what % 12 {
            0 | 1 => {
                let mut line = import("begin");
                self.declared.insert(id.clone(), usize::from(much % 70) + 1);
                line["prompt_uuid"] = json!(uuid(prompt));
                line["attachment_id"] = json!(format!("att_{upload}"));
                line["name"] = json!("a.png");
                line["size_bytes"] = json!(u64::from(much % 70) + 1);
                line["mime_type"] = json!("image/png");
                line["sha256"] = json!("0".repeat(64));
                self.say(&line)
            }
            2 | 3 => {
                let mut line = import("chunk");
                // The chunk that is next, unless the byte says otherwise.
                let next = self.uploads.get(&id).map_or(0, |seen| seen.appended);
                line["sequence"] = json!(next as u64 + u64::from(much / 250));
                let bytes = self.uploads.get(&id).map_or(1, |seen| seen.size);
                line["data"] = json!(match much % 17 {
                    13 => "AB==".to_owned(),
                    14 => "A A=".to_owned(),
                    15 => String::new(),
                    16 => zeros(bytes + 1),
                    _ => zeros(bytes.max(1)),
                });
                self.say(&line)
            }
            4 | 5 => self.say(&import("commit")),
            6 => self.say(&import("abort")),
            7 | 8 => self.settle(much),
            9 => self.user(prompt, much),
            10 => {
                self.now.mono_us += u64::from(much) * 1_000_000;
                self.server.handle_woken(self.now);
                self.drain()
            }
            _ if much < 4 => self.end(),
            _ if much < 8 => self.say(&json!({"type":"attachment_import","version":2})),
            _ => Ok(()),
        }
    }

    fn say(&mut self, line: &Value) -> Result<(), Broken> {
        if self.ended || self.exit.is_some() {
            return Ok(());
        }
        let line = format!("{line}\n");
        self.said.push(format!("< {line}"));
        let mut bytes = line.as_bytes();
        while let Some(split) = self.splitter.next(&mut bytes) {
            self.observer.handle_line(Dir::Host, split);
            self.server.handle_line(split, self.now);
        }
        self.drain()
    }

    /// A prompt: with all that was committed for it, one too few, or one of another.
    fn user(&mut self, prompt: u8, much: u8) -> Result<(), Broken> {
        let own = self.committed.get(&uuid(prompt));
        let mut refs: Vec<Value> = own
            .into_iter()
            .flat_map(|own| own.values().cloned())
            .collect();
        match much % 5 {
            0 => drop(refs.pop()),
            1 => {
                let other = self.committed.get(&uuid((prompt + 1) % 3));
                refs.extend(other.and_then(|other| other.values().next().cloned()));
            }
            2 => {
                if let Some(one) = refs.first_mut() {
                    one["name"] = json!("b.png");
                }
            }
            _ => {}
        }
        refs.insert(0, json!({"type":"text","text":"Look."}));
        let mut line = json!({
            "type":"user","uuid":uuid(prompt),
            "message":{"role":"user","content_version":1,"content":refs},
        });
        if much & 64 > 0 {
            line["priority"] = json!("now");
        }
        if much & 128 > 0 {
            line["isReplay"] = json!(true);
            line["session_id"] = json!(Agentx::info().session.to_string());
        }
        self.say(&line)
    }

    /// Settles the oldest question.
    fn settle(&mut self, much: u8) -> Result<(), Broken> {
        if self.asks.is_empty() || self.exit.is_some() {
            return Ok(());
        }
        let (id, ask) = self.asks.remove(0);
        let sha = format!("{:064x}", much / 8);
        let kept = json!({
            "size_bytes": u64::from(much % 80) + 1, "sha256": sha, "storage_id": format!("blob_sha256_{sha}"),
        });
        let outcome = match (&ask, much % 8) {
            (_, 0) => AgentxOutcome::Default,
            (_, 1) => AgentxOutcome::Failure("digest_mismatch".into()),
            (_, 2) => AgentxOutcome::Failure("/etc/passwd".into()),
            (AgentxAsk::BlobCommit { .. }, 3) => AgentxOutcome::Success(None),
            (AgentxAsk::BlobCommit { .. }, _) => {
                AgentxOutcome::Success(Some(RawJson(kept.to_string().into())))
            }
            _ => AgentxOutcome::Success(None),
        };
        let settled = self.server.settle(id, outcome, self.now);
        must(settled.is_ok(), "L8", || format!("{settled:?}"))?;
        self.drain()
    }

    fn end(&mut self) -> Result<(), Broken> {
        if self.ended || self.exit.is_some() {
            return Ok(());
        }
        self.ended = true;
        self.observer.handle_end(Dir::Host);
        self.server.handle_end(self.now);
        self.drain()
    }

    /// The input ends, and a signal ends what is left.
    fn leave(mut self) -> Result<(), Broken> {
        self.end()?;
        self.server.handle_signal(Signal::Terminate, self.now);
        self.drain()?;
        self.server.handle_signal(Signal::Terminate, self.now);
        self.drain()?;
        must(self.exit.is_some(), "L9", || "it doesn't leave".to_owned())?;
        for (id, seen) in &self.uploads {
            must(!seen.accepted || seen.ended, "WIRE-019", || {
                format!("{id} never ended: {}", self.said.join(""))
            })?;
            let drops = u32::from(seen.accepted && !seen.committed);
            must(seen.dropped == drops, "WIRE-018", || {
                format!(
                    "{id} was let go {} times: {}",
                    seen.dropped,
                    self.said.join("")
                )
            })?;
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<(), Broken> {
        loop {
            let mut bytes = Vec::new();
            let output = self.server.poll_output(&mut bytes);
            self.wrote(&bytes)?;
            if let Some(output) = output {
                self.take(output)?;
                continue;
            }
            match self.session.poll_output() {
                None => break,
                Some(Output::Event(event)) => self.server.handle_event(event),
                Some(Output::Delta(delta)) => self.server.handle_delta(&delta),
                // No model, tool or disk ever answers here.
                Some(Output::Effect { .. }) => {}
            }
        }
        let open = self
            .uploads
            .values()
            .filter(|seen| seen.accepted && !seen.ended);
        let open = open.count();
        must(open <= LIMITS.uploads, "WIRE-018", || {
            format!("{open} are open")
        })
    }

    fn take(&mut self, output: ServerOutput<Agentx>) -> Result<(), Broken> {
        match output {
            ServerOutput::Call(call) => {
                if let Command::Prompt(prompt) = &call.command {
                    self.prompted(prompt)?;
                }
                let told = self.session.handle(Input::Call(call), self.now);
                must(told.is_ok(), "L9", || format!("{told:?}"))
            }
            ServerOutput::Ask { id, ask } => {
                self.asked(&ask)?;
                self.asks.push((id, ask));
                Ok(())
            }
            ServerOutput::Exit { code } => {
                self.exit = Some(code);
                Ok(())
            }
            ServerOutput::Dismiss { .. } | ServerOutput::Diagnostic(_) => Ok(()),
        }
    }

    fn asked(&mut self, ask: &AgentxAsk) -> Result<(), Broken> {
        match ask {
            AgentxAsk::BlobAppend { upload, bytes } => {
                let seen = self.uploads.entry(upload.to_string()).or_default();
                seen.appended += 1;
                must(
                    seen.accepted && !seen.ended && bytes.len() <= seen.size,
                    "WIRE-018",
                    || format!("{upload} gets {} bytes: {seen:?}", bytes.len()),
                )
            }
            AgentxAsk::BlobCommit { upload, .. } => {
                let seen = self.uploads.get(&**upload);
                must(
                    seen.is_some_and(|seen| seen.accepted && !seen.ended),
                    "WIRE-018",
                    || format!("{upload} is committed: {seen:?}"),
                )
            }
            AgentxAsk::BlobDrop { upload } => {
                let seen = self.uploads.entry(upload.to_string()).or_default();
                seen.dropped += 1;
                Ok(())
            }
            AgentxAsk::Control { .. }
            | AgentxAsk::Environment(_)
            | AgentxAsk::Options(_)
            | AgentxAsk::Flush
            | AgentxAsk::Orphan(_) => Ok(()),
        }
    }

    /// WIRE-020: all that was committed for it, and nothing else.
    fn prompted(&mut self, prompt: &Prompt) -> Result<(), Broken> {
        let tag = prompt.tag.as_deref().unwrap_or_default().to_owned();
        let named: BTreeSet<String> = prompt
            .content
            .iter()
            .filter_map(|block| {
                if let Block::Media {
                    source: Source::Stored(stored),
                    ..
                } = block
                {
                    Some(stored.id.to_string())
                } else {
                    None
                }
            })
            .collect();
        let own = self.committed.get(&tag);
        let own: BTreeSet<String> = own
            .into_iter()
            .flat_map(|own| own.keys().cloned())
            .collect();
        must(named == own, "WIRE-020", || {
            format!(
                "{tag} refers to {named:?} of {own:?}: {}",
                self.said.join("")
            )
        })?;
        must(self.taken.insert(tag.clone()), "WIRE-020", || {
            format!("{tag} is taken twice")
        })
    }

    fn wrote(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let mut rest = bytes;
        let mut hears = std::mem::replace(
            &mut self.hears,
            LineSplitter::new(Agentx::agent_line_rules()),
        );
        let mut lines = Vec::new();
        while let Some(split) = hears.next(&mut rest) {
            if let turnwire::frame::SplitKind::Line(line) = split.what {
                lines.push(line.to_vec());
            }
            self.observer.handle_line(Dir::Agent, split);
        }
        self.hears = hears;
        for line in &lines {
            self.said.push(format!("> {}\n", shown(line)));
            let value: Value = serde_json::from_slice(line).unwrap_or_default();
            if value["type"] == "attachment_import_result" {
                self.told(&value)?;
            }
        }
        while let Some(finding) = self.observer.poll_finding() {
            let mild = finding.severity == Severity::Info || finding.dir == Dir::Host;
            must(mild, "observer", || {
                format!("{finding}: {}", self.said.join(""))
            })?;
        }
        Ok(())
    }

    fn told(&mut self, line: &Value) -> Result<(), Broken> {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let id = text("upload_id");
        let size = self.declared.get(&id).copied().unwrap_or(0);
        let seen = self.uploads.entry(id.clone()).or_default();
        let accepted = line["status"] == "accepted";
        let again = seen.ended || (accepted && seen.accepted);
        must(!again, "WIRE-019", || {
            format!("{id} again: {line} in {}", self.said.join(""))
        })?;
        let Some(seen) = self.uploads.get_mut(&id) else {
            return Ok(());
        };
        if accepted {
            (seen.accepted, seen.size) = (true, size);
            return Ok(());
        }
        seen.ended = true;
        if line["status"] == "committed" {
            seen.committed = true;
            let own = self.committed.entry(text("prompt_uuid")).or_default();
            own.insert(text("attachment_id"), line["attachment"].clone());
        }
        Ok(())
    }
}
