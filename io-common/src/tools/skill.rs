//! Skills: texts that tell the model how something is done, looked up when it needs them.

use std::fmt::Write as _;

use serde::Deserialize;
use turnwire::vocab::{RawJson, Route, SideEffect, ToolSpec};

use super::outcome::{Failed, Finished};

/// The tool's name.
pub(super) const NAME: &str = "skill";

/// A skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// What it is called.
    pub name: String,
    /// What it is good for: all that the model is told unasked.
    pub description: String,
    /// The folder of files that belong to it, as the model may name it.
    pub folder: Option<String>,
    /// What it says.
    pub text: String,
}

/// Arguments of `skill`.
#[derive(Debug, Deserialize)]
pub(super) struct Args {
    name: String,
}

/// What the model is told about the tool: the names and descriptions too.
pub(super) fn spec(skills: &[Skill]) -> ToolSpec {
    let mut text = String::from(
        "Read a skill: instructions for a kind of task. When a task fits one of them, read it before you begin. The \
         skills are:",
    );
    for skill in skills {
        // One line each, whatever the description holds.
        let description: Vec<&str> = skill.description.split_whitespace().collect();
        let _ = write!(text, "\n- {}: {}", skill.name, description.join(" "));
    }
    let names: Vec<&str> = skills.iter().map(|skill| &*skill.name).collect();
    let schema = serde_json::json!({
        "type": "object",
        "properties": { "name": { "type": "string", "enum": names, "description": "The skill's name" } },
        "required": ["name"],
        "additionalProperties": false,
    });
    ToolSpec {
        name: NAME.into(),
        label: None,
        description: text.into(),
        schema: RawJson(schema.to_string().into()),
        side_effect: SideEffect::Read,
        hidden: false,
        uri_arg: None,
        route: Route::Driver,
    }
}

/// One call.
pub(super) fn run(skills: &[Skill], args: &Args) -> Result<Finished, Failed> {
    let Some(skill) = skills.iter().find(|skill| skill.name == args.name) else {
        let names: Vec<&str> = skills.iter().map(|skill| &*skill.name).collect();
        return Err(Failed(format!(
            "there is no skill {:?}; there are: {}",
            args.name,
            names.join(", ")
        )));
    };
    let mut text = String::new();
    if let Some(folder) = &skill.folder {
        let _ = write!(text, "[files that it speaks of are in {folder}]\n\n");
    }
    text.push_str(&skill.text);
    Ok(Finished::ok(text))
}
