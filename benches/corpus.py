#!/usr/bin/env python3
"""corpus.py - deterministic, realistic benchmark corpora for agent-session streams.

Standard library only; Python 3.8 or newer. The same (seed, size, mix, options)
gives the same bytes on every machine: only `Random.random()` is drawn from
(the one method Python promises to keep stable), sizes are made with integers,
and no float reaches the output except exact quarters.

One abstract conversation (`script`) is made from the seed: turns of thinking
deltas, text deltas, tool calls with streamed arguments, tool results, usage,
turn end. Each dialect only *spells* it, so for one seed the five JSONL files
and the two SSE files tell the same story. That makes translation benchmarks
(dialect A -> dialect B) and model-chunk -> output-line benchmarks comparable.

Outputs (one file each, `--out DIR`):
  openmax.jsonl    openmax-stdio/6 events            {"session_id":..,"type":"token","text":..}
  openmax.host.jsonl  what the host says meanwhile    {"cmd":"user","text":..}
  openmax.both.jsonl  both sides in one file, in the order of their writing
  agentx.jsonl     AgentX / Claude-Code stream-json  {"type":"stream_event","event":{..},..}
  openseek.jsonl   openseek_protocol events          {"event":"assistant_delta","content":..}
  splice.jsonl     Splice stream-json schema 2       {"schemaVersion":2,"type":"text",..}
  omp.jsonl        omp RPC frames                    {"type":"message_update",..}
  openai.sse       chat.completions chunks, `data:` only, ends each turn with [DONE]
  anthropic.sse    messages stream, `event:` + `data:`, with pings
  manifest.json    sizes, line counts, length percentiles, SHA-256 of each file

Size classes (per line, before escaping):
  deltas           1-12 model tokens, so most lines are 60-250 bytes
                   (AgentX lines are longer: two UUIDs and a session id each)
  tool results     64 B - 64 KiB, octave table, median near 1.5 KiB
  rare giants      1-8 MiB, about one per --giant-every MiB of conversation (0 = none)

Mixes (`--mix`):
  mixed   (default) deltas, tool traffic and giants: about 60% of the bytes in
          short lines, 40% in lines over 1 KiB; about 98% of the lines are deltas
  tokens  text and thinking deltas only, plus turn start/end: the small-line worst case
  tools   tool traffic dominates: the large-string case

Text: mostly ASCII prose and code (quotes, backslashes, newlines, tabs), about
6% of the pieces in other scripts (Latin-1, Cyrillic, CJK, Arabic, emoji with
joiners), and now and then U+2028/U+2029, which `agentx` escapes as its
contract asks. `--ascii-escapes P` makes a share P of the lines use \\uXXXX for
everything outside ASCII, as producers with ASCII-only encoders do. `--shuffle P` gives a
share P of the lines their members in another order.

Examples:
  python3 corpus.py --out /tmp/corpus --mib 64                 # all seven files
  python3 corpus.py --out /tmp/c --mib 256 --only omp,openai   # two of them
  python3 corpus.py --out /tmp/c --mib 64 --mix tokens --seed 7
  python3 corpus.py --stats /tmp/c/openmax.jsonl               # describe a file
"""
import argparse
import hashlib
import json
import os
import random
import sys

DIALECTS = ("openmax", "agentx", "openseek", "splice", "omp")
HOSTS = ("openmax.host", "openmax.both")
SSE = ("openai", "anthropic")

