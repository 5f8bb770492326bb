//! Whatever two sides write in omp, the observer keeps the laws of a machine, and its findings are sound.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(omp_observer);
