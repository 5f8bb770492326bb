//! `result`: how a turn ended, what it took, and what it cost.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::Face;
use super::blocks::{self, raw};
use super::reply::{all, first, timestamp};
use super::sums::{self, Sums};
use super::turn::{Cut, Over, Turn};
use crate::json::Str;
use crate::protocol::Outbox;
use crate::protocol::agentx::Agentx;
use crate::protocol::agentx::policy::{ApiFailure, Extensions, NumTurns, RecordForm};
use crate::protocol::agentx::wire::{
    AgentLine, Any, Assistant, Denial, Maybe, Nullable, Num, ReplyError, ResultKind, TurnResult,
};
use crate::vocab::*;

/// How a turn's end looks.
#[derive(Debug)]
struct Shown {
    kind: ResultKind<'static>,
    /// What went wrong; `None`: nothing.
    error: Option<String>,
    /// A success that carries a failure's text.
    failed: bool,
    stop: Option<Text>,
    reason: &'static str,
}

impl Face {
    /// Writes the result of a turn.
    pub(super) fn say_result(&mut self, over: &Over, out: &mut Outbox<Agentx>) {
        let policy = self.config.policy;
        if let (End::Failed(failure), ApiFailure::Retried) = (&over.end, policy.api_failure) {
            self.say_failure(failure, &over.turn.uuids, out);
        }
        let shown = self.shown(over);
        let rich = policy.record_form == RecordForm::Provider;
        // The prompt itself was blocked: there was no turn to count.
        let blocked = if let End::Blocked(why) = &over.end
            && rich
            && over.turn.requests == 0
        {
            Some(why)
        } else {
            None
        };
        let text = match &over.answer {
            Some(TurnAnswer::Text(text)) => String::from(&**text),
            Some(TurnAnswer::Captured { .. }) | None => {
                over.turn.last_text.clone().unwrap_or_default()
            }
        };
        let text = if shown.failed {
            over.end
                .failure()
                .map_or(text, |failure| String::from(&*failure.text))
        } else if let Some(why) = blocked {
            alloc::format!("UserPromptSubmit operation blocked by hook:\n{why}")
        } else {
            text
        };
        let is_error = shown.failed || shown.error.is_some();
        self.exit.last_failed(is_error);
        let structured = match &over.answer {
            Some(TurnAnswer::Captured { input, .. }) if self.printer.is_clear(input) => {
                Any(Some(raw(input)))
            }
            Some(TurnAnswer::Captured { .. } | TurnAnswer::Text(_)) | None => Any::ABSENT,
        };
        let denied: Vec<Denial<'_>> = over
            .turn
            .denied
            .iter()
            .map(|denied| Denial {
                tool_name: (&*denied.tool).into(),
                tool_use_id: denied.id.as_str().into(),
                tool_input: blocks::arguments(denied.input.as_ref(), &self.printer),
                ..Denial::default()
            })
            .collect();
        let stamp = self.printer.stamp();
        let sums = if rich { &self.sums } else { &over.turn.sums };
        let window = self.mirror.context().map(|context| context.window);
        let status = over.end.failure().and_then(|failure| failure.status);
        let line = TurnResult {
            is_error,
            api_error_status: match (rich && shown.error.is_none(), status) {
                (false, _) => Maybe::Absent,
                (true, Some(status)) if shown.failed => Maybe::Value(u64::from(status).into()),
                (true, _) => Maybe::Null,
            },
            duration_ms: (over.report.wall_us / 1_000).into(),
            duration_api_ms: (over.report.api_us.unwrap_or(over.turn.api_us) / 1_000).into(),
            num_turns: match policy.num_turns {
                NumTurns::Requests => over.report.requests.map_or(over.turn.requests, u64::from),
                NumTurns::UserRecords if blocked.is_some() => 0,
                NumTurns::UserRecords => over.turn.user_records.saturating_add(1),
            },
            result: shown.error.is_none().then(|| text.as_str().into()),
            stop_reason: shown
                .stop
                .as_deref()
                .map_or(Maybe::Null, |stop| Maybe::Value(stop.into())),
            session_id: (&*stamp.session).into(),
            total_cost_usd: sums.cost(),
            usage: Box::new(sums::usage(over.turn.sums.usage(), policy.record_form)),
            model_usage: Some(sums.by_model(window, 0)),
            permission_denials: Some(denied),
            structured_output: structured,
            terminal_reason: rich.then(|| shown.reason.into()),
            prompt_uuid: self.prompt_uuid(over.turn.uuids.first()),
            uuid: stamp.uuid.as_str().into(),
            errors: shown
                .error
                .as_deref()
                .map(|error| Vec::from([error.into()])),
            user_message_uuid: first(&over.turn.uuids).filter(|_| rich),
            user_message_uuids: all(&over.turn.uuids).filter(|_| rich),
            subtype: shown.kind,
            ..TurnResult::default()
        };
        let line = AgentLine::from(line);
        self.printer.line(out, |bytes| line.encode(bytes));
    }

