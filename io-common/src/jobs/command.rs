//! A command that goes on in the background: what is run, and what is made of what it writes.

use std::fs::File;
use std::io::{self, Write as _};
use std::process::Command;
use std::time::{Duration, Instant};

use turnwire::vocab::{
    CallId, JobId, JobKind, JobOutput, JobRecord, JobStart, JobState, Text, ToolUpdate,
};

use super::count::Count;
use super::let_go::LetGo;
use super::{JobPlace, output_name};
use crate::clock::Clock;
use crate::process::{Exit, Stopped, Terms};
use crate::tools::{Capture, CommandJob, Finished};

/// Shortest time between two words of what a job has written.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// What is said of a job while it runs.
#[derive(Debug)]
pub enum Said {
    /// Its call has become it, and what the model is told besides.
    Detached(Box<JobStart>, Text),
    /// What it has written so far.
    Output(JobOutput),
}

/// What is said of a command that may become a job.
#[derive(Debug)]
pub enum Told {
    /// By its call.
    Call(ToolUpdate),
    /// By the job that its call has become.
    Job(Said),
}

/// How a job ended, with what it wrote if there is news of that. `Err`: there was none; it is the end of the call.
pub type Ran = Result<(Option<JobOutput>, JobState), ToolUpdate>;

/// A command of `bash` that is to go on in the background.
#[derive(Debug)]
pub struct BackgroundJob {
    command: CommandJob,
    place: JobPlace,
    line: Text,
    description: Option<Text>,
    cwd: Text,
    call: CallId,
}

impl BackgroundJob {
    pub(crate) fn new(
        command: CommandJob,
        place: JobPlace,
        line: &str,
        description: Option<String>,
        cwd: &str,
    ) -> Self {
        BackgroundJob {
            command,
            place,
            line: line.into(),
            description: description.map(Text::from),
            cwd: cwd.into(),
            call: CallId(0),
        }
    }

    /// It is what this call becomes.
    pub(crate) fn of(self, call: CallId) -> Self {
        BackgroundJob { call, ..self }
    }

    /// Its id: the number of its call.
    pub fn job(&self) -> JobId {
        JobId(self.call.0)
    }

    /// Its name for hosts.
    fn name(&self) -> String {
        format!("bg-{}", self.call.0)
    }

    /// What to start, with both outputs piped. It must lead a process group of its own.
    pub fn command(&self) -> Command {
        self.command.command()
    }

    /// How long it may run, if the model said so, and how it is ended.
    pub fn terms(&self) -> Terms {
        self.command.terms()
    }

    /// Makes its files, its record among them; it runs only after that. It may block. `Err`: the end of the call, since
    /// there can be no job.
    pub fn begin(&self) -> Result<Kept, ToolUpdate> {
        let now_ms = unix_ms();
        self.begin_of([Some(now_ms), Some(now_ms), None, None])
    }

    fn begin_of(&self, times_ms: [Option<u64>; 4]) -> Result<Kept, ToolUpdate> {
        let kept = self.files(times_ms).map_err(|error| {
            let why = crate::tools::reason(&error);
            crate::engine::failed(&format!("can't keep what the job writes: {why}"))
        })?;
        if let Err(error) = self.place.keep(&kept.record) {
            let why = crate::tools::reason(&error);
            kept.discard();
            let text = format!("can't keep the record of the job: {why}");
            return Err(crate::engine::failed(&text));
        }
        Ok(kept)
    }

    fn files(&self, times_ms: [Option<u64>; 4]) -> io::Result<Kept> {
        let id = self.name();
        let (name, file) = self.place.make_output(&id)?;
        let record = JobRecord {
            job: self.job(),
            id: id.into(),
            generation: self.place.generation().clone(),
            revision: 1,
            kind: JobKind::Shell,
            call: Some(self.call),
            command: self.line.clone(),
            description: self.description.clone(),
            cwd: Some(self.cwd.clone()),
            state: JobState::Running,
            finite: true,
            times_ms,
            output: Some(JobOutput {
                name: Some(name.into()),
                persistent: self.place.is_persistent(),
                bytes: 0,
                chars: 0,
                truncated: false,
                invalid_utf8: false,
            }),
            faults: [None, None, None],
        };
        Ok(Kept {
            place: self.place.clone(),
            record,
            file,
            count: Count::default(),
            told: 0,
            tell_at: Instant::now() + TELL_EVERY,
            broken: None,
            full: false,
            partial: false,
        })
    }

