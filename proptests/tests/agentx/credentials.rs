//! Credentials in whole final lines: one is never written, and nothing after it (WIRE-013, WIRE-015; AX-S17, AX-S18).
//!
//! The Server here is the shared one, behind a face that writes what it is given: the guard is below every face.

use std::convert::Infallible;

use turnwire::frame::{LineRules, OverLong, Split, Tail};
use turnwire::json::Members;
use turnwire::protocol::agentx::wire::{AgentLine, OPEN_RULES, Response};
use turnwire::protocol::{
    ClientFace, ClientOutbox, Credentials, LATCHED, OnCredential, Outbox, Protocol, Server,
    ServerFace, ServerOutput,
};
use turnwire::vocab::{Call, Command, DeltaRef, Due, Event, Level, Misuse, Now, Signal, Text};

const RULES: LineRules = LineRules {
    max_bytes: 1 << 20,
    over: OverLong::Skip,
    tail: Tail::Deliver,
};

/// A protocol of this wire's lines, each of which is handed in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Written;

struct Face;

impl Protocol for Written {
    const NAME: &'static str = "written";
    const ON_CREDENTIAL: OnCredential = OnCredential::Latch;
    type Ask = Infallible;
    type Outcome = Infallible;
    type Extra = String;
    type ServerConfig = ();
    type Face = Face;
    type ClientConfig = ();
    type Client = Face;

    fn soften(_: &String) -> Option<(Level, Text)> {
        None
    }
    fn host_line_rules() -> LineRules {
        RULES
    }
    fn agent_line_rules() -> LineRules {
        RULES
    }
}

