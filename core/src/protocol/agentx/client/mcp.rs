//! The host's tools as MCP servers: this side answers `initialize`, `tools/list` and the notifications by itself, and
//! asks for each `tools/call`.

use alloc::string::String;
use alloc::vec::Vec;

use super::asks::{Closed, Kind, OpenAsk, answer as respond, fault_text, other_kind};
use super::books::Sent;
use super::convert::{ours, raw};
use super::{ClientFace, Out};
use crate::json::{self, Raw};
use crate::protocol::agentx::wire::{McpMessage, Operation};
use crate::vocab::*;

/// The newest version of MCP that is spoken, for a peer that asks for none.
const VERSION: &str = "2025-06-18";
const METHOD_NOT_FOUND: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;

/// The tools that the host has, under the servers that they are named after.
#[derive(Debug, Default)]
pub(super) struct Mcp {
    servers: Vec<Server>,
    tools: Vec<ToolSpec>,
    /// `initialize` was written: no server comes any more.
    pub started: bool,
}

#[derive(Debug)]
struct Server {
    name: String,
}

/// The server and the tool of a name that may have the form `mcp__SERVER__TOOL`; `other`: the server of all others.
fn parts<'a>(name: &'a str, other: &'a str) -> (&'a str, &'a str) {
    name.strip_prefix("mcp__")
        .and_then(|rest| rest.split_once("__"))
        .filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
        .unwrap_or((other, name))
}

impl Mcp {
    /// The host's tools are others now. Gives the servers whose list has changed, or the name of one that comes too late.
    pub(super) fn offer(
        &mut self,
        tools: &[ToolSpec],
        other: &str,
    ) -> Result<Vec<String>, Refusal> {
        let named = |name: &str| self.servers.iter().any(|server| server.name == name);
        let mut new: Vec<String> = Vec::new();
        for tool in tools {
            let (server, _) = parts(&tool.name, other);
            if !named(server) && !new.iter().any(|it| it == server) {
                new.push(server.into());
            }
        }
        if self.started && !new.is_empty() {
            let what = "tools of another server after the start";
            return Err(Refusal::Unsupported(what));
        }
        let changed = self.servers.iter().map(|server| server.name.clone());
        let changed: Vec<String> = changed.collect();
        self.servers
            .extend(new.into_iter().map(|name| Server { name }));
        self.tools = tools.to_vec();
        Ok(changed)
    }

    /// Whether there is any server.
    pub(super) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Their names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(|server| server.name.as_str())
    }

    /// Appends what a server says of itself and its tools, so that nobody need ask.
    pub(super) fn manifests(&self, other: &str, version: &str, out: &mut Vec<u8>) {
        out.push(b'{');
        for (index, server) in self.servers.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            json::write_str(out, &server.name);
            out.extend_from_slice(b":{\"initializeResult\":");
            greeting(&server.name, version, VERSION, out);
            out.extend_from_slice(b",\"toolsListResult\":");
            self.list(&server.name, other, out);
            out.push(b'}');
        }
        out.push(b'}');
    }

    fn list(&self, server: &str, other: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"tools\":[");
        let mut first = true;
        for tool in &self.tools {
            let (of, name) = parts(&tool.name, other);
            if of != server {
                continue;
            }
            if !core::mem::replace(&mut first, false) {
                out.push(b',');
            }
            out.extend_from_slice(b"{\"name\":");
            json::write_str(out, name);
            out.extend_from_slice(b",\"description\":");
            json::write_str(out, &tool.description);
            out.extend_from_slice(b",\"inputSchema\":");
            json::write_raw(out, Raw::trusted(tool.schema.as_str()));
            if matches!(tool.side_effect, SideEffect::None | SideEffect::Read) {
                out.extend_from_slice(b",\"annotations\":{\"readOnlyHint\":true}");
            }
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
    }

    /// The host's name of a server's tool.
    fn tool(&self, server: &str, name: &str, other: &str) -> Option<Text> {
        let mut tools = self.tools.iter();
        let found = tools.find(|tool| parts(&tool.name, other) == (server, name));
        found.map(|tool| tool.name.clone())
    }
}

