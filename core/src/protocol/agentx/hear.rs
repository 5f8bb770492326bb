//! A host's line under a policy: what passes, what is passed over, and what ends the stream (WIRE-001, WIRE-014,
//! WIRE-021).
//!
//! The types of the [wire](super::wire) take more than the strict contract does. Here is what it refuses besides; each
//! refusal hangs on a bit of the [`Policy`].

use alloc::string::String;
use core::fmt;

use super::import::{ImportFault, check_import};
use super::policy::{
    ForeignSession, MemberRules, Policy, RequestEnvelope, ResponseUnion, UntypedLine,
};
use super::wire::{
    ControlRequest, ControlResponse, HostLine, Import, ImportAbort, ImportBegin, ImportChunk,
    ImportCommit, Kept, Tag, WireFault,
};
use crate::json::{self, DecodeErrorKind, JsonFaultKind, Kind, Members, Object, Raw};
use crate::protocol::member::last;
use crate::protocol::observer::span;
use crate::protocol::spec::Field;

/// What a line came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are lines, and nobody keeps them"
)]
pub enum Heard<'a> {
    /// Nothing but white space.
    Blank,
    /// A record. One of a type that the contract doesn't have is here, too ([`HostLine::Unknown`]).
    Line(HostLine<'a>),
    /// One that this policy passes over, and why.
    PassedOver(Fault),
}

/// Why a line can't be taken. Where it isn't passed over it ends the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// The index of the byte where it is, counted from 0.
    pub at: usize,
    /// The member that it belongs to, as in `response.error`; empty for the whole line.
    pub path: String,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// It is longer than [`MAX_LINE`](super::MAX_LINE).
    TooLong,
    /// It isn't JSON, or has a member twice in one object.
    Json(JsonFaultKind),
    /// It is JSON, and no object.
    NotAnObject,
    /// It has no `type`, or an empty one.
    NoType,
    /// Its `type` is no string.
    TypeKind(Kind),
    /// It has a member that the contract doesn't give it.
    UnknownMember,
    /// A member is missing, or of another type.
    Shape(DecodeErrorKind),
    /// It is for another session.
    ForeignSession,
    /// A request, or a withdrawal, that nobody could answer: its id is missing, empty or no string.
    NoRequestId,
    /// A request that doesn't say what for.
    NoSubtype,
    /// A response that is neither a success nor an error.
    Response(ResponseFault),
    /// A step of an upload that no agent could take.
    Import(ImportFault),
    /// Variables that aren't texts.
    Variables,
}

/// What is wrong with a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResponseFault {
    /// It has no body, or one that isn't an object.
    NoBody,
    /// `subtype` is neither `success` nor `error`.
    Subtype,
    /// The id is missing, empty or no string.
    NoRequestId,
    /// A success with an `error`.
    ErrorOfSuccess,
    /// A success with `pending_permission_requests`.
    PendingOfSuccess,
    /// An error with a `response`.
    ResponseOfError,
    /// An error whose `error` is missing, blank or no string.
    NoError,
    /// A member is `null` that may only be left out.
    Null,
    /// `pending_permission_requests` isn't a list of whole requests.
    Pending,
}

impl fmt::Display for ResponseFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ResponseFault::NoBody => "a response needs a body",
            ResponseFault::Subtype => "a response is a success or an error",
            ResponseFault::NoRequestId => "a response names its request",
            ResponseFault::ErrorOfSuccess => "a success has no error",
            ResponseFault::PendingOfSuccess => "a success lists no open questions",
            ResponseFault::ResponseOfError => "an error has no payload",
            ResponseFault::NoError => "an error says why",
            ResponseFault::Null => "a member of a response is left out, and never null",
            ResponseFault::Pending => "open questions are whole requests",
        })
    }
}

/// What is said of a member that stands twice: the same for all, so that nothing of the line is repeated (AX-S20).
pub const AMBIGUOUS: &str = "a member stands twice in one object";

