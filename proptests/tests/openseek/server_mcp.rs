//! The Server: what is told of MCP servers.

use serde_json::{Value, json};
use turnwire::protocol::openseek::OpenseekExtra;
use turnwire::vocab::*;

#[test]
fn os_10_what_is_told_of_mcp_servers() {
    let text = |text: &str| Text::from(text);
    let fact = |fact: McpFact| {
        OpenseekExtra::mcp(&fact)
            .map(|extra| serde_json::from_str::<Value>(extra.line.as_str()).unwrap())
    };
    let server = || text("fs");
    for (mcp, line) in [
        (
            McpFact::Registered {
                servers: 1,
                names: vec![text("a"), text("b")],
            },
            json!({"event":"mcp_tools_registered","servers":1,"tools":2,"names":["a","b"]}),
        ),
        (
            McpFact::Duplicate {
                server: server(),
                tool: text("read"),
            },
            json!({"event":"mcp_tool_duplicate","server":"fs","tool":"read"}),
        ),
        (
            McpFact::Renamed {
                server: server(),
                from: text("read"),
                to: text("fs_read"),
            },
            json!({"event":"mcp_tool_renamed","from":"read","to":"fs_read"}),
        ),
        (
            McpFact::Capped {
                server: server(),
                kept: 64,
            },
            json!({"event":"mcp_tools_capped","server":"fs","kept":64}),
        ),
        (
            McpFact::OverCap { server: server() },
            json!({"event":"mcp_server_skipped_over_cap","server":"fs"}),
        ),
        (
            McpFact::ConnectFailed {
                server: server(),
                error: text("no"),
            },
            json!({"event":"mcp_connect_failed","server":"fs","error":"no"}),
        ),
        (
            McpFact::Lost {
                server: server(),
                error: text("gone"),
                again: true,
            },
            json!({"event":"mcp_connect_failed","server":"fs","error":"gone"}),
        ),
        (
            McpFact::ListFailed {
                server: server(),
                error: text("no"),
            },
            json!({"event":"mcp_list_tools_failed","server":"fs","error":"no"}),
        ),
        (
            McpFact::ListTimedOut { server: server() },
            json!({"event":"mcp_list_tools_timeout","server":"fs"}),
        ),
        (
            McpFact::NoTools { server: server() },
            json!({"event":"mcp_no_tools","server":"fs"}),
        ),
    ] {
        assert_eq!(fact(mcp), Some(line));
    }
    let left_out = McpFact::LeftOut {
        server: server(),
        tool: text("x"),
        why: text("y"),
    };
    assert_eq!(fact(left_out), None);
}
