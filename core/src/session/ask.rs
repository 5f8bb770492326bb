//! Questions to the host: opened, answered, closed exactly once (S-32).

use super::{
    Session, args,
    hooks::{Owner, Run, Says, Slot},
    runs::LAST,
    tools::{Batch, State},
    uris,
};
use crate::vocab::{
    Answer, Ask, AskClose, AskId, Block, CallId, CommandId, Decider, Effect, PermissionUpdate,
    RawJson, Refusal, Reply, ReplyFault, RunId, Show, Text, ToolOutcome, Verdict, What,
};
use alloc::{boxed::Box, vec::Vec};

/// An open question.
#[derive(Debug)]
pub(super) struct OpenAsk {
    pub what: AskFor,
    /// The approval timer, for a permission.
    pub deadline_us: Option<u64>,
}

/// What an open question is about.
#[derive(Debug)]
pub(super) enum AskFor {
    /// Whether a call may run.
    Permission(CallId),
    /// Whether a running call may reach a host of the network.
    Network(CallId),
    /// A call that the host carries out.
    Tool(CallId),
    /// A call that reads or writes a URI of the host; whether its content never changes, as the scheme was offered.
    Uri { call: CallId, immutable: bool },
    /// A call whose result is the host's choice.
    Choice(CallId),
    /// A hook that the host runs.
    Hook(Run),
}

impl AskFor {
    fn is_permission(&self) -> bool {
        match self {
            AskFor::Permission(_) | AskFor::Network(_) => true,
            AskFor::Tool(_) | AskFor::Uri { .. } | AskFor::Choice(_) | AskFor::Hook(_) => false,
        }
    }

    /// Whether a hook is only told of something.
    fn is_told(&self) -> bool {
        match self {
            AskFor::Hook(run) => matches!(run.owner, Owner::Told(..)),
            AskFor::Permission(_)
            | AskFor::Network(_)
            | AskFor::Tool(_)
            | AskFor::Uri { .. }
            | AskFor::Choice(_) => false,
        }
    }

    /// Whether a prompt that isn't admitted, or a change of the session, waits for the answer: no turn's end closes it.
    fn is_beside_turns(&self) -> bool {
        match self {
            AskFor::Hook(run) => run.owner.is_beside_turns(),
            AskFor::Permission(_)
            | AskFor::Network(_)
            | AskFor::Tool(_)
            | AskFor::Uri { .. }
            | AskFor::Choice(_) => false,
        }
    }
}

/// How a permission was settled.
pub(super) enum Settled {
    Allow {
        by: Decider,
        input: Option<RawJson>,
        updates: Vec<PermissionUpdate>,
    },
    Deny {
        by: Decider,
        message: Option<Text>,
        interrupt: bool,
    },
}

impl Session {
    /// Asks the host; `Asked` is said at once.
    pub(super) fn open_ask(&mut self, open: OpenAsk, body: Ask) -> AskId {
        let ask = AskId(self.ids.ask());
        self.asks.insert(ask, open);
        self.say(What::Asked { ask, body });
        ask
    }

    /// How many permissions are open.
    pub(super) fn open_permissions(&self) -> usize {
        let own = self.asks.values();
        let own = own.filter(|open| open.what.is_permission()).count();
        own + self.runs.permissions()
    }

    /// `Reply`: open → settled; anything else changes nothing (L8).
    pub(super) fn reply(
        &mut self,
        command: CommandId,
        ask: AskId,
        reply: Result<Reply, ReplyFault>,
    ) {
        if self.reply_to_run(command, ask, &reply) {
            return;
        }
        if let Err(refusal) = self.reply_fits(ask, &reply) {
            return self.refuse(command, refusal);
        }
        let Some(open) = self.asks.remove(&ask) else {
            return;
        };
        self.answer(command, Answer::Done);
        match open.what {
            AskFor::Permission(call) => {
                let (how, settled) = permission_reply(reply);
                self.permission_settled(ask, how, call, settled);
            }
            AskFor::Network(call) => {
                let (how, settled) = permission_reply(reply);
                self.network_settled(ask, how, call, settled);
            }
            AskFor::Tool(call) | AskFor::Choice(call) => {
                self.host_call_replied(ask, call, false, reply)
            }
            AskFor::Uri { call, immutable } => self.host_call_replied(ask, call, immutable, reply),
            AskFor::Hook(run) => self.host_hook_replied(ask, run, reply),
        }
    }

