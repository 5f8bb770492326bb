//! What an embedder decides for a session: policy, limits, model, tools, rules and hooks.
//!
//! Every field has a default; the defaults name no protocol. Durations are microseconds on the clock of
//! [`Now::mono_us`](crate::vocab::Now), sizes are bytes.

use alloc::vec::Vec;

use crate::vocab::{
    ApprovalMode, Cost, CostBasis, Drain, Frozen, Goal, Interrupting, JobRecord, RunId, Settings,
    SideEffect, Text, ToolSpec, Usage,
};

pub use crate::vocab::{LocalHook, Rule, RuleBehaviour, UnapprovedSource, UnloadedHook};

const SECOND: u64 = 1_000_000;
const KIB: usize = 1024;
const MIB: usize = 1024 * 1024;

/// The configuration of one [`Session`](super::Session).
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// The run that the session is: the outermost one, or one below it, whose ids lie in a range of their own.
    pub run: RunId,
    /// How deep it lies below the outermost one, which is at 0.
    pub depth: u32,
    /// The last nested run of the processes before this one: those of this one are numbered behind it. So what is kept of
    /// a run by its number is kept of no other.
    pub last_run: RunId,
    /// All randomness of the session (the jitter of retries) comes from it (L5).
    pub seed: [u8; 32],
    /// System text, sent with every request.
    pub system: Option<Text>,
    /// The model at start.
    pub model: ModelConfig,
    /// Other models that `Setting::Model` may name. Empty: any name is taken, with the numbers of [`model`](Self::model),
    /// but for its price.
    pub models: Vec<ModelConfig>,
    /// Prices of models that stand nowhere else, by name.
    pub prices: Vec<(Text, Price)>,
    /// The driver's own tools; `Input::DriverTools` replaces them. What a host offers is a second set.
    pub tools: Vec<ToolSpec>,
    /// Settings at the start, the approval mode among them. They go into `Opened`.
    pub settings: Settings,
    /// Permission rules, see [`Rule`].
    pub rules: Vec<Rule>,
    /// Tools whose content no human has approved yet; a call of one asks, whatever the mode but Auto says.
    pub unapproved: Vec<UnapprovedSource>,
    /// Hooks that the driver runs, in the order in which they run at one point.
    pub hooks: Vec<LocalHook>,
    /// Hooks that are there and weren't loaded: the first turn says so, and goes on without them.
    pub unloaded: Vec<UnloadedHook>,
    /// Names of the skills, for `Opened`.
    pub skills: Vec<Text>,
    /// Records of the jobs that an earlier process of this session had, oldest first: one that wasn't over then was
    /// interrupted with it.
    pub jobs: Vec<JobRecord>,
    /// The goal that the session pursues by itself.
    pub goals: Goals,
    /// After how many steps without it an open plan ([`plan_tool`](super::plan_tool)) is brought to mind; `None`: it isn't.
    pub plan_reminder: Option<u32>,
    /// Choices between behaviours.
    pub policy: Policy,
    /// Sizes and numbers.
    pub limits: Limits,
    /// Durations.
    pub timeouts: Timeouts,
    /// What a turn may use up.
    pub budgets: Budgets,
}

