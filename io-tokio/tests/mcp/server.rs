//! A small MCP server for tests: the test program itself, called by [`config`].
//!
//! The test that it runs writes some words to its standard output first, as careless servers do.

#![expect(deprecated, reason = "clients have roots yet")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities,
    ServerConfig as Info, Tool, ToolsCapability,
};
use rmcp::service::{RequestContext, RoleServer, ServiceExt as _};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};
use turnwire_io::mcp::{Launch, ServerConfig};

/// Says how the server is: words with blanks between them.
const HOW: &str = "TURNWIRE_TEST_MCP";
/// The test below, by its path in the program.
const TEST: &str = "server::stands_in";

/// A server that is so.
pub fn config(name: &str, how: &str) -> ServerConfig {
    let launch = Launch {
        command: std::env::current_exe().unwrap().display().to_string(),
        args: args(),
        env: vec![(HOW.to_owned(), format!("on {how}"))],
        ..Launch::default()
    };
    ServerConfig::new(name, Ok(launch))
}

/// What the program is called with to be the server.
pub fn args() -> Vec<String> {
    ["--exact", TEST, "--nocapture"].map(String::from).to_vec()
}

/// Another program as a server.
pub fn shell(name: &str, line: &str) -> ServerConfig {
    let launch = Launch {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), line.to_owned()],
        ..Launch::default()
    };
    ServerConfig::new(name, Ok(launch))
}

/// The server, where it is asked for; else nothing.
#[test]
fn stands_in() {
    let Ok(how) = std::env::var(HOW) else {
        return;
    };
    let how: Vec<String> = how.split_whitespace().map(str::to_owned).collect();
    if how.iter().any(|word| word == "stubborn") {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "trap '' TERM; while :; do sleep 1; done"])
            .spawn()
            .unwrap();
        std::fs::write("pids", format!("{} {}\n", std::process::id(), child.id())).unwrap();
        std::thread::spawn(move || child.wait());
    }
    let server = Server {
        how,
        grown: AtomicBool::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        if let Some(late) = server.number("late=") {
            tokio::time::sleep(Duration::from_millis(late)).await;
        }
        let stubborn = server.is("stubborn");
        if stubborn {
            tokio::spawn(async {
                use tokio::signal::unix::{SignalKind, signal};
                let mut term = signal(SignalKind::terminate()).unwrap();
                while term.recv().await.is_some() {}
            });
        }
        let running = server.serve(rmcp::transport::stdio()).await.unwrap();
        let _ = running.waiting().await;
        if stubborn {
            std::future::pending::<()>().await;
        }
    });
    std::process::exit(0);
}

struct Server {
    how: Vec<String>,
    /// Whether it has one tool more.
    grown: AtomicBool,
}

impl Server {
    fn is(&self, word: &str) -> bool {
        self.how.iter().any(|one| one == word)
    }

    fn number(&self, name: &str) -> Option<u64> {
        let mut numbers = self.how.iter().filter_map(|word| word.strip_prefix(name));
        numbers.next().and_then(|number| number.parse().ok())
    }

    fn tools(&self) -> Vec<String> {
        let mut names: Vec<String> = match self.number("many=") {
            Some(many) => (0..many).map(|n| format!("t{n}")).collect(),
            None => [
                "echo", "picture", "facts", "fails", "slow", "die", "babble", "grow", "look",
            ]
            .map(String::from)
            .to_vec(),
        };
        if self.is("twice") {
            names.push("echo".to_owned());
        }
        if self.is("none") {
            names.clear();
        }
        if self.grown.load(Ordering::Relaxed) {
            names.push("grown".to_owned());
        }
        names
    }
}

fn object(value: Value) -> rmcp::model::JsonObject {
    match value {
        Value::Object(object) => object,
        other => panic!("{other}"),
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> Info {
        let mut tools = ToolsCapability::default();
        tools.list_changed = Some(true);
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(tools);
        Info::new(capabilities).with_server_info(Implementation::new("stand-in", "1.2"))
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if self.is("mute") {
            std::future::pending::<()>().await;
        }
        if self.is("shy") {
            return Err(ErrorData::internal_error("not telling", None));
        }
        let schema = object(json!({"type":"object","properties":{"text":{"type":"string"}}}));
        let all = self.tools();
        // Four on a page.
        let cursor = page.and_then(|page| page.cursor);
        let from: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
        let page = all.iter().skip(from).take(4);
        let tools = page
            .map(|name| Tool::new(name.clone(), format!("does {name}"), schema.clone()))
            .collect();
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = (from + 4 < all.len()).then(|| (from + 4).to_string());
        Ok(result)
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = |text: String| CallToolResult::success(vec![ContentBlock::text(text)]);
        let given = call.arguments.unwrap_or_default();
        let said = given.get("text").and_then(Value::as_str).unwrap_or("");
        let result = match &*call.name {
            "echo" | "grown" => text(format!("heard {said}")),
            "picture" => CallToolResult::success(vec![
                ContentBlock::text("a picture"),
                ContentBlock::image("aGk=", "image/png"),
            ]),
            "facts" => CallToolResult::structured(json!({"answer":42})),
            "fails" => CallToolResult::error(vec![ContentBlock::text("it failed so")]),
            "slow" => {
                if let Some(token) = context.meta.get_progress_token() {
                    let word = ProgressNotificationParam::new(token, 1.0).with_message("at it");
                    context.peer.notify_progress(word).await.unwrap();
                }
                std::fs::write("begun", "yes\n").unwrap();
                context.ct.cancelled().await;
                std::fs::write("cancelled", "yes\n").unwrap();
                text("too late".to_owned())
            }
            "die" => {
                use std::io::Write as _;
                std::io::stderr()
                    .write_all(b"\x1b[31mmy last words\n")
                    .unwrap();
                std::process::exit(7)
            }
            "babble" => {
                use std::io::Write as _;
                // One write: nothing of the protocol comes between.
                let noise = "no JSON\n{\"jsonrpc\":\n\u{0}\u{1}\n[1,2,3]\n\n{\"foo\":1}\n";
                std::io::stdout().write_all(noise.as_bytes()).unwrap();
                text("said enough".to_owned())
            }
            "grow" => {
                self.grown.store(true, Ordering::Relaxed);
                context.peer.notify_tool_list_changed().await.unwrap();
                text("grown".to_owned())
            }
            "look" => {
                let roots = context.peer.list_roots().await.unwrap();
                let here = std::env::current_dir().unwrap();
                let home = Path::new(&here)
                    .join("x")
                    .parent()
                    .unwrap()
                    .display()
                    .to_string();
                let names = ["TURNWIRE_SESSION", "SECRET", "PASSED"];
                let vars = names.map(|name| std::env::var(name).unwrap_or_default());
                text(format!("{} {home} {}", roots.roots[0].uri, vars.join(",")))
            }
            "t0" => text("the first".to_owned()),
            other => return Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        };
        Ok(CallToolResponse::Complete(result))
    }
}
