//! Commands of the person's own, from their effect to the agent's input.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

use turnwire::model::script::Script;
use turnwire::vocab::{
    Agent, CallId, CheckpointId, CommandId, Due, Effect, EffectBody, Input, MessageId, Misuse, Now,
    Output, RawJson, RunId, ToolOutcome, ToolUpdate,
};

use super::effects::Effects;
use super::{Caller, Job, Report, Reporter, Start, Stopper};
use crate::hooks::{Hooks, HooksConfig};
use crate::model::Backend;
use crate::tools::{Bounds, Finished, Snapshots, ToolJob, Toolbox, ToolboxConfig};
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

/// An agent whose calls write one file, at message 3.
struct Writes(RawJson);

impl Agent for Writes {
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

    fn body(&self, _: RunId, effect: &Effect) -> Option<EffectBody<'_>> {
        let at = MessageId(3);
        let body = if let Effect::Snapshot { call, .. } = effect {
            EffectBody::Snapshot {
                call: *call,
                name: "write_file",
                input: &self.0,
                at,
            }
        } else {
            EffectBody::Restore {
                to: at,
                at,
                dry_run: false,
            }
        };
        Some(body)
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
    effects_in(Path::new("/"), None, Arc::new(|_| {}))
}

fn effects_in(root: &Path, snapshots: Option<Snapshots>, report: Reporter) -> Effects {
    let tools = ToolboxConfig::new(root);
    let world = World {
        snapshots,
        backend: Backend::Scripted(Arc::new(Script::parse("").unwrap())),
        hooks: Hooks::new(HooksConfig::beside(&tools, "s", Vec::new())),
        toolbox: Toolbox::new(tools).unwrap(),
        sessions: None,
        durable: Box::new(Forget),
        reload: Box::new(Fixed { tools: 0 }),
        media: crate::Media::none(),
        mcp: None,
    };
    Effects::new(world, report)
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

#[test]
fn a_file_is_put_aside_before_a_call_and_put_back_for_a_command() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("project");
    std::fs::create_dir(&root).unwrap();
    let file = root.join("a");
    std::fs::write(&file, "old").unwrap();
    let kept = Snapshots::at(place.path().join("kept"), 0, Bounds::default());
    let (send, reports) = mpsc::channel();
    let report: Reporter = Arc::new(move |report| send.send(report).unwrap());
    let mut effects = effects_in(&root, Some(kept), report);
    let mut driver = Notes::default();
    let agent = Writes(RawJson(r#"{"path":"a","content":"new"}"#.into()));
    let (call, checkpoint) = (CallId(1), CheckpointId(1));
    effects.take(
        &agent,
        RunId::MAIN,
        Effect::Snapshot { call, checkpoint },
        5,
    );
    effects.start_due(5, &mut driver);
    let Report::Snapshotted(told, ToolUpdate::Snapshotted { files, .. }) = reports.recv().unwrap()
    else {
        panic!("it wasn't put aside");
    };
    assert_eq!((told, &*files), (call, &["a".into()][..]));
    std::fs::write(&file, "new").unwrap();
    let command = CommandId(7);
    effects.take(&agent, RunId::MAIN, Effect::Restore(command), 5);
    effects.start_due(5, &mut driver);
    let Report::Restored(told, Ok(done)) = reports.recv().unwrap() else {
        panic!("it wasn't put back");
    };
    assert_eq!((told, &*done.restored), (command, &["a".into()][..]));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
}

#[test]
fn without_a_place_for_them_no_file_is_put_aside_and_the_call_does_not_run() {
    let (mut effects, mut driver) = (effects(), Notes::default());
    let agent = Writes(RawJson("{}".into()));
    let (call, checkpoint) = (CallId(1), CheckpointId(1));
    effects.take(
        &agent,
        RunId::MAIN,
        Effect::Snapshot { call, checkpoint },
        0,
    );
    effects.take(&agent, RunId::MAIN, Effect::Restore(CommandId(7)), 0);
    effects.start_due(0, &mut driver);
    let Some(Input::Tool {
        update: ToolUpdate::Done { outcome, .. },
        ..
    }) = effects.ready()
    else {
        panic!("the call wasn't settled");
    };
    assert_eq!(outcome, ToolOutcome::Failed);
    let Some(Input::Restored { outcome, .. }) = effects.ready() else {
        panic!("the command wasn't settled");
    };
    assert!(outcome.is_err());
}
