//! Bringing a story to its end.

use turnwire::vocab::*;

use super::*;
use crate::world::{Given, World};

/// How a story is brought to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every question is allowed, every effect settles.
    Willing,
    /// Every question but a hook is denied, every effect settles.
    Unwilling,
    /// Nobody answers and nothing settles; only time passes.
    Silent,
}

/// Lets everything that is open come to its end, and then closes the session.
pub fn finish<A: Agent>(world: &mut World<A>, ending: Ending, drain: bool) {
    quiesce(world, ending);
    world.command(Command::Close { drain });
    quiesce(world, ending);
    if world.faults.is_empty() && !world.closed() && ending != Ending::Silent {
        let open = (
            world.mirror.turn().cloned(),
            world.mirror.queue().to_vec(),
            world.work.len(),
        );
        world.faults.push(format!(
            "S-55: closed with drain {drain}, and it isn't: {open:?}"
        ));
    }
}

/// Lets everything that is open come to its end.
pub fn quiesce<A: Agent>(world: &mut World<A>, ending: Ending) {
    for _ in 0..2_000 {
        if !world.faults.is_empty() {
            return;
        }
        let question = world
            .mirror
            .questions()
            .first()
            .map(|open| (open.ask, open.body.clone()));
        let work = world.work.keys().next().copied();
        match (question, work) {
            (Some((ask, body)), _) if ending != Ending::Silent => {
                // A turn whose end is refused for ever never ends.
                let yes = ending == Ending::Willing || matches!(body, Ask::Hook(_));
                let how = if yes { Answering::Yes } else { Answering::No };
                world.command(Command::Reply {
                    ask,
                    reply: answer_to(&body, how),
                });
            }
            (_, Some(id)) if ending != Ending::Silent => settle(world, id),
            _ if ending != Ending::Silent && !world.jobs.is_empty() => {
                for job in world.jobs.keys().copied().collect::<Vec<_>>() {
                    let update = JobUpdate::Ended(JobState::Exited(0));
                    world.give(Given::Else(Input::Job { job, update }));
                }
            }
            _ => {
                if !world.jump() {
                    return;
                }
            }
        }
    }
    world.faults.push("it never comes to rest".to_owned());
}
