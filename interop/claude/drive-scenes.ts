/** What a user of `turnwire drive claude` sees, of the real Claude Code and of turnwire in its place. */

import assert from "node:assert/strict";
import { Drive } from "../common/drive.ts";
import { call, refuse, say, sayHeld, think } from "../common/provider.ts";
import type { Scene, Stage } from "../common/scene.ts";
import { type Agent, executable, shell, writes } from "./agents.ts";
import { exists, scene } from "./scenes/host.ts";

/** How a host of this wire starts the agent. */
const WIRE = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--permission-prompt-tool", "stdio"];
const PARTIAL = "--include-partial-messages";

export function driveScenes(turnwire: string, agent: Agent): Scene[] {
	/** Starts `drive` over the agent. */
	const begin = (stage: Stage, prompts: string[], ...flags: string[]): Drive => {
		agent.prepare(stage);
		return new Drive(stage, turnwire, "claude", prompts, [executable(stage, agent), ...WIRE, ...flags]);
	};

	/** Drives the agent to its end, which is a good one, and finds nothing to complain about on the way. */
	const whole = async (stage: Stage, prompts: string[], ...flags: string[]): Promise<Drive> => {
		const drive = begin(stage, prompts, ...flags);
		const code = await stage.until("the end of drive", drive.end());
		assert.equal(code, 0, `drive ended with ${code}: ${drive.stderr}`);
		assert.deepEqual(drive.all("finding"), [], "the agent keeps its contract");
		return drive;
	};

	return [
		scene("a prompt", async stage => {
			stage.provider.script(say("Hello ", "from ", "the model."));
			const drive = await whole(stage, ["Greet me."]);
			const kinds = ["opened", "turn_started", "prompt_applied", "message_ended", "turn_ended", "prompt_ended", "exit"];
			assert.deepEqual(drive.order(...kinds), kinds);
			assert.equal(drive.all("opened")[0]!.cwd, stage.project);
			const [message] = drive.all("message_ended");
			assert.deepEqual([message!.text, message!.kept], ["Hello from the model.", true]);
			assert.equal(drive.all("prompt_ended")[0]!.end, "finished");
			assert.deepEqual(left(drive), { code: 0, unfinished: false, killed: false });
		}),

		scene("a prompt whose answer comes in pieces", async stage => {
			stage.provider.script(say("Hello ", "from ", "the model."));
			const drive = await whole(stage, ["Greet me."], PARTIAL);
			const [message] = drive.all("message_ended");
			assert.equal(message!.text, "Hello from the model.");
			assert.equal(drive.text(message!.message), "Hello from the model.");
			assert.ok(drive.all("delta").length >= 3);
		}),

		scene("two prompts in one session", async stage => {
			stage.provider.script(say("One."), say("Two."));
			const drive = await whole(stage, ["First.", "Second."]);
			assert.deepEqual(answers(drive), ["One.", "Two."]);
			assert.equal(drive.all("turn_ended").length, 2);
			assert.equal(stage.provider.requests[1]!.messages.filter(({ role }) => role === "assistant").length, 1);
		}),

		scene("thinking", async stage => {
			stage.provider.script(think("Let me see.", "It is ", "42."));
			const drive = await whole(stage, ["What is it?"], PARTIAL);
			const kinds = drive.all("delta").map(({ kind }) => kind);
			assert.ok(kinds.indexOf("thinking") >= 0 && kinds.indexOf("thinking") < kinds.indexOf("text"));
			assert.deepEqual(answers(drive), ["It is 42."]);
		}),

		scene("a tool", async stage => {
			stage.provider.script(call("I look.", shell("pwd")), say("Seen."));
			const drive = await whole(stage, ["Run it."], "--allowedTools", "Bash");
			const [begun] = drive.all("tool_started");
			const [ended] = drive.all("tool_ended");
			assert.match(begun!.name, /^bash$/i);
			assert.equal(begun!.input.command, "pwd");
			assert.deepEqual([ended!.call, ended!.ok], [begun!.call, true]);
			assert.ok(ended!.text.includes(stage.project));
			assert.deepEqual(answers(drive), ["I look.", "Seen."]);
			assert.equal(drive.all("turn_ended").length, 1);
		}),

		scene("an approval that nobody can give", async stage => {
			stage.provider.script(call("", writes("note.txt", "noted")), say("Then not."));
			const drive = await whole(stage, ["Write it."]);
			const [asked] = drive.all("asked");
			assert.match(asked!.tool, /write/i);
			assert.equal(drive.all("ask_closed")[0]!.ask, asked!.ask);
			assert.equal(drive.all("tool_ended")[0]!.ok, false);
			assert.ok(!exists(stage, "note.txt"));
			assert.equal(answers(drive).at(-1), "Then not.");
		}),

		scene("a provider that refuses", async stage => {
			stage.provider.script(refuse(400, "the scripted refusal"));
			const drive = begin(stage, ["Try."]);
			assert.equal(await stage.until("the end of drive", drive.end()), 1);
			assert.deepEqual(drive.all("finding"), []);
			const [ended] = drive.all("prompt_ended");
			assert.equal(ended!.end, "failed");
			assert.match(ended!.text, /the scripted refusal/);
		}),

		scene("a provider that is overloaded for a moment", async stage => {
			stage.provider.script(refuse(529, "come back later"), say("Here I am."));
			const drive = await whole(stage, ["Try."]);
			assert.equal(drive.all("retry_scheduled").length, 1);
			assert.deepEqual(answers(drive), ["Here I am."]);
		}),

		scene("Ctrl-C in the middle of an answer", async stage => {
			stage.provider.script(sayHeld("Half ", new Promise<never>(() => {}), "never said"));
			const drive = begin(stage, ["Talk.", "Never sent."], PARTIAL);
			await stage.until(
				"the first text",
				drive.first(line => line.event === "delta" && line.kind === "text"),
			);
			drive.interrupt();
			await stage.until("the end of drive", drive.end());
			await stage.until("the model's request to be dropped", stage.provider.requests[0]!.gone);
			assert.equal(drive.all("prompt_ended")[0]!.end, "cancelled");
			assert.equal(drive.all("message_ended").at(-1)!.text, "Half ");
			assert.equal(left(drive).killed, false, "the agent left by itself");
			assert.equal(stage.provider.requests.length, 1);
		}),

		scene("an agent that doesn't start", async stage => {
			const drive = begin(stage, ["Hello?"], "--no-such-flag");
			assert.notEqual(await stage.until("the end of drive", drive.end()), 0);
			assert.equal(drive.all("exit")[0]!.unfinished, true);
			assert.match(drive.stderr, /no-such-flag/);
		}),
	];
}

/** What the model said, message by message. */
const answers = (drive: Drive): string[] => drive.all("message_ended").map(({ text }) => text);

/** How the agent left. */
function left(drive: Drive): { code: number; unfinished: boolean; killed: boolean } {
	const { event, code, unfinished, killed } = drive.lines.at(-1)!;
	assert.equal(event, "exit");
	return { code, unfinished, killed };
}
