//! What happens as JSON lines, in one shape for every protocol.
//!
//! Each line has `event`, `t_ms` since the start, `run` if it belongs to a nested run, and `inferred` if the agent
//! didn't say so and it must be so all the same. Ids are numbers that this program gives. What an event has no word
//! for here is left out; readers pass over events and members that they don't know.

use turnwire::json::write_str;
use turnwire::protocol::{ClientOutput, Protocol};
use turnwire::vocab::*;
use turnwire_tokio::{AgentEnd, Driven, Screen};

use super::words;
use crate::object::Members;

/// The screen for programs. Nobody is asked: what needs a person is declined.
#[derive(Debug, Default)]
pub struct Json {
    /// The time of the last thing that had one.
    at: Now,
}

impl Json {
    fn line(&mut self, event: &str, out: &mut Vec<u8>, write: impl FnOnce(&mut Members<'_>)) {
        let mut object = Members::begin(out);
        object.text("event", event);
        object.number("t_ms", self.at.mono_us / 1000);
        write(&mut object);
        object.end();
        out.push(b'\n');
    }
}

impl<P: Protocol> Screen<P> for Json {
    fn show(&mut self, output: &ClientOutput<'_, P>, out: &mut Vec<u8>) {
        match output {
            ClientOutput::Event(event) => {
                self.at = event.at;
                self.line(name(&event.what), out, |object| {
                    place(event.run, event.seen, object);
                    members(&event.what, object);
                });
            }
            ClientOutput::Delta(delta) => {
                self.at = delta.at;
                self.line("delta", out, |object| {
                    place(delta.run, Seen::Real, object);
                    put_delta(delta.message, delta.block, delta.kind, delta.text, object);
                });
            }
            ClientOutput::Extra(extra) => {
                if let Some((level, text)) = P::soften(extra) {
                    self.line("notice", out, |object| {
                        object.text("level", words::level(level));
                        object.text("text", &text);
                    });
                }
            }
            ClientOutput::Finding(finding) => self.line("finding", out, |object| {
                object.maybe_number("line", finding.place.map(|place| place.line));
                object.text("text", &finding.text);
            }),
            // The first two are this program's own doing, and the agent's end has a line of its own.
            // No Client has such requests.
            ClientOutput::Ask { .. }
            | ClientOutput::CloseInput
            | ClientOutput::Signal(_)
            | ClientOutput::Closed => {}
        }
    }

    fn ask(&mut self, _: &Ask, _: &mut Vec<u8>) {}

    fn read(&mut self, _: &Ask, _: &str) -> Option<Result<Reply, ReplyFault>> {
        Some(Err(ReplyFault::HostGone))
    }

    fn alone(&mut self, _: &Ask, _: &mut Vec<u8>) -> Result<Reply, ReplyFault> {
        Err(ReplyFault::HostGone)
    }

