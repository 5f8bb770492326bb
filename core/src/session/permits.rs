//! What an allow changes for the calls to come: permission rules, the approval mode, the folders that tools may use.

use alloc::{format, vec::Vec};

use super::{
    Session, args,
    config::{Rule, RuleBehaviour},
};
use crate::vocab::{ApprovalMode, Keep, Level, PermissionUpdate, SetOp, SideEffect, Text, WriteId};

/// Rules that answers may add up to, and directories that one answer may name.
const MAX_RULES: usize = 4096;

/// Rules in the changes that are remembered, so that they count again when the configured ones are read anew; each
/// change counts as one more.
const MAX_REMEMBERED: usize = 4096;

/// One change of the rules.
#[derive(Clone, Debug)]
pub(super) struct Change {
    op: SetOp,
    behaviour: RuleBehaviour,
    rules: Vec<Rule>,
}

/// The updates of one answer, found good.
#[derive(Default)]
pub(super) struct Permits {
    /// The rules as they are then; `None`: as they are.
    rules: Option<Vec<Rule>>,
    changes: Vec<Change>,
    mode: Option<ApprovalMode>,
}

impl Session {
    /// Takes the updates that came with an allow: all in order, or none if one is bad. What the driver has to write
    /// down, or to let its tools use, is asked for at once; the rest counts with [`permit`](Session::permit).
    pub(super) fn take_updates(&mut self, updates: Vec<PermissionUpdate>) -> Option<Permits> {
        if updates.is_empty() {
            return Some(Permits::default());
        }
        let mut permits = Permits::default();
        let mut rules = self.config.rules.clone();
        let mut directories = 0_usize;
        for update in &updates {
            match update {
                PermissionUpdate::Rules {
                    op,
                    behaviour,
                    rules: list,
                    ..
                } => {
                    let change = change_of(*op, behaviour, list)?;
                    change.apply(&mut rules);
                    permits.changes.push(change);
                }
                PermissionUpdate::Mode { mode, .. } => permits.mode = Some(args::mode_of(mode)?),
                PermissionUpdate::Directories { paths, .. } => {
                    directories = directories.saturating_add(paths.len());
                    if paths.iter().any(|path| path.trim().is_empty()) {
                        return None;
                    }
                }
            }
            let changes = self.changes.iter().chain(&permits.changes);
            let remembered: usize = changes.map(|change| change.rules.len() + 1).sum();
            if rules.len().max(directories) > MAX_RULES || remembered > MAX_REMEMBERED {
                return None;
            }
        }
        if !permits.changes.is_empty() {
            permits.rules = Some(rules);
        }
        let for_driver = |update: &PermissionUpdate| {
            update.keep().is_stored() || matches!(update, PermissionUpdate::Directories { .. })
        };
        if updates.iter().any(for_driver) {
            let write = self.store();
            self.permitting.push((write, updates));
        }
        Some(permits)
    }

    /// The updates count from now on.
    pub(super) fn permit(&mut self, permits: Option<Permits>) {
        let Some(Permits {
            rules,
            changes,
            mode,
        }) = permits
        else {
            return self.warn(
                "permission_update",
                "the permission updates of the answer were dropped: one isn't understood",
            );
        };
        if let Some(rules) = rules {
            self.config.rules = rules;
        }
        self.changes.extend(changes);
        if let Some(mode) = mode.filter(|mode| *mode != self.info.settings.approvals) {
            self.info.settings.approvals = mode;
            self.say_changed();
        }
    }

    /// The configured rules were read anew: what answers changed counts on.
    pub(super) fn permit_again(&mut self) {
        for change in &self.changes {
            change.apply(&mut self.config.rules);
        }
    }

    /// The write of permission updates was acknowledged or failed. `false`: it was none of those.
    pub(super) fn permits_stored(&mut self, write: WriteId, ok: &Result<(), Text>) -> bool {
        let found = self
            .permitting
            .iter()
            .position(|(waits, _)| *waits == write);
        let Some(at) = found else {
            return false;
        };
        self.permitting.remove(at);
        if let Err(detail) = ok {
            let text = format!("the permission updates could not be stored: {detail}");
            self.notice(Level::Error, "store", &text);
        }
        true
    }

    /// What a host may send back with an allow, so that it isn't asked again: a rule for just this call, and for an
    /// edit the mode that lets edits run.
    pub(super) fn suggestions(
        &self,
        tool: &str,
        summary: &Text,
        side_effect: SideEffect,
    ) -> Vec<PermissionUpdate> {
        let mut suggestions = Vec::new();
        if !self.config.policy.suggest {
            return suggestions;
        }
        // A pattern has no way to say a star: such a rule would allow more than this call.
        if !summary.contains(['*', '?']) && !tool.contains(['*', '?']) {
            suggestions.push(PermissionUpdate::Rules {
                op: SetOp::Add,
                behaviour: "allow".into(),
                rules: Vec::from([(tool.into(), Some(summary.clone()))]),
                keep: Keep::Local,
            });
        }
        let asks = self.info.settings.approvals == ApprovalMode::Ask;
        if side_effect == SideEffect::Write && asks {
            suggestions.push(PermissionUpdate::Mode {
                mode: "accept_edits".into(),
                keep: Keep::Session,
            });
        }
        suggestions
    }
}

fn change_of(op: SetOp, behaviour: &str, list: &[(Text, Option<Text>)]) -> Option<Change> {
    let behaviour = match behaviour {
        "allow" => RuleBehaviour::Allow,
        "deny" => RuleBehaviour::Deny,
        "ask" => RuleBehaviour::Ask,
        _ => return None,
    };
    let rules = list.iter().map(|(tool, pattern)| Rule {
        behaviour,
        tool: tool.clone(),
        pattern: pattern.clone(),
    });
    Some(Change {
        op,
        behaviour,
        rules: rules.collect(),
    })
}

impl Change {
    fn apply(&self, rules: &mut Vec<Rule>) {
        match self.op {
            SetOp::Add => {}
            SetOp::Replace => rules.retain(|rule| rule.behaviour != self.behaviour),
            SetOp::Remove => return rules.retain(|rule| !self.rules.contains(rule)),
        }
        for rule in &self.rules {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
}
