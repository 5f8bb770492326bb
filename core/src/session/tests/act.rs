//! What the words of a trace's inputs and policies mean.

use alloc::{string::String, vec, vec::Vec};

use super::world::{Played, SECOND, World, config, hook, observer, prompt, rule, tool};
use super::{changes, nested, own};
use crate::session::{
    SessionConfig,
    config::{
        AfterCompaction, ErrorPartial, Futile, HoldTurn, JobWhenIdle, LeftoverSteer, Parallel,
        Price, PromptHook, RefuseAt, RuleBehaviour, Snapshots, StoreFailure, ToolEndOrder,
        UnapprovedSource, WhenBusy,
    },
};
use crate::vocab::*;

/// The configuration that a row asks for: the words in brackets, `name=value`.
pub fn policy(about: &str) -> SessionConfig {
    let mut config = config();
    let Some((_, options)) = about.split_once('(') else {
        return config;
    };
    for option in options.trim_end_matches(')').split(' ') {
        let (name, value) = option.split_once('=').unwrap();
        let number: u64 = value.parse().unwrap_or(0);
        let small = u32::try_from(number).unwrap();
        let size = usize::try_from(number).unwrap();
        let policy = &mut config.policy;
        let timeouts = &mut config.timeouts;
        match name {
            "prompt_hook" => config.hooks.push(hook(HookPoint::PromptSubmit)),
            "submit_hook" => {
                policy.prompt_hook = PromptHook::AtSubmit;
                for _ in 0..number {
                    config.hooks.push(hook(HookPoint::PromptSubmit));
                }
            }
            "pre_hook" => config.hooks.push(hook(HookPoint::PreTool)),
            "perm_hook" => config.hooks.push(hook(HookPoint::Permission)),
            "run_hook" => config.hooks.push(observer(HookPoint::RunEnd)),
            "notify_hook" => config.hooks.push(observer(HookPoint::Notification)),
            "post_hook" => config.hooks.push(hook(HookPoint::PostTool)),
            "switch_hook" => config.hooks.push(hook(HookPoint::SessionSwitch)),
            "change" => changes::allowed(policy, value),
            "compact_hook" => config.hooks.push(hook(HookPoint::PreCompact)),
            "end_hook" => config.hooks.push(hook(HookPoint::TurnEnd)),
            "observe" => config.hooks.push(observer(match value {
                "prompt" => HookPoint::PromptSubmit,
                "pre" => HookPoint::PreTool,
                "end" => HookPoint::TurnEnd,
                other => panic!("observe {other}"),
            })),
            "max_refusals" => policy.max_refusals = Some(small),
            "max_steps" => config.budgets.steps = Some(small),
            "max_tokens" => config.budgets.tokens = Some(number),
            "window" => config.model.window = number,
            "max_output" => config.model.max_output = Some(number),
            "t_approval" => timeouts.approval_us = Some(number * SECOND),
            "t_stall" => timeouts.stall_us = Some(number * SECOND),
            "t_tool" => timeouts.tool_us = Some(number * SECOND),
            "t_hold" => {
                policy.hold_turn = HoldTurn::Finite {
                    limit_us: Some(number * SECOND),
                }
            }
            "hold_turn" => policy.hold_turn = HoldTurn::Finite { limit_us: None },
            "job_idle" => policy.job_when_idle = JobWhenIdle::NoticeOnly,
            "plan" => {
                config.tools.push(crate::session::plan_tool());
                config.plan_reminder = Some(small);
            }
            "goal_budget" => config.goals.auto_turns = Some(small),
            "goal_check" => config.goals.check = true,
            "goal_remind" => config.goals.remind = true,
            "goal_stored" => config.goals.stored = true,
            "task" | "tree" => nested::task(&mut config),
            "runs" => config.limits.runs = size,
            "depth" => config.limits.run_depth = small,
            "jobs" => config.limits.jobs = size,
            "records" => config.limits.job_records = size,
            "t_hook" => timeouts.hook_us = Some(number * SECOND),
            "t_drain" => timeouts.drain_us = Some(number * SECOND),
            "gate_prompt" => policy.gates.prompt = true,
            "gate_end" => policy.gates.turn_end = true,
            "gate_mode" => policy.gates.mode = true,
            "gate_refusal" => policy.gates.refusal = number == 1,
            "store_failure" => policy.store_failure = StoreFailure::Fail,
            "compact_busy" => policy.compaction.when_busy = WhenBusy::Refuse,
            "yields" => policy.compaction.after = AfterCompaction::Yield,
            "compact_at" => policy.compaction.at_percent = u8::try_from(number).unwrap(),
            "reserve" => policy.compaction.reserve = Some(number),
            "futile" => policy.compaction.futile = Futile::AtWindow,
            "refuse_at" => policy.refuse_at = RefuseAt::Percent(u8::try_from(number).unwrap()),
            "leftover" => policy.leftover_steer = LeftoverSteer::Keep,
            "note" => policy.cancel_note = true,
            "asks" => policy.asks_at_once = small,
            "silent" => policy.auto_silences_ask = number == 1,
            "recheck" => policy.recheck_changed_input = number == 1,
            "order" => policy.tool_end_order = ToolEndOrder::Finish,
            "snapshots" => {
                policy.snapshots = match value {
                    "run" => Snapshots::BeforeRun,
                    _ => Snapshots::BeforeGate,
                }
            }
            "rewinds" => config.limits.rewind_prompts = size,
            "price" => {
                config.model.price = Some(Price {
                    input: number,
                    cache_read: 0,
                    cache_write: 0,
                    output: 0,
                    source: "list".into(),
                    as_of: "today".into(),
                })
            }
            "money" => config.budgets.pico_usd = Some(number),
            "partial" => policy.error_partial = ErrorPartial::Keep,
            "backoff_ms" => policy.retry.backoff_us = vec![number * 1_000, number * 2_000],
            "attempts" => policy.retry.attempts = small,
            "jitter" => policy.retry.jitter_percent = u8::try_from(number).unwrap(),
            "parallel" => {
                policy.parallel = match value {
                    "never" => Parallel::Never,
                    "all" => Parallel::All,
                    name => Parallel::Listed(vec![name.into()]),
                }
            }
            "tools" => config.limits.running_tools = size,
            "prompts" => config.limits.queued_prompts = size,
            "queue_bytes" => config.limits.queued_bytes = size,
            "prompt_bytes" => config.limits.prompt_bytes = size,
            "reply_bytes" => config.limits.reply_bytes = size,
            "reply_calls" => config.limits.reply_calls = size,
            "arg_bytes" => config.limits.argument_bytes = size,
            "shells" => config.limits.shells = size,
            "uris" => {
                for tool in &mut config.tools {
                    tool.uri_arg = Some("path".into());
                }
            }
            "offered" => config.limits.offered = size,
            "output" => config.limits.tool_output_bytes = size,
            "stopped" => config.limits.stopped_effects = size,
            "owed" => config.limits.owed_replies = size,
            "hard" => {
                config.limits.soft_bytes = size / 2;
                config.limits.control_bytes = size / 2;
                config.limits.hard_bytes = size;
            }
            "source" => config.unapproved.push(UnapprovedSource {
                tool: value.into(),
                path: "tools/x".into(),
                sha: "0123".into(),
                env: vec!["TOKEN".into()],
                runs: "x".into(),
            }),
            "deny" => config.rules.push(rule(RuleBehaviour::Deny, value)),
            "deny_path" => {
                let mut rule = rule(RuleBehaviour::Deny, "*");
                rule.pattern = Some(value.into());
                config.rules.push(rule);
            }
            "no_rules" => config.rules.clear(),
            "mode" => config.settings.approvals = mode(value),
            "drain" => config.settings.steer_drain = Drain::One,
            "follow" => config.settings.follow_up_drain = Drain::All,
            "route" => {
                let route = match value {
                    "host" => Route::Host,
                    "choice" => Route::Choice,
                    "finish" => Route::Finish,
                    "goal" => Route::Goal,
                    "jobstop" => Route::JobStop,
                    "capture" => Route::Capture { tries: 2 },
                    other => panic!("route {other}"),
                };
                let mut tool = tool("routed", SideEffect::None);
                tool.route = route;
                tool.schema = RawJson("{\"required\":[\"path\"]}".into());
                config.tools.push(tool);
            }
            other => panic!("unknown policy {other}"),
        }
    }
    config
}

