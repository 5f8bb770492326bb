//! Recordings of the real program, heard by the Client: the host's lines are the commands that a host of ours would
//! give, and the agent's answers name them by the ids that our Client gave them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use turnwire::json::Members;
use turnwire::protocol::agentx::decision::Verdict as Judged;
use turnwire::protocol::agentx::wire::{
    HookMatcher, HostLine, Kept, OPEN_RULES, Operation, Response, Said,
};
use turnwire::protocol::agentx::{AgentxAsk, ClientConfig, Policy};
use turnwire::vocab::*;

use super::Rig;

/// A row of a recording.
#[derive(Clone, Debug)]
pub enum Row {
    /// A line of the host.
    Host(String),
    /// The host closed its end.
    HostEnd,
    /// A line of the agent.
    Agent(String),
    /// The agent ended.
    Exit,
}

/// All recordings, by name, with the times of their rows in milliseconds.
pub fn all() -> Vec<(String, Vec<(u64, Row)>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/transcripts/claude");
    let found = of_folder(Path::new(folder));
    assert!(found.len() >= 69, "all recordings are there");
    found
}

pub fn of_folder(folder: &Path) -> Vec<(String, Vec<(u64, Row)>)> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the recordings are part of the project")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            (name, text.lines().filter_map(row).collect())
        })
        .collect()
}

pub fn named(name: &str) -> Vec<(u64, Row)> {
    let mut all = all().into_iter();
    let found = all.find(|(found, _)| found == name);
    found.expect("the recording is there").1
}

fn row(line: &str) -> Option<(u64, Row)> {
    let row: Value = serde_json::from_str(line).unwrap();
    let at = row["t_ms"].as_u64()?;
    let text = row["line"].as_str();
    let row = match (row["dir"].as_str()?, text) {
        ("in", Some(text)) => Row::Host(text.into()),
        ("in", None) => row["eof"].as_bool()?.then_some(Row::HostEnd)?,
        ("out", Some(text)) => Row::Agent(text.into()),
        ("out", None) => Row::Exit,
        ("note", Some("stdin closed")) => Row::HostEnd,
        ("note", Some(text)) if text.starts_with("exit status") => Row::Exit,
        _ => return None,
    };
    Some((at, row))
}

/// The ids of a recording's host, and ours.
#[derive(Default)]
pub struct Ids {
    /// The host's id of a request, and ours.
    requests: BTreeMap<String, String>,
    prompts: BTreeMap<String, PromptId>,
    /// The agent's ids of its questions, as our Client asks them, in order.
    asks: Vec<String>,
    /// How many of our lines were looked at.
    seen: usize,
}

impl Ids {
    /// The requests that our Client has written since the last look.
    fn written(&mut self, rig: &Rig) -> Vec<String> {
        let lines = rig.answers.all[self.seen..].iter();
        let requests = lines.filter_map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            (line["type"] == "control_request")
                .then(|| line["request_id"].as_str().unwrap().to_owned())
        });
        let requests = requests.collect();
        self.seen = rig.answers.all.len();
        requests
    }

    /// A line of the agent as it would be if our Client had sent the requests.
    pub fn ours(&mut self, line: &str) -> String {
        let Ok(mut value) = serde_json::from_str::<Value>(line) else {
            return line.into();
        };
        if value["type"] == "control_response"
            && let Some(ours) = value["response"]["request_id"]
                .as_str()
                .and_then(|id| self.requests.get(id))
        {
            value["response"]["request_id"] = ours.as_str().into();
            return value.to_string();
        }
        if value["type"] == "control_request" {
            let request = &value["request"];
            let method = request["message"]["method"].as_str();
            let silent = request["subtype"] == "mcp_message" && method != Some("tools/call");
            if !silent {
                self.asks.push(value["request_id"].as_str().unwrap().into());
            }
        }
        line.into()
    }

    pub fn ask(&self, wire: &str) -> Option<AskId> {
        let at = self.asks.iter().position(|id| id == wire)?;
        Some(AskId(at as u64 + 1))
    }
}

