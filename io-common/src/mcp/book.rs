//! How the servers stand, and what to do about it: a machine without waiting.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use turnwire::vocab::{Due, McpFact, McpServer, McpStatus, Text, ToolSpec};

use super::names::{Listing, Sources};
use super::wish::{Filter, Wish, at_first};
use super::{Down, ListedTool, Mcp, News, Place, ServerCall, ServerConfig, ServerRun};

/// Facts of tools that are remembered as said.
const MOST_SAID: usize = 4_096;

/// What the driver is to do.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Start a run.
    Start(ServerRun, Arc<ServerConfig>),
    /// End one. It settles.
    Stop(ServerRun),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is turned off, or can't be started.
    Off,
    Starting(ServerRun),
    Up(ServerRun),
    /// It ended, and is started again at this moment.
    Resting(u64),
    Failed,
}

#[derive(Debug)]
struct Entry {
    wish: Wish,
    config: Arc<ServerConfig>,
    state: State,
    /// Its tools are known from some run.
    listed: bool,
    tools: Vec<ListedTool>,
    product: Option<(Text, Text)>,
    why: Option<Text>,
    /// Starts since it was well.
    starts: u32,
    up_since_us: u64,
    /// Until when turns wait for it.
    wait_until_us: u64,
}

impl Entry {
    fn new(wish: Wish) -> Self {
        let config = Arc::new(wish.config.clone());
        Entry {
            wish,
            config,
            state: State::Off,
            listed: false,
            tools: Vec::new(),
            product: None,
            why: None,
            starts: 0,
            up_since_us: 0,
            wait_until_us: 0,
        }
    }

    fn run(&self) -> Option<ServerRun> {
        match self.state {
            State::Starting(run) | State::Up(run) => Some(run),
            State::Off | State::Resting(_) | State::Failed => None,
        }
    }

    /// It has never been there, and may come yet.
    fn is_first(&self) -> bool {
        matches!(self.state, State::Starting(_)) && !self.listed
    }

    fn offers(&self) -> &[ListedTool] {
        match self.state {
            // A server that comes back has its tools still: what the model sees stays as it is.
            State::Starting(_) | State::Up(_) | State::Resting(_) => &self.tools,
            State::Off | State::Failed => &[],
        }
    }

    fn stands(&self) -> McpServer {
        let status = match self.state {
            State::Off => return at_first(&self.config),
            State::Starting(_) | State::Resting(_) => McpStatus::Pending,
            State::Up(_) => McpStatus::Connected,
            State::Failed => McpStatus::Failed,
        };
        let mut server = McpServer::new(self.config.name.as_str(), status);
        server.why.clone_from(&self.why);
        server.product.clone_from(&self.product);
        server
    }
}

/// The servers of one session.
#[derive(Debug)]
pub(crate) struct Book {
    mcp: Mcp,
    /// The version of the wishes that was seen last.
    seen: Option<u64>,
    filter: Filter,
    entries: Vec<Entry>,
    runs: u64,
    /// Something may be others than what the session was told.
    stale: bool,
    listing: Listing,
    /// What the session was told last.
    told: (Vec<ToolSpec>, Vec<McpServer>),
    facts: Vec<McpFact>,
    /// Facts of tools that were said.
    said: BTreeSet<McpFact>,
    /// The tools that were said to be there last.
    registered: Option<McpFact>,
}

impl Book {
    /// The session's information begins with [`Servers::at_first`](super::Servers::at_first).
    pub(crate) fn new(mcp: Mcp) -> Self {
        let told = (mcp.tools.clone(), mcp.servers.at_first());
        Book {
            mcp,
            seen: None,
            filter: Filter::default(),
            entries: Vec::new(),
            runs: 0,
            stale: false,
            listing: Listing::default(),
            told,
            facts: Vec::new(),
            said: BTreeSet::new(),
            registered: None,
        }
    }

