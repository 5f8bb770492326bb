//! Commands: each is answered exactly once (S-05), in every phase.

use alloc::{boxed::Box, format};

use super::{
    Session,
    cancel::Stopping,
    goal,
    phase::Phase,
    queue::prompts::{Kind, Submitted, Waiting},
};
use crate::vocab::{
    Admitted, Answer, ApprovalMode, Block, Call, CancelWhy, Cause, Command, CommandId, Deliver,
    DropWhy, Effect, End, HookSpec, IdleSteer, Lane, MessageId, Offer, Prompt, PromptId, QueueFate,
    Rank, Refusal, Route, RunId, Setting, Text, ToolSpec, What, WriteId,
};

/// A command whose reply comes later.
pub(super) struct Owed {
    pub command: CommandId,
    pub what: OwedFor,
    /// When the wait began.
    pub since_us: u64,
}

/// What a reply waits for.
pub(super) enum OwedFor {
    /// A prompt that is still judged.
    Admission,
    Reload,
    /// Files that are put back, as they were before a message.
    Rewind {
        to: MessageId,
        dry_run: bool,
    },
    /// A setting that counts once it is stored.
    Setting {
        write: WriteId,
        setting: Setting,
    },
    /// A change of the goal.
    Goal(goal::Asked),
    /// What a nested run was told: it replies.
    Run(RunId),
    /// A change of the session.
    Session,
    /// All earlier commands.
    Barrier,
}

impl Session {
    /// Handles one command.
    pub(super) fn command(&mut self, call: Call) {
        let Call { id, command } = call;
        if self.is_between(&command) {
            return self.refuse(id, Refusal::Busy);
        }
        match command {
            Command::Prompt(prompt) => self.prompt(id, prompt),
            Command::Withdraw(prompt) => self.withdraw(id, prompt),
            Command::Promote(prompt) => self.promote(id, prompt),
            Command::Cancel { what, why } => self.cancel(id, &what, why),
            Command::Reply { ask, reply } => self.reply(id, ask, reply),
            Command::ReplyPart { ask, content } => self.reply_part(id, ask, content),
            Command::Set(setting) => self.set(id, setting),
            Command::Offer(offer) => self.offer(id, offer),
            Command::Recall(messages) => self.recall(id, messages),
            Command::Compact { instructions } => self.compact(id, instructions),
            Command::Rewind { to, dry_run } => self.rewind(id, to, dry_run),
            Command::Reload => self.reload(id),
            Command::Goal(what) => self.goal_command(id, what),
            Command::Job(what) => self.job_command(id, what),
            Command::Shell { command } => self.shell(id, command),
            Command::Session(what) => self.change_session(id, what),
            Command::SteerRun { run, prompt } => self.steer_run(id, run, prompt),
            Command::Barrier => {
                if self.owed.is_empty() {
                    self.answer(id, Answer::Done);
                } else {
                    self.owe(id, OwedFor::Barrier);
                }
            }
            Command::Close { drain } => self.close(id, drain),
        }
    }

    /// A feature that this session doesn't have: refused whole.
    pub(super) fn not_yet(&mut self, command: CommandId, what: &'static str) {
        let refusal = if self.closing.is_open() {
            Refusal::Unsupported(what)
        } else {
            Refusal::Closing
        };
        self.refuse(command, refusal);
    }

    fn prompt(&mut self, command: CommandId, prompt: Prompt) {
        if let Err(refusal) = self.prompt_fits(&prompt) {
            return self.refuse(command, refusal);
        }
        if self.seen.is_some_and(|seen| prompt.id <= seen) {
            return self.answer(command, Answer::Admitted(Admitted::Duplicate));
        }
        let submitted = Submitted::new(prompt);
        if self.judges_first() {
            self.take_in(command, submitted);
        } else {
            self.place(command, submitted);
        }
    }

    /// Admits a prompt, or refuses it, as it is to be delivered now.
    pub(super) fn place(&mut self, command: CommandId, prompt: Submitted) {
        if self.seen.is_some_and(|seen| prompt.prompt.id <= seen) {
            return self.answer(command, Answer::Admitted(Admitted::Duplicate));
        }
        if matches!(self.phase, Phase::Idle) {
            self.prompt_idle(command, prompt);
        } else if self.phase.is_compacting_by_hand() {
            self.prompt_beside_compaction(command, prompt);
        } else {
            self.prompt_in_turn(command, prompt);
        }
    }

