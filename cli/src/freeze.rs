//! What is frozen at the start, and read anew from the disk while the session goes on.
//!
//! Instructions, tools and what they may reach, hooks and permission rules are read again when the host says `reload`,
//! and before each turn. Everything else counts from the next start. What can't be read, or isn't trusted any more,
//! changes nothing: the session goes on with what it has.

use std::sync::{Arc, Mutex, PoisonError};

use turnwire::vocab::{Frozen, SetOp, Text, ToolSpec};
use turnwire_io::hooks::Hooks;
use turnwire_io::jobs::JobPlace;
use turnwire_io::mcp::Servers;
use turnwire_io::tools::{Toolbox, ToolboxConfig};
use turnwire_io::{Anew, Asked, Reload, ReloadJob, Reloaded};

use crate::args::{DriverName, Foreign, Said, ServeArgs};
use crate::external::approvals::Approvals;
use crate::folders::Folders;
use crate::hooks;
use crate::mcp;
use crate::protocols::agentx;
use crate::say::Stop;
use crate::settings::Settings;
use crate::start::{SESSION_VARIABLE, Start};

/// Bytes of a tool's output that are kept.
pub const OUTPUT_LIMIT: usize = 256 * 1024;

/// The frozen part of a start, ready for use.
#[derive(Debug)]
pub struct Parts {
    /// The session's share.
    pub frozen: Frozen,
    /// The tools.
    pub toolbox: Toolbox,
    /// What runs the hooks.
    pub hooks: Hooks,
}

/// Freezes what a start says, for the session of this id. `jobs`: where its background jobs are kept, if it has any.
/// `own`: the tools that the session itself carries out; one of the project's with such a name goes before.
///
/// # Errors
/// [`Stop::Settings`] if there can be no tools.
pub fn parts(
    args: &ServeArgs,
    start: &Start,
    id: &str,
    jobs: Option<&JobPlace>,
    own: &[ToolSpec],
) -> Result<Parts, Stop> {
    let tools = tools(args, start, id, jobs);
    let hooks = hooks::runner(start, &tools, id);
    let toolbox = Toolbox::new(tools).map_err(|error| Stop::Settings(error.to_string()))?;
    toolbox.let_use(SetOp::Add, &start.permits.folders);
    let settings = &start.settings;
    let mut specs = toolbox.specs();
    let free = |tool: &&ToolSpec| specs.iter().all(|other| other.name != tool.name);
    let own: Vec<ToolSpec> = own.iter().filter(free).cloned().collect();
    specs.extend(own);
    let dialect = agentx::dialect(args);
    let foreign = &args.foreign;
    let is_named = |spec: &ToolSpec, name: &String| dialect.own(&spec.name) == dialect.own(name);
    if let Some(only) = &settings.only_tools {
        let known = |name: &String| {
            // Those of MCP servers come later.
            name.starts_with("mcp__") || specs.iter().any(|spec| is_named(spec, name))
        };
        let unknown = only.iter().find(|name| !known(name));
        if let Some(name) = unknown.filter(|_| !foreign.lenient_tools) {
            let names: Vec<&str> = specs.iter().map(|spec| &*spec.name).collect();
            return Err(Stop::Settings(format!(
                "there is no tool {name:?}; there are {}",
                names.join(", ")
            )));
        }
        specs.retain(|spec| only.iter().any(|name| is_named(spec, name)));
    }
    specs.retain(|spec| !foreign.without.iter().any(|name| is_named(spec, name)));
    let said = said(args);
    let schema = said.schema.as_ref().or(foreign.schema.as_ref());
    specs.extend(schema.map(|schema| agentx::answer_tool(schema)));
    let folders: Vec<Text> = foreign
        .folders
        .iter()
        .filter_map(|folder| folder.canonicalize().ok()?.to_str().map(Into::into))
        .collect();
    toolbox.let_use(SetOp::Add, &folders);
    let frozen = Frozen {
        system: system_text(start, foreign, &said, !specs.is_empty()),
        tools: specs,
        skills: settings
            .skills
            .skills
            .iter()
            .map(|skill| skill.name.as_str().into())
            .collect(),
        rules: foreign
            .rules
            .iter()
            .cloned()
            .chain(settings.rules.iter().map(hooks::rule))
            .chain(start.permits.rules.iter().cloned())
            .flat_map(|rule| hooks::in_dialect(rule, dialect))
            .collect(),
        unapproved: settings.external.unapproved(),
        hooks: settings
            .hooks
            .iter()
            .map(|hook| hooks::hook(hook, dialect))
            .collect(),
        unloaded: settings.unloaded.iter().map(hooks::unloaded).collect(),
    };
    Ok(Parts {
        frozen,
        toolbox,
        hooks,
    })
}