    pub(crate) fn place(&self) -> Arc<Place> {
        self.mcp.place.clone()
    }

    /// What is to be done now: what was wished since, and servers that have rested enough.
    pub(crate) fn sync(&mut self, now_us: u64) -> Vec<Act> {
        let version = self.mcp.servers.version();
        if self.seen.replace(version) == Some(version) {
            return self.start_again(now_us);
        }
        let (wishes, filter) = self.mcp.servers.list();
        self.filter = filter;
        self.stale = true;
        let mut before = std::mem::take(&mut self.entries);
        let mut acts = Vec::new();
        for wish in wishes {
            let same = before.iter().position(|entry| entry.wish == wish);
            let entry = match same {
                Some(at) => before.swap_remove(at),
                None => {
                    let mut entry = Entry::new(wish);
                    if entry.config.enabled && entry.config.launch.is_ok() {
                        entry.wait_until_us = after(now_us, self.mcp.wait);
                        acts.push(start(&mut entry, &mut self.runs));
                    }
                    if let (true, Err(why)) = (entry.config.enabled, &entry.config.launch) {
                        self.facts.push(McpFact::ConnectFailed {
                            server: entry.config.name.as_str().into(),
                            error: why.as_str().into(),
                        });
                    }
                    entry
                }
            };
            self.entries.push(entry);
        }
        let gone = before.iter().filter_map(Entry::run).map(Act::Stop);
        let mut all: Vec<Act> = gone.chain(acts).collect();
        all.extend(self.start_again(now_us));
        all
    }

    /// A run tells something. What a run says that isn't the server's any more means nothing.
    pub(crate) fn news(&mut self, run: ServerRun, news: News, now_us: u64) {
        let mut entries = self.entries.iter_mut();
        let Some(entry) = entries.find(|entry| entry.run() == Some(run)) else {
            return;
        };
        self.stale = true;
        match news {
            News::Greeted(name, version) => {
                entry.product = Some((name.into(), version.into()));
            }
            News::Listed(tools) => {
                if let State::Starting(_) = entry.state {
                    entry.state = State::Up(run);
                    entry.up_since_us = now_us;
                    entry.why = None;
                }
                if tools.is_empty() && (!entry.listed || !entry.tools.is_empty()) {
                    let server = entry.config.name.as_str().into();
                    self.facts.push(McpFact::NoTools { server });
                }
                entry.listed = true;
                entry.tools = tools;
            }
            News::Down(down) => {
                let fact = went_down(entry, down, &self.mcp.again, now_us);
                self.facts.extend(fact);
            }
        }
    }

    /// When a server has rested enough.
    pub(crate) fn due(&self) -> Option<Due> {
        let times = self.entries.iter().filter_map(|entry| match entry.state {
            State::Resting(at_us) => Some(at_us),
            State::Off | State::Starting(_) | State::Up(_) | State::Failed => None,
        });
        times.min().map(|at_us| Due { at_us, why: "mcp" })
    }

    fn start_again(&mut self, now_us: u64) -> Vec<Act> {
        let mut acts = Vec::new();
        for entry in &mut self.entries {
            if matches!(entry.state, State::Resting(at_us) if at_us <= now_us) {
                acts.push(start(entry, &mut self.runs));
                self.stale = true;
            }
        }
        acts
    }

    /// Until when a turn that would begin now waits; `None`: it needn't.
    pub(crate) fn wait_until(&self, now_us: u64) -> Option<u64> {
        let first = self.entries.iter().filter(|entry| entry.is_first());
        first
            .map(|entry| entry.wait_until_us)
            .filter(|until_us| *until_us > now_us)
            .max()
    }

    /// Other tools than before; the result is all of them, those of the servers too. The session is told of it.
    pub(crate) fn beside(&mut self, tools: Vec<ToolSpec>) -> Vec<ToolSpec> {
        self.mcp.tools = tools;
        self.list();
        let all = self.all_tools();
        self.told.0.clone_from(&all);
        all
    }

