//! Lines of omp, both directions, and its frames.

use serde_json::Value;
use turnwire::{
    frame::{LineRules, OverLong, Tail},
    json::{Members, Raw},
    protocol::omp::{
        MAX_FRAME, MAX_REASSEMBLED,
        codec::{ChunkReader, FrameWriter},
        wire::{AgentLine, Any, Event, Frame, HostLine, Message, Update, host_text},
    },
};

use super::{is_respelled, models::split_lines, must, same_value, shown};
use crate::{
    bytes::Source,
    laws::{Broken, LineSaid},
};

/// Whether a written value is the one that was read, as far as the other reader can tell: it takes no half of a
/// surrogate pair, no number beyond a double, and less depth.
fn same_text(read: &[u8], written: &[u8]) -> bool {
    let value = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes);
    match (value(read), value(written)) {
        (Ok(read), Ok(written)) => same_but_tags(&read, &written),
        (Err(_), _) => true,
        (Ok(_), Err(_)) => false,
    }
}

/// Whether two values are the same, but for the tag of a picture, which may be missing and is always written.
fn same_but_tags(read: &Value, written: &Value) -> bool {
    match (read, written) {
        (Value::Object(read), Value::Object(written)) => {
            let kept = read.keys().all(|name| written.contains_key(name));
            let same = written.iter().all(|(name, value)| match read.get(name) {
                Some(read) => same_but_tags(read, value),
                None => name == "type" && value == "image",
            });
            kept && same
        }
        (Value::Array(read), Value::Array(written)) => {
            read.len() == written.len()
                && read.iter().zip(written).all(|(a, b)| same_but_tags(a, b))
        }
        _ => same_value(read, written),
    }
}

/// The messages that an event repeats.
#[allow(clippy::wildcard_enum_match_arm, reason = "all other kinds have none")]
pub fn messages_of<'a>(event: &Event<'a>) -> Vec<Raw<'a>> {
    let partial = |update: &Update<'a>| match update {
        Update::TextStart(body) => body.partial,
        Update::TextDelta(body) => body.partial,
        Update::TextEnd(body) => body.partial,
        Update::ThinkingStart(body) => body.partial,
        Update::ThinkingDelta(body) => body.partial,
        Update::ThinkingEnd(body) => body.partial,
        Update::ToolcallStart(body) => body.partial,
        Update::ToolcallDelta(body) => body.partial,
        Update::ToolcallEnd(body) => body.partial,
        _ => Any::ABSENT,
    };
    match event {
        Event::AgentEnd(end) => end.messages.clone(),
        Event::TurnEnd(end) => [vec![end.message], end.tool_results.clone()].concat(),
        Event::MessageStart(start) => vec![start.message],
        Event::MessageEnd(end) => vec![end.message],
        Event::IrcMessage(irc) => vec![irc.message],
        Event::MessageUpdate(update) => {
            let partial = partial(&update.update).get().into_iter();
            partial.chain(update.message.get()).collect()
        }
        _ => Vec::new(),
    }
}

/// Reads an agent's line with all that is read lazily in it, writes it, and reads it again; `None`: it is no line.
///
/// # Errors
/// What came back instead.
pub fn agent_line_again(line: &[u8]) -> Option<Result<(), String>> {
    let (mut members, mut others) = (Members::new(), Members::new());
    let read = AgentLine::decode(line, &mut members).ok()?;
    Some(agent_again(line, &read, &mut others))
}

fn agent_again(line: &[u8], read: &AgentLine<'_>, others: &mut Members) -> Result<(), String> {
    let mut bytes = Vec::new();
    read.encode(&mut bytes);
    written("line", line, &bytes)?;
    let again = AgentLine::decode(&bytes, others);
    let mut twice = Vec::new();
    again.iter().for_each(|again| again.encode(&mut twice));
    let same = again.as_ref() == Ok(read) || is_respelled(line);
    if twice != bytes || !same {
        return Err(format!("{read:?} comes back as {again:?}"));
    }
    if let AgentLine::Response(response) = read
        && let Ok(data) = response.payload()
    {
        let mut bytes = Vec::new();
        response.encode_with(&data, &mut bytes);
        written("payload", line, &bytes)?;
    }
    if let AgentLine::Event(event) = read {
        for message in messages_of(event) {
            let Ok(read) = Message::decode(message) else {
                continue;
            };
            let mut bytes = Vec::new();
            read.encode(&mut bytes);
            written("message", message.as_str().as_bytes(), &bytes)?;
        }
    }
    Ok(())
}

