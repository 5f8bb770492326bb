//! What providers stream, and scripts that play them.

use turnwire::{
    model::{Api, ReplyDecoder, ReplyLimits, script::Script},
    vocab::{ModelChunk, ModelRequest, Now},
};

use super::{NOW, must, shown};
use crate::{
    bytes::Source,
    laws::{self, Broken, ReplyInput, ReplyMachine},
};

/// Whatever an OpenAI-compatible endpoint sends, cut anywhere, gives the same chunks and exactly one settlement, and
/// the laws of a machine hold.
///
/// # Errors
/// The law that is broken.
pub fn openai(data: &[u8]) -> Result<(), Broken> {
    reply(Api::OpenAi, data)
}

/// Whatever an endpoint of Anthropic's messages sends, cut anywhere, gives the same chunks and exactly one settlement,
/// and the laws of a machine hold.
///
/// # Errors
/// The law that is broken.
pub fn anthropic(data: &[u8]) -> Result<(), Broken> {
    reply(Api::Anthropic, data)
}

/// Three bytes choose how the body comes, and what its head says; the rest is the body.
fn reply(api: Api, data: &[u8]) -> Result<(), Broken> {
    let mut source = Source::new(data.get(..3).unwrap_or_default());
    let size = 1 + source.below(32);
    let limit = source.of([16 << 20, 16 << 20, 300, 40, 0]);
    let choice = source.byte();
    let (streamed, breaks) = (choice & 1 == 0, choice & 2 != 0);
    let status = [200, 200, 429, 500, 400, 401, 529, 302][usize::from(choice >> 2 & 7)];
    let limits = ReplyLimits {
        reply_bytes: limit,
        event_bytes: limit,
        error_body_bytes: limit,
        ..ReplyLimits::default()
    };
    let at = |input| (input, NOW);
    let last = if breaks {
        ReplyInput::Broken
    } else {
        ReplyInput::End
    };
    let body = data.get(3..).unwrap_or_default().chunks(97);
    let body = body.map(|piece| at(ReplyInput::Bytes(piece.to_vec())));
    let head = [at(ReplyInput::Head(status))];
    let story: Vec<(ReplyInput, Now)> = head.into_iter().chain(body).chain([at(last)]).collect();
    let make = || ReplyMachine::new(api, limits, streamed);
    laws::hold_cut(make, &story, size, 3)?;
    laws::settles_once(make(), &story)
}

/// Any text is a script, or its fault has a place in it; whatever a script plays settles once.
///
/// # Errors
/// [`Broken`] with the fault, or with how often it settled.
pub fn script(data: &[u8]) -> Result<(), Broken> {
    let text = shown(data);
    let script = match Script::parse(&text) {
        Ok(script) => script,
        Err(fault) => {
            let line = fault
                .line
                .checked_sub(1)
                .and_then(|at| text.lines().nth(at));
            let columns = 1..=line.unwrap_or_default().chars().count() + 1;
            // A text without lines has no line to point at.
            let placed = columns.contains(&fault.column) && (line.is_some() || fault.line == 1);
            return must(placed, "L9", || format!("{text:?} has no place {fault}"));
        }
    };
    let request = ModelRequest {
        model: "m",
        system: None,
        messages: &[],
        tools: &[],
        max_output: None,
        thinking: None,
        thinking_budget: None,
    };
    let mut decoder = ReplyDecoder::new(script.api(), ReplyLimits::default());
    let (mut settled, mut behind) = (0, 0);
    script
        .reply(&request)
        .play(&mut decoder, NOW, &mut |chunk: ModelChunk<'_>| {
            behind += usize::from(settled > 0);
            settled += usize::from(matches!(chunk, ModelChunk::End | ModelChunk::Failed { .. }));
        });
    must(settled == 1 && behind == 0, "L8", || {
        format!("{text:?} settled {settled} times, {behind} chunks behind it")
    })
}
