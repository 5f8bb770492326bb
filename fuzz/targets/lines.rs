//! Every line of any stream is found as the plain way finds it, however the bytes are cut.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(lines);
