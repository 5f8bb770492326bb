//! Sessions with random configurations, and stories told to them.
#![allow(missing_docs, dead_code)]

use proptest::{collection::vec, option, prelude::*};
use turnwire::{
    session::{
        Session, SessionConfig, SessionTree,
        config::{
            AfterCompaction, Budgets, ChangeSession, Compaction, ErrorPartial, Futile, Gates,
            HoldTurn, JobWhenIdle, LeftoverSteer, Limits, LocalHook, ModelConfig, Parallel, Policy,
            PromptHook, RefuseAt, Retry, Rule, RuleBehaviour, Snapshots, StoreFailure, Timeouts,
            ToolEndOrder, WhenBusy,
        },
        tree::LikeParent,
    },
    vocab::{laws::Scope, *},
};
use turnwire_proptests::{
    script::{Action, Ending, Mix, Piece, Tool, finish, play, scripts, stop_job, task},
    world::World,
};

#[allow(
    unused_imports,
    reason = "not every test that has this kit counts cases"
)]
pub use turnwire_proptests::config as cases;

pub const START: Now = Now {
    mono_us: 1_000_000,
    unix_ms: 1_700_000_000_000,
};

/// A session, what happens to it, and how it ends.
#[derive(Clone)]
pub struct Story {
    pub config: SessionConfig,
    pub script: Vec<Action>,
    pub ending: Ending,
    pub drain: bool,
}

impl std::fmt::Debug for Story {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SessionConfig {
            policy,
            hooks,
            limits,
            timeouts,
            budgets,
            settings,
            ..
        } = &self.config;
        writeln!(
            f,
            "{policy:?}\n{hooks:?}\n{limits:?}\n{timeouts:?} {budgets:?} {:?}",
            settings.approvals
        )?;
        write!(
            f,
            "{:?} {:?} drain {}",
            self.script, self.ending, self.drain
        )
    }
}

pub fn stories(mix: Mix, len: usize) -> impl Strategy<Value = Story> {
    let ending = prop_oneof![3 => Just(Ending::Willing), 1 => Just(Ending::Unwilling), 1 => Just(Ending::Silent)];
    (configs(), scripts(mix, len), ending, any::<bool>()).prop_map(
        |(config, script, ending, drain)| Story {
            config,
            script,
            ending,
            drain,
        },
    )
}

/// The same story, with a hook that decides at a point.
pub fn judged(mut story: Story, point: HookPoint) -> Story {
    let spec = HookSpec {
        key: Text::from("judge"),
        point,
        matcher: None,
        timeout_us: None,
    };
    story.config.hooks.push(LocalHook {
        spec,
        decides: true,
    });
    story
}

/// The story with goals often set, and going on.
pub fn pursuing(mut story: Story) -> Story {
    for action in &mut story.script {
        if let Action::Other(pick) | Action::Own(pick) = action {
            *action = match *pick % 4 {
                0 | 1 => Action::GOAL,
                2 => Action::RESUME,
                _ => continue,
            };
        }
    }
    story
}

/// The story with many calls that hand a task to a nested run.
pub fn nesting(mut story: Story) -> Story {
    let mut count = 0;
    let mut nest = |tool: &mut Tool| {
        count += 1;
        *tool = tool.or_task(count);
    };
    for action in &mut story.script {
        match action {
            Action::Answer(_, calls) => calls.iter_mut().for_each(&mut nest),
            Action::Model(_, Piece::Call(tool)) => nest(tool),
            _ => {}
        }
    }
    let seed = story.config.seed[0];
    story.config.tools.extend([task(), stop_job()]);
    story.config.limits.runs = usize::from(1 + seed % 3);
    story.config.limits.run_depth = u32::from(1 + seed / 4 % 3);
    story
}

/// The story with its configuration often read anew.
pub fn reloading(mut story: Story) -> Story {
    for action in &mut story.script {
        if let Action::Other(pick) = action
            && pick.is_multiple_of(2)
        {
            *action = Action::RELOAD;
        }
    }
    story
}

pub fn info() -> Box<SessionInfo> {
    let text = Text::from("s");
    Box::new(SessionInfo {
        session: text.clone(),
        name: None,
        file: None,
        generation: text.clone(),
        root: None,
        cwd: text.clone(),
        product: text.clone(),
        continued: false,
        history: vec![],
        summarised: Vec::new(),
        model: ModelRef {
            provider: None,
            model: text,
        },
        api_model: None,
        efforts: vec![],
        settings: Box::new(SessionConfig::new(ModelConfig::new("m", 0)).settings),
        tools: vec![],
        briefing: Briefing::default(),
        mcp: vec![],
        commands: vec![],
        skills: vec![],
        media: vec![],
    })
}

