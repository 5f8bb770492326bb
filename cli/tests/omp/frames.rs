//! Frames beyond the limit: cut in protocol 2, made smaller in protocol 1.

use serde_json::{Value, json};
use turnwire::json::Members;
use turnwire::protocol::omp::Omp;
use turnwire::protocol::omp::codec::ChunkReader;
use turnwire::protocol::omp::wire::{AgentLine, Frame};

use crate::support::omp::{deltas, text_of};
use crate::support::program::{Home, Program, Setup, of};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::openai;

/// Longer than a frame may be.
const LONG: usize = 1_100_000;

fn long_answer(home: &Home) -> (Provider, Program<Omp>) {
    // Its characters have two and three bytes, and cuts fall anywhere.
    let piece = "ä lot of text\u{2028} ".repeat(LONG / 32);
    let mut reply = Reply::stream();
    for _ in 0..2 {
        reply = reply.bytes(openai::text(&piece));
    }
    let reply = reply.bytes(openai::finish("stop")).bytes(openai::DONE);
    let provider = Provider::start([reply]);
    let program = Setup::omp(home, &provider, "auto").start_as::<Omp>();
    (provider, program)
}

/// The frames of these lines, put together.
#[track_caller]
fn whole(lines: &[Value]) -> Vec<Value> {
    let mut reader = ChunkReader::new();
    reader.use_chunks();
    let mut members = Members::new();
    let mut frames = Vec::new();
    for line in lines {
        let text = line.to_string();
        if let Ok(AgentLine::Frame(Frame::Chunk(chunk))) =
            AgentLine::decode(text.as_bytes(), &mut members)
        {
            if let Some(frame) = reader.chunk(&chunk).unwrap() {
                frames.push(serde_json::from_slice(&frame).unwrap());
            }
        } else {
            reader.other_line().unwrap();
            frames.push(line.clone());
        }
    }
    frames
}

/// Reads on to the end of the run; chunks hide it in protocol 2, so the response to the last command is what tells.
fn finish(program: &mut Program<Omp>) -> Vec<Value> {
    program.see(&json!({ "type": "prompt_result", "id": "p", "status": "completed" }));
    program.seen().to_vec()
}

#[test]
fn omp_09_a_frame_beyond_the_limit_is_cut_and_whole_again() {
    let home = Home::new();
    let (_provider, mut program) = long_answer(&home);
    let agreed = program.ask("negotiate_protocol", json!({ "protocolVersion": 2 }));
    assert_eq!(agreed["data"]["protocolVersion"], 2, "{agreed}");
    program.command("p", "prompt", json!({ "message": "Tell me everything." }));
    let lines = finish(&mut program);
    assert!(!of(&lines, "rpc_chunk").is_empty());
    for line in &lines {
        assert!(line.to_string().len() < 1_048_576);
    }
    let frames = whole(&lines);
    let said = deltas(&frames);
    assert!(said.len() > LONG, "{}", said.len());
    let ends = of(&frames, "message_end");
    let message = &ends.last().unwrap()["message"];
    assert!(text_of(message) == said, "the end holds the whole text");
}

#[test]
fn omp_09_without_cutting_a_frame_is_made_smaller() {
    let home = Home::new();
    let (_provider, mut program) = long_answer(&home);
    program.command("p", "prompt", json!({ "message": "Tell me everything." }));
    let lines = finish(&mut program);
    assert!(of(&lines, "rpc_chunk").is_empty());
    for line in &lines {
        assert!(line.to_string().len() < 1_048_576, "{}", line["type"]);
    }
    assert!(!of(&lines, "agent_end").is_empty());
}
