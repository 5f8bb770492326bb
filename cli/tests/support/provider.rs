//! A model provider on the loopback that does what its script says, byte by byte.
//!
//! Each request gets the next [`Reply`]: a status, headers, pieces of the body, waits between them, and an end that
//! may be no end at all: the connection closed early, reset, or left standing.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{PATIENCE, wait_for};

/// One request as it came in.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// A header's value; the name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("a request body of JSON")
    }
}

/// A gate that a reply waits at until the test opens it.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// A closed one.
    pub fn new() -> Gate {
        Gate::default()
    }

    /// Lets through who waits, and who will come.
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let open = self.0.0.lock().unwrap();
        drop(
            self.0
                .1
                .wait_timeout_while(open, PATIENCE, |open| !*open)
                .unwrap(),
        );
    }
}

/// How the body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Chunked,
    Length,
    UntilClose,
}

#[derive(Clone, Debug)]
enum Step {
    Bytes(Vec<u8>),
    /// The same bytes again and again, with a pause after each.
    Repeat(Vec<u8>, usize, Duration),
    Wait(Duration),
    Gate(Gate),
}

/// What becomes of the connection after the last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The body ends as its framing says, and the connection is kept.
    Clean,
    /// The connection is closed: with `Chunked` and `Length`, before the body was whole.
    Cut,
    /// The connection is reset: the peer sees an error, and may lose what it hadn't read.
    Reset,
    /// Nothing more comes, and nothing is closed, until the provider is dropped or the peer goes.
    Stall,
}

/// The answer to one request.
#[derive(Clone, Debug)]
pub struct Reply {
    status: &'static str,
    headers: Vec<(String, String)>,
    framing: Framing,
    steps: Vec<Step>,
    end: End,
    /// After how many bytes of the whole answer, its head included, the end comes.
    only: Option<usize>,
}

impl Reply {
    /// An answer with this status line, such as `200 OK`.
    pub fn status(status: &'static str) -> Reply {
        let (headers, steps) = (Vec::new(), Vec::new());
        Reply {
            status,
            headers,
            framing: Framing::Length,
            steps,
            end: End::Clean,
            only: None,
        }
    }

    /// An event stream, in chunks.
    pub fn stream() -> Reply {
        let mut reply = Reply::status("200 OK").header("content-type", "text/event-stream");
        reply.framing = Framing::Chunked;
        reply
    }

    /// An error with a JSON body.
    pub fn failure(status: &'static str, body: &str) -> Reply {
        Reply::status(status)
            .header("content-type", "application/json")
            .bytes(body)
    }

    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A piece of the body; each is written by itself.
    pub fn bytes(mut self, bytes: impl AsRef<[u8]>) -> Reply {
        self.steps.push(Step::Bytes(bytes.as_ref().to_vec()));
        self
    }

    /// The same piece many times, with a pause after each.
    pub fn repeat(mut self, bytes: impl AsRef<[u8]>, times: usize, every: Duration) -> Reply {
        self.steps
            .push(Step::Repeat(bytes.as_ref().to_vec(), times, every));
        self
    }

    pub fn wait(mut self, time: Duration) -> Reply {
        self.steps.push(Step::Wait(time));
        self
    }

    pub fn gate(mut self, gate: &Gate) -> Reply {
        self.steps.push(Step::Gate(gate.clone()));
        self
    }

    /// No framing: the body goes on until the connection is closed.
    pub fn until_close(mut self) -> Reply {
        self.framing = Framing::UntilClose;
        self
    }

    /// The connection is closed where the body would end.
    pub fn cut(mut self) -> Reply {
        self.end = End::Cut;
        self
    }

    /// The connection is reset where the body would end.
    pub fn reset(mut self) -> Reply {
        self.end = End::Reset;
        self
    }

    /// The connection stays open, and nothing more comes.
    pub fn stall(mut self) -> Reply {
        self.end = End::Stall;
        self
    }

    /// Only so many bytes go out, counted from the first of the status line; then the end comes: a cut, if no other
    /// was chosen.
    pub fn only(mut self, bytes: usize) -> Reply {
        self.only = Some(bytes);
        if self.end == End::Clean {
            self.end = End::Cut;
        }
        self
    }

