//! One provider of the registry.

use turnwire::protocol::agentx::providers::Listed;
use turnwire::vocab::Text;
use turnwire_io::{Door, Secret};

use crate::settings::values::{Api, BaseUrl, EnvName};

/// How a provider is spoken with, and let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A deployment of Azure's.
    AzureOpenai,
    /// OpenAI's chat completions, which many servers speak.
    Openai,
    /// Anthropic's messages.
    Anthropic,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::AzureOpenai, Kind::Openai, Kind::Anthropic];

    /// The word of the file, and of hosts.
    pub fn word(self) -> &'static str {
        match self {
            Kind::AzureOpenai => "azure_openai",
            Kind::Openai => "openai",
            Kind::Anthropic => "anthropic",
        }
    }

    /// The API.
    pub fn api(self) -> Api {
        match self {
            Kind::AzureOpenai | Kind::Openai => Api::Openai,
            Kind::Anthropic => Api::Anthropic,
        }
    }
}

/// The key of a provider.
#[derive(Clone, Debug)]
pub enum Key {
    /// It stands in the file.
    Literal(Secret),
    /// This environment variable holds it.
    Variable(EnvName),
}

/// One provider.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What hosts, and `--provider`, call it.
    pub id: String,
    /// How it is spoken with.
    pub kind: Kind,
    /// Its address.
    pub endpoint: BaseUrl,
    /// What comes behind that.
    pub door: Door,
    /// The version of the API that goes into a header.
    pub version_header: Option<String>,
    /// What lets one in; `None`: nothing has to.
    pub key: Option<Key>,
    /// The model's name, as hosts know it.
    pub model: String,
    /// What people call it.
    pub display_name: Option<String>,
    /// The efforts that the model knows, in the file's order.
    pub efforts: Vec<String>,
    /// The one at the start; one of them.
    pub default_effort: Option<String>,
    /// Whether it is taken where nobody chooses.
    pub is_default: bool,
}

impl Entry {
    /// What hosts may know of it: nothing of where it is, or of what lets one in (WIRE-024).
    pub fn listed(&self) -> Listed {
        let text = |text: &String| Text::from(text.as_str());
        Listed {
            id: text(&self.id),
            kind: self.kind.word().into(),
            model: text(&self.model),
            name: self.display_name.as_ref().map(text),
            description: match self.kind {
                // The contract's own words.
                Kind::AzureOpenai => {
                    "Deployment-backed model endpoint configured by AgentX-home auth.json"
                }
                Kind::Openai | Kind::Anthropic => "Model endpoint configured by auth.json",
            }
            .into(),
            is_default: self.is_default,
            efforts: self.efforts.iter().map(text).collect(),
            default_effort: self.default_effort.as_ref().map(text),
        }
    }
}
