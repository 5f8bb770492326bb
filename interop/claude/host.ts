/**
 * A host over the TypeScript SDK: does what a plan says (see plan.ts) and prints what its user sees, a JSON object a
 * line. It runs on node, as such hosts mostly do.
 *
 *     node host.js CLI PLAN
 */

import { existsSync } from "node:fs";
import { createSdkMcpServer, type Options, type PermissionResult, type Query, query, type SDKMessage, type SDKUserMessage, tool } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";
import type { Block, Event, Hook, HostTool, Input, Message, Plan, Step } from "./plan.ts";

type Bare = Event extends infer E ? (E extends Event ? Omit<E, "step"> : never) : never;
type Prompt = Extract<Step, { prompt: string }>;
type Ask = Exclude<Step, Prompt>;

let step = 0;

function say(event: Bare): void {
	process.stdout.write(`${JSON.stringify({ step, ...event })}\n`);
}

function swapped<T>(value: T, swap?: [string, string]): T {
	return swap ? JSON.parse(JSON.stringify(value).replaceAll(...swap)) : value;
}

/** The prompts of a conversation; ends when it is closed. */
class Prompts implements AsyncIterable<SDKUserMessage> {
	#waiting: SDKUserMessage[] = [];
	#wake = () => {};
	#closed = false;

	push(content: SDKUserMessage["message"]["content"]): void {
		this.#waiting.push({ type: "user", message: { role: "user", content }, parent_tool_use_id: null, session_id: "" });
		this.#wake();
	}

	close(): void {
		this.#closed = true;
		this.#wake();
	}

