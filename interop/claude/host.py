"""A host over the Python SDK: does what a plan says (see plan.ts) and prints what its user sees, a JSON object a line.

python host.py CLI PLAN
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from claude_agent_sdk.types import PermissionRuleValue, PermissionUpdate

step = 0


def say(event: str, **members: Any) -> None:
    print(json.dumps({"step": step, "event": event, **members}), flush=True)


def swapped(value: Any, swap: list[str] | None) -> Any:
    return json.loads(json.dumps(value).replace(swap[0], swap[1])) if swap else value


class Host:
    def __init__(self, cli: str, plan: dict[str, Any]) -> None:
        self.cli = cli
        self.plan = plan
        self.first_prompt: str | None = None
        self.permissions = 0

    def options(self) -> ClaudeAgentOptions:
        wanted = self.plan.get("options", {})
        same = ("max_turns", "permission_mode", "model", "system_prompt", "allowed_tools", "disallowed_tools", "resume", "session_id")
        options = ClaudeAgentOptions(
            cli_path=self.cli,
            cwd=Path.cwd(),
            include_partial_messages=wanted.get("partial", False),
            stderr=lambda line: print(line, file=sys.stderr),
            max_budget_usd=wanted.get("max_budget"),
            fork_session=wanted.get("fork", False),
            continue_conversation=wanted.get("continue", False),
            enable_file_checkpointing=wanted.get("checkpoints", False),
            extra_args={"replay-user-messages": None} if wanted.get("checkpoints") else {},
            **{name: wanted[name] for name in same if name in wanted},
        )
        if "permission" in wanted:
            options.can_use_tool = self.permit
        for hook in wanted.get("hooks", []):
            matcher = HookMatcher(matcher=hook.get("matcher"), hooks=[self.hook(hook)])
            options.hooks = options.hooks or {}
            options.hooks.setdefault(hook["event"], []).append(matcher)
        if "tools" in wanted:
            options.mcp_servers = {"house": create_sdk_mcp_server("house", tools=[house_tool(spec) for spec in wanted["tools"]])}
        for server in wanted.get("servers", []):
            stdio = {"type": "stdio", "command": server["command"], "args": server["args"]}
            options.mcp_servers = {**options.mcp_servers, server["name"]: stdio}
        return options

    async def permit(self, name: str, given: dict[str, Any], context: Any) -> PermissionResultAllow | PermissionResultDeny:
        rules = self.plan["options"]["permission"]
        rule = rules[min(self.permissions, len(rules) - 1)]
        self.permissions += 1
        suggestions = [update.to_dict() for update in context.suggestions]
        say("permission", tool=name, input=given, id=context.tool_use_id, suggestions=suggestions)
        if "deny" in rule:
            return PermissionResultDeny(message=rule["deny"], interrupt=rule.get("interrupt", False))
        if "fail" in rule:
            raise RuntimeError(rule["fail"])
        if "wait" in rule:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                say("withdrawn")
                raise
        updates = context.suggestions if rule.get("updates") == "suggested" else [permission_update(update) for update in rule.get("updates", [])]
        given = swapped(given, rule["swap"]) if "swap" in rule else None
        return PermissionResultAllow(updated_input=given, updated_permissions=updates or None)

    def hook(self, spec: dict[str, Any]) -> Any:
        calls = 0

        async def callback(given: Any, tool_use_id: str | None, _context: Any) -> Any:
            nonlocal calls
            say("hook", hook=spec["event"], input=given, id=tool_use_id)
            mine = spec.get("only") in (None, calls)
            calls += 1
            answer = dict(spec.get("answer", {})) if mine else {}
            if "swap" in spec and mine:
                answer["hookSpecificOutput"] = {**answer["hookSpecificOutput"], "updatedInput": swapped(given["tool_input"], spec["swap"])}
            return answer

        return callback

    async def one_query(self) -> None:
        async for message in query(prompt=self.plan["steps"][0]["prompt"], options=self.options()):
            say("message", message=plain(message))

    async def conversation(self) -> None:
        global step
        async with ClaudeSDKClient(self.options()) as client:
            for step, what in enumerate(self.plan["steps"]):
                if "ask" in what:
                    await self.ask(client, what)
                else:
                    await self.prompt(client, what)

    async def prompt(self, client: ClaudeSDKClient, what: dict[str, Any]) -> None:
        await client.query(with_picture(what) if "picture" in what else what["prompt"])
        for prompt in what.get("also", []):
            await client.query(prompt)
        when = what.get("interrupt")
        over = asyncio.Event()
        watcher = asyncio.create_task(self.interrupt_later(client, when, over)) if when and when != "delta" else None
        for _ in [what["prompt"], *what.get("also", [])]:
            async for message in client.receive_response():
                say("message", message=plain(message))
                if isinstance(message, UserMessage):
                    self.first_prompt = self.first_prompt or message.uuid
                if when == "delta" and is_text_delta(message):
                    when = None
                    await client.interrupt()
        over.set()
        if watcher:
            await watcher

    async def interrupt_later(self, client: ClaudeSDKClient, when: Any, over: asyncio.Event) -> None:
        """Interrupts when it is time, or not at all if the turn is over before."""

        def due() -> bool:
            return self.permissions > 0 if when == "asked" else Path(when["file"]).exists()

        while not (due() or over.is_set()):
            await asyncio.sleep(0.05)
        if not over.is_set():
            await client.interrupt()

    async def ask(self, client: ClaudeSDKClient, what: dict[str, Any]) -> None:
        ask = what["ask"]
        try:
            value = await {
                "set_permission_mode": lambda: client.set_permission_mode(what["value"]),
                "set_model": lambda: client.set_model(what["value"]),
                "rewind": lambda: client.rewind_files(self.first_prompt or "no prompt was repeated"),
                "mcp_status": client.get_mcp_status,
                "server_info": client.get_server_info,
                "context_usage": client.get_context_usage,
                "interrupt": client.interrupt,
            }[ask]()
            say("answer", ask=ask, value=value)
        except Exception as error:
            say("answer", ask=ask, error=str(error))


async def with_picture(what: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    source = {"type": "base64", **what["picture"]}
    content = [{"type": "text", "text": what["prompt"]}, {"type": "image", "source": source}]
    yield {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None}


def house_tool(spec: dict[str, Any]) -> Any:
    name = spec["name"]

    @tool(name, f"The tool {name} of the house", {"a": float, "b": float})
    async def run(given: dict[str, Any]) -> dict[str, Any]:
        say("tool", tool=name, input=given)
        if spec["does"] == "throw":
            raise RuntimeError("the tool threw this")
        if spec["does"] == "fail":
            return {"content": [{"type": "text", "text": "the tool failed so"}], "is_error": True}
        return {"content": [{"type": "text", "text": f"sum {given['a'] + given['b']:g}"}]}

    return run


def permission_update(update: dict[str, Any]) -> PermissionUpdate:
    rules = [PermissionRuleValue(rule["toolName"], rule.get("ruleContent")) for rule in update["rules"]] if "rules" in update else None
    rest = {name: update[name] for name in ("type", "behavior", "mode", "directories", "destination") if name in update}
    return PermissionUpdate(rules=rules, **rest)


def is_text_delta(message: Any) -> bool:
    return isinstance(message, StreamEvent) and message.event.get("delta", {}).get("type") == "text_delta"


def plain(message: Any) -> dict[str, Any]:
    match message:
        case AssistantMessage():
            return {
                "type": "assistant",
                "model": message.model,
                "blocks": [block(part) for part in message.content],
                "error": message.error,
                "id": message.message_id,
            }
        case UserMessage(content=str(text)):
            return {"type": "user", "blocks": [{"type": "text", "text": text}], "uuid": message.uuid}
        case UserMessage():
            return {"type": "user", "blocks": [block(part) for part in message.content], "uuid": message.uuid}
        case SystemMessage():
            return {"type": "system", "subtype": message.subtype, "data": message.data}
        case StreamEvent():
            return {"type": "stream_event", "stream": message.event}
        case ResultMessage():
            names = (
                "subtype is_error result errors num_turns session_id stop_reason terminal_reason duration_ms duration_api_ms "
                "total_cost_usd usage model_usage permission_denials api_error_status"
            )
            return {"type": "result", **{name: getattr(message, name) for name in names.split()}}
        case _:
            return {"type": "other", "name": type(message).__name__}


def block(part: Any) -> dict[str, Any]:
    kind = {TextBlock: "text", ThinkingBlock: "thinking", ToolUseBlock: "tool_use", ToolResultBlock: "tool_result"}.get(type(part))
    return {"type": kind, **vars(part)} if kind else {"type": type(part).__name__}


async def main() -> None:
    plan = json.loads(sys.argv[2])
    host = Host(sys.argv[1], plan)
    try:
        await (host.one_query() if plan["style"] == "query" else host.conversation())
    except Exception as error:
        say("failed", kind=type(error).__name__, text=str(error))
    say("end")


asyncio.run(main())
