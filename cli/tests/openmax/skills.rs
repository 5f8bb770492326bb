//! Skills: told by name, read when they are needed.

use serde_json::json;

use crate::support::program::{Home, Setup, of};
use crate::support::provider::Provider;
use crate::support::replies::openai;

const RELEASE: &str =
    "---\nname: release\ndescription: How a release is made.\n---\nTag it first.\n";

#[test]
fn om_08_skills_are_told_by_name_read_on_call_and_read_anew() {
    let home = Home::new();
    let call = |name: &str| openai::calls(&[("c1", "skill", json!({ "name": name }))]);
    let provider = Provider::start([
        call("release"),
        call("other"),
        openai::says("So."),
        openai::says("So."),
    ]);
    home.write(".turnwire/skills/release/SKILL.md", RELEASE);
    home.write(".turnwire/skills/odd.md", "no head");
    std::fs::create_dir_all(home.path("config/turnwire/skills")).unwrap();
    let own = "---\ndescription: The user's own.\n---\nMine.\n";
    std::fs::write(home.path("config/turnwire/skills/own.md"), own).unwrap();
    let mut program = Setup::openai_in(&home, &provider, "readonly").start();
    let lines = program.turn("go");
    let ends = of(&lines, "tool_end");
    let output = ends[0]["output"].as_str().unwrap();
    assert!(
        ends[0]["ok"] == true && output.ends_with("Tag it first.\n"),
        "{output}"
    );
    assert!(output.contains(".turnwire/skills/release"), "{output}");
    assert!(ends[1]["ok"] == false, "{ends:?}");
    let sent = provider.request(1).json().to_string();
    for words in ["release: How a release is made.", "own: The user's own."] {
        assert!(sent.contains(words), "{words} in {sent}");
    }
    assert!(!sent.contains("Tag it first"), "{sent}");

    home.write(
        ".turnwire/skills/release/SKILL.md",
        &RELEASE.replace("first", "last"),
    );
    home.write(".turnwire/skills/new.md", own);
    std::fs::remove_file(home.path("config/turnwire/skills/own.md")).unwrap();
    program.send(&json!({ "cmd": "reload" }));
    let receipt = program.see_type("refrozen");
    assert_eq!(receipt["skills"], 2);
    assert_eq!(
        receipt["changes"],
        json!([
            "skill new added",
            "skill release changed",
            "skill own removed"
        ])
    );
    for name in ["new.md", "release"] {
        let path = home.project().join(".turnwire/skills").join(name);
        let gone = if path.is_dir() {
            std::fs::remove_dir_all(path)
        } else {
            std::fs::remove_file(path)
        };
        gone.unwrap();
    }
    let lines = program.turn("go");
    assert_eq!(of(&lines, "refrozen")[0]["skills"], 0);
    let tools = provider.request(4).json()["tools"].to_string();
    assert!(!tools.contains("\"skill\""), "{tools}");
    program.close_input();
    let told = program.wait().stderr;
    assert!(
        told.contains("a skill isn't loaded: .turnwire/skills/odd.md"),
        "{told}"
    );
}

#[test]
fn an_untrusted_projects_skills_arent_used() {
    let home = Home::new();
    home.write(".turnwire/skills/release.md", RELEASE);
    let ended = Setup::serve(&home).run("{\"cmd\":\"quit\"}\n");
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.stderr.contains("release.md isn't used"),
        "{}",
        ended.stderr
    );
}