WORDS = (
    " the of and to in a is that for it as was with be by on not he his but at are this have from or had an they "
    "which one you were all her she there would their we him been has when who will no more if out so up said what "
    "its about than into them can only other time new some could these two may first then do any like my now over "
    "such our man me even most made after also did many before must through years where much your way well down "
    "should because each just state people those how too little world good function return value error token stream "
    "parser buffer line chunk session request response handler module test assert check build cargo crate trait impl "
    "struct enum match option result string bytes async await future driver protocol event frame field schema number"
).split(" ")[1:]
PIECES = (
    [" " + w for w in WORDS] * 4
    + list("abcdefghijklmnopqrstuvwxyz")
    + [".", ",", ":", ";", "(", ")", "()", "{", "}", " =", " ==", " ->", "::", "'s", "`", "`", " 1", "0", "42", " -"]
    + ["\n", "\n\n", "\n  ", "\n    ", "\t", '"', ' "', '",', "\\", "\\n", "/", " //", "```rust\n", "```\n", "**", " * "]
    + ["ing", "ed", "ly", "tion", "er", "al", "ment", "ness", "able", "un", "re", "pre", "con", "ive", "ous"] * 4
)
FOREIGN = [
    "é", " naïve", "ü", "ß", " façade", "ñ", " Größe", " привет", " мир", " ошибка", "строка", "你好", "世界", "函数",
    "返回", "エラー", "テスト", "한국어", " مرحبا", " שלום", "—", "…", "“", "”", "→", "≤", "✓", "😀", "🚀", "👩‍💻", "🇯🇵", "𝒳",
]
SEPS = ["\u2028", "\u2029"]
TOOLS = ["read_file", "write_file", "bash", "grep", "edit", "list_dir", "web_fetch"]
PATHS = ["src/main.rs", "src/lib.rs", "core/src/engine.rs", "io/src/driver.rs", "README.md", "docs/wire.md", "tests/it.rs", "данные/файл.txt"]

# octave -> weight: a tool result in octave k has between 2^k and 2^(k+1)-1 characters
TOOL_OCTAVES = ((6, 10), (7, 10), (8, 12), (9, 14), (10, 16), (11, 14), (12, 10), (13, 7), (14, 5), (15, 2))
THINK_OCTAVES = ((3, 3), (4, 5), (5, 5), (6, 3))
TEXT_OCTAVES = ((4, 3), (5, 5), (6, 6), (7, 5), (8, 2))


class Draw:
    """Everything random, from Random.random() alone."""

    def __init__(self, seed):
        self.r = random.Random(seed).random

    def below(self, n):
        return int(self.r() * n)

    def one(self, seq):
        return seq[int(self.r() * len(seq))]

    def octave(self, table):
        total = sum(w for _, w in table)
        x = self.r() * total
        for k, w in table:
            x -= w
            if x < 0:
                return (1 << k) + int(self.r() * (1 << k))
        return 1 << table[-1][0]

    def hex(self, n):
        return "".join("0123456789abcdef"[int(self.r() * 16)] for _ in range(n))

    def uuid(self):
        h = "%08x%08x%08x%08x" % tuple(int(self.r() * 4294967296) for _ in range(4))
        return "%s-%s-4%s-a%s-%s" % (h[:8], h[8:12], h[13:16], h[17:20], h[20:32])


def piece(d):
    x = d.r()
    if x < 0.94:
        return PIECES[int(d.r() * len(PIECES))]
    if x < 0.9995:
        return FOREIGN[int(d.r() * len(FOREIGN))]
    return d.one(SEPS)


def delta(d):
    x = d.r()
    n = 1 if x < 0.60 else 2 + d.below(3) if x < 0.90 else 5 + d.below(8)
    return "".join([piece(d) for _ in range(n)])


def make_pool(d, chars=1 << 20):
    """About a million characters of code-like, log-like text that tool results are cut from."""
    out, n = [], 0
    while n < chars:
        x = d.r()
        if x < 0.55:
            s = "    " * d.below(4) + "".join([piece(d) for _ in range(4 + d.below(14))])
        elif x < 0.75:
            s = '%s:%d:%d: warning: unused "%s" in `%s`' % (d.one(PATHS), d.below(900), d.below(80), d.one(WORDS), d.one(WORDS))
        elif x < 0.85:
            s = '{"k":"%s","n":%d,"ok":true,"p":"C:\\\\tmp\\\\%s"}' % (d.one(WORDS), d.below(10 ** 6), d.one(WORDS))
        elif x < 0.90:
            s = "\x1b[32m   Compiling\x1b[0m %s v0.%d.%d" % (d.one(WORDS), d.below(20), d.below(20))
        else:
            s = d.hex(40) + " " + d.one(PATHS)
        out.append(s)
        n += len(s) + 1
    return "\n".join(out)


