//! Answers of the agent to what was asked of it.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::books::{Entry, Sent};
use super::convert::raw;
use super::{ClientFace, Out};
use crate::json::{Lazy, Raw};
use crate::protocol::agentx::wire::{Answer as Told, ControlResponse, Response};
use crate::protocol::heard::narrow;
use crate::vocab::*;

/// Answers of the host's that an agent may repeat.
const MOST_ANSWERED: usize = 1_024;

/// The requests of the agent that were answered: with replays on, it repeats the answers.
#[derive(Debug, Default)]
pub(super) struct Answered {
    ids: VecDeque<String>,
}

impl Answered {
    pub(super) fn put(&mut self, id: &str) {
        if self.ids.len() >= MOST_ANSWERED {
            self.ids.pop_front();
        }
        self.ids.push_back(id.into());
    }

    fn has(&self, id: &str) -> bool {
        self.ids.iter().any(|known| known == id)
    }
}

impl ClientFace {
    /// `control_response`. `false`: it answers nothing, and is passed on as it is.
    pub(super) fn response(&mut self, told: &ControlResponse<'_>, out: &mut Out) -> bool {
        let Some(response) = told.known() else {
            out.finding("a response without a body that can be read");
            return false;
        };
        let Some(id) = response.request_id.name() else {
            out.finding("a response without the id of a request");
            return false;
        };
        let entry = match self.books.take(id) {
            Ok(Some(entry)) => entry,
            Ok(None) => {
                out.finding(format!("a second response to {}", super::calls::cut_id(id)));
                return false;
            }
            // An echo of what the host has answered.
            Err(()) if self.answered.has(id) => return true,
            Err(()) => {
                let id = super::calls::cut_id(id);
                out.finding(format!("a response to {id}, which nobody sent"));
                return false;
            }
        };
        if response.is_error() {
            let text = response.error_text().unwrap_or_default();
            self.failed(entry, text, out);
        } else {
            self.succeeded(entry, response, out);
        }
        true
    }

    fn failed(&mut self, entry: Entry, text: &str, out: &mut Out) {
        let failure = Failure::new(FailureKind::Internal, text);
        match entry.sent {
            Sent::Initialize(offers) => {
                out.finding(format!(
                    "the agent refuses to be greeted: {}",
                    crate::protocol::heard::cut(text)
                ));
                for command in offers {
                    let refusal = Refusal::Failed(failure.clone());
                    out.reply(command, Seen::Real, Err(refusal));
                }
                self.needs_session(out);
            }
            Sent::Drop(_) | Sent::Quiet => {}
            Sent::Interrupt(command, _)
            | Sent::Set(command, _)
            | Sent::Withdraw(command, _)
            | Sent::Rewind(command)
            | Sent::StopJob(command)
            | Sent::StopRun(command, _)
            | Sent::Reload(command)
            | Sent::Raw(command) => {
                out.reply(command, Seen::Real, Err(Refusal::Failed(failure)));
            }
        }
    }

    fn succeeded(&mut self, entry: Entry, response: &Response<'_>, out: &mut Out) {
        let told = match Told::decode(&entry.name, response.response) {
            Ok(told) => told,
            Err(error) => {
                out.finding(format!("the answer to {}: {error}", entry.name));
                Told::Nothing
            }
        };
        match entry.sent {
            Sent::Initialize(offers) => self.initialized(&told, offers, out),
            Sent::Interrupt(command, why) => {
                let hit = self.interrupted(why, out);
                let queued = if let Told::StillQueued(it) = &told {
                    let queued = it.still_queued.iter();
                    queued.filter_map(|uuid| self.prompts.of(uuid)).collect()
                } else {
                    self.prompts.ids()
                };
                let answer = Answer::Cancelling { hit, queued };
                out.reply(command, Seen::Real, Ok(answer));
            }
            Sent::Set(command, setting) => self.was_set(command, setting, &told, out),
            Sent::Withdraw(command, prompt) => {
                let cancelled = matches!(&told, Told::MessageCancelled(it) if it.cancelled);
                let waits = self.prompts.get(prompt).is_some();
                let withdrawn = cancelled && waits;
                out.reply(command, Seen::Real, Ok(Answer::Withdrawn(withdrawn)));
                if withdrawn {
                    self.forget_due(prompt);
                    self.end_prompt(prompt, End::Withdrawn, Seen::Real, out);
                }
            }
            Sent::Drop(prompt) => {
                if matches!(&told, Told::MessageCancelled(it) if it.cancelled) {
                    self.forget_due(prompt);
                    let end = End::Dropped(DropWhy::Cancelled);
                    self.end_prompt(prompt, end, Seen::Real, out);
                }
            }
            Sent::Rewind(command) => out.reply(command, Seen::Real, rewound(&told)),
            Sent::StopJob(command) => {
                let answer = Answer::JobStop(JobStop::Stopped);
                out.reply(command, Seen::Real, Ok(answer));
            }
            Sent::StopRun(command, hit) => {
                let queued = self.prompts.ids();
                let answer = Answer::Cancelling { hit, queued };
                out.reply(command, Seen::Real, Ok(answer));
            }
            Sent::Reload(command) => {
                let answer = self.reloaded(&told, out);
                out.reply(command, Seen::Real, Ok(answer));
            }
            Sent::Raw(command) => {
                let answer = match response.response.get() {
                    Some(payload) => Answer::Raw(raw(payload)),
                    None => Answer::Done,
                };
                out.reply(command, Seen::Real, Ok(answer));
            }
            Sent::Quiet => {}
        }
        self.settle_quietly(out);
    }

