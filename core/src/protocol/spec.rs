//! A protocol's lines as a table, and what can be printed from it: a page, the rules, a JSON Schema, types for
//! TypeScript.

mod typescript;

pub use typescript::{typescript, typescript_of};

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::observer::{Dir, Needs, Observed, Rule};
use crate::json;
use crate::vocab::laws::Guarantee;

/// Every line of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The protocol's name on the command line.
    pub name: &'static str,
    /// The contract: its readable id.
    pub proto: &'static str,
    /// What it is, in a paragraph.
    pub about: &'static str,
    /// The lines, in the order of the contract.
    pub lines: &'static [LineSpec],
    /// Objects that stand within lines: a heading, the member that names the kind, the kinds.
    pub parts: &'static [(&'static str, &'static str, &'static [PartSpec])],
    /// The course of a session: a heading and a paragraph each.
    pub course: &'static [(&'static str, &'static str)],
}

/// One kind of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineSpec {
    /// Who writes it.
    pub dir: Dir,
    /// The member that names the kind.
    pub tag: &'static str,
    /// The kind.
    pub name: &'static str,
    /// The fields, the tag's included, in the order of the contract.
    pub fields: &'static [Field],
    /// Fields that stand before those, and are the same in all lines of its sort. The tag follows them if `fields`
    /// doesn't have it.
    pub shared: &'static [Field],
    /// What it means.
    pub about: &'static str,
    /// What the answer to it carries, if the contract has answers: an object.
    pub answer: &'static [Field],
}

/// A kind of object that stands within lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSpec {
    /// The kind.
    pub name: &'static str,
    /// The fields, without the one that names the kind.
    pub fields: &'static [Field],
    /// What it means.
    pub about: &'static str,
}

/// One field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What stands there.
    pub kind: FieldKind,
    /// What it means.
    pub about: &'static str,
}