/// The tools of the project. What they start is marked, so that an agent among it can't pass for a person.
fn tools(args: &ServeArgs, start: &Start, id: &str, jobs: Option<&JobPlace>) -> ToolboxConfig {
    let settings = &start.settings;
    let mut extra_env = said(args).env;
    extra_env.push((SESSION_VARIABLE.to_owned(), id.to_owned()));
    ToolboxConfig {
        allow_outside: settings.allow_outside,
        env: settings.pass_env.clone(),
        deny_env: settings.deny_env.clone(),
        output_limit: OUTPUT_LIMIT,
        extra_env,
        dialect: agentx::dialect(args),
        external: settings
            .external
            .tools
            .iter()
            .map(|tool| tool.external.clone())
            .collect(),
        skills: settings.skills.skills.clone(),
        refuse_unapproved: start.agent_spawned,
        jobs: jobs.cloned(),
        ..ToolboxConfig::new(&start.root)
    }
}

/// What the model is told before anything else; `None`: nothing, since somebody wants it so.
fn system_text(start: &Start, foreign: &Foreign, said: &Said, tools: bool) -> Option<Text> {
    let first = said.system.clone().or_else(|| foreign.system.clone());
    let mut text = first.unwrap_or_else(|| own_text(start, tools));
    let instructions = start.settings.instructions.as_ref().map(|it| &it.text);
    for more in instructions
        .into_iter()
        .chain(&foreign.appended)
        .chain(&said.appended)
    {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(more.trim_end());
    }
    (!text.trim().is_empty()).then(|| text.into())
}

fn own_text(start: &Start, tools: bool) -> String {
    let tools = if tools {
        ", with tools to look at files, change them and run commands there. Relative paths begin at that folder. Look \
         before you answer: read what is there instead of guessing"
    } else {
        ""
    };
    format!(
        "You are a coding agent. You work in the folder {} on {}{tools}. Change only what you were asked to change, and \
         check your work where that is possible. When a call is refused, don't try to reach the same end another way; \
         say what you would need. Answer in the user's language, briefly and plainly.",
        start.project.display(),
        std::env::consts::OS,
    )
}

/// Reads the settings anew from where they were read at the start.
#[derive(Clone)]
pub struct Disk {
    shared: Arc<Mutex<State>>,
}

struct State {
    args: ServeArgs,
    folders: Option<Folders>,
    id: String,
    jobs: Option<JobPlace>,
    own: Vec<ToolSpec>,
    /// What a person has approved, in this session too.
    approvals: Approvals,
    /// What the session uses now.
    settings: Settings,
    /// What the host had said of it then.
    said: Said,
    /// The MCP servers that run, and shall run.
    servers: Servers,
    tools: u32,
    skills: u32,
    /// Why the settings couldn't be read before the last turn: said once.
    fault: Option<String>,
}

impl Disk {
    /// For a session that was begun.
    pub fn new(
        args: &ServeArgs,
        start: &Start,
        id: &str,
        parts: &Parts,
        own: &[ToolSpec],
        servers: &Servers,
    ) -> Disk {
        Disk {
            shared: Arc::new(Mutex::new(State {
                // Trust is given once, by the person who started the program.
                args: ServeArgs {
                    trust_project: false,
                    ..args.clone()
                },
                folders: start.folders.clone(),
                id: id.to_owned(),
                jobs: parts.toolbox.jobs().cloned(),
                own: own.to_vec(),
                approvals: start.approvals.clone(),
                settings: start.settings.clone(),
                said: said(args),
                servers: servers.clone(),
                tools: count(&parts.frozen.tools),
                skills: count(&parts.frozen.skills),
                fault: None,
            })),
        }
    }
}

impl Reload for Disk {
    fn prepare(&mut self, asked: Asked) -> ReloadJob {
        let shared = self.shared.clone();
        Box::new(move || {
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            state.read(asked)
        })
    }

    fn before_turns(&self) -> bool {
        true
    }
}