    fn ended(&mut self, driven: &Driven, out: &mut Vec<u8>) {
        self.line("exit", out, |object| {
            let (code, signal) = match driven.end {
                AgentEnd::Code(code) => (Some(code), None),
                AgentEnd::Signal(signal) => (None, Some(signal)),
            };
            let number = |number: Option<i32>| {
                number.map_or_else(|| "null".to_owned(), |number| number.to_string())
            };
            object.raw("code", &number(code));
            object.raw("signal", &number(signal));
            object.bool("unfinished", driven.unfinished);
            object.bool("killed", driven.killed);
        });
    }
}

fn place(run: RunId, seen: Seen, object: &mut Members<'_>) {
    if run != RunId::MAIN {
        object.number("run", run.0);
    }
    if seen == Seen::Inferred {
        object.bool("inferred", true);
    }
}

fn put_delta(message: MessageId, block: u32, kind: Kind, text: &str, object: &mut Members<'_>) {
    object.number("message", message.0);
    object.number("block", block.into());
    object.text("kind", words::kind(kind));
    object.text("text", text);
}

/// The event's name: the variant's, in lower case.
fn name(what: &What) -> &'static str {
    match what {
        What::Opened(_) => "opened",
        What::Changed(_) => "changed",
        What::Closed { .. } => "closed",
        What::Replied { .. } => "replied",
        What::Queued { .. } => "queued",
        What::PromptApplied { .. } => "prompt_applied",
        What::PromptEnded { .. } => "prompt_ended",
        What::TurnStarted { .. } => "turn_started",
        What::TurnEnded { .. } => "turn_ended",
        What::Settled => "settled",
        What::StepStarted { .. } => "step_started",
        What::StepEnded { .. } => "step_ended",
        What::Context { .. } => "context",
        What::RequestStarted { .. } => "request_started",
        What::RequestEnded { .. } => "request_ended",
        What::RetryScheduled { .. } => "retry_scheduled",
        What::RetryEnded { .. } => "retry_ended",
        What::MessageStarted { .. } => "message_started",
        What::BlockStarted { .. } => "block_started",
        What::Delta { .. } => "delta",
        What::BlockEnded { .. } => "block_ended",
        What::MessageEnded { .. } => "message_ended",
        What::Message(_) => "message",
        What::ToolStarted { .. } => "tool_started",
        What::Decided { .. } => "decided",
        What::ToolProgress { .. } => "tool_progress",
        What::ToolEnded { .. } => "tool_ended",
        What::ToolSkipped { .. } => "tool_skipped",
        What::FileChanged { .. } => "file_changed",
        What::Checkpoint { .. } => "checkpoint",
        What::Restored { .. } => "restored",
        What::Asked { .. } => "asked",
        What::AskClosed { .. } => "ask_closed",
        What::CompactionStarted { .. } => "compaction_started",
        What::CompactionEnded { .. } => "compaction_ended",
        What::Goal(_) => "goal",
        What::Job(..) => "job",
        What::RunStarted { .. } => "run_started",
        What::RunProgress { .. } => "run_progress",
        What::RunEnded { .. } => "run_ended",
        What::HookFailed { .. } => "hook_failed",
        What::CompletionRefused { .. } => "completion_refused",
        What::Notice { .. } => "notice",
    }
}

