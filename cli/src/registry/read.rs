//! Reads the registry, strictly: a member that isn't known, or comes twice in any spelling, is a fault with its place.

use std::collections::BTreeSet;

use turnwire::json::{JsonFaultKind, Kind as JsonKind, Raw, ScanRules, scan_value};
use turnwire_io::{Door, Secret};

use super::VERSION;
use super::entry::{Entry, Key, Kind};
use crate::settings::values::{BaseUrl, EnvName};
use crate::settings::{own, sendable};

/// Most providers.
const MOST: usize = 256;

/// Most bytes of an id, of a deployment's name, and of an effort.
const NAME_MAX: usize = 64;

/// Most bytes of a model's name, and of what people call it.
const TEXT_MAX: usize = 256;

/// Most efforts of a model.
const EFFORTS_MAX: usize = 32;

/// What is wrong, and where. It repeats nothing of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The byte, from 0.
    pub(super) at: usize,
    pub(super) why: String,
}

/// The text that is read, for places in it.
#[derive(Clone, Copy)]
struct Page<'a>(&'a str);

impl Page<'_> {
    /// A fault at this value, which lies in the text.
    fn fault(self, value: Raw<'_>, why: impl Into<String>) -> Fault {
        let begin = self.0.as_ptr() as usize;
        let at = (value.as_str().as_ptr() as usize).saturating_sub(begin);
        Fault {
            at: at.min(self.0.len()),
            why: why.into(),
        }
    }
}

/// The providers that a text names.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, Fault> {
    let page = Page(text);
    let root = scan_value(text.as_bytes(), &ScanRules::STRICT).map_err(|fault| Fault {
        at: fault.at,
        why: match fault.kind {
            JsonFaultKind::Duplicate { .. } => "a member stands twice in one object",
            JsonFaultKind::TooDeep { .. } => "nested too deeply",
            JsonFaultKind::LoneSurrogate => "an escape for half a surrogate pair",
            JsonFaultKind::Blank
            | JsonFaultKind::Syntax { .. }
            | JsonFaultKind::NotAnObject
            | JsonFaultKind::NotUtf8 { .. } => "not JSON",
        }
        .to_owned(),
    })?;
    let object = Object::read(page, root, &["version", "providers"])?;
    let version = object.needed("version")?;
    if version.u64() != Some(VERSION) {
        return Err(page.fault(version, format!("version is {VERSION}")));
    }
    let providers = object.needed("providers")?;
    let items = list(page, providers, "providers")?;
    if items.is_empty() || items.len() > MOST {
        let why = format!("providers has 1 to {MOST} of them");
        return Err(page.fault(providers, why));
    }
    let (mut ids, mut default) = (BTreeSet::new(), false);
    let mut entries = Vec::with_capacity(items.len());
    for item in items {
        let entry = provider(page, item)?;
        if !ids.insert(entry.id.clone()) {
            return Err(page.fault(item, "two providers have this id"));
        }
        if entry.is_default && std::mem::replace(&mut default, true) {
            return Err(page.fault(item, "two providers are the default"));
        }
        entries.push(entry);
    }
    Ok(entries)
}

const MEMBERS: [&str; 12] = [
    "id",
    "type",
    "endpoint",
    "deployment",
    "api_version",
    "key",
    "key_env",
    "model",
    "display_name",
    "efforts",
    "default_effort",
    "default",
];

fn provider(page: Page<'_>, item: Raw<'_>) -> Result<Entry, Fault> {
    let object = Object::read(page, item, &MEMBERS)?;
    let id = object.name("id")?;
    let kind = object.needed("type")?;
    let kind = kind
        .string()
        .and_then(|word| Kind::ALL.into_iter().find(|kind| kind.word() == word))
        .ok_or_else(|| {
            let words = Kind::ALL.map(Kind::word).join(", ");
            page.fault(kind, format!("type is one of {words}"))
        })?;
    let endpoint = endpoint(&object, kind)?;
    let (door, version_header) = door(&object, kind)?;
    let key = key(&object, kind, endpoint.is_none())?;
    let endpoint = match endpoint {
        Some(endpoint) => endpoint,
        None => {
            own_address(kind).ok_or_else(|| page.fault(item, "endpoint is missing".to_owned()))?
        }
    };
    let (efforts, default_effort) = efforts(&object)?;
    Ok(Entry {
        id,
        kind,
        endpoint,
        door,
        version_header,
        key,
        model: object.text("model")?,
        display_name: object.maybe("display_name", Object::text)?,
        efforts,
        default_effort,
        is_default: object.maybe("default", Object::flag)?.unwrap_or(false),
    })
}

