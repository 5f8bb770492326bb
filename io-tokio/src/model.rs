//! How a model's reply comes: from a script, or over HTTP.

use std::time::Duration;

use turnwire::model::script::{ScriptEnd, ScriptReply};
use turnwire_io::Part;

/// Plays a scripted reply, with its pauses.
pub(crate) async fn play<F>(reply: ScriptReply, give: impl Fn(Part) -> F)
where
    F: Future<Output = ()>,
{
    let pause = |us: u64| tokio::time::sleep(Duration::from_micros(us));
    pause(reply.head_after_us).await;
    if let ScriptEnd::Unreached(why) = reply.end {
        return give(Part::Unreached {
            why,
            reached: false,
        })
        .await;
    }
    let head = reply.head();
    let (content_type, retry_after) = (
        head.content_type.map(str::to_owned),
        head.retry_after.map(str::to_owned),
    );
    give(Part::Head {
        status: reply.status,
        reason: String::new(),
        content_type,
        retry_after,
    })
    .await;
    for piece in reply.pieces {
        if piece.after_us > 0 {
            pause(piece.after_us).await;
        }
        give(Part::Body(piece.bytes.into())).await;
    }
    give(match reply.end {
        ScriptEnd::Cut(why) => Part::Broken(why),
        ScriptEnd::Whole | ScriptEnd::Unreached(_) => Part::End,
    })
    .await;
}

#[cfg(feature = "http")]
pub(crate) mod http {
    //! Streaming HTTP on reqwest with rustls.

    use futures::StreamExt as _;
    use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
    use std::error::Error as _;
    use std::sync::OnceLock;

    use turnwire_io::{HttpProvider, PART_MAX};

    use super::*;

    /// How long a connection may take to be made.
    const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

    /// A client that is built at the first request, so that a session that asks
    /// no model loads no certificates.
    #[derive(Debug, Default)]
    pub(crate) struct LazyClient(OnceLock<Result<reqwest::Client, String>>);

    impl LazyClient {
        pub(crate) fn get(&self) -> Result<reqwest::Client, String> {
            self.0.get_or_init(build).clone()
        }
    }

    fn build() -> Result<reqwest::Client, String> {
        // An error means that the embedder installed a provider already: theirs is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // A redirect would take the key along: only the standard header is left out at another host.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("turnwire/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|e| format!("the HTTP client could not be made: {}", chain(&e)))
    }

    /// Sends one request and hands its response on, piece by piece, until `give` refuses more.
    pub(crate) async fn send<F>(
        client: Result<reqwest::Client, String>,
        provider: &HttpProvider,
        body: Vec<u8>,
        mut give: impl FnMut(Part) -> F,
    ) where
        F: Future<Output = ()>,
    {
        let sent = match client.and_then(|c| request(&c, provider, body)) {
            Ok(request) => request.send().await,
            Err(why) => return give(Part::Unreached { why, reached: true }).await,
        };
        let response = match sent {
            Ok(response) => response,
            Err(e) => {
                return give(Part::Unreached {
                    why: chain(&e),
                    reached: !e.is_connect(),
                })
                .await;
            }
        };
        let text = |name: HeaderName| {
            response
                .headers()
                .get(name)
                .and_then(|v| v.to_str().ok())
                .map(str::to_owned)
        };
        let status = response.status();
        let head = Part::Head {
            status: status.as_u16(),
            reason: status.canonical_reason().unwrap_or("").to_owned(),
            content_type: text(CONTENT_TYPE),
            retry_after: text(RETRY_AFTER),
        };
        give(head).await;
        let mut stream = response.bytes_stream();
        while let Some(piece) = stream.next().await {
            match piece {
                Ok(mut bytes) => {
                    while !bytes.is_empty() {
                        let part = bytes.split_to(bytes.len().min(PART_MAX));
                        give(Part::Body(part)).await;
                    }
                }
                Err(e) => return give(Part::Broken(format!("stream error: {}", chain(&e)))).await,
            }
        }
        give(Part::End).await;
    }

    fn request(
        client: &reqwest::Client,
        provider: &HttpProvider,
        body: Vec<u8>,
    ) -> Result<reqwest::RequestBuilder, String> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &provider.key {
            let (name, before) = provider.key_header();
            headers.insert(name, secret(&format!("{before}{}", key.expose()))?);
        }
        for (name, value) in provider.plain_headers() {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| format!("`{name}` is no header name"))?;
            let value = HeaderValue::from_str(value)
                .map_err(|_| format!("the value of header `{name}` is not legal"))?;
            headers.insert(name, value);
        }
        Ok(client.post(provider.url()).headers(headers).body(body))
    }

    fn secret(value: &str) -> Result<HeaderValue, String> {
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| "the API key holds characters that no HTTP header can carry".to_owned())?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// An error and its causes, joined by colons.
    fn chain(error: &reqwest::Error) -> String {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(e) = cause {
            text.push_str(": ");
            text.push_str(&e.to_string());
            cause = e.source();
        }
        text
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_key_that_no_header_can_carry_is_refused_without_showing_it() {
            let said = secret("sk-\n123").unwrap_err();
            assert!(!said.contains("123"), "{said}");
        }
    }
}
