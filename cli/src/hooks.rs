//! Hooks and rules of the settings, as a session and its driver take them.

use turnwire::vocab::{HookPoint, HookSpec, LocalHook, Rule, RuleBehaviour, UnloadedHook};
use turnwire_io::hooks::{HookCommand, Hooks, HooksConfig};
use turnwire_io::tools::ToolboxConfig;

use crate::settings::hooks::{Action, Event, HookTable, RuleTable, Unloaded};
use crate::start::Start;

/// What runs the hooks: they see of the environment what the tools' commands see.
pub fn runner(start: &Start, tools: &ToolboxConfig, session: &str) -> Hooks {
    let commands = start.settings.hooks.iter().map(|hook| HookCommand {
        key: hook.name.as_str().to_owned(),
        line: hook.command.as_str().to_owned(),
        observe: hook.observe,
    });
    Hooks::new(HooksConfig {
        project: start.project.to_string_lossy().into_owned(),
        ..HooksConfig::beside(tools, session, commands.collect())
    })
}

/// A hook, for the session.
pub fn hook(table: &HookTable) -> LocalHook {
    let timeout = table.timeout.map(|time| time.get().as_micros());
    LocalHook {
        spec: HookSpec {
            key: table.name.as_str().into(),
            point: point(table.event),
            matcher: table.matcher.as_ref().map(|glob| glob.as_str().into()),
            timeout_us: timeout.map(|time| u64::try_from(time).unwrap_or(u64::MAX)),
        },
        decides: !table.observe,
    }
}

fn point(event: Event) -> HookPoint {
    match event {
        Event::UserPromptSubmit => HookPoint::PromptSubmit,
        Event::PreToolUse => HookPoint::PreTool,
        Event::PostToolUse => HookPoint::PostTool,
        Event::TurnEnd => HookPoint::TurnEnd,
    }
}

/// A hook that isn't loaded, for the session.
pub fn unloaded(hook: &Unloaded) -> UnloadedHook {
    UnloadedHook {
        key: hook.name.as_str().into(),
        point: hook.event.map_or(HookPoint::Notification, point),
        why: hook.why.as_str().into(),
    }
}

/// A rule, for the session.
pub fn rule(table: &RuleTable) -> Rule {
    Rule {
        behaviour: match table.action {
            Action::Deny => RuleBehaviour::Deny,
            Action::Allow => RuleBehaviour::Allow,
            Action::Ask => RuleBehaviour::Ask,
        },
        tool: table.tool.as_str().into(),
        pattern: table.pattern.as_deref().map(Into::into),
    }
}
