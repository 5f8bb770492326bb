//! Any input that an agent reads is written on one line, so that it reads as the same value.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(splice_host_line);
