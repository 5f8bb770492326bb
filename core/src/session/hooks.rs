//! Hooks: the slots they run in, one after another at one point, whoever runs them.

use alloc::{collections::VecDeque, format, vec::Vec};

use super::{
    Session, args,
    ask::{AskFor, OpenAsk},
    phase::Phase,
};
use crate::vocab::{
    Ask, AskClose, AskId, CallId, Decider, Effect, HookAsk, HookFacts, HookId, HookPoint,
    HookReply, HookVerdict, Now, PermissionUpdate, RawJson, Text, What,
};

/// Hooks of one point that judge one thing, run in order.
#[derive(Debug, Default)]
pub(super) struct Chain {
    rest: VecDeque<Pick>,
    /// The one that runs.
    pub slot: Option<Slot>,
    pub started_us: u64,
}

impl Chain {
    /// Keeps the hooks of the host alone, or those of the configuration.
    pub fn only(&mut self, host: bool) {
        self.rest.retain(|pick| pick.host == host);
    }
}

/// A hook that is to run.
#[derive(Clone, Debug)]
struct Pick {
    key: Text,
    decides: bool,
    host: bool,
    timeout_us: Option<u64>,
}

/// The running hook of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The driver runs it.
    Local(HookId),
    /// The host was asked.
    Host(AskId),
}

/// What a hook run judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The prompt of a turn that begins.
    Prompt,
    /// A prompt that isn't admitted yet.
    Intake,
    Pre(CallId),
    Permission(CallId),
    Post(CallId),
    TurnEnd,
    /// A change of the session.
    Switch,
    /// Nothing: it is told, and a compaction goes on beside it.
    Compaction,
    /// Nothing: it is told of something, by the number of that, and all goes on beside it.
    Told(u64, HookPoint),
}

impl Owner {
    pub fn point(self) -> HookPoint {
        match self {
            Owner::Prompt | Owner::Intake => HookPoint::PromptSubmit,
            Owner::Pre(_) => HookPoint::PreTool,
            Owner::Permission(_) => HookPoint::Permission,
            Owner::Post(_) => HookPoint::PostTool,
            Owner::TurnEnd => HookPoint::TurnEnd,
            Owner::Switch => HookPoint::SessionSwitch,
            Owner::Compaction => HookPoint::PreCompact,
            Owner::Told(_, point) => point,
        }
    }
}

/// A hook run that hasn't been answered.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub owner: Owner,
    pub key: Text,
    pub decides: bool,
    pub deadline_us: Option<u64>,
}

/// What a hook run came to.
pub(super) struct Outcome {
    pub owner: Owner,
    pub key: Text,
    pub says: Says,
    /// It wants the turn to end; says why.
    pub stop: Option<Text>,
}

/// What the hook says, with its failures already judged.
pub(super) enum Says {
    /// Nothing against it; perhaps something to add.
    Pass { note: Option<Text> },
    /// It replaces the prompt's content, or allows the call, with other input perhaps.
    Allow {
        input: Option<RawJson>,
        note: Option<Text>,
        updates: Vec<PermissionUpdate>,
    },
    /// The host should be asked.
    Ask,
    /// It blocks, denies or refuses; a permission's hook may want the turn to end, too.
    Deny { why: Text, interrupt: bool },
}

impl Session {
    /// The hooks of a point, for a tool or for none.
    pub(super) fn chain(&self, owner: Owner, tool: Option<&str>, now: Now) -> Chain {
        let point = owner.point();
        let fits = |matcher: &Option<Text>| match (matcher, tool) {
            (Some(matcher), Some(tool)) => matcher.split('|').any(|one| args::glob(one, tool)),
            (Some(_) | None, None) | (None, Some(_)) => true,
        };
        let local = self
            .config
            .hooks
            .iter()
            .filter(|hook| hook.spec.point == point && fits(&hook.spec.matcher));
        let offered = self
            .offered_hooks
            .iter()
            .filter(|hook| hook.point == point && fits(&hook.matcher));
        let local = local.map(|hook| Pick {
            key: hook.spec.key.clone(),
            decides: hook.decides,
            host: false,
            timeout_us: hook.spec.timeout_us.or(self.config.timeouts.hook_us),
        });
        let offered = offered.map(|hook| Pick {
            key: hook.key.clone(),
            decides: true,
            host: true,
            timeout_us: hook.timeout_us.or(self.config.timeouts.hook_us),
        });
        Chain {
            rest: local.chain(offered).collect(),
            slot: None,
            started_us: now.mono_us,
        }
    }

    /// Whether there is a hook of a point that no tool is about.
    pub(super) fn has_hooks(&self, point: HookPoint) -> bool {
        let own = self.config.hooks.iter().map(|hook| &hook.spec);
        own.chain(&self.offered_hooks)
            .any(|hook| hook.point == point && hook.matcher.is_none())
    }

    /// Whether a hook before this call may decide something about it.
    pub(super) fn may_judge(&self, call: CallId, tool: &str) -> bool {
        let chain = self.chain(Owner::Pre(call), Some(tool), self.now);
        chain.rest.iter().any(|pick| pick.decides)
    }

