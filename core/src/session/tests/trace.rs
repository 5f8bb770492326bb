//! Plays the traces of the design's table: the very text of a row, `input → outputs; …`, is what is tested.
//!
//! Macros of the notation (RQ, Q, O, O2, N2, C, X, A), and M, K and V for compactions, are written out here, in the words of
//! [`World::drain`](super::world::World::drain).

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use super::{
    act::{act, policy},
    world::{Played, World},
};

const TRACES: &str = include_str!("traces.txt");

/// The macro A: a call is asked about.
const A: &str = "@0 Prompt P1 → **O**; r1 Call writeask#n1 → MS, D call c1; \
    r1 Finish, End → **C**, TB c1, AQ a1 c1";

/// The macro J: a call has become a job, and the model has finished.
const J: &str = "@0 Prompt P1 → **O**; r1 Call write#n1 → MS, D call c1; \
    r1 Finish, End → **C**, TB c1, DC c1 allow Rule, !RunTool c1; \
    @1 Tool c1 detached → Job j1 Started, TF c1 Detached:j1, SE 1, **N2**; \
    @2 r2 Finish, End → MS, **C**, SE 2";

/// A nested run is under way, for a call.
const R: &str = "@0 Prompt P1 → **O**; r1 Call task#n1 → MS, D call c1; \
    r1 Finish, End → **C**, TB c1, NS n1 c1, !StartRun n1 c1";

/// A nested run is under way in the background.
const B: &str = "@0 Prompt P1 → **O**; r1 Call task#n1 {\"background\":true} → MS, D call c1; \
    r1 Finish, End → **C**, TB c1, NS n1 c1, !StartRun n1 c1, Job j1 Started, TF c1 Detached:j1, SE 1, **N2**";

/// A compaction by hand is under way.
const M: &str = "@0 Prompt P1 → **O**; \
    r1 Finish, End → MS, **C**, SE 1, TE t1 Finished, PE P1 Finished, Settled; \
    @1 Compact → RP Done, KS Manual, !StartModel r2 compaction";

/// A compaction at a boundary is under way.
const K: &str = "@0 Prompt P1 → **O**; r1 Call read#n1 → MS, D call c1; \
    r1 Finish, End → **C**, TB c1, !RunTool c1; @1 NeedCompact → –; \
    Tool c1 ok → TF c1 ok, SE 1, KS Auto, !StartModel r2 compaction";

/// A compaction before an attempt is under way.
const V: &str = "@0 Prompt P1 → **O**; \
    r1 Failed ContextFull → RE r1 Failed, KS Overflow, !StartModel r2 compaction";

/// Plays the trace of an id.
pub fn play(id: &str) {
    let row = TRACES.lines().find(|line| line.starts_with(id));
    if let Err(fault) = play_row(row.unwrap_or_else(|| panic!("no trace {id}"))) {
        panic!("{fault}");
    }
}

/// Plays a row: `id | what it is about (policy) | input → outputs; …`. `Err` says where it parts from what was said.
pub fn play_row(row: &str) -> Result<(), String> {
    let cells: Vec<&str> = row.split(" | ").collect();
    let [id, about, trace] = cells.as_slice() else {
        panic!("not a row: {row}")
    };
    let macros = [
        ("**A**", A),
        ("**J**", J),
        ("**R**", R),
        ("**B**", B),
        ("**M**", M),
        ("**K**", K),
        ("**V**", V),
    ];
    let trace = macros
        .iter()
        .fold(trace.to_string(), |trace, (name, text)| {
            trace.replace(name, text)
        });
    let config = policy(about);
    match about.contains("tree=1") {
        true => play_in(World::of_tree(config), id, &trace),
        false => play_in(World::new(config), id, &trace),
    }
}

