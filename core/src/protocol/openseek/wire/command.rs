//! The nine commands of a host, and what is said of a line that is none of them: texts that are part of the contract.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::content::{Content, Part};
use super::values::{Component, NonEmpty, SteerKind, lazy};
use super::{RULES, Shapes};
use crate::json::{self, JsonFault, JsonFaultKind, Kind, Members, Object, Raw, Str};
use crate::protocol::member::last;
use crate::protocol::wire::Hole;

/// One line of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// `prompt`: begins a turn, or waits for one.
    Prompt {
        /// What the person says.
        content: Content<'a>,
        /// The host's own name for it; left out if it has none (OS-04).
        submission_id: Option<Str<'a>>,
    },
    /// `steer`: says something into the running turn. It never begins one.
    Steer {
        /// How it reaches the model; a `prompt` where it is left out (OS-04).
        kind: SteerKind,
        /// What is said.
        content: Content<'a>,
        /// The host's own name for it. Newer programs only.
        submission_id: Option<Str<'a>>,
    },
    /// `compact`: sums the history up.
    Compact,
    /// `cancel`: ends the turn or the compaction that runs, or takes out the next prompt that waits.
    Cancel,
    /// `jobs_snapshot`: asks how all jobs stand.
    JobsSnapshot {
        /// For the answer.
        request_id: NonEmpty<'a>,
    },
    /// `job_stop`: stops a job.
    JobStop {
        /// For the answer.
        request_id: NonEmpty<'a>,
        /// The process that owns the job.
        generation: Component<'a>,
        /// The job.
        job_id: Component<'a>,
    },
    /// `goal` with the action `set`.
    GoalSet {
        /// The goal. A blank one can be read; an engine refuses it (OS-07).
        text: Str<'a>,
        /// Whether turns begin by themselves until it is met.
        auto: bool,
    },
    /// `goal` with the action `clear`.
    GoalClear,
    /// `approval`: answers an `approval_requested`.
    Approval {
        /// The question's.
        id: Str<'a>,
        /// Whether the call may run.
        allow: bool,
    },
}

/// A line of a host that isn't JSON, or isn't a command. Its text is what a `command_error` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It isn't JSON: the engine reads no more lines.
    NotJson(JsonFault),
    /// It is JSON, and no command: the engine goes on.
    NotACommand(CommandFault),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::NotJson(fault) => write!(f, "{COMMAND_STREAM}{fault}"),
            Unread::NotACommand(fault) => fault.fmt(f),
        }
    }
}

impl core::error::Error for Unread {}

/// How the text begins that ends the reading of commands.
pub const COMMAND_STREAM: &str = "command stream: ";

/// The text for a goal of white space alone: readable, and refused (OS-07).
pub const BLANK_GOAL: &str = "goal text must not be blank";

/// Why a JSON value isn't a command. Each has one text, which is part of the contract (OS-03).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandFault {
    /// No `text`, or not a string: of a `prompt` or a `steer`.
    Text,
    /// `submission_id` isn't a string.
    SubmissionId,
    /// The `kind` of a `steer` is another string: `notice` too (OS-08).
    UnknownSteerKind(String),
    /// The `kind` of a `steer` isn't a string.
    SteerKind,
    /// A member of `jobs_snapshot` or `job_stop` is missing, empty, unsafe, or of another type.
    Job,
    /// `goal` without a known `action`, or one that sets without a `text`.
    Goal,
    /// `approval` without an `allow` that is true or false.
    Allow,
    /// `approval` without an `id` that is a string.
    Id,
    /// Another `command`.
    Unknown(String),
    /// Not an object, or one without a `command` that is a string.
    NoCommand,
    /// Newer shapes: `content` or `images` are there, and make no sense.
    Content(&'static str),
}

impl CommandFault {
    /// Whether a `command_error` of this text is about a line that is no command.
    pub fn is_text(text: &str) -> bool {
        let fixed = [
            CommandFault::Text,
            CommandFault::SubmissionId,
            CommandFault::SteerKind,
            CommandFault::Job,
            CommandFault::Goal,
            CommandFault::Allow,
            CommandFault::Id,
            CommandFault::NoCommand,
        ];
        let open = [
            "unknown steer kind: ",
            "unknown command: ",
            "invalid content: ",
        ];
        open.iter().any(|start| text.starts_with(start))
            || text.starts_with(COMMAND_STREAM)
            || fixed.iter().any(|fault| fault.to_string() == text)
    }
}