fn mode(word: &str) -> ApprovalMode {
    match word {
        "Auto" => ApprovalMode::Auto,
        "AcceptEdits" => ApprovalMode::AcceptEdits,
        "Ask" => ApprovalMode::Ask,
        "ReadOnly" => ApprovalMode::ReadOnly,
        "Plan" => ApprovalMode::Plan,
        "Never" => ApprovalMode::Never,
        other => ApprovalMode::Other(other.into()),
    }
}

fn number(word: &str) -> u64 {
    nested::id(word[1..].trim_end_matches(','))
}

/// Does what an input says; its outputs as words.
pub fn act<A: Played>(world: &mut World<A>, input: &str) -> Vec<String> {
    let mut words: Vec<&str> = input.split(' ').collect();
    if let Some(time) = words.first().and_then(|word| word.strip_prefix('@')) {
        let seconds: f64 = time.parse().unwrap();
        world.at_us((seconds * 1e6) as u64);
        words.remove(0);
    }
    match words.as_slice() {
        ["Prompt", id] => world.prompt(number(id), Deliver::IfIdle),
        ["Prompt", id, how] => prompt_as(world, number(id), how),
        ["Withdraw", id] => world.command(Command::Withdraw(PromptId(number(id)))),
        ["Promote", id] => world.command(Command::Promote(PromptId(number(id)))),
        ["Cancel", rest @ ..] => cancel(world, rest),
        ["Reply", ask, how] => reply(world, number(ask), how),
        ["Part", ask] => world.command(Command::ReplyPart {
            ask: AskId(number(ask)),
            content: vec![Block::Text("part".into())],
        }),
        ["Set", what] => world.command(Command::Set(setting(what))),
        ["Close", "drain"] => world.command(Command::Close { drain: true }),
        ["Close", "now"] => world.command(Command::Close { drain: false }),
        ["Fault"] => world.give(Input::Fault {
            detail: "boom".into(),
        }),
        ["NeedCompact"] => world.need_compact(),
        ["Woken"] => world.wake(),
        ["Hook", id, how] => hook_ends(world, number(id), how),
        ["Store", id] => world.store(number(id), true),
        ["Store", id, "failed"] => world.store(number(id), false),
        ["Tool", id, how] => tool_says(world, number(id), how),
        ["Reloaded", how] => {
            let outcome = match *how {
                "ok" => Ok(Answer::Reloaded {
                    tools: 1,
                    skills: 0,
                    changes: Vec::new(),
                }),
                _ => Err("broken".into()),
            };
            let command = world.reload;
            world.give(Input::Reloaded { command, outcome })
        }
        ["Restored", how] => {
            let outcome = match *how {
                "ok" => Ok(alloc::boxed::Box::new(Restoration {
                    restored: vec!["a".into()],
                    deleted: vec!["b".into()],
                    skipped: Vec::new(),
                    added: 2,
                    removed: 3,
                })),
                _ => Err("disk gone".into()),
            };
            let command = world.restore;
            world.give(Input::Restored { command, outcome })
        }
        ["Opened", how @ ..] => {
            let (command, other) = (world.opening, changes::opened(how));
            world.give(Input::Opened { command, other })
        }
        ["Rewind", prompt] => world.command(rewind(number(prompt), false)),
        ["Rewind", prompt, "dry"] => world.command(rewind(number(prompt), true)),
        ["Tools", names @ ..] => {
            let tools = names.iter().map(|name| tool(name, SideEffect::Read));
            let tools = tools.collect();
            world.give(Input::DriverTools {
                tools,
                mcp: Vec::new(),
            })
        }
        ["Refreeze"] => {
            let config = super::world::config();
            world.give(Input::Refrozen {
                frozen: alloc::boxed::Box::new(Frozen {
                    tools: config.tools,
                    rules: config.rules,
                    ..Frozen::default()
                }),
                changes: Vec::new(),
            })
        }
        ["Offer", "Hook", point, matcher @ ..] => {
            let point = match *point {
                "PromptSubmit" => HookPoint::PromptSubmit,
                "PreTool" => HookPoint::PreTool,
                "Permission" => HookPoint::Permission,
                "PostTool" => HookPoint::PostTool,
                "TurnEnd" => HookPoint::TurnEnd,
                "PreCompact" => HookPoint::PreCompact,
                other => panic!("point {other}"),
            };
            let spec = HookSpec {
                matcher: matcher.first().map(|matcher| (*matcher).into()),
                ..hook(point).spec
            };
            world.command(Command::Offer(Offer::Hooks(vec![spec])))
        }
        ["Offer", "Tools", names @ ..] => {
            let tools = names.iter().map(|name| tool(name, SideEffect::Read));
            let tools = tools.collect();
            world.command(Command::Offer(Offer::Tools(tools)))
        }
        ["Ran", shell, how] => shell_says(world, shell, how),
        ["Run", rest @ ..] => nested::says(world, rest),
        ["Job", id, how @ ..] if id.starts_with('j') => world.give(Input::Job {
            job: JobId(number(id)),
            update: own::job_update(how),
        }),
        [request, rest @ ..] if is_request(request) => model_says(world, number(request), rest),
        rest => world.command(other_command(rest)),
    }
}

