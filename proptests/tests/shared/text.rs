//! Neutral events in the shorthand of the scenes: `R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ …`.

use turnwire::protocol::Protocol;
use turnwire::vocab::*;

use super::Out;

/// Everything but lines, with runs of deltas as one.
pub fn events<P: Protocol>(out: &[Out<P>]) -> String {
    let mut words: Vec<String> = Vec::new();
    for out in out {
        let word = match out {
            Out::Lines(_) => continue,
            Out::Event(event) => what(&event.what),
            Out::Extra(extra) => format!(
                "x({})",
                format!("{extra:?}").split([' ', '{']).next().unwrap()
            ),
            Out::Finding(_) => "!".into(),
            Out::CloseInput => "CloseInput".into(),
            Out::Signal(signal) => format!("{signal:?}"),
            Out::Closed => "Gone".into(),
        };
        if !(word.starts_with("d(") && words.last() == Some(&word)) {
            words.push(word);
        }
    }
    words.join(" ")
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "text",
        Kind::Thinking => "thinking",
        Kind::Signature | Kind::Input | Kind::Opaque => "other",
    }
}

fn name(debug: String) -> String {
    debug.split([' ', '{', '(']).next().unwrap().to_owned()
}

/// One event.
pub fn what(what: &What) -> String {
    match what {
        What::Opened(info) => format!("Opened({})", info.session),
        What::Changed(_) => "Changed".into(),
        What::Closed { why } => format!("Closed({})", name(format!("{why:?}"))),
        What::Replied { command, reply } => {
            let told = match reply {
                Ok(Answer::Admitted(admitted)) => format!("{admitted:?}"),
                Ok(Answer::Cancelling { hit, .. }) => {
                    format!("Cancelling({})", name(format!("{hit:?}")))
                }
                Ok(answer) => name(format!("{answer:?}")),
                Err(refusal) => format!("Err({})", name(format!("{refusal:?}"))),
            };
            format!("R({},{told})", command.0)
        }
        What::Queued { prompt, lane } => format!("Q({},{lane:?})", prompt.0),
        What::PromptApplied { prompt, .. } => format!("Ap({})", prompt.0),
        What::PromptEnded { prompt, end } => {
            format!("P-({},{})", prompt.0, name(format!("{end:?}")))
        }
        What::TurnStarted { .. } => "T+".into(),
        What::TurnEnded { end, .. } => format!("T-({})", name(format!("{end:?}"))),
        What::Settled => "Set".into(),
        What::StepStarted { .. } => "S+".into(),
        What::StepEnded { .. } => "S-".into(),
        What::Context { .. } => "Cx".into(),
        What::RequestStarted { .. } => "Rq".into(),
        What::RequestEnded { outcome, .. } => {
            let outcome = match outcome {
                RequestOutcome::Complete { .. } => "ok".into(),
                other => name(format!("{other:?}")),
            };
            format!("Rq-({outcome})")
        }
        What::RetryScheduled { .. } => "Ry".into(),
        What::RetryEnded { ok, .. } => format!("Ry-({})", if *ok { "ok" } else { "no" }),
        What::MessageStarted { .. } => "m+".into(),
        What::BlockStarted { head, .. } => {
            format!("b+({})", name(format!("{head:?}")).to_lowercase())
        }
        What::Delta { kind: of, .. } => format!("d({})", kind(*of)),
        What::BlockEnded { content, .. } => {
            format!("b-({})", name(format!("{content:?}")).to_lowercase())
        }
        What::MessageEnded { stop, kept, .. } => {
            format!(
                "m-({}{})",
                name(format!("{stop:?}")),
                if *kept { "" } else { ",void" }
            )
        }
        What::Message(message) => {
            format!("M({})", name(format!("{:?}", message.role)).to_lowercase())
        }
        What::ToolStarted { call, .. } => format!("t+(c{})", call.0),
        What::Decided { verdict, .. } => {
            format!("Dc({})", if verdict.allow { "yes" } else { "no" })
        }
        What::ToolEnded { call, outcome, .. } => {
            format!("t-(c{},{})", call.0, name(format!("{outcome:?}")))
        }
        What::FileChanged { .. } => "diff".into(),
        What::Asked { body, .. } => match body.call() {
            Some(call) => format!("A?(c{})", call.0),
            None => "A?()".into(),
        },
        What::AskClosed { how, .. } => match how {
            AskClose::Answered {
                allow: Some(true), ..
            } => "A!(approved)".into(),
            AskClose::Answered { .. } => "A!(declined)".into(),
            other => format!("A!({})", name(format!("{other:?}"))),
        },
        What::CompactionStarted { .. } => "C+".into(),
        What::CompactionEnded { .. } => "C-".into(),
        What::HookFailed { .. } => "HF".into(),
        What::CompletionRefused { .. } => "CR".into(),
        What::Notice { level, .. } => format!("N({level:?})"),
        other => name(format!("{other:?}")),
    }
}