impl State {
    fn read(&mut self, asked: Asked) -> Result<Reloaded, String> {
        let read = Start::prepare(&self.args, self.folders.clone(), &|name| {
            std::env::var_os(name)
        })
        .and_then(|mut start| {
            // What was approved in this session holds in it, though it couldn't be written down, and is no news.
            self.approvals.mark(&mut self.settings.external);
            self.approvals.mark(&mut start.settings.external);
            let changes = changes(&self.settings, &start.settings);
            let parts = if changes.is_empty() && said(&self.args) == self.said {
                None
            } else {
                let jobs = self.jobs.as_ref();
                Some(parts(&self.args, &start, &self.id, jobs, &self.own)?)
            };
            Ok((start, changes, parts))
        });
        let (start, changes, parts) = match read {
            Ok(read) => read,
            Err(stop) => {
                let why = stop.to_string();
                let told = self.fault.replace(why.clone()).as_ref() == Some(&why);
                return match asked {
                    Asked::Nobody if told => Ok(self.receipt(Vec::new(), None)),
                    Asked::Nobody | Asked::Host => Err(why),
                };
            }
        };
        self.fault = None;
        let Some(parts) = parts else {
            return Ok(self.receipt(changes, None));
        };
        self.settings = start.settings;
        if self.args.driver == DriverName::Tokio {
            mcp::configure(&self.servers, &self.args, &self.settings);
        }
        self.said = said(&self.args);
        self.approvals.freeze(&self.settings.external);
        self.tools = count(&parts.frozen.tools);
        self.skills = count(&parts.frozen.skills);
        let Parts {
            frozen,
            toolbox,
            hooks,
        } = parts;
        let anew = Anew {
            frozen,
            toolbox,
            hooks,
        };
        Ok(self.receipt(changes, Some(Box::new(anew))))
    }

    fn receipt(&self, changes: Vec<Text>, anew: Option<Box<Anew>>) -> Reloaded {
        Reloaded {
            tools: self.tools,
            skills: self.skills,
            changes,
            anew,
        }
    }
}

/// What the host has said by now. It needs no word of ours: it knows.
fn said(args: &ServeArgs) -> Said {
    let said = args.foreign.said.lock();
    said.unwrap_or_else(PoisonError::into_inner).clone()
}

fn count<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

/// A sentence for each change of what is frozen: what changed, and whose file says so.
fn changes(old: &Settings, new: &Settings) -> Vec<Text> {
    let mut said = Vec::new();
    let path = |settings: &Settings| settings.instructions.as_ref().map(|text| text.path.clone());
    match (path(old), path(new)) {
        (None, Some(path)) => said.push(format!("instructions added ({})", path.display())),
        (Some(path), None) => said.push(format!("instructions removed ({})", path.display())),
        (Some(_), Some(path)) if old.instructions != new.instructions => {
            said.push(format!("instructions changed ({})", path.display()))
        }
        (Some(_), Some(_)) | (None, None) => {}
    }
    if old.allow_outside != new.allow_outside {
        let now = if new.allow_outside { "may" } else { "may not" };
        said.push(format!("file tools {now} leave the project"));
    }
    if old.only_tools != new.only_tools {
        said.push(match &new.only_tools {
            None => "all tools are there".to_owned(),
            Some(names) => format!("tools changed: [{}]", names.join(", ")),
        });
    }
    if old.pass_env != new.pass_env {
        let names = new.pass_env.join(", ");
        said.push(format!("variables that commands see changed: [{names}]"));
    }
    for hook in &new.hooks {
        let name = hook.name.as_str();
        match old.hooks.iter().find(|other| other.name == hook.name) {
            None => said.push(format!("hook {name} added ({})", hook.from.display())),
            Some(other) if other != hook => {
                said.push(format!("hook {name} changed ({})", hook.from.display()))
            }
            Some(_) => {}
        }
    }
    for hook in &old.hooks {
        if new.hooks.iter().all(|other| other.name != hook.name) {
            let name = hook.name.as_str();
            said.push(format!("hook {name} removed ({})", hook.from.display()));
        }
    }
    for hook in &new.unloaded {
        if !old.unloaded.contains(hook) {
            said.push(format!("hook {} isn't loaded: {}", hook.name, hook.why));
        }
    }
    for hook in &old.unloaded {
        let stays = new.unloaded.contains(hook) || said.iter().any(|it| it.contains(&hook.name));
        if !stays {
            said.push(format!("hook {}, which wasn't loaded, is gone", hook.name));
        }
    }
    for rule in &new.rules {
        if !old.rules.contains(rule) {
            said.push(format!("rule added: {rule}"));
        }
    }
    for rule in &old.rules {
        if !new.rules.contains(rule) {
            said.push(format!("rule removed: {rule}"));
        }
    }
    // The order of hooks is the order in which they run; what stands twice may have gone once.
    if said.is_empty() && (old.hooks != new.hooks || old.rules != new.rules) {
        said.push("hooks and rules are in another order".to_owned());
    }
    said.extend(old.skills.changes(&new.skills));
    said.extend(mcp::changes(&old.mcp, &new.mcp));
    let mut said: Vec<Text> = said.into_iter().map(Text::from).collect();
    said.extend(old.external.changes(&new.external));
    said
}
