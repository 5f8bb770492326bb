/**
 * Stands between a host and an agent and writes down what they say, as `turnwire check` reads it:
 *
 *     bun tee.ts FILE CMD…
 *
 * A line is written down before it is passed on, so an answer never stands before its question.
 */

import { appendFileSync } from "node:fs";

const [file, ...command] = process.argv.slice(2);
if (!file || command.length === 0) {
	console.error("usage: bun tee.ts FILE CMD…");
	process.exit(2);
}
const begun = performance.now();
const child = Bun.spawn(command, { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));

/** What was said, the end of the input, or the exit of the agent. */
function note(dir: "in" | "out", what: { line: string } | { eof: true } | { exit: number }): void {
	appendFileSync(file!, `${JSON.stringify({ dir, t_ms: Math.round(performance.now() - begun), ...what })}\n`);
}

/** Passes a stream on as it comes, and notes each of its lines once it is whole. */
async function relay(from: ReadableStream<Uint8Array>, dir: "in" | "out", pass: (bytes: Uint8Array) => unknown): Promise<void> {
	const decoder = new TextDecoder();
	let rest = "";
	for await (const bytes of from) {
		rest += decoder.decode(bytes, { stream: true });
		const lines = rest.split("\n");
		rest = lines.pop()!;
		for (const line of lines) note(dir, { line });
		await pass(bytes);
	}
	if (rest) note(dir, { line: rest });
}

void relay(Bun.stdin.stream(), "in", async bytes => {
	child.stdin.write(bytes);
	await child.stdin.flush();
})
	.then(() => note("in", { eof: true }))
	.catch(() => {
		// The agent reads no more.
	})
	.finally(() => child.stdin.end());
const out = Bun.stdout.writer();
await relay(child.stdout, "out", async bytes => {
	out.write(bytes);
	await out.flush();
}).catch(() => {
	// The host reads no more; its agent learns that from its input or from a signal.
});
const exit = await child.exited;
note("out", { exit });
process.exit(exit);
