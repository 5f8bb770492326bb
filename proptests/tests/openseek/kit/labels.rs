//! Lines as words, for scenes.

use serde_json::Value;

/// The lines as words. Pieces of one kind that follow each other are one: `d*` of text, `r*` of reasoning.
pub fn labels(lines: &[Value]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for line in lines {
        let text = |name: &str| line[name].as_str().unwrap_or("-").to_owned();
        let question = |name: &str| text(name).rsplit('-').next().unwrap_or_default().to_owned();
        let label = match line["event"].as_str().unwrap() {
            "agent_step" => format!("step({})", line["step"]),
            "assistant_delta" => "d*".into(),
            "reasoning_delta" => "r*".into(),
            "assistant_message" => "message".into(),
            "reasoning_message" => "reasoning".into(),
            "stream_retry" => format!("retry({})", line["attempt"]),
            "tool_result" if text("content").starts_with("skipped: ") => {
                format!("skipped({})", text("tool_call_id"))
            }
            "tool_result" if line["is_error"] == true => {
                format!("result({},error)", text("tool_call_id"))
            }
            "tool_result" => format!("result({})", text("tool_call_id")),
            "tool_call_decode_error" => format!("undecoded({})", text("tool_call_id")),
            "approval_requested" => format!("ask({})", question("id")),
            "approval_resolved" => format!("{}({})", text("outcome"), question("id")),
            // Its words are the session's.
            "steer_applied" if text("kind") == "notice" => "applied(notice,)".into(),
            "steer_applied" => format!("applied({},{})", text("kind"), text("content")),
            "steer_dropped" => format!("dropped({})", text("content")),
            "agent_finished" => "finished".into(),
            "agent_aborted" => format!("aborted({})", text("reason")),
            "turn_failed" => "failed".into(),
            "agent_setup_failed" => "unstarted".into(),
            "goal_updated" => format!("goal({})", text("goal")),
            "goal_continue" => format!("continue({})", line["remaining"]),
            "job_changed" => format!("job({},{})", text("kind"), line["job"]["revision"]),
            "jobs_snapshot" => {
                let jobs = line["jobs"].as_array().map_or(0, Vec::len);
                format!("jobs({},{jobs})", text("request_id"))
            }
            "job_stop_result" => format!("stopped({},{})", text("request_id"), text("outcome")),
            "exit" => format!("exit({})", line["code"]),
            other => other.to_owned(),
        };
        if !(label.ends_with('*') && labels.last() == Some(&label)) {
            labels.push(label);
        }
    }
    labels
}

/// The labels that a row of a scene stands for: `answer` is a reply of text alone.
pub fn expected(row: &str) -> Vec<String> {
    let words = row.split_whitespace();
    let parts = words.flat_map(|word| match word {
        "answer" => vec!["d*", "message", "usage"],
        _ => vec![word],
    });
    parts.map(str::to_owned).collect()
}
