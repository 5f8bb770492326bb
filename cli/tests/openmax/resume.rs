//! Sessions that are kept, and go on: `--continue`, its refusals, crashes at every moment.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::program::{Ended, Home, Program, Setup, of, types};
use crate::support::provider::Provider;
use crate::support::replies::{anthropic, openai};

const QUIT: &str = "{\"cmd\":\"quit\"}\n";

/// The one transcript that there is.
#[track_caller]
fn transcript(home: &Home) -> PathBuf {
    let folder = home.path("data/turnwire/sessions");
    let paths = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut found = paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let path = found.next().expect("a transcript");
    assert_eq!(found.next(), None);
    path
}

fn index(home: &Home) -> PathBuf {
    home.path("data/turnwire/sessions/index.json")
}

/// The role and content of what a session went on with.
#[track_caller]
fn shown(lines: &[Value]) -> Vec<(String, String)> {
    assert_eq!(types(&lines[..2]), ["hello", "transcript"]);
    assert_eq!(lines[0]["continued"], true);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let messages = lines[1]["messages"].as_array().unwrap().iter();
    messages
        .map(|message| (text(&message["role"]), text(&message["content"])))
        .collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(role, text): &(&str, &str)| ((*role).to_owned(), (*text).to_owned());
    list.iter().map(own).collect()
}

/// One session of one turn.
#[track_caller]
fn one_turn(setup: Setup, prompt: &str) -> Ended {
    let mut program = setup.start();
    let lines = program.turn(prompt);
    assert!(of(&lines, "error").is_empty(), "{lines:?}");
    program.close_input();
    program.wait()
}

/// It ends with code 2, nothing on stdout, and these words on stderr.
#[track_caller]
fn refused(setup: Setup, words: &[&str]) {
    let ended = setup.run(QUIT);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.lines.is_empty(), "{:?}", ended.lines);
    for word in words {
        let stderr = &ended.stderr;
        assert!(stderr.contains(word), "no {word:?} in {stderr}");
    }
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn om_02_om_03_a_session_goes_on_with_all_that_was_said() {
    let home = Home::new();
    let arguments = json!({ "command": "echo out" });
    let provider = Provider::start([
        openai::calls(&[("c1", "bash", arguments)]),
        openai::says("It says out."),
        openai::says("Still out."),
    ]);
    let first = one_turn(Setup::openai(&home, &provider), "What does it say?");
    assert_eq!(first.lines[0]["continued"], false);

    let mut program = Setup::openai(&home, &provider)
        .args(&["--continue"])
        .start();
    program.see_type("transcript");
    let expected = [("user", "What does it say?"), ("assistant", "It says out.")];
    assert_eq!(shown(program.seen()), pairs(&expected));
    assert_eq!(
        program.seen()[0]["session_id"],
        first.lines[0]["session_id"]
    );
    assert_eq!(program.seen()[1]["truncated"], false);
    // What happened then isn't told again.
    program.quiet(Duration::from_millis(300));
    program.turn("And now?");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));

    let messages = |request: usize| provider.request(request).json()["messages"].clone();
    let mut wanted = messages(2).as_array().unwrap().clone();
    assert_eq!(wanted.last().unwrap()["role"], "tool");
    wanted.push(json!({ "role": "assistant", "content": "It says out." }));
    wanted.push(json!({ "role": "user", "content": "And now?" }));
    assert_eq!(messages(3), Value::from(wanted));

    let third = Setup::openai(&home, &provider)
        .args(&["--continue"])
        .run(QUIT);
    assert_eq!(third.code, Some(0));
    assert_eq!(shown(&third.lines).len(), 4);
    assert_eq!(third.lines.len(), 2);
    let index: Value = serde_json::from_slice(&fs::read(index(&home)).unwrap()).unwrap();
    assert_eq!(index["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(index["sessions"][0]["title"], "What does it say?");
}

#[test]
fn om_02_a_session_that_was_summarised_shows_all_that_was_said() {
    let home = Home::new();
    let long = "words ".repeat(1_200);
    let provider = Provider::start([
        openai::says(&long),
        openai::says("In short."),
        openai::says("Two."),
        openai::says("Three."),
    ]);
    let narrow = ["--window", "5120", "--max-output", "1024"];
    let mut program = Setup::openai(&home, &provider).args(&narrow).start();
    for prompt in ["one", "two"] {
        assert!(of(&program.turn(prompt), "error").is_empty());
    }
    program.close_input();
    program.wait();
    let kept = fs::read_to_string(transcript(&home)).unwrap();
    assert!(kept.contains("\"role\":\"summary\""), "{kept}");

    let mut program = Setup::openai(&home, &provider)
        .args(&["--continue"])
        .start();
    program.see_type("transcript");
    let shown = shown(program.seen());
    let roles: Vec<&str> = shown.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    assert_eq!(
        (&*shown[0].1, &*shown[2].1, &*shown[3].1),
        ("one", "two", "Two.")
    );
    // The model still gets the summary in place of what it stands for.
    program.turn("three");
    let sent = provider.request(4).json().to_string();
    assert!(
        sent.contains("In short.") && !sent.contains("words words"),
        "{sent}"
    );
}

#[test]
fn om_02_thinking_and_its_proof_are_kept_but_not_shown() {
    let home = Home::new();
    let end = || anthropic::end("end_turn");
    let thinking = anthropic::thinking(0, "Hm.");
    let provider = Provider::start([
        anthropic::reply(&[
            anthropic::start(),
            thinking,
            anthropic::text(1, "Yes."),
            end(),
        ]),
        anthropic::reply(&[anthropic::start(), anthropic::text(0, "No."), end()]),
    ]);
    one_turn(Setup::anthropic(&home, &provider), "Is it?");
    let mut program = Setup::anthropic(&home, &provider)
        .args(&["--continue"])
        .start();
    program.turn("Really?");
    program.close_input();
    let ended = program.wait();
    let expected = [("user", "Is it?"), ("assistant", "Yes.")];
    assert_eq!(shown(&ended.lines), pairs(&expected));
    let sent = provider.request(2).json()["messages"][1]["content"].clone();
    let thinking = json!({ "type": "thinking", "thinking": "Hm.", "signature": "c2ln" });
    assert_eq!(sent[0], thinking, "{sent}");
}

#[test]
fn om_04_a_session_that_is_open_elsewhere_is_refused_between_turns_too() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One."), openai::says("Two.")]);
    let going_on = || Setup::openai(&home, &provider).args(&["--continue"]);
    fs::create_dir(home.path("elsewhere")).unwrap();
    let project = home.project();
    let elsewhere = || {
        going_on()
            .args(&["--project", project.to_str().unwrap()])
            .in_folder(home.path("elsewhere"))
    };
    let mut first = Setup::openai(&home, &provider).start();
    first.turn("one");
    // The first only waits now.
    refused(elsewhere(), &["open in another process"]);
    first.turn("two");
    refused(elsewhere(), &["open in another process"]);
    first.close_input();
    first.wait();
    // The one that goes on owns it too, before any turn.
    let mut second = going_on().start();
    second.see_type("transcript");
    refused(elsewhere(), &["open in another process"]);
    second.crash();
    assert_eq!(shown(&going_on().run(QUIT).lines).len(), 4);
}

