//! Each law: a stream that keeps it and one that breaks it.

mod calls;
mod turns;

use alloc::{boxed::Box, sync::Arc, vec, vec::Vec};

use super::*;

/// One entry of a stream.
#[derive(Clone)]
enum Entry {
    Command(u64, Command),
    Says(What),
    Nested(u64, What),
    Does(Effect),
    Settles(u64),
    Quiet,
}
use Entry::{Command as C, Does, Nested, Quiet, Says, Settles};

fn run(scope: Scope, stream: &[Entry]) -> Vec<Breach> {
    let mut checker = Checker::new(scope);
    for (n, entry) in stream.iter().enumerate() {
        let at = Now {
            mono_us: n as u64,
            unix_ms: n as u64,
        };
        let event = |run, what: &What| Event {
            at,
            run,
            seen: Seen::Real,
            what: what.clone(),
        };
        match entry {
            C(id, command) => checker.command(&Call {
                id: CommandId(*id),
                command: command.clone(),
            }),
            Says(what) => checker.output(&Output::Event(&event(RunId::MAIN, what))),
            Nested(run, what) => checker.output(&Output::Event(&event(RunId(*run), what))),
            Does(effect) => checker.output(&Output::Effect {
                run: RunId::MAIN,
                effect: effect.clone(),
            }),
            Settles(request) => checker.input(&Input::Model {
                request: RequestId(*request),
                chunk: ModelChunk::End,
            }),
            Quiet => checker.quiet(),
        }
    }
    checker
        .violations()
        .iter()
        .map(|violation| violation.breach)
        .collect()
}

#[track_caller]
fn clean(stream: &[Entry]) {
    assert_eq!(run(Scope::Session, stream), []);
}

#[track_caller]
fn broken(stream: &[Entry], breach: Breach) {
    let found = run(Scope::Session, stream);
    assert_eq!(found.first(), Some(&breach), "{found:?}");
}

fn join(parts: &[&[Entry]]) -> Vec<Entry> {
    parts.concat()
}

/// The stream without its entry number `n`.
fn without(stream: &[Entry], n: usize) -> Vec<Entry> {
    let mut stream = stream.to_vec();
    stream.remove(n);
    stream
}

fn with(stream: &[Entry], n: usize, more: &[Entry]) -> Vec<Entry> {
    let mut stream = stream.to_vec();
    stream.splice(n..n, more.iter().cloned());
    stream
}

fn swapped(stream: &[Entry], a: usize, b: usize) -> Vec<Entry> {
    let mut stream = stream.to_vec();
    stream.swap(a, b);
    stream
}

fn prompt(id: u64, deliver: Deliver) -> Command {
    Command::Prompt(Prompt {
        id: PromptId(id),
        tag: None,
        content: vec![],
        deliver,
        literal: false,
        details: None,
    })
}

fn replied(command: u64, answer: Answer) -> Entry {
    Says(What::Replied {
        command: CommandId(command),
        reply: Ok(answer),
    })
}

fn refused(command: u64) -> Entry {
    Says(What::Replied {
        command: CommandId(command),
        reply: Err(Refusal::Busy),
    })
}

fn message(id: u64, prompt: Option<u64>, content: Vec<Block>) -> Arc<Message> {
    Arc::new(Message {
        id: MessageId(id),
        role: Role::User,
        content: content.into_iter().map(Arc::new).collect(),
        origin: Origin::Host,
        prompt: prompt.map(PromptId),
        about: None,
        at_ms: 0,
        details: None,
    })
}

fn text(text: &str) -> Block {
    Block::Text(Text::from(text))
}

fn tool_use(call: u64) -> Block {
    let input = ToolInput::Object(RawJson(Text::from("{}")));
    Block::ToolUse {
        call: CallId(call),
        provider_id: None,
        name: Text::from("t"),
        input,
    }
}

fn failure() -> Failure {
    Failure::new(FailureKind::Server, "no")
}

fn applied(prompt: u64, turn: Option<u64>) -> Entry {
    Says(What::PromptApplied {
        prompt: PromptId(prompt),
        turn: turn.map(TurnId),
    })
}

