//! The usual way: what one writes first, with the crates one takes for it.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use eventsource_stream::Eventsource;
use futures::Stream;

/// The sum of the lengths of all data, read by eventsource-stream.
pub fn read_sse(stream: &[u8], chunk: usize) -> u64 {
    let chunks = stream.chunks(chunk).map(Ok::<_, std::convert::Infallible>);
    let mut events = pin!(futures::stream::iter(chunks).eventsource());
    let mut context = Context::from_waker(Waker::noop());
    let mut sum = 0;
    // The source is never pending.
    while let Poll::Ready(Some(event)) = events.as_mut().poll_next(&mut context) {
        sum += event.map_or(0, |event| event.data.len() as u64);
    }
    sum
}

/// Whether a string or a member's name of the value holds one of these.
pub fn holds(value: &serde_json::Value, keys: &[String]) -> bool {
    use serde_json::Value;
    let has = |text: &str| keys.iter().any(|key| text.contains(key.as_str()));
    match value {
        Value::String(text) => has(text),
        Value::Array(items) => items.iter().any(|item| holds(item, keys)),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| has(name) || holds(value, keys)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
