/**
 * Plays the scenes, one line each.
 *
 *     bun run.ts client omp          the package's client, with the real omp: do the scenes ask too much?
 *     bun run.ts check PATH          the same, and what they say is checked by the turnwire at PATH
 *     bun run.ts client PATH         the package's client, with turnwire as the agent; what they say is checked
 *     bun run.ts next-client PATH    the client of the newest release, with the scenes of what came new
 *     bun run.ts drive PATH          turnwire as the host, with the real omp
 *     bun run.ts drive-own PATH      turnwire as the host and as the agent
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
import { run, type Scene, type Stage } from "../common/scene.ts";

interface Group {
	name: string;
	scenes: Scene[];
}

const USAGE = "usage: bun run.ts client omp | (check | client | next-client | drive | drive-own) PATH [--scene TEXT] [--keep FOLDER]";

const [OLD, NEXT] = ["18.2.3", "18.3.4"] as const;

function pick([part, ...rest]: string[]): Group | undefined {
	if (part === "client" && rest[0] === "omp")
		return { name: `client ${OLD}, omp`, scenes: clientScenes(clients[OLD], omp) };
	const [path] = rest;
	if (!path) return undefined;
	const ours = recorded(turnwire(path));
	switch (part) {
		case "check":
			return checked(path, `client ${OLD}, omp`, clientScenes(clients[OLD], recorded(omp)));
		case "client":
			return checked(path, `client ${OLD}, turnwire`, clientScenes(clients[OLD], ours));
		case "next-client":
			return checked(path, `client ${NEXT}, turnwire`, [...clientScenes(clients[NEXT], ours), ...nextScenes(ours)]);
		case "drive":
			return { name: "turnwire drive, omp", scenes: driveScenes(path, omp) };
		case "drive-own":
			return checked(path, "turnwire drive, turnwire", driveScenes(path, ours));
		default:
			return undefined;
	}
}

/** The scenes, and after each what `turnwire check` finds in all that was said in it. */
function checked(path: string, name: string, scenes: Scene[]): Group {
	const after = (scene: Scene) => (stage: Stage): string[] =>
		stage.recordings.flatMap(file => {
			if (values.keep) cpSync(file, join(values.keep, `${scene.name.replaceAll(/\W+/g, "-")}-${basename(file)}`));
			const { exitCode, stdout, stderr } = Bun.spawnSync([path, "check", "--protocol", "omp", file]);
			return exitCode === 0 ? [] : [`check found (${exitCode}): ${stdout}${stderr}`];
		});
	return { name, scenes: scenes.map(scene => ({ ...scene, after: after(scene) })) };
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
