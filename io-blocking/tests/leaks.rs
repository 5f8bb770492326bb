//! What this driver leaves behind. Alone in its process, so that nobody else's threads are counted.
#![cfg(unix)]

mod driver;

turnwire_io_contract::leaks!(crate::driver::Blocking);
