//! Records of jobs: programs that run on in the background (OS-10, OS-12).

use alloc::vec::Vec;

use serde::de::{Deserialize, Deserializer, Error};

use super::values::{
    Big, Chars, Component, Int, JobEventKind, NonEmpty, One, Optional, Revision, whole,
};
use crate::json::{self, Lazy, Raw, Str};
use crate::protocol::member::{Any, Member as _, objects, required};
use crate::protocol::spec::{Field, FieldKind, PartSpec};
use crate::protocol::wire::Hole;

/// How a job stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum JobState<'a> {
    /// `running`
    #[default]
    Running,
    /// `stopping`
    Stopping,
    /// `exited`
    Exited {
        /// The exit code.
        code: Int,
    },
    /// `stopped`
    Stopped {
        /// By whom or what: `user`, `session_ended`, `time_limit`, `output_limit`, `capture_failed` …
        reason: NonEmpty<'a>,
    },
    /// `interrupted`: who owned it is gone. What it started may run on.
    Interrupted,
}

/// The kinds of state, for the contract's page.
pub(in crate::protocol::openseek) static STATES: [PartSpec; 5] = [
    state("running", &[], "It runs."),
    state("stopping", &[], "It was told to stop."),
    state("exited", &CODE, "It has ended by itself."),
    state("stopped", &REASON, "It was stopped."),
    state(
        "interrupted",
        &[],
        "Who owned it is gone. What it started may run on.",
    ),
];

static CODE: [Field; 1] = [Field {
    name: "code",
    kind: Int::KIND,
    about: "The exit code.",
}];
static REASON: [Field; 1] = [Field {
    name: "reason",
    kind: FieldKind::Text,
    about: "By whom or what, not empty: `user`, `session_ended`, `time_limit`, `output_limit`, `capture_failed`.",
}];

const fn state(name: &'static str, fields: &'static [Field], about: &'static str) -> PartSpec {
    PartSpec {
        name,
        fields,
        about,
    }
}

impl<'a> JobState<'a> {
    /// Whether the job is over.
    pub const fn is_terminal(&self) -> bool {
        match self {
            JobState::Running | JobState::Stopping => false,
            JobState::Exited { .. } | JobState::Stopped { .. } | JobState::Interrupted => true,
        }
    }

    /// The state that a value is.
    ///
    /// # Errors
    /// What was expected.
    fn of(value: Raw<'a>) -> Result<Self, &'static str> {
        let text = |name| value.get_last(name).and_then(Raw::string);
        match text("kind").as_deref() {
            Some("running") => Ok(JobState::Running),
            Some("stopping") => Ok(JobState::Stopping),
            Some("interrupted") => Ok(JobState::Interrupted),
            Some("exited") => {
                let code = value.get_last("code");
                let code = code.and_then(|code| whole(code, i32::MIN.into(), i32::MAX.into()));
                let code = code.and_then(|code| i32::try_from(code).ok());
                let code = code.and_then(Int::new);
                code.map(|code| JobState::Exited { code })
                    .ok_or("expected a code of 32 bits")
            }
            Some("stopped") => text("reason")
                .and_then(|reason| NonEmpty::new(Str(reason)))
                .map(|reason| JobState::Stopped { reason })
                .ok_or("expected a reason that isn't empty"),
            Some(_) | None => {
                Err("expected a state: running, stopping, exited, stopped or interrupted")
            }
        }
    }
}

impl<'a> Deserialize<'a> for JobState<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        JobState::of(Raw::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Hole for JobState<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            JobState::Running => out.extend_from_slice(b"{\"kind\":\"running\"}"),
            JobState::Stopping => out.extend_from_slice(b"{\"kind\":\"stopping\"}"),
            JobState::Interrupted => out.extend_from_slice(b"{\"kind\":\"interrupted\"}"),
            JobState::Exited { code } => {
                out.extend_from_slice(b"{\"kind\":\"exited\",\"code\":");
                code.put(out);
                out.push(b'}');
            }
            JobState::Stopped { reason } => {
                out.extend_from_slice(b"{\"kind\":\"stopped\",\"reason\":");
                json::write_str(out, reason.as_str());
                out.push(b'}');
            }
        }
    }
}

required! { JobState<'a> = FieldKind::Kinds("kind", &STATES) }

objects! { without [];
    /// A job as it is stored.
    JobRecord {
        schema_version "schema_version": One,
        /// What went wrong when it was cleaned up.
        cleanup_error "cleanup_error": Optional<Lazy<'a>>,
        /// The process that owns it.
        generation "generation": Component<'a>,
        /// Its id, in that process.
        id "id": Component<'a>,
        /// 1 at first, and more with each change.
        revision "revision": Revision,
        command "command": Lazy<'a>,
        description "description": Optional<Lazy<'a>>,
        cwd "cwd": Optional<Str<'a>>,
        state "state": JobState<'a>,
        /// Since 1970, as all times here.
        started_at_ms "started_at_ms": Big,
        backgrounded_at_ms "backgrounded_at_ms": Big,
        finished_at_ms "finished_at_ms": Optional<Big>,
        last_output_at_ms "last_output_at_ms": Optional<Big>,
        /// The name of a file in the job's folder, never a path.
        output_file "output_file": Optional<Component<'a>>,
        output_persistent "output_persistent": bool,
        output_bytes "output_bytes": Big,
        output_chars "output_chars": Chars,
        output_truncated "output_truncated": bool,
        invalid_utf8 "invalid_utf8": bool,
        output_error "output_error": Optional<Lazy<'a>>,
        /// What went wrong when this record was stored.
        persistence_error "persistence_error": Optional<Lazy<'a>>,
        /// Newer programs only.
        data "data": Any<'a>,
    }
}

impl JobRecord<'_> {
    /// What `job_changed` says of a record that is over: something went wrong if the program failed, if neither the person
    /// nor the end of the session stopped it, or if it couldn't be cleaned up. `None` while it runs.
    pub fn ended_as(&self) -> Option<JobEventKind> {
        let failed = match &self.state {
            JobState::Running | JobState::Stopping => return None,
            JobState::Exited { code } => code.get() != 0,
            JobState::Stopped { reason } => !matches!(reason.as_str(), "user" | "session_ended"),
            JobState::Interrupted => false,
        };
        Some(if failed || self.cleanup_error.0.is_some() {
            JobEventKind::Failed
        } else {
            JobEventKind::Finished
        })
    }
}
