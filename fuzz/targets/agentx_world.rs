//! Over a wire of agentx or claude: whatever hosts, models, tools, disks, clocks and wires do, nobody finds anything wrong.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(agentx_world);
