"""Claude, wherever it is served: its versions, and how each thinks, samples, caches and takes schemas."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from swink.messages import ModelSpec
from swink.providers.notices import Notices
from swink.providers.thinking import refuse
from swink.stream import StreamOptions

LEAST_ANSWER = 1024
BUDGETS = {"minimal": 1024, "low": 2048, "medium": 5000, "high": 10_000, "extra_high": 20_000}
LATE = "this model does not begin to think between calls and their results"
INTERLEAVED = "interleaved-thinking-2025-05-14"
_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
_SHAPES = frozenset(("type", "anyOf", "oneOf", "allOf", "enum", "const"))
_VERSION = re.compile(r"(?<!\d)(\d{1,2})(?:[.-](\d{1,2}))?(?!\d)")


def claude_version(model_id: str) -> tuple[int, int]:
    """Major and minor version in a Claude model's name, wherever it stands; (0, 0) for anything else."""
    name = model_id.lower()
    if "claude" not in name:
        return (0, 0)
    if found := _VERSION.search(name):
        return int(found[1]), int(found[2] or 0)
    return (4, 7) if "mythos" in name else (0, 0)


def interleaves(model_id: str) -> bool:
    """Whether a model thinks between tool calls only if a beta says so; later ones do by themselves."""
    return (4, 0) <= claude_version(model_id) <= (4, 5)


def without_thinking(model: ModelSpec, version: tuple[int, int], notices: Notices) -> dict[str, Any]:
    """What turns thinking off: nothing before Claude 5, which thinks unless told not to, as DeepSeek does."""
    if any(name in model.model_id.lower() for name in ("fable", "mythos")):
        return refuse(model, notices, "")
    thinks = version >= (5, 0) or "deepseek" in model.model_id.lower()
    return {"thinking": {"type": "disabled"}} if thinks else {}


def claude_effort(level: str, version: tuple[int, int], model_id: str) -> str:
    """The effort nearest to a thinking level that a Claude model takes."""
    if level == "extra_high":
        return "xhigh" if version >= (4, 7) else "max" if "opus" in model_id else "high"
    return "low" if level == "minimal" else level


def sampling(model: ModelSpec, options: StreamOptions, thinks: bool, notices: Notices) -> dict[str, Any]:
    """Temperature and top_p, as far as a Claude model takes them."""
    version = claude_version(model.model_id)
    fields: dict[str, Any] = {}
    if options.temperature is not None:
        if thinks:
            notices.report("temperature", "this provider takes none with thinking")
        elif version >= (4, 7):
            notices.report("temperature", f"{model.model_id} takes none")
        else:
            fields["temperature"] = options.temperature
    if options.top_p is not None:
        if version >= (4, 7):
            notices.report("top_p", f"{model.model_id} takes none")
        elif thinks and options.top_p < 0.95:
            notices.report("top_p", "with thinking this provider takes 0.95 to 1")
        elif fields and version >= (4, 1):
            notices.report("top_p", f"{model.model_id} takes temperature or top_p, not both")
        else:
            fields["top_p"] = options.top_p
    return fields


def mark_turns(turns: Sequence[Any], mark: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """The turns with the content of the user's last two marked for the prompt cache.

    Turns are kept from request to request, so those that are marked are copies; the last are never JSON yet.
    """
    marked, left = list(turns), 2
    for at in range(len(marked) - 1, -1, -1):
        turn = marked[at]
        if isinstance(turn, msgspec.Raw):
            break
        if turn["role"] == "user":
            marked[at] = {**turn, "content": mark(turn["content"])}
            left -= 1
            if not left:
                break
    return marked


def service_tier(name: str | None) -> dict[str, int]:
    """How usage says which tier served a reply, where that is not the usual one."""
    return {} if name in (None, "default", "standard", "auto") else {f"service_tier_{name}": 1}


def output_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema as Claude's structured output takes it: closed objects, and what it cannot hold in words.

    Limits of numbers, texts and lists move to the description; the answer is checked against them anyway.
    """
    left = dict(schema)
    made: dict[str, Any] = {}
    if "$defs" in left:
        made["$defs"] = {name: output_schema(part) for name, part in left.pop("$defs").items()}
    if "$ref" in left:
        return {**made, "$ref": left["$ref"]}
    kinds = left.pop("type", None)
    if isinstance(kinds, list):
        names = cast("list[str]", kinds)
        return {**made, "anyOf": [output_schema({**left, "type": name}) for name in names]}
    if "enum" in left or "const" in left:
        kinds = None
    for name in ("enum", "const", "title", "description"):
        if name in left:
            made[name] = left.pop(name)
    for name, kept in (("anyOf", "anyOf"), ("oneOf", "anyOf"), ("allOf", "allOf")):
        if name in left:
            made[kept] = [output_schema(part) for part in left.pop(name)]
    left.pop("discriminator", None)
    if kinds is not None:
        made["type"] = kinds
    match kinds:
        case "object":
            parts = left.pop("properties", {}).items()
            made["properties"] = {name: output_schema(part) for name, part in parts}
            made["required"] = left.pop("required", [])
            left.pop("additionalProperties", None)
            made["additionalProperties"] = False
        case "array":
            if "items" in left:
                made["items"] = output_schema(left.pop("items"))
            if left.get("minItems") in (0, 1):
                made["minItems"] = left.pop("minItems")
        case "string" if left.get("format") in _FORMATS:
            made["format"] = left.pop("format")
        case _:
            pass
    left.pop("default", None)
    if left:
        said = ", ".join(f"{name}: {value}" for name, value in left.items())
        made["description"] = "\n\n".join(filter(None, (made.get("description"), f"{{{said}}}")))
    return made


def takes_schema(schema: Any, above: frozenset[str] = frozenset(), root: Any = None) -> bool:
    """Whether `output_schema` keeps the meaning of a schema: no open maps, no tuples, nothing that recurs."""
    root = schema if root is None else root
    match schema:
        case {"$ref": str(name)}:
            part = root.get("$defs", {}).get(name.removeprefix("#/$defs/")) if name not in above else None
            return part is not None and takes_schema(part, above | {name}, root)
        case dict():
            parts = cast("dict[str, Any]", schema)
            if parts.get("additionalProperties") not in (None, False) or not _SHAPES & parts.keys():
                return False
            if parts.get("type") == "object" and not parts.get("properties"):
                return False
            if "prefixItems" in parts or isinstance(parts.get("items"), bool):
                return False
            inner = [*parts.get("properties", {}).values(), *([parts["items"]] if "items" in parts else [])]
            inner += [part for name in ("anyOf", "oneOf", "allOf") for part in parts.get(name, ())]
            return all(takes_schema(part, above, root) for part in inner)
        case _:
            return False
