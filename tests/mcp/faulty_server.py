"""A server without the SDK that goes wrong: the second argument says how, the third at which request.

die        ends without an answer          half        ends in the middle of an answer
flood      writes lines that are nothing   broken      answers with what is no JSON
twice      answers twice                   wrong-id    answers a request that nobody made, then the right one
huge       answers with a few MB           mute        does not answer
shape      answers with another shape      garbage     writes bytes that are no text first
storm      says first that every list has changed, a hundred times
"""

import json
import os
import sys

HOW, AT = sys.argv[1], sys.argv[2]
TOOL = {"name": "fine", "description": "does it", "inputSchema": {"type": "object"}}
CAPABILITIES = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}
ANSWERS: dict[str, object] = {
    "tools/list": {"tools": [TOOL]},
    "resources/list": {"resources": [{"uri": "a://b", "name": "b"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "prompts/list": {"prompts": [{"name": "p"}]},
    "tools/call": {"content": [{"type": "text", "text": "fine"}]},
    "resources/read": {"contents": [{"uri": "a://b", "text": "fine"}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "fine"}}]},
}


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def say(message: dict[str, object]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def go_wrong(reply: dict[str, object]) -> bool:
    """Go wrong; whether there is still something to answer."""
    line = json.dumps({"jsonrpc": "2.0", **reply})
    match HOW:
        case "die":
            print(f"killed with {os.environ.get('API_KEY')}", file=sys.stderr, flush=True)
            os._exit(3)
        case "half":
            write(line[: len(line) // 2])
            os._exit(0)
        case "flood":
            for number in range(1_000):
                write(f"line {number}, which is no message at all\n")
        case "broken":
            write(line[:-4] + "\n")
            return False
        case "twice":
            write(line + "\n")
        case "wrong-id":
            write(json.dumps({"jsonrpc": "2.0", "id": 987_654, "result": reply["result"]}) + "\n")
            write(json.dumps({"jsonrpc": "2.0", "id": "nobody", "result": {}}) + "\n")
        case "huge":
            write(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {
                "level": "info", "data": "x" * 4_000_000}}) + "\n")  # fmt: skip
        case "mute":
            return False
        case "shape":
            write(json.dumps({"jsonrpc": "2.0", "id": reply["id"], "result": ["no", "object"]}) + "\n")
            return False
        case "garbage":
            sys.stdout.buffer.write(b"\xff\xfe\x00garbage\n[]\n\n" + b"\0" * 100 + b"\n")
            sys.stdout.buffer.flush()
        case "storm":
            for number in range(100):
                kind = ("tools", "resources", "prompts")[number % 3]
                say({"method": f"notifications/{kind}/list_changed"})
    return True


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if "id" not in message or method is None:
            continue
        if method == "initialize":
            result: object = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": CAPABILITIES,
                "serverInfo": {"name": "faulty", "version": "0"},
            }
        elif method in ANSWERS:
            result = ANSWERS[method]
        else:
            say({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})
            continue
        reply: dict[str, object] = {"id": message["id"], "result": result}
        if method != AT or go_wrong(reply):
            say(reply)


main()