impl SessionConfig {
    /// The defaults, for a model.
    pub fn new(model: ModelConfig) -> Self {
        SessionConfig {
            run: RunId::MAIN,
            depth: 0,
            last_run: RunId::MAIN,
            seed: [0; 32],
            system: None,
            model,
            models: Vec::new(),
            prices: Vec::new(),
            tools: Vec::new(),
            settings: Settings {
                approvals: ApprovalMode::Ask,
                thinking: None,
                steer_drain: Drain::All,
                follow_up_drain: Drain::One,
                interrupting: Interrupting::Wait,
                auto_retry: true,
                auto_compact: true,
            },
            rules: Vec::new(),
            unapproved: Vec::new(),
            hooks: Vec::new(),
            unloaded: Vec::new(),
            skills: Vec::new(),
            jobs: Vec::new(),
            goals: Goals::default(),
            plan_reminder: None,
            policy: Policy::default(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            budgets: Budgets::default(),
        }
    }

    /// Replaces all that can be frozen anew.
    pub fn freeze(&mut self, frozen: Frozen) {
        let Frozen {
            system,
            tools,
            skills,
            rules,
            unapproved,
            hooks,
            unloaded,
        } = frozen;
        self.system = system;
        self.tools = tools;
        self.skills = skills;
        self.rules = rules;
        self.unapproved = unapproved;
        self.hooks = hooks;
        self.unloaded = unloaded;
    }
}

/// How a goal is pursued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goals {
    /// The goal of an earlier process, if it had one. It comes back disarmed.
    pub standing: Option<Goal>,
    /// Turns that a goal may begin by itself each time that it is armed, where the command doesn't say: with 0 it begins
    /// none, `None` is no limit.
    pub auto_turns: Option<u32>,
    /// Whether a change counts only once it is stored.
    pub stored: bool,
    /// Whether the model is asked, once in each turn that would finish, if the goal is met.
    pub check: bool,
    /// Whether each turn that begins for the goal brings it to mind.
    pub remind: bool,
}

impl Default for Goals {
    fn default() -> Self {
        Goals {
            standing: None,
            auto_turns: Some(20),
            stored: false,
            check: false,
            remind: false,
        }
    }
}

/// A model and its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelConfig {
    /// Who serves it, for reports.
    pub provider: Option<Text>,
    /// Its name as the provider knows it.
    pub name: Text,
    /// Context window in tokens; 0 if unknown, and then nothing is refused for its size.
    pub window: u64,
    /// Largest output in tokens, sent with each request if it is known.
    pub max_output: Option<u64>,
    /// Thinking budget in tokens at the start.
    pub thinking_budget: Option<u64>,
    /// What it costs; `None`: that isn't known, and then nothing is ever said to cost nothing.
    pub price: Option<Price>,
}

/// What a model's tokens cost, each in millionths of a millionth of a US dollar (a dollar for a million tokens is
/// 1,000,000 for each).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// A prompt token that is in no cache.
    pub input: u64,
    /// A prompt token read from a cache.
    pub cache_read: u64,
    /// A prompt token written to a cache.
    pub cache_write: u64,
    /// A token of the answer, thinking too.
    pub output: u64,
    /// Whose price it is.
    pub source: Text,
    /// Its date.
    pub as_of: Text,
}

impl Price {
    /// What reported usage costs; buckets that weren't reported count nothing.
    pub fn cost(&self, usage: &Usage) -> Cost {
        let buckets = [
            (usage.input, self.input),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
            (usage.output, self.output),
            (usage.reasoning, self.output),
        ];
        let costs = buckets.map(|(tokens, price)| tokens.unwrap_or(0).saturating_mul(price));
        Cost::Known {
            pico_usd: costs.into_iter().fold(0, u64::saturating_add),
            basis: CostBasis::Estimated,
            source: self.source.clone(),
            as_of: self.as_of.clone(),
        }
    }
}

impl ModelConfig {
    /// A model by its name, with a window in tokens.
    pub fn new(name: impl Into<Text>, window: u64) -> Self {
        ModelConfig {
            provider: None,
            name: name.into(),
            window,
            max_output: None,
            thinking_budget: None,
            price: None,
        }
    }

    /// Whether a setting means this model: by its name, or by `provider/name`.
    pub(super) fn is_named(&self, name: &str) -> bool {
        let with_provider = || {
            let rest = name.strip_prefix(self.provider.as_deref()?)?;
            Some(rest.strip_prefix('/')? == &*self.name)
        };
        &*self.name == name || with_provider() == Some(true)
    }
}

