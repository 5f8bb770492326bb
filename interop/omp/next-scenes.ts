/**
 * What a user of the newest release's client sees besides: how each prompt ended, when the session is settled, which
 * events come, and the session's entries. That release's own agent can't be installed whole everywhere, so these
 * scenes are played with Turnwire alone; what they ask is what recordings of that agent show.
 */

import assert from "node:assert/strict";
import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Agent } from "./agents.ts";
import { type ClientOptions, clients, type Frame, Recorder, start as startClient, textOf } from "./client.ts";
import { refuse, say, sayHeld } from "../common/provider.ts";
import type { Scene, Stage } from "../common/scene.ts";

/** Puts down a session with this many messages, to go on with; gives what they say. */
function writeSession(stage: Stage, count: number): string[] {
	const id = "long";
	const project = realpathSync(stage.project);
	const texts = Array.from({ length: count }, (_, at) => `Message ${at} ${"é".repeat(at % 50)}`);
	const line = (text: string, at: number) => ({
		...{ type: "message", id: at + 1, role: at % 2 ? "assistant" : "user", at: 1_796_008_000_000 + at },
		...{ content: [{ type: "text", text }], origin: at % 2 ? "harness" : "host" },
	});
	const head = { type: "session", version: 1, id, project, created_at: 1_796_008_000_000 };
	mkdirSync(stage.sessions, { recursive: true });
	writeFileSync(join(stage.sessions, `${id}.jsonl`), [head, ...texts.map(line)].map(it => `${JSON.stringify(it)}\n`).join(""));
	const entry = { id, project, title: "Long", created_at: 1_796_008_000_000, updated_at: 1_796_008_000_000 };
	writeFileSync(join(stage.sessions, "index.json"), JSON.stringify({ version: 1, sessions: [entry] }));
	return texts;
}

const NextClient = clients["18.3.4"];