fn written(what: &str, read: &[u8], bytes: &[u8]) -> Result<(), String> {
    if same_text(read, bytes) && !bytes.contains(&b'\n') {
        return Ok(());
    }
    Err(format!("{what} written as {}", shown(bytes)))
}

/// Reads a host's line, writes it, and reads it again; `None`: it is no line.
///
/// # Errors
/// What came back instead.
pub fn host_line_again(line: &[u8]) -> Option<Result<(), String>> {
    let (mut members, mut others) = (Members::new(), Members::new());
    let read = HostLine::decode(line, &mut members).ok()?;
    let mut bytes = Vec::new();
    read.encode(&mut bytes);
    let again = HostLine::decode(&bytes, &mut others);
    let mut twice = Vec::new();
    again.iter().for_each(|again| again.encode(&mut twice));
    let same = again.as_ref() == Ok(&read) || is_respelled(line);
    Some(written("line", line, &bytes).and_then(|()| {
        if twice == bytes && same {
            return Ok(());
        }
        Err(format!("{read:?} comes back as {again:?}"))
    }))
}

fn l10(line: &[u8], result: Option<Result<(), String>>) -> Result<(), Broken> {
    result.unwrap_or(Ok(())).map_err(|why| Broken {
        law: "L10",
        why: format!("{}: {why}", shown(line)),
    })
}

/// Any line that a host decodes, with the messages and payloads in it, is written so that it decodes to the same value.
///
/// # Errors
/// [`Broken`] with the line.
pub fn omp_agent_line(data: &[u8]) -> Result<(), Broken> {
    data.split(|&byte| byte == b'\n')
        .try_for_each(|line| l10(line, agent_line_again(line)))
}

/// Any line that an agent decodes, as it comes or after what a host's bytes are made into, is written so that it
/// decodes to the same value.
///
/// # Errors
/// [`Broken`] with the line.
pub fn omp_host_line(data: &[u8]) -> Result<(), Broken> {
    data.split(|&byte| byte == b'\n').try_for_each(|line| {
        l10(line, host_line_again(line))?;
        let text = host_text(line);
        l10(&text, host_line_again(&text))
    })
}

