//! Scenes of agentx and claude through a Session and a Server: what the host, the model and the tools do, and the lines
//! that come of it.

use crate::agentx_kit::duo::Duo;
use turnwire::protocol::agentx::Policy;

/// Name, what happens, lines of the strict wire, lines of claude; an empty one isn't played.
const SCENES: &[(&str, &str, &str, &str)] = &[
    (
        "a text turn",
        "«u1» reply",
        "init running assistant(text) end(success,u1) idle",
        "queued(u1) running started(u1) init assistant(text) end(success,u1) idle completed(u1)",
    ),
    (
        "wire_010 an interrupt while text streams",
        "«u1» begin text «interrupt:i1» settle",
        "init running answer(i1) assistant(text) end(error_during_execution,u1) idle",
        "queued(u1) running started(u1) init answer(i1) assistant(text,aborted) user end(error_during_execution,u1) \
         idle cancelled(u1)",
    ),
    (
        "wire_010 an interrupt when nothing runs",
        "«interrupt:i1»",
        "init answer(i1)",
        "answer(i1)",
    ),
    (
        "wire_010 an interrupt twice, and the next prompt",
        "«u1» begin text «interrupt:i1» «interrupt:i2» settle «u2» reply",
        "init running answer(i1) assistant(text) end(error_during_execution,u1) idle answer(i2) running \
         assistant(text) end(success,u2) idle",
        "",
    ),
    (
        "wire_006 an allowed call",
        "«u1» calls(c1:write) «allow#1» ran(c1) reply",
        "init running assistant(text) assistant(tool_use) requires_action ask(can_use_tool) running result(c1) \
         assistant(text) end(success,u1) idle",
        "queued(u1) running started(u1) init assistant(text) assistant(tool_use) requires_action ask(can_use_tool) \
         running result(c1) assistant(text) end(success,u1) idle completed(u1)",
    ),
    (
        "a denied call",
        "«u1» calls(c1:write) «deny#1» reply",
        "init running assistant(text) assistant(tool_use) requires_action ask(can_use_tool) running result(c1,error) \
         assistant(text) end(success,u1) idle",
        "queued(u1) running started(u1) init assistant(text) assistant(tool_use) requires_action ask(can_use_tool) \
         running result(c1,error) assistant(text) end(success,u1) idle completed(u1)",
    ),
    (
        "ax_p18 a call that is denied, and the turn with it",
        "«u1» calls(c1:write,c2:write) «deny!#1»",
        "init running assistant(text) assistant(tool_use) assistant(tool_use) requires_action ask(can_use_tool) \
         running result(c1,error) result(c2,error) end(error_during_execution,u1) idle",
        "queued(u1) running started(u1) init assistant(text) assistant(tool_use) assistant(tool_use) requires_action \
         ask(can_use_tool) running result(c1,error) result(c2,error) user end(error_during_execution,u1) idle \
         cancelled(u1)",
    ),
    (
        "wire_011 an interrupt with a permission open",
        "«u1» calls(c1:write) «interrupt:i1» settle",
        "init running assistant(text) assistant(tool_use) requires_action ask(can_use_tool) withdraw(1) answer(i1) \
         result(c1,error) end(error_during_execution,u1) idle",
        "queued(u1) running started(u1) init assistant(text) assistant(tool_use) requires_action ask(can_use_tool) \
         withdraw(1) answer(i1) result(c1,error) user end(error_during_execution,u1) idle cancelled(u1)",
    ),
    (
        "ax_s12 an interrupt with two permissions open",
        "«u1» calls(c1:peek,c2:peek) «interrupt:i1» settle",
        "init running assistant(text) assistant(tool_use) assistant(tool_use) requires_action ask(can_use_tool) \
         ask(can_use_tool) withdraw(1) withdraw(2) answer(i1) result(c1,error) result(c2,error) \
         end(error_during_execution,u1) idle",
        "",
    ),
    (
        "two prompts, one after the other",
        "«u1» «u2» reply reply",
        "init running assistant(text) end(success,u1) idle running assistant(text) end(success,u2) idle",
        "queued(u1) running started(u1) init queued(u2) assistant(text) end(success,u1) idle completed(u1) running \
         started(u2) init assistant(text) end(success,u2) idle completed(u2)",
    ),
    (
        "later comes after next",
        "«u1» «u2:later» «u3:next» reply reply reply",
        "init running assistant(text) end(success,u1) idle running assistant(text) end(success,u3) idle running \
         assistant(text) end(success,u2) idle",
        "",
    ),
    (
        "priority now",
        "«u1» begin text «u2:now» settle reply",
        "init running assistant(text) end(error_during_execution,u1) idle running assistant(text) end(success,u2) idle",
        "queued(u1) running started(u1) init queued(u2) assistant(text,aborted) end(success,u1) idle completed(u1) \
         running started(u2) init assistant(text) end(success,u2) idle completed(u2)",
    ),
    (
        "ax_p22 the end of the input with a permission open",
        "«u1» calls(c1:write) «eof» reply",
        "init running assistant(text) assistant(tool_use) requires_action ask(can_use_tool) running result(c1,error) \
         assistant(text) end(success,u1) idle exit(0)",
        "queued(u1) running started(u1) init assistant(text) assistant(tool_use) requires_action ask(can_use_tool) \
         running result(c1,error) assistant(text) end(success,u1) idle completed(u1) exit(0)",
    ),
    (
        "the end of the input in a turn",
        "«u1» begin «eof» text fin(end_turn)",
        "init running assistant(text) end(success,u1) idle exit(0)",
        "queued(u1) running started(u1) init assistant(text) end(success,u1) idle completed(u1) exit(0)",
    ),
    (
        "the end of the input after an interrupt",
        "«u1» begin text «interrupt:i1» settle «eof»",
        "init running answer(i1) assistant(text) end(error_during_execution,u1) idle exit(1)",
        "",
    ),
    (
        "the end of the input before there was a prompt",
        "«eof»",
        "init end(error_during_execution,null) exit(1)",
        "exit(0)",
    ),
    (
        "a request that fails for good",
        "«u1» fail(400)",
        "init running end(error_during_execution,u1) idle",
        "queued(u1) running started(u1) init assistant(text,invalid_request) end(success!,u1) idle completed(u1)",
    ),
    (
        "a request that is sent again",
        "«u1» fail(500) wake reply",
        "init running assistant(text) end(success,u1) idle",
        "queued(u1) running started(u1) init retry(1) assistant(text) end(success,u1) idle completed(u1)",
    ),
    (
        "a request that is sent again behind a summary",
        "«u1» reply «u2» fail(413) reply fail(500) wake reply",
        "init running assistant(text) end(success,u1) idle running status(compacting) status(null) compact_boundary \
         assistant(text) end(success,u2) idle",
        "queued(u1) running started(u1) init assistant(text) end(success,u1) idle completed(u1) \
         queued(u2) running started(u2) init status(compacting) status(null) compact_boundary retry(1) assistant(text) \
         end(success,u2) idle completed(u2)",
    ),
    (
        "a reply that breaks off",
        "«u1» begin text cut",
        "init running assistant(text) end(error_during_execution,u1) idle",
        "queued(u1) running started(u1) init assistant(text) end(error_during_execution,u1) idle completed(u1)",
    ),
    (
        "thinking",
        "«u1» begin think text fin(end_turn)",
        "init running assistant(text) assistant(text) end(success,u1) idle",
        "queued(u1) running started(u1) init assistant(thinking) assistant(text) end(success,u1) idle completed(u1)",
    ),
    (
        "a call that nobody is asked about",
        "«u1» calls(c1:look) ran(c1) reply",
        "init running assistant(text) assistant(tool_use) result(c1) assistant(text) end(success,u1) idle",
        "queued(u1) running started(u1) init assistant(text) assistant(tool_use) result(c1) assistant(text) \
         end(success,u1) idle completed(u1)",
    ),
    (
        "wire_010 an interrupt before the first byte",
        "«u1» «interrupt:i1» settle",
        "init running answer(i1) end(error_during_execution,u1) idle",
        "queued(u1) running started(u1) init answer(i1) user end(error_during_execution,u1) idle cancelled(u1)",
    ),
    (
        "wire_010 an interrupt while a tool runs",
        "«u1» calls(c1:look) «interrupt:i1» settle",
        "init running assistant(text) assistant(tool_use) answer(i1) result(c1,error) \
         end(error_during_execution,u1) idle",
        "queued(u1) running started(u1) init assistant(text) assistant(tool_use) answer(i1) result(c1,error) user \
         end(error_during_execution,u1) idle cancelled(u1)",
    ),
    (
        "wire_010 an interrupt in the wait before a retry",
        "«u1» fail(500) «interrupt:i1» settle",
        "init running answer(i1) end(error_during_execution,u1) idle",
        "queued(u1) running started(u1) init retry(1) answer(i1) user end(error_during_execution,u1) idle cancelled(u1)",
    ),
    (
        "wire_010 an interrupt while the history is summarised",
        "«u1» reply «u2» fail(413) «interrupt:i1» settle",
        "init running assistant(text) end(success,u1) idle running status(compacting) answer(i1) status(null) \
         end(error_during_execution,u2) idle",
        "queued(u1) running started(u1) init assistant(text) end(success,u1) idle completed(u1) queued(u2) running \
         started(u2) init status(compacting) answer(i1) status(null) user end(error_during_execution,u2) idle \
         cancelled(u2)",
    ),
];

