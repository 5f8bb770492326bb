//! Changes of the session, and what of a session is on the disk.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire::protocol::omp::Omp;

use crate::support::omp::{order, text_of};
use crate::support::program::{Home, Program, Setup, of};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::openai;

fn started(home: &Home, provider: &Provider) -> Program<Omp> {
    Setup::omp(home, provider, "auto").start_as::<Omp>()
}

/// What was said, by role and text.
#[track_caller]
fn said(program: &mut Program<Omp>) -> Vec<(String, String)> {
    let data = program.data("get_messages");
    let messages = data["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|message| {
            let role = message["role"].as_str().unwrap().to_owned();
            (role, text_of(message))
        })
        .collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(role, text): &(&str, &str)| ((*role).to_owned(), (*text).to_owned());
    list.iter().map(own).collect()
}

#[track_caller]
fn changed(program: &mut Program<Omp>, kind: &str, members: Value) -> Value {
    let response = program.ask(kind, members);
    assert_eq!(response["success"], true, "{response}");
    assert_eq!(response["data"]["cancelled"], false, "{response}");
    response["data"].clone()
}

#[track_caller]
fn file(program: &mut Program<Omp>) -> String {
    program.data("get_state")["sessionFile"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[track_caller]
fn entry(program: &mut Program<Omp>, at: usize) -> String {
    program.data("get_entries")["entries"][at]["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The steps of a recording of the real program: a turn, a branch, another folder, back again, a new one.
#[test]
fn omp_07_omp_19_a_session_is_branched_left_and_found_again() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Saved one."), openai::says("And on.")]);
    let mut program = started(&home, &provider);
    program.turn("First.");
    let first = file(&mut program);
    let listed = program.data("get_branch_messages")["messages"].clone();
    assert_eq!(listed[0]["text"], "First.");
    let branched = changed(
        &mut program,
        "branch",
        json!({ "entryId": listed[0]["entryId"] }),
    );
    assert_eq!(branched["text"], "First.");
    assert_eq!(said(&mut program), []);
    let other = home.path("thread");
    let opened = changed(&mut program, "open_session", json!({ "sessionDir": other }));
    assert_eq!(opened["resumed"], false);
    let state = program.data("get_state");
    assert_eq!(
        (&state["sessionId"], &state["sessionFile"]),
        (&opened["sessionId"], &opened["sessionFile"])
    );
    assert!(file(&mut program).starts_with(other.to_str().unwrap()));
    changed(
        &mut program,
        "switch_session",
        json!({ "sessionPath": first }),
    );
    let before = pairs(&[("user", "First."), ("assistant", "Saved one.")]);
    assert_eq!(said(&mut program), before);
    // It goes on as if it had never been left.
    program.turn("Second.");
    let body = provider.request(2).json();
    assert_eq!(body["messages"].as_array().unwrap().len(), 4, "{body}");
    changed(&mut program, "new_session", json!({}));
    assert_eq!(said(&mut program), []);
    // A change is told by the list of commands, before its answer.
    let kinds: Vec<&Value> = program.seen().iter().map(|line| &line["type"]).collect();
    let answer = program
        .seen()
        .iter()
        .position(|line| line["command"] == "new_session")
        .unwrap();
    assert_eq!(kinds[answer - 1], "available_commands_update");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn omp_07_a_change_while_text_streams_closes_nothing() {
    let home = Home::new();
    let provider = Provider::start([
        Reply::stream().bytes(openai::text("Half ")).stall(),
        openai::says("Here."),
    ]);
    let mut program = started(&home, &provider);
    program.streaming("p", "Talk.");
    let left = file(&mut program);
    program.command(
        "q",
        "prompt",
        json!({ "message": "later", "streamingBehavior": "followUp" }),
    );
    program.see(&json!({ "type": "response", "id": "q", "success": true }));
    let from = program.seen().len();
    program.command("n", "new_session", json!({}));
    // What is sent behind it runs in the new session.
    program.command("r", "prompt", json!({ "message": "Here?" }));
    program.see(&json!({ "type": "prompt_result", "id": "r", "status": "completed" }));
    let lines = &program.seen()[from..];
    for (id, status) in [("p", "aborted"), ("q", "aborted")] {
        let ended = of(lines, "prompt_result");
        let ended = ended.iter().find(|line| line["id"] == id).unwrap();
        assert_eq!(ended["status"], status, "{id}");
    }
    let seen = order(lines);
    let answer = seen.iter().position(|kind| kind == "response").unwrap();
    assert!(
        seen[..answer].iter().all(|kind| matches!(
            kind.as_str(),
            "prompt_result" | "session_settled" | "message_update"
        )),
        "{seen:?}"
    );
    assert_eq!(of(lines, "agent_end").len(), 1);
    assert_eq!(
        said(&mut program),
        pairs(&[("user", "Here?"), ("assistant", "Here.")])
    );
    // What was shown before is kept where it belongs.
    changed(
        &mut program,
        "switch_session",
        json!({ "sessionPath": left }),
    );
    assert_eq!(
        said(&mut program),
        pairs(&[("user", "Talk."), ("assistant", "Half ")])
    );
}

#[test]
fn omp_07_a_vetoed_change_cancels_nothing() {
    let home = Home::new();
    let line = "cat >>asked; exit 2";
    home.settings(&format!(
        "[[hook]]\nname = \"stay\"\nevent = \"session_switch\"\ncommand = '{line}'\n"
    ));
    let gate = crate::support::provider::Gate::new();
    let reply = Reply::stream()
        .bytes(openai::text("Half "))
        .gate(&gate)
        .bytes(openai::text("and whole."))
        .bytes(openai::finish("stop"))
        .bytes(openai::DONE);
    let provider = Provider::start([reply, openai::says("Behind.")]);
    let mut program = started(&home, &provider);
    program.streaming("p", "Talk.");
    program.command(
        "q",
        "prompt",
        json!({ "message": "later", "streamingBehavior": "followUp" }),
    );
    let response = program.ask("switch_session", json!({ "sessionPath": "/x.jsonl" }));
    assert_eq!(response["data"], json!({ "cancelled": true }));
    gate.open();
    for id in ["p", "q"] {
        program.see(&json!({ "type": "prompt_result", "id": id, "status": "completed" }));
    }
    let asked: Value = serde_json::from_str(&home.read("asked").unwrap()).unwrap();
    assert_eq!(
        asked["facts"],
        json!({ "reason": "switch", "target": "/x.jsonl" })
    );
    assert_eq!(said(&mut program).len(), 4);
}

#[test]
fn omp_08_what_isnt_there_or_cant_be_now() {
    let home = Home::new();
    let provider = Provider::start([Reply::stream().bytes(openai::text("Half ")).stall()]);
    let mut program = started(&home, &provider);
    for (kind, members, error) in [
        (
            "switch_session",
            json!({ "sessionPath": "/nowhere.jsonl" }),
            "File not found: /nowhere.jsonl",
        ),
        (
            "branch",
            json!({ "entryId": "deadbeef" }),
            "Invalid entry ID for branching",
        ),
        (
            "branch",
            json!({ "entryId": 7 }),
            "Invalid entry ID for branching",
        ),
        (
            "fork",
            json!({ "entryId": "deadbeef" }),
            "Invalid entry ID for forking",
        ),
        (
            "set_session_name",
            json!({ "name": " " }),
            "Session name cannot be empty",
        ),
    ] {
        let response = program.ask(kind, members);
        assert_eq!(response["error"], error, "{response}");
        assert_eq!(response.get("code"), None, "{response}");
    }
    program.streaming("p", "Talk.");
    let response = program.ask("fork", json!({}));
    assert_eq!(
        (&response["success"], &response["code"]),
        (&json!(false), &json!("session_busy"))
    );
    let response = program.ask("get_messages_page", json!({}));
    assert_eq!(
        (&response["success"], &response["code"]),
        (&json!(false), &json!("session_busy"))
    );
}

#[test]
fn omp_08_without_persistence_nothing_is_opened_and_a_new_one_is_fresh() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One."), openai::says("Two.")]);
    let mut program = Setup::omp(&home, &provider, "auto")
        .args(&["--no-store"])
        .start_as::<Omp>();
    program.turn("First.");
    let response = program.ask("open_session", json!({ "sessionDir": home.path("thread") }));
    assert_eq!(
        response["error"],
        "open_session requires session persistence (omit --no-session)"
    );
    let reply = entry(&mut program, 1);
    changed(&mut program, "fork", json!({ "entryId": reply }));
    assert_eq!(said(&mut program).len(), 2);
    assert_eq!(program.data("get_state").get("sessionFile"), None);
    changed(&mut program, "new_session", json!({}));
    assert_eq!(said(&mut program), []);
    program.turn("Second.");
    assert_eq!(said(&mut program).len(), 2);
    assert!(!home.path("home/.local/share/turnwire/sessions").exists());
}

#[test]
fn omp_19_a_fork_takes_the_whole_batch_with_it_and_names_where_it_comes_from() {
    let home = Home::new();
    let calls = [
        ("c1", "bash", json!({ "command": "echo one" })),
        ("c2", "bash", json!({ "command": "echo two" })),
    ];
    let provider = Provider::start([openai::calls(&calls), openai::says("Both.")]);
    let mut program = started(&home, &provider);
    program.turn("Run them.");
    let whole = file(&mut program);
    // Of the reply with the calls, of the first result, and of the second.
    for at in 1..4 {
        changed(
            &mut program,
            "switch_session",
            json!({ "sessionPath": whole }),
        );
        let entry = entry(&mut program, at);
        changed(&mut program, "fork", json!({ "entryId": entry }));
        let roles: Vec<String> = said(&mut program)
            .into_iter()
            .map(|(role, _)| role)
            .collect();
        assert_eq!(roles, ["user", "assistant", "toolResult", "toolResult"]);
        let text = std::fs::read_to_string(file(&mut program)).unwrap();
        let head: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(head["parent"], whole.as_str());
        assert_eq!(text.lines().count(), 5);
    }
    // Entries keep their ids.
    let ids = |program: &mut Program<Omp>| -> Vec<String> {
        (0..4).map(|at| entry(program, at)).collect()
    };
    let forked = ids(&mut program);
    changed(
        &mut program,
        "switch_session",
        json!({ "sessionPath": whole }),
    );
    assert_eq!(ids(&mut program), forked);
}

#[test]
fn tw_08_a_session_has_one_owner_and_a_dead_one_has_none() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Mine."), openai::says("Ours.")]);
    let mut owner = started(&home, &provider);
    owner.turn("Keep it.");
    let path = file(&mut owner);
    let mut other = started(&home, &provider);
    let response = other.ask("switch_session", json!({ "sessionPath": path }));
    let error = response["error"].as_str().unwrap();
    assert!(error.contains("is open in another process"), "{response}");
    // The very one that is open stays as it is.
    changed(&mut owner, "switch_session", json!({ "sessionPath": path }));
    owner.turn("And on.");
    assert_eq!(said(&mut owner).len(), 4);
    // One that was left is free.
    changed(&mut owner, "new_session", json!({}));
    changed(&mut other, "switch_session", json!({ "sessionPath": path }));
    let response = owner.ask("switch_session", json!({ "sessionPath": path }));
    assert_eq!(response["success"], false, "{response}");
    other.signal("KILL");
    while other.see_any().is_some() {}
    changed(&mut owner, "switch_session", json!({ "sessionPath": path }));
    assert_eq!(said(&mut owner).len(), 4);
}

#[test]
fn a_session_of_another_project_isnt_opened() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Mine.")]);
    let mut program = started(&home, &provider);
    program.turn("Keep it.");
    let path = file(&mut program);
    changed(&mut program, "new_session", json!({}));
    let text = std::fs::read_to_string(&path).unwrap();
    let project = home.project().canonicalize().unwrap();
    let moved = text.replace(project.to_str().unwrap(), "/elsewhere");
    let copy = home
        .path("copy")
        .join(std::path::Path::new(&path).file_name().unwrap());
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    std::fs::write(&copy, moved).unwrap();
    let response = program.ask("switch_session", json!({ "sessionPath": copy }));
    let error = response["error"].as_str().unwrap();
    assert!(error.contains("belongs to another project"), "{response}");
    // A copy of one of this project is one, whatever folder it is in.
    std::fs::write(&copy, text).unwrap();
    changed(
        &mut program,
        "switch_session",
        json!({ "sessionPath": copy }),
    );
    assert_eq!(said(&mut program).len(), 2);
}

#[test]
fn tw_08_a_name_is_there_when_the_session_goes_on() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Fine.")]);
    let mut program = started(&home, &provider);
    let response = program.ask("set_session_name", json!({ "name": "  The \"first\"  " }));
    assert_eq!(response["success"], true);
    program.turn("Hello.");
    program.crash();
    let mut program = Setup::omp(&home, &provider, "auto")
        .args(&["--continue"])
        .start_as::<Omp>();
    assert_eq!(program.data("get_state")["sessionName"], "The \"first\"");
    assert_eq!(said(&mut program).len(), 2);
    // A fork has no name yet.
    changed(&mut program, "fork", json!({}));
    assert_eq!(program.data("get_state").get("sessionName"), None);
}

