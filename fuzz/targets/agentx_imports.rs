//! Whatever a host says of attachments: each upload ends once, and a prompt refers to all that is its own and to nothing
//! else.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(agentx_imports);
