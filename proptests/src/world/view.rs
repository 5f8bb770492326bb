//! What a person at each end has seen, so that the two can be compared.
// A view is made of a few kinds of event.
#![allow(clippy::wildcard_enum_match_arm)]

use std::fmt;

use turnwire::vocab::*;

use super::{Given, Moment, Said, Speaks};

/// One thing that both ends see alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Text or thinking, however it was cut.
    Text(Kind, String),
    /// A call, by its tool.
    Call(String),
    /// Its end, and whether it worked.
    CallOver(bool),
    /// A question.
    Asked,
    /// Its end, and whether it allowed.
    Answered(bool),
    /// The end of a turn, in a word of the protocol.
    End(&'static str),
    /// The end of a turn that its host cancelled: cancelled, whatever the cancel has crossed (TW-07).
    CancelWon,
}

impl fmt::Display for Sight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sight::Text(kind, text) => write!(f, "{kind:?} {text:?}"),
            other => write!(f, "{other:?}"),
        }
    }
}

/// Whether a host that gives this command wants its turn to end.
fn cancels(command: &Command) -> bool {
    match command {
        Command::Cancel { .. } | Command::Close { drain: false } => true,
        Command::Prompt(prompt) => prompt.deliver == Deliver::Preempt,
        Command::Reply { reply, .. } => matches!(
            reply,
            Ok(Reply::Deny {
                interrupt: true,
                ..
            })
        ),
        _ => false,
    }
}

/// What is shown of an event: of nested runs the questions, which are for the same person.
fn shown(said: &Said) -> Option<&What> {
    match said {
        Said::Event(event) => {
            let asks = matches!(event.what, What::Asked { .. } | What::AskClosed { .. });
            (event.run == RunId::MAIN || asks).then_some(&event.what)
        }
        _ => None,
    }
}

/// What was seen. `host`: the commands in the story are its own.
pub fn view<'a, P: Speaks>(host: bool, story: impl IntoIterator<Item = Moment<'a>>) -> Vec<Sight> {
    let mut view = Vec::new();
    let mut cancelled = false;
    for moment in story {
        let said = match moment {
            Moment::In(Given::Call(call), _) => {
                cancelled |= host && cancels(&call.command);
                continue;
            }
            Moment::In(..) => continue,
            Moment::Out(said) => said,
        };
        if let Said::Delta {
            kind, text, run, ..
        } = said
            && *run == RunId::MAIN
            && (*kind == Kind::Text || *kind == Kind::Thinking && P::TELLS_THINKING)
        {
            let kind = if P::TELLS_CALLS { *kind } else { Kind::Text };
            match view.last_mut() {
                Some(Sight::Text(last, all)) if *last == kind => all.push_str(text),
                _ => view.push(Sight::Text(kind, text.clone())),
            }
        }
        match shown(said) {
            Some(What::ToolStarted { name, .. }) if P::TELLS_CALLS => {
                view.push(Sight::Call(name.to_string()))
            }
            Some(What::ToolEnded { outcome, .. }) if P::TELLS_CALLS => {
                view.push(Sight::CallOver(outcome.is_ok()));
            }
            Some(What::Asked { .. }) if P::SETTLES => view.push(Sight::Asked),
            Some(What::AskClosed { how, .. }) if P::SETTLES => {
                let allow = matches!(
                    how,
                    AskClose::Answered {
                        allow: Some(true),
                        ..
                    }
                );
                view.push(Sight::Answered(allow));
            }
            Some(What::TurnEnded { end, .. }) => {
                let won = end.is_cancelled() && std::mem::take(&mut cancelled);
                let word = P::end_word(end).map(Sight::End);
                view.extend(if won { Some(Sight::CancelWon) } else { word });
            }
            _ => {}
        }
    }
    view
}

/// Where the host has seen something else than the agent said. `whole`: it must have seen all of it.
pub fn differs(agent: &[Sight], host: &[Sight], whole: bool) -> Option<String> {
    for (at, (said, seen)) in agent.iter().zip(host).enumerate() {
        let last = at + 1 == host.len() && !whole;
        let fits = match (said, seen) {
            // The newest text may be on its way.
            (Sight::Text(a, said), Sight::Text(b, seen)) => {
                a == b && (said == seen || last && said.starts_with(seen.as_str()))
            }
            (Sight::End(_), Sight::CancelWon) => true,
            _ => said == seen,
        };
        if !fits {
            return Some(format!(
                "sight {at}: the agent said {said}, the host saw {seen}"
            ));
        }
    }
    match (agent.get(host.len()), host.get(agent.len())) {
        (Some(lost), _) if whole => Some(format!("the host never saw {lost}")),
        (_, Some(made_up)) => Some(format!("the agent never said {made_up}")),
        _ => None,
    }
}
