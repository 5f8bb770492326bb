//! Recordings of the real program, heard by the Client: the host's lines are the commands that a host of ours would
//! give, and the agent's answers name them by the ids that our Client gave them.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use serde_json::{Value, json};
use turnwire::json::Members;
use turnwire::protocol::omp::ClientConfig;
use turnwire::protocol::omp::wire::{
    AgentLine, Command as Line, Frame, HostLine, InterruptMode, QueueMode, Side, Streaming,
    UiAnswer, host_text,
};
use turnwire::vocab::*;

use super::{Program, Rig};

/// A row of a recording.
#[derive(Clone, Debug)]
pub enum Row {
    /// A line of the host, or several.
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
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/transcripts/omp");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the recordings are part of the project")
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("codec-vectors.jsonl"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 31, "all recordings are there");
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
    let found = all.find(|(found, _)| found.starts_with(name));
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
        _ => return None,
    };
    Some((at, row))
}

/// The ids of a recording's host, and ours.
#[derive(Default)]
pub struct Ids {
    commands: BTreeMap<String, VecDeque<(CommandId, &'static str)>>,
    /// Ids of the agent's questions, in order.
    asks: Vec<String>,
}

impl Ids {
    pub fn sent(&mut self, id: Option<&str>, command: CommandId, name: &'static str) {
        let id = id.unwrap_or_default().to_owned();
        self.commands
            .entry(id)
            .or_default()
            .push_back((command, name));
    }

    /// A line of the agent as it would be if our Client had sent the commands.
    pub fn ours(&mut self, line: &str) -> String {
        let Ok(mut value) = serde_json::from_str::<Value>(line) else {
            return line.into();
        };
        let kind = value["type"].as_str().unwrap_or_default().to_owned();
        let dialog = ["select", "confirm", "input", "editor", "ask"];
        match &*kind {
            "host_tool_call" | "host_uri_request" => {
                self.asks.push(value["id"].as_str().unwrap().into());
            }
            "extension_ui_request" if dialog.contains(&value["method"].as_str().unwrap()) => {
                self.asks.push(value["id"].as_str().unwrap().into());
            }
            _ => {}
        }
        if kind != "response" && kind != "prompt_result" {
            return line.into();
        }
        let id = value.get("id").map(Value::to_string).unwrap_or_default();
        let Some(sent) = self.commands.get_mut(&id) else {
            return line.into();
        };
        let Some((command, name)) = sent.front().copied() else {
            return line.into();
        };
        value["id"] = json!(format!("c{}", command.0));
        if kind == "response" {
            value["command"] = json!(name);
            if sent.len() > 1 {
                sent.pop_front();
            }
        }
        value.to_string()
    }

