//! What the agent asks of the host, and how that is answered or withdrawn.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::super::decision::{Verdict, odd_member};
use super::super::rules::Key;
use super::super::wire::{
    Answer, CanUseTool, ControlCancel, ControlRequest, NETWORK_TOOL, Operation, Response, Tag,
};
use super::{Here, Watcher};
use crate::frame::Place;
use crate::json::Kind;
use crate::protocol::observer::{
    At, Cancelled, Dir, Ids, Known, Notes, Requests, Severity, Sides, at_member, hash,
};

/// The most withdrawals that are remembered in a row.
const MOST: usize = 4096;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// May this call run? The call's id, as a hash.
    Permission(u64),
    Hook,
    Mcp,
    Dialog,
}

/// A request of the agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) place: Place,
    pub(super) asked: Asked,
    /// How many were asked before.
    number: u64,
}

/// The requests of the agent.
#[derive(Debug, Default)]
pub(super) struct Asks {
    pub(super) open: Requests<Ask>,
    /// Requests whose answers were matched, until they are repeated.
    answered: Ids<()>,
    count: u64,
    /// The withdrawals behind which nothing else was written.
    row: Vec<u64>,
    /// The agent has seen that its input is closed.
    pub(super) end_read: bool,
    unsure: bool,
}

impl Asks {
    pub(super) fn blur(&mut self) {
        self.open.blur();
        self.answered.blur();
        self.row.clear();
        self.unsure = true;
    }

    /// A line that is no withdrawal.
    pub(super) fn other_line(&mut self) {
        self.row.clear();
    }

    /// The first permission that is neither answered nor withdrawn.
    pub(super) fn permission(&self) -> Option<Ask> {
        let permissions = self
            .open
            .iter()
            .map(|(_, ask)| ask)
            .filter(|ask| matches!(ask.asked, Asked::Permission(_)));
        permissions.min_by_key(|ask| ask.number).copied()
    }

    /// Whether the response of a host may be repeated now.
    pub(super) fn echo(&mut self, id: u64) -> Known {
        let known = self.answered.known(id);
        self.answered.close(id);
        known
    }

    /// The answer to an interrupt: what was withdrawn before it, in order?
    fn in_order(&self) -> bool {
        self.row.is_sorted()
    }
}

impl Watcher {
    /// A request of the agent.
    pub(super) fn agent_asks(
        &mut self,
        request: &ControlRequest<'_>,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) -> &'static str {
        let id = request.request_id.name().filter(|id| !id.is_empty());
        let number = self.asks.count;
        self.asks.count += 1;
        match id.map(|id| self.asks.open.known(hash(id))) {
            Some(Known::Never | Known::Unknown) => {}
            known => {
                let message = match known {
                    None => "there is no id",
                    Some(_) => "a request of this id was sent before",
                };
                let at = at_member(here.object, "request_id");
                notes.add(Key::RequestId.rule(), at, String::from(message));
            }
        }
        if self.asks.end_read {
            let message = String::from("the agent knows that nobody can answer");
            notes.add(
                Key::AskedAfterEnd.rule(),
                At::line().at_most(self.most()),
                message,
            );
        }
        let operation = match request.operation() {
            Ok(operation) => operation,
            Err(error) => {
                let key = match request.subtype().name() {
                    Some("can_use_tool") => Key::AskForm,
                    Some(_) | None => Key::Fields,
                };
                notes.add(
                    key.rule(),
                    at_member(here.object, "request"),
                    error.to_string(),
                );
                self.asks.blur();
                return "";
            }
        };
        let name = operation.tag().unwrap_or_default();
        let asked = if let Operation::CanUseTool(permission) = &operation {
            Some(self.permission_asked(permission, here, notes))
        } else if let Operation::HookCallback(_) = operation {
            Some(Asked::Hook)
        } else if let Operation::McpMessage(_) = operation {
            Some(Asked::Mcp)
        } else if matches!(
            operation,
            Operation::Elicitation(_) | Operation::AskUserQuestion(_)
        ) {
            Some(Asked::Dialog)
        } else {
            let message = String::from("no agent asks this of a host");
            let at = at_member(here.object, "request");
            notes.add(Key::UnknownType.rule(), at, message);
            None
        };
        if let (Some(id), Some(asked)) = (id, asked) {
            let ask = Ask {
                place: here.place,
                asked,
                number,
            };
            self.asks.open.open(hash(id), ask);
        }
        name
    }

    fn permission_asked(
        &mut self,
        permission: &CanUseTool<'_>,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) -> Asked {
        let (policy, most) = (self.each_turn_init(), self.most());
        notes.tally.approvals += 1;
        self.turn.asks(most, notes);
        self.turn.record(policy, here.place, most, notes);
        let at = || at_member(here.object, "request");
        let mut odd = |message: String| {
            notes.add(Key::AskForm.rule(), at(), message);
        };
        if let Some(member) = odd_member(permission) {
            odd(format!("{member} isn't as it must be"));
        }
        let description = permission.description.as_deref();
        if permission.tool_name.is_empty() || permission.tool_use_id.is_empty() {
            odd(String::from("the tool or the call has no name"));
        } else if description.is_some_and(|text| text.trim().is_empty()) {
            odd(String::from("the description says nothing"));
        }
        let call = hash(&permission.tool_use_id);
        if permission.tool_name == NETWORK_TOOL {
            self.network(permission, call, here, notes);
            return Asked::Permission(call);
        }
        let again = self.asks.open.iter().map(|(_, ask)| ask);
        let again = again
            .filter(|ask| ask.asked == Asked::Permission(call))
            .map(|ask| ask.place)
            .next();
        let judged = permission.agent_id.is_none();
        self.calls.asked(
            call,
            &permission.tool_name,
            again,
            judged,
            most,
            at(),
            notes,
        );
        Asked::Permission(call)
    }

    /// A connection to the network.
    fn network(
        &mut self,
        permission: &CanUseTool<'_>,
        call: u64,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let mut members = 0;
        let mut host = None;
        permission.input.each_member(|name, value| {
            members += 1;
            if name == "host" {
                host = value.string();
            }
        });
        let is_host = |host: &str| {
            // An address of the sixth version has colons, and brackets if there were a port.
            let colons = host.matches(':').count();
            !host.is_empty() && colons != 1 && !host.contains(['[', ']', '/'])
        };
        let message = if !host.as_deref().is_some_and(is_host) {
            "the input has no host, or more than a host"
        } else if members != 1 {
            "the input has another member beside the host"
        } else if matches!(self.calls.known(call), Known::Open | Known::Closed) {
            "the id is that of a call"
        } else {
            return;
        };
        let at = at_member(here.object, "request");
        notes.add(Key::Network.rule(), at, String::from(message));
    }

    /// The agent withdraws a request.
    pub(super) fn agent_withdraws(
        &mut self,
        cancel: &ControlCancel<'_>,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let Some(id) = cancel.request_id.name() else {
            let message = String::from("it names no request");
            notes.add(Key::CancelUnknown.rule(), At::line(), message);
            return;
        };
        let (known, ask) = self.asks.open.cancel(hash(id));
        self.asks.answered.close(hash(id));
        if let Some(ask) = ask {
            if let Asked::Permission(call) = ask.asked {
                self.turn.withdrew = true;
                // Whatever the host has answered, it came too late.
                self.calls.undecided(call);
            }
            if self.asks.row.len() < MOST && matches!(ask.asked, Asked::Permission(_)) {
                self.asks.row.push(ask.number);
            }
        }
        let at = at_member(here.object, "request_id");
        let (at, message) = match known {
            Cancelled::Fine => return,
            Cancelled::Never => (at, "nothing of this id was asked"),
            Cancelled::Closed => (at.at_most(Severity::Warning), "what it names is closed"),
        };
        notes.add(Key::CancelUnknown.rule(), at, String::from(message));
    }

