"""A server without the SDK, for what the SDK's own would never do; it starts in no time. The first argument says how."""

import json
import os
import re
import signal
import sys
import time

HOW = sys.argv[1]
PLAIN = {"type": "object", "properties": {"x": {"type": "string"}}}


def tool(name: str, schema: object = PLAIN, **more: object) -> dict[str, object]:
    return {"name": name, "description": f"does {name}", "inputSchema": schema, **more}


TOOLS = {
    "schemas": [
        tool("fine"),
        tool("remote", {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/x.json"}}}),
        tool("nonsense", {"type": "object", "properties": {"x": {"type": "no such type"}}}),
        tool("fine"),
        tool("drafty", {"$schema": "http://json-schema.org/draft-07/schema#", **PLAIN}),
    ],
    "names": [
        tool("a b"),
        tool("a_b"),
        tool("a.b"),
        tool("x" * 100),
        tool("x" * 101),
        tool("ünïcode"),
        tool("ok-1"),
    ],
    "asking": [
        tool(name)
        for name in (
            "form",
            "nested",
            "page",
            "script",
            "flood",
            "leave",
            "answered",
            "required",
            "capabilities",
        )
    ],
    "hints": [
        tool("look", annotations={"readOnlyHint": True}),
        tool("change", annotations={"readOnlyHint": False}),
        tool("silent"),
    ],
}

MODERN = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

CAPABILITIES: dict[str, object] = {
    "ignorant-silent": {},
    "ignorant-rich": {"tools": {}, "resources": {}, "prompts": {}},
    "ignorant-empty": {"logging": {}},
}

BREAK = {
    "no-utf8": lambda line: line.replace("[]", '[{"type": "text", "text": "\udcff"}]'),
    "no-json": lambda line: line[:-3],
    "no-protocol": lambda line: line.replace('"result"', '"outcome"'),
    "no-version": lambda line: line.replace('"2.0"', '"1.0"'),
    "marked": lambda line: "\ufeff" + line,
    "no-id": lambda line: line[:8],
    "odd-id": lambda line: re.sub(r'"id": (\d+)', r'"id": \1.5', line),
}


def answer(message: dict[str, object]) -> object:
    method = message["method"]
    params: dict[str, object] = message.get("params") or {}  # type: ignore[assignment]
    if method == "initialize" and HOW == "late-modern":
        raise LookupError(method)
    if method == "initialize":
        global capabilities
        capabilities, version = params["capabilities"], params["protocolVersion"]
        return {
            "protocolVersion": version,
            "capabilities": CAPABILITIES.get(HOW, {"tools": {}}),
            "serverInfo": {"name": "bare", "version": "0"},
        }
    if method == "tools/list" and HOW == "pages":
        page = int(str(params.get("cursor") or 0))
        return {"tools": [tool(f"t{page}")], **({"nextCursor": str(page + 1)} if page < 4 else {})}
    if method == "tools/list" and HOW.startswith("tools:"):
        return {"tools": [tool(name) for name in HOW.removeprefix("tools:").split(",")]}
    if method == "tools/list" and HOW == "ignorant-empty":
        raise LookupError(method)
    if method == "server/discover" and HOW == "late-modern":
        time.sleep(1.2)
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **MODERN}
    if method == "tools/list":
        lists.append(method)
        if HOW == "fickle" and len(lists) > 1:
            raise LookupError(f"{method} with {os.environ.get('API_KEY')}")
        plain = [tool("fine"), tool("env"), tool("blocks"), tool("die"), tool("count"), tool("leak")]
        return {"tools": TOOLS.get(HOW, plain), **(MODERN if HOW == "late-modern" else {})}
    if method == "tools/call" and HOW == "asking":
        return {"content": [{"type": "text", "text": json.dumps(asking(str(params["name"])))}]}
    if method == "tools/call":
        result = call(str(params["name"]))
        return {**result, **(MODERN if HOW == "late-modern" else {})}
    raise LookupError(method)


FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2},
        "age": {"type": "integer", "default": 30, "maximum": 150},
        "color": {
            "type": "string",
            "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}],
        },
        "news": {"type": "boolean", "default": False},
        "sizes": {"type": "array", "items": {"type": "string", "enum": ["S", "M", "L"]}, "maxItems": 2},
    },
    "required": ["name", "color"],
}
NESTED = {"type": "object", "properties": {"deep": {"type": "object", "properties": {}}}}
PAGE = {"mode": "url", "message": "Pay here.", "elicitationId": "e", "url": "https://pay.example/?id=7"}
QUESTIONS = {
    "form": {"message": "Who are you?", "requestedSchema": FORM},
    "nested": {"message": "Who are you?", "requestedSchema": NESTED},
    "page": PAGE,
    "script": {**PAGE, "url": "javascript:alert(1)"},
}


