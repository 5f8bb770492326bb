//! Hooks of the host: how they are offered, what they are told, and what their answers mean. And changes of the
//! permissions, which hooks and decisions bring alike.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::blocks::{self, Plain, raw};
use super::{Face, Pending};
use crate::json::{self, Raw};
use crate::protocol::Outbox;
use crate::protocol::agentx::Agentx;
use crate::protocol::agentx::decision::Verdict as Judged;
use crate::protocol::agentx::neutral::{mode_word, neutral_update, wire_update};
use crate::protocol::agentx::policy::{AllowWithoutInput, Policy, RecordForm};
use crate::protocol::agentx::wire::{Any, HookOutput, HookPermission, Hooks, Kept, Response};
use crate::vocab::*;

/// Hooks that a host may offer.
const MOST_HOOKS: usize = 1_024;

/// The point of an event; `None`: nothing here is asked about it.
fn point(event: &str) -> Option<HookPoint> {
    Some(match event {
        "PreToolUse" => HookPoint::PreTool,
        "PostToolUse" | "PostToolUseFailure" => HookPoint::PostTool,
        "PermissionRequest" => HookPoint::Permission,
        "UserPromptSubmit" => HookPoint::PromptSubmit,
        "Stop" => HookPoint::TurnEnd,
        "SubagentStop" => HookPoint::RunEnd,
        "PreCompact" => HookPoint::PreCompact,
        "SessionStart" => HookPoint::SessionStart,
        "SessionEnd" => HookPoint::SessionEnd,
        "Notification" => HookPoint::Notification,
        _ => return None,
    })
}

/// The tools that a matcher is for; `None`: all. What the wire writes as a pattern is a glob here.
fn matcher(pattern: &str) -> Option<Text> {
    let glob = pattern
        .trim_start_matches('^')
        .trim_end_matches('$')
        .replace(".*", "*");
    (!glob.is_empty() && glob != "*").then(|| glob.as_str().into())
}

/// The hooks of a host, as offers. The key is the event and the host's id.
pub(super) fn offers(hooks: &Hooks<'_>) -> Vec<HookSpec> {
    let mut offers = Vec::new();
    for (event, matchers) in &hooks.0 {
        let Some(point) = point(event) else { continue };
        for entry in matchers.iter().filter_map(Kept::known) {
            for id in &entry.hook_callback_ids {
                let seconds = entry.timeout.as_ref().and_then(|seconds| seconds.u64());
                offers.push(HookSpec {
                    key: alloc::format!("{} {}", &**event, &**id).as_str().into(),
                    point,
                    matcher: entry.matcher.value().and_then(|pattern| matcher(pattern)),
                    timeout_us: seconds.map(|seconds| seconds.saturating_mul(1_000_000)),
                });
            }
        }
    }
    offers.truncate(MOST_HOOKS);
    offers
}

/// Whom to call, and for which event. `None`: the hook is for another event of this point.
pub(super) fn callback(hook: &HookAsk) -> Option<(String, &str)> {
    let (event, id) = hook.key.split_once(' ')?;
    let fits = match (&hook.facts, event) {
        (HookFacts::Result { ok, .. }, "PostToolUse") => *ok,
        (HookFacts::Result { ok, .. }, "PostToolUseFailure") => !*ok,
        _ => true,
    };
    fits.then(|| (event.into(), id))
}

/// What a hook's answer means at this point.
pub(super) fn reply(point: HookPoint, payload: Any<'_>) -> Result<Reply, ReplyFault> {
    let may_fail = !matches!(point, HookPoint::PreTool | HookPoint::Permission);
    let Some(payload) = payload.get() else {
        return Ok(Reply::Hook(Box::new(HookReply::pass())));
    };
    let output: HookOutput<'_> = match payload.decode() {
        Ok(output) => output,
        Err(_) if may_fail => HookOutput::default(),
        Err(error) => {
            return Err(ReplyFault::Malformed(
                alloc::format!("the hook's answer can't be read: {error}")
                    .as_str()
                    .into(),
            ));
        }
    };
    read(point, &output, may_fail).map(|reply| Reply::Hook(Box::new(reply)))
}

