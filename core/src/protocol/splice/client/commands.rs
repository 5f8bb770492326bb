//! Commands: the prompt, and ways to end.

use alloc::vec::Vec;

use super::super::wire::{Image, Input};
use super::{Asked, ClientFace, Out, State};
use crate::vocab::*;

impl ClientFace {
    pub(super) fn act(&mut self, call: Call, out: &mut Out) {
        let Call { id, command } = call;
        match command {
            Command::Prompt(prompt) => self.ask(id, prompt, out),
            Command::Cancel { what, why } => self.cancel(id, &what, why, out),
            Command::Close { drain } => self.close(id, drain, out),
            Command::Barrier => out.reply(id, Seen::Inferred, Ok(Answer::Done)),
            Command::Withdraw(_) => out.reply(id, Seen::Inferred, Ok(Answer::Withdrawn(false))),
            Command::Promote(_) => refuse(id, Refusal::Unsupported("an order of prompts"), out),
            Command::ReplyPart { .. } => refuse(id, Refusal::Unsupported("tools of the host"), out),
            // Questions are closed as they are asked.
            Command::Reply { ask, .. } => {
                let known = self.calls.was_asked(ask);
                let refusal = if known {
                    Refusal::AlreadySettled
                } else {
                    Refusal::Unknown
                };
                refuse(id, refusal, out);
            }
            Command::Set(_) => refuse(id, Refusal::Unsupported("settings"), out),
            Command::Offer(_) => refuse(id, Refusal::Unsupported("offers of the host"), out),
            Command::Recall(_) => refuse(id, Refusal::Unsupported("history from the host"), out),
            Command::Compact { .. } => {
                refuse(id, Refusal::Unsupported("compaction on demand"), out);
            }
            Command::Rewind { .. } => refuse(id, Refusal::Unsupported("rewind"), out),
            Command::Reload => refuse(id, Refusal::Unsupported("reload"), out),
            Command::Goal(_) => refuse(id, Refusal::Unsupported("goals"), out),
            Command::Job(_) => refuse(id, Refusal::Unsupported("background jobs"), out),
            Command::Shell { .. } => refuse(id, Refusal::Unsupported("shell commands"), out),
            Command::Session(_) => refuse(id, Refusal::Unsupported("session changes"), out),
            Command::SteerRun { .. } => refuse(id, Refusal::Unsupported("steering of runs"), out),
        }
    }

    /// The one prompt: its line, and the end of the input.
    fn ask(&mut self, command: CommandId, prompt: Prompt, out: &mut Out) {
        if self.state != State::Open || self.drain.is_some() {
            return refuse(command, Refusal::Closing, out);
        }
        if matches!(prompt.deliver, Deliver::Steer { .. } | Deliver::Context) {
            let what = Refusal::Unsupported("prompts within a turn");
            return refuse(command, what, out);
        }
        if prompt.is_blank() {
            return refuse(command, Refusal::Empty, out);
        }
        let mut text = alloc::string::String::new();
        let mut images = Vec::new();
        for block in &prompt.content {
            match block {
                Block::Text(piece) => {
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(piece);
                }
                Block::Media {
                    kind: MediaKind::Image,
                    source: Source::Inline { mime, base64 },
                } => images.push(Image {
                    media_type: (&**mime).into(),
                    data: (&**base64).into(),
                }),
                Block::Media { .. } => {
                    let what = Refusal::Unsupported("media that aren't pictures at hand");
                    return refuse(command, what, out);
                }
                Block::Thinking { .. }
                | Block::Redacted(_)
                | Block::ToolUse { .. }
                | Block::ToolResult { .. }
                | Block::Opaque(_) => {
                    return refuse(command, Refusal::Unsupported("such content"), out);
                }
            }
        }
        let content = text.as_str().into();
        let line = if images.is_empty() {
            Input::Prompt { content }
        } else {
            Input::Message { content, images }
        };
        out.line(|bytes| line.encode(bytes));
        drop(line);
        out.close_input();
        self.state = State::Sent;
        self.asked = Some(Asked {
            command,
            id: prompt.id,
            content: prompt.content,
        });
    }

    fn cancel(&mut self, id: CommandId, what: &CancelWhat, why: CancelWhy, out: &mut Out) {
        let stops = match what {
            CancelWhat::Turn { .. } | CancelWhat::TurnElseNextQueued | CancelWhat::Everything => {
                matches!(self.state, State::Sent | State::Running)
            }
            CancelWhat::Retry
            | CancelWhat::Compaction
            | CancelWhat::Shell
            | CancelWhat::Job(_)
            | CancelWhat::Run(_) => false,
        };
        let hit = match &self.main {
            Some(main) if stops => Hit::Turn(main.turn()),
            Some(_) | None => Hit::Nothing,
        };
        let queued = Vec::new();
        out.reply(id, Seen::Inferred, Ok(Answer::Cancelling { hit, queued }));
        if hit != Hit::Nothing {
            self.bound = true;
            let stage = self.stage.as_mut().map(|stage| &mut stage.region);
            for region in self.main.iter_mut().chain(stage) {
                region.bind();
            }
        }
        if stops {
            self.stop(why, out);
        }
    }

    /// Sends the signal; a second one would change nothing.
    fn stop(&mut self, why: CancelWhy, out: &mut Out) {
        if self.stopped.is_some() {
            return;
        }
        let signal = match why {
            CancelWhy::Signal(signal) => signal,
            CancelWhy::Host
            | CancelWhy::PeerGone
            | CancelWhy::Preempted(_)
            | CancelWhy::Denied(_)
            | CancelWhy::Switch
            | CancelWhy::Fault(_) => Signal::Interrupt,
        };
        self.stopped = Some(why);
        out.signal(signal);
    }

    fn close(&mut self, id: CommandId, drain: bool, out: &mut Out) {
        out.reply(id, Seen::Inferred, Ok(Answer::Done));
        if self.state == State::Open && self.drain.is_none() {
            out.close_input();
        }
        if !drain && matches!(self.state, State::Sent | State::Running) {
            self.stop(CancelWhy::Host, out);
        }
        // What was told first isn't taken back by a later drain.
        self.drain = Some(drain && self.drain != Some(false));
    }
}

fn refuse(command: CommandId, why: Refusal, out: &mut Out) {
    out.reply(command, Seen::Inferred, Err(why));
}
