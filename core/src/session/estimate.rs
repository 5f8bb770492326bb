//! The size of the next request in tokens, in whole numbers rounded up.
//!
//! raw = ⌈bytes of text, arguments and schemas / 4⌉ + 4 a message + 1,600 an image. `used` scales it by what the
//! provider reported for the last complete request, if that was more.

use crate::vocab::{Block, Message, ToolSpec};

const BYTES_PER_TOKEN: u64 = 4;
const TOKENS_PER_MESSAGE: u64 = 4;
const TOKENS_PER_IMAGE: u64 = 1600;

/// A running sum, so that nothing has to be counted twice.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimate {
    /// Bytes of system text and tool schemas.
    fixed: u64,
    /// Bytes of the messages.
    bytes: u64,
    messages: u64,
    images: u64,
    /// Prompt tokens reported for a request, and its raw estimate, where that was less.
    factor: Option<(u64, u64)>,
}

impl Estimate {
    /// Takes what is sent with every request.
    pub fn set_fixed(&mut self, system: Option<&str>, tools: &[ToolSpec]) {
        let tools = tools
            .iter()
            .map(|tool| tool.name.len() + tool.description.len() + tool.schema.0.len());
        self.fixed = count(system.map_or(0, str::len).saturating_add(tools.sum()));
    }

    /// Counts one message.
    pub fn add_blocks<'a>(&mut self, blocks: impl Iterator<Item = &'a Block>) {
        self.messages = self.messages.saturating_add(1);
        for block in blocks {
            match block {
                Block::Media { .. } => self.images = self.images.saturating_add(1),
                Block::Text(_)
                | Block::Thinking { .. }
                | Block::Redacted(_)
                | Block::ToolUse { .. }
                | Block::ToolResult { .. }
                | Block::Opaque(_) => self.bytes = self.bytes.saturating_add(count(block.bytes())),
            }
        }
    }

    /// What a provider reported for a complete request, beside our raw estimate of it.
    pub fn reported(&mut self, prompt_tokens: Option<u64>, raw: u64) {
        if let Some(tokens) = prompt_tokens {
            self.factor = (tokens > raw && raw > 0).then_some((tokens, raw));
        }
    }

    /// Forgets what was reported: another model counts in another way.
    pub fn forget_reported(&mut self) {
        self.factor = None;
    }

    /// Forgets the messages, and what was reported of them.
    pub fn forget_messages(&mut self) {
        *self = Estimate {
            fixed: self.fixed,
            ..Estimate::default()
        };
    }

    /// The part that no compaction can shrink: system text and tool schemas.
    pub fn fixed(&self) -> u64 {
        self.scaled(self.fixed.div_ceil(BYTES_PER_TOKEN))
    }

    /// The estimate without the correction.
    pub fn raw(&self) -> u64 {
        let text = self
            .fixed
            .saturating_add(self.bytes)
            .div_ceil(BYTES_PER_TOKEN);
        text.saturating_add(self.messages.saturating_mul(TOKENS_PER_MESSAGE))
            .saturating_add(self.images.saturating_mul(TOKENS_PER_IMAGE))
    }

    /// The estimate.
    pub fn used(&self) -> u64 {
        self.scaled(self.raw())
    }

    /// A raw number of tokens with the correction.
    pub fn scaled(&self, raw: u64) -> u64 {
        match self.factor {
            Some((tokens, of)) => {
                let scaled = (u128::from(raw) * u128::from(tokens)).div_ceil(u128::from(of));
                u64::try_from(scaled).unwrap_or(u64::MAX)
            }
            None => raw,
        }
    }
}

/// The raw tokens of one message.
pub(super) fn weight(message: &Message) -> u64 {
    let mut alone = Estimate::default();
    alone.add_blocks(message.content.iter().map(AsRef::as_ref));
    alone.raw()
}

fn count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::{MediaKind, Source};

    #[test]
    fn om_13_used_tokens_are_rounded_up_and_scaled_by_what_was_reported() {
        let mut estimate = Estimate::default();
        assert_eq!(estimate.used(), 0);
        estimate.set_fixed(Some("12345"), &[]);
        assert_eq!(estimate.raw(), 2);
        estimate.add_blocks([Block::Text("123".into())].iter());
        assert_eq!(estimate.raw(), 2 + 4);
        let image = Block::Media {
            kind: MediaKind::Image,
            source: Source::Url("x".into()),
        };
        estimate.add_blocks([image].iter());
        assert_eq!(estimate.raw(), 2 + 8 + 1600);
        estimate.reported(Some(3220), 1610);
        assert_eq!(estimate.used(), 3220);
        estimate.add_blocks([Block::Text("1".into())].iter());
        assert_eq!(estimate.used(), (1610 + 5) * 2);
        // Less than estimated never scales down; no report keeps the last one.
        estimate.reported(None, 10);
        assert_eq!(estimate.used(), (1610 + 5) * 2);
        estimate.reported(Some(5), 10);
        assert_eq!(estimate.used(), 1615);
        estimate.reported(Some(20), 10);
        estimate.forget_reported();
        assert_eq!(estimate.used(), 1615);
        // What was reported of a request that we took for empty scales nothing.
        estimate.reported(Some(20), 0);
        assert_eq!(estimate.used(), 1615);
    }
}
