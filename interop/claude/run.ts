/**
 * Plays the scenes, one line each.
 *
 *     bun run.ts python claude           the Python SDK, with the real Claude Code: do the scenes ask too much?
 *     bun run.ts typescript claude       the TypeScript SDK, with the same
 *     bun run.ts python PATH             the Python SDK, with turnwire at this path as the agent
 *     bun run.ts typescript PATH         the TypeScript SDK, with the same
 *     bun run.ts drive PATH              turnwire as the host, with the real Claude Code
 *     bun run.ts drive-own PATH          turnwire as the host and as the agent
 *
 * In the place of `claude` a path that ends in it is another Claude Code.
 *
 * `--scene TEXT` picks the scenes whose names contain it; `--keep FOLDER` keeps what was said in them; `--check PATH`
 * has the turnwire at this path read that and find no error.
 */

import { cpSync, mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { run, type Scene, type Stage } from "../common/scene.ts";
import { claude, turnwire } from "./agents.ts";
import { driveScenes } from "./drive-scenes.ts";
import { COMPILED } from "./sdk.ts";
import { sdkScenes } from "./sdk-scenes.ts";

interface Group {
	name: string;
	scenes: Scene[];
}

const USAGE = `usage: bun run.ts (python | typescript) (claude | PATH) [OPTIONS]
       bun run.ts (drive | drive-own) PATH [OPTIONS]
options: --scene TEXT --keep FOLDER --check PATH`;

async function pick([part, agent]: string[]): Promise<Group | undefined> {
	if (!agent) return undefined;
	const played = agent === "claude" ? claude() : basename(agent) === "claude" ? claude(agent) : turnwire(agent);
	const { name } = played;
	switch (part) {
		case "drive":
			return { name: "turnwire drive, claude", scenes: driveScenes(agent, claude()) };
		case "drive-own":
			return { name: "turnwire drive, turnwire", scenes: driveScenes(agent, played) };
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

/** Keeps what was said in a scene, and what the agent was started with. */
function keep(group: Group, scene: Scene, folder: string): Scene {
	mkdirSync(folder, { recursive: true });
	const after = (stage: Stage): string[] => {
		for (const [index, file] of stage.recordings.entries()) {
			const kept = join(folder, `${group.name} ${scene.name}`.replaceAll(/\W+/g, "-") + (index || ""));
			cpSync(file, `${kept}.jsonl`);
			cpSync(`${file}.args`, `${kept}.args`);
		}
		return scene.after?.(stage) ?? [];
	};
	return { ...scene, after };
}

/** Has all that was said in a scene checked. */
function checked(scene: Scene, path: string): Scene {
	const after = (stage: Stage): string[] => [
		...stage.recordings.flatMap(file => {
			const { exitCode, stdout, stderr } = Bun.spawnSync([path, "check", "--protocol", "claude", file]);
			return exitCode === 0 ? [] : [`check found (${exitCode}): ${stdout}${stderr}`];
		}),
		...(scene.after?.(stage) ?? []),
	];
	return { ...scene, after };
}

const { positionals, values } = parseArgs({
	allowPositionals: true,
	options: { scene: { type: "string", default: "" }, keep: { type: "string" }, check: { type: "string" } },
});
const group = await pick(positionals);
if (!group) {
	console.error(USAGE);
	process.exit(2);
}
let failed = 0;
let played = 0;
for (let scene of group.scenes.filter(({ name }) => name.includes(values.scene))) {
	if (values.keep) scene = keep(group, scene, values.keep);
	if (values.check) scene = checked(scene, values.check);
	played++;
	if (!(await run(group.name, scene))) failed++;
}
console.log(failed === 0 ? `ok    ${played} scenes of ${group.name}` : `FAIL  ${failed} of ${played} scenes of ${group.name}`);
process.exit(failed === 0 && played > 0 ? 0 : 1);
