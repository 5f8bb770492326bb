//! What a compaction cuts, sends and keeps, what it says of that, and when it is due.

use alloc::{boxed::Box, format, string::String, sync::Arc, vec, vec::Vec};

use super::{
    act::{act, policy},
    history::{play, sent, words},
    world::{World, info},
};
use crate::session::Session;
use crate::vocab::{mirror::Mirror, *};

/// A world whose events are kept.
struct Seen {
    world: World,
    events: Vec<Event>,
}

impl Seen {
    fn give(&mut self, input: Input<'_>) {
        let now = self.world.now;
        self.world.session.handle(input, now).unwrap();
        while let Some(output) = self.world.session.poll_output() {
            if let Output::Event(event) = output {
                self.events.push(event.clone());
            }
        }
    }

    fn compact(&mut self, command: u64, request: u64, summary: &str) {
        self.give(Input::Call(Call {
            id: CommandId(command),
            command: Command::Compact { instructions: None },
        }));
        self.say(request, summary);
    }

    fn say(&mut self, request: u64, text: &str) {
        for chunk in [
            ModelChunk::Text(text),
            ModelChunk::Finish("stop"),
            ModelChunk::End,
        ] {
            let request = RequestId(request);
            self.give(Input::Model { request, chunk });
        }
    }

    fn prompt(&mut self, command: u64, prompt: u64) {
        let prompt = super::world::prompt(prompt, Deliver::IfIdle);
        self.give(Input::Call(Call {
            id: CommandId(command),
            command: Command::Prompt(prompt),
        }));
    }

    fn started(&self) -> (Option<(u64, u64)>, Option<u64>) {
        let started = self.events.iter().rev().find_map(|event| match event.what {
            What::CompactionStarted { span, tokens, .. } => Some((span, tokens)),
            _ => None,
        });
        started.unwrap()
    }

    fn ended(&self) -> Compacted {
        let ended = self
            .events
            .iter()
            .rev()
            .find_map(|event| match &event.what {
                What::CompactionEnded { result } => result.clone().ok(),
                _ => None,
            });
        ended.unwrap()
    }
}

fn seen(about: &str, info: Box<SessionInfo>) -> Seen {
    Seen {
        world: World::with_info(policy(about), info),
        events: Vec::new(),
    }
}

fn message(id: u64, role: Role, content: Block) -> Arc<Message> {
    Arc::new(Message {
        id: MessageId(id),
        role,
        content: vec![Arc::new(content)],
        origin: Origin::History,
        prompt: None,
        about: None,
        at_ms: 0,
        details: None,
    })
}

fn said(id: u64, role: Role, text: &str) -> Arc<Message> {
    message(id, role, Block::Text(text.into()))
}

/// A history of two exchanges, the second with a call.
fn loaded(long: &str) -> Box<SessionInfo> {
    let mut info = info();
    let call = Block::ToolUse {
        call: CallId(1),
        provider_id: Some("n1".into()),
        name: "read".into(),
        input: ToolInput::Object(RawJson("{}".into())),
    };
    let result = Role::Tool {
        call: CallId(1),
        name: "read".into(),
        error: false,
    };
    info.history = vec![
        said(1, Role::User, long),
        said(2, Role::Assistant, long),
        said(3, Role::User, "and then?"),
        message(4, Role::Assistant, call),
        said(5, result, "out"),
        said(6, Role::Assistant, "that"),
    ];
    info
}

#[test]
fn files_go_back_to_a_message_of_an_earlier_process() {
    let mut world = World::with_info(policy("(snapshots=1)"), loaded("x"));
    let rewind = |world: &mut World, message| {
        world.command(Command::Rewind {
            to: RewindTo::Message(MessageId(message)),
            dry_run: false,
        })
    };
    // What nobody wrote, or nobody knows, is no place to go back to.
    for message in [2, 4, 5, 7] {
        assert_eq!(rewind(&mut world, message), ["RP Err Unknown"], "{message}");
    }
    assert_eq!(rewind(&mut world, 3), ["!Restore m3 m6"]);
}

