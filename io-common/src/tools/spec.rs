//! What the model is told about each tool.

use super::{Dialect, ToolboxConfig};
use turnwire::vocab::{RawJson, Route, SideEffect, ToolSpec};

/// One built-in tool.
struct Builtin {
    name: &'static str,
    side_effect: SideEffect,
    /// The argument that may name a URI of the host.
    uri_arg: Option<&'static str>,
    description: &'static str,
    schema: &'static str,
}

const READ_FILE: Builtin = Builtin {
    name: "read_file",
    side_effect: SideEffect::Read,
    uri_arg: Some("path"),
    description: "Read a text file of the project. The result has one line of the file per line, each with its \
number in front; the number and the space after it are not part of the file. At most 2000 lines are returned: for a \
longer file the last line says how to go on with offset. Binary files are not shown.",
    schema: r#"{"type":"object","properties":{"path":{"type":"string","description":"File to read, relative to the project folder or absolute"},"offset":{"type":"integer","minimum":1,"description":"First line to read, counted from 1"},"limit":{"type":"integer","minimum":1,"description":"Largest number of lines to read"}},"required":["path"],"additionalProperties":false}"#,
};

const WRITE_FILE: Builtin = Builtin {
    name: "write_file",
    side_effect: SideEffect::Write,
    uri_arg: Some("path"),
    description: "Write a whole file: it is created, with its folders, or everything in it is replaced. To change \
a part of an existing file use edit_file.",
    schema: r#"{"type":"object","properties":{"path":{"type":"string","description":"File to write, relative to the project folder or absolute"},"content":{"type":"string","description":"The complete new content"}},"required":["path","content"],"additionalProperties":false}"#,
};

const EDIT_FILE: Builtin = Builtin {
    name: "edit_file",
    side_effect: SideEffect::Write,
    uri_arg: None,
    description: "Replace a text in an existing file. old_string must be in the file exactly once, with the same \
spaces and line breaks and without line numbers; take enough lines around the place to make it unique, or set \
replace_all to replace every occurrence. Line endings of the file are kept.",
    schema: r#"{"type":"object","properties":{"path":{"type":"string","description":"File to edit, relative to the project folder or absolute"},"old_string":{"type":"string","description":"Text to replace, exactly as it is in the file"},"new_string":{"type":"string","description":"Text to put in its place; may be empty"},"replace_all":{"type":"boolean","description":"Replace every occurrence instead of exactly one"}},"required":["path","old_string","new_string"],"additionalProperties":false}"#,
};

const LIST_DIR: Builtin = Builtin {
    name: "list_dir",
    side_effect: SideEffect::Read,
    uri_arg: None,
    description: "List what is in a folder, hidden entries too, sorted by name, without what is in its subfolders. \
A folder's name ends with /, a symbolic link's with @.",
    schema: r#"{"type":"object","properties":{"path":{"type":"string","description":"Folder to list, relative to the project folder or absolute; the project folder if left out"}},"additionalProperties":false}"#,
};

const SEARCH: Builtin = Builtin {
    name: "search",
    side_effect: SideEffect::Read,
    uri_arg: None,
    description: "Search the lines of the project's files for a regular expression. Files that git ignores and \
binary files are left out. Each result is path:line number: text; at most 200 are shown, and how many more there are \
is said at the end.",
    schema: r#"{"type":"object","properties":{"pattern":{"type":"string","description":"Regular expression in Rust's syntax, matched within one line"},"path":{"type":"string","description":"Folder or file to search; the whole project if left out"},"glob":{"type":"string","description":"Only files whose name matches, as *.rs, or whose path from the project folder matches if it has a slash, as src/**/*.rs"},"ignore_case":{"type":"boolean","description":"Take upper and lower case as the same"},"literal":{"type":"boolean","description":"Take the pattern as plain text"}},"required":["pattern"],"additionalProperties":false}"#,
};

const BASH: Builtin = Builtin {
    name: "bash",
    side_effect: SideEffect::Shell,
    uri_arg: None,
    description: "Run a shell command in the project folder, each time in a new shell without input or terminal. \
The result is what it wrote; a command that fails has its exit code in front. Very long output keeps only its start \
and end. When the command ends, processes that it left running in the background are ended, too.",
    schema: r#"{"type":"object","properties":{"command":{"type":"string","description":"Command line for the shell"},"timeout_seconds":{"type":"integer","minimum":1,"description":"Seconds after which the command is ended"}},"required":["command"],"additionalProperties":false}"#,
};

const ALL: [Builtin; 6] = [READ_FILE, WRITE_FILE, EDIT_FILE, LIST_DIR, SEARCH, BASH];

