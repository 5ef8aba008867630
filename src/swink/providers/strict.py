"""OpenAI's strict mode: which JSON schemas it takes."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

_UNSUPPORTED = frozenset(
    (
        "allOf",
        "contains",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "if",
        "maxContains",
        "maxProperties",
        "minContains",
        "minProperties",
        "not",
        "oneOf",
        "patternProperties",
        "prefixItems",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    )
)
_OF_SCHEMAS = ("properties", "$defs", "definitions")


def allows_strict(schema: Mapping[str, Any]) -> bool:
    """Whether every object in a schema is closed and has no optional field, and nothing in it is refused.

    The root has to be an object.
    """
    return schema.get("type") == "object" and _is_strict(schema)


def _is_strict(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    found = cast("Mapping[str, Any]", schema)
    if not _UNSUPPORTED.isdisjoint(found) or not found:
        return False
    kind: Any = found.get("type")
    if kind == "object" or (isinstance(kind, Sequence) and not isinstance(kind, str) and "object" in kind):
        named: Mapping[str, Any] = found.get("properties") or {}
        if found.get("additionalProperties") is not False or set(named) != set(found.get("required") or ()):
            return False
    inner: list[Any] = []
    for name in _OF_SCHEMAS:
        inner += (found.get(name) or {}).values()
    inner += [found["items"]] if "items" in found else []
    return all(map(_is_strict, [*inner, *(found.get("anyOf") or ())]))
