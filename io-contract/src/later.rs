//! Answers that take their time: what a driver owes the work that an embedder does for a protocol.

use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::Value;
use turnwire::protocol::Server;
use turnwire::protocol::agentx::{Agentx, AgentxAsk, AgentxOutcome, Policy, ServerConfig, preset};
use turnwire::session::Session;
use turnwire::session::config::Snapshots;
use turnwire::vocab::{Now, RawJson};
use turnwire_io::{Answered, Host};

use crate::Driver;
use crate::rig::{PATIENCE, RigOptions, info, parts};
use crate::watch::{Books, Watched};

/// An operation that the embedder answers.
fn outside(id: &str) -> String {
    format!(
        "{{\"type\":\"control_request\",\"request_id\":\"{id}\",\"request\":{{\"subtype\":\"get_settings\"}}}}\n"
    )
}

/// L8 an answer that takes its time holds nothing up, keeps its order, and the end waits for it.
pub fn l8_an_answer_that_takes_its_time_holds_nothing_up_and_the_end_waits_for_it<D: Driver>() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let (input, mut host) = std::io::pipe().unwrap();
    let (lines, output) = std::io::pipe().unwrap();
    let (go, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let done = Arc::new(Mutex::new(Vec::new()));
    let finished = done.clone();
    let agent = std::thread::spawn(move || {
        let policy = Policy::AGENTX_FULL;
        let rig = RigOptions::script("reply\n say: Hello.");
        let (mut config, world) = parts(rig, &root, |config| preset(config, &policy));
        config.policy.snapshots = Snapshots::Never;
        let now = Now {
            mono_us: 0,
            unix_ms: 1_700_000_000_000,
        };
        let session = Session::new(config, info(&root), now);
        let session = Watched::new(session, Books::default());
        let server = Server::<Agentx>::new(ServerConfig::new([7; 32], policy));
        let mut asked = 0;
        let host = Host {
            input: Box::new(input),
            output: Box::new(output),
            signals: false,
            answer: Box::new(move |ask| {
                if !matches!(ask, AgentxAsk::Control { .. }) {
                    return AgentxOutcome::Default.into();
                }
                asked += 1;
                let (number, gate, done) = (asked, gate.clone(), finished.clone());
                Answered::Later(Box::new(move || {
                    // Without a word within this time the test is over anyway.
                    let _ = gate.lock().unwrap().recv_timeout(PATIENCE);
                    done.lock().unwrap().push(number);
                    assert!(number != 2, "on purpose");
                    let payload = format!("{{\"number\":{number}}}");
                    AgentxOutcome::Success(Some(RawJson(payload.as_str().into())))
                }))
            }),
            refrozen: None,
            heard_mcp: None,
            gone: None,
        };
        D::serve(server, session, world, host).unwrap()
    });
    let mut lines = BufReader::new(lines).lines();
    let mut answer_to = |id: &str| -> Value {
        loop {
            let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if line["response"]["request_id"] == id {
                return line["response"].clone();
            }
        }
    };
    host.write_all(outside("one").as_bytes()).unwrap();
    host.write_all(outside("two").as_bytes()).unwrap();
    host.write_all(outside("three").as_bytes()).unwrap();
    let beside = outside("beside").replace("get_settings", "mcp_status");
    host.write_all(beside.as_bytes()).unwrap();
    // It is answered although the others aren't.
    assert_eq!(answer_to("beside")["subtype"], "success");
    assert!(done.lock().unwrap().is_empty());
    for _ in 0..3 {
        go.send(()).unwrap();
    }
    assert_eq!(answer_to("one")["response"]["number"], 1);
    // The second one panicked: it takes nothing along.
    assert_eq!(answer_to("three")["response"]["number"], 3);
    host.write_all(outside("last").as_bytes()).unwrap();
    let user = r#"{"type":"user","message":{"role":"user","content":"Hello?"}}"#;
    host.write_all(format!("{user}\n").as_bytes()).unwrap();
    drop(host);
    // The session is over, and the work is not.
    std::thread::sleep(Duration::from_millis(50));
    assert!(!agent.is_finished());
    drop(go);
    for line in lines {
        line.unwrap();
    }
    assert_eq!(agent.join().unwrap(), 0);
    assert_eq!(*done.lock().unwrap(), [1, 2, 3, 4]);
}