    /// Starts the next hook of a chain. `false` if there is none left.
    pub(super) fn next_hook(
        &mut self,
        chain: &mut Chain,
        owner: Owner,
        facts: impl FnOnce() -> HookFacts,
    ) -> bool {
        chain.slot = None;
        let Some(pick) = chain.rest.pop_front() else {
            return false;
        };
        let deadline_us = pick
            .timeout_us
            .map(|wait| self.now.mono_us.saturating_add(wait));
        let run = Run {
            owner,
            key: pick.key.clone(),
            decides: pick.decides,
            deadline_us,
        };
        if pick.host {
            let body = HookAsk {
                key: pick.key,
                point: owner.point(),
                facts: facts(),
            };
            let ask = self.open_ask(
                OpenAsk {
                    what: AskFor::Hook(run),
                    deadline_us: None,
                },
                Ask::Hook(body.into()),
            );
            chain.slot = Some(Slot::Host(ask));
        } else {
            let hook = HookId(self.ids.hook());
            self.hooks.insert(hook, run);
            self.effects.hooks.issue(hook.0);
            self.out.effect(Effect::RunHook { hook });
            chain.slot = Some(Slot::Local(hook));
        }
        true
    }

    /// Ends a chain early: the running hook of the driver is stopped, the host's question is closed.
    pub(super) fn drop_chain(&mut self, chain: &mut Chain, how: &AskClose) {
        chain.rest.clear();
        match chain.slot.take() {
            Some(Slot::Local(hook)) => self.stop_hook(hook),
            Some(Slot::Host(ask)) if self.asks.remove(&ask).is_some() => {
                self.say(What::AskClosed {
                    ask,
                    how: how.clone(),
                });
            }
            Some(Slot::Host(_)) | None => {}
        }
    }

    /// Stops a hook of the driver, if it still runs.
    pub(super) fn stop_hook(&mut self, hook: HookId) {
        if self.hooks.remove(&hook).is_some() {
            self.effects.hooks.stop(hook.0);
            self.out.effect(Effect::StopHook(hook));
        }
    }

    /// Judges what a hook answered: failures by the row of its point.
    pub(super) fn judge_hook(&mut self, run: Run, result: Result<HookReply, Text>) -> Outcome {
        let Run {
            owner,
            key,
            decides,
            ..
        } = run;
        let mut stop = None;
        let says = match result {
            Ok(reply) => {
                stop = (decides && !reply.go_on).then(|| why_stopped(&reply));
                says_of(owner, decides, reply)
            }
            Err(detail) => {
                let point = owner.point();
                let reported = match owner {
                    Owner::Prompt | Owner::Intake | Owner::Pre(_) | Owner::Switch => !decides,
                    Owner::Post(_) | Owner::TurnEnd | Owner::Compaction | Owner::Told(..) => true,
                    Owner::Permission(_) => false,
                };
                if reported {
                    self.say(What::HookFailed {
                        hook: key.clone(),
                        point,
                        detail: detail.clone(),
                    });
                }
                match owner {
                    Owner::Prompt | Owner::Intake | Owner::Pre(_) | Owner::Switch if decides => {
                        let why = format!("hook {key} failed: {detail}").into();
                        Says::Deny {
                            why,
                            interrupt: false,
                        }
                    }
                    Owner::Prompt
                    | Owner::Intake
                    | Owner::Pre(_)
                    | Owner::Permission(_)
                    | Owner::Post(_)
                    | Owner::TurnEnd
                    | Owner::Switch
                    | Owner::Compaction
                    | Owner::Told(..) => Says::Pass { note: None },
                }
            }
        };
        Outcome {
            owner,
            key,
            says,
            stop,
        }
    }

    /// Hands an outcome to whoever waits for it.
    pub(super) fn hook_decided(&mut self, outcome: Outcome) {
        let Outcome {
            owner,
            key,
            says,
            stop,
        } = outcome;
        match owner {
            Owner::Prompt => self.prompt_hook_said(&key, says),
            Owner::Intake => self.intake_hook_said(&key, says),
            Owner::TurnEnd => self.turn_end_hook_said(&key, says, stop.is_some()),
            Owner::Switch => self.switch_hook_said(&says),
            Owner::Compaction => self.tell_of_compaction(),
            Owner::Told(number, _) => self.told_one(number),
            Owner::Pre(call) | Owner::Permission(call) | Owner::Post(call) => {
                self.with_tools(|session, turn, batch| match owner {
                    Owner::Pre(_) => {
                        session.pre_hook_said(turn, batch, call, &key, says);
                        batch.stop_turn(call, stop);
                    }
                    Owner::Permission(_) => session.permission_hook_said(batch, call, &key, says),
                    Owner::Post(_) => session.post_hook_said(batch, call, says, stop),
                    Owner::Prompt
                    | Owner::Intake
                    | Owner::TurnEnd
                    | Owner::Switch
                    | Owner::Compaction
                    | Owner::Told(..) => {}
                });
            }
        }
    }

