//! What a hook answers: its exit code, and what it wrote to its standard output.
//!
//! * **0**: nothing against it. Output that begins with `{` is a JSON object with more to say (below); any other
//!   output is left alone.
//! * **2**: it objects, and its output is the reason (without any, its standard error is).
//! * anything else, or a signal: the hook failed.
//!
//! Members of the object, all optional; one that isn't known, or has no meaning at the point, is a failure: an
//! answer that was misread must not pass.
//!
//! | member | at | what |
//! |---|---|---|
//! | `decision` | `pre_tool_use` | `"allow"`: no question for this call. `"ask"`: a question. `"deny"`: as exit 2 |
//! | | `user_prompt_submit`, `turn_end`, `session_switch` | `"deny"`: as exit 2 |
//! | `reason` | beside `"deny"` | why |
//! | `context` | `user_prompt_submit`, `pre_tool_use`, `post_tool_use` | text for the model |
//! | `input` | `user_prompt_submit` | a string: the prompt's new text |
//! | | `pre_tool_use`, beside `"allow"` | an object: the call's new arguments |

use turnwire::json::{Kind, Members, Raw, ScanRules, scan};
use turnwire::vocab::{HookPoint, HookReply, HookVerdict, RawJson, Text};

use super::{Ended, Exit, Kept};

/// Bytes of a hook's standard output that are read; an object must fit.
pub const ANSWER_BYTES: usize = 1024 * 1024;
/// Bytes of a reason or a context; the rest is cut off.
pub const TEXT_BYTES: usize = 64 * 1024;
/// Characters of a failed hook's words that are repeated.
const WORDS: usize = 200;

/// Reads an answer. `Err`: the hook failed, and how.
pub(super) fn read(point: HookPoint, observe: bool, ended: &Ended) -> Result<HookReply, String> {
    match ended.exit {
        Exit::Code(0) if observe => Ok(HookReply::pass()),
        Exit::Code(0) => said(point, &ended.stdout),
        Exit::Code(2) if !observe => Ok(HookReply::deny(objection(ended))),
        Exit::Code(code) => Err(with_words(format!("exit code {code}"), ended)),
        Exit::Signal(signal) => Err(with_words(format!("ended by signal {signal}"), ended)),
    }
}

/// The reason of a hook that objects.
fn objection(ended: &Ended) -> Text {
    let said = [&ended.stdout, &ended.stderr].map(Kept::text);
    let text = said.iter().find(|text| !text.is_empty());
    text.map_or("it gave no reason", |text| cut(text)).into()
}

/// How it failed, with the first line that it wrote.
fn with_words(how: String, ended: &Ended) -> String {
    let said = [&ended.stderr, &ended.stdout].map(Kept::text);
    let lines = said.iter().filter_map(|text| text.lines().next());
    match lines.map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => {
            let words: String = line.chars().take(WORDS).collect();
            format!("{how}: {words}")
        }
        None => how,
    }
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// What a hook that passes has to say.
fn said(point: HookPoint, stdout: &Kept) -> Result<HookReply, String> {
    let text = stdout.bytes.trim_ascii();
    if !text.starts_with(b"{") {
        return Ok(HookReply::pass());
    }
    if stdout.over {
        return Err(format!("its answer is longer than {ANSWER_BYTES} bytes"));
    }
    let mut members = Members::new();
    let object = scan(text, &ScanRules::STRICT, &mut members)
        .map_err(|fault| format!("its answer is not a JSON object: {fault}"))?;
    let mut answer = Answer::default();
    for (name, value) in object.iter() {
        answer.take(name, value)?;
    }
    answer.judge(point)
}

/// The members of an answer.
#[derive(Default)]
struct Answer<'a> {
    decision: Option<Decision>,
    reason: Option<Text>,
    context: Option<Text>,
    input: Option<Raw<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Decision {
    Allow,
    Ask,
    Deny,
}

impl<'a> Answer<'a> {
    fn take(&mut self, name: &str, value: Raw<'a>) -> Result<(), String> {
        let text = || {
            let text = value.string();
            text.ok_or_else(|| format!("its answer: {name} is not a string"))
        };
        match name {
            "decision" => {
                self.decision = Some(match &*text()? {
                    "allow" => Decision::Allow,
                    "ask" => Decision::Ask,
                    "deny" => Decision::Deny,
                    _ => return Err("its answer: decision is none of allow, ask, deny".into()),
                });
            }
            "reason" => self.reason = Some(cut(text()?.trim()).into()),
            "context" => {
                self.context = Some(cut(text()?.trim()).into()).filter(|t: &Text| !t.is_empty());
            }
            "input" => self.input = Some(value),
            _ => return Err(format!("its answer: there is no member {name:?}")),
        }
        Ok(())
    }

    /// Puts the members together, as far as they have a meaning at the point.
    fn judge(self, point: HookPoint) -> Result<HookReply, String> {
        let out_of_place = |what: &str| {
            let point = super::payload::name(point);
            Err(format!("its answer: {what} has no meaning at {point}"))
        };
        let Answer {
            decision,
            reason,
            context,
            input,
        } = self;
        let decides = match decision {
            None => true,
            Some(Decision::Deny) => point != HookPoint::PostTool,
            Some(Decision::Allow | Decision::Ask) => point == HookPoint::PreTool,
        };
        if !decides {
            return out_of_place("this decision");
        }
        if reason.is_some() && decision != Some(Decision::Deny) {
            return Err("its answer: reason stands beside deny only".into());
        }
        if context.is_some() && matches!(point, HookPoint::TurnEnd | HookPoint::SessionSwitch) {
            return out_of_place("context");
        }
        if context.is_some() && matches!(decision, Some(Decision::Ask | Decision::Deny)) {
            return Err("its answer: context stands beside neither ask nor deny".into());
        }
        let input = match (input, point) {
            (None, _) => None,
            (Some(input), HookPoint::PromptSubmit) if decision.is_none() => {
                Some(of_kind(input, Kind::String, "a string")?)
            }
            (Some(input), HookPoint::PreTool) if decision == Some(Decision::Allow) => {
                Some(of_kind(input, Kind::Object, "an object")?)
            }
            (Some(_), HookPoint::PreTool) => {
                return Err("its answer: changed input needs the decision allow".into());
            }
            (Some(_), _) => return out_of_place("input"),
        };
        let verdict = match decision {
            Some(Decision::Deny) => {
                let reason = reason.filter(|text| !text.is_empty());
                HookVerdict::Deny(reason.unwrap_or_else(|| "it gave no reason".into()))
            }
            Some(Decision::Ask) => HookVerdict::Ask,
            Some(Decision::Allow) => HookVerdict::Allow { input },
            None if input.is_some() => HookVerdict::Allow { input },
            None => HookVerdict::Pass,
        };
        Ok(HookReply {
            verdict,
            context,
            ..HookReply::pass()
        })
    }
}

fn of_kind(value: Raw<'_>, kind: Kind, name: &str) -> Result<RawJson, String> {
    if value.kind() == kind {
        Ok(RawJson(value.as_str().into()))
    } else {
        Err(format!("its answer: input is not {name}"))
    }
}
