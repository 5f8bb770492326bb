//! A host of openseek.

use serde_json::{Value, json};
use turnwire::protocol::openseek::{ObserverConfig, Openseek};

use super::program::{Home, Program, Setup, Talk, Tapped};
use super::provider::{Provider, Reply};
use super::replies::openai;

impl Talk for Openseek {
    type Ear = Tapped<Openseek>;

    fn ear(_: &[&str]) -> Tapped<Openseek> {
        Tapped::expecting(ObserverConfig::default())
    }

    /// Each line is the event alone (OS-02).
    #[track_caller]
    fn check(line: &Value, _: &Value) {
        assert!(line["event"].is_string(), "no event: {line}");
    }

    /// Each question is resolved once, and each job that began is over once (OS-09, OS-10).
    #[track_caller]
    fn pairs(lines: &[Value]) {
        let ids = |event: &str| {
            let found = lines.iter().filter(|line| line["event"] == *event);
            let mut ids: Vec<String> = found.map(|line| line["id"].to_string()).collect();
            ids.sort();
            ids
        };
        assert_eq!(ids("approval_requested"), ids("approval_resolved"));
        let jobs = |kinds: &[&str]| {
            let found = lines
                .iter()
                .filter(|line| line["event"] == "job_changed")
                .filter(|line| kinds.iter().any(|kind| line["kind"] == **kind));
            let mut ids: Vec<String> = found.map(|line| line["job"]["id"].to_string()).collect();
            ids.sort();
            ids
        };
        assert_eq!(jobs(&["started"]), jobs(&["finished", "failed"]));
    }
}

impl Setup {
    /// `serve --protocol openseek` with a model of this provider, in a trusted project, in this approval mode.
    pub fn openseek(home: &Home, provider: &Provider, mode: &str) -> Setup {
        Setup::serve_in(home, "openseek").model_at(&(provider.url() + "/v1"), mode)
    }
}

/// An answer, with what it used: each response has that here (OS-A09).
pub fn says(words: &str) -> Reply {
    ended(Reply::stream().bytes(openai::text(words)), "stop")
}

/// One call.
pub fn calls(name: &str, arguments: &Value) -> Reply {
    let call = openai::call(0, "call_1", name, arguments);
    ended(Reply::stream().bytes(call), "tool_calls")
}

fn ended(reply: Reply, finish: &str) -> Reply {
    reply
        .bytes(openai::finish(finish))
        .bytes(openai::usage(40, 7, 0))
        .bytes(openai::DONE)
}

impl Program<Openseek> {
    /// Waits for the next line of this event.
    #[track_caller]
    pub fn see_event(&mut self, event: &str) -> Value {
        self.see(&json!({ "event": event }))
    }

    /// One prompt, to the end of its turn, which goes well.
    #[track_caller]
    pub fn prompt(&mut self, text: &str) -> Value {
        self.send(&json!({"command": "prompt", "text": text}));
        self.see_event("agent_finished")
    }
}
