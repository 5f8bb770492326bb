//! `[[hook]]` and `[[rule]]` of the settings file.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;

use super::values::{BadValue, Seconds};
use super::{Layer, file};

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
    /// The file that it stands in.
    #[serde(skip)]
    pub from: PathBuf,
}

/// One `[[hook]]`, whether or not it makes sense.
#[derive(Clone, Debug, PartialEq)]
pub enum HookEntry {
    /// It can be loaded, as far as it goes by itself.
    Hook(HookTable),
    /// It can't.
    Broken {
        /// Where its table begins, in bytes.
        at: usize,
        /// What is known of it.
        hook: Unloaded,
    },
}

/// A hook that is there and isn't loaded. The session says so and goes on without it (OM-31).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unloaded {
    /// Its name, or what stands for it.
    pub name: String,
    /// When it would run, if that can be read.
    pub event: Option<Event>,
    /// Where it stands, and why it isn't loaded.
    pub why: String,
}

impl<'de> Deserialize<'de> for HookEntry {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let table = toml::Spanned::<toml::Table>::deserialize(input)?;
        let at = table.span().start;
        let table = table.into_inner();
        let why = match HookTable::deserialize(table.clone()) {
            Ok(hook) => match hook.mismatch() {
                None => return Ok(HookEntry::Hook(hook)),
                Some(why) => why.to_owned(),
            },
            Err(fault) => fault.message().replace('\n', " ").trim_end().to_owned(),
        };
        let text = |name: &str| table.get(name).and_then(toml::Value::as_str);
        let name = text("name").and_then(|name| name.parse::<Name>().ok());
        let event = table
            .get("event")
            .and_then(|event| Event::deserialize(event.clone()).ok());
        Ok(HookEntry::Broken {
            at,
            hook: Unloaded {
                name: name.map_or_else(|| "(no name)".to_owned(), |name| name.0),
                event,
                why,
            },
        })
    }
}

impl HookEntry {
    /// Says where it stands.
    pub fn found_in(&mut self, path: &Path, place: impl Fn(usize) -> String) {
        match self {
            HookEntry::Hook(hook) => hook.from = path.to_owned(),
            HookEntry::Broken { at, hook } => {
                hook.why = format!("{}{}: {}", path.display(), place(*at), hook.why);
            }
        }
    }
}

impl HookTable {
    /// Why its members don't go together.
    fn mismatch(&self) -> Option<&'static str> {
        match (self.event, &self.matcher) {
            (Event::UserPromptSubmit | Event::TurnEnd | Event::SessionSwitch, Some(_)) => {
                Some("it has a matcher, but its event has no tool to match")
            }
            (Event::UserPromptSubmit | Event::TurnEnd | Event::SessionSwitch, None)
            | (Event::PreToolUse | Event::PostToolUse, _) => None,
        }
    }

    fn unloaded(self, why: String) -> Unloaded {
        Unloaded {
            name: self.name.0,
            event: Some(self.event),
            why,
        }
    }
}

/// The hooks of a file that isn't used.
pub fn inert(path: &Path, text: &str, why: &str) -> Vec<Unloaded> {
    let Ok(settings) = file::settings(path, text) else {
        return Vec::new();
    };
    let inert = settings.hooks.into_iter().map(|entry| match entry {
        HookEntry::Hook(hook) => hook.unloaded(format!("{} isn't used: {why}", path.display())),
        HookEntry::Broken { hook, .. } => hook,
    });
    inert.collect()
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
    /// Another session is about to take the place of the one that is open.
    SessionSwitch,
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

/// Hooks and rules of all files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gathered {
    /// Hooks, in the order in which they run.
    pub hooks: Vec<HookTable>,
    /// Hooks that aren't loaded.
    pub unloaded: Vec<Unloaded>,
    /// Rules.
    pub rules: Vec<RuleTable>,
}

/// Adds the files up: a project's file can't take away what the user set. The user's hooks run first. Of two hooks with
/// one name the later isn't loaded.
pub fn gather(files: &[Layer]) -> Gathered {
    let mut all = Gathered::default();
    for layer in files.iter().rev() {
        for entry in &layer.settings.hooks {
            match entry {
                HookEntry::Broken { hook, .. } => all.unloaded.push(hook.clone()),
                HookEntry::Hook(hook) if all.hooks.iter().any(|it| it.name == hook.name) => {
                    let why = format!(
                        "{}: there is a hook of this name already; each needs a name of its own",
                        layer.path.display()
                    );
                    all.unloaded.push(hook.clone().unloaded(why));
                }
                HookEntry::Hook(hook) => all.hooks.push(hook.clone()),
            }
        }
        all.rules.extend(layer.settings.rules.iter().cloned());
    }
    all
}