    fn prompt_fits(&self, prompt: &Prompt) -> Result<(), Refusal> {
        if !self.closing.is_open() {
            return Err(Refusal::Closing);
        }
        if prompt.is_blank() {
            return Err(Refusal::Empty);
        }
        if prompt.bytes() > self.config.limits.prompt_bytes {
            return Err(Refusal::TooLarge);
        }
        let foreign = prompt.content.iter().any(|block| match block {
            Block::Text(_) | Block::Media { .. } | Block::Opaque(_) => false,
            Block::Thinking { .. }
            | Block::Redacted(_)
            | Block::ToolUse { .. }
            | Block::ToolResult { .. } => true,
        });
        if foreign {
            Err(Refusal::Invalid("a prompt holds text and media".into()))
        } else {
            Ok(())
        }
    }

    /// Whether another prompt may wait.
    pub(super) fn queue_room(&self, prompt: &Prompt) -> bool {
        let limits = &self.config.limits;
        let bytes = self.prompts.bytes() + self.intake.bytes();
        self.prompts.len() + self.intake.len() < limits.queued_prompts
            && bytes.saturating_add(prompt.bytes()) <= limits.queued_bytes
    }

    fn admitted(&mut self, prompt: Submitted) -> Waiting {
        self.seen = Some(prompt.prompt.id);
        let arrival = self.ids.arrival();
        Waiting::new(prompt, arrival)
    }

    fn prompt_idle(&mut self, command: CommandId, prompt: Submitted) {
        match &prompt.prompt.deliver {
            Deliver::Context => {
                let waiting = self.admitted(prompt);
                self.answer(command, Answer::Admitted(Admitted::Local));
                self.apply_idle(waiting);
            }
            Deliver::Steer {
                idle: IdleSteer::DropUnlessQueued,
            } if self.prompts.pending() > 0 => {
                self.enqueue(command, prompt, Lane::Steer);
            }
            Deliver::Steer {
                idle: IdleSteer::Drop | IdleSteer::DropUnlessQueued,
            } => {
                let waiting = self.admitted(prompt);
                self.answer(command, Answer::Admitted(Admitted::Queued(Lane::Steer)));
                self.say(What::PromptEnded {
                    prompt: waiting.id,
                    end: End::Dropped(DropWhy::Idle),
                });
            }
            Deliver::IfIdle
            | Deliver::Queue(_)
            | Deliver::FollowUp
            | Deliver::Preempt
            | Deliver::Steer {
                idle: IdleSteer::Start,
            } => {
                if !self.has_room() {
                    return self.refuse(command, Refusal::Full);
                }
                let waiting = self.admitted(prompt);
                self.answer(command, Answer::Admitted(Admitted::Started));
                self.begin_turn(waiting, Cause::Prompt);
            }
        }
    }

    fn prompt_in_turn(&mut self, command: CommandId, prompt: Submitted) {
        match prompt.prompt.deliver {
            Deliver::IfIdle => self.refuse(command, Refusal::Busy),
            Deliver::Queue(Rank::Next) => self.enqueue(command, prompt, Lane::Next),
            Deliver::Queue(Rank::Later) => self.enqueue(command, prompt, Lane::Later),
            Deliver::FollowUp => self.enqueue(command, prompt, Lane::FollowUp),
            Deliver::Steer { .. } | Deliver::Context => self.enqueue(command, prompt, Lane::Steer),
            Deliver::Preempt => self.preempt(command, prompt),
        }
    }

    /// A prompt while the history is being summarised by hand: there is no turn to steer.
    fn prompt_beside_compaction(&mut self, command: CommandId, mut prompt: Submitted) {
        match prompt.prompt.deliver {
            Deliver::Steer {
                idle: IdleSteer::Start,
            } => prompt.prompt.deliver = Deliver::Queue(Rank::Next),
            Deliver::Steer {
                idle: IdleSteer::Drop | IdleSteer::DropUnlessQueued,
            } => return self.prompt_idle(command, prompt),
            Deliver::IfIdle
            | Deliver::Queue(_)
            | Deliver::FollowUp
            | Deliver::Context
            | Deliver::Preempt => {}
        }
        // The next prompt sets free what a cancel kept.
        let waits = !matches!(prompt.prompt.deliver, Deliver::IfIdle | Deliver::Context);
        let before = self.prompts.pending();
        self.prompt_in_turn(command, prompt);
        if waits && self.prompts.pending() > before {
            self.held = false;
        }
    }

