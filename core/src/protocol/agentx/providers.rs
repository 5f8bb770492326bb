//! The catalogue of providers: what a host may know of each, whichever is selected (WIRE-024 … 026).
//!
//! Nothing here says where a provider is, or how one is let in: the embedder's registry has that, and gives this.

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use super::Selected;
use super::wire::{Provider, ProviderList, Reasoning};
use crate::protocol::Credentials;
use crate::protocol::wire::Hole;
use crate::vocab::{RawJson, Text};

/// The version of the document that lists providers.
const VERSION: u64 = 1;

/// A provider of the registry, as a host may know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its id, which `--provider` takes.
    pub id: Text,
    /// Its type.
    pub kind: Text,
    /// Its model.
    pub model: Text,
    /// What people call it; `None`: its id and its model.
    pub name: Option<Text>,
    /// What it is, for people. Not where.
    pub description: Text,
    /// The registry says that it is taken where nobody chooses. A provider that is alone is, whatever this says.
    pub is_default: bool,
    /// The efforts that its operator declares, in their order.
    pub efforts: Vec<Text>,
    /// One of them.
    pub default_effort: Option<Text>,
}

impl Listed {
    /// The provider that a process is bound to, for [`ServerConfig::provider`](super::ServerConfig::provider).
    pub fn selected(&self) -> Selected {
        Selected {
            id: self.id.clone(),
            kind: self.kind.clone(),
            efforts: self.efforts.clone(),
            default_effort: self.default_effort.clone(),
        }
    }
}

/// The document can't be written: it would hold a credential. Says nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsafe;

impl fmt::Display for Unsafe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the list of providers would have held a credential: none of it was written")
    }
}

impl core::error::Error for Unsafe {}

/// The catalogue, in the registry's order, for [`ServerConfig::providers`](super::ServerConfig::providers). `selected` is
/// the id of the provider of this process.
pub fn catalogue(providers: &[Listed], selected: Option<&str>) -> Vec<RawJson> {
    let entry = |listed| {
        let mut json = Vec::new();
        let name = display_name(listed);
        describe(listed, &name, providers.len() == 1, selected).put(&mut json);
        RawJson(core::str::from_utf8(&json).unwrap_or("null").into())
    };
    providers.iter().map(entry).collect()
}

/// What `--list-providers --output-format json` writes, newline included: every provider, none selected.
///
/// # Errors
/// [`Unsafe`] when the exact bytes, newline included, would hold a credential: nothing may be written then.
pub fn discovery(providers: &[Listed], credentials: &mut Credentials) -> Result<Vec<u8>, Unsafe> {
    let names: Vec<_> = providers.iter().map(display_name).collect();
    let list = ProviderList {
        version: VERSION,
        providers: providers
            .iter()
            .zip(&names)
            .map(|(listed, name)| describe(listed, name, providers.len() == 1, None))
            .collect(),
        ..ProviderList::default()
    };
    let mut document = Vec::new();
    list.encode(&mut document);
    document.push(b'\n');
    if credentials.found_in(&document) {
        return Err(Unsafe);
    }
    Ok(document)
}

fn display_name(listed: &Listed) -> alloc::string::String {
    match &listed.name {
        Some(name) => (&**name).into(),
        None => format!("{} ({})", listed.id, listed.model),
    }
}

fn describe<'a>(
    listed: &'a Listed,
    name: &'a str,
    alone: bool,
    selected: Option<&str>,
) -> Provider<'a> {
    let supported = !listed.efforts.is_empty();
    let efforts = || listed.efforts.iter().map(|effort| (&**effort).into());
    // An effort that nobody declared is none to begin with.
    let default = listed.default_effort.as_ref();
    let default = default.filter(|default| listed.efforts.contains(default));
    let default = || default.map(|effort| (&**effort).into());
    Provider {
        value: (&*listed.id).into(),
        id: (&*listed.id).into(),
        provider_type: (&*listed.kind).into(),
        model: (&*listed.model).into(),
        display_name: name.into(),
        description: (&*listed.description).into(),
        is_default: listed.is_default || alone,
        selected: selected == Some(&*listed.id),
        supports_effort: supported,
        supported_reasoning_efforts: efforts().collect(),
        default_reasoning_effort: default(),
        reasoning: Reasoning {
            supported,
            efforts: efforts().collect(),
            default_effort: default(),
            ..Reasoning::default()
        },
        ..Provider::default()
    }
}