export function nextScenes(agent: Agent): Scene[] {
	const scene = (name: string, play: Scene["play"]): Scene => ({ name, play });
	const start = async (stage: Stage, options: ClientOptions = {}) => {
		const client = await startClient(NextClient, stage, agent, options);
		const seen = new Recorder(client);
		client.onPromptResult(result => seen.add(result as Frame));
		client.onSessionSettled(() => seen.add({ type: "session_settled" }));
		return { client, seen };
	};
	const settled = (stage: Stage, seen: Recorder): Promise<Frame> =>
		stage.until(
			"the session to be settled",
			seen.first(event => event.type === "session_settled"),
		);

	return [
		scene("how a prompt ended", async stage => {
			stage.provider.script(say("Hello."));
			const { client, seen } = await start(stage);
			const id = await client.prompt("Greet me.");
			await settled(stage, seen);
			const result = { type: "prompt_result", id, agentInvoked: true, status: "completed", sessionSettled: true };
			assert.deepEqual(seen.events.slice(-2), [result, { type: "session_settled" }]);
			assert.deepEqual(seen.events.at(-3)!.type, "agent_end");
			assert.equal(seen.events.at(-3)!.yielded, true);
			assert.equal((await client.getState()).isSettled, true);
			await stage.until("a session that is settled already", client.waitForSettled());
		}),

		scene("messages have ids", async stage => {
			stage.provider.script(say("Hello ", "again."));
			const { client, seen } = await start(stage);
			await stage.until("the run's end", client.promptAndWait("Greet me."));
			const ids = (role: string): string[] => [
				...new Set(seen.events.filter(event => event.message?.role === role && event.messageId).map(event => event.messageId)),
			];
			assert.equal(ids("user").length, 1);
			assert.equal(ids("assistant").length, 1);
			assert.notEqual(ids("user")[0], ids("assistant")[0]);
		}),

		scene("a prompt into a running turn is refused", async stage => {
			const gate = Promise.withResolvers<void>();
			stage.provider.script(sayHeld("Wait ", gate.promise, "for it."));
			const { client, seen } = await start(stage);
			await client.prompt("Talk.");
			await stage.until(
				"the first text",
				seen.first(event => event.type === "message_update"),
			);
			await assert.rejects(client.prompt("Me too."), /^RpcCommandError: Agent is already processing\. /);
			gate.resolve();
			await settled(stage, seen);
			const results = seen.events.filter(event => event.type === "prompt_result" && event.agentInvoked);
			assert.deepEqual(
				results.map(({ status }) => status),
				["completed"],
			);
		}),

		scene("how an aborted prompt ended", async stage => {
			const never = new Promise<void>(() => {});
			stage.provider.script(sayHeld("Half ", never, "never said"));
			const { client, seen } = await start(stage);
			const id = await client.prompt("Talk.");
			await stage.until(
				"the first text",
				seen.first(event => event.type === "message_update"),
			);
			await stage.until("the abort's response", client.abort());
			await settled(stage, seen);
			const result = { type: "prompt_result", id, agentInvoked: true, status: "aborted", sessionSettled: true };
			assert.deepEqual(seen.events.slice(-2), [result, { type: "session_settled" }]);
		}),

		scene("how a prompt ended that the provider refused", async stage => {
			stage.provider.script(refuse(400, "the scripted refusal"));
			const { client, seen } = await start(stage);
			const id = await client.prompt("Try.");
			await settled(stage, seen);
			const result = seen.events.at(-2)!;
			assert.deepEqual([result.type, result.id, result.status], ["prompt_result", id, "error"]);
			assert.deepEqual([result.error.retryable, result.error.httpStatus], [false, 400]);
			assert.match(result.error.message, /the scripted refusal/);
		}),

		scene("only the events that were asked for", async stage => {
			stage.provider.script(say("Hello."), say("Once more."));
			const { client, seen } = await start(stage);
			assert.deepEqual(await client.setEventFilter(["message_end"]), ["message_end"]);
			await stage.until("the run's end", client.promptAndWait("Greet me."));
			await settled(stage, seen);
			assert.deepEqual(
				seen.events.map(({ type }) => type),
				["message_end", "message_end", "prompt_result", "session_settled"],
			);
			assert.equal(await client.setEventFilter(null), null);
			const events = await stage.until("the run's end", client.promptAndWait("And again."));
			assert.equal(events.at(-1)!.type, "agent_end");
		}),

		scene("the entries of a session", async stage => {
			stage.provider.script(say("One."), say("Two."));
			const { client } = await start(stage);
			await stage.until("the run's end", client.promptAndWait("First."));
			const before = await client.getEntries();
			await stage.until("the run's end", client.promptAndWait("Second."));
			const since = await client.getEntries(before.leafId!);
			const messages = since.entries.filter(entry => entry.type === "message") as Frame[];
			assert.deepEqual(
				messages.map(({ message }) => textOf(message)),
				["Second.", "Two."],
			);
			assert.equal(messages[0]!.parentId, before.leafId);
			assert.equal(messages.at(-1)!.id, since.leafId);
			const { tree, leafId } = await client.getTree();
			assert.equal(leafId, since.leafId);
			assert.equal(tree.length, 1);
			await assert.rejects(client.getEntries("nowhere"), {
				message: "Unknown entries cursor: nowhere",
				code: "unknown_since",
			});
		}),

		scene("a history of 10,000 messages, page by page", async stage => {
			stage.provider.script(say("I have it all."));
			const texts = writeSession(stage, 10_000);
			const { client } = await start(stage, { keep: "continue" });
			// The client drains the pages, as many as it takes, and checks their total and their cursors.
			const messages = (await stage.until("all pages", client.getMessages())) as Frame[];
			assert.equal(messages.length, 10_000);
			assert.deepEqual(messages.map(textOf), texts);
			const first = await client.getMessagesPage({ limit: 3 });
			assert.equal(first.totalMessages, 10_000);
			const second = await client.getMessagesPage({ limit: 3, cursor: first.nextCursor });
			assert.deepEqual((second.messages as Frame[]).map(textOf), texts.slice(3, 6));
			for (const limit of [0, 257]) {
				await assert.rejects(client.getMessagesPage({ limit }), {
					message: "RPC message page limit must be between 1 and 256",
					code: undefined,
				});
			}
			await stage.until("the run's end", client.promptAndWait("What do you have?"));
			await assert.rejects(client.getMessagesPage({ cursor: first.nextCursor }), { code: "stale_cursor" });
			assert.equal((await client.getMessages()).length, 10_002);
		}),

		scene("another session while a reply streams", async stage => {
			const never = new Promise<void>(() => {});
			stage.provider.script(say("Noted."), sayHeld("Half ", never, "never said"), say("I remember."));
			const { client, seen } = await start(stage, { keep: "new" });
			await stage.until("the run's end", client.promptAndWait("Remember this."));
			const first = await client.getState();
			assert.deepEqual(await client.newSession(first.sessionFile), { cancelled: false });
			const id = await client.prompt("Talk.");
			await stage.until(
				"the first text",
				seen.first(event => event.type === "message_update" && event.assistantMessageEvent.delta === "Half "),
			);
			const { sessionFile } = await client.getState();
			assert.notEqual(sessionFile, first.sessionFile);
			const before = seen.events.length;
			assert.deepEqual(await stage.until("the change", client.switchSession(first.sessionFile!)), { cancelled: false });
			const result = { type: "prompt_result", id, agentInvoked: true, status: "aborted", sessionSettled: true };
			assert.deepEqual(seen.events.slice(before), [result, { type: "session_settled" }]);
			const state = await client.getState();
			assert.deepEqual([state.sessionId, state.messageCount, state.isStreaming], [first.sessionId, 2, false]);
			await stage.until("the run's end", client.promptAndWait("What do you know?"));
			assert.ok(stage.provider.requests.at(-1)!.messages.some(({ content }) => content.includes("Remember this.")));
			// Back again: what was shown when it was left is there. And what isn't, isn't.
			await client.switchSession(sessionFile!);
			assert.deepEqual(((await client.getMessages()) as Frame[]).map(textOf), ["Talk.", "Half "]);
			const [asked] = await client.getBranchMessages();
			assert.deepEqual(await client.branch(asked!.entryId), { text: "Talk.", cancelled: false });
			assert.equal((await client.getState()).messageCount, 0);
			await assert.rejects(client.switchSession("/nowhere.jsonl"), { message: "File not found: /nowhere.jsonl" });
			const opened = await client.openSession(`${stage.sessions}/thread`);
			assert.deepEqual([opened.cancelled, opened.resumed], [false, false]);
		}),

		scene("the levels of thinking", async stage => {
			const { client } = await start(stage);
			assert.equal((await client.getAvailableThinkingLevels())[0], "off");
		}),
	];
}