#[test]
fn om_25_no_session_to_go_on_with_exits_2() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One."), openai::says("Two.")]);
    let going_on = || Setup::openai(&home, &provider).args(&["--continue"]);
    // Trust is a line of its own, once.
    let ended = going_on().run(QUIT);
    assert_eq!((ended.code, ended.lines.len()), (Some(2), 0));
    let none = "no session can go on: none was kept";
    assert!(ended.stderr.contains(none), "{}", ended.stderr);
    refused(going_on(), &[none]);
    // Nor does one of another project count, or one in which nothing was said.
    fs::create_dir(home.path("other")).unwrap();
    let other = home.path("other");
    let other = ["--project", other.to_str().unwrap()];
    one_turn(Setup::openai(&home, &provider).args(&other), "elsewhere");
    assert_eq!(Setup::openai(&home, &provider).run(QUIT).code, Some(0));
    refused(going_on(), &[none]);
    let ended = Setup::serve(&home)
        .args(&["--continue", "--no-store"])
        .run(QUIT);
    assert_eq!((ended.code, ended.lines.len()), (Some(2), 0));
}

#[test]
fn om_25_a_session_that_went_on_exits_as_its_last_turn_ended() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One.")]);
    one_turn(Setup::openai(&home, &provider), "one");
    // A request that the provider wasn't told of gets a 400.
    let mut program = Setup::openai(&home, &provider)
        .args(&["--continue"])
        .start();
    let lines = program.turn("two");
    assert_eq!(of(&lines, "done")[0]["stop_reason"], "error");
    program.close_input();
    assert_eq!(program.wait().code, Some(1));
    let ended = Setup::openai(&home, &provider)
        .args(&["--continue"])
        .run(QUIT);
    assert_eq!(ended.code, Some(0));
    let expected = [("user", "one"), ("assistant", "One."), ("user", "two")];
    assert_eq!(shown(&ended.lines), pairs(&expected));
}