    fn reply_fits(&self, ask: AskId, reply: &Result<Reply, ReplyFault>) -> Result<(), Refusal> {
        let Some(open) = self.asks.get(&ask) else {
            return Err(self.unknown_ask(ask));
        };
        let fits = match reply {
            Err(_) => true,
            Ok(Reply::Allow { input, .. }) => {
                let input = input.as_ref();
                open.what.is_permission()
                    && input.is_none_or(|input| args::object(&input.0).is_some())
            }
            Ok(Reply::Deny { .. }) => open.what.is_permission(),
            Ok(Reply::Tool { .. }) => matches!(open.what, AskFor::Tool(_)),
            Ok(Reply::Uri { .. }) => matches!(open.what, AskFor::Uri { .. }),
            Ok(Reply::Choice(_)) => matches!(open.what, AskFor::Choice(_)),
            Ok(Reply::Hook(_)) => matches!(open.what, AskFor::Hook(_)),
        };
        if fits {
            Ok(())
        } else {
            Err(Refusal::Invalid(
                "this reply doesn't answer that question".into(),
            ))
        }
    }

    fn unknown_ask(&self, ask: AskId) -> Refusal {
        if self.ids.was_asked(ask.0) || self.run_asked(ask) {
            Refusal::AlreadySettled
        } else {
            Refusal::Unknown
        }
    }

    /// `ReplyPart`: progress of a call that the host carries out, else dropped.
    pub(super) fn reply_part(&mut self, command: CommandId, ask: AskId, content: Vec<Block>) {
        if self.reply_part_to_run(command, ask, &content) {
            return;
        }
        let call = match self.asks.get(&ask) {
            None => return self.refuse(command, self.unknown_ask(ask)),
            Some(open) => match &open.what {
                AskFor::Tool(call) | AskFor::Uri { call, .. } => Some(*call),
                AskFor::Permission(_)
                | AskFor::Network(_)
                | AskFor::Choice(_)
                | AskFor::Hook(_) => None,
            },
        };
        self.answer(command, Answer::Done);
        if let Some(call) = call {
            self.tool_progress(call, crate::vocab::Progress::Append(content));
        }
    }

    /// A permission's question is over: it is closed, whatever stood beside it stops, the call is decided.
    pub(super) fn permission_settled(
        &mut self,
        ask: AskId,
        how: AskClose,
        call: CallId,
        settled: Settled,
    ) {
        self.say(What::AskClosed { ask, how });
        self.with_tools(|session, _, batch| {
            let Some(at) = batch.find(call) else { return };
            if let Some(State::Asking { hooks, .. }) = batch.state_mut(at) {
                let mut hooks = core::mem::take(hooks);
                session.drop_chain(&mut hooks, &AskClose::Superseded);
            }
            session.decide(batch, at, settled);
        });
    }

    pub(super) fn decide(&mut self, batch: &mut Batch, at: usize, settled: Settled) {
        match settled {
            Settled::Allow { by, input, updates } => {
                let input = input.filter(|input| batch.input(at).is_none_or(|old| old != input));
                if let Some(input) = &input {
                    batch.replace_input(at, input.clone());
                    if let Some((by, why)) = self.bad_change(batch, at) {
                        return self.deny_changed(batch, at, by, &why);
                    }
                }
                // Content is a person's to approve: a hook's word counts for this one call.
                if let (Decider::Host, Some(source)) = (&by, batch.name(at)) {
                    self.approve_source(&source);
                }
                let permits = self.take_updates(updates);
                self.allow_call(batch, at, Some(by), input);
                self.permit(permits);
            }
            Settled::Deny {
                by,
                message,
                interrupt,
            } => {
                self.deny_call(batch, at, by, message);
                if interrupt {
                    batch.interrupt(at);
                }
            }
        }
    }

    /// The approval timer fired.
    pub(super) fn approval_timed_out(&mut self, ask: AskId) {
        let Some(open) = self.asks.remove(&ask) else {
            return;
        };
        let deny = Settled::Deny {
            by: Decider::Timer,
            message: None,
            interrupt: false,
        };
        match open.what {
            AskFor::Permission(call) => {
                self.permission_settled(ask, AskClose::TimedOut, call, deny)
            }
            AskFor::Network(call) => self.network_settled(ask, AskClose::TimedOut, call, deny),
            AskFor::Tool(_) | AskFor::Uri { .. } | AskFor::Choice(_) | AskFor::Hook(_) => {}
        }
    }

