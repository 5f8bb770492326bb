/**
 * What a user of the SDKs sees. Every scene is played against the real Claude Code too, so that what is asked of
 * Turnwire here is what the SDKs' own agent gives.
 */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { call, refuse, say, sayHeld, think } from "../common/provider.ts";
import type { Scene, Stage } from "../common/scene.ts";
import { type Agent, shell, WRITES, writes } from "./agents.ts";
import type { Plan, PlanOptions } from "./plan.ts";
import { type Language, play, type Seen } from "./sdk.ts";

const never = new Promise<never>(() => {});

export function sdkScenes(language: Language, agent: Agent): Scene[] {
	/** A scene whose host does what the plan says; `look` is at what its user saw. */
	const scene = (name: string, play: (stage: Stage) => Promise<void>): Scene => ({ name, play });
	const host = async (stage: Stage, plan: Plan): Promise<Seen> => {
		const seen = await play(stage, language, agent, plan);
		const failed = seen.all("failed");
		assert.deepEqual(failed, [], "the SDK threw nothing");
		return seen;
	};
	const query = (stage: Stage, prompt: string, options?: PlanOptions): Promise<Seen> =>
		host(stage, { style: "query", steps: [{ prompt }], options });
	const client = (stage: Stage, steps: Plan["steps"], options?: PlanOptions): Promise<Seen> =>
		host(stage, { style: "client", steps, options });

	return [
		scene("a query", async stage => {
			stage.provider.script(say("Hello ", "from ", "the model."));
			const seen = await query(stage, "Greet me.");
			assert.deepEqual(seen.texts(), ["Hello from the model."]);
			const [init] = seen.messages("system").filter(({ subtype }) => subtype === "init");
			const result = good(seen);
			assert.equal(result.result, "Hello from the model.");
			assert.equal(result.num_turns, 1);
			assert.equal(result.stop_reason, "end_turn");
			assert.equal(result.session_id, init!.data.session_id);
			assert.equal(init!.data.cwd, stage.project);
			assert.ok(init!.data.tools.length > 0);
			assert.deepEqual([result.usage!.input_tokens, result.usage!.output_tokens], [11, 7]);
			assert.deepEqual(result.permission_denials, []);
			assert.ok(result.duration_ms >= 0 && result.duration_api_ms >= 0);
			const [message] = seen.messages("assistant");
			assert.equal(message!.model, stage.provider.requests[0]!.model);
			assert.match(asked(stage, 0, "user").at(-1)!, /Greet me\./);
		}),

		scene("a conversation of two turns", async stage => {
			stage.provider.script(say("One."), say("Two."));
			const seen = await client(stage, [{ prompt: "First." }, { prompt: "Second." }]);
			assert.deepEqual([seen.texts(0), seen.texts(1)], [["One."], ["Two."]]);
			assert.deepEqual([good(seen, 0).result, good(seen, 1).result], ["One.", "Two."]);
			assert.equal(seen.result(0).session_id, seen.result(1).session_id);
			assert.match(asked(stage, 1, "user")[0]!, /First\./);
			assert.deepEqual(asked(stage, 1, "assistant"), ["One."]);
			assert.match(asked(stage, 1, "user").at(-1)!, /Second\./);
		}),

		scene("thinking", async stage => {
			stage.provider.script(think("Let me see.", "It is ", "42."));
			const seen = await query(stage, "What is it?");
			assert.deepEqual(seen.blocks("assistant", "thinking").map(({ thinking }) => thinking), ["Let me see."]);
			assert.deepEqual(seen.texts(), ["It is 42."]);
			assert.equal(good(seen).result, "It is 42.");
		}),

		scene("line separators in a text", async stage => {
			stage.provider.script(say("one\u2028two\u2029three\u0000é\u{1F680}"));
			const seen = await query(stage, "Say them.");
			assert.deepEqual(seen.texts(), ["one\u2028two\u2029three\u0000é\u{1F680}"]);
		}),

		scene("partial messages", async stage => {
			stage.provider.script(call("I write.", writes("note.txt", "noted")), say("It ", "is ", "done."));
			const seen = await query(stage, "Write it.", { partial: true, permission: [{ allow: true }] });
			const deltas = seen.stream().filter(({ delta }) => delta?.type === "text_delta");
			assert.equal(deltas.map(({ delta }) => delta.text).join(""), "I write.It is done.");
			const kinds = seen.stream().map(({ type }) => type);
			assert.deepEqual(
				kinds.filter((kind, index) => kind !== kinds[index - 1] && kind !== "ping"),
				[
					...["message_start", "content_block_start", "content_block_delta", "content_block_stop"],
					...["content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"],
					...["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"],
				],
			);
			const json = seen.stream().filter(({ delta }) => delta?.type === "input_json_delta");
			const [use] = seen.blocks("assistant", "tool_use");
			assert.deepEqual(JSON.parse(json.map(({ delta }) => delta.partial_json).join("")), use!.input);
			assert.deepEqual(seen.texts(), ["I write.", "It is done."]);
			assert.equal(good(seen).num_turns, 2);
		}),

		scene("an allowed call", async stage => {
			stage.provider.script(call("I write.", writes("note.txt", "noted")), say("Done."));
			const seen = await query(stage, "Write it.", { permission: [{ allow: true }] });
			const [use] = seen.blocks("assistant", "tool_use");
			const [question] = seen.all("permission");
			assert.equal(question!.tool, use!.name);
			assert.equal(question!.id, use!.id);
			assert.match(JSON.stringify(question!.input), /note\.txt/);
			assert.equal(read(stage, "note.txt"), "noted");
			assert.deepEqual(seen.outcomes().map(({ failed }) => failed), [false]);
			assert.equal(seen.blocks("user", "tool_result")[0]!.tool_use_id, use!.id);
			assert.equal(good(seen).result, "Done.");
			assert.deepEqual(good(seen).permission_denials, []);
		}),

		scene("a call that is allowed with another input", async stage => {
			stage.provider.script(call("", writes("asked.txt", "noted")), say("Done."));
			const seen = await query(stage, "Write it.", { permission: [{ allow: true, swap: ["asked.txt", "changed.txt"] }] });
			assert.ok(!existsSync(join(stage.project, "asked.txt")));
			assert.equal(read(stage, "changed.txt"), "noted");
			assert.deepEqual(seen.outcomes().map(({ failed }) => failed), [false]);
			good(seen);
		}),

		scene("a call that is denied", async stage => {
			stage.provider.script(call("", writes("note.txt", "noted")), say("Then not."));
			const seen = await query(stage, "Write it.", { permission: [{ deny: "not on a Monday" }] });
			assert.ok(!existsSync(join(stage.project, "note.txt")));
			const [outcome] = seen.outcomes();
			assert.equal(outcome!.failed, true);
			assert.match(outcome!.text, /not on a Monday/);
			assert.match(results(stage, 1)[0]!.content, /not on a Monday/);
			assert.equal(results(stage, 1)[0]!.failed, true);
			const [use] = seen.blocks("assistant", "tool_use");
			assert.deepEqual(
				good(seen).permission_denials!.map(({ tool_name, tool_use_id }) => [tool_name, tool_use_id]),
				[[use!.name, use!.id]],
			);
		}),

		scene("a call that is denied and ends the turn", async stage => {
			stage.provider.script(call("", writes("note.txt", "noted")), say("On we go."));
			const seen = await client(stage, [{ prompt: "Write it." }, { prompt: "And now?" }], {
				permission: [{ deny: "stop it all", interrupt: true }],
			});
			assert.ok(!existsSync(join(stage.project, "note.txt")));
			interrupted(seen, 0);
			assert.equal(good(seen, 1).result, "On we go.");
		}),

		scene("a permission callback that throws", async stage => {
			stage.provider.script(call("", writes("note.txt", "noted")), say("Then not."));
			const seen = await query(stage, "Write it.", { permission: [{ fail: "the callback broke" }] });
			assert.ok(!existsSync(join(stage.project, "note.txt")));
			const [outcome] = seen.outcomes();
			assert.equal(outcome!.failed, true);
			assert.match(outcome!.text, /the callback broke/);
			good(seen);
		}),

		scene("a call that nobody can allow", async stage => {
			stage.provider.script(call("", writes("note.txt", "noted")), say("Then not."));
			const seen = await query(stage, "Write it.");
			assert.ok(!existsSync(join(stage.project, "note.txt")));
			assert.deepEqual(seen.outcomes().map(({ failed }) => failed), [true]);
			assert.equal(good(seen).permission_denials!.length, 1);
		}),

		scene("two calls, one of them denied", async stage => {
			stage.provider.script(call("", writes("one.txt", "1"), writes("two.txt", "2")), say("Half done."));
			const seen = await query(stage, "Write them.", { permission: [{ allow: true }, { deny: "enough" }] });
			const questions = seen.all("permission");
			assert.equal(questions.length, 2);
			const denied = questions[1]!.id;
			assert.deepEqual(
				seen.blocks("user", "tool_result").map(({ tool_use_id, is_error }) => [tool_use_id === denied, is_error === true]).sort(),
				[
					[false, false],
					[true, true],
				],
			);
			assert.equal(["one.txt", "two.txt"].filter(name => existsSync(join(stage.project, name))).length, 1);
			assert.equal(good(seen).permission_denials!.length, 1);
		}),

		scene("a call that is allowed for the session", async stage => {
			stage.provider.script(call("", writes("one.txt", "1")), call("", writes("two.txt", "2")), say("Done."));
			const seen = await query(stage, "Write them.", {
				permission: [{ allow: true, updates: [{ type: "setMode", mode: "acceptEdits", destination: "session" }] }],
			});
			assert.equal(seen.all("permission").length, 1);
			assert.deepEqual([read(stage, "one.txt"), read(stage, "two.txt")], ["1", "2"]);
			good(seen);
		}),

		scene("hooks around a call", async stage => {
			stage.provider.script(call("", writes("note.txt", "noted")), say("Done."));
			const seen = await query(stage, "Write it.", {
				permission: [{ allow: true }],
				hooks: [{ event: "PreToolUse", matcher: WRITES }, { event: "PreToolUse", matcher: "Nothing" }, { event: "PostToolUse" }],
			});
			assert.deepEqual(order(seen), ["hook PreToolUse", "permission", "hook PostToolUse"]);
			const [before, after] = seen.all("hook");
			const [use] = seen.blocks("assistant", "tool_use");
			for (const hook of [before!, after!]) {
				assert.equal(hook.id, use!.id);
				assert.equal(hook.input.hook_event_name, hook.hook);
				assert.equal(hook.input.tool_name, use!.name);
				assert.equal(hook.input.tool_use_id, use!.id);
				assert.equal(hook.input.cwd, stage.project);
				assert.equal(hook.input.session_id, seen.result().session_id);
				assert.match(JSON.stringify(hook.input.tool_input), /note\.txt/);
			}
			assert.ok("tool_response" in after!.input);
			assert.equal(read(stage, "note.txt"), "noted");
			good(seen);
		}),

		scene("a hook that denies a call", async stage => {
			stage.provider.script(call("", writes("note.txt", "noted")), say("Then not."));
			const answer = { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "deny", permissionDecisionReason: "house rule 7" } };
			const seen = await query(stage, "Write it.", { permission: [{ allow: true }], hooks: [{ event: "PreToolUse", answer }] });
			assert.deepEqual(order(seen), ["hook PreToolUse"]);
			assert.ok(!existsSync(join(stage.project, "note.txt")));
			assert.match(results(stage, 1)[0]!.content, /house rule 7/);
			assert.deepEqual(seen.outcomes().map(({ failed }) => failed), [true]);
			good(seen);
		}),

		scene("a hook that allows a call with another input", async stage => {
			stage.provider.script(call("", writes("asked.txt", "noted")), say("Done."));
			const answer = { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "allow" } };
			const seen = await query(stage, "Write it.", {
				permission: [{ deny: "not asked" }],
				hooks: [{ event: "PreToolUse", answer, swap: ["asked.txt", "changed.txt"] }],
			});
			assert.deepEqual(order(seen), ["hook PreToolUse"]);
			assert.ok(!existsSync(join(stage.project, "asked.txt")));
			assert.equal(read(stage, "changed.txt"), "noted");
			good(seen);
		}),

		scene("a hook that has the host asked", async stage => {
			stage.provider.script(call("", shell("pwd")), say("Done."));
			const answer = { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "ask", permissionDecisionReason: "look twice" } };
			const seen = await query(stage, "Run it.", { permission: [{ allow: true }], hooks: [{ event: "PreToolUse", answer }] });
			assert.deepEqual(order(seen), ["hook PreToolUse", "permission"]);
			assert.match(seen.outcomes()[0]!.text, new RegExp(stage.project));
			good(seen);
		}),

		scene("hooks at a prompt and at a turn's end", async stage => {
			stage.provider.script(say("One."), say("Two."));
			const context = { hookSpecificOutput: { hookEventName: "UserPromptSubmit", additionalContext: "it rains today" } };
			const seen = await query(stage, "Greet me.", {
				hooks: [
					{ event: "UserPromptSubmit", answer: context },
					{ event: "Stop", answer: { decision: "block", reason: "say more of it" }, only: 0 },
				],
			});
			assert.deepEqual(order(seen), ["hook UserPromptSubmit", "hook Stop", "hook Stop"]);
			const [prompt, first, second] = seen.all("hook");
			assert.equal(prompt!.input.prompt, "Greet me.");
			assert.deepEqual([first!.input.stop_hook_active, second!.input.stop_hook_active], [false, true]);
			assert.match(all(stage, 0), /it rains today/);
			assert.match(all(stage, 1), /say more of it/);
			assert.deepEqual(seen.texts(), ["One.", "Two."]);
			assert.equal(good(seen).result, "Two.");
		}),

		scene("a tool of the host's", async stage => {
			stage.provider.script(call("", { name: "mcp__house__add", arguments: { a: 19, b: 23 } }), say("It is 42."));
			const seen = await query(stage, "Add them.", {
				tools: [{ name: "add", does: "sum" }],
				allowed_tools: ["mcp__house__add"],
			});
			assert.ok(stage.provider.requests[0]!.tools.includes("mcp__house__add"));
			assert.deepEqual(
				seen.all("tool").map(({ tool, input }) => [tool, input]),
				[["add", { a: 19, b: 23 }]],
			);
			assert.deepEqual(seen.outcomes(), [{ failed: false, text: "sum 42" }]);
			assert.match(results(stage, 1)[0]!.content, /sum 42/);
			assert.equal(good(seen).result, "It is 42.");
		}),

		scene("a tool of the host's that is asked about", async stage => {
			stage.provider.script(call("", { name: "mcp__house__add", arguments: { a: 1, b: 2 } }), say("Seen."));
			const seen = await query(stage, "Add them.", {
				tools: [{ name: "add", does: "sum" }],
				permission: [{ allow: true }],
			});
			assert.deepEqual(order(seen), ["permission", "tool"]);
			assert.equal(seen.all("permission")[0]!.tool, "mcp__house__add");
			assert.deepEqual(seen.outcomes(), [{ failed: false, text: "sum 3" }]);
			good(seen);
		}),

		scene("tools of the host's that fail", async stage => {
			stage.provider.script(
				call("", { name: "mcp__house__bad", arguments: { a: 1, b: 2 } }),
				call("", { name: "mcp__house__worse", arguments: { a: 1, b: 2 } }),
				say("Seen."),
			);
			const seen = await query(stage, "Use them.", {
				tools: [
					{ name: "bad", does: "fail" },
					{ name: "worse", does: "throw" },
				],
				allowed_tools: ["mcp__house__bad", "mcp__house__worse"],
			});
			assert.deepEqual(seen.outcomes().map(({ failed }) => failed), [true, true]);
			assert.match(seen.outcomes()[0]!.text, /the tool failed so/);
			assert.match(seen.outcomes()[1]!.text, /the tool threw this/);
			good(seen);
		}),

		scene("an interrupt while the model speaks", async stage => {
			stage.provider.script(sayHeld("I begin", never, " and never end."), say("On we go."));
			const seen = await client(stage, [{ prompt: "Talk.", interrupt: "delta" }, { prompt: "And now?" }], { partial: true });
			interrupted(seen, 0);
			await stage.provider.requests[0]!.gone;
			assert.equal(good(seen, 1).result, "On we go.");
			assert.deepEqual(seen.texts(1), ["On we go."]);
			assert.match(asked(stage, 1, "user").at(-1)!, /And now\?/);
		}),

		scene("an interrupt while an approval is open", async stage => {
			stage.provider.script(call("", writes("note.txt", "noted")), say("On we go."));
			const seen = await client(stage, [{ prompt: "Write it.", interrupt: "asked" }, { prompt: "And now?" }], {
				permission: [{ wait: true }],
			});
			assert.equal(seen.all("withdrawn").length, 1);
			assert.ok(!existsSync(join(stage.project, "note.txt")));
			interrupted(seen, 0);
			assert.equal(good(seen, 1).result, "On we go.");
			assert.equal(results(stage, 1).length, 1);
		}),

		scene("an interrupt while a tool runs", async stage => {
			stage.provider.script(call("", shell("touch begun; sleep 60; touch ended")), say("On we go."));
			const steps: Plan["steps"] = [{ prompt: "Run it.", interrupt: { file: "begun" } }, { prompt: "And now?" }];
			const seen = await client(stage, steps, { permission: [{ allow: true }] });
			assert.ok(existsSync(join(stage.project, "begun")) && !existsSync(join(stage.project, "ended")));
			interrupted(seen, 0);
			assert.equal(good(seen, 1).result, "On we go.");
			assert.equal(results(stage, 1).length, 1);
		}),

		scene("an interrupt when nothing runs", async stage => {
			stage.provider.script(say("On we go."));
			const seen = await client(stage, [{ ask: "interrupt" }, { prompt: "And now?" }]);
			assert.equal(seen.all("answer")[0]!.error, undefined);
			assert.equal(good(seen, 1).result, "On we go.");
		}),

		scene("what is changed between turns", async stage => {
			stage.provider.script(say("One."), call("", writes("note.txt", "noted")), say("Two."));
			const steps: Plan["steps"] = [
				{ prompt: "First." },
				{ ask: "set_permission_mode", value: "acceptEdits" },
				{ ask: "set_model", value: "claude-haiku-4-5" },
				{ prompt: "Second." },
			];
			const seen = await client(stage, steps, { permission: [{ deny: "not asked" }] });
			assert.deepEqual(seen.all("answer").map(({ error }) => error), [undefined, undefined]);
			assert.equal(seen.all("permission").length, 0);
			assert.equal(read(stage, "note.txt"), "noted");
			assert.match(stage.provider.requests[1]!.model, /^claude-haiku-4-5/);
			assert.notEqual(stage.provider.requests[0]!.model, stage.provider.requests[1]!.model);
			assert.equal(good(seen, 3).result, "Two.");
		}),

		scene("what the agent says of itself", async stage => {
			stage.provider.script(say("Yes."));
			const steps: Plan["steps"] = [{ ask: "server_info" }, { prompt: "Are you there?" }, { ask: "mcp_status" }, { ask: "context_usage" }];
			const seen = await client(stage, steps, { tools: [{ name: "add", does: "sum" }] });
			const [info, mcp, context] = seen.all("answer").map(({ value, error }) => {
				assert.equal(error, undefined);
				return value;
			});
			assert.ok(Array.isArray(info.commands) && Array.isArray(info.models));
			assert.equal(typeof info.output_style, "string");
			assert.deepEqual(mcp.mcpServers.map(({ name }: { name: string }) => name), ["house"]);
			assert.ok(context.maxTokens > 0 && context.totalTokens >= 0 && Array.isArray(context.categories));
			good(seen, 1);
		}),

		scene("a system prompt of the host's", async stage => {
			stage.provider.script(say("Aye."));
			const seen = await query(stage, "Greet me.", { system_prompt: "You speak as sailors do." });
			assert.match(asked(stage, 0, "system").join("\n"), /You speak as sailors do\./);
			good(seen);
		}),

		scene("a session that goes on", async stage => {
			stage.provider.script(say("I keep it."), say("Blue."));
			const first = good(await query(stage, "My colour is blue."));
			const seen = await query(stage, "Which is it?", { resume: first.session_id });
			assert.equal(good(seen).result, "Blue.");
			assert.equal(seen.result().session_id, first.session_id);
			assert.match(asked(stage, 1, "user").join("\n"), /My colour is blue\./);
			assert.deepEqual(asked(stage, 1, "assistant"), ["I keep it."]);
		}),

		scene("more turns than are allowed", async stage => {
			stage.provider.script(call("", writes("note.txt", "noted")));
			const seen = await play(stage, language, agent, {
				style: "client",
				steps: [{ prompt: "Write it." }],
				options: { max_turns: 1, permission: [{ allow: true }] },
			});
			assert.equal(seen.result().subtype, "error_max_turns");
			assert.equal(seen.result().is_error, true);
			assert.equal(read(stage, "note.txt"), "noted");
		}),

		scene("a provider that refuses", async stage => {
			stage.provider.script(refuse(400, "the scripted refusal"), say("On we go."));
			const seen = await client(stage, [{ prompt: "Try." }, { prompt: "And now?" }]);
			const result = seen.result(0);
			assert.equal(result.is_error, true);
			assert.match(result.result ?? result.errors!.join("\n"), /the scripted refusal/);
			assert.equal(good(seen, 1).result, "On we go.");
		}),

		scene("a query that a provider refuses", async stage => {
			stage.provider.script(refuse(400, "the scripted refusal"));
			const seen = await play(stage, language, agent, { style: "query", steps: [{ prompt: "Try." }] });
			assert.equal(seen.result().is_error, true);
			// The exit code of the agent is an error of its own; it says what the result said.
			assert.match(seen.all("failed")[0]!.text, /the scripted refusal/);
		}),

		scene("a provider that is overloaded for a moment", async stage => {
			stage.provider.script(refuse(529, "come back later"), say("Here I am."));
			const seen = await query(stage, "Try.");
			assert.equal(good(seen).result, "Here I am.");
			assert.equal(stage.provider.requests.length, 2);
		}),
	];
}

