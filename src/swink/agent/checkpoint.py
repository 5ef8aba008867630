"""Checkpoints: a conversation as plain data, to be taken up again in another process."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from swink.errors import InvalidInput, MisuseError
from swink.messages import CALL_TOOL, AssistantMessage, Message, ModelSpec, ToolResultMessage
from swink.messages.codec import to_builtins
from swink.messages.jsondata import from_data
from swink.messages.records import OpenTurn
from swink.stream import StreamFn
from swink.tools import (
    FINAL_OUTPUT,
    FIND_TOOLS,
    GONE,
    Tool,
    ToolContext,
    ToolError,
    as_offers,
    as_tool,
    full_text,
    is_tool_name,
)

VERSION = 2
_READABLE = (1, 2)
"""Version 1 has no open turn."""
_ADDED = (FINAL_OUTPUT, FIND_TOOLS, CALL_TOOL)
"""The names of tools that a run adds itself."""


class SavedAgent(Struct, frozen=True, kw_only=True):
    """What a conversation consists of, code aside."""

    version: int = VERSION
    model: ModelSpec
    system_prompt: str = ""
    messages: list[Message]
    steering: list[Message] = field(default_factory=list[Message])
    follow_up: list[Message] = field(default_factory=list[Message])
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    open: OpenTurn | None = None
    """A turn whose calls have not all ended, such as one that waits for approval."""

    def to_data(self) -> dict[str, Any]:
        """Plain JSON data, whatever the messages hold.

        A result that was cut for the model says here only how long it was: every checkpoint would repeat it.
        """
        data = to_builtins(replace(self, messages=[], steering=[], follow_up=[]))
        for name in ("messages", "steering", "follow_up"):
            data[name] = [to_builtins(_without_full_text(message)) for message in getattr(self, name)]
        return data

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "SavedAgent":
        """The checkpoint in some data; refused, with the reason, if there is none."""
        if not isinstance(data, Mapping):
            raise InvalidInput(
                f"restore() takes what checkpoint() returned, a dict, not {type(data).__name__}"
            )
        version = data.get("version")
        if version not in _READABLE:
            raise MisuseError(
                f"checkpoint version {version!r} is not {VERSION}: another release of swink wrote it"
                if "version" in data
                else "restore() takes what checkpoint() returned; this has no version"
            )
        try:
            return msgspec.convert(from_data(data), cls)
        except (msgspec.ValidationError, RecursionError, UnicodeEncodeError) as error:
            raise MisuseError(f"not a checkpoint: {error}") from error

    def options(self, tools: Sequence[Any], stream_fn: StreamFn | None) -> dict[str, Any]:
        """The keywords of an agent that goes on from here; tools that are gone get a placeholder."""
        used = self.messages if self.open is None else [*self.messages, *self.open.settled()]
        given = as_offers(tools)
        known = [
            as_tool(tool) for item in given for tool in ([item] if isinstance(item, Tool) else item.tools())
        ]
        return {
            "model": self.model,
            "system_prompt": self.system_prompt,
            "messages": self.messages,
            "state": self.state,
            "stream_fn": stream_fn,
            "tools": [*given, *placeholders(used, known)],
        }


def placeholders(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Tool]:
    """A tool that explains itself for each one the messages used and `tools` no longer has.

    What a model made up gets none: no tool can have had the name. Nor do those that a run adds itself.
    """
    replies = [message for message in messages if isinstance(message, AssistantMessage)]
    names = {call.name for reply in replies for call in reply.tool_calls}
    used = {name for name in names if is_tool_name(name) and name not in _ADDED}
    return [_placeholder(name) for name in sorted(used - {tool.name for tool in tools})]


def _without_full_text(message: Message) -> Message:
    if not isinstance(message, ToolResultMessage) or (full := full_text(message)) is None:
        return message
    details = {"full_length": len(full)} | {
        key: value for key, value in message.details.items() if key != "full_text"
    }
    return replace(message, details=details)


def _placeholder(name: str) -> Tool:
    async def gone(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> str:
        raise ToolError(f"the tool {name!r} is no longer available in this session; do without it")

    return Tool.raw(name, GONE, {"type": "object"}, gone)