fn is_request(word: &str) -> bool {
    let digits = word.strip_prefix('r').unwrap_or_default();
    digits.starts_with(|first: char| first.is_ascii_digit())
}

fn prompt_as<A: Played>(world: &mut World<A>, id: u64, how: &str) -> Vec<String> {
    let mut made = prompt(id, Deliver::IfIdle);
    made.deliver = match how {
        "Next" => Deliver::Queue(Rank::Next),
        "Later" => Deliver::Queue(Rank::Later),
        "Steer:Start" => Deliver::Steer {
            idle: IdleSteer::Start,
        },
        "Steer:Drop" => Deliver::Steer {
            idle: IdleSteer::Drop,
        },
        "Steer:Unless" => Deliver::Steer {
            idle: IdleSteer::DropUnlessQueued,
        },
        "FollowUp" => Deliver::FollowUp,
        "Context" => Deliver::Context,
        "Preempt" => Deliver::Preempt,
        _ => Deliver::IfIdle,
    };
    match how {
        "Blank" => made.content = vec![Block::Text(" \n".into())],
        "Foreign" => {
            made.content.push(Block::ToolResult {
                call: CallId(1),
                content: Vec::new(),
                is_error: false,
            });
        }
        _ => {}
    }
    world.command(Command::Prompt(made))
}

