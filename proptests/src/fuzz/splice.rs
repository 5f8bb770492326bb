//! Lines of splice, both directions.

use serde_json::{Map, Value};
use turnwire::{
    json::Members,
    protocol::splice::wire::{Event, Input},
};

use super::{is_respelled, same_value, shown};
use crate::laws::Broken;

fn objects(read: &[u8], written: &[u8]) -> Result<Option<[Map<String, Value>; 2]>, String> {
    let object = |bytes: &[u8]| serde_json::from_slice::<Map<String, Value>>(bytes).ok();
    match (object(read), object(written)) {
        (Some(read), Some(written)) => Ok(Some([read, written])),
        // The other reader takes less depth, no half of a surrogate pair, and no number beyond a double.
        (None, _) => Ok(None),
        (Some(_), None) => Err("what is written isn't JSON".to_owned()),
    }
}

/// Whether a written value has what was read: a member of the contract that came twice within a member once.
fn says_the_same(read: &Map<String, Value>, written: &Map<String, Value>) -> bool {
    read.len() == written.len()
        && read
            .iter()
            .all(|(name, old)| written.get(name).is_some_and(|new| same_value(old, new)))
}

/// Reads an event, writes it, and reads it again; `None`: it is none.
///
/// # Errors
/// What came back instead.
pub fn agent_line_again(line: &[u8]) -> Option<Result<(), String>> {
    let (mut members, mut others) = (Members::new(), Members::new());
    let read = Event::read(line, &mut members).ok()?;
    let (mut bytes, mut twice) = (Vec::new(), Vec::new());
    read.encode(&mut bytes);
    let again = Event::read(&bytes, &mut others);
    again.iter().for_each(|again| again.encode(&mut twice));
    let is_same = match (&read, &again) {
        // A line that nobody knows is passed on as it came, with its markup escaped.
        (Event::Unknown(_), Ok(Event::Unknown(_))) => true,
        (read, again) => again.as_ref() == Ok(read) || is_respelled(line),
    };
    // What stands in a raw value is compared below, since its markup is escaped.
    let is_escaped = line
        .iter()
        .any(|byte| matches!(byte, b'<' | b'>' | b'&' | 0xE2));
    if !(is_same || is_escaped) || twice != bytes || bytes.contains(&b'\n') {
        return Some(Err(format!("{read:?} comes back as {again:?}")));
    }
    Some(objects(line, &bytes).and_then(|objects| match objects {
        Some([read, written]) if !says_the_same(&read, &written) => {
            Err(format!("written as {}", shown(&bytes)))
        }
        Some(_) | None => Ok(()),
    }))
}

/// Reads an input, writes it, and reads it again; `None`: it is none.
///
/// # Errors
/// What came back instead.
pub fn host_line_again(line: &[u8]) -> Option<Result<(), String>> {
    let (mut members, mut others) = (Members::new(), Members::new());
    let read = match Input::read(line, &mut members) {
        Ok(read) => read,
        // Its text is part of a line of the agent's, and must be one that can be written.
        Err(fault) => {
            let _: String = fault.to_string();
            return None;
        }
    };
    let (mut bytes, mut twice) = (Vec::new(), Vec::new());
    read.encode(&mut bytes);
    let again = Input::read(&bytes, &mut others);
    again.iter().for_each(|again| again.encode(&mut twice));
    if again.as_ref() != Ok(&read) || twice != bytes || bytes.contains(&b'\n') {
        return Some(Err(format!("{read:?} comes back as {again:?}")));
    }
    Some(Ok(()))
}

fn each_line(
    data: &[u8],
    again: impl Fn(&[u8]) -> Option<Result<(), String>>,
) -> Result<(), Broken> {
    data.split(|&byte| byte == b'\n').try_for_each(|line| {
        again(line).unwrap_or(Ok(())).map_err(|why| Broken {
            law: "L10",
            why: format!("{}: {why}", shown(line)),
        })
    })
}

/// Any event that a host reads is written on one line, so that it reads as the same value.
///
/// # Errors
/// [`Broken`] with the line.
pub fn splice_agent_line(data: &[u8]) -> Result<(), Broken> {
    each_line(data, agent_line_again)
}

/// Any input that an agent reads is written on one line, so that it reads as the same value.
///
/// # Errors
/// [`Broken`] with the line.
pub fn splice_host_line(data: &[u8]) -> Result<(), Broken> {
    each_line(data, host_line_again)
}
