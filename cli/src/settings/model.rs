//! Who plays the model, and what a host may choose of it.

mod listed;

use std::path::Path;

use super::file::{self, ModelTable, PriceTable};
use super::values::{Api, BaseUrl, Dollars, EnvName, Temperature};
use super::{Env, Layer, Model, Provider, Providers, flag};
use crate::args::{Fallback, Foreign, ServeArgs};
use crate::foreign::sdk::TOKEN;
use crate::registry::Registry;
use crate::say::Stop;
use turnwire::session::config::Price;
use turnwire_io::{Door, Secret};

/// What hosts call a script that plays the model.
const SCRIPT: &str = "script";

/// What the layers say of the model together.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) model: Model,
    pub(super) provider: String,
    pub(super) others: Vec<String>,
    pub(super) efforts: Vec<String>,
    pub(super) thinking: Option<String>,
    pub(super) prices: Vec<(String, Price)>,
    /// The user's providers, if it is one of them.
    pub(super) registry: Option<Registry>,
}

/// The layers that speak of one provider: the flags, and those files that mean the same.
struct Layers<'a> {
    api: Option<Api>,
    provider: String,
    /// Of each its table, and the folder that its paths are relative to.
    tables: Vec<(&'a ModelTable, &'a Path)>,
}

impl<'a> Layers<'a> {
    fn first<T>(&self, get: impl Fn(&'a ModelTable) -> Option<T>) -> Option<T> {
        self.tables.iter().find_map(|(table, _)| get(table))
    }
}

/// What the highest layer that speaks of the model's kind says.
pub(super) fn choose(
    args: &ServeArgs,
    files: &[Layer],
    registry: Providers<'_>,
    env: Env<'_>,
) -> Result<Chosen, Stop> {
    let flags = flags(args, files)?;
    contradictions(&flags)?;
    for layer in files {
        contradictions(&layer.settings.model)?;
    }
    if let Some(chosen) = listed::choose(args, &flags, files, registry, env)? {
        return Ok(chosen);
    }
    let fallback = args.foreign.fallback.as_ref();
    let layers = layers(&flags, files, fallback)?;
    let model = model(&layers, &args.foreign, env)?;
    let others = layers.first(|table| table.others.clone());
    let efforts = layers.first(|table| table.efforts.clone());
    let (others, efforts) = (others.unwrap_or_default(), efforts.unwrap_or_default());
    let thinking = match args.foreign.thinking.as_deref() {
        // There a level that the model hasn't is no fault: it does what it can.
        Some(word) => efforts.iter().find(|effort| *effort == word).cloned(),
        None => layers.first(|table| table.thinking.clone()),
    };
    if let Some(word) = &thinking
        && !efforts.contains(word)
    {
        return Err(Stop::Settings(format!(
            "thinking {word:?} is none of the efforts that the model knows: {efforts:?}"
        )));
    }
    let prices = prices(&layers, &model)?;
    Ok(Chosen {
        model,
        provider: layers.provider,
        others,
        efforts,
        thinking,
        prices,
        registry: None,
    })
}

/// What the highest layer that speaks of prices says.
fn prices(layers: &Layers<'_>, model: &Model) -> Result<Vec<(String, Price)>, Stop> {
    let named = match model {
        Model::Http(http) => http.name.as_str(),
        Model::Builtin { .. } | Model::Script { .. } => SCRIPT,
    };
    let found = layers.first(|table| Some((table, table.prices.as_deref()?)));
    let Some((file, tables)) = found else {
        return Ok(Vec::new());
    };
    // A flag that names another model makes its price no other's.
    let named = file.name.as_deref().unwrap_or(named);
    let mut prices: Vec<(String, Price)> = Vec::new();
    for table in tables {
        let model = table.model.as_deref().unwrap_or(named);
        if prices.iter().any(|(of, _)| of == model) {
            let text = format!("model.price: {model:?} has two prices");
            return Err(Stop::Settings(text));
        }
        prices.push((model.to_owned(), price(table)));
    }
    Ok(prices)
}

fn price(table: &PriceTable) -> Price {
    let cached = |price: Option<Dollars>| price.unwrap_or(table.input).of_a_million();
    Price {
        input: table.input.of_a_million(),
        cache_read: cached(table.cache_read),
        cache_write: cached(table.cache_write),
        output: table.output.of_a_million(),
        source: table.source.as_deref().unwrap_or("settings").into(),
        as_of: table.as_of.as_str().into(),
    }
}

/// The flags, in the form of a file's table.
fn flags(args: &ServeArgs, files: &[Layer]) -> Result<ModelTable, Stop> {
    let flags = &args.model;
    let list = |words: &[String]| (!words.is_empty()).then(|| words.to_vec());
    let (mut provider, mut name) = (flags.provider.clone(), flags.model.clone());
    if args.foreign.provider_in_model
        && let Some((first, rest)) = flags.model.as_deref().and_then(|it| it.split_once('/'))
        && match &provider {
            Some(provider) => provider == first,
            None => serves(first, files).is_some(),
        }
    {
        provider = Some(first.to_owned());
        name = Some(rest.to_owned());
    }
    Ok(ModelTable {
        api: flags.api,
        provider,
        base_url: flags
            .base_url
            .as_deref()
            .map(|text| flag("--base-url", text))
            .transpose()?,
        name,
        others: list(&flags.other_model),
        key_env: flags
            .key_env
            .as_deref()
            .map(|name| flag("--key-env", name))
            .transpose()?,
        script: flags.script.clone(),
        temperature: flags.temperature,
        efforts: list(&flags.effort),
        thinking: flags.thinking.clone(),
        ..ModelTable::default()
    })
}

/// The kind that a table chooses: a script alone is a choice too; a name and an address choose nothing.
fn kind(table: &ModelTable) -> Option<Api> {
    table.api.or(table.script.as_ref().map(|_| Api::Scripted))
}

/// What hosts call a provider of this kind, unless a file says something else.
fn word(api: Api) -> &'static str {
    match api {
        Api::Openai => "openai",
        Api::Anthropic => "anthropic",
        Api::Scripted => SCRIPT,
    }
}

