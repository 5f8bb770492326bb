//! Commands: each gets its line, or its refusal, and one reply.

use alloc::string::String;
use alloc::vec::Vec;

use super::asks::quoted;
use super::books::{Sent, Wire};
use super::convert::joined;
use super::prompts::{Known, Stage};
use super::turn::Abort;
use super::{Changing, ClientFace, Closing, Out};
use crate::json::{Raw, Str};
use crate::protocol::omp::Generation;
use crate::protocol::omp::wire::{
    Abort as AbortLine, AbortAndPrompt, AbortAndRestoreQueue, AbortBash, AbortRetry, Any, Bash,
    Branch, CancelSubagent, Command as Line, Compact, Fork, GetState, Goal as GoalLine, GoalOp,
    HostScheme, HostTool, Image, ImageBlock, InterruptMode, Kept, NewSession, OpenSession,
    PromoteQueuedMessage, Prompt as PromptLine, QueueMode, RemoveQueuedMessage, SetAutoCompaction,
    SetAutoRetry, SetFollowUpMode, SetHostTools, SetHostUriSchemes, SetInterruptMode, SetModel,
    SetSessionName, SetSteeringMode, SetThinkingLevel, SteerSubagent, Streaming, SwitchSession,
};
use crate::vocab::*;

impl ClientFace {
    /// Acts on a command.
    pub(super) fn act(&mut self, call: Call, out: &mut Out) {
        let Call { id, command } = call;
        if let Command::Close { drain } = command {
            return self.close(id, drain, out);
        }
        if self.is_input_closed() {
            // What only waits for the end may be said all the same.
            if let Command::Cancel {
                why: CancelWhy::Signal(signal),
                ..
            } = command
            {
                return self.signal(id, signal, out);
            }
            return refuse(id, Refusal::Closing, out);
        }
        if self.books.is_full() {
            return refuse(id, Refusal::Full, out);
        }
        match command {
            Command::Prompt(prompt) => self.prompt(id, prompt, out),
            Command::Withdraw(prompt) => self.withdraw(id, prompt, out),
            Command::Promote(prompt) => self.promote(id, prompt, out),
            Command::Cancel { what, why } => self.cancel(id, &what, why, out),
            Command::Reply { ask, reply } => self.reply(id, ask, &reply, out),
            Command::ReplyPart { ask, content } => {
                let part = self.asks.part(ask, &content, out);
                out.reply(id, Seen::Inferred, part.map(|()| Answer::Sent));
            }
            Command::Set(setting) => self.set(id, setting, out),
            Command::Offer(offer) => self.offer(id, &offer, out),
            Command::Compact { instructions } => {
                let line = Compact {
                    custom_instructions: instructions.as_deref().map(Str::from),
                    ..Compact::default()
                };
                self.books.send(id, line.into(), Sent::Compact(id), out);
            }
            Command::Goal(goal) => self.goal(id, &goal, out),
            Command::Shell { command } => {
                let line = Bash {
                    command: (&*command).into(),
                    ..Bash::default()
                };
                self.books.send(id, line.into(), Sent::Shell(id), out);
            }
            Command::Session(what) => self.session(id, &what, out),
            Command::SteerRun { run, prompt } => self.steer_run(id, run, &prompt, out),
            Command::Barrier => {
                let line = GetState::default();
                self.books.send(id, line.into(), Sent::Barrier(id), out);
            }
            Command::Recall(_) => refuse(id, Refusal::Unsupported("history from the host"), out),
            Command::Rewind { .. } => refuse(id, Refusal::Unsupported("rewind"), out),
            Command::Reload => refuse(id, Refusal::Unsupported("reload"), out),
            Command::Job(_) => refuse(id, Refusal::Unsupported("background jobs"), out),
            Command::Close { .. } => {}
        }
    }

