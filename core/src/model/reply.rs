//! Bytes of a reply to [`ModelChunk`]s, whatever the API and however they are cut (L1).

use alloc::{format, string::String, vec::Vec};

use super::failure::{clip, retry_after_us, status_text};
use super::piece::{Channel, Pieces, REPLACEMENT};
use super::wire::{ErrorWire, Said, elements};
use super::{Api, anthropic, openai};
use crate::frame::{BadUtf8, SseDecoder, SseFault, SseFaultKind, SseLimits};
use crate::json::{self, Kind, Raw};
use crate::vocab::{Failure, FailureKind, ModelChunk, Now};

/// The head of an HTTP response, as far as it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyHead<'a> {
    /// The status code.
    pub status: u16,
    /// The reason phrase; empty in HTTP/2, where the usual one is used instead.
    pub reason: &'a str,
    /// The `Content-Type` header. Only told: the body's first byte says what it is.
    pub content_type: Option<&'a str>,
    /// The `Retry-After` header.
    pub retry_after: Option<&'a str>,
}

/// How much of a reply is taken. Crossing a limit ends the reply as one that was cut, and not retryable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Bytes of a whole reply.
    pub reply_bytes: usize,
    /// Bytes of the data of one event.
    pub event_bytes: usize,
    /// Tool calls in one reply.
    pub calls: usize,
    /// Bytes that are kept, and read, of the body of an error status.
    pub error_body_bytes: usize,
}

impl Default for ReplyLimits {
    /// 16 MiB a reply and an event, 128 calls, 64 KiB of an error's body.
    fn default() -> Self {
        Self {
            reply_bytes: 16 << 20,
            event_bytes: 16 << 20,
            calls: 128,
            error_body_bytes: 64 << 10,
        }
    }
}

/// Decodes one reply.
///
/// Give it the head, then the bytes, then [`end`](Self::end) or [`broken`](Self::broken). Of
/// `End` and `Failed` it gives exactly one, last. The same bytes give the same chunks for every cut,
/// but for where text is divided (L1).
#[derive(Debug)]
pub struct ReplyDecoder {
    dialect: Dialect,
    limits: ReplyLimits,
    mode: Mode,
    status: u16,
    reason: String,
    retry_after_us: Option<u64>,
    taken: usize,
    settled: bool,
    sse: SseDecoder,
    /// The body, where it is read as a whole.
    body: Vec<u8>,
    pieces: Pieces,
}

#[derive(Debug)]
enum Dialect {
    OpenAi(openai::reply::Reply),
    Anthropic(anthropic::reply::Reply),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Nothing but white space came. The first byte decides between a stream and a plain reply: no line of
    /// a stream begins as JSON does, and what servers say in `Content-Type` is often wrong.
    Undecided,
    /// Server-sent events.
    Stream,
    /// One JSON value.
    Plain,
    /// The body of an error status.
    Refused,
}

/// What follows from one event.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The reply goes on.
    More,
    /// It isn't a chunk of this API: noise, skipped.
    Noise,
    /// The provider says that it is over.
    End,
    /// It failed.
    Failed(Failure),
}

/// Where chunks go.
pub(super) struct Emit<'e> {
    sink: &'e mut dyn FnMut(ModelChunk<'_>),
    /// Chunks given so far.
    pub given: u64,
}

impl Emit<'_> {
    pub(super) fn give(&mut self, chunk: ModelChunk<'_>) {
        self.given += 1;
        (self.sink)(chunk);
    }

    /// Gives text on its channel; empty text is nothing.
    pub(super) fn give_text(&mut self, channel: Channel, text: &str) {
        if !text.is_empty() {
            self.give(match channel {
                Channel::Text => ModelChunk::Text(text),
                Channel::Thinking => ModelChunk::Thinking(text),
                Channel::Args(index) => ModelChunk::CallArgs { index, text },
            });
        }
    }

    /// Gives what a waiting half pair owes, unless the next piece may still join it.
    pub(super) fn flush(&mut self, pieces: &mut Pieces, next: Option<Channel>) {
        if let Some(owner) = pieces.flush(next) {
            self.give_text(owner, REPLACEMENT);
        }
    }

    /// Gives the text of a JSON string, which comes with its quotes.
    pub(super) fn say(&mut self, pieces: &mut Pieces, channel: Channel, quoted: &str) {
        self.flush(pieces, Some(channel));
        self.give_text(channel, pieces.text(channel, quoted));
    }
}

