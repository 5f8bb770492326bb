//! Changes of the session: another one takes the place of the one that is open.
//!
//! The hooks may veto it; then the driver makes or opens the other session, while what runs goes on; and only when that
//! one is there, everything of this one is ended and it is left. So a change that is vetoed or fails changes nothing
//! (S-05). What is asked to be stored before [`What::Opened`] belongs to the old session, what comes behind to the new.
//!
//! While a change is under way, whatever would begin work is refused as busy: nobody could say in which session it is.

use alloc::{boxed::Box, format, string::String, sync::Arc, vec::Vec};

use super::{
    Session, args,
    cancel::Stopping,
    commands::OwedFor,
    compact,
    config::ChangeSession,
    estimate::Estimate,
    hooks::{Chain, Owner, Says},
    jobs, paired,
    phase::Phase,
    told,
};
use crate::json;
use crate::vocab::{
    Answer, AskClose, Block, CancelWhy, Command, CommandId, DropWhy, Effect, EffectBody, End,
    FailureKind, GoalCommand, HookFacts, HookPoint, Message, MessageId, OpenBody, OpenFault,
    OtherSession, QueueFate, RawJson, Refusal, Role, SessionCommand, Text, What,
};

/// A change that is under way.
pub(super) struct Change {
    command: CommandId,
    what: SessionCommand,
    /// For the host's editor: the prompt that a branch cuts off.
    text: Option<Text>,
    stage: Stage,
}

enum Stage {
    /// The hooks are asked.
    Judging(Chain),
    /// The driver opens the other session. A copy begins with these messages.
    Opening(Vec<Arc<Message>>),
    /// It is there; this one is being left, since then.
    Leaving(Box<OtherSession>, u64),
}

impl Session {
    /// `Session`: New, Open, Switch, Branch and Fork.
    pub(super) fn change_session(&mut self, command: CommandId, what: SessionCommand) {
        if !self.closing.is_open() {
            return self.refuse(command, Refusal::Closing);
        }
        let busy = !matches!(self.phase, Phase::Idle);
        let allowed = match (self.config.policy.change_session, &what) {
            (ChangeSession::Never, _) => {
                return self.refuse(command, Refusal::Unsupported("session changes"));
            }
            (ChangeSession::Always, SessionCommand::Fork(_)) | (ChangeSession::WhenIdle, _) => {
                !busy
            }
            (ChangeSession::Always, _) => true,
        };
        if !allowed || self.reloading.is_some() || self.restoring.is_some() {
            return self.refuse(command, Refusal::Busy);
        }
        let Some((_, text)) = self.cut(&what) else {
            return self.refuse(command, Refusal::Unknown);
        };
        if self.owed.len() >= self.config.limits.owed_replies || !self.has_room() {
            return self.refuse(command, Refusal::Full);
        }
        self.owe(command, OwedFor::Session);
        let chain = self.chain(Owner::Switch, None, self.now);
        self.change = Some(Change {
            command,
            what,
            text,
            stage: Stage::Judging(chain),
        });
        self.judge_change();
    }

    /// Whether a command has to wait until it is certain in which session it is.
    pub(super) fn is_between(&self, command: &Command) -> bool {
        if self.change.is_none() || !self.closing.is_open() {
            return false;
        }
        match command {
            Command::Prompt(_)
            | Command::Promote(_)
            | Command::Recall(_)
            | Command::Compact { .. }
            | Command::Rewind { .. }
            | Command::Reload
            | Command::Shell { .. }
            | Command::Session(_)
            | Command::SteerRun { .. } => true,
            Command::Goal(what) => !matches!(what, GoalCommand::Get),
            Command::Withdraw(_)
            | Command::Cancel { .. }
            | Command::Reply { .. }
            | Command::ReplyPart { .. }
            | Command::Set(_)
            | Command::Offer(_)
            | Command::Job(_)
            | Command::Barrier
            | Command::Close { .. } => false,
        }
    }