/// Every change, and a kill right behind its answer: what was acknowledged is there.
#[test]
fn tw_08_a_kill_behind_any_answer_loses_nothing_that_was_acknowledged() {
    let home = Home::new();
    let provider = Provider::start([]);
    let mut program = started(&home, &provider);
    provider.then(openai::says("Reply 0."));
    program.turn("Prompt 0.");
    let mut known = vec![
        ("user".to_owned(), "Prompt 0.".to_owned()),
        ("assistant".to_owned(), "Reply 0.".to_owned()),
    ];
    for number in 1..=6 {
        let path = match number % 3 {
            0 => {
                let entry = entry(&mut program, known.len() - 1);
                changed(&mut program, "fork", json!({ "entryId": entry }));
                file(&mut program)
            }
            1 => {
                provider.then(openai::says(&format!("Reply {number}.")));
                program.turn(&format!("Prompt {number}."));
                known.push(("user".into(), format!("Prompt {number}.")));
                known.push(("assistant".into(), format!("Reply {number}.")));
                file(&mut program)
            }
            _ => {
                let response = program.ask(
                    "set_session_name",
                    json!({ "name": format!("Name {number}") }),
                );
                assert_eq!(response["success"], true);
                file(&mut program)
            }
        };
        let name = program.data("get_state").get("sessionName").cloned();
        program.crash();
        program = Setup::omp(&home, &provider, "auto")
            .args(&["--continue"])
            .start_as::<Omp>();
        assert_eq!(file(&mut program), path);
        assert_eq!(said(&mut program), known);
        assert_eq!(program.data("get_state").get("sessionName").cloned(), name);
    }
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

/// A kill at some moment of a fork, a turn or a name: the session that was left is whole, and so is each that is listed.
#[test]
fn tw_08_a_kill_at_any_moment_leaves_whole_sessions() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Reply.")]);
    let mut program = started(&home, &provider);
    program.turn("Prompt.");
    let path = file(&mut program);
    let known = said(&mut program);
    for number in 0..18_u32 {
        let kind = ["fork", "set_session_name", "new_session"][number as usize % 3];
        program.command("k", kind, json!({ "name": "N" }));
        std::thread::sleep(Duration::from_micros(u64::from(number) * 150));
        program.crash();
        program = started(&home, &provider);
        changed(
            &mut program,
            "switch_session",
            json!({ "sessionPath": path }),
        );
        assert_eq!(said(&mut program), known, "{number}");
        // A copy that was begun is whole, or it was never acknowledged and isn't listed.
        let folder = std::path::Path::new(&path).parent().unwrap();
        let index: Value =
            serde_json::from_str(&std::fs::read_to_string(folder.join("index.json")).unwrap())
                .unwrap();
        for listed in index["sessions"].as_array().unwrap() {
            let copy = folder.join(format!("{}.jsonl", listed["id"].as_str().unwrap()));
            changed(
                &mut program,
                "switch_session",
                json!({ "sessionPath": copy }),
            );
            assert_eq!(said(&mut program), known, "{number}: {}", copy.display());
        }
        changed(
            &mut program,
            "switch_session",
            json!({ "sessionPath": path }),
        );
    }
}

