//! Token usage, cost, and the model they belong to.

use super::*;

/// ModelRef.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRef { pub provider: Option<Text>, pub model: Text }

/// Usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Usage { pub input: Option<u64>, pub cache_read: Option<u64>, pub cache_write: Option<u64>, pub output: Option<u64>, pub reasoning: Option<u64> }

/// Cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cost { Known { pico_usd: u64, basis: CostBasis, source: Text, as_of: Text }, Unpriced { why: Text }, NotSaid }

/// CostBasis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostBasis { Reported, Estimated, Reconstructed }
