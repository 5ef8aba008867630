"""Shapes (P1, P3): schemas made from annotations accept exactly what the function accepts, and fetch nothing."""

import copy
import dataclasses
import enum
import inspect
import socket
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import jsonschema
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta
from tests.counts import tried
from tests.strategies import json_values, words

from swink.errors import InvalidTool
from swink.tools import InvalidArguments, Tool, tool
from swink.tools.schema import Shape, parse_docstring, schema_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0


class Person(TypedDict):
    name: str
    age: NotRequired[int]


class Note(msgspec.Struct):
    text: str
    tags: list[str] = []
    parent: "Note | None" = None


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    name: str


class Item(pydantic.BaseModel):
    sku: str
    count: int = 1
    at: Optional["Item"] = None


@dataclasses.dataclass
class Order:
    items: list[Item]
    where: Point | None = None
    colour: Colour = Colour.RED


def parameters_of(**hints):
    """The schema of a function with these parameters."""
    return make_tool(hints).parameters_schema


def make_tool(hints, defaults=None, seen=None):
    defaults = defaults or {}

    async def record(**values: Any) -> str:
        (seen if seen is not None else []).append(values)
        return ""

    record.__signature__ = inspect.Signature(
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=hint,
                default=defaults.get(name, inspect.Parameter.empty),
            )
            for name, hint in hints.items()
        ]
    )
    record.__annotations__ = dict(hints)
    return tool(record)


# Any signature

LEAVES = [
    (str, words),
    (int, st.integers(-(2**53), 2**53)),
    (float, st.floats(allow_nan=False, allow_infinity=False) | st.integers(-1000, 1000)),
    (bool, st.booleans()),
    (None, st.none()),
    (Any, json_values),
    (bytes, st.from_regex(r"\A([A-Za-z0-9+/]{4}){0,3}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z")),
    (Colour, st.sampled_from(["red", "blue"])),
    (Level, st.sampled_from([1, 2, 2.0])),
    (Literal["a", "b", 3], st.sampled_from(["a", "b", 3, 3.0])),
    (Annotated[int, Meta(ge=1, le=10)], st.integers(1, 10) | st.just(4.0)),
    (Annotated[str, Meta(max_length=3, pattern="^[a-c]*$")], st.text("abc", max_size=3)),
    (
        Point,
        st.fixed_dictionaries(
            {"x": st.integers(-9, 9)}, optional={"y": st.integers(-9, 9) | st.just(0.5), "other": json_values}
        ),
    ),
    (Person, st.fixed_dictionaries({"name": words}, optional={"age": st.integers(0, 99)})),
    (
        Note,
        st.fixed_dictionaries(
            {"text": words}, optional={"tags": st.lists(words, max_size=2), "parent": st.just({"text": "x"})}
        ),
    ),
    (Cat | Dog, st.sampled_from([{"type": "Cat", "lives": 9}, {"type": "Dog", "name": "Rex"}])),
    (
        Item,
        st.fixed_dictionaries(
            {"sku": words}, optional={"count": st.integers(0, 9), "at": st.none() | st.just({"sku": "y"})}
        ),
    ),
    (
        Order,
        st.fixed_dictionaries(
            {"items": st.lists(st.just({"sku": "a"}), max_size=2)}, optional={"where": st.just({"x": 1})}
        ),
    ),
    (str | int | None, words | st.integers(0, 9) | st.none()),
]


def wrapped(inner):
    def containers(pair):
        hint, values = pair
        options = [
            (list[hint], st.lists(values, max_size=3)),
            (dict[str, hint], st.dictionaries(words, values, max_size=3)),
            (tuple[hint, ...], st.lists(values, max_size=3)),
            (tuple[hint, int], st.tuples(values, st.integers(0, 9)).map(list)),
        ]
        if hint not in (None, Any):
            options.append((Optional[hint], st.none() | values))  # noqa: UP045  hint is a value
        if hint in (str, int, Colour, bool):
            options.append((set[hint], st.lists(values, max_size=3)))
        return st.sampled_from(options)

    return inner.flatmap(containers)


hints = st.recursive(st.sampled_from(LEAVES), wrapped, max_leaves=3)


