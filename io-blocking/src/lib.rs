//! The blocking driver of Turnwire, without an async runtime.
