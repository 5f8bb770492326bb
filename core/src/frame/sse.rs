//! Server-sent events, as the WHATWG HTML standard defines their stream
//! (section "Server-sent events"), with two deliberate differences: an event
//! that no blank line ends is still given at the end of the stream, and bytes
//! that aren't UTF-8 are a fault unless the reader asks for U+FFFD.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::{fmt, mem, str};

/// The limits of a reader of server-sent events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseLimits {
    /// The most bytes that the data of one event may have, its lines joined.
    /// Other fields may be as long. Comments have no limit and take no memory.
    pub max_event_bytes: usize,
    /// What becomes of bytes that aren't UTF-8.
    pub bad_utf8: BadUtf8,
}

impl Default for SseLimits {
    /// 16 MiB, and UTF-8 only.
    fn default() -> Self {
        Self {
            max_event_bytes: 16 << 20,
            bad_utf8: BadUtf8::Refuse,
        }
    }
}

/// What becomes of bytes in a field that aren't UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadUtf8 {
    /// The event is a fault.
    Refuse,
    /// They become U+FFFD, as a browser does it.
    Replace,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The event's type; empty if none was given (which means `message`).
    pub event: &'a str,
    /// Its data, the lines joined by LF.
    pub data: &'a str,
    /// The stream's last event id: of this event or of one before it.
    pub id: Option<&'a str>,
    /// The reconnection time in milliseconds that the stream asked for last.
    pub retry: Option<u64>,
}

/// An event that can't be given. Reading goes on with the next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseFault {
    /// The offset of the event's first field from the start of the stream, in
    /// bytes.
    pub offset: u64,
    /// What is wrong with it.
    pub kind: SseFaultKind,
}

/// What is wrong with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseFaultKind {
    /// It is larger than [`SseLimits::max_event_bytes`].
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// A field isn't UTF-8, under [`BadUtf8::Refuse`].
    NotUtf8,
}

impl fmt::Display for SseFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            SseFaultKind::TooLarge { limit } => {
                write!(
                    f,
                    "server-sent event at byte {} exceeds {limit} bytes",
                    self.offset
                )
            }
            SseFaultKind::NotUtf8 => write!(
                f,
                "server-sent event at byte {} is not valid UTF-8",
                self.offset
            ),
        }
    }
}

impl core::error::Error for SseFault {}

/// Reads server-sent events from chunks of bytes. Lines end with LF, CR or
/// CR LF; a byte order mark at the start is skipped.
///
/// ```
/// use turnwire::frame::{SseDecoder, SseLimits};
///
/// let mut decoder = SseDecoder::new(SseLimits::default());
/// let mut chunk = &b": hello\n\nevent: delta\ndata: {\"n\":1}\n\ndata: [DONE]"[..];
/// let mut seen = Vec::new();
/// while let Some(event) = decoder.next(&mut chunk) {
///     let event = event.unwrap();
///     seen.push((event.event.to_owned(), event.data.to_owned()));
/// }
/// let last = decoder.finish().unwrap().unwrap();
/// assert_eq!(seen, [("delta".to_owned(), "{\"n\":1}".to_owned())]);
/// assert_eq!(last.data, "[DONE]");
/// ```
///
/// An event that lies whole in one chunk and has one data line is lent from
/// the chunk. Memory stays within a small multiple of the limit, whatever
/// comes in.
#[derive(Clone, Debug)]
pub struct SseDecoder {
    limits: SseLimits,
    /// Bytes taken so far.
    offset: u64,
    /// How much of a byte order mark has been seen; 3 once that is settled.
    mark: usize,
    /// A CR ended the last line; an LF that follows belongs to it.
    after_cr: bool,
    /// The start of the current line, from earlier chunks.
    line: Vec<u8>,
    /// The rest of the current line is thrown away.
    skip_line: bool,
    /// A fault was given for the current event; its other lines are ignored.
    skip_event: bool,
    /// The event was lent by the last call and is done with.
    lent: bool,
    ended: bool,
    event: Event,
    id: Option<String>,
    retry: Option<u64>,
}

/// The event that is being put together. The buffers are reused.
#[derive(Clone, Debug)]
struct Event {
    /// The offset of its first field.
    start: Option<u64>,
    name: String,
    data: String,
    /// A data line was seen, perhaps an empty one.
    has_data: bool,
}

/// The byte order mark.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// The longest known field name, with its colon and the space.
const FIELD: usize = "event: ".len();

impl SseDecoder {
    /// A decoder at the start of a stream.
    pub const fn new(limits: SseLimits) -> Self {
        Self {
            limits,
            offset: 0,
            mark: 0,
            after_cr: false,
            line: Vec::new(),
            skip_line: false,
            skip_event: false,
            lent: false,
            ended: false,
            event: Event {
                start: None,
                name: String::new(),
                data: String::new(),
                has_data: false,
            },
            id: None,
            retry: None,
        }
    }

