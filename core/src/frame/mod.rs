//! frame.
