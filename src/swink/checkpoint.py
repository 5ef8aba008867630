"""Checkpoints: a conversation as plain data, to be taken up again in another process."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from swink.codec import to_builtins
from swink.errors import InvalidInput, MisuseError
from swink.messages import AssistantMessage, Message, ModelSpec
from swink.tool import Tool, ToolContext, ToolError

VERSION = 1


class SavedAgent(Struct, frozen=True, kw_only=True):
    """What a conversation consists of, code aside."""

    version: int = VERSION
    model: ModelSpec
    system_prompt: str = ""
    messages: list[Message]
    steering: list[Message] = field(default_factory=list[Message])
    follow_up: list[Message] = field(default_factory=list[Message])
    state: dict[str, Any] = field(default_factory=dict[str, Any])

    def to_data(self) -> dict[str, Any]:
        """Plain JSON data."""
        return to_builtins(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "SavedAgent":
        """The checkpoint in some data; refused, with the reason, if there is none."""
        if not isinstance(data, Mapping):
            raise InvalidInput(
                f"restore() takes what checkpoint() returned, a dict, not {type(data).__name__}"
            )
        version = data.get("version")
        if version != VERSION:
            raise MisuseError(
                f"checkpoint version {version!r} is not {VERSION}: another release of swink wrote it"
            )
        try:
            return msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise MisuseError(f"not a checkpoint: {error}") from error


def placeholders(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Tool]:
    """A tool that explains itself for each one the messages used and `tools` no longer has."""
    used = {
        call.name
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
    }
    return [_placeholder(name) for name in sorted(used - {tool.name for tool in tools})]


def _placeholder(name: str) -> Tool:
    async def gone(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> str:
        raise ToolError(f"the tool {name!r} is no longer available in this session; do without it")

    return Tool.raw(name, "No longer available. Do not call it.", {"type": "object"}, gone)
