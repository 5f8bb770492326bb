//! The file tools, as a model calls them.
#![cfg(unix)]
// To clippy only functions marked as tests are tests; what they share is not.
#![allow(clippy::expect_used, clippy::panic, clippy::wildcard_enum_match_arm)]

mod tools_support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};
use tools_support::{Ended, call, call_until, config, toolbox};
use turnwire::vocab::{ToolOutcome, ToolUpdate};
use turnwire_tokio::tools::{self, CancelToken, Toolbox};

fn project() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

async fn run(root: &Path, name: &str, input: Value) -> Ended {
    call(&toolbox(root), name, input).await
}

fn put(root: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
    fs::write(path, content).expect("a file");
}

fn get(root: &Path, name: &str) -> Vec<u8> {
    fs::read(root.join(name)).expect("a file")
}

/// Names in the root, to see that no temporary file stays.
fn names(root: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root)
        .expect("a folder")
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

// read_file

#[tokio::test]
async fn read_numbers_the_lines() {
    let dir = project();
    put(dir.path(), "a.txt", "hi there\nsecond line\n");
    let text = run(dir.path(), "read_file", json!({"path": "a.txt"}))
        .await
        .ok();
    assert_eq!(text, "    1 hi there\n    2 second line\n");
}

#[tokio::test]
async fn read_takes_a_page_and_says_how_to_go_on() {
    let dir = project();
    let tools = toolbox(dir.path());
    let content: String = (1..=10).map(|n| format!("l{n}\n")).collect();
    put(dir.path(), "a", content.trim_end());
    let page = |offset: u64, limit: u64| {
        call(
            &tools,
            "read_file",
            json!({"path": "a", "offset": offset, "limit": limit}),
        )
    };

    let ended = page(3, 2).await;
    assert!(ended.show.as_ref().expect("facts").truncated);
    assert_eq!(
        ended.ok(),
        "    3 l3\n    4 l4\n[lines 3 to 4 of 10; continue with offset 5]\n"
    );
    assert_eq!(page(9, 2).await.ok(), "    9 l9\n   10 l10\n");
    assert_eq!(page(10, 9).await.ok(), "   10 l10\n");
    assert_eq!(
        page(11, 1).await.failed(),
        "offset 11 is past the end: a has 10 lines"
    );
    assert_eq!(
        page(0, 1).await.ok(),
        "    1 l1\n[lines 1 to 1 of 10; continue with offset 2]\n"
    );
}

#[tokio::test]
async fn read_is_bounded_in_lines_and_bytes() {
    let dir = project();
    put(dir.path(), "lines", "x\n".repeat(2001));
    let text = run(dir.path(), "read_file", json!({"path": "lines"}))
        .await
        .ok();
    assert!(text.ends_with(" 2000 x\n[lines 1 to 2000 of 2001; continue with offset 2001]\n"));

    // One line of 1 MiB: its front, cut between two characters.
    put(dir.path(), "long", "é".repeat(512 * 1024));
    let text = run(dir.path(), "read_file", json!({"path": "long"}))
        .await
        .ok();
    assert!(text.len() < 9000 && !text.contains('\u{fffd}'));
    let shown = text.matches('é').count() * 2;
    assert!(
        text.ends_with(&format!(
            "é [... {} bytes left out ...]\n",
            1024 * 1024 - shown
        )),
        "{text}"
    );

    let mut small = config(dir.path());
    small.output_limit = 1000;
    put(
        dir.path(),
        "wide",
        format!("{}\n", "w".repeat(300)).repeat(5),
    );
    let tools = Toolbox::new(small).expect("tools");
    let text = call(&tools, "read_file", json!({"path": "wide"}))
        .await
        .ok();
    assert!(
        text.ends_with("[lines 1 to 3 of 5; continue with offset 4]\n"),
        "{text}"
    );
}