/** The result of a step that ended well. */
function good(seen: Seen, step = 0) {
	const result = seen.result(step);
	assert.deepEqual([result.subtype, result.is_error], ["success", false], `step ${step}: ${result.result ?? result.errors?.join("; ")}`);
	return result;
}

/** A step that was interrupted says so in its result. */
function interrupted(seen: Seen, step: number): void {
	const result = seen.result(step);
	assert.deepEqual([result.subtype, result.is_error], ["error_during_execution", true]);
	assert.ok(Array.isArray(result.errors));
}

/** What callbacks were called, in order. */
const order = (seen: Seen): string[] =>
	seen.events.flatMap(event => {
		if (event.event === "hook") return [`hook ${event.hook}`];
		return event.event === "permission" || event.event === "tool" ? [event.event] : [];
	});

/** The texts of a request's messages of one role. */
const asked = (stage: Stage, request: number, role: string): string[] =>
	stage.provider.requests[request]!.messages.filter(message => message.role === role).map(({ content }) => content);

/** All that a request says; what hooks add has no fixed place. */
const all = (stage: Stage, request: number): string =>
	stage.provider.requests[request]!.messages.map(({ content }) => content).join("\n");

/** The results of tools that the model was told last. */
function results(stage: Stage, request: number) {
	return stage.provider.requests[request]!.messages.filter(({ role }) => role === "tool");
}

const read = (stage: Stage, name: string): string => readFileSync(join(stage.project, name), "utf8");
