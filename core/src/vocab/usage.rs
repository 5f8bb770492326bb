//! Token usage, cost, and the model they belong to.

use super::*;

/// A model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRef {
    /// Who serves it; `None`: not said.
    pub provider: Option<Text>,
    /// Its name.
    pub model: Text,
}

/// Tokens, in buckets that don't overlap. `None` is *not reported*, which isn't 0.
///
/// The whole prompt is input + cache read + cache write
/// ([`prompt_tokens`](Usage::prompt_tokens)); the whole answer is output +
/// reasoning ([`answer_tokens`](Usage::answer_tokens)). Providers that count
/// thinking within the answer have it taken out by their decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    /// Prompt tokens that came from no cache and went into none.
    pub input: Option<u64>,
    /// Prompt tokens read from a cache.
    pub cache_read: Option<u64>,
    /// Prompt tokens written to a cache.
    pub cache_write: Option<u64>,
    /// Answer tokens that weren't thinking.
    pub output: Option<u64>,
    /// Answer tokens of thinking, where they are reported apart.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Whether nothing at all was reported.
    pub const fn is_empty(&self) -> bool {
        self.input.is_none()
            && self.cache_read.is_none()
            && self.cache_write.is_none()
            && self.output.is_none()
            && self.reasoning.is_none()
    }

    /// All tokens of the prompt; `None` if no part of it was reported.
    pub fn prompt_tokens(&self) -> Option<u64> {
        sum(sum(self.input, self.cache_read), self.cache_write)
    }

    /// All tokens of the answer, thinking included; `None` if no part of it was reported.
    pub fn answer_tokens(&self) -> Option<u64> {
        sum(self.output, self.reasoning)
    }

    /// All tokens, prompt and answer; `None` if nothing was reported.
    pub fn total(&self) -> Option<u64> {
        sum(self.prompt_tokens(), self.answer_tokens())
    }

    /// Adds another report, bucket by bucket; what only one of them reports is taken from it.
    #[must_use]
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            input: sum(self.input, other.input),
            cache_read: sum(self.cache_read, other.cache_read),
            cache_write: sum(self.cache_write, other.cache_write),
            output: sum(self.output, other.output),
            reasoning: sum(self.reasoning, other.reasoning),
        }
    }
}

/// Adds what is known; unknown only if both are. Sums stop at the largest number instead of wrapping.
fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

/// Money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cost {
    /// An amount.
    Known {
        /// In millionths of a millionth of a US dollar, so that a token's price is a whole number.
        pico_usd: u64,
        /// How it is known.
        basis: CostBasis,
        /// Whose price it is.
        source: Text,
        /// The date of the price.
        as_of: Text,
    },
    /// There is no price; never shown as zero (SP-08).
    Unpriced {
        /// Why.
        why: Text,
    },
    /// Nobody said.
    NotSaid,
}

/// How a cost is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostBasis {
    /// The provider said so.
    Reported,
    /// From reported usage and a list of prices.
    Estimated,
    /// From usage that was itself worked out.
    Reconstructed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_reported_is_not_zero() {
        let none = Usage::default();
        assert!(none.is_empty());
        assert_eq!(none.prompt_tokens(), None);
        assert_eq!(none.plus(none).total(), None);
        let some = Usage {
            input: Some(3),
            output: Some(0),
            ..none
        };
        assert_eq!(none.plus(some), some);
        assert_eq!(some.plus(some).prompt_tokens(), Some(6));
    }

    #[test]
    fn buckets_are_disjoint_and_sums_never_wrap() {
        let usage = Usage {
            input: Some(1),
            cache_read: Some(10),
            cache_write: Some(100),
            output: Some(5),
            reasoning: Some(4),
        };
        assert_eq!(usage.prompt_tokens(), Some(111));
        assert_eq!(usage.answer_tokens(), Some(9));
        assert_eq!(usage.total(), Some(120));
        let huge = Usage {
            input: Some(u64::MAX),
            ..usage
        };
        assert_eq!(huge.plus(huge).total(), Some(u64::MAX));
    }
}
