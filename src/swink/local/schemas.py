"""JSON Schemas as llama.cpp's grammar engine (LLGuidance) takes them.

The engine reads the schema itself. Here objects are closed, so that a small model adds no properties of its
own; texts and lists get limits where the schema has none; and what the engine would refuse is taken out.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from swink.errors import InvalidTool

_NOT_IN_A_GRAMMAR = frozenset(
    {"not", "if", "then", "else", "contains", "minContains", "maxContains", "$dynamicRef", "dependencies"}
    | {"dependentRequired", "dependentSchemas", "propertyNames", "unevaluatedProperties", "unevaluatedItems"}
    | {"uniqueItems", "exclusiveMinimum", "exclusiveMaximum", "minProperties", "maxProperties", "oneOf"}
)
"""Keywords that the engine ignores, or takes less strictly than they are meant."""

_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_DATA = frozenset({"enum", "const", "required", "type"})
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "discriminator"}
    | {"$comment", "$id", "$schema"}
)
_SHORT = frozenset({"enum", "const", "format", "pattern"})
_LOOKS_AROUND = re.compile(r"\(\?(?:[=!]|<[=!])|\\[bB1-9]")
_CLASS = re.compile(r"\[(?:\^(?:\\.|[^\]\\])+|(?:\\.|[^\]\\]){2,})\]")
_ESCAPED_IN_JSON = re.compile(r'["\x00-\x1f]|\\[\\nrtfv0xuc]')
"""Letters of a pattern, outside its classes, with which the engine forgets what has to follow them."""
_MOST_ITEMS = 10_000
"""Items that a list is held to: the engine unrolls them, which takes it minutes for millions."""
_OPTIONS = {"whitespace_flexible": False, "coerce_one_of": True, "lenient": True}


class LengthLimits(Struct, frozen=True):
    """The longest text and list that a model may write where the schema has no limit."""

    text: int | None = None
    items: int | None = None


class Guide(Struct, frozen=True):
    """A schema as the grammar engine takes it, in JSON; `exact` if every value under it fits the schema."""

    text: str
    exact: bool


def guide(schema: Mapping[str, Any], limits: LengthLimits = LengthLimits()) -> Guide:
    """The schema as the grammar engine takes it."""
    reading = _Reading(schema, limits)
    prepared = reading.schema(schema)
    return Guide(compact({**prepared, "x-guidance": _OPTIONS}), reading.exact)


def compact(value: Any) -> str:
    """JSON without blanks, as grammars write it; histories repeat it so that the prompt cache matches."""
    return msgspec.json.encode(value).decode()


class _Reading:
    """One pass over a schema."""

    def __init__(self, root: Mapping[str, Any], limits: LengthLimits) -> None:
        self._root = root
        self._limits = limits
        # Where schemas are combined, a closed one would forbid the properties of the others.
        self._closes = not _combines(root)
        self.exact = True

    def schema(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        prepared: dict[str, Any] = {}
        for key, value in schema.items():
            if key in _ANNOTATIONS:
                continue
            if key in _NOT_IN_A_GRAMMAR and value is not False:
                self.exact = False
            if key == "$ref":
                self._check(str(value))
            if _is_too_much(key, value):
                self.exact = False
            elif key in _NAMED and isinstance(value, Mapping):
                named = cast("Mapping[str, Any]", value)
                prepared[key] = {name: self._inner(inner) for name, inner in named.items()}
            else:
                prepared[key] = value if key in _DATA else self._inner(value)
        self._limit(prepared)
        if self._closes and "properties" in prepared and "patternProperties" not in prepared:
            prepared.setdefault("additionalProperties", False)
        return prepared

    def _inner(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self.schema(cast("Mapping[str, Any]", value))
        if isinstance(value, list):
            return [self._inner(item) for item in cast("list[Any]", value)]
        return value

    def _limit(self, schema: dict[str, Any]) -> None:
        types = schema.get("type", ())
        types = (types,) if isinstance(types, str) else types
        if self._limits.text and "string" in types and not schema.keys() & _SHORT:
            schema.setdefault("maxLength", max(self._limits.text, schema.get("minLength", 0)))
        if self._limits.items and "array" in types:
            least = max(schema.get("minItems", 0), len(schema.get("prefixItems", ())))
            schema.setdefault("maxItems", max(self._limits.items, least))

    def _check(self, reference: str) -> None:
        """The engine would drop the whole grammar for a reference that leads nowhere."""
        if reference != "#" and not reference.startswith("#/"):
            raise InvalidTool(f"external references are never fetched; put {reference} under $defs")
        node: Any = self._root
        for part in reference.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~").replace("%25", "%")
            try:
                node = cast(Any, node[int(key)] if isinstance(node, list) else node[key])
            except (KeyError, IndexError, TypeError, ValueError):
                raise InvalidTool(f"the schema refers to {reference}, which it does not contain") from None


def _is_too_much(key: str, value: Any) -> bool:
    """Whether the engine would refuse a keyword with this value, misread it, or take minutes over it."""
    if key == "pattern":
        letters = _CLASS.sub("", str(value))
        return bool(_LOOKS_AROUND.search(str(value)) or _ESCAPED_IN_JSON.search(letters))
    return key in ("minItems", "maxItems") and isinstance(value, int | float) and value > _MOST_ITEMS


def _combines(schema: Any) -> bool:
    """Whether properties of one object are spread over several schemas."""
    if isinstance(schema, list):
        return any(map(_combines, cast("list[Any]", schema)))
    if not isinstance(schema, Mapping):
        return False
    keys = cast("Mapping[str, Any]", schema)
    if "allOf" in keys or ("properties" in keys and keys.keys() & {"anyOf", "oneOf", "$ref"}):
        return True
    return any(_combines(value) for key, value in keys.items() if key not in _DATA)
