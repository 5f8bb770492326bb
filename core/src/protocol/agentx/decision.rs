//! What a host's answer to `can_use_tool` means (WIRE-PERM, AX-P06 … AX-P25).
//!
//! Whatever can't be read denies: no fault here ever lets a call run.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::policy::{AllowWithoutInput, Policy, ResponseUnion, UpdatedPermissions};
use super::wire::{
    Allow, Any, CanUseTool, Classification, Decision, Deny, Destination, Kept, PermissionMode,
    PermissionUpdate, Response, RuleBehavior, RuleValue,
};
use crate::json::{Kind, Raw};

/// What a host's answer comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// The call may run.
    Allow {
        /// In the place of the whole input; `None`: as it was.
        input: Option<Raw<'a>>,
        /// To be applied in their order. Only those for a file outlive the session.
        updates: Vec<PermissionUpdate<'a>>,
        /// How it was meant.
        classification: Classification<'a>,
    },
    /// The call may not run.
    Deny {
        /// For the model.
        message: Cow<'a, str>,
        /// The turn ends, too.
        interrupt: bool,
        /// How it was meant.
        classification: Classification<'a>,
    },
    /// The host failed, and says why: the call may not run (AX-P20).
    Failed(String),
    /// The answer is none: the call may not run.
    Refused(PayloadFault),
}

/// Why the payload of an answer is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PayloadFault {
    /// AX-P21: it isn't there, or isn't an object.
    NoPayload,
    /// AX-P19: `behavior` is neither `allow` nor `deny`.
    Behavior,
    /// AX-P08: an allow without `updatedInput`.
    NoInput,
    /// AX-P09: an allow whose `updatedInput` isn't an object.
    InputKind,
    /// AX-P13: changes of the permissions where none can be made.
    UpdatesUnavailable,
    /// AX-P14: `updatedPermissions` is `null`.
    NullUpdates,
    /// AX-P15: `decisionClassification` is `null`.
    NullClassification,
    /// AX-P16: `toolUseID` isn't a string.
    ToolUseId,
    /// AX-P17: a deny without a `message` that says something.
    NoMessage,
    /// AX-P18: `interrupt` is neither true nor false.
    Interrupt,
}

impl PayloadFault {
    /// Its rule in the catalogue.
    pub const fn rule(self) -> &'static str {
        match self {
            PayloadFault::NoPayload => "AX-P21",
            PayloadFault::Behavior => "AX-P19",
            PayloadFault::NoInput => "AX-P08",
            PayloadFault::InputKind => "AX-P09",
            PayloadFault::UpdatesUnavailable => "AX-P13",
            PayloadFault::NullUpdates => "AX-P14",
            PayloadFault::NullClassification => "AX-P15",
            PayloadFault::ToolUseId => "AX-P16",
            PayloadFault::NoMessage => "AX-P17",
            PayloadFault::Interrupt => "AX-P18",
        }
    }
}

impl fmt::Display for PayloadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PayloadFault::NoPayload => "the answer has no payload",
            PayloadFault::Behavior => "behavior must be allow or deny",
            PayloadFault::NoInput => "an allow needs updatedInput",
            PayloadFault::InputKind => "updatedInput must be an object",
            PayloadFault::UpdatesUnavailable => "permissions can't be changed in this session",
            PayloadFault::NullUpdates => "updatedPermissions must be a list or left out",
            PayloadFault::NullClassification => "decisionClassification must not be null",
            PayloadFault::ToolUseId => "toolUseID must be a string",
            PayloadFault::NoMessage => "a deny needs a message",
            PayloadFault::Interrupt => "interrupt must be true or false",
        })
    }
}

impl core::error::Error for PayloadFault {}

/// How the text for the model begins where a host couldn't be asked, or gave no answer that is one.
pub const FAILED: &str = "Tool permission request failed:";

