"""A model on loopback for programs that name a real one: it calls the first tool it is offered, then answers.

It speaks Anthropic's Messages and OpenAI's Chat Completions and Responses, as far as one answer needs them. Values that a schema
asks for are made from the schema.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

TEXT = "It is 18 °C and clear."
OUTPUT = re.compile("output|final_result")
"""Names of tools that take a typed answer."""


@contextmanager
def answering_model() -> Iterator[dict[str, str]]:
    """The variables that send programs to the model."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield {
            "ANTHROPIC_API_KEY": "not-a-key",
            "ANTHROPIC_BASE_URL": url,
            "OPENAI_API_KEY": "not-a-key",
            "OPENAI_BASE_URL": f"{url}/v1",
        }
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Answers(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None: ...

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        kind = "text/event-stream" if asked.get("stream") else "application/json"
        path = self.path.partition("?")[0]
        if path.endswith("/messages"):
            body = sent(anthropic(asked))
        elif path.endswith("/responses"):
            response = responses(asked)
            body = sent(events_of(response)) if asked.get("stream") else json.dumps(response)
        elif asked.get("stream"):
            body = "".join(f"data: {json.dumps(event)}\n\n" for event in openai(asked)) + "data: [DONE]\n\n"
        else:
            body = json.dumps(whole(openai(asked)))
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())


def sent(events: list[dict[str, Any]]) -> str:
    """Events of a stream that names the type of each."""
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def anthropic(asked: dict[str, Any]) -> list[dict[str, Any]]:
    contents = [message["content"] for message in asked["messages"] if isinstance(message["content"], list)]
    answered = any(block["type"] == "tool_result" for content in contents for block in content)
    schema = (asked.get("output_config") or {}).get("format", {}).get("schema")
    own = [tool for tool in asked.get("tools", ()) if "input_schema" in tool]  # others run at the provider
    called = called_of([(tool["name"], tool["input_schema"]) for tool in own], answered)
    usage = {"input_tokens": 20, "output_tokens": 8}
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "content": []}
    if called:
        block = {"type": "tool_use", "id": f"toolu_{len(asked['messages'])}", "name": called[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(called[1])}
    else:
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": json.dumps(value_of(schema)) if schema else TEXT}
    return [
        {"type": "message_start", "message": {**start, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use" if called else "end_turn"},
            "usage": usage,
        },
        {"type": "message_stop"},
    ]


def openai(asked: dict[str, Any]) -> list[dict[str, Any]]:
    offered = [(tool["function"]["name"], tool["function"]["parameters"]) for tool in asked.get("tools", ())]
    schema = (asked.get("response_format") or {}).get("json_schema", {}).get("schema")
    called = called_of(offered, any(message["role"] == "tool" for message in asked["messages"]))
    delta: dict[str, Any] = {"role": "assistant"}
    if called:
        function = {"name": called[0], "arguments": json.dumps(called[1])}
        delta["tool_calls"] = [{"index": 0, "id": "call_1", "type": "function", "function": function}]
    else:
        delta["content"] = json.dumps(value_of(schema)) if schema else TEXT
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if called else "stop"}
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": asked["model"]}
    return [{**chunk, "choices": [choice]}, {**chunk, "choices": [end]}]


def whole(events: list[dict[str, Any]]) -> dict[str, Any]:
    """A completion that is not streamed."""
    (choice,), (end,) = events[0]["choices"], events[-1]["choices"]
    message = {"content": None, **choice["delta"]}
    usage = {"prompt_tokens": 20, "completion_tokens": 8, "total_tokens": 28}
    done = {"index": 0, "message": message, "finish_reason": end["finish_reason"]}
    return {**events[0], "object": "chat.completion", "choices": [done], "usage": usage}


def responses(asked: dict[str, Any]) -> dict[str, Any]:
    """A response that is not streamed."""
    own = [tool for tool in asked.get("tools", ()) if tool["type"] == "function"]
    offered = [(tool["name"], tool["parameters"]) for tool in own]
    schema = (asked.get("text") or {}).get("format", {}).get("schema")
    items = asked["input"] if isinstance(asked["input"], list) else []
    called = called_of(offered, any(item.get("type") == "function_call_output" for item in items))
    if called:
        call = {"name": called[0], "arguments": json.dumps(called[1]), "call_id": "call_1", "id": "fc_1"}
        item = {"type": "function_call", "status": "completed", **call}
    else:
        answer = json.dumps(value_of(schema)) if schema else TEXT
        text = {"type": "output_text", "text": answer, "annotations": []}
        item = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [text],
        }
    about = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": asked["model"],
        "status": "completed",
    }
    return {**about, "output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}


def events_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    """The same response as it is streamed."""
    begun = {**response, "status": "in_progress", "output": []}
    [item] = response["output"]
    usage = {"input_tokens": 20, "output_tokens": 8, "total_tokens": 28}
    return [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**response, "usage": usage}},
    ]


def called_of(offered: list[tuple[str, Any]], answered: bool) -> tuple[str, Any] | None:
    """The call that the model makes: of the first tool, then of the one that takes the output."""
    outputs = [each for each in offered if OUTPUT.search(each[0])]
    others = [each for each in offered if not OUTPUT.search(each[0])]
    for name, schema in outputs if answered or not others else others:
        return name, value_of(schema)
    return None


def value_of(schema: dict[str, Any], root: dict[str, Any] | None = None) -> Any:
    """Something that a schema allows."""
    root = root or schema
    match schema:
        case {"$ref": str(place)}:
            found: Any = root
            for part in place.removeprefix("#/").split("/"):
                found = found[part]
            return value_of(found, root)
        case {"enum": [first, *_]} | {"const": first} | {"default": first}:
            return first
        case {"anyOf": [first, *_]}:
            return value_of(first, root)
        case {"type": "object"}:
            wanted = schema.get("required", [])
            return {name: value_of(schema["properties"][name], root) for name in wanted}
        case {"type": "array"}:
            return [value_of(schema["items"], root)] if schema.get("items") else []
        case {"type": "integer" | "number"}:
            return schema.get("minimum", 7)
        case {"type": "boolean"}:
            return True
        case _:
            return "Oslo"
