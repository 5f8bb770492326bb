//! The usual ways to read both directions.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use turnwire_benches::usual::Line as Event;

/// A line of either side, as one writes it first: two owned, internally tagged enums.
#[derive(Debug)]
pub enum Line {
    Host(Command),
    Agent(Box<Event>),
}

/// A line of the host.
#[derive(Debug, Deserialize)]
#[serde(tag = "cmd", rename_all = "snake_case")]
pub enum Command {
    User { text: String },
    Approve { approval_id: String, approved: bool },
    ApprovalMode { mode: String },
    Reload,
    Cancel,
    Quit,
}

impl Line {
    /// A number that needs the line read.
    pub fn weight(&self) -> u64 {
        match self {
            Line::Host(Command::User { text } | Command::ApprovalMode { mode: text }) => {
                text.len() as u64
            }
            Line::Host(Command::Approve {
                approval_id,
                approved,
            }) => approval_id.len() as u64 + u64::from(*approved),
            Line::Host(Command::Reload | Command::Cancel | Command::Quit) => 1,
            Line::Agent(event) => event.weight(),
        }
    }
}

/// Whose line it is: by its start, which spares the usual way a parse. Ours may not rely on that.
fn is_host(line: &[u8]) -> bool {
    line.starts_with(b"{\"cmd\"")
}

/// Reads the lines into the owned, internally tagged enums.
pub fn tagged(lines: &[&[u8]], weight: impl Fn(&Line) -> u64) -> u64 {
    let read = |line: &[u8]| {
        if is_host(line) {
            serde_json::from_slice(line).map(Line::Host)
        } else {
            serde_json::from_slice(line).map(|event| Line::Agent(Box::new(event)))
        }
    };
    let lines = lines.iter().filter_map(|line| read(line).ok());
    lines.map(|line| weight(&line)).sum()
}

/// The tag alone.
#[derive(Deserialize)]
struct Tag<'a> {
    #[serde(borrow, alias = "cmd", rename = "type")]
    tag: Cow<'a, str>,
}

/// Makes the types of the lines, which borrow from them, and an enum with its reader.
macro_rules! lines {
    ($($tag:literal => $name:ident { $($text:ident)* } { $($field:ident: $ty:ty),* })*) => {
        $(
            #[derive(Debug, Deserialize)]
            #[allow(dead_code, reason = "reading them is the work")]
            pub struct $name<'a> {
                $(#[serde(borrow)] $text: Cow<'a, str>,)*
                $($field: $ty,)*
            }
        )*

        /// A line as somebody reads it who knows what an internal tag costs: the tag first, then the one type.
        #[derive(Debug)]
        #[allow(dead_code, reason = "reading them is the work")]
        pub enum Borrowed<'a> {
            $($name($name<'a>),)*
            Command(String),
        }

        impl<'a> Borrowed<'a> {
            fn read(line: &'a [u8]) -> Option<Self> {
                let tag: Tag<'a> = serde_json::from_slice(line).ok()?;
                match &*tag.tag {
                    $($tag => serde_json::from_slice(line).ok().map(Borrowed::$name),)*
                    "reload" | "cancel" | "quit" => Some(Borrowed::Command(tag.tag.into_owned())),
                    _ => None,
                }
            }
        }
    };
}

lines! {
    "user" => User { text } {}
    "approve" => Approve { approval_id } { approved: bool }
    "hello" => Hello { proto session_id version project } { protocol_version: u64, continued: bool }
    "token" => Token { session_id text } {}
    "thinking" => Thinking { session_id text } {}
    "message_done" => MessageDone { session_id text } {}
    "budget" => Budget { session_id } { used_tokens: u64, context_tokens: u64 }
    "usage" => Usage { session_id } { prompt_tokens: u64, completion_tokens: u64, cached_tokens: Option<u64> }
    "tool_start" => ToolStart { session_id call_id name } { args: Value }
    "tool_end" => ToolEnd { session_id call_id output } { ok: bool }
    "approval_request" => ApprovalRequest {
        session_id approval_id name summary detail reason source_path source_sha
    } {}
    "approval_settled" => ApprovalSettled { session_id approval_id outcome } {}
    "done" => Done { session_id stop_reason } {}
    "error" => Error { session_id message } {}
}

/// Reads the lines by their tags.
pub fn lookup(lines: &[&[u8]]) -> u64 {
    let lines = lines.iter().filter_map(|line| Borrowed::read(line));
    lines
        .map(|line| {
            std::hint::black_box(line);
            1
        })
        .sum()
}