    /// The end of the call, where the command couldn't be started.
    pub fn failed(&self, error: &io::Error) -> ToolUpdate {
        done(self.command.failed(error))
    }
}

fn unix_ms() -> u64 {
    Clock::start().now().unix_ms
}

/// A command of `bash` that runs as a call, and goes on in the background once it is [let go](LetGo).
#[derive(Debug)]
pub struct OpenJob {
    job: BackgroundJob,
    let_go: LetGo,
    /// The model said how long it may run; else that counts for the call alone.
    timed: bool,
}

impl OpenJob {
    pub(crate) fn new(job: BackgroundJob, timed: bool) -> Self {
        OpenJob {
            job,
            let_go: LetGo::default(),
            timed,
        }
    }

    /// It is of this call.
    pub(crate) fn of(self, call: CallId) -> Self {
        let job = self.job.of(call);
        OpenJob { job, ..self }
    }

    /// The id of the job that it may become: the number of its call.
    pub fn job(&self) -> JobId {
        self.job.job()
    }

    /// The word that it waits for.
    pub fn let_go(&self) -> &LetGo {
        &self.let_go
    }

    /// The command as the call carries it out.
    pub fn command(&self) -> &CommandJob {
        &self.job.command
    }

    /// The command alone, which nobody lets go.
    pub fn into_command(self) -> CommandJob {
        self.job.command
    }

    /// Whether it may take as long as it takes once it is a job.
    pub fn is_free(&self) -> bool {
        !self.timed
    }

    /// When it began, for [`detach`](OpenJob::detach): milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        unix_ms()
    }

    /// Makes the files of the job, and puts into them what its command has written so far. It may block. `None`: there
    /// can be no job, which was logged; the call goes on.
    pub fn detach(&self, began_ms: u64, capture: &mut Capture) -> Option<Kept> {
        let times_ms = [Some(began_ms), Some(unix_ms()), None, None];
        let mut kept = match self.job.begin_of(times_ms) {
            Ok(kept) => kept,
            Err(why) => {
                tracing::warn!(?why, "a call can't go on in the background");
                return None;
            }
        };
        let (bytes, whole) = capture.so_far();
        kept.partial = !whole;
        // What is wrong with it is found again with the next bytes, or at the end.
        let _ = kept.take(&bytes);
        Some(kept)
    }

    /// The end of the call, where its command couldn't be started, or nobody knows how it ended.
    pub fn failed(&self, error: &io::Error) -> ToolUpdate {
        self.job.failed(error)
    }

    /// The end of the call, if it never became a job.
    pub fn ended(&self, capture: Capture, exit: Exit, stopped: Option<Stopped>) -> ToolUpdate {
        done(self.job.command.ended(capture, exit, stopped))
    }
}

fn done(finished: Finished) -> ToolUpdate {
    // A command changes no file that is told of.
    let (_, done) = finished.into_updates();
    done
}

/// What is kept of a job that runs.
#[derive(Debug)]
pub struct Kept {
    place: JobPlace,
    /// As it was at the beginning.
    record: JobRecord,
    file: File,
    count: Count,
    /// Bytes that were told of.
    told: u64,
    tell_at: Instant,
    /// What went wrong with the file.
    broken: Option<io::Error>,
    /// It wrote more than it may.
    full: bool,
    /// Something that it wrote while it was a call isn't in the file.
    partial: bool,
}

impl Kept {
    /// Which job it is.
    pub fn job(&self) -> JobId {
        self.record.job
    }

