/** MCP servers that the agent starts itself: the reference server of the protocol's own project. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { call, say } from "../../common/provider.ts";
import type { Scene } from "../../common/scene.ts";
import type { HostServer } from "../plan.ts";
import { good, type Host, order, results, scene } from "./host.ts";

const everything: HostServer = {
	name: "everything",
	command: "node",
	args: [join(import.meta.dir, "../node_modules/@modelcontextprotocol/server-everything/dist/index.js"), "stdio"],
};

export const servers = (host: Host): Scene[] => [
	scene("a tool of a server", async stage => {
		stage.provider.script(say("Hello."), call("", { name: "mcp__everything__echo", arguments: { message: "owl" } }), say("It says owl."));
		const seen = await host.client(stage, [{ prompt: "Greet me." }, { prompt: "Ask the server." }, { ask: "mcp_status" }], {
			servers: [everything],
			allowed_tools: ["mcp__everything__echo"],
		});
		assert.ok(stage.provider.requests[1]!.tools.includes("mcp__everything__echo"));
		assert.deepEqual(seen.outcomes(), [{ failed: false, text: "Echo: owl" }]);
		assert.match(results(stage, 2)[0]!.content, /Echo: owl/);
		assert.equal(good(seen, 1).result, "It says owl.");
		const [status] = seen.all("answer");
		const [server] = status!.value.mcpServers;
		assert.deepEqual([server.name, server.status, server.serverInfo.name], ["everything", "connected", "mcp-servers/everything"]);
		const tools: string[] = server.tools.map(({ name }: { name: string }) => name);
		assert.ok(tools.includes("echo") && tools.includes("get-sum"), tools.join(" "));
	}),

	scene("a tool of a server that is asked about", async stage => {
		stage.provider.script(
			say("Hello."),
			call("", { name: "mcp__everything__get-sum", arguments: { a: 2, b: 3 } }),
			call("", { name: "mcp__everything__get-sum", arguments: { a: 2, b: 4 } }),
			say("Five."),
		);
		const seen = await host.client(stage, [{ prompt: "Greet me." }, { prompt: "Add them." }], {
			servers: [everything],
			permission: [{ allow: true }, { deny: "Enough of that." }],
		});
		assert.deepEqual(order(seen), ["permission", "permission"]);
		assert.equal(seen.all("permission")[0]!.tool, "mcp__everything__get-sum");
		const [sum, denied] = seen.outcomes();
		assert.deepEqual([sum!.failed, denied!.failed], [false, true]);
		assert.match(sum!.text, /\b5\b/);
		assert.match(denied!.text, /Enough of that/);
		good(seen, 1);
	}),

	scene("a server that can't be started", async stage => {
		stage.provider.script(say("Hello."));
		const broken: HostServer = { name: "broken", command: "node", args: ["-e", "process.exit(3)"] };
		const seen = await host.client(stage, [{ prompt: "Greet me." }, { ask: "mcp_status" }], { servers: [broken] });
		good(seen);
		const [server] = seen.all("answer")[0]!.value.mcpServers;
		assert.deepEqual([server.name, server.status], ["broken", "failed"]);
	}),
];
