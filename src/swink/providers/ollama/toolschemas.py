"""Schemas of tools in the words that Ollama's server knows: `type`, `properties`, `items`, `anyOf`, `enum`.

The server reads a schema into types of its own, so any other word is lost before the model sees it. What
stands behind a `$ref` or an `allOf` is written where it is needed, `oneOf` as `anyOf`, `const` as `enum`.
"""

from collections.abc import Mapping
from typing import Any, cast

from swink.messages.jsondata import list_of, object_of

MOST = 2000
DEEPEST = 50
"""How many schemas a tool's may come to, and how deep they may stand: doubling references have no end."""

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def known_words(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as the server knows it; where it contains itself, only the kind of value is said."""
    return _Rewriting(schema).schema(schema, ("#",))


class _Rewriting:
    """One pass over a schema."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MOST

    def schema(self, given: Any, within: tuple[str, ...], depth: int = 0) -> dict[str, Any]:
        self._left -= 1
        found = dict(object_of(given))
        is_too_much = self._left < 0 or depth > DEEPEST
        while isinstance(reference := found.pop("$ref", None), str):
            target = self._target(reference)
            found = {**(_kind(target) if reference in within or is_too_much else target), **found}
            within = (*within, reference)
        if is_too_much:
            return _kind(found)
        for part in list_of(found.pop("allOf", None)):
            other = self.schema(part, within, depth + 1)
            named = {**object_of(other.get("properties")), **object_of(found.get("properties"))}
            found = {**other, **found, **({"properties": named} if named else {})}
        if "const" in found:
            value: Any = found.pop("const")
            kind = next((name for of, name in _TYPES.items() if type(value) is of), None)
            found = {"enum": [value], **({"type": kind} if kind else {}), **found}
        if "oneOf" in found:
            found["anyOf"] = [*list_of(found.get("anyOf")), *list_of(found.pop("oneOf"))]
        for name in ("$defs", "definitions"):
            found.pop(name, None)
        return {name: self._inner(name, value, within, depth + 1) for name, value in found.items()}

    def _inner(self, name: str, value: Any, within: tuple[str, ...], depth: int) -> Any:
        match name, value:
            case "properties" | "patternProperties", Mapping():
                named = cast("Mapping[str, Any]", value)
                return {key: self.schema(item, within, depth) for key, item in named.items()}
            case "anyOf" | "prefixItems", list():
                return [self.schema(item, within, depth) for item in cast("list[Any]", value)]
            case "items" | "additionalProperties", Mapping():
                return self.schema(value, within, depth)
            case _:
                return value

    def _target(self, reference: str) -> dict[str, Any]:
        """What a reference within the schema points to; nothing, where it leads elsewhere."""
        found: Any = self._root if reference.startswith("#") else {}
        for step in reference.split("/")[1:]:
            found = object_of(found).get(step.replace("~1", "/").replace("~0", "~"))
        return dict(object_of(found))


def _kind(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The kind of value alone."""
    return {name: schema[name] for name in ("type", "description") if name in schema}
