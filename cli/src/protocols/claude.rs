//! What a Client of agentx or claude is built from.

use turnwire::protocol::agentx::{Agentx, ClientConfig, Policy};
use turnwire::vocab::RawJson;

use super::{Hosting, ServedName, Spoken, here};
use crate::ids::random;
use crate::say::Stop;

impl Spoken for Agentx {
    fn client(hosting: &Hosting<'_>) -> Result<ClientConfig, Stop> {
        let strict = hosting.name == ServedName::Agentx;
        let initialize = match hosting.initialize {
            None => None,
            Some(_) if strict => {
                let text = "drive: agentx takes nothing with initialize";
                return Err(Stop::Settings(text.to_owned()));
            }
            Some(text) => Some(object(text)?),
        };
        Ok(ClientConfig {
            // No prompt has an id that the agent has seen before, in an earlier run of a session.
            seed: random()?,
            policy: if strict {
                Policy::AGENTX
            } else {
                Policy::CLAUDE
            },
            cwd: here(),
            initialize,
            version: env!("CARGO_PKG_VERSION").into(),
            ..ClientConfig::default()
        })
    }
}

/// A JSON object, on one line.
fn object(text: &str) -> Result<RawJson, Stop> {
    let value: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text)
        .map_err(|error| Stop::Settings(format!("drive: --initialize: {error}")))?;
    Ok(RawJson(serde_json::Value::Object(value).to_string().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosting<'a>(name: ServedName, initialize: Option<&'a str>) -> Hosting<'a> {
        Hosting { name, initialize }
    }

    #[test]
    fn claude_is_greeted_with_what_the_command_line_says() {
        let config = Agentx::client(&hosting(ServedName::Claude, Some("{\"a\": [1]}"))).unwrap();
        assert_eq!(config.initialize, Some(RawJson("{\"a\":[1]}".into())));
        assert_eq!(config.policy, Policy::CLAUDE);
        let again = Agentx::client(&hosting(ServedName::Claude, None)).unwrap();
        assert_ne!(config.seed, again.seed);
    }

    #[test]
    fn what_cant_be_said_is_refused() {
        for (name, text) in [
            (ServedName::Agentx, "{}"),
            (ServedName::Claude, "[]"),
            (ServedName::Claude, "{"),
        ] {
            assert!(Agentx::client(&hosting(name, Some(text))).is_err());
        }
        for name in [ServedName::Omp, ServedName::Openmax] {
            assert!(hosting(name, Some("{}")).without_greeting().is_err());
            assert!(hosting(name, None).without_greeting().is_ok());
        }
    }
}