@st.composite
def signatures(draw):
    """Hints by parameter, which of them have defaults, and arguments that are mostly right."""
    pairs = draw(st.dictionaries(st.sampled_from(["a", "b", "title", "type", "required"]), hints, max_size=3))
    optional = {name for name in pairs if draw(st.booleans())}
    arguments = {
        name: draw(values if draw(st.integers(0, 3)) else json_values) for name, (_, values) in pairs.items()
    }
    for name in list(arguments):
        if draw(st.integers(0, 3)) == 0:
            del arguments[name]
    if draw(st.integers(0, 9)) == 0:
        arguments["unknown"] = 1
    return {name: hint for name, (hint, _) in pairs.items()}, optional, arguments


@given(signatures())
@tried(20, 150)
async def test_exactly_what_the_schema_accepts_reaches_the_function(signature):
    hints, optional, arguments = signature
    seen: list[dict[str, Any]] = []
    made = make_tool(hints, dict.fromkeys(optional), seen)
    schema = made.parameters_schema
    jsonschema.Draft202012Validator.check_schema(schema)
    before = copy.deepcopy(arguments)
    if jsonschema.Draft202012Validator(schema).is_valid(arguments):
        await made.body("1", made.prepare(arguments), None)
        assert seen[0].keys() == arguments.keys()
        for name, value in seen[0].items():
            assert is_a(value, hints[name]), (value, hints[name])
    else:
        with pytest.raises(InvalidArguments) as caught:
            made.prepare(arguments)
        assert caught.value.problems
        assert not seen
    assert arguments == before, "the history keeps what the model wrote"


def is_a(value, hint):
    """Whether a value is of the hinted Python type: its own conversion by msgspec leaves it as it is."""
    return (
        msgspec.convert(
            value,
            hint,
            dec_hook=lambda cls, item: item if isinstance(item, cls) else 1 / 0,
            from_attributes=False,
        )
        == value
    )


@given(st.sampled_from(LEAVES), st.data())
@tried(25, 60)
def test_a_schema_given_as_it_is_leaves_the_value_as_it_is(leaf, data):
    hint, values = leaf
    shape = Shape(schema_of(hint))
    value = data.draw(values)
    assert shape.violations(value) == []
    assert shape.convert(value) is value


# What the types become


def test_values_arrive_as_the_annotated_types():
    seen: list[dict[str, Any]] = []
    made = make_tool(
        {
            "order": Order,
            "note": Note,
            "pet": Cat | Dog,
            "who": Person,
            "level": Level,
            "ids": set[int],
            "raw": bytes,
        },
        None,
        seen,
    )
    values = made.prepare(
        {
            "order": {"items": [{"sku": "a", "at": {"sku": "b"}}], "where": {"x": 1.0}, "colour": "blue"},
            "note": {"text": "t", "parent": {"text": "p"}},
            "pet": {"type": "Dog", "name": "Rex"},
            "who": {"name": "Ann"},
            "level": 2,
            "ids": [1, 1, 2],
            "raw": "aGk=",
        }
    )
    assert values == {
        "order": Order([Item(sku="a", at=Item(sku="b"))], Point(1), Colour.BLUE),
        "note": Note("t", parent=Note("p")),
        "pet": Dog("Rex"),
        "who": {"name": "Ann"},
        "level": Level.HIGH,
        "ids": {1, 2},
        "raw": b"hi",
    }
    assert isinstance(values["order"].items[0], Item)
    assert type(values["order"].where.x) is int


def test_a_schema_shows_types_defaults_enums_and_descriptions():
    @tool
    def book(
        city: str,
        nights: int = 2,
        colour: Colour = Colour.RED,
        note: Annotated[str, "for the staff"] = "",
        ids: list[int] | None = None,
    ):
        """Book a room.

        Args:
            city: Where.
            nights: How many.
            note: overruled by the annotation.
        """

    assert book.description == "Book a room."
    assert book.parameters_schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "nights": {"type": "integer", "default": 2, "description": "How many."},
            "colour": {"$ref": "#/$defs/Colour", "default": "red"},
            "note": {"type": "string", "default": "", "description": "for the staff"},
            "ids": {
                "anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}],
                "default": None,
            },
        },
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {"Colour": {"enum": ["blue", "red"]}},
    }


def test_a_function_without_parameters_takes_an_empty_object():
    schema = parameters_of()
    assert schema["type"] == "object"
    assert schema["properties"] == {}
    assert Shape(schema).violations({}) == []


def test_a_recursive_type_refers_to_itself():
    schema = schema_of(Note)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert Shape(schema).violations({"text": "a", "parent": {"text": "b", "parent": {"nope": 1}}})


