//! A frame of any size becomes lines that fit, each of them JSON, and in protocol 2 they are put together to the
//! frame again.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(omp_frames_out);
