// A host in a few lines: must compile.
import type { AgentLine, HostLine } from "./openmax.js";

export function answer(text: string): HostLine | undefined {
  const line = JSON.parse(text) as AgentLine;
  switch (line.type) {
    case "token":
      console.write(line.text);
      return undefined;
    case "usage":
      // Null where the provider doesn't say.
      console.write(String((line.cached_tokens ?? 0) / Math.max(1, line.prompt_tokens)));
      return undefined;
    case "tool_start":
      console.write(`${line.name} ${Object.keys(line.args).join(" ")}`);
      return undefined;
    case "approval_request":
      return {
        cmd: "approve",
        approval_id: line.approval_id,
        approved: line.reason === "gate" && (line.env ?? []).length === 0,
      };
    case "transcript":
      for (const message of line.messages) {
        console.write(`${message.role}: ${message.content}`);
      }
      return undefined;
    case "done":
      return { cmd: "quit" };
    default:
      return undefined;
  }
}

declare const console: { write(text: string): void };