    /// What the session has to be told: all tools, and how the servers stand.
    pub(crate) fn changes(&mut self) -> Option<(Vec<ToolSpec>, Vec<McpServer>)> {
        if !std::mem::take(&mut self.stale) {
            return None;
        }
        self.list();
        let now = (self.all_tools(), self.stand());
        if now == self.told {
            return None;
        }
        self.told.clone_from(&now);
        Some(now)
    }

    /// What happened, each said once.
    pub(crate) fn facts(&mut self) -> Vec<McpFact> {
        std::mem::take(&mut self.facts)
    }

    /// The call of a server's tool; `None`: the name is no such tool's. `Err`: why it can't be called now.
    pub(crate) fn call(&self, name: &str, input: &str) -> Option<Result<ServerCall, String>> {
        let (at, tool) = self.listing.routes.get(name)?;
        let entry = self.entries.get(*at)?;
        let server = &entry.config.name;
        Some(match entry.state {
            State::Up(run) => Ok(ServerCall {
                run,
                server: server.clone(),
                tool: tool.clone(),
                input: input.to_owned(),
                limit: entry.config.call_limit,
            }),
            State::Starting(_) | State::Resting(_) => Err(format!(
                "not called: the MCP server {server:?} ended and is being started again; try later"
            )),
            State::Off | State::Failed => Err(format!(
                "not called: the MCP server {server:?} isn't connected"
            )),
        })
    }

    fn all_tools(&self) -> Vec<ToolSpec> {
        let own = self.mcp.tools.iter();
        own.chain(&self.listing.specs).cloned().collect()
    }

    fn stand(&self) -> Vec<McpServer> {
        let tools = self
            .listing
            .of
            .iter()
            .map(Some)
            .chain(std::iter::repeat(None));
        self.entries
            .iter()
            .zip(tools)
            .map(|(entry, tools)| {
                let mut server = entry.stands();
                server.tools = tools.cloned().unwrap_or_default();
                server
            })
            .collect()
    }

    fn list(&mut self) {
        let servers: Vec<(&str, &[ListedTool])> = self
            .entries
            .iter()
            .map(|entry| (entry.config.name.as_str(), entry.offers()))
            .collect();
        let taken = self
            .mcp
            .tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect();
        self.listing = Listing::of(&Sources {
            servers: &servers,
            taken: &taken,
            filter: &self.filter,
            bounds: &self.mcp.bounds,
        });
        let facts = std::mem::take(&mut self.listing.facts);
        if !self.entries.iter().any(Entry::is_first) {
            let up = self.entries.iter();
            let up = up
                .filter(|entry| matches!(entry.state, State::Up(_)))
                .count();
            let names: Vec<Text> = self
                .listing
                .specs
                .iter()
                .map(|tool| tool.name.clone())
                .collect();
            let there = McpFact::Registered {
                servers: u32::try_from(up).unwrap_or(u32::MAX),
                names,
            };
            if up > 0 && self.registered.as_ref() != Some(&there) {
                self.registered = Some(there.clone());
                self.facts.push(there);
            }
        }
        if self.said.len() > MOST_SAID {
            self.said.clear();
        }
        let new = facts
            .into_iter()
            .filter(|fact| self.said.insert(fact.clone()));
        self.facts.extend(new);
    }
}

fn start(entry: &mut Entry, runs: &mut u64) -> Act {
    *runs = runs.saturating_add(1);
    let run = ServerRun(*runs);
    entry.state = State::Starting(run);
    Act::Start(run, entry.config.clone())
}