pub fn session(config: SessionConfig) -> Session {
    Session::new(config, info(), START)
}

pub fn tree(config: SessionConfig) -> SessionTree {
    SessionTree::new(session(config), LikeParent)
}

pub fn world(config: SessionConfig) -> World<Session> {
    around(&config.clone(), session(config))
}

fn around<A: Agent>(config: &SessionConfig, agent: A) -> World<A> {
    let stopped_limit = config.limits.stopped_effects;
    let judges_first = config.policy.prompt_hook == PromptHook::AtSubmit;
    let jobs_wake = config.policy.job_when_idle == JobWhenIdle::StartTurn;
    let mut world = World::new(agent, Scope::Session, START);
    world.stopped_limit = stopped_limit;
    world.judges_first = judges_first;
    world.jobs_wake = jobs_wake;
    world
}

/// Tells a story from its first action to the close.
pub fn tell(story: &Story) -> World<Session> {
    let mut world = world(story.config.clone());
    play(&mut world, &story.script);
    finish(&mut world, story.ending, story.drain);
    world
}

/// As [`tell`], to a session and what lies below it.
pub fn tell_tree(story: &Story) -> World<SessionTree> {
    let mut world = around(&story.config, tree(story.config.clone()));
    play(&mut world, &story.script);
    finish(&mut world, story.ending, story.drain);
    world
}

/// A configuration whose values are small enough for limits to matter.
pub fn configs() -> impl Strategy<Value = SessionConfig> {
    (
        policies(),
        modes(),
        hooks(),
        limits(),
        timeouts(),
        option::of(1u32..4),
        any::<u8>(),
        windows(),
    )
        .prop_map(
            |(policy, approvals, hooks, limits, timeouts, steps, seed, window)| {
                let mut config = plain();
                config.model.window = window;
                config.seed = [seed; 32];
                config.settings.approvals = approvals;
                config.policy = policy;
                config.hooks = hooks;
                config.goals.auto_turns = Some(u32::from(seed % 4));
                config.goals.check = seed.is_multiple_of(3);
                config.goals.remind = seed.is_multiple_of(2);
                config.goals.stored = (seed / 4).is_multiple_of(3);
                config.limits = limits;
                config.timeouts = timeouts;
                config.budgets = Budgets {
                    steps,
                    tokens: None,
                    pico_usd: None,
                };
                config
            },
        )
}

/// The tools and rules of the scripts, and defaults.
pub fn plain() -> SessionConfig {
    let mut config = SessionConfig::new(ModelConfig::new("m", 0));
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
    config
}

/// The tools alone take 78 tokens; some windows have hardly room for more.
fn windows() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 1 => 90u64..160, 2 => 160u64..400]
}

fn compactions() -> impl Strategy<Value = (Compaction, RefuseAt)> {
    let reserve = prop_oneof![4 => Just(Some(0)), 1 => Just(Some(30)), 1 => Just(None)];
    let refuse_at =
        prop_oneof![2 => Just(RefuseAt::OutputFits), 1 => (60u8..120).prop_map(RefuseAt::Percent)];
    (20u8..100, reserve, any::<[bool; 3]>(), refuse_at).prop_map(
        |(at_percent, reserve, flags, refuse_at)| {
            let compaction = Compaction {
                at_percent,
                reserve,
                futile: if flags[0] {
                    Futile::AtMark
                } else {
                    Futile::AtWindow
                },
                when_busy: if flags[1] {
                    WhenBusy::Refuse
                } else {
                    WhenBusy::Queue
                },
                after: if flags[2] {
                    AfterCompaction::GoOn
                } else {
                    AfterCompaction::Yield
                },
            };
            (compaction, refuse_at)
        },
    )
}

fn modes() -> impl Strategy<Value = ApprovalMode> {
    prop_oneof![
        3 => Just(ApprovalMode::Ask),
        2 => Just(ApprovalMode::Auto),
        1 => Just(ApprovalMode::AcceptEdits),
        1 => Just(ApprovalMode::ReadOnly),
        1 => Just(ApprovalMode::Never),
    ]
}

