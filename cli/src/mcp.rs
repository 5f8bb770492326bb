//! MCP servers of the program's own: which there shall be.
//!
//! They are programs that run with all rights of their user. Those of a project count only with its settings, which a
//! person has trusted as they are; those of the command line and of the user's own settings are the person's word. What
//! a file of the command line says is read once: an agent at work could write to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use turnwire::vocab::{RawJson, ToolSpec};
use turnwire_io::mcp::{Filter, Launch, Mcp, Place, ServerConfig, Servers};

use crate::args::{DriverName, ServeArgs};
use crate::say::Stop;
use crate::settings::values::{EnvName, Seconds};
use crate::settings::{Env, Layer, Settings, file};
use crate::start::{SESSION_VARIABLE, Start};

/// How long a turn waits for servers that begin, unless a file says it.
const WAIT: Duration = Duration::from_secs(5);
/// What stands for a server that is no process.
const NO_PROCESS: &str = "only servers that are processes (command, args) can be started here";

/// `[mcp]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpTable {
    /// How long a turn waits for servers that begin.
    pub wait: Option<Seconds>,
    /// The servers, by name.
    pub servers: BTreeMap<String, ServerTable>,
}

/// `[mcp.servers.NAME]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerTable {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    pass_env: Vec<EnvName>,
    cwd: Option<PathBuf>,
    #[serde(default = "on")]
    enabled: bool,
    connect_limit: Option<Seconds>,
    call_limit: Option<Seconds>,
}

const fn on() -> bool {
    true
}

impl ServerTable {
    /// The server. Its folder begins at that of the file.
    fn config(&self, name: &str, from: &Path) -> ServerConfig {
        let launch = Launch {
            command: self.command.clone(),
            args: self.args.clone(),
            env: self.env.clone().into_iter().collect(),
            pass_env: self
                .pass_env
                .iter()
                .map(|name| name.as_str().to_owned())
                .collect(),
            folder: self
                .cwd
                .as_ref()
                .map(|cwd| from.parent().unwrap_or(Path::new("")).join(cwd)),
        };
        let mut server = ServerConfig::new(name, Ok(launch));
        server.enabled = self.enabled;
        let limit = |limit: Option<Seconds>, default| limit.map_or(default, Seconds::get);
        server.connect_limit = limit(self.connect_limit, server.connect_limit);
        server.call_limit = limit(self.call_limit, server.call_limit);
        server
    }
}

/// What the command line says of servers, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    servers: Vec<ServerConfig>,
    /// Servers that the host runs itself.
    hosted: Vec<String>,
}

/// The servers of a start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Those that this program runs.
    pub servers: Vec<ServerConfig>,
    /// Those that the host runs.
    pub hosted: Vec<String>,
    /// How long a turn waits for servers that begin.
    pub wait: Duration,
}

/// Reads `--mcp-config`: files, or the JSON itself.
///
/// # Errors
/// [`Stop::Settings`] for what can't be read. What stands there isn't repeated: it may hold secrets.
pub fn read(configs: &[String], env: Env<'_>) -> Result<Given, Stop> {
    let mut given = Given::default();
    for config in configs {
        let json = if config.trim_start().starts_with('{') {
            config.clone()
        } else {
            let found = file::text(Path::new(config))?;
            found.ok_or_else(|| Stop::Settings(format!("{config}: there is no such file")))?
        };
        let wrong = || Stop::Settings("--mcp-config holds no object with mcpServers".to_owned());
        let read: Value = serde_json::from_str(&json).map_err(|_| wrong())?;
        let all = read["mcpServers"].as_object().ok_or_else(wrong)?;
        for (name, server) in all {
            if server["type"] == "sdk" {
                given.hosted.push(name.clone());
            } else {
                given.servers.retain(|other| other.name != *name);
                let launch = launch(server).and_then(|launch| expanded(launch, env));
                given.servers.push(ServerConfig::new(name.as_str(), launch));
            }
        }
    }
    Ok(given)
}

/// What is started for a server, as hosts write it.
fn launch(server: &Value) -> Result<Launch, String> {
    match server["type"].as_str() {
        None | Some("stdio") => {}
        Some(_) => return Err(NO_PROCESS.to_owned()),
    }
    let Some(command) = server["command"].as_str().filter(|it| !it.is_empty()) else {
        return Err(NO_PROCESS.to_owned());
    };
    let bad = |what: &str| format!("its {what} can't be read");
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (args, env) = (&server["args"], &server["env"]);
    let args: Option<Vec<String>> = if args.is_null() {
        Some(Vec::new())
    } else {
        args.as_array()
            .and_then(|args| args.iter().map(text).collect())
    };
    let one = |(name, value): (&String, &Value)| Some((name.clone(), text(value)?));
    let env: Option<Vec<(String, String)>> = if env.is_null() {
        Some(Vec::new())
    } else {
        env.as_object()
            .and_then(|env| env.iter().map(one).collect())
    };
    Ok(Launch {
        command: command.to_owned(),
        args: args.ok_or_else(|| bad("args"))?,
        env: env.ok_or_else(|| bad("env"))?,
        ..Launch::default()
    })
}