impl Verdict<'_> {
    /// Whether the call may run.
    pub const fn allows(&self) -> bool {
        matches!(self, Verdict::Allow { .. })
    }

    /// What the model is told where the call may not run.
    pub fn message(&self) -> Option<Cow<'_, str>> {
        match self {
            Verdict::Allow { .. } => None,
            Verdict::Deny { message, .. } => Some(Cow::Borrowed(message)),
            Verdict::Failed(why) => Some(Cow::Owned(format!("{FAILED} {why}"))),
            Verdict::Refused(fault) => Some(Cow::Owned(format!("{FAILED} {fault}"))),
        }
    }
}

impl<'a> Verdict<'a> {
    /// Judges a whole response.
    pub fn of_response(response: &Response<'a>, policy: &Policy) -> Self {
        if response.is_error() {
            return Verdict::Failed(response.error_text().unwrap_or_default().into());
        }
        Verdict::of_payload(response.response, policy)
    }

    /// Judges the payload of a success.
    pub fn of_payload(payload: Any<'a>, policy: &Policy) -> Self {
        judge(payload, policy).unwrap_or_else(Verdict::Refused)
    }
}

fn judge<'a>(payload: Any<'a>, policy: &Policy) -> Result<Verdict<'a>, PayloadFault> {
    let value = payload.get().ok_or(PayloadFault::NoPayload)?;
    if value.kind() != Kind::Object {
        return Err(PayloadFault::NoPayload);
    }
    match value.decode().map_err(|_| PayloadFault::Behavior)? {
        Decision::Allow(allow) => judge_allow(&allow, policy),
        Decision::Deny(deny) => judge_deny(&deny, policy),
        Decision::Unknown(_) => Err(PayloadFault::Behavior),
    }
}

fn judge_allow<'a>(allow: &Allow<'a>, policy: &Policy) -> Result<Verdict<'a>, PayloadFault> {
    let input = match allow.updated_input.get() {
        None => match policy.allow_without_input {
            AllowWithoutInput::Denied => return Err(PayloadFault::NoInput),
            AllowWithoutInput::Original => None,
        },
        Some(input) if input.kind() == Kind::Object => (!is_empty(input)).then_some(input),
        Some(_) => return Err(PayloadFault::InputKind),
    };
    common(allow.tool_use_id, policy)?;
    let classification = classification(
        allow.decision_classification,
        Classification::UserTemporary,
        policy,
    )?;
    let updates = match allow.updated_permissions.get() {
        None => Vec::new(),
        Some(value) if value.is_null() => return Err(PayloadFault::NullUpdates),
        // A list of which one isn't an update is none (AX-P12).
        Some(value) => updates(value).unwrap_or_default(),
    };
    if !updates.is_empty() && policy.updated_permissions == UpdatedPermissions::Denied {
        return Err(PayloadFault::UpdatesUnavailable);
    }
    Ok(Verdict::Allow {
        input,
        updates,
        classification,
    })
}

fn judge_deny<'a>(deny: &Deny<'a>, policy: &Policy) -> Result<Verdict<'a>, PayloadFault> {
    let message = deny
        .message
        .string()
        .filter(|message| !message.trim().is_empty())
        .ok_or(PayloadFault::NoMessage)?;
    let interrupt = match deny.interrupt.get() {
        None => false,
        Some(value) => value.bool().ok_or(PayloadFault::Interrupt)?,
    };
    common(deny.tool_use_id, policy)?;
    Ok(Verdict::Deny {
        message,
        interrupt,
        classification: classification(
            deny.decision_classification,
            Classification::UserReject,
            policy,
        )?,
    })
}

/// `toolUseID` is read, and compared with nothing.
fn common(tool_use_id: Any<'_>, policy: &Policy) -> Result<(), PayloadFault> {
    let is_odd = tool_use_id
        .get()
        .is_some_and(|value| value.kind() != Kind::String);
    if is_odd && policy.response_union == ResponseUnion::Closed {
        return Err(PayloadFault::ToolUseId);
    }
    Ok(())
}

