//! Playing scenarios from their first step to their end.

use std::collections::BTreeSet;

use turnwire::{
    protocol::openmax::Openmax,
    session::{
        Session, SessionConfig, SessionTree,
        config::{JobWhenIdle, PromptHook},
        tree::LikeParent,
    },
    vocab::{laws::Scope, *},
};

use super::{By, Ends, Found, Given, Recorded, Report, Speaks, Tamper, Untouched, World, view};
use crate::{
    reference::{Judged, Reference},
    scenario::{Scenario, Step},
    script::{Answering, Ending, Unreadable, act, answer_to, quiesce, settle},
};

/// When every scenario begins.
pub const START: Now = Now {
    mono_us: 1_000_000,
    unix_ms: 1_700_000_000_000,
};

/// Rounds in which everything that is open must have come to its end.
const MOST_ROUNDS: usize = 5_000;

/// Plays whatever scenario these bytes are: the body of a property test and of a fuzz target.
///
/// ```
/// // Any bytes do, none too.
/// turnwire_proptests::world::run(&[]).assert_clean();
/// ```
pub fn run(data: &[u8]) -> Report {
    run_with(&Scenario::decode(data))
}

/// Plays the scenario of a text.
///
/// # Errors
/// [`Unreadable`] with the first line that can't be read.
pub fn run_text(text: &str) -> Result<Report, Unreadable> {
    Ok(run_with(&Scenario::parse(text)?))
}

/// Plays a scenario with our own session, behind our own Server and Client of openmax or alone, as it says.
pub fn run_with(scenario: &Scenario) -> Report {
    if scenario.setup.is_agent_alone() {
        let config = scenario.setup.session();
        let judged = Judged::Session(config.policy.gates);
        play_agent(scenario, session_world(config, Openmax::info()), judged)
    } else {
        run_over::<Openmax>(scenario).0
    }
}

/// Plays a scenario with our own session behind our own Server and Client of this protocol, and keeps what each
/// machine was told.
pub fn run_over<P: Speaks>(scenario: &Scenario) -> (Report, Recorded<P>) {
    let mut config = scenario.setup.session();
    P::session(&mut config, &scenario.setup);
    let judged = Judged::Session(config.policy.gates);
    let world = session_world(config, P::info());
    record_ends::<P, _>(scenario, world, judged, Box::new(Untouched))
}

/// Our session, and what lies below it.
pub fn our_agent(config: SessionConfig, info: SessionInfo) -> SessionTree {
    SessionTree::new(Session::new(config, Box::new(info), START), LikeParent)
}

/// Our session in its world.
pub fn session_world(config: SessionConfig, info: SessionInfo) -> World<SessionTree> {
    let nests = config
        .tools
        .iter()
        .any(|tool| matches!(tool.route, Route::Run(_)));
    let stopped_limit = config.limits.stopped_effects;
    let judges_first = config.policy.prompt_hook == PromptHook::AtSubmit;
    let jobs_wake = config.policy.job_when_idle == JobWhenIdle::StartTurn;
    let mut world = World::new(our_agent(config, info), Scope::Session, START);
    world.nests = nests;
    world.stopped_limit = stopped_limit;
    world.judges_first = judges_first;
    world.jobs_wake = jobs_wake;
    world
}

/// Plays a scenario with an agent alone; what lies between two ends is left out.
pub fn play_agent<A: Agent>(scenario: &Scenario, world: World<A>, judged: Judged) -> Report {
    record_agent(scenario, world, judged).0
}