#[tokio::test]
async fn read_shows_odd_files_for_what_they_are() {
    let dir = project();
    let read = |name: &'static str| run(dir.path(), "read_file", json!({"path": name}));
    put(dir.path(), "empty", "");
    assert_eq!(read("empty").await.ok(), "[empty file]");
    put(dir.path(), "mark", "\u{feff}");
    assert_eq!(read("mark").await.ok(), "[empty file]");
    put(dir.path(), "dos", "\u{feff}a\r\nb\r\n");
    assert_eq!(read("dos").await.ok(), "    1 a\n    2 b\n");
    put(dir.path(), "bin", b"ELF\0\0\x01");
    assert_eq!(
        read("bin").await.failed(),
        "bin is a binary file (6 bytes); it isn't shown"
    );
    put(dir.path(), "latin", b"caf\xe9\nok\n");
    let ended = read("latin").await;
    assert_eq!(ended.meta("invalid_utf8"), Some("true"));
    assert_eq!(ended.ok(), "    1 caf\u{fffd}\n    2 ok\n");
    assert_eq!(read("none").await.failed(), "no such file or folder: none");
    assert_eq!(read(".").await.failed(), ". is a folder, not a file");
    // Opening a pipe that nobody writes to would block for ever.
    let status = std::process::Command::new("mkfifo")
        .arg(dir.path().join("pipe"))
        .status()
        .expect("mkfifo");
    assert!(status.success());
    assert_eq!(read("pipe").await.failed(), "pipe is not a regular file");
}

// write_file

#[tokio::test]
async fn write_makes_the_file_and_its_folders() {
    let dir = project();
    let ended = run(
        dir.path(),
        "write_file",
        json!({"path": "new/deep/out.txt", "content": "line1\nline2\n"}),
    )
    .await;
    let diff = "--- /dev/null\n+++ b/new/deep/out.txt\n@@ -0,0 +1,2 @@\n+line1\n+line2\n";
    assert_eq!(ended.diff(), (diff, 2, 0));
    assert_eq!(
        &*ended.show.as_ref().expect("facts").changed,
        &["new/deep/out.txt".into()]
    );
    assert_eq!(ended.ok(), "wrote new/deep/out.txt (+2 −0)");
    assert_eq!(get(dir.path(), "new/deep/out.txt"), b"line1\nline2\n");
    assert_eq!(names(&dir.path().join("new/deep")), ["out.txt"]);
}

#[tokio::test]
async fn write_replaces_and_keeps_permissions_and_links() {
    let dir = project();
    put(dir.path(), "run.sh", "old\n");
    fs::set_permissions(dir.path().join("run.sh"), fs::Permissions::from_mode(0o750))
        .expect("mode");
    symlink("run.sh", dir.path().join("link")).expect("link");
    let ended = run(
        dir.path(),
        "write_file",
        json!({"path": "link", "content": "new\n"}),
    )
    .await;
    assert_eq!(
        ended.diff(),
        (
            "--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-old\n+new\n",
            1,
            1
        )
    );
    assert_eq!(ended.ok(), "wrote run.sh (+1 −1)");
    let meta = fs::metadata(dir.path().join("run.sh")).expect("meta");
    assert_eq!(meta.permissions().mode() & 0o7777, 0o750);
    assert!(
        fs::symlink_metadata(dir.path().join("link"))
            .expect("meta")
            .is_symlink()
    );
    assert_eq!(get(dir.path(), "run.sh"), b"new\n");
    assert_eq!(names(dir.path()), ["link", "run.sh"]);
}

#[tokio::test]
async fn write_is_atomic_a_reader_never_sees_a_part() {
    let dir = project();
    let (a, b) = ("a".repeat(200_000), "b".repeat(200_000));
    put(dir.path(), "f", &a);
    let path = dir.path().join("f");
    let (old, new) = (a.clone(), b.clone());
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let reader = std::thread::spawn(move || {
        let mut reads = 0;
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) || reads == 0 {
            let seen = fs::read_to_string(&path).expect("always there");
            assert!(seen == old || seen == new, "a part of {} bytes", seen.len());
            reads += 1;
        }
    });
    let tools = toolbox(dir.path());
    for n in 0..20 {
        let content = if n % 2 == 0 { &b } else { &a };
        call(
            &tools,
            "write_file",
            json!({"path": "f", "content": content}),
        )
        .await
        .ok();
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    reader.join().expect("whole files only");
}

