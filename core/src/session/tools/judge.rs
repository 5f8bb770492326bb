//! Judging a call; the first row that decides, decides:
//!
//! 1. the name is known, the arguments parse and fit the schema;
//! 2. pre-tool hooks;
//! 3. a deny rule, in every mode, whatever a hook said;
//! 4. a mode that lets nothing be changed, for a call that changes something;
//! 5. an allow rule or a hook's allow, for content that somebody approved: run;
//! 6. an ask rule, a hook that wants a question, content that nobody approved: ask, unless the mode asks nobody;
//! 7. the mode.

use alloc::{format, string::ToString, vec::Vec};

use super::{Batch, HookSays, Over, State, Then, Tool, capture_failure};
use crate::session::{
    Session, args,
    ask::{AskFor, OpenAsk},
    config::{Rule, RuleBehaviour, Snapshots, UnapprovedSource},
    hooks::{Owner, by_hook},
    phase::Turn,
};
use crate::vocab::{
    ApprovalMode, Ask, AskReason, CheckpointId, Decider, Effect, HookFacts, Level, PermissionAsk,
    RawJson, Route, SideEffect, Text, ToolInput, ToolOutcome, ToolSpec, WriteId,
};

/// What the gate says.
enum Ruling {
    /// Run it; who decided, if that is worth saying.
    Run(Option<Decider>),
    Deny(Decider, Text),
    Ask(AskReason),
}

