"""JSON Schema as a grammar: what a model writes under it parses, comes to an end, and fits the schema.

The grammar covers part of what the schema allows: compact JSON; strings, arrays and nesting of bounded size;
properties in the order of the schema. If it cannot express a keyword, `exact` is False: check the value.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct

from swink.local.formats import FORMATS
from swink.local.gbnf import EMPTY, NEVER, Chars, Node, alt, chars, lit, maybe, repeat, seq
from swink.local.numbers import integer, number
from swink.local.regex import pattern_node
from swink.local.subschemas import ANNOTATIONS, follow_reference, merge

Schema = Mapping[str, Any] | bool

MAX_STRING = 1000
MAX_ITEMS = 8
MAX_REPEATED_REFS = 2
"""How deep a schema that contains itself is unrolled."""

_CHAR = alt(
    Chars(((0, 31), (34, 34), (92, 92), (127, 127)), negated=True),
    seq(lit("\\"), chars('"', "\\", "n", "t", "r")),
)
_KEY = seq(lit('"'), repeat(Chars(((0, 31), (34, 34), (92, 92), (127, 127)), negated=True), 1, 40), lit('"'))
_NOT_IN_A_GRAMMAR = frozenset(
    {"not", "if", "then", "else", "contains", "minContains", "maxContains", "$dynamicRef", "dependencies"}
    | {"dependentRequired", "dependentSchemas", "patternProperties", "propertyNames"}
    | {"unevaluatedProperties", "unevaluatedItems"}
)
_TYPE_HINTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("object", ("properties", "required", "additionalProperties", "minProperties", "maxProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems", "uniqueItems")),
    ("string", ("minLength", "maxLength", "pattern", "format")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)


class Grammar(Struct, frozen=True):
    """A grammar of JSON text; `exact` if every text of it fits the schema it was made from."""

    node: Node
    exact: bool


def schema_grammar(schema: Schema) -> Grammar:
    """The grammar of a schema; its node is `NEVER` where nothing within the bounds fits."""
    reading = _Reading(schema)
    node = reading.value(schema)
    return Grammar(node, reading.exact)


class _Reading:
    """One pass over a schema: `exact` turns False at the first keyword that the grammar does not express."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._path: list[str] = []
        self.exact = True

    def value(self, schema: Schema) -> Node:
        if isinstance(schema, bool):
            return self._anything() if schema else NEVER
        if any(key in _NOT_IN_A_GRAMMAR for key in schema):
            self.exact = False
        if "$ref" in schema:
            return self._reference(schema)
        for key in ("allOf", "anyOf", "oneOf"):
            if key in schema:
                return self._combined(schema, key)
        if "const" in schema or "enum" in schema:
            return self._constants(schema)
        return self._typed(schema)

    def _reference(self, schema: Mapping[str, Any]) -> Node:
        name = str(schema["$ref"])
        if self._path.count(name) >= MAX_REPEATED_REFS:
            return NEVER
        self._path.append(name)
        rest = {key: value for key, value in schema.items() if key != "$ref" and key not in ANNOTATIONS}
        node = self.value(self._merged(rest, follow_reference(self._root, name)))
        self._path.pop()
        return node

    def _combined(self, schema: Mapping[str, Any], key: str) -> Node:
        rest: Schema = {
            name: value for name, value in schema.items() if name != key and name not in ANNOTATIONS
        }
        branches = cast("Sequence[Schema]", schema[key])
        if key == "allOf":
            return self._all_of(rest, branches)
        if key == "oneOf" and len(branches) > 1:
            self.exact = False  # a text of one branch may fit another one too
        return alt(*(self.value(self._merged(rest, branch) if rest else branch) for branch in branches))

    def _all_of(self, rest: Schema, branches: Sequence[Schema]) -> Node:
        outside = len(self._path)
        for branch in branches:
            while not isinstance(branch, bool) and "$ref" in branch:
                name = str(branch["$ref"])
                if self._path.count(name) >= MAX_REPEATED_REFS:
                    del self._path[outside:]
                    return NEVER
                self._path.append(name)
                siblings = {key: value for key, value in branch.items() if key != "$ref"}
                branch = self._merged(siblings, follow_reference(self._root, name))
            rest = self._merged(rest, branch)
        node = self.value(rest)
        del self._path[outside:]
        return node

    def _merged(self, one: Schema, other: Schema) -> Schema:
        merged, lossless = merge(one, other)
        self.exact = self.exact and lossless
        return merged

    def _constants(self, schema: Mapping[str, Any]) -> Node:
        values = [schema["const"]] if "const" in schema else list(schema["enum"])
        if "const" in schema and "enum" in schema:
            values = [value for value in values if value in schema["enum"]]
        if "type" in schema:
            types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
            values = [value for value in values if any(_is_of(value, name) for name in types)]
        if any(key not in ANNOTATIONS and key not in ("const", "enum", "type") for key in schema):
            self.exact = False
        return alt(*(lit(compact(value)) for value in values))

    def _typed(self, schema: Mapping[str, Any]) -> Node:
        types = schema.get("type")
        if types is None:
            types = next((name for name, hints in _TYPE_HINTS if any(hint in schema for hint in hints)), None)
        if types is None:
            return self._anything()
        return alt(*(self._of_type(name, schema) for name in ([types] if isinstance(types, str) else types)))

    def _of_type(self, name: str, schema: Mapping[str, Any]) -> Node:
        match name:
            case "object":
                return self._object(schema)
            case "array":
                return self._array(schema)
            case "string":
                return self._string(schema)
            case "integer" | "number":
                return self._number(schema, whole=name == "integer")
            case "boolean":
                return alt(lit("true"), lit("false"))
            case "null":
                return lit("null")
            case _:
                return NEVER

    def _string(self, schema: Mapping[str, Any]) -> Node:
        low = int(schema.get("minLength", 0))
        high = int(schema.get("maxLength", max(MAX_STRING, low)))
        if "pattern" in schema:
            node = pattern_node(str(schema["pattern"]))
            self.exact = (
                self.exact and node is not None and "minLength" not in schema and "maxLength" not in schema
            )
            if node is not None:
                return seq(lit('"'), node, lit('"'))
        elif schema.get("format") in FORMATS:
            self.exact = self.exact and "minLength" not in schema and "maxLength" not in schema
            return seq(lit('"'), FORMATS[schema["format"]], lit('"'))
        # Any limit would make it end; this one also cuts a rambling model short.
        return seq(lit('"'), repeat(_CHAR, low, min(high, max(MAX_STRING, low))), lit('"'))

    def _number(self, schema: Mapping[str, Any], *, whole: bool) -> Node:
        low, above = _lower(schema)
        high, below = _upper(schema)
        step = schema.get("multipleOf")
        if whole or (isinstance(step, int) and step > 0):
            first = None if low is None else int(low // 1 + 1) if above or low % 1 else int(low)
            last = None if high is None else int(-(-high // 1) - 1) if below or high % 1 else int(high)
            if step is None:
                return integer(first, last)
            if first is not None and last is not None and last - first <= 1000:
                return alt(*(lit(str(value)) for value in range(first, last + 1) if value % step == 0))
            self.exact = False
            return integer(first, last)
        node, exact = number(low, high, above=above, below=below)
        self.exact = self.exact and exact and step is None
        return node

    def _array(self, schema: Mapping[str, Any]) -> Node:
        prefix = [self.value(item) for item in schema.get("prefixItems", ())]
        item = self.value(schema.get("items", True))
        low = int(schema.get("minItems", 0))
        high = min(int(schema.get("maxItems", MAX_ITEMS)), max(MAX_ITEMS, low))
        if schema.get("uniqueItems") and high > 1:
            self.exact = False
        # Positions that the schema lists are filled, so that tuples come out whole.
        low, high = max(low, min(len(prefix), high)), max(high, low)
        fixed = [prefix[index] for index in range(min(len(prefix), high))]
        rest_low, rest_high = max(0, low - len(fixed)), max(0, high - len(fixed))
        if fixed:
            joined = [fixed[0], *(seq(lit(","), node) for node in fixed[1:])]
            return seq(lit("["), *joined, repeat(seq(lit(","), item), rest_low, rest_high), lit("]"))
        return seq(lit("["), _separated(item, rest_low, rest_high), lit("]"))

    def _object(self, schema: Mapping[str, Any]) -> Node:
        properties = cast("dict[str, Schema]", dict(schema.get("properties", {})))
        required = cast("list[str]", list(schema.get("required", ())))
        extra = cast("Schema", schema.get("additionalProperties", True))
        properties.update({name: extra for name in required if name not in properties})
        if not properties:
            return self._pairs(schema, extra)
        low, high = schema.get("minProperties", 0), schema.get("maxProperties", len(properties))
        if low > len(required) or high < len(properties):
            self.exact = False
        members = [
            (name in required, seq(lit(f"{compact(name)}:"), self.value(value)))
            for name, value in properties.items()
        ]
        possible = [(needed, node) for needed, node in members if needed or node != NEVER]
        return seq(lit("{"), _members(possible), lit("}"))

    def _pairs(self, schema: Mapping[str, Any], extra: Schema) -> Node:
        """An object without named properties: any keys."""
        low = int(schema.get("minProperties", 0))
        high = min(int(schema.get("maxProperties", MAX_ITEMS)), max(MAX_ITEMS, low))
        if low > 1:
            self.exact = False  # the same key twice counts once
        value = self._scalar() if extra is True or extra == {} else self.value(extra)
        return seq(lit("{"), _separated(seq(_KEY, lit(":"), value), low, high), lit("}"))

    def _anything(self) -> Node:
        scalar = self._scalar()
        pairs = _separated(seq(_KEY, lit(":"), scalar), 0, 4)
        return alt(scalar, seq(lit("["), _separated(scalar, 0, 4), lit("]")), seq(lit("{"), pairs, lit("}")))

    def _scalar(self) -> Node:
        return alt(self._string({}), number(None, None)[0], lit("true"), lit("false"), lit("null"))


def compact(value: Any) -> str:
    """JSON without blanks, as grammars write it; histories repeat it so that the prompt cache matches."""
    return msgspec.json.encode(value).decode()


def _members(members: list[tuple[bool, Node]]) -> Node:
    """Object members in order; an optional one may be left out, together with its comma."""
    first = next((index for index, (needed, _) in enumerate(members) if needed), None)
    if first is None:
        starts = [
            seq(node, *(maybe(lit(","), later) for _, later in members[index + 1 :]))
            for index, (_, node) in enumerate(members)
        ]
        return maybe(alt(*starts)) if starts else EMPTY
    before = [maybe(node, lit(",")) for _, node in members[:first]]
    after = [
        seq(lit(","), node) if needed else maybe(lit(","), node) for needed, node in members[first + 1 :]
    ]
    return seq(*before, members[first][1], *after)


def _separated(node: Node, low: int, high: int) -> Node:
    """From `low` to `high` items with commas between them."""
    if high < low or (node == NEVER and low > 0):
        return NEVER
    if node == NEVER or high == 0:
        return EMPTY
    items = seq(node, repeat(seq(lit(","), node), max(0, low - 1), high - 1))
    return items if low > 0 else maybe(items)


def _lower(schema: Mapping[str, Any]) -> tuple[float | None, bool]:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    return (above, True) if above is not None and (low is None or above >= low) else (low, False)


def _upper(schema: Mapping[str, Any]) -> tuple[float | None, bool]:
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    return (below, True) if below is not None and (high is None or below <= high) else (high, False)


def _is_of(value: Any, name: str) -> bool:
    match value:
        case bool():
            return name == "boolean"
        case int():
            return name in ("integer", "number")
        case float():
            return name == "number" or (name == "integer" and value.is_integer())
        case str():
            return name == "string"
        case None:
            return name == "null"
        case list():
            return name == "array"
        case _:
            return name == "object"
