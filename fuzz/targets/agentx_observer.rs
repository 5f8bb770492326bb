//! Whatever two sides write in agentx or claude, the observer keeps the laws of a machine, and its findings are sound.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(agentx_observer);
