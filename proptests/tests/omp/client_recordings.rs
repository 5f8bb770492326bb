//! Every recording of the real program, heard by the Client: the neutral stream keeps its laws, says what happened, and
//! a Server of another protocol makes legal lines of it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::omp_client_kit;

use omp_client_kit::recorded::{Ids, Row, all, heard, named};
use omp_client_kit::{Out, Program, Rig, text};
use turnwire::frame::LineSplitter;
use turnwire::json::Members;
use turnwire::protocol::observer::Dir;
use turnwire::protocol::omp::ClientConfig;
use turnwire::protocol::omp::wire::{Command as Line, HostLine, Side, UiAnswer, host_text};
use turnwire::protocol::openmax::wire::{
    AgentLine as OpenmaxAgent, Approve, EventLine, HostLine as OpenmaxLine, User,
};
use turnwire::protocol::openmax::{ObserverConfig, Openmax, ServerConfig};
use turnwire::protocol::{Protocol, Server, ServerOutput};
use turnwire::vocab::*;
use turnwire_proptests::wiretap::Wiretap;

/// The laws are watched by the rig. What it finds beside them is what the recordings are known for.
#[test]
fn every_recording_gives_a_lawful_stream() {
    for (name, rows) in all() {
        let rig = heard(&name, &rows, ClientConfig::default());
        assert_eq!(rig.out.last(), Some(&Out::Closed), "{name}");
        for finding in rig.findings() {
            let known = match &*name {
                // Answers to lines that a Client never writes.
                _ if finding.contains("which nobody sent") => true,
                // Two commands of one id.
                "27-no-id-and-duplicate-id" => finding.starts_with("a second response"),
                "10-abort-during-tool" => finding.contains("isn't open, is dropped"),
                _ => false,
            };
            assert!(known, "{name}: {finding}");
        }
        let asked = rig.told.iter().filter_map(|(input, _)| match input {
            turnwire_proptests::laws::ClientInput::Call(call) => Some(call.id),
            _ => None,
        });
        for command in asked {
            assert!(rig.replied(command).is_some(), "{name}: {command:?}");
        }
    }
}

/// What a recording came to, without the lines of this protocol's own, the looks at the state, and the end.
fn told(name: &str) -> String {
    let rig = heard(name, &named(name), ClientConfig::default());
    let text = text::events(&rig.out);
    let (_, text) = text.split_once("Changed ").unwrap();
    let end = text.find(" CloseInput").unwrap();
    let (head, tail) = text.split_at(end);
    let head = head.rsplit_once(" R(").unwrap().0;
    let words = head.split(' ').chain(tail.split(' ').skip(2));
    let words = words.filter(|word| !word.is_empty() && !word.starts_with("x("));
    words.collect::<Vec<_>>().join(" ")
}

const TEXT: &str = "m+ b+(text) d(text) b-(text) m-(End) Rq-(ok)";
const CALL: &str = "b+(tooluse) d(other) b-(tooluse) m-(ToolUse) Rq-(ok)";

#[test]
fn omp_03_a_text_turn() {
    assert_eq!(
        told("02"),
        format!(
            "R(1,Started) T+ S+ Ap(1) M(user) Rq {TEXT} S- T-(Finished) P-(1,Finished) Set Closed(HostGone) Gone"
        )
    );
}

#[test]
fn omp_03_thinking_comes_before_text() {
    assert!(told("03").contains("Rq m+ b+(thinking) d(thinking) b-(thinking) b+(text) d(text) b-(text) m-(End) Rq-(ok) S- T-(Finished)"));
}

#[test]
fn omp_06_two_tools_side_by_side() {
    assert!(told("05").contains("m-(ToolUse) Rq-(ok) t+(c1) t+(c2) ToolProgress ToolProgress ToolProgress t-(c2,Ok) ToolProgress t-(c1,Ok) S- S+ Rq"));
}

