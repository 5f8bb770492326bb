//! What differs between the strict wire and claude: one bit each, and three presets of all of them.

macro_rules! policy {
    ($(
        $(#[doc = $doc:literal])*
        $field:ident: $kind:ident {
            $( $(#[doc = $variant_doc:literal])* $variant:ident, )*
        } = $agentx:ident, $full:ident, $claude:ident;
    )*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub enum $kind { $( $(#[doc = $variant_doc])* $variant, )* }
        )*

        /// How the one engine behaves on the wire. Each field is a bit of its own; a [`Preset`] is a value of all.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct Policy {
            $( $(#[doc = $doc])* pub $field: $kind, )*
        }

        /// The name of a bit, to flip one at a time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(non_camel_case_types)]
        pub enum Bit {
            $( #[doc = concat!("[`Policy::", stringify!($field), "`]")] $field, )*
        }

        impl Bit {
            /// All of them.
            pub const ALL: &'static [Bit] = &[$( Bit::$field, )*];

            /// Its field in [`Policy`].
            pub const fn name(self) -> &'static str {
                match self { $( Bit::$field => stringify!($field), )* }
            }

            /// What it decides.
            pub const fn about(self) -> &'static str {
                match self { $( Bit::$field => concat!($($doc),*), )* }
            }
        }

        impl Policy {
            /// The strict wire, for a program that stands alone.
            pub const AGENTX: Policy = Policy { $( $field: $kind::$agentx, )* };
            /// The strict wire with all that its contract allows a program to install.
            pub const AGENTX_FULL: Policy = Policy { $( $field: $kind::$full, )* };
            /// The wire of the SDKs of claude.
            pub const CLAUDE: Policy = Policy { $( $field: $kind::$claude, )* };

            /// This policy with one bit of another.
            #[must_use]
            pub const fn with(mut self, bit: Bit, other: &Policy) -> Policy {
                match bit { $( Bit::$field => self.$field = other.$field, )* }
                self
            }
        }
    };
}

policy! {
    /// Members of `initialize` beside its subtype.
    initialize_fields: InitializeFields {
        /// Any is a correlated error.
        Refused,
        /// Hooks are registered, the rest is kept for the embedder.
        Accepted,
    } = Refused, Accepted, Accepted;

    /// Members that a record doesn't have, and members that come twice at any depth and in any spelling.
    member_rules: MemberRules {
        /// Fatal.
        Closed,
        /// The first are passed over; of the second the last counts.
        Open,
    } = Closed, Closed, Open;

    /// A `session_id` that isn't empty and isn't this session's.
    foreign_session_id: ForeignSession {
        /// Fatal.
        Fatal,
        /// Passed over.
        Ignored,
    } = Fatal, Fatal, Ignored;

    /// An object without a `type`, and JSON that isn't an object.
    untyped_or_array_line: UntypedLine {
        /// Fatal.
        Fatal,
        /// Passed over.
        Ignored,
    } = Fatal, Fatal, Ignored;

    /// A record of a type that the contract doesn't have.
    unknown_type: UnknownType {
        /// The person who runs the process is told (WIRE-002).
        Warned,
        /// Passed over.
        Silent,
    } = Warned, Warned, Silent;

    /// How long a line may be, its newline not counted.
    line_limit: LineLimit {
        /// 8 MiB in both directions: a longer one is fatal.
        Bounded,
        /// No longer than what the reader holds.
        Unbounded,
    } = Bounded, Bounded, Unbounded;

    /// A `user` record that is well-formed and makes no sense.
    bad_user_record: BadUser {
        /// A `result` that says so; all else goes on.
        InputError,
        /// The process leaves with 1.
        Exit,
    } = InputError, InputError, Exit;

    /// A `control_request` without a usable id or subtype.
    request_envelope: RequestEnvelope {
        /// Fatal.
        Closed,
        /// Answered as an operation that isn't known, with the id that there is.
        Answered,
    } = Closed, Closed, Answered;

    /// What a `control_response` may look like.
    response_union: ResponseUnion {
        /// A success or an error with exactly its own members; anything else is fatal.
        Closed,
        /// Whatever isn't an error is a success; one without an id or a body is passed over.
        Open,
    } = Closed, Closed, Open;

    /// A permission that is given without an input (AX-P08).
    allow_without_input: AllowWithoutInput {
        /// Denied: the payload lacks a member.
        Denied,
        /// The input stays as it was.
        Original,
    } = Denied, Denied, Original;

    /// Valid changes of the permissions in an answer (AX-P13).
    updated_permissions: UpdatedPermissions {
        /// The call is denied: nothing can be changed here.
        Denied,
        /// Applied in their order.
        Applied,
    } = Denied, Applied, Applied;

    /// `hook_callback`, `mcp_message`, and the operations of the shared table.
    hook_and_mcp_controls: HookAndMcp {
        /// Not known.
        Unsupported,
        /// There.
        Implemented,
    } = Unsupported, Implemented, Implemented;

    /// `set_model`, `set_permission_mode`, `set_max_thinking_tokens`.
    live_setters: LiveSetters {
        /// Each has a fixed error of its own.
        FixedErrors,
        /// They set.
        Implemented,
    } = FixedErrors, Implemented, Implemented;

    /// What the answer to `interrupt` carries (WIRE-010).
    interrupt_payload: InterruptPayload {
        /// Nothing.
        Nothing,
        /// The prompts that stay queued.
        StillQueued,
    } = Nothing, Nothing, StillQueued;

    /// When `system/init` is written.
    init_record: InitRecord {
        /// Once, as the first line, with `agentx_version`.
        Once,
        /// At the start of each turn, with `claude_code_version`.
        EachTurn,
    } = Once, Once, EachTurn;

    /// When `session_state_changed` is written.
    session_states: SessionStates {
        /// Always.
        Always,
        /// Where the environment asks for it, and marked for the host's machinery.
        OnRequest,
    } = Always, Always, OnRequest;

    /// What stands in a `stream_event`.
    partial_form: PartialForm {
        /// A piece of text.
        TextPiece,
        /// The provider's six events.
        Provider,
    } = TextPiece, TextPiece, Provider;

    /// How ids look that are made here.
    id_form: IdForm {
        /// `ses_`, `req_` and 32 hex digits.
        Prefixed,
        /// UUIDs.
        Uuid,
    } = Prefixed, Prefixed, Uuid;

    /// Attachments, the catalogue of providers, and `prompt_uuid` in results.
    attachments_providers_prompt_uuid: Extensions {
        /// There.
        Present,
        /// Not there.
        Absent,
    } = Present, Present, Absent;

    /// What a failure of the provider looks like.
    api_failure: ApiFailure {
        /// `error_during_execution`; retries are told on stderr alone.
        Plain,
        /// `api_retry` records, then a success with `is_error`.
        Retried,
    } = Plain, Plain, Retried;

    /// What a fatal line leaves behind.
    malformed_line: MalformedLine {
        /// A `result` with the input error, then exit code 1.
        InputErrorResult,
        /// Exit code 1 at once.
        ExitAtOnce,
    } = InputErrorResult, InputErrorResult, ExitAtOnce;

    /// A host that withdraws the agent's own request.
    host_cancel: HostCancel {
        /// The waiter is rejected: the call is denied.
        RejectsWaiter,
        /// Passed over for permissions, which stay open.
        IgnoredForPermissions,
    } = RejectsWaiter, RejectsWaiter, IgnoredForPermissions;

    /// Another `initialize`.
    second_initialize: SecondInitialize {
        /// Answered like the first.
        AnsweredAgain,
        /// The same, with the questions that are open.
        WithPending,
    } = AnsweredAgain, AnsweredAgain, WithPending;

    /// What a message of a user may hold.
    content_blocks: ContentBlocks {
        /// Text, and references to attachments.
        TextAndAttachments,
        /// Text, and images and documents in the provider's form.
        TextAndMedia,
    } = TextAndAttachments, TextAndAttachments, TextAndMedia;

    /// `update_environment_variables`.
    env_update: EnvUpdate {
        /// The person who runs the process is told that nothing changes.
        Warned,
        /// The embedder is asked.
        Asked,
        /// Passed over.
        Ignored,
    } = Warned, Asked, Ignored;

    /// A chunk that isn't base64, or is too long.
    chunk_fault: ChunkFault {
        /// Its upload fails (AX-S23).
        SettlesUpload,
        /// Fatal.
        Fatal,
    } = SettlesUpload, SettlesUpload, SettlesUpload;

    /// What `num_turns` of a result counts.
    num_turns: NumTurns {
        /// Requests to the model.
        Requests,
        /// 1, and the records with role user that the turn wrote.
        UserRecords,
    } = Requests, Requests, UserRecords;

    /// Where the replay of a prompt stands.
    replay_place: ReplayPlace {
        /// Before `running`.
        BeforeRunning,
        /// Behind `system/init`.
        AfterInit,
    } = BeforeRunning, BeforeRunning, AfterInit;

    /// What a turn's records say beside what the strict contract has.
    record_form: RecordForm {
        /// Nothing. Thinking is text, a call says why the reply stopped, results of tools are marked as nobody's words.
        Strict,
        /// The provider's own blocks; times, why a turn ended, what becomes of each prompt, denials that nobody was
        /// asked about; an error of a request has a code.
        Provider,
    } = Strict, Strict, Provider;

    /// Input that ends before any `user` record came.
    no_prompt: NoPrompt {
        /// A `result` with an input error, then exit code 1.
        InputErrorResult,
        /// Exit code 0, and no record.
        Clean,
    } = InputErrorResult, InputErrorResult, Clean;
}

/// A policy by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Preset {
    /// [`Policy::AGENTX`]
    #[default]
    Agentx,
    /// [`Policy::AGENTX_FULL`]
    AgentxFull,
    /// [`Policy::CLAUDE`]
    Claude,
}

impl Preset {
    /// All of them.
    pub const ALL: [Preset; 3] = [Preset::Agentx, Preset::AgentxFull, Preset::Claude];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Preset::Agentx => "agentx",
            Preset::AgentxFull => "agentx-full",
            Preset::Claude => "claude",
        }
    }

    /// The preset of that name.
    pub fn named(name: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// Its bits.
    pub const fn policy(self) -> Policy {
        match self {
            Preset::Agentx => Policy::AGENTX,
            Preset::AgentxFull => Policy::AGENTX_FULL,
            Preset::Claude => Policy::CLAUDE,
        }
    }
}

impl Default for Policy {
    /// The strict one.
    fn default() -> Self {
        Policy::AGENTX
    }
}

impl Policy {
    /// The longest line, in bytes of content; `None`: what the reader holds.
    pub const fn max_line(&self) -> Option<usize> {
        match self.line_limit {
            LineLimit::Bounded => Some(super::MAX_LINE),
            LineLimit::Unbounded => None,
        }
    }

    /// How a line is scanned.
    pub const fn scan_rules(&self) -> crate::json::ScanRules {
        match self.member_rules {
            MemberRules::Closed => super::wire::CLOSED_RULES,
            MemberRules::Open => super::wire::OPEN_RULES,
        }
    }
}
