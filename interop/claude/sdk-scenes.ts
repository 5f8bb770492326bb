/**
 * What a user of the SDKs sees. Every scene is played against the real Claude Code too, so that what is asked of
 * Turnwire here is what the SDKs' own agent gives.
 */

import type { Scene } from "../common/scene.ts";
import type { Agent } from "./agents.ts";
import { control } from "./scenes/control.ts";
import { hooks } from "./scenes/hooks.ts";
import { Host } from "./scenes/host.ts";
import { permissions } from "./scenes/permissions.ts";
import { servers } from "./scenes/servers.ts";
import { tools } from "./scenes/tools.ts";
import { turns } from "./scenes/turns.ts";
import type { Language } from "./sdk.ts";

export function sdkScenes(language: Language, agent: Agent): Scene[] {
	const host = new Host(language, agent);
	return [turns, permissions, hooks, tools, servers, control].flatMap(scenes => scenes(host));
}