/// The address of the ones that have their own.
fn own_address(kind: Kind) -> Option<BaseUrl> {
    match kind {
        Kind::AzureOpenai => None,
        Kind::Openai | Kind::Anthropic => own(kind.api())?.0.parse().ok(),
    }
}

fn endpoint(object: &Object<'_>, kind: Kind) -> Result<Option<BaseUrl>, Fault> {
    let Some(value) = object.get("endpoint") else {
        return match kind {
            Kind::AzureOpenai => Err(object.fault("endpoint is missing")),
            Kind::Openai | Kind::Anthropic => Ok(None),
        };
    };
    let text = value.string();
    let text = text.ok_or_else(|| object.page.fault(value, "endpoint is a text"))?;
    let url: BaseUrl = text
        .parse()
        .map_err(|why| object.page.fault(value, format!("endpoint: {why}")))?;
    Ok(Some(url))
}

/// What comes behind the address, and the version of the API that goes into a header.
fn door(object: &Object<'_>, kind: Kind) -> Result<(Door, Option<String>), Fault> {
    let version = object.get("api_version");
    match kind {
        Kind::AzureOpenai => {
            let deployment = object.name("deployment")?;
            let value = object.needed("api_version")?;
            let version = value.string().filter(|word| is_version(word, true));
            let version = version.ok_or_else(|| {
                let why = "api_version is a date (YYYY-MM-DD, or with -preview), v1 or preview";
                object.page.fault(value, why)
            })?;
            let version = version.into_owned();
            let door = Door::Azure {
                deployment,
                version,
            };
            Ok((door, None))
        }
        Kind::Openai | Kind::Anthropic => {
            if let Some(value) = object.get("deployment") {
                let why = "deployment has no meaning for this type";
                return Err(object.page.fault(value, why));
            }
            match (kind, version) {
                (_, None) => Ok((Door::Api, None)),
                (Kind::Anthropic, Some(value)) => {
                    let version = value.string().filter(|word| is_version(word, false));
                    let version = version.ok_or_else(|| {
                        let why = "api_version is a date (YYYY-MM-DD)";
                        object.page.fault(value, why)
                    })?;
                    Ok((Door::Api, Some(version.into_owned())))
                }
                (Kind::Openai | Kind::AzureOpenai, Some(value)) => {
                    let why =
                        "api_version has no meaning for this type: it is part of the endpoint";
                    Err(object.page.fault(value, why))
                }
            }
        }
    }
}

