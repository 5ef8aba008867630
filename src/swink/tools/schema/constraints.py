"""Constraints: what `Annotated` says of a value, as keywords of JSON Schema or as checks of the value itself.

pydantic's `Field`, annotated-types and msgspec's `Meta` are recognised by the names of their attributes.
"""

import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from numbers import Number
from typing import Annotated, Any, get_origin

from msgspec import Meta, Struct

from swink.tools.schema.hints import is_a, label

BOUNDS = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")
"""What pydantic's `Field`, annotated-types and msgspec's `Meta` all call their constraints."""
_NUMBERS = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
}
_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
    "multiple_of": lambda value, bound: value % bound == 0,
    "min_length": lambda value, bound: len(value) >= bound,
    "max_length": lambda value, bound: len(value) <= bound,
    "pattern": lambda value, bound: re.search(bound, value) is not None,
}


class Annotations(Struct):
    """What the extras of `Annotated` say about a value.

    `pydantic` holds the extras that only pydantic understands: validators, strictness, changes of case …
    """

    extras: tuple[Any, ...] = ()
    bounds: list[tuple[str, Any]] = []
    predicates: list[Callable[[Any], Any]] = []
    pydantic: list[Any] = []
    schema: dict[str, Any] = {}

    @property
    def checks(self) -> bool:
        """Whether there is something to check."""
        return bool(self.bounds or self.predicates or self.pydantic)


def notes_of(extras: tuple[Any, ...]) -> Annotations:
    """What the extras say; those that mean nothing to a schema are left out."""
    notes = Annotations(extras)
    for extra in _expand(extras):
        if isinstance(extra, str):
            notes.schema.setdefault("description", extra)
            continue
        bounds = [(name, bound) for name in BOUNDS if (bound := getattr(extra, name, None)) is not None]
        notes.bounds += bounds
        notes.schema |= _documentation(extra)
        if _comes_from_pydantic(extra):
            more = set(getattr(extra, "__dict__", ())) - set(dict(bounds))
            if more or hasattr(extra, "__get_pydantic_core_schema__"):
                notes.pydantic.append(extra)
        elif type(extra).__name__ == "Predicate":
            notes.predicates.append(extra.func)
        elif type(extra).__name__ == "Timezone":
            notes.predicates.append(_check_zone(extra))
    return notes


def _expand(extras: Iterable[Any]) -> Iterator[Any]:
    """Extras that stand for several (`Len`, `Interval`, pydantic's `Field`) as those."""
    for extra in extras:
        if hasattr(extra, "__is_annotated_types_grouped_metadata__"):
            yield from _expand(extra)
        elif _comes_from_pydantic(extra) and hasattr(extra, "metadata"):
            yield Meta(description=extra.description, examples=extra.examples)
            yield from _expand(extra.metadata)
        else:
            yield extra


def _documentation(extra: Any) -> dict[str, Any]:
    text = getattr(extra, "description", None) or getattr(extra, "documentation", None)
    examples = getattr(extra, "examples", None)
    more: Any = getattr(extra, "extra_json_schema", None)
    return {
        **({"description": text} if isinstance(text, str) else {}),
        **({"examples": examples} if isinstance(examples, list) else {}),
        **(more or {}),
    }


def _comes_from_pydantic(extra: Any) -> bool:
    return type(extra).__module__.split(".")[0] == "pydantic"


def _check_zone(extra: Any) -> Callable[[Any], bool]:
    """The predicate of annotated-types' `Timezone`: None asks for no zone, anything else for one."""
    return lambda value: (value.tzinfo is None) == (extra.tz is None)


