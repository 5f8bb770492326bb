//! openmax in the world.

use turnwire::{
    json::Members,
    protocol::{
        observer::{Dir, Finding},
        openmax::{
            ClientConfig, ObserverConfig, Openmax, ServerConfig, Wire, preset,
            wire::{AgentLine, Approve, EventLine, HostLine},
        },
    },
    session::SessionConfig,
    vocab::*,
};

use super::{Mess, Speaks, speaks::LINE_MAX};
use crate::{scenario::Setup, script::ToolNews};

impl Speaks for Openmax {
    fn session(config: &mut SessionConfig, setup: &Setup) {
        preset(config);
        setup.embed(config);
        config.timeouts.approval_us = None;
        // The wire has lines for calls that the agent carries out itself, and for these three modes.
        config.tools.retain(|tool| tool.route == Route::Driver);
        // An approval stays open until the host answers it (OM-14): no hook may decide beside it.
        config
            .hooks
            .retain(|hook| hook.spec.point != HookPoint::Permission);
        config.settings.approvals = match setup.mode {
            1 => ApprovalMode::Auto,
            2 => ApprovalMode::ReadOnly,
            _ => ApprovalMode::Ask,
        };
        config.model.window = match setup.window {
            0 => 32_768,
            1 => 1_500,
            _ => 1_250,
        };
    }

    fn server(setup: &Setup) -> ServerConfig {
        ServerConfig {
            coalesce_us: setup.coalesce_us(),
            ..ServerConfig::new("0.1.0".into(), setup.seed())
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
            wire: [Wire::V6, Wire::V5][usize::from(pick % 2)],
        }
    }

    fn bad_host_line(pick: u8) -> Vec<u8> {
        let deep = || format!("{{\"cmd\":{}", "[".repeat(200)).into_bytes();
        let lines: [&dyn Fn() -> Vec<u8>; 9] = [
            &|| b"nonsense".to_vec(),
            &|| br#"{"cmd":"reboot"}"#.to_vec(),
            &|| br#"{"cmd":"user"}"#.to_vec(),
            &|| br#"{"cmd":"user","text":"a","te\u0078t":"b"}"#.to_vec(),
            &|| b"{\"cmd\":\"user\",\"text\":\"\xff\"}".to_vec(),
            &|| br#"[{"cmd":"quit"}]"#.to_vec(),
            &|| br#"{"cmd":"cancel"} {"cmd":"cancel"}"#.to_vec(),
            &deep,
            &|| vec![b'x'; LINE_MAX + 1],
        ];
        line(&lines, pick)
    }

    fn bad_agent_line(pick: u8) -> Vec<u8> {
        let lines: [&dyn Fn() -> Vec<u8>; 7] = [
            &|| b"Segmentation fault".to_vec(),
            &|| br#"{"type":"token","text":"no session"}"#.to_vec(),
            &|| br#"{"session_id":"s","type":"done","type":"done","stop_reason":"stop"}"#.to_vec(),
            &|| b"{\"session_id\":\"s\",\"type\":\"token\",\"text\":\"\xc3\x28\"}".to_vec(),
            &|| br#"{"session_id":"s","type":"tool_start"}"#.to_vec(),
            &|| br#"{"session_id":"s","type":"from_the_future","text":1}"#.to_vec(),
            &|| b"42".to_vec(),
        ];
        line(&lines, pick)
    }

    fn says(command: &Command) -> bool {
        match command {
            Command::Prompt(prompt) => prompt.deliver != Deliver::Context,
            Command::Cancel { what, .. } => match what {
                CancelWhat::Turn { .. }
                | CancelWhat::TurnElseNextQueued
                | CancelWhat::Everything => true,
                CancelWhat::Retry
                | CancelWhat::Compaction
                | CancelWhat::Shell
                | CancelWhat::Job(_)
                | CancelWhat::Run(_) => false,
            },
            Command::Withdraw(_)
            | Command::Promote(_)
            | Command::Reply { .. }
            | Command::Set(_)
            | Command::Reload
            | Command::Barrier
            | Command::ReplyPart { .. }
            | Command::Close { .. } => true,
            Command::Offer(_)
            | Command::Recall(_)
            | Command::Compact { .. }
            | Command::Rewind { .. }
            | Command::Goal(_)
            | Command::Job(_)
            | Command::Shell { .. }
            | Command::Session(_)
            | Command::SteerRun { .. } => false,
        }
    }

