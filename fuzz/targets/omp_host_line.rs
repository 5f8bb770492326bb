//! Any line that an agent decodes, as it comes or after what a host's bytes are made into, is written so that it
//! decodes to the same value.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(omp_host_line);
