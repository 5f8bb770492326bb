//! Every machine of a scenario over a wire of splice keeps the laws L1 – L10, on what it was told there.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(splice_laws);
