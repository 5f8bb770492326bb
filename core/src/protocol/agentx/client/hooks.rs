//! Hooks of the host's: how they are offered, what a call of one asks, and how its answer is written.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::ClientFace;
use super::asks::{Closed, OpenAsk};
use super::convert::{content, raw};
use crate::json::{self, Kind as JsonKind, Raw};
use crate::protocol::agentx::neutral::wire_update;
use crate::protocol::agentx::wire::{Any, Content, HookCallback, HookEvent, HookInput, Kept};
use crate::vocab::*;

/// The events of a point; none: the wire has no such hook.
const fn events(point: HookPoint) -> &'static [&'static str] {
    match point {
        HookPoint::PreTool => &["PreToolUse"],
        HookPoint::PostTool => &["PostToolUse", "PostToolUseFailure"],
        HookPoint::Permission => &["PermissionRequest"],
        HookPoint::PromptSubmit => &["UserPromptSubmit"],
        HookPoint::TurnEnd => &["Stop"],
        HookPoint::RunEnd => &["SubagentStop"],
        HookPoint::PreCompact => &["PreCompact"],
        HookPoint::SessionStart => &["SessionStart"],
        HookPoint::SessionEnd => &["SessionEnd"],
        HookPoint::Notification => &["Notification"],
        HookPoint::SessionSwitch => &[],
    }
}

/// Appends the hooks as `initialize` has them. A hook is called by its key.
pub(super) fn offered(hooks: &[HookSpec], out: &mut Vec<u8>) {
    const ALL: [HookPoint; 10] = [
        HookPoint::PreTool,
        HookPoint::PostTool,
        HookPoint::Permission,
        HookPoint::PromptSubmit,
        HookPoint::TurnEnd,
        HookPoint::RunEnd,
        HookPoint::PreCompact,
        HookPoint::SessionStart,
        HookPoint::SessionEnd,
        HookPoint::Notification,
    ];
    out.push(b'{');
    let mut first = true;
    for point in ALL {
        let of_point: Vec<&HookSpec> = hooks.iter().filter(|hook| hook.point == point).collect();
        if of_point.is_empty() {
            continue;
        }
        for event in events(point) {
            if !core::mem::replace(&mut first, false) {
                out.push(b',');
            }
            json::write_str(out, event);
            out.extend_from_slice(b":[");
            for (index, hook) in of_point.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                matcher(hook, out);
            }
            out.push(b']');
        }
    }
    out.push(b'}');
}

fn matcher(hook: &HookSpec, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"matcher\":");
    match &hook.matcher {
        Some(glob) => json::write_str(out, &glob.replace('*', ".*")),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"hookCallbackIds\":[");
    json::write_str(out, &hook.key);
    out.push(b']');
    if let Some(us) = hook.timeout_us {
        out.extend_from_slice(b",\"timeout\":");
        json::write_u64(out, us.div_ceil(1_000_000));
    }
    out.push(b'}');
}

/// The point of an event.
fn point(event: &HookEvent<'_>) -> HookPoint {
    match event {
        HookEvent::PreToolUse => HookPoint::PreTool,
        HookEvent::PostToolUse | HookEvent::PostToolUseFailure => HookPoint::PostTool,
        HookEvent::PermissionRequest => HookPoint::Permission,
        HookEvent::UserPromptSubmit => HookPoint::PromptSubmit,
        HookEvent::Stop => HookPoint::TurnEnd,
        HookEvent::SubagentStop => HookPoint::RunEnd,
        HookEvent::PreCompact => HookPoint::PreCompact,
        HookEvent::SessionStart | HookEvent::SubagentStart => HookPoint::SessionStart,
        HookEvent::SessionEnd => HookPoint::SessionEnd,
        HookEvent::Notification | HookEvent::Other(_) => HookPoint::Notification,
    }
}

/// What a hook is asked, and its event.
#[derive(Debug)]
pub(super) struct Asked {
    pub event: alloc::string::String,
    pub body: Ask,
    pub call: Option<CallId>,
}

