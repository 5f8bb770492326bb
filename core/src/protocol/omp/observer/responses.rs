//! Responses: what they are, and what they answer.

use alloc::format;
use alloc::string::{String, ToString};

use super::super::rules::Key;
use super::super::wire::{Any, Command, Data, Response, Side};
use super::super::{Generation, codec};
use super::ledger::{Answer, Asked, key, name_key};
use super::run::hides;
use super::{CHANGES, Watcher};
use crate::frame::Place;
use crate::json::Object;
use crate::protocol::observer::{At, Dir, Notes, Severity, Sides, at_member};

impl Watcher {
    pub(super) fn response(
        &mut self,
        response: &Response<'_>,
        sides: Sides,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let command = response.command.name().unwrap_or_default();
        self.envelope(response, object, notes);
        self.settling.stirs();
        let data = match response.payload() {
            Ok(data) => data,
            Err(error) => {
                let message = error.to_string();
                notes.add(Key::Payload.rule(), at_member(object, "data"), message);
                self.asks.lost(command);
                Data::Null
            }
        };
        // What was done may have been told, and not have fitted.
        if !response.success && response.error.as_deref() == Some(codec::RESPONSE_TOO_LARGE) {
            self.asks.lost(command);
        }
        if matches!(data, Data::Unknown(_)) && response.success {
            let known = Command::TAGS.contains(&command);
            let at = at_member(object, "data");
            let at = if known {
                at
            } else {
                at.at_most(Severity::Info)
            };
            notes.add(
                Key::Payload.rule(),
                at,
                String::from("the contract gives this command no data"),
            );
        }
        if response.success {
            match command {
                "live_start" => self.asks.talk_begun(),
                "negotiate_protocol" => self.chunks.use_chunks(),
                "abort" => self.run.aborted(notes),
                command if CHANGES.contains(&command) && !vetoed(&data) => {
                    self.run.detach();
                }
                "set_event_filter" => {
                    let events = response.data.get().and_then(|data| data.get("events"));
                    if hides(Any(events)) {
                        self.run.filter();
                    }
                }
                _ => {}
            }
            self.asks.set(command, &data, notes);
        }
        if sides == Sides::Both {
            self.answer(response, &data, object, notes);
        }
    }

    /// What a response is, whatever it answers.
    fn envelope(&self, response: &Response<'_>, object: &Object<'_, '_>, notes: &mut Notes) {
        let error = response.error.as_deref();
        if response.success {
            if error.is_some() || response.code.is_some() {
                notes.add(
                    Key::ErrorOfSuccess.rule(),
                    at_member(object, "success"),
                    String::from("a success carries an error or a code"),
                );
            }
        } else if error.is_none() || response.data.get().is_some() {
            notes.add(
                Key::WhyFailed.rule(),
                at_member(object, "success"),
                String::from("a failure has no error, or has data"),
            );
        }
        let unknown = error.is_some_and(|error| error.starts_with("Unknown command: "));
        let excused = unknown && !response.success;
        if response.command.name().is_none() && !excused {
            notes.add(
                Key::NoCommand.rule(),
                at_member(object, "command"),
                String::from("the response names no command"),
            );
        }
        if let Some(code) = &response.code {
            let fits = matches!(
                (&**code, response.command.name()),
                ("session_busy", Some("get_messages_page" | "fork"))
                    | ("stale_cursor", Some("get_messages_page"))
                    | ("unknown_since", Some("get_entries"))
            );
            if !fits && !response.success {
                notes.add(
                    Key::Code.rule(),
                    at_member(object, "code"),
                    String::from("the contract gives this failure no such code"),
                );
            }
        }
    }

    /// What a response answers.
    fn answer(
        &mut self,
        response: &Response<'_>,
        data: &Data<'_>,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let id = key(response.id);
        let name = name_key(&response.command);
        match self.ledger.answer(id, name, response.success) {
            Answer::Command {
                waiting,
                early,
                read,
            } => {
                self.asks.read_to(read);
                if early {
                    let at = At::line().with(Dir::Host, Some(waiting.place), "the command");
                    notes.add(
                        Key::OutOfOrder.rule(),
                        at,
                        String::from("a command that came before this one has no response yet"),
                    );
                }
                self.answered(
                    waiting.asked,
                    waiting.place,
                    id,
                    response,
                    data,
                    object,
                    notes,
                );
            }
            Answer::Late => {}
            Answer::Other(waiting) => {
                self.asks.read_to(waiting.number);
                let at = at_member(object, "command").with(
                    Dir::Host,
                    Some(waiting.place),
                    "the command",
                );
                notes.add(
                    Key::OtherCommand.rule(),
                    at,
                    String::from("the command of this id is another one"),
                );
            }
            Answer::None => self.uncaused(response, name, object, notes),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one line and what it answers")]
    fn answered(
        &mut self,
        asked: Asked,
        place: Place,
        id: u64,
        response: &Response<'_>,
        data: &Data<'_>,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        match asked {
            Asked::Prompt if response.success => {
                let local = matches!(data, Data::Prompt(ack) if ack.agent_invoked == Some(false));
                if !local {
                    self.ledger.accept(id, place);
                }
            }
            Asked::Version(right) if right != response.success => {
                let message = if right {
                    "version 2 is refused"
                } else {
                    "a version other than 2 is accepted"
                };
                notes.add(
                    Key::Negotiated.rule(),
                    at_member(object, "success"),
                    String::from(message),
                );
            }
            Asked::Page(limit) if response.success => {
                let Data::MessagesPage(page) = data else {
                    return;
                };
                let found = page.messages.len() as u64;
                if limit.is_none_or(|limit| found > limit) {
                    let message = match limit {
                        Some(limit) => {
                            format!("the page has {found} messages; {limit} were asked for")
                        }
                        None => String::from("the limit isn't 1 to 256, and didn't fail"),
                    };
                    notes.add(Key::PageLength.rule(), at_member(object, "data"), message);
                }
            }
            Asked::Other | Asked::Prompt | Asked::Version(_) | Asked::Page(_) => {}
        }
    }

    fn uncaused(
        &mut self,
        response: &Response<'_>,
        name: u64,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        const SIDES: &[&str] = Side::TAGS;
        let at = at_member(object, "id");
        let too_large = response.error.as_deref() == Some(codec::RESPONSE_TOO_LARGE);
        if too_large && !response.success && self.ledger.answer_unknown(name) {
            // It keeps only an id that is a string, and no long one.
        } else if response.id.get().is_none()
            && !response.success
            && self.ledger.answer_unknown(name)
        {
            // An older program leaves the id out where it doesn't know the command.
            if self.generation > Generation::G1 {
                notes.add(
                    Key::Uncaused.rule(),
                    At::line().at_most(Severity::Info),
                    String::from("the response to an unknown command has no id"),
                );
            }
        } else if self.ledger.is_unsure() {
            // A line that nobody could read may have asked for it.
        } else if response
            .command
            .name()
            .is_some_and(|name| SIDES.contains(&name))
        {
            notes.add(
                Key::SideAnswered.rule(),
                at_member(object, "command"),
                String::from("this answers a line of the side channel"),
            );
        } else {
            notes.add(
                Key::Uncaused.rule(),
                at,
                String::from("no command of this id waits for a response"),
            );
        }
    }
}

/// Whether a change of the session was vetoed.
fn vetoed(data: &Data<'_>) -> bool {
    if let Data::Cancelled(data) = data {
        return data.cancelled;
    }
    if let Data::Opened(data) = data {
        return data.cancelled;
    }
    matches!(data, Data::Branched(data) if data.cancelled)
}
