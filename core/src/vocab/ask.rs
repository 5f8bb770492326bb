//! Questions from the agent to its host, and their answers.
//!
//! One pattern serves all of them: [`What::Asked`], a [`Command::Reply`],
//! [`What::AskClosed`]. Each question is closed exactly once (S-32, L8), whether
//! it was answered, timed out, cancelled, or its host went away.

use super::*;

/// A question to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// May this call run? Answered by [`Reply::Allow`] or [`Reply::Deny`].
    Permission(Box<PermissionAsk>),
    /// Run this hook. Answered by [`Reply::Hook`].
    Hook(Box<HookAsk>),
    /// Carry out this call of a tool that the host offered. Answered by [`Reply::Tool`].
    Tool {
        /// The call.
        call: CallId,
        /// The tool's name, as offered.
        name: Text,
        /// The checked arguments.
        input: RawJson,
    },
    /// Read or write a URI of a scheme that the host offered. Answered by [`Reply::Uri`].
    Uri {
        /// Reading or writing.
        op: UriOp,
        /// The whole URI.
        uri: Text,
        /// What to write; `None` for a read.
        body: Option<Text>,
    },
    /// A dialog for the person. Answered by [`Reply::Choice`].
    Choice(Box<ChoiceAsk>),
}

impl Ask {
    /// The call that the question is about, where there is one.
    pub fn call(&self) -> Option<CallId> {
        match self {
            Ask::Permission(ask) => ask.call,
            Ask::Tool { call, .. } => Some(*call),
            Ask::Hook(ask) => ask.facts.call(),
            Ask::Uri { .. } | Ask::Choice(_) => None,
        }
    }

    /// Whether this is a permission.
    pub const fn is_permission(&self) -> bool {
        matches!(self, Ask::Permission(_))
    }
}

/// What to do with a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UriOp {
    /// Give its content.
    Read,
    /// Replace its content.
    Write,
}

/// A permission question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionAsk {
    /// The call that waits; `None` if the question belongs to no call.
    pub call: Option<CallId>,
    /// The tool's name.
    pub tool: Text,
    /// Why it is asked.
    pub reason: AskReason,
    /// One line for people.
    pub summary: Text,
    /// Everything a person needs in order to judge.
    pub detail: Text,
    /// Longer content, such as the text to be written.
    pub body: Option<Text>,
    /// Changes to the rules that the host may send back with an allow.
    pub suggestions: Vec<PermissionUpdate>,
    /// Names of the environment variables that an approved tool will receive (OM-16).
    pub env: Vec<Text>,
    /// When it times out, on the clock of [`Now::mono_us`]; `None`: never.
    pub due: Option<u64>,
}

/// Why a permission is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskReason {
    /// The mode or a rule wants it asked.
    Gate,
    /// The call would run code whose exact bytes no person has approved (OM-15).
    UnapprovedSource {
        /// Where the code lies.
        path: Text,
        /// The first 12 hexadecimal digits of its SHA-256.
        sha: Text,
    },
    /// A running tool wants to reach a host of the network.
    Network {
        /// That host.
        host: Text,
    },
    /// Another reason, in an agent's own words.
    Other(Text),
}

/// A hook that the host offered, to be run by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookAsk {
    /// The key under which the host offered it.
    pub key: Text,
    /// Where in the turn it stands.
    pub point: HookPoint,
    /// What it judges.
    pub facts: HookFacts,
}

