//! The wire path: bytes → lines or events → JSON → typed values, and back.

mod usual;

use std::process::ExitCode;
use std::{io, str};

use bytes::BytesMut;
use tokio_util::codec::{Decoder, LinesCodec};
use turnwire::frame::{LineRules, LineSplitter, OverLong, SplitKind, SseDecoder, SseLimits, Tail};
use turnwire::json::{Members, ScanRules, scan};
use turnwire::protocol::Credentials;
use turnwire::protocol::openmax::wire::AgentLine;
use turnwire_benches::corpus::{self, Mix};
use turnwire_benches::race::{Race, Row};
use turnwire_benches::usual::Line;

/// openmax's rules for lines.
const RULES: LineRules = LineRules {
    max_bytes: 8 << 20,
    over: OverLong::Skip,
    tail: Tail::Deliver,
};

/// What one read of a pipe or socket gives.
const CHUNK: usize = 16 * 1024;

const MIXES: [Mix; 3] = [Mix::Mixed, Mix::Tokens, Mix::Tools];

fn main() -> io::Result<ExitCode> {
    let mut race = Race::from_arguments();
    for mix in MIXES {
        // Large enough for one line of several mebibytes in the mixed one.
        let mib = if mix == Mix::Mixed { 24 } else { 8 };
        let stream = corpus::file(mix, mib, "openmax.jsonl")?;
        let lines: Vec<&[u8]> = stream
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .collect();
        split_lines(&mut race, mix, &stream, lines.len());
        read_json(&mut race, mix, &lines);
        read_events(&mut race, mix, &lines);
        write_events(&mut race, mix, &lines);
        find_credentials(&mut race, mix, &lines);
    }
    for file in ["openai.sse", "anthropic.sse"] {
        read_sse(&mut race, file, &corpus::file(Mix::Mixed, 8, file)?);
    }
    Ok(if race.finish() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn split_lines(race: &mut Race, mix: Mix, stream: &[u8], items: usize) {
    let ours = |check: bool| {
        let mut splitter = LineSplitter::new(RULES);
        let mut sum = 0;
        for mut chunk in stream.chunks(CHUNK) {
            while let Some(split) = splitter.next(&mut chunk) {
                if let SplitKind::Line(line) = split.what {
                    sum += line.len() as u64;
                    if check {
                        sum += u64::from(str::from_utf8(line).is_ok());
                    }
                }
            }
        }
        sum
    };
    let usual = || {
        let mut codec = LinesCodec::new_with_max_length(RULES.max_bytes);
        let mut buffer = BytesMut::new();
        let mut sum = 0;
        for chunk in stream.chunks(CHUNK) {
            buffer.extend_from_slice(chunk);
            while let Ok(Some(line)) = codec.decode(&mut buffer) {
                sum += line.len() as u64;
            }
        }
        sum
    };
    let name = format!("lines/{}", mix.name());
    let row = Row {
        name: &name,
        usual: "tokio_util LinesCodec",
        bytes: stream.len(),
        items,
        aim: None,
    };
    race.run(row, || ours(false), usual);
    let name = format!("lines+utf8/{}", mix.name());
    race.run(Row { name: &name, ..row }, || ours(true), usual);
}

/// The last look at each line, for eight credentials: against each string of the value, searched for each of them.
fn find_credentials(race: &mut Race, mix: Mix, lines: &[&[u8]]) {
    let keys: Vec<String> = (0..8)
        .map(|key| format!("sk-ant-{key}-0123456789abcdef0123456789"))
        .collect();
    let Ok(mut credentials) = Credentials::new(keys.iter().map(String::as_str)) else {
        return;
    };
    let name = format!("credentials/{}", mix.name());
    let row = Row {
        name: &name,
        usual: "serde_json::Value, str::contains a string and key",
        bytes: lines.iter().map(|line| line.len()).sum(),
        items: lines.len(),
        aim: None,
    };
    let ours = || {
        let found = |line: &&&[u8]| credentials.found_in(line);
        lines.iter().filter(found).count() as u64
    };
    race.run(row, ours, || {
        let values = lines
            .iter()
            .filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
        values.filter(|value| usual::holds(value, &keys)).count() as u64
    });
}

fn read_json(race: &mut Race, mix: Mix, lines: &[&[u8]]) {
    let bytes = lines.iter().map(|line| line.len()).sum();
    let mut members = Members::new();
    let mut ours = || {
        let mut one = |line| {
            scan(line, &ScanRules::STRICT, &mut members).map_or(0, |object| object.len() as u64)
        };
        lines.iter().map(|line| one(line)).sum()
    };
    let name = format!("scan/{}", mix.name());
    let row = Row {
        name: &name,
        usual: "serde_json::Value",
        bytes,
        items: lines.len(),
        aim: None,
    };
    race.run(row, &mut ours, || {
        let values = lines
            .iter()
            .filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
        values
            .map(|value| value.as_object().map_or(0, |object| object.len() as u64))
            .sum()
    });
    let name = format!("scan-skip/{}", mix.name());
    let row = Row {
        name: &name,
        usual: "serde_json IgnoredAny (checks no UTF-8, no duplicates)",
        ..row
    };
    race.run(row, &mut ours, || {
        let values = lines
            .iter()
            .filter_map(|line| serde_json::from_slice::<serde::de::IgnoredAny>(line).ok());
        values.map(|_| 1).sum()
    });
}

fn read_events(race: &mut Race, mix: Mix, lines: &[&[u8]]) {
    let bytes = lines.iter().map(|line| line.len()).sum();
    let mut members = Members::new();
    let name = format!("decode/{}", mix.name());
    let usual = "owned, internally tagged serde enum";
    let row = Row {
        name: &name,
        usual,
        bytes,
        items: lines.len(),
        aim: Some(2.0),
    };
    race.run(
        row,
        || {
            lines
                .iter()
                .map(|line| AgentLine::decode(line, &mut members).map_or(0, |line| weight(&line)))
                .sum()
        },
        || {
            let values = lines
                .iter()
                .filter_map(|line| serde_json::from_slice::<Line>(line).ok());
            values.map(|line| line.weight()).sum()
        },
    );
}

/// A number that needs the line decoded.
fn weight(line: &AgentLine<'_>) -> u64 {
    line.kind().len() as u64
}

fn write_events(race: &mut Race, mix: Mix, lines: &[&[u8]]) {
    let bytes = lines.iter().map(|line| line.len()).sum();
    let mut members = Members::new();
    let ours: Vec<AgentLine<'_>> = lines
        .iter()
        .filter_map(|line| AgentLine::decode(line, &mut members).ok())
        .collect();
    let theirs: Vec<Line> = lines
        .iter()
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    let mut out = Vec::new();
    let mut buffer = Vec::new();
    let name = format!("encode/{}", mix.name());
    let row = Row {
        name: &name,
        usual: "serde_json::to_writer of the same enum",
        bytes,
        items: lines.len(),
        aim: None,
    };
    race.run(
        row,
        || {
            out.clear();
            for line in &ours {
                line.encode(&mut out);
                out.push(b'\n');
            }
            out.len() as u64
        },
        || {
            buffer.clear();
            for line in &theirs {
                if serde_json::to_writer(&mut buffer, line).is_ok() {
                    buffer.push(b'\n');
                }
            }
            buffer.len() as u64
        },
    );
}

fn read_sse(race: &mut Race, file: &str, stream: &[u8]) {
    let ours = || {
        let mut decoder = SseDecoder::new(SseLimits::default());
        let (mut events, mut sum) = (0_usize, 0);
        for mut chunk in stream.chunks(CHUNK) {
            while let Some(event) = decoder.next(&mut chunk) {
                events += 1;
                sum += event.map_or(0, |event| event.data.len() as u64);
            }
        }
        (events, sum)
    };
    let (items, sum) = ours();
    assert_eq!(
        sum,
        usual::read_sse(stream, CHUNK),
        "both read the same events"
    );
    let name = format!("sse/{file}");
    let row = Row {
        name: &name,
        usual: "eventsource-stream",
        bytes: stream.len(),
        items,
        aim: Some(10.0),
    };
    race.run(row, || ours().1, || usual::read_sse(stream, CHUNK));
}