    fn enqueue(&mut self, command: CommandId, prompt: Submitted, lane: Lane) {
        if !self.queue_room(&prompt.prompt) {
            return self.refuse(command, Refusal::Full);
        }
        let waiting = self.admitted(prompt);
        self.answer(command, Answer::Admitted(Admitted::Queued(lane)));
        self.say(What::Queued {
            prompt: waiting.id,
            lane,
        });
        let steers = lane == Lane::Steer && waiting.kind == Kind::Prompt;
        self.prompts.push(lane, waiting);
        if steers {
            self.steered();
        }
    }

    fn preempt(&mut self, command: CommandId, prompt: Submitted) {
        if !self.queue_room(&prompt.prompt) {
            return self.refuse(command, Refusal::Full);
        }
        let waiting = self.admitted(prompt);
        let id = waiting.id;
        self.answer(command, Answer::Admitted(Admitted::Queued(Lane::Next)));
        self.say(What::Queued {
            prompt: id,
            lane: Lane::Next,
        });
        self.prompts.push_preempting(waiting);
        if self.phase.is_compacting_by_hand() {
            self.skip_compaction(None);
        } else if !self.phase.is_ending() {
            self.stop_turn(
                &Stopping::Cancel(CancelWhy::Preempted(id)),
                QueueFate::Run,
                None,
            );
        }
    }

    fn withdraw(&mut self, command: CommandId, prompt: PromptId) {
        let taken = self.prompts.take(prompt);
        self.answer(command, Answer::Withdrawn(taken.is_some()));
        if let Some(prompt) = taken {
            self.say(What::PromptEnded {
                prompt: prompt.id,
                end: End::Withdrawn,
            });
        }
    }

    fn promote(&mut self, command: CommandId, prompt: PromptId) {
        if !self.closing.is_open() {
            return self.refuse(command, Refusal::Closing);
        }
        let idle = matches!(self.phase, Phase::Idle);
        if idle && !self.has_room() {
            return self.refuse(command, Refusal::Full);
        }
        let Some(taken) = self.prompts.take_pending(prompt) else {
            return self.refuse(command, Refusal::Unknown);
        };
        self.answer(command, Answer::Done);
        if idle {
            self.begin_turn(taken, Cause::Queue);
        } else {
            self.say(What::Queued {
                prompt: taken.id,
                lane: Lane::Steer,
            });
            self.prompts.promote(taken);
            self.steered();
        }
    }

    fn set(&mut self, command: CommandId, setting: Setting) {
        if let Err(refusal) = self.setting_fits(&setting) {
            return self.refuse(command, refusal);
        }
        let gates = &self.config.policy.gates;
        let gated = match &setting {
            Setting::Approvals(_) => gates.mode,
            Setting::Name(_) => gates.name,
            Setting::Model(_)
            | Setting::Thinking(_)
            | Setting::ThinkingBudget(_)
            | Setting::SteerDrain(_)
            | Setting::FollowUpDrain(_)
            | Setting::Interrupting(_)
            | Setting::AutoRetry(_)
            | Setting::AutoCompact(_) => false,
        };
        if gated {
            if self.owed.len() >= self.config.limits.owed_replies {
                return self.refuse(command, Refusal::Full);
            }
            let write = self.store();
            return self.owe(command, OwedFor::Setting { write, setting });
        }
        self.answer(command, Answer::Done);
        self.apply_setting(setting);
    }

    fn setting_fits(&self, setting: &Setting) -> Result<(), Refusal> {
        let blank = |text: &Text| text.trim().is_empty();
        match setting {
            Setting::Approvals(ApprovalMode::Other(word)) if self.config.rules.is_empty() => Err(
                Refusal::Invalid(format!("there are no rules for the approval mode {word}").into()),
            ),
            Setting::Model(Some(name)) if blank(name) => {
                Err(Refusal::Invalid("the model's name is empty".into()))
            }
            Setting::Model(Some(name))
                if !self.config.models.is_empty() && self.model_named(name).is_none() =>
            {
                Err(Refusal::Invalid(format!("there is no model {name}").into()))
            }
            Setting::Thinking(Some(word)) if blank(word) => {
                Err(Refusal::Invalid("the thinking level is empty".into()))
            }
            Setting::Name(name) if blank(name) => Err(Refusal::Invalid("the name is empty".into())),
            Setting::Approvals(_)
            | Setting::Model(_)
            | Setting::Thinking(_)
            | Setting::ThinkingBudget(_)
            | Setting::SteerDrain(_)
            | Setting::FollowUpDrain(_)
            | Setting::Interrupting(_)
            | Setting::AutoRetry(_)
            | Setting::AutoCompact(_)
            | Setting::Name(_) => Ok(()),
        }
    }

