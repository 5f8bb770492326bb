//! The smallest agent there can be: prompts when idle, one request a turn, no tools.
//! It can be told to have a bug, so that the watchers are watched too.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use turnwire::vocab::*;

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    None,
    /// Prompts end twice.
    EndsTwice,
    /// A cancel isn't replied to.
    SilentCancel,
    /// Replies come last.
    LateReply,
    /// A cancelled turn finishes.
    CancelledFinishes,
    /// Output isn't announced by the timeout.
    Unannounced,
    /// The deadline never moves.
    Spins,
    /// A failed request is never followed by anything.
    Hangs,
    /// A settlement that comes twice is taken.
    TakesTwice,
    /// Text that was streamed is missing in the message.
    LosesText,
    /// It never says Closed.
    NeverCloses,
    /// The request's body is gone.
    NoBody,
}

pub struct Fake {
    bug: Bug,
    out: VecDeque<Queued>,
    lent: Option<Event>,
    lent_text: String,
    last: u64,
    ids: u64,
    turn: Option<Turn>,
    live: BTreeSet<RequestId>,
    stopped: BTreeSet<RequestId>,
    seen: BTreeSet<PromptId>,
    history: Vec<Arc<Message>>,
    closing: bool,
    closed: bool,
}

enum Queued {
    Event(Box<Event>),
    Delta {
        at: Now,
        message: MessageId,
        text: String,
    },
    Effect(Effect),
}

struct Turn {
    id: TurnId,
    step: StepId,
    prompt: PromptId,
    request: RequestId,
    message: Option<(MessageId, String)>,
    finish: Option<Text>,
    stall_at: u64,
}

const STALL_US: u64 = 10_000_000;

impl Fake {
    pub fn new(bug: Bug) -> Self {
        Self {
            bug,
            out: VecDeque::new(),
            lent: None,
            lent_text: String::new(),
            last: 0,
            ids: 0,
            turn: None,
            live: BTreeSet::new(),
            stopped: BTreeSet::new(),
            seen: BTreeSet::new(),
            history: Vec::new(),
            closing: false,
            closed: false,
        }
    }

    fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    fn say(&mut self, now: Now, what: What) {
        self.out.push_back(Queued::Event(Box::new(Event {
            at: now,
            run: RunId::MAIN,
            seen: Seen::Real,
            what,
        })));
    }

    fn reply(&mut self, now: Now, command: CommandId, reply: Result<Answer, Refusal>) {
        self.say(now, What::Replied { command, reply });
    }

    fn message(&mut self, role: Role, text: &str, prompt: Option<PromptId>) -> Arc<Message> {
        let id = MessageId(self.id());
        let content = if text.is_empty() {
            vec![]
        } else {
            vec![Arc::new(Block::Text(Text::from(text)))]
        };
        let origin = Origin::Host;
        Arc::new(Message {
            id,
            role,
            content,
            origin,
            prompt,
            about: None,
            at_ms: 0,
            details: None,
        })
    }

    fn command(&mut self, call: Call, now: Now) {
        let id = call.id;
        match call.command {
            Command::Prompt(prompt) if !self.seen.contains(&prompt.id) => {
                match (&self.turn, self.closing) {
                    (_, true) => self.reply(now, id, Err(Refusal::Closing)),
                    (Some(_), _) => self.reply(now, id, Err(Refusal::Busy)),
                    (None, _) => self.start(id, &prompt, now),
                }
            }
            Command::Prompt(_) => self.reply(now, id, Ok(Answer::Admitted(Admitted::Duplicate))),
            Command::Withdraw(_) => self.reply(now, id, Ok(Answer::Withdrawn(false))),
            Command::Cancel {
                what: CancelWhat::Turn { .. } | CancelWhat::Everything,
                why,
            } => match &self.turn {
                Some(turn) if self.bug != Bug::SilentCancel => {
                    let hit = Hit::Turn(turn.id);
                    if self.bug == Bug::LateReply {
                        let text = Text::from("first");
                        self.say(
                            now,
                            What::Notice {
                                level: Level::Info,
                                code: None,
                                text,
                            },
                        );
                    }
                    self.reply(
                        now,
                        id,
                        Ok(Answer::Cancelling {
                            hit,
                            queued: vec![],
                        }),
                    );
                    self.cancel(why, now);
                }
                Some(_) => self.cancel(why, now),
                None => self.reply(
                    now,
                    id,
                    Ok(Answer::Cancelling {
                        hit: Hit::Nothing,
                        queued: vec![],
                    }),
                ),
            },
            Command::Cancel { .. } => self.reply(
                now,
                id,
                Ok(Answer::Cancelling {
                    hit: Hit::Nothing,
                    queued: vec![],
                }),
            ),
            Command::Reply { .. } | Command::ReplyPart { .. } | Command::Promote(_) => {
                self.reply(now, id, Err(Refusal::Unknown));
            }
            Command::Barrier => self.reply(now, id, Ok(Answer::Done)),
            Command::Close { drain } => {
                self.reply(now, id, Ok(Answer::Done));
                self.closing = true;
                if !drain {
                    self.cancel(CancelWhy::PeerGone, now);
                }
                self.close(now);
            }
            _ => self.reply(now, id, Err(Refusal::Unsupported("fake"))),
        }
    }

