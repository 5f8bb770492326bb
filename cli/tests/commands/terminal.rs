//! `turnwire drive` at a terminal: a pseudo-terminal, with the test as the person.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::kit::{PATIENCE, Place};

const WRITE: &str = r#"
reply when step 1
  call write_file {"path": "out.txt", "content": "one\n"}
reply
  say: Done.
"#;

/// A program at a terminal.
struct Terminal {
    child: Child,
    keyboard: File,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn start(mut command: Command) -> Terminal {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let open = || {
            let path = name.to_str().unwrap();
            Stdio::from(File::options().read(true).write(true).open(path).unwrap())
        };
        command
            .env("TERM", "xterm")
            .stdin(open())
            .stdout(open())
            .stderr(open());
        let child = command.spawn().unwrap();
        drop(command);
        let keyboard = File::from(ours);
        let mut screen = keyboard.try_clone().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let copy = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut chunk) {
                copy.lock().unwrap().extend_from_slice(&chunk[..count]);
            }
        });
        Terminal {
            child,
            keyboard,
            seen,
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    #[track_caller]
    fn see(&self, part: &str, times: usize) {
        let begun = Instant::now();
        while self.text().matches(part).count() < times {
            assert!(begun.elapsed() < PATIENCE, "no {part:?}: {}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn type_line(&mut self, text: &str) {
        writeln!(self.keyboard, "{text}").unwrap();
    }

    #[track_caller]
    fn end(&mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "it doesn't end: {}",
                self.text()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_person_approves_or_declines_and_is_asked_until_it_is_clear() {
    for (answer, file, mark) in [("y", Some("one\n"), "✓"), ("n", None, "✗")] {
        let place = Place::new();
        let mut terminal = Terminal::start(place.drive(WRITE, &["x"], "ask"));
        terminal.see("Run it? [y/n]", 1);
        terminal.type_line("perhaps");
        terminal.see("Run it? [y/n]", 2);
        terminal.type_line(answer);
        terminal.see("finished: stop", 1);
        assert_eq!(terminal.end(), Some(0), "{}", terminal.text());
        assert!(terminal.text().contains(mark), "{}", terminal.text());
        assert_eq!(place.read("out.txt").as_deref(), file);
    }
}

/// An agent that asks for the approval of code that nobody has seen.
const AGENT: &str = r#"echo '{"type":"hello","proto":"openmax-stdio/6","protocol_version":6,"session_id":"s","version":"1","project":"/p","continued":false}'
read -r user
echo '{"session_id":"s","type":"budget","used_tokens":1,"context_tokens":9}'
echo '{"session_id":"s","type":"message_done","text":""}'
echo '{"session_id":"s","type":"tool_start","call_id":"c","name":"deploy","args":{}}'
echo '{"session_id":"s","type":"approval_request","approval_id":"a","name":"deploy","summary":"deploy","detail":"","reason":"unapproved_source","source_path":"t.toml","source_sha":"0123456789ab"}'
read -r approve
echo "$approve" >approve
echo '{"session_id":"s","type":"approval_settled","approval_id":"a","outcome":"'$SAYS'"}'
echo '{"session_id":"s","type":"tool_end","call_id":"c","ok":false,"output":"-"}'
echo '{"session_id":"s","type":"done","stop_reason":"stop"}'
read -r quit
"#;

#[test]
fn om_15_unapproved_code_needs_the_whole_word() {
    // The last agent declines what was approved; that it contradicts the person keeps nobody waiting for ever.
    for (answer, approved, says) in [
        ("y", "false", "declined"),
        ("yes", "true", "approved"),
        ("yes", "true", "declined"),
    ] {
        let place = Place::new();
        let script = format!("SAYS={says}\n{AGENT}");
        let mut terminal = Terminal::start(place.shell(&["x"], &script));
        terminal.see("Type yes to run it", 1);
        terminal.type_line(answer);
        assert_eq!(terminal.end(), Some(0), "{}", terminal.text());
        let line = place.read("approve").unwrap();
        assert!(line.contains(&format!("\"approved\":{approved}")), "{line}");
        assert!(terminal.text().contains("source: t.toml"));
    }
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    for (variable, coloured) in [("UNUSED", true), ("NO_COLOR", false)] {
        let place = Place::new();
        let mut command = place.drive(WRITE, &["x"], "auto");
        command.env(variable, "1");
        let mut terminal = Terminal::start(command);
        assert_eq!(terminal.end(), Some(0), "{}", terminal.text());
        terminal.see("finished: stop", 1);
        assert_eq!(
            terminal.text().contains("\x1b[3"),
            coloured,
            "{variable}: {:?}",
            terminal.text()
        );
    }
}
