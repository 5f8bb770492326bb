//! What an observer notices: each line of the agent in a legal stream is dropped, said twice, swapped with the next, or
//! given another id, number or word, one at a time, and what the observer then says that it didn't say before is
//! counted.
//!
//! `fixtures/noticed/PROTOCOL.txt` keeps how many of a hundred are noticed, for each change and each line:
//! `TURNWIRE_BLESS=1` writes it anew. Markedly fewer fail. What isn't noticed whole has its reason here: the contract
//! allows it, as far as the lines tell.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail"
)]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value;
use turnwire::frame::{Place, Split, SplitKind};
use turnwire::protocol::agentx::{Agentx, ObserverConfig as AgentxConfig, Policy};
use turnwire::protocol::observer::{Dir, Observed, Observer, Severity, Sides, Watch};
use turnwire::protocol::omp::Omp;
use turnwire::protocol::openmax::{ObserverConfig, Openmax, Wire};
use turnwire_proptests::reference::Judged;
use turnwire_proptests::scenario::Scenario;
use turnwire_proptests::world::{Speaks, Tamper, play_ends, session_world};

use crate::agentx_recordings;
use crate::noticed_agentx::REASONS;
use crate::observer_kit::laws::{Recorded, crossed, recorded};
use crate::observer_kit::{fixtures, recordings};
use crate::omp_kit;

/// Most places in a stream at which one kind of change is made.
const PLACES: usize = 1;
/// So many of a hundred fewer than were noticed pass.
const SLACK: u32 = 10;
/// Worlds that are played.
const WORLDS: u64 = 45;

/// How they begin.
const STORIES: &[&str] = &[
    "> prompt if-idle\n+ answer 0\n",
    "set mode auto\n> prompt if-idle\n+ answer 0 write\n+ tool 0 ok\n+ answer 0\n",
    "> prompt if-idle\n+ answer 0 write\n",
    "> prompt if-idle\n+ fault\n+ answer 0\n> prompt if-idle\n+ answer 0\n",
    "",
];

/// Lines of both sides, in order.
type Lines = Vec<(Dir, Vec<u8>)>;

/// What is changed in which line: `drop agent_start`.
type Change = (String, String);

/// The settings of an observer of this protocol.
type Config<P> = <<P as Observed>::Watch as Watch>::Config;

/// One legal stream.
struct Stream<P: Observed> {
    name: String,
    lines: Lines,
    exit: Option<i64>,
    config: Config<P>,
}

impl<P: Observed> Stream<P>
where
    Config<P>: Copy + Default,
{
    /// What is found, as rule and severity, each as often as it is.
    fn judged(&self, lines: &[(Dir, Vec<u8>)]) -> BTreeMap<(&'static str, Severity), u32> {
        let mut observer = Observer::<P>::new(self.config, Sides::Both);
        for (index, (dir, text)) in lines.iter().enumerate() {
            let place = Place {
                line: index as u64 + 1,
                offset: 0,
            };
            let what = SplitKind::Line(text);
            observer.handle_line(*dir, Split { place, what });
        }
        observer.handle_end(Dir::Host);
        observer.handle_end(Dir::Agent);
        if let Some(code) = self.exit {
            observer.handle_exit(code);
        }
        observer.finish();
        let mut found = BTreeMap::new();
        while let Some(finding) = observer.poll_finding() {
            *found
                .entry((finding.rule.id, finding.severity))
                .or_default() += 1;
        }
        found
    }

    fn recorded((name, lines, exit): Recorded, config: Config<P>) -> Self {
        let lines = lines
            .into_iter()
            .map(|(dir, text)| (dir, text.into_bytes()))
            .collect();
        Stream {
            name,
            lines,
            exit,
            config,
        }
    }
}

/// Writes down what goes over the wire.
#[derive(Clone, Default)]
struct Scribe(Rc<RefCell<(Lines, [Vec<u8>; 2])>>);

impl Scribe {
    fn hear(&self, dir: Dir, bytes: &[u8]) {
        let (lines, rest) = &mut *self.0.borrow_mut();
        let rest = &mut rest[usize::from(dir == Dir::Agent)];
        rest.extend_from_slice(bytes);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let mut line: Vec<u8> = rest.drain(..=end).collect();
            line.pop();
            lines.push((dir, line));
        }
    }
}

/// The order is that at the agent's place.
impl Tamper for Scribe {
    fn written(&mut self, dir: Dir, bytes: Vec<u8>) -> Vec<u8> {
        if dir == Dir::Agent {
            self.hear(dir, &bytes);
        }
        bytes
    }

