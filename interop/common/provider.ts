/**
 * A model provider on the loopback: OpenAI's chat completions and Anthropic's messages, streamed, with a script in
 * place of a model. Each request takes the next reply of the script, so a scene says beforehand what the model will
 * do, and can look afterwards at what it was asked. It lives in the process of the check and ends with it.
 */

import { anthropic } from "./anthropic.ts";
import { openai } from "./openai.ts";

/** One message of a request, as far as scenes read it. */
export interface Asked {
	role: string;
	content: string;
	/** The data URLs of its pictures. */
	pictures: string[];
	/** Whether this is the result of a tool that failed, where the dialect says that. */
	failed?: boolean;
}

/** What the agent asked: the messages flattened to text, the names of the tools it offered. */
export interface Request {
	/** From 0. */
	number: number;
	model: string;
	messages: Asked[];
	tools: string[];
	/** Resolves when the agent gave up on this request before it was over. */
	gone: Promise<void>;
}

/** Writes one streamed answer. */
export interface Writer {
	text(piece: string): void;
	thinking(piece: string): void;
	/** A call, with its arguments in pieces of JSON. */
	call(id: string, name: string, pieces: string[]): void;
	/** The end: for the calls if there were any. */
	finish(): void;
}

/** What an answer says of itself. */
export interface Answer {
	/** The number of its request, from 0. */
	number: number;
	model: string;
	/** Tokens. */
	input: number;
	output: number;
}

/** How requests and answers are written. */
export interface Dialect {
	serves(path: string): boolean;
	read(body: unknown): Pick<Request, "messages" | "tools">;
	refusal(status: number, message: string): object;
	/** An answer that isn't streamed. */
	whole(text: string, answer: Answer): object;
	write(send: (text: string) => void, answer: Answer): Writer;
}

export type Reply =
	| { kind: "stream"; play: (out: Writer, request: Request) => Promise<void> }
	| { kind: "refuse"; status: number; message: string };

/** The model says these pieces, one chunk each. */
export function say(...pieces: string[]): Reply {
	return {
		kind: "stream",
		play: async out => {
			for (const content of pieces) out.text(content);
			out.finish();
		},
	};
}

/** The model says `before`, then nothing until `gate`, then `after`. */
export function sayHeld(before: string, gate: Promise<unknown>, after: string): Reply {
	return {
		kind: "stream",
		play: async (out, request) => {
			out.text(before);
			await Promise.race([gate, request.gone]);
			out.text(after);
			out.finish();
		},
	};
}

/** The model thinks, then speaks. */
export function think(thought: string, ...pieces: string[]): Reply {
	return {
		kind: "stream",
		play: async out => {
			out.thinking(thought);
			for (const content of pieces) out.text(content);
			out.finish();
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
		play: async (out, request) => {
			if (text) out.text(text);
			for (const [index, { name, arguments: args }] of calls.entries()) {
				const json = JSON.stringify(args);
				const half = json.length >> 1;
				out.call(`call_${request.number}_${index}`, name, [json.slice(0, half), json.slice(half)]);
			}
			out.finish();
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
		return `${this.origin}/v1`;
	}

	/** The same for programs that append the version themselves. */
	get origin(): string {
		return `http://127.0.0.1:${this.#server.port}`;
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
		const { pathname } = new URL(http.url);
		if (http.method === "HEAD") return new Response();
		if (http.method !== "POST") return Response.json({ object: "list", data: [{ id: MODEL, object: "model" }] });
		if (pathname.endsWith("/count_tokens")) return Response.json({ input_tokens: USED.input });
		const dialect = DIALECTS.find(({ serves }) => serves(pathname));
		if (!dialect) return Response.json({ error: { message: `nobody is at ${pathname}` } }, { status: 404 });
		const gone = Promise.withResolvers<void>();
		http.signal.addEventListener("abort", () => gone.resolve());
		const body = (await http.json()) as { model?: string; stream?: boolean };
		// No session asks without a stream; agents do beside it, to see whether a model is there. It is.
		if (!body.stream) return Response.json(dialect.whole("Yes.", { number: 0, model: body.model ?? MODEL, ...USED }));
		const number = this.requests.length;
		const model = body.model ?? MODEL;
		const request: Request = { ...dialect.read(body), number, model, gone: gone.promise };
		this.requests.push(request);
		const reply = this.#script.shift();
		for (const wake of this.#arrived.splice(0)) wake();
		if (!reply) this.unexpected.push(request);
		if (!reply || reply.kind === "refuse") {
			const { status, message } = reply ?? { status: 400, message: "nothing is scripted for this request" };
			return Response.json(dialect.refusal(status, message), { status });
		}
		const answer = { number, model, ...USED };
		return new Response(stream(dialect, reply, request, answer), { headers: { "content-type": "text/event-stream" } });
	}
}

const DIALECTS = [openai, anthropic];
/** The tokens that every answer says it took. */
const USED = { input: 11, output: 7 };

function stream(
	dialect: Dialect,
	reply: Extract<Reply, { kind: "stream" }>,
	request: Request,
	answer: Answer,
): ReadableStream<Uint8Array> {
	const encoder = new TextEncoder();
	return new ReadableStream({
		async start(controller) {
			let open = true;
			const send = (text: string) => {
				// A stream that the agent dropped takes no more; that is the scene's business, not an error.
				if (!open) return;
				try {
					controller.enqueue(encoder.encode(text));
				} catch {
					open = false;
				}
			};
			await reply.play(dialect.write(send, answer), request);
			try {
				controller.close();
			} catch {
				// Dropped meanwhile.
			}
		},
	});
}
