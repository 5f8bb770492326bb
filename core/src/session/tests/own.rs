//! What a session does by itself: the words for jobs and the goal, and what an earlier process left of them.

use alloc::{boxed::Box, format, string::String, vec, vec::Vec};

use super::world::{World, config, info};
use crate::session::Session;
use crate::vocab::*;

/// A call that goes on as a job; `helper` never ends by itself.
pub fn detached(how: &str) -> Option<ToolUpdate> {
    let (kind, finite) = match how {
        "detached" => (JobKind::Shell, true),
        "helper" => (JobKind::Other("helper".into()), false),
        _ => return None,
    };
    Some(ToolUpdate::Detached(Box::new(JobStart {
        id: "j".into(),
        generation: "g1".into(),
        kind,
        command: "sleep".into(),
        description: None,
        cwd: None,
        finite,
        times_ms: [None; 4],
    })))
}

/// What a driver says of a job; nothing: it ends well.
pub fn job_update(how: &[&str]) -> JobUpdate {
    match how {
        [] => JobUpdate::Ended(JobState::Exited(0)),
        ["ended"] => JobUpdate::Ended(JobState::Interrupted),
        ["stopped"] => JobUpdate::Ended(JobState::Stopped("SIGTERM".into())),
        ["unkept"] => JobUpdate::Unkept("the disk is full".into()),
        ["runs"] => JobUpdate::Ended(JobState::Running),
        ["output", bytes] => JobUpdate::Output(JobOutput {
            name: Some("j.out".into()),
            bytes: bytes.parse().unwrap(),
            ..JobOutput::default()
        }),
        other => panic!("job {other:?}"),
    }
}

/// A command about jobs: `Stop`, of which generation.
pub fn job_command(words: &[&str]) -> Option<JobCommand> {
    let stop = |generation: Option<&str>| JobCommand::Stop {
        job: "j".into(),
        generation: generation.map(Text::from),
    };
    Some(match words {
        ["Job", "Snapshot"] => JobCommand::Snapshot,
        ["Job", "Stop"] => stop(None),
        ["Job", "Stop", name, generation] => JobCommand::Stop {
            job: (*name).into(),
            generation: Some((*generation).into()),
        },
        ["Job", "Stop", generation] => stop(Some(generation)),
        _ => return None,
    })
}

/// A command about the goal.
pub fn goal_command(words: &[&str]) -> GoalCommand {
    let set = |text: &str, auto_turns: Option<u32>, token_budget: Option<u64>| GoalCommand::Set {
        text: text.into(),
        auto_turns,
        token_budget,
    };
    match words {
        ["Get"] => GoalCommand::Get,
        ["Set"] => set("ship it", None, None),
        ["Set", "blank"] => set(" \n", None, None),
        ["Set", "long"] => set("a longer goal", None, None),
        ["Set", "turns", count] => set("ship it", count.parse().ok(), None),
        ["Set", "tokens", count] => set("ship it", None, count.parse().ok()),
        ["Pause"] => GoalCommand::Pause,
        ["Resume"] => GoalCommand::Resume,
        ["Clear"] => GoalCommand::Clear,
        other => panic!("goal {other:?}"),
    }
}

pub fn goal_word(news: &GoalEvent) -> String {
    match news {
        GoalEvent::Changed(None) => "Goal Gone".into(),
        GoalEvent::Changed(Some(goal)) if goal.status == GoalStatus::Active => {
            "Goal Changed".into()
        }
        GoalEvent::Changed(Some(goal)) => format!("Goal {:?}", goal.status),
        other => format!("Goal {}", super::world::name_of(other)),
    }
}

pub fn job_word(step: JobStep, record: &JobRecord) -> String {
    let how = match (step, &record.state) {
        (JobStep::Updated, JobState::Running) if record.faults[2].is_some() => "Unkept".into(),
        (JobStep::Updated, JobState::Running) => "Output".into(),
        (JobStep::Started, _) => "Started".into(),
        (_, JobState::Stopped(by)) if &**by != "user" && &**by != "session_ended" => {
            format!("Stopped:{by}")
        }
        (_, state) => super::world::name_of(state),
    };
    format!("Job j{} {how}", super::nested::id_word(record.job.0))
}

pub fn jobs_word(records: &[JobRecord]) -> String {
    let mut word = String::from("Jobs");
    for record in records {
        let state = super::world::name_of(&record.state);
        let job = super::nested::id_word(record.job.0);
        word.push_str(&format!(" j{job}:{state}:{}", record.revision));
    }
    word
}

