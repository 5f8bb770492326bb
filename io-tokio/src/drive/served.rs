//! What the host serves to the agent: tools and addresses of its own, each carried out by a program.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use turnwire::vocab::{Ask, AskId, Block, Offer, Reply, ReplyFault, ToolSpec, UriOp, UriSpec};
use turnwire_io::process::{Exit, Terms};

use crate::process::{self, Group};

/// The most of a program's output that is kept, in bytes.
const MOST: usize = 1024 * 1024;
/// How long a program that is stopped may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);

/// What carries a call out: a program and its first arguments.
pub type Program = Vec<OsString>;

/// What the host serves.
///
/// A tool's program reads the arguments of a call as JSON from its standard input; what it writes is the result, an
/// error if its exit code isn't 0. A scheme's program is given `read URI`, and writes the content; or `write URI`, and
/// reads it. It runs in a process group of its own that is gone when the call is over.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// Tools that the model sees.
    pub tools: Vec<(ToolSpec, Program)>,
    /// Schemes of addresses.
    pub uris: Vec<(UriSpec, Program)>,
}

type Answer = Result<Reply, ReplyFault>;

/// The calls that are being carried out.
pub(super) struct Serving {
    served: Served,
    running: BTreeMap<AskId, CancellationToken>,
    /// All of them, those that are being stopped too.
    tasks: JoinSet<()>,
    tell: mpsc::UnboundedSender<(AskId, Answer)>,
    told: mpsc::UnboundedReceiver<(AskId, Answer)>,
}

impl Serving {
    pub(super) fn new(served: Served) -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        Serving {
            served,
            running: BTreeMap::new(),
            tasks: JoinSet::new(),
            tell,
            told,
        }
    }

    /// What the agent is offered; nothing where nothing is served.
    pub(super) fn offers(&self) -> Vec<Offer> {
        let Served { tools, uris } = &self.served;
        let mut offers = Vec::new();
        if !tools.is_empty() {
            let tools = tools.iter().map(|(spec, _)| spec.clone());
            offers.push(Offer::Tools(tools.collect()));
        }
        if !uris.is_empty() {
            let uris = uris.iter().map(|(spec, _)| spec.clone());
            offers.push(Offer::Uris(uris.collect()));
        }
        offers
    }

    /// Begins to carry a call out. `false`: it isn't one of what is served.
    pub(super) fn begin(&mut self, ask: AskId, body: &Ask) -> bool {
        let Some(job) = self.job(body) else {
            return false;
        };
        let stop = CancellationToken::new();
        self.running.insert(ask, stop.clone());
        let tell = self.tell.clone();
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(async move {
            let answer = job.run(&stop).await;
            let _ = tell.send((ask, answer));
        });
        true
    }

    fn job(&self, body: &Ask) -> Option<Job> {
        match body {
            Ask::Tool { name, input, .. } => {
                let mut tools = self.served.tools.iter();
                let (_, program) = tools.find(|(spec, _)| spec.name == *name)?;
                Some(Job {
                    program: program.clone(),
                    input: input.as_str().as_bytes().to_vec(),
                    uri: false,
                })
            }
            Ask::Uri { op, uri, body } => {
                let (scheme, _) = uri.split_once("://")?;
                let mut uris = self.served.uris.iter();
                let (_, program) =
                    uris.find(|(spec, _)| spec.scheme.eq_ignore_ascii_case(scheme))?;
                let op = match op {
                    UriOp::Read => "read",
                    UriOp::Write => "write",
                };
                let mut program = program.clone();
                program.extend([OsString::from(op), OsString::from(&**uri)]);
                Some(Job {
                    program,
                    input: body.as_deref().unwrap_or_default().as_bytes().to_vec(),
                    uri: true,
                })
            }
            Ask::Permission(_) | Ask::Hook(_) | Ask::Choice(_) => None,
        }
    }

    /// A call whose question was closed isn't wanted any more.
    pub(super) fn stop(&mut self, ask: AskId) {
        if let Some(stop) = self.running.remove(&ask) {
            stop.cancel();
        }
    }

    /// The next call that was carried out, and that somebody waits for. May be dropped and called again.
    pub(super) async fn done(&mut self) -> (AskId, Answer) {
        loop {
            match self.told.recv().await {
                Some((ask, answer)) if self.running.remove(&ask).is_some() => {
                    return (ask, answer);
                }
                Some(_) => {}
                // Never: one sender is kept here.
                None => std::future::pending().await,
            }
        }
    }

    /// Ends every program; nothing of theirs is left afterwards.
    pub(super) async fn end(&mut self) {
        for stop in self.running.values() {
            stop.cancel();
        }
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        // What doesn't end in time is killed as it is dropped.
        let _ = tokio::time::timeout(2 * GRACE, ended).await;
        self.tasks.shutdown().await;
    }
}

/// One call.
struct Job {
    program: Program,
    input: Vec<u8>,
    uri: bool,
}

impl Job {
    async fn run(self, stop: &CancellationToken) -> Answer {
        let uri = self.uri;
        match self.output(stop).await {
            Ok((Exit::Code(0), output, _)) if uri => Ok(Reply::Uri {
                body: output.into(),
                mime: None,
                notes: Vec::new(),
                immutable: None,
            }),
            Ok((Exit::Code(0), output, _)) => Ok(Reply::Tool {
                content: vec![Block::Text(output.into())],
                is_error: false,
                details: None,
            }),
            Ok((exit, output, errors)) => {
                let how = match exit {
                    Exit::Code(code) => format!("exit code {code}"),
                    Exit::Signal(signal) => format!("ended by signal {signal}"),
                };
                let texts = [output.trim_end(), errors.trim_end(), &how];
                let said = texts.iter().filter(|text| !text.is_empty());
                let text = said.copied().collect::<Vec<_>>().join("\n");
                Err(ReplyFault::HostError(text.into()))
            }
            Err(error) => Err(ReplyFault::HostError(error.to_string().into())),
        }
    }

    async fn output(self, stop: &CancellationToken) -> io::Result<(Exit, String, String)> {
        let Some((program, args)) = self.program.split_first() else {
            return Err(io::Error::other("there is no program for this"));
        };
        let mut command = Command::new(program);
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group = Group::spawn(command)?;
        let (stdin, (stdout, stderr)) = (group.stdin(), group.pipes());
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        let mut talk = Box::pin(async {
            let tell = process::tell(stdin, &self.input);
            tokio::join!(
                tell,
                listen(stdout, &mut output),
                listen(stderr, &mut errors)
            );
        });
        let terms = Terms {
            limit: None,
            grace: GRACE,
        };
        let (exit, _) = process::run_out(group, terms, stop, talk.as_mut()).await?;
        drop(talk);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((exit, text(&output), text(&errors)))
    }
}

/// Reads a pipe to its end, and keeps the beginning.
async fn listen(pipe: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let room = MOST.saturating_sub(kept.len());
        let bytes = buffer.get(..count.min(room)).unwrap_or_default();
        kept.extend_from_slice(bytes);
    }
}
