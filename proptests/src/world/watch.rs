//! What a driver sees of an agent, and what must hold of it.
// Each check looks at a few kinds of output.
#![allow(clippy::wildcard_enum_match_arm)]

use std::sync::Arc;

use turnwire::vocab::{laws::EffectId, *};

use super::*;

impl<A: Agent> World<A> {
    /// Notes what an input settles.
    pub(super) fn settles(&mut self, given: &Given) {
        let id = match given {
            Given::Call(_) => return,
            Given::Model(request, chunk) => match chunk {
                Chunk::End | Chunk::Failed { .. } => EffectId::Model(*request),
                _ => return,
            },
            Given::Else(input) => match input {
                Input::Tool { call, update } => match update {
                    ToolUpdate::Done { .. } => EffectId::Tool(*call),
                    ToolUpdate::Detached(_) => {
                        // Whoever drives a closed session ends what still runs by itself.
                        if !self.closed() {
                            self.jobs.insert(JobId(call.0), false);
                        }
                        EffectId::Tool(*call)
                    }
                    ToolUpdate::Snapshotted { .. } => EffectId::Snapshot(*call),
                    _ => return,
                },
                Input::Hook { hook, .. } => EffectId::Hook(*hook),
                Input::Store { write, .. } => EffectId::Write(*write),
                Input::Shell {
                    command,
                    outcome: ToolUpdate::Done { .. },
                } => EffectId::Shell(*command),
                Input::Opened { command, .. } => EffectId::Open(*command),
                Input::Reloaded { command, .. } => EffectId::Reload(*command),
                Input::Restored { command, .. } => EffectId::Restore(*command),
                Input::Job {
                    job,
                    update: JobUpdate::Ended(_),
                } => {
                    self.jobs.remove(job);
                    return;
                }
                Input::Run { run, event } => match event.what {
                    What::RunEnded { run: ended, .. } if ended == *run => EffectId::Run(*run),
                    _ => return,
                },
                _ => return,
            },
        };
        self.work.remove(&id);
        self.settled_ids.insert(id);
    }

    /// Effects that were settled, oldest first by id.
    pub fn settled_ids(&self) -> impl Iterator<Item = &EffectId> {
        self.settled_ids.iter()
    }

    /// Folds an output into what is known.
    pub(super) fn look_at(&mut self, said: &Said) {
        match said {
            Said::Effect(_, effect) => self.effect(effect),
            Said::Delta { .. } => {}
            Said::Event(event) => {
                self.mirror.apply(event);
                self.event(event);
            }
        }
    }

    fn event(&mut self, event: &Event) {
        match &event.what {
            What::Replied { command, reply } => {
                let owed = self.owed.remove(command);
                self.check_answer(*command, owed.as_ref(), reply);
                self.check_admission(owed.as_ref(), reply);
                self.replies.insert(*command, reply.clone());
            }
            What::AskClosed { ask, .. } => self.closed_questions.push(*ask),
            What::RetryScheduled {
                wait_us: Some(wait),
                ..
            } => {
                let at = event.at.mono_us.saturating_add(*wait);
                self.retry_at.insert(event.run, at);
            }
            What::Settled => self.check_settled(),
            What::RetryEnded { .. } => drop(self.retry_at.remove(&event.run)),
            What::RequestStarted { .. } => {
                let due = self.retry_at.remove(&event.run);
                if let Some(at) = due.filter(|at| event.at.mono_us < *at) {
                    self.faults.push(format!(
                        "S-25: an attempt at {:?}, before its deadline {at}",
                        event.at
                    ));
                }
            }
            _ => {}
        }
    }

    fn effect(&mut self, effect: &Effect) {
        let start = match effect {
            Effect::StartModel(request) => EffectId::Model(*request),
            Effect::RunTool { call } => EffectId::Tool(*call),
            Effect::Snapshot { call, .. } => EffectId::Snapshot(*call),
            Effect::Restore(command) => EffectId::Restore(*command),
            Effect::RunHook { hook } => EffectId::Hook(*hook),
            Effect::Store(write) => EffectId::Write(*write),
            Effect::StartRun { run, .. } => EffectId::Run(*run),
            Effect::RunShell(command) => EffectId::Shell(*command),
            Effect::OpenSession(command) => EffectId::Open(*command),
            Effect::Reload(command) => EffectId::Reload(*command),
            Effect::StopModel(request) => return self.stop(EffectId::Model(*request)),
            Effect::StopTool(call) => {
                self.stop(EffectId::Tool(*call));
                return self.stop(EffectId::Snapshot(*call));
            }
            Effect::StopHook(hook) => return self.stop(EffectId::Hook(*hook)),
            Effect::StopRun(run) => return self.stop(EffectId::Run(*run)),
            Effect::StopShell(command) => return self.stop(EffectId::Shell(*command)),
            Effect::StopJob(job) => {
                if let Some(stopped) = self.jobs.get_mut(job) {
                    *stopped = true;
                }
                return;
            }
            Effect::DetachTool(_) | Effect::Allow { .. } | Effect::CallRun(..) => return,
        };
        self.work.insert(start, Work { stopped: false });
    }

