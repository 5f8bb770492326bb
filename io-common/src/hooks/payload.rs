//! What a hook is told: one line, a JSON object.
//!
//! | member | at | what |
//! |---|---|---|
//! | `event` | always | the hook's point, in openmax's words |
//! | `hook` | always | the hook's name |
//! | `session_id`, `project` | always | the session; the project's folder |
//! | `prompt` | `user_prompt_submit` | the prompt's text |
//! | `call`, `tool`, `args` | `pre_tool_use`, `post_tool_use` | the call's number in the session, the tool's name, the arguments as the model wrote them, or as a hook changed them |
//! | `ok`, `output`, `duration_ms` | `post_tool_use` | whether the call did what it was asked for, as `tool_end` says; the text of the result; how long the call ran |
//! | `text` | `turn_end` | the model's last text, or null |
//! | `facts` | `session_switch` | an object: `reason` (`new`, `open`, `switch`, `branch`, `fork`), and `target` as the host named it |
//! | `continuation`, `continuations_left` | `turn_end` | refusals that were honoured in this turn before, and how many more will be (null: all) |

use turnwire::json::{Raw, ScanRules, scan_value, write_bool, write_raw, write_str, write_u64};
use turnwire::vocab::{Block, CallId, HookFacts, HookPoint, RawJson, Trigger};

/// The members that every hook is told.
pub(super) struct Told<'a> {
    pub(super) point: HookPoint,
    pub(super) hook: &'a str,
    pub(super) session: &'a str,
    pub(super) project: &'a str,
}

/// The name of a point, for hooks.
pub(super) const fn name(point: HookPoint) -> &'static str {
    match point {
        HookPoint::PromptSubmit => "user_prompt_submit",
        HookPoint::PreTool => "pre_tool_use",
        HookPoint::PostTool => "post_tool_use",
        HookPoint::Permission => "permission_request",
        HookPoint::TurnEnd => "turn_end",
        HookPoint::RunEnd => "run_end",
        HookPoint::PreCompact => "pre_compact",
        HookPoint::SessionSwitch => "session_switch",
        HookPoint::SessionStart => "session_start",
        HookPoint::SessionEnd => "session_end",
        HookPoint::Notification => "notification",
    }
}

/// Writes the line, its newline included.
pub(super) fn write(told: &Told<'_>, facts: &HookFacts, tool: Option<(&str, &RawJson)>) -> Vec<u8> {
    let mut line = Line(Vec::new());
    line.text("event", name(told.point));
    line.text("hook", told.hook);
    line.text("session_id", told.session);
    line.text("project", told.project);
    match facts {
        HookFacts::Prompt { text, .. } => line.text("prompt", text),
        HookFacts::Call { call } => line.call(*call, tool),
        HookFacts::Result {
            call,
            content,
            ok,
            wall_us,
        } => {
            line.call(*call, tool);
            line.flag("ok", *ok);
            line.text("output", &text_of(content));
            line.number("duration_ms", wall_us / 1000);
        }
        HookFacts::TurnEnd {
            honoured,
            left,
            last,
        } => {
            match last {
                Some(text) => line.text("text", text),
                None => line.raw("text", Raw::NULL),
            }
            line.number("continuation", (*honoured).into());
            match left {
                Some(left) => line.number("continuations_left", (*left).into()),
                None => line.raw("continuations_left", Raw::NULL),
            }
        }
        HookFacts::Compaction {
            trigger,
            instructions,
        } => {
            line.text("trigger", trigger_word(*trigger));
            match instructions {
                Some(text) => line.text("instructions", text),
                None => line.raw("instructions", Raw::NULL),
            }
        }
        HookFacts::Other(facts) => line.json("facts", facts),
    }
    line.0.extend_from_slice(b"}\n");
    line.0
}

fn trigger_word(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::Manual => "manual",
        Trigger::Auto => "auto",
        Trigger::Overflow => "overflow",
    }
}

/// The texts of a result, a line each; media are left out.
fn text_of(content: &[Block]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        Block::Text(text) => Some(&**text),
        Block::Thinking { .. }
        | Block::Redacted(_)
        | Block::Media { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Opaque(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

struct Line(Vec<u8>);

impl Line {
    fn member(&mut self, name: &str) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        write_str(&mut self.0, name);
        self.0.push(b':');
    }

    fn text(&mut self, name: &str, text: &str) {
        self.member(name);
        write_str(&mut self.0, text);
    }

    fn number(&mut self, name: &str, number: u64) {
        self.member(name);
        write_u64(&mut self.0, number);
    }

    fn flag(&mut self, name: &str, value: bool) {
        self.member(name);
        write_bool(&mut self.0, value);
    }

    fn raw(&mut self, name: &str, value: Raw<'_>) {
        self.member(name);
        write_raw(&mut self.0, value);
    }

    /// A value as it was written; null if it is none, which can't be.
    fn json(&mut self, name: &str, json: &RawJson) {
        let value = scan_value(json.0.as_bytes(), &ScanRules::LENIENT);
        self.raw(name, value.unwrap_or(Raw::NULL));
    }

    fn call(&mut self, call: CallId, tool: Option<(&str, &RawJson)>) {
        self.number("call", call.0);
        if let Some((name, args)) = tool {
            self.text("tool", name);
            self.json("args", args);
        }
    }
}
