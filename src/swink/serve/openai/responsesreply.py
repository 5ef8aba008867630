"""A run of an agent as one response of the Responses API, whole or as events.

response.created response.in_progress
( response.output_item.added … response.output_item.done )*   thinking, messages, client calls
response.completed | response.incomplete | response.failed
"""

import secrets
import time
from collections.abc import Iterable, Mapping
from typing import Any

from swink.messages import ToolCall, Usage
from swink.serve.openai.asked import AskedOfAgent
from swink.serve.openai.spoken import RunOutcome, Speech, SpokenText, SpokenThinking
from swink.serve.openaiwire import arguments_of
from swink.serve.wire import sse


class ResponseReply:
    """Writes one response; its items are those of the agent's messages, in their order."""

    def __init__(self, about: Mapping[str, Any], is_json: bool = False) -> None:
        self._about = about
        self._is_json = is_json
        self._output: list[dict[str, Any]] = []
        self._state: dict[str, Any] = {}
        self._open: str | None = None
        self._text: list[str] = []
        self._number = 0

    @property
    def response(self) -> dict[str, Any]:
        """The response as it is now."""
        return {**self._about, **self._state, "output": list(self._output)}

    def start(self) -> list[bytes]:
        """The response as it begins."""
        return [self._whole("created", "in_progress"), self._whole("in_progress", "in_progress")]

    def write(self, piece: Speech) -> list[bytes]:
        """The events that a piece of speech becomes."""
        match piece:
            case SpokenThinking(text):
                return [*self._begin("reasoning"), self._more(text)]
            case SpokenText(text) if not self._is_json:
                return [*self._begin("message"), self._more(text)]
            case _:
                return self._close()

    def finish(self, outcome: RunOutcome) -> list[bytes]:
        """What is still open, the calls for the client, and the end."""
        last = self._close()
        if outcome.json is not None:
            last += [*self._begin("message"), self._more(outcome.json), *self._close()]
        for call in outcome.calls:
            last += self._call(call)
        usage = _usage(outcome.usage)
        if outcome.reason == "length":
            cut = {"reason": "max_output_tokens"}
            return [*last, self._whole("incomplete", "incomplete", usage=usage, incomplete_details=cut)]
        return [*last, self._whole("completed", "completed", usage=usage)]

    def fail(self, message: str, kind: str | None) -> list[bytes]:
        """What is still open, and why the response failed."""
        code = "rate_limit_exceeded" if kind == "throttled" else "server_error"
        error = {"code": code, "message": message}
        return [*self._close("incomplete"), self._whole("failed", "failed", error=error)]

    def _whole(self, name: str, status: str, **more: Any) -> bytes:
        self._state = {"status": status, "usage": None, **more}
        return self._event(f"response.{name}", response=self.response)

    def _event(self, kind: str, **data: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        return sse({"type": kind, "sequence_number": number, **data}, kind)

    def _begin(self, kind: str) -> list[bytes]:
        """Open an item of this kind, unless the one that is open is of it."""
        if self._open == kind:
            return []
        closed = self._close()
        self._open = kind
        return [*closed, self._add(_said(kind, "in_progress")), self._part("added")]

    def _more(self, text: str) -> bytes:
        self._text.append(text)
        if self._open == "reasoning":
            return self._at("response.reasoning_summary_text.delta", summary_index=0, delta=text)
        return self._at("response.output_text.delta", content_index=0, delta=text, logprobs=[])

    def _close(self, status: str = "completed") -> list[bytes]:
        """End the open item, if there is one."""
        if (kind := self._open) is None:
            return []
        text, self._text = "".join(self._text), []
        if kind == "reasoning":
            done = self._at("response.reasoning_summary_text.done", summary_index=0, text=text)
        else:
            done = self._at("response.output_text.done", content_index=0, text=text, logprobs=[])
        part, self._open = self._part("done", text), None
        return [done, part, self._done({**_said(kind, status, text), "id": self._item["id"]})]

    def _call(self, call: ToolCall) -> list[bytes]:
        arguments = arguments_of(call)
        item = {"id": _new_id("fc"), "type": "function_call", "call_id": call.id, "name": call.name}
        return [
            self._add({**item, "arguments": "", "status": "in_progress"}),
            self._at("response.function_call_arguments.delta", delta=arguments),
            self._at("response.function_call_arguments.done", arguments=arguments, name=call.name),
            self._done({**item, "arguments": arguments, "status": "completed"}),
        ]

    @property
    def _item(self) -> dict[str, Any]:
        return self._output[-1]

    def _add(self, item: dict[str, Any]) -> bytes:
        self._output.append(item)
        return self._event("response.output_item.added", output_index=len(self._output) - 1, item=item)

    def _done(self, item: dict[str, Any]) -> bytes:
        self._output[-1] = item
        return self._event("response.output_item.done", output_index=len(self._output) - 1, item=item)

    def _part(self, what: str, text: str = "") -> bytes:
        if self._open == "reasoning":
            part = _summary(text)
            return self._at(f"response.reasoning_summary_part.{what}", summary_index=0, part=part)
        return self._at(f"response.content_part.{what}", content_index=0, part=_output_text(text))

    def _at(self, kind: str, **data: Any) -> bytes:
        """An event about the last item."""
        return self._event(kind, item_id=self._item["id"], output_index=len(self._output) - 1, **data)


def response_head(id: str, model: str, asked: AskedOfAgent) -> dict[str, Any]:
    """What a response says of itself from its beginning to its end."""
    tools = [
        {"type": "function", "name": tool.name, "description": tool.description, "strict": False}
        | {"parameters": tool.parameters_schema}
        for tool in asked.tools
    ]
    said: dict[str, Any] = {
        "id": id,
        "object": "response",
        "created_at": int(time.time()),
        "model": model,
        "error": None,
        "incomplete_details": None,
        "instructions": asked.instructions or None,
        "metadata": {},
        "parallel_tool_calls": True,
        "previous_response_id": asked.previous,
        "store": asked.store,
        "temperature": None,
        "tool_choice": "auto",
        "tools": tools,
        "top_p": None,
    }
    if (output := asked.output) is not None:
        format = {"type": "json_schema", "name": output.name, "schema": output.schema}
        return {**said, "text": {"format": format}}
    return {**said, "text": {"format": {"type": "text"}}}


def whole_response(about: Mapping[str, Any], speech: Iterable[Speech], outcome: RunOutcome) -> dict[str, Any]:
    """The response of a run that has ended."""
    reply = ResponseReply(about, outcome.json is not None)
    for piece in speech:
        reply.write(piece)
    reply.finish(outcome)
    return reply.response


def _said(kind: str, status: str, text: str | None = None) -> dict[str, Any]:
    """An item, with its text once that is whole."""
    if kind == "reasoning":
        summary = [] if text is None else [_summary(text)]
        return {"id": _new_id("rs"), "type": kind, "summary": summary, "status": status}
    content = [] if text is None else [_output_text(text)]
    said = {"id": _new_id("msg"), "type": kind, "role": "assistant", "content": content}
    return {**said, "status": status}


def _summary(text: str) -> dict[str, Any]:
    return {"type": "summary_text", "text": text}


def _output_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _new_id(kind: str) -> str:
    return f"{kind}_{secrets.token_hex(12)}"


def _usage(usage: Usage) -> dict[str, Any]:
    read = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": read,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.extra.get("reasoning", 0)},
        "total_tokens": read + usage.output,
    }
