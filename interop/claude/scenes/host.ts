/** The host of a scene, and what scenes look at. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Asked } from "../../common/provider.ts";
import type { Scene, Stage } from "../../common/scene.ts";
import type { Agent } from "../agents.ts";
import type { Plan, PlanOptions, Result } from "../plan.ts";
import { type Language, play, type Seen } from "../sdk.ts";

export const scene = (name: string, play: (stage: Stage) => Promise<void>): Scene => ({ name, play });

/** An SDK with an agent. */
export class Host {
	constructor(
		readonly language: Language,
		readonly agent: Agent,
	) {}

	/** Does what the plan says, whatever the SDK throws. */
	play(stage: Stage, plan: Plan): Promise<Seen> {
		return play(stage, this.language, this.agent, plan);
	}

	/** A prompt that is a string, for the one-shot function. */
	query(stage: Stage, prompt: string, options?: PlanOptions): Promise<Seen> {
		return this.#good(stage, { style: "query", steps: [{ prompt }], options });
	}

	/** A conversation. */
	client(stage: Stage, steps: Plan["steps"], options?: PlanOptions): Promise<Seen> {
		return this.#good(stage, { style: "client", steps, options });
	}

	async #good(stage: Stage, plan: Plan): Promise<Seen> {
		const seen = await this.play(stage, plan);
		assert.deepEqual(seen.all("failed"), [], "the SDK threw nothing");
		return seen;
	}
}

/** The result of a step that ended well. */
export function good(seen: Seen, step = 0): Result {
	const result = seen.result(step);
	assert.deepEqual([result.subtype, result.is_error], ["success", false], `step ${step}: ${result.result ?? result.errors?.join("; ")}`);
	return result;
}

/** A step that was interrupted says so in its result. */
export function interrupted(seen: Seen, step: number): void {
	const result = seen.result(step);
	assert.deepEqual([result.subtype, result.is_error], ["error_during_execution", true]);
	assert.ok(Array.isArray(result.errors));
}

/** What callbacks were called, in order. */
export const order = (seen: Seen): string[] =>
	seen.events.flatMap(event => {
		if (event.event === "hook") return [`hook ${event.hook}`];
		return event.event === "permission" || event.event === "tool" ? [event.event] : [];
	});

/** The texts of a request's messages of one role. */
export const asked = (stage: Stage, request: number, role: string): string[] =>
	stage.provider.requests[request]!.messages.filter(message => message.role === role).map(({ content }) => content);

/** All that a request says; what hooks add has no fixed place. */
export const said = (stage: Stage, request: number): string =>
	stage.provider.requests[request]!.messages.map(({ content }) => content).join("\n");

/** The results of tools that the model was told last. */
export function results(stage: Stage, request: number): Asked[] {
	return stage.provider.requests[request]!.messages.filter(({ role }) => role === "tool");
}

export const read = (stage: Stage, name: string): string => readFileSync(join(stage.project, name), "utf8");

export const exists = (stage: Stage, name: string): boolean => existsSync(join(stage.project, name));
