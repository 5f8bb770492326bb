//! Hooks and rules of the settings, as a session and its driver take them.

use turnwire::session::glob;
use turnwire::vocab::{HookPoint, HookSpec, LocalHook, Rule, RuleBehaviour, UnloadedHook};
use turnwire_io::hooks::{HookCommand, Hooks, HooksConfig};
use turnwire_io::tools::{Dialect, ToolboxConfig, builtin_names};

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
pub fn hook(table: &HookTable, dialect: Dialect) -> LocalHook {
    let timeout = table.timeout.map(|time| time.get().as_micros());
    LocalHook {
        spec: HookSpec {
            key: table.name.as_str().into(),
            point: point(table.event),
            matcher: table
                .matcher
                .as_ref()
                .map(|globs| spoken(globs.as_str(), dialect).as_str().into()),
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
        Event::SessionSwitch => HookPoint::SessionSwitch,
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

/// Globs of tools' names, and those that a dialect has for the built-in tools among them: settings speak of tools by
/// their own names, whatever a protocol's hosts call them.
fn spoken(globs: &str, dialect: Dialect) -> String {
    let mut all = globs.to_owned();
    for own in builtin_names() {
        let name = dialect.name(own);
        if name != own && globs.split('|').any(|one| glob(one, own)) {
            all.push('|');
            all.push_str(name);
        }
    }
    all
}

/// A rule for the tools that it means, by their names in this dialect.
pub fn in_dialect(rule: Rule, dialect: Dialect) -> impl Iterator<Item = Rule> {
    let spoken = spoken(&rule.tool, dialect);
    let tools: Vec<String> = spoken.split('|').map(str::to_owned).collect();
    tools.into_iter().map(move |tool| Rule {
        tool: tool.as_str().into(),
        ..rule.clone()
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_mean_the_same_tools_whatever_they_are_called() {
        assert_eq!(spoken("bash|edit_*", Dialect::Own), "bash|edit_*");
        assert_eq!(
            spoken("bash|edit_*", Dialect::Claude),
            "bash|edit_*|Edit|Bash"
        );
        let deny = Rule {
            behaviour: RuleBehaviour::Deny,
            tool: "bash".into(),
            pattern: Some("rm *".into()),
        };
        let tools: Vec<Rule> = in_dialect(deny, Dialect::Claude).collect();
        let names: Vec<&str> = tools.iter().map(|rule| &*rule.tool).collect();
        assert_eq!(names, ["bash", "Bash"]);
        assert!(
            tools
                .iter()
                .all(|rule| rule.pattern.as_deref() == Some("rm *"))
        );
    }
}
