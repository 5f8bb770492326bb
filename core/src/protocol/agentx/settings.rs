//! Layers of settings, and what they come to together (AX-S10).

use alloc::string::String;
use alloc::vec::Vec;

use crate::json::{self, Kind, Raw, ScanRules, scan_value};
use crate::vocab::RawJson;

/// Whose settings a layer has, from the one that ranks lowest to the one that ranks highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingsSource {
    /// The user's, for all projects.
    User,
    /// The project's, for all who work in it.
    Project,
    /// The user's, for this project.
    Local,
    /// The command line's.
    Flag,
    /// Of who runs the machine.
    Policy,
}

impl SettingsSource {
    /// The word of the wire.
    pub const fn word(self) -> &'static str {
        match self {
            SettingsSource::User => "user",
            SettingsSource::Project => "project",
            SettingsSource::Local => "local",
            SettingsSource::Flag => "flag",
            SettingsSource::Policy => "policy",
        }
    }
}

/// What one source says, as it said it. The embedder leaves out what a host mustn't know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsLayer {
    /// Whose settings these are.
    pub source: SettingsSource,
    /// An object. Anything else, and an object with a member that stands twice, counts as an empty one.
    pub settings: RawJson,
}

impl SettingsLayer {
    fn object(&self) -> Raw<'_> {
        scan_value(self.settings.as_str().as_bytes(), &ScanRules::STRICT)
            .ok()
            .filter(|value| value.kind() == Kind::Object)
            .unwrap_or(EMPTY)
    }
}

const EMPTY: Raw<'static> = Raw::trusted("{}");

/// Appends the members `effective` and `sources`: what the layers come to, and each of them, the lowest first.
///
/// A member of a higher layer stands in the place of a lower one's; of objects that holds for each of their members.
pub(super) fn write(layers: &[SettingsLayer], out: &mut Vec<u8>) {
    let mut layers: Vec<&SettingsLayer> = layers.iter().collect();
    layers.sort_by_key(|layer| layer.source);
    let objects: Vec<Raw<'_>> = layers.iter().map(|layer| layer.object()).collect();
    out.extend_from_slice(b"\"effective\":");
    merge(&objects, out);
    out.extend_from_slice(b",\"sources\":[");
    for (index, (layer, object)) in layers.iter().zip(&objects).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"source\":");
        json::write_str(out, layer.source.word());
        out.extend_from_slice(b",\"settings\":");
        json::write_raw(out, *object);
        out.push(b'}');
    }
    out.push(b']');
}

/// Appends what these objects come to, the lowest first. As deep as one of them is, which the scan has limited.
fn merge(objects: &[Raw<'_>], out: &mut Vec<u8>) {
    let mut members: Vec<(String, Vec<Raw<'_>>)> = Vec::new();
    for object in objects {
        object.each_member(|name, value| {
            match members.iter_mut().find(|(known, _)| known == name) {
                Some((_, values)) => {
                    let both = value.kind() == Kind::Object
                        && values
                            .last()
                            .is_some_and(|last| last.kind() == Kind::Object);
                    if !both {
                        values.clear();
                    }
                    values.push(value);
                }
                None => members.push((name.into(), Vec::from([value]))),
            }
        });
    }
    out.push(b'{');
    for (index, (name, values)) in members.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::write_str(out, name);
        out.push(b':');
        match values.as_slice() {
            [value] => json::write_raw(out, *value),
            values => merge(values, out),
        }
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(source: SettingsSource, settings: &str) -> SettingsLayer {
        SettingsLayer {
            source,
            settings: RawJson(settings.into()),
        }
    }

    fn shown(layers: &[SettingsLayer]) -> String {
        let mut out = Vec::new();
        write(layers, &mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    #[test]
    fn ax_s10_sources_stand_in_their_order_whichever_they_are_given_in() {
        use SettingsSource::{Flag, Local, Policy, Project, User};
        let layers: Vec<_> = [Policy, Flag, User, Local, Project]
            .map(|source| layer(source, "{}"))
            .into();
        assert_eq!(
            shown(&layers),
            concat!(
                r#""effective":{},"sources":[{"source":"user","settings":{}},{"source":"project","settings":{}},"#,
                r#"{"source":"local","settings":{}},{"source":"flag","settings":{}},{"source":"policy","settings":{}}]"#
            )
        );
        assert_eq!(shown(&[]), r#""effective":{},"sources":[]"#);
    }

    #[test]
    fn ax_s10_a_higher_layer_wins_member_by_member() {
        let effective = |low: &str, high: &str| {
            let shown = shown(&[
                layer(SettingsSource::User, low),
                layer(SettingsSource::Flag, high),
            ]);
            let end = shown.find(",\"sources\"").unwrap_or_default();
            String::from(&shown["\"effective\":".len()..end])
        };
        for (low, high, both) in [
            (
                r#"{"a":1,"b":2}"#,
                r#"{"b":3,"c":4}"#,
                r#"{"a":1,"b":3,"c":4}"#,
            ),
            (
                r#"{"m":{"a":1,"b":[1]}}"#,
                r#"{"m":{"b":[2]}}"#,
                r#"{"m":{"a":1,"b":[2]}}"#,
            ),
            (r#"{"m":{"a":1}}"#, r#"{"m":7}"#, r#"{"m":7}"#),
            (r#"{"m":7}"#, r#"{"m":{"a":1}}"#, r#"{"m":{"a":1}}"#),
            (r#"{"m":1}"#, r#"{"m":null}"#, r#"{"m":null}"#),
            (
                r#"{"\u006d":1.50}"#,
                r#"{"n":"é"}"#,
                r#"{"m":1.50,"n":"é"}"#,
            ),
            // What isn't an object says nothing.
            (r#"{"a":1}"#, "[1]", r#"{"a":1}"#),
            (r#"{"a":1}"#, r#"{"a":2,"a":3}"#, r#"{"a":1}"#),
            (r#"{"a":1}"#, "", r#"{"a":1}"#),
        ] {
            assert_eq!(effective(low, high), both, "{low} {high}");
        }
        let three = shown(&[
            layer(SettingsSource::User, r#"{"m":{"a":1}}"#),
            layer(SettingsSource::Project, r#"{"m":0}"#),
            layer(SettingsSource::Flag, r#"{"m":{"b":2}}"#),
        ]);
        assert!(three.starts_with(r#""effective":{"m":{"b":2}}"#), "{three}");
    }
}
