"""OpenAI's strict mode: which JSON schemas it takes, and how they have to be written for it."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

_TAKEN = frozenset(
    {
        "$defs", "$ref", "additionalProperties", "anyOf", "const", "definitions", "description", "enum",
        "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maximum", "maxItems", "minimum",
        "minItems", "multipleOf", "pattern", "properties", "required", "title", "type",
    }
)  # fmt: skip
_FORMATS = (None, "date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid")
_OF_SCHEMAS = ("properties", "$defs", "definitions")


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema as strict mode takes it: an object, none with optional or further fields; None if not."""
    made = _closed(schema)
    return made if made.get("type") == "object" and _is_strict(made) else None


def _closed(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    made = dict(cast("Mapping[str, Any]", schema))
    for name in _OF_SCHEMAS:
        if isinstance(made.get(name), Mapping):
            made[name] = {key: _closed(item) for key, item in made[name].items()}
    if "items" in made:
        made["items"] = _closed(made["items"])
    if isinstance(made.get("anyOf"), Sequence):
        made["anyOf"] = [_closed(item) for item in made["anyOf"]]
    if "properties" in made:
        made.setdefault("additionalProperties", False)
    return made


def _is_strict(schema: Any) -> bool:
    if not isinstance(schema, dict) or not schema:
        return False
    found = cast("dict[str, Any]", schema)
    if not _TAKEN.issuperset(found) or found.get("format") not in _FORMATS:
        return False
    if "$ref" in found and len(found) > 1:
        return False
    kind: Any = found.get("type")
    if kind == "object" or (isinstance(kind, list) and "object" in kind):
        named: Mapping[str, Any] = found.get("properties") or {}
        if found.get("additionalProperties") is not False or set(named) != set(found.get("required") or ()):
            return False
    inner: list[Any] = []
    for name in _OF_SCHEMAS:
        inner += (found.get(name) or {}).values()
    inner += [found["items"]] if "items" in found else []
    return all(map(_is_strict, [*inner, *(found.get("anyOf") or ())]))
