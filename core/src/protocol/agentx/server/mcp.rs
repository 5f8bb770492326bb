//! MCP servers that the host runs: spoken to in `mcp_message`, and offered to the agent as tools.
//!
//! Methods: initialize, initialized, tools/list, tools/call, cancelled. Everything else is none of this side's.

use alloc::string::String;
use alloc::vec::Vec;

use super::blocks::{self, ours};
use super::{Face, Pending};
use crate::json::{self, Lazy, Raw, Str};
use crate::protocol::Outbox;
use crate::protocol::agentx::Agentx;
use crate::protocol::agentx::wire::{Answer as Payload, Any, McpMessage, Operation, ServersSet};
use crate::protocol::member::Map;
use crate::vocab::*;

/// Servers that a host may name.
const MOST_SERVERS: usize = 256;
/// Tools of one server.
const MOST_TOOLS: usize = 4_096;
/// The version of MCP that is spoken first.
const VERSION: &str = "2025-06-18";

/// A message to a server that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// `initialize`
    Greet(usize),
    /// `tools/list`
    List(usize),
    /// `tools/call`
    Call { server: usize, rpc: u64, ask: AskId },
    /// A notification.
    Note,
}

impl Sent {
    /// The question whose answer it will be.
    pub(super) fn ask(&self) -> Option<AskId> {
        match self {
            Sent::Call { ask, .. } => Some(*ask),
            Sent::Greet(_) | Sent::List(_) | Sent::Note => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Named,
    Greeted,
    Listing,
    Ready,
    Failed,
    /// The host took it away.
    Gone,
}

#[derive(Debug)]
struct Server {
    name: String,
    state: State,
    tools: Vec<ToolSpec>,
    /// When it must be listed.
    due: Option<u64>,
}

/// The servers of the host.
#[derive(Debug, Default)]
pub(super) struct Mcp {
    servers: Vec<Server>,
    rpc: u64,
    /// The host has set servers that it doesn't run.
    pub(super) others: bool,
}

impl Mcp {
    fn name(&mut self, name: &str) {
        let mut servers = self.servers.iter_mut();
        let known = servers.find(|server| server.name == name);
        if let Some(server) = known {
            if server.state == State::Gone {
                server.state = State::Named;
            }
        } else if self.servers.len() < MOST_SERVERS {
            self.servers.push(Server {
                name: name.into(),
                state: State::Named,
                tools: Vec::new(),
                due: None,
            });
        }
    }

    fn next(&mut self) -> u64 {
        let rpc = self.rpc;
        self.rpc += 1;
        rpc
    }

    /// Whether a server hasn't said yet what it has.
    pub(super) fn is_starting(&self) -> bool {
        let mut servers = self.servers.iter();
        servers.any(|server| {
            matches!(server.state, State::Named | State::Greeted)
                || (server.state == State::Listing && server.due.is_some())
        })
    }

    /// When the next server has taken too long.
    pub(super) fn due(&self) -> Option<u64> {
        self.servers.iter().filter_map(|server| server.due).min()
    }

    /// Names and states, as the contract says them.
    pub(super) fn states(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.servers.iter().filter_map(|server| {
            let state = match server.state {
                State::Named | State::Greeted | State::Listing => "pending",
                State::Ready => "connected",
                State::Failed => "failed",
                State::Gone => return None,
            };
            Some((server.name.as_str(), state))
        })
    }

    /// Takes away those that aren't among these names, and says which.
    fn keep_only(&mut self, names: &[String]) -> Vec<String> {
        let mut gone = Vec::new();
        for server in &mut self.servers {
            if server.state != State::Gone && !names.contains(&server.name) {
                server.state = State::Gone;
                server.tools.clear();
                server.due = None;
                gone.push(server.name.clone());
            }
        }
        gone
    }
}

impl Face {
    /// The host's servers are greeted. Those whose tools came with their names need no greeting.
    pub(super) fn start_mcp(
        &mut self,
        names: &[String],
        manifests: Any<'_>,
        out: &mut Outbox<Agentx>,
    ) {
        for name in core::mem::take(&mut self.config.sdk_servers) {
            self.mcp.name(&name);
        }
        for name in names {
            self.mcp.name(name);
        }
        let mut listed = false;
        for index in 0..self.mcp.servers.len() {
            let Some(server) = self.mcp.servers.get_mut(index) else {
                break;
            };
            if server.state != State::Named {
                continue;
            }
            let manifest = manifests
                .get()
                .and_then(|all| all.get_last(&server.name))
                .and_then(|manifest| manifest.get_last("toolsListResult"));
            if let Some(list) = manifest {
                server.tools = tools(&server.name, list);
                server.state = State::Ready;
                listed = true;
                continue;
            }
            server.state = State::Greeted;
            server.due = Some(self.now.mono_us.saturating_add(self.config.mcp_timeout_us));
            let mut params = b"{\"protocolVersion\":\"".to_vec();
            params.extend_from_slice(VERSION.as_bytes());
            params.extend_from_slice(
                b"\",\"capabilities\":{},\"clientInfo\":{\"name\":\"turnwire\",\"version\":",
            );
            json::write_str(&mut params, &self.config.version);
            params.extend_from_slice(b"}}");
            self.send_mcp(index, "initialize", &params, Sent::Greet(index), out);
        }
        if listed {
            self.offer_tools(out);
        }
        self.release_prompts(out);
    }

    /// Sends a request to a server.
    fn send_mcp(
        &mut self,
        server: usize,
        method: &str,
        params: &[u8],
        sent: Sent,
        out: &mut Outbox<Agentx>,
    ) {
        let id = match &sent {
            Sent::Call { rpc, .. } => Some(*rpc),
            Sent::Greet(_) | Sent::List(_) => Some(self.mcp.next()),
            Sent::Note => None,
        };
        let mut message = b"{\"jsonrpc\":\"2.0\",\"method\":".to_vec();
        json::write_str(&mut message, method);
        if !params.is_empty() {
            message.extend_from_slice(b",\"params\":");
            message.extend_from_slice(params);
        }
        if let Some(id) = id {
            message.extend_from_slice(b",\"id\":");
            json::write_u64(&mut message, id);
        }
        message.push(b'}');
        let name = self
            .mcp
            .servers
            .get(server)
            .map(|server| server.name.clone());
        let operation = Operation::from(McpMessage {
            server_name: name.as_deref().unwrap_or_default().into(),
            message: ours(&message),
            ..McpMessage::default()
        });
        let request_id = self.printer.request_id();
        self.say_request(&request_id, &operation, out);
        let noted = sent == Sent::Note;
        let kind = super::asks::Kind::Mcp(sent);
        if noted {
            self.asks.add_settled(request_id, kind);
        } else {
            self.asks.add(request_id, None, kind);
        }
    }

    fn list_mcp(&mut self, server: usize, cursor: Option<&str>, out: &mut Outbox<Agentx>) {
        let mut params = Vec::new();
        if let Some(cursor) = cursor {
            params.extend_from_slice(b"{\"cursor\":");
            json::write_str(&mut params, cursor);
            params.push(b'}');
        }
        self.send_mcp(server, "tools/list", &params, Sent::List(server), out);
    }

    /// A server has answered.
    pub(super) fn mcp_answered(&mut self, sent: &Sent, payload: Any<'_>, out: &mut Outbox<Agentx>) {
        let message = payload
            .get()
            .and_then(|payload| payload.get_last("mcp_response"));
        let error = message
            .and_then(|message| message.get_last("error"))
            .and_then(|error| error.get_last("message"))
            .and_then(Raw::string);
        let result = message.and_then(|message| message.get_last("result"));
        if *sent == Sent::Note {
            return;
        }
        let Some(result) = result else {
            let error = error.unwrap_or_else(|| "the server gave no result".into());
            return self.mcp_failed(sent, &error, out);
        };
        match sent {
            Sent::Greet(server) => {
                let Some(entry) = self.mcp.servers.get_mut(*server) else {
                    return;
                };
                if entry.state != State::Greeted {
                    return;
                }
                entry.state = State::Listing;
                self.send_mcp(*server, "notifications/initialized", b"", Sent::Note, out);
                self.list_mcp(*server, None, out);
            }
            Sent::List(server) => {
                let Some(entry) = self.mcp.servers.get_mut(*server) else {
                    return;
                };
                if entry.state != State::Listing {
                    return;
                }
                let more = tools(&entry.name, result);
                entry.tools.extend(more);
                entry.tools.truncate(MOST_TOOLS);
                let full = entry.tools.len() >= MOST_TOOLS;
                let cursor = result.get_last("nextCursor").and_then(Raw::string);
                if let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty() && !full) {
                    return self.list_mcp(*server, Some(&cursor), out);
                }
                entry.state = State::Ready;
                entry.due = None;
                self.offer_tools(out);
                self.release_prompts(out);
            }
            Sent::Call { ask, .. } => {
                let is_error = result.get_last("isError").and_then(Raw::bool) == Some(true);
                let content = content(result);
                let details = result
                    .get_last("structuredContent")
                    .map(|details| RawJson(details.as_str().into()));
                let reply = Reply::Tool {
                    content,
                    is_error,
                    details,
                };
                self.reply(*ask, Ok(reply), out);
            }
            Sent::Note => {}
        }
    }

    /// A server can't be used, or a call of it failed.
    pub(super) fn mcp_failed(&mut self, sent: &Sent, error: &str, out: &mut Outbox<Agentx>) {
        match sent {
            Sent::Greet(server) | Sent::List(server) => {
                let entry = self.mcp.servers.get_mut(*server);
                if let Some(entry) = entry.filter(|entry| entry.state != State::Gone) {
                    entry.state = State::Failed;
                    entry.due = None;
                    let text =
                        alloc::format!("the MCP server {} can't be used: {error}", entry.name);
                    out.diagnostic(text.as_str().into());
                }
                self.release_prompts(out);
            }
            Sent::Call { ask, .. } => {
                self.reply(*ask, Err(ReplyFault::HostError(error.into())), out);
            }
            Sent::Note => {}
        }
    }

    /// A call is given up: its server is told.
    pub(super) fn mcp_cancelled(&mut self, sent: &Sent, out: &mut Outbox<Agentx>) {
        if let Sent::Call { server, rpc, .. } = sent {
            let params = alloc::format!("{{\"requestId\":{rpc}}}");
            self.send_mcp(
                *server,
                "notifications/cancelled",
                params.as_bytes(),
                Sent::Note,
                out,
            );
        }
    }

    /// Servers that have taken too long.
    pub(super) fn mcp_woken(&mut self, out: &mut Outbox<Agentx>) {
        let now = self.now.mono_us;
        for server in 0..self.mcp.servers.len() {
            let late = self
                .mcp
                .servers
                .get(server)
                .and_then(|entry| entry.due)
                .is_some_and(|due| due <= now);
            if late {
                let fits = |kind: &super::asks::Kind| matches!(kind, super::asks::Kind::Mcp(Sent::Greet(of) | Sent::List(of)) if *of == server);
                if let Some(waiter) = self.asks.take_by(fits) {
                    let line = crate::protocol::agentx::wire::ControlCancel {
                        request_id: waiter.request.as_str().into(),
                        ..Default::default()
                    };
                    self.printer.say(line, out);
                }
                self.mcp_failed(&Sent::Greet(server), "it took too long", out);
            }
        }
    }

    /// The host's input is over: no server will answer.
    pub(super) fn mcp_gone(&mut self, out: &mut Outbox<Agentx>) {
        for entry in &mut self.mcp.servers {
            if !matches!(entry.state, State::Ready | State::Gone) {
                entry.state = State::Failed;
            }
            entry.due = None;
        }
        self.release_prompts(out);
    }

    /// The tools of all servers, as one offer.
    fn offer_tools(&mut self, out: &mut Outbox<Agentx>) {
        let servers = self.mcp.servers.iter();
        let tools = servers
            .filter(|server| server.state == State::Ready)
            .flat_map(|server| server.tools.iter().cloned())
            .collect();
        let command = out.call(Command::Offer(Offer::Tools(tools)));
        self.pending.insert(command, Pending::Quiet);
    }

    /// A call of a server's tool.
    pub(super) fn call_mcp(
        &mut self,
        ask: AskId,
        call: CallId,
        name: &str,
        input: &RawJson,
        out: &mut Outbox<Agentx>,
    ) {
        let found = self
            .mcp
            .servers
            .iter()
            .enumerate()
            .filter(|(_, server)| server.state != State::Gone)
            .find_map(|(index, server)| {
                let rest = name
                    .strip_prefix("mcp__")?
                    .strip_prefix(server.name.as_str())?;
                Some((index, String::from(rest.strip_prefix("__")?)))
            });
        let Some((server, tool)) = found else {
            let fault = ReplyFault::HostError("No server of the host has this tool".into());
            return self.reply(ask, Err(fault), out);
        };
        if !self.printer.is_clear(input) {
            let fault = ReplyFault::Malformed(super::asks::AMBIGUOUS.into());
            return self.reply(ask, Err(fault), out);
        }
        self.begin(out);
        let mut params = b"{\"name\":".to_vec();
        json::write_str(&mut params, &tool);
        params.extend_from_slice(b",\"arguments\":");
        json::write_raw(&mut params, blocks::raw(input));
        params.extend_from_slice(b",\"_meta\":{\"claudecode/toolUseId\":");
        json::write_str(&mut params, blocks::name_call(call, None, &mut self.calls));
        params.extend_from_slice(b"}}");
        let rpc = self.mcp.next();
        self.send_mcp(
            server,
            "tools/call",
            &params,
            Sent::Call { server, rpc, ask },
            out,
        );
    }

    /// A message of a server of the host's: the only one that means something says that its tools are others now.
    pub(super) fn mcp_heard(&mut self, message: &McpMessage<'_>, out: &mut Outbox<Agentx>) {
        let method = message.message.get_last("method").and_then(Raw::string);
        let found = self
            .mcp
            .servers
            .iter_mut()
            .enumerate()
            .find(|(_, server)| server.name == message.server_name.as_ref());
        if let (Some("notifications/tools/list_changed"), Some((index, server))) =
            (method.as_deref(), found)
            && server.state == State::Ready
        {
            server.state = State::Listing;
            server.tools.clear();
            self.list_mcp(index, None, out);
        }
    }
}

/// The names of the servers that an `mcp_set_servers` has the host run itself, and whether it names others.
pub(super) fn hosted(servers: Raw<'_>) -> (Vec<String>, bool) {
    let (mut names, mut others) = (Vec::new(), false);
    servers.each_member(|name, config| {
        let kind = config.get_last("type").and_then(Raw::string);
        if kind.as_deref() == Some("sdk") {
            names.push(name.into());
        } else {
            others = true;
        }
    });
    (names, others)
}

impl Face {
    /// The host runs these servers from now on. What changed is answered before any of them is greeted (AX-S08): a
    /// greeting may need the very host that waits for the answer. `payload`: the embedder's answer for the servers that the
    /// host doesn't run.
    pub(super) fn set_mcp(
        &mut self,
        ticket: &super::control::Ticket,
        names: &[String],
        payload: Option<&RawJson>,
        out: &mut Outbox<Agentx>,
    ) {
        for name in core::mem::take(&mut self.config.sdk_servers) {
            self.mcp.name(&name);
        }
        let running = |mcp: &Mcp| -> Vec<String> {
            mcp.states().map(|(name, _)| String::from(name)).collect()
        };
        let before = running(&self.mcp);
        let gone = self.mcp.keep_only(names);
        for name in names {
            self.mcp.name(name);
        }
        let now = running(&self.mcp);
        let theirs = payload.map(blocks::raw);
        let list = |name| -> Vec<Str<'_>> {
            let list = theirs.and_then(|theirs| theirs.get_last(name));
            list.and_then(|list| list.decode().ok()).unwrap_or_default()
        };
        let (mut added, mut removed) = (list("added"), list("removed"));
        let new = names.iter().filter(|name| !before.contains(name));
        added.extend(
            new.clone()
                .filter(|name| now.contains(name))
                .map(|name| Str::from(name.as_str())),
        );
        removed.extend(gone.iter().map(|name| Str::from(name.as_str())));
        let mut errors: Map<'_, Lazy<'_>> = theirs
            .and_then(|theirs| theirs.get_last("errors"))
            .and_then(|errors| errors.decode().ok())
            .unwrap_or_default();
        let refused = new.filter(|name| !now.contains(name));
        errors
            .0
            .extend(refused.map(|name| (Str::from(name.as_str()), TOO_MANY.into())));
        let mut answer = Vec::new();
        Payload::ServersSet(ServersSet {
            added,
            removed,
            errors,
            ..ServersSet::default()
        })
        .put(&mut answer);
        self.give(ticket, &Payload::Other(ours(&answer)), out);
        if !gone.is_empty() {
            self.offer_tools(out);
        }
        self.start_mcp(&[], Any::ABSENT, out);
    }
}