    /// Whether a change is under way.
    pub(super) fn is_changing(&self) -> bool {
        self.change.is_some()
    }

    /// Asks the next hook; the last one that has nothing against it lets the driver open the other session.
    fn judge_change(&mut self) {
        let Some(mut change) = self.change.take() else {
            return;
        };
        let Stage::Judging(chain) = &mut change.stage else {
            self.change = Some(change);
            return;
        };
        let facts = facts(&change.what);
        if self.next_hook(chain, Owner::Switch, || facts) {
            self.change = Some(change);
            return;
        }
        // The history may be another one by now.
        let Some((messages, _)) = self.cut(&change.what) else {
            self.settle_change(change.command);
            self.refuse(change.command, Refusal::Unknown);
            return self.pass_barriers();
        };
        change.stage = Stage::Opening(messages);
        self.effects.opens.issue(change.command.0);
        self.out.effect(Effect::OpenSession(change.command));
        self.change = Some(change);
    }

    /// A hook decided about the change.
    pub(super) fn switch_hook_said(&mut self, says: &Says) {
        let Some(change) = &mut self.change else {
            return;
        };
        let Stage::Judging(chain) = &mut change.stage else {
            return;
        };
        chain.slot = None;
        if !matches!(says, Says::Deny { .. }) {
            return self.judge_change();
        }
        let (command, mut chain) = (change.command, core::mem::take(chain));
        self.drop_chain(&mut chain, &AskClose::Superseded);
        self.settle_change(command);
        let vetoed = Answer::Session {
            vetoed: true,
            text: None,
        };
        self.answer(command, vetoed);
        self.pass_barriers();
    }

    /// What a hook is told of the change.
    pub(super) fn switch_facts(&self) -> HookFacts {
        match &self.change {
            Some(change) => facts(&change.what),
            None => HookFacts::Other(RawJson("{}".into())),
        }
    }

    /// The driver has the other session, or hasn't.
    pub(super) fn other_opened(
        &mut self,
        command: CommandId,
        other: Result<Box<OtherSession>, OpenFault>,
    ) {
        let other = match other {
            Ok(other) => other,
            Err(fault) => {
                self.settle_change(command);
                let why = match fault {
                    OpenFault::Missing => Refusal::Unknown,
                    OpenFault::Unkept => Refusal::Unsupported("sessions that are kept"),
                    OpenFault::Failed(why) => {
                        Refusal::Failed(super::failure(FailureKind::Store, &why))
                    }
                };
                self.refuse(command, why);
                return self.pass_barriers();
            }
        };
        let now_us = self.now.mono_us;
        match &mut self.change {
            Some(change) if change.command == command => {
                change.stage = Stage::Leaving(other, now_us);
            }
            Some(_) | None => return,
        }
        self.leave();
    }

    /// Everything of this session ends: nothing of it goes over to the other.
    fn leave(&mut self) {
        let can_stop = self.phase.turn().is_some() && !self.phase.is_ending();
        let turned = self.turn_away(can_stop);
        self.compact_queued = None;
        for prompt in self.prompts.take_steers() {
            self.unapplied(&prompt, End::Dropped(DropWhy::SessionChanged));
        }
        self.drop_pending(DropWhy::SessionChanged, u64::MAX);
        self.held = false;
        if can_stop || self.phase.is_compacting_by_hand() {
            let why = Stopping::Cancel(CancelWhy::Switch);
            self.stop_turn(&why, QueueFate::Drop, None);
        }
        self.turned_away(turned, &Refusal::Cancelled);
        self.end_shells();
        self.end_jobs();
        self.stop_telling();
    }

    /// While idle: the session is left as soon as all of it is written. `true`: a change stands in the way of
    /// everything else.
    pub(super) fn go_over(&mut self) -> bool {
        let Some(change) = self.change.take() else {
            return false;
        };
        if !matches!(change.stage, Stage::Leaving(..)) {
            self.change = Some(change);
            return false;
        }
        self.change = Some(change);
        self.save_beside();
        if self.beside.is_some() {
            return true;
        }
        if let Some(Change {
            command,
            text,
            stage: Stage::Leaving(other, _),
            ..
        }) = self.change.take()
        {
            self.arrive(command, text, *other);
        }
        false
    }

