//! Commands: each gets its line, or its refusal, and one reply.

use alloc::string::String;
use alloc::vec::Vec;

use super::books::Sent;
use super::convert::{has_attachments, prompt_content, quoted};
use super::prompts::Known;
use super::runs::Task;
use super::{ClientFace, Closing, Out};
use crate::json::{self, Raw};
use crate::protocol::agentx::neutral::mode_word;
use crate::protocol::agentx::policy::{ContentBlocks, HookAndMcp, InitializeFields};
use crate::protocol::agentx::wire::{
    Any, CancelAsyncMessage, Interrupt, Operation, ReloadPlugins, RewindFiles,
    SetMaxThinkingTokens, SetModel, SetPermissionMode, StopTask,
};
use crate::protocol::ids::uuid;
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
            Command::Cancel { what, why } => self.cancel(id, &what, why, out),
            Command::Reply { ask, reply } => self.reply(id, ask, &reply, out),
            Command::ReplyPart { .. } => {
                refuse(id, Refusal::Unsupported("parts of an answer"), out)
            }
            Command::Set(setting) => self.set(id, setting, out),
            Command::Offer(offer) => self.offer(id, &offer, out),
            Command::Rewind { to, dry_run } => self.rewind(id, to, dry_run, out),
            Command::Reload => {
                let operation = Operation::from(ReloadPlugins::default());
                self.books.send(&operation, Sent::Reload(id), out);
            }
            Command::Job(job) => self.job(id, &job, out),
            Command::Recall(_) => refuse(id, Refusal::Unsupported("history from the host"), out),
            Command::Barrier => out.reply(id, Seen::Inferred, Ok(Answer::Done)),
            Command::Promote(_) => refuse(id, Refusal::Unsupported("moving a prompt"), out),
            Command::Compact { .. } => refuse(id, Refusal::Unsupported("compaction"), out),
            Command::Goal(_) => refuse(id, Refusal::Unsupported("goals"), out),
            Command::Shell { .. } => refuse(id, Refusal::Unsupported("shell commands"), out),
            Command::Session(_) => refuse(id, Refusal::Unsupported("another session"), out),
            Command::SteerRun { .. } => refuse(id, Refusal::Unsupported("steering a run"), out),
            Command::Close { .. } => {}
        }
    }

    /// Whether the agent is at work, as far as is known.
    pub(super) fn is_busy(&self) -> bool {
        self.turn.is_some() || !self.prompts.is_empty()
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
        let (rank, word, lane) = match prompt.deliver {
            Deliver::IfIdle if busy => return refuse(id, Refusal::Busy, out),
            Deliver::Context => {
                let what = "prompts that cause no turn";
                return refuse(id, Refusal::Unsupported(what), out);
            }
            Deliver::Steer {
                idle: IdleSteer::Drop | IdleSteer::DropUnlessQueued,
            } if !busy => return self.drop_steer(id, prompt.id, out),
            Deliver::Preempt => (0, Some("now"), Lane::Next),
            Deliver::Queue(Rank::Later) => (2, Some("later"), Lane::Later),
            // This wire has no place for words into a running turn: they get the next one.
            Deliver::IfIdle
            | Deliver::Queue(Rank::Next)
            | Deliver::Steer { .. }
            | Deliver::FollowUp => (1, None, Lane::Next),
        };
        if prompt.is_blank() {
            return refuse(id, Refusal::Empty, out);
        }
        let media = self.config.policy.content_blocks == ContentBlocks::TextAndMedia;
        let content = match prompt_content(&prompt.content, media) {
            Ok(content) => content,
            Err(refusal) => return refuse(id, refusal, out),
        };
        let full = self.prompts.len() >= self.config.queued_prompts
            || self.prompts.bytes().saturating_add(content.len()) > self.config.queued_bytes;
        if full {
            return refuse(id, Refusal::Full, out);
        }
        let uuid = match self.uuid_of(prompt.tag.as_deref()) {
            Ok(uuid) => uuid,
            Err(refusal) => return refuse(id, refusal, out),
        };
        self.newest = Some(prompt.id);
        let versioned = has_attachments(&prompt.content);
        out.line(|line| {
            line.extend_from_slice(b"{\"type\":\"user\",\"message\":{\"role\":\"user\",");
            if versioned {
                line.extend_from_slice(b"\"content_version\":1,");
            }
            line.extend_from_slice(b"\"content\":");
            json::write_raw_line_safe(line, super::convert::ours(&content));
            line.extend_from_slice(b"},\"parent_tool_use_id\":null,\"session_id\":\"\",\"uuid\":");
            json::write_str_line_safe(line, &uuid);
            if let Some(word) = word.filter(|_| busy) {
                line.extend_from_slice(b",\"priority\":");
                json::write_str(line, word);
            }
            line.push(b'}');
        });
        let admitted = if busy {
            Admitted::Queued(lane)
        } else {
            Admitted::Started
        };
        out.reply(id, Seen::Inferred, Ok(Answer::Admitted(admitted)));
        if busy {
            let prompt = prompt.id;
            out.infer(What::Queued { prompt, lane });
        }
        if let (0, Some(turn)) = (rank, &mut self.turn) {
            turn.wished.get_or_insert(CancelWhy::Preempted(prompt.id));
            turn.flow.stopping = true;
        }
        self.uuids.put(prompt.id, &uuid);
        self.prompts.push(Known {
            id: prompt.id,
            uuid,
            bytes: content.len(),
            content: prompt.content,
            rank,
            queued: busy,
            told: false,
            local: false,
        });
    }

    /// The prompt's id on the wire: the embedder's, if that can be one, else a fresh one.
    fn uuid_of(&mut self, tag: Option<&str>) -> Result<String, Refusal> {
        let odd = |tag: &str| {
            tag.is_empty()
                || tag.len() > 256
                || tag.chars().any(|it| it.is_whitespace() || it.is_control())
        };
        match tag {
            Some(tag) if odd(tag) => Err(Refusal::Invalid("the tag can't be an id".into())),
            Some(tag) if self.prompts.of(tag).is_some() || self.prompts.is_done(tag) => {
                Err(Refusal::Invalid("the tag was another prompt's".into()))
            }
            Some(tag) => Ok(tag.into()),
            None => {
                self.minted += 1;
                Ok(uuid(&self.config.seed, self.minted))
            }
        }
    }

    fn drop_steer(&mut self, id: CommandId, prompt: PromptId, out: &mut Out) {
        self.newest = Some(prompt);
        let answer = Answer::Admitted(Admitted::Queued(Lane::Steer));
        out.reply(id, Seen::Inferred, Ok(answer));
        let end = End::Dropped(DropWhy::Idle);
        out.infer(What::PromptEnded { prompt, end });
    }

    /// Whether the operations of the wider wire are there.
    fn is_wide(&self) -> bool {
        self.config.policy.hook_and_mcp_controls == HookAndMcp::Implemented
    }

    fn withdraw(&mut self, id: CommandId, prompt: PromptId, out: &mut Out) {
        if !self.is_wide() {
            let what = "taking back a prompt";
            return refuse(id, Refusal::Unsupported(what), out);
        }
        let Some(uuid) = self.prompts.get(prompt).map(|known| known.uuid.clone()) else {
            return out.reply(id, Seen::Inferred, Ok(Answer::Withdrawn(false)));
        };
        self.cancel_message(&uuid, Sent::Withdraw(id, prompt), out);
    }

    fn cancel_message(&mut self, uuid: &str, sent: Sent, out: &mut Out) {
        let operation = Operation::from(CancelAsyncMessage {
            message_uuid: uuid.into(),
            ..CancelAsyncMessage::default()
        });
        self.books.send(&operation, sent, out);
    }

    fn cancel(&mut self, id: CommandId, what: &CancelWhat, why: CancelWhy, out: &mut Out) {
        if let CancelWhy::Signal(signal) = why {
            return self.signal(id, signal, out);
        }
        match what {
            CancelWhat::Turn {
                queue: QueueFate::Keep | QueueFate::Run,
            }
            | CancelWhat::TurnElseNextQueued => self.interrupt(id, why, out),
            CancelWhat::Turn {
                queue: QueueFate::Drop,
            } => {
                self.drop_queued(out);
                self.interrupt(id, why, out);
            }
            CancelWhat::Everything => {
                self.drop_queued(out);
                if self.is_wide() {
                    for (task, _) in self.runs.tasks() {
                        self.stop_task(&task, Sent::Quiet, out);
                    }
                }
                self.interrupt(id, why, out);
            }
            CancelWhat::Run(run) => {
                let task = self.runs.task_of(*run).map(String::from);
                self.stop_or_miss(id, task, Hit::Run, out);
            }
            CancelWhat::Job(job) => {
                let task = self.runs.job_of(*job).map(String::from);
                self.stop_or_miss(id, task, Hit::Job, out);
            }
            CancelWhat::Retry => refuse(id, Refusal::Unsupported("cancel of a retry"), out),
            CancelWhat::Compaction => {
                refuse(id, Refusal::Unsupported("cancel of a compaction"), out);
            }
            CancelWhat::Shell => refuse(id, Refusal::Unsupported("cancel of a shell"), out),
        }
    }

    /// Prompts that wait are taken back; what can't be runs all the same.
    fn drop_queued(&mut self, out: &mut Out) {
        if !self.is_wide() {
            if self.turn.is_some() && !self.prompts.is_empty() {
                out.finding("this agent can't drop the prompts that wait; they run");
            }
            return;
        }
        for prompt in self.prompts.ids() {
            if let Some(uuid) = self.prompts.get(prompt).map(|known| known.uuid.clone()) {
                self.cancel_message(&uuid, Sent::Drop(prompt), out);
            }
        }
    }

    /// Cancels the turn.
    fn interrupt(&mut self, id: CommandId, why: CancelWhy, out: &mut Out) {
        let operation = Operation::from(Interrupt::default());
        self.books.send(&operation, Sent::Interrupt(id, why), out);
        if let Some(turn) = &mut self.turn {
            turn.flow.stopping = true;
        }
    }

    fn stop_task(&mut self, task: &str, sent: Sent, out: &mut Out) {
        let operation = Operation::from(StopTask {
            task_id: task.into(),
            ..StopTask::default()
        });
        self.books.send(&operation, sent, out);
    }

    fn stop_or_miss(&mut self, id: CommandId, task: Option<String>, hit: Hit, out: &mut Out) {
        match task {
            Some(_) if !self.is_wide() => {
                refuse(id, Refusal::Unsupported("stopping a task"), out);
            }
            Some(task) => self.stop_task(&task, Sent::StopRun(id, hit), out),
            None => {
                let (hit, queued) = (Hit::Nothing, self.prompts.ids());
                let answer = Answer::Cancelling { hit, queued };
                out.reply(id, Seen::Inferred, Ok(answer));
            }
        }
    }

    fn job(&mut self, id: CommandId, job: &JobCommand, out: &mut Out) {
        match job {
            JobCommand::Snapshot => {
                let answer = Answer::Jobs(self.runs.jobs());
                out.reply(id, Seen::Inferred, Ok(answer));
            }
            JobCommand::Stop { .. } if !self.is_wide() => {
                refuse(id, Refusal::Unsupported("stopping a task"), out);
            }
            JobCommand::Stop { job, .. } => {
                let known = self.runs.tasks();
                let is_job =
                    |(task, kind): &(String, Task)| **task == **job && matches!(kind, Task::Job(_));
                if known.iter().any(is_job) {
                    self.stop_task(job, Sent::StopJob(id), out);
                } else {
                    let answer = Answer::JobStop(JobStop::NotFound);
                    out.reply(id, Seen::Inferred, Ok(answer));
                }
            }
        }
    }

    /// A signal is passed on as one: the agent cancels, and leaves with its code.
    fn signal(&mut self, id: CommandId, signal: Signal, out: &mut Out) {
        self.signal = Some(signal);
        out.signal(signal);
        let why = CancelWhy::Signal(signal);
        let hit = self.interrupted(why, out);
        let queued = self.prompts.ids();
        out.reply(id, Seen::Inferred, Ok(Answer::Cancelling { hit, queued }));
    }

    fn reply(
        &mut self,
        id: CommandId,
        ask: AskId,
        reply: &Result<Reply, ReplyFault>,
        out: &mut Out,
    ) {
        let call = self.book.asks.call_of(ask);
        let closed = match self.book.asks.write(ask, reply, out) {
            Ok(closed) => closed,
            Err(refusal) => return refuse(id, refusal, out),
        };
        out.reply(id, Seen::Inferred, Ok(Answer::Sent));
        let (calls, asks) = self.book.parts();
        asks.answered(ask, closed, calls, out);
        let ends = match reply {
            Ok(Reply::Deny { interrupt, .. }) => *interrupt,
            Ok(Reply::Hook(hook)) => hook.interrupt,
            Ok(Reply::Allow { .. } | Reply::Tool { .. } | Reply::Uri { .. } | Reply::Choice(_))
            | Err(_) => false,
        };
        if let (true, Some(turn)) = (ends, &mut self.turn) {
            let why = call.map_or(CancelWhy::Host, CancelWhy::Denied);
            turn.wished.get_or_insert(why);
            turn.flow.stopping = true;
        }
    }

    fn set(&mut self, id: CommandId, setting: Setting, out: &mut Out) {
        let mut buffer = Vec::new();
        let operation = match &setting {
            Setting::Model(name) => Operation::from(SetModel {
                model: Any(Some(match name {
                    Some(name) => quoted(&mut buffer, name),
                    None => Raw::NULL,
                })),
                ..SetModel::default()
            }),
            Setting::Approvals(ApprovalMode::ReadOnly) => {
                return refuse(id, Refusal::Unsupported("a mode that only reads"), out);
            }
            Setting::Approvals(mode) => Operation::from(SetPermissionMode {
                mode: Any(Some(quoted(&mut buffer, &mode_word(mode)))),
                ..SetPermissionMode::default()
            }),
            Setting::ThinkingBudget(tokens) => Operation::from(SetMaxThinkingTokens {
                max_thinking_tokens: Any(Some(match tokens {
                    Some(tokens) => {
                        json::write_u64(&mut buffer, *tokens);
                        super::convert::ours(&buffer)
                    }
                    None => Raw::NULL,
                })),
                ..SetMaxThinkingTokens::default()
            }),
            Setting::Thinking(_)
            | Setting::SteerDrain(_)
            | Setting::FollowUpDrain(_)
            | Setting::Interrupting(_)
            | Setting::AutoRetry(_)
            | Setting::AutoCompact(_)
            | Setting::Name(_) => {
                return refuse(id, Refusal::Unsupported("this setting"), out);
            }
        };
        self.books
            .send(&operation, Sent::Set(id, setting.clone()), out);
    }

    /// What the host serves: in `initialize`, if that isn't written yet.
    pub(super) fn offer(&mut self, id: CommandId, offer: &Offer, out: &mut Out) {
        if self.config.policy.initialize_fields == InitializeFields::Refused {
            let what = "tools and hooks of the host";
            return refuse(id, Refusal::Unsupported(what), out);
        }
        let done = match offer {
            Offer::Tools(tools) => self.offer_tools(tools, out),
            Offer::Hooks(_) if self.mcp.started => {
                Err(Refusal::Unsupported("hooks after the start"))
            }
            Offer::Hooks(hooks) => {
                self.hooks.clone_from(hooks);
                Ok(())
            }
            Offer::Uris(_) => Err(Refusal::Unsupported("addresses of the host")),
        };
        match done {
            Err(refusal) => refuse(id, refusal, out),
            Ok(()) if self.mcp.started => out.reply(id, Seen::Inferred, Ok(Answer::Done)),
            Ok(()) => self.offers.push(id),
        }
    }

    fn rewind(&mut self, id: CommandId, to: RewindTo, dry_run: bool, out: &mut Out) {
        if !self.is_wide() {
            return refuse(id, Refusal::Unsupported("rewind"), out);
        }
        let RewindTo::Prompt(prompt) = to else {
            let what = "rewind to anything but a prompt";
            return refuse(id, Refusal::Unsupported(what), out);
        };
        let Some(uuid) = self.uuids.get(prompt).map(String::from) else {
            return refuse(id, Refusal::Unknown, out);
        };
        let operation = Operation::from(RewindFiles {
            user_message_id: uuid.as_str().into(),
            dry_run: dry_run.then_some(true),
            ..RewindFiles::default()
        });
        self.books.send(&operation, Sent::Rewind(id), out);
    }

    fn close(&mut self, id: CommandId, drain: bool, out: &mut Out) {
        out.reply(id, Seen::Inferred, Ok(Answer::Done));
        match (self.closing, drain) {
            (Closing::Open, true) => self.closing = Closing::Draining,
            (Closing::Open | Closing::Draining, false) => {
                if self.turn.is_some() {
                    // Without it the agent would finish its turn first.
                    let operation = Operation::from(Interrupt::default());
                    self.books.send(&operation, Sent::Quiet, out);
                }
                self.close_input(true, out);
                for early in core::mem::take(&mut self.early) {
                    refuse(early.id(), Refusal::Closing, out);
                }
            }
            (Closing::Draining | Closing::Sent { .. }, true) | (Closing::Sent { .. }, false) => {}
        }
    }
}

pub(super) fn refuse(id: CommandId, refusal: Refusal, out: &mut Out) {
    out.reply(id, Seen::Inferred, Err(refusal));
}
