//! agentx and claude in the world: the seed of a setup chooses which of the wires is spoken.

use serde_json::json;
use turnwire::{
    json::Members,
    protocol::{
        agentx::{
            Agentx, AgentxOutcome, ClientConfig, ObserverConfig, Policy, Preset, Selected,
            ServerConfig, preset,
            wire::{AgentLine, HostLine, OPEN_RULES, Operation},
        },
        observer::{Dir, Finding},
        openmax::Openmax,
    },
    session::SessionConfig,
    vocab::*,
};

use super::{Mess, Speaks, openmax::line};
use crate::{scenario::Setup, script::ToolNews};

/// Which wire a setup speaks.
fn policy(setup: &Setup) -> Policy {
    match setup.seed {
        0 => Policy::AGENTX,
        2 => Policy::AGENTX_FULL,
        _ => Policy::CLAUDE,
    }
}

impl Speaks for Agentx {
    const SETTLES: bool = false;
    const TELLS_CALLS: bool = false;

    fn session(config: &mut SessionConfig, setup: &Setup) {
        preset(config, &policy(setup));
        setup.embed(config);
        config.timeouts.approval_us = None;
        // What the host carries out is offered by it.
        config.tools.retain(|tool| tool.route == Route::Driver);
        config.settings.approvals = match setup.mode {
            1 => ApprovalMode::Auto,
            3 => ApprovalMode::AcceptEdits,
            4 => ApprovalMode::Never,
            5 => ApprovalMode::Plan,
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
            version: "1.2.3".into(),
            partial: true,
            states: true,
            provider: Some(Selected {
                id: "mock".into(),
                kind: "scripted".into(),
                efforts: Vec::new(),
                default_effort: None,
            }),
            ..ServerConfig::new(setup.seed(), policy(setup))
        }
    }

    fn client(setup: &Setup) -> ClientConfig {
        ClientConfig {
            seed: setup.seed(),
            policy: policy(setup),
            ..ClientConfig::default()
        }
    }

    fn observer(setup: &Setup) -> ObserverConfig {
        ObserverConfig {
            policy: policy(setup),
        }
    }

    fn watched(pick: u8) -> ObserverConfig {
        let preset = [Preset::Agentx, Preset::Claude, Preset::AgentxFull][usize::from(pick % 3)];
        ObserverConfig {
            policy: preset.policy(),
        }
    }

    /// Nearly all that is wrong ends the stream of the strict wire: these are what it passes over or refuses.
    fn bad_host_line(pick: u8) -> Vec<u8> {
        let lines: [&dyn Fn() -> Vec<u8>; 5] = [
            &|| br#"{"type":"from_the_future","text":1}"#.to_vec(),
            &|| {
                br#"{"type":"control_response","response":{"subtype":"success","request_id":"none","response":{}}}"#.to_vec()
            },
            &|| {
                br#"{"type":"control_request","request_id":"x","request":{"subtype":"reboot"}}"#
                    .to_vec()
            },
            &|| br#"{"type":"control_cancel_request","request_id":"none"}"#.to_vec(),
            &|| br#"{"type":"keep_alive"}"#.to_vec(),
        ];
        line(&lines, pick)
    }

    fn bad_agent_line(pick: u8) -> Vec<u8> {
        let lines: [&dyn Fn() -> Vec<u8>; 6] = [
            &|| b"Segmentation fault".to_vec(),
            &|| br#"{"type":"assistant"}"#.to_vec(),
            &|| b"{\"type\":\"assistant\",\"message\":\"\xc3\x28\"}".to_vec(),
            &|| br#"{"type":"from_the_future","text":1}"#.to_vec(),
            &|| {
                br#"{"type":"control_response","response":{"subtype":"success","request_id":"nobody"}}"#.to_vec()
            },
            &|| b"42".to_vec(),
        ];
        line(&lines, pick)
    }