impl fmt::Display for CommandFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CommandFault::Text => "expected a string \"text\" field",
            CommandFault::SubmissionId => "expected a string \"submission_id\" field",
            CommandFault::UnknownSteerKind(kind) => {
                return write!(f, "unknown steer kind: {kind}");
            }
            CommandFault::SteerKind => "expected a string \"kind\" field",
            CommandFault::Job => "invalid background job command",
            CommandFault::Goal => {
                "expected {\"action\": \"set\", \"text\": ...} or {\"action\": \"clear\"}"
            }
            CommandFault::Allow => "expected a boolean \"allow\" field",
            CommandFault::Id => "expected a string \"id\" field",
            CommandFault::Unknown(name) => return write!(f, "unknown command: {name}"),
            CommandFault::NoCommand => "expected a {\"command\": ...} object",
            CommandFault::Content(why) => return write!(f, "invalid content: {why}"),
        })
    }
}

impl core::error::Error for CommandFault {}

impl<'a> Command<'a> {
    /// The words that `command` can be.
    pub const NAMES: [&'static str; 8] = [
        "prompt",
        "steer",
        "compact",
        "cancel",
        "jobs_snapshot",
        "job_stop",
        "goal",
        "approval",
    ];

    /// Reads one line. `members` is only a buffer that is used again.
    ///
    /// # Errors
    /// [`Unread`]: what is to be said of a line that is no command.
    pub fn read(line: &'a [u8], shapes: Shapes, members: &mut Members) -> Result<Self, Unread> {
        match json::scan(line, &RULES, members) {
            Ok(object) => Command::of_object(&object, shapes).map_err(Unread::NotACommand),
            // Another value of JSON is a line that was read.
            Err(fault) => match (&fault.kind, json::scan_value(line, &RULES)) {
                (JsonFaultKind::NotAnObject, Ok(_)) => {
                    Err(Unread::NotACommand(CommandFault::NoCommand))
                }
                (_, _) => Err(Unread::NotJson(fault)),
            },
        }
    }

