//! The neutral events that words of the notation stand for.

use std::sync::Arc;

use turnwire::vocab::*;

use super::{Rig, failure, info};

impl Rig {
    pub(crate) fn what(&mut self, verb: &str, args: &[&str]) -> What {
        let first = args[0];
        let second = args.get(1).copied().unwrap_or_default();
        match verb {
            "R" => {
                let cancelling = |hit| Answer::Cancelling {
                    hit,
                    queued: args
                        .iter()
                        .skip(2)
                        .filter_map(|id| self.prompts.get(*id).copied())
                        .collect(),
                };
                let reply = Ok(match second {
                    "Started" => Answer::Admitted(Admitted::Started),
                    "Local" => Answer::Admitted(Admitted::Local),
                    "Steer" => Answer::Admitted(Admitted::Queued(Lane::Steer)),
                    "FollowUp" => Answer::Admitted(Admitted::Queued(Lane::FollowUp)),
                    "Next" => Answer::Admitted(Admitted::Queued(Lane::Next)),
                    "Turn" => cancelling(Hit::Turn(TurnId(self.turn))),
                    "Retry" => cancelling(Hit::Retry),
                    "Compaction" => cancelling(Hit::Compaction),
                    "Nothing" => cancelling(Hit::Nothing),
                    "Withdrawn" => Answer::Withdrawn(true),
                    "Done" => Answer::Done,
                    "Session" => Answer::Session {
                        vetoed: false,
                        text: None,
                    },
                    "Vetoed" => Answer::Session {
                        vetoed: true,
                        text: None,
                    },
                    "Busy" | "Cancelled" | "Unsupported" => Answer::Done,
                    other => panic!("no such reply: {other}"),
                });
                let reply = match second {
                    "Busy" => Err(Refusal::Busy),
                    "Cancelled" => Err(Refusal::Cancelled),
                    "Unsupported" => Err(Refusal::Unsupported("it")),
                    _ => reply,
                };
                let Some(command) = self.commands.get(first) else {
                    panic!("{first} made no command")
                };
                What::Replied {
                    command: *command,
                    reply,
                }
            }
            "Qd" => What::Queued {
                prompt: self.prompts[first],
                lane: match second {
                    "Steer" => Lane::Steer,
                    "FollowUp" => Lane::FollowUp,
                    _ => Lane::Next,
                },
            },
            "Ap" => What::PromptApplied {
                prompt: self.prompts[first],
                turn: Some(TurnId(self.turn)),
            },
            "M" => {
                let prompt = self.prompts.get(second).copied();
                What::Message(match first {
                    "user" => self.message(Role::User, Origin::Host, "text", prompt),
                    "note" => self.message(Role::Note, Origin::Harness, "note", None),
                    "job" => self.message(Role::Note, Origin::Job(JobId(1)), "over", None),
                    "output" => self.message(
                        Role::Note,
                        Origin::Extension("command".into()),
                        "output",
                        prompt,
                    ),
                    other => panic!("no such message: {other}"),
                })
            }
            "T+" => {
                self.turn += 1;
                What::TurnStarted {
                    turn: TurnId(self.turn),
                    cause: Cause::Prompt,
                }
            }
            "T-" => What::TurnEnded {
                turn: TurnId(self.turn),
                end: end(first),
                answer: None,
                report: Box::default(),
                pending: Pending {
                    queued: u32::from(second == "held"),
                    background: second == "bg",
                    resumes: false,
                },
            },
            "S+" => {
                self.step += 1;
                What::StepStarted {
                    step: StepId(self.step),
                    number: 1,
                }
            }
            "S-" => What::StepEnded {
                step: StepId(self.step),
            },
            "P-" => What::PromptEnded {
                prompt: self.prompts[first],
                end: end(second),
            },
            "Set" => What::Settled,
            "Cx" => What::Context {
                used: 1_000,
                window: 200_000,
                estimated: true,
            },
            "Rq" => What::RequestStarted {
                request: RequestId(1),
                attempt: 1,
            },
            "Rq-" => {
                let usage = (first == "ok").then_some(Usage {
                    input: Some(11),
                    output: Some(5),
                    reasoning: Some(2),
                    ..Usage::default()
                });
                What::RequestEnded {
                    request: RequestId(1),
                    outcome: match first {
                        "ok" => RequestOutcome::Complete {
                            finish: "stop".into(),
                        },
                        "Failed" => RequestOutcome::Failed(failure("backend returned 500")),
                        "Truncated" => RequestOutcome::Truncated,
                        "Cancelled" => RequestOutcome::Cancelled,
                        other => panic!("no such outcome: {other}"),
                    },
                    model: info().model,
                    usage,
                    cost: Cost::Known {
                        pico_usd: 25_000_000,
                        basis: CostBasis::Estimated,
                        source: "list".into(),
                        as_of: "2026".into(),
                    },
                    api_us: 78_500,
                }
            }
            "m+" => {
                self.message += 1;
                self.blocks.clear();
                self.open = None;
                What::MessageStarted {
                    message: MessageId(self.message),
                    request: Some(RequestId(1)),
                    provider_id: Some("chatcmpl-1".into()),
                    model: None,
                    usage: None,
                }
            }
            "b+" => {
                let head = match first {
                    "text" => BlockHead::Text,
                    "thinking" => BlockHead::Thinking,
                    _ => BlockHead::ToolUse {
                        call: self.call_id(second),
                        provider_id: Some(second.into()),
                        name: "bash".into(),
                        runs: true,
                    },
                };
                let name = if first == "call" { second } else { first };
                self.open = Some((name.into(), String::new()));
                What::BlockStarted {
                    message: MessageId(self.message),
                    block: u32::try_from(self.blocks.len()).unwrap(),
                    head,
                }
            }
            "b-" => {
                let (head, text) = self.open.take().expect("a block is open");
                let block = Arc::new(self.block(&head, &text));
                self.blocks.push(block.clone());
                What::BlockEnded {
                    message: MessageId(self.message),
                    block: u32::try_from(self.blocks.len() - 1).unwrap(),
                    content: block,
                }
            }
            "m-" => {
                if let Some((head, text)) = self.open.take() {
                    let block = self.block(&head, &text);
                    self.blocks.push(Arc::new(block));
                }
                let mut message = Message {
                    id: MessageId(self.message),
                    role: Role::Assistant,
                    content: self.blocks.clone(),
                    origin: Origin::Harness,
                    prompt: None,
                    about: None,
                    at_ms: self.now.unix_ms,
                    details: None,
                };
                if second == "void" {
                    message.content.clear();
                }
                What::MessageEnded {
                    message: Arc::new(message),
                    stop: match first {
                        "End" => Stop::End,
                        "ToolUse" => Stop::ToolUse,
                        "MaxTokens" => Stop::MaxTokens,
                        "Failed" => Stop::Failed,
                        "Truncated" => Stop::Truncated,
                        "Cancelled" => Stop::Cancelled,
                        "Detached" => Stop::Detached,
                        other => panic!("no such stop: {other}"),
                    },
                    kept: second != "void",
                    calls: CallList::Complete,
                }
            }
            "t+" => What::ToolStarted {
                call: self.call_id(first),
                provider_id: Some(first.into()),
                name: "bash".into(),
                input: Some(ToolInput::Object(RawJson(r#"{"x":1}"#.into()))),
                cause: ToolCause::Model {
                    message: MessageId(self.message),
                    block: 0,
                },
                side_effect: SideEffect::Shell,
            },
            "t~" => What::ToolProgress {
                call: self.call_id(first),
                partial: Progress::Append(vec![Block::Text("one\n".into())]),
                elapsed_us: 1,
            },
            "t-" => What::ToolEnded {
                call: self.call_id(first),
                outcome: match second {
                    "" => ToolOutcome::Ok,
                    "Cancelled" => ToolOutcome::Cancelled,
                    "Detached" => ToolOutcome::Detached(JobId(1)),
                    "Denied" => ToolOutcome::Denied(Decider::Host),
                    _ => ToolOutcome::Failed,
                },
                content: vec![Block::Text("one\n".into())],
                show: None,
            },
            "skip" => What::ToolSkipped {
                call: self.call_id(first),
                why: SkipWhy::Cancelled,
            },
            "A?" | "H?" | "U?" => {
                self.asks += 1;
                let call = self.call_id(first);
                let body = match verb {
                    "A?" => Ask::Permission(Box::new(PermissionAsk {
                        call: Some(call),
                        tool: "bash".into(),
                        reason: AskReason::Gate,
                        summary: "Command: echo hi".into(),
                        detail: "echo hi".into(),
                        body: None,
                        suggestions: vec![],
                        env: vec![],
                        due: None,
                    })),
                    "H?" => Ask::Tool {
                        call,
                        name: "lookup".into(),
                        input: RawJson(r#"{"id":42}"#.into()),
                    },
                    _ => Ask::Uri {
                        op: UriOp::Read,
                        uri: "db://users/42".into(),
                        body: None,
                    },
                };
                What::Asked {
                    ask: AskId(self.asks),
                    body,
                }
            }
            "A!" | "H!" | "U!" => What::AskClosed {
                ask: AskId(self.asks),
                how: match first {
                    "answered" | "approved" => AskClose::Answered {
                        by: Decider::Host,
                        allow: (verb == "A!").then_some(true),
                    },
                    "declined" => AskClose::Answered {
                        by: Decider::Host,
                        allow: Some(false),
                    },
                    "cancelled" => AskClose::Cancelled,
                    "timeout" => AskClose::TimedOut,
                    "gone" => AskClose::HostGone,
                    _ => AskClose::Fault("it failed".into()),
                },
            },
            "Dc" => What::Decided {
                call: CallId(1),
                verdict: Verdict {
                    allow: true,
                    by: Decider::Host,
                    input: None,
                    reason: None,
                    risk: None,
                    block: None,
                },
            },
            "Ry" => What::RetryScheduled {
                attempt: first.parse().unwrap_or(2),
                max: 10,
                wait_us: Some(422_500),
                why: failure("backend returned 500"),
            },
            "Ry-" => What::RetryEnded {
                ok: first == "ok",
                why: (first == "gave-up").then(|| failure("backend returned 500")),
            },
            "C+" => What::CompactionStarted {
                trigger: match first {
                    "Auto" => Trigger::Auto,
                    "Overflow" => Trigger::Overflow,
                    _ => Trigger::Manual,
                },
                span: None,
                tokens: Some(900),
            },
            "C-" => What::CompactionEnded {
                result: match first {
                    "Nothing" => Err(CompactionFault::Nothing("nothing to cut".into())),
                    "Cancelled" => Err(CompactionFault::Cancelled),
                    _ => Ok(Compacted {
                        summary: Some("in short".into()),
                        tokens_before: Some(900),
                        tokens_after: Some(300),
                        ..Compacted::default()
                    }),
                },
            },
            "Opened" => {
                let mut info = info();
                info.session = "01900000-0000-7000-8000-000000000002".into();
                What::Opened(Box::new(info))
            }
            "CR" => What::CompletionRefused {
                hook: "verify".into(),
                reason: "no".into(),
                continuation: 0,
                left: 1,
            },
            "Closed" => What::Closed {
                why: CloseWhy::HostGone,
            },
            other => panic!("no such event: {other}"),
        }
    }

    fn block(&mut self, head: &str, text: &str) -> Block {
        match head {
            "text" => Block::Text(text.into()),
            "thinking" => Block::Thinking {
                text: text.into(),
                signature: Some("sig".into()),
            },
            name => Block::ToolUse {
                call: self.call_id(name),
                provider_id: Some(name.into()),
                name: "bash".into(),
                input: ToolInput::Object(RawJson(r#"{"x":1}"#.into())),
            },
        }
    }
}

fn end(name: &str) -> End {
    match name {
        "Finished" => End::Finished {
            finish: Some("stop".into()),
        },
        "Local" => End::Local,
        "Cancelled" => End::Cancelled(CancelWhy::Host),
        "Switch" => End::Cancelled(CancelWhy::Switch),
        "Failed" => End::Failed(failure("backend returned 500")),
        "Truncated" => End::Truncated(failure("the stream ended without a completion signal")),
        "BudgetExhausted" => End::BudgetExhausted(BudgetKind::Tokens),
        "Withdrawn" => End::Withdrawn,
        other => panic!("no such end: {other}"),
    }
}