    /// `prompt_uuid`, where this wire has it.
    fn prompt_uuid<'a>(&self, uuid: Option<&'a Text>) -> Option<Str<'a>> {
        let has = self.config.policy.attachments_providers_prompt_uuid == Extensions::Present;
        uuid.filter(|_| has).map(|uuid| Str::from(&**uuid))
    }

    /// A prompt that makes no sense: a result of its own, and nothing around it.
    pub(super) fn input_error(
        &mut self,
        uuid: Option<&str>,
        error: &str,
        out: &mut Outbox<Agentx>,
    ) {
        self.exit.last_failed(true);
        let stamp = self.printer.stamp();
        let model = self.mirror.info().map(|info| info.model.clone());
        let sums = match &model {
            Some(model) => Sums::default().with(model),
            None => Sums::default(),
        };
        let has = self.config.policy.attachments_providers_prompt_uuid == Extensions::Present;
        let line = TurnResult {
            subtype: ResultKind::ErrorDuringExecution,
            is_error: true,
            stop_reason: Maybe::Value("input_error".into()),
            session_id: (&*stamp.session).into(),
            total_cost_usd: Nullable(None),
            usage: Box::new(sums::usage(
                Usage::default(),
                self.config.policy.record_form,
            )),
            model_usage: Some(sums.by_model(None, 0)),
            permission_denials: Some(Vec::new()),
            prompt_uuid: uuid.filter(|_| has).map(Str::from),
            uuid: stamp.uuid.as_str().into(),
            errors: Some(Vec::from([error.into()])),
            ..TurnResult::default()
        };
        let line = AgentLine::from(line);
        self.printer.line(out, |bytes| line.encode(bytes));
    }

    /// A result for a prompt that got no turn of its own.
    pub(super) fn result_without_turn(
        &mut self,
        uuid: Option<&Text>,
        end: &End,
        out: &mut Outbox<Agentx>,
    ) {
        let mut turn = Turn::none();
        turn.uuids.extend(uuid.cloned());
        let over = Over::at_once(turn, end.clone());
        self.say_result(&over, out);
    }

    /// How the end of a turn looks (section 2.3 of the contract's map).
    fn shown(&self, over: &Over) -> Shown {
        let policy = self.config.policy;
        let rich = policy.record_form == RecordForm::Provider;
        let finish = over.turn.finish.clone();
        let error = |kind, text: String, stop, reason| Shown {
            kind,
            error: Some(text),
            failed: false,
            stop,
            reason,
        };
        let execution = ResultKind::ErrorDuringExecution;
        match &over.end {
            End::Finished { finish: last } => Shown {
                kind: ResultKind::Success,
                error: None,
                failed: false,
                stop: last.clone().or(finish),
                reason: "completed",
            },
            End::Local | End::NotSaid => Shown {
                kind: ResultKind::Success,
                error: None,
                failed: false,
                stop: None,
                reason: "completed",
            },
            End::Cancelled(CancelWhy::Preempted(_)) if rich => Shown {
                kind: ResultKind::Success,
                error: None,
                failed: false,
                stop: None,
                reason: "aborted_streaming",
            },
            End::Cancelled(_) => {
                let (stop, reason) = match over.turn.cut {
                    _ if !rich => (Some("cancelled".into()), "aborted_streaming"),
                    Cut::Tools => (finish, "aborted_tools"),
                    Cut::Streaming | Cut::Nothing => (None, "aborted_streaming"),
                };
                error(execution, "The turn was cancelled".into(), stop, reason)
            }
            End::Failed(failure) if policy.api_failure == ApiFailure::Retried => Shown {
                kind: ResultKind::Success,
                error: None,
                failed: true,
                stop: Some("stop_sequence".into()),
                reason: if is_api(failure.kind) {
                    "api_error"
                } else {
                    "error"
                },
            },
            End::Failed(failure) => error(execution, (&*failure.text).into(), None, "error"),
            End::Truncated(failure) => error(execution, (&*failure.text).into(), None, "error"),
            End::Incomplete(failure) if failure.kind == FailureKind::Capture => error(
                ResultKind::ErrorMaxStructuredOutputRetries,
                (&*failure.text).into(),
                finish,
                "max_structured_output_retries",
            ),
            End::Incomplete(failure) => error(execution, (&*failure.text).into(), finish, "error"),
            End::MaxSteps => error(
                ResultKind::ErrorMaxTurns,
                "The limit on turns is reached".into(),
                finish,
                "max_turns",
            ),
            End::BudgetExhausted(BudgetKind::Money) => error(
                ResultKind::ErrorMaxBudgetUsd,
                "The budget is used up".into(),
                finish,
                "max_budget",
            ),
            End::BudgetExhausted(BudgetKind::Tokens) => error(
                execution,
                "The token budget is used up".into(),
                finish,
                "error",
            ),
            End::Aborted { reason } => error(execution, (&**reason).into(), finish, "error"),
            // A hook that lets nothing go on is no error there.
            End::Blocked(_) if rich => Shown {
                kind: ResultKind::Success,
                error: None,
                failed: false,
                stop: finish,
                reason: "hook_stopped",
            },
            End::Blocked(text) => error(execution, (&**text).into(), finish, "hook_stopped"),
            End::Unverified => error(
                execution,
                "The end could not be verified".into(),
                finish,
                "error",
            ),
            End::Yielded { .. } => error(
                execution,
                "The turn gave way after a compaction".into(),
                finish,
                "error",
            ),
            End::Dropped(_) | End::Withdrawn => {
                error(execution, "The prompt was taken back".into(), None, "error")
            }
        }
    }

    /// The reply that tells of a failure.
    fn say_failure(&mut self, failure: &Failure, prompts: &[Text], out: &mut Outbox<Agentx>) {
        self.begin(out);
        let stamp = self.printer.stamp();
        let id = self.printer.uuid();
        let time = timestamp(self.now);
        let text = Block::Text(failure.text.clone());
        let Some(block) =
            blocks::reply(&text, RecordForm::Provider, &mut self.calls, &self.printer)
        else {
            return;
        };
        let mut message = blocks::assistant_message(
            &id,
            "<synthetic>",
            Some(block),
            blocks::no_usage(RecordForm::Provider),
            RecordForm::Provider,
        );
        message.stop_reason = Maybe::Value("stop_sequence".into());
        message.stop_sequence = Maybe::Value("".into());
        let line = Assistant {
            message,
            parent_tool_use_id: Maybe::Null,
            session_id: (&*stamp.session).into(),
            uuid: stamp.uuid.as_str().into(),
            timestamp: Some(time.as_str().into()),
            error: Some(reply_error(failure.kind)),
            is_api_error_message: Some(true),
            api_error_status: failure.status.map_or(Maybe::Null, |status| {
                Maybe::Value(Num::from(u64::from(status)))
            }),
            user_message_uuid: first(prompts),
            user_message_uuids: all(prompts),
            ..Assistant::default()
        };
        let line = AgentLine::from(line);
        self.printer.line(out, |bytes| line.encode(bytes));
    }
}

