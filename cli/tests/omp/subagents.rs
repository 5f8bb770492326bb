//! Tasks that the model hands to agents of their own, and goals, as a host of omp hears of them.

use serde_json::{Value, json};
use turnwire::protocol::omp::Omp;

use crate::support::omp::text_of;
use crate::support::program::{Home, Program, Setup, of};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::openai;

fn task(what: &str) -> Reply {
    let input = json!({ "description": "look around", "prompt": what });
    openai::calls(&[("call_1", "task", input)])
}

fn ok(program: &mut Program<Omp>, kind: &str, members: Value) -> Value {
    let response = program.ask(kind, members);
    assert_eq!(response["success"], true, "{response}");
    response["data"].clone()
}

#[test]
fn omp_14_a_task_has_frames_a_place_in_the_list_and_a_transcript() {
    let home = Home::new();
    let provider = Provider::start([
        task("Look at the folder."),
        openai::calls(&[("call_2", "list_dir", json!({"path": "."}))]),
        openai::says("There is nothing."),
        openai::says("The folder is empty."),
    ]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    ok(
        &mut program,
        "set_subagent_subscription",
        json!({"level": "events"}),
    );
    let lines = program.turn("look");
    let life: Vec<&Value> = of(&lines, "subagent_lifecycle")
        .into_iter()
        .map(|line| &line["payload"])
        .collect();
    assert_eq!(life.len(), 2, "{life:?}");
    assert_eq!(
        (
            &life[0]["status"],
            &life[0]["agent"],
            &life[0]["description"]
        ),
        (&json!("started"), &json!("task"), &json!("look around"))
    );
    assert_eq!(
        (&life[1]["status"], &life[1]["id"]),
        (&json!("completed"), &life[0]["id"])
    );
    assert_eq!(life[0]["parentToolCallId"], "call_1");
    let mut inside: Vec<&str> = of(&lines, "subagent_event")
        .into_iter()
        .map(|line| line["payload"]["event"]["type"].as_str().unwrap())
        .filter(|kind| !kind.starts_with("message"))
        .collect();
    inside.dedup();
    assert_eq!(
        inside,
        [
            "agent_start",
            "turn_start",
            "tool_execution_start",
            "tool_execution_end",
            "turn_end",
            "turn_start",
            "turn_end",
            "agent_end",
        ]
    );
    let end = of(&lines, "tool_execution_end");
    assert_eq!(text_of(&end[0]["result"]), "There is nothing.");
    let list = program.data("get_subagents");
    let [one] = &list["subagents"].as_array().unwrap()[..] else {
        panic!("{list}")
    };
    assert_eq!(
        (&one["id"], &one["status"]),
        (&json!("run-1"), &json!("completed"))
    );
    let first = ok(
        &mut program,
        "get_subagent_messages",
        json!({"subagentId": "run-1"}),
    );
    let roles: Vec<&Value> = first["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "assistant"]);
    assert_eq!(first["sessionFile"], one["sessionFile"]);
    let rest = ok(
        &mut program,
        "get_subagent_messages",
        json!({"sessionFile": one["sessionFile"], "fromByte": first["nextByte"]}),
    );
    assert_eq!(
        (&rest["messages"], &rest["reset"], &rest["nextByte"]),
        (&json!([]), &json!(false), &first["nextByte"])
    );
    // Only files of subagents are read.
    let own = program.data("get_state")["sessionFile"].clone();
    let refused = program.ask("get_subagent_messages", json!({ "sessionFile": own }));
    assert_eq!(refused["error"], "Unknown subagent session file");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn omp_14_a_subagent_is_steered_and_cancelled() {
    let home = Home::new();
    let provider = Provider::start([
        task("Wait."),
        openai::calls(&[(
            "call_2",
            "bash",
            json!({"command": "touch begun; until [ -e go ]; do sleep 0.02; done"}),
        )]),
        openai::calls(&[(
            "call_3",
            "bash",
            json!({"command": "touch again; sleep 300"}),
        )]),
        openai::says("It was cancelled."),
    ]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    let progress = json!({"level": "progress"});
    ok(&mut program, "set_subagent_subscription", progress);
    program.command("p", "prompt", json!({"message": "wait"}));
    let there = |name: &str| {
        let path = home.project().join(name);
        crate::support::wait_for(name, || path.exists().then_some(()));
    };
    there("begun");
    let steer = json!({"subagentId": "run-1", "message": "Hurry up."});
    ok(&mut program, "steer_subagent", steer);
    std::fs::write(home.project().join("go"), "").unwrap();
    there("again");
    let asked = provider.requests();
    let said = asked[2].json()["messages"].to_string();
    assert!(said.contains("Hurry up."), "{said}");
    let cancel = json!({"subagentId": "run-1"});
    let done = ok(&mut program, "cancel_subagent", cancel.clone());
    assert_eq!(done["cancelled"], true);
    program.see(&json!({"type": "prompt_result", "id": "p"}));
    let seen = program.seen().to_vec();
    let life = of(&seen, "subagent_lifecycle");
    assert_eq!(life[1]["payload"]["status"], "aborted");
    let gone = ok(&mut program, "cancel_subagent", cancel);
    assert_eq!(gone["cancelled"], false);
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn omp_15_a_goal_has_five_operations_and_the_model_may_meet_it() {
    let home = Home::new();
    let met = openai::call(0, "call_1", "goal", &json!({"status": "met"}));
    let meets = Reply::stream()
        .bytes(met)
        .bytes(openai::finish("tool_calls"))
        .bytes(openai::usage(40, 7, 0))
        .bytes(openai::DONE);
    let provider = Provider::start([meets, openai::says("It is met.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    let goal = |program: &mut Program<Omp>, op: &str| ok(program, "goal", json!({ "op": op }));
    assert_eq!(
        goal(&mut program, "get"),
        json!({"goal": null, "state": null})
    );
    let create = json!({"op": "create", "objective": "be done", "token_budget": 5000});
    let made = ok(&mut program, "goal", create);
    assert_eq!(
        (
            &made["goal"]["objective"],
            &made["goal"]["status"],
            &made["goal"]["tokenBudget"]
        ),
        (&json!("be done"), &json!("active"), &json!(5000))
    );
    let paused = goal(&mut program, "pause");
    assert_eq!(paused["goal"]["status"], "paused");
    let resumed = goal(&mut program, "resume");
    assert_eq!(
        (&resumed["goal"]["status"], &resumed["goal"]["id"]),
        (&json!("active"), &made["goal"]["id"])
    );
    let lines = program.turn("go");
    let news = of(&lines, "goal_updated");
    assert_eq!(news.last().unwrap()["goal"]["status"], "complete");
    let now = goal(&mut program, "get");
    assert_eq!(now["goal"]["status"], "complete");
    assert_eq!(now["goal"]["tokensUsed"], 47);
    assert_eq!(
        goal(&mut program, "drop"),
        json!({"goal": null, "state": null})
    );
    let refused = program.ask("goal", json!({"op": "resume"}));
    assert_eq!(refused["success"], false);
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}
