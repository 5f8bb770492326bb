//! Prompts of the host, their replays, and what becomes of them.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::super::policy::BadUser;
use super::super::prompt::{Part, Prompt};
use super::super::rules::Key;
use super::super::wire::{CommandLifecycle, LifecycleState, User};
use super::host::Reading;
use super::{Here, Watcher};
use crate::frame::Place;
use crate::protocol::observer::{At, Dir, Ids, Known, Notes, Severity, Sides, at_member, hash};

/// The most prompts that are remembered.
const MOST: usize = 65_536;

/// A prompt.
#[derive(Clone, Copy, Debug)]
struct Sent {
    place: Place,
    /// What it says.
    says: u64,
    /// It has its result.
    ended: bool,
    /// It was refused as input.
    refused: bool,
}

/// The prompts.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    sent: BTreeMap<u64, Sent>,
    /// Prompts without an id of their own.
    unnamed: u64,
    /// A prompt was forgotten, or lost.
    unsure: bool,
    /// How far each prompt is told to be.
    fates: Ids<bool>,
    /// The provider of `system/init`, as a hash.
    provider: Option<u64>,
}

impl Prompts {
    pub(super) fn blur(&mut self) {
        self.unsure = true;
        self.fates.blur();
    }

    pub(super) fn provider(&self) -> Option<u64> {
        self.provider
    }

    pub(super) fn is_of(&mut self, provider: Option<&str>) {
        self.provider = provider.map(hash);
    }

    /// The host has taken this prompt back: it has no result.
    pub(super) fn withdrawn(&mut self, uuid: Option<&str>) {
        match uuid.and_then(|uuid| self.sent.get_mut(&hash(uuid))) {
            Some(sent) => sent.refused = true,
            None => self.unsure |= uuid.is_none(),
        }
    }

    /// The first prompt that has no result.
    pub(super) fn left(&self) -> Option<Place> {
        let left = self.sent.values();
        let left = left.filter(|sent| !sent.ended && !sent.refused);
        let places = left.map(|sent| sent.place);
        places
            .min_by_key(|place| (place.line, place.offset))
            .filter(|_| !self.unsure)
    }

    /// A result of this prompt. What is wrong with it. `refused`: it says that a prompt makes no sense.
    pub(super) fn ended(&mut self, uuid: &str, refused: bool) -> Option<&'static str> {
        match self.sent.get_mut(&hash(uuid)) {
            Some(sent) if refused => {
                sent.refused = true;
                None
            }
            Some(sent) if sent.ended => Some("the prompt has its result"),
            Some(sent) => {
                sent.ended = true;
                None
            }
            None if self.unsure || self.unnamed > 0 => None,
            None => Some("the host has sent no prompt of this id"),
        }
    }
}

/// A hash of what a prompt says.
fn says(prompt: &Prompt<'_>) -> u64 {
    let mut text = String::new();
    for part in &prompt.parts {
        match part {
            Part::Text(piece) => text.push_str(piece),
            Part::Attachment(manifest) => text.push_str(&manifest.attachment_id),
            Part::Block(_) => text.push('\u{fffc}'),
        }
        text.push('\u{0}');
    }
    hash(&text)
}

impl Watcher {
    /// A `user` record of the host.
    pub(super) fn host_says(
        &mut self,
        user: &User<'_>,
        reading: Reading,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let prompt = match Prompt::read(user, &self.policy) {
            Ok(prompt) => prompt,
            Err(fault) => {
                let at = at_member(here.object, "message");
                reading.refusable(Key::HostMessage, at, fault.to_string(), notes);
                if self.policy.bad_user_record == BadUser::Exit {
                    self.fatal.get_or_insert(here.place);
                }
                // Its result will name it.
                self.send(user.uuid.as_deref(), 0, true, here.place);
                return;
            }
        };
        let refs: Vec<u64> = prompt
            .attachments()
            .map(|manifest| hash(&manifest.attachment_id))
            .collect();
        let uuid = prompt.uuid.as_deref();
        if let Some(message) = self.uploads.refers(uuid, &refs) {
            let at = at_member(here.object, "message");
            notes.add(Key::Attachments.rule(), at, String::from(message));
        }
        if prompt.is_replay || prompt.is_context || reading.excused {
            self.prompts.unnamed += 1;
            // The agent may repeat it in the place of a prompt of this id.
            let known = uuid.and_then(|uuid| self.prompts.sent.get_mut(&hash(uuid)));
            if let Some(known) = known.filter(|known| known.says != says(&prompt)) {
                known.says = 0;
            }
            return;
        }
        self.send(uuid, says(&prompt), false, here.place);
    }

