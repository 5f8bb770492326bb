//! All laws for all of our machines, on whatever bytes say: bodies of property tests and fuzz targets.

use turnwire::{
    frame::{LineRules, OverLong, SseLimits, Tail},
    model::{Api, ReplyLimits},
    protocol::{observer::Dir, openmax::Openmax},
    session::{SessionConfig, config::Snapshots},
    vocab::*,
};

use super::{
    AgentMachine, Broken, ClientInput, ClientMachine, Cut, LineMachine, Machine, ObserverMachine,
    ReplyInput, ReplyMachine, ServerInput, ServerMachine, SseMachine, law_l1, law_l2, law_l3,
    law_l4, law_l5, law_l6, law_l7, law_l8, law_l9, law_l10_line,
};
use crate::{
    bytes::Source,
    reference::Judged,
    scenario::{Scenario, Setup},
    world::{
        Chunk, Given, Recorded, START, Speaks, line_rules, our_agent, record_agent, run_over,
        session_world,
    },
};

/// Outputs that one input gives at most: a few for each thing that is open, and the limits of the world are small.
const MOST_OUTPUTS: usize = 2_000;

/// Plays the scenario of these bytes over a wire of this protocol, and holds every machine in it to the laws, each on
/// what it was told there: session, Server, Client, observer, the splitter of lines, and each line that was written.
///
/// # Errors
/// The first law that is broken.
pub fn check<P: Speaks>(data: &[u8]) -> Result<(), Broken> {
    let mut scenario = Scenario::decode(data);
    scenario.setup.world = 0;
    let setup = &scenario.setup;
    let recorded = run_over::<P>(&scenario).1;
    let mut config = setup.session();
    P::session(&mut config, setup);
    check_agent(&config, &P::info(), &recorded.agent)?;
    check_ends::<P>(setup, &recorded, 1 + data.len() % 13)
}

/// Plays the scenario of these bytes with a session alone, and holds it to the laws.
///
/// # Errors
/// The first law that is broken.
pub fn check_session(data: &[u8]) -> Result<(), Broken> {
    let mut scenario = Scenario::decode(data);
    scenario.setup.world = 1;
    let config = scenario.setup.session();
    let judged = Judged::Session(config.policy.gates);
    let world = session_world(config.clone(), Openmax::info());
    let (_, story) = record_agent(&scenario, world, judged);
    check_agent(&config, &Openmax::info(), &story)
}

fn check_agent(
    config: &SessionConfig,
    info: &SessionInfo,
    story: &[(Given, Now)],
) -> Result<(), Broken> {
    let make = || AgentMachine(our_agent(config.clone(), info.clone()));
    hold(make, story, 3)?;
    let snapshots = config.policy.snapshots != Snapshots::Never;
    law_l8(make, story, |given| {
        settled_again(given, snapshots).into_iter().collect()
    })
}

/// Every law that takes nothing but a machine and a story, and isn't about bytes: L2 (drained after `every` inputs) to
/// L7, and L9.
///
/// # Errors
/// The first law that is broken.
pub fn hold<M: Machine>(
    make: impl Fn() -> M,
    story: &[(M::Input, Now)],
    every: usize,
) -> Result<(), Broken> {
    law_l2(&make, story, every)?;
    law_l3(&make, story)?;
    law_l4(&make, story)?;
    law_l5(&make, story)?;
    law_l6(&make, story)?;
    law_l7(&make, story, |_| MOST_OUTPUTS)?;
    law_l9(&make, story, |_| None, 0)
}

/// L1 of a machine that is told bytes, which come in pieces of `size` as well, and all that [`hold`] says.
///
/// # Errors
/// The first law that is broken.
pub fn hold_cut<M: Machine<Input: Cut>>(
    make: impl Fn() -> M,
    story: &[(M::Input, Now)],
    size: usize,
    every: usize,
) -> Result<(), Broken> {
    law_l1(&make, story, size)?;
    hold(make, story, every)
}

fn check_ends<P: Speaks>(setup: &Setup, recorded: &Recorded<P>, size: usize) -> Result<(), Broken> {
    let (down, up) = (line_rules::<P>(Dir::Host), line_rules::<P>(Dir::Agent));
    let server = || ServerMachine::<P>::new(P::server(setup), down);
    let client = || ClientMachine::<P>::new(P::client(setup), up);
    let observer = || ObserverMachine::<P>::new(P::observer(setup), down, up);
    hold_cut(server, &recorded.server, size, 3)?;
    law_l8(server, &recorded.server, asked_again)?;
    hold_cut(client, &recorded.client, size, 3)?;
    law_l8(client, &recorded.client, wished_again)?;
    hold_cut(observer, &recorded.observer, size, 3)?;

    let bytes = |input: &(ServerInput<P>, Now)| match &input.0 {
        ServerInput::Bytes(bytes) => Some((bytes.clone(), input.1)),
        ServerInput::End
        | ServerInput::Signal(_)
        | ServerInput::Said(_)
        | ServerInput::Extra(_)
        | ServerInput::Settle(..)
        | ServerInput::Woken => None,
    };
    let mut lines: Vec<(Vec<u8>, Now)> = recorded.server.iter().filter_map(bytes).collect();
    lines.push((Vec::new(), START));
    check_lines(down, &lines, size)?;
    for (dir, line) in &recorded.lines {
        law_l10_line(line, |line| P::again(*dir, line))?;
    }
    Ok(())
}

fn check_lines(rules: LineRules, story: &[(Vec<u8>, Now)], size: usize) -> Result<(), Broken> {
    let make = || LineMachine::new(rules);
    hold_cut(make, story, size, 3)
}

