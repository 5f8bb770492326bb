//! What an embedder freezes: the part of the configuration that an agent's requests and calls are made of, and that
//! can be read anew while the session goes on.

use super::*;

/// What was frozen. [`Input::Refrozen`] replaces all of it at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frozen {
    /// System text, sent with every request.
    pub system: Option<Text>,
    /// The driver's own tools. What a host offers is a second set, and stays.
    pub tools: Vec<ToolSpec>,
    /// Names of the skills.
    pub skills: Vec<Text>,
    /// Permission rules, see [`Rule`].
    pub rules: Vec<Rule>,
    /// Tools whose content no human has approved yet; a call of one asks, whatever the mode but Auto says.
    pub unapproved: Vec<UnapprovedSource>,
    /// Hooks that the driver runs, in the order in which they run at one point.
    pub hooks: Vec<LocalHook>,
    /// Hooks that are there and weren't loaded. The next turn says so, and goes on without them (OM-31).
    pub unloaded: Vec<UnloadedHook>,
}

/// A permission rule. Deny rules come before everything, allow rules before ask rules; any that matches counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What it does.
    pub behaviour: RuleBehaviour,
    /// The tool's name; a glob (`*`, `?`).
    pub tool: Text,
    /// A glob over the call's summary (the path of a file tool, a command, else the first text argument; see
    /// [`PermissionAsk::summary`]); or what a command begins with, as `git:*`. That allows one command that a shell takes as
    /// it stands, `git` and `git status`, and nothing with a second one; it denies, or asks about, what has it anywhere.
    /// `None` matches every call of the tool.
    pub pattern: Option<Text>,
}

/// What a [`Rule`] does with the calls it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleBehaviour {
    /// Runs without asking.
    Allow,
    /// Never runs, in every mode, whatever a hook said (S-34).
    Deny,
    /// Asks, in modes that ask.
    Ask,
}

/// A tool whose content (a manifest, a script) an agent could have written and no human has approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnapprovedSource {
    /// The tool's name.
    pub tool: Text,
    /// The file.
    pub path: Text,
    /// What identifies its bytes.
    pub sha: Text,
    /// Names of the environment variables that the tool would be given.
    pub env: Vec<Text>,
    /// What it would run, in words for the person who is asked.
    pub runs: Text,
}

/// A hook that the driver runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalHook {
    /// Its key, point, matcher (globs over the tool's name, at points that have a tool) and timeout.
    pub spec: HookSpec,
    /// Whether its answer counts. An observe-only hook changes nothing; its failure is only reported.
    pub decides: bool,
}

/// A hook that is configured, and couldn't be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnloadedHook {
    /// Its name; what stands for it, if it has none.
    pub key: Text,
    /// Where it would run; [`HookPoint::Notification`] if that isn't known.
    pub point: HookPoint,
    /// Why it isn't loaded.
    pub why: Text,
}
