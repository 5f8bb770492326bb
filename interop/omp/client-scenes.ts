/**
 * What a user of the package's client sees. Every scene is played against the real omp too, so that what is asked
 * of Turnwire here is what the client's own agent gives.
 */

import assert from "node:assert/strict";
import type { Agent } from "./agents.ts";
import { type Client, type ClientOptions, type clients, deltas, type Frame, order, Recorder, start as startClient, textOf, Wire } from "./client.ts";
import { pieces, prose } from "../common/prose.ts";
import { call, MODEL, refuse, say, sayHeld, think } from "../common/provider.ts";
import type { Scene, Stage } from "../common/scene.ts";

const PROMPT = ["message_start user", "message_end user"];
const ANSWER = ["message_start assistant", "message_update", "message_end assistant"];
const RESULT = ["message_start toolResult", "message_end toolResult"];
const TEXT_RUN = ["agent_start", "turn_start", ...PROMPT, ...ANSWER, "turn_end", "agent_end"];

type AnyClient = (typeof clients)[keyof typeof clients];

export function clientScenes(Client: AnyClient, agent: Agent): Scene[] {
	const scene = (name: string, play: Scene["play"], limit?: number): Scene => ({ name, play, limit });
	const start = (stage: Stage, options?: ClientOptions): Promise<Client> =>
		startClient<Client>(Client, stage, agent, options);
	return [
		scene("a prompt", async stage => {
			stage.provider.script(say("Hello ", "from ", "the model."));
			const client = await start(stage);
			const events = await prompt(stage, client, "Greet me.");
			assert.deepEqual(order(events), TEXT_RUN);
			assert.equal(deltas(events), "Hello from the model.");
			const [asked] = stage.provider.requests;
			assert.equal(asked?.messages.at(-1)?.role, "user");
			assert.match(asked!.messages.at(-1)!.content, /Greet me\./);
			assert.equal(await client.getLastAssistantText(), "Hello from the model.");
			const messages = (await client.getMessages()) as Frame[];
			assert.deepEqual(
				messages.map(message => [message.role, textOf(message)]),
				[
					["user", "Greet me."],
					["assistant", "Hello from the model."],
				],
			);
			const answer = messages[1]!;
			assert.equal(answer.stopReason, "stop");
			assert.equal(answer.usage.output, 7);
			const end = events.at(-1) as Frame;
			assert.deepEqual(end.messages.map(textOf), ["Greet me.", "Hello from the model."]);
			assert.notEqual(end.isTerminal, false);
		}),

		scene("two prompts in one session", async stage => {
			stage.provider.script(say("One."), say("Two."));
			const client = await start(stage);
			await prompt(stage, client, "First.");
			const events = await prompt(stage, client, "Second.");
			assert.equal(deltas(events), "Two.");
			const said = stage.provider.requests[1]!.messages.filter(({ role }) => role !== "system" && role !== "developer");
			assert.deepEqual(
				said.map(({ role }) => role),
				["user", "assistant", "user"],
			);
			assert.match(said[1]!.content, /One\./);
			assert.equal(((await client.getMessages()) as Frame[]).length, 4);
			const stats = await client.getSessionStats();
			assert.deepEqual([stats.userMessages, stats.assistantMessages, stats.totalMessages], [2, 2, 4]);
			assert.deepEqual([stats.tokens.input, stats.tokens.output], [22, 14]);
			const places = await client.getBranchMessages();
			assert.deepEqual(
				places.map(({ text }) => text),
				["First.", "Second."],
			);
			assert.ok(places.every(({ entryId }) => /^[0-9a-f]{8}$/.test(entryId)));
		}),

		scene("thinking", async stage => {
			stage.provider.script(think("Let me see.", "It is ", "42."));
			const client = await start(stage);
			const events = (await prompt(stage, client, "What is it?")) as Frame[];
			const kinds = updates(events).map(update => update.type);
			assert.ok(kinds.indexOf("thinking_delta") >= 0 && kinds.indexOf("thinking_delta") < kinds.indexOf("text_delta"));
			const [thinking, text] = last(events, "message_end").message.content;
			assert.deepEqual([thinking.type, thinking.thinking], ["thinking", "Let me see."]);
			assert.deepEqual([text.type, text.text], ["text", "It is 42."]);
		}),

		scene("a tool", async stage => {
			stage.provider.script(call("I look.", agent.shell("echo out-of-the-tool")), say("Seen."));
			const client = await start(stage, { tools: "shell" });
			const events = (await prompt(stage, client, "Run it.")) as Frame[];
			const seen = order(events).filter(name => name !== "tool_execution_update");
			assert.deepEqual(seen, [
				...["agent_start", "turn_start", ...PROMPT, ...ANSWER],
				...["tool_execution_start", "tool_execution_end", ...RESULT, "turn_end"],
				...["turn_start", ...ANSWER, "turn_end", "agent_end"],
			]);
			const kinds = updates(events).map(update => update.type);
			for (const kind of ["toolcall_start", "toolcall_delta", "toolcall_end"]) assert.ok(kinds.includes(kind), kind);
			const begun = one(events, "tool_execution_start");
			const ended = one(events, "tool_execution_end");
			const { name, arguments: args } = agent.shell("echo out-of-the-tool");
			assert.equal(begun.toolName, name);
			assert.equal(begun.args.command, (args as Frame).command);
			assert.equal(ended.toolCallId, begun.toolCallId);
			assert.equal(ended.isError, false);
			assert.match(textOf(ended.result), /out-of-the-tool/);
			const told = stage.provider.requests[1]!.messages.at(-1)!;
			assert.equal(told.role, "tool");
			assert.match(told.content, /out-of-the-tool/);
			assert.equal(await client.getLastAssistantText(), "Seen.");
		}),

		scene("a tool that fails", async stage => {
			stage.provider.script(call("", agent.shell("echo to-no-avail; exit 3")), say("It failed."));
			const client = await start(stage, { tools: "shell" });
			const events = (await prompt(stage, client, "Run it.")) as Frame[];
			assert.equal(one(events, "tool_execution_end").isError, true);
			assert.match(stage.provider.requests[1]!.messages.at(-1)!.content, /to-no-avail/);
			assert.equal(await client.getLastAssistantText(), "It failed.");
		}),

		scene("a tool of the host's", async stage => {
			const calls: unknown[] = [];
			stage.provider.script(call("", lookup(42)), say("It is open."));
			const client = await start(stage, {
				customTools: [
					ticketTool(async (args, context) => {
						calls.push(args);
						context.sendUpdate("looking");
						return "ticket 42 is open";
					}),
				],
			});
			const events = (await prompt(stage, client, "Look it up.")) as Frame[];
			assert.deepEqual(calls, [{ id: 42 }]);
			assert.ok(stage.provider.requests[0]!.tools.includes("lookup_ticket"), "the model is offered the tool");
			assert.equal(one(events, "tool_execution_start").toolName, "lookup_ticket");
			assert.ok(
				events.some(event => event.type === "tool_execution_update" && textOf(event.partialResult) === "looking"),
				"its update is shown",
			);
			const ended = one(events, "tool_execution_end");
			assert.equal(ended.isError, false);
			assert.match(textOf(ended.result), /ticket 42 is open/);
			assert.match(stage.provider.requests[1]!.messages.at(-1)!.content, /ticket 42 is open/);
			assert.equal(await client.getLastAssistantText(), "It is open.");
		}),

		scene("a tool of the host's that fails", async stage => {
			stage.provider.script(call("", lookup(7)), say("No such ticket."));
			const client = await start(stage, {
				customTools: [
					ticketTool(() => {
						throw new Error("ticket 7 is unknown");
					}),
				],
			});
			const events = (await prompt(stage, client, "Look it up.")) as Frame[];
			const ended = one(events, "tool_execution_end");
			assert.equal(ended.isError, true);
			assert.match(textOf(ended.result), /ticket 7 is unknown/);
			assert.match(stage.provider.requests[1]!.messages.at(-1)!.content, /ticket 7 is unknown/);
		}),

		scene("an abort reaches a tool of the host's", async stage => {
			const begun = Promise.withResolvers<void>();
			const told = Promise.withResolvers<void>();
			stage.provider.script(call("", lookup(1)));
			const client = await start(stage, {
				customTools: [
					ticketTool((_args, context) => {
						context.signal.addEventListener("abort", () => told.resolve());
						begun.resolve();
						return new Promise(() => {});
					}),
				],
			});
			const seen = new Recorder(client);
			await client.prompt("Look it up.");
			await stage.until("the call of the host's tool", begun.promise);
			const idle = client.waitForIdle();
			await stage.until("the abort's response", client.abort());
			await stage.until("the tool's abort signal", told.promise);
			await stage.until("the run's end", idle);
			assert.equal(one(seen.events, "tool_execution_end").isError, true);
			assert.equal((await client.getState()).isStreaming, false);
		}),

		scene("a steer", async stage => {
			const gate = Promise.withResolvers<void>();
			stage.provider.script(sayHeld("On my ", gate.promise, "way."), say("Turning left."));
			const client = await start(stage);
			const seen = new Recorder(client);
			const idle = client.waitForIdle();
			await client.prompt("Go right.");
			await stage.until("the first text", seen.first(isText));
			await stage.until("the steer's response", client.steer("Go left."));
			assert.equal((await client.getState()).queuedMessageCount, 1);
			gate.resolve();
			await stage.until("the run's end", idle);
			assert.deepEqual(seen.order, [
				...["agent_start", "turn_start", ...PROMPT, ...ANSWER, "turn_end"],
				...["turn_start", ...PROMPT, ...ANSWER, "turn_end", "agent_end"],
			]);
			assert.equal(seen.text, "On my way.Turning left.");
			assert.match(stage.provider.requests[1]!.messages.at(-1)!.content, /Go left\./);
			assert.equal((await client.getState()).queuedMessageCount, 0);
		}),

		scene("a follow-up", async stage => {
			const gate = Promise.withResolvers<void>();
			stage.provider.script(sayHeld("First ", gate.promise, "done."), say("Then this."));
			const client = await start(stage);
			const seen = new Recorder(client);
			const idle = client.waitForIdle();
			await client.prompt("Do the first.");
			await stage.until("the first text", seen.first(isText));
			await stage.until("the follow-up's response", client.followUp("Do the second."));
			assert.equal((await client.getState()).queuedMessageCount, 1);
			gate.resolve();
			await stage.until("the run's end", idle);
			assert.equal(seen.events.filter(event => event.type === "agent_start").length, 1);
			assert.equal(seen.text, "First done.Then this.");
			assert.match(stage.provider.requests[1]!.messages.at(-1)!.content, /Do the second\./);
			assert.equal((await client.getState()).queuedMessageCount, 0);
		}),

		scene("an abort", async stage => {
			const never = new Promise<void>(() => {});
			stage.provider.script(sayHeld("Half ", never, "never said"), say("Here again."));
			const client = await start(stage);
			const seen = new Recorder(client);
			const idle = client.waitForIdle();
			await client.prompt("Talk.");
			await stage.until("the first text", seen.first(isText));
			await stage.until("the abort's response", client.abort());
			await stage.until("the run's end", idle);
			await stage.until("the model's request to be dropped", stage.provider.requests[0]!.gone);
			const end = last(seen.events, "message_end").message;
			assert.equal(end.stopReason, "aborted");
			assert.equal(textOf(end), "Half ");
			assert.deepEqual(seen.order, TEXT_RUN);
			assert.equal((await client.getState()).isStreaming, false);
			const events = await prompt(stage, client, "Still there?");
			assert.equal(deltas(events), "Here again.");
		}),

		scene("an abort and a new prompt in one", async stage => {
			const never = new Promise<void>(() => {});
			stage.provider.script(sayHeld("Half ", never, "never said"), say("Something else."));
			const client = await start(stage);
			const seen = new Recorder(client);
			await client.prompt("Talk.");
			await stage.until("the first text", seen.first(isText));
			await stage.until("the response", client.abortAndPrompt("Say something else."));
			await stage.until(
				"the second run's end",
				seen.first(event => event.type === "agent_end" && textOf(event.messages.at(-1)) === "Something else."),
			);
			assert.equal(seen.events.filter(event => event.type === "agent_end").length, 2);
			assert.match(stage.provider.requests[1]!.messages.at(-1)!.content, /Say something else\./);
		}),

		scene("an abort during a tool", async stage => {
			stage.provider.script(call("", agent.shell("echo begun; sleep 300")));
			const client = await start(stage, { tools: "shell" });
			const seen = new Recorder(client);
			const idle = client.waitForIdle();
			await client.prompt("Run it.");
			await stage.until(
				"the tool's start",
				seen.first(event => event.type === "tool_execution_start"),
			);
			await stage.until("the abort's response", client.abort());
			await stage.until("the run's end", idle);
			assert.equal(one(seen.events, "tool_execution_end").isError, true);
			assert.equal(last(seen.events, "message_end").message.stopReason, "aborted");
			assert.equal((await client.getState()).isStreaming, false);
		}),

		scene(
			"messages beyond the frame limit",
			async stage => {
				const long = prose(1_300_000);
				stage.provider.script(say(...pieces(long, 262_144)));
				const client = await start(stage);
				const events = (await prompt(stage, client, "Tell me everything.")) as Frame[];
				assert.ok(deltas(events) === long, "the deltas are the whole text");
				assert.ok(textOf(last(events, "message_end").message) === long, "so is the end of the message");
				assert.ok((await client.getLastAssistantText()) === long, "so is a response");
				const messages = (await client.getMessages()) as Frame[];
				assert.ok(textOf(messages.at(-1)!) === long, "so is the history");
			},
			180,
		),

		scene("a command of the host's", async stage => {
			const client = await start(stage);
			const result = await stage.until("its end", client.bash("echo hello; exit 3"));
			assert.equal(result.exitCode, 3);
			assert.equal(result.cancelled, false);
			assert.match(result.output, /^hello\n?$/);
			const long = client.bash("echo begun; sleep 300");
			await Bun.sleep(300);
			await stage.until("the response of abort_bash", client.abortBash());
			const cut = await stage.until("the end of the aborted command", long);
			assert.equal(cut.cancelled, true);
			assert.equal(cut.exitCode, undefined);
			const messages = (await client.getMessages()) as Frame[];
			assert.deepEqual(
				messages.map(({ role, exitCode, cancelled }) => [role, exitCode, cancelled]),
				[
					["bashExecution", 3, false],
					["bashExecution", undefined, true],
				],
			);
		}),

		scene("the state and its settings", async stage => {
			const client = await start(stage);
			const state = await client.getState();
			assert.equal(state.model?.id, MODEL);
			assert.match(state.sessionId, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/);
			assert.deepEqual(
				[state.isStreaming, state.isCompacting, state.messageCount, state.queuedMessageCount],
				[false, false, 0, 0],
			);
			assert.deepEqual(
				[state.steeringMode, state.followUpMode, state.interruptMode, state.autoCompactionEnabled],
				["one-at-a-time", "one-at-a-time", "immediate", true],
			);
			assert.deepEqual(state.todoPhases, []);
			assert.ok(Array.isArray(state.systemPrompt));
			await client.setSteeringMode("all");
			await client.setFollowUpMode("all");
			await client.setAutoCompaction(false);
			const changed = await client.getState();
			assert.deepEqual(
				[changed.steeringMode, changed.followUpMode, changed.autoCompactionEnabled],
				["all", "all", false],
			);
			const commands = await client.getAvailableCommands();
			assert.equal(commands.length > 0, agent.slashCommands);
			assert.ok(commands.every(({ name, source }) => name && source));
			assert.ok((await client.getAvailableModels()).some(({ id }) => id === MODEL));
			const model = await client.setModel(state.model!.provider, MODEL);
			assert.deepEqual([model.provider, model.id], [state.model!.provider, MODEL]);
			assert.deepEqual(await client.getSubagents(), []);
			assert.equal(await client.setSubagentSubscription("progress"), "progress");
			assert.ok(Array.isArray(await client.getLoginProviders()));
			await assert.rejects(client.setModel("nobody", "nothing"), {
				name: "RpcCommandError",
				message: "Model not found: nobody/nothing",
			});
		}),

		scene("a session that goes on", async stage => {
			stage.provider.script(say("Noted."), say("I remember."));
			const client = await start(stage, { keep: "new" });
			await prompt(stage, client, "Remember this.");
			const { sessionId } = await client.getState();
			await stage.until("the agent's exit", client.stop());
			const again = await start(stage, { keep: "continue" });
			const state = await again.getState();
			assert.deepEqual([state.sessionId, state.messageCount], [sessionId, 2]);
			assert.deepEqual(((await again.getMessages()) as Frame[]).map(textOf), ["Remember this.", "Noted."]);
			await prompt(stage, again, "What do you know?");
			assert.ok(stage.provider.requests[1]!.messages.some(({ content }) => content.includes("Remember this.")));
		}),

		scene("a picture", async stage => {
			const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
			stage.provider.script(say("A dot."));
			const client = await start(stage);
			const images = [{ type: "image" as const, data: dot, mimeType: "image/png" }];
			await stage.until("the run's end", client.promptAndWait("What is it?", images));
			assert.match(stage.provider.requests[0]!.messages.at(-1)!.content, /What is it\?/);
			// An agent may shrink a picture or give it another format before it passes it on.
			const { pictures } = stage.provider.requests[0]!.messages.at(-1)!;
			assert.equal(pictures.length, 1);
			assert.match(pictures[0]!, /^data:image\/\w+;base64,/);
			const [asked] = (await client.getMessages()) as Frame[];
			assert.deepEqual(
				asked!.content.map(({ type }: Frame) => type),
				["text", "image"],
			);
		}),

		scene("follow-ups, one at a time and all at once", async stage => {
			for (const [mode, requests] of [
				["one-at-a-time", 3],
				["all", 2],
			] as const) {
				const gate = Promise.withResolvers<void>();
				stage.provider.script(sayHeld("First ", gate.promise, "done."));
				for (let more = 1; more < requests; more++) stage.provider.script(say(`Answer ${more}.`));
				const before = stage.provider.requests.length;
				const client = await start(stage);
				await client.setFollowUpMode(mode);
				const seen = new Recorder(client);
				const idle = client.waitForIdle();
				await client.prompt("Do the first.");
				await stage.until("the first text", seen.first(isText));
				await client.followUp("The second.");
				await client.followUp("The third.");
				assert.equal((await client.getState()).queuedMessageCount, 2);
				gate.resolve();
				await stage.until("the run's end", idle);
				await stage.until("the agent's exit", client.stop());
				const asked = stage.provider.requests.slice(before).map(({ messages }) => messages);
				assert.equal(asked.length, requests, mode);
				assert.match(asked.at(-1)!.at(-1)!.content, /The third\./);
			}
		}),

		scene("a history that is summarised", async stage => {
			const [one, two] = [prose(120_000), prose(130_000)];
			stage.provider.script(say(...pieces(one, 16_384)), say(...pieces(two, 16_384)), say("Ready."));
			const client = await start(stage);
			for (const text of ["First.", "Second.", "Third."]) await prompt(stage, client, text);
			for (let asked = 0; asked < agent.summaryRequests; asked++)
				stage.provider.script(say("The summary of it all."));
			const result = await stage.until("the summary", client.compact("Mind the numbers."));
			assert.match(result.summary, /The summary of it all\./);
			assert.ok(result.tokensBefore > 0);
			assert.match(JSON.stringify(stage.provider.requests.slice(3)), /Mind the numbers\./);
			stage.provider.script(say("Short again."));
			await prompt(stage, client, "Fourth.");
			const size = JSON.stringify(stage.provider.requests.at(-1)!.messages).length;
			assert.ok(size < 240_000, `the model is told less: ${size}`);
			assert.match(JSON.stringify(stage.provider.requests.at(-1)!.messages), /The summary of it all\./);
		}),

		agent.newSessions
			? scene("a new session", async stage => {
					stage.provider.script(say("Noted."), say("I know nothing."));
					const client = await start(stage);
					await prompt(stage, client, "Remember this.");
					const before = await client.getState();
					assert.equal(before.messageCount, 2);
					assert.deepEqual(await client.newSession(), { cancelled: false });
					const after = await client.getState();
					assert.equal(after.messageCount, 0);
					assert.notEqual(after.sessionId, before.sessionId);
					await prompt(stage, client, "What do you know?");
					assert.ok(stage.provider.requests[1]!.messages.every(({ content }) => !content.includes("Remember this.")));
				})
			: scene("a new session, which isn't to be had", async stage => {
					const client = await start(stage);
					const { sessionId } = await client.getState();
					await assert.rejects(client.newSession(), { name: "RpcCommandError", message: /^Not available/ });
					assert.equal((await client.getState()).sessionId, sessionId);
				}),

		scene("a provider that refuses", async stage => {
			stage.provider.script(refuse(400, "the scripted refusal"), say("Better."));
			const client = await start(stage);
			const events = (await prompt(stage, client, "Try.")) as Frame[];
			const end = last(events, "message_end").message;
			assert.deepEqual([end.role, end.stopReason], ["assistant", "error"]);
			assert.match(end.errorMessage, /the scripted refusal/);
			assert.equal(deltas(await prompt(stage, client, "Again.")), "Better.");
		}),

		scene("nothing to compact", async stage => {
			const client = await start(stage);
			await assert.rejects(client.compact(), {
				name: "RpcCommandError",
				message: "Nothing to compact (session too small)",
			});
		}),

		...(["rpc", "rpc-ui"] as const).map(mode =>
			scene(`an approval is given, another is not (${mode})`, async stage => {
				stage.provider.script(call("", agent.shell("echo was-allowed")), say("Done."));
				stage.provider.script(call("", agent.shell("echo was-denied")), say("Then not."));
				const wire = new Wire(mode);
				const client = await start(stage, { wire, tools: "shell", ask: true });
				const seen = new Recorder(client);
				for (const [verdict, isError] of [
					["Approve", false],
					["Deny", true],
				] as const) {
					const asked = stage.until("the dialog", wire.first(isDialog(verdict === "Approve" ? 0 : 1)));
					const over = client.promptAndWait("Run it.");
					const dialog = await asked;
					assert.ok(dialog.title.startsWith(`Allow tool: ${agent.shell("").name}`), dialog.title);
					assert.deepEqual(dialog.options, ["Approve", "Deny"]);
					wire.send({ type: "extension_ui_response", id: dialog.id, value: verdict });
					const events = (await stage.until("the run's end", over)) as Frame[];
					assert.equal(one(events, "tool_execution_end").isError, isError);
				}
				assert.match(stage.provider.requests[1]!.messages.at(-1)!.content, /was-allowed/);
				assert.doesNotMatch(stage.provider.requests[3]!.messages.at(-1)!.content, /^was-denied/);
				assert.equal(seen.events.filter(event => event.type === "agent_end").length, 2);
			}),
		),

		scene("an address of the host's is read", async stage => {
			stage.provider.script(call("", agent.read("db://users/42")), say("Alice."));
			const wire = new Wire();
			const client = await start(stage, { wire, tools: "read" });
			const schemes = [{ scheme: "DB", description: "rows" }];
			const offered = await stage.until(
				"the schemes' response",
				wire.ask({ id: "schemes", type: "set_host_uri_schemes", schemes }),
			);
			assert.deepEqual(offered.data, { schemes: ["db"] });
			const over = client.promptAndWait("Who is user 42?");
			const read = await stage.until(
				"the request for the address",
				wire.first(frame => frame.type === "host_uri_request"),
			);
			assert.deepEqual([read.operation, read.url], ["read", "db://users/42"]);
			wire.send({ type: "host_uri_result", id: read.id, content: "name=Alice\n", contentType: "text/plain" });
			const events = (await stage.until("the run's end", over)) as Frame[];
			assert.equal(one(events, "tool_execution_end").isError, false);
			assert.match(stage.provider.requests[1]!.messages.at(-1)!.content, /name=Alice/);
		}),

		scene("the end of its input", async stage => {
			stage.provider.script(say("Bye."));
			const wire = new Wire();
			const client = await start(stage, { wire });
			await prompt(stage, client, "Say goodbye.");
			assert.equal(await stage.until("the agent's exit", wire.leave()), 0);
		}),

		scene("the client's stop in the middle of a run", async stage => {
			const never = new Promise<void>(() => {});
			stage.provider.script(sayHeld("Half ", never, "never said"));
			const client = await start(stage);
			const seen = new Recorder(client);
			await client.prompt("Talk.");
			await stage.until("the first text", seen.first(isText));
			await stage.until("the agent's exit", client.stop());
			await stage.until("the model's request to be dropped", stage.provider.requests[0]!.gone);
			// It can be started again, as a new session.
			await stage.until("the second start", client.start());
			assert.equal((await client.getState()).messageCount, 0);
		}),
	];
}