fn read(
    point: HookPoint,
    output: &HookOutput<'_>,
    may_fail: bool,
) -> Result<HookReply, ReplyFault> {
    let mut reply = HookReply::pass();
    if output.is_async == Some(true) {
        return Ok(reply);
    }
    let text = |text: &crate::json::Lazy<'_>| Text::from(&**text);
    reply.go_on = output.go_on != Some(false);
    reply.stop_reason = output.stop_reason.as_ref().map(text);
    let reason = || {
        output
            .reason
            .as_ref()
            .map_or_else(|| "A hook refused".into(), text)
    };
    match output.decision.as_deref() {
        Some("block") => reply.verdict = HookVerdict::Deny(reason()),
        Some("approve") => reply.verdict = HookVerdict::Allow { input: None },
        Some(_) | None => {}
    }
    let specific = match &output.hook_specific_output {
        None => return Ok(reply),
        Some(Kept::Known(specific)) => specific,
        Some(Kept::Other(_)) if may_fail => return Ok(reply),
        Some(Kept::Other(_)) => {
            return Err(ReplyFault::Malformed(
                "the hook's answer can't be read".into(),
            ));
        }
    };
    reply.context = specific.additional_context.as_ref().map(text);
    match point {
        HookPoint::PreTool => {
            let why = || {
                specific
                    .permission_decision_reason
                    .as_ref()
                    .map_or_else(reason, text)
            };
            match &specific.permission_decision {
                Some(HookPermission::Allow) => {
                    let input = specific.updated_input.get();
                    if input.is_some_and(|input| input.kind() != json::Kind::Object) {
                        return Err(ReplyFault::Malformed(
                            "updatedInput must be an object".into(),
                        ));
                    }
                    reply.verdict = HookVerdict::Allow {
                        input: input.map(keep_raw),
                    };
                }
                Some(HookPermission::Deny) => reply.verdict = HookVerdict::Deny(why()),
                Some(HookPermission::Ask) => reply.verdict = HookVerdict::Ask,
                Some(HookPermission::Other(word)) => {
                    let fault = alloc::format!("the hook decided {}", &**word);
                    return Err(ReplyFault::Malformed(fault.as_str().into()));
                }
                None => {}
            }
        }
        HookPoint::Permission if specific.decision.get().is_some() => {
            let policy = Policy {
                allow_without_input: AllowWithoutInput::Original,
                ..Policy::CLAUDE
            };
            match Judged::of_payload(specific.decision, &policy) {
                Judged::Allow { input, updates, .. } => {
                    reply.verdict = HookVerdict::Allow {
                        input: input.map(keep_raw),
                    };
                    reply.updates = updates.iter().filter_map(neutral_update).collect();
                }
                Judged::Deny {
                    message, interrupt, ..
                } => {
                    reply.verdict = HookVerdict::Deny((&*message).into());
                    reply.interrupt = interrupt;
                }
                Judged::Failed(why) => return Err(ReplyFault::HostError(why.as_str().into())),
                Judged::Refused(fault) => {
                    return Err(ReplyFault::Malformed(
                        alloc::format!("{fault}").as_str().into(),
                    ));
                }
            }
        }
        HookPoint::Permission
        | HookPoint::PromptSubmit
        | HookPoint::PostTool
        | HookPoint::TurnEnd
        | HookPoint::RunEnd
        | HookPoint::PreCompact
        | HookPoint::SessionSwitch
        | HookPoint::SessionStart
        | HookPoint::SessionEnd
        | HookPoint::Notification => {}
    }
    Ok(reply)
}

fn keep_raw(value: Raw<'_>) -> RawJson {
    RawJson(value.as_str().into())
}

/// Appends a member.
fn member(json: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    crate::protocol::member::key(json, name);
    write(json);
}

/// Appends a member that is a text.
fn text_member(json: &mut Vec<u8>, name: &str, text: &str) {
    member(json, name, |json| json::write_str(json, text));
}

impl Face {
    /// What a hook is told, as JSON.
    pub(super) fn hook_input(
        &self,
        event: &str,
        hook: &HookAsk,
        tool_use: Option<&str>,
    ) -> Vec<u8> {
        let mut json = b"{".to_vec();
        text_member(&mut json, "session_id", self.printer.session());
        let transcript = self.config.transcript.as_deref().unwrap_or_default();
        text_member(&mut json, "transcript_path", transcript);
        let info = self.mirror.info();
        let cwd = info.map_or("", |info| &*info.cwd);
        text_member(&mut json, "cwd", cwd);
        let prompt = match &hook.facts {
            HookFacts::Prompt { prompt, .. } => self.prompts.uuid(*prompt),
            HookFacts::Call { .. }
            | HookFacts::Result { .. }
            | HookFacts::TurnEnd { .. }
            | HookFacts::Compaction { .. }
            | HookFacts::Other(_) => self.turn.as_ref().and_then(|turn| turn.uuids.first()),
        };
        if let Some(prompt) = prompt {
            text_member(&mut json, "prompt_id", prompt);
        }
        if let Some(info) = info {
            let mode = mode_word(&info.settings.approvals);
            text_member(&mut json, "permission_mode", &mode);
            if let Some(effort) = &info.settings.thinking {
                member(&mut json, "effort", |json| {
                    json.extend_from_slice(b"{\"level\":");
                    json::write_str(json, effort);
                    json.push(b'}');
                });
            }
        }
        text_member(&mut json, "hook_event_name", event);
        if let Some(open) = hook.facts.call().and_then(|call| self.mirror.call(call)) {
            text_member(&mut json, "tool_name", &open.name);
            member(&mut json, "tool_input", |json| {
                json::write_raw(json, blocks::arguments(open.input.as_ref(), &self.printer));
            });
            if let Some(id) = tool_use {
                text_member(&mut json, "tool_use_id", id);
            }
        }
        self.hook_facts(hook, &mut json);
        json.push(b'}');
        json
    }

