//! Permissions on the wire: what is asked, what may be answered, and what an answer may change (AX-P01 … AX-P31).

use alloc::vec::Vec;

use crate::json::{Lazy, Raw, Str};
use crate::protocol::member::{Any, Kept, objects, tagged, words};

words! {
    /// What a rule does.
    RuleBehavior {
        Allow "allow",
        Deny "deny",
        Ask "ask",
    }
    /// Where an update is kept. The first three are files, and outlive the session.
    Destination {
        UserSettings "userSettings",
        ProjectSettings "projectSettings",
        LocalSettings "localSettings",
        Session "session",
        CliArg "cliArg",
    }
    /// When tools need permission.
    PermissionMode {
        Default "default",
        AcceptEdits "acceptEdits",
        BypassPermissions "bypassPermissions",
        Plan "plan",
        DontAsk "dontAsk",
        /// claude only, and not in its older programs.
        Auto "auto",
    }
    /// How a person meant a decision: for statistics alone.
    Classification {
        UserTemporary "user_temporary",
        UserPermanent "user_permanent",
        UserReject "user_reject",
    }
}

objects! { without ["type"];
    /// Adds rules.
    AddRules {
        rules "rules": Vec<RuleValue<'a>>,
        behavior "behavior": RuleBehavior<'a>,
        destination "destination": Destination<'a>,
    }
    /// Puts rules in the place of those that are there.
    ReplaceRules {
        rules "rules": Vec<RuleValue<'a>>,
        behavior "behavior": RuleBehavior<'a>,
        destination "destination": Destination<'a>,
    }
    /// Takes rules away.
    RemoveRules {
        rules "rules": Vec<RuleValue<'a>>,
        behavior "behavior": RuleBehavior<'a>,
        destination "destination": Destination<'a>,
    }
    /// Changes the mode.
    SetMode {
        mode "mode": PermissionMode<'a>,
        destination "destination": Destination<'a>,
    }
    /// Lets tools work in more folders.
    AddDirectories {
        directories "directories": Vec<Str<'a>>,
        destination "destination": Destination<'a>,
    }
    /// Takes folders away.
    RemoveDirectories {
        directories "directories": Vec<Str<'a>>,
        destination "destination": Destination<'a>,
    }
}

tagged! {
    /// A change of the permissions that an answer brings (AX-P23 … AX-P25).
    PermissionUpdate by "type" {
        AddRules(AddRules) = "addRules",
        ReplaceRules(ReplaceRules) = "replaceRules",
        RemoveRules(RemoveRules) = "removeRules",
        SetMode(SetMode) = "setMode",
        AddDirectories(AddDirectories) = "addDirectories",
        RemoveDirectories(RemoveDirectories) = "removeDirectories",
    }
}

objects! { without [];
    /// A tool, and for which of its calls.
    RuleValue {
        tool_name "toolName": Str<'a>,
        rule_content "ruleContent": Option<Str<'a>>,
    }
    /// The rule of a person's own that made the agent ask.
    MatchedAskRule {
        source "source": Str<'a>,
        tool_name "tool_name": Str<'a>,
        rule_content "rule_content": Option<Str<'a>>,
    }
}

objects! { without ["subtype"];
    /// May this call run? (AX-P01 … AX-P05) A call of the network is asked for as the tool `SandboxNetworkAccess`.
    CanUseTool {
        tool_name "tool_name": Str<'a>,
        display_name "display_name": Option<Str<'a>>,
        /// An object.
        input "input": Raw<'a>,
        title "title": Option<Lazy<'a>>,
        description "description": Option<Lazy<'a>>,
        permission_suggestions "permission_suggestions": Option<Vec<Kept<'a, PermissionUpdate<'a>>>>,
        blocked_path "blocked_path": Option<Str<'a>>,
        decision_reason "decision_reason": Option<Lazy<'a>>,
        decision_reason_type "decision_reason_type": Option<Str<'a>>,
        decision_reason_hook_event "decision_reason_hook_event": Option<Str<'a>>,
        decision_reason_hook_source "decision_reason_hook_source": Option<Str<'a>>,
        tool_use_id "tool_use_id": Str<'a>,
        agent_id "agent_id": Option<Str<'a>>,
        /// Whose tool it is: `name` and `source`.
        mcp_server "mcp_server": Any<'a>,
        matched_ask_rule "matched_ask_rule": Option<Kept<'a, MatchedAskRule<'a>>>,
        suppress_always_allow_rule "suppress_always_allow_rule": Option<bool>,
        default_to_no "default_to_no": Option<bool>,
        classifier_approvable "classifier_approvable": Option<bool>,
        requires_user_interaction "requires_user_interaction": Option<bool>,
    }
    /// Asks a person something. The answer maps each question to a list of texts. agentx only.
    AskUserQuestion {
        questions "questions": Raw<'a>,
    }
}

objects! { without ["behavior"];
    /// The call may run. Members that are judged with a rule of their own have any type here: see
    /// [`decision`](crate::protocol::agentx::decision).
    Allow {
        /// An object. Empty: the input as it was.
        updated_input "updatedInput": Any<'a>,
        /// A list of [`PermissionUpdate`]s.
        updated_permissions "updatedPermissions": Any<'a>,
        tool_use_id "toolUseID": Any<'a>,
        /// A [`Classification`].
        decision_classification "decisionClassification": Any<'a>,
    }
    /// The call may not run.
    Deny {
        /// A text for the model.
        message "message": Any<'a>,
        /// The turn ends, too.
        interrupt "interrupt": Any<'a>,
        tool_use_id "toolUseID": Any<'a>,
        /// A [`Classification`].
        decision_classification "decisionClassification": Any<'a>,
    }
}

tagged! {
    /// A host's answer to [`CanUseTool`], as it stands on the line.
    Decision by "behavior" {
        Allow(Allow) = "allow",
        Deny(Deny) = "deny",
    }
}

/// The name by which a connection to the network is asked for (AX-P31).
pub const NETWORK_TOOL: &str = "SandboxNetworkAccess";
