//! One model chunk to one output line, through every machine on the way: SSE,
//! the provider's decoder, the session, the openmax server. Beside it the usual
//! way. Allocations are counted: ours aim at none for a token once warm.
//!
//! Every row reads the same bytes of [`TOKENS`] tokens, so `mean / 1000` is the
//! cost of one token, and the rows stand in one run.

mod usual;

use divan::counter::{BytesCount, ItemsCount};
use divan::{AllocProfiler, Bencher};
use turnwire::model::{Api, ReplyDecoder, ReplyHead, ReplyLimits};
use turnwire::protocol::Server;
use turnwire::protocol::openmax::{Openmax, ServerConfig, preset};
use turnwire::session::config::ModelConfig;
use turnwire::session::{Session, SessionConfig};
use turnwire::vocab::{
    Agent as _, ApprovalMode, Briefing, Drain, Effect, Input, Interrupting, ModelRef, Now, Output,
    RequestId, SessionInfo, Settings,
};

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

/// Tokens in a sample.
const TOKENS: usize = 1000;
/// What one read of a socket gives.
const CHUNK: usize = 4096;

fn main() {
    divan::main();
}

/// A stream of text deltas, as providers send them.
fn stream() -> Vec<u8> {
    const WORDS: [&str; 8] = [
        " the",
        " session",
        " says \\\"so\\\"",
        "\\n",
        " Grüße",
        " of",
        " a",
        " line",
    ];
    let mut bytes = Vec::new();
    for n in 0..TOKENS {
        let word = WORDS.get(n % WORDS.len()).copied().unwrap_or_default();
        bytes.extend_from_slice(b"data: {\"id\":\"chatcmpl-123\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"");
        bytes.extend_from_slice(word.as_bytes());
        bytes.extend_from_slice(b"\"},\"finish_reason\":null}]}\n\n");
    }
    bytes
}

/// A session in the middle of a reply.
struct Open {
    decoder: ReplyDecoder,
    session: Session,
    server: Server<Openmax>,
    request: RequestId,
    lines: Vec<u8>,
    now: Now,
}

impl Open {
    fn new() -> Self {
        let limits = ReplyLimits::default();
        let mut config = SessionConfig::new(ModelConfig::new("m-1", 1 << 20));
        preset(&mut config);
        let now = Now::default();
        let mut open = Open {
            decoder: ReplyDecoder::new(Api::OpenAi, limits),
            session: Session::new(config, info(), now),
            server: Server::new(ServerConfig::new("0".into(), [1; 32])),
            request: RequestId(0),
            lines: Vec::new(),
            now,
        };
        open.drain();
        let line = turnwire::frame::Split {
            place: turnwire::frame::Place { line: 1, offset: 0 },
            what: turnwire::frame::SplitKind::Line(br#"{"cmd":"user","text":"go"}"#),
        };
        open.server.handle_line(line, now);
        open.drain();
        open.decoder.head(
            &ReplyHead {
                status: 200,
                ..ReplyHead::default()
            },
            now,
        );
        open
    }

    /// An open reply whose buffers have grown to their size.
    fn warm(bytes: &[u8]) -> Self {
        let mut open = Self::new();
        open.feed(bytes);
        open.feed(bytes);
        open
    }

    fn feed(&mut self, bytes: &[u8]) -> usize {
        let mut written = 0;
        for chunk in bytes.chunks(CHUNK) {
            let (session, request, now) = (&mut self.session, self.request, self.now);
            self.decoder.bytes(chunk, now, &mut |chunk| {
                let _ = session.handle(Input::Model { request, chunk }, now);
            });
            self.drain();
            written += self.lines.len();
            self.lines.clear();
        }
        written
    }

    fn drain(&mut self) {
        loop {
            match self.session.poll_output() {
                Some(Output::Event(event)) => self.server.handle_event(event),
                Some(Output::Delta(delta)) => self.server.handle_delta(&delta),
                Some(Output::Effect {
                    effect: Effect::StartModel(request),
                    ..
                }) => self.request = request,
                Some(Output::Effect { .. }) => {}
                None => match self.server.poll_output(&mut self.lines) {
                    Some(turnwire::protocol::ServerOutput::Call(call)) => {
                        let _ = self.session.handle(Input::Call(call), self.now);
                    }
                    Some(_) => {}
                    None => return,
                },
            }
        }
    }
}

fn info() -> Box<SessionInfo> {
    Box::new(SessionInfo {
        session: "0b9f1c52-6a3e-4d8f-9c71-2e5a7b8c9d10".into(),
        name: None,
        file: None,
        generation: "1".into(),
        root: Some("/project".into()),
        cwd: "/project".into(),
        product: "turnwire".into(),
        continued: false,
        history: Vec::new(),
        summarised: Vec::new(),
        model: ModelRef {
            provider: None,
            model: "m-1".into(),
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
    })
}

/// Provider bytes to openmax lines, by the four machines.
#[divan::bench]
fn chunk_to_line_ours(bencher: Bencher<'_, '_>) {
    let bytes = stream();
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .counter(ItemsCount::new(TOKENS))
        .with_inputs(|| Open::warm(&bytes))
        .bench_refs(|open| open.feed(&bytes));
}

/// The same with eventsource-stream, serde_json into owned types, and an owned, internally tagged event written by serde_json.
#[divan::bench]
fn chunk_to_line_usual(bencher: Bencher<'_, '_>) {
    let bytes = stream();
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .counter(ItemsCount::new(TOKENS))
        .bench(|| usual::feed(&bytes, CHUNK));
}

/// The provider's decoder alone: bytes to chunks.
#[divan::bench]
fn provider_decode_ours(bencher: Bencher<'_, '_>) {
    let bytes = stream();
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .counter(ItemsCount::new(TOKENS))
        .bench(|| {
            let mut decoder = ReplyDecoder::new(Api::OpenAi, ReplyLimits::default());
            decoder.head(
                &ReplyHead {
                    status: 200,
                    ..ReplyHead::default()
                },
                Now::default(),
            );
            let mut text = 0;
            for chunk in bytes.chunks(CHUNK) {
                decoder.bytes(chunk, Now::default(), &mut |chunk| {
                    if let turnwire::vocab::ModelChunk::Text(piece) = chunk {
                        text += piece.len();
                    }
                });
            }
            text
        });
}

/// The provider's decoder alone, the usual way.
#[divan::bench]
fn provider_decode_usual(bencher: Bencher<'_, '_>) {
    let bytes = stream();
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .counter(ItemsCount::new(TOKENS))
        .bench(|| usual::decode(&bytes, CHUNK));
}