fn said(prompt: u64) -> Entry {
    Says(What::Message(message(1000 + prompt, Some(prompt), vec![])))
}

fn prompt_ended(prompt: u64, end: End) -> Entry {
    Says(What::PromptEnded {
        prompt: PromptId(prompt),
        end,
    })
}

fn queued(prompt: u64, lane: Lane) -> Entry {
    Says(What::Queued {
        prompt: PromptId(prompt),
        lane,
    })
}

fn turn_started(turn: u64) -> Entry {
    Says(What::TurnStarted {
        turn: TurnId(turn),
        cause: Cause::Prompt,
    })
}

fn turn_ended(turn: u64, end: End) -> Entry {
    let (report, pending) = (Box::default(), Pending::default());
    Says(What::TurnEnded {
        turn: TurnId(turn),
        end,
        answer: None,
        report,
        pending,
    })
}

fn step_started(step: u64, number: u32) -> Entry {
    Says(What::StepStarted {
        step: StepId(step),
        number,
    })
}

fn step_ended(step: u64) -> Entry {
    Says(What::StepEnded { step: StepId(step) })
}

fn request_started(request: u64, attempt: u32) -> Entry {
    Says(What::RequestStarted {
        request: RequestId(request),
        attempt,
    })
}

fn request_ended(request: u64, outcome: RequestOutcome) -> Entry {
    let model = ModelRef {
        provider: None,
        model: Text::from("m"),
    };
    let request = RequestId(request);
    Says(What::RequestEnded {
        request,
        outcome,
        model,
        usage: None,
        cost: Cost::NotSaid,
        api_us: 0,
    })
}

fn complete() -> RequestOutcome {
    RequestOutcome::Complete {
        finish: Text::from("stop"),
    }
}

fn start_model(request: u64) -> Entry {
    Does(Effect::StartModel(RequestId(request)))
}

fn message_started(message: u64) -> Entry {
    let message = MessageId(message);
    Says(What::MessageStarted {
        message,
        request: None,
        provider_id: None,
        model: None,
        usage: None,
    })
}

fn block_started(message: u64, block: u32) -> Entry {
    Says(What::BlockStarted {
        message: MessageId(message),
        block,
        head: BlockHead::Text,
    })
}

fn delta(message: u64, block: u32, text: &str) -> Entry {
    Says(What::Delta {
        message: MessageId(message),
        block,
        kind: Kind::Text,
        text: Text::from(text),
    })
}

fn message_ended(id: u64, kept: bool, content: Vec<Block>) -> Entry {
    let message = message(id, None, content);
    Says(What::MessageEnded {
        message,
        stop: Stop::End,
        kept,
        calls: CallList::Complete,
    })
}

fn retry(attempt: u32) -> Entry {
    Says(What::RetryScheduled {
        attempt,
        max: 8,
        wait_us: None,
        why: failure(),
    })
}

fn retry_ended(ok: bool) -> Entry {
    Says(What::RetryEnded { ok, why: None })
}

fn tool_started(call: u64, message: u64) -> Entry {
    Says(What::ToolStarted {
        call: CallId(call),
        provider_id: None,
        name: Text::from("t"),
        input: None,
        cause: ToolCause::Model {
            message: MessageId(message),
            block: 0,
        },
        side_effect: SideEffect::Write,
    })
}

fn tool_ended(call: u64) -> Entry {
    Says(What::ToolEnded {
        call: CallId(call),
        outcome: ToolOutcome::Ok,
        content: vec![],
        show: None,
    })
}

fn skipped(call: u64) -> Entry {
    Says(What::ToolSkipped {
        call: CallId(call),
        why: SkipWhy::Cancelled,
    })
}

fn decided(call: u64, allow: bool) -> Entry {
    let verdict = Verdict {
        allow,
        by: Decider::Host,
        input: None,
        reason: None,
        risk: None,
        block: None,
    };
    Says(What::Decided {
        call: CallId(call),
        verdict,
    })
}

fn run_tool(call: u64) -> Entry {
    Does(Effect::RunTool { call: CallId(call) })
}