    fn start(&mut self, id: CommandId, prompt: &Prompt, now: Now) {
        self.seen.insert(prompt.id);
        self.reply(now, id, Ok(Answer::Admitted(Admitted::Started)));
        let (turn, step, request) = (TurnId(self.id()), StepId(self.id()), RequestId(self.id()));
        self.say(
            now,
            What::TurnStarted {
                turn,
                cause: Cause::Prompt,
            },
        );
        self.say(now, What::StepStarted { step, number: 1 });
        self.say(
            now,
            What::PromptApplied {
                prompt: prompt.id,
                turn: Some(turn),
            },
        );
        let message = self.message(Role::User, "do it", Some(prompt.id));
        self.history.push(Arc::clone(&message));
        self.say(now, What::Message(message));
        self.say(
            now,
            What::RequestStarted {
                request,
                attempt: 1,
            },
        );
        self.out
            .push_back(Queued::Effect(Effect::StartModel(request)));
        self.live.insert(request);
        let (message, finish, stall_at) = (None, None, now.mono_us + STALL_US);
        self.turn = Some(Turn {
            id: turn,
            step,
            prompt: prompt.id,
            request,
            message,
            finish,
            stall_at,
        });
    }

    fn cancel(&mut self, why: CancelWhy, now: Now) {
        let Some(turn) = &self.turn else { return };
        self.live.remove(&turn.request);
        self.stopped.insert(turn.request);
        self.out
            .push_back(Queued::Effect(Effect::StopModel(turn.request)));
        let finished = End::Finished { finish: None };
        let end = if self.bug == Bug::CancelledFinishes {
            finished
        } else {
            End::Cancelled(why)
        };
        self.over(RequestOutcome::Cancelled, end, now);
    }

    fn over(&mut self, outcome: RequestOutcome, end: End, now: Now) {
        let Some(turn) = self.turn.take() else { return };
        if let Some((id, mut text)) = turn.message {
            if self.bug == Bug::LosesText {
                text.pop();
            }
            let message = self.message(Role::Assistant, &text, None);
            let message = Arc::new(Message {
                id,
                ..(*message).clone()
            });
            self.history.push(Arc::clone(&message));
            self.say(
                now,
                What::MessageEnded {
                    message,
                    stop: Stop::End,
                    kept: true,
                    calls: CallList::Complete,
                },
            );
        }
        let model = ModelRef {
            provider: None,
            model: Text::from("fake"),
        };
        let (request, cost) = (turn.request, Cost::NotSaid);
        self.say(
            now,
            What::RequestEnded {
                request,
                outcome,
                model,
                usage: None,
                cost,
                api_us: 0,
            },
        );
        self.say(now, What::StepEnded { step: turn.step });
        let (report, pending) = (Box::default(), Pending::default());
        self.say(
            now,
            What::TurnEnded {
                turn: turn.id,
                end: end.clone(),
                answer: None,
                report,
                pending,
            },
        );
        for _ in 0..if self.bug == Bug::EndsTwice { 2 } else { 1 } {
            self.say(
                now,
                What::PromptEnded {
                    prompt: turn.prompt,
                    end: end.clone(),
                },
            );
        }
        self.say(now, What::Settled);
        self.close(now);
    }

    fn close(&mut self, now: Now) {
        if self.closing && !self.closed && self.turn.is_none() && self.bug != Bug::NeverCloses {
            self.say(
                now,
                What::Closed {
                    why: CloseWhy::Drained,
                },
            );
            self.closed = true;
        }
    }

