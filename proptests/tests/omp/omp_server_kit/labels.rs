//! Lines as words, for scenes.

use serde_json::Value;

/// Types of lines, with what tells them apart; a run of deltas is one, and so is a pair of a message.
pub fn labels(lines: &[String]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for line in lines {
        let value: Value = serde_json::from_str(line).unwrap();
        let kind = value["type"].as_str().unwrap();
        let word = |path: &str| {
            value
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or("?")
                .to_owned()
        };
        let role = word("/message/role");
        let label = match kind {
            "response" if value["success"] == false => format!("response({},false)", word("/id")),
            "response" if value["data"]["agentInvoked"] == false => {
                format!("response({},local)", word("/id"))
            }
            "response" => format!("response({})", word("/id")),
            "prompt_result" => format!("prompt_result({},{})", word("/id"), word("/status")),
            "message_start" if role == "assistant" => "msg_start".into(),
            "message_end" if role == "assistant" => {
                let stop = word("/message/stopReason");
                if labels.last().is_some_and(|last| last == "msg_start") {
                    labels.pop();
                    format!("empty({stop})")
                } else {
                    format!("msg_end({stop})")
                }
            }
            "message_start" if role == "toolResult" => "result".into(),
            "message_start" => format!("message({role})"),
            "message_end" => continue,
            "message_update" => match word("/assistantMessageEvent/type") {
                delta if delta.ends_with("_delta") => format!("{delta}*"),
                other => other,
            },
            "tool_execution_start" => format!("exec_start({})", word("/toolCallId")),
            "tool_execution_update" => format!("exec_update({})", word("/toolCallId")),
            "tool_execution_end" => format!("exec_end({})", word("/toolCallId")),
            "host_tool_call" => format!("host_tool_call({})", word("/toolCallId")),
            "extension_ui_request" => format!("ui:{}", word("/method")),
            "auto_retry_start" if value["attempt"] != 1 => {
                format!("auto_retry_start({})", value["attempt"])
            }
            "exit" => format!("exit({})", value["code"]),
            other => other.to_owned(),
        };
        if !(label.ends_with('*') && labels.last() == Some(&label)) {
            labels.push(label);
        }
    }
    labels
}

/// The labels that a row of a scene stands for.
pub fn expected(row: &str) -> Vec<String> {
    let mut labels = Vec::new();
    for word in row.split_whitespace() {
        let (verb, arg) = word.split_once('(').map_or((word, ""), |(verb, rest)| {
            (verb, rest.strip_suffix(')').unwrap())
        });
        let parts = match verb {
            "begin" => format!("response({arg}) agent_start turn_start message(user)"),
            "answer" => "msg_start text_start text_delta* text_end msg_end(stop)".into(),
            "text" | "thinking" => format!("{verb}_start {verb}_delta* {verb}_end"),
            "calls" => "toolcall_start toolcall_delta* toolcall_end ".repeat(arg.parse().unwrap()),
            _ => word.to_owned(),
        };
        labels.extend(parts.split_whitespace().map(str::to_owned));
    }
    labels
}