fn cancel<A: Played>(world: &mut World<A>, words: &[&str]) -> Vec<String> {
    let what = match words {
        [] | ["Turn", "Run", ..] => CancelWhat::Turn {
            queue: QueueFate::Run,
        },
        ["Turn", "Keep", ..] => CancelWhat::Turn {
            queue: QueueFate::Keep,
        },
        ["Turn", "Drop", ..] => CancelWhat::Turn {
            queue: QueueFate::Drop,
        },
        ["ElseNext"] => CancelWhat::TurnElseNextQueued,
        ["Everything", ..] => CancelWhat::Everything,
        ["Retry"] => CancelWhat::Retry,
        ["Compaction"] => CancelWhat::Compaction,
        ["Shell"] => CancelWhat::Shell,
        ["Job"] => CancelWhat::Job(JobId(1)),
        ["Run"] => CancelWhat::Run(RunId(1)),
        ["Run", run] => CancelWhat::Run(RunId(number(run))),
        ["Job", job] => CancelWhat::Job(JobId(number(job))),
        other => panic!("cancel {other:?}"),
    };
    let why = match words.last() {
        Some(&"PeerGone") => CancelWhy::PeerGone,
        Some(&"Signal") => CancelWhy::Signal(Signal::Terminate),
        Some(&"Switch") => CancelWhy::Switch,
        _ => CancelWhy::Host,
    };
    world.command(Command::Cancel { what, why })
}