    /// The driver's hook ended.
    pub(super) fn hook_settled(&mut self, hook: HookId, outcome: Result<HookReply, Text>) {
        if let Some(run) = self.hooks.remove(&hook) {
            let outcome = self.judge_hook(run, outcome);
            self.hook_decided(outcome);
        }
    }

    /// A hook of the driver took too long.
    pub(super) fn hook_timed_out(&mut self, hook: HookId) {
        if let Some(run) = self.hooks.remove(&hook) {
            self.effects.hooks.stop(hook.0);
            self.out.effect(Effect::StopHook(hook));
            let outcome = self.judge_hook(run, Err("it took too long".into()));
            self.hook_decided(outcome);
        }
    }

    /// What a local hook is told.
    pub(super) fn hook_facts(&self, owner: Owner) -> HookFacts {
        match owner {
            Owner::Prompt => {
                let first = self.phase.turn().and_then(|turn| turn.to_apply.front());
                HookFacts::Prompt {
                    prompt: first.map_or(crate::vocab::PromptId(0), |prompt| prompt.id),
                    text: first.map_or_else(|| "".into(), |prompt| args::text_of(&prompt.content)),
                }
            }
            Owner::Intake => self.intake.facts(),
            Owner::Pre(call) | Owner::Permission(call) => HookFacts::Call { call },
            Owner::Post(call) => self.result_facts(call),
            Owner::Switch => self.switch_facts(),
            Owner::Compaction => self.compaction_facts(),
            Owner::Told(number, _) => self.told_facts(number),
            Owner::TurnEnd => {
                let max = self.config.policy.max_refusals;
                self.phase.turn().map_or(
                    HookFacts::TurnEnd {
                        honoured: 0,
                        left: max,
                        last: None,
                    },
                    |turn| turn_end_facts(turn, max),
                )
            }
        }
    }

    fn result_facts(&self, call: CallId) -> HookFacts {
        let (content, ok, wall_us) = match &self.phase {
            Phase::Tools(_, batch) => batch.result_of(call),
            Phase::Idle
            | Phase::Admitting(..)
            | Phase::Waiting(_)
            | Phase::Saving(..)
            | Phase::Requesting(..)
            | Phase::Streaming(..)
            | Phase::Backoff(..)
            | Phase::Checking(..)
            | Phase::Holding(..)
            | Phase::Compacting(_)
            | Phase::Closed => (Vec::new(), false, 0),
        };
        HookFacts::Result {
            call,
            content,
            ok,
            wall_us,
        }
    }
}

/// What a turn-end hook is told; `max` refusals are honoured in a turn.
pub(super) fn turn_end_facts(turn: &super::phase::Turn, max: Option<u32>) -> HookFacts {
    let last = match &turn.answer {
        Some(crate::vocab::TurnAnswer::Text(text)) => Some(text.clone()),
        Some(crate::vocab::TurnAnswer::Captured { .. }) | None => None,
    };
    HookFacts::TurnEnd {
        honoured: turn.refusals,
        left: max.map(|max| max.saturating_sub(turn.refusals)),
        last,
    }
}

/// Why a hook wants the turn to end.
fn why_stopped(reply: &HookReply) -> Text {
    let why = match &reply.verdict {
        HookVerdict::Deny(why) => Some(why),
        HookVerdict::Pass | HookVerdict::Allow { .. } | HookVerdict::Ask => reply.context.as_ref(),
    };
    let why = reply.stop_reason.as_ref().or(why);
    why.map_or_else(|| "stopped by a hook".into(), Text::clone)
}

/// What an answer means at its point. An observe-only hook means nothing.
fn says_of(owner: Owner, decides: bool, reply: HookReply) -> Says {
    if !decides {
        return Says::Pass { note: None };
    }
    let permission = matches!(owner, Owner::Permission(_));
    let stops = match owner {
        Owner::Prompt | Owner::Intake | Owner::Pre(_) | Owner::Permission(_) | Owner::Switch => {
            !reply.go_on
        }
        Owner::Post(_) | Owner::TurnEnd | Owner::Compaction | Owner::Told(..) => false,
    };
    let stopped = stops.then(|| why_stopped(&reply));
    let HookReply {
        verdict,
        context: note,
        updates,
        interrupt,
        ..
    } = reply;
    match (verdict, stopped) {
        (HookVerdict::Deny(why), _) => Says::Deny {
            why,
            interrupt: permission && (interrupt || stops),
        },
        (_, Some(why)) => Says::Deny {
            why,
            interrupt: permission,
        },
        (HookVerdict::Pass, None) => Says::Pass { note },
        (HookVerdict::Allow { input }, None) => Says::Allow {
            input,
            note,
            updates,
        },
        (HookVerdict::Ask, None) => Says::Ask,
    }
}

/// The decider that a hook is.
pub(super) fn by_hook(key: &Text) -> Decider {
    Decider::Hook(key.clone())
}
