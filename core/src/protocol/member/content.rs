//! What a message says, where a contract lets it be a plain text as well.

use alloc::vec::Vec;

use serde::{Deserialize, Deserializer};

use crate::json::{Kind, Lazy, Raw};
use crate::protocol::wire::Hole;

/// A plain text, or blocks of the contract's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextOr<'a, T> {
    /// A text.
    Text(Lazy<'a>),
    /// Blocks.
    Blocks(Vec<T>),
}

impl<T> Default for TextOr<'_, T> {
    fn default() -> Self {
        TextOr::Blocks(Vec::new())
    }
}

impl<'a, T: Deserialize<'a>> Deserialize<'a> for TextOr<'a, T> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Raw::deserialize(deserializer)?;
        if value.kind() == Kind::String {
            value.decode().map(TextOr::Text)
        } else {
            value.decode().map(TextOr::Blocks)
        }
        .map_err(serde::de::Error::custom)
    }
}

impl<T: Hole> Hole for TextOr<'_, T> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            TextOr::Text(text) => text.put(out),
            TextOr::Blocks(blocks) => blocks.put(out),
        }
    }
}
