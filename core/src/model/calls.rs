//! Tool calls of the chat completions API, put together from fragments.
//!
//! Providers disagree on what a fragment repeats: id, name and index may be missing, empty, repeated
//! or the same for two calls. The rules, in this order:
//!
//! * A call in a reply that isn't streamed is a call of its own.
//! * An id names the call that has it already (and has the same index, where both have one), or a call
//!   at that place that still waits for its id; else it opens a new call, whatever the index says.
//! * Without an id an index names the latest call there, and without either it is the call opened last.
//! * A name that comes before the arguments is joined, unless it repeats the whole; another name after
//!   the arguments have begun opens a new call.

use alloc::{string::String, vec::Vec};

use super::piece::{Channel, Pieces};
use super::reply::Emit;
use crate::vocab::ModelChunk;

/// What one fragment says.
pub(super) struct Fragment<'a> {
    pub index: Option<u64>,
    /// Empty if missing.
    pub id: &'a str,
    /// Empty if missing.
    pub name: &'a str,
    pub args: Args<'a>,
    /// Its place in the list it came in.
    pub place: usize,
    /// Whether it is a whole call of a reply that wasn't streamed.
    pub whole: bool,
}

/// The arguments of a fragment.
#[derive(Clone, Copy)]
pub(super) enum Args<'a> {
    /// A JSON string, with its quotes, that holds a piece of the arguments' text.
    Text(&'a str),
    /// The arguments as a JSON value of their own (D07), kept as it was written.
    Value(&'a str),
    None,
}

/// More calls than the client takes.
#[derive(Debug)]
pub(super) struct TooManyCalls;

/// The calls of one reply.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    max: usize,
    /// Number of the next call that begins.
    next: u32,
}

#[derive(Clone, Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    /// Its number, once `CallBegin` was given.
    begun: Option<u32>,
    /// Arguments that aren't blank came.
    said: bool,
    ended: bool,
}

impl Calls {
    pub(super) fn new(max: usize) -> Self {
        Self {
            calls: Vec::new(),
            max,
            next: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes one fragment.
    pub(super) fn take(
        &mut self,
        fragment: &Fragment<'_>,
        pieces: &mut Pieces,
        emit: &mut Emit<'_>,
    ) -> Result<(), TooManyCalls> {
        if fragment.index.is_some_and(|index| index >= self.max as u64) {
            return Err(TooManyCalls);
        }
        let found = if fragment.whole {
            None
        } else {
            self.find(fragment)
        };
        let at = match found {
            Some(at) => at,
            None if self.calls.len() >= self.max => return Err(TooManyCalls),
            None => {
                self.calls.push(Call {
                    index: fragment.index,
                    ..Call::default()
                });
                self.calls.len() - 1
            }
        };
        if let Some(call) = self.calls.get_mut(at) {
            call.name_by(fragment);
        }
        let has_args = match fragment.args {
            Args::Text(quoted) => quoted.len() > 2,
            Args::Value(_) => true,
            Args::None => false,
        };
        if has_args {
            self.begin_up_to(at, emit);
            if let Some(call) = self.calls.get_mut(at).filter(|call| !call.ended) {
                call.argue(fragment.args, pieces, emit);
            }
        }
        Ok(())
    }

    /// Ends every call that is open: the reply is complete.
    pub(super) fn finish(&mut self, emit: &mut Emit<'_>) {
        for call in self.calls.iter_mut().filter(|call| !call.ended) {
            // A fragment without name, id and arguments asked for nothing.
            if call.begun.is_none() && !call.is_named() {
                continue;
            }
            let index = call.begin(&mut self.next, emit);
            if !call.said {
                emit.give(ModelChunk::CallArgs { index, text: "{}" });
            }
            emit.give(ModelChunk::CallEnd { index });
            call.ended = true;
        }
    }

    fn find(&self, fragment: &Fragment<'_>) -> Option<usize> {
        if !fragment.id.is_empty() {
            return self.find_by_id(fragment);
        }
        let at = match fragment.index {
            Some(index) => self.latest_at(index).or_else(|| {
                // An index that comes late belongs to the call that had none.
                let last = self.calls.len().checked_sub(1)?;
                (fragment.name.is_empty() && self.calls.get(last)?.index.is_none()).then_some(last)
            })?,
            None if fragment.place > 0 && !fragment.name.is_empty() => return None,
            None => self.calls.len().checked_sub(1)?,
        };
        let call = self.calls.get(at)?;
        let renamed =
            call.begun.is_some() && !fragment.name.is_empty() && fragment.name != call.name;
        (!renamed).then_some(at)
    }

    fn find_by_id(&self, fragment: &Fragment<'_>) -> Option<usize> {
        let same = |call: &Call| {
            call.id == fragment.id
                && (fragment.index.is_none()
                    || call.index.is_none()
                    || call.index == fragment.index)
        };
        if let Some(at) = self.calls.iter().rposition(same) {
            return Some(at);
        }
        let at = match fragment.index {
            Some(index) => self.latest_at(index)?,
            None => self.calls.len().checked_sub(1)?,
        };
        let call = self.calls.get(at)?;
        let waits = call.id.is_empty() && call.begun.is_none();
        (waits && (call.name.is_empty() || fragment.name.is_empty() || call.name == fragment.name))
            .then_some(at)
    }

    fn latest_at(&self, index: u64) -> Option<usize> {
        self.calls
            .iter()
            .rposition(|call| call.index == Some(index))
    }

    /// Begins this call and those before it, so that calls begin in the order in which they were opened.
    fn begin_up_to(&mut self, at: usize, emit: &mut Emit<'_>) {
        for (place, call) in self.calls.iter_mut().enumerate().take(at.saturating_add(1)) {
            if place == at || call.is_named() {
                call.begin(&mut self.next, emit);
            }
        }
    }
}

impl Call {
    fn is_named(&self) -> bool {
        !(self.name.is_empty() && self.id.is_empty())
    }

    fn name_by(&mut self, fragment: &Fragment<'_>) {
        if self.begun.is_some() {
            return;
        }
        if self.id.is_empty() {
            self.id.push_str(fragment.id);
        }
        if self.name != fragment.name {
            self.name.push_str(fragment.name);
        }
    }

    fn begin(&mut self, next: &mut u32, emit: &mut Emit<'_>) -> u32 {
        if let Some(index) = self.begun {
            return index;
        }
        let index = *next;
        *next = index.saturating_add(1);
        self.begun = Some(index);
        let id = (!self.id.is_empty()).then_some(&*self.id);
        emit.give(ModelChunk::CallBegin {
            index,
            id,
            name: &self.name,
        });
        index
    }

    fn argue(&mut self, args: Args<'_>, pieces: &mut Pieces, emit: &mut Emit<'_>) {
        let Some(index) = self.begun else { return };
        let channel = Channel::Args(index);
        emit.flush(pieces, Some(channel));
        let text = match args {
            Args::Text(quoted) => pieces.text(channel, quoted),
            Args::Value(text) => text,
            Args::None => "",
        };
        self.said |= !text.trim_ascii().is_empty();
        emit.give_text(channel, text);
    }
}