impl fmt::Display for Fault {
    /// For the person who runs the process. Repeats no value of the line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FaultKind::TooLong => f.write_str("a line is longer than 8388608 bytes")?,
            FaultKind::Json(JsonFaultKind::Duplicate { .. }) => return f.write_str(AMBIGUOUS),
            FaultKind::Json(_) => f.write_str("a line isn't JSON")?,
            FaultKind::NotAnObject => f.write_str("a line isn't an object")?,
            FaultKind::NoType => f.write_str("a record has no type")?,
            FaultKind::TypeKind(_) => f.write_str("the type of a record isn't a string")?,
            FaultKind::UnknownMember => f.write_str("a record has a member too many")?,
            FaultKind::Shape(_) => f.write_str("a member is missing or of another type")?,
            FaultKind::ForeignSession => f.write_str("a record is for another session")?,
            FaultKind::NoRequestId => f.write_str("a control record has no request_id")?,
            FaultKind::NoSubtype => f.write_str("a control request has no subtype")?,
            FaultKind::Response(fault) => fault.fmt(f)?,
            FaultKind::Import(fault) => fault.fmt(f)?,
            FaultKind::Variables => f.write_str("variables of the environment are texts")?,
        }
        write!(f, " (byte {}", self.at)?;
        if !self.path.is_empty() {
            write!(f, ", {}", self.path)?;
        }
        f.write_str(")")
    }
}

impl core::error::Error for Fault {}

impl Fault {
    fn line(kind: FaultKind) -> Fault {
        Fault {
            kind,
            at: 0,
            path: String::new(),
        }
    }

    fn at(line: &str, value: Raw<'_>, path: String, kind: FaultKind) -> Fault {
        let at = span(line, value).start;
        Fault { kind, at, path }
    }
}

/// Members of `user`, `assistant` and `system` records of a host, beside the type.
const SAID: &[&str] = &[
    "uuid",
    "session_id",
    "message",
    "parent_tool_use_id",
    "isReplay",
    "isSynthetic",
    "tool_use_result",
    "priority",
    "timestamp",
];

/// Members of the body of a response.
const RESPONSE: &[&str] = &[
    "subtype",
    "request_id",
    "requestId",
    "response",
    "error",
    "pending_permission_requests",
];

/// Reads a line of a host as this policy does. `session` is the live session's id; `members` is only a buffer that is
/// used again.
///
/// # Errors
/// [`Fault`], which ends the stream.
pub fn hear<'a>(
    line: &'a [u8],
    session: &str,
    policy: &Policy,
    members: &mut Members,
) -> Result<Heard<'a>, Fault> {
    if policy.max_line().is_some_and(|most| line.len() > most) {
        return Err(Fault::line(FaultKind::TooLong));
    }
    let rules = policy.scan_rules();
    let object = match json::scan(line, &rules, members) {
        Ok(object) => object,
        Err(fault) if fault.kind == JsonFaultKind::Blank => return Ok(Heard::Blank),
        Err(fault) if fault.kind == JsonFaultKind::NotAnObject => {
            json::scan_value(line, &rules).map_err(of_json)?;
            return untyped(policy, Fault::line(FaultKind::NotAnObject));
        }
        Err(fault) => return Err(of_json(fault)),
    };
    let read = match HostLine::of_object(&object) {
        Ok(read) => read,
        Err(WireFault::NoTag(_)) => return untyped(policy, Fault::line(FaultKind::NoType)),
        Err(WireFault::TagKind { found, .. }) => {
            return untyped(policy, Fault::line(FaultKind::TypeKind(found)));
        }
        Err(WireFault::Json(fault)) => return Err(of_json(fault)),
        Err(WireFault::Fields(error)) => {
            let fault = Fault {
                kind: FaultKind::Shape(error.kind().clone()),
                at: error.at(),
                path: error.path().into(),
            };
            return match policy.member_rules {
                MemberRules::Closed => Err(fault),
                MemberRules::Open => Ok(Heard::PassedOver(fault)),
            };
        }
    };
    if read.kind().is_empty() {
        return untyped(policy, Fault::line(FaultKind::NoType));
    }
    if policy.foreign_session_id == ForeignSession::Fatal {
        own_session(&object, session)?;
    }
    if policy.member_rules == MemberRules::Closed {
        closed(&object, &read)?;
    }
    Reading {
        object: &object,
        policy,
    }
    .judge(read)
}

fn of_json(fault: json::JsonFault) -> Fault {
    Fault {
        kind: FaultKind::Json(fault.kind),
        at: fault.at,
        path: fault.path,
    }
}

