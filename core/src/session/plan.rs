//! The plan: steps that a model has written down, and is reminded of while some of them are open.

use alloc::{format, string::String, sync::Arc, vec::Vec};

use super::{Session, args, phase::Turn};
use crate::vocab::{
    Block, Message, Origin, RawJson, Role, Route, SideEffect, Text, ToolInput, ToolOutcome,
    ToolSpec,
};

/// What is left of a plan.
pub(super) struct Plan {
    /// The steps that aren't done.
    open: Vec<Text>,
    /// Steps of turns that began since it was written down or brought to mind.
    since: u32,
}

/// The tool by which a model writes its plan down: all of it, each time.
pub fn plan_tool() -> ToolSpec {
    ToolSpec {
        name: "plan".into(),
        label: None,
        description: "Writes down the steps of longer work, and how each stands; the whole plan, each time that \
            something changes. You are reminded of what is open."
            .into(),
        schema: RawJson(
            "{\"type\":\"object\",\"properties\":{\"plan\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\
             \"properties\":{\"step\":{\"type\":\"string\"},\"status\":{\"type\":\"string\",\
             \"enum\":[\"pending\",\"in_progress\",\"completed\"]}},\"required\":[\"step\",\"status\"]}}},\
             \"required\":[\"plan\"]}"
                .into(),
        ),
        side_effect: SideEffect::None,
        hidden: false,
        uri_arg: None,
        route: Route::Plan,
    }
}

impl Session {
    /// A model writes its plan down.
    pub(super) fn plan_written(&mut self, input: &RawJson) -> (ToolOutcome, Text) {
        let Some(steps) = args::plan(input) else {
            return (ToolOutcome::Failed, "there are no steps in it".into());
        };
        let all = steps.len();
        let open: Vec<Text> = open_of(steps);
        let text = format!("noted: {} of {all} steps are open", open.len());
        self.plan = Some(Plan { open, since: 0 });
        (ToolOutcome::Ok, text.into())
    }

    /// A step begins.
    pub(super) fn plan_waits(&mut self) {
        if let Some(plan) = &mut self.plan {
            plan.since = plan.since.saturating_add(1);
        }
    }

    /// The next step brings an open plan to mind, if none of the last ones did.
    pub(super) fn remind_of_plan(&mut self, turn: &mut Turn) {
        let Some(every) = self.config.plan_reminder else {
            return;
        };
        let text = match &mut self.plan {
            Some(plan) if !plan.open.is_empty() && plan.since >= every.max(1) => {
                plan.since = 0;
                let mut text = String::from("[plan] these steps are open:");
                for step in &plan.open {
                    text.push_str("\n- ");
                    text.push_str(step);
                }
                text
            }
            Some(_) | None => return,
        };
        let message = self.own_message(Role::User, Origin::PlanReminder, &text, None);
        turn.own.push(message);
    }

    /// The plan that stands in the history: the last one that was written down.
    pub(super) fn recall_plan(&mut self) {
        let is_plan = |name: &Text| {
            self.tool_named(name)
                .is_some_and(|tool| tool.route == Route::Plan)
        };
        let written = |message: &Arc<Message>| {
            message
                .content
                .iter()
                .rev()
                .find_map(|block| match &**block {
                    Block::ToolUse {
                        name,
                        input: ToolInput::Object(input),
                        ..
                    } if is_plan(name) => args::plan(input),
                    Block::ToolUse { .. }
                    | Block::Text(_)
                    | Block::Thinking { .. }
                    | Block::Redacted(_)
                    | Block::Media { .. }
                    | Block::ToolResult { .. }
                    | Block::Opaque(_) => None,
                })
        };
        let last = self.history.iter().rev().find_map(written);
        self.plan = last.map(|steps| Plan {
            open: open_of(steps),
            // The first step of this process tells of it.
            since: u32::MAX,
        });
    }
}

fn open_of(steps: Vec<(Text, bool)>) -> Vec<Text> {
    let open = steps.into_iter().filter(|(_, done)| !done);
    open.map(|(step, _)| step).collect()
}
