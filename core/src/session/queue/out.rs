//! The one output queue: events, deltas and effects, first in, first out (S-66).
//!
//! The text of deltas lies in one buffer that is reused for ever, so that a token allocates nothing once the
//! buffer and the queue have grown to what the host's pace needs.

use alloc::{boxed::Box, collections::VecDeque, string::String, vec::Vec};
use core::mem::size_of;

use crate::vocab::{
    Block, DeltaRef, Effect, Event, Kind, MessageId, Now, Output, RunId, Seen, What,
};

/// A prefix of delivered delta text shorter than this isn't worth moving the rest for.
const COMPACT_FROM: usize = 64 * 1024;

/// One queued output.
enum Item {
    Event(Box<Event>),
    Delta {
        at: Now,
        run: RunId,
        message: MessageId,
        block: u32,
        kind: Kind,
        len: usize,
    },
    Effect(RunId, Box<Effect>),
}

/// The queue, with an estimate of the bytes it holds.
pub(in crate::session) struct Out {
    /// Whose output it is.
    run: RunId,
    items: VecDeque<(Item, usize)>,
    /// Texts of the queued deltas, end to end; the first `taken` bytes were delivered.
    text: String,
    taken: usize,
    bytes: usize,
    /// How many effects of the run itself are about runs below it.
    about_runs: usize,
    /// The event that is lent out right now.
    lent: Option<Box<Event>>,
}

impl Out {
    /// The queue of a run.
    pub(in crate::session) fn new(run: RunId) -> Self {
        Out {
            run,
            items: VecDeque::new(),
            text: String::new(),
            taken: 0,
            bytes: 0,
            about_runs: 0,
            lent: None,
        }
    }

    /// Queues an event of the run itself.
    pub(in crate::session) fn event(&mut self, at: Now, what: What) {
        self.pass(Event {
            at,
            run: self.run,
            seen: Seen::Real,
            what,
        });
    }

    /// Queues an event, of whatever run it is.
    pub(in crate::session) fn pass(&mut self, event: Event) {
        let weight = size_of::<Event>() + weigh(&event.what);
        self.push(Item::Event(Box::new(event)), weight);
    }

    /// Queues an effect of the run itself.
    pub(in crate::session) fn effect(&mut self, effect: Effect) {
        self.pass_effect(self.run, effect);
    }

    /// Queues an effect, of whatever run it is.
    pub(in crate::session) fn pass_effect(&mut self, run: RunId, effect: Effect) {
        self.about_runs += usize::from(run == self.run && is_about_runs(&effect));
        self.push(Item::Effect(run, Box::new(effect)), size_of::<Effect>());
    }

    /// Queues a piece of a message. An empty one is nothing.
    pub(in crate::session) fn delta(
        &mut self,
        at: Now,
        message: MessageId,
        block: u32,
        kind: Kind,
        text: &str,
    ) {
        self.pass_delta(DeltaRef {
            at,
            run: self.run,
            message,
            block,
            kind,
            text,
        });
    }

    /// Queues a piece of a message, of whatever run it is. An empty one is nothing.
    pub(in crate::session) fn pass_delta(&mut self, delta: DeltaRef<'_>) {
        let DeltaRef {
            at,
            run,
            message,
            block,
            kind,
            text,
        } = delta;
        if text.is_empty() {
            return;
        }
        if self.taken == self.text.len() {
            self.text.clear();
            self.taken = 0;
        } else if self.taken >= COMPACT_FROM && self.taken >= self.text.len() / 2 {
            self.text.drain(..self.taken);
            self.taken = 0;
        }
        self.text.push_str(text);
        self.push(
            Item::Delta {
                at,
                run,
                message,
                block,
                kind,
                len: text.len(),
            },
            size_of::<Item>() + text.len(),
        );
    }

    /// Takes out the effects of the run itself that are about runs below it, in their order.
    pub(in crate::session) fn take_run_effects(&mut self) -> Vec<Effect> {
        let mut taken = Vec::new();
        if core::mem::take(&mut self.about_runs) == 0 {
            return taken;
        }
        for (item, weight) in core::mem::take(&mut self.items) {
            match item {
                Item::Effect(by, effect) if by == self.run && is_about_runs(&effect) => {
                    self.bytes -= weight;
                    taken.push(*effect);
                }
                Item::Effect(..) | Item::Event(_) | Item::Delta { .. } => {
                    self.items.push_back((item, weight));
                }
            }
        }
        taken
    }

    fn push(&mut self, item: Item, weight: usize) {
        self.bytes += weight;
        self.items.push_back((item, weight));
    }

