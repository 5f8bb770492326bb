//! An observer between a host and an agent, fed with bytes as they go by.
//!
//! It only listens. What it found is kept, with the lines around it for a message
//! that can be read; nothing here panics.

use std::collections::VecDeque;
use std::fmt;

use turnwire::frame::{LineRules, LineSplitter, OverLong, Split, SplitKind, Tail};
use turnwire::protocol::observer::{Dir, Finding, Observed, Observer, Severity, Sides, Watch};

/// How many lines are kept for a message.
const KEPT: usize = 40;
/// How much of each.
const SHOWN: usize = 400;

/// An [`Observer`] of both directions, with the framing of each.
pub struct Wiretap<P: Observed> {
    observer: Observer<P>,
    host: LineSplitter,
    agent: LineSplitter,
    /// Findings of no weight, and all others, in order.
    found: Vec<Finding>,
    last: VecDeque<String>,
    /// The lines before the first finding of weight.
    story: Option<String>,
}

/// How the host's bytes are cut: as every one of the protocols does.
fn host_rules<P: Observed>() -> LineRules {
    LineRules {
        max_bytes: P::HOST_LINE_MAX,
        over: OverLong::Skip,
        tail: Tail::Deliver,
    }
}

impl<P: Observed> Wiretap<P> {
    /// One that hears from the first byte of both.
    pub fn new(config: <P::Watch as Watch>::Config) -> Self {
        // The observer judges the length of lines itself.
        let whole = LineRules {
            max_bytes: usize::MAX,
            over: OverLong::Skip,
            tail: Tail::Deliver,
        };
        Self {
            observer: Observer::new(config, Sides::Both),
            host: LineSplitter::new(host_rules::<P>()),
            agent: LineSplitter::new(whole),
            found: Vec::new(),
            last: VecDeque::new(),
            story: None,
        }
    }

    /// The host wrote these bytes. Tell this before the agent can have read them.
    pub fn host(&mut self, bytes: &[u8]) {
        let mut splitter = std::mem::replace(&mut self.host, LineSplitter::new(host_rules::<P>()));
        let mut chunk = bytes;
        while let Some(line) = splitter.next(&mut chunk) {
            self.line(Dir::Host, line);
        }
        self.host = splitter;
    }

    /// The agent wrote these bytes.
    pub fn agent(&mut self, bytes: &[u8]) {
        let mut splitter = std::mem::replace(&mut self.agent, LineSplitter::new(host_rules::<P>()));
        let mut chunk = bytes;
        while let Some(line) = splitter.next(&mut chunk) {
            self.line(Dir::Agent, line);
        }
        self.agent = splitter;
    }

    /// One line, where somebody else has split the bytes.
    pub fn line(&mut self, dir: Dir, line: Split<'_>) {
        if let SplitKind::Line(text) | SplitKind::Tail(text) = line.what {
            let shown = text.get(..SHOWN).unwrap_or(text);
            let mark = match dir {
                Dir::Host => '>',
                Dir::Agent => '<',
            };
            if self.last.len() == KEPT {
                self.last.pop_front();
            }
            self.last
                .push_back(format!("{mark} {}", String::from_utf8_lossy(shown)));
        }
        self.observer.handle_line(dir, line);
        self.judge();
    }

    /// One side has closed its end.
    pub fn end(&mut self, dir: Dir) {
        let splitter = match dir {
            Dir::Host => &mut self.host,
            Dir::Agent => &mut self.agent,
        };
        let mut splitter = std::mem::replace(splitter, LineSplitter::new(host_rules::<P>()));
        if let Some(tail) = splitter.finish() {
            self.line(dir, tail);
        }
        self.observer.handle_end(dir);
        self.judge();
    }

    /// The agent's process has left, with this code or, if it is negative, by a signal: nothing more comes.
    pub fn exit(&mut self, code: i64) {
        self.observer.handle_exit(code);
        self.observer.finish();
        self.judge();
    }

    /// Everything found so far.
    pub fn found(&self) -> &[Finding] {
        &self.found
    }

    /// What was found of weight, a warning or worse, but for these rules: the lines, and a line for each. `None` if
    /// the contract was kept.
    pub fn breach(&self, excused: &[&str]) -> Option<String> {
        let weighty = self.found.iter().filter(|finding| {
            finding.severity >= Severity::Warning && !excused.contains(&finding.rule.id)
        });
        let lines: Vec<String> = weighty.map(Finding::to_string).collect();
        let story = self.story.as_deref().unwrap_or_default();
        (!lines.is_empty()).then(|| format!("{story}\n{}", lines.join("\n")))
    }

    fn judge(&mut self) {
        while let Some(finding) = self.observer.poll_finding() {
            if finding.severity >= Severity::Warning && self.story.is_none() {
                let lines: Vec<&str> = self.last.iter().map(String::as_str).collect();
                self.story = Some(lines.join("\n"));
            }
            self.found.push(finding);
        }
    }
}

impl<P: Observed> fmt::Debug for Wiretap<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wiretap")
            .field("found", &self.found)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire::protocol::openmax::{ObserverConfig, Openmax};

    const HELLO: &str = "{\"type\":\"hello\",\"proto\":\"openmax-stdio/6\",\"protocol_version\":6,\"session_id\":\"s\",\"version\":\"1\",\"project\":\"/p\",\"continued\":false}\n";

    #[test]
    fn a_kept_contract_is_no_breach_however_the_bytes_are_cut() {
        let mut tap = Wiretap::<Openmax>::new(ObserverConfig::default());
        for byte in HELLO.bytes() {
            tap.agent(&[byte]);
        }
        tap.host(b"{\"cmd\":\"us");
        tap.host(b"er\",\"text\":\"hi\"}\n");
        tap.agent(b"{\"session_id\":\"s\",\"type\":\"budget\",\"used_tokens\":1,\"context_tokens\":9}\n{\"session_id\":\"s\",\"type\":\"message_done\",\"text\":\"\"}\n{\"session_id\":\"s\",\"type\":\"done\",\"stop_reason\":\"stop\"}\n");
        tap.end(Dir::Host);
        tap.end(Dir::Agent);
        tap.exit(0);
        assert_eq!(tap.breach(&[]), None, "{tap:?}");
    }

    #[test]
    fn a_breach_is_told_with_the_lines_before_it_unless_it_is_excused() {
        let mut tap = Wiretap::<Openmax>::new(ObserverConfig::default());
        tap.agent(HELLO.as_bytes());
        tap.agent(b"{\"session_id\":\"s\",\"type\":\"done\",\"stop_reason\":\"stop\"}");
        assert_eq!(tap.breach(&[]), None, "half a line says nothing yet");
        tap.end(Dir::Agent);
        tap.exit(7);
        let breach = tap.breach(&[]).unwrap();
        assert!(breach.starts_with("< {\"type\":\"hello\""), "{breach}");
        assert!(
            breach.contains("OM-17.a") && breach.contains("OM-25.a"),
            "{breach}"
        );
        let rest = tap.breach(&["OM-17.a", "OM-17.c", "OM-12.a", "OM-25.a"]);
        assert_eq!(rest, None);
    }
}
