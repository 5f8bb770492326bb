// Each of these must be refused; an expectation that isn't met is an error itself.
import type { AgentLine, HostLine } from "./openmax.js";

declare const line: AgentLine;

// @ts-expect-error: not every line has a text.
line.text;
// @ts-expect-error: not a type of the contract.
export const unknown = line.type === "tokens";
// @ts-expect-error: not a command of the contract.
export const reboot: HostLine = { cmd: "reboot" };
// @ts-expect-error: a field is missing.
export const approve: HostLine = { cmd: "approve", approval_id: "a" };
// @ts-expect-error: not one of the modes.
export const mode: HostLine = { cmd: "approval_mode", mode: "yolo" };
if (line.type === "usage") {
  // @ts-expect-error: it may be null.
  line.cached_tokens.toFixed();
}
