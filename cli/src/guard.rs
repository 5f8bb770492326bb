//! Keeps the key of this process to itself.

/// From now on other processes of the same user can't look into this one: not into its memory, and not into the
/// environment it was started with, where the key stands. Commands of the agent are such processes.
///
/// Linux only. It doesn't hold against root, and ends core dumps and debugging. That it can't be had is no reason to
/// stop: the tools don't hand the key on in any case.
pub fn close_to_others() {
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        tracing::warn!(%error, "other processes of this user can read the key");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn the_process_is_closed_to_others() {
        super::close_to_others();
        let now = rustix::process::dumpable_behavior().unwrap();
        assert_eq!(now, rustix::process::DumpableBehavior::NotDumpable);
    }
}