#[test]
fn a_session_is_exported_as_a_page() {
    let home = Home::new();
    let provider = Provider::start([openai::says("<b>Bold</b> & so on.")]);
    let mut program = started(&home, &provider);
    program.turn("Show me <script>alert(1)</script>.");
    let response = program.ask("export_html", json!({ "outputPath": "said.html" }));
    let path = home.project().join("said.html");
    assert_eq!(response["data"], json!({ "path": path }), "{response}");
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(
        page.contains("&lt;b&gt;Bold&lt;/b&gt; &amp; so on."),
        "{page}"
    );
    assert!(!page.contains("<script"), "{page}");
    let response = program.ask("export_html", json!({ "outputPath": "no/such/place.html" }));
    assert_eq!(response["success"], false, "{response}");
    // Nothing is behind the others: what the contract says then.
    for (kind, members, want) in [
        (
            "handoff",
            json!({}),
            json!({ "error": "Nothing to hand off (already compacted)" }),
        ),
        (
            "login",
            json!({ "providerId": "x" }),
            json!({ "error": "Unknown OAuth provider: x" }),
        ),
        (
            "get_login_providers",
            json!({}),
            json!({ "data": { "providers": [] } }),
        ),
        (
            "live_start",
            json!({}),
            json!({ "error": "Live voice is not available" }),
        ),
        ("live_stop", json!({}), json!({ "success": true })),
        (
            "live_mute",
            json!({}),
            json!({ "error": "No live session is active" }),
        ),
        (
            "predict_word",
            json!({ "text": "a", "cursor": 1 }),
            json!({ "data": { "suffix": null } }),
        ),
        (
            "btw",
            json!({ "question": "q" }),
            json!({ "error": "A side question is not available" }),
        ),
        (
            "get_btw_history",
            json!({}),
            json!({ "data": { "records": [] } }),
        ),
    ] {
        let response = program.ask(kind, members);
        for (member, value) in want.as_object().unwrap() {
            assert_eq!(&response[member], value, "{response}");
        }
    }
    assert_eq!(of(program.seen(), "live_end").len(), 1);
}
