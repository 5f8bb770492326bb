/**
 * Plays the scenes: `bun run.ts client omp` is the package's client with the real omp.
 * A name behind it picks the scenes whose names contain it.
 */

import { omp } from "./agents.ts";
import { clientScenes } from "./client-scenes.ts";
import { run, type Scene } from "./scene.ts";

const USAGE = "usage: bun run.ts client omp [SCENE]";

const [part, whose, only = ""] = process.argv.slice(2);
const group = pick(part, whose);
if (!group) {
	console.error(USAGE);
	process.exit(2);
}
let failed = 0;
let played = 0;
for (const scene of group.scenes.filter(({ name }) => name.includes(only))) {
	played++;
	if (!(await run(group.name, scene))) failed++;
}
console.log(failed === 0 ? `ok    ${played} scenes of ${group.name}` : `FAIL  ${failed} of ${played} scenes of ${group.name}`);
process.exit(failed === 0 && played > 0 ? 0 : 1);

function pick(part?: string, whose?: string): { name: string; scenes: Scene[] } | undefined {
	if (part === "client" && whose === "omp") return { name: "omp's client with omp", scenes: clientScenes(omp) };
	return undefined;
}