fn reply<A: Played>(world: &mut World<A>, ask: u64, how: &str) -> Vec<String> {
    let allow = |input: Option<&str>, updates| {
        Ok(Reply::Allow {
            input: input.map(|text| RawJson(text.into())),
            updates,
        })
    };
    let rules = |behaviour: &str| PermissionUpdate::Rules {
        op: SetOp::Add,
        behaviour: behaviour.into(),
        rules: vec![("writeask".into(), None)],
        keep: Keep::Session,
    };
    let mode = |word: &str| PermissionUpdate::Mode {
        mode: word.into(),
        keep: Keep::Session,
    };
    let hook = |verdict| {
        Ok(Reply::Hook(alloc::boxed::Box::new(HookReply {
            verdict,
            ..HookReply::pass()
        })))
    };
    let folder = |path: &str| PermissionUpdate::Directories {
        op: SetOp::Add,
        paths: vec![path.into()],
        keep: Keep::Session,
    };
    let tool = |is_error| {
        Ok(Reply::Tool {
            content: vec![Block::Text("done".into())],
            is_error,
            details: None,
        })
    };
    let reply = match how {
        "Allow" => allow(None, Vec::new()),
        "AllowSame" => allow(Some("{\"path\":\"x\"}"), Vec::new()),
        "AllowOther" => allow(Some("{\"path\":\"other\"}"), Vec::new()),
        "AllowArray" => allow(Some("[]"), Vec::new()),
        "AllowRule" => allow(None, vec![rules("allow")]),
        "AllowKept" => allow(None, vec![granted(Keep::Local)]),
        "AllowDir" => allow(None, vec![folder("/elsewhere")]),
        "AllowNoDir" => allow(None, vec![rules("allow"), folder(" ")]),
        "AllowAuto" => allow(None, vec![mode("auto")]),
        "AllowBad" => allow(None, vec![rules("allow"), mode("nonsense")]),
        "Deny" => Ok(Reply::Deny {
            message: None,
            interrupt: false,
        }),
        "DenyInterrupt" => Ok(Reply::Deny {
            message: None,
            interrupt: true,
        }),
        "HostGone" => Err(ReplyFault::HostGone),
        "HostCancelled" => Err(ReplyFault::HostCancelled),
        "HostError" => Err(ReplyFault::HostError("broke".into())),
        "Malformed" => Err(ReplyFault::Malformed("what?".into())),
        "HookPass" => hook(HookVerdict::Pass),
        "HookAllow" => hook(HookVerdict::Allow { input: None }),
        "HookDeny" => hook(HookVerdict::Deny("no".into())),
        "Tool" => tool(false),
        "ToolError" => tool(true),
        "Choice" => Ok(Reply::Choice(Some("this".into()))),
        "Uri" => Ok(Reply::Uri {
            body: "rows".into(),
            mime: Some("text/csv".into()),
            notes: vec!["a note".into()],
            immutable: None,
        }),
        other => panic!("reply {other}"),
    };
    world.reply(ask, reply)
}

fn rewind(prompt: u64, dry_run: bool) -> Command {
    Command::Rewind {
        to: RewindTo::Prompt(PromptId(prompt)),
        dry_run,
    }
}

