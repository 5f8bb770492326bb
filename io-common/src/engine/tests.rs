//! Commands of the person's own, from their effect to the agent's input.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use turnwire::model::script::Script;
use turnwire::vocab::{
    Agent, CommandId, Due, Effect, EffectBody, Input, Misuse, Now, Output, RunId, ToolOutcome,
    ToolUpdate,
};

use super::effects::Effects;
use super::{Caller, Job, Start, Stopper};
use crate::hooks::{Hooks, HooksConfig};
use crate::model::Backend;
use crate::tools::{Finished, ToolJob, Toolbox, ToolboxConfig};
use crate::world::{Fixed, Forget, World};

/// An agent whose effects are about one command line.
struct Line(&'static str);

impl Agent for Line {
    fn handle(&mut self, _: Input<'_>, _: Now) -> Result<(), Misuse> {
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output<'_>> {
        None
    }

    fn poll_timeout(&self) -> Option<Due> {
        None
    }

    fn wants_input(&self) -> bool {
        true
    }

    fn wants_bulk(&self) -> bool {
        true
    }

    fn body(&self, _: RunId, _: &Effect) -> Option<EffectBody<'_>> {
        Some(EffectBody::Shell { command: self.0 })
    }
}

/// A driver that only notes what it is to start, and how often something was stopped.
#[derive(Default)]
struct Notes {
    started: Vec<(Caller, ToolJob)>,
    stopped: Arc<AtomicU32>,
}

impl Start for Notes {
    fn start(&mut self, job: Job) -> Stopper {
        if let Job::Tool { caller, job } = job {
            self.started.push((caller, job));
        }
        let stopped = self.stopped.clone();
        Box::new(move || {
            stopped.fetch_add(1, Ordering::Relaxed);
        })
    }
}

fn effects() -> Effects {
    let tools = ToolboxConfig::new("/");
    let world = World {
        snapshots: None,
        backend: Backend::Scripted(Arc::new(Script::parse("").unwrap())),
        hooks: Hooks::new(HooksConfig::beside(&tools, "s", Vec::new())),
        toolbox: Toolbox::new(tools).unwrap(),
        durable: Box::new(Forget),
        reload: Box::new(Fixed { tools: 0 }),
    };
    Effects::new(world, Arc::new(|_| {}))
}

#[test]
fn s_57_a_person_s_command_starts_once_its_mark_is_written() {
    let (mut effects, mut driver) = (effects(), Notes::default());
    let command = CommandId(7);
    let run = Effect::RunShell(command);
    effects.take(&Line("echo hi"), RunId::MAIN, run, 5);
    effects.start_due(4, &mut driver);
    assert!(driver.started.is_empty() && !effects.is_running());
    effects.start_due(5, &mut driver);
    let [(caller, ToolJob::Command(job))] = driver.started.as_slice() else {
        panic!("not one command: {:?}", driver.started);
    };
    assert_eq!(*caller, Caller::Person(command));
    // Nobody but the person ends it.
    assert_eq!(job.terms().limit, None);
    assert!(effects.is_running());
    let (_, done) = Finished::ok("hi").into_updates();
    effects.note(*caller, &done);
    assert!(!effects.is_running());
    let outcome = done.clone();
    assert_eq!(caller.news(done), Input::Shell { command, outcome });
}

#[test]
fn a_person_s_command_is_stopped_before_it_starts_or_while_it_runs() {
    let (mut effects, mut driver) = (effects(), Notes::default());
    let agent = Line("sleep 30");
    let (first, second) = (CommandId(1), CommandId(2));
    effects.take(&agent, RunId::MAIN, Effect::RunShell(first), 5);
    effects.take(&agent, RunId::MAIN, Effect::StopShell(first), 5);
    let Some(Input::Shell {
        command,
        outcome: ToolUpdate::Done { outcome, .. },
    }) = effects.ready()
    else {
        panic!("it wasn't settled");
    };
    assert_eq!((command, outcome), (first, ToolOutcome::Cancelled));
    effects.take(&agent, RunId::MAIN, Effect::RunShell(second), 6);
    effects.start_due(9, &mut driver);
    assert_eq!(driver.started.len(), 1);
    for _ in 0..2 {
        effects.take(&agent, RunId::MAIN, Effect::StopShell(second), 9);
        assert_eq!(driver.stopped.load(Ordering::Relaxed), 1);
        assert!(effects.ready().is_none() && effects.is_running());
    }
}