#[tokio::test]
async fn write_of_the_same_content_changes_nothing() {
    let dir = project();
    put(dir.path(), "a", "x\n");
    let ended = run(
        dir.path(),
        "write_file",
        json!({"path": "a", "content": "x\n"}),
    )
    .await;
    assert!(ended.updates.is_empty());
    assert_eq!(ended.ok(), "wrote a (+0 −0)");
}

#[tokio::test]
async fn write_refuses_folders_and_leaves_nothing_behind() {
    let dir = project();
    fs::create_dir(dir.path().join("sub")).expect("a folder");
    let ended = run(
        dir.path(),
        "write_file",
        json!({"path": "sub", "content": ""}),
    )
    .await;
    assert_eq!(ended.failed(), "sub is a folder, not a file");
    put(dir.path(), "plain", "");
    let ended = run(
        dir.path(),
        "write_file",
        json!({"path": "plain/x", "content": ""}),
    )
    .await;
    assert_eq!(ended.failed(), "can't use path plain/x: not a directory");
    assert_eq!(names(dir.path()), ["plain", "sub"]);
}

// edit_file

#[tokio::test]
async fn edit_replaces_one_text() {
    let dir = project();
    put(dir.path(), "a.txt", "hi there\nsecond line\n");
    let input = json!({"path": "a.txt", "old_string": "hi there", "new_string": "hello there"});
    let ended = run(dir.path(), "edit_file", input).await;
    let diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-hi there\n+hello there\n second line\n";
    assert_eq!(ended.diff(), (diff, 1, 1));
    assert_eq!(ended.ok(), "edited a.txt (+1 −1)");
    assert_eq!(get(dir.path(), "a.txt"), b"hello there\nsecond line\n");
}

#[tokio::test]
async fn edit_keeps_line_endings_mark_and_foreign_bytes() {
    let dir = project();
    put(dir.path(), "dos", b"\xef\xbb\xbfone\r\ntwo\r\nth\xff\r\n");
    let input = json!({"path": "dos", "old_string": "one\ntwo", "new_string": "1\n2\n3"});
    run(dir.path(), "edit_file", input).await.ok();
    assert_eq!(
        get(dir.path(), "dos"),
        b"\xef\xbb\xbf1\r\n2\r\n3\r\nth\xff\r\n"
    );
}

#[tokio::test]
async fn edit_says_why_it_cannot() {
    let dir = project();
    put(dir.path(), "a", "x = 1\ny\n  x = 1\n");
    put(dir.path(), "bin", b"x\0");
    let edit = |path: &'static str, old: &'static str, new: &'static str| {
        run(
            dir.path(),
            "edit_file",
            json!({"path": path, "old_string": old, "new_string": new}),
        )
    };
    let none = "old_string was not found in a; read the file and copy the text exactly";
    assert_eq!(edit("a", "z", "q").await.failed(), none);
    let several = "old_string stands 2 times in a (lines 1, 3); add lines around it to make it unique, or set replace_all";
    assert_eq!(edit("a", "x = 1", "q").await.failed(), several);
    let spaces =
        "old_string was not found in a; the text at line 2 differs only in spaces, copy it exactly";
    assert_eq!(edit("a", "y\nx = 1", "q").await.failed(), spaces);
    assert_eq!(
        edit("a", "y", "y").await.failed(),
        "old_string and new_string are the same"
    );
    assert_eq!(
        edit("a", "", "q").await.failed(),
        "old_string is empty; a whole file is written with the tool for that"
    );
    assert_eq!(
        edit("bin", "x", "q").await.failed(),
        "bin is a binary file; it can't be edited as text"
    );
    assert_eq!(
        edit("none", "x", "q").await.failed(),
        "no such file or folder: none"
    );
    assert_eq!(
        get(dir.path(), "a"),
        b"x = 1\ny\n  x = 1\n",
        "a failed edit changes nothing"
    );

    let all = json!({"path": "a", "old_string": "x = 1", "new_string": "é", "replace_all": true});
    assert_eq!(
        run(dir.path(), "edit_file", all).await.ok(),
        "edited a (+2 −2)"
    );
    assert_eq!(get(dir.path(), "a"), "é\ny\n  é\n".as_bytes());
}

