"""Constraints in annotations: they are in the schema, and what JSON Schema cannot say is enforced by the type."""

import dataclasses
import datetime
import decimal
import enum
import math
import re
import uuid
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    TypedDict,
    TypeVar,
)

import annotated_types as at
import attrs
import jsonschema
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta
from pydantic import AfterValidator, ConfigDict, Field, PositiveInt, StringConstraints
from tests.counts import tried
from tests.strategies import json_values
from tests.tools.test_schema import make_tool

from swink.errors import InvalidTool
from swink.tools import InvalidArguments, tool


def accepts(hint: Any, value: Any) -> bool:
    """Whether a parameter of that type takes a value."""
    try:
        make_tool({"x": hint}).prepare({"x": value})
    except InvalidArguments:
        return False
    return True


def made(hint: Any, value: Any) -> Any:
    return make_tool({"x": hint}).prepare({"x": value})["x"]


def schema_for(hint: Any) -> Any:
    return make_tool({"x": hint}).parameters_schema["properties"]["x"]


Positive = Annotated[int, Field(gt=0)]


@dataclasses.dataclass
class Row:
    n: Positive
    name: Annotated[str, at.Len(1, 3)] = "a"


class RowDict(TypedDict):
    n: Positive
    name: NotRequired[Annotated[str, at.Len(1, 3)]]


