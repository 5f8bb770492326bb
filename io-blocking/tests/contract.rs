//! What every driver must do, done by this one.
#![cfg(unix)]

mod driver;

turnwire_io_contract::suite!(crate::driver::Blocking);