	async *[Symbol.asyncIterator](): AsyncGenerator<SDKUserMessage> {
		for (;;) {
			const next = this.#waiting.shift();
			if (next) yield next;
			else if (this.#closed) return;
			else await new Promise<void>(wake => (this.#wake = wake));
		}
	}
}

class Host {
	#permissions = 0;
	#firstPrompt?: string;

	constructor(
		readonly cli: string,
		readonly plan: Plan,
	) {}

	options(): Options {
		const wanted = this.plan.options ?? {};
		const options: Options = {
			pathToClaudeCodeExecutable: this.cli,
			cwd: process.cwd(),
			stderr: text => void process.stderr.write(text),
			includePartialMessages: wanted.partial,
			maxTurns: wanted.max_turns,
			permissionMode: wanted.permission_mode as Options["permissionMode"],
			model: wanted.model,
			systemPrompt: wanted.system_prompt,
			allowedTools: wanted.allowed_tools,
			disallowedTools: wanted.disallowed_tools,
			maxBudgetUsd: wanted.max_budget,
			resume: wanted.resume,
			forkSession: wanted.fork,
			continue: wanted.continue,
			enableFileCheckpointing: wanted.checkpoints,
			extraArgs: wanted.checkpoints ? { "replay-user-messages": null } : undefined,
			sessionId: wanted.session_id,
		};
		if (wanted.permission) options.canUseTool = (name, input, context) => this.#permit(name, input, context);
		for (const hook of wanted.hooks ?? []) {
			options.hooks ??= {};
			const all = options.hooks as Record<string, object[]>;
			(all[hook.event] ??= []).push({ matcher: hook.matcher, hooks: [hookOf(hook)] });
		}
		if (wanted.tools) options.mcpServers = { house: createSdkMcpServer({ name: "house", tools: wanted.tools.map(houseTool) }) };
		for (const { name, command, args } of wanted.servers ?? []) {
			options.mcpServers ??= {};
			options.mcpServers[name] = { type: "stdio", command, args };
		}
		return options;
	}

	async #permit(name: string, input: Input, context: { toolUseID: string; suggestions?: unknown[]; signal: AbortSignal }): Promise<PermissionResult> {
		const rules = this.plan.options!.permission!;
		const rule = rules[Math.min(this.#permissions++, rules.length - 1)]!;
		say({ event: "permission", tool: name, input, id: context.toolUseID, suggestions: context.suggestions ?? [] });
		if ("deny" in rule) return { behavior: "deny", message: rule.deny, interrupt: rule.interrupt };
		if ("fail" in rule) throw new Error(rule.fail);
		if ("wait" in rule) {
			await new Promise<void>(resolve => context.signal.addEventListener("abort", () => resolve()));
			say({ event: "withdrawn" });
			return { behavior: "deny", message: "too late" };
		}
		const updates = (rule.updates === "suggested" ? context.suggestions : rule.updates) as PermissionUpdates;
		return { behavior: "allow", updatedInput: rule.swap && swapped(input, rule.swap), updatedPermissions: updates };
	}

	async query(): Promise<void> {
		const [first] = this.plan.steps as [Prompt];
		for await (const message of query({ prompt: first.prompt, options: this.options() })) say({ event: "message", message: plain(message) });
	}

	async conversation(): Promise<void> {
		const prompts = new Prompts();
		const session = query({ prompt: prompts, options: this.options() });
		for (const [index, what] of this.plan.steps.entries()) {
			step = index;
			if ("ask" in what) await this.#ask(session, what);
			else await this.#prompt(session, prompts, what);
		}
		prompts.close();
		for await (const message of session) say({ event: "message", message: plain(message) });
	}

	async #prompt(session: Query, prompts: Prompts, what: Prompt): Promise<void> {
		prompts.push(what.picture ? withPicture(what.prompt, what.picture) : what.prompt);
		for (const prompt of what.also ?? []) prompts.push(prompt);
		let results = 1 + (what.also?.length ?? 0);
		let when = what.interrupt;
		const over = new AbortController();
		const watcher = when && when !== "delta" ? this.#interruptLater(session, when, over.signal) : undefined;
		try {
			while (results > 0) {
				const { done, value: message } = await session.next();
				if (done) throw new Error("the session ended without a result");
				say({ event: "message", message: plain(message) });
				if (message.type === "user") this.#firstPrompt ??= message.uuid;
				if (when === "delta" && isTextDelta(message)) {
					when = undefined;
					await session.interrupt();
				}
				if (message.type === "result") results--;
			}
		} finally {
			over.abort();
		}
		await watcher;
	}

	/** Interrupts when it is time, or not at all if the turn is over before. */
	async #interruptLater(session: Query, when: "asked" | { file: string }, over: AbortSignal): Promise<void> {
		const due = () => (when === "asked" ? this.#permissions > 0 : existsSync(when.file));
		while (!due() && !over.aborted) await new Promise(resolve => setTimeout(resolve, 50));
		if (!over.aborted) await session.interrupt();
	}

	async #ask(session: Query, what: Ask): Promise<void> {
		try {
			say({ event: "answer", ask: what.ask, value: await this.#answer(session, what) });
		} catch (error) {
			say({ event: "answer", ask: what.ask, error: textOf(error) });
		}
	}

	async #answer(session: Query, what: Ask): Promise<unknown> {
		switch (what.ask) {
			case "set_permission_mode":
				return await session.setPermissionMode(what.value as Parameters<Query["setPermissionMode"]>[0]);
			case "set_model":
				return await session.setModel(what.value);
			case "rewind":
				return await session.rewindFiles(this.#firstPrompt ?? "no prompt was repeated");
			case "mcp_status":
				return { mcpServers: await session.mcpServerStatus() };
			case "server_info":
				return await session.initializationResult();
			case "context_usage":
				return await session.getContextUsage();
			case "interrupt":
				return await session.interrupt();
		}
	}
}

type PermissionUpdates = Extract<PermissionResult, { behavior: "allow" }>["updatedPermissions"];

function withPicture(text: string, picture: NonNullable<Prompt["picture"]>): SDKUserMessage["message"]["content"] {
	const source = { type: "base64", ...picture } as { type: "base64"; media_type: "image/png"; data: string };
	return [
		{ type: "text", text },
		{ type: "image", source },
	];
}

function hookOf(spec: Hook) {
	let calls = 0;
	return async (input: Input, id: string | undefined): Promise<object> => {
		say({ event: "hook", hook: spec.event, input, id: id ?? null });
		const mine = spec.only === undefined || spec.only === calls;
		calls++;
		const answer: Record<string, any> = mine ? { ...spec.answer } : {};
		if (spec.swap && mine)
			answer.hookSpecificOutput = { ...answer.hookSpecificOutput, updatedInput: swapped(input.tool_input, spec.swap) };
		return answer;
	};
}

function houseTool({ name, does }: HostTool) {
	return tool(name, `The tool ${name} of the house`, { a: z.number(), b: z.number() }, async input => {
		say({ event: "tool", tool: name, input });
		if (does === "throw") throw new Error("the tool threw this");
		if (does === "fail") return { content: [{ type: "text", text: "the tool failed so" }], isError: true };
		return { content: [{ type: "text", text: `sum ${input.a + input.b}` }] };
	});
}

function isTextDelta(message: SDKMessage): boolean {
	return message.type === "stream_event" && message.event.type === "content_block_delta" && message.event.delta.type === "text_delta";
}

function plain(message: SDKMessage): Message {
	switch (message.type) {
		case "assistant": {
			const { model, content, id } = message.message;
			return { type: "assistant", model, blocks: content as Block[], error: message.error ?? null, id };
		}
		case "user": {
			const { content } = message.message;
			return { type: "user", blocks: typeof content === "string" ? [{ type: "text", text: content }] : (content as Block[]), uuid: message.uuid ?? null };
		}
		case "system":
			return { type: "system", subtype: message.subtype, data: message };
		case "stream_event":
			return { type: "stream_event", stream: message.event };
		case "result": {
			// What a failed result has and a good one hasn't, and the other way round.
			const { result = null, errors = null, ...rest } = message as typeof message & { result?: string; errors?: string[] };
			return { ...rest, result, errors, model_usage: rest.modelUsage } as unknown as Message;
		}
		default:
			return { type: "other", name: message.type };
	}
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const [cli, plan] = process.argv.slice(2) as [string, string];
const host = new Host(cli, JSON.parse(plan));
try {
	await (host.plan.style === "query" ? host.query() : host.conversation());
} catch (error) {
	say({ event: "failed", kind: error instanceof Error ? error.name : "unknown", text: textOf(error) });
}
say({ event: "end" });