    /// What is said once the command runs: that the call has become a job, and where its output goes, for the model.
    /// `leader`: the number of its process group.
    pub fn started(&self, leader: u32) -> Said {
        let path = self.place.own().join(output_name(&self.record.id));
        let text = format!(
            "Process group {leader}. What it writes goes to {}.",
            path.display()
        );
        let record = &self.record;
        let start = JobStart {
            id: record.id.clone(),
            generation: record.generation.clone(),
            kind: record.kind.clone(),
            command: record.command.clone(),
            description: record.description.clone(),
            cwd: record.cwd.clone(),
            finite: record.finite,
            times_ms: record.times_ms,
        };
        Said::Detached(Box::new(start), text.into())
    }

    /// Takes bytes that the job wrote, to either stream, and puts them into its file. `false`: it is to be stopped, since
    /// it wrote more than it may or its file can't be written. It may block for as long as the system takes to buffer a
    /// write.
    #[must_use]
    pub fn take(&mut self, bytes: &[u8]) -> bool {
        let limit = self.place.inner.output_limit;
        let room = usize::try_from(limit.saturating_sub(self.count.bytes)).unwrap_or(usize::MAX);
        let (fits, rest) = bytes.split_at(room.min(bytes.len()));
        self.full |= !rest.is_empty();
        if self.broken.is_none() && !fits.is_empty() {
            match self.file.write_all(fits) {
                Ok(()) => self.count.add(fits),
                Err(error) => self.broken = Some(error),
            }
        }
        !self.full && self.broken.is_none()
    }

    /// When there is news to tell; `None` while there is none.
    pub fn tell_at(&self) -> Option<Instant> {
        (self.count.bytes > self.told).then_some(self.tell_at)
    }

    /// The news, once its time has come.
    pub fn tell(&mut self, now: Instant) -> Option<Said> {
        if self.tell_at().is_none_or(|at| now < at) {
            return None;
        }
        self.tell_at = now + TELL_EVERY;
        Some(Said::Output(self.output()))
    }

    fn output(&mut self) -> JobOutput {
        self.told = self.count.bytes;
        JobOutput {
            name: self.record.output.as_ref().and_then(|it| it.name.clone()),
            persistent: self.place.is_persistent(),
            bytes: self.count.bytes,
            chars: self.count.chars,
            truncated: self.full || self.partial,
            invalid_utf8: self.count.invalid,
        }
    }

    /// The command has ended, its whole group too: its last news, if there are any, and its end.
    pub fn ended(mut self, exit: Exit, stopped: Option<Stopped>) -> (Option<JobOutput>, JobState) {
        let (told, chars) = (self.told, self.count.chars);
        self.count.end();
        let news = self.count.bytes > told || self.count.chars > chars || self.full;
        let news = news.then(|| self.output());
        let stopped_by = |why: &str| JobState::Stopped(why.into());
        let state = match (&self.broken, self.full, stopped, exit) {
            (Some(error), ..) => {
                tracing::warn!(job = &*self.record.id, %error, "what a job writes can't be kept");
                stopped_by("capture_failed")
            }
            (None, true, ..) => stopped_by("output_limit"),
            (None, false, Some(Stopped::TimedOut), _) => stopped_by("time_limit"),
            (None, false, Some(Stopped::Cancelled), _) => stopped_by("user"),
            (None, false, None, Exit::Code(code)) => JobState::Exited(code),
            // As a shell says it.
            (None, false, None, Exit::Signal(signal)) => JobState::Exited(128 + signal),
        };
        (news, state)
    }

    /// It can't be told how the command ended.
    pub fn lost(mut self, error: &io::Error) -> (Option<JobOutput>, JobState) {
        tracing::warn!(job = &*self.record.id, %error, "it isn't known how a job ended");
        (Some(self.output()), JobState::Interrupted)
    }

    /// There is no job after all: its files go. It may block.
    pub fn discard(self) {
        if let Err(error) = self.place.forget(&self.record.id) {
            tracing::warn!(job = &*self.record.id, %error, "the files of a job that never ran are left");
        }
    }
}
