//! Calls that run: their ids on the wire, whether they may, and what they came to.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::wire::{
    Any, Block as BlockWord, Checkpoint, Display, Map, PermissionDecision, PermissionRequest,
    ResultStatus, Risk as RiskWord, SideEffectWord, Snapshot, ToolCall, ToolResult,
};
use super::super::{Autonomy, OUTPUT_BYTES, TRUNCATED};
use super::{Face, Out};
use crate::json::{self, Raw, Str};
use crate::protocol::ids::Calls as Ids;
use crate::protocol::said;
use crate::vocab::*;

/// The calls that have a name on the wire.
#[derive(Debug, Default)]
pub(super) struct Tools {
    ids: Ids,
    open: BTreeMap<CallId, Tool>,
}

/// A call that runs.
#[derive(Debug)]
struct Tool {
    run: RunId,
    name: Text,
    side_effect: SideEffect,
    changed: Vec<Text>,
}

impl Tools {
    /// The id of a call that a model begins to write. One that never runs is a stage's answer, and keeps the provider's
    /// id however often that comes.
    pub(super) fn name(&mut self, call: CallId, provider_id: Option<&str>, runs: bool) -> String {
        match provider_id {
            Some(id) if !runs && !id.is_empty() => id.into(),
            provider_id => self.ids.begin(call, provider_id).unwrap_or("").into(),
        }
    }

    /// The id of a call that begins to run.
    fn begin(&mut self, call: CallId, provider_id: Option<&str>) -> String {
        if let Some(wire) = self.ids.wire(call) {
            return wire.into();
        }
        self.ids.begin(call, provider_id).unwrap_or("").into()
    }

    /// The call never runs.
    pub(super) fn forget(&mut self, call: CallId) {
        self.ids.end(call);
    }

    pub(super) fn changed(&mut self, call: Option<CallId>, path: &Text) {
        if let Some(tool) = call.and_then(|call| self.open.get_mut(&call))
            && !tool.changed.contains(path)
        {
            tool.changed.push(path.clone());
        }
    }
}

impl Face {
    #[allow(clippy::too_many_arguments, reason = "what a call begins with")]
    pub(super) fn call_started(
        &mut self,
        run: RunId,
        call: CallId,
        provider_id: Option<&str>,
        name: &Text,
        input: Option<&ToolInput>,
        side_effect: SideEffect,
        out: &mut Out,
    ) {
        let id = self.tools.begin(call, provider_id);
        let tool = Tool {
            run,
            name: name.clone(),
            side_effect,
            changed: Vec::new(),
        };
        self.tools.open.insert(call, tool);
        let args = input.and_then(|input| self.args(input));
        self.put(
            ToolCall {
                args: Any(args.as_deref().map(Raw::trusted)),
                id: Some(id.as_str().into()),
                name: self.member(name),
                run_id: self.id(),
                side_effect: Some(word_of(side_effect)),
                ..ToolCall::default()
            },
            out,
        );
    }

    /// The arguments as they are shown: an object without its secrets, or the text that isn't one. `None`: empty.
    fn args(&self, input: &ToolInput) -> Option<String> {
        let mut bytes = Vec::new();
        match input {
            ToolInput::Object(object) => {
                let raw = json::scan_value(object.as_str().as_bytes(), &super::super::wire::RULES);
                self.config.secrets.write_value(raw.ok()?, &mut bytes);
            }
            ToolInput::Unparsed(text) => {
                let mut stream = crate::redact::ArgStream::default();
                let mut clean = String::new();
                stream.push(&self.config.secrets, text, &mut clean);
                stream.finish(&self.config.secrets, &mut clean);
                json::write_str(&mut bytes, &clean);
            }
        }
        let text = String::from_utf8(bytes).ok()?;
        (!matches!(text.as_str(), "{}" | "\"\"")).then_some(text)
    }

    pub(super) fn permission_request(&self, ask: &PermissionAsk, out: &mut Out) {
        if !self.is_running() {
            return;
        }
        let tool = ask.call.and_then(|call| self.tools.open.get(&call));
        let Some(id) = ask.call.and_then(|call| self.tools.ids.wire(call)) else {
            return;
        };
        let side_effect = tool.map_or(SideEffect::Unknown, |tool| tool.side_effect);
        let risk = risk(None, side_effect);
        self.put(
            PermissionRequest {
                action: "prompt".into(),
                autonomy: Some(self.config.autonomy.word().into()),
                id: Some(id.into()),
                name: self.member(&ask.tool),
                permission: Some("prompt".into()),
                permission_granted: Some(false),
                permission_mode: Some(self.mode().into()),
                reason: self.member(&ask.summary),
                risk: Some(risk),
                run_id: self.id(),
                session_id: self.session(),
                side_effect: Some(word_of(side_effect)),
                ..PermissionRequest::default()
            },
            out,
        );
    }