/// An allow rule for the tool that is asked about.
fn granted(keep: Keep) -> PermissionUpdate {
    PermissionUpdate::Rules {
        op: SetOp::Add,
        behaviour: "allow".into(),
        rules: vec![("writeask".into(), None)],
        keep,
    }
}

fn setting(word: &str) -> Setting {
    match word.split_once(':') {
        Some(("Model", "")) => Setting::Model(Some("".into())),
        Some(("Model", name)) => Setting::Model(Some(name.into())),
        Some(("Name", name)) => Setting::Name(name.into()),
        Some(("Retry", on)) => Setting::AutoRetry(on == "on"),
        Some(("Steer", how)) => Setting::SteerDrain(match how {
            "One" => Drain::One,
            _ => Drain::All,
        }),
        Some(("Follow", how)) => Setting::FollowUpDrain(match how {
            "One" => Drain::One,
            _ => Drain::All,
        }),
        Some(("Interrupt", how)) => Setting::Interrupting(match how {
            "now" => Interrupting::Immediate,
            _ => Interrupting::Wait,
        }),
        Some(("Thinking", level)) => Setting::Thinking(Some(level.into())),
        Some(("Compact", on)) => Setting::AutoCompact(on == "on"),
        _ => Setting::Approvals(mode(word)),
    }
}

fn hook_ends<A: Played>(world: &mut World<A>, id: u64, how: &str) -> Vec<String> {
    let pass = HookReply::pass();
    let outcome = match how {
        "block" | "deny" => Ok(HookReply::deny("no".into())),
        "allow" => Ok(HookReply {
            verdict: HookVerdict::Allow { input: None },
            ..pass
        }),
        "change" => Ok(HookReply {
            verdict: HookVerdict::Allow {
                input: Some(RawJson("{\"path\":\"other\"}".into())),
            },
            ..pass
        }),
        "replace" => Ok(HookReply {
            verdict: HookVerdict::Allow {
                input: Some(RawJson("\"other words\"".into())),
            },
            ..pass
        }),
        "ask" => Ok(HookReply {
            verdict: HookVerdict::Ask,
            ..pass
        }),
        "pass" => Ok(pass),
        "note" => Ok(HookReply {
            context: Some("a note".into()),
            ..pass
        }),
        "stop" => Ok(HookReply {
            go_on: false,
            stop_reason: Some("enough".into()),
            ..pass
        }),
        "stopdeny" => Ok(HookReply {
            go_on: false,
            ..HookReply::deny("no".into())
        }),
        "grant" => Ok(HookReply {
            verdict: HookVerdict::Allow { input: None },
            updates: vec![granted(Keep::Session)],
            ..pass
        }),
        "interrupt" => Ok(HookReply {
            interrupt: true,
            ..HookReply::deny("no".into())
        }),
        "fail" => Err("it broke".into()),
        other => panic!("hook {other}"),
    };
    world.give(Input::Hook {
        hook: HookId(id),
        outcome,
    })
}

fn tool_says<A: Played>(world: &mut World<A>, id: u64, how: &str) -> Vec<String> {
    let update = match how {
        "ok" => return world.tool(id, ToolOutcome::Ok),
        "failed" => return world.tool(id, ToolOutcome::Failed),
        "ended" => return world.tool(id, ToolOutcome::EndedTurn),
        "progress" => ToolUpdate::Progress(Progress::Append(vec![Block::Text("so far".into())])),
        "file" => ToolUpdate::FileChanged {
            path: "a.rs".into(),
            diff: "".into(),
            added: 1,
            removed: 0,
        },
        "snapshot" => ToolUpdate::Snapshotted {
            files: Vec::new(),
            sequence: 1,
        },
        how => match how.split_once(':') {
            Some(("net", host)) => ToolUpdate::NeedsNetwork { host: host.into() },
            _ => own::detached(how).unwrap_or_else(|| panic!("tool {how}")),
        },
    };
    world.give(Input::Tool {
        call: CallId(id),
        update,
    })
}