    fn stop(&mut self, id: EffectId) {
        if let Some(work) = self.work.get_mut(&id) {
            work.stopped = true;
        }
    }

    /// Replies that can be judged by what the mirror knew.
    fn check_answer(
        &mut self,
        id: CommandId,
        command: Option<&Command>,
        reply: &Result<Answer, Refusal>,
    ) {
        let Some(Command::Reply { ask, .. }) = command else {
            return;
        };
        let closed = self.closed_questions.contains(ask);
        let open = self.mirror.question(*ask).is_some();
        let right = match reply {
            Ok(_) => open,
            Err(Refusal::AlreadySettled) => closed,
            Err(Refusal::Unknown) => !open && !closed,
            Err(_) => true,
        };
        if !right {
            self.faults.push(format!(
                "L8: reply {id:?} to {ask:?} (open {open}, closed {closed}): {reply:?}"
            ));
        }
    }

    /// S-40: where hooks judge a prompt before its reply, none is still at it when it is admitted.
    fn check_admission(&mut self, command: Option<&Command>, reply: &Result<Answer, Refusal>) {
        let (Some(Command::Prompt(prompt)), Ok(Answer::Admitted(how))) = (command, reply) else {
            return;
        };
        if !self.judges_first || matches!(how, Admitted::Duplicate) {
            return;
        }
        let live = |hook: &HookId| {
            let work = self.work.get(&EffectId::Hook(*hook));
            work.is_some_and(|work| !work.stopped)
        };
        let mut judged = self.judged.iter();
        if let Some((hook, id)) = judged.find(|(hook, id)| **id == prompt.id && live(hook)) {
            self.faults
                .push(format!("S-40: {id:?} is admitted, and {hook:?} judges it"));
        }
    }

    /// Whether a prompt waits for its reply.
    pub fn owes_admission(&self) -> bool {
        let mut owed = self.owed.values();
        owed.any(|command| matches!(command, Command::Prompt(_)))
    }

    /// S-07: the reply is the first output of its command, but for those whose outcome comes later
    /// and for the questions that a cancel closes.
    pub(super) fn check_reply_first(&mut self, call: &Call, from: usize) {
        let cancel = matches!(call.command, Command::Cancel { .. });
        let at_once = cancel
            || matches!(
                call.command,
                Command::Prompt(_)
                    | Command::Withdraw(_)
                    | Command::Promote(_)
                    | Command::Reply { .. }
                    | Command::ReplyPart { .. }
                    | Command::Offer(_)
                    | Command::Recall(_)
                    | Command::Close { .. }
            );
        let judged = self.judges_first && matches!(call.command, Command::Prompt(_));
        if !at_once || judged {
            return;
        }
        let before = |said: &&Said| {
            // Those of nested runs, too.
            let closes = matches!(
                said,
                Said::Event(Event {
                    what: What::AskClosed {
                        how: AskClose::Cancelled,
                        ..
                    },
                    ..
                })
            );
            cancel && (closes || matches!(said, Said::Effect(_, Effect::StopHook(_))))
        };
        let first = self
            .said
            .iter()
            .skip(from)
            .find(|said| !before(said))
            .cloned();
        let right = matches!(
            first.as_ref().and_then(Said::what),
            Some(What::Replied { command, .. }) if *command == call.id
        );
        if !right {
            self.faults
                .push(format!("S-07: {call:?} was followed by {first:?}"));
        }
        // S-50: within the same input, or after one write.
        let reply = self
            .replies
            .get(&call.id)
            .and_then(|reply| reply.as_ref().ok());
        let cancelled = reply.and_then(Answer::cancelled_turn);
        let still = self
            .mirror
            .turn()
            .is_some_and(|turn| Some(turn.turn) == cancelled);
        let writes = self
            .work
            .iter()
            .any(|(id, work)| matches!(id, EffectId::Write(_)) && !work.stopped);
        // A compaction that was hit is over too, and what it held up goes on.
        let hit = matches!(
            reply,
            Some(Answer::Cancelling {
                hit: Hit::Compaction,
                ..
            })
        );
        let ended = self
            .said
            .iter()
            .skip(from)
            .any(|said| matches!(said.what(), Some(What::CompactionEnded { .. })));
        if hit && !ended {
            self.faults
                .push(format!("S-50: {call:?} did not end the compaction"));
        }
        if still && !writes {
            self.faults
                .push(format!("S-50: {call:?} did not end its turn"));
        }
    }