/// A server's run is over. The result is what there is to say of it.
fn went_down(entry: &mut Entry, down: Down, again: &super::Again, now_us: u64) -> Option<McpFact> {
    let server: Text = entry.config.name.as_str().into();
    let was_up = matches!(entry.state, State::Up(_));
    let limit = entry.config.connect_limit;
    let late = |what: &str| format!("it {what} within {} s", limit.as_secs_f64());
    let error: Text = match &down {
        Down::Connect(why) | Down::List(why) | Down::Closed(why) => why.as_str().into(),
        Down::ConnectTimeout => late("didn't answer").into(),
        Down::ListTimeout => late("didn't say which tools it has").into(),
        Down::Stopped => "it was stopped".into(),
    };
    entry.why = Some(error.clone());
    if was_up && now_us.saturating_sub(entry.up_since_us) >= micros(again.well_after) {
        entry.starts = 0;
    }
    let more = entry.listed && entry.starts < again.times && down != Down::Stopped;
    if more {
        let doubled = again.first.saturating_mul(1 << entry.starts.min(16));
        entry.starts += 1;
        entry.state = State::Resting(after(now_us, doubled.min(again.longest)));
    } else {
        entry.state = State::Failed;
    }
    Some(match down {
        _ if was_up => McpFact::Lost {
            server,
            error,
            again: more,
        },
        Down::List(_) => McpFact::ListFailed { server, error },
        Down::ListTimeout => McpFact::ListTimedOut { server },
        Down::Connect(_) | Down::ConnectTimeout | Down::Closed(_) => {
            McpFact::ConnectFailed { server, error }
        }
        Down::Stopped => return None,
    })
}

