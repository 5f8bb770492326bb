//! A reply streamed over omp: from the model's chunks to the host's lines.
//!
//! By contract each update repeats the whole reply, twice, so that the bytes of a reply grow with the square of its
//! length. What may not grow with it is the work for each byte: a race against a copy of the same bytes, and against
//! an encoder that writes each update from the message. And where a host asked for updates that carry only what is
//! new, a piece of a long reply must cost what a piece of a short one does.

mod naive;

use std::hint::black_box;
use std::process::ExitCode;

use turnwire::frame::{Place, Split, SplitKind};
use turnwire::protocol::omp::{Omp, ServerConfig, preset};
use turnwire::protocol::{Credentials, Server, ServerOutput};
use turnwire::session::config::ModelConfig;
use turnwire::session::{Session, SessionConfig};
use turnwire::vocab::{
    Agent as _, ApprovalMode, Briefing, Drain, Effect, Input, Interrupting, ModelChunk, ModelRef,
    Now, Output, RequestId, SessionInfo, Settings,
};
use turnwire_benches::race::{Race, Row};

const KIB: usize = 1024;
/// Bytes of one piece of a reply.
const PIECE: usize = 20;
/// How many times longer the long reply is.
const LONGER: usize = 16;
/// What a program keeps out of its lines.
const KEY: &str = "sk-live-0123456789abcdef0123456789abcdef";

fn main() -> ExitCode {
    let mut race = Race::from_arguments();
    flat(&mut race);
    snapshots(&mut race);
    if race.finish() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Pieces that hold an escape now and then, as text does.
fn pieces(bytes: usize) -> Vec<&'static str> {
    const ALL: [&str; 4] = [
        " and then the file w",
        "as read\nas it stood,",
        " \"so\" it says, of al",
        "l the lines there ar",
    ];
    let pieces = ALL.iter().cycle().take(bytes / PIECE).copied();
    pieces
        .inspect(|piece| assert_eq!(piece.len(), PIECE))
        .collect()
}

/// A long reply against the same number of pieces in short ones.
fn flat(race: &mut Race) {
    let short = pieces(64 * KIB);
    let long = pieces(LONGER * 64 * KIB);
    let row = Row {
        name: "delta/1MiB",
        usual: "the same in replies of 64 KiB",
        bytes: long.len() * PIECE,
        items: long.len(),
        // Its buffers are new memory, which a short reply hardly notices.
        aim: Some(0.7),
    };
    race.run(
        row,
        || Open::new(true, false).feed(&long),
        || {
            (0..LONGER)
                .map(|_| Open::new(true, false).feed(&short))
                .sum()
        },
    );
}

/// Updates with whole snapshots.
fn snapshots(race: &mut Race) {
    let pieces = pieces(64 * KIB);
    let mut lengths = Vec::new();
    let bytes = Open::new(false, false).feed_each(&pieces, |line| lengths.push(line));
    let longest = lengths.iter().copied().max().unwrap_or_default();
    let source = vec![b'x'; longest];
    let mut target = Vec::new();
    let mut copy = || {
        let mut sum = 0;
        for length in &lengths {
            target.clear();
            target.extend_from_slice(source.get(..*length).unwrap_or_default());
            sum += black_box(&target).len() as u64;
        }
        sum
    };
    let row = Row {
        name: "snapshot/memcpy",
        usual: "a copy of the same bytes",
        bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        items: pieces.len(),
        // At most one and a half times the copy.
        aim: Some(1.0 / 1.5),
    };
    race.run(row, || Open::new(false, false).feed(&pieces), &mut copy);
    let row = Row {
        name: "snapshot/memcpy/hiding",
        usual: "the same, ours with a credential to keep out",
        aim: None,
        ..row
    };
    race.run(row, || Open::new(false, true).feed(&pieces), &mut copy);
    let row = Row {
        name: "snapshot/naive",
        usual: "serde_json of the whole message, twice an update",
        aim: Some(2.0),
        ..row
    };
    race.run(
        row,
        || Open::new(false, false).feed(&pieces),
        || naive::feed(&pieces),
    );
}

/// A session in the middle of a reply.
struct Open {
    session: Session,
    server: Server<Omp>,
    request: RequestId,
    lines: Vec<u8>,
}

impl Open {
    fn new(deltas: bool, hiding: bool) -> Self {
        let mut config = SessionConfig::new(ModelConfig::new("m-1", 1 << 24));
        preset(&mut config);
        let mut open = Open {
            session: Session::new(config, info(), Now::default()),
            server: Server::new(ServerConfig::new([1; 32])),
            request: RequestId(0),
            lines: Vec::new(),
        };
        if hiding && let Ok(credentials) = Credentials::new([KEY]) {
            assert_eq!(open.server.hide(credentials), Ok(()));
        }
        open.drain();
        if deltas {
            open.line(
                r#"{"id":"f","type":"set_event_filter","events":null,"messageUpdates":"delta"}"#,
            );
        }
        open.line(r#"{"id":"p","type":"prompt","message":"go"}"#);
        assert_ne!(open.request, RequestId(0), "no request was made");
        open
    }

    fn line(&mut self, line: &str) {
        let line = Split {
            place: Place { line: 1, offset: 0 },
            what: SplitKind::Line(line.as_bytes()),
        };
        self.server.handle_line(line, Now::default());
        self.drain();
    }

    /// The bytes that all pieces gave.
    fn feed(&mut self, pieces: &[&str]) -> u64 {
        self.feed_each(pieces, |_| {})
    }

    fn feed_each(&mut self, pieces: &[&str], mut each: impl FnMut(usize)) -> u64 {
        let mut sum = 0;
        for piece in pieces {
            self.lines.clear();
            let input = Input::Model {
                request: self.request,
                chunk: ModelChunk::Text(piece),
            };
            let _ = self.session.handle(input, Now::default());
            self.drain();
            each(self.lines.len());
            sum += black_box(&self.lines).len() as u64;
        }
        sum
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
                    Some(ServerOutput::Call(call)) => {
                        let _ = self.session.handle(Input::Call(call), Now::default());
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
        session: "0199a5c2-6a3e-7d8f-9c71-2e5a7b8c9d10".into(),
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
            steer_drain: Drain::One,
            follow_up_drain: Drain::One,
            interrupting: Interrupting::Immediate,
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
