/** Interrupts, settings and questions. */

import assert from "node:assert/strict";
import { call, say, sayHeld } from "../../common/provider.ts";
import type { Scene } from "../../common/scene.ts";
import { shell, writes } from "../agents.ts";
import type { Plan } from "../plan.ts";
import { asked, exists, good, type Host, interrupted, read, results, scene } from "./host.ts";

const never = new Promise<never>(() => {});

export const control = (host: Host): Scene[] => [
	scene("an interrupt while the model speaks", async stage => {
		stage.provider.script(sayHeld("I begin", never, " and never end."), say("On we go."));
		const seen = await host.client(stage, [{ prompt: "Talk.", interrupt: "delta" }, { prompt: "And now?" }], { partial: true });
		interrupted(seen, 0);
		await stage.provider.requests[0]!.gone;
		assert.equal(good(seen, 1).result, "On we go.");
		assert.deepEqual(seen.texts(1), ["On we go."]);
		assert.match(asked(stage, 1, "user").at(-1)!, /And now\?/);
	}),

	scene("an interrupt while an approval is open", async stage => {
		stage.provider.script(call("", writes("note.txt", "noted")), say("On we go."));
		const seen = await host.client(stage, [{ prompt: "Write it.", interrupt: "asked" }, { prompt: "And now?" }], {
			permission: [{ wait: true }],
		});
		assert.equal(seen.all("withdrawn").length, 1);
		assert.ok(!exists(stage, "note.txt"));
		interrupted(seen, 0);
		assert.equal(good(seen, 1).result, "On we go.");
		assert.equal(results(stage, 1).length, 1);
	}),

	scene("an interrupt while a tool runs", async stage => {
		stage.provider.script(call("", shell("touch begun; sleep 60; touch ended")), say("On we go."));
		const steps: Plan["steps"] = [{ prompt: "Run it.", interrupt: { file: "begun" } }, { prompt: "And now?" }];
		const seen = await host.client(stage, steps, { permission: [{ allow: true }] });
		assert.ok(exists(stage, "begun") && !exists(stage, "ended"));
		interrupted(seen, 0);
		assert.equal(good(seen, 1).result, "On we go.");
		assert.equal(results(stage, 1).length, 1);
	}),

	scene("an interrupt when nothing runs", async stage => {
		stage.provider.script(say("On we go."));
		const seen = await host.client(stage, [{ ask: "interrupt" }, { prompt: "And now?" }]);
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
		const seen = await host.client(stage, steps, { permission: [{ deny: "not asked" }] });
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
		const seen = await host.client(stage, steps, { tools: [{ name: "add", does: "sum" }] });
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

	scene("files that are set back", async stage => {
		stage.provider.script(call("", writes("note.txt", "noted")), say("Done."));
		const seen = await host.client(stage, [{ prompt: "Write it." }, { ask: "rewind" }], {
			permission: [{ allow: true }],
			checkpoints: true,
		});
		assert.deepEqual(seen.outcomes().map(({ failed }) => failed), [false]);
		assert.ok(seen.messages("user").some(({ uuid, blocks }) => uuid && blocks.some(block => block.type === "text" && block.text === "Write it.")));
		assert.equal(seen.all("answer")[0]!.error, undefined);
		assert.ok(!exists(stage, "note.txt"));
	}),
];
