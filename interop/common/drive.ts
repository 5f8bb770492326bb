/** `turnwire drive`, and the JSON lines that it says. */

import type { Stage } from "./scene.ts";

/** One line of `drive --json`; docs/driving.md has the members. */
export type Line = { event: string; [member: string]: any };

export class Drive {
	readonly lines: Line[] = [];
	readonly #child: Bun.Subprocess<"ignore", "pipe", "pipe">;
	readonly #read: Promise<unknown>;
	#wake: Array<() => void> = [];
	#stderr = "";

	/** Gives the agent these prompts, one after the other. */
	constructor(stage: Stage, turnwire: string, protocol: string, prompts: string[], agent: string[]) {
		this.#child = Bun.spawn([turnwire, "drive", protocol, "--json", ...prompts, "--", ...agent], {
			cwd: stage.project,
			// Nothing of a person's settings or keys.
			env: { PATH: Bun.env.PATH ?? "", ...stage.env },
			stdin: "ignore",
			stdout: "pipe",
			stderr: "pipe",
		});
		stage.onClose(() => this.#child.kill("SIGKILL"));
		this.#read = Promise.all([this.#listen(), this.#drain()]);
	}

	/** Waits for a line like this; one that came already counts. */
	async first(like: (line: Line) => boolean): Promise<Line> {
		for (let next = 0; ; ) {
			for (; next < this.lines.length; next++) if (like(this.lines[next]!)) return this.lines[next]!;
			const { promise, resolve } = Promise.withResolvers<void>();
			this.#wake.push(resolve);
			await promise;
		}
	}

	/** All lines of one kind. */
	all(event: string): Line[] {
		return this.lines.filter(line => line.event === event);
	}

	/** The order of the lines of these kinds. */
	order(...kinds: string[]): string[] {
		return this.lines.map(({ event }) => event).filter(event => kinds.includes(event));
	}

	/** What a message said, from its deltas alone. */
	text(message: number): string {
		return this.all("delta")
			.filter(delta => delta.message === message && delta.kind === "text")
			.map(delta => delta.text)
			.join("");
	}

	interrupt(): void {
		this.#child.kill("SIGINT");
	}

	/** Waits for the program's end; its exit code. */
	async end(): Promise<number> {
		await this.#read;
		return await this.#child.exited;
	}

	get stderr(): string {
		return this.#stderr;
	}

	async #listen(): Promise<void> {
		const decoder = new TextDecoder();
		let rest = "";
		for await (const bytes of this.#child.stdout) {
			rest += decoder.decode(bytes, { stream: true });
			const lines = rest.split("\n");
			rest = lines.pop()!;
			this.lines.push(...lines.map(line => JSON.parse(line)));
			for (const wake of this.#wake.splice(0)) wake();
		}
	}

	async #drain(): Promise<void> {
		const decoder = new TextDecoder();
		for await (const bytes of this.#child.stderr) this.#stderr += decoder.decode(bytes, { stream: true });
	}
}