def cut(d, pool, n):
    parts = []
    while n > 0:
        k = min(n, len(pool) // 2)
        at = d.below(len(pool) - k)
        parts.append(pool[at:at + k])
        n -= k
    return "".join(parts)


def script(seed, mix, giant_every):
    """Endless abstract conversation: tuples (kind, ...), a function of seed, mix and giant_every only."""
    d = Draw(seed)
    pool = make_pool(d)
    turn = 0
    told, next_giant = 0, giant_every // 2  # `told`: rough bytes of the conversation so far, the same for every dialect
    yield ("start",)
    while True:
        turn += 1
        yield ("turn", turn, "".join([piece(d) for _ in range(12)]))
        rounds = 1 if mix == "tokens" else 1 + d.below(5)
        if mix == "tools":
            rounds += 4
        for rnd in range(rounds):
            if mix != "tools":
                n = d.octave(THINK_OCTAVES)
                for _ in range(n):
                    yield ("think", delta(d))
                yield ("think_end",)
                m = d.octave(TEXT_OCTAVES)
                for _ in range(m):
                    yield ("text", delta(d))
                yield ("text_end",)
                told += 100 * (n + m)
            last = rnd == rounds - 1
            if mix == "tokens" or (last and rounds > 1):
                yield ("usage", 900 + d.below(90000), 20 + d.below(900), d.below(800))
                continue
            for _ in range(1 + (d.r() < 0.25)):
                cid = "call_" + d.hex(20)
                name = d.one(TOOLS)
                args = {"path": d.one(PATHS)}
                if name in ("write_file", "edit"):
                    args["content"] = cut(d, pool, d.octave(((6, 4), (8, 4), (10, 3), (12, 1))))
                elif name == "bash":
                    args = {"command": "cargo test -q -- %s | head -n %d" % (d.one(WORDS), d.below(99)), "timeout_ms": 120000}
                elif name == "grep":
                    args["pattern"] = '"%s\\s+(\\w+)"' % d.one(WORDS)
                yield ("call", cid, name, args, d.r())
                n = d.octave(TOOL_OCTAVES)
                if giant_every and told >= next_giant:
                    next_giant += giant_every
                    n = (1 << 20) + d.below((7 << 20) if d.r() < 0.5 else (1 << 20))
                told += n + 400
                yield ("result", cid, name, d.r() < 0.93, cut(d, pool, n))
            yield ("usage", 900 + d.below(90000), 20 + d.below(900), d.below(800))
        yield ("end", "stop")


def fragments(text, x):
    """Split streamed tool arguments the way providers do; x in [0,1) picks the grain."""
    step = 6 + int(x * 58)
    if len(text) > 4096:
        step = 256
    return [text[i:i + step] for i in range(0, len(text), step)]


def dump(obj, ascii_=False):
    return json.dumps(obj, ensure_ascii=ascii_, separators=(",", ":"))


# ---- the five dialects: step -> list of objects ------------------------------------------------

class OpenMax:
    """Order of a step, as the real program has it: budget, thinking and token lines, usage, message_done, then the tools."""

    def __init__(self, d):
        self.d, self.sid, self.buf, self.open, self.told = d, d.uuid(), [], False, False

    def e(self, t, **f):
        return dict({"session_id": self.sid, "type": t}, **f)

    def begin(self):
        """The first line of a step."""
        if self.open:
            return []
        self.open = True
        return [self.e("budget", used_tokens=900 + self.d.below(90000), context_tokens=131072)]

    def finish(self):
        """The end of a step's reply; also where the reply holds calls alone, or nothing."""
        if self.told:
            return []
        out = self.begin()
        t, self.buf, self.told = "".join(self.buf), [], True
        return out + [self.e("usage", prompt_tokens=900 + self.d.below(90000), completion_tokens=20 + self.d.below(900),
                             cached_tokens=self.d.below(800) or None), self.e("message_done", text=t)]

    def lines(self, s):
        k, e = s[0], self.e
        if k == "start":
            return [{"type": "hello", "proto": "openmax-stdio/6", "protocol_version": 6, "session_id": self.sid,
                     "version": "0.2.0", "project": "/srv/project", "continued": False}]
        if k == "think":
            return self.begin() + [e("thinking", text=s[1])]
        if k == "text":
            out = self.begin()
            self.buf.append(s[1])
            return out + [e("token", text=s[1])]
        if k == "text_end":
            return self.finish()
        if k == "call":
            out = self.finish() + [e("tool_start", call_id=s[1], name=s[2], args=s[3])]
            if asks(s):
                out += [e("approval_request", approval_id=approval(s[1]), name=s[2], summary=summary(s[3]), detail="",
                          reason="gate", source_path="", source_sha=""),
                        e("approval_settled", approval_id=approval(s[1]), outcome="approved")]
            return out
        if k == "result":
            return [e("tool_end", call_id=s[1], ok=s[3], output=s[4])]
        if k == "usage":
            out = self.finish()
            self.open = self.told = False
            return out
        if k == "end":
            return [e("done", stop_reason=s[1])]
        return []


class OpenMaxHost:
    """The host's lines of the same conversation."""

    def __init__(self, d):
        self.d = d

    def lines(self, s):
        if s[0] == "turn":
            out = [{"cmd": "user", "text": s[2].strip() or "go on"}]
            if self.d.r() < 0.02:
                out.append({"cmd": "approval_mode", "mode": self.d.one(("auto", "ask", "readonly"))})
            return out
        if s[0] == "call" and asks(s):
            return [{"cmd": "approve", "approval_id": approval(s[1]), "approved": True}]
        return []


class OpenMaxBoth(OpenMax):
    """Both sides, for `turnwire check`: a stream that keeps the contract."""

    def lines(self, s):
        if s[0] == "turn":
            return [{"cmd": "user", "text": s[2].strip() or "go on"}]
        out = super().lines(s)
        if s[0] == "call" and asks(s):
            out.insert(len(out) - 1, {"cmd": "approve", "approval_id": approval(s[1]), "approved": True})
        return out


def asks(call):
    """Whether a call asks for approval: about one in four of those that change something. Both sides know it by the id."""
    return call[2] in ("write_file", "edit", "bash") and call[1][5] in "0123"


def approval(call_id):
    h = hashlib.sha256(call_id.encode()).hexdigest()
    return "%s-%s-4%s-a%s-%s" % (h[:8], h[8:12], h[13:16], h[17:20], h[20:32])


def summary(args):
    return args.get("command") or args.get("path") or ""


class AgentX:
    """Claude-Code-shaped: raw model stream events wrapped with session id and a fresh UUID."""

    def __init__(self, d):
        self.d, self.sid, self.i, self.open, self.buf = d, d.uuid(), 0, None, []
        self.fresh = True

    def ev(self, event):
        return {"type": "stream_event", "event": event, "session_id": self.sid, "parent_tool_use_id": None, "uuid": self.d.uuid()}

    def block(self, kind, start):
        out = []
        if self.fresh:
            self.fresh = False
            out.append(self.ev({"type": "message_start", "message": {
                "id": "msg_" + self.d.hex(24), "type": "message", "role": "assistant", "model": "example-model-1", "content": [],
                "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1200, "output_tokens": 1}}}))
        if self.open != kind:
            out += self.close()
            self.open = kind
            out.append(self.ev({"type": "content_block_start", "index": self.i, "content_block": start}))
        return out

    def close(self):
        if self.open is None:
            return []
        out = [self.ev({"type": "content_block_stop", "index": self.i})]
        t, self.buf = "".join(self.buf), []
        if self.open in ("text", "thinking"):
            out.append({"type": "assistant", "message": {"id": "msg_x", "type": "message", "role": "assistant", "model": "example-model-1",
                        "content": [{"type": self.open, self.open: t}], "stop_reason": None, "stop_sequence": None,
                        "usage": {"input_tokens": 1200, "output_tokens": 40}},
                        "parent_tool_use_id": None, "session_id": self.sid, "uuid": self.d.uuid()})
        self.open, self.i = None, self.i + 1
        return out

    def lines(self, s):
        k, d = s[0], self.d
        if k == "start":
            return [{"type": "system", "subtype": "init", "apiKeySource": "user", "version": "1.0.0", "cwd": "/srv/project",
                     "tools": TOOLS, "mcp_servers": [], "model": "example-model-1", "provider": "example", "provider_type": "openai",
                     "permissionMode": "default", "slash_commands": ["compact", "help"], "output_style": "default", "skills": [],
                     "plugins": [], "session_id": self.sid, "uuid": d.uuid()}]
        if k == "think":
            self.buf.append(s[1]) if self.open == "thinking" else None
            out = self.block("thinking", {"type": "thinking", "thinking": "", "signature": ""})
            self.buf = self.buf or [s[1]]
            return out + [self.ev({"type": "content_block_delta", "index": self.i, "delta": {"type": "thinking_delta", "thinking": s[1]}})]
        if k == "text":
            self.buf.append(s[1]) if self.open == "text" else None
            out = self.block("text", {"type": "text", "text": ""})
            self.buf = self.buf or [s[1]]
            return out + [self.ev({"type": "content_block_delta", "index": self.i, "delta": {"type": "text_delta", "text": s[1]}})]
        if k in ("text_end", "think_end"):
            return self.close()
        if k == "call":
            out = self.block("tool:" + s[1], {"type": "tool_use", "id": s[1], "name": s[2], "input": {}})
            for f in fragments(dump(s[3]), s[4]):
                out.append(self.ev({"type": "content_block_delta", "index": self.i, "delta": {"type": "input_json_delta", "partial_json": f}}))
            out += self.close()
            out.append({"type": "assistant", "message": {"id": "msg_x", "type": "message", "role": "assistant", "model": "example-model-1",
                        "content": [{"type": "tool_use", "id": s[1], "name": s[2], "input": s[3]}], "stop_reason": None,
                        "stop_sequence": None, "usage": {"input_tokens": 1200, "output_tokens": 40}},
                        "parent_tool_use_id": None, "session_id": self.sid, "uuid": d.uuid()})
            return out
        if k == "result":
            return [{"type": "user", "message": {"role": "user", "content": [
                {"tool_use_id": s[1], "type": "tool_result", "content": s[4], "is_error": not s[3]}]},
                "parent_tool_use_id": None, "session_id": self.sid, "uuid": d.uuid()}]
        if k == "usage":
            self.fresh, self.i = True, 0
            return [self.ev({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                             "usage": {"output_tokens": s[2], "input_tokens": s[1], "cache_read_input_tokens": s[3]}}),
                    self.ev({"type": "message_stop"})]
        if k == "end":
            return [{"type": "result", "subtype": "success", "duration_ms": 8123, "duration_api_ms": 7011, "is_error": False,
                     "num_turns": 3, "result": "done", "stop_reason": "end_turn", "session_id": self.sid, "total_cost_usd": None,
                     "usage": {"input_tokens": 1200, "output_tokens": 400}, "modelUsage": {}, "permission_denials": [], "uuid": d.uuid()}]
        return []


class OpenSeek:
    def __init__(self, d):
        self.t, self.r, self.step, self.sid = [], [], 0, d.uuid()

    def lines(self, s):
        k = s[0]
        e = lambda t, **f: dict({"event": t}, **f)
        if k == "start":
            return [e("session_started", session=self.sid, session_root="/srv/sessions", workspace_root="/srv/project")]
        if k == "turn":
            self.step = 0
        if k == "think":
            self.r.append(s[1])
            return [e("reasoning_delta", content=s[1])]
        if k == "think_end":
            t, self.r = "".join(self.r), []
            return [e("reasoning_message", content=t)]
        if k == "text":
            self.t.append(s[1])
            return [e("assistant_delta", content=s[1])]
        if k == "text_end":
            t, self.t = "".join(self.t), []
            self.last = t
            return [e("assistant_message", content=t)]
        if k == "result":
            return [e("tool_result", tool_call_id=s[1], tool_name=s[2], is_error=not s[3], content=s[4], brief=None)]
        if k == "usage":
            self.step += 1
            return [e("usage", usage={"prompt_tokens": s[1], "completion_tokens": s[2], "total_tokens": s[1] + s[2],
                                      "prompt_cache_hit_tokens": s[3]}), e("agent_step", step=self.step)]
        if k == "end":
            return [e("agent_finished", answer=getattr(self, "last", ""))]
        return []


class Splice:
    def __init__(self, d):
        self.d, self.n, self.sid = d, 0, "session_" + d.hex(12)
        self.run = "run_20260810_" + d.hex(6)

    def lines(self, s):
        k = s[0]
        e = lambda t, **f: dict({"schemaVersion": 2, "type": t, "runId": self.run}, **f)
        if k == "turn":
            self.run, self.n = "run_20260810_" + self.d.hex(6), 0
            return [e("run_start", sessionId=self.sid, cwd="/srv/project", provider="openai", model="example-model", apiModel="example-model-1")]
        if k == "think":
            return [e("reasoning", delta=s[1])]
        if k == "text":
            return [e("text", delta=s[1])]
        if k == "call":
            return [e("tool_call_start", id=s[1], name=s[2])] + \
                [e("tool_call_delta", id=s[1], delta=f) for f in fragments(dump(s[3]), s[4])] + \
                [e("tool_call", id=s[1], name=s[2], args=s[3], sideEffect="read")]
        if k == "result":
            return [e("tool_result", id=s[1], status="ok" if s[3] else "error", output=s[4], truncated=False)]
        if k == "usage":
            self.n += 1
            return [e("usage", provider="openai", model="example-model", stage="code_writer", iteration=1, usageSequence=self.n,
                      usageReported=True, promptTokens=s[1], completionTokens=s[2], totalTokens=s[1] + s[2], cachedInputTokens=s[3])]
        if k == "end":
            return [e("final", text=dump({"run_id": self.run, "status": "completed", "tier": "light", "stages": []})),
                    e("run_end", status="success", exitCode=0)]
        return []


class Omp:
    partial = False  # --omp-partial: every update repeats the message so far, as some producers do (grows quadratically)

    def __init__(self, d):
        self.i, self.kind, self.buf = 0, None, []

    def upd(self, **ev):
        if self.partial:
            ev["partial"] = {"role": "assistant", "content": [{"type": "text", "text": "".join(self.buf)}]}
        return {"type": "message_update", "assistantMessageEvent": ev}

    def begin(self, kind):
        out = []
        if self.kind is None:
            out.append({"type": "message_start", "message": {"role": "assistant", "content": [], "stopReason": "stop"}})
        if self.kind != kind:
            self.kind = kind
            out.append(self.upd(type=kind + "_start", contentIndex=self.i))
        return out

    def lines(self, s):
        k = s[0]
        if k == "start":
            return [{"type": "ready", "protocolVersion": 1, "supportedProtocolVersions": [1, 2], "maxFrameBytes": 1048576,
                     "maxReassembledFrameBytes": 67108864}]
        if k == "turn":
            self.i, self.kind = 0, None
            return [{"id": "p%d" % s[1], "type": "response", "command": "prompt", "success": True},
                    {"type": "agent_start"}, {"type": "turn_start"}]
        if k in ("think", "text"):
            kind = "thinking" if k == "think" else "text"
            out = self.begin(kind)
            self.buf.append(s[1])
            return out + [self.upd(type=kind + "_delta", contentIndex=self.i, delta=s[1])]
        if k in ("think_end", "text_end"):
            kind = "thinking" if k == "think_end" else "text"
            t, self.buf = "".join(self.buf), []
            out = [self.upd(type=kind + "_end", contentIndex=self.i, content=t)]
            self.i += 1
            return out
        if k == "call":
            out = self.begin("toolcall")
            out += [self.upd(type="toolcall_delta", contentIndex=self.i, delta=f) for f in fragments(dump(s[3]), s[4])]
            out.append(self.upd(type="toolcall_end", contentIndex=self.i, toolCall={"type": "toolCall", "id": s[1], "name": s[2], "arguments": s[3]}))
            self.i, self.kind = self.i + 1, "after"
            return out + [{"type": "tool_execution_start", "toolCallId": s[1], "toolName": s[2], "args": s[3]}]
        if k == "result":
            return [{"type": "tool_execution_end", "toolCallId": s[1], "toolName": s[2],
                     "result": {"content": [{"type": "text", "text": s[4]}]}, "isError": not s[3]}]
        if k == "usage":
            self.i, self.kind = 0, None
            return [{"type": "message_end", "message": {"role": "assistant", "content": [], "stopReason": "stop", "usage": {
                "input": s[1], "output": s[2], "cacheRead": s[3], "cacheWrite": 0, "totalTokens": s[1] + s[2],
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}}}]
        if k == "end":
            return [{"type": "turn_end", "toolResults": []}, {"type": "agent_end", "messages": [], "isTerminal": True}]
        return []


# ---- the two SSE shapes: step -> list of already framed strings ----------------------------------

class OpenAI:
    def __init__(self, d):
        self.d, self.ti = d, -1
        self.new()

    def new(self):
        self.id, self.ti, self.first = "chatcmpl-" + self.d.hex(29), -1, True

    def chunk(self, dl, fin=None, usage=None, choices=True):
        o = {"id": self.id, "object": "chat.completion.chunk", "created": 1790000000, "model": "example-model-1",
             "service_tier": "default", "system_fingerprint": "fp_1a2b3c4d5e",
             "choices": [{"index": 0, "delta": dl, "logprobs": None, "finish_reason": fin}] if choices else []}
        if usage:
            o["usage"] = usage
        return "data: " + dump(o) + "\n\n"

    def frames(self, s):
        k, out = s[0], []
        if k in ("think", "text", "call") and self.first:
            self.first = False
            out.append(self.chunk({"role": "assistant", "content": ""}))
        if k == "think":
            out.append(self.chunk({"reasoning_content": s[1]}))
        elif k == "text":
            out.append(self.chunk({"content": s[1]}))
        elif k == "call":
            self.ti += 1
            out.append(self.chunk({"tool_calls": [{"index": self.ti, "id": s[1], "type": "function", "function": {"name": s[2], "arguments": ""}}]}))
            for f in fragments(dump(s[3]), s[4]):
                out.append(self.chunk({"tool_calls": [{"index": self.ti, "function": {"arguments": f}}]}))
        elif k == "usage":
            out.append(self.chunk({}, "tool_calls" if self.ti >= 0 else "stop"))
            out.append(self.chunk(None, usage={"prompt_tokens": s[1], "completion_tokens": s[2], "total_tokens": s[1] + s[2],
                                               "prompt_tokens_details": {"cached_tokens": s[3]}}, choices=False))
            out.append("data: [DONE]\n\n")
            self.new()
        if self.d.r() < 0.002:
            out.insert(0, ": keep-alive\n\n")
        return out


class Anthropic:
    def __init__(self, d):
        self.d = d
        self.ax = AgentX(d)

    def frames(self, s):
        out = []
        for o in self.ax.lines(s):
            if o["type"] == "stream_event":
                ev = o["event"]
                out.append("event: %s\ndata: %s\n\n" % (ev["type"], dump(ev)))
                if ev["type"] == "message_start":
                    out.append('event: ping\ndata: {"type":"ping"}\n\n')
        return out


SPELL = {"openmax": OpenMax, "openmax.host": OpenMaxHost, "openmax.both": OpenMaxBoth, "agentx": AgentX, "openseek": OpenSeek, "splice": Splice, "omp": Omp, "openai": OpenAI, "anthropic": Anthropic}


def shuffled(d, obj):
    rest = list(obj.items())
    return dict(rest.pop(d.below(len(rest))) for _ in range(len(rest)))


def write(name, path, args):
    target = int(args.mib * 1048576)
    every = int(args.giant_every * 1048576) if args.mix == "mixed" else 0
    sp = SPELL[name](Draw(args.seed * 1000003 + 17))
    esc = Draw(args.seed * 1000003 + 29)
    mixer = Draw(args.seed * 1000003 + 31)
    gen = script(args.seed, args.mix, every)
    done = turns = 0
    with open(path, "wb") as f:
        for step in gen:
            turns += step[0] == "end"
            if name in SSE:
                blob = "".join(sp.frames(step)).encode("utf-8")
            else:
                parts = []
                for o in sp.lines(step):
                    if args.shuffle > 0 and mixer.r() < args.shuffle:
                        o = shuffled(mixer, o)
                    t = dump(o, args.ascii_escapes > 0 and esc.r() < args.ascii_escapes)
                    if name == "agentx" and ("\u2028" in t or "\u2029" in t):
                        t = t.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
                    parts.append(t)
                    parts.append("\n")
                blob = "".join(parts).encode("utf-8")
            f.write(blob)
            done += len(blob)
            if step[0] == "end" and (done >= target or turns >= args.turns > 0):
                break
    return done


def stats(path):
    lens, h = [], hashlib.sha256()
    with open(path, "rb") as f:
        for line in f:
            lens.append(len(line))
            h.update(line)
    lens.sort()
    n, total = len(lens), sum(lens)
    q = lambda p: lens[min(n - 1, int(p * n))] if n else 0
    return {"bytes": total, "lines": n, "mean": round(total / max(1, n)), "p10": q(.10), "p50": q(.50), "p90": q(.90),
            "p99": q(.99), "p999": q(.999), "max": lens[-1] if n else 0,
            "share_of_bytes_in_lines_over_1KiB": round(sum(x for x in lens if x > 1024) / max(1, total), 3),
            "share_of_bytes_in_lines_over_1MiB": round(sum(x for x in lens if x > 1 << 20) / max(1, total), 3),
            "sha256": h.hexdigest()}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", help="directory to write into (made if absent)")
    p.add_argument("--mib", type=float, default=64, help="size of each file in MiB (a file ends at a turn's end, so a little over)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--mix", choices=("mixed", "tokens", "tools"), default="mixed")
    p.add_argument("--only", default="", help="comma list of " + ",".join(DIALECTS + HOSTS + SSE))
    p.add_argument("--giant-every", type=float, default=24, help="MiB of conversation per 1-8 MiB line (mixed only; 0 = none)")
    p.add_argument("--ascii-escapes", type=float, default=0.0, metavar="P", help="share of JSONL lines with \\uXXXX escapes")
    p.add_argument("--shuffle", type=float, default=0.0, metavar="P", help="share of JSONL lines with their members in another order")
    p.add_argument("--turns", type=int, default=0, help="end after so many turns, too (0 = size alone); for files of both sides that match")
    p.add_argument("--omp-partial", action="store_true", help="omp updates repeat the partial message (quadratic)")
    p.add_argument("--stats", metavar="FILE", help="describe FILE and exit")
    args = p.parse_args()
    if args.stats:
        print(json.dumps(stats(args.stats), indent=1))
        return
    if not args.out:
        p.error("--out is needed")
    Omp.partial = args.omp_partial
    os.makedirs(args.out, exist_ok=True)
    names = [n for n in args.only.split(",") if n] or list(DIALECTS + HOSTS + SSE)
    man = {"seed": args.seed, "mib": args.mib, "mix": args.mix, "giant_every": args.giant_every,
           "ascii_escapes": args.ascii_escapes, "omp_partial": args.omp_partial, "files": {}}
    for n in names:
        if n not in SPELL:
            p.error("no such stream: " + n)
        fn = n + (".sse" if n in SSE else ".jsonl")
        write(n, os.path.join(args.out, fn), args)
        man["files"][fn] = stats(os.path.join(args.out, fn))
        print(fn, json.dumps({k: v for k, v in man["files"][fn].items() if k != "sha256"}), file=sys.stderr)
    with open(os.path.join(args.out, "manifest.json"), "w") as f:
        json.dump(man, f, indent=1, sort_keys=True)
        f.write("\n")


if __name__ == "__main__":
    main()