/// Choices between behaviours.
#[derive(Clone, Debug)]
pub struct Policy {
    /// When the prompt-submit hooks judge a prompt.
    pub prompt_hook: PromptHook,
    /// What becomes of a steer that came too late for its turn.
    pub leftover_steer: LeftoverSteer,
    /// Whether a cancelled turn leaves a note in the history, for the model; one that gave way to a preempting prompt
    /// leaves none.
    pub cancel_note: bool,
    /// How many refusals of the turn-end hooks are honoured in a turn; one more ends it `Unverified`. `None`: all.
    pub max_refusals: Option<u32>,
    /// How many permissions may be open at once, at least 1.
    pub asks_at_once: u32,
    /// With it, mode Auto asks nothing, not for ask rules or unapproved content either (S-36).
    pub auto_silences_ask: bool,
    /// Whether input that a host changed is checked against deny rules and schema again.
    pub recheck_changed_input: bool,
    /// Whether a permission comes with the updates that would keep it from being asked again.
    pub suggest: bool,
    /// Which calls may run side by side.
    pub parallel: Parallel,
    /// When the end of a call that ended early is said.
    pub tool_end_order: ToolEndOrder,
    /// Whether the files of a call that writes are put aside first, so that they can be put back.
    pub snapshots: Snapshots,
    /// What becomes of a message whose request failed after text was shown.
    pub error_partial: ErrorPartial,
    /// Retries of model requests.
    pub retry: Retry,
    /// Whether a turn waits for the jobs that its calls began.
    pub hold_turn: HoldTurn,
    /// What the end of a job does while the session is idle.
    pub job_when_idle: JobWhenIdle,
    /// What waits for a durable write.
    pub gates: Gates,
    /// Whether a turn goes on when one of its writes failed. Either way it is reported.
    pub store_failure: StoreFailure,
    /// When the history is summarised, and what becomes of the turn then.
    pub compaction: Compaction,
    /// From where on a request isn't sent because the context is full.
    pub refuse_at: RefuseAt,
    /// When another session may take the place of this one.
    pub change_session: ChangeSession,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            prompt_hook: PromptHook::AtStart,
            leftover_steer: LeftoverSteer::Drop,
            cancel_note: false,
            max_refusals: Some(8),
            asks_at_once: 8,
            auto_silences_ask: true,
            recheck_changed_input: true,
            suggest: false,
            parallel: Parallel::Reads,
            tool_end_order: ToolEndOrder::Call,
            snapshots: Snapshots::Never,
            error_partial: ErrorPartial::Void,
            retry: Retry::default(),
            hold_turn: HoldTurn::No,
            job_when_idle: JobWhenIdle::StartTurn,
            gates: Gates::default(),
            store_failure: StoreFailure::GoOn,
            compaction: Compaction::default(),
            refuse_at: RefuseAt::OutputFits,
            change_session: ChangeSession::Never,
        }
    }
}

/// See [`Policy::change_session`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeSession {
    /// Never.
    Never,
    /// While nothing runs.
    WhenIdle,
    /// At any time: what runs is cancelled once the other session is there. A fork is only made while nothing runs.
    Always,
}

/// See [`Policy::prompt_hook`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptHook {
    /// When its turn begins: a blocked prompt was admitted, and ends `Blocked` with that turn. What joins a turn that
    /// runs (steers, follow-ups) isn't judged.
    AtStart,
    /// Before it is admitted, whatever it is for, one prompt at a time in order of arrival. A blocked one is refused
    /// as [`Refusal::Blocked`](crate::vocab::Refusal::Blocked), and a cancel of the turn refuses all that came before
    /// it and are still judged.
    AtSubmit,
}

/// See [`Policy::leftover_steer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftoverSteer {
    /// It ends `Dropped(TurnOver)`.
    Drop,
    /// It becomes a follow-up, before the others.
    Keep,
}

/// See [`Policy::parallel`]. Consecutive calls that are safe side by side make one wave; any other call is alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parallel {
    /// None.
    Never,
    /// Those of tools whose side effect is `None` or `Read`.
    Reads,
    /// As [`Parallel::Reads`], but for calls that may be asked about: by an ask rule, by a pre-tool hook that decides,
    /// or because no human has approved the tool's content. For hosts that take a question for one about the call
    /// that is open.
    QuietReads,
    /// Those of the tools named here.
    Listed(Vec<Text>),
    /// All.
    All,
}