    fn apply_setting(&mut self, setting: Setting) {
        let settings = &mut self.info.settings;
        match setting {
            Setting::Approvals(mode) => settings.approvals = mode,
            Setting::Model(name) => self.set_model(name),
            Setting::Thinking(level) => settings.thinking = level,
            Setting::ThinkingBudget(tokens) => self.thinking_budget = tokens,
            Setting::SteerDrain(drain) => settings.steer_drain = drain,
            Setting::FollowUpDrain(drain) => settings.follow_up_drain = drain,
            Setting::Interrupting(when) => settings.interrupting = when,
            Setting::AutoRetry(on) => settings.auto_retry = on,
            Setting::AutoCompact(on) => settings.auto_compact = on,
            Setting::Name(name) => self.info.name = Some(name),
        }
        self.say_changed();
    }

    /// The write of a setting was acknowledged or failed. `false`: no setting waits for it.
    pub(super) fn setting_stored(&mut self, write: WriteId, ok: &Result<(), Text>) -> bool {
        let found = self.owed.iter().position(|owed| match &owed.what {
            OwedFor::Setting { write: waits, .. } => *waits == write,
            OwedFor::Admission
            | OwedFor::Reload
            | OwedFor::Rewind { .. }
            | OwedFor::Goal(_)
            | OwedFor::Run(_)
            | OwedFor::Session
            | OwedFor::Barrier => false,
        });
        let Some(Owed {
            command,
            what: OwedFor::Setting { setting, .. },
            ..
        }) = found.and_then(|at| self.owed.remove(at))
        else {
            return false;
        };
        match ok {
            Ok(()) => {
                self.answer(command, Answer::Done);
                self.apply_setting(setting);
            }
            Err(detail) => {
                // The plain reason: whoever answers the host says what failed, in the words of its protocol.
                let failure = super::failure(crate::vocab::FailureKind::Store, detail);
                self.refuse(command, Refusal::Failed(failure));
            }
        }
        self.pass_barriers();
        true
    }

    /// Until when a session that drains waits for each reply that only the disk can bring.
    pub(super) fn owed_until_us(&self) -> impl Iterator<Item = (CommandId, Option<u64>)> {
        let waits = self.owed.iter().filter(|owed| match &owed.what {
            OwedFor::Setting { .. } | OwedFor::Reload | OwedFor::Rewind { .. } => true,
            OwedFor::Goal(asked) => asked.is_writing(),
            // Its hooks have their own time.
            // A close gives it up, or it waits for the turn's own write.
            OwedFor::Session => false,
            OwedFor::Admission | OwedFor::Run(_) | OwedFor::Barrier => false,
        });
        waits.map(|owed| (owed.command, self.patience_us(owed.since_us)))
    }

    /// A session that drains doesn't wait any longer for this reply: the command failed.
    pub(super) fn owed_too_long(&mut self, command: CommandId) {
        let late: Text = "the disk did not answer in time".into();
        let found = self.owed.iter().find(|owed| owed.command == command);
        match found.map(|owed| &owed.what) {
            Some(OwedFor::Setting { write, .. }) => {
                let write = *write;
                self.effects.writes.stop(write.0);
                self.setting_stored(write, &Err(late));
            }
            Some(OwedFor::Reload) => {
                self.effects.reloads.stop(command.0);
                self.reloaded(command, Err(late));
            }
            Some(OwedFor::Rewind { .. }) => {
                self.effects.restores.stop(command.0);
                self.restored(command, Err(late));
            }
            Some(OwedFor::Goal(_)) => self.goal_too_long(&late),
            Some(OwedFor::Admission | OwedFor::Session | OwedFor::Run(_) | OwedFor::Barrier)
            | None => {}
        }
    }

    fn reload(&mut self, command: CommandId) {
        if !self.closing.is_open() {
            return self.refuse(command, Refusal::Closing);
        }
        if !matches!(self.phase, Phase::Idle) || self.reloading.is_some() {
            return self.refuse(command, Refusal::Busy);
        }
        if self.owed.len() >= self.config.limits.owed_replies || !self.has_room() {
            return self.refuse(command, Refusal::Full);
        }
        self.reloading = Some(command);
        self.effects.reloads.issue(command.0);
        self.out.effect(Effect::Reload(command));
        self.owe(command, OwedFor::Reload);
    }

