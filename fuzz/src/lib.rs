//! Fuzz targets: thin wrappers over the functions of [`turnwire_proptests::fuzz`].
//!
//! Each binary is a target for libFuzzer in a build of `cargo fuzz`, and in every other build a program that replays
//! the files and folders that it is given:
//!
//! ```sh
//! cargo +stable fuzz run -s none scan -- -max_total_time=60    # begins with fuzz/corpus/scan, and adds to it
//! cargo run -p turnwire-fuzz --bin scan -- fuzz/seeds/scan     # no fuzzer, no C++
//! ```

use std::path::{Path, PathBuf};

pub use turnwire_proptests::fuzz as targets;

#[cfg(fuzzing)]
#[doc(hidden)]
pub use libfuzzer_sys;

/// Makes a binary of the target of this name.
#[macro_export]
macro_rules! target {
    ($name:ident) => {
        #[cfg(fuzzing)]
        $crate::libfuzzer_sys::fuzz_target!(|data: &[u8]| $crate::hold(
            $crate::targets::$name,
            data
        ));

        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            $crate::replay($crate::targets::$name)
        }
    };
}

/// Panics if the target finds something: the way to tell libFuzzer.
///
/// # Panics
/// If the target finds something.
#[allow(clippy::panic, reason = "a fuzzer learns of a finding by a panic")]
pub fn hold(target: targets::Target, data: &[u8]) {
    if let Err(broken) = target(data) {
        panic!("{broken}");
    }
}

/// Replays the files and folders of the command line, and says on stderr which of them find something.
#[allow(clippy::print_stderr, reason = "it is a program's main")]
pub fn replay(target: targets::Target) -> std::process::ExitCode {
    let (mut files, mut found) = (0_u32, 0_u32);
    for path in std::env::args_os().skip(1).map(PathBuf::from) {
        for file in files_of(&path) {
            files += 1;
            let result = match std::fs::read(&file) {
                Ok(data) => target(&data).map_err(|broken| broken.to_string()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(why) = result {
                found += 1;
                eprintln!("{}: {why}", file.display());
            }
        }
    }
    eprintln!("{files} files, {found} findings");
    std::process::ExitCode::from(u8::from(found > 0))
}

/// The file itself, or the files of a folder in the order of their names.
fn files_of(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return vec![path.to_owned()];
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}
