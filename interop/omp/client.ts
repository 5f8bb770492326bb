/** The package's own client, unmodified, and what a scene sees through it. */

import { RpcClient, type RpcAgentProcess, type RpcClientOptions } from "@oh-my-pi/pi-coding-agent/modes/rpc/rpc-client";
import { RpcClient as NextClient } from "omp-18.3.4/modes/rpc/rpc-client";
import type { Agent, Needs } from "./agents.ts";
import type { Stage } from "../common/scene.ts";

/** A frame of the wire, read as it comes. */
export type Frame = Record<string, any>;

export interface ClientOptions extends Needs, Pick<RpcClientOptions, "customTools"> {
	/** Speak over this transport instead of the client's own. */
	wire?: Wire;
}

/** The client of the release before omp told how a prompt ended, and the one of the newest release. */
export const clients = { "18.2.3": RpcClient, "18.3.4": NextClient };
export type Client = RpcClient | NextClient;

/** Starts the agent under a client; it is stopped when the scene is over. */
export async function start<C extends Client>(
	Client: new (options: RpcClientOptions) => C,
	stage: Stage,
	agent: Agent,
	options: ClientOptions = {},
): Promise<C> {
	const { wire, customTools, ...needs } = options;
	agent.prepare(stage);
	const client = new Client({
		command: host => agent.command(stage, host, needs),
		cwd: stage.project,
		env: stage.env,
		customTools,
		...(wire && { spawn: host => wire.spawn(stage, agent.command(stage, host, needs)) }),
	});
	stage.onClose(() => client.stop());
	await stage.until("the client's start", client.start());
	return client;
}

/** What came over the client's events, in order. */
export class Recorder {
	readonly events: Frame[] = [];
	#wake: Array<() => void> = [];

	constructor(client: Client) {
		client.onSessionEvent(event => this.add(event as Frame));
	}

	/** Adds what came in another way. */
	add(event: Frame): void {
		this.events.push(event);
		for (const wake of this.#wake.splice(0)) wake();
	}

	/** Waits for an event like this; one that came already counts. */
	async first(like: (event: Frame) => boolean): Promise<Frame> {
		for (let next = 0; ; ) {
			for (; next < this.events.length; next++) if (like(this.events[next]!)) return this.events[next]!;
			const { promise, resolve } = Promise.withResolvers<void>();
			this.#wake.push(resolve);
			await promise;
		}
	}

	/** The text that was streamed, from the deltas alone. */
	get text(): string {
		return deltas(this.events);
	}

	/** The order of the events: runs of updates as one, messages with their role. */
	get order(): string[] {
		return order(this.events);
	}
}

export const deltas = (events: Frame[]): string =>
	events
		.filter(event => event.type === "message_update" && event.assistantMessageEvent.type === "text_delta")
		.map(event => event.assistantMessageEvent.delta)
		.join("");

export function order(events: Frame[]): string[] {
	const names = events.filter(event => lifecycle.has(event.type)).map(event => {
		const role = event.message?.role;
		return /^message_(start|end)$/.test(event.type) ? `${event.type} ${role}` : event.type;
	});
	return names.filter((name, index) => name !== names[index - 1] || !name.endsWith("update"));
}

/** The events whose order the protocol fixes. */
const lifecycle = new Set([
	"agent_start",
	"agent_end",
	"turn_start",
	"turn_end",
	"message_start",
	"message_update",
	"message_end",
	"tool_execution_start",
	"tool_execution_update",
	"tool_execution_end",
]);

/** Text of a message, whose content is a string or blocks. */
export function textOf(message: Frame): string {
	if (typeof message.content === "string") return message.content;
	return message.content.map((block: Frame) => (block.type === "text" ? block.text : "")).join("");
}

/**
 * A transport for the client that a scene can listen and write to. The protocol has dialogs and addresses of the
 * host's, for which the client has no methods; its `spawn` option is the way to them.
 */
export class Wire {
	#process?: Bun.Subprocess<"pipe", "pipe", "pipe">;
	#frames: Frame[] = [];
	#wake: Array<() => void> = [];
	#stderr = "";

	constructor(readonly mode: "rpc" | "rpc-ui" = "rpc") {}

	spawn(stage: Stage, command: string[]): RpcAgentProcess {
		const argv = command.map((arg, at) => (command[at - 1] === "--mode" ? this.mode : arg));
		const child = Bun.spawn(argv, {
			cwd: stage.project,
			env: { ...Bun.env, ...stage.env },
			stdin: "pipe",
			stdout: "pipe",
			stderr: "pipe",
		});
		this.#process = child;
		const [forClient, forScene] = child.stdout.tee();
		void this.#listen(forScene);
		void this.#drain(child.stderr);
		return {
			stdin: { write: data => this.#write(data) },
			stdout: forClient,
			peekStderr: () => this.#stderr,
			kill: signal => child.kill(typeof signal === "number" ? signal : "SIGTERM"),
			exited: child.exited,
		};
	}

	/** Writes a frame of the scene's own. */
	send(frame: object): void {
		this.#write(`${JSON.stringify(frame)}\n`);
	}

	/** Waits for a frame like this; one that came already counts. */
	async first(like: (frame: Frame) => boolean): Promise<Frame> {
		for (let next = 0; ; ) {
			for (; next < this.#frames.length; next++) if (like(this.#frames[next]!)) return this.#frames[next]!;
			const { promise, resolve } = Promise.withResolvers<void>();
			this.#wake.push(resolve);
			await promise;
		}
	}

	/** Sends a command of the scene's own and waits for its response. */
	async ask(command: { id: string; type: string; [key: string]: unknown }): Promise<Frame> {
		this.send(command);
		return await this.first(frame => frame.type === "response" && frame.id === command.id);
	}

	/** Closes the agent's input and waits for its exit code. */
	async leave(): Promise<number> {
		this.#process!.stdin.end();
		return await this.#process!.exited;
	}

	#write(data: string | Uint8Array): void {
		this.#process!.stdin.write(data);
		this.#process!.stdin.flush();
	}

	async #listen(stdout: ReadableStream<Uint8Array>): Promise<void> {
		const decoder = new TextDecoder();
		let rest = "";
		for await (const bytes of stdout) {
			rest += decoder.decode(bytes, { stream: true });
			const lines = rest.split("\n");
			rest = lines.pop()!;
			for (const line of lines) if (line.trim()) this.#frames.push(JSON.parse(line));
			for (const wake of this.#wake.splice(0)) wake();
		}
	}

	async #drain(stderr: ReadableStream<Uint8Array>): Promise<void> {
		const decoder = new TextDecoder();
		for await (const bytes of stderr) this.#stderr = (this.#stderr + decoder.decode(bytes)).slice(-32_768);
	}
}