#[tokio::test]
async fn edits_at_the_same_time_lose_nothing() {
    let dir = project();
    let tools = toolbox(dir.path());
    put(
        dir.path(),
        "a",
        (0..20).map(|n| format!("<{n}>\n")).collect::<String>(),
    );
    let edits: Vec<_> = (0..20)
        .map(|n| {
            let tools = tools.clone();
            tokio::spawn(async move {
                let input = json!({"path": "a", "old_string": format!("<{n}>"), "new_string": format!("[{n}]")});
                call(&tools, "edit_file", input).await.ok()
            })
        })
        .collect();
    for edit in edits {
        edit.await.expect("an edit");
    }
    assert_eq!(
        get(dir.path(), "a"),
        (0..20)
            .map(|n| format!("[{n}]\n"))
            .collect::<String>()
            .as_bytes()
    );
}

// Paths

#[tokio::test]
async fn no_file_tool_leaves_the_project() {
    let dir = project();
    let root = dir.path().join("project");
    put(dir.path(), "secret.txt", "secret\n");
    fs::create_dir(&root).expect("a folder");
    symlink(dir.path(), root.join("up")).expect("link");
    symlink("../new.txt", root.join("dangling")).expect("link");
    for path in [
        "../secret.txt",
        "up/secret.txt",
        "up/new.txt",
        "dangling",
        "a/../../new.txt",
        "/etc/hostname",
    ] {
        for (tool, input) in [
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "x"})),
            (
                "edit_file",
                json!({"path": path, "old_string": "secret", "new_string": "x"}),
            ),
            ("list_dir", json!({"path": path})),
            ("search", json!({"path": path, "pattern": "secret"})),
        ] {
            let text = run(&root, tool, input).await.failed();
            assert!(
                text.starts_with(&format!("path is outside the project: {path} (")),
                "{tool} {path}: {text}"
            );
        }
    }
    assert_eq!(names(dir.path()), ["project", "secret.txt"]);
    assert_eq!(get(dir.path(), "secret.txt"), b"secret\n");
    // A search through the project doesn't follow the link either.
    assert_eq!(
        run(&root, "search", json!({"pattern": "secret"}))
            .await
            .ok(),
        "no matches"
    );

    let mut open = config(&root);
    open.allow_outside = true;
    let tools = Toolbox::new(open).expect("tools");
    assert_eq!(
        call(&tools, "read_file", json!({"path": "../secret.txt"}))
            .await
            .ok(),
        "    1 secret\n"
    );
}

// list_dir