fn permission(call: u64) -> Ask {
    let text = Text::from("t");
    Ask::Permission(Box::new(PermissionAsk {
        call: Some(CallId(call)),
        tool: text.clone(),
        reason: AskReason::Gate,
        summary: text.clone(),
        detail: text,
        body: None,
        suggestions: vec![],
        env: vec![],
        due: None,
    }))
}

fn asked(ask: u64, call: u64) -> What {
    What::Asked {
        ask: AskId(ask),
        body: permission(call),
    }
}

fn ask_closed(ask: u64, allow: bool) -> What {
    What::AskClosed {
        ask: AskId(ask),
        how: AskClose::Answered {
            by: Decider::Host,
            allow: Some(allow),
        },
    }
}

fn cancelling(command: u64, turn: u64) -> Entry {
    replied(
        command,
        Answer::Cancelling {
            hit: Hit::Turn(TurnId(turn)),
            queued: vec![],
        },
    )
}

fn cancel(id: u64) -> Entry {
    C(
        id,
        Command::Cancel {
            what: CancelWhat::Turn {
                queue: QueueFate::Run,
            },
            why: CancelWhy::Host,
        },
    )
}

fn closed() -> Entry {
    Says(What::Closed {
        why: CloseWhy::Drained,
    })
}

fn finished() -> End {
    End::Finished { finish: None }
}

fn cancelled() -> End {
    End::Cancelled(CancelWhy::Host)
}

/// Entries 0–6: a prompt, up to its first request (O of the traces).
fn opening() -> Vec<Entry> {
    vec![
        C(1, prompt(1, Deliver::IfIdle)),
        replied(1, Answer::Admitted(Admitted::Started)),
        turn_started(1),
        step_started(1, 1),
        applied(1, Some(1)),
        said(1),
        request_started(1, 1),
        start_model(1),
    ]
}

/// A whole text reply to request 1, and the end of turn 1.
fn closing() -> Vec<Entry> {
    vec![
        message_started(5),
        block_started(5, 0),
        delta(5, 0, "he"),
        delta(5, 0, "llo"),
        Says(What::BlockEnded {
            message: MessageId(5),
            block: 0,
            content: Arc::new(text("hello")),
        }),
        Settles(1),
        message_ended(5, true, vec![text("hello")]),
        request_ended(1, complete()),
        step_ended(1),
        turn_ended(1, finished()),
        prompt_ended(1, finished()),
        Says(What::Settled),
        Quiet,
    ]
}

fn turn() -> Vec<Entry> {
    join(&[&opening(), &closing()])
}

/// A reply with these calls, whole.
fn calls(ids: &[u64]) -> Vec<Entry> {
    let mut stream = vec![message_started(5)];
    for (block, _) in (0..).zip(ids) {
        stream.push(block_started(5, block));
        stream.push(Says(What::Delta {
            message: MessageId(5),
            block,
            kind: Kind::Input,
            text: Text::from("{}"),
        }));
    }
    stream.push(Settles(1));
    stream.push(message_ended(
        5,
        true,
        ids.iter().map(|id| tool_use(*id)).collect(),
    ));
    stream.push(request_ended(1, complete()));
    stream
}

/// The end of a turn after its first step.
fn over(end: &End) -> Vec<Entry> {
    vec![
        step_ended(1),
        turn_ended(1, end.clone()),
        prompt_ended(1, end.clone()),
        Says(What::Settled),
        Quiet,
    ]
}

fn with_calls(ids: &[u64], rest: &[Entry]) -> Vec<Entry> {
    join(&[&opening(), &calls(ids), rest, &over(&finished())])
}

/// A first attempt that failed after this much text, then a second one.
fn retried(shown: &[Entry], ends: &[Entry]) -> Vec<Entry> {
    let second = [retry(2), request_started(2, 2), start_model(2), Settles(2)];
    let failed = [
        Settles(1),
        request_ended(1, RequestOutcome::Failed(failure())),
    ];
    join(&[
        &opening(),
        shown,
        &failed,
        &second,
        &[request_ended(2, complete())],
        ends,
        &over(&finished()),
    ])
}