    fn again(dir: Dir, line: &[u8]) -> Option<Vec<u8>> {
        let mut members = Members::new();
        let mut out = Vec::new();
        match dir {
            Dir::Host => HostLine::decode(line, &mut members)
                .ok()
                .filter(|line| !matches!(line, HostLine::Unknown { .. }))?
                .encode(&mut out),
            Dir::Agent => AgentLine::decode(line, &mut members)
                .ok()
                .filter(|line| !matches!(line, AgentLine::Unknown { .. }))?
                .encode(&mut out),
        }
        Some(out)
    }

    /// A question of a running call can't be told from one about another call of the same tool.
    fn brings(news: ToolNews) -> bool {
        news != ToolNews::Network
    }

    fn answer(ask: &Self::Ask, _: u8) -> Self::Outcome {
        *ask
    }

    fn consent(line: &[u8], yes: bool) -> Option<Vec<u8>> {
        let mut members = Members::new();
        let Ok(AgentLine::Event {
            event: EventLine::ApprovalRequest(request),
            ..
        }) = AgentLine::decode(line, &mut members)
        else {
            return None;
        };
        let mut out = Vec::new();
        HostLine::Approve(Approve {
            approval_id: request.approval_id,
            approved: yes,
        })
        .encode(&mut out);
        out.push(b'\n');
        Some(out)
    }

    fn excuses(finding: &Finding, mess: &Mess) -> bool {
        // A crash, or a signal, declines what is open.
        finding.rule.id == "OM-14.e" && (mess.signal || mess.crash || mess.killed)
            // The line in which the process died.
            || finding.rule.id == "OM-12.a" && mess.killed
    }

    fn end_word(end: &End) -> Option<&'static str> {
        Some(match end {
            End::Finished { .. } | End::Local | End::Yielded { .. } => "stop",
            End::Truncated(_) | End::Incomplete(_) => "truncated",
            End::MaxSteps => "max_iterations",
            End::BudgetExhausted(_) => "budget_exhausted",
            End::Unverified => "unverified",
            End::Blocked(_) => "blocked",
            End::Cancelled(_) => "cancelled",
            End::Failed(_) | End::Aborted { .. } => "error",
            End::Dropped(_) | End::Withdrawn | End::NotSaid => return None,
        })
    }

    fn info() -> SessionInfo {
        let settings = SessionConfig::new(Default::default()).settings;
        SessionInfo {
            session: "6f1e6a52-0000-4000-8000-000000000001".into(),
            name: None,
            file: None,
            generation: "".into(),
            root: Some("/project".into()),
            cwd: "/project".into(),
            product: "turnwire".into(),
            continued: false,
            history: Vec::new(),
            summarised: Vec::new(),
            model: ModelRef {
                provider: None,
                model: "m".into(),
            },
            api_model: None,
            efforts: Vec::new(),
            settings: Box::new(settings),
            tools: Vec::new(),
            briefing: Briefing::default(),
            mcp: Vec::new(),
            commands: Vec::new(),
            skills: Vec::new(),
            media: Vec::new(),
        }
    }
}

pub(super) fn line(lines: &[&dyn Fn() -> Vec<u8>], pick: u8) -> Vec<u8> {
    let at = usize::from(pick).checked_rem(lines.len()).unwrap_or(0);
    let mut line = lines.get(at).map(|line| line()).unwrap_or_default();
    line.push(b'\n');
    line
}