/// What settles an effect, once more.
fn settled_again(given: &Given, snapshots: bool) -> Option<(Given, Misuse)> {
    let settles = match given {
        Given::Call(_) => false,
        Given::Model(_, chunk) => matches!(chunk, Chunk::End | Chunk::Failed { .. }),
        // A call of which a snapshot was made has two effects of one id.
        Given::Else(Input::Tool { update, .. }) => {
            let done = matches!(update, ToolUpdate::Done { .. } | ToolUpdate::Detached(_));
            done && !snapshots
        }
        Given::Else(input) => matches!(
            input,
            Input::Hook { .. } | Input::Store { .. } | Input::Reloaded { .. }
        ),
    };
    settles.then(|| (given.clone(), Misuse::AlreadySettled))
}

/// An id that no machine of a scenario ever issues.
const FAR: u64 = 1 << 40;

/// What settles an ask of a Server, once more, and one that was never asked.
pub(crate) fn asked_again<P: Speaks>(input: &ServerInput<P>) -> Vec<(ServerInput<P>, Misuse)> {
    let ServerInput::Settle(id, outcome) = input else {
        return Vec::new();
    };
    let settle = |id: u64| ServerInput::Settle(id, outcome.clone());
    vec![
        (settle(*id), Misuse::AlreadySettled),
        (settle(FAR), Misuse::NeverIssued),
    ]
}

/// What settles an ask of a Client, once more, and one that was never asked.
pub(crate) fn wished_again<P: Speaks>(input: &ClientInput<P>) -> Vec<(ClientInput<P>, Misuse)> {
    let ClientInput::Settle(id, outcome) = input else {
        return Vec::new();
    };
    let settle = |id: u64| ClientInput::Settle(id, outcome.clone());
    vec![
        (settle(*id), Misuse::AlreadySettled),
        (settle(FAR), Misuse::NeverIssued),
    ]
}

/// Pieces of what providers stream, whole and broken.
const FRAGMENTS: [&str; 20] = [
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi \"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\ud83e\\udd80\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"hm\"}}]}\r\n\r\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n",
    "data: [DONE]\n\n",
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"m\",\"usage\":{\"input_tokens\":1}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
    "data: {\"error\":{\"message\":\"overloaded\"}}\n\n",
    ": heartbeat\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"con",
    "\u{feff}",
    "\n",
    "\r",
];

/// Holds the line splitter, the decoder of server-sent events and both reply decoders to the laws, on a stream that
/// these bytes choose: fragments of real ones, and raw bytes between them.
///
/// # Errors
/// The first law that is broken.
pub fn check_decoders(data: &[u8]) -> Result<(), Broken> {
    let mut source = Source::new(data);
    let size = 1 + source.below(16);
    let limit = source.of([usize::MAX, 64, 200, 7, 0]);
    let (api, streamed) = (source.of([Api::OpenAi, Api::Anthropic]), !source.flag());
    let status = source.of([200, 500, 429]);
    let rules = LineRules {
        max_bytes: limit.min(1 << 20),
        over: source.of([OverLong::Skip, OverLong::Fatal]),
        tail: source.of([Tail::Deliver, Tail::Refuse]),
    };
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    while !source.is_empty() && pieces.len() < 60 {
        let raw = source.byte();
        match usize::from(raw).checked_sub(160) {
            Some(at) => pieces.push(FRAGMENTS[at % FRAGMENTS.len()].into()),
            None if raw >= 128 => pieces.push(vec![b'\n']),
            None => pieces.push(vec![raw, source.byte()]),
        }
    }
    fn at<T>(input: T) -> (T, Now) {
        (input, START)
    }
    let end = [Vec::new()];
    let bytes: Vec<_> = pieces.iter().cloned().chain(end).map(at).collect();
    check_lines(rules, &bytes, size)?;

    let limits = SseLimits {
        max_event_bytes: limit.min(1 << 20),
        ..SseLimits::default()
    };
    let sse = || SseMachine::new(limits);
    hold_cut(sse, &bytes, size, 3)?;

    let limits = ReplyLimits {
        reply_bytes: limit,
        event_bytes: limit,
        error_body_bytes: limit,
        ..ReplyLimits::default()
    };
    let reply = || ReplyMachine::new(api, limits, streamed);
    let last = if data.len().is_multiple_of(2) {
        ReplyInput::End
    } else {
        ReplyInput::Broken
    };
    let body = pieces.into_iter().map(ReplyInput::Bytes);
    let head = [ReplyInput::Head(status)];
    let story: Vec<_> = head.into_iter().chain(body).chain([last]).map(at).collect();
    hold_cut(reply, &story, size, 3)?;
    settles_once(reply(), &story)
}

/// L8 of a reply: whatever comes, one chunk settles it, and nothing follows.
pub(crate) fn settles_once(
    mut reply: ReplyMachine,
    story: &[(ReplyInput, Now)],
) -> Result<(), Broken> {
    let mut chunks = Vec::new();
    for (input, now) in story {
        // Never misuse: it has none.
        let _: Result<(), Misuse> = reply.handle(input, *now);
        chunks.extend(std::iter::from_fn(|| reply.poll()));
    }
    let is_last = |chunk: &Chunk| matches!(chunk, Chunk::End | Chunk::Failed { .. });
    let first = chunks.iter().position(is_last);
    if reply.is_settled() && first.is_some_and(|at| at + 1 == chunks.len()) {
        return Ok(());
    }
    Err(Broken {
        law: "L8",
        why: format!(
            "the settlement is at {first:?} of {}: {chunks:?}",
            chunks.len()
        ),
    })
}
