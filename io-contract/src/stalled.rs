//! Model providers that stop in the middle of a word.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

use turnwire::model::{Api, ReplyLimits, RequestOptions};
use turnwire_io::{Backend, Door, HttpProvider};

use crate::Driver;
use crate::rig::{Gate, PATIENCE, Rig, RigOptions};

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const PIECE: &str = r#"data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}"#;
const LAST: &str =
    r#"data: {"choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":"stop"}]}"#;

/// Says these bytes to the first request and stalls; answers the second. Tells when a connection was ended by the
/// other side.
fn provider(first: String) -> (Backend, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (send, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let whole = format!("{HEAD}{}{}0\r\n\r\n", chunk(LAST), chunk("data: [DONE]"));
        for said in [first, whole] {
            let Ok((mut stream, _)) = listener.accept() else {
                return;
            };
            read_request(&mut stream);
            let _ = stream.write_all(said.as_bytes());
            let send = send.clone();
            std::thread::spawn(move || {
                while matches!(stream.read(&mut [0; 1024]), Ok(1..)) {}
                let _ = send.send(());
            });
        }
    });
    let provider = HttpProvider {
        api: Api::OpenAi,
        base_url: format!("http://{address}/v1"),
        door: Door::Api,
        unnamed: false,
        key: None,
        headers: Vec::new(),
        options: RequestOptions::default(),
        limits: ReplyLimits::default(),
    };
    (Backend::Http(Box::new(provider)), ended)
}

fn chunk(event: &str) -> String {
    format!("{:x}\r\n{event}\n\n\r\n", event.len() + 2)
}

/// Reads the head and as many bytes of a body as it names.
fn read_request(stream: &mut TcpStream) {
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !seen.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
        seen.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&seen).to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .and_then(|value| value.trim().parse().ok());
    let _ = stream.read_exact(&mut vec![0; length.unwrap_or(0)]);
}

fn stalls<D: Driver>(first: String, shows: bool) {
    let (backend, ended) = provider(first);
    let rig = Rig::start::<D>(RigOptions {
        backend: Some(backend),
        ..RigOptions::script("")
    });
    rig.say(r#"{"cmd":"user","text":"hi"}"#);
    if shows {
        rig.wait_for("token");
    } else {
        // Nothing is said of a request that is under way.
        rig.wait_for("budget");
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    rig.say(r#"{"cmd":"cancel"}"#);
    assert_eq!(rig.wait_for("done")["stop_reason"], "cancelled");
    ended
        .recv_timeout(PATIENCE)
        .expect("the stopped request's connection stays");
    // The next one has a connection of its own.
    rig.say(r#"{"cmd":"user","text":"again"}"#);
    assert_eq!(rig.wait_for("message_done")["text"], "Hello.");
    assert_eq!(rig.wait_for("done")["stop_reason"], "stop");
    rig.close_input();
    assert_eq!(rig.finish().0, 0);
    ended
        .recv_timeout(PATIENCE)
        .expect("an idle connection outlives its session");
}

/// A body that stalls can be stopped.
pub fn s_03_a_body_that_stalls_can_be_stopped<D: Driver>() {
    stalls::<D>(format!("{HEAD}{}", chunk(PIECE)), true);
}

/// So can a head that never comes.
pub fn s_03_a_head_that_never_comes_can_be_stopped<D: Driver>() {
    stalls::<D>(String::new(), false);
}

/// Half a head is no head.
pub fn s_03_half_a_head_can_be_stopped<D: Driver>() {
    stalls::<D>("HTTP/1.1 200 OK\r\ncontent-type: te".into(), false);
}

/// A host that is gone leaves no request behind.
pub fn p06_a_host_that_is_gone_leaves_no_request_behind<D: Driver>() {
    let (backend, ended) = provider(format!("{HEAD}{}", chunk(PIECE)));
    let gate = Gate::default();
    let rig = Rig::start::<D>(RigOptions {
        backend: Some(backend),
        gate: Some(gate.clone()),
        ..RigOptions::script("")
    });
    rig.say(r#"{"cmd":"user","text":"hi"}"#);
    rig.wait_for("token");
    gate.break_now();
    rig.say("noise");
    assert_eq!(rig.finish().0, 129);
    ended.recv_timeout(PATIENCE).expect("its connection stays");
}
