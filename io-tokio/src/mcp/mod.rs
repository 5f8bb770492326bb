//! MCP servers as children of this process, spoken to by the protocol's own SDK.

mod call;
mod face;
mod stderr;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{PaginatedRequestParams, Tool};
use rmcp::service::{ClientInitializeError, Peer, RoleClient, ServiceError, serve_client};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::time::{timeout, timeout_at};
use turnwire_io::engine::{Report, Reporter, Stopper, crashed};
use turnwire_io::mcp::{Down, ListedTool, News, Place, ServerConfig, ServerRun};
use turnwire_io::process::{DRAIN, Exit};

use crate::process::Group;
use crate::tools::CancelToken;
use face::{Face, Progress};
use stderr::LastWords;

/// The largest message of a server, in bytes. It is held whole.
const LARGEST: usize = 16 * 1024 * 1024;
/// Pages of one list of tools.
const PAGES: usize = 64;
/// Tools of one list. What is offered of them is decided elsewhere.
const TOOLS: usize = 4_096;
/// How long a server that says its tools are others is left alone before it is asked: it may say so many times.
const CALM: Duration = Duration::from_millis(200);

/// A run that is connected.
#[derive(Clone)]
struct Live {
    peer: Peer<RoleClient>,
    progress: Arc<Progress>,
}

/// The servers of one session that are connected.
#[derive(Clone, Default)]
pub(crate) struct Servers {
    live: Arc<Mutex<BTreeMap<ServerRun, Live>>>,
}

impl Servers {
    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<ServerRun, Live>) -> T) -> T {
        change(&mut self.live.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts a server. Its end is reported when its process group is gone.
    pub(crate) fn start(
        &self,
        run: ServerRun,
        config: Arc<ServerConfig>,
        place: Arc<Place>,
        report: Reporter,
    ) -> Stopper {
        let cancel = CancelToken::new();
        let (servers, token) = (self.clone(), cancel.clone());
        tokio::spawn(async move {
            let tell = {
                let report = report.clone();
                move |news| report(Report::Mcp(run, news))
            };
            let child = Child {
                run,
                config,
                place,
                servers: servers.clone(),
                cancel: token,
            };
            let work = tokio::spawn(async move { child.live(&tell).await });
            let down = work.await.unwrap_or_else(|error| {
                Down::Closed(match error.try_into_panic() {
                    Ok(panic) => crashed("its task", &*panic),
                    Err(error) => error.to_string(),
                })
            });
            servers.change(|live| live.remove(&run));
            report(Report::Mcp(run, News::Down(down)));
        });
        Box::new(move || cancel.cancel())
    }
}

/// One run of a server.
struct Child {
    run: ServerRun,
    config: Arc<ServerConfig>,
    place: Arc<Place>,
    servers: Servers,
    cancel: CancelToken,
}

impl Child {
    /// From its start to its end.
    async fn live(self, tell: &(dyn Fn(News) + Send + Sync)) -> Down {
        let launch = match &self.config.launch {
            Ok(launch) => launch,
            Err(why) => return Down::Connect(why.clone()),
        };
        let mut group = match Group::spawn(self.place.command(launch)) {
            Ok(group) => group,
            Err(error) => {
                return Down::Connect(format!("{} can't be started: {error}", launch.command));
            }
        };
        let (stdin, (stdout, stderr)) = (group.stdin(), group.pipes());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Down::Connect("it has no pipes".to_owned());
        };
        let words = LastWords::default();
        let mut reading = pin!(stderr::read(stderr, &self.config.name, &words));
        let mut is_read = false;
        let mut working = pin!(async {
            let transport =
                AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(LARGEST);
            let down = tokio::select! {
                down = self.talk(transport, tell) => down,
                () = gone(&group) => Down::Closed(String::new()),
            };
            self.servers.change(|live| live.remove(&self.run));
            (down, end(group, self.place.grace).await)
        });
        let (down, exit) = loop {
            tokio::select! {
                ended = &mut working => break ended,
                () = &mut reading, if !is_read => is_read = true,
            }
        };
        if !is_read {
            // Its last words are in the pipe, which somebody else may hold open.
            let _ = timeout(DRAIN, reading).await;
        }
        let say = |why: String| words.behind(&why, exit);
        match down {
            Down::Connect(why) => Down::Connect(say(why)),
            Down::List(why) => Down::List(say(why)),
            Down::Closed(why) => Down::Closed(say(why)),
            Down::ConnectTimeout | Down::ListTimeout | Down::Stopped => down,
        }
    }

    /// Speaks with it, until it is over.
    async fn talk<T>(&self, transport: T, tell: &(dyn Fn(News) + Send + Sync)) -> Down
    where
        T: rmcp::transport::Transport<RoleClient> + Send + 'static,
        T::Error: Send + Sync + 'static,
    {
        let limit = tokio::time::Instant::now() + self.config.connect_limit;
        let face = Face::new(&self.place);
        let (progress, changed) = (face.progress(), face.changed());
        let service = tokio::select! {
            () = self.cancel.cancelled() => return Down::Stopped,
            started = timeout_at(limit, serve_client(face, transport)) => match started {
                Err(_) => return Down::ConnectTimeout,
                Ok(Err(error)) => return Down::Connect(greeting_failed(&error)),
                Ok(Ok(service)) => service,
            },
        };
        let peer = service.peer().clone();
        let closing = service.cancellation_token();
        let mut over = pin!(service.waiting());
        if let Some((name, version)) = product(&peer) {
            tell(News::Greeted(name, version));
        }
        let first = tokio::select! {
            () = self.cancel.cancelled() => Err(Down::Stopped),
            listed = timeout_at(limit, list(&peer)) => match listed {
                Err(_) => Err(Down::ListTimeout),
                Ok(Err(error)) => Err(Down::List(short(&error))),
                Ok(Ok(tools)) => Ok(tools),
            },
        };
        let mut is_over = false;
        let down = match first {
            Err(down) => down,
            Ok(tools) => {
                let live = Live {
                    peer: peer.clone(),
                    progress,
                };
                self.servers.change(|all| all.insert(self.run, live));
                tell(News::Listed(tools));
                loop {
                    tokio::select! {
                        () = self.cancel.cancelled() => break Down::Stopped,
                        _ = &mut over => {
                            is_over = true;
                            break Down::Closed("it closed the connection".to_owned());
                        }
                        tools = self.list_again(&peer, &changed) => {
                            if let Some(tools) = tools {
                                tell(News::Listed(tools));
                            }
                        }
                    }
                }
            }
        };
        closing.cancel();
        if !is_over {
            // It may be stuck writing to a server that doesn't read.
            let _ = timeout(self.place.grace, over).await;
        }
        down
    }

    /// Waits until it says that its tools are others, and asks which they are. `None`: it doesn't say.
    async fn list_again(
        &self,
        peer: &Peer<RoleClient>,
        changed: &tokio::sync::Notify,
    ) -> Option<Vec<ListedTool>> {
        changed.notified().await;
        tokio::time::sleep(CALM).await;
        let name = &self.config.name;
        match timeout(self.config.connect_limit, list(peer)).await {
            Ok(Ok(tools)) => Some(tools),
            Ok(Err(error)) => {
                tracing::warn!(
                    "the MCP server {name:?} doesn't say which tools it has now: {error}"
                );
                None
            }
            Err(_) => {
                tracing::warn!(
                    "the MCP server {name:?} took too long to say which tools it has now"
                );
                None
            }
        }
    }
}