/// How the provider of this name is spoken with: as the file says that sets it up, or in its own way.
fn serves(name: &str, files: &[Layer]) -> Option<Api> {
    let tables = files.iter().map(|layer| &layer.settings.model);
    let set_up = |table: &ModelTable| {
        let api = kind(table)?;
        (table.provider.as_deref().unwrap_or(word(api)) == name).then_some(api)
    };
    let own = [Api::Openai, Api::Anthropic, Api::Scripted];
    tables
        .filter_map(set_up)
        .chain(own.into_iter().filter(|api| word(*api) == name))
        .next()
}

/// Leaves out the files that speak of another provider: its address and its key are none of this one's.
fn layers<'a>(
    flags: &'a ModelTable,
    files: &'a [Layer],
    fallback: Option<&Fallback>,
) -> Result<Layers<'a>, Stop> {
    let of_files = files.iter().map(|layer| {
        let folder = layer.path.parent().unwrap_or(Path::new(""));
        (&layer.settings.model, folder)
    });
    let all = std::iter::once((flags, Path::new(""))).chain(of_files);
    let wanted = flags.provider.as_deref();
    let api = match (kind(flags), wanted) {
        (Some(api), _) => Some(api),
        (None, Some(name)) => Some(serves(name, files).ok_or_else(|| {
            Stop::Settings(format!(
                "no provider is called {name:?}: set it up in a settings file (model.provider), or name openai or \
                 anthropic"
            ))
        })?),
        (None, None) => {
            let mut all = all.clone();
            let said = all.find_map(|(table, _)| kind(table));
            said.or_else(|| fallback?.api)
        }
    };
    let tables: Vec<_> = all
        .filter(|(table, _)| {
            let same_kind = kind(table).is_none_or(|other| Some(other) == api);
            let same_name = match (wanted, kind(table), table.provider.as_deref()) {
                (None, _, _) | (Some(_), None, None) => true,
                (Some(wanted), None, Some(name)) => name == wanted,
                (Some(wanted), Some(api), name) => name.unwrap_or(word(api)) == wanted,
            };
            std::ptr::eq(*table, flags) || (same_kind && same_name)
        })
        .collect();
    let named = tables.iter().find_map(|(table, _)| table.provider.clone());
    Ok(Layers {
        api,
        provider: named.unwrap_or_else(|| word(api.unwrap_or(Api::Scripted)).to_owned()),
        tables,
    })
}