    /// The driver has read tools and skills again.
    pub(super) fn reloaded(&mut self, command: CommandId, outcome: Result<Answer, Text>) {
        self.reloading = None;
        self.owed.retain(|owed| owed.command != command);
        match outcome {
            Ok(answer) => self.answer(command, answer),
            Err(detail) => {
                // As above: the plain reason.
                let failure = super::failure(crate::vocab::FailureKind::Setup, &detail);
                self.refuse(command, Refusal::Failed(failure));
            }
        }
        self.pass_barriers();
        self.judge_intake();
    }

    pub(super) fn owe(&mut self, command: CommandId, what: OwedFor) {
        if self.owed.len() >= self.config.limits.owed_replies {
            return self.refuse(command, Refusal::Full);
        }
        self.owed.push_back(Owed {
            command,
            what,
            since_us: self.now.mono_us,
        });
    }

    /// Replies to the barriers that nothing earlier holds up.
    pub(super) fn pass_barriers(&mut self) {
        while let Some(Owed {
            command,
            what: OwedFor::Barrier,
            ..
        }) = self.owed.front()
        {
            let command = *command;
            self.owed.pop_front();
            self.answer(command, Answer::Done);
        }
    }

    fn offer(&mut self, command: CommandId, offer: Offer) {
        if !self.closing.is_open() {
            return self.refuse(command, Refusal::Closing);
        }
        match offer {
            Offer::Tools(tools) => {
                let bytes = |tool: &ToolSpec| {
                    tool.name.len() + tool.description.len() + tool.schema.0.len()
                };
                let all = tools.iter().map(bytes).sum();
                if let Err(refusal) = self.offer_fits(tools.len(), all) {
                    return self.refuse(command, refusal);
                }
                let named = |name: &Text| tools.iter().filter(|tool| tool.name == *name).count();
                for tool in &tools {
                    let taken = self.config.tools.iter().any(|own| own.name == tool.name);
                    if tool.name.is_empty() || taken || named(&tool.name) > 1 {
                        let text = format!("the tool name {:?} is empty or taken", tool.name);
                        return self.refuse(command, Refusal::Invalid(text.into()));
                    }
                }
                self.answer(command, Answer::Done);
                // What isn't the session's own to carry out is the host's.
                self.offered = tools;
                for tool in &mut self.offered {
                    if tool.route == Route::Driver {
                        tool.route = Route::Host;
                    }
                }
                self.tools_changed();
                self.say_changed();
            }
            Offer::Hooks(hooks) => {
                let bytes = |hook: &HookSpec| {
                    hook.key.len() + hook.matcher.as_ref().map_or(0, |text| text.len())
                };
                let all = hooks.iter().map(bytes).sum();
                if let Err(refusal) = self.offer_fits(hooks.len(), all) {
                    return self.refuse(command, refusal);
                }
                self.answer(command, Answer::Done);
                self.offered_hooks = hooks;
                if !core::mem::replace(&mut self.greeted, true) {
                    self.tell_of_start(super::told::Whose::Host);
                }
            }
            Offer::Uris(uris) => {
                if let Err(refusal) = self.uris_fit(&uris) {
                    return self.refuse(command, refusal);
                }
                self.answer(command, Answer::Done);
                self.offered_uris = uris;
                let before = self.visible.clone();
                self.tools_changed();
                if self.visible != before {
                    self.say_changed();
                }
            }
        }
    }

    /// Whether an offered set keeps to its limits.
    pub(super) fn offer_fits(&self, number: usize, bytes: usize) -> Result<(), Refusal> {
        let limits = &self.config.limits;
        if number > limits.offered {
            Err(Refusal::Full)
        } else if bytes > limits.queued_bytes {
            Err(Refusal::TooLarge)
        } else {
            Ok(())
        }
    }

    /// Answers a command.
    pub(super) fn answer(&mut self, command: CommandId, answer: Answer) {
        self.say(What::Replied {
            command,
            reply: Ok(answer),
        });
    }

    /// Refuses a command; nothing else changes (S-05).
    pub(super) fn refuse(&mut self, command: CommandId, refusal: Refusal) {
        self.say(What::Replied {
            command,
            reply: Err(refusal),
        });
    }

    /// Says that the session's facts changed. The history isn't among them.
    pub(super) fn say_changed(&mut self) {
        let info = Box::clone(&self.info);
        self.say(What::Changed(info));
    }
}
