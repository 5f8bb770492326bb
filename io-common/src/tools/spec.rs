//! What the model is told about each tool.

use super::ToolboxConfig;
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

/// The tools in the order they are offered in.
pub(crate) fn all(config: &ToolboxConfig) -> Vec<ToolSpec> {
    let (default, most) = (
        config.default_timeout.as_secs(),
        config.max_timeout.as_secs(),
    );
    let spec = |b: Builtin| {
        let mut description = b.description.to_owned();
        if b.name == BASH.name {
            description.push_str(&format!(
                " A command that takes longer than timeout_seconds (default {default}, at most {most}) is ended."
            ));
        }
        ToolSpec {
            name: b.name.into(),
            label: None,
            description: description.into(),
            schema: RawJson(b.schema.into()),
            side_effect: b.side_effect,
            hidden: false,
            uri_arg: b.uri_arg.map(Into::into),
            route: Route::Driver,
        }
    };
    ALL.into_iter().map(spec).collect()
}

/// The names of the built-in tools, `skill` too, whether or not there are skills.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    let skill = std::iter::once(super::skill::NAME);
    ALL.into_iter().map(|b| b.name).chain(skill)
}

/// The names, for a model that asked for another.
pub(crate) fn names() -> String {
    ALL.map(|b| b.name).join(", ")
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
}
