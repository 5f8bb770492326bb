//! What was before: messages that a host recalls, a session that goes on in another process, and what a compaction keeps.

use crate::agentx_kit::duo::{Duo, info, server_config, session_config};
use crate::server::{answer, claude, one, strict};
use serde_json::{Value, json};
use std::sync::Arc;
use turnwire::protocol::agentx::{Agentx, Policy};
use turnwire::protocol::{Server, ServerOutput};
use turnwire::vocab::*;

fn assistant(content: &Value) -> Value {
    json!({"type":"assistant","uuid":"a1","session_id":"s","isReplay":true,"message":{"role":"assistant","content":content}})
}

fn results(uuid: &str, content: &Value) -> Value {
    json!({"type":"user","uuid":uuid,"session_id":"s","isReplay":true,"message":{"role":"user","content":content}})
}

fn result(call: &str, text: &str, error: bool) -> Value {
    json!({"type":"tool_result","tool_use_id":call,"content":text,"is_error":error})
}

/// The recalled messages in words.
fn recalled(duo: &Duo) -> Vec<Vec<String>> {
    let block = |block: &Block| match block {
        Block::Text(text) => text.to_string(),
        Block::Thinking { text, signature } => {
            format!("({text}|{})", signature.as_deref().unwrap_or_default())
        }
        Block::ToolUse {
            provider_id, name, ..
        } => format!("{name}#{}", provider_id.as_deref().unwrap_or_default()),
        other => format!("{other:?}"),
    };
    let message = |message: &Arc<Message>| {
        let content: Vec<String> = message.content.iter().map(|one| block(one)).collect();
        let role = match &message.role {
            Role::User => "user".to_owned(),
            Role::Assistant => "assistant".to_owned(),
            Role::Tool { name, error, .. } => format!("{name}{}", if *error { "!" } else { "" }),
            other => format!("{other:?}"),
        };
        format!("{role}: {}", content.join(" "))
    };
    let commands = duo.commands.iter();
    let recalls = commands.filter_map(|command| match command {
        Command::Recall(messages) => Some(messages.iter().map(message).collect()),
        _ => None,
    });
    recalls.collect()
}

#[test]
fn a_recalled_reply_keeps_its_calls_and_none_of_them_runs() {
    let mut duo = claude();
    duo.say(&json!({"type":"user","uuid":"u1","session_id":"s","isReplay":true,"message":{"role":"user","content":"go"}}));
    duo.say(&assistant(&json!([
        {"type":"thinking","thinking":"Hm.","signature":"c2ln"},
        {"type":"text","text":"Look."},
        {"type":"tool_use","id":"t1","name":"look","input":{"path":"a"}},
        {"type":"tool_use","id":"t2","name":"write","input":{"path":"b"}}
    ])));
    assert_eq!(
        recalled(&duo),
        [["user: go"]],
        "its results are still to come"
    );
    duo.say(&results("r1", &json!([result("t2", "denied", true)])));
    duo.say(&results(
        "r2",
        &json!([result("t1", "seen", false), {"type":"text","text":"and on"}]),
    ));
    assert_eq!(
        recalled(&duo)[1..],
        [
            vec![
                "assistant: (Hm.|c2ln) Look. look#t1 write#t2".to_owned(),
                "look: seen".to_owned(),
                "write!: denied".to_owned(),
            ],
            vec!["user: and on".to_owned()],
        ]
    );
    assert_eq!(duo.words(), "");
    // The session took it all, and goes on from there.
    duo.play("«u2» reply");
    assert!(duo.words().ends_with("end(success,u2) completed(u2)"));
    let history: Vec<&Role> = duo.session.history().iter().map(|one| &one.role).collect();
    assert!(matches!(
        history[..],
        [
            Role::User,
            Role::Assistant,
            Role::Tool { .. },
            Role::Tool { .. },
            Role::User,
            Role::User,
            Role::Assistant
        ]
    ));
    // A message that was said before is said once.
    duo.commands.clear();
    duo.say(&results("r2", &json!([{"type":"text","text":"and on"}])));
    assert_eq!(duo.commands, []);
}

