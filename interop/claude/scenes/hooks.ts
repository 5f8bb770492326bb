/** Hooks of the host's. */

import assert from "node:assert/strict";
import { call, say } from "../../common/provider.ts";
import type { Scene } from "../../common/scene.ts";
import { shell, WRITES, writes } from "../agents.ts";
import { exists, good, type Host, order, read, results, said, scene } from "./host.ts";

export const hooks = (host: Host): Scene[] => [
	scene("hooks around a call", async stage => {
		stage.provider.script(call("", writes("note.txt", "noted")), say("Done."));
		const seen = await host.query(stage, "Write it.", {
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
		const seen = await host.query(stage, "Write it.", { permission: [{ allow: true }], hooks: [{ event: "PreToolUse", answer }] });
		assert.deepEqual(order(seen), ["hook PreToolUse"]);
		assert.ok(!exists(stage, "note.txt"));
		assert.match(results(stage, 1)[0]!.content, /house rule 7/);
		assert.deepEqual(seen.outcomes().map(({ failed }) => failed), [true]);
		good(seen);
	}),

	scene("a hook that allows a call with another input", async stage => {
		stage.provider.script(call("", writes("asked.txt", "noted")), say("Done."));
		const answer = { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "allow" } };
		const seen = await host.query(stage, "Write it.", {
			permission: [{ deny: "not asked" }],
			hooks: [{ event: "PreToolUse", answer, swap: ["asked.txt", "changed.txt"] }],
		});
		assert.deepEqual(order(seen), ["hook PreToolUse"]);
		assert.ok(!exists(stage, "asked.txt"));
		assert.equal(read(stage, "changed.txt"), "noted");
		good(seen);
	}),

	scene("a hook that has the host asked", async stage => {
		stage.provider.script(call("", shell("pwd")), say("Done."));
		const answer = { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "ask", permissionDecisionReason: "look twice" } };
		const seen = await host.query(stage, "Run it.", { permission: [{ allow: true }], hooks: [{ event: "PreToolUse", answer }] });
		assert.deepEqual(order(seen), ["hook PreToolUse", "permission"]);
		assert.match(seen.outcomes()[0]!.text, new RegExp(stage.project));
		good(seen);
	}),

	scene("hooks at a prompt and at a turn's end", async stage => {
		stage.provider.script(say("One."), say("Two."));
		const context = { hookSpecificOutput: { hookEventName: "UserPromptSubmit", additionalContext: "it rains today" } };
		const seen = await host.query(stage, "Greet me.", {
			hooks: [
				{ event: "UserPromptSubmit", answer: context },
				{ event: "Stop", answer: { decision: "block", reason: "say more of it" }, only: 0 },
			],
		});
		assert.deepEqual(order(seen), ["hook UserPromptSubmit", "hook Stop", "hook Stop"]);
		const [prompt, first, second] = seen.all("hook");
		assert.equal(prompt!.input.prompt, "Greet me.");
		assert.deepEqual([first!.input.stop_hook_active, second!.input.stop_hook_active], [false, true]);
		assert.match(said(stage, 0), /it rains today/);
		assert.match(said(stage, 1), /say more of it/);
		assert.deepEqual(seen.texts(), ["One.", "Two."]);
		assert.equal(good(seen).result, "Two.");
	}),

	scene("a hook that answers before the host", async stage => {
		stage.provider.script(call("", writes("note.txt", "noted")), say("Done."));
		const answer = { hookSpecificOutput: { hookEventName: "PermissionRequest", decision: { behavior: "allow" } } };
		const seen = await host.query(stage, "Write it.", { permission: [{ wait: true }], hooks: [{ event: "PermissionRequest", answer }] });
		assert.equal(seen.all("hook")[0]!.input.tool_name, seen.blocks("assistant", "tool_use")[0]!.name);
		assert.equal(seen.all("withdrawn").length, seen.all("permission").length);
		assert.equal(read(stage, "note.txt"), "noted");
		good(seen);
	}),

	scene("a hook that adds to a call's result", async stage => {
		stage.provider.script(call("", shell("pwd")), say("Done."));
		const answer = { hookSpecificOutput: { hookEventName: "PostToolUse", additionalContext: "it rains today" } };
		const seen = await host.query(stage, "Run it.", { allowed_tools: ["Bash"], hooks: [{ event: "PostToolUse", answer }] });
		assert.match(said(stage, 1), /it rains today/);
		good(seen);
	}),

	scene("a hook that ends the turn after a call", async stage => {
		stage.provider.script(call("", shell("pwd")));
		const seen = await host.query(stage, "Run it.", {
			allowed_tools: ["Bash"],
			hooks: [{ event: "PostToolUse", answer: { continue: false, stopReason: "that is enough" } }],
		});
		assert.deepEqual(seen.outcomes().map(({ failed }) => failed), [false]);
		assert.equal(good(seen).terminal_reason, "hook_stopped");
	}),

	scene("a hook that blocks a prompt", async stage => {
		const seen = await host.query(stage, "Greet me.", {
			hooks: [{ event: "UserPromptSubmit", answer: { decision: "block", reason: "not on a Monday" } }],
		});
		assert.equal(stage.provider.requests.length, 0);
		assert.match(good(seen).result!, /not on a Monday/);
		assert.equal(seen.result().num_turns, 0);
	}),
];
