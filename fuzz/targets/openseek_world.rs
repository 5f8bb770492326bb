//! Over a wire of openseek: whatever hosts, models, tools, disks, clocks and wires do, nobody finds anything wrong.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(openseek_world);
