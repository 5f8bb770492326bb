//! What the Server and the Client say alike of the same things: changes of the permissions, modes, media.

use alloc::string::String;
use alloc::vec::Vec;

use super::wire::{self, Destination, Manifest, PermissionMode};
use crate::json::{self, Str};
use crate::protocol::wire::Hole;
use crate::vocab::*;

/// The destination's neutral name; an unknown one keeps nothing.
fn keep(destination: &Destination<'_>) -> Keep {
    match destination {
        Destination::UserSettings => Keep::User,
        Destination::ProjectSettings => Keep::Project,
        Destination::LocalSettings => Keep::Local,
        Destination::CliArg => Keep::Arguments,
        Destination::Session | Destination::Other(_) => Keep::Session,
    }
}

const fn destination(keep: Keep) -> Destination<'static> {
    match keep {
        Keep::User => Destination::UserSettings,
        Keep::Project => Destination::ProjectSettings,
        Keep::Local => Destination::LocalSettings,
        Keep::Arguments => Destination::CliArg,
        Keep::Session => Destination::Session,
    }
}

/// A change of the permissions in neutral words.
pub(super) fn neutral_update(update: &wire::PermissionUpdate<'_>) -> Option<PermissionUpdate> {
    let rules = |op, rules: &[wire::RuleValue<'_>], behavior: &wire::RuleBehavior<'_>, to| {
        PermissionUpdate::Rules {
            op,
            behaviour: behavior.as_str().into(),
            rules: rules
                .iter()
                .map(|rule| {
                    (
                        (&*rule.tool_name).into(),
                        rule.rule_content.as_deref().map(Into::into),
                    )
                })
                .collect(),
            keep: keep(to),
        }
    };
    let paths = |op, directories: &[crate::json::Str<'_>], to| PermissionUpdate::Directories {
        op,
        paths: directories.iter().map(|path| (&**path).into()).collect(),
        keep: keep(to),
    };
    Some(match update {
        wire::PermissionUpdate::AddRules(it) => {
            rules(SetOp::Add, &it.rules, &it.behavior, &it.destination)
        }
        wire::PermissionUpdate::ReplaceRules(it) => {
            rules(SetOp::Replace, &it.rules, &it.behavior, &it.destination)
        }
        wire::PermissionUpdate::RemoveRules(it) => {
            rules(SetOp::Remove, &it.rules, &it.behavior, &it.destination)
        }
        wire::PermissionUpdate::SetMode(it) => PermissionUpdate::Mode {
            mode: match it.mode {
                PermissionMode::Default => "ask",
                PermissionMode::AcceptEdits => "accept_edits",
                PermissionMode::BypassPermissions => "auto",
                PermissionMode::Plan => "plan",
                PermissionMode::DontAsk => "never",
                PermissionMode::Auto | PermissionMode::Other(_) => return None,
            }
            .into(),
            keep: keep(&it.destination),
        },
        wire::PermissionUpdate::AddDirectories(it) => {
            paths(SetOp::Add, &it.directories, &it.destination)
        }
        wire::PermissionUpdate::RemoveDirectories(it) => {
            paths(SetOp::Remove, &it.directories, &it.destination)
        }
        wire::PermissionUpdate::Unknown(_) => return None,
    })
}

/// A change of the permissions as JSON; `None`: the wire has no form for it.
pub(super) fn wire_update(update: &PermissionUpdate) -> Option<Vec<u8>> {
    let destination = destination(update.keep());
    let update = match update {
        PermissionUpdate::Rules {
            op,
            behaviour,
            rules,
            ..
        } => {
            let rules: Vec<wire::RuleValue<'_>> = rules
                .iter()
                .map(|(tool, content)| wire::RuleValue {
                    tool_name: (&**tool).into(),
                    rule_content: content.as_deref().map(Into::into),
                    ..wire::RuleValue::default()
                })
                .collect();
            let behavior = wire::RuleBehavior::from(&**behaviour);
            match op {
                SetOp::Add => wire::PermissionUpdate::AddRules(wire::AddRules {
                    rules,
                    behavior,
                    destination,
                    ..wire::AddRules::default()
                }),
                SetOp::Replace => wire::PermissionUpdate::ReplaceRules(wire::ReplaceRules {
                    rules,
                    behavior,
                    destination,
                    ..wire::ReplaceRules::default()
                }),
                SetOp::Remove => wire::PermissionUpdate::RemoveRules(wire::RemoveRules {
                    rules,
                    behavior,
                    destination,
                    ..wire::RemoveRules::default()
                }),
            }
        }
        PermissionUpdate::Mode { mode, .. } => wire::PermissionUpdate::SetMode(wire::SetMode {
            mode: match &**mode {
                "ask" => PermissionMode::Default,
                "accept_edits" => PermissionMode::AcceptEdits,
                "auto" => PermissionMode::BypassPermissions,
                "plan" => PermissionMode::Plan,
                "never" => PermissionMode::DontAsk,
                _ => return None,
            },
            destination,
            ..wire::SetMode::default()
        }),
        PermissionUpdate::Directories { op, paths, .. } => {
            let directories = paths.iter().map(|path| (&**path).into()).collect();
            match op {
                SetOp::Add => wire::PermissionUpdate::AddDirectories(wire::AddDirectories {
                    directories,
                    destination,
                    ..wire::AddDirectories::default()
                }),
                SetOp::Remove => {
                    wire::PermissionUpdate::RemoveDirectories(wire::RemoveDirectories {
                        directories,
                        destination,
                        ..wire::RemoveDirectories::default()
                    })
                }
                SetOp::Replace => return None,
            }
        }
    };
    let mut json = Vec::new();
    update.put(&mut json);
    Some(json)
}

/// An approval mode by the contract's word; `None`: there is no such mode here.
pub(super) fn approvals(word: &str) -> Option<ApprovalMode> {
    Some(match PermissionMode::from(word) {
        PermissionMode::Default => ApprovalMode::Ask,
        PermissionMode::AcceptEdits => ApprovalMode::AcceptEdits,
        PermissionMode::BypassPermissions => ApprovalMode::Auto,
        PermissionMode::Plan => ApprovalMode::Plan,
        PermissionMode::DontAsk => ApprovalMode::Never,
        PermissionMode::Auto | PermissionMode::Other(_) => return None,
    })
}

/// The contract's word for an approval mode.
pub(super) fn mode_word(mode: &ApprovalMode) -> String {
    match mode {
        ApprovalMode::Auto => "bypassPermissions".into(),
        ApprovalMode::AcceptEdits => "acceptEdits".into(),
        ApprovalMode::Ask => "default".into(),
        ApprovalMode::ReadOnly | ApprovalMode::Never => "dontAsk".into(),
        ApprovalMode::Plan => "plan".into(),
        ApprovalMode::Other(word) => String::from(&**word),
    }
}

/// What a message says of an attachment.
pub(super) fn manifest(kind: MediaKind, stored: &Stored) -> Manifest<'_> {
    let mut digest = String::new();
    for byte in stored.sha256 {
        digest.push_str(&alloc::format!("{byte:02x}"));
    }
    Manifest {
        attachment_id: (&*stored.id).into(),
        kind: match kind {
            MediaKind::Image => wire::MediaKind::Image,
            MediaKind::Document => wire::MediaKind::Document,
        },
        name: (&*stored.name).into(),
        mime_type: (&*stored.mime).into(),
        size_bytes: stored.size,
        sha256: Str(digest.into()),
        storage_id: (&*stored.blob).into(),
        ..Manifest::default()
    }
}

pub(super) fn media_source(source: &Source) -> Vec<u8> {
    let mut json = Vec::new();
    match source {
        Source::Inline { mime, base64 } => {
            json.extend_from_slice(b"{\"type\":\"base64\",\"media_type\":");
            json::write_str(&mut json, mime);
            json.extend_from_slice(b",\"data\":");
            json::write_str(&mut json, base64);
            json.push(b'}');
        }
        Source::Url(url) => {
            json.extend_from_slice(b"{\"type\":\"url\",\"url\":");
            json::write_str(&mut json, url);
            json.push(b'}');
        }
        Source::Stored(stored) => json::write_str(&mut json, &stored.blob),
    }
    json
}