    fn says(command: &Command) -> bool {
        match command {
            Command::Prompt(prompt) => prompt.deliver != Deliver::Context,
            Command::Cancel { what, .. } => !matches!(
                what,
                CancelWhat::Retry | CancelWhat::Compaction | CancelWhat::Shell
            ),
            Command::Set(setting) => matches!(
                setting,
                Setting::Approvals(_) | Setting::ThinkingBudget(_) | Setting::Model(_)
            ),
            Command::Offer(offer) => matches!(offer, Offer::Tools(_) | Offer::Hooks(_)),
            Command::Withdraw(_)
            | Command::Reply { .. }
            | Command::Barrier
            | Command::ReplyPart { .. }
            | Command::Rewind { .. }
            | Command::Reload
            | Command::Job(_)
            | Command::Close { .. } => true,
            Command::Promote(_)
            | Command::Compact { .. }
            | Command::Goal(_)
            | Command::Shell { .. }
            | Command::Session(_)
            | Command::SteerRun { .. }
            | Command::Recall(_) => false,
        }
    }

    fn again(dir: Dir, line: &[u8]) -> Option<Vec<u8>> {
        let mut members = Members::new();
        let mut out = Vec::new();
        match dir {
            Dir::Host => HostLine::decode(line, &OPEN_RULES, &mut members)
                .ok()?
                .encode(&mut out),
            Dir::Agent => AgentLine::decode(line, &OPEN_RULES, &mut members)
                .ok()?
                .encode(&mut out),
        }
        Some(out)
    }

    /// A question of a running call can't be told from one about another call of the same tool.
    fn brings(news: ToolNews) -> bool {
        news != ToolNews::Network
    }

    fn answer(_: &Self::Ask, pick: u8) -> Self::Outcome {
        match pick % 2 {
            0 => AgentxOutcome::Failure("not now".into()),
            _ => AgentxOutcome::Default,
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "few lines ask something")]
    fn consent(line: &[u8], yes: bool) -> Option<Vec<u8>> {
        let mut members = Members::new();
        let Ok(AgentLine::Request(request)) = AgentLine::decode(line, &OPEN_RULES, &mut members)
        else {
            return None;
        };
        let payload = match request.operation().ok()? {
            Operation::CanUseTool(_) if yes => json!({"behavior": "allow", "updatedInput": {}}),
            Operation::CanUseTool(_) => json!({"behavior": "deny", "message": "no"}),
            Operation::HookCallback(_) => json!({}),
            Operation::Elicitation(_) if yes => json!({"action": "accept", "content": {}}),
            Operation::Elicitation(_) => json!({"action": "decline"}),
            _ => return None,
        };
        let id = request.request_id.name()?;
        let answer = json!({
            "type": "control_response",
            "response": {"subtype": "success", "request_id": id, "response": payload},
        });
        Some(format!("{answer}\n").into_bytes())
    }

    /// The strict wire can't take back a prompt that waits, and doesn't say that a reply was void: its pieces stand
    /// before those of the next one.
    fn is_loss(finding: &str) -> bool {
        finding.starts_with("this agent can't drop the prompts")
            || finding.ends_with("isn't what its deltas add up to; it counts")
    }

    fn excuses(finding: &Finding, mess: &Mess) -> bool {
        // A signal ends the turn, and nobody sees it.
        mess.killed || mess.signal && finding.rule.id == "WIRE-PERM-001.b"
    }

    /// What isn't a success is an error, and what kind of one the wire doesn't say of each.
    fn end_word(end: &End) -> Option<&'static str> {
        Some(match end {
            End::Finished { .. } | End::Local | End::NotSaid => "success",
            End::MaxSteps => "error_max_turns",
            End::BudgetExhausted(BudgetKind::Money) => "error_max_budget_usd",
            End::Cancelled(_)
            | End::BudgetExhausted(BudgetKind::Tokens)
            | End::Yielded { .. }
            | End::Truncated(_)
            | End::Incomplete(_)
            | End::Unverified
            | End::Blocked(_)
            | End::Failed(_)
            | End::Aborted { .. } => "error",
            End::Dropped(_) | End::Withdrawn => return None,
        })
    }

    fn info() -> SessionInfo {
        SessionInfo {
            session: "ses_00000000000000000000000000000001".into(),
            model: ModelRef {
                provider: Some("mock".into()),
                model: "m".into(),
            },
            ..<Openmax as Speaks>::info()
        }
    }
}