    fn prompt(&mut self, id: CommandId, prompt: Prompt, out: &mut Out) {
        if self.closing != Closing::Open {
            return refuse(id, Refusal::Closing, out);
        }
        if self.newest.is_some_and(|newest| prompt.id <= newest) {
            let answer = Answer::Admitted(Admitted::Duplicate);
            return out.reply(id, Seen::Inferred, Ok(answer));
        }
        let busy = self.is_busy();
        let lane = match prompt.deliver {
            Deliver::Context => {
                let what = "prompts that cause no turn";
                return refuse(id, Refusal::Unsupported(what), out);
            }
            Deliver::Steer {
                idle: IdleSteer::Drop,
            } if !busy => return self.drop_steer(id, prompt.id, out),
            Deliver::Steer {
                idle: IdleSteer::DropUnlessQueued,
            } if !busy && self.prompts.is_empty() => return self.drop_steer(id, prompt.id, out),
            Deliver::Steer { .. } if busy => Some(Lane::Steer),
            // The rank among prompts that wait is lost: this wire has one queue for them.
            Deliver::FollowUp | Deliver::Queue(_) if busy => Some(Lane::FollowUp),
            Deliver::IfIdle
            | Deliver::Preempt
            | Deliver::FollowUp
            | Deliver::Queue(_)
            | Deliver::Steer { .. } => None,
        };
        let preempts = prompt.deliver == Deliver::Preempt && busy;
        let text = match text_of(&prompt.content) {
            Ok(text) => text,
            Err(refusal) => return refuse(id, refusal, out),
        };
        // A prompt's own line would run what begins with a slash; the one that aborts first doesn't.
        let as_it_is = prompt.literal && text.trim_start().starts_with('/');
        if as_it_is && busy && !preempts {
            let what = "a text that begins with a slash, taken as it is, while a turn runs";
            return refuse(id, Refusal::Unsupported(what), out);
        }
        let full = self.prompts.len() >= self.config.queued_prompts
            || self.prompts.bytes().saturating_add(text.len()) > self.config.queued_bytes;
        if full {
            return refuse(id, Refusal::Full, out);
        }
        self.newest = Some(prompt.id);
        let images = images(&prompt.content);
        let message = (&*text).into();
        if preempts {
            self.aborts.push(Abort {
                wire: Wire::of(id),
                command: None,
                why: CancelWhy::Preempted(prompt.id),
                compacting: false,
                answered: false,
            });
            self.stopping();
        }
        let line = if preempts || as_it_is {
            Line::from(AbortAndPrompt {
                message,
                images,
                ..AbortAndPrompt::default()
            })
        } else {
            Line::from(PromptLine {
                message,
                images,
                streaming_behavior: lane.map(|lane| match lane {
                    Lane::Steer => Streaming::Steer,
                    Lane::FollowUp | Lane::Next | Lane::Later => Streaming::FollowUp,
                }),
                ..PromptLine::default()
            })
        };
        self.books.send(id, line, Sent::Prompt(prompt.id), out);
        self.prompts.push(Known {
            id: prompt.id,
            command: id,
            wire: Wire::of(id),
            text: joined(&prompt.content),
            lane,
            preempts,
            stage: Stage::Sent,
        });
    }

    fn drop_steer(&mut self, id: CommandId, prompt: PromptId, out: &mut Out) {
        self.newest = Some(prompt);
        let answer = Answer::Admitted(Admitted::Queued(Lane::Steer));
        out.reply(id, Seen::Inferred, Ok(answer));
        let end = End::Dropped(DropWhy::Idle);
        out.infer(What::PromptEnded { prompt, end });
    }

    /// The text of a prompt that waits in the agent's queue, and its lane.
    fn waiting(&mut self, prompt: PromptId) -> Option<(String, Lane)> {
        let known = self.prompts.get(prompt)?;
        let lane = known.lane.filter(|_| known.stage == Stage::Admitted)?;
        Some((known.text.clone(), lane))
    }