fn model(layers: &Layers<'_>, foreign: &Foreign, env: Env<'_>) -> Result<Model, Stop> {
    let fallback = foreign.fallback.as_ref();
    let Some(api) = layers.api else {
        let named = |table: &ModelTable| table.base_url.is_some() || table.name.is_some();
        if layers.first(|table| named(table).then_some(())).is_some() {
            let text = "a model is named, but not how to speak with it: set api (--api openai, or --api anthropic)";
            return Err(Stop::Settings(text.to_owned()));
        }
        return Ok(Model::Builtin { chosen: false });
    };
    let Some((own_url, own_key)) = own(api) else {
        return scripted(layers);
    };
    let bearer = foreign.bearer.filter(|_| api == Api::Anthropic);
    let name = layers
        .first(|table| table.name.clone())
        .filter(|name| !name.trim().is_empty())
        .or_else(|| Some(fallback.filter(|_| api == Api::Anthropic)?.model.clone()));
    let Some(name) = name else {
        return Err(Stop::Settings(
            "no model is named: set its name (--model NAME)".to_owned(),
        ));
    };
    let named_url = layers.first(|table| table.base_url.clone());
    let key_env = match layers.first(|table| table.key_env.clone()) {
        Some(name) => Some(name),
        // A key of one provider is never sent to another's address unasked.
        None if named_url.as_ref().is_none_or(|url| url.as_str() == own_url) => {
            let own_key = bearer.unwrap_or(own_key);
            Some(flag::<EnvName>("key_env", own_key)?)
        }
        None => None,
    };
    let base_url = match named_url {
        Some(url) => url,
        None => flag::<BaseUrl>("base_url", own_url)?,
    };
    let key_from = key_env.as_ref().map(|name| name.as_str().to_owned());
    let key = key_env.map(|name| key(name.as_str(), env)).transpose()?;
    Ok(Model::Http(Box::new(Provider {
        api,
        base_url,
        name,
        key,
        door: match &key_from {
            Some(name) if bearer == Some(name.as_str()) => Door::Bearer,
            Some(_) | None => Door::Api,
        },
        key_from,
        version_header: None,
        kind: api.word(),
        unnamed: false,
        temperature: layers
            .first(|table| table.temperature)
            .map(Temperature::get),
    })))
}

/// A provider's own address, and the variable that holds its key there.
pub fn own(api: Api) -> Option<(&'static str, &'static str)> {
    match api {
        Api::Openai => Some(("https://api.openai.com/v1", "OPENAI_API_KEY")),
        Api::Anthropic => Some(("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY")),
        Api::Scripted => None,
    }
}

/// The variables that hold keys: by custom, or because somebody named them. The model must not be able to read the key
/// that pays for it, nor another's.
pub(super) fn key_variables(args: &ServeArgs, files: &[Layer]) -> Result<Vec<String>, Stop> {
    let own = [Api::Openai, Api::Anthropic].into_iter().filter_map(own);
    let mut names: Vec<String> = own.map(|(_, key)| key.to_owned()).collect();
    names.push(TOKEN.to_owned());
    let flag = match &args.model.key_env {
        Some(name) => Some(flag::<EnvName>("--key-env", name)?),
        None => None,
    };
    let of_files = files.iter().map(|layer| &layer.settings.model.key_env);
    let named = flag.iter().chain(of_files.flatten());
    names.extend(named.map(|name| name.as_str().to_owned()));
    Ok(names)
}

/// Refuses a layer whose own members don't go together; a lower layer's may be overruled.
fn contradictions(layer: &ModelTable) -> Result<(), Stop> {
    let scripted = layer.api == Some(Api::Scripted);
    let odd = if scripted && layer.base_url.is_some() {
        "base_url"
    } else if layer.script.is_some() && !scripted && layer.api.is_some() {
        "script"
    } else {
        return Ok(());
    };
    let api = if scripted {
        "scripted"
    } else {
        "openai or anthropic"
    };
    Err(Stop::Settings(format!(
        "{odd} has no meaning beside api {api}"
    )))
}

/// The script of the layer that chose it, else the built-in one.
fn scripted(layers: &Layers<'_>) -> Result<Model, Stop> {
    for (layer, folder) in &layers.tables {
        if let Some(script) = &layer.script {
            let path = folder.join(script);
            let text = file::text(&path)?.ok_or_else(|| {
                Stop::Settings(format!("{}: there is no such script", path.display()))
            })?;
            return Ok(Model::Script { path, text });
        }
        if layer.api == Some(Api::Scripted) {
            break;
        }
    }
    Ok(Model::Builtin { chosen: true })
}

/// The key out of the environment; no message holds it.
///
/// # Errors
/// [`Stop::Settings`] if there is none, or one that can't be sent.
pub fn key(name: &str, env: Env<'_>) -> Result<Secret, Stop> {
    let Some(value) = env(name) else {
        return Err(Stop::Settings(format!(
            "the environment variable {name}, which should hold the key, isn't set"
        )));
    };
    value.to_str().and_then(sendable).map(Secret::new).ok_or_else(|| {
        Stop::Settings(format!(
            "the environment variable {name} holds no key: it is empty, or has characters that no header can carry"
        ))
    })
}

/// A key as a header can carry it: visible ASCII, not empty. White space around it, as the newline of `$(cat key)`,
/// is taken off.
pub fn sendable(text: &str) -> Option<&str> {
    let text = text.trim();
    (!text.is_empty() && text.bytes().all(|byte| (0x21..=0x7e).contains(&byte))).then_some(text)
}