/// What it says of itself.
fn product(peer: &Peer<RoleClient>) -> Option<(String, String)> {
    let info = peer.peer_info()?.server_info.clone()?;
    Some((info.name, info.version))
}

/// All its tools, page by page.
async fn list(peer: &Peer<RoleClient>) -> Result<Vec<ListedTool>, ServiceError> {
    let info = peer.peer_info();
    if info.is_some_and(|info| info.capabilities.tools.is_none()) {
        return Ok(Vec::new());
    }
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let page = peer.list_tools(Some(params)).await?;
        tools.extend(page.tools.iter().map(listed));
        // A server that gives the same page again has no more of them.
        if page.next_cursor.is_none() || page.next_cursor == cursor || tools.len() >= TOOLS {
            break;
        }
        cursor = page.next_cursor;
    }
    tools.truncate(TOOLS);
    Ok(tools)
}

fn listed(tool: &Tool) -> ListedTool {
    let mut schema = serde_json::Map::clone(&tool.input_schema);
    // What arguments are of is known; providers want it said.
    schema
        .entry("type")
        .or_insert_with(|| serde_json::Value::String("object".to_owned()));
    let notes = tool.annotations.as_ref();
    ListedTool {
        name: tool.name.clone().into_owned(),
        title: tool
            .title
            .clone()
            .or_else(|| notes.and_then(|notes| notes.title.clone())),
        description: tool
            .description
            .clone()
            .map_or_else(String::new, std::borrow::Cow::into_owned),
        schema: serde_json::Value::Object(schema).to_string(),
    }
}

/// A child that is dead, though somebody else may hold its pipes open.
async fn gone(group: &Group) {
    if group.exited().await.is_err() {
        std::future::pending::<()>().await;
    }
    // What it wrote last is read.
    tokio::time::sleep(DRAIN).await;
}

/// Ends a server whose input is closed: it is given time, then asked, then killed, with its whole group.
async fn end(group: Group, grace: Duration) -> Option<Exit> {
    if timeout(grace, group.exited()).await.is_err() {
        group.terminate();
        if timeout(grace, group.exited()).await.is_err() {
            group.kill();
        }
    }
    let settled = group.settle(Instant::now() + grace).await;
    settled.ok()
}

/// Why it didn't answer as a server does. That its pipes broke says no more than that it closed them.
fn greeting_failed(error: &ClientInitializeError) -> String {
    if let ClientInitializeError::TransportError { .. }
    | ClientInitializeError::ConnectionClosed(_) = error
    {
        return "it closed the connection".to_owned();
    }
    short(error)
}

/// An error of the SDK, which may hold a whole message.
fn short(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    match text.char_indices().nth(400) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}
