//! What is handed down to a run: answers to its questions, steers, cancels and stops of what is under it. It replies itself.

use alloc::{boxed::Box, vec};

use super::{Asked, LAST, MOST_ASKS};
use crate::session::{
    Session,
    commands::{Owed, OwedFor},
    jobs::BY_USER,
};
use crate::vocab::{
    Answer, AskClose, AskId, Block, Call, CancelWhat, CancelWhy, Command, CommandId, Deliver,
    Effect, Hit, IdleSteer, JobCommand, JobId, Prompt, Refusal, Reply, ReplyFault, RunId,
    RunStatus, Text, ToolOutcome, What,
};

impl Session {
    /// A reply to a question of a run is handed down to it. `false`: none of them asked.
    pub(in crate::session) fn reply_to_run(
        &mut self,
        command: CommandId,
        ask: AskId,
        reply: &Result<Reply, ReplyFault>,
    ) -> bool {
        self.answer_run(command, ask, || Command::Reply {
            ask,
            reply: reply.clone(),
        })
    }

    /// As [`reply_to_run`](Self::reply_to_run), a part of it.
    pub(in crate::session) fn reply_part_to_run(
        &mut self,
        command: CommandId,
        ask: AskId,
        content: &[Block],
    ) -> bool {
        self.answer_run(command, ask, || Command::ReplyPart {
            ask,
            content: content.to_vec(),
        })
    }

    fn answer_run(
        &mut self,
        command: CommandId,
        ask: AskId,
        answer: impl FnOnce() -> Command,
    ) -> bool {
        let run = self.runs.said(ask).map(|open| open.run);
        if let Some(run) = run {
            self.hand_down(command, run, answer());
        }
        run.is_some()
    }

    /// Whether a question of a run that is over had this id.
    pub(in crate::session) fn run_asked(&self, ask: AskId) -> bool {
        let held = |open: &Asked| open.ask == ask && open.held.is_some();
        self.ids.of_earlier_run(ask.0) && !self.runs.asks.iter().any(held)
    }

    /// Hands a command to a run, which replies to it.
    fn hand_down(&mut self, command: CommandId, run: RunId, what: Command) {
        let most = self.config.limits.owed_replies;
        // An answer gets through all the same: what asked would wait for ever.
        let answers = matches!(what, Command::Reply { .. } | Command::ReplyPart { .. });
        let most = most.saturating_add(if answers { MOST_ASKS } else { 0 });
        if self.owed.len() >= most {
            return self.refuse(command, Refusal::Full);
        }
        self.owed.push_back(Owed {
            command,
            what: OwedFor::Run(run),
            since_us: self.now.mono_us,
        });
        let call = Call {
            id: command,
            command: what,
        };
        self.out.effect(Effect::CallRun(run, Box::new(call)));
    }

    /// A run has replied to a command that was handed to it. To others it owed nothing to anybody here.
    pub(super) fn run_replied(
        &mut self,
        run: RunId,
        command: CommandId,
        mut reply: Result<Answer, Refusal>,
    ) {
        let handed = |owed: &Owed| {
            owed.command == command && matches!(owed.what, OwedFor::Run(to) if to == run)
        };
        let Some(at) = self.owed.iter().position(handed) else {
            return;
        };
        self.owed.remove(at);
        if let Ok(Answer::Cancelling { queued, .. }) = &mut reply {
            *queued = self.prompts.ids();
        }
        self.say(What::Replied { command, reply });
        self.pass_barriers();
    }

    /// `SteerRun`.
    pub(in crate::session) fn steer_run(
        &mut self,
        command: CommandId,
        run: RunId,
        mut prompt: Prompt,
    ) {
        if !self.closing.is_open() {
            return self.refuse(command, Refusal::Closing);
        }
        match self.runs.above(run) {
            None => self.refuse(command, Refusal::Unknown),
            Some(own) if own == run => {
                prompt.deliver = Deliver::Steer {
                    idle: IdleSteer::Start,
                };
                self.hand_down(command, own, Command::Prompt(prompt));
            }
            Some(own) => self.hand_down(command, own, Command::SteerRun { run, prompt }),
        }
    }

    /// A stop of a job of a run is handed down. `false`: none has it.
    pub(in crate::session) fn stop_job_of_run(
        &mut self,
        command: CommandId,
        name: &Text,
        generation: Option<&Text>,
    ) -> bool {
        let found = self.runs.of_job(|record| {
            record.id == *name && generation.is_none_or(|wanted| record.generation == *wanted)
        });
        let Some((run, record)) = found else {
            return false;
        };
        let what = JobCommand::Stop {
            job: record.id.clone(),
            generation: Some(record.generation.clone()),
        };
        self.hand_down(command, run, Command::Job(what));
        true
    }

    /// A cancel of a job of a run is handed down. `false`: none has it.
    pub(in crate::session) fn cancel_job_of_run(&mut self, command: CommandId, job: JobId) -> bool {
        let Some((run, _)) = self.runs.of_job(|record| record.job == job) else {
            return false;
        };
        let what = Command::Cancel {
            what: CancelWhat::Job(job),
            why: CancelWhy::Host,
        };
        self.hand_down(command, run, what);
        true
    }

    /// `Cancel` of one run: its call ends as cancelled, or its job as stopped, and the turn goes on.
    pub(in crate::session) fn cancel_run(
        &mut self,
        command: CommandId,
        run: RunId,
        why: CancelWhy,
    ) {
        match self.runs.above(run) {
            None => self.hit(command, Hit::Nothing),
            Some(own) if own != run => {
                let what = CancelWhat::Run(run);
                self.hand_down(command, own, Command::Cancel { what, why });
            }
            Some(_) => {
                self.close_run_asks(&[run], LAST, &AskClose::Cancelled);
                self.hit(command, Hit::Run);
                let Some(live) = self.runs.live.get(&run) else {
                    return;
                };
                match live.job {
                    Some(job) => self.end_job(job, BY_USER),
                    None => {
                        let call = live.call;
                        self.stop_run(run, RunStatus::Cancelled);
                        self.end_cut_runs();
                        let content = vec![Block::Text("cancelled by the user".into())];
                        self.tool_done(call, ToolOutcome::Cancelled, content, None);
                    }
                }
            }
        }
    }
}
