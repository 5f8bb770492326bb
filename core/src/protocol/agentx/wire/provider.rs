//! Providers and what they offer, as the strict wire shows them. Nothing here says where a provider is or how one is
//! let in (WIRE-024).

use alloc::vec::Vec;

use crate::json::{Lazy, Str};
use crate::protocol::member::objects;

objects! { without [];
    /// How much a model can be told to think, as its operator declares it.
    Reasoning {
        /// There are efforts.
        supported "supported": bool,
        /// In the order of the configuration.
        efforts "efforts": Vec<Str<'a>>,
        /// One of them; nothing where there are none.
        default_effort "defaultEffort": Option<Str<'a>>,
    }
    /// A configured provider. `value` is what `--provider` takes (WIRE-025).
    Provider {
        /// The same as `id`.
        value "value": Str<'a>,
        id "id": Str<'a>,
        provider_type "providerType": Str<'a>,
        model "model": Str<'a>,
        display_name "displayName": Str<'a>,
        description "description": Lazy<'a>,
        /// It is taken where nobody chooses.
        is_default "default": bool,
        /// It is the one of this process.
        selected "selected": bool,
        supports_effort "supportsEffort": bool,
        supported_reasoning_efforts "supportedReasoningEfforts": Vec<Str<'a>>,
        default_reasoning_effort "defaultReasoningEffort": Option<Str<'a>>,
        reasoning "reasoning": Reasoning<'a>,
    }
    /// What `--list-providers --output-format json` writes: one document, and no line of the wire (WIRE-026).
    ProviderList {
        /// 1
        version "version": u64,
        /// In the order of the configuration; none is selected.
        providers "providers": Vec<Provider<'a>>,
    }
    /// Who pays, and how that is known.
    Account {
        /// claude only.
        token_source "tokenSource": Option<Str<'a>>,
        /// `user` or `temporary` in the strict wire.
        api_key_source "apiKeySource": Option<Str<'a>>,
        api_provider "apiProvider": Option<Str<'a>>,
        provider "provider": Option<Str<'a>>,
        provider_type "providerType": Option<Str<'a>>,
    }
    /// A model that can be chosen. The strict wire has one: the model of this process.
    ModelInfo {
        value "value": Str<'a>,
        resolved_model "resolvedModel": Option<Str<'a>>,
        display_name "displayName": Str<'a>,
        description "description": Lazy<'a>,
        provider "provider": Option<Str<'a>>,
        provider_type "providerType": Option<Str<'a>>,
        supports_effort "supportsEffort": Option<bool>,
        supported_effort_levels "supportedEffortLevels": Option<Vec<Str<'a>>>,
        supported_reasoning_efforts "supportedReasoningEfforts": Option<Vec<Str<'a>>>,
        default_reasoning_effort "defaultReasoningEffort": Option<Str<'a>>,
        reasoning "reasoning": Option<Reasoning<'a>>,
    }
    /// A slash command.
    CommandInfo {
        name "name": Str<'a>,
        description "description": Lazy<'a>,
        argument_hint "argumentHint": Lazy<'a>,
        aliases "aliases": Option<Vec<Str<'a>>>,
        builtin "builtin": Option<bool>,
    }
    /// A helper that the agent may start.
    AgentInfo {
        name "name": Str<'a>,
        description "description": Option<Lazy<'a>>,
        model "model": Option<Str<'a>>,
    }
    /// An MCP server, and how it stands.
    McpServer {
        name "name": Str<'a>,
        /// `connected`, `failed`, `needs-auth`, `pending`, `disabled`.
        status "status": Str<'a>,
    }
    /// A plugin.
    Plugin {
        name "name": Str<'a>,
        path "path": Option<Str<'a>>,
        source "source": Option<Str<'a>>,
    }
}