impl std::fmt::Display for RuleTable {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let action = match self.action {
            Action::Deny => "deny",
            Action::Allow => "allow",
            Action::Ask => "ask",
        };
        write!(out, "{action} {}", self.tool.as_str())?;
        match &self.pattern {
            Some(pattern) => write!(out, " {pattern:?}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use turnwire::protocol::agentx::SettingsSource;

    use super::*;
    use crate::say::Stop;

    /// Files from the highest down, as they are put together.
    fn gathered(texts: &[&str]) -> Result<Gathered, String> {
        let names = ["/project/turnwire.toml", "/user/turnwire.toml"];
        let layers: Result<Vec<Layer>, Stop> = texts
            .iter()
            .zip(names)
            .map(|(text, name)| Layer::read(SettingsSource::User, name.into(), text))
            .collect();
        layers
            .map(|layers| gather(&layers))
            .map_err(|stop| stop.to_string())
    }

    #[test]
    fn a_project_adds_to_what_the_user_set_and_takes_nothing_away() {
        let Gathered { hooks, rules, unloaded } = gathered(&[
            "[[hook]]\nname = 'tests'\nevent = 'turn_end'\ncommand = 'make test'\ntimeout = 300\n\
             [[rule]]\naction = 'allow'\ntool = 'bash'\npattern = 'make *'\n",
            "[[hook]]\nname = 'log'\nevent = 'pre_tool_use'\ncommand = 'cat'\nmatcher = 'b*'\nobserve = true\n\
             [[rule]]\naction = 'deny'\ntool = '*'\n[[rule]]\naction = 'ask'\ntool = 'bash'\n",
        ])
        .unwrap();
        assert_eq!(unloaded, []);
        let names: Vec<&str> = hooks.iter().map(|hook| hook.name.as_str()).collect();
        assert_eq!(names, ["log", "tests"], "the user's come first");
        assert!(hooks[0].observe && !hooks[1].observe);
        assert_eq!(hooks[0].from, Path::new("/user/turnwire.toml"));
        assert_eq!(hooks[1].timeout.map(|time| time.get().as_secs()), Some(300));
        let actions: Vec<Action> = rules.iter().map(|rule| rule.action).collect();
        assert_eq!(actions, [Action::Deny, Action::Ask, Action::Allow]);
        assert_eq!(rules[2].pattern.as_deref(), Some("make *"));
    }

    #[test]
    fn om_31_a_hook_that_cant_be_loaded_is_left_out_and_says_where_it_stands() {
        let hook = |rest: &str| format!("\n[[hook]]\nname = 'a'\n{rest}");
        let end = Some(Event::TurnEnd);
        for (text, name, event, words) in [
            (hook("event = 'turn_end'\n"), "a", end, "command"),
            (hook("command = 'x'\n"), "a", None, "event"),
            (
                hook("event = 'stop'\ncommand = 'x'\n"),
                "a",
                None,
                "user_prompt_submit",
            ),
            (
                hook("event = 'turn_end'\ncommand = ' '\n"),
                "a",
                end,
                "command",
            ),
            (
                hook("event = 'turn_end'\ncommand = \"a\\u0000\"\n"),
                "a",
                end,
                "NUL",
            ),
            (
                hook("event = 'turn_end'\ncommand = 'x'\ntimeout = 0\n"),
                "a",
                end,
                "0.1",
            ),
            (
                hook("event = 'turn_end'\ncommand = 'x'\nmatcher = 'bash'\n"),
                "a",
                end,
                "no tool to match",
            ),
            (
                hook("event = 'turn_end'\ncommand = 'x'\nblocking = true\n"),
                "a",
                end,
                "blocking",
            ),
            (
                "\n[[hook]]\nname = ''\nevent = 'turn_end'\ncommand = 'x'\n".into(),
                "(no name)",
                end,
                "name",
            ),
            ("\n[[hook]]\nname = 7\n".into(), "(no name)", None, "7"),
        ] {
            let good = "[[hook]]\nname = 'b'\nevent = 'turn_end'\ncommand = 'x'\n";
            let all = gathered(&[&format!("{text}{good}")]).unwrap();
            assert_eq!(all.hooks.len(), 1, "the others are loaded: {text}");
            let [broken] = all.unloaded.as_slice() else {
                panic!("{all:?}")
            };
            assert_eq!(
                (broken.name.as_str(), broken.event),
                (name, event),
                "{text}"
            );
            assert!(
                broken.why.starts_with("/project/turnwire.toml:2:1: ")
                    && broken.why.contains(words),
                "{broken:?} for {text}"
            );
        }
        let one = hook("event = 'turn_end'\ncommand = 'x'\n");
        let all = gathered(&[&one, &one]).unwrap();
        assert_eq!(all.hooks.len(), 1);
        assert_eq!(all.hooks[0].from, Path::new("/user/turnwire.toml"));
        assert!(
            all.unloaded[0].why.contains("/project/")
                && all.unloaded[0].why.contains("name of its own"),
            "{all:?}"
        );
    }

    #[test]
    fn a_rule_that_cant_be_read_makes_the_file_wrong() {
        for (text, words) in [
            ("[[rule]]\naction = 'forbid'\ntool = 'x'\n", "deny"),
            ("[[rule]]\naction = 'deny'\n", "tool"),
            ("hook = 5\n", "sequence"),
        ] {
            let fault = gathered(&[text]).unwrap_err();
            assert!(
                fault.starts_with("/project/turnwire.toml:") && fault.contains(words),
                "{fault} for {text}"
            );
        }
    }

    #[test]
    fn hooks_of_a_file_that_isnt_used_are_named() {
        let text =
            "[[hook]]\nname = 'a'\nevent = 'turn_end'\ncommand = 'x'\n[[hook]]\nname = 'b'\n";
        let found = inert(Path::new("/p/turnwire.toml"), text, "it isn't trusted");
        assert_eq!(found.len(), 2);
        assert!(found[0].why.contains("it isn't trusted"), "{found:?}");
        assert_eq!(inert(Path::new("/p"), "broken", "x"), []);
    }
}
