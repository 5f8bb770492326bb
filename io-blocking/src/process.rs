//! Subprocesses: one thread looks after a child, its pipes and its time, with `poll`.

use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use process_wrap::std::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use turnwire_io::process::{Act, DRAIN, Ending, Exit, GroupId, LOOK, Stopped, Terms};

use crate::cancel::CancelToken;

/// What becomes of a child's words.
pub(crate) trait Talk {
    /// Bytes of its stdout.
    fn out(&mut self, bytes: &[u8]);
    /// Bytes of its stderr.
    fn err(&mut self, bytes: &[u8]);
    /// When [`tell`](Talk::tell) is to be called.
    fn tell_at(&self) -> Option<Instant> {
        None
    }
    /// Its time may have come. It is called with every wake of the child's own pipe, too.
    fn tell(&mut self, _now: Instant) {}
    /// Whether the child may run for as long as it takes by now.
    fn is_free(&self) -> bool {
        false
    }
}

/// How a child ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    pub(crate) exit: Exit,
    pub(crate) stopped: Option<Stopped>,
}

/// Starts a child that leads a process group and a session, so that it has no terminal to ask for passwords; tells it
/// `payload` if it has a stdin; waits for its end, or ends it when it is time; and settles its whole group.
///
/// When this returns, the child is reaped and nothing of its group is left.
pub(crate) fn run(
    command: Command,
    payload: &[u8],
    terms: Terms,
    cancel: &CancelToken,
    talk: &mut dyn Talk,
) -> io::Result<Ran> {
    begin(command, cancel)?.run_out(payload, terms, cancel, talk)
}

/// A child that runs, to be [run out](Running::run_out).
pub(crate) struct Running {
    group: Group,
    woken: PipeReader,
    waker: Arc<io::PipeWriter>,
    watch: JoinHandle<()>,
}

/// Starts a child as [`run`] does.
pub(crate) fn begin(command: Command, cancel: &CancelToken) -> io::Result<Running> {
    let (woken, waker) = io::pipe()?;
    // A word must not block whoever gives it, however many there are.
    rustix::io::ioctl_fionbio(&waker, true)?;
    let waker = Arc::new(waker);
    let group = Group::spawn(command)?;
    let exit_waker = waker.clone();
    let watch = group.watch(move || wake(&exit_waker))?;
    let word = waker.clone();
    cancel.on_word(move || wake(&word));
    Ok(Running {
        group,
        woken,
        waker,
        watch,
    })
}

impl Running {
    /// The number of its group.
    pub(crate) fn number(&self) -> u32 {
        self.group.id.number()
    }

    /// Has what listens look up, whenever it is called.
    pub(crate) fn waker(&self) -> impl Fn() + Send + Sync + 'static {
        let waker = self.waker.clone();
        move || wake(&waker)
    }

    /// Waits for its end, or ends it when it is time, and settles its whole group.
    pub(crate) fn run_out(
        self,
        payload: &[u8],
        terms: Terms,
        cancel: &CancelToken,
        talk: &mut dyn Talk,
    ) -> io::Result<Ran> {
        let Running {
            mut group,
            woken,
            watch,
            ..
        } = self;
        let ran = group.run_out(payload, woken, terms, cancel, talk);
        cancel.forget();
        // Settled or killed, the child is dead or dying: the watch ends.
        drop(group);
        let _ = watch.join();
        ran
    }
}

fn wake(mut waker: &io::PipeWriter) {
    // Full, it wakes as well; without a reader there is nobody to wake.
    let _ = waker.write(&[0]);
}

/// A child and its group.
struct Group {
    child: Box<dyn ChildWrapper>,
    id: GroupId,
    settled: bool,
}

impl Group {
    fn spawn(command: Command) -> io::Result<Self> {
        // The wrapper's own wait would also wait for others of the group: the plain child is taken out.
        let child = CommandWrap::from(command)
            .wrap(ProcessSession)
            .spawn()?
            .into_inner();
        let id = GroupId::of(child.id())?;
        Ok(Group {
            child,
            id,
            settled: false,
        })
    }

    /// Starts a thread that calls `dead` when the child is.
    fn watch(&self, dead: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
        let id = self.id;
        let thread = std::thread::Builder::new().name("turnwire-child".into());
        thread.spawn(move || {
            // An error says that it was reaped already.
            let _ = id.wait_leader();
            dead();
        })
    }