#[allow(clippy::too_many_lines, reason = "one arm an event")]
fn members(what: &What, object: &mut Members<'_>) {
    match what {
        What::Opened(info) | What::Changed(info) => {
            object.text("session", &info.session);
            object.text("product", &info.product);
            object.text("cwd", &info.cwd);
            object.bool("continued", info.continued);
            object.text("approvals", words::mode(&info.settings.approvals));
            object.number("history", info.history.len() as u64);
        }
        What::Closed { why } => {
            let (why, text) = words::close(why);
            object.text("why", why);
            object.maybe_text("text", text);
        }
        What::Replied { command, reply } => {
            object.number("command", command.0);
            object.bool("ok", reply.is_ok());
            if let Err(refusal) = reply {
                let (why, text) = words::refusal(refusal);
                object.text("why", why);
                object.maybe_text("text", text);
            }
        }
        What::Queued { prompt, lane } => {
            object.number("prompt", prompt.0);
            object.text("lane", words::lane(*lane));
        }
        What::PromptApplied { prompt, turn } => {
            object.number("prompt", prompt.0);
            object.maybe_number("turn", turn.map(|turn| turn.0));
        }
        What::PromptEnded { prompt, end } => {
            object.number("prompt", prompt.0);
            put_end(end, object);
        }
        What::TurnStarted { turn, cause } => {
            object.number("turn", turn.0);
            object.text("cause", words::cause(*cause));
        }
        What::TurnEnded {
            turn, end, report, ..
        } => {
            object.number("turn", turn.0);
            put_end(end, object);
            object.number("wall_ms", report.wall_us / 1000);
            object.maybe_number("requests", report.requests.map(u64::from));
        }
        What::Settled => {}
        What::StepStarted { step, number } => {
            object.number("step", step.0);
            object.number("number", u64::from(*number));
        }
        What::StepEnded { step } => object.number("step", step.0),
        What::Context {
            used,
            window,
            estimated,
        } => {
            object.number("used", *used);
            object.number("window", *window);
            object.bool("estimated", *estimated);
        }
        What::RequestStarted { request, attempt } => {
            object.number("request", request.0);
            object.number("attempt", u64::from(*attempt));
        }
        What::RequestEnded {
            request,
            outcome,
            usage,
            ..
        } => {
            object.number("request", request.0);
            object.text("outcome", words::request(outcome));
            match usage {
                Some(usage) => {
                    let mut inner = object.object("usage");
                    put_usage(usage, &mut inner);
                    inner.end();
                }
                None => object.raw("usage", "null"),
            }
        }
        What::RetryScheduled {
            attempt, max, why, ..
        } => {
            object.number("attempt", u64::from(*attempt));
            object.number("max", u64::from(*max));
            object.text("why", &why.text);
        }
        What::RetryEnded { ok, why } => {
            object.bool("ok", *ok);
            object.maybe_text("why", why.as_ref().map(|failure| &*failure.text));
        }
        What::MessageStarted { message, .. } => object.number("message", message.0),
        What::BlockStarted {
            message,
            block,
            head,
        } => {
            object.number("message", message.0);
            object.number("block", u64::from(*block));
            object.text("kind", words::block(head));
        }
        What::Delta {
            message,
            block,
            kind,
            text,
        } => put_delta(*message, *block, *kind, text, object),
        What::BlockEnded { message, block, .. } => {
            object.number("message", message.0);
            object.number("block", u64::from(*block));
        }
        What::MessageEnded {
            message,
            stop,
            kept,
            ..
        } => {
            object.number("message", message.id.0);
            object.text("text", &message.text());
            object.text("stop", words::stop(stop));
            object.bool("kept", *kept);
        }
        What::Message(message) => {
            object.number("message", message.id.0);
            object.text("role", words::role(&message.role));
            object.text("text", &message.text());
        }
        What::ToolStarted {
            call, name, input, ..
        } => {
            object.number("call", call.0);
            object.text("name", name);
            match input {
                Some(ToolInput::Object(json)) => object.raw("input", json.as_str()),
                Some(ToolInput::Unparsed(text)) => object.text("input", text),
                None => object.raw("input", "null"),
            }
        }
        What::Decided { call, verdict } => {
            object.number("call", call.0);
            object.bool("allow", verdict.allow);
            object.text("by", words::decider(&verdict.by));
        }
        What::ToolProgress {
            call, elapsed_us, ..
        } => {
            object.number("call", call.0);
            object.number("elapsed_ms", elapsed_us / 1000);
        }
        What::ToolEnded {
            call,
            outcome,
            content,
            ..
        } => {
            object.number("call", call.0);
            object.text("outcome", words::outcome(outcome));
            object.bool("ok", !outcome.is_error());
            object.text("text", &words::text(content));
        }
        What::ToolSkipped { call, .. } => object.number("call", call.0),
        What::FileChanged {
            call,
            path,
            diff,
            added,
            removed,
        } => {
            object.maybe_number("call", call.map(|call| call.0));
            object.text("path", path);
            object.text("diff", diff);
            object.number("added", u64::from(*added));
            object.number("removed", u64::from(*removed));
        }
        What::Checkpoint {
            checkpoint,
            call,
            files,
        } => {
            object.number("checkpoint", checkpoint.0);
            object.number("call", call.0);
            object.texts("files", files);
        }
        What::Restored {
            checkpoint,
            restored,
            deleted,
            skipped,
        } => {
            object.maybe_number("checkpoint", checkpoint.map(|checkpoint| checkpoint.0));
            object.texts("restored", restored);
            object.texts("deleted", deleted);
            object.texts("skipped", skipped);
        }
        What::Asked { ask, body } => {
            object.number("ask", ask.0);
            put_ask(body, object);
        }
        What::AskClosed { ask, how } => {
            object.number("ask", ask.0);
            object.text("how", words::ask_close(how));
        }
        What::CompactionStarted { tokens, .. } => object.maybe_number("tokens", *tokens),
        What::CompactionEnded { result } => {
            object.bool("ok", result.is_ok());
            if let Ok(done) = result {
                object.maybe_number("tokens_before", done.tokens_before);
                object.maybe_number("tokens_after", done.tokens_after);
                object.maybe_number("messages", done.messages.map(u64::from));
            }
        }
        What::Goal(_) => {}
        What::Job(_, record) => {
            object.text("job", &record.id);
            object.text("command", &record.command);
            object.bool("over", record.state.is_over());
        }
        What::RunStarted {
            run, label, call, ..
        } => {
            object.number("of", run.0);
            object.text("label", label);
            object.maybe_number("call", call.map(|call| call.0));
        }
        What::RunProgress {
            run, steps, text, ..
        } => {
            object.number("of", run.0);
            object.number("steps", u64::from(*steps));
            object.maybe_text("text", text.as_deref());
        }
        What::RunEnded {
            run,
            status,
            steps,
            detail,
            ..
        } => {
            object.number("of", run.0);
            object.text("status", words::run(*status));
            object.number("steps", u64::from(*steps));
            object.text("text", detail);
        }
        What::HookFailed { hook, detail, .. } => {
            object.text("hook", hook);
            object.text("text", detail);
        }
        What::CompletionRefused {
            hook, reason, left, ..
        } => {
            object.text("hook", hook);
            object.text("text", reason);
            object.number("left", u64::from(*left));
        }
        What::Notice { level, code, text } => {
            object.text("level", words::level(*level));
            object.maybe_text("code", code.as_deref());
            object.text("text", text);
        }
    }
}