/// What a server answers to `initialize`.
fn greeting(server: &str, version: &str, protocol: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"protocolVersion\":");
    json::write_str(out, protocol);
    out.extend_from_slice(
        b",\"capabilities\":{\"tools\":{\"listChanged\":true}},\"serverInfo\":{\"name\":",
    );
    json::write_str(out, server);
    out.extend_from_slice(b",\"version\":");
    json::write_str(out, version);
    out.extend_from_slice(b"}}");
}

/// A JSON-RPC answer as the payload of a response. Notifications have no id.
fn rpc(id: Option<Raw<'_>>, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut json = b"{\"mcp_response\":{\"jsonrpc\":\"2.0\"".to_vec();
    if let Some(id) = id {
        json.extend_from_slice(b",\"id\":");
        json::write_raw(&mut json, id);
    }
    write(&mut json);
    json.extend_from_slice(b"}}");
    json
}

fn rpc_error(id: Option<Raw<'_>>, code: i64, text: &str) -> Vec<u8> {
    rpc(id, |json| {
        json.extend_from_slice(b",\"error\":{\"code\":");
        json::write_i64(json, code);
        json.extend_from_slice(b",\"message\":");
        json::write_str(json, text);
        json.push(b'}');
    })
}

/// What a call of a tool came to, as the payload of a response.
pub(super) fn answer(
    id: &RawJson,
    reply: &Result<Reply, ReplyFault>,
) -> Result<(Vec<u8>, Closed), Refusal> {
    let id = Some(Raw::trusted(id.as_str()));
    let (content, failed, details, closed) = match reply {
        Ok(Reply::Tool {
            content,
            is_error,
            details,
        }) => (
            content.clone(),
            *is_error,
            details.as_ref(),
            Closed::by_host(),
        ),
        Err(fault) => {
            let text = fault_text(fault);
            let content = Vec::from([Block::Text(text.clone())]);
            (content, true, None, Closed::fault(fault, text))
        }
        Ok(
            Reply::Allow { .. }
            | Reply::Deny { .. }
            | Reply::Hook(_)
            | Reply::Uri { .. }
            | Reply::Choice(_),
        ) => return other_kind(),
    };
    let mut blocks = Vec::new();
    for block in &content {
        if !blocks.is_empty() {
            blocks.push(b',');
        }
        mcp_block(block, &mut blocks)?;
    }
    let payload = rpc(id, |json| {
        json.extend_from_slice(b",\"result\":{\"content\":[");
        json.extend_from_slice(&blocks);
        json.push(b']');
        if let Some(details) = details.filter(|it| {
            // Anything else isn't structured content.
            Raw::trusted(it.as_str()).kind() == json::Kind::Object
        }) {
            json.extend_from_slice(b",\"structuredContent\":");
            json::write_raw(json, Raw::trusted(details.as_str()));
        }
        json.extend_from_slice(b",\"isError\":");
        json::write_bool(json, failed);
        json.push(b'}');
    });
    Ok((payload, closed))
}

fn mcp_block(block: &Block, out: &mut Vec<u8>) -> Result<(), Refusal> {
    match block {
        Block::Text(text) => {
            out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
            json::write_str(out, text);
            out.push(b'}');
        }
        Block::Media {
            kind: MediaKind::Image,
            source: Source::Inline { mime, base64 },
        } => {
            out.extend_from_slice(b"{\"type\":\"image\",\"data\":");
            json::write_str(out, base64);
            out.extend_from_slice(b",\"mimeType\":");
            json::write_str(out, mime);
            out.push(b'}');
        }
        Block::Media { .. }
        | Block::Thinking { .. }
        | Block::Redacted(_)
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Opaque(_) => {
            let what = "content of tools other than text and pictures";
            return Err(Refusal::Unsupported(what));
        }
    }
    Ok(())
}

