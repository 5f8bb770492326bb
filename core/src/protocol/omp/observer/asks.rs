//! What the agent asks of the host: dialogs, tools, URIs.

use alloc::format;
use alloc::string::String;

use super::super::rules::Key;
use super::super::wire::{
    Any, Data, HostUriResult, Side, UiAnswer, UiMethod, UiRequest, UriOperation,
};
use super::Names;
use crate::frame::Place;
use crate::json::Object;
use crate::protocol::observer::{At, Dir, Ids, Known, Notes, Severity, Sides, at_member, hash};

/// What an open id waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// `value`.
    Value,
    /// `confirmed`.
    Confirmed,
    /// `answers`.
    Answers,
}

#[derive(Debug, Default)]
pub(super) struct Asks {
    dialogs: Ids<(Wanted, Place)>,
    calls: Ids<Place>,
    /// Whether it is a read.
    uris: Ids<(bool, Place)>,
    tools: Names,
    schemes: Names,
    /// `set_ask_dialog` succeeded with true.
    asks: bool,
    /// 0: none, 1: progress, 2: all.
    level: u8,
    /// A talk has ended.
    talk_over: bool,
}

impl Asks {
    pub(super) fn blur(&mut self) {
        self.dialogs.blur();
        self.calls.blur();
        self.uris.blur();
        self.tools.known = None;
        self.schemes.known = None;
        self.asks = true;
        self.level = 2;
        self.talk_over = false;
    }

    /// A line of the side channel.
    pub(super) fn answered(
        &mut self,
        side: &Side<'_>,
        object: &Object<'_, '_>,
        sides: Sides,
        notes: &mut Notes,
    ) {
        let both = sides == Sides::Both;
        let stale = |key: Key, known: Known, notes: &mut Notes| {
            let message = match known {
                Known::Closed => "it is closed",
                Known::Never => "it has never been",
                Known::Open | Known::Unknown => return,
            };
            if both {
                notes.add(key.rule(), at_member(object, "id"), String::from(message));
            }
        };
        match side {
            Side::Ui(response) => {
                let id = hash(&response.id);
                stale(Key::DialogAnswered, self.dialogs.known(id), notes);
                let Some((wanted, place)) = self.dialogs.close(id) else {
                    return;
                };
                let fits = match response.answer() {
                    UiAnswer::Cancelled { .. } => true,
                    UiAnswer::Value(_) => wanted == Wanted::Value,
                    UiAnswer::Confirmed(_) => wanted == Wanted::Confirmed,
                    UiAnswer::Answers(_) => wanted == Wanted::Answers,
                    UiAnswer::Malformed => false,
                };
                if !fits && both {
                    let word = match wanted {
                        Wanted::Value => "value",
                        Wanted::Confirmed => "confirmed",
                        Wanted::Answers => "answers",
                    };
                    let at = At::line().with(Dir::Agent, Some(place), "the dialog");
                    notes.add(
                        Key::DialogShape.rule(),
                        at,
                        format!("the dialog takes {word}"),
                    );
                }
            }
            Side::ToolUpdate(update) => {
                stale(Key::CallAnswered, self.calls.known(hash(&update.id)), notes);
            }
            Side::ToolResult(result) => {
                let id = hash(&result.id);
                stale(Key::CallAnswered, self.calls.known(id), notes);
                self.calls.close(id);
            }
            Side::UriResult(result) => {
                let id = hash(&result.id);
                stale(Key::UriAnswered, self.uris.known(id), notes);
                if let Some((read, _)) = self.uris.close(id) {
                    uri_result(result, read && both, object, notes);
                }
            }
            Side::Unknown(_) => {}
        }
    }

    pub(super) fn screen(
        &mut self,
        request: &UiRequest<'_>,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let id = hash(&request.id);
        let wanted = match &request.method {
            UiMethod::Select(select) => {
                notes.tally.approvals += u64::from(select.title.starts_with("Allow tool:"));
                Wanted::Value
            }
            UiMethod::Input(_) | UiMethod::Editor(_) => Wanted::Value,
            UiMethod::Confirm(_) => Wanted::Confirmed,
            UiMethod::Ask(_) => {
                if !self.asks {
                    notes.add(
                        Key::AskUnasked.rule(),
                        at_member(object, "method"),
                        String::from("no set_ask_dialog has succeeded with true"),
                    );
                }
                Wanted::Answers
            }
            UiMethod::Cancel(cancel) => {
                let target = hash(&cancel.target_id);
                cancelled(
                    Key::DialogCancelled,
                    self.dialogs.known(target),
                    object,
                    notes,
                );
                self.dialogs.close(target);
                return;
            }
            UiMethod::Notify(_)
            | UiMethod::SetStatus(_)
            | UiMethod::SetWidget(_)
            | UiMethod::SetTitle(_)
            | UiMethod::SetEditorText(_)
            | UiMethod::OpenUrl(_)
            | UiMethod::Unknown(_) => return,
        };
        if self.dialogs.known(id) == Known::Open {
            let first = self.dialogs.get_mut(id).map(|(_, place)| *place);
            let at = at_member(object, "id").with(Dir::Agent, first, "the dialog that is open");
            notes.add(
                Key::DialogId.rule(),
                at,
                String::from("a dialog of this id is open"),
            );
        }
        self.dialogs.open(id, (wanted, place));
    }

