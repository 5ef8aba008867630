"""The transcript that hooks read: the conversation as a file in the form that the other program publishes.

    {"type": "user", "message": {"role": "user", "content": "Fix the tests."}, "uuid": …, "parentUuid": …}
    {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": …}]}, …}
    {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", …}]}, …}

One line for each block of a reply, as there. It is written when a hook is about to run, in a thread, and
grows by what is new; it is private, holds no key that swink holds, and is removed with its session.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from uuid import NAMESPACE_OID, uuid5

from swink import __version__
from swink.memory.heldkeys import keys_named, without_keys
from swink.memory.jsonl import sessions_dir, transcript_of
from swink.memory.session import Session
from swink.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from swink.messages.jsondata import encode
from swink.messages.records import CustomSaved, MessageSaved, saved
from swink.policies.hooks.hooknames import foreign_tool, to_foreign
from swink.system.files import open_private, whole_file
from swink.system.threads import Serial

_AT_ONCE = 50
"""Messages that are encoded without letting other threads run."""
_STOPS = {"stop": "end_turn", "tool_use": "tool_use", "length": "max_tokens"}


class HookTranscript:
    """The file of one session; `servers` says which MCP server a tool belongs to."""

    def __init__(self, session: Session, directory: Path, servers: Mapping[str, str]) -> None:
        self.session = session
        self._directory = str(directory)
        self._servers = servers
        self._serial = Serial()
        self._id = ""
        self._known: dict[int, Message] = {}
        """What is in the file, by identity."""
        self._last = ""
        self._keys = keys_named()

    async def follow(self, messages: Sequence[Message]) -> str:
        """Write what is new in these; where the file is. Raises `OSError` or `SessionError`."""
        return await self._serial.call(self._follow, messages)

    def _follow(self, messages: Sequence[Message]) -> str:
        try:
            return self._write(messages)
        except BaseException:
            self._id = ""  # what is in the file is not known: the next time it is written anew
            raise

    def _write(self, messages: Sequence[Message]) -> str:
        path = transcript_of(sessions_dir(), self.session.id)
        if self._id != self.session.id or not os.path.exists(path):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            self._id, self._known, self._last = self.session.id, {}, ""
            # At once: a thread that saves may add to it.
            before = list(self.session.conversation.everything.values())
            with whole_file(path, durable=False) as file:
                for lines in self._add([*before, *_after(messages, {id(each): each for each in before})]):
                    file.write(lines)
            return path
        new = _after(messages, self._known)
        if new:
            with open(path, "ab", opener=open_private) as file:
                file.write(b"".join(self._add(new)))
        return path

    def _add(self, messages: Sequence[Message]) -> Iterator[bytes]:
        for start in range(0, len(messages), _AT_ONCE):
            piece = messages[start : start + _AT_ONCE]
            first = len(self._known)
            self._known.update((id(message), message) for message in piece)
            records = [saved(message, first + at) for at, message in enumerate(piece)]
            clean = cast("Sequence[MessageSaved | CustomSaved]", without_keys(records, self._keys))
            yield b"".join(encode(line) + b"\n" for record in clean for line in self._lines(record))

    def _lines(self, record: MessageSaved | CustomSaved) -> Iterator[dict[str, Any]]:
        message = record.message
        stamp = datetime.fromtimestamp(message.timestamp, UTC).isoformat(timespec="milliseconds")
        for at, fields in enumerate(self._bodies(message, f"{self._id}/{record.number}")):
            uuid = str(uuid5(NAMESPACE_OID, f"{self._id}/{record.number}/{at}"))
            yield {
                "parentUuid": self._last or None,
                "isSidechain": False,
                "userType": "external",
                "cwd": self._directory,
                "sessionId": self._id,
                "version": __version__,
                **fields,
                "uuid": uuid,
                "timestamp": stamp.replace("+00:00", "Z"),
            }
            self._last = uuid

    def _bodies(self, message: Message, name: str) -> Iterator[dict[str, Any]]:
        match message:
            case UserMessage():
                meta = {"isMeta": True} if message.text.startswith("<hook event=") else {}
                yield {**meta, "type": "user", "message": {"role": "user", "content": message.text}}
            case AssistantMessage():
                frame = _frame(message, f"msg_{uuid5(NAMESPACE_OID, name).hex[:24]}")
                for block in filter(None, map(self._block, message.content)):
                    yield {"type": "assistant", "message": {**frame, "content": [block]}}
            case ToolResultMessage():
                block = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.text}
                content = [{**block, "is_error": message.is_error}]
                yield {"type": "user", "message": {"role": "user", "content": content}}
            case CustomMessage():  # no model has seen it
                return

    def _block(self, block: Any) -> dict[str, Any] | None:
        match block:
            case Text(text):
                return {"type": "text", "text": text}
            case Thinking(text):
                return {"type": "thinking", "thinking": text, "signature": ""}
            case ToolCall():
                server = self._servers.get(block.name)
                name, given = foreign_tool(block.name, server), dict(block.arguments)
                if server is None:
                    given = to_foreign(block.name, given, self._directory)
                return {"type": "tool_use", "id": block.id, "name": name, "input": given}
            case _:
                return None


def _after(messages: Sequence[Message], known: Mapping[int, Message]) -> list[Message]:
    """Those after the newest one that is known: what a compaction puts before it is no news."""
    found: list[Message] = []
    for message in reversed(messages):
        if id(message) in known:
            break
        found.append(message)
    return found[::-1]


def _frame(message: AssistantMessage, id: str) -> dict[str, Any]:
    used = message.usage
    usage = {"input_tokens": used.input, "output_tokens": used.output}
    usage |= {"cache_creation_input_tokens": used.cache_write, "cache_read_input_tokens": used.cache_read}
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": message.model,
        "stop_reason": _STOPS.get(message.stop_reason),
        "stop_sequence": None,
        "usage": usage,
    }
