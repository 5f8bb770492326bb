//! How a scenario is set up.

use turnwire::{
    session::{
        SessionConfig,
        config::{
            AfterCompaction, ErrorPartial, Futile, HoldTurn, JobWhenIdle, LeftoverSteer, LocalHook,
            ModelConfig, Parallel, RefuseAt, Rule, RuleBehaviour, Snapshots, StoreFailure,
            ToolEndOrder, WhenBusy,
        },
    },
    vocab::*,
};

use crate::{
    bytes::Source,
    script::{Ending, Tool, stop_job, task},
};

/// One choice: its name, and the words of what can be chosen, the plainest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Its name.
    pub name: &'static str,
    /// What can be chosen.
    pub words: &'static [&'static str],
}

macro_rules! knobs {
    ($($(#[doc = $doc:literal])* $name:ident $($word:literal)*,)*) => {
        /// All choices, each a number into the words of its [`Knob`].
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Setup { $($(#[doc = $doc])* pub $name: u8,)* }

        impl Setup {
            /// The choices, in their order.
            pub const KNOBS: &'static [Knob] =
                &[$(Knob { name: stringify!($name), words: &[$($word),*] }),*];

            /// Reads one byte for each choice.
            pub(super) fn decode(s: &mut Source<'_>) -> Self {
                let mut setup = Setup::default();
                $(setup.$name = s.of([$($word),*].map(|word| place(&[$($word),*], word)));)*
                setup
            }

            /// What was chosen, as words.
            pub fn words(&self) -> Vec<(&'static str, &'static str)> {
                let word = |words: &[&'static str], at: u8| words.get(usize::from(at)).copied();
                vec![$((stringify!($name), word(&[$($word),*], self.$name).unwrap_or("?"))),*]
            }

            /// Chooses by words. `false`: there is no such choice.
            pub fn choose(&mut self, name: &str, word: &str) -> bool {
                $(if name == stringify!($name) {
                    let words: &[&str] = &[$($word),*];
                    let known = words.contains(&word);
                    if known {
                        self.$name = place(words, word);
                    }
                    return known;
                })*
                false
            }
        }
    };
}

fn place(words: &[&str], word: &str) -> u8 {
    let at = words.iter().position(|known| *known == word);
    at.and_then(|at| u8::try_from(at).ok()).unwrap_or(0)
}

knobs! {
    /// Who is played: host, wire and agent, or an agent alone.
    world "wire" "agent",
    /// The approval mode at the start.
    mode "ask" "auto" "readonly" "accept-edits" "never" "plan",
    /// Local hooks, by their points; `watch` is one at every point that decides nothing.
    hooks "none" "prompt" "turn-end" "pre-tool" "permission" "post-tool" "all" "watch",
    /// The model's window.
    window "wide" "tight" "narrow",
    /// Calls side by side.
    running "8" "1" "2",
    /// Prompts that may wait.
    queued "128" "3",
    /// Effects stopped and not settled at which nothing new begins.
    stopped "1024" "1" "3",
    /// Commands that may wait for their reply.
    owed "1024" "1",
    /// How long a permission may stay open.
    approval_timeout "none" "5s" "17s",
    /// How long a call may run.
    tool_timeout "none" "7s",
    /// How long a draining close waits.
    drain_timeout "none" "11s",
    /// Steps in a turn.
    steps "none" "1" "3",
    /// Attempts of a request.
    attempts "8" "1" "3",
    /// Which writes gate what follows; the protocol decides on a wire.
    gates "few" "all",
    /// Which calls run side by side; the protocol decides on a wire.
    parallel "reads" "all" "never" "writes",
    /// When a call's end is said, and whether a turn waits for its jobs; the protocol decides on a wire.
    tool_end "call" "finish",
    /// What becomes of steers, broken messages and the ends of jobs; the protocol decides on a wire.
    leftovers "drop" "keep",
    /// Open permissions; the protocol decides on a wire.
    asks "1" "3",
    /// Snapshots, failing stores, notes of cancels; the protocol decides on a wire.
    odd "no" "yes" "late-snapshots",
    /// How long deltas are joined, where a protocol can.
    coalesce "no" "25ms",
    /// What the other side does at the end.
    ending "willing" "unwilling" "silent",
    /// How the host leaves.
    leave "drain" "now" "end-of-input",
    /// Where ids come from.
    seed "0" "1" "2" "3",
    /// Whether the host offers a tool at the start, over a wire that has a word for it.
    offer "none" "tool",
}

impl Setup {
    /// Whether the agent is played without a wire.
    pub fn is_agent_alone(&self) -> bool {
        self.world == 1
    }

    /// How everything is brought to its end.
    pub fn ending(&self) -> Ending {
        match self.ending {
            0 => Ending::Willing,
            1 => Ending::Unwilling,
            _ => Ending::Silent,
        }
    }

    /// What the host offers at the start.
    pub fn offers(&self) -> Option<Command> {
        let tools = Tool::specs().into_iter();
        let hosts = tools.filter(|tool| tool.route == Route::Host).collect();
        (self.offer == 1).then_some(Command::Offer(Offer::Tools(hosts)))
    }

    /// The seed of all ids and jitter.
    pub fn seed(&self) -> [u8; 32] {
        [self.seed; 32]
    }

    /// Whether a model may hand tasks to nested runs.
    pub fn nests(&self) -> bool {
        self.seed == 3 && self.queued == 1
    }

    /// Whether the host closes without letting work finish.
    pub fn leaves_now(&self) -> bool {
        self.leave == 1
    }

    /// Whether the host closes by ending its output.
    pub fn leaves_by_end(&self) -> bool {
        self.leave == 2
    }

    /// How long deltas are joined, in microseconds.
    pub fn coalesce_us(&self) -> u64 {
        u64::from(self.coalesce) * 25_000
    }

    /// The session's configuration: tools, rules and hooks of the scripts, and what was chosen here.
    pub fn session(&self) -> SessionConfig {
        let mut config = SessionConfig::new(ModelConfig::new("m", 0));
        config.seed = self.seed();
        config.tools = Tool::specs();
        let rule = |behaviour, tool: Tool| Rule {
            behaviour,
            tool: Text::from(tool.name()),
            pattern: None,
        };
        config.rules = vec![
            rule(RuleBehaviour::Deny, Tool::Denied),
            rule(RuleBehaviour::Ask, Tool::Asked),
        ];
        config.settings.approvals = match self.mode {
            0 => ApprovalMode::Ask,
            1 => ApprovalMode::Auto,
            2 => ApprovalMode::ReadOnly,
            3 => ApprovalMode::AcceptEdits,
            4 => ApprovalMode::Never,
            _ => ApprovalMode::Plan,
        };
        config.hooks = self.hooks();
        config.goals.auto_turns = Some(2);
        if self.nests() {
            config.tools.extend([task(), stop_job()]);
            config.limits.runs = 2;
            config.limits.run_depth = 2;
        }
        self.policy(&mut config);
        self.embed(&mut config);
        if self.is_agent_alone() {
            config.limits.jobs = 3;
        }
        config
    }

    /// What a protocol decides, of a session that has none.
    fn policy(&self, config: &mut SessionConfig) {
        let odd = self.odd > 0;
        config.model.window = match self.window {
            0 => 0,
            1 => 300,
            _ => 130,
        };
        let policy = &mut config.policy;
        policy.compaction.reserve = Some(0);
        policy.gates.prompt = self.gates == 1;
        policy.gates.turn_end = self.gates == 1;
        policy.gates.mode = self.gates == 1;
        policy.parallel = match self.parallel {
            0 => Parallel::Reads,
            1 => Parallel::All,
            2 => Parallel::Never,
            _ => Parallel::Listed(vec![Text::from(Tool::Write.name())]),
        };
        if self.tool_end == 1 {
            policy.tool_end_order = ToolEndOrder::Finish;
            policy.hold_turn = HoldTurn::Finite {
                limit_us: Some(9_000_000),
            };
        }
        if self.leftovers == 1 {
            policy.leftover_steer = LeftoverSteer::Keep;
            policy.error_partial = ErrorPartial::Keep;
            policy.job_when_idle = JobWhenIdle::NoticeOnly;
        }
        policy.asks_at_once = if self.asks == 0 { 1 } else { 3 };
        policy.max_refusals = Some(2);
        if odd {
            policy.snapshots = match self.odd {
                1 => Snapshots::BeforeGate,
                _ => Snapshots::BeforeRun,
            };
            policy.store_failure = StoreFailure::Fail;
            policy.cancel_note = true;
            policy.auto_silences_ask = false;
            policy.suggest = true;
            policy.retry.jitter_percent = 30;
            policy.compaction.futile = Futile::AtWindow;
            policy.compaction.when_busy = WhenBusy::Refuse;
            policy.compaction.after = AfterCompaction::Yield;
            policy.refuse_at = RefuseAt::Percent(90);
        }
    }

    /// What an embedder decides, whatever the protocol: called again behind a preset.
    pub fn embed(&self, config: &mut SessionConfig) {
        let seconds = |count: u64| Some(count * 1_000_000);
        config.limits.running_tools = [8, 1, 2][usize::from(self.running.min(2))];
        config.limits.queued_prompts = [128, 3][usize::from(self.queued.min(1))];
        config.limits.stopped_effects = [1024, 1, 3][usize::from(self.stopped.min(2))];
        config.limits.owed_replies = [1024, 1][usize::from(self.owed.min(1))];
        // Where the wire has words for them, its own session has more.
        config.limits.jobs = 0;
        config.limits.reply_calls = config.limits.reply_calls.min(6);
        config.timeouts.approval_us =
            [None, seconds(5), seconds(17)][usize::from(self.approval_timeout.min(2))];
        config.timeouts.tool_us = [None, seconds(7)][usize::from(self.tool_timeout.min(1))];
        config.timeouts.drain_us = [None, seconds(11)][usize::from(self.drain_timeout.min(1))];
        config.timeouts.stall_us = seconds(30);
        config.timeouts.hook_us = seconds(10);
        config.budgets.steps = [None, Some(1), Some(3)][usize::from(self.steps.min(2))];
        if self.attempts > 0 {
            config.policy.retry.attempts = [8, 1, 3][usize::from(self.attempts.min(2))];
        }
    }

    fn hooks(&self) -> Vec<LocalHook> {
        use HookPoint::{Permission, PostTool, PreTool, PromptSubmit, TurnEnd};
        let all = [PromptSubmit, TurnEnd, PreTool, Permission, PostTool];
        let points: &[HookPoint] = match self.hooks {
            0 => &[],
            1 => &[PromptSubmit],
            2 => &[TurnEnd],
            3 => &[PreTool],
            4 => &[Permission],
            5 => &[PostTool],
            _ => &all,
        };
        let hook = |point: &HookPoint| LocalHook {
            spec: HookSpec {
                key: Text::from(format!("{point:?}")),
                point: *point,
                matcher: None,
                timeout_us: None,
            },
            decides: self.hooks != 7,
        };
        points.iter().map(hook).collect()
    }
}