    /// A hook of the host took too long.
    pub(super) fn host_hook_timed_out(&mut self, ask: AskId) {
        let Some(open) = self.asks.remove(&ask) else {
            return;
        };
        self.say(What::AskClosed {
            ask,
            how: AskClose::TimedOut,
        });
        if let AskFor::Hook(run) = open.what {
            let outcome = self.judge_hook(run, Err("it took too long".into()));
            self.hook_decided(outcome);
        }
    }

    fn host_hook_replied(&mut self, ask: AskId, run: Run, reply: Result<Reply, ReplyFault>) {
        let (how, result) = match reply {
            Ok(Reply::Hook(reply)) => (None, Ok(*reply)),
            Ok(
                Reply::Allow { .. }
                | Reply::Deny { .. }
                | Reply::Tool { .. }
                | Reply::Uri { .. }
                | Reply::Choice(_),
            ) => (
                Some(AskClose::Fault("not a hook's reply".into())),
                Err("not a hook's reply".into()),
            ),
            Err(fault) => (Some(close_of(&fault)), Err(fault_text(&fault))),
        };
        let permission = matches!(run.owner, Owner::Permission(_));
        if let Some(how) = how {
            self.say(What::AskClosed { ask, how });
            let outcome = self.judge_hook(run, result);
            return self.hook_decided(outcome);
        }
        let outcome = self.judge_hook(run, result);
        let allow = match &outcome.says {
            Says::Allow { .. } => Some(true),
            Says::Deny { .. } => Some(false),
            Says::Pass { .. } | Says::Ask => None,
        };
        let by = if permission && allow.is_some() {
            Decider::Hook(outcome.key.clone())
        } else {
            Decider::Host
        };
        let how = AskClose::Answered { by, allow };
        self.say(What::AskClosed { ask, how });
        self.hook_decided(outcome);
    }

    /// The host carried a call out, or couldn't.
    fn host_call_replied(
        &mut self,
        ask: AskId,
        call: CallId,
        immutable: bool,
        reply: Result<Reply, ReplyFault>,
    ) {
        let answered = AskClose::Answered {
            by: Decider::Host,
            allow: None,
        };
        let mut show = None;
        let (how, outcome, content) = match reply {
            Ok(Reply::Tool {
                content,
                is_error,
                details,
            }) => {
                show = details.map(|details| Box::new(shown(details)));
                let outcome = if is_error {
                    ToolOutcome::Failed
                } else {
                    ToolOutcome::Ok
                };
                (answered, outcome, content)
            }
            Ok(Reply::Choice(choice)) => {
                let text = choice.unwrap_or_else(|| "the user made no choice".into());
                (answered, ToolOutcome::Ok, alloc::vec![Block::Text(text)])
            }
            Ok(Reply::Uri {
                body,
                mime,
                notes,
                immutable: said,
            }) => {
                show = uris::shown(mime, said.unwrap_or(immutable));
                let mut content = alloc::vec![Block::Text(body)];
                content.extend(notes.into_iter().map(Block::Text));
                (answered, ToolOutcome::Ok, content)
            }
            Ok(Reply::Allow { .. } | Reply::Deny { .. } | Reply::Hook(_)) => (
                AskClose::Fault("not a result".into()),
                ToolOutcome::Failed,
                Vec::new(),
            ),
            Err(fault) => (
                close_of(&fault),
                ToolOutcome::Failed,
                alloc::vec![Block::Text(fault_text(&fault))],
            ),
        };
        self.say(What::AskClosed { ask, how });
        self.tool_done(call, outcome, content, show);
    }

    fn network_settled(&mut self, ask: AskId, how: AskClose, call: CallId, settled: Settled) {
        self.say(What::AskClosed { ask, how });
        let (ok, interrupt) = match settled {
            Settled::Allow { updates, .. } => {
                let permits = self.take_updates(updates);
                self.permit(permits);
                (true, false)
            }
            Settled::Deny { interrupt, .. } => (false, interrupt),
        };
        self.network.retain(|(asked, _)| *asked != call);
        self.out.effect(Effect::Allow { call, ok });
        self.with_tools(|_, _, batch| {
            if let Some(at) = batch.find(call).filter(|_| interrupt) {
                batch.interrupt(at);
            }
        });
    }