impl ClientFace {
    /// What a call of a hook asks. A call that it is about has begun.
    pub(super) fn hook_asked(&mut self, told: &HookCallback<'_>, out: &mut super::Out) -> Asked {
        let (input, event) = match &told.input {
            Kept::Known(input) => (Some(input), input.hook_event_name.as_str()),
            Kept::Other(_) => (None, ""),
        };
        let event = alloc::string::String::from(event);
        let point = input.map_or(HookPoint::Notification, |it| point(&it.hook_event_name));
        if let (HookPoint::TurnEnd, Some(turn)) = (point, &mut self.turn) {
            turn.flow.reply_over(Some("end_turn"), &mut self.book, out);
        }
        let tool_use = told
            .tool_use_id
            .value()
            .or_else(|| input.and_then(|input| input.tool_use_id.as_ref()));
        let call = input.zip(tool_use).and_then(|(input, id)| {
            let late = point == HookPoint::PostTool;
            self.hooked_call(id, input, late, out)
        });
        let facts = match (input, call) {
            (Some(input), call) => self.facts(point, input, call),
            (None, _) => HookFacts::Other(match &told.input {
                Kept::Other(value) => raw(*value),
                Kept::Known(_) => RawJson("{}".into()),
            }),
        };
        Asked {
            event,
            call: facts.call(),
            body: Ask::Hook(Box::new(HookAsk {
                key: (&*told.callback_id).into(),
                point,
                facts,
            })),
        }
    }

    /// The call that a hook is about, which begins if it hasn't. `late`: it is over for the hook.
    fn hooked_call(
        &mut self,
        id: &str,
        input: &HookInput<'_>,
        late: bool,
        out: &mut super::Out,
    ) -> Option<CallId> {
        if let Some(call) = self.book.calls.known(id)
            && !self.book.calls.waits(id)
        {
            return Some(call);
        }
        let name = input.tool_name.as_deref()?;
        // What it was asked to do; what it does after the fact isn't news.
        let given = input.tool_input.get().filter(|_| !late);
        Some(self.begin_call(id, name, given.map(super::convert::input), out))
    }

    fn facts(&self, point: HookPoint, input: &HookInput<'_>, call: Option<CallId>) -> HookFacts {
        match (point, call) {
            (HookPoint::PreTool | HookPoint::Permission, Some(call)) => HookFacts::Call { call },
            (HookPoint::PostTool, Some(call)) => HookFacts::Result {
                call,
                content: input.tool_response.get().map(response).unwrap_or_default(),
                ok: input.hook_event_name == HookEvent::PostToolUse,
                wall_us: input
                    .duration_ms
                    .as_ref()
                    .and_then(super::convert::ms_us)
                    .unwrap_or(0),
            },
            (HookPoint::PromptSubmit, _) => match self.prompts.next() {
                Some(known) => HookFacts::Prompt {
                    prompt: known.id,
                    text: input.prompt.as_deref().unwrap_or_default().into(),
                },
                None => HookFacts::Other(all(input)),
            },
            (HookPoint::TurnEnd, _) => HookFacts::TurnEnd {
                honoured: u32::from(input.stop_hook_active == Some(true)),
                left: None,
                last: input.last_assistant_message.as_deref().map(Text::from),
            },
            (HookPoint::PreCompact, _) => {
                let text = |name| input.rest.get(name).and_then(Raw::string);
                HookFacts::Compaction {
                    trigger: match text("trigger").as_deref() {
                        Some("manual") => Trigger::Manual,
                        Some(_) | None => Trigger::Auto,
                    },
                    instructions: text("custom_instructions")
                        .filter(|text| !text.is_empty())
                        .map(|text| (&*text).into()),
                }
            }
            (
                HookPoint::PreTool
                | HookPoint::Permission
                | HookPoint::PostTool
                | HookPoint::RunEnd
                | HookPoint::SessionSwitch
                | HookPoint::SessionStart
                | HookPoint::SessionEnd
                | HookPoint::Notification,
                _,
            ) => HookFacts::Other(all(input)),
        }
    }
}

/// Everything that a hook is told.
fn all(input: &HookInput<'_>) -> RawJson {
    let mut json = Vec::new();
    input.encode(&mut json);
    RawJson(core::str::from_utf8(&json).unwrap_or("{}").into())
}

/// What a tool gave back, as far as it can be read as content.
fn response(told: Raw<'_>) -> Vec<Block> {
    match told.kind() {
        JsonKind::String | JsonKind::Array => told
            .decode::<Content<'_>>()
            .map_or_else(|_| Vec::from([Block::Opaque(raw(told))]), |it| content(&it)),
        JsonKind::Null => Vec::new(),
        JsonKind::Object | JsonKind::Bool | JsonKind::Number => {
            Vec::from([Block::Opaque(raw(told))])
        }
    }
}

