//! Whatever bytes a host writes in openseek, our engine behind its Server keeps the contract as the observer knows it, the
//! neutral guarantees and the laws, and leaves when its input has ended.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(openseek_server);