    fn chunk(&mut self, request: RequestId, chunk: ModelChunk<'_>, now: Now) -> Result<(), Misuse> {
        if !self.live.contains(&request) && !self.stopped.contains(&request) {
            let known = request.0 <= self.ids && self.bug == Bug::TakesTwice;
            return if known {
                Ok(())
            } else {
                Err(Misuse::AlreadySettled)
            };
        }
        if chunk.settles() {
            self.stopped.remove(&request);
        }
        if !self.live.contains(&request) {
            return Ok(());
        }
        let Some(turn) = &mut self.turn else {
            return Ok(());
        };
        match chunk {
            ModelChunk::Text(text) if !text.is_empty() => {
                turn.stall_at = now.mono_us + STALL_US;
                let fresh = turn.message.is_none();
                let next = MessageId(self.ids + 1);
                let (id, all) = turn.message.get_or_insert_with(|| (next, String::new()));
                all.push_str(text);
                let (message, text) = (*id, text.to_owned());
                if fresh {
                    self.id();
                    let request = Some(request);
                    self.say(
                        now,
                        What::MessageStarted {
                            message,
                            request,
                            provider_id: None,
                            model: None,
                            usage: None,
                        },
                    );
                    self.say(
                        now,
                        What::BlockStarted {
                            message,
                            block: 0,
                            head: BlockHead::Text,
                        },
                    );
                }
                self.out.push_back(Queued::Delta {
                    at: now,
                    message,
                    text,
                });
            }
            ModelChunk::Finish(word) => turn.finish = Some(Text::from(word)),
            ModelChunk::End | ModelChunk::Failed { .. } => {
                self.live.remove(&request);
                match turn.finish.take() {
                    Some(finish) => {
                        let end = End::Finished {
                            finish: Some(finish.clone()),
                        };
                        self.over(RequestOutcome::Complete { finish }, end, now);
                    }
                    None if self.bug == Bug::Hangs => turn.stall_at = u64::MAX,
                    None => {
                        let cut = Failure::new(FailureKind::StreamCut, "cut");
                        self.over(RequestOutcome::Truncated, End::Truncated(cut), now);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Agent for Fake {
    fn handle(&mut self, input: Input<'_>, now: Now) -> Result<(), Misuse> {
        if now.mono_us < self.last {
            return Err(Misuse::TimeWentBack);
        }
        if let Input::Model { request, chunk } = &input
            && !self.live.contains(request)
            && !self.stopped.contains(request)
        {
            return self.chunk(*request, chunk.clone(), now);
        }
        self.last = now.mono_us;
        let due = |at: u64| matches!(input, Input::Woken) && at <= now.mono_us || at < now.mono_us;
        if self.turn.as_ref().is_some_and(|turn| due(turn.stall_at)) && self.bug != Bug::Spins {
            if let Some(turn) = &self.turn {
                self.out
                    .push_back(Queued::Effect(Effect::StopModel(turn.request)));
                self.live.remove(&turn.request);
                self.stopped.insert(turn.request);
            }
            let stall = Failure::new(FailureKind::StreamCut, "stalled");
            self.over(RequestOutcome::Truncated, End::Truncated(stall), now);
        }
        match input {
            Input::Call(call) if !self.closed => self.command(call, now),
            Input::Model { request, chunk } => return self.chunk(request, chunk, now),
            _ => {}
        }
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output<'_>> {
        Some(match self.out.pop_front()? {
            Queued::Event(event) => Output::Event(self.lent.insert(*event)),
            Queued::Effect(effect) => Output::Effect {
                run: RunId::MAIN,
                effect,
            },
            Queued::Delta { at, message, text } => {
                self.lent_text = text;
                let text = &self.lent_text;
                Output::Delta(DeltaRef {
                    at,
                    run: RunId::MAIN,
                    message,
                    block: 0,
                    kind: Kind::Text,
                    text,
                })
            }
        })
    }

    fn poll_timeout(&self) -> Option<Due> {
        if !self.out.is_empty() && self.bug != Bug::Unannounced {
            return Some(Due {
                at_us: self.last,
                why: "output",
            });
        }
        let at_us = self.turn.as_ref()?.stall_at;
        (at_us < u64::MAX).then_some(Due {
            at_us,
            why: "stall",
        })
    }

    fn wants_input(&self) -> bool {
        true
    }

    fn wants_bulk(&self) -> bool {
        true
    }

    fn body(&self, _run: RunId, effect: &Effect) -> Option<EffectBody<'_>> {
        match effect {
            Effect::StartModel(request)
                if self.live.contains(request) && self.bug != Bug::NoBody =>
            {
                let (model, messages, tools) = ("fake", &*self.history, &[][..]);
                Some(EffectBody::Model(ModelRequest {
                    model,
                    system: None,
                    messages,
                    tools,
                    max_output: None,
                    thinking: None,
                    thinking_budget: None,
                }))
            }
            _ => None,
        }
    }
}
