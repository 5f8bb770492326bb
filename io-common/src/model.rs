//! Model backends: where a request's bytes come from. What comes back is bytes
//! too; the pure decoder in `core` reads them, whoever sent them.

use std::sync::Arc;

use bytes::Bytes;
use turnwire::model::script::Script;
use turnwire::model::{Api, ReplyDecoder, ReplyHead, ReplyLimits, RequestOptions, lost, unreached};
use turnwire::vocab::{ModelChunk, Now};

use crate::secret::Secret;

/// A model provider reached over HTTP.
#[derive(Clone, Debug)]
pub struct HttpProvider {
    /// Whose API it speaks.
    pub api: Api,
    /// Base of its URLs, which ends in the API's version: `https://host/v1`.
    pub base_url: String,
    /// The key, sent as the API wants it; none for a local server that asks for none.
    pub key: Option<Secret>,
    /// Further request headers.
    pub headers: Vec<(String, String)>,
    /// Settings of the request body.
    pub options: RequestOptions,
    /// Limits of a reply.
    pub limits: ReplyLimits,
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
    /// A chunk whose text for people doesn't hold the key, whatever the provider sent back.
    pub fn without_key<'a>(&self, mut chunk: ModelChunk<'a>) -> ModelChunk<'a> {
        let key = match self {
            Backend::Http(provider) => provider.key.as_ref(),
            Backend::Scripted(_) => None,
        };
        if let ModelChunk::Failed { failure, .. } = &mut chunk
            && let Some(shown) = key.and_then(|key: &Secret| key.hidden_in(&failure.text))
        {
            failure.text = shown.into();
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
