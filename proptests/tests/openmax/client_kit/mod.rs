//! What the tests of the openmax Client share: a Client whose inputs are kept, with the laws of the neutral stream
//! watched all the time.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

#[path = "../../shared/client_rig.rs"]
mod client_rig;
pub mod transcript;

pub use client_rig::{own, prompt, text};
use turnwire::protocol::openmax::{ClientConfig, Openmax};
use turnwire::vocab::*;

use self::client_rig::ClientRig;

/// What a Client of openmax is told.
pub type ClientInput = turnwire_proptests::laws::ClientInput<Openmax>;
/// What comes of it.
pub type Out = client_rig::Out<Openmax>;
/// A Client of openmax, and an agent that says nothing by itself.
pub type Rig = ClientRig<Openmax>;

pub const HELLO: &str = r#"{"type":"hello","proto":"openmax-stdio/6","protocol_version":6,"session_id":"s","version":"0.2.0","project":"/p","continued":false}"#;

impl Rig {
    pub fn new(config: ClientConfig) -> Self {
        ClientRig::with(config, ())
    }

    /// A Client whose agent has said hello; what came of it is forgotten.
    pub fn opened() -> Self {
        let mut rig = Rig::new(ClientConfig::default());
        rig.agent(HELLO);
        rig.forget();
        rig
    }

    /// An event of session `s`: its type, and its other members.
    pub fn says(&mut self, kind: &str, members: &str) {
        let comma = if members.is_empty() { "" } else { "," };
        self.agent(&format!(
            r#"{{"session_id":"s","type":"{kind}"{comma}{members}}}"#
        ));
    }

    pub fn done(&mut self, word: &str) {
        self.says("done", &format!(r#""stop_reason":"{word}""#));
    }

    pub fn budget(&mut self) {
        self.says("budget", r#""used_tokens":1000,"context_tokens":32768"#);
    }

    /// A step that answers with this text.
    pub fn step(&mut self, text: &str) {
        self.budget();
        self.says("token", &format!(r#""text":"{text}""#));
        self.says("message_done", &format!(r#""text":"{text}""#));
    }

    pub fn refused(&mut self, text: &str) {
        self.agent(&format!(
            r#"{{"type":"protocol_error","message":{}}}"#,
            serde_json::to_string(text).unwrap()
        ));
    }

    pub fn prompt(&mut self, text: &str, deliver: Deliver) -> CommandId {
        self.prompt_as(text, None, deliver)
    }

    pub fn user(&mut self, text: &str) -> CommandId {
        self.prompt(text, Deliver::IfIdle)
    }

    /// Texts of the findings since the last look.
    pub fn take_findings(&mut self) -> Vec<String> {
        let found = self.findings();
        self.out.retain(|out| !matches!(out, Out::Finding(_)));
        found
    }

    /// Lines to the agent since the last look, without newlines.
    pub fn lines(&mut self) -> Vec<String> {
        self.take_written()
    }
}

/// A Client in a turn whose request is out; what came of it is forgotten.
pub fn in_turn() -> Rig {
    let mut rig = Rig::opened();
    rig.user("hi");
    rig.budget();
    rig.forget();
    rig
}

/// A turn with a question about its one call.
pub fn asked() -> Rig {
    let mut rig = in_turn();
    rig.says("message_done", r#""text":"""#);
    rig.says("tool_start", r#""call_id":"c","name":"peek","args":{}"#);
    rig.says("approval_request", r#""approval_id":"q","name":"peek","summary":"s","detail":"d","reason":"unapproved_source","source_path":"t.toml","source_sha":"a3fb1f0eb818","env":["TOKEN"]"#);
    rig
}