#[test]
fn omp_06_a_steer_goes_into_the_turn() {
    assert!(told("07").contains(&format!("d(text) R(2,Queued(Steer)) Q(2,Steer) R(3,Done) Changed Cx d(text) b-(text) m-(End) Rq-(ok) S- S+ Ap(2) M(user) Rq {TEXT} S- T-(Finished) P-(1,Finished) P-(2,Finished) Set")));
}

/// OMP-05: a prompt that doesn't say what becomes of it is accepted, and taken back by the next frame.
#[test]
fn omp_05_a_busy_prompt_is_refused_once() {
    let told = told("08");
    assert!(
        told.contains("R(4,Queued(FollowUp)) Q(4,FollowUp) R(5,Err(Busy)) d(text)"),
        "{told}"
    );
    assert!(told.ends_with("S- T-(Finished) P-(1,Finished) P-(2,Finished) P-(3,Finished) P-(4,Finished) Set Closed(HostGone) Gone"));
}

#[test]
fn omp_07_an_abort_while_a_tool_runs() {
    assert!(told("10").ends_with("t+(c1) t-(c1,Cancelled) ! S- R(2,Cancelling(Turn)) T-(Cancelled) P-(1,Cancelled) Set Closed(HostGone) Gone"));
}

#[test]
fn omp_07_an_abort_keeps_what_is_queued() {
    assert!(told("35").contains(&format!("Q(2,FollowUp) R(3,Cancelling(Turn)) m-(Cancelled) Rq-(Cancelled) S- T-(Cancelled) P-(1,Cancelled) R(4,Done) Changed Cx R(5,Started) T+ S+ Ap(5) M(user) Rq {TEXT} S- S+ Ap(2) M(user) Rq {TEXT} S- T-(Finished) P-(5,Finished) P-(2,Finished) Set")));
}

#[test]
fn omp_03_a_failed_attempt_is_part_of_its_step() {
    assert!(told("30").contains(&format!(
        "Rq m+ b+(text) m-(Failed,void) Rq-(Failed) Ry Rq {} Ry-(ok) S- T-(Finished)",
        TEXT
    )));
    assert!(told("32").starts_with("R(1,Started) T+ S+ Ap(1) M(user) Rq m+ b+(text) m-(Failed,void) Rq-(Failed) Ry R(2,Cancelling(Retry)) Ry-(no) S- T-(Failed) P-(1,Failed) Set R(3,Started) T+ S+ Ap(3) M(user) Rq Rq-(Failed) S- T-(Failed) P-(3,Failed) Set"));
}

#[test]
fn omp_13_an_approval_is_a_permission() {
    let told = told("24");
    assert!(
        told.contains(
            "t+(c1) A?(c1) R(2,Sent) A!(approved) Dc(yes) ToolProgress ToolProgress t-(c1,Ok)"
        ),
        "{told}"
    );
    assert!(told.contains("t+(c2) A?(c2) R(4,Sent) A!(declined) Dc(no) t-(c2,Denied)"));
}

#[test]
fn omp_03_a_job_s_end_is_a_turn_of_its_own() {
    assert!(told("25").ends_with(&format!("P-(1,Finished) P-(2,Finished) P-(3,Finished) T+ S+ M(note) Rq {TEXT} S- T-(Finished) Set Closed(HostGone) Gone")));
}

#[test]
fn omp_07_a_change_of_session_detaches_the_run() {
    assert!(told("29").contains("d(text) m-(Detached) Rq-(Cancelled) S- T-(Cancelled) P-(1,Cancelled) Set Opened(s2) R(2,Session)"));
}

#[test]
fn omp_04_a_shell_runs_beside_everything() {
    assert_eq!(
        told("18"),
        "R(1,Shell) R(3,Raw) R(4,Cancelling(Shell)) R(2,Shell) R(5,Shell) Closed(HostGone) Gone"
    );
}

#[test]
fn omp_03_a_slash_command_is_local() {
    assert!(told("19").starts_with("R(1,Local) M(note) P-(1,Local) Changed Changed R(2,Local) M(note) P-(2,Local) Changed R(3,Local) M(note) P-(3,Local) R(4,Started)"));
}