/// Gives the Client the command that a line of the recording's host stands for.
pub fn host(rig: &mut Rig, ids: &mut Ids, text: &str) {
    let mut members = Members::new();
    let Ok(line) = HostLine::decode(text.as_bytes(), &OPEN_RULES, &mut members) else {
        return;
    };
    match line {
        HostLine::User(user) => {
            let Some(Kept::Known(said)) = &user.message else {
                return;
            };
            let content = match said {
                Said::Text(text) => vec![Block::Text((&**text).into())],
                Said::Message(message) => blocks(&message.content),
            };
            let deliver = match user.priority.as_ref().and_then(Kept::known) {
                Some(priority) if priority.as_str() == "now" => Deliver::Preempt,
                Some(priority) if priority.as_str() == "later" => Deliver::Queue(Rank::Later),
                _ => Deliver::Queue(Rank::Next),
            };
            let id = PromptId(rig.told.len() as u64 + 1);
            let tag = user.uuid.as_deref().map(Text::from);
            if let Some(tag) = &tag {
                ids.prompts.entry(tag.to_string()).or_insert(id);
            }
            rig.command(Command::Prompt(Prompt {
                id,
                tag,
                content,
                deliver,
                literal: false,
                details: None,
            }));
        }
        HostLine::Request(request) => {
            let Some(id) = request.request_id.name().map(str::to_owned) else {
                return;
            };
            match request.operation() {
                Ok(operation) => operate(rig, ids, &operation, request.request.get()),
                Err(_) => return,
            }
            for ours in ids.written(rig) {
                ids.requests.insert(id.clone(), ours);
            }
        }
        HostLine::Response(response) => {
            if let Some(response) = response.known()
                && let Some(wire) = response.request_id.name()
                && let Some(ask) = ids.ask(wire)
            {
                let reply = reply(rig, ask, response);
                rig.command(Command::Reply { ask, reply });
            }
        }
        _ => {}
    }
}

fn blocks(content: &turnwire::protocol::agentx::wire::Content<'_>) -> Vec<Block> {
    use turnwire::protocol::agentx::wire::{Content, TextBlock};
    match content {
        Content::Text(text) => vec![Block::Text((&**text).into())],
        Content::Blocks(blocks) => {
            let known = blocks.iter().filter_map(Kept::known);
            let texts = known.filter_map(|block| block.text());
            let _: Option<TextBlock<'_>> = None;
            texts.map(|text| Block::Text((&**text).into())).collect()
        }
    }
}

fn operate(
    rig: &mut Rig,
    ids: &mut Ids,
    operation: &Operation<'_>,
    raw: Option<turnwire::json::Raw<'_>>,
) {
    let command = match operation {
        Operation::Initialize(it) => {
            if let Some(hooks) = it.hooks.value() {
                rig.command(Command::Offer(Offer::Hooks(offers(&hooks.0))));
            }
            // The greeting comes with time.
            rig.pass_ms(0);
            return;
        }
        Operation::Interrupt(_) => Command::Cancel {
            what: CancelWhat::Turn {
                queue: QueueFate::Run,
            },
            why: CancelWhy::Host,
        },
        Operation::SetModel(it) => Command::Set(Setting::Model(
            it.model.string().map(|name| (&*name).into()),
        )),
        Operation::SetPermissionMode(it) => {
            let mode = match it.mode.string().as_deref() {
                Some("acceptEdits") => ApprovalMode::AcceptEdits,
                Some("plan") => ApprovalMode::Plan,
                Some("bypassPermissions") => ApprovalMode::Auto,
                Some("dontAsk") => ApprovalMode::Never,
                Some("default") => ApprovalMode::Ask,
                other => ApprovalMode::Other(other.unwrap_or_default().into()),
            };
            Command::Set(Setting::Approvals(mode))
        }
        Operation::SetMaxThinkingTokens(it) => Command::Set(Setting::ThinkingBudget(
            it.max_thinking_tokens.get().and_then(|it| it.u64()),
        )),
        Operation::CancelAsyncMessage(it) => {
            let prompt = ids.prompts.get(&*it.message_uuid);
            Command::Withdraw(prompt.copied().unwrap_or(PromptId(99)))
        }
        Operation::RewindFiles(it) => {
            let prompt = ids.prompts.get(&*it.user_message_id);
            Command::Rewind {
                to: RewindTo::Prompt(prompt.copied().unwrap_or(PromptId(99))),
                dry_run: it.dry_run == Some(true),
            }
        }
        _ => {
            let request = RawJson(raw.map_or("{}", |raw| raw.as_str()).into());
            let subtype = operation.tag().unwrap_or_default().into();
            rig.request(&AgentxAsk::Control { subtype, request });
            return;
        }
    };
    rig.command(command);
}