/// What is else where the tools go by the names that hosts of Claude Code know.
struct Renamed {
    own: &'static str,
    name: &'static str,
    uri_arg: Option<&'static str>,
    schema: &'static str,
}

const RENAMED: [Renamed; 6] = [
    Renamed {
        own: READ_FILE.name,
        name: "Read",
        uri_arg: Some("file_path"),
        schema: r#"{"type":"object","properties":{"file_path":{"type":"string","description":"File to read, absolute or relative to the project folder"},"offset":{"type":"integer","minimum":1,"description":"First line to read, counted from 1"},"limit":{"type":"integer","minimum":1,"description":"Largest number of lines to read"}},"required":["file_path"],"additionalProperties":false}"#,
    },
    Renamed {
        own: WRITE_FILE.name,
        name: "Write",
        uri_arg: Some("file_path"),
        schema: r#"{"type":"object","properties":{"file_path":{"type":"string","description":"File to write, absolute or relative to the project folder"},"content":{"type":"string","description":"The complete new content"}},"required":["file_path","content"],"additionalProperties":false}"#,
    },
    Renamed {
        own: EDIT_FILE.name,
        name: "Edit",
        uri_arg: None,
        schema: r#"{"type":"object","properties":{"file_path":{"type":"string","description":"File to edit, absolute or relative to the project folder"},"old_string":{"type":"string","description":"Text to replace, exactly as it is in the file"},"new_string":{"type":"string","description":"Text to put in its place; may be empty"},"replace_all":{"type":"boolean","description":"Replace every occurrence instead of exactly one"}},"required":["file_path","old_string","new_string"],"additionalProperties":false}"#,
    },
    Renamed {
        own: LIST_DIR.name,
        name: "LS",
        uri_arg: None,
        schema: LIST_DIR.schema,
    },
    Renamed {
        own: SEARCH.name,
        name: "Grep",
        uri_arg: None,
        schema: r#"{"type":"object","properties":{"pattern":{"type":"string","description":"Regular expression in Rust's syntax, matched within one line"},"path":{"type":"string","description":"Folder or file to search; the whole project if left out"},"glob":{"type":"string","description":"Only files whose name matches, as *.rs, or whose path from the project folder matches if it has a slash, as src/**/*.rs"},"-i":{"type":"boolean","description":"Take upper and lower case as the same"},"literal":{"type":"boolean","description":"Take the pattern as plain text"}},"required":["pattern"],"additionalProperties":false}"#,
    },
    Renamed {
        own: BASH.name,
        name: "Bash",
        uri_arg: None,
        schema: r#"{"type":"object","properties":{"command":{"type":"string","description":"Command line for the shell"},"timeout":{"type":"integer","minimum":1,"description":"Milliseconds after which the command is ended"},"description":{"type":"string","description":"What it does, in a few words, for the person"}},"required":["command"],"additionalProperties":false}"#,
    },
];

impl Dialect {
    fn renamed(self, own: &str) -> Option<&'static Renamed> {
        match self {
            Dialect::Own => None,
            Dialect::Claude => RENAMED.iter().find(|one| one.own == own),
        }
    }

    /// What a built-in tool is called, by its own name.
    pub fn name(self, own: &str) -> &str {
        self.renamed(own).map_or(own, |renamed| renamed.name)
    }

    /// The built-in tool's own name, by what it is called; other names are what they are.
    pub fn own(self, name: &str) -> &str {
        let known = match self {
            Dialect::Own => None,
            Dialect::Claude => RENAMED.iter().find(|one| one.name == name),
        };
        known.map_or(name, |renamed| renamed.own)
    }
}

/// The tools in the order they are offered in.
pub(crate) fn all(config: &ToolboxConfig) -> Vec<ToolSpec> {
    let (default, most) = (config.default_timeout, config.max_timeout);
    let spec = |b: Builtin| {
        let renamed = config.dialect.renamed(b.name);
        let mut description = b.description.to_owned();
        let mut schema = renamed
            .map_or(b.schema, |renamed| renamed.schema)
            .to_owned();
        if b.name == WRITE_FILE.name {
            description = description.replace(EDIT_FILE.name, config.dialect.name(EDIT_FILE.name));
        }
        if b.name == BASH.name {
            description.push_str(&match config.dialect {
                Dialect::Own => format!(
                    " A command that takes longer than timeout_seconds (default {}, at most {}) is ended.",
                    default.as_secs(),
                    most.as_secs()
                ),
                Dialect::Claude => format!(
                    " A command that takes longer than timeout (default {}, at most {}) is ended.",
                    default.as_millis(),
                    most.as_millis()
                ),
            });
            if config.jobs.is_some() {
                description.push_str(BACKGROUND);
                schema = in_background(schema, config.dialect);
            }
        }
        ToolSpec {
            name: config.dialect.name(b.name).into(),
            label: None,
            description: description.into(),
            schema: RawJson(schema.into()),
            side_effect: b.side_effect,
            hidden: false,
            uri_arg: renamed
                .map_or(b.uri_arg, |renamed| renamed.uri_arg)
                .map(Into::into),
            route: Route::Driver,
        }
    };
    ALL.into_iter().map(spec).collect()
}

