//! Any line that a host decodes is written on one line, so that it decodes to the same value.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(agentx_agent_line);
