"""The price data of the package genai-prices, read as text: its module is parsed and never executed."""

import ast
import re
from typing import Any

from msgspec import Struct, ValidationError, convert

from swink.errors import AgentError

PACKAGE = "genai-prices"
MEMBER = "genai_prices/data.py"
_UTC = ("datetime.timezone.utc", "datetime.UTC")
LARGEST = 32 * 1024 * 1024
_CHECKED = re.compile(r"(?:[Vv]erified|[Cc]hecked|[Aa]s of)(?: on)? (20\d\d-\d\d-\d\d)")


class DataError(AgentError):
    """Price data that is not what is expected; nothing of it is used."""


class Clause(Struct):
    """Which names mean a model: the class of the condition, and the text or the conditions that it has."""

    kind: str
    of: "str | list[Clause]"


class Since(Struct, tag="StartDateConstraint", tag_field="kind"):
    """A price that holds from this day on."""

    start_date: str


class Hours(Struct, tag="TimeOfDateConstraint", tag_field="kind"):
    """At some hours of the day, UTC."""

    start_time: str
    end_time: str


class Tier(Struct):
    """A price above a size of the input."""

    start: int
    price: float


class Tiered(Struct):
    """A price that depends on the size of the input."""

    base: float
    tiers: list[Tier]


Amounts = dict[str, float | Tiered | None]


class Conditional(Struct):
    """Prices that hold under a condition."""

    prices: Amounts
    constraint: Since | Hours | None = None


class Variant(Struct):
    """Prices that replace others for some requests."""

    when: dict[str, str]
    prices: Amounts
    constraint: Since | Hours | None = None


class Model(Struct):
    """What the data says of a model."""

    id: str
    match: Clause
    prices: Amounts | list[Conditional]
    context_window: int | None = None
    deprecated: bool | None = None
    price_variants: list[Variant] | None = None


class Provider(Struct):
    """The models of a provider; the first one that a name matches is meant."""

    id: str
    models: list[Model]


def read_source(text: str) -> dict[str, Provider]:
    """The providers in the text of the package's module."""
    if len(text) > LARGEST:
        raise DataError(f"the price data is larger than {LARGEST >> 20} MB")
    try:
        tree = ast.parse(text)
        for node in tree.body:
            match node:
                case (
                    ast.AnnAssign(target=ast.Name("providers"), value=ast.List(items))
                    | ast.Assign(targets=[ast.Name("providers")], value=ast.List(items))
                ):
                    providers = convert([_value(item) for item in items], list[Provider])
                    return {provider.id: provider for provider in providers}
                case _:
                    pass
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError, ValidationError) as error:
        raise DataError(f"the price data cannot be read: {error}") from error
    raise DataError("the price data has no list of providers")


def last_checked(text: str) -> str | None:
    """The last day on which a price was checked, by what the comments say."""
    return max(_CHECKED.findall(text), default=None)


def _value(node: ast.expr) -> Any:
    """A value; a call such as `Tier(start=1, price=2)` becomes a dict with its name as "kind"."""
    match node:
        case ast.Constant(value):
            return value
        case ast.List(items) | ast.Tuple(items):
            return [_value(item) for item in items]
        case ast.Dict(keys, values):
            return {_value(key): _value(value) for key, value in zip(keys, values, strict=True) if key}
        case ast.Call(ast.Name("Decimal"), [ast.Constant(str(number))], []):
            return float(number)
        case ast.Call(ast.Attribute(ast.Name("datetime"), "date"), parts, []):
            year, month, day = map(_value, parts)
            return f"{year:04}-{month:02}-{day:02}"
        case ast.Call(ast.Attribute(ast.Name("datetime"), "time"), parts, keywords):
            return _time([_value(part) for part in parts], keywords)
        case ast.Call(ast.Name("Provider"), [], keywords):
            return {word.arg: _value(word.value) for word in keywords if word.arg in ("id", "models")}
        case ast.Call(ast.Name("ModelPrice"), [], keywords):
            return {word.arg: _value(word.value) for word in keywords}
        case ast.Call(ast.Name(name), [], [ast.keyword(value=value)]) if name.startswith("Clause"):
            return {"kind": name, "of": _value(value)}
        case ast.Call(ast.Name(name), [], keywords):
            return {"kind": name, **{word.arg: _value(word.value) for word in keywords if word.arg}}
        case _:
            raise ValueError(f"line {node.lineno} has something that is no plain value")


def _time(parts: list[int], keywords: list[ast.keyword]) -> str:
    zones = [ast.unparse(word.value) for word in keywords if word.arg == "tzinfo"]
    if any(zone not in _UTC for zone in zones):
        raise ValueError(f"a time of another zone than UTC: {zones[0]}")
    return ":".join(f"{part:02}" for part in [*parts, 0, 0][: max(2, len(parts))])
