//! Which servers there shall be: the embedder's side, changed from any thread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turnwire::vocab::{McpServer, McpStatus};

use super::ServerConfig;

/// Servers at one time.
const MOST: usize = 64;

/// Which servers there shall be. Clones are the same list; a change counts once the session's loop comes round.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Goes up with each change.
    version: AtomicU64,
    wishes: Mutex<Wishes>,
}

#[derive(Debug, Default)]
struct Wishes {
    configured: Vec<ServerConfig>,
    /// Those that the host set as the session ran.
    set: Vec<ServerConfig>,
    /// Turned on or off by the host.
    turned: BTreeMap<String, bool>,
    /// How often each was to be connected again.
    again: BTreeMap<String, u64>,
    filter: Filter,
}

/// A server that shall be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) config: ServerConfig,
    /// Another number is another start.
    pub(super) again: u64,
}

/// Which tools of servers the model gets, by what it calls them (`mcp__SERVER__TOOL`). `mcp__SERVER` and
/// `mcp__SERVER__*` name all of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// These alone; `None`: all.
    pub only: Option<Vec<String>>,
    /// Not these.
    pub without: Vec<String>,
}

impl Filter {
    pub(super) fn lets(&self, name: &str) -> bool {
        let listed = |list: &[String]| list.iter().any(|pattern| names(pattern, name));
        self.only.as_deref().is_none_or(listed) && !listed(&self.without)
    }
}

fn names(pattern: &str, name: &str) -> bool {
    let server = pattern.strip_suffix("__*").unwrap_or(pattern);
    let whole = || {
        let rest = name.strip_prefix(server)?.strip_prefix("__")?;
        // A server's name alone, not the name of a tool that another one begins with.
        let named = server.strip_prefix("mcp__")?;
        (!rest.is_empty() && !named.is_empty() && !named.contains("__")).then_some(())
    };
    pattern == name || whole().is_some()
}

/// What [`Servers::set`] changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Servers that weren't there before.
    pub added: Vec<String>,
    /// Servers that are there no longer.
    pub removed: Vec<String>,
    /// Servers that can't be there, and why.
    pub errors: Vec<(String, String)>,
}

impl Servers {
    /// These, from the settings.
    pub fn new(configured: Vec<ServerConfig>) -> Self {
        let servers = Servers::default();
        servers.configure(configured);
        servers
    }

    /// The settings have been read anew. One that is as it was goes on running.
    pub fn configure(&self, configured: Vec<ServerConfig>) {
        self.change(|wishes| {
            let mut names = BTreeSet::new();
            let mut configured = configured;
            configured.retain(|server| names.insert(server.name.clone()));
            configured.truncate(MOST);
            let changed = wishes.configured != configured;
            wishes.configured = configured;
            changed
        });
    }

    /// Which tools the model gets.
    pub fn filter(&self, filter: Filter) {
        self.change(|wishes| std::mem::replace(&mut wishes.filter, filter.clone()) != filter);
    }

    /// The host says which servers there shall be besides those of the settings: all of them.
    pub fn set(&self, servers: Vec<ServerConfig>) -> Set {
        let mut done = Set::default();
        self.change(|wishes| {
            let mut new: Vec<ServerConfig> = Vec::new();
            for server in servers {
                let same = |other: &ServerConfig| other.name == server.name;
                let error = match &server.launch {
                    Err(why) => Some(why.clone()),
                    Ok(_) if wishes.configured.iter().any(same) => {
                        Some("the settings have a server of this name".to_owned())
                    }
                    Ok(_) if new.iter().any(same) => Some("it is named twice".to_owned()),
                    Ok(_) if new.len() + wishes.configured.len() >= MOST => {
                        Some("there are too many servers".to_owned())
                    }
                    Ok(_) => None,
                };
                match error {
                    Some(why) => done.errors.push((server.name, why)),
                    None => new.push(server),
                }
            }
            let names = |from: &[ServerConfig], not: &[ServerConfig]| -> Vec<String> {
                from.iter()
                    .filter(|server| not.iter().all(|other| other.name != server.name))
                    .map(|server| server.name.clone())
                    .collect()
            };
            done.added = names(&new, &wishes.set);
            done.removed = names(&wishes.set, &new);
            for name in &done.removed {
                wishes.turned.remove(name);
            }
            let changed = wishes.set != new;
            wishes.set = new;
            changed
        });
        done
    }

    /// Starts a server again, one that has failed, too.
    ///
    /// # Errors
    /// There is none of this name, or it is turned off.
    pub fn reconnect(&self, name: &str) -> Result<(), String> {
        let mut known = Err(unknown(name));
        self.change(|wishes| {
            let found = wishes.find(name).map(|server| wishes.is_on(server));
            known = match found {
                None => return false,
                Some(false) => Err(format!("the MCP server {name:?} is turned off")),
                Some(true) => Ok(()),
            };
            if known.is_ok() {
                let again = wishes.again.entry(name.to_owned()).or_default();
                *again = again.wrapping_add(1);
            }
            known.is_ok()
        });
        known
    }

