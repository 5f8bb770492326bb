//! Whatever a session says behind omp's policy is a legal stream of omp, and the Server keeps the laws on it: stories
//! of the world (models, tools, hooks, disks, hosts), played with a session alone and told to a Server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail"
)]

use proptest::prelude::*;
use turnwire::frame::LineSplitter;
use turnwire::protocol::Protocol;
use turnwire::protocol::observer::{Dir, Observer, Severity, Sides};
use turnwire::protocol::omp::{ObserverConfig, Omp, ServerConfig, preset};
use turnwire::session::Session;
use turnwire::vocab::*;
use turnwire_proptests::laws::{
    AgentMachine, Machine, ServerInput, ServerMachine, ServerSaid, hold,
};
use turnwire_proptests::reference::Judged;
use turnwire_proptests::scenario::Scenario;
use turnwire_proptests::world::{START, record_agent, session_world};

fn info() -> SessionInfo {
    SessionInfo {
        model: ModelRef {
            provider: Some("mock".into()),
            model: "m".into(),
        },
        ..<turnwire::protocol::openmax::Openmax as turnwire_proptests::world::Speaks>::info()
    }
}

/// What a session says in the story of these bytes, as inputs of a Server.
fn story(data: &[u8]) -> Vec<(ServerInput<Omp>, Now)> {
    let scenario = Scenario::decode(data);
    let mut config = scenario.setup.session();
    preset(&mut config);
    let judged = Judged::Session(config.policy.gates);
    let (_, told) = record_agent(&scenario, session_world(config.clone(), info()), judged);
    let mut machine = AgentMachine(Session::new(config, Box::new(info()), START));
    let mut story = Vec::new();
    let mut hear = |machine: &mut AgentMachine<Session>, now| {
        while let Some(said) = machine.poll() {
            if !matches!(said.lend(), Output::Effect { .. }) {
                story.push((ServerInput::Said(Box::new(said)), now));
            }
        }
    };
    hear(&mut machine, START);
    for (given, now) in &told {
        machine.handle(given, *now).unwrap();
        hear(&mut machine, *now);
    }
    story
}

fn make() -> ServerMachine<Omp> {
    ServerMachine::new(ServerConfig::new([7; 32]), Omp::host_line_rules())
}

/// What the observer holds against what a Server makes of a story.
fn errors(story: &[(ServerInput<Omp>, Now)]) -> Vec<String> {
    let mut machine = make();
    let mut bytes = Vec::new();
    let mut drain = |machine: &mut ServerMachine<Omp>| {
        while let Some(said) = machine.poll() {
            if let ServerSaid::Lines(lines) = said {
                bytes.extend(lines);
            }
        }
    };
    for (input, now) in story {
        machine.handle(input, *now).unwrap();
        drain(&mut machine);
    }
    drain(&mut machine);
    let mut observer = Observer::<Omp>::new(ObserverConfig::default(), Sides::Agent);
    let mut splitter = LineSplitter::new(Omp::agent_line_rules());
    let mut chunk = bytes.as_slice();
    while let Some(line) = splitter.next(&mut chunk) {
        observer.handle_line(Dir::Agent, line);
    }
    observer.handle_end(Dir::Agent);
    observer.finish();
    let mut errors = Vec::new();
    while let Some(finding) = observer.poll_finding() {
        // What the host offered isn't seen here.
        let offered = ["OMP-11.a", "OMP-12.a", "OMP-12.b"].contains(&finding.rule.id);
        if finding.severity == Severity::Error && !offered {
            let lines: Vec<&str> = std::str::from_utf8(&bytes).unwrap().lines().collect();
            let kinds: Vec<String> = lines
                .iter()
                .map(|line| line.chars().take(90).collect())
                .collect();
            errors.push(format!("{finding}\n{}", kinds.join("\n")));
        }
    }
    errors
}

proptest! {
    #![proptest_config(turnwire_proptests::config(150))]

    #[test]
    fn omp_03_what_a_session_says_is_a_legal_stream(
        data in proptest::collection::vec(any::<u8>(), 0..220),
    ) {
        let story = story(&data);
        let errors = errors(&story);
        prop_assert!(errors.is_empty(), "{}", errors.join("\n"));
    }

    #[test]
    fn l2_l3_l4_l5_l6_l9_the_server_keeps_the_laws_on_what_a_session_says(
        data in proptest::collection::vec(any::<u8>(), 0..160),
    ) {
        let story = story(&data);
        let law = hold(make, &story, 3);
        let broken = law.map_err(|broken| (broken.law, broken.why.chars().take(300).collect::<String>()));
        prop_assert_eq!(broken, Ok(()));
    }
}
