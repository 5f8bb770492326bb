//! Any lines are frames or faults: a frame of chunks has the length that it declares, nothing is held behind a fault,
//! and it is the same however the bytes are cut.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(omp_frames_in);