    fn withdraw(&mut self, id: CommandId, prompt: PromptId, out: &mut Out) {
        if self.generation < Generation::G3 {
            let what = "taking back a prompt that waits";
            return refuse(id, Refusal::Unsupported(what), out);
        }
        let Some((text, lane)) = self.waiting(prompt) else {
            return out.reply(id, Seen::Inferred, Ok(Answer::Withdrawn(false)));
        };
        let mut buffer = Vec::new();
        let queue = match lane {
            Lane::Steer => "\"steering\"",
            Lane::FollowUp | Lane::Next | Lane::Later => "\"followUp\"",
        };
        let line = RemoveQueuedMessage {
            message: Any(Some(quoted(&mut buffer, &text))),
            queue: Any(Some(Raw::trusted(queue))),
            ..RemoveQueuedMessage::default()
        };
        let sent = Sent::Withdraw(id, prompt);
        self.books.send(id, line.into(), sent, out);
    }

    fn promote(&mut self, id: CommandId, prompt: PromptId, out: &mut Out) {
        if self.closing != Closing::Open {
            return refuse(id, Refusal::Closing, out);
        }
        if self.generation < Generation::G3 {
            let what = "moving a prompt that waits";
            return refuse(id, Refusal::Unsupported(what), out);
        }
        let Some((text, _)) = self.waiting(prompt) else {
            return refuse(id, Refusal::Unknown, out);
        };
        let mut buffer = Vec::new();
        let line = PromoteQueuedMessage {
            message: Any(Some(quoted(&mut buffer, &text))),
            ..PromoteQueuedMessage::default()
        };
        let sent = Sent::Promote(id, prompt);
        self.books.send(id, line.into(), sent, out);
    }

    fn cancel(&mut self, id: CommandId, what: &CancelWhat, why: CancelWhy, out: &mut Out) {
        if let CancelWhy::Signal(signal) = why {
            return self.signal(id, signal, out);
        }
        match what {
            CancelWhat::Turn {
                queue: QueueFate::Keep | QueueFate::Run,
            }
            | CancelWhat::TurnElseNextQueued
            | CancelWhat::Compaction => self.abort(id, why, false, out),
            CancelWhat::Turn {
                queue: QueueFate::Drop,
            } => self.abort(id, why, true, out),
            CancelWhat::Everything => {
                self.abort(id, why, true, out);
                let line = Line::from(AbortBash::default());
                self.books.send_own(line, Sent::Quiet, out);
            }
            CancelWhat::Retry => {
                let line = AbortRetry::default();
                self.books.send(id, line.into(), Sent::StopRetry(id), out);
            }
            CancelWhat::Shell => {
                let line = AbortBash::default();
                self.books.send(id, line.into(), Sent::StopShell(id), out);
            }
            CancelWhat::Run(run) => {
                let Some(wire) = self.runs.wire(*run) else {
                    let (hit, queued) = (Hit::Nothing, self.prompts.queued());
                    let answer = Answer::Cancelling { hit, queued };
                    return out.reply(id, Seen::Inferred, Ok(answer));
                };
                let line = CancelSubagent {
                    subagent_id: wire.into(),
                    ..CancelSubagent::default()
                };
                self.books.send(id, line.into(), Sent::StopRun(id), out);
            }
            CancelWhat::Job(_) => {
                refuse(id, Refusal::Unsupported("cancel of a background job"), out);
            }
        }
    }

    /// Cancels the turn. `drops`: what waits is to go with it.
    fn abort(&mut self, id: CommandId, why: CancelWhy, drops: bool, out: &mut Out) {
        let line = if drops && self.generation >= Generation::G3 {
            Line::from(AbortAndRestoreQueue::default())
        } else {
            if drops && !self.prompts.queued().is_empty() {
                out.finding("this program can't drop the prompts that wait; they stay queued");
            }
            Line::from(AbortLine::default())
        };
        self.books.send(id, line, Sent::Abort(id), out);
        self.aborts.push(Abort {
            wire: Wire::of(id),
            command: Some(id),
            why,
            compacting: self.compacting,
            answered: false,
        });
        self.stopping();
    }

