//! The person at the terminal: asked one question at a time.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc as std_mpsc;

use tokio::sync::mpsc;
use turnwire::vocab::{Ask, AskId};

/// Reads one line of a person's; `None` when there will be none any more. It may block: it gets a thread of its own,
/// and is called only while a question is open.
pub type Person = Box<dyn FnMut() -> Option<String> + Send>;

/// The open questions, oldest first.
pub(super) struct Questions {
    open: VecDeque<(AskId, Box<Ask>)>,
    person: Option<Thread>,
}

/// The thread that reads.
struct Thread {
    wanted: std_mpsc::Sender<()>,
    lines: mpsc::UnboundedReceiver<Option<String>>,
    /// A line was asked for and hasn't come.
    reading: bool,
    /// The question that it was meant for is closed: the line must answer no other.
    stale: bool,
}

impl Questions {
    pub(super) fn start(person: Option<Person>) -> io::Result<Self> {
        let person = match person {
            None => None,
            Some(mut read) => {
                let (wanted, asked) = std_mpsc::channel();
                let (send, lines) = mpsc::unbounded_channel();
                std::thread::Builder::new()
                    .name("turnwire-person".into())
                    .spawn(move || {
                        for () in asked {
                            let line = read();
                            let last = line.is_none();
                            if send.send(line).is_err() || last {
                                return;
                            }
                        }
                    })?;
                Some(Thread {
                    wanted,
                    lines,
                    reading: false,
                    stale: false,
                })
            }
        };
        let open = VecDeque::new();
        Ok(Questions { open, person })
    }

    /// Whether there is somebody to ask.
    pub(super) fn is_manned(&self) -> bool {
        self.person.is_some()
    }

    /// Adds a question; whether it is to be put now.
    pub(super) fn add(&mut self, id: AskId, ask: Box<Ask>) -> bool {
        self.open.push_back((id, ask));
        self.open.len() == 1
    }

    /// The question that is put, or to be put.
    pub(super) fn open(&self) -> Option<(AskId, &Ask)> {
        self.open.front().map(|(id, ask)| (*id, &**ask))
    }

    /// Asks the thread for a line, for the oldest question.
    pub(super) fn put(&mut self) -> Option<&Ask> {
        let (_, ask) = self.open.front()?;
        let person = self.person.as_mut()?;
        if !person.reading && person.wanted.send(()).is_ok() {
            person.reading = true;
        }
        Some(ask)
    }

    /// A question is closed; whether the next one is to be put.
    pub(super) fn remove(&mut self, id: AskId) -> bool {
        let Some(at) = self.open.iter().position(|(open, _)| *open == id) else {
            return false;
        };
        self.open.remove(at);
        if let Some(person) = &mut self.person
            && at == 0
            && person.reading
        {
            person.stale = true;
        }
        at == 0 && !self.open.is_empty()
    }

    /// The next line, if one was asked for. A person who is gone is forgotten by [`give_up`](Self::give_up).
    pub(super) async fn heard(&mut self) -> Option<String> {
        match &mut self.person {
            Some(person) if person.reading => {
                let line = person.lines.recv().await.flatten();
                person.reading = false;
                line
            }
            Some(_) | None => std::future::pending().await,
        }
    }

    /// Whether the line that has come was meant for a question that is closed.
    pub(super) fn take_stale(&mut self) -> bool {
        self.person
            .as_mut()
            .is_some_and(|person| std::mem::take(&mut person.stale))
    }

    /// There is nobody any more: the questions that are open.
    pub(super) fn give_up(&mut self) -> VecDeque<(AskId, Box<Ask>)> {
        self.person = None;
        std::mem::take(&mut self.open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire::vocab::{ChoiceAsk, ChoiceKind};

    fn ask(title: &str) -> Box<Ask> {
        Box::new(Ask::Choice(Box::new(ChoiceAsk {
            title: title.into(),
            kind: ChoiceKind::Confirm,
            timeout_us: None,
        })))
    }

    #[tokio::test(flavor = "current_thread")]
    async fn l8_a_line_for_a_closed_question_answers_no_other() {
        let (give, lines) = std_mpsc::channel::<String>();
        let mut questions = Questions::start(Some(Box::new(move || lines.recv().ok()))).unwrap();
        assert!(questions.add(AskId(1), ask("one")));
        assert!(!questions.add(AskId(2), ask("two")));
        questions.put();
        // The first one times out while the person still types.
        assert!(questions.remove(AskId(1)));
        questions.put();
        give.send("yes".into()).unwrap();
        assert_eq!(questions.heard().await.as_deref(), Some("yes"));
        assert!(questions.take_stale());
        questions.put();
        give.send("no".into()).unwrap();
        assert_eq!(questions.heard().await.as_deref(), Some("no"));
        assert!(!questions.take_stale());
        assert_eq!(questions.open().map(|(id, _)| id), Some(AskId(2)));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_person_who_is_gone_leaves_the_questions_open() {
        let mut questions = Questions::start(Some(Box::new(|| None))).unwrap();
        questions.add(AskId(1), ask("one"));
        questions.put();
        assert_eq!(questions.heard().await, None);
        assert_eq!(questions.give_up().len(), 1);
        assert!(!questions.is_manned());
    }
}
