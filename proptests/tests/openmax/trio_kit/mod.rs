//! A Client, a Server and a real session in memory, with the observer between the two: what a host asks for in neutral
//! words goes over the wire, and what the session says comes back.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use turnwire::protocol::openmax::ClientConfig;
use turnwire::vocab::*;

use crate::client_kit::{self, Out, Rig};
use crate::openmax_kit::duo::{Duo, session_config};

/// A host's Client, and the agent that it drives.
pub struct Trio {
    pub rig: Rig,
    pub duo: Duo,
    /// Agent lines that the Client has heard.
    heard: usize,
    /// Outputs of the Client that were looked at.
    looked: usize,
    pub ended: bool,
}

impl Trio {
    pub fn new(mode: ApprovalMode) -> Self {
        Self::with(session_config(mode))
    }

    pub fn with(config: turnwire::session::SessionConfig) -> Self {
        Self::of(Duo::new(config))
    }

    /// A host that has just started this agent.
    pub fn of(duo: Duo) -> Self {
        let mut trio = Trio {
            rig: Rig::new(ClientConfig::default()),
            duo,
            heard: 0,
            looked: 0,
            ended: false,
        };
        trio.rig.joins = false;
        trio.pump();
        trio
    }

    /// Carries lines both ways until both are quiet.
    pub fn pump(&mut self) {
        loop {
            let mut quiet = true;
            while let Some(line) = self.duo.all_lines.get(self.heard).cloned() {
                quiet = false;
                self.heard += 1;
                self.rig.now = self.duo.now;
                self.rig.agent(&line);
            }
            if self.duo.exit.is_some() && !self.ended {
                self.ended = true;
                self.rig.now = self.duo.now;
                self.rig.end();
            }
            while let Some(out) = self.rig.out.get(self.looked).cloned() {
                self.looked += 1;
                match out {
                    Out::Lines(bytes) => {
                        quiet = false;
                        for line in String::from_utf8(bytes).unwrap().lines() {
                            self.duo.host(line);
                        }
                    }
                    Out::CloseInput => {
                        quiet = false;
                        self.duo.host_end();
                    }
                    Out::Signal(signal) => {
                        quiet = false;
                        self.duo.signal(signal);
                    }
                    Out::Finding(finding) => panic!("{finding:?}"),
                    _ => {}
                }
            }
            if quiet {
                break;
            }
        }
    }

    pub fn agent(&mut self, what: impl FnOnce(&mut Duo)) {
        what(&mut self.duo);
        self.pump();
    }

    pub fn host(&mut self, what: impl FnOnce(&mut Rig) -> CommandId) -> CommandId {
        self.rig.now = self.duo.now;
        let id = what(&mut self.rig);
        self.pump();
        id
    }

    pub fn user(&mut self, text: &str) -> CommandId {
        self.host(|rig| rig.user(text))
    }

    pub fn pass_ms(&mut self, ms: u64) {
        self.agent(|duo| duo.pass_ms(ms));
        let now = self.duo.now;
        self.rig.now = now;
        self.rig.pass_ms(0);
        self.pump();
    }

    pub fn reply(&mut self, allow: bool) -> CommandId {
        let ask = self.rig.out.iter().rev().find_map(|out| match out {
            Out::Event(Event {
                what: What::Asked { ask, .. },
                ..
            }) => Some(*ask),
            _ => None,
        });
        let reply = if allow {
            Ok(Reply::Allow {
                input: None,
                updates: vec![],
            })
        } else {
            Ok(Reply::Deny {
                message: None,
                interrupt: false,
            })
        };
        let ask = ask.unwrap_or(AskId(1));
        self.host(|rig| rig.command(Command::Reply { ask, reply }))
    }

    /// The ends of the prompts so far.
    pub fn ends(&self) -> Vec<End> {
        let ends = self.rig.out.iter().filter_map(|out| match out {
            Out::Event(Event {
                what: What::PromptEnded { end, .. },
                ..
            }) => Some(end.clone()),
            _ => None,
        });
        ends.collect()
    }

    /// The end of the last prompt, in one word.
    pub fn end(&self) -> String {
        let end = format!("{:?}", self.ends().last().expect("a prompt ended"));
        end.split([' ', '(', '{']).next().unwrap().to_owned()
    }

    /// Whether these events came in a row.
    pub fn has(&self, shorthand: &str) -> bool {
        client_kit::text::events(&self.rig.out).contains(shorthand)
    }
}