const isText = (event: Frame): boolean =>
	event.type === "message_update" && event.assistantMessageEvent.type === "text_delta";

/** A predicate for the dialog of this number; each dialog counts once. */
function isDialog(number: number): (frame: Frame) => boolean {
	let seen = 0;
	return frame => frame.type === "extension_ui_request" && frame.method === "select" && seen++ === number;
}

async function prompt(stage: Stage, client: Client, text: string): Promise<Frame[]> {
	return (await stage.until("the run's end", client.promptAndWait(text))) as Frame[];
}

const updates = (events: Frame[]): Frame[] =>
	events.filter(event => event.type === "message_update").map(event => event.assistantMessageEvent);

function one(events: Frame[], type: string): Frame {
	const found = events.filter(event => event.type === type);
	assert.equal(found.length, 1, `one ${type} expected, ${found.length} came`);
	return found[0]!;
}

function last(events: Frame[], type: string): Frame {
	const found = events.findLast(event => event.type === type);
	assert.ok(found, `no ${type} came`);
	return found;
}

const lookup = (id: number) => ({ name: "lookup_ticket", arguments: { id } });

type Execute = NonNullable<Parameters<Client["setCustomTools"]>[0][number]>["execute"];

function ticketTool(execute: Execute) {
	return {
		name: "lookup_ticket",
		description: "Looks up a ticket",
		parameters: { type: "object", properties: { id: { type: "number" } }, required: ["id"] },
		loadMode: "essential" as const,
		execute,
	};
}
