//! What every driver must do, done by this one.
#![cfg(unix)]

#[allow(clippy::expect_used)]
mod driver;

turnwire_io_contract::suite!(crate::driver::Tokio);
