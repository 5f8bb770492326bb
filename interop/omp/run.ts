/**
 * Plays the scenes, one line each.
 *
 *     bun run.ts client omp              the package's client, with the real omp: do the scenes ask too much?
 *     bun run.ts client turnwire PATH    the package's client, with the turnwire at PATH as the agent
 *     bun run.ts next-client turnwire PATH    the client of the newest release, with the scenes of what came new
 *     bun run.ts drive PATH              the turnwire at PATH as the host, with the real omp
 *
 * `--scene TEXT` picks the scenes whose names contain it.
 */

import { parseArgs } from "node:util";
import { omp, turnwire } from "./agents.ts";
import { clientScenes } from "./client-scenes.ts";
import { clients } from "./client.ts";
import { driveScenes } from "./drive-scenes.ts";
import { nextScenes } from "./next-scenes.ts";
import { run, type Scene } from "./scene.ts";

interface Group {
	name: string;
	scenes: Scene[];
}

const USAGE = "usage: bun run.ts client omp | client turnwire PATH | next-client turnwire PATH | drive PATH [--scene TEXT]";

function pick([part, ...rest]: string[]): Group | undefined {
	const [whose, path] = part === "drive" ? ["turnwire", rest[0]] : rest;
	const [old, next] = ["18.2.3", "18.3.4"] as const;
	if (part === "client" && whose === "omp") return { name: `client ${old}, omp`, scenes: clientScenes(clients[old], omp) };
	if (whose !== "turnwire" || !path) return undefined;
	if (part === "drive") return { name: "turnwire drive, omp", scenes: driveScenes(path) };
	if (part === "client") return { name: `client ${old}, turnwire`, scenes: clientScenes(clients[old], turnwire(path)) };
	if (part !== "next-client") return undefined;
	const scenes = [...clientScenes(clients[next], turnwire(path)), ...nextScenes(turnwire(path))];
	return { name: `client ${next}, turnwire`, scenes };
}

const { positionals, values } = parseArgs({ allowPositionals: true, options: { scene: { type: "string", default: "" } } });
const group = pick(positionals);
if (!group) {
	console.error(USAGE);
	process.exit(2);
}
let failed = 0;
let played = 0;
for (const scene of group.scenes.filter(({ name }) => name.includes(values.scene))) {
	played++;
	if (!(await run(group.name, scene))) failed++;
}
console.log(failed === 0 ? `ok    ${played} scenes of ${group.name}` : `FAIL  ${failed} of ${played} scenes of ${group.name}`);
process.exit(failed === 0 && played > 0 ? 0 : 1);