class RowStruct(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    n: Positive
    row_name: Annotated[str, at.Len(1, 3)] = "a"


class RowTuple(NamedTuple):
    n: Positive
    name: Annotated[str, at.Len(1, 3)] = "a"


@attrs.define
class RowAttrs:
    n: Positive
    _name: Annotated[str, at.Len(1, 3)] = "a"


class RowModel(pydantic.BaseModel):
    n: Positive
    name: Annotated[str, at.Len(1, 3)] = "a"


Id = NewType("Id", Positive)


@pytest.mark.parametrize(
    ("hint", "keywords", "good", "bad"),
    [
        (Annotated[int, Field(gt=0)], {"exclusiveMinimum": 0}, 1, -5000),
        (
            Annotated[int, Field(ge=0, le=9, multiple_of=3)],
            {"minimum": 0, "maximum": 9, "multipleOf": 3},
            6,
            7,
        ),
        (Annotated[float, at.Lt(1.5)], {"exclusiveMaximum": 1.5}, 1, 1.5),
        (Annotated[float, at.Interval(ge=0, lt=1)], {"minimum": 0, "exclusiveMaximum": 1}, 0, 1),
        (PositiveInt, {"exclusiveMinimum": 0}, 1, 0),
        (Annotated[str, Field(max_length=2)], {"maxLength": 2}, "ab", "abc"),
        (Annotated[str, at.Len(1, 2)], {"minLength": 1, "maxLength": 2}, "ab", ""),
        (Annotated[str, Field(pattern="^a+$")], {"pattern": "^a+$"}, "aa", "ab"),
        (
            Annotated[str, StringConstraints(min_length=2, pattern="^a")],
            {"minLength": 2, "pattern": "^a"},
            "ab",
            "a",
        ),
        (Annotated[str, Meta(min_length=2, pattern="^a")], {"minLength": 2, "pattern": "^a"}, "ab", "a"),
        (Annotated[list[int], at.MinLen(2)], {"minItems": 2}, [1, 2], [1]),
        (Annotated[tuple[int, ...], at.MaxLen(1)], {"maxItems": 1}, [1], [1, 2]),
        (Annotated[dict[str, int], Field(min_length=1)], {"minProperties": 1}, {"a": 1}, {}),
        (Annotated[int, Meta(ge=1), at.Le(5)], {"minimum": 1, "maximum": 5}, 5, 6),
        (Annotated[PositiveInt, at.Gt(5)], {"exclusiveMinimum": 0, "allOf": [{"exclusiveMinimum": 5}]}, 6, 5),
        (Id, {"exclusiveMinimum": 0}, 1, 0),
    ],
)
def test_a_constraint_is_in_the_schema_and_enforced(hint: Any, keywords: dict[str, Any], good: Any, bad: Any):
    assert keywords.items() <= schema_for(hint).items()
    assert accepts(hint, good)
    assert not accepts(hint, bad)


@pytest.mark.parametrize(
    ("hint", "good", "bad"),
    [
        (list[Annotated[int, at.Ge(1)]], [1], [1, 0]),
        (dict[str, Positive], {"a": 1}, {"a": 0}),
        (tuple[Positive, str], [1, ""], [0, ""]),
        (set[Positive], [1], [0]),
        (Optional[Positive], None, 0),  # noqa: UP045
        (Positive | str, "x", 0),
        (Annotated[int | None, Field(gt=0)], 1, 0),
        (Annotated[int | None, Field(gt=0)], None, 0),
        (Annotated[int | str, at.Ge(1)], "x", 0),
        (Annotated[int | None, Meta(gt=0)], None, 0),
        (Annotated[str | list[str], at.MaxLen(2)], ["long", "er"], "abc"),
        (list[list[Positive] | None], [None, [1]], [[0]]),
        (Row, {"n": 1}, {"n": 0}),
        (Row, {"n": 1, "name": "abc"}, {"n": 1, "name": "abcd"}),
        (RowDict, {"n": 1}, {"n": 0}),
        (RowDict, {"n": 1, "name": "a"}, {"n": 1, "name": ""}),
        (RowStruct, {"n": 1, "rowName": "a"}, {"n": 1, "rowName": ""}),
        (RowStruct, {"n": 1}, {"n": 1, "row_name": "a"}),
        (RowTuple, [1], [0]),
        (RowTuple, [1, "a"], [1, "abcd"]),
        (RowModel, {"n": 1}, {"n": 0}),
        (RowAttrs, {"n": 1, "_name": "b"}, {"n": 1, "_name": ""}),
        (list[Row | RowModel], [{"n": 1}], [{"n": 0}]),
        (dict[str, list[Row]], {"a": [{"n": 1}]}, {"a": [{"n": 0}]}),
        (dict[Annotated[str, at.MinLen(1)], int], {"a": 1}, {"": 1}),
        (dict[Annotated[int, at.Ge(1)], int], {"1": 1}, {"0": 1}),
        (dict[Annotated[str, at.Predicate(str.islower)], int], {"a": 1}, {"A": 1}),
    ],
)
def test_a_constraint_is_enforced_at_every_depth(hint: Any, good: Any, bad: Any):
    assert accepts(hint, good)
    assert not accepts(hint, bad)


TODAY = datetime.date(2026, 11, 15)


@pytest.mark.parametrize(
    ("hint", "good", "bad"),
    [
        (Annotated[datetime.date, at.Ge(TODAY)], "2026-11-15", "2026-11-14"),
        (Annotated[decimal.Decimal, at.Gt(0)], "0.5", "0"),
        (Annotated[datetime.timedelta, at.Le(datetime.timedelta(hours=1))], "PT3600S", "PT3601S"),
        (Annotated[set[int], at.MinLen(2)], [1, 2], [1, 1]),
        (Annotated[set[int], Meta(min_length=2)], [1, 2], [1, 1]),
        (Annotated[bytes, at.MaxLen(2)], "aGk=", "aGkh"),
        (Annotated[int, at.Predicate(lambda n: n % 2 == 0)], 2, 3),
        (Annotated[float, at.Predicate(at.Not(math.isinf))], 1, 1e999),
        (Annotated[str, at.Predicate(str.islower)] | None, "a", "A"),
        (Annotated[datetime.datetime, at.Timezone(...)], "2026-11-15T00:00:00Z", "2026-11-15T00:00:00"),
        (Annotated[str, Field(pattern=re.compile("^a$", re.IGNORECASE))], "A", "b"),
        (Annotated[int, at.Ge(-math.inf), at.Le(3)], 3, 4),
        (Annotated[int, AfterValidator(lambda n: n if n % 2 else 1 // 0)], 1, "x"),
        (list[at.LowerCase[str]], ["a"], ["A"]),
        (Annotated[Row, at.Predicate(lambda row: row.n < 9)], {"n": 1}, {"n": 9}),
        (Annotated[list[RowStruct], at.Predicate(lambda rows: len(rows) == 1)], [{"n": 1}], []),
    ],
)
def test_what_json_schema_cannot_say_is_enforced_by_the_type(hint: Any, good: Any, bad: Any):
    assert accepts(hint, good)
    assert not accepts(hint, bad)


def odd(n: int) -> int:
    if n % 2 == 0:
        raise ValueError("even")
    return n


def test_validators_of_pydantic_run_and_may_change_the_value():
    assert made(Annotated[str, StringConstraints(to_upper=True, strip_whitespace=True)], " a ") == "A"
    assert made(Annotated[int, AfterValidator(lambda n: n * 2)], 4) == 8
    assert made(list[Annotated[RowStruct, AfterValidator(lambda row: row.n)]], [{"n": 3}]) == [3]
    assert made(Annotated[int | None, AfterValidator(lambda n: n)], None) is None
    with pytest.raises(InvalidArguments, match=r"^\$\.x\[1\]: Value error, even$"):
        made(list[Annotated[int, AfterValidator(odd)]], [1, 2])


def test_the_place_of_what_does_not_convert_is_named():
    hint = dict[str, list[Annotated[datetime.date, at.Ge(TODAY)] | None]]
    with pytest.raises(
        InvalidArguments, match=r"^\$\.x\[\.\.\.\]\[1\]: must have ge=|^\$\.x\.a\[1\]: must have ge="
    ):
        made(hint, {"a": ["2026-11-15", "2020-01-01"]})


def test_values_with_constraints_arrive_as_their_types():
    assert made(list[Row], [{"n": 1.0}]) == [Row(1)]
    assert made(RowDict, {"n": 1, "other": 2}) == {"n": 1}
    assert made(RowStruct, {"n": 1, "rowName": "b"}) == RowStruct(1, "b")
    assert made(RowTuple, [1]) == RowTuple(1)
    assert made(RowAttrs, {"n": 1, "_name": "b"}) == RowAttrs(1, "b")
    assert made(Annotated[tuple[int, ...], at.MaxLen(3)], [1]) == (1,)
    assert made(dict[Annotated[int, at.Ge(1)], str], {"7": "x"}) == {7: "x"}


def test_a_constraint_holds_with_a_default_too():
    @tool
    def buy(count: Annotated[int, Field(gt=0, description="how many")] = 1, note: Positive | None = None): ...

    assert buy.parameters_schema["properties"]["count"] == {
        "type": "integer",
        "exclusiveMinimum": 0,
        "default": 1,
        "description": "how many",
    }
    assert buy.prepare({}) == {}
    assert buy.prepare({"count": 2, "note": None}) == {"count": 2, "note": None}
    for wrong in ({"count": 0}, {"note": 0}):
        with pytest.raises(InvalidArguments):
            buy.prepare(wrong)


def test_descriptions_inside_types_are_in_the_schema():
    assert schema_for(list[Annotated[str, "a city"]])["items"] == {"type": "string", "description": "a city"}
    assert schema_for(Annotated[int, Field(examples=[1], description="d")]) == {
        "type": "integer",
        "examples": [1],
        "description": "d",
    }


@pytest.mark.parametrize(
    "hint",
    [
        Annotated[bool, at.Gt(0)],
        Annotated[int, at.MaxLen(3)],
        Annotated[Row, at.Gt(1)],
        Annotated[Row | None, at.Gt(1)],
    ],
)
def test_a_constraint_that_makes_no_sense_is_refused(hint: Any):
    with pytest.raises(InvalidTool, match=r"parameter 'x'.* appl(y|ies) to"):
        make_tool({"x": hint})


def test_a_pattern_that_cannot_be_used_is_refused_where_it_is_written():
    with pytest.raises(InvalidTool, match="tool 'record': not a usable JSON Schema"):
        make_tool({"x": list[Annotated[str, Field(pattern="(")]]})


def test_extras_of_other_libraries_are_left_alone():
    unhashable: Any = {"unit": "metres"}
    assert schema_for(Annotated[int, unhashable, object()]) == {"type": "integer"}
    assert schema_for(list[Annotated[int, unhashable]]) == {"type": "array", "items": {"type": "integer"}}
    assert schema_for(Annotated[list[Annotated[int, unhashable]], at.MinLen(1)])["minItems"] == 1


@dataclasses.dataclass
class Node:
    n: Annotated[int, at.Predicate(lambda n: n > 0)]
    below: "Node | None" = None


def test_what_fails_deep_inside_fails_in_no_time():
    value: dict[str, Any] = {"n": 0.0}
    for _ in range(60):
        value = {"n": 1.0, "below": value}
    assert not accepts(Node, value)  # twice the time for each level would be years


# Unions


@dataclasses.dataclass
class City:
    name: str
    people: int = 0


@dataclasses.dataclass
class Refusal:
    reason: str


@dataclasses.dataclass
class Named:
    name: str


class CityModel(pydantic.BaseModel):
    name: str
    mayor: str


class Lake(msgspec.Struct):
    name: str
    depth: int


class Pond(msgspec.Struct):
    name: str


class Kind(enum.Enum):
    A = "a"


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (City | Refusal, {"name": "x"}, City("x")),
        (City | Refusal, {"reason": "x"}, Refusal("x")),
        (City | Named, {"name": "x"}, City("x")),
        (Named | City, {"name": "x", "people": 1}, City("x", 1)),
        (Named | CityModel, {"name": "x", "mayor": "y"}, CityModel(name="x", mayor="y")),
        (Pond | Lake, {"name": "x", "depth": 1}, Lake("x", 1)),
        (Pond | Lake, {"name": "x"}, Pond("x")),
        (City | CityModel | Lake | None, None, None),
        (City | str, "x", "x"),
        (CityModel | str, "x", "x"),
        (list[City] | City, [{"name": "x"}], [City("x")]),
        (list[int] | list[str], ["x"], ["x"]),
        (dict[str, int] | City, {"a": 1}, {"a": 1}),
        (datetime.date | str, "2026-11-15", TODAY),
        (datetime.date | str, "soon", "soon"),
        (str | uuid.UUID | None, "x", "x"),
        (Kind | str, "a", Kind.A),
        (bytes | str, "abcd", "abcd"),
        (Positive | float, 2, 2),
        (Positive | float, -2.5, -2.5),
        (Annotated[City, "a city"] | Refusal, {"name": "x"}, City("x")),
        (list[City | Refusal], [{"name": "x"}, {"reason": "y"}], [City("x"), Refusal("y")]),
        (Literal["a", 3] | City, 3.0, 3),
    ],
)
def test_a_union_gives_the_member_that_fits_best(hint: Any, value: Any, expected: Any):
    got = made(hint, value)
    assert got == expected
    assert type(got) is type(expected)


def test_a_union_refuses_what_fits_no_member():
    for value in ({}, {"other": 1}, 5, None, [{"name": "x"}]):
        assert not accepts(City | Refusal, value)


# Names


def item_of(hint: Any) -> Any:
    @dataclasses.dataclass
    class Item:
        value: hint  # type: ignore[valid-type]

    return Item


def model_of(hint: Any) -> Any:
    class Item(pydantic.BaseModel):
        value: hint  # type: ignore[valid-type]

    class Box(pydantic.BaseModel):
        item: Item

    return Box


def kind_of(value: str) -> Any:
    return enum.Enum("Kind", {"ONLY": value})


def test_classes_of_one_name_do_not_overwrite_each_other():
    pairs = [
        (item_of(int), item_of(str), {"value": 1}, {"value": "x"}),
        (item_of(Positive), item_of(Annotated[str, at.MinLen(1)]), {"value": 1}, {"value": "x"}),
        (model_of(int), model_of(str), {"item": {"value": 1}}, {"item": {"value": "x"}}),
        (item_of(int), model_of(str), {"value": 1}, {"item": {"value": "x"}}),
        (model_of(str), item_of(Positive), {"item": {"value": "x"}}, {"value": 1}),
        (kind_of("a"), kind_of("b"), "a", "b"),
        (list[item_of(int)], item_of(item_of(str)), [{"value": 1}], {"value": {"value": "x"}}),
    ]
    for first, second, one, two in pairs:
        both = make_tool({"a": first, "b": second})
        jsonschema.Draft202012Validator.check_schema(both.parameters_schema)
        both.prepare({"a": one, "b": two})
        for wrong in ({"a": two, "b": two}, {"a": one, "b": one}):
            with pytest.raises(InvalidArguments):
                both.prepare(wrong)
        assert both.prepare({"b": two, "a": one}).keys() == {"a", "b"}


T = TypeVar("T")


@dataclasses.dataclass
class Crate(Generic[T]):
    item: T
    rest: list[T] = dataclasses.field(default_factory=list)
    inner: "Crate[T] | None" = None


def test_generic_and_recursive_classes_keep_their_constraints():
    assert made(Crate[Positive], {"item": 1, "rest": [2], "inner": {"item": 3}}) == Crate(1, [2], Crate(3))
    for wrong in ({"item": 0}, {"item": 1, "rest": [0]}, {"item": 1, "inner": {"item": 0}}):
        assert not accepts(Crate[Positive], wrong)
    assert accepts(Crate[str], {"item": ""})


class Visit(pydantic.BaseModel):
    model_config = ConfigDict(strict=True)
    day: datetime.date
    at: datetime.time
    who: uuid.UUID
    tags: tuple[str, ...] = ()
    n: int = 0


def test_strict_models_take_dates_from_json():
    value = {"day": "2026-11-15", "at": "10:00:00", "who": str(uuid.UUID(int=1)), "tags": ["a"], "n": 1.0}
    visit = made(Visit, value)
    assert visit == Visit(day=TODAY, at=datetime.time(10), who=uuid.UUID(int=1), tags=("a",), n=1)
    assert made(list[Visit | None], [value]) == [visit]
    with pytest.raises(InvalidArguments, match=r"\$\.x: day: "):
        made(Visit, value | {"day": "soon"})


def test_text_that_is_no_unicode_reaches_a_model_too():
    assert made(CityModel, {"name": "\ud800", "mayor": ""}).name == "\ud800"


# Any annotated type: what the schema accepts is what conversion accepts


def said_by(kind: int, **bounds: int) -> list[Any]:
    """The same constraints as pydantic, msgspec and annotated-types write them."""
    if kind == 0:
        return [Field(**bounds)]  # type: ignore[arg-type]
    if kind == 1:
        return [Meta(**bounds)]
    names = {"ge": at.Ge, "gt": at.Gt, "lt": at.Lt, "le": at.Le, "multiple_of": at.MultipleOf}
    names |= {"min_length": at.MinLen, "max_length": at.MaxLen}
    return [names[name](bound) for name, bound in bounds.items()]


lows = st.sampled_from([{"ge": 2}, {"gt": 2}, {}])
highs = st.sampled_from([{"le": 6}, {"lt": 6}, {"multiple_of": 3}])
sizes = st.sampled_from([{"min_length": 1}, {"max_length": 2}, {"min_length": 1, "max_length": 1}])
kinds = st.integers(0, 2)
small = st.integers(0, 8) | st.sampled_from([2.0, 2.5, 3.0])
letters = st.text("ab", max_size=3)

leaves = st.one_of(
    st.builds(lambda k, lo, hi: (Annotated[int, *said_by(k, **lo, **hi)], small), kinds, lows, highs),
    st.builds(lambda k, lo, hi: (Annotated[float, *said_by(k, **lo, **hi)], small), kinds, lows, highs),
    st.builds(lambda k, size: (Annotated[str, *said_by(k, **size)], letters), kinds, sizes),
    st.sampled_from([(str, letters), (int, small), (bool, st.booleans()), (None, st.none())]),
)


MODEL_FIELD = (Annotated[int, Field(gt=2)], small)  # pydantic knows neither Structs nor `Meta`


def class_of(kind: int, hint: Any, other: Any) -> Any:
    """A class with a required and an optional field, of each kind there is; all are called `Made`."""
    match kind:
        case 0:
            return dataclasses.make_dataclass("Made", [("a", hint), ("b", other, None)])
        case 1:
            return TypedDict("Made", {"a": hint, "b": NotRequired[other]})
        case 2:
            return msgspec.defstruct("Made", [("a", hint), ("b", other, None)])
        case _:
            return pydantic.create_model("Made", a=(hint, ...), b=(other, None))


def around(
    one: tuple[Any, Any], two: tuple[Any, Any], extras: list[Any], form: int, kind: int
) -> tuple[Any, Any]:
    """A type that contains one or two others, and values that mostly fit it."""
    if form > 5 and kind == 3:
        one = two = MODEL_FIELD
    (hint, values), (other, others) = one, two
    objects = st.fixed_dictionaries({"a": values}, optional={"b": others})
    match form:
        case 0:
            return Annotated[list[hint], *extras], st.lists(values, max_size=3)
        case 1:
            return Annotated[dict[str, hint], *extras], st.dictionaries(letters, values, max_size=3)
        case 2:
            return dict[Annotated[str, *extras], hint], st.dictionaries(letters, values, max_size=2)
        case 3:
            return tuple[hint, other], st.tuples(values, others).map(list)
        case 4:
            return Optional[hint], st.none() | values  # noqa: UP045  hint is a value
        case 5:
            return Annotated[hint, "said"] | list[other], values | st.lists(others, max_size=2)
        case 6:
            return class_of(kind, hint, other), objects
        case _:
            return class_of(kind, hint, other) | class_of(0, other, hint), objects


def constrained(inner: Any) -> Any:
    extras = st.builds(lambda kind, size: said_by(kind, **size), kinds, sizes)
    return st.builds(around, inner, inner, extras, st.integers(0, 7), st.integers(0, 3))


annotated = st.recursive(leaves, constrained, max_leaves=4)


@given(annotated, st.data())
@tried(25, 100)
def test_what_the_schema_accepts_is_what_conversion_accepts(pair: tuple[Any, Any], data: Any):
    hint, values = pair
    made_tool = make_tool({"x": hint})
    schema = made_tool.parameters_schema
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for _ in range(3):
        arguments = {"x": data.draw(values | json_values)}
        if validator.is_valid(arguments):
            made_tool.prepare(arguments)
        else:
            with pytest.raises(InvalidArguments):
                made_tool.prepare(arguments)
