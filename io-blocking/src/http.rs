//! Streaming HTTP on ureq with rustls. HTTP/1.1 only.
//!
//! A request that is stopped ends at once, also in the middle of a read that will never come back: its sockets are
//! shut down. ureq can do that for a whole agent, so every request has one to itself while it runs; idle ones keep
//! their connections for the next.

use std::error::Error as _;
use std::io::Read;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use turnwire_io::{HttpProvider, PART_MAX, Part};
use ureq::Agent;
use ureq::http::header::{CONTENT_TYPE, RETRY_AFTER};
use ureq::http::{HeaderName, HeaderValue, Request, Response, Uri};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    ConnectProxyConnector, ConnectionDetails, Connector, NextTimeout, RustlsConnector,
    TcpConnector, Transport,
};

use crate::cancel::CancelToken;

/// How long a name may be looked up, and a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes requests of one session.
#[derive(Debug, Default)]
pub(crate) struct Client {
    idle: Mutex<Vec<Line>>,
    /// One for all agents: certificates are loaded once, and TLS sessions go on.
    tls: Arc<RustlsConnector>,
}

/// An agent, and how far its latest connection came.
#[derive(Clone, Debug)]
struct Line {
    agent: Agent,
    way: Arc<Way>,
}

impl Client {
    fn take(&self) -> Line {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        idle.unwrap_or_else(|| self.make())
    }

    fn give_back(&self, line: Line) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(line);
    }

    fn make(&self) -> Line {
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            // A redirect would take the key along.
            .max_redirects(0)
            .timeout_resolve(Some(CONNECT_TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .user_agent(concat!("turnwire/", env!("CARGO_PKG_VERSION")))
            .build();
        let way = Arc::new(Way::default());
        let connector = Begin(way.clone())
            .chain(ConnectProxyConnector::default())
            .chain(TcpConnector::default())
            .chain(Tls(self.tls.clone()))
            .chain(Done(way.clone()));
        let resolver = Names(DefaultResolver::default(), way.clone());
        Line {
            agent: Agent::with_parts(config, connector, resolver),
            way,
        }
    }
}

/// Sends one request and hands its response on, piece by piece, until `give` refuses more. `wake` is called beside what
/// a stop does here.
pub(crate) fn send(
    client: &Client,
    provider: &HttpProvider,
    body: &[u8],
    cancel: &CancelToken,
    wake: impl Fn() + Send + Sync + 'static,
    give: &dyn Fn(Part) -> bool,
) {
    let request = match request(provider, body) {
        Ok(request) => request,
        Err(why) => {
            give(Part::Unreached { why, reached: true });
            return;
        }
    };
    let line = client.take();
    let agent = line.agent.clone();
    cancel.on_word(move || {
        agent.clone().shutdown();
        wake();
    });
    line.way.forget();
    let response = match line.agent.run(request) {
        Ok(response) => response,
        Err(error) => {
            let (why, reached) = (chain(&error), line.way.reached());
            give(Part::Unreached { why, reached });
            return;
        }
    };
    if pass_on(response, give) {
        // From here on a stop has nothing to end, and must not end the next one's connection.
        cancel.forget();
        if !cancel.is_cancelled() {
            client.give_back(line);
        }
        give(Part::End);
    }
}

/// Whether the body came to its end.
fn pass_on(response: Response<ureq::Body>, give: &dyn Fn(Part) -> bool) -> bool {
    let text = |name: HeaderName| {
        let value = response.headers().get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    let status = response.status();
    let head = Part::Head {
        status: status.as_u16(),
        reason: status.canonical_reason().unwrap_or("").to_owned(),
        content_type: text(CONTENT_TYPE),
        retry_after: text(RETRY_AFTER),
    };
    if !give(head) {
        return false;
    }
    let mut reader = response.into_body().into_reader();
    let mut buffer = vec![0; PART_MAX];
    loop {
        let part = match reader.read(&mut buffer) {
            Ok(0) => return true,
            Ok(count) => Part::Body(bytes::Bytes::copy_from_slice(
                buffer.get(..count).unwrap_or_default(),
            )),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => {
                give(Part::Broken(format!("stream error: {error}")));
                return false;
            }
        };
        if !give(part) {
            return false;
        }
    }
}

fn request<'a>(provider: &HttpProvider, body: &'a [u8]) -> Result<Request<&'a [u8]>, String> {
    let mut request = Request::post(provider.url());
    if let Some(key) = &provider.key {
        let (name, before) = provider.key_header();
        request = request.header(name, secret(&format!("{before}{}", key.expose()))?);
    }
    for (name, value) in provider.plain_headers() {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`{name}` is no header name"))?;
        let value = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of header `{name}` is not legal"))?;
        request = request.header(name, value);
    }
    request
        .body(body)
        .map_err(|error| format!("the request could not be made: {error}"))
}

fn secret(value: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| "the API key holds characters that no HTTP header can carry".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// An error and its causes, joined by colons.
fn chain(error: &ureq::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(e) = cause {
        let said = e.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = e.source();
    }
    text
}

/// How far a connection came: a failure on the way to it means that the endpoint was never reached.
#[derive(Debug, Default)]
struct Way(AtomicU8);

impl Way {
    /// Nothing was tried: a connection that was idle is there already.
    const THERE: u8 = 0;
    const UNDER_WAY: u8 = 1;

    fn forget(&self) {
        self.0.store(Self::THERE, Ordering::Relaxed);
    }

    fn set_out(&self) {
        self.0.store(Self::UNDER_WAY, Ordering::Relaxed);
    }

    fn arrive(&self) {
        self.0.store(Self::THERE, Ordering::Relaxed);
    }

    fn reached(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::THERE
    }
}

/// Looks names up, and notes that a connection is under way.
#[derive(Debug)]
struct Names(DefaultResolver, Arc<Way>);

impl Resolver for Names {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        self.1.set_out();
        let found = self.0.resolve(uri, config, timeout)?;
        self.1.arrive();
        Ok(found)
    }
}

/// The first of the chain of connectors.
#[derive(Debug)]
struct Begin(Arc<Way>);

impl Connector<()> for Begin {
    type Out = ();

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        chained: Option<()>,
    ) -> Result<Option<()>, ureq::Error> {
        self.0.set_out();
        Ok(chained)
    }
}

/// The last of the chain.
#[derive(Debug)]
struct Done(Arc<Way>);

impl<In: Transport> Connector<In> for Done {
    type Out = In;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<In>, ureq::Error> {
        self.0.arrive();
        Ok(chained)
    }
}

/// A TLS connector that agents share.
#[derive(Debug)]
struct Tls(Arc<RustlsConnector>);

impl<In: Transport> Connector<In> for Tls {
    type Out = <RustlsConnector as Connector<In>>::Out;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        self.0.connect(details, chained)
    }
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