impl Session {
    /// Row 1: the name is known, the arguments parse and fit. Else the call ends, with no `Decided`.
    pub(in crate::session) fn recheck(
        &mut self,
        turn: &mut Turn,
        batch: &mut Batch,
        at: usize,
    ) -> bool {
        let Some(tool) = batch.at(at) else {
            return false;
        };
        let Some(spec) = tool.spec.clone() else {
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_ref()).collect();
            let text = format!(
                "there is no tool named {:?}; the tools are: {}",
                tool.name,
                names.join(", ")
            );
            self.call_over(batch, at, ToolOutcome::NotFound, &text);
            return false;
        };
        let fault = match &tool.input {
            ToolInput::Unparsed(_) => "the arguments are not a JSON object".to_string(),
            ToolInput::Object(input) => match args::check(&spec.schema, input) {
                Ok(()) => return true,
                Err(why) => why,
            },
        };
        self.call_over(
            batch,
            at,
            ToolOutcome::Invalid,
            &format!("invalid arguments: {fault}"),
        );
        if let Route::Capture { tries } = spec.route {
            turn.bad_captures = turn.bad_captures.saturating_add(1);
            if turn.bad_captures >= tries.max(1) {
                batch.over.get_or_insert(Over::Failed {
                    at,
                    failure: capture_failure(&spec.name, &fault),
                });
            }
        }
        false
    }

    /// What is wrong with input that the host or a permission hook put in place of the model's: it is no object, or,
    /// where that is looked at, it doesn't fit or a deny rule matches it.
    pub(in crate::session) fn bad_change(
        &self,
        batch: &Batch,
        at: usize,
    ) -> Option<(Decider, Text)> {
        let tool = batch.calls.get(at)?;
        let input = batch.input(at)?;
        if args::object(&input.0).is_none() {
            let why: Text = "the changed input is not a JSON object".into();
            return Some((Decider::Fault(why.clone()), why));
        }
        if !self.config.policy.recheck_changed_input {
            return None;
        }
        let spec = tool.spec.as_ref()?;
        if let Err(why) = args::check(&spec.schema, input) {
            let why: Text = format!("the changed input doesn't fit: {why}").into();
            return Some((Decider::Fault(why.clone()), why));
        }
        let summary = args::summary(&tool.name, input);
        let rule = self.rule(RuleBehaviour::Deny, &tool.name, &summary)?;
        let why = format!("denied by the permission rule {}", rule_text(rule));
        Some((Decider::Rule(rule_text(rule)), why.into()))
    }

    /// The end of a call whose changed input is bad.
    pub(in crate::session) fn deny_changed(
        &mut self,
        batch: &mut Batch,
        at: usize,
        by: Decider,
        why: &Text,
    ) {
        let invalid = matches!(by, Decider::Fault(_));
        self.deny_call(batch, at, by, Some(why.clone()));
        if invalid {
            self.call_over(batch, at, ToolOutcome::Invalid, why);
        }
    }

    /// Rows 3 to 7, with the snapshot before them, and what follows from them.
    pub(in crate::session) fn gate(&mut self, batch: &mut Batch, at: usize) {
        let Some(tool) = batch.at(at) else { return };
        let Some(spec) = tool.spec.clone() else {
            return;
        };
        if self.config.policy.snapshots == Snapshots::BeforeGate
            && self.puts_aside(batch, at, || Then::Gate)
        {
            return;
        }
        let Some(tool) = batch.at(at) else { return };
        match self.rule_on(tool, &spec) {
            Ruling::Run(by) => self.allow_call(batch, at, by, None),
            Ruling::Deny(by, why) => self.deny_call(batch, at, by, Some(why)),
            Ruling::Ask(_) => {
                tool.state = State::AskWaiting;
                batch.asking.push_back(at);
            }
        }
    }

    /// Has the files of a call put aside that it may change, once. `false`: there is nothing to wait for.
    fn puts_aside(&mut self, batch: &mut Batch, at: usize, then: impl FnOnce() -> Then) -> bool {
        let Some(tool) = batch.at(at) else {
            return false;
        };
        let writes = tool.spec.as_ref().is_some_and(|spec| {
            spec.side_effect == SideEffect::Write
                && spec.route == Route::Driver
                && self.uri_named(spec, &tool.input).is_none()
        });
        if !writes || tool.snapshotted || self.config.policy.snapshots == Snapshots::Never {
            return false;
        }
        let checkpoint = CheckpointId(self.ids.checkpoint());
        tool.snapshotted = true;
        tool.state = State::Snapshot {
            checkpoint,
            then: then(),
        };
        let call = tool.call;
        self.effects.snapshots.issue(call.0);
        self.out.effect(Effect::Snapshot { call, checkpoint });
        true
    }

    fn rule_on(&self, tool: &Tool, spec: &ToolSpec) -> Ruling {
        let ToolInput::Object(input) = &tool.input else {
            return Ruling::Deny(Decider::Mode, "no arguments".into());
        };
        let summary = args::summary(&tool.name, input);
        if let Some(rule) = self.rule(RuleBehaviour::Deny, &tool.name, &summary) {
            let why = format!("denied by the permission rule {}", rule_text(rule));
            return Ruling::Deny(Decider::Rule(rule_text(rule)), why.into());
        }
        let mode = &self.info.settings.approvals;
        let changes = spec.side_effect.changes_something();
        if changes && matches!(mode, ApprovalMode::ReadOnly | ApprovalMode::Plan) {
            let why = format!(
                "not run: the approval mode is read-only and {} changes something",
                tool.name
            );
            return Ruling::Deny(Decider::Mode, why.into());
        }
        let unapproved = self.unapproved(&tool.name);
        if unapproved.is_none() {
            if let Some(rule) = self.rule(RuleBehaviour::Allow, &tool.name, &summary) {
                return Ruling::Run(Some(Decider::Rule(rule_text(rule))));
            }
            if let Some(HookSays { key, allow: true }) = &tool.hook {
                return Ruling::Run(Some(by_hook(key)));
            }
        }
        let hook_asks = matches!(&tool.hook, Some(HookSays { allow: false, .. }));
        let rule_asks = self
            .rule(RuleBehaviour::Ask, &tool.name, &summary)
            .is_some();
        if unapproved.is_some() || hook_asks || rule_asks {
            let reason = unapproved.map_or(AskReason::Gate, |source| AskReason::UnapprovedSource {
                path: source.path.clone(),
                sha: source.sha.clone(),
            });
            return match mode {
                ApprovalMode::Auto if self.config.policy.auto_silences_ask => {
                    Ruling::Run(Some(Decider::Mode))
                }
                ApprovalMode::Never => Ruling::Deny(Decider::Mode, never_text(&tool.name)),
                ApprovalMode::Auto
                | ApprovalMode::AcceptEdits
                | ApprovalMode::Ask
                | ApprovalMode::ReadOnly
                | ApprovalMode::Plan
                | ApprovalMode::Other(_) => Ruling::Ask(reason),
            };
        }
        if !changes {
            return Ruling::Run(None);
        }
        match mode {
            ApprovalMode::Auto => Ruling::Run(Some(Decider::Mode)),
            ApprovalMode::AcceptEdits if spec.side_effect == SideEffect::Write => {
                Ruling::Run(Some(Decider::Mode))
            }
            ApprovalMode::Never => Ruling::Deny(Decider::Mode, never_text(&tool.name)),
            ApprovalMode::AcceptEdits
            | ApprovalMode::Ask
            | ApprovalMode::ReadOnly
            | ApprovalMode::Plan
            | ApprovalMode::Other(_) => Ruling::Ask(AskReason::Gate),
        }
    }

    fn rule(&self, behaviour: RuleBehaviour, tool: &str, summary: &str) -> Option<&Rule> {
        self.config.rules.iter().find(|rule| {
            rule.behaviour == behaviour
                && args::glob(&rule.tool, tool)
                && rule
                    .pattern
                    .as_ref()
                    .is_none_or(|pattern| args::fits(behaviour, pattern, summary))
        })
    }

    /// Whether a call of this tool that changes nothing may be asked about, in a mode that asks. Which of its calls
    /// are doesn't count: hooks and hosts may change the input.
    pub(super) fn may_ask(&self, call: crate::vocab::CallId, tool: &str) -> bool {
        let mut rules = self.config.rules.iter();
        self.unapproved(tool).is_some()
            || rules
                .any(|rule| rule.behaviour == RuleBehaviour::Ask && args::glob(&rule.tool, tool))
            || self.may_judge(call, tool)
    }

    fn unapproved(&self, tool: &str) -> Option<&UnapprovedSource> {
        self.config
            .unapproved
            .iter()
            .find(|source| source.tool.as_ref() == tool)
    }

    /// The human saw the content of a tool and allowed it: it isn't asked about again for that, and that is written
    /// down. The write is asked for before the call runs, so that who carries it out knows.
    pub(in crate::session) fn approve_source(&mut self, tool: &str) {
        let sources = &mut self.config.unapproved;
        let Some(at) = sources.iter().position(|one| one.tool.as_ref() == tool) else {
            return;
        };
        let source = sources.remove(at);
        sources.retain(|other| other.tool.as_ref() != tool);
        let write = self.store();
        self.approving.push((write, source));
    }

    /// The write of an approval was acknowledged or failed. `false`: it was none of those.
    pub(in crate::session) fn approval_stored(
        &mut self,
        write: WriteId,
        ok: &Result<(), Text>,
    ) -> bool {
        let found = self.approving.iter().position(|(waits, _)| *waits == write);
        let Some(at) = found else {
            return false;
        };
        let (_, source) = self.approving.remove(at);
        if let Err(detail) = ok {
            let text = format!(
                "the approval of {} could not be stored: {detail}",
                source.path
            );
            self.notice(Level::Error, "store", &text);
        }
        true
    }

    /// Asks about the call that has waited longest, if another permission may be open. It is judged anew: the mode
    /// may have changed meanwhile (S-36).
    pub(super) fn ask_next(&mut self, batch: &mut Batch) -> bool {
        let limit = usize::try_from(self.config.policy.asks_at_once)
            .unwrap_or(usize::MAX)
            .max(1);
        if batch.asking.is_empty() || self.open_permissions() >= limit {
            return false;
        }
        let Some(at) = batch.asking.pop_front() else {
            return false;
        };
        let Some(tool) = batch.at(at) else {
            return true;
        };
        if let State::Running { .. } = tool.state {
            self.ask_network(batch, at);
            return true;
        }
        let Some(spec) = tool.spec.clone() else {
            return true;
        };
        match self.rule_on(tool, &spec) {
            Ruling::Run(by) => self.allow_call(batch, at, by, None),
            Ruling::Deny(by, why) => self.deny_call(batch, at, by, Some(why)),
            Ruling::Ask(reason) => self.ask_permission(batch, at, reason),
        }
        true
    }

    fn ask_permission(&mut self, batch: &mut Batch, at: usize, reason: AskReason) {
        let now = self.now;
        let Some(tool) = batch.at(at) else { return };
        let ToolInput::Object(input) = tool.input.clone() else {
            return;
        };
        let (call, name) = (tool.call, tool.name.clone());
        let side_effect = tool
            .spec
            .as_ref()
            .map_or(SideEffect::Unknown, |spec| spec.side_effect);
        let mut detail = args::detail(&input);
        let env = match &reason {
            AskReason::UnapprovedSource { .. } => match self.unapproved(&name) {
                Some(source) => {
                    let gap = if detail.is_empty() { "" } else { " | " };
                    detail = format!("runs: {}{gap}{detail}", source.runs).into();
                    source.env.clone()
                }
                None => Vec::new(),
            },
            AskReason::Gate | AskReason::Network { .. } | AskReason::Other(_) => Vec::new(),
        };
        let summary = args::summary(&name, &input);
        let suggestions = match &reason {
            AskReason::Gate => self.suggestions(&name, &summary, side_effect),
            AskReason::UnapprovedSource { .. }
            | AskReason::Network { .. }
            | AskReason::Other(_) => Vec::new(),
        };
        let deadline_us = self
            .config
            .timeouts
            .approval_us
            .map(|wait| now.mono_us.saturating_add(wait));
        let body = PermissionAsk {
            call: Some(call),
            tool: name.clone(),
            reason,
            summary,
            detail,
            body: None,
            suggestions,
            env,
            due: deadline_us,
        };
        self.open_ask(
            OpenAsk {
                what: AskFor::Permission(call),
                deadline_us,
            },
            Ask::Permission(body.into()),
        );
        let mut hooks = self.chain(Owner::Permission(call), Some(&name), now);
        self.next_hook(&mut hooks, Owner::Permission(call), || HookFacts::Call {
            call,
        });
        self.tell_of_question(&name);
        if let Some(tool) = batch.at(at) {
            tool.asked = true;
            tool.state = State::Asking { hooks };
        }
    }

    /// The call may run: `Decided` if somebody decided, then the effect directly behind it, once its files are put
    /// aside.
    pub(in crate::session) fn allow_call(
        &mut self,
        batch: &mut Batch,
        at: usize,
        by: Option<Decider>,
        input: Option<RawJson>,
    ) {
        let then = || Then::Run {
            by: by.clone(),
            input: input.clone(),
        };
        if self.puts_aside(batch, at, then) {
            return;
        }
        let Some(tool) = batch.at(at) else { return };
        let call = tool.call;
        if let Some(by) = by {
            tool.decided = true;
            let input = input.or_else(|| match &tool.input {
                ToolInput::Object(raw) if tool.changed => Some(raw.clone()),
                ToolInput::Object(_) | ToolInput::Unparsed(_) => None,
            });
            self.say_decided(call, true, by, input, None);
        }
        self.run_call(batch, at);
    }

    /// The call may not run: `Decided`, and its end with a text that names why.
    pub(in crate::session) fn deny_call(
        &mut self,
        batch: &mut Batch,
        at: usize,
        by: Decider,
        why: Option<Text>,
    ) {
        let Some(tool) = batch.at(at) else { return };
        tool.decided = true;
        let call = tool.call;
        self.say_decided(call, false, by.clone(), None, why.clone());
        let text = match (&by, why) {
            (Decider::Host, Some(why)) => format!("declined by the user: {why}"),
            (Decider::Host, None) => {
                "declined by the user; ask before trying something like it again".into()
            }
            (Decider::Timer, _) => "not run: nobody answered the approval request in time".into(),
            (Decider::Closed, _) => "not run: nobody is there to approve it".into(),
            (Decider::Fault(fault), _) => format!("not run: asking for approval failed: {fault}"),
            (Decider::Mode | Decider::Rule(_) | Decider::Hook(_) | Decider::Cancel, Some(why)) => {
                why.to_string()
            }
            (Decider::Mode | Decider::Rule(_) | Decider::Hook(_) | Decider::Cancel, None) => {
                "not allowed".into()
            }
        };
        self.call_over(batch, at, ToolOutcome::Denied(by), &text);
    }
}

fn never_text(tool: &str) -> Text {
    format!("not run: {tool} needs an approval, and the approval mode asks nobody").into()
}

fn rule_text(rule: &Rule) -> Text {
    match &rule.pattern {
        Some(pattern) => format!("{}({pattern})", rule.tool).into(),
        None => rule.tool.clone(),
    }
}
