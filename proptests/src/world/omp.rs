//! omp in the world.

use serde_json::json;
use turnwire::{
    json::Members,
    protocol::{
        observer::{Dir, Finding},
        omp::{
            ClientConfig, Generation, ObserverConfig, Omp, OmpAsk, OmpOutcome, ServerConfig,
            preset,
            wire::{AgentLine, Frame, HostLine, UiMethod, host_text},
        },
        openmax::Openmax,
    },
    session::SessionConfig,
    vocab::*,
};

use super::{Mess, Speaks, openmax::line};
use crate::{scenario::Setup, script::ToolNews};

impl Speaks for Omp {
    const SETTLES: bool = false;

    fn session(config: &mut SessionConfig, setup: &Setup) {
        preset(config);
        setup.embed(config);
        config.timeouts.approval_us = None;
        // What the host carries out is offered by it.
        config.tools.retain(|tool| tool.route == Route::Driver);
        // An approval is the host's alone.
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
        ServerConfig::new(setup.seed())
    }

    fn client(_: &Setup) -> ClientConfig {
        ClientConfig::default()
    }

    fn observer(_: &Setup) -> ObserverConfig {
        ObserverConfig::default()
    }

    fn watched(pick: u8) -> ObserverConfig {
        ObserverConfig {
            generation: [Generation::G3, Generation::G2, Generation::G1][usize::from(pick % 3)],
        }
    }

    fn bad_host_line(pick: u8) -> Vec<u8> {
        let lines: [&dyn Fn() -> Vec<u8>; 7] = [
            &|| b"nonsense".to_vec(),
            &|| br#"{"id":"x","type":"reboot"}"#.to_vec(),
            &|| br#"{"id":"x","type":"prompt"}"#.to_vec(),
            &|| br#"{"type":"host_tool_result","id":"none","result":{}}"#.to_vec(),
            &|| br#"{"type":"extension_ui_response","id":"none","value":"Approve"}"#.to_vec(),
            &|| b"null".to_vec(),
            &|| br#"[1]"#.to_vec(),
        ];
        line(&lines, pick)
    }

    fn bad_agent_line(pick: u8) -> Vec<u8> {
        let lines: [&dyn Fn() -> Vec<u8>; 6] = [
            &|| b"Segmentation fault".to_vec(),
            &|| br#"{"type":"message_update"}"#.to_vec(),
            &|| b"{\"type\":\"message_update\",\"delta\":\"\xc3\x28\"}".to_vec(),
            &|| br#"{"type":"from_the_future","text":1}"#.to_vec(),
            &|| br#"{"type":"response","id":"nobody","command":"x","success":true}"#.to_vec(),
            &|| b"42".to_vec(),
        ];
        line(&lines, pick)
    }

    fn says(command: &Command) -> bool {
        match command {
            Command::Prompt(prompt) => prompt.deliver != Deliver::Context,
            Command::Cancel { what, .. } => !matches!(what, CancelWhat::Job(_)),
            Command::Set(setting) => !matches!(
                setting,
                Setting::Approvals(_)
                    | Setting::ThinkingBudget(_)
                    | Setting::Thinking(None)
                    | Setting::Model(None)
            ),
            Command::Offer(offer) => !matches!(offer, Offer::Hooks(_)),
            Command::Withdraw(_)
            | Command::Promote(_)
            | Command::Reply { .. }
            | Command::Barrier
            | Command::ReplyPart { .. }
            | Command::Compact { .. }
            | Command::Goal(_)
            | Command::Shell { .. }
            | Command::Session(_)
            | Command::SteerRun { .. }
            | Command::Close { .. } => true,
            Command::Recall(_) | Command::Rewind { .. } | Command::Reload | Command::Job(_) => {
                false
            }
        }
    }

    fn again(dir: Dir, line: &[u8]) -> Option<Vec<u8>> {
        let mut members = Members::new();
        let mut out = Vec::new();
        match dir {
            Dir::Host => {
                let text = host_text(line);
                HostLine::decode(&text, &mut members).ok()?.encode(&mut out);
            }
            Dir::Agent => AgentLine::decode(line, &mut members).ok()?.encode(&mut out),
        }
        Some(out)
    }

    /// A question of a running call can't be told from one about another call of the same tool.
    fn brings(news: ToolNews) -> bool {
        news != ToolNews::Network
    }

    /// A success with a payload that fits is the embedder's duty, and differs from ask to ask: where one without is
    /// none, it is refused.
    fn answer(ask: &Self::Ask, pick: u8) -> Self::Outcome {
        match (pick % 2, ask) {
            (0, OmpAsk::Handoff { .. } | OmpAsk::LiveStop) => OmpOutcome::Success(None),
            (0, _) => OmpOutcome::Failure("not now".into()),
            _ => OmpOutcome::Default,
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "few lines ask something")]
    fn consent(line: &[u8], yes: bool) -> Option<Vec<u8>> {
        let mut members = Members::new();
        let line = AgentLine::decode(line, &mut members).ok()?;
        let answer = match &line {
            AgentLine::Ui(request) => {
                let (name, value) = match request.method {
                    UiMethod::Select(_) => ("value", json!(if yes { "Approve" } else { "Deny" })),
                    UiMethod::Confirm(_) => ("confirmed", json!(yes)),
                    UiMethod::Input(_) | UiMethod::Editor(_) if yes => ("value", json!("x")),
                    UiMethod::Input(_) | UiMethod::Editor(_) => ("cancelled", json!(true)),
                    _ => return None,
                };
                json!({"type": "extension_ui_response", "id": request.id.0, name: value})
            }
            AgentLine::Frame(Frame::HostToolCall(call)) => {
                let content = json!({"content": [{"type": "text", "text": "x"}]});
                json!({"type": "host_tool_result", "id": call.id.0, "result": content, "isError": !yes})
            }
            AgentLine::Frame(Frame::HostUriRequest(request)) if yes => {
                json!({"type": "host_uri_result", "id": request.id.0, "content": "x"})
            }
            AgentLine::Frame(Frame::HostUriRequest(request)) => {
                json!({"type": "host_uri_result", "id": request.id.0, "isError": true, "error": "no"})
            }
            _ => return None,
        };
        Some(format!("{answer}\n").into_bytes())
    }

    fn excuses(_: &Finding, mess: &Mess) -> bool {
        mess.killed
    }

    fn end_word(end: &End) -> Option<&'static str> {
        Some(match end {
            End::Finished { .. } | End::Yielded { .. } | End::NotSaid => "completed",
            End::Local => "local",
            End::Cancelled(_) => "aborted",
            End::Truncated(_)
            | End::Incomplete(_)
            | End::MaxSteps
            | End::BudgetExhausted(_)
            | End::Unverified
            | End::Blocked(_)
            | End::Failed(_)
            | End::Aborted { .. } => "error",
            End::Dropped(_) | End::Withdrawn => return None,
        })
    }

    fn info() -> SessionInfo {
        SessionInfo {
            model: ModelRef {
                provider: Some("mock".into()),
                model: "m".into(),
            },
            ..<Openmax as Speaks>::info()
        }
    }
}