    pub(super) fn call(
        &mut self,
        id: &str,
        tool: &str,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        if !self.tools.has(tool) {
            notes.add(
                Key::ToolSet.rule(),
                at_member(object, "toolName"),
                String::from("no set_host_tools has named this tool"),
            );
        }
        let id = hash(id);
        own_id(self.calls.known(id), object, notes);
        self.calls.open(id, place);
    }

    pub(super) fn call_cancelled(
        &mut self,
        target: &str,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let target = hash(target);
        cancelled(Key::CallCancelled, self.calls.known(target), object, notes);
        self.calls.close(target);
    }

    pub(super) fn uri(
        &mut self,
        (id, url): (&str, &str),
        operation: &UriOperation<'_>,
        has_content: bool,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
        if !self.schemes.has(&scheme.to_ascii_lowercase()) {
            notes.add(
                Key::SchemeSet.rule(),
                at_member(object, "url"),
                String::from("no set_host_uri_schemes has named this scheme"),
            );
        }
        let message = match operation {
            UriOperation::Read if has_content => Some("a read carries content"),
            UriOperation::Write if !has_content => Some("a write carries no content"),
            UriOperation::Read | UriOperation::Write | UriOperation::Other(_) => None,
        };
        if let Some(message) = message {
            notes.add(
                Key::UriContent.rule(),
                at_member(object, "operation"),
                String::from(message),
            );
        }
        let id = hash(id);
        own_id(self.uris.known(id), object, notes);
        self.uris
            .open(id, (*operation == UriOperation::Read, place));
    }

    pub(super) fn uri_cancelled(
        &mut self,
        target: &str,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let target = hash(target);
        cancelled(Key::UriCancelled, self.uris.known(target), object, notes);
        self.uris.close(target);
    }

    /// A frame of a subagent; `needs`: the level at which it comes.
    pub(super) fn subagent(&self, needs: u8, notes: &mut Notes) {
        if self.level < needs {
            let message = if self.level == 0 {
                "no set_subagent_subscription has asked for it"
            } else {
                "the level is progress"
            };
            notes.add(Key::SubagentLevel.rule(), At::line(), String::from(message));
        }
    }

    /// A frame of a talk. `begins`: one that says that another has begun.
    pub(super) fn talk(&mut self, begins: bool, ends: bool, notes: &mut Notes) {
        if self.talk_over && !begins {
            notes.add(
                Key::LiveEnd.rule(),
                At::line(),
                String::from("the talk has ended"),
            );
        }
        self.talk_over = ends;
    }

    /// A payload that says what is set now.
    pub(super) fn set(&mut self, command: &str, data: &Data<'_>, notes: &mut Notes) {
        if let Data::ToolNames(names) = data {
            self.tools.known = Some(names.tool_names.iter().map(|name| hash(name)).collect());
        }
        if let Data::Schemes(schemes) = data {
            for scheme in &schemes.schemes {
                if scheme.chars().any(char::is_uppercase) || &**scheme == "security" {
                    notes.add(
                        Key::SchemeName.rule(),
                        At::line(),
                        String::from("a scheme isn't lower case, or is reserved"),
                    );
                }
            }
            self.schemes.known = Some(schemes.schemes.iter().map(|scheme| hash(scheme)).collect());
        }
        if let Data::Enabled(set) = data
            && command == "set_ask_dialog"
        {
            self.asks = set.enabled;
        }
        if let Data::Level(set) = data
            && command == "set_subagent_subscription"
        {
            self.level = match &*set.level {
                "off" => 0,
                "progress" => 1,
                _ => 2,
            };
        }
    }
}

impl Names {
    /// Whether the name is among them, as far as is known. Before anybody has told there is none.
    fn has(&self, name: &str) -> bool {
        self.known
            .as_ref()
            .is_some_and(|known| known.contains(&hash(name)))
    }
}

fn own_id(known: Known, object: &Object<'_, '_>, notes: &mut Notes) {
    if known == Known::Open {
        notes.add(
            Key::CallId.rule(),
            at_member(object, "id"),
            String::from("a request of this id is open"),
        );
    }
}

fn cancelled(key: Key, known: Known, object: &Object<'_, '_>, notes: &mut Notes) {
    let at = at_member(object, "targetId");
    let (at, message) = match known {
        Known::Never => (at, "nothing of this id was asked"),
        Known::Closed => (at.at_most(Severity::Warning), "what it names is closed"),
        Known::Open | Known::Unknown => return,
    };
    notes.add(key.rule(), at, String::from(message));
}

fn uri_result(result: &HostUriResult<'_>, judge: bool, object: &Object<'_, '_>, notes: &mut Notes) {
    const TYPES: [&str; 3] = ["text/markdown", "application/json", "text/plain"];
    if !judge || result.failed() {
        return;
    }
    if result.content.string().is_none() {
        notes.add(
            Key::UriResult.rule(),
            at_member(object, "content"),
            String::from("the result of a read has no content"),
        );
    }
    let known = |word: &str| TYPES.contains(&word);
    if result.content_type != Any::ABSENT
        && !result
            .content_type
            .string()
            .is_some_and(|word| known(&word))
    {
        notes.add(
            Key::UriResult.rule(),
            at_member(object, "contentType"),
            format!("contentType is none of {}", TYPES.join(", ")),
        );
    }
}