    fn head(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {}\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        match self.framing {
            Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
            Framing::Length => head.push_str(&format!("content-length: {}\r\n", self.length())),
            Framing::UntilClose => head.push_str("connection: close\r\n"),
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    /// The whole length of the body. One that is cut says more than it brings.
    fn length(&self) -> usize {
        let body: usize = self
            .steps
            .iter()
            .map(|step| match step {
                Step::Bytes(bytes) => bytes.len(),
                Step::Repeat(bytes, times, _) => bytes.len() * times,
                Step::Wait(_) | Step::Gate(_) => 0,
            })
            .sum();
        body + usize::from(self.end != End::Clean && self.only.is_none())
    }

    /// Plays the answer; `Ok(true)` if the connection can carry another request.
    fn play(&self, socket: &TcpStream, sent: &AtomicU64) -> std::io::Result<bool> {
        let mut out = Limited {
            socket,
            left: self.only.unwrap_or(usize::MAX),
            sent,
        };
        let framed = |bytes: &[u8]| match self.framing {
            Framing::Chunked => {
                [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
            }
            Framing::Length | Framing::UntilClose => bytes.to_vec(),
        };
        let mut going = out.put(&self.head())?;
        for step in &self.steps {
            if !going {
                break;
            }
            match step {
                Step::Bytes(bytes) => going = out.put(&framed(bytes))?,
                Step::Repeat(bytes, times, every) => {
                    let piece = framed(bytes);
                    for _ in 0..*times {
                        going = out.put(&piece)?;
                        if !going {
                            break;
                        }
                        std::thread::sleep(*every);
                    }
                }
                Step::Wait(time) => std::thread::sleep(*time),
                Step::Gate(gate) => gate.pass(),
            }
        }
        match self.end {
            End::Clean if self.framing == Framing::Chunked => out.put(b"0\r\n\r\n"),
            End::Clean => Ok(self.framing == Framing::Length),
            End::Cut => Ok(false),
            End::Reset => {
                // With no time to linger, closing sends a reset instead of an end.
                socket2::SockRef::from(socket).set_linger(Some(Duration::ZERO))?;
                Ok(false)
            }
            End::Stall => {
                // Returns when either side closes.
                let _ = (&*socket).read(&mut [0])?;
                Ok(false)
            }
        }
    }
}

/// Writes so many bytes and no more.
struct Limited<'a> {
    socket: &'a TcpStream,
    left: usize,
    sent: &'a AtomicU64,
}

impl Limited<'_> {
    /// `Ok(true)` if all of it went out.
    fn put(&mut self, bytes: &[u8]) -> std::io::Result<bool> {
        let part = bytes.get(..self.left).unwrap_or(bytes);
        self.socket.write_all(part)?;
        self.sent.fetch_add(part.len() as u64, Ordering::Relaxed);
        self.left -= part.len();
        Ok(part.len() == bytes.len())
    }
}

#[derive(Debug, Default)]
struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Request>>,
    connections: Mutex<Vec<TcpStream>>,
    /// Bytes of answers that were handed to the system.
    sent: AtomicU64,
    /// Answers that are under way.
    playing: AtomicU64,
    closing: Mutex<bool>,
}

/// The provider. Dropped, it closes every connection and waits for its threads.
#[derive(Debug)]
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

impl Provider {
    /// Listens on a free port, and gives these answers, one a request. A request beyond them gets a 400.
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on the loopback");
        let address = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared {
            replies: Mutex::new(replies.into_iter().collect()),
            ..Shared::default()
        });
        let mine = Arc::clone(&shared);
        let listener = std::thread::spawn(move || listen(&listener, &mine));
        Provider {
            address,
            shared,
            listener: Some(listener),
        }
    }

    /// The address to give as the base address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// More answers, after those that are left.
    pub fn then(&self, reply: Reply) {
        self.shared.replies.lock().unwrap().push_back(reply);
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.locked().clone()
    }

    /// Waits for so many requests in all, and gives the last of them.
    #[track_caller]
    pub fn request(&self, number: usize) -> Request {
        wait_for(&format!("request {number}"), || {
            self.locked().get(number - 1).cloned()
        })
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Request>> {
        self.shared.requests.lock().unwrap()
    }

    /// Bytes of answers that went out so far.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// Answers that are under way.
    pub fn playing(&self) -> u64 {
        self.shared.playing.load(Ordering::Relaxed)
    }

    /// Answers that nobody has fetched.
    pub fn left(&self) -> usize {
        self.shared.replies.lock().unwrap().len()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        *self.shared.closing.lock().unwrap() = true;
        for connection in self.shared.connections.lock().unwrap().drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    for socket in listener.incoming().flatten() {
        if *shared.closing.lock().unwrap() {
            return;
        }
        let Ok(copy) = socket.try_clone() else {
            continue;
        };
        shared.connections.lock().unwrap().push(copy);
        let shared = Arc::clone(shared);
        std::thread::spawn(move || while let Ok(true) = serve(&socket, &shared) {});
    }
}

/// One request and its answer; `Ok(true)` if another may follow.
fn serve(socket: &TcpStream, shared: &Shared) -> std::io::Result<bool> {
    socket.set_nodelay(true)?;
    let Some(request) = read_request(socket)? else {
        return Ok(false);
    };
    // The answer is taken with the request, so that both are in one order.
    let reply = {
        let mut requests = shared.requests.lock().unwrap();
        requests.push(request);
        shared.replies.lock().unwrap().pop_front()
    };
    let spare = r#"{"error":{"message":"the test has no answer left for this request"}}"#;
    let reply = reply.unwrap_or_else(|| Reply::failure("400 Bad Request", spare));
    shared.playing.fetch_add(1, Ordering::Relaxed);
    let going = reply.play(socket, &shared.sent);
    shared.playing.fetch_sub(1, Ordering::Relaxed);
    if !matches!(going, Ok(true)) {
        // The list above holds a second handle: without this the peer would see no end. After a reset is asked
        // for, only closing every handle sends it.
        let mut connections = shared.connections.lock().unwrap();
        let peer = socket.peer_addr().ok();
        connections.retain(|other| other.peer_addr().ok() != peer);
    }
    going
}

/// Reads a request whole; `None` if the peer closed before one began.
fn read_request(mut socket: &TcpStream) -> std::io::Result<Option<Request>> {
    let broken = |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned());
    let mut bytes = Vec::new();
    let mut chunk = [0; 64 * 1024];
    let (mut request, head) = loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Request::new(&mut headers);
        if let httparse::Status::Complete(head) =
            parsed.parse(&bytes).map_err(|_| broken("no HTTP"))?
        {
            let headers = parsed
                .headers
                .iter()
                .map(|header| {
                    (
                        header.name.to_owned(),
                        String::from_utf8_lossy(header.value).into_owned(),
                    )
                })
                .collect();
            let method = parsed.method.unwrap_or_default().to_owned();
            let path = parsed.path.unwrap_or_default().to_owned();
            break (
                Request {
                    method,
                    path,
                    headers,
                    body: Vec::new(),
                },
                head,
            );
        }
        match socket.read(&mut chunk)? {
            0 if bytes.is_empty() => return Ok(None),
            0 => return Err(broken("half a head")),
            count => bytes.extend_from_slice(&chunk[..count]),
        }
    };
    let mut rest = bytes.split_off(head);
    let length = request
        .header("content-length")
        .map(|text| text.parse::<usize>().map_err(|_| broken("length")));
    match length.transpose()? {
        Some(length) => {
            while rest.len() < length {
                match socket.read(&mut chunk)? {
                    0 => return Err(broken("half a body")),
                    count => rest.extend_from_slice(&chunk[..count]),
                }
            }
            request.body = rest;
        }
        None if request.header("transfer-encoding").is_some() => {
            while !rest.ends_with(b"0\r\n\r\n") {
                match socket.read(&mut chunk)? {
                    0 => return Err(broken("half a body")),
                    count => rest.extend_from_slice(&chunk[..count]),
                }
            }
            request.body = unchunk(&rest).ok_or_else(|| broken("chunks"))?;
        }
        None => {}
    }
    Ok(Some(request))
}