/// What stands in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// This word.
    Word(&'static str),
    /// This number.
    Number(u64),
    /// A text.
    Text,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A whole number, 0 or more.
    Count,
    /// The same, or null.
    CountOrNull,
    /// A whole number within these bounds.
    Whole {
        /// The least.
        least: i64,
        /// The most.
        most: i64,
    },
    /// true or false.
    Bool,
    /// Any object.
    Object,
    /// A list of texts.
    Texts,
    /// A list of texts that is left out when it is empty.
    TextsOrAbsent,
    /// A list of objects with these fields.
    Items(&'static [Field]),
    /// An object with these fields.
    Fields(&'static [Field]),
    /// A list of these.
    List(&'static FieldKind),
    /// Any number.
    Num,
    /// Any JSON value.
    Any,
    /// An object of one of these kinds, which this member names.
    Kinds(&'static str, &'static [PartSpec]),
    /// This, or null.
    OrNull(&'static FieldKind),
    /// This, or the field isn't there.
    Maybe(&'static FieldKind),
}

impl LineSpec {
    /// All fields, in order.
    pub fn all(&self) -> Vec<Field> {
        let mut all = self.shared.to_vec();
        if !self.fields.iter().any(|field| field.name == self.tag) {
            all.push(Field {
                name: self.tag,
                kind: FieldKind::Word(self.name),
                about: "the kind of line",
            });
        }
        all.extend_from_slice(self.fields);
        all
    }

    /// What the line is called: its kind, after the words that it shares with its sort.
    pub fn title(&self) -> String {
        let mut title = String::new();
        for field in self.shared {
            if let FieldKind::Word(word) = field.kind {
                title.push_str(word);
                title.push(' ');
            }
        }
        title.push_str(self.name);
        title
    }
}

impl PartSpec {
    /// All fields, in order; the first is the one that names the kind.
    pub fn all(&self, tag: &'static str) -> Vec<Field> {
        let mut all = Vec::from([Field {
            name: tag,
            kind: FieldKind::Word(self.name),
            about: "",
        }]);
        all.extend_from_slice(self.fields);
        all
    }
}

impl Field {
    /// Whether it must be there.
    pub const fn is_required(&self) -> bool {
        !matches!(self.kind, FieldKind::TextsOrAbsent | FieldKind::Maybe(_))
    }

    /// What it means, on one line.
    pub fn meaning(&self) -> &'static str {
        self.about.trim()
    }
}

impl Spec {
    /// The line of that direction and kind.
    pub fn line(&self, dir: Dir, name: &str) -> Option<&'static LineSpec> {
        self.lines
            .iter()
            .find(|line| line.dir == dir && line.name == name)
    }
}

impl FieldKind {
    fn words(self) -> String {
        match self {
            FieldKind::Word(word) => format!("`\"{word}\"`"),
            FieldKind::Number(number) => format!("`{number}`"),
            FieldKind::Text => "string".into(),
            FieldKind::OneOf(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                words.join(", ")
            }
            FieldKind::Count => "integer, 0 or more".into(),
            FieldKind::CountOrNull => "integer, 0 or more, or null".into(),
            FieldKind::Whole { least, most } => format!("integer, {least} to {most}"),
            FieldKind::Bool => "boolean".into(),
            FieldKind::Object => "object".into(),
            FieldKind::Texts => "array of strings".into(),
            FieldKind::TextsOrAbsent => "array of strings; left out when empty".into(),
            FieldKind::Items(fields) => {
                let names: Vec<String> = fields
                    .iter()
                    .map(|field| format!("`{}`", field.name))
                    .collect();
                format!("array of objects with {}", names.join(" and "))
            }
            FieldKind::Fields(fields) => {
                let names: Vec<String> = fields
                    .iter()
                    .map(|field| {
                        let mark = if field.is_required() { "" } else { "?" };
                        format!("`{}{mark}`", field.name)
                    })
                    .collect();
                format!("object with {}", names.join(", "))
            }
            FieldKind::List(kind) => format!("array of: {}", kind.words()),
            FieldKind::Num => "number".into(),
            FieldKind::Any => "any JSON".into(),
            FieldKind::Kinds(tag, _) => format!("object; its `{tag}` tells which"),
            FieldKind::OrNull(kind) => format!("{}, or null", kind.words()),
            FieldKind::Maybe(kind) => format!("{}; may be left out", kind.words()),
        }
    }
}

/// The contract as a page of Markdown, in our own words.
pub fn markdown<P: Observed>() -> String {
    markdown_of(P::SPEC, P::GUARANTEES)
}

/// The same, of a table.
pub fn markdown_of(spec: &Spec, guarantees: &[Guarantee]) -> String {
    let mut page = format!("# {} ({})\n\n{}\n", spec.name, spec.proto, spec.about);
    for (dir, heading) in [
        (Dir::Host, "Lines of the host"),
        (Dir::Agent, "Lines of the agent"),
    ] {
        page.push_str(&format!("\n## {heading}\n"));
        for line in spec.lines.iter().filter(|line| line.dir == dir) {
            page.push_str(&format!(
                "\n### `{}`\n\n{}\n",
                line.title(),
                line.about.trim()
            ));
            push_table(&mut page, "field", &line.all());
            if !line.answer.is_empty() {
                push_table(&mut page, "`data` of its response", line.answer);
            }
        }
    }
    for (heading, tag, kinds) in spec.parts {
        page.push_str(&format!("\n## {heading}\n"));
        if !tag.is_empty() {
            page.push_str(&format!("\nEach has a `{tag}`.\n"));
        }
        for kind in *kinds {
            page.push_str(&format!("\n### `{}`\n\n{}\n", kind.name, kind.about.trim()));
            push_table(&mut page, "field", kind.fields);
        }
    }
    page.push_str("\n## The course of a session\n");
    for (heading, text) in spec.course {
        page.push_str(&format!("\n### {heading}\n\n{text}\n"));
    }
    page.push_str("\n## What is promised\n\n| guarantee | says |\n|---|---|\n");
    for guarantee in guarantees {
        page.push_str(&format!("| {} | {} |\n", guarantee.id, guarantee.says));
    }
    page
}

fn push_table(page: &mut String, head: &str, fields: &[Field]) {
    page.push_str(&format!("\n| {head} | value | meaning |\n|---|---|---|\n"));
    for field in fields {
        page.push_str(&format!(
            "| `{}` | {} | {}|\n",
            field.name,
            field.kind.words(),
            spaced(field.meaning())
        ));
    }
}

/// The text of a cell, with its space behind it.
fn spaced(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("{text} ")
    }
}

/// The catalogue of rules as a page of Markdown.
pub fn rules_page<P: Observed>() -> String {
    let mut page = format!(
        "# Rules for {}\n\nWhat `turnwire check --protocol {}` looks for. Generated from the catalogue in the \
         program (`turnwire spec {} --format rules`).\n\nA rule's severity is the worst that a finding of it can be. \
         `error` means that the contract is broken; `warning` that a reading of the contract excuses it; `info` that \
         the contract leaves it open, or that the peer is bound to refuse the line. Rules that need a direction, or \
         an exit code, that wasn't seen are reported as skipped.\n",
        P::SPEC.proto,
        P::SPEC.name,
        P::SPEC.name
    );
    page.push_str("\n| rule | severity | title |\n|---|---|---|\n");
    for rule in P::RULES {
        let anchor: String = rule
            .id
            .to_ascii_lowercase()
            .chars()
            .filter(|c| *c != '.')
            .collect();
        page.push_str(&format!(
            "| [{}](#{anchor}) | {} | {} |\n",
            rule.id, rule.severity, rule.title
        ));
    }
    for rule in P::RULES {
        push_rule(&mut page, rule);
    }
    page.push_str(
        "\n## Guarantees without a rule\n\n| guarantee | why no line shows it |\n|---|---|\n",
    );
    for unseen in P::UNSEEN {
        page.push_str(&format!("| {} | {} |\n", unseen.id, unseen.why));
    }
    page
}

fn push_rule(page: &mut String, rule: &Rule) {
    let needs = match rule.needs {
        Needs::Host => "lines of the host",
        Needs::Agent => "lines of the agent",
        Needs::Both => "lines of both directions",
        Needs::Exit => "lines of the agent, and its exit code",
    };
    page.push_str(&format!(
        "\n## {}\n\n**{}** ({})\n\n{}\n\nNeeds {needs}. Source: {}.\n",
        rule.id, rule.title, rule.severity, rule.message, rule.cite
    ));
}

/// The JSON Schema (draft 2020-12) of every line, both directions, as text. Readers ignore members that it doesn't
/// name, so it lets them pass.
pub fn json_schema<P: Observed>() -> String {
    json_schema_of(P::SPEC)
}

/// The same, of a table.
pub fn json_schema_of(spec: &Spec) -> String {
    let mut out = Vec::new();
    out.extend_from_slice(
        b"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"title\":",
    );
    json::write_str(&mut out, spec.proto);
    out.extend_from_slice(
        b",\"anyOf\":[{\"$ref\":\"#/$defs/host\"},{\"$ref\":\"#/$defs/agent\"}],\"$defs\":{",
    );
    for (index, (dir, word)) in [(Dir::Host, "host"), (Dir::Agent, "agent")]
        .into_iter()
        .enumerate()
    {
        comma(index, &mut out);
        json::write_str(&mut out, word);
        out.extend_from_slice(b":{\"oneOf\":[");
        for (index, line) in spec.lines.iter().filter(|line| line.dir == dir).enumerate() {
            comma(index, &mut out);
            out.extend_from_slice(b"{\"$ref\":");
            json::write_str(&mut out, &format!("#/$defs/{word}.{}", def(line)));
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
    }
    for line in spec.lines {
        let word = match line.dir {
            Dir::Host => "host",
            Dir::Agent => "agent",
        };
        out.push(b',');
        json::write_str(&mut out, &format!("{word}.{}", def(line)));
        out.push(b':');
        put_object(line.about, &line.all(), &mut out);
        if !line.answer.is_empty() {
            out.push(b',');
            json::write_str(&mut out, &format!("data.{}", line.name));
            out.push(b':');
            put_object("`data` of its response", line.answer, &mut out);
        }
    }
    out.extend_from_slice(b"}}");
    // What was written are JSON texts, so this loses nothing.
    String::from_utf8_lossy(&out).into_owned()
}

/// The line's name among the definitions.
fn def(line: &LineSpec) -> String {
    line.title().replace(' ', ".")
}

fn comma(index: usize, out: &mut Vec<u8>) {
    if index > 0 {
        out.push(b',');
    }
}

fn put_object(about: &str, fields: &[Field], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"description\":");
    json::write_str(out, about.trim());
    out.extend_from_slice(b",\"type\":\"object\",\"required\":[");
    let required = fields.iter().filter(|field| field.is_required());
    for (index, field) in required.enumerate() {
        comma(index, out);
        json::write_str(out, field.name);
    }
    out.extend_from_slice(b"],\"properties\":{");
    for (index, field) in fields.iter().enumerate() {
        comma(index, out);
        json::write_str(out, field.name);
        out.extend_from_slice(b":{");
        let start = out.len();
        if !field.meaning().is_empty() {
            out.extend_from_slice(b"\"description\":");
            json::write_str(out, field.meaning());
        }
        let length = out.len();
        if length > start {
            out.push(b',');
        }
        let before = out.len();
        put_kind(field.kind, out);
        if out.len() == before {
            out.truncate(length);
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"}}");
}

fn put_kind(kind: FieldKind, out: &mut Vec<u8>) {
    match kind {
        FieldKind::Word(word) => {
            out.extend_from_slice(b"\"const\":");
            json::write_str(out, word);
        }
        FieldKind::Number(number) => {
            out.extend_from_slice(b"\"const\":");
            json::write_u64(out, number);
        }
        FieldKind::OneOf(words) => {
            out.extend_from_slice(b"\"enum\":[");
            for (index, word) in words.iter().enumerate() {
                comma(index, out);
                json::write_str(out, word);
            }
            out.push(b']');
        }
        FieldKind::Text => out.extend_from_slice(b"\"type\":\"string\""),
        FieldKind::Count => out.extend_from_slice(b"\"type\":\"integer\",\"minimum\":0"),
        FieldKind::CountOrNull => {
            out.extend_from_slice(b"\"type\":[\"integer\",\"null\"],\"minimum\":0");
        }
        FieldKind::Whole { least, most } => {
            out.extend_from_slice(b"\"type\":\"integer\",\"minimum\":");
            json::write_i64(out, least);
            out.extend_from_slice(b",\"maximum\":");
            json::write_i64(out, most);
        }
        FieldKind::Bool => out.extend_from_slice(b"\"type\":\"boolean\""),
        FieldKind::Object => out.extend_from_slice(b"\"type\":\"object\""),
        FieldKind::Texts => {
            out.extend_from_slice(b"\"type\":\"array\",\"items\":{\"type\":\"string\"}");
        }
        FieldKind::TextsOrAbsent => {
            out.extend_from_slice(
                b"\"type\":\"array\",\"minItems\":1,\"items\":{\"type\":\"string\"}",
            );
        }
        FieldKind::Items(fields) => {
            out.extend_from_slice(b"\"type\":\"array\",\"items\":");
            put_object("one of them", fields, out);
        }
        FieldKind::Fields(fields) => {
            let start = out.len();
            put_object("", fields, out);
            // The field has a description of its own.
            out.drain(start..start + b"{\"description\":\"\",".len());
            out.pop();
        }
        FieldKind::List(kind) => {
            out.extend_from_slice(b"\"type\":\"array\",\"items\":{");
            put_kind(*kind, out);
            out.push(b'}');
        }
        FieldKind::Num => out.extend_from_slice(b"\"type\":\"number\""),
        FieldKind::Any => {}
        FieldKind::Kinds(tag, kinds) => {
            out.extend_from_slice(b"\"oneOf\":[");
            for (index, kind) in kinds.iter().enumerate() {
                comma(index, out);
                put_object(kind.about, &kind.all(tag), out);
            }
            out.push(b']');
        }
        FieldKind::OrNull(kind) => {
            out.extend_from_slice(b"\"anyOf\":[{");
            put_kind(*kind, out);
            out.extend_from_slice(b"},{\"type\":\"null\"}]");
        }
        FieldKind::Maybe(kind) => put_kind(*kind, out),
    }
}