#[test]
fn om_04_damage_is_said_before_the_handshake_and_left_alone() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One.")]);
    let going_on = || Setup::openai(&home, &provider).args(&["--continue"]);
    one_turn(Setup::openai(&home, &provider), "one");
    let (path, index) = (transcript(&home), index(&home));
    let (whole, listed) = (
        fs::read_to_string(&path).unwrap(),
        fs::read_to_string(&index).unwrap(),
    );
    for text in [
        whole.replacen("\"role\"", "\"rule\"", 1),
        whole.replacen('\n', "\n\n", 1),
        String::new(),
    ] {
        fs::write(&path, &text).unwrap();
        refused(going_on(), &["no session can go on", ".jsonl:", "damaged"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    fs::remove_file(&path).unwrap();
    refused(going_on(), &["no session can go on", ".jsonl", "gone"]);
    fs::write(&path, &whole).unwrap();
    for text in [&listed[..listed.len() - 5], "", "[]", "\0\0\0\0"] {
        fs::write(&index, text).unwrap();
        refused(
            going_on(),
            &["no session can go on", "index.json", "damaged"],
        );
        assert_eq!(fs::read_to_string(&index).unwrap(), text);
    }
    fs::write(&index, &listed).unwrap();
    assert_eq!(shown(&going_on().run(QUIT).lines).len(), 2);
}

#[test]
fn om_04_a_torn_line_is_cut_off_and_a_lost_result_has_a_stub() {
    let home = Home::new();
    let arguments = json!({ "command": "echo out" });
    let provider = Provider::start([
        openai::calls(&[("c1", "bash", arguments)]),
        openai::says("One."),
        openai::says("Two."),
    ]);
    one_turn(Setup::openai(&home, &provider), "one");
    let path = transcript(&home);
    let whole = fs::read_to_string(&path).unwrap();
    // The call is whole, its result was being written.
    let at = whole.find("\"role\":\"tool\"").expect("a result");
    fs::write(&path, &whole[..at]).unwrap();
    let mut program = Setup::openai(&home, &provider)
        .args(&["--continue"])
        .start();
    program.turn("two");
    program.close_input();
    let ended = program.wait();
    assert!(
        ended.stderr.contains("bytes were cut off"),
        "{}",
        ended.stderr
    );
    let sent = provider.request(3).json()["messages"].clone();
    let roles: Vec<&str> = sent
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    assert!(
        sent[3]["content"].as_str().unwrap().contains("lost"),
        "{sent}"
    );
    let again = Setup::openai(&home, &provider)
        .args(&["--continue"])
        .run(QUIT);
    assert!(again.stderr.is_empty(), "{}", again.stderr);
    let expected = [("user", "one"), ("user", "two"), ("assistant", "Two.")];
    assert_eq!(shown(&again.lines), pairs(&expected));
}

/// All turns whose `done` went out are there, in order, each with its reply; what else is there are prompts and
/// replies of turns that were not acknowledged.
#[track_caller]
fn nothing_is_lost(lines: &[Value], acknowledged: &[String]) {
    let shown = shown(lines);
    let mut rest = shown.iter();
    for prompt in acknowledged {
        let reply = format!("reply to {prompt}");
        for want in [("user", prompt), ("assistant", &reply)] {
            let want = (want.0.to_owned(), want.1.clone());
            assert!(
                rest.any(|found| *found == want),
                "{want:?} is lost: {shown:?}"
            );
        }
    }
}

/// A turn with a call, which is killed when `stop` says so; whether its `done` went out.
#[track_caller]
fn killed(home: &Home, prompt: &str, going_on: bool, stop: impl FnOnce(&mut Program)) -> bool {
    let arguments = json!({ "command": "echo out" });
    let provider = Provider::start([
        openai::calls(&[("c1", "bash", arguments)]),
        openai::says(&format!("reply to {prompt}")),
    ]);
    let mut setup = Setup::openai(home, &provider);
    if going_on {
        setup = setup.args(&["--continue"]);
    }
    let mut program = setup.start();
    program.see_type(if going_on { "transcript" } else { "hello" });
    program.user(prompt);
    stop(&mut program);
    let done = !of(program.seen(), "done").is_empty();
    program.crash();
    done
}

#[test]
fn om_04_a_crash_after_any_line_loses_nothing_that_was_acknowledged() {
    let home = Home::new();
    let mut acknowledged = vec!["turn 0".to_owned()];
    let whole = |program: &mut Program| drop(program.see_type("done"));
    assert!(killed(&home, "turn 0", false, whole));
    let mut seen = Vec::new();
    for number in 1.. {
        let prompt = format!("turn {number}");
        let done = killed(&home, &prompt, true, |program| {
            for _ in 0..number {
                let line = program.see_any().expect("a line");
                seen.push(line["type"].as_str().unwrap().to_owned());
                if line["type"] == "done" {
                    break;
                }
            }
        });
        if done {
            acknowledged.push(prompt);
        }
        let provider = Provider::start([]);
        let setup = Setup::openai(&home, &provider).args(&["--continue"]);
        nothing_is_lost(&setup.run(QUIT).lines, &acknowledged);
        if done {
            break;
        }
    }
    for kind in [
        "budget",
        "token",
        "tool_start",
        "tool_end",
        "message_done",
        "done",
    ] {
        assert!(
            seen.iter().any(|found| found == kind),
            "no {kind} in {seen:?}"
        );
    }
    assert_eq!(acknowledged.len(), 2);
}

#[test]
fn om_04_a_crash_while_a_turn_is_saved_loses_nothing_that_was_acknowledged() {
    let home = Home::new();
    let mut acknowledged = vec!["turn 0".to_owned()];
    let whole = |program: &mut Program| drop(program.see_type("done"));
    assert!(killed(&home, "turn 0", false, whole));
    for number in 1..=24_u32 {
        let prompt = format!("turn {number}");
        let done = killed(&home, &prompt, true, |program| {
            // The write begins once the last reply is whole.
            for _ in 0..2 {
                program.see_type("message_done");
            }
            std::thread::sleep(Duration::from_micros(u64::from(number) * 250));
            program.signal("KILL");
            while program.see_any().is_some() {}
        });
        if done {
            acknowledged.push(prompt);
        }
    }
    let provider = Provider::start([]);
    let setup = Setup::openai(&home, &provider).args(&["--continue"]);
    nothing_is_lost(&setup.run(QUIT).lines, &acknowledged);
}

#[test]
fn tw_08_a_turn_that_cant_be_saved_says_so_and_goes_on() {
    let home = Home::new();
    let replies = ["One.", "Two.", "Three."].map(openai::says);
    let provider = Provider::start(replies);
    fs::write(home.path("data/turnwire"), "a file in the way").unwrap();
    let mut program = Setup::openai(&home, &provider).start();
    for prompt in ["one", "two"] {
        let lines = program.turn(prompt);
        let error = of(&lines, "error")[0]["message"].as_str().unwrap();
        assert!(error.contains("the turn could not be stored"), "{error}");
        assert_eq!(of(&lines, "done")[0]["stop_reason"], "stop");
    }
    // What wasn't saved then is saved with what comes.
    fs::remove_file(home.path("data/turnwire")).unwrap();
    let lines = program.turn("three");
    assert!(of(&lines, "error").is_empty(), "{lines:?}");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
    let ended = Setup::openai(&home, &provider)
        .args(&["--continue"])
        .run(QUIT);
    assert_eq!(shown(&ended.lines).len(), 6);
}

#[test]
fn tw_08_a_save_that_hangs_holds_done_up_for_a_moment_only() {
    let home = Home::new();
    let provider = Provider::start(["One.", "Two."].map(openai::says));
    let folder = home.path("data/turnwire/sessions");
    fs::create_dir_all(&folder).unwrap();
    let lock = fs::File::create(folder.join("index.lock")).unwrap();
    lock.lock().unwrap();
    let mut program = Setup::openai(&home, &provider).start();
    let begun = std::time::Instant::now();
    let lines = program.turn("one");
    let error = of(&lines, "error")[0]["message"].as_str().unwrap();
    assert!(error.contains("timed out"), "{error}");
    assert!(begun.elapsed() >= Duration::from_secs(2));
    drop(lock);
    let lines = program.turn("two");
    assert!(of(&lines, "error").is_empty(), "{lines:?}");
    program.crash();
    let ended = Setup::openai(&home, &provider)
        .args(&["--continue"])
        .run(QUIT);
    assert_eq!(shown(&ended.lines).len(), 4);
}

#[test]
fn nothing_is_kept_of_a_demonstration_or_unasked() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One.")]);
    one_turn(Setup::openai(&home, &provider).args(&["--no-store"]), "one");
    one_turn(Setup::serve(&home), "What is here?");
    assert!(!home.path("data/turnwire").exists());
    // One that was asked for is kept.
    one_turn(
        Setup::serve(&home).args(&["--api", "scripted"]),
        "What is here?",
    );
    let ended = Setup::serve(&home).args(&["--continue"]).run(QUIT);
    assert_eq!(shown(&ended.lines)[0].1, "What is here?");
}

#[test]
fn om_02_the_transcripts_cuts_are_of_the_line_alone() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One."), openai::says("Two.")]);
    let long = "é".repeat(5000);
    one_turn(Setup::openai(&home, &provider), &long);
    let mut program = Setup::openai(&home, &provider)
        .args(&["--continue"])
        .start();
    let line = program.see_type("transcript");
    assert_eq!(line["truncated"], true);
    assert!(line["messages"][0]["content"].as_str().unwrap().len() <= 4096);
    program.turn("two");
    program.close_input();
    program.wait();
    assert_eq!(provider.request(2).json()["messages"][1]["content"], long);
}