fn put_end(end: &End, object: &mut Members<'_>) {
    object.text("end", words::end(end));
    object.maybe_text("text", words::end_text(end));
}

fn put_usage(usage: &Usage, object: &mut Members<'_>) {
    object.maybe_number("input", usage.input);
    object.maybe_number("cache_read", usage.cache_read);
    object.maybe_number("cache_write", usage.cache_write);
    object.maybe_number("output", usage.output);
    object.maybe_number("reasoning", usage.reasoning);
}

fn put_ask(ask: &Ask, object: &mut Members<'_>) {
    match ask {
        Ask::Permission(ask) => {
            object.text("kind", "permission");
            object.maybe_number("call", ask.call.map(|call| call.0));
            object.text("tool", &ask.tool);
            object.text("summary", &ask.summary);
            object.text("detail", &ask.detail);
            object.list("env", &ask.env, |name, out| write_str(out, name));
            match &ask.reason {
                AskReason::Gate => object.text("reason", "gate"),
                AskReason::UnapprovedSource { path, sha } => {
                    object.text("reason", "unapproved_source");
                    object.text("source_path", path);
                    object.text("source_sha", sha);
                }
                AskReason::Network { host } => {
                    object.text("reason", "network");
                    object.text("host", host);
                }
                AskReason::Other(text) => {
                    object.text("reason", "other");
                    object.text("text", text);
                }
            }
        }
        Ask::Hook(ask) => {
            object.text("kind", "hook");
            object.text("key", &ask.key);
        }
        Ask::Tool { call, name, input } => {
            object.text("kind", "tool");
            object.number("call", call.0);
            object.text("tool", name);
            object.raw("input", input.as_str());
        }
        Ask::Uri { uri, .. } => {
            object.text("kind", "uri");
            object.text("uri", uri);
        }
        Ask::Choice(ask) => {
            object.text("kind", "choice");
            object.text("title", &ask.title);
        }
    }
}
