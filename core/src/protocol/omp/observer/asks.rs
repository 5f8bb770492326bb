//! What the agent asks of the host: dialogs, tools, URIs.

use alloc::format;
use alloc::string::String;

use super::super::rules::Key;
use super::super::wire::{
    Any, Data, HostUriResult, Side, UiAnswer, UiMethod, UiRequest, UriOperation,
};
use super::requests::{Names, Told};
use crate::frame::Place;
use crate::json::Object;
use crate::protocol::observer::{
    At, Cancelled, Dir, Known, Notes, Requests, Severity, Sides, at_member, hash,
};

/// A request of the agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    pub(super) place: Place,
    pub(super) sides: Sides,
    /// How bad it can be that nobody has set what it needs; `None`: somebody may have.
    pub(super) most: Option<Severity>,
}

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
    dialogs: Requests<(Wanted, Place)>,
    calls: Requests<Place>,
    /// Whether it is a read.
    uris: Requests<(bool, Place)>,
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
        self.tools.blur();
        self.schemes.blur();
        self.asks = true;
        self.level = 2;
        self.talk_over = false;
    }

    /// The agent has read the host's lines up to this one.
    pub(super) fn read_to(&mut self, number: u64) {
        self.dialogs.read_to(number);
        self.calls.read_to(number);
        self.uris.read_to(number);
    }

    /// A line of the side channel, and which line of the host it is.
    pub(super) fn answered(
        &mut self,
        side: &Side<'_>,
        number: u64,
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
                let Some((wanted, place)) = self.dialogs.answer(id, number) else {
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
                self.calls.answer(id, number);
            }
            Side::UriResult(result) => {
                let id = hash(&result.id);
                stale(Key::UriAnswered, self.uris.known(id), notes);
                if let Some((read, _)) = self.uris.answer(id, number) {
                    uri_result(result, read && both, object, notes);
                }
            }
            Side::Unknown(_) => {}
        }
    }

    pub(super) fn screen(
        &mut self,
        request: &UiRequest<'_>,
        asking: Asking,
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
                if !self.asks
                    && let Some(most) = asking.most
                {
                    notes.add(
                        Key::AskUnasked.rule(),
                        at_member(object, "method").at_most(most),
                        String::from("no set_ask_dialog has succeeded with true"),
                    );
                }
                Wanted::Answers
            }
            UiMethod::Cancel(cancel) => {
                let (known, _) = self.dialogs.cancel(hash(&cancel.target_id));
                return cancelled(Key::DialogCancelled, known, object, notes);
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
                at.at_most(asking.open_id()),
                String::from("a dialog of this id is open"),
            );
        }
        self.dialogs.open(id, (wanted, asking.place));
    }

    pub(super) fn call(
        &mut self,
        id: &str,
        tool: &str,
        asking: Asking,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let told = self.tools.told(tool);
        let messages = [
            "no set_host_tools has named this tool",
            "the last set_host_tools took this tool back",
        ];
        let at = at_member(object, "toolName");
        asking.set(Key::ToolSet, told, at, messages, notes);
        let id = hash(id);
        own_id(self.calls.known(id), asking, object, notes);
        self.calls.open(id, asking.place);
    }

    pub(super) fn call_cancelled(
        &mut self,
        target: &str,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let (known, _) = self.calls.cancel(hash(target));
        cancelled(Key::CallCancelled, known, object, notes);
    }

    pub(super) fn uri(
        &mut self,
        (id, url): (&str, &str),
        operation: &UriOperation<'_>,
        has_content: bool,
        asking: Asking,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
        let told = self.schemes.told(&scheme.to_ascii_lowercase());
        let messages = [
            "no set_host_uri_schemes has named this scheme",
            "the last set_host_uri_schemes took this scheme back",
        ];
        let at = at_member(object, "url");
        asking.set(Key::SchemeSet, told, at, messages, notes);
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
        own_id(self.uris.known(id), asking, object, notes);
        self.uris
            .open(id, (*operation == UriOperation::Read, asking.place));
    }

    pub(super) fn uri_cancelled(
        &mut self,
        target: &str,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let (known, _) = self.uris.cancel(hash(target));
        cancelled(Key::UriCancelled, known, object, notes);
    }

    /// A frame of a subagent; `needs`: the level at which it comes.
    pub(super) fn subagent(&self, needs: u8, asking: Asking, notes: &mut Notes) {
        if self.level < needs
            && let Some(most) = asking.most
        {
            let message = if self.level == 0 {
                "no set_subagent_subscription has asked for it"
            } else {
                "the level is progress"
            };
            let at = At::line().at_most(most);
            notes.add(Key::SubagentLevel.rule(), at, String::from(message));
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

    /// Another talk has begun, whatever is said of it first.
    pub(super) fn talk_begun(&mut self) {
        self.talk_over = false;
    }

    /// A payload that says what is set now.
    pub(super) fn set(&mut self, command: &str, data: &Data<'_>, notes: &mut Notes) {
        if let Data::ToolNames(names) = data {
            self.tools
                .set(names.tool_names.iter().map(|name| hash(name)));
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
            self.schemes
                .set(schemes.schemes.iter().map(|scheme| hash(scheme)));
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

    /// What this command did nobody knows: its response can't be read.
    pub(super) fn lost(&mut self, command: &str) {
        match command {
            "set_host_tools" => self.tools.blur(),
            "set_host_uri_schemes" => self.schemes.blur(),
            "set_ask_dialog" => self.asks = true,
            "set_subagent_subscription" => self.level = 2,
            _ => {}
        }
    }
}

impl Asking {
    /// How bad it is that an id is open: where the host's answers aren't seen, it may be closed.
    fn open_id(self) -> Severity {
        if self.sides.has(Dir::Host) {
            Severity::Error
        } else {
            Severity::Info
        }
    }

    /// Judges whether what it needs was set. `messages`: that it never was, and that it isn't any more.
    fn set(self, key: Key, told: Told, at: At, messages: [&str; 2], notes: &mut Notes) {
        let Some(most) = self.most else { return };
        let [never, no_more] = messages;
        let (most, message) = match told {
            Told::Now | Told::Unknown => return,
            // The run may have begun before.
            Told::Before => (Severity::Warning, no_more),
            Told::Never => (most, never),
        };
        notes.add(key.rule(), at.at_most(most), String::from(message));
    }
}

fn own_id(known: Known, asking: Asking, object: &Object<'_, '_>, notes: &mut Notes) {
    if known == Known::Open {
        notes.add(
            Key::CallId.rule(),
            at_member(object, "id").at_most(asking.open_id()),
            String::from("a request of this id is open"),
        );
    }
}

fn cancelled(key: Key, known: Cancelled, object: &Object<'_, '_>, notes: &mut Notes) {
    let at = at_member(object, "targetId");
    let (at, message) = match known {
        Cancelled::Fine => return,
        Cancelled::Never => (at, "nothing of this id was asked"),
        Cancelled::Closed => (at.at_most(Severity::Warning), "what it names is closed"),
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