    /// Takes the next event from `chunk` and moves `chunk` past it. `None`
    /// when the chunk is used up; what is left of it has been kept. Call until
    /// `None`, then again with the next chunk.
    pub fn next<'s, 'c: 's>(
        &'s mut self,
        chunk: &mut &'c [u8],
    ) -> Option<Result<SseEvent<'s>, SseFault>> {
        if self.ended {
            *chunk = &[];
            return None;
        }
        self.release();
        self.skip_mark(chunk);
        while !chunk.is_empty() {
            if mem::take(&mut self.after_cr) && chunk.first() == Some(&b'\n') {
                self.take(chunk, 1);
                continue;
            }
            if self.is_between_events()
                && let Some(whole) = whole_event(chunk, self.limits.max_event_bytes)
            {
                self.take(chunk, whole.length);
                self.after_cr = whole.open_cr;
                let (event, data) = (whole.event, whole.data);
                return Some(Ok(SseEvent {
                    event,
                    data,
                    id: self.id.as_deref(),
                    retry: self.retry,
                }));
            }
            match self.one_line(chunk) {
                Ok(false) => {}
                Ok(true) => return Some(Ok(self.lend())),
                Err(kind) => return Some(Err(self.give_up(kind))),
            }
        }
        None
    }

    /// The end of the stream: gives the last event if no blank line ended it.
    /// Afterwards nothing is read any more.
    pub fn finish(&mut self) -> Option<Result<SseEvent<'_>, SseFault>> {
        if self.ended {
            return None;
        }
        self.release();
        let mut done = Ok(false);
        if !self.skip_line && !self.line.is_empty() {
            let line = mem::take(&mut self.line);
            done = self.field(&line);
        }
        self.ended = true;
        match done {
            Err(kind) => Some(Err(self.give_up(kind))),
            Ok(_) if self.event.has_data && !self.skip_event => Some(Ok(self.lend())),
            Ok(_) => None,
        }
    }

    /// The stream's last event id.
    pub fn last_event_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The reconnection time in milliseconds that the stream asked for last.
    pub const fn retry_ms(&self) -> Option<u64> {
        self.retry
    }

    /// Whether nothing of a line or of an event is held.
    fn is_between_events(&self) -> bool {
        self.event.start.is_none() && self.line.is_empty() && !self.skip_line && !self.skip_event
    }

    /// Moves on by `length` bytes.
    fn take(&mut self, chunk: &mut &[u8], length: usize) {
        *chunk = chunk.get(length..).unwrap_or_default();
        self.offset += length as u64;
    }

    /// Skips a byte order mark at the start of the stream.
    fn skip_mark(&mut self, chunk: &mut &[u8]) {
        while let (Some(expected), Some(byte)) = (MARK.get(self.mark), chunk.first()) {
            if expected != byte {
                self.line
                    .extend_from_slice(MARK.get(..self.mark).unwrap_or_default());
                if self.mark > 0 {
                    self.event.start = Some(0);
                }
                self.mark = MARK.len();
                return;
            }
            self.mark += 1;
            self.take(chunk, 1);
        }
    }

    /// Takes one line, or the part of it that the chunk has. `true` when an
    /// event is complete.
    fn one_line(&mut self, chunk: &mut &[u8]) -> Result<bool, SseFaultKind> {
        let whole = *chunk;
        let Some(end) = memchr::memchr2(b'\n', b'\r', whole) else {
            let kept = self.keep(whole);
            self.take(chunk, whole.len());
            return kept.map(|()| false);
        };
        let line = whole.get(..end).unwrap_or_default();
        self.after_cr = whole.get(end) == Some(&b'\r');
        let done = if mem::take(&mut self.skip_line) {
            Ok(false)
        } else if self.line.is_empty() {
            self.line_end(line)
        } else {
            let kept = self.keep(line);
            let held = mem::take(&mut self.line);
            let skip = mem::take(&mut self.skip_line);
            let done = match kept {
                Ok(()) if skip => Ok(false),
                Ok(()) => self.line_end(&held),
                Err(kind) => Err(kind),
            };
            self.line = held;
            super::reset(&mut self.line);
            done
        };
        self.take(chunk, end + 1);
        done
    }

    /// Keeps a part of a line, unless it is one whose content means nothing.
    fn keep(&mut self, part: &[u8]) -> Result<(), SseFaultKind> {
        if self.skip_line {
            return Ok(());
        }
        let first = self.line.first().or(part.first());
        if first == Some(&b':') || (first.is_some() && self.skip_event) {
            self.skip_line = true;
            return Ok(());
        }
        if self.line.is_empty() {
            self.event.start.get_or_insert(self.offset);
        }
        let limit = self.limits.max_event_bytes;
        if self.line.len() + part.len() > limit.saturating_add(FIELD) {
            self.line = Vec::new();
            self.skip_line = true;
            return Err(SseFaultKind::TooLarge { limit });
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// A whole line. `true` when it completes an event.
    fn line_end(&mut self, line: &[u8]) -> Result<bool, SseFaultKind> {
        if !line.is_empty() {
            return self.field(line);
        }
        if self.event.has_data && !self.skip_event {
            return Ok(true);
        }
        self.skip_event = false;
        self.clear_event();
        Ok(false)
    }

    /// A line that isn't blank.
    fn field(&mut self, line: &[u8]) -> Result<bool, SseFaultKind> {
        if self.skip_event || line.first() == Some(&b':') {
            return Ok(false);
        }
        self.event.start.get_or_insert(self.offset);
        let limit = self.limits.max_event_bytes;
        if line.len() > limit.saturating_add(FIELD) {
            return Err(SseFaultKind::TooLarge { limit });
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = without_space(value.strip_prefix(b":").unwrap_or_default());
        match name {
            b"data" => {
                let text = self.text(value)?;
                let more = text.len() + usize::from(self.event.has_data);
                if self.event.data.len() + more > limit {
                    return Err(SseFaultKind::TooLarge { limit });
                }
                if mem::replace(&mut self.event.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(&text);
            }
            b"event" => {
                let text = self.text(value)?;
                self.event.name.clear();
                self.event.name.push_str(&text);
            }
            // An id with a NUL in it is ignored, says the standard.
            b"id" if !value.contains(&0) => self.id = Some(self.text(value)?.into_owned()),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let number = str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse().ok());
                self.retry = number.or(self.retry);
            }
            _ => {}
        }
        Ok(false)
    }

    fn text<'v>(&self, value: &'v [u8]) -> Result<Cow<'v, str>, SseFaultKind> {
        match (str::from_utf8(value), self.limits.bad_utf8) {
            (Ok(text), _) => Ok(Cow::Borrowed(text)),
            (Err(_), BadUtf8::Replace) => Ok(String::from_utf8_lossy(value)),
            (Err(_), BadUtf8::Refuse) => Err(SseFaultKind::NotUtf8),
        }
    }

    /// Reports the current event; what is left of it will be skipped.
    fn give_up(&mut self, kind: SseFaultKind) -> SseFault {
        let offset = self.event.start.unwrap_or(self.offset);
        self.clear_event();
        self.skip_event = true;
        SseFault { offset, kind }
    }

    /// Lends the event that is complete.
    fn lend(&mut self) -> SseEvent<'_> {
        self.lent = true;
        SseEvent {
            event: &self.event.name,
            data: &self.event.data,
            id: self.id.as_deref(),
            retry: self.retry,
        }
    }

    fn release(&mut self) {
        if mem::take(&mut self.lent) {
            self.clear_event();
        }
    }

    fn clear_event(&mut self) {
        let event = &mut self.event;
        event.start = None;
        event.has_data = false;
        for buffer in [&mut event.name, &mut event.data] {
            if buffer.capacity() > super::KEEP {
                *buffer = String::new();
            } else {
                buffer.clear();
            }
        }
    }
}

