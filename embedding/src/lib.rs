#![doc = include_str!("../../docs/embedding.md")]
//!
//! This crate holds what the three loops share: a session, a model in memory, and the draining.

use std::time::Duration;

use turnwire::model::script::{Script, ScriptEnd, ScriptReply};
use turnwire::model::{ReplyDecoder, ReplyLimits};
use turnwire::session::config::ModelConfig;
use turnwire::session::{Session, SessionConfig};
use turnwire::vocab::{
    Agent, ApprovalMode, Block, Briefing, Call, Command, CommandId, Deliver, Drain, Effect,
    EffectBody, Input, Interrupting, Misuse, ModelChunk, ModelRef, Now, Output, Prompt, PromptId,
    Rank, RequestId, SessionInfo, Settings, What,
};
use turnwire_io::Part;

/// A session with a scripted model and no tools.
pub fn session() -> Session {
    let config = SessionConfig::new(ModelConfig::new("scripted", 32_768));
    Session::new(config, Box::new(info()), Now::default())
}

/// What such a session says of itself.
pub fn info() -> SessionInfo {
    SessionInfo {
        session: "embedded".into(),
        name: None,
        file: None,
        generation: "1".into(),
        root: None,
        cwd: "/".into(),
        product: "embedding".into(),
        continued: false,
        history: Vec::new(),
        summarised: Vec::new(),
        model: ModelRef {
            provider: None,
            model: "scripted".into(),
        },
        api_model: None,
        efforts: Vec::new(),
        settings: Box::new(Settings {
            approvals: ApprovalMode::Auto,
            thinking: None,
            steer_drain: Drain::All,
            follow_up_drain: Drain::One,
            interrupting: Interrupting::Wait,
            auto_retry: true,
            auto_compact: true,
        }),
        tools: Vec::new(),
        briefing: Briefing::default(),
        mcp: Vec::new(),
        commands: Vec::new(),
        skills: Vec::new(),
        media: Vec::new(),
    }
}

/// A prompt, the first of its session.
pub fn prompt(text: &str) -> Input<'static> {
    Input::Call(Call {
        id: CommandId(1),
        command: Command::Prompt(Prompt {
            id: PromptId(1),
            tag: None,
            content: vec![Block::Text(text.into())],
            deliver: Deliver::Queue(Rank::Later),
            literal: false,
            details: None,
        }),
    })
}

/// What a drain found.
#[derive(Debug, Default)]
pub struct Found {
    /// A request to the model, with the reply that it will get.
    pub asked: Option<(RequestId, ScriptReply)>,
    /// The prompt was answered.
    pub over: bool,
}

/// Takes all that the session has to say: appends the model's words to `said`, settles what needs no waiting, and
/// gives back what does.
///
/// # Errors
/// [`Misuse`] if this code has a bug.
pub fn drain(
    session: &mut Session,
    script: &Script,
    now: Now,
    said: &mut String,
) -> Result<Found, Misuse> {
    let mut found = Found::default();
    loop {
        let effect = match session.poll_output() {
            None => return Ok(found),
            Some(Output::Delta(delta)) => {
                said.push_str(delta.text);
                continue;
            }
            Some(Output::Event(event)) => {
                found.over |= matches!(event.what, What::PromptEnded { .. });
                continue;
            }
            Some(Output::Effect { run, effect }) => (run, effect),
        };
        let (run, effect) = effect;
        if let Effect::StartModel(request) = effect
            && let Some(EffectBody::Model(body)) = session.body(run, &effect)
        {
            found.asked = Some((request, script.reply(&body)));
        }
        if let Effect::StopModel(request) = effect {
            let chunk = ModelChunk::End;
            session.handle(Input::Model { request, chunk }, now)?;
        }
        // Nothing is kept here. A store that keeps something settles when it is safe.
        if let Effect::Store(write) = effect {
            session.handle(Input::Store { write, ok: Ok(()) }, now)?;
        }
    }
}

/// A decoder for the script's replies.
pub fn decoder(script: &Script) -> ReplyDecoder {
    ReplyDecoder::new(script.api(), ReplyLimits::default())
}

/// A reply as it would come over a network: pieces, and the pause before each.
pub fn pieces(reply: ScriptReply) -> Vec<(Duration, Part)> {
    let head = reply.head();
    let text = |value: Option<&str>| value.map(str::to_owned);
    let head = Part::Head {
        status: head.status,
        reason: head.reason.to_owned(),
        content_type: text(head.content_type),
        retry_after: text(head.retry_after),
    };
    let last = match reply.end {
        ScriptEnd::Whole => Part::End,
        ScriptEnd::Cut(why) => Part::Broken(why),
        ScriptEnd::Unreached(why) => {
            let reached = false;
            return vec![(Duration::ZERO, Part::Unreached { why, reached })];
        }
    };
    let body = reply.pieces.into_iter().map(|piece| {
        let pause = Duration::from_micros(piece.after_us);
        (pause, Part::Body(piece.bytes.into()))
    });
    let first = (Duration::from_micros(reply.head_after_us), head);
    std::iter::once(first)
        .chain(body)
        .chain(std::iter::once((Duration::ZERO, last)))
        .collect()
}

/// Hands a piece of a reply to the session, through its decoder.
///
/// # Errors
/// [`Misuse`] if this code has a bug.
pub fn hear(
    session: &mut Session,
    decoder: &mut ReplyDecoder,
    request: RequestId,
    part: &Part,
    now: Now,
) -> Result<(), Misuse> {
    let mut done = Ok(());
    part.decode(decoder, now, &mut |chunk| {
        if done.is_ok() {
            done = session.handle(Input::Model { request, chunk }, now);
        }
    });
    done
}
