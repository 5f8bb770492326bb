//! A reference model of a session: what may be seen next, for each of the ten guarantees TW-01 … TW-10.
//!
//! It is much simpler than what it judges. It sees what goes in and what comes out, in order, remembers a few sets of
//! ids, and says of each output whether it can stand there. It never looks inside an agent, shares no code with one,
//! and is apart from [`turnwire::vocab::laws::Checker`], which says the same things in the words of the state machine.
//! Both ends of a wire can be judged by it: the agent by what its driver sees, a Client by what its embedder sees.
// Each guarantee looks at a few kinds of event and leaves the rest to the others.
#![allow(clippy::wildcard_enum_match_arm)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use turnwire::{session::config::Gates, vocab::*};

use crate::world::{Chunk, Given, Moment, Said};

/// A guarantee that didn't hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The guarantee: `TW-01` … `TW-10`.
    pub id: &'static str,
    /// The output that broke it, counted from 1; 0 for what is missing at the end.
    pub output: usize,
    /// How.
    pub why: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at output {}: {}", self.id, self.output, self.why)
    }
}

/// What is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// A session of ours, with the writes that its events wait for.
    Session(Gates),
    /// A Client: another agent's stream, as its embedder sees it. Replies come when the agent has answered, and
    /// there are no effects.
    Client,
}

/// The model. See the [module](self).
#[derive(Debug)]
pub struct Reference {
    judged: Judged,
    broken: Vec<Broken>,
    outputs: usize,
    commands: BTreeMap<CommandId, Command>,
    /// The command of the last input, and whether it was refused.
    last: Option<(CommandId, bool)>,
    /// Prompts admitted and not ended.
    open: BTreeSet<PromptId>,
    ended: BTreeSet<PromptId>,
    turn: Option<TurnId>,
    /// A cancel of the running turn was answered.
    cancelled: bool,
    compacting: bool,
    /// Reply text was shown in this step.
    shown: bool,
    request: Option<RequestId>,
    /// Requests whose completion signal was handed over.
    complete: BTreeSet<RequestId>,
    message: Option<(MessageId, u32)>,
    /// Calls of the newest message.
    named: Vec<CallId>,
    /// Calls that may begin.
    startable: BTreeSet<CallId>,
    started: BTreeSet<CallId>,
    over: BTreeSet<CallId>,
    asked: BTreeMap<AskId, Option<CallId>>,
    asks_closed: BTreeSet<AskId>,
    /// Questions that a host allowed.
    allows: BTreeSet<AskId>,
    /// Calls that were asked about, and whether they may run.
    gated: BTreeMap<CallId, bool>,
    writes: Writes,
    closed: bool,
}

/// Writes, and which of them something waits for.
#[derive(Debug, Default)]
struct Writes {
    /// The newest one that isn't a setting's.
    waits: Option<WriteId>,
    of_settings: BTreeSet<WriteId>,
    /// The last input was a setting, or the end of a setting's write.
    setting: bool,
    /// The last input changes permission rules: its first write may be theirs, and nothing waits for that.
    beside: bool,
}

impl Reference {
    /// A model of a stream that hasn't begun.
    pub fn new(judged: Judged) -> Self {
        Reference {
            judged,
            broken: Vec::new(),
            outputs: 0,
            commands: BTreeMap::new(),
            last: None,
            open: BTreeSet::new(),
            ended: BTreeSet::new(),
            turn: None,
            cancelled: false,
            compacting: false,
            shown: false,
            request: None,
            complete: BTreeSet::new(),
            message: None,
            named: Vec::new(),
            startable: BTreeSet::new(),
            started: BTreeSet::new(),
            over: BTreeSet::new(),
            asked: BTreeMap::new(),
            asks_closed: BTreeSet::new(),
            allows: BTreeSet::new(),
            gated: BTreeMap::new(),
            writes: Writes::default(),
            closed: false,
        }
    }