def asking(name: str) -> object:
    """Ask, and give back what was answered."""
    if name == "required":
        raise NotYet
    if name == "capabilities":
        return capabilities
    if name == "flood":
        return [ask("form")["result"] for _ in range(25)]
    if name == "leave":
        say({"jsonrpc": "2.0", "id": "left", "method": "elicitation/create", "params": QUESTIONS["form"]})
        return "gone"
    if name == "answered":
        return others
    reply = ask(name)
    return reply.get("result") or reply["error"]


def ask(name: str) -> dict[str, object]:
    say({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": QUESTIONS[name]})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "q":
            return message
        others.append(message)
    sys.exit()


def say(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


class NotYet(Exception):
    pass


others: list[object] = []
capabilities: object = None
calls = 0
lists: list[object] = []


def call(name: str) -> dict[str, object]:
    global calls
    calls += 1
    if name == "env":
        return {"content": [{"type": "text", "text": json.dumps(dict(os.environ))}]}
    if name == "die":
        os._exit(1)
    if name == "count":
        return {"content": [{"type": "text", "text": f"call {calls} of process {os.getpid()}"}]}
    if name == "leak":
        return {"content": [{"type": "text", "text": f"key {os.environ.get('API_KEY')}"}], "isError": True}
    if name == "blocks":
        return {
            "content": [
                {"type": "image", "data": "not base64!", "mimeType": "image/png"},
                {"type": "image", "data": "aGk=", "mimeType": "image/tiff"},
                {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "file:///x", "text": "inside"}},
                {
                    "type": "resource",
                    "resource": {"uri": "file:///y", "blob": "aGk=", "mimeType": "image/png"},
                },
                {"type": "resource", "resource": {"uri": "file:///z", "blob": "aGk="}},
                {"type": "resource_link", "name": "doc", "uri": "file:///d"},
            ]
        }
    return {"content": []}


def main() -> None:
    if HOW == "exit":
        print(f"no luck with {os.environ.get('API_KEY')}", file=sys.stderr)
        sys.exit(1)
    if HOW == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if HOW == "garbage":
        print("Welcome to my server!", flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if HOW == "mute" or "id" not in message:
            continue
        if "method" not in message:
            others.append(message)
            continue
        reply: dict[str, object] = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            reply["result"] = answer(message)
        except NotYet:
            reply["error"] = {"code": -32042, "message": "pay first", "data": {"elicitations": [PAGE]}}
        except LookupError as error:
            if HOW == "old":
                sys.exit("what is that?")
            if HOW.startswith("ignorant"):
                continue
            reply["error"] = {"code": -32601, "message": f"unknown method {error}"}
        line = json.dumps(reply)
        if message["method"] == "tools/call" and HOW in BREAK:
            line = BREAK[HOW](line)
        sys.stdout.buffer.write(line.encode("utf-8", "surrogateescape") + b"\n")
        sys.stdout.buffer.flush()
    while HOW == "stubborn":
        time.sleep(1)


main()