    /// The oldest output, lent until the next call.
    pub(in crate::session) fn poll(&mut self) -> Option<Output<'_>> {
        let (item, weight) = self.items.pop_front()?;
        self.bytes -= weight;
        Some(match item {
            Item::Event(event) => Output::Event(self.lent.insert(event)),
            Item::Effect(run, effect) => {
                self.about_runs -= usize::from(run == self.run && is_about_runs(&effect));
                Output::Effect {
                    run,
                    effect: *effect,
                }
            }
            Item::Delta {
                at,
                run,
                message,
                block,
                kind,
                len,
            } => {
                let from = self.taken;
                self.taken += len;
                let text = self.text.get(from..self.taken).unwrap_or_default();
                Output::Delta(DeltaRef {
                    at,
                    run,
                    message,
                    block,
                    kind,
                    text,
                })
            }
        })
    }

    /// Whether nothing is queued.
    pub(in crate::session) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How much room the texts of deltas take.
    #[cfg(test)]
    pub(in crate::session) fn text_capacity(&self) -> usize {
        self.text.capacity()
    }

    /// Roughly how many bytes are queued.
    pub(in crate::session) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Whether an effect is for who holds the nested runs.
pub(in crate::session) fn is_about_runs(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::StartRun { .. } | Effect::StopRun(_) | Effect::CallRun(..)
    )
}

