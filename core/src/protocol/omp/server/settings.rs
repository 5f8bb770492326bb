//! Settings and offers: what the session is told to be.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::commands::payload;
use super::outside::Outside;
use super::ticket::Ticket;
use super::{Face, Pending, offers};
use crate::json::Str;
use crate::protocol::Outbox;
use crate::protocol::omp::wire::{
    Any, Data, HostScheme, HostTool, InterruptMode, Kept, Level, QueueMode, Schemes, ToolNames,
};
use crate::protocol::omp::{Omp, OmpAsk};
use crate::vocab::*;

/// The level at which a model doesn't think.
const OFF: &str = "off";

impl Face {
    /// Changes a setting; success without a payload.
    pub(super) fn set(&mut self, ticket: Ticket, setting: Setting, out: &mut Outbox<Omp>) {
        self.set_then(ticket, setting, None, out);
    }

    /// Changes a setting; success with this payload.
    pub(super) fn set_then(
        &mut self,
        ticket: Ticket,
        setting: Setting,
        json: Option<Vec<u8>>,
        out: &mut Outbox<Omp>,
    ) {
        self.call(Command::Set(setting), Pending::Setting(ticket, json), out);
    }

    pub(super) fn set_model(
        &mut self,
        ticket: Ticket,
        provider: Any<'_>,
        model: Any<'_>,
        out: &mut Outbox<Omp>,
    ) {
        let (Some(provider), Some(model)) = (provider.string(), model.string()) else {
            let error = format!("Model not found: {}/{}", provider.shown(), model.shown());
            return self.fail(ticket, &error, out);
        };
        let ask = OmpAsk::FindModel {
            provider: (&*provider).into(),
            model: (&*model).into(),
        };
        let what = Outside::FindModel {
            provider: String::from(&*provider),
            model: String::from(&*model),
        };
        self.ask(ticket, ask, what, out);
    }

    /// The levels that the model knows, `off` first.
    pub(super) fn levels(&self) -> Vec<Text> {
        let mut levels = Vec::from([Text::from(OFF)]);
        let efforts = self.mirror.info().map(|info| info.efforts.as_slice());
        levels.extend(
            efforts
                .unwrap_or_default()
                .iter()
                .filter(|level| &***level != OFF)
                .cloned(),
        );
        levels
    }

    /// The setting of a level: a model that has no word for `off` isn't told anything.
    fn thinking(&self, level: &str) -> Setting {
        let efforts = self.mirror.info().map(|info| info.efforts.as_slice());
        let has = efforts
            .unwrap_or_default()
            .iter()
            .any(|effort| **effort == *level);
        Setting::Thinking(has.then(|| level.into()))
    }

    pub(super) fn set_thinking(&mut self, ticket: Ticket, level: Any<'_>, out: &mut Outbox<Omp>) {
        let word = level.shown();
        if level.string().is_some() && self.levels().iter().any(|level| **level == *word) {
            let setting = self.thinking(&word);
            self.set(ticket, setting, out);
        } else {
            let error = format!("The model has no thinking level {word}");
            self.fail(ticket, &error, out);
        }
    }

    pub(super) fn cycle_thinking(&mut self, ticket: Ticket, out: &mut Outbox<Omp>) {
        let levels = self.levels();
        let current = self
            .mirror
            .info()
            .and_then(|info| info.settings.thinking.clone());
        let current = current.as_deref().unwrap_or(OFF);
        let at = levels.iter().position(|level| **level == *current);
        let next = at.map_or(0, |at| (at + 1) % levels.len().max(1));
        match levels.get(next) {
            Some(level) if levels.len() > 1 => {
                let json = payload(&Data::Level(Level {
                    level: (&**level).into(),
                    ..Level::default()
                }));
                let setting = self.thinking(level);
                self.set_then(ticket, setting, Some(json), out);
            }
            Some(_) | None => self.data(ticket, &Data::Null, out),
        }
    }

    pub(super) fn steering_mode(
        &mut self,
        ticket: Ticket,
        mode: &QueueMode<'_>,
        out: &mut Outbox<Omp>,
    ) {
        self.own.steering_mode = Some(mode.as_str().into());
        match drain(mode) {
            Some(drain) => self.set(ticket, Setting::SteerDrain(drain), out),
            None => self.done(ticket, out),
        }
    }

    pub(super) fn follow_up_mode(
        &mut self,
        ticket: Ticket,
        mode: &QueueMode<'_>,
        out: &mut Outbox<Omp>,
    ) {
        self.own.follow_up_mode = Some(mode.as_str().into());
        match drain(mode) {
            Some(drain) => self.set(ticket, Setting::FollowUpDrain(drain), out),
            None => self.done(ticket, out),
        }
    }

    pub(super) fn interrupt_mode(
        &mut self,
        ticket: Ticket,
        mode: &InterruptMode<'_>,
        out: &mut Outbox<Omp>,
    ) {
        self.own.interrupt_mode = Some(mode.as_str().into());
        let setting = match mode {
            InterruptMode::Immediate => Interrupting::Immediate,
            InterruptMode::Wait => Interrupting::Wait,
            InterruptMode::Other(_) => return self.done(ticket, out),
        };
        self.set(ticket, Setting::Interrupting(setting), out);
    }

    pub(super) fn offer_tools(
        &mut self,
        ticket: Ticket,
        tools: &[Kept<'_, HostTool<'_>>],
        out: &mut Outbox<Omp>,
    ) {
        let specs = match offers::tools(tools) {
            Ok(specs) => specs,
            Err(error) => return self.fail(ticket, &error, out),
        };
        let taken = specs.iter().find(|spec| {
            !self.own.host_tools.contains(&spec.name)
                && self
                    .mirror
                    .info()
                    .is_some_and(|info| info.tools.contains(&spec.name))
        });
        if let Some(spec) = taken {
            let error = format!(
                "RPC host tool \"{}\" conflicts with an existing tool",
                spec.name
            );
            return self.fail(ticket, &error, out);
        }
        let names: Vec<Text> = specs.iter().map(|spec| spec.name.clone()).collect();
        let json = payload(&Data::ToolNames(ToolNames {
            tool_names: names.iter().map(|name| Str::from(&**name)).collect(),
            ..ToolNames::default()
        }));
        let pending = Pending::Offer {
            ticket,
            json,
            names,
        };
        self.call(Command::Offer(Offer::Tools(specs)), pending, out);
    }

    pub(super) fn offer_schemes(
        &mut self,
        ticket: Ticket,
        schemes: &[Kept<'_, HostScheme<'_>>],
        out: &mut Outbox<Omp>,
    ) {
        let specs = match offers::schemes(schemes) {
            Ok(specs) => specs,
            Err(error) => return self.fail(ticket, &error, out),
        };
        let json = payload(&Data::Schemes(Schemes {
            schemes: specs.iter().map(|spec| Str::from(&*spec.scheme)).collect(),
            ..Schemes::default()
        }));
        let pending = Pending::Then(ticket, Some(json));
        self.call(Command::Offer(Offer::Uris(specs)), pending, out);
    }
}

/// How a queue is drained; `None` for a word that means nothing.
fn drain(mode: &QueueMode<'_>) -> Option<Drain> {
    match mode {
        QueueMode::OneAtATime => Some(Drain::One),
        QueueMode::All => Some(Drain::All),
        QueueMode::Other(_) => None,
    }
}
