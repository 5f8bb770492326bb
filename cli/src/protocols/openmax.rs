//! openmax: receipts of what was read anew, and the warning of large schemas.

use turnwire::protocol::openmax::{ClientConfig, Extra, Openmax, ServerConfig, preset};
use turnwire::session::config::SessionConfig;
use turnwire::session::schema_tokens;
use turnwire::vocab::ToolSpec;
use turnwire_io::{Answer, Asked, Refrozen};

use super::{Hosting, Opening, Served, Spoken};
use crate::args::ServeArgs;
use crate::ids::IdKind;
use crate::say::Stop;
use crate::settings::Settings;
use crate::start::Start;

/// Tokens of the window that are left alone beside the largest reply.
const RESERVE: u64 = 1024;

impl Served for Openmax {
    fn session_ids(_: &ServeArgs) -> IdKind {
        IdKind::Random
    }

    fn preset(config: &mut SessionConfig, _: &ServeArgs) {
        preset(config);
    }

    fn face(opening: &Opening<'_>) -> ServerConfig {
        ServerConfig {
            agent_spawned: opening.start.agent_spawned,
            coalesce_us: u64::from(opening.start.settings.coalesce_ms) * 1000,
            ..ServerConfig::new(env!("CARGO_PKG_VERSION").into(), opening.seed)
        }
    }

    fn answer(_: &Opening<'_>) -> Answer<Openmax> {
        Box::new(|ask| match ask {})
    }

    fn first_words(opening: &Opening<'_>) -> Vec<Extra> {
        over_budget(&opening.frozen.tools, &opening.start.settings)
            .into_iter()
            .collect()
    }

    fn refrozen(start: &Start) -> Option<Refrozen<Openmax>> {
        let settings = start.settings.clone();
        Some(Box::new(move |reloaded, anew, asked| {
            let receipt = match asked {
                Asked::Host => None,
                Asked::Nobody => Some(Extra::Refrozen {
                    tools: reloaded.tools.into(),
                    skills: reloaded.skills.into(),
                    changes: reloaded.changes.clone(),
                }),
            };
            let over = over_budget(&anew.frozen.tools, &settings);
            receipt.into_iter().chain(over).collect()
        }))
    }
}

impl Spoken for Openmax {
    fn client(hosting: &Hosting<'_>) -> Result<ClientConfig, Stop> {
        hosting.without_greeting()?;
        Ok(ClientConfig::default())
    }
}

/// The line that says that the tools' schemas take most of what the window can spend: from 70 percent on.
fn over_budget(tools: &[ToolSpec], settings: &Settings) -> Option<Extra> {
    let schema_tokens = schema_tokens(tools);
    let budget_tokens = settings
        .window
        .saturating_sub(settings.max_output)
        .saturating_sub(RESERVE);
    let over = schema_tokens.saturating_mul(100) >= budget_tokens.saturating_mul(70);
    over.then_some(Extra::SchemasOverBudget {
        schema_tokens,
        budget_tokens,
    })
}