    /// Reads a line that was scanned. What is looked at first decides the text of a line with two faults.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_object(object: &Object<'_, 'a>, shapes: Shapes) -> Result<Self, CommandFault> {
        let value = |name| last(object, name);
        let text = |name| value(name).and_then(Raw::string).map(Str);
        let name = text("command").ok_or(CommandFault::NoCommand)?;
        match &*name {
            "prompt" => Ok(Command::Prompt {
                content: content(object, shapes)?,
                submission_id: submission_id(object)?,
            }),
            "steer" => Ok(Command::Steer {
                content: content(object, shapes)?,
                kind: match value("kind") {
                    None => SteerKind::Prompt,
                    Some(kind) => {
                        let kind = kind.string().ok_or(CommandFault::SteerKind)?;
                        SteerKind::of(&kind)
                            .ok_or_else(|| CommandFault::UnknownSteerKind(kind.into_owned()))?
                    }
                },
                submission_id: match shapes {
                    Shapes::Seed => None,
                    Shapes::Newer => submission_id(object)?,
                },
            }),
            "compact" => Ok(Command::Compact),
            "cancel" => Ok(Command::Cancel),
            "jobs_snapshot" => {
                let request_id = text("request_id").and_then(NonEmpty::new);
                let request_id = request_id.ok_or(CommandFault::Job)?;
                Ok(Command::JobsSnapshot { request_id })
            }
            "job_stop" => {
                let component = |name| text(name).and_then(Component::new);
                Ok(Command::JobStop {
                    request_id: text("request_id")
                        .and_then(NonEmpty::new)
                        .ok_or(CommandFault::Job)?,
                    generation: component("generation").ok_or(CommandFault::Job)?,
                    job_id: component("job_id").ok_or(CommandFault::Job)?,
                })
            }
            "goal" => match text("action").as_deref() {
                Some("set") => Ok(Command::GoalSet {
                    text: text("text").ok_or(CommandFault::Goal)?,
                    auto: value("auto").and_then(Raw::bool) == Some(true),
                }),
                Some("clear") => Ok(Command::GoalClear),
                Some(_) | None => Err(CommandFault::Goal),
            },
            "approval" => Ok(Command::Approval {
                id: text("id").ok_or(CommandFault::Id)?,
                allow: value("allow")
                    .and_then(Raw::bool)
                    .ok_or(CommandFault::Allow)?,
            }),
            _ => Err(CommandFault::Unknown(name.into_string())),
        }
    }

    /// What `command` says of it.
    pub const fn name(&self) -> &'static str {
        match self {
            Command::Prompt { .. } => "prompt",
            Command::Steer { .. } => "steer",
            Command::Compact => "compact",
            Command::Cancel => "cancel",
            Command::JobsSnapshot { .. } => "jobs_snapshot",
            Command::JobStop { .. } => "job_stop",
            Command::GoalSet { .. } | Command::GoalClear => "goal",
            Command::Approval { .. } => "approval",
        }
    }

    /// Appends the line, without its newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"command\":\"");
        out.extend_from_slice(self.name().as_bytes());
        out.push(b'"');
        match self {
            Command::Prompt {
                content,
                submission_id,
            } => {
                put_content(content, out);
                put_submission_id(submission_id.as_ref(), out);
            }
            Command::Steer {
                kind,
                content,
                submission_id,
            } => {
                put_member("kind", kind, out);
                put_content(content, out);
                put_submission_id(submission_id.as_ref(), out);
            }
            Command::Compact | Command::Cancel => {}
            Command::JobsSnapshot { request_id } => put_member("request_id", request_id, out),
            Command::JobStop {
                request_id,
                generation,
                job_id,
            } => {
                put_member("request_id", request_id, out);
                put_member("generation", generation, out);
                put_member("job_id", job_id, out);
            }
            Command::GoalSet { text, auto } => {
                out.extend_from_slice(b",\"action\":\"set\"");
                put_member("text", text, out);
                if *auto {
                    put_member("auto", auto, out);
                }
            }
            Command::GoalClear => out.extend_from_slice(b",\"action\":\"clear\""),
            Command::Approval { id, allow } => {
                put_member("id", id, out);
                put_member("allow", allow, out);
            }
        }
        out.push(b'}');
    }
}

/// What a `prompt` or a `steer` says.
fn content<'a>(object: &Object<'_, 'a>, shapes: Shapes) -> Result<Content<'a>, CommandFault> {
    if shapes == Shapes::Newer
        && let Some(content) = last(object, "content")
    {
        return Content::of(content).map_err(CommandFault::Content);
    }
    let text = last(object, "text").and_then(lazy);
    let text = text.ok_or(CommandFault::Text)?;
    match last(object, "images") {
        Some(images) if shapes == Shapes::Newer && images.kind() != Kind::Null => {
            pictured(text, images).map_err(CommandFault::Content)
        }
        Some(_) | None => Ok(Content::text(text)),
    }
}

/// A text, and pictures beside it.
fn pictured<'a>(text: json::Lazy<'a>, images: Raw<'a>) -> Result<Content<'a>, &'static str> {
    let images: Vec<Raw<'a>> = images.decode().map_err(|_| "expected an array of images")?;
    let images: Result<Vec<_>, _> = images.into_iter().map(Part::of_data_url).collect();
    let mut parts = Vec::from([Part::Text(text)]);
    parts.extend(images?);
    Ok(Content::parts(parts))
}

fn submission_id<'a>(object: &Object<'_, 'a>) -> Result<Option<Str<'a>>, CommandFault> {
    last(object, "submission_id")
        .map(|id| id.string().map(Str).ok_or(CommandFault::SubmissionId))
        .transpose()
}

/// A text as the contract has it; parts as newer programs do.
fn put_content(content: &Content<'_>, out: &mut Vec<u8>) {
    let name = match content.as_text() {
        Some(_) => "text",
        None => "content",
    };
    put_member(name, content, out);
}

fn put_submission_id(id: Option<&Str<'_>>, out: &mut Vec<u8>) {
    if let Some(id) = id {
        put_member("submission_id", id, out);
    }
}

/// Appends a member. `name` needs no escapes.
fn put_member(name: &str, value: &impl Hole, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    value.put(out);
}