/// A word that isn't known counts as none.
fn classification<'a>(
    value: Any<'a>,
    absent: Classification<'a>,
    policy: &Policy,
) -> Result<Classification<'a>, PayloadFault> {
    let is_null = value.get().is_some_and(Raw::is_null);
    if is_null && policy.response_union == ResponseUnion::Closed {
        return Err(PayloadFault::NullClassification);
    }
    let word = value.get().and_then(|value| value.decode().ok());
    Ok(match word {
        Some(Classification::Other(_)) | None => absent,
        Some(word) => word,
    })
}

fn is_empty(object: Raw<'_>) -> bool {
    let mut is_empty = true;
    object.each_member(|_, _| is_empty = false);
    is_empty
}

/// Reads a list of updates; `None` if it isn't one, or one of them isn't one.
fn updates<'a>(value: Raw<'a>) -> Option<Vec<PermissionUpdate<'a>>> {
    let updates: Vec<PermissionUpdate<'a>> = value.decode().ok()?;
    updates.iter().all(is_update).then_some(updates)
}

/// Whether all its words are the catalogue's, and none of its members is null (AX-P23 … AX-P25).
pub fn is_update(update: &PermissionUpdate<'_>) -> bool {
    let rules = |rules: &[RuleValue<'_>], behavior: &RuleBehavior<'_>, to: &Destination<'_>| {
        // A member that may be left out and is null instead stands among the members that nobody knows.
        rules
            .iter()
            .all(|rule| rule.rest.get("ruleContent").is_none())
            && !matches!(behavior, RuleBehavior::Other(_))
            && is_place(to)
    };
    match update {
        PermissionUpdate::AddRules(it) => rules(&it.rules, &it.behavior, &it.destination),
        PermissionUpdate::ReplaceRules(it) => rules(&it.rules, &it.behavior, &it.destination),
        PermissionUpdate::RemoveRules(it) => rules(&it.rules, &it.behavior, &it.destination),
        PermissionUpdate::SetMode(it) => {
            !matches!(it.mode, PermissionMode::Auto | PermissionMode::Other(_))
                && is_place(&it.destination)
        }
        PermissionUpdate::AddDirectories(it) => is_place(&it.destination),
        PermissionUpdate::RemoveDirectories(it) => is_place(&it.destination),
        PermissionUpdate::Unknown(_) => false,
    }
}

fn is_place(destination: &Destination<'_>) -> bool {
    !matches!(destination, Destination::Other(_))
}

/// Whether an update outlives the session: it is for a file (AX-P13).
pub fn is_kept(update: &PermissionUpdate<'_>) -> bool {
    let destination = match update {
        PermissionUpdate::AddRules(it) => &it.destination,
        PermissionUpdate::ReplaceRules(it) => &it.destination,
        PermissionUpdate::RemoveRules(it) => &it.destination,
        PermissionUpdate::SetMode(it) => &it.destination,
        PermissionUpdate::AddDirectories(it) => &it.destination,
        PermissionUpdate::RemoveDirectories(it) => &it.destination,
        PermissionUpdate::Unknown(_) => return false,
    };
    matches!(
        destination,
        Destination::UserSettings | Destination::ProjectSettings | Destination::LocalSettings
    )
}

/// What is wrong with a request for permission, beyond what its type says: the member's name (AX-P03 … AX-P05).
pub fn odd_member(request: &CanUseTool<'_>) -> Option<&'static str> {
    const NEVER_NULL: [&str; 7] = [
        "permission_suggestions",
        "blocked_path",
        "decision_reason",
        "title",
        "display_name",
        "agent_id",
        "description",
    ];
    if request.input.kind() != Kind::Object {
        return Some("input");
    }
    let suggestions = request.permission_suggestions.as_deref();
    let is_good = |update: &Kept<'_, PermissionUpdate<'_>>| update.known().is_some_and(is_update);
    if !suggestions.unwrap_or_default().iter().all(is_good) {
        return Some("permission_suggestions");
    }
    NEVER_NULL
        .into_iter()
        .find(|name| request.rest.get(name).is_some())
}