    fn run_out(
        &mut self,
        payload: &[u8],
        woken: PipeReader,
        terms: Terms,
        cancel: &CancelToken,
        talk: &mut dyn Talk,
    ) -> io::Result<Ran> {
        let mut pipes = Pipes::new(&mut *self.child, payload, woken)?;
        let mut ending = Ending::new(terms, Instant::now());

        // Until the child is dead.
        while !self.id.leader_is_dead()? {
            pipes.talk(talk, ending.deadline())?;
            let now = Instant::now();
            if cancel.is_killed() {
                self.id.kill();
            } else if cancel.is_cancelled() {
                self.act(ending.cancel(now));
            }
            if talk.is_free() {
                ending.free();
            }
            self.act(ending.due(now));
        }

        // What the child wrote is in the pipes by now. Somebody else may hold them open: don't wait for long.
        let now = Instant::now();
        let drained = now + DRAIN;
        while pipes.are_open() && Instant::now() < drained && !cancel.is_killed() {
            pipes.talk(talk, Some(drained))?;
        }

        // Members of the group that ignore SIGTERM are killed at `deadline`.
        let deadline = ending.settle_by(now);
        self.id.terminate();
        let exit = self.child.wait()?.into();
        // From here on the number is ours only while the group has members; it is looked at so often that it can't
        // have come round to another group in between.
        while self.id.has_members() {
            if Instant::now() >= deadline || cancel.is_killed() {
                self.id.kill();
                break;
            }
            // Last words of what is being ended are read, too; else it could block on a full pipe.
            pipes.talk(talk, Some(Instant::now() + LOOK))?;
        }
        // The very last of them are in the pipes still.
        let drained = Instant::now() + LOOK;
        while pipes.are_open() && Instant::now() < drained && !cancel.is_killed() {
            pipes.talk(talk, Some(drained))?;
        }
        self.settled = true;
        let stopped = ending.stopped();
        Ok(Ran { exit, stopped })
    }

    fn act(&self, act: Act) {
        match act {
            Act::Leave => {}
            Act::Terminate => self.id.terminate(),
            Act::Kill => self.id.kill(),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Only if something broke half way.
        if !self.settled {
            self.id.kill();
            let _ = self.child.wait();
        }
    }
}

/// A child's pipes, and the one that wakes who waits for them.
struct Pipes<'a> {
    stdin: Option<ChildStdin>,
    payload: &'a [u8],
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    woken: PipeReader,
    buffer: Vec<u8>,
}

impl<'a> Pipes<'a> {
    fn new(child: &mut dyn ChildWrapper, payload: &'a [u8], woken: PipeReader) -> io::Result<Self> {
        let stdin = child.stdin().take();
        if let Some(stdin) = &stdin {
            rustix::io::ioctl_fionbio(stdin, true)?;
        }
        Ok(Pipes {
            stdin,
            payload,
            stdout: child.stdout().take(),
            stderr: child.stderr().take(),
            woken,
            buffer: vec![0; 16 * 1024],
        })
    }

    fn are_open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Waits for something to happen, at the longest until `deadline`, and lets `talk` hear it.
    fn talk(&mut self, talk: &mut dyn Talk, deadline: Option<Instant>) -> io::Result<()> {
        let deadline = [deadline, talk.tell_at()].into_iter().flatten().min();
        let [told, out, err, woken] = self.wait(deadline)?;
        if told {
            self.tell();
        }
        if out {
            next(&mut self.stdout, &mut self.buffer, |bytes| talk.out(bytes));
        }
        if err {
            next(&mut self.stderr, &mut self.buffer, |bytes| talk.err(bytes));
        }
        if woken {
            // What woke is looked at by the caller.
            let _ = self.woken.read(&mut self.buffer);
        }
        talk.tell(Instant::now());
        Ok(())
    }

    /// Which of stdin, stdout, stderr and the waking pipe something can be done with.
    fn wait(&self, deadline: Option<Instant>) -> io::Result<[bool; 4]> {
        let (read, write) = (PollFlags::IN, PollFlags::OUT);
        let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(4);
        // Each one's place in `polled`.
        let mut places = [None; 4];
        let mut add = |place: usize, fd| {
            if let Some(known) = places.get_mut(place) {
                *known = Some(polled.len());
            }
            polled.push(fd);
        };
        if let Some(stdin) = &self.stdin {
            add(0, PollFd::new(stdin, write));
        }
        if let Some(stdout) = &self.stdout {
            add(1, PollFd::new(stdout, read));
        }
        if let Some(stderr) = &self.stderr {
            add(2, PollFd::new(stderr, read));
        }
        add(3, PollFd::new(&self.woken, read));
        let timeout = deadline.map(until);
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok([false; 4]),
            Err(error) => return Err(error.into()),
        }
        Ok(places.map(|place| {
            let found = place.and_then(|place: usize| polled.get(place));
            found.is_some_and(|fd| !fd.revents().is_empty())
        }))
    }

    /// Writes on to the child, and closes its stdin when all is said.
    fn tell(&mut self) {
        let Some(stdin) = &mut self.stdin else {
            return;
        };
        match stdin.write(self.payload) {
            Ok(count) => self.payload = self.payload.get(count..).unwrap_or_default(),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return;
            }
            // One that doesn't want to know is not at fault.
            Err(_) => self.payload = &[],
        }
        if self.payload.is_empty() {
            self.stdin = None;
        }
    }
}

/// Reads what is there of a pipe; one at its end (or broken) is put away.
fn next(pipe: &mut Option<impl Read>, buffer: &mut [u8], take: impl FnOnce(&[u8])) {
    let Some(open) = pipe else {
        return;
    };
    match open.read(buffer) {
        Err(error) if error.kind() == ErrorKind::Interrupted => {}
        Ok(count @ 1..) => take(buffer.get(..count).unwrap_or_default()),
        Ok(0) | Err(_) => *pipe = None,
    }
}

/// The time to a deadline, for `poll`; rounded up, so that it doesn't come back before.
fn until(deadline: Instant) -> Timespec {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = left.min(Duration::from_secs(86_400));
    Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(86_400),
        tv_nsec: left.subsec_nanos().into(),
    }
}