#[test]
fn omp_06_whole_queues_at_once() {
    assert!(told("33").contains(&format!("S+ Ap(4) M(user) Ap(5) M(user) Rq {TEXT} S- S+ Ap(6) M(user) Ap(7) M(user) Rq {TEXT} S- T-(Finished)")));
}

#[test]
fn omp_06_a_steer_that_waits_for_its_tool() {
    assert!(told("36").contains(&format!("{CALL} t+(c1) R(3,Queued(Steer)) Q(3,Steer) ToolProgress ToolProgress t-(c1,Ok) S- S+ Ap(3) M(user)")));
}

#[test]
fn omp_18_the_end_of_input_ends_what_is_open() {
    assert!(told("21").ends_with("t+(c1) A?(c1) R(3,Raw) A!(HostGone) t-(c1,Failed) S- T-(Cancelled) P-(2,Cancelled) Set Closed(HostGone) Gone"));
}

#[test]
fn omp_09_frames_in_pieces_are_whole_again() {
    let rig = heard("13", &named("13"), ClientConfig::default());
    let reply = rig.find(|what| match what {
        What::MessageEnded { message, .. } => Some(message.text()),
        _ => None,
    });
    assert!(reply.len() > 1_100_000, "{}", reply.len());
    assert_eq!(rig.findings(), [] as [String; 0]);
}

/// The old program ends no prompt but by its run.
#[test]
fn omp_03_the_first_generation() {
    let told = told("v18.2.3");
    assert!(told.starts_with(&format!(
        "R(1,Started) T+ S+ Ap(1) M(user) Rq {TEXT} S- T-(Finished) P-(1,Finished) Set R(2,Started)"
    )));
    assert!(told.contains(&format!("R(3,Err(Busy)) d(text) ! m-(Cancelled) Rq-(Cancelled) S- T-(Cancelled) P-(2,Cancelled) R(4,Started) T+ S+ Ap(4) M(user) Rq {TEXT} S- T-(Finished) P-(4,Finished) Set R(5,Local) M(note) P-(5,Local)")), "{told}");
}

/// A Server of openmax in front of the Client, with the recorded agent behind it.
struct Bridge {
    server: Server<Openmax>,
    rig: Rig,
    host: LineSplitter,
    ids: Ids,
    tap: Wiretap<Openmax>,
    told: usize,
    to_host: Vec<u8>,
    /// The ids of the recording's prompts, in order.
    prompts: Vec<String>,
    asked: Vec<String>,
}

impl Bridge {
    fn drain(&mut self) {
        let now = self.rig.now;
        loop {
            let mut quiet = true;
            let mut bytes = Vec::new();
            while let Some(output) = self.server.poll_output(&mut bytes) {
                quiet = false;
                if let ServerOutput::Call(call) = output {
                    let prompt = matches!(call.command, Command::Prompt(_));
                    if let (true, false) = (prompt, self.prompts.is_empty()) {
                        let id = self.prompts.remove(0);
                        self.ids.sent(Some(&id), call.id, "prompt");
                    }
                    self.rig
                        .tell(turnwire_proptests::laws::ClientInput::Call(call));
                }
            }
            self.tap.agent(&bytes);
            self.to_host.extend(bytes);
            while let Some(out) = self.rig.out.get(self.told).cloned() {
                quiet = false;
                self.told += 1;
                if let Out::Event(event) = out {
                    self.server.handle_event(&event);
                }
            }
            if quiet {
                break;
            }
        }
        assert!(
            self.server
                .poll_timeout()
                .is_none_or(|due| due.at_us > now.mono_us)
        );
    }

    fn host(&mut self, line: &OpenmaxLine<'_>) {
        let mut bytes = Vec::new();
        line.encode(&mut bytes);
        bytes.push(b'\n');
        self.tap.host(&bytes);
        let mut chunk = bytes.as_slice();
        while let Some(line) = self.host.next(&mut chunk) {
            self.server.handle_line(line, self.rig.now);
        }
        self.drain();
    }

