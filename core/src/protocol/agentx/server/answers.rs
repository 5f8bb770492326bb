//! What the agent tells of itself: `system/init` and the payloads of answers.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::Face;
use super::blocks::{self, raw};
use super::control::Ticket;
use crate::json::{self, Raw, Str};
use crate::protocol::Outbox;
use crate::protocol::agentx::Agentx;
use crate::protocol::agentx::Selected;
use crate::protocol::agentx::neutral::mode_word;
use crate::protocol::agentx::policy::{Extensions, InitRecord, RecordForm, SessionStates};
use crate::protocol::agentx::wire::{
    Account, AgentLine, Answer as Payload, Any, CommandInfo, ContextCategory, ContextUsage, Init,
    Initialized, Kept, McpServer, McpStatuses, ModelInfo, PluginsReloaded, Reasoning, Rest,
    Rewound, System,
};
use crate::protocol::wire::Hole;
use crate::vocab::*;

/// Boxes of the grid that shows how full the context is: rows, and boxes in a row.
const GRID: (usize, usize) = (10, 10);

impl Face {
    fn reasoning(selected: &Selected) -> Reasoning<'_> {
        Reasoning {
            supported: !selected.efforts.is_empty(),
            efforts: selected
                .efforts
                .iter()
                .map(|effort| (&**effort).into())
                .collect(),
            default_effort: selected.default_effort().map(Into::into),
            ..Reasoning::default()
        }
    }

    /// Where the key comes from: in the strict wire one of two words, whatever the embedder says (WIRE-016).
    fn key_source(&self) -> &str {
        let source = &*self.config.api_key_source;
        let strict = self.config.policy.attachments_providers_prompt_uuid == Extensions::Present;
        match source {
            "temporary" => source,
            _ if strict => "user",
            _ => source,
        }
    }

    /// Names and states of the MCP servers: the agent's own, and the host's.
    fn servers(&self) -> Vec<Kept<'_, McpServer<'_>>> {
        let named = |name, status| {
            Kept::Known(McpServer {
                name: Str::from(name),
                status: Str::from(status),
                ..McpServer::default()
            })
        };
        self.own_servers()
            .iter()
            .map(|server| named(&*server.name, server.status.word()))
            .chain(self.mcp.states().map(|(name, status)| named(name, status)))
            .collect()
    }

    /// The MCP servers that the agent runs itself.
    fn own_servers(&self) -> &[crate::vocab::McpServer] {
        self.mirror.info().map_or(&[], |info| info.mcp.as_slice())
    }

    /// `system/init`
    pub(super) fn say_init(&mut self, out: &mut Outbox<Agentx>) {
        let stamp = self.printer.stamp();
        let Some(info) = self.mirror.info() else {
            return;
        };
        let policy = self.config.policy;
        let extended = policy.attachments_providers_prompt_uuid == Extensions::Present;
        let rich = policy.record_form == RecordForm::Provider;
        let mode = mode_word(&info.settings.approvals);
        let selected = self.config.provider.as_ref().filter(|_| extended);
        let capabilities = self.capability();
        let uuids = self
            .turn
            .as_ref()
            .map_or(&[][..], |turn| turn.uuids.as_slice());
        let line = Init {
            cwd: (&*info.cwd).into(),
            session_id: (&*stamp.session).into(),
            tools: info.tools.iter().map(|tool| (&**tool).into()).collect(),
            mcp_servers: self.servers(),
            model: (&*info.model.model).into(),
            provider: selected.map(|selected| (&*selected.id).into()),
            provider_type: selected.map(|selected| (&*selected.kind).into()),
            reasoning_capabilities: selected.map(|selected| Box::new(Self::reasoning(selected))),
            permission_mode: mode.as_str().into(),
            slash_commands: info
                .commands
                .iter()
                .map(|(name, ..)| (&**name).into())
                .collect(),
            api_key_source: self.key_source().into(),
            agentx_version: (policy.init_record == InitRecord::Once)
                .then(|| (&*self.config.version).into()),
            claude_code_version: (policy.init_record == InitRecord::EachTurn)
                .then(|| (&*self.config.version).into()),
            output_style: (&*self.config.output_style).into(),
            agents: Some(
                self.config
                    .agents
                    .iter()
                    .filter_map(|agent| raw(agent).get_last("name").and_then(Raw::string))
                    .map(|name| Kept::Known(Str(name)))
                    .collect(),
            ),
            skills: info.skills.iter().map(|skill| (&**skill).into()).collect(),
            plugins: self.config.plugins.iter().map(kept).collect(),
            uuid: stamp.uuid.as_str().into(),
            input_capabilities: capabilities
                .as_ref()
                .and_then(|json| raw(json).decode().ok()),
            user_message_uuids: super::reply::all(uuids).filter(|_| rich),
            ..Init::default()
        };
        let mut json = Vec::new();
        AgentLine::System(System::from(line)).encode(&mut json);
        self.printer
            .line(out, |bytes| bytes.extend_from_slice(&json));
    }

    /// The payload of the answer to `initialize`, as JSON.
    pub(super) fn initialized_json(&self) -> Vec<u8> {
        let mut json = Vec::new();
        let Some(info) = self.mirror.info() else {
            return b"{}".to_vec();
        };
        let policy = self.config.policy;
        let extended = policy.attachments_providers_prompt_uuid == Extensions::Present;
        let rich = policy.record_form == RecordForm::Provider;
        let selected = self.config.provider.as_ref().filter(|_| extended);
        let capabilities = self.capability();
        let own = model(info, selected);
        let models = if self.config.models.is_empty() || extended {
            Vec::from([Kept::Known(own)])
        } else {
            self.config.models.iter().map(kept).collect()
        };
        let account = Account {
            api_key_source: Some(self.key_source().into()),
            api_provider: Some(match selected {
                Some(selected) => (&*selected.kind).into(),
                None => info.model.provider.as_deref().unwrap_or("unknown").into(),
            }),
            provider: selected.map(|selected| (&*selected.id).into()),
            provider_type: selected.map(|selected| (&*selected.kind).into()),
            ..Account::default()
        };
        let mode = mode_word(&info.settings.approvals);
        let answer = Initialized {
            commands: commands(info),
            agents: Some(self.config.agents.iter().map(kept).collect()),
            output_style: Some((&*self.config.output_style).into()),
            available_output_styles: Some(
                self.config
                    .output_styles
                    .iter()
                    .map(|style| (&**style).into())
                    .collect(),
            ),
            models: Some(models),
            providers: extended.then(|| {
                self.config
                    .providers
                    .iter()
                    .filter_map(|provider| raw(provider).decode().ok())
                    .collect()
            }),
            account: Some(account),
            pid: Some(self.config.pid),
            claude_code_version: rich.then(|| (&*self.config.version).into()),
            current_permission_mode: rich.then(|| mode.as_str().into()),
            session_state: (rich && policy.session_states == SessionStates::OnRequest).then(|| {
                if self.turn.is_some() {
                    "running"
                } else {
                    "idle"
                }
                .into()
            }),
            input_capabilities: capabilities
                .as_ref()
                .and_then(|json| raw(json).decode().ok()),
            ..Initialized::default()
        };
        Payload::Initialized(answer).put(&mut json);
        json
    }

    /// `mcp_status`. Hosts of claude are also told why a server failed, what it is and which tools it has.
    pub(super) fn give_mcp_status(&mut self, ticket: &Ticket, out: &mut Outbox<Agentx>) {
        let rich = self.config.policy.record_form == RecordForm::Provider;
        let own = self.own_servers().iter().filter(|_| rich);
        let more: Vec<_> = own.map(more_of).collect();
        let mut servers = self.servers();
        for (server, more) in servers.iter_mut().zip(&more) {
            if let Kept::Known(server) = server {
                let members = more
                    .iter()
                    .map(|(name, json)| (Str::from(*name), blocks::ours(json)));
                server.rest = Rest(members.collect());
            }
        }
        let mut json = Vec::new();
        Payload::McpStatuses(McpStatuses {
            mcp_servers: servers,
            ..McpStatuses::default()
        })
        .put(&mut json);
        self.give(ticket, &Payload::Other(blocks::ours(&json)), out);
    }

    /// `get_context_usage`
    pub(super) fn give_context(&mut self, ticket: &Ticket, out: &mut Outbox<Agentx>) {
        let context = self.mirror.context();
        let (used, window) = context.map_or((0, 0), |context| (context.used, context.window));
        let free = window.saturating_sub(used);
        let percent = (used.saturating_mul(100)).checked_div(window).unwrap_or(0);
        let mut grid = Vec::new();
        grid_rows(used, window, &mut grid);
        let usage = self.mirror.totals().usage;
        let mut api = Vec::new();
        super::sums::usage(usage, RecordForm::Provider).put(&mut api);
        let info = self.mirror.info();
        let model = info.map_or("", |info| &*info.model.model);
        let compacts = info.is_some_and(|info| info.settings.auto_compact);
        let category = |id: &'static str, name: &'static str, tokens: u64, color: &'static str| {
            ContextCategory {
                id: Some(id.into()),
                name: name.into(),
                tokens: tokens.into(),
                color: color.into(),
                is_deferred: Some(false),
                ..ContextCategory::default()
            }
        };
        let empty = || Any(Some(Raw::trusted("[]")));
        let payload = Payload::ContextUsage(ContextUsage {
            categories: Vec::from([
                category("messages", "Messages", used, "purple"),
                category("free_space", "Free space", free, "inactive"),
            ]),
            total_tokens: used.into(),
            max_tokens: window.into(),
            raw_max_tokens: window.into(),
            percentage: percent.into(),
            grid_rows: Any(Some(blocks::ours(&grid))),
            model: model.into(),
            memory_files: empty(),
            mcp_tools: empty(),
            agents: empty(),
            is_auto_compact_enabled: Some(compacts),
            api_usage: if usage.is_empty() {
                Any(Some(Raw::NULL))
            } else {
                Any(Some(blocks::ours(&api)))
            },
            ..ContextUsage::default()
        });
        let mut json = Vec::new();
        payload.put(&mut json);
        self.give(ticket, &Payload::Other(blocks::ours(&json)), out);
    }

    /// `rewind_files`
    pub(super) fn give_rewound(
        &mut self,
        ticket: &Ticket,
        answer: &Answer,
        out: &mut Outbox<Agentx>,
    ) {
        let payload = match answer {
            Answer::Rewound {
                can,
                files,
                added,
                removed,
            } => Rewound {
                can_rewind: *can,
                error: (!*can).then(|| "The files can't be put back".into()),
                files_changed: Some(files.iter().map(|file| (&**file).into()).collect()),
                insertions: Some(u64::from(*added).into()),
                deletions: Some(u64::from(*removed).into()),
                ..Rewound::default()
            },
            Answer::Done
            | Answer::Sent
            | Answer::Admitted(_)
            | Answer::Cancelling { .. }
            | Answer::Withdrawn(_)
            | Answer::Shell { .. }
            | Answer::Reloaded { .. }
            | Answer::Jobs(_)
            | Answer::JobStop(_)
            | Answer::Goal(_)
            | Answer::Session { .. }
            | Answer::Raw(_) => Rewound {
                can_rewind: true,
                ..Rewound::default()
            },
        };
        self.give(ticket, &Payload::Rewound(payload), out);
    }

    /// `reload_plugins`
    pub(super) fn give_plugins(&mut self, ticket: &Ticket, out: &mut Outbox<Agentx>) {
        let Some(info) = self.mirror.info() else {
            return self.done(ticket, out);
        };
        let payload = Payload::PluginsReloaded(PluginsReloaded {
            commands: commands(info),
            agents: self.config.agents.iter().map(kept).collect(),
            plugins: self.config.plugins.iter().map(kept).collect(),
            mcp_servers: self.servers(),
            ..PluginsReloaded::default()
        });
        let mut json = Vec::new();
        payload.put(&mut json);
        self.give(ticket, &Payload::Other(blocks::ours(&json)), out);
    }
}

