//! Every recording of the real program, heard by the Client: the neutral stream keeps its laws, and a Server makes the
//! same lines of it again.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::client_kit;

use client_kit::transcript::{Row, all};
use client_kit::{Out, Rig, own};
use turnwire::frame::LineSplitter;
use turnwire::json::Members;
use turnwire::protocol::openmax::wire::{AgentLine, Approve, EventLine, HostLine, User};
use turnwire::protocol::openmax::{ClientConfig, Openmax, ServerConfig};
use turnwire::protocol::{Client, Protocol, Server, ServerOutput};
use turnwire::vocab::laws::{Checker, Scope};
use turnwire::vocab::*;

fn wire5() -> ClientConfig {
    ClientConfig {
        wire: 5,
        ..ClientConfig::default()
    }
}

/// The commands that a host of ours would give for these bytes.
fn commands(rig: &mut Rig, approvals: &[String], bytes: &[u8]) {
    let mut members = Members::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        match HostLine::decode(line, &mut members) {
            Ok(HostLine::User(User { text })) => drop(rig.user(&text)),
            Ok(HostLine::Approve(Approve {
                approval_id,
                approved,
            })) => {
                let Some(at) = approvals.iter().position(|id| *id == approval_id) else {
                    continue;
                };
                let reply = if approved {
                    Reply::Allow {
                        input: None,
                        updates: vec![],
                    }
                } else {
                    Reply::Deny {
                        message: None,
                        interrupt: false,
                    }
                };
                rig.command(Command::Reply {
                    ask: AskId(at as u64 + 1),
                    reply: Ok(reply),
                });
            }
            Ok(HostLine::ApprovalMode(line)) => {
                let mode = match line.mode.trim() {
                    "auto" => ApprovalMode::Auto,
                    "ask" => ApprovalMode::Ask,
                    "readonly" => ApprovalMode::ReadOnly,
                    _ => continue,
                };
                rig.command(Command::Set(Setting::Approvals(mode)));
            }
            Ok(HostLine::Reload) => drop(rig.command(Command::Reload)),
            Ok(HostLine::Cancel) => drop(rig.cancel(QueueFate::Drop)),
            Ok(HostLine::Quit) => drop(rig.command(Command::Close { drain: true })),
            Ok(HostLine::Unknown { .. }) | Err(_) => {}
        }
    }
}

fn heard(rows: &[Row]) -> Rig {
    let mut rig = Rig::new(ClientConfig {
        follow: true,
        ..wire5()
    });
    let mut approvals = Vec::new();
    let start = rig.now.mono_us;
    for row in rows {
        let (Row::Host(at, _) | Row::HostEnd(at) | Row::Agent(at, _) | Row::Exit(at)) = row;
        let until = start + at * 1_000;
        if until > rig.now.mono_us {
            rig.pass_ms((until - rig.now.mono_us) / 1_000);
        }
        match row {
            Row::Host(_, bytes) => commands(&mut rig, &approvals, bytes),
            Row::HostEnd(_) => drop(rig.command(Command::Close { drain: true })),
            Row::Agent(_, line) => {
                if let Ok(AgentLine::Event {
                    event: EventLine::ApprovalRequest(request),
                    ..
                }) = AgentLine::decode(line.as_bytes(), &mut Members::new())
                {
                    approvals.push(request.approval_id.into_owned());
                }
                rig.agent(line);
            }
            Row::Exit(_) => rig.end(),
        }
    }
    rig
}

/// The laws are watched by the rig. What it finds beside them is what the recordings are known for.
#[test]
fn every_recording_gives_a_lawful_stream() {
    for (name, rows) in all() {
        let rig = heard(&rows);
        assert_eq!(rig.out.last(), Some(&Out::Closed), "{name}");
        let findings: Vec<&str> = rig
            .out
            .iter()
            .filter_map(|out| match out {
                Out::Finding(finding) => Some(&*finding.text),
                _ => None,
            })
            .collect();
        for finding in findings {
            let known = match &*name {
                // Host lines that a Client never writes, or refuses by itself, were answered.
                _ if finding.starts_with("a protocol_error that answers nothing") => true,
                "stream_error_finish_reason_error" => finding.contains("without an error line"),
                _ => false,
            };
            assert!(known, "{name}: {finding}");
        }
    }
}

/// Types of the lines of turns, runs of deltas joined; answers and notes left out.
fn types<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut types: Vec<String> = Vec::new();
    let mut members = Members::new();
    for line in lines {
        let line = AgentLine::decode(line.as_bytes(), &mut members).unwrap();
        let label = match &line {
            AgentLine::ProtocolError(_) | AgentLine::ModeSet(_) => continue,
            AgentLine::Event { event, .. } => match event {
                EventLine::HarnessNote(_) => continue,
                EventLine::Token(_) => "token*".into(),
                EventLine::Thinking(_) => "thinking*".into(),
                EventLine::Done(done) => format!("done({})", done.stop_reason),
                EventLine::ToolStart(call) => format!("tool_start({})", call.name),
                EventLine::ToolEnd(call) => format!("tool_end({})", call.ok),
                EventLine::ApprovalSettled(settled) => format!("settled({})", settled.outcome),
                EventLine::MessageDone(done) => format!("message_done({:?})", done.text),
                EventLine::Usage(usage) => format!(
                    "usage({},{},{:?})",
                    usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens
                ),
                EventLine::Error(error) => format!("error({})", error.message),
                other => other.kind().into(),
            },
            other => other.kind().into(),
        };
        if !(label.ends_with('*') && types.last() == Some(&label)) {
            types.push(label);
        }
    }
    types
}