/// Whether a word is a version of an API.
fn is_version(word: &str, azure: bool) -> bool {
    if azure && matches!(word, "v1" | "preview") {
        return true;
    }
    let date = if azure {
        word.strip_suffix("-preview").unwrap_or(word)
    } else {
        word
    };
    date.len() == 10
        && date.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// What lets one in. At an address of its own a provider may want nothing.
fn key(object: &Object<'_>, kind: Kind, at_own: bool) -> Result<Option<Key>, Fault> {
    match (object.get("key"), object.get("key_env")) {
        (Some(value), Some(_)) => {
            let why = "key and key_env can't both be there";
            Err(object.page.fault(value, why))
        }
        (Some(value), None) => {
            let text = value.string();
            let key = text.as_deref().and_then(sendable).ok_or_else(|| {
                let why = "key is a text of visible ASCII characters";
                object.page.fault(value, why)
            })?;
            Ok(Some(Key::Literal(Secret::new(key))))
        }
        (None, Some(value)) => {
            let name = value.string().and_then(|name| name.parse::<EnvName>().ok());
            let name = name.ok_or_else(|| {
                let why = "key_env is the name of an environment variable (letters, digits and _)";
                object.page.fault(value, why)
            })?;
            Ok(Some(Key::Variable(name)))
        }
        (None, None) if at_own || kind == Kind::AzureOpenai => {
            Err(object.fault("key or key_env is missing"))
        }
        (None, None) => Ok(None),
    }
}

/// The efforts, and the one at the start.
fn efforts(object: &Object<'_>) -> Result<(Vec<String>, Option<String>), Fault> {
    let page = object.page;
    let mut efforts: Vec<String> = Vec::new();
    if let Some(value) = object.get("efforts") {
        let items = list(page, value, "efforts")?;
        if items.len() > EFFORTS_MAX {
            return Err(page.fault(value, format!("efforts has at most {EFFORTS_MAX}")));
        }
        for item in items {
            let word = word(page, item, "an effort")?;
            if efforts.contains(&word) {
                return Err(page.fault(item, "this effort stands twice"));
            }
            efforts.push(word);
        }
    }
    let default = match (object.get("default_effort"), efforts.is_empty()) {
        (None, true) => None,
        (None, false) => {
            return Err(object.fault("default_effort is missing: there are efforts"));
        }
        (Some(value), _) => {
            let word = value.string();
            let found = word.and_then(|word| efforts.iter().find(|effort| **effort == *word));
            let found = found.cloned();
            Some(found.ok_or_else(|| page.fault(value, "default_effort is one of efforts"))?)
        }
    };
    Ok((efforts, default))
}

fn list<'a>(page: Page<'_>, value: Raw<'a>, name: &str) -> Result<Vec<Raw<'a>>, Fault> {
    if value.kind() != JsonKind::Array {
        return Err(page.fault(value, format!("{name} is a list")));
    }
    value
        .decode()
        .map_err(|_| page.fault(value, format!("{name} is a list")))
}

/// A word that can stand in a path and on a command line as it is.
fn word(page: Page<'_>, value: Raw<'_>, what: &str) -> Result<String, Fault> {
    let text = value.string();
    let fits = |text: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        (1..=NAME_MAX).contains(&text.len())
            && text.bytes().all(plain)
            && text.starts_with(|first: char| first.is_ascii_alphanumeric())
    };
    match text.filter(|text| fits(text)) {
        Some(text) => Ok(text.into_owned()),
        None => Err(page.fault(
            value,
            format!(
                "{what} is a word of 1 to {NAME_MAX} letters, digits, points, hyphens and underscores, which begins \
                 with a letter or digit"
            ),
        )),
    }
}

/// An object of known members.
struct Object<'a> {
    page: Page<'a>,
    whole: Raw<'a>,
    members: Vec<(&'static str, Raw<'a>)>,
}

impl<'a> Object<'a> {
    fn read(page: Page<'a>, whole: Raw<'a>, known: &[&'static str]) -> Result<Self, Fault> {
        if whole.kind() != JsonKind::Object {
            return Err(page.fault(whole, "an object has to stand here"));
        }
        let (mut members, mut odd) = (Vec::new(), None);
        whole.each_member(
            |name, value| match known.iter().find(|known| **known == name) {
                Some(name) => members.push((*name, value)),
                None => odd = odd.or(Some(value)),
            },
        );
        match odd {
            // Its name may be a key that was put in the wrong place.
            Some(value) => Err(page.fault(
                value,
                format!("a member that isn't known; there are {}", known.join(", ")),
            )),
            None => Ok(Object {
                page,
                whole,
                members,
            }),
        }
    }

    fn fault(&self, why: &str) -> Fault {
        self.page.fault(self.whole, why)
    }

    fn get(&self, name: &str) -> Option<Raw<'a>> {
        let mut members = self.members.iter();
        members
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
    }

    fn needed(&self, name: &str) -> Result<Raw<'a>, Fault> {
        self.get(name)
            .ok_or_else(|| self.fault(&format!("{name} is missing")))
    }

    fn maybe<T>(
        &self,
        name: &str,
        read: impl Fn(&Self, &str) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(_) => read(self, name).map(Some),
        }
    }

    fn name(&self, name: &str) -> Result<String, Fault> {
        word(self.page, self.needed(name)?, name)
    }

    fn flag(&self, name: &str) -> Result<bool, Fault> {
        let value = self.needed(name)?;
        value
            .bool()
            .ok_or_else(|| self.page.fault(value, format!("{name} is true or false")))
    }

    /// A text for people, on one line.
    fn text(&self, name: &str) -> Result<String, Fault> {
        let value = self.needed(name)?;
        let fits = |text: &str| {
            (1..=TEXT_MAX).contains(&text.len())
                && text.trim() == text
                && !text.contains(char::is_control)
        };
        match value.string().filter(|text| fits(text)) {
            Some(text) => Ok(text.into_owned()),
            None => Err(self.page.fault(
                value,
                format!(
                    "{name} is a text of 1 to {TEXT_MAX} bytes, on one line, with no white space around it"
                ),
            )),
        }
    }
}