fn play_in<A: Played>(mut world: World<A>, id: &str, trace: &str) -> Result<(), String> {
    for part in trace.split("; ") {
        let (input, outputs) = part
            .split_once(" → ")
            .unwrap_or_else(|| panic!("{id}: no arrow in {part}"));
        let said = act(&mut world, input.trim());
        let wanted = expand(outputs);
        if !matches(&said, &wanted) {
            let (said, wanted) = (said.join(", "), wanted.join(", "));
            return Err(format!("{id}: {input}\n said   {said}\n wanted {wanted}"));
        }
        let due = world.session.poll_timeout();
        if due.is_some_and(|due| due.at_us <= world.now.mono_us) && input.ends_with("Woken") {
            return Err(format!("{id}: {input}: it spins"));
        }
    }
    Ok(())
}

/// Every trace of the file.
pub fn ids() -> Vec<&'static str> {
    TRACES
        .lines()
        .filter_map(|line| line.split(" | ").next())
        .filter(|id| id.starts_with("T-"))
        .collect()
}

/// Writes the macros out.
fn expand(outputs: &str) -> Vec<String> {
    let mut wanted = Vec::new();
    if outputs.trim() == "–" {
        return wanted;
    }
    for word in outputs.trim().split(", ") {
        let words: Vec<&str> = word.split(' ').collect();
        match words.as_slice() {
            ["**O**"] => wanted.extend(expand(
                "RP P1 Started, TS t1 Prompt, SS 1, PP P1 t1, RQ r1 1.1",
            )),
            ["**O2**"] => wanted.extend(expand("TS t2 Queue, SS 1, PP P2 t2, RQ r2 1.1")),
            ["**N1**"] => wanted.extend(expand(
                "n1:SS 1, n1:Message P0, n1:Context, n1:RequestStarted r1.1 1.1, n1:!StartModel r1.1",
            )),
            ["**N2**"] => wanted.extend(expand("SS 2, RQ r2 2.1")),
            ["**C**"] => {
                wanted.extend(["ME End|ToolUse kept".to_string(), "RE Complete".to_string()])
            }
            ["**X**"] => wanted.extend(expand("SE 1, TE t1 Cancelled:Host, PE P1 Cancelled:Host")),
            ["Q", prompt, lane] => {
                wanted.extend([format!("RP Queued {lane}"), format!("QD {prompt} {lane}")])
            }
            ["PP", prompt, turn] => {
                wanted.extend([
                    format!("PromptApplied {prompt} {turn}"),
                    format!("Message {prompt}"),
                ]);
            }
            ["RQ", request, at] => {
                if at.ends_with(".1") {
                    wanted.push("Context".into());
                }
                wanted.extend([
                    format!("RequestStarted {request} {at}"),
                    format!("!StartModel {request}"),
                ]);
            }
            // The prompt of a reply is that of the command.
            ["RP", prompt, rest @ ..] if prompt.starts_with('P') => {
                wanted.push(format!("RP {}", rest.join(" ")))
            }
            _ => wanted.push(word.to_string()),
        }
    }
    wanted
}

fn matches(said: &[String], wanted: &[String]) -> bool {
    said.len() == wanted.len()
        && said
            .iter()
            .zip(wanted)
            .all(|(said, wanted)| match wanted.as_str() {
                "ME End|ToolUse kept" => said == "ME End kept" || said == "ME ToolUse kept",
                "RE Complete" => said.starts_with("RE ") && said.ends_with(" Complete"),
                // A retry that succeeded is said after its request; the notation leaves it out.
                wanted => said == wanted,
            })
}

#[test]
fn every_trace_has_a_test() {
    let source = include_str!("traces.rs");
    let names: Vec<String> = vec_of_names(source);
    for id in ids() {
        let name = format!("t_{}", &id[2..]);
        assert!(
            names.iter().any(|test| test.starts_with(&name)),
            "{id} is not tested"
        );
    }
}

fn vec_of_names(source: &str) -> Vec<String> {
    let mut names = vec![];
    for line in source.lines() {
        if let Some(name) = line
            .trim()
            .strip_prefix("fn ")
            .and_then(|rest| rest.split('(').next())
        {
            names.push(name.to_string());
        }
    }
    names
}