#[tokio::test]
async fn list_is_sorted_marked_and_bounded() {
    let dir = project();
    assert_eq!(
        run(dir.path(), "list_dir", json!({})).await.ok(),
        "[empty folder]"
    );
    put(dir.path(), "b/inner", "");
    put(dir.path(), "a.txt", "");
    put(dir.path(), ".hidden", "");
    put(dir.path(), "ä\nx", "");
    symlink("b", dir.path().join("c")).expect("link");
    let text = run(dir.path(), "list_dir", json!({"path": "."})).await.ok();
    assert_eq!(text, ".hidden\na.txt\nb/\nc@\nä\\nx");
    assert_eq!(
        run(dir.path(), "list_dir", json!({"path": "c"})).await.ok(),
        "inner"
    );
    assert_eq!(
        run(dir.path(), "list_dir", json!({"path": "a.txt"}))
            .await
            .failed(),
        "a.txt is a file, not a folder"
    );
    assert_eq!(
        run(dir.path(), "list_dir", json!({"path": "q"}))
            .await
            .failed(),
        "no such file or folder: q"
    );
    for n in 0..1001 {
        put(dir.path(), &format!("many/{n:04}"), "");
    }
    let text = run(dir.path(), "list_dir", json!({"path": "many"}))
        .await
        .ok();
    assert!(
        text.starts_with("0000\n0001\n")
            && text.ends_with("\n0999\n[... 1 more entries left out ...]")
    );
}

// search

#[tokio::test]
async fn search_finds_lines_and_respects_ignore_files() {
    let dir = project();
    put(dir.path(), "a.txt", "hi there\nno\nHI\n");
    put(dir.path(), "src/b.rs", "// hi\r\n");
    put(dir.path(), "src/deep/c.rs", "hi.");
    put(dir.path(), "target/out.txt", "hi\n");
    put(dir.path(), ".git/config", "hi\n");
    put(dir.path(), ".github/x.yml", "hi\n");
    put(dir.path(), ".gitignore", "/target\n");
    put(dir.path(), "bin", b"hi\n\0");
    let search = |input: Value| run(dir.path(), "search", input);

    let all = ".github/x.yml:1: hi\na.txt:1: hi there\nsrc/b.rs:1: // hi\nsrc/deep/c.rs:1: hi.\n\
               [binary files not searched: 1]\n";
    assert_eq!(search(json!({"pattern": "hi"})).await.ok(), all);
    assert_eq!(
        search(json!({"pattern": "^hi$", "ignore_case": true, "path": "a.txt"}))
            .await
            .ok(),
        "a.txt:3: HI\n"
    );
    assert_eq!(
        search(json!({"pattern": "// hi$"}))
            .await
            .ok()
            .lines()
            .next(),
        Some("src/b.rs:1: // hi"),
        "CRLF"
    );
    let rs = "src/b.rs:1: // hi\nsrc/deep/c.rs:1: hi.\n";
    assert_eq!(
        search(json!({"pattern": "hi", "glob": "*.rs"})).await.ok(),
        rs
    );
    assert_eq!(
        search(json!({"pattern": "hi", "glob": "src/*.rs"}))
            .await
            .ok(),
        "src/b.rs:1: // hi\n"
    );
    assert_eq!(
        search(json!({"pattern": "hi", "glob": "src/**/*.rs"}))
            .await
            .ok(),
        rs
    );
    assert_eq!(
        search(json!({"pattern": "hi", "glob": "out.txt"}))
            .await
            .ok(),
        "no matches",
        "ignored in any case"
    );
    assert_eq!(
        search(json!({"pattern": "hi.", "literal": true, "path": "src"}))
            .await
            .ok(),
        "src/deep/c.rs:1: hi.\n"
    );
    assert!(
        search(json!({"pattern": "("}))
            .await
            .failed()
            .starts_with("the pattern is no valid regular expression: ")
    );
    assert!(
        search(json!({"pattern": "x", "glob": "["}))
            .await
            .failed()
            .starts_with("the glob is not valid: ")
    );
    assert_eq!(
        search(json!({"pattern": "x", "path": "q"})).await.failed(),
        "no such file or folder: q"
    );
}

