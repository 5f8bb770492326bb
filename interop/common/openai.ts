/** OpenAI's chat completions. */

import type { Asked, Dialect } from "./provider.ts";

type Content = string | Array<{ type?: string; text?: unknown; image_url?: { url?: string } }> | null | undefined;

interface Body {
	messages?: Array<{ role: string; content?: Content }>;
	tools?: Array<{ function?: { name?: string } }>;
}

export const openai: Dialect = {
	serves: path => path.endsWith("/chat/completions"),

	read(body) {
		const { messages = [], tools = [] } = body as Body;
		return {
			messages: messages.map(({ role, content }): Asked => ({ role, content: flat(content), pictures: pictures(content) })),
			tools: tools.map(tool => tool.function?.name ?? ""),
		};
	},

	refusal: (_, message) => ({ error: { message, type: "invalid_request_error" } }),

	whole: (content, { number, model, input, output }) => ({
		...{ id: `chatcmpl-${number}`, object: "chat.completion", created: 1, model },
		choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
		usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
	}),

	write(send, { number, model, input, output }) {
		const base = { id: `chatcmpl-${number}`, object: "chat.completion.chunk", created: 1, model };
		const chunk = (choices: object[], more: object = {}) => send(`data: ${JSON.stringify({ ...base, choices, ...more })}\n\n`);
		const delta = (delta: object) => chunk([{ index: 0, delta, finish_reason: null }]);
		let calls = 0;

		delta({ role: "assistant", content: "" });
		return {
			text: content => delta({ content }),
			thinking: reasoning_content => delta({ reasoning_content }),
			call(id, name, pieces) {
				const index = calls++;
				delta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] });
				for (const piece of pieces) delta({ tool_calls: [{ index, function: { arguments: piece } }] });
			},
			finish() {
				chunk([{ index: 0, delta: {}, finish_reason: calls > 0 ? "tool_calls" : "stop" }]);
				chunk([], { usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output } });
				send("data: [DONE]\n\n");
			},
		};
	},
};

/** Content is a string, or parts of which the texts count. */
function flat(content: Content): string {
	if (typeof content === "string") return content;
	if (!Array.isArray(content)) return "";
	return content.map(part => (typeof part?.text === "string" ? part.text : "")).join("");
}

function pictures(content: Content): string[] {
	if (!Array.isArray(content)) return [];
	return content.filter(part => part?.type === "image_url").map(part => String(part.image_url?.url));
}
