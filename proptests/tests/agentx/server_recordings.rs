//! The recordings of Claude Code: our Server, given the same lines of the host and a model that says the same, makes
//! lines of the same types in the same order.

use crate::agentx_kit::duo::{Duo, server_config, session_config, tool, word};
use crate::agentx_kit::{From, recordings};
use serde_json::Value;
use turnwire::protocol::agentx::{AgentxOutcome, Policy};
use turnwire::vocab::{Rule, RuleBehaviour, SideEffect};

/// The recording, what is set (`p`artial messages, `s`tates, `r`eplay), and what the model and the tools do; `>` is the
/// next line of the host, `»` all that are left.
const PLAYED: &[(&str, &str, &str)] = &[
    ("text_turn_partial", "p", "> > begin text fin(end_turn)"),
    ("text_no_initialize", "", "> reply"),
    ("session_id_default", "", "> > reply > reply"),
    ("user_content_blocks", "r", "> > reply"),
    ("crlf_and_blank", "", "» reply"),
    (
        "interrupt_midstream",
        "p",
        "> > begin text > settle > reply",
    ),
    ("interrupt_idle", "", "> > > reply"),
    ("two_queued_midturn", "p", "> > begin text > settle reply >"),
    ("replay_user", "r", "> > reply >"),
    (
        "cancel_queued_and_interrupt",
        "",
        "> > begin text > > > > settle reply",
    ),
    (
        "tool_requires_action_state",
        "s",
        "> > calls(c1:write) > ran(c1) reply",
    ),
    ("tool_allow", "", "> > calls(c1:write) > ran(c1) reply"),
    (
        "tool_allow_updated_input",
        "",
        "> > calls(c1:write) > ran(c1) reply",
    ),
    (
        "tool_allow_no_updated_input",
        "",
        "> > calls(c1:write) > ran(c1) reply",
    ),
    (
        "tool_allow_empty_input",
        "",
        "> > calls(c1:write) > ran(c1) reply",
    ),
    ("tool_allow_null_fields", "", "> > calls(c1:write) > reply"),
    ("tool_bad_behavior", "", "> > calls(c1:write) > reply"),
    ("tool_deny_no_message", "", "> > calls(c1:write) > reply"),
    ("tool_deny", "", "> > calls(c1:write) > reply"),
    ("tool_deny_interrupt", "", "> > calls(c1:write) >"),
    ("tool_host_error", "", "> > calls(c1:write) > reply"),
    ("tool_eof_pending", "", "> > calls(c1:write) «eof» reply"),
    (
        "tool_two_parallel_interrupt",
        "",
        "> > calls(c1:write,c2:write) > settle",
    ),
    (
        "tool_parallel_two_requests_interrupt",
        "",
        "> > calls(c1:peek,c2:peek) > settle",
    ),
    (
        "tool_parallel_allow_deny",
        "",
        "> > calls(c1:peek,c2:peek) > > ran(c1) reply",
    ),
    (
        "tool_interrupt_pending_then_late",
        "",
        "> > calls(c1:write) > settle > > reply",
    ),
    (
        "cancel_from_host",
        "",
        "> > calls(c1:write) > > ran(c1) reply",
    ),
    (
        "second_initialize_pending_permission",
        "",
        "> > calls(c1:write) > > ran(c1) reply",
    ),
    (
        "hooks_permission_request_race",
        "",
        "> > calls(c1:Bash) > ran(c1) reply",
    ),
    ("max_turns", "1", "> > calls(c1:write) > ran(c1)"),
    ("api_500", "", "> > fail(500) wake fail(500) wake fail(500)"),
    ("unknown_subtype", "", "» reply"),
    ("unknown_type", "", "» reply"),
    ("control_response_missing_request_id", "", "» reply"),
    ("duplicate_member", "", "» reply"),
    ("tool_readonly_auto", "", "> > calls(c1:look) ran(c1) reply"),
    (
        "hooks_allow_pass",
        "",
        "> > calls(c1:Bash) > > ran(c1) > reply",
    ),
    ("hooks_pretool_deny", "", "> > > calls(c1:Bash) > reply >"),
    ("eof_unterminated_tail", "", "> > «eof» reply"),
    (
        "eof_midstream_slow",
        "p",
        "> > begin text «eof» text fin(end_turn)",
    ),
    ("eof_midturn", "p", "> > begin text «eof» fin(end_turn)"),
    ("eof_no_input", "", "» «eof»"),
    ("malformed_midturn", "p", "> > begin text >"),
    ("bad_user_role", "", "»"),
    ("user_missing_message", "", "»"),
];