    /// The other session is the one that is open.
    fn arrive(&mut self, command: CommandId, text: Option<Text>, other: OtherSession) {
        self.settle_change(command);
        self.goals_until(u64::MAX);
        // What jobs and shells of this session had to say was written with it.
        for prompt in self.prompts.take_steers() {
            self.unapplied(&prompt, End::Dropped(DropWhy::SessionChanged));
        }
        self.settle();
        let OtherSession {
            session,
            same,
            name,
            file,
            continued,
            history,
            last_run,
        } = other;
        let summarised = if same {
            self.info.continued = true;
            Vec::new()
        } else {
            self.info.session = session;
            self.info.name = name;
            self.info.file = file;
            self.info.continued = continued;
            self.spent_pico_usd = 0;
            self.rewindable.clear();
            self.goal = None;
            self.jobs = jobs::Jobs::default();
            self.forget_history();
            self.ids.runs_until(last_run.map_or(0, |run| run.0));
            let summarised = self.load(history);
            self.recall_plan();
            summarised
        };
        self.say_opened(summarised);
        let answer = Answer::Session {
            vetoed: false,
            text,
        };
        self.answer(command, answer);
        self.pass_barriers();
        self.tell_of_start(told::Whose::All);
    }

    fn forget_history(&mut self) {
        self.unsaved.clear();
        self.shell_news.clear();
        self.compacted_to = 0;
        self.history.clear();
        self.provider_ids.clear();
        self.estimate = Estimate::default();
        self.estimate
            .set_fixed(self.config.system.as_deref(), &self.visible);
    }

    /// Takes over what was remembered or written before; gives what its last summary stands for. Numbers of messages
    /// and calls go on above all that were ever given.
    pub(super) fn load(&mut self, history: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
        let [summarised, history] = compact::shortened(history);
        let history = paired(history);
        let all = || summarised.iter().chain(&history);
        let minted = all().filter(|message| !message.id.is_made_up());
        let calls = all().flat_map(|message| message.calls());
        let calls = calls.map(|call| call.0).chain(self.jobs.numbers());
        self.ids
            .go_on_after(minted.map(|message| message.id.0), calls);
        for message in history {
            for block in &message.content {
                if let Block::ToolUse {
                    provider_id: Some(id),
                    ..
                } = block.as_ref()
                {
                    self.provider_ids.insert(id.clone());
                }
            }
            self.remember(message);
        }
        summarised
    }

    /// Says that a session is there, with its history.
    pub(super) fn say_opened(&mut self, summarised: Vec<Arc<Message>>) {
        let mut opened = self.info.clone();
        opened.history.clone_from(&self.history);
        opened.summarised = summarised;
        self.say(What::Opened(opened));
    }

    /// The session closes: a change that isn't certain yet is given up.
    pub(super) fn give_change_up(&mut self) {
        match self.change.as_mut().map(|change| &mut change.stage) {
            Some(Stage::Judging(chain)) => {
                let mut chain = core::mem::take(chain);
                self.drop_chain(&mut chain, &AskClose::Cancelled);
            }
            Some(Stage::Opening(_)) => {}
            Some(Stage::Leaving(..)) | None => return,
        }
        if let Some(change) = self.change.take() {
            if matches!(change.stage, Stage::Opening(_)) {
                self.effects.opens.stop(change.command.0);
            }
            self.settle_change(change.command);
            self.refuse(change.command, Refusal::Closing);
            self.pass_barriers();
        }
    }

    /// Since when the session is being left.
    pub(super) fn leaving_since_us(&self) -> Option<u64> {
        match &self.change.as_ref()?.stage {
            Stage::Leaving(_, since_us) => Some(*since_us),
            Stage::Judging(_) | Stage::Opening(_) => None,
        }
    }

