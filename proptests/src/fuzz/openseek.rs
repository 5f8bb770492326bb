//! Lines of openseek, both directions.

use serde_json::{Map, Value};
use turnwire::{
    json::Members,
    protocol::openseek::wire::{Command, Event, Shapes},
};

use super::{is_respelled, same_value, shown};
use crate::laws::Broken;

/// Members that are written where they were missing, or of another type.
const DEFAULTED: [&str; 6] = ["kind", "brief", "body", "goal", "workspace_root", "error"];

/// Whether a written event says what the one that was read says: with all of its members, and no others but those that have
/// a default.
fn says_the_same(read: &Map<String, Value>, written: &Map<String, Value>) -> bool {
    read.keys().all(|name| written.contains_key(name))
        && written.iter().all(|(name, new)| match read.get(name) {
            None => DEFAULTED.contains(&name.as_str()),
            Some(old) if same_value(old, new) => true,
            Some(old) => match name.as_str() {
                "job" => same_job(old, new),
                "jobs" => match (old.as_array(), new.as_array()) {
                    (Some(old), Some(new)) => {
                        old.len() == new.len()
                            && old.iter().zip(new).all(|(old, new)| same_job(old, new))
                    }
                    _ => false,
                },
                "content" => same_content(old, new),
                _ => DEFAULTED.contains(&name.as_str()) && !old.is_string(),
            },
        })
}

/// A record: what may be null may have been missing, and a state has no more than it needs.
fn same_job(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return false;
    };
    old.keys().all(|name| new.contains_key(name))
        && new.iter().all(|(name, new)| match old.get(name) {
            None => new.is_null(),
            Some(old) if name == "state" => within(old, new),
            Some(old) => same_value(old, new),
        })
}

/// Whether each member of an object stands in the other, too.
fn within(old: &Value, new: &Value) -> bool {
    let members = new.as_object().into_iter().flatten();
    new.is_object()
        && members
            .into_iter()
            .all(|(name, new)| old.get(name).is_some_and(|old| same_value(old, new)))
}

/// Parts, each with no more than it needs; a text alone is a text.
fn same_content(old: &Value, new: &Value) -> bool {
    match (old.as_array().map(Vec::as_slice), new) {
        (Some([one]), Value::String(_)) => one.get("text") == Some(new),
        (Some(old), Value::Array(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| within(old, new))
        }
        _ => false,
    }
}

fn objects(read: &[u8], written: &[u8]) -> Result<Option<[Map<String, Value>; 2]>, String> {
    let object = |bytes: &[u8]| serde_json::from_slice::<Map<String, Value>>(bytes).ok();
    match (object(read), object(written)) {
        (Some(read), Some(written)) => Ok(Some([read, written])),
        // The other reader takes less depth, no half of a surrogate pair, and no number beyond a double.
        (None, _) => Ok(None),
        (Some(_), None) => Err("what is written isn't JSON".to_owned()),
    }
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
    let same = again.as_ref() == Ok(&read) || is_respelled(line);
    if !same || twice != bytes || bytes.contains(&b'\n') {
        return Some(Err(format!("{read:?} comes back as {again:?}")));
    }
    let is_known = read.tag().is_some();
    Some(objects(line, &bytes).and_then(|objects| match objects {
        Some([read, written]) if is_known && !says_the_same(&read, &written) => {
            Err(format!("written as {}", shown(&bytes)))
        }
        Some(_) | None => Ok(()),
    }))
}

/// Reads a command, writes it, and reads it again; `None`: it is none.
///
/// # Errors
/// What came back instead.
pub fn host_line_again(line: &[u8], shapes: Shapes) -> Option<Result<(), String>> {
    let (mut members, mut others) = (Members::new(), Members::new());
    let read = match Command::read(line, shapes, &mut members) {
        Ok(read) => read,
        // Its text is a line of the engine's, and must be one that can be written.
        Err(unread) => {
            let _: String = unread.to_string();
            return None;
        }
    };
    let (mut bytes, mut twice) = (Vec::new(), Vec::new());
    read.encode(&mut bytes);
    let again = Command::read(&bytes, shapes, &mut others);
    again.iter().for_each(|again| again.encode(&mut twice));
    if again.as_ref() != Ok(&read) || twice != bytes || bytes.contains(&b'\n') {
        return Some(Err(format!("{read:?} comes back as {again:?}")));
    }
    Some(objects(line, &bytes).and_then(|objects| match objects {
        Some([old, new]) if !is_of(&old, &new, shapes) => {
            Err(format!("written as {}", shown(&bytes)))
        }
        Some(_) | None => Ok(()),
    }))
}

/// Whether each member of a written command was read; a steer may have had no kind, and a newer program another spelling
/// of what is said.
fn is_of(old: &Map<String, Value>, new: &Map<String, Value>, shapes: Shapes) -> bool {
    new.iter().all(|(name, new)| match old.get(name) {
        _ if shapes == Shapes::Newer && (name == "text" || name == "content") => true,
        Some(old) => same_value(old, new),
        None => name == "kind" && new == "prompt",
    })
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
pub fn openseek_agent_line(data: &[u8]) -> Result<(), Broken> {
    each_line(data, agent_line_again)
}

/// Any command that an engine reads, in the contract's shape or in a newer one, is written on one line, so that it reads as
/// the same value.
///
/// # Errors
/// [`Broken`] with the line.
pub fn openseek_host_line(data: &[u8]) -> Result<(), Broken> {
    for shapes in [Shapes::Seed, Shapes::Newer] {
        each_line(data, |line| host_line_again(line, shapes))?;
    }
    Ok(())
}
