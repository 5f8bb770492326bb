//! What a tool comes back with, before it is put in the vocabulary's form.

use turnwire::vocab::{Block, Show, Text, ToolOutcome, ToolUpdate};

/// The result of one call.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended.
    pub outcome: ToolOutcome,
    /// What the model reads.
    pub text: String,
    /// The file it changed, if any.
    pub change: Option<FileChange>,
    /// Facts for a display: name and value.
    pub meta: Vec<(&'static str, String)>,
    /// Whether `text` lacks something that the tool found.
    pub truncated: bool,
}

/// A file that a call changed.
#[derive(Clone, Debug)]
pub struct FileChange {
    /// Below the root where possible, with `/`.
    pub path: String,
    /// Unified diff with `---`/`+++` headers.
    pub diff: String,
    /// Lines added.
    pub added: u32,
    /// Lines removed.
    pub removed: u32,
}

impl Finished {
    /// It went well.
    pub fn ok(text: impl Into<String>) -> Self {
        Self::new(ToolOutcome::Ok, text)
    }

    /// It failed; the text says why.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::new(ToolOutcome::Failed, text)
    }

    /// The host or a signal stopped it.
    pub fn cancelled() -> Self {
        Self::new(ToolOutcome::Cancelled, "cancelled by user")
    }

    /// Any outcome.
    pub fn new(outcome: ToolOutcome, text: impl Into<String>) -> Self {
        Self {
            outcome,
            text: text.into(),
            change: None,
            meta: Vec::new(),
            truncated: false,
        }
    }

    /// The updates it amounts to: the changed file, if any, then the end.
    pub fn into_updates(self) -> (Option<ToolUpdate>, ToolUpdate) {
        let changed: Vec<Text> = self
            .change
            .iter()
            .map(|c| Text::from(c.path.as_str()))
            .collect();
        let file = self.change.map(|c| ToolUpdate::FileChanged {
            path: c.path.into(),
            diff: c.diff.into(),
            added: c.added,
            removed: c.removed,
        });
        let plain = changed.is_empty() && self.meta.is_empty() && !self.truncated;
        let show = (!plain).then(|| {
            Box::new(Show {
                summary: None,
                changed,
                meta: self
                    .meta
                    .into_iter()
                    .map(|(name, value)| (name.into(), value.into()))
                    .collect(),
                details: None,
                truncated: self.truncated,
                redacted: false,
            })
        });
        let content = vec![Block::Text(self.text.into())];
        (
            file,
            ToolUpdate::Done {
                outcome: self.outcome,
                content,
                show,
            },
        )
    }
}

/// Why a tool couldn't do what was asked: one text, clear to a model.
#[derive(Debug, PartialEq, Eq)]
pub struct Failed(pub String);

impl From<String> for Failed {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<Result<Finished, Failed>> for Finished {
    fn from(result: Result<Finished, Failed>) -> Self {
        result.unwrap_or_else(|Failed(text)| Finished::failed(text))
    }
}

/// The plain reason of an I/O error, without Rust's `(os error N)`.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text.split_at(at).0.to_lowercase(),
        None => text,
    }
}
