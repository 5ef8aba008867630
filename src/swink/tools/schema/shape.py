"""Shapes: a JSON Schema (2020-12) and the Python type it stands for."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, cast

from swink.system.shorten import clip_middle
from swink.tools.schema.conversion import describe_type
from swink.tools.schema.msgspec_hooks import convert, validator_of

MOST_VIOLATIONS = 100
"""How many violations are listed: a model that gets thousands wrong learns no more from all of them."""


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
        errors = self._validator.iter_errors(value)
        problems = [
            f"{_format_path(error.instance_path)}: {_shorten(error.message)}"
            for error in islice(errors, MOST_VIOLATIONS)
        ]
        return problems if next(errors, None) is None else [*problems, "and more of the same"]

    def convert(self, value: Any) -> Any:
        """The value as the Python type, or as it is for a raw schema; raises `ValueError` if that fails."""
        if self._hint is None:
            return value
        try:
            return convert(value, self._hint)
        except ValueError as error:
            raise ValueError(_locate(str(error))) from error


def copy_json(value: Any) -> Any:
    """A deep copy of JSON data."""
    if isinstance(value, dict):
        return {
            key: item if type(item) is str else copy_json(item)
            for key, item in cast("dict[str, Any]", value).items()
        }
    if isinstance(value, list):
        return [copy_json(item) for item in cast("list[Any]", value)]
    return value


def _format_path(parts: Sequence[str | int]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


def _locate(text: str) -> str:
    """The place first: msgspec appends it to the text, once for each level of stand-ins, inmost first."""
    said, *places = text.split(" - at `")
    return "$" + "".join([place.rstrip("`")[1:] for place in reversed(places)]) + f": {said}"


def _shorten(text: str) -> str:
    """A violation without the middle of the value it quotes."""
    return clip_middle(text, 250, 200, most=500)
