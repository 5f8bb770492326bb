//! A model of one of the user's own providers, see [`registry`](crate::registry).

use std::path::Path;

use super::{Chosen, Layers, kind, prices};
use crate::args::ServeArgs;
use crate::protocols::{ServedName, agentx};
use crate::registry::{self, Entry};
use crate::say::Stop;
use crate::settings::file::ModelTable;
use crate::settings::values::Temperature;
use crate::settings::{Env, Layer, Model, Provider, Providers};

/// The provider, if it is one of the registry's.
///
/// The registry counts where `--provider` names one of its ids; in the strict wire, whose hosts are shown all of it; and
/// where nothing else says how a model is spoken with. It isn't even read where the flags set a provider up.
pub(super) fn choose(
    args: &ServeArgs,
    flags: &ModelTable,
    files: &[Layer],
    registry: Providers<'_>,
    env: Env<'_>,
) -> Result<Option<Chosen>, Stop> {
    if kind(flags).is_some() || flags.base_url.is_some() || flags.key_env.is_some() {
        return Ok(None);
    }
    let strict = agentx::is_strict(args);
    if !strict && flags.provider.is_none() && others_say(args, flags, files) {
        return Ok(None);
    }
    let Some(registry) = registry()? else {
        return Ok(None);
    };
    let entry = match &flags.provider {
        Some(id) => match registry.find(id) {
            Some(entry) => entry,
            None if strict => {
                return Err(Stop::Settings(format!(
                    "no provider is called {id:?}: list them with --list-providers"
                )));
            }
            None => return Ok(None),
        },
        None => registry.default().ok_or_else(|| registry.choose_one())?,
    };
    let chosen = chosen(args, flags, files, entry, env)?;
    Ok(Some(Chosen {
        registry: Some(registry.clone()),
        ..chosen
    }))
}

/// Whether the files, or what counts if they don't, say which model it is.
fn others_say(args: &ServeArgs, flags: &ModelTable, files: &[Layer]) -> bool {
    let fallback = args.foreign.fallback.as_ref();
    let tables = files.iter().map(|layer| &layer.settings.model);
    let mut all = std::iter::once(flags).chain(tables);
    fallback.is_some_and(|it| it.api.is_some())
        || all
            .any(|table| kind(table).is_some() || table.base_url.is_some() || table.name.is_some())
}

fn chosen(
    args: &ServeArgs,
    flags: &ModelTable,
    files: &[Layer],
    entry: &Entry,
    env: Env<'_>,
) -> Result<Chosen, Stop> {
    let id = &entry.id;
    if let Some(name) = flags.name.as_ref().filter(|name| **name != entry.model) {
        return Err(Stop::Settings(format!(
            "the provider {id:?} serves the model {:?}, not {name:?}: choose another one with --provider",
            entry.model
        )));
    }
    if flags.others.is_some() || flags.efforts.is_some() {
        return Err(Stop::Settings(format!(
            "--other-model and --effort have no meaning with the provider {id:?}: its entry says what it has"
        )));
    }
    let tables = layers(flags, files, id);
    let layers = Layers {
        api: Some(entry.kind.api()),
        provider: id.clone(),
        tables,
    };
    let model = Model::Http(Box::new(Provider {
        api: entry.kind.api(),
        base_url: entry.endpoint.clone(),
        name: entry.model.clone(),
        key: registry::key(entry, env)?,
        key_from: None,
        door: entry.door.clone(),
        version_header: entry.version_header.clone(),
        kind: entry.kind.word(),
        unnamed: true,
        temperature: layers
            .first(|table| table.temperature)
            .map(Temperature::get),
    }));
    Ok(Chosen {
        prices: prices(&layers, &model)?,
        model,
        provider: id.clone(),
        others: Vec::new(),
        efforts: entry.efforts.clone(),
        thinking: effort(args, flags, entry)?,
        registry: None,
    })
}

/// The flags, and the files that speak of no other provider.
fn layers<'a>(
    flags: &'a ModelTable,
    files: &'a [Layer],
    id: &str,
) -> Vec<(&'a ModelTable, &'a Path)> {
    let of_files = files.iter().map(|layer| {
        let folder = layer.path.parent().unwrap_or(Path::new(""));
        (&layer.settings.model, folder)
    });
    let any = of_files.filter(|(table, _)| {
        let name = table.provider.as_ref();
        kind(table).is_none() && name.is_none_or(|name| name == id)
    });
    std::iter::once((flags, Path::new(""))).chain(any).collect()
}

/// The effort at the start: one that the entry has.
fn effort(args: &ServeArgs, flags: &ModelTable, entry: &Entry) -> Result<Option<String>, Stop> {
    let lenient = match args.protocol {
        ServedName::Agentx => false,
        ServedName::Openmax | ServedName::Omp | ServedName::Claude | ServedName::Openseek => true,
    };
    let (word, lenient) = match (&args.foreign.thinking, &flags.thinking) {
        (Some(word), _) => (word, lenient),
        (None, Some(word)) => (word, false),
        (None, None) => return Ok(entry.default_effort.clone()),
    };
    match entry.efforts.iter().find(|effort| *effort == word) {
        Some(effort) => Ok(Some(effort.clone())),
        None if lenient => Ok(entry.default_effort.clone()),
        None => Err(Stop::Settings(format!(
            "the effort {word:?} is none that the provider {:?} has: {:?}",
            entry.id, entry.efforts
        ))),
    }
}