/// A Server in front of a Client, with the recorded agent behind it.
struct Bridge {
    server: Server<Openmax>,
    client: Client<Openmax>,
    host: LineSplitter,
    agent: LineSplitter,
    now: Now,
    to_host: Vec<u8>,
    to_agent: Vec<u8>,
    checker: Checker,
}

impl Bridge {
    fn drain(&mut self) {
        loop {
            let mut quiet = true;
            while let Some(output) = self.server.poll_output(&mut self.to_host) {
                quiet = false;
                if let ServerOutput::Call(call) = output {
                    self.checker.command(&call);
                    self.client.handle_command(call, self.now);
                }
            }
            while let Some(output) = self.client.poll_output(&mut self.to_agent) {
                quiet = false;
                match own(&output) {
                    Out::Event(event) => {
                        self.checker.event(&event);
                        self.server.handle_event(&event);
                    }
                    Out::Extra(extra) => self.server.handle_extra(extra, self.now),
                    _ => {}
                }
            }
            if quiet {
                break;
            }
        }
        assert_eq!(self.checker.violations(), []);
    }

    fn until(&mut self, at_us: u64) {
        loop {
            let due = Due::earliest(self.server.poll_timeout(), self.client.poll_timeout());
            let Some(due) = due.filter(|due| due.at_us <= at_us) else {
                break;
            };
            self.now.mono_us = self.now.mono_us.max(due.at_us);
            self.server.handle_woken(self.now);
            self.client.handle_woken(self.now);
            self.drain();
        }
        self.now.mono_us = self.now.mono_us.max(at_us);
    }
}

#[test]
fn client_and_server_make_the_same_lines_again() {
    let mut same = 0;
    for (name, rows) in all() {
        let mut bridge = Bridge {
            server: Server::new(ServerConfig::new("0.2.0".into(), [7; 32])),
            client: Client::new(wire5()),
            host: LineSplitter::new(Openmax::host_line_rules()),
            agent: LineSplitter::new(Openmax::agent_line_rules()),
            now: Now::default(),
            to_host: Vec::new(),
            to_agent: Vec::new(),
            checker: Checker::new(Scope::Any),
        };
        let mut approvals: Vec<String> = Vec::new();
        for row in &rows {
            let (Row::Host(at, _) | Row::HostEnd(at) | Row::Agent(at, _) | Row::Exit(at)) = row;
            bridge.until(at * 1_000);
            let now = bridge.now;
            match row {
                Row::Host(_, bytes) => {
                    // The host answers with the ids that it was told.
                    let ours = approval_ids(&bridge.to_host);
                    let mut told = bytes.clone();
                    for (recorded, ours) in approvals.iter().zip(&ours) {
                        if let Ok(text) = std::str::from_utf8(&told) {
                            told = text.replace(recorded.as_str(), ours).into_bytes();
                        }
                    }
                    let mut chunk = told.as_slice();
                    while let Some(line) = bridge.host.next(&mut chunk) {
                        bridge.server.handle_line(line, now);
                    }
                }
                Row::HostEnd(_) => bridge.server.handle_end(now),
                // The Server refuses these lines of the host by itself; the recorded agent's answers to them aren't heard.
                Row::Agent(_, line)
                    if [
                        "a turn is in flight",
                        "user text is empty",
                        "bad command line",
                    ]
                    .iter()
                    .any(|text| line.contains(&format!("\"message\":\"{text}"))) => {}
                Row::Agent(_, line) => {
                    approvals.extend(approval_ids(format!("{line}\n").as_bytes()));
                    let bytes = format!("{line}\n");
                    let mut chunk = bytes.as_bytes();
                    while let Some(line) = bridge.agent.next(&mut chunk) {
                        bridge.client.handle_line(line, now);
                    }
                }
                Row::Exit(_) => bridge.client.handle_end(now),
            }
            bridge.drain();
        }
        let recorded = rows.iter().filter_map(|row| match row {
            Row::Agent(_, line) => Some(line.as_str()),
            _ => None,
        });
        let made = std::str::from_utf8(&bridge.to_host).unwrap();
        let (recorded, mut made) = (types(recorded), types(made.lines()));
        if name == "sigterm_mid_turn" {
            // The old program died without a word; the host of ours is told.
            assert_eq!(
                made.split_off(recorded.len()).last().unwrap(),
                "done(error)"
            );
        }
        if name == "stream_error_finish_reason_error" {
            // The old wire had no error line before a provider's own word `error`; /6 has one always.
            made.retain(|label| !label.starts_with("error("));
        }
        assert_eq!(made, recorded, "{name}");
        same += 1;
    }
    assert!(same >= 84);
}

fn approval_ids(lines: &[u8]) -> Vec<String> {
    let mut members = Members::new();
    let mut ids = Vec::new();
    for line in lines.split(|byte| *byte == b'\n') {
        if let Ok(AgentLine::Event {
            event: EventLine::ApprovalRequest(request),
            ..
        }) = AgentLine::decode(line, &mut members)
        {
            ids.push(request.approval_id.into_owned());
        }
    }
    ids
}
