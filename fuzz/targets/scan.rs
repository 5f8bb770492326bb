//! The scan takes exactly the texts that serde_json takes in which no name comes twice, finds the same members with
//! the same values, and what it remembers of the lines before changes nothing.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(scan);
