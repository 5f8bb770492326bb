//! Subagents, as nested runs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Out;
use super::asks::Asks;
use super::flow::{Cut, Flow};
use crate::json::{Members, Raw};
use crate::protocol::omp::wire::{
    AgentLine, Event as Line, Lifecycle, LifecycleStatus, Message, role_of,
};
use crate::vocab::*;

/// Runs that may be open. An agent that ends none is found out here.
const MOST_OPEN: usize = 1_024;

/// The open runs.
#[derive(Debug, Default)]
pub(super) struct Runs {
    open: Vec<Nested>,
}

#[derive(Debug)]
struct Nested {
    wire: String,
    run: RunId,
    flow: Flow,
}

impl Runs {
    /// The id on the wire.
    pub(super) fn wire(&self, run: RunId) -> Option<&str> {
        let nested = self.open.iter().find(|nested| nested.run == run);
        nested.map(|nested| &*nested.wire)
    }

    /// `subagent_lifecycle`. `call`: the one that asked for it.
    pub(super) fn lifecycle(
        &mut self,
        told: &Lifecycle<'_>,
        call: Option<CallId>,
        most: usize,
        out: &mut Out,
    ) {
        let at = self.open.iter().position(|nested| *told.id == *nested.wire);
        if told.status == LifecycleStatus::Started {
            match at {
                Some(_) => out.finding(format!("subagent {:?} began twice", &*told.id)),
                None => drop(self.begin(told, call, most, Seen::Real, out)),
            }
            return;
        }
        let at = match at {
            Some(at) => at,
            None => match self.begin(told, call, most, Seen::Inferred, out) {
                Some(at) => at,
                None => return,
            },
        };
        let nested = self.open.remove(at);
        let (status, cut) = match &told.status {
            LifecycleStatus::Completed => (RunStatus::Completed, Cut::Over),
            LifecycleStatus::Failed => (RunStatus::Failed, Cut::Cancelled),
            LifecycleStatus::Aborted => (RunStatus::Cancelled, Cut::Cancelled),
            LifecycleStatus::Started | LifecycleStatus::Other(_) => {
                (RunStatus::Incomplete, Cut::Over)
            }
        };
        nested.end(status, &cut, Seen::Real, out);
    }

    fn begin(
        &mut self,
        told: &Lifecycle<'_>,
        call: Option<CallId>,
        most: usize,
        seen: Seen,
        out: &mut Out,
    ) -> Option<usize> {
        if self.open.len() >= MOST_OPEN {
            out.finding("too many subagents are open; this one isn't followed");
            return None;
        }
        let run = out.ids.run();
        out.event(
            RunId::MAIN,
            seen,
            What::RunStarted {
                run,
                kind: RunKind::Subagent((&*told.agent).into()),
                label: told.description.as_deref().unwrap_or(&told.agent).into(),
                call,
            },
        );
        self.open.push(Nested {
            wire: (&*told.id).into(),
            run,
            flow: Flow::new(run, most),
        });
        Some(self.open.len() - 1)
    }

    /// `subagent_event`: an event of the run's own. Whether it is one that runs have.
    pub(super) fn event(&mut self, wire: &str, event: Raw<'_>, out: &mut Out) -> bool {
        let Some(nested) = self.open.iter_mut().find(|nested| nested.wire == wire) else {
            return false;
        };
        let mut members = Members::default();
        let Ok(AgentLine::Event(event)) =
            AgentLine::decode(event.as_str().as_bytes(), &mut members)
        else {
            return false;
        };
        // A run's questions come as the session's.
        hear(&mut nested.flow, &event, &mut Asks::default(), out)
    }

    /// Everything ends: the agent is gone, or another session took over.
    pub(super) fn end_all(&mut self, cut: &Cut, out: &mut Out) {
        for nested in core::mem::take(&mut self.open) {
            let status = match cut {
                Cut::Cancelled | Cut::Detached => RunStatus::Cancelled,
                Cut::Over | Cut::Failed(_) | Cut::Gone(_) => RunStatus::Incomplete,
            };
            nested.end(status, cut, Seen::Inferred, out);
        }
    }
}

impl Nested {
    fn end(mut self, status: RunStatus, cut: &Cut, seen: Seen, out: &mut Out) {
        self.flow.end_step(cut, &mut Asks::default(), out);
        let usage = self.flow.by_model.iter().map(|(_, usage, _)| *usage);
        let usage = usage.reduce(Usage::plus);
        out.event(
            RunId::MAIN,
            seen,
            What::RunEnded {
                run: self.run,
                status,
                steps: self.flow.steps(),
                usage,
                detail: self.flow.answer.take().unwrap_or_else(|| "".into()),
            },
        );
    }
}

/// What an event means to the run that it belongs to; `false`: nothing.
pub(super) fn hear(flow: &mut Flow, event: &Line<'_>, asks: &mut Asks, out: &mut Out) -> bool {
    match event {
        Line::TurnStart(_) => flow.turn_start(asks, out),
        Line::TurnEnd(_) => flow.turn_end(asks, out),
        Line::MessageStart(it) => {
            if role_of(it.message).as_deref() == Some("assistant") {
                flow.reply_start(it.message, asks, out);
            }
        }
        Line::MessageUpdate(it) => flow.reply_update(&it.update, asks, out),
        Line::MessageEnd(it) => match Message::decode(it.message) {
            Ok(Message::Assistant(reply)) => flow.reply_end(&reply, it.message, asks, out),
            Ok(_) => flow.other_message(it.message, asks, out),
            Err(error) => out.finding(format!("a message that can't be read: {error}")),
        },
        Line::ToolExecutionStart(it) => flow.tool_start(it, asks, out),
        Line::ToolExecutionUpdate(it) => flow.tool_update(it, out),
        Line::ToolExecutionEnd(it) => flow.tool_end(it, asks, out),
        Line::AutoRetryStart(it) => flow.retry(it, asks, out),
        Line::AutoRetryEnd(it) => flow.retry_end(it, asks, out),
        // A run begins and ends with its lifecycle.
        Line::AgentStart(_) | Line::AgentEnd(_) => flow.settle_failed(asks, out),
        Line::ToolStreamUpdate(_)
        | Line::AutoCompactionStart(_)
        | Line::AutoCompactionEnd(_)
        | Line::RetryFallbackApplied(_)
        | Line::RetryFallbackSucceeded(_)
        | Line::ModelChanged(_)
        | Line::ConfigWarningsChanged(_)
        | Line::AdvisorCostChanged(_)
        | Line::AdvisorYielded(_)
        | Line::TodoAutoClear(_)
        | Line::ThinkingLevelChanged(_)
        | Line::TtsrTriggered(_)
        | Line::TodoReminder(_)
        | Line::IrcMessage(_)
        | Line::Notice(_)
        | Line::GoalUpdated(_)
        | Line::QueueUpdate(_)
        | Line::CacheWarmingStart(_)
        | Line::CacheWarmingEnd(_)
        | Line::PersonaChanged(_)
        | Line::Unknown(_) => return false,
    }
    true
}
