//! Any line that a host decodes is written so that it decodes to the same value, which says what the line said.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(openmax_agent_line);
