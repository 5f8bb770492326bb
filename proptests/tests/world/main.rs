//! Whole worlds: both ends of a protocol, a session, and whatever happens around them.

mod faults;
mod fuzz_seeds;
mod laws;
mod omp;
mod openmax;