def test_parameters_named_like_keywords_of_json_schema_survive():
    schema = parameters_of(title=str, required=bool, default=int)
    assert set(schema["properties"]) == {"title", "required", "default"}


def test_omitted_arguments_leave_the_default_to_the_function():
    made = make_tool({"n": int}, {"n": None})
    assert made.prepare({}) == {}


@pytest.mark.parametrize("hint", [object(), socket.socket, type, complex, list[complex]])
def test_a_type_without_a_schema_says_what_to_use(hint):
    with pytest.raises(InvalidTool, match=r"(?s)parameter 'x'.*use str, int, float"):
        parameters_of(x=hint)


def test_keys_that_are_no_text_are_checked_as_keys():
    made = make_tool({"by_id": dict[int, str]})
    assert made.prepare({"by_id": {"7": "x"}}) == {"by_id": {7: "x"}}
    with pytest.raises(InvalidArguments):
        made.prepare({"by_id": {"seven": "x"}})


@pytest.mark.parametrize("value", ["aGk", "a", "====", "aGk=\n", "äöü=", 5])
def test_bytes_are_base64(value):
    made = make_tool({"raw": bytes})
    assert made.prepare({"raw": "aGk="}) == {"raw": b"hi"}
    assert made.prepare({"raw": ""}) == {"raw": b""}
    assert made.shape.violations({"raw": value})
    with pytest.raises(InvalidArguments):
        made.prepare({"raw": value})


@pytest.mark.parametrize("value", [1.5, True, "1", None, [1]])
def test_an_integer_is_an_integer(value):
    with pytest.raises(InvalidArguments):
        make_tool({"n": int}).prepare({"n": value})
    assert make_tool({"n": int}).prepare({"n": 1e3}) == {"n": 1000}


def test_a_value_that_fits_the_schema_but_not_the_type_is_an_invalid_argument():
    class Even(pydantic.BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def must_be_even(cls, n: int) -> int:
            if n % 2:
                raise ValueError("odd")
            return n

    made = make_tool({"even": Even})
    assert made.prepare({"even": {"n": 2}})["even"].n == 2
    with pytest.raises(InvalidArguments, match="odd"):
        made.prepare({"even": {"n": 3}})


# Violations


def test_every_violation_is_listed_with_its_path():
    shape = Shape.of(Order)
    problems = shape.violations(
        {"items": [{"sku": 1}, {"sku": "a", "count": "x"}], "where": {"y": "z"}, "colour": "pink"}
    )
    text = "\n".join(problems)
    for path in ("$.items[0].sku", "$.items[1].count", "$.where", "$.colour"):
        assert path in text
    assert len(problems) == 4


def test_a_violation_does_not_repeat_a_huge_value():
    (problem,) = Shape({"type": "integer"}).violations("x" * 1_000_000)
    assert len(problem) < 1_000
    assert problem.startswith("$: ")
    assert "integer" in problem


# Schemas of the user's own


def test_the_users_schema_is_not_changed():
    schema = {
        "type": "object",
        "title": "T",
        "properties": {"a": {"type": "string", "title": "A"}},
        "required": [],
    }
    before = copy.deepcopy(schema)
    shape = Shape.of(schema)
    shape.check()
    made = Tool.raw("raw", "d", schema, lambda call_id, arguments, ctx: None)
    assert made.prepare({"a": "x"}) == {"a": "x"}
    assert schema == before
    assert shape.schema == before, "and is sent as it was written"
    assert shape.schema is not schema


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"properties": []},
        {"pattern": "("},
        {"$ref": "#/$defs/missing"},
        {"minimum": "1"},
    ],
)
def test_a_schema_that_is_none_is_refused_where_it_is_written(schema):
    with pytest.raises(InvalidTool, match="not a usable JSON Schema"):
        Shape(schema).check()
    with pytest.raises(InvalidTool, match="tool 'raw': not a usable JSON Schema"):
        Tool.raw("raw", "d", schema, lambda call_id, arguments, ctx: None)


