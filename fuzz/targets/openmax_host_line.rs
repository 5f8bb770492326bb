//! Any line that an agent decodes is written so that it decodes to the same value, which says what the line said.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(openmax_host_line);
