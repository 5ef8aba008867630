"""What a tool gives back: whatever it returns or raises, as a result for the model."""

import json
from collections.abc import Sequence
from typing import Any, cast

from msgspec import Struct

from swink.errors import AgentError
from swink.messages import Extension, Media, Text, ToolResult
from swink.messages.jsondata import decode, encode, refuse
from swink.messages.pruning import CUT, with_full_text
from swink.system.shorten import clip_middle

_RESULT_BLOCKS = Text | Media | Extension


class ToolError(AgentError):
    """Raise it in a tool to tell the model something; the text becomes an error result."""

    details: Any = None

    def __init__(self, message: str, details: Any = None) -> None:
        super().__init__(message)
        self.details = details


class Transfer(Struct, frozen=True):
    """Return it from a tool to end the run and hand the conversation to another agent."""

    to: str
    text: str = ""


class InvalidArguments(ToolError):
    """The model's arguments do not fit the schema; the text lists every violation."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)


def as_result(value: Any) -> ToolResult:
    """What a tool returned, as a result."""
    if type(value) is str or isinstance(value, str):
        return ToolResult((Text(value),) if value else ())
    match value:
        case ToolResult():
            return value
        case None:
            return ToolResult()
        case Transfer(to, text):
            return ToolResult((Text(text or f"transferred to {to}"),), {"transfer": to})
        case _ if isinstance(value, _RESULT_BLOCKS):
            return ToolResult((value,))
        case list() | tuple() if (
            value
            and all(isinstance(item, _RESULT_BLOCKS | str) for item in cast("list[Any]", value))
            and any(isinstance(item, _RESULT_BLOCKS) for item in cast("list[Any]", value))
        ):
            return ToolResult(cast("list[Any]", value))
        case _:
            return ToolResult((Text(_shown(value)),))


def cut_result(result: ToolResult, limit: int) -> ToolResult:
    """A result within the limit: the middle of its text goes, and the whole stays in details."""
    match result.content:
        case (Text(text),) if len(text) <= limit:
            return result
        case _:
            text = result.text
    if len(text) <= limit:
        return result
    mark = f"\n[… {len(text) - limit} {CUT.format(len(text))}\n"
    shown = clip_middle(text, limit - limit // 2, limit // 2, mark)
    others = tuple(block for block in result.content if not isinstance(block, Text))
    return ToolResult((Text(shown), *others), with_full_text(result.details, text), result.is_error)


def failure(text: str) -> ToolResult:
    """A result that tells the model what went wrong."""
    return ToolResult((Text(text),), is_error=True)


def _shown(value: Any) -> str:
    """A value as JSON for the model, which knows infinities by their names; what has no JSON form raises."""
    data = encode(value, refuse)
    if b"$number" not in data:
        return data.decode()
    return json.dumps(decode(data), ensure_ascii=False, separators=(",", ":"))
