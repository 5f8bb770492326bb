//! A host of ours behind its Client, and an agent that writes any bytes.

use turnwire::{frame::LineSplitter, protocol::observer::Dir, vocab::*};

use super::{Told, must, shown, story};
use crate::{
    laws::{self, Broken, ClientInput, ClientMachine, law_l8},
    scenario::Setup,
    script::{Action, Answering, command},
    world::{HostEnd, START, Speaks, Wish, line_rules},
};

/// Whatever bytes an agent writes, its Client gives a neutral stream that keeps every guarantee, one reply for each
/// command, and a close, and it keeps the laws.
///
/// The bytes are the agent's, with control bytes between them: 1 to 7 are commands of the host, 8 lets time pass, 11
/// jumps to the Client's next deadline; any other only cuts.
///
/// # Errors
/// [`Broken`] with the law or guarantee that is broken.
pub fn client<P: Speaks>(data: &[u8]) -> Result<(), Broken> {
    let setup = Setup::default();
    let mut rig = Rig::<P>::new(&setup);
    for part in story(data) {
        rig.tell(part);
    }
    rig.end();
    rig.judge(&setup, 1 + data.len() % 13)
}

/// What a host does, by a control byte and the byte behind it.
fn action(control: u8, pick: u8) -> Option<Action> {
    Some(match control {
        1 => Action::Prompt(match pick % 4 {
            0 => Deliver::IfIdle,
            1 => Deliver::Queue(Rank::Later),
            2 => Deliver::Steer {
                idle: IdleSteer::Start,
            },
            _ => Deliver::Context,
        }),
        2 => Action::Cancel(match pick % 3 {
            0 => CancelWhat::Turn {
                queue: QueueFate::Keep,
            },
            1 => CancelWhat::Everything,
            _ => CancelWhat::Retry,
        }),
        3 => Action::Reply(pick, Answering::Yes),
        4 => Action::Reply(
            pick,
            match pick % 4 {
                0 => Answering::No,
                1 => Answering::Wrong,
                2 => Answering::Gone,
                _ => Answering::Interrupt,
            },
        ),
        5 => Action::Set(Setting::Approvals(match pick % 3 {
            0 => ApprovalMode::Auto,
            1 => ApprovalMode::Ask,
            _ => ApprovalMode::ReadOnly,
        })),
        6 => Action::Close(pick.is_multiple_of(2)),
        7 => match pick % 5 {
            0 => Action::Repeat(pick),
            1 => Action::Withdraw(pick),
            2 => Action::Compact,
            3 => Action::LateReply(pick),
            _ => Action::Other(pick),
        },
        _ => return None,
    })
}

struct Rig<P: Speaks> {
    host: HostEnd<P>,
    reads: LineSplitter,
    now: Now,
    recorded: Vec<(ClientInput<P>, Now)>,
    said: Vec<String>,
}

impl<P: Speaks> Rig<P> {
    fn new(setup: &Setup) -> Self {
        let mut rig = Rig {
            host: HostEnd::new(P::client(setup)),
            reads: LineSplitter::new(line_rules::<P>(Dir::Agent)),
            now: START,
            recorded: Vec::new(),
            said: Vec::new(),
        };
        rig.drain();
        rig
    }

    fn tell(&mut self, part: Told<'_>) {
        match part {
            Told::Bytes(bytes) => self.read(bytes),
            Told::Control(8, quarters) => {
                let until = self.now.mono_us + u64::from(quarters) * 250_000;
                while self.jump(until) {}
                self.set_now(until);
            }
            Told::Control(11, _) => drop(self.jump(u64::MAX)),
            Told::Control(control, pick) => {
                let action = action(control, pick);
                let command = action.and_then(|action| command(&mut self.host, &action));
                if let Some(call) = command.and_then(|one| self.host.command(one, self.now)) {
                    self.said.push(format!("command {:?}", call.command));
                    self.recorded.push((ClientInput::Call(call), self.now));
                }
            }
        }
        self.drain();
    }

    fn read(&mut self, bytes: &[u8]) {
        self.said.push(format!("< {}", shown(bytes)));
        let input = ClientInput::Bytes(bytes.to_vec());
        self.recorded.push((input, self.now));
        let mut chunk = bytes;
        while let Some(split) = self.reads.next(&mut chunk) {
            self.host.client.handle_line(split, self.now);
        }
    }

    fn set_now(&mut self, mono_us: u64) {
        let ms = (mono_us / 1_000).saturating_sub(self.now.mono_us / 1_000);
        self.now.unix_ms = self.now.unix_ms.saturating_add(ms);
        self.now.mono_us = self.now.mono_us.max(mono_us);
    }

    fn jump(&mut self, until: u64) -> bool {
        let due = self.host.client.poll_timeout();
        let Some(due) = due.filter(|due| due.at_us <= until) else {
            return false;
        };
        self.set_now(due.at_us);
        self.recorded.push((ClientInput::Woken, self.now));
        self.host.client.handle_woken(self.now);
        self.drain();
        true
    }

    fn end(&mut self) {
        self.said.push("< end".to_owned());
        if let Some(split) = self.reads.finish() {
            self.host.client.handle_line(split, self.now);
        }
        self.recorded.push((ClientInput::End, self.now));
        self.host.client.handle_end(self.now);
        self.drain();
    }

    fn drain(&mut self) {
        let mut lines = Vec::new();
        loop {
            let wish = self.host.poll(self.now, &mut lines);
            if !lines.is_empty() {
                self.said.push(format!("> {}", shown(&lines)));
                lines.clear();
            }
            match wish {
                Some(Wish::Ask(id, ask)) => {
                    let outcome = P::answer(&ask, u8::try_from(id % 256).unwrap_or_default());
                    let input = ClientInput::Settle(id, outcome.clone());
                    self.recorded.push((input, self.now));
                    if let Err(misuse) = self.host.client.settle(id, outcome, self.now) {
                        self.host.faults.push(format!("L8: an ask: {misuse}"));
                    }
                }
                Some(_) => {}
                None => break,
            }
        }
        self.host.checker.quiet();
    }

    fn judge(self, setup: &Setup, size: usize) -> Result<(), Broken> {
        let told = || self.said.join("\n");
        if let Some(fault) = self.host.faults.first() {
            return must(false, "driver", || format!("{fault}\n{}", told()));
        }
        if let Some(one) = self.host.checker.violations().first() {
            return must(false, "neutral", || format!("{one}\n{}", told()));
        }
        let owed: Vec<_> = self.host.owed().collect();
        must(self.host.closed && owed.is_empty(), "L8", || {
            format!("closed {}, owed {owed:?}\n{}", self.host.closed, told())
        })?;
        let client = &self.host.client;
        let asks = client.poll_timeout().is_some() || client.wants_lines();
        must(!asks && !client.wants_commands(), "L3", || {
            format!("a closed Client wants something\n{}", told())
        })?;
        let up = line_rules::<P>(Dir::Agent);
        let make = || ClientMachine::<P>::new(P::client(setup), up);
        laws::hold_cut(make, &self.recorded, size, 3)?;
        law_l8(make, &self.recorded, laws::wished_again)
    }
}
