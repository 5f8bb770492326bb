//! Operations that only this protocol has: what a Server asks its embedder, a Client asks its agent.

use alloc::string::String;
use alloc::vec::Vec;

use super::books::Sent;
use super::commands::refuse;
use super::convert::ours;
use super::{ClientFace, Early, Out};
use crate::json::{self, Kind as JsonKind, Raw, ScanRules};
use crate::protocol::Client;
use crate::protocol::agentx::wire::{HostLine, Import};
use crate::protocol::agentx::{Agentx, AgentxAsk};
use crate::vocab::*;

impl Client<Agentx> {
    /// Asks the agent what a Server of this protocol asks its embedder. The answer is a `Replied` of this command:
    /// [`Answer::Raw`] with the payload, [`Answer::Done`] where the response has none, or why it failed. Like a command it
    /// waits for the agent's start.
    ///
    /// [`AgentxAsk::Environment`] gets no response of the agent's, and is [`Answer::Sent`]. [`AgentxAsk::Options`] is
    /// part of `initialize`: see [`ClientConfig`](super::ClientConfig). That, and what no line of a host asks for, is
    /// [`Refusal::Unsupported`] here; an upload has its own lines ([`import`](Client::import)).
    pub fn request(&mut self, id: CommandId, ask: &AgentxAsk, now: Now) {
        self.tell(now, |face, out| match ask {
            AgentxAsk::Control { request, .. } => face.control(id, request, out),
            AgentxAsk::Environment(variables) => face.environment(id, variables, out),
            AgentxAsk::Options(_)
            | AgentxAsk::Flush
            | AgentxAsk::Orphan(_)
            | AgentxAsk::BlobAppend { .. }
            | AgentxAsk::BlobCommit { .. }
            | AgentxAsk::BlobDrop { .. } => {
                refuse(id, Refusal::Unsupported("this as a request"), out);
            }
        });
    }

    /// Writes a step of an upload (WIRE-016 … WIRE-022). It is [`Answer::Sent`]; what becomes of it is told in lines of
    /// this protocol's own.
    pub fn import(&mut self, id: CommandId, step: &Import<'_>, now: Now) {
        self.tell(now, |face, out| {
            let mut bytes = Vec::new();
            HostLine::Import(step.clone()).encode(&mut bytes);
            face.early_line(id, bytes, out);
        });
    }
}

impl ClientFace {
    /// An operation, as an object with its `subtype`.
    fn control(&mut self, id: CommandId, request: &RawJson, out: &mut Out) {
        let value = json::scan_value(request.as_str().as_bytes(), &ScanRules::LENIENT).ok();
        let value = value.filter(|value| value.kind() == JsonKind::Object);
        let subtype = value.and_then(|value| value.get_last("subtype")?.string());
        let (Some(value), Some(subtype)) = (value, subtype) else {
            let text = "an operation is an object with a subtype";
            return refuse(id, Refusal::Invalid(text.into()), out);
        };
        let (subtype, value) = (String::from(&*subtype), super::convert::raw(value));
        if self.waits() {
            return self.put_early(Early::Control(id, subtype, value), out);
        }
        self.write_control(id, &subtype, &value, out);
    }

    /// Writes an operation that was checked before.
    pub(super) fn write_control(
        &mut self,
        id: CommandId,
        subtype: &str,
        request: &RawJson,
        out: &mut Out,
    ) {
        if self.is_input_closed() {
            return refuse(id, Refusal::Closing, out);
        }
        if self.books.is_full() {
            return refuse(id, Refusal::Full, out);
        }
        let wire = self.books.expect(subtype, Sent::Raw(id));
        out.line(|line| {
            line.extend_from_slice(b"{\"type\":\"control_request\",\"request_id\":");
            json::write_str(line, &wire);
            line.extend_from_slice(b",\"request\":");
            json::write_raw_line_safe(line, Raw::trusted(request.as_str()));
            line.push(b'}');
        });
    }

    fn environment(&mut self, id: CommandId, variables: &RawJson, out: &mut Out) {
        let value = json::scan_value(variables.as_str().as_bytes(), &ScanRules::LENIENT).ok();
        let mut texts = value.is_some_and(|value| value.kind() == JsonKind::Object);
        if let Some(value) = value {
            value.each_member(|_, value| texts &= value.kind() == JsonKind::String);
        }
        let Some(value) = value.filter(|_| texts) else {
            let text = "variables are an object of texts";
            return refuse(id, Refusal::Invalid(text.into()), out);
        };
        let mut bytes = b"{\"type\":\"update_environment_variables\",\"variables\":".to_vec();
        json::write_raw_line_safe(&mut bytes, value);
        bytes.push(b'}');
        self.early_line(id, bytes, out);
    }

    /// A line that gets no response.
    fn early_line(&mut self, id: CommandId, bytes: Vec<u8>, out: &mut Out) {
        if self.waits() {
            return self.put_early(Early::Line(id, bytes), out);
        }
        self.write_line(id, &bytes, out);
    }

    pub(super) fn write_line(&mut self, id: CommandId, bytes: &[u8], out: &mut Out) {
        if self.is_input_closed() {
            return refuse(id, Refusal::Closing, out);
        }
        out.line(|line| json::write_raw_line_safe(line, ours(bytes)));
        out.reply(id, Seen::Inferred, Ok(Answer::Sent));
    }
}
