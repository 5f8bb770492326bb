// Must not compile: a token has no `call_id`.
import type { AgentLine } from "./openmax.js";

export const id = (line: AgentLine): string => (line.type === "token" ? line.call_id : "");