fn untyped<'a>(policy: &Policy, fault: Fault) -> Result<Heard<'a>, Fault> {
    match policy.untyped_or_array_line {
        UntypedLine::Fatal => Err(fault),
        UntypedLine::Ignored => Ok(Heard::PassedOver(fault)),
    }
}

fn own_session(object: &Object<'_, '_>, session: &str) -> Result<(), Fault> {
    let Some(value) = last(object, "session_id") else {
        return Ok(());
    };
    match value.string() {
        Some(id) if !id.is_empty() && id != session => Err(Fault::at(
            object.line(),
            value,
            "session_id".into(),
            FaultKind::ForeignSession,
        )),
        Some(_) | None => Ok(()),
    }
}

/// Refuses members that the record doesn't have.
fn closed(object: &Object<'_, '_>, read: &HostLine<'_>) -> Result<(), Fault> {
    let (names, fields): (&[&str], &[Field]) = match read {
        HostLine::User(_) | HostLine::Assistant(_) | HostLine::System(_) => (SAID, &[]),
        HostLine::Request(_) => (&["request_id", "requestId", "request"], &[]),
        HostLine::Response(_) => (&["response"], &[]),
        HostLine::Cancel(_) => (&["request_id", "requestId"], &[]),
        HostLine::KeepAlive(_) => (&[], &[]),
        HostLine::Environment(_) => (&["variables", "environment_variables"], &[]),
        HostLine::Import(import) => match import {
            Import::Begin(_) => (&["operation"], ImportBegin::FIELDS),
            Import::Chunk(_) => (&["operation"], ImportChunk::FIELDS),
            Import::Commit(_) => (&["operation"], ImportCommit::FIELDS),
            Import::Abort(_) => (&["operation"], ImportAbort::FIELDS),
            Import::Unknown(_) => return Ok(()),
        },
        HostLine::Unknown { .. } => return Ok(()),
    };
    for (name, value) in object.iter() {
        let is_known = name == "type"
            || names.contains(&name)
            || fields.iter().any(|field| field.name == name);
        if !is_known {
            let path = json::shorten(name);
            return Err(Fault::at(
                object.line(),
                value,
                path,
                FaultKind::UnknownMember,
            ));
        }
    }
    Ok(())
}

/// A line that was read, and what it is judged by.
struct Reading<'r, 'm, 'a> {
    object: &'r Object<'m, 'a>,
    policy: &'r Policy,
}

impl<'a> Reading<'_, '_, 'a> {
    /// The fault of a member of the line.
    fn fault(&self, member: &str, kind: FaultKind) -> Fault {
        match last(self.object, member) {
            Some(value) => Fault::at(self.object.line(), value, member.into(), kind),
            None => Fault::line(kind),
        }
    }

