/** The agents that are checked: the real omp, as the control, and Turnwire speaking its protocol. */

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Call, MODEL } from "../common/provider.ts";
import type { Stage } from "../common/scene.ts";

/** What a scene needs of an agent. */
export interface Needs {
	/** Which tools the model gets. */
	tools?: "none" | "shell" | "read";
	/** Whether calls are asked about; otherwise all are allowed. */
	ask?: boolean;
	/** Whether the session is kept in the stage's folder for sessions, and gone on with; otherwise it isn't kept. */
	keep?: "new" | "continue";
}

export interface Agent {
	name: string;
	/** What to start, with the host's own arguments (`--mode rpc …`) and what the scene needs. */
	command(stage: Stage, host: string[], needs: Needs): string[];
	/** Puts down what the agent reads at its start. */
	prepare(stage: Stage): void;
	/** Whether prompts that begin with a slash are commands of its own. */
	slashCommands: boolean;
	/** Whether it can begin another session without being started again. */
	newSessions: boolean;
	/** Whether it takes back an answer that goes round in circles, and tries again. */
	breaksLoops: boolean;
	/** How often it asks the model for one summary of the history. */
	summaryRequests: number;
	/** A call of its tool that runs a command. */
	shell(command: string): Call;
	/** A call of its tool that reads a file or an address. */
	read(path: string): Call;
}

const here = import.meta.dir;
const PROVIDER = "interop";

/** omp's command line. What is a program of its own in our place takes the same. */
function args(stage: Stage, { tools = "none", ask = false, keep }: Needs): string[] {
	const enabled = { none: ["--no-tools"], shell: ["--tools", "bash"], read: ["--tools", "read"] }[tools];
	return [
		...["--model", `${PROVIDER}/${MODEL}`, "--no-title"],
		...(keep ? ["--session-dir", stage.sessions] : ["--no-session"]),
		...(keep === "continue" ? ["--continue"] : []),
		...["--system-prompt", "You are under test.", "--no-skills", "--no-rules", "--no-extensions", "--no-lsp"],
		...enabled,
		...(ask ? ["--approval-mode", "always-ask"] : ["--auto-approve"]),
	];
}

function write(path: string, text: string): void {
	mkdirSync(dirname(path), { recursive: true });
	writeFileSync(path, text);
}

/** The program of the package; the bun that is installed beside it runs it, as it runs this one. */
export const omp: Agent = {
	name: "omp",
	slashCommands: true,
	newSessions: true,
	breaksLoops: true,
	summaryRequests: 2,
	command: (stage, host, needs) => [
		...[process.execPath, join(here, "node_modules/@oh-my-pi/pi-coding-agent/dist/cli.js")],
		...[...host, ...args(stage, needs)],
	],
	prepare(stage) {
		const size = { contextWindow: 1_000_000, maxTokens: 100_000 };
		const models = [{ id: MODEL, name: "Scripted", input: ["text", "image"], ...size }];
		const provider = { baseUrl: stage.provider.url, api: "openai-completions", apiKey: "none", models };
		// JSON is YAML.
		write(join(stage.home, ".omp/agent/models.yml"), JSON.stringify({ providers: { [PROVIDER]: provider } }));
	},
	shell: command => ({ name: "bash", arguments: { command } }),
	read: path => ({ name: "read", arguments: { path } }),
};

/** Turnwire in omp's place, at this path. */
export const turnwire = (path: string): Agent => ({
	name: "turnwire",
	slashCommands: false,
	newSessions: true,
	breaksLoops: false,
	summaryRequests: 1,
	command: (stage, host, needs) => [path, "as", "omp", ...host, ...args(stage, needs)],
	prepare(stage) {
		write(
			join(stage.home, ".config/turnwire/turnwire.toml"),
			`[model]
api = "openai"
provider = "${PROVIDER}"
base_url = "${stage.provider.url}"
window = 1000000
max_output = 100000
`,
		);
		stage.env.TURNWIRE_TRUST_PROJECT = stage.project;
	},
	shell: command => ({ name: "bash", arguments: { command } }),
	read: path => ({ name: "read_file", arguments: { path } }),
});

/** The same agent, with all that is said to it and by it written down. */
export function recorded(agent: Agent): Agent {
	return {
		...agent,
		command: (stage, host, needs) => [
			...[process.execPath, join(here, "../common/tee.ts"), stage.record()],
			...agent.command(stage, host, needs),
		],
	};
}