    /// Turns a server on or off.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn toggle(&self, name: &str, on: bool) -> Result<(), String> {
        let mut known = Err(unknown(name));
        self.change(|wishes| {
            if wishes.find(name).is_none() {
                return false;
            }
            known = Ok(());
            wishes.turned.insert(name.to_owned(), on) != Some(on)
        });
        known
    }

    /// How they stand before anything is started: what a session's information begins with.
    pub fn at_first(&self) -> Vec<McpServer> {
        let wishes = self.wishes().all();
        wishes.iter().map(|wish| at_first(&wish.config)).collect()
    }

    pub(super) fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    /// The list, in its order, and the filter.
    pub(super) fn list(&self) -> (Vec<Wish>, Filter) {
        let wishes = self.wishes();
        (wishes.all(), wishes.filter.clone())
    }

    fn wishes(&self) -> MutexGuard<'_, Wishes> {
        // Each change is whole before anything can panic.
        self.shared
            .wishes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Wishes) -> bool) {
        let mut wishes = self.wishes();
        if change(&mut wishes) {
            self.shared.version.fetch_add(1, Ordering::AcqRel);
        }
    }
}

fn unknown(name: &str) -> String {
    format!("there is no MCP server {name:?}")
}

/// How a server stands that wasn't started.
pub(super) fn at_first(config: &ServerConfig) -> McpServer {
    let status = match &config.launch {
        _ if !config.enabled => McpStatus::Disabled,
        Ok(_) => McpStatus::Pending,
        Err(_) => McpStatus::Failed,
    };
    let mut server = McpServer::new(config.name.as_str(), status);
    if config.enabled {
        server.why = config.launch.as_ref().err().map(|why| why.as_str().into());
    }
    server
}

impl Wishes {
    fn find(&self, name: &str) -> Option<&ServerConfig> {
        let mut all = self.configured.iter().chain(&self.set);
        all.find(|server| server.name == name)
    }

    fn is_on(&self, server: &ServerConfig) -> bool {
        self.turned
            .get(&server.name)
            .copied()
            .unwrap_or(server.enabled)
    }

    fn all(&self) -> Vec<Wish> {
        let hidden = |server: &&ServerConfig| {
            // The settings may have got one of this name since.
            self.configured
                .iter()
                .all(|other| other.name != server.name)
        };
        self.configured
            .iter()
            .chain(self.set.iter().filter(hidden))
            .map(|server| Wish {
                config: ServerConfig {
                    enabled: self.is_on(server),
                    ..server.clone()
                },
                again: self.again.get(&server.name).copied().unwrap_or(0),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Launch;
    use super::*;

    fn server(name: &str, command: &str) -> ServerConfig {
        let launch = Launch {
            command: command.to_owned(),
            ..Launch::default()
        };
        ServerConfig::new(name, Ok(launch))
    }

    #[test]
    fn ax_s08_a_set_of_servers_says_what_is_added_removed_and_wrong() {
        let servers = Servers::new(vec![server("own", "a")]);
        let before = servers.version();
        let done = servers.set(vec![
            server("x", "a"),
            server("own", "a"),
            ServerConfig::new("far", Err("only processes".to_owned())),
            server("x", "b"),
        ]);
        assert_eq!(done.added, ["x"]);
        assert!(done.removed.is_empty());
        let names: Vec<&str> = done.errors.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["own", "far", "x"]);
        assert_ne!(servers.version(), before);
        let done = servers.set(vec![server("y", "a")]);
        assert_eq!(
            (&done.added[..], &done.removed[..]),
            (&["y".to_owned()][..], &["x".to_owned()][..])
        );
        let before = servers.version();
        assert_eq!(servers.set(vec![server("y", "a")]), Set::default());
        assert_eq!(servers.version(), before, "nothing to do");
        let too_many = (0..70).map(|n| server(&format!("s{n}"), "a")).collect();
        assert_eq!(servers.set(too_many).errors.len(), 70 - (MOST - 1));
    }

    #[test]
    fn servers_are_turned_off_and_on_and_started_again() {
        let servers = Servers::new(vec![server("a", "x"), server("a", "y")]);
        assert_eq!(servers.at_first().len(), 1, "one of a name");
        assert!(servers.toggle("b", false).is_err() && servers.reconnect("b").is_err());
        servers.toggle("a", false).expect("known");
        assert_eq!(servers.at_first()[0].status, McpStatus::Disabled);
        assert!(servers.reconnect("a").is_err());
        servers.toggle("a", true).expect("known");
        servers.reconnect("a").expect("known");
        assert_eq!(servers.list().0[0].again, 1);
    }

    #[test]
    fn a_filter_names_tools_and_whole_servers() {
        let filter = |only: &[&str], without: &[&str]| {
            let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
            Filter {
                only: (!only.is_empty()).then(|| list(only)),
                without: list(without),
            }
        };
        assert!(Filter::default().lets("mcp__a__b"));
        assert!(filter(&["mcp__a"], &[]).lets("mcp__a__b"));
        assert!(filter(&["mcp__a__*"], &[]).lets("mcp__a__b"));
        assert!(filter(&["mcp__a__b"], &[]).lets("mcp__a__b"));
        assert!(!filter(&["mcp__a__b"], &[]).lets("mcp__a__b__c"));
        assert!(!filter(&["read_file"], &[]).lets("mcp__a__b"));
        assert!(!filter(&["mcp"], &[]).lets("mcp__a__b"));
        assert!(!filter(&[], &["mcp__a"]).lets("mcp__a__b"));
        assert!(filter(&[], &["mcp__a"]).lets("mcp__ab__b"));
    }
}
