//! The words for nested runs. An id of a run's own range is written as the run's number, a dot, and the rest: `a1.2`.

use alloc::{boxed::Box, format, string::String, vec, vec::Vec};

use super::world::{Played, World};
use crate::session::ids::RANGE_BITS;
use crate::vocab::*;

/// A tool whose calls are nested runs.
pub fn task(config: &mut crate::session::SessionConfig) {
    config.tools.push(ToolSpec {
        schema: RawJson("{}".into()),
        ..crate::session::task_tool()
    });
}

/// An id, as it is written.
pub fn id_word(id: u64) -> String {
    match id >> RANGE_BITS {
        0 => format!("{id}"),
        run => format!("{run}.{}", id & ((1 << RANGE_BITS) - 1)),
    }
}

/// An id, as it is read, without the letter before it.
pub fn id(word: &str) -> u64 {
    match word.split_once('.') {
        None => word.parse().unwrap(),
        Some((run, rest)) => {
            (run.parse::<u64>().unwrap() << RANGE_BITS) + rest.parse::<u64>().unwrap()
        }
    }
}

fn run_id(word: &str) -> RunId {
    RunId(word.strip_prefix('n').unwrap().parse().unwrap())
}

pub fn status(word: &str) -> RunStatus {
    match word {
        "Completed" => RunStatus::Completed,
        "NoReport" => RunStatus::NoReport,
        "MaxSteps" => RunStatus::MaxSteps,
        "Yielded" => RunStatus::Yielded,
        "TimedOut" => RunStatus::TimedOut,
        "Failed" => RunStatus::Failed,
        "Cancelled" => RunStatus::Cancelled,
        "Skipped" => RunStatus::Skipped,
        "Incomplete" => RunStatus::Incomplete,
        other => panic!("status {other}"),
    }
}

fn job(run: RunId, state: JobState) -> JobRecord {
    JobRecord {
        job: JobId((run.0 << RANGE_BITS) + 1),
        id: format!("job-of-{}", run.0).into(),
        generation: "g1".into(),
        revision: 1,
        kind: JobKind::Shell,
        call: None,
        command: "sleep".into(),
        description: None,
        cwd: None,
        state,
        finite: true,
        times_ms: [None; 4],
        output: None,
        faults: [None, None, None],
    }
}

/// What a run says: `Run n1 …`, or, of one below it, `Run n1 n2 …`.
pub fn says<A: Played>(world: &mut World<A>, words: &[&str]) -> Vec<String> {
    let (run, by, rest) = match words {
        [run, by, rest @ ..] if by.starts_with('n') && by[1..].parse::<u64>().is_ok() => {
            (run_id(run), run_id(by), rest)
        }
        [run, rest @ ..] => (run_id(run), RunId::MAIN, rest),
        [] => panic!("no run"),
    };
    let own = if by == RunId::MAIN { run } else { by };
    let step = StepId((own.0 << RANGE_BITS) + 1);
    let what = match rest {
        ["ended", how] => What::RunEnded {
            run: own,
            status: status(how),
            steps: 0,
            usage: None,
            detail: "report".into(),
        },
        ["begins", below] => What::RunStarted {
            run: run_id(below),
            kind: RunKind::Subagent("task".into()),
            label: "below".into(),
            call: None,
        },
        ["asks", ask] => What::Asked {
            ask: AskId(id(&ask[1..])),
            body: Ask::Choice(Box::new(ChoiceAsk {
                title: "which?".into(),
                kind: ChoiceKind::Confirm,
                timeout_us: None,
            })),
        },
        ["permission", ask] => What::Asked {
            ask: AskId(id(&ask[1..])),
            body: Ask::Permission(Box::new(PermissionAsk {
                call: None,
                tool: "write".into(),
                reason: AskReason::Gate,
                summary: "x".into(),
                detail: "".into(),
                body: None,
                suggestions: Vec::new(),
                env: Vec::new(),
                due: None,
            })),
        },
        ["closes", ask] => What::AskClosed {
            ask: AskId(id(&ask[1..])),
            how: AskClose::Answered {
                by: Decider::Host,
                allow: None,
            },
        },
        ["replies", how] => What::Replied {
            command: world.handed.pop().unwrap(),
            reply: match *how {
                "Done" => Ok(Answer::Done),
                "Cancelling" => Ok(Answer::Cancelling {
                    hit: Hit::Run,
                    queued: vec![PromptId(77)],
                }),
                _ => Err(Refusal::Unknown),
            },
        },
        ["step"] => What::StepStarted { step, number: 1 },
        ["steps"] => What::StepEnded { step },
        ["text"] => What::Delta {
            message: MessageId((own.0 << RANGE_BITS) + 1),
            block: 0,
            kind: Kind::Text,
            text: "t".into(),
        },
        ["used", tokens] => What::RequestEnded {
            request: RequestId((own.0 << RANGE_BITS) + 1),
            outcome: RequestOutcome::Cancelled,
            model: ModelRef {
                provider: None,
                model: "other".into(),
            },
            usage: Some(Usage {
                input: tokens.parse().ok(),
                ..Usage::default()
            }),
            cost: Cost::Known {
                pico_usd: tokens.parse().unwrap(),
                basis: CostBasis::Estimated,
                source: "list".into(),
                as_of: "today".into(),
            },
            api_us: 1,
        },
        ["requests"] => What::RequestStarted {
            request: RequestId((own.0 << RANGE_BITS) + 1),
            attempt: 1,
        },
        ["job", "begins"] => What::Job(JobStep::Started, Box::new(job(own, JobState::Running))),
        ["job", "ends"] => What::Job(JobStep::Ended, Box::new(job(own, JobState::Exited(0)))),
        ["inside"] => What::TurnStarted {
            turn: TurnId((own.0 << RANGE_BITS) + 1),
            cause: Cause::Prompt,
        },
        other => panic!("a run says {other:?}"),
    };
    let event = Event {
        at: world.now,
        run: by,
        seen: Seen::Real,
        what,
    };
    world.give(Input::Run {
        run,
        event: Box::new(event),
    })
}

/// News of a run, in words.
pub fn run_word(what: &What) -> Option<String> {
    Some(match what {
        What::RunStarted { run, call, .. } => {
            let call = call.map_or_else(String::new, |call| format!(" c{}", id_word(call.0)));
            format!("NS n{}{call}", run.0)
        }
        What::RunProgress { run, steps, .. } => format!("NP n{} {steps}", run.0),
        What::RunEnded { run, status, .. } => format!("NE n{} {status:?}", run.0),
        _ => return None,
    })
}

/// An effect about a run, in words.
pub fn effect_word(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::StartRun { run, call, .. } => format!("!StartRun n{} c{}", run.0, id_word(call.0)),
        Effect::StopRun(run) => format!("!StopRun n{}", run.0),
        Effect::CallRun(run, call) => {
            let what = super::world::name_of(&call.command);
            format!("!CallRun n{} {what}", run.0)
        }
        _ => return None,
    })
}
