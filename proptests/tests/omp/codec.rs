//! omp's frame codec: every vector of the real one, and its laws.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::omp_kit;

use std::fmt::Write as _;

use omp_kit::codec_vectors;
use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use turnwire::frame::{LineRules, LineSplitter, OverLong, SplitKind, Tail};
use turnwire::json::{JsonFaultKind, Members};
use turnwire::protocol::WireFault;
use turnwire::protocol::omp::codec::{
    ChunkFault, ChunkReader, FrameWriter, negotiate, offers_chunks, ready,
};
use turnwire::protocol::omp::wire::*;
use turnwire::protocol::omp::{MAX_FRAME, MAX_REASSEMBLED};
use turnwire_proptests::cases::pieces;

fn notice(message: &str) -> String {
    format!(r#"{{"type":"notice","level":"info","message":"{message}"}}"#)
}

/// A notice whose JSON has this many bytes.
fn notice_of(bytes: usize) -> String {
    notice(&"a".repeat(bytes - notice("").len()))
}

fn user(text: &str, at: u64) -> String {
    format!(r#"{{"role":"user","content":"{text}","timestamp":{at}}}"#)
}

/// The frames that a vector describes.
fn frames(name: &str, version: u64) -> Vec<String> {
    let large = if version == 2 { 70_000_000 } else { 1_048_576 };
    let a = |count: usize| "a".repeat(count);
    match name {
        "fits-exactly" => vec![notice_of(1_048_575)],
        "one-over" => vec![notice_of(1_048_576)],
        "one-over-response" => vec![format!(
            r#"{{"id":"r1","type":"response","command":"get_messages","success":true,"data":{{"text":"{}"}}}}"#,
            a(1_048_576)
        )],
        "long-id-response" => vec![format!(
            r#"{{"id":"{}","type":"response","command":"{}","success":true,"data":{{"text":"{}"}}}}"#,
            "i".repeat(5000),
            "c".repeat(3000),
            a(large)
        )],
        "numeric-id-response" => vec![format!(
            r#"{{"id":7,"type":"response","command":"x","success":true,"data":{{"text":"{}"}}}}"#,
            a(large)
        )],
        "emoji-string" => vec![notice(&"😀".repeat(400_000))],
        "emoji-odd-cap" => vec![notice(&format!("x{}", "😀".repeat(400_000)))],
        "wide-array" => {
            let rules: Vec<String> = (0..3000)
                .map(|index| format!(r#"{{"name":"r{index}","body":"{}"}}"#, "b".repeat(500)))
                .collect();
            vec![format!(
                r#"{{"type":"ttsr_triggered","rules":[{}]}}"#,
                rules.join(",")
            )]
        }
        "wide-object" => {
            let keys: Vec<String> = (0..2000)
                .map(|index| format!(r#""k{index}":"{}""#, "v".repeat(700)))
                .collect();
            vec![format!(
                r#"{{"type":"x_event","map":{{{}}}}}"#,
                keys.join(",")
            )]
        }
        "agent-end-compaction" => {
            let first = user("hi", 1);
            let second = format!(
                r#"{{"role":"assistant","content":"{}","timestamp":2}}"#,
                a(600_000)
            );
            let third = user(&"b".repeat(600_000), 3);
            vec![
                r#"{"type":"agent_start"}"#.into(),
                format!(r#"{{"type":"message_end","message":{first}}}"#),
                format!(r#"{{"type":"message_end","message":{second}}}"#),
                format!(
                    r#"{{"type":"agent_end","messages":[{first},{second},{third}],"isTerminal":true}}"#
                ),
            ]
        }
        "over-ceiling-event" => vec![notice(&a(67_108_864))],
        "over-ceiling-agent-end" => vec![format!(
            r#"{{"type":"agent_end","messages":[{{"role":"user","content":"{}"}}],"isTerminal":false}}"#,
            a(67_108_864)
        )],
        name => panic!("a vector of the name {name}"),
    }
}

#[test]
fn omp_09_encoder_vectors() {
    let vectors: Vec<Value> = codec_vectors()
        .into_iter()
        .filter(|vector| vector["kind"] == "encode")
        .collect();
    assert_eq!(vectors.len(), 24);
    for vector in vectors {
        let name = vector["name"].as_str().unwrap();
        let version = vector["version"].as_u64().unwrap();
        let frames = frames(name, version);
        let sizes: Vec<usize> = frames.iter().map(String::len).collect();
        assert_eq!(json!(sizes), vector["jsonBytes"], "{name}: the input");
        let mut writer = FrameWriter::new();
        if version == 2 {
            writer.use_chunks();
        }
        let mut out = Vec::new();
        for frame in frames {
            writer.write(frame.as_bytes(), &mut out);
        }
        let lines: Vec<usize> = out
            .split_inclusive(|&byte| byte == b'\n')
            .map(<[u8]>::len)
            .collect();
        assert_eq!(json!(lines), vector["lineBytes"], "{name} {version}");
        if let Some(line) = vector["line"].as_str() {
            assert_eq!(
                String::from_utf8_lossy(&out),
                format!("{line}\n"),
                "{name} {version}"
            );
        }
        let mut digest = String::new();
        for byte in Sha256::digest(&out) {
            write!(digest, "{byte:02x}").unwrap();
        }
        assert_eq!(json!(digest), vector["sha256"], "{name} {version}");
    }
}

/// The lines of a frame in protocol 2.
fn chunked(frame: &[u8]) -> Vec<Value> {
    let mut writer = FrameWriter::new();
    writer.use_chunks();
    let mut out = Vec::new();
    writer.write(frame, &mut out);
    out.split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// What a reader makes of lines: the frames, or why not.
fn read(lines: &[String], chunks: bool) -> Result<Vec<Vec<u8>>, String> {
    let mut reader = ChunkReader::new();
    if chunks {
        reader.use_chunks();
    }
    let mut frames = Vec::new();
    let mut members = Members::new();
    for line in lines {
        let decoded = AgentLine::decode(line.as_bytes(), &mut members);
        let frame = if let Ok(AgentLine::Frame(Frame::Chunk(chunk))) = &decoded {
            match reader.chunk(chunk).map_err(|fault| fault.to_string())? {
                Some(frame) => frame,
                None => continue,
            }
        } else {
            reader.other_line().map_err(|fault| fault.to_string())?;
            line.clone().into_bytes()
        };
        match AgentLine::decode(&frame, &mut members) {
            Err(WireFault::Json(fault)) if fault.kind == JsonFaultKind::NotAnObject => {
                return Err("rpc frame must be an object".into());
            }
            Err(WireFault::Json(fault)) => match fault.kind {
                JsonFaultKind::NotUtf8 { .. } => return Err("utf-8".into()),
                _ => return Err("json".into()),
            },
            Err(_) | Ok(_) => frames.push(frame),
        }
    }
    Ok(frames)
}

/// A frame of these bytes, in chunks of this size, whatever they are.
fn in_chunks(bytes: &[u8], size: usize) -> Vec<Value> {
    let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
    let count = pieces.len();
    pieces
        .into_iter()
        .enumerate()
        .map(|(index, piece)| {
            let mut whole =
                chunked(&[br#"{"type":"x","x":""#, &vec![b'a'; 1 << 20][..], b"\"}"].concat())[0]
                    .clone();
            let mut data = String::new();
            for group in piece.chunks(3) {
                let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
                let bits = group
                    .iter()
                    .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte))
                    << (8 * (3 - group.len()));
                for digit in 0..4 {
                    if digit <= group.len() {
                        data.push(char::from(
                            alphabet[(bits >> (18 - 6 * digit)) as usize & 63],
                        ));
                    } else {
                        data.push('=');
                    }
                }
            }
            whole["index"] = json!(index);
            whole["count"] = json!(count);
            whole["byteLength"] = json!(bytes.len());
            whole["data"] = json!(data);
            whole
        })
        .collect()
}

#[test]
fn omp_09_decoder_vectors() {
    let vectors: Vec<Value> = codec_vectors()
        .into_iter()
        .filter(|vector| vector["kind"] == "decode")
        .collect();
    assert_eq!(vectors.len(), 35);
    let frame = notice_of(1_200_000);
    let good = chunked(frame.as_bytes());
    assert_eq!(good.len(), 5);
    assert!(
        good[4]["data"].as_str().unwrap().ends_with('='),
        "one of the vectors takes the padding away"
    );
    for vector in vectors {
        let name = vector["name"].as_str().unwrap();
        let mut lines = good.clone();
        let mut set = |index: usize, member: &str, value: Value| lines[index][member] = value;
        let mut other = None;
        match name {
            "good" => {}
            "ordinary-frame-before" => lines.insert(0, json!({"type": "session_settled"})),
            "interrupted" => lines.insert(2, json!({"type": "session_settled"})),
            "missing-first" => drop(lines.remove(0)),
            "reordered" => lines.swap(1, 2),
            "duplicate" => lines.insert(1, lines[0].clone()),
            "id-changed" => set(2, "chunkId", json!("rpc-9")),
            "count-changed" => set(2, "count", json!(6)),
            "byteLength-changed" => set(2, "byteLength", json!(1_200_001)),
            "byteLength-too-big-all" => {
                (0..5).for_each(|at| set(at, "byteLength", json!(1_200_001)))
            }
            "byteLength-too-small-all" => {
                (0..5).for_each(|at| set(at, "byteLength", json!(1_199_999)))
            }
            "byteLength-below-1MiB" => {
                (0..5).for_each(|at| set(at, "byteLength", json!(1_048_575)))
            }
            "byteLength-over-64MiB" => {
                (0..5).for_each(|at| set(at, "byteLength", json!(67_108_865)))
            }
            "count-1" => set(0, "count", json!(1)),
            "count-257" => set(0, "count", json!(257)),
            "index-negative" => set(0, "index", json!(-1)),
            "index-float" => set(0, "index", json!(0.5)),
            "empty-id" => set(0, "chunkId", json!("")),
            "id-128" => (0..5).for_each(|at| set(at, "chunkId", json!("i".repeat(128)))),
            "id-129" => (0..5).for_each(|at| set(at, "chunkId", json!("i".repeat(129)))),
            "data-empty" => set(0, "data", json!("")),
            "data-unpadded" => set(
                4,
                "data",
                json!(good[4]["data"].as_str().unwrap().trim_end_matches('=')),
            ),
            "data-noncanonical" => set(0, "data", json!("Zh==")),
            "data-urlsafe" => set(0, "data", json!("__-_")),
            "data-whitespace" => set(0, "data", json!("Zm9v\n")),
            "data-too-large" => {
                let large = in_chunks(&vec![b'a'; 1_200_000], 262_145);
                lines = large;
            }
            "non-object" => other = Some("5"),
            "array" => other = Some("[]"),
            "null" => other = Some("null"),
            "invalid-utf8" => lines = in_chunks(&[frame.as_bytes(), b"\xff"].concat(), 262_144),
            "not-json" => lines = in_chunks(&vec![b'a'; 1_200_000], 262_144),
            "json-array" => {
                lines = in_chunks(
                    format!("[\"{}\"]", "a".repeat(1_200_000)).as_bytes(),
                    262_144,
                )
            }
            "smaller-chunks-accepted" => lines = in_chunks(frame.as_bytes(), 100_000),
            "bom-inside" => lines = in_chunks(format!("\u{feff}{frame}").as_bytes(), 262_144),
            "nested-chunk-object" => {
                let nested = frame.replace("\"notice\"", "\"rpc_chunk\"");
                lines = in_chunks(nested.as_bytes(), 262_144);
            }
            name => panic!("a vector of the name {name}"),
        }
        let mut texts: Vec<String> = lines.iter().map(Value::to_string).collect();
        if let Some(other) = other {
            texts = vec![other.into()];
        }
        let result = read(&texts, true);
        if vector["ok"] == true {
            let frames = result.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(json!(frames.len()), vector["frames"], "{name}");
            let last = frames.last().unwrap();
            if name == "nested-chunk-object" {
                assert!(last.starts_with(b"{\"type\":\"rpc_chunk\""));
            } else {
                assert!(last == frame.as_bytes(), "{name}");
            }
        } else {
            // The last three words are the engine's own.
            let expected = match name {
                "invalid-utf8" => "utf-8",
                "not-json" => "json",
                _ => vector["error"].as_str().unwrap(),
            };
            assert_eq!(result.err().as_deref(), Some(expected), "{name}");
        }
    }
}

#[test]
fn omp_09_chunks_before_the_negotiation_are_a_fault() {
    let lines: Vec<String> = chunked(notice_of(1_200_000).as_bytes())
        .iter()
        .map(Value::to_string)
        .collect();
    assert_eq!(
        read(&lines, false),
        Err(ChunkFault::NotNegotiated.to_string())
    );
}

#[test]
fn omp_09_a_reader_goes_on_after_a_fault_and_keeps_nothing() {
    let frame = notice_of(1_200_000);
    let lines: Vec<String> = chunked(frame.as_bytes())
        .iter()
        .map(Value::to_string)
        .collect();
    let mut reader = ChunkReader::new();
    reader.use_chunks();
    let mut give = |line: &str| {
        let mut members = Members::new();
        match AgentLine::decode(line.as_bytes(), &mut members) {
            Ok(AgentLine::Frame(Frame::Chunk(chunk))) => reader.chunk(&chunk),
            _ => reader.other_line().map(|()| None),
        }
    };
    assert_eq!(give(&lines[0]), Ok(None));
    assert_eq!(
        give("{\"type\":\"turn_start\"}"),
        Err(ChunkFault::Interrupted)
    );
    assert_eq!(give(&lines[1]), Err(ChunkFault::NotFirst));
    for line in &lines[..4] {
        assert_eq!(give(line), Ok(None));
    }
    assert_eq!(give(&lines[4]), Ok(Some(frame.clone().into_bytes())));
    assert_eq!(give(&lines[0]), Ok(None));
    assert_eq!(give(&lines[2]), Err(ChunkFault::Mismatch));
}

#[test]
fn omp_09_only_the_number_2_is_negotiated() {
    let judge = |version: &str| {
        let line = format!("{{\"id\":\"n\",\"type\":\"negotiate_protocol\"{version}}}");
        let mut members = Members::new();
        match HostLine::decode(line.as_bytes(), &mut members) {
            Ok(HostLine::Command {
                command: Command::NegotiateProtocol(command),
                ..
            }) => negotiate(&command),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(judge(",\"protocolVersion\":2"), Ok(()));
    assert_eq!(judge(",\"protocolVersion\":2.0"), Ok(()));
    for (version, shown) in [
        ("", "undefined"),
        (",\"protocolVersion\":1", "1"),
        (",\"protocolVersion\":3", "3"),
        (",\"protocolVersion\":\"2\"", "2"),
        (",\"protocolVersion\":null", "null"),
    ] {
        assert_eq!(
            judge(version),
            Err(format!("Unsupported RPC protocol version: {shown}"))
        );
    }
}

#[test]
fn omp_01_the_first_line_is_the_contracts_byte_by_byte() {
    let mut bytes = Vec::new();
    Frame::from(ready()).encode(&mut bytes);
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        r#"{"type":"ready","protocolVersion":1,"supportedProtocolVersions":[1,2],"maxFrameBytes":1048576,"maxReassembledFrameBytes":67108864}"#
    );
    assert!(offers_chunks(&ready()));
    assert!(!offers_chunks(&Ready {
        max_frame_bytes: Some(1),
        ..ready()
    }));
    assert!(!offers_chunks(&Ready {
        supported_protocol_versions: None,
        ..ready()
    }));
}

/// A frame that is too long to be shown.
#[derive(Clone)]
struct Large(String);

impl std::fmt::Debug for Large {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start: String = self.0.chars().take(120).collect();
        write!(f, "{} bytes: {start}", self.0.len())
    }
}

/// A frame over the limit: event, response or `agent_end`, with texts of every kind.
fn large_frame() -> impl Strategy<Value = Large> {
    let piece = prop::sample::select(vec![
        "a",
        "ä",
        "😀",
        "\\n",
        "\\u00e4",
        "\\ud83d\\ude00",
        "\u{2028}",
        "\\\\",
    ]);
    let text = (prop::collection::vec(piece, 1..4), 90_000..700_000usize)
        .prop_map(|(pieces, times)| pieces.concat().repeat(times / pieces.len()));
    (text, 0..4usize).prop_map(|(text, kind)| {
        Large(match kind {
            0 => notice(&text),
            1 => format!(
                r#"{{"id":"r","type":"response","command":"x","success":true,"data":["{text}"]}}"#
            ),
            2 => format!(
                r#"{{"type":"agent_end","messages":[{}],"isTerminal":true}}"#,
                user(&text, 1)
            ),
            _ => format!(r#"{{"type":"later","x":{{"y":["{text}",[],{{}}]}}}}"#),
        })
    })
}

proptest! {
    #![proptest_config(turnwire_proptests::config(12))]

    #[test]
    fn l10_a_frame_in_chunks_is_the_frame_again(Large(frame) in large_frame(), small in 0..3usize) {
        let mut writer = FrameWriter::new();
        writer.use_chunks();
        let mut out = Vec::new();
        let around = notice(&"x".repeat(small));
        writer.write(around.as_bytes(), &mut out);
        writer.write(frame.as_bytes(), &mut out);
        writer.write(around.as_bytes(), &mut out);
        let lines: Vec<String> = String::from_utf8(out).unwrap().lines().map(str::to_owned).collect();
        prop_assert!(lines.iter().all(|line| line.len() < MAX_FRAME));
        let frames = read(&lines, true).unwrap();
        prop_assert_eq!(frames.len(), 3);
        let before: Value = serde_json::from_str(&frame).unwrap();
        let mut after: Value = serde_json::from_slice(&frames[1]).unwrap();
        if before["type"] == "agent_end" && frame.len() >= MAX_FRAME {
            prop_assert_eq!(&after["messageCount"], &json!(1));
            after.as_object_mut().unwrap().remove("messageCount");
        }
        prop_assert!(before == after);
    }

    #[test]
    fn l9_protocol_1_makes_everything_fit_and_stays_json(Large(frame) in large_frame()) {
        let mut writer = FrameWriter::new();
        let mut out = Vec::new();
        writer.write(frame.as_bytes(), &mut out);
        prop_assert!(out.len() <= MAX_FRAME);
        prop_assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), 1);
        let mut members = Members::new();
        let read = AgentLine::decode(out.trim_ascii_end(), &mut members);
        prop_assert!(read.is_ok(), "{:?}", read.err());
    }

    #[test]
    fn l1_however_chunk_lines_are_cut_the_same_frames_come_out(
        Large(frame) in large_frame(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut writer = FrameWriter::new();
        writer.use_chunks();
        let mut out = Vec::new();
        writer.write(frame.as_bytes(), &mut out);
        writer.write(frame.as_bytes(), &mut out);
        let cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(out.len())).collect();
        let mut splitter = LineSplitter::new(LineRules {
            max_bytes: MAX_REASSEMBLED,
            over: OverLong::Skip,
            tail: Tail::Deliver,
        });
        let mut lines = Vec::new();
        for mut piece in pieces(&out, &cuts) {
            while let Some(split) = splitter.next(&mut piece) {
                if let SplitKind::Line(line) = split.what {
                    lines.push(String::from_utf8(line.to_vec()).unwrap());
                }
            }
        }
        let whole: Vec<String> = String::from_utf8(out.clone()).unwrap().lines().map(str::to_owned).collect();
        prop_assert!(lines == whole);
        prop_assert_eq!(read(&lines, true).unwrap().len(), 2);
    }

    #[test]
    fn l9_any_chunks_are_a_frame_or_a_fault(
        lines in prop::collection::vec(
            (0..4u64, 0..4u64, prop::sample::select(vec!["rpc-1", "rpc-2", ""]), "[A-Za-z0-9+/=]{0,12}"),
            0..12,
        ),
    ) {
        let mut reader = ChunkReader::new();
        reader.use_chunks();
        for (index, count, id, data) in lines {
            let line = json!({
                "type": "rpc_chunk", "chunkId": id, "index": index, "count": count,
                "byteLength": MAX_FRAME, "data": data,
            }).to_string();
            let mut members = Members::new();
            if let Ok(AgentLine::Frame(Frame::Chunk(chunk))) = AgentLine::decode(line.as_bytes(), &mut members) {
                prop_assert!(!matches!(reader.chunk(&chunk), Ok(Some(_))), "too little for a frame");
            }
        }
    }
}

#[test]
fn omp_09_recorded_frames_are_made_to_fit_as_the_real_program_did() {
    // Its lines of protocol 1 that were cut stay as they are when they are written again: they fit.
    let mut cut = 0;
    for (name, rows) in omp_kit::recordings() {
        for row in rows {
            let omp_kit::Row::Agent(line) = row else {
                continue;
            };
            let mut out = Vec::new();
            FrameWriter::new().write(line.as_bytes(), &mut out);
            assert_eq!(out.strip_suffix(b"\n"), Some(line.as_bytes()), "{name}");
            cut += usize::from(line.contains("elided for RPC frame"));
        }
    }
    assert!(cut > 0);
}