/// An event that lies whole in a chunk.
struct Whole<'c> {
    event: &'c str,
    data: &'c str,
    /// Its length, the blank line included.
    length: usize,
    /// It ends with a CR at the end of the chunk; an LF may follow.
    open_cr: bool,
}

/// Reads an event of one data line, and perhaps one of type, from the start of
/// a chunk. `None` for anything else, which the general path then reads; so
/// this looks at no byte twice more than once.
fn whole_event(chunk: &[u8], limit: usize) -> Option<Whole<'_>> {
    let mut event = "";
    let mut data = None;
    let mut at = 0;
    loop {
        let rest = chunk.get(at..)?;
        let end = match rest.first()? {
            b'\n' | b'\r' => 0,
            _ => memchr::memchr2(b'\n', b'\r', rest)?,
        };
        let (line, terminator) = rest.split_at(end);
        at += end + 1;
        let mut open_cr = false;
        if terminator.first() == Some(&b'\r') {
            match terminator.get(1) {
                Some(b'\n') => at += 1,
                Some(_) => {}
                None => open_cr = true,
            }
        }
        if line.is_empty() {
            return data.map(|data| Whole {
                event,
                data,
                length: at,
                open_cr,
            });
        }
        if line.len() > limit {
            return None;
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            if data.is_some() {
                return None;
            }
            data = Some(str::from_utf8(without_space(value)).ok()?);
        } else {
            let value = line.strip_prefix(b"event:")?;
            event = str::from_utf8(without_space(value)).ok()?;
        }
    }
}

/// Takes one space away from the start.
fn without_space(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}
