//! Whatever bytes an agent writes in splice, its Client gives a neutral stream that keeps every guarantee, one reply for
//! each command, and a close, and it keeps the laws.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(splice_client);