    fn session(&self) -> Option<Str<'_>> {
        self.info
            .as_ref()
            .and_then(|info| self.member(&info.session))
    }

    fn mode(&self) -> &'static str {
        match (self.config.drafts, self.config.autonomy) {
            (true, _) => "spec-draft",
            (false, Autonomy::High) => "unsafe",
            (false, Autonomy::Low | Autonomy::Medium) => "auto",
        }
    }

    pub(super) fn decided(&self, call: CallId, verdict: &Verdict, out: &mut Out) {
        let (Some(tool), Some(id)) = (self.tools.open.get(&call), self.tools.ids.wire(call)) else {
            return;
        };
        let by_mode = verdict.by == Decider::Mode;
        let silent = match &verdict.by {
            // Nobody decided.
            Decider::Closed => true,
            // What needs no permission has no decision; a draft's tools are told apart by being there.
            Decider::Mode => {
                self.config.drafts || (verdict.allow && !tool.side_effect.changes_something())
            }
            Decider::Rule(_)
            | Decider::Hook(_)
            | Decider::Host
            | Decider::Timer
            | Decider::Fault(_)
            | Decider::Cancel => false,
        };
        if silent {
            return;
        }
        let action = match (verdict.allow, &verdict.by) {
            (true, _) => "allow",
            (false, Decider::Cancel) => "cancel",
            (false, _) => "deny",
        };
        let block = (!verdict.allow).then(|| BlockWord {
            action: Some("deny".into()),
            code: Some(match verdict.block.as_deref() {
                Some(code) => Str(self.clean(code)),
                None if action == "cancel" => "context_canceled".into(),
                None => "denied".into(),
            }),
            recoverable: Some(false),
            tool_name: self.member(&tool.name),
            ..BlockWord::default()
        });
        let why = why(verdict, self.config.autonomy);
        let reason = verdict.reason.as_deref().unwrap_or(what(tool.side_effect));
        self.put(
            PermissionDecision {
                action: action.into(),
                autonomy: Some(self.config.autonomy.word().into()),
                block,
                decision_reason: self.member(&why),
                id: Some(id.into()),
                name: self.member(&tool.name),
                permission: Some("prompt".into()),
                permission_granted: Some(
                    verdict.allow && (!by_mode || self.config.autonomy == Autonomy::High),
                ),
                permission_mode: Some(self.mode().into()),
                reason: self.member(reason),
                risk: Some(risk(verdict.risk, tool.side_effect)),
                run_id: self.id(),
                session_id: self.session(),
                side_effect: Some(word_of(tool.side_effect)),
                ..PermissionDecision::default()
            },
            out,
        );
    }

    pub(super) fn checkpoint(
        &self,
        checkpoint: CheckpointId,
        call: CallId,
        files: &[Text],
        out: &mut Out,
    ) {
        if files.is_empty() {
            return;
        }
        let tool = self.tools.open.get(&call);
        let files = files.iter().map(|file| Str(self.clean(file))).collect();
        self.put(
            Checkpoint {
                checkpoint: Snapshot {
                    files: Some(files),
                    sequence: Some(checkpoint.0),
                    tool: tool.and_then(|tool| self.member(&tool.name)),
                    ..Snapshot::default()
                },
                run_id: self.id(),
                ..Checkpoint::default()
            },
            out,
        );
    }

    pub(super) fn call_ended(
        &mut self,
        call: CallId,
        outcome: &ToolOutcome,
        content: &[Block],
        show: Option<&Show>,
        out: &mut Out,
    ) {
        let (Some(mut tool), Some(id)) = (self.tools.open.remove(&call), self.tools.ids.end(call))
        else {
            return;
        };
        for path in show.iter().flat_map(|show| &show.changed) {
            if !tool.changed.contains(path) {
                tool.changed.push(path.clone());
            }
        }
        self.stages.call_ended(tool.run, &tool.changed);
        let full = said::output(content);
        let clean = self.clean(&full);
        let redacted = matches!(clean, Cow::Owned(_)) || show.is_some_and(|show| show.redacted);
        let (output, cut) = cut(&clean);
        let changed = tool.changed.iter().map(|path| Str(self.clean(path)));
        let changed: Vec<Str<'_>> = changed.collect();
        let summary = show.and_then(|show| show.summary.as_deref());
        let display = summary
            .filter(|summary| !summary.is_empty())
            .map(|summary| Display {
                kind: (!changed.is_empty()).then(|| "file".into()),
                summary: self.member(summary),
                ..Display::default()
            });
        let meta = show.map(|show| self.meta(&show.meta)).unwrap_or_default();
        self.put(
            ToolResult {
                changed_files: (!changed.is_empty()).then_some(changed),
                display,
                id: Some(id.as_str().into()),
                meta: (!meta.0.is_empty()).then_some(meta),
                name: self.member(&tool.name),
                output: (!output.is_empty()).then(|| (&*output).into()),
                redacted: redacted.then_some(true),
                run_id: self.id(),
                status: if outcome.is_error() {
                    ResultStatus::Error
                } else {
                    ResultStatus::Ok
                },
                truncated: cut || show.is_some_and(|show| show.truncated),
                ..ToolResult::default()
            },
            out,
        );
    }

    /// Names and values in the order of the alphabet; of those that come twice the last one.
    fn meta<'a>(&self, meta: &'a [(Text, Text)]) -> Map<'a, Str<'a>> {
        let sorted: BTreeMap<&str, &str> = meta
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        let shown = sorted.into_iter().map(|(name, value)| {
            let value = if crate::redact::is_secret_name(name) {
                crate::redact::MASK.into()
            } else {
                Str(self.clean(value))
            };
            (Str(self.clean(name)), value)
        });
        Map(shown.collect())
    }
}