#[test]
fn s_59_what_is_kept_begins_at_a_prompt_or_at_a_whole_batch() {
    let long = "x".repeat(400);
    let mut world = World::with_info(policy(""), loaded(&long));
    play(&mut world, &["Compact"]);
    let request = sent(&world, 1);
    assert_eq!(
        request[..2],
        [format!("User: {long}"), format!("Assistant: {long}")]
    );
    assert_eq!(request.len(), 3);
    assert!(request[2].starts_with("User: Summarise the conversation above."));
    play(&mut world, &["r1 End"]);
    let kept = [
        "User: and then?",
        "Assistant c1: ",
        "c1: out",
        "Assistant: that",
    ];
    assert_eq!(words(world.session.history())[0], "Summary: s");
    assert_eq!(words(world.session.history())[1..], kept);
    // The next request is made of it.
    play(&mut world, &["Prompt P1"]);
    assert_eq!(sent(&world, 2).len(), 6);

    // Four tokens less for what is kept: not the prompt any more, but its calls with their results.
    let shorter = "x".repeat(44);
    let mut world = World::with_info(policy(""), loaded(&shorter));
    play(&mut world, &["Compact", "r1 End"]);
    assert_eq!(words(world.session.history())[1..], kept[1..]);

    // A batch that is too large goes as a whole, and its last word with it.
    let mut world = World::with_info(policy(""), loaded("x"));
    play(&mut world, &["Compact", "r1 End"]);
    assert_eq!(words(world.session.history()), ["Summary: s"]);
}

#[test]
fn s_59_a_compaction_says_what_it_cut() {
    let mut seen = seen("", loaded(&"x".repeat(400)));
    let before = seen.world.session.estimate.used();
    seen.compact(1, 1, " in short \n");
    assert_eq!(seen.started(), (Some((1, 2)), Some(before)));
    let after = seen.world.session.estimate.used();
    assert!(after < before);
    let wanted = Compacted {
        span: Some((1, 2)),
        summary: Some("in short".into()),
        tokens_before: Some(before),
        tokens_after: Some(after),
        messages: Some(2),
        keep_from: Some(MessageId(3)),
        segment: Some(Segment {
            head: MessageId(3),
            anchor: seen.world.session.history()[0].id,
            tail: MessageId(6),
        }),
    };
    assert_eq!(seen.ended(), wanted);
    // The next one stands for the summary too, and counts on.
    seen.prompt(2, 1);
    seen.say(2, &"y".repeat(800));
    seen.compact(3, 3, "shorter");
    let ended = seen.ended();
    assert_eq!(
        (ended.span, ended.messages, ended.keep_from),
        (Some((3, 8)), Some(6), None)
    );
    assert_eq!(words(seen.world.session.history()), ["Summary: shorter"]);
    // A mirror that heard all this holds the same.
    let mut mirror = Mirror::new();
    let opened = Event {
        at: seen.world.now,
        run: RunId::MAIN,
        seen: crate::vocab::Seen::Real,
        what: What::Opened(loaded(&"x".repeat(400))),
    };
    mirror.apply(&opened);
    seen.events.iter().for_each(|event| mirror.apply(event));
    assert_eq!(words(mirror.history()), words(seen.world.session.history()));
}

#[test]
fn a_summary_from_before_the_session_is_a_message_like_others() {
    let mut info = info();
    info.history = vec![
        said(1, Role::Summary, "long ago"),
        said(2, Role::User, "hello"),
    ];
    let mut seen = seen("", info);
    seen.compact(1, 1, "s");
    let ended = seen.ended();
    assert_eq!((ended.span, ended.messages), (Some((1, 2)), Some(1)));
}

#[test]
fn the_request_of_a_compaction_has_no_tools_and_what_the_host_asks_besides() {
    let mut world = World::new(policy("(max_output=77)"));
    play(
        &mut world,
        &["Prompt P1", "Compact paths", "r1 Finish, End"],
    );
    let effect = Effect::StartModel(RequestId(2));
    let Some(EffectBody::Model(request)) = world.session.body(RunId::MAIN, &effect) else {
        panic!("no body");
    };
    assert!(request.tools.is_empty());
    assert_eq!((request.model, request.max_output), ("model", Some(77)));
    let instruction = request.messages.last().unwrap();
    assert_eq!(instruction.role, Role::User);
    assert!(
        instruction
            .text()
            .ends_with("\n\nThe user asks besides: paths")
    );
    // It is no message of the session's.
    act(&mut world, "r2 End");
    assert_eq!(words(world.session.history()), ["Summary: s"]);
    assert!(world.session.body(RunId::MAIN, &effect).is_none());
}

#[test]
fn om_13_after_a_compaction_the_estimate_is_raw_again() {
    let mut world = World::new(policy(""));
    play(
        &mut world,
        &["Prompt P1", "r1 Text", "r1 Usage 1000", "r1 Finish, End"],
    );
    assert!(world.session.estimate.used() > 1000);
    play(&mut world, &["Compact", "r2 End"]);
    assert_eq!(world.session.estimate.used(), world.session.estimate.raw());
    assert!(world.session.estimate.used() < 50);
    // A failed one changes nothing.
    play(
        &mut world,
        &["Prompt P2", "r3 Text", "r3 Usage 1000", "r3 Finish, End"],
    );
    let used = world.session.estimate.used();
    play(&mut world, &["Compact", "r4 Failed"]);
    assert_eq!(world.session.estimate.used(), used);
}