impl Parallel {
    /// Whether calls of a tool are safe side by side, by its side effect and name.
    pub fn is_safe(&self, tool: &ToolSpec) -> bool {
        match self {
            Parallel::Never => false,
            Parallel::Reads | Parallel::QuietReads => {
                matches!(tool.side_effect, SideEffect::None | SideEffect::Read)
            }
            Parallel::Listed(names) => names.contains(&tool.name),
            Parallel::All => true,
        }
    }
}

/// See [`Policy::tool_end_order`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolEndOrder {
    /// In the order of the calls.
    Call,
    /// At once.
    Finish,
}

/// See [`Policy::snapshots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshots {
    /// They aren't; nothing can be put back.
    Never,
    /// Before the call is judged: for hosts that can't change its input. What a person does to the files while it waits
    /// to be approved is put back with what it does.
    BeforeGate,
    /// Right before it runs.
    BeforeRun,
}

/// See [`Policy::error_partial`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorPartial {
    /// It is void: `kept: false`.
    Void,
    /// It stays in the history.
    Keep,
}

/// See [`Policy::hold_turn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldTurn {
    /// It ends, and they go on.
    No,
    /// It isn't ended while one of them runs that is finite (a shell command or a nested run): each end is a steer, and
    /// so the next step. A cancel of the turn stops them.
    Finite {
        /// How long it waits at most, each time that it comes to wait. Then it ends, and waits no more.
        limit_us: Option<u64>,
    },
}

/// See [`Policy::job_when_idle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobWhenIdle {
    /// A turn begins with what is said of it. While a finite job runs, the session isn't settled.
    StartTurn,
    /// What is said of it enters the history, and the model hears it with the next prompt.
    NoticeOnly,
}

/// Retries of model requests: never after reply text was shown (S-20).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Attempts a step may make in all, at least 1.
    pub attempts: u32,
    /// The waits before attempt 2, 3, …; the last one stands for all later ones. A zero counts as 1.
    pub backoff_us: Vec<u64>,
    /// Up to so many percent are added to each wait, from the seed.
    pub jitter_percent: u8,
    /// A server that asks for a longer wait isn't asked again.
    pub max_wait_us: u64,
    /// So many attempts in a row that never reached the endpoint end the step.
    pub unreached: u32,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            attempts: 8,
            backoff_us: [1, 2, 4, 8, 16, 16, 16].map(|s| s * SECOND).to_vec(),
            jitter_percent: 0,
            max_wait_us: 60 * SECOND,
            unreached: 3,
        }
    }
}

/// What waits until the driver has made it durable (`Effect::Store`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// A turn's first step waits for its prompt.
    pub prompt: bool,
    /// `TurnEnded` waits for what the turn added to the history, bounded by [`Timeouts::flush_us`].
    pub turn_end: bool,
    /// `CompletionRefused` waits for the refusal (S-41).
    pub refusal: bool,
    /// A change of the approval mode waits for itself.
    pub mode: bool,
    /// So does the session's name.
    pub name: bool,
}

impl Default for Gates {
    fn default() -> Self {
        Gates {
            prompt: false,
            turn_end: false,
            refusal: true,
            mode: false,
            name: false,
        }
    }
}

/// See [`Policy::store_failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFailure {
    /// The turn goes on, its end stands.
    GoOn,
    /// A turn whose prompt couldn't be stored ends `Failed`, and so does one that had finished.
    Fail,
}

/// Compaction: older messages give way to a summary that the model writes of them. By itself it happens between two
/// steps, or when a provider says that a request doesn't fit (S-59); a setting turns both off.
///
/// At a boundary it is due when the estimate of the next request has reached the mark, so many percent of the window
/// without the reserve, something can be cut, and none has failed in the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// The mark, in percent of the window without the reserve.
    pub at_percent: u8,
    /// Tokens of the window that are left alone; `None`: the largest output and 1,024 more.
    pub reserve: Option<u64>,
    /// From which size on of system text and tool schemas, which no compaction shrinks, none is due any more.
    pub futile: Futile,
    /// What becomes of the command in a turn.
    pub when_busy: WhenBusy,
    /// What becomes of a turn whose history was summarised at a boundary behind a step.
    pub after: AfterCompaction,
}