fn shell_says<A: Played>(world: &mut World<A>, shell: &str, how: &str) -> Vec<String> {
    let at = usize::try_from(number(shell)).unwrap();
    let command = (at - 1 < world.shells.len()).then(|| world.shells[at - 1]);
    let command = command.unwrap_or(CommandId(99));
    let done = |outcome, text: &str, exit: Option<&str>| ToolUpdate::Done {
        outcome,
        content: vec![Block::Text(text.into())],
        show: exit.map(|exit| {
            alloc::boxed::Box::new(Show {
                meta: vec![("exit_code".into(), exit.into())],
                ..Show::default()
            })
        }),
    };
    let outcome = match how {
        "ok" => done(ToolOutcome::Ok, "out", Some("0")),
        "silent" => done(ToolOutcome::Ok, "", Some("0")),
        "cancelled" => done(ToolOutcome::Cancelled, "part", None),
        "late" => done(ToolOutcome::TimedOut, "part", None),
        "unstarted" => done(ToolOutcome::Failed, "no shell", None),
        "progress" => ToolUpdate::Progress(Progress::Append(vec![Block::Text("so".into())])),
        "replace" => ToolUpdate::Progress(Progress::Replace(vec![Block::Text("other".into())])),
        "alive" => ToolUpdate::Progress(Progress::Alive),
        "net" => ToolUpdate::NeedsNetwork { host: "h".into() },
        exit => done(ToolOutcome::Failed, "out", exit.strip_prefix("exit:")),
    };
    world.give(Input::Shell { command, outcome })
}

fn model_says<A: Played>(world: &mut World<A>, request: u64, words: &[&str]) -> Vec<String> {
    let failed = |kind, status, retryable| Failure {
        kind,
        status,
        retryable,
        text: "it failed".into(),
    };
    let chunk = match words {
        ["Call", call] => {
            let (name, id) = call.split_once('#').unwrap();
            return world.call(request, name, id, "{\"path\":\"x\"}");
        }
        ["Call", call, arguments] => {
            let (name, id) = call.split_once('#').unwrap();
            return world.call(request, name, id, arguments);
        }
        ["CallBegin", name] => ModelChunk::CallBegin {
            index: 0,
            id: None,
            name,
        },
        ["Text"] => ModelChunk::Text("text"),
        ["Text", "empty"] => ModelChunk::Text(""),
        ["Text", text] => ModelChunk::Text(text),
        ["Thinking"] => ModelChunk::Thinking("hm"),
        ["Signature"] => ModelChunk::Signature("sig"),
        ["Redacted"] => ModelChunk::Redacted("xxx"),
        ["Begin"] => ModelChunk::Begin {
            id: Some("id"),
            model: Some("model-1"),
        },
        ["Alive"] => ModelChunk::Alive,
        ["Usage", tokens] => ModelChunk::Usage(Usage {
            input: tokens.parse().ok(),
            ..Usage::default()
        }),
        ["Finish,", "End"] => return world.complete(request),
        ["Finish", "length,", "End"] => {
            let mut said = world.model(request, ModelChunk::Finish("length"));
            said.extend(world.model(request, ModelChunk::End));
            return said;
        }
        ["Finish"] => ModelChunk::Finish("stop"),
        // In a trace the end of a compaction's request stands for its summary too.
        ["End"] if world.is_compaction(request) => {
            let mut said = world.model(request, ModelChunk::Text("s"));
            said.extend(world.complete(request));
            return said;
        }
        ["End"] => ModelChunk::End,
        ["Cut", how @ ..] => ModelChunk::Failed {
            failure: failed(FailureKind::StreamCut, None, !how.contains(&"limit")),
            reached: true,
            retry_after_us: None,
        },
        ["Failed", "ContextFull", again @ ..] => ModelChunk::Failed {
            failure: failed(FailureKind::ContextFull, Some(400), !again.is_empty()),
            reached: true,
            retry_after_us: None,
        },
        ["Failed", "fatal"] => ModelChunk::Failed {
            failure: failed(FailureKind::Auth, Some(401), false),
            reached: true,
            retry_after_us: None,
        },
        ["Failed", how @ ..] => {
            let wait = how
                .iter()
                .find_map(|word| word.strip_prefix("retry-after="));
            ModelChunk::Failed {
                failure: failed(FailureKind::Server, Some(500), true),
                reached: !how.contains(&"unreached"),
                retry_after_us: wait.map(|wait| wait.parse::<u64>().unwrap() * SECOND),
            }
        }
        other => panic!("model {other:?}"),
    };
    world.model(request, chunk)
}