#[test]
fn a_recalled_call_without_a_result_is_left_out() {
    for end in ["«u2» reply", "«eof»"] {
        let mut duo = claude();
        duo.say(&assistant(&json!([
            {"type":"text","text":"Look."},
            {"type":"tool_use","id":"t1","name":"look","input":{}},
            {"type":"tool_use","id":"t1","name":"twice","input":{}},
            {"type":"tool_use","id":"t2","name":"write","input":{}}
        ])));
        duo.say(&results(
            "r1",
            &json!([result("t1", "seen", false), result("t9", "?", false)]),
        ));
        assert_eq!(recalled(&duo), [] as [Vec<String>; 0]);
        duo.play(end);
        let expected: Vec<String> = vec!["assistant: Look. look#t1".into(), "look: seen".into()];
        assert_eq!(recalled(&duo), [expected], "{end}");
    }
    // In the strict wire no result can come, so a reply is its text.
    let mut duo = strict();
    let line = json!({"type":"assistant","uuid":"a","isReplay":true,"message":{"role":"assistant","content":[{"type":"text","text":"Look."},{"type":"tool_use","id":"t1","name":"look","input":{}}]}});
    duo.say(&line);
    duo.play("«u1» reply");
    assert_eq!(recalled(&duo), [["assistant: Look."]]);
}

#[test]
fn a_prompt_is_known_to_the_process_that_goes_on() {
    let mut duo = claude();
    duo.play("«u1» reply");
    let mut resumed = info();
    resumed.continued = true;
    resumed.history = duo.session.history().to_vec();
    let first = resumed.history[0].clone();
    // As a store gives it back: the numbers of prompts are another process's.
    resumed.history[0] = Arc::new(Message {
        prompt: None,
        ..Message::clone(&first)
    });
    let mut server = Server::<Agentx>::new(server_config(Policy::CLAUDE));
    server.handle_event(&Event {
        at: Now::default(),
        run: RunId::MAIN,
        seen: Seen::Real,
        what: What::Opened(Box::new(resumed)),
    });
    let mut said = |line: &Value| {
        let line = line.to_string();
        let mut splitter = turnwire::frame::LineSplitter::new(
            <Agentx as turnwire::protocol::Protocol>::host_line_rules(),
        );
        let bytes = format!("{line}\n");
        let mut chunk = bytes.as_bytes();
        while let Some(split) = splitter.next(&mut chunk) {
            server.handle_line(split, Now::default());
        }
        let (mut lines, mut commands) = (Vec::new(), Vec::new());
        while let Some(output) = server.poll_output(&mut lines) {
            if let ServerOutput::Call(call) = output {
                commands.push(call.command);
            }
        }
        (String::from_utf8(lines).unwrap(), commands)
    };
    let (lines, commands) = said(
        &json!({"type":"control_request","request_id":"r","request":{"subtype":"rewind_files","user_message_id":"u1"}}),
    );
    assert_eq!(lines, "");
    assert_eq!(
        commands,
        [Command::Rewind {
            to: RewindTo::Message(first.id),
            dry_run: false
        }]
    );
    // And isn't run again.
    let again = json!({"type":"user","uuid":"u1","message":{"role":"user","content":"hi"}});
    assert_eq!(said(&again).1, []);
    let (lines, _) = said(
        &json!({"type":"control_request","request_id":"r","request":{"subtype":"rewind_files","user_message_id":"u9"}}),
    );
    assert!(lines.contains("\"error\""));
}

#[test]
fn wire_005_a_compaction_names_the_records_that_it_kept_and_what_they_stand_behind() {
    for policy in [Policy::AGENTX, Policy::CLAUDE] {
        let mut duo = Duo::with(server_config(policy), session_config(&policy));
        duo.play("«u1» begin");
        duo.chunk(ModelChunk::Text(&"long ".repeat(1_500)));
        duo.play("fin(end_turn) «u2» calls(c1:look) ran(c1) reply");
        duo.lines.clear();
        let kept: Vec<(MessageId, Role)> = duo
            .session
            .history()
            .iter()
            .map(|one| (one.id, one.role.clone()))
            .collect();
        duo.give(Input::Call(Call {
            id: CommandId(9_000),
            command: Command::Compact { instructions: None },
        }));
        duo.play("begin text fin(end_turn)");
        let line = duo
            .lines
            .iter()
            .find(|line| line["subtype"] == "compact_boundary")
            .unwrap();
        let segment = &line["compact_metadata"]["preserved_segment"];
        assert_eq!(segment["head_uuid"], "u2", "{line}");
        assert_eq!(segment["anchor_uuid"], line["uuid"]);
        let tail = segment["tail_uuid"].as_str().unwrap();
        let last = duo
            .raw
            .iter()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .rfind(|line| line["type"] == "assistant")
            .unwrap();
        assert_eq!(last["uuid"], tail);
        // The session keeps just that, behind the summary.
        let now = duo.session.history();
        assert_eq!(now[0].role, Role::Summary);
        let rest: Vec<(MessageId, Role)> = now[1..]
            .iter()
            .map(|one| (one.id, one.role.clone()))
            .collect();
        assert_eq!(rest, kept[2..]);
    }
}

