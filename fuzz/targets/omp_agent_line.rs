//! Any line that a host decodes, with the messages and payloads in it, is written so that it decodes to the same value.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(omp_agent_line);