    fn stopping(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.flow.stopping = true;
        }
    }

    /// A signal is passed on as one: the agent cancels, and leaves with its code.
    fn signal(&mut self, id: CommandId, signal: Signal, out: &mut Out) {
        self.signal = Some(signal);
        out.signal(signal);
        let queued = self.prompts.queued();
        let hit = match &mut self.turn {
            Some(turn) => {
                turn.cancel.get_or_insert(CancelWhy::Signal(signal));
                Hit::Turn(turn.id)
            }
            None => Hit::Nothing,
        };
        out.reply(id, Seen::Inferred, Ok(Answer::Cancelling { hit, queued }));
        self.cancel_hits(out);
    }

    fn reply(
        &mut self,
        id: CommandId,
        ask: AskId,
        reply: &Result<Reply, ReplyFault>,
        out: &mut Out,
    ) {
        let call = self.asks.call_of(ask);
        let closed = match self.asks.write(ask, reply, out) {
            Ok(closed) => closed,
            Err(refusal) => return refuse(id, refusal, out),
        };
        out.reply(id, Seen::Inferred, Ok(Answer::Sent));
        let calls = self.turn.as_mut().map(|turn| &mut turn.flow.calls);
        self.asks.answered(ask, closed, calls, out);
        if let Ok(Reply::Deny {
            interrupt: true, ..
        }) = reply
        {
            let line = Line::from(AbortLine::default());
            let wire = self.books.send_own(line, Sent::Quiet, out);
            self.aborts.push(Abort {
                wire,
                command: None,
                why: call.map_or(CancelWhy::Host, CancelWhy::Denied),
                compacting: false,
                answered: false,
            });
            self.stopping();
        }
    }

    fn set(&mut self, id: CommandId, setting: Setting, out: &mut Out) {
        let mut buffer = Vec::new();
        let mut other = Vec::new();
        let line = match &setting {
            Setting::Thinking(Some(level)) => Line::from(SetThinkingLevel {
                level: Any(Some(quoted(&mut buffer, level))),
                ..SetThinkingLevel::default()
            }),
            Setting::Thinking(None) => {
                let what = "the default thinking level";
                return refuse(id, Refusal::Unsupported(what), out);
            }
            Setting::Model(Some(name)) => {
                let (provider, model) = match name.split_once('/') {
                    Some((provider, model)) => (Text::from(provider), model),
                    None => match &self.info.model.provider {
                        Some(provider) => (provider.clone(), &**name),
                        None => {
                            let text = "name the model as provider/id".into();
                            return refuse(id, Refusal::Invalid(text), out);
                        }
                    },
                };
                Line::from(SetModel {
                    provider: Any(Some(quoted(&mut buffer, &provider))),
                    model_id: Any(Some(quoted(&mut other, model))),
                    ..SetModel::default()
                })
            }
            Setting::Model(None) => {
                return refuse(id, Refusal::Unsupported("the default model"), out);
            }
            Setting::SteerDrain(drain) => Line::from(SetSteeringMode {
                mode: queue_mode(*drain),
                ..SetSteeringMode::default()
            }),
            Setting::FollowUpDrain(drain) => Line::from(SetFollowUpMode {
                mode: queue_mode(*drain),
                ..SetFollowUpMode::default()
            }),
            Setting::Interrupting(what) => Line::from(SetInterruptMode {
                mode: match what {
                    Interrupting::Immediate => InterruptMode::Immediate,
                    Interrupting::Wait => InterruptMode::Wait,
                },
                ..SetInterruptMode::default()
            }),
            Setting::AutoRetry(enabled) => Line::from(SetAutoRetry {
                enabled: *enabled,
                ..SetAutoRetry::default()
            }),
            Setting::AutoCompact(enabled) => Line::from(SetAutoCompaction {
                enabled: *enabled,
                ..SetAutoCompaction::default()
            }),
            Setting::Name(name) => Line::from(SetSessionName {
                name: (&**name).into(),
                ..SetSessionName::default()
            }),
            Setting::Approvals(_) => {
                let what = "another approval mode while it runs";
                return refuse(id, Refusal::Unsupported(what), out);
            }
            Setting::ThinkingBudget(_) => {
                return refuse(id, Refusal::Unsupported("a thinking budget"), out);
            }
        };
        self.books
            .send(id, line, Sent::Set(id, setting.clone()), out);
    }

    fn offer(&mut self, id: CommandId, offer: &Offer, out: &mut Out) {
        let mut buffers: Vec<[Vec<u8>; 2]> = Vec::new();
        let line = match offer {
            Offer::Tools(tools) => {
                buffers.resize(tools.len(), [Vec::new(), Vec::new()]);
                let each = tools.iter().zip(&mut buffers);
                let tools = each.map(|(tool, [name, about])| {
                    Kept::Known(HostTool {
                        name: Any(Some(quoted(name, &tool.name))),
                        label: tool.label.as_deref().map(Str::from),
                        description: Any(Some(quoted(about, &tool.description))),
                        parameters: Any(Some(Raw::trusted(tool.schema.as_str()))),
                        hidden: tool.hidden.then_some(true),
                        // As a plain function; a discoverable one may be hidden behind an address.
                        load_mode: Some("essential".into()),
                        ..HostTool::default()
                    })
                });
                Line::from(SetHostTools {
                    tools: tools.collect(),
                    ..SetHostTools::default()
                })
            }
            Offer::Uris(schemes) => {
                buffers.resize(schemes.len(), [Vec::new(), Vec::new()]);
                let each = schemes.iter().zip(&mut buffers);
                let schemes = each.map(|(uri, [scheme, _])| {
                    Kept::Known(HostScheme {
                        scheme: Any(Some(quoted(scheme, &uri.scheme))),
                        description: uri.description.as_deref().map(Str::from),
                        writable: Some(uri.writable),
                        immutable: Some(uri.immutable),
                        ..HostScheme::default()
                    })
                });
                Line::from(SetHostUriSchemes {
                    schemes: schemes.collect(),
                    ..SetHostUriSchemes::default()
                })
            }
            Offer::Hooks(_) => return refuse(id, Refusal::Unsupported("hooks of the host"), out),
        };
        self.books.send(id, line, Sent::Offer(id), out);
    }

    fn goal(&mut self, id: CommandId, goal: &GoalCommand, out: &mut Out) {
        let mut budget = Vec::new();
        let (op, objective, tokens) = match goal {
            GoalCommand::Get => (GoalOp::Get, None, None),
            GoalCommand::Set {
                text, token_budget, ..
            } => (GoalOp::Create, Some(&**text), *token_budget),
            GoalCommand::Pause => (GoalOp::Pause, None, None),
            GoalCommand::Resume => (GoalOp::Resume, None, None),
            GoalCommand::Clear => (GoalOp::Drop, None, None),
        };
        if let Some(tokens) = tokens {
            crate::json::write_u64(&mut budget, tokens);
        }
        let number = core::str::from_utf8(&budget).unwrap_or_default();
        let line = GoalLine {
            op,
            objective: objective.map(Str::from),
            token_budget: Any((!number.is_empty()).then(|| Raw::trusted(number))),
            ..GoalLine::default()
        };
        self.books.send(id, line.into(), Sent::Goal(id), out);
    }

    fn session(&mut self, id: CommandId, what: &SessionCommand, out: &mut Out) {
        if self.closing != Closing::Open {
            return refuse(id, Refusal::Closing, out);
        }
        let mut buffer = Vec::new();
        let line = match what {
            SessionCommand::New { parent } => Line::from(NewSession {
                parent_session: parent.as_deref().map(Str::from),
                ..NewSession::default()
            }),
            SessionCommand::Open(folder) => Line::from(OpenSession {
                session_dir: (&**folder).into(),
                ..OpenSession::default()
            }),
            SessionCommand::Switch(path) => Line::from(SwitchSession {
                session_path: (&**path).into(),
                ..SwitchSession::default()
            }),
            SessionCommand::Branch(entry) => Line::from(Branch {
                entry_id: Any(Some(quoted(&mut buffer, entry))),
                ..Branch::default()
            }),
            SessionCommand::Fork(entry) => Line::from(Fork {
                entry_id: entry.as_deref().map(Str::from),
                ..Fork::default()
            }),
        };
        self.books.send(id, line, Sent::Session(id), out);
        self.changing = Some(Changing {
            command: id,
            done: None,
        });
    }

    fn steer_run(&mut self, id: CommandId, run: RunId, prompt: &Prompt, out: &mut Out) {
        let Some(wire) = self.runs.wire(run) else {
            return refuse(id, Refusal::Unknown, out);
        };
        let text = match text_of(&prompt.content) {
            Ok(text) if images(&prompt.content).is_none() => text,
            Ok(_) => {
                let what = "pictures for a subagent";
                return refuse(id, Refusal::Unsupported(what), out);
            }
            Err(refusal) => return refuse(id, refusal, out),
        };
        let line = SteerSubagent {
            subagent_id: wire.into(),
            message: (&*text).into(),
            ..SteerSubagent::default()
        };
        let line = Line::from(line);
        self.books.send(id, line, Sent::SteerRun(id), out);
    }

    fn close(&mut self, id: CommandId, drain: bool, out: &mut Out) {
        out.reply(id, Seen::Inferred, Ok(Answer::Done));
        match (self.closing, drain) {
            (Closing::Open, true) => self.closing = Closing::Draining,
            (Closing::Open | Closing::Draining, false) => {
                self.close_input(true, out);
                for early in core::mem::take(&mut self.early) {
                    refuse(early.id(), Refusal::Closing, out);
                }
            }
            (Closing::Draining | Closing::Sent { .. }, true) | (Closing::Sent { .. }, false) => {}
        }
    }
}

