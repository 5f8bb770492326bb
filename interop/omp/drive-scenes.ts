/** What a user of `turnwire drive omp` sees, of the real omp and of turnwire in its place. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Agent, Needs } from "./agents.ts";
import { Drive, type Line } from "../common/drive.ts";
import { pieces, prose } from "../common/prose.ts";
import { call, refuse, say, sayHeld, think } from "../common/provider.ts";
import type { Scene, Stage } from "../common/scene.ts";

export function driveScenes(turnwire: string, agent: Agent): Scene[] {
	const scene = (name: string, play: Scene["play"], limit?: number): Scene => ({ name, play, limit });

	/** Starts `drive` over the agent, with these prompts and options. */
	const begin = (stage: Stage, prompts: string[], needs: Needs = {}, mode = "rpc"): Drive => {
		agent.prepare(stage);
		return new Drive(stage, turnwire, "omp", prompts, agent.command(stage, ["--mode", mode], needs));
	};

	/** Drives the agent to its end, which is a good one, and finds nothing to complain about on the way. */
	const whole = async (stage: Stage, prompts: string[], needs: Needs = {}, mode = "rpc"): Promise<Drive> => {
		const drive = begin(stage, prompts, needs, mode);
		const code = await stage.until("the end of drive", drive.end());
		assert.equal(code, 0, `drive ended with ${code}: ${drive.stderr}`);
		assert.deepEqual(drive.all("finding"), [], "the agent keeps its contract");
		return drive;
	};

	return [
		scene("a prompt", async stage => {
			stage.provider.script(say("Hello ", "from ", "the model."));
			const drive = await whole(stage, ["Greet me."]);
			assert.match(stage.provider.requests[0]!.messages.at(-1)!.content, /Greet me\./);
			const [opened] = drive.all("opened");
			assert.match(opened!.session, /^[0-9a-f-]{36}$/);
			assert.deepEqual(
				drive.order("opened", "turn_started", "prompt_applied", "message_ended", "turn_ended", "prompt_ended", "exit"),
				["opened", "turn_started", "prompt_applied", "message_ended", "turn_ended", "prompt_ended", "exit"],
			);
			const [message] = drive.all("message_ended");
			assert.deepEqual([message!.text, message!.stop, message!.kept], ["Hello from the model.", "end", true]);
			assert.equal(drive.text(message!.message), "Hello from the model.");
			assert.equal(drive.all("request_ended")[0]!.usage.output, 7);
			assert.equal(drive.all("prompt_ended")[0]!.end, "finished");
			assert.deepEqual(exit(drive), { code: 0, unfinished: false, killed: false });
		}),

		scene("two prompts in one session", async stage => {
			stage.provider.script(say("One."), say("Two."));
			const drive = await whole(stage, ["First.", "Second."]);
			assert.deepEqual(answers(drive), ["One.", "Two."]);
			assert.equal(drive.all("turn_ended").length, 2);
			const said = stage.provider.requests[1]!.messages.filter(({ role }) => role !== "system" && role !== "developer");
			assert.deepEqual(
				said.map(({ role }) => role),
				["user", "assistant", "user"],
			);
		}),

		scene("thinking", async stage => {
			stage.provider.script(think("Let me see.", "It is ", "42."));
			const drive = await whole(stage, ["What is it?"]);
			const kinds = drive.all("delta").map(({ kind }) => kind);
			assert.ok(kinds.indexOf("thinking") >= 0 && kinds.indexOf("thinking") < kinds.indexOf("text"));
			assert.deepEqual(answers(drive), ["It is 42."]);
		}),

		scene("a tool", async stage => {
			stage.provider.script(call("I look.", agent.shell("echo out-of-the-tool")), say("Seen."));
			const drive = await whole(stage, ["Run it."], { tools: "shell" });
			const [begun] = drive.all("tool_started");
			const [ended] = drive.all("tool_ended");
			assert.equal(begun!.name, "bash");
			assert.equal(begun!.input.command, "echo out-of-the-tool");
			assert.deepEqual([ended!.call, ended!.ok], [begun!.call, true]);
			assert.match(ended!.text, /out-of-the-tool/);
			assert.deepEqual(answers(drive), ["I look.", "Seen."]);
			assert.equal(drive.all("step_started").length, 2);
			assert.equal(drive.all("turn_ended").length, 1);
		}),

		scene("two tools at once, and one that fails", async stage => {
			stage.provider.script(call("", agent.shell("echo one"), agent.shell("echo two; exit 3")), say("Seen."));
			const drive = await whole(stage, ["Run them."], { tools: "shell" });
			const ended = drive.all("tool_ended").sort((a, b) => a.call - b.call);
			assert.deepEqual(
				ended.map(({ ok }) => ok),
				[true, false],
			);
			assert.match(ended[0]!.text, /one/);
			assert.match(ended[1]!.text, /two/);
		}),

		scene("a steer and a follow-up", async stage => {
			const gate = Promise.withResolvers<void>();
			stage.provider.script(sayHeld("On my ", gate.promise, "way."), say("Turning left."), say("Parked."));
			const drive = begin(stage, ["--steer", "Go left.", "--follow-up", "Park.", "Go right."]);
			const queued = (lane: string) => drive.first(line => line.event === "queued" && line.lane === lane);
			await stage.until("both to be queued", Promise.all([queued("steer"), queued("follow_up")]));
			gate.resolve();
			assert.equal(await stage.until("the end of drive", drive.end()), 0, drive.stderr);
			assert.deepEqual(drive.all("finding"), []);
			assert.deepEqual(answers(drive), ["On my way.", "Turning left.", "Parked."]);
			assert.match(stage.provider.requests[1]!.messages.at(-1)!.content, /Go left\./);
			assert.match(stage.provider.requests[2]!.messages.at(-1)!.content, /Park\./);
			assert.equal(drive.all("turn_ended").length, 1);
			assert.deepEqual(
				drive.all("prompt_ended").map(({ end }) => end),
				["finished", "finished", "finished"],
			);
		}),

		scene("the host's own tools", async stage => {
			const parameters = { type: "object", properties: { id: { type: "number" } } };
			const offer = offered(stage, {
				tools: [
					{ name: "look_up", description: "Looks a ticket up.", parameters, run: ["sh", "-c", "printf 'ticket '; cat"] },
					{ name: "fail", description: "Fails.", parameters, run: ["sh", "-c", "echo broken >&2; exit 3"] },
				],
			});
			stage.provider.script(
				call("", { name: "look_up", arguments: { id: 42 } }),
				call("", { name: "fail", arguments: {} }),
				say("Open."),
			);
			const drive = await whole(stage, ["--offer", offer, "Look it up."], { tools: "shell" });
			const asked = drive.all("asked");
			assert.deepEqual(
				asked.map(({ kind, tool }) => [kind, tool]),
				[
					["tool", "look_up"],
					["tool", "fail"],
				],
			);
			const [good, bad] = drive.all("tool_ended");
			assert.ok(good!.ok && !bad!.ok);
			assert.match(good!.text, /^ticket \{"id":42\}/);
			assert.match(bad!.text, /broken/);
			assert.equal(drive.all("ask_closed").length, 2);
			assert.deepEqual(answers(drive).at(-1), "Open.");
		}),

		scene("addresses of the host's", async stage => {
			const run = ["sh", "-c", 'echo "$2 is Alice"', "db"];
			const offer = offered(stage, { uris: [{ scheme: "db", description: "the tables", run }] });
			stage.provider.script(call("", agent.read("db://users/1")), say("Alice."));
			const drive = await whole(stage, ["--offer", offer, "Who is it?"], { tools: "read" });
			assert.deepEqual(
				drive.all("asked").map(({ kind, uri }) => [kind, uri]),
				[["uri", "db://users/1"]],
			);
			assert.match(drive.all("tool_ended")[0]!.text, /db:\/\/users\/1 is Alice/);
			assert.deepEqual(answers(drive).at(-1), "Alice.");
		}),

		scene("an approval that nobody can give", async stage => {
			stage.provider.script(call("", agent.shell("echo never-run")), say("Then not."));
			const drive = await whole(stage, ["Run it."], { tools: "shell", ask: true }, "rpc-ui");
			const [asked] = drive.all("asked");
			assert.equal(asked!.tool, "bash");
			assert.equal(drive.all("ask_closed")[0]!.ask, asked!.ask);
			const [ended] = drive.all("tool_ended");
			assert.equal(ended!.ok, false);
			assert.doesNotMatch(ended!.text, /^never-run/);
			assert.deepEqual(answers(drive).at(-1), "Then not.");
		}),

		scene(
			"messages beyond the frame limit",
			async stage => {
				const long = prose(1_300_000);
				stage.provider.script(say(...pieces(long, 262_144)));
				const drive = await whole(stage, ["Tell me everything."]);
				const [message] = drive.all("message_ended");
				assert.ok(message!.text === long, "the message is the whole text");
				assert.ok(drive.text(message!.message) === long, "so are the deltas");
			},
			180,
		),

		scene("a provider that refuses", async stage => {
			stage.provider.script(refuse(400, "the scripted refusal"));
			const drive = begin(stage, ["Try."]);
			assert.equal(await stage.until("the end of drive", drive.end()), 1);
			assert.deepEqual(drive.all("finding"), []);
			const [ended] = drive.all("prompt_ended");
			assert.equal(ended!.end, "failed");
			assert.match(ended!.text, /the scripted refusal/);
		}),

		scene("Ctrl-C in the middle of an answer", async stage => {
			const never = new Promise<void>(() => {});
			stage.provider.script(sayHeld("Half ", never, "never said"));
			const drive = begin(stage, ["Talk.", "Never sent."]);
			await stage.until(
				"the first text",
				drive.first(line => line.event === "delta" && line.kind === "text"),
			);
			drive.interrupt();
			await stage.until("the end of drive", drive.end());
			await stage.until("the model's request to be dropped", stage.provider.requests[0]!.gone);
			assert.equal(drive.all("prompt_ended")[0]!.end, "cancelled");
			assert.equal(drive.all("message_ended").at(-1)!.text, "Half ");
			assert.equal(drive.all("exit")[0]!.killed, false, "the agent left by itself");
			assert.equal(stage.provider.requests.length, 1);
		}),

		scene("Ctrl-C during a tool", async stage => {
			stage.provider.script(call("", agent.shell("echo begun; sleep 300")));
			const drive = begin(stage, ["Run it."], { tools: "shell" });
			await stage.until(
				"the tool's start",
				drive.first(line => line.event === "tool_started"),
			);
			drive.interrupt();
			await stage.until("the end of drive", drive.end());
			assert.equal(drive.all("tool_ended")[0]!.ok, false);
			assert.equal(drive.all("prompt_ended")[0]!.end, "cancelled");
			assert.equal(drive.all("exit")[0]!.killed, false, "the agent left by itself");
		}),

		scene("an agent that doesn't start", async stage => {
			agent.prepare(stage);
			const command = agent.command(stage, ["--mode", "rpc"], {}).concat("@no-such-file");
			const drive = new Drive(stage, turnwire, "omp", ["Hello?"], command);
			assert.equal(await stage.until("the end of drive", drive.end()), 1);
			assert.equal(drive.all("exit")[0]!.unfinished, true);
			assert.match(drive.stderr, /RPC mode/);
		}),

		...only(
			agent.slashCommands,
			scene("a prompt that the agent answers without a model", async stage => {
				const drive = await whole(stage, ["/usage"]);
				assert.equal(drive.all("prompt_ended")[0]!.end, "local");
				assert.ok(drive.all("message").some(({ text }) => text));
				assert.equal(stage.provider.requests.length, 0);
			}),
		),

		...only(
			agent.breaksLoops,
			scene("an answer that the agent takes back and tries again", async stage => {
				stage.provider.script(say("0123456789abcdef".repeat(1_280)), say("This then."));
				const drive = await whole(stage, ["Count."]);
				const [taken, kept] = drive.all("message_ended");
				assert.deepEqual([taken!.kept, kept!.kept, kept!.text], [false, true, "This then."]);
				assert.equal(drive.all("retry_scheduled").length, 1);
				assert.equal(drive.all("retry_ended")[0]!.ok, true);
				assert.equal(drive.all("prompt_ended")[0]!.end, "finished");
			}),
		),
	];
}

/** Puts down what the host serves. */
function offered(stage: Stage, what: object): string {
	const file = join(stage.project, "offer.json");
	writeFileSync(file, JSON.stringify(what));
	return file;
}

const only = (has: boolean, scene: Scene): Scene[] => (has ? [scene] : []);

/** What the model said, message by message. */
const answers = (drive: Drive): string[] => drive.all("message_ended").map(({ text }) => text);

function exit(drive: Drive): Partial<Line> {
	const line = drive.lines.at(-1)!;
	assert.equal(line.event, "exit");
	const { code, unfinished, killed } = line;
	return { code, unfinished, killed };
}
