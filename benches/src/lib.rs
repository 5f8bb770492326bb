//! What the benches share: the corpus, and a stopwatch that sets our way and
//! the usual way side by side.
//!
//! ```text
//! cargo bench -p turnwire-benches            # all rows
//! cargo bench -p turnwire-benches -- sse     # the rows with this word
//! cargo bench -p turnwire-benches -- --check # fails if a row misses its aim
//! ```
#![allow(clippy::print_stdout)]

pub mod corpus;
pub mod race;
pub mod usual;