fn duo(set: &str) -> Duo {
    let policy = Policy::CLAUDE;
    let mut server = server_config(policy);
    server.partial = set.contains('p');
    server.states = set.contains('s');
    server.replay = set.contains('r');
    let mut session = session_config(&policy);
    session.policy.retry.attempts = 3;
    session.tools.push(tool("peek", SideEffect::Read));
    session.rules.push(Rule {
        behaviour: RuleBehaviour::Ask,
        tool: "peek".into(),
        pattern: None,
    });
    // The recorded rules and matchers name Bash.
    session.tools.push(tool("Bash", SideEffect::Write));
    if set.contains('1') {
        session.budgets.steps = Some(1);
    }
    Duo::with(server, session)
}

/// Words in which the two programs are compared: without what ours never says, calls numbered in their order, and
/// questions behind the whole reply, since ours are only asked then.
fn compared(words: Vec<String>) -> Vec<String> {
    let mut calls: Vec<String> = Vec::new();
    let mut kept: Vec<String> = Vec::new();
    for word in words {
        let told = !matches!(
            word.as_str(),
            "background_tasks_changed" | "thinking_tokens" | "notification"
        ) && !word.starts_with("exit(");
        if !told {
            continue;
        }
        if word.starts_with("replay(") {
            // Where the host gave no id, both programs make one up.
            kept.push("replay".to_owned());
            continue;
        }
        let word = match word
            .strip_prefix("result(")
            .and_then(|rest| rest.strip_suffix(')'))
        {
            Some(rest) => {
                let (id, tail) = rest
                    .split_once(',')
                    .map_or((rest, ""), |(id, _)| (id, ",error"));
                let number = calls.iter().position(|call| call == id).unwrap_or_else(|| {
                    calls.push(id.to_owned());
                    calls.len() - 1
                });
                format!("result({number}{tail})")
            }
            None => word,
        };
        if !(word.ends_with('*') && kept.last() == Some(&word)) {
            kept.push(word);
        }
    }
    loop {
        let found = kept.windows(2).position(|pair| {
            (pair[0].starts_with("ask(") || pair[0] == "requires_action")
                && pair[1] == "assistant(tool_use)"
        });
        match found {
            Some(at) => kept.swap(at, at + 1),
            None => return kept,
        }
    }
}

#[test]
fn lines_are_of_the_types_that_claude_code_writes() {
    let recordings = recordings();
    let mut wrong = Vec::new();
    for (name, set, play) in PLAYED {
        let (_, rows) = recordings.iter().find(|(of, _)| of == name).unwrap();
        let hosts: Vec<&str> = rows
            .iter()
            .filter(|row| row.from == From::Host)
            .map(|row| row.line.as_str())
            .collect();
        let agent: Vec<Value> = rows
            .iter()
            .filter(|row| row.from == From::Agent)
            .filter_map(|row| serde_json::from_str(&row.line).ok())
            .collect();
        let requests: Vec<Value> = agent
            .iter()
            .filter(|line| line["type"] == "control_request")
            .cloned()
            .collect();
        let played = std::panic::catch_unwind(|| played(set, play, &hosts, &requests));
        let words = played.unwrap_or_else(|_| vec!["(it can't be played)".to_owned()]);
        let expected = compared(agent.iter().map(|line| word(line, &requests)).collect());
        if words != expected {
            wrong.push(format!(
                "{name}\n  is   {}\n  want {}",
                words.join(" "),
                expected.join(" ")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What our Server makes of a recording's host.
fn played(set: &str, play: &str, hosts: &[&str], requests: &[Value]) -> Vec<String> {
    let mut duo = duo(set);
    let mut hosts = hosts.iter();
    for token in play.split_whitespace() {
        let next: Vec<&&str> = match token {
            ">" => hosts.next().into_iter().collect(),
            "»" => hosts.by_ref().collect(),
            word => {
                duo.play(word);
                continue;
            }
        };
        for line in next {
            duo.host(&renamed(line, requests, &duo.requests));
            while !duo.asks.is_empty() {
                duo.settle_ask(AgentxOutcome::Default);
            }
        }
    }
    let words = duo.words();
    let words = words.split(' ').filter(|word| !word.is_empty());
    compared(words.map(str::to_owned).collect())
}

/// A line of the host, with the ids of our requests in the place of the recorded ones.
fn renamed(line: &str, recorded: &[Value], ours: &[Value]) -> String {
    let mut line = line.to_owned();
    for (recorded, ours) in recorded.iter().zip(ours) {
        let ids = (recorded["request_id"].as_str(), ours["request_id"].as_str());
        if let (Some(recorded), Some(ours)) = ids {
            line = line.replace(recorded, ours);
        }
    }
    line
}
