//! Whatever bytes a host writes in splice, our agent behind its Server keeps the contract as the observer knows it, the
//! neutral guarantees and the laws, and leaves when its input has ended.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(splice_server);
