//! What is known of the session: from `get_state`, and from what changes it.

use alloc::vec::Vec;

use super::{ClientFace, Out};
use crate::protocol::omp::Generation;
use crate::protocol::omp::wire::{ContextUsage, Kept, Model, SlashCommand, State};
use crate::vocab::*;

impl ClientFace {
    /// A frame tells of the program's generation.
    pub(super) fn tells(&mut self, generation: Generation) {
        self.generation = self.generation.max(generation);
    }

    /// Reads a state into what is known. Whether something of it is new.
    pub(super) fn learn(&mut self, state: &State<'_>) -> bool {
        if state.is_settled.is_some() || state.has_pending_async_work.is_some() {
            self.tells(Generation::G2);
        }
        if state.queued_messages.is_some() {
            self.tells(Generation::G3);
        }
        let before = self.info.clone();
        self.info.session = (&*state.session_id).into();
        self.info.name = state.session_name.as_deref().map(Text::from);
        if let Some(Kept::Known(model)) = &state.model {
            self.learn_model(model);
        }
        let settings = &mut self.info.settings;
        if let Some(level) = &state.thinking_level {
            settings.thinking = Some((&**level).into());
        }
        settings.steer_drain = drain(state.steering_mode.as_deref());
        settings.follow_up_drain = drain(state.follow_up_mode.as_deref());
        settings.interrupting = match state.interrupt_mode.as_deref() {
            Some("wait") => Interrupting::Wait,
            Some(_) | None => Interrupting::Immediate,
        };
        if let Some(enabled) = state.auto_compaction_enabled {
            settings.auto_compact = enabled;
        }
        if let Some(tools) = &state.dump_tools {
            let names = tools.iter().filter_map(|tool| tool.get("name")?.string());
            self.info.tools = names.map(|name| (&*name).into()).collect();
        }
        self.info != before
    }

    pub(super) fn learn_model(&mut self, model: &Model<'_>) {
        self.info.model = ModelRef {
            provider: Some((&*model.provider).into()),
            model: (&*model.id).into(),
        };
        let efforts = model.thinking.get().and_then(|it| it.get("efforts"));
        let efforts = efforts.and_then(|it| it.decode::<Vec<crate::json::Str<'_>>>().ok());
        self.info.efforts = efforts
            .unwrap_or_default()
            .iter()
            .map(|effort| (&**effort).into())
            .collect();
        let kinds = model.input.as_deref().unwrap_or_default();
        self.info.media = if kinds.iter().any(|kind| *kind == "image") {
            [
                Text::from("image/png"),
                "image/jpeg".into(),
                "image/gif".into(),
                "image/webp".into(),
            ]
            .into()
        } else {
            Vec::new()
        };
    }

    /// `provider/id`, as fallbacks name a model.
    pub(super) fn learn_model_name(&mut self, name: &str) {
        let (provider, model) = match name.split_once('/') {
            Some((provider, model)) => (Some(provider.into()), model),
            None => (self.info.model.provider.clone(), name),
        };
        self.info.model = ModelRef {
            provider,
            model: model.into(),
        };
    }

    /// The slash commands. Whether they are other ones.
    pub(super) fn learn_commands(&mut self, commands: &[Kept<'_, SlashCommand<'_>>]) -> bool {
        let known = commands.iter().filter_map(Kept::known);
        let told: Vec<(Text, Text, Text)> = known
            .map(|command| {
                let hint = command.input.as_ref().and_then(|it| it.hint.as_deref());
                (
                    (&*command.name).into(),
                    command.description.as_deref().unwrap_or_default().into(),
                    hint.unwrap_or_default().into(),
                )
            })
            .collect();
        let changed = self.info.commands != told;
        self.info.commands = told;
        changed
    }

    /// A setting that the agent took counts now.
    pub(super) fn apply(&mut self, setting: Setting) {
        let settings = &mut self.info.settings;
        match setting {
            Setting::Thinking(level) => settings.thinking = level,
            Setting::SteerDrain(drain) => settings.steer_drain = drain,
            Setting::FollowUpDrain(drain) => settings.follow_up_drain = drain,
            Setting::Interrupting(what) => settings.interrupting = what,
            Setting::AutoRetry(on) => settings.auto_retry = on,
            Setting::AutoCompact(on) => settings.auto_compact = on,
            Setting::Name(name) => self.info.name = Some(name),
            Setting::Model(Some(name)) => self.learn_model_name(&name),
            Setting::Model(None) | Setting::ThinkingBudget(_) | Setting::Approvals(_) => {}
        }
    }

    pub(super) fn changed(&mut self, seen: Seen, out: &mut Out) {
        if self.is_open() {
            out.event(RunId::MAIN, seen, What::Changed(self.info.clone()));
        }
    }

    /// How full the context is, where the agent says so.
    pub(super) fn context(&self, usage: Option<&ContextUsage<'_>>, out: &mut Out) {
        let Some(usage) = usage else { return };
        let window = usage.context_window.u64().filter(|window| *window > 0);
        let used = usage.tokens.0.as_ref().and_then(|tokens| tokens.u64());
        if let (Some(used), Some(window)) = (used, window) {
            out.say(What::Context {
                used,
                window,
                estimated: true,
            });
        }
    }
}

fn drain(mode: Option<&str>) -> Drain {
    if mode == Some("all") {
        Drain::All
    } else {
        Drain::One
    }
}
