//! The neutral vocabulary: what every agent, `Server` and `Client` say to each
//! other. It is an internal view, never stored and never published.

mod agent;
mod answer;
mod ask;
mod command;
mod event;
mod ids;
mod message;
mod time;
mod tool;
mod usage;
mod work;

use alloc::{boxed::Box, sync::Arc, vec::Vec};

pub use agent::*;
pub use answer::*;
pub use ask::*;
pub use command::*;
pub use event::*;
pub use ids::*;
pub use message::*;
pub use time::*;
pub use tool::*;
pub use usage::*;
pub use work::*;

/// Shared immutable text.
pub type Text = Arc<str>;

/// One JSON value as it was written: checked for syntax, kept as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawJson(pub Text);
