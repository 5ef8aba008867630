"""What a tool gives back: whatever it returns or raises, as a result for the model."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

from msgspec import Struct

from swink.errors import AgentError, InvalidInput
from swink.messages import Extension, Media, Text, ToolResult
from swink.messages.jsondata import as_key, decode, encode, refuse
from swink.messages.pruning import CUT, with_full_text
from swink.system.shorten import clip_middle

_RESULT_BLOCKS = Text | Media | Extension
LARGE = 100_000
"""Characters above which a result is converted in a thread."""
KEPT = 1_000_000
"""Characters of a result that are kept with a conversation, however much of them the model sees."""
_MANY = 1_000
"""Values inside a result above which it is converted in a thread."""
_LEVELS = 4
"""How deep a large value is taken apart to convert it piece by piece."""
_ROOM = 200
"""Characters for the note about what is not kept."""
_ADVICE = "return text, numbers, lists, dicts, a dataclass or a ToolResult, and await coroutines"


class ToolError(AgentError):
    """Raise it in a tool to tell the model something; the text becomes an error result."""

    details: Any = None

    def __init__(self, message: str, details: Any = None) -> None:
        super().__init__(message)
        self.details = details


class Transfer(Struct, frozen=True):
    """Return it from a tool to end the run and hand the conversation to another agent.

    Args:
        text: what is said to it
    """

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
    """The `value` that a tool returned, as a result."""
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
        case list() | tuple() if _has_blocks(cast("list[Any]", value)):
            return ToolResult(cast("list[Any]", value))
        case _:
            return ToolResult((Text(_shown(value)),))


def is_large(value: Any) -> bool:
    """Whether it takes long to convert a value: it holds many values, or much text."""
    found, size = [value], 0
    for item in found:  # which grows meanwhile
        inside: Any = ()
        if isinstance(item, str | bytes | bytearray):
            size += len(item)
        elif isinstance(item, list | tuple | set | frozenset):
            inside = cast("list[Any]", item)
        elif isinstance(item, dict):
            inside = cast("dict[Any, Any]", item).values()
        elif hasattr(item, "__dict__"):
            inside = cast("dict[str, Any]", vars(item)).values()
        elif isinstance(item, Struct):
            inside = [getattr(item, name) for name in item.__struct_fields__]
        if size > LARGE or len(found) + len(inside) > _MANY:
            return True
        found.extend(inside)
    return False


def converted(value: Any, limit: int) -> ToolResult:
    """What a tool returned as a result within the limit, without a look at more of it than is kept."""
    most = max(KEPT, limit)
    if isinstance(value, str):
        value = _kept(value, most)
    elif isinstance(value, dict | list | tuple) and not _has_blocks(value):
        value = _joined(value, most)
    return cut_result(as_result(value), limit)


def cut_result(result: ToolResult, limit: int) -> ToolResult:
    """A result within the limit: the middle of its text goes; up to `KEPT` characters stay in details."""
    match result.content:
        case (Text(text),) if len(text) <= limit:
            return result
        case _:
            text = result.text
    if len(text) <= limit:
        return result
    text = _kept(text, max(KEPT, limit))
    mark = f"\n[… {len(text) - limit} {CUT.format(len(text))}\n"
    shown = clip_middle(text, limit - limit // 2, limit // 2, mark)
    others = tuple(block for block in result.content if not isinstance(block, Text))
    return ToolResult((Text(shown), *others), with_full_text(result.details, text), result.is_error)


def failure(text: str) -> ToolResult:
    """A result that tells the model in a `text` what went wrong."""
    return ToolResult((Text(text),), is_error=True)


def _has_blocks(value: Any) -> bool:
    """Whether it is a list of text and content blocks, and not of data."""
    return (
        isinstance(value, list | tuple)
        and any(isinstance(item, _RESULT_BLOCKS) for item in cast("list[Any]", value))
        and all(isinstance(item, _RESULT_BLOCKS | str) for item in cast("list[Any]", value))
    )


def _kept(text: str, most: int) -> str:
    """A text of at most so many characters, and a note if there were more."""
    if len(text) <= most + _ROOM:
        return text
    note = f"\n[… the result had {len(text)} characters; {len(text) - most} in its middle were not kept]"
    return clip_middle(text, most - most // 2, most // 2, "\n[…]\n") + note


def _joined(value: Any, most: int) -> str:
    """A large value as JSON, up to so many characters."""
    parts: list[str] = []
    for part in _parts(value, most):
        parts.append(part)
        most -= len(part)
        if most < 0:
            parts.append("\n[… the result was longer; its later parts were not kept]")
            parts[-2] = parts[-2][:most]
            break
    return "".join(parts)


def _parts(value: Any, most: int, levels: int = 4) -> Iterator[str]:
    """The JSON of a value in parts; what is deep inside of it is one part."""
    if levels and isinstance(value, dict):
        between = "{"
        for key, item in cast("dict[Any, Any]", value).items():
            yield f"{between}{_shown(as_key(key))}:"
            yield from _parts(item, most, levels - 1)
            between = ","
        yield "}" if between == "," else "{}"
    elif levels and isinstance(value, list | tuple):
        between = "["
        for item in cast("list[Any]", value):
            yield between
            yield from _parts(item, most, levels - 1)
            between = ","
        yield "]" if between == "," else "[]"
    else:
        yield _shown(value[: most + 1] if isinstance(value, str) else value)


def _shown(value: Any) -> str:
    """A value as JSON for the model, which knows infinities by their names; what has no JSON form raises."""
    try:
        data = encode(value, refuse)
    except InvalidInput as error:
        raise InvalidInput(f"the tool returned what has no JSON form ({error}); {_ADVICE}") from None
    if b"$number" not in data:
        return data.decode()
    return json.dumps(decode(data), ensure_ascii=False, separators=(",", ":"))