/// What a hook is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookFacts {
    /// A prompt that was handed in.
    Prompt {
        /// The prompt.
        prompt: PromptId,
        /// Its text blocks, joined.
        text: Text,
    },
    /// A call that is about to be judged. Name and input are in its `ToolStarted`.
    Call {
        /// The call.
        call: CallId,
    },
    /// A call that has run.
    Result {
        /// The call.
        call: CallId,
        /// What it gave.
        content: Vec<Block>,
        /// Whether it did what it was asked for.
        ok: bool,
        /// How long it ran, in microseconds.
        wall_us: u64,
    },
    /// A turn that is about to finish.
    TurnEnd {
        /// Refusals that were honoured in this turn before.
        honoured: u32,
        /// How many more will be; `None`: all.
        left: Option<u32>,
        /// The last text of the model.
        last: Option<Text>,
    },
    /// The history is about to be summarised. The hook is only told: nothing waits for it.
    Compaction {
        /// Why.
        trigger: Trigger,
        /// What the summary should keep in mind, as the host said it.
        instructions: Option<Text>,
    },
    /// The facts of a point that only one protocol has.
    Other(RawJson),
}

impl HookFacts {
    /// The call that the facts are about.
    pub const fn call(&self) -> Option<CallId> {
        match self {
            HookFacts::Call { call } | HookFacts::Result { call, .. } => Some(*call),
            HookFacts::Prompt { .. }
            | HookFacts::TurnEnd { .. }
            | HookFacts::Compaction { .. }
            | HookFacts::Other(_) => None,
        }
    }
}

/// A dialog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoiceAsk {
    /// What it asks, for people.
    pub title: Text,
    /// What sort of answer it wants.
    pub kind: ChoiceKind,
    /// How long the host should wait, in microseconds; `None`: as long as it takes.
    pub timeout_us: Option<u64>,
}

/// What sort of answer a dialog wants. Every answer is text; dismissed is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChoiceKind {
    /// One of these.
    Select(Vec<Text>),
    /// Yes or no: `true` or `false`.
    Confirm,
    /// A line of text.
    Input {
        /// Shown while it is empty.
        placeholder: Text,
    },
    /// A longer text.
    Editor {
        /// What it begins with.
        prefill: Text,
    },
    /// A form, described by a schema; the answer is its JSON.
    Form(RawJson),
    /// A page to be visited.
    Url(Text),
}

/// The answer to a question, of the kind that the question wants. Another kind is `Err(Invalid)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The call may run.
    Allow {
        /// Replaces the arguments whole; `None`: run as asked.
        input: Option<RawJson>,
        /// Changes to the rules, in order, from the next judged call on. A bad one drops all.
        updates: Vec<PermissionUpdate>,
    },
    /// The call may not run.
    Deny {
        /// Why, for the model.
        message: Option<Text>,
        /// Also end the turn, as by a cancel with [`CancelWhy::Denied`].
        interrupt: bool,
    },
    /// What the hook says.
    Hook(Box<HookReply>),
    /// What the host's tool gave.
    Tool {
        /// The result.
        content: Vec<Block>,
        /// Whether it is an error.
        is_error: bool,
        /// For hosts, never for the model.
        details: Option<RawJson>,
    },
    /// What the host's URI holds, or that it was written.
    Uri {
        /// The content; after a write what the model is told.
        body: Text,
        /// Its media type; `None`: plain text.
        mime: Option<Text>,
        /// Remarks for the model.
        notes: Vec<Text>,
        /// Whether it can't be edited; `None`: as the scheme was offered.
        immutable: Option<bool>,
    },
    /// What the person chose; `None`: dismissed.
    Choice(Option<Text>),
}

/// What a hook says, local or of the host (section 8 of the session's rules).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookReply {
    /// Its judgement.
    pub verdict: HookVerdict,
    /// Text to add for the model; at PromptSubmit it stands beside the prompt.
    pub context: Option<Text>,
    /// Whether the turn may go on; `false` ends it, `Blocked`: before its first step at PromptSubmit, behind the call at
    /// PreTool (which is then denied) and PostTool. At Permission it denies and interrupts; at TurnEnd nothing keeps
    /// the turn from its end.
    pub go_on: bool,
    /// Why not, for people.
    pub stop_reason: Option<Text>,
    /// Changes to the rules, beside an allow at Permission; as those of [`Reply::Allow`].
    pub updates: Vec<PermissionUpdate>,
    /// Also end the turn, beside a deny at Permission; as that of [`Reply::Deny`].
    pub interrupt: bool,
}