/// With `${NAME}` and `${NAME:-default}` replaced by what the environment says.
fn expanded(mut launch: Launch, env: Env<'_>) -> Result<Launch, String> {
    let values = launch.env.iter_mut().map(|(_, value)| value);
    let texts = std::iter::once(&mut launch.command).chain(&mut launch.args);
    for text in texts.chain(values) {
        *text = expand(text, env)?;
    }
    Ok(launch)
}

fn expand(text: &str, env: Env<'_>) -> Result<String, String> {
    let (mut done, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        let (name, default) = match name.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (name, None),
        };
        let value = env(name).and_then(|value| value.into_string().ok());
        let value = value.filter(|value| !(value.is_empty() && default.is_some()));
        let value = value.or_else(|| default.map(str::to_owned));
        done.push_str(before);
        done.push_str(&value.ok_or_else(|| format!("the variable {name} isn't set"))?);
        rest = after;
    }
    done.push_str(rest);
    Ok(done)
}

/// The servers of all layers: the command line's, then those of files, the highest first. A name that comes again is
/// the first one's.
pub fn resolve(args: &ServeArgs, files: &[Layer]) -> Found {
    let given = &args.given_mcp;
    let mut servers = given.servers.clone();
    let files = files.iter().filter(|_| !args.tools.strict_mcp_config);
    let mut wait = None;
    for layer in files {
        let mcp = &layer.settings.mcp;
        wait = wait.or(mcp.wait);
        for (name, table) in &mcp.servers {
            if servers.iter().all(|server| server.name != *name) {
                servers.push(table.config(name, &layer.path));
            }
        }
    }
    Found {
        servers,
        hosted: given.hosted.clone(),
        wait: wait.map_or(WAIT, Seconds::get),
    }
}

/// The servers of a session that begins, to be changed as it goes on. A driver that can't run any has none.
pub fn servers(args: &ServeArgs, settings: &Settings) -> Servers {
    let servers = Servers::default();
    match args.driver {
        DriverName::Tokio => configure(&servers, args, settings),
        DriverName::Blocking => {
            if !settings.mcp.servers.is_empty() {
                tracing::warn!("no MCP server is started: --driver blocking can't run any");
            }
        }
    }
    servers
}

/// What the settings say now.
pub fn configure(servers: &Servers, args: &ServeArgs, settings: &Settings) {
    servers.configure(settings.mcp.servers.clone());
    // A host that picks among the tools that it knows of picks none of these.
    let of_host =
        args.foreign.lenient_tools && (args.tools.no_tools || !args.tools.only_tool.is_empty());
    servers.filter(Filter {
        only: settings.only_tools.clone().filter(|_| !of_host),
        without: args.foreign.without.clone(),
    });
}

/// The servers for the driver, beside these tools.
pub fn world(
    args: &ServeArgs,
    start: &Start,
    servers: &Servers,
    id: &str,
    tools: Vec<ToolSpec>,
) -> Option<Mcp> {
    if args.driver == DriverName::Blocking {
        return None;
    }
    let place = Place {
        deny_env: start.settings.deny_env.clone(),
        extra_env: vec![(SESSION_VARIABLE.to_owned(), id.to_owned())],
        ..Place::new(&start.root)
    };
    let mut mcp = Mcp::new(servers.clone(), place, tools);
    mcp.wait = start.settings.mcp.wait;
    Some(mcp)
}

/// Sentences for what changed, as of other settings.
pub fn changes(old: &Found, new: &Found) -> Vec<String> {
    let mut said = Vec::new();
    let find = |found: &'_ Found, name: &str| {
        let mut servers = found.servers.iter();
        servers.find(|server| server.name == name).cloned()
    };
    for server in &new.servers {
        match find(old, &server.name) {
            None => said.push(format!("MCP server {} added", server.name)),
            Some(before) if before != *server => {
                said.push(format!("MCP server {} changed", server.name));
            }
            Some(_) => {}
        }
    }
    for server in &old.servers {
        if find(new, &server.name).is_none() {
            said.push(format!("MCP server {} removed", server.name));
        }
    }
    said
}