def express(base: Any, notes: Annotations) -> tuple[dict[str, Any], list[Callable[[Any], Any]]]:
    """The constraints as keywords of the schema, and as checks where JSON Schema cannot say the same."""
    keywords: dict[str, Any] = {}
    checks: list[Callable[[Any], Any]] = []
    for name, bound in notes.bounds:
        if not applies(base, name, bound):
            raise TypeError(f"{name}={bound!r} does not apply to {label(base)}")
        keyword = _keyword(base, name, bound)
        shown: Any = getattr(bound, "pattern", bound)
        if keyword is None:
            checks.append(check_bound(name, bound))
        elif keyword in keywords:
            keywords.setdefault("allOf", []).append({keyword: shown})
        else:
            keywords[keyword] = shown
    return keywords, [*checks, *other_checks(base, notes)]


def _keyword(base: Any, name: str, bound: Any) -> str | None:
    """The keyword of JSON Schema for a constraint; None where it would count something else, as for a set."""
    cls: Any = get_origin(base) or base
    if cls in (int, float):
        is_number = isinstance(bound, int | float) and math.isfinite(bound)
        return _NUMBERS[name] if is_number else None
    if name == "pattern":
        plain_pattern = isinstance(bound, str) or bound.flags == re.UNICODE
        return "pattern" if cls is str and plain_pattern else None
    if name not in ("min_length", "max_length") or is_a(cls, Set) or is_a(cls, bytes):
        return None
    kind = "Length" if cls is str else "Properties" if is_a(cls, Mapping) else "Items"
    return name[:3] + kind


def applies(base: Any, name: str, bound: Any) -> bool:
    """Whether a constraint makes sense for a type: a length for text, a least value for numbers."""
    cls: Any = get_origin(base) or base
    if cls is Any:
        return True
    if not isinstance(cls, type) or cls is bool:
        return False
    if name == "pattern":
        return cls is str
    if name in ("min_length", "max_length"):
        return issubclass(cls, Collection)
    return isinstance(bound, cls) or (issubclass(cls, Number) and isinstance(bound, Number))


def check_bound(name: str, bound: Any) -> Callable[[Any], Any]:
    """A constraint as a check, which gives the value back or raises `ValueError`."""
    return _make_check(lambda value: _HOLDS[name](value, bound), f"must have {name}={bound!r}")


def other_checks(base: Any, notes: Annotations) -> list[Callable[[Any], Any]]:
    """The checks that are no constraints: predicates, and what only pydantic understands."""
    checks = [
        _make_check(predicate, f"{getattr(predicate, '__name__', predicate)} does not hold")
        for predicate in notes.predicates
    ]
    return [*checks, _check_by_pydantic(base, notes.pydantic)] if notes.pydantic else checks


def _make_check(holds: Callable[[Any], Any], problem: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not holds(value):
            raise ValueError(problem)
        return value

    return check


def _check_by_pydantic(base: Any, extras: Sequence[Any]) -> Callable[[Any], Any]:
    """pydantic's validators, on the converted value; it takes values of types it does not know as `Any`."""
    from pydantic import PydanticSchemaGenerationError, PydanticUserError

    try:
        adapter = make_adapter(Annotated[base, *extras])
    except (PydanticSchemaGenerationError, PydanticUserError):
        adapter = make_adapter(Annotated[Any, *extras])
    return lambda value: validate_with_pydantic(adapter.validate_python, value)


def make_adapter(hint: Any) -> Any:
    """What pydantic makes values of a hint with."""
    from pydantic import TypeAdapter  # a program with such a type has pydantic

    return TypeAdapter(hint)


def validate_with_pydantic(validate: Callable[[Any], Any], value: Any) -> Any:
    """What pydantic makes of a value; its report in one line, with the places."""
    from pydantic import ValidationError

    try:
        return validate(value)
    except ValidationError as error:
        problems = [(".".join(map(str, item["loc"])), item["msg"]) for item in error.errors()]
        lines = [f"{place}: {text}" if place else text for place, text in problems]
        raise ValueError("; ".join(lines)) from error


def run_checks(value: Any, checks: Sequence[Callable[[Any], Any]]) -> Any:
    """The value after all checks, each of which may change it."""
    for check in checks:
        value = check(value)
    return value
