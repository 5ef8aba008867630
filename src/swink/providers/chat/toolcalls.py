"""The tool calls of a chat-completions reply, told apart by index, by id, else by name."""

import hashlib
import re
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from swink.errors import StreamError
from swink.stream import BlockWriter, parse_arguments


class Function(Struct):
    """What a delta says of the function."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


_NOTHING = Function()


class CallDelta(Struct):
    """What a chunk says of one call."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None
    extra_content: Any = None
    """What Google's compatible API wants back with a call: its thought signature."""


class _Call:
    """One tool call; it opens in the reply as soon as its name is known."""

    __slots__ = ("arguments", "id", "index", "name")

    def __init__(self, id: str) -> None:
        self.id = id
        self.name = ""
        self.index: int | None = None
        self.arguments: list[str] = []


class CallReader:
    """The tool calls of one reply."""

    def __init__(self, reply: BlockWriter) -> None:
        self._reply = reply
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    @property
    def any(self) -> bool:
        """Whether there is any call."""
        return bool(self._calls)

    def take(self, delta: CallDelta, reply_id: str) -> None:
        """More of a call, or a new one."""
        function = delta.function or _NOTHING
        if delta.index in self._by_index and not delta.id and not function.name:
            call = self._by_index[delta.index]
        else:
            call = self._find(delta, function)
            if delta.index is not None:
                self._by_index[delta.index] = call
            call.name = call.name or function.name or ""
        arguments = function.arguments
        if type(arguments) is not str:
            arguments = msgspec.json.encode(arguments).decode() if isinstance(arguments, dict) else ""
        if arguments:
            call.arguments.append(arguments)
        if call.index is not None:
            if arguments:
                self._reply.add(call.index, arguments)
        elif call.name:
            if not call.id:
                number = self._calls.index(call)
                call.id = "call_" + hashlib.sha256(f"{reply_id}\0{number}".encode()).hexdigest()[:24]
            call.index = self._reply.begin_call(call.id, call.name)
            if call.arguments:
                self._reply.add(call.index, "".join(call.arguments))
        if delta.extra_content is not None and call.index is not None:
            self._reply.sign(msgspec.json.encode(delta.extra_content).decode(), call.index)

    def check(self) -> None:
        """A call without a name cannot be made."""
        for call in self._calls:
            if call.index is None:
                raise StreamError("the provider sent a tool call without a name")

    def _find(self, delta: CallDelta, function: Function) -> _Call:
        id = delta.id or ""
        last = self._calls[-1] if self._calls else None
        current = last if delta.index is None else self._by_index.get(delta.index)
        if current is not None and (current.id == id if id else not function.name):
            return current
        known = next((call for call in self._calls if call.id == id), None) if id else None
        # A whole call at another index is another call, even if the server gives both one id.
        if known is not None and not (current is None and function.name and _is_whole(known)):
            return known
        if current is None or self._begins_another(current, id, function.name or ""):
            current = _Call(id)
            self._calls.append(current)
        elif id and not current.id:
            current.id = id
        return current

    def _begins_another(self, current: _Call, id: str, name: str) -> bool:
        """Whether a delta with a name begins another call: it has another id, or the call before is whole."""
        if not name or not current.name:
            return False
        if id and current.id:
            return id != current.id
        return _is_whole(current)


def _is_whole(call: _Call) -> bool:
    return bool(call.arguments) and parse_arguments("".join(call.arguments)) is not None


def write_failed_call(reply: BlockWriter, said: str, tools: Sequence[str], prefix: str = "call_") -> None:
    """End a reply with a call that the server could not read; the model sees what it said, and tries again.

    It is a call of the tool that it names first, else of the first tool there is, else of the
    function that it calls.
    """
    if not tools:
        called = re.search(r"([A-Za-z][\w-]{0,63})\((?!.*default_api\.)", said, re.S)
        tools = [called[1] if called else "unknown"]
    words = {name: rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in tools}
    named = [(found.start(), name) for name in tools if (found := re.search(words[name], said))]
    index = reply.begin_call(prefix + uuid.uuid4().hex[:20], min(named)[1] if named else tools[0])
    reply.add(index, said or "malformed function call")
    reply.end(index)
    reply.done("tool_use")