    fn read(&mut self, dir: Dir, bytes: Vec<u8>) -> Vec<u8> {
        if dir == Dir::Host {
            self.hear(dir, &bytes);
        }
        bytes
    }
}

/// Streams of worlds that were played, whatever happened in them. By their seeds protocols choose among presets.
fn worlds<P: Speaks>(seeds: &[u8]) -> Vec<Stream<P>>
where
    Config<P>: Copy + Default,
{
    let mut streams = Vec::new();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for number in 0..WORLDS {
        let data: Vec<u8> = (0..60)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect();
        let mut scenario = Scenario::decode(&data);
        scenario.setup.world = 0;
        if let Some(seed) = seeds.iter().cycle().nth(number as usize) {
            scenario.setup.seed = *seed;
        }
        // Something happens first.
        let story = STORIES[number as usize % STORIES.len()];
        let first = Scenario::parse(&format!("turnwire scenario 1\n{story}")).unwrap();
        scenario.setup.mode = first.setup.mode;
        scenario.steps.splice(0..0, first.steps);
        let mut config = scenario.setup.session();
        P::session(&mut config, &scenario.setup);
        let judged = Judged::Session(config.policy.gates);
        let world = session_world(config, P::info());
        let scribe = Scribe::default();
        play_ends::<P, _>(&scenario, world, judged, Box::new(scribe.clone())).assert_clean();
        let lines = scribe.0.take().0;
        streams.push(Stream {
            name: format!("world {number}"),
            lines,
            exit: None,
            config: P::observer(&scenario.setup),
        });
    }
    streams
}