impl ClientFace {
    /// The host's tools are others now: before the start they go into `initialize`, after it their servers say so.
    pub(super) fn offer_tools(&mut self, tools: &[ToolSpec], out: &mut Out) -> Result<(), Refusal> {
        let other = self.config.server.clone();
        let changed = self.mcp.offer(tools, &other)?;
        if !self.mcp.started {
            return Ok(());
        }
        for server in changed {
            let message = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}";
            let operation = Operation::from(McpMessage {
                server_name: server.as_str().into(),
                message: ours(message),
                ..McpMessage::default()
            });
            self.books.send(&operation, Sent::Quiet, out);
        }
        Ok(())
    }

    /// A message to one of the host's servers.
    pub(super) fn mcp_message(&mut self, wire: &str, told: &McpMessage<'_>, out: &mut Out) {
        let message = told.message;
        let id = message.get_last("id");
        let server = &*told.server_name;
        let method = message.get_last("method").and_then(Raw::string);
        let params = message.get_last("params");
        if !self.mcp.names().any(|name| name == server) {
            let text = alloc::format!("no such server: {}", super::calls::cut_id(server));
            return respond(wire, &rpc_error(id, INVALID_PARAMS, &text), out);
        }
        match method.as_deref() {
            Some("initialize") => {
                let asked = params.and_then(|it| it.get_last("protocolVersion")?.string());
                let payload = rpc(id, |json| {
                    json.extend_from_slice(b",\"result\":");
                    let protocol = asked.as_deref().unwrap_or(VERSION);
                    greeting(server, &self.config.version, protocol, json);
                });
                respond(wire, &payload, out);
            }
            Some("tools/list") => {
                let payload = rpc(id, |json| {
                    json.extend_from_slice(b",\"result\":");
                    self.mcp.list(server, &self.config.server, json);
                });
                respond(wire, &payload, out);
            }
            Some("ping") => respond(wire, &empty(id), out),
            Some("tools/call") => self.mcp_call(wire, server, id, params, out),
            Some("notifications/cancelled") => {
                let of = params.and_then(|params| params.get_last("requestId"));
                if let Some(ask) = of.and_then(|id| self.book.asks.of_rpc(id)) {
                    let (calls, asks) = self.book.parts();
                    asks.cancel_ask(ask, calls, out);
                }
                respond(wire, &empty(None), out);
            }
            Some(name) if name.starts_with("notifications/") => {
                respond(wire, &empty(None), out);
            }
            Some(_) | None => {
                let text = "this method isn't here";
                respond(wire, &rpc_error(id, METHOD_NOT_FOUND, text), out);
            }
        }
    }

    fn mcp_call(
        &mut self,
        wire: &str,
        server: &str,
        id: Option<Raw<'_>>,
        params: Option<Raw<'_>>,
        out: &mut Out,
    ) {
        let named = params.and_then(|params| params.get_last("name")?.string());
        let tool = named
            .as_deref()
            .and_then(|name| self.mcp.tool(server, name, &self.config.server));
        let (Some(tool), Some(named), Some(id)) = (tool, named.as_deref(), id) else {
            return respond(wire, &rpc_error(id, INVALID_PARAMS, "no such tool"), out);
        };
        let input = params.and_then(|params| params.get_last("arguments"));
        let input = input.unwrap_or(Raw::trusted("{}"));
        let full = alloc::format!("mcp__{server}__{named}");
        let meta = params.and_then(|params| params.get_last("_meta"));
        let tool_use = meta
            .and_then(|meta| meta.get_last("claudecode/toolUseId")?.string())
            .map(String::from)
            .or_else(|| self.book.calls.named(&full))
            .unwrap_or_default();
        let run = self.book.calls.run_of(&tool_use).unwrap_or(RunId::MAIN);
        let given = Some(super::convert::input(input));
        let call = self.begin_call(&tool_use, &full, given, out);
        let open = OpenAsk {
            ask: AskId(0),
            wire: wire.into(),
            run,
            call: Some(call),
            kind: Kind::Tool { rpc: raw(id) },
            body: Ask::Tool {
                call,
                name: tool,
                input: raw(input),
            },
        };
        let (calls, asks) = self.book.parts();
        asks.open(open, calls, out);
    }
}

/// An answer that says nothing.
fn empty(id: Option<Raw<'_>>) -> Vec<u8> {
    rpc(id, |json| json.extend_from_slice(b",\"result\":{}"))
}
