//! Any file is checked against splice to its end, as a recording or as lines of either side; its findings are sound, the
//! summary counts them, and it is the same however the bytes are cut.
#![cfg_attr(fuzzing, no_main)]

turnwire_fuzz::target!(splice_recording);
