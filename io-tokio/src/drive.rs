//! The host's loop: an agent's process on one side, a screen and perhaps a person on the other.
//!
//! The mirror of [`serve`](crate::serve): the same threads read and write, and one thing is waited for at a time.

mod person;
mod served;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use tokio::sync::mpsc;
use tokio::time::Instant;
use turnwire::frame::LineSplitter;
use turnwire::protocol::{Client, ClientOutput, Protocol};
use turnwire::vocab::*;
use turnwire_io::input::HostInput;
use turnwire_io::process::Exit;
use turnwire_io::{Clock, Error};

use crate::output::Output;
use crate::process::Group;
use crate::signals::Signals;
pub use person::Person;
use person::Questions;
use served::Serving;
pub use served::{Program, Served};

/// Above this many bytes that nobody has read from the screen, the agent isn't read on.
const UNREAD: u64 = 1024 * 1024;
/// How long an agent that was told to leave may take, when nothing runs in it.
const LEAVING: Duration = Duration::from_secs(10);
/// How long it may take after that, and after a signal, before it is killed.
const GRACE: Duration = Duration::from_secs(3);
/// How long its output is read after its own end, if something else holds it open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What is shown of a session, and how questions are asked.
///
/// Everything is appended to `out`, which is written by a thread: a screen never waits.
pub trait Screen<P: Protocol>: Send {
    /// Something that the agent said, or did wrong.
    fn show(&mut self, output: &ClientOutput<'_, P>, out: &mut Vec<u8>);

    /// Puts a question to the person.
    fn ask(&mut self, ask: &Ask, out: &mut Vec<u8>);

    /// The person's line for this question; `None` if it is no answer, and the question is put once more.
    fn read(&mut self, ask: &Ask, line: &str) -> Option<Result<Reply, ReplyFault>>;

    /// Answers a question that nobody can be asked, and says what a person could do about it.
    fn alone(&mut self, ask: &Ask, out: &mut Vec<u8>) -> Result<Reply, ReplyFault>;

    /// The agent's process has ended. The last thing shown.
    fn ended(&mut self, driven: &Driven, out: &mut Vec<u8>);
}

/// What to drive an agent with.
pub struct Task<P: Protocol> {
    /// The prompts, sent one after the other. After the last one's end the agent is told to leave.
    pub prompts: Vec<Text>,
    /// What is said into the first prompt's turn once something of it was seen, in this order.
    pub during: Vec<(During, Text)>,
    /// What the host serves; an agent that can't take it isn't given any prompt.
    pub served: Served,
    /// What is shown.
    pub screen: Box<dyn Screen<P>>,
    /// Where it is shown.
    pub out: Box<dyn Write + Send>,
    /// Who is asked; `None`: nobody.
    pub person: Option<Person>,
    /// Whether SIGINT cancels the turn, and a second one ends the agent; SIGTERM and SIGHUP end it.
    pub signals: bool,
}

impl<P: Protocol> std::fmt::Debug for Task<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task")
            .field("prompts", &self.prompts.len())
            .finish_non_exhaustive()
    }
}

/// How something is said into a turn that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum During {
    /// As soon as the agent listens.
    Steer,
    /// When it would stop.
    FollowUp,
}

/// How the agent's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentEnd {
    /// By itself, with this code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driven {
    /// How the agent ended.
    pub end: AgentEnd,
    /// Whether it did so before it had answered everything that was asked of it.
    pub unfinished: bool,
    /// Whether the last prompt that it answered ended in a failure, or it didn't take what the host serves.
    pub failed: bool,
    /// Whether it had to be killed.
    pub killed: bool,
}

