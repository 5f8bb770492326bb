//! Over a wire of splice: whatever hosts, models, tools, disks, clocks and wires do, nobody finds anything wrong.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(splice_world);
