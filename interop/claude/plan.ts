/** What a host does, written so that it can be done with either SDK, and what it saw. `host.py` and `host.ts` read it. */

/** What a scene has its host do. */
export interface Plan {
	/** `query` is the one-shot function with a prompt that is a string; `client` a conversation that stays open. */
	style: "query" | "client";
	steps: Step[];
	options?: PlanOptions;
}

export type Step =
	/** A prompt, and everything up to its result. */
	| {
			prompt: string;
			/** Sent right behind it; each has a result of its own. */
			also?: string[];
			/** A picture beside the text. */
			picture?: { media_type: string; data: string };
			/** Interrupt once: at the first text delta, while an approval is open, or when the file is there. */
			interrupt?: "delta" | "asked" | { file: string };
	  }
	/** A request of the host's between two prompts. */
	| { ask: "set_permission_mode" | "set_model"; value: string }
	/** Sets the files back to what they were at the first prompt; needs `checkpoints`. */
	| { ask: "rewind" }
	| { ask: "mcp_status" | "server_info" | "context_usage" | "interrupt" };

export interface PlanOptions {
	/** What the permission callback answers, call by call; the last one counts on. Without any there is no callback. */
	permission?: Permission[];
	hooks?: Hook[];
	/** Tools in the host's process, on the server `house`, each with two numbers `a` and `b`. */
	tools?: HostTool[];
	/** MCP servers that the agent starts. */
	servers?: HostServer[];
	partial?: boolean;
	max_turns?: number;
	/** US dollars. */
	max_budget?: number;
	permission_mode?: string;
	model?: string;
	system_prompt?: string;
	/** Of the tools that the agent brings, only these. */
	allowed_tools?: string[];
	disallowed_tools?: string[];
	/** Goes on with this session, or with a copy of it. */
	resume?: string;
	fork?: boolean;
	/** Goes on with the last session of the folder. */
	continue?: boolean;
	/** The agent keeps what files were before each prompt, and repeats prompts so that the host learns their ids. */
	checkpoints?: boolean;
	session_id?: string;
}

export type Permission =
	/** `swap` replaces a text in the input by another. Python's SDK always names an input, TypeScript's only a new one. */
	| { allow: true; swap?: [from: string, to: string]; updates?: object[] | "suggested" }
	| { deny: string; interrupt?: boolean }
	/** The callback throws. */
	| { fail: string }
	/** The callback never answers. */
	| { wait: true };

export interface Hook {
	event: string;
	matcher?: string;
	/** What it answers; `swap` as in a permission, inside the updated input. */
	answer?: Record<string, unknown>;
	swap?: [from: string, to: string];
	/** Counts only for this call of the hook, from 0. */
	only?: number;
}

export interface HostTool {
	name: string;
	/** `sum` answers with a + b, `fail` with an error of the tool's, `throw` throws. */
	does: "sum" | "fail" | "throw";
}

export interface HostServer {
	name: string;
	command: string;
	args: string[];
}

/** What the SDK's user saw, one line of the host each. `step` is the step in which it came, from 0. */
export type Event = { step: number } & (
	| { event: "message"; message: Message }
	| { event: "permission"; tool: string; input: Input; id: string | null; suggestions: any[] }
	| { event: "withdrawn" }
	| { event: "hook"; hook: string; input: Input; id: string | null }
	| { event: "tool"; tool: string; input: Input }
	| { event: "answer"; ask: string; value?: any; error?: string }
	| { event: "failed"; kind: string; text: string }
	| { event: "end" }
);

export type Input = Record<string, any>;

export type Message =
	| { type: "assistant"; model: string; blocks: Block[]; error: string | null; id: string | null }
	| { type: "user"; blocks: Block[]; uuid: string | null }
	| { type: "system"; subtype: string; data: Record<string, any> }
	| { type: "stream_event"; stream: Record<string, any> }
	| Result
	| { type: "other"; name: string };

export interface Result {
	type: "result";
	subtype: string;
	is_error: boolean;
	result: string | null;
	errors: string[] | null;
	num_turns: number;
	session_id: string;
	stop_reason: string | null;
	terminal_reason: string | null;
	duration_ms: number;
	duration_api_ms: number;
	total_cost_usd: number | null;
	usage: Record<string, any> | null;
	model_usage: Record<string, any> | null;
	permission_denials: Array<{ tool_name: string; tool_use_id: string; tool_input: Input }> | null;
	api_error_status: number | null;
}

export type Block =
	| { type: "text"; text: string }
	| { type: "thinking"; thinking: string; signature: string }
	| { type: "tool_use"; id: string; name: string; input: Input }
	| { type: "tool_result"; tool_use_id: string; content: string | Array<{ type: string; text?: string }> | null; is_error: boolean | null };
