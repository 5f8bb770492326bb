//! Whatever hosts, models, tools, disks and clocks do, nobody finds anything wrong in a session alone.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(session);
