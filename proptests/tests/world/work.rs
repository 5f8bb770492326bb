//! L7 and L9 by what is allocated: a step costs what its input and its output account for, however long the story is.

use turnwire::{
    protocol::{observer::Dir, omp::Omp, openmax::Openmax, openseek::Openseek},
    session::Session,
    vocab::Now,
};
use turnwire_proptests::{
    laws::{
        AgentMachine, ClientMachine, Machine, ObserverMachine, ServerMachine, Work, law_l7_work,
    },
    scenario::Scenario,
    world::{START, Speaks, line_rules, run_over},
};

/// Bytes that were allocated, copies by growing included.
pub fn allocated(step: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(step).bytes_total
}

/// What the machines may allocate.
const MOST: Work = Work {
    once: 64 * 1024,
    step: 512,
    byte: 4,
};

#[track_caller]
fn holds<M: Machine>(who: &str, make: impl Fn() -> M, story: &[(M::Input, Now)]) {
    assert_eq!(law_l7_work(make, story, allocated, MOST), Ok(()), "{who}");
}

/// A session of so many turns, each with a call and two replies.
fn turns(count: usize) -> Scenario {
    let turn = "> prompt if-idle\n+ answer 0 write\n+ tool 0 ok\n+ answer 0\n";
    let text = format!("turnwire scenario 1\nset mode auto\n{}", turn.repeat(count));
    Scenario::parse(&text).unwrap()
}

fn check<P: Speaks>() {
    let scenario = turns(150);
    let setup = &scenario.setup;
    let (report, told) = run_over::<P>(&scenario);
    report.assert_clean();
    let mut config = setup.session();
    P::session(&mut config, setup);
    let (down, up) = (line_rules::<P>(Dir::Host), line_rules::<P>(Dir::Agent));
    let session = || {
        let session = Session::new(config.clone(), Box::new(P::info()), START);
        AgentMachine(session)
    };
    holds("session", session, &told.agent);
    let server = || ServerMachine::<P>::new(P::server(setup), down);
    holds("Server", server, &told.server);
    let client = || ClientMachine::<P>::new(P::client(setup), up);
    holds("Client", client, &told.client);
    let observer = || ObserverMachine::<P>::new(P::observer(setup), down, up);
    holds("observer", observer, &told.observer);
}

#[test]
fn l7_a_long_session_over_openmax_costs_what_it_says() {
    check::<Openmax>();
}

#[test]
fn l7_a_long_session_over_omp_costs_what_it_says() {
    check::<Omp>();
}

#[test]
fn l7_a_long_session_over_openseek_costs_what_it_says() {
    check::<Openseek>();
}