impl HookReply {
    /// A hook that has nothing to say.
    pub const fn pass() -> Self {
        Self {
            verdict: HookVerdict::Pass,
            context: None,
            go_on: true,
            stop_reason: None,
            updates: Vec::new(),
            interrupt: false,
        }
    }

    /// A hook that refuses, and says why.
    pub const fn deny(why: Text) -> Self {
        Self {
            verdict: HookVerdict::Deny(why),
            context: None,
            go_on: true,
            stop_reason: None,
            updates: Vec::new(),
            interrupt: false,
        }
    }
}

/// A hook's judgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookVerdict {
    /// No opinion.
    Pass,
    /// Yes.
    Allow {
        /// Replaces the arguments whole, or the prompt's content.
        input: Option<RawJson>,
    },
    /// Let the host decide.
    Ask,
    /// No: blocks a prompt, denies a call, refuses the end of a turn. Says why.
    Deny(Text),
}

/// Why a question has no answer. None of these ever allows anything (TW-06).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyFault {
    /// The host says that it failed.
    HostError(Text),
    /// The host's answer can't be read.
    Malformed(Text),
    /// The host took the question back.
    HostCancelled,
    /// There is no host any more, or nobody to ask.
    HostGone,
}

/// How a question was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskClose {
    /// By a decision.
    Answered {
        /// Whose: the host's, or a hook's that was faster.
        by: Decider,
        /// For a permission which way; `None` for other questions.
        allow: Option<bool>,
    },
    /// A hook run that lost against another decision.
    Superseded,
    /// Its timer ran out.
    TimedOut,
    /// The host took it back.
    Withdrawn,
    /// What it belonged to was cancelled.
    Cancelled,
    /// The host is gone.
    HostGone,
    /// The answer was an error; says what.
    Fault(Text),
}

impl AskClose {
    /// Whether a permission closed this way lets its call run. Errors deny.
    pub const fn allows(&self) -> bool {
        matches!(
            self,
            AskClose::Answered {
                allow: Some(true),
                ..
            }
        )
    }
}

/// A change to the permission rules that comes with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionUpdate {
    /// Rules for tools.
    Rules {
        /// What to do with them.
        op: SetOp,
        /// `allow`, `deny` or `ask`.
        behaviour: Text,
        /// Tool name, and what within the tool; `None`: all of it.
        rules: Vec<(Text, Option<Text>)>,
        /// Where the change is kept.
        keep: Keep,
    },
    /// Another approval mode.
    Mode {
        /// The mode, in neutral words: `auto`, `accept_edits`, `ask`, `read_only`, `plan`, `never`.
        mode: Text,
        /// Where the change is kept.
        keep: Keep,
    },
    /// Directories that tools may work in, besides the project's.
    Directories {
        /// What to do with them.
        op: SetOp,
        /// The directories, absolute.
        paths: Vec<Text>,
        /// Where the change is kept.
        keep: Keep,
    },
}

/// How a list is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp {
    /// These as well.
    Add,
    /// These instead.
    Replace,
    /// Without these.
    Remove,
}

/// Where a change of the rules is kept. It counts in the session in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Until the session ends.
    Session,
    /// In the user's settings.
    User,
    /// In the project's shared settings.
    Project,
    /// In the project's settings of this user alone.
    Local,
    /// As if given on the command line.
    Arguments,
}

impl Keep {
    /// Whether it outlives the session.
    pub const fn is_stored(self) -> bool {
        match self {
            Keep::User | Keep::Project | Keep::Local => true,
            Keep::Session | Keep::Arguments => false,
        }
    }
}

impl PermissionUpdate {
    /// Where it is kept.
    pub const fn keep(&self) -> Keep {
        match self {
            PermissionUpdate::Rules { keep, .. }
            | PermissionUpdate::Mode { keep, .. }
            | PermissionUpdate::Directories { keep, .. } => *keep,
        }
    }
}
