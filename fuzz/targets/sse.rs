//! Every event of a legal stream is the one that the standard's algorithm finds, and of any other stream the same
//! events and faults are found however its bytes are cut, none larger than the limit.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(sse);