impl ServerFace<Written> for Face {
    fn open((): (), _: &mut Outbox<Written>) -> Self {
        Face
    }
    fn line(&mut self, _: &Split<'_>, _: Now, out: &mut Outbox<Written>) {
        out.call(Command::Barrier);
    }
    fn end(&mut self, _: Now, out: &mut Outbox<Written>) {
        out.exit(0);
    }
    fn signal(&mut self, _: Signal, _: Now, _: &mut Outbox<Written>) {}
    fn event(&mut self, _: &Event, _: &mut Outbox<Written>) {}
    fn delta(&mut self, _: &DeltaRef<'_>, _: &mut Outbox<Written>) {}
    fn extra(&mut self, line: String, _: Now, out: &mut Outbox<Written>) {
        let mut members = Members::new();
        let read = AgentLine::decode(line.as_bytes(), &OPEN_RULES, &mut members);
        out.line(|out| match &read {
            Ok(read) => read.encode(out),
            Err(_) => out.extend_from_slice(line.as_bytes()),
        });
        // A face goes on in the same call.
        out.call(Command::Barrier);
        out.line(|out| out.extend_from_slice(br#"{"type":"keep_alive"}"#));
    }
    fn settled(&mut self, _: u64, _: Infallible, _: Now, _: &mut Outbox<Written>) {}
    fn woken(&mut self, _: Now, _: &mut Outbox<Written>) {}
    fn due(&self) -> Option<Due> {
        None
    }
    fn wants_lines(&self) -> bool {
        true
    }
}

impl ClientFace<Written> for Face {
    fn open((): (), _: &mut ClientOutbox<Written>) -> Self {
        Face
    }
    fn command(&mut self, _: Call, _: &mut ClientOutbox<Written>) {}
    fn line(&mut self, _: &Split<'_>, _: &mut ClientOutbox<Written>) {}
    fn end(&mut self, _: &mut ClientOutbox<Written>) {}
    fn settled(&mut self, _: u64, _: Infallible, _: &mut ClientOutbox<Written>) {}
    fn woken(&mut self, _: &mut ClientOutbox<Written>) {}
    fn due(&self) -> Option<Due> {
        None
    }
}

fn server(credentials: &[&str]) -> Server<Written> {
    let mut server = Server::new(());
    let credentials = Credentials::exact(credentials.iter().copied()).unwrap();
    server.hide(credentials).unwrap();
    server
}

/// All that comes out: the bytes, and the outputs in a word each.
fn drained(server: &mut Server<Written>) -> (String, Vec<String>) {
    let mut lines = Vec::new();
    let mut said = Vec::new();
    while let Some(output) = server.poll_output(&mut lines) {
        said.push(match output {
            ServerOutput::Call(_) => "call".into(),
            ServerOutput::Diagnostic(text) => text.to_string(),
            ServerOutput::Exit { code } => format!("exit {code}"),
            other => format!("{other:?}"),
        });
    }
    (String::from_utf8(lines).unwrap(), said)
}

fn said(server: &mut Server<Written>, line: &str) -> (String, Vec<String>) {
    server.handle_extra(line.into(), Now::default());
    drained(server)
}

const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"result":"safe","stop_reason":"also safe","session_id":"s","total_cost_usd":null,"usage":{},"modelUsage":{},"permission_denials":[],"uuid":"u"}"#;
const SAFE: &str = r#"{"type":"keep_alive"}"#;

fn latched(credential: &str, line: &str) {
    let mut server = server(&[credential]);
    let (lines, words) = said(&mut server, line);
    assert_eq!(
        lines, "",
        "{credential:?}: no byte of it, and none behind it"
    );
    assert_eq!(words, [LATCHED, "exit 1"], "{credential:?}");
    assert!(!LATCHED.contains(credential));
    // Nothing is taken any more.
    assert_eq!(said(&mut server, SAFE), (String::new(), Vec::new()));
    server.handle_end(Now::default());
    assert_eq!(drained(&mut server), (String::new(), Vec::new()));
    assert!(!server.wants_lines());
    let late = server.hide(Credentials::exact([]).unwrap());
    assert_eq!(late, Err(Misuse::TooLate));
}

#[test]
fn wire_013_ax_s17_a_literal_is_found_in_the_exact_final_bytes() {
    // Between two safe members, in the suffix of the record with its newline, in one byte of it.
    latched(r#"","stop_reason":""#, RESULT);
    latched(r#"","#, RESULT);
    latched("\"uuid\":\"u\"}\n", RESULT);
    latched("}\n", RESULT);
    latched("also safe", RESULT);
    latched("stop_reason", RESULT);
}

#[test]
fn wire_013_ax_s17_every_occurrence_of_a_member_counts_in_any_spelling() {
    let twice = r#"{"type":"frobnicate","x":"sk-\u0061bc\/d","x":"safe"}"#;
    latched("sk-abc/d", twice);
    latched("safe", twice);
    let nested = r#"{"type":"frobnicate","y":[{"k":{"\u0073k-key":1,"sk":2}}]}"#;
    latched("sk-key", nested);
    // The separator's escape is a part of what is looked at, and so is what it stands for.
    let separated = "{\"type\":\"frobnicate\",\"x\":\"a\u{2028}b\"}";
    latched("a\u{2028}b", separated);
    latched(r"a\u2028b", separated);
}

#[test]
fn wire_013_ax_s17_without_a_credential_lines_stay_as_they_are() {
    let all = [
        RESULT,
        r#"{"type":"frobnicate","x":"\u0061\/","y":[1,2.50,1e3]}"#,
        "{\"type\":\"frobnicate\",\"x\":\"a\u{2028}b\u{2029}\u{e9}\"}",
    ];
    let mut plain = Server::<Written>::new(());
    let mut guarded = server(&["sk-never-said"]);
    for line in all {
        let (expected, words) = said(&mut plain, line);
        assert_eq!(said(&mut guarded, line), (expected.clone(), words));
        assert_eq!(expected.lines().count(), 2, "in order, each whole");
    }
}

#[test]
fn wire_013_the_lines_before_the_one_that_isnt_written_are() {
    let mut server = server(&["also safe"]);
    server.handle_extra(SAFE.into(), Now::default());
    server.handle_extra(RESULT.into(), Now::default());
    let (lines, words) = drained(&mut server);
    assert_eq!(lines, format!("{SAFE}\n{SAFE}\n"));
    assert_eq!(words, ["call", LATCHED, "exit 1"]);
}

#[test]
fn wire_013_ax_s18_the_values_stay_what_they_were_before_the_first_line() {
    let mut server = server(&["first-secret"]);
    // Before anything was written they may still be changed.
    let second = || Credentials::exact(["second-secret"]).unwrap();
    assert_eq!(server.hide(second()), Ok(()));
    said(&mut server, SAFE);
    let none = Credentials::exact([]).unwrap();
    assert_eq!(server.hide(none), Err(Misuse::TooLate));
    let (lines, words) = said(&mut server, r#"{"type":"frobnicate","x":"second-secret"}"#);
    assert_eq!(
        (lines.as_str(), words.len()),
        ("", 2),
        "those that were given count"
    );
}

#[test]
fn wire_015_a_failure_shows_neither_the_line_nor_the_value() {
    let credentials = Credentials::exact(["sk-very-secret"]).unwrap();
    assert!(!format!("{credentials:?}").contains("sk-"));
    let mut server = server(&["sk-very-secret"]);
    server.handle_extra(
        r#"{"type":"frobnicate","x":"sk-very-secret and all around it"}"#.into(),
        Now::default(),
    );
    let mut lines = Vec::new();
    let mut shown = format!("{server:?}");
    while let Some(output) = server.poll_output(&mut lines) {
        shown.push_str(&format!("{output:?}"));
    }
    assert!(
        !shown.contains("secret\"") && !shown.contains("around"),
        "{shown}"
    );
    // Nor does the buffer that is handed over keep it behind its end.
    assert!(lines.is_empty());
}

#[test]
fn wire_013_an_answer_is_checked_as_the_whole_line_that_it_becomes() {
    let answer = AgentLine::from(Response::failure("req-1", "why not"));
    let mut line = Vec::new();
    answer.encode(&mut line);
    latched(r#"req-1","error"#, &String::from_utf8(line).unwrap());
}
