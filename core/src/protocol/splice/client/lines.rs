//! Lines of the agent.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::super::SpliceExtra;
use super::super::wire::{
    CostProvenance, CostStatus, Event as Line, Marker, Num, RunStart, StageStatus,
    Usage as UsageLine,
};
use super::region::Region;
use super::{ClientFace, Out, Stage, State};
use crate::protocol::heard::message;
use crate::vocab::*;

impl ClientFace {
    #[allow(clippy::wildcard_enum_match_arm, reason = "`body` has the rest")]
    pub(super) fn hear(&mut self, line: &Line<'_>, out: &mut Out) {
        if self.state == State::Over {
            return out.finding("a line behind the end of the run");
        }
        match line {
            Line::RunStart(line) => self.run_start(line, out),
            Line::Error(line) => self.heard_error(&line.code, line.message.as_deref(), out),
            Line::RunEnd(line) => self.run_end(&line.status, line.exit_code, out),
            Line::Permission(_) | Line::Restore(_) | Line::Unknown(_) => {
                out.extra(SpliceExtra::of(line));
            }
            Line::Warning(warning) => {
                let text = warning.message.as_deref().unwrap_or("");
                let (level, code) = (Level::Warning, None);
                let text = text.into();
                out.say(What::Notice { level, code, text });
            }
            line => {
                if self.state != State::Running {
                    out.finding("a line of a run that hasn't begun");
                    self.opened(out);
                }
                self.body(line, out);
            }
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "`hear` has all others")]
    fn body(&mut self, line: &Line<'_>, out: &mut Out) {
        match line {
            Line::Reasoning(line) => self.reasoning(line.delta.as_deref().unwrap_or(""), out),
            Line::Text(line) => {
                let text = line.delta.as_deref().unwrap_or("");
                if let Some(region) = self.region() {
                    region.delta(Kind::Text, text, out);
                }
            }
            Line::ToolCallStart(line) => {
                let wire = line.id.as_deref().unwrap_or("");
                let name = line.name.as_deref().unwrap_or("");
                if let Some(region) = self.region() {
                    let at = region.call(wire, name, out);
                    self.calls.write(wire, at);
                }
            }
            Line::ToolCallDelta(line) => {
                let call = self.calls.written(&line.id);
                let text = line.delta.as_deref().unwrap_or("");
                let region = self.region();
                let taken = match (call, region) {
                    (Some(call), Some(region)) => region.argument(call, text, out),
                    (_, _) => false,
                };
                if !taken {
                    out.finding("a piece of arguments that didn't begin");
                }
            }
            Line::ToolCall(line) => self.call_started(line, out),
            Line::ToolResult(line) => self.call_ended(line, out),
            Line::PermissionRequest(line) => self.permission_request(line, out),
            Line::PermissionDecision(line) => self.permission_decision(line, out),
            Line::Checkpoint(line) => {
                let files = line.checkpoint.files.as_deref().unwrap_or_default();
                self.checkpoint(files, out);
            }
            Line::Usage(line) => self.usage(line, out),
            Line::Final(line) => {
                let text = line.text.as_deref().unwrap_or("");
                self.answer = Some(text.into());
                if let Some(region) = self.region() {
                    region.end_message(Stop::NotSaid, out);
                }
                let is_result = text.starts_with('{') || line.meta.is_some();
                if is_result {
                    out.extra(SpliceExtra::of(&Line::Final(line.clone())));
                }
            }
            _ => {}
        }
    }

    fn run_start(&mut self, line: &RunStart<'_>, out: &mut Out) {
        if self.state == State::Running {
            return out.finding("the run has begun before");
        }
        let text = |member: &Option<crate::json::Str<'_>>| member.as_deref().map(Text::from);
        if let Some(session) = text(&line.session_id) {
            self.info.session = session;
        }
        if let Some(cwd) = text(&line.cwd) {
            self.info.root = Some(cwd.clone());
            self.info.cwd = cwd;
        }
        if let Some(model) = text(&line.model) {
            self.info.model.model = model;
        }
        self.info.model.provider = text(&line.provider);
        self.info.api_model = text(&line.api_model);
        self.opened(out);
    }

    /// The run begins, and the prompt's turn with it.
    fn opened(&mut self, out: &mut Out) {
        self.state = State::Running;
        out.say(What::Opened(self.info.clone()));
        let asked = self.asked.take();
        let cause = match &asked {
            Some(asked) => {
                let answer = Answer::Admitted(Admitted::Started);
                out.reply(asked.command, Seen::Real, Ok(answer));
                Cause::Prompt
            }
            None => Cause::NotSaid,
        };
        let main = Region::begin(RunId::MAIN, cause, self.config.reply_bytes, out);
        if let Some(asked) = asked {
            let turn = Some(main.turn());
            let prompt = asked.id;
            out.infer(What::PromptApplied { prompt, turn });
            let blocks: Vec<Arc<Block>> = asked.content.into_iter().map(Arc::new).collect();
            let id = out.ids.message();
            let mut said = message(id, Role::User, blocks, Origin::Host, out);
            said.prompt = Some(prompt);
            out.infer(What::Message(said.into()));
            self.prompt = Some(prompt);
        }
        self.main = Some(main);
    }

    fn reasoning(&mut self, delta: &str, out: &mut Out) {
        if let Some(marker) = Marker::read(delta) {
            return self.marker(&marker, out);
        }
        if let Some(region) = self.region() {
            region.delta(Kind::Thinking, delta, out);
        }
    }