    pub(super) fn open_body(&self, command: CommandId) -> Option<EffectBody<'_>> {
        let change = self.change.as_ref()?;
        let Stage::Opening(messages) = &change.stage else {
            return None;
        };
        if change.command != command {
            return None;
        }
        let which = match &change.what {
            SessionCommand::New { parent } => OpenBody::New {
                parent: parent.as_deref(),
            },
            SessionCommand::Open(place) => OpenBody::Open(place),
            SessionCommand::Switch(place) => OpenBody::Switch(place),
            SessionCommand::Branch(_) | SessionCommand::Fork(_) => OpenBody::Copy(messages),
        };
        Some(EffectBody::Open {
            which,
            from: self.info.file.as_deref(),
        })
    }

    /// Its reply isn't owed any more, and there is no change.
    fn settle_change(&mut self, command: CommandId) {
        self.change = None;
        self.owed.retain(|owed| owed.command != command);
    }

    /// What a copy begins with, and the text of the prompt that it cuts off; `None` if there is no such message.
    fn cut(&self, what: &SessionCommand) -> Option<(Vec<Arc<Message>>, Option<Text>)> {
        let (end, text) = match what {
            SessionCommand::New { .. } | SessionCommand::Open(_) | SessionCommand::Switch(_) => {
                (0, None)
            }
            SessionCommand::Fork(None) => (self.history.len(), None),
            SessionCommand::Fork(Some(entry)) => {
                let at = self.position(entry, |_| true)?;
                (self.batch_end(at), None)
            }
            SessionCommand::Branch(entry) => {
                let at = self.position(entry, |message| message.role == Role::User)?;
                let text = {
                    let message = self.history.get(at)?;
                    args::text_of(message.content.iter().map(AsRef::as_ref))
                };
                (at, Some(text))
            }
        };
        let kept = self.history.get(..end)?;
        Some((kept.to_vec(), text))
    }

    /// The place of a message by its number; a result also goes by that of its call ([`MessageId::of_result`]).
    fn position(&self, entry: &str, fits: impl Fn(&Message) -> bool) -> Option<usize> {
        let id = MessageId(entry.parse().ok()?);
        self.history.iter().position(|message| {
            let named = match &message.role {
                Role::Tool { call, .. } => message.id == id || MessageId::of_result(*call) == id,
                Role::User
                | Role::Assistant
                | Role::Note
                | Role::Summary
                | Role::Shell
                | Role::Other(_) => message.id == id,
            };
            named && fits(message)
        })
    }

    /// Behind a message, and behind the last result of the batch that it belongs to (OMP-19).
    fn batch_end(&self, at: usize) -> usize {
        let rest = self.history.iter().skip(at + 1);
        let results = rest.take_while(|message| matches!(message.role, Role::Tool { .. }));
        at + 1 + results.count()
    }
}

/// What a hook is told.
fn facts(what: &SessionCommand) -> HookFacts {
    let (reason, target) = match what {
        SessionCommand::New { parent } => ("new", parent.as_deref()),
        SessionCommand::Open(place) => ("open", Some(&**place)),
        SessionCommand::Switch(place) => ("switch", Some(&**place)),
        SessionCommand::Branch(entry) => ("branch", Some(&**entry)),
        SessionCommand::Fork(entry) => ("fork", entry.as_deref()),
    };
    let mut text = format!("{{\"reason\":\"{reason}\"").into_bytes();
    if let Some(target) = target {
        text.extend_from_slice(b",\"target\":");
        json::write_str(&mut text, target);
    }
    text.push(b'}');
    HookFacts::Other(RawJson(String::from_utf8_lossy(&text).as_ref().into()))
}

impl Owner {
    /// Whether it is about something that belongs to no turn.
    pub(super) fn is_beside_turns(self) -> bool {
        matches!(self.point(), HookPoint::SessionSwitch) || self == Owner::Intake
    }
}