fn claude(partial: bool) -> Duo {
    let mut config = crate::agentx_kit::duo::server_config(Policy::CLAUDE);
    config.states = true;
    config.partial = partial;
    Duo::with(config, session(&Policy::CLAUDE))
}

/// With a tool that reads and is asked about.
fn session(policy: &Policy) -> turnwire::session::SessionConfig {
    use turnwire::vocab::{Rule, RuleBehaviour, SideEffect};
    let mut config = crate::agentx_kit::duo::session_config(policy);
    config
        .tools
        .push(crate::agentx_kit::duo::tool("peek", SideEffect::Read));
    config.rules.push(Rule {
        behaviour: RuleBehaviour::Ask,
        tool: "peek".into(),
        pattern: None,
    });
    config
}

#[test]
fn scenes_come_to_their_lines_in_both_wires() {
    let mut wrong = Vec::new();
    for (name, scene, strict, rich) in SCENES {
        let duos = [
            (
                "agentx",
                Duo::with(
                    crate::agentx_kit::duo::server_config(Policy::AGENTX),
                    session(&Policy::AGENTX),
                ),
                strict,
            ),
            ("claude", claude(false), rich),
        ];
        for (preset, mut duo, expected) in duos {
            if expected.is_empty() {
                continue;
            }
            duo.play(scene);
            let words = duo.words();
            let expected = expected.split_whitespace().collect::<Vec<_>>().join(" ");
            if words != expected {
                wrong.push(format!(
                    "{name} ({preset})\n  is   {words}\n  want {expected}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pieces_of_replies_are_told_as_the_provider_does() {
    let mut duo = claude(true);
    duo.play("«u1» begin text text fin(end_turn)");
    assert_eq!(
        duo.words(),
        "queued(u1) running started(u1) init status(requesting) message_start start(0) delta* assistant(text) stop(0) \
         message_delta(end_turn) message_stop end(success,u1) idle completed(u1)"
    );
    duo.play("«u2» begin text «interrupt:i1» settle");
    assert_eq!(
        duo.words(),
        "queued(u2) running started(u2) init status(requesting) message_start start(0) delta* answer(i1) \
         assistant(text,aborted) user stop(0) message_delta(null) message_stop end(error_during_execution,u2) idle \
         cancelled(u2)"
    );
}

#[test]
fn pieces_of_replies_are_told_as_text_in_the_strict_wire() {
    let mut duo = Duo::partial(Policy::AGENTX);
    duo.play("«u1» begin text text fin(end_turn)");
    assert_eq!(
        duo.words(),
        "init running piece* assistant(text) end(success,u1) idle"
    );
}