    /// Judges a whole story.
    pub fn judge<'a>(judged: Judged, story: impl IntoIterator<Item = Moment<'a>>) -> Vec<Broken> {
        let mut model = Reference::new(judged);
        for moment in story {
            match moment {
                Moment::In(given, _) => model.input(given),
                Moment::Out(said) => model.output(said),
            }
        }
        model.finish()
    }

    /// What goes in.
    pub fn input(&mut self, given: &Given) {
        self.last = None;
        self.writes.setting = false;
        self.writes.beside = changes_rules(given);
        match given {
            Given::Call(call) => {
                self.last = Some((call.id, false));
                match &call.command {
                    Command::Reply {
                        ask,
                        reply: Ok(Reply::Allow { .. }),
                    } => drop(self.allows.insert(*ask)),
                    Command::Set(Setting::Approvals(_)) => self.writes.setting = true,
                    _ => {}
                }
                self.commands.insert(call.id, call.command.clone());
            }
            Given::Model(request, Chunk::Finish(_)) => drop(self.complete.insert(*request)),
            Given::Else(Input::Store { write, .. }) => {
                self.writes.setting = self.writes.of_settings.contains(write);
                if self.writes.waits == Some(*write) {
                    self.writes.waits = None;
                }
            }
            _ => {}
        }
    }

    /// What comes out.
    pub fn output(&mut self, said: &Said) {
        self.outputs += 1;
        let refused = matches!(self.last, Some((_, true)));
        self.must(!refused, "TW-09", || {
            format!("{said} after a command that was refused")
        });
        self.must(!self.closed, "TW-02", || {
            format!("{said} after the end of all")
        });
        match said {
            // What is within nested runs, the checker of the neutral stream looks at.
            Said::Delta { run, .. } | Said::Effect(run, _) if *run != RunId::MAIN => {}
            Said::Delta {
                message,
                block,
                kind,
                text,
                ..
            } => {
                // A provider may send the arguments of several calls by turns.
                let by_turns = *kind == Kind::Input;
                let fits = self
                    .message
                    .is_some_and(|(open, last)| open == *message && (by_turns || last <= *block));
                self.must(fits, "TW-03", || {
                    format!("{said}: its message isn't open there")
                });
                if let Some((_, last)) = &mut self.message {
                    *last = (*last).max(*block);
                }
                self.must(self.turn.is_some(), "TW-02", || {
                    format!("{said} outside a turn")
                });
                self.shown |= *kind == Kind::Text && !text.is_empty();
            }
            Said::Effect(_, effect) => self.effect(said, effect),
            Said::Event(event) if event.run == RunId::MAIN => {
                self.inside(said, &event.what);
                self.prompts(said, &event.what);
                self.turns(said, &event.what);
                self.messages(said, &event.what);
                self.calls(said, &event.what);
                self.asks(said, &event.what);
            }
            Said::Event(_) => {}
        }
    }

    fn must(&mut self, holds: bool, id: &'static str, why: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(Broken {
                id,
                output: self.outputs,
                why: why(),
            });
        }
    }

    /// TW-02: what belongs to a turn stands in one.
    fn inside(&mut self, said: &Said, what: &What) {
        let of_turn = matches!(
            what,
            What::StepStarted { .. }
                | What::StepEnded { .. }
                | What::RequestStarted { .. }
                | What::RequestEnded { .. }
                | What::RetryScheduled { .. }
                | What::RetryEnded { .. }
                | What::MessageStarted { .. }
                | What::BlockStarted { .. }
                | What::BlockEnded { .. }
                | What::MessageEnded { .. }
                | What::ToolStarted { .. }
                | What::Decided { .. }
                | What::ToolProgress { .. }
                | What::ToolEnded { .. }
                | What::ToolSkipped { .. }
                | What::CompletionRefused { .. }
        );
        self.must(!of_turn || self.turn.is_some(), "TW-02", || {
            format!("{said} outside a turn")
        });
    }

    /// TW-01: one end for each admitted prompt, and room for the next one then.
    fn prompts(&mut self, said: &Said, what: &What) {
        match what {
            What::Replied { command, reply } => {
                let known = self.commands.remove(command);
                if let Some((last, refused)) = &mut self.last
                    && *last == *command
                    && matches!(self.judged, Judged::Session(_))
                {
                    *refused = reply.is_err();
                }
                self.cancelled |= self.turn.is_some()
                    && reply.as_ref().ok().and_then(Answer::cancelled_turn) == self.turn;
                let Some(Command::Prompt(prompt)) = known else {
                    return;
                };
                match reply {
                    Ok(Answer::Admitted(Admitted::Duplicate)) => {}
                    Ok(_) => {
                        self.open.insert(prompt.id);
                    }
                    Err(Refusal::Busy) => {
                        let busy = self.turn.is_some() || self.compacting;
                        let at_once = matches!(self.judged, Judged::Session(_));
                        self.must(busy || !at_once, "TW-01", || {
                            format!("{said} and nothing runs")
                        });
                    }
                    Err(_) => {}
                }
            }
            What::PromptApplied { prompt, .. } if prompt.is_session_made() => {
                self.open.insert(*prompt);
            }
            What::Queued { prompt, .. } if prompt.is_session_made() => {
                self.open.insert(*prompt);
            }
            What::PromptEnded { prompt, .. } => {
                let once = self.ended.insert(*prompt);
                self.must(once, "TW-01", || format!("{said} for the second time"));
                let open = self.open.remove(prompt);
                self.must(open || !once, "TW-01", || {
                    format!("{said} of no admitted prompt")
                });
            }
            _ => {}
        }
    }

    /// TW-04, TW-07, TW-08: steps, requests and the end.
    fn turns(&mut self, said: &Said, what: &What) {
        // What a cancel has crossed a host still sees.
        let calm = !self.cancelled || self.judged == Judged::Client;
        match what {
            What::TurnStarted { turn, .. } => {
                self.must(self.turn.is_none(), "TW-01", || format!("{said} in a turn"));
                self.turn = Some(*turn);
                self.cancelled = false;
            }
            What::StepStarted { .. } => {
                self.must(calm, "TW-07", || format!("{said} in a cancelled turn"));
                self.shown = false;
                self.gate(|gates| gates.prompt, said);
            }
            What::RequestStarted { request, .. } => {
                self.must(calm, "TW-07", || format!("{said} in a cancelled turn"));
                self.request = Some(*request);
            }
            What::RequestEnded { outcome, .. } => {
                let complete = matches!(outcome, RequestOutcome::Complete { .. });
                self.must(calm || !complete, "TW-07", || {
                    format!("{said} in a cancelled turn")
                });
                if complete {
                    self.whole(said);
                }
                self.named.clear();
                self.request = None;
            }
            What::RetryScheduled { .. } => {
                let shown = self.shown;
                self.must(!shown, "TW-04", || format!("{said} after text was shown"));
            }
            What::CompletionRefused { .. } => self.gate(|gates| gates.refusal, said),
            What::TurnEnded { turn, end, .. } => {
                self.must(self.turn == Some(*turn), "TW-01", || {
                    format!("{said}, and it doesn't run")
                });
                let won = !self.cancelled || end.is_cancelled();
                self.must(won, "TW-07", || format!("{said} though it was cancelled"));
                self.gate(|gates| gates.turn_end, said);
                self.turn = None;
                self.cancelled = false;
            }
            What::CompactionStarted { .. } => self.compacting = true,
            What::CompactionEnded { .. } => self.compacting = false,
            What::Notice {
                code: Some(code), ..
            } if &**code == "store" => self.writes.waits = None,
            What::Closed { .. } => {
                self.must(self.turn.is_none(), "TW-01", || format!("{said} in a turn"));
                self.closed = true;
            }
            _ => {}
        }
    }

    /// TW-08: an event that a write gates waits for it.
    fn gate(&mut self, gates: impl Fn(&Gates) -> bool, said: &Said) {
        if let Judged::Session(all) = self.judged
            && gates(&all)
        {
            let waits = self.writes.waits;
            self.must(waits.is_none(), "TW-08", || {
                format!("{said} before {waits:?}")
            });
        }
    }

    /// TW-05: the calls of a reply may begin once its request is complete, and only with a completion signal.
    fn whole(&mut self, said: &Said) {
        if let (Judged::Session(_), Some(request)) = (self.judged, self.request) {
            let signal = self.complete.contains(&request);
            self.must(signal, "TW-05", || {
                format!("{said} without a completion signal")
            });
        }
        self.startable.extend(self.named.drain(..));
    }

    /// TW-03: one end for each message.
    fn messages(&mut self, said: &Said, what: &What) {
        match what {
            What::MessageStarted { message, .. } => {
                self.must(self.message.is_none(), "TW-03", || {
                    format!("{said} in a message")
                });
                self.message = Some((*message, 0));
            }
            What::MessageEnded { message, .. } => {
                let open = self.message.take().map(|(open, _)| open);
                self.must(open == Some(message.id), "TW-03", || {
                    format!("{said} of a message that isn't open")
                });
                self.named = message.calls().collect();
            }
            What::TurnEnded { .. } | What::RequestEnded { .. } => {
                self.must(self.message.is_none(), "TW-03", || {
                    format!("{said} in a message")
                });
            }
            _ => {}
        }
    }

    /// TW-05: one end for each start.
    fn calls(&mut self, said: &Said, what: &What) {
        match what {
            What::ToolStarted { call, .. } => {
                let calm = !self.cancelled || self.judged == Judged::Client;
                self.must(calm, "TW-07", || format!("{said} in a cancelled turn"));
                let may = self.startable.contains(call) || self.judged == Judged::Client;
                self.must(may, "TW-05", || format!("{said} of no complete reply"));
                let once = self.started.insert(*call);
                self.must(once, "TW-05", || format!("{said} twice"));
            }
            What::ToolEnded { call, .. } => {
                let begun = self.started.contains(call);
                self.must(begun, "TW-05", || format!("{said} and never began"));
                let once = self.over.insert(*call);
                self.must(once, "TW-05", || format!("{said} twice"));
            }
            What::StepEnded { .. } | What::TurnEnded { .. } => {
                let open: Vec<_> = self.started.difference(&self.over).copied().collect();
                self.must(open.is_empty(), "TW-05", || {
                    format!("{said}, and {open:?} run")
                });
                self.over.extend(open);
            }
            _ => {}
        }
    }

    /// TW-06: one close for each question, and nothing but an allow allows.
    fn asks(&mut self, said: &Said, what: &What) {
        match what {
            What::Asked { ask, body } => {
                let once = !self.asked.contains_key(ask);
                self.must(once, "TW-06", || format!("{said} twice"));
                let call = match body {
                    Ask::Permission(body) if !matches!(body.reason, AskReason::Network { .. }) => {
                        body.call
                    }
                    _ => None,
                };
                self.asked.insert(*ask, call);
                if let Some(call) = call {
                    self.gated.insert(call, false);
                }
            }
            What::AskClosed { ask, how } => {
                let known = self.asked.contains_key(ask);
                let once = self.asks_closed.insert(*ask);
                self.must(known && once, "TW-06", || {
                    format!("{said}, and it isn't open")
                });
                let (allow, by_host) = match how {
                    AskClose::Answered { by, allow } => {
                        (*allow == Some(true), *by == Decider::Host)
                    }
                    _ => (false, false),
                };
                let Some(Some(call)) = self.asked.get(ask).copied() else {
                    return;
                };
                let fair = !allow || !by_host || self.allows.contains(ask);
                self.must(fair, "TW-06", || format!("{said}, and nobody allowed it"));
                self.gated.insert(call, allow);
            }
            What::Decided { call, verdict } if verdict.allow => {
                let asked = self.gated.get(call).copied().unwrap_or(true);
                self.must(asked, "TW-06", || {
                    format!("{said}, and its question wasn't allowed")
                });
            }
            _ => {}
        }
    }

    fn effect(&mut self, said: &Said, effect: &Effect) {
        match effect {
            Effect::RunTool { call } => {
                let may = self.started.contains(call) && !self.over.contains(call);
                self.must(may, "TW-05", || format!("{said}, and it hasn't begun"));
                let allowed = self.gated.get(call).copied().unwrap_or(true);
                self.must(allowed, "TW-06", || {
                    format!("{said}, and it wasn't allowed")
                });
            }
            Effect::Store(write) => {
                if self.writes.setting {
                    self.writes.of_settings.insert(*write);
                } else if !std::mem::take(&mut self.writes.beside) {
                    self.writes.waits = Some(*write);
                }
            }
            _ => {}
        }
    }

    /// The end of the stream: what is owed if it was closed.
    pub fn finish(mut self) -> Vec<Broken> {
        self.outputs = 0;
        if self.closed {
            let open = std::mem::take(&mut self.open);
            self.must(open.is_empty(), "TW-01", || format!("{open:?} never ended"));
            let open: Vec<_> = self.started.difference(&self.over).copied().collect();
            self.must(open.is_empty(), "TW-05", || format!("{open:?} never ended"));
            let asked = std::mem::take(&mut self.asked);
            let open: Vec<_> = asked
                .keys()
                .filter(|ask| !self.asks_closed.contains(ask))
                .collect();
            self.must(open.is_empty(), "TW-06", || {
                format!("{open:?} were never closed")
            });
        }
        self.broken
    }
}

/// Whether an input is an answer that changes permission rules.
fn changes_rules(given: &Given) -> bool {
    match given {
        Given::Call(Call {
            command: Command::Reply {
                reply: Ok(reply), ..
            },
            ..
        }) => match reply {
            Reply::Allow { updates, .. } => !updates.is_empty(),
            Reply::Hook(hook) => !hook.updates.is_empty(),
            _ => false,
        },
        Given::Else(Input::Hook {
            outcome: Ok(hook), ..
        }) => !hook.updates.is_empty(),
        _ => false,
    }
}
