//! The lines as TypeScript: an interface for each, and a union of each side that narrows by its tag.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Field, FieldKind, LineSpec, Spec};
use crate::protocol::observer::{Dir, Observed};

/// The types of every line, both directions, as the text of a module without dependencies. Readers ignore members that
/// it doesn't name.
pub fn typescript<P: Observed>() -> String {
    typescript_of(P::SPEC)
}

/// The same, of a table.
pub fn typescript_of(spec: &Spec) -> String {
    let mut out = format!(
        "// {}: the types of every line. Printed by `turnwire spec {} --format typescript`.\n\n\
         /** Any JSON object. */\nexport type JsonObject = {{ [name: string]: unknown }};\n",
        spec.proto, spec.name
    );
    for (dir, side, what) in [(Dir::Host, "Host", "host"), (Dir::Agent, "Agent", "agent")] {
        let lines: Vec<&LineSpec> = spec.lines.iter().filter(|line| line.dir == dir).collect();
        for line in &lines {
            push_doc(&mut out, "\n", line.about.trim());
            out.push_str(&format!("export interface {} {{\n", type_name(side, line)));
            push_fields(&mut out, &line.all(), "  ");
            out.push_str("}\n");
        }
        let names: Vec<String> = lines.iter().map(|line| type_name(side, line)).collect();
        let tag = lines.first().map_or("", |line| line.tag);
        push_doc(
            &mut out,
            "\n",
            &format!("Any line of the {what}; `{tag}` tells which."),
        );
        out.push_str(&format!(
            "export type {side}Line =\n  | {};\n",
            names.join("\n  | ")
        ));
    }
    out
}

/// `Host` or `Agent`, and the line's name in camel case.
fn type_name(side: &str, line: &LineSpec) -> String {
    let mut name = String::from(side);
    for word in line.title().split(|c: char| !c.is_ascii_alphanumeric()) {
        let mut chars = word.chars();
        name.extend(chars.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(chars.as_str());
    }
    name
}

fn push_doc(out: &mut String, before: &str, about: &str) {
    if about.is_empty() {
        out.push_str(before.trim_matches(' '));
        return;
    }
    // The end of a comment may not stand within it.
    let about = about.replace("*/", "* /");
    out.push_str(&format!("{before}/** {about} */\n"));
}

fn push_fields(out: &mut String, fields: &[Field], indent: &str) {
    for field in fields {
        push_doc(out, indent, field.meaning());
        let mark = if field.is_required() { "" } else { "?" };
        let name = key(field.name);
        out.push_str(&format!("{indent}{name}{mark}: "));
        push_kind(out, field.kind, indent);
        out.push_str(";\n");
    }
}

/// A member's name: quoted if it is no identifier.
fn key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    if name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        String::from(name)
    } else {
        quoted(name)
    }
}

/// A JSON string is a TypeScript string.
fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    crate::json::write_str_line_safe(&mut out, text);
    // JSON is text, so this loses nothing.
    String::from_utf8_lossy(&out).into_owned()
}

fn push_kind(out: &mut String, kind: FieldKind, indent: &str) {
    match kind {
        FieldKind::Word(word) => out.push_str(&quoted(word)),
        FieldKind::Number(number) => out.push_str(&format!("{number}")),
        FieldKind::Text => out.push_str("string"),
        FieldKind::OneOf(words) => {
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            out.push_str(&words.join(" | "));
        }
        FieldKind::Count | FieldKind::Whole { .. } => out.push_str("number"),
        FieldKind::CountOrNull => out.push_str("number | null"),
        FieldKind::Bool => out.push_str("boolean"),
        FieldKind::Object => out.push_str("JsonObject"),
        FieldKind::Texts => out.push_str("string[]"),
        FieldKind::TextsOrAbsent => out.push_str("[string, ...string[]]"),
        FieldKind::Items(fields) => {
            out.push_str("{\n");
            push_fields(out, fields, &format!("{indent}  "));
            out.push_str(&format!("{indent}}}[]"));
        }
        FieldKind::Fields(fields) => {
            out.push_str("{\n");
            push_fields(out, fields, &format!("{indent}  "));
            out.push_str(&format!("{indent}}}"));
        }
        FieldKind::List(kind) => {
            out.push_str("Array<");
            push_kind(out, *kind, indent);
            out.push('>');
        }
        FieldKind::Num => out.push_str("number"),
        FieldKind::Any => out.push_str("unknown"),
        FieldKind::Kinds(tag, kinds) => {
            for (index, kind) in kinds.iter().enumerate() {
                out.push_str(if index > 0 { " | {\n" } else { "{\n" });
                push_fields(out, &kind.all(tag), &format!("{indent}  "));
                out.push_str(&format!("{indent}}}"));
            }
        }
        FieldKind::OrNull(kind) => {
            push_kind(out, *kind, indent);
            out.push_str(" | null");
        }
        FieldKind::Maybe(kind) => push_kind(out, *kind, indent),
    }
}
