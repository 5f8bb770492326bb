//! Tools and URI schemes that a host offers: each set replaces the one before, or is refused whole (OMP-11, OMP-12).

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::json::{Kind, Raw};
use crate::protocol::omp::wire::{Any, HostScheme, HostTool, Kept};
use crate::vocab::{RawJson, Route, SideEffect, Text, ToolSpec, UriSpec};

/// Schemes that the real program serves itself, whether or not there is something behind them here: what a host can't
/// offer there it can't offer here. (The oldest ones refuse `security` alone.)
const RESERVED: [&str; 15] = [
    "agent", "artifact", "history", "issue", "local", "mcp", "memory", "omp", "pr", "rule",
    "security", "skill", "ssh", "vault", "xd",
];

/// Reads a set of tools.
///
/// # Errors
/// The text of the failure.
pub(super) fn tools(tools: &[Kept<'_, HostTool<'_>>]) -> Result<Vec<ToolSpec>, String> {
    let mut specs: Vec<ToolSpec> = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        let name = string(tool.known().map(|tool| tool.name));
        let (Some(name), Some(tool)) = (name, tool.known()) else {
            return Err(format!(
                "Host tool at index {index} must provide a non-empty name"
            ));
        };
        let Some(description) = string(Some(tool.description)) else {
            return Err(format!(
                "Host tool \"{name}\" must provide a non-empty description"
            ));
        };
        let schema = tool
            .parameters
            .get()
            .filter(|schema| schema.kind() == Kind::Object);
        let Some(schema) = schema else {
            return Err(format!(
                "Host tool \"{name}\" must provide a JSON Schema object"
            ));
        };
        if specs.iter().any(|other| *other.name == *name) {
            return Err("RPC host tool names must be unique".into());
        }
        specs.push(ToolSpec {
            name: name.as_str().into(),
            label: tool.label.as_deref().map(Into::into),
            description: description.as_str().into(),
            schema: RawJson(schema.as_str().into()),
            side_effect: SideEffect::None,
            hidden: tool.hidden == Some(true),
            uri_arg: None,
            route: Route::Host,
        });
    }
    Ok(specs)
}

/// Reads a set of schemes.
///
/// # Errors
/// The text of the failure.
pub(super) fn schemes(schemes: &[Kept<'_, HostScheme<'_>>]) -> Result<Vec<UriSpec>, String> {
    let mut specs: Vec<UriSpec> = Vec::new();
    for scheme in schemes {
        let raw = scheme.known().and_then(|scheme| scheme.scheme.string());
        let (Some(raw), Some(scheme)) = (raw, scheme.known()) else {
            return Err("Host URI scheme must be a non-empty string".into());
        };
        let name = raw.trim().to_lowercase();
        if name.is_empty() {
            return Err("Host URI scheme must be a non-empty string".into());
        }
        if !is_scheme(&name) {
            return Err(format!(
                "Host URI scheme contains invalid characters: {raw}"
            ));
        }
        if RESERVED.contains(&name.as_str()) {
            return Err(format!("Host URI scheme is reserved by OMP: {name}://"));
        }
        let spec = UriSpec {
            scheme: name.as_str().into(),
            description: scheme.description.as_deref().map(Text::from),
            writable: scheme.writable == Some(true),
            immutable: scheme.immutable == Some(true),
        };
        // As in a map: the later one of a name counts.
        match specs.iter_mut().find(|other| other.scheme == spec.scheme) {
            Some(before) => *before = spec,
            None => specs.push(spec),
        }
    }
    Ok(specs)
}

/// `[a-z][a-z0-9+.-]*`
fn is_scheme(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'+' | b'.' | b'-')
        })
}