/// A chunked body's content.
fn unchunk(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let httparse::Status::Complete((at, size)) = httparse::parse_chunk_size(bytes).ok()? else {
            return None;
        };
        let size = usize::try_from(size).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(bytes.get(at..at + size)?);
        bytes = bytes.get(at + size + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(provider: &Provider, socket: &mut TcpStream, body: &str) {
        let text = format!(
            "POST /x HTTP/1.1\r\nhost: h\r\ncontent-length: {}\r\nx-a: b\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(text.as_bytes()).unwrap();
        let _ = provider;
    }

    fn connect(provider: &Provider) -> TcpStream {
        let socket = TcpStream::connect(provider.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    #[test]
    fn loopback_answers_in_order_on_one_connection_and_keeps_the_requests() {
        let provider = Provider::start([
            Reply::failure("500 Oops", "{}"),
            Reply::stream().bytes("ab").bytes("c").cut(),
        ]);
        let mut socket = connect(&provider);
        ask(&provider, &mut socket, "one");
        let want =
            "HTTP/1.1 500 Oops\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        let mut first = vec![0; want.len()];
        socket.read_exact(&mut first).unwrap();
        assert_eq!(String::from_utf8_lossy(&first), want);
        ask(&provider, &mut socket, "two");
        let mut rest = String::new();
        socket.read_to_string(&mut rest).unwrap();
        assert!(rest.ends_with("\r\n\r\n2\r\nab\r\n1\r\nc\r\n"), "{rest:?}");
        let requests = provider.requests();
        assert_eq!(requests.len(), 2);
        assert_eq!(
            (requests[1].path.as_str(), requests[1].body.as_slice()),
            ("/x", &b"two"[..])
        );
        assert_eq!(requests[0].header("X-A"), Some("b"));
    }

    #[test]
    fn loopback_can_die_inside_the_head() {
        let provider = Provider::start([Reply::stream().bytes("x").only(12)]);
        let mut socket = connect(&provider);
        ask(&provider, &mut socket, "");
        let mut rest = String::new();
        socket.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "HTTP/1.1 200");
    }

    #[test]
    fn loopback_resets_and_stalls() {
        let provider =
            Provider::start([Reply::stream().bytes("x").reset(), Reply::stream().stall()]);
        let mut socket = connect(&provider);
        ask(&provider, &mut socket, "");
        let fault = socket.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(fault.kind(), std::io::ErrorKind::ConnectionReset);
        let mut socket = connect(&provider);
        ask(&provider, &mut socket, "");
        provider.request(2);
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        assert!(socket.read_to_end(&mut Vec::new()).is_err());
    }

    #[test]
    fn loopback_reads_chunked_bodies() {
        let provider = Provider::start([Reply::status("204 No Content")]);
        let mut socket = connect(&provider);
        socket.write_all(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").unwrap();
        assert_eq!(provider.request(1).body, b"abcde");
    }
}
