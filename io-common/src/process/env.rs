//! The environment of a command: a list, so that nothing gets through by accident.

use std::ffi::OsString;

/// Passed on if set: what programs need to find files, speak the right language and know the user.
const HARMLESS: [&str; 22] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TMPDIR",
    "TZ",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

/// What the environment of a command is made of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lists<'a> {
    /// Passed on, besides the harmless ones.
    pub(crate) pass: &'a [String],
    /// Never passed on or set.
    pub(crate) deny: &'a [String],
    /// Set; they win over those passed on.
    pub(crate) extra: &'a [(String, String)],
}

/// The variables for a command. `lookup` reads the program's own environment.
pub(crate) fn variables(
    lists: Lists<'_>,
    lookup: impl Fn(&str) -> Option<OsString>,
) -> Vec<(String, OsString)> {
    let denied = |name: &str| lists.deny.iter().any(|d| d == name);
    // A name that no environment can hold would make the start fail.
    let sane = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
    let inherited = HARMLESS
        .into_iter()
        .chain(lists.pass.iter().map(String::as_str));
    let mut list: Vec<(String, OsString)> = inherited
        .filter(|name| sane(name) && !denied(name))
        .filter_map(|name| lookup(name).map(|value| (name.to_owned(), value)))
        .collect();
    let extra = lists
        .extra
        .iter()
        .filter(|(name, value)| sane(name) && !denied(name) && !value.contains('\0'));
    list.extend(extra.map(|(name, value)| (name.clone(), value.into())));
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_variables_pass_and_keys_never() {
        let pass = ["CARGO_HOME", "OPENAI_API_KEY", "A=B", ""].map(String::from);
        let deny = ["OPENAI_API_KEY", "EXTRA_KEY"].map(String::from);
        let extra = [
            ("TURNWIRE_SESSION", "s1"),
            ("EXTRA_KEY", "sk-1"),
            ("LANG", "C"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let lists = Lists {
            pass: &pass,
            deny: &deny,
            extra: &extra,
        };
        let list = variables(lists, |name| Some(format!("value of {name}").into()));
        let names: Vec<&str> = list.iter().map(|(name, _)| name.as_str()).collect();
        assert!(
            names.contains(&"PATH")
                && names.contains(&"CARGO_HOME")
                && names.contains(&"TURNWIRE_SESSION")
        );
        assert!(
            !names
                .iter()
                .any(|n| n.contains("KEY") || n.contains('=') || n.is_empty()),
            "{names:?}"
        );
        assert_eq!(
            list.last(),
            Some(&("LANG".into(), "C".into())),
            "what is set for commands wins"
        );
    }
}