/// Bytes that an event holds beyond its own size. Only what can grow with input counts.
fn weigh(what: &What) -> usize {
    if let What::MessageEnded { message, .. } | What::Message(message) = what {
        message.bytes()
    } else if let What::ToolEnded { content, .. } = what {
        content.iter().map(Block::bytes).sum()
    } else if let What::BlockEnded { content, .. } = what {
        content.bytes()
    } else if let What::ToolProgress { partial, .. } = what {
        match partial {
            crate::vocab::Progress::Append(blocks) | crate::vocab::Progress::Replace(blocks) => {
                blocks.iter().map(Block::bytes).sum()
            }
            crate::vocab::Progress::Alive => 0,
        }
    } else if let What::FileChanged { diff, path, .. } = what {
        diff.len() + path.len()
    } else if let What::ToolStarted {
        input: Some(input), ..
    } = what
    {
        match input {
            crate::vocab::ToolInput::Object(raw) => raw.0.len(),
            crate::vocab::ToolInput::Unparsed(text) => text.len(),
        }
    } else if let What::Job(_, record) = what {
        crate::session::jobs::weigh(record)
    } else if let What::Opened(info) | What::Changed(info) = what {
        info.history
            .iter()
            .map(|message| message.bytes())
            .sum::<usize>()
            + info.tools.iter().map(|tool| tool.len()).sum::<usize>()
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use alloc::{sync::Arc, vec, vec::Vec};

    use super::*;
    use crate::vocab::{
        CallId, CallList, Message, Origin, Progress, RawJson, Role, SideEffect, Stop, ToolCause,
        ToolInput, ToolOutcome,
    };

    fn text(bytes: usize) -> Block {
        Block::Text("x".repeat(bytes).as_str().into())
    }

    fn message(bytes: usize) -> Arc<Message> {
        Arc::new(Message {
            id: MessageId(1),
            role: Role::User,
            content: vec![Arc::new(text(bytes))],
            origin: Origin::Host,
            prompt: None,
            about: None,
            at_ms: 0,
            details: None,
        })
    }

    fn progress(partial: Progress) -> What {
        What::ToolProgress {
            call: CallId(1),
            partial,
            elapsed_us: 0,
        }
    }

    fn started(input: Option<ToolInput>) -> What {
        What::ToolStarted {
            call: CallId(1),
            provider_id: None,
            name: "read".into(),
            input,
            cause: ToolCause::Model {
                message: MessageId(1),
                block: 0,
            },
            side_effect: SideEffect::Read,
        }
    }

    /// Events, and how many bytes each holds beyond its own size.
    fn events() -> Vec<(What, usize)> {
        let mut info = crate::session::tests::info();
        info.history = vec![message(7), message(5)];
        info.tools = vec!["read".into(), "ls".into()];
        vec![
            (What::Settled, 0),
            (What::Message(message(100)), 100),
            (
                What::MessageEnded {
                    message: message(90),
                    stop: Stop::End,
                    kept: true,
                    calls: CallList::Complete,
                },
                90,
            ),
            (
                What::BlockEnded {
                    message: MessageId(1),
                    block: 0,
                    content: Arc::new(text(80)),
                },
                80,
            ),
            (
                What::ToolEnded {
                    call: CallId(1),
                    outcome: ToolOutcome::Ok,
                    content: vec![text(30), text(40)],
                    show: None,
                },
                70,
            ),
            (progress(Progress::Append(vec![text(20), text(1)])), 21),
            (progress(Progress::Replace(vec![text(20)])), 20),
            (progress(Progress::Alive), 0),
            (
                What::FileChanged {
                    call: None,
                    path: "abc".into(),
                    diff: "12345".into(),
                    added: 1,
                    removed: 0,
                },
                8,
            ),
            (started(None), 0),
            (started(Some(ToolInput::Object(RawJson("{}".into())))), 2),
            (started(Some(ToolInput::Unparsed("{".into()))), 1),
            (What::Opened(info.clone()), 18),
            (What::Changed(info), 18),
        ]
    }

    #[test]
    fn tw_10_what_is_queued_is_weighed_and_what_is_taken_is_not() {
        let mut out = Out::new(RunId::MAIN);
        let mut all = 0;
        for (what, bytes) in events() {
            let before = out.bytes();
            let name = alloc::format!("{what:?}");
            out.event(Now::default(), what);
            assert_eq!(out.bytes() - before, size_of::<Event>() + bytes, "{name}");
            all += 1;
        }
        let before = out.bytes();
        out.effect(Effect::Store(crate::vocab::WriteId(1)));
        assert_eq!(out.bytes() - before, size_of::<Effect>());
        let before = out.bytes();
        out.delta(Now::default(), MessageId(1), 0, Kind::Text, "token");
        out.delta(Now::default(), MessageId(1), 0, Kind::Text, "");
        assert_eq!(out.bytes() - before, size_of::<Item>() + 5);
        for _ in 0..all + 2 {
            assert!(out.poll().is_some());
        }
        assert!(out.poll().is_none() && out.is_empty());
        assert_eq!(out.bytes(), 0);
    }

    fn poll_text(out: &mut Out) -> String {
        match out.poll() {
            Some(Output::Delta(delta)) => delta.text.into(),
            other => panic!("no delta: {other:?}"),
        }
    }

    #[test]
    fn tw_10_text_that_was_taken_makes_room_though_some_always_waits() {
        let mut out = Out::new(RunId::MAIN);
        let pieces: Vec<String> = (b'a'..=b'z')
            .cycle()
            .take(200)
            .map(|letter| String::from(char::from(letter)).repeat(4_096))
            .collect();
        let say = |out: &mut Out, text: &str| {
            out.delta(Now::default(), MessageId(1), 0, Kind::Text, text);
        };
        let mut said = pieces.iter();
        for piece in said.by_ref().take(4) {
            say(&mut out, piece);
        }
        for (taken, piece) in pieces.iter().zip(said) {
            say(&mut out, piece);
            assert_eq!(poll_text(&mut out), *taken);
            // What waits, and at most as much again or 64 KiB of what was taken.
            assert!(
                out.text.len() <= COMPACT_FROM + 6 * 4_096,
                "{}",
                out.text.len()
            );
        }
    }

    #[test]
    fn tw_10_no_text_is_moved_for_a_little_room() {
        let mut out = Out::new(RunId::MAIN);
        let mut say = |bytes: usize| {
            let text = "x".repeat(bytes);
            out.delta(Now::default(), MessageId(1), 0, Kind::Text, &text);
        };
        say(COMPACT_FROM);
        say(3 * COMPACT_FROM);
        assert_eq!(poll_text(&mut out).len(), COMPACT_FROM);
        // A quarter of the buffer was taken: the rest stays where it is.
        out.delta(Now::default(), MessageId(1), 0, Kind::Text, "y");
        assert_eq!(
            (out.taken, out.text.len()),
            (COMPACT_FROM, 4 * COMPACT_FROM + 1)
        );
        let mut few = Out::new(RunId::MAIN);
        for text in ["ab", "cd"] {
            few.delta(Now::default(), MessageId(1), 0, Kind::Text, text);
        }
        assert_eq!(poll_text(&mut few), "ab");
        few.delta(Now::default(), MessageId(1), 0, Kind::Text, "ef");
        assert_eq!((few.taken, few.text.len()), (2, 6));
        assert_eq!([poll_text(&mut few), poll_text(&mut few)], ["cd", "ef"]);
        // All was taken: the buffer begins anew.
        few.delta(Now::default(), MessageId(1), 0, Kind::Text, "gh");
        assert_eq!((few.taken, few.text.len()), (0, 2));
    }
}