    /// Every open question is closed, in order of creation, those of some runs too; a permission's hook stops with it.
    pub(super) fn close_asks(&mut self, how: &AskClose, batch: Option<&mut Batch>, runs: &[RunId]) {
        let mut batch = batch;
        let mut kept = Vec::new();
        while let Some((ask, open)) = self.asks.pop_first() {
            self.close_run_asks(runs, ask, how);
            if open.what.is_beside_turns() && (!self.intake.is_empty() || self.is_changing()) {
                kept.push((ask, open));
                continue;
            }
            // Who is only told of something was told: there is nothing to take back.
            let how = if open.what.is_told() {
                AskClose::Superseded
            } else {
                how.clone()
            };
            self.say(What::AskClosed { ask, how });
            if let AskFor::Permission(call) = open.what
                && let Some(batch) = batch.as_deref_mut()
                && let Some(at) = batch.find(call)
                && let Some(State::Asking { hooks, .. }) = batch.state_mut(at)
                && let Some(Slot::Local(hook)) = hooks.slot
            {
                hooks.slot = None;
                self.stop_hook(hook);
            }
        }
        self.asks.extend(kept);
        self.close_run_asks(runs, LAST, how);
        self.stop_telling();
    }

    /// Says what was decided about a call.
    pub(super) fn say_decided(
        &mut self,
        call: CallId,
        allow: bool,
        by: Decider,
        input: Option<RawJson>,
        reason: Option<Text>,
    ) {
        self.say(What::Decided {
            call,
            verdict: Verdict {
                allow,
                by,
                input,
                reason,
                risk: None,
                block: None,
            },
        });
    }
}

/// How a reply closes a permission, and what it decides: errors deny.
fn permission_reply(reply: Result<Reply, ReplyFault>) -> (AskClose, Settled) {
    match reply {
        Ok(Reply::Allow { input, updates }) => (
            AskClose::Answered {
                by: Decider::Host,
                allow: Some(true),
            },
            Settled::Allow {
                by: Decider::Host,
                input,
                updates,
            },
        ),
        Ok(Reply::Deny { message, interrupt }) => (
            AskClose::Answered {
                by: Decider::Host,
                allow: Some(false),
            },
            Settled::Deny {
                by: Decider::Host,
                message,
                interrupt,
            },
        ),
        Ok(Reply::Hook(_) | Reply::Tool { .. } | Reply::Uri { .. } | Reply::Choice(_)) => {
            let text: Text = "not a decision".into();
            (
                AskClose::Fault(text.clone()),
                Settled::Deny {
                    by: Decider::Fault(text),
                    message: None,
                    interrupt: false,
                },
            )
        }
        Err(fault) => {
            let by = match &fault {
                ReplyFault::HostError(text) | ReplyFault::Malformed(text) => {
                    Decider::Fault(text.clone())
                }
                ReplyFault::HostCancelled => Decider::Host,
                ReplyFault::HostGone => Decider::Closed,
            };
            (
                close_of(&fault),
                Settled::Deny {
                    by,
                    message: None,
                    interrupt: false,
                },
            )
        }
    }
}

fn close_of(fault: &ReplyFault) -> AskClose {
    match fault {
        ReplyFault::HostError(text) | ReplyFault::Malformed(text) => AskClose::Fault(text.clone()),
        ReplyFault::HostCancelled => AskClose::Cancelled,
        ReplyFault::HostGone => AskClose::HostGone,
    }
}

fn fault_text(fault: &ReplyFault) -> Text {
    match fault {
        ReplyFault::HostError(text) | ReplyFault::Malformed(text) => text.clone(),
        ReplyFault::HostCancelled => "cancelled by the host".into(),
        ReplyFault::HostGone => "the host is gone".into(),
    }
}

/// What a host's own details of a result look like beside it.
fn shown(details: RawJson) -> Show {
    Show {
        summary: None,
        changed: Vec::new(),
        meta: Vec::new(),
        details: Some(details),
        truncated: false,
        redacted: false,
    }
}
