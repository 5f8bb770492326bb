//! Any command that an engine reads, in the contract's shape or in a newer one, is written on one line, so that it reads as
//! the same value.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(openseek_host_line);
