//! Whatever a host and an engine of openseek write, the observer keeps the laws of a machine, and its findings are sound.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(openseek_observer);
