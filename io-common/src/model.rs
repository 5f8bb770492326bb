//! Model backends: where a request's bytes come from. What comes back is bytes
//! too; the pure decoder in `core` reads them, whoever sent them.

use std::sync::Arc;

use bytes::Bytes;
use turnwire::model::script::Script;
use turnwire::model::{
    Api, ReplyDecoder, ReplyHead, ReplyLimits, RequestOptions, lost, unreached, unsent,
};
use turnwire::vocab::{ModelChunk, Now};

use crate::secret::Secret;

/// What stands in the place of an address.
const ADDRESS: &str = "[address]";

/// How requests find a provider, and are let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Door {
    /// At the API's path below the base URL, with the key in the API's own header.
    #[default]
    Api,
    /// The same, with the key as a bearer token in `authorization`.
    Bearer,
    /// At a deployment of Azure's, with the key in `api-key`.
    Azure {
        /// The deployment's name; it stands for the model's. Of characters that a path can hold as they are.
        deployment: String,
        /// A version of the API by its date, which is named behind the deployment's own path; or `v1`, or `preview`, at
        /// the path without a deployment.
        version: String,
    },
}

/// A model provider reached over HTTP.
#[derive(Clone, Debug)]
pub struct HttpProvider {
    /// Whose API it speaks.
    pub api: Api,
    /// Base of its URLs, which ends in the API's version: `https://host/v1`. Of Azure's the address of the resource alone.
    pub base_url: String,
    /// What comes behind that, and where the key goes.
    pub door: Door,
    /// Whether no text for people says where it is, as it is told of what went wrong.
    pub unnamed: bool,
    /// The key, sent as the API wants it; none for a local server that asks for none.
    pub key: Option<Secret>,
    /// Further request headers; one that the API has too is this one.
    pub headers: Vec<(String, String)>,
    /// Settings of the request body.
    pub options: RequestOptions,
    /// Limits of a reply.
    pub limits: ReplyLimits,
}

impl HttpProvider {
    /// Where its requests go.
    pub fn url(&self) -> String {
        let base = self.base_url.trim_end_matches('/');
        let path = self.api.path();
        match &self.door {
            Door::Api | Door::Bearer => format!("{base}{path}"),
            Door::Azure { version, .. } if version == "v1" => format!("{base}/openai/v1{path}"),
            Door::Azure { version, .. } if version == "preview" => {
                format!("{base}/openai/v1{path}?api-version=preview")
            }
            Door::Azure {
                deployment,
                version,
            } => format!("{base}/openai/deployments/{deployment}{path}?api-version={version}"),
        }
    }

    /// Name of the header that holds the key, and what stands before the key in it.
    pub fn key_header(&self) -> (&'static str, &'static str) {
        match self.door {
            Door::Api => self.api.key_header(),
            Door::Bearer => ("authorization", "Bearer "),
            Door::Azure { .. } => ("api-key", ""),
        }
    }

    /// The headers of a request but for the key, each once.
    pub fn plain_headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.headers.iter();
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        let is_own = |name: &str| {
            self.headers
                .iter()
                .any(|(own, _)| own.eq_ignore_ascii_case(name))
        };
        let of_api = self.api.headers().iter().copied();
        of_api.filter(move |(name, _)| !is_own(name)).chain(own)
    }

    /// What it calls the model of this name.
    pub fn model<'a>(&'a self, name: &'a str) -> &'a str {
        match &self.door {
            Door::Api | Door::Bearer => name,
            Door::Azure { deployment, .. } => deployment,
        }
    }

    /// The text without what says where it is, if it may not say so.
    fn without_address(&self, text: &str) -> Option<String> {
        if !self.unnamed {
            return None;
        }
        let (url, base) = (self.url(), self.base_url.trim_end_matches('/'));
        let host = base.split_once("://").map_or(base, |(_, rest)| rest);
        let host = host.split(['/', '?', '#']).next().unwrap_or(host);
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let (deployment, version) = match &self.door {
            Door::Azure {
                deployment,
                version,
            } => (deployment.as_str(), version.as_str()),
            Door::Api | Door::Bearer => ("", ""),
        };
        // `v1` and `preview` are words like others.
        let version =
            Some(version).filter(|it| it.starts_with(|first: char| first.is_ascii_digit()));
        let mut shown = text.to_owned();
        // The longest first: what is left of it would tell the rest.
        for part in [&*url, base, host, name, deployment, version.unwrap_or("")] {
            if !part.is_empty() && shown.contains(part) {
                shown = shown.replace(part, ADDRESS);
            }
        }
        (shown != text).then_some(shown)
    }
}

/// Where model requests go.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Backend {
    /// To a provider over HTTP.
    Http(Box<HttpProvider>),
    /// To a script in this process; its bytes run through the same decoders.
    Scripted(Arc<Script>),
}

impl Backend {
    /// A chunk whose text for people doesn't hold the key, whatever the provider sent back, nor the address of a
    /// provider that is [`unnamed`](HttpProvider::unnamed).
    pub fn without_key<'a>(&self, mut chunk: ModelChunk<'a>) -> ModelChunk<'a> {
        let Backend::Http(provider) = self else {
            return chunk;
        };
        if let ModelChunk::Failed { failure, .. } = &mut chunk {
            let key = provider.key.as_ref();
            if let Some(shown) = key.and_then(|key: &Secret| key.hidden_in(&failure.text)) {
                failure.text = shown.into();
            }
            if let Some(shown) = provider.without_address(&failure.text) {
                failure.text = shown.into();
            }
        }
        chunk
    }
}

