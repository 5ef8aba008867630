"""How full a model's context is, and with what."""

from collections.abc import Sequence

from msgspec import Struct

from swink.messages import Message, ModelSpec, ToolResultMessage
from swink.messages.tokens import estimate_tokens, overhead_tokens
from swink.models.catalog import with_limits
from swink.tools import Tool


class ContextPart(Struct, frozen=True):
    """One part of the context, in tokens."""

    name: str
    tokens: int


class ContextUse(Struct, frozen=True):
    """The parts of a context, estimated, and the room that there is."""

    parts: tuple[ContextPart, ...]
    window: int | None

    @property
    def used(self) -> int:
        return sum(part.tokens for part in self.parts)

    @property
    def free(self) -> int | None:
        """Tokens that are left; None if the window is not known."""
        return None if self.window is None else max(0, self.window - self.used)


def measure(
    model: ModelSpec, system_prompt: str, tools: Sequence[Tool], messages: Sequence[Message]
) -> ContextUse:
    """What is sent with the next request, part by part."""
    tokens = {"system": overhead_tokens(system_prompt, ()), "tools": overhead_tokens("", tools)}
    tokens |= {"history": 0, "files": 0, "tool results": 0}
    for message in messages:
        part = "history"
        if isinstance(message, ToolResultMessage):
            part = "files" if message.tool_name == "read_file" else "tool results"
        tokens[part] += estimate_tokens(message)
    parts = tuple([ContextPart(name, count) for name, count in tokens.items()])
    return ContextUse(parts, with_limits(model).context_window)
