//! The observer between a host and a Server: what the Server writes never breaks the contract, whatever else happens.

use turnwire::frame::{Place, Split, SplitKind};
use turnwire::protocol::observer::{Dir, Finding, Observer, Severity, Sides};
use turnwire::protocol::openmax::{ObserverConfig, Openmax};

/// An observer of both directions that fails the test on a finding of weight.
#[derive(Debug)]
pub struct Watched {
    observer: Observer<Openmax>,
    lines: u64,
    offset: u64,
    /// Findings of no weight.
    pub found: Vec<Finding>,
    /// The last lines, for a message that can be read.
    last: Vec<String>,
}

impl Watched {
    pub fn new() -> Self {
        Watched {
            observer: Observer::new(ObserverConfig::default(), Sides::Both),
            lines: 0,
            offset: 0,
            found: Vec::new(),
            last: Vec::new(),
        }
    }

    pub fn host(&mut self, line: &Split<'_>) {
        if let SplitKind::Line(text) | SplitKind::Tail(text) = line.what {
            self.last
                .push(format!("> {}", String::from_utf8_lossy(text)));
        }
        self.observer.handle_line(Dir::Host, *line);
        self.judge();
    }

    pub fn agent(&mut self, bytes: &[u8]) {
        for line in bytes
            .strip_suffix(b"\n")
            .unwrap_or(bytes)
            .split(|&byte| byte == b'\n')
        {
            if bytes.is_empty() {
                continue;
            }
            self.lines += 1;
            let place = Place {
                line: self.lines,
                offset: self.offset,
            };
            self.offset += line.len() as u64 + 1;
            self.last
                .push(format!("< {}", String::from_utf8_lossy(line)));
            let what = SplitKind::Line(line);
            self.observer.handle_line(Dir::Agent, Split { place, what });
            self.judge();
        }
    }

    pub fn host_end(&mut self) {
        self.observer.handle_end(Dir::Host);
    }

    /// The process has left with this code: nothing more comes.
    pub fn exit(&mut self, code: u8) {
        self.observer.handle_exit(i64::from(code));
        self.observer.finish();
        self.judge();
    }

    fn judge(&mut self) {
        while let Some(finding) = self.observer.poll_finding() {
            let tail = self.last.len().saturating_sub(40);
            // A crash or a signal excuses this one.
            let excused = finding.rule.id == "OM-14.e";
            assert!(
                finding.severity < Severity::Warning || excused,
                "{}\n{finding}",
                self.last[tail..].join("\n")
            );
            self.found.push(finding);
        }
    }
}
