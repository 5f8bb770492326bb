//! Any text is a scenario or its fault has a line; a scenario that is printed reads back as the same one, and any
//! bytes are one.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(scenario);