/// As [`play_agent`], with what the agent was told.
pub fn record_agent<A: Agent>(
    scenario: &Scenario,
    mut world: World<A>,
    judged: Judged,
) -> (Report, Vec<(Given, Now)>) {
    let mut said = Vec::new();
    let mut seen = 0;
    let mut hear = |world: &World<A>, step| {
        let fresh = world.said.iter().skip(seen);
        said.extend(fresh.map(|one| (step, format!("@{} < {one}", world.now.mono_us))));
        seen = world.said.len();
    };
    hear(&world, None);
    for (at, step) in scenario.steps.iter().enumerate() {
        if !world.faults.is_empty() {
            break;
        }
        if let Step::Act(action) = step {
            act(&mut world, action);
        }
        hear(&world, Some(at));
    }
    let setup = &scenario.setup;
    let ending = setup.ending();
    quiesce(&mut world, ending);
    world.command(Command::Close {
        drain: !setup.leaves_now(),
    });
    quiesce(&mut world, ending);
    hear(&world, scenario.steps.len().checked_sub(1));
    if world.faults.is_empty() && !world.closed() && ending != Ending::Silent {
        world
            .faults
            .push("S-55: the session never closed".to_owned());
    }
    let mut found = Vec::new();
    of_agent(&world, judged, &mut found);
    let report = Report {
        scenario: scenario.clone(),
        found,
        said,
        end: format!("closed {}, {} outputs", world.closed(), world.said.len()),
    };
    (report, world.given)
}

/// Plays a scenario with an agent behind a protocol's Server, and a host behind its Client.
pub fn play_ends<P: Speaks, A: Agent>(
    scenario: &Scenario,
    agent: World<A>,
    judged: Judged,
    tamper: Box<dyn Tamper>,
) -> Report {
    record_ends::<P, A>(scenario, agent, judged, tamper).0
}

/// As [`play_ends`], with what each machine was told.
pub fn record_ends<P: Speaks, A: Agent>(
    scenario: &Scenario,
    agent: World<A>,
    judged: Judged,
    tamper: Box<dyn Tamper>,
) -> (Report, Recorded<P>) {
    let mut ends = Ends::<P, A>::new(&scenario.setup, agent, tamper);
    let mut said = Vec::new();
    let mut hear = |ends: &mut Ends<P, A>, step| {
        said.extend(ends.said.drain(..).map(|line| (step, line)));
    };
    if let Some(offer) = scenario.setup.offers().filter(P::says) {
        ends.command(offer);
    }
    hear(&mut ends, None);
    for (at, step) in scenario.steps.iter().enumerate() {
        if !ends.agent.faults.is_empty() || !ends.found.is_empty() {
            break;
        }
        match step {
            Step::Act(action) => ends.act(action),
            Step::Wire(wire) => ends.wire(*wire),
        }
        hear(&mut ends, Some(at));
    }
    leave(&mut ends, scenario);
    hear(&mut ends, scenario.steps.len().checked_sub(1));
    let end = format!(
        "exit {:?}, the host knows {}, {} outputs of the agent, {} entries at the host",
        ends.exit,
        ends.host.closed,
        ends.agent.said.len(),
        ends.host.log.len()
    );
    let found = everything(&mut ends, judged);
    let mut recorded = std::mem::take(&mut ends.recorded);
    recorded.agent = ends.agent.given;
    let report = Report {
        scenario: scenario.clone(),
        found,
        said,
        end,
    };
    (report, recorded)
}

/// Lets everything come to its end, and then the host leaves.
fn leave<P: Speaks, A: Agent>(ends: &mut Ends<P, A>, scenario: &Scenario) {
    let ending = scenario.setup.ending();
    ends.up.stopped = false;
    ends.down.stopped = false;
    ends.pump();
    come_to_rest(ends, ending);
    if scenario.setup.leaves_by_end() {
        ends.wire(crate::scenario::Wire::End);
    } else {
        ends.command(Command::Close {
            drain: !scenario.setup.leaves_now(),
        });
    }
    come_to_rest(ends, ending);
    let stuck = !ends.is_over() && ends.found.is_empty() && ends.agent.faults.is_empty();
    // Who answers nothing is waited for, and so is a stopped effect that never settles where too many are.
    let waited_for = !ends.agent.work.is_empty() || !ends.agent.jobs.is_empty();
    if stuck && (ending != Ending::Silent || scenario.setup.leaves_now() && !waited_for) {
        let turn = ends.agent.mirror.turn().map(|turn| turn.turn);
        let text = format!(
            "dead-lock: exit {:?}, host knows {}; turn {turn:?}, {} effects, questions {:?}, owed {:?}",
            ends.exit,
            ends.host.closed,
            ends.agent.work.len(),
            ends.host.mirror.questions(),
            ends.host.owed().collect::<Vec<_>>()
        );
        ends.find(By::Drive, text);
    }
}

