"""Writes the fields of `swink rpc` into docs/reference/rpc.md, below its marker: python tools/rpcpage.py."""

import collections.abc
import types
import typing
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import NODEFAULT, FieldInfo, fields
from typing_extensions import TypeAliasType

from swink.app.cli.jsonlines import RunResult
from swink.app.rpc import rpctypes as rpc
from swink.events import AgentEvent
from swink.serve.native.bodies import ShownConversation

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "rpc.md"
MARKER = "<!-- below: written by tools/rpcpage.py -->\n"
METHODS: dict[str, tuple[type[Struct], type[Struct]]] = {
    "run": (rpc.RunParameters, rpc.RunAnswer),
    "abort": (rpc.OfRun, rpc.RunAnswer),
    "steer": (rpc.SayParameters, rpc.RunAnswer),
    "follow_up": (rpc.SayParameters, rpc.RunAnswer),
    "approve": (rpc.ApproveParameters, rpc.RunAnswer),
    "sessions.list": (rpc.ListParameters, rpc.SavedSessions),
    "sessions.open": (rpc.OpenParameters, ShownConversation),
    "sessions.fork": (rpc.ForkParameters, rpc.SessionAnswer),
    "shutdown": (rpc.ShutdownParameters, rpc.ShutdownAnswer),
}
ALIASES = (TypeAliasType, getattr(typing, "TypeAliasType", TypeAliasType))
"""Names of types, in a Python older than 3.12 and in a newer one."""
PLAIN: dict[Any, str] = {
    str: "text", int: "integer", float: "number", bool: "true or false", type(None): "null", Any: "any JSON",
    Raw: "any JSON", bytes: "text in base64", object: "any JSON",
}  # fmt: skip


def page() -> str:
    """The whole page: what is written by hand, and what the types say."""
    return PAGE.read_text("utf-8").partition(MARKER)[0] + MARKER + generated()


def generated() -> str:
    """Methods, events, and every object in them."""
    found: dict[type[Struct], None] = {}
    events = [*members(AgentEvent), RunResult]
    rows = [
        f"| `{name}` | {shown(given, found)} | {shown(answer, found)} |"
        for name, (given, answer) in METHODS.items()
    ]
    parts = ["\n## Methods\n", "| method | params | result |", "|---|---|---|", *rows]
    parts += [
        "\n## Events\n",
        f"The params of the notification `event` are {shown(rpc.EventParameters, found)}.",
    ]
    parts += ["Its `event` is one of these, by its `type`:\n", "| type | object |", "|---|---|"]
    parts += [f"| `{event.__struct_config__.tag}` | {shown(event, found)} |" for event in events]
    parts.append("\n## Objects")
    described: set[type[Struct]] = set()
    while left := [one for one in found if one not in described]:
        for one in left:
            described.add(one)
            parts.append(section(one, found))
    return "\n".join(parts) + "\n"


def section(kind: type[Struct], found: dict[type[Struct], None]) -> str:
    """An object: what it is, and its fields."""
    about = (kind.__doc__ or "").strip().partition("\n")[0]
    lines = [f"\n### {kind.__name__}\n", about, ""]
    tag = tag_of(kind)
    rows = [f'| `{tag[0]}` | "{tag[1]}" | |'] if tag else []
    hints = typing.get_type_hints(kind)
    rows += [
        f"| `{one.name}` | {shown(hints[one.name], found)} | {default_of(one)} |" for one in fields(kind)
    ]
    return "\n".join(
        [*lines, *(["| field | type | default |", "|---|---|---|", *rows] if rows else ["It has no fields."])]
    )


def default_of(one: FieldInfo) -> str:
    """What is meant where the field is left out; empty if it is never."""
    if one.default_factory is not NODEFAULT and not isinstance(one.default_factory, type):
        return "the time then" if "time" in one.name else "a new one"
    if one.default_factory is not NODEFAULT:
        return f"`{msgspec.json.encode(one.default_factory(), enc_hook=repr).decode()}`"
    if one.default is NODEFAULT:
        return ""
    if one.default is UNSET:
        return "left out"
    return f"`{msgspec.json.encode(one.default, enc_hook=repr).decode()}`"


def tag_of(kind: type[Struct]) -> tuple[str, str] | None:
    """The field that tells the object from others, and its value."""
    config = kind.__struct_config__
    return None if config.tag is None else (str(config.tag_field), str(config.tag))


def members(hint: Any) -> tuple[Any, ...]:
    """What a union is made of."""
    while isinstance(hint, ALIASES):
        hint = hint.__value__
    return typing.get_args(hint) if is_union(hint) else (hint,)


def is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def shown(hint: Any, found: dict[type[Struct], None]) -> str:
    """A type for people; objects are links, and are noted."""
    if is_union(hint):
        kinds = [one for one in typing.get_args(hint) if one is not UnsetType]
        return " or ".join(dict.fromkeys(shown(one, found) for one in kinds))
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return shown(inner[0], found)
    if origin is Literal:
        return " or ".join(f'"{one}"' for one in inner)
    if origin in (list, tuple, collections.abc.Sequence) and inner:
        return f"list of {shown(inner[0], found)}"
    if origin in (dict, collections.abc.Mapping) or hint is dict:
        return "object"
    if isinstance(hint, type) and issubclass(hint, Struct):
        found[hint] = None
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    return PLAIN.get(hint, "any JSON")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