/// Starts an agent, and is its host until it has ended. Its standard error is left as `command` has it. It runs in a
/// session of its own (POSIX, `setsid`): a terminal's Ctrl-C reaches this process alone. What is left of its process
/// group is ended with it.
///
/// # Errors
/// [`Error::Setup`] when the agent, a thread or a signal handler can't be started.
pub async fn drive<P: Protocol>(
    config: P::ClientConfig,
    mut command: Process,
    task: Task<P>,
) -> Result<Driven, Error> {
    let (stdin, to_agent) = std::io::pipe().map_err(Error::Setup)?;
    let (from_agent, stdout) = std::io::pipe().map_err(Error::Setup)?;
    command
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout));
    let signals = Signals::start(task.signals).map_err(Error::Setup)?;
    let mut drive = Drive::<P> {
        client: Client::new(config),
        group: Group::spawn(command).map_err(Error::Setup)?,
        to_agent: Some(Output::start(Box::new(to_agent)).map_err(Error::Setup)?),
        input_done: false,
        from_agent: crate::driver::read(Box::new(from_agent)).map_err(Error::Setup)?,
        splitter: LineSplitter::new(P::agent_line_rules()),
        unsplit: Bytes::new(),
        output_ended: false,
        screen: task.screen,
        shown: Output::start(task.out).map_err(Error::Setup)?,
        questions: Questions::start(task.person).map_err(Error::Setup)?,
        signals,
        prompts: task.prompts.into(),
        during: task.during,
        serving: Serving::new(task.served),
        offering: BTreeSet::new(),
        outstanding: BTreeMap::new(),
        failed: false,
        last_prompt: 0,
        last_command: 0,
        opened: false,
        leaving: false,
        interrupts: 0,
        exited: false,
        closed: None,
        limit: None,
        killed: false,
        clock: Clock::start(),
        now: Now::default(),
    };
    drive.run().await;
    drive.finish().await
}

/// One agent, driven.
struct Drive<P: Protocol> {
    client: Client<P>,
    group: Group,
    /// The agent's standard input, while it is open.
    to_agent: Option<Output>,
    /// It is closed once all is written.
    input_done: bool,
    from_agent: mpsc::Receiver<HostInput>,
    splitter: LineSplitter,
    /// Bytes of the agent that are read but not split yet.
    unsplit: Bytes,
    output_ended: bool,
    screen: Box<dyn Screen<P>>,
    shown: Output,
    questions: Questions,
    signals: Signals,
    /// The prompts that weren't sent yet.
    prompts: VecDeque<Text>,
    /// What is still to be said into the first turn.
    during: Vec<(During, Text)>,
    serving: Serving,
    /// Offers that weren't answered yet.
    offering: BTreeSet<CommandId>,
    /// The prompts that weren't answered yet, and their commands.
    outstanding: BTreeMap<PromptId, CommandId>,
    /// The last prompt that was answered ended in a failure.
    failed: bool,
    last_prompt: u64,
    last_command: u64,
    opened: bool,
    /// The agent was told to leave.
    leaving: bool,
    /// Signals that this process got.
    interrupts: u32,
    /// The agent's process is dead.
    exited: bool,
    /// The Client has said its last word: whether it was a fault.
    closed: Option<bool>,
    /// When patience ends, and with what.
    limit: Option<(Instant, Then)>,
    killed: bool,
    clock: Clock,
    now: Now,
}

/// What happens when patience ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Nothing is outstanding, and the Client still waits for a word that the agent doesn't say.
    LeaveNow,
    Terminate,
    Kill,
    /// The agent is dead, and its output is taken as ended.
    EndOutput,
}

/// The one thing that the loop waited for.
enum Wake {
    Agent(Option<HostInput>),
    MoreLines,
    Written,
    Shown(bool),
    Person(Option<String>),
    Exited,
    Signal(Signal),
    Served(AskId, Result<Reply, ReplyFault>),
    Due,
    Limit,
}

/// What an output means for the loop.
enum News {
    None,
    Opened,
    Ended {
        prompt: PromptId,
        failed: bool,
    },
    Replied {
        command: CommandId,
        ok: bool,
    },
    /// Something of an answer was seen.
    Shown,
    Asked(AskId, Box<Ask>),
    AskClosed(AskId),
    CloseInput,
    Signal(Signal),
    Closed {
        fault: bool,
    },
}