#[test]
fn tw_08_a_turn_is_stored_whole_though_it_was_summarised() {
    let mut world = World::new(policy("(gate_end=1)"));
    let inputs = [
        "Prompt P1 Context",
        "Prompt P2",
        "r1 Call read#n1",
        "r1 Finish, End",
        "NeedCompact",
        "Tool c1 ok",
        "r2 End",
        "r3 Text done",
        "r3 Finish, End",
    ];
    play(&mut world, &inputs);
    assert_eq!(
        words(world.session.history()),
        ["Summary: s", "Assistant: done"]
    );
    let stored = |write| match world
        .session
        .body(RunId::MAIN, &Effect::Store(WriteId(write)))
    {
        Some(EffectBody::Write(WriteBody::Turn(stored) | WriteBody::Beside(stored))) => {
            words(stored)
        }
        _ => panic!("no write"),
    };
    // What had entered the history before the turn was stored before it.
    assert_eq!(stored(1), ["User: prompt 1"]);
    let wanted = [
        "User: prompt 2",
        "Assistant c1: ",
        "c1: out",
        "Summary: s",
        "Assistant: done",
    ];
    assert_eq!(stored(2), wanted);
}

/// Everything that the turns of a world have written, in order.
fn written(inputs: &[&str], loaded: Box<SessionInfo>) -> (World, Vec<Arc<Message>>) {
    let mut all = loaded.history.clone();
    let mut world = World::with_info(policy("(gate_end=1)"), loaded);
    let mut writes = 0;
    for input in inputs {
        act(&mut world, input);
        let effect = Effect::Store(WriteId(writes + 1));
        if let Some(EffectBody::Write(WriteBody::Turn(stored) | WriteBody::Beside(stored))) =
            world.session.body(RunId::MAIN, &effect)
        {
            all.extend_from_slice(stored);
            writes += 1;
            world.store(writes, true);
        }
    }
    (world, all)
}

#[test]
fn tw_08_what_turns_wrote_makes_the_same_history_again() {
    let long = "x".repeat(400);
    let by_hand = [
        "Compact",
        "r1 End",
        "Prompt P1",
        "r2 Text so",
        "r2 Finish, End",
    ];
    let twice = [
        "Compact",
        "r1 End",
        "Compact",
        "r2 End",
        "Prompt P1",
        "r3 Text so",
        "r3 Finish, End",
    ];
    let in_a_turn = [
        "Prompt P1",
        "r1 Call read#n9",
        "r1 Finish, End",
        "NeedCompact",
        "Tool c2 ok",
        "r2 End",
        "r3 Text so",
        "r3 Finish, End",
        "Prompt P2",
        "r4 Text on",
        "r4 Finish, End",
    ];
    // What enters the history outside a turn is stored with the next one, as far as no summary stands for it.
    let between = [
        "Prompt P1 Context",
        "Compact",
        "r1 End",
        "Prompt P2 Context",
        "Shell ls",
        "Ran s1 ok",
        "Prompt P3",
        "Shell pwd",
        "Ran s2 ok",
        "r2 Text so",
        "r2 Finish, End",
        "Prompt P4",
        "r3 Text on",
        "r3 Finish, End",
    ];
    for inputs in [&by_hand[..], &twice, &in_a_turn, &between] {
        let (world, all) = written(inputs, loaded(&long));
        let history = words(world.session.history());
        assert_eq!(history[0], "Summary: s");
        assert!(all.len() > history.len());
        let mut again = info();
        again.history.clone_from(&all);
        let mut again = Session::new(policy(""), again, world.now);
        assert_eq!(words(again.history()), history, "{inputs:?}");
        // For people nothing is gone: what the summary stands for is told beside the history, once.
        let Some(Output::Event(Event {
            what: What::Opened(opened),
            ..
        })) = again.poll_output()
        else {
            panic!("not opened");
        };
        let told = opened.summarised.iter().chain(&opened.history);
        assert_eq!(told.count(), all.len(), "{inputs:?}");
        assert_eq!(words(&opened.summarised)[..2], words(&all)[..2]);
    }
}

