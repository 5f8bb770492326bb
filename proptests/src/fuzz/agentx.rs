//! Lines of agentx and claude, both directions.

use serde_json::Value;
use turnwire::{
    json::{Members, ScanRules},
    protocol::agentx::wire::{
        AgentLine, Answer, Any, CLOSED_RULES, ControlRequest, HostLine, OPEN_RULES, Operation,
    },
};

use super::{is_respelled, same_value, shown};
use crate::laws::Broken;

/// Both ways to scan a line: closed, and open.
const RULES: [&ScanRules; 2] = [&CLOSED_RULES, &OPEN_RULES];

/// Whether a written value is the one that was read, as far as the other reader can tell: it takes no half of a
/// surrogate pair, no number beyond a double, and less depth.
fn same_text(read: &[u8], written: &[u8]) -> bool {
    let value = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes);
    match (value(read), value(written)) {
        (Ok(read), Ok(written)) => same_but_alias(&read, &written),
        (Err(_), _) => true,
        (Ok(_), Err(_)) => false,
    }
}

/// Whether two values are the same, but for the second spelling of a request's id, which is read and never written: in
/// the envelope of a request and of a cancel, and in what a response holds.
fn same_but_alias(read: &Value, written: &Value) -> bool {
    let mut read = read.clone();
    match read.get("type").and_then(Value::as_str) {
        Some("control_request" | "control_cancel_request") => settle(&mut read),
        Some("control_response") => read.get_mut("response").into_iter().for_each(settle),
        _ => {}
    }
    same_value(&read, written)
}

fn settle(value: &mut Value) {
    let Some(object) = value.as_object_mut() else {
        return;
    };
    if let Some(alias) = object.remove("requestId") {
        object.entry("request_id").or_insert(alias);
    }
}

fn written(what: &str, read: &[u8], bytes: &[u8]) -> Result<(), String> {
    let separators = ["\u{2028}", "\u{2029}"];
    let is_one_line = !bytes.contains(&b'\n')
        && !separators
            .iter()
            .any(|char| bytes.windows(3).any(|three| three == char.as_bytes()));
    if is_one_line && same_text(read, bytes) {
        return Ok(());
    }
    Err(format!("{what} written as {}", shown(bytes)))
}

/// Reads an agent's line with all that is read lazily in it, writes it, and reads it again; `None`: it is no line.
///
/// # Errors
/// What came back instead.
pub fn agent_line_again(line: &[u8], rules: &ScanRules) -> Option<Result<(), String>> {
    let (mut members, mut others) = (Members::new(), Members::new());
    let read = AgentLine::decode(line, rules, &mut members).ok()?;
    let mut bytes = Vec::new();
    read.encode(&mut bytes);
    let again = AgentLine::decode(&bytes, rules, &mut others);
    let mut twice = Vec::new();
    again.iter().for_each(|again| again.encode(&mut twice));
    let same = again.as_ref() == Ok(&read) || is_respelled(line);
    Some(
        written("line", line, &bytes)
            .and_then(|()| {
                let why = || format!("{read:?} comes back as {again:?}");
                (twice == bytes && same).then_some(()).ok_or_else(why)
            })
            .and_then(|()| match &read {
                AgentLine::Request(request) => request_again(request),
                AgentLine::Record(_)
                | AgentLine::System(_)
                | AgentLine::Response(_)
                | AgentLine::Cancel(_)
                | AgentLine::Unknown { .. } => Ok(()),
            }),
    )
}

/// Reads a host's line, writes it, and reads it again; `None`: it is no line.
///
/// # Errors
/// What came back instead.
pub fn host_line_again(line: &[u8], rules: &ScanRules) -> Option<Result<(), String>> {
    let (mut members, mut others) = (Members::new(), Members::new());
    let read = HostLine::decode(line, rules, &mut members).ok()?;
    let mut bytes = Vec::new();
    read.encode(&mut bytes);
    let again = HostLine::decode(&bytes, rules, &mut others);
    let mut twice = Vec::new();
    again.iter().for_each(|again| again.encode(&mut twice));
    let same = again.as_ref() == Ok(&read) || is_respelled(line);
    Some(
        written("line", line, &bytes)
            .and_then(|()| {
                let why = || format!("{read:?} comes back as {again:?}");
                (twice == bytes && same).then_some(()).ok_or_else(why)
            })
            .and_then(|()| match &read {
                HostLine::Request(request) => request_again(request),
                HostLine::Response(response) => match response.known() {
                    Some(response) => payloads_again(response.response),
                    None => Ok(()),
                },
                HostLine::User(_)
                | HostLine::Assistant(_)
                | HostLine::System(_)
                | HostLine::Cancel(_)
                | HostLine::KeepAlive(_)
                | HostLine::Environment(_)
                | HostLine::Import(_)
                | HostLine::Unknown { .. } => Ok(()),
            }),
    )
}

/// The operation of a request, there and back.
fn request_again(request: &ControlRequest<'_>) -> Result<(), String> {
    let (Some(raw), Ok(operation)) = (request.request.get(), request.operation()) else {
        return Ok(());
    };
    let mut bytes = Vec::new();
    operation.encode(&mut bytes);
    match (&operation, same_raw(raw.as_str().as_bytes(), &bytes)) {
        (_, true) | (Operation::Unknown(_), _) => Ok(()),
        (_, false) => Err(format!("operation written as {}", shown(&bytes))),
    }
}

/// A payload, as the answer to every operation that could have it, there and back.
fn payloads_again(payload: Any<'_>) -> Result<(), String> {
    let Some(raw) = payload.get() else {
        return Ok(());
    };
    for subtype in Operation::TAGS {
        let Ok(answer) = Answer::decode(subtype, payload) else {
            continue;
        };
        let mut bytes = Vec::new();
        answer.put(&mut bytes);
        if !same_raw(raw.as_str().as_bytes(), &bytes) {
            return Err(format!("payload of {subtype} written as {}", shown(&bytes)));
        }
    }
    Ok(())
}

fn same_raw(read: &[u8], written: &[u8]) -> bool {
    let value = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes);
    match (value(read), value(written)) {
        (Ok(read), Ok(written)) => same_value(&read, &written),
        (Err(_), _) => true,
        (Ok(_), Err(_)) => false,
    }
}

fn each_line(
    data: &[u8],
    again: impl Fn(&[u8], &ScanRules) -> Option<Result<(), String>>,
) -> Result<(), Broken> {
    data.split(|&byte| byte == b'\n').try_for_each(|line| {
        RULES.into_iter().try_for_each(|rules| {
            again(line, rules).unwrap_or(Ok(())).map_err(|why| Broken {
                law: "L10",
                why: format!("{}: {why}", shown(line)),
            })
        })
    })
}

/// Any line that a host decodes, by either set of rules, is written on one line, so that it decodes to the same value.
///
/// # Errors
/// [`Broken`] with the line.
pub fn agentx_agent_line(data: &[u8]) -> Result<(), Broken> {
    each_line(data, agent_line_again)
}

/// Any line that an agent decodes, by either set of rules, is written on one line, so that it decodes to the same
/// value; so are the operations and payloads in it.
///
/// # Errors
/// [`Broken`] with the line.
pub fn agentx_host_line(data: &[u8]) -> Result<(), Broken> {
    each_line(data, host_line_again)
}