    /// The host answers a request of the agent, in its line of this number.
    pub(super) fn host_answers(
        &mut self,
        response: &Response<'_>,
        number: u64,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let Some(id) = response.request_id.name() else {
            return;
        };
        let known = self.asks.open.known(hash(id));
        let Some(ask) = self.asks.open.answer(hash(id), number) else {
            let may_come = here.sides != Sides::Both || self.asks.unsure;
            if known != Known::Unknown && !may_come {
                let at = at_member(here.object, "response");
                let message = String::from("no request of this id is open");
                notes.add(Key::LateAnswer.rule(), at, message);
            }
            return;
        };
        self.asks.answered.open(hash(id), ());
        let at =
            || at_member(here.object, "response").with(Dir::Agent, Some(ask.place), "the request");
        match ask.asked {
            Asked::Permission(call) => {
                let verdict = Verdict::of_response(response, &self.policy);
                self.calls.decided(call, verdict.allows(), here.place);
                if let Verdict::Refused(fault) = &verdict {
                    let message = format!("{}: {fault}", fault.rule());
                    notes.add(Key::Decision.rule(), at(), message);
                }
            }
            Asked::Hook | Asked::Mcp | Asked::Dialog => {
                if response.is_error() {
                    return;
                }
                let operation = match ask.asked {
                    Asked::Mcp => "mcp_message",
                    Asked::Dialog => "elicitation",
                    Asked::Hook | Asked::Permission(_) => "hook_callback",
                };
                let payload = response.response;
                let is_object = payload.get().is_some_and(|it| it.kind() == Kind::Object);
                let read = Answer::decode(operation, payload);
                // A form of one's own is answered in one's own way.
                let odd = !is_object || (ask.asked != Asked::Dialog && read.is_err());
                if odd {
                    let message = format!("it is no answer to {operation}");
                    notes.add(Key::HostPayload.rule(), at(), message);
                }
            }
        }
    }

    /// The host withdraws a request of the agent's.
    pub(super) fn host_withdraws(
        &mut self,
        id: &Tag<'_>,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let Some(id) = id.name() else { return };
        // Its own requests a host may take back, too.
        let known = self.asks.open.known(hash(id));
        if here.sides == Sides::Both
            && matches!(known, Known::Never | Known::Closed)
            && !self.asks.unsure
            && !self.control.waits_for(id)
        {
            let message = String::from("no request of this id is open");
            let at = at_member(here.object, "request_id");
            notes.add(Key::HostCancel.rule(), at, message);
        }
        if known == Known::Open
            && let Some(call) = self.asks.open.get_mut(hash(id))
            && let Asked::Permission(call) = call.asked
            && self.rejects_withdrawn()
        {
            let number = self.host_lines;
            self.asks.open.answer(hash(id), number);
            self.calls.decided(call, false, here.place);
        }
    }

    /// An interrupt is answered.
    pub(super) fn interrupt_answered(&mut self, notes: &mut Notes) {
        if self.is_closed() || self.asks.unsure {
            return;
        }
        if let Some(ask) = self.asks.permission() {
            let at = At::line().with(Dir::Agent, Some(ask.place), "the permission");
            let message = String::from("a permission is still open");
            notes.add(Key::CancelsFirst.rule(), at, message);
        }
        if !self.asks.in_order() {
            let message = String::from("a later permission was withdrawn before an earlier one");
            notes.add(Key::CancelOrder.rule(), At::line(), message);
        }
    }
}