fn left(job: u64, state: JobState) -> JobRecord {
    JobRecord {
        job: JobId(job),
        id: format!("j{job}").into(),
        generation: "g0".into(),
        revision: 4,
        kind: JobKind::Shell,
        call: Some(CallId(job)),
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

#[test]
fn s_57_what_ran_in_an_earlier_process_was_interrupted_with_it() {
    let mut config = config();
    config.jobs = vec![
        left(3, JobState::Exited(1)),
        left(7, JobState::Running),
        left(5, JobState::Stopping),
    ];
    let mut world = World::new(config);
    let snapshot = Command::Job(JobCommand::Snapshot);
    assert_eq!(
        world.command(snapshot),
        ["RP Jobs j3:Exited:4 j7:Interrupted:5 j5:Interrupted:5"]
    );
    let stop = |generation: Option<&str>| {
        Command::Job(JobCommand::Stop {
            job: "j7".into(),
            generation: generation.map(Text::from),
        })
    };
    assert_eq!(world.command(stop(None)), ["RP WrongRuntime"]);
    assert_eq!(world.command(stop(Some("g0"))), ["RP WrongRuntime"]);
    assert_eq!(world.command(stop(Some("g1"))), ["RP NotFound"]);
    // No call takes the number of a job that was.
    world.prompt(1, Deliver::IfIdle);
    assert_eq!(world.call(1, "read", "n1", "{}"), ["MS", "D call c8"]);
}

#[test]
fn s_60_of_the_records_of_an_earlier_process_the_newest_are_kept() {
    let mut config = config();
    config.limits.job_records = 2;
    config.jobs = (1..=4)
        .map(|job| left(job, JobState::Interrupted))
        .collect();
    let mut world = World::new(config);
    let snapshot = Command::Job(JobCommand::Snapshot);
    let listed = world.command(snapshot);
    assert_eq!(listed, ["RP Jobs j3:Interrupted:4 j4:Interrupted:4"]);
}

#[test]
fn s_58_a_goal_of_an_earlier_process_comes_back_disarmed() {
    let mut config = config();
    config.goals.standing = Some(Goal {
        text: "ship it".into(),
        status: GoalStatus::Active,
        turns_left: Some(3),
        token_budget: None,
        tokens_used: 9,
    });
    let mut session = Session::new(config, info(), Now::default());
    let mut goals: Vec<Option<Goal>> = Vec::new();
    while let Some(output) = session.poll_output() {
        if let Output::Event(event) = output
            && let What::Goal(GoalEvent::Changed(goal)) = &event.what
        {
            goals.push(goal.clone());
        }
    }
    let [Some(goal)] = goals.as_slice() else {
        panic!("{goals:?}")
    };
    assert_eq!((goal.status, goal.tokens_used), (GoalStatus::Paused, 9));
    assert!(!session.goal_is_due());
}

#[test]
fn an_open_plan_of_an_earlier_process_is_brought_to_mind_at_once() {
    let message = |id: u64, role: Role, block: Block| {
        alloc::sync::Arc::new(Message {
            id: MessageId(id),
            role,
            content: vec![alloc::sync::Arc::new(block)],
            origin: Origin::History,
            prompt: None,
            about: None,
            at_ms: 0,
            details: None,
        })
    };
    let plan = |id: u64, text: &str| Block::ToolUse {
        call: CallId(id),
        provider_id: Some(format!("n{id}").as_str().into()),
        name: "plan".into(),
        input: ToolInput::Object(RawJson(text.into())),
    };
    let tool = Role::Tool {
        call: CallId(1),
        name: "plan".into(),
        error: false,
    };
    let steps =
        r#"{"plan":[{"step":"sow","status":"completed"},{"step":"reap","status":"pending"}]}"#;
    let mut info = info();
    info.history = vec![
        message(1, Role::Assistant, plan(1, steps)),
        message(2, tool, Block::Text("noted".into())),
    ];
    let mut config = config();
    config.tools.push(crate::session::plan_tool());
    config.plan_reminder = Some(3);
    let mut world = World::with_info(config, info);
    let said = world.prompt(1, Deliver::IfIdle);
    assert!(said.contains(&"Message PlanReminder".into()), "{said:?}");
    let last = world.session.history().last().map(|message| message.text());
    assert_eq!(
        last.as_deref(),
        Some("[plan] these steps are open:\n- reap")
    );
}