fn after(now_us: u64, time: Duration) -> u64 {
    now_us.saturating_add(micros(time))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::{Launch, Servers, Set};
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn server(name: &str) -> ServerConfig {
        let launch = Launch {
            command: name.to_owned(),
            ..Launch::default()
        };
        ServerConfig::new(name, Ok(launch))
    }

    fn book(names: &[&str]) -> (Book, Servers) {
        let servers = Servers::new(names.iter().map(|name| server(name)).collect());
        let mcp = Mcp::new(servers.clone(), Place::new("/p"), Vec::new());
        (Book::new(mcp), servers)
    }

    fn tools(names: &[&str]) -> News {
        let tool = |name: &&str| ListedTool {
            name: (*name).to_owned(),
            schema: "{}".to_owned(),
            ..ListedTool::default()
        };
        News::Listed(names.iter().map(tool).collect())
    }

    fn words(acts: &[Act]) -> Vec<String> {
        let word = |act: &Act| match act {
            Act::Start(run, config) => format!("start {} {}", run.0, config.name),
            Act::Stop(run) => format!("stop {}", run.0),
        };
        acts.iter().map(word).collect()
    }

    /// How they stand, and what the model gets.
    fn told(book: &mut Book) -> Option<String> {
        let (tools, servers) = book.changes()?;
        let server = |it: &McpServer| {
            let why = it.why.as_deref().map(|why| format!("({why})"));
            format!(
                "{}:{}{}",
                it.name,
                it.status.word(),
                why.unwrap_or_default()
            )
        };
        let servers: Vec<String> = servers.iter().map(server).collect();
        let tools: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        Some(format!("{} [{}]", servers.join(" "), tools.join(" ")))
    }

    const ONE: ServerRun = ServerRun(1);
    const TWO: ServerRun = ServerRun(2);

    #[test]
    fn a_server_is_pending_then_connected_and_its_tools_are_there() {
        let (mut book, _) = book(&["a", "b"]);
        assert_eq!(words(&book.sync(0)), ["start 1 a", "start 2 b"]);
        assert_eq!(told(&mut book), None, "what the session began with");
        assert_eq!(book.wait_until(0), Some(5 * SECOND));
        book.news(ONE, News::Greeted("A".into(), "1".into()), 1);
        book.news(ONE, tools(&["t"]), 1);
        assert_eq!(
            told(&mut book).as_deref(),
            Some("a:connected b:pending [mcp__a__t]")
        );
        assert_eq!(book.facts(), [], "b may come yet");
        let call = book
            .call("mcp__a__t", "{}")
            .expect("a tool")
            .expect("connected");
        assert_eq!((call.run, &*call.tool), (ONE, "t"));
        assert!(book.call("mcp__b__t", "{}").is_none());
        assert_eq!(book.wait_until(5 * SECOND), None, "long enough");
        book.news(TWO, News::Down(Down::Connect("no".into())), 2);
        assert_eq!(book.wait_until(2), None);
        assert_eq!(
            told(&mut book).as_deref(),
            Some("a:connected b:failed(no) [mcp__a__t]")
        );
        let facts = book.facts();
        assert_eq!(facts.len(), 2);
        assert!(matches!(facts[0], McpFact::ConnectFailed { .. }));
        assert!(matches!(facts[1], McpFact::Registered { servers: 1, .. }));
        assert!(book.sync(9 * SECOND).is_empty() && book.due().is_none());
    }

    #[test]
    fn each_failure_is_told_as_what_it_is() {
        for (down, want) in [
            (Down::ConnectTimeout, "it didn't answer within 30 s"),
            (
                Down::ListTimeout,
                "it didn't say which tools it has within 30 s",
            ),
            (Down::List("bad".into()), "bad"),
            (Down::Closed("gone".into()), "gone"),
            (Down::Stopped, "it was stopped"),
        ] {
            let (mut book, _) = book(&["a"]);
            book.sync(0);
            book.news(ONE, News::Down(down.clone()), 1);
            assert_eq!(told(&mut book), Some(format!("a:failed({want}) []")));
            let server: Text = "a".into();
            let error: Text = want.into();
            let fact = match down {
                Down::ListTimeout => vec![McpFact::ListTimedOut { server }],
                Down::List(_) => vec![McpFact::ListFailed { server, error }],
                Down::Stopped => vec![],
                Down::Connect(_) | Down::ConnectTimeout | Down::Closed(_) => {
                    vec![McpFact::ConnectFailed { server, error }]
                }
            };
            assert_eq!(book.facts(), fact);
        }
    }

    #[test]
    fn a_server_that_ends_is_started_again_a_few_times_and_its_tools_stay_meanwhile() {
        let (mut book, _) = book(&["a"]);
        book.sync(0);
        book.news(ONE, tools(&["t"]), 0);
        told(&mut book);
        let mut now = SECOND;
        for (start, wait) in [1, 2, 4, 8, 16].into_iter().enumerate() {
            let run = ServerRun(start as u64 + 1);
            book.news(run, News::Down(Down::Closed("boom".into())), now);
            assert_eq!(
                told(&mut book).as_deref(),
                Some("a:pending(boom) [mcp__a__t]")
            );
            let refused = book.call("mcp__a__t", "{}").expect("a tool");
            assert!(
                refused
                    .expect_err("not now")
                    .contains("being started again")
            );
            assert_eq!(
                book.wait_until(now),
                None,
                "turns wait for the first start alone"
            );
            let due = book.due().expect("a start").at_us;
            assert_eq!(due, now + wait * SECOND);
            assert!(book.sync(due - 1).is_empty());
            assert_eq!(words(&book.sync(due)), [format!("start {} a", start + 2)]);
            now = due + SECOND;
            book.news(ServerRun(start as u64 + 2), tools(&["t"]), now);
            assert_eq!(told(&mut book).as_deref(), Some("a:connected [mcp__a__t]"));
        }
        // One that was well for a while has all its starts again; one that wasn't has failed.
        let (at, run) = (now, ServerRun(6));
        book.news(run, News::Down(Down::Closed("boom".into())), at + SECOND);
        assert_eq!(told(&mut book).as_deref(), Some("a:failed(boom) []"));
        assert!(book.due().is_none() && book.call("mcp__a__t", "{}").is_none());
        let lost = book.facts();
        assert!(matches!(
            lost.last(),
            Some(McpFact::Lost { again: false, .. })
        ));
    }

    #[test]
    fn a_server_that_was_well_for_a_while_begins_anew() {
        let (mut book, _) = book(&["a"]);
        book.sync(0);
        for run in 1..20 {
            let now = run * 1000 * SECOND;
            book.news(ServerRun(run), tools(&["t"]), now);
            let end = now + 60 * SECOND;
            book.news(ServerRun(run), News::Down(Down::Closed(String::new())), end);
            assert_eq!(book.due().map(|due| due.at_us), Some(end + SECOND), "{run}");
            book.sync(end + SECOND);
        }
    }

    #[test]
    fn ax_s08_servers_come_and_go_as_it_is_wished() {
        let (mut book, servers) = book(&["a"]);
        book.sync(0);
        book.news(ONE, tools(&["t"]), 0);
        told(&mut book);
        let set: Set = servers.set(vec![server("b")]);
        assert_eq!(set.added, ["b"]);
        assert_eq!(words(&book.sync(1)), ["start 2 b"], "a goes on");
        assert_eq!(
            told(&mut book).as_deref(),
            Some("a:connected b:pending [mcp__a__t]")
        );
        servers.set(Vec::new());
        assert_eq!(words(&book.sync(2)), ["stop 2"]);
        assert_eq!(told(&mut book).as_deref(), Some("a:connected [mcp__a__t]"));
        // What it says yet means nothing.
        book.news(TWO, tools(&["t"]), 3);
        assert_eq!(told(&mut book), None);
        servers.toggle("a", false).expect("known");
        assert_eq!(words(&book.sync(3)), ["stop 1"]);
        assert_eq!(told(&mut book).as_deref(), Some("a:disabled []"));
        servers.toggle("a", true).expect("known");
        servers.reconnect("a").expect("known");
        assert_eq!(words(&book.sync(4)), ["start 3 a"], "once");
    }

    #[test]
    fn tools_that_are_others_are_told_and_facts_of_them_once() {
        let (mut book, _) = book(&["a"]);
        book.sync(0);
        book.news(ONE, tools(&[]), 0);
        assert_eq!(told(&mut book).as_deref(), Some("a:connected []"));
        let none = McpFact::NoTools { server: "a".into() };
        assert_eq!(book.facts().len(), 2);
        for _ in 0..2 {
            book.news(ONE, tools(&["t", "t"]), 0);
            told(&mut book);
        }
        let facts = book.facts();
        assert_eq!(facts.len(), 2, "{facts:?}");
        book.news(ONE, tools(&[]), 0);
        told(&mut book);
        assert!(book.facts().contains(&none));
    }

    #[test]
    fn other_tools_beside_them_keep_their_names() {
        let (mut book, _) = book(&["a"]);
        book.sync(0);
        book.news(ONE, tools(&["t"]), 0);
        let Some((mut specs, _)) = book.changes() else {
            panic!("nothing told")
        };
        let mine = specs.remove(0);
        let all = book.beside(vec![mine.clone()]);
        assert_eq!((all.len(), &*all[0].name), (2, "mcp__a__t"));
        assert!(all[1].name.starts_with("mcp__a__t_"));
        assert!(book.call("mcp__a__t", "{}").is_none());
        assert_eq!(told(&mut book), None, "the session was told");
    }

    #[test]
    fn a_server_that_cant_be_started_has_failed_from_the_beginning() {
        let servers = Servers::new(vec![ServerConfig::new("far", Err("only processes".into()))]);
        let mcp = Mcp::new(servers.clone(), Place::new("/p"), Vec::new());
        let mut book = Book::new(mcp);
        assert!(book.sync(0).is_empty());
        assert_eq!(told(&mut book), None, "what the session began with");
        assert_eq!(servers.at_first()[0].status, McpStatus::Failed);
        assert!(matches!(book.facts()[..], [McpFact::ConnectFailed { .. }]));
    }
}