    /// What was just started can be read, and a request's history is sound.
    pub(super) fn check_bodies(&mut self, from: usize) {
        let mut faults = Vec::new();
        let mut judged = Vec::new();
        for (n, said) in self.said.iter().enumerate().skip(from) {
            let Said::Effect(run, effect) = said else {
                continue;
            };
            let id = match effect {
                Effect::StartModel(request) => EffectId::Model(*request),
                Effect::RunTool { call } => EffectId::Tool(*call),
                Effect::RunHook { hook } => EffectId::Hook(*hook),
                Effect::Store(write) => EffectId::Write(*write),
                Effect::RunShell(command) => EffectId::Shell(*command),
                Effect::Snapshot { call, .. } => EffectId::Snapshot(*call),
                Effect::Restore(command) => EffectId::Restore(*command),
                Effect::OpenSession(command) => EffectId::Open(*command),
                _ => continue,
            };
            if self.work.get(&id).is_none_or(|work| work.stopped) {
                continue;
            }
            // What was given up in the very same input has nothing to say any more.
            let given_up = self.said.iter().skip(n + 1).any(|later| {
                matches!(later, Said::Effect(_, Effect::Store(_)))
                    || match later.what() {
                        Some(What::TurnEnded { .. }) => true,
                        Some(What::ToolEnded { call, .. }) => {
                            [EffectId::Tool(*call), EffectId::Snapshot(*call)].contains(&id)
                        }
                        _ => false,
                    }
            });
            match self.agent.body(*run, effect) {
                None if given_up => {}
                None => faults.push(format!("{effect:?} is live and has no body")),
                Some(EffectBody::Model(request)) if *run != RunId::MAIN => {
                    faults.extend(provider_ids(request.messages).err());
                    let paired = pairing(request.messages);
                    faults.extend(paired.err().map(|why| format!("S-31: {run:?}: {why}")));
                }
                Some(EffectBody::Model(request)) => {
                    faults.extend(provider_ids(request.messages).err());
                    faults.extend(
                        pairing(request.messages)
                            .err()
                            .map(|why| format!("S-31: {why}")),
                    );
                    let folded = self.mirror.history();
                    // At most one request is live (S-26): this one is the compaction's.
                    let fits = if self.mirror.compacting().is_some() {
                        compaction_fits(&request, folded)
                    } else {
                        request_fits(&request, folded)
                    };
                    faults.extend(fits.err());
                }
                Some(EffectBody::Hook {
                    facts: HookFacts::Prompt { prompt, .. },
                    ..
                }) => {
                    if let Effect::RunHook { hook } = effect {
                        judged.push((*hook, prompt));
                    }
                }
                Some(_) => {}
            }
        }
        self.judged.extend(judged);
        self.faults.append(&mut faults);
    }

    /// Dead-lock: who is in a turn waits for work, for an answer or for time.
    pub(super) fn check_waiting(&mut self) {
        if self.mirror.turn().is_none() && self.mirror.compacting().is_none() {
            return;
        }
        let stopped = self.work.values().filter(|work| work.stopped).count();
        let given_up = self.jobs.values().filter(|stopped| **stopped).count();
        let live = self.work.len() > stopped || stopped + given_up >= self.stopped_limit;
        let asks = !self.mirror.questions().is_empty();
        if !live && !asks {
            self.check_holding();
        }
        if !live && !asks && self.jobs.is_empty() && self.agent.poll_timeout().is_none() {
            self.faults.push(format!(
                "dead-lock: {:?} waits for nothing",
                self.mirror.turn()
            ));
        }
    }

