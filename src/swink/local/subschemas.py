"""Parts of a schema joined into one: local references, members of `allOf`, siblings of `anyOf`."""

from collections.abc import Mapping
from typing import Any, cast

from swink.errors import InvalidTool

Schema = Mapping[str, Any] | bool

ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "discriminator"}
    | {"$comment", "$id", "$schema", "$defs", "definitions", "$anchor"}
)
"""Keywords that say nothing about which values are valid."""


def follow_reference(root: Schema, reference: str) -> Schema:
    """The schema that a local reference points to."""
    node: Any = root
    if reference != "#" and not reference.startswith("#/"):
        raise InvalidTool(f"external references are never fetched; put {reference} under $defs")
    for part in reference.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~").replace("%25", "%")
        try:
            node = cast(Any, node[int(key)] if isinstance(node, list) else node[key])
        except (KeyError, IndexError, TypeError, ValueError):
            raise InvalidTool(f"the schema refers to {reference}, which it does not contain") from None
    return cast(Schema, node)


def merge(one: Schema, other: Schema) -> tuple[Schema, bool]:
    """A schema that allows what both allow, and whether it expresses all of both."""
    if isinstance(one, bool) or isinstance(other, bool):
        if one is False or other is False:
            return False, True
        return (other if one is True else one), True
    merged: dict[str, Any] = dict(one)
    lossless = True
    for key, value in other.items():
        if key not in merged or key in ANNOTATIONS or merged[key] == value:
            merged[key] = value
        else:
            merged[key], kept = _both(key, merged[key], value)
            lossless = lossless and kept
    return merged, lossless


def _both(key: str, one: Any, other: Any) -> tuple[Any, bool]:
    """One keyword that both schemas have."""
    match key:
        case "properties":
            merged = dict(one)
            for name, schema in other.items():
                merged[name] = {"allOf": [one[name], schema]} if name in one else schema
            return merged, True
        case "required":
            return [*one, *(name for name in other if name not in one)], True
        case "type":
            mine, theirs = ([value] if isinstance(value, str) else value for value in (one, other))
            shared = [name for name in mine if name in theirs or (name == "integer" and "number" in theirs)]
            return shared + [
                name for name in theirs if name == "integer" and "number" in mine and name not in shared
            ], True
        case "enum":
            return [value for value in one if value in other], True
        case "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties":
            return max(one, other), True
        case "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties":
            return min(one, other), True
        case "allOf":
            return [*one, *other], True
        case "items" | "additionalProperties":
            return {"allOf": [one, other]}, True
        case _:
            return other, False
