//! Lines of openmax, both directions.

use std::fmt::Debug;

use serde_json::Value;
use turnwire::{
    json::Members,
    protocol::openmax::wire::{AgentLine, HostLine},
};

use super::{is_respelled, must, same_value, shown};
use crate::laws::Broken;

/// Whether a written line says nothing that the line before didn't: members that readers ignore may be gone, and a
/// member that was left out may be written as `null`.
fn says_no_more(read: &Value, written: &Value) -> bool {
    match (read, written) {
        (Value::Object(read), Value::Object(written)) => {
            written.iter().all(|(name, value)| match read.get(name) {
                Some(read) => says_no_more(read, value),
                None => value.is_null(),
            })
        }
        (Value::Array(read), Value::Array(written)) => {
            read.len() == written.len() && read.iter().zip(written).all(|(a, b)| says_no_more(a, b))
        }
        _ => same_value(read, written),
    }
}

/// L10 of what was read from `line`: written once, and written again from its own text.
fn inverse<T: PartialEq + Debug>(
    line: &[u8],
    read: &T,
    written: &[u8],
    again: Option<(&T, &[u8])>,
) -> Result<(), Broken> {
    let l10 = |holds: bool, what: &str| {
        must(holds, "L10", || {
            let (line, written) = (shown(line), shown(written));
            format!("{what}: {line:?} is {read:?}, written as {written:?}, and again {again:?}")
        })
    };
    let (back, twice) = again.unzip();
    l10(twice == Some(written), "not the same text twice")?;
    l10(back == Some(read) || is_respelled(line), "another value")?;
    l10(!written.contains(&b'\n'), "not one line")?;
    let value = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes);
    match (value(line), value(written)) {
        (Ok(before), Ok(after)) => l10(says_no_more(&before, &after), "another line"),
        // A number beyond a double, or too deep for the other reader.
        (Err(_), Err(_)) => Ok(()),
        // A member with such a number may be ignored.
        (Err(_), Ok(_)) => Ok(()),
        (Ok(_), Err(_)) => l10(false, "no JSON"),
    }
}

/// Any line that a host decodes is written so that it decodes to the same value, which says what the line said.
///
/// # Errors
/// [`Broken`] with the line.
pub fn openmax_agent_line(data: &[u8]) -> Result<(), Broken> {
    let (mut members, mut others) = (Members::new(), Members::new());
    for line in data.split(|&byte| byte == b'\n') {
        let Ok(read) = AgentLine::decode(line, &mut members) else {
            continue;
        };
        if matches!(read, AgentLine::Unknown { .. }) {
            continue;
        }
        let (mut written, mut twice) = (Vec::new(), Vec::new());
        read.encode(&mut written);
        let again = AgentLine::decode(&written, &mut others).ok();
        again.iter().for_each(|again| again.encode(&mut twice));
        let again = again.as_ref().map(|again| (again, twice.as_slice()));
        inverse(line, &read, &written, again)?;
    }
    Ok(())
}

/// Any line that an agent decodes is written so that it decodes to the same value, which says what the line said.
///
/// # Errors
/// [`Broken`] with the line.
pub fn openmax_host_line(data: &[u8]) -> Result<(), Broken> {
    let (mut members, mut others) = (Members::new(), Members::new());
    for line in data.split(|&byte| byte == b'\n') {
        let Ok(read) = HostLine::decode(line, &mut members) else {
            continue;
        };
        if matches!(read, HostLine::Unknown { .. }) {
            continue;
        }
        let (mut written, mut twice) = (Vec::new(), Vec::new());
        read.encode(&mut written);
        let again = HostLine::decode(&written, &mut others).ok();
        again.iter().for_each(|again| again.encode(&mut twice));
        let again = again.as_ref().map(|again| (again, twice.as_slice()));
        inverse(line, &read, &written, again)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_written_line_may_leave_out_and_not_add() {
        let read = json!({"a": 1.0, "b": [{"c": "x", "more": 1}], "ignored": true});
        let same = json!({"a": 1, "b": [{"c": "x"}], "absent": null});
        assert!(says_no_more(&read, &same));
        for other in [
            json!({"a": 2}),
            json!({"b": []}),
            json!({"b": [{"c": "y"}]}),
            json!({"d": 1}),
        ] {
            assert!(!says_no_more(&read, &other), "{other}");
        }
    }

    #[test]
    fn a_value_that_comes_back_otherwise_is_found() {
        let line = br#"{"a":1}"#;
        assert_eq!(inverse(line, &1, line, Some((&1, line))), Ok(()));
        assert!(inverse(line, &1, line, Some((&2, line))).is_err());
        assert!(inverse(line, &1, line, None).is_err());
        assert!(inverse(line, &1, b"{\"a\":2}", Some((&1, b"{\"a\":2}"))).is_err());
    }
}
