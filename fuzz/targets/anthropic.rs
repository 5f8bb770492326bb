//! Whatever an endpoint of Anthropic's messages sends, cut anywhere, gives the same chunks and exactly one settlement,
//! and the laws of a machine hold.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(anthropic);
