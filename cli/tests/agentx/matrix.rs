//! What can happen in a turn, as far as the other files don't play it.

use serde_json::{Value, json};
use turnwire::protocol::agentx::Agentx;

use crate::support::agentx::{order, results, text_of};
use crate::support::program::{Home, Program, Setup, of};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::openai;

/// Both wires; the second has a state of its own for most of this.
const WIRES: [&str; 2] = ["agentx", "claude"];

/// An interrupt is answered, the turn ends by it, and the next one is as if nothing had been.
#[track_caller]
fn interrupted(mut program: Program<Agentx>) {
    let answer = program.ask(&json!({ "subtype": "interrupt" }));
    assert_eq!(answer["subtype"], "success");
    let result = program.see_type("result");
    assert_eq!(result["subtype"], "error_during_execution");
    next(program);
}

#[track_caller]
fn next(mut program: Program<Agentx>) {
    let lines = program.turn("And now?");
    assert_eq!(of(&lines, "result")[0]["result"], "On we go.");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn thinking_comes_before_text() {
    let home = Home::new();
    let reply = Reply::stream()
        .bytes(openai::thinking("Let me "))
        .bytes(openai::thinking("see."))
        .bytes(openai::text("Yes."))
        .bytes(openai::finish("stop"))
        .bytes(openai::DONE);
    let provider = Provider::start([reply]);
    let mut program = Setup::agentx(&home, "claude", &provider, "auto").start_as::<Agentx>();
    let lines = program.turn("Well?");
    let said = of(&lines, "assistant");
    assert_eq!(
        said[0]["message"]["content"][0]["thinking"], "Let me see.",
        "{said:?}"
    );
    assert_eq!(said[1]["message"]["content"][0]["text"], "Yes.");
}

/// A turn with two files that are asked about, and the ids of the questions.
fn two_questions(home: &Home, provider: &Provider) -> (Program<Agentx>, [String; 2]) {
    home.settings("[[rule]]\naction = 'ask'\ntool = 'read_file'\n");
    home.write("a", "the first");
    home.write("b", "the second");
    let mut program = Setup::agentx(home, "agentx", provider, "ask").start_as::<Agentx>();
    program.prompt("Read both.");
    let (first, of_a) = program.asked("can_use_tool");
    let (second, of_b) = program.asked("can_use_tool");
    assert_eq!(
        (&of_a["tool_use_id"], &of_b["tool_use_id"]),
        (&json!("c1"), &json!("c2"))
    );
    (program, [first, second])
}

fn two_files() -> Reply {
    openai::calls(&[
        ("c1", "read_file", json!({ "path": "a" })),
        ("c2", "read_file", json!({ "path": "b" })),
    ])
}

#[test]
fn ax_p30_two_questions_are_open_at_once_and_answered_in_any_order() {
    let home = Home::new();
    let provider = Provider::start([two_files(), openai::says("Both.")]);
    let (mut program, ids) = two_questions(&home, &provider);
    for id in ids.iter().rev() {
        program.answer(id, &json!({ "behavior": "allow", "updatedInput": {} }));
    }
    assert_eq!(program.see_type("result")["result"], "Both.");
    let outcomes = results(program.seen());
    let read: Vec<String> = outcomes
        .iter()
        .map(|one| text_of(&one["content"]))
        .collect();
    assert!(
        read.iter().any(|text| text.contains("the first")),
        "{read:?}"
    );
    assert!(
        read.iter().any(|text| text.contains("the second")),
        "{read:?}"
    );
}

#[test]
fn ax_s12_wire_011_an_interrupt_withdraws_both_questions_first() {
    let home = Home::new();
    let provider = Provider::start([two_files(), openai::says("On we go.")]);
    let (mut program, ids) = two_questions(&home, &provider);
    let from = program.seen().len();
    program.request("i1", &json!({ "subtype": "interrupt" }));
    let result = program.see_type("result");
    assert_eq!(result["subtype"], "error_during_execution");
    let lines = program.seen()[from..].to_vec();
    let withdrawn = of(&lines, "control_cancel_request");
    let withdrawn: Vec<&Value> = withdrawn.iter().map(|line| &line["request_id"]).collect();
    assert_eq!(withdrawn, [&json!(ids[0]), &json!(ids[1])]);
    assert_eq!(
        order(&lines)[..3],
        [
            "control_cancel_request",
            "control_cancel_request",
            "control_response success"
        ]
    );
    assert_eq!(results(&lines).len(), 2);
    // What comes late changes nothing.
    program.answer(&ids[0], &json!({ "behavior": "allow", "updatedInput": {} }));
    next(program);
}

/// A host of claude with one hook at this event.
fn hooked(home: &Home, provider: &Provider, event: &str) -> Program<Agentx> {
    let mut program = Setup::agentx(home, "claude", provider, "ask").start_as::<Agentx>();
    let hooks = json!({ event: [{ "matcher": null, "hookCallbackIds": ["hook_0"] }] });
    program.ask(&json!({ "subtype": "initialize", "hooks": hooks }));
    program
}

#[test]
fn a_hook_of_the_host_blocks_a_prompt_and_the_model_hears_nothing_of_it() {
    let home = Home::new();
    let provider = Provider::start([openai::says("On we go.")]);
    let mut program = hooked(&home, &provider, "UserPromptSubmit");
    program.prompt("Something else.");
    let (id, asked) = program.asked("hook_callback");
    assert_eq!(asked["input"]["prompt"], "Something else.");
    program.answer(&id, &json!({ "decision": "block", "reason": "not today" }));
    let result = program.see_type("result");
    assert!(text_of(&result["result"]).contains("not today"), "{result}");
    assert!(provider.requests().is_empty());
    program.prompt("And now?");
    let (id, _) = program.asked("hook_callback");
    program.answer(&id, &json!({}));
    assert_eq!(program.see_type("result")["result"], "On we go.");
}

#[test]
fn ax_s06_ax_p27_a_hook_that_is_faster_than_the_host_decides() {
    let home = Home::new();
    let command = crate::support::agentx::bash("claude", "touch made");
    let provider = Provider::start([command, openai::says("Done.")]);
    let mut program = hooked(&home, &provider, "PermissionRequest");
    program.prompt("Make it.");
    let (question, _) = program.asked("can_use_tool");
    let (hook, _) = program.asked("hook_callback");
    let allow = json!({ "hookSpecificOutput": {
        "hookEventName": "PermissionRequest", "decision": { "behavior": "allow" },
    }});
    program.answer(&hook, &allow);
    let withdrawn = program.see_type("control_cancel_request");
    assert_eq!(withdrawn["request_id"], question.as_str());
    program.answer(
        &question,
        &json!({ "behavior": "deny", "message": "too late" }),
    );
    assert_eq!(program.see_type("result")["result"], "Done.");
    assert!(home.read("made").is_some());
}

#[test]
fn wire_010_an_interrupt_when_nothing_runs_is_heard_and_changes_nothing() {
    for protocol in WIRES {
        let home = Home::new();
        let provider = Provider::start([openai::says("On we go.")]);
        let setup = Setup::agentx(&home, protocol, &provider, "auto");
        let mut program = setup.start_as::<Agentx>();
        let answer = program.ask(&json!({ "subtype": "interrupt" }));
        assert_eq!(answer["subtype"], "success");
        next(program);
    }
}

#[test]
fn wire_010_an_interrupt_before_the_first_byte() {
    for protocol in WIRES {
        let home = Home::new();
        let nothing = Reply::stream().only(0).stall();
        let provider = Provider::start([nothing, openai::says("On we go.")]);
        let setup = Setup::agentx(&home, protocol, &provider, "auto");
        let mut program = setup.start_as::<Agentx>();
        program.prompt("Talk.");
        provider.request(1);
        interrupted(program);
    }
}

fn busy(seconds: &str) -> Reply {
    Reply::failure("503 Service Unavailable", "{}").header("retry-after", seconds)
}

#[test]
fn wire_010_an_interrupt_in_the_wait_before_a_retry_and_the_attempt_never_goes_out() {
    let home = Home::new();
    let provider = Provider::start([busy("30"), openai::says("On we go.")]);
    let mut program = Setup::agentx(&home, "claude", &provider, "auto").start_as::<Agentx>();
    program.prompt("Talk.");
    program.see(&json!({ "type": "system", "subtype": "api_retry" }));
    interrupted(program);
    // The one that failed, and the next turn's.
    assert_eq!(provider.requests().len(), 2);
}

#[test]
fn a_provider_that_is_busy_is_tried_again() {
    for protocol in WIRES {
        let home = Home::new();
        let provider = Provider::start([busy("0"), openai::says("At last.")]);
        let setup = Setup::agentx(&home, protocol, &provider, "auto");
        let mut program = setup.start_as::<Agentx>();
        let lines = program.turn("Talk.");
        assert_eq!(of(&lines, "result")[0]["result"], "At last.");
        let told = order(&lines).contains(&"system api_retry".to_owned());
        assert_eq!(told, protocol == "claude");
    }
}

#[test]
fn a_reply_that_breaks_off_is_an_error_that_keeps_its_text() {
    for protocol in WIRES {
        let home = Home::new();
        let half = Reply::stream().bytes(openai::text("I begin")).cut();
        let provider = Provider::start([half, openai::says("On we go.")]);
        let setup = Setup::agentx(&home, protocol, &provider, "auto");
        let mut program = setup.start_as::<Agentx>();
        let lines = program.turn("Talk.");
        assert_eq!(of(&lines, "result")[0]["subtype"], "error_during_execution");
        let said = text_of(&of(&lines, "assistant")[0]["message"]["content"]);
        assert_eq!(said, "I begin");
        next(program);
    }
}

/// A turn whose file is too long for the window: the second request is for a summary.
fn too_long(home: &Home, provider: &Provider) -> Program<Agentx> {
    home.write("long.txt", &"words ".repeat(5_000));
    let setup = Setup::agentx(home, "agentx", provider, "auto");
    let limits = ["--window", "5120", "--max-output", "1024"];
    let mut program = setup.args(&limits).start_as::<Agentx>();
    program.prompt("Read it.");
    program.see(&json!({ "type": "system", "subtype": "status", "status": "compacting" }));
    program
}

fn long_file() -> Reply {
    openai::calls(&[("c1", "read_file", json!({ "path": "long.txt" }))])
}

#[test]
fn wire_005_a_full_context_gives_way_to_a_summary_and_the_turn_goes_on() {
    let home = Home::new();
    let replies = [openai::says("Words were read."), openai::says("So it is.")];
    let provider = Provider::start([long_file()].into_iter().chain(replies));
    let mut program = too_long(&home, &provider);
    program.see(&json!({ "type": "system", "subtype": "compact_boundary" }));
    assert_eq!(program.see_type("result")["result"], "So it is.");
}

#[test]
fn wire_010_an_interrupt_while_the_history_is_summarised() {
    let home = Home::new();
    let provider = Provider::start([long_file(), Reply::stream().only(0).stall()]);
    let mut program = too_long(&home, &provider);
    provider.request(2);
    let answer = program.ask(&json!({ "subtype": "interrupt" }));
    assert_eq!(answer["subtype"], "success");
    let result = program.see_type("result");
    assert_eq!(result["subtype"], "error_during_execution");
}

#[test]
fn prompts_wait_for_each_other_and_one_that_is_urgent_doesnt() {
    for protocol in WIRES {
        let home = Home::new();
        let provider = Provider::start(["One.", "Two."].map(openai::says));
        let setup = Setup::agentx(&home, protocol, &provider, "auto");
        let mut program = setup.start_as::<Agentx>();
        program.prompt("one");
        program.prompt("two");
        program.close_input();
        let ended = program.wait();
        let said: Vec<&Value> = ended
            .of("result")
            .iter()
            .map(|one| &one["result"])
            .collect();
        assert_eq!(said, ["One.", "Two."]);
        assert_eq!(ended.code, Some(0));

        let home = Home::new();
        let nothing = Reply::stream().only(0).stall();
        let provider = Provider::start([nothing, openai::says("At once.")]);
        let setup = Setup::agentx(&home, protocol, &provider, "auto");
        let mut program = setup.start_as::<Agentx>();
        program.prompt("Talk.");
        provider.request(1);
        program.send(&json!({
            "type": "user", "priority": "now", "message": { "role": "user", "content": "Stop." },
        }));
        program.see_type("result");
        assert_eq!(program.see_type("result")["result"], "At once.");
    }
}

#[test]
fn ax_s24_attachments_that_arent_offered_are_refused_before_a_provider_hears_of_them() {
    let home = Home::new();
    home.settings("[attachments]\nenabled = false\n");
    let provider = Provider::start([openai::says("On we go.")]);
    let mut program = Setup::agentx(&home, "agentx", &provider, "auto").start_as::<Agentx>();
    let greeting = program.ask(&json!({ "subtype": "initialize" }));
    assert!(greeting["response"].get("input_capabilities").is_none());
    program.send(&json!({
        "type": "attachment_import", "version": 1, "operation": "commit", "upload_id": "upl_1",
    }));
    let refused = program.see_type("attachment_import_rejected");
    assert_eq!(refused["reason"], "attachments_unavailable");
    assert!(provider.requests().is_empty());
    next(program);
}
