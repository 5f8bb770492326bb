//! What is written is read back as the same value by us and by serde_json, on one line; any spelling of a string is
//! read as serde_json reads it.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(writer);