    fn initialized(&mut self, told: &Told<'_>, offers: Vec<CommandId>, out: &mut Out) {
        let news = matches!(told, Told::Initialized(it) if self.learn_initialized(it));
        if self.opened {
            if news {
                self.changed(Seen::Real, out);
            }
        } else {
            self.session_opened(Seen::Real, out);
        }
        for command in offers {
            out.reply(command, Seen::Real, Ok(Answer::Done));
        }
    }

    fn was_set(&mut self, command: CommandId, setting: Setting, told: &Told<'_>, out: &mut Out) {
        out.reply(command, Seen::Real, Ok(Answer::Done));
        // What the agent says that it has taken counts.
        let news = match (told, setting) {
            (Told::ModelSet(it), Setting::Model(_)) => {
                self.take_setting(Setting::Model(Some((&*it.model).into())))
            }
            (Told::ModeSet(it), Setting::Approvals(_)) => self.learn_mode(&it.mode),
            (_, setting) => self.take_setting(setting),
        };
        if news {
            self.changed(Seen::Real, out);
        }
    }

    fn reloaded(&mut self, told: &Told<'_>, out: &mut Out) -> Answer {
        let Told::PluginsReloaded(it) = told else {
            return Answer::Done;
        };
        let commands = it.commands.iter().filter_map(|command| command.known());
        let commands: Vec<_> = commands
            .map(|command| {
                (
                    Text::from(&*command.name),
                    Text::from(&*command.description),
                    Text::from(&*command.argument_hint),
                )
            })
            .collect();
        let mcp = super::state::servers(&it.mcp_servers);
        let news = self.info.commands != commands || self.info.mcp != mcp;
        self.info.commands = commands;
        self.info.mcp = mcp;
        if news {
            self.changed(Seen::Real, out);
        }
        let count = |count: usize| narrow(u64::try_from(count).unwrap_or(u64::MAX));
        Answer::Reloaded {
            tools: count(self.info.tools.len()),
            skills: count(self.info.skills.len()),
            changes: Vec::new(),
        }
    }

    /// A prompt that is taken back isn't applied any more.
    fn forget_due(&mut self, prompt: PromptId) {
        if let Some(turn) = &mut self.turn {
            turn.forget(prompt);
        }
    }
}

fn rewound(told: &Told<'_>) -> Result<Answer, Refusal> {
    let Told::Rewound(it) = told else {
        return Ok(Answer::Done);
    };
    let count = |number: Option<&crate::protocol::agentx::wire::Num<'_>>| {
        number.and_then(|number| number.u64()).map_or(0, narrow)
    };
    if let (false, Some(error)) = (it.can_rewind, &it.error) {
        let error: &Lazy<'_> = error;
        let failure = Failure::new(FailureKind::Store, &**error);
        return Err(Refusal::Failed(failure));
    }
    let files = it.files_changed.as_deref().unwrap_or_default();
    Ok(Answer::Rewound {
        can: it.can_rewind,
        files: files.iter().map(|file| (&**file).into()).collect(),
        added: count(it.insertions.as_ref()),
        removed: count(it.deletions.as_ref()),
    })
}

/// The whole line, as it came.
pub(super) fn whole(content: &[u8]) -> RawJson {
    let text = core::str::from_utf8(content).unwrap_or("null");
    raw(Raw::trusted(text.trim()))
}