impl<P: Protocol> Drive<P> {
    async fn run(&mut self) {
        self.now = self.clock.now();
        for offer in self.serving.offers() {
            let command = self.command(Command::Offer(offer));
            self.offering.insert(command);
        }
        if self.offering.is_empty() {
            self.next_prompt();
        }
        self.drain();
        while !(self.closed.is_some() && self.exited) {
            let wake = self.wait().await;
            self.now = self.clock.now();
            match wake {
                Wake::Agent(Some(HostInput::Bytes(bytes))) => self.unsplit = bytes,
                Wake::Agent(Some(HostInput::End(_)) | None) => self.end_output(),
                Wake::MoreLines => self.split_one(),
                Wake::Written | Wake::Shown(true) => {}
                // Nobody reads what is shown: nobody wants it.
                Wake::Shown(false) => self.leave_now(),
                Wake::Person(line) => self.heard(line),
                Wake::Exited => {
                    self.exited = true;
                    self.limit = Some((Instant::now() + LAST_WORDS, Then::EndOutput));
                }
                Wake::Signal(signal) => self.signalled(signal),
                Wake::Served(ask, reply) => {
                    self.command(Command::Reply { ask, reply });
                }
                Wake::Due => self.client.handle_woken(self.now),
                Wake::Limit => self.out_of_patience(),
            }
            self.drain();
        }
    }

    /// Takes all that the Client has, shows it and acts on it.
    fn drain(&mut self) {
        let mut nowhere = Vec::new();
        loop {
            let lines = self
                .to_agent
                .as_mut()
                .map_or(&mut nowhere, |out| out.buffer());
            let Some(output) = self.client.poll_output(lines) else {
                break;
            };
            self.screen.show(&output, self.shown.buffer());
            let news = News::of(&output);
            self.act(news);
        }
        if let Some(to_agent) = &mut self.to_agent {
            to_agent.push();
            if self.input_done && to_agent.unread() == 0 {
                self.to_agent = None;
            }
        }
        self.shown.push();
    }

    fn act(&mut self, news: News) {
        match news {
            News::None => {}
            News::Opened => self.opened = true,
            News::Ended { prompt, failed } => {
                self.failed = failed;
                self.answered(prompt);
            }
            News::Replied { command, ok } => self.replied(command, ok),
            News::Shown => self.say_during(),
            News::Asked(id, ask) if self.serving.begin(id, &ask) => {}
            News::Asked(id, ask) => match self.questions.is_manned() {
                true => {
                    if self.questions.add(id, ask) {
                        self.put_question();
                    }
                }
                false => {
                    let reply = self.screen.alone(&ask, self.shown.buffer());
                    self.command(Command::Reply { ask: id, reply });
                }
            },
            News::AskClosed(id) => {
                self.serving.stop(id);
                if self.questions.remove(id) {
                    self.put_question();
                }
            }
            News::CloseInput => {
                self.input_done = true;
                self.limit
                    .take_if(|(_, then)| matches!(then, Then::LeaveNow));
                self.wait_no_longer_than(LEAVING, Then::Terminate);
            }
            News::Signal(signal) => self.group.pass_on(signal),
            News::Closed { fault } => {
                self.closed = Some(fault);
                self.input_done = true;
                self.wait_no_longer_than(LEAVING, Then::Terminate);
            }
        }
    }

    /// Sends the next prompt; tells the agent to leave if there is none. Its input stays open until nothing is
    /// pending.
    fn next_prompt(&mut self) {
        let Some(text) = self.prompts.pop_front() else {
            if !std::mem::replace(&mut self.leaving, true) {
                self.command(Command::Close { drain: true });
                self.wait_no_longer_than(LEAVING, Then::LeaveNow);
            }
            return;
        };
        self.prompt(text, Deliver::Queue(Rank::Later));
    }

    fn prompt(&mut self, text: Text, deliver: Deliver) {
        self.last_prompt += 1;
        let id = PromptId(self.last_prompt);
        let prompt = Prompt {
            id,
            tag: None,
            content: vec![Block::Text(text)],
            deliver,
            literal: false,
            details: None,
        };
        let command = self.command(Command::Prompt(prompt));
        self.outstanding.insert(id, command);
    }