/// A frame of any size becomes lines that fit, each of them JSON, and in protocol 2 they are put together to the
/// frame again.
///
/// Three bytes choose how large it is; the rest is its text, which is repeated so often.
///
/// # Errors
/// [`Broken`] with what didn't fit, or came back otherwise.
pub fn omp_frames_out(data: &[u8]) -> Result<(), Broken> {
    let mut source = Source::new(data.get(..3).unwrap_or_default());
    let (times, kind) = (usize::from(source.short()), source.byte());
    let mut text = String::from("\"");
    let piece = shown(data.get(3..).unwrap_or_default());
    let mut quoted = Vec::new();
    turnwire::json::write_str(&mut quoted, &piece);
    let quoted = shown(&quoted);
    let inner = quoted.get(1..quoted.len() - 1).unwrap_or_default();
    // At most a little more than a frame of four chunks.
    let times = times.min((5 << 18) / inner.len().max(1));
    text.push_str(&inner.repeat(times));
    text.push('"');
    let frame = match kind % 4 {
        0 => format!(r#"{{"type":"notice","level":"info","message":{text}}}"#),
        1 => format!(
            r#"{{"id":"r","type":"response","command":"x","success":true,"data":[{text},{quoted}]}}"#
        ),
        2 => format!(
            r#"{{"type":"agent_end","messages":[{{"role":"user","content":{text},"timestamp":1}}],"isTerminal":true}}"#
        ),
        _ => format!(r#"{{"type":"later","x":{{"y":[{text},[],{{}}],"z":{quoted}}}}}"#),
    };
    for chunks in [false, true] {
        let mut writer = FrameWriter::new();
        if chunks {
            writer.use_chunks();
        }
        let mut out = Vec::new();
        writer.write(frame.as_bytes(), &mut out);
        let lines: Vec<&[u8]> = out.split_inclusive(|&byte| byte == b'\n').collect();
        let fits = lines.iter().all(|line| line.len() <= MAX_FRAME);
        must(fits && out.ends_with(b"\n"), "OMP-09", || {
            format!("{} bytes became {} lines", frame.len(), lines.len())
        })?;
        must(chunks || lines.len() == 1, "OMP-09", || {
            format!("{} lines of a frame in protocol 1", lines.len())
        })?;
        let frames = put_together(&lines)?;
        must(frames.len() == 1, "OMP-09", || {
            format!("{} frames came back", frames.len())
        })?;
        let back = frames.first().map(Vec::as_slice).unwrap_or_default();
        if chunks && kind % 4 != 2 || frame.len() < MAX_FRAME {
            must(back == frame.as_bytes(), "L10", || {
                format!("{} bytes came back as {}", frame.len(), back.len())
            })?;
        }
    }
    Ok(())
}

/// The frames of whole lines, each with its newline; faults are findings.
fn put_together(lines: &[&[u8]]) -> Result<Vec<Vec<u8>>, Broken> {
    let mut reader = ChunkReader::new();
    reader.use_chunks();
    let mut frames = Vec::new();
    let mut members = Members::new();
    for line in lines {
        let line = line.trim_ascii_end();
        let taken = match AgentLine::decode(line, &mut members) {
            Ok(AgentLine::Frame(Frame::Chunk(chunk))) => reader.chunk(&chunk),
            Ok(_) => reader.other_line().map(|()| Some(line.to_vec())),
            Err(fault) => {
                return must(false, "L10", || format!("{fault:?} in {line:?}")).map(|()| frames);
            }
        };
        match taken {
            Ok(frame) => frames.extend(frame),
            Err(fault) => return must(false, "L10", || fault.to_string()).map(|()| frames),
        }
    }
    must(!reader.is_open(), "L10", || {
        "a frame that never ends".to_owned()
    })?;
    Ok(frames)
}

/// Any lines are frames or faults: a frame of chunks has the length that it declares, nothing is held behind a fault,
/// and it is the same however the bytes are cut.
///
/// # Errors
/// [`Broken`] with the frame.
pub fn omp_frames_in(data: &[u8]) -> Result<(), Broken> {
    let size = 1 + Source::new(data).below(64);
    let bytes = data.get(1..).unwrap_or_default();
    let whole = frames_in(&[bytes])?;
    let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
    let cut = frames_in(&pieces)?;
    must(whole == cut, "L1", || format!("{whole:?}, and cut {cut:?}"))
}

fn frames_in(pieces: &[&[u8]]) -> Result<Vec<String>, Broken> {
    let rules = LineRules {
        max_bytes: MAX_REASSEMBLED,
        over: OverLong::Skip,
        tail: Tail::Deliver,
    };
    let mut reader = ChunkReader::new();
    let (mut seen, mut members) = (Vec::new(), Members::new());
    for (at, line) in split_lines(rules, pieces).into_iter().enumerate() {
        let LineSaid::Line(_, line) = line else {
            continue;
        };
        // The first line is still one of protocol 1.
        let is_chunk = match AgentLine::decode(&line, &mut members) {
            Ok(AgentLine::Frame(Frame::Chunk(chunk))) => {
                let taken = reader.chunk(&chunk);
                let holds = match &taken {
                    Ok(Some(frame)) => !reader.is_open() && frame.len() + 3 >= MAX_FRAME,
                    Ok(None) => reader.is_open() && at > 0,
                    Err(_) => !reader.is_open(),
                };
                must(holds, "OMP-09", || format!("{taken:?} of line {at}"))?;
                seen.push(format!(
                    "{:?}",
                    taken.map(|frame| frame.map(|bytes| bytes.len()))
                ));
                true
            }
            _ => false,
        };
        if !is_chunk {
            let was_open = reader.is_open();
            let taken = reader.other_line();
            must(taken.is_err() == was_open, "OMP-09", || {
                format!("{taken:?}")
            })?;
            seen.push(format!("{taken:?}"));
        }
        reader.use_chunks();
    }
    Ok(seen)
}