impl Default for Compaction {
    fn default() -> Self {
        Compaction {
            at_percent: 70,
            reserve: None,
            futile: Futile::AtMark,
            when_busy: WhenBusy::Queue,
            after: AfterCompaction::GoOn,
        }
    }
}

/// See [`Compaction::futile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Futile {
    /// Once they reach the mark.
    AtMark,
    /// Once they reach the window without the reserve; beyond the mark the history is summarised at every boundary.
    AtWindow,
}

/// See [`Compaction::when_busy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenBusy {
    /// It is refused as busy.
    Refuse,
    /// It waits until the turn has ended; a second one is refused as busy.
    Queue,
}

/// See [`Compaction::after`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCompaction {
    /// It goes on.
    GoOn,
    /// It ends `Yielded`.
    Yield,
}

/// See [`Policy::refuse_at`]. Nothing is refused while the window isn't known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseAt {
    /// The estimate and the largest output don't fit into the window.
    OutputFits,
    /// The estimate is over so many percent of the window.
    Percent(u8),
}

/// Sizes and numbers: what holds memory in bounds, whatever comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one prompt; more is refused `TooLarge`.
    pub prompt_bytes: usize,
    /// Prompts that wait in all queues; more are refused `Full`.
    pub queued_prompts: usize,
    /// Bytes of the prompts that wait; more are refused `Full`. A set that a host offers may be as large.
    pub queued_bytes: usize,
    /// Tools, hooks or URI schemes in one set that a host offers; more are refused `Full`.
    pub offered: usize,
    /// Bytes of one reply; more end it as truncated, without a retry.
    pub reply_bytes: usize,
    /// Calls in one reply; more end it as truncated, without a retry.
    pub reply_calls: usize,
    /// Bytes of one call's arguments; more end the reply as truncated, without a retry.
    pub argument_bytes: usize,
    /// Bytes of a tool's output that are kept, its head and its tail; the rest is cut out and marked.
    pub tool_output_bytes: usize,
    /// Bytes of media (base64) in a tool's output; a medium beyond it is left out and marked.
    pub tool_media_bytes: usize,
    /// Calls that are under way at once. At most 16 count, so that hooks and questions stay within 16 and 64.
    pub running_tools: usize,
    /// Shell commands of the person's own that run at once; more are refused `Busy`.
    pub shells: usize,
    /// Jobs that run at once; a call that becomes one more fails, and its job is stopped.
    pub jobs: usize,
    /// Records of jobs that are over, to be listed; of more the oldest are forgotten.
    pub job_records: usize,
    /// Nested runs that are alive at once; the calls of more wait.
    pub runs: usize,
    /// How deep runs may be nested: a call that would go deeper fails.
    pub run_depth: u32,
    /// Effects that were stopped and not yet settled; beyond it no prompt, step or call begins.
    pub stopped_effects: usize,
    /// Commands whose reply comes later (barriers, gated settings, a reload, a rewind); more are refused `Full`.
    pub owed_replies: usize,
    /// Prompts to which files can go back; of more the oldest are forgotten.
    pub rewind_prompts: usize,
    /// Bytes queued for output above which bulk input isn't wanted.
    pub soft_bytes: usize,
    /// Bytes queued for output above which commands aren't wanted either.
    pub control_bytes: usize,
    /// Bytes queued for output above which bulk input is misuse.
    pub hard_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            prompt_bytes: 8 * MIB,
            queued_prompts: 128,
            queued_bytes: 16 * MIB,
            offered: 1024,
            reply_bytes: 16 * MIB,
            reply_calls: 128,
            argument_bytes: MIB,
            tool_output_bytes: 256 * KIB,
            tool_media_bytes: 16 * MIB,
            running_tools: 8,
            shells: 4,
            jobs: 32,
            job_records: 128,
            runs: 8,
            run_depth: 3,
            stopped_effects: 1024,
            owed_replies: 1024,
            rewind_prompts: 128,
            soft_bytes: 256 * KIB,
            control_bytes: MIB,
            hard_bytes: 4 * MIB,
        }
    }
}

