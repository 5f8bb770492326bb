/**
 * Plays the scenes, one line each.
 *
 *     bun run.ts python claude           the Python SDK, with the real Claude Code: do the scenes ask too much?
 *     bun run.ts typescript claude       the TypeScript SDK, with the same
 *     bun run.ts python PATH             the Python SDK, with turnwire at this path as the agent
 *     bun run.ts typescript PATH         the TypeScript SDK, with the same
 *
 * `--scene TEXT` picks the scenes whose names contain it; `--keep FOLDER` keeps what was said in them.
 */

import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { run, type Scene, type Stage } from "../common/scene.ts";
import { claude, turnwire } from "./agents.ts";
import { COMPILED, type Language } from "./sdk.ts";
import { sdkScenes } from "./sdk-scenes.ts";

interface Group {
	name: string;
	scenes: Scene[];
}

const USAGE = "usage: bun run.ts (python | typescript) (claude | PATH) [--scene TEXT] [--keep FOLDER]";

async function pick([part, agent]: string[]): Promise<Group | undefined> {
	if (!agent) return undefined;
	const [name, played] = agent === "claude" ? ["claude", claude] : ["turnwire", turnwire(agent)];
	switch (part) {
		case "typescript":
			await compile();
			return { name: `${part}, ${name}`, scenes: sdkScenes(part, played) };
		case "python":
			return { name: `${part}, ${name}`, scenes: sdkScenes(part, played) };
		default:
			return undefined;
	}
}

/** Node of every age runs JavaScript. */
async function compile(): Promise<void> {
	const { outputs } = await Bun.build({ entrypoints: [join(import.meta.dir, "host.ts")], target: "node", packages: "external" });
	await Bun.write(COMPILED, outputs[0]!);
}

/** Keeps what was said in a scene. */
function keep(group: Group, scene: Scene): Scene {
	const { keep: folder } = values;
	if (!folder) return scene;
	mkdirSync(folder, { recursive: true });
	const after = (stage: Stage): string[] => {
		for (const [index, file] of stage.recordings.entries())
			cpSync(file, join(folder, `${`${group.name} ${scene.name}`.replaceAll(/\W+/g, "-")}${index || ""}.jsonl`));
		return scene.after?.(stage) ?? [];
	};
	return { ...scene, after };
}

const { positionals, values } = parseArgs({ allowPositionals: true, options: { scene: { type: "string", default: "" }, keep: { type: "string" } } });
const group = await pick(positionals);
if (!group) {
	console.error(USAGE);
	process.exit(2);
}
let failed = 0;
let played = 0;
for (const scene of group.scenes.filter(({ name }) => name.includes(values.scene))) {
	played++;
	if (!(await run(group.name, keep(group, scene)))) failed++;
}
console.log(failed === 0 ? `ok    ${played} scenes of ${group.name}` : `FAIL  ${failed} of ${played} scenes of ${group.name}`);
process.exit(failed === 0 && played > 0 ? 0 : 1);
