/**
 * Plays the scenes, one line each.
 *
 *     bun run.ts client omp              the package's client, with the real omp: do the scenes ask too much?
 *     bun run.ts client turnwire PATH    the package's client, with the turnwire at PATH as the agent
 *     bun run.ts next-client turnwire PATH    the client of the newest release, with the scenes of what came new
 *     bun run.ts check PATH              the package's client, with the real omp, and what they say checked
 *     bun run.ts drive PATH              the turnwire at PATH as the host, with the real omp
 *
 * `--scene TEXT` picks the scenes whose names contain it; `--keep FOLDER` keeps what was recorded.
 */

import { cpSync } from "node:fs";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { omp, recorded, turnwire } from "./agents.ts";
import { clientScenes } from "./client-scenes.ts";
import { clients } from "./client.ts";
import { driveScenes } from "./drive-scenes.ts";
import { nextScenes } from "./next-scenes.ts";
import { run, type Scene, type Stage } from "./scene.ts";

interface Group {
	name: string;
	scenes: Scene[];
}

const USAGE = "usage: bun run.ts client omp | client turnwire PATH | next-client turnwire PATH | check PATH | drive PATH [--scene TEXT]";

const [OLD, NEXT] = ["18.2.3", "18.3.4"] as const;

function pick([part, ...rest]: string[]): Group | undefined {
	const [whose, path] = part === "drive" || part === "check" ? ["turnwire", rest[0]] : rest;
	if (part === "client" && whose === "omp") return { name: `client ${OLD}, omp`, scenes: clientScenes(clients[OLD], omp) };
	if (whose !== "turnwire" || !path) return undefined;
	const ours = turnwire(path);
	switch (part) {
		case "client":
			return { name: `client ${OLD}, turnwire`, scenes: clientScenes(clients[OLD], ours) };
		case "next-client":
			return {
				name: `client ${NEXT}, turnwire`,
				scenes: [...clientScenes(clients[NEXT], ours), ...nextScenes(ours)],
			};
		case "drive":
			return { name: "turnwire drive, omp", scenes: driveScenes(path) };
		case "check":
			return {
				name: `client ${OLD}, omp, checked`,
				scenes: clientScenes(clients[OLD], recorded(omp)).map(scene => checked(scene, path)),
			};
		default:
			return undefined;
	}
}

/** The scene, and then what `turnwire check` finds in all that was said in it. */
function checked(scene: Scene, path: string): Scene {
	const after = (stage: Stage): string[] =>
		stage.recordings.flatMap(file => {
			if (values.keep) cpSync(file, join(values.keep, `${scene.name.replaceAll(/\W+/g, "-")}-${basename(file)}`));
			const { exitCode, stdout, stderr } = Bun.spawnSync([path, "check", "--protocol", "omp", file]);
			return exitCode === 0 ? [] : [`check found (${exitCode}): ${stdout}${stderr}`];
		});
	return { ...scene, after };
}

const { positionals, values } = parseArgs({ allowPositionals: true, options: { scene: { type: "string", default: "" }, keep: { type: "string" } } });
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
