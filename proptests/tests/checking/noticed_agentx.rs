//! What the observer of agentx doesn't notice whole, and why: patterns as in [`noticed`](super::noticed).

/// Each of these changes of agentx and claude is allowed by the contract, or looks like something that is.
pub const REASONS: &[(&str, &str)] = &[
    (
        "change uuid *",
        "the id of a record is new each time, and nothing of the agent's refers to it",
    ),
    (
        "change request_id assistant *",
        "the provider's own id of a request may be any",
    ),
    (
        "change block.id|session_id *",
        "where no other line has one, nothing contradicts it",
    ),
    (
        "change duration_api_ms|duration_ms|first_content_frame_ms|time_to_request_ms|ttft_ms|ttft_stream_ms|request_sent_wall_ms|first_request_cache_read_input_tokens|first_request_input_tokens|total_cost_usd *",
        "what was counted and measured only the agent knows",
    ),
    (
        "change attempt|max_retries|retry_delay_ms|error_status|api_error_status|is_api_error_message|aborted *",
        "what became of a request to the provider only the agent knows",
    ),
    (
        "change num_turns|queued_turn_count|result_index|safety_stops result *",
        "steps and prompts that a filter or a refusal hides are counted too",
    ),
    (
        "change is_error result success",
        "a provider's failure is a success that is an error in claude",
    ),
    (
        "change stop_reason result *",
        "the provider's own word may be any",
    ),
    (
        "change analytics_disabled|per_turn_effort_active|product_feedback_disabled|sandbox_enabled|served_by_anthropic|ultrathink_available|ultrathink_typed_raises system init",
        "how the agent was set up only it knows",
    ),
    (
        "change state|status system *",
        "a state that nobody knows is passed over, as a type is",
    ),
    (
        "change sdk_host_only system *",
        "for whom a record is only the agent knows",
    ),
    (
        "change isSynthetic user *",
        "who made a record only the agent knows",
    ),
    (
        "change tool_use_id control_request hook_callback",
        "a hook may be told of a call that its host hasn't seen",
    ),
    (
        "shorten agents|capabilities|mcp_servers|plugins|skills|slash_commands|terminal_slash_commands|tools system init",
        "what there is only the agent knows",
    ),
    (
        "shorten begun_message_ids|user_message_uuids|tool_result_meta *",
        "which prompts and calls a record is about may be left out",
    ),
    (
        "shorten permission_denials result *",
        "what a hook or rule denied no other line says",
    ),
    (
        "drop|swap assistant text",
        "a reply needn't have text, and what a result says isn't held against it; its blocks may stand around the results of its calls",
    ),
    (
        "drop|swap assistant tool_use",
        "a call may be told while others run, and a turn may end without it",
    ),
    (
        "double|drop|swap user",
        "prompts may be repeated, or not, as they count",
    ),
    (
        "double|drop|swap user text",
        "prompts may be repeated, or not, as they count",
    ),
    (
        "swap user tool_result",
        "calls run side by side with the rest of their reply",
    ),
    (
        "drop control_response success",
        "an agent that hasn't ended may still answer",
    ),
    (
        "swap control_response *",
        "no order binds answers to records, but for an interrupt's",
    ),
    (
        "swap control_request *",
        "questions are asked at once, in any order",
    ),
    (
        "drop result *",
        "a stream may end before it: only what follows tells that it was missing",
    ),
    (
        "swap result *",
        "lists and states that changed may come before it or behind it",
    ),
    (
        "drop stream_event content_block_delta|message_delta|response.output_text.delta|message_stop",
        "a piece may be empty, and a reply that breaks off leaves the rest unsaid",
    ),
    (
        "swap stream_event message_stop|response.output_text.delta",
        "whole records come between the pieces, where the agent has them",
    ),
    (
        "drop|swap system api_retry|background_tasks_changed|status",
        "no other line says that this one comes, or when",
    ),
    (
        "drop|swap system init",
        "a stream may end before a turn has begun; in claude prompts may be told before it",
    ),
    (
        "drop|swap system session_state_changed",
        "claude says states only to hosts that read them, and a stream may end before one",
    ),
    (
        "swap command_lifecycle",
        "what becomes of a prompt is told beside its turn",
    ),
];
