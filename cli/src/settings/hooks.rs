//! `[[hook]]` and `[[rule]]` of the settings file.

use std::str::FromStr;

use serde::Deserialize;

use super::Layer;
use super::values::{BadValue, Seconds};
use crate::say::Stop;

/// `[[hook]]`: a command that may object to what the session is about to do.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookTable {
    /// What it is called on the wire and in messages.
    pub name: Name,
    /// When it runs.
    pub event: Event,
    /// A line for `sh -c`.
    pub command: Line,
    /// The tools it is for, a glob over their names; only at events that have a tool.
    pub matcher: Option<Name>,
    /// How long it may take.
    pub timeout: Option<Seconds>,
    /// Whether it only looks on.
    #[serde(default)]
    pub observe: bool,
}

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A prompt was handed in.
    UserPromptSubmit,
    /// A call is about to be judged.
    PreToolUse,
    /// A call has run.
    PostToolUse,
    /// A turn is about to finish.
    TurnEnd,
}

/// `[[rule]]`: what becomes of some calls.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleTable {
    /// What it does with them.
    pub action: Action,
    /// A glob over the tool's name.
    pub tool: Name,
    /// A glob over what the call is about: the path, the command. Without it all calls of the tool are meant.
    pub pattern: Option<String>,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// They never run.
    Deny,
    /// They run unasked.
    Allow,
    /// They are asked about, in a mode that asks.
    Ask,
}

macro_rules! checked_text {
    ($name:ident, $what:literal, $bad:expr) => {
        impl FromStr for $name {
            type Err = BadValue;

            fn from_str(text: &str) -> Result<Self, BadValue> {
                let bad: fn(&str) -> bool = $bad;
                if text.trim().is_empty() || bad(text) {
                    return Err(BadValue($what.to_owned()));
                }
                Ok($name(text.to_owned()))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                let text = String::deserialize(input)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
    };
}

/// A name, or a glob over names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// A command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line(String);

checked_text!(
    Name,
    "a name is 1 to 64 characters, none of them a control character",
    |text| text.chars().count() > 64 || text.chars().any(char::is_control)
);
checked_text!(Line, "a command isn't empty, and holds no NUL", |text| text
    .contains('\0'));

/// Hooks and rules of all files. They are added up: a project's file can't take away what the user set. The user's
/// hooks run first.
///
/// # Errors
/// [`Stop::Settings`] if two hooks have one name, or a hook has a matcher where there is no tool.
pub fn gather(files: &[Layer]) -> Result<(Vec<HookTable>, Vec<RuleTable>), Stop> {
    let mut hooks: Vec<HookTable> = Vec::new();
    let mut rules = Vec::new();
    for layer in files.iter().rev() {
        for hook in &layer.settings.hooks {
            let stop = |why: &str| {
                let (path, name) = (layer.path.display(), hook.name.as_str());
                Err(Stop::Settings(format!("{path}: hook {name:?} {why}")))
            };
            if hooks.iter().any(|other| other.name == hook.name) {
                return stop("is there already; each needs a name of its own");
            }
            match (hook.event, &hook.matcher) {
                (Event::UserPromptSubmit | Event::TurnEnd, Some(_)) => {
                    return stop("has a matcher, but its event has no tool to match");
                }
                (Event::UserPromptSubmit | Event::TurnEnd, None)
                | (Event::PreToolUse | Event::PostToolUse, _) => {}
            }
            hooks.push(hook.clone());
        }
        rules.extend(layer.settings.rules.iter().cloned());
    }
    Ok((hooks, rules))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::file;
    use super::*;

    /// Files from the highest down, as they are put together.
    fn gathered(texts: &[&str]) -> Result<(Vec<HookTable>, Vec<RuleTable>), String> {
        let names = ["/project/turnwire.toml", "/user/turnwire.toml"];
        let layers: Result<Vec<Layer>, Stop> = texts
            .iter()
            .zip(names)
            .map(|(text, name)| {
                Ok(Layer {
                    settings: file::parse(Path::new(name), text)?,
                    path: name.into(),
                })
            })
            .collect();
        layers
            .and_then(|layers| gather(&layers))
            .map_err(|stop| stop.to_string())
    }

    #[test]
    fn a_project_adds_to_what_the_user_set_and_takes_nothing_away() {
        let (hooks, rules) = gathered(&[
            "[[hook]]\nname = 'tests'\nevent = 'turn_end'\ncommand = 'make test'\ntimeout = 300\n\
             [[rule]]\naction = 'allow'\ntool = 'bash'\npattern = 'make *'\n",
            "[[hook]]\nname = 'log'\nevent = 'pre_tool_use'\ncommand = 'cat'\nmatcher = 'b*'\nobserve = true\n\
             [[rule]]\naction = 'deny'\ntool = '*'\n[[rule]]\naction = 'ask'\ntool = 'bash'\n",
        ])
        .unwrap();
        let names: Vec<&str> = hooks.iter().map(|hook| hook.name.as_str()).collect();
        assert_eq!(names, ["log", "tests"], "the user's come first");
        assert!(hooks[0].observe && !hooks[1].observe);
        assert_eq!(hooks[1].timeout.map(|time| time.get().as_secs()), Some(300));
        let actions: Vec<Action> = rules.iter().map(|rule| rule.action).collect();
        assert_eq!(actions, [Action::Deny, Action::Ask, Action::Allow]);
        assert_eq!(rules[2].pattern.as_deref(), Some("make *"));
    }

    #[test]
    fn om_31_a_hook_that_cant_be_loaded_is_an_error_that_names_the_file() {
        let hook = |rest: &str| format!("[[hook]]\nname = 'a'\n{rest}");
        for (text, words) in [
            (hook("event = 'turn_end'\n"), "command"),
            (hook("command = 'x'\n"), "event"),
            (
                hook("event = 'stop'\ncommand = 'x'\n"),
                "user_prompt_submit",
            ),
            (hook("event = 'turn_end'\ncommand = ' '\n"), "command"),
            (hook("event = 'turn_end'\ncommand = \"a\\u0000\"\n"), "NUL"),
            (
                hook("event = 'turn_end'\ncommand = 'x'\ntimeout = 0\n"),
                "0.1",
            ),
            (
                hook("event = 'turn_end'\ncommand = 'x'\nmatcher = 'bash'\n"),
                "no tool to match",
            ),
            (
                hook("event = 'turn_end'\ncommand = 'x'\nblocking = true\n"),
                "blocking",
            ),
            (
                "[[hook]]\nname = ''\nevent = 'turn_end'\ncommand = 'x'\n".into(),
                "name",
            ),
            ("[[rule]]\naction = 'forbid'\ntool = 'x'\n".into(), "deny"),
            ("[[rule]]\naction = 'deny'\n".into(), "tool"),
        ] {
            let fault = gathered(&[&text]).unwrap_err();
            assert!(
                fault.starts_with("/project/turnwire.toml") && fault.contains(words),
                "{fault} for {text}"
            );
        }
        let one = hook("event = 'turn_end'\ncommand = 'x'\n");
        let fault = gathered(&[&one, &one]).unwrap_err();
        assert!(
            fault.contains("/project/") && fault.contains("name of its own"),
            "{fault}"
        );
    }
}
