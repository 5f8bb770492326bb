//! Models: the catalogue's objects, and whose a reply is.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::message::raw;
use crate::json::Raw;
use crate::vocab::{ModelRef, RawJson, SessionInfo, Text};

/// The provider of models that nobody says who serves.
const NOBODY: &str = "unknown";

/// Whose a reply is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Author {
    pub(super) api: Option<Text>,
    pub(super) provider: Text,
    pub(super) model: Text,
}

/// The models that are known.
#[derive(Debug)]
pub(super) struct Models(Vec<RawJson>);

impl Models {
    pub(super) fn new(models: Vec<RawJson>) -> Self {
        Models(models)
    }

    /// All objects.
    pub(super) fn all(&self) -> &[RawJson] {
        &self.0
    }

    /// The object of a model.
    pub(super) fn find(&self, provider: &str, id: &str) -> Option<&RawJson> {
        let is = |model: &RawJson, member: &str, word: &str| {
            string(raw(model), member).as_deref() == Some(word)
        };
        self.0
            .iter()
            .find(|model| is(model, "id", id) && is(model, "provider", provider))
    }

    /// Remembers an object that the embedder gave.
    pub(super) fn learn(&mut self, model: &RawJson) {
        const MOST: usize = 4096;
        let Some((provider, id)) = name(raw(model)) else {
            return;
        };
        if self.find(&provider, &id).is_none() && self.0.len() < MOST {
            self.0.push(model.clone());
        }
    }

    /// Whose the replies of a model are.
    pub(super) fn author(&self, model: &ModelRef) -> Author {
        let provider = model.provider.clone().unwrap_or_else(|| NOBODY.into());
        let known = self.find(&provider, &model.model);
        Author {
            api: known
                .and_then(|known| string(raw(known), "api"))
                .map(|api| api.as_str().into()),
            provider,
            model: model.model.clone(),
        }
    }

    /// The object of the model in use: the catalogue's, or one made of what the session says.
    pub(super) fn current(&self, info: &SessionInfo, window: Option<u64>) -> RawJson {
        let author = self.author(&info.model);
        match self.find(&author.provider, &author.model) {
            Some(known) => known.clone(),
            None => made_up(&author, info, window),
        }
    }
}

/// What is known of a model that no catalogue has.
fn made_up(author: &Author, info: &SessionInfo, window: Option<u64>) -> RawJson {
    let mut out = Vec::new();
    crate::protocol::omp::wire::Model {
        id: (&*author.model).into(),
        name: Some((&*author.model).into()),
        api: author.api.as_deref().map(Into::into),
        provider: (&*author.provider).into(),
        reasoning: Some(!info.efforts.is_empty()),
        input: Some(Vec::from(["text".into()])),
        context_window: match window {
            Some(window) if window > 0 => crate::protocol::omp::wire::Maybe::Value(window.into()),
            Some(_) | None => crate::protocol::omp::wire::Maybe::Null,
        },
        ..crate::protocol::omp::wire::Model::default()
    }
    .encode(&mut out);
    json(&out)
}

/// Text that an encoder of ours wrote.
pub(super) fn json(bytes: &[u8]) -> RawJson {
    RawJson(String::from_utf8_lossy(bytes).as_ref().into())
}

/// The string member of an object.
pub(super) fn string(object: Raw<'_>, member: &str) -> Option<String> {
    Some(object.get(member)?.string()?.into_owned())
}

/// Provider and id of a model's object.
pub(super) fn name(model: Raw<'_>) -> Option<(String, String)> {
    Some((string(model, "provider")?, string(model, "id")?))
}

/// The name by which a session knows a model.
pub(super) fn session_name(provider: &str, id: &str) -> Text {
    if provider == NOBODY {
        return id.into();
    }
    format!("{provider}/{id}").into()
}
