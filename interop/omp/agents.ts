/** The agents that are checked: the real omp, as the control, and Turnwire speaking its protocol. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Call, MODEL } from "./provider.ts";
import type { Stage } from "./scene.ts";

/** What a scene needs of an agent. */
export interface Needs {
	/** Which tools the model gets. */
	tools?: "none" | "shell" | "read";
	/** Whether calls are asked about; otherwise all are allowed. */
	ask?: boolean;
}

export interface Agent {
	name: string;
	/** What to start, with the host's own arguments (`--mode rpc …`) and what the scene needs. */
	command(stage: Stage, host: string[], needs: Needs): string[];
	/** Puts down what the agent reads at its start. */
	prepare(stage: Stage): void;
	/** A call of its tool that runs a command. */
	shell(command: string): Call;
	/** A call of its tool that reads a file or an address. */
	read(path: string): Call;
}

const here = import.meta.dir;
const PROVIDER = "interop";

/** The program of the package. */
export const omp: Agent = {
	name: "omp",
	command(_stage, host, { tools = "none", ask = false }) {
		const enabled = { none: ["--no-tools"], shell: ["--tools", "bash"], read: ["--tools", "read"] }[tools];
		return [
			// The bun that is installed beside the package runs this program too.
			...[process.execPath, join(here, "node_modules/@oh-my-pi/pi-coding-agent/dist/cli.js"), ...host],
			...["--model", `${PROVIDER}/${MODEL}`, "--no-session", "--no-title"],
			...["--system-prompt", "You are under test.", "--no-skills", "--no-rules", "--no-extensions", "--no-lsp"],
			...enabled,
			...(ask ? ["--approval-mode", "always-ask"] : ["--auto-approve"]),
		];
	},
	prepare(stage) {
		const folder = join(stage.home, ".omp/agent");
		mkdirSync(folder, { recursive: true });
		const models = {
			providers: {
				[PROVIDER]: {
					baseUrl: stage.provider.url,
					api: "openai-completions",
					apiKey: "none",
					models: [{ id: MODEL, name: "Scripted", contextWindow: 1_000_000, maxTokens: 100_000 }],
				},
			},
		};
		// JSON is YAML.
		writeFileSync(join(folder, "models.yml"), JSON.stringify(models));
	},
	shell: command => ({ name: "bash", arguments: { command } }),
	read: path => ({ name: "read", arguments: { path } }),
};

/** Turnwire as the agent, at this path, with the provider of the scene as its model. */
export function turnwire(path: string): Agent {
	return {
		name: "turnwire",
		command: (stage, host, { ask = false }) => [
			...[path, "omp", ...host, "--no-session"],
			...["--api", "openai", "--base-url", stage.provider.url, "--model", MODEL, "--trust-project"],
			...["--approval", ask ? "ask" : "auto"],
		],
		prepare: () => {},
		shell: command => ({ name: "bash", arguments: { command } }),
		read: path => ({ name: "read_file", arguments: { path } }),
	};
}

/** The same agent, with all that is said to it and by it written down. */
export function recorded(agent: Agent): Agent {
	return {
		...agent,
		command: (stage, host, needs) => [
			...[process.execPath, join(here, "tee.ts"), stage.record()],
			...agent.command(stage, host, needs),
		],
	};
}
