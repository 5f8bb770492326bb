//! Compaction behind the Server: what the model is asked, and that a host sees none of it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::openmax_kit;

use openmax_kit::duo::*;
use turnwire::vocab::*;

const READ: (&str, &str, &str) = ("c1", "look", r#"{"path":"a"}"#);
const FULL: &str = r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#;

fn auto() -> Duo {
    Duo::new(session_config(ApprovalMode::Auto))
}

/// Roles of what a request holds.
fn roles(duo: &Duo, request: usize) -> Vec<String> {
    let role = |message: &std::sync::Arc<Message>| match message.role {
        Role::Tool { .. } => "Tool".to_owned(),
        ref other => format!("{other:?}"),
    };
    duo.requests[request].messages.iter().map(role).collect()
}

/// A turn whose first call brings more than the window takes without a summary.
fn at_the_mark() -> Duo {
    let mut duo = auto();
    duo.user("go");
    duo.answer("", &[READ]);
    duo.next_tool_done(true, &"text ".repeat(2_000));
    duo
}

#[test]
fn om_13_auto_compact() {
    let mut duo = at_the_mark();
    let before = [
        "budget",
        "usage",
        "message_done",
        "tool_start(c1)",
        "tool_end(c1)",
    ];
    assert_eq!(duo.labels(), before, "the step waits for the summary");
    assert_eq!(roles(&duo, 1), ["User", "Assistant", "Tool", "User"]);
    duo.answer("what was done", &[]);
    assert_eq!(duo.labels(), ["budget"], "a host hears no summary");
    assert_eq!(roles(&duo, 2), ["Summary"]);
    assert_eq!(duo.requests[2].messages[0].text(), "what was done");
    duo.answer("Done.", &[]);
    assert_eq!(
        duo.labels(),
        ["token*", "usage", "message_done", "done(stop)"]
    );
    let used: Vec<u64> = duo
        .all("budget", "used_tokens")
        .iter()
        .map(|used| used.as_u64().unwrap())
        .collect();
    assert!(used[1] < 100, "{used:?}");
    assert!(duo.all("compacted", "tokens_before").is_empty());
}

#[test]
fn om_13_auto_compact_fails_and_the_turn_goes_on() {
    let mut duo = at_the_mark();
    duo.lines();
    duo.head(401, None);
    duo.close();
    assert_eq!(duo.labels(), ["budget"]);
    assert_eq!(roles(&duo, 2), ["User", "Assistant", "Tool"]);
    duo.answer("Done.", &[]);
    assert_eq!(
        duo.labels(),
        ["token*", "usage", "message_done", "done(stop)"]
    );
}

#[test]
fn om_23_cancel_while_the_history_is_summarised() {
    let mut duo = at_the_mark();
    duo.lines();
    duo.cancel();
    assert_eq!(duo.labels(), ["done(cancelled)"]);
    duo.settle_stopped();
    duo.user("again");
    assert_eq!(
        roles(&duo, 2),
        ["User", "Assistant", "Tool", "User"],
        "it is due again"
    );
    duo.answer("what was done", &[]);
    assert_eq!(roles(&duo, 3), ["Summary", "User"]);
}

#[test]
fn om_26_a_full_context_is_summarised_and_sent_again_once() {
    let mut duo = auto();
    duo.user("first");
    duo.answer("one", &[]);
    duo.user("second");
    duo.lines();
    duo.head(400, None);
    duo.bytes(FULL);
    duo.close();
    assert_eq!(duo.labels(), [""; 0], "no retry is said of it");
    assert_eq!(roles(&duo, 2), ["User", "Assistant", "User", "User"]);
    duo.answer("what was said", &[]);
    assert_eq!(roles(&duo, 3), ["Summary"]);
    assert_eq!(duo.labels(), [""; 0], "the same step goes on");
    duo.head(400, None);
    duo.bytes(FULL);
    duo.close();
    assert_eq!(duo.labels(), ["error", "done(error)"]);
}

/// The receipt stands in the exchange of the prompt that asked for it; nothing is said unasked.
#[test]
fn om_13_a_compaction_between_prompts_says_nothing() {
    let mut duo = auto();
    duo.user("first");
    duo.answer("one", &[]);
    duo.lines();
    duo.command(1, Command::Compact { instructions: None });
    duo.user("too early");
    assert_eq!(duo.labels(), ["protocol_error", "done(refused)"]);
    duo.answer("a", &[]);
    assert_eq!(roles(&duo, 1), ["User", "Assistant", "User"]);
    duo.command(2, Command::Compact { instructions: None });
    assert_eq!(duo.labels(), [""; 0]);
    // In a turn it is refused.
    duo.user("second");
    assert_eq!(roles(&duo, 2), ["Summary", "User"]);
    duo.command(3, Command::Compact { instructions: None });
    duo.answer("two", &[]);
    assert_eq!(duo.requests.len(), 3);
    assert_eq!(
        duo.labels(),
        ["budget", "token*", "usage", "message_done", "done(stop)"]
    );
}