/// An object of the embedder's, of a type that the wire has.
fn kept<'a, T: serde::Deserialize<'a>>(json: &'a RawJson) -> Kept<'a, T> {
    let value = raw(json);
    value.decode().map_or(Kept::Other(value), Kept::Known)
}

fn commands(info: &SessionInfo) -> Vec<Kept<'_, CommandInfo<'_>>> {
    info.commands
        .iter()
        .map(|(name, description, hint)| {
            Kept::Known(CommandInfo {
                name: (&**name).into(),
                description: (&**description).into(),
                argument_hint: (&**hint).into(),
                ..CommandInfo::default()
            })
        })
        .collect()
}

/// The model in use, as the one that can be chosen (WIRE-024).
fn model<'a>(info: &'a SessionInfo, selected: Option<&'a Selected>) -> ModelInfo<'a> {
    let efforts = |list: &'a [Text]| list.iter().map(|effort| (&**effort).into()).collect();
    let mut model = ModelInfo {
        value: (&*info.model.model).into(),
        display_name: (&*info.model.model).into(),
        description: "The model of this session".into(),
        ..ModelInfo::default()
    };
    match selected {
        Some(selected) => {
            model.provider = Some((&*selected.id).into());
            model.provider_type = Some((&*selected.kind).into());
            model.supports_effort = Some(!selected.efforts.is_empty());
            model.supported_reasoning_efforts = Some(efforts(&selected.efforts));
            model.default_reasoning_effort = selected.default_effort().map(Into::into);
            model.reasoning = Some(Face::reasoning(selected));
        }
        None if !info.efforts.is_empty() => {
            model.supports_effort = Some(true);
            model.supported_effort_levels = Some(efforts(&info.efforts));
        }
        None => {}
    }
    model
}

/// The grid: boxes that are full, then boxes that are free.
fn grid_rows(used: u64, window: u64, json: &mut Vec<u8>) {
    let (rows, columns) = GRID;
    let boxes = (rows * columns) as u64;
    let full = used
        .saturating_mul(boxes)
        .checked_div(window)
        .unwrap_or(0)
        .min(boxes);
    json.push(b'[');
    let mut number = 0u64;
    for row in 0..rows {
        json.extend_from_slice(if row > 0 { b",[" } else { b"[" });
        for column in 0..columns {
            if column > 0 {
                json.push(b',');
            }
            json.extend_from_slice(if number < full {
                b"{\"color\":\"purple\",\"categoryName\":\"Messages\",\"isFilled\":true}".as_slice()
            } else {
                b"{\"color\":\"inactive\",\"categoryName\":\"Free space\",\"isFilled\":false}"
            });
            number += 1;
        }
        json.push(b']');
    }
    json.push(b']');
}

/// What is told of a server of the agent's own besides its name and state: members, and their JSON.
fn more_of(server: &crate::vocab::McpServer) -> Vec<(&'static str, Vec<u8>)> {
    let mut members = Vec::new();
    if let Some(why) = &server.why {
        let mut json = Vec::new();
        json::write_str(&mut json, why);
        members.push(("error", json));
    }
    if let Some((name, version)) = &server.product {
        let mut json = b"{\"name\":".to_vec();
        json::write_str(&mut json, name);
        json.extend_from_slice(b",\"version\":");
        json::write_str(&mut json, version);
        json.push(b'}');
        members.push(("serverInfo", json));
    }
    if server.status == McpStatus::Connected {
        let mut json = alloc::vec![b'['];
        for (at, tool) in server.tools.iter().enumerate() {
            json.extend_from_slice(if at == 0 {
                b"{\"name\":"
            } else {
                b",{\"name\":"
            });
            json::write_str(&mut json, &tool.name);
            json.extend_from_slice(b",\"description\":");
            json::write_str(&mut json, &tool.description);
            json.push(b'}');
        }
        json.push(b']');
        members.push(("tools", json));
    }
    members
}