    fn marker(&mut self, marker: &Marker<'_>, out: &mut Out) {
        let status = match &marker.status {
            StageStatus::Running => return self.stage_begins(&marker.name, out),
            StageStatus::Completed => RunStatus::Completed,
            StageStatus::Skipped => RunStatus::Skipped,
            StageStatus::Incomplete => RunStatus::Incomplete,
            StageStatus::Failed => RunStatus::Failed,
            // A word of a newer agent: nothing is claimed.
            StageStatus::Other(_) => return,
        };
        if self
            .stage
            .as_ref()
            .is_none_or(|stage| stage.name != *marker.name)
        {
            out.finding("a marker ends a stage that doesn't run");
            self.stage_begins(&marker.name, out);
        }
        self.stage_ends(status, Seen::Real, &marker.detail, out);
    }

    fn stage_begins(&mut self, name: &str, out: &mut Out) {
        if self.stage.is_some() {
            self.stage_ends(RunStatus::Failed, Seen::Inferred, "", out);
        }
        if let Some(main) = &mut self.main {
            main.end_message(Stop::NotSaid, out);
        }
        let times = self.times.entry(String::from(name)).or_default();
        *times = times.saturating_add(1);
        let run = out.ids.run();
        let kind = RunKind::Stage {
            name: name.into(),
            iteration: *times,
        };
        let (label, call) = (name.into(), None);
        out.say(What::RunStarted {
            run,
            kind,
            label,
            call,
        });
        let mut region = Region::begin(run, Cause::NotSaid, self.config.reply_bytes, out);
        if self.bound {
            region.bind();
        }
        let name = name.into();
        self.stage = Some(Stage { name, region });
    }

    /// The stage that runs is over.
    pub(super) fn stage_ends(
        &mut self,
        status: RunStatus,
        seen: Seen,
        detail: &str,
        out: &mut Out,
    ) {
        let Some(stage) = self.stage.take() else {
            return;
        };
        let (run, steps) = (stage.region.run(), stage.region.steps());
        let cancelled = status == RunStatus::Cancelled;
        let outcome = if cancelled {
            ToolOutcome::Cancelled
        } else {
            ToolOutcome::NotSaid
        };
        self.calls.end_all(Some(run), &outcome, out);
        let end = if cancelled {
            End::Cancelled(self.stopped.clone().unwrap_or(CancelWhy::Host))
        } else {
            End::NotSaid
        };
        let report = TurnReport::default();
        stage.region.end(end, Seen::Inferred, None, report, out);
        let what = What::RunEnded {
            run,
            status,
            steps,
            usage: None,
            detail: detail.into(),
        };
        out.event(RunId::MAIN, seen, what);
    }

    /// What a request took.
    fn usage(&mut self, line: &UsageLine<'_>, out: &mut Out) {
        let usage = (line.usage_reported != Some(false)).then(|| usage_of(line));
        self.requests = self.requests.saturating_add(1);
        self.usage = self.usage.plus(usage.unwrap_or_default());
        let outcome = if usage.is_some() {
            RequestOutcome::Complete { finish: "".into() }
        } else {
            RequestOutcome::Truncated
        };
        let model = ModelRef {
            provider: line.provider.as_deref().map(Into::into),
            model: line.model.as_deref().unwrap_or("").into(),
        };
        if let Some(region) = self.region() {
            region.usage(outcome, model, usage, cost_of(line), out);
        }
    }
}

/// The buckets that don't overlap.
fn usage_of(line: &UsageLine<'_>) -> Usage {
    let cache_read = line.cached_input_tokens;
    let cache_write = line.cache_write_tokens;
    let cached = cache_read
        .unwrap_or(0)
        .saturating_add(cache_write.unwrap_or(0));
    let reasoning = line.reasoning_tokens;
    Usage {
        input: Some(line.prompt_tokens.saturating_sub(cached)),
        cache_read,
        cache_write,
        output: Some(
            line.completion_tokens
                .saturating_sub(reasoning.unwrap_or(0)),
        ),
        reasoning,
    }
}

fn cost_of(line: &UsageLine<'_>) -> Cost {
    match (&line.cost_status, &line.cost_usd) {
        (Some(CostStatus::Priced), Some(usd)) => Cost::Known {
            pico_usd: pico(usd),
            basis: match &line.cost_provenance {
                Some(CostProvenance::Reported) => CostBasis::Reported,
                Some(CostProvenance::ReconstructedEstimate) => CostBasis::Reconstructed,
                Some(
                    CostProvenance::RuntimeEstimate
                    | CostProvenance::PersistedEstimate
                    | CostProvenance::Other(_),
                )
                | None => CostBasis::Estimated,
            },
            source: line.pricing_source.as_deref().unwrap_or("").into(),
            as_of: line.pricing_as_of.as_deref().unwrap_or("").into(),
        },
        (Some(CostStatus::Unpriced | CostStatus::Error), _) => Cost::Unpriced {
            why: line.unpriced_reason.as_deref().unwrap_or("").into(),
        },
        (Some(CostStatus::Priced | CostStatus::Other(_)) | None, _) => Cost::NotSaid,
    }
}

/// An amount in millionths of a millionth; what isn't one is 0.
fn pico(usd: &Num<'_>) -> u64 {
    let amount = usd.f64() * 1e12;
    // Beyond the largest number it stops there.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    if amount > 0.0 { amount as u64 } else { 0 }
}
