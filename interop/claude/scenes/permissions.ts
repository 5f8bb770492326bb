/** The permission callback. */

import assert from "node:assert/strict";
import { call, say } from "../../common/provider.ts";
import type { Scene } from "../../common/scene.ts";
import { shell, writes } from "../agents.ts";
import { exists, good, type Host, interrupted, read, results, scene } from "./host.ts";

export const permissions = (host: Host): Scene[] => [
	scene("an allowed call", async stage => {
		stage.provider.script(call("I write.", writes("note.txt", "noted")), say("Done."));
		const seen = await host.query(stage, "Write it.", { permission: [{ allow: true }] });
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
		const seen = await host.query(stage, "Write it.", { permission: [{ allow: true, swap: ["asked.txt", "changed.txt"] }] });
		assert.ok(!exists(stage, "asked.txt"));
		assert.equal(read(stage, "changed.txt"), "noted");
		assert.deepEqual(seen.outcomes().map(({ failed }) => failed), [false]);
		good(seen);
	}),

	scene("a call that is denied", async stage => {
		stage.provider.script(call("", writes("note.txt", "noted")), say("Then not."));
		const seen = await host.query(stage, "Write it.", { permission: [{ deny: "not on a Monday" }] });
		assert.ok(!exists(stage, "note.txt"));
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
		const seen = await host.client(stage, [{ prompt: "Write it." }, { prompt: "And now?" }], {
			permission: [{ deny: "stop it all", interrupt: true }],
		});
		assert.ok(!exists(stage, "note.txt"));
		interrupted(seen, 0);
		assert.equal(good(seen, 1).result, "On we go.");
	}),

	scene("a permission callback that throws", async stage => {
		stage.provider.script(call("", writes("note.txt", "noted")), say("Then not."));
		const seen = await host.query(stage, "Write it.", { permission: [{ fail: "the callback broke" }] });
		assert.ok(!exists(stage, "note.txt"));
		const [outcome] = seen.outcomes();
		assert.equal(outcome!.failed, true);
		assert.match(outcome!.text, /the callback broke/);
		good(seen);
	}),

	scene("a call that nobody can allow", async stage => {
		stage.provider.script(call("", writes("note.txt", "noted")), say("Then not."));
		const seen = await host.query(stage, "Write it.");
		assert.ok(!exists(stage, "note.txt"));
		assert.deepEqual(seen.outcomes().map(({ failed }) => failed), [true]);
		assert.equal(good(seen).permission_denials!.length, 1);
	}),

	scene("two calls, one of them denied", async stage => {
		stage.provider.script(call("", writes("one.txt", "1"), writes("two.txt", "2")), say("Half done."));
		const seen = await host.query(stage, "Write them.", { permission: [{ allow: true }, { deny: "enough" }] });
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
		assert.equal(["one.txt", "two.txt"].filter(name => exists(stage, name)).length, 1);
		assert.equal(good(seen).permission_denials!.length, 1);
	}),

	scene("a call that is allowed for the session", async stage => {
		stage.provider.script(call("", writes("one.txt", "1")), call("", writes("two.txt", "2")), say("Done."));
		const seen = await host.query(stage, "Write them.", {
			permission: [{ allow: true, updates: [{ type: "setMode", mode: "acceptEdits", destination: "session" }] }],
		});
		assert.equal(seen.all("permission").length, 1);
		assert.deepEqual([read(stage, "one.txt"), read(stage, "two.txt")], ["1", "2"]);
		good(seen);
	}),

	scene("a command that is allowed as the agent suggests", async stage => {
		stage.provider.script(call("", shell("touch one.txt")), call("", shell("touch one.txt")), say("Done."));
		const seen = await host.query(stage, "Run it.", { permission: [{ allow: true, updates: "suggested" }] });
		const [question, ...more] = seen.all("permission");
		assert.deepEqual(more, []);
		assert.ok(question!.suggestions.length > 0);
		assert.deepEqual(seen.outcomes().map(({ failed }) => failed), [false, false]);
		good(seen);
	}),

	scene("tools that the options allow and forbid", async stage => {
		stage.provider.script(call("", writes("note.txt", "noted")), say("Done."));
		const seen = await host.query(stage, "Write it.", {
			permission: [{ deny: "not asked" }],
			allowed_tools: ["Write"],
			disallowed_tools: ["Bash"],
		});
		assert.equal(seen.all("permission").length, 0);
		assert.equal(read(stage, "note.txt"), "noted");
		assert.ok(!stage.provider.requests[0]!.tools.includes("Bash"));
		good(seen);
	}),

	scene("edits that the mode allows", async stage => {
		stage.provider.script(call("", writes("note.txt", "noted")), say("Done."));
		const seen = await host.query(stage, "Write it.", { permission: [{ deny: "not asked" }], permission_mode: "acceptEdits" });
		assert.equal(seen.all("permission").length, 0);
		assert.equal(read(stage, "note.txt"), "noted");
		good(seen);
	}),

	scene("a mode in which nobody is asked", async stage => {
		stage.provider.script(call("", writes("note.txt", "noted")), say("Then not."));
		const seen = await host.query(stage, "Write it.", { permission: [{ allow: true }], permission_mode: "dontAsk" });
		assert.equal(seen.all("permission").length, 0);
		assert.ok(!exists(stage, "note.txt"));
		assert.equal(good(seen).permission_denials!.length, 1);
	}),
];