/// A hook's answer at this event, as JSON.
pub(super) fn output(event: &str, reply: &HookReply) -> Vec<u8> {
    let mut json = b"{".to_vec();
    let text = |json: &mut Vec<u8>, name: &str, text: &str| {
        crate::protocol::member::key(json, name);
        json::write_str(json, text);
    };
    if !reply.go_on {
        json.extend_from_slice(b"\"continue\":false");
        if let Some(why) = &reply.stop_reason {
            text(&mut json, "stopReason", why);
        }
    }
    let mut specific = Vec::new();
    match (event, &reply.verdict) {
        (_, HookVerdict::Pass) => {}
        ("PreToolUse", verdict) => pre_tool(verdict, &mut specific),
        ("PermissionRequest", verdict) => permission(verdict, reply, &mut specific),
        (_, HookVerdict::Deny(why)) => {
            text(&mut json, "decision", "block");
            text(&mut json, "reason", why);
        }
        (_, HookVerdict::Allow { .. } | HookVerdict::Ask) => {}
    }
    if let Some(context) = &reply.context {
        specific.extend_from_slice(b",\"additionalContext\":");
        json::write_str(&mut specific, context);
    }
    if !specific.is_empty() {
        crate::protocol::member::key(&mut json, "hookSpecificOutput");
        json.extend_from_slice(b"{\"hookEventName\":");
        json::write_str(&mut json, event);
        json.extend_from_slice(&specific);
        json.push(b'}');
    }
    json.push(b'}');
    json
}

fn pre_tool(verdict: &HookVerdict, out: &mut Vec<u8>) {
    match verdict {
        HookVerdict::Pass => {}
        HookVerdict::Ask => out.extend_from_slice(b",\"permissionDecision\":\"ask\""),
        HookVerdict::Deny(why) => {
            out.extend_from_slice(
                b",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":",
            );
            json::write_str(out, why);
        }
        HookVerdict::Allow { input } => {
            out.extend_from_slice(b",\"permissionDecision\":\"allow\"");
            updated(input.as_ref(), out);
        }
    }
}

fn updated(input: Option<&RawJson>, out: &mut Vec<u8>) {
    if let Some(input) = input {
        out.extend_from_slice(b",\"updatedInput\":");
        json::write_raw(out, Raw::trusted(input.as_str()));
    }
}

fn permission(verdict: &HookVerdict, reply: &HookReply, out: &mut Vec<u8>) {
    match verdict {
        HookVerdict::Pass | HookVerdict::Ask => {}
        HookVerdict::Deny(why) => {
            out.extend_from_slice(b",\"decision\":{\"behavior\":\"deny\",\"message\":");
            json::write_str(out, why);
            if reply.interrupt {
                out.extend_from_slice(b",\"interrupt\":true");
            }
            out.push(b'}');
        }
        HookVerdict::Allow { input } => {
            out.extend_from_slice(b",\"decision\":{\"behavior\":\"allow\"");
            updated(input.as_ref(), out);
            let updates: Vec<Vec<u8>> = reply.updates.iter().filter_map(wire_update).collect();
            if !updates.is_empty() {
                out.extend_from_slice(b",\"updatedPermissions\":[");
                out.extend_from_slice(&updates.join(&b','));
                out.push(b']');
            }
            out.push(b'}');
        }
    }
}

/// What a hook's answer means here.
pub(super) fn closed(open: &OpenAsk, reply: &HookReply) -> Closed {
    let Ask::Hook(hook) = &open.body else {
        return Closed::by_host();
    };
    let by = Decider::Hook(hook.key.clone());
    let decides = matches!(hook.point, HookPoint::PreTool | HookPoint::Permission);
    let hooked = match &reply.verdict {
        HookVerdict::Allow { .. } => Some(true),
        HookVerdict::Deny(_) => Some(false),
        HookVerdict::Pass | HookVerdict::Ask => None,
    };
    Closed {
        how: AskClose::Answered {
            by: Decider::Host,
            allow: hooked.filter(|_| decides),
        },
        by,
        hooked: hooked.filter(|_| decides),
        ..Closed::by_host()
    }
}

/// The name under which a value is found, if it is a text.
pub(super) fn text_of<'a>(value: Any<'a>, name: &str) -> Option<alloc::borrow::Cow<'a, str>> {
    value.get()?.get_last(name)?.string()
}
