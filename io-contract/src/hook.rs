//! Hooks, with real subprocesses.

use std::time::{Duration, Instant};

use turnwire::vocab::{
    Block, CallId, HookFacts, HookPoint, HookReply, HookVerdict, PromptId, RawJson, Text,
};
use turnwire_io::hooks::{HookCommand, HookJob, Hooks, HooksConfig, TEXT_BYTES};
use turnwire_io::tools::ToolboxConfig;

use crate::{Cancel, Driver};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn hooks(&self, line: &str, observe: bool) -> Hooks {
        let mut tools = ToolboxConfig::new(self.folder.path());
        tools.grace = Duration::from_millis(300);
        tools.deny_env = vec!["SECRET_KEY".into()];
        tools.extra_env = vec![
            ("TURNWIRE_SESSION".into(), "s-1".into()),
            ("SECRET_KEY".into(), "sk-1".into()),
        ];
        let command = HookCommand {
            key: "h".into(),
            line: line.into(),
            observe,
        };
        Hooks::new(HooksConfig::beside(&tools, "s-1", vec![command]))
    }

    fn job(&self, line: &str, point: HookPoint) -> HookJob {
        let args = RawJson("{\"path\":\n\"a\u{2028}b\", \"n\":9007199254740993}".into());
        let tool = Some(("write_file", &args));
        let call = CallId(7);
        let (facts, tool) = match point {
            HookPoint::PromptSubmit => {
                let (prompt, text) = (PromptId(1), "do \"it\"\n".into());
                (HookFacts::Prompt { prompt, text }, None)
            }
            HookPoint::PreTool => (HookFacts::Call { call }, tool),
            HookPoint::PostTool => {
                let content = vec![Block::Text("out".into())];
                let wall_us = 12_345;
                (
                    HookFacts::Result {
                        call,
                        content,
                        ok: true,
                        wall_us,
                    },
                    tool,
                )
            }
            _ => {
                let facts = HookFacts::TurnEnd {
                    honoured: 2,
                    left: Some(6),
                    last: Some("All done.".into()),
                };
                (facts, None)
            }
        };
        let hooks = self.hooks(line, false);
        hooks.prepare("h", point, &facts, tool).unwrap()
    }

    fn answer<D: Driver>(&self, line: &str, point: HookPoint) -> Result<HookReply, Text> {
        D::hook(&self.job(line, point), &Cancel::never())
    }

    fn fault<D: Driver>(&self, line: &str, point: HookPoint) -> String {
        self.answer::<D>(line, point).unwrap_err().to_string()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

fn denies(why: &str) -> Result<HookReply, Text> {
    Ok(HookReply::deny(why.into()))
}

/// Om 31 the exit code decides.
pub fn om_31_the_exit_code_decides<D: Driver>() {
    let place = Place::new();
    let point = HookPoint::TurnEnd;
    for (line, want) in [
        ("true", Ok(HookReply::pass())),
        ("echo all tests pass", Ok(HookReply::pass())),
        (
            "echo ' tests failing '; echo x >&2; exit 2",
            denies("tests failing"),
        ),
        ("echo why >&2; exit 2", denies("why")),
        ("exit 2", denies("it gave no reason")),
        ("exit 1", Err("exit code 1".into())),
        (
            "echo out; echo err >&2; echo more >&2; exit 7",
            Err("exit code 7: err".into()),
        ),
        ("echo out; exit 3", Err("exit code 3: out".into())),
        ("kill -9 $$", Err("ended by signal 9".into())),
    ] {
        assert_eq!(place.answer::<D>(line, point), want, "{line}");
    }
    let fault = place.fault::<D>("no-such-program", point);
    assert!(fault.starts_with("exit code 127: "), "{fault}");
}

/// A hook in a folder that is gone fails and says why.
pub fn a_hook_in_a_folder_that_is_gone_fails_and_says_why<D: Driver>() {
    let place = Place::new();
    let job = place.job("true", HookPoint::TurnEnd);
    std::fs::remove_dir(place.folder.path()).unwrap();
    let fault = D::hook(&job, &Cancel::never()).unwrap_err();
    assert!(fault.starts_with("can't run it: "), "{fault}");
}

/// Om 31 an observing hook has no say.
pub fn om_31_an_observing_hook_has_no_say<D: Driver>() {
    let place = Place::new();
    for (line, want) in [
        ("echo '{\"decision\":\"deny\"}'", Ok(HookReply::pass())),
        ("echo '{'", Ok(HookReply::pass())),
        ("echo no; exit 2", Err(Text::from("exit code 2: no"))),
    ] {
        let hooks = place.hooks(line, true);
        let facts = HookFacts::Call { call: CallId(1) };
        let job = hooks
            .prepare("h", HookPoint::PreTool, &facts, None)
            .unwrap();
        assert_eq!(D::hook(&job, &Cancel::never()), want, "{line}");
    }
    let facts = HookFacts::Call { call: CallId(1) };
    for hooks in [place.hooks("true", true), Hooks::none()] {
        assert!(
            hooks
                .prepare("other", HookPoint::PreTool, &facts, None)
                .is_none()
        );
    }
}

/// An answer says more where it has a meaning.
pub fn an_answer_says_more_where_it_has_a_meaning<D: Driver>() {
    use HookPoint::{PostTool, PreTool, PromptSubmit, TurnEnd};
    let place = Place::new();
    let reply = |verdict: HookVerdict, context: Option<&str>| HookReply {
        verdict,
        context: context.map(Text::from),
        ..HookReply::pass()
    };
    let allow = |input: Option<&str>| HookVerdict::Allow {
        input: input.map(|text| RawJson(text.into())),
    };
    for (point, answer, want) in [
        (PreTool, r#"{}"#, HookReply::pass()),
        (PreTool, r#"{"decision":"allow"}"#, reply(allow(None), None)),
        (
            PreTool,
            r#"{"decision":"ask"}"#,
            reply(HookVerdict::Ask, None),
        ),
        (
            PreTool,
            r#"{"decision":"deny","reason":" no "}"#,
            HookReply::deny("no".into()),
        ),
        (
            PreTool,
            r#"{"decision":"deny"}"#,
            HookReply::deny("it gave no reason".into()),
        ),
        (
            PreTool,
            r#"{"decision":"allow","input":{"path":"b","n":9007199254740993},"context":"moved"}"#,
            reply(
                allow(Some(r#"{"path":"b","n":9007199254740993}"#)),
                Some("moved"),
            ),
        ),
        (
            PromptSubmit,
            r#"{"input":"other \" words"}"#,
            reply(allow(Some(r#""other \" words""#)), None),
        ),
        (
            PromptSubmit,
            r#"{"context":"It is Monday."}"#,
            reply(HookVerdict::Pass, Some("It is Monday.")),
        ),
        (
            PostTool,
            r#"{"context":"3 warnings"}"#,
            reply(HookVerdict::Pass, Some("3 warnings")),
        ),
        (
            TurnEnd,
            r#"{"decision":"deny","reason":"go on"}"#,
            HookReply::deny("go on".into()),
        ),
    ] {
        let line = format!("cat <<'END'\n\n{answer}\nEND");
        assert_eq!(place.answer::<D>(&line, point), Ok(want), "{answer}");
    }
}

/// Om 31 an answer that could be misread is a failure.
pub fn om_31_an_answer_that_could_be_misread_is_a_failure<D: Driver>() {
    use HookPoint::{PostTool, PreTool, PromptSubmit, TurnEnd};
    let place = Place::new();
    for (point, answer, words) in [
        (PreTool, r#"{"decision":"#, "not a JSON object"),
        (
            PreTool,
            r#"{"decision":"allow"} and more"#,
            "not a JSON object",
        ),
        (
            PreTool,
            r#"{"decision":"allow","decision":"deny"}"#,
            "not a JSON object",
        ),
        (PreTool, r#"{"decison":"deny"}"#, "decison"),
        (PreTool, r#"{"decision":"block"}"#, "none of"),
        (PreTool, r#"{"decision":true}"#, "not a string"),
        (PreTool, r#"{"input":{}}"#, "needs the decision allow"),
        (
            PreTool,
            r#"{"decision":"allow","input":"x"}"#,
            "not an object",
        ),
        (PreTool, r#"{"reason":"x"}"#, "beside deny"),
        (PreTool, r#"{"decision":"ask","context":"x"}"#, "context"),
        (PromptSubmit, r#"{"input":{}}"#, "not a string"),
        (
            PromptSubmit,
            r#"{"decision":"allow"}"#,
            "user_prompt_submit",
        ),
        (PostTool, r#"{"decision":"deny"}"#, "post_tool_use"),
        (TurnEnd, r#"{"context":"x"}"#, "turn_end"),
        (TurnEnd, r#"{"input":"x"}"#, "turn_end"),
    ] {
        let fault = place.fault::<D>(&format!("cat <<'END'\n{answer}\nEND"), point);
        assert!(fault.contains(words), "{fault} for {answer}");
    }
}

/// A hook is told one line of json.
pub fn a_hook_is_told_one_line_of_json<D: Driver>() {
    let place = Place::new();
    let project = place.folder.path().to_str().unwrap().to_owned();
    let told = |point| {
        let line = "cat >told; pwd >where; env >env; wc -l <told >lines";
        assert_eq!(place.answer::<D>(line, point), Ok(HookReply::pass()));
        assert_eq!(place.read("lines").trim(), "1");
        let told: serde_json::Value = serde_json::from_str(&place.read("told")).unwrap();
        assert_eq!(
            (&told["hook"], &told["session_id"]),
            (&"h".into(), &"s-1".into())
        );
        assert_eq!(told["project"], project);
        told
    };
    let prompt = told(HookPoint::PromptSubmit);
    assert_eq!(prompt["event"], "user_prompt_submit");
    assert_eq!(prompt["prompt"], "do \"it\"\n");
    let pre = told(HookPoint::PreTool);
    assert_eq!(pre["event"], "pre_tool_use");
    assert_eq!(
        (&pre["tool"], &pre["call"]),
        (&"write_file".into(), &7.into())
    );
    assert_eq!(pre["args"]["path"], "a\u{2028}b");
    assert_eq!(pre["args"]["n"], 9_007_199_254_740_993_u64);
    let post = told(HookPoint::PostTool);
    assert_eq!(
        (&post["output"], &post["duration_ms"]),
        (&"out".into(), &12.into())
    );
    assert_eq!(post["args"], pre["args"]);
    let end = told(HookPoint::TurnEnd);
    assert_eq!(end["text"], "All done.");
    assert_eq!(
        (&end["continuation"], &end["continuations_left"]),
        (&2.into(), &6.into())
    );
    // Where it runs, and what it sees.
    let root = place.folder.path().canonicalize().unwrap();
    assert_eq!(place.read("where").trim(), root.to_str().unwrap());
    let env = place.read("env");
    assert!(
        env.contains("TURNWIRE_SESSION=s-1") && env.contains("PATH="),
        "{env}"
    );
    assert!(
        !env.contains("SECRET_KEY") && !env.contains("CARGO_MANIFEST_DIR"),
        "{env}"
    );
}

/// P03 a hook that floods or doesnt listen blocks nobody.
pub fn p03_a_hook_that_floods_or_doesnt_listen_blocks_nobody<D: Driver>() {
    let place = Place::new();
    let flood =
        "head -c 3000000 /dev/zero | tr '\\0' e >&2; head -c 3000000 /dev/zero | tr '\\0' o";
    let point = HookPoint::TurnEnd;
    assert_eq!(place.answer::<D>(flood, point), Ok(HookReply::pass()));
    let reply = place
        .answer::<D>(&format!("{flood}; exit 2"), point)
        .unwrap();
    let HookVerdict::Deny(why) = reply.verdict else {
        panic!("{:?}", reply.verdict)
    };
    assert_eq!(why.len(), TEXT_BYTES);
    let fault = place.fault::<D>(&format!("printf '{{'; {flood}"), point);
    assert!(fault.contains("longer than"), "{fault}");
    let fault = place.fault::<D>(&format!("{flood}; exit 1"), point);
    assert!(fault.len() < 300, "{}", fault.len());
    // Far more than a pipe holds, for a hook that reads none of it.
    let text: Text = "x".repeat(4_000_000).into();
    let facts = HookFacts::Prompt {
        prompt: PromptId(1),
        text,
    };
    for line in ["true", "exec <&-; sleep 0.1", "sleep 5 & exit 0"] {
        let begun = Instant::now();
        let job = place
            .hooks(line, false)
            .prepare("h", HookPoint::PromptSubmit, &facts, None);
        let reply = D::hook(&job.unwrap(), &Cancel::never());
        assert_eq!(reply, Ok(HookReply::pass()), "{line}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{line}");
    }
}

/// P04 a reason that isnt utf8 is shown as far as it is.
pub fn p04_a_reason_that_isnt_utf8_is_shown_as_far_as_it_is<D: Driver>() {
    let place = Place::new();
    let reply = place.answer::<D>("printf 'a\\377b\\n'; exit 2", HookPoint::TurnEnd);
    assert_eq!(reply, denies("a\u{fffd}b"));
    let fault = place.fault::<D>("printf '{\"context\":\"\\377\"}'", HookPoint::PromptSubmit);
    assert!(fault.contains("not a JSON object"), "{fault}");
    let fault = place.fault::<D>("printf '\\377' >&2; exit 1", HookPoint::TurnEnd);
    assert_eq!(fault, "exit code 1: \u{fffd}");
}

/// P01 a grandchild that keeps the pipe delays nothing and is ended.
pub fn p01_a_grandchild_that_keeps_the_pipe_delays_nothing_and_is_ended<D: Driver>() {
    let place = Place::new();
    let begun = Instant::now();
    let line = "(sleep 2; echo late >late) & echo no; exit 2";
    assert_eq!(place.answer::<D>(line, HookPoint::TurnEnd), denies("no"));
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    std::thread::sleep(Duration::from_millis(2200));
    assert!(!place.folder.path().join("late").exists());
}

/// S 03 a stopped hook is ended with its group and settles.
pub fn s_03_a_stopped_hook_is_ended_with_its_group_and_settles<D: Driver>() {
    let place = Place::new();
    for line in [
        "sleep 30",
        "trap '' TERM; (sleep 1; echo late >late); sleep 30",
        "trap 'exit 2' TERM; echo no; sleep 30 & wait",
    ] {
        let stop = Cancel::after(Duration::from_millis(200));
        let (begun, job) = (Instant::now(), place.job(line, HookPoint::TurnEnd));
        let reply = D::hook(&job, &stop);
        assert_eq!(reply, Err("it was stopped".into()), "{line}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{line}");
    }
    std::thread::sleep(Duration::from_millis(1000));
    assert!(!place.folder.path().join("late").exists());
    // Stopped before it began: nothing is started.
    let stop = Cancel::already();
    let job = place.job("echo x >begun", HookPoint::TurnEnd);
    let reply = D::hook(&job, &stop);
    assert!(reply.is_err() && !place.folder.path().join("begun").exists());
}
