//! Who waits for what on the wire, what is known before a process starts, and lines that may not be written.

use crate::agentx_kit::duo::{Duo, server_config, session_config};
use crate::server::{answer, claude, one, strict};
use serde_json::{Value, json};
use turnwire::json::scan_value;
use turnwire::protocol::agentx::providers::{Listed, Unsafe, catalogue, discovery};
use turnwire::protocol::agentx::wire::{CLOSED_RULES, ProviderList};
use turnwire::protocol::agentx::{AgentxAsk, AgentxOutcome, MAX_LINE, Policy};
use turnwire::protocol::{Credentials, OVERLONG};
use turnwire::vocab::*;

fn listed(id: &str, model: &str, efforts: &[&str]) -> Listed {
    Listed {
        id: id.into(),
        kind: "azure_openai".into(),
        model: model.into(),
        name: None,
        description: "a model".into(),
        is_default: false,
        efforts: efforts.iter().map(|effort| (*effort).into()).collect(),
        default_effort: efforts.last().map(|effort| (*effort).into()),
    }
}

fn registry() -> Vec<Listed> {
    vec![
        listed("sol-east", "m-1", &["low", "high"]),
        listed("sol-west", "m-1", &[]),
        listed("luna", "m-2", &["low"]),
    ]
}

fn nothing() -> Credentials {
    Credentials::exact([]).unwrap()
}

#[test]
fn ax_s29_wire_026_providers_are_listed_before_a_process_is_bound_to_one() {
    let document = discovery(&registry(), &mut nothing()).unwrap();
    let (newline, json) = document.split_last().unwrap();
    assert_eq!(*newline, b'\n');
    let value = scan_value(json, &CLOSED_RULES).unwrap();
    let list: ProviderList<'_> = value.decode().unwrap();
    assert_eq!(list.version, 1);
    let shown: Value = serde_json::from_slice(&document).unwrap();
    assert_eq!(shown.as_object().unwrap().len(), 2);
    let before = shown["providers"].as_array().unwrap();
    assert_eq!(before.len(), 3);
    assert!(before.iter().all(|one| one["selected"] == false));
    assert!(before.iter().all(|one| one["default"] == false));

    // A second process is bound to one of them: the same catalogue, and that one selected.
    let chosen = before[2]["id"].as_str().unwrap();
    let mut config = server_config(Policy::AGENTX);
    config.providers = catalogue(&registry(), Some(chosen));
    config.provider = Some(registry()[2].selected());
    let mut duo = Duo::with(config, session_config(&Policy::AGENTX));
    assert_eq!(one(&mut duo)["provider"], "luna");
    let payload = answer(&mut duo, json!({"subtype":"initialize"}))["response"].clone();
    let mut after = payload["providers"].as_array().unwrap().clone();
    let selected: Vec<bool> = after
        .iter()
        .map(|one| one["selected"].as_bool().unwrap())
        .collect();
    assert_eq!(selected, [false, false, true]);
    after[2]["selected"] = json!(false);
    assert_eq!(&after, before);

    // Wherever a secret would stand in the exact bytes, none of them is written.
    for secret in [
        "sol-west",
        "m-2",
        r#""low","high""#,
        "}]}\n",
        r#"{"version":1,"providers":[{"#,
        r#""},{""#,
        "\n",
    ] {
        let mut credentials = Credentials::exact([secret]).unwrap();
        let text = String::from_utf8(document.clone()).unwrap();
        let expected = if text.contains(secret) {
            Err(Unsafe)
        } else {
            Ok(document.clone())
        };
        assert_eq!(
            discovery(&registry(), &mut credentials),
            expected,
            "{secret:?}"
        );
    }
    let mut alone = Credentials::exact(["azure"]).unwrap();
    assert_eq!(discovery(&registry(), &mut alone), Err(Unsafe));
    assert!(!format!("{Unsafe}{Unsafe:?}").contains("azure"));
}