/// What is shown of an output, and whether it was cut.
fn cut(output: &str) -> (Cow<'_, str>, bool) {
    if output.len() <= OUTPUT_BYTES {
        return (output.into(), false);
    }
    let mut end = OUTPUT_BYTES;
    while !output.is_char_boundary(end) {
        end -= 1;
    }
    let kept = output.get(..end).unwrap_or_default();
    (format!("{kept}{TRUNCATED}").into(), true)
}

const fn word_of(side_effect: SideEffect) -> SideEffectWord<'static> {
    match side_effect {
        SideEffect::None => SideEffectWord::None,
        SideEffect::Read => SideEffectWord::Read,
        SideEffect::Write => SideEffectWord::Write,
        SideEffect::Shell => SideEffectWord::Shell,
        SideEffect::Network => SideEffectWord::Network,
        SideEffect::Unknown => SideEffectWord::Unknown,
    }
}

/// What a tool of this side effect does, where nobody said more.
const fn what(side_effect: SideEffect) -> &'static str {
    match side_effect {
        SideEffect::None => "It changes nothing.",
        SideEffect::Read => "It reads.",
        SideEffect::Write => "It creates or overwrites files.",
        SideEffect::Shell => "A command can read, write and run programs.",
        SideEffect::Network => "It talks to the network.",
        SideEffect::Unknown => "Nobody said what it does.",
    }
}

fn risk(said: Option<Risk>, side_effect: SideEffect) -> RiskWord<'static> {
    let level = match (said, side_effect) {
        (Some(Risk::Low), _) => "low",
        (Some(Risk::Medium), _) => "medium",
        (Some(Risk::High), _) => "high",
        (Some(Risk::Critical), _) => "critical",
        (None, SideEffect::None | SideEffect::Read) => "low",
        (None, SideEffect::Write | SideEffect::Shell) => "medium",
        (None, SideEffect::Network | SideEffect::Unknown) => "high",
    };
    RiskWord {
        level: Some(level.into()),
        ..RiskWord::default()
    }
}

fn why(verdict: &Verdict, autonomy: Autonomy) -> Cow<'_, str> {
    match (&verdict.by, verdict.allow) {
        (Decider::Mode, true) if autonomy == Autonomy::High => {
            "unsafe permissions mode allowed prompt-gated tool".into()
        }
        (Decider::Mode, true) => "permission mode allowed prompt-gated tool".into(),
        (Decider::Mode, false) => "permission mode denied prompt-gated tool".into(),
        (Decider::Rule(rule), true) => format!("a rule allows it: {rule}").into(),
        (Decider::Rule(rule), false) => format!("a rule denies it: {rule}").into(),
        (Decider::Hook(hook), true) => format!("a hook allows it: {hook}").into(),
        (Decider::Hook(hook), false) => format!("a hook denies it: {hook}").into(),
        (Decider::Host, _) => "decided by the host".into(),
        (Decider::Timer, _) => "nobody answered in time".into(),
        (Decider::Closed, _) => "nobody is there to ask".into(),
        (Decider::Fault(fault), _) => format!("the answer can't be used: {fault}").into(),
        (Decider::Cancel, _) => "cancelled".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sp_a08_output_is_cut_between_two_characters() {
        let short = "x".repeat(OUTPUT_BYTES);
        assert_eq!(cut(&short), (short.as_str().into(), false));
        let long = "x".repeat(OUTPUT_BYTES - 1) + "€ and more";
        let (shown, was_cut) = cut(&long);
        assert!(was_cut);
        let kept = "x".repeat(OUTPUT_BYTES - 1);
        assert_eq!(shown, kept + "\n[truncated]");
        assert_eq!(cut(&"x".repeat(OUTPUT_BYTES + 1)).0.len(), 10_252);
    }
}
