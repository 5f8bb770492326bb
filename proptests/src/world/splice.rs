//! splice in the world: one prompt, one run of a session.

use turnwire::{
    json::Members,
    protocol::{
        observer::{Dir, Finding},
        openmax::Openmax,
        splice::{
            Autonomy, ClientConfig, EarlySignal, MergeBack, ObserverConfig, ServerConfig, Splice,
            preset,
            wire::{Event as AgentLine, Input as HostLine},
        },
    },
    redact::Secrets,
    session::SessionConfig,
    vocab::*,
};

use super::{Mess, Speaks, openmax::line};
use crate::{scenario::Setup, script::ToolNews};

impl Speaks for Splice {
    /// Nobody is asked: a question is closed as it is asked.
    const SETTLES: bool = false;
    const TELLS_THINKING: bool = false;

    fn session(config: &mut SessionConfig, setup: &Setup) {
        preset(config);
        setup.embed(config);
        config.timeouts.approval_us = None;
        // What only a host carries out can't be offered here.
        config.tools.retain(|tool| tool.route == Route::Driver);
    }

    fn server(setup: &Setup) -> ServerConfig {
        ServerConfig {
            autonomy: [Autonomy::Low, Autonomy::High][usize::from(setup.mode % 2)],
            early_signal: [EarlySignal::Ends, EarlySignal::Remembered]
                [usize::from(setup.mode / 2 % 2)],
            secrets: Secrets::new(["hunter2-hunter2"]),
            ..ServerConfig::new(setup.seed())
        }
    }

    fn client(_: &Setup) -> ClientConfig {
        ClientConfig::default()
    }

    fn observer(_: &Setup) -> ObserverConfig {
        ObserverConfig::default()
    }

    fn watched(pick: u8) -> ObserverConfig {
        ObserverConfig {
            original: pick % 2 == 1,
        }
    }

    /// A line that is wrong refuses the whole run: only blank ones change nothing.
    fn bad_host_line(pick: u8) -> Vec<u8> {
        let lines: [&dyn Fn() -> Vec<u8>; 3] = [&|| Vec::new(), &|| b"  \t".to_vec(), &|| {
            "\u{a0}\r".as_bytes().to_vec()
        }];
        line(&lines, pick)
    }

    fn bad_agent_line(pick: u8) -> Vec<u8> {
        let lines: [&dyn Fn() -> Vec<u8>; 5] = [
            &|| b"Segmentation fault".to_vec(),
            &|| br#"{"type":"text"}"#.to_vec(),
            &|| b"{\"type\":\"text\",\"delta\":\"\xc3\x28\"}".to_vec(),
            &|| br#"{"type":"run_end","runId":"r","schemaVersion":3}"#.to_vec(),
            &|| b"42".to_vec(),
        ];
        line(&lines, pick)
    }

    fn says(command: &Command) -> bool {
        match command {
            Command::Prompt(prompt) => {
                !matches!(prompt.deliver, Deliver::Steer { .. } | Deliver::Context)
            }
            Command::Cancel { .. }
            | Command::Withdraw(_)
            | Command::Reply { .. }
            | Command::Barrier
            | Command::Close { .. } => true,
            Command::ReplyPart { .. }
            | Command::Compact { .. }
            | Command::Job(_)
            | Command::Goal(_)
            | Command::Promote(_)
            | Command::Set(_)
            | Command::Offer(_)
            | Command::Shell { .. }
            | Command::Session(_)
            | Command::SteerRun { .. }
            | Command::Recall(_)
            | Command::Rewind { .. }
            | Command::Reload => false,
        }
    }

    fn again(dir: Dir, line: &[u8]) -> Option<Vec<u8>> {
        let mut members = Members::new();
        let mut out = Vec::new();
        match dir {
            Dir::Host => HostLine::read(line, &mut members).ok()?.encode(&mut out),
            Dir::Agent => AgentLine::read(line, &mut members).ok()?.encode(&mut out),
        }
        Some(out)
    }

    /// A question of a running call has no line of its own.
    fn brings(news: ToolNews) -> bool {
        news != ToolNews::Network
    }

    fn answer(_: &Self::Ask, pick: u8) -> MergeBack {
        let text = "as it is".into();
        match pick % 5 {
            0 => MergeBack::Merged(text),
            1 => MergeBack::NoChange(text),
            2 => MergeBack::Dirty(text),
            3 => MergeBack::Conflict(text),
            _ => MergeBack::Failed(text),
        }
    }

    fn consent(_: &[u8], _: bool) -> Option<Vec<u8>> {
        None
    }

    fn excuses(_: &Finding, mess: &Mess) -> bool {
        mess.killed || mess.bad_agent
    }

    fn end_word(end: &End) -> Option<&'static str> {
        Some(match end {
            End::Finished { .. } | End::Local | End::NotSaid => "success",
            End::Failed(_) => "failed",
            // The wire has one word for them, and a session alone none for the last.
            End::Incomplete(failure) if failure.kind == FailureKind::Capture => "failed",
            End::Truncated(_)
            | End::Incomplete(_)
            | End::MaxSteps
            | End::BudgetExhausted(_)
            | End::Unverified
            | End::Blocked(_)
            | End::Yielded { .. }
            | End::Aborted { .. } => "incomplete",
            End::Cancelled(_) => "interrupted",
            End::Dropped(_) | End::Withdrawn => return None,
        })
    }

    fn info() -> SessionInfo {
        SessionInfo {
            session: "zero_1".into(),
            ..<Openmax as Speaks>::info()
        }
    }
}