const TOO_MANY: &str = "there are too many servers";

/// The tools of a list.
fn tools(server: &str, list: Raw<'_>) -> Vec<ToolSpec> {
    let list: Vec<Raw<'_>> = list
        .get_last("tools")
        .and_then(|tools| tools.decode().ok())
        .unwrap_or_default();
    list.iter()
        .take(MOST_TOOLS)
        .filter_map(|tool| {
            let name = tool.get_last("name").and_then(Raw::string)?;
            let description = tool.get_last("description").and_then(Raw::string);
            let schema = tool
                .get_last("inputSchema")
                .filter(|schema| schema.kind() == json::Kind::Object);
            let reads = tool
                .get_last("annotations")
                .and_then(|notes| notes.get_last("readOnlyHint"))
                .and_then(Raw::bool);
            Some(ToolSpec {
                name: alloc::format!("mcp__{server}__{name}").as_str().into(),
                label: None,
                description: description.as_deref().unwrap_or_default().into(),
                schema: RawJson(schema.map_or("{\"type\":\"object\"}", Raw::as_str).into()),
                side_effect: if reads == Some(true) {
                    SideEffect::Read
                } else {
                    SideEffect::Unknown
                },
                hidden: false,
                uri_arg: None,
                route: Route::Host,
            })
        })
        .collect()
}

/// The content of a call's result.
fn content(result: Raw<'_>) -> Vec<Block> {
    let blocks: Vec<Raw<'_>> = result
        .get_last("content")
        .and_then(|content| content.decode().ok())
        .unwrap_or_default();
    blocks
        .into_iter()
        .map(|block| {
            let string = |name| block.get_last(name).and_then(Raw::string);
            match (
                string("type").as_deref(),
                string("text"),
                string("data"),
                string("mimeType"),
            ) {
                (Some("text"), Some(text), ..) => Block::Text((&*text).into()),
                (Some("image"), _, Some(data), Some(mime)) => Block::Media {
                    kind: MediaKind::Image,
                    source: Source::Inline {
                        mime: (&*mime).into(),
                        base64: (&*data).into(),
                    },
                },
                _ => Block::Text(block.as_str().into()),
            }
        })
        .collect()
}
