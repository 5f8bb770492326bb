//! What the host serves and what runs beside the turn, as the model and a store see it.

use alloc::{string::String, vec::Vec};

use super::{
    act::policy,
    history::{play, sent, words},
    world::{World, config},
};
use crate::vocab::*;

/// What the model is told of a tool by a live request.
fn described(world: &World, request: u64, tool: &str) -> String {
    let effect = Effect::StartModel(RequestId(request));
    match world.session.body(RunId::MAIN, &effect) {
        Some(EffectBody::Model(request)) => {
            let found = request.tools.iter().find(|one| &*one.name == tool);
            found.map_or_else(String::new, |one| String::from(&*one.description))
        }
        _ => panic!("not live"),
    }
}

fn scheme(name: &str, description: Option<&str>, writable: bool) -> UriSpec {
    UriSpec {
        scheme: name.into(),
        description: description.map(Text::from),
        writable,
        immutable: false,
    }
}

#[test]
fn the_model_is_told_of_the_host_s_schemes_at_the_tools_that_take_them() {
    let mut config = config();
    for tool in &mut config.tools {
        if matches!(tool.side_effect, SideEffect::Read | SideEffect::Write) {
            tool.description = "Does it.".into();
            tool.uri_arg = Some("path".into());
        }
    }
    let mut world = World::new(config);
    let schemes = [
        scheme("db", Some("the tables"), false),
        scheme("s3", None, true),
    ];
    world.command(Command::Offer(Offer::Uris(schemes.to_vec())));
    play(&mut world, &["Prompt P1"]);
    assert_eq!(
        described(&world, 1, "read"),
        "Does it.\npath may also be a URI that the user's program serves:\ndb:// the tables\ns3://"
    );
    assert_eq!(
        described(&world, 1, "write"),
        "Does it.\npath may also be a URI that the user's program serves:\ns3://"
    );
    assert_eq!(described(&world, 1, "bash"), "");
    // A set counts from the next request on (section 3).
    world.command(Command::Offer(Offer::Uris(Vec::new())));
    assert!(described(&world, 1, "read").contains("db://"));
    play(&mut world, &["r1 Failed", "@1 Woken"]);
    assert_eq!(described(&world, 2, "read"), "Does it.");
}

#[test]
fn s_31_what_the_host_s_uri_holds_is_the_result() {
    let mut world = World::new(policy("(uris=1)"));
    let inputs = [
        "Offer Uris db=",
        "Prompt P1",
        "r1 Call read#n1 {\"path\":\"db://x\"}",
        "r1 Finish, End",
        "Reply a1 Uri",
    ];
    play(&mut world, &inputs);
    let last = sent(&world, 2).pop();
    assert_eq!(last.as_deref(), Some("c1: rowsa note"));
}

/// What is shown of the last call's end, and its texts.
fn shown(world: &mut World, reply: Reply) -> (Vec<(Text, Text)>, Vec<Text>) {
    let reply = Ok(reply);
    let command = Command::Reply {
        ask: AskId(1),
        reply,
    };
    let id = CommandId(1000);
    let input = Input::Call(Call { id, command });
    world.session.handle(input, world.now).unwrap();
    let mut end = None;
    while let Some(output) = world.session.poll_output() {
        if let Output::Event(Event {
            what: What::ToolEnded { content, show, .. },
            ..
        }) = output
        {
            let texts = content.iter().filter_map(Block::text).map(Text::from);
            let meta = show.as_ref().map(|show| show.meta.clone());
            end = Some((meta.unwrap_or_default(), texts.collect()));
        }
    }
    end.unwrap()
}

#[test]
fn a_scheme_says_whether_content_never_changes_unless_the_reply_does() {
    let immutable = (Text::from("immutable"), Text::from("true"));
    let mime = (Text::from("mime"), Text::from("text/csv"));
    for (scheme, said, wanted) in [
        ("db=", None, Vec::from([immutable.clone()])),
        ("db=", Some(false), Vec::new()),
        ("db", None, Vec::new()),
        ("db", Some(true), Vec::from([immutable])),
    ] {
        let mut world = World::new(policy("(uris=1)"));
        let offer = alloc::format!("Offer Uris {scheme}");
        let call = "r1 Call read#n1 {\"path\":\"db://x\"}";
        play(&mut world, &[&offer, "Prompt P1", call, "r1 Finish, End"]);
        let (meta, texts) = shown(
            &mut world,
            Reply::Uri {
                body: "".into(),
                mime: Some("text/csv".into()),
                notes: Vec::new(),
                immutable: said,
            },
        );
        let mut all = Vec::from([mime.clone()]);
        all.extend(wanted);
        // A read without content is empty.
        assert_eq!((meta, texts), (all, Vec::from([Text::from("")])));
    }
}

#[test]
fn a_shell_command_s_message_says_how_it_went() {
    let mut world = World::new(config());
    let inputs = [
        "Shell say \"hi\"",
        "Ran s1 exit:3",
        "Shell b",
        "Ran s2 silent",
        "Shell c",
        "Ran s3 cancelled",
    ];
    play(&mut world, &inputs);
    let history = world.session.history();
    let wanted = [
        "Shell: $ say \"hi\"\nout\n[exit code 3]",
        "Shell: $ b\n",
        "Shell: $ c\npart\n[cancelled]",
    ];
    assert_eq!(words(history), wanted);
    let details = history.iter().map(|one| &*one.details.as_ref().unwrap().0);
    let flags = |cancelled, output| {
        alloc::format!(
            "\"cancelled\":{cancelled},\"timed_out\":false,\"truncated\":false,\"has_output\":{output}}}"
        )
    };
    let wanted = [
        alloc::format!(
            "{{\"command\":\"say \\\"hi\\\"\",\"exit_code\":3,{}",
            flags(false, true)
        ),
        alloc::format!(
            "{{\"command\":\"b\",\"exit_code\":0,{}",
            flags(false, false)
        ),
        alloc::format!("{{\"command\":\"c\",{}", flags(true, true)),
    ];
    assert!(details.eq(wanted.iter().map(String::as_str)));
    assert_eq!(history[0].content[1].text(), Some("out"));
}

#[test]
fn s_31_what_a_shell_command_gave_never_parts_a_call_from_its_result() {
    let mut world = World::new(config());
    let inputs = [
        "Prompt P1",
        "Shell ls",
        "r1 Call read#n1",
        "r1 Call read#n2",
        "r1 Finish, End",
        "Tool c1 ok",
        "Ran s1 ok",
        "Prompt P2 Steer:Start",
        "Tool c2 ok",
    ];
    play(&mut world, &inputs);
    let wanted = [
        "User: prompt 1",
        "Assistant c1 c2: ",
        "c1: out",
        "c2: out",
        "Shell: $ ls\nout",
        "User: prompt 2",
    ];
    assert_eq!(sent(&world, 2), wanted);
}
