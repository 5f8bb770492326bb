//! Whatever hosts, models, tools, disks, clocks and wires do, nobody in the whole world finds anything wrong.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(world);
