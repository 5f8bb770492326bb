/** Prompts and what comes of them. */

import assert from "node:assert/strict";
import { call, refuse, say, think } from "../../common/provider.ts";
import type { Scene } from "../../common/scene.ts";
import { shell, writes } from "../agents.ts";
import { asked, good, type Host, read, scene } from "./host.ts";

/** A PNG of one pixel. */
const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** A model whose price is known. */
const PRICED = "claude-haiku-4-5";

export const turns = (host: Host): Scene[] => [
	scene("a query", async stage => {
		stage.provider.script(say("Hello ", "from ", "the model."));
		const seen = await host.query(stage, "Greet me.");
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
		const seen = await host.client(stage, [{ prompt: "First." }, { prompt: "Second." }]);
		assert.deepEqual([seen.texts(0), seen.texts(1)], [["One."], ["Two."]]);
		assert.deepEqual([good(seen, 0).result, good(seen, 1).result], ["One.", "Two."]);
		assert.equal(seen.result(0).session_id, seen.result(1).session_id);
		assert.match(asked(stage, 1, "user")[0]!, /First\./);
		assert.deepEqual(asked(stage, 1, "assistant"), ["One."]);
		assert.match(asked(stage, 1, "user").at(-1)!, /Second\./);
	}),

	scene("thinking", async stage => {
		stage.provider.script(think("Let me see.", "It is ", "42."));
		const seen = await host.query(stage, "What is it?");
		assert.deepEqual(seen.blocks("assistant", "thinking").map(({ thinking }) => thinking), ["Let me see."]);
		assert.deepEqual(seen.texts(), ["It is 42."]);
		assert.equal(good(seen).result, "It is 42.");
	}),

	scene("line separators in a text", async stage => {
		stage.provider.script(say("one\u2028two\u2029three\u0000é\u{1F680}"));
		const seen = await host.query(stage, "Say them.");
		assert.deepEqual(seen.texts(), ["one\u2028two\u2029three\u0000é\u{1F680}"]);
	}),

	scene("partial messages", async stage => {
		stage.provider.script(call("I write.", writes("note.txt", "noted")), say("It ", "is ", "done."));
		const seen = await host.query(stage, "Write it.", { partial: true, permission: [{ allow: true }] });
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

	scene("a system prompt of the host's", async stage => {
		stage.provider.script(say("Aye."));
		const seen = await host.query(stage, "Greet me.", { system_prompt: "You speak as sailors do." });
		assert.match(asked(stage, 0, "system").join("\n"), /You speak as sailors do\./);
		good(seen);
	}),

	scene("a session that goes on", async stage => {
		stage.provider.script(say("I keep it."), say("Blue."));
		const first = good(await host.query(stage, "My colour is blue."));
		const seen = await host.query(stage, "Which is it?", { resume: first.session_id });
		assert.equal(good(seen).result, "Blue.");
		assert.equal(seen.result().session_id, first.session_id);
		assert.match(asked(stage, 1, "user").join("\n"), /My colour is blue\./);
		assert.deepEqual(asked(stage, 1, "assistant"), ["I keep it."]);
	}),

	scene("more turns than are allowed", async stage => {
		stage.provider.script(call("", writes("note.txt", "noted")));
		const seen = await host.play(stage, {
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
		const seen = await host.client(stage, [{ prompt: "Try." }, { prompt: "And now?" }]);
		const result = seen.result(0);
		assert.equal(result.is_error, true);
		assert.match(result.result ?? result.errors!.join("\n"), /the scripted refusal/);
		assert.equal(good(seen, 1).result, "On we go.");
	}),

	scene("a query that a provider refuses", async stage => {
		stage.provider.script(refuse(400, "the scripted refusal"));
		const seen = await host.play(stage, { style: "query", steps: [{ prompt: "Try." }] });
		assert.equal(seen.result().is_error, true);
		// The exit code of the agent is an error of its own; it says what the result said.
		assert.match(seen.all("failed")[0]!.text, /the scripted refusal/);
	}),

	scene("a provider that is overloaded for a moment", async stage => {
		stage.provider.script(refuse(529, "come back later"), say("Here I am."));
		const seen = await host.query(stage, "Try.");
		assert.equal(good(seen).result, "Here I am.");
		assert.equal(stage.provider.requests.length, 2);
	}),

	scene("two prompts at once", async stage => {
		stage.provider.script(say("One."), say("Two."));
		const seen = await host.client(stage, [{ prompt: "First.", also: ["Second."] }]);
		assert.deepEqual(seen.texts(), ["One.", "Two."]);
		assert.deepEqual(seen.messages("result").map(({ result }) => result), ["One.", "Two."]);
		assert.match(asked(stage, 0, "user").at(-1)!, /First\./);
		assert.match(asked(stage, 1, "user").at(-1)!, /Second\./);
	}),

	scene("a picture", async stage => {
		stage.provider.script(say("A dot."));
		const seen = await host.client(stage, [{ prompt: "What is it?", picture: { media_type: "image/png", data: DOT } }]);
		assert.match(asked(stage, 0, "user").at(-1)!, /What is it\?/);
		assert.deepEqual(stage.provider.requests[0]!.messages.flatMap(({ pictures }) => pictures), [`data:image/png;base64,${DOT}`]);
		good(seen);
	}),

	scene("a session id of the host's", async stage => {
		stage.provider.script(say("Hello."));
		const session_id = "5d3c1c92-3f2b-4b0e-9b7a-0c8f6f1c2a11";
		const seen = await host.query(stage, "Greet me.", { session_id });
		assert.equal(good(seen).session_id, session_id);
	}),

	scene("a copy of a session", async stage => {
		stage.provider.script(say("I keep it."), say("Blue."), say("Red."));
		const first = good(await host.query(stage, "My colour is blue."));
		const copy = good(await host.query(stage, "Which is it?", { resume: first.session_id, fork: true }));
		assert.notEqual(copy.session_id, first.session_id);
		assert.deepEqual(asked(stage, 1, "assistant"), ["I keep it."]);
		// The first one knows nothing of its copy.
		good(await host.query(stage, "And now?", { resume: first.session_id }));
		assert.deepEqual(asked(stage, 2, "assistant"), ["I keep it."]);
	}),

	scene("the last session of the folder", async stage => {
		stage.provider.script(say("I keep it."), say("Blue."));
		const first = good(await host.query(stage, "My colour is blue."));
		const seen = await host.query(stage, "Which is it?", { continue: true });
		assert.equal(good(seen).session_id, first.session_id);
		assert.deepEqual(asked(stage, 1, "assistant"), ["I keep it."]);
	}),

	scene("more money than is allowed", async stage => {
		stage.provider.script(call("", shell("pwd")));
		const seen = await host.play(stage, { style: "client", steps: [{ prompt: "Run it." }], options: { max_budget: 0.000_001, model: PRICED, allowed_tools: ["Bash"] } });
		const result = seen.result();
		assert.deepEqual([result.subtype, result.is_error], ["error_max_budget_usd", true]);
		assert.ok(result.total_cost_usd! > 0);
	}),
];