/// Whether the provider is to blame.
fn is_api(kind: FailureKind) -> bool {
    match kind {
        FailureKind::Auth
        | FailureKind::Billing
        | FailureKind::RateLimit
        | FailureKind::Overloaded
        | FailureKind::InvalidRequest
        | FailureKind::Server
        | FailureKind::Transport
        | FailureKind::StreamCut
        | FailureKind::ContextFull
        | FailureKind::MaxOutput => true,
        FailureKind::Tool
        | FailureKind::Capture
        | FailureKind::Hook
        | FailureKind::Store
        | FailureKind::Setup
        | FailureKind::Input
        | FailureKind::Internal => false,
    }
}

/// Why a reply failed, in the contract's words.
pub(super) fn reply_error(kind: FailureKind) -> ReplyError<'static> {
    match kind {
        FailureKind::Auth => ReplyError::AuthenticationFailed,
        FailureKind::Billing => ReplyError::BillingError,
        FailureKind::RateLimit => ReplyError::RateLimit,
        FailureKind::InvalidRequest => ReplyError::InvalidRequest,
        FailureKind::Overloaded | FailureKind::Server => ReplyError::ServerError,
        FailureKind::MaxOutput => ReplyError::MaxOutputTokens,
        FailureKind::Transport
        | FailureKind::StreamCut
        | FailureKind::ContextFull
        | FailureKind::Tool
        | FailureKind::Capture
        | FailureKind::Hook
        | FailureKind::Store
        | FailureKind::Setup
        | FailureKind::Input
        | FailureKind::Internal => ReplyError::Unknown,
    }
}
