/** Anthropic's messages. */

import type { Asked, Dialect } from "./provider.ts";

interface Block {
	type?: string;
	text?: unknown;
	content?: Content;
	is_error?: boolean;
	source?: { media_type?: string; data?: string };
}
type Content = string | Block[] | null | undefined;

interface Body {
	system?: Content;
	messages?: Array<{ role: string; content?: Content }>;
	tools?: Array<{ name?: string }>;
}

export const anthropic: Dialect = {
	serves: path => path.endsWith("/messages"),

	/** A result of a tool is a message of its own here, as the other dialect has it. */
	read(body) {
		const { system, messages = [], tools = [] } = body as Body;
		return {
			messages: [
				...(system ? [{ role: "system", content: flat(system), pictures: [] }] : []),
				...messages.flatMap(({ role, content }) => split(role, content)),
			],
			tools: tools.map(({ name }) => name ?? ""),
		};
	},

	refusal: (status, message) => ({ type: "error", error: { type: KINDS[status] ?? "api_error", message } }),

	whole: (text, { number, model, input, output }) => ({
		...{ id: `msg_${number}`, type: "message", role: "assistant", model, content: [{ type: "text", text }] },
		...{ stop_reason: "end_turn", stop_sequence: null, usage: { input_tokens: input, output_tokens: output } },
	}),

	write(send, { number, model, input, output }) {
		const event = (type: string, members: object = {}) =>
			send(`event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`);
		let index = -1;
		let open: "text" | "thinking" | "tool_use" | undefined;
		let calls = 0;
		const delta = (delta: object) => event("content_block_delta", { index, delta });
		const close = () => {
			if (!open) return;
			if (open === "thinking") delta({ type: "signature_delta", signature: "c2lnbmVk" });
			event("content_block_stop", { index });
			open = undefined;
		};
		/** Goes on with the open block if it is of this kind, and not a call: each call is a block of its own. */
		const into = (kind: NonNullable<typeof open>, empty: object) => {
			if (open === kind && kind !== "tool_use") return;
			close();
			open = kind;
			event("content_block_start", { index: ++index, content_block: { type: kind, ...empty } });
		};

		event("message_start", {
			message: {
				...{ id: `msg_${number}`, type: "message", role: "assistant", model, content: [], stop_reason: null, stop_sequence: null },
				usage: { input_tokens: input, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 1 },
			},
		});
		event("ping");
		return {
			text(text) {
				into("text", { text: "" });
				delta({ type: "text_delta", text });
			},
			thinking(thinking) {
				into("thinking", { thinking: "", signature: "" });
				delta({ type: "thinking_delta", thinking });
			},
			call(id, name, pieces) {
				calls++;
				into("tool_use", { id, name, input: {} });
				for (const partial_json of pieces) delta({ type: "input_json_delta", partial_json });
			},
			finish() {
				close();
				const stop_reason = calls > 0 ? "tool_use" : "end_turn";
				event("message_delta", { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: output } });
				event("message_stop");
			},
		};
	},
};

const KINDS: { [status: number]: string } = {
	400: "invalid_request_error",
	401: "authentication_error",
	429: "rate_limit_error",
	500: "api_error",
	529: "overloaded_error",
};

/** One message in the shape of a request's: each result of a tool becomes a message of its own. */
function split(role: string, content: Content): Asked[] {
	if (!Array.isArray(content)) return [{ role, content: flat(content), pictures: [] }];
	const results = content.filter(({ type }) => type === "tool_result");
	const rest = content.filter(({ type }) => type !== "tool_result");
	return [
		...results.map(result => ({
			role: "tool",
			content: flat(result.content),
			pictures: pictures(result.content),
			failed: result.is_error === true,
		})),
		...(rest.length > 0 ? [{ role, content: flat(rest), pictures: pictures(rest) }] : []),
	];
}

/** Content is a string, or blocks of which the texts count. */
function flat(content: Content): string {
	if (typeof content === "string") return content;
	return (content ?? []).map(({ text }) => (typeof text === "string" ? text : "")).join("");
}

function pictures(content: Content): string[] {
	if (!Array.isArray(content)) return [];
	return content
		.filter(({ type }) => type === "image")
		.map(({ source }) => `data:${source?.media_type};base64,${source?.data}`);
}
