"""An MCP server whose one tool gives back the `_meta` of all requests, that of its own call last."""

import json
import sys

metas: list[object] = []
for line in sys.stdin:
    request = json.loads(line)
    metas.append(request.get("params", {}).get("_meta", {}))
    if "id" not in request:
        continue
    answer: dict[str, object]
    match request["method"]:
        case "initialize":
            answer = {
                "result": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "meta", "version": "1"},
                }
            }
        case "tools/list":
            tool = {"name": "meta", "description": "Meta.", "inputSchema": {"type": "object"}}
            answer = {"result": {"tools": [tool]}}
        case "tools/call":
            text = json.dumps(metas)
            answer = {"result": {"content": [{"type": "text", "text": text}]}}
        case _:
            answer = {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)
