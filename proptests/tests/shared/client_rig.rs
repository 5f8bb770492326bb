//! What the tests of every Client share: a Client whose inputs are kept, its splitter and clock, with the laws of the
//! neutral stream watched all the time.
#![allow(dead_code, reason = "each test program uses its own part")]

#[path = "text.rs"]
pub mod text;

use turnwire::frame::LineSplitter;
use turnwire::protocol::{Client, ClientOutput, Finding, Protocol};
use turnwire::vocab::laws::{Checker, Scope};
use turnwire::vocab::*;
use turnwire_proptests::laws::ClientInput;

/// What came out, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Out<P: Protocol> {
    /// Bytes that no other output stands between.
    Lines(Vec<u8>),
    Event(Event),
    Extra(P::Extra),
    Finding(Finding),
    CloseInput,
    Signal(Signal),
    Closed,
}

/// An agent that answers at once what its Client asks for itself.
pub trait Answers {
    /// What it answers to this line of the Client's.
    fn answer(&mut self, line: &str) -> Option<String>;
}

/// One that answers nothing.
impl Answers for () {
    fn answer(&mut self, _: &str) -> Option<String> {
        None
    }
}

/// A Client, and everything that went in and came out. `A` is the part of its agent that answers by itself.
pub struct ClientRig<P: Protocol, A = ()> {
    pub client: Client<P>,
    splitter: LineSplitter,
    pub now: Now,
    pub told: Vec<(ClientInput<P>, Now)>,
    pub out: Vec<Out<P>>,
    /// Lines to the agent, without newlines, since the last look.
    pub written: Vec<String>,
    /// How many of those the agent has seen.
    seen: usize,
    /// Whether bytes that no output stands between are one [`Out::Lines`].
    pub joins: bool,
    checker: Checker,
    ids: u64,
    pub answers: A,
}

impl<P: Protocol, A: Answers> ClientRig<P, A> {
    pub fn with(config: P::ClientConfig, answers: A) -> Self {
        ClientRig {
            client: Client::new(config),
            splitter: LineSplitter::new(P::agent_line_rules()),
            now: Now {
                mono_us: 1_000,
                unix_ms: 1_700_000_000_000,
            },
            told: Vec::new(),
            out: Vec::new(),
            written: Vec::new(),
            seen: 0,
            joins: true,
            checker: Checker::new(Scope::Any),
            ids: 0,
            answers,
        }
    }

    pub fn forget(&mut self) {
        self.out.clear();
        self.written.clear();
        self.seen = 0;
    }

    pub fn tell(&mut self, input: ClientInput<P>) {
        self.put(&input);
        self.told.push((input, self.now));
        self.drain();
        self.answer();
    }

    /// Hands an input over; nothing is drained or kept.
    fn put(&mut self, input: &ClientInput<P>) {
        match input {
            ClientInput::Call(call) => {
                if self.client.wants_commands() {
                    self.checker.command(call);
                }
                self.client.handle_command(call.clone(), self.now);
            }
            ClientInput::Bytes(bytes) => {
                let mut chunk = bytes.as_slice();
                while let Some(split) = self.splitter.next(&mut chunk) {
                    self.client.handle_line(split, self.now);
                }
            }
            ClientInput::End => {
                if let Some(split) = self.splitter.finish() {
                    self.client.handle_line(split, self.now);
                }
                self.client.handle_end(self.now);
            }
            ClientInput::Settle(id, outcome) => {
                self.client.settle(*id, outcome.clone(), self.now).unwrap();
            }
            ClientInput::Woken => self.client.handle_woken(self.now),
        }
    }

    pub fn drain(&mut self) {
        let mut lines = Vec::new();
        loop {
            let output = self.client.poll_output(&mut lines).map(|it| own(&it));
            if !lines.is_empty() {
                let text = std::str::from_utf8(&lines).unwrap();
                self.written.extend(text.lines().map(str::to_owned));
                if self.joins
                    && let Some(Out::Lines(last)) = self.out.last_mut()
                {
                    last.append(&mut lines);
                } else {
                    self.out.push(Out::Lines(std::mem::take(&mut lines)));
                }
            }
            let Some(output) = output else { break };
            if let Out::Event(event) = &output {
                self.checker.event(event);
            }
            self.out.push(output);
        }
        self.checker.quiet();
        let violations = self.checker.violations();
        assert_eq!(violations, [], "{}", text::events(&self.out));
    }

    /// The agent answers what it answers by itself.
    fn answer(&mut self) {
        while let Some(line) = self.written.get(self.seen) {
            self.seen += 1;
            if let Some(answer) = self.answers.answer(line) {
                self.agent(&answer);
            }
        }
    }

    /// A line of the agent.
    pub fn agent(&mut self, line: &str) {
        self.tell(ClientInput::Bytes([line.as_bytes(), b"\n"].concat()));
    }

    /// A line of the agent that is only handed over.
    pub fn client_line(&mut self, line: &str) {
        self.put(&ClientInput::Bytes([line.as_bytes(), b"\n"].concat()));
    }