/// Durations; `None` means that nothing runs out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// How long a model request may bring no progress.
    pub stall_us: Option<u64>,
    /// How long a permission may stay open; then it is denied.
    pub approval_us: Option<u64>,
    /// How long a hook may run that names no time itself.
    pub hook_us: Option<u64>,
    /// How long a call may run.
    pub tool_us: Option<u64>,
    /// How long the end of a turn waits for its write ([`Gates::turn_end`]).
    pub flush_us: u64,
    /// How long a draining close waits before it cancels.
    pub drain_us: Option<u64>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            stall_us: Some(300 * SECOND),
            approval_us: None,
            hook_us: Some(60 * SECOND),
            tool_us: None,
            flush_us: 2 * SECOND,
            drain_us: None,
        }
    }
}

/// What one turn may use up, or with money the session; `None` means no bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budgets {
    /// Model steps in a turn; the turn then ends `MaxSteps`.
    pub steps: Option<u32>,
    /// Tokens in a turn, all buckets of all attempts, and the estimate of the request to come: a request that
    /// would pass it isn't sent, and the turn ends `BudgetExhausted`.
    pub tokens: Option<u64>,
    /// Money that the session may spend from its start on, in millionths of a millionth of a US dollar: once it is
    /// spent nothing more is sent, and a turn ends `BudgetExhausted`. Only costs that are known count.
    pub pico_usd: Option<u64>,
}

impl Default for ModelConfig {
    /// A model without a name, of unknown window; the embedder names one.
    fn default() -> Self {
        ModelConfig::new("", 0)
    }
}

impl Retry {
    /// The wait before an attempt (2, 3, …), without jitter; never 0.
    pub(super) fn wait_us(&self, attempt: u32) -> u64 {
        let at = usize::try_from(attempt.saturating_sub(2)).unwrap_or(usize::MAX);
        let wait = self.backoff_us.get(at).or(self.backoff_us.last()).copied();
        wait.unwrap_or(SECOND).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_named_with_or_without_its_provider() {
        let mut model = ModelConfig::new("m/1", 0);
        assert!(model.is_named("m/1") && !model.is_named("p/m/1"));
        model.provider = Some("p".into());
        assert!(model.is_named("m/1") && model.is_named("p/m/1"));
        assert!(!model.is_named("pm/1") && !model.is_named("p/m/12") && !model.is_named("p/"));
    }

    #[test]
    fn a_price_is_for_each_bucket() {
        let price = Price {
            input: 1,
            cache_read: 10,
            cache_write: 100,
            output: 1_000,
            source: "list".into(),
            as_of: "2026".into(),
        };
        let usage = Usage {
            input: Some(2),
            cache_read: Some(3),
            cache_write: Some(4),
            output: Some(5),
            reasoning: Some(6),
        };
        let pico = |usage: &Usage| match price.cost(usage) {
            Cost::Known { pico_usd, .. } => pico_usd,
            Cost::Unpriced { .. } | Cost::NotSaid => panic!("known"),
        };
        assert_eq!(pico(&usage), 2 + 30 + 400 + 11_000);
        assert_eq!(
            pico(&Usage {
                input: None,
                ..usage
            }),
            430 + 11_000
        );
        let most = Usage {
            output: Some(u64::MAX),
            ..usage
        };
        assert_eq!(pico(&most), u64::MAX);
    }

    #[test]
    fn the_last_wait_of_the_table_stands_for_later_ones_and_none_is_zero() {
        let retry = Retry::default();
        let waits: Vec<u64> = (2..=9)
            .map(|attempt| retry.wait_us(attempt) / SECOND)
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 16, 16, 16]);
        assert_eq!(
            Retry {
                backoff_us: Vec::new(),
                ..Retry::default()
            }
            .wait_us(2),
            SECOND
        );
        assert_eq!(
            Retry {
                backoff_us: Vec::from([0]),
                ..Retry::default()
            }
            .wait_us(5),
            1
        );
    }
}