    /// Says into the turn that runs what there is to say.
    fn say_during(&mut self) {
        for (during, text) in std::mem::take(&mut self.during) {
            let deliver = match during {
                During::Steer => Deliver::Steer {
                    idle: IdleSteer::Start,
                },
                During::FollowUp => Deliver::FollowUp,
            };
            self.prompt(text, deliver);
        }
    }

    /// A prompt has its answer, or will have none. The next one follows when none is outstanding.
    fn answered(&mut self, prompt: PromptId) {
        if self.outstanding.remove(&prompt).is_none() {
            return;
        }
        // A turn of which nothing was seen.
        self.say_during();
        if self.outstanding.is_empty() {
            self.next_prompt();
        }
    }

    fn replied(&mut self, command: CommandId, ok: bool) {
        if self.offering.remove(&command) {
            if !ok {
                // The prompts count on what isn't there.
                self.failed = true;
                self.prompts.clear();
                self.during.clear();
            }
            if self.offering.is_empty() {
                self.next_prompt();
            }
            return;
        }
        let mut outstanding = self.outstanding.iter();
        if !ok && let Some((&prompt, _)) = outstanding.find(|(_, id)| **id == command) {
            self.answered(prompt);
        }
    }

    fn command(&mut self, command: Command) -> CommandId {
        self.last_command += 1;
        let id = CommandId(self.last_command);
        self.client.handle_command(Call { id, command }, self.now);
        id
    }

    /// Puts the oldest question to the person, if there is one.
    fn put_question(&mut self) {
        if let Some(ask) = self.questions.put() {
            self.screen.ask(ask, self.shown.buffer());
        }
    }

    /// The person's line; `None`: there is no person any more.
    fn heard(&mut self, line: Option<String>) {
        let Some(line) = line else {
            for (id, ask) in self.questions.give_up() {
                let reply = self.screen.alone(&ask, self.shown.buffer());
                self.command(Command::Reply { ask: id, reply });
            }
            return;
        };
        if self.questions.take_stale() {
            return self.put_question();
        }
        let Some((id, ask)) = self.questions.open() else {
            return;
        };
        if let Some(reply) = self.screen.read(ask, &line) {
            self.questions.remove(id);
            self.command(Command::Reply { ask: id, reply });
        }
        self.put_question();
    }

    fn signalled(&mut self, signal: Signal) {
        self.interrupts += 1;
        match (self.interrupts, signal) {
            (1, Signal::Interrupt) if self.opened => {
                self.prompts.clear();
                self.during.clear();
                if !self.outstanding.is_empty() {
                    let what = CancelWhat::Turn {
                        queue: QueueFate::Drop,
                    };
                    let why = CancelWhy::Host;
                    self.command(Command::Cancel { what, why });
                } else if !self.leaving {
                    self.next_prompt();
                }
            }
            (1, _) => self.leave_now(),
            (2, _) => {
                self.group.pass_on(signal);
                self.wait_no_longer_than(GRACE, Then::Kill);
            }
            (_, _) => self.kill(),
        }
    }

    /// Ends the agent in good order, whatever it does.
    fn leave_now(&mut self) {
        self.prompts.clear();
        self.during.clear();
        self.leaving = true;
        self.command(Command::Close { drain: false });
        self.wait_no_longer_than(GRACE, Then::Terminate);
    }

    fn kill(&mut self) {
        self.killed = !self.exited;
        self.group.kill();
    }

    fn out_of_patience(&mut self) {
        match self.limit.take() {
            Some((_, Then::LeaveNow)) => self.leave_now(),
            Some((_, Then::Terminate)) => {
                self.group.terminate();
                self.wait_no_longer_than(GRACE, Then::Kill);
            }
            Some((_, Then::Kill)) => self.kill(),
            Some((_, Then::EndOutput)) => self.end_output(),
            None => {}
        }
    }

    /// A limit that is there already stays, if it is the nearer one.
    fn wait_no_longer_than(&mut self, time: Duration, then: Then) {
        let at = Instant::now() + time;
        if !self.exited && self.limit.is_none_or(|(before, _)| at < before) {
            self.limit = Some((at, then));
        }
    }