    pub fn end(&mut self) {
        self.tell(ClientInput::End);
    }

    pub fn command(&mut self, command: Command) -> CommandId {
        let id = self.next_id();
        self.tell(ClientInput::Call(Call { id, command }));
        id
    }

    /// Hands over a command of the protocol's own, by its id. It isn't kept, since the laws of machines know only neutral
    /// commands; to those of the stream it is a command like any other.
    pub fn own_command(&mut self, send: impl FnOnce(&mut Client<P>, CommandId, Now)) -> CommandId {
        let id = self.next_id();
        let command = Command::Barrier;
        self.checker.command(&Call { id, command });
        send(&mut self.client, id, self.now);
        self.drain();
        self.answer();
        id
    }

    fn next_id(&mut self) -> CommandId {
        self.ids += 1;
        CommandId(self.ids)
    }

    /// A prompt whose id is its command's.
    pub fn prompt_as(&mut self, text: &str, tag: Option<&str>, deliver: Deliver) -> CommandId {
        let mut prompt = prompt(PromptId(self.ids + 1), text, deliver);
        prompt.tag = tag.map(Text::from);
        self.command(Command::Prompt(prompt))
    }

    pub fn cancel(&mut self, queue: QueueFate) -> CommandId {
        self.command(Command::Cancel {
            what: CancelWhat::Turn { queue },
            why: CancelWhy::Host,
        })
    }

    /// Time passes; the Client is woken when it asked for it.
    pub fn pass_ms(&mut self, ms: u64) {
        let end = self.now.mono_us + ms * 1_000;
        while let Some(due) = self.client.poll_timeout().filter(|due| due.at_us <= end) {
            let at = due.at_us.max(self.now.mono_us);
            self.now.mono_us = at;
            self.tell(ClientInput::Woken);
            if let Some(next) = self.client.poll_timeout() {
                assert!(next.at_us > at, "L4: a deadline that spins: {next:?}");
            }
        }
        self.now.mono_us = end;
    }

    /// Everything but lines since the last look, in the shorthand of the scenes.
    pub fn events(&mut self) -> String {
        let text = text::events(&self.out);
        self.out.clear();
        text
    }

    /// Lines to the agent since the last look.
    pub fn take_written(&mut self) -> Vec<String> {
        self.seen = 0;
        std::mem::take(&mut self.written)
    }

    /// Texts of the findings.
    pub fn findings(&self) -> Vec<String> {
        let found = self.out.iter().filter_map(|out| match out {
            Out::Finding(finding) => Some(finding.text.to_string()),
            _ => None,
        });
        found.collect()
    }

    /// The reply to a command, which came once.
    pub fn replied(&self, command: CommandId) -> Option<Result<Answer, Refusal>> {
        let mut replies = self.out.iter().filter_map(|out| match out {
            Out::Event(Event {
                what: What::Replied { command: of, reply },
                ..
            }) if *of == command => Some(reply.clone()),
            _ => None,
        });
        let reply = replies.next();
        assert_eq!(replies.next(), None, "replied twice");
        reply
    }

    /// The only event that fits.
    pub fn find<T>(&self, fits: impl Fn(&What) -> Option<T>) -> T {
        let mut found = self.out.iter().filter_map(|out| match out {
            Out::Event(event) => fits(&event.what),
            _ => None,
        });
        let first = found.next();
        assert!(found.next().is_none(), "more than one");
        first.unwrap_or_else(|| panic!("none in {}", text::events(&self.out)))
    }

    /// The question that was asked.
    pub fn asked(&self) -> (AskId, Ask) {
        self.find(|what| match what {
            What::Asked { ask, body } => Some((*ask, body.clone())),
            _ => None,
        })
    }
}

pub fn prompt(id: PromptId, text: &str, deliver: Deliver) -> Prompt {
    Prompt {
        id,
        tag: None,
        content: vec![Block::Text(text.into())],
        deliver,
        literal: false,
        details: None,
    }
}

/// An output as an owned value.
pub fn own<P: Protocol>(output: &ClientOutput<'_, P>) -> Out<P> {
    match output {
        ClientOutput::Event(event) => Out::Event((*event).clone()),
        ClientOutput::Delta(delta) => Out::Event(Event {
            at: delta.at,
            run: delta.run,
            seen: Seen::Real,
            what: What::Delta {
                message: delta.message,
                block: delta.block,
                kind: delta.kind,
                text: delta.text.into(),
            },
        }),
        ClientOutput::Extra(extra) => Out::Extra((*extra).clone()),
        ClientOutput::Ask { ask, .. } => panic!("a Client asks nothing: {ask:?}"),
        ClientOutput::Finding(finding) => Out::Finding((*finding).clone()),
        ClientOutput::CloseInput => Out::CloseInput,
        ClientOutput::Signal(signal) => Out::Signal(*signal),
        ClientOutput::Closed => Out::Closed,
    }
}