/// What is said of `bash` where commands can go on in the background.
const BACKGROUND: &str = " One that is to go on by itself, as a server or a long build, is run in the background: the \
call returns at once with its name and that of a file that takes its output, and you are told when it ends.";

/// The schema of `bash` with the argument for that.
fn in_background(schema: String, dialect: Dialect) -> String {
    let name = match dialect {
        Dialect::Own => "background",
        Dialect::Claude => "run_in_background",
    };
    let behind = r#"},"required":["command"]"#;
    let about = "Let it go on by itself; then it has no time limit unless one is given";
    schema.replace(
        behind,
        &format!(r#","{name}":{{"type":"boolean","description":"{about}"}}{behind}"#),
    )
}

/// The own names of the built-in tools, those too that are only there with skills or with background jobs.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    let others = [super::skill::NAME, super::job_output::NAME];
    ALL.into_iter().map(|b| b.name).chain(others)
}

/// The names, for a model that asked for another.
pub(crate) fn names(dialect: Dialect) -> String {
    ALL.map(|b| dialect.name(b.name)).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_an_object_schema_whose_members_are_described() {
        for spec in all(&ToolboxConfig::new("/")) {
            let schema: serde_json::Value = serde_json::from_str(&spec.schema.0).expect(&spec.name);
            assert_eq!(schema["type"], "object");
            let properties = schema["properties"].as_object().expect("properties");
            for (name, property) in properties {
                assert!(property["description"].is_string(), "{} {name}", spec.name);
            }
            for name in schema["required"].as_array().into_iter().flatten() {
                assert!(
                    properties.contains_key(name.as_str().expect("a name")),
                    "{} {name}",
                    spec.name
                );
            }
        }
    }

    #[test]
    fn the_background_is_offered_where_there_are_jobs() {
        for (dialect, name) in [
            (Dialect::Own, "background"),
            (Dialect::Claude, "run_in_background"),
        ] {
            let mut config = ToolboxConfig {
                dialect,
                ..ToolboxConfig::new("/")
            };
            let has = |config: &ToolboxConfig| {
                let bash = all(config).pop().expect("bash is the last");
                let schema: serde_json::Value = serde_json::from_str(&bash.schema.0).expect("JSON");
                schema["properties"][name]["type"] == "boolean"
            };
            assert!(!has(&config));
            let place = crate::jobs::JobPlace::kept("/nowhere".into(), "g1").expect("a name");
            config.jobs = Some(place);
            assert!(has(&config));
        }
    }

    #[test]
    fn a_tool_that_takes_uris_has_that_argument_and_what_it_would_write() {
        let all = all(&ToolboxConfig::new("/"));
        let takes: Vec<_> = all.iter().filter(|spec| spec.uri_arg.is_some()).collect();
        assert_eq!(takes.len(), 2);
        for spec in takes {
            let schema: serde_json::Value = serde_json::from_str(&spec.schema.0).expect(&spec.name);
            let required = schema["required"].as_array().expect("required");
            let mut needed = vec![spec.uri_arg.as_deref().expect("an argument")];
            if spec.side_effect.changes_something() {
                needed.push("content");
            }
            for name in needed {
                assert!(required.contains(&name.into()), "{} {name}", spec.name);
            }
        }
    }

    #[test]
    fn the_tools_of_another_dialect_are_the_same_under_other_names() {
        let config = ToolboxConfig {
            dialect: Dialect::Claude,
            ..ToolboxConfig::new("/")
        };
        let (own, theirs) = (all(&ToolboxConfig::new("/")), all(&config));
        let names: Vec<&str> = theirs.iter().map(|spec| &*spec.name).collect();
        assert_eq!(names, ["Read", "Write", "Edit", "LS", "Grep", "Bash"]);
        for (own, theirs) in own.iter().zip(&theirs) {
            assert_eq!(Dialect::Claude.own(&theirs.name), &*own.name);
            assert_eq!(Dialect::Claude.name(&own.name), &*theirs.name);
            assert_eq!(own.side_effect, theirs.side_effect);
            assert!(
                !theirs.description.contains("_file") && !theirs.description.contains("_seconds")
            );
        }
        assert_eq!(Dialect::Own.own("Bash"), "Bash");
    }
}
