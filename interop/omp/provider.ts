/**
 * A model provider on the loopback: OpenAI's chat completions, streamed, with a script in place of a model.
 * Each request takes the next reply of the script, so a scene says beforehand what the model will do, and can
 * look afterwards at what it was asked. It lives in the process of the check and ends with it.
 */

/** One message of a request, as far as scenes read it. */
export interface Asked {
	role: string;
	content: string;
	/** The data URLs of its pictures. */
	pictures: string[];
}

/** What the agent asked: the messages flattened to text, the names of the tools it offered. */
export interface Request {
	messages: Asked[];
	tools: string[];
	/** Resolves when the agent gave up on this request before it was over. */
	gone: Promise<void>;
}

/** Writes one streamed answer. */
interface Writer {
	delta(delta: object): void;
	finish(reason: "stop" | "tool_calls" | "length"): void;
}

export type Reply =
	| { kind: "stream"; play: (out: Writer, request: Request) => Promise<void> }
	| { kind: "refuse"; status: number; message: string };

/** The model says these pieces, one chunk each. */
export function say(...pieces: string[]): Reply {
	return {
		kind: "stream",
		play: async out => {
			for (const content of pieces) out.delta({ content });
			out.finish("stop");
		},
	};
}

/** The model says `before`, then nothing until `gate`, then `after`. */
export function sayHeld(before: string, gate: Promise<unknown>, after: string): Reply {
	return {
		kind: "stream",
		play: async (out, request) => {
			out.delta({ content: before });
			await Promise.race([gate, request.gone]);
			out.delta({ content: after });
			out.finish("stop");
		},
	};
}

/** The model thinks, then speaks. */
export function think(thought: string, ...pieces: string[]): Reply {
	return {
		kind: "stream",
		play: async out => {
			out.delta({ reasoning_content: thought });
			for (const content of pieces) out.delta({ content });
			out.finish("stop");
		},
	};
}

export interface Call {
	name: string;
	arguments: object;
}

/** The model says `text` and calls tools; the arguments come in two pieces, as they do on the wire. */
export function call(text: string, ...calls: Call[]): Reply {
	return {
		kind: "stream",
		play: async out => {
			if (text) out.delta({ content: text });
			for (const [index, { name, arguments: args }] of calls.entries()) {
				const json = JSON.stringify(args);
				const id = `call_${name}_${index}`;
				const half = json.length >> 1;
				out.delta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] });
				for (const piece of [json.slice(0, half), json.slice(half)])
					out.delta({ tool_calls: [{ index, function: { arguments: piece } }] });
			}
			out.finish("tool_calls");
		},
	};
}

/** The provider refuses the request with this status. */
export function refuse(status: number, message: string): Reply {
	return { kind: "refuse", status, message };
}

export const MODEL = "scripted-1";

export class Provider {
	/** What was asked so far, in order. */
	readonly requests: Request[] = [];
	/** Requests that the script had no reply for; a scene with any of them has failed. */
	readonly unexpected: Request[] = [];
	#script: Reply[] = [];
	#server: ReturnType<typeof Bun.serve>;
	#arrived: Array<() => void> = [];

	constructor() {
		this.#server = Bun.serve({
			hostname: "127.0.0.1",
			port: 0,
			idleTimeout: 0,
			fetch: request => this.#answer(request),
		});
	}

	/** The base URL, without a slash at its end. */
	get url(): string {
		return `http://127.0.0.1:${this.#server.port}/v1`;
	}

	/** Adds replies to the script. */
	script(...replies: Reply[]): void {
		this.#script.push(...replies);
	}

	/** How many replies were never asked for. */
	get left(): number {
		return this.#script.length;
	}

	/** Waits for the request of this number, from 0. */
	async request(index: number): Promise<Request> {
		for (;;) {
			const request = this.requests[index];
			if (request) return request;
			const { promise, resolve } = Promise.withResolvers<void>();
			this.#arrived.push(resolve);
			await promise;
		}
	}

	stop(): void {
		void this.#server.stop(true);
	}

	async #answer(http: globalThis.Request): Promise<Response> {
		if (http.method !== "POST") return Response.json({ object: "list", data: [{ id: MODEL, object: "model" }] });
		const gone = Promise.withResolvers<void>();
		http.signal.addEventListener("abort", () => gone.resolve());
		const request: Request = { ...readRequest(await http.json()), gone: gone.promise };
		this.requests.push(request);
		const reply = this.#script.shift();
		for (const wake of this.#arrived.splice(0)) wake();
		if (!reply) this.unexpected.push(request);
		if (!reply || reply.kind === "refuse") {
			const { status, message } = reply ?? { status: 400, message: "nothing is scripted for this request" };
			return Response.json({ error: { message, type: "invalid_request_error" } }, { status });
		}
		return new Response(stream(reply, request), { headers: { "content-type": "text/event-stream" } });
	}
}

function stream(reply: Extract<Reply, { kind: "stream" }>, request: Request): ReadableStream<Uint8Array> {
	const encoder = new TextEncoder();
	const base = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: MODEL };
	return new ReadableStream({
		async start(controller) {
			let open = true;
			const event = (data: string) => {
				// A stream that the agent dropped takes no more; that is the scene's business, not an error.
				if (!open) return;
				try {
					controller.enqueue(encoder.encode(`data: ${data}\n\n`));
				} catch {
					open = false;
				}
			};
			const chunk = (choices: object[], more: object = {}) => event(JSON.stringify({ ...base, choices, ...more }));
			chunk([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]);
			await reply.play(
				{
					delta: delta => chunk([{ index: 0, delta, finish_reason: null }]),
					finish: reason => chunk([{ index: 0, delta: {}, finish_reason: reason }]),
				},
				request,
			);
			chunk([], { usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 } });
			event("[DONE]");
			try {
				controller.close();
			} catch {
				// Dropped meanwhile.
			}
		},
	});
}

function readRequest(body: unknown): Omit<Request, "gone"> {
	const { messages = [], tools = [] } = body as {
		messages?: Array<{ role: string; content?: unknown }>;
		tools?: Array<{ function?: { name?: string } }>;
	};
	return {
		messages: messages.map(({ role, content }) => ({ role, content: flat(content), pictures: pictures(content) })),
		tools: tools.map(tool => tool.function?.name ?? ""),
	};
}

/** Content is a string, or parts of which the texts count. */
function flat(content: unknown): string {
	if (typeof content === "string") return content;
	if (!Array.isArray(content)) return "";
	return content.map(part => (typeof part?.text === "string" ? part.text : "")).join("");
}

function pictures(content: unknown): string[] {
	if (!Array.isArray(content)) return [];
	return content.filter(part => part?.type === "image_url").map(part => String(part.image_url?.url));
}