/// Event types of a filter; `None` for all.
///
/// # Errors
/// The text of the failure.
pub(super) fn events(events: Any<'_>) -> Result<Option<BTreeSet<String>>, String> {
    const ERROR: &str = "events must be null or an array of non-empty event type strings";
    let value = events.get().ok_or(ERROR)?;
    if value.is_null() {
        return Ok(None);
    }
    let list: Vec<Raw<'_>> = value.decode().map_err(|_| ERROR)?;
    let mut kinds = BTreeSet::new();
    for kind in list {
        let kind = kind.string().filter(|kind| !kind.is_empty()).ok_or(ERROR)?;
        kinds.insert(kind.into_owned());
    }
    Ok(Some(kinds))
}

/// A string that isn't blank, trimmed.
fn string(value: Option<Any<'_>>) -> Option<String> {
    let text = value?.string()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{ScanRules, scan_value};
    use crate::protocol::omp::wire::Kept;

    fn tools_of(json: &str) -> Result<Vec<Text>, String> {
        let value = scan_value(json.as_bytes(), &ScanRules::LENIENT).unwrap_or(Raw::NULL);
        let list: Vec<Kept<'_, HostTool<'_>>> = value.decode().unwrap_or_default();
        tools(&list).map(|specs| specs.into_iter().map(|spec| spec.name).collect())
    }

    fn schemes_of(json: &str) -> Result<Vec<Text>, String> {
        let value = scan_value(json.as_bytes(), &ScanRules::LENIENT).unwrap_or(Raw::NULL);
        let list: Vec<Kept<'_, HostScheme<'_>>> = value.decode().unwrap_or_default();
        schemes(&list).map(|specs| specs.into_iter().map(|spec| spec.scheme).collect())
    }

    #[test]
    fn omp_11_tools_are_checked_one_by_one_and_refused_whole() {
        let good = r#"[{"name":" a ","description":"d","parameters":{}},{"name":"b","description":"d","parameters":{}}]"#;
        assert_eq!(tools_of(good), Ok(Vec::from(["a".into(), "b".into()])));
        for (bad, error) in [
            (
                r#"[{"name":" ","description":"d","parameters":{}}]"#,
                "Host tool at index 0 must provide a non-empty name",
            ),
            (
                r#"[{"name":"a","description":"d","parameters":{}},7]"#,
                "Host tool at index 1 must provide a non-empty name",
            ),
            (
                r#"[{"name":"a","parameters":{}}]"#,
                "Host tool \"a\" must provide a non-empty description",
            ),
            (
                r#"[{"name":"a","description":"d","parameters":[]}]"#,
                "Host tool \"a\" must provide a JSON Schema object",
            ),
            (
                r#"[{"name":"a","description":"d","parameters":{}},{"name":"a ","description":"d","parameters":{}}]"#,
                "RPC host tool names must be unique",
            ),
        ] {
            assert_eq!(tools_of(bad), Err(error.into()), "{bad}");
        }
    }

    #[test]
    fn omp_12_schemes_are_lower_case_and_reserved_ones_are_refused() {
        assert_eq!(
            schemes_of(r#"[{"scheme":" DB "},{"scheme":"a+b.c-1"},{"scheme":"db"}]"#),
            Ok(Vec::from(["db".into(), "a+b.c-1".into()]))
        );
        assert_eq!(
            schemes_of(r#"[{"scheme":"https"}]"#),
            Ok(Vec::from(["https".into()]))
        );
        for (bad, error) in [
            (
                r#"[{"scheme":""}]"#,
                "Host URI scheme must be a non-empty string",
            ),
            (
                r#"[{"scheme":7}]"#,
                "Host URI scheme must be a non-empty string",
            ),
            (
                r#"[{"scheme":"1bad"}]"#,
                "Host URI scheme contains invalid characters: 1bad",
            ),
            (
                r#"[{"scheme":"skill"}]"#,
                "Host URI scheme is reserved by OMP: skill://",
            ),
            (
                r#"[{"scheme":"Security"}]"#,
                "Host URI scheme is reserved by OMP: security://",
            ),
        ] {
            assert_eq!(schemes_of(bad), Err(error.into()), "{bad}");
        }
    }
}