    fn judge(&self, read: HostLine<'a>) -> Result<Heard<'a>, Fault> {
        match &read {
            HostLine::Request(request) => self.request(request)?,
            HostLine::Cancel(cancel) => self.id(&cancel.request_id)?,
            HostLine::Response(response) => {
                if let Err(fault) = self.response(response) {
                    return match self.policy.response_union {
                        ResponseUnion::Closed => Err(fault),
                        ResponseUnion::Open => Ok(Heard::PassedOver(fault)),
                    };
                }
            }
            HostLine::Environment(change) => {
                let maps = [&change.variables, &change.environment_variables];
                let is_odd = maps.into_iter().flatten().any(|map| map.known().is_none());
                if is_odd && self.policy.member_rules == MemberRules::Closed {
                    return Err(Fault::line(FaultKind::Variables));
                }
            }
            HostLine::Import(import) => {
                if let Err(fault) = check_import(import, self.policy) {
                    return Err(self.fault(fault.member(), FaultKind::Import(fault)));
                }
            }
            HostLine::User(_)
            | HostLine::Assistant(_)
            | HostLine::System(_)
            | HostLine::KeepAlive(_)
            | HostLine::Unknown { .. } => {}
        }
        Ok(Heard::Line(read))
    }

    /// An id that can be answered.
    fn id(&self, id: &Tag<'_>) -> Result<(), Fault> {
        let is_id = id.name().is_some_and(|id| !id.is_empty());
        if is_id || self.policy.request_envelope == RequestEnvelope::Answered {
            return Ok(());
        }
        Err(self.fault("request_id", FaultKind::NoRequestId))
    }

    /// A request that lacks its `request` is answered with an error; one that has it says what for.
    fn request(&self, request: &ControlRequest<'_>) -> Result<(), Fault> {
        self.id(&request.request_id)?;
        let is_there = request.request.get().is_some_and(|value| !value.is_null());
        let is_named = request
            .subtype()
            .name()
            .is_some_and(|name| !name.is_empty());
        let is_closed = self.policy.request_envelope == RequestEnvelope::Closed;
        if is_closed && is_there && !is_named {
            return Err(self.fault("request", FaultKind::NoSubtype));
        }
        Ok(())
    }

    fn response(&self, response: &ControlResponse<'a>) -> Result<(), Fault> {
        let fault = |fault| self.fault("response", FaultKind::Response(fault));
        let Some(Kept::Known(body)) = &response.response else {
            return Err(fault(ResponseFault::NoBody));
        };
        if body.request_id.name().is_none_or(str::is_empty) {
            return Err(fault(ResponseFault::NoRequestId));
        }
        if self.policy.response_union == ResponseUnion::Open {
            return Ok(());
        }
        let raw = last(self.object, "response").unwrap_or(Raw::NULL);
        let mut unknown = None;
        raw.each_member(|name, value| {
            if unknown.is_none() && !RESPONSE.contains(&name) {
                let path = alloc::format!("response.{}", json::shorten(name));
                unknown = Some(Fault::at(
                    self.object.line(),
                    value,
                    path,
                    FaultKind::UnknownMember,
                ));
            }
        });
        if let Some(fault) = unknown {
            return Err(fault);
        }
        union(raw).map_err(|(member, kind)| {
            let value = raw.get_last(member).unwrap_or(raw);
            let path = alloc::format!("response.{member}");
            Fault::at(self.object.line(), value, path, FaultKind::Response(kind))
        })
    }
}

/// Whether the body is one of the union's two, and else which member isn't as it must be (AX-P catalogue, the outer
/// response).
fn union(body: Raw<'_>) -> Result<(), (&'static str, ResponseFault)> {
    const OPTIONAL: [&str; 3] = ["response", "error", "pending_permission_requests"];
    let subtype = body.get_last("subtype").and_then(Raw::string);
    let [response, error, pending] = OPTIONAL.map(|name| body.get_last(name));
    for (name, value) in OPTIONAL.into_iter().zip([response, error, pending]) {
        if value.is_some_and(Raw::is_null) {
            return Err((name, ResponseFault::Null));
        }
    }
    match subtype.as_deref() {
        Some("success") => {
            if error.is_some() {
                return Err(("error", ResponseFault::ErrorOfSuccess));
            }
            if pending.is_some() {
                return Err((
                    "pending_permission_requests",
                    ResponseFault::PendingOfSuccess,
                ));
            }
        }
        Some("error") => {
            if response.is_some() {
                return Err(("response", ResponseFault::ResponseOfError));
            }
            let text = error.and_then(Raw::string);
            if text.is_none_or(|text| text.trim().is_empty()) {
                return Err(("error", ResponseFault::NoError));
            }
            if !pending.is_none_or(are_requests) {
                return Err(("pending_permission_requests", ResponseFault::Pending));
            }
        }
        Some(_) | None => return Err(("subtype", ResponseFault::Subtype)),
    }
    Ok(())
}

/// Whether it is a list of whole requests.
fn are_requests(pending: Raw<'_>) -> bool {
    let Ok(list) = pending.decode::<alloc::vec::Vec<Raw<'_>>>() else {
        return false;
    };
    list.into_iter().all(|request| {
        let string = |name| request.get_last(name).and_then(Raw::string);
        let operation = request.get_last("request");
        let subtype = operation.and_then(|operation| operation.get_last("subtype"));
        string("type").as_deref() == Some("control_request")
            && string("request_id").is_some_and(|id| !id.is_empty())
            && subtype
                .and_then(Raw::string)
                .is_some_and(|name| !name.is_empty())
    })
}
