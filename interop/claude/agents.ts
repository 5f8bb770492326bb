/** The agents that are checked: the real Claude Code, as the control, and Turnwire in its place. */

import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Call } from "../common/provider.ts";
import type { Stage } from "../common/scene.ts";

export interface Agent {
	name: string;
	/** What an SDK starts, in front of its own arguments. */
	command: string[];
	/** Puts down what the agent reads at its start. */
	prepare(stage: Stage): void;
}

const here = import.meta.dir;

function write(path: string, text: string): void {
	mkdirSync(dirname(path), { recursive: true });
	writeFileSync(path, text);
}

/**
 * No key of anybody's, nobody but the loopback, no traffic besides the model's, and few retries. With betas a refused
 * request is sent again without them, and tools are left out until the model looks for them.
 */
function surroundings(stage: Stage): { [name: string]: string } {
	return {
		ANTHROPIC_BASE_URL: stage.provider.origin,
		ANTHROPIC_API_KEY: "no-key-but-a-word",
		CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS: "1",
		CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
		CLAUDE_CODE_MAX_RETRIES: "2",
		DISABLE_AUTOUPDATER: "1",
		DISABLE_ERROR_REPORTING: "1",
		DISABLE_TELEMETRY: "1",
		MCP_TIMEOUT: "60000",
		HTTP_PROXY: "http://127.0.0.1:9",
		HTTPS_PROXY: "http://127.0.0.1:9",
		NO_PROXY: "127.0.0.1",
	};
}

/** The native program that the package brings for this platform; it needs no node. */
function installed(): string {
	const [path] = new Bun.Glob("node_modules/@anthropic-ai/claude-code-*/claude").scanSync({ cwd: here, absolute: true });
	return path ?? "claude isn't installed: install.sh --agent";
}

/** Claude Code, the installed one or another. */
export const claude = (path = installed()): Agent => ({
	name: "claude",
	command: [path],
	prepare(stage) {
		Object.assign(stage.env, surroundings(stage));
	},
});

/** Turnwire in its place, at this path. What a model costs is known only where the settings say so. */
export const turnwire = (path: string): Agent => ({
	name: "turnwire",
	command: [path, "as", "claude"],
	prepare(stage) {
		Object.assign(stage.env, surroundings(stage), { TURNWIRE_TRUST_PROJECT: stage.project });
		write(
			join(stage.home, ".config/turnwire/turnwire.toml"),
			`[model]
name = "scripted-1"

# A loaded machine takes its time to start one.
[mcp]
wait = 60

[[model.price]]
model = "claude-haiku-4-5"
input = 1
output = 5
as_of = "2026-11-30"
`,
		);
	},
});

/** A program that starts the agent with whatever arguments it gets, and writes down these and all that is said. */
export function executable(stage: Stage, agent: Agent): string {
	const path = join(stage.home, "bin/claude");
	const file = stage.record();
	const command = [process.execPath, join(here, "../common/tee.ts"), file, ...agent.command];
	const quoted = (words: string[]) => words.map(word => `'${word}'`).join(" ");
	write(path, `#!/bin/sh\nprintf '%s\\n' "$@" >${quoted([`${file}.args`])}\nexec ${quoted(command)} "$@"\n`);
	chmodSync(path, 0o755);
	return path;
}

/** A call that writes a file. */
export const writes = (path: string, content: string): Call => ({ name: "Write", arguments: { file_path: path, content } });

/** A call that reads a file. */
export const reads = (path: string): Call => ({ name: "Read", arguments: { file_path: path } });

/** A call that replaces a text in a file. */
export const edits = (path: string, old_string: string, new_string: string): Call => ({
	name: "Edit",
	arguments: { file_path: path, old_string, new_string },
});

/** A call that runs a command. */
export const shell = (command: string): Call => ({ name: "Bash", arguments: { command } });

/** The name of the first of those tools. */
export const WRITES = "Write";
