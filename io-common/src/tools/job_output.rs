//! What a background job has written, for the model.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

use serde::Deserialize;
use turnwire::vocab::{JobState, RawJson, Route, SideEffect, ToolSpec};

use super::outcome::{Failed, Finished, reason};
use crate::jobs::JobPlace;

/// The tool's name.
pub(super) const NAME: &str = "job_output";

/// Arguments of `job_output`.
#[derive(Debug, Deserialize)]
pub(super) struct Args {
    job: String,
    #[serde(default)]
    from_byte: Option<u64>,
}

/// What the model is told about the tool.
pub(super) fn spec() -> ToolSpec {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "job": { "type": "string", "description": "The job's name, as it was told when it began" },
            "from_byte": {
                "type": "integer",
                "minimum": 0,
                "description": "Read on from this byte, as an earlier result named it; the last of what was written if left out",
            },
        },
        "required": ["job"],
        "additionalProperties": false,
    });
    ToolSpec {
        name: NAME.into(),
        label: None,
        description: "Read how a background job stands and what it has written so far, to either stream. The first line \
                      says from which byte to read on. You are told when a job ends; don't ask for that again and again."
            .into(),
        schema: RawJson(schema.to_string().into()),
        side_effect: SideEffect::Read,
        hidden: false,
        uri_arg: None,
        route: Route::Driver,
    }
}

/// One call; at most `max` bytes of output are shown.
pub(super) fn run(place: Option<&JobPlace>, args: &Args, max: usize) -> Result<Finished, Failed> {
    let found = place.and_then(|place| place.find(&args.job));
    let Some((record, path)) = found else {
        return Err(Failed(format!("there is no job {:?}", args.job)));
    };
    let how = match &record.state {
        JobState::Running => "runs".to_owned(),
        JobState::Stopping => "is being stopped".to_owned(),
        JobState::Exited(code) => format!("has ended with exit code {code}"),
        JobState::Stopped(by) => format!("was stopped: {by}"),
        JobState::Interrupted => "was interrupted".to_owned(),
    };
    let read = read(&path, args.from_byte, max);
    let (bytes, from, next, rest) = read.map_err(|error| {
        let why = reason(&error);
        Failed(format!(
            "job {} {how}; its output can't be read: {why}",
            record.id
        ))
    })?;
    let mut text = format!("[job {} {how}; bytes {from} to {next}", record.id);
    if rest > 0 {
        text.push_str(&format!(", {rest} more behind them"));
    }
    text.push_str("]\n");
    text.push_str(&String::from_utf8_lossy(&bytes));
    let mut finished = Finished::ok(text);
    finished.truncated = rest > 0 || args.from_byte.is_none() && from > 0;
    Ok(finished)
}

/// The bytes from one on, or the last ones: where they begin, where they end, and how many are behind them.
fn read(
    path: &std::path::Path,
    from: Option<u64>,
    max: usize,
) -> io::Result<(Vec<u8>, u64, u64, u64)> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((Vec::new(), 0, 0, 0)),
        Err(error) => return Err(error),
    };
    let (all, most) = (file.metadata()?.len(), max as u64);
    let from = from.map_or(all.saturating_sub(most), |from| from.min(all));
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    // It may be written to all the while.
    file.take(most.min(all - from)).read_to_end(&mut bytes)?;
    let next = from + bytes.len() as u64;
    Ok((bytes, from, next, all.saturating_sub(next)))
}