fn policies() -> impl Strategy<Value = Policy> {
    let rare = || prop::bool::weighted(0.25);
    let gates = (rare(), rare(), rare()).prop_map(|(prompt, turn_end, mode)| Gates {
        prompt,
        turn_end,
        refusal: true,
        mode,
        name: mode,
    });
    let flags = (any::<[bool; 12]>(), gates);
    let parallel = prop_oneof![
        1 => Just(Parallel::Reads),
        1 => Just(Parallel::QuietReads),
        1 => Just(Parallel::All),
        1 => Just(Parallel::Never),
        1 => Just(Parallel::Listed(vec![Text::from("write")])),
    ];
    (
        flags,
        parallel,
        1u32..4,
        option::of(0u32..3),
        1u32..5,
        0u8..50,
        compactions(),
    )
        .prop_map(
            |(
                (f, gates),
                parallel,
                asks_at_once,
                max_refusals,
                attempts,
                jitter_percent,
                (compaction, refuse_at),
            )| Policy {
                change_session: match (f[10], f[11]) {
                    (true, _) => ChangeSession::Always,
                    (false, true) => ChangeSession::WhenIdle,
                    (false, false) => ChangeSession::Never,
                },
                compaction,
                refuse_at,
                prompt_hook: if f[8] {
                    PromptHook::AtSubmit
                } else {
                    PromptHook::AtStart
                },
                leftover_steer: if f[0] {
                    LeftoverSteer::Keep
                } else {
                    LeftoverSteer::Drop
                },
                cancel_note: f[1],
                max_refusals,
                asks_at_once,
                auto_silences_ask: f[2],
                recheck_changed_input: f[3],
                parallel,
                tool_end_order: if f[4] {
                    ToolEndOrder::Finish
                } else {
                    ToolEndOrder::Call
                },
                snapshots: match (f[5], f[6]) {
                    (false, _) => Snapshots::Never,
                    (true, false) => Snapshots::BeforeGate,
                    (true, true) => Snapshots::BeforeRun,
                },
                suggest: f[5],
                hold_turn: match (f[9], f[10]) {
                    (false, _) => HoldTurn::No,
                    (true, false) => HoldTurn::Finite { limit_us: None },
                    (true, true) => HoldTurn::Finite {
                        limit_us: Some(8_000_000),
                    },
                },
                job_when_idle: if f[11] {
                    JobWhenIdle::StartTurn
                } else {
                    JobWhenIdle::NoticeOnly
                },
                error_partial: if f[6] {
                    ErrorPartial::Keep
                } else {
                    ErrorPartial::Void
                },
                retry: Retry {
                    attempts,
                    jitter_percent,
                    ..Retry::default()
                },
                gates,
                store_failure: if f[7] {
                    StoreFailure::Fail
                } else {
                    StoreFailure::GoOn
                },
            },
        )
}

fn hooks() -> impl Strategy<Value = Vec<LocalHook>> {
    let point = prop_oneof![
        Just(HookPoint::PromptSubmit),
        Just(HookPoint::PreTool),
        Just(HookPoint::PostTool),
        Just(HookPoint::Permission),
        Just(HookPoint::TurnEnd),
    ];
    let hook = (point, prop::bool::weighted(0.7), 0u32..1000).prop_map(|(point, decides, key)| {
        LocalHook {
            spec: HookSpec {
                key: Text::from(format!("h{key}")),
                point,
                matcher: None,
                timeout_us: None,
            },
            decides,
        }
    });
    prop_oneof![3 => Just(vec![]), 2 => vec(hook, 1..4)]
}

fn limits() -> impl Strategy<Value = Limits> {
    let queued = prop_oneof![Just(3usize), Just(128)];
    let stopped = prop_oneof![1 => 1usize..4, 3 => Just(1024)];
    let owed = prop_oneof![1 => Just(1usize), 3 => Just(1024)];
    let jobs = prop_oneof![1 => Just(1usize), 3 => Just(32)];
    (1usize..4, queued, stopped, owed, jobs).prop_map(
        |(running_tools, queued_prompts, stopped_effects, owed_replies, jobs)| Limits {
            jobs,
            running_tools,
            queued_prompts,
            stopped_effects,
            owed_replies,
            reply_calls: 6,
            ..Limits::default()
        },
    )
}

fn timeouts() -> impl Strategy<Value = Timeouts> {
    let some = || option::of(1_000_000u64..20_000_000);
    (some(), some(), some()).prop_map(|(approval_us, tool_us, drain_us)| Timeouts {
        stall_us: Some(30_000_000),
        approval_us,
        hook_us: Some(10_000_000),
        tool_us,
        drain_us,
        ..Timeouts::default()
    })
}
