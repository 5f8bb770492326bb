/** Scenes: how one is run, how long it may take, and what is left behind when it is over. */

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Provider } from "./provider.ts";

/** Everything a scene plays on. All of it is the scene's own and goes away with it. */
export class Stage {
	readonly provider = new Provider();
	readonly #root = mkdtempSync(join(tmpdir(), "turnwire-interop-"));
	/** The folder the agent works in. */
	readonly project = join(this.#root, "project");
	/** The agent's home, so that nothing of a person's settings counts. */
	readonly home = join(this.#root, "home");
	/** Where an agent may keep its sessions. */
	readonly sessions = join(this.#root, "sessions");
	/** Marks every process of the scene, so that one left over is found. */
	readonly #mark = `TURNWIRE_INTEROP=${this.#root}`;
	/** The environment of whatever the scene starts, besides what the check itself has. */
	readonly env: { [name: string]: string } = {
		HOME: this.home,
		// Where a machine has these, they lead out of the home.
		XDG_CONFIG_HOME: join(this.home, ".config"),
		XDG_DATA_HOME: join(this.home, ".local/share"),
		XDG_STATE_HOME: join(this.home, ".local/state"),
		XDG_CACHE_HOME: join(this.home, ".cache"),
		LANG: "C.UTF-8",
		TURNWIRE_INTEROP: this.#root,
	};
	/** What was said in the scene, a file for each start of an agent that is recorded. */
	readonly recordings: string[] = [];
	readonly #closers: Array<() => unknown> = [];
	#waiting = "its start";

	constructor() {
		mkdirSync(this.project);
		mkdirSync(this.home);
	}

	/** The file for the next recording. */
	record(): string {
		const file = join(this.#root, `said-${this.recordings.length}.jsonl`);
		this.recordings.push(file);
		return file;
	}

	/** Runs at the end of the scene, the last one first, whether it passed or not. */
	onClose(closer: () => unknown): void {
		this.#closers.push(closer);
	}

	/** Waits, and names what for if the scene's time is up meanwhile. */
	async until<T>(what: string, promise: Promise<T> | T): Promise<T> {
		this.#waiting = what;
		return await promise;
	}

	get waiting(): string {
		return this.#waiting;
	}

	async close(): Promise<void> {
		for (const closer of this.#closers.reverse()) {
			try {
				await Promise.race([closer(), Bun.sleep(5_000)]);
			} catch {
				// The scene has said already what is wrong.
			}
		}
		this.provider.stop();
	}

	/** What the scene started and what still runs. */
	left(): Array<{ pid: number; what: string }> {
		const found: Array<{ pid: number; what: string }> = [];
		// Where there is no /proc, nothing is found and nothing is claimed.
		if (!existsSync("/proc/self/environ")) return found;
		for (const pid of readdirSync("/proc").filter(name => /^\d+$/.test(name))) {
			try {
				if (!readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(this.#mark)) continue;
				const what = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
				// A process that ended and that nobody waited for has no command line any more.
				if (what) found.push({ pid: Number(pid), what });
			} catch {
				// Gone meanwhile, or another user's.
			}
		}
		return found;
	}

	/** Ends what still runs, and says what it was. */
	reap(): string[] {
		return this.left().map(({ pid, what }) => {
			try {
				process.kill(pid, "SIGKILL");
			} catch {
				// Gone meanwhile.
			}
			return what;
		});
	}

	clear(): void {
		rmSync(this.#root, { recursive: true, force: true });
	}
}

export interface Scene {
	name: string;
	/** Seconds it may take; a loaded machine takes long to start an agent. */
	limit?: number;
	play: (stage: Stage) => Promise<void>;
	/** Looks at what the scene left, when all of it has ended; says what is wrong. */
	after?: (stage: Stage) => string[];
}

const LIMIT = 120;
/** An agent that was told to leave has this long until what is left of it counts against the scene. */
const LEAVING = 3_000;

/** Plays one scene and prints its line. */
export async function run(group: string, scene: Scene): Promise<boolean> {
	const limit = scene.limit ?? LIMIT;
	const stage = new Stage();
	const begun = performance.now();
	const timer = Promise.withResolvers<never>();
	const alarm = setTimeout(
		() => timer.reject(new Error(`time limit of ${limit} s, waiting for ${stage.waiting}`)),
		limit * 1_000,
	);
	const problems: string[] = [];
	try {
		await Promise.race([scene.play(stage), timer.promise]);
		if (stage.provider.unexpected.length > 0) problems.push("the agent asked the model more often than scripted");
		if (stage.provider.left > 0) problems.push(`${stage.provider.left} scripted replies were never asked for`);
	} catch (error) {
		problems.push(error instanceof Error ? error.message : String(error));
	}
	clearTimeout(alarm);
	await stage.close();
	let left = stage.left();
	for (let waited = 0; left.length > 0 && waited < LEAVING; waited += 100) {
		await Bun.sleep(100);
		left = stage.left();
	}
	if (left.length > 0) problems.push(`left running: ${stage.reap().join("; ")}`);
	if (problems.length === 0) problems.push(...(scene.after?.(stage) ?? []));
	stage.clear();
	const seconds = ((performance.now() - begun) / 1_000).toFixed(1);
	if (problems.length === 0) console.log(`ok    ${group}: ${scene.name} (${seconds} s)`);
	else console.log(`FAIL  ${group}: ${scene.name} (${seconds} s): ${indented(problems.join("\n"))}`);
	return problems.length === 0;
}

/** A message of several lines stays below the line of its scene. */
function indented(text: string): string {
	return text.trim().replaceAll("\n", "\n      ");
}
