//! URIs that the host serves: a call of a driver's tool that names one is asked of the host instead.
//!
//! The gate has judged the call as any other. What the host gives back is its result, within the limits on output.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use super::{Session, args};
use crate::vocab::{
    Ask, RawJson, Refusal, Route, Show, SideEffect, Text, ToolInput, ToolSpec, UriOp, UriSpec,
};

/// The argument that holds what a tool writes.
const BODY: &str = "content";

/// A URI that a call names, and whether its content never changes.
pub(super) struct Target {
    uri: Text,
    scheme: Text,
    writable: bool,
    pub immutable: bool,
}

impl Session {
    /// The host's URI that a call names. Calls that the driver doesn't carry out name none.
    pub(super) fn uri_named(&self, spec: &ToolSpec, input: &ToolInput) -> Option<Target> {
        let (Route::Driver, Some(arg), ToolInput::Object(input)) =
            (&spec.route, &spec.uri_arg, input)
        else {
            return None;
        };
        if self.offered_uris.is_empty() {
            return None;
        }
        let uri = args::member(input, arg)?;
        let (scheme, _) = uri.split_once("://")?;
        let mut offered = self.offered_uris.iter();
        let found = offered.find(|one| one.scheme.eq_ignore_ascii_case(scheme))?;
        Some(Target {
            scheme: found.scheme.clone(),
            writable: found.writable,
            immutable: found.immutable,
            uri,
        })
    }

    /// Whether a set of schemes can be offered.
    pub(super) fn uris_fit(&self, uris: &[UriSpec]) -> Result<(), Refusal> {
        let bytes = |one: &UriSpec| {
            one.scheme.len() + one.description.as_ref().map_or(0, |text| text.len())
        };
        self.offer_fits(uris.len(), uris.iter().map(bytes).sum())?;
        for (at, one) in uris.iter().enumerate() {
            let earlier = uris.get(..at).unwrap_or_default();
            let again = earlier.iter().any(|other| other.scheme == one.scheme);
            if again || !is_scheme(&one.scheme) {
                let text = format!(
                    "the URI scheme {:?} is no scheme or named twice",
                    one.scheme
                );
                return Err(Refusal::Invalid(text.into()));
            }
        }
        Ok(())
    }

    /// What the model is told of the host's schemes, at a tool that takes them.
    pub(super) fn with_uris(&self, tool: &ToolSpec) -> ToolSpec {
        let mut tool = tool.clone();
        let (Route::Driver, Some(arg)) = (&tool.route, &tool.uri_arg) else {
            return tool;
        };
        let writes = writes(tool.side_effect);
        let fit = self
            .offered_uris
            .iter()
            .filter(|one| one.writable || !writes);
        let lines: Vec<String> = fit
            .map(|one| match &one.description {
                Some(description) => format!("\n{}:// {description}", one.scheme),
                None => format!("\n{}://", one.scheme),
            })
            .collect();
        if !lines.is_empty() {
            let lines = lines.concat();
            let more = format!("\n{arg} may also be a URI that the user's program serves:{lines}");
            tool.description = format!("{}{more}", tool.description).into();
        }
        tool
    }
}

impl Target {
    /// What the host is asked; `Err`: why it isn't, for the model.
    pub fn ask(self, spec: &ToolSpec, input: &RawJson) -> Result<Ask, Text> {
        let Target {
            uri,
            scheme,
            writable,
            ..
        } = self;
        if !writes(spec.side_effect) {
            let (op, body) = (UriOp::Read, None);
            return Ok(Ask::Uri { op, uri, body });
        }
        if !writable {
            return Err(format!("{scheme}:// can't be written").into());
        }
        let Some(body) = args::member(input, BODY) else {
            return Err(format!("a write to {scheme}:// needs the text {BODY}").into());
        };
        let (op, body) = (UriOp::Write, Some(body));
        Ok(Ask::Uri { op, uri, body })
    }
}

/// How the host's content may be shown.
pub(super) fn shown(mime: Option<Text>, immutable: bool) -> Option<Box<Show>> {
    let mut meta = Vec::new();
    meta.extend(mime.map(|mime| ("mime".into(), mime)));
    if immutable {
        meta.push(("immutable".into(), "true".into()));
    }
    (!meta.is_empty()).then(|| {
        Box::new(Show {
            meta,
            ..Show::default()
        })
    })
}

fn writes(side_effect: SideEffect) -> bool {
    side_effect.changes_something()
}

/// A scheme in lower case: a letter, then letters, digits, `+`, `.` and `-`.
fn is_scheme(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+.-".contains(&byte)
        })
}