#[test]
fn rewind_without_files_says_so_in_words() {
    let mut duo = claude();
    duo.play("«u1» reply");
    let response = answer(
        &mut duo,
        json!({"subtype":"rewind_files","user_message_id":"u1"}),
    );
    assert_eq!(response["error"], "File rewinding is not enabled.");
    let response = answer(
        &mut duo,
        json!({"subtype":"rewind_files","user_message_id":"u2"}),
    );
    assert!(
        response["error"]
            .as_str()
            .unwrap()
            .starts_with("No such message")
    );
    duo.lines.clear();
    duo.ask("r3", json!({"subtype":"rewind_files"}));
    assert_eq!(one(&mut duo)["response"]["subtype"], "error");
}

fn with_hooks(hooks: &Value) -> Duo {
    let mut duo = claude();
    duo.ask("init", json!({"subtype":"initialize","hooks":hooks}));
    duo
}

#[test]
fn hooks_of_a_host_are_told_that_a_session_has_begun() {
    let hooks = json!({
        "SessionStart": [{"hookCallbackIds":["h1","h2"]}],
        "SessionEnd": [{"hookCallbackIds":["h3"]}],
        "SubagentStart": [{"hookCallbackIds":["h4"]}],
    });
    let mut duo = with_hooks(&hooks);
    assert_eq!(duo.words(), "answer(init) ask(hook_callback)");
    let told = duo.requests[0]["request"].clone();
    assert_eq!(told["callback_id"], "h1");
    assert_eq!(told["input"]["hook_event_name"], "SessionStart");
    assert_eq!(told["input"]["source"], "startup");
    // It has no say, whatever it answers, and nothing waits for it.
    duo.play("«u1» begin");
    duo.answer(
        1,
        json!({"decision":"block","reason":"no","continue":false}),
    );
    assert_eq!(duo.requests[1]["request"]["callback_id"], "h2");
    // A turn that is cancelled takes nothing back: it was told.
    duo.play("«interrupt:i1» settle");
    let words = duo.words();
    assert!(!words.contains("withdraw"), "{words}");
    duo.answer_error(2, "callback exploded");
    duo.play("«u3» reply «eof»");
    assert!(duo.words().ends_with("exit(0)"));
    assert_eq!(
        duo.requests.len(),
        2,
        "of an end nobody can be told, and there are no helpers"
    );
    // A host that goes without an answer.
    let mut duo = with_hooks(&hooks);
    duo.play("«eof»");
    assert_eq!(duo.exit, Some(0));
    // A second offer begins no session.
    let mut duo = with_hooks(&json!({}));
    duo.ask("again", json!({"subtype":"initialize","hooks":hooks}));
    assert_eq!(duo.words(), "answer(init) answer(again)");
}

#[test]
fn hooks_of_a_host_are_told_that_somebody_is_wanted() {
    let mut duo = with_hooks(&json!({"Notification": [{"hookCallbackIds":["n"]}]}));
    duo.play("«u1»");
    duo.lines.clear();
    duo.play("calls(c1:write)");
    let words = duo.words();
    assert!(
        words.ends_with("ask(can_use_tool) ask(hook_callback)"),
        "{words}"
    );
    let told = &duo.requests[1]["request"]["input"];
    assert_eq!(told["hook_event_name"], "Notification");
    assert_eq!(told["notification_type"], "permission_prompt");
    assert!(told["message"].as_str().unwrap().ends_with("write"));
    // The host decides, whether or not it has taken note.
    duo.play("«allow#1» ran(c1) reply");
    assert_eq!(
        duo.words(),
        "result(c1) assistant(text) end(success,u1) completed(u1)"
    );
    duo.play("«pass#2» «u2» reply «eof»");
    assert_eq!(duo.exit, Some(0));
}