/// What a request tells the loop, piece by piece.
#[derive(Debug)]
pub enum Part {
    /// The response's head.
    Head {
        /// Its status code.
        status: u16,
        /// The words beside the code; may be empty.
        reason: String,
        /// `Content-Type`.
        content_type: Option<String>,
        /// `Retry-After`.
        retry_after: Option<String>,
    },
    /// The next bytes of its body, at most [`PART_MAX`] of them.
    Body(Bytes),
    /// The body ended as HTTP says it should.
    End,
    /// The connection broke after the head.
    Broken(String),
    /// The request couldn't be made ready; why, for people.
    Unsent(String),
    /// No head came.
    Unreached {
        /// Why, for people.
        why: String,
        /// Whether the endpoint was ever connected to.
        reached: bool,
    },
}

impl Part {
    /// Lets `decoder` read this part; whether the request is settled with it.
    pub fn decode(
        &self,
        decoder: &mut ReplyDecoder,
        now: Now,
        sink: &mut dyn FnMut(ModelChunk<'_>),
    ) -> bool {
        match self {
            Part::Head {
                status,
                reason,
                content_type,
                retry_after,
            } => {
                let (content_type, retry_after) = (content_type.as_deref(), retry_after.as_deref());
                decoder.head(
                    &ReplyHead {
                        status: *status,
                        reason,
                        content_type,
                        retry_after,
                    },
                    now,
                );
            }
            Part::Body(bytes) => decoder.bytes(bytes, now, sink),
            Part::End => decoder.end(now, sink),
            Part::Broken(why) => decoder.broken(why, now, sink),
            Part::Unsent(why) => {
                sink(unsent(why));
                return true;
            }
            Part::Unreached { why, reached } => {
                sink(if *reached { lost(why) } else { unreached(why) });
                return true;
            }
        }
        decoder.is_settled()
    }
}

/// The largest piece of a body that is handed over at once, in bytes: it bounds
/// what a stalled host can make the loop hold.
pub const PART_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(api: Api, base_url: &str, door: Door) -> HttpProvider {
        HttpProvider {
            api,
            base_url: base_url.to_owned(),
            door,
            unnamed: true,
            key: Some(Secret::new("sk-0123456789")),
            headers: Vec::new(),
            options: RequestOptions::default(),
            limits: ReplyLimits::default(),
        }
    }

    fn azure(version: &str) -> HttpProvider {
        let (deployment, version) = ("sol-prod".to_owned(), version.to_owned());
        let door = Door::Azure {
            deployment,
            version,
        };
        provider(Api::OpenAi, "https://east.example:8443/", door)
    }

    #[test]
    fn a_deployment_is_found_by_its_path_or_by_its_name() {
        for (version, path) in [
            (
                "2024-10-21",
                "/openai/deployments/sol-prod/chat/completions?api-version=2024-10-21",
            ),
            ("v1", "/openai/v1/chat/completions"),
            ("preview", "/openai/v1/chat/completions?api-version=preview"),
        ] {
            let provider = azure(version);
            assert_eq!(provider.url(), format!("https://east.example:8443{path}"));
            assert_eq!(provider.key_header(), ("api-key", ""));
            assert_eq!(provider.model("sol"), "sol-prod");
        }
        let plain = provider(Api::Anthropic, "https://a.example/v1", Door::Api);
        assert_eq!(plain.url(), "https://a.example/v1/messages");
        assert_eq!(plain.key_header(), ("x-api-key", ""));
        assert_eq!(plain.model("sol"), "sol");
        let token = provider(Api::Anthropic, "https://a.example/v1", Door::Bearer);
        assert_eq!(token.url(), plain.url());
        assert_eq!(token.key_header(), ("authorization", "Bearer "));
    }

    #[test]
    fn a_header_of_ones_own_stands_in_the_place_of_the_apis() {
        let mut provider = provider(Api::Anthropic, "https://a.example/v1", Door::Api);
        let version = ("Anthropic-Version".to_owned(), "2026-01-01".to_owned());
        provider.headers.push(version);
        let versions: Vec<_> = provider
            .plain_headers()
            .filter(|(name, _)| name.eq_ignore_ascii_case("anthropic-version"))
            .collect();
        assert_eq!(versions, [("Anthropic-Version", "2026-01-01")]);
    }

    #[test]
    fn a_failure_says_neither_the_key_nor_where_an_unnamed_provider_is() {
        let mut provider = azure("2024-10-21");
        let shown = |provider: &HttpProvider, text: &str| {
            let backend = Backend::Http(Box::new(provider.clone()));
            let chunk = backend.without_key(lost(text));
            let ModelChunk::Failed { failure, .. } = chunk else {
                panic!("{chunk:?}")
            };
            failure.text.to_string()
        };
        let said = format!(
            "no answer from {} (east.example): deployment sol-prod, key sk-0123456789.",
            provider.url()
        );
        let text = shown(&provider, &said);
        for part in ["east", "8443", "sol-prod", "2024", "sk-0"] {
            assert!(!text.contains(part), "{part} in {text}");
        }
        provider.unnamed = false;
        assert!(shown(&provider, &said).contains("east.example:8443/openai"));
    }
}