    fn send(&mut self, uuid: Option<&str>, says: u64, refused: bool, place: Place) {
        let Some(uuid) = uuid.filter(|uuid| !uuid.is_empty()) else {
            self.prompts.unnamed += 1;
            return;
        };
        if self.prompts.sent.len() >= MOST {
            self.prompts.unsure = true;
            return;
        }
        let sent = Sent {
            place,
            says,
            ended: false,
            refused,
        };
        match self.prompts.sent.entry(hash(uuid)) {
            Entry::Vacant(entry) => drop(entry.insert(sent)),
            Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                if known.refused {
                    *known = sent;
                } else if known.says != says {
                    // Which of the two is repeated nobody knows.
                    known.says = 0;
                }
            }
        }
    }

    /// The agent repeats a prompt.
    pub(super) fn replayed(&mut self, user: &User<'_>, here: Here<'_, '_, '_>, notes: &mut Notes) {
        if here.sides != Sides::Both || self.prompts.unsure {
            return;
        }
        let uuid = user.uuid.as_deref().unwrap_or_default();
        let (place, message) = match self.prompts.sent.get(&hash(uuid)) {
            None if self.prompts.unnamed > 0 => return,
            None => (None, "the host has sent no prompt of this id"),
            Some(sent) => {
                let said = Prompt::read(user, &self.policy).ok();
                let same = said.is_some_and(|prompt| says(&prompt) == sent.says);
                // What was refused said nothing that could be compared.
                if same || sent.says == 0 {
                    return;
                }
                (Some(sent.place), "it says something else than the prompt")
            }
        };
        let at = At::line()
            .at_most(self.most())
            .with(Dir::Host, place, "the prompt");
        notes.add(Key::Replay.rule(), at, String::from(message));
    }

    /// What becomes of a prompt.
    pub(super) fn lifecycle(&mut self, line: &CommandLifecycle<'_>, notes: &mut Notes) {
        let id = hash(&line.command_uuid);
        let known = self.prompts.fates.known(id);
        let started = self
            .prompts
            .fates
            .get_mut(id)
            .is_some_and(|started| *started);
        let mut most = Severity::Warning;
        let message = match (&line.state, known) {
            (_, Known::Unknown) | (LifecycleState::Other(_), _) => None,
            (LifecycleState::Queued, Known::Never) => {
                self.prompts.fates.open(id, false);
                None
            }
            (LifecycleState::Queued, Known::Open | Known::Closed) => Some("it was queued before"),
            (LifecycleState::Started, Known::Open) if !started => {
                self.prompts.fates.open(id, true);
                None
            }
            (LifecycleState::Started, Known::Open) => Some("it was started before"),
            (LifecycleState::Completed, Known::Open) if !started => {
                most = Severity::Info;
                Some("it wasn't started")
            }
            (LifecycleState::Completed | LifecycleState::Cancelled, Known::Open) => None,
            (_, Known::Never) => Some("it wasn't queued"),
            (_, Known::Closed) => Some("it is over"),
        };
        if matches!(
            line.state,
            LifecycleState::Completed | LifecycleState::Cancelled
        ) {
            self.prompts.fates.close(id);
        }
        if let Some(message) = message {
            let at = At::line().at_most(most);
            notes.add(Key::Lifecycle.rule(), at, String::from(message));
        }
    }
}
