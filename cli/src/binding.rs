//! Who serves the model of a session, as the session remembers it (WIRE-025).

use sha2::{Digest, Sha256};
use turnwire_io::Door;
use turnwire_io::store::Binding;

use crate::say::Stop;
use crate::settings::{Model, Settings};

/// What a session that begins now is bound to.
pub fn of(settings: &Settings) -> Binding {
    let (kind, model, route) = match &settings.model {
        Model::Builtin { .. } => ("scripted", "script", route(&["builtin"])),
        Model::Script { path, .. } => {
            let path = path.to_string_lossy();
            ("scripted", "script", route(&["script", &*path]))
        }
        Model::Http(http) => {
            let (deployment, version) = match &http.door {
                Door::Api | Door::Bearer => ("", http.version_header.as_deref().unwrap_or("")),
                Door::Azure {
                    deployment,
                    version,
                } => (deployment.as_str(), version.as_str()),
            };
            let way = [http.api.word(), http.base_url.as_str(), deployment, version];
            (http.kind, http.name.as_str(), route(&way))
        }
    };
    Binding {
        provider: settings.provider.clone(),
        kind: kind.to_owned(),
        model: model.to_owned(),
        route,
    }
}

/// Stands for a way: the same for the same way, and says nothing of it. A key is no part of it, and may change.
fn route(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // No part can run into the next one.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let digest = hash.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a session that was begun so may go on so.
///
/// # Errors
/// [`Stop::Session`] if anything of it is another, or isn't known.
pub fn check(id: &str, begun: Option<&Binding>, now: &Binding) -> Result<(), Stop> {
    let why = match begun {
        None => "it isn't known which provider it was begun with".to_owned(),
        Some(begun) if begun == now => return Ok(()),
        Some(begun) if (&begun.provider, &begun.model) == (&now.provider, &now.model) => format!(
            "the provider {:?} was reached in another way when it began",
            begun.provider
        ),
        Some(begun) => format!(
            "it is bound to the provider {:?} with the model {:?}, and this process to {:?} with {:?}; start one with \
             --provider {}",
            begun.provider, begun.model, now.provider, now.model, begun.provider
        ),
    };
    Err(Stop::Session(format!(
        "the session {id} can't go on: {why}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(provider: &str, route: &str) -> Binding {
        Binding {
            provider: provider.to_owned(),
            kind: "openai".to_owned(),
            model: "m".to_owned(),
            route: route.to_owned(),
        }
    }

    #[test]
    fn wire_025_any_other_binding_is_refused_and_says_which_provider_it_takes() {
        let now = bound("a", "1");
        let said = |begun: Option<Binding>| {
            let checked = check("s", begun.as_ref(), &now);
            checked.map_err(|stop| stop.to_string())
        };
        assert_eq!(said(Some(bound("a", "1"))), Ok(()));
        let other = said(Some(bound("b", "1"))).unwrap_err();
        assert!(other.contains("--provider b"), "{other}");
        let way = said(Some(bound("a", "2"))).unwrap_err();
        assert!(way.contains("another way"), "{way}");
        let kind = Binding {
            kind: "anthropic".to_owned(),
            ..bound("a", "1")
        };
        assert!(said(Some(kind)).is_err());
        let model = Binding {
            model: "n".to_owned(),
            ..bound("a", "1")
        };
        assert!(said(Some(model)).is_err());
        assert!(said(None).is_err());
    }

    #[test]
    fn ways_differ_wherever_a_part_ends() {
        assert_ne!(route(&["ab", "c"]), route(&["a", "bc"]));
        assert_ne!(route(&["ab", ""]), route(&["ab"]));
        assert_eq!(route(&["ab"]), route(&["ab"]));
        assert_eq!(route(&["ab"]).len(), 64);
    }
}