    pub fn ask(&self, wire: &str) -> Option<AskId> {
        let at = self.asks.iter().position(|id| id == wire)?;
        Some(AskId(at as u64 + 1))
    }
}

/// Gives the Client the command that a line of the recording's host stands for.
pub fn host(rig: &mut Rig, ids: &mut Ids, text: &str) {
    let mut members = Members::new();
    for line in text.split('\n') {
        let line = host_text(line.as_bytes());
        match HostLine::decode(&line, &mut members) {
            Ok(HostLine::Command { id, command }) => {
                let id = id.get().map(|id| id.as_str().to_owned());
                let told = match &command {
                    Line::Unknown(_) => continue,
                    command => neutral(command),
                };
                let name = match &command {
                    // Our Client writes prompts for these.
                    Line::Steer(_) | Line::FollowUp(_) => "prompt",
                    other => other.tag().unwrap(),
                };
                let given = match told {
                    Some(Command::Prompt(prompt)) => {
                        let text: String = prompt.content.iter().filter_map(Block::text).collect();
                        rig.prompt(&text, prompt.deliver)
                    }
                    Some(command) => rig.command(command),
                    None => rig.send(&command),
                };
                ids.sent(id.as_deref(), given, name);
            }
            Ok(HostLine::Side(side)) => {
                if let Some((ask, reply)) = answer(ids, &side) {
                    let reply = Ok(reply);
                    rig.command(Command::Reply { ask, reply });
                }
            }
            Ok(HostLine::Unknown { .. } | HostLine::Other(_)) | Err(_) => {}
        }
    }
}

fn answer(ids: &Ids, side: &Side<'_>) -> Option<(AskId, Reply)> {
    let Side::Ui(response) = side else {
        return None;
    };
    let reply = match response.answer() {
        UiAnswer::Value(value) if value == "Approve" => Reply::Allow {
            input: None,
            updates: vec![],
        },
        UiAnswer::Value(value) if value == "Deny" => Reply::Deny {
            message: None,
            interrupt: false,
        },
        UiAnswer::Value(value) => Reply::Choice(Some((&*value).into())),
        _ => Reply::Choice(None),
    };
    Some((ids.ask(&response.id)?, reply))
}

fn content(message: &str) -> Vec<Block> {
    vec![Block::Text(message.into())]
}

/// The neutral command of a line; `None`: there is none.
pub fn neutral(line: &Line<'_>) -> Option<Command> {
    let prompt = |message: &str, deliver| {
        Command::Prompt(Prompt {
            id: PromptId(0),
            tag: None,
            content: content(message),
            deliver,
            literal: false,
            details: None,
        })
    };
    let steer = Deliver::Steer {
        idle: IdleSteer::Start,
    };
    let drain = |mode: &QueueMode<'_>| match mode {
        QueueMode::OneAtATime => Some(Drain::One),
        QueueMode::All => Some(Drain::All),
        QueueMode::Other(_) => None,
    };
    Some(match line {
        Line::Prompt(it) => prompt(
            &it.message,
            match &it.streaming_behavior {
                Some(Streaming::Steer) => steer,
                Some(Streaming::FollowUp) => Deliver::FollowUp,
                _ => Deliver::IfIdle,
            },
        ),
        Line::Steer(it) => prompt(&it.message, steer),
        Line::FollowUp(it) => prompt(&it.message, Deliver::FollowUp),
        Line::AbortAndPrompt(it) => prompt(&it.message, Deliver::Preempt),
        Line::Abort(_) => Command::Cancel {
            what: CancelWhat::Turn {
                queue: QueueFate::Keep,
            },
            why: CancelWhy::Host,
        },
        Line::AbortRetry(_) => Command::Cancel {
            what: CancelWhat::Retry,
            why: CancelWhy::Host,
        },
        Line::AbortBash(_) => Command::Cancel {
            what: CancelWhat::Shell,
            why: CancelWhy::Host,
        },
        Line::Bash(it) => Command::Shell {
            command: (&*it.command).into(),
        },
        Line::Compact(_) => Command::Compact { instructions: None },
        Line::GetState(_) => Command::Barrier,
        Line::SetSteeringMode(it) => Command::Set(Setting::SteerDrain(drain(&it.mode)?)),
        Line::SetFollowUpMode(it) => Command::Set(Setting::FollowUpDrain(drain(&it.mode)?)),
        Line::SetInterruptMode(it) => Command::Set(Setting::Interrupting(match &it.mode {
            InterruptMode::Wait => Interrupting::Wait,
            _ => Interrupting::Immediate,
        })),
        Line::SetAutoRetry(it) => Command::Set(Setting::AutoRetry(it.enabled)),
        Line::SetAutoCompaction(it) => Command::Set(Setting::AutoCompact(it.enabled)),
        Line::SetSessionName(it) => Command::Set(Setting::Name((&*it.name).into())),
        Line::SetThinkingLevel(it) => {
            Command::Set(Setting::Thinking(Some((&*it.level.string()?).into())))
        }
        Line::SetModel(it) => {
            let (provider, model) = (it.provider.string()?, it.model_id.string()?);
            let name = format!("{provider}/{model}");
            Command::Set(Setting::Model(Some(name.as_str().into())))
        }
        Line::NewSession(_) => Command::Session(SessionCommand::New { parent: None }),
        Line::OpenSession(it) => Command::Session(SessionCommand::Open((&*it.session_dir).into())),
        Line::SwitchSession(it) => {
            Command::Session(SessionCommand::Switch((&*it.session_path).into()))
        }
        Line::Branch(it) => {
            Command::Session(SessionCommand::Branch((&*it.entry_id.string()?).into()))
        }
        Line::SetHostTools(it) => {
            let tool = |tool: &turnwire::protocol::omp::wire::HostTool<'_>| {
                Some(ToolSpec {
                    name: (&*tool.name.string()?).into(),
                    label: None,
                    description: (&*tool.description.string()?).into(),
                    schema: RawJson(tool.parameters.get()?.as_str().into()),
                    side_effect: SideEffect::Read,
                    hidden: false,
                    uri_arg: None,
                    route: Route::Host,
                })
            };
            let tools = it.tools.iter().filter_map(|it| tool(it.known()?));
            Command::Offer(Offer::Tools(tools.collect()))
        }
        _ => return None,
    })
}

/// A recording, heard to its end.
pub fn heard(name: &str, rows: &[(u64, Row)], config: ClientConfig) -> Rig {
    let mut rig = Rig::new(config);
    if name.starts_with("v18.2") {
        rig.answers.program = Program::G1;
    }
    let mut ids = Ids::default();
    let start = rig.now.mono_us;
    for (at, row) in rows {
        let until = start + at * 1_000;
        if until > rig.now.mono_us {
            rig.pass_ms((until - rig.now.mono_us) / 1_000);
        }
        match row {
            Row::Host(text) => host(&mut rig, &mut ids, text),
            Row::HostEnd => drop(rig.command(Command::Close { drain: false })),
            Row::Agent(line) => {
                let line = ids.ours(line);
                rig.agent(&line);
            }
            Row::Exit => rig.end(),
        }
    }
    rig
}

/// Whether it is the agent's first line.
pub fn is_ready(line: &str) -> bool {
    matches!(
        AgentLine::decode(line.as_bytes(), &mut Members::new()),
        Ok(AgentLine::Frame(Frame::Ready(_)))
    )
}