fn come_to_rest<P: Speaks, A: Agent>(ends: &mut Ends<P, A>, ending: Ending) {
    // An answer may be under way, or wait for an earlier one.
    let mut answered: BTreeSet<AskId> = BTreeSet::new();
    for _ in 0..MOST_ROUNDS {
        if ends.is_over() || !ends.found.is_empty() || !ends.agent.faults.is_empty() {
            return;
        }
        let here = ends.exit.is_none() && ending != Ending::Silent;
        let mut asked = ends.host.mirror.questions().iter();
        let asked = asked.find(|open| !answered.contains(&open.ask));
        let question = asked.map(|open| (open.ask, open.body.clone()));
        let answers = here && !ends.host.closed && ends.host.client.wants_commands();
        let can_say = answers && !ends.down.is_closed();
        match (question, ends.agent.work.keys().next().copied()) {
            (Some((ask, body)), _) if can_say => {
                let yes = ending == Ending::Willing || matches!(body, Ask::Hook(_));
                let how = if yes { Answering::Yes } else { Answering::No };
                let reply = answer_to(&body, how);
                answered.insert(ask);
                ends.command(Command::Reply { ask, reply });
            }
            (_, Some(id)) if here => ends.driver(|world| settle(world, id)),
            _ if here && !ends.agent.jobs.is_empty() => {
                let jobs: Vec<JobId> = ends.agent.jobs.keys().copied().collect();
                for job in jobs {
                    let update = JobUpdate::Ended(JobState::Exited(0));
                    let ended = Given::Else(Input::Job { job, update });
                    ends.driver(|world| world.give(ended));
                }
            }
            _ => {
                if !ends.jump() {
                    return;
                }
            }
        }
    }
    ends.find(By::Drive, "live-lock: it never comes to rest".to_owned());
}

fn of_agent<A: Agent>(world: &World<A>, judged: Judged, found: &mut Vec<Found>) {
    let faults = world.faults.iter();
    found.extend(faults.map(|fault| Found::new(By::Driver, fault.clone())));
    let violations = world.violations().iter();
    found.extend(violations.map(|one| Found {
        by: By::Checker,
        id: one.breach.law().to_owned(),
        text: one.to_string(),
    }));
    let broken = Reference::judge(judged, world.story());
    found.extend(broken.iter().map(|one| Found::broken(By::Reference, one)));
}

fn everything<P: Speaks, A: Agent>(ends: &mut Ends<P, A>, judged: Judged) -> Vec<Found> {
    let mut found = std::mem::take(&mut ends.found);
    of_agent(&ends.agent, judged, &mut found);
    let host = &ends.host;
    found.extend(
        host.faults
            .iter()
            .map(|fault| Found::new(By::Client, fault.clone())),
    );
    let violations = host.checker.violations().iter();
    found.extend(violations.map(|one| Found {
        by: By::HostChecker,
        id: one.breach.law().to_owned(),
        text: one.to_string(),
    }));
    let broken = Reference::judge(Judged::Client, host.story());
    found.extend(
        broken
            .iter()
            .map(|one| Found::broken(By::HostReference, one)),
    );
    let whole = ends.is_over() && !ends.mess.parts_the_ends();
    let said = view::view::<P>(false, ends.agent.story());
    let seen = view::view::<P>(true, host.story());
    // What was made up to end a story that broke off is the Client's own business.
    if !ends.mess.parts_the_ends()
        && let Some(text) = view::differs(&said, &seen, whole)
    {
        found.push(Found {
            by: By::View,
            id: "view".to_owned(),
            text: format!("view: {text}"),
        });
    }
    found
}