impl ReplyDecoder {
    /// A decoder for one reply.
    pub fn new(api: Api, limits: ReplyLimits) -> Self {
        let dialect = match api {
            Api::OpenAi => Dialect::OpenAi(openai::reply::Reply::new(limits.calls)),
            Api::Anthropic => Dialect::Anthropic(anthropic::reply::Reply::new(limits.calls)),
        };
        Self {
            dialect,
            limits,
            mode: Mode::Undecided,
            status: 200,
            reason: String::new(),
            retry_after_us: None,
            taken: 0,
            settled: false,
            sse: SseDecoder::new(SseLimits {
                max_event_bytes: limits.event_bytes,
                bad_utf8: BadUtf8::Replace,
            }),
            body: Vec::new(),
            pieces: Pieces::default(),
        }
    }

    /// The head of the response, before any of its bytes.
    pub fn head(&mut self, head: &ReplyHead<'_>, now: Now) {
        self.status = head.status;
        self.reason.clear();
        self.reason.push_str(head.reason);
        self.retry_after_us = head
            .retry_after
            .and_then(|header| retry_after_us(header, now));
        if !(200..300).contains(&head.status) {
            self.mode = Mode::Refused;
        }
    }

    /// The next bytes of the body. After [`is_settled`](Self::is_settled) they change nothing.
    pub fn bytes(&mut self, chunk: &[u8], _now: Now, sink: &mut dyn FnMut(ModelChunk<'_>)) {
        if self.settled {
            return;
        }
        let emit = &mut Emit { sink, given: 0 };
        let mut chunk = chunk;
        if self.mode == Mode::Undecided {
            chunk = chunk.trim_ascii_start();
            match chunk.first() {
                None => {}
                Some(b'{' | b'[') => self.mode = Mode::Plain,
                Some(_) => self.mode = Mode::Stream,
            }
        }
        let room = match self.mode {
            Mode::Refused => self.limits.error_body_bytes,
            Mode::Undecided | Mode::Stream | Mode::Plain => self.limits.reply_bytes,
        };
        let room = room.saturating_sub(self.taken);
        let over = chunk.len() > room;
        let mut taken = chunk.get(..room).unwrap_or(chunk);
        self.taken += taken.len();
        match self.mode {
            Mode::Stream => self.stream(&mut taken, emit),
            Mode::Undecided | Mode::Plain | Mode::Refused => self.body.extend_from_slice(taken),
        }
        if over && !self.settled {
            match self.mode {
                Mode::Refused => self.refused(emit),
                Mode::Undecided | Mode::Stream | Mode::Plain => {
                    self.over_limit("bytes", self.limits.reply_bytes, emit)
                }
            }
        }
    }

    /// The body ended as it should.
    pub fn end(&mut self, _now: Now, sink: &mut dyn FnMut(ModelChunk<'_>)) {
        self.close(None, &mut Emit { sink, given: 0 });
    }

    /// The transport broke after the head; `why` is its own text. What came counts.
    pub fn broken(&mut self, why: &str, _now: Now, sink: &mut dyn FnMut(ModelChunk<'_>)) {
        self.close(Some(why), &mut Emit { sink, given: 0 });
    }

    /// Whether `End` or `Failed` was given: stop reading, nothing more comes out.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    fn close(&mut self, broken: Option<&str>, emit: &mut Emit<'_>) {
        if self.settled {
            return;
        }
        match self.mode {
            Mode::Stream => {
                if let Some(event) = self.sse.finish() {
                    let verdict = event_verdict(
                        &mut self.dialect,
                        &mut self.pieces,
                        event,
                        &self.limits,
                        emit,
                    );
                    self.follow(verdict, emit);
                }
            }
            Mode::Plain => {
                let body = core::mem::take(&mut self.body);
                let verdict = self.plain(&body, emit);
                self.follow(verdict, emit);
            }
            Mode::Refused => self.refused(emit),
            Mode::Undecided => {}
        }
        if self.settled {
            return;
        }
        let verdict = match broken {
            Some(why) => Verdict::Failed(cut(why, true)),
            None => Verdict::End,
        };
        self.follow(verdict, emit);
    }

    fn stream(&mut self, chunk: &mut &[u8], emit: &mut Emit<'_>) {
        while let Some(event) = self.sse.next(chunk) {
            match event_verdict(
                &mut self.dialect,
                &mut self.pieces,
                event,
                &self.limits,
                emit,
            ) {
                Verdict::More | Verdict::Noise => {}
                verdict @ (Verdict::End | Verdict::Failed(_)) => return self.follow(verdict, emit),
            }
        }
    }

    /// A reply that isn't streamed; if it isn't one JSON value, each line may still be a chunk.
    fn plain(&mut self, body: &[u8], emit: &mut Emit<'_>) -> Verdict {
        let Ok(text) = core::str::from_utf8(body) else {
            return Verdict::Noise;
        };
        if let Ok(value) = json::scan_value(text.trim().as_bytes(), &super::RULES) {
            return match self.dialect.plain(value, &mut self.pieces, emit) {
                Verdict::Noise => Verdict::Failed(self.no_reply(text)),
                verdict @ (Verdict::More | Verdict::End | Verdict::Failed(_)) => verdict,
            };
        }
        for line in text.lines() {
            let line = line.trim();
            match self.dialect.event(
                "",
                line.strip_prefix("data:").unwrap_or(line).trim(),
                &mut self.pieces,
                emit,
            ) {
                Verdict::More | Verdict::Noise => {}
                verdict @ (Verdict::End | Verdict::Failed(_)) => return verdict,
            }
        }
        Verdict::More
    }

    /// A good status with JSON that is no reply of this API: the address is wrong, or something stands between.
    fn no_reply(&self, text: &str) -> Failure {
        Failure {
            kind: FailureKind::Server,
            status: Some(self.status),
            retryable: false,
            text: status_text(self.status, &self.reason, text).into(),
        }
    }

    fn refused(&mut self, emit: &mut Emit<'_>) {
        let body = core::mem::take(&mut self.body);
        let text = String::from_utf8_lossy(&body);
        let said = error_in(&text);
        let words = match said.message() {
            "" => &*text,
            message => message,
        };
        let failure =
            said.facts(Some(self.status))
                .of_status(status_text(self.status, &self.reason, words));
        self.follow(Verdict::Failed(failure), emit);
    }

    fn over_limit(&mut self, what: &str, limit: usize, emit: &mut Emit<'_>) {
        let verdict = if self.dialect.is_finished() {
            Verdict::End
        } else {
            Verdict::Failed(over_limit(what, limit))
        };
        self.follow(verdict, emit);
    }

    /// Settles the reply if the verdict says so.
    fn follow(&mut self, verdict: Verdict, emit: &mut Emit<'_>) {
        match verdict {
            Verdict::More | Verdict::Noise => {}
            Verdict::End => {
                emit.flush(&mut self.pieces, None);
                self.dialect.close(emit);
                self.settled = true;
                emit.give(ModelChunk::End);
            }
            Verdict::Failed(failure) => {
                self.settled = true;
                emit.give(ModelChunk::Failed {
                    failure,
                    reached: true,
                    retry_after_us: self.retry_after_us,
                });
            }
        }
    }
}

impl Dialect {
    fn event(
        &mut self,
        name: &str,
        data: &str,
        pieces: &mut Pieces,
        emit: &mut Emit<'_>,
    ) -> Verdict {
        match self {
            Dialect::OpenAi(reply) => reply.event(data, pieces, emit),
            Dialect::Anthropic(reply) => reply.event(name, data, pieces, emit),
        }
    }

    fn plain(&mut self, value: Raw<'_>, pieces: &mut Pieces, emit: &mut Emit<'_>) -> Verdict {
        match self {
            Dialect::OpenAi(reply) => reply.plain(value, pieces, emit),
            Dialect::Anthropic(reply) => reply.plain(value, pieces, emit),
        }
    }

    /// The stream said that it is done.
    fn done(&mut self, pieces: &mut Pieces, emit: &mut Emit<'_>) {
        match self {
            Dialect::OpenAi(reply) => reply.done(pieces, emit),
            Dialect::Anthropic(reply) => reply.done(pieces, emit),
        }
    }

    /// Ends calls that came after the finish.
    fn close(&mut self, emit: &mut Emit<'_>) {
        match self {
            Dialect::OpenAi(reply) => reply.close(emit),
            Dialect::Anthropic(reply) => reply.close(emit),
        }
    }

    fn is_finished(&self) -> bool {
        match self {
            Dialect::OpenAi(reply) => reply.is_finished(),
            Dialect::Anthropic(reply) => reply.is_finished(),
        }
    }
}

fn event_verdict(
    dialect: &mut Dialect,
    pieces: &mut Pieces,
    event: Result<crate::frame::SseEvent<'_>, SseFault>,
    limits: &ReplyLimits,
    emit: &mut Emit<'_>,
) -> Verdict {
    match event {
        Ok(event) if event.data.trim() == "[DONE]" => {
            dialect.done(pieces, emit);
            Verdict::End
        }
        Ok(event) => dialect.event(event.event, event.data, pieces, emit),
        Err(SseFault {
            kind: SseFaultKind::TooLarge { .. },
            ..
        }) if dialect.is_finished() => Verdict::End,
        Err(SseFault {
            kind: SseFaultKind::TooLarge { .. },
            ..
        }) => Verdict::Failed(over_limit("bytes in one event", limits.event_bytes)),
        Err(SseFault {
            kind: SseFaultKind::NotUtf8,
            ..
        }) => Verdict::Noise,
    }
}

/// What the body of an error status says about the error. Some servers put it into a list, or into the
/// frame of a stream.
fn error_in(text: &str) -> Said {
    let text = text.trim();
    let text = text.strip_prefix("data:").unwrap_or(text).trim();
    let Ok(value) = json::scan_value(text.as_bytes(), &super::RULES) else {
        return Said::default();
    };
    let value = match value.kind() {
        Kind::Array => elements(value).first().copied().unwrap_or(value),
        Kind::Object | Kind::String | Kind::Number | Kind::Bool | Kind::Null => value,
    };
    let wire: ErrorWire<'_> = value.decode().unwrap_or_default();
    match wire.error.and_then(Said::of_error) {
        Some(said) => said,
        // Without an error member the raw body is shown, but its members may still tell what it is.
        None => Said::of_members(&ErrorWire {
            message: None,
            ..wire
        }),
    }
}

/// The failure of a reply in which the provider reported an error.
pub(super) fn reported(said: &Said) -> Verdict {
    let mut text = format!("provider error in the stream: {}", clip(said.words()));
    if !said.name().is_empty() && !said.words().contains(said.name()) {
        text.push_str(&format!(" ({})", clip(said.name())));
    }
    Verdict::Failed(said.facts(None).in_stream(text))
}

/// A reply that was cut after its head.
fn cut(why: &str, retryable: bool) -> Failure {
    Failure {
        kind: FailureKind::StreamCut,
        status: None,
        retryable,
        text: clip(why).into(),
    }
}

/// A reply that crossed a limit of ours: cut, and the same request would cross it again.
pub(super) fn over_limit(what: &str, limit: usize) -> Failure {
    cut(
        &format!("the reply exceeded the client's limit of {limit} {what}"),
        false,
    )
}

/// The failure of a request that never reached its endpoint: no address, no connection, no TLS.
pub fn unreached(why: &str) -> ModelChunk<'static> {
    transport(why, false)
}

/// The failure of a request whose connection was lost before the response's head.
pub fn lost(why: &str) -> ModelChunk<'static> {
    transport(why, true)
}

/// The failure of a request that couldn't be made ready: trying it again changes nothing.
pub fn unsent(why: &str) -> ModelChunk<'static> {
    let failure = Failure {
        kind: FailureKind::Internal,
        status: None,
        retryable: false,
        text: format!("request not sent: {}", clip(why)).into(),
    };
    ModelChunk::Failed {
        failure,
        reached: false,
        retry_after_us: None,
    }
}

fn transport(why: &str, reached: bool) -> ModelChunk<'static> {
    let text = format!("request failed: {}", clip(why)).into();
    let failure = Failure {
        kind: FailureKind::Transport,
        status: None,
        retryable: true,
        text,
    };
    ModelChunk::Failed {
        failure,
        reached,
        retry_after_us: None,
    }
}
