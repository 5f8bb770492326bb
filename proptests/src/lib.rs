//! Scenarios, laws and fixtures for testing agents and machines that speak the five protocols.

pub mod cases;
pub mod script;
pub mod world;
