//! What only a driver of futures can do: a call that is dropped half way.
#![cfg(target_os = "linux")]

use std::time::Duration;

use turnwire_tokio::tools::{CancelToken, Toolbox, ToolboxConfig, run};

const MARK: &str = "TURNWIRE_TEST_MARK";

/// How many processes that aren't dead were started with this mark.
fn alive(mark: &str) -> usize {
    let marked = format!("{MARK}={mark}");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let alive = |process: &std::fs::DirEntry| {
        let environ = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let environ = String::from_utf8_lossy(&environ);
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let state = stat
            .rsplit(')')
            .next()
            .and_then(|s| s.trim_start().chars().next());
        environ.split('\0').any(|variable| variable == marked)
            && !matches!(state, None | Some('Z' | 'X'))
    };
    processes.filter(alive).count()
}

#[tokio::test]
async fn a_dropped_call_kills_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let mark = format!("dropped-{}", std::process::id());
    let mut config = ToolboxConfig::new(folder.path());
    config.extra_env = vec![(MARK.into(), mark.clone())];
    let tools = Toolbox::new(config).unwrap();
    let input = r#"{"command":"trap '' TERM; sleep 30 & sleep 30"}"#;
    let call = run(&tools, "bash", input, CancelToken::new(), |_| {});
    assert!(
        tokio::time::timeout(Duration::from_millis(500), call)
            .await
            .is_err()
    );
    for _ in 0..500 {
        if alive(&mark) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} processes are left", alive(&mark));
}
