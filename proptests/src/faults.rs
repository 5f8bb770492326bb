//! Agents with a fault put in on purpose, to see that somebody finds it.
//!
//! A [`Twisted`] agent is another agent behind a [`Twist`]: inputs and outputs pass through it and may be changed,
//! lost, doubled or made up. The agent itself knows nothing of it, so that a test of the tests needs no switch in what
//! is tested. What lies on the wire is twisted by a [`Tamper`](crate::world::Tamper).
//!
//! ```
//! use turnwire::session::config::Gates;
//! use turnwire::vocab::*;
//! use turnwire_proptests::faults::{Twist, Twisted};
//! use turnwire_proptests::reference::Judged;
//! use turnwire_proptests::scenario::Scenario;
//! use turnwire_proptests::world::{By, Said, START, World, play_agent};
//! # use turnwire::{protocol::openmax::Openmax, session::Session, vocab::laws::Scope};
//! # use turnwire_proptests::world::Speaks;
//!
//! let scenario = Scenario::parse(
//!     "turnwire scenario 1
//! set world agent
//! > prompt if-idle
//! + model 0 text \"hello \"
//! + model 0 failed server reached
//! @ jump
//! + answer 0 read
//! + tool 0 ok
//! ",
//! )?;
//!
//! /// Forgets the ends of its turns.
//! struct Forgets;
//! impl Twist for Forgets {
//!     fn output(&mut self, said: Said) -> Vec<Said> {
//!         let end = matches!(said.what(), Some(What::TurnEnded { .. }));
//!         if end { vec![] } else { vec![said] }
//!     }
//! }
//! # let session = Session::new(scenario.setup.session(), Box::new(Openmax::info()), START);
//! let agent = Twisted::new(session, Forgets);
//! let world = World::new(agent, Scope::Session, START);
//!
//! let report = play_agent(&scenario, world, Judged::Session(Gates::default()));
//! assert!(report.has(By::Checker, "S-15"), "{report}");
//! # Ok::<(), turnwire_proptests::script::Unreadable>(())
//! ```

use std::collections::VecDeque;

use turnwire::vocab::*;

use crate::world::{Given, Said};

/// A fault. Every method leaves things as they are unless it is written anew.
pub trait Twist {
    /// What the agent is told instead.
    fn input(&mut self, given: Given) -> Vec<Given> {
        vec![given]
    }

    /// What is said instead.
    fn output(&mut self, said: Said) -> Vec<Said> {
        vec![said]
    }

    /// Whether the agent takes this write for done before it is.
    fn is_hasty(&self, write: WriteId) -> bool {
        let _ = write;
        false
    }

    /// The deadline that is told instead; `queued`: output waits.
    fn due(&self, due: Option<Due>, queued: bool) -> Option<Due> {
        let _ = queued;
        due
    }
}

/// An agent with a fault.
#[derive(Debug)]
pub struct Twisted<A, T> {
    agent: A,
    twist: T,
    queue: VecDeque<Said>,
    lent: Option<Said>,
    now: Now,
    /// Writes that the agent was told of before they were done.
    told: Vec<WriteId>,
}

impl<A: Agent, T: Twist> Twisted<A, T> {
    /// An agent behind a fault.
    pub fn new(agent: A, twist: T) -> Self {
        let mut twisted = Twisted {
            agent,
            twist,
            queue: VecDeque::new(),
            lent: None,
            now: Now::default(),
            told: Vec::new(),
        };
        twisted.take();
        twisted
    }

    fn take(&mut self) {
        while let Some(said) = self.agent.poll_output().as_ref().map(Said::from) {
            if let Said::Effect(_, Effect::Store(write)) = said
                && self.twist.is_hasty(write)
            {
                self.told.push(write);
                let done = Input::Store { write, ok: Ok(()) };
                // The write is live: it was just issued.
                let _: Result<(), Misuse> = self.agent.handle(done, self.now);
            }
            self.queue.extend(self.twist.output(said));
        }
    }
}

impl<A: Agent, T: Twist> Agent for Twisted<A, T> {
    fn handle(&mut self, input: Input<'_>, now: Now) -> Result<(), Misuse> {
        self.now = now;
        if let Input::Store { write, .. } = &input
            && self.told.contains(write)
        {
            return Ok(());
        }
        for given in self.twist.input(Given::from(&input)) {
            self.agent.handle(given.input(), now)?;
        }
        self.take();
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output<'_>> {
        self.lent = Some(self.queue.pop_front()?);
        self.lent.as_ref().map(Said::lend)
    }

    fn poll_timeout(&self) -> Option<Due> {
        let queued = !self.queue.is_empty();
        let due = if queued {
            Some(Due {
                at_us: self.now.mono_us,
                why: "output",
            })
        } else {
            self.agent.poll_timeout()
        };
        self.twist.due(due, queued)
    }

    fn wants_input(&self) -> bool {
        self.agent.wants_input()
    }

    fn wants_bulk(&self) -> bool {
        self.agent.wants_bulk()
    }

    fn body(&self, run: RunId, effect: &Effect) -> Option<EffectBody<'_>> {
        self.agent.body(run, effect)
    }
}