#[test]
fn ax_s26_wire_024_the_catalogue_agrees_with_itself() {
    let mut providers = registry();
    providers[1].is_default = true;
    // What isn't declared can't be where it begins.
    providers[2].default_effort = Some("extreme".into());
    let all: Vec<Value> = catalogue(&providers, Some("sol-east"))
        .iter()
        .map(|one| serde_json::from_str(one.as_str()).unwrap())
        .collect();
    let ids: Vec<&str> = all
        .iter()
        .map(|one| one["value"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["sol-east", "sol-west", "luna"]);
    for one in &all {
        assert_eq!(one["value"], one["id"]);
        assert_eq!(one["supportsEffort"], one["reasoning"]["supported"]);
        assert_eq!(
            one["supportedReasoningEfforts"],
            one["reasoning"]["efforts"]
        );
        assert_eq!(
            one["defaultReasoningEffort"],
            one["reasoning"]["defaultEffort"]
        );
        let efforts = one["reasoning"]["efforts"].as_array().unwrap();
        assert_eq!(one["supportsEffort"], !efforts.is_empty());
    }
    // Selected and default are two things.
    assert_eq!(
        (&all[0]["selected"], &all[0]["default"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(
        (&all[1]["selected"], &all[1]["default"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(all[2]["reasoning"].get("defaultEffort"), None);
    // One that is alone is the one that is taken.
    let alone = catalogue(&registry()[..1], None);
    let alone: Value = serde_json::from_str(alone[0].as_str()).unwrap();
    assert_eq!(
        (&alone["default"], &alone["selected"]),
        (&json!(true), &json!(false))
    );
    let mut config = server_config(Policy::AGENTX);
    config.provider = Some(providers[2].selected());
    let mut duo = Duo::with(config, session_config(&Policy::AGENTX));
    let init = one(&mut duo);
    assert_eq!(
        init["reasoning_capabilities"],
        json!({"supported":true,"efforts":["low"]})
    );
}

/// A claude whose host runs the server `house`, listed.
fn hosting() -> Duo {
    let mut duo = claude();
    duo.ask(
        "init",
        json!({"subtype":"initialize","sdkMcpServers":["house"]}),
    );
    duo.answer(1, json!({"mcp_response":{"result":{}}}));
    duo.answer(
        3,
        json!({"mcp_response":{"result":{"tools":[{"name":"add"}]}}}),
    );
    duo.lines.clear();
    duo.commands.clear();
    duo
}

fn offered(duo: &Duo) -> Vec<Vec<&str>> {
    let offers = duo.commands.iter().filter_map(|command| match command {
        Command::Offer(Offer::Tools(tools)) => Some(tools.iter().map(|tool| &*tool.name).collect()),
        _ => None,
    });
    offers.collect()
}

#[test]
fn ax_s08_servers_are_set_before_any_of_them_is_greeted() {
    let mut duo = hosting();
    duo.ask(
        "r1",
        json!({"subtype":"mcp_set_servers","servers":{"shed":{"type":"sdk","name":"shed"}}}),
    );
    let payload = duo.lines[0]["response"]["response"].clone();
    assert_eq!(
        payload,
        json!({"added":["shed"],"removed":["house"],"errors":{}})
    );
    assert_eq!(duo.words(), "answer(r1) mcp(initialize)");
    assert_eq!(offered(&duo), [Vec::<&str>::new()]);
    assert_eq!(
        duo.requests.last().unwrap()["request"]["server_name"],
        "shed"
    );
    // With servers that the host doesn't run the embedder is asked, and nobody is greeted before it has answered.
    let mut duo = hosting();
    let servers = json!({"house":{"type":"sdk","name":"house"},"yard":{"type":"sdk"},"far":{"url":"http://x"}});
    duo.ask("r1", json!({"subtype":"mcp_set_servers","servers":servers}));
    assert_eq!(duo.words(), "");
    let ask = duo.settle_ask(AgentxOutcome::Success(Some(RawJson(
        r#"{"added":["far"],"removed":["old"],"errors":{"far":"no route"}}"#.into(),
    ))));
    assert!(matches!(ask, AgentxAsk::Control { .. }));
    assert_eq!(
        duo.lines[0]["response"]["response"],
        json!({"added":["far","yard"],"removed":["old"],"errors":{"far":"no route"}})
    );
    assert_eq!(duo.words(), "answer(r1) mcp(initialize)");
    assert_eq!(offered(&duo), [] as [Vec<&str>; 0], "house stays as it was");
    // It is asked once more when they go; a server that is gone answers in vain.
    duo.ask("r2", json!({"subtype":"mcp_set_servers","servers":{}}));
    duo.settle_ask(AgentxOutcome::Success(None));
    let payload = one(&mut duo)["response"]["response"].clone();
    assert_eq!(payload["removed"], json!(["house", "yard"]));
    let yard = duo.requests.len();
    duo.answer(yard, json!({"mcp_response":{"result":{}}}));
    assert_eq!(duo.words(), "");
    duo.ask("r3", json!({"subtype":"mcp_set_servers","servers":{}}));
    assert_eq!(duo.words(), "answer(r3)", "there is nothing to ask about");
    duo.ask("r4", json!({"subtype":"mcp_status"}));
    assert_eq!(
        one(&mut duo)["response"]["response"]["mcpServers"],
        json!([])
    );
}

#[test]
fn ax_p28_ax_02_the_last_thousand_calls_are_known_and_orphans_are_handed_on_once() {
    let mut config = server_config(Policy::AGENTX);
    config.orphans = true;
    let mut duo = Duo::with(config, session_config(&Policy::AGENTX));
    let late = |duo: &mut Duo, call: &str| {
        duo.say(&json!({"type":"control_response","response":{"subtype":"success","request_id":"req_unheard_of","response":{"behavior":"allow","updatedInput":{},"toolUseID":call}}}));
        let orphans = duo.asks.len();
        duo.asks.clear();
        orphans
    };
    for turn in 1..=1_001 {
        duo.play(&format!(
            "«u{turn}» calls(c{turn}:write) «deny#{turn}» reply"
        ));
        duo.lines.clear();
        duo.raw.clear();
    }
    // The oldest was put out by the last.
    assert_eq!(late(&mut duo, "c2"), 0);
    assert_eq!(late(&mut duo, "c1001"), 0);
    assert_eq!(late(&mut duo, "c1"), 1);
    assert_eq!(late(&mut duo, "c1"), 0, "it was handed on");
    assert_eq!(late(&mut duo, "c9999"), 1);
}

#[test]
fn ax_p27_wire_perm_001_who_decides_first_decides_and_a_pass_decides_nothing() {
    let race = |scene: &str| {
        let mut duo = claude();
        duo.ask(
            "init",
            json!({"subtype":"initialize","hooks":{"PermissionRequest":[{"matcher":null,"hookCallbackIds":["h"]}]}}),
        );
        duo.play("«u1» calls(c1:write)");
        duo.lines.clear();
        duo.play(scene);
        duo.words()
    };
    assert_eq!(race("«yes#2» «deny#1» ran(c1)"), "withdraw(1) result(c1)");
    assert_eq!(race("«no#2» «allow#1»"), "withdraw(1) result(c1,error)");
    assert_eq!(race("«pass#2»"), "");
    assert_eq!(race("«pass#2» «deny#1»"), "result(c1,error)");
    assert_eq!(race("«error#2»"), "");
    let won = race("«allow#1» «no#2» ran(c1)");
    assert!(won.ends_with("result(c1)"), "{won}");
}

#[test]
fn ax_p26_wire_006_wire_007_a_request_is_waited_for_once() {
    // Registered before it can be read: the answer may come with the very next line.
    let mut duo = strict();
    duo.play("«u1» calls(c1:write)");
    let asked = duo.requests[0]["request_id"].clone();
    duo.commands.clear();
    duo.play("«allow#1» «deny#1» «error#1»");
    let replies = |duo: &Duo| {
        let replies = duo.commands.iter();
        replies
            .filter(|command| matches!(command, Command::Reply { .. }))
            .count()
    };
    assert_eq!(replies(&duo), 1);
    duo.say(&json!({"type":"control_cancel_request","request_id":asked}));
    assert_eq!(replies(&duo), 1);
    duo.play("ran(c1) reply");
    assert!(
        duo.words()
            .ends_with("result(c1) assistant(text) end(success,u1) idle")
    );
}

#[test]
fn ax_p30_questions_of_calls_that_may_run_at_once_are_open_at_once() {
    let mut session = session_config(&Policy::CLAUDE);
    session.rules = vec![Rule {
        behaviour: RuleBehaviour::Ask,
        tool: "look".into(),
        pattern: None,
    }];
    let mut duo = Duo::with(server_config(Policy::CLAUDE), session);
    duo.play("«u1» calls(c1:look,c2:look)");
    assert!(duo.words().ends_with("ask(can_use_tool) ask(can_use_tool)"));
    duo.play("«allow#2» «allow#1» ran(c2) ran(c1)");
    assert_eq!(duo.words(), "result(c2) result(c1)");
    let mut duo = claude();
    duo.play("«u1» calls(c1:write,c2:write)");
    assert_eq!(duo.requests.len(), 1, "one writes after the other");
    duo.play("«allow#1» ran(c1)");
    assert_eq!(duo.requests.len(), 2);
}

fn asked(summary: &str, reason: AskReason) -> What {
    What::Asked {
        ask: AskId(900),
        body: Ask::Permission(Box::new(PermissionAsk {
            call: Some(CallId(1)),
            tool: "write".into(),
            reason,
            summary: summary.into(),
            detail: "a detail that may say anything".into(),
            body: None,
            suggestions: Vec::new(),
            env: Vec::new(),
            due: None,
        })),
    }
}

#[test]
fn ax_p31_wire_perm_004_a_connection_is_asked_for_like_a_call_with_an_id_of_its_own() {
    let mut duo = strict();
    duo.play("«u1» calls(c1:write) «allow#1»");
    duo.lines.clear();
    duo.event(asked(
        "",
        AskReason::Network {
            host: "example.org".into(),
        },
    ));
    assert_eq!(duo.words(), "requires_action ask(can_use_tool)");
    let request = duo.requests[1]["request"].clone();
    assert_eq!(request["tool_name"], "SandboxNetworkAccess");
    assert_eq!(request["input"], json!({"host":"example.org"}));
    assert_ne!(request["tool_use_id"], "c1");
    assert!(
        request["description"]
            .as_str()
            .unwrap()
            .contains("example.org")
    );
}

#[test]
fn wire_perm_003_a_permission_without_a_summary_is_described_by_its_tool() {
    let mut duo = strict();
    duo.play("«u1» calls(c1:write) «allow#1»");
    for (summary, expected) in [("", "write"), ("Writes a file", "Writes a file")] {
        duo.event(asked(summary, AskReason::Gate));
        let request = &duo.requests.last().unwrap()["request"];
        assert_eq!(request["description"], expected);
        assert!(!request.to_string().contains("may say anything"));
        assert!(request.get("decision_reason").is_none());
    }
}

#[test]
fn wire_018_a_line_of_more_than_8_mib_is_never_written_and_the_last() {
    let limit = "x".repeat(MAX_LINE);
    for (policy, ends) in [(Policy::AGENTX, true), (Policy::CLAUDE, false)] {
        let mut duo = Duo::new(policy);
        duo.play("«u1» begin");
        duo.chunk(ModelChunk::Text(&limit));
        duo.play("fin(end_turn)");
        assert_eq!(duo.exit, ends.then_some(1));
        let longest = duo.raw.iter().map(String::len).max().unwrap();
        assert_eq!(longest > MAX_LINE, !ends);
        let told = duo.diagnostics.iter().any(|text| text == OVERLONG);
        assert_eq!(told, ends);
    }
}

#[test]
fn wire_018_a_prompt_that_can_be_said_can_be_repeated_or_is_refused() {
    let mut config = server_config(Policy::AGENTX);
    config.replay = true;
    let mut duo = Duo::with(config, session_config(&Policy::AGENTX));
    duo.lines.clear();
    let text = "x".repeat(MAX_LINE - 70);
    let line = format!(r#"{{"type":"user","uuid":"u","message":"{text}"}}"#);
    assert!(line.len() < MAX_LINE);
    duo.host(&line);
    assert_eq!(one(&mut duo)["stop_reason"], "input_error");
    duo.play("«u1» reply");
    assert!(duo.words().ends_with("end(success,u1) idle"));
}

#[test]
fn wire_001_which_line_was_wrong_is_told_and_nothing_of_it() {
    let mut duo = strict();
    duo.play("«u1» reply");
    duo.host("");
    duo.host(r#"{"type":"user","message":"secret""#);
    assert!(
        duo.diagnostics[0].starts_with("line 3: "),
        "{:?}",
        duo.diagnostics
    );
    assert!(!duo.diagnostics[0].contains("secret"));
    // One that was too long to be held is a line like others, wherever it comes.
    let mut duo = Duo::new(Policy::CLAUDE);
    duo.play("«u1» reply");
    let mut line = vec![b'x'; 64 * 1024 * 1024 + 1];
    line.push(b'\n');
    duo.bytes(&line);
    assert!(
        duo.diagnostics[0].starts_with("line 2: "),
        "{:?}",
        duo.diagnostics
    );
    assert_eq!(duo.exit, Some(1));
}

#[test]
fn wire_016_ax_s21_the_source_of_the_key_is_one_of_two_words() {
    for (given, shown) in [
        ("user", "user"),
        ("temporary", "temporary"),
        ("", "user"),
        ("/home/me/auth.json", "user"),
    ] {
        let mut config = server_config(Policy::AGENTX);
        config.api_key_source = given.into();
        let mut duo = Duo::with(config, session_config(&Policy::AGENTX));
        assert_eq!(one(&mut duo)["apiKeySource"], shown);
        let payload = answer(&mut duo, json!({"subtype":"initialize"}))["response"].clone();
        assert_eq!(payload["account"]["apiKeySource"], shown);
    }
}

#[test]
fn a_question_that_is_cancelled_alone_leaves_the_turn_running() {
    let mut duo = strict();
    duo.play("«u1» begin text");
    duo.lines.clear();
    duo.event(asked("", AskReason::Gate));
    duo.event(What::AskClosed {
        ask: AskId(900),
        how: AskClose::Cancelled,
    });
    // An interrupt would look the same up to here.
    assert_eq!(duo.words(), "requires_action ask(can_use_tool) withdraw(1)");
    duo.event(What::RequestStarted {
        request: RequestId(77),
        attempt: 1,
    });
    assert_eq!(duo.words(), "running");
}

#[test]
fn what_waits_for_a_flush_is_written_before_the_process_leaves() {
    let mut config = server_config(Policy::CLAUDE);
    config.flush = true;
    config.states = true;
    let mut duo = Duo::with(config, session_config(&Policy::CLAUDE));
    duo.play("«u1» reply «init»");
    let words = duo.words();
    assert!(words.ends_with("end(success,u1)"), "{words}");
    duo.host("no json");
    assert_eq!(duo.words(), "idle completed(u1) answer(init) exit(1)");
}
