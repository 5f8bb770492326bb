//! Any text is a script, or its fault has a place in it; whatever a script plays settles once.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(script);
