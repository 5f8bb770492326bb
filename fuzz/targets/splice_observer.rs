//! Whatever a host and an agent of splice write, the observer keeps the laws of a machine, and its findings are sound.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(splice_observer);
