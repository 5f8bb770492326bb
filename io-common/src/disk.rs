//! Files for one user: private folders, locks, replacement in one step.
//!
//! All of it is durable when it returns: names and bytes are on the disk.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Makes a folder for the user alone, if there is none yet, and its name durable.
///
/// # Errors
/// As the system says.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
        Some(_) | None => Ok(()),
    }
}

/// Makes the names in a folder durable. Windows can't flush a folder, and needs no such step.
///
/// # Errors
/// As the system says.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// Options that make files for the user alone.
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

fn lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    private(&mut options).open(path)
}

/// Takes a lock without waiting; `None` if somebody else has it. It ends when the file is dropped, or its process
/// ends. Programs that this process starts don't inherit it.
///
/// # Errors
/// As the system says.
pub fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = lock_file(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// As [`try_lock`], and waits so long for it. A lock that was just let go can still be held for a moment by a program
/// that was being started at that time: between its fork and its exec it has a copy of every open file.
///
/// # Errors
/// As the system says.
pub fn try_lock_for(path: &Path, limit: Duration) -> io::Result<Option<File>> {
    let begun = Instant::now();
    loop {
        let lock = try_lock(path)?;
        if lock.is_some() || begun.elapsed() > limit {
            return Ok(lock);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits so long for a lock.
///
/// # Errors
/// `TimedOut` if somebody else has it all that time; else as the system says.
pub fn lock(path: &Path, limit: Duration) -> io::Result<File> {
    try_lock_for(path, limit)?
        .ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, "another process holds this lock"))
}

/// Replaces a file in one step: a reader, or a crash, sees the old bytes or the new ones, whole.
/// `folder` is the one that it is in.
///
/// # Errors
/// As the system says; the old bytes are there then.
pub fn replace(path: &Path, folder: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_folder(folder)
}
