//! The observers, and what `check` and `spec` say by them.

mod check_reader;
mod observer_kit;
mod observer_laws;
mod observer_recordings;
mod observer_rules;
mod observer_spec;
#[path = "../omp/omp_kit/mod.rs"]
mod omp_kit;
mod omp_observer_laws;
mod omp_recordings;