    fn hook_facts(&self, hook: &HookAsk, json: &mut Vec<u8>) {
        match &hook.facts {
            HookFacts::Prompt { text, .. } => text_member(json, "prompt", text),
            HookFacts::Call { call } => {
                let asks = self.mirror.questions().iter();
                let suggestions = asks
                    .filter_map(|open| match &open.body {
                        Ask::Permission(ask) if ask.call == Some(*call) => Some(&ask.suggestions),
                        Ask::Permission(_)
                        | Ask::Hook(_)
                        | Ask::Tool { .. }
                        | Ask::Uri { .. }
                        | Ask::Choice(_) => None,
                    })
                    .next();
                if let Some(suggestions) =
                    suggestions.filter(|_| hook.point == HookPoint::Permission)
                {
                    member(json, "permission_suggestions", |json| {
                        json.push(b'[');
                        for (index, update) in
                            suggestions.iter().filter_map(wire_update).enumerate()
                        {
                            if index > 0 {
                                json.push(b',');
                            }
                            json.extend_from_slice(&update);
                        }
                        json.push(b']');
                    });
                }
            }
            HookFacts::Compaction {
                trigger,
                instructions,
            } => {
                let trigger = match trigger {
                    Trigger::Manual => "manual",
                    Trigger::Auto | Trigger::Overflow => "auto",
                };
                text_member(json, "trigger", trigger);
                let wishes = instructions.as_deref().unwrap_or_default();
                text_member(json, "custom_instructions", wishes);
            }
            HookFacts::Result {
                content, wall_us, ..
            } => {
                member(json, "tool_response", |json| {
                    match Plain::new(content, RecordForm::Provider) {
                        Plain::Text(text) => json::write_str(json, text),
                        Plain::Blocks(blocks) => {
                            json.push(b'[');
                            for (index, block) in blocks.iter().enumerate() {
                                if index > 0 {
                                    json.push(b',');
                                }
                                json.extend_from_slice(block);
                            }
                            json.push(b']');
                        }
                    }
                });
                member(json, "duration_ms", |json| {
                    json::write_u64(json, wall_us / 1_000);
                });
            }
            HookFacts::TurnEnd { honoured, last, .. } => {
                member(json, "stop_hook_active", |json| {
                    json::write_bool(json, *honoured > 0);
                });
                if let Some(last) = last {
                    text_member(json, "last_assistant_message", last);
                }
            }
            HookFacts::Other(facts) if !self.printer.is_clear(facts) => {}
            HookFacts::Other(facts) => {
                raw(facts).each_member(|name, value| {
                    if !matches!(name, "session_id" | "hook_event_name" | "cwd") {
                        crate::protocol::member::comma(json);
                        json::write_str(json, name);
                        json.push(b':');
                        json::write_raw(json, value);
                    }
                });
            }
        }
    }

    /// What the host's answer to `can_use_tool` means.
    pub(super) fn decision(&self, response: &Response<'_>) -> Result<Reply, ReplyFault> {
        let judged = Judged::of_response(response, &self.config.policy);
        match &judged {
            Judged::Allow { input, updates, .. } => Ok(Reply::Allow {
                input: input.map(keep_raw),
                updates: updates.iter().filter_map(neutral_update).collect(),
            }),
            Judged::Deny {
                message, interrupt, ..
            } => Ok(Reply::Deny {
                message: Some((&**message).into()),
                interrupt: *interrupt,
            }),
            Judged::Failed(_) => {
                let text = judged.message().unwrap_or_default();
                Err(ReplyFault::HostError((&*text).into()))
            }
            Judged::Refused(_) => {
                let text = judged.message().unwrap_or_default();
                Err(ReplyFault::Malformed((&*text).into()))
            }
        }
    }

    /// The hooks of the host's `initialize`.
    pub(super) fn offer_hooks(&mut self, hooks: &Hooks<'_>, out: &mut Outbox<Agentx>) {
        let offers = offers(hooks);
        let command = out.call(Command::Offer(Offer::Hooks(offers)));
        self.pending.insert(command, Pending::Quiet);
    }
}