    /// What a host of openmax would have written for a line of the recording's host.
    fn hosts(&mut self, text: &str) {
        let mut members = Members::new();
        for line in text.split('\n') {
            let line = host_text(line.as_bytes());
            match HostLine::decode(&line, &mut members) {
                Ok(HostLine::Command { id, command }) => match &command {
                    Line::Prompt(it) if it.streaming_behavior.is_none() => {
                        let id = id.get().map_or("", |id| id.as_str());
                        self.prompts.push(id.to_owned());
                        let text = (&*it.message).into();
                        self.host(&OpenmaxLine::User(User { text }));
                    }
                    Line::Abort(_) | Line::AbortAndPrompt(_) => self.host(&OpenmaxLine::Cancel),
                    _ => {}
                },
                Ok(HostLine::Side(Side::Ui(response))) => {
                    let approved =
                        matches!(response.answer(), UiAnswer::Value(value) if value == "Approve");
                    for approval_id in approvals(&self.to_host) {
                        if !self.asked.contains(&approval_id) {
                            self.asked.push(approval_id.clone());
                            let approval_id = approval_id.as_str().into();
                            self.host(&OpenmaxLine::Approve(Approve {
                                approval_id,
                                approved,
                            }));
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

fn approvals(lines: &[u8]) -> Vec<String> {
    let mut members = Members::new();
    let mut ids = Vec::new();
    for line in lines.split(|byte| *byte == b'\n') {
        if let Ok(OpenmaxAgent::Event {
            event: EventLine::ApprovalRequest(request),
            ..
        }) = OpenmaxAgent::decode(line, &mut members)
        {
            ids.push(request.approval_id.into_owned());
        }
    }
    ids
}

#[test]
fn a_server_of_openmax_makes_legal_lines_of_each() {
    let mut bridged = 0;
    for (name, rows) in all() {
        let mut rig = Rig::new(ClientConfig {
            cwd: "/repo".into(),
            ..ClientConfig::default()
        });
        if name.starts_with("v18.2") {
            rig.answers.program = Program::G1;
        }
        let mut bridge = Bridge {
            server: Server::new(ServerConfig::new("0.2.0".into(), [7; 32])),
            rig,
            host: LineSplitter::new(Openmax::host_line_rules()),
            ids: Ids::default(),
            tap: Wiretap::new(ObserverConfig::default()),
            told: 0,
            to_host: Vec::new(),
            prompts: Vec::new(),
            asked: Vec::new(),
        };
        let start = bridge.rig.now.mono_us;
        for (at, row) in &rows {
            let until = start + at * 1_000;
            while let Some(due) = Due::earliest(
                bridge.server.poll_timeout(),
                bridge.rig.client.poll_timeout(),
            )
            .filter(|due| due.at_us <= until)
            {
                bridge.rig.now.mono_us = bridge.rig.now.mono_us.max(due.at_us);
                bridge.server.handle_woken(bridge.rig.now);
                bridge
                    .rig
                    .tell(turnwire_proptests::laws::ClientInput::Woken);
                bridge.drain();
            }
            bridge.rig.now.mono_us = bridge.rig.now.mono_us.max(until);
            match row {
                Row::Host(text) => bridge.hosts(text),
                Row::HostEnd => {
                    bridge.tap.end(Dir::Host);
                    bridge.server.handle_end(bridge.rig.now);
                }
                Row::Agent(line) => {
                    let line = bridge.ids.ours(line);
                    bridge.rig.agent(&line);
                }
                Row::Exit => bridge.rig.end(),
            }
            bridge.drain();
        }
        bridge.tap.end(Dir::Agent);
        assert_eq!(bridge.tap.breach(&[]), None, "{name}");
        bridged += 1;
    }
    assert!(bridged >= 31);
}
