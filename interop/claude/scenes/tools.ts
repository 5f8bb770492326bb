/** Tools: the agent's own, and the host's. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { call, say } from "../../common/provider.ts";
import type { Scene } from "../../common/scene.ts";
import { edits, reads, shell } from "../agents.ts";
import { good, type Host, order, results, scene } from "./host.ts";

export const tools = (host: Host): Scene[] => [
	scene("a tool of the host's", async stage => {
		stage.provider.script(call("", { name: "mcp__house__add", arguments: { a: 19, b: 23 } }), say("It is 42."));
		const seen = await host.query(stage, "Add them.", {
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
		const seen = await host.query(stage, "Add them.", {
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
		const seen = await host.query(stage, "Use them.", {
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

	scene("the agent's own tools", async stage => {
		writeFileSync(join(stage.project, "song.txt"), "one crow\ntwo crows\n");
		stage.provider.script(
			call("", reads(join(stage.project, "song.txt"))),
			call("", edits(join(stage.project, "song.txt"), "two crows", "two owls")),
			call("", shell("cat song.txt; echo to-no-avail >&2; exit 3")),
			call("", reads(join(stage.project, "nowhere.txt"))),
			say("Done."),
		);
		const seen = await host.query(stage, "Do it.", { permission: [{ allow: true }] });
		const [read, edited, ran, lost] = seen.outcomes();
		assert.deepEqual([read!.failed, edited!.failed, ran!.failed, lost!.failed], [false, false, true, true]);
		assert.match(read!.text, /one crow/);
		assert.match(ran!.text, /two owls[^]*to-no-avail/);
		assert.match(results(stage, 3).at(-1)!.content, /two owls/);
		assert.equal(good(seen).num_turns, 5);
	}),
];
