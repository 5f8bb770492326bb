//! The host's end: a Client, and what its embedder knows.

use std::collections::BTreeMap;

use turnwire::{
    protocol::{Client, ClientOutput},
    vocab::{
        laws::{Checker, Scope},
        mirror::Mirror,
        *,
    },
};

use super::{Given, Moment, Said, Speaks};
use crate::script::Host;

/// A host that drives an agent through a Client.
pub struct HostEnd<P: Speaks> {
    /// The Client.
    pub client: Client<P>,
    /// The agent's state, as the Client's events tell it.
    pub mirror: Mirror,
    /// What went in and came out.
    pub log: Vec<Entry>,
    /// The Client has said that the agent is gone.
    pub closed: bool,
    pub(crate) checker: Checker,
    pub(crate) faults: Vec<String>,
    prompts: Vec<PromptId>,
    closed_questions: Vec<AskId>,
    next_command: u64,
    next_prompt: u64,
    owed: BTreeMap<CommandId, Command>,
}

/// One thing that a host did or saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A command, and when.
    In(Given, Now),
    /// An event or a delta.
    Out(Said),
}

/// What the Client wants of its embedder, beside listening.
pub(crate) enum Wish<P: Speaks> {
    Nothing,
    Finding(turnwire::protocol::Finding),
    CloseInput,
    Signal(Signal),
    Ask(u64, P::Ask),
}

impl<P: Speaks> HostEnd<P> {
    /// A host whose agent hasn't said anything yet.
    pub(crate) fn new(config: P::ClientConfig) -> Self {
        HostEnd {
            client: Client::new(config),
            mirror: Mirror::new(),
            log: Vec::new(),
            closed: false,
            checker: Checker::new(Scope::Any),
            faults: Vec::new(),
            prompts: Vec::new(),
            closed_questions: Vec::new(),
            next_command: 1,
            next_prompt: 1,
            owed: BTreeMap::new(),
        }
    }

    /// Gives a command, if the Client takes one.
    pub(crate) fn command(&mut self, command: Command, now: Now) -> Option<Call> {
        if self.closed || !self.client.wants_commands() {
            return None;
        }
        let id = CommandId(self.next_command);
        self.next_command += 1;
        let call = Call { id, command };
        self.checker.command(&call);
        self.owed.insert(id, call.command.clone());
        self.log.push(Entry::In(Given::Call(call.clone()), now));
        self.client.handle_command(call.clone(), now);
        Some(call)
    }

    /// The next output, and the bytes before it.
    pub(crate) fn poll(&mut self, now: Now, lines: &mut Vec<u8>) -> Option<Wish<P>> {
        let due = self.client.poll_timeout();
        let output = self.client.poll_output(lines);
        let some = output.is_some() || !lines.is_empty();
        if some && due.is_none_or(|due| due.at_us > now.mono_us) {
            self.faults.push(format!(
                "L3: the Client had output, and its deadline was {due:?}"
            ));
        }
        let said = match output? {
            ClientOutput::Event(event) => Said::Event(event.clone()),
            ClientOutput::Delta(delta) => Said::from(&Output::Delta(delta)),
            ClientOutput::Extra(_) => return Some(Wish::Nothing),
            ClientOutput::Ask { id, ask } => return Some(Wish::Ask(id, ask.clone())),
            ClientOutput::Finding(finding) => return Some(Wish::Finding(finding.clone())),
            ClientOutput::CloseInput => return Some(Wish::CloseInput),
            ClientOutput::Signal(signal) => return Some(Wish::Signal(signal)),
            ClientOutput::Closed => {
                self.closed = true;
                return Some(Wish::Nothing);
            }
        };
        self.look_at(&said);
        self.log.push(Entry::Out(said));
        Some(Wish::Nothing)
    }

    fn look_at(&mut self, said: &Said) {
        match said {
            Said::Event(event) => {
                self.checker.event(event);
                self.mirror.apply(event);
            }
            Said::Delta {
                at,
                run,
                message,
                block,
                kind,
                text,
            } => self.checker.delta(&DeltaRef {
                at: *at,
                run: *run,
                message: *message,
                block: *block,
                kind: *kind,
                text,
            }),
            Said::Effect(..) => {}
        }
        if let Some(What::AskClosed { ask, .. }) = said.what() {
            self.closed_questions.push(*ask);
        }
        if let Some(What::Replied { command, reply }) = said.what()
            && let Some(known) = self.owed.remove(command)
            && !P::says(&known)
        {
            // What comes before the agent has said what it is may find no room to wait in.
            let refused = matches!(
                reply,
                Err(Refusal::Unsupported(_)
                    | Refusal::Full
                    | Refusal::Closing
                    | Refusal::Failed(_))
            );
            if !refused {
                let fault = format!("TW-09: {reply:?} to {known:?}, which can't be said");
                self.faults.push(fault);
            }
        }
    }

    /// What happened, in order.
    pub fn story(&self) -> impl Iterator<Item = Moment<'_>> {
        self.log.iter().map(|entry| match entry {
            Entry::In(given, now) => Moment::In(given, *now),
            Entry::Out(said) => Moment::Out(said),
        })
    }

    /// Commands that no reply has come for.
    pub fn owed(&self) -> impl Iterator<Item = &Command> {
        self.owed.values()
    }
}

impl<P: Speaks> Host for HostEnd<P> {
    fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    fn prompts(&self) -> &[PromptId] {
        &self.prompts
    }

    fn closed_questions(&self) -> &[AskId] {
        &self.closed_questions
    }

    fn prompt(&mut self, text: &str, deliver: Deliver) -> Prompt {
        let id = PromptId(self.next_prompt);
        self.next_prompt += 1;
        self.prompts.push(id);
        Prompt {
            id,
            tag: None,
            // Each has a text of its own: where a wire has no other name for a prompt, it is known by it.
            content: vec![Block::Text(format!("{text} {}", id.0).into())],
            deliver,
            literal: false,
            details: None,
        }
    }
}