fn offers(hooks: &[(turnwire::json::Str<'_>, Vec<Kept<'_, HookMatcher<'_>>>)]) -> Vec<HookSpec> {
    let point = |event: &str| match event {
        "PreToolUse" => HookPoint::PreTool,
        "PostToolUse" | "PostToolUseFailure" => HookPoint::PostTool,
        "PermissionRequest" => HookPoint::Permission,
        "UserPromptSubmit" => HookPoint::PromptSubmit,
        _ => HookPoint::TurnEnd,
    };
    let mut specs = Vec::new();
    for (event, matchers) in hooks {
        for matcher in matchers.iter().filter_map(Kept::known) {
            for id in &matcher.hook_callback_ids {
                specs.push(HookSpec {
                    key: (&**id).into(),
                    point: point(event),
                    matcher: matcher.matcher.value().map(|it| (&**it).into()),
                    timeout_us: None,
                });
            }
        }
    }
    specs
}

/// What the answer of the recording's host means.
fn reply(rig: &Rig, ask: AskId, response: &Response<'_>) -> Result<Reply, ReplyFault> {
    let body = rig.out.iter().find_map(|out| match out {
        super::Out::Event(Event {
            what: What::Asked { ask: of, body },
            ..
        }) if *of == ask => Some(body.clone()),
        _ => None,
    });
    if response.is_error() {
        return Err(ReplyFault::HostError(
            response.error_text().unwrap_or_default().into(),
        ));
    }
    let payload = response.response.get();
    match body {
        Some(Ask::Hook(hook)) => Ok(Reply::Hook(Box::new(hook_reply(hook.point, payload)))),
        Some(Ask::Tool { .. }) => {
            let result = payload.and_then(|it| it.get("mcp_response")?.get("result"));
            let text = result.map_or("", |it| it.as_str());
            let value: Value = serde_json::from_str(text).unwrap_or_default();
            let text = value["content"][0]["text"].as_str().unwrap_or_default();
            Ok(Reply::Tool {
                content: vec![Block::Text(text.into())],
                is_error: value["isError"] == true,
                details: None,
            })
        }
        _ => match Judged::of_payload(response.response, &Policy::CLAUDE) {
            Judged::Allow { input, .. } => Ok(Reply::Allow {
                input: input.map(|it| RawJson(it.as_str().into())),
                updates: vec![],
            }),
            Judged::Deny {
                message, interrupt, ..
            } => Ok(Reply::Deny {
                message: Some((&*message).into()),
                interrupt,
            }),
            Judged::Failed(text) => Err(ReplyFault::HostError(text.as_str().into())),
            Judged::Refused(fault) => Err(ReplyFault::Malformed(fault.to_string().as_str().into())),
        },
    }
}

fn hook_reply(point: HookPoint, payload: Option<turnwire::json::Raw<'_>>) -> HookReply {
    let text = payload.map_or("{}", |it| it.as_str());
    let value: Value = serde_json::from_str(text).unwrap();
    let specific = &value["hookSpecificOutput"];
    let mut reply = HookReply::pass();
    let word = match point {
        HookPoint::PreTool => specific["permissionDecision"].as_str(),
        HookPoint::Permission => specific["decision"]["behavior"].as_str(),
        _ => value["decision"].as_str(),
    };
    reply.verdict = match word {
        Some("allow") => HookVerdict::Allow { input: None },
        Some("deny" | "block") => HookVerdict::Deny("no".into()),
        Some("ask") => HookVerdict::Ask,
        _ => HookVerdict::Pass,
    };
    reply.go_on = value["continue"] != false;
    reply
}

/// A recording, heard to its end.
pub fn heard(rows: &[(u64, Row)], config: ClientConfig) -> Rig {
    let mut rig = Rig::new(config);
    let mut ids = Ids::default();
    let start = rig.now.mono_us;
    for (at, row) in rows {
        let until = start + at * 1_000;
        // The Client greets when the recording's host does.
        if until > rig.now.mono_us {
            rig.now.mono_us = until;
        }
        match row {
            Row::Host(text) => host(&mut rig, &mut ids, text),
            Row::HostEnd => drop(rig.command(Command::Close { drain: true })),
            Row::Agent(line) => {
                let line = ids.ours(line);
                rig.agent(&line);
            }
            Row::Exit => rig.end(),
        }
    }
    rig
}