/// What a host wants of servers while the session runs: `mcp_set_servers`, `mcp_reconnect`, `mcp_toggle`. `None`: it is
/// something else, or about a server that isn't this program's; `Err`: why it can't be.
pub fn control(
    servers: &Servers,
    subtype: &str,
    request: &RawJson,
) -> Option<Result<Option<RawJson>, String>> {
    let request: Value = serde_json::from_str(request.as_str()).ok()?;
    let name = request["serverName"].as_str();
    let done = |done: Result<(), String>| Some(done.map(|()| None));
    match subtype {
        "mcp_set_servers" => {
            let wanted = request["servers"].as_object()?;
            Some(Ok(Some(set(servers, wanted))))
        }
        "mcp_reconnect" => done(servers.reconnect(name?)),
        "mcp_toggle" => done(servers.toggle(name?, request["enabled"].as_bool()?)),
        _ => None,
    }
}

fn set(servers: &Servers, wanted: &Map<String, Value>) -> RawJson {
    let ours = wanted.iter().filter(|(_, server)| server["type"] != "sdk");
    let configs = ours.map(|(name, server)| ServerConfig::new(name.as_str(), launch(server)));
    let done = servers.set(configs.collect());
    let errors: Map<String, Value> = done
        .errors
        .into_iter()
        .map(|(name, why)| (name, why.into()))
        .collect();
    let answer = serde_json::json!({
        "added": done.added,
        "removed": done.removed,
        "errors": errors,
    });
    RawJson(Arc::from(answer.to_string()))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn env(name: &str) -> Option<OsString> {
        match name {
            "TOKEN" => Some("t-1".into()),
            "EMPTY" => Some("".into()),
            _ => None,
        }
    }

    #[test]
    fn servers_of_the_command_line_are_read_with_their_variables() {
        let config = r#"{"mcpServers":{
            "a":{"command":"${NPX:-npx}","args":["-y","${EMPTY:-x}${TOKEN}"],"env":{"K":"${TOKEN}"}},
            "b":{"type":"stdio","command":"${GONE}"},
            "c":{"type":"http","url":"https://x"},
            "d":{"type":"sdk","name":"d"},
            "e":{"command":"x","args":[1]}}}"#;
        let given = read(&[config.to_owned()], &env).unwrap();
        assert_eq!(given.hosted, ["d"]);
        let launch = given.servers[0].launch.clone().unwrap();
        assert_eq!(launch.command, "npx");
        assert_eq!(launch.args, ["-y", "xt-1"]);
        assert_eq!(launch.env, [("K".to_owned(), "t-1".to_owned())]);
        let why = |at: usize| given.servers[at].launch.clone().unwrap_err();
        assert!(why(1).contains("GONE") && why(2).contains("processes") && why(3).contains("args"));
        for wrong in ["{}", "{", r#"{"mcpServers":[]}"#] {
            assert!(read(&[wrong.to_owned()], &env).is_err(), "{wrong}");
        }
        let gone = read(&["/no/such/file".to_owned()], &env).unwrap_err();
        assert!(gone.to_string().contains("no such file"));
    }

    #[test]
    fn a_text_without_an_end_of_its_variable_stays_as_it_is() {
        assert_eq!(expand("a${TOKEN", &env).unwrap(), "a${TOKEN");
        assert_eq!(expand("$TOKEN $", &env).unwrap(), "$TOKEN $");
    }

    #[test]
    fn ax_s08_a_host_sets_turns_and_starts_servers() {
        let servers = Servers::default();
        let ask =
            |subtype: &str, request: &str| control(&servers, subtype, &RawJson(request.into()));
        let set =
            r#"{"servers":{"x":{"command":"a"},"h":{"type":"sdk"},"y":{"type":"sse","url":"u"}}}"#;
        let answer = ask("mcp_set_servers", set).unwrap().unwrap().unwrap();
        let answer: Value = serde_json::from_str(answer.as_str()).unwrap();
        assert_eq!(answer["added"], serde_json::json!(["x"]));
        assert!(answer["errors"]["y"].is_string() && answer["errors"]["h"].is_null());
        assert!(
            ask("mcp_reconnect", r#"{"serverName":"x"}"#)
                .unwrap()
                .is_ok()
        );
        assert!(
            ask("mcp_reconnect", r#"{"serverName":"z"}"#)
                .unwrap()
                .is_err()
        );
        assert!(
            ask("mcp_toggle", r#"{"serverName":"x","enabled":false}"#)
                .unwrap()
                .is_ok()
        );
        assert!(ask("mcp_toggle", r#"{"serverName":"x"}"#).is_none());
        assert!(ask("seed_read_state", "{}").is_none());
    }
}
