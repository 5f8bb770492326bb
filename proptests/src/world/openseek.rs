//! openseek in the world: an engine that serves.

use turnwire::{
    json::Members,
    protocol::{
        observer::{Dir, Finding},
        openmax::Openmax,
        openseek::{
            Asking, ClientConfig, ObserverConfig, Openseek, ServerConfig, preset,
            wire::{Command as HostLine, Event as AgentLine, Shapes},
        },
    },
    session::SessionConfig,
    vocab::*,
};

use super::{Mess, Speaks, openmax::line};
use crate::{
    scenario::Setup,
    script::{ToolNews, stop_job, task},
};

/// When the engine asks. Never `always`, whose questions no agent has asked.
fn asking(setup: &Setup) -> Asking {
    match setup.mode {
        1 | 2 => Asking::Never,
        _ => Asking::Ask,
    }
}

impl Speaks for Openseek {
    const TELLS_CALLS: bool = false;
    const OWNS: bool = true;

    fn session(config: &mut SessionConfig, setup: &Setup) {
        preset(config);
        setup.embed(config);
        config.timeouts.approval_us = None;
        config.settings.approvals = asking(setup).mode();
        // What only a host carries out can't be offered here.
        config.tools.retain(|tool| tool.route == Route::Driver);
        // The wire has words for nested runs and for jobs.
        if setup.seed > 1 {
            config.tools.extend([task(), stop_job()]);
            config.limits.runs = 2;
            config.limits.run_depth = 2;
        }
        config.limits.jobs = [3, 1, 0][usize::from(setup.running.min(2))];
        // An approval is the host's alone.
        config
            .hooks
            .retain(|hook| hook.spec.point != HookPoint::Permission);
        config.model.window = match setup.window {
            0 => 32_768,
            1 => 400,
            _ => 250,
        };
    }

    fn server(setup: &Setup) -> ServerConfig {
        ServerConfig::serve(setup.seed(), asking(setup))
    }

    fn client(setup: &Setup) -> ClientConfig {
        ClientConfig {
            asking: asking(setup),
            ..ClientConfig::default()
        }
    }

    fn observer(_: &Setup) -> ObserverConfig {
        ObserverConfig::default()
    }

    fn watched(pick: u8) -> ObserverConfig {
        let shapes = [Shapes::Seed, Shapes::Newer][usize::from(pick % 2)];
        ObserverConfig { shapes }
    }

    /// Lines that aren't JSON end the stream: these are what an engine refuses or passes over.
    fn bad_host_line(pick: u8) -> Vec<u8> {
        let lines: [&dyn Fn() -> Vec<u8>; 6] = [
            &|| br#"{"command":"reboot"}"#.to_vec(),
            &|| br#"{"command":"prompt"}"#.to_vec(),
            &|| br#"{"command":"steer","kind":"notice","text":"x"}"#.to_vec(),
            &|| br#"{"command":"approval","id":"ap-none-1","allow":true}"#.to_vec(),
            &|| br#"{"command":"goal","action":"set","text":" "}"#.to_vec(),
            &|| br#"[1]"#.to_vec(),
        ];
        line(&lines, pick)
    }

    fn bad_agent_line(pick: u8) -> Vec<u8> {
        let lines: [&dyn Fn() -> Vec<u8>; 6] = [
            &|| b"Segmentation fault".to_vec(),
            &|| br#"{"event":"agent_step"}"#.to_vec(),
            &|| b"{\"event\":\"assistant_delta\",\"content\":\"\xc3\x28\"}".to_vec(),
            &|| br#"{"event":"provider_request_timed_out"}"#.to_vec(),
            &|| br#"{"event":"approval_resolved","id":"nobody","outcome":"rejected"}"#.to_vec(),
            &|| b"42".to_vec(),
        ];
        line(&lines, pick)
    }

    fn says(command: &Command) -> bool {
        match command {
            Command::Cancel { what, .. } => !matches!(
                what,
                CancelWhat::Retry | CancelWhat::Shell | CancelWhat::Run(_)
            ),
            Command::Goal(goal) => !matches!(goal, GoalCommand::Pause | GoalCommand::Resume),
            Command::Prompt(_)
            | Command::Withdraw(_)
            | Command::Reply { .. }
            | Command::ReplyPart { .. }
            | Command::Barrier
            | Command::Compact { .. }
            | Command::Job(_)
            | Command::Close { .. } => true,
            Command::Promote(_)
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
            Dir::Host => HostLine::read(line, Shapes::Seed, &mut members)
                .ok()?
                .encode(&mut out),
            Dir::Agent => AgentLine::read(line, &mut members).ok()?.encode(&mut out),
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
        let Ok(AgentLine::ApprovalRequested(request)) = AgentLine::read(line, &mut members) else {
            return None;
        };
        let mut out = Vec::new();
        HostLine::Approval {
            id: request.id,
            allow: yes,
        }
        .encode(&mut out);
        out.push(b'\n');
        Some(out)
    }

    fn is_loss(finding: &str) -> bool {
        finding.starts_with("lost: ")
    }

    /// A provider may not say what a reply cost, and turns that begin by themselves may cross the end of the host's lines.
    fn excuses(finding: &Finding, mess: &Mess) -> bool {
        mess.killed || matches!(finding.rule.id, "OS-A09.i" | "OS-A11.a")
    }

    fn end_word(end: &End) -> Option<&'static str> {
        Some(match end {
            End::Finished { .. } | End::Local | End::NotSaid => "finished",
            End::Yielded { .. } => "yielded",
            End::MaxSteps => "max_steps",
            End::Cancelled(_) | End::Aborted { .. } => "aborted",
            End::Truncated(_)
            | End::Incomplete(_)
            | End::BudgetExhausted(_)
            | End::Unverified
            | End::Blocked(_)
            | End::Failed(_) => "failed",
            End::Dropped(_) | End::Withdrawn => return None,
        })
    }

    fn info() -> SessionInfo {
        SessionInfo {
            generation: "runtime-1".into(),
            ..<Openmax as Speaks>::info()
        }
    }
}
