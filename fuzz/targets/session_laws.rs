//! A session alone keeps the laws, on what it was told in a scenario.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(session_laws);
