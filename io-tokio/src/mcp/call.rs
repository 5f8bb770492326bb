//! One call of a server's tool.

use std::pin::pin;
use std::time::{Duration, Instant};

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject};
use rmcp::service::{PeerRequestOptions, ServiceError};
use tokio::time::sleep;
use turnwire::vocab::{Block, Progress as Shown, ToolOutcome, ToolUpdate};
use turnwire_io::mcp::{ServerCall, finished};

use super::{Servers, short};
use crate::tools::CancelToken;

/// The shortest time between two words of progress.
const PACE: Duration = Duration::from_millis(150);

impl Servers {
    /// Calls a tool and gives the call's end. A call that is cancelled, or takes too long, is given up, and its server is
    /// told.
    pub(crate) async fn call(
        &self,
        call: ServerCall,
        cancel: CancelToken,
        mut updates: impl FnMut(ToolUpdate) + Send,
    ) -> ToolUpdate {
        let server = &call.server;
        let Some(live) = self.change(|live| live.get(&call.run).cloned()) else {
            let text = format!("not called: the MCP server {server:?} isn't connected any more");
            return over(ToolOutcome::Failed, text);
        };
        let input: JsonObject = match serde_json::from_str(&call.input) {
            Ok(input) => input,
            Err(error) => {
                return over(
                    ToolOutcome::Invalid,
                    format!("not called: bad arguments: {error}"),
                );
            }
        };
        let params = CallToolRequestParams::new(call.tool.clone()).with_arguments(input);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let mut late = pin!(sleep(call.limit));
        let too_late = || {
            let text = format!("the call took longer than {} s", call.limit.as_secs_f64());
            over(ToolOutcome::TimedOut, text)
        };
        let sent = tokio::select! {
            () = cancel.cancelled() => return cancelled(),
            () = &mut late => return too_late(),
            sent = live.peer.send_cancellable_request(request, PeerRequestOptions::no_options()) => sent,
        };
        let mut sent = match sent {
            Ok(sent) => sent,
            Err(error) => return failed(server, &error),
        };
        let (_watch, mut progress) = live.progress.watch(sent.progress_token.clone());
        let mut told: Option<Instant> = None;
        let (why, end) = loop {
            tokio::select! {
                answer = &mut sent.rx => return match answer {
                    Ok(Ok(result)) => read(&result),
                    Ok(Err(error)) => failed(server, &error),
                    Err(_) => failed(server, &ServiceError::TransportClosed),
                },
                Some(text) = progress.recv() => {
                    if told.is_none_or(|told| told.elapsed() >= PACE) {
                        told = Some(Instant::now());
                        let block = Block::Text(format!("{text}\n").into());
                        updates(ToolUpdate::Progress(Shown::Append(vec![block])));
                    }
                }
                () = cancel.cancelled() => break ("cancelled by user", cancelled()),
                () = &mut late => break ("it took too long", too_late()),
            }
        };
        // A server that doesn't even read that is no reason to wait.
        let tell = sent.cancel(Some(why.to_owned()));
        let _ = tokio::time::timeout(PACE, tell).await;
        end
    }
}

fn read(result: &rmcp::model::ServerResult) -> ToolUpdate {
    let Ok(value) = serde_json::to_value(result) else {
        return over(
            ToolOutcome::Failed,
            "the tool's result can't be read".to_owned(),
        );
    };
    match value.get("resultType").and_then(serde_json::Value::as_str) {
        None | Some("complete") => finished(&value),
        Some(other) => over(
            ToolOutcome::Failed,
            format!("the tool wants what it can't be given here: its result is {other:?}"),
        ),
    }
}

fn failed(server: &str, error: &ServiceError) -> ToolUpdate {
    let text = if let ServiceError::McpError(error) = error {
        format!("the call failed: {}", short(&error.message))
    } else if let ServiceError::TransportClosed | ServiceError::TransportSend(_) = error {
        format!("the MCP server {server:?} ended before the call was over")
    } else {
        format!("the call failed: {}", short(error))
    };
    over(ToolOutcome::Failed, text)
}

fn cancelled() -> ToolUpdate {
    over(ToolOutcome::Cancelled, "cancelled by user".to_owned())
}

fn over(outcome: ToolOutcome, text: String) -> ToolUpdate {
    ToolUpdate::Done {
        outcome,
        content: vec![Block::Text(text.into())],
        show: None,
    }
}