#[test]
fn a_summary_that_does_not_say_what_it_kept_stays_in_its_place() {
    for details in [
        None,
        Some("{}"),
        Some("[]"),
        Some("{\"keep_from\":9}"),
        Some("{\"keep_from\":\"x\"}"),
    ] {
        let mut info = info();
        let mut summary = Message::clone(&said(2, Role::Summary, "so far"));
        summary.details = details.map(|text| RawJson(text.into()));
        info.history = vec![said(1, Role::User, "hello"), Arc::new(summary)];
        let world = World::with_info(policy(""), info);
        assert_eq!(
            words(world.session.history()),
            ["User: hello", "Summary: so far"],
            "{details:?}"
        );
    }
}

#[test]
fn a_turn_reports_what_its_compactions_used() {
    let mut seen = seen("", info());
    seen.prompt(1, 1);
    let usage = |request, tokens| Input::Model {
        request: RequestId(request),
        chunk: ModelChunk::Usage(Usage {
            input: Some(tokens),
            ..Usage::default()
        }),
    };
    seen.give(usage(1, 5));
    let failure = Failure {
        kind: FailureKind::ContextFull,
        status: Some(400),
        retryable: false,
        text: "too long".into(),
    };
    seen.give(Input::Model {
        request: RequestId(1),
        chunk: ModelChunk::Failed {
            failure,
            reached: true,
            retry_after_us: None,
        },
    });
    seen.give(usage(2, 70));
    seen.world.at_us(3_000_000);
    seen.say(2, "s");
    seen.give(usage(3, 900));
    seen.say(3, "done");
    let report = seen.events.iter().find_map(|event| match &event.what {
        What::TurnEnded { report, .. } => Some(report),
        _ => None,
    });
    let report = report.unwrap();
    assert_eq!((report.requests, report.api_us), (Some(3), Some(3_000_000)));
    assert_eq!(report.by_model.len(), 1);
    assert_eq!(report.by_model[0].1.input, Some(975));
}

/// Whether a prompt's first boundary, at an estimate of so many tokens, leads to a compaction.
fn due(about: &str, used: u64) -> bool {
    let mut world = World::with_info(policy(about), loaded("x"));
    let mut next = world.session.estimate.clone();
    next.add_blocks([Block::Text("prompt 1".into())].iter());
    world.session.estimate.reported(Some(used), next.raw());
    let first = act(&mut world, "Prompt P1");
    first.iter().any(|word| word == "KS Auto")
}

#[test]
fn a_compaction_is_due_at_the_mark() {
    // 70 % of 100,000 without 1,024 and the largest output, rounded up.
    for (about, mark) in [
        ("(window=100000)", 69_284),
        ("(window=100000 max_output=10000)", 62_284),
        ("(window=100000 reserve=0)", 70_000),
        ("(window=100000 reserve=0 compact_at=33)", 33_000),
        ("(window=99999 reserve=0 compact_at=33)", 33_000),
    ] {
        let world = World::new(policy(about));
        assert_eq!(world.session.mark(), mark, "{about}");
        assert!(due(about, mark), "{about}");
        assert!(!due(about, mark - 1), "{about}");
    }
    assert!(!due("", 1_000_000), "the window isn't known");
    assert!(
        !due("(window=1024)", 1_000),
        "nothing is left beside the reserve"
    );
}

#[test]
fn tools_alone_that_are_too_large_stop_it() {
    let fixed = World::new(policy("")).session.estimate.fixed();
    // The mark is 70 of 100 tokens; the tools are tested on either side of it.
    for (tools, mark, window) in [
        (69, true, true),
        (70, false, true),
        (99, false, true),
        (100, false, false),
    ] {
        let description: String = "x".repeat(usize::try_from((tools - fixed) * 4).unwrap());
        for (about, wanted) in [
            ("(window=100 reserve=0 refuse_at=250)", mark),
            ("(window=100 reserve=0 refuse_at=250 futile=1)", window),
        ] {
            let mut config = policy(about);
            config.tools[0].description = description.as_str().into();
            let mut world = World::with_info(config, loaded("some words more, to reach the mark"));
            assert_eq!(world.session.estimate.fixed(), tools);
            let first = act(&mut world, "Prompt P1");
            let began = first.iter().any(|word| word == "KS Auto");
            assert_eq!(began, wanted, "{about} {tools}: {first:?}");
        }
    }
}

#[test]
fn a_history_far_over_the_mark_is_cut_to_a_third_of_it() {
    let mut info = info();
    info.history = (1..=200)
        .map(|id| said(id, Role::User, &"x".repeat(384)))
        .collect();
    let config = policy("(window=1000 reserve=0 refuse_at=250)");
    let mut world = World::with_info(config, info);
    play(&mut world, &["Prompt P1", "r1 End"]);
    // 700 at the mark without the tools leave 230 for what is kept, at 100 a message; then the summary, the prompt.
    assert_eq!(world.session.history().len(), 4);
}