@pytest.fixture
def listener():
    """A server on loopback that nobody may connect to."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "URL/x.json"},
        {"type": "object", "properties": {"a": {"$ref": "URL/x.json#/$defs/A"}}},
        {"$id": "URL/base/", "items": {"$ref": "other.json"}},
        {"$schema": "URL/meta.json"},
        {"$dynamicRef": "URL/x.json#a"},
        {"allOf": [{"anyOf": [{"$ref": "URL/x.json"}]}]},
        {"$defs": {"a": {"$ref": "URL/x.json"}}},
    ],
)
def test_an_external_reference_is_refused_and_never_fetched(schema, listener):
    schema = msgspec.json.decode(msgspec.json.encode(schema).replace(b"URL", listener.encode()))
    with pytest.raises(InvalidTool, match=r"never fetched|Unknown meta-schema|not present in a registry"):
        Shape(schema).check()


@pytest.mark.parametrize("uri", ["file:///etc/passwd", "other.json", "urn:x:y"])
def test_a_reference_to_a_file_is_refused_too(uri):
    with pytest.raises(InvalidTool, match=r"never fetched|not present in a registry"):
        Shape({"$ref": uri}).check()


def test_references_inside_the_schema_work():
    shape = Shape({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}})
    assert shape.violations(1) == []
    assert shape.violations("x")


# Docstrings

GOOGLE = """Search the web.

    More about it: it searches.

    Args:
        query: What to look for,
            over two lines.
        limit (int, optional): How many: at most ten.
        **options: The rest.

    Returns:
        The hits.

    Raises:
        limit: not a parameter.
    """
NUMPY = """Search the web.

    More about it: it searches.

    Parameters
    ----------
    query : str
        What to look for,
        over two lines.
    limit : int, optional
        How many: at most ten.
    options
        The rest.

    Returns
    -------
    list of str
        The hits.
    """
SPHINX = """Search the web.

    More about it: it searches.

    :param query: What to look for,
        over two lines.
    :param int limit: How many: at most ten.
    :param options: The rest.
    :returns: The hits.
    :raises ValueError: never
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX])
def test_the_three_docstring_styles_say_the_same(text):
    head, described = parse_docstring(text)
    assert head == "Search the web.\n\nMore about it: it searches."
    assert described == {
        "query": "What to look for, over two lines.",
        "limit": "How many: at most ten.",
        "options": "The rest.",
    }


@pytest.mark.parametrize(
    ("text", "head", "described"),
    [
        (None, "", {}),
        ("", "", {}),
        ("One line.", "One line.", {}),
        ("Args:\n    x: only this", "", {"x": "only this"}),
        ("Text.\n\nReturns:\n    str: the text", "Text.", {}),
        ("Text.\n\nExample:\n    >>> f(x: 1)", "Text.", {}),
        ("Keep\nboth lines.\n\nArguments:\n  x: a\n\n  y: b", "Keep\nboth lines.", {"x": "a", "y": "b"}),
    ],
)
def test_docstrings_of_other_shapes(text, head, described):
    assert parse_docstring(text) == (head, described)


class Counted:
    """A validator that counts the violations it was made to find."""

    def __init__(self, validator):
        self.validator, self.found = validator, 0

    def __getattr__(self, name):
        return getattr(self.validator, name)

    def iter_errors(self, value):
        errors = list(self.validator.iter_errors(value))
        self.found += len(errors)
        return iter(errors)


MANY = 20_000


@pytest.mark.parametrize(
    ("hint", "value", "first"),
    [
        (list[int], ["x"] * MANY, "$[0]: "),
        (dict[str, int], dict.fromkeys((f"k{n}" for n in range(MANY)), "x"), "$.k0: "),
        (list[list[int]], [["x"] * MANY] * 3, "$[0][0]: "),
        (list[int], [*range(MANY), "x"], f"$[{MANY}]: "),
        ({"type": "array", "minItems": 5_000, "items": {"type": "integer"}}, ["x"] * MANY, "$[0]: "),
        ({"type": "array", "maxItems": 5_000}, [1] * MANY, "$: "),
        (
            {"type": "object", "required": ["z"], "additionalProperties": {"type": "integer"}},
            {**dict.fromkeys((f"k{n}" for n in range(MANY)), "x"), "z": 1},
            "$.k0: ",
        ),
    ],
)
def test_of_very_many_violations_few_are_found(hint, value, first):
    shape = Shape.of(hint)
    shape.check()
    shape._validator = counted = Counted(shape._validator)
    problems = shape.violations(value)
    assert counted.found <= 1_000
    assert problems[0].startswith(first)
    assert problems[-1].startswith("there may be more")
    assert not any("required property" in problem or "less than" in problem for problem in problems)


def test_many_violations_are_counted():
    problems = Shape.of(list[int]).violations(["x"] * 150)
    assert len(problems) == 101
    assert problems[-1] == "and 50 more"
