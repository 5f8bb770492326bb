//! Any line that an agent decodes, with its operation or payload, is written on one line, so that it decodes to the same value.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(agentx_host_line);
