"""Shapes: a JSON Schema (2020-12) and the Python type it stands for."""

from collections.abc import Mapping, Sequence, Set
from itertools import islice
from typing import Any, cast

from swink.errors import InvalidTool
from swink.system.shorten import clip_middle
from swink.tools.schema.conversion import describe_type
from swink.tools.schema.msgspec_hooks import convert, validator_of
from swink.tools.toolresult import is_large

MOST_VIOLATIONS = 100
"""How many violations are listed: a model that gets thousands wrong learns no more from all of them."""


_OF_THE_WHOLE = ("minItems", "minProperties", "contains", "minContains")
"""Rules that a part of a value may break where the whole does not."""


class Shape:
    """What some JSON data must look like.

    `violations` lists every way a value breaks the schema; `convert` makes a valid value the Python type.
    """

    __slots__ = ("_hint", "_validator", "schema")

    def __init__(self, schema: Mapping[str, Any], hint: Any = None) -> None:
        self.schema: dict[str, Any] = copy_json(dict(schema))
        self._hint = hint
        self._validator: Any = None

    @classmethod
    def of(cls, hint: Any) -> "Shape":
        """The shape of a type hint, or of a raw JSON Schema given as a mapping."""
        if isinstance(hint, Mapping):
            return cls(cast("Mapping[str, Any]", hint))
        return cls(*describe_type(hint))

    def check(self) -> None:
        """Compile the schema now, so that a bad one is reported where it was written."""
        if self._validator is None:
            self._validator = validator_of(self.schema)

    def violations(self, value: Any) -> list[str]:
        """The violations with their paths, the first of very many; empty if the value is valid."""
        self.check()
        if self._validator.is_valid(value):
            return []
        # All of them are found before the first is told, which takes seconds if there are many thousands.
        part = _part(value, _words_of(self.schema)) if is_large(value) else value
        is_part = part != value
        errors: list[Any] = list(self._validator.iter_errors(part))
        if is_part:
            errors = [error for error in errors if error.schema_path[-1] not in _OF_THE_WHOLE]
            errors = errors or self._first_error(value)
        problems = [
            f"{_format_path(error.instance_path)}: {_shorten(error.message)}"
            for error in errors[:MOST_VIOLATIONS]
        ]
        more = len(errors) - len(problems)
        if is_part:
            problems.append("there may be more: only the first of its many values were looked at")
        return [*problems, f"and {more} more"] if more else problems

    def _first_error(self, value: Any) -> list[Any]:
        try:
            self._validator.validate(value)
        except ValueError as error:
            return [error]
        return []

    def convert(self, value: Any) -> Any:
        """The value as the Python type, or as it is for a raw schema; raises `ValueError` if that fails."""
        if self._hint is None:
            return value
        try:
            return convert(value, self._hint)
        except ValueError as error:
            raise ValueError(_locate(str(error))) from error


def check_is_type(name: str, hint: Any) -> None:
    """Refuse a value where a type is wanted."""
    if isinstance(hint, type | Mapping) or type(hint).__module__ in ("typing", "types", "typing_extensions"):
        return
    raise InvalidTool(
        f"{name}={hint!r:.60} is not a type; pass one, e.g. int or a dataclass, or a JSON Schema"
    )


def copy_json(value: Any) -> Any:
    """A deep copy of a `value` of JSON."""
    if isinstance(value, dict):
        return {
            key: item if type(item) is str else copy_json(item)
            for key, item in cast("dict[str, Any]", value).items()
        }
    if isinstance(value, list):
        return [copy_json(item) for item in cast("list[Any]", value)]
    return value


def _part(value: Any, words: Set[str], most: int = MOST_VIOLATIONS) -> Any:
    """The first items of every list and object in a value, and those that a schema names."""
    inner = max(2, most // 4)
    if isinstance(value, list):
        return [_part(item, words, inner) for item in cast("list[Any]", value)[:most]]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        keys = dict.fromkeys([*islice(items, most), *(word for word in words if word in items)])
        return {key: _part(items[key], words, inner) for key in keys}
    return value


def _words_of(schema: Any) -> set[str]:
    """The keys and texts of a schema, with the names of all properties among them."""
    if isinstance(schema, dict):
        items = cast("dict[str, Any]", schema)
        return set(items).union(*map(_words_of, items.values()))
    if isinstance(schema, list):
        return set[str]().union(*map(_words_of, cast("list[Any]", schema)))
    return {schema} if isinstance(schema, str) else set()


def _format_path(parts: Sequence[str | int]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


def _locate(text: str) -> str:
    """The place first: msgspec appends it to the text, once for each level of stand-ins, inmost first."""
    said, *places = text.split(" - at `")
    return "$" + "".join([place.rstrip("`")[1:] for place in reversed(places)]) + f": {said}"


def _shorten(text: str) -> str:
    """A violation without the middle of the value it quotes."""
    return clip_middle(text, 250, 200, most=500)