fn queue_mode(drain: Drain) -> QueueMode<'static> {
    match drain {
        Drain::One => QueueMode::OneAtATime,
        Drain::All => QueueMode::All,
    }
}

/// The text of a prompt, as this wire can carry it: text, and pictures beside it.
fn text_of(content: &[Block]) -> Result<String, Refusal> {
    for block in content {
        match block {
            Block::Text(_)
            | Block::Media {
                kind: MediaKind::Image,
                source: Source::Inline { .. },
            } => {}
            Block::Media { .. }
            | Block::Thinking { .. }
            | Block::Redacted(_)
            | Block::ToolUse { .. }
            | Block::ToolResult { .. }
            | Block::Opaque(_) => {
                return Err(Refusal::Unsupported("content other than text and pictures"));
            }
        }
    }
    Ok(joined(content))
}

fn images(content: &[Block]) -> Option<Vec<Kept<'_, Image<'_>>>> {
    let inline = content.iter().filter_map(|block| match block {
        Block::Media {
            source: Source::Inline { mime, base64 },
            ..
        } => Some(Kept::Known(Image(ImageBlock {
            data: (&**base64).into(),
            mime_type: (&**mime).into(),
            ..ImageBlock::default()
        }))),
        Block::Media { .. }
        | Block::Text(_)
        | Block::Thinking { .. }
        | Block::Redacted(_)
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Opaque(_) => None,
    });
    let images: Vec<_> = inline.collect();
    (!images.is_empty()).then_some(images)
}

pub(super) fn refuse(id: CommandId, refusal: Refusal, out: &mut Out) {
    out.reply(id, Seen::Inferred, Err(refusal));
}