fn other_command(words: &[&str]) -> Command {
    match words {
        ["Reload"] => Command::Reload,
        ["Barrier"] => Command::Barrier,
        ["Compact"] => Command::Compact { instructions: None },
        ["Compact", more] => Command::Compact {
            instructions: Some((*more).into()),
        },
        ["Rewind"] => Command::Rewind {
            to: RewindTo::Prompt(PromptId(1)),
            dry_run: false,
        },
        ["Goal", what @ ..] => Command::Goal(own::goal_command(what)),
        ["Shell", line @ ..] => Command::Shell {
            command: line.join(" ").into(),
        },
        ["Session", which @ ..] => changes::command(which),
        ["SteerRun", run @ ..] => Command::SteerRun {
            run: RunId(run.first().map_or(1, |run| number(run))),
            prompt: prompt(99, Deliver::IfIdle),
        },
        ["Offer", "Uris", schemes @ ..] => {
            let spec = |word: &&str| UriSpec {
                scheme: word.trim_end_matches(['!', '=']).into(),
                description: None,
                writable: word.ends_with('!'),
                immutable: word.ends_with('='),
            };
            Command::Offer(Offer::Uris(schemes.iter().map(spec).collect()))
        }
        ["Recall"] => Command::Recall(Vec::from([message("before", Role::User)])),
        ["Recall", "batch"] => Command::Recall(batch().to_vec()),
        ["Recall", "call"] => Command::Recall(batch()[..1].to_vec()),
        ["Recall", "between"] => {
            let [reply, result] = batch();
            Command::Recall(Vec::from([reply, message("hm", Role::Note), result]))
        }
        ["Recall", "twice"] => Command::Recall([batch(), batch()].concat()),
        ["Recall", "result"] => {
            let role = Role::Tool {
                call: CallId(1),
                name: "read".into(),
                error: false,
            };
            Command::Recall(Vec::from([message("out", role)]))
        }
        other => match own::job_command(other) {
            Some(command) => Command::Job(command),
            None => panic!("input {other:?}"),
        },
    }
}

/// A reply with a call, and its result.
fn batch() -> [alloc::sync::Arc<Message>; 2] {
    let call = CallId(70);
    let mut reply = Message::clone(&message("", Role::Assistant));
    reply.content = vec![alloc::sync::Arc::new(Block::ToolUse {
        call,
        provider_id: Some("n1".into()),
        name: "read".into(),
        input: ToolInput::Object(RawJson("{}".into())),
    })];
    let role = Role::Tool {
        call,
        name: "read".into(),
        error: false,
    };
    let mut result = Message::clone(&message("", role));
    result.content.clear();
    result.about = Some(call);
    [alloc::sync::Arc::new(reply), alloc::sync::Arc::new(result)]
}

fn message(text: &str, role: Role) -> alloc::sync::Arc<Message> {
    alloc::sync::Arc::new(Message {
        id: MessageId(7),
        role,
        content: Vec::from([alloc::sync::Arc::new(Block::Text(text.into()))]),
        origin: Origin::History,
        prompt: None,
        about: None,
        at_ms: 0,
        details: None,
    })
}