    /// S-54: a turn that does nothing waits for its jobs or for time, and no steer waits with it.
    fn check_holding(&mut self) {
        let Some(turn) = self.mirror.turn().filter(|turn| turn.step.is_none()) else {
            return;
        };
        let turn = turn.turn;
        let mut waiting = self.mirror.queue().iter();
        let steer = waiting.find(|waiting| {
            waiting.lane == Lane::Steer && !self.contexts.contains(&waiting.prompt)
        });
        if let Some(steer) = steer {
            self.faults
                .push(format!("S-54: {turn:?} is held, and {steer:?} waits"));
        }
    }

    /// S-15: a session whose finite jobs begin turns isn't settled while one runs.
    fn check_settled(&mut self) {
        let mut jobs = self.mirror.jobs();
        if self.jobs_wake
            && !self.closing
            && let Some(job) = jobs.find(|job| job.finite)
        {
            let fault = format!("S-15: Settled, and {:?} runs", job.job);
            self.faults.push(fault);
        }
    }

    /// Commands that wait for their reply.
    pub fn owed(&self) -> impl Iterator<Item = &Command> {
        self.owed.values()
    }
}

/// S-31: every call is followed by one result, in call order, with nothing between.
///
/// # Errors
/// What is wrong, and where.
pub fn pairing(messages: &[Arc<Message>]) -> Result<(), String> {
    let mut wanted: Vec<CallId> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        if let Role::Tool { call, .. } = message.role {
            if wanted.first() != Some(&call) {
                return Err(format!(
                    "message {n} is the result of {call:?}; open: {wanted:?}"
                ));
            }
            wanted.remove(0);
        } else if wanted.is_empty() {
            wanted = message.calls().collect();
        } else {
            return Err(format!(
                "message {n} stands before the results of {wanted:?}"
            ));
        }
    }
    if wanted.is_empty() {
        Ok(())
    } else {
        Err(format!("no results of {wanted:?}"))
    }
}

/// A step's request holds the history, whole.
fn request_fits(request: &ModelRequest<'_>, folded: &[Arc<Message>]) -> Result<(), String> {
    let (sent, folded) = (shape(request.messages), shape(folded));
    if sent == folded {
        Ok(())
    } else {
        Err(format!(
            "S-31: the request holds {sent:?}, the mirror {folded:?}"
        ))
    }
}

/// S-59: a compaction's request is the beginning of the history, cut where no batch is open, and an instruction.
fn compaction_fits(request: &ModelRequest<'_>, folded: &[Arc<Message>]) -> Result<(), String> {
    if !request.tools.is_empty() {
        return Err("S-59: a summary is asked for with tools".to_owned());
    }
    pairing(folded).map_err(|why| format!("S-59: compacted inside a batch: {why}"))?;
    let folded = shape(folded);
    match shape(request.messages).split_last() {
        Some(((role, calls, _), cut))
            if role == "User" && calls.is_empty() && folded.starts_with(cut) =>
        {
            let kept = folded.get(cut.len());
            match kept {
                Some((role, calls, _)) if role != "User" && calls.is_empty() => {
                    Err(format!("S-59: what is kept begins at {kept:?}"))
                }
                Some(_) | None => Ok(()),
            }
        }
        sent => Err(format!(
            "S-59: the summary is asked for of {sent:?}, the history is {folded:?}"
        )),
    }
}

/// Every call that is sent back has an id that a provider can tell from all others.
fn provider_ids(messages: &[Arc<Message>]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for block in messages.iter().flat_map(|message| &message.content) {
        if let Block::ToolUse {
            call, provider_id, ..
        } = &**block
            && !provider_id
                .as_ref()
                .is_some_and(|id| !id.is_empty() && seen.insert(id.clone()))
        {
            return Err(format!(
                "S-31: {call:?} is sent as {provider_id:?}, missing or used before"
            ));
        }
    }
    Ok(())
}

/// A history without what an agent and a mirror may name differently: ids, times, names of providers.
/// A message without content says nothing to a model, and is left out; so is how exactly a
/// model is told that a call didn't run.
pub fn shape(messages: &[Arc<Message>]) -> Vec<(String, Vec<CallId>, String)> {
    let role = |role: &Role| match role {
        Role::Tool { call, error, .. } => format!("tool {call:?} {error}"),
        other => format!("{other:?}"),
    };
    let text = |m: &Message| {
        let text = m.text();
        if text.starts_with("not run") {
            "not run".to_owned()
        } else {
            text
        }
    };
    let said = messages.iter().filter(|m| !m.content.is_empty());
    said.map(|m| (role(&m.role), m.calls().collect(), text(m)))
        .collect()
}
