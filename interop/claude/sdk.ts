/** The SDKs as hosts: one is started with a plan, and says what its user sees. */

import { join } from "node:path";
import type { Stage } from "../common/scene.ts";
import { type Agent, executable } from "./agents.ts";
import type { Block, Event, Message, Plan, Result } from "./plan.ts";

export type Language = "python" | "typescript";

const here = import.meta.dir;
/** Where `run.ts` puts the host that node can run. */
export const COMPILED = join(here, "node_modules/.host.mjs");

const programs: Record<Language, string[]> = {
	python: [join(here, "venv/bin/python"), join(here, "host.py")],
	typescript: ["node", COMPILED],
};

/** What the user of an SDK saw. Steps count from 0. */
export class Seen {
	constructor(readonly events: Event[]) {}

	all<K extends Event["event"]>(event: K, step?: number): Array<Extract<Event, { event: K }>> {
		const like = (one: Event): one is Extract<Event, { event: K }> => one.event === event && (step === undefined || one.step === step);
		return this.events.filter(like);
	}

	messages<T extends Message["type"]>(type: T, step?: number): Array<Extract<Message, { type: T }>> {
		const like = (one: Message): one is Extract<Message, { type: T }> => one.type === type;
		return this.all("message", step).map(({ message }) => message).filter(like);
	}

	/** The result of a step, which has exactly one. */
	result(step = 0): Result {
		const results = this.messages("result", step);
		if (results.length !== 1) throw new Error(`step ${step} has ${results.length} results`);
		return results[0]!;
	}

	blocks<T extends Block["type"]>(of: "assistant" | "user", type: T, step?: number): Array<Extract<Block, { type: T }>> {
		const like = (one: Block): one is Extract<Block, { type: T }> => one.type === type;
		return this.messages(of, step).flatMap(({ blocks }) => blocks).filter(like);
	}

	/** What the model said, block by block. */
	texts(step?: number): string[] {
		return this.blocks("assistant", "text", step).map(({ text }) => text);
	}

	/** What tools gave back, as text. */
	outcomes(step?: number): Array<{ failed: boolean; text: string }> {
		return this.blocks("user", "tool_result", step).map(({ content, is_error }) => ({
			failed: is_error === true,
			text: typeof content === "string" ? content : (content ?? []).map(({ text }) => text ?? "").join(""),
		}));
	}

	/** The events that the API streamed. */
	stream(step?: number): Array<Record<string, any>> {
		return this.messages("stream_event", step).map(({ stream }) => stream);
	}

	/** In short, for a scene that failed. */
	get short(): string {
		return this.events.map(event => JSON.stringify(event).slice(0, 300)).join("\n");
	}
}

/** Has an SDK do what the plan says, with this agent. */
export async function play(stage: Stage, language: Language, agent: Agent, plan: Plan): Promise<Seen> {
	agent.prepare(stage);
	const child = Bun.spawn([...programs[language], executable(stage, agent), JSON.stringify(plan)], {
		cwd: stage.project,
		// Nothing of a person's settings or keys.
		env: { PATH: Bun.env.PATH ?? "", ...stage.env },
		stdin: "ignore",
		stdout: "pipe",
		stderr: "pipe",
	});
	stage.onClose(() => child.kill("SIGKILL"));
	const seen = new Seen([]);
	const listen = async () => {
		const decoder = new TextDecoder();
		let rest = "";
		for await (const bytes of child.stdout) {
			const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
			rest = lines.pop()!;
			for (const line of lines) {
				seen.events.push(JSON.parse(line));
				void stage.until(`what follows ${line.slice(0, 200)}`, undefined);
			}
		}
	};
	void stage.until("the host", undefined);
	const [stderr, exit] = await Promise.all([new Response(child.stderr).text(), child.exited, listen()]);
	if (exit !== 0 || seen.all("end").length !== 1) throw new Error(`the host ended with ${exit}: ${stderr.slice(-2_000)}\n${seen.short}`);
	return seen;
}