#[tokio::test]
async fn search_is_bounded_and_counts_what_it_left_out() {
    let dir = project();
    put(dir.path(), "a", "hit\n".repeat(150));
    put(dir.path(), "b", "hit\n".repeat(100));
    put(dir.path(), "c", "hit\n".repeat(7));
    let ended = run(dir.path(), "search", json!({"pattern": "hit"})).await;
    assert_eq!(ended.meta("matches"), Some("257"));
    assert!(ended.show.as_ref().expect("facts").truncated);
    let text = ended.ok();
    assert_eq!(text.matches(": hit\n").count(), 200);
    assert!(
        text.ends_with("b:50: hit\n[... 57 more matching lines in 2 files left out ...]\n"),
        "{text}"
    );
    // Exactly the bound is complete.
    fs::remove_file(dir.path().join("c")).expect("removed");
    put(dir.path(), "b", "hit\n".repeat(50));
    let ended = run(dir.path(), "search", json!({"pattern": "hit"})).await;
    assert!(!ended.show.as_ref().expect("facts").truncated);
    assert!(ended.ok().ends_with("b:50: hit\n"));
}

#[tokio::test]
async fn search_shows_a_long_line_around_its_match() {
    let dir = project();
    put(
        dir.path(),
        "min.js",
        format!("{}needle{}\n", "é".repeat(5000), "b".repeat(5000)),
    );
    let text = run(dir.path(), "search", json!({"pattern": "needle"}))
        .await
        .ok();
    assert!(
        text.starts_with("min.js:1: ... ") && text.ends_with("b ...\n"),
        "{text}"
    );
    assert!(
        text.contains("éneedleb") && text.len() < 500 && !text.contains('\u{fffd}'),
        "{text}"
    );
}

// Calls

#[tokio::test]
async fn bad_calls_get_clear_answers() {
    let dir = project();
    let ended = run(dir.path(), "frobnicate", json!({})).await;
    assert_eq!(ended.outcome, ToolOutcome::NotFound);
    let names = "read_file, write_file, edit_file, list_dir, search, bash";
    assert_eq!(
        ended.text,
        format!("unknown tool \"frobnicate\"; available tools: {names}")
    );
    for tool in names.split(", ").filter(|tool| *tool != "list_dir") {
        let ended = run(dir.path(), tool, json!({})).await;
        assert_eq!(ended.outcome, ToolOutcome::Invalid, "{tool}");
        assert!(
            ended
                .text
                .starts_with(&format!("invalid arguments for {tool}: missing field ")),
            "{}",
            ended.text
        );
    }
}

#[tokio::test]
async fn a_call_cancelled_before_it_starts_does_nothing() {
    let dir = project();
    let tools = toolbox(dir.path());
    let cancel = CancelToken::new();
    cancel.cancel();
    for (tool, input) in [
        ("write_file", json!({"path": "a", "content": "x"})),
        ("search", json!({"pattern": "x"})),
        ("bash", json!({"command": "touch a"})),
    ] {
        let ended = call_until(&tools, tool, input, cancel.clone()).await;
        assert_eq!(ended.outcome, ToolOutcome::Cancelled, "{tool}");
    }
    assert!(names(dir.path()).is_empty());
}

#[tokio::test]
async fn the_changed_file_is_told_before_the_end() {
    let dir = project();
    let offered = toolbox(dir.path());
    let seen = std::sync::Mutex::new(0);
    let input = json!({"path": "a", "content": "x"}).to_string();
    let done = tools::run(
        &offered,
        "write_file",
        &input,
        CancelToken::new(),
        |update| {
            assert!(matches!(update, ToolUpdate::FileChanged { .. }));
            *seen.lock().expect("a lock") += 1;
        },
    )
    .await;
    assert!(matches!(
        done,
        ToolUpdate::Done {
            outcome: ToolOutcome::Ok,
            ..
        }
    ));
    assert_eq!(seen.into_inner().expect("a lock"), 1);
}

#[test]
fn a_root_that_is_no_folder_is_refused() {
    let dir = project();
    let error = Toolbox::new(config(&dir.path().join("none")))
        .expect_err("refused")
        .to_string();
    assert!(
        error.starts_with("can't use project folder ")
            && error.ends_with("/none: no such file or directory"),
        "{error}"
    );
}
