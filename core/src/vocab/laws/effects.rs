//! Effects and questions.

use super::*;

#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    started: BTreeMap<EffectId, Phase>,
    /// Requests that were settled before their start was seen are settled all the same.
    settled: BTreeSet<EffectId>,
    /// The request that is live, in each run.
    request: BTreeMap<RunId, RequestId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Live,
    Stopped,
}

impl Effects {
    pub(super) fn settle(&mut self, id: EffectId) {
        self.settled.insert(id);
    }

    pub(super) fn effect(&mut self, run: RunId, effect: &Effect, report: &mut Report) {
        match effect {
            Effect::StartModel(request) => {
                self.start(EffectId::Model(*request), report);
                if let Some(other) = self.request.insert(run, *request) {
                    let id = EffectId::Model(other);
                    let live =
                        self.started.get(&id) == Some(&Phase::Live) && !self.settled.contains(&id);
                    report.check(!live, Breach::TwoRequests(*request));
                }
            }
            Effect::RunTool { call } => self.start(EffectId::Tool(*call), report),
            Effect::Snapshot { call, .. } => self.start(EffectId::Snapshot(*call), report),
            Effect::Restore(command) => self.start(EffectId::Restore(*command), report),
            Effect::RunHook { hook } => self.start(EffectId::Hook(*hook), report),
            Effect::Store(write) => self.start(EffectId::Write(*write), report),
            Effect::StartRun { run, .. } => self.start(EffectId::Run(*run), report),
            Effect::RunShell(command) => self.start(EffectId::Shell(*command), report),
            Effect::OpenSession(command) => self.start(EffectId::Open(*command), report),
            Effect::Reload(command) => self.start(EffectId::Reload(*command), report),
            Effect::StopModel(request) => self.stop(EffectId::Model(*request), report),
            Effect::StopTool(call) => {
                let ran = self.started.contains_key(&EffectId::Tool(*call));
                self.stop(
                    if ran {
                        EffectId::Tool(*call)
                    } else {
                        EffectId::Snapshot(*call)
                    },
                    report,
                );
            }
            Effect::StopHook(hook) => self.stop(EffectId::Hook(*hook), report),
            Effect::StopRun(run) => self.stop(EffectId::Run(*run), report),
            Effect::StopShell(command) => self.stop(EffectId::Shell(*command), report),
            Effect::DetachTool(call) => {
                let id = EffectId::Tool(*call);
                let live = self.started.get(&id) == Some(&Phase::Live);
                report.check(live, Breach::DetachedUnstarted(*call));
            }
            // A job begins as a call; network and hand-over are no work of their own.
            Effect::StopJob(_) | Effect::Allow { .. } | Effect::CallRun(..) => {}
        }
    }

    fn start(&mut self, id: EffectId, report: &mut Report) {
        let again = self.started.insert(id, Phase::Live).is_some();
        report.check(!again, Breach::RanTwice(id));
    }

    fn stop(&mut self, id: EffectId, report: &mut Report) {
        let live = self.started.insert(id, Phase::Stopped) == Some(Phase::Live);
        report.check(live, Breach::StoppedUnstarted(id));
    }
}

/// The open questions.
#[derive(Clone, Debug, Default)]
pub(super) struct Questions {
    open: BTreeMap<AskId, Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    run: RunId,
    /// The call whose permission it is.
    permission: Option<CallId>,
    /// Whether it goes with the turn that runs.
    of_turn: bool,
}

impl Questions {
    pub(super) fn asked(&mut self, run: RunId, ask: AskId, body: &Ask) {
        let permission = gated(body);
        // What stands before a prompt's admission or a change of session belongs to no turn;
        // the questions of a nested run that became a job outlive it.
        let beside = matches!(
            body,
            Ask::Hook(hook) if matches!(hook.point, HookPoint::PromptSubmit | HookPoint::SessionSwitch)
        );
        let of_turn = run == RunId::MAIN && !beside;
        self.open.insert(
            ask,
            Open {
                run,
                permission,
                of_turn,
            },
        );
    }

    /// `None`: not open. Else the call whose permission it was.
    pub(super) fn closed(&mut self, ask: AskId) -> Option<Option<CallId>> {
        self.open.remove(&ask).map(|open| open.permission)
    }

    /// Questions from before a turn aren't the turn's.
    pub(super) fn turn_started(&mut self) {
        for open in self.open.values_mut() {
            open.of_turn = false;
        }
    }

    pub(super) fn open_in_turn(&self) -> Option<AskId> {
        self.open
            .iter()
            .find(|(_, open)| open.of_turn)
            .map(|(ask, _)| *ask)
    }

    pub(super) fn open_in_run(&self, run: RunId) -> Option<AskId> {
        self.open
            .iter()
            .find(|(_, open)| open.run == run)
            .map(|(ask, _)| *ask)
    }

    pub(super) fn any_open(&self) -> Option<AskId> {
        self.open.keys().next().copied()
    }
}