/// What a line is called here.
fn name(line: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = word(&line["type"]);
    let more = match &*kind {
        "message_update" => word(&line["assistantMessageEvent"]["type"]),
        "message_start" | "message_end" => word(&line["message"]["role"]),
        "extension_ui_request" => word(&line["method"]),
        "system" | "result" => word(&line["subtype"]),
        "stream_event" => word(&line["event"]["type"]),
        "control_request" => word(&line["request"]["subtype"]),
        "control_response" => word(&line["response"]["subtype"]),
        "assistant" | "user" => word(&line["message"]["content"][0]["type"]),
        _ => String::new(),
    };
    [kind, more]
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Members whose value is changed where it is a string: ids, and words of a closed set.
const NAMED: &[&str] = &[
    "id",
    "messageId",
    "toolCallId",
    "targetId",
    "status",
    "command",
    "session_id",
    "call_id",
    "approval_id",
    "stop_reason",
    "outcome",
    "uuid",
    "request_id",
    "tool_use_id",
    "prompt_uuid",
    "parent_tool_use_id",
    "subtype",
    "state",
];

/// The line with one member changed, for each that can be.
fn other_values(line: &Value) -> Vec<(String, Value)> {
    let mut made = Vec::new();
    let mut put = |path: &[&str], what: &str, old: &Value| {
        let new = match old {
            Value::Bool(flag) => Value::Bool(!flag),
            Value::Number(number) => match number.as_u64() {
                Some(number) => Value::from(number + 1),
                None => return,
            },
            Value::Array(list) if !list.is_empty() => Value::Array(list[..list.len() - 1].to_vec()),
            Value::String(text) if NAMED.contains(&what) => Value::from(format!("{text}x")),
            Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => return,
        };
        let mut changed = line.clone();
        let mut at = &mut changed;
        for step in path {
            at = &mut at[*step];
        }
        *at = new;
        let shorter = if old.is_array() { "shorten" } else { "change" };
        made.push((format!("{shorter} {what}"), changed));
    };
    for (member, value) in line.as_object().into_iter().flatten() {
        put(&[member], member, value);
    }
    let index = &line["assistantMessageEvent"]["contentIndex"];
    put(
        &["assistantMessageEvent", "contentIndex"],
        "contentIndex",
        index,
    );
    put(&["event", "index"], "index", &line["event"]["index"]);
    for id in ["request_id", "tool_use_id"] {
        put(&["request", id], id, &line["request"][id]);
        put(&["response", id], id, &line["response"][id]);
    }
    let call = &line["message"]["toolCallId"];
    put(&["message", "toolCallId"], "toolCallId", call);
    // Calls and their results, whose ids stand in a block.
    for id in ["id", "tool_use_id"] {
        if let Some(text) = line["message"]["content"][0][id].as_str() {
            let mut changed = line.clone();
            changed["message"]["content"][0][id] = Value::from(format!("{text}x"));
            made.push((format!("change block.{id}"), changed));
        }
    }
    made
}

/// Every change of one line, where it is made: its name, and the stream.
fn changes(lines: &[(Dir, Vec<u8>)], at: usize) -> Vec<(Change, Lines)> {
    let Ok(line) = serde_json::from_slice::<Value>(&lines[at].1) else {
        return vec![];
    };
    let name = name(&line);
    let mut made = Vec::new();
    let mut put = |what: &str, change: &dyn Fn(&mut Lines)| {
        let mut changed = lines.to_vec();
        change(&mut changed);
        made.push(((what.to_owned(), name.clone()), changed));
    };
    put("drop", &|lines| drop(lines.remove(at)));
    put("double", &|lines| lines.insert(at, lines[at].clone()));
    if let Some((Dir::Agent, next)) = lines.get(at + 1)
        && *next != lines[at].1
    {
        put("swap", &|lines| lines.swap(at, at + 1));
    }
    for (what, value) in other_values(&line) {
        let text = serde_json::to_vec(&value).unwrap();
        put(&what, &|lines| lines[at].1 = text.clone());
    }
    made
}

/// How many of each change there were, and how many were noticed.
fn measured<P: Observed>(streams: &[Stream<P>]) -> BTreeMap<Change, (u32, u32)>
where
    Config<P>: Copy + Default,
{
    let mut counts: BTreeMap<Change, (u32, u32)> = BTreeMap::new();
    for stream in streams {
        let before = stream.judged(&stream.lines);
        let mut made: BTreeMap<Change, usize> = BTreeMap::new();
        for (at, (dir, _)) in stream.lines.iter().enumerate() {
            if *dir == Dir::Host {
                continue;
            }
            for (change, lines) in changes(&stream.lines, at) {
                let places = made.entry(change.clone()).or_default();
                if *places == PLACES {
                    continue;
                }
                *places += 1;
                let after = stream.judged(&lines);
                let noticed = after
                    .iter()
                    .any(|(finding, count)| before.get(finding).is_none_or(|known| count > known));
                let (all, seen) = counts.entry(change).or_default();
                *all += 1;
                *seen += u32::from(noticed);
            }
        }
    }
    counts
}

/// Fails where fewer are noticed than once were, and where what isn't noticed whole has no reason.
fn kept<P: Observed>(streams: &[Stream<P>], reasons: &[(&str, &str)])
where
    Config<P>: Copy + Default,
{
    let counts = measured::<P>(streams);
    let path = fixtures("noticed").join(format!("{}.txt", P::SPEC.name));
    let share = |(all, seen): (u32, u32)| seen * 100 / all;
    let blessing = std::env::var_os("TURNWIRE_BLESS").is_some();
    if blessing {
        let line = |((what, name), count): (&Change, &(u32, u32))| {
            format!("{:3} of 100: {what} {name}\n", share(*count))
        };
        let text: String = counts.iter().map(line).collect();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let floors: BTreeMap<&str, u32> = text
        .lines()
        .filter_map(|line| line.split_once(" of 100: "))
        .map(|(share, change)| (change, share.trim().parse().unwrap()))
        .collect();
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for ((what, name), count) in &counts {
        let change = format!("{what} {name}");
        // The streams are made by agents that grow: a few places more or fewer are no loss.
        if let Some(floor) = floors.get(&*change)
            && share(*count) + SLACK < *floor
        {
            wrong.push(format!("{change}: {count:?} noticed, {floor} of 100 were"));
        }
        if share(*count) < 100 {
            let reason = reasons.iter().find(|(these, _)| fits(these, &change));
            match reason {
                Some((these, _)) => drop(used.insert(*these)),
                None => wrong.push(format!("{change}: {count:?} noticed, without a reason")),
            }
        }
    }
    for (these, why) in reasons {
        assert!(why.len() > 10);
        if blessing && !used.contains(these) {
            wrong.push(format!("{these} has a reason, and needs none"));
        }
    }
    let (all, seen) = counts
        .values()
        .fold((0, 0), |(a, b), (all, seen)| (a + all, b + seen));
    assert!(wrong.is_empty(), "{seen} of {all}\n{}", wrong.join("\n"));
}

/// Whether a pattern of words, of which `*` stands for any one and a last one for all that follow, fits.
fn fits(pattern: &str, change: &str) -> bool {
    let mut words = change.split(' ');
    let mut pattern = pattern.split(' ').peekable();
    while let Some(wanted) = pattern.next() {
        let word = words.next();
        if wanted == "*" && pattern.peek().is_none() {
            return true;
        }
        match word {
            Some(word) if wanted == "*" || wanted.split('|').any(|wanted| wanted == word) => {}
            _ => return false,
        }
    }
    words.next().is_none()
}

fn small((_, bytes): &(String, Vec<u8>)) -> bool {
    bytes.len() < 100_000
}

/// The recordings that the observer finds nothing in, and worlds.
fn streams<P: Speaks>(
    files: &[(String, Vec<u8>)],
    config: Config<P>,
    seeds: &[u8],
) -> Vec<Stream<P>>
where
    Config<P>: Copy + Default,
{
    let mut streams: Vec<Stream<P>> = files
        .iter()
        .filter(|file| small(file))
        .map(|file| Stream::recorded(recorded(file), config))
        .collect();
    streams.extend(worlds::<P>(seeds));
    streams.retain(|stream| {
        let found = stream.judged(&stream.lines);
        found
            .keys()
            .all(|(_, severity)| *severity == Severity::Info)
    });
    streams
}

/// Each of these changes of omp is allowed by the contract, or looks like something that is.
const OMP: &[(&str, &str)] = &[
    (
        "* advisor_cost_changed|available_commands_update|command_output|config_update|model_changed|notice|queue_update|session_info_update|thinking_level_changed|extension_error",
        "news comes whenever there is some, as often as it does, and of any length",
    ),
    (
        "* * advisor_cost_changed|available_commands_update|command_output|config_update|model_changed|notice|queue_update|session_info_update|thinking_level_changed|extension_error",
        "what is new only the agent knows",
    ),
    (
        "* extension_ui_request setWidget",
        "what is only shown is never answered",
    ),
    (
        "change id extension_ui_request setWidget|cancel",
        "the id of a request that is never answered is nobody's",
    ),
    (
        "drop|swap extension_ui_request cancel",
        "a dialog may stay open until the host answers, and is taken back at any time",
    ),
    (
        "* extension_ui_request select",
        "an open dialog needn't be answered, and is asked at any time",
    ),
    (
        "* * extension_ui_request select",
        "an open dialog needn't be answered, and has any options",
    ),
    (
        "drop host_tool_call",
        "a call that the host hasn't answered may not have been",
    ),
    (
        "change id|toolCallId host_tool_call",
        "a call that the host hasn't answered may have any id, and comes before the tool is said to run",
    ),
    (
        "change agentInvoked prompt_result",
        "whether a prompt or what stood in a queue began the run only the agent knows",
    ),
    (
        "change sessionSettled prompt_result",
        "a job may hold the session up, and end without a run",
    ),
    (
        "change isTerminal|yielded|awaitingAsyncWork agent_end",
        "a run that goes on may have ended by itself; where nothing contradicts it, nobody knows",
    ),
    (
        "change errorId|maxAttempts auto_retry_start",
        "how often is tried only the agent knows",
    ),
    (
        "change success auto_retry_end",
        "the last attempt may have failed or not",
    ),
    (
        "shorten retryErrors auto_retry_end",
        "which errors are told is left open",
    ),
    (
        "drop|double|swap message_update toolcall_delta",
        "pieces of arguments may be anything, empty too: a model's JSON needn't be whole",
    ),
    (
        "drop|double|swap message_update text_delta",
        "a piece may be empty",
    ),
    (
        "swap message_update text_end|thinking_end|toolcall_end",
        "blocks may overlap: one ends when the next has begun",
    ),
    (
        "drop|swap message_update text_end|text_start",
        "a reply that is cut off leaves its block open; where a filter hides lines, blocks aren't judged",
    ),
    (
        "change contentIndex message_update text_start",
        "where a filter hides lines, blocks aren't judged",
    ),
    (
        "drop|double tool_execution_update",
        "a tool may tell of its work as often as it likes",
    ),
    (
        "swap tool_execution_start|tool_execution_update",
        "calls run side by side",
    ),
    (
        "drop|swap message_start|message_end *",
        "responses and news may come between; at the end of input a message may stay open",
    ),
    (
        "drop|swap turn_start|turn_end|agent_start|agent_end",
        "responses and news may come between; at the end of input a step or run may stay open, and a filter hides them",
    ),
    (
        "swap auto_retry_start|auto_retry_end",
        "responses may come between",
    ),
    (
        "drop|swap prompt_result",
        "prompts that end at once do so in any order, and not at all when the input has ended",
    ),
    (
        "drop session_settled",
        "a stream may end before it, and steering tells nobody that it would come",
    ),
    ("swap session_settled", "responses may come between"),
    (
        "swap response",
        "no order binds events to responses, but for what an abort ends",
    ),
];

#[test]
fn changes_of_omp_are_noticed() {
    let streams = streams::<Omp>(&omp_kit::files(), Default::default(), &[]);
    assert!(streams.len() > 70, "{}", streams.len());
    kept::<Omp>(&streams, OMP);
}

/// Each of these changes of openmax is allowed by the contract, or looks like something that is.
const OPENMAX: &[(&str, &str)] = &[
    (
        "change|shorten * diff|usage|schemas_over_budget|refrozen|transcript|budget|approval_request",
        "what was counted, or happened before, only the agent knows",
    ),
    (
        "change ok tool_end",
        "whether a call went well only the agent knows",
    ),
    (
        "change stop_reason done",
        "the provider's own word may be any",
    ),
    (
        "change session_id hello",
        "where no other line has one, nothing contradicts it",
    ),
    (
        "drop|double|swap budget|usage|thinking|diff|harness_note|hook_failed|schemas_over_budget",
        "no other line says that this one comes, how often, or when",
    ),
    (
        "double|swap refrozen",
        "the agent may take changes up by itself",
    ),
    (
        "drop refrozen",
        "an agent that hasn't ended may still answer",
    ),
    (
        "double|drop|swap error",
        "errors may be told one behind the other, and many turns go on",
    ),
    (
        "drop|double|swap token",
        "message_done counts where the tokens differ, and an empty token says nothing",
    ),
    (
        "drop|swap message_done",
        "a reply without tokens needn't have one",
    ),
    (
        "drop|double|swap done",
        "an agent that hasn't ended may still end its turn; a cancelled one may have been another",
    ),
    (
        "drop hello",
        "an agent that says nothing at all is no finding",
    ),
    (
        "drop|swap turn_refused|protocol_error",
        "who is refused, and when, only the agent knows",
    ),
    (
        "swap tool_end|tool_start|approval_settled",
        "calls run side by side, and their questions with them",
    ),
];

#[test]
fn changes_of_openmax_are_noticed() {
    let streams = streams::<Openmax>(&recordings(), ObserverConfig { wire: Wire::V5 }, &[]);
    assert!(streams.len() > 50, "{}", streams.len());
    kept::<Openmax>(&streams, OPENMAX);
}

/// Whether a line of the host answers what this line of the agent asks.
fn bound(host: &str, agent: &str) -> bool {
    let answer = host.contains("\"extension_ui_response\"") || host.contains("\"host_");
    answer && (agent.contains("\"extension_ui_request\"") || agent.contains("\"host_"))
}

/// A world's stream, cut off anywhere, or with lines that crossed, gives no false alarm.
#[test]
fn worlds_of_omp_that_are_cut_or_cross_give_no_false_alarm() {
    for (number, stream) in worlds::<Omp>(&[]).iter().enumerate() {
        let errors = |lines: &[(Dir, Vec<u8>)]| {
            let found = stream.judged(lines);
            let of_error = |(_, severity): &&(&str, Severity)| *severity == Severity::Error;
            found
                .keys()
                .filter(of_error)
                .map(|(rule, _)| *rule)
                .collect::<Vec<_>>()
        };
        for cut in 0..stream.lines.len() {
            assert_eq!(
                errors(&stream.lines[..cut]),
                [""; 0],
                "{} {cut}",
                stream.name
            );
        }
        let text: Option<Vec<(Dir, String)>> = stream
            .lines
            .iter()
            .map(|(dir, line)| Some((*dir, String::from_utf8(line.clone()).ok()?)))
            .collect();
        let Some(text) = text else { continue };
        for lead in [[1; 8], [3; 8], [0, 6, 0, 2, 1, 5, 0, 9]] {
            let lead: Vec<usize> = lead.iter().map(|lead| lead + number % 2).collect();
            let lines = crossed(&text, &lead, bound);
            let shown = || -> String {
                lines
                    .iter()
                    .map(|(dir, line)| {
                        format!(
                            "{} {}\n",
                            dir.word(),
                            String::from_utf8_lossy(&line[..line.len().min(150)])
                        )
                    })
                    .collect()
            };
            assert_eq!(
                errors(&lines),
                [""; 0],
                "{} {lead:?}\n{}",
                stream.name,
                shown()
            );
        }
    }
}

#[test]
fn changes_of_agentx_are_noticed() {
    let claude = AgentxConfig {
        policy: Policy::CLAUDE,
    };
    let streams = streams::<Agentx>(&agentx_recordings::files(), claude, &[0, 1, 2]);
    assert!(streams.len() > 60, "{}", streams.len());
    kept::<Agentx>(&streams, REASONS);
}

#[test]
fn patterns_stand_for_the_words_they_fit() {
    assert!(fits("drop a", "drop a") && fits("drop *", "drop a b") && fits("* a|b c", "drop b c"));
    assert!(!fits("drop a", "drop a b") && !fits("drop a b", "drop a") && !fits("* a", "drop b"));
}