    fn split_one(&mut self) {
        let mut rest: &[u8] = &self.unsplit;
        if let Some(split) = self.splitter.next(&mut rest) {
            self.client.handle_line(split, self.now);
        }
        let used = self.unsplit.len() - rest.len();
        self.unsplit.advance(used);
    }

    fn end_output(&mut self) {
        if std::mem::replace(&mut self.output_ended, true) {
            return;
        }
        while !self.unsplit.is_empty() {
            self.split_one();
        }
        if let Some(split) = self.splitter.finish() {
            self.client.handle_line(split, self.now);
        }
        self.client.handle_end(self.now);
    }

    async fn wait(&mut self) -> Wake {
        let lines = self.client.wants_lines() && self.shown.unread() < UNREAD;
        if lines && !self.unsplit.is_empty() {
            return Wake::MoreLines;
        }
        let due = self.client.poll_timeout();
        let due = due.map(|due| self.clock.instant(due.at_us).into());
        let limit = self.limit.map(|(at, _)| at);
        let written = async {
            match &mut self.to_agent {
                // A failed write means that the agent is leaving: its output and its end say so.
                Some(to_agent) => drop(to_agent.progress().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            signal = self.signals.next() => Wake::Signal(signal),
            shown = self.shown.progress() => Wake::Shown(shown.is_ok()),
            () = written => Wake::Written,
            line = self.questions.heard() => Wake::Person(line),
            (ask, reply) = self.serving.done() => Wake::Served(ask, reply),
            input = self.from_agent.recv(), if lines && !self.output_ended => Wake::Agent(input),
            _ = self.group.exited(), if !self.exited => Wake::Exited,
            () = until(due) => Wake::Due,
            () = until(limit) => Wake::Limit,
        }
    }

    /// The agent is dead: what is left of its group ends, and the last is shown.
    async fn finish(mut self) -> Result<Driven, Error> {
        self.serving.end().await;
        let deadline = Instant::now() + GRACE;
        let end = match self
            .group
            .settle(deadline.into_std())
            .await
            .map_err(Error::Setup)?
        {
            Exit::Code(code) => AgentEnd::Code(code),
            Exit::Signal(signal) => AgentEnd::Signal(signal),
        };
        let driven = Driven {
            end,
            unfinished: self.closed.unwrap_or(true) || !self.outstanding.is_empty(),
            failed: self.failed,
            killed: self.killed,
        };
        self.screen.ended(&driven, self.shown.buffer());
        let mut flush = std::pin::pin!(self.shown.flush());
        tokio::select! {
            () = &mut flush => {}
            // Somebody wants to leave, and nobody reads.
            _ = self.signals.next() => {}
        }
        Ok(driven)
    }
}

impl News {
    fn of<P: Protocol>(output: &ClientOutput<'_, P>) -> News {
        match output {
            ClientOutput::Event(event) => News::of_event(&event.what),
            ClientOutput::CloseInput => News::CloseInput,
            ClientOutput::Signal(signal) => News::Signal(*signal),
            ClientOutput::Delta(_) => News::Shown,
            ClientOutput::Closed
            | ClientOutput::Extra(_)
            | ClientOutput::Finding(_)
            // No protocol has such questions yet that an embedder could answer.
            | ClientOutput::Ask { .. } => News::None,
        }
    }

    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "the loop needs few of the many events"
    )]
    fn of_event(what: &What) -> News {
        match what {
            What::Opened(_) => News::Opened,
            What::PromptEnded { prompt, end } => News::Ended {
                prompt: *prompt,
                failed: matches!(end, End::Failed(_)),
            },
            What::Replied { command, reply } => News::Replied {
                command: *command,
                ok: reply.is_ok(),
            },
            What::Delta { .. } | What::ToolStarted { .. } => News::Shown,
            What::Asked { ask, body } => News::Asked(*ask, Box::new(body.clone())),
            What::AskClosed { ask, .. } => News::AskClosed(*ask),
            What::Closed { why } => News::Closed {
                fault: matches!(why, CloseWhy::Fault(_)),
            },
            _ => News::None,
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
