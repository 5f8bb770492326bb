//! Hooks and rules of the settings, as a session and its driver take them.

use turnwire::session::SessionConfig;
use turnwire::session::config::{LocalHook, Rule, RuleBehaviour};
use turnwire::vocab::{HookPoint, HookSpec};
use turnwire_io::hooks::{HookCommand, Hooks, HooksConfig};
use turnwire_io::tools::ToolboxConfig;

use crate::settings::hooks::{Action, Event, HookTable, RuleTable};
use crate::start::Start;

/// Gives a session its hooks and rules.
pub fn configure(config: &mut SessionConfig, start: &Start) {
    config.hooks = start.settings.hooks.iter().map(hook).collect();
    config.rules = start.settings.rules.iter().map(rule).collect();
}

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

fn hook(table: &HookTable) -> LocalHook {
    let timeout = table.timeout.map(|time| time.get().as_micros());
    LocalHook {
        spec: HookSpec {
            key: table.name.as_str().into(),
            point: match table.event {
                Event::UserPromptSubmit => HookPoint::PromptSubmit,
                Event::PreToolUse => HookPoint::PreTool,
                Event::PostToolUse => HookPoint::PostTool,
                Event::TurnEnd => HookPoint::TurnEnd,
            },
            matcher: table.matcher.as_ref().map(|glob| glob.as_str().into()),
            timeout_us: timeout.map(|time| u64::try_from(time).unwrap_or(u64::MAX)),
        },
        decides: !table.observe,
    }
}

fn rule(table: &RuleTable) -> Rule {
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
